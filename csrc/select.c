#include "select.h"

#include <string.h>

#include "key.h"
#include "vector.h"

#define NEAR 4104  /* up to this many counters are kept near */
#define FLUSH ((size_t)1 << 30) /* values after which they are added up, long before 2^32 */
#define STRETCH 64 /* values looked at together for one that is wanted */
#define BLOCK 1024 /* values whose buckets are computed at once, by vector instructions */

static inline double
clamped(double value, double low, double high)
{
    double above = value < low ? low : value; /* NaN stays */

    return above > high ? high : above;
}

DPQ_VECTORIZED static void
buckets_linear(const dpq_select_map *map, size_t n, const double *value, int32_t *bucket)
{
    double low = map->low, high = map->high, origin = map->origin, scale = map->scale;
    double last = (double)(map->buckets - 1);
    int32_t missing = (int32_t)map->buckets;

    for (size_t i = 0; i < n; i++) {
        double v = clamped(value[i], low, high);
        double place = clamped((v - origin) * scale, 0.0, last);
        int32_t b = (int32_t)(place == place ? place : 0.0);

        bucket[i] = v == v ? b : missing;
    }
}

DPQ_VECTORIZED static void
buckets_by_key(const dpq_select_map *map, size_t n, const double *value, int32_t *bucket)
{
    double low = map->low, high = map->high;
    int64_t base = map->base;
    int32_t missing = (int32_t)map->buckets;
    int shift = map->shift;
    /* The least key of the last bucket, if there is one: what is above it counts as it. */
    uint64_t reach = (uint64_t)(map->buckets - 1), room = (uint64_t)INT64_MAX - (uint64_t)base;
    int64_t top = reach > room >> shift ? INT64_MAX
                                        : (int64_t)((uint64_t)base + (reach << shift));

    for (size_t i = 0; i < n; i++) {
        double v = clamped(value[i], low, high);
        int64_t key = dpq_key_of(v), held = key < top ? key : top;
        uint64_t above = held > base ? (uint64_t)held - (uint64_t)base : 0;

        bucket[i] = v == v ? (int32_t)(above >> shift) : missing;
    }
}

static void
buckets_of(const dpq_select_map *map, size_t n, const double *value, int32_t *bucket)
{
    if (map->linear) {
        buckets_linear(map, n, value, bucket);
    }
    else {
        buckets_by_key(map, n, value, bucket);
    }
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

static void
flush(int64_t buckets, const uint32_t *near, int64_t *count)
{
    for (int64_t b = 0; b < buckets; b++) {
        count[b] += near[b];
    }
}

int64_t
dpq_select_bucket(const dpq_select_map *map, double value)
{
    int32_t bucket;

    buckets_of(map, 1, &value, &bucket);
    return bucket;
}

void
dpq_select_count(const dpq_select_map *map, size_t n, const double *value, int64_t *count)
{
    int32_t bucket[BLOCK];
    uint32_t near[NEAR]; /* half as large as the counts: it stays in the first cache */
    int small = map->buckets < NEAR;

    for (size_t start = 0; start < n; start += BLOCK) {
        size_t size = n - start < BLOCK ? n - start : BLOCK;

        if (small && start % FLUSH == 0) {
            flush(start ? map->buckets + 1 : 0, near, count);
            memset(near, 0, sizeof near);
        }
        buckets_of(map, size, value + start, bucket);
        if (small) {
            for (size_t i = 0; i < size; i++) {
                near[bucket[i]]++;
            }
        }
        else {
            for (size_t i = 0; i < size; i++) {
                count[bucket[i]]++;
            }
        }
    }
    if (small && n > 0) {
        flush(map->buckets + 1, near, count);
    }
}

void
dpq_select_refine(const dpq_select_map *map, const int32_t *cell, const int64_t *key_lo,
                  const int64_t *key_hi, const int32_t *shift, int64_t parts, size_t n,
                  const double *value, int64_t *count)
{
    int32_t bucket[BLOCK];

    for (size_t start = 0; start < n; start += BLOCK) {
        size_t size = n - start < BLOCK ? n - start : BLOCK;

        buckets_of(map, size, value + start, bucket);
        for (size_t i = 0; i < size; i++) {
            int32_t c = cell[bucket[i]];

            if (c >= 0) {
                int64_t key = dpq_key_of(clamped(value[start + i], map->low, map->high));
                uint64_t part = ((uint64_t)key - (uint64_t)key_lo[c]) >> shift[c];

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
                   const int64_t *key_lo, const int64_t *key_hi, size_t n, const double *value,
                   size_t room, double *out)
{
    int32_t bucket[BLOCK];
    double spare[BLOCK];
    size_t found = 0;

    for (size_t start = 0; start < n; start += BLOCK) {
        size_t size = n - start < BLOCK ? n - start : BLOCK, here = 0;
        /* every value is written, only the wanted ones are kept; near the end, to spare memory */
        int roomy = found <= room && room - found >= BLOCK;
        double *to = roomy ? out + found : spare;

        buckets_of(map, size, value + start, bucket);
        for (size_t i = 0; i < size; i++) {
            uint8_t want = wanted[bucket[i]];

            to[here] = clamped(value[start + i], map->low, map->high);
            if (want > 1) {
                want = (uint8_t)in_ranges(ranges, key_lo, key_hi, dpq_key_of(to[here]));
            }
            here += want;
        }
        if (!roomy && found < room) {
            size_t fits = here < room - found ? here : room - found;

            memcpy(out + found, spare, fits * sizeof *out);
        }
        found += here;
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
                   size_t n, const double *value, size_t room, double *out)
{
    size_t found = 0;

    for (size_t start = 0; start < n; start += STRETCH) {
        size_t size = n - start < STRETCH ? n - start : STRETCH;

        for (size_t r = 0; r < ranges; r++) {
            if (!any_inside(size, value + start, lo[r], hi[r])) {
                continue;
            }
            for (size_t i = start; i < start + size; i++) {
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
    size_t r = 0, above = ranges; /* the first range that ends at v or later */
    double place;

    if (v != v) {
        return -2;
    }
    while (r < above) {
        size_t middle = r + (above - r) / 2;

        if (hi[middle] < v) {
            r = middle + 1;
        }
        else {
            above = middle;
        }
    }
    if (r == ranges || v < lo[r]) {
        return -1;
    }
    place = clamped((v * 0.5 - lo[r] * 0.5) * scale[r], 0.0, (double)(parts - 1));
    return (int64_t)r * parts + (int64_t)place;
}

void
dpq_select_cells(double low, double high, size_t ranges, const double *lo, const double *hi,
                 const double *scale, int64_t parts, size_t n, const double *value,
                 int64_t *count, double *least, double *most)
{
    int64_t missing = (int64_t)ranges * parts;
    int32_t part[BLOCK];

    for (size_t start = 0; start < n; start += BLOCK) {
        size_t size = n - start < BLOCK ? n - start : BLOCK;

        if (ranges == 1) {
            parts_of(low, high, lo[0], hi[0], scale[0], parts, size, value + start, part);
        }
        for (size_t i = 0; i < size; i++) {
            double v = clamped(value[start + i], low, high) + 0.0; /* -0 becomes 0 */
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
