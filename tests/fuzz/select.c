#include <float.h>

#include "select.h"

#include "fuzz.h"
#include "key.h"

#define MOST_VALUES 3000 /* a few blocks */
#define MOST_RANGES 6

static dpq_select_map
draw_map(fuzz_input *in)
{
    dpq_select_map map;
    double a = fuzz_finite(in), b = fuzz_finite(in);

    map.low = a < b ? a : b;
    map.high = a < b ? b : a;
    map.linear = fuzz_bit(in);
    map.origin = fuzz_bit(in) ? map.low : fuzz_finite(in);
    map.scale = fuzz_positive(in);
    map.base = fuzz_between(in, dpq_key_of(map.low), dpq_key_of(map.high));
    map.shift = (int)fuzz_between(in, 0, 63);
    map.buckets = fuzz_bit(in) ? fuzz_between(in, 1, 64) : fuzz_between(in, 1, DPQ_SELECT_BUCKETS);
    return map;
}

static double
clamp(const dpq_select_map *map, double v)
{
    return v < map->low ? map->low : v > map->high ? map->high : v;
}

static void
check_edges(const dpq_select_map *map)
{
    double last = map->low;

    for (int64_t b = -1; b <= map->buckets + 1; b++) {
        double edge = dpq_select_edge(map, b);

        CHECK(edge >= last && edge <= map->high);
        last = edge;
    }
}

/* `found` values were found and the first `room` of them stand in `out`. */
static void
check_found(size_t expected, const double *wanted, size_t found, size_t room, const double *out)
{
    CHECK(found == expected);
    for (size_t i = 0; i < found && i < room; i++) {
        CHECK(dpq_key_of(out[i]) == dpq_key_of(wanted[i]) || wanted[i] != wanted[i]);
    }
}

static void
check_sample(const dpq_select_map *map, size_t n, const double *value, fuzz_input *in)
{
    const dpq_column column = {value, DPQ_FLOAT64};
    size_t buckets = (size_t)map->buckets + 1;
    size_t run = (size_t)fuzz_between(in, 1, 40), apart = (size_t)fuzz_between(in, 0, 20) + run;
    size_t runs = n < run ? 0 : (n - run) / apart + 1;
    int64_t *count = fuzz_room(buckets, sizeof *count);

    memset(count, 0, buckets * sizeof *count);
    dpq_select_sample(map, run, apart, runs, &column, count);
    for (size_t r = 0; r < runs; r++) {
        for (size_t i = 0; i < run; i++) {
            count[dpq_select_bucket(map, value[r * apart + i])]--;
        }
    }
    for (size_t b = 0; b < buckets; b++) {
        CHECK(count[b] == 0);
    }
    free(count);
}

/* Rows that are apart are counted as one after another. */
static void
check_rows(const dpq_select_map *map, size_t n, const double *value, const uint8_t *wanted,
           fuzz_input *in)
{
    const dpq_column column = {value, DPQ_FLOAT64};
    size_t length = (size_t)fuzz_between(in, 0, (int64_t)n);
    size_t apart = length + (size_t)fuzz_between(in, length == 0, 40);
    size_t rows = n < length ? 0 : 1 + (n - length) / apart, buckets = (size_t)map->buckets + 1;
    double *each = fuzz_room(n, sizeof *each), *taken = fuzz_room(n, sizeof *taken);
    int64_t *count = fuzz_room(buckets, sizeof *count);
    int64_t *expected = fuzz_room(buckets, sizeof *expected);
    size_t found = 0;

    memset(count, 0, buckets * sizeof *count);
    memset(expected, 0, buckets * sizeof *expected);
    for (size_t row = 0; row < rows; row++) {
        const dpq_column one = {value + row * apart, DPQ_FLOAT64};

        found += dpq_select_count(map, 1, length, length, &one, expected, wanted, n - found,
                                  each + found);
    }
    check_found(found, each,
                dpq_select_count(map, rows, length, apart, &column, count, wanted, n, taken), n,
                taken);
    CHECK(memcmp(count, expected, buckets * sizeof *count) == 0);
    free(each);
    free(taken);
    free(count);
    free(expected);
}

/* Buckets never decrease with the value, and counts agree with the buckets of single values. */
static void
check_count(const dpq_select_map *map, size_t n, const double *value, fuzz_input *in)
{
    const dpq_column column = {value, DPQ_FLOAT64};
    size_t room = (size_t)fuzz_between(in, 0, (int64_t)n + 2), taken = 0;
    double *out = fuzz_room(room, sizeof *out), *all = fuzz_room(n, sizeof *all);
    uint8_t *wanted = fuzz_room((size_t)map->buckets + 1, 1);
    size_t buckets = (size_t)map->buckets + 1;
    int64_t *count = fuzz_room(buckets, sizeof *count);
    int64_t *expected = fuzz_room(buckets, sizeof *expected);
    double *sorted = fuzz_room(n, sizeof *sorted);
    size_t numbers = 0, found;
    int64_t last = 0;

    for (size_t b = 0; b < buckets; b++) {
        count[b] = expected[b] = (int64_t)b;
        wanted[b] = (uint8_t)fuzz_between(in, 0, 2);
    }
    for (size_t i = 0; i < n; i++) {
        int64_t bucket = dpq_select_bucket(map, value[i]);

        CHECK(bucket >= 0 && (value[i] == value[i] ? bucket < map->buckets
                                                   : bucket == map->buckets));
        expected[bucket]++;
        if (wanted[bucket]) {
            all[taken++] = clamp(map, value[i]);
        }
        if (value[i] == value[i]) {
            sorted[numbers++] = value[i];
        }
    }
    qsort(sorted, numbers, sizeof *sorted, fuzz_compare_numbers);
    for (size_t i = 0; i < numbers; i++) {
        int64_t bucket = dpq_select_bucket(map, sorted[i]);

        CHECK(bucket >= last);
        last = bucket;
    }
    CHECK(dpq_select_count(map, 1, n, n, &column, count, NULL, 0, NULL) == 0);
    CHECK(memcmp(count, expected, buckets * sizeof *count) == 0);
    for (size_t b = 0; b < buckets; b++) {
        count[b] = (int64_t)b;
    }
    found = dpq_select_count(map, 1, n, n, &column, count, wanted, room, out);
    check_found(taken, all, found, room, out);
    CHECK(memcmp(count, expected, buckets * sizeof *count) == 0);
    check_sample(map, n, value, in);
    check_rows(map, n, value, wanted, in);
    free(wanted);
    free(all);
    free(out);
    free(sorted);
    free(expected);
    free(count);
}

static void
check_refine(const dpq_select_map *map, size_t n, const double *value, fuzz_input *in)
{
    const dpq_column column = {value, DPQ_FLOAT64};
    size_t buckets = (size_t)map->buckets + 1, cells = (size_t)fuzz_between(in, 1, 4);
    int64_t parts = fuzz_between(in, 1, 300);
    int32_t *cell = fuzz_room(buckets, sizeof *cell), *shift = fuzz_room(cells, sizeof *shift);
    int64_t *lo = fuzz_room(cells, sizeof *lo), *hi = fuzz_room(cells, sizeof *hi);
    int64_t *pivot = fuzz_room(cells, sizeof *pivot);
    size_t counters = cells * (size_t)parts;
    int64_t *count = fuzz_room(counters, sizeof *count);
    int64_t *expected = fuzz_room(counters, sizeof *expected);

    for (size_t b = 0; b < buckets; b++) {
        cell[b] = (int32_t)fuzz_between(in, -1, (int64_t)cells - 1);
    }
    for (size_t c = 0; c < cells; c++) {
        lo[c] = fuzz_bit(in) ? dpq_key_of(fuzz_finite(in)) : dpq_key_of(map->low);
        hi[c] = fuzz_bit(in) ? dpq_key_of(fuzz_finite(in)) : INT64_MAX;
        shift[c] = (int32_t)fuzz_between(in, -1, 63);
        pivot[c] = dpq_key_of(n > 0 ? value[fuzz_between(in, 0, (int64_t)n - 1)] : 0.0);
    }
    memset(count, 0, counters * sizeof *count);
    memset(expected, 0, counters * sizeof *expected);
    for (size_t i = 0; i < n; i++) {
        int32_t c = cell[dpq_select_bucket(map, value[i])];
        int64_t key = dpq_key_of(clamp(map, value[i]));

        if (c >= 0 && lo[c] <= key && key < hi[c]) {
            uint64_t part = shift[c] >= 0      ? ((uint64_t)key - (uint64_t)lo[c]) >> shift[c]
                            : key < pivot[c]   ? 0
                            : key == pivot[c] ? 1
                                              : 2;

            if (part < (uint64_t)parts) {
                expected[c * parts + (int64_t)part]++;
            }
        }
    }
    dpq_select_refine(map, cell, lo, hi, shift, pivot, parts, n, &column, count);
    CHECK(memcmp(count, expected, counters * sizeof *count) == 0);
    free(expected);
    free(count);
    free(hi);
    free(lo);
    free(pivot);
    free(shift);
    free(cell);
}

static void
check_collect(const dpq_select_map *map, size_t n, const double *value, fuzz_input *in)
{
    const dpq_column column = {value, DPQ_FLOAT64};
    size_t buckets = (size_t)map->buckets + 1, ranges = (size_t)fuzz_between(in, 0, MOST_RANGES);
    size_t room = (size_t)fuzz_between(in, 0, (int64_t)n + 2), expected = 0;
    uint8_t *wanted = fuzz_room(buckets, 1);
    int64_t end[2 * MOST_RANGES];
    int64_t *lo = fuzz_room(ranges, sizeof *lo), *hi = fuzz_room(ranges, sizeof *hi);
    double *out = fuzz_room(room, sizeof *out), *all = fuzz_room(n, sizeof *all);

    for (size_t b = 0; b < buckets; b++) {
        wanted[b] = (uint8_t)fuzz_between(in, 0, 2);
    }
    for (size_t r = 0; r < 2 * ranges; r++) {
        end[r] = dpq_key_of(fuzz_finite(in));
    }
    qsort(end, 2 * ranges, sizeof *end, fuzz_compare_integers);
    for (size_t r = 0; r < ranges; r++) {
        lo[r] = end[2 * r];
        hi[r] = end[2 * r + 1];
    }
    for (size_t i = 0; i < n; i++) {
        double clamped = clamp(map, value[i]);
        int64_t key = dpq_key_of(clamped);
        uint8_t want = wanted[dpq_select_bucket(map, value[i])];
        int take = want == 1;

        for (size_t r = 0; r < ranges && want == 2; r++) {
            take |= lo[r] <= key && key < hi[r];
        }
        if (take) {
            all[expected++] = clamped;
        }
    }
    check_found(expected, all,
                dpq_select_collect(map, wanted, ranges, lo, hi, n, &column, room, out), room, out);
    free(all);
    free(out);
    free(hi);
    free(lo);
    free(wanted);
}

static void
check_between(const dpq_select_map *map, size_t n, const double *value, fuzz_input *in)
{
    const dpq_column column = {value, DPQ_FLOAT64};
    size_t ranges = (size_t)fuzz_between(in, 0, MOST_RANGES);
    size_t room = (size_t)fuzz_between(in, 0, (int64_t)n + 2), expected = 0;
    double *end = fuzz_room(2 * ranges, sizeof *end);
    double *lo = fuzz_room(ranges, sizeof *lo), *hi = fuzz_room(ranges, sizeof *hi);
    double *out = fuzz_room(room, sizeof *out), *all = fuzz_room(n, sizeof *all);

    for (size_t r = 0; r < 2 * ranges; r++) {
        end[r] = fuzz_finite(in);
    }
    qsort(end, 2 * ranges, sizeof *end, fuzz_compare_numbers);
    for (size_t r = 0; r < ranges; r++) {
        lo[r] = r > 0 && hi[r - 1] >= end[2 * r] ? nextafter(hi[r - 1], INFINITY) : end[2 * r];
        hi[r] = end[2 * r + 1];
    }
    /* stretches are looked at range by range, so compare as multisets */
    for (size_t i = 0; i < n; i++) {
        for (size_t r = 0; r < ranges; r++) {
            if (lo[r] <= value[i] && value[i] <= hi[r]) {
                all[expected++] = clamp(map, value[i]);
            }
        }
    }
    CHECK(dpq_select_between(map->low, map->high, ranges, lo, hi, n, &column, room, out) == expected);
    if (room >= expected) {
        qsort(all, expected, sizeof *all, fuzz_compare_numbers);
        qsort(out, expected, sizeof *out, fuzz_compare_numbers);
        for (size_t i = 0; i < expected; i++) {
            CHECK(out[i] == all[i]);
        }
    }
    free(all);
    free(out);
    free(hi);
    free(lo);
    free(end);
}

static void
check_cells(const dpq_select_map *map, size_t n, const double *value, fuzz_input *in)
{
    const dpq_column column = {value, DPQ_FLOAT64};
    size_t ranges = (size_t)fuzz_between(in, 1, MOST_RANGES);
    int64_t parts = fuzz_between(in, 1, 64), cells = (int64_t)ranges * parts, inside = 0, held = 0;
    double *end = fuzz_room(2 * ranges, sizeof *end);
    double *lo = fuzz_room(ranges, sizeof *lo), *hi = fuzz_room(ranges, sizeof *hi);
    double *scale = fuzz_room(ranges, sizeof *scale);
    double *least = fuzz_room((size_t)cells, sizeof *least);
    double *most = fuzz_room((size_t)cells, sizeof *most);
    int64_t *count = fuzz_room((size_t)cells + 1, sizeof *count);

    for (size_t r = 0; r < 2 * ranges; r++) {
        end[r] = fuzz_finite(in);
    }
    qsort(end, 2 * ranges, sizeof *end, fuzz_compare_numbers);
    for (size_t r = 0; r < ranges; r++) {
        double width;

        lo[r] = r > 0 && hi[r - 1] >= end[2 * r] ? nextafter(hi[r - 1], INFINITY) : end[2 * r];
        hi[r] = fmax(lo[r], end[2 * r + 1]);
        width = hi[r] * 0.5 - lo[r] * 0.5;
        scale[r] = fmin((double)parts / fabs(width), DBL_MAX); /* from 0 to -0 it is -0 */
    }
    for (int64_t c = 0; c < cells; c++) {
        count[c] = 0;
        least[c] = INFINITY;
        most[c] = -INFINITY;
    }
    count[cells] = 0;
    dpq_select_cells(map->low, map->high, ranges, lo, hi, scale, parts, n, &column, count, least,
                     most);
    for (size_t i = 0; i < n; i++) {
        double v = clamp(map, value[i]);

        for (size_t r = 0; r < ranges; r++) {
            inside += lo[r] <= v && v <= hi[r];
        }
        held += isnan(v);
    }
    CHECK(count[cells] == held);
    for (int64_t c = 0; c < cells; c++) {
        size_t r = (size_t)(c / parts);

        held = 0;
        for (size_t i = 0; i < n; i++) {
            double v = clamp(map, value[i]);

            held += least[c] <= v && v <= most[c];
        }
        CHECK(held == count[c]); /* a cell holds all that is between its ends */
        CHECK(count[c] == 0 || (lo[r] <= least[c] && most[c] <= hi[r]));
        CHECK(c % parts == 0 || count[c] == 0 || count[c - 1] == 0 || most[c - 1] < least[c]);
        inside -= held;
    }
    CHECK(inside == 0);
    free(count);
    free(most);
    free(least);
    free(scale);
    free(hi);
    free(lo);
    free(end);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size, 1};
    dpq_select_map map = draw_map(&in);
    size_t n = (size_t)(fuzz_bit(&in) ? fuzz_between(&in, 0, 32)
                                      : fuzz_between(&in, 0, MOST_VALUES));
    double *value = fuzz_room(n, sizeof *value);

    for (size_t i = 0; i < n; i++) {
        value[i] = fuzz_number(&in);
    }
    check_edges(&map);
    check_count(&map, n, value, &in);
    check_refine(&map, n, value, &in);
    check_collect(&map, n, value, &in);
    check_between(&map, n, value, &in);
    check_cells(&map, n, value, &in);
    free(value);
    return 0;
}
