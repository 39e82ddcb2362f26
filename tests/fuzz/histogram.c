#include "histogram.h"

#include "fuzz.h"
#include "key.h"

#define MOST_VALUES 3000 /* a few blocks */
#define MOST_EDGES 300
#define MOST_KEYS 3000
#define MOST_THRESHOLDS 3000 /* many leaps */

__extension__ typedef unsigned __int128 u128;

/* mantissa * 2^(exponent - 127), the top bit of the mantissa set. */
typedef struct {
    u128 mantissa;
    int exponent;
} wide;

/* a * b, cut off to 128 bits. */
static wide
times(wide a, double b)
{
    int exponent;
    uint64_t factor = (uint64_t)ldexp(frexp(b, &exponent), 64);
    u128 high = (a.mantissa >> 64) * factor, low = (u128)(uint64_t)a.mantissa * factor;
    wide product = {high + (low >> 64), a.exponent + exponent};

    if (product.mantissa >> 127 == 0) {
        product.mantissa = product.mantissa << 1 | ((uint64_t)low >> 63);
        product.exponent--;
    }
    return product;
}

/* The float64 number nearest to a; that on the other side where 2^-79 of a may decide otherwise. */
static void
round_wide(wide a, double *nearest, double *other)
{
    const u128 half = (u128)1 << 74;
    uint64_t top = (uint64_t)(a.mantissa >> 75);
    u128 rest = a.mantissa & (2 * half - 1);
    u128 apart = rest > half ? rest - half : half - rest;
    int up = rest > half || (rest == half && top % 2 == 1);

    *nearest = ldexp((double)(top + (uint64_t)up), a.exponent - 52);
    *other = apart >> 49 == 0 ? ldexp((double)(top + (uint64_t)!up), a.exponent - 52) : *nearest;
}

static double
threshold_of(double power, double lower)
{
    return (power - 1.0) + lower;
}

static int
same(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

/* A base above 1: often of a power near the end of float64, or just above 1. */
static double
draw_base(fuzz_input *in)
{
    uint64_t kind = fuzz_bytes(in, 1);
    double base = kind < 64    ? 1.0 + fuzz_share(in) / 8.0
                  : kind < 128 ? exp2(1024.0 / (double)fuzz_between(in, 2, 700))
                  : kind < 192 ? 1.0
                               : fuzz_positive(in);
    int64_t key = dpq_key_of(base);

    if (kind < 192) {
        key += fuzz_between(in, -128, 127);
    }
    base = dpq_key_value(key);
    return base > 1.0 && isfinite(base) ? base : fuzz_bit(in) ? 2.0 : nextafter(1.0, 2.0);
}

static void
check_thresholds(fuzz_input *in)
{
    double base = draw_base(in), lower = fuzz_bit(in) ? 0.0 : fuzz_finite(in);
    double upper = fuzz_number(in);
    size_t size = fuzz_size(in, MOST_THRESHOLDS), end, stop = 0, room;
    size_t skip = (size_t)fuzz_between(in, 0, (int64_t)size);
    size_t step = fuzz_bit(in) ? (size_t)fuzz_between(in, 1, 200) : (size_t)fuzz_bytes(in, 8);
    double *all = fuzz_room(size, sizeof *all), *some;
    wide power = {(u128)1 << 127, 0};

    upper = isnan(upper) ? INFINITY : upper;
    step = step > 0 ? step : 1;
    end = dpq_histogram_thresholds(base, lower, INFINITY, 0, 1, size, all);
    CHECK(end <= size);
    for (size_t i = 0; i < end; i++) {
        double nearest, other;

        round_wide(power, &nearest, &other);
        CHECK(isfinite(all[i]) && (i == 0 || all[i - 1] <= all[i]));
        CHECK(all[i] == threshold_of(nearest, lower) || all[i] == threshold_of(other, lower));
        power = times(power, base);
    }
    if (end < size) {
        double nearest, other;

        round_wide(power, &nearest, &other);
        CHECK(!isfinite(threshold_of(nearest, lower)) || !isfinite(threshold_of(other, lower)));
    }

    room = (size - skip) / step + ((size - skip) % step > 0);
    some = fuzz_room(room, sizeof *some);
    for (size_t k = 0; k < room; k++) {
        some[k] = -1.5;
    }
    while (stop < end && all[stop] < upper) {
        stop++;
    }
    stop += stop < end;
    CHECK(dpq_histogram_thresholds(base, lower, upper, skip, step, size, some) == stop);
    for (size_t k = 0, i = skip; k < room; k++, i += step) {
        CHECK(same(some[k], i < stop ? all[i] : -1.5));
    }
    free(some);
    free(all);
}

static double
draw_number(fuzz_input *in)
{
    double number = fuzz_number(in);

    return isnan(number) ? INFINITY : number;
}

/* Inner edges: any, or evenly spaced. */
static int64_t *
draw_edges(size_t edges, fuzz_input *in)
{
    int64_t *edge = fuzz_room(edges + 1, sizeof *edge);
    double from = fuzz_finite(in), by = fuzz_positive(in);
    int even = fuzz_bit(in);

    for (size_t c = 0; c < edges; c++) {
        double number = even ? from + (double)c * by : draw_number(in);

        edge[c] = dpq_key_of(isnan(number) ? 0.0 : number);
    }
    qsort(edge, edges, sizeof *edge, fuzz_compare_integers);
    edge[edges] = INT64_MAX;
    return edge;
}

static double
finite_or(double number, double otherwise)
{
    return isfinite(number) ? number : otherwise;
}

/* Any key, or one that tells the edges apart if they are evenly spaced or far apart. */
static dpq_histogram
draw_table(fuzz_input *in)
{
    dpq_histogram h;
    double lowest, highest, scale;

    memset(&h, 0, sizeof h);
    h.edges = fuzz_size(in, MOST_EDGES);
    h.edge = draw_edges(h.edges, in);
    h.low = fuzz_bit(in) ? -INFINITY : draw_number(in);
    h.logarithmic = fuzz_bit(in);
    h.shift = (int)fuzz_between(in, 0, 52);
    h.last = (uint32_t)fuzz_between(in, 0, fuzz_bit(in) ? 64 : MOST_KEYS);
    h.base = fuzz_finite(in);
    h.scale = fuzz_positive(in);
    if (h.edges > 1 && fuzz_bit(in)) {
        lowest = finite_or(dpq_key_value(h.edge[0]), h.base);
        highest = finite_or(dpq_key_value(h.edge[h.edges - 1]), lowest);
        scale = (double)h.last / (highest - lowest);
        h.base = lowest;
        h.scale = !h.logarithmic && scale > 0.0 && isfinite(scale) ? scale : h.scale;
    }
    h.start = fuzz_room((size_t)h.last + 1, sizeof *h.start);
    return h;
}

static uint64_t
top_bits(double number, int shift)
{
    uint64_t bits;

    memcpy(&bits, &number, sizeof bits);
    return bits >> shift;
}

static uint32_t
key_of(const dpq_histogram *h, double x)
{
    double z = x > h->base ? x - h->base : 0.0, position = z * h->scale + 0.5;
    uint64_t key;

    if (!h->logarithmic) {
        return position >= (double)h->last ? h->last : (uint32_t)floor(position);
    }
    key = top_bits(z + h->scale, h->shift) - top_bits(h->scale, h->shift);
    return key < h->last ? (uint32_t)key : h->last;
}

static void
check_prepare(dpq_histogram *h)
{
    size_t keys = (size_t)h->last + 1, most = 0;
    uint32_t *start = fuzz_room(keys + 1, sizeof *start);

    memset(start, 0, (keys + 1) * sizeof *start);
    for (size_t c = 0; c < h->edges; c++) {
        start[key_of(h, dpq_key_value(h->edge[c])) + 1]++;
    }
    for (size_t k = 1; k <= keys; k++) {
        most = start[k] > most ? start[k] : most;
        start[k] += start[k - 1];
    }
    dpq_histogram_prepare(h);
    CHECK(memcmp(h->start, start, keys * sizeof *start) == 0 && h->most == most);
    free(start);
}

/* Any number, or one that the sign makes an edge or next to it. */
static double
draw_value(const dpq_histogram *h, double sign, fuzz_input *in)
{
    double edge;

    if (h->edges == 0 || fuzz_bit(in)) {
        return fuzz_number(in);
    }
    edge = sign * dpq_key_value(h->edge[fuzz_between(in, 0, (int64_t)h->edges - 1)]);
    return fuzz_bit(in) ? edge : nextafter(edge, fuzz_number(in));
}

static size_t
bin_of(const dpq_histogram *h, double v)
{
    double x = v < h->low ? h->low : v;
    size_t c = 0;

    while (c < h->edges && dpq_key_value(h->edge[c]) <= x) {
        c++;
    }
    return c;
}

static void
check_counts(size_t bins, const int64_t *count, const int64_t *before, const uint64_t *added)
{
    for (size_t c = 0; c < bins; c++) {
        CHECK((uint64_t)count[c] == (uint64_t)before[c] + added[c]);
    }
}

/* Tables that tell edges apart also count by key. */
static void
check_by_key(dpq_histogram *h, size_t n, const double *value, double sign, const int64_t *before,
             const uint64_t *added)
{
    const dpq_column column = {value, DPQ_FLOAT64};
    size_t bins = h->edges + 1, keys = (size_t)h->last + 1;
    size_t counters = DPQ_HISTOGRAM_WORK * keys;
    int64_t *count = fuzz_room(bins, sizeof *count), *next = fuzz_room(keys, sizeof *next);
    uint32_t *work = fuzz_room(counters, sizeof *work);

    memcpy(count, before, bins * sizeof *count);
    memset(work, 0, counters * sizeof *work);
    for (size_t k = 0; k < keys; k++) {
        next[k] = h->edge[h->start[k]];
    }
    h->next = next;
    dpq_histogram_count(h, n, &column, sign, NULL, count, work);
    check_counts(bins, count, before, added);
    for (size_t k = 0; k < counters; k++) {
        CHECK(work[k] == 0);
    }
    h->next = NULL;
    free(work);
    free(next);
    free(count);
}

static void
check_count(dpq_histogram *h, fuzz_input *in)
{
    size_t bins = h->edges + 1, n = fuzz_size(in, MOST_VALUES);
    double sign = fuzz_bit(in) ? 1.0 : -1.0;
    double *value = fuzz_room(n, sizeof *value);
    const dpq_column column = {value, DPQ_FLOAT64};
    int64_t *weight = fuzz_room(n, sizeof *weight);
    int64_t *count = fuzz_room(bins, sizeof *count), *before = fuzz_room(bins, sizeof *before);
    uint64_t *values = fuzz_room(bins, sizeof *values), *weights = fuzz_room(bins, sizeof *weights);

    memset(values, 0, bins * sizeof *values);
    memset(weights, 0, bins * sizeof *weights);
    for (size_t c = 0; c < bins; c++) {
        before[c] = fuzz_bit(in) ? 0 : fuzz_between(in, -1000, 1000);
    }
    for (size_t i = 0; i < n; i++) {
        double v = sign * (value[i] = draw_value(h, sign, in));

        weight[i] = fuzz_bit(in) ? fuzz_between(in, 0, 3) : fuzz_between(in, INT64_MIN, INT64_MAX);
        if (!isnan(v)) {
            values[bin_of(h, v)]++;
            weights[bin_of(h, v)] += (uint64_t)weight[i];
        }
    }
    memcpy(count, before, bins * sizeof *count);
    dpq_histogram_count(h, n, &column, sign, NULL, count, NULL);
    check_counts(bins, count, before, values);
    memcpy(count, before, bins * sizeof *count);
    dpq_histogram_count(h, n, &column, sign, weight, count, NULL);
    check_counts(bins, count, before, weights);
    if (h->most <= 1) {
        check_by_key(h, n, value, sign, before, values);
    }
    free(weights);
    free(values);
    free(before);
    free(count);
    free(weight);
    free(value);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size, 1};
    dpq_histogram h;

    check_thresholds(&in);
    h = draw_table(&in);
    check_prepare(&h);
    check_count(&h, &in);
    free(h.start);
    free((void *)(uintptr_t)h.edge);
    return 0;
}
