#include "arrange.h"

#include <math.h>
#include <string.h>

#include "key.h"
#include "ranks.h"
#include "vector.h"

#define BLOCK DPQ_COLUMN_BLOCK
#define FULL 8      /* about so many values in a bin, unless there would be too many bins */
#define SAMPLED 512 /* numbers by which a map is chosen, and its buckets, at most */
#define FEW 24      /* values put in order by counting how many are below each */
#define PARTS 256   /* others are moved to so many parts of their keys first */

size_t
dpq_arrange_refine(dpq_arrange_bins *bins, size_t slots, size_t n)
{
    dpq_select_map *map = &bins->map;

    while (2 * slots <= DPQ_ARRANGE_BINS && FULL * slots < n &&
           (map->linear ? isfinite(2.0 * map->scale) : map->shift > 0)) {
        bins->bits++;
        map->buckets *= 2;
        map->scale *= 2.0; /* one of both counts */
        map->shift--;
        slots *= 2;
    }
    return slots;
}

/* The bins of a block. */
static void
find(const dpq_arrange_bins *bins, size_t n, const double *value, uint32_t *bin)
{
    uint32_t inside = ((uint32_t)1 << bins->bits) - 1;

    dpq_select_buckets(&bins->map, n, value, bin);
    for (size_t i = 0; i < n; i++) {
        bin[i] = bins->slot[bin[i] >> bins->bits] << bins->bits | (bin[i] & inside);
    }
}

void
dpq_arrange_count(const dpq_arrange_bins *bins, size_t n, const double *value, size_t *count)
{
    uint32_t bin[BLOCK];

    for (size_t start = 0; start < n; start += BLOCK) {
        size_t size = n - start < BLOCK ? n - start : BLOCK;

        find(bins, size, value + start, bin);
        for (size_t i = 0; i < size; i++) {
            count[bin[i]]++;
        }
    }
}

void
dpq_arrange_move(const dpq_arrange_bins *bins, size_t n, const double *value, size_t *cursor,
                 const uint32_t *to, double *out)
{
    uint32_t bin[BLOCK];

    for (size_t start = 0; start < n; start += BLOCK) {
        size_t size = n - start < BLOCK ? n - start : BLOCK;

        find(bins, size, value + start, bin);
        for (size_t i = 0; i < size; i++) {
            uint32_t where = to[bin[i]];

            if (where != DPQ_ARRANGE_NOWHERE) {
                out[cursor[where]++] = value[start + i];
            }
        }
    }
}

/* The first window from w on that ends behind a place. */
static size_t
next(const dpq_arrange_windows *asked, size_t w, size_t place)
{
    while (w < asked->windows && (size_t)asked->stop[w] <= place) {
        w++;
    }
    return w;
}

/* Whether a window, the first one that ends behind their start, meets some places. */
static int
meets(const dpq_arrange_windows *asked, size_t w, size_t stop)
{
    return w < asked->windows && (size_t)asked->start[w] < stop;
}

void
dpq_arrange_share(size_t bins, const uint32_t *to, const size_t *count, size_t *cursor,
                  size_t *own)
{
    memcpy(own, cursor, bins * sizeof *own);
    for (size_t b = 0; b < bins; b++) {
        if (to[b] != DPQ_ARRANGE_NOWHERE) {
            cursor[to[b]] += count[b];
        }
    }
}

size_t
dpq_arrange_plan(size_t bins, const dpq_arrange_windows *asked, int all, size_t *cursor,
                 uint32_t *to)
{
    size_t place = 0, w = 0, loose = bins; /* loose: the first of those that go together */
    size_t most = 0;

    for (size_t b = 0; b < bins; b++) {
        size_t start = place, before = w;

        place += cursor[b];
        cursor[b] = start;
        w = next(asked, w, start);
        loose = w > before ? bins : loose; /* one that has no place would be inside of them */
        if (meets(asked, w, place)) {
            to[b] = (uint32_t)b;
            loose = bins;
            most = place - start > most ? place - start : most;
        }
        else if (all) {
            loose = loose < bins ? loose : b;
            to[b] = (uint32_t)loose;
        }
        else {
            to[b] = DPQ_ARRANGE_NOWHERE;
            cursor[b] = place;
        }
    }
    return most;
}

/* Each goes to the place that follows from how many are less: no branch, where none could be foretold. */
static void
order_few(size_t n, double *value)
{
    double moved[FEW];
    size_t place[FEW];

    for (size_t i = 0; i < n; i++) {
        size_t below = 0;

        moved[i] = value[i];
        for (size_t j = 0; j < i; j++) {
            size_t more = moved[j] > moved[i];

            place[j] += more;
            below += 1 - more;
        }
        place[i] = below;
    }
    for (size_t i = 0; i < n; i++) {
        value[place[i]] = moved[i];
    }
}

static void
order(const dpq_arrange_windows *asked, size_t w, size_t start, size_t n, double *value,
      double *spare);

/* The part of a value, of those that begin with the key `least`. */
static inline size_t
part_of(double value, int64_t least, int shift)
{
    return ((uint64_t)dpq_key_of(value) - (uint64_t)least) >> shift;
}

/* Put in order what windows, from w on, meet of many values at places start, ..., start + n - 1. */
static void
order_parts(const dpq_arrange_windows *asked, size_t w, size_t start, size_t n, double *value,
            double *spare)
{
    size_t count[PARTS + 1] = {0}, done = 0;
    int64_t least = INT64_MAX, most = INT64_MIN;
    int shift = 0;

    for (size_t i = 0; i < n; i++) {
        int64_t key = dpq_key_of(value[i]);

        least = key < least ? key : least;
        most = key > most ? key : most;
    }
    if (least == most) {
        return;
    }
    while (((uint64_t)most - (uint64_t)least) >> shift >= PARTS) {
        shift++;
    }
    for (size_t i = 0; i < n; i++) {
        count[part_of(value[i], least, shift) + 1]++;
    }
    for (size_t p = 1; p < PARTS; p++) {
        count[p + 1] += count[p];
    }
    for (size_t i = 0; i < n; i++) {
        spare[count[part_of(value[i], least, shift)]++] = value[i];
    }
    memcpy(value, spare, n * sizeof *value);
    for (size_t p = 0; shift > 0 && p < PARTS; p++) { /* each count is where its part ends, now */
        size_t size = count[p] - done;

        w = next(asked, w, start + done);
        if (meets(asked, w, start + count[p])) {
            order(asked, w, start + done, size, value + done, spare);
        }
        done = count[p];
    }
}

static void
order(const dpq_arrange_windows *asked, size_t w, size_t start, size_t n, double *value,
      double *spare)
{
    if (n <= FEW) {
        order_few(n, value);
    }
    else {
        order_parts(asked, w, start, n, value, spare);
    }
}

void
dpq_arrange_finish(size_t first, size_t last, const dpq_arrange_windows *asked,
                   const size_t *cursor, const uint32_t *to, double *out, double *spare)
{
    size_t place = 0, w = 0;

    for (size_t b = 0; b < last; b++) {
        size_t end = to[b] == b || to[b] == DPQ_ARRANGE_NOWHERE ? cursor[b] : place;

        w = next(asked, w, place);
        if (b >= first && meets(asked, w, end)) {
            order(asked, w, place, end - place, out + place, spare);
        }
        place = end;
    }
}

/* How many are below a value in a window; -1 for one between windows, which is above the first *lo of all,
 * and not above those from *hi on. */
static int64_t
below_inside(const dpq_arrange_windows *asked, size_t n, const double *arranged, double value,
             size_t *lo, size_t *hi)
{
    size_t w = 0, end = asked->windows; /* the first window with a value that is not below */

    while (w < end) {
        size_t middle = w + (end - w) / 2;

        if (arranged[asked->stop[middle] - 1] < value) {
            w = middle + 1;
        }
        else {
            end = middle;
        }
    }
    *lo = w > 0 ? (size_t)asked->stop[w - 1] : 0;
    *hi = w < asked->windows ? (size_t)asked->start[w] : n;
    if (*hi < n && arranged[*hi] < value) {
        return (int64_t)dpq_ranks_first_number(arranged, *hi, (size_t)asked->stop[w], value);
    }
    return -1;
}

DPQ_VECTORIZED static int64_t
count_below(size_t n, const double *number, double value)
{
    int64_t below = 0;

    for (size_t i = 0; i < n; i++) {
        below += number[i] < value;
    }
    return below;
}

void
dpq_arrange_below(const dpq_arrange_windows *asked, size_t n, const double *arranged, size_t values,
                  const double *value, int64_t *below)
{
    size_t lo, hi;

    for (size_t i = 0; i < values; i++) {
        below[i] = below_inside(asked, n, arranged, value[i], &lo, &hi);
        if (below[i] < 0) {
            below[i] = (int64_t)lo + count_below(hi - lo, arranged + lo, value[i]);
        }
    }
}

void
dpq_arrange_below_inside(const dpq_arrange_windows *asked, size_t n, const double *arranged,
                         size_t values, const double *value, int64_t *below)
{
    size_t lo, hi;

    for (size_t i = 0; i < values; i++) {
        below[i] = below_inside(asked, n, arranged, value[i], &lo, &hi);
    }
}

void
dpq_arrange_add_below(size_t n, const double *number, size_t values, const double *value,
                      int64_t *below)
{
    for (size_t start = 0; start < n; start += BLOCK) { /* by blocks that stay in the first cache */
        size_t size = n - start < BLOCK ? n - start : BLOCK;

        for (size_t i = 0; i < values; i++) {
            below[i] += count_below(size, number + start, value[i]);
        }
    }
}

/* A map of at most n buckets that spreads n numbers, by some of them. */
static dpq_select_map
map_of(double low, double high, size_t n, const double *number)
{
    const int64_t start = 0, stop = SAMPLED;
    const dpq_arrange_windows all = {1, &start, &stop};
    double some[SAMPLED], spare[SAMPLED];
    size_t apart = n / SAMPLED > 0 ? n / SAMPLED : 1, size = 0;
    int64_t buckets = 1;

    while (buckets < SAMPLED && 2 * buckets <= (int64_t)n) {
        buckets *= 2;
    }
    for (size_t i = 0; i < n && i / apart < SAMPLED; i += apart) {
        double x = number[i] > low ? number[i] : low; /* NaN is in no bucket of the map */

        some[size] = x < high ? x : high;
        size += number[i] == number[i];
    }
    order(&all, 0, 0, size, some, spare);
    return dpq_select_choose(low, high, buckets, size, some);
}

void
dpq_arrange_numbers(double low, double high, size_t n, const double *number,
                    const dpq_arrange_windows *asked, size_t *cursor, uint32_t *to, double *spare,
                    double *out)
{
    uint32_t slot[SAMPLED + 1];
    dpq_arrange_bins bins = {.slot = slot};
    size_t all;

    if (n == 0) {
        return;
    }
    bins.map = map_of(low, high, n, number);
    for (uint32_t b = 0; b <= SAMPLED; b++) {
        slot[b] = b;
    }
    all = dpq_arrange_refine(&bins, (size_t)bins.map.buckets + 1, n);
    memset(cursor, 0, all * sizeof *cursor);
    dpq_arrange_count(&bins, n, number, cursor);
    (void)dpq_arrange_plan(all, asked, 1, cursor, to);
    dpq_arrange_move(&bins, n, number, cursor, to, out);
    dpq_arrange_finish(0, all, asked, cursor, to, out, spare);
}
