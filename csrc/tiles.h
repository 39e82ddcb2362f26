/* Sums over rows of consecutive ranks, in tiles that stay in the nearest cache. */
#ifndef DPQ_TILES_H
#define DPQ_TILES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "decay.h"
#include "ranks.h"
#include "scan.h"
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

/* Whether row j may be computed by tiles. */
static inline int
dpq_tiles_will_do(const dpq_scan_problem *p, const dpq_scan_level *level, size_t j)
{
    size_t first = p->lo[j - 1];

    return level[j].reach >= 1 && level[j].reach <= DPQ_TILE / 2 &&
           dpq_tiles_consecutive(p->hi[j] - first, p->rank + first);
}

/* From row j - 1 to row j, by the entries of the first: */
typedef struct {
    size_t begin, end;    /* row j, */
    size_t last;          /* and the end of what comes before some of it; */
    size_t turn;          /* v >= 0 from here on, */
    size_t zero;          /* and u >= 0 from here on; */
    size_t ahead;         /* entries of a window */
    int64_t above, below; /* ranks from the target to entry zero, and to the one before it, less a part */
} dpq_tiles_step;

static inline dpq_tiles_step
dpq_tiles_step_to(const dpq_scan_problem *p, const dpq_scan_level *level, size_t j)
{
    const size_t first = p->lo[j - 1], before = p->hi[j - 1] - first;
    const int64_t *rank = p->rank + first, target = p->whole[j - 1];
    const int64_t above = target + (p->part[j - 1] > 0.0);
    dpq_tiles_step s = {.begin = p->lo[j] - first,
                        .end = p->hi[j] - first,
                        .ahead = (size_t)level[j].reach - 1};

    s.last = before < s.end ? before : s.end;
    s.turn = dpq_ranks_first(rank, s.begin, s.end, p->whole[j] + (p->part[j] > 0.0));
    s.zero = dpq_ranks_first(rank, 0, s.last, above);
    s.above = s.zero < s.last ? rank[s.zero] - above : 0;
    s.below = s.zero > 0 ? target - rank[s.zero - 1] : 0;
    return s;
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
