/* Sums of values rounded to integers.
 *
 * A sum of float64 numbers is rounded at every step, so one record can move it by more than the
 * largest record (Casacuberta, Shoemate, Vadhan and Wagaman, CCS 2022). These sums are exact: a
 * record moves them by what it is.
 */
#ifndef DPQ_SUMS_H
#define DPQ_SUMS_H

#include <stddef.h>
#include <stdint.h>

#include "column.h"

/* Integers lie in [-DPQ_SUMS_REACH, DPQ_SUMS_REACH]. */
#define DPQ_SUMS_REACH ((int64_t)1 << 31)

/* Where squares are added up, at most so far from the middle of their range. */
#define DPQ_SUMS_ASIDE ((int64_t)1 << 16)

/* An integer below 2^127, high * 2^64 + low. */
typedef struct {
    int64_t high;
    uint64_t low;
} dpq_sums_wide;

/* Sum of the integers nearest to value * scale, clamped to [first, last]; ties go to the even one.
 *
 *   n            number of values, n < 2^32 (not checked)
 *   column       IN, length n; +-inf is clamped, NaN left out
 *   scale        positive and finite
 *   first, last  first <= last, both in reach
 *   total        OUT, at most 2^63 - 2^31 in magnitude, hence exact
 *
 * Returns   how many values are not NaN.
 * Cost      O(n), no allocation, reentrant.
 */
size_t
dpq_sums_plain(size_t n, const dpq_column *column, double scale, int64_t first, int64_t last,
               int64_t *total);

/* The same, and the sum of the squares of the integers' distances from `middle`.
 *
 *   n            number of values, n < 2^31 (not checked)
 *   middle       no farther from first and last than DPQ_SUMS_ASIDE
 *   squares      OUT, below 2^63, hence exact
 */
size_t
dpq_sums_squares(size_t n, const dpq_column *column, double scale, int64_t first, int64_t last,
                 int64_t middle, int64_t *total, int64_t *squares);

/* As `dpq_sums_plain` with value[i] counted weight[i] times.
 *
 *   value        IN, length n
 *   weight       IN, length n; not negative, of sum at most 2^63 - 1
 *   total        OUT, at most 2^94 in magnitude, hence exact
 *
 * Returns   the sum of the weights whose values are not NaN.
 */
int64_t
dpq_sums_weighted(size_t n, const double *value, const int64_t *weight, double scale, int64_t first,
                  int64_t last, dpq_sums_wide *total);

/* As `dpq_sums_weighted`, and the squares as of `dpq_sums_squares`, at most 2^95. */
int64_t
dpq_sums_weighted_squares(size_t n, const double *value, const int64_t *weight, double scale,
                          int64_t first, int64_t last, int64_t middle, dpq_sums_wide *total,
                          dpq_sums_wide *squares);

#endif
