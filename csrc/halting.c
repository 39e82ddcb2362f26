#include "halting.h"

#include <math.h>

#include "uniform.h"

#define LN2 0.693147180559945309417
/* A sum of hazards keeps 53 bits: a run below this part of it would lose more than 12 of its own. */
#define LEAST_PART 0x1p-12
#define PARTS 65536 /* a run is cut into at most this many parts at once, for the same reason */

static int
fair_bit(bitgen_t *rng)
{
    return (int)(rng->next_uint64(rng->state) >> 63);
}

/* Exponential variate of mean 1, with full relative precision near 0 and in the tail: which side
 * of the median it is on is decided first. */
static double
exponential(bitgen_t *rng)
{
    if (fair_bit(rng)) {
        return LN2 - dpq_uniform_log(rng);
    }
    return -log1p(-0.5 * dpq_uniform_fine(rng));
}

/* The same, given that it is below `most`. */
static double
exponential_below(double most, bitgen_t *rng)
{
    double drawn;

    if (most < LN2) {
        return -log1p(dpq_uniform_fine(rng) * expm1(-most));
    }
    do {
        drawn = exponential(rng);
    } while (drawn >= most);
    return drawn;
}

/* -ln P[noise of the query < threshold - value]: what passing it costs; NaN if the value is. */
static double
hazard_of(const dpq_halting *state, double value)
{
    double x = state->rate * (state->threshold - value);

    if (value == INFINITY) { /* the threshold may have overflowed, too */
        return INFINITY;
    }
    switch (state->noise) {
    case DPQ_HALTING_EXPONENTIAL:
        if (x <= 0.0) {
            return INFINITY;
        }
        return x < LN2 ? -log(-expm1(-x)) : -log1p(-exp(-x));
    case DPQ_HALTING_LAPLACE:
        return x < 0.0 ? LN2 - x : -log1p(-0.5 * exp(-x));
    default: /* Gumbel */
        return exp(-x);
    }
}

/* Which of `length` steps of one hazard halts, given that one does. */
static int64_t
step_within(double hazard, int64_t length, bitgen_t *rng)
{
    int64_t first = 0;

    while (length > 1) {
        int64_t part = (length - 1) / PARTS + 1, last = (length - 1) / part;
        double place = exponential_below((double)length * hazard, rng) / ((double)part * hazard);
        int64_t chosen = place < (double)last ? (int64_t)place : last;

        first += chosen * part;
        length = chosen < last ? part : length - last * part;
    }
    return first;
}

void
dpq_halting_start(dpq_halting_noise noise, double rate1, double rate2, bitgen_t *rng,
                  dpq_halting *state)
{
    double drawn = exponential(rng);

    if (noise == DPQ_HALTING_GUMBEL) {
        drawn = -log(drawn);
    }
    else if (noise == DPQ_HALTING_LAPLACE && fair_bit(rng)) {
        drawn = -drawn;
    }
    state->noise = noise;
    state->rate = rate2;
    state->threshold = drawn / rate1;
    state->value = NAN;
    state->hazard = NAN;
    state->clock = exponential(rng);
    state->spent = 0.0;
    state->steps = 0;
}

int
dpq_halting_advance(dpq_halting *state, size_t runs, const double *value, const int64_t *length,
                    bitgen_t *rng, int64_t *step)
{
    for (size_t r = 0; r < runs; r++) {
        int64_t count = length == NULL ? 1 : length[r];
        double hazard;

        if (value[r] != state->value) {
            state->value = value[r];
            state->hazard = hazard_of(state, value[r]);
        }
        hazard = (double)count * state->hazard;
        if (hazard > 0.0) { /* not for NaN: no steps, or a query that is NaN */
            if (hazard < LEAST_PART * state->spent) {
                state->clock = exponential(rng);
                state->spent = 0.0;
            }
            state->spent += hazard;
            if (state->spent >= state->clock) {
                *step = state->steps + step_within(state->hazard, count, rng);
                return 1;
            }
        }
        state->steps += count;
    }
    return 0;
}

int
dpq_halting_confirm(dpq_halting *state, double value, int64_t step, bitgen_t *rng)
{
    double bound = -expm1(-state->hazard);
    double p = -expm1(-hazard_of(state, value));

    if (dpq_uniform_fine(rng) * bound < p) { /* not for NaN */
        return 1;
    }
    state->clock = exponential(rng);
    state->spent = 0.0;
    state->steps = step + 1;
    return 0;
}
