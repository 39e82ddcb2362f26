/* The forward pass of JointExp: total weight of all partial sequences of intervals.
 *
 * With T intervals of rank r_t and width w_t, targets Q_1 < ... < Q_m (and Q_0 = 0), rate c and
 * gaps n_j = Q_j - Q_{j-1}, the recursion of [GJK21] Alg. 1 lines 4-12, with alpha summed over k:
 *
 *   A_1(t) = w_t exp(-c |r_t - Q_1|)
 *   A_j(t) = w_t sum_{s<t} exp(-c |r_t - r_s - n_j|) H_{j-1}(s)
 *   H_j(t) = sum_{k=1..j} A_{j-k+1}(t) prod_{l=j-k+2..j} exp(-c n_l) prod_{kappa=2..k} f(kappa)
 *   f(kappa) = w_t / kappa (continuous)  or  (w_t + kappa - 1) / kappa (lattice)
 *
 * What is stored is each row over its potential, a_j(t) = A_j(t) exp(c |r_t - Q_j|) and likewise
 * H. With u = r_s - Q_{j-1} and v = r_t - Q_j the step becomes
 *
 *   a_j(t) = w_t sum_{s<t} exp(-2c dist(u, [min(0, v), max(0, v)])) h_{j-1}(s)
 *
 * since |v - u| + |u| - |v| is twice that distance: no exponent is positive, nothing overflows, and
 * rows are nearly flat. The sum is a first-order recursion or prefix sum over u <= v and a sliding
 * window over u > v, kept as two stacks: additions and products of non-negative numbers only, so
 * every entry has full relative precision, at O(1) per entry, for any ranks.
 *
 * Targets are exact: Q_j = whole[j] + part[j] with an integer and a fraction in [0, 1).
 */
#ifndef DPQ_SCAN_H
#define DPQ_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include "decay.h"
#include "status.h"

/* Of float64 rows: */
#define DPQ_SCAN_REST 0x1p-53      /* the sum over k stops at this relative size of its rest: of one rounding */
#define DPQ_SCAN_SMALLEST 0x1p-840 /* positive row entries below this might have lost something */
#define DPQ_SCAN_SMALLEST_ROW -60  /* ... and the power of two of a row's largest entry: with both, a sum
                                    * is above 2^-900, and what decays below 2^-1021 is nothing to it */
#define DPQ_SCAN_MOST_SCALING 960  /* a power of two a row may be scaled by */

typedef struct {
    size_t intervals;     /* T >= 1 */
    const int64_t *rank;  /* IN, length T, non-decreasing, in [0, 2^62] */
    const double *width;  /* IN, length T, > 0 and finite; integers on a lattice */
    int lattice;          /* which f(kappa) */
    size_t levels;        /* m >= 1 */
    const int64_t *whole; /* IN, length m, floor of Q_j, in [0, 2^62] */
    const double *part;   /* IN, length m, Q_j minus its floor; Q_j non-decreasing */
    const size_t *lo;     /* IN, length m: level j uses intervals lo[j] <= t < hi[j], */
    const size_t *hi;     /* IN, length m: both non-decreasing, none empty */
    const size_t *start;  /* IN, length m: row j starts at this entry of the row arrays, where row
                           * j - 1 ends */
    double rate;          /* 2c, >= 0 and finite */
} dpq_scan_problem;

/* What the k-th of several outputs in interval t multiplies the measure by, times k. */
static inline double
dpq_scan_places(const dpq_scan_problem *p, size_t t, size_t k)
{
    return p->lattice ? p->width[t] + (double)(k - 1) : p->width[t];
}

/* What one level needs again and again; filled by dpq_scan_prepare. */
typedef struct {
    int64_t reach;  /* ceil(n_j): u <= v exactly for r_s <= r_t - reach */
    double slack;   /* ceil(n_j) - n_j, in [0, 1] */
    double stay;    /* exp(-2c n_j): from level j - 1 to j at one rank above the target */
    double down;    /* exp(-2c part[j]): from Q_j to the next rank below, */
    double up;      /* exp(-2c (1 - part[j])): above */
    double past;    /* exp(-2c slack): v - u where r_t - r_s = reach */
    double ahead;   /* exp(-2c (1 - slack)): u - v where r_t - r_s = reach - 1 */
    double share;   /* 1 / (j + 1) */
    double gain;    /* power of two by which a row is scaled (float64 rows) */
    double largest; /* largest entry of row h_j (float64 rows) */
} dpq_scan_level;

/* q[j] * n as floor and fraction, exact to 1e-16: a product rounded to float64 would make the
 * sensitivity of the score depend on n.
 *
 *   m            number of levels
 *   q            IN, length m, in [0, 1]
 *   n            records, 0 <= n <= 2^53
 *   whole, part  OUT, length m
 */
void
dpq_scan_targets(size_t m, const double *q, int64_t n, int64_t *whole, double *part);

/* Fill the table of decays and the levels' constants. Both depend on the rate, the targets and how far
 * apart the first and the last rank are, not on widths.
 *
 *   decay        OUT
 *   level        OUT, length m
 */
void
dpq_scan_prepare(const dpq_scan_problem *p, dpq_decay *decay, dpq_scan_level *level);

/* The sums of one level: sum_{s<t} exp(...) h_{j-1}(s) for t in [lo[j], hi[j]); ones for j = 0.
 *
 *   j            level, counted from 0
 *   H            IN, rows up to j - 1
 *   sums         OUT, length hi[j] - lo[j]
 *   work         WORK, length hi[j-1] - lo[j-1] at least
 */
void
dpq_scan_sums(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
              size_t j, const double *H, double *sums, double *work);

/* Finish one level: a_j = w * sums (in place of the sums), h_j with the sum over k.
 *
 *   level        IN OUT, gain of this level
 *   A            IN OUT, rows up to j - 1 and in row j the sums; OUT row j
 *   H            IN OUT, rows up to j - 1; OUT row j
 *   exponent     IN OUT, length m: row j stands for its entries times 2^exponent[j]
 *
 * The sum over k stops where a bound on its rest is below 2^-53 of it: what follows is at most
 * H_{j-k+1}(t) times the factor reached so far.
 * Returns   DPQ_OK; DPQ_ERR_RANGE if a positive entry fell below 2^-840, or a whole row below
 *           2^-60: float64 rows will not do.
 * Cost      O(1) per entry and level that shares the interval.
 */
dpq_status
dpq_scan_close(const dpq_scan_problem *p, const dpq_decay *decay, dpq_scan_level *level, size_t j,
               double *A, double *H, int64_t *exponent);

/* ln Z = ln sum_t H_m(t) exp(-c |n - r_t - n_{m+1}|).
 *
 *   log_total    OUT
 * Returns   DPQ_OK, or DPQ_ERR_RANGE as above.
 */
dpq_status
dpq_scan_total(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
               const double *H, const int64_t *exponent, double *log_total);

/* The whole forward pass in float64 rows: sums and close for every level, then the total.
 *
 *   first        levels before this one are done: their rows are IN, and so are decay and level, as from
 *                dpq_scan_prepare, but gain and largest of these levels as that pass left them
 *   A, H         OUT, sum(hi - lo) entries each
 *   exponent     OUT, length m
 *   work         WORK, length max(hi - lo)
 *   log_total    OUT, or NULL where other levels follow
 *
 * Returns   DPQ_OK, or DPQ_ERR_RANGE: call dpq_scan_forward_blocks of scan_blocks.h.
 * Cost      O(sum(hi - lo)), no allocation, reentrant.
 * Accuracy  every entry right to 1e-11 relative for up to 1e6 intervals.
 */
dpq_status
dpq_scan_forward(const dpq_scan_problem *p, dpq_decay *decay, dpq_scan_level *level, size_t first,
                 double *A, double *H, int64_t *exponent, double *work, double *log_total);

#endif
