#include "coarse.h"

#include <math.h>

#include "distance.h"
#include "large.h"
#include "race.h"
#include "ranks.h"
#include "step.h"
#include "uniform.h"

#define REST 0x1p-53       /* the sum over k stops at this relative size of its rest: of one rounding */
#define BLOCK 32           /* weights are added up in blocks of so many */
#define FLOOR 0x1p-880     /* what is below is drawn as if it were this, and then taken by what it is */
#define LOG_FLOOR (-880.0 * DPQ_LN2)
#define SMALL 0x1p-900     /* plain weights of a race are at least this, */
#define LARGE 0x1p900      /* and at most */

enum { FROM_BELOW, FROM_ABOVE, RUN }; /* sums of an entry: s_j = 1, s_j = -1, and of several outputs */

/* cells */

static int
height_of(const dpq_coarse_problem *p, size_t c)
{
    int h = 0;

    while (c >= p->offset[h + 1]) {
        h++;
    }
    return h;
}

/* The first leaf of a cell of height h. */
static size_t
leaf_of(const dpq_coarse_problem *p, size_t c, int h)
{
    return (c - p->offset[h]) << h;
}

static int64_t
rank_of(const dpq_coarse_problem *p, size_t c)
{
    return p->least[c] + (p->most[c] - p->least[c]) / 2;
}

/* Whether a cell is as narrow as it has to be for level j. */
static int
is_narrow(const dpq_coarse_problem *p, size_t j, size_t c)
{
    double span = 0.5 * p->rate * (double)(p->most[c] - p->least[c]), x;
    int64_t above, below, away;

    if (span > DPQ_COARSE_WIDEST) {
        return 0;
    }
    above = p->least[c] - p->above[j];
    below = p->below[j] - p->most[c];
    away = above > below ? above : below;
    x = away > 0 ? 0.5 * p->rate * (double)away : 0.0;
    return p->volume[1][c] < INFINITY &&
           span * span <=
               p->width * p->width * (1.0 + p->growth * x * x / ((double)p->levels + x));
}

size_t
dpq_coarse_cells(const dpq_coarse_problem *p, size_t room, size_t *start, uint32_t *node)
{
    size_t n = 0;

    for (size_t j = 0; j < p->levels; j++) {
        size_t leaf = p->from[j];

        start[j] = n;
        while (leaf < p->to[j]) { /* the highest cell that begins here and will do */
            int h = 0;
            size_t c;

            /* from the tallest on: a cell that is narrow may be wider than one inside of it may be */
            while (h + 1 < p->heights && leaf >> (h + 1) << (h + 1) == leaf &&
                   leaf + ((size_t)1 << h) < p->leaves) {
                h++;
            }
            for (;; h--) {
                size_t end = leaf + ((size_t)1 << h);

                c = p->offset[h] + (leaf >> h);
                if (h == 0 || ((end <= p->to[j] || p->to[j] == p->leaves) && is_narrow(p, j, c))) {
                    break;
                }
            }
            if (n < room) {
                node[n] = (uint32_t)c;
            }
            n++;
            leaf += (size_t)1 << h;
        }
    }
    start[p->levels] = n;
    return n;
}

/* workspace */

typedef struct {
    size_t longest;
    dpq_large *leave[2]; /* what a row hands on to steps with the sign 1, and with -1 */
    dpq_large *suffix;
    dpq_large *block[2]; /* while drawing: sums of that by blocks, */
    dpq_large *some;     /* and those of a range */
    double *weight;      /* plain weights of blocks, or for each level */
    int64_t *rank[2];
    uint32_t *end;
} workspace;

static size_t
blocks_of(size_t n)
{
    return n / BLOCK + 3;
}

static size_t
weights_of(size_t longest, size_t levels)
{
    return blocks_of(longest) + BLOCK + levels;
}

size_t
dpq_coarse_room(size_t longest, size_t levels)
{
    return 3 * (longest + blocks_of(longest)) * sizeof(dpq_large) +
           weights_of(longest, levels) * sizeof(double) + 2 * longest * sizeof(int64_t) +
           longest * sizeof(uint32_t);
}

static workspace
workspace_of(const dpq_coarse_problem *p, const dpq_coarse_rows *rows, void *room)
{
    workspace work = {.longest = 1};
    size_t blocks;

    for (size_t j = 0; j < p->levels; j++) {
        size_t n = rows->start[j + 1] - rows->start[j];

        work.longest = n > work.longest ? n : work.longest;
    }
    blocks = blocks_of(work.longest);
    work.leave[0] = room;
    work.leave[1] = work.leave[0] + work.longest;
    work.suffix = work.leave[1] + work.longest;
    work.block[0] = work.suffix + work.longest;
    work.block[1] = work.block[0] + blocks;
    work.some = work.block[1] + blocks;
    work.weight = (double *)(void *)(work.some + blocks);
    work.rank[0] = (int64_t *)(void *)(work.weight + weights_of(work.longest, p->levels));
    work.rank[1] = work.rank[0] + work.longest;
    work.end = (uint32_t *)(void *)(work.rank[1] + work.longest);
    return work;
}

/* rows */

static void
ranks_of_row(const dpq_coarse_problem *p, const dpq_coarse_rows *rows, size_t j, int64_t *rank)
{
    size_t begin = rows->start[j], n = rows->start[j + 1] - begin;

    for (size_t i = 0; i < n; i++) {
        rank[i] = rank_of(p, rows->node[begin + i]);
    }
}

/* For row j: where row j - 1 has the same cells, and where what comes before each cell ends there: all
 * that begins before the cell's end, but not the cell itself. */
static void
meet(const dpq_coarse_problem *p, const dpq_coarse_rows *rows, size_t j, uint32_t *end)
{
    const uint32_t *before = rows->node + rows->start[j - 1], *now = rows->node + rows->start[j];
    size_t n = rows->start[j + 1] - rows->start[j], s = 0;
    size_t size = rows->start[j] - rows->start[j - 1];

    for (size_t i = 0; i < n; i++) {
        int h = height_of(p, now[i]);
        size_t stop = leaf_of(p, now[i], h) + ((size_t)1 << h);
        uint32_t same = DPQ_COARSE_NONE;

        while (s < size && leaf_of(p, before[s], height_of(p, before[s])) < stop) {
            s++;
        }
        if (s > 0 && before[s - 1] == now[i]) {
            same = (uint32_t)(s - 1);
        }
        rows->same[rows->start[j] + i] = same;
        end[i] = same != DPQ_COARSE_NONE ? same : (uint32_t)s;
    }
}

static dpq_scan_step
step_to(const dpq_coarse_problem *p, const dpq_scan_level *level, const dpq_coarse_rows *rows,
        size_t j, const workspace *work)
{
    return (dpq_scan_step){
        .rank_before = work->rank[(j - 1) % 2],
        .rank = work->rank[j % 2],
        .size = rows->start[j + 1] - rows->start[j],
        .end = work->end,
        .whole = p->whole[j - 1],
        .whole_now = p->whole[j],
        .part = p->part[j - 1],
        .part_now = p->part[j],
        .level = level + j,
    };
}

/* From where the step to rank r at level l + 1 costs nothing. */
static dpq_free_range
free_range_to(const dpq_coarse_problem *p, size_t l, int64_t r)
{
    return dpq_free_range_of((dpq_mixed){p->whole[l], p->part[l]},
                             (dpq_mixed){p->whole[l + 1], p->part[l + 1]}, r);
}

/* How far rank r is from the target of level j. */
static dpq_mixed
from_target(const dpq_coarse_problem *p, size_t j, int64_t r)
{
    dpq_mixed target = {p->whole[j], p->part[j]};

    return dpq_distance((dpq_free_range){target, target}, r);
}

static dpq_large
sum_at(const dpq_coarse_rows *rows, int kind, size_t at)
{
    return (dpq_large){rows->digits[kind][at], rows->exponent[kind][at]};
}

static void
keep(const dpq_coarse_rows *rows, int kind, size_t at, dpq_large x)
{
    rows->digits[kind][at] = x.digits;
    rows->exponent[kind][at] = (int32_t)x.exponent;
}

typedef struct {
    const dpq_coarse_rows *rows;
    size_t begin;
} place;

#define NUMBER dpq_large
#define NAME(f) f##_large
#define SUMS place
#define ADD(a, b) dpq_large_add((a), (b))
#define MUL(a, b) dpq_large_mul((a), (b))
#define ZERO DPQ_LARGE_ZERO
#define DECAY(k) dpq_large_decay(decay, (k))
#define DECAY_PART(y) dpq_large_exp(decay->rate, (y))
#define STORE(t, past, window)                                  \
    do {                                                        \
        keep(sums.rows, FROM_BELOW, sums.begin + (t), (past));   \
        keep(sums.rows, FROM_ABOVE, sums.begin + (t), (window)); \
    } while (0)
#include "scan_body.h"

/* What is left after a distance. */
static dpq_large
decay_of(const dpq_decay *decay, dpq_mixed away)
{
    dpq_large whole = dpq_large_decay(decay, away.whole);

    return away.part > 0.0 ? dpq_large_mul(whole, dpq_large_exp(decay->rate, away.part)) : whole;
}

/* What an entry hands on to a step with the sign 1, and to one with -1. */
static void
leave(const dpq_coarse_problem *p, const dpq_coarse_rows *rows, size_t at, dpq_large *plus,
      dpq_large *minus)
{
    size_t c = rows->node[at];
    dpq_large below = sum_at(rows, FROM_BELOW, at), above = sum_at(rows, FROM_ABOVE, at);
    dpq_large volume = dpq_large_of(p->volume[1][c]);

    *plus = dpq_large_add(dpq_large_mul(volume, below),
                          dpq_large_mul(dpq_large_of(p->volume[0][c]), above));
    *minus = dpq_large_add(dpq_large_mul(dpq_large_of(p->volume[2][c]), below),
                           dpq_large_mul(volume, above));
    if (rows->same[at] != DPQ_COARSE_NONE) {
        dpq_large run = sum_at(rows, RUN, at);

        *plus = dpq_large_add(*plus, dpq_large_mul(dpq_large_of(p->high[c]), run));
        *minus = dpq_large_add(*minus, run);
    }
}

/* The weight of a first output of several in a cell. */
static dpq_large
first_of_run(const dpq_coarse_problem *p, const dpq_coarse_rows *rows, size_t at)
{
    size_t c = rows->node[at];

    return dpq_large_mul(
        dpq_large_of(p->volume[1][c]),
        dpq_large_add(dpq_large_mul(dpq_large_of(p->low[c]), sum_at(rows, FROM_BELOW, at)),
                      sum_at(rows, FROM_ABOVE, at)));
}

/* What one more output, the k-th, at level l + 1 and in a cell that level l has, too, multiplies by. */
static dpq_large
one_more(const dpq_coarse_problem *p, const dpq_decay *decay, const dpq_scan_level *level, size_t c,
         size_t l, size_t k)
{
    double places = p->volume[1][c] + (p->lattice ? (double)(k - 1) : 0.0);
    dpq_large share = dpq_large_mul(dpq_large_of(places), dpq_large_of(level[k - 1].share));
    int64_t r = rank_of(p, c);

    if (r <= p->whole[l]) { /* u <= 0: the step costs nothing */
        return share;
    }
    return dpq_large_mul(share, decay_of(decay, dpq_distance(free_range_to(p, l, r), r)));
}

/* Sum over k >= 2 outputs in the cell of an entry of row j. */
static dpq_large
run_of(const dpq_coarse_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
       const dpq_coarse_rows *rows, size_t j, size_t at)
{
    size_t c = rows->node[at], l = j;
    dpq_large alone = dpq_large_mul(
        dpq_large_of(p->volume[1][c]),
        dpq_large_add(sum_at(rows, FROM_BELOW, at), sum_at(rows, FROM_ABOVE, at)));
    dpq_large factor = dpq_large_of(1.0), sum = DPQ_LARGE_ZERO;
    dpq_large rest = dpq_large_mul(dpq_large_of(REST), dpq_large_of(1.0 / p->high[c]));

    for (size_t k = 2; rows->same[at] != DPQ_COARSE_NONE; k++) {
        dpq_large first, before = DPQ_LARGE_ZERO;

        l--;
        at = rows->start[l] + rows->same[at];
        factor = dpq_large_mul(factor, one_more(p, decay, level, c, l, k));
        first = first_of_run(p, rows, at);
        if (rows->same[at] != DPQ_COARSE_NONE) {
            before = sum_at(rows, RUN, at);
        }
        /* what follows is at most factor times all that ends in the cell at level l */
        if (k > 2 && dpq_large_less(dpq_large_mul(factor, dpq_large_add(first, before)),
                                    dpq_large_mul(dpq_large_add(alone, sum), rest))) {
            break;
        }
        sum = dpq_large_add(sum, dpq_large_mul(factor, first));
    }
    return sum;
}

double
dpq_coarse_forward(const dpq_coarse_problem *p, dpq_decay *decay, dpq_scan_level *level,
                   const dpq_coarse_rows *rows, void *room)
{
    workspace work = workspace_of(p, rows, room);
    size_t m = p->levels - 1;
    dpq_large total = DPQ_LARGE_ZERO;
    dpq_scan_problem scan = {.intervals = p->leaves,
                             .rank = p->least,
                             .levels = p->levels,
                             .whole = p->whole,
                             .part = p->part,
                             .rate = p->rate};

    dpq_scan_prepare(&scan, decay, level);
    dpq_decay_fill_far(decay, p->most[p->leaves - 1] - p->least[0], DPQ_LARGE_LEAST);
    for (size_t j = 0; j <= m; j++) {
        size_t begin = rows->start[j], n = rows->start[j + 1] - begin;
        int64_t *rank = work.rank[j % 2];

        ranks_of_row(p, rows, j, rank);
        if (j == 0) {
            size_t turn = dpq_ranks_first(rank, 0, n, p->whole[0] + (p->part[0] > 0.0));

            for (size_t i = 0; i < n; i++) {
                rows->same[i] = DPQ_COARSE_NONE;
                keep(rows, FROM_BELOW, i, dpq_large_of(i < turn ? 0.0 : 1.0));
                keep(rows, FROM_ABOVE, i, dpq_large_of(i < turn ? 1.0 : 0.0));
            }
        }
        else {
            dpq_scan_step step = step_to(p, level, rows, j, &work);

            meet(p, rows, j, work.end);
            sums_large(&step, decay, work.leave[0], work.leave[1], (place){rows, begin},
                       work.suffix);
        }
        for (size_t i = 0; i < n; i++) {
            if (rows->same[begin + i] != DPQ_COARSE_NONE) {
                keep(rows, RUN, begin + i, run_of(p, decay, level, rows, j, begin + i));
            }
            leave(p, rows, begin + i, work.leave[0] + i, work.leave[1] + i);
        }
    }
    for (size_t i = 0; i < rows->start[m + 1] - rows->start[m]; i++) {
        int64_t r = work.rank[m % 2][i];

        total = dpq_large_add(total, dpq_large_mul(work.leave[r > p->whole[m]][i],
                                                   decay_of(decay, from_target(p, m, r))));
    }
    return dpq_large_log(total);
}

/* drawing paths */

/* What the cells of row j weigh if a step with the sign 1, or with -1, follows, but for what depends on the
 * cell after them: exp(-2c max(-u, 0)), or exp(-2c max(u, 0)); and its sums by blocks. */
static void
weigh_row(const dpq_coarse_problem *p, const dpq_decay *decay, const dpq_coarse_rows *rows,
          size_t j, workspace *work)
{
    size_t begin = rows->start[j], n = rows->start[j + 1] - begin;

    for (size_t i = 0; i < n; i++) {
        int64_t r = work->rank[0][i] = rank_of(p, rows->node[begin + i]);
        int fading = r > p->whole[j];

        leave(p, rows, begin + i, work->leave[0] + i, work->leave[1] + i);
        work->leave[fading][i] =
            dpq_large_mul(work->leave[fading][i], decay_of(decay, from_target(p, j, r)));
        for (int side = 0; side < 2; side++) {
            dpq_large *sum = work->block[side] + i / BLOCK;

            *sum = i % BLOCK ? dpq_large_add(*sum, work->leave[side][i]) : work->leave[side][i];
        }
    }
}

/* Draw one of n numbers, not all 0, by what they are. */
static size_t
draw_one(size_t n, const dpq_large *x, bitgen_t *rng, double *weight)
{
    int64_t top = INT64_MIN;

    for (size_t i = 0; i < n; i++) {
        top = x[i].digits > 0.0 && x[i].exponent > top ? x[i].exponent : top;
    }
    for (size_t i = 0; i < n; i++) {
        double plain = x[i].exponent == top       ? x[i].digits
                       : x[i].exponent == top - 1 ? x[i].digits / DPQ_LARGE_UNIT
                       : x[i].exponent == top - 2 ? x[i].digits / DPQ_LARGE_UNIT / DPQ_LARGE_UNIT
                                                  : 0.0; /* below FLOOR */

        weight[i] = fmax(plain, FLOOR);
    }
    for (;;) {
        size_t drawn = dpq_race_draw_plain(n, weight, rng);
        double unit = (double)top * (DPQ_LARGE_BITS * DPQ_LN2);

        if (weight[drawn] > FLOOR ||
            dpq_uniform_log(rng) < dpq_large_log(x[drawn]) - unit - LOG_FLOOR) {
            return drawn;
        }
    }
}

/* Sums by blocks of the weights of cells lo, ..., hi - 1, lo < hi; how many there are. The first one ends
 * where blocks end. */
static size_t
sums_of(const workspace *work, int side, size_t lo, size_t hi, dpq_large *sum)
{
    size_t n = 0;

    while (lo < hi) {
        size_t end = (lo / BLOCK + 1) * BLOCK;

        if (lo % BLOCK == 0 && end <= hi) {
            sum[n] = work->block[side][lo / BLOCK];
        }
        else {
            end = end < hi ? end : hi;
            sum[n] = work->leave[side][lo];
            while (++lo < end) {
                sum[n] = dpq_large_add(sum[n], work->leave[side][lo]);
            }
        }
        n++;
        lo = end;
    }
    return n;
}

/* Draw one of the cells lo, ..., hi - 1 of a row as the one before a step with that sign. */
static size_t
draw_cell(workspace *work, int sign, size_t lo, size_t hi, bitgen_t *rng)
{
    int side = sign < 0;
    size_t n = sums_of(work, side, lo, hi, work->some);
    size_t drawn = draw_one(n, work->some, rng, work->weight), end;

    lo = drawn > 0 ? (lo / BLOCK + drawn) * BLOCK : lo;
    end = (lo / BLOCK + 1) * BLOCK;
    return lo + draw_one((end < hi ? end : hi) - lo, work->leave[side] + lo, rng, work->weight);
}

/* Draw the last cell, and the sign of the step from it to the end. */
static size_t
draw_last(const dpq_coarse_problem *p, size_t n, bitgen_t *rng, workspace *work, int *sign)
{
    size_t turn = dpq_ranks_first(work->rank[0], 0, n, p->whole[p->levels - 1] + 1);
    size_t bounds[3] = {0, turn, n};
    dpq_large total[2] = {DPQ_LARGE_ZERO, DPQ_LARGE_ZERO};
    size_t side;

    for (side = 0; side < 2; side++) {
        size_t blocks = sums_of(work, (int)side, bounds[side], bounds[side + 1], work->some);

        for (size_t i = 0; i < blocks; i++) {
            total[side] = dpq_large_add(total[side], work->some[i]);
        }
    }
    side = draw_one(2, total, rng, work->weight);
    *sign = side ? -1 : 1;
    return draw_cell(work, *sign, bounds[side], bounds[side + 1], rng);
}

/* Draw the sign of the step to the cell of entry `at`, which is the only, or the first, of its run. */
static int
draw_sign(const dpq_coarse_rows *rows, size_t at, double volume_plus, double volume_minus,
          bitgen_t *rng)
{
    dpq_large x[2] = {dpq_large_mul(sum_at(rows, FROM_BELOW, at), dpq_large_of(volume_plus)),
                      dpq_large_mul(sum_at(rows, FROM_ABOVE, at), dpq_large_of(volume_minus))};
    double weight[2];

    return draw_one(2, x, rng, weight) ? -1 : 1;
}

/* ln of the weights of 2, 3, ... outputs in the cell of entry `at` of row j, in units of about the first
 * one; how many there are. Unless `all` are asked for, the last one may be a bound on it and on all that
 * would follow: `rest` is set. */
static size_t
log_weights_of_runs(const dpq_coarse_problem *p, const dpq_decay *decay,
                    const dpq_scan_level *level, const dpq_coarse_rows *rows, size_t j, size_t at,
                    int all, double *log_weight, int *rest)
{
    size_t c = rows->node[at], l = j, n = 0;
    dpq_large factor = dpq_large_of(1.0), sum = DPQ_LARGE_ZERO;
    int64_t unit = 0;

    *rest = 0;
    for (size_t k = 2; rows->same[at] != DPQ_COARSE_NONE; k++) {
        dpq_large first, bound;

        l--;
        at = rows->start[l] + rows->same[at];
        factor = dpq_large_mul(factor, one_more(p, decay, level, c, l, k));
        bound = first = first_of_run(p, rows, at);
        if (rows->same[at] != DPQ_COARSE_NONE) {
            bound = dpq_large_add(first, sum_at(rows, RUN, at));
        }
        bound = dpq_large_mul(factor, bound);
        first = dpq_large_mul(factor, first);
        unit = n == 0 ? first.exponent : unit;
        first.exponent -= unit;
        bound.exponent -= unit;
        if (!all && n > 0 &&
            dpq_large_less(bound, dpq_large_mul(sum, dpq_large_of(REST)))) {
            *rest = 1;
            log_weight[n] = dpq_large_log(bound) + 0x1p-20; /* more than what rounding takes */
            return n + 1;
        }
        log_weight[n++] = dpq_large_log(first);
        sum = dpq_large_add(sum, first);
    }
    return n;
}

/* Draw how many outputs, two at least, there are in the cell of entry `at` of row j. */
static size_t
draw_run(const dpq_coarse_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
         const dpq_coarse_rows *rows, size_t j, size_t at, bitgen_t *rng, double *log_weight)
{
    for (;;) {
        int rest;
        size_t n = log_weights_of_runs(p, decay, level, rows, j, at, 0, log_weight, &rest);
        size_t drawn = 0;
        double bound = log_weight[n - 1];

        (void)dpq_race_draw(n, log_weight, rng, &drawn);
        if (!rest || drawn + 1 < n) {
            return drawn + 2;
        }
        drawn = n - 1;
        n = log_weights_of_runs(p, decay, level, rows, j, at, 1, log_weight, &rest);
        if (dpq_uniform_log(rng) < dpq_race_log_sum(n - drawn, log_weight + drawn) - bound) {
            size_t more = 0;

            (void)dpq_race_draw(n - drawn, log_weight + drawn, rng, &more);
            return drawn + more + 2;
        }
    }
}

/* Draw how many outputs there are in the cell of entry `at` of row j, given the sign of the step that
 * leaves it, and the sign of the one that enters it. */
static size_t
draw_copies(const dpq_coarse_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
            const dpq_coarse_rows *rows, size_t j, size_t at, int leaving, bitgen_t *rng,
            double *work, int *entering)
{
    size_t c = rows->node[at], k = 1, drawn = 0, first = at;
    double from_plus = p->volume[leaving > 0 ? 1 : 2][c];
    double from_minus = p->volume[leaving > 0 ? 0 : 1][c];
    dpq_large x[2] = {DPQ_LARGE_ZERO, DPQ_LARGE_ZERO};
    double weight[2];

    x[0] = dpq_large_add(
        dpq_large_mul(sum_at(rows, FROM_BELOW, at), dpq_large_of(from_plus)),
        dpq_large_mul(sum_at(rows, FROM_ABOVE, at), dpq_large_of(from_minus)));
    if (rows->same[at] != DPQ_COARSE_NONE) {
        x[1] = dpq_large_mul(sum_at(rows, RUN, at),
                             dpq_large_of(leaving > 0 ? p->high[c] : 1.0));
    }
    drawn = draw_one(2, x, rng, weight);
    if (drawn) {
        k = draw_run(p, decay, level, rows, j, at, rng, work);
        for (size_t l = j; l > j + 1 - k; l--) {
            first = rows->start[l - 1] + rows->same[first];
        }
        from_plus = p->low[c];
        from_minus = 1.0;
    }
    *entering = draw_sign(rows, first, from_plus, from_minus, rng);
    return k;
}

void
dpq_coarse_paths(const dpq_coarse_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
                 const dpq_coarse_rows *rows, size_t size, bitgen_t *rng, dpq_coarse_draw *state,
                 void *work, size_t *path)
{
    size_t m = p->levels;
    workspace space = workspace_of(p, rows, work);

    for (size_t i = 0; i < size; i++) {
        state[i] = (dpq_coarse_draw){.levels = m, .next = DPQ_COARSE_NONE, .sign = 0};
    }
    for (size_t j = m; j-- > 0;) {
        size_t begin = rows->start[j], n = rows->start[j + 1] - begin;

        weigh_row(p, decay, rows, j, &space);
        for (size_t i = 0; i < size; i++) {
            dpq_coarse_draw *draw = state + i;
            size_t lo = 0, hi = n, drawn, k;

            if (draw->levels != j + 1) {
                continue;
            }
            if (draw->next == DPQ_COARSE_NONE) {
                drawn = draw_last(p, n, rng, &space, &draw->sign);
            }
            else {
                int h = height_of(p, draw->next);
                size_t stop = leaf_of(p, draw->next, h) + ((size_t)1 << h);
                size_t turn = dpq_ranks_first(
                    space.rank[0], 0, n, rank_of(p, draw->next) - level[j + 1].reach + 1);

                while (lo < hi) { /* all that begins before the next cell ends */
                    size_t mid = lo + (hi - lo) / 2, c = rows->node[begin + mid];

                    if (leaf_of(p, c, height_of(p, c)) < stop) {
                        lo = mid + 1;
                    }
                    else {
                        hi = mid;
                    }
                }
                hi = lo > 0 && rows->node[begin + lo - 1] == draw->next ? lo - 1 : lo;
                turn = turn < hi ? turn : hi;
                lo = draw->sign > 0 ? 0 : turn;
                hi = draw->sign > 0 ? turn : hi;
                drawn = draw_cell(&space, draw->sign, lo, hi, rng);
            }
            k = draw_copies(p, decay, level, rows, j, begin + drawn, draw->sign, rng,
                            space.weight, &draw->sign);
            draw->next = rows->node[begin + drawn];
            draw->levels -= k;
            for (size_t l = j + 1 - k; l <= j; l++) {
                path[i * m + l] = draw->next;
            }
        }
    }
}

/* drawing points */

void
dpq_coarse_bends(const dpq_coarse_problem *p, size_t size, const size_t *path, int64_t *bend)
{
    size_t m = p->levels;

    for (; size > 0; size--, path += m, bend += m) {
        int entering = rank_of(p, path[0]) >= p->whole[0] + (p->part[0] > 0.0) ? 1 : -1;

        for (size_t j = 0; j < m; j++) {
            int64_t r = rank_of(p, path[j]);
            int leaving = r <= p->whole[j] ? 1 : -1; /* as to the end */

            if (j + 1 < m) { /* v_j <= v_{j+1}: the next rank is as much higher as its target, or more */
                int64_t gap = p->whole[j + 1] - p->whole[j] + (p->part[j + 1] > p->part[j]);

                leaving = path[j + 1] != path[j] && rank_of(p, path[j + 1]) - r >= gap ? 1 : -1;
            }
            bend[j] = (entering - leaving) / 2;
            entering = leaving;
        }
    }
}

/* -ln of what a bend leaves of a piece's weight in a leaf c. */
static double
loss_of(const dpq_coarse_problem *p, const dpq_coarse_pieces *pieces, size_t c, size_t at, int bend)
{
    int64_t rank = bend > 0 ? pieces->least[at] : pieces->most[at];

    return p->rate * (double)bend * (double)(rank - rank_of(p, c));
}

/* One of the pieces of a cell, by their weights for a bend. */
static size_t
draw_piece(const dpq_coarse_problem *p, const dpq_coarse_pieces *pieces, size_t c, int bend,
           bitgen_t *rng, double *work)
{
    const double *volume = p->volume[bend + 1];
    double steepness = p->rate * (double)bend;
    size_t start, n, drawn = 0;
    int h = height_of(p, c), plain = 1;

    for (; h > 0; h--) { /* into the left or the right half, if there is a right one */
        size_t left = p->offset[h - 1] + 2 * (c - p->offset[h]);
        double log_weight[2];

        if (left + 1 >= p->offset[h]) {
            c = left;
            continue;
        }
        for (size_t i = 0; i < 2; i++) {
            log_weight[i] = log(volume[left + i]) -
                            steepness * (double)(rank_of(p, left + i) - rank_of(p, c));
        }
        (void)dpq_race_draw(2, log_weight, rng, &drawn);
        c = left + drawn;
    }
    start = pieces->start[c];
    n = pieces->start[c + 1] - start;
    if (n == 1) {
        return start;
    }
    for (size_t i = 0; i < n; i++) {
        work[i] = pieces->width[start + i];
        if (bend != 0) {
            work[i] *= exp(-loss_of(p, pieces, c, start + i, bend));
        }
        plain &= work[i] >= SMALL && work[i] <= LARGE;
    }
    if (plain) {
        return start + dpq_race_draw_plain(n, work, rng);
    }
    for (size_t i = 0; i < n; i++) {
        work[i] = log(pieces->width[start + i]) - loss_of(p, pieces, c, start + i, bend);
    }
    drawn = 0;
    (void)dpq_race_draw(n, work, rng, &drawn);
    return start + drawn;
}

static void
draw_point(const dpq_coarse_pieces *pieces, size_t at, bitgen_t *rng, int64_t *point,
           double *number)
{
    if (pieces->points) {
        *point = pieces->points[at] + 1 +
                 (int64_t)dpq_uniform_below((uint64_t)pieces->width[at], rng);
    }
    else {
        *number = pieces->numbers[at] + pieces->width[at] * dpq_uniform_unit(rng);
    }
}

/* A multiset of k outputs of a cell, by an urn on a lattice: each further one is a new output, or a copy
 * of one that is there with as much weight as a single new output has. */
static void
draw_multiset(const dpq_coarse_problem *p, const dpq_coarse_pieces *pieces, size_t c, size_t k,
              bitgen_t *rng, double *work, size_t *piece, int64_t *point, double *number)
{
    for (size_t i = 0; i < k; i++) {
        uint64_t places = p->lattice ? (uint64_t)p->volume[1][c] : 0;
        uint64_t drawn = places ? dpq_uniform_below(places + i, rng) : 0;
        int64_t here = 0;
        double at = 0.0;
        size_t s, where;

        if (drawn < places || !places) {
            where = draw_piece(p, pieces, c, 0, rng, work);
            draw_point(pieces, where, rng, &here, &at);
        }
        else {
            where = piece[drawn - places];
            here = point[drawn - places];
        }
        for (s = i; s > 0 && (pieces->points ? point[s - 1] > here : number[s - 1] > at); s--) {
            piece[s] = piece[s - 1];
            if (pieces->points) {
                point[s] = point[s - 1];
            }
            else {
                number[s] = number[s - 1];
            }
        }
        piece[s] = where;
        if (pieces->points) {
            point[s] = here;
        }
        else {
            number[s] = at;
        }
    }
}

void
dpq_coarse_points(const dpq_coarse_problem *p, const dpq_coarse_pieces *pieces, size_t size,
                  const size_t *path, const int64_t *bend, bitgen_t *rng, double *work,
                  size_t *piece, int64_t *point, double *number)
{
    size_t m = p->levels;

    for (size_t at = 0, k; at < size * m; at += k) {
        size_t end = (at / m + 1) * m;
        size_t c = path[at];

        for (k = 1; at + k < end && path[at + k] == c; k++) {
        }
        if (k > 1) {
            draw_multiset(p, pieces, c, k, rng, work, piece + at, point ? point + at : NULL,
                          number ? number + at : NULL);
            continue;
        }
        piece[at] = draw_piece(p, pieces, c, (int)bend[at], rng, work);
        draw_point(pieces, piece[at], rng, point ? point + at : NULL,
                   number ? number + at : NULL);
    }
}
