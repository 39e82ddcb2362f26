/* Single quantiles on a lattice: what each point loses, and the race that chooses one.
 *
 * With t the target rank, a point o loses
 *
 *   max(#{x < o} - t, t - #{x <= o})
 *
 * records: how far t is outside of the ranks that o covers, or, negative, how deep inside. A cell is a
 * set of neighboring points that lose the same: the points between two records, or one point that
 * holds records.
 */
#ifndef DPQ_DEPTH_H
#define DPQ_DEPTH_H

#include <stddef.h>
#include <stdint.h>

#include <numpy/random/bitgen.h>

/* The cells of some intervals that follow each other: their inner points, their right ends, and the
 * point before the first one.
 *
 *   intervals    number of intervals T >= 1
 *   rank         IN, length T, records below each, strictly ascending, in [0, n]
 *   width        IN, length T, points in each, at least 1; its last one holds the records from
 *                rank[t] to rank[t + 1], and none where rank[t] = n
 *   left         IN, length T, the point before each
 *   n            records, 0 <= n <= 2^53
 *   whole, part  the target: an integer in [0, n] and a fraction in [0, 1)
 *   below        records below the point before the first interval, which holds records unless
 *                rank[0] = 0
 *   through      records up to the last interval's right end; not used where rank[T - 1] = n
 *   start        OUT, the point before each cell; room for 2 T + 1
 *   points       OUT, number of points of each cell, at least 1
 *   loss         OUT
 *
 * Returns   the number of cells written, ascending.
 * Cost      O(T), no allocation.
 * Accuracy  losses are rounded once, after an exact difference of integers.
 */
size_t
dpq_depth_cells(size_t intervals, const int64_t *rank, const double *width, const int64_t *left,
                int64_t n, int64_t whole, double part, int64_t below, int64_t through,
                int64_t *start, double *points, double *loss);

/* Draw a cell by permute-and-flip: the one that holds the largest of all E_o - rate loss(o), where
 * each point o has an exponential variate of its own [DKS+21].
 *
 *   cells        number of cells >= 1
 *   points, loss IN, as above; points below 2^1023
 *   rate         >= 0, finite
 *   best         a cell of the smallest loss
 *   rng          IN OUT, the caller holds its lock
 *
 * The largest variate of w points is -ln(1 - (1 - V)^(1/w)), one uniform V. It is at most ln(w / V),
 * and what does not reach the largest value so far by that bound, with w rounded up to a power of
 * two, is not computed.
 *
 * Draws     dpq_uniform_log_below, once for each cell: `best` first, the others in order.
 * Returns   the cell.
 * Cost      O(cells), no allocation, reentrant.
 * Accuracy  values are right to some units of the last digit; events down to 2^-65536 happen.
 */
size_t
dpq_depth_flip(size_t cells, const double *points, const double *loss, double rate, size_t best,
               bitgen_t *rng);

/* Intervals that dpq_depth_point looks at together. */
#define DPQ_DEPTH_BLOCK 8

/* Draw a point by permute-and-flip, of all points.
 *
 *   intervals, rank, width, left, n, whole, part  IN, as for dpq_depth_cells: all intervals, of
 *                points that are numbered from left[0] + 1 on, so that rank[0] is 0
 *   rate         >= 0, finite
 *   rng          IN OUT, the caller holds its lock
 *
 * The law is that of dpq_depth_cells and dpq_depth_flip. Intervals are taken in blocks, the one of the
 * target first. The largest variate M of a block's points comes first, too, by one uniform, and a
 * block that can not win with it is left alone. In others each point is as likely as any other to be
 * the one that has it; a cell without that point has the largest of its variates, given that all are
 * below M: exp(-E) is b + (1 - b) exp(-M), where b is that of variates that may be any.
 *
 * Draws     for each block dpq_uniform_log_below, and if it is opened dpq_uniform_below and
 *           dpq_uniform_log for each cell but one; dpq_uniform_below for the point.
 * Returns   the point.
 * Cost      O(intervals), no allocation, reentrant.
 * Accuracy  as dpq_depth_flip.
 */
int64_t
dpq_depth_point(size_t intervals, const int64_t *rank, const double *width, const int64_t *left,
                int64_t n, int64_t whole, double part, double rate, bitgen_t *rng);

#endif
