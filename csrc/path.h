/* The backward pass of JointExp: drawing sequences of intervals, and points inside them. */
#ifndef DPQ_PATH_H
#define DPQ_PATH_H

#include <stddef.h>
#include <stdint.h>

#include <numpy/random/bitgen.h>

#include "scan.h"
#include "scan_blocks.h"

/* The rows of a forward pass: with an exponent for each (`exponent` set), or for each block of them (NULL). */
typedef struct {
    const double *A, *H;
    const int64_t *exponent;
    dpq_scan_blocks blocks;
} dpq_path_rows;

/* Candidates are raced in blocks of this many: first the blocks, then inside the winner. */
#define DPQ_PATH_BLOCK 32

/* Draw `size` sequences of m intervals from the law given by the rows.
 *
 *   p, decay, rows   IN, as filled by the forward pass
 *   log_escape       ln of the probability that a draw is left to the caller, -inf for never
 *   size             number of draws
 *   rng              IN OUT, the caller holds its lock
 *   work             WORK, length max(hi - lo) + max(hi - lo) / DPQ_PATH_BLOCK + m + 2
 *   path             OUT, size times m interval indices, non-decreasing; a draw that escapes has
 *                    p->intervals everywhere, which is no index
 *   escaped          OUT, how many draws escaped
 *
 * [GJK21] Alg. 1 lines 13-18: the last interval t with weight H_m(t) exp(-c |n - r_t - n_{m+1}|),
 * then how many outputs k it holds, then the interval before, and so on. Each choice is a race of
 * plain weights. Those below a floor of 2^-880, and all counts k beyond the likely ones together, are
 * drawn with a bound on their weight, and then taken or not by what they weigh, in logarithms: no
 * weight, however small, is rounded to zero.
 *
 * Draws     one dpq_uniform_log if log_escape is finite; then two races for each choice of an
 *           interval and one for each k; one dpq_uniform_log more, and perhaps one race of
 *           log-weights, where what was drawn had a bound for its weight.
 * Cost      O(sum(hi - lo)) per draw, no allocation, reentrant.
 */
void
dpq_path_draw(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_path_rows *rows,
              double log_escape, size_t size, bitgen_t *rng, double *work, size_t *path,
              size_t *escaped);

/* Go on with one such draw, of which the levels from `left` on are in `path`, as far as to level `first`
 * or beyond it.
 *
 *   left         m for all levels, else more than first or there is nothing to do
 *   path         IN OUT, length m
 *
 * Returns   how many levels are left, at most first. If an interval of level first or above is in rows
 *           of earlier levels, too, all of these are to be among the rows, or what is drawn has another
 *           law.
 */
size_t
dpq_path_go_on(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_path_rows *rows,
               size_t first, size_t left, bitgen_t *rng, double *work, size_t *path);

/* One such choice: the interval at level j that comes before interval t at level j + 1, or the last one
 * of all for t = p->intervals. `work` is as above. */
size_t
dpq_path_draw_before(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_path_rows *rows,
                     size_t j, size_t t, bitgen_t *rng, double *work);

/* A candidate that weighs less than this is drawn as if it weighed that much, and then taken with
 * probability (its weight) / DPQ_PATH_FLOOR; if it is not, all are drawn from anew. So the law is exact,
 * and no other candidate asks for logarithms. */
#define DPQ_PATH_FLOOR 0x1p-880
#define DPQ_PATH_LEAST 0x1p-800 /* a total from which on floors are nothing to it */

/* The second step for candidate s of the choice above, that was drawn in units of a float64 row: s, or
 * what is drawn anew. `work` has an entry for each candidate. */
size_t
dpq_path_settle(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_path_rows *rows,
                size_t j, size_t t, size_t s, bitgen_t *rng, double *work);

/* ln of the weights of 1, 2, ... outputs in interval t, the last at level j.
 *
 *   top          they are over 2^top
 *   most         OUT, how many weights there are, at most j + 1
 *   log_weight   OUT, length j + 1; -inf for none
 *
 * Returns   the largest exponent of theirs.
 */
int64_t
dpq_path_log_copies(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_path_rows *rows,
                    size_t j, size_t t, int64_t top, size_t *most, double *log_weight);

/* Draw the outputs inside the intervals of `size` sequences, a uniform multiset where one interval
 * holds several.
 *
 *   m            length of a sequence
 *   path         IN, size times m, non-decreasing within each sequence
 *   left, width  IN, the intervals: points left + 1, ..., left + width
 *   rng          IN OUT, the caller holds its lock
 *   point        OUT, size times m, non-decreasing within each sequence
 */
void
dpq_path_points_lattice(size_t m, size_t size, const size_t *path, const int64_t *left,
                        const double *width, bitgen_t *rng, int64_t *point);

/* The same for the continuous mechanism: sorted uniforms on [left, left + width]. */
void
dpq_path_points_continuous(size_t m, size_t size, const size_t *path, const double *left,
                           const double *width, bitgen_t *rng, double *point);

#endif
