/* How much paths weigh at most that pass each place: for windows that hold nearly all of them.
 *
 * Ranks are cut into cells of S of them, the same at all levels: cell k has the ranks k S, ..., k S + S - 1 and
 * stands at rho_k = k S + rest. Weights and signs s_j of steps are those of coarse.h: with v_j = rho_j - Q_j,
 * outputs in cells C_1 <= ... <= C_m weigh at most
 *
 *   prod_j exp(-c |v_j - v_{j-1}|) volume[b_j + 1] of C_j,   b_j = (s_j - s_{j+1}) / 2.
 *
 * Any signs will do, and here they go by how many cells a step goes up: a few have the sign -1, all longer ones 1.
 * So a level's sums are those of the level before. For the sign 1 they are one sum, from the first cell on. Of the
 * sign -1 there are some cells each time, as in a window that moves on: the shortest steps, a few, are weighed
 * each; the others, C of them, make up a number of cells in whole blocks, and of each C cells in a row one sum goes
 * from the last one downward, and one from the first one upward, so that a window is the end of one and the
 * beginning of the next. No sum has a term less than 0, and none is taken from another.
 *
 * Outputs of one cell at k >= 2 levels in a row are counted in their order, or as multisets, and so weigh V^k / k!:
 * for k = 2, 3 and 4 that is said of each cell, and V / 5 or less for each further output; for some cells, where
 * paths stay, a list has all k. For bends at the first and at the last of them the largest factor is taken.
 *
 * What comes before a level and what comes after it are the same sums of a problem and of its mirror image. Their
 * product bounds what paths weigh that have an output there: V^a / a! times V^b / b! is no less than
 * V^(a + b - 1) / (a + b - 1)! times V, for the level's own output counts twice.
 */
#ifndef DPQ_PASSING_H
#define DPQ_PASSING_H

#include <stddef.h>
#include <stdint.h>

#define DPQ_PASSING_BLOCK 8     /* cells that one bound is for */
#define DPQ_PASSING_APART 128.0 /* nats between targets, at most */

typedef struct {
    size_t levels;           /* m >= 1 */
    size_t cells;            /* K > 0, in whole blocks */
    double ranks;            /* S >= 1 */
    double rest;             /* where cell 0 stands */
    double rate;             /* c > 0; c S <= 8 */
    const double *target;    /* IN, length m, Q_j, ascending, no more than DPQ_PASSING_APART apart */
    const double *volume[3]; /* IN, length K: bends -1, 0 and 1; at most 2^200, and those of bends no more than
                              * exp(c (S - 1)) times the other */
    double point;            /* what a point measures where several outputs are counted as multisets, in the same
                              * unit; else 0 */
    const size_t *from, *to; /* IN, length m: row j has the cells from[j] <= k < to[j], some, in whole blocks; both
                              * non-decreasing */
    size_t heavies;          /* so many cells have a list */
    const size_t *heavy;     /* IN: these, ascending */
} dpq_passing_problem;

/* Bytes of workspace. */
size_t
dpq_passing_room(const dpq_passing_problem *p);

/* How many blocks the longest row has. */
size_t
dpq_passing_longest(const dpq_passing_problem *p);

/* ln of what all paths in rows weigh at most; and of what those weigh at most that pass a block of a row, less
 * that.
 *
 *   work         WORK
 *   log_passing  OUT, m times dpq_passing_longest(): the blocks of each row from its first one on; -INFINITY
 *                beyond
 *
 * Accuracy  none is below what such paths weigh, but for 1e-9 of it; less where rounding of targets is more
 * Cost      O(1) for each cell of rows, twice; no allocation
 */
double
dpq_passing_log(const dpq_passing_problem *p, void *work, float *log_passing);

#endif
