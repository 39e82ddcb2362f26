#include "race.h"

#include <math.h>

#include "uniform.h"

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

static double
sum_of(size_t n, const double *weight)
{
    double sum = 0.0;

    for (size_t k = 0; k < n; k++) {
        sum += weight[k];
    }
    return sum;
}

size_t
dpq_race_draw_plain(size_t n, const double *weight, bitgen_t *rng)
{
    size_t lo = 0, hi = n;

    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        double left = sum_of(mid - lo, weight + lo), right = sum_of(hi - mid, weight + mid);
        int left_wins = right == 0.0;

        if (left > 0.0 && right > 0.0) {
            double smaller = left < right ? left : right;
            int smaller_wins = dpq_uniform_fine(rng) < smaller / (left + right);

            left_wins = smaller_wins == (left < right);
        }
        if (left_wins) {
            hi = mid;
        }
        else {
            lo = mid;
        }
    }
    return lo;
}
