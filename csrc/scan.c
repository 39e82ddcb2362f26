#include "scan.h"

#include <stdlib.h>
#include <string.h>

#include "extremes.h"
#include "ranks.h"
#include "scan_blocks.h"
#include "step.h"
#include "tiles.h"
#include "vector.h"

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

#define DECAY_PART(y) DECAY_OF(decay->rate, (y))
#define STORE(t, past, window) (sums[t] = ADD((past), (window)))

/* float64 rows */

#define SUMS NUMBER *

#define NUMBER double
#define NAME(f) f##_float
#define ADD(a, b) ((a) + (b))
#define MUL(a, b) ((a) * (b))
#define ZERO 0.0
#define FADE(x, k) ((x) * dpq_decay_at(decay, (k)))
#define TERM(a, b) MUL((a), (b))
#define FADING(x, k) FADE((x), (k))
#define DECAY_OF(rate, y) exp(-(rate) * (y))
#include "scan_body.h"
#undef NUMBER
#undef NAME
#undef ADD
#undef MUL
#undef ZERO
#undef FADE
#undef TERM
#undef FADING
#undef DECAY_OF

/* Rows of consecutive ranks: the sums of scan_body.h, but the past of t ends `ahead` + 1 intervals
 * before it for every t, so that vectors can work on many windows at once. With zeros in front of a row
 * no t is special: its window starts `ahead` entries before it, its past ends there. Rows are worked on
 * in tiles that stay in the nearest cache. */

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
    double x[DPQ_TILE], before[DPQ_TILE + 1], one[DPQ_TILE], other[DPQ_TILE];
    size_t n;

    before[0] = 0.0;
    for (size_t i = 0; i < to; i += n) {
        size_t stop = i < from ? from : to;

        n = stop - i < DPQ_TILE - ahead ? stop - i : DPQ_TILE - ahead;
        see(row, (int64_t)i - (int64_t)ahead, n + (i < from ? 0 : ahead), x);
        dpq_tiles_running(n, x, fade, before + 1);
        if (i >= from) {
            const double *inside = dpq_tiles_windows(n, ahead, fading, x, one, other);

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
    const dpq_tiles_step s = dpq_tiles_step_to(p, level, j);
    one_side left = {.h = H + p->start[j - 1], .first = s.zero, .last = s.last, .size = s.last};
    one_side right = {.h = left.h, .last = s.zero, .backwards = 1, .size = s.last};

    if (s.zero < s.last) {
        left.fade = decay->table + s.above;
        left.part = p->part[j - 1] > 0.0 ? level[j - 1].up : 1.0;
    }
    if (s.zero > 0) {
        right.fade = decay->table + s.below;
        right.part = level[j - 1].down;
    }
    /* v < 0: the past fades, the window weighs exp(-2c max(u, 0)) */
    sums_of_side(&left, s.begin, s.turn, s.ahead, dpq_decay_at(decay, 1), level[j].past, NULL, 1.0,
                 sums);
    /* v >= 0: the past weighs exp(-2c max(-u, 0)), the window fades */
    sums_of_side(&right, s.turn, s.end, s.ahead, 1.0, 1.0, decay, level[j].ahead,
                 sums + (s.turn - s.begin));
}

/* Whether sums_consecutive will do for level j. */
static int
is_consecutive(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
               size_t j)
{
    int64_t target = p->whole[j - 1];

    return target - p->rank[p->lo[j - 1]] < decay->size &&
           p->rank[p->hi[j] - 1] - target < decay->size && dpq_tiles_will_do(p, level, j);
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
        dpq_scan_step step = dpq_scan_step_to(p, level, j);

        sums_float(&step, decay, h, h, NULL, sums, work);
    }
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

        factor *= dpq_scan_stay_at(p, decay, level, l, p->rank[t]);
        factor *= dpq_scan_places(p, t, k) * (level[k - 1].share * level[l + 1].gain);
        sum += factor * A[at];
        if (factor * H[at] < sum * DPQ_SCAN_REST) {
            break;
        }
    }
    H[last] = sum;
}

/* The same for many intervals at once, by vectors of the machine's own length. */

#define IN_BLOCKS 0
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
    (void)DPQ_LONGEST(copies)(p, decay, level, NULL, j, 0, shared, A, H);
}

/* a[i] *= width[i] * gain for n entries. */
DPQ_VECTORIZED static void
scale(size_t n, double *a, const double *width, double gain)
{
    for (size_t i = 0; i < n; i++) {
        a[i] *= width[i] * gain;
    }
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
        shared = dpq_scan_shared(p, j);
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
