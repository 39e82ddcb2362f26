#include "coarse.h"

#include <math.h>
#include <string.h>

#include "coarse_rows.h"
#include "ranks.h"
#include "step.h"

#define EACH_REST 0x1p-63 /* each level leaves out a rest of this relative size */
#define HELD 0x1p-768     /* a sum is at least this, in units of the entry's largest */

size_t
dpq_coarse_room(size_t longest, size_t levels)
{
    return (7 * longest + blocks_of(longest) + 3 * levels) * sizeof(dpq_large) +
           weights_of(longest, levels) * sizeof(double) + 2 * (longest + 1) * sizeof(size_t) +
           2 * longest * sizeof(int64_t) +
           (6 * longest + blocks_of(longest)) * sizeof(uint32_t);
}

/* The cells of row j, their ranks and their first leaves. */
static void
look_at(const dpq_coarse_problem *p, const dpq_coarse_rows *rows, size_t j, uint32_t *cell, int64_t *rank,
        uint32_t *leaf)
{
    int h = 0;

    for (size_t s = rows->begin[j]; s < rows->begin[j + 1]; s++) {
        size_t c = rows->segment[s].cell, end = end_of(rows, j, s), first;

        h = height_of(p, c, h);
        first = leaf_of(p, c, h);
        for (size_t i = rows->segment[s].at; i < end; i++, c++, first += (size_t)1 << h) {
            cell[i] = (uint32_t)c;
            rank[i] = rank_of(p, c);
            leaf[i] = (uint32_t)first;
        }
    }
}

/* For row j: where row j - 1 has the same cells, and where what comes before each cell ends there: all
 * that begins before the cell's end, but not the cell itself. */
static void
meet(const dpq_coarse_problem *p, const dpq_coarse_rows *rows, size_t j, const workspace *work)
{
    const uint32_t *before = work->cell[(j - 1) % 2], *now = work->cell[j % 2];
    const uint32_t *leaf = work->leaf[j % 2], *leaf_before = work->leaf[(j - 1) % 2];
    uint32_t *same = work->same;
    size_t n = rows->start[j + 1] - rows->start[j], s = 0;
    size_t size = rows->start[j] - rows->start[j - 1];

    for (size_t i = 0; i < n; i++) {
        size_t stop = i + 1 < n ? leaf[i + 1] : p->to[j];

        while (s < size && leaf_before[s] < stop) {
            s++;
        }
        same[i] = s > 0 && before[s - 1] == now[i] ? (uint32_t)(s - 1) : DPQ_COARSE_NONE;
        work->end[i] = same[i] != DPQ_COARSE_NONE ? same[i] : (uint32_t)s;
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

/* A number in other units, larger ones or its own: positive if it is. */
static double
in_units(double digits, int64_t exponent, int64_t units)
{
    if (exponent == units || digits == 0.0) {
        return digits;
    }
    return units - exponent == 1 ? fmax(digits * (1.0 / DPQ_LARGE_UNIT), HELD) : HELD;
}

/* Where the weights of a row go. */
typedef struct {
    const dpq_coarse_problem *problem;
    const uint32_t *cell;
    double *weight[2];
    int32_t *exponent;
} place;

static place
place_of(const dpq_coarse_problem *p, const dpq_coarse_rows *rows, size_t j, const workspace *work)
{
    size_t begin = entry_of(rows, j, 0);

    return (place){
        .problem = p,
        .cell = work->cell[j % 2],
        .weight = {rows->weight[0] + begin, rows->weight[1] + begin},
        .exponent = rows->exponent + begin,
    };
}

/* Keep what one output in the cell of an entry weighs, given the sums of what comes before it. */
static inline void
keep_alone(const place *to, size_t t, dpq_large below, dpq_large above)
{
    size_t c = to->cell[t];
    dpq_large volume = dpq_large_of(to->problem->volume[1][c]);
    dpq_large most;

    below = dpq_large_term(below, volume);
    above = dpq_large_term(above, volume);
    most = below.digits < above.digits ? above : below;
    if (below.exponent != above.exponent || !dpq_large_is_round(most.digits)) {
        below = dpq_large_round(below.digits, below.exponent);
        above = dpq_large_round(above.digits, above.exponent);
        most = dpq_large_less(below, above) ? above : below;
        below.digits = in_units(below.digits, below.exponent, most.exponent);
        above.digits = in_units(above.digits, above.exponent, most.exponent);
    }
    to->weight[FROM_BELOW][t] = below.digits;
    to->weight[FROM_ABOVE][t] = above.digits;
    to->exponent[t] = (int32_t)most.exponent;
}

/* Keep what several weigh in the cell of entry i of row j, too, unless that is 0. */
static void
keep_run(const dpq_coarse_rows *rows, size_t j, size_t i, dpq_large run, dpq_coarse_runs *runs)
{
    size_t at = entry_of(rows, j, i), block = block_of(rows, j, i);
    double *below = rows->weight[FROM_BELOW] + at, *above = rows->weight[FROM_ABOVE] + at;
    int64_t own = rows->exponent[at];
    int64_t units = run.exponent > own || (*below == 0.0 && *above == 0.0) ? run.exponent : own;

    if (run.digits > 0.0) {
        *below = in_units(*below, own, units);
        *above = in_units(*above, own, units);
        rows->exponent[at] = (int32_t)units;
        rows->has_run[block] |= (uint32_t)1 << i % BLOCK;
        rows->run[runs->kept++] = in_units(run.digits, run.exponent, units);
    }
}

#define NUMBER dpq_large
#define NAME(f) f##_large
#define SUMS const place *
#define ADD(a, b) dpq_large_add((a), (b))
#define MUL(a, b) dpq_large_mul((a), (b))
#define ZERO DPQ_LARGE_ZERO
#define FADE(x, k) dpq_large_mul((x), dpq_large_decay(decay, (k)))
#define TERM(a, b) dpq_large_term((a), (b))
#define FADING(x, k) dpq_large_fading(decay, (x), (k))
#define DECAY_PART(y) dpq_large_exp(decay->rate, (y))
#define STORE(t, past, window) keep_alone(sums, (t), (past), (window))
#include "scan_body.h"

/* Keep the runs of entry i of row j, and what two outputs and more weigh; see dpq_coarse_runs.
 *
 * The k-th output multiplies by (V + k - 1) / k on a lattice and by V / k without one, which does not grow
 * with k, V >= 1 on a lattice: from level to level long runs become less to the shorter ones that are
 * there with them. So a rest that is nothing to these stays so. */
static void
go_on(const dpq_coarse_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
      const dpq_coarse_rows *rows, const workspace *work, dpq_coarse_runs *runs, size_t j, size_t i)
{
    size_t at = entry_of(rows, j, i), c = work->cell[j % 2][i], k = 0;
    dpq_large *run = runs->weight[j % 2] + work->begin[j % 2][i];
    dpq_large sum = DPQ_LARGE_ZERO, rest = DPQ_LARGE_ZERO, little;

    if (work->same[i] != DPQ_COARSE_NONE) {
        const size_t *begin = work->begin[(j - 1) % 2] + work->same[i];
        const dpq_large *longer = runs->weight[(j - 1) % 2] + begin[0];
        double low = low_of(p, decay, c);
        dpq_large first = first_of_run(rows, entry_of(rows, j - 1, work->same[i]), low, 0.0);
        dpq_large stay = stay_at(p, decay, work, j - 1, work->rank[j % 2][i],
                                 work->fade[(j - 1) % 2] + work->same[i]);
        dpq_large volume = dpq_large_of(p->volume[1][c]);
        double more = p->lattice ? 1.0 : 0.0;
        size_t last = begin[1] - begin[0];

        stay.exponent += volume.exponent;
        for (; k <= last; k++) {
            dpq_large before = k > 0 ? longer[k - 1] : first;
            double places = (volume.digits + more * (double)(k + 1)) * level[k + 1].share;

            run[k] = dpq_large_round(before.digits * places * stay.digits,
                                     before.exponent + stay.exponent);
            sum = dpq_large_add(sum, run[k]);
        }
        keep_run(rows, j, i, sum, runs);
        little = dpq_large_mul(dpq_large_add(sum, first_of_run(rows, at, low, 0.0)),
                               dpq_large_of(EACH_REST));
        for (; k > 0; k--) {
            rest = dpq_large_add(rest, run[k - 1]);
            if (!dpq_large_less(rest, little)) {
                break;
            }
        }
    }
    work->begin[j % 2][i + 1] = work->begin[j % 2][i] + k;
}

/* What the entries of row j hand on to the step that follows, and sums of it by blocks. */
static void
hand_on(const dpq_coarse_problem *p, const dpq_decay *decay, const dpq_coarse_rows *rows, size_t j,
        const workspace *work)
{
    size_t n = rows->start[j + 1] - rows->start[j], block = block_of(rows, j, 0);
    const int64_t *rank = work->rank[j % 2];
    const uint32_t *cell = work->cell[j % 2];

    for (size_t i = 0; i < n; block++) {
        size_t end = i + BLOCK < n ? i + BLOCK : n;
        const double *next = rows->run + rows->first_run[block];
        uint32_t some = rows->has_run[block];
        dpq_large sum[2] = {DPQ_LARGE_ZERO, DPQ_LARGE_ZERO};

        for (; i < end; i++, some >>= 1) {
            dpq_large plus, minus;

            leave(p, decay, rows, entry_of(rows, j, i), cell[i], some & 1 ? *next++ : 0.0, &plus, &minus);
            work->leave[0][i] = plus;
            work->leave[1][i] = minus;
            work->fade[j % 2][i] = fade(p, decay, work, j, rank[i], &plus, &minus);
            work->faded[0][i] = plus;
            work->faded[1][i] = minus;
            sum[0] = dpq_large_add(sum[0], plus);
            sum[1] = dpq_large_add(sum[1], minus);
        }
        rows->block[0][block] = sum[0];
        rows->block[1][block] = sum[1];
    }
}

/* The weights of single outputs in the cells of the first row, and of the next ones. */
static void
begin_row(const dpq_coarse_problem *p, const dpq_coarse_rows *rows, const workspace *work)
{
    size_t n = rows->start[1];
    size_t turn = dpq_ranks_first(work->rank[0], 0, n, p->whole[0] + (p->part[0] > 0.0));
    const place first = place_of(p, rows, 0, work);

    for (size_t i = 0; i < n; i++) {
        work->same[i] = DPQ_COARSE_NONE;
        keep_alone(&first, i, dpq_large_of(i < turn ? 0.0 : 1.0),
                   dpq_large_of(i < turn ? 1.0 : 0.0));
    }
}

static void
next_row(const dpq_coarse_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
         const dpq_coarse_rows *rows, size_t j, const workspace *work)
{
    const dpq_scan_step step = step_to(p, level, rows, j, work);
    const dpq_large *const faded[2] = {work->faded[0], work->faded[1]};
    const place next = place_of(p, rows, j, work);

    meet(p, rows, j, work);
    sums_large(&step, decay, work->leave[0], work->leave[1], faded, &next, work->suffix);
}

void
dpq_coarse_prepare(const dpq_coarse_problem *p, dpq_decay *decay, dpq_scan_level *level)
{
    const int64_t ends[2] = {least_of(p, 0), least_of(p, p->leaves - 1)};
    dpq_scan_problem scan = {.intervals = 2,
                             .rank = ends,
                             .levels = p->levels,
                             .whole = p->whole,
                             .part = p->part,
                             .rate = p->rate};

    dpq_scan_prepare(&scan, decay, level);
}

void
dpq_coarse_begin_pass(const dpq_coarse_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
                      const dpq_coarse_rows *rows, const size_t *begins, void *room)
{
    const workspace work = workspace_of(p, rows, room);
    const size_t j = rows->held;

    prepare(p, decay, level, &work);
    if (begins) {
        memcpy(work.begin[j % 2], begins, (rows->start[j + 1] - rows->start[j] + 1) * sizeof *begins);
        look_at(p, rows, j, work.cell[j % 2], work.rank[j % 2], work.leaf[j % 2]);
        hand_on(p, decay, rows, j, &work);
    }
}

const size_t *
dpq_coarse_begins(const dpq_coarse_problem *p, const dpq_coarse_rows *rows, size_t j, void *room)
{
    return workspace_of(p, rows, room).begin[j % 2];
}

size_t
dpq_coarse_forward(const dpq_coarse_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
                   const dpq_coarse_rows *rows, size_t first, size_t last, dpq_coarse_runs *runs,
                   void *room)
{
    const workspace work = workspace_of(p, rows, room);
    size_t j;

    for (j = first; j < last; j++) {
        size_t begin = rows->start[j], n = rows->start[j + 1] - begin;

        if (runs->room_kept < n + runs->kept ||
            runs->room < n + (j > 0 ? work.begin[(j - 1) % 2][begin - rows->start[j - 1]] : 0)) {
            break;
        }
        look_at(p, rows, j, work.cell[j % 2], work.rank[j % 2], work.leaf[j % 2]);
        if (j == 0) {
            begin_row(p, rows, &work);
        }
        else {
            next_row(p, decay, level, rows, j, &work);
        }
        work.begin[j % 2][0] = 0;
        for (size_t i = 0; i < n; i++) {
            if (i % BLOCK == 0) {
                rows->first_run[block_of(rows, j, i)] = runs->kept;
                rows->has_run[block_of(rows, j, i)] = 0;
            }
            go_on(p, decay, level, rows, &work, runs, j, i);
        }
        hand_on(p, decay, rows, j, &work);
    }
    return j;
}

double
dpq_coarse_total(const dpq_coarse_problem *p, const dpq_coarse_rows *rows, void *room)
{
    const workspace work = workspace_of(p, rows, room);
    size_t m = p->levels - 1;
    dpq_large total = DPQ_LARGE_ZERO;

    for (size_t i = 0; i < rows->start[m + 1] - rows->start[m]; i++) {
        total = dpq_large_add(total, work.faded[work.rank[m % 2][i] > p->whole[m]][i]);
    }
    return dpq_large_log(total);
}
