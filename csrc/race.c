#include "race.h"

#include <math.h>

#include "uniform.h"

#define SMALL 0x1p-9 /* of the total: weights below this are not drawn from running sums */

double
dpq_race_log_sum(size_t n, const double *log_weight)
{
    double largest = -INFINITY, sum = 0.0;

    for (size_t k = 0; k < n; k++) {
        if (log_weight[k] > largest) {
            largest = log_weight[k];
        }
    }
    if (largest == -INFINITY) {
        return largest;
    }
    for (size_t k = 0; k < n; k++) {
        sum += exp(log_weight[k] - largest);
    }
    return largest + log(sum);
}

dpq_status
dpq_race_draw(size_t n, const double *log_weight, bitgen_t *rng, size_t *drawn)
{
    size_t lo = 0, hi = n;
    int any = 0;

    for (size_t k = 0; k < n; k++) {
        if (isnan(log_weight[k]) || log_weight[k] == INFINITY) {
            return DPQ_ERR_NAN;
        }
        any |= log_weight[k] > -INFINITY;
    }
    if (!any) {
        return DPQ_ERR_NO_MASS;
    }
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        double left = dpq_race_log_sum(mid - lo, log_weight + lo);
        double right = dpq_race_log_sum(hi - mid, log_weight + mid);
        int left_wins;

        if (left == -INFINITY || right == -INFINITY) {
            left_wins = right == -INFINITY;
        }
        else {
            /* the smaller side wins with probability e^d / (1 + e^d), d <= 0 */
            double d = -fabs(left - right);
            int smaller_wins = dpq_uniform_log(rng) < d - log1p(exp(d));

            left_wins = smaller_wins == (left < right);
        }
        if (left_wins) {
            hi = mid;
        }
        else {
            lo = mid;
        }
    }
    *drawn = lo;
    return DPQ_OK;
}

/* The sum of the weights below `limit`. Four are kept, so that additions overlap. */
static double
sum_below(size_t n, const double *weight, double limit)
{
    double sum[4] = {0.0, 0.0, 0.0, 0.0};
    size_t k;

    for (k = 0; k + 4 <= n; k += 4) {
        for (size_t i = 0; i < 4; i++) {
            sum[i] += weight[k + i] < limit ? weight[k + i] : 0.0;
        }
    }
    for (; k < n; k++) {
        sum[0] += weight[k] < limit ? weight[k] : 0.0;
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* Halve weights lo <= k < hi, of which only those below `limit` count, until `size` of them are left;
 * where they begin. */
static size_t
halve(size_t size, size_t *hi, const double *weight, double limit, bitgen_t *rng)
{
    size_t lo = 0;

    while (*hi - lo > size) {
        size_t mid = lo + (*hi - lo) / 2;
        double left = sum_below(mid - lo, weight + lo, limit);
        double right = sum_below(*hi - mid, weight + mid, limit);
        int left_wins = right == 0.0;

        if (left > 0.0 && right > 0.0) {
            double smaller = left < right ? left : right;
            int smaller_wins = dpq_uniform_fine(rng) < smaller / (left + right);

            left_wins = smaller_wins == (left < right);
        }
        if (left_wins) {
            *hi = mid;
        }
        else {
            lo = mid;
        }
    }
    return lo;
}

double
dpq_race_sum(size_t n, const double *weight)
{
    return sum_below(n, weight, INFINITY);
}

size_t
dpq_race_draw_plain(size_t n, const double *weight, bitgen_t *rng)
{
    size_t lo = halve(DPQ_RACE_FIELD, &n, weight, INFINITY, rng), drawn = lo;
    double total = dpq_race_sum(n - lo, weight + lo), limit = total * SMALL;
    double light = sum_below(n - lo, weight + lo, limit);
    double reached = light, v;

    if (n - lo == 1) {
        return lo;
    }
    v = dpq_uniform_fine(rng) * total;
    if (v < light) {
        n -= lo;
        return lo + halve(1, &n, weight + lo, limit, rng);
    }
    for (size_t k = lo; k < n && reached <= v; k++) {
        if (weight[k] >= limit) {
            reached += weight[k];
            drawn = k; /* the last one if rounding kept the sum below v */
        }
    }
    return drawn;
}
