#include "depth.h"

#include <math.h>
#include <string.h>

#include "uniform.h"

#define LN2 0.69314718055994531
#define LOG_HALF (-LN2)
#define SMALL -37.0 /* ln V: 1 - (1 - V)^(1/w) is V/w to the last digit */

/* A cell of points with so many records below them, and up to them. */
static size_t
write_cell(size_t cell, int64_t before, double size, int64_t below, int64_t through, int64_t whole,
           double part, int64_t *start, double *points, double *loss)
{
    double above = (double)(below - whole) - part, under = part - (double)(through - whole);

    start[cell] = before;
    points[cell] = size;
    loss[cell] = above > under ? above : under;
    return cell + 1;
}

size_t
dpq_depth_cells(size_t intervals, const int64_t *rank, const double *width, const int64_t *left,
                int64_t n, int64_t whole, double part, int64_t below, int64_t through,
                int64_t *start, double *points, double *loss)
{
    size_t cells = 0;

    if (rank[0] > 0) {
        cells = write_cell(cells, left[0] - 1, 1.0, below, rank[0], whole, part, start, points,
                           loss);
    }
    for (size_t t = 0; t < intervals; t++) {
        int occupied = rank[t] < n;
        double inner = width[t] - (double)occupied;

        if (inner > 0.0) {
            cells = write_cell(cells, left[t], inner, rank[t], rank[t], whole, part, start, points,
                               loss);
        }
        if (occupied) {
            cells = write_cell(cells, left[t] + (int64_t)inner, 1.0, rank[t],
                               t + 1 < intervals ? rank[t + 1] : through, whole, part, start,
                               points, loss);
        }
    }
    return cells;
}

/* Not less than ln(points), and at most ln 2 more: by the exponent alone. */
static double
log_above(double points)
{
    uint64_t bits;

    memcpy(&bits, &points, sizeof bits);
    return (double)((int64_t)(bits >> 52) - 1022) * LN2;
}

size_t
dpq_depth_flip(size_t cells, const double *points, const double *loss, double rate, size_t best,
               bitgen_t *rng)
{
    double largest = -INFINITY;
    size_t drawn = best;

    for (size_t i = 0; i < cells; i++) {
        size_t k = i == 0 ? best : i <= best ? i - 1 : i; /* best, 0, 1, ..., without best */
        double lost = rate * loss[k], limit = log_above(points[k]) - lost - largest;
        double log_v = dpq_uniform_log_below(limit, rng), value;

        if (log_v >= limit) {
            continue;
        }
        if (log_v > SMALL) {
            /* ln(1 - V), by what keeps its digits */
            double log_rest = log_v > LOG_HALF ? log(-expm1(log_v)) : log1p(-exp(log_v));

            value = -log(-expm1(log_rest / points[k])) - lost;
        }
        else {
            value = log(points[k]) - log_v - lost;
        }
        if (value > largest) {
            largest = value;
            drawn = k;
        }
    }
    return drawn;
}
