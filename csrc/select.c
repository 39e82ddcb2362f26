#include "select.h"

#include <math.h>
#include <string.h>

#include "key.h"
#include "ranks.h"
#include "vector.h"

#define FLUSH ((size_t)1 << 16) /* values after which near counters are added up: half in each */
#define STRETCH 64              /* values looked at together for one that is wanted */
#define BLOCK DPQ_COLUMN_BLOCK  /* values whose buckets are computed at once, by vector instructions */
/* A map may crowd 2^-CROWDED of the values it is chosen by on each side, or more of them. */
#define CROWDED 10
#define MORE_CROWDED 6
#define STEP 8                  /* values of a step, for which as many come nearer from memory */

static inline double
clamped(double value, double low, double high)
{
    double above = value < low ? low : value; /* NaN stays */

    return above > high ? high : above;
}

/* Ask for as much memory as a block has. */
static inline void
ask_ahead(size_t n, const char *ahead, size_t width)
{
    for (size_t i = 0; i < n; i += STEP) {
        DPQ_PREFETCH_SECOND(ahead + i * width);
    }
}

/* Buckets never decrease with the value: to clamp the buckets is to clamp the values. */
DPQ_VECTORIZED static void
buckets_linear(const dpq_select_map *map, size_t n, const double *restrict value,
               uint32_t *restrict bucket)
{
    double origin = map->origin, scale = map->scale, last = (double)(map->buckets - 1);
    double first = clamped((map->low - origin) * scale, 0.0, last);
    double most = clamped((map->high - origin) * scale, 0.0, last);
    double missing = (double)map->buckets;

    for (size_t i = 0; i < n; i++) {
        double place = (value[i] - origin) * scale;
        double above = place > first ? place : first;
        double held = above < most ? above : most;

        bucket[i] = (uint32_t)(int32_t)(place == place ? held : missing);
    }
}

DPQ_VECTORIZED static void
buckets_by_key(const dpq_select_map *map, size_t n, const double *restrict value,
               uint32_t *restrict bucket)
{
    int64_t base = map->base, first = dpq_key_of(map->low), top = dpq_key_of(map->high);
    uint32_t missing = (uint32_t)map->buckets;
    int shift = map->shift;
    /* The least key of the last bucket, if there is one: what is above it counts as it. */
    uint64_t reach = (uint64_t)(map->buckets - 1), room = (uint64_t)INT64_MAX - (uint64_t)base;

    if (reach <= room >> shift) {
        int64_t last = (int64_t)((uint64_t)base + (reach << shift));

        top = top < last ? top : last;
    }
    first = first > base ? first : base;
    first = first < top ? first : top;
    for (size_t i = 0; i < n; i++) {
        int64_t key = dpq_key_of(value[i]), above = key > first ? key : first;
        int64_t held = above < top ? above : top;

        bucket[i] = value[i] == value[i]
                        ? (uint32_t)(((uint64_t)held - (uint64_t)base) >> shift)
                        : missing;
    }
}

void
dpq_select_buckets(const dpq_select_map *map, size_t n, const double *value, uint32_t *bucket)
{
    if (map->linear) {
        buckets_linear(map, n, value, bucket);
    }
    else {
        buckets_by_key(map, n, value, bucket);
    }
}

/* How often two of ascending values are in one bucket, each with itself, too. */
static double
crowding(const dpq_select_map *map, size_t n, const double *value)
{
    uint32_t bucket[BLOCK], last = UINT32_MAX;
    double sum = 0.0, run = 0.0;

    for (size_t start = 0; start < n; start += BLOCK) {
        size_t size = n - start < BLOCK ? n - start : BLOCK;

        dpq_select_buckets(map, size, value + start, bucket);
        for (size_t i = 0; i < size; i++) {
            run = bucket[i] == last ? run + 1.0 : 1.0;
            sum += 2.0 * run - 1.0; /* run^2 grows by that */
            last = bucket[i];
        }
    }
    return sum;
}

/* The map of a kind that has the values from lo to hi in its buckets; what is beyond is in those at its
 * ends. Linear ones need lo < hi, and a finite scale. */
static dpq_select_map
map_between(double low, double high, int64_t buckets, int linear, double lo, double hi)
{
    dpq_select_map map = {.low = low, .high = high, .linear = linear, .buckets = buckets};
    uint64_t keys = (uint64_t)dpq_key_of(hi) - (uint64_t)dpq_key_of(lo);

    map.origin = lo;
    map.scale = (double)buckets / (hi - lo);
    map.base = dpq_key_of(lo);
    while (map.shift < 63 && keys >> map.shift >= (uint64_t)buckets) {
        map.shift++;
    }
    return map;
}

dpq_select_map
dpq_select_choose(double low, double high, int64_t buckets, size_t n, const double *value)
{
    dpq_select_map best = {0};
    double least = INFINITY; /* the first one is less */

    for (int range = 0; range < 3; range++) {
        size_t tail = range == 0 ? 0 : n >> (range == 1 ? CROWDED : MORE_CROWDED);
        double lo = range > 0 && n > 0 ? value[tail] : low;
        double hi = range > 0 && n > 0 ? value[n - 1 - tail] : high;

        for (int linear = 0; linear < 2; linear++) {
            dpq_select_map map = map_between(low, high, buckets, linear, lo, hi);
            double found;

            if (linear && !(lo < hi && map.scale > 0.0 && isfinite(map.scale))) {
                continue;
            }
            found = crowding(&map, n, value);
            if (found < least) {
                best = map;
                least = found;
            }
        }
    }
    return best;
}

double
dpq_select_edge(const dpq_select_map *map, int64_t bucket)
{
    double edge;

    if (bucket <= 0) {
        return map->low;
    }
    if (bucket >= map->buckets) {
        return map->high;
    }
    if (map->linear) {
        edge = map->origin + (double)bucket / map->scale;
    }
    else {
        int64_t highest = dpq_key_of(map->high);
        uint64_t room = (uint64_t)highest - (uint64_t)map->base, number = (uint64_t)bucket;

        edge = number > room >> map->shift
                   ? map->high
                   : dpq_key_value((int64_t)((uint64_t)map->base + (number << map->shift)));
    }
    return clamped(edge, map->low, map->high);
}

/* Count the buckets of a block, and find the wanted ones in the same loop if there are flags.
 *
 * Values are counted in two places by turns: to count in the same place at once again would have to
 * wait for the count before. Each place is written, only the wanted ones are kept: which they are
 * can not be foretold.
 */
static inline size_t
look(size_t n, const uint32_t *restrict bucket, const char *ahead, size_t width,
     uint16_t *restrict even, uint16_t *restrict odd, const uint8_t *restrict flag,
     uint16_t *restrict place)
{
    size_t i = 0, here = 0;

    for (; i + STEP <= n; i += STEP) {
        DPQ_PREFETCH_SECOND(ahead + i * width);
        for (size_t j = i; j < i + STEP; j += 2) {
            size_t k = bucket[j], l = bucket[j + 1];

            even[k]++;
            odd[l]++;
            if (flag != NULL) {
                place[here] = (uint16_t)j;
                here += flag[k];
                place[here] = (uint16_t)(j + 1);
                here += flag[l];
            }
        }
    }
    for (; i < n; i++) {
        even[bucket[i]]++;
        if (flag != NULL) {
            place[here] = (uint16_t)i;
            here += flag[bucket[i]];
        }
    }
    return here;
}

/* Add up what was counted, and begin again. */
static void
flush(size_t buckets, uint16_t *even, uint16_t *odd, int64_t *count)
{
    for (size_t b = 0; b <= buckets; b++) {
        count[b] += even[b] + odd[b];
    }
    memset(even, 0, (buckets + 1) * sizeof *even);
    memset(odd, 0, (buckets + 1) * sizeof *odd);
}

/* Values, clamped, at some places of a block: written from out[found] on as far as there is room. */
static size_t
take(const dpq_select_map *map, const double *value, size_t here, const uint16_t *place,
     size_t found, size_t room, double *out)
{
    size_t left = found < room ? room - found : 0, fits = here < left ? here : left;

    for (size_t i = 0; i < fits; i++) {
        out[found + i] = clamped(value[place[i]], map->low, map->high);
    }
    return found + here;
}

int64_t
dpq_select_bucket(const dpq_select_map *map, double value)
{
    uint32_t bucket;

    dpq_select_buckets(map, 1, &value, &bucket);
    return bucket;
}

size_t
dpq_select_count(const dpq_select_map *map, size_t rows, size_t n, size_t apart,
                 const dpq_column *column, int64_t *count, const uint8_t *wanted, size_t room,
                 double *out)
{
    double read[BLOCK];
    uint32_t bucket[BLOCK];
    uint16_t place[BLOCK + DPQ_WANTED_SPARE];
    /* a quarter as large as the counts: they stay in the first cache */
    uint16_t even[DPQ_SELECT_BUCKETS + 1], odd[DPQ_SELECT_BUCKETS + 1];
    dpq_wanted flags;
    size_t width = dpq_column_width(column);
    size_t buckets = (size_t)map->buckets, found = 0, counted = 0, row = 0, start = 0;

    if (wanted != NULL) {
        dpq_wanted_of(&flags, buckets + 1, wanted);
    }
    memset(even, 0, (buckets + 1) * sizeof *even);
    memset(odd, 0, (buckets + 1) * sizeof *odd);
    while (row < rows) {
        size_t end = row * apart + n;
        size_t size = dpq_column_block(column, start, end, BLOCK);
        const double *value = dpq_column_read(column, start, size, read);
        const char *ahead = dpq_column_ahead(column, start, end);

        start += size;
        if (start == end) {
            row++;
            start = row < rows ? row * apart : start;
            ahead = (const char *)column->value + (row < rows ? start : start - size) * width;
        }
        counted += size;
        if (counted > FLUSH) {
            flush(buckets, even, odd, count);
            counted = size;
        }
        dpq_select_buckets(map, size, value, bucket);
        if (wanted == NULL) {
            look(size, bucket, ahead, width, even, odd, NULL, NULL);
        }
        else if (flags.fits) { /* first: values are in the first cache, counters drive them out */
            size_t here = dpq_wanted_find(&flags, size, bucket, place);

            found = take(map, value, here, place, found, room, out);
            look(size, bucket, ahead, width, even, odd, NULL, NULL);
        }
        else {
            size_t here = look(size, bucket, ahead, width, even, odd, flags.flag, place);

            found = take(map, value, here, place, found, room, out);
        }
    }
    flush(buckets, even, odd, count);
    return found;
}

void
dpq_select_sample(const dpq_select_map *map, size_t run, size_t apart, size_t runs,
                  const dpq_column *column, int64_t *count)
{
    double read[BLOCK];
    uint32_t bucket[BLOCK];
    size_t at_once = BLOCK / run, width = dpq_column_width(column);

    for (size_t first = 0; first < runs; first += at_once) {
        size_t some = runs - first < at_once ? runs - first : at_once;

        for (size_t r = first; r < first + some; r++) {
            size_t next = runs - r > at_once ? r + at_once : r;
            double *to = read + (r - first) * run;
            const double *value = dpq_column_read(column, r * apart, run, to);

            for (size_t i = 0; i < run; i += STEP) {
                DPQ_PREFETCH((const char *)column->value + (next * apart + i) * width);
            }
            if (value != to) {
                memcpy(to, value, run * sizeof *to);
            }
        }
        dpq_select_buckets(map, some * run, read, bucket);
        for (size_t i = 0; i < some * run; i++) {
            count[bucket[i]]++;
        }
    }
}

void
dpq_select_refine(const dpq_select_map *map, const int32_t *cell, const int64_t *key_lo,
                  const int64_t *key_hi, const int32_t *shift, const int64_t *pivot, int64_t parts,
                  size_t n, const dpq_column *column, int64_t *count)
{
    double read[BLOCK];
    uint32_t bucket[BLOCK];

    for (size_t start = 0, end; start < n; start = end) {
        size_t size = dpq_column_block(column, start, n, BLOCK);
        const double *value = dpq_column_read(column, start, size, read);

        end = start + size;
        dpq_select_buckets(map, size, value, bucket);
        for (size_t i = 0; i < size; i++) {
            int32_t c = cell[bucket[i]];

            if (c >= 0) {
                int64_t key = dpq_key_of(clamped(value[i], map->low, map->high));
                uint64_t part = shift[c] < 0
                                    ? (uint64_t)((key >= pivot[c]) + (key > pivot[c]))
                                    : ((uint64_t)key - (uint64_t)key_lo[c]) >> shift[c];

                if (key_lo[c] <= key && key < key_hi[c] && part < (uint64_t)parts) {
                    count[c * parts + (int64_t)part]++;
                }
            }
        }
    }
}

/* Whether a key lies in one of the ranges. */
static int
in_ranges(size_t ranges, const int64_t *key_lo, const int64_t *key_hi, int64_t key)
{
    size_t lo = 0, hi = ranges; /* the last range that starts at or below the key */

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (key_lo[mid] <= key) {
            lo = mid + 1;
        }
        else {
            hi = mid;
        }
    }
    return lo > 0 && key < key_hi[lo - 1];
}

size_t
dpq_select_collect(const dpq_select_map *map, const uint8_t *wanted, size_t ranges,
                   const int64_t *key_lo, const int64_t *key_hi, size_t n,
                   const dpq_column *column, size_t room, double *out)
{
    double read[BLOCK];
    uint32_t bucket[BLOCK];
    uint16_t place[BLOCK + DPQ_WANTED_SPARE];
    dpq_wanted flags;
    size_t width = dpq_column_width(column), found = 0;
    int some = 0; /* whether of a wanted bucket not all is */

    dpq_wanted_of(&flags, (size_t)map->buckets + 1, wanted);
    for (int64_t b = 0; b <= map->buckets; b++) {
        some |= wanted[b] > 1;
    }
    for (size_t start = 0, end; start < n; start = end) {
        size_t size = dpq_column_block(column, start, n, BLOCK), here;
        const double *value = dpq_column_read(column, start, size, read);
        const char *ahead = dpq_column_ahead(column, start, n);

        end = start + size;
        dpq_select_buckets(map, size, value, bucket);
        ask_ahead(size, ahead, width);
        here = dpq_wanted_find(&flags, size, bucket, place);
        if (some) {
            size_t kept = 0;

            for (size_t i = 0; i < here; i++) {
                int64_t key = dpq_key_of(clamped(value[place[i]], map->low, map->high));
                int whole = wanted[bucket[place[i]]] == 1;

                place[kept] = place[i];
                kept += (size_t)(whole || in_ranges(ranges, key_lo, key_hi, key));
            }
            here = kept;
        }
        found = take(map, value, here, place, found, room, out);
    }
    return found;
}

/* Whether any of the values lies in [lo, hi]. */
DPQ_VECTORIZED static int
any_inside(size_t n, const double *value, double lo, double hi)
{
    int64_t any = 0;

    for (size_t i = 0; i < n; i++) {
        any |= (value[i] >= lo) & (value[i] <= hi);
    }
    return any != 0;
}

size_t
dpq_select_between(double low, double high, size_t ranges, const double *lo, const double *hi,
                   size_t n, const dpq_column *column, size_t room, double *out)
{
    double read[STRETCH];
    size_t width = dpq_column_width(column), found = 0;

    for (size_t start = 0, end; start < n; start = end) {
        size_t size = dpq_column_block(column, start, n, STRETCH);
        const double *value = dpq_column_read(column, start, size, read);
        const char *ahead = dpq_column_ahead(column, start, n);

        end = start + size;
        ask_ahead(size, ahead, width);
        for (size_t r = 0; r < ranges; r++) {
            if (!any_inside(size, value, lo[r], hi[r])) {
                continue;
            }
            for (size_t i = 0; i < size; i++) {
                if (found < room) { /* kept if counted: which it is cannot be foretold */
                    out[found] = clamped(value[i], low, high);
                }
                found += (size_t)((value[i] >= lo[r]) & (value[i] <= hi[r]));
            }
        }
    }
    return found;
}

/* Part of each value of one range; -1 outside of it, -2 for NaN. */
DPQ_VECTORIZED static void
parts_of(double low, double high, double lo, double hi, double scale, int64_t parts, size_t n,
         const double *value, int32_t *part)
{
    double last = (double)(parts - 1), half = lo * 0.5;

    for (size_t i = 0; i < n; i++) {
        double v = clamped(value[i], low, high);
        double place = clamped((v * 0.5 - half) * scale, 0.0, last);
        int32_t inside = (v >= lo) & (v <= hi);
        int32_t p = (int32_t)(inside ? place : 0.0);

        part[i] = v == v ? (inside ? p : -1) : -2;
    }
}

/* The same for one value of several ranges: its cell. */
static int64_t
cell_of(size_t ranges, const double *lo, const double *hi, const double *scale, int64_t parts,
        double v)
{
    size_t r;
    double place;

    if (v != v) {
        return -2;
    }
    r = dpq_ranks_first_number(hi, 0, ranges, v); /* ends at v or later */
    if (r == ranges || v < lo[r]) {
        return -1;
    }
    place = clamped((v * 0.5 - lo[r] * 0.5) * scale[r], 0.0, (double)(parts - 1));
    return (int64_t)r * parts + (int64_t)place;
}

void
dpq_select_cells(double low, double high, size_t ranges, const double *lo, const double *hi,
                 const double *scale, int64_t parts, size_t n,
                 const dpq_column *column, int64_t *count, double *least, double *most)
{
    int64_t missing = (int64_t)ranges * parts;
    double read[BLOCK];
    int32_t part[BLOCK];

    for (size_t start = 0, end; start < n; start = end) {
        size_t size = dpq_column_block(column, start, n, BLOCK);
        const double *value = dpq_column_read(column, start, size, read);

        end = start + size;
        if (ranges == 1) {
            parts_of(low, high, lo[0], hi[0], scale[0], parts, size, value, part);
        }
        for (size_t i = 0; i < size; i++) {
            double v = clamped(value[i], low, high) + 0.0; /* -0 becomes 0 */
            int64_t cell = ranges == 1 ? part[i] : cell_of(ranges, lo, hi, scale, parts, v);

            if (cell >= 0) {
                count[cell]++;
                least[cell] = v < least[cell] ? v : least[cell];
                most[cell] = v > most[cell] ? v : most[cell];
            }
            count[missing] += cell == -2;
        }
    }
}
