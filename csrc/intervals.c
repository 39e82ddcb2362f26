#include "intervals.h"

#include <math.h>

#include "ranks.h"
#include "vector.h"

#define POINT int64_t
#define NAME(f) f##_lattice
#include "intervals_body.h"
#undef POINT
#undef NAME

#define POINT double
#define NAME(f) f##_continuous
#include "intervals_body.h"
#undef POINT
#undef NAME

/* The ranks within `window` of one target. */
static void
around(double q, int64_t n, int64_t window, int64_t *first, int64_t *last)
{
    int64_t middle = (int64_t)floor(q * (double)n); /* off by one at most */
    int64_t room = window < n ? window : n;

    *first = middle - (room + 1) > 0 ? middle - (room + 1) : 0;
    *last = middle + (room + 2) < n ? middle + (room + 2) : n;
}

/* The disjoint segments that ranks first[j], ..., last[j] make up, which ascend in both; how many there are. */
static size_t
segments_of(size_t m, const int64_t *first, const int64_t *last, int64_t *segment, int64_t *count)
{
    size_t segments = 0;

    for (size_t j = 0; j < m; j++) {
        if (segments == 0 || first[j] > segment[segments - 1] + count[segments - 1]) {
            segment[segments++] = first[j];
        }
        count[segments - 1] = last[j] - segment[segments - 1] + 1;
    }
    return segments;
}

size_t
dpq_intervals_windows(size_t m, const double *q, int64_t n, int64_t window, int64_t *first,
                      int64_t *last, int64_t *segment, int64_t *count)
{
    for (size_t j = 0; j < m; j++) {
        around(q[j], n, window, first + j, last + j);
    }
    return segments_of(m, first, last, segment, count);
}

size_t
dpq_intervals_windows_by_level(size_t m, const double *q, int64_t n, const int64_t *window, int64_t *first,
                               int64_t *last, int64_t *segment, int64_t *count)
{
    for (size_t j = 0; j < m; j++) {
        around(q[j], n, window[j], first + j, last + j);
        if (j > 0 && last[j] < last[j - 1]) {
            last[j] = last[j - 1];
        }
    }
    for (size_t j = m; j-- > 1;) {
        if (first[j - 1] > first[j]) {
            first[j - 1] = first[j];
        }
    }
    return segments_of(m, first, last, segment, count);
}

void
dpq_intervals_probes(size_t m, const double *q, int64_t n, const int64_t *reach, int64_t *place)
{
    for (size_t j = 0; j < m; j++) {
        int64_t target = (int64_t)rint(q[j] * (double)n);
        int64_t lower = target - reach[j] - 1, upper = target + reach[j];

        place[j] = lower < 0 ? 0 : lower >= n ? n - 1 : lower;
        place[m + j] = upper >= n ? n - 1 : upper;
    }
}

void
dpq_intervals_log_spans(size_t m, const double *value, double low, double high, double unit,
                        double *log_span)
{
    for (size_t j = 0; j < m; j++) {
        double lower = value[j] >= low ? (value[j] <= high ? value[j] : high) : low;
        double upper = value[m + j] >= low ? (value[m + j] <= high ? value[m + j] : high) : low;

        log_span[j] = upper > lower ? log((upper - lower) / unit) : -INFINITY;
    }
}

int
dpq_intervals_ranges(size_t m, const int64_t *first, const int64_t *last, size_t intervals,
                     const int64_t *rank, size_t *lo, size_t *hi)
{
    int any = 1;

    for (size_t j = 0; j < m; j++) {
        lo[j] = dpq_ranks_first(rank, 0, intervals, first[j]);
        hi[j] = dpq_ranks_first(rank, lo[j], intervals, last[j] + 1);
        if (j > 0 && lo[j] < lo[j - 1]) {
            lo[j] = lo[j - 1];
        }
    }
    for (size_t j = m; j-- > 0;) {
        if (j + 1 < m && hi[j] > hi[j + 1]) {
            hi[j] = hi[j + 1];
        }
        any &= lo[j] < hi[j];
    }
    return any;
}
