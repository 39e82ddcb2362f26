#include "lattice.h"

#include "fuzz.h"

#define CHUNK 4096 /* values looked at between two tests for an early stop */
#define MOST_VALUES 5000
#define MOST_COUNTERS 3000

typedef struct {
    double low, high, per_unit, step;
    int64_t first, points;
} lattice;

static double
position_of(const lattice *l, double value)
{
    return l->per_unit != 0.0 ? value * l->per_unit : value / l->step;
}

/* A number at most 2^62 steps from 0: about `point` steps, or any other. */
static double
draw_bound(const lattice *l, int64_t point, fuzz_input *in)
{
    double near = ((double)point + fuzz_share(in) - 0.5) * l->step;
    double bound = fuzz_bit(in) ? near : fuzz_finite(in);

    return isfinite(bound) && fabs(position_of(l, bound)) <= 0x1p62 ? bound : 0.0;
}

static lattice
draw_lattice(int64_t most_points, fuzz_input *in)
{
    const int64_t most = INT64_C(1) << 53;
    lattice l;
    double a, b;

    l.per_unit = fuzz_bit(in) ? (double)fuzz_between(in, 1, fuzz_bit(in) ? 100 : most - 1) : 0.0;
    l.step = l.per_unit != 0.0 ? 1.0 / l.per_unit : fuzz_positive(in);
    l.first = fuzz_bit(in) ? fuzz_between(in, -100, 100) : fuzz_between(in, -most, most);
    l.points = fuzz_between(in, 2, most_points < 100 || fuzz_bit(in) ? 100 : most_points);
    a = draw_bound(&l, l.first, in);
    b = draw_bound(&l, l.first + l.points - 1, in);
    l.low = a < b ? a : b;
    l.high = a < b ? b : a;
    return l;
}

/* Any number, or one near the middle between two points. */
static double
draw_value(const lattice *l, fuzz_input *in)
{
    double middle;

    if (fuzz_bit(in)) {
        return fuzz_number(in);
    }
    middle = ((double)(l->first + fuzz_between(in, 0, l->points)) - 0.5) * l->step;
    return fuzz_bit(in) ? middle : nextafter(middle, fuzz_number(in));
}

static int64_t
encoded(const lattice *l, double value)
{
    double clamped = isnan(value) || value < l->low ? l->low : value > l->high ? l->high : value;
    int64_t point = (int64_t)fuzz_nearest(position_of(l, clamped));

    return point < l->first                  ? 0
           : point >= l->first + l->points ? l->points - 1
                                             : point - l->first;
}

static void
check_encode(size_t n, fuzz_input *in)
{
    lattice l = draw_lattice(INT64_C(1) << 53, in);
    double *value = fuzz_room(n, sizeof *value);
    int64_t *point = fuzz_room(n, sizeof *point);
    size_t numbers = 0;

    for (size_t i = 0; i < n; i++) {
        value[i] = draw_value(&l, in);
    }
    dpq_lattice_encode(n, value, l.low, l.high, l.per_unit, l.step, l.first, l.points, point);
    for (size_t i = 0; i < n; i++) {
        CHECK(point[i] == encoded(&l, value[i]));
        CHECK(point[i] >= 0 && point[i] < l.points);
        if (!isnan(value[i])) {
            value[numbers++] = value[i];
        }
    }
    qsort(value, numbers, sizeof *value, fuzz_compare_numbers);
    dpq_lattice_encode(numbers, value, l.low, l.high, l.per_unit, l.step, l.first, l.points, point);
    for (size_t i = 1; i < numbers; i++) {
        CHECK(point[i - 1] <= point[i]);
    }
    free(point);
    free(value);
}

static void
check_bisect(size_t n, fuzz_input *in)
{
    lattice l = draw_lattice(INT64_C(1) << 53, in);
    double *value = fuzz_room(n, sizeof *value);
    size_t asked = (size_t)fuzz_between(in, 0, 40);
    int64_t *point = fuzz_room(asked, sizeof *point), *lo = fuzz_room(asked, sizeof *lo);
    int64_t *hi = fuzz_room(asked, sizeof *hi), *expected = fuzz_room(asked, sizeof *expected);
    dpq_column column = {value, DPQ_FLOAT64};

    for (size_t i = 0; i < n; i++) {
        value[i] = draw_value(&l, in);
        value[i] = isnan(value[i]) ? l.low : value[i];
    }
    qsort(value, n, sizeof *value, fuzz_compare_numbers);
    for (size_t k = 0; k < asked; k++) {
        size_t at = n > 0 ? (size_t)fuzz_between(in, 0, (int64_t)n - 1) : 0;

        point[k] = n > 0 && fuzz_bit(in) ? encoded(&l, value[at]) : fuzz_between(in, -1, l.points);
        expected[k] = 0;
        while ((size_t)expected[k] < n && encoded(&l, value[expected[k]]) < point[k]) {
            expected[k]++;
        }
        lo[k] = fuzz_between(in, 0, expected[k]);
        hi[k] = fuzz_between(in, expected[k], (int64_t)n);
    }
    dpq_lattice_bisect(asked, &column, l.low, l.high, l.per_unit, l.step, l.first, l.points, point,
                       lo, hi);
    for (size_t k = 0; k < asked; k++) {
        CHECK(lo[k] == expected[k]);
    }
    free(point);
    free(lo);
    free(hi);
    free(expected);
    free(value);
}

static void
check_runs(size_t n, fuzz_input *in)
{
    lattice l = draw_lattice(fuzz_bit(in) ? 20 : INT64_C(1) << 53, in);
    double *value = fuzz_room(n, sizeof *value);
    int64_t low[4], high[4], size[4];
    dpq_lattice_places places = {(size_t)fuzz_between(in, 0, 4), low, high, size};
    dpq_lattice_place at = {0, 0};
    dpq_column column = {value, DPQ_FLOAT64};
    int64_t last = 0, done = 0, point, below, above;

    for (size_t i = 0; i < n; i++) {
        value[i] = draw_value(&l, in);
        value[i] = isnan(value[i]) ? l.low : value[i];
    }
    qsort(value, n, sizeof *value, fuzz_compare_numbers);
    for (size_t t = 0; t < places.stretches; t++) {
        low[t] = fuzz_between(in, last, (int64_t)n);
        last = high[t] = fuzz_between(in, low[t], (int64_t)n);
        size[t] = fuzz_between(in, 1, fuzz_bit(in) ? 5 : 300);
    }
    for (size_t t = 0; t < places.stretches; t++) { /* one run at a time */
        for (int64_t place = low[t]; place < high[t]; place++) {
            int64_t here = encoded(&l, value[place]), first = place, end = place;

            if (place % size[t] != 0 || place < done) {
                continue;
            }
            CHECK(dpq_lattice_runs(n, &column, l.low, l.high, l.per_unit, l.step, l.first, l.points,
                                   &places, &at, 1, &point, &below, &above) == 1);
            while (first > 0 && encoded(&l, value[first - 1]) == here) {
                first--;
            }
            while ((size_t)end < n && encoded(&l, value[end]) == here) {
                end++;
            }
            CHECK(point == here && below == first && above == end);
            done = end;
        }
    }
    CHECK(dpq_lattice_runs(n, &column, l.low, l.high, l.per_unit, l.step, l.first, l.points, &places,
                           &at, 1, &point, &below, &above) == 0);
    free(value);
}

static void
check_ties(size_t n, fuzz_input *in)
{
    lattice l = draw_lattice(fuzz_bit(in) ? 20 : INT64_C(1) << 53, in);
    size_t asked = n > 0 ? (size_t)fuzz_between(in, 0, 40) : 0;
    double *value = fuzz_room(n, sizeof *value);
    int64_t *room = fuzz_room(4 * asked, sizeof *room);
    int64_t *place = room, *point = room + asked, *below = point + asked, *above = below + asked;
    dpq_column column = {value, DPQ_FLOAT64};
    int crowded = fuzz_bit(in);

    for (size_t i = 0; i < n; i++) {
        value[i] = draw_value(&l, in);
        value[i] = isnan(value[i]) ? l.low : value[i];
    }
    qsort(value, n, sizeof *value, fuzz_compare_numbers);
    for (size_t i = 0; i < asked; i++) {
        int64_t from = i > 0 ? place[i - 1] : fuzz_between(in, 0, (int64_t)n - 1);
        int64_t to = crowded && from + 3 < (int64_t)n ? from + 3 : (int64_t)n - 1;

        place[i] = fuzz_between(in, from, to);
    }
    dpq_lattice_ties(n, &column, l.low, l.high, l.per_unit, l.step, l.first, l.points, asked, place, point,
                     below, above);
    for (size_t i = 0; i < asked; i++) {
        int64_t first = place[i], end = place[i];

        while (first > 0 && encoded(&l, value[first - 1]) == point[i]) {
            first--;
        }
        while ((size_t)end < n && encoded(&l, value[end]) == point[i]) {
            end++;
        }
        CHECK(point[i] == encoded(&l, value[place[i]]) && below[i] == first && above[i] == end);
    }
    free(room);
    free(value);
}

static void
check_least(size_t n, fuzz_input *in)
{
    lattice l = draw_lattice(INT64_C(1) << 53, in);
    double *value = fuzz_room(n, sizeof *value);
    int64_t *point = fuzz_room(n, sizeof *point);

    for (size_t i = 0; i < n; i++) {
        point[i] = fuzz_between(in, -1, l.points + 1);
    }
    dpq_lattice_least(n, point, l.low, l.high, l.per_unit, l.step, l.first, l.points, value);
    for (size_t i = 0; i < n; i++) {
        int64_t ends[2] = {point[i] - 1, point[i]};
        double at[2];

        if (point[i] <= 0 || point[i] >= l.points) {
            CHECK(value[i] == (point[i] <= 0 ? -INFINITY : INFINITY));
            continue;
        }
        dpq_lattice_decode(2, ends, l.per_unit, l.step, l.first, at);
        /* bounds may lie anywhere here, and a step may be too short for numbers there */
        if (encoded(&l, at[0]) < point[i] && encoded(&l, at[1]) >= point[i]) {
            CHECK(at[0] < value[i] && value[i] <= at[1]);
            CHECK(encoded(&l, value[i]) >= point[i]);
            CHECK(encoded(&l, nextafter(value[i], -INFINITY)) < point[i]);
        }
    }
    free(point);
    free(value);
}

static void
check_decode(size_t n, fuzz_input *in)
{
    lattice l = draw_lattice(INT64_C(1) << 53, in);
    double *value = fuzz_room(n, sizeof *value);
    int64_t *point = fuzz_room(n, sizeof *point);

    for (size_t i = 0; i < n; i++) {
        point[i] = fuzz_between(in, 0, l.points - 1);
    }
    dpq_lattice_decode(n, point, l.per_unit, l.step, l.first, value);
    for (size_t i = 0; i < n; i++) {
        double index = (double)(l.first + point[i]);
        double expected = l.per_unit != 0.0 ? index / l.per_unit : index * l.step;

        CHECK(memcmp(value + i, &expected, sizeof expected) == 0);
    }
    free(point);
    free(value);
}

static void
check_count(size_t n, fuzz_input *in)
{
    lattice l = draw_lattice(MOST_COUNTERS, in);
    size_t counters = (size_t)l.points + 1;
    double *value = fuzz_room(n, sizeof *value);
    dpq_column column;
    int64_t *count = fuzz_room(counters, sizeof *count);
    int64_t *expected = fuzz_room(counters, sizeof *expected);

    for (size_t k = 0; k < counters; k++) {
        count[k] = expected[k] = (int64_t)k - 50;
    }
    for (size_t i = 0; i < n; i++) {
        value[i] = draw_value(&l, in);
        expected[isnan(value[i]) ? l.points : encoded(&l, value[i])]++;
    }
    column.value = value;
    column.kind = DPQ_FLOAT64;
    dpq_lattice_count(n, &column, l.low, l.high, l.per_unit, l.step, l.first, l.points, count);
    CHECK(memcmp(count, expected, counters * sizeof *count) == 0);
    free(expected);
    free(count);
    free(value);
}

/* As of each of their values alone. */
static void
check_count_bytes(size_t n, fuzz_input *in)
{
    lattice l = draw_lattice(MOST_COUNTERS, in);
    size_t counters = (size_t)l.points + 1;
    uint8_t *value = fuzz_room(n, sizeof *value);
    int64_t *count = fuzz_room(counters, sizeof *count);
    const dpq_column column = {value, fuzz_bit(in) ? DPQ_INT8 : DPQ_UINT8};
    double number;

    memset(count, 0, counters * sizeof *count);
    for (size_t i = 0; i < n; i++) {
        value[i] = (uint8_t)fuzz_bytes(in, 1);
    }
    dpq_lattice_count(n, &column, l.low, l.high, l.per_unit, l.step, l.first, l.points, count);
    for (size_t i = 0; i < n; i++) {
        count[encoded(&l, *dpq_column_read(&column, i, 1, &number))]--;
    }
    for (size_t k = 0; k < counters; k++) {
        CHECK(count[k] == 0);
    }
    free(count);
    free(value);
}

static void
check_count_integers(size_t n, fuzz_input *in)
{
    lattice l = draw_lattice(MOST_COUNTERS, in);
    size_t counters = (size_t)l.points + 1;
    int64_t *value = fuzz_room(n, sizeof *value);
    int64_t *count = fuzz_room(counters, sizeof *count);
    int64_t *expected = fuzz_room(counters, sizeof *expected);
    const dpq_column column = {value, DPQ_INT64};

    for (size_t k = 0; k < counters; k++) {
        count[k] = expected[k] = (int64_t)k - 50;
    }
    for (size_t i = 0; i < n; i++) {
        int64_t at = 0;

        value[i] = fuzz_bit(in) ? l.first + fuzz_between(in, -2, l.points + 2)
                                : fuzz_between(in, INT64_MIN, INT64_MAX);
        while (at < l.points - 1 && l.first + at < value[i]) {
            at++;
        }
        expected[at]++;
    }
    dpq_lattice_count_integers(n, &column, l.first, l.points, count);
    CHECK(memcmp(count, expected, counters * sizeof *count) == 0);
    free(expected);
    free(count);
    free(value);
}

static void
check_is_sorted(size_t n, fuzz_input *in)
{
    double *value = fuzz_room(n, sizeof *value);
    int sorted = 1, missing = 0;

    for (size_t i = 0; i < n; i++) {
        value[i] = fuzz_bit(in) ? 0.0 : fuzz_finite(in);
    }
    qsort(value, n, sizeof *value, fuzz_compare_numbers);
    if (n > 0 && fuzz_bit(in)) {
        size_t at = fuzz_bit(in) ? CHUNK + (size_t)fuzz_between(in, 0, 1) : n - 1;

        at = at < n ? at : (size_t)fuzz_between(in, 0, (int64_t)n - 1);
        value[at] = fuzz_number(in);
    }
    for (size_t i = 0; i < n; i++) {
        sorted = sorted && (i == 0 || value[i - 1] <= value[i]);
        missing = missing || isnan(value[i]);
    }
    CHECK(!dpq_lattice_is_sorted(n, value) == !sorted);
    CHECK(!dpq_lattice_has_missing(n, value) == !missing);
    free(value);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size, 1};
    size_t n = fuzz_size(&in, MOST_VALUES);

    check_encode(n, &in);
    check_bisect(n, &in);
    check_runs(n, &in);
    check_ties(n, &in);
    check_decode(n, &in);
    check_least(n < 300 ? n : 300, &in);
    check_count(n, &in);
    check_count_integers(n < 200 ? n : 200, &in);
    check_count_bytes(n, &in);
    check_is_sorted(n, &in);
    return 0;
}
