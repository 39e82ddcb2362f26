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

size_t
dpq_sums_plain(size_t n, const dpq_column *column, double scale, int64_t first, int64_t last,
               int64_t *total)
{
    double read[DPQ_COLUMN_BLOCK];
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
        sum += sum_of(size, value, scale, (double)first, (double)last, &kept);
    }
    *total = sum;
    return (size_t)kept;
}

int64_t
dpq_sums_weighted(size_t n, const double *value, const int64_t *weight, double scale, int64_t first,
                  int64_t last, dpq_sums_wide *total)
{
    double low = (double)first, high = (double)last;
    dpq_u128 sum = dpq_u128_of(0, 0);
    int64_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        int64_t times = value[i] == value[i] ? weight[i] : 0;

        sum = dpq_u128_add_signed(sum, nearest(value[i] * scale, low, high), times);
        kept += times;
    }
    total->high = (int64_t)dpq_u128_high(sum);
    total->low = dpq_u128_low(sum);
    return kept;
}
