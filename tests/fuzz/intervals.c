#include "intervals.h"

#include "fuzz.h"
#include "ranks.h"

#define MOST_RECORDS 2000
#define MOST_SEGMENTS 6
#define MOST_LEVELS 8
#define LARGEST (INT64_C(1) << 53)
#define FARTHEST (INT64_C(1) << 62)

/* Segments of the ranks 0, ..., n and how many points they have; ranks are `size` in all. */
typedef struct {
    int64_t n;
    size_t segments, size, points;
    int64_t *first, *count;
} ranks;

static ranks
draw_ranks(fuzz_input *in)
{
    ranks r = {fuzz_bit(in) ? (int64_t)fuzz_size(in, MOST_RECORDS) : LARGEST, 0, 0, 0, NULL, NULL};
    int64_t end[MOST_SEGMENTS];

    r.segments = (size_t)fuzz_between(in, 0, MOST_SEGMENTS);
    r.first = fuzz_room(r.segments, sizeof *r.first);
    r.count = fuzz_room(r.segments, sizeof *r.count);
    for (size_t s = 0; s < r.segments; s++) {
        end[s] = fuzz_bit(in)   ? fuzz_between(in, 0, r.n)
                 : fuzz_bit(in) ? r.n
                                : fuzz_between(in, 0, r.n < 3 ? r.n : 3);
    }
    qsort(end, r.segments, sizeof *end, fuzz_compare_integers);
    for (size_t s = 0; s < r.segments; s++) {
        int64_t most = r.n + 1 - end[s];

        r.first[s] = end[s];
        r.count[s] = fuzz_between(in, 1, most < MOST_RECORDS + 1 ? most : fuzz_bit(in) ? 3 : 1000);
        r.size += (size_t)r.count[s];
        r.points += (size_t)r.count[s] + 1 - (end[s] == 0) - (r.count[s] == most);
    }
    return r;
}

static void
free_ranks(ranks r)
{
    free(r.first);
    free(r.count);
}

static int64_t
draw_point(fuzz_input *in)
{
    return fuzz_bit(in)   ? fuzz_between(in, -3, 60)
           : fuzz_bit(in) ? fuzz_between(in, -FARTHEST, FARTHEST)
                          : fuzz_between(in, LARGEST - 2, LARGEST);
}

static void
check_lattice(ranks r, fuzz_input *in)
{
    int64_t before = fuzz_bit(in) ? -1 : draw_point(in), after = draw_point(in);
    int64_t *point = fuzz_room(r.points, sizeof *point), *rank = fuzz_room(r.size, sizeof *rank);
    int64_t *left = fuzz_room(r.size, sizeof *left);
    double *width = fuzz_room(r.size, sizeof *width);
    size_t next = 0, kept = 0, found;

    for (size_t i = 0; i < r.points; i++) {
        point[i] = draw_point(in);
    }
    if (fuzz_bit(in)) {
        qsort(point, r.points, sizeof *point, fuzz_compare_integers);
    }
    found = dpq_intervals_lattice(r.segments, r.first, r.count, r.n, before, after, point, rank,
                                  width, left);
    for (size_t s = 0; s < r.segments; s++) {
        int64_t lower = r.first[s] == 0 ? before : point[next++];

        for (int64_t i = r.first[s]; i < r.first[s] + r.count[s]; i++) {
            int64_t upper = i == r.n ? after : point[next++];

            if (upper > lower) {
                CHECK(kept < found && rank[kept] == i && left[kept] == lower);
                CHECK(width[kept] == (double)(upper - lower));
                kept++;
            }
            lower = upper;
        }
    }
    CHECK(kept == found && next == r.points);
    free(width);
    free(left);
    free(rank);
    free(point);
}

static void
check_continuous(ranks r, fuzz_input *in)
{
    double before = fuzz_number(in), after = fuzz_number(in);
    double *point = fuzz_room(r.points, sizeof *point), *width = fuzz_room(r.size, sizeof *width);
    double *left = fuzz_room(r.size, sizeof *left);
    int64_t *rank = fuzz_room(r.size, sizeof *rank);
    size_t next = 0, kept = 0, found;
    int sorted = fuzz_bit(in);

    for (size_t i = 0; i < r.points; i++) {
        point[i] = sorted ? fuzz_finite(in) : fuzz_number(in);
    }
    if (sorted) {
        qsort(point, r.points, sizeof *point, fuzz_compare_numbers);
    }
    found = dpq_intervals_continuous(r.segments, r.first, r.count, r.n, before, after, point, rank,
                                     width, left);
    for (size_t s = 0; s < r.segments; s++) {
        double lower = r.first[s] == 0 ? before : point[next++];

        for (int64_t i = r.first[s]; i < r.first[s] + r.count[s]; i++) {
            double upper = i == r.n ? after : point[next++];

            if (upper > lower) {
                CHECK(kept < found && rank[kept] == i);
                CHECK(memcmp(&left[kept], &lower, sizeof lower) == 0);
                CHECK(width[kept] == upper - lower);
                kept++;
            }
            lower = upper;
        }
    }
    CHECK(kept == found && next == r.points);
    free(left);
    free(width);
    free(rank);
    free(point);
}

/* The sign of q * n - bound, exactly, for an integer that is a float64 number: no product of more
 * than 53 bits is rounded beyond it.
 */
static int
side_of(double q, int64_t n, int64_t bound)
{
    double product = q * (double)n, rest = fma(q, (double)n, -product), at = (double)bound;

    return product != at ? (product > at) - (product < at) : (rest > 0.0) - (rest < 0.0);
}

static int64_t
draw_records(fuzz_input *in)
{
    return fuzz_bit(in)   ? fuzz_between(in, 0, 60)
           : fuzz_bit(in) ? fuzz_between(in, LARGEST - 9, LARGEST)
                          : fuzz_between(in, 0, LARGEST);
}

/* Segments are the union of some ranks, apart from each other. */
static void
check_segments(size_t m, const int64_t *first, const int64_t *last, size_t segments,
               const int64_t *segment, const int64_t *count)
{
    size_t s = 0;

    for (size_t j = 0; j < m; j++) {
        if (j == 0 || first[j] > last[j - 1] + 1) {
            CHECK(s < segments && segment[s] == first[j]);
            s++;
        }
        if (j + 1 == m || first[j + 1] > last[j] + 1) {
            CHECK(segment[s - 1] + count[s - 1] == last[j] + 1);
        }
    }
    CHECK(s == segments);
}

static void
check_windows(size_t m, const double *q, fuzz_input *in)
{
    int64_t n = draw_records(in);
    int64_t window = fuzz_bit(in) ? fuzz_between(in, 0, 20) : fuzz_between(in, 0, INT64_MAX);
    int64_t *room = fuzz_room(9 * m, sizeof *room), *each = room, *first = room + m;
    int64_t *last = first + m, *segment = last + m, *count = segment + m;
    int64_t *of_each = count + m, *to_each = of_each + m;
    size_t segments = dpq_intervals_windows(m, q, n, window, first, last, segment, count);

    for (size_t j = 0; j < m; j++) {
        CHECK(0 <= first[j] && first[j] <= last[j] && last[j] <= n);
        CHECK(j == 0 || (first[j] >= first[j - 1] && last[j] >= last[j - 1]));
        /* the nearest ranks outside, window < n there */
        CHECK(first[j] == 0 || side_of(q[j], n, first[j] - 1 + window) > 0);
        CHECK(last[j] == n || side_of(q[j], n, last[j] + 1 - window) < 0);
        /* and not much is inside */
        CHECK(first[j] == 0 || side_of(q[j], n, first[j] + window + 3) <= 0);
        CHECK(last[j] == n || side_of(q[j], n, last[j] - window - 3) >= 0);
    }
    check_segments(m, first, last, segments, segment, count);
    for (size_t j = 0; j < m; j++) { /* of each its own: each alone, and wider where they cross */
        each[j] = fuzz_between(in, 0, window);
        (void)dpq_intervals_windows(1, q + j, n, each[j], of_each + j, to_each + j, segment, count);
    }
    segments = dpq_intervals_windows_by_level(m, q, n, each, first, last, segment, count);
    for (size_t j = 0; j < m; j++) {
        int64_t lowest = of_each[j], highest = to_each[j];

        for (size_t k = 0; k < m; k++) {
            lowest = k > j && of_each[k] < lowest ? of_each[k] : lowest;
            highest = k < j && to_each[k] > highest ? to_each[k] : highest;
        }
        CHECK(first[j] == lowest && last[j] == highest);
    }
    check_segments(m, first, last, segments, segment, count);
    free(room);
}

static int64_t
held(int64_t place, int64_t n)
{
    return place < 0 ? 0 : place >= n ? n - 1 : place;
}

static void
check_probes(size_t m, const double *q, fuzz_input *in)
{
    int64_t n = draw_records(in);
    int64_t *reach = fuzz_room(m, sizeof *reach), *place = fuzz_room(2 * m, sizeof *place);

    n = n > 0 ? n : 1;
    for (size_t j = 0; j < m; j++) {
        reach[j] = fuzz_bit(in) ? fuzz_between(in, 0, 20) : fuzz_between(in, 0, 2 * LARGEST);
    }
    dpq_intervals_probes(m, q, n, reach, place);
    for (size_t j = 0; j < m; j++) {
        int64_t target = (int64_t)fuzz_nearest(q[j] * (double)n);

        CHECK(place[j] == held(target - reach[j] - 1, n));
        CHECK(place[m + j] == held(target + reach[j], n));
    }
    free(place);
    free(reach);
}

static double
clamp(double value, double low, double high)
{
    return isnan(value) || value < low ? low : value > high ? high : value;
}

static void
check_log_spans(size_t m, fuzz_input *in)
{
    double a = fuzz_number(in), b = fuzz_number(in), unit = fuzz_positive(in);
    double low = isnan(a) || isnan(b) ? -INFINITY : a < b ? a : b;
    double high = isnan(a) || isnan(b) ? INFINITY : a < b ? b : a;
    double *value = fuzz_room(2 * m, sizeof *value), *log_span = fuzz_room(m, sizeof *log_span);

    for (size_t j = 0; j < 2 * m; j++) {
        value[j] = fuzz_number(in);
    }
    dpq_intervals_log_spans(m, value, low, high, unit, log_span);
    for (size_t j = 0; j < m; j++) {
        double lower = clamp(value[j], low, high), upper = clamp(value[m + j], low, high);
        double span = (upper - lower) / unit;
        long double expected = upper > lower ? logl(span) : -INFINITY;

        CHECK(log_span[j] == expected ||
              fabsl(log_span[j] - expected) <= 0x1p-51L * (1.0L + fabsl(expected)));
    }
    free(log_span);
    free(value);
}

/* Every interval of every level that stands on some path. */
static void
check_ranges(size_t m, fuzz_input *in)
{
    size_t intervals = fuzz_size(in, 200), start = (size_t)fuzz_between(in, 0, (int64_t)intervals);
    size_t at = start, *lo = fuzz_room(m, sizeof *lo), *hi = fuzz_room(m, sizeof *hi);
    int64_t *rank = fuzz_room(intervals, sizeof *rank), wanted = fuzz_between(in, -1, 70);
    int64_t *first = fuzz_room(m, sizeof *first), *last = fuzz_room(m, sizeof *last);
    uint8_t *fits = fuzz_room(m * intervals, 1);
    int found, ascending = fuzz_bit(in), path = 0;

    for (size_t t = 0; t < intervals; t++) {
        rank[t] = fuzz_bit(in) ? fuzz_between(in, 0, 64) : fuzz_between(in, 0, LARGEST);
    }
    qsort(rank, intervals, sizeof *rank, fuzz_compare_integers);
    while (at < intervals && rank[at] < wanted) {
        at++;
    }
    CHECK(dpq_ranks_first(rank, start, intervals, wanted) == at);
    CHECK(dpq_ranks_first(rank, at, start > at ? start : at, INT64_MIN) == at);

    for (size_t j = 0; j < m; j++) {
        first[j] = fuzz_bit(in) ? fuzz_between(in, 0, 64) : fuzz_between(in, 0, LARGEST);
        last[j] = fuzz_bit(in) ? fuzz_between(in, 0, 64) : fuzz_between(in, 0, LARGEST);
    }
    if (ascending) {
        qsort(first, m, sizeof *first, fuzz_compare_integers);
        qsort(last, m, sizeof *last, fuzz_compare_integers);
    }
    found = dpq_intervals_ranges(m, first, last, intervals, rank, lo, hi);

    for (size_t j = 0; j < m; j++) { /* what can be reached from level 0 */
        int reached = j == 0;

        for (size_t t = 0; t < intervals; t++) {
            reached |= j > 0 && fits[(j - 1) * intervals + t];
            fits[j * intervals + t] = reached && first[j] <= rank[t] && rank[t] <= last[j];
            path |= j == m - 1 && fits[j * intervals + t];
        }
    }
    for (size_t j = m - 1; j-- > 0;) { /* and from where the last one can be */
        int reaches = 0;

        for (size_t t = intervals; t-- > 0;) {
            reaches |= fits[(j + 1) * intervals + t];
            fits[j * intervals + t] &= (uint8_t)reaches;
        }
    }
    CHECK(!found == !path);
    for (size_t j = 0; j < m; j++) {
        CHECK(j == 0 || (lo[j - 1] <= lo[j] && hi[j - 1] <= hi[j]));
        for (size_t t = 0; found && t < intervals; t++) {
            CHECK(fits[j * intervals + t] == (lo[j] <= t && t < hi[j]));
        }
    }
    free(fits);
    free(last);
    free(first);
    free(rank);
    free(hi);
    free(lo);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size, 1};
    size_t m = (size_t)fuzz_between(&in, 1, MOST_LEVELS);
    double *q = fuzz_room(m, sizeof *q);
    ranks r = draw_ranks(&in);

    for (size_t j = 0; j < m; j++) {
        q[j] = fuzz_share(&in);
    }
    qsort(q, m, sizeof *q, fuzz_compare_numbers);
    check_lattice(r, &in);
    check_continuous(r, &in);
    check_windows(m, q, &in);
    check_probes(m, q, &in);
    check_log_spans(m, &in);
    check_ranges(m, &in);
    free_ranks(r);
    free(q);
    return 0;
}
