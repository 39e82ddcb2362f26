/* The largest and the smallest of numbers, none of which is negative: they compare as their bits do, which
 * vectors can do in any order.
 */
#ifndef DPQ_EXTREMES_H
#define DPQ_EXTREMES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "vector.h"
#include "wide.h"

/* 0 of no numbers */
DPQ_VECTORIZED static inline double
dpq_largest(size_t n, const double *x)
{
    int64_t most = 0;
    double largest;

    for (size_t i = 0; i < n; i++) {
        int64_t bits = (int64_t)dpq_wide_bits(x[i]);

        most = bits > most ? bits : most;
    }
    memcpy(&largest, &most, sizeof largest);
    return largest;
}

/* infinity of no numbers */
DPQ_VECTORIZED static inline double
dpq_smallest(size_t n, const double *x)
{
    int64_t least = INT64_C(0x7FF0000000000000);
    double smallest;

    for (size_t i = 0; i < n; i++) {
        int64_t bits = (int64_t)dpq_wide_bits(x[i]);

        least = bits < least ? bits : least;
    }
    memcpy(&smallest, &least, sizeof smallest);
    return smallest;
}

#endif
