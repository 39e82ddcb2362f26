#include "histogram.h"

#include <math.h>
#include <string.h>

#include "key.h"
#include "vector.h"

#define BLOCK DPQ_COLUMN_BLOCK
/* Values counted in 32 bits each time. */
#define PART ((size_t)1 << 31)
/* Powers whose numbers are multiples of this follow from each other. */
#define LEAP 64

static inline uint32_t
key_of(const dpq_histogram *h, double x, int logarithmic)
{
    double z = x - h->base, y;
    uint64_t bits;

    z = z > 0.0 ? z : 0.0;
    y = logarithmic ? z + h->scale : z * h->scale + 0.5;
    y = y < h->cap ? y : h->cap;
    if (!logarithmic) {
        return (uint32_t)(int32_t)y;
    }
    memcpy(&bits, &y, sizeof bits);
    return (uint32_t)((bits >> h->shift) - h->first);
}

void
dpq_histogram_prepare(dpq_histogram *h)
{
    size_t c = 0;

    if (h->logarithmic) {
        double infinite = INFINITY;
        uint64_t bits, most;

        memcpy(&bits, &h->scale, sizeof bits);
        memcpy(&most, &infinite, sizeof most);
        h->first = bits >> h->shift;
        bits = (h->first + h->last) << h->shift;
        bits = h->first + h->last <= most >> h->shift ? bits : most;
        memcpy(&h->cap, &bits, sizeof bits);
    }
    else {
        h->first = 0;
        h->cap = (double)h->last;
    }
    h->most = 0;
    for (uint32_t k = 0; k <= h->last; k++) {
        size_t begin = c;

        h->start[k] = (uint32_t)c;
        while (c < h->edges && key_of(h, dpq_key_value(h->edge[c]), h->logarithmic) == k) {
            c++;
        }
        h->most = c - begin > h->most ? c - begin : h->most;
    }
}

/* Some values in the order of integers, with their keys; NaN counts as `low`. */
typedef struct {
    int64_t x[BLOCK];
    uint32_t key[BLOCK];
    uint32_t least, largest; /* key so far */
    uint64_t missing;        /* number of NaN so far */
} block;

static inline void
key_values(const dpq_histogram *h, size_t n, const double *value, double sign, block *b,
           int logarithmic)
{
    const dpq_histogram local = *h; /* which no store can change */
    uint32_t least = b->least, largest = b->largest;
    uint64_t missing = 0;

    for (size_t i = 0; i < n; i++) {
        double v = sign * value[i], x = v > local.low ? v : local.low;
        uint32_t key = key_of(&local, x, logarithmic);

        missing += v != v;
        b->x[i] = dpq_key_of(x);
        b->key[i] = key;
        least = key < least ? key : least;
        largest = key > largest ? key : largest;
    }
    b->least = least;
    b->largest = largest;
    b->missing += missing;
}

DPQ_VECTORIZED
static void
fill(const dpq_histogram *h, size_t n, const double *value, double sign, block *b)
{
    if (h->logarithmic) {
        key_values(h, n, value, sign, b, 1);
    }
    else {
        key_values(h, n, value, sign, b, 0);
    }
}

/* The bin of x; `stride` is a power of two, more than half of h->most. */
static inline size_t
bin_of(const dpq_histogram *h, int64_t x, uint32_t key, size_t stride)
{
    /* x >= edge[c] ends at the last edge: beyond stands more than any number */
    size_t c = h->start[key];

    c += x >= h->edge[c];
    if (h->most > 1 && x >= h->edge[c]) { /* rare, unless edges crowd: then at most 2 stride - 1 */
        for (size_t step = stride; step > 0; step /= 2) {
            size_t at = c + step - 1 < h->edges ? c + step - 1 : h->edges;

            c += step * (size_t)(x >= h->edge[at]);
        }
    }
    return c;
}

static void
count_bins(const dpq_histogram *h, size_t n, const block *b, size_t stride, int64_t *count)
{
    const dpq_histogram local = *h;

    for (size_t i = 0; i < n; i++) {
        count[bin_of(&local, b->x[i], b->key[i], stride)]++;
    }
}

static void
count_weights(const dpq_histogram *h, size_t n, const double *value, const block *b, size_t stride,
              const int64_t *weight, int64_t *count)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t w = value[i] == value[i] ? (uint64_t)weight[i] : 0;
        size_t c = bin_of(h, b->x[i], b->key[i], stride);

        count[c] = (int64_t)((uint64_t)count[c] + w);
    }
}

/* For each key, its only edge tells two bins apart. Each is counted in two places by turns: to count
 * in the same place at once again would have to wait for the count before. Meanwhile BLOCK values
 * of `width` bytes from `ahead` on come nearer.
 */
static void
count_keys(const int64_t *next, size_t n, const block *b, const char *ahead, size_t width,
           uint32_t *work)
{
    size_t i = 0;

    for (; i + 8 <= n; i += 8) {
        DPQ_PREFETCH_SECOND(ahead + i * width);
        for (size_t j = i; j < i + 8; j += 2) {
            size_t k = b->key[j], l = b->key[j + 1];

            work[4 * k + 2 * (size_t)(b->x[j] >= next[k])]++;
            work[4 * l + 2 * (size_t)(b->x[j + 1] >= next[l]) + 1]++;
        }
    }
    for (; i < n; i++) {
        size_t k = b->key[i];

        work[4 * k + 2 * (size_t)(b->x[i] >= next[k])]++;
    }
}

/* Move what was counted by key to the bins. */
static void
move_counts(const dpq_histogram *h, const block *b, uint32_t *work, int64_t *count)
{
    for (size_t k = b->least; k <= b->largest; k++) {
        uint32_t *w = work + DPQ_HISTOGRAM_WORK * k;
        int64_t *c = count + h->start[k];

        c[0] += (int64_t)w[0] + w[1];
        if ((w[2] | w[3]) != 0) {
            c[1] += (int64_t)w[2] + w[3];
        }
        memset(w, 0, DPQ_HISTOGRAM_WORK * sizeof *w);
    }
}

void
dpq_histogram_count(const dpq_histogram *h, size_t n, const dpq_column *column, double sign,
                    const int64_t *weight, int64_t *count, uint32_t *work)
{
    block b;
    double read[BLOCK];
    size_t width = dpq_column_width(column);
    size_t stride = 1;

    while (stride <= h->most / 2) {
        stride *= 2;
    }
    b.missing = 0;
    for (size_t from = 0; from < n; from += PART) {
        size_t to = n - from < PART ? n : from + PART;

        b.least = h->last;
        b.largest = 0;
        for (size_t at = from, end; at < to; at = end) {
            size_t size = dpq_column_block(column, at, to, BLOCK);
            const double *value = dpq_column_read(column, at, size, read);

            end = at + size;
            fill(h, size, value, sign, &b);
            if (work != NULL) {
                count_keys(h->next, size, &b, dpq_column_ahead(column, at, to), width, work);
            }
            else if (weight != NULL) {
                count_weights(h, size, value, &b, stride, weight + at, count);
            }
            else {
                count_bins(h, size, &b, stride, count);
            }
        }
        if (work != NULL) {
            move_counts(h, &b, work, count);
        }
    }
    if (weight == NULL && b.missing > 0) {
        uint32_t key = key_of(h, h->low, h->logarithmic);

        count[bin_of(h, dpq_key_of(h->low), key, stride)] -= (int64_t)b.missing;
    }
}

/* high + low, |low| at most half an ulp of high. */
typedef struct {
    double high, low;
} pair;

/* Right to 2^-103 relative; to 2^-104 where b.low is 0. NaN or infinite once it is out of range. */
static inline pair
product_of(pair a, pair b)
{
    double product = a.high * b.high;
    double rest = fma(a.high, b.high, -product) + (a.high * b.low + a.low * b.high);
    pair found;

    found.high = product + rest;
    found.low = rest - (found.high - product);
    return found;
}

DPQ_VECTORIZED /* for the sake of a fast fma */
size_t
dpq_histogram_thresholds(double base, double lower, double upper, size_t skip, size_t step,
                         size_t size, double *threshold)
{
    /* Powers are kept as quarters: a product that is rounded up to 2^1024 before the rest takes it
     * below stays in range.
     */
    const pair quarter = {0.25, 0.0}, ratio = {base, 0.0};
    pair first = quarter, leap = quarter; /* base^start / 4 and base^LEAP */

    for (int i = 0; i < LEAP; i++) {
        leap = product_of(leap, ratio);
    }
    leap.high *= 4.0;
    leap.low *= 4.0;
    for (size_t start = 0; start < size; start += LEAP) {
        const pair next = product_of(first, leap);
        /* before the next leap, that is */
        const int ends = !((4.0 * next.high - 1.0) + lower < upper);
        pair power = first;

        for (size_t i = start; i < size && i < start + LEAP && (ends || skip < start + LEAP); i++) {
            double t = (4.0 * power.high - 1.0) + lower;

            if (!(t < INFINITY)) {
                return i;
            }
            if (i == skip) {
                *threshold++ = t;
                skip += step;
            }
            if (t >= upper) {
                return i + 1;
            }
            power = product_of(power, ratio);
        }
        first = next;
    }
    return size;
}
