#include "groups_release.h"

#include "depth.h"
#include "dither.h"
#include "fuzz.h"
#include "groups_sort.h"
#include "intervals.h"
#include "lattice.h"

#define MOST_LEVELS 5
#define MOST_FEW 24   /* records of a small group, */
#define MOST_MANY 400 /* and of a large one */

static dpq_groups_law
draw_law(fuzz_input *in, double *q)
{
    size_t m = (size_t)fuzz_between(in, 1, MOST_LEVELS), distinct = 0;
    dpq_groups_law law = {.q = q, .lattice = fuzz_bit(in), .light = DPQ_LANES_LIGHT};

    for (size_t j = 0; j < m; j++) {
        q[j] = fuzz_share(in);
    }
    qsort(q, m, sizeof *q, fuzz_compare_numbers);
    for (size_t j = 0; j < m; j++) {
        if (distinct == 0 || q[j] > q[distinct - 1]) {
            q[distinct++] = q[j];
        }
    }
    law.levels = distinct;
    law.rate = fuzz_between(in, 0, 3) ? ldexp(1.0, (int)fuzz_between(in, -10, 6))
                                      : fmin(fuzz_positive(in), 0x1p1022);
    if (law.lattice) {
        int64_t last, most = fuzz_bit(in) ? 20 : INT64_C(1) << 53;

        law.points = fuzz_between(in, 2, most);
        law.first = fuzz_bit(in) ? fuzz_between(in, -20, 20)
                                 : fuzz_between(in, -(INT64_C(1) << 52), INT64_C(1) << 52);
        last = law.first + law.points - 1;
        while (law.bits < 24 && law.points << (law.bits + 1) <= INT64_C(1) << 53) {
            law.bits++;
        }
        law.bits = (int)fuzz_between(in, 0, law.bits);
        law.per_unit = fuzz_bit(in) ? (double)fuzz_between(in, 1, 1000) : 0.0;
        law.step = law.per_unit > 0.0 ? 1.0 / law.per_unit
                                      : ldexp(1.0 + fuzz_share(in),
                                              (int)fuzz_between(in, -900, 900));
        law.low = ((double)law.first - fuzz_share(in)) * law.step;
        law.high = ((double)last + fuzz_share(in)) * law.step;
    }
    else {
        double a = fuzz_finite(in), b = fuzz_finite(in);

        law.low = fmin(a, b);
        law.high = fmax(a, b);
        if (!(law.low < law.high && isfinite(law.high - law.low))) {
            law.low = 0.0;
            law.high = 1.0;
        }
    }
    return law;
}

/* Room for groups of up to n records, or for one of exactly n. */
static dpq_groups_work
make_work(size_t n, size_t m)
{
    size_t points = dpq_groups_room(n), most = n + 1;

    return (dpq_groups_work){
        .point = fuzz_room(points, sizeof(int64_t)),
        .spare = fuzz_room(points, sizeof(int64_t)),
        .rank = fuzz_room(most, sizeof(int64_t)),
        .left = fuzz_room(most, sizeof(int64_t)),
        .width = fuzz_room(most, sizeof(double)),
        .number = fuzz_room(most, sizeof(double)),
        .edge = fuzz_room(most, sizeof(double)),
        .A = fuzz_room(m * most, sizeof(double)),
        .H = fuzz_room(m * most, sizeof(double)),
        .race = fuzz_room(n + most / DPQ_PATH_BLOCK + m + 3, sizeof(double)),
        .exponent = fuzz_room(m, sizeof(int64_t)),
        .whole = fuzz_room(m, sizeof(int64_t)),
        .part = fuzz_room(m, sizeof(double)),
        .first = fuzz_room(2 * m, sizeof(int64_t)),
        .last = fuzz_room(2 * m, sizeof(int64_t)),
        .lo = fuzz_room(m, sizeof(size_t)),
        .hi = fuzz_room(m, sizeof(size_t)),
        .row = fuzz_room(m, sizeof(size_t)),
        .path = fuzz_room(m, sizeof(size_t)),
        .decay = fuzz_room(1, sizeof(dpq_decay)),
        .level = fuzz_room(m, sizeof(dpq_scan_level)),
    };
}

static void
free_work(dpq_groups_work *work)
{
    free(work->point);
    free(work->spare);
    free(work->rank);
    free(work->left);
    free(work->width);
    free(work->number);
    free(work->first);
    free(work->last);
    free(work->edge);
    free(work->A);
    free(work->H);
    free(work->race);
    free(work->exponent);
    free(work->whole);
    free(work->part);
    free(work->lo);
    free(work->hi);
    free(work->row);
    free(work->path);
    free(work->decay);
    free(work->level);
}

/* The intervals between n sorted points or numbers, as the definition has them. */
static size_t
plain_intervals(const dpq_groups_law *law, size_t n, const dpq_groups_work *work)
{
    size_t intervals = 0;

    for (size_t i = 0; i <= n; i++) {
        if (law->lattice) {
            int64_t left = i > 0 ? work->point[i - 1] : -1;
            int64_t right = i < n ? work->point[i] : (law->points << law->bits) - 1;

            work->width[intervals] = (double)(right - left);
            work->left[intervals] = left;
        }
        else {
            double left = i > 0 ? work->number[i - 1] : law->low;

            work->width[intervals] = (i < n ? work->number[i] : law->high) - left;
            work->edge[intervals] = left;
        }
        work->rank[intervals] = (int64_t)i;
        intervals += work->width[intervals] > 0.0;
    }
    return intervals;
}

/* One group's release, from nothing kept. */
static dpq_status
plain_release(const dpq_groups_law *law, size_t n, const double *value, const dpq_groups_work *work,
              bitgen_t *rng, int64_t *point, double *number)
{
    size_t m = law->levels, escaped;
    dpq_status status = DPQ_OK;
    dpq_path_rows rows = {.A = work->A, .H = work->H, .exponent = work->exponent};
    dpq_scan_problem p = {0,          work->rank, work->width, law->lattice, m,
                          work->whole, work->part, work->lo,    work->hi,     work->row,
                          2.0 * law->rate};

    dpq_lattice_encode(law->lattice ? n : 0, value, law->low, law->high, law->per_unit, law->step,
                       law->first, law->points, work->point);
    qsort(work->point, law->lattice ? n : 0, sizeof *work->point, fuzz_compare_integers);
    for (size_t i = 0; i < n && !law->lattice; i++) {
        work->number[i] = fmin(fmax(value[i], law->low), law->high);
    }
    if (law->lattice && law->bits > 0) {
        dpq_dither dither = dpq_dither_draw(law->bits, rng);

        dpq_dither_points(&dither, n, work->point, 0, 0);
    }
    qsort(work->number, law->lattice ? 0 : n, sizeof *work->number, fuzz_compare_numbers);
    p.intervals = plain_intervals(law, n, work);
    for (size_t j = 0; j < m; j++) {
        work->lo[j] = 0;
        work->hi[j] = p.intervals;
        work->row[j] = j * p.intervals;
    }
    dpq_scan_targets(m, law->q, (int64_t)n, work->whole, work->part);
    dpq_scan_prepare(&p, work->decay, work->level);
    for (size_t j = 0; j < m && status == DPQ_OK; j++) {
        dpq_scan_sums(&p, work->decay, work->level, j, work->H, work->A + p.start[j], work->race);
        status = dpq_scan_close(&p, work->decay, work->level, j, work->A, work->H, work->exponent);
    }
    if (status != DPQ_OK) {
        return status;
    }
    dpq_path_draw(&p, work->decay, &rows, -INFINITY, 1, rng, work->race, work->path, &escaped);
    if (law->lattice) {
        dpq_path_points_lattice(m, 1, work->path, work->left, work->width, rng, point);
    }
    else {
        dpq_path_points_continuous(m, 1, work->path, work->edge, work->width, rng, number);
    }
    return DPQ_OK;
}

/* The answers of one group, or where there are none its points. */
static void
check_answers(const dpq_groups_law *law, size_t n, const double *value, dpq_status status,
              const dpq_groups_work *work, bitgen_t *rng, const int64_t *point,
              const double *number)
{
    size_t m = law->levels;
    dpq_groups_work plain = make_work(n, m);
    int64_t expected[MOST_LEVELS];
    double expected_number[MOST_LEVELS];

    CHECK(plain_release(law, n, value, &plain, rng, expected, expected_number) == status);
    for (size_t i = 0; i < n && status != DPQ_OK; i++) {
        CHECK(law->lattice ? work->point[i] == plain.point[i]
                           : work->number[i] == plain.number[i]);
    }
    for (size_t j = 0; j < m && status == DPQ_OK; j++) {
        CHECK(law->lattice ? point[j] == expected[j] : number[j] == expected_number[j]);
        CHECK(law->lattice ? point[j] >= 0 && point[j] < law->points << law->bits
                           : number[j] >= law->low && number[j] <= law->high);
        CHECK(j == 0 || (law->lattice ? point[j - 1] <= point[j] : number[j - 1] <= number[j]));
    }
    free_work(&plain);
}

static double
draw_value(const dpq_groups_law *law, fuzz_input *in)
{
    double value = fuzz_number(in);

    if (fuzz_between(in, 0, 3)) {
        value = law->low + (law->high - law->low) * fuzz_share(in);
    }
    return value == value ? value : law->low;
}

/* One level of each group by depth: from intervals as the definition has them. */
static void
check_flips(const dpq_groups_law *given, size_t groups, const int64_t *start, const double *value,
            size_t largest, fuzz_input *in)
{
    dpq_groups_law law = *given;
    dpq_groups_work work = make_work(largest, 1), plain = make_work(largest, 1);
    int64_t *point = fuzz_room(groups, sizeof *point);
    fuzz_input same;
    bitgen_t rng = fuzz_generator(in), again = fuzz_generator(&same);

    law.levels = 1;
    law.bits = 0;
    law.rate = fmin(law.rate, 0x1p16);
    same = *in;
    dpq_groups_flip(&law, 0, groups, start, value, &work, &rng, point);
    for (size_t g = 0; g < groups; g++) {
        size_t n = (size_t)(start[g + 1] - start[g]), intervals;

        dpq_lattice_encode(n, value + start[g], law.low, law.high, law.per_unit, law.step,
                           law.first, law.points, plain.point);
        qsort(plain.point, n, sizeof *plain.point, fuzz_compare_integers);
        intervals = plain_intervals(&law, n, &plain);
        dpq_scan_targets(1, law.q, (int64_t)n, plain.whole, plain.part);
        CHECK(point[g] == dpq_depth_point(intervals, plain.rank, plain.width, plain.left,
                                          (int64_t)n, *plain.whole, *plain.part, law.rate, &again));
        CHECK(point[g] >= 0 && point[g] < law.points);
    }
    CHECK(same.left == in->left && same.state == in->state);
    free(point);
    free_work(&plain);
    free_work(&work);
}

/* Several levels of one sample by depth. */
static void
check_flips_of_one(const dpq_groups_law *given, size_t n, const double *value, fuzz_input *in)
{
    dpq_groups_law law = *given;
    dpq_groups_work work = make_work(n, law.levels), plain = make_work(n, law.levels);
    double rate[MOST_LEVELS];
    int64_t point[MOST_LEVELS];
    size_t intervals;
    fuzz_input same;
    bitgen_t rng = fuzz_generator(in), again = fuzz_generator(&same);

    law.bits = 0;
    for (size_t j = 0; j < law.levels; j++) {
        rate[j] = fmin(ldexp(law.rate, (int)j), 0x1p16);
    }
    same = *in;
    dpq_groups_flip_one(&law, rate, n, value, &work, &rng, point);
    dpq_lattice_encode(n, value, law.low, law.high, law.per_unit, law.step, law.first, law.points,
                       plain.point);
    qsort(plain.point, n, sizeof *plain.point, fuzz_compare_integers);
    intervals = plain_intervals(&law, n, &plain);
    dpq_scan_targets(law.levels, law.q, (int64_t)n, plain.whole, plain.part);
    for (size_t j = 0; j < law.levels; j++) {
        CHECK(point[j] == dpq_depth_point(intervals, plain.rank, plain.width, plain.left,
                                          (int64_t)n, plain.whole[j], plain.part[j], rate[j],
                                          &again));
    }
    CHECK(same.left == in->left && same.state == in->state);
    free_work(&plain);
    free_work(&work);
}

/* ln of the measure of all tuples of outputs in order. */
static double
log_volume_of(const dpq_groups_law *law)
{
    double sum = 0.0;

    for (size_t j = 0; j < law->levels; j++) {
        double part = (double)j, extent = ldexp((double)law->points, law->bits);

        sum += law->lattice ? log((extent + part) / (part + 1.0))
                            : log(law->high - law->low) - log(part + 1.0); /* which may be tiny */
    }
    return sum;
}

/* ln of what the paths inside of some windows weigh, of sorted points. */
static dpq_status
log_inside(const dpq_groups_law *law, size_t n, int64_t reach, const dpq_groups_work *work,
           double *log_total)
{
    size_t m = law->levels, row = 0;
    dpq_scan_problem p = {0,          work->rank, work->width, law->lattice, m,
                          work->whole, work->part, work->lo,    work->hi,     work->row,
                          2.0 * law->rate};

    p.intervals = plain_intervals(law, n, work);
    (void)dpq_intervals_windows(m, law->q, (int64_t)n, reach, work->first, work->last,
                                work->first + m, work->last + m);
    *log_total = -INFINITY;
    if (!dpq_intervals_ranges(m, work->first, work->last, p.intervals, work->rank, work->lo,
                              work->hi)) {
        return DPQ_OK;
    }
    for (size_t j = 0; j < m; j++) {
        work->row[j] = row;
        row += work->hi[j] - work->lo[j];
    }
    dpq_scan_targets(m, law->q, (int64_t)n, work->whole, work->part);
    return dpq_scan_forward(&p, work->decay, work->level, 0, work->A, work->H, work->exponent,
                            work->race, log_total);
}

/* The same release, where records are put in order around the targets alone at first. */
static void
check_held(const dpq_groups_law *law, size_t n, const double *value, bitgen_t *rng,
           int64_t held, dpq_status expected, const dpq_groups_windows *windows,
           const dpq_groups_work *sorted, const int64_t *point, const double *number)
{
    dpq_groups_work work = make_work(n, law->levels);
    dpq_groups_windows narrow = {
        .log_volume = windows->log_volume, .spare = windows->spare, .held = held};
    int64_t held_point[MOST_LEVELS];
    double held_number[MOST_LEVELS];
    dpq_status status =
        dpq_groups_release_one(law, n, value, &work, rng, &narrow, held_point, held_number);

    CHECK(status == expected && narrow.escaped == windows->escaped);
    CHECK(narrow.reach == windows->reach && narrow.log_bound == windows->log_bound);
    for (size_t j = 0; j < law->levels && status == DPQ_OK && !narrow.escaped; j++) {
        CHECK(law->lattice ? held_point[j] == point[j] : held_number[j] == number[j]);
    }
    for (size_t i = 0; i < n && (status != DPQ_OK || narrow.escaped); i++) {
        CHECK(law->lattice ? work.point[i] == sorted->point[i]
                           : work.number[i] == sorted->number[i]);
    }
    free_work(&work);
}

/* One sample by itself, inside of windows: what they leave out is bounded. */
static void
check_windows(const dpq_groups_law *law, size_t n, const double *value, fuzz_input *in)
{
    dpq_groups_work work = make_work(n, law->levels);
    dpq_groups_windows windows = {.log_volume = log_volume_of(law),
                                  .spare = (double)fuzz_between(in, -40, 40),
                                  .held = (int64_t)n};
    int64_t held = fuzz_between(in, 0, (int64_t)n), point[MOST_LEVELS];
    double number[MOST_LEVELS], inside, all;
    fuzz_input same = *in;
    bitgen_t rng = fuzz_generator(in), again = fuzz_generator(&same);
    dpq_status status =
        dpq_groups_release_one(law, n, value, &work, &rng, &windows, point, number);

    check_held(law, n, value, &again, held, status, &windows, &work, point, number);
    CHECK(same.left == in->left && same.state == in->state);
    CHECK(status == DPQ_OK || status == DPQ_ERR_RANGE);
    for (size_t j = 0; j < law->levels && status == DPQ_OK && !windows.escaped; j++) {
        CHECK(law->lattice ? point[j] >= 0 && point[j] < law->points << law->bits
                           : number[j] >= law->low && number[j] <= law->high);
        CHECK(j == 0 || (law->lattice ? point[j - 1] <= point[j] : number[j - 1] <= number[j]));
    }
    CHECK(windows.reach >= 0 && windows.reach <= (int64_t)n);
    CHECK((windows.log_bound == -INFINITY) == (windows.reach == (int64_t)n));
    CHECK(!windows.escaped || windows.log_bound > -INFINITY);
    if (status == DPQ_OK && log_inside(law, n, (int64_t)n, &work, &all) == DPQ_OK &&
        log_inside(law, n, windows.reach, &work, &inside) == DPQ_OK) {
        double top = fmax(inside, windows.log_bound);

        top += log(exp(inside - top) + exp(windows.log_bound - top));
        CHECK(all <= top + 1e-9 * fmax(1.0, fabs(top)));
    }
    free_work(&work);
}

/* One sample by itself. */
static void
check_one(const dpq_groups_law *law, size_t n, const double *value, fuzz_input *in)
{
    dpq_groups_work work = make_work(n, law->levels);
    int64_t point[MOST_LEVELS];
    double number[MOST_LEVELS];
    dpq_status status;
    dpq_groups_windows all = {.log_volume = log_volume_of(law), .spare = INFINITY};
    fuzz_input same = *in;
    bitgen_t rng = fuzz_generator(in), again = fuzz_generator(&same);

    status = dpq_groups_release_one(law, n, value, &work, &rng, &all, point, number);
    CHECK(!all.escaped && all.reach == (int64_t)n);
    CHECK(status == DPQ_OK || status == DPQ_ERR_RANGE);
    check_answers(law, n, value, status, &work, &again, point, number);
    CHECK(same.left == in->left && same.state == in->state);
    free_work(&work);
    check_windows(law, n, value, in);
    if (law->lattice) {
        check_flips_of_one(law, n, value, in);
    }
}

/* Room for groups of up to n records side by side. */
static void
add_lanes(size_t n, size_t m, dpq_groups_work *work)
{
    size_t entries = m * (n + 1), row = DPQ_LANES * sizeof(double);

    work->lanes_room = n;
    work->lanes.fade = fuzz_room(entries, sizeof(double));
    work->lanes.above = fuzz_room(entries, sizeof(double));
    work->lanes.below = fuzz_room(entries, sizeof(double));
    work->lanes.stay = fuzz_room(entries, sizeof(double));
    work->lanes.point = fuzz_room(n + 2, row);
    work->lanes.A = fuzz_room(entries, row);
    work->lanes.H = fuzz_room(entries, row);
    work->lanes.gain = fuzz_room(m, row);
    work->lanes.total = fuzz_room(1, row);
    work->lanes.suffix = fuzz_room(n + 1, row);
    work->column = fuzz_room(n, row);
}

static void
free_added(dpq_groups_work *work)
{
    free(work->lanes.fade);
    free(work->lanes.above);
    free(work->lanes.below);
    free(work->lanes.stay);
    free(work->lanes.point);
    free(work->lanes.A);
    free(work->lanes.H);
    free(work->lanes.gain);
    free(work->lanes.total);
    free(work->lanes.suffix);
    free(work->column);
}

/* The answers of a group that was released side by side with others; or its points, which go through
 * dithered. */
static void
check_answer(const dpq_groups_law *law, size_t n, const double *value, dpq_status status,
             const dpq_groups_work *work, const int64_t *point, const double *number)
{
    int64_t *coarse = fuzz_room(n, sizeof *coarse);

    dpq_lattice_encode(law->lattice ? n : 0, value, law->low, law->high, law->per_unit, law->step,
                       law->first, law->points, coarse);
    qsort(coarse, law->lattice ? n : 0, sizeof *coarse, fuzz_compare_integers);
    for (size_t i = 0; i < n && status != DPQ_OK; i++) {
        CHECK(law->lattice ? work->point[i] >> law->bits == coarse[i]
                           : work->number[i] >= law->low && work->number[i] <= law->high);
        CHECK(i == 0 || (law->lattice ? work->point[i - 1] <= work->point[i]
                                      : work->number[i - 1] <= work->number[i]));
    }
    for (size_t j = 0; j < law->levels && status == DPQ_OK; j++) {
        CHECK(law->lattice ? point[j] >= 0 && point[j] < law->points << law->bits
                           : number[j] >= law->low && number[j] <= law->high);
        CHECK(j == 0 || (law->lattice ? point[j - 1] <= point[j] : number[j - 1] <= number[j]));
    }
    free(coarse);
}

static void
check_release(fuzz_input *in)
{
    double q[MOST_LEVELS];
    dpq_groups_law law = draw_law(in, q);
    size_t m = law.levels, groups = (size_t)fuzz_between(in, 0, 20), next = 0, done = 0, largest = 0;
    int alone = fuzz_bit(in);
    int64_t *start = fuzz_room(groups + 1, sizeof *start);
    int64_t *order = fuzz_room(groups, sizeof *order);
    int64_t *point = law.lattice ? fuzz_room(groups * m, sizeof *point) : NULL;
    double *number = law.lattice ? NULL : fuzz_room(groups * m, sizeof *number), *value;
    int64_t n = fuzz_between(in, 0, MOST_FEW);
    dpq_groups_work work;
    fuzz_input same;
    bitgen_t rng = fuzz_generator(in), again = fuzz_generator(&same);

    start[0] = 0;
    for (size_t g = 0; g < groups; g++) {
        int64_t other = fuzz_between(in, 0, 31); /* groups of one size share tables */

        n = other == 0  ? fuzz_between(in, 0, MOST_MANY)
            : other < 9 ? fuzz_between(in, 0, MOST_FEW)
                        : n;
        largest = (size_t)n > largest ? (size_t)n : largest;
        start[g + 1] = start[g] + n;
        order[g] = (int64_t)g;
    }
    value = fuzz_room((size_t)start[groups], sizeof *value);
    for (int64_t i = 0; i < start[groups]; i++) {
        value[i] = draw_value(&law, in);
    }
    for (size_t g = 1; g < groups; g++) {
        size_t other = (size_t)fuzz_between(in, 0, (int64_t)g);
        int64_t swap = order[g];

        order[g] = order[other];
        order[other] = swap;
    }
    work = make_work(largest, m);
    work.lanes_room = 0;
    if (!alone) {
        add_lanes(largest < MOST_FEW ? largest : MOST_FEW, m, &work);
    }
    same = *in;
    while (next < groups) {
        dpq_status status = dpq_groups_release(&law, groups, start, value, order, &work, &rng,
                                               &next, point, number);

        CHECK(status == DPQ_OK ? next == groups : status == DPQ_ERR_RANGE && next < groups);
        next += status != DPQ_OK; /* the last of these gave no answer */
        for (; done < next; done++) {
            size_t g = (size_t)order[done], size = (size_t)(start[g + 1] - start[g]);
            dpq_status own = done + 1 < next ? DPQ_OK : status;
            int64_t *points = law.lattice ? point + g * m : NULL;
            double *numbers = law.lattice ? NULL : number + g * m;

            check_answer(&law, size, value + start[g], own, &work, points, numbers);
            if (alone) {
                check_answers(&law, size, value + start[g], own, &work, &again, points,
                              numbers);
            }
        }
        CHECK(!alone || (same.left == in->left && same.state == in->state));
    }
    if (law.lattice) {
        check_flips(&law, groups, start, value, largest, in);
    }
    for (size_t g = 0; g < groups; g++) {
        check_one(&law, (size_t)(start[g + 1] - start[g]), value + start[g], in);
    }
    if (!alone) {
        free_added(&work);
    }
    free_work(&work);
    free(value);
    free(order);
    free(number);
    free(point);
    free(start);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size, 1};

    check_release(&in);
    return 0;
}
