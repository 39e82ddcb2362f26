/* Forward passes drawn at random, for the targets of scan.h and path.h, and their rows by the
 * definition in scan.h: sums over all pairs of intervals, of logarithms in long double.
 */
#ifndef DPQ_FUZZ_PROBLEM_H
#define DPQ_FUZZ_PROBLEM_H

#include "fuzz.h"
#include "scan_blocks.h"

#define MOST_RANK (INT64_C(1) << 62)

/* A problem, and what follows from it. */
typedef struct {
    dpq_scan_problem p;
    size_t longest, entries; /* of a row, of all rows */
    long double spread;      /* no two of the ranks and targets are farther apart */
} fuzz_problem;

static inline int64_t *
fuzz_draw_ranks(fuzz_input *in, size_t n)
{
    int64_t *rank = fuzz_room(n, sizeof *rank), kind = fuzz_between(in, 0, 5);
    int64_t most = kind < 3 ? 1 : kind == 3 ? 3 : kind == 4 ? 3000 : INT64_C(1) << 50;
    int64_t base = fuzz_between(in, 0, 7);

    rank[0] = base < 5 ? 0 : base == 5 ? fuzz_between(in, 0, 255)
                                       : fuzz_between(in, 0, MOST_RANK - (INT64_C(1) << 60));
    for (size_t t = 1; t < n; t++) {
        int64_t gap = kind < 3 ? 1 : fuzz_between(in, 0, most);

        rank[t] = MOST_RANK - rank[t - 1] < gap ? MOST_RANK : rank[t - 1] + gap;
    }
    return rank;
}

static inline double *
fuzz_draw_widths(fuzz_input *in, size_t n, int lattice)
{
    double *width = fuzz_room(n, sizeof *width);
    int64_t kind = fuzz_between(in, 0, 5);

    for (size_t t = 0; t < n; t++) {
        width[t] = kind == 0   ? 1.0
                   : kind == 1 ? (double)fuzz_between(in, 1, 16)
                   : kind == 2 ? ldexp(1.0 + fuzz_share(in), (int)fuzz_between(in, -4, 4))
                   : kind == 3 ? ldexp(1.0 + fuzz_share(in), (int)fuzz_between(in, -40, 40))
                   : kind == 4 ? ldexp(1.0, (int)fuzz_between(in, -1000, 1000))
                               : fuzz_positive(in);
        if (lattice) {
            width[t] = ceil(width[t]);
        }
    }
    return width;
}

/* Targets near the ranks, and rates that make them matter or swamp everything. */
static inline void
fuzz_draw_targets(fuzz_input *in, size_t n, const int64_t *rank, size_t m, int64_t *whole,
                  double *part)
{
    int64_t kind = fuzz_between(in, 0, 3), from = rank[n - 1] / 2;

    for (size_t j = 0; j < m; j++) {
        int64_t w = kind == 3 ? fuzz_between(in, 0, MOST_RANK)
                    : kind == 2
                        ? fuzz_between(in, from, rank[n - 1])
                        : rank[fuzz_between(in, 0, (int64_t)n - 1)] + fuzz_between(in, -3, 3);
        double f = fuzz_bit(in) ? 0.0 : fuzz_share(in);
        size_t at = j;

        w = w < 0 ? 0 : w > MOST_RANK ? MOST_RANK : w;
        f = f < 1.0 ? f : 0x1.fffffffffffffp-1;
        for (; at > 0 && (whole[at - 1] > w || (whole[at - 1] == w && part[at - 1] > f)); at--) {
            whole[at] = whole[at - 1];
            part[at] = part[at - 1];
        }
        whole[at] = w;
        part[at] = f;
    }
}

static inline double
fuzz_draw_rate(fuzz_input *in)
{
    switch (fuzz_between(in, 0, 7)) {
    case 0:
        return 0.0;
    case 1:
        return (double)fuzz_between(in, 0, 255) / 8.0;
    case 2:
        return fabs(fuzz_finite(in));
    case 3:
        return ldexp(1.0, (int)fuzz_between(in, -1074, 1023));
    default:
        return (double)fuzz_between(in, 0, 255) / 256.0;
    }
}

/* Which intervals each level uses: all, or such that none decreases from one to the next. */
static inline void
fuzz_draw_windows(fuzz_input *in, size_t n, size_t m, size_t *lo, size_t *hi)
{
    int all = fuzz_bit(in);

    for (size_t j = 0; j < m; j++) {
        size_t least = j > 0 ? lo[j - 1] : 0, most = n - 1;

        lo[j] = all ? 0 : least + (size_t)fuzz_between(in, 0, (int64_t)(most - least) / 2);
        least = j > 0 && hi[j - 1] > lo[j] ? hi[j - 1] : lo[j] + 1;
        hi[j] = all ? n : least + (size_t)fuzz_between(in, 0, (int64_t)(n - least));
    }
}

static inline fuzz_problem
fuzz_draw_problem(fuzz_input *in, size_t most_intervals, size_t most_levels)
{
    size_t n = (size_t)fuzz_between(in, 1, (int64_t)most_intervals);
    size_t m = (size_t)fuzz_between(in, 1, (int64_t)most_levels);
    int lattice = fuzz_bit(in);
    int64_t *rank = fuzz_draw_ranks(in, n), *whole = fuzz_room(m, sizeof *whole), lowest, highest;
    double *width = fuzz_draw_widths(in, n, lattice), *part = fuzz_room(m, sizeof *part);
    size_t *lo = fuzz_room(m, sizeof *lo), *hi = fuzz_room(m, sizeof *hi);
    size_t *start = fuzz_room(m, sizeof *start);
    fuzz_problem made = {.longest = 0, .entries = 0};

    fuzz_draw_targets(in, n, rank, m, whole, part);
    fuzz_draw_windows(in, n, m, lo, hi);
    for (size_t j = 0; j < m; j++) {
        size_t size = hi[j] - lo[j];

        start[j] = made.entries;
        made.entries += size;
        made.longest = size > made.longest ? size : made.longest;
    }
    lowest = rank[0] < whole[0] ? rank[0] : whole[0];
    highest = rank[n - 1] > whole[m - 1] ? rank[n - 1] : whole[m - 1];
    made.spread = (long double)(highest - lowest) + 1.0L;
    made.p = (dpq_scan_problem){n,  rank, width, lattice,           m, whole, part, lo,
                                hi, start, fuzz_draw_rate(in)};
    return made;
}

static inline void
fuzz_free_problem(fuzz_problem *problem)
{
    const dpq_scan_problem *p = &problem->p;

    free((void *)(uintptr_t)p->rank);
    free((void *)(uintptr_t)p->width);
    free((void *)(uintptr_t)p->whole);
    free((void *)(uintptr_t)p->part);
    free((void *)(uintptr_t)p->lo);
    free((void *)(uintptr_t)p->hi);
    free((void *)(uintptr_t)p->start);
}

/* Room for exponents of rows in blocks, or of one each. */
static inline dpq_scan_blocks
fuzz_make_blocks(const dpq_scan_problem *p, int alone)
{
    size_t n = p->intervals, *begin = fuzz_room(n + 1, sizeof *begin);
    size_t *first = fuzz_room(p->levels, sizeof *first), exponents = 0;
    uint8_t *begins = fuzz_room(n, sizeof *begins);
    uint32_t *of = fuzz_room(n, sizeof *of);

    dpq_scan_choose_blocks(p, alone, 0, begins, of, begin);
    for (size_t t = 0; t < n; t++) {
        CHECK(begin[of[t]] <= t && t < begin[of[t] + 1]);
        CHECK(begin[of[t] + 1] - begin[of[t]] <= (alone ? 1 : DPQ_SCAN_BLOCK));
    }
    for (size_t j = 0; j < p->levels; j++) {
        first[j] = exponents;
        exponents += of[p->hi[j] - 1] - of[p->lo[j]] + 1;
    }
    free(begins);
    return (dpq_scan_blocks){.alone = alone,
                             .of = of,
                             .begin = begin,
                             .first = first,
                             .A = fuzz_room(exponents, sizeof(int64_t)),
                             .H = fuzz_room(exponents, sizeof(int64_t))};
}

static inline void
fuzz_free_blocks(dpq_scan_blocks *blocks)
{
    free((void *)(uintptr_t)blocks->of);
    free((void *)(uintptr_t)blocks->begin);
    free((void *)(uintptr_t)blocks->first);
    free(blocks->A);
    free(blocks->H);
}

/* r - Q_j */
static inline long double
fuzz_above(const dpq_scan_problem *p, int64_t r, size_t j)
{
    return (long double)(r - p->whole[j]) - (long double)p->part[j];
}

/* n_j, Q_0 = 0 */
static inline long double
fuzz_gap(const dpq_scan_problem *p, size_t j)
{
    return j == 0 ? (long double)p->whole[0] + (long double)p->part[0]
                  : (long double)(p->whole[j] - p->whole[j - 1]) +
                        ((long double)p->part[j] - (long double)p->part[j - 1]);
}

/* ln f(kappa) for interval t, kappa = k >= 2 */
static inline long double
fuzz_log_factor(const dpq_scan_problem *p, size_t t, size_t k)
{
    long double more = p->lattice ? (long double)(k - 1) : 0.0L;

    return logl(((long double)p->width[t] + more) / (long double)k);
}

/* ln sum exp, of n numbers. */
static inline long double
fuzz_log_sum(size_t n, const long double *x)
{
    long double largest = -INFINITY, sum = 0.0L;

    for (size_t i = 0; i < n; i++) {
        largest = x[i] > largest ? x[i] : largest;
    }
    for (size_t i = 0; i < n && largest > -INFINITY; i++) {
        sum += expl(x[i] - largest);
    }
    return sum > 0.0L ? largest + logl(sum) : largest;
}

/* ln A and ln H as defined, without potentials, in rows as the kernel's; ln Z is returned. */
static inline long double
fuzz_log_rows(const fuzz_problem *problem, long double *A, long double *H)
{
    const dpq_scan_problem *p = &problem->p;
    size_t m = p->levels, room = p->intervals > m ? p->intervals : m, last = m - 1;
    long double c = (long double)p->rate / 2.0L, *x = fuzz_room(room, sizeof *x), total;

    for (size_t j = 0; j < m; j++) {
        for (size_t t = p->lo[j]; t < p->hi[j]; t++) {
            size_t at = p->start[j] + (t - p->lo[j]), n = 0;
            long double factor = 0.0L;

            if (j == 0) {
                x[n++] = -c * fabsl(fuzz_above(p, p->rank[t], 0));
            }
            for (size_t s = j > 0 ? p->lo[j - 1] : t; s < t && s < p->hi[j - 1]; s++) {
                long double v = (long double)(p->rank[t] - p->rank[s]) - fuzz_gap(p, j);

                x[n++] = H[p->start[j - 1] + (s - p->lo[j - 1])] - c * fabsl(v);
            }
            A[at] = logl(p->width[t]) + fuzz_log_sum(n, x);
            x[0] = A[at];
            n = 1;
            for (size_t l = j; l-- > 0 && t < p->hi[l]; n++) {
                factor += fuzz_log_factor(p, t, n + 1) - c * fuzz_gap(p, l + 1);
                x[n] = A[p->start[l] + (t - p->lo[l])] + factor;
            }
            H[at] = fuzz_log_sum(n, x);
        }
    }
    for (size_t t = p->lo[last]; t < p->hi[last]; t++) {
        x[t - p->lo[last]] = H[p->start[last] + (t - p->lo[last])] -
                             c * fabsl(fuzz_above(p, p->rank[t], last));
    }
    total = fuzz_log_sum(p->hi[last] - p->lo[last], x);
    free(x);
    return total;
}

#endif
