#include "race.h"

#include "fuzz.h"
#include "uniform.h"

#define MOST_WEIGHTS 2000
#define LOG_ACCURACY 1e-13L   /* of probabilities, for log-weights up to 700; */
#define LOG_ROUNDING 0x1p-50L /* ... of larger ones these bits are lost */
#define PLAIN_ACCURACY 1e-11L /* of probabilities */
#define SMALL 0x1p-9L         /* of the total: weights below are drawn among themselves */
#define UNKNOWN SIZE_MAX      /* rounding decides the draw */

/* Log-weights of one kind or of all kinds. */
static double
draw_log_weight(fuzz_input *in, int64_t kind)
{
    switch (kind) {
    case 0:
        return (double)fuzz_between(in, -16, 16) / 4.0;
    case 1:
        return (double)fuzz_between(in, -700, 700);
    case 2:
        return fuzz_bit(in) ? -INFINITY : (double)fuzz_between(in, -2000, 2000) / 16.0;
    case 3:
        return fuzz_finite(in);
    default:
        return fuzz_number(in);
    }
}

static double
draw_weight(fuzz_input *in, int64_t kind)
{
    switch (kind) {
    case 0:
        return (double)fuzz_between(in, 0, 16);
    case 1:
        return ldexp(1.0, (int)fuzz_between(in, -24, 0));
    case 2:
        return fuzz_bit(in) ? 0.0 : ldexp(1.0, (int)fuzz_between(in, -900, 900));
    case 3:
        return 0x1p900;
    default:
        return ldexp(1.0 + fuzz_share(in), (int)fuzz_between(in, -900, 899));
    }
}

static long double
exact_log_sum(size_t n, const double *log_weight)
{
    long double largest = -INFINITY, sum = 0.0L;

    for (size_t k = 0; k < n; k++) {
        largest = log_weight[k] > largest ? log_weight[k] : largest;
    }
    for (size_t k = 0; k < n && largest > -INFINITY; k++) {
        sum += expl(log_weight[k] - largest);
    }
    return sum > 0.0L ? largest + logl(sum) : largest;
}

/* Sum of the weights below `limit`. */
static long double
exact_sum(size_t n, const double *weight, long double limit)
{
    long double sum = 0.0L;

    for (size_t k = 0; k < n; k++) {
        sum += weight[k] < limit ? weight[k] : 0.0L;
    }
    return sum;
}

/* Whether |a - b| <= accuracy, infinite ones included. */
static int
near(long double a, long double b, long double accuracy)
{
    return a == b || fabsl(a - b) <= accuracy;
}

/* Whether two runs of weights, the second from `mid` on, are the same: then so are their sums. */
static int
same_halves(size_t lo, size_t mid, size_t hi, const double *weight)
{
    return mid - lo == hi - mid &&
           memcmp(weight + lo, weight + mid, (mid - lo) * sizeof *weight) == 0;
}

static size_t
expected_draw(size_t n, const double *log_weight, long double accuracy, bitgen_t *rng)
{
    size_t lo = 0, hi = n;

    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        long double left = exact_log_sum(mid - lo, log_weight + lo);
        long double right = exact_log_sum(hi - mid, log_weight + mid);
        int left_wins = right == -INFINITY;

        if (left > -INFINITY && right > -INFINITY) {
            long double d = -fabsl(left - right), edge = d - log1pl(expl(d));
            double v = dpq_uniform_log(rng);

            if (near(v, edge, accuracy) || (near(left, right, accuracy) &&
                                            !same_halves(lo, mid, hi, log_weight))) {
                return UNKNOWN;
            }
            left_wins = (v < edge) == (left < right);
        }
        *(left_wins ? &hi : &lo) = mid;
    }
    return lo;
}

/* As expected_draw among plain weights below `limit`, until `size` are left: lo, and hi below. */
static size_t
expected_half(size_t size, size_t *hi, const double *weight, long double limit, bitgen_t *rng)
{
    size_t lo = 0;

    while (*hi - lo > size) {
        size_t mid = lo + (*hi - lo) / 2;
        long double left = exact_sum(mid - lo, weight + lo, limit);
        long double right = exact_sum(*hi - mid, weight + mid, limit);
        int left_wins = right == 0.0L;

        if (left > 0.0L && right > 0.0L) {
            long double edge = fminl(left, right) / (left + right);
            double v = dpq_uniform_fine(rng);

            if (near(v, edge, edge * PLAIN_ACCURACY + 0x1p-1000L) ||
                (near(left, right, left * PLAIN_ACCURACY) &&
                 !same_halves(lo, mid, *hi, weight))) {
                return UNKNOWN;
            }
            left_wins = (v < edge) == (left < right);
        }
        *(left_wins ? hi : &lo) = mid;
    }
    return lo;
}

static size_t
expected_draw_plain(size_t n, const double *weight, bitgen_t *rng)
{
    size_t lo = expected_half(DPQ_RACE_FIELD, &n, weight, INFINITY, rng), drawn;
    long double total, limit, reached, v;

    if (lo == UNKNOWN || n - lo == 1) {
        return lo;
    }
    weight += lo;
    n -= lo;
    total = exact_sum(n, weight, INFINITY);
    limit = total * SMALL;
    reached = exact_sum(n, weight, limit);
    v = dpq_uniform_fine(rng) * total;
    for (size_t k = 0; k < n; k++) {
        if (weight[k] != limit && near(weight[k], limit, limit * PLAIN_ACCURACY)) {
            return UNKNOWN;
        }
    }
    if (near(v, reached, reached * PLAIN_ACCURACY + total * 0x1p-1000L)) {
        return UNKNOWN;
    }
    if (v < reached) {
        drawn = expected_half(1, &n, weight, limit, rng);
        return drawn == UNKNOWN ? drawn : lo + drawn;
    }
    for (size_t k = 0; k < n; k++) {
        if (weight[k] >= limit) {
            reached += weight[k];
            if (near(v, reached, limit * PLAIN_ACCURACY)) {
                return UNKNOWN;
            }
            if (v < reached) {
                return lo + k;
            }
        }
    }
    return UNKNOWN;
}

static void
check_draw(size_t n, fuzz_input *in)
{
    double *log_weight = fuzz_room(n, sizeof *log_weight), largest = 0.0;
    int64_t kind = fuzz_between(in, 0, 4);
    int broken = 0, any = 0;
    size_t drawn = UNKNOWN, expected;
    fuzz_input same;
    bitgen_t rng = fuzz_generator(in), again = fuzz_generator(&same);
    long double accuracy;
    dpq_status status;

    for (size_t k = 0; k < n; k++) {
        log_weight[k] = draw_log_weight(in, kind);
        broken |= !(log_weight[k] < INFINITY);
        any |= log_weight[k] > -INFINITY;
        largest = fabs(log_weight[k]) < INFINITY ? fmax(largest, fabs(log_weight[k])) : largest;
    }
    accuracy = LOG_ACCURACY + largest * LOG_ROUNDING;
    same = *in;
    status = dpq_race_draw(n, log_weight, &rng, &drawn);
    if (broken || !any) {
        CHECK(status == (broken ? DPQ_ERR_NAN : DPQ_ERR_NO_MASS) && drawn == UNKNOWN);
    }
    else {
        expected = expected_draw(n, log_weight, accuracy, &again);
        CHECK(status == DPQ_OK && drawn < n && log_weight[drawn] > -INFINITY);
        CHECK(expected == UNKNOWN ||
              (drawn == expected && same.left == in->left && same.state == in->state));
    }
    if (!broken) {
        long double sum = exact_log_sum(n, log_weight);

        CHECK(near(dpq_race_log_sum(n, log_weight), sum, accuracy));
        CHECK(dpq_race_log_sum(0, log_weight) == -INFINITY);
    }
    free(log_weight);
}

static void
check_draw_plain(size_t n, fuzz_input *in)
{
    double *weight = fuzz_room(n, sizeof *weight);
    int64_t kind = fuzz_between(in, 0, 4);
    size_t drawn, expected;
    fuzz_input same;
    bitgen_t rng = fuzz_generator(in), again = fuzz_generator(&same);
    long double sum;

    for (size_t k = 0; k < n; k++) {
        weight[k] = draw_weight(in, kind);
    }
    sum = exact_sum(n, weight, INFINITY);
    CHECK(near(dpq_race_sum(n, weight), sum, (long double)n * 0x1p-53L * sum));
    CHECK(dpq_race_sum(0, weight) == 0.0);
    if (sum == 0.0L) {
        weight[fuzz_between(in, 0, (int64_t)n - 1)] = 0x1p-900;
    }
    same = *in;
    drawn = dpq_race_draw_plain(n, weight, &rng);
    expected = expected_draw_plain(n, weight, &again);
    CHECK(drawn < n && weight[drawn] > 0.0);
    CHECK(expected == UNKNOWN ||
          (drawn == expected && same.left == in->left && same.state == in->state));
    free(weight);
}

/* Finite weights up to the largest, whose sum may be infinite. */
static void
check_sum(size_t n, fuzz_input *in)
{
    double *weight = fuzz_room(n, sizeof *weight);
    long double sum;

    for (size_t k = 0; k < n; k++) {
        weight[k] = fabs(fuzz_finite(in));
    }
    sum = exact_sum(n, weight, INFINITY);
    CHECK(sum > 0x1.ffffp1023L || near(dpq_race_sum(n, weight), sum,
                                       (long double)n * 0x1p-53L * sum));
    free(weight);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size, 1};
    size_t n = (size_t)(fuzz_between(&in, 0, 7) ? fuzz_between(&in, 1, 80)
                                                : fuzz_between(&in, 1, MOST_WEIGHTS));

    in.state = fuzz_bytes(&in, 4);
    check_draw(n, &in);
    check_draw_plain(n, &in);
    check_sum(n, &in);
    return 0;
}
