#include "smooth.h"

#include <float.h>

#include "fuzz.h"

#define MOST_RUNS 60
#define MOST_RATES 4
#define ACCURACY 1e-14

/* ln S by its definition, over all pairs of order statistics that may be the best. */
static long double
plain(size_t runs, const int64_t *rank, const double *value, int64_t target, double t)
{
    long double best = -INFINITY;
    size_t at = 0;

    while (rank[at] < target) {
        at++;
    }
    for (size_t lo = 0; lo <= at; lo++) {
        for (size_t hi = at; hi < runs; hi++) {
            int64_t low = lo < at ? rank[lo] : target, high = hi > at ? rank[hi - 1] + 1 : target;
            long double width = (long double)value[hi] - value[lo];

            if (width > 0) {
                long double term = logl(width) - (long double)t * (long double)(high - low - 1);

                best = term > best ? term : best;
            }
        }
    }
    return best;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size, 1};
    size_t runs = (size_t)fuzz_between(&in, 1, MOST_RUNS);
    size_t rates = (size_t)fuzz_between(&in, 0, MOST_RATES);
    int64_t *rank = fuzz_room(runs, sizeof *rank);
    double *value = fuzz_room(runs, sizeof *value);
    double *t = fuzz_room(rates, sizeof *t), *log_smooth = fuzz_room(rates, sizeof *log_smooth);
    int64_t reach = fuzz_bit(&in) ? 4 : (int64_t)1 << fuzz_between(&in, 0, 50);
    int64_t last = fuzz_between(&in, -reach, reach), target;
    int ascending = fuzz_between(&in, 0, 7) > 0, wide = fuzz_bit(&in);

    for (size_t i = 0; i < runs; i++) {
        rank[i] = last += i > 0 ? fuzz_between(&in, 1, reach) : 0;
        value[i] = wide ? fuzz_finite(&in) : (double)fuzz_between(&in, -1000, 1000);
        if (fabs(value[i]) > 0x1p1020) { /* differences are finite: what csmooth promises */
            value[i] = 0x1p-1074;
        }
    }
    for (size_t i = 0; i < rates; i++) {
        t[i] = fuzz_bit(&in) ? ldexp(1.0, (int)fuzz_between(&in, -60, 5)) : fabs(fuzz_finite(&in));
    }
    target = fuzz_between(&in, rank[0] - reach, rank[runs - 1]);
    if (ascending) {
        qsort(value, runs, sizeof *value, fuzz_compare_numbers);
    }
    dpq_smooth_log(runs, rank, value, target, rates, t, log_smooth);
    for (size_t i = 0; i < rates && ascending; i++) {
        long double expected = plain(runs, rank, value, target, t[i]);

        if (expected < -DBL_MAX) {
            CHECK(log_smooth[i] == -INFINITY);
        }
        else {
            long double size_of = fabsl(expected) > 1 ? fabsl(expected) : 1;

            CHECK(fabsl(log_smooth[i] - expected) <= ACCURACY * 710 * size_of);
        }
    }
    free(log_smooth);
    free(t);
    free(value);
    free(rank);
    return 0;
}
