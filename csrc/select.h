/* Selecting windows of ranks from unsorted values: count by bucket, then collect some buckets.
 *
 * Values are clamped to the bounds and put in buckets 0, ..., buckets - 1 by a map that never
 * decreases; NaN goes to a bucket of its own, number `buckets`. So the ranks of a bucket follow from
 * the counts, whatever the map: a bad map costs time, never a wrong answer.
 * Keys are those of key.h.
 */
#ifndef DPQ_SELECT_H
#define DPQ_SELECT_H

#include <stddef.h>
#include <stdint.h>

#include "column.h"
#include "wanted.h"

/* Most buckets: their near counters, two of 16 bits each, take 32 KB. */
#define DPQ_SELECT_BUCKETS DPQ_WANTED_BUCKETS

typedef struct {
    double low, high; /* values are clamped to this */
    int linear;       /* bucket of a value v: (v - origin) * scale, rounded down; */
    double origin;    /* finite; else of its key: (key - base) >> shift; */
    double scale;     /* > 0, finite */
    int64_t base;    /* from the key of `low` to that of `high` */
    int shift;       /* 0 to 63 */
    int64_t buckets; /* both held within [0, buckets - 1] */
} dpq_select_map;

/* Of maps that are linear in the value or in its key, the one that spreads some values most evenly.
 *
 *   low, high    the bounds
 *   buckets      a power of 2
 *   n            number of values
 *   value        IN, ascending, within the bounds
 */
dpq_select_map
dpq_select_choose(double low, double high, int64_t buckets, size_t n, const double *value);

/* About where a bucket begins, within the bounds; exact bisection is the caller's business. */
double
dpq_select_edge(const dpq_select_map *map, int64_t bucket);

/* Bucket of one value. */
int64_t
dpq_select_bucket(const dpq_select_map *map, double value);

/* Buckets of n values. */
void
dpq_select_buckets(const dpq_select_map *map, size_t n, const double *value, uint32_t *bucket);

/* Count values by bucket, and collect those of some buckets, clamped, in the order they stand.
 *
 *   rows         of values, which begin at 0, apart, 2 * apart, ... of the column
 *   n            values of a row, at most `apart`
 *   column       IN, length (rows - 1) * apart + n
 *   count        IN OUT, length map->buckets + 1, added to
 *   wanted       IN, length map->buckets + 1: 0 for those that are not; or NULL for none
 *   room         length of `out`
 *   out          OUT
 *
 * Returns   how many are collected; only the first `room` are written.
 * Cost      O(rows * n), no allocation; 60 KB of the stack.
 */
size_t
dpq_select_count(const dpq_select_map *map, size_t rows, size_t n, size_t apart,
                 const dpq_column *column, int64_t *count, const uint8_t *wanted, size_t room,
                 double *out);

/* Count a sample by bucket: runs of values that begin at 0, apart, 2 * apart, ....
 *
 *   run          1 to DPQ_COLUMN_BLOCK values each; run <= apart
 *   runs         number of runs; the column has (runs - 1) * apart + run values or more
 *   count        IN OUT, length map->buckets + 1, added to
 */
void
dpq_select_sample(const dpq_select_map *map, size_t run, size_t apart, size_t runs,
                  const dpq_column *column, int64_t *count);

/* Count by key the values of some cells: part (key - key_lo) >> shift, from 0 to parts - 1.
 *
 *   cell         IN, length map->buckets + 1: number of the bucket's cell, -1 to pass it over
 *   key_lo, key_hi  IN, one for each cell: a bucket may hold other keys than
 *                key_lo <= key < key_hi, which are passed over like those beyond the last part
 *   shift        IN, one for each cell, 0 to 63; or -1 for the parts below, at and above its pivot
 *   pivot        IN, one key for each cell
 *   parts        number of parts of a cell; what lies in others is passed over
 *   count        IN OUT, `parts` for each cell, added to
 */
void
dpq_select_refine(const dpq_select_map *map, const int32_t *cell, const int64_t *key_lo,
                  const int64_t *key_hi, const int32_t *shift, const int64_t *pivot, int64_t parts,
                  size_t n, const dpq_column *column, int64_t *count);

/* Collect the values of some buckets, clamped, in the order they stand.
 *
 *   wanted       IN, length map->buckets + 1: 0 nothing, 1 all, 2 those with a key in a range
 *   ranges       number of ranges
 *   key_lo       IN, length `ranges`, ascending
 *   key_hi       IN, length `ranges`: keys key_lo[i] <= key < key_hi[i]; ranges do not overlap
 *   room         length of `out`
 *   out          OUT
 *
 * Returns   how many there are; only the first `room` are written.
 * Cost      O(n + collected * log(ranges)), no allocation.
 */
size_t
dpq_select_collect(const dpq_select_map *map, const uint8_t *wanted, size_t ranges,
                   const int64_t *key_lo, const int64_t *key_hi, size_t n,
                   const dpq_column *column, size_t room, double *out);

/* Collect the values in a few ranges, clamped; much faster than dpq_select_collect if few are.
 *
 *   low, high    the bounds
 *   ranges       number of ranges
 *   lo, hi       IN, length `ranges`: values lo[r] <= v <= hi[r], before they are clamped; ranges do
 *                not overlap. NaN is in none.
 *   room, out    as for dpq_select_collect
 *
 * Returns   how many there are; only the first `room` are written, and
 *           perhaps some number after them.
 * Cost      O(n * ranges), by vector instructions where nothing is found.
 */
size_t
dpq_select_between(double low, double high, size_t ranges, const double *lo, const double *hi,
                   size_t n, const dpq_column *column, size_t room, double *out);

/* Count values by cell, with the least and the largest of each.
 *
 * Values are clamped to the bounds first. Those in a range, lo[r] <= v <= hi[r], are in its part
 * (v / 2 - lo[r] / 2) * scale[r], rounded down and held within [0, parts - 1]: halves, so that no
 * range is too wide. What the parts are is nobody's promise: the counts are of values between
 * `least` and `most`, whatever they are.
 *
 *   low, high    the bounds
 *   ranges       number of ranges, at least 1; they ascend and do not overlap
 *   scale        IN, one for each range, > 0 and finite
 *   parts        of each range, 1 to 2^30
 *   count        IN OUT, `parts` for each range, and last the number of NaN; added to
 *   least, most  IN OUT, `parts` for each range; begin with infinity and -infinity
 *
 * Cost      O(n log(ranges)), no allocation.
 */
void
dpq_select_cells(double low, double high, size_t ranges, const double *lo, const double *hi,
                 const double *scale, int64_t parts, size_t n,
                 const dpq_column *column, int64_t *count, double *least, double *most);

#endif
