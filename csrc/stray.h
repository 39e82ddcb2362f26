/* How much paths weigh at most that leave narrow windows.
 *
 * A path of JointExp (scan.h) is a non-decreasing sequence of intervals t_1, ..., t_m. With v_j = r - Q_j
 * for the rank r of t_j it weighs prod_j w_{t_j} exp(-c sum_{j=1..m+1} |v_j - v_{j-1}|), v_0 = v_{m+1} = 0,
 * or less where an interval holds several outputs, which are counted as multisets. So the paths that
 * leave the narrow windows weigh at most
 *
 *   U = sum over all t_1, ..., t_m, in any order and not all inside, of the same product,
 *
 * which is a sum over a chain, one level after another. To make it short, ranks are cut into cells, the
 * same ones around every target, and a cell weighs as much as all that it holds at the smallest
 * distance. That makes the sum larger, never smaller.
 */
#ifndef DPQ_STRAY_H
#define DPQ_STRAY_H

#include <stddef.h>
#include <stdint.h>

#define DPQ_STRAY_WIDEST 8.0 /* nats from end to end of a cell, at most */

/* Cells around a target: cell 0 holds the rank floor(Q_j), cell i > 0 the ranks floor(Q_j) + d and
 * floor(Q_j) - d with start[i] <= d < start[i + 1], one side at a time. Ranks up to `window` are inside of
 * narrow windows, and ranks up to `reach` have cells. Cells are as wide as they may be if all m levels
 * together are to lose little by it: two nats, and farther out a share of what a path pays to get there and
 * back. That may be most of it, unless wide gaps out there make up for it.
 *
 *   window       0 <= window <= reach
 *   reach        < 2^54
 *   rate         c > 0, the loss per rank
 *   m            number of levels, m >= 1
 *   share        >= 0
 *   inside       OUT, cells 0, ..., inside - 1 are inside
 *   start        OUT, inside + outside + 1 entries; NULL to count them
 *
 * Returns   the number of cells of one side, cell 0 included; start has one entry more.
 */
size_t
dpq_stray_cells(int64_t window, int64_t reach, double rate, size_t m, double share, size_t *inside,
                int64_t *start);

/* What lies between records, by the intervals that have a width. */
typedef struct {
    size_t intervals;      /* T */
    const int64_t *rank;   /* IN, length T, non-decreasing */
    const double *width;   /* IN, length T, > 0 and finite */
    const int64_t *points; /* IN, length T: where intervals begin on a lattice, or NULL, */
    const double *numbers; /* IN: without one */
} dpq_stray_intervals;

/* The same by the records that a level's cells begin and end at, from the lowest cell to the highest: in a
 * sample x_1 <= ... <= x_n, those of ranks floor(Q_j) - start[cells] + 1, ..., floor(Q_j) + start[cells], or of
 * 0 and n + 1, the ends, where they would be beyond. One more than there are cells. */
typedef struct {
    const int64_t *points; /* IN: on a lattice, or NULL */
    const double *numbers; /* IN: without one */
} dpq_stray_borders;

typedef struct {
    size_t levels;         /* m >= 1 */
    const int64_t *whole;  /* IN, length m, floor of Q_j */
    const double *part;    /* IN, length m, Q_j minus its floor */
    double rate;           /* 0 < c <= 8 */
    size_t cells, inside;  /* as from dpq_stray_cells for the widest window */
    const int64_t *start;  /* IN, length cells + 1 */
    const int64_t *window; /* IN, length m, >= 0: cells inside of this are inside at a level */
} dpq_stray_problem;

/* Ranks that cells around a target begin and end at, ascending: as for dpq_stray_borders, at most n + 1.
 *
 *   rank         OUT, length 2 cells
 */
void
dpq_stray_ranks(const dpq_stray_problem *p, int64_t n, size_t j, int64_t *rank);

/* Go on with the chain: levels `first`, ..., `last` - 1, which have to be all, one after another.
 *
 *   intervals    IN, all within the cells around these targets, or all that there are: other levels may be
 *                given others; or NULL, and
 *   borders      IN, one for each of these levels
 *   work         WORK, length 28 cells, IN unless first is 0, OUT
 *   power        IN unless first is 0, OUT: the power of two by which the weights in `work` are scaled
 *
 * Cost      O(1) for each cell, side and level, and a bisection where intervals are tied; no allocation.
 */
void
dpq_stray_levels(const dpq_stray_problem *p, const dpq_stray_intervals *intervals,
                 const dpq_stray_borders *borders, size_t first, size_t last, double *work,
                 int64_t *power);

/* ln of an upper bound of U after all levels: of the sum over cells, and what is added so that underflow
 * takes nothing away. INFINITY where float64 does not hold the sum.
 *
 * Accuracy  not below U by more than 1e-9 of it; above it by up to exp(2 rate (2 reach + 1) - 600) of what
 *           all paths weigh, strayed or not: 2^-1000 is added at each level to what arrived at a cell, which
 *           was above 2^-100 a step before, and a step, or the way back, costs at most rate (2 reach + 1).
 */
double
dpq_stray_log(const dpq_stray_problem *p, const double *work, int64_t power);

#endif
