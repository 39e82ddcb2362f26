#include "sums.h"

#include <string.h>

#include "int128.h"
#include "vector.h"

#define NEXT 8 /* values of a line of memory */

/* The integer nearest to `position`, clamped to [first, last]; `first` for NaN.
 *
 * Adding 1.5 * 2^52 leaves no room for a fraction: the sum is rounded to an integer, which stands
 * in the low bits of its representation. No library call, no conversion: loops are vectorized.
 */
static inline int64_t
nearest(double position, double first, double last)
{
    const double shift = 0x1.8p52;
    double clamped = position > first ? position : first;
    double shifted = (clamped < last ? clamped : last) + shift;
    int64_t bits, zero;

    memcpy(&bits, &shifted, sizeof bits);
    memcpy(&zero, &shift, sizeof zero);
    return bits - zero;
}

/* The sum of some of the values; how many there are is added to `kept`. */
DPQ_VECTORIZED static int64_t
sum_of(size_t n, const double *value, double scale, double low, double high, int64_t *kept)
{
    int64_t sum = 0, numbers = 0;

    for (size_t i = 0; i < n; i++) {
        int64_t is_number = value[i] == value[i];

        sum += nearest(value[i] * scale, low, high) & -is_number;
        numbers += is_number;
    }
    *kept += numbers;
    return sum;
}

/* The same, and the squares of distances are added to `squares`. */
DPQ_VECTORIZED static int64_t
squares_of(size_t n, const double *value, double scale, double low, double high, int64_t middle,
           int64_t *kept, int64_t *squares)
{
    int64_t sum = 0, numbers = 0, added = 0;

    for (size_t i = 0; i < n; i++) {
        int64_t is_number = value[i] == value[i];
        int64_t integer = nearest(value[i] * scale, low, high) & -is_number;
        int64_t aside = (integer - middle) & -is_number;

        sum += integer;
        added += aside * aside;
        numbers += is_number;
    }
    *kept += numbers;
    *squares += added;
    return sum;
}

/* Both kinds of sums; without `squares` the first. */
static inline size_t
sums(size_t n, const dpq_column *column, double scale, int64_t first, int64_t last, int64_t middle,
     int64_t *total, int64_t *squares)
{
    double read[DPQ_COLUMN_BLOCK], low = (double)first, high = (double)last;
    size_t width = dpq_column_width(column);
    int64_t sum = 0, kept = 0;

    for (size_t start = 0, end; start < n; start = end) {
        size_t size = dpq_column_block(column, start, n, DPQ_COLUMN_BLOCK);
        const double *value = dpq_column_read(column, start, size, read);
        const char *ahead = dpq_column_ahead(column, start, n);

        end = start + size;
        for (size_t i = 0; i < size; i += NEXT) { /* the next block comes nearer */
            DPQ_PREFETCH_SECOND(ahead + i * width);
        }
        sum += squares ? squares_of(size, value, scale, low, high, middle, &kept, squares)
                       : sum_of(size, value, scale, low, high, &kept);
    }
    *total = sum;
    return (size_t)kept;
}

size_t
dpq_sums_plain(size_t n, const dpq_column *column, double scale, int64_t first, int64_t last,
               int64_t *total)
{
    return sums(n, column, scale, first, last, 0, total, NULL);
}

size_t
dpq_sums_squares(size_t n, const dpq_column *column, double scale, int64_t first, int64_t last,
                 int64_t middle, int64_t *total, int64_t *squares)
{
    *squares = 0;
    return sums(n, column, scale, first, last, middle, total, squares);
}

static dpq_sums_wide
wide_of(dpq_u128 sum)
{
    dpq_sums_wide wide = {(int64_t)dpq_u128_high(sum), dpq_u128_low(sum)};

    return wide;
}

static inline int64_t
weighted_sums(size_t n, const double *value, const int64_t *weight, double scale, int64_t first,
              int64_t last, int64_t middle, dpq_sums_wide *total, dpq_sums_wide *squares)
{
    double low = (double)first, high = (double)last;
    dpq_u128 sum = dpq_u128_of(0, 0), added = sum;
    int64_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        int64_t times = value[i] == value[i] ? weight[i] : 0;
        int64_t integer = nearest(value[i] * scale, low, high);

        sum = dpq_u128_add_signed(sum, integer, times);
        if (squares) {
            added = dpq_u128_add_signed(added, (integer - middle) * (integer - middle), times);
        }
        kept += times;
    }
    *total = wide_of(sum);
    if (squares) {
        *squares = wide_of(added);
    }
    return kept;
}

int64_t
dpq_sums_weighted(size_t n, const double *value, const int64_t *weight, double scale, int64_t first,
                  int64_t last, dpq_sums_wide *total)
{
    return weighted_sums(n, value, weight, scale, first, last, 0, total, NULL);
}

int64_t
dpq_sums_weighted_squares(size_t n, const double *value, const int64_t *weight, double scale,
                          int64_t first, int64_t last, int64_t middle, dpq_sums_wide *total,
                          dpq_sums_wide *squares)
{
    return weighted_sums(n, value, weight, scale, first, last, middle, total, squares);
}
