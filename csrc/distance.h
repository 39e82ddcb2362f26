/* What a step between levels costs JointExp, of ranks and exact targets; see scan.h. */
#ifndef DPQ_DISTANCE_H
#define DPQ_DISTANCE_H

#include <math.h>
#include <stdint.h>

#include "decay.h"

/* The number whole + part, part in [0, 1]. */
typedef struct {
    int64_t whole;
    double part;
} dpq_mixed;

/* The stretch of ranks from which the next step costs nothing. */
typedef struct {
    dpq_mixed lower, upper;
} dpq_free_range;

static inline int
dpq_mixed_less(dpq_mixed a, dpq_mixed b)
{
    return a.whole < b.whole || (a.whole == b.whole && a.part < b.part);
}

/* [min(0, v), max(0, v)] + Q as ranks, for the target Q of a level, where v = r - (next target) belongs
 * to the level after it. */
static inline dpq_free_range
dpq_free_range_of(dpq_mixed target, dpq_mixed next, int64_t r)
{
    dpq_mixed other;

    /* v + Q_l = r - (Q_{l+1} - Q_l) */
    other.whole = r - (next.whole - target.whole);
    other.part = target.part - next.part;
    if (other.part < 0.0) {
        other.whole -= 1;
        other.part += 1.0;
    }
    return dpq_mixed_less(other, target) ? (dpq_free_range){other, target}
                                         : (dpq_free_range){target, other};
}

/* How far rank r lies outside the range. */
static inline dpq_mixed
dpq_distance(dpq_free_range range, int64_t r)
{
    dpq_mixed none = {0, 0.0};

    if (dpq_mixed_less((dpq_mixed){r, 0.0}, range.lower)) {
        return (dpq_mixed){range.lower.whole - r, range.lower.part};
    }
    if (dpq_mixed_less(range.upper, (dpq_mixed){r, 0.0})) {
        return (dpq_mixed){r - range.upper.whole - 1, 1.0 - range.upper.part};
    }
    return none;
}

/* What a weight keeps for that. */
static inline double
dpq_decay_of(const dpq_decay *decay, dpq_mixed away)
{
    return dpq_decay_at(decay, away.whole) * exp(-decay->rate * away.part);
}

/* The same for all distances, and however much is lost. */
static inline dpq_wide
dpq_decay_of_wide(const dpq_decay *decay, dpq_mixed away)
{
    return dpq_wide_mul(dpq_decay_wide(decay, away.whole), dpq_wide_exp(decay->rate, away.part));
}

#endif
