#include "halting.h"

#include <math.h>

#include "uniform.h"
#include "vector.h"

#define LN2 0.693147180559945309417
/* A sum of hazards keeps 53 bits: a run below this part of it would lose more than 12 of its own. */
#define LEAST_PART 0x1p-12
#define PARTS 65536 /* a run is cut into at most this many parts at once, for the same reason */
/* Beyond this hazard it is cheaper to ask them one by one than to confirm the halts of bounds. */
#define MOST_HAZARD 0.125
#define LANES 32 /* of a largest value: enough vectors to not wait for each other */

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

/* The largest of some values, -inf if all are NaN. */
DPQ_VECTORIZED static double
largest(size_t n, const double *value)
{
    double most[LANES], found = -INFINITY;
    size_t i = 0;

    for (size_t j = 0; j < LANES; j++) {
        most[j] = -INFINITY;
    }
    for (; i + LANES <= n; i += LANES) {
        for (size_t j = 0; j < LANES; j++) {
            most[j] = value[i + j] > most[j] ? value[i + j] : most[j];
        }
    }
    for (size_t j = 0; j < LANES; j++) {
        found = most[j] > found ? most[j] : found;
    }
    for (; i < n; i++) {
        found = value[i] > found ? value[i] : found;
    }
    return found;
}

/* Ask each of some queries. */
static int
ask_each(dpq_halting *state, size_t n, const double *value, double threshold, bitgen_t *rng,
         int64_t *step)
{
    for (size_t i = 0; i < n; i++) {
        double gap = value[i] - threshold;

        if (dpq_halting_advance(state, 1, &gap, NULL, rng, step)) {
            return 1;
        }
    }
    return 0;
}

/* Ask as many times for a bound of them, and confirm each of its halts. */
static int
ask_bound(dpq_halting *state, size_t n, const double *value, double threshold, double bound,
          bitgen_t *rng, int64_t *step)
{
    int64_t start = state->steps, end = start + (int64_t)n, left;

    while ((left = end - state->steps) > 0) {
        int64_t at;

        if (!dpq_halting_advance(state, 1, &bound, &left, rng, &at)) {
            return 0;
        }
        if (dpq_halting_confirm(state, value[at - start] - threshold, at, rng)) {
            *step = at;
            return 1;
        }
    }
    return 0;
}

int
dpq_halting_ask(dpq_halting *state, size_t first, size_t n, const dpq_column *column,
                double threshold, bitgen_t *rng, int64_t *step)
{
    double read[DPQ_HALTING_BLOCK];

    for (size_t start = first, end; start < n; start = end) {
        size_t next = (start / DPQ_HALTING_BLOCK + 1) * DPQ_HALTING_BLOCK, size;
        const double *value;
        double bound;
        int halted;

        end = next < n ? next : n;
        size = end - start;
        value = dpq_column_read(column, start, size, read);
        bound = largest(size, value) - threshold; /* rounding keeps the order */
        halted = hazard_of(state, bound) <= MOST_HAZARD
                     ? ask_bound(state, size, value, threshold, bound, rng, step)
                     : ask_each(state, size, value, threshold, rng, step);
        if (halted) {
            return 1;
        }
    }
    return 0;
}
