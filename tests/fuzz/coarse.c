#include "coarse.h"

#include "fuzz.h"

#define MOST_LEAVES 24
#define MOST_LEVELS 7
#define MOST_CELLS 64
#define MOST_PIECES 3
#define MOST_STRETCHES 5
#define LOWEST -8000.0L /* ln of what long double still holds with all that led to it */

typedef struct {
    dpq_coarse_problem p;
    dpq_coarse_pieces pieces;
    size_t offset[8], from[MOST_LEVELS], to[MOST_LEVELS], start[MOST_LEAVES + 1];
    size_t stretch[MOST_LEVELS + 1];
    int32_t narrow_least[MOST_CELLS], narrow_most[MOST_CELLS];
    int64_t least[MOST_CELLS], most[MOST_CELLS], whole[MOST_LEVELS], until[MOST_LEVELS * MOST_STRETCHES];
    double volume[3][MOST_CELLS], part[MOST_LEVELS],
        span[MOST_LEVELS * MOST_STRETCHES];
    int64_t piece_least[MOST_LEAVES * MOST_PIECES], piece_most[MOST_LEAVES * MOST_PIECES],
        points[MOST_LEAVES * MOST_PIECES];
    double width[MOST_LEAVES * MOST_PIECES], numbers[MOST_LEAVES * MOST_PIECES];
} problem;

static int64_t
least_of(const dpq_coarse_problem *p, size_t c)
{
    return dpq_coarse_rank(&p->least, c);
}

static int64_t
most_of(const dpq_coarse_problem *p, size_t c)
{
    return dpq_coarse_rank(&p->most, c);
}

static int64_t
rank_of(const dpq_coarse_problem *p, size_t c)
{
    return least_of(p, c) + (most_of(p, c) - least_of(p, c)) / 2;
}

static size_t
height_of(const dpq_coarse_problem *p, size_t c)
{
    size_t h = 0;

    while (c >= p->offset[h + 1]) {
        h++;
    }
    return h;
}

static size_t
first_leaf(const dpq_coarse_problem *p, size_t c, size_t *end)
{
    size_t h = height_of(p, c);

    *end = (c - p->offset[h] + 1) << h;
    *end = *end < p->leaves ? *end : p->leaves;
    return (c - p->offset[h]) << h;
}

static void
draw_problem(fuzz_input *in, problem *x)
{
    size_t leaves = (size_t)fuzz_between(in, 1, MOST_LEAVES), m = (size_t)fuzz_between(in, 1, MOST_LEVELS);
    double rate = ldexp(1.0 + fuzz_share(in), (int)fuzz_between(in, -12, 3));
    int lattice = fuzz_bit(in), kind = (int)fuzz_between(in, 0, 3), huge = kind == 0, far = kind == 1;
    int64_t n = far ? 9000 : 0, at = -1; /* thousands of ranks, which no table of decays may have */
    double q[MOST_LEVELS];
    size_t pieces = 0, c, longest = 1;

    memset(x, 0, sizeof *x);
    for (size_t i = 0; i < leaves; i++) {
        size_t size = (size_t)fuzz_between(in, 1, MOST_PIECES);

        x->start[i] = pieces;
        longest = size > longest ? size : longest;
        for (size_t k = 0; k < size; k++, pieces++) {
            int64_t span = fuzz_between(in, 0, 3), gap = fuzz_between(in, 0, 2);

            x->piece_least[pieces] = n += pieces ? gap : 0;
            x->piece_most[pieces] = n += span;
            x->points[pieces] = at;
            x->numbers[pieces] = (double)at;
            x->width[pieces] = (double)(huge ? (int64_t)1 << fuzz_between(in, 0, 40)
                                             : fuzz_between(in, 1, 9));
            at += (int64_t)x->width[pieces];
        }
        n += fuzz_between(in, 0, 2) == 0 ? fuzz_between(in, 0, 60) << (far ? 8 : 0) : 0;
        x->least[i] = x->piece_least[x->start[i]];
        x->most[i] = x->piece_most[pieces - 1];
        for (size_t k = x->start[i]; k < pieces; k++) {
            int64_t rho =
                rank_of(&(dpq_coarse_problem){.least.wide = x->least, .most.wide = x->most}, i);

            x->volume[0][i] += x->width[k] * exp(2.0 * rate * (double)(x->piece_most[k] - rho));
            x->volume[1][i] += x->width[k];
            x->volume[2][i] += x->width[k] * exp(-2.0 * rate * (double)(x->piece_least[k] - rho));
        }
    }
    x->start[leaves] = pieces;
    x->p = (dpq_coarse_problem){.leaves = leaves, .heights = 1, .offset = x->offset,
                                .least.wide = x->least, .most.wide = x->most,
                                .volume = {x->volume[0], x->volume[1], x->volume[2]},
                                .lattice = lattice, .levels = m,
                                .whole = x->whole, .part = x->part, .from = x->from, .to = x->to,
                                .stretch = x->stretch, .until = x->until, .span = x->span,
                                .rate = 2.0 * rate};
    x->offset[1] = c = leaves;
    for (size_t before = 0, size = leaves; size > 1; x->p.heights++) {
        size_t halves = (size + 1) / 2;

        for (size_t i = 0; i < halves; i++, c++) {
            size_t left = before + 2 * i, right = 2 * i + 1 < size ? left + 1 : left;

            x->least[c] = x->least[left];
            x->most[c] = x->most[right];
            for (int bend = -1; bend < 2; bend++) {
                for (size_t half = left; half <= right; half++) {
                    double away = (double)(rank_of(&x->p, half) - rank_of(&x->p, c));

                    /* cells that are too wide for a volume are not used */
                    x->volume[bend + 1][c] += x->volume[bend + 1][half] *
                                              exp(fmin(-2.0 * rate * bend * away, 100.0));
                }
            }
        }
        before += size;
        size = halves;
        x->offset[x->p.heights + 1] = c;
    }
    if (n <= INT32_MAX && fuzz_bit(in)) {
        for (size_t i = 0; i < c; i++) {
            x->narrow_least[i] = (int32_t)x->least[i];
            x->narrow_most[i] = (int32_t)x->most[i];
        }
        x->p.least = (dpq_coarse_ranks){NULL, x->narrow_least};
        x->p.most = (dpq_coarse_ranks){NULL, x->narrow_most};
    }
    for (size_t j = 0; j < m; j++) {
        q[j] = fuzz_share(in);
    }
    qsort(q, m, sizeof *q, fuzz_compare_numbers);
    dpq_scan_targets(m, q, n, x->whole, x->part);
    for (size_t j = 0; j < m; j++) {
        size_t before = j ? x->from[j - 1] : 0, end = j ? x->to[j - 1] : 1;

        x->from[j] = (size_t)fuzz_between(in, (int64_t)before, (int64_t)leaves - 1);
        end = end > x->from[j] + 1 ? end : x->from[j] + 1;
        x->to[j] = (size_t)fuzz_between(in, (int64_t)end, (int64_t)leaves);
        x->stretch[j + 1] = x->stretch[j] + (size_t)fuzz_between(in, 1, MOST_STRETCHES);
        for (size_t s = x->stretch[j]; s < x->stretch[j + 1]; s++) {
            int64_t begin = s > x->stretch[j] ? x->until[s - 1] : fuzz_between(in, -9, n);

            x->until[s] = s + 1 < x->stretch[j + 1] ? begin + fuzz_between(in, 1, 40) : INT64_MAX;
            x->span[s] = ldexp(1.0, (int)fuzz_between(in, -6, 6));
        }
    }
    x->pieces = (dpq_coarse_pieces){NULL, x->start, x->width, x->piece_least, x->piece_most,
                                    lattice ? x->points : NULL, lattice ? NULL : x->numbers,
                                    longest};
}

/* Sums of all leaves of each cell, or infinite if one of them holds more than all around it. */
static void
check_tree(const problem *x, int64_t near)
{
    const dpq_coarse_problem *p = &x->p;
    size_t cells = p->offset[p->heights];
    uint8_t *heavy = fuzz_room(p->leaves, 1);
    int64_t *least = fuzz_room(cells, sizeof *least), *most = fuzz_room(cells, sizeof *most);
    int32_t *narrow[2] = {fuzz_room(cells, sizeof **narrow), fuzz_room(cells, sizeof **narrow)};
    dpq_coarse_ranks low = {.narrow = narrow[0]}, high = {.narrow = narrow[1]};
    double *volume[3];
    dpq_decay decay;

    memcpy(least, x->least, p->leaves * sizeof *least);
    memcpy(most, x->most, p->leaves * sizeof *most);
    for (int bend = 0; bend < 3; bend++) {
        volume[bend] = fuzz_room(cells, sizeof *volume[bend]);
        memcpy(volume[bend], x->volume[bend], p->leaves * sizeof *volume[bend]);
    }
    dpq_decay_fill(&decay, p->rate, 8);
    for (size_t i = 0; i < p->leaves; i++) {
        low.narrow[i] = (int32_t)least[i];
        high.narrow[i] = (int32_t)most[i];
    }
    dpq_coarse_tree(&decay, p->heights, p->offset, near, heavy, &low, &high, volume);
    low = (dpq_coarse_ranks){.wide = least};
    high = (dpq_coarse_ranks){.wide = most};
    dpq_coarse_tree(&decay, p->heights, p->offset, near, heavy, &low, &high, volume);
    for (size_t c = 0; c < cells; c++) {
        CHECK(narrow[0][c] == least[c] && narrow[1][c] == most[c]);
    }
    for (size_t i = 0; i < p->leaves; i++) {
        double around = 0.0;

        for (size_t k = 0; k < p->leaves; k++) {
            around += most[k] >= least[i] - near && least[k] <= most[i] + near ? volume[1][k] : 0.0;
        }
        CHECK(!heavy[i] == !(2.0 * volume[1][i] > around));
    }
    for (size_t c = p->leaves; c < cells; c++) {
        size_t end, first = first_leaf(p, c, &end);
        long double sum[3] = {0}, wide = (long double)p->rate * (long double)(most[c] - least[c]);
        int alone = 0;

        CHECK(least[c] == least[first] && most[c] == most[end - 1]);
        for (size_t i = first; i < end; i++) {
            long double away = (long double)(least[i] + (most[i] - least[i]) / 2 -
                                             (least[c] + (most[c] - least[c]) / 2));

            alone |= heavy[i];
            for (int bend = -1; bend < 2; bend++) {
                sum[bend + 1] += x->volume[bend + 1][i] * expl(-(long double)p->rate * bend * away);
            }
        }
        for (int bend = 0; bend < 3; bend++) {
            if (alone) {
                CHECK(volume[bend][c] == INFINITY);
            }
            else if (wide <= 32.0L) { /* else it is not used */
                CHECK(fabsl(volume[bend][c] - sum[bend]) <= 1e-12L * sum[bend]);
            }
            CHECK(volume[bend][c] > 0.0);
        }
    }
    for (int bend = 0; bend < 3; bend++) {
        free(volume[bend]);
    }
    free(narrow[0]);
    free(narrow[1]);
    free(most);
    free(least);
    free(heavy);
}

/* Whether a cell of several leaves may be used at level j, by all stretches. */
static int
may_be_used(const dpq_coarse_problem *p, size_t j, size_t c)
{
    double span = 0.5 * p->rate * (double)(most_of(p, c) - least_of(p, c));
    int may = span <= DPQ_COARSE_WIDEST && p->volume[1][c] < INFINITY;
    int64_t begin = INT64_MIN;

    for (size_t s = p->stretch[j]; s < p->stretch[j + 1]; s++) {
        if (begin <= most_of(p, c) && p->until[s] >= least_of(p, c)) {
            may &= span <= p->span[s];
        }
        begin = p->until[s] < INT64_MAX ? p->until[s] + 1 : INT64_MAX;
    }
    return may;
}

/* All leaves once, in cells that may be used and none of which could be higher. */
static void
check_rows(const dpq_coarse_problem *p, const size_t *start, const uint32_t *node)
{
    for (size_t j = 0; j < p->levels; j++) {
        size_t leaf = p->from[j], end;

        for (size_t at = start[j]; at < start[j + 1]; at++) {
            size_t h = height_of(p, node[at]), above;

            CHECK(first_leaf(p, node[at], &end) == leaf);
            CHECK(h == 0 || may_be_used(p, j, node[at]));
            if (h + 1 < (size_t)p->heights && leaf % ((size_t)2 << h) == 0) {
                size_t last;

                above = p->offset[h + 1] + (leaf >> (h + 1));
                (void)first_leaf(p, above, &last);
                CHECK(end == p->leaves || last > p->to[j] || !may_be_used(p, j, above));
            }
            leaf = end;
        }
        CHECK(leaf == p->to[j]);
    }
}

/* Sums over paths whose last cells are the first ones of a run or alone (1), or not (0), for both signs,
 * by the definition in coarse.h: every step between two rows is looked at. */
static long double
plain_total(const dpq_coarse_problem *p, const size_t *start, const uint32_t *node)
{
    static long double plus[MOST_LEVELS][MOST_LEAVES], minus[MOST_LEVELS][MOST_LEAVES],
        leave[2][MOST_LEVELS][MOST_LEAVES];
    long double total = 0, c = (long double)p->rate / 2;
    size_t m = p->levels;

#define V(j, cell) ((long double)(rank_of(p, cell) - p->whole[j]) - p->part[j])
    for (size_t j = 0; j < m; j++) {
        for (size_t i = 0; i < start[j + 1] - start[j]; i++) {
            size_t cell = node[start[j] + i], end, other, at = cell;
            long double low = expl((long double)p->rate * (long double)(rank_of(p, cell) - least_of(p, cell)));
            long double high = expl((long double)p->rate * (long double)(most_of(p, cell) - rank_of(p, cell)));
            long double v = V(j, cell), run = 0, factor = 1;

            (void)first_leaf(p, cell, &end);
            plus[j][i] = j == 0 && v >= 0 ? expl(-c * v) : 0;
            minus[j][i] = j == 0 && v < 0 ? expl(c * v) : 0;
            for (size_t s = 0; j > 0 && s < start[j] - start[j - 1]; s++) {
                size_t before = node[start[j - 1] + s];
                long double u = V(j - 1, before);

                if (before == cell || first_leaf(p, before, &other) >= end) {
                    continue;
                }
                if (u <= v) {
                    plus[j][i] += leave[0][j - 1][s] * expl(-c * (v - u));
                }
                else {
                    minus[j][i] += leave[1][j - 1][s] * expl(-c * (u - v));
                }
            }
            for (size_t l = j, k = 2; l > 0; l--, k++) {
                size_t s = 0, size = start[l] - start[l - 1];

                while (s < size && node[start[l - 1] + s] != at) {
                    s++;
                }
                if (s == size) {
                    break;
                }
                factor *= ((long double)p->volume[1][cell] + (p->lattice ? (long double)(k - 1) : 0)) / k *
                          expl(-c * (V(l - 1, cell) - V(l, cell)));
                run += factor * p->volume[1][cell] *
                       (low * plus[l - 1][s] + minus[l - 1][s]);
            }
            leave[0][j][i] = p->volume[1][cell] * plus[j][i] + p->volume[0][cell] * minus[j][i] +
                             high * run;
            leave[1][j][i] = p->volume[2][cell] * plus[j][i] + p->volume[1][cell] * minus[j][i] + run;
            if (j == m - 1) {
                total += v <= 0 ? leave[0][j][i] * expl(c * v) : leave[1][j][i] * expl(-c * v);
            }
        }
    }
#undef V
    return logl(total);
}

/* Whether a path is one of cells of the rows that may follow each other. */
static void
check_path(const dpq_coarse_problem *p, const size_t *start, const uint32_t *node,
           const size_t *path, const int64_t *bend)
{
    for (size_t j = 0; j < p->levels; j++) {
        size_t at = start[j], end, other;

        while (at < start[j + 1] && node[at] != path[j]) {
            at++;
        }
        CHECK(at < start[j + 1]);
        (void)first_leaf(p, path[j], &end);
        CHECK(j == 0 || first_leaf(p, path[j - 1], &other) < end);
        CHECK(bend[j] >= -1 && bend[j] <= 1);
    }
}

/* Rows of some levels, and what a pass over them needs. */
typedef struct {
    dpq_coarse_rows rows;
    dpq_coarse_runs runs;
    void *work;
} passed;

/* Room for the rows of levels held, ..., stop - 1, and for so many runs. */
static void
make_rows(passed *x, const dpq_coarse_rows *all, size_t held, size_t stop, size_t levels, size_t room,
          size_t room_kept)
{
    size_t entries = all->start[stop] - all->start[held], longest = 1, blocks;

    x->rows = *all;
    x->rows.held = held;
    blocks = dpq_coarse_block(&x->rows, stop) + 1;
    for (size_t j = 0; j < levels; j++) {
        size_t n = all->start[j + 1] - all->start[j];

        longest = n > longest ? n : longest;
    }
    x->rows.exponent = fuzz_room(entries, sizeof *x->rows.exponent);
    x->rows.first_run = fuzz_room(blocks, sizeof *x->rows.first_run);
    x->rows.has_run = fuzz_room(blocks, sizeof *x->rows.has_run);
    x->rows.run = fuzz_room(room_kept, sizeof *x->rows.run);
    x->runs = (dpq_coarse_runs){.room = room, .room_kept = room_kept};
    for (int side = 0; side < 2; side++) {
        x->rows.weight[side] = fuzz_room(entries, sizeof *x->rows.weight[side]);
        x->rows.block[side] = fuzz_room(blocks, sizeof *x->rows.block[side]);
        x->runs.weight[side] = fuzz_room(room, sizeof *x->runs.weight[side]);
    }
    x->work = fuzz_room(dpq_coarse_room(longest, levels), 1);
}

static void
free_rows(passed *x)
{
    for (int side = 0; side < 2; side++) {
        free(x->rows.weight[side]);
        free(x->rows.block[side]);
        free(x->runs.weight[side]);
    }
    free(x->rows.exponent);
    free(x->rows.first_run);
    free(x->rows.has_run);
    free(x->rows.run);
    free(x->work);
}

/* The pass over levels first, ..., stop - 1, with a little more room for runs whenever that is short. */
static void
pass_over(passed *x, const dpq_coarse_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
          size_t first, size_t stop)
{
    size_t j = first;

    while ((j = dpq_coarse_forward(p, decay, level, &x->rows, j, stop, &x->runs, x->work)) < stop) {
        double *more_kept = fuzz_room(x->runs.room_kept + 1, sizeof *more_kept);

        memcpy(more_kept, x->rows.run, x->runs.room_kept * sizeof *more_kept);
        free(x->rows.run);
        x->rows.run = more_kept;
        x->runs.room_kept++;
        x->runs.room++;
        for (int turn = 0; turn < 2; turn++) {
            dpq_large *more = fuzz_room(x->runs.room, sizeof *more);

            memcpy(more, x->runs.weight[turn], (x->runs.room - 1) * sizeof *more);
            free(x->runs.weight[turn]);
            x->runs.weight[turn] = more;
        }
    }
}

/* The rows from `stop` on, after the last one of some others, which is given. */
static void
pass_after(passed *x, const passed *before, size_t stop, const dpq_coarse_problem *p, const dpq_decay *decay,
           const dpq_scan_level *level)
{
    const size_t held = stop - 1, *start = before->rows.start, block = dpq_coarse_block(&before->rows, held);
    const size_t n = start[stop] - start[held], at = start[held] - start[before->rows.held];
    const size_t *begins = dpq_coarse_begins(p, &before->rows, held, before->work);
    const size_t first_run = before->rows.first_run[block], kept = before->runs.kept - first_run;

    make_rows(x, &before->rows, held, p->levels, p->levels, begins[n], kept);
    x->runs.kept = kept;
    memcpy(x->rows.exponent, before->rows.exponent + at, n * sizeof *x->rows.exponent);
    memcpy(x->rows.run, before->rows.run + first_run, kept * sizeof *x->rows.run);
    memcpy(x->runs.weight[held % 2], before->runs.weight[held % 2], begins[n] * sizeof(dpq_large));
    for (size_t i = 0; i < (n + DPQ_COARSE_BLOCK - 1) / DPQ_COARSE_BLOCK; i++) {
        x->rows.first_run[i] = before->rows.first_run[block + i] - first_run;
        x->rows.has_run[i] = before->rows.has_run[block + i];
    }
    for (int side = 0; side < 2; side++) {
        memcpy(x->rows.weight[side], before->rows.weight[side] + at, n * sizeof(double));
    }
    dpq_coarse_begin_pass(p, decay, level, &x->rows, begins, x->work);
    pass_over(x, p, decay, level, stop, p->levels);
}

/* Rows are the same when they are computed in two parts, and so are paths that are drawn by the second one as far
 * as that goes. */
static void
check_parts(fuzz_input *in, const passed *whole, const dpq_coarse_problem *p, const dpq_decay *decay,
            const dpq_scan_level *level)
{
    const size_t m = p->levels, stop = (size_t)fuzz_between(in, 1, (int64_t)m - 1), *start = whole->rows.start;
    const size_t at = start[stop] - start[stop - 1];
    passed before, after;
    fuzz_input again;
    bitgen_t rng;
    dpq_coarse_draw state;
    size_t path[2][MOST_LEVELS], low, drawn;
    void *work = whole->work;

    make_rows(&before, &whole->rows, 0, stop, m, 0, 0);
    dpq_coarse_begin_pass(p, decay, level, &before.rows, NULL, before.work);
    pass_over(&before, p, decay, level, 0, stop);
    pass_after(&after, &before, stop, p, decay, level);
    for (int side = 0; side < 2; side++) {
        CHECK(memcmp(whole->rows.weight[side] + start[stop], after.rows.weight[side] + at,
                     (start[m] - start[stop]) * sizeof(double)) == 0);
    }
    CHECK(memcmp(whole->rows.exponent + start[stop], after.rows.exponent + at,
                 (start[m] - start[stop]) * sizeof(int32_t)) == 0);
    CHECK(dpq_coarse_total(p, &after.rows, after.work) == dpq_coarse_total(p, &whole->rows, work));
    again = *in;
    rng = fuzz_generator(&again);
    dpq_coarse_begin(p, decay, level, &whole->rows, 1, &state, work);
    CHECK(dpq_coarse_paths(p, decay, level, &whole->rows, 0, m, 1, &rng, &state, work, path[0]) == 0);
    again = *in;
    dpq_coarse_begin(p, decay, level, &after.rows, 1, &state, after.work);
    low = (size_t)fuzz_between(&again, (int64_t)stop - 1, (int64_t)m);
    again = *in;
    drawn = dpq_coarse_paths(p, decay, level, &after.rows, low, m, 1, &rng, &state, after.work, path[1]);
    CHECK(drawn >= low && drawn <= m);
    CHECK(dpq_coarse_paths(p, decay, level, &whole->rows, 0, drawn, 1, &rng, &state, after.work, path[1]) ==
          0);
    CHECK(memcmp(path[0], path[1], m * sizeof *path[0]) == 0);
    free_rows(&after);
    free_rows(&before);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size, 1};
    static problem x;
    passed all;
    dpq_coarse_rows rows = {0};
    dpq_decay decay;
    dpq_scan_level level[MOST_LEVELS];
    size_t start[MOST_LEVELS + 1], begin[MOST_LEVELS + 1], entries, draws = 5, m;
    dpq_coarse_segment *segment;
    uint32_t *node;
    void *work;
    double found;
    long double expected;
    bitgen_t rng;

    draw_problem(&in, &x);
    m = x.p.levels;
    check_tree(&x, fuzz_between(&in, 0, 40));
    entries = dpq_coarse_cells(&x.p, 0, start, begin, NULL);
    CHECK(entries <= m * x.p.leaves);
    segment = fuzz_room(begin[m], sizeof *segment);
    CHECK(dpq_coarse_cells(&x.p, begin[m], start, begin, segment) == entries);
    node = fuzz_room(entries, sizeof *node);
    for (size_t j = 0, at = 0; j < m; j++) {
        for (size_t s = begin[j]; s < begin[j + 1]; s++) {
            size_t end = s + 1 < begin[j + 1] ? start[j] + segment[s + 1].at : start[j + 1];

            CHECK(at == start[j] + segment[s].at && at < end);
            for (uint32_t cell = segment[s].cell; at < end; cell++) {
                node[at++] = cell;
            }
        }
        CHECK(at == start[j + 1]);
    }
    check_rows(&x.p, start, node);
    rows.start = start;
    rows.begin = begin;
    rows.segment = segment;
    make_rows(&all, &rows, 0, m, m, (size_t)fuzz_between(&in, 0, MOST_LEAVES),
              (size_t)fuzz_between(&in, 0, MOST_LEAVES));
    memset(&decay, 0xA5, sizeof decay);
    dpq_coarse_prepare(&x.p, &decay, level);
    dpq_coarse_begin_pass(&x.p, &decay, level, &all.rows, NULL, all.work);
    pass_over(&all, &x.p, &decay, level, 0, m);
    rows = all.rows;
    work = all.work;
    found = dpq_coarse_total(&x.p, &rows, work);
    expected = plain_total(&x.p, start, node);
    if (expected > LOWEST) {
        CHECK(fabsl(found - expected) <= 1e-9L * (1 + fabsl(expected)));
    }
    else {
        CHECK(found <= LOWEST + 1);
    }
    if (found > -INFINITY) {
        dpq_coarse_draw *state = fuzz_room(draws, sizeof *state);
        size_t *path = fuzz_room(draws * m, sizeof *path), *piece = fuzz_room(draws * m, sizeof *piece);
        int64_t *bend = fuzz_room(draws * m, sizeof *bend), *point = fuzz_room(draws * m, sizeof *point);
        double *number = fuzz_room(draws * m, sizeof *number);
        double *weight = fuzz_room(x.pieces.longest, sizeof *weight);
        size_t *leaf = fuzz_room(draws * m, sizeof *leaf);
        uint32_t *copied = fuzz_room(draws * m, sizeof *copied);

        if (m > 1) {
            check_parts(&in, &all, &x.p, &decay, level);
        }
        rng = fuzz_generator(&in);
        dpq_coarse_begin(&x.p, &decay, level, &rows, draws, state, work);
        for (size_t last = m, first; last > 0; last = first) { /* some levels at a time */
            first = (size_t)fuzz_between(&in, 0, (int64_t)last - 1);
            CHECK(dpq_coarse_paths(&x.p, &decay, level, &rows, first, last, draws, &rng, state, work, path) ==
                  first);
        }
        dpq_coarse_bends(&x.p, draws, path, bend);
        dpq_coarse_leaves(&x.p, draws, m, path, bend, &rng, leaf, copied);
        x.pieces.slot = leaf;
        dpq_coarse_points(&x.p, &x.pieces, draws, m, path, bend, leaf, copied, &rng, weight, piece,
                          x.p.lattice ? point : NULL, x.p.lattice ? NULL : number);
        for (size_t i = 0; i < draws; i++) {
            check_path(&x.p, start, node, path + i * m, bend + i * m);
        }
        for (size_t i = 0; i < draws * m; i++) {
            size_t end, first = first_leaf(&x.p, path[i], &end);

            CHECK(leaf[i] >= first && leaf[i] < end);
            CHECK(copied[i] == DPQ_COARSE_NONE || path[i - i % m + copied[i]] < x.offset[x.p.heights]);
            CHECK(piece[i] >= x.start[first] && piece[i] < x.start[end]);
            if (x.p.lattice) {
                CHECK(point[i] > x.points[piece[i]] &&
                      point[i] <= x.points[piece[i]] + (int64_t)x.width[piece[i]]);
            }
            else {
                CHECK(number[i] >= x.numbers[piece[i]] &&
                      number[i] <= x.numbers[piece[i]] + x.width[piece[i]]);
            }
        }
        free(copied);
        free(leaf);
        free(weight);
        free(number);
        free(point);
        free(bend);
        free(piece);
        free(path);
        free(state);
    }
    free_rows(&all);
    free(node);
    free(segment);
    return 0;
}
