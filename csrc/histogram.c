#include "histogram.h"

#include <math.h>
#include <string.h>

#include "vector.h"

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
        while (c < h->edges && key_of(h, h->edge[c], h->logarithmic) == k) {
            c++;
        }
        h->most = c - begin > h->most ? c - begin : h->most;
    }
}

/* One body for all kinds of bins; the last three arguments are constants where it is inlined. */
static inline void
count_values(const dpq_histogram *h, size_t n, const double *value, const int64_t *weight,
             int64_t *count, int logarithmic, int search, int weighted)
{
    const dpq_histogram local = *h; /* which no store to the counts can change */
    size_t stride = 1;

    while (stride <= local.most / 2) {
        stride *= 2;
    }
    for (size_t i = 0; i < n; i++) {
        double x = value[i] > local.low ? value[i] : local.low;
        /* x >= edge[c] ends at the last edge: beyond stands a NaN */
        size_t c = local.start[key_of(&local, x, logarithmic)];
        int64_t one = value[i] == value[i]; /* 0 for NaN */

        c += x >= local.edge[c];
        if (search && x >= local.edge[c]) { /* rare, unless edges crowd: then at most 2 stride - 1 */
            for (size_t step = stride; step > 0; step /= 2) {
                size_t at = c + step - 1 < local.edges ? c + step - 1 : local.edges;

                c += step * (size_t)(x >= local.edge[at]);
            }
        }
        if (weighted) {
            uint64_t w = one ? (uint64_t)weight[i] : 0;

            count[c] = (int64_t)((uint64_t)count[c] + w);
        }
        else {
            count[c] += one;
        }
    }
}

void
dpq_histogram_count(const dpq_histogram *h, size_t n, const double *value, const int64_t *weight,
                    int64_t *count)
{
    int search = h->most > 1;

    if (weight != NULL) {
        count_values(h, n, value, weight, count, h->logarithmic, search, 1);
    }
    else if (h->logarithmic && search) {
        count_values(h, n, value, NULL, count, 1, 1, 0);
    }
    else if (h->logarithmic) {
        count_values(h, n, value, NULL, count, 1, 0, 0);
    }
    else if (search) {
        count_values(h, n, value, NULL, count, 0, 1, 0);
    }
    else {
        count_values(h, n, value, NULL, count, 0, 0, 0);
    }
}

DPQ_VECTORIZED /* for the sake of a fast fma */
size_t
dpq_histogram_thresholds(double base, double lower, double upper, size_t skip, size_t size,
                         double *threshold)
{
    double high = 1.0, low = 0.0; /* the power is high + low, |low| at most half an ulp of high */

    for (size_t i = 0; i < size; i++) {
        double t = (high - 1.0) + lower;
        double product = high * base;
        double rest = fma(high, base, -product) + low * base; /* NaN once product is infinite */

        if (!(t < INFINITY)) {
            return i;
        }
        if (i >= skip) {
            threshold[i - skip] = t;
        }
        if (t >= upper) {
            return i + 1;
        }
        high = product + rest;
        low = rest - (high - product);
    }
    return size;
}
