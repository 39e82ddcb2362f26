#include "stray.h"

#include <math.h>

#include "ranks.h"
#include "vector.h"

#define LN2 0.693147180559945309417
#define SLACK 2.0       /* nats that inner cells may cost all levels together */
#define SHARE 0.75      /* and outer ones, of what a path pays to get there and back */
#define MOST_SLACK 32.0 /* nats for each level */
#define TOP 850         /* the power of two of a row's largest weight */
#define LEAST 0x1p-1000 /* added to every sum: more than underflow may have taken from it, some 2^-1075
                         * for each of 2^20 cells, times exp(DPQ_STRAY_WIDEST) and exp(c) */

size_t
dpq_stray_cells(int64_t window, int64_t reach, double rate, size_t m, size_t *inside,
                int64_t *start)
{
    int64_t at = 0;
    size_t cells = 0;

    *inside = 0;
    while (at <= reach) {
        double outside = at > window ? (double)(at - window) : 0.0;
        double slack = SLACK + 2.0 * SHARE * rate * outside;
        double size = 1.0 + fmin(slack / (double)m, DPQ_STRAY_WIDEST) / rate;
        int64_t end = at <= window ? window + 1 : reach + 1; /* of this kind of cells */

        *inside += at <= window;
        if (start) {
            start[cells] = at;
        }
        at = at == 0 ? 1 : size < (double)(end - at) ? at + (int64_t)size : end;
        cells++;
    }
    if (start) {
        start[cells] = at;
    }
    return cells;
}

/* Measure of the intervals a, ..., b - 1 and of all between them. */
static double
span(const dpq_stray_problem *p, size_t a, size_t b)
{
    if (a == b) {
        return 0.0;
    }
    return (p->points ? (double)(p->points[b - 1] - p->points[a])
                      : p->numbers[b - 1] - p->numbers[a]) +
           p->width[b - 1];
}

/* The widths of all cells around target j, from the lowest to the highest, times what the potential of
 * a level has less than that of the one before. */
static void
widths(const dpq_stray_problem *p, size_t j, const double *fade, double *width)
{
    const size_t middle = p->cells - 1;
    int64_t rank = p->whole[j] - p->start[p->cells] + 1;
    size_t t = dpq_ranks_first(p->rank, 0, p->intervals, rank);

    for (size_t k = 0; k <= 2 * middle; k++) {
        size_t i = k > middle ? k - middle : middle - k;
        size_t ranks = (size_t)(p->start[i + 1] - p->start[i]);
        /* mostly an interval for each rank */
        size_t end = p->intervals - t < ranks ? p->intervals : t + ranks;

        rank += (int64_t)ranks;
        if (end > t && p->rank[end - 1] >= rank) {
            end = dpq_ranks_first(p->rank, t, end, rank);
        }
        else if (end < p->intervals && p->rank[end] < rank) {
            end = dpq_ranks_first(p->rank, end, p->intervals, rank);
        }
        width[k] = span(p, t, end) * fade[i];
        t = end;
    }
}

/* Weights of level j are kept over their potential, exp(slack_i (j + 1) / m - c start[i]) for cell i on
 * both sides. That is about what paths there weigh, so that float64 holds all of them. */
typedef struct {
    double *away, *away_here; /* what a sum keeps from cell i to the next one farther out, and what
                               * is added of the cell's weight, */
    double *home, *home_here; /* and to the one nearer the target */
    double *fade;             /* exp(-slack_i / m) */
} moves;

/* What cells may cost all levels together, at the nearer end of cell i: here 0 inside. */
static double
slack_of(const dpq_stray_problem *p, size_t i)
{
    int64_t outside = p->start[i] - (p->start[p->inside] - 1);
    double slack = outside > 0 ? 2.0 * SHARE * p->rate * (double)outside : 0.0;

    return fmin(slack, MOST_SLACK * (double)p->levels);
}

/* The weights of a level: of paths that were always inside, and of those that were not. */
typedef struct {
    double *inside, *strayed;
} row;

/* What is kept from level to level, and the sums and widths of one. */
typedef struct {
    size_t middle, nodes; /* the cell 0, and the cells of both sides */
    row at, sums;
    double *width;
    moves moves;
} chain;

static chain
chain_of(const dpq_stray_problem *p, double *work)
{
    const size_t n = p->cells, nodes = 2 * n - 1;
    double *width = work + 4 * nodes, *room = width + nodes;

    return (chain){.middle = n - 1,
                   .nodes = nodes,
                   .at = {work, work + nodes},
                   .sums = {work + 2 * nodes, work + 3 * nodes},
                   .width = width,
                   .moves = {room, room + n, room + 2 * n, room + 3 * n, room + 4 * n}};
}

/* Fill in the moves among cells of a level before the first. */
static void
begin_moves(const dpq_stray_problem *p, const moves *f)
{
    for (size_t i = 0; i < p->cells; i++) {
        double size = (double)(p->start[i + 1] - p->start[i]);
        double next = i > 0 ? (double)(p->start[i] - p->start[i - 1]) : 0.0;

        f->away[i] = 1.0;
        f->away_here[i] = exp(p->rate * (size - 1.0));
        f->home[i] = exp(-p->rate * (size + next));
        f->home_here[i] = exp(-p->rate * (1.0 + next));
        f->fade[i] = exp(-slack_of(p, i) / (double)p->levels);
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

/* What the cells above each cell send there. */
static void
sums_from_above(const dpq_stray_problem *p, const moves *f, const row *r, row *sums)
{
    const size_t middle = p->cells - 1;
    double inside = 0.0, strayed = 0.0;

    for (size_t i = middle, k = 2 * middle; i > 0; i--, k--) {
        sums->inside[k] = inside;
        sums->strayed[k] = strayed;
        inside = inside * f->home[i] + r->inside[k] * f->home_here[i];
        strayed = strayed * f->home[i] + r->strayed[k] * f->home_here[i];
    }
    for (size_t i = 0, k = middle; i <= middle; i++, k--) {
        sums->inside[k] = inside;
        sums->strayed[k] = strayed;
        inside = inside * f->away[i] + r->inside[k] * f->away_here[i];
        strayed = strayed * f->away[i] + r->strayed[k] * f->away_here[i];
    }
}

/* From the weights of a level to the sums that arrive at the next one, whose target is ahead by a part
 * of a rank. `above` holds what comes from above, and then the result. */
static void
arrive(const dpq_stray_problem *p, const moves *f, double ahead, const row *r, row *above)
{
    const size_t middle = p->cells - 1;
    const double up = exp(p->rate * ahead), down = exp(-p->rate * ahead);
    const double same = exp(-p->rate * fabs(ahead));
    double inside = 0.0, strayed = 0.0;

    for (size_t i = middle, k = 0; i > 0; i--, k++) {
        double stay = p->start[i + 1] - p->start[i] > 1 ? 1.0 : same;

        above->inside[k] = inside * up + r->inside[k] * stay + above->inside[k] * down;
        above->strayed[k] = strayed * up + r->strayed[k] * stay + above->strayed[k] * down;
        inside = inside * f->home[i] + r->inside[k] * f->home_here[i];
        strayed = strayed * f->home[i] + r->strayed[k] * f->home_here[i];
    }
    for (size_t i = 0, k = middle; i <= middle; i++, k++) {
        double stay = p->start[i + 1] - p->start[i] > 1 ? 1.0 : same;

        above->inside[k] = inside * up + r->inside[k] * stay + above->inside[k] * down;
        above->strayed[k] = strayed * up + r->strayed[k] * stay + above->strayed[k] * down;
        inside = inside * f->away[i] + r->inside[k] * f->away_here[i];
        strayed = strayed * f->away[i] + r->strayed[k] * f->away_here[i];
    }
}

/* Sums times widths; what arrives outside of narrow windows has strayed. */
DPQ_VECTORIZED static void
weigh(size_t nodes, size_t first, size_t last, const double *width, const row *sums, row *r)
{
    for (size_t k = 0; k < nodes; k++) {
        r->inside[k] = 0.0;
        r->strayed[k] = width[k] * (sums->strayed[k] + sums->inside[k] + LEAST);
    }
    for (size_t k = first; k < last; k++) {
        r->inside[k] = width[k] * (sums->inside[k] + LEAST);
        r->strayed[k] = width[k] * (sums->strayed[k] + LEAST);
    }
}

/* Scale numbers by a power of two, so that the largest is below 2^to and not by much. Returns the power
 * of two that they lost. */
DPQ_VECTORIZED static int
scale(size_t n, double *x, double *y, int to)
{
    double largest = 0.0, factor;
    int power;

    for (size_t k = 0; k < n; k++) {
        largest = x[k] > largest ? x[k] : largest;
    }
    for (size_t k = 0; y && k < n; k++) {
        largest = y[k] > largest ? y[k] : largest;
    }
    (void)frexp(largest, &power);
    if (largest == 0.0 || !(largest < INFINITY)) {
        return 0;
    }
    /* in two steps: a power may be beyond what float64 has */
    for (int step = 0; step < 2; step++) {
        int half = step == 0 ? (to - power) / 2 : (to - power) - (to - power) / 2;

        factor = ldexp(1.0, half);
        for (size_t k = 0; k < n; k++) {
            x[k] *= factor;
        }
        for (size_t k = 0; y && k < n; k++) {
            y[k] *= factor;
        }
    }
    return power - to;
}

void
dpq_stray_levels(const dpq_stray_problem *p, size_t first, size_t last, double *work, int64_t *power)
{
    chain c = chain_of(p, work);
    row *sums = &c.sums;

    for (size_t j = first; j < last; j++) {
        if (j > 0) {
            next_level(p->cells, &c.moves);
            sums_from_above(p, &c.moves, &c.at, sums);
            arrive(p, &c.moves, p->part[j] - p->part[j - 1], &c.at, sums);
        }
        else {
            *power = 0;
            begin_moves(p, &c.moves);
            for (size_t k = 0; k < c.nodes; k++) { /* exp(-c |v|) over the potential */
                sums->inside[k] = exp(k > c.middle ? p->rate * p->part[0] : -p->rate * p->part[0]);
                sums->strayed[k] = 0.0;
            }
        }
        widths(p, j, c.moves.fade, c.width);
        *power += scale(c.nodes, c.width, NULL, 0);
        weigh(c.nodes, c.middle + 1 - p->inside, c.middle + p->inside, c.width, sums, &c.at);
        *power += scale(c.nodes, c.at.inside, c.at.strayed, TOP);
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
                 strayed[k] * exp(slack_of(p, i) - p->rate * (2.0 * (double)p->start[i] + part));
    }
    return total < INFINITY ? log(total) + (double)power * LN2 : INFINITY;
}
