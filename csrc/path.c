#include "path.h"

#include <math.h>

#include "race.h"
#include "ranks.h"
#include "uniform.h"

#define SMALLEST 0x1p-900 /* weights below this are taken again as logarithms */

/* The number whole + part, part in [0, 1]. */
typedef struct {
    int64_t whole;
    double part;
} mixed;

/* The stretch of ranks from which the next step costs nothing; see scan.h. */
typedef struct {
    mixed lower, upper;
} free_range;

static int
mixed_less(mixed a, mixed b)
{
    return a.whole < b.whole || (a.whole == b.whole && a.part < b.part);
}

/* [min(0, v), max(0, v)] + Q_l as ranks, where v belongs to interval t at level l + 1; v = 0 after
 * the last level. */
static free_range
free_range_of(const dpq_scan_problem *p, size_t l, size_t t)
{
    mixed target = {p->whole[l], p->part[l]}, other;

    if (l + 1 == p->levels) {
        return (free_range){target, target};
    }
    /* v + Q_l = r_t - (Q_{l+1} - Q_l) */
    other.whole = p->rank[t] - (p->whole[l + 1] - p->whole[l]);
    other.part = p->part[l] - p->part[l + 1];
    if (other.part < 0.0) {
        other.whole -= 1;
        other.part += 1.0;
    }
    return mixed_less(other, target) ? (free_range){other, target} : (free_range){target, other};
}

/* How far rank r lies outside the range. */
static mixed
distance(free_range range, int64_t r)
{
    mixed none = {0, 0.0};

    if (mixed_less((mixed){r, 0.0}, range.lower)) {
        return (mixed){range.lower.whole - r, range.lower.part};
    }
    if (mixed_less(range.upper, (mixed){r, 0.0})) {
        return (mixed){r - range.upper.whole - 1, 1.0 - range.upper.part};
    }
    return none;
}

/* What a weight keeps for that. */
static double
decay_of(const dpq_scan_problem *p, mixed away)
{
    return exp(-p->rate * ((double)away.whole + away.part));
}

/* The same for all distances, and however much is lost. */
static dpq_wide
wide_decay_of(const dpq_scan_problem *p, mixed away)
{
    return dpq_wide_mul(dpq_wide_exp(p->rate, (double)away.whole),
                        dpq_wide_exp(p->rate, away.part));
}

/* An entry of row j, at interval t. */
static dpq_wide
entry(const dpq_scan_problem *p, size_t j, size_t t, const int64_t *exponent, const double *narrow,
      const dpq_wide *wide)
{
    size_t at = p->start[j] + (t - p->lo[j]);

    return narrow ? dpq_wide_of(narrow[at], exponent[j]) : wide[at];
}

/* ln of the weights of the intervals s in [lo, hi) at level j as the one before, up to 2^top. */
static void
log_weights(const dpq_scan_problem *p, const dpq_path_rows *rows, size_t j, size_t lo, size_t hi,
            free_range range, int64_t top, double *log_weight)
{
    for (size_t s = lo; s < hi; s++) {
        dpq_wide h = entry(p, j, s, rows->exponent, rows->H, rows->wide_H);
        dpq_wide decay = wide_decay_of(p, distance(range, p->rank[s]));

        log_weight[s - lo] = dpq_wide_log(dpq_wide_mul(h, decay), top);
    }
}

/* About the exponent of the largest of these weights: logarithms are counted from there, or all
 * their digits would stand before the point where much is lost. */
static int64_t
top_exponent(const dpq_scan_problem *p, const dpq_path_rows *rows, size_t j, size_t lo, size_t hi,
             free_range range)
{
    double top = -DPQ_WIDE_FARTHEST;

    for (size_t s = lo; s < hi; s++) {
        dpq_wide h = entry(p, j, s, rows->exponent, rows->H, rows->wide_H);
        mixed away = distance(range, p->rank[s]);
        double about = (double)h.exponent -
                       p->rate * ((double)away.whole + away.part) / DPQ_LN2;

        top = h.mantissa > 0.0 && about > top ? about : top;
    }
    return (int64_t)top;
}

/* The weights of s in [lo, hi), float64 rows, [flat, above) costing nothing. */
static void
plain_weights(const dpq_scan_problem *p, const dpq_decay *decay, const double *h, size_t lo,
              size_t hi, size_t flat, size_t above, free_range range, double *weight)
{
    double to_lower = exp(-p->rate * range.lower.part);
    double to_upper = exp(-p->rate * (1.0 - range.upper.part));

    for (size_t s = lo; s < flat; s++) {
        weight[s - lo] = h[s - lo] * dpq_decay_at(decay, range.lower.whole - p->rank[s]) * to_lower;
    }
    for (size_t s = flat; s < above; s++) {
        weight[s - lo] = h[s - lo];
    }
    for (size_t s = above; s < hi; s++) {
        weight[s - lo] =
            h[s - lo] * dpq_decay_at(decay, p->rank[s] - range.upper.whole - 1) * to_upper;
    }
}

/* Draw the interval at level j that comes before interval t at level j + 1 (any, after the last). */
static dpq_status
draw_before(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_path_rows *rows, size_t j,
            size_t t, bitgen_t *rng, double *work, size_t *drawn)
{
    free_range range = free_range_of(p, j, t);
    size_t lo = p->lo[j], hi = t < p->hi[j] ? t : p->hi[j];
    size_t blocks = (hi - lo + DPQ_PATH_BLOCK - 1) / DPQ_PATH_BLOCK, winner = 0;
    double *weight = work + blocks, *inside = weight;
    int plain = rows->H != NULL; /* whether all weigh enough to do without logarithms */
    dpq_status status = DPQ_OK;

    if (plain) {
        size_t flat = dpq_ranks_first(p->rank, lo, hi,
                                      range.lower.whole + (range.lower.part > 0.0));
        size_t above = dpq_ranks_first(p->rank, flat, hi, range.upper.whole + 1);

        plain_weights(p, decay, rows->H + p->start[j], lo, hi, flat, above, range, weight);
    }
    for (size_t b = 0; plain && b < blocks; b++) {
        size_t from = b * DPQ_PATH_BLOCK;

        work[b] = dpq_race_sum(from + DPQ_PATH_BLOCK < hi - lo ? DPQ_PATH_BLOCK : hi - lo - from,
                               weight + from);
        plain = work[b] > SMALLEST;
    }
    if (plain) {
        winner = dpq_race_draw_plain(blocks, work, rng);
        inside = weight + winner * DPQ_PATH_BLOCK;
    }
    else {
        int64_t top = top_exponent(p, rows, j, lo, hi, range);

        for (size_t b = 0; b < blocks; b++) {
            size_t from = lo + b * DPQ_PATH_BLOCK;
            size_t to = from + DPQ_PATH_BLOCK < hi ? from + DPQ_PATH_BLOCK : hi;

            log_weights(p, rows, j, from, to, range, top, inside);
            work[b] = dpq_race_log_sum(to - from, inside);
        }
        status = dpq_race_draw(blocks, work, rng, &winner);
        if (status != DPQ_OK) {
            return status;
        }
    }
    lo += winner * DPQ_PATH_BLOCK;
    hi = lo + DPQ_PATH_BLOCK < hi ? lo + DPQ_PATH_BLOCK : hi;
    for (size_t s = 0; plain && s < hi - lo; s++) {
        plain = inside[s] > SMALLEST;
    }
    if (plain) {
        *drawn = dpq_race_draw_plain(hi - lo, inside, rng);
    }
    else {
        log_weights(p, rows, j, lo, hi, range, top_exponent(p, rows, j, lo, hi, range), inside);
        status = dpq_race_draw(hi - lo, inside, rng, drawn);
    }
    *drawn += lo;
    return status;
}

/* ln of the weights of 1, ..., most outputs in interval t, the last at level j, up to 2^top; the
 * largest exponent of theirs. */
static int64_t
log_weights_of_copies(const dpq_scan_problem *p, const dpq_path_rows *rows, size_t j, size_t t,
                      size_t most, int64_t top, double *log_weight)
{
    dpq_wide factor = dpq_wide_of(1.0, 0);
    int64_t largest = DPQ_WIDE_LOWEST;

    for (size_t k = 0; k < most; k++) {
        size_t l = j - k;
        dpq_wide weight = entry(p, l, t, rows->exponent, rows->A, rows->wide_A);

        if (k > 0) { /* one more output: from level l to l + 1 inside interval t */
            double places = p->lattice ? p->width[t] + (double)k : p->width[t];
            mixed away = distance(free_range_of(p, l, t), p->rank[t]);

            factor = dpq_wide_mul(factor, dpq_wide_of(places, 0));
            factor = dpq_wide_mul(factor, dpq_wide_of(1.0 / (double)(k + 1), 0));
            factor = dpq_wide_mul(factor, wide_decay_of(p, away));
        }
        weight = dpq_wide_mul(weight, factor);
        largest = weight.mantissa > 0.0 && weight.exponent > largest ? weight.exponent : largest;
        log_weight[k] = dpq_wide_log(weight, top);
    }
    return largest;
}

/* Draw k, the number of outputs in interval t of which the last is at level j. */
static dpq_status
draw_copies(const dpq_scan_problem *p, const dpq_path_rows *rows, size_t j, size_t t,
            bitgen_t *rng, double *work, size_t *copies)
{
    size_t most = 1;
    double w = p->width[t], factor = 1.0;
    int plain = rows->A != NULL; /* as for draw_before */
    int64_t top;
    dpq_status status = DPQ_OK;

    while (most <= j && t < p->hi[j - most]) {
        most++;
    }
    for (size_t k = 0; plain && k < most; k++) {
        size_t l = j - k;

        if (k > 0) { /* one more output: from level l to l + 1 inside interval t */
            factor *= (p->lattice ? w + (double)k : w) / (double)(k + 1);
            factor *= decay_of(p, distance(free_range_of(p, l, t), p->rank[t]));
            factor = ldexp(factor, (int)(rows->exponent[l] - rows->exponent[l + 1]));
        }
        work[k] = rows->A[p->start[l] + (t - p->lo[l])] * factor;
        plain = work[k] > SMALLEST && work[k] < 1.0 / SMALLEST;
    }
    if (plain) {
        *copies = 1 + dpq_race_draw_plain(most, work, rng);
        return DPQ_OK;
    }
    top = log_weights_of_copies(p, rows, j, t, most, 0, work);
    (void)log_weights_of_copies(p, rows, j, t, most, top, work);
    status = dpq_race_draw(most, work, rng, copies);
    *copies += 1;
    return status;
}

dpq_status
dpq_path_draw(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_path_rows *rows,
              double log_escape, size_t size, bitgen_t *rng, double *work, size_t *path,
              size_t *escaped)
{
    size_t m = p->levels;

    *escaped = 0;
    for (; size > 0; size--, path += m) {
        size_t j = m, t = p->intervals;

        if (log_escape > -INFINITY && dpq_uniform_log(rng) < log_escape) {
            for (j = 0; j < m; j++) {
                path[j] = p->intervals;
            }
            *escaped += 1;
            continue;
        }
        while (j > 0) {
            size_t copies = 1;
            dpq_status status = draw_before(p, decay, rows, j - 1, t, rng, work, &t);

            if (status == DPQ_OK && j > 1 && t < p->hi[j - 2]) {
                status = draw_copies(p, rows, j - 1, t, rng, work, &copies);
            }
            if (status != DPQ_OK) {
                return status;
            }
            for (; copies > 0; copies--) {
                path[--j] = t;
            }
        }
    }
    return DPQ_OK;
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
