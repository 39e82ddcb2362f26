#include "scan.h"

#include "fuzz.h"
#include "problem.h"

__extension__ typedef unsigned __int128 wide_integer;

#define LN2 0.693147180559945309417232121458L
#define ACCURACY 1e-11L       /* of every entry */
#define SMALLEST (-840)       /* powers of two: an entry of float64 rows that is too small, */
#define SMALLEST_ROW (-60)    /* a largest one, */
#define MOST_SCALING 960      /* and how far widths may be from those of one */
#define MEANINGLESS 1e16L     /* losses whose differences long double does not see */
#define MOST_EXACT 0x1p53L    /* ranks that are exact in float64 */

/* Rows by the kernel and by definition. */
typedef struct {
    double *A, *H, *work;
    dpq_large *large_work;
    int64_t *exponent;
    dpq_decay *decay;
    dpq_scan_level *level;
    long double *log_A, *log_H, log_total;
} rows;

static rows
make_rows(const fuzz_problem *problem)
{
    size_t m = problem->p.levels, entries = problem->entries, longest = problem->longest;

    return (rows){
        .A = fuzz_room(entries, sizeof(double)),
        .H = fuzz_room(entries, sizeof(double)),
        .work = fuzz_room(longest, sizeof(double)),
        .large_work = fuzz_room(3 * longest, sizeof(dpq_large)),
        .exponent = fuzz_room(m, sizeof(int64_t)),
        .decay = fuzz_room(1, sizeof(dpq_decay)),
        .level = fuzz_room(m, sizeof(dpq_scan_level)),
        .log_A = fuzz_room(entries, sizeof(long double)),
        .log_H = fuzz_room(entries, sizeof(long double)),
    };
}

static void
free_rows(rows *r)
{
    free(r->A);
    free(r->H);
    free(r->work);
    free(r->large_work);
    free(r->exponent);
    free(r->decay);
    free(r->level);
    free(r->log_A);
    free(r->log_H);
}

/* Rounding in logarithms of the size that these have, of numbers with 2^-bits. */
static long double
noise(const fuzz_problem *problem, int bits)
{
    long double m = (long double)problem->p.levels;

    return ldexpl((long double)problem->p.rate * problem->spread + 800.0L, -bits) * (m + 1.0L);
}

/* c |r_t - Q_j|, of which the rows are free. */
static long double
potential(const dpq_scan_problem *p, size_t j, size_t t)
{
    return (long double)p->rate / 2.0L * fabsl(fuzz_above(p, p->rank[t], j));
}

static void
check_targets(fuzz_input *in)
{
    size_t m = (size_t)fuzz_between(in, 0, 8);
    int64_t n = fuzz_bit(in) ? fuzz_between(in, 0, INT64_C(1) << 53) : fuzz_between(in, 0, 255);
    double *q = fuzz_room(m, sizeof *q), *part = fuzz_room(m, sizeof *part);
    int64_t *whole = fuzz_room(m, sizeof *whole);

    for (size_t j = 0; j < m; j++) {
        int64_t parts = fuzz_between(in, 0, 255);

        q[j] = parts > 127  ? (double)fuzz_between(in, 0, parts) / (double)parts
               : parts > 63 ? fuzz_share(in)
                            : fabs(fuzz_finite(in));
        q[j] = q[j] <= 1.0 ? q[j] : 1.0 / q[j];
    }
    dpq_scan_targets(m, q, n, whole, part);
    for (size_t j = 0; j < m; j++) {
        int down; /* q[j] = mantissa 2^-down */
        uint64_t mantissa = (uint64_t)ldexp(frexp(q[j], &down), 53);
        wide_integer product = (wide_integer)mantissa * (uint64_t)n;
        int64_t floor_of;
        long double rest;

        down = 53 - down;
        CHECK(part[j] >= 0.0 && part[j] < 1.0 && whole[j] >= 0 && whole[j] <= n);
        floor_of = down < 127 ? (int64_t)(product >> down) : 0;
        rest = (long double)(product - ((wide_integer)floor_of << (floor_of > 0 ? down : 0)));
        CHECK(fabsl((long double)(whole[j] - floor_of) +
                    ((long double)part[j] - ldexpl(rest, -down))) <= 1.2e-16L);
    }
    free(whole);
    free(part);
    free(q);
}

static int
close_to(double got, long double expected, long double accuracy)
{
    return fabsl((long double)got - expected) <= accuracy * expected + 0x1p-1020L;
}

static void
check_decay(const dpq_decay *decay, fuzz_input *in)
{
    for (int i = 0; i < 4; i++) {
        int64_t k = fuzz_bit(in) ? fuzz_between(in, 0, 3000) : fuzz_between(in, 0, MOST_RANK);
        double got = dpq_decay_at(decay, k);

        CHECK(close_to(got, expl(-(long double)decay->rate * (long double)k), 1e-12L) ||
              decay->rate * (double)k >= DPQ_DECAY_ZERO);
        CHECK(got <= 0x1p-1020 || decay->rate * (double)k < DPQ_DECAY_ZERO);
    }
}

static void
check_levels(const dpq_scan_problem *p, const dpq_scan_level *level)
{
    long double rate = p->rate;

    for (size_t j = 0; j < p->levels; j++) {
        long double gap = fuzz_gap(p, j), part = p->part[j], slack = level[j].slack;
        int64_t before = j > 0 ? p->whole[j - 1] : 0;
        double before_part = j > 0 ? p->part[j - 1] : 0.0;

        CHECK(level[j].reach == p->whole[j] - before + (p->part[j] > before_part));
        CHECK(level[j].slack >= 0.0 && level[j].slack <= 1.0);
        CHECK(close_to(level[j].stay, expl(-rate * gap), 1e-12L) || rate * gap > DPQ_DECAY_ZERO);
        CHECK(close_to(level[j].down, expl(-rate * part), 1e-12L) || rate * part > DPQ_DECAY_ZERO);
        CHECK(close_to(level[j].up, expl(-rate * (1.0L - part)), 1e-12L) ||
              rate * (1.0L - part) > DPQ_DECAY_ZERO);
        CHECK(close_to(level[j].past, expl(-rate * slack), 1e-12L) ||
              rate * slack > DPQ_DECAY_ZERO);
        CHECK(close_to(level[j].ahead, expl(-rate * (1.0L - slack)), 1e-12L) ||
              rate * (1.0L - slack) > DPQ_DECAY_ZERO);
    }
}

/* ln of the largest, and of the smallest that is not 0, of row j by definition. */
static void
log_extremes(const dpq_scan_problem *p, size_t j, const long double *row, long double *smallest,
             long double *largest)
{
    *smallest = INFINITY;
    *largest = -INFINITY;
    for (size_t t = p->lo[j]; t < p->hi[j]; t++) {
        long double entry = row[p->start[j] + (t - p->lo[j])] + potential(p, j, t);

        *largest = fmaxl(*largest, entry);
        if (entry > -INFINITY) {
            *smallest = fminl(*smallest, entry);
        }
    }
}

static long double
widest(const dpq_scan_problem *p, size_t j)
{
    double most = 0.0;

    for (size_t t = p->lo[j]; t < p->hi[j]; t++) {
        most = fmax(most, p->width[t]);
    }
    return logl(most);
}

/* Whether float64 rows may be refused at level j: something is too small or too large, or almost.
 * Rows are compared with the widest interval times the largest entry before: the scaling is within
 * 2^-2 of that. */
static int
may_leave_range(const dpq_scan_problem *p, const rows *r, size_t j, long double slack)
{
    long double scale = widest(p, j), before = 0.0L, smallest, largest, low, high, last = 0.0L;

    if (j > 0) {
        log_extremes(p, j - 1, r->log_H, &low, &before);
        log_extremes(p, j - 1, r->log_H, &low, &last);
        last = before - widest(p, j - 1);
        if (j > 1) {
            log_extremes(p, j - 2, r->log_H, &low, &high);
            last -= high;
        }
    }
    log_extremes(p, j, r->log_A, &smallest, &largest);
    log_extremes(p, j, r->log_H, &low, &high);
    smallest = fminl(smallest, low) - scale - before;
    return smallest < (SMALLEST + 3) * LN2 + slack || last < (SMALLEST_ROW + 4) * LN2 + slack ||
           fabsl(scale + last) > (MOST_SCALING - 4) * LN2 - slack;
}

/* Every entry of row j of float64 rows, in logarithms. */
static void
check_row(const fuzz_problem *problem, const rows *r, size_t j, long double accuracy)
{
    const dpq_scan_problem *p = &problem->p;
    long double scale = (long double)r->exponent[j] * LN2;

    for (size_t t = p->lo[j]; t < p->hi[j]; t++) {
        size_t at = p->start[j] + (t - p->lo[j]);
        long double alone = r->log_A[at] + potential(p, j, t) - scale;
        long double all = r->log_H[at] + potential(p, j, t) - scale;

        CHECK(r->log_A[at] == -INFINITY ? r->A[at] == 0.0
                                        : fabsl(logl(r->A[at]) - alone) <= accuracy);
        CHECK(fabsl(logl(r->H[at]) - all) <= accuracy);
    }
}

/* Level by level; the same again by the function that does it all. */
static void
check_forward(fuzz_problem *problem, rows *r, fuzz_input *in)
{
    const dpq_scan_problem *p = &problem->p;
    long double accuracy = ACCURACY + noise(problem, 59);
    int compare = (long double)p->rate * problem->spread < MEANINGLESS;
    double log_total = 0.0, again = 0.0;
    size_t m = p->levels, size = problem->entries * sizeof(double);
    double *A = fuzz_room(problem->entries, sizeof *A), *H = fuzz_room(problem->entries, sizeof *H);
    dpq_status status = DPQ_OK;

    dpq_scan_prepare(p, r->decay, r->level);
    check_levels(p, r->level);
    check_decay(r->decay, in);
    for (size_t j = 0; j < m && status == DPQ_OK; j++) {
        size_t before = j > 0 ? p->hi[j - 1] - p->lo[j - 1] : 0;
        double *work = fuzz_room(before, sizeof *work);

        dpq_scan_sums(p, r->decay, r->level, j, r->H, r->A + p->start[j], work);
        status = dpq_scan_close(p, r->decay, r->level, j, r->A, r->H, r->exponent);
        if (compare && status == DPQ_OK) {
            check_row(problem, r, j, accuracy);
        }
        CHECK(status == DPQ_OK || (status == DPQ_ERR_RANGE &&
                                   (!compare || may_leave_range(p, r, j, accuracy))));
        free(work);
    }
    if (status == DPQ_OK) {
        status = dpq_scan_total(p, r->decay, r->level, r->H, r->exponent, &log_total);
        if (compare && status == DPQ_OK) {
            CHECK(fabsl(log_total - r->log_total) <= accuracy + 0x1p-51L * fabsl(r->log_total));
        }
        else if (compare) {
            CHECK(status == DPQ_ERR_RANGE &&
                  r->log_total - (long double)r->exponent[m - 1] * LN2 <
                      (SMALLEST + 1) * LN2 + accuracy);
        }
    }
    CHECK(dpq_scan_forward(p, r->decay, r->level, 0, A, H, r->exponent, r->work, &again) == status);
    CHECK(status != DPQ_OK ||
          (again == log_total && memcmp(A, r->A, size) == 0 && memcmp(H, r->H, size) == 0));
    free(H);
    free(A);
}

/* A pass that stops and goes on computes the same. */
static void
check_going_on(fuzz_problem *problem, rows *r, fuzz_input *in)
{
    const dpq_scan_problem *p = &problem->p;
    size_t first = (size_t)fuzz_between(in, 1, (int64_t)p->levels), entries = problem->entries;
    dpq_scan_problem head = *p; /* of the levels before it */
    double *A = fuzz_room(entries, sizeof *A), *H = fuzz_room(entries, sizeof *H), total, again;
    dpq_scan_level *done = fuzz_room(first, sizeof *done);

    head.levels = first;
    if (dpq_scan_forward(p, r->decay, r->level, 0, r->A, r->H, r->exponent, r->work, &total) == DPQ_OK) {
        CHECK(dpq_scan_forward(&head, r->decay, r->level, 0, A, H, r->exponent, r->work, NULL) == DPQ_OK);
        memcpy(done, r->level, first * sizeof *done);
        dpq_scan_prepare(p, r->decay, r->level);
        for (size_t j = 0; j < first; j++) {
            r->level[j].gain = done[j].gain;
            r->level[j].largest = done[j].largest;
        }
        CHECK(dpq_scan_forward(p, r->decay, r->level, first, A, H, r->exponent, r->work, &again) == DPQ_OK);
        CHECK(again == total && memcmp(A, r->A, entries * sizeof *A) == 0 &&
              memcmp(H, r->H, entries * sizeof *H) == 0);
    }
    for (int alone = 0; alone < 2; alone++) {
        dpq_scan_blocks blocks = fuzz_make_blocks(p, alone), part = fuzz_make_blocks(p, alone);

        if (dpq_scan_forward_blocks(p, r->decay, r->level, 0, &blocks, r->A, r->H, r->large_work,
                                    &total) == DPQ_OK) {
            CHECK(dpq_scan_forward_blocks(&head, r->decay, r->level, 0, &part, A, H, r->large_work,
                                          NULL) == DPQ_OK);
            dpq_scan_prepare(p, r->decay, r->level);
            CHECK(dpq_scan_forward_blocks(p, r->decay, r->level, first, &part, A, H, r->large_work,
                                          &again) == DPQ_OK);
            CHECK(again == total && memcmp(A, r->A, entries * sizeof *A) == 0 &&
                  memcmp(H, r->H, entries * sizeof *H) == 0);
        }
        fuzz_free_blocks(&part);
        fuzz_free_blocks(&blocks);
    }
    free(done);
    free(H);
    free(A);
}

/* Whether the largest of the numbers of a block is in its unit, and none has lost digits. */
static void
check_units(const dpq_scan_problem *p, const dpq_scan_blocks *blocks, const double *row, size_t j)
{
    for (size_t i = 0, end; i < p->hi[j] - p->lo[j]; i = end) {
        double most = 0.0;

        end = dpq_scan_block_end(p, blocks, j, i);
        CHECK(end > i && dpq_scan_block(p, blocks, j, p->lo[j] + i) ==
                             dpq_scan_block(p, blocks, j, p->lo[j] + end - 1));
        for (size_t k = i; k < end; k++) {
            double x = row[p->start[j] + k];

            CHECK(x == 0.0 || x >= 0x1p-1000);
            most = fmax(most, x);
        }
        CHECK(most == 0.0 || (most >= 1.0 && most < 2.0));
    }
}

static void
check_blocks(fuzz_problem *problem, rows *r, int alone)
{
    const dpq_scan_problem *p = &problem->p;
    long double accuracy = ACCURACY + noise(problem, 59);
    int compare = (long double)p->rate * problem->spread < MEANINGLESS &&
                  problem->spread <= MOST_EXACT;
    double log_total = 0.0;
    dpq_scan_blocks blocks = fuzz_make_blocks(p, alone);
    dpq_status status = dpq_scan_forward_blocks(p, r->decay, r->level, 0, &blocks, r->A, r->H,
                                                r->large_work, &log_total);

    CHECK(status == DPQ_OK || (!alone && status == DPQ_ERR_RANGE));
    for (size_t j = 0; j < p->levels && status == DPQ_OK; j++) {
        check_units(p, &blocks, r->A, j);
        check_units(p, &blocks, r->H, j);
        for (size_t t = p->lo[j]; t < p->hi[j]; t++) {
            size_t at = p->start[j] + (t - p->lo[j]), block = dpq_scan_block(p, &blocks, j, t);
            long double log_a = logl(r->A[at]) + (long double)blocks.A[block] * LN2;
            long double log_h = logl(r->H[at]) + (long double)blocks.H[block] * LN2;
            long double log_room = potential(p, j, t);

            CHECK(r->H[at] > 0.0 && (r->A[at] == 0.0) == (r->log_A[at] == -INFINITY));
            if (compare) {
                CHECK(r->A[at] == 0.0 || fabsl(log_a - (r->log_A[at] + log_room)) <= accuracy);
                CHECK(fabsl(log_h - (r->log_H[at] + log_room)) <= accuracy);
            }
        }
    }
    CHECK(status != DPQ_OK || isfinite(log_total));
    CHECK(status != DPQ_OK || !compare ||
          fabsl(log_total - r->log_total) <= accuracy + 0x1p-51L * fabsl(r->log_total));
    fuzz_free_blocks(&blocks);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size, 1};
    int64_t kind = fuzz_between(&in, 0, 63);
    fuzz_problem problem = kind > 1   ? fuzz_draw_problem(&in, 24, 8)
                           : kind > 0 ? fuzz_draw_problem(&in, 100, 30)
                                      : fuzz_draw_problem(&in, 600, 2);
    rows r = make_rows(&problem);

    check_targets(&in);
    r.log_total = fuzz_log_rows(&problem, r.log_A, r.log_H);
    check_forward(&problem, &r, &in);
    check_blocks(&problem, &r, 0);
    check_blocks(&problem, &r, 1);
    check_going_on(&problem, &r, &in);
    free_rows(&r);
    fuzz_free_problem(&problem);
    return 0;
}
