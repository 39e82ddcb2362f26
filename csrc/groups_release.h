/* One release for each of many small groups of one column: JointExp, or one level by depth. */
#ifndef DPQ_GROUPS_RELEASE_H
#define DPQ_GROUPS_RELEASE_H

#include <stddef.h>
#include <stdint.h>

#include <numpy/random/bitgen.h>

#include "lanes.h"
#include "path.h"
#include "scan.h"
#include "status.h"

/* What all groups share; everything here is public. */
typedef struct {
    size_t levels;   /* m >= 1 */
    const double *q; /* IN, length m, ascending, distinct, in [0, 1] */
    double rate;     /* loss of log-weight per rank, c > 0; 2c is finite */
    double low, high; /* low < high, their difference is finite */
    int lattice;     /* 0 for the continuous mechanism; the rest is for the lattice alone: */
    double per_unit; /* see lattice.h */
    double step;
    int64_t first, points;
    int bits; /* dither bits s from 0 to 32, points * 2^s <= 2^53 */
    double light; /* see lanes.h */
} dpq_groups_law;

/* Room for groups of up to n records. */
typedef struct {
    int64_t *point, *spare;        /* WORK, length dpq_groups_room(n) */
    int64_t *rank, *left;          /* WORK, length n + 1 */
    double *width, *number, *edge; /* WORK, length n + 1 */
    double *A, *H;                 /* WORK, length m (n + 1) */
    double *race;                  /* WORK, length n + (n + 1) / DPQ_PATH_BLOCK + m + 3 */
    int64_t *exponent, *whole;     /* WORK, length m */
    double *part;                  /* WORK, length m */
    int64_t *first, *last;         /* WORK, length 2 m */
    size_t *lo, *hi, *row, *path;  /* WORK, length m */
    dpq_decay *decay;              /* WORK */
    dpq_scan_level *level;         /* WORK, length m */
    size_t lanes_room;             /* for dpq_groups_release: most records of groups that have room */
    dpq_lanes lanes;               /* side by side: the arrays that are not among these, */
    int64_t *column;               /* WORK, length DPQ_LANES lanes_room */
} dpq_groups_work;

/* Release the groups order[*next], ..., order[groups - 1].
 *
 *   start, value IN, as from dpq_groups_order; no group larger than `work` has room for
 *   order        IN, groups; those of one size cost less where they follow each other
 *   rng          IN OUT, the caller holds its lock
 *   next         IN OUT, where the groups that are left to do begin
 *   point        OUT, lattice: (fine) points, m for each group, ascending; else NULL
 *   number       OUT, continuous: numbers; else NULL
 *
 * For each group: every record on the lattice, sorted and dithered, with a shift of its own; one
 * forward pass over all intervals in float64 rows; one draw. Up to DPQ_LANES groups of one size that
 * follow each other do so side by side (lanes.h), as far as there is room, others by themselves.
 * Draws     for these groups at a time dpq_dither_draw for each, or for each lane, if s > 0; then
 *           for each dpq_lanes_draw or dpq_path_draw, and its points.
 * Returns   DPQ_OK with *next = groups. DPQ_ERR_RANGE where the rows of order[*next] leave the range
 *           of float64: its sorted points stand in work->point (lattice) or work->number, dither
 *           included, for the caller to go on with. What was drawn for groups behind it is forgotten.
 * Cost      O(m n + n log(n)^2) per group, no allocation, reentrant.
 */
dpq_status
dpq_groups_release(const dpq_groups_law *law, size_t groups, const int64_t *start,
                   const double *value, const int64_t *order, const dpq_groups_work *work,
                   bitgen_t *rng, size_t *next, int64_t *point, double *number);

/* Which windows of ranks one release keeps to: |r - Q_j| <= W at each level j.
 *
 * With D_0 = W < D_1 < ... < D_K, V(D) the measure of all tuples of outputs within D of their targets, in
 * any order, and V that of all tuples in order, the paths that leave the windows weigh at most
 *
 *   B = sum_{k < K} exp(-2c D_k) V(D_{k+1}) + exp(-2c D_K) V,
 *
 * since a path that is D ranks away from a target loses 2 D on its way there and back. So a draw
 * is decided outside of the windows with probability B / (Z + B) at most, Z being what paths inside
 * weigh: it is left to the caller that often. */
typedef struct {
    double log_volume; /* IN, ln V */
    double spare;      /* IN, how many nats B is to be below Z; INFINITY for windows of all ranks */
    int64_t held;      /* IN, intervals are laid out around targets alone, as far as this: W or
                        * more, or it is in vain; n for all of them */
    int64_t reach;     /* OUT, W; n for all ranks */
    double log_bound;  /* OUT, ln B; -INFINITY for all ranks */
    int escaped;       /* OUT, whether this draw is left to the caller */
} dpq_groups_windows;

/* Release one sample, as its law draws.
 *
 *   value        IN, length n, in any order, no NaN; `work` has room for n
 *   windows      IN OUT
 *   point        OUT, lattice: (fine) points, m, ascending; else NULL
 *   number       OUT, continuous: numbers; else NULL
 *
 * Everything else as for dpq_groups_release; where windows->escaped, the sorted points are left as for
 * DPQ_ERR_RANGE.
 * Draws     dpq_dither_draw, if s > 0; dpq_path_draw; its points.
 * Cost      O(m W + n) where records are in order, else O(n log(n)^2) to sort them, too; no allocation,
 *           reentrant.
 */
dpq_status
dpq_groups_release_one(const dpq_groups_law *law, size_t n, const double *value,
                       const dpq_groups_work *work, bitgen_t *rng, dpq_groups_windows *windows,
                       int64_t *point, double *number);

/* Release one level of each of the groups first, ..., groups - 1 by depth and permute-and-flip.
 *
 *   law          on a lattice without dither, of one level; its rate is the loss of log-weight per
 *                record
 *   start, value IN, as from dpq_groups_order; no group larger than `work` has room for
 *   work         point, spare, rank, left, width, whole and part are used
 *   rng          IN OUT, the caller holds its lock
 *   point        OUT, one for each group
 *
 * For each group: every record on the lattice, sorted, compressed; one draw.
 * Draws     for each group: dpq_depth_point.
 * Cost      O(n log n) per group, no allocation, reentrant.
 */
void
dpq_groups_flip(const dpq_groups_law *law, size_t first, size_t groups, const int64_t *start,
                const double *value, const dpq_groups_work *work, bitgen_t *rng, int64_t *point);

/* Release each of several levels of one sample like that, one after the other.
 *
 *   law          as for dpq_groups_flip, but of m levels; its rate is not used
 *   rate         IN, length m, for each level
 *   value        IN, length n, in any order, no NaN; `work` has room for n
 *   point        OUT, length m, in the order of the levels: not sorted
 */
void
dpq_groups_flip_one(const dpq_groups_law *law, const double *rate, size_t n, const double *value,
                    const dpq_groups_work *work, bitgen_t *rng, int64_t *point);

#endif
