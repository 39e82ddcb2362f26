#include "stray.h"

#include <math.h>

#include "extremes.h"
#include "ranks.h"
#include "vector.h"

#define LN2 0.693147180559945309417
#define SLACK 2.0       /* nats that cells may cost all levels together, near the target */
#define MOST_TILT 32.0  /* nats for each level */
#define FIRST 0.25      /* shares of the tilt that weights have before the first level, */
#define LAST 0.75       /* and after the last one */
#define TOP 910         /* the power of two of a row's largest weight */
#define ROOM 50         /* or less, by so many */
#define MOST_STEP 1000  /* the largest power of two that is multiplied by at once */
#define LEAST 0x1p-940  /* added to every sum: more than underflow may have taken from it, some 2^-1075
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

/* The widths of all cells around target j, from the lowest to the highest, times what the potential of
 * a level has less than that of the one before. */
static void
widths_of_intervals(const dpq_stray_problem *p, const dpq_stray_intervals *of, size_t j,
                    const double *fade, double *width)
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
        width[k] = span(of, t, end) * fade[i];
        t = end;
    }
}

/* The same as widths_of_intervals(): the intervals of ranks a, ..., b - 1 measure x_b - x_a. Where order was
 * promised and does not hold, none is below 0. */
static void
widths_between(const dpq_stray_problem *p, const dpq_stray_borders *at, const double *fade,
               double *width)
{
    const size_t middle = p->cells - 1;

    for (size_t k = 0; k <= 2 * middle; k++) {
        size_t i = k > middle ? k - middle : middle - k;
        double size = at->points ? (double)(at->points[k + 1] - at->points[k])
                                 : at->numbers[k + 1] - at->numbers[k];

        width[k] = size > 0.0 ? size * fade[i] : 0.0;
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

/* Weights of level j are kept over their potential, exp(slack_i (j + 1) / m - c start[i]) for cell i on
 * both sides. That is about what paths there weigh, so that float64 holds all of them. */
typedef struct {
    double *away, *away_here; /* what a sum keeps from cell i to the next one farther out, and what
                               * is added of the cell's weight, */
    double *home, *home_here; /* and to the one nearer the target */
    double *fade;             /* by what more of the tilt is taken from level to level */
} moves;

/* What it costs to go to cell i and back, in nats: the tilt.
 *
 * Weights are those of all paths so far, over the potential exp(-c |v|), and less by a share of this. By
 * none of it they pay for the way back as they go it; and weights of paths that are far away, as wide gaps
 * draw them there, may be so large that float64 does not have those near the targets beside them. By all of
 * it they have paid when they leave; and what is added for underflow comes back at no cost, from everywhere,
 * with what wide gaps gain at all levels to come. So it is a small share at first, and a large one in the
 * end. */
static double
tilt_of(const dpq_stray_problem *p, size_t i)
{
    return fmin(2.0 * p->rate * (double)p->start[i], MOST_TILT * (double)p->levels);
}

/* The weights of a level: of paths that were always inside, and of those that were not. */
typedef struct {
    double *inside, *strayed;
} row;

/* What is kept from level to level, and what a level is made of. */
typedef struct {
    size_t middle, nodes; /* the cell 0, and the cells of both sides */
    row at;
    row below, above; /* what comes from the cells on both sides */
    double *width;
    double *alone; /* 1 for cells of one rank, 0 for others */
    moves moves;
} chain;

static chain
chain_of(const dpq_stray_problem *p, double *work)
{
    const size_t n = p->cells, nodes = 2 * n - 1;
    double *width = work + 6 * nodes, *room = width + 2 * nodes;

    return (chain){.middle = n - 1,
                   .nodes = nodes,
                   .at = {work, work + nodes},
                   .below = {work + 2 * nodes, work + 3 * nodes},
                   .above = {work + 4 * nodes, work + 5 * nodes},
                   .width = width,
                   .alone = width + nodes,
                   .moves = {room, room + n, room + 2 * n, room + 3 * n, room + 4 * n}};
}

/* Fill in the moves among cells of a level before the first. */
static void
begin_moves(const dpq_stray_problem *p, const moves *f)
{
    for (size_t i = 0; i < p->cells; i++) {
        double size = (double)(p->start[i + 1] - p->start[i]);
        double next = i > 0 ? (double)(p->start[i] - p->start[i - 1]) : 0.0;
        double tilt = tilt_of(p, i);
        double more = i + 1 < p->cells ? FIRST * (tilt_of(p, i + 1) - tilt) : 0.0;
        double less = i > 0 ? FIRST * (tilt - tilt_of(p, i - 1)) : 0.0;

        f->away[i] = exp(-more);
        f->away_here[i] = exp(p->rate * (size - 1.0) - more);
        f->home[i] = exp(less - p->rate * (size + next));
        f->home_here[i] = exp(less - p->rate * (1.0 + next));
        f->fade[i] = exp((FIRST - LAST) * tilt / (double)p->levels);
    }
}

/* Moves among cells of the next level. */
DPQ_VECTORIZED static void
next_level(size_t cells, const moves *f)
{
    for (size_t i = 0; i + 1 < cells; i++) {
        double outer = f->fade[i + 1] / f->fade[i];

        f->away[i] *= outer;
        f->away_here[i] *= outer;
    }
    for (size_t i = 1; i < cells; i++) {
        double inner = f->fade[i - 1] / f->fade[i];

        f->home[i] *= inner;
        f->home_here[i] *= inner;
    }
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
    const moves *f = &c->moves;
    const size_t middle = c->middle, last = 2 * c->middle;
    passed up = {0.0, 0.0}, down = {0.0, 0.0};

    for (size_t i = middle, k = 0; i > 0; i--, k++) {
        pass(&c->at, &c->below, k, f->home[i], f->home_here[i], &up);
        pass(&c->at, &c->above, last - k, f->home[i], f->home_here[i], &down);
    }
    for (size_t i = 0, k = middle; i <= middle; i++, k++) {
        pass(&c->at, &c->below, k, f->away[i], f->away_here[i], &up);
        pass(&c->at, &c->above, last - k, f->away[i], f->away_here[i], &down);
    }
}

/* The next level's weights, whose target is ahead by a part of a rank: what arrives times widths, which are
 * multiples of a unit. What arrives outside of narrow windows has strayed: there cells are not `near`. */
DPQ_VECTORIZED static void
arrive(const chain *c, double rate, double ahead, double unit, size_t first, size_t last, int near)
{
    const double up = exp(rate * ahead), down = exp(-rate * ahead);
    const double same = exp(-rate * fabs(ahead));
    const double *width = c->width, *alone = c->alone;
    const double *up_inside = c->below.inside, *up_strayed = c->below.strayed;
    const double *down_inside = c->above.inside, *down_strayed = c->above.strayed;
    double *at_inside = c->at.inside, *at_strayed = c->at.strayed;

    for (size_t k = first; k < last; k++) {
        double stay = alone[k] > 0.0 ? same : 1.0, size = width[k] * unit;
        double inside = up_inside[k] * up + at_inside[k] * stay + down_inside[k] * down;
        double strayed = up_strayed[k] * up + at_strayed[k] * stay + down_strayed[k] * down;

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
    begin_moves(p, &c->moves);
    for (size_t k = 0; k < c->nodes; k++) { /* exp(-c |v|) over the potential, tilted */
        size_t i = k > c->middle ? k - c->middle : c->middle - k;
        double part = p->rate * p->part[0];

        c->alone[k] = p->start[i + 1] - p->start[i] == 1 ? 1.0 : 0.0;
        c->at.inside[k] = exp((k > c->middle ? part : -part) - FIRST * tilt_of(p, i));
        c->at.strayed[k] = 0.0;
        c->below.inside[k] = c->below.strayed[k] = 0.0;
        c->above.inside[k] = c->above.strayed[k] = 0.0;
    }
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
        double ahead = 0.0, each, most;
        int unit;

        if (j > 0) {
            next_level(p->cells, &c.moves);
            send(&c);
            ahead = p->part[j] - p->part[j - 1];
        }
        else {
            *power = 0;
            begin(p, &c);
        }
        if (intervals) {
            widths_of_intervals(p, intervals, j, c.moves.fade, c.width);
        }
        else {
            widths_between(p, borders + (j - first), c.moves.fade, c.width);
        }
        unit = power_of(dpq_largest(c.nodes, c.width));
        *power += unit;
        if (unit < -MOST_STEP || unit > MOST_STEP) {
            scale(c.nodes, c.width, -unit);
            unit = 0;
        }
        each = ldexp(1.0, -unit);
        arrive(&c, p->rate, ahead, each, 0, near, 0);
        arrive(&c, p->rate, ahead, each, near, far, 1);
        arrive(&c, p->rate, ahead, each, far, c.nodes, 0);
        most = fmax(dpq_largest(c.nodes, c.at.inside), dpq_largest(c.nodes, c.at.strayed));
        unit = power_of(most) - TOP;
        if (most > 0.0 && most < INFINITY && (unit > 0 || unit <= -ROOM)) {
            scale(c.nodes, c.at.inside, -unit);
            scale(c.nodes, c.at.strayed, -unit);
            *power += unit;
        }
    }
}

double
dpq_stray_log(const dpq_stray_problem *p, const double *work, int64_t power)
{
    const size_t middle = p->cells - 1, nodes = 2 * p->cells - 1;
    const double *strayed = work + nodes, last = p->part[p->levels - 1];
    double total = 0.0;

    for (size_t k = 0; k < nodes; k++) { /* the way back to a total of v = 0 */
        size_t i = k > middle ? k - middle : middle - k;
        double part = k > middle ? -last : last;

        total += LEAST +
                 strayed[k] * exp(LAST * tilt_of(p, i) - p->rate * (2.0 * (double)p->start[i] + part));
    }
    return total < INFINITY ? log(total) + (double)power * LN2 : INFINITY;
}
