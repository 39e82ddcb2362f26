#include "coarse.h"

#include <math.h>
#include <string.h>

#include "large.h"
#include "race.h"
#include "ranks.h"
#include "step.h"
#include "uniform.h"

#define REST 0x1p-53       /* a sum over k stops at this relative size of its rest: of one rounding, */
#define EACH_REST 0x1p-63  /* and at this, where each level leaves out a rest of its own */
#define BLOCK DPQ_COARSE_BLOCK
#define HELD 0x1p-768      /* a sum is at least this, in units of the entry's largest */
#define FLOOR 0x1p-880     /* what is below is drawn as if it were this, and then taken by what it is */
#define LOG_FLOOR (-880.0 * DPQ_LN2)
#define SMALL 0x1p-900     /* plain weights of a race are at least this, */
#define LARGE 0x1p900      /* and at most */

enum { FROM_BELOW, FROM_ABOVE }; /* weights of an entry: s_j = 1, s_j = -1 */

/* cells */

/* The height of a cell, looked for from a guess on. */
static int
height_of(const dpq_coarse_problem *p, size_t c, int h)
{
    while (c >= p->offset[h + 1]) {
        h++;
    }
    while (c < p->offset[h]) {
        h--;
    }
    return h;
}

/* The first leaf of a cell of height h. */
static size_t
leaf_of(const dpq_coarse_problem *p, size_t c, int h)
{
    return (c - p->offset[h]) << h;
}

static inline void
set_rank(const dpq_coarse_ranks *ranks, size_t c, int64_t rank)
{
    if (ranks->narrow) {
        ranks->narrow[c] = (int32_t)rank;
    }
    else {
        ranks->wide[c] = rank;
    }
}

static inline int64_t
least_of(const dpq_coarse_problem *p, size_t c)
{
    return dpq_coarse_rank(&p->least, c);
}

static inline int64_t
most_of(const dpq_coarse_problem *p, size_t c)
{
    return dpq_coarse_rank(&p->most, c);
}

static inline int64_t
middle_of(int64_t least, int64_t most)
{
    return least + (most - least) / 2;
}

static inline int64_t
rank_of(const dpq_coarse_problem *p, size_t c)
{
    return middle_of(least_of(p, c), most_of(p, c));
}

/* Whether a cell is as narrow as it has to be, given the stretch of its level that its first rank is in or one
 * before. */
static int
is_narrow(const dpq_coarse_problem *p, size_t stretch, size_t c)
{
    const int64_t least = least_of(p, c), most = most_of(p, c);
    double span = 0.5 * p->rate * (double)(most - least);

    if (span > DPQ_COARSE_WIDEST || !(p->volume[1][c] < INFINITY)) {
        return 0;
    }
    for (; p->until[stretch] < most; stretch++) {
        if (p->until[stretch] >= least && span > p->span[stretch]) {
            return 0;
        }
    }
    return span <= p->span[stretch];
}

/* Whether a cell of 2^h leaves begins at a leaf and will do for level j. A cell that will has none inside
 * that will not: that is narrower, and in no other stretches. */
static int
will_do(const dpq_coarse_problem *p, size_t j, size_t stretch, size_t leaf, int h)
{
    size_t end = leaf + ((size_t)1 << h);

    return h == 0 || ((leaf & (end - leaf - 1)) == 0 && h < p->heights &&
                      (end <= p->to[j] || p->to[j] == p->leaves) &&
                      leaf + (((size_t)1 << h) / 2) < p->leaves &&
                      is_narrow(p, stretch, p->offset[h] + (leaf >> h)));
}

size_t
dpq_coarse_cells(const dpq_coarse_problem *p, size_t room, size_t *start, size_t *begin,
                 dpq_coarse_segment *segment)
{
    size_t n = 0, segments = 0;
    int h = 0;

    for (size_t j = 0; j < p->levels; j++) {
        size_t leaf = p->from[j], stretch = p->stretch[j], next = SIZE_MAX;

        start[j] = n;
        begin[j] = segments;
        while (leaf < p->to[j]) { /* the highest cell that begins here and will do: about the last one's */
            size_t cell;

            while (p->until[stretch] < least_of(p, leaf)) {
                stretch++;
            }
            if (will_do(p, j, stretch, leaf, h)) {
                while (will_do(p, j, stretch, leaf, h + 1)) {
                    h++;
                }
            }
            else {
                while (!will_do(p, j, stretch, leaf, h)) {
                    h--;
                }
            }
            cell = p->offset[h] + (leaf >> h);
            if (cell != next) {
                if (segments < room) {
                    segment[segments] = (dpq_coarse_segment){(uint32_t)(n - start[j]), (uint32_t)cell};
                }
                segments++;
            }
            next = cell + 1;
            n++;
            leaf += (size_t)1 << h;
        }
    }
    start[p->levels] = n;
    begin[p->levels] = segments;
    return n;
}

/* Which leaves hold more than half of what is around them. */
static void
find_heavy(size_t leaves, int64_t near, const dpq_coarse_ranks *least, const dpq_coarse_ranks *most,
           const double *volume, uint8_t *heavy)
{
    double below_low = 0.0, below_high = 0.0;

    for (size_t i = 0, low = 0, high = 0; i < leaves; i++) {
        for (; dpq_coarse_rank(most, low) < dpq_coarse_rank(least, i) - near; low++) {
            below_low += volume[low];
        }
        for (; high < leaves && dpq_coarse_rank(least, high) <= dpq_coarse_rank(most, i) + near; high++) {
            below_high += volume[high];
        }
        heavy[i] = 2.0 * volume[i] > below_high - below_low;
    }
}

void
dpq_coarse_tree(const dpq_decay *decay, int heights, const size_t *offset, int64_t near, uint8_t *heavy,
                const dpq_coarse_ranks *least, const dpq_coarse_ranks *most, double *const volume[3])
{
    find_heavy(offset[1], near, least, most, volume[1], heavy);
    for (int h = 1; h < heights; h++) {
        for (size_t c = offset[h], half = offset[h - 1]; c < offset[h + 1]; c++) {
            size_t end = half + 2 < offset[h] ? half + 2 : offset[h];
            const int64_t low = dpq_coarse_rank(least, half), high = dpq_coarse_rank(most, end - 1);
            const int64_t rank = middle_of(low, high);
            /* others are never used: their volumes only have to be finite */
            const int will_be_used = decay->rate * (double)(high - low) <= 4.0 * DPQ_COARSE_WIDEST;

            set_rank(least, c, low);
            set_rank(most, c, high);
            volume[0][c] = volume[1][c] = volume[2][c] = 0.0;
            for (; half < end; half++) {
                int64_t middle = middle_of(dpq_coarse_rank(least, half), dpq_coarse_rank(most, half));
                int64_t away = will_be_used ? middle - rank : 0;
                double own = h == 1 && heavy[half] ? INFINITY : volume[1][half];

                volume[0][c] += own < INFINITY ? volume[0][half] * dpq_decay_signed(decay, -away) : own;
                volume[1][c] += own;
                volume[2][c] += own < INFINITY ? volume[2][half] * dpq_decay_signed(decay, away) : own;
            }
        }
    }
}

/* workspace */

typedef struct {
    size_t longest;
    dpq_large *leave[2]; /* what a row hands on to steps with the sign 1, and with -1, */
    dpq_large *faded[2]; /* the same from where such steps begin: times exp(-2c max(-u, 0)), exp(-2c max(u, 0)) */
    dpq_large *fade[2];  /* and these, of the row at hand and of the one before, by turns */
    dpq_large *suffix;
    dpq_large *some;     /* sums by blocks, of a range */
    dpq_large *stay;     /* for each level, exp(-2c (Q_j - Q_{j-1})), */
    dpq_large *down, *up; /* exp(-2c part_j), and exp(-2c (1 - part_j)) */
    double *weight;      /* plain weights of blocks, or for each level */
    size_t *begin[2];    /* where the runs of each entry begin, of the row at hand and of the one before, */
    int64_t *rank[2];    /* and the ranks of their cells, by turns, */
    uint32_t *cell[2];   /* these, */
    uint32_t *leaf[2];   /* and their first leaves; */
    uint32_t *end;       /* what comes before the cells of the row at hand, */
    uint32_t *same;      /* and where the row before has the same ones, or DPQ_COARSE_NONE */
    uint32_t *weighed;   /* while drawing: the blocks of which that was computed */
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
    return (7 * longest + blocks_of(longest) + 3 * levels) * sizeof(dpq_large) +
           weights_of(longest, levels) * sizeof(double) + 2 * (longest + 1) * sizeof(size_t) +
           2 * longest * sizeof(int64_t) +
           (6 * longest + blocks_of(longest)) * sizeof(uint32_t);
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
    work.faded[0] = work.leave[1] + work.longest;
    work.faded[1] = work.faded[0] + work.longest;
    work.fade[0] = work.faded[1] + work.longest;
    work.fade[1] = work.fade[0] + work.longest;
    work.suffix = work.fade[1] + work.longest;
    work.some = work.suffix + work.longest;
    work.stay = work.some + blocks;
    work.down = work.stay + p->levels;
    work.up = work.down + p->levels;
    work.weight = (double *)(void *)(work.up + p->levels);
    work.begin[0] = (size_t *)(void *)(work.weight + weights_of(work.longest, p->levels));
    work.begin[1] = work.begin[0] + work.longest + 1;
    work.rank[0] = (int64_t *)(void *)(work.begin[1] + work.longest + 1);
    work.rank[1] = work.rank[0] + work.longest;
    work.cell[0] = (uint32_t *)(void *)(work.rank[1] + work.longest);
    work.cell[1] = work.cell[0] + work.longest;
    work.leaf[0] = work.cell[1] + work.longest;
    work.leaf[1] = work.leaf[0] + work.longest;
    work.end = work.leaf[1] + work.longest;
    work.same = work.end + work.longest;
    work.weighed = work.same + work.longest;
    return work;
}

/* What each level needs again and again. */
static void
prepare(const dpq_coarse_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
        const workspace *work)
{
    for (size_t j = 0; j < p->levels; j++) {
        work->stay[j] = dpq_large_of(1.0);
        if (level[j].reach > 0) {
            work->stay[j] = dpq_large_mul(dpq_large_decay(decay, level[j].reach - 1),
                                          dpq_large_exp(p->rate, 1.0 - level[j].slack));
        }
        work->down[j] = dpq_large_exp(p->rate, p->part[j]);
        work->up[j] = dpq_large_exp(p->rate, 1.0 - p->part[j]);
    }
}

/* rows */

/* One past the last entry of a segment of row j, in that row. */
static size_t
end_of(const dpq_coarse_rows *rows, size_t j, size_t s)
{
    return s + 1 < rows->begin[j + 1] ? rows->segment[s + 1].at : rows->start[j + 1] - rows->start[j];
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

/* What is left of rank r's weight by its distance from the target of level j. */
static dpq_large
decay_from(const dpq_coarse_problem *p, const dpq_decay *decay, const workspace *work, size_t j,
           int64_t r)
{
    int64_t below = p->whole[j] - r;

    return below >= 0 ? dpq_large_mul(dpq_large_decay(decay, below), work->down[j])
                      : dpq_large_mul(dpq_large_decay(decay, -below - 1), work->up[j]);
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

/* Entry i of row j, among what is held. */
static inline size_t
entry_of(const dpq_coarse_rows *rows, size_t j, size_t i)
{
    return rows->start[j] - rows->start[rows->held] + i;
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

/* The block that entry i of row j is in. */
static size_t
block_of(const dpq_coarse_rows *rows, size_t j, size_t i)
{
    return dpq_coarse_block(rows, j) + i / BLOCK;
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

/* What several outputs weigh in the cell of entry i of row j. */
static double
run_at(const dpq_coarse_rows *rows, size_t j, size_t i)
{
    size_t block = block_of(rows, j, i);
    uint32_t some = rows->has_run[block], bit = (uint32_t)1 << i % BLOCK;

    return some & bit ? rows->run[rows->first_run[block] + (size_t)__builtin_popcount(some & (bit - 1))]
                      : 0.0;
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

/* What a bend leaves of the weight of a cell, as a share. */
static inline double
bent(const dpq_coarse_problem *p, size_t c, int bend)
{
    return bend == 0 ? 1.0 : p->volume[bend + 1][c] / p->volume[1][c];
}

/* The most that a bend at the first of several outputs of a cell may multiply by, exp(2c (rho - least)), */
static inline double
low_of(const dpq_coarse_problem *p, const dpq_decay *decay, size_t c)
{
    return 1.0 / dpq_decay_at(decay, (most_of(p, c) - least_of(p, c)) / 2);
}

/* and one at the last of them, exp(2c (most - rho)). */
static inline double
high_of(const dpq_coarse_problem *p, const dpq_decay *decay, size_t c)
{
    int64_t span = most_of(p, c) - least_of(p, c);

    return 1.0 / dpq_decay_at(decay, span - span / 2);
}

/* What an entry hands on to a step with the sign 1, and to one with -1, given its cell and what several
 * outputs weigh there. */
static inline void
leave(const dpq_coarse_problem *p, const dpq_decay *decay, const dpq_coarse_rows *rows, size_t at,
      size_t c, double run, dpq_large *plus, dpq_large *minus)
{
    double below = rows->weight[FROM_BELOW][at], above = rows->weight[FROM_ABOVE][at];
    double rising = below + bent(p, c, -1) * above, falling = bent(p, c, 1) * below + above;

    if (run > 0.0) {
        rising += high_of(p, decay, c) * run;
        falling += run;
    }
    *plus = dpq_large_round(rising, rows->exponent[at]);
    *minus = dpq_large_round(falling, rows->exponent[at]);
}

/* What an entry weighs if such a step follows, but for what depends on the cell after it: also
 * exp(-2c max(-u, 0)), or exp(-2c max(u, 0)), which is returned. */
static inline dpq_large
fade(const dpq_coarse_problem *p, const dpq_decay *decay, const workspace *work, size_t j,
     int64_t rank, dpq_large *plus, dpq_large *minus)
{
    dpq_large left = decay_from(p, decay, work, j, rank);

    if (rank > p->whole[j]) {
        *minus = dpq_large_mul(*minus, left);
    }
    else {
        *plus = dpq_large_mul(*plus, left);
    }
    return left;
}

/* The weight of a first output of several in the cell of an entry, whose low_of() is `low`; and with it that of
 * `several` that end there. */
static dpq_large
first_of_run(const dpq_coarse_rows *rows, size_t at, double low, double several)
{
    return dpq_large_round(low * rows->weight[FROM_BELOW][at] + rows->weight[FROM_ABOVE][at] + several,
                           rows->exponent[at]);
}

/* What a step from level l to the same cell at the next one, of rank r, multiplies by. */
static inline dpq_large
stay_at(const dpq_coarse_problem *p, const dpq_decay *decay, const workspace *work, size_t l,
        int64_t r, const dpq_large *fade)
{
    if (r <= p->whole[l]) { /* u <= 0: the step costs nothing */
        return dpq_large_of(1.0);
    }
    if (r < p->whole[l + 1] + (p->part[l + 1] > 0.0)) { /* v < 0 < u: u */
        return fade ? *fade : decay_from(p, decay, work, l, r);
    }
    return work->stay[l + 1]; /* v >= 0: u - v */
}

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

/* drawing paths */

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

/* drawing points */

/* The sign of the step from cell b at level j to cell c at the next one. */
static int
sign_between(const dpq_coarse_problem *p, size_t j, size_t b, size_t c)
{
    /* v_j <= v_{j+1}: the next rank is as much higher as its target, or more */
    int64_t gap = p->whole[j + 1] - p->whole[j] + (p->part[j + 1] > p->part[j]);

    return b != c && rank_of(p, c) - rank_of(p, b) >= gap ? 1 : -1;
}

void
dpq_coarse_bends(const dpq_coarse_problem *p, size_t size, const size_t *path, int64_t *bend)
{
    const size_t m = p->levels;

    for (size_t i = 0; i < size; i++) {
        const size_t *cell = path + i * m;
        int leaving;
        int entering = rank_of(p, cell[0]) >= p->whole[0] + (p->part[0] > 0.0) ? 1 : -1; /* as from below, */

        for (size_t j = 0; j < m; j++, entering = leaving) {
            if (j + 1 == m) { /* and to the end */
                leaving = rank_of(p, cell[j]) <= p->whole[j] ? 1 : -1;
            }
            else {
                leaving = sign_between(p, j, cell[j], cell[j + 1]);
            }
            *bend++ = (entering - leaving) / 2;
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

/* A leaf of a cell, by their weights for a bend. */
static size_t
draw_leaf(const dpq_coarse_problem *p, size_t c, int bend, bitgen_t *rng)
{
    const double *volume = p->volume[bend + 1];
    double steepness = p->rate * (double)bend;

    for (int h = height_of(p, c, 0); h > 0; h--) { /* into the left or the right half, if there is one */
        size_t left = p->offset[h - 1] + 2 * (c - p->offset[h]), drawn = 0;
        double log_weight[2];

        if (left + 1 < p->offset[h]) {
            for (size_t i = 0; i < 2; i++) {
                log_weight[i] = log(volume[left + i]) -
                                steepness * (double)(rank_of(p, left + i) - rank_of(p, c));
            }
            (void)dpq_race_draw(2, log_weight, rng, &drawn);
        }
        c = left + drawn;
    }
    return c;
}

/* One of the pieces of a leaf, by their weights for a bend. */
static size_t
draw_piece(const dpq_coarse_problem *p, const dpq_coarse_pieces *pieces, size_t leaf, size_t slot,
           int bend, bitgen_t *rng, double *work)
{
    size_t start = pieces->start[slot], n = pieces->start[slot + 1] - start, drawn = 0;
    int plain = 1;

    if (n == 1) {
        return start;
    }
    for (size_t i = 0; i < n; i++) {
        work[i] = pieces->width[start + i];
        if (bend != 0) {
            work[i] *= exp(-loss_of(p, pieces, leaf, start + i, bend));
        }
        plain &= work[i] >= SMALL && work[i] <= LARGE;
    }
    if (plain) {
        return start + dpq_race_draw_plain(n, work, rng);
    }
    for (size_t i = 0; i < n; i++) {
        work[i] = log(pieces->width[start + i]) - loss_of(p, pieces, leaf, start + i, bend);
    }
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

/* How many outputs from `at` to `end` are in one cell. */
static size_t
run_of(const size_t *path, size_t at, size_t end)
{
    size_t k = 1;

    while (at + k < end && path[at + k] == path[at]) {
        k++;
    }
    return k;
}

void
dpq_coarse_leaves(const dpq_coarse_problem *p, size_t size, size_t m, const size_t *path,
                  const int64_t *bend, bitgen_t *rng, size_t *leaf, uint32_t *copied)
{
    for (size_t at = 0, k; at < size * m; at += k) {
        size_t c = path[at];
        uint64_t places = p->lattice ? (uint64_t)p->volume[1][c] : 0;

        k = run_of(path, at, (at / m + 1) * m);
        if (k == 1) {
            leaf[at] = draw_leaf(p, c, (int)bend[at], rng);
            copied[at] = DPQ_COARSE_NONE;
            continue;
        }
        for (size_t i = 0; i < k; i++) { /* an urn on a lattice */
            uint64_t drawn = places ? dpq_uniform_below(places + i, rng) : 0;

            if (drawn < places || !places) {
                leaf[at + i] = draw_leaf(p, c, 0, rng);
                copied[at + i] = DPQ_COARSE_NONE;
            }
            else {
                leaf[at + i] = leaf[at + (drawn - places)];
                copied[at + i] = (uint32_t)(drawn - places);
            }
        }
    }
}

/* Sort the outputs of a run, and where they are. */
static void
sort_run(size_t k, size_t *piece, int64_t *point, double *number)
{
    for (size_t i = 1; i < k; i++) {
        size_t where = piece[i], s = i;
        int64_t here = point ? point[i] : 0;
        double at = number ? number[i] : 0.0;

        for (; s > 0 && (point ? point[s - 1] > here : number[s - 1] > at); s--) {
            piece[s] = piece[s - 1];
            if (point) {
                point[s] = point[s - 1];
            }
            else {
                number[s] = number[s - 1];
            }
        }
        piece[s] = where;
        if (point) {
            point[s] = here;
        }
        else {
            number[s] = at;
        }
    }
}

void
dpq_coarse_points(const dpq_coarse_problem *p, const dpq_coarse_pieces *pieces, size_t size,
                  size_t m, const size_t *path, const int64_t *bend, const size_t *leaf,
                  const uint32_t *copied, bitgen_t *rng, double *work, size_t *piece, int64_t *point,
                  double *number)
{
    for (size_t begin = 0, k; begin < size * m; begin += k) {
        k = run_of(path, begin, (begin / m + 1) * m);
        for (size_t at = begin; at < begin + k; at++) {
            if (copied[at] != DPQ_COARSE_NONE) {
                size_t same = begin + copied[at];

                piece[at] = piece[same];
                if (point) {
                    point[at] = point[same];
                }
                else {
                    number[at] = number[same];
                }
                continue;
            }
            piece[at] = draw_piece(p, pieces, leaf[at], pieces->slot[at],
                                   k == 1 ? (int)bend[at] : 0, rng, work);
            draw_point(pieces, piece[at], rng, point ? point + at : NULL,
                       number ? number + at : NULL);
        }
        sort_run(k, piece + begin, point ? point + begin : NULL, number ? number + begin : NULL);
    }
}
