/* The compressed sample: positive-width intervals between order statistics. */
#ifndef DPQ_INTERVALS_H
#define DPQ_INTERVALS_H

#include <stddef.h>
#include <stdint.h>

/* A segment is a run of consecutive intervals first_rank, first_rank + 1, ...; interval i lies
 * between order statistics x_i and x_{i+1}, where x_0 = before and x_{n+1} = after. Points of all
 * segments stand one after the other: x_i for each segment's intervals, and one more, but neither
 * x_0 nor x_{n+1}.
 *
 *   segments       number of segments, each of at least one interval
 *   first_rank     IN, length `segments`, ascending, >= 0
 *   count          IN, length `segments`, first_rank + count <= n + 1
 *   n              records, 0 <= n <= 2^53
 *   before, after  x_0 and x_{n+1}
 *   point          IN, ascending within each segment; those of a lattice, `before` and `after` too,
 *                  at most 2^62 in magnitude (not checked)
 *   rank           OUT, records below the interval; room for sum(count)
 *   width          OUT, number of points in (x_i, x_{i+1}], exact in float64 up to 2^53
 *   left           OUT, x_i
 *
 * Intervals of zero width are left out.
 * Returns   the number of intervals written.
 * Cost      O(sum(count)), no allocation. Unsorted points are safe: such intervals are left out.
 */
size_t
dpq_intervals_lattice(size_t segments, const int64_t *first_rank, const int64_t *count, int64_t n,
                      int64_t before, int64_t after, const int64_t *point, int64_t *rank,
                      double *width, int64_t *left);

/* The same for the continuous mechanism: points are numbers, width is x_{i+1} - x_i. */
size_t
dpq_intervals_continuous(size_t segments, const int64_t *first_rank, const int64_t *count,
                         int64_t n, double before, double after, const double *point,
                         int64_t *rank, double *width, double *left);

/* The ranks within `window` of each target, and the disjoint segments they make up.
 *
 *   m            number of levels, m >= 1
 *   q            IN, length m, ascending, in [0, 1]
 *   n            records, 0 <= n <= 2^53
 *   window       W >= 0; every rank outside is more than W from the target q[j] * n
 *   first, last  OUT, length m: ranks first[j], ..., last[j], within [0, n]
 *   segment      OUT, length m: first rank of each segment
 *   count        OUT, length m: how many ranks it has
 *
 * Returns   the number of segments.
 */
size_t
dpq_intervals_windows(size_t m, const double *q, int64_t n, int64_t window, int64_t *first,
                      int64_t *last, int64_t *segment, int64_t *count);

/* The same with a window for each target. Where targets are close and windows are not alike, these are
 * wider, so that first[j] and last[j] ascend.
 *
 *   window       IN, length m
 */
size_t
dpq_intervals_windows_by_level(size_t m, const double *q, int64_t n, const int64_t *window, int64_t *first,
                               int64_t *last, int64_t *segment, int64_t *count);

/* Places of two order statistics around each target: x_{Q_j - reach_j} and x_{Q_j + reach_j + 1}.
 *
 *   m            number of levels
 *   q            IN, length m, in [0, 1]
 *   n            records, 1 <= n <= 2^53
 *   reach        IN, length m, in [0, 2^54]
 *   place        OUT, length 2 m: first all lower ones, then all upper ones, counted from 0 and held
 *                within [0, n)
 */
void
dpq_intervals_probes(size_t m, const double *q, int64_t n, const int64_t *reach, int64_t *place);

/* ln of how far apart values stand: ln((upper[j] - lower[j]) / unit), -inf where not at all. The
 * difference and the quotient are rounded to float64, and may become infinite or 0 there.
 *
 *   m            number of pairs
 *   value        IN, length 2 m, as for dpq_intervals_probes; clamped to [low, high], NaN is low
 *   low, high    low <= high, may be infinite
 *   unit         positive and finite
 *   log_span     OUT, length m
 */
void
dpq_intervals_log_spans(size_t m, const double *value, double low, double high, double unit,
                        double *log_span);

/* Which intervals the levels may use, so that paths do not decrease.
 *
 *   m            number of levels, m >= 1
 *   first, last  IN, length m: level j uses ranks first[j], ..., last[j], none if the last one is
 *                less; below 2^63 - 1
 *   intervals    length of `rank`, may be 0
 *   rank         IN, non-decreasing
 *   lo, hi       OUT, length m: intervals lo[j] <= t < hi[j]; both made non-decreasing, by leaving
 *                out what no path can use
 *
 * Returns   1, or 0 if some level is left without an interval.
 * Cost      O(m log(intervals)).
 */
int
dpq_intervals_ranges(size_t m, const int64_t *first, const int64_t *last, size_t intervals,
                     const int64_t *rank, size_t *lo, size_t *hi);

#endif
