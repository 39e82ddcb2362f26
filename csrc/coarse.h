/* Paths through cells of ranks: proposals for JointExp that need few rows, whatever the rate is.
 *
 * Leaves are ascending parts of the outputs. Outputs of a leaf have ranks from `least` to `most`; a cell
 * is one leaf, or 2, 4, 8, ... aligned ones, and stands at the rank rho = floor((least + most) / 2).
 * Each level has cells of its own that do not overlap, wider ones far from its target. With
 * v_j = rho_j - Q_j a step from cell to cell has the sign s_j = 1 where v_{j-1} <= v_j, else -1, and
 *
 *   exp(-c |y|) <= exp(-c s y)   for every y,
 *
 * which is nearly an equality, since ranks of distinct cells seldom cross. The exponents telescope: a
 * tuple of outputs z_j in cells C_j weighs at most
 *
 *   prod_j exp(-c |v_j - v_{j-1}|) exp(-2c b_j (r(z_j) - rho_j)),   b_j = (s_j - s_{j+1}) / 2,
 *
 * v_0 = v_{m+1} = 0. So only bends count, and given the cells of its neighbors an output is drawn with a
 * density of its own: `volume[b + 1]` of a cell holds the integral of exp(-2c b (r - rho)), or a bound
 * on it. Outputs of one cell at k >= 2 levels in a row are a multiset of it; for a bend at the first and
 * at the last of them the largest factor is taken.
 *
 * Cells of neighboring levels are the same, or apart, or one contains the other. Those that are apart
 * ascend; where one contains the other, nothing is asked: the caller rejects outputs that do not.
 *
 * coarse_cells.c grows the tree and chooses cells, coarse_rows.c sums up rows, coarse_paths.c draws cells
 * from these, and coarse_points.c draws the outputs inside.
 */
#ifndef DPQ_COARSE_H
#define DPQ_COARSE_H

#include <stddef.h>
#include <stdint.h>

#include <numpy/random/bitgen.h>

#include "large.h"
#include "scan.h"

#define DPQ_COARSE_NONE UINT32_MAX
#define DPQ_COARSE_BLOCK 32 /* entries, a bit each, whose weights are added up before anything is drawn */
#define DPQ_COARSE_WIDEST 32.0 /* nats that a cell of several leaves may span, c (most - least) */

/* Ranks, of 8 bytes each or of 4; the other one is NULL. */
typedef struct {
    int64_t *wide;
    int32_t *narrow;
} dpq_coarse_ranks;

static inline int64_t
dpq_coarse_rank(const dpq_coarse_ranks *ranks, size_t c)
{
    return ranks->narrow ? ranks->narrow[c] : ranks->wide[c];
}

typedef struct {
    size_t leaves;               /* K >= 1, below 2^31 */
    int heights;                 /* cells of height h are 2^h leaves, or what is left of them; the last one is
                                  * all leaves */
    const size_t *offset;        /* IN, length heights + 1: cells of height h are offset[h], ... */
    dpq_coarse_ranks least, most; /* IN, for each cell, least <= most; leaf i + 1 begins at or above the
                                   * most of leaf i */
    const double *volume[3];     /* IN, for each cell: bends -1, 0 and 1; positive. Cells of several leaves
                                  * are used where they are finite */
    int lattice;                 /* whether several outputs of a cell are counted as multisets */
    size_t levels;               /* m >= 1 */
    const int64_t *whole;        /* IN, length m, floor of Q_j */
    const double *part;          /* IN, length m, Q_j minus its floor; Q_j ascending */
    const size_t *from, *to;   /* IN, length m: row j holds the leaves from[j] <= i < to[j], some; both
                                  * non-decreasing */
    const size_t *stretch; /* IN, length m + 1, to choose cells: ranks of level j are in the stretches
                            * stretch[j], ..., stretch[j + 1] - 1, */
    const int64_t *until;  /* IN: which go up to this, ascending in a level; the last to INT64_MAX; */
    const double *span;    /* IN: most nats that cells with ranks in one may span */
    double rate;                 /* 2c > 0 */
} dpq_coarse_problem;

/* Fill in the cells of several leaves.
 *
 *   decay        IN, of the rate 2c > 0
 *   heights, offset  as above
 *   heavy        WORK, length K. A leaf that holds more than half of all that is within `near` ranks of it:
 *   near         paths stay in it at many levels. These are a multiset, and would not be if it was part of
 *                a cell at some of them; so it never is
 *   least, most, volume  IN for leaves, OUT for others: infinite volumes where a cell is not to be used;
 *                room for all cells
 */
void
dpq_coarse_tree(const dpq_decay *decay, int heights, const size_t *offset, int64_t near, uint8_t *heavy,
                const dpq_coarse_ranks *least, const dpq_coarse_ranks *most, double *const volume[3]);

/* Some cells of a row that follow each other in the tree. */
typedef struct {
    uint32_t at;   /* the first one's entry in the row */
    uint32_t cell; /* the first one */
} dpq_coarse_segment;

/* Rows, or those of some levels in a row: what follows `held` begins with the first entry of that level. */
typedef struct {
    const size_t *start; /* length m + 1: the cells of row j are entries start[j], ..., start[j + 1] - 1, */
    const size_t *begin; /* length m + 1: in the segments begin[j], ..., begin[j + 1] - 1 */
    const dpq_coarse_segment *segment; /* ascending within a row */
    size_t held;                       /* 0 if all rows are there */
    /* What all weighs that ends in the cell, over the potential exp(-c |v|), if no bend follows: one output
     * and s_j = 1, one and s_j = -1. With what k >= 2 weigh, the largest of them has digits as large.h says,
     * in units of 2^(512 exponent). */
    double *weight[2];
    int32_t *exponent;
    double *run; /* what k >= 2 weigh, for entries where that is something, one after another */
    /* Blocks of DPQ_COARSE_BLOCK entries, from the first one of each row on; length dpq_coarse_block of the row
     * after the last one, + 1: */
    size_t *first_run;   /* the first one in `run`, */
    uint32_t *has_run;   /* entries that have one, a bit each, the lowest for the first, */
    dpq_large *block[2]; /* and sums of what entries hand on to a step with the sign 1, and with -1, from
                          * where it begins */
} dpq_coarse_rows;

/* The first block of row j, among those that are held; j may be m. */
static inline size_t
dpq_coarse_block(const dpq_coarse_rows *rows, size_t j)
{
    return rows->start[j] / DPQ_COARSE_BLOCK + j - (rows->start[rows->held] / DPQ_COARSE_BLOCK + rows->held);
}

/* Choose the cells of all rows.
 *
 *   room         segments that fit
 *   start        OUT, length m + 1
 *   begin        OUT, length m + 1
 *   segment      OUT, length room: as many as fit
 *
 * Returns   how many cells there are. O(1) for each, and the tree's height.
 */
size_t
dpq_coarse_cells(const dpq_coarse_problem *p, size_t room, size_t *start, size_t *begin,
                 dpq_coarse_segment *segment);

/* Bytes of workspace for rows of at most `longest` cells. */
size_t
dpq_coarse_room(size_t longest, size_t levels);

/* What outputs weigh that are in one cell at 2, 3, ... levels in a row, the last of which is that of the row at
 * hand, entry after entry. Long runs that are nothing to the others and to a single output as the first of
 * several, 2^-63 of them, are left out. */
typedef struct {
    size_t room;          /* length of `weight`: as there were of the row before, and one for each entry */
    dpq_large *weight[2]; /* WORK, by turns of the row at hand and of the one before */
    size_t kept;          /* IN OUT: how many are in the rows' `run`; */
    size_t room_kept;     /* length of `run`: as there are, and one for each entry of the row */
} dpq_coarse_runs;

/* What all passes and draws need.
 *
 *   decay        OUT
 *   level        OUT, length m
 */
void
dpq_coarse_prepare(const dpq_coarse_problem *p, dpq_decay *decay, dpq_scan_level *level);

/* Begin a pass with the first level that is held. If that is not level 0, its row is given: entries, and runs
 * of it; and weight[held % 2] of dpq_coarse_runs will be.
 *
 *   rows         IN
 *   begins       IN, length n + 1, n its entries: where the runs of each one begin in that; or NULL for level 0
 *   work         OUT, to be kept from call to call
 */
void
dpq_coarse_begin_pass(const dpq_coarse_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
                      const dpq_coarse_rows *rows, const size_t *begins, void *work);

/* The forward pass: the sums of the rows first, ..., last - 1, as far as runs have room.
 *
 *   rows         IN OUT: the row before `first` is held
 *   runs         IN OUT
 *   work         IN OUT, from dpq_coarse_begin_pass
 *
 * Returns   the row that is next: `last`, or less if runs need more room. Then these are to be moved to where
 *           there is more, and the pass goes on from there.
 * Cost      O(1) for each entry and run, no allocation.
 */
size_t
dpq_coarse_forward(const dpq_coarse_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
                   const dpq_coarse_rows *rows, size_t first, size_t last, dpq_coarse_runs *runs,
                   void *work);

/* Where the runs of row j begin in weight[j % 2], once the pass went up to there: the `begins` of
 * dpq_coarse_begin_pass, to go on from there in other rows.
 *
 *   work         IN, as the pass left it
 */
const size_t *
dpq_coarse_begins(const dpq_coarse_problem *p, const dpq_coarse_rows *rows, size_t j, void *work);

/* ln of the weight of all paths, after the forward pass.
 *
 *   work         IN, as the pass left it
 */
double
dpq_coarse_total(const dpq_coarse_problem *p, const dpq_coarse_rows *rows, void *work);

/* What is known of the last level that is still to be drawn: nothing; or its cell, which has several outputs: it is
 * to be drawn how many, or how many of those numbers that together have a bound. */
typedef enum { DPQ_COARSE_ANY, DPQ_COARSE_RUN, DPQ_COARSE_LONG_RUN } dpq_coarse_known;

typedef struct {
    size_t levels; /* how many of this draw are still to be drawn; */
    uint32_t next; /* the cell of the level after them, or of the last one, if that is known, */
    int sign;      /* and of the step to the level after them */
    dpq_coarse_known known;
} dpq_coarse_draw;

/* Begin to draw `size` paths of cells.
 *
 *   state        OUT, length size
 *   work         OUT, as large as the pass takes, kept from call to call
 */
void
dpq_coarse_begin(const dpq_coarse_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
                 const dpq_coarse_rows *rows, size_t size, dpq_coarse_draw *state, void *work);

/* Draw their cells at the levels before `last`, down to `first`; those from `last` on are drawn, which are
 * all m at first. Rows first, ..., last - 1 are held, and better some before.
 *
 *   state, work  IN OUT, from dpq_coarse_begin
 *   path         IN OUT, size times m cells: also at levels before `first`, where a run goes on
 *
 * Returns   the level down to which they are drawn: `first`; or a later one, if a run that goes on from there
 *           may go on before the rows that are held. With more of these, draws go on as if they had been there.
 * Cost      O(n / DPQ_COARSE_BLOCK + DPQ_COARSE_BLOCK) for each draw and level, in rows of n cells.
 */
size_t
dpq_coarse_paths(const dpq_coarse_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
                 const dpq_coarse_rows *rows, size_t first, size_t last, size_t size, bitgen_t *rng,
                 dpq_coarse_draw *state, void *work, size_t *path);

/* Pieces of some leaves, ascending in each. Outputs of one have ranks from least to most. */
typedef struct {
    const size_t *slot;          /* IN, length size times m: in which of these leaves an output is */
    const size_t *start;         /* IN: the leaf in slot i holds the pieces start[i], ..., start[i + 1] - 1 */
    const double *width;         /* IN, > 0 */
    const int64_t *least, *most; /* IN */
    const int64_t *points;       /* IN: pieces begin after these, on a lattice; or NULL, */
    const double *numbers;       /* IN: without one */
    size_t longest;              /* most pieces of a leaf */
} dpq_coarse_pieces;

/* The bends of paths, b_j above: -1, 0 or 1.
 *
 *   path         IN, size times m
 *   bend         OUT, size times m
 */
void
dpq_coarse_bends(const dpq_coarse_problem *p, size_t size, const size_t *path, int64_t *bend);

/* Draw the leaves that outputs are in, inside the cells of paths: by volume[b_j + 1] where a cell holds one,
 * else by an urn. On a lattice k outputs of a cell are a multiset: each further one is a new output, or a
 * copy of one that is there, with as much weight as a single new output has. At m levels in a row that a
 * run neither goes on to nor from; all tables have m columns.
 *
 *   bend         IN, from dpq_coarse_bends
 *   leaf         OUT, size times m
 *   copied       OUT, size times m: which one of the outputs in its cell it is a copy of; or DPQ_COARSE_NONE
 */
void
dpq_coarse_leaves(const dpq_coarse_problem *p, size_t size, size_t m, const size_t *path,
                  const int64_t *bend, bitgen_t *rng, size_t *leaf, uint32_t *copied);

/* Draw the outputs, at the same levels.
 *
 *   leaf, copied IN, from dpq_coarse_leaves
 *   work         WORK, length longest
 *   piece        OUT, where outputs are
 *   point, number  OUT, size times m: the outputs, on a lattice or not, the other one NULL; ascending within
 *                each cell
 */
void
dpq_coarse_points(const dpq_coarse_problem *p, const dpq_coarse_pieces *pieces, size_t size,
                  size_t m, const size_t *path, const int64_t *bend, const size_t *leaf,
                  const uint32_t *copied, bitgen_t *rng, double *work, size_t *piece, int64_t *point,
                  double *number);

#endif
