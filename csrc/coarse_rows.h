/* The rows of coarse.h, for the files that sum them up and draw from them: the workspace of a pass, and what
 * an entry weighs for the step that follows.
 */
#ifndef DPQ_COARSE_ROWS_H
#define DPQ_COARSE_ROWS_H

#include "coarse_cells.h"
#include "decay.h"
#include "large.h"
#include "scan.h"

#define BLOCK DPQ_COARSE_BLOCK

enum { FROM_BELOW, FROM_ABOVE }; /* weights of an entry: s_j = 1, s_j = -1 */

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

static inline size_t
blocks_of(size_t n)
{
    return n / BLOCK + 3;
}

static inline size_t
weights_of(size_t longest, size_t levels)
{
    return blocks_of(longest) + BLOCK + levels;
}

static inline workspace
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
static inline void
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

/* One past the last entry of a segment of row j, in that row. */
static inline size_t
end_of(const dpq_coarse_rows *rows, size_t j, size_t s)
{
    return s + 1 < rows->begin[j + 1] ? rows->segment[s + 1].at : rows->start[j + 1] - rows->start[j];
}

/* What is left of rank r's weight by its distance from the target of level j. */
static inline dpq_large
decay_from(const dpq_coarse_problem *p, const dpq_decay *decay, const workspace *work, size_t j,
           int64_t r)
{
    int64_t below = p->whole[j] - r;

    return below >= 0 ? dpq_large_mul(dpq_large_decay(decay, below), work->down[j])
                      : dpq_large_mul(dpq_large_decay(decay, -below - 1), work->up[j]);
}

/* Entry i of row j, among what is held. */
static inline size_t
entry_of(const dpq_coarse_rows *rows, size_t j, size_t i)
{
    return rows->start[j] - rows->start[rows->held] + i;
}

/* The block that entry i of row j is in. */
static inline size_t
block_of(const dpq_coarse_rows *rows, size_t j, size_t i)
{
    return dpq_coarse_block(rows, j) + i / BLOCK;
}

/* What several outputs weigh in the cell of entry i of row j. */
static inline double
run_at(const dpq_coarse_rows *rows, size_t j, size_t i)
{
    size_t block = block_of(rows, j, i);
    uint32_t some = rows->has_run[block], bit = (uint32_t)1 << i % BLOCK;

    return some & bit ? rows->run[rows->first_run[block] + (size_t)__builtin_popcount(some & (bit - 1))]
                      : 0.0;
}

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
static inline dpq_large
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

#endif
