#include "passing.h"

#include <math.h>

#include "vector.h"
#include "wide.h"

#define BLOCK DPQ_PASSING_BLOCK
#define LEAST 0x1p-800   /* added to every sum, in its unit: more than underflow may have taken from it */
#define UNIT_OFF 0x1p100 /* units are changed once what a block holds is so far from 1, */
#define UNIT_STEP 128    /* by some times this power of two, so that neighbors mostly have the same */
#define CHORD 0.0861     /* log2(x) is no more above x - 1 than that, for 1 <= x <= 2 */
#define KNOWN 4          /* so many outputs of one cell are counted each, and more by a list or a bound */

#ifdef DPQ_VECTORS
#define LANES 4
#else
#define LANES 1
#endif

typedef double numbers DPQ_VECTOR(LANES);
typedef numbers stored DPQ_STORED;

/* Numbers of an array, or their place in it. */
#define AT(x) (*(stored *)(void *)(x))
#define OF(x) (*(const stored *)(const void *)(x))

/* What arrives at the cells of a level, before its own output is weighed. Each block has an exponent: numbers are
 * in units of a power of two. */
typedef struct {
    double *up, *down;          /* one output in the cell so far, by a step with the sign 1, or with -1; */
    double *two, *three, *more; /* and this is the second one, the third, or a later one */
    int64_t *exponent;
} arrivals;

/* One way through all levels. */
typedef struct {
    const dpq_passing_problem *problem;
    double bent; /* the largest factor of a bend */
    double *volume[3];
    double *gap; /* length m + 1: Q_0, what is between targets, and what is left after the last */
    size_t *from, *to, *heavy;
    double rest;
    arrivals at;
    double *leave_up, *leave_down; /* what goes on to steps with the sign 1, and with -1, in units of arrivals; */
    double *sum;                   /* of the former up to each cell, as weighed there, in units of their own; */
    int64_t *leave_exponent, *sum_exponent;
    double *list;  /* for each heavy cell, `more` by the level at which it was the fourth output; */
    size_t *since; /* from this level on */
} way;

static size_t
blocks_of(const dpq_passing_problem *p)
{
    return p->cells / BLOCK;
}

size_t
dpq_passing_room(const dpq_passing_problem *p)
{
    size_t doubles = 11 * p->cells + p->levels + 1 + p->heavies * p->levels;
    size_t places = 2 * p->levels + 2 * p->heavies;

    return doubles * sizeof(double) + 3 * blocks_of(p) * sizeof(int64_t) + places * sizeof(size_t);
}

static inline int64_t
larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The problem, or its mirror image: ranks and levels from the last ones on. Signs of steps stay, and where one
 * arrives it leaves: so bends change theirs, as distances from where cells stand do. */
static void
prepare(way *w, const dpq_passing_problem *p, int mirrored, void *work)
{
    const size_t m = p->levels, cells = p->cells, last = cells - 1;
    double *room = work, before = 0.0;

    w->problem = p;
    w->bent = exp(p->rate * (p->ranks - 1.0));
    for (int b = 0; b < 3; b++, room += cells) {
        const double *volume = p->volume[mirrored ? 2 - b : b];

        w->volume[b] = room;
        for (size_t k = 0; k < cells; k++) {
            room[k] = volume[mirrored ? last - k : k];
        }
    }
    w->at = (arrivals){room, room + cells, room + 2 * cells, room + 3 * cells, room + 4 * cells, NULL};
    w->leave_up = room + 5 * cells;
    w->leave_down = room + 6 * cells;
    w->sum = room + 7 * cells;
    w->gap = room + 8 * cells;
    w->list = w->gap + m + 1;
    w->at.exponent = (int64_t *)(void *)(w->list + p->heavies * m);
    w->leave_exponent = w->at.exponent + blocks_of(p);
    w->sum_exponent = w->leave_exponent + blocks_of(p);
    w->from = (size_t *)(void *)(w->sum_exponent + blocks_of(p));
    w->to = w->from + m;
    w->heavy = w->to + m;
    w->since = w->heavy + p->heavies;
    w->rest = mirrored ? -(p->rest + (double)last * p->ranks) : p->rest;
    for (size_t j = 0; j < m; j++) {
        const size_t i = mirrored ? m - 1 - j : j;
        const double target = mirrored ? -p->target[i] : p->target[i];

        w->from[j] = mirrored ? cells - p->to[i] : p->from[j];
        w->to[j] = mirrored ? cells - p->from[i] : p->to[j];
        w->gap[j] = target - before;
        before = target;
    }
    w->gap[m] = before;
    for (size_t i = 0; i < p->heavies; i++) {
        w->heavy[i] = mirrored ? last - p->heavy[p->heavies - 1 - i] : p->heavy[i];
        w->since[i] = SIZE_MAX;
    }
}

/* Before the first level all is at v = 0. */
static void
begin(const way *w)
{
    const dpq_passing_problem *p = w->problem;

    for (size_t b = w->from[0] / BLOCK; b < w->to[0] / BLOCK; b++) {
        const double first = (double)(b * BLOCK) * p->ranks + w->rest - w->gap[0];
        const double last = first + (BLOCK - 1) * p->ranks;
        const double nearest = first > 0.0 ? first : last < 0.0 ? -last : 0.0;
        const double power = UNIT_STEP * floor(-p->rate * nearest / DPQ_LN2 / UNIT_STEP);

        w->at.exponent[b] = (int64_t)power;
        for (size_t k = b * BLOCK; k < (b + 1) * BLOCK; k++) {
            const double v = (double)k * p->ranks + w->rest - w->gap[0];
            const double weight = exp2(-p->rate * fabs(v) / DPQ_LN2 - power) + LEAST;

            w->at.up[k] = v >= 0.0 ? weight : LEAST;
            w->at.down[k] = v >= 0.0 ? LEAST : weight;
            w->at.two[k] = w->at.three[k] = w->at.more[k] = 0.0;
        }
    }
}

/* What goes on from the cells of a block. */
static inline void
leave(const way *w, size_t b)
{
    const double bent = w->bent;
    const arrivals *at = &w->at;

    for (size_t k = b * BLOCK; k < (b + 1) * BLOCK; k += LANES) {
        const numbers up = OF(at->up + k), down = OF(at->down + k), volume = OF(w->volume[1] + k);
        const numbers run = (OF(at->two + k) + OF(at->three + k) + OF(at->more + k)) * volume;

        AT(w->leave_up + k) = up * volume + down * OF(w->volume[0] + k) + bent * run + LEAST;
        AT(w->leave_down + k) = up * OF(w->volume[2] + k) + down * volume + run + LEAST;
    }
    w->leave_exponent[b] = w->at.exponent[b];
}

static inline int
is_off(double x)
{
    return x > UNIT_OFF || x < 1.0 / UNIT_OFF;
}

/* By which power of two a unit is to be changed. */
static inline int64_t
unit_steps(double x)
{
    const int64_t power = dpq_wide_exponent(x);

    return (power + (power > 0 ? UNIT_STEP / 2 : -UNIT_STEP / 2)) / UNIT_STEP * UNIT_STEP;
}

/* What goes on from a row, and sums of what does upward, from its first cell on and beyond the last one to
 * `stop`. */
DPQ_VECTORIZED static void
leave_all(const way *w, size_t from, size_t to, size_t stop)
{
    const double keep = exp(-w->problem->rate * w->problem->ranks);
    int64_t unit = w->at.exponent[from / BLOCK];
    double sum = 0.0;

    for (size_t b = from / BLOCK; b * BLOCK < stop; b++) {
        int64_t next = unit;
        double scale;

        if (b * BLOCK < to) {
            leave(w, b);
            next = larger(w->leave_exponent[b], unit);
            sum *= dpq_wide_power_or_nothing(next - unit);
            scale = dpq_wide_power_or_nothing(next - w->leave_exponent[b]);
            for (size_t k = b * BLOCK; k < (b + 1) * BLOCK; k++) {
                sum = sum * keep + w->leave_up[k] * scale;
                w->sum[k] = sum;
            }
        }
        else {
            for (size_t k = b * BLOCK; k < (b + 1) * BLOCK; k++) {
                w->sum[k] = sum *= keep;
            }
        }
        w->sum_exponent[b] = unit = next;
        if (is_off(sum)) {
            next = unit_steps(sum);
            sum *= dpq_wide_power(next);
            unit += next;
        }
    }
}

/* Outputs that stay in their cells in block b go on there; old units, the weight of the step included, are
 * `scale` of new ones. */
static inline void
stay(const way *w, size_t b, double scale)
{
    const double bent = w->bent, point = w->problem->point;
    const arrivals *at = &w->at;

    for (size_t k = b * BLOCK; k < (b + 1) * BLOCK; k += LANES) {
        const numbers volume = OF(w->volume[1] + k), three = OF(at->three + k), two = OF(at->two + k);
        const numbers first = bent * OF(at->up + k) + OF(at->down + k);
        const numbers later = OF(at->more + k) * (volume + 4.0 * point) * (1.0 / 5.0);

        AT(at->more + k) = (three * (volume + 3.0 * point) * (1.0 / 4.0) + later) * scale + LEAST;
        AT(at->three + k) = two * (volume + 2.0 * point) * (1.0 / 3.0) * scale + LEAST;
        AT(at->two + k) = first * (volume + point) * 0.5 * scale + LEAST;
    }
}

/* The same of a heavy cell at level j, of which all outputs are counted; before stay(). */
static double
stay_in_heavy(const way *w, size_t i, size_t j, double scale)
{
    const size_t k = w->heavy[i];
    const double volume = w->volume[1][k], point = w->problem->point;
    double *list = w->list + i * w->problem->levels, sum = 0.0;

    if (w->since[i] == SIZE_MAX) {
        w->since[i] = j;
    }
    for (size_t level = w->since[i]; level < j; level++) {
        const double outputs = (double)(j - level + KNOWN);

        list[level] = list[level] * ((volume + (outputs - 1.0) * point) / outputs) * scale + LEAST;
        sum += list[level];
    }
    list[j] = w->at.three[k] * (volume + 3.0 * point) * (1.0 / 4.0) * scale + LEAST;
    return sum + list[j];
}

/* All that arrives at some cells, of all kinds together. */
#define ARRIVING(at, k) \
    ((OF((at)->up + (k)) + OF((at)->down + (k))) + \
     ((OF((at)->two + (k)) + OF((at)->three + (k))) + OF((at)->more + (k))))

static inline double
sum_of(const numbers *x)
{
    double sum = 0.0;

    for (size_t i = 0; i < LANES; i++) {
        sum += DPQ_LANE(*x, i);
    }
    return sum;
}

/* All that arrives in a block; */
static inline double
arriving(const arrivals *at, size_t b)
{
    numbers all = {0.0};

    for (size_t k = b * BLOCK; k < (b + 1) * BLOCK; k += LANES) {
        all += ARRIVING(at, k);
    }
    return sum_of(&all);
}

/* and the same times what outputs there measure. */
static inline double
measured(const way *w, size_t b)
{
    numbers all = {0.0};

    for (size_t k = b * BLOCK; k < (b + 1) * BLOCK; k += LANES) {
        all += ARRIVING(&w->at, k) * OF(w->volume[1] + k);
    }
    return sum_of(&all) + LEAST;
}

/* Other units for a block at level j, and for the lists of its heavy cells, `low`, ..., `high` - 1. */
static void
change_unit(const way *w, size_t b, size_t low, size_t high, size_t j, int64_t above)
{
    const double factor = dpq_wide_power(above);

    for (size_t k = b * BLOCK; k < (b + 1) * BLOCK; k++) {
        w->at.up[k] = w->at.up[k] * factor + LEAST;
        w->at.down[k] = w->at.down[k] * factor + LEAST;
        w->at.two[k] = w->at.two[k] * factor + LEAST;
        w->at.three[k] = w->at.three[k] * factor + LEAST;
        w->at.more[k] = w->at.more[k] * factor + LEAST;
    }
    for (; low < high; low++) {
        for (size_t level = w->since[low]; level < j; level++) {
            w->list[low * w->problem->levels + level] *= factor;
        }
    }
    w->at.exponent[b] += above;
}

/* Some numbers of a row by blocks, which are 0 elsewhere. */
typedef struct {
    const double *number;
    const int64_t *exponent;
    size_t first, last; /* blocks first, ..., last - 1 */
} row;

/* The largest exponent of the blocks low, ..., high - 1 of a row, or a unit if that is larger. */
static int64_t
unit_of(const row *r, ptrdiff_t low, ptrdiff_t high, int64_t unit)
{
    const ptrdiff_t first = (ptrdiff_t)r->first, last = (ptrdiff_t)r->last;

    for (ptrdiff_t b = low > first ? low : first; b < high && b < last; b++) {
        unit = larger(unit, r->exponent[b]);
    }
    return unit;
}

/* Those blocks, in a unit that is no smaller: in `number`, or where they are if they are in that unit.
 */
static inline const double *
read_blocks(const row *r, ptrdiff_t low, ptrdiff_t high, int64_t unit, double *number)
{
    double *const read = number;
    int are_there = low >= (ptrdiff_t)r->first && high <= (ptrdiff_t)r->last;

    for (ptrdiff_t b = low; are_there && b < high; b++) {
        are_there = r->exponent[b] == unit;
    }
    if (are_there) {
        return r->number + low * BLOCK;
    }
    for (ptrdiff_t b = low; b < high; b++, number += BLOCK) {
        const int inside = b >= (ptrdiff_t)r->first && b < (ptrdiff_t)r->last;
        const double scale = inside ? dpq_wide_power_or_nothing(unit - r->exponent[b]) : 0.0;
        const double *from = r->number + (inside ? b : (ptrdiff_t)r->first) * BLOCK;

        for (size_t i = 0; i < BLOCK; i += LANES) {
            AT(number + i) = OF(from + i) * scale;
        }
    }
    return read;
}

/* A step from level to level: it goes up by `steps` cells, or a little less. */
typedef struct {
    size_t steps;
    double stay;                     /* the weight of a step from a cell to itself, */
    double ahead;                    /* of one that is `steps` cells up, */
    double weigh[DPQ_PASSING_STEPS]; /* and of shorter ones, from the longest on */
} step;

static void
step_of(const dpq_passing_problem *p, double gap, step *to)
{
    const double cells = ceil(gap / p->ranks);

    to->steps = cells < DPQ_PASSING_STEPS ? (size_t)cells : DPQ_PASSING_STEPS;
    to->stay = exp(-p->rate * gap);
    to->ahead = exp(-p->rate * (cells * p->ranks - gap));
    for (size_t i = 1; i < to->steps; i++) {
        to->weigh[to->steps - 1 - i] = exp(-p->rate * (gap - (double)i * p->ranks));
    }
}

/* What arrives in a block of the next level, all but what stays there. */
static inline void
arrive(const way *w, size_t b, const step *to, const row *leaving, const row *sums, int64_t unit)
{
    const ptrdiff_t at = (ptrdiff_t)b, near = (ptrdiff_t)(to->steps + BLOCK - 2) / BLOCK;
    const ptrdiff_t far = (ptrdiff_t)(to->steps + BLOCK - 1) / BLOCK;
    const double *lowest, *sum;
    double number[DPQ_PASSING_STEPS + 2 * BLOCK], two[2 * BLOCK];

    lowest = read_blocks(leaving, at - near, at + 1, unit, number);
    lowest += (size_t)near * BLOCK + 1 - to->steps; /* steps - 1 cells below the first */
    sum = read_blocks(sums, at - far, at - far + 2, unit, two);
    sum += (size_t)far * BLOCK - to->steps;
    for (size_t t = 0; t < BLOCK; t += LANES) {
        numbers down = {0.0};

        for (size_t i = 0; i + 1 < to->steps; i++) {
            down += OF(lowest + i + t) * to->weigh[i];
        }
        AT(w->at.up + b * BLOCK + t) = OF(sum + t) * to->ahead + LEAST;
        AT(w->at.down + b * BLOCK + t) = down + LEAST;
    }
}

/* On from level j to the next one. */
DPQ_VECTORIZED static void
go_on(const way *w, size_t j)
{
    const size_t from = w->from[j], end = w->to[j], last = w->to[j + 1];
    const size_t first_block = from / BLOCK, end_block = end / BLOCK;
    size_t stop = end, heavy = 0, next;
    step to;
    row leaving, sums;

    step_of(w->problem, w->gap[j + 1], &to);
    if (last > end + to.steps) {
        stop = last - to.steps;
    }
    leave_all(w, from, end, stop);
    leaving = (row){w->leave_down, w->leave_exponent, first_block, end_block};
    sums = (row){w->sum, w->sum_exponent, first_block, (stop + BLOCK - 1) / BLOCK};
    for (size_t b = w->from[j + 1] / BLOCK; b < last / BLOCK; b++, heavy = next) {
        const ptrdiff_t at = (ptrdiff_t)b, below = (ptrdiff_t)(to.steps + BLOCK - 1) / BLOCK;
        int64_t unit = unit_of(&sums, at - below, at - below + 2,
                               unit_of(&leaving, at - below, at + 1, INT64_MIN));
        double more[BLOCK], all;

        if (unit == INT64_MIN) { /* nothing arrives */
            unit = w->leave_exponent[end_block - 1];
        }
        while (heavy < w->problem->heavies && w->heavy[heavy] < b * BLOCK) {
            heavy++;
        }
        next = heavy;
        if (b < end_block) {
            const double scale = to.stay * dpq_wide_power_or_nothing(unit - w->at.exponent[b]);

            for (; next < w->problem->heavies && w->heavy[next] < (b + 1) * BLOCK; next++) {
                more[next - heavy] = stay_in_heavy(w, next, j, scale);
            }
            stay(w, b, scale);
            for (size_t i = heavy; i < next; i++) {
                w->at.more[w->heavy[i]] = more[i - heavy];
            }
        }
        else {
            for (size_t k = b * BLOCK; k < (b + 1) * BLOCK; k++) {
                w->at.two[k] = w->at.three[k] = w->at.more[k] = 0.0;
            }
        }
        arrive(w, b, &to, &leaving, &sums, unit);
        w->at.exponent[b] = unit;
        all = arriving(&w->at, b);
        if (is_off(all)) {
            change_unit(w, b, heavy, next, j + 1, unit_steps(all));
        }
    }
}

/* ln of all, after the last level. */
static double
log_of_all(const way *w)
{
    const dpq_passing_problem *p = w->problem;
    const size_t last = p->levels - 1;
    dpq_wide all = DPQ_WIDE_ZERO;

    for (size_t b = w->from[last] / BLOCK; b < w->to[last] / BLOCK; b++) {
        leave(w, b);
    }
    for (size_t k = w->from[last]; k < w->to[last]; k++) {
        const double v = (double)k * p->ranks + w->rest - w->gap[p->levels];
        const double weight = v <= 0.0 ? w->leave_up[k] : w->leave_down[k];

        all = dpq_wide_add(all, dpq_wide_mul(dpq_wide_of(weight, w->leave_exponent[k / BLOCK]),
                                             dpq_wide_exp(p->rate, fabs(v))));
    }
    return dpq_wide_log(all, 0);
}

/* A little more than ln of a number, by a chord's distance from log2; x > 0 and normal. */
static inline double
log_above(double x, int64_t exponent)
{
    const int64_t power = dpq_wide_exponent(x);
    const double digits = x * dpq_wide_power(power); /* in [1, 2) */

    return ((double)(power + exponent) + (digits - 1.0) + CHORD) * DPQ_LN2;
}

/* No less in float32. */
static inline float
rounded_up(double x)
{
    return (float)(x + fabs(x) * 0x1p-23);
}

/* The bounds for a level, by what arrives at blocks; or with what arrives there in the mirror image. */
DPQ_VECTORIZED static void
bound(const way *w, size_t j, float *log_arriving)
{
    for (size_t b = w->from[j] / BLOCK; b < w->to[j] / BLOCK; b++) {
        log_arriving[b] = rounded_up(log_above(arriving(&w->at, b), w->at.exponent[b]));
    }
}

DPQ_VECTORIZED static void
bound_mirrored(const way *w, size_t j, double log_all, float *log_passing)
{
    const double more = log(w->bent) - log_all;

    for (size_t b = w->from[j] / BLOCK; b < w->to[j] / BLOCK; b++) {
        float *passing = log_passing + (blocks_of(w->problem) - 1 - b);

        *passing = rounded_up((double)*passing + log_above(measured(w, b), w->at.exponent[b]) + more);
    }
}

double
dpq_passing_log(const dpq_passing_problem *p, void *work, float *log_passing)
{
    const size_t m = p->levels, blocks = blocks_of(p);
    double log_all;
    way w;

    for (size_t i = 0; i < m * blocks; i++) {
        log_passing[i] = -INFINITY;
    }
    prepare(&w, p, 0, work);
    begin(&w);
    for (size_t j = 0; j < m; j++) {
        bound(&w, j, log_passing + j * blocks);
        if (j + 1 < m) {
            go_on(&w, j);
        }
    }
    log_all = log_of_all(&w);
    prepare(&w, p, 1, work);
    begin(&w);
    for (size_t j = 0; j < m; j++) {
        bound_mirrored(&w, j, log_all, log_passing + (m - 1 - j) * blocks);
        if (j + 1 < m) {
            go_on(&w, j);
        }
    }
    return log_all;
}
