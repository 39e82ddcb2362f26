#include "depth.h"

#include "fuzz.h"
#include "uniform.h"

#define MOST_INTERVALS 400
#define ACCURACY 1e-12L /* of values, relative to what they are made of */

/* Intervals that follow each other, and the records around them. */
typedef struct {
    size_t size;
    int64_t *rank, *left, n, below, through;
    double *width;
} intervals;

static intervals
draw_intervals(fuzz_input *in)
{
    size_t size = 1 + fuzz_size(in, MOST_INTERVALS - 1);
    intervals made = {size, fuzz_room(size, sizeof(int64_t)), fuzz_room(size, sizeof(int64_t)),
                      0,    0,
                      0,    fuzz_room(size, sizeof(double))};
    int64_t most = fuzz_bit(in) ? 3 : INT64_C(1) << 40, wide = fuzz_bit(in) ? 3 : INT64_C(1) << 40;
    int64_t rank = fuzz_bit(in) ? 0 : fuzz_between(in, 0, most);
    int64_t point = rank == 0 ? -1 : fuzz_between(in, 0, wide);

    made.below = rank == 0 ? 0 : fuzz_between(in, 0, rank - 1);
    for (size_t t = 0; t < size; t++) {
        made.rank[t] = rank;
        made.left[t] = point;
        made.width[t] = (double)fuzz_between(in, 1, wide);
        point += (int64_t)made.width[t];
        rank += fuzz_between(in, 1, most);
    }
    made.n = made.rank[size - 1] + (fuzz_bit(in) ? 0 : fuzz_between(in, 1, most));
    made.through = made.rank[size - 1] +
                   (made.n > made.rank[size - 1] ? fuzz_between(in, 1, made.n - made.rank[size - 1])
                                                 : 0);
    return made;
}

/* Whether this is how far t is outside of [below, through], negative inside; rounded once. */
static int
is_loss(double loss, int64_t below, int64_t through, int64_t whole, double part)
{
    long double above = (long double)(below - whole) - part;
    long double under = part - (long double)(through - whole);
    long double exact = above > under ? above : under;

    return fabsl(loss - exact) <= 0x1.001p-53L * fabsl(exact);
}

static size_t
check_cells(fuzz_input *in, intervals x, int64_t *start, double *points, double *loss)
{
    int64_t whole = fuzz_bit(in) ? fuzz_between(in, 0, x.n)
                                 : x.rank[fuzz_between(in, 0, (int64_t)x.size - 1)];
    double part = whole < x.n && fuzz_bit(in) ? fmin(fuzz_share(in), 1.0 - 0x1p-53) : 0.0;
    size_t cells = dpq_depth_cells(x.size, x.rank, x.width, x.left, x.n, whole, part, x.below,
                                   x.through, start, points, loss);
    size_t at = 0;

    if (x.rank[0] > 0) {
        CHECK(start[0] == x.left[0] - 1 && points[0] == 1.0);
        CHECK(is_loss(loss[0], x.below, x.rank[0], whole, part));
        at++;
    }
    for (size_t t = 0; t < x.size; t++) {
        int64_t rank = x.rank[t], right = x.left[t] + (int64_t)x.width[t];
        int64_t next = t + 1 < x.size ? x.rank[t + 1] : x.through;
        double inner = x.width[t] - (rank < x.n ? 1.0 : 0.0);

        if (inner > 0.0) {
            CHECK(at < cells && start[at] == x.left[t] && points[at] == inner);
            CHECK(is_loss(loss[at], rank, rank, whole, part));
            at++;
        }
        if (rank < x.n) {
            CHECK(at < cells && start[at] == right - 1 && points[at] == 1.0);
            CHECK(is_loss(loss[at], rank, next, whole, part));
            at++;
        }
    }
    CHECK(at == cells);
    return cells;
}

/* The race with every variate computed, in long double; SIZE_MAX where rounding decides. */
static size_t
expected_flip(size_t cells, const double *points, const double *loss, double rate, size_t best,
              bitgen_t *rng)
{
    long double largest = -INFINITY, second = -INFINITY, scale = 1.0L;
    size_t drawn = best;

    for (size_t i = 0; i < cells; i++) {
        size_t k = i == 0 ? best : i <= best ? i - 1 : i;
        long double log_v = dpq_uniform_log(rng), value;

        if (log_v > -300.0L) { /* V itself, and what is next to 1 by its series */
            long double rest = log_v > -0.5L ? logl(-expm1l(log_v)) : log1pl(-expl(log_v));

            value = -logl(-expm1l(rest / points[k]));
        }
        else {
            value = logl(points[k]) - log_v;
        }
        scale = fmaxl(scale, fmaxl(fabsl(value), fabsl((long double)rate * loss[k])));
        value -= (long double)rate * loss[k];
        if (value > largest) {
            second = largest;
            largest = value;
            drawn = k;
        }
        else if (value > second) {
            second = value;
        }
    }
    return largest - second > scale * ACCURACY ? drawn : SIZE_MAX;
}

static void
check_flip(fuzz_input *in, size_t cells, const double *points, const double *loss)
{
    double rate = fuzz_bit(in) ? ldexp(1.0, (int)fuzz_between(in, -60, 16)) : fuzz_share(in);
    size_t best = 0, drawn, expected;
    fuzz_input same;
    bitgen_t rng = fuzz_generator(in), again = fuzz_generator(&same);

    for (size_t k = 1; k < cells; k++) {
        best = loss[k] < loss[best] ? k : best;
    }
    same = *in;
    drawn = dpq_depth_flip(cells, points, loss, rate, best, &rng);
    expected = expected_flip(cells, points, loss, rate, best, &again);
    CHECK(drawn < cells && (expected == SIZE_MAX || drawn == expected));
    CHECK(same.left == in->left && same.state == in->state);
}

/* -ln(1 - (1 - V)^(1/points)) */
static long double
largest_of(double points, long double log_v)
{
    long double rest = log_v > -0.5L ? logl(-expm1l(log_v)) : log1pl(-expl(log_v));

    return log_v > -300.0L ? -logl(-expm1l(rest / points)) : logl(points) - log_v;
}

/* The draw with every variate computed, in long double; -2 where rounding decides. */
static int64_t
expected_point(intervals x, int64_t whole, double part, double rate, bitgen_t *rng)
{
    size_t blocks = (x.size + DPQ_DEPTH_BLOCK - 1) / DPQ_DEPTH_BLOCK, nearest = 0;
    int64_t start[2 * DPQ_DEPTH_BLOCK + 1], before = -1;
    double points[2 * DPQ_DEPTH_BLOCK + 1], loss[2 * DPQ_DEPTH_BLOCK + 1], drawn = 1.0;
    long double best = -INFINITY;

    for (size_t t = 0; t < x.size; t++) {
        nearest = x.rank[t] <= whole ? t / DPQ_DEPTH_BLOCK : nearest;
    }
    for (size_t i = 0; i < blocks; i++) {
        size_t b = i == 0 ? nearest : i <= nearest ? i - 1 : i, from = b * DPQ_DEPTH_BLOCK;
        size_t to = from + DPQ_DEPTH_BLOCK < x.size ? from + DPQ_DEPTH_BLOCK : x.size;
        int64_t through = to < x.size ? x.rank[to] : x.n, owner;
        int64_t all = x.left[to - 1] + (int64_t)x.width[to - 1] - x.left[from];
        long double above = (long double)(x.rank[from] - whole) - part;
        long double under = part - (long double)(through - whole);
        long double top = largest_of((double)all, dpq_uniform_log(rng));
        long double ahead = top - rate * fmaxl(above, under) - best;

        if (fabsl(ahead) < ACCURACY * (1.0L + fabsl(top) + fabsl(best))) {
            return -2;
        }
        if (ahead < 0.0L) {
            continue;
        }
        size_t cells = dpq_depth_cells(to - from, x.rank + from, x.width + from, x.left + from,
                                       x.n, whole, part, 0, through, start, points, loss);

        owner = x.left[from] + 1 + (int64_t)dpq_uniform_below((uint64_t)all, rng);
        for (size_t j = from > 0, own = j; j <= cells; j++) { /* the owner's cell, and the others */
            size_t k = j - 1;
            long double value = top;

            if (j == (from > 0)) {
                while (owner > start[own] + (int64_t)points[own]) {
                    own++;
                }
                k = own;
            }
            else if (k == own) {
                continue;
            }
            else {
                long double beyond = expl(-largest_of(points[k], dpq_uniform_log(rng)));

                value = fminl(top, -logl(beyond + expl(-top) * (1.0L - beyond)));
            }
            value -= (long double)rate * loss[k];
            if (fabsl(value - best) < ACCURACY * (1.0L + fabsl(value) + fabsl(top))) {
                return -2;
            }
            if (value > best) {
                best = value;
                before = start[k];
                drawn = points[k];
            }
        }
    }
    return before + 1 + (int64_t)dpq_uniform_below((uint64_t)drawn, rng);
}

/* All intervals: the first one has no records below it. */
static void
check_point(fuzz_input *in, intervals x)
{
    int64_t first = x.rank[0], whole, expected, point;
    double part, rate = fuzz_bit(in) ? ldexp(1.0, (int)fuzz_between(in, -60, 16)) : fuzz_share(in);
    fuzz_input same;
    bitgen_t rng = fuzz_generator(in), again = fuzz_generator(&same);

    for (size_t t = 0; t < x.size; t++) {
        x.rank[t] -= first;
    }
    x.n -= first;
    whole = fuzz_between(in, 0, x.n);
    part = whole < x.n && fuzz_bit(in) ? fmin(fuzz_share(in), 1.0 - 0x1p-53) : 0.0;
    same = *in;
    point = dpq_depth_point(x.size, x.rank, x.width, x.left, x.n, whole, part, rate, &rng);
    expected = expected_point(x, whole, part, rate, &again);
    CHECK(expected == -2 || point == expected);
    CHECK(point > x.left[0] &&
          point <= x.left[x.size - 1] + (int64_t)x.width[x.size - 1]);
    CHECK(expected == -2 || (same.left == in->left && same.state == in->state));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size, 1};
    intervals x = draw_intervals(&in);
    size_t room = 2 * x.size + 1, cells;
    int64_t *start = fuzz_room(room, sizeof *start);
    double *points = fuzz_room(room, sizeof *points);
    double *loss = fuzz_room(room, sizeof *loss);

    cells = check_cells(&in, x, start, points, loss);
    check_flip(&in, cells, points, loss);
    check_point(&in, x);
    free(loss);
    free(points);
    free(start);
    free(x.width);
    free(x.left);
    free(x.rank);
    return 0;
}
