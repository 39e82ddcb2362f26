#include "scan_blocks_tiles.h"

#include "extremes.h"
#include "tiles.h"
#include "vector.h"

#define SHORT_TILE 128 /* entries that are worked on at once, or as many as the window has */

/* A row, seen from one side of the next target. */
typedef struct {
    const dpq_scan_problem *problem;
    const dpq_decay *decay;
    const dpq_scan_blocks *blocks;
    size_t row;
    const double *h;    /* entry s counts h[s], */
    size_t first, last; /* times exp(-rate k) part, k = nearest, nearest + 1, ..., for first <= s < last, */
    int backwards;      /* or from last - 1 down to first, */
    int64_t nearest;
    dpq_wide part;
    size_t size;        /* and nothing for s >= size */
} far_side;

/* Entries of one block, all of which count that way, or none of which does. */
typedef struct {
    size_t end;
    int64_t unit;  /* they count no more than about 2^unit each: */
    double scale;  /* h[s] scale 2^unit exp(-rate k), k = 0, 1, ..., or backwards */
    int fades;
} far_piece;

static far_piece
piece_at(const far_side *side, size_t s, size_t stop)
{
    const dpq_scan_problem *p = side->problem;
    size_t end = dpq_scan_block_end(p, side->blocks, side->row, s);
    far_piece piece = {.unit = side->blocks->H[dpq_scan_block(p, side->blocks, side->row,
                                                              p->lo[side->row] + s)],
                       .scale = 1.0,
                       .fades = s >= side->first && s < side->last};

    piece.end = end < stop ? end : stop;
    if (s < side->first && piece.end > side->first) {
        piece.end = side->first;
    }
    if (s < side->last && piece.end > side->last) {
        piece.end = side->last;
    }
    if (piece.fades) {
        size_t away = side->backwards ? side->last - piece.end : s - side->first;
        dpq_wide most = dpq_wide_mul(
            dpq_decay_wide(side->decay, side->nearest + (int64_t)away), side->part);

        piece.unit += most.exponent;
        piece.scale = most.mantissa;
    }
    return piece;
}

/* Where those of n entries from s on that there are end: 0 or more. */
static size_t
last_of(const far_side *side, int64_t s, size_t n)
{
    int64_t end = s + (int64_t)n, size = (int64_t)side->size;

    return (size_t)(end < 0 ? 0 : end < size ? end : size);
}

/* What the entries s, ..., s + n - 1 count at the most, as a power of two. */
static int64_t
unit_of(const far_side *side, int64_t s, size_t n)
{
    size_t i = s > 0 ? (size_t)s : 0, stop = last_of(side, s, n);
    int64_t most = DPQ_WIDE_LOWEST;

    while (i < stop) {
        far_piece piece = piece_at(side, i, stop);

        most = piece.unit > most ? piece.unit : most;
        i = piece.end;
    }
    return most;
}

/* x[i] = what entry s + i counts, for i < n and s < 0, too, in units of 2^unit. */
static inline void
see_far(const far_side *side, int64_t s, size_t n, int64_t unit, double *x)
{
    size_t stop = last_of(side, s, n), i = 0;
    const double *fade = side->decay->table, *h = side->h;

    for (; i < n && s + (int64_t)i < 0; i++) {
        x[i] = 0.0;
    }
    for (size_t at = (size_t)(s + (int64_t)i); at < stop;) {
        far_piece piece = piece_at(side, at, stop);
        const double scale = piece.scale * dpq_wide_power_or_nothing(unit - piece.unit);
        const size_t begin = at, end = piece.end;

        if (!piece.fades) {
            for (; at < end; at++, i++) {
                x[i] = h[at] * scale;
            }
        }
        else if (side->backwards) {
            for (; at < end; at++, i++) {
                x[i] = h[at] * fade[end - 1 - at] * scale;
            }
        }
        else {
            for (; at < end; at++, i++) {
                x[i] = h[at] * fade[at - begin] * scale;
            }
        }
    }
    for (; i < n; i++) {
        x[i] = 0.0;
    }
}

/* sums_of_side() of scan.c for `to - from` entries of row j, in units of their blocks; whether there is room for
 * all. */
DPQ_VECTORIZED static int
sums_of_far_side(const far_side *side, size_t from, size_t to, size_t ahead, double fade, double past,
                 const dpq_decay *fading, double window, double *restrict sums)
{
    const dpq_scan_problem *p = side->problem;
    const dpq_scan_blocks *blocks = side->blocks;
    const size_t j = side->row + 1, base = p->lo[side->row];
    const size_t room = ahead > SHORT_TILE ? ahead : SHORT_TILE;
    double x[DPQ_TILE], before[DPQ_TILE + 1], one[DPQ_TILE], other[DPQ_TILE];
    int64_t unit = DPQ_WIDE_LOWEST;
    size_t n;

    before[0] = 0.0;
    for (size_t i = 0; i < to; i += n) {
        size_t stop = i < from ? from : to, all;
        int64_t s = (int64_t)i - (int64_t)ahead, last = unit, most;

        n = stop - i;
        if (n > room) { /* to the end of a block */
            n = blocks->begin[blocks->of[base + i + room]] - (base + i);
        }
        all = n + (i < from ? 0 : ahead);
        unit = unit_of(side, s, all);
        if (before[0] > 0.0) {
            most = last + dpq_wide_of(before[0], 0).exponent;
            unit = most > unit ? most : unit;
            before[0] *= last > unit ? ldexp(1.0, (int)(last - unit)) : dpq_wide_power_or_nothing(unit - last);
        }
        see_far(side, s, all, unit, x);
        dpq_tiles_running(n, x, fade, before + 1);
        if (i >= from) {
            const double *inside = dpq_tiles_windows(n, ahead, fading, x, one, other);
            double *found = sums + (i - from);
            size_t first = dpq_scan_block(p, blocks, j, base + i);

            for (size_t k = 0; k < n; k++) {
                found[k] = before[k] * past + inside[k] * window;
            }
            if (!(dpq_smallest(n - (i == 0), found + (i == 0)) >= DPQ_SCAN_SMALLEST)) {
                return 0;
            }
            for (size_t b = first; b <= dpq_scan_block(p, blocks, j, base + i + n - 1); b++) {
                blocks->A[b] = unit;
            }
        }
        else if (unit > DPQ_WIDE_LOWEST && !(before[n] >= DPQ_SCAN_SMALLEST)) {
            return 0; /* what faded may be all that comes before the first sums */
        }
        before[0] = before[n];
    }
    return 1;
}

int
dpq_scan_blocks_tiles(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
                      const dpq_scan_blocks *blocks, size_t j, const double *H, double *restrict sums)
{
    const dpq_tiles_step s = dpq_tiles_step_to(p, level, j);
    const size_t on_left = s.turn - s.begin, n = s.end - s.begin;
    const size_t block = dpq_scan_block(p, blocks, j, p->lo[j] + on_left - (on_left == n));
    far_side left = {.problem = p,
                     .decay = decay,
                     .blocks = blocks,
                     .row = j - 1,
                     .h = H + p->start[j - 1],
                     .first = s.zero,
                     .last = s.last,
                     .nearest = s.above,
                     .part = p->part[j - 1] > 0.0 ? dpq_wide_exp(decay->rate, 1.0 - p->part[j - 1])
                                                  : dpq_wide_of(1.0, 0),
                     .size = s.last};
    far_side right = left;
    int64_t unit = 0;

    right.first = 0;
    right.last = s.zero;
    right.backwards = 1;
    right.nearest = s.below;
    right.part = dpq_wide_exp(decay->rate, p->part[j - 1]);
    if (on_left > 0) {
        if (!sums_of_far_side(&left, s.begin, s.turn, s.ahead, dpq_decay_at(decay, 1), level[j].past,
                              NULL, 1.0, sums)) {
            return 0;
        }
        unit = blocks->A[dpq_scan_block(p, blocks, j, p->lo[j] + on_left - 1)];
    }
    if (on_left < n && !sums_of_far_side(&right, s.turn, s.end, s.ahead, 1.0, 1.0, decay,
                                         level[j].ahead, sums + on_left)) {
        return 0;
    }
    if (on_left > 0 && on_left < n &&
        block == dpq_scan_block(p, blocks, j, p->lo[j] + on_left - 1)) {
        /* one block, with a unit from each side */
        size_t i = dpq_scan_block_end(p, blocks, j, on_left);
        int64_t other = blocks->A[block], most = unit > other ? unit : other;

        while (i-- > 0 && dpq_scan_block(p, blocks, j, p->lo[j] + i) == block) {
            sums[i] *= dpq_wide_power_or_nothing(most - (i < on_left ? unit : other));
            if (sums[i] < DPQ_SCAN_LEAST_KEPT && s.begin + i > 0) {
                return 0;
            }
        }
        blocks->A[block] = most;
    }
    return 1;
}
