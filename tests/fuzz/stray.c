#include "stray.h"

#include "fuzz.h"
#include "scan.h"

#define MOST_LEVELS 6
#define MOST_INTERVALS 40
#define MOST_REACH 60

/* exp(-rate |v - u|) at the smallest distance between cells [a, b] - part and [lo, hi] - other. */
static long double
between(const dpq_stray_problem *p, int64_t a, int64_t b, double part, int64_t lo, int64_t hi,
        double other)
{
    long double below = (long double)(a - hi) - part + other;
    long double above = (long double)(lo - b) - other + part;
    long double distance = below > above ? below : above;

    return expl(-(long double)p->rate * (distance > 0 || a != lo ? distance : 0));
}

/* The same from the ends, and to them. */
static long double
home(const dpq_stray_problem *p, int64_t a, int64_t b, double part)
{
    long double distance = fmaxl((long double)a - part, part - (long double)b);

    return expl(-(long double)p->rate * distance);
}

/* First and last rank of cell k, counted from the lowest, relative to the target. */
static void
cell(const dpq_stray_problem *p, size_t k, int64_t *a, int64_t *b)
{
    size_t middle = p->cells - 1, i = k > middle ? k - middle : middle - k;

    *a = k > middle ? p->start[i] : 1 - p->start[i + 1];
    *b = k > middle ? p->start[i + 1] - 1 : -p->start[i];
}

/* Measure of the cell: of all between its first interval and its last. */
static long double
measure(const dpq_stray_intervals *of, int64_t a, int64_t b)
{
    size_t first = 0, end;

    while (first < of->intervals && of->rank[first] < a) {
        first++;
    }
    for (end = first; end < of->intervals && of->rank[end] <= b;) {
        end++;
    }
    if (first == end) {
        return 0;
    }
    return (of->points ? (long double)(of->points[end - 1] - of->points[first])
                       : (long double)of->numbers[end - 1] - of->numbers[first]) +
           of->width[end - 1];
}

/* ln U by its definition; of all paths, strayed or not, into *all. */
static long double
plain(const dpq_stray_problem *p, const dpq_stray_intervals *of, long double *all)
{
    size_t nodes = 2 * p->cells - 1;
    long double x[4 * MOST_REACH], y[4 * MOST_REACH], next_x[4 * MOST_REACH],
        next_y[4 * MOST_REACH], strayed = 0, total = 0;

    for (size_t j = 0; j < p->levels; j++) {
        for (size_t k = 0; k < nodes; k++) {
            int64_t a, b, lo, hi;
            long double width;
            int in;

            cell(p, k, &a, &b);
            in = a >= -p->window[j] && b <= p->window[j];
            width = measure(of, p->whole[j] + a, p->whole[j] + b);
            next_x[k] = j == 0 ? home(p, a, b, p->part[0]) : 0;
            next_y[k] = 0;
            for (size_t s = 0; j > 0 && s < nodes; s++) {
                long double step;

                cell(p, s, &lo, &hi);
                step = between(p, a, b, p->part[j], lo, hi, p->part[j - 1]);
                next_x[k] += x[s] * step;
                next_y[k] += y[s] * step;
            }
            next_y[k] = (in ? next_y[k] : next_x[k] + next_y[k]) * width;
            next_x[k] = in ? next_x[k] * width : 0;
        }
        memcpy(x, next_x, sizeof x);
        memcpy(y, next_y, sizeof y);
    }
    for (size_t k = 0; k < nodes; k++) {
        int64_t a, b;

        cell(p, k, &a, &b);
        strayed += y[k] * home(p, a, b, p->part[p->levels - 1]);
        total += x[k] * home(p, a, b, p->part[p->levels - 1]);
    }
    *all = logl(strayed + total);
    return logl(strayed);
}

/* The same weight by the records between cells, of one for each rank. */
static void
check_borders(const dpq_stray_problem *p, const dpq_stray_intervals *of, double found)
{
    int64_t n = (int64_t)of->intervals - 1, power;
    double *work = fuzz_room(28 * p->cells, sizeof *work);
    double by_borders;

    for (size_t j = 0; j < p->levels; j++) {
        int64_t *rank = fuzz_room(2 * p->cells, sizeof *rank);
        int64_t *points = fuzz_room(2 * p->cells, sizeof *points);
        double *numbers = fuzz_room(2 * p->cells, sizeof *numbers);
        dpq_stray_borders borders = {of->points ? points : NULL, of->points ? NULL : numbers};

        dpq_stray_ranks(p, n, j, rank);
        for (size_t k = 0; k < 2 * p->cells; k++) { /* x_r is where the interval of rank r begins */
            size_t t = rank[k] <= n ? (size_t)rank[k] : (size_t)n, past = rank[k] > n;

            CHECK(rank[k] >= 0 && rank[k] <= n + 1 && (k == 0 || rank[k] >= rank[k - 1]));
            points[k] = of->points ? of->points[t] + (past ? (int64_t)of->width[t] : 0) : 0;
            numbers[k] = of->points ? 0.0 : of->numbers[t] + (past ? of->width[t] : 0.0);
        }
        dpq_stray_levels(p, NULL, &borders, j, j + 1, work, &power);
        free(rank);
        free(points);
        free(numbers);
    }
    by_borders = dpq_stray_log(p, work, power);
    CHECK(by_borders == found || fabs(by_borders - found) <= 1e-12 * fabs(found));
    free(work);
}

static void
check_cells(const dpq_stray_problem *p, int64_t window, int64_t reach)
{
    CHECK(p->start[0] == 0 && p->start[1] == 1);
    for (size_t i = 0; i < p->cells; i++) {
        CHECK(p->start[i] < p->start[i + 1]);
    }
    CHECK(p->start[p->inside] == window + 1 && p->start[p->cells] == reach + 1);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size, 1};
    int64_t window = fuzz_between(&in, 0, 12), reach = window + fuzz_between(&in, 0, MOST_REACH - 12);
    size_t m = (size_t)fuzz_between(&in, 1, MOST_LEVELS);
    size_t intervals = (size_t)fuzz_between(&in, 1, MOST_INTERVALS);
    double share = fuzz_bit(&in) ? 0.75 : fuzz_share(&in);
    double rate = ldexp(1.0 + fuzz_share(&in), (int)fuzz_between(&in, -12, 2));
    int lattice = fuzz_bit(&in), huge = fuzz_between(&in, 0, 3) == 0;
    int even = fuzz_bit(&in), alone = 1;  /* an interval for each rank */
    int several = !even && fuzz_bit(&in); /* intervals of one rank */
    int64_t n = 0, *rank = fuzz_room(intervals, sizeof *rank);
    int64_t *points = fuzz_room(intervals, sizeof *points), *whole = fuzz_room(m, sizeof *whole);
    int64_t *windows = fuzz_room(m, sizeof *windows);
    double *numbers = fuzz_room(intervals, sizeof *numbers);
    double *width = fuzz_room(intervals, sizeof *width);
    double *part = fuzz_room(m, sizeof *part), *q = fuzz_room(m, sizeof *q);
    dpq_stray_problem p = {0};
    dpq_stray_intervals of;
    long double least, all;
    double found;
    int64_t *start;
    double *work;
    int64_t power;

    for (size_t t = 0; t < intervals; t++) {
        int64_t wide = huge ? (int64_t)1 << fuzz_between(&in, 0, 46) : fuzz_between(&in, 1, 9);

        rank[t] = n += t > 0 ? fuzz_between(&in, several ? 0 : 1, fuzz_bit(&in) || even ? 1 : 9)
                              : fuzz_between(&in, 0, even ? 0 : 2);
        points[t] = t > 0 ? points[t - 1] + (int64_t)width[t - 1] : -1;
        width[t] = (double)wide;
    }
    for (size_t t = 0; t < intervals; t++) {
        numbers[t] = (double)points[t];
    }
    for (size_t j = 0; j < m; j++) {
        q[j] = fuzz_share(&in);
        windows[j] = even ? window : fuzz_between(&in, 0, window);
    }
    qsort(q, m, sizeof *q, fuzz_compare_numbers);
    dpq_scan_targets(m, q, n, whole, part);
    of = (dpq_stray_intervals){intervals, rank, width, lattice ? points : NULL,
                               lattice ? NULL : numbers};
    p = (dpq_stray_problem){m, whole, part, rate, 0, 0, NULL, windows};
    p.cells = dpq_stray_cells(window, reach, rate, m, share, &p.inside, NULL);
    start = fuzz_room(p.cells + 1, sizeof *start);
    CHECK(dpq_stray_cells(window, reach, rate, m, share, &p.inside, start) == p.cells);
    p.start = start;
    check_cells(&p, window, reach);
    work = fuzz_room(28 * p.cells, sizeof *work);
    for (size_t j = 0, next; j < m; j = next) {
        next = (size_t)fuzz_between(&in, (int64_t)j + 1, (int64_t)m);
        dpq_stray_levels(&p, &of, NULL, j, next, work, &power);
    }
    found = dpq_stray_log(&p, work, power);
    least = plain(&p, &of, &all);
    /* never less, and more only by what is added, which is nothing to all paths, if there is one */
    CHECK(found >= least - 1e-9L);
    CHECK(found <= least + 1e-9L || isinf(all) ||
          found < all - 600 + 2 * (long double)rate * (long double)(2 * reach + 1));
    for (size_t t = 0; t < intervals; t++) {
        alone = alone && rank[t] == (int64_t)t;
    }
    if (alone) {
        check_borders(&p, &of, found);
    }
    free(work);
    free(start);
    free(q);
    free(part);
    free(width);
    free(numbers);
    free(windows);
    free(whole);
    free(points);
    free(rank);
    return 0;
}
