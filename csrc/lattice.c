#include "lattice.h"

#include <math.h>

#include "vector.h"

#define BLOCK 1024 /* values encoded at once before they are counted */
#define CHUNK 4096 /* values looked at between two tests for an early stop */

/* rint(x): adding and taking away 1.5 * 2^52 rounds to an integer, without a library call. */
static double
nearest(double x)
{
    return fabs(x) < 0x1p51 ? (x + 0x1.8p52) - 0x1.8p52 : rint(x);
}

DPQ_VECTORIZED void
dpq_lattice_encode(size_t n, const double *value, double low, double high, double per_unit,
                   double step, int64_t first, int64_t points, int64_t *point)
{
    for (size_t i = 0; i < n; i++) {
        /* a NaN, where sortedness was promised and does not hold, becomes low: no wild cast */
        double clamped = value[i] >= low ? (value[i] <= high ? value[i] : high) : low;
        double position = per_unit != 0.0 ? clamped * per_unit : clamped / step;
        int64_t number = (int64_t)nearest(position) - first;

        point[i] = number < 0 ? 0 : number >= points ? points - 1 : number;
    }
}

void
dpq_lattice_count(size_t n, const double *value, double low, double high, double per_unit,
                  double step, int64_t first, int64_t points, int64_t *count)
{
    int64_t point[BLOCK];

    for (size_t start = 0; start < n; start += BLOCK) {
        size_t size = n - start < BLOCK ? n - start : BLOCK;

        dpq_lattice_encode(size, value + start, low, high, per_unit, step, first, points, point);
        for (size_t i = 0; i < size; i++) {
            count[isnan(value[start + i]) ? points : point[i]]++;
        }
    }
}

void
dpq_lattice_count_integers(size_t n, const int64_t *value, int64_t first, int64_t points,
                           int64_t *count)
{
    int64_t last = first + points - 1;

    for (size_t i = 0; i < n; i++) {
        count[(value[i] < first ? first : value[i] > last ? last : value[i]) - first]++;
    }
}

void
dpq_lattice_decode(size_t n, const int64_t *point, double per_unit, double step, int64_t first,
                   double *value)
{
    for (size_t i = 0; i < n; i++) {
        double index = (double)(point[i] + first);

        value[i] = per_unit != 0.0 ? index / per_unit : index * step;
    }
}

int
dpq_lattice_is_sorted(size_t n, const double *value)
{
    for (size_t start = 1; start < n; start += CHUNK) {
        size_t stop = n - start < CHUNK ? n : start + CHUNK;
        int sorted = 1;

        for (size_t i = start; i < stop; i++) {
            sorted &= value[i - 1] <= value[i];
        }
        if (!sorted) {
            return 0;
        }
    }
    return 1;
}
