/* Drawing an index by log-weights. */
#ifndef DPQ_RACE_H
#define DPQ_RACE_H

#include <stddef.h>

#include <numpy/random/bitgen.h>

#include "status.h"

/* Draw index k with probability proportional to exp(log_weight[k]), by a race.
 *
 *   n            number of weights, n >= 1 (not checked)
 *   log_weight   IN, length n, natural log; -inf means "never"
 *   rng          IN OUT, the caller holds its lock
 *   drawn        OUT, index in [0, n); untouched unless DPQ_OK
 *
 * The race of exponential variates E_k / p_k is won by the smallest ([MG20], as [GJK21] Appendix C
 * has it). Which half of the field holds
 * the winner is itself a race of two, with the halves' total weights: it is decided first, by one
 * uniform, and the losing half never draws. The law is that of the full race.
 *
 * Draws     at most ceil(log2 n) times dpq_uniform_log; none where only one half has weight.
 * Returns   DPQ_OK, DPQ_ERR_NO_MASS, DPQ_ERR_NAN.
 * Cost      O(n), no allocation, reentrant.
 * Accuracy  the smaller side of each decision is compared with a uniform of full relative
 *           precision: probabilities down to 1e-300 of the largest are reachable, and right to
 *           1e-13 relative for |log_weight| < 700.
 */
dpq_status
dpq_race_draw(size_t n, const double *log_weight, bitgen_t *rng, size_t *drawn);

/* Plain weights are halved until this number or fewer are left. */
#define DPQ_RACE_FIELD 32

/* The same with plain weights, for those that need no logarithms.
 *
 *   weight       IN, length n, each in [2^-900, 2^900], or 0 for "never"; not all 0 (not checked)
 *
 * Of the last DPQ_RACE_FIELD weights, the large ones are drawn by one uniform and running sums. The
 * small ones, which the rounding of such sums would change, stand together at the uniform's lower
 * end; if they win, the race goes on among them alone.
 *
 * Draws     dpq_uniform_fine: ceil(log2(n / DPQ_RACE_FIELD)) times at most, once if more than one
 *           is left, and where the small ones win at most log2(DPQ_RACE_FIELD) times.
 * Returns   the index.
 * Accuracy  as dpq_race_draw, but right to 1e-11 relative.
 */
size_t
dpq_race_draw_plain(size_t n, const double *weight, bitgen_t *rng);

/* The sum of n >= 0 weights, each below infinity. O(n). */
double
dpq_race_sum(size_t n, const double *weight);

/* ln sum_k exp(log_weight[k]) over n >= 0 weights; -inf if all are. No NaN, no +inf. O(n). */
double
dpq_race_log_sum(size_t n, const double *log_weight);

#endif
