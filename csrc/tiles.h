/* Sums over rows of consecutive ranks, in tiles that stay in the nearest cache. */
#ifndef DPQ_TILES_H
#define DPQ_TILES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "decay.h"
#include "vector.h"

#define DPQ_TILE 1024 /* entries of a row that are worked on at once */

/* Whether n ranks follow each other without a gap. */
DPQ_VECTORIZED static inline int
dpq_tiles_consecutive(size_t n, const int64_t *rank)
{
    int64_t off = 0;

    for (size_t i = 0; i < n; i++) {
        off |= rank[i] - rank[0] - (int64_t)i;
    }
    return off == 0;
}

/* sum_{k < length} x[i + k] exp(-rate k) for i < n, of n + length - 1 entries: windows are doubled, or
 * doubled and one added, along the binary digits of `length`. `fading` is NULL for a rate of 0. The
 * result is in one of the two buffers, or it is x. */
static inline const double *
dpq_tiles_windows(size_t n, size_t length, const dpq_decay *fading, const double *x, double *sums,
                  double *spare)
{
    double one = fading ? dpq_decay_at(fading, 1) : 1.0;
    const double *last = x;
    int digits = 0;

    if (length == 0) {
        memset(sums, 0, n * sizeof *sums);
        return sums;
    }
    while (length >> digits > 1) {
        digits++;
    }
    while (digits-- > 0) {
        size_t longer = length >> digits, half = longer / 2, room = n + length - longer;
        double far = fading ? dpq_decay_at(fading, (int64_t)half) : 1.0;
        double *swap = sums;

        if (longer % 2 == 0) {
            for (size_t i = 0; i < room; i++) {
                sums[i] = last[i] + last[i + half] * far;
            }
        }
        else {
            for (size_t i = 0; i < room; i++) {
                sums[i] = x[i] + (last[i + 1] + last[i + 1 + half] * far) * one;
            }
        }
        last = sums;
        sums = spare;
        spare = swap;
    }
    return last;
}

/* sums[i] = sum_{k <= i} x[k] fade^(i - k) for n entries, given sums[-1], four at a time: they add up
 * among themselves before they wait for what is before them. */
static inline void
dpq_tiles_running(size_t n, const double *x, double fade, double *sums)
{
    double fade2 = fade * fade, fade3 = fade2 * fade, fade4 = fade2 * fade2, before = sums[-1];
    size_t i;

    for (i = 0; i + 4 <= n; i += 4) {
        double two = x[i] * fade + x[i + 1], three = two * fade + x[i + 2];
        double four = three * fade + x[i + 3];

        sums[i] = before * fade + x[i];
        sums[i + 1] = before * fade2 + two;
        sums[i + 2] = before * fade3 + three;
        before = sums[i + 3] = before * fade4 + four;
    }
    for (; i < n; i++) {
        before = sums[i] = before * fade + x[i];
    }
}

#endif
