#include "coarse_rows.h"

#include <math.h>
#include <string.h>

#include "race.h"
#include "uniform.h"

#define REST 0x1p-53   /* a sum over k stops at this relative size of its rest: of one rounding */
#define FLOOR 0x1p-880 /* what is below is drawn as if it were this, and then taken by what it is */
#define LOG_FLOOR (-880.0 * DPQ_LN2)

/* The segment of row j that its i-th entry is in, */
static size_t
segment_of(const dpq_coarse_rows *rows, size_t j, size_t i)
{
    size_t lo = rows->begin[j], hi = rows->begin[j + 1];

    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;

        if (rows->segment[mid].at <= i) {
            lo = mid;
        }
        else {
            hi = mid;
        }
    }
    return lo;
}

/* and its cell. */
static size_t
cell_of(const dpq_coarse_rows *rows, size_t j, size_t i)
{
    const dpq_coarse_segment *segment = rows->segment + segment_of(rows, j, i);

    return segment->cell + (i - segment->at);
}

/* Weigh the entries of a block of row j as its sums do, unless that was done. */
static void
weigh_block(const dpq_coarse_problem *p, const dpq_decay *decay, const dpq_coarse_rows *rows,
            size_t j, size_t block, workspace *work)
{
    size_t n = rows->start[j + 1] - rows->start[j], i = block * BLOCK;
    size_t end = i + BLOCK < n ? i + BLOCK : n, s;

    if (work->weighed[block]) {
        return;
    }
    for (s = segment_of(rows, j, i); i < end; i++) {
        dpq_large *plus = work->faded[0] + i, *minus = work->faded[1] + i;
        size_t c;

        s += i == end_of(rows, j, s);
        c = rows->segment[s].cell + (i - rows->segment[s].at);
        leave(p, decay, rows, entry_of(rows, j, i), c, run_at(rows, j, i), plus, minus);
        (void)fade(p, decay, work, j, rank_of(p, c), plus, minus);
    }
    work->weighed[block] = 1;
}

/* Draw one of n numbers, not all 0, by what they are. The largest is 2^624 times FLOOR or more, and so what is drawn
 * is taken, but with probability n 2^-624. */
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

/* Sums by blocks of the weights of entries lo, ..., hi - 1 of row j, lo < hi; how many there are. The
 * first one ends where blocks end. */
static size_t
sums_of(const dpq_coarse_problem *p, const dpq_decay *decay, const dpq_coarse_rows *rows, size_t j,
        int side, size_t lo, size_t hi, workspace *work)
{
    const dpq_large *block = rows->block[side] + block_of(rows, j, 0);
    size_t n = 0, size = rows->start[j + 1] - rows->start[j];

    while (lo < hi) {
        size_t end = (lo / BLOCK + 1) * BLOCK;

        if (lo % BLOCK == 0 && (end <= hi || hi == size)) {
            work->some[n] = block[lo / BLOCK];
        }
        else {
            weigh_block(p, decay, rows, j, lo / BLOCK, work);
            work->some[n] = work->faded[side][lo];
            while (++lo < end && lo < hi) {
                work->some[n] = dpq_large_add(work->some[n], work->faded[side][lo]);
            }
        }
        n++;
        lo = end;
    }
    return n;
}

/* Draw one of the entries lo, ..., hi - 1 of row j as the one before a step with that sign. */
static size_t
draw_cell(const dpq_coarse_problem *p, const dpq_decay *decay, const dpq_coarse_rows *rows,
          size_t j, int sign, size_t lo, size_t hi, bitgen_t *rng, workspace *work)
{
    int side = sign < 0;
    size_t n = sums_of(p, decay, rows, j, side, lo, hi, work);
    size_t drawn = draw_one(n, work->some, rng, work->weight), end;

    lo = drawn > 0 ? (lo / BLOCK + drawn) * BLOCK : lo;
    end = (lo / BLOCK + 1) * BLOCK;
    weigh_block(p, decay, rows, j, lo / BLOCK, work);
    return lo + draw_one((end < hi ? end : hi) - lo, work->faded[side] + lo, rng, work->weight);
}

/* The first of the entries lo, ..., hi - 1 of row j at a rank r or above. */
static size_t
first_from(const dpq_coarse_problem *p, const dpq_coarse_rows *rows, size_t j, size_t lo, size_t hi,
           int64_t r)
{
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (rank_of(p, cell_of(rows, j, mid)) < r) {
            lo = mid + 1;
        }
        else {
            hi = mid;
        }
    }
    return lo;
}

/* How many cells of row j begin before a leaf. */
static size_t
begun_before(const dpq_coarse_problem *p, const dpq_coarse_rows *rows, size_t j, size_t leaf)
{
    size_t lo = rows->begin[j], hi = rows->begin[j + 1], first, at, end;
    int h = 0;

    while (lo < hi) { /* which of its segments do */
        size_t mid = lo + (hi - lo) / 2, c = rows->segment[mid].cell;

        h = height_of(p, c, h);
        if (leaf_of(p, c, h) < leaf) {
            lo = mid + 1;
        }
        else {
            hi = mid;
        }
    }
    if (lo == rows->begin[j]) {
        return 0;
    }
    lo--; /* of the last one of these so many cells: */
    h = height_of(p, rows->segment[lo].cell, h);
    first = leaf_of(p, rows->segment[lo].cell, h);
    at = rows->segment[lo].at + ((leaf - first - 1) >> h) + 1;
    end = end_of(rows, j, lo);
    return at < end ? at : end;
}

/* Whether row j has a cell, and which of its entries is that. */
static int
has_cell(const dpq_coarse_problem *p, const dpq_coarse_rows *rows, size_t j, size_t c, size_t *i)
{
    *i = begun_before(p, rows, j, leaf_of(p, c, height_of(p, c, 0)));
    return *i < rows->start[j + 1] - rows->start[j] && cell_of(rows, j, *i) == c;
}

/* Draw the last cell, and the sign of the step from it to the end. */
static size_t
draw_last(const dpq_coarse_problem *p, const dpq_decay *decay, const dpq_coarse_rows *rows,
          bitgen_t *rng, workspace *work, int *sign)
{
    size_t j = p->levels - 1, n = rows->start[j + 1] - rows->start[j];
    size_t bounds[3] = {0, first_from(p, rows, j, 0, n, p->whole[j] + 1), n};
    dpq_large total[2] = {DPQ_LARGE_ZERO, DPQ_LARGE_ZERO};
    size_t side;

    for (side = 0; side < 2; side++) {
        size_t blocks = sums_of(p, decay, rows, j, (int)side, bounds[side], bounds[side + 1], work);

        for (size_t i = 0; i < blocks; i++) {
            total[side] = dpq_large_add(total[side], work->some[i]);
        }
    }
    side = draw_one(2, total, rng, work->weight);
    *sign = side ? -1 : 1;
    return draw_cell(p, decay, rows, j, *sign, bounds[side], bounds[side + 1], rng, work);
}

/* Draw the sign of the step to the cell of entry `at`, which is the only, or the first, of its run. */
static int
draw_sign(const dpq_coarse_rows *rows, size_t at, double after_plus, double after_minus,
          bitgen_t *rng)
{
    dpq_large x[2] = {
        dpq_large_round(rows->weight[FROM_BELOW][at] * after_plus, rows->exponent[at]),
        dpq_large_round(rows->weight[FROM_ABOVE][at] * after_minus, rows->exponent[at])};
    double weight[2];

    return draw_one(2, x, rng, weight) ? -1 : 1;
}

/* What follows some weights: nothing; or the last one is a bound on it and on all that would follow; or rows that
 * are not held would say it. */
typedef enum { NOTHING, BOUNDED, UNKNOWN } following;

/* ln of the weights of 2, 3, ... outputs in the cell c of row j, in units of about the first one; how many there
 * are. None is a bound if `all` are asked for. */
static size_t
log_weights_of_runs(const dpq_coarse_problem *p, const dpq_decay *decay,
                    const dpq_scan_level *level, const dpq_coarse_rows *rows, const workspace *work,
                    size_t j, size_t c, int all, double *log_weight, following *rest)
{
    const double low = low_of(p, decay, c);
    size_t l = j, n = 0, i;
    dpq_large factor = dpq_large_of(1.0), sum = DPQ_LARGE_ZERO;
    int64_t unit = 0;

    *rest = NOTHING;
    for (size_t k = 2; l > 0 && has_cell(p, rows, l - 1, c, &i); k++) {
        double places = p->volume[1][c] + (p->lattice ? (double)(k - 1) : 0.0);
        dpq_large first, bound;
        size_t at;

        if (l-- == rows->held) {
            *rest = UNKNOWN;
            break;
        }
        at = entry_of(rows, l, i);
        factor = dpq_large_mul(factor, dpq_large_of(places * level[k - 1].share));
        factor = dpq_large_mul(factor, stay_at(p, decay, work, l, rank_of(p, c), NULL));
        bound = dpq_large_mul(factor, first_of_run(rows, at, low, run_at(rows, l, i)));
        first = dpq_large_mul(factor, first_of_run(rows, at, low, 0.0));
        unit = n == 0 ? first.exponent : unit;
        first.exponent -= unit;
        bound.exponent -= unit;
        if (!all && n > 0 &&
            dpq_large_less(bound, dpq_large_mul(sum, dpq_large_of(REST)))) {
            *rest = BOUNDED;
            log_weight[n] = dpq_large_log(bound) + 0x1p-20; /* more than what rounding takes */
            return n + 1;
        }
        log_weight[n++] = dpq_large_log(first);
        sum = dpq_large_add(sum, first);
    }
    return n;
}

/* Draw how many outputs there are in the cell of a run, which ends with row j; 0 if more rows have to be held for
 * that. What was drawn by then is kept. A bound is drawn with probability REST at most, and only then may there be
 * another round. */
static size_t
draw_run(const dpq_coarse_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
         const dpq_coarse_rows *rows, const workspace *work, size_t j, dpq_coarse_draw *draw, bitgen_t *rng)
{
    const size_t c = draw->next;
    double *log_weight = work->weight;

    for (;;) {
        following rest;
        size_t n = log_weights_of_runs(p, decay, level, rows, work, j, c, 0, log_weight, &rest);
        size_t drawn = 0;
        double bound;

        if (rest == UNKNOWN) {
            return 0;
        }
        bound = log_weight[n - 1];
        if (draw->known == DPQ_COARSE_RUN) {
            (void)dpq_race_draw(n, log_weight, rng, &drawn);
            if (rest == NOTHING || drawn + 1 < n) {
                return drawn + 2;
            }
            draw->known = DPQ_COARSE_LONG_RUN;
        }
        drawn = n - 1;
        n = log_weights_of_runs(p, decay, level, rows, work, j, c, 1, log_weight, &rest);
        if (rest == UNKNOWN) {
            return 0;
        }
        if (dpq_uniform_log(rng) < dpq_race_log_sum(n - drawn, log_weight + drawn) - bound) {
            size_t more = 0;

            (void)dpq_race_draw(n - drawn, log_weight + drawn, rng, &more);
            return drawn + more + 2;
        }
        draw->known = DPQ_COARSE_RUN;
    }
}

/* Draw whether there are several outputs in the cell of entry i of row j, given the sign of the step that leaves
 * it. If there is one, also the sign of the step that enters it. */
static int
draw_several(const dpq_coarse_problem *p, const dpq_decay *decay, const dpq_coarse_rows *rows, size_t j, size_t i,
             int leaving, bitgen_t *rng, int *entering)
{
    size_t at = entry_of(rows, j, i), c = cell_of(rows, j, i);
    double from_plus = bent(p, c, leaving > 0 ? 0 : 1), from_minus = bent(p, c, leaving > 0 ? -1 : 0);
    double below = rows->weight[FROM_BELOW][at], above = rows->weight[FROM_ABOVE][at];
    double run = run_at(rows, j, i) * (leaving > 0 ? high_of(p, decay, c) : 1.0), weight[2];
    dpq_large x[2] = {
        dpq_large_round(below * from_plus + above * from_minus, rows->exponent[at]),
        dpq_large_round(run, rows->exponent[at])};

    if (draw_one(2, x, rng, weight)) {
        return 1;
    }
    *entering = draw_sign(rows, at, from_plus, from_minus, rng);
    return 0;
}

void
dpq_coarse_begin(const dpq_coarse_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
                 const dpq_coarse_rows *rows, size_t size, dpq_coarse_draw *state, void *room)
{
    const workspace work = workspace_of(p, rows, room);

    prepare(p, decay, level, &work);
    for (size_t i = 0; i < size; i++) {
        state[i] = (dpq_coarse_draw){.levels = p->levels, .next = DPQ_COARSE_NONE};
    }
}

/* Draw the cell of one path at level j, and whether it has several outputs. */
static void
draw_cell_at(const dpq_coarse_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
             const dpq_coarse_rows *rows, size_t j, bitgen_t *rng, dpq_coarse_draw *draw, workspace *work)
{
    size_t lo = 0, hi = rows->start[j + 1] - rows->start[j], drawn;

    if (draw->next == DPQ_COARSE_NONE) {
        drawn = draw_last(p, decay, rows, rng, work, &draw->sign);
    }
    else {
        int h = height_of(p, draw->next, 0);
        size_t stop = leaf_of(p, draw->next, h) + ((size_t)1 << h), turn;

        /* all that begins before the next cell ends, but not that cell */
        hi = begun_before(p, rows, j, stop);
        hi -= hi > 0 && cell_of(rows, j, hi - 1) == draw->next ? 1 : 0;
        turn = first_from(p, rows, j, 0, hi, rank_of(p, draw->next) - level[j + 1].reach + 1);
        lo = draw->sign > 0 ? 0 : turn;
        hi = draw->sign > 0 ? turn : hi;
        drawn = draw_cell(p, decay, rows, j, draw->sign, lo, hi, rng, work);
    }
    if (draw_several(p, decay, rows, j, drawn, draw->sign, rng, &draw->sign)) {
        draw->known = DPQ_COARSE_RUN;
    }
    draw->next = (uint32_t)cell_of(rows, j, drawn);
}

/* Draw one path at level j, and at those before it that are in a run with it. No if more rows have to be held. */
static int
draw_run_to(const dpq_coarse_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
            const dpq_coarse_rows *rows, size_t j, bitgen_t *rng, dpq_coarse_draw *draw,
            workspace *work, size_t *path)
{
    size_t k = 1;

    if (draw->known == DPQ_COARSE_ANY) {
        draw_cell_at(p, decay, level, rows, j, rng, draw, work);
    }
    if (draw->known != DPQ_COARSE_ANY) {
        size_t c = draw->next, i;

        k = draw_run(p, decay, level, rows, work, j, draw, rng);
        if (k == 0) {
            return 0;
        }
        (void)has_cell(p, rows, j + 1 - k, c, &i);
        draw->sign = draw_sign(rows, entry_of(rows, j + 1 - k, i), low_of(p, decay, c), 1.0, rng);
        draw->known = DPQ_COARSE_ANY;
    }
    draw->levels -= k;
    for (size_t l = j + 1 - k; l <= j; l++) {
        path[l] = draw->next;
    }
    return 1;
}

size_t
dpq_coarse_paths(const dpq_coarse_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
                 const dpq_coarse_rows *rows, size_t first, size_t last, size_t size, bitgen_t *rng,
                 dpq_coarse_draw *state, void *room, size_t *path)
{
    workspace work = workspace_of(p, rows, room);

    for (size_t j = last; j-- > first;) {
        int are_drawn = 1;

        memset(work.weighed, 0,
               blocks_of(rows->start[j + 1] - rows->start[j]) * sizeof *work.weighed);
        for (size_t i = 0; i < size; i++) {
            if (state[i].levels == j + 1) { /* not in a run with the level after it */
                are_drawn &= draw_run_to(p, decay, level, rows, j, rng, state + i, &work, path + i * p->levels);
            }
        }
        if (!are_drawn) {
            return j + 1;
        }
    }
    return first;
}
