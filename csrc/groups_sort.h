/* Points of small groups in order: of one of them, or of as many as there are lanes, side by side. */
#ifndef DPQ_GROUPS_SORT_H
#define DPQ_GROUPS_SORT_H

#include <stddef.h>
#include <stdint.h>

#include <numpy/random/bitgen.h>

/* Length of the arrays that n points are sorted in. */
size_t
dpq_groups_room(size_t n);

/* Sort n points.
 *
 *   point, spare IN OUT, length dpq_groups_room(n); the points stand in the first n of `point`
 *
 * Returns   `point` or `spare`, whichever holds the sorted points.
 * Cost      O(n log n), whatever the points are; no branch depends on them.
 */
int64_t *
dpq_groups_sort(size_t n, int64_t *point, int64_t *spare);

/* Sort n points of each of DPQ_LANES groups (lanes.h).
 *
 *   point        IN OUT, n rows of DPQ_LANES points: a column for each group
 *
 * Cost      O(n log(n)^2) for each group, whatever the points are; no allocation, reentrant.
 */
void
dpq_groups_sort_lanes(size_t n, int64_t *point);

/* Dither n points, in order, of each of DPQ_LANES groups: each group by itself.
 *
 *   bits         dither bits, from 1 to 32
 *   column       IN OUT, n rows as sorted by dpq_groups_sort_lanes; then fine points
 *   point        WORK, length n
 *   rng          IN OUT, the caller holds its lock
 *
 * Draws     dpq_dither_draw for each group.
 * Cost      O(n) for each group, no allocation, reentrant.
 */
void
dpq_groups_dither_lanes(int bits, size_t n, int64_t *column, int64_t *point, bitgen_t *rng);

#endif
