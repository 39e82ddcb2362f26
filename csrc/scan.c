#include "scan.h"

#include <stdlib.h>
#include <string.h>

#include "extremes.h"
#include "large.h"
#include "ranks.h"
#include "step.h"
#include "vector.h"

#define REST_BITS 53 /* of DPQ_SCAN_REST */
#define SMALLEST_PLACES 0x1p-900 /* widths whose products with a share and a decay are exact but for */
#define LARGEST_PLACES 0x1p900   /* rounding */
#define TOGETHER 16     /* intervals whose sums over k are taken together, */
#define OFTEN 4         /* with a look at what is to come after so many factors */
#define TILE 1024       /* entries of a row of consecutive ranks that are worked on at once */

void
dpq_scan_targets(size_t m, const double *q, int64_t n, int64_t *whole, double *part)
{
    for (size_t j = 0; j < m; j++) {
        double product = q[j] * (double)n;
        double rounding = fma(q[j], (double)n, -product);
        double low = floor(product);
        double rest = (product - low) + rounding;

        if (rest < 0.0) { /* the product was rounded up to an integer */
            low -= 1.0;
            rest += 1.0;
        }
        if (rest >= 1.0) {
            low += 1.0;
            rest -= 1.0;
        }
        whole[j] = (int64_t)low;
        part[j] = rest;
    }
}

void
dpq_scan_prepare(const dpq_scan_problem *p, dpq_decay *decay, dpq_scan_level *level)
{
    int64_t before = 0, spread = p->rank[p->intervals - 1] - p->rank[0];
    double before_part = 0.0;

    dpq_decay_fill(decay, p->rate, spread);
    dpq_large_fill_far(decay, spread);
    for (size_t j = 0; j < p->levels; j++) {
        level[j].reach = p->whole[j] - before;
        level[j].slack = before_part - p->part[j];
        if (level[j].slack < 0.0) {
            level[j].reach += 1;
            level[j].slack += 1.0;
        }
        level[j].stay = exp(-p->rate * ((double)level[j].reach - level[j].slack));
        level[j].down = exp(-p->rate * p->part[j]);
        level[j].up = exp(-p->rate * (1.0 - p->part[j]));
        level[j].past = exp(-p->rate * level[j].slack);
        level[j].ahead = exp(-p->rate * (1.0 - level[j].slack));
        level[j].share = 1.0 / (double)(j + 1);
        level[j].gain = 1.0;
        before = p->whole[j];
        before_part = p->part[j];
    }
}

/* From row j - 1 to row j, both within the same intervals. */
static dpq_scan_step
step_to(const dpq_scan_problem *p, const dpq_scan_level *level, size_t j)
{
    return (dpq_scan_step){
        .rank_before = p->rank + p->lo[j - 1],
        .rank = p->rank + p->lo[j],
        .size = p->hi[j] - p->lo[j],
        .shift = p->lo[j] - p->lo[j - 1],
        .before = p->hi[j - 1] - p->lo[j - 1],
        .whole = p->whole[j - 1],
        .whole_now = p->whole[j],
        .part = p->part[j - 1],
        .part_now = p->part[j],
        .level = level + j,
    };
}

#define DECAY_PART(y) DECAY_OF(decay->rate, (y))
#define STORE(t, past, window) (sums[t] = ADD((past), (window)))

/* float64 rows */

#define SUMS NUMBER *

#define NUMBER double
#define NAME(f) f##_float
#define ADD(a, b) ((a) + (b))
#define MUL(a, b) ((a) * (b))
#define ZERO 0.0
#define DECAY(k) dpq_decay_at(decay, (k))
#define DECAY_OF(rate, y) exp(-(rate) * (y))
#include "scan_body.h"
#undef NUMBER
#undef NAME
#undef ADD
#undef MUL
#undef ZERO
#undef DECAY
#undef DECAY_OF

/* Rows of consecutive ranks: the sums of scan_body.h, but the past of t ends `lag` intervals before it
 * for every t, so that vectors can work on many windows at once. With zeros in front of a row no t is
 * special: its window starts `ahead` = lag - 1 entries before it, its past ends there. Rows are worked
 * on in tiles that stay in the nearest cache. */

/* Whether n ranks follow each other without a gap. */
DPQ_VECTORIZED static int
consecutive(size_t n, const int64_t *rank)
{
    int64_t off = 0;

    for (size_t i = 0; i < n; i++) {
        off |= rank[i] - rank[0] - (int64_t)i;
    }
    return off == 0;
}

/* sum_{k < length} x[i + k] exp(-rate k) for i < n, of n + length - 1 entries: windows are doubled, or
 * doubled and one added, along the binary digits of `length`. `fading` is NULL for a rate of 0. The
 * result is in one of the two buffers, or it is x. */
static inline const double *
windows(size_t n, size_t length, const dpq_decay *fading, const double *x, double *sums,
        double *spare)
{
    double one = fading ? dpq_decay_at(fading, 1) : 1.0;
    const double *last = x;
    int digits = 0;

    if (length == 0) {
        memset(sums, 0, n * sizeof *sums);
        return sums;
    }
    while (length >> digits > 1) {
        digits++;
    }
    while (digits-- > 0) {
        size_t longer = length >> digits, half = longer / 2, room = n + length - longer;
        double far = fading ? dpq_decay_at(fading, (int64_t)half) : 1.0;
        double *swap = sums;

        if (longer % 2 == 0) {
            for (size_t i = 0; i < room; i++) {
                sums[i] = last[i] + last[i + half] * far;
            }
        }
        else {
            for (size_t i = 0; i < room; i++) {
                sums[i] = x[i] + (last[i + 1] + last[i + 1 + half] * far) * one;
            }
        }
        last = sums;
        sums = spare;
        spare = swap;
    }
    return last;
}

/* sums[i] = sum_{k <= i} x[k] fade^(i - k) for n entries, given sums[-1], four at a time: they add up
 * among themselves before they wait for what is before them. */
static inline void
running(size_t n, const double *x, double fade, double *sums)
{
    double fade2 = fade * fade, fade3 = fade2 * fade, fade4 = fade2 * fade2, before = sums[-1];
    size_t i;

    for (i = 0; i + 4 <= n; i += 4) {
        double two = x[i] * fade + x[i + 1], three = two * fade + x[i + 2];
        double four = three * fade + x[i + 3];

        sums[i] = before * fade + x[i];
        sums[i + 1] = before * fade2 + two;
        sums[i + 2] = before * fade3 + three;
        before = sums[i + 3] = before * fade4 + four;
    }
    for (; i < n; i++) {
        before = sums[i] = before * fade + x[i];
    }
}

/* A row of consecutive ranks, seen from one side of the next target. */
typedef struct {
    const double *h;      /* entry s counts h[s], */
    size_t first, last;   /* times fade[0], fade[1], ... part for first <= s < last, */
    const double *fade;   /* or, if `backwards`, ..., fade[1], fade[0]; */
    int backwards;
    double part;
    size_t size;          /* and nothing for s >= size */
} one_side;

/* x[i] = what entry s + i counts, for i < n and s < 0, too. */
static inline void
see(const one_side *row, int64_t s, size_t n, double *x)
{
    int64_t end = s + (int64_t)n, i = s;
    int64_t first = (int64_t)row->first, last = (int64_t)row->last, size = (int64_t)row->size;

    for (; i < end && i < 0; i++) {
        x[i - s] = 0.0;
    }
    for (; i < end && i < first; i++) {
        x[i - s] = row->h[i];
    }
    if (row->backwards) {
        for (; i < end && i < last; i++) {
            x[i - s] = row->h[i] * row->fade[last - 1 - i] * row->part;
        }
    }
    else {
        for (; i < end && i < last; i++) {
            x[i - s] = row->h[i] * row->fade[i - first] * row->part;
        }
    }
    for (; i < end && i < size; i++) {
        x[i - s] = row->h[i];
    }
    for (; i < end; i++) {
        x[i - s] = 0.0;
    }
}

/* sums[i - from] = (sum_{s < i - ahead} x[s] fade^(i - ahead - 1 - s)) past
 *                + (sum_{i - ahead <= s < i} x[s] exp(-rate (s - i + ahead))) window
 * for from <= i < to, x being what the row counts; `fading` is NULL for a rate of 0. */
DPQ_VECTORIZED static void
sums_of_side(const one_side *row, size_t from, size_t to, size_t ahead, double fade, double past,
             const dpq_decay *fading, double window, double *restrict sums)
{
    double x[TILE], before[TILE + 1], one[TILE], other[TILE];
    size_t n;

    before[0] = 0.0;
    for (size_t i = 0; i < to; i += n) {
        size_t stop = i < from ? from : to;

        n = stop - i < TILE - ahead ? stop - i : TILE - ahead;
        see(row, (int64_t)i - (int64_t)ahead, n + (i < from ? 0 : ahead), x);
        running(n, x, fade, before + 1);
        if (i >= from) {
            const double *inside = windows(n, ahead, fading, x, one, other);

            for (size_t k = 0; k < n; k++) {
                sums[i - from + k] = before[k] * past + inside[k] * window;
            }
        }
        before[0] = before[n];
    }
}

static void
sums_consecutive(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
                 size_t j, const double *H, double *restrict sums)
{
    size_t first = p->lo[j - 1], begin = p->lo[j] - first, end = p->hi[j] - first;
    size_t last = p->hi[j - 1] - first < end ? p->hi[j - 1] - first : end;
    size_t ahead = (size_t)level[j].reach - 1;
    const int64_t *rank = p->rank + first;
    const int64_t below = p->whole[j - 1], above = below + (p->part[j - 1] > 0.0);
    size_t turn = dpq_ranks_first(rank, begin, end, p->whole[j] + (p->part[j] > 0.0));
    size_t zero = dpq_ranks_first(rank, 0, last, above); /* u >= 0 from here on */
    one_side left = {.h = H + p->start[j - 1], .first = zero, .last = last, .size = last};
    one_side right = {.h = left.h, .last = zero, .backwards = 1, .size = last};

    if (zero < last) {
        left.fade = decay->table + (rank[zero] - above);
        left.part = p->part[j - 1] > 0.0 ? level[j - 1].up : 1.0;
    }
    if (zero > 0) {
        right.fade = decay->table + (below - rank[zero - 1]);
        right.part = level[j - 1].down;
    }
    /* v < 0: the past fades, the window weighs exp(-2c max(u, 0)) */
    sums_of_side(&left, begin, turn, ahead, dpq_decay_at(decay, 1), level[j].past, NULL, 1.0, sums);
    /* v >= 0: the past weighs exp(-2c max(-u, 0)), the window fades */
    sums_of_side(&right, turn, end, ahead, 1.0, 1.0, decay, level[j].ahead, sums + (turn - begin));
}

/* Whether sums_consecutive will do for level j. */
static int
is_consecutive(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
               size_t j)
{
    size_t first = p->lo[j - 1];
    int64_t target = p->whole[j - 1];

    return level[j].reach >= 1 && level[j].reach <= TILE / 2 &&
           target - p->rank[first] < decay->size &&
           p->rank[p->hi[j] - 1] - target < decay->size &&
           consecutive(p->hi[j] - first, p->rank + first);
}

void
dpq_scan_sums(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
              size_t j, const double *H, double *sums, double *work)
{
    if (j == 0) {
        for (size_t t = p->lo[0]; t < p->hi[0]; t++) {
            sums[t - p->lo[0]] = 1.0;
        }
    }
    else if (is_consecutive(p, decay, level, j)) {
        sums_consecutive(p, decay, level, j, H, sums);
    }
    else {
        const double *h = H + p->start[j - 1];
        dpq_scan_step step = step_to(p, level, j);

        sums_float(&step, decay, h, h, sums, work);
    }
}

/* exp(-2c dist(u, [min(0, v), max(0, v)])) from level l to l + 1 at one rank, where u >= v. */
static inline double
stay_at(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_scan_level *level, size_t l,
        int64_t rank)
{
    if (rank <= p->whole[l]) { /* u <= 0: 0 */
        return 1.0;
    }
    if (rank < p->whole[l + 1] + (p->part[l + 1] > 0.0)) { /* v < 0 < u: u */
        return dpq_decay_at(decay, rank - p->whole[l] - 1) * level[l].up;
    }
    return level[l + 1].stay; /* v >= 0: u - v = n_{l+1} */
}

/* h_j(t), given a_j, for an interval that is in row j - 1, too: a_j(t) + sum_{k >= 2} ... It stops where
 * a bound on what is to come is small. */
static void
copies_alone(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
             size_t j, size_t t, const double *A, double *H)
{
    size_t last = p->start[j] + (t - p->lo[j]);
    double sum = A[last], factor = 1.0;

    for (size_t l = j, k = 2; l-- > 0 && t < p->hi[l]; k++) {
        size_t at = p->start[l] + (t - p->lo[l]);

        factor *= stay_at(p, decay, level, l, p->rank[t]);
        factor *= dpq_scan_places(p, t, k) * (level[k - 1].share * level[l + 1].gain);
        sum += factor * A[at];
        if (factor * H[at] < sum * DPQ_SCAN_REST) {
            break;
        }
    }
    H[last] = sum;
}

/* The same for many intervals at once, by vectors of the machine's own length. */

#define BODY "copies_body.h"
#include "versions.h"
#undef BODY

/* The same for the first intervals of row j, `shared` of them. */
static void
copies_shared(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
              size_t j, size_t shared, const double *A, double *H)
{
    if (shared < TOGETHER) {
        for (size_t i = 0; i < shared; i++) {
            copies_alone(p, decay, level, j, p->lo[j] + i, A, H);
        }
        return;
    }
#ifdef DPQ_CLONES
    if (__builtin_cpu_supports("x86-64-v4")) {
        copies_v4(p, decay, level, j, shared, A, H);
        return;
    }
    if (__builtin_cpu_supports("x86-64-v3")) {
        copies_v3(p, decay, level, j, shared, A, H);
        return;
    }
#endif
    copies_plain(p, decay, level, j, shared, A, H);
}

/* a[i] *= width[i] * gain for n entries. */
DPQ_VECTORIZED static void
scale(size_t n, double *a, const double *width, double gain)
{
    for (size_t i = 0; i < n; i++) {
        a[i] *= width[i] * gain;
    }
}

/* How many intervals of row j are in row j - 1, too: its first ones. */
static size_t
shared_with_last(const dpq_scan_problem *p, size_t j)
{
    size_t lo = p->lo[j], end = p->hi[j - 1] < p->hi[j] ? p->hi[j - 1] : p->hi[j];

    return end > lo ? end - lo : 0;
}

dpq_status
dpq_scan_close(const dpq_scan_problem *p, const dpq_decay *decay, dpq_scan_level *level, size_t j,
               double *A, double *H, int64_t *exponent)
{
    size_t lo = p->lo[j], n = p->hi[j] - lo, shared = 0, unreached = 0;
    double *a = A + p->start[j], *h = H + p->start[j];
    double smallest;
    int scaling;

    /* Scale so that the largest factor is about one: widths, and what the last row ended with. */
    (void)frexp(dpq_largest(n, p->width + lo), &scaling);
    exponent[j] = 0;
    if (j > 0) {
        int last;

        (void)frexp(level[j - 1].largest, &last);
        if (last < DPQ_SCAN_SMALLEST_ROW) {
            return DPQ_ERR_RANGE;
        }
        scaling += last;
        exponent[j] = exponent[j - 1];
        shared = shared_with_last(p, j);
        /* a_j(t) is truly zero only at the first interval, where no other comes before it */
        unreached = lo == p->lo[j - 1];
    }
    if (scaling > DPQ_SCAN_MOST_SCALING || scaling < -DPQ_SCAN_MOST_SCALING) {
        return DPQ_ERR_RANGE;
    }
    level[j].gain = ldexp(1.0, -scaling);
    exponent[j] += scaling;
    scale(n, a, p->width + lo, level[j].gain);
    smallest = dpq_smallest(n - unreached, a + unreached);
    memcpy(h + shared, a + shared, (n - shared) * sizeof *h);
    copies_shared(p, decay, level, j, shared, A, H);
    level[j].largest = dpq_largest(n, h);
    return smallest < DPQ_SCAN_SMALLEST || h[0] < DPQ_SCAN_SMALLEST ? DPQ_ERR_RANGE : DPQ_OK;
}

/* sum_i x[i] exp(-rate |rank[i] - from|) for n entries; four sums, so that none waits for the last. */
static double
faded(size_t n, const double *x, const int64_t *rank, int64_t from, const dpq_decay *decay)
{
    double sums[4] = {0.0, 0.0, 0.0, 0.0};
    size_t i = 0;

    for (; i + 4 <= n; i += 4) {
        for (size_t k = 0; k < 4; k++) {
            sums[k] += x[i + k] * dpq_decay_at(decay, llabs(rank[i + k] - from));
        }
    }
    for (; i < n; i++) {
        sums[0] += x[i] * dpq_decay_at(decay, llabs(rank[i] - from));
    }
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

dpq_status
dpq_scan_total(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
               const double *H, const int64_t *exponent, double *log_total)
{
    size_t m = p->levels - 1, lo = p->lo[m], hi = p->hi[m];
    size_t turn = dpq_ranks_first(p->rank, lo, hi, p->whole[m] + 1);
    const double *h = H + p->start[m];
    double sum = faded(turn - lo, h, p->rank + lo, p->whole[m], decay) * level[m].down +
                 faded(hi - turn, h + (turn - lo), p->rank + turn, p->whole[m] + 1, decay) *
                     level[m].up;

    if (sum < DPQ_SCAN_SMALLEST) {
        return DPQ_ERR_RANGE;
    }
    *log_total = log(sum) + (double)exponent[m] * DPQ_LN2;
    return DPQ_OK;
}

dpq_status
dpq_scan_forward(const dpq_scan_problem *p, dpq_decay *decay, dpq_scan_level *level, size_t first,
                 double *A, double *H, int64_t *exponent, double *work, double *log_total)
{
    if (first == 0) {
        dpq_scan_prepare(p, decay, level);
    }
    for (size_t j = first; j < p->levels; j++) {
        dpq_status status;

        dpq_scan_sums(p, decay, level, j, H, A + p->start[j], work);
        status = dpq_scan_close(p, decay, level, j, A, H, exponent);
        if (status != DPQ_OK) {
            return status;
        }
    }
    return log_total ? dpq_scan_total(p, decay, level, H, exponent, log_total) : DPQ_OK;
}

/* wide rows */

/* exp(-rate * (ranks - part)), ranks - part >= 0, 0 <= part <= 1: with the ranks apart, nothing is
 * lost to rounding. `rest` is exp(-rate * (1 - part)) in float64. */
static dpq_wide
wide_stay(const dpq_decay *decay, int64_t ranks, double part, double rest)
{
    if (ranks <= 0) {
        return dpq_wide_of(1.0, 0);
    }
    return dpq_wide_mul(dpq_decay_wide(decay, ranks - 1),
                        rest > DPQ_DECAY_LONG ? dpq_wide_of(rest, 0)
                                              : dpq_wide_exp(decay->rate, 1.0 - part));
}

/* Sums are of numbers whose exponents are mostly equal: they take a third of the time. */

/* A product, no lower than wide ones are. */
static inline dpq_large
held_product(dpq_large a, dpq_large b)
{
    const int64_t lowest = DPQ_WIDE_LOWEST / DPQ_LARGE_BITS;
    dpq_large x = dpq_large_mul(a, b);

    x.exponent = x.exponent > lowest ? x.exponent : lowest;
    return x;
}

#define NUMBER dpq_large
#define NAME(f) f##_large
#define ADD(a, b) dpq_large_add((a), (b))
#define MUL(a, b) held_product((a), (b))
#define ZERO DPQ_LARGE_ZERO
#define DECAY(k) dpq_large_decay(decay, (k))
#define DECAY_OF(rate, y) dpq_large_exp((rate), (y))
#undef SUMS
#define SUMS dpq_wide *
#undef STORE
#define STORE(t, past, window) (sums[t] = dpq_large_to_wide(ADD((past), (window))))
#include "scan_body.h"

/* h_j(t) = sum_k ..., given a_j(t) = `alone`: k outputs in interval t, the first at level l. */
static dpq_wide
copies_wide(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
            size_t j, size_t t, dpq_wide alone, const dpq_wide *A, const dpq_wide *H)
{
    int64_t r = p->rank[t];
    size_t k = 2;
    dpq_wide sum = alone, factor = dpq_wide_of(1.0, 0);

    for (size_t l = j; l-- > 0 && t < p->hi[l]; k++) {
        double places = dpq_scan_places(p, t, k), stay = 1.0;
        dpq_wide stay_wide = {1.0, 0};
        size_t at = p->start[l] + (t - p->lo[l]);

        /* From level l to l + 1 at one rank, dist(u, [min(0, v), max(0, v)]) with u >= v. */
        if (r > p->whole[l]) { /* u > 0 */
            int64_t ranks = level[l + 1].reach; /* u - v = n_{l+1} */
            double part = level[l + 1].slack, rest = level[l + 1].ahead;

            if (r < p->whole[l + 1] || (r == p->whole[l + 1] && p->part[l + 1] > 0.0)) { /* v < 0 */
                ranks = r - p->whole[l];
                part = p->part[l];
                rest = level[l].up;
            }
            stay = ranks > 0 ? dpq_decay_at(decay, ranks - 1) * rest : 1.0;
            if (stay <= DPQ_DECAY_LONG) {
                stay_wide = wide_stay(decay, ranks, part, rest);
                stay = 1.0;
            }
        }
        if (places > SMALLEST_PLACES && places < LARGEST_PLACES) { /* the usual: one product */
            factor = dpq_wide_mul(factor, dpq_wide_of(places * level[k - 1].share * stay, 0));
        }
        else {
            factor = dpq_wide_mul(factor, dpq_wide_of(places, 0));
            factor = dpq_wide_mul(factor, dpq_wide_of(level[k - 1].share * stay, 0));
        }
        if (stay_wide.exponent < 0) {
            factor = dpq_wide_mul(factor, stay_wide);
        }
        /* the mantissas' product is below 4 */
        if (factor.exponent + H[at].exponent + 2 < sum.exponent - REST_BITS && sum.mantissa > 0.0) {
            break;
        }
        sum = dpq_wide_add(sum, dpq_wide_mul(factor, A[at]));
    }
    return sum;
}

/* The same for TOGETHER intervals, in loops that become vectors; 0, and nothing done, if numbers may be
 * too small or too large for them. */
DPQ_VECTORIZED static int
copies_together(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
                size_t j, size_t t, const dpq_wide *alone, const dpq_wide *A, const dpq_wide *H,
                dpq_wide *h)
{
    const int64_t *rank = p->rank + t;
    const double *width = p->width + t;
    double factor[TOGETHER], sum[TOGETHER], stay[TOGETHER];
    int64_t of_factor[TOGETHER], of_sum[TOGETHER]; /* exponents */
    size_t n = TOGETHER, k = 2;

    for (size_t i = 0; i < TOGETHER; i++) {
        if (!(width[i] > 0x1p-200 && width[i] < 0x1p200)) {
            return 0;
        }
        factor[i] = 1.0;
        of_factor[i] = 0;
        sum[i] = alone[i].mantissa;
        of_sum[i] = sum[i] > 0.0 ? alone[i].exponent : DPQ_WIDE_LOWEST;
    }
    for (size_t l = j; l-- > 0 && t < p->hi[l]; k++) {
        const dpq_wide *a = A + (p->start[l] + (t - p->lo[l])), *all = H + (a - A);
        double extra = p->lattice ? (double)(k - 1) : 0.0, share = level[k - 1].share;

        for (; n > p->hi[l] - t; n--) { /* what follows in memory is of later rows */
            of_factor[n - 1] = 2 * DPQ_WIDE_LOWEST;
        }
        for (size_t i = 0; i < TOGETHER; i++) {
            stay[i] = 1.0;
        }
        if (rank[n - 1] > p->whole[l]) {
            if (level[l + 1].stay <= DPQ_DECAY_LONG) {
                return 0;
            }
            for (size_t i = 0; i < n; i++) {
                stay[i] = stay_at(p, decay, level, l, rank[i]);
            }
        }
        for (size_t i = 0; i < TOGETHER; i++) {
            double more = factor[i] * ((width[i] + extra) * share * stay[i]);
            dpq_wide product = dpq_wide_of_normal(more, of_factor[i]);

            factor[i] = product.mantissa;
            of_factor[i] = product.exponent;
        }
        for (size_t i = 0; i < TOGETHER; i++) {
            int64_t exponent = a[i].mantissa > 0.0 ? of_factor[i] + a[i].exponent
                                                   : DPQ_WIDE_LOWEST;
            int64_t top = exponent > of_sum[i] ? exponent : of_sum[i];
            int64_t down = top - of_sum[i], further = top - exponent;

            down = down < 1023 ? down : 1023;
            further = further < 1023 ? further : 1023;
            sum[i] = sum[i] * dpq_wide_power(down) +
                     factor[i] * a[i].mantissa * dpq_wide_power(further);
            of_sum[i] = top;
        }
        if (k % OFTEN == 0) {
            int64_t open = 0;

            for (size_t i = 0; i < TOGETHER; i++) {
                int64_t rest = all[i].mantissa > 0.0 ? of_factor[i] + all[i].exponent + 2
                                                     : 2 * DPQ_WIDE_LOWEST;

                open |= rest >= of_sum[i] - REST_BITS ? 1 : 0;
            }
            if (!open) {
                break;
            }
        }
    }
    for (size_t i = 0; i < TOGETHER; i++) {
        h[i] = dpq_wide_of(sum[i], of_sum[i]);
    }
    return 1;
}

void
dpq_scan_forward_wide(const dpq_scan_problem *p, dpq_decay *decay, dpq_scan_level *level,
                      size_t first, dpq_wide *A, dpq_wide *H, dpq_large *work, double *log_total)
{
    size_t m = p->levels - 1;
    dpq_wide total = DPQ_WIDE_ZERO;

    if (first == 0) {
        dpq_scan_prepare(p, decay, level);
    }
    for (size_t j = first; j < p->levels; j++) {
        size_t lo = p->lo[j], n = p->hi[j] - lo;
        dpq_wide *a = A + p->start[j], *h = H + p->start[j];

        if (j > 0) {
            const dpq_wide *last = H + p->start[j - 1];
            dpq_scan_step step = step_to(p, level, j);
            size_t size = p->hi[j - 1] - p->lo[j - 1];

            for (size_t i = 0; i < size; i++) {
                work[i] = dpq_large_of_wide(last[i]);
            }
            sums_large(&step, decay, work, work, a, work + size);
        }
        for (size_t i = 0; i < n; i++) {
            dpq_wide width = dpq_wide_of(p->width[lo + i], 0);

            a[i] = j > 0 ? dpq_wide_mul(a[i], width) : width;
        }
        for (size_t i = 0, shared = j > 0 ? shared_with_last(p, j) : 0; i < n;) {
            size_t end = i + TOGETHER < n ? i + TOGETHER : n;

            if (i + TOGETHER <= shared &&
                copies_together(p, decay, level, j, lo + i, a + i, A, H, h + i)) {
                i = end;
            }
            for (; i < end; i++) {
                h[i] = copies_wide(p, decay, level, j, lo + i, a[i], A, H);
            }
        }
    }
    for (size_t t = p->lo[m]; log_total && t < p->hi[m]; t++) {
        int64_t above = p->rank[t] - p->whole[m];
        dpq_wide last = above > 0 ? wide_stay(decay, above, p->part[m], level[m].up)
                                  : dpq_wide_mul(dpq_decay_wide(decay, -above),
                                                 dpq_wide_exp(p->rate, p->part[m]));

        total = dpq_wide_add(total, dpq_wide_mul(H[p->start[m] + (t - p->lo[m])], last));
    }
    if (log_total) {
        *log_total = dpq_wide_log(total, 0);
    }
}
