/* Smooth sensitivity of an order statistic. */
#ifndef DPQ_SMOOTH_H
#define DPQ_SMOOTH_H

#include <stddef.h>
#include <stdint.h>

/* ln S with S = max over lo <= target <= hi, lo < hi, of exp(-t (hi - lo - 1)) (x_hi - x_lo): the
 * t-smooth sensitivity of x_target [NRS07], with k = hi - lo - 1, among the order statistics given.
 *
 *   runs         number of runs, runs >= 1
 *   rank         IN, length `runs`, strictly ascending: run i holds the order statistics with the
 *                ranks rank[i-1] + 1, ..., rank[i], all equal; the first run those up to rank[0]
 *   value        IN, length `runs`, ascending, finite: the value of each run; integers up to 2^53
 *                are compared exactly
 *   target       the rank of x_target, in one of the runs: rank[runs-1] >= target (not checked)
 *   count        number of t
 *   t            IN, length `count`, each >= 0 and finite
 *   log_smooth   OUT, length `count`; -inf where all values are equal, and where S is too small for
 *                ln S to be a float64
 *
 * Only the last rank of a run counts below the target and only the first above. For one lo after
 * another, downwards, the best hi never moves up: ln(u + d) is submodular in u = x_hi - x_target
 * and d = x_target - x_lo. So the best hi of the middle lo divides the others' ranges. What is
 * too far apart to beat the best found, with (x_last - x_first) for its difference, is left out.
 *
 * Cost      O(W log W) per t, with W the ranks within ln((x_last - x_first) / S) / t of the target;
 *           no allocation, O(log runs) stack, reentrant. Values that do not ascend are safe.
 * Accuracy  1e-15 max(1, |ln S|, t k) for the best k, times log(runs).
 */
void
dpq_smooth_log(size_t runs, const int64_t *rank, const double *value, int64_t target, size_t count,
               const double *t, double *log_smooth);

#endif
