#include "halting.h"

#include "fuzz.h"
#include "uniform.h"

#define MOST_RUNS 50
#define MOST_CALLS 6
#define MOST_QUERIES 600
#define ACCURACY 1e-12L
#define LEAST 1e-300 /* smaller hazards may count as none */

/* -ln P[noise of a query < gap] */
static long double
hazard(dpq_halting_noise noise, long double x)
{
    switch (noise) {
    case DPQ_HALTING_EXPONENTIAL:
        return x <= 0 ? INFINITY : x < 0.5L ? -logl(-expm1l(-x)) : -log1pl(-expl(-x));
    case DPQ_HALTING_LAPLACE:
        return x < 0 ? logl(2) - x : -log1pl(-expl(-x) / 2);
    default:
        return expl(-x);
    }
}

static void
check_hazard(const dpq_halting *state)
{
    double x = state->rate * (state->threshold - state->value);
    long double expected = hazard(state->noise, x);

    if (state->value == INFINITY) {
        CHECK(state->hazard == INFINITY);
        return;
    }
    if (expected < LEAST || expected > 1e300L) {
        return;
    }
    CHECK(fabsl(state->hazard - expected) <= ACCURACY * expected);
}

static int
is_near(long double found, long double expected)
{
    return fabsl(expected) > 1e300L ? fabsl(found) > 1e299L && (found < 0) == (expected < 0)
                                    : fabsl(found - expected) <= ACCURACY * fabsl(expected) + LEAST;
}

/* An exponential variate: one word for its half, and V for its place in it. */
static long double
exponential(bitgen_t *rng)
{
    return rng->next_uint64(rng->state) >> 63 ? logl(2) - dpq_uniform_log(rng)
                                              : -log1pl(-dpq_uniform_fine(rng) / 2.0L);
}

/* A new stream, and that the noise of its threshold and its clock are made of the words they should be. */
static dpq_halting
draw_stream(fuzz_input *in, bitgen_t *rng, dpq_halting_noise noise, double rate1, double rate2)
{
    fuzz_input same = *in;
    bitgen_t again = fuzz_generator(&same);
    long double drawn = exponential(&again);
    dpq_halting made;

    drawn = noise == DPQ_HALTING_GUMBEL ? -logl(drawn) : drawn;
    if (noise == DPQ_HALTING_LAPLACE && again.next_uint64(again.state) >> 63) {
        drawn = -drawn;
    }
    dpq_halting_start(noise, rate1, rate2, rng, &made);
    CHECK(is_near(made.threshold, drawn / rate1) || fabsl(drawn) < 1e-3L); /* next to 0 digits are lost */
    CHECK(is_near(made.clock, exponential(&again)));
    CHECK(same.left == in->left && same.state == in->state);
    CHECK(!isnan(made.threshold) && made.rate == rate2 && made.steps == 0 && made.spent == 0.0);
    return made;
}

/* Ask as one long stream, call by call; whether and where it halts must fit what was asked. */
static void
check_stream(fuzz_input *in, dpq_halting *state, bitgen_t *rng)
{
    for (int64_t call = fuzz_between(in, 0, MOST_CALLS); call > 0; call--) {
        size_t runs = (size_t)fuzz_between(in, 0, MOST_RUNS);
        double *value = fuzz_room(runs, sizeof *value);
        int64_t *length = fuzz_bit(in) ? fuzz_room(runs, sizeof *length) : NULL;
        int64_t before = state->steps, step = -1, passed = before;
        size_t at = 0;
        int halted;

        for (size_t r = 0; r < runs; r++) {
            value[r] = fuzz_number(in);
            if (length != NULL) {
                length[r] = fuzz_bit(in) ? fuzz_between(in, 0, 3)
                                         : fuzz_between(in, 0, (int64_t)1 << 53);
            }
        }
        halted = dpq_halting_advance(state, runs, value, length, rng, &step);
        if (!halted) {
            for (size_t r = 0; r < runs; r++) {
                int64_t steps = length == NULL ? 1 : length[r];

                CHECK(steps == 0 || value[r] != INFINITY);
                passed += steps;
            }
            CHECK(step == -1 && state->steps == passed);
        }
        else {
            /* the run that holds the step may halt, and none before it halts for sure */
            for (;; at++) {
                int64_t steps;

                CHECK(at < runs);
                steps = length == NULL ? 1 : length[at];
                if (step < passed + steps) {
                    break;
                }
                CHECK(steps == 0 || value[at] != INFINITY);
                passed += steps;
            }
            CHECK(step >= passed && value[at] > -INFINITY);
            check_hazard(state);
            if (state->hazard >= LEAST && fuzz_bit(in)) { /* a bound confirms itself */
                CHECK(dpq_halting_confirm(state, value[at], step, rng));
            }
            else if (!dpq_halting_confirm(state, fuzz_bit(in) ? -INFINITY : NAN, step, rng)) {
                CHECK(state->steps == step + 1 && state->spent == 0.0 && state->clock >= 0.0);
            }
            else {
                CHECK(0); /* -inf and NaN never halt */
            }
        }
        free(length);
        free(value);
        if (halted && state->steps <= step) {
            return;
        }
    }
}

/* Ask a column, call by call: what halts for sure is not passed, and what never does is not found. */
static void
check_column(fuzz_input *in, dpq_halting *state, bitgen_t *rng)
{
    for (int64_t call = fuzz_between(in, 0, MOST_CALLS); call > 0; call--) {
        size_t n = (size_t)fuzz_between(in, 0, MOST_QUERIES);
        double *value = fuzz_room(n, sizeof *value), threshold = fuzz_finite(in);
        dpq_column column = {value, DPQ_FLOAT64};
        size_t first = (size_t)fuzz_between(in, 0, (int64_t)n), asked = n - first;
        int64_t before = state->steps, step = -1;
        int halted, low = fuzz_bit(in);

        for (size_t i = 0; i < n; i++) {
            value[i] = low ? threshold - fabs(fuzz_number(in)) : fuzz_number(in);
        }
        halted = dpq_halting_ask(state, first, n, &column, threshold, rng, &step);
        if (halted) {
            asked = (size_t)(step - before);
            CHECK(before <= step && asked < n - first);
            CHECK(value[first + asked] - threshold > -INFINITY);
        }
        else {
            CHECK(step == -1 && state->steps == before + (int64_t)asked);
        }
        for (size_t i = first; i < first + asked; i++) {
            CHECK(!(value[i] - threshold == INFINITY));
        }
        free(value);
        if (halted) {
            return;
        }
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size, 1};
    bitgen_t rng = fuzz_generator(&in);
    dpq_halting_noise noise = (dpq_halting_noise)fuzz_between(&in, 0, 2);
    double rate1 = fuzz_positive(&in), rate2 = fuzz_positive(&in);
    dpq_halting state;

    state = draw_stream(&in, &rng, noise, rate1, rate2);
    check_stream(&in, &state, &rng);
    state = draw_stream(&in, &rng, noise, rate1, rate2);
    check_column(&in, &state, &rng);
    return 0;
}
