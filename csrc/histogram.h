/* Counting values by bin, in one pass, exactly as by comparison with the stored edges. */
#ifndef DPQ_HISTOGRAM_H
#define DPQ_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "column.h"

/* Bins are told apart by `edges` inner edges: a value x, clamped from below to `low`, belongs to bin
 * #{c : edge[c] <= x}, one of edges + 1 bins. What lies above the last inner edge is the last bin.
 *
 * To find the bin without a search, a value is first given a key in [0, last], a function that never
 * decreases, roundings included; start[k] is the number of edges of smaller keys. So edges of
 * smaller keys are <= x, edges of larger keys are > x, and only edges of x's own key are compared
 * with x. The key never decides anything: a bad one costs time. With z = max(x - base, 0), the key is
 *   linear        the integer part of z * scale + 1/2: edges that stand 1/scale apart lie in the
 *                 middle of their keys;
 *   logarithmic   the top bits of the float64 number z + scale, all but `shift` of them, counted
 *                 from those of `scale`: octaves, each in 2^(52 - shift) equal parts;
 * and `last` where that is more.
 *
 *   edges        number of inner edges, < 2^31
 *   edge         length edges + 1: the keys of csrc/key.h, ascending, of the inner edges (ties are
 *                allowed, +-inf too, NaN is not), then INT64_MAX, more than any number's
 *   low          smaller values count as this one; -inf for none; not NaN
 *   base         finite
 *   scale        positive and finite
 *   logarithmic  which key
 *   shift        0 <= shift <= 52, for the logarithmic key
 *   last         largest key, < 2^31
 *   start        length last + 1, filled by dpq_histogram_prepare
 *   cap          the least number whose key is `last`, set by dpq_histogram_prepare
 *   first        the bits of `scale` that keys are counted from, set by dpq_histogram_prepare
 *   most         largest number of edges with one key, set by dpq_histogram_prepare
 *   next         length last + 1, filled by the caller with edge[start[k]], or NULL; used with `work`
 */
typedef struct {
    size_t edges;
    const int64_t *edge;
    double low, base, scale;
    int logarithmic, shift;
    uint32_t last;
    uint32_t *start;
    double cap;
    uint64_t first;
    size_t most;
    const int64_t *next;
} dpq_histogram;

/* Counters per key in `work`. */
#define DPQ_HISTOGRAM_WORK 4

/* Fill start[0], ..., start[last], `cap`, `first` and `most`; every other field is given.
 *
 * Cost      O(edges + last), no allocation.
 */
void
dpq_histogram_prepare(dpq_histogram *h);

/* Add the number of values in each bin, or their weights, to the counts.
 *
 *   h            IN, prepared
 *   n            number of values
 *   column       IN, length n; NaN is in no bin
 *   sign         1.0, or -1.0 to count -x in place of each value x
 *   weight       IN, length n, or NULL for 1 each; sums are taken modulo 2^64
 *   count        IN OUT, length h->edges + 1
 *   work         WORK, length DPQ_HISTOGRAM_WORK * (h->last + 1), zeros before and after; or NULL.
 *                With it, h->most <= 1, h->next is there, and weight is NULL (not checked)
 *
 * Cost      O(n) where h->most <= 1, else O(n log(h->most)); no allocation, reentrant: threads may
 *           share h, each with its own counts. With `work`, half of that, and O(keys between the
 *           smallest and the largest one) once in 2^31 values.
 */
void
dpq_histogram_count(const dpq_histogram *h, size_t n, const dpq_column *column, double sign,
                    const int64_t *weight, int64_t *count, uint32_t *work);

/* The thresholds t_i = (base^i - 1) + lower, i = 0, 1, ...: the power rounded to nearest, then each
 * operation. They end with the first one not below `upper`, before one that is infinite in float64,
 * or when there are `size` of them.
 *
 *   base         > 1, finite (not checked)
 *   lower        finite (not checked)
 *   upper        not NaN (not checked)
 *   skip, size   0 <= skip <= size
 *   step         >= 1
 *   threshold    OUT, length (size - skip) / step, rounded up: t_skip and every step-th from there,
 *                ascending; untouched beyond the end
 *
 * Returns   how many there are, those skipped and stepped over included.
 * Cost      one product per threshold written, per 64 of those left out, and up to 64 more for each
 *           gap; no allocation. What t_i is does not depend on `upper`, `skip`, `step` and `size`.
 * Accuracy  base^i is computed to i * 2^-103 relative and then rounded: for i < 2^24, it is the
 *           float64 number nearest to it unless it lies within 2^-79 of a tie.
 */
size_t
dpq_histogram_thresholds(double base, double lower, double upper, size_t skip, size_t step,
                         size_t size, double *threshold);

#endif
