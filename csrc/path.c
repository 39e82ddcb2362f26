#include "path.h"

#include <math.h>

#include "distance.h"
#include "race.h"
#include "ranks.h"
#include "uniform.h"
#include "vector.h"

#define FLOOR DPQ_PATH_FLOOR
#define LOG_FLOOR (-880.0 * DPQ_LN2)
#define MOST 0x1p800     /* a total up to here is far from overflow */
#define REST 0x1p-60     /* what has this share of the total, or less, is looked at only when it is drawn */
#define ROUNDING 0x1p-20 /* what a bound may be off by: far more than it is */

/* From which ranks the step to interval t at level l + 1 costs nothing, or to 0 after the last level. */
static dpq_free_range
free_range_of(const dpq_scan_problem *p, size_t l, size_t t)
{
    dpq_mixed target = {p->whole[l], p->part[l]};

    if (l + 1 == p->levels) {
        return (dpq_free_range){target, target};
    }
    return dpq_free_range_of(target, (dpq_mixed){p->whole[l + 1], p->part[l + 1]}, p->rank[t]);
}

/* The entry of row j at interval t: of A or of H, and exponents of their blocks. */
static dpq_wide
entry(const dpq_scan_problem *p, const dpq_path_rows *rows, size_t j, size_t t, const double *entries,
      const int64_t *exponents)
{
    int64_t exponent = rows->exponent ? rows->exponent[j]
                                      : exponents[dpq_scan_block(p, &rows->blocks, j, t)];

    return dpq_wide_of(entries[p->start[j] + (t - p->lo[j])], exponent);
}

/* x 2^-top, at least FLOOR. */
static double
floored(dpq_wide x, int64_t top)
{
    int64_t exponent = x.exponent - top;

    if (x.mantissa == 0.0 || exponent < -1000) {
        return FLOOR;
    }
    return fmax(x.mantissa * dpq_wide_power(-exponent), FLOOR);
}

/* weight[i] = h[i] exp(-rate |rank[i] - from|) part for n entries, at least FLOOR. */
DPQ_VECTORIZED static void
fading_weights(size_t n, const dpq_decay *decay, const double *h, const int64_t *rank,
               int64_t from, double part, double *restrict weight)
{
    const double *table = decay->table;
    int64_t sign = n > 0 && rank[0] < from ? -1 : 1; /* all on one side */

    if (n == 0) {
        return;
    }
    if (sign * (rank[0] - from) < decay->size && sign * (rank[n - 1] - from) < decay->size) {
        for (size_t i = 0; i < n; i++) {
            weight[i] = h[i] * (table[sign * (rank[i] - from)] * part);
        }
    }
    else {
        for (size_t i = 0; i < n; i++) {
            weight[i] = h[i] * (dpq_decay_at(decay, sign * (rank[i] - from)) * part);
        }
    }
    for (size_t i = 0; i < n; i++) {
        weight[i] = weight[i] > FLOOR ? weight[i] : FLOOR;
    }
}

/* The weights of the intervals s in [lo, hi) at level j as the one before, float64 rows, in units of
 * the row. */
static void
plain_weights(const dpq_scan_problem *p, const dpq_decay *decay, const double *h, size_t lo,
              size_t hi, dpq_free_range range, double *weight)
{
    size_t flat = dpq_ranks_first(p->rank, lo, hi,
                                  range.lower.whole + (range.lower.part > 0.0));
    size_t above = dpq_ranks_first(p->rank, flat, hi, range.upper.whole + 1);

    fading_weights(flat - lo, decay, h, p->rank + lo, range.lower.whole,
                   exp(-p->rate * range.lower.part), weight);
    for (size_t s = flat; s < above; s++) {
        weight[s - lo] = fmax(h[s - lo], FLOOR);
    }
    fading_weights(hi - above, decay, h + (above - lo), p->rank + above, range.upper.whole + 1,
                   exp(-p->rate * (1.0 - range.upper.part)), weight + (above - lo));
}

/* One such weight, whatever its size. */
static dpq_wide
wide_weight(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_path_rows *rows, size_t j,
            size_t s, dpq_free_range range)
{
    return dpq_wide_mul(entry(p, rows, j, s, rows->H, rows->blocks.H),
                        dpq_decay_of_wide(decay, dpq_distance(range, p->rank[s])));
}

/* ln of what a weight keeps at that distance, in powers of two. */
static double
lost_exponent(const dpq_scan_problem *p, dpq_mixed away)
{
    return p->rate * ((double)away.whole + away.part) / DPQ_LN2;
}

/* About the exponent of that weight, by less than 1 + 2^-50 of it; what is 0 is below all others. */
static double
exponent_of_weight(const dpq_scan_problem *p, const dpq_path_rows *rows, size_t j, size_t s,
                   dpq_free_range range)
{
    dpq_wide h = entry(p, rows, j, s, rows->H, rows->blocks.H);

    if (h.mantissa == 0.0) {
        return -INFINITY;
    }
    return (double)h.exponent - lost_exponent(p, dpq_distance(range, p->rank[s]));
}

/* What that is at the most for the intervals s, ..., end - 1 of one block; infinity where there are no
 * blocks of several. */
static double
most_of_block(const dpq_scan_problem *p, const dpq_path_rows *rows, size_t j, size_t s, size_t end,
              dpq_free_range range)
{
    dpq_mixed first, last;
    int64_t exponent;

    if (rows->exponent || rows->blocks.alone) {
        return INFINITY;
    }
    exponent = rows->blocks.H[dpq_scan_block(p, &rows->blocks, j, s)];
    if (p->rank[s] <= range.upper.whole && p->rank[end - 1] > range.lower.whole) { /* some are inside */
        return (double)exponent;
    }
    first = dpq_distance(range, p->rank[s]);
    last = dpq_distance(range, p->rank[end - 1]);
    return (double)exponent - lost_exponent(p, dpq_mixed_less(last, first) ? last : first);
}

/* Where the block of interval s of row j ends, among the first n entries. */
static size_t
end_of_block(const dpq_scan_problem *p, const dpq_path_rows *rows, size_t j, size_t i, size_t n)
{
    int several = !rows->exponent && !rows->blocks.alone;
    size_t end = several ? dpq_scan_block_end(p, &rows->blocks, j, i) : n;

    return end < n ? end : n;
}

/* Whether something may be as much as 2^top, by about its exponent. */
static int
may_be(double about, double top)
{
    return about + fabs(about) * 0x1p-48 > top;
}

/* The same weights for all rows, in units of 2^top: the largest is about 1. Nothing but the exponent
 * is computed of those that are far below FLOOR, and not that where a whole block is. */
static int64_t
wide_weights(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_path_rows *rows, size_t j,
             size_t lo, size_t hi, dpq_free_range range, double *weight)
{
    const size_t n = hi - lo;
    double most = -INFINITY, top = -DPQ_WIDE_FARTHEST;
    size_t largest = 0;

    for (size_t i = 0, end; i < n; i = end) { /* the block that the largest may be in comes first */
        double bound;

        end = end_of_block(p, rows, j, i, n);
        bound = most_of_block(p, rows, j, lo + i, lo + end, range);
        largest = bound > most ? i : largest;
        most = bound > most ? bound : most;
    }
    for (size_t i = largest, end = end_of_block(p, rows, j, i, n); i < end; i++) {
        top = fmax(top, exponent_of_weight(p, rows, j, lo + i, range));
    }
    for (size_t i = 0, end; i < n;) {
        end = end_of_block(p, rows, j, i, n);
        if (!may_be(most_of_block(p, rows, j, lo + i, lo + end, range), top - 900.0)) {
            for (; i < end; i++) {
                weight[i] = -INFINITY;
            }
        }
        for (; i < end; i++) {
            weight[i] = exponent_of_weight(p, rows, j, lo + i, range);
            top = fmax(top, weight[i]);
        }
    }
    top = floor(top);
    for (size_t i = 0; i < n; i++) {
        weight[i] = may_be(weight[i], top - 900.0)
                        ? floored(wide_weight(p, decay, rows, j, lo + i, range), (int64_t)top)
                        : FLOOR;
    }
    return (int64_t)top;
}

/* Put the sums of n weights by blocks into `sum`; the sum of all. */
static double
sum_blocks(size_t n, const double *weight, double *sum)
{
    double total = 0.0;

    for (size_t from = 0; from < n; from += DPQ_PATH_BLOCK) {
        *sum = dpq_race_sum(from + DPQ_PATH_BLOCK < n ? DPQ_PATH_BLOCK : n - from, weight + from);
        total += *sum++;
    }
    return total;
}

/* What dpq_path_settle does, in units of 2^top. */
static size_t
settle(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_path_rows *rows, size_t j,
       size_t t, int64_t top, size_t s, bitgen_t *rng, double *weight)
{
    dpq_free_range range = free_range_of(p, j, t);
    size_t lo = p->lo[j], n = (t < p->hi[j] ? t : p->hi[j]) - lo, drawn = s - lo;

    for (size_t i = 0; i < n; i++) {
        weight[i] = dpq_wide_log(wide_weight(p, decay, rows, j, lo + i, range), top);
    }
    if (dpq_uniform_log(rng) >= weight[drawn] - LOG_FLOOR) {
        (void)dpq_race_draw(n, weight, rng, &drawn);
    }
    return lo + drawn;
}

size_t
dpq_path_settle(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_path_rows *rows,
                size_t j, size_t t, size_t s, bitgen_t *rng, double *work)
{
    return settle(p, decay, rows, j, t, rows->exponent[j], s, rng, work);
}

size_t
dpq_path_draw_before(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_path_rows *rows,
                     size_t j, size_t t, bitgen_t *rng, double *work)
{
    dpq_free_range range = free_range_of(p, j, t);
    size_t lo = p->lo[j], n = (t < p->hi[j] ? t : p->hi[j]) - lo;
    size_t blocks = (n + DPQ_PATH_BLOCK - 1) / DPQ_PATH_BLOCK;
    double *weight = work + blocks, total = 0.0;
    size_t from, drawn;
    int64_t top = 0;

    if (rows->exponent) {
        plain_weights(p, decay, rows->H + p->start[j], lo, lo + n, range, weight);
        total = sum_blocks(n, weight, work);
        top = rows->exponent[j];
    }
    if (!(total > DPQ_PATH_LEAST && total < MOST)) {
        top = wide_weights(p, decay, rows, j, lo, lo + n, range, weight);
        (void)sum_blocks(n, weight, work);
    }
    from = DPQ_PATH_BLOCK * dpq_race_draw_plain(blocks, work, rng);
    drawn = from + dpq_race_draw_plain(from + DPQ_PATH_BLOCK < n ? DPQ_PATH_BLOCK : n - from,
                                       weight + from, rng);
    if (weight[drawn] <= FLOOR) {
        return settle(p, decay, rows, j, t, top, lo + drawn, rng, weight);
    }
    return lo + drawn;
}

int64_t
dpq_path_log_copies(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_path_rows *rows,
                    size_t j, size_t t, int64_t top, size_t *most, double *log_weight)
{
    dpq_wide factor = dpq_wide_of(1.0, 0);
    int64_t largest = DPQ_WIDE_LOWEST;
    size_t k = 1;

    for (size_t l = j; k == 1 || (k <= j + 1 && t < p->hi[l]); k++, l--) {
        dpq_wide weight = entry(p, rows, l, t, rows->A, rows->blocks.A);

        if (k > 1) { /* one more output: from level l to l + 1 inside interval t */
            dpq_mixed away = dpq_distance(free_range_of(p, l, t), p->rank[t]);

            factor = dpq_wide_mul(factor, dpq_wide_of(dpq_scan_places(p, t, k), 0));
            factor = dpq_wide_mul(factor, dpq_wide_of(1.0 / (double)k, 0));
            factor = dpq_wide_mul(factor, dpq_decay_of_wide(decay, away));
        }
        weight = dpq_wide_mul(weight, factor);
        largest = weight.mantissa > 0.0 && weight.exponent > largest ? weight.exponent : largest;
        log_weight[k - 1] = dpq_wide_log(weight, top);
    }
    *most = k - 1;
    return largest;
}

/* The weights of 1, 2, ... outputs, float64 rows, in units of the row, until a bound on all others,
 * `rest` and more outputs, is below REST of them: it comes last. How many weights there are; none,
 * and a total of 0, if one is 0: logarithms know it from a small one, and draw nothing for it. */
static size_t
plain_copies_weights(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_path_rows *rows,
                     size_t j, size_t t, double *weight, double *total, size_t *rest)
{
    double factor = 1.0;

    for (size_t k = 1; k <= j + 1; k++) {
        size_t l = j - (k - 1), at = p->start[l] + (t - p->lo[l]);

        if (t >= p->hi[l]) {
            return k - 1;
        }
        if (k > 1) { /* one more output: from level l to l + 1 inside interval t */
            double bound;

            factor *= ldexp(dpq_scan_places(p, t, k) / (double)k,
                            (int)(rows->exponent[l] - rows->exponent[l + 1]));
            factor *= dpq_decay_of(decay, dpq_distance(free_range_of(p, l, t), p->rank[t]));
            bound = factor * rows->H[at] * (1.0 + ROUNDING);
            if (bound < *total * REST) {
                weight[k - 1] = fmax(bound, FLOOR);
                *rest = k;
                return k;
            }
        }
        if (rows->A[at] == 0.0) { /* truly: in the first interval of all, where none is before */
            *total = 0.0;
            return 0;
        }
        weight[k - 1] = fmax(rows->A[at] * factor, FLOOR);
        *total += weight[k - 1];
    }
    return j + 1;
}

/* Draw how many outputs there are in interval t, of which the last is at level j. */
static size_t
draw_copies(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_path_rows *rows, size_t j,
            size_t t, bitgen_t *rng, double *work)
{
    size_t first = 1, last = 0, n = 0, most, drawn = 0, rest = 0;
    double total = 0.0, log_proposed;
    int64_t top;

    if (rows->exponent) {
        n = plain_copies_weights(p, decay, rows, j, t, work, &total, &rest);
    }
    if (total > DPQ_PATH_LEAST && total < MOST) {
        first = last = 1 + dpq_race_draw_plain(n, work, rng);
        if (first != rest && work[first - 1] > FLOOR) {
            return first;
        }
        log_proposed = log(work[first - 1]);
        (void)dpq_path_log_copies(p, decay, rows, j, t, rows->exponent[j], &most, work);
        last = first == rest ? most : first;
        if (dpq_uniform_log(rng) >=
            dpq_race_log_sum(last - first + 1, work + (first - 1)) - log_proposed) {
            first = 1;
            last = most;
        }
    }
    else {
        top = dpq_path_log_copies(p, decay, rows, j, t, 0, &last, work);
        (void)dpq_path_log_copies(p, decay, rows, j, t, top, &last, work);
    }
    (void)dpq_race_draw(last - first + 1, work + (first - 1), rng, &drawn);
    return first + drawn;
}

size_t
dpq_path_go_on(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_path_rows *rows,
               size_t first, size_t left, bitgen_t *rng, double *work, size_t *path)
{
    size_t j = left, t = j < p->levels ? path[j] : p->intervals;

    while (j > first) {
        size_t copies = 1;

        t = dpq_path_draw_before(p, decay, rows, j - 1, t, rng, work);
        if (j > 1 && t < p->hi[j - 2]) {
            copies = draw_copies(p, decay, rows, j - 1, t, rng, work);
        }
        for (; copies > 0; copies--) {
            path[--j] = t;
        }
    }
    return j;
}

void
dpq_path_draw(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_path_rows *rows,
              double log_escape, size_t size, bitgen_t *rng, double *work, size_t *path,
              size_t *escaped)
{
    size_t m = p->levels;

    *escaped = 0;
    for (; size > 0; size--, path += m) {
        if (log_escape > -INFINITY && dpq_uniform_log(rng) < log_escape) {
            for (size_t j = 0; j < m; j++) {
                path[j] = p->intervals;
            }
            *escaped += 1;
            continue;
        }
        (void)dpq_path_go_on(p, decay, rows, 0, m, rng, work, path);
    }
}

/* How many of path[j], path[j + 1], ... are the same interval. */
static size_t
outputs_inside(size_t m, const size_t *path, size_t j)
{
    size_t k = 1;

    while (j + k < m && path[j + k] == path[j]) {
        k++;
    }
    return k;
}

void
dpq_path_points_lattice(size_t m, size_t size, const size_t *path, const int64_t *left,
                        const double *width, bitgen_t *rng, int64_t *point)
{
    for (; size > 0; size--, path += m, point += m) {
        for (size_t j = 0, k; j < m; j += k) {
            size_t t = path[j];

            k = outputs_inside(m, path, j);
            dpq_uniform_multiset(k, (uint64_t)width[t], rng, point + j);
            for (size_t i = 0; i < k; i++) {
                point[j + i] += left[t] + 1;
            }
        }
    }
}

void
dpq_path_points_continuous(size_t m, size_t size, const size_t *path, const double *left,
                           const double *width, bitgen_t *rng, double *point)
{
    for (; size > 0; size--, path += m, point += m) {
        for (size_t j = 0, k; j < m; j += k) {
            size_t t = path[j];

            k = outputs_inside(m, path, j);
            for (size_t i = 0; i < k; i++) { /* insertion sort: k is small */
                double value = left[t] + width[t] * dpq_uniform_unit(rng);
                size_t at = j + i;

                for (; at > j && point[at - 1] > value; at--) {
                    point[at] = point[at - 1];
                }
                point[at] = value;
            }
        }
    }
}
