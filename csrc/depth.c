#include "depth.h"

#include <math.h>
#include <string.h>

#include "uniform.h"

#define LN2 0.69314718055994531
#define LOG_HALF (-LN2)
#define SMALL -37.0 /* ln V: 1 - (1 - V)^(1/w) is V/w to the last digit */

/* A cell of points with `below` records below them, and `through` up to them. */
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

/* The largest of `points` exponential variates, by one uniform V: -ln(1 - (1 - V)^(1/points)). */
static double
largest_of(double points, double log_v)
{
    double log_rest;

    if (log_v <= SMALL) {
        return log(points) - log_v;
    }
    /* ln(1 - V), by what keeps its digits */
    log_rest = log_v > LOG_HALF ? log(-expm1(log_v)) : log1p(-exp(log_v));
    return -log(-expm1(log_rest / points));
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
        value = largest_of(points[k], log_v) - lost;
        if (value > largest) {
            largest = value;
            drawn = k;
        }
    }
    return drawn;
}

/* The block of intervals that covers the target, or the last one before it. */
static size_t
block_of(size_t intervals, const int64_t *rank, int64_t whole)
{
    size_t low = 0, high = intervals;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        *(rank[middle] <= whole ? &low : &high) = middle;
    }
    return low / DPQ_DEPTH_BLOCK;
}

int64_t
dpq_depth_point(size_t intervals, const int64_t *rank, const double *width, const int64_t *left,
                int64_t n, int64_t whole, double part, double rate, bitgen_t *rng)
{
    size_t blocks = (intervals + DPQ_DEPTH_BLOCK - 1) / DPQ_DEPTH_BLOCK;
    size_t nearest = block_of(intervals, rank, whole);
    int64_t start[2 * DPQ_DEPTH_BLOCK + 1], before = left[0];
    double points[2 * DPQ_DEPTH_BLOCK + 1], loss[2 * DPQ_DEPTH_BLOCK + 1];
    double drawn_points = 1.0, best = -INFINITY;

    for (size_t i = 0; i < blocks; i++) {
        size_t block = i == 0 ? nearest : i <= nearest ? i - 1 : i;
        size_t from = block * DPQ_DEPTH_BLOCK, first = rank[from] > 0, cells, own;
        size_t size = intervals - from < DPQ_DEPTH_BLOCK ? intervals - from : DPQ_DEPTH_BLOCK;
        size_t last = from + size - 1;
        int64_t through = last + 1 < intervals ? rank[last + 1] : n, owner;
        double above = (double)(rank[from] - whole) - part;
        double under = part - (double)(through - whole);
        double all = (double)(left[last] - left[from]) + width[last];
        double least = rate * (above > under ? above : under); /* no point loses less */
        double limit = log_above(all) - least - best, log_v = dpq_uniform_log_below(limit, rng);
        double top, rest;

        if (log_v >= limit || (top = largest_of(all, log_v)) - least <= best) {
            continue;
        }
        cells = dpq_depth_cells(size, rank + from, width + from, left + from, n, whole, part, 0,
                                through, start, points, loss);
        owner = left[from] + 1 + (int64_t)dpq_uniform_below((uint64_t)all, rng);
        rest = exp(-top);
        for (own = first; owner - start[own] > (int64_t)points[own]; own++) {
        }
        if (top - rate * loss[own] > best) {
            best = top - rate * loss[own];
            before = start[own];
            drawn_points = points[own];
        }
        for (size_t k = first; k < cells; k++) {
            double lost = rate * loss[k], beyond, value;

            limit = log_above(points[k]) - lost - best;
            if (k == own || (log_v = dpq_uniform_log_below(limit, rng)) >= limit) {
                continue;
            }
            beyond = exp(-largest_of(points[k], log_v));
            value = fmin(top, -log(beyond + rest * (1.0 - beyond))) - lost; /* given E < top */
            if (value > best) {
                best = value;
                before = start[k];
                drawn_points = points[k];
            }
        }
    }
    return before + 1 + (int64_t)dpq_uniform_below((uint64_t)drawn_points, rng);
}
