/* Rounding values to the public lattice of outputs. */
#ifndef DPQ_LATTICE_H
#define DPQ_LATTICE_H

#include <stddef.h>
#include <stdint.h>

#include "column.h"

/* Number of the lattice point nearest to each value, counted from the lowest point in the bounds.
 *
 *   n            number of values
 *   value        IN, length n; NaN counts as low
 *   low, high    the bounds values are clamped to, low <= high; each at most 2^62 steps from 0, that
 *                is, times per_unit or divided by step (not checked)
 *   per_unit     1/step where that is nearly an integer, else 0
 *   step         spacing of the lattice, positive and finite
 *   first        the lowest point is first * step, |first| <= 2^53
 *   points       number of points, 2 <= points <= 2^53
 *   point        OUT, length n, in [0, points)
 *
 * Monotone in the value: it commutes with sorting and with selecting.
 * Cost      O(n), no allocation.
 */
void
dpq_lattice_encode(size_t n, const double *value, double low, double high, double per_unit,
                   double step, int64_t first, int64_t points, int64_t *point);

/* Count values by lattice point; NaN is counted at `points`.
 *
 *   column       IN, length n
 *   count        IN OUT, length points + 1, added to
 *
 * Everything else as for dpq_lattice_encode.
 */
void
dpq_lattice_count(size_t n, const dpq_column *column, double low, double high, double per_unit,
                  double step, int64_t first, int64_t points, int64_t *count);

/* The same for integers, as dpq_column_integers reads them, on the lattice of spacing 1. */
void
dpq_lattice_count_integers(size_t n, const dpq_column *column, int64_t first, int64_t points,
                           int64_t *count);

/* How many values of an ascending column are at a lower lattice point than `asked` ones each, by bisection.
 *
 *   point        IN, length asked
 *   lo, hi       IN OUT, length asked, lo <= hi: from lo to hi values are, and the result in lo; values
 *                lo, ..., hi - 1 are looked at
 *
 * Everything else as for dpq_lattice_encode.
 * Cost      O(log(hi - lo)) each, many at once: one need not wait until the memory of another is there.
 */
void
dpq_lattice_bisect(size_t asked, const dpq_column *column, double low, double high, double per_unit,
                   double step, int64_t first, int64_t points, const int64_t *point, int64_t *lo,
                   int64_t *hi);

/* Values at multiples of size[t] from low[t] on and below high[t]: stretches of an ascending column. */
typedef struct {
    size_t stretches;
    const int64_t *low, *high; /* IN: 0 <= low <= high <= n, ascending and apart */
    const int64_t *size;       /* IN, >= 1 */
} dpq_lattice_places;

/* How far one is in them. */
typedef struct {
    size_t stretch;
    int64_t above; /* values below that are done */
} dpq_lattice_place;

/* Runs of values at one lattice point that hold one of some places, in order.
 *
 *   column       IN, length n, ascending
 *   at           IN OUT, all 0 to begin with
 *   room         how many runs there is room for
 *   point, below, above  OUT, length room: the run's point, and how many values are below it and up to
 *                its end
 *
 * Returns   how many were found; less than room at the end.
 * Cost      O(log) of how far a run reaches from such a place, each.
 *
 * Everything else as for dpq_lattice_encode.
 */
size_t
dpq_lattice_runs(size_t n, const dpq_column *column, double low, double high, double per_unit, double step,
                 int64_t first, int64_t points, const dpq_lattice_places *places, dpq_lattice_place *at,
                 size_t room, int64_t *point, int64_t *below, int64_t *above);

/* The runs of values at one lattice point that hold some places.
 *
 *   column       IN, length n, ascending
 *   place        IN, length asked, ascending, 0 <= place < n
 *   point, below, above  OUT, length asked: the point, and how many values are below it and up to its end
 *
 * Cost      O(log) of how far a run reaches from a place, for each run. Everything else as for
 *           dpq_lattice_encode.
 */
void
dpq_lattice_ties(size_t n, const dpq_column *column, double low, double high, double per_unit, double step,
                 int64_t first, int64_t points, size_t asked, const int64_t *place, int64_t *point,
                 int64_t *below, int64_t *above);

/* The value of each of n lattice points, given by their number: the only way from the lattice to an
 * output, a function of the point alone. |first + point| <= 2^53: exact before the division. */
void
dpq_lattice_decode(size_t n, const int64_t *point, double per_unit, double step, int64_t first,
                   double *value);

/* The least number that is rounded to each of n points or above, -INFINITY for points <= 0, INFINITY past the
 * last point. Everything as for dpq_lattice_encode, by bisection. */
void
dpq_lattice_least(size_t n, const int64_t *point, double low, double high, double per_unit, double step,
                  int64_t first, int64_t points, double *value);

/* Whether value[0] <= value[1] <= ...; false if a NaN is among n >= 2 values. O(n). */
int
dpq_lattice_is_sorted(size_t n, const double *value);

/* Whether a NaN is among n values. O(n). */
int
dpq_lattice_has_missing(size_t n, const double *value);

#endif
