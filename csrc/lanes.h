/* JointExp for several groups of equal size side by side, one in each lane of a vector.
 *
 * Groups of n records have the same targets. With an interval for each of the ranks 0, ..., n, those
 * between records that are tied with no width, they also have the same ranks: all decays of the
 * forward pass are numbers that the lanes share, and what a row does to its entries is done to all
 * lanes at once. See scan.h for the recursion. Row arrays hold DPQ_LANES numbers for each entry:
 * entry t of row j begins at DPQ_LANES (j (n + 1) + t).
 */
#ifndef DPQ_LANES_H
#define DPQ_LANES_H

#include <stddef.h>
#include <stdint.h>

#include <numpy/random/bitgen.h>

#include "path.h"
#include "scan.h"

#define DPQ_LANES 8
#define DPQ_LANES_MOST (DPQ_DECAY_TABLE - 1) /* records of a group: all their decays are tabulated */

/* Weights below this share of their total are not drawn from running sums, whose rounding they would
 * feel. */
#define DPQ_LANES_LIGHT 0x1p-16

typedef struct {
    /* IN, the law of a group */
    size_t levels, records;      /* m >= 1; 1 <= n <= DPQ_LANES_MOST */
    int lattice;                 /* as in scan.h */
    double rate;                 /* 2c */
    double before, after;        /* x_0 and x_{n+1}, as for dpq_intervals_lattice */
    const int64_t *whole;        /* length m, as in scan.h, and so is `part` */
    const double *part;
    const dpq_decay *decay;      /* from dpq_scan_prepare, for ranks from 0 to n */
    const dpq_scan_level *level; /* likewise, length m */
    double light;                /* DPQ_LANES_LIGHT, or more to have more of them, for tests */
    /* OUT of dpq_lanes_prepare, length m (n + 1): of rank t at level j */
    double *fade;         /* exp(-2c |t - Q_j|), */
    double *above, *below; /* the same if t > Q_j, or if t < Q_j, else 1 */
    double *stay;         /* from level j to j + 1 at one rank; not for the last level */
    /* rows of DPQ_LANES numbers */
    double *point;  /* n + 2 rows: IN rows 1, ..., n, the sorted records; OUT the first and the last */
    double *A, *H;  /* OUT, m (n + 1) rows */
    double *gain;   /* OUT, m rows: powers of two by which rows are scaled */
    double *total;  /* OUT, one row: ln of it is ln Z, but for what rows are scaled by */
    double *suffix; /* WORK, n + 1 rows */
    /* WORK, one lane by itself, whose intervals of no width are left out */
    int64_t *rank;                /* length n + 1 */
    double *width;                /* length n + 1 */
    double *plain_A, *plain_H;    /* length m (n + 1) */
    double *weight;               /* length n + (n + 1) / DPQ_PATH_BLOCK + m + 3 */
    int64_t *exponent;            /* length m */
    size_t *lo, *hi, *start;      /* length m */
} dpq_lanes;

/* Whether lanes can have groups of this size: targets are at least a rank apart, or nearly so. */
int
dpq_lanes_fit(const dpq_lanes *lanes);

/* Fill the tables that all groups of one size share. O(m n). */
void
dpq_lanes_prepare(const dpq_lanes *lanes);

/* One forward pass over all intervals of all lanes.
 *
 * Returns   a number whose bit l is set where float64 rows will not do for lane l, as by
 *           dpq_scan_close or dpq_scan_total: nothing may be drawn there.
 * Cost      O(m n), and for each entry and each level before it that still adds to it.
 */
unsigned
dpq_lanes_forward(const dpq_lanes *lanes);

/* Draw the sequence of intervals of one lane: its ranks, path[0] <= ... <= path[m - 1], by the law of
 * dpq_path_draw.
 *
 * Candidates are looked at from the target outward, until the running sum of those that are not light
 * passes a uniform share of slightly more than their total, which the forward pass knows: so mostly
 * few of them are looked at. Else it is one of the light ones, which are added up by themselves, or
 * none, and all are drawn from anew.
 *
 * Draws     dpq_uniform_fine once for each interval and once for how many outputs it holds; more
 *           where these do not decide it.
 */
void
dpq_lanes_draw(const dpq_lanes *lanes, size_t lane, bitgen_t *rng, size_t *path);

#endif
