/* Values put in order at some places, as sorting would have them there; the others stay between those, or
 * are left out.
 *
 * What is asked for are windows of places, ascending, which do not overlap. Values are counted by bins
 * that ascend, moved to where their bin belongs, and put in order inside of the bins that windows meet.
 * Bins that no window meets go together with those next to them, as they lie, or nowhere.
 */
#ifndef DPQ_ARRANGE_H
#define DPQ_ARRANGE_H

#include <stddef.h>
#include <stdint.h>

#include "select.h"

/* Most bins. */
#define DPQ_ARRANGE_BINS 65536
/* Where bins go whose values are left out. */
#define DPQ_ARRANGE_NOWHERE UINT32_MAX

/* Each bucket of a map that may have any values is several bins, the buckets of a finer map.
 *
 * The finer map has the bounds, the origin and the base of the other one, 2^bits times its scale and its
 * buckets, and a shift that is less by `bits`: its buckets are parts of the other's.
 */
typedef struct {
    dpq_select_map map;   /* the finer one */
    int bits;             /* 0 to 16 */
    const uint32_t *slot; /* length map.buckets >> bits: how many buckets below may have any values; a
                           * value elsewhere is put anywhere, so there is one slot more than these */
} dpq_arrange_bins;

typedef struct {
    size_t windows;
    const int64_t *start, *stop; /* places start[w], ..., stop[w] - 1 of window w */
} dpq_arrange_windows;

/* Make bins finer until about eight of n values are in each, or there would be too many.
 *
 *   bins         IN OUT, those that are buckets themselves
 *   slots        of them
 *
 * Returns   their number: `slots` 2^bits, at most max(slots, n / 4).
 */
size_t
dpq_arrange_refine(dpq_arrange_bins *bins, size_t slots, size_t n);

/* Add to `count`, which has 2^bits entries for each slot, how many values are in each bin. */
void
dpq_arrange_count(const dpq_arrange_bins *bins, size_t n, const double *value, size_t *count);

/* Where to put values: that of bin b at place cursor[to[b]], which goes up by one, unless to[b] is
 * DPQ_ARRANGE_NOWHERE.
 *
 *   bins         number of bins, at most DPQ_ARRANGE_BINS
 *   all          whether those that no window meets go anywhere
 *   cursor       IN OUT, the count of each bin
 *   to           OUT, length `bins`
 *
 * Returns   the most values of a bin that a window meets.
 */
size_t
dpq_arrange_plan(size_t bins, const dpq_arrange_windows *asked, int all, size_t *cursor,
                 uint32_t *to);

/* Where some of all values go that are moved on their own, perhaps at the same time as others.
 *
 *   bins, to     as above
 *   count        of these values, in each bin
 *   cursor       IN OUT, where values go that are not given a place yet; past these now, and so where each
 *                bin ends once all have been given theirs
 *   own          OUT, length `bins`, the cursor for these
 */
void
dpq_arrange_share(size_t bins, const uint32_t *to, const size_t *count, size_t *cursor,
                  size_t *own);

/* Put values where they belong; where none does, nothing is written. */
void
dpq_arrange_move(const dpq_arrange_bins *bins, size_t n, const double *value, size_t *cursor,
                 const uint32_t *to, double *out);

/* Put in order what windows meet, once all values are moved: of some bins, perhaps at the same time as
 * others.
 *
 *   first, last  bins first, ..., last - 1
 *   to           as above
 *   cursor       IN, where each bin ends
 *   out          IN OUT, length n
 *   spare        WORK, as long as dpq_arrange_plan said
 *
 * Cost         O(windows' values), and O(n) for every 8 bits by which values of a bin differ.
 */
void
dpq_arrange_finish(size_t first, size_t last, const dpq_arrange_windows *asked,
                   const size_t *cursor, const uint32_t *to, double *out, double *spare);

/* How many of arranged values are below others.
 *
 *   asked        windows, none of them empty, in which they are in order
 *   n, arranged  as many as there are
 *   values, value  the others
 *   below        OUT, one for each of the others
 *
 * Cost         O(log n) inside of a window, and the values between two of them elsewhere.
 */
void
dpq_arrange_below(const dpq_arrange_windows *asked, size_t n, const double *arranged, size_t values,
                  const double *value, int64_t *below);

/* The same, but -1 between windows, where nothing is read. */
void
dpq_arrange_below_inside(const dpq_arrange_windows *asked, size_t n, const double *arranged,
                         size_t values, const double *value, int64_t *below);

/* Add to `below` how many of n numbers, in any order, are below others. */
void
dpq_arrange_add_below(size_t n, const double *number, size_t values, const double *value,
                      int64_t *below);

/* All of that for numbers of which nothing is known: bins are chosen by some of them.
 *
 *   low, high    what is beyond is put with these; low <= high
 *   n, number    IN, NaN comes last
 *   cursor, to   WORK, length n + 1
 *   spare        WORK, length n
 *   out          OUT, length n
 *
 * Cost         O(n), and as dpq_arrange_finish.
 */
void
dpq_arrange_numbers(double low, double high, size_t n, const double *number,
                    const dpq_arrange_windows *asked, size_t *cursor, uint32_t *to, double *spare,
                    double *out);

#endif
