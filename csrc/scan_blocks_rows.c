#include "scan_blocks.h"

#include <string.h>

#include "extremes.h"
#include "scan_blocks_tiles.h"
#include "step.h"
#include "tiles.h"
#include "vector.h"

#define REST_BITS 53 /* of DPQ_SCAN_REST */
#define SMALLEST_PLACES 0x1p-900 /* widths whose products with a share and a decay are exact but for */
#define LARGEST_PLACES 0x1p900   /* rounding */
#define HEAVY 1024.0    /* an interval that is so many times as wide as the one before it, */
#define FROM_HEAVY 4    /* and those after it, so many in all, are in blocks of their own */

void
dpq_scan_choose_blocks(const dpq_scan_problem *p, int alone, size_t known, uint8_t *begins,
                       uint32_t *of, size_t *begin)
{
    const int64_t *rank = p->rank;
    const double *width = p->width;
    uint32_t blocks = 0;
    size_t left = 0; /* so many intervals from a wide one on are still to come */

    begin[0] = 0;
    for (size_t t = 0; t < p->intervals; t++) {
        int begins_here = alone || left > 0;

        left -= left > 0;
        if (t == 0 && p->intervals > 1 && width[0] / width[1] > HEAVY) {
            left = 1;
        }
        if (t > 0) {
            if (width[t] / width[t - 1] > HEAVY) {
                left = FROM_HEAVY;
            }
            begins_here |= left == FROM_HEAVY || rank[t] / DPQ_SCAN_BLOCK != rank[t - 1] / DPQ_SCAN_BLOCK;
        }
        if (t < p->lo[0] || t >= p->lo[0] + known) {
            begins[t] = (uint8_t)begins_here;
        }
        if (t > 0 && t - begin[blocks] == DPQ_SCAN_BLOCK) { /* ranks repeat */
            begins[t] = 1;
        }
        if (t > 0 && begins[t]) {
            begin[++blocks] = t;
        }
        of[t] = blocks;
    }
    begin[blocks + 1] = p->intervals;
}

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
#define FADE(x, k) MUL((x), dpq_large_decay(decay, (k)))
#define TERM(a, b) MUL((a), (b))
#define FADING(x, k) FADE((x), (k))
#define DECAY_OF(rate, y) dpq_large_exp((rate), (y))
#define DECAY_PART(y) DECAY_OF(decay->rate, (y))
#define SUMS NUMBER *
#define STORE(t, past, window) (sums[t] = ADD((past), (window)))
#include "scan_body.h"
#undef NAME

/* h_j(t) = sum_k ..., given a_j(t) = `alone`: k outputs in interval t, the first at level l. */
static dpq_wide
copies_wide(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
            const dpq_scan_blocks *blocks, size_t j, size_t t, dpq_wide alone, const double *A,
            const double *H)
{
    int64_t r = p->rank[t];
    size_t k = 2;
    dpq_wide sum = alone, factor = dpq_wide_of(1.0, 0);

    for (size_t l = j; l-- > 0 && t < p->hi[l]; k++) {
        double places = dpq_scan_places(p, t, k), stay = 1.0;
        size_t at = p->start[l] + (t - p->lo[l]), block = dpq_scan_block(p, blocks, l, t);
        dpq_wide stay_wide = {1.0, 0}, all = dpq_wide_of(H[at], blocks->H[block]);

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
        if (factor.exponent + all.exponent + 2 < sum.exponent - REST_BITS && sum.mantissa > 0.0) {
            break;
        }
        sum = dpq_wide_add(sum, dpq_wide_mul(factor, dpq_wide_of(A[at], blocks->A[block])));
    }
    return sum;
}

#define IN_BLOCKS 1
#define BODY "copies_body.h"
#include "versions.h"
#undef BODY

/* Fill in h_j for the entries begin, ..., end - 1 of row j, all in one block and in row j - 1, too, in units of
 * a's; whether there are enough for vectors, and room. */
static int
copies_in_block(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
                const dpq_scan_blocks *blocks, size_t j, size_t begin, size_t end, const double *A,
                double *H)
{
    if (end - begin < TOGETHER) {
        return 0;
    }
    return DPQ_LONGEST(copies)(p, decay, level, blocks, j, begin, end, A, H);
}

/* The same for TOGETHER intervals from entry i of row j on that have blocks of their own, in loops that become
 * vectors; 0, and nothing done, if numbers may be too small or too large for them. */
DPQ_VECTORIZED static int
copies_of_entries(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
                  const dpq_scan_blocks *blocks, size_t j, size_t i, const double *A, double *H)
{
    const size_t t = p->lo[j] + i, own = blocks->first[j] + i, row = p->start[j] + i;
    const int64_t *rank = p->rank + t;
    const double *width = p->width + t;
    double factor[TOGETHER], sum[TOGETHER], stay[TOGETHER];
    int64_t of_factor[TOGETHER], of_sum[TOGETHER]; /* exponents */
    size_t n = TOGETHER, k = 2;

    for (size_t b = 0; b < TOGETHER; b++) {
        if (!(width[b] > 0x1p-200 && width[b] < 0x1p200)) {
            return 0;
        }
        factor[b] = 1.0;
        of_factor[b] = 0;
        sum[b] = A[row + b];
        of_sum[b] = sum[b] > 0.0 ? blocks->A[own + b] : DPQ_WIDE_LOWEST;
    }
    for (size_t l = j; l-- > 0 && t < p->hi[l]; k++) {
        const double *a = A + (p->start[l] + (t - p->lo[l])), *all = H + (a - A);
        const int64_t *of_a = blocks->A + (blocks->first[l] + (t - p->lo[l]));
        const int64_t *of_all = blocks->H + (of_a - blocks->A);
        double extra = p->lattice ? (double)(k - 1) : 0.0, share = level[k - 1].share;

        for (; n > p->hi[l] - t; n--) { /* what follows in memory is of later rows */
            of_factor[n - 1] = 2 * DPQ_WIDE_LOWEST;
        }
        for (size_t b = 0; b < TOGETHER; b++) {
            stay[b] = 1.0;
        }
        if (rank[n - 1] > p->whole[l]) {
            if (level[l + 1].stay <= DPQ_DECAY_LONG) {
                return 0;
            }
            for (size_t b = 0; b < n; b++) {
                stay[b] = dpq_scan_stay_at(p, decay, level, l, rank[b]);
            }
        }
        for (size_t b = 0; b < TOGETHER; b++) {
            double more = factor[b] * ((width[b] + extra) * share * stay[b]);
            dpq_wide product = dpq_wide_of_normal(more, of_factor[b]);

            factor[b] = product.mantissa;
            of_factor[b] = product.exponent;
        }
        for (size_t b = 0; b < TOGETHER; b++) {
            int64_t exponent = a[b] > 0.0 ? of_factor[b] + of_a[b] : DPQ_WIDE_LOWEST;
            int64_t top = exponent > of_sum[b] ? exponent : of_sum[b];
            double kept = dpq_wide_power_or_nothing(top - of_sum[b]);

            sum[b] = sum[b] * kept + factor[b] * a[b] * dpq_wide_power_or_nothing(top - exponent);
            of_sum[b] = top;
        }
        if (k % OFTEN == 0) {
            int64_t open = 0;

            for (size_t b = 0; b < TOGETHER; b++) {
                int64_t rest = all[b] > 0.0 ? of_factor[b] + of_all[b] + 2 : 2 * DPQ_WIDE_LOWEST;

                open |= rest >= of_sum[b] - REST_BITS ? 1 : 0;
            }
            if (!open) {
                break;
            }
        }
    }
    for (size_t b = 0; b < TOGETHER; b++) {
        dpq_wide h = dpq_wide_of(sum[b], of_sum[b]);

        H[row + b] = h.mantissa;
        blocks->H[own + b] = h.exponent;
    }
    return 1;
}

/* Fill in h_j for a row of blocks of one, given a_j; the first `shared` entries are in row j - 1, too. */
static void
close_alone(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
            const dpq_scan_blocks *blocks, size_t j, size_t shared, const double *A, double *H)
{
    const size_t n = p->hi[j] - p->lo[j], own = blocks->first[j], row = p->start[j];

    for (size_t i = 0; i < shared;) {
        size_t end = i + TOGETHER < shared ? i + TOGETHER : shared;

        if (i + TOGETHER <= shared && copies_of_entries(p, decay, level, blocks, j, i, A, H)) {
            i = end;
        }
        for (; i < end; i++) {
            dpq_wide h = copies_wide(p, decay, level, blocks, j, p->lo[j] + i,
                                     dpq_wide_of(A[row + i], blocks->A[own + i]), A, H);

            H[row + i] = h.mantissa;
            blocks->H[own + i] = h.exponent;
        }
    }
    memcpy(H + row + shared, A + row + shared, (n - shared) * sizeof *H);
    memcpy(blocks->H + own + shared, blocks->A + own + shared, (n - shared) * sizeof *blocks->H);
}

/* Row j of H as numbers with exponents of their own. */
static void
load_row(const dpq_scan_problem *p, const dpq_scan_blocks *blocks, size_t j, const double *H,
         dpq_large *row)
{
    const double *h = H + p->start[j];
    size_t n = p->hi[j] - p->lo[j];

    for (size_t i = 0, end; i < n; i = end) {
        int64_t unit = blocks->H[dpq_scan_block(p, blocks, j, p->lo[j] + i)];
        int64_t exponent = unit >> DPQ_LARGE_LOG_BITS;
        double rest = dpq_wide_power(exponent * DPQ_LARGE_BITS - unit);

        end = dpq_scan_block_end(p, blocks, j, i);
        for (; i < end; i++) {
            row[i] = dpq_large_round(h[i] * rest, exponent);
        }
    }
}

/* Keep n numbers, each 0 or positive, in one unit: the power of two of the largest. Whether there is room
 * for all of them. */
static int
keep_block(size_t n, const dpq_large *x, double *kept, int64_t *unit)
{
    dpq_large top = DPQ_LARGE_ZERO;
    double scale[3];

    for (size_t i = 0; i < n; i++) {
        top = dpq_large_less(top, x[i]) ? x[i] : top;
    }
    *unit = top.digits > 0.0 ? dpq_large_to_wide(top).exponent : 0;
    scale[0] = dpq_wide_power(*unit - top.exponent * DPQ_LARGE_BITS);
    scale[1] = 1.0 / DPQ_LARGE_UNIT;
    scale[2] = scale[1] * scale[1];
    for (size_t i = 0; i < n; i++) {
        int64_t lower = top.exponent - x[i].exponent;

        kept[i] = x[i].digits * scale[0];
        if (lower != 0 && x[i].digits > 0.0) {
            kept[i] = lower > 2 ? 0.0 : kept[i] * scale[lower];
        }
        if (kept[i] < DPQ_SCAN_LEAST_KEPT && x[i].digits > 0.0) {
            return 0;
        }
    }
    return 1;
}

/* The same for n numbers that are in a unit already; the first one may be 0 if `unreached`, below n. */
static int
keep_in_unit(size_t n, size_t unreached, double *x, int64_t *unit)
{
    double most = dpq_largest(n, x), least = dpq_smallest(n - unreached, x + unreached);
    int64_t up;

    if (!(most < INFINITY && most >= DPQ_SCAN_LEAST_KEPT && least >= DPQ_SCAN_LEAST_KEPT)) {
        return 0;
    }
    up = dpq_wide_of_normal(most, 0).exponent;
    if (up != 0) {
        double down = dpq_wide_power(up);

        for (size_t i = 0; i < n; i++) {
            x[i] *= down;
        }
        least *= down;
        *unit += up;
    }
    return least >= DPQ_SCAN_LEAST_KEPT;
}

/* Whether that will do for level j. */
static int
are_consecutive(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
                size_t j)
{
    return level[j].past >= LEAST_STAY && level[j].ahead >= LEAST_STAY &&
           dpq_decay_at(decay, 1) >= LEAST_STAY && dpq_tiles_will_do(p, level, j);
}

/* Finish a block of row j, its entries begin, ..., end - 1: h_j, given a_j. The first `shared` entries of the
 * row are in row j - 1, too. Whether there is room. */
static int
close_block(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
            const dpq_scan_blocks *blocks, size_t j, size_t begin, size_t end, size_t shared,
            const double *A, double *H)
{
    const size_t block = dpq_scan_block(p, blocks, j, p->lo[j] + begin), n = end - begin;
    const double *own = A + p->start[j] + begin;
    double *all = H + p->start[j] + begin;
    dpq_large h[DPQ_SCAN_BLOCK];

    shared = shared < begin ? begin : shared < end ? shared : end;
    blocks->H[block] = blocks->A[block];
    memcpy(all, own, n * sizeof *all);
    if (shared == begin || (copies_in_block(p, decay, level, blocks, j, begin, shared, A, H) &&
                            keep_in_unit(n, 0, all, blocks->H + block))) {
        return 1;
    }
    for (size_t i = begin; i < end; i++) { /* one by one */
        dpq_wide one = dpq_wide_of(own[i - begin], blocks->A[block]);

        if (i < shared) {
            one = copies_wide(p, decay, level, blocks, j, p->lo[j] + i, one, A, H);
        }
        h[i - begin] = dpq_large_of_wide(one);
    }
    return keep_block(n, h, all, blocks->H + block);
}

/* a_j of consecutive ranks; whether there was room for all. */
static int
alone_by_tiles(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
               const dpq_scan_blocks *blocks, size_t j, double *A, const double *H)
{
    size_t lo = p->lo[j], n = p->hi[j] - lo, unreached = lo == p->lo[j - 1];
    double *a = A + p->start[j];

    if (!dpq_scan_blocks_tiles(p, decay, level, blocks, j, H, a)) {
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        a[i] *= p->width[lo + i];
    }
    for (size_t i = 0, end; i < n; i = end, unreached = 0) {
        int64_t *unit = blocks->A + dpq_scan_block(p, blocks, j, lo + i);

        end = dpq_scan_block_end(p, blocks, j, i);
        if (end - i == unreached) { /* nothing but a 0 */
            *unit = 0;
        }
        else if (!keep_in_unit(end - i, unreached, a + i, unit)) {
            return 0;
        }
    }
    return 1;
}

/* a_j of any ranks; likewise. */
static int
alone_one_by_one(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
                 const dpq_scan_blocks *blocks, size_t j, double *A, const double *H,
                 dpq_large *work, size_t longest)
{
    size_t lo = p->lo[j], n = p->hi[j] - lo;
    dpq_large *a = work + 2 * longest;

    if (j == 0) {
        for (size_t i = 0; i < n; i++) {
            a[i] = dpq_large_of(1.0);
        }
    }
    else {
        dpq_scan_step step = dpq_scan_step_to(p, level, j);

        load_row(p, blocks, j - 1, H, work);
        sums_large(&step, decay, work, work, NULL, a, work + longest);
    }
    for (size_t i = 0; i < n; i++) {
        a[i] = held_product(a[i], dpq_large_of(p->width[lo + i]));
    }
    if (blocks->alone) {
        for (size_t i = 0; i < n; i++) {
            dpq_wide own = dpq_large_to_wide(a[i]);

            A[p->start[j] + i] = own.mantissa;
            blocks->A[blocks->first[j] + i] = own.exponent;
        }
        return 1;
    }
    for (size_t i = 0, end; i < n; i = end) {
        end = dpq_scan_block_end(p, blocks, j, i);
        if (!keep_block(end - i, a + i, A + p->start[j] + i,
                        blocks->A + dpq_scan_block(p, blocks, j, lo + i))) {
            return 0;
        }
    }
    return 1;
}

dpq_status
dpq_scan_forward_blocks(const dpq_scan_problem *p, dpq_decay *decay, dpq_scan_level *level,
                        size_t first, const dpq_scan_blocks *blocks, double *A, double *H,
                        dpq_large *work, double *log_total)
{
    size_t m = p->levels - 1, longest = 0;
    dpq_wide total = DPQ_WIDE_ZERO;

    if (!blocks->alone && p->rate > DPQ_SCAN_STEEPEST) {
        return DPQ_ERR_RANGE;
    }
    if (first == 0) {
        dpq_scan_prepare(p, decay, level);
    }
    for (size_t j = 0; j < p->levels; j++) {
        longest = p->hi[j] - p->lo[j] > longest ? p->hi[j] - p->lo[j] : longest;
    }
    for (size_t j = first; j < p->levels; j++) {
        size_t n = p->hi[j] - p->lo[j], shared = j > 0 ? dpq_scan_shared(p, j) : 0;

        if (!(j > 0 && !blocks->alone && are_consecutive(p, decay, level, j) &&
              alone_by_tiles(p, decay, level, blocks, j, A, H)) &&
            !alone_one_by_one(p, decay, level, blocks, j, A, H, work, longest)) {
            return DPQ_ERR_RANGE;
        }
        if (blocks->alone) {
            close_alone(p, decay, level, blocks, j, shared, A, H);
            continue;
        }
        for (size_t i = 0, end; i < n; i = end) {
            end = dpq_scan_block_end(p, blocks, j, i);
            if (!close_block(p, decay, level, blocks, j, i, end, shared, A, H)) {
                return DPQ_ERR_RANGE;
            }
        }
    }
    for (size_t t = p->lo[m]; log_total && t < p->hi[m]; t++) {
        int64_t above = p->rank[t] - p->whole[m];
        dpq_wide h = dpq_wide_of(H[p->start[m] + (t - p->lo[m])],
                                 blocks->H[dpq_scan_block(p, blocks, m, t)]);
        dpq_wide last = above > 0 ? wide_stay(decay, above, p->part[m], level[m].up)
                                  : dpq_wide_mul(dpq_decay_wide(decay, -above),
                                                 dpq_wide_exp(p->rate, p->part[m]));

        total = dpq_wide_add(total, dpq_wide_mul(h, last));
    }
    if (log_total) {
        *log_total = dpq_wide_log(total, 0);
    }
    return DPQ_OK;
}
