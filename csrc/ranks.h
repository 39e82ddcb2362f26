/* Bisection in ascending ranks, and in ascending numbers. */
#ifndef DPQ_RANKS_H
#define DPQ_RANKS_H

#include <stddef.h>
#include <stdint.h>

/* First t in [lo, hi) with rank[t] >= r; hi if there is none. */
static inline size_t
dpq_ranks_first(const int64_t *rank, size_t lo, size_t hi, int64_t r)
{
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (rank[mid] < r) {
            lo = mid + 1;
        }
        else {
            hi = mid;
        }
    }
    return lo;
}

/* The same in numbers, none of which is NaN. */
static inline size_t
dpq_ranks_first_number(const double *number, size_t lo, size_t hi, double x)
{
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (number[mid] < x) {
            lo = mid + 1;
        }
        else {
            hi = mid;
        }
    }
    return lo;
}

#endif
