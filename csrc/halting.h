/* AboveThreshold: where a stream of queries first reaches a noisy threshold. */
#ifndef DPQ_HALTING_H
#define DPQ_HALTING_H

#include <stddef.h>
#include <stdint.h>

#include <numpy/random/bitgen.h>

#include "column.h"

/* Queries of a column that are passed together. */
#define DPQ_HALTING_BLOCK 256

typedef enum {
    DPQ_HALTING_EXPONENTIAL, /* one-sided, >= 0 */
    DPQ_HALTING_LAPLACE,
    DPQ_HALTING_GUMBEL
} dpq_halting_noise;

/* A stream that has not halted yet. For dpq_halting_start and dpq_halting_advance only.
 *
 * Given the noise of the threshold, a query halts with a probability of its own, 1 - exp(-h), and
 * h is its hazard. The stream halts where the sum of the hazards reaches one exponential variate,
 * the clock, so equal queries are passed over together. A stream that has not halted by now has no
 * memory of its clock: a fresh one may be drawn at any time.
 */
typedef struct {
    dpq_halting_noise noise;
    double rate;      /* of the queries' noise */
    double threshold; /* noise of the threshold */
    double value;     /* query minus threshold, and its hazard, of the last run */
    double hazard;
    double clock; /* sum of hazards, from the draw of the clock on, at which the stream halts */
    double spent; /* sum of hazards since then */
    int64_t steps; /* queries passed */
} dpq_halting;

/* Draw the noise of the threshold and the first clock.
 *
 *   noise        Gumbel: with the law of [Dur23] Lemma 3.3 if rate1 == rate2 (not checked)
 *   rate1        of the threshold's noise: its density at z > 0 falls like exp(-rate1 z); > 0
 *   rate2        of each query's noise; > 0
 *   rng          IN OUT, the caller holds its lock
 *   state        OUT
 *
 * Draws     two exponential variates; one word more, for the sign, if Laplace. A variate is one
 *           word for its half and dpq_uniform_log or dpq_uniform_fine for its place in it.
 */
void
dpq_halting_start(dpq_halting_noise noise, double rate1, double rate2, bitgen_t *rng,
                  dpq_halting *state);

/* Ask the next queries, in runs of equal ones, up to the halt.
 *
 *   state        IN OUT, not to be advanced after a halt, unless dpq_halting_confirm gave 0
 *   runs         number of runs
 *   value        IN, length runs: query minus threshold. inf halts for sure, -inf and NaN never
 *   length       IN, length runs, each in [0, 2^53], their sum over all calls < 2^63 (not
 *                checked); NULL if all are 1
 *   rng          IN OUT, the caller holds its lock
 *   step         OUT, number of queries passed since the start, when it halts; else untouched
 *
 * Draws     a clock where a run's hazard is below 2^-12 of what is spent, so that no step is lost
 *           in rounding; within the run that halts, one exponential variate, truncated (fewer than
 *           two tries on average), for every factor of 2^16 of its length.
 * Returns   1 if it halts, 0 if all queries are passed.
 * Cost      O(runs) whatever the lengths; no allocation, reentrant.
 * Accuracy  given the threshold's noise, the probability of each step is right to 1e-10 relative,
 *           for steps of hazard above 1e-300; smaller hazards may count as none.
 */
int
dpq_halting_advance(dpq_halting *state, size_t runs, const double *value, const int64_t *length,
                    bitgen_t *rng, int64_t *step);

/* Whether a query itself halts, where dpq_halting_advance halted at an upper bound of its value.
 *
 * Given the noise of the threshold, each step halts independently of the others. So a stream of
 * bounds, each of whose halts is confirmed with probability p(value) / p(bound), p the probability
 * to halt, halts as the stream of values does. If the halt is not confirmed, the stream goes on
 * after this query.
 *
 *   state        IN OUT, of dpq_halting_advance which just halted
 *   value        query minus threshold, at most what was asked in its place (not checked)
 *   step         what dpq_halting_advance gave
 *   rng          IN OUT, the caller holds its lock
 *
 * Draws     one uniform of full relative precision near zero; a fresh clock if not confirmed.
 * Returns   1 if it halts, 0 if the query is passed.
 * Accuracy  the ratio is right to 1e-14 relative, for hazards above 1e-300.
 */
int
dpq_halting_confirm(dpq_halting *state, double value, int64_t step, bitgen_t *rng);

/* Ask the queries first, ..., n - 1 of a column, once each, up to the halt.
 *
 * Blocks begin at multiples of DPQ_HALTING_BLOCK. The queries of one are asked for together: as many
 * times for the largest of them, each of whose halts is to be confirmed (dpq_halting_confirm). So for
 * each halt of the largest query of its block there are DPQ_HALTING_BLOCK of the bound at the most, in
 * the mean: few are in vain before the stream halts, whatever the queries are.
 *
 *   state, rng, step  as for dpq_halting_advance
 *   column       the queries; inf halts for sure, -inf and NaN never
 *   threshold    finite; query minus threshold is rounded
 *
 * Draws     for each block as dpq_halting_advance of one run, and for each halt of a bound what
 *           dpq_halting_confirm draws; where the largest query is likely to halt, as
 *           dpq_halting_advance of each.
 * Returns   1 if it halts, 0 if all queries are passed.
 * Cost      the reading of the column up to the halt, and one exponential and one logarithm for each
 *           block.
 */
int
dpq_halting_ask(dpq_halting *state, size_t first, size_t n, const dpq_column *column,
                double threshold, bitgen_t *rng, int64_t *step);

#endif
