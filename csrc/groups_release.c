#include "groups_release.h"

#include <math.h>
#include <string.h>

#include "depth.h"
#include "dither.h"
#include "groups_sort.h"
#include "intervals.h"
#include "key.h"
#include "lattice.h"
#include "ranks.h"

/* How much paths near the targets weigh, about: as in laws/joint/plan.py. */
#define TYPICAL_SAVING 1.6
#define GUESS_MARGIN 0.9
#define SLACK 4.0    /* nats by which a guess may be too small before it is made again */
#define GUESSES 2    /* before windows hold all ranks */
#define LEAST_GAIN 8 /* windows are made narrower while it saves more than one in so many ranks, */
#define RUNGS 4      /* so many times at most */

/* Records as integers in their order, to work->point: lattice points, or the keys of numbers. */
static void
encode(const dpq_groups_law *law, size_t n, const double *value, const dpq_groups_work *work)
{
    if (law->lattice) {
        dpq_lattice_encode(n, value, law->low, law->high, law->per_unit, law->step, law->first,
                           law->points, work->point);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        double x = value[i];

        work->point[i] = dpq_key_of(x >= law->low ? (x <= law->high ? x : law->high) : law->low);
    }
}

/* Sort work->point. */
static void
sort(size_t n, const dpq_groups_work *work)
{
    int64_t *sorted = dpq_groups_sort(n, work->point, work->spare);

    if (sorted != work->point) {
        memcpy(work->point, sorted, n * sizeof *sorted);
    }
}

/* The same, where nothing may be left to do. */
static void
sort_again(size_t n, const dpq_groups_work *work)
{
    int64_t sorted = 1;

    for (size_t i = 1; i < n; i++) {
        sorted &= work->point[i - 1] <= work->point[i];
    }
    if (!sorted) {
        sort(n, work);
    }
}

/* The intervals between n points in order; their number. The points of numbers are left in
 * work->number. */
static size_t
compress(const dpq_groups_law *law, size_t n, const dpq_groups_work *work)
{
    const int64_t first_rank = 0, count = (int64_t)n + 1;

    if (law->lattice) {
        return dpq_intervals_lattice(1, &first_rank, &count, (int64_t)n, -1,
                                     (law->points << law->bits) - 1, work->point, work->rank,
                                     work->width, work->left);
    }
    for (size_t i = 0; i < n; i++) {
        work->number[i] = dpq_key_value(work->point[i]);
    }
    return dpq_intervals_continuous(1, &first_rank, &count, (int64_t)n, law->low, law->high,
                                    work->number, work->rank, work->width, work->edge);
}

/* Whether records are dithered. */
static int
dithers(const dpq_groups_law *law)
{
    return law->lattice && law->bits > 0;
}

/* The dither of one group, if there is one. */
static dpq_dither
draw_dither(const dpq_groups_law *law, bitgen_t *rng)
{
    return dithers(law) ? dpq_dither_draw(law->bits, rng) : (dpq_dither){0};
}

/* The intervals of n encoded records in order; their number. */
static size_t
intervals_of_sorted(const dpq_groups_law *law, size_t n, const dpq_dither *dither,
                    const dpq_groups_work *work)
{
    if (dithers(law)) {
        dpq_dither_points(dither, n, work->point, 0, 0);
    }
    return compress(law, n, work);
}

/* The intervals of the n records of a group; their number. */
static size_t
intervals_of(const dpq_groups_law *law, size_t n, const double *value, const dpq_groups_work *work,
             bitgen_t *rng)
{
    dpq_dither dither = draw_dither(law, rng);

    encode(law, n, value, work);
    sort(n, work);
    return intervals_of_sorted(law, n, &dither, work);
}

/* The same, where nothing may be left to sort, and with a dither that was drawn before. */
static size_t
intervals_again(const dpq_groups_law *law, size_t n, const double *value, const dpq_dither *dither,
                const dpq_groups_work *work)
{
    encode(law, n, value, work);
    sort_again(n, work);
    return intervals_of_sorted(law, n, dither, work);
}

/* The rows of one forward pass over all intervals, as by dpq_scan_forward; nothing here asks for their
 * total. The decays and the levels' constants depend on n and on the ranks' span alone: if `same` as
 * for the group before, they stay. */
static dpq_status
forward(const dpq_scan_problem *problem, const dpq_groups_work *work, int same)
{
    dpq_status status = DPQ_OK;

    if (!same) {
        dpq_scan_prepare(problem, work->decay, work->level);
    }
    for (size_t j = 0; status == DPQ_OK && j < problem->levels; j++) {
        dpq_scan_sums(problem, work->decay, work->level, j, work->H, work->A + problem->start[j],
                      work->race);
        status = dpq_scan_close(problem, work->decay, work->level, j, work->A, work->H,
                                work->exponent);
    }
    return status;
}

/* What is the same for all groups, but for their number of intervals. */
static dpq_scan_problem
problem_of(const dpq_groups_law *law, const dpq_groups_work *work)
{
    return (dpq_scan_problem){.rank = work->rank,
                              .width = work->width,
                              .lattice = law->lattice,
                              .levels = law->levels,
                              .whole = work->whole,
                              .part = work->part,
                              .lo = work->lo,
                              .hi = work->hi,
                              .start = work->row,
                              .rate = 2.0 * law->rate};
}

/* All levels may use all intervals. */
static void
use_all(const dpq_scan_problem *problem, const dpq_groups_work *work)
{
    for (size_t j = 0; j < problem->levels; j++) {
        work->lo[j] = 0;
        work->hi[j] = problem->intervals;
        work->row[j] = j * problem->intervals;
    }
}

/* One draw from the rows; where `log_escape` decides so, none, and 1 is returned. */
static int
draw(const dpq_groups_law *law, const dpq_scan_problem *problem, double log_escape,
     const dpq_groups_work *work, bitgen_t *rng, int64_t *point, double *number)
{
    size_t m = law->levels, escaped;
    dpq_path_rows rows = {.A = work->A, .H = work->H, .exponent = work->exponent};

    dpq_path_draw(problem, work->decay, &rows, log_escape, 1, rng, work->race, work->path,
                  &escaped);
    if (escaped) {
        return 1;
    }
    if (law->lattice) {
        dpq_path_points_lattice(m, 1, work->path, work->left, work->width, rng, point);
    }
    else {
        dpq_path_points_continuous(m, 1, work->path, work->edge, work->width, rng, number);
    }
    return 0;
}

/* One forward pass over all intervals, one draw; `same` as for `forward`. */
static dpq_status
release(const dpq_groups_law *law, const dpq_scan_problem *problem, int same,
        const dpq_groups_work *work, bitgen_t *rng, int64_t *point, double *number)
{
    dpq_status status;

    use_all(problem, work);
    status = forward(problem, work, same);
    if (status == DPQ_OK) {
        (void)draw(law, problem, -INFINITY, work, rng, point, number);
    }
    return status;
}

/* Everything that depends on n alone; whether lanes can have groups of that size. */
static int
prepare(const dpq_groups_law *law, size_t n, const dpq_groups_work *work, dpq_lanes *lanes)
{
    dpq_scan_problem all = problem_of(law, work);

    dpq_scan_targets(law->levels, law->q, (int64_t)n, work->whole, work->part);
    all.intervals = n > 0 ? 2 : 1; /* the first and the last */
    work->rank[0] = 0;
    work->rank[n > 0] = (int64_t)n;
    dpq_scan_prepare(&all, work->decay, work->level);
    lanes->records = n;
    if (n > work->lanes_room || !dpq_lanes_fit(lanes)) {
        return 0;
    }
    dpq_lanes_prepare(lanes);
    return 1;
}

/* What lanes know of the law, and their room. */
static dpq_lanes
lanes_of(const dpq_groups_law *law, const dpq_groups_work *work)
{
    dpq_lanes lanes = work->lanes;

    lanes.levels = law->levels;
    lanes.lattice = law->lattice;
    lanes.rate = 2.0 * law->rate;
    lanes.before = law->lattice ? -1.0 : law->low;
    lanes.after = law->lattice ? (double)((law->points << law->bits) - 1) : law->high;
    lanes.whole = work->whole;
    lanes.part = work->part;
    lanes.decay = work->decay;
    lanes.level = work->level;
    lanes.light = law->light;
    lanes.rank = work->rank;
    lanes.width = work->width;
    lanes.plain_A = work->A;
    lanes.plain_H = work->H;
    lanes.weight = work->race;
    lanes.exponent = work->exponent;
    lanes.lo = work->lo;
    lanes.hi = work->hi;
    lanes.start = work->row;
    return lanes;
}

/* Where the answers of groups go. */
typedef struct {
    size_t levels;
    int64_t *point; /* or NULL */
    double *number;
} answers;

static int64_t *
points_of(const answers *out, int64_t group)
{
    return out->point ? out->point + (size_t)group * out->levels : NULL;
}

static double *
numbers_of(const answers *out, int64_t group)
{
    return out->number ? out->number + (size_t)group * out->levels : NULL;
}

/* The sorted points of n records of so many groups, dithered, side by side: rows 1, ..., n of
 * lanes->point, and as integers in `column`. Lanes that are left over have the first group's. */
static void
fill_lanes(const dpq_groups_law *law, size_t groups, const int64_t *start, const double *value,
           const int64_t *order, const dpq_groups_work *work, const dpq_lanes *lanes,
           bitgen_t *rng)
{
    size_t n = lanes->records;
    int64_t *column = work->column;

    for (size_t l = 0; l < DPQ_LANES; l++) {
        if (l < groups) {
            encode(law, n, value + start[order[l]], work);
        }
        for (size_t i = 0; i < n; i++) {
            column[DPQ_LANES * i + l] = l < groups ? work->point[i] : column[DPQ_LANES * i];
        }
    }
    dpq_groups_sort_lanes(n, column);
    if (dithers(law)) {
        dpq_groups_dither_lanes(law->bits, n, column, work->point, rng);
    }
    for (size_t i = 0; i < DPQ_LANES * n; i++) {
        lanes->point[DPQ_LANES + i] = law->lattice ? (double)column[i] : dpq_key_value(column[i]);
    }
}

/* One draw of one lane. */
static void
draw_lane(const dpq_groups_law *law, const dpq_lanes *lanes, size_t lane,
          const dpq_groups_work *work, bitgen_t *rng, int64_t *point, double *number)
{
    size_t m = law->levels, own = 0, last = SIZE_MAX;

    dpq_lanes_draw(lanes, lane, rng, work->path);
    for (size_t j = 0; j < m; j++) { /* the intervals that hold outputs, each once */
        size_t t = work->path[j];
        double left = lanes->point[DPQ_LANES * t + lane];

        own += j > 0 && t != last;
        last = t;
        work->path[j] = own;
        work->width[own] = lanes->point[DPQ_LANES * (t + 1) + lane] - left;
        if (law->lattice) {
            work->left[own] = (int64_t)left;
        }
        else {
            work->edge[own] = left;
        }
    }
    if (law->lattice) {
        dpq_path_points_lattice(m, 1, work->path, work->left, work->width, rng, point);
    }
    else {
        dpq_path_points_continuous(m, 1, work->path, work->edge, work->width, rng, number);
    }
}

/* Release so many groups of equal size side by side; *next goes on with each that is done. */
static dpq_status
release_lanes(const dpq_groups_law *law, size_t groups, const int64_t *start, const double *value,
              const int64_t *order, const dpq_groups_work *work, const dpq_lanes *lanes,
              bitgen_t *rng, size_t *next, const answers *out)
{
    unsigned failed;

    order += *next;
    fill_lanes(law, groups, start, value, order, work, lanes, rng);
    failed = dpq_lanes_forward(lanes);
    for (size_t l = 0; l < groups; l++, ++*next) {
        int64_t *point = points_of(out, order[l]);
        double *number = numbers_of(out, order[l]);

        if (failed >> l & 1) {
            dpq_scan_problem problem = problem_of(law, work);
            dpq_status status;

            for (size_t i = 0; i < lanes->records; i++) {
                work->point[i] = work->column[DPQ_LANES * i + l];
            }
            problem.intervals = compress(law, lanes->records, work);
            status = release(law, &problem, 1, work, rng, point, number);
            if (status != DPQ_OK) {
                return status;
            }
        }
        else {
            draw_lane(law, lanes, l, work, rng, point, number);
        }
    }
    return DPQ_OK;
}

dpq_status
dpq_groups_release(const dpq_groups_law *law, size_t groups, const int64_t *start,
                   const double *value, const int64_t *order, const dpq_groups_work *work,
                   bitgen_t *rng, size_t *next, int64_t *point, double *number)
{
    const answers out = {law->levels, law->lattice ? point : NULL, law->lattice ? NULL : number};
    size_t last_n = SIZE_MAX;
    int fit = 0;
    dpq_lanes lanes = lanes_of(law, work);
    dpq_scan_problem problem = problem_of(law, work);

    while (*next < groups) {
        int64_t g = order[*next];
        size_t n = (size_t)(start[g + 1] - start[g]), equal = 1;
        dpq_status status;

        if (n != last_n) {
            fit = prepare(law, n, work, &lanes);
            last_n = n;
        }
        while (fit && equal < DPQ_LANES && *next + equal < groups) {
            int64_t other = order[*next + equal];

            if ((size_t)(start[other + 1] - start[other]) != n) {
                break;
            }
            equal++;
        }
        if (equal > 1) {
            status = release_lanes(law, equal, start, value, order, work, &lanes, rng, next, &out);
        }
        else {
            problem.intervals = intervals_of(law, n, value + start[g], work, rng);
            status = release(law, &problem, 1, work, rng, points_of(&out, g),
                             numbers_of(&out, g));
            *next += status == DPQ_OK;
        }
        if (status != DPQ_OK) {
            return status;
        }
    }
    return DPQ_OK;
}

/* Records in order, to work->number: points of a lattice, others held within the bounds. */
static void
put_in_order(const dpq_groups_law *law, size_t n, const double *value, const dpq_groups_work *work)
{
    encode(law, n, value, work);
    sort_again(n, work);
    for (size_t i = 0; i < n; i++) {
        work->number[i] = law->lattice ? (double)work->point[i] : dpq_key_value(work->point[i]);
    }
}

/* Points at places from, ..., to - 1 of the numbers in work->number, dithered, to work->point. */
static void
points_between(const dpq_groups_law *law, size_t n, size_t from, size_t to,
               const dpq_dither *dither, const dpq_groups_work *work)
{
    const double *number = work->number;
    int64_t before = 0, after = 0; /* records that are tied with the first one, and with the last one */

    for (size_t i = from; i < to; i++) {
        work->point[i] = (int64_t)number[i];
    }
    if (!dithers(law) || from == to) {
        return;
    }
    if (from > 0 && number[from - 1] == number[from]) {
        before = (int64_t)(from - dpq_ranks_first_number(number, 0, from, number[from]));
    }
    if (to < n && number[to] == number[to - 1]) {
        after = (int64_t)(dpq_ranks_first_number(number, to, n, number[to - 1] + 1.0) - to);
    }
    dpq_dither_points(dither, to - from, work->point + from, before, after);
}

/* The intervals within `held` ranks of the targets alone; their number. Points, or numbers, are left where
 * they are among all of them. */
static size_t
intervals_held(const dpq_groups_law *law, size_t n, const double *value, int64_t held,
               const dpq_dither *dither, const dpq_groups_work *work)
{
    const int64_t last_point = (law->points << law->bits) - 1;
    size_t m = law->levels, intervals = 0, segments;
    int64_t *segment = work->first + m, *count = work->last + m;

    segments = dpq_intervals_windows(m, law->q, (int64_t)n, held, work->first, work->last, segment,
                                     count);
    put_in_order(law, n, value, work);
    for (size_t s = 0; s < segments; s++) {
        size_t from = segment[s] > 0 ? (size_t)segment[s] - 1 : 0;
        size_t to = (size_t)(segment[s] + count[s]);

        to = to < n ? to : n;
        if (law->lattice) {
            points_between(law, n, from, to, dither, work);
            intervals += dpq_intervals_lattice(1, segment + s, count + s, (int64_t)n, -1, last_point,
                                               work->point + from, work->rank + intervals,
                                               work->width + intervals, work->left + intervals);
        }
        else {
            intervals += dpq_intervals_continuous(
                1, segment + s, count + s, (int64_t)n, law->low, law->high, work->number + from,
                work->rank + intervals, work->width + intervals, work->edge + intervals);
        }
    }
    return intervals;
}

/* Measure of the outputs between two of the intervals, and inside them. */
static double
span(const dpq_groups_law *law, const dpq_groups_work *work, size_t from, size_t to)
{
    double between = law->lattice ? (double)(work->left[to] - work->left[from])
                                  : work->edge[to] - work->edge[from];

    return between + work->width[to];
}

/* ln of about what the paths near all targets weigh, from how far records there are apart; -INFINITY where
 * some are tied as far as they are held. There are intervals, if all are. */
static double
log_mass_near(const dpq_groups_law *law, const dpq_scan_problem *problem, size_t n, int64_t held,
              const dpq_groups_work *work)
{
    const int64_t nearest = (int64_t)ceil(fmin(1.0 / law->rate, (double)n + 1.0));
    const double saving = TYPICAL_SAVING * fmin(1.0, law->rate * (double)nearest);
    const int64_t most = held < (int64_t)n ? held - 1 : 2 * (int64_t)n;
    double sum = -GUESS_MARGIN;
    size_t m = law->levels;

    for (size_t j = 0; j < m; j++) {
        int64_t reach = nearest, place[2];
        double apart = 0.0;

        for (; !(apart > 0.0) && reach <= most; reach *= 2) { /* tied: look farther out */
            dpq_intervals_probes(1, law->q + j, (int64_t)n, &reach, place);
            apart = law->lattice ? (double)(work->point[place[1]] - work->point[place[0]])
                                 : work->number[place[1]] - work->number[place[0]];
            sum -= 2.0 * law->rate * (double)reach * (apart > 0.0);
        }
        if (!(apart > 0.0)) {
            if (held < (int64_t)n) {
                return -INFINITY;
            }
            apart = span(law, work, 0, problem->intervals - 1) / ((double)n + 2.0);
        }
        sum += log(apart) + saving;
        if ((int64_t)n < 2 * nearest * (int64_t)m) {
            sum -= log((double)(j + 1)); /* these overlap: outputs have to be in order, too */
        }
    }
    return sum;
}

/* Let levels use the intervals within reach of their targets. Returns ln of the measure of all tuples
 * of these, in any order; -INFINITY if there are none. */
static double
use_within(const dpq_groups_law *law, const dpq_scan_problem *problem, size_t n, int64_t reach,
           const dpq_groups_work *work)
{
    size_t m = law->levels, row = 0;
    double sum = 0.0;

    (void)dpq_intervals_windows(m, law->q, (int64_t)n, reach, work->first, work->last,
                                work->first + m, work->last + m);
    if (!dpq_intervals_ranges(m, work->first, work->last, problem->intervals, work->rank, work->lo,
                              work->hi)) {
        return -INFINITY;
    }
    for (size_t j = 0; j < m; j++) {
        sum += log(span(law, work, work->lo[j], work->hi[j] - 1));
        work->row[j] = row;
        row += work->hi[j] - work->lo[j];
    }
    return sum;
}

/* ln(exp(a) + exp(b)), b finite. */
static double
log_add(double a, double b)
{
    return a > b ? a + log1p(exp(b - a)) : b + log1p(exp(a - b));
}

/* Windows for paths that weigh about exp(log_mass), and let levels use them: all ranks where these are more
 * than are held. */
static void
choose_windows(const dpq_groups_law *law, const dpq_scan_problem *problem, size_t n,
               double log_mass, int64_t held, const dpq_groups_work *work,
               dpq_groups_windows *windows)
{
    double log_volume = windows->log_volume, log_bound = -INFINITY;
    int64_t reach = (int64_t)n;

    for (int rung = 0; rung < RUNGS; rung++) {
        double nats = windows->spare + log_volume - log_mass, narrower;

        narrower = ceil(fmax(nats, 0.0) / (2.0 * law->rate));
        if (!(narrower + fmax(1.0, (double)reach / LEAST_GAIN) <= (double)reach)) {
            break;
        }
        if (narrower > (double)held) {
            break;
        }
        reach = (int64_t)narrower;
        log_bound = log_add(log_bound, log_volume - 2.0 * law->rate * narrower);
        log_volume = use_within(law, problem, n, reach, work);
        if (log_volume == -INFINITY) { /* records are tied: no path is inside */
            reach = (int64_t)n;
            break;
        }
    }
    windows->reach = reach;
    windows->log_bound = log_bound;
    if (reach == (int64_t)n) {
        windows->log_bound = -INFINITY;
        use_all(problem, work);
    }
}

/* `draw` from what is inside of windows. Returns DPQ_ERR_RANGE where the rows leave the range of float64. */
static dpq_status
release_inside(const dpq_groups_law *law, size_t n, const double *value, const dpq_dither *dither,
               int64_t *held, const dpq_groups_work *work, bitgen_t *rng,
               dpq_groups_windows *windows, int64_t *point, double *number)
{
    dpq_scan_problem problem = problem_of(law, work);
    double log_mass = 0.0, log_escape = -INFINITY;
    int guesses = -1;

    for (;;) {
        double log_total;
        dpq_status status;

        if (guesses < 0) { /* at first, and where too few are held */
            problem.intervals = *held < (int64_t)n
                                    ? intervals_held(law, n, value, *held, dither, work)
                                    : intervals_again(law, n, value, dither, work);
            dpq_scan_targets(law->levels, law->q, (int64_t)n, work->whole, work->part);
            log_mass = log_mass_near(law, &problem, n, *held, work);
            guesses = 0;
        }
        choose_windows(law, &problem, n, log_mass, *held, work, windows);
        if (windows->reach == (int64_t)n && *held < (int64_t)n) {
            *held = (int64_t)n;
            guesses = -1;
            continue;
        }
        status = forward(&problem, work, guesses > 0);
        if (status != DPQ_OK) {
            return status;
        }
        if (windows->reach == (int64_t)n) {
            break;
        }
        status = dpq_scan_total(&problem, work->decay, work->level, work->H, work->exponent,
                                &log_total);
        if (status != DPQ_OK) {
            return status;
        }
        if (windows->log_bound <= log_total + SLACK - windows->spare) {
            log_escape = windows->log_bound - log_add(windows->log_bound, log_total);
            break;
        }
        guesses++;
        log_mass = guesses < GUESSES ? log_total : -INFINITY; /* then windows hold all ranks */
    }
    windows->escaped = draw(law, &problem, log_escape, work, rng, point, number);
    return DPQ_OK;
}

dpq_status
dpq_groups_release_one(const dpq_groups_law *law, size_t n, const double *value,
                       const dpq_groups_work *work, bitgen_t *rng, dpq_groups_windows *windows,
                       int64_t *point, double *number)
{
    dpq_dither dither = draw_dither(law, rng);
    int64_t held = windows->held < (int64_t)n ? windows->held : (int64_t)n;
    dpq_status status;

    windows->escaped = 0;
    windows->reach = (int64_t)n;
    windows->log_bound = -INFINITY;
    if (!(windows->spare < INFINITY) || n == 0) {
        dpq_scan_problem problem = problem_of(law, work);

        problem.intervals = intervals_again(law, n, value, &dither, work);
        dpq_scan_targets(law->levels, law->q, (int64_t)n, work->whole, work->part);
        return release(law, &problem, 0, work, rng, point, number);
    }
    status = release_inside(law, n, value, &dither, &held, work, rng, windows, point, number);
    if ((status == DPQ_ERR_RANGE || windows->escaped) && held < (int64_t)n) {
        (void)intervals_again(law, n, value, &dither, work); /* for the points in order */
    }
    return status;
}

void
dpq_groups_flip(const dpq_groups_law *law, size_t first, size_t groups, const int64_t *start,
                const double *value, const dpq_groups_work *work, bitgen_t *rng, int64_t *point)
{
    for (size_t g = first; g < groups; g++) {
        size_t n = (size_t)(start[g + 1] - start[g]);
        size_t intervals = intervals_of(law, n, value + start[g], work, rng);

        dpq_scan_targets(1, law->q, (int64_t)n, work->whole, work->part);
        point[g] = dpq_depth_point(intervals, work->rank, work->width, work->left, (int64_t)n,
                                   *work->whole, *work->part, law->rate, rng);
    }
}

void
dpq_groups_flip_one(const dpq_groups_law *law, const double *rate, size_t n, const double *value,
                    const dpq_groups_work *work, bitgen_t *rng, int64_t *point)
{
    size_t intervals;

    encode(law, n, value, work);
    sort_again(n, work);
    intervals = compress(law, n, work);
    dpq_scan_targets(law->levels, law->q, (int64_t)n, work->whole, work->part);
    for (size_t j = 0; j < law->levels; j++) {
        point[j] = dpq_depth_point(intervals, work->rank, work->width, work->left, (int64_t)n,
                                   work->whole[j], work->part[j], rate[j], rng);
    }
}
