#include "stray.h"

#include <math.h>

#include "extremes.h"
#include "ranks.h"
#include "vector.h"
#include "wide.h"

#define SLACK 2.0        /* nats that cells may cost all levels together, near the target */
#define FAR 0x1p100      /* scales are adapted once they are so far from what arrives */
#define SCALE 8          /* where they are, as of so many tables of all cells */
#define MOST_STEP 1000   /* the largest power of two that is multiplied by at once */
#define LEAST 0x1p-1000  /* added to every sum: more than underflow may have taken from it, some 2^-1075
                          * for each of 2^20 cells, times exp(DPQ_STRAY_WIDEST) and exp(c) */

size_t
dpq_stray_cells(int64_t window, int64_t reach, double rate, size_t m, double share, size_t *inside,
                int64_t *start)
{
    int64_t at = 0;
    double border = 1.0; /* `at` is this, rounded down */
    size_t cells = 0;

    *inside = 0;
    while (at <= reach) {
        double outside = at > window ? (double)(at - window) : 0.0;
        double slack = SLACK + 2.0 * share * rate * outside;
        int64_t end = at <= window ? window + 1 : reach + 1; /* of this kind of cells */

        *inside += at <= window;
        if (start) {
            start[cells] = at;
        }
        border += at > 0 ? 1.0 + fmin(slack / (double)m, DPQ_STRAY_WIDEST) / rate : 0.0;
        at = border < (double)end ? (int64_t)border : end;
        border = fmin(border, (double)end);
        cells++;
    }
    if (start) {
        start[cells] = at;
    }
    return cells;
}

/* Measure of the intervals a, ..., b - 1 and of all between them. */
static double
span(const dpq_stray_intervals *of, size_t a, size_t b)
{
    if (a == b) {
        return 0.0;
    }
    return (of->points ? (double)(of->points[b - 1] - of->points[a])
                       : of->numbers[b - 1] - of->numbers[a]) +
           of->width[b - 1];
}

/* The widths of all cells around target j, from the lowest to the highest. */
static void
widths_of_intervals(const dpq_stray_problem *p, const dpq_stray_intervals *of, size_t j, double *width)
{
    const size_t middle = p->cells - 1;
    int64_t rank = p->whole[j] - p->start[p->cells] + 1;
    size_t t = dpq_ranks_first(of->rank, 0, of->intervals, rank);

    for (size_t k = 0; k <= 2 * middle; k++) {
        size_t i = k > middle ? k - middle : middle - k;
        size_t ranks = (size_t)(p->start[i + 1] - p->start[i]);
        /* mostly an interval for each rank */
        size_t end = of->intervals - t < ranks ? of->intervals : t + ranks;

        rank += (int64_t)ranks;
        if (end > t && of->rank[end - 1] >= rank) {
            end = dpq_ranks_first(of->rank, t, end, rank);
        }
        else if (end < of->intervals && of->rank[end] < rank) {
            end = dpq_ranks_first(of->rank, end, of->intervals, rank);
        }
        width[k] = span(of, t, end);
        t = end;
    }
}

/* The same as widths_of_intervals(): the intervals of ranks a, ..., b - 1 measure x_b - x_a. Where order was
 * promised and does not hold, none is below 0. */
static void
widths_between(const dpq_stray_problem *p, const dpq_stray_borders *at, double *width)
{
    for (size_t k = 0; k + 1 < 2 * p->cells; k++) {
        double size = at->points ? (double)(at->points[k + 1] - at->points[k])
                                 : at->numbers[k + 1] - at->numbers[k];

        width[k] = size > 0.0 ? size : 0.0;
    }
}

void
dpq_stray_ranks(const dpq_stray_problem *p, int64_t n, size_t j, int64_t *rank)
{
    const size_t cells = p->cells;
    const int64_t whole = p->whole[j];

    for (size_t i = 0; i < cells; i++) {
        int64_t below = whole - p->start[cells - i] + 1, above = whole + p->start[i + 1];

        rank[i] = below > 0 ? below : 0;
        rank[cells + i] = above < n + 1 ? above : n + 1;
    }
}

/* The weights of a level: of paths that were always inside, and of those that were not. */
typedef struct {
    double *inside, *strayed;
} row;

/* What sums keep on their way from a cell to the next one, and what is added of the cell's weight. */
typedef struct {
    double *keep, *here;
} moves;

/* What is kept from level to level, and what a level is made of.
 *
 * Weights may be far from each other, as wide gaps may gain as much as the way to them costs. So those of
 * each cell have a scale of their own, a power of two, which is about what had arrived there some levels ago.
 * What arrives at neighbors is alike, as it goes on from one to the other, and so scales are. */
typedef struct {
    size_t middle, nodes; /* the cell 0, and the cells of both sides */
    row at;
    row below, above; /* what comes from the cells on both sides */
    double *width;
    double *alone; /* 1 for cells of one rank, 0 for others */
    double *scale; /* powers of two of each cell */
    double *total; /* what has arrived at the last level */
    moves up, down;
} chain;

static chain
chain_of(const dpq_stray_problem *p, double *work)
{
    const size_t nodes = 2 * p->cells - 1;

    return (chain){.middle = p->cells - 1,
                   .nodes = nodes,
                   .at = {work, work + nodes},
                   .below = {work + 2 * nodes, work + 3 * nodes},
                   .above = {work + 4 * nodes, work + 5 * nodes},
                   .width = work + 6 * nodes,
                   .alone = work + 7 * nodes,
                   .scale = work + SCALE * nodes,
                   .total = work + 9 * nodes,
                   .up = {work + 10 * nodes, work + 11 * nodes},
                   .down = {work + 12 * nodes, work + 13 * nodes}};
}

/* Moves from a cell to the next one, whose scales go up by these powers of two. */
static inline void
rescale_move(const moves *f, size_t k, double power, double next)
{
    const double factor = dpq_wide_power((int64_t)(next - power));

    f->keep[k] *= factor;
    f->here[k] *= factor;
}

static void
rescale_moves(const chain *c, const double *power)
{
    for (size_t k = 0; k + 1 < c->nodes; k++) {
        rescale_move(&c->up, k, power[k], power[k + 1]);
        rescale_move(&c->down, k + 1, power[k + 1], power[k]);
    }
}

/* Scales become what has arrived. */
DPQ_VECTORIZED static void
adapt(const chain *c)
{
    double *power = c->total, *inside = c->at.inside, *strayed = c->at.strayed, *scale = c->scale;

    for (size_t k = 0; k < c->nodes; k++) {
        const int64_t above = dpq_wide_exponent(power[k]);
        const double factor = dpq_wide_power(above);

        inside[k] *= factor;
        strayed[k] *= factor;
        scale[k] += (double)above;
        power[k] = (double)above;
    }
    rescale_moves(c, power);
}

/* The sums that go from cell to cell: of what was always inside, and of what was not. */
typedef struct {
    double inside, strayed;
} passed;

/* On to the next cell from cell k, which had been sent the sums so far. */
static inline void
pass(const row *at, const row *sent, size_t k, double keep, double here, passed *sum)
{
    sent->inside[k] = sum->inside;
    sent->strayed[k] = sum->strayed;
    sum->inside = sum->inside * keep + at->inside[k] * here;
    sum->strayed = sum->strayed * keep + at->strayed[k] * here;
}

/* What the cells below and above each cell send there, both at once: each sum waits for the last. */
static void
send(const chain *c)
{
    const size_t last = c->nodes - 1;
    passed up = {0.0, 0.0}, down = {0.0, 0.0};

    for (size_t k = 0; k <= last; k++) {
        pass(&c->at, &c->below, k, c->up.keep[k], c->up.here[k], &up);
        pass(&c->at, &c->above, last - k, c->down.keep[last - k], c->down.here[last - k], &down);
    }
}

/* The next level's weights, whose target is ahead by a part of a rank: what arrives times widths, which are
 * multiples of a unit. What arrives outside of narrow windows has strayed: there cells are not `near`. */
DPQ_VECTORIZED static void
arrive(const chain *c, const dpq_stray_problem *p, double ahead, double unit, size_t first, size_t last,
       int near)
{
    const double up = exp(p->rate * ahead), down = exp(-p->rate * ahead);
    const double same = exp(-p->rate * fabs(ahead));
    const double *width = c->width, *alone = c->alone;
    const double *up_inside = c->below.inside, *up_strayed = c->below.strayed;
    const double *down_inside = c->above.inside, *down_strayed = c->above.strayed;
    double *at_inside = c->at.inside, *at_strayed = c->at.strayed, *total = c->total;

    for (size_t k = first; k < last; k++) {
        double stay = alone[k] > 0.0 ? same : 1.0, size = width[k] * unit;
        double inside = up_inside[k] * up + at_inside[k] * stay + down_inside[k] * down;
        double strayed = up_strayed[k] * up + at_strayed[k] * stay + down_strayed[k] * down;

        total[k] = inside + strayed + LEAST;
        at_inside[k] = near ? size * (inside + LEAST) : 0.0;
        at_strayed[k] = size * (near ? strayed + LEAST : strayed + inside + LEAST);
    }
}

/* The power of two that is above a number, and not by much; 0 of 0, and of what is not finite. */
static int
power_of(double x)
{
    int power = 0;

    if (x < INFINITY) {
        (void)frexp(x, &power);
    }
    return power;
}

/* Multiply numbers by a power of two: in steps if need be, as it may be beyond what float64 has. */
static void
scale(size_t n, double *x, int power)
{
    while (power != 0) {
        int step = power < -MOST_STEP ? -MOST_STEP : power > MOST_STEP ? MOST_STEP : power;
        double factor = ldexp(1.0, step);

        for (size_t k = 0; k < n; k++) {
            x[k] *= factor;
        }
        power -= step;
    }
}

/* Before the first level all is at v = 0, and has as far to each cell as a level inside. */
static void
begin(const dpq_stray_problem *p, const chain *c)
{
    for (size_t k = 0; k < c->nodes; k++) {
        size_t i = k > c->middle ? k - c->middle : c->middle - k;
        double part = k > c->middle ? -p->part[0] : p->part[0];
        double power = p->rate * (-(double)p->start[i] - part) / DPQ_LN2;
        double ranks = (double)(p->start[i + 1] - p->start[i]);

        c->scale[k] = floor(power);
        c->alone[k] = ranks == 1.0 ? 1.0 : 0.0;
        c->at.inside[k] = exp2(power - c->scale[k]);
        c->at.strayed[k] = 0.0;
        c->below.inside[k] = c->below.strayed[k] = 0.0;
        c->above.inside[k] = c->above.strayed[k] = 0.0;
        c->up.keep[k] = c->down.keep[k] = exp(-p->rate * ranks);
        c->up.here[k] = c->down.here[k] = exp(-p->rate);
    }
    rescale_moves(c, c->scale);
}

void
dpq_stray_levels(const dpq_stray_problem *p, const dpq_stray_intervals *intervals,
                 const dpq_stray_borders *borders, size_t first, size_t last, double *work,
                 int64_t *power)
{
    const chain c = chain_of(p, work);

    for (size_t j = first; j < last; j++) {
        /* cells that end within the window */
        const size_t cells = dpq_ranks_first(p->start + 1, 0, p->inside, p->window[j] + 2);
        const size_t near = c.middle + 1 - cells, far = c.middle + cells;
        double ahead = 0.0, each;
        int unit;

        if (j > 0) {
            send(&c);
            ahead = p->part[j] - p->part[j - 1];
        }
        else {
            *power = 0;
            begin(p, &c);
        }
        if (intervals) {
            widths_of_intervals(p, intervals, j, c.width);
        }
        else {
            widths_between(p, borders + (j - first), c.width);
        }
        unit = power_of(dpq_largest(c.nodes, c.width));
        *power += unit;
        if (unit < -MOST_STEP || unit > MOST_STEP) {
            scale(c.nodes, c.width, -unit);
            unit = 0;
        }
        each = ldexp(1.0, -unit);
        arrive(&c, p, ahead, each, 0, near, 0);
        arrive(&c, p, ahead, each, near, far, 1);
        arrive(&c, p, ahead, each, far, c.nodes, 0);
        if (dpq_smallest(c.nodes, c.total) < 1.0 / FAR || dpq_largest(c.nodes, c.total) > FAR) {
            adapt(&c);
        }
    }
}

/* With the way back to a total of v = 0. */
double
dpq_stray_log(const dpq_stray_problem *p, const double *work, int64_t power)
{
    const size_t middle = p->cells - 1, nodes = 2 * p->cells - 1;
    const double *weight = work + nodes, *scale = work + SCALE * nodes, last = p->part[p->levels - 1];
    double most = -INFINITY, total = 0.0;

    for (int sums = 0; sums < 2; sums++) {
        for (size_t k = 0; k < nodes; k++) {
            size_t i = k > middle ? k - middle : middle - k;
            double part = k > middle ? -last : last;
            double way = p->rate * (-(double)p->start[i] - part);
            double log_weight = log(weight[k] + LEAST) + scale[k] * DPQ_LN2 + way;

            if (sums) {
                total += exp(log_weight - most);
            }
            else {
                most = fmax(most, log_weight);
            }
        }
    }
    return total < INFINITY ? log(total) + most + (double)power * DPQ_LN2 : INFINITY;
}
