#include "arrange.h"

#include "fuzz.h"
#include "key.h"

#define MOST_VALUES 3000
#define MOST_WINDOWS 5
#define PIECES 3

/* A map of few buckets, and the finer one that bins are buckets of. */
static void
draw_maps(fuzz_input *in, dpq_select_map *map, dpq_arrange_bins *bins)
{
    double a = fuzz_finite(in), b = fuzz_finite(in);
    int most = 10;

    map->low = a < b ? a : b;
    map->high = a < b ? b : a;
    map->linear = fuzz_bit(in);
    map->origin = fuzz_bit(in) ? map->low : fuzz_finite(in);
    map->scale = fuzz_positive(in);
    map->base = fuzz_between(in, dpq_key_of(map->low), dpq_key_of(map->high));
    map->shift = (int)fuzz_between(in, 0, 63);
    map->buckets = fuzz_between(in, 1, 60);
    bins->map = *map;
    bins->bits = 0;
    if (!map->linear && map->shift < most) {
        most = map->shift;
    }
    for (int bits = (int)fuzz_between(in, 0, most); bins->bits < bits; bins->bits++) {
        if (map->linear && !isfinite(2.0 * bins->map.scale)) {
            break;
        }
        bins->map.scale *= 2.0;
        bins->map.shift--;
        bins->map.buckets *= 2;
    }
}

/* As sorted at the places of windows, and between those elsewhere. */
static void
check_places(const dpq_arrange_windows *asked, size_t n, const double *out, const double *sorted)
{
    int64_t place = 0;

    for (size_t w = 0; w <= asked->windows; w++) {
        int64_t end = w < asked->windows ? asked->start[w] : (int64_t)n;

        for (int64_t i = place; i < end; i++) {
            CHECK(place == 0 || !(out[i] < sorted[place - 1]));
            CHECK(end == (int64_t)n || !(out[i] > sorted[end]));
        }
        for (int64_t i = end; w < asked->windows && i < asked->stop[w]; i++) {
            CHECK(out[i] == sorted[i] || (out[i] != out[i] && sorted[i] != sorted[i]));
        }
        place = w < asked->windows ? asked->stop[w] : place;
    }
}

/* The same of numbers of which nothing is known; some of them NaN, if asked for. */
static void
check_numbers(fuzz_input *in, const dpq_arrange_windows *asked, size_t n, double *value,
              double *sorted)
{
    double *out = fuzz_room(n, sizeof *out), *spare = fuzz_room(n, sizeof *spare);
    size_t *cursor = fuzz_room(n + 1, sizeof *cursor), numbers = 0;
    uint32_t *to = fuzz_room(n + 1, sizeof *to);
    int missing = fuzz_bit(in);
    double a = fuzz_finite(in), b = fuzz_finite(in), low = a < b ? a : b, high = a < b ? b : a;

    for (size_t i = 0; i < n; i++) {
        value[i] = missing && fuzz_bit(in) ? NAN : value[i];
        if (value[i] == value[i]) {
            sorted[numbers++] = value[i];
        }
    }
    qsort(sorted, numbers, sizeof *sorted, fuzz_compare_numbers);
    for (size_t i = numbers; i < n; i++) {
        sorted[i] = NAN;
    }
    dpq_arrange_numbers(low, high, n, value, asked, cursor, to, spare, out);
    check_places(asked, n, out, sorted);
    free(out);
    free(spare);
    free(cursor);
    free(to);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input = {data, size, 1}, *in = &input;
    dpq_select_map map;
    dpq_arrange_bins bins;
    int64_t start[MOST_WINDOWS], stop[MOST_WINDOWS], place = 0;
    dpq_arrange_windows asked = {(size_t)fuzz_between(in, 0, MOST_WINDOWS), start, stop};
    size_t n = (size_t)fuzz_between(in, 0, fuzz_bit(in) ? 60 : MOST_VALUES), number, done = 0;
    double *value = fuzz_room(n, sizeof *value), *sorted = fuzz_room(n, sizeof *sorted);
    double *out = fuzz_room(n, sizeof *out), *spare, *nothing_known, *again;
    int64_t *below = fuzz_room(n, sizeof *below), *counted = fuzz_room(n, sizeof *counted);
    int ties = fuzz_bit(in), all = fuzz_bit(in);
    uint32_t *slot, *to, bucket;
    uint8_t wanted[60] = {0};
    size_t *cursor, *count, *own;

    draw_maps(in, &map, &bins);
    for (size_t i = 0; i < n; i++) {
        double v = ties && i > 0 && fuzz_bit(in) ? value[fuzz_between(in, 0, (int64_t)i - 1)]
                                                 : fuzz_finite(in);

        value[i] = v < map.low ? map.low : v > map.high ? map.high : v;
        dpq_select_buckets(&map, 1, value + i, &bucket);
        wanted[bucket] = 1;
        dpq_select_buckets(&bins.map, 1, value + i, &bucket);
        CHECK(wanted[bucket >> bins.bits]); /* a part of it */
    }
    slot = fuzz_room((size_t)map.buckets, sizeof *slot);
    number = 0;
    for (int64_t b = 0; b < map.buckets; b++) {
        slot[b] = (uint32_t)number;
        number += wanted[b] || fuzz_between(in, 0, 3) == 0;
    }
    bins.slot = slot;
    number = (number + 1) << bins.bits;
    CHECK(number <= DPQ_ARRANGE_BINS);
    cursor = fuzz_room(number, sizeof *cursor);
    to = fuzz_room(number, sizeof *to);
    memset(cursor, 0, number * sizeof *cursor);
    for (size_t w = 0; w < asked.windows; w++) {
        start[w] = fuzz_between(in, place, (int64_t)n);
        stop[w] = place = fuzz_between(in, start[w], (int64_t)n);
    }
    count = fuzz_room(PIECES * number, sizeof *count);
    own = fuzz_room(number, sizeof *own);
    memset(count, 0, PIECES * number * sizeof *count);
    for (size_t p = 0; p < PIECES; p++) { /* as long as it lasts */
        size_t next = n * (p + 1) / PIECES;

        dpq_arrange_count(&bins, next - done, value + done, count + p * number);
        for (size_t b = 0; b < number; b++) {
            cursor[b] += count[p * number + b];
        }
        done = next;
    }
    spare = fuzz_room(dpq_arrange_plan(number, &asked, all, cursor, to), sizeof *spare);
    for (size_t i = 0; i < n; i++) {
        out[i] = NAN;
    }
    done = 0;
    for (size_t p = 0; p < PIECES; p++) {
        size_t next = n * (p + 1) / PIECES;

        dpq_arrange_share(number, to, count + p * number, cursor, own);
        dpq_arrange_move(&bins, next - done, value + done, own, to, out);
        done = next;
    }
    done = (size_t)fuzz_between(in, 0, (int64_t)number); /* bins that are finished first */
    dpq_arrange_finish(0, done, &asked, cursor, to, out, spare);
    dpq_arrange_finish(done, number, &asked, cursor, to, out, spare);

    memcpy(sorted, value, n * sizeof *value);
    qsort(sorted, n, sizeof *sorted, fuzz_compare_numbers);
    check_places(&asked, n, out, sorted); /* what is left out is NaN, which nothing is above or below */
    nothing_known = fuzz_room(n, sizeof *nothing_known);
    again = fuzz_room(n, sizeof *again);
    memcpy(nothing_known, value, n * sizeof *value);
    check_numbers(in, &asked, n, nothing_known, again);
    free(nothing_known);
    free(again);
    number = 0; /* windows that are not empty */
    for (size_t w = 0; w < asked.windows; w++) {
        start[number] = start[w];
        stop[number] = stop[w];
        number += start[w] < stop[w];
    }
    asked.windows = number;
    memset(counted, 0, n * sizeof *counted);
    dpq_arrange_add_below(n, value, n < 60 ? n : 60, value, counted);
    for (size_t i = 0; i < n && i < 60; i++) {
        CHECK(counted[i] == 0 || sorted[counted[i] - 1] < value[i]);
        CHECK(sorted[counted[i]] >= value[i]);
    }
    dpq_arrange_below_inside(&asked, n, out, n < 60 ? n : 60, value, below);
    for (size_t i = 0; i < n && i < 60; i++) {
        int inside = 0;

        for (size_t w = 0; w < asked.windows; w++) {
            inside |= sorted[start[w]] < value[i] && value[i] <= sorted[stop[w] - 1];
        }
        CHECK(below[i] == (inside ? counted[i] : -1));
    }
    if (all) {
        dpq_arrange_below(&asked, n, out, n, value, below);
        for (size_t i = 0; i < n; i++) {
            CHECK(below[i] >= 0 && (below[i] == 0 || sorted[below[i] - 1] < value[i]));
            CHECK(sorted[below[i]] >= value[i]);
        }
        qsort(out, n, sizeof *out, fuzz_compare_numbers);
        for (size_t i = 0; i < n; i++) {
            CHECK(out[i] == sorted[i]);
        }
    }
    free(counted);
    free(value);
    free(sorted);
    free(out);
    free(spare);
    free(below);
    free(slot);
    free(to);
    free(cursor);
    free(count);
    free(own);
    return 0;
}
