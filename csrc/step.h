/* From one row of the forward pass to the next: what both the scan of intervals and that of cells do. */
#ifndef DPQ_STEP_H
#define DPQ_STEP_H

#include <stddef.h>
#include <stdint.h>

#include "scan.h"

typedef struct {
    const int64_t *rank_before; /* the last row's ranks, non-decreasing */
    const int64_t *rank;        /* this row's, likewise */
    size_t size;                /* entries of this row */
    const uint32_t *end;        /* entry t comes after the entries s < end[t] of the last row, */
    size_t shift, before;       /* or, if that is NULL, after s < min(t + shift, before) */
    int64_t whole, whole_now;   /* the last row's target and this one's: floor */
    double part, part_now;      /* and fraction */
    const dpq_scan_level *level; /* this row's constants */
} dpq_scan_step;

static inline size_t
dpq_scan_step_end(const dpq_scan_step *step, size_t t)
{
    if (step->end) {
        return step->end[t];
    }
    return t + step->shift < step->before ? t + step->shift : step->before;
}

/* From row j - 1 to row j, both within the same intervals. */
static inline dpq_scan_step
dpq_scan_step_to(const dpq_scan_problem *p, const dpq_scan_level *level, size_t j)
{
    return (dpq_scan_step){
        .rank_before = p->rank + p->lo[j - 1],
        .rank = p->rank + p->lo[j],
        .size = p->hi[j] - p->lo[j],
        .shift = p->lo[j] - p->lo[j - 1],
        .before = p->hi[j - 1] - p->lo[j - 1],
        .whole = p->whole[j - 1],
        .whole_now = p->whole[j],
        .part = p->part[j - 1],
        .part_now = p->part[j],
        .level = level + j,
    };
}

/* exp(-2c dist(u, [min(0, v), max(0, v)])) from level l to l + 1 at one rank, where u >= v. */
static inline double
dpq_scan_stay_at(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
                 size_t l, int64_t rank)
{
    if (rank <= p->whole[l]) { /* u <= 0: 0 */
        return 1.0;
    }
    if (rank < p->whole[l + 1] + (p->part[l + 1] > 0.0)) { /* v < 0 < u: u */
        return dpq_decay_at(decay, rank - p->whole[l] - 1) * level[l].up;
    }
    return level[l + 1].stay; /* v >= 0: u - v = n_{l+1} */
}

/* How many intervals of row j are in row j - 1, too: its first ones. */
static inline size_t
dpq_scan_shared(const dpq_scan_problem *p, size_t j)
{
    size_t lo = p->lo[j], end = p->hi[j - 1] < p->hi[j] ? p->hi[j - 1] : p->hi[j];

    return end > lo ? end - lo : 0;
}

#endif
