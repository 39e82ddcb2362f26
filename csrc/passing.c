#include "passing.h"

#include <math.h>
#include <string.h>

#include "vector.h"
#include "wide.h"

#define BLOCK DPQ_PASSING_BLOCK
#define LEAST 0x1p-800   /* added to every sum, in its unit: more than underflow may have taken from it, some
                          * 2^-1074 for each of 2^20 cells, times exp(DPQ_PASSING_APART) where sums grow */
#define UNIT_OFF 0x1p100 /* units are changed once what a block holds is so far from 1, */
#define UNIT_STEP 128    /* by some times this power of two, so that neighbors mostly have the same */
#define CHORD 0.0861     /* log2(x) is no more above x - 1 than that, for 1 <= x <= 2 */
#define KNOWN 4          /* so many outputs of one cell are counted each, and more by a list or a bound */
#define MOST_TAPS 15     /* up to so many cells below are weighed each */

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

/* Numbers of a level's row, by blocks, that have an exponent each. */
typedef struct {
    double *number;
    int64_t *exponent;
} blocks;

/* Powers of exp(c S), the weight of a step that is a cell longer, and how many cells it is longer by. */
typedef struct {
    double less[BLOCK + 1], more[BLOCK + 1];
} powers;

/* One way through all levels. */
typedef struct {
    const dpq_passing_problem *problem;
    double bent; /* the largest factor of a bend */
    double *volume[3];
    double *gap; /* length m + 1: Q_0, what is between targets, and what is left after the last */
    size_t *from, *to, *heavy;
    double rest;
    arrivals at;
    powers by; /* how many cells */
    double *leave_up, *leave_down; /* what goes on to steps with the sign 1, and with -1, in units of arrivals, */
    int64_t *leave_exponent;
    blocks below;          /* of the former the sum up to each cell, as weighed there; */
    blocks suffix, prefix; /* of the latter the sums from each cell on up to a multiple of C, and from there on
                            * up to before each cell */
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
    size_t doubles = 13 * p->cells + p->levels + 1 + p->heavies * p->levels;
    size_t places = 2 * p->levels + 2 * p->heavies;

    return doubles * sizeof(double) + 5 * blocks_of(p) * sizeof(int64_t) + places * sizeof(size_t);
}

size_t
dpq_passing_longest(const dpq_passing_problem *p)
{
    size_t longest = 0;

    for (size_t j = 0; j < p->levels; j++) {
        const size_t cells = p->to[j] - p->from[j];

        longest = cells / BLOCK > longest ? cells / BLOCK : longest;
    }
    return longest;
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
    w->below.number = room + 7 * cells;
    w->suffix.number = room + 8 * cells;
    w->prefix.number = room + 9 * cells;
    w->gap = room + 10 * cells;
    w->list = w->gap + m + 1;
    w->at.exponent = (int64_t *)(void *)(w->list + p->heavies * m);
    w->leave_exponent = w->at.exponent + blocks_of(p);
    w->below.exponent = w->leave_exponent + blocks_of(p);
    w->suffix.exponent = w->below.exponent + blocks_of(p);
    w->prefix.exponent = w->suffix.exponent + blocks_of(p);
    w->from = (size_t *)(void *)(w->prefix.exponent + blocks_of(p));
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
    for (int i = 0; i <= BLOCK; i++) {
        w->by.less[i] = exp(-p->rate * p->ranks * i);
        w->by.more[i] = exp(p->rate * p->ranks * i);
    }
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

/* What goes on from the cells of some blocks. */
DPQ_VECTORIZED static void
leave(const way *w, size_t first, size_t end)
{
    const double bent = w->bent;
    const arrivals *at = &w->at;

    for (size_t k = first * BLOCK; k < end * BLOCK; k += LANES) {
        const numbers up = OF(at->up + k), down = OF(at->down + k), volume = OF(w->volume[1] + k);
        const numbers run = (OF(at->two + k) + OF(at->three + k) + OF(at->more + k)) * volume;

        AT(w->leave_up + k) = up * volume + down * OF(w->volume[0] + k) + bent * run + LEAST;
        AT(w->leave_down + k) = up * OF(w->volume[2] + k) + down * volume + run + LEAST;
    }
    memcpy(w->leave_exponent + first, at->exponent + first, (end - first) * sizeof(int64_t));
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

/* A sum that goes from block to block, in a unit of its own. */
typedef struct {
    double sum;
    int64_t unit;
} passed;

/* Its unit, where a block's numbers are added: at least theirs. They are to be multiplied by what is returned. */
static inline double
meet(passed *p, int64_t exponent)
{
    const int64_t unit = larger(exponent, p->unit);

    p->sum *= dpq_wide_power_or_nothing(unit - p->unit);
    p->unit = unit;
    return dpq_wide_power_or_nothing(unit - exponent);
}

static inline void
part(passed *p)
{
    if (p->sum > 0.0 && is_off(p->sum)) {
        const int64_t power = unit_steps(p->sum);

        p->sum *= dpq_wide_power(power);
        p->unit += power;
    }
}

/* A step from level to level: with the sign 1 it goes up by `steps` cells or more. Shorter ones go up by one of as
 * many as there are `taps`, or by more: by one of `chunk` numbers, in whole blocks. */
typedef struct {
    size_t steps, taps, chunk;
    double stay;             /* the weight of a step from a cell to itself, */
    double ahead;            /* of one that is `steps` cells up, */
    double longest;          /* of the longest one of those that are shorter, */
    double shortest;         /* of one that goes up by as many as there are taps, */
    double weigh[MOST_TAPS]; /* and of those that go up by no more, from the longest on */
} step;

static void
step_of(const dpq_passing_problem *p, double gap, step *to)
{
    const double cells = ceil(gap / p->ranks);
    const size_t shorter = (size_t)cells - 1;

    to->steps = (size_t)cells;
    to->taps = shorter <= MOST_TAPS ? shorter : shorter % BLOCK;
    to->chunk = shorter - to->taps;
    to->stay = exp(-p->rate * gap);
    to->ahead = exp(-p->rate * (cells * p->ranks - gap));
    to->longest = exp(-p->rate * (gap - (cells - 1.0) * p->ranks));
    to->shortest = exp(-p->rate * (gap - (double)to->taps * p->ranks));
    for (size_t i = 1; i <= to->taps; i++) {
        to->weigh[to->taps - i] = exp(-p->rate * (gap - (double)i * p->ranks));
    }
}

/* The sums of what goes on upward: of some blocks of a row up to each of their cells, and beyond to `stop`. Here
 * and below, a block's own sums do not wait for those of others. */
DPQ_VECTORIZED static void
sum_below(const way *w, size_t first, size_t end, size_t stop)
{
    const double *less = w->by.less;
    passed all = {0.0, w->leave_exponent[first]};

    for (size_t b = first; b < stop; b++) {
        const double *leave = w->leave_up + b * BLOCK;
        const double scale = b < end ? meet(&all, w->leave_exponent[b]) : 0.0;
        double *sum = w->below.number + b * BLOCK, own = 0.0;

        for (size_t t = 0; t < BLOCK; t++) {
            sum[t] = own = own * less[1] + (b < end ? leave[t] * scale : 0.0);
        }
        for (size_t t = 0; t < BLOCK; t++) {
            sum[t] += all.sum * less[t + 1];
        }
        w->below.exponent[b] = all.unit;
        all.sum = own + all.sum * less[BLOCK];
        part(&all);
    }
}

/* The sums of what goes on to shorter steps, from each cell of some blocks on up to before the next multiple of a
 * chunk from the first one on. */
DPQ_VECTORIZED static void
sum_suffixes(const way *w, size_t first, size_t end, const step *by)
{
    const size_t chunk = by->chunk / BLOCK;
    const double *less = w->by.less;
    passed all = {0.0, 0};

    for (size_t b = end; b-- > first;) {
        double own = 0.0, *sum = w->suffix.number + b * BLOCK, scale;
        const double *leave = w->leave_down + b * BLOCK;

        if (b + 1 == end || (b + 1 - first) % chunk == 0) {
            all = (passed){0.0, w->leave_exponent[b]};
        }
        scale = meet(&all, w->leave_exponent[b]) * by->longest;
        for (size_t t = BLOCK; t-- > 0;) {
            sum[t] = own = own * less[1] + leave[t] * scale;
        }
        for (size_t t = 0; t < BLOCK; t++) {
            sum[t] += all.sum * less[BLOCK - t];
        }
        w->suffix.exponent[b] = all.unit;
        all.sum = own + all.sum * less[BLOCK];
        part(&all);
    }
}

/* And from there on up to before each cell, also of the blocks beyond to `stop`. */
DPQ_VECTORIZED static void
sum_prefixes(const way *w, size_t first, size_t end, size_t stop, const step *by)
{
    const size_t chunk = by->chunk / BLOCK;
    const double *more = w->by.more;
    passed all = {0.0, w->leave_exponent[first]};

    for (size_t b = first; b < stop; b++) {
        const double *leave = w->leave_down + b * BLOCK;
        const double scale = b < end ? meet(&all, w->leave_exponent[b]) * by->shortest : 0.0;
        double *sum = w->prefix.number + b * BLOCK, own = 0.0;

        if ((b - first) % chunk == 0) {
            all.sum = 0.0;
        }
        for (size_t t = 0; t < BLOCK; t++) {
            sum[t] = own;
            own = (own + (b < end ? leave[t] * scale : 0.0)) * more[1];
        }
        for (size_t t = 0; t < BLOCK; t++) {
            sum[t] += all.sum * more[t];
        }
        w->prefix.exponent[b] = all.unit;
        all.sum = own + all.sum * more[BLOCK];
        part(&all);
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

/* Other units for a block at level j, and for the lists of its heavy cells: those from one on, if any. */
static void
change_unit(const way *w, size_t b, size_t heavy, size_t j, int64_t above)
{
    const double factor = dpq_wide_power(above);

    for (size_t k = b * BLOCK; k < (b + 1) * BLOCK; k++) {
        w->at.up[k] = w->at.up[k] * factor + LEAST;
        w->at.down[k] = w->at.down[k] * factor + LEAST;
        w->at.two[k] = w->at.two[k] * factor + LEAST;
        w->at.three[k] = w->at.three[k] * factor + LEAST;
        w->at.more[k] = w->at.more[k] * factor + LEAST;
    }
    for (; heavy < w->problem->heavies && w->heavy[heavy] < (b + 1) * BLOCK; heavy++) {
        for (size_t level = w->since[heavy]; level < j; level++) {
            w->list[heavy * w->problem->levels + level] *= factor;
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

/* Those blocks, in a unit that is no smaller. */
static void
copy_blocks(const row *r, ptrdiff_t low, ptrdiff_t high, int64_t unit, double *number)
{
    for (ptrdiff_t b = low; b < high; b++, number += BLOCK) {
        const int inside = b >= (ptrdiff_t)r->first && b < (ptrdiff_t)r->last;
        const double scale = inside ? dpq_wide_power_or_nothing(unit - r->exponent[b]) : 0.0;
        const double *from = r->number + (inside ? b : (ptrdiff_t)r->first) * BLOCK;

        for (size_t i = 0; i < BLOCK; i++) {
            number[i] = from[i] * scale;
        }
    }
}

/* The same in `number`, or where they are if they are in that unit. */
static inline const double *
read_blocks(const row *r, ptrdiff_t low, ptrdiff_t high, int64_t unit, double *number)
{
    int are_there = low >= (ptrdiff_t)r->first && high <= (ptrdiff_t)r->last;

    for (ptrdiff_t b = low; are_there && b < high; b++) {
        are_there = r->exponent[b] == unit;
    }
    if (are_there) {
        return r->number + low * BLOCK;
    }
    copy_blocks(r, low, high, unit, number);
    return number;
}

/* What arrives at a level: of what leaves cells, and of its sums. */
typedef struct {
    step by;
    row leaving, below, suffix, prefix;
} step_from;

/* How many blocks hold so many cells. */
static inline ptrdiff_t
whole_blocks(size_t cells)
{
    return (ptrdiff_t)((cells + BLOCK - 1) / BLOCK);
}

/* The unit of the cells `down` below those of block b, or a unit if that is larger; */
static inline int64_t
unit_below(const row *r, ptrdiff_t b, size_t down, int64_t unit)
{
    const ptrdiff_t low = b - whole_blocks(down);

    return unit_of(r, low, low + 2, unit);
}

/* these cells, in a unit that is no smaller; */
static inline const double *
cells_below(const row *r, ptrdiff_t b, size_t down, int64_t unit, double *two)
{
    const ptrdiff_t low = b - whole_blocks(down);

    return read_blocks(r, low, low + 2, unit, two) + ((size_t)(b - low) * BLOCK - down);
}

/* and the unit of all that arrives in a block, but for what stays there; INT64_MIN if nothing does. */
static int64_t
unit_at(const step_from *s, ptrdiff_t b)
{
    int64_t unit = unit_of(&s->leaving, b - whole_blocks(s->by.taps), b + 1, INT64_MIN);

    unit = unit_below(&s->below, b, s->by.steps, unit);
    if (s->by.chunk > 0) {
        unit = unit_below(&s->suffix, b, s->by.steps - 1, unit);
        unit = unit_below(&s->prefix, b, s->by.taps, unit);
    }
    return unit;
}

/* What arrives at the next level in blocks whose units are known, all but what stays there. */
DPQ_VECTORIZED static void
arrive(const way *w, size_t first, size_t end, const step_from *s)
{
    const ptrdiff_t near = whole_blocks(s->by.taps);

    for (size_t b = first; b < end; b++) {
        const ptrdiff_t at = (ptrdiff_t)b;
        const int64_t unit = w->at.exponent[b];
        double number[MOST_TAPS + 2 * BLOCK], two[3][2 * BLOCK];
        double *up = w->at.up + b * BLOCK, *down = w->at.down + b * BLOCK;
        const double *below = cells_below(&s->below, at, s->by.steps, unit, two[0]);
        const double *lowest = read_blocks(&s->leaving, at - near, at + 1, unit, number);

        lowest += (size_t)near * BLOCK - s->by.taps;
        for (size_t t = 0; t < BLOCK; t += LANES) {
            numbers sum = {0.0};

            for (size_t i = 0; i < s->by.taps; i++) {
                sum += OF(lowest + i + t) * s->by.weigh[i];
            }
            AT(up + t) = OF(below + t) * s->by.ahead + LEAST;
            AT(down + t) = sum + LEAST;
        }
        if (s->by.chunk > 0) {
            const double *suffix = cells_below(&s->suffix, at, s->by.steps - 1, unit, two[1]);
            const double *prefix = cells_below(&s->prefix, at, s->by.taps, unit, two[2]);

            for (size_t t = 0; t < BLOCK; t += LANES) {
                AT(down + t) += OF(suffix + t) + OF(prefix + t);
            }
        }
    }
}

/* What goes on from level j, and its sums. */
static void
leave_all(const way *w, size_t j, step_from *s)
{
    const size_t first = w->from[j] / BLOCK, end = w->to[j] / BLOCK, next = w->to[j + 1] / BLOCK;
    size_t stop = end;

    step_of(w->problem, w->gap[j + 1], &s->by);
    leave(w, first, end);
    s->leaving = (row){w->leave_down, w->leave_exponent, first, end};
    if (next > end + s->by.steps / BLOCK) {
        stop = next - s->by.steps / BLOCK;
    }
    sum_below(w, first, end, stop);
    s->below = (row){w->below.number, w->below.exponent, first, stop};
    if (s->by.chunk > 0) {
        const size_t chunk = s->by.chunk / BLOCK;
        const size_t last = first + (end - first + chunk - 1) / chunk * chunk;

        stop = last < next ? last : next;
        sum_suffixes(w, first, end, &s->by);
        sum_prefixes(w, first, end, stop, &s->by);
        s->suffix = (row){w->suffix.number, w->suffix.exponent, first, end};
        s->prefix = (row){w->prefix.number, w->prefix.exponent, first, stop};
    }
}

/* The first heavy cell from one of them on that is not before a cell. */
static inline size_t
heavy_from(const way *w, size_t heavy, size_t cell)
{
    while (heavy < w->problem->heavies && w->heavy[heavy] < cell) {
        heavy++;
    }
    return heavy;
}

/* What stays in its cells at the next level, and the units of all that arrives there. */
DPQ_VECTORIZED static void
stay_all(const way *w, size_t j, const step_from *s)
{
    const size_t end = w->to[j] / BLOCK, heavies = w->problem->heavies;
    size_t heavy = 0;

    for (size_t b = w->from[j + 1] / BLOCK; b < w->to[j + 1] / BLOCK; b++) {
        int64_t unit = unit_at(s, (ptrdiff_t)b);

        if (unit == INT64_MIN) { /* nothing arrives */
            unit = w->leave_exponent[end - 1];
        }
        if (b < end) {
            const double scale = s->by.stay * dpq_wide_power_or_nothing(unit - w->at.exponent[b]);
            const size_t first = heavy_from(w, heavy, b * BLOCK);
            double more[BLOCK];

            for (heavy = first; heavy < heavies && w->heavy[heavy] < (b + 1) * BLOCK; heavy++) {
                more[heavy - first] = stay_in_heavy(w, heavy, j, scale);
            }
            stay(w, b, scale);
            for (size_t i = first; i < heavy; i++) {
                w->at.more[w->heavy[i]] = more[i - first];
            }
        }
        else {
            for (size_t k = b * BLOCK; k < (b + 1) * BLOCK; k++) {
                w->at.two[k] = w->at.three[k] = w->at.more[k] = 0.0;
            }
        }
        w->at.exponent[b] = unit;
    }
}

/* Units that are of what has arrived at level j. */
DPQ_VECTORIZED static void
adapt(const way *w, size_t j)
{
    size_t heavy = 0;

    for (size_t b = w->from[j] / BLOCK; b < w->to[j] / BLOCK; b++) {
        const double all = arriving(&w->at, b);

        if (is_off(all)) {
            heavy = heavy_from(w, heavy, b * BLOCK);
            change_unit(w, b, heavy, j, unit_steps(all));
        }
    }
}

/* On from level j to the next one. */
static void
go_on(const way *w, size_t j)
{
    step_from from;

    leave_all(w, j, &from);
    stay_all(w, j, &from);
    arrive(w, w->from[j + 1] / BLOCK, w->to[j + 1] / BLOCK, &from);
    adapt(w, j + 1);
}

/* ln of all, after the last level. */
static double
log_of_all(const way *w)
{
    const dpq_passing_problem *p = w->problem;
    const size_t last = p->levels - 1;
    dpq_wide all = DPQ_WIDE_ZERO;

    leave(w, w->from[last] / BLOCK, w->to[last] / BLOCK);
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

/* The bounds for a level's row, by what arrives at blocks; or with what arrives there in the mirror image. */
DPQ_VECTORIZED static void
bound(const way *w, size_t j, float *log_arriving)
{
    const size_t first = w->from[j] / BLOCK;

    for (size_t b = first; b < w->to[j] / BLOCK; b++) {
        log_arriving[b - first] = rounded_up(log_above(arriving(&w->at, b), w->at.exponent[b]));
    }
}

DPQ_VECTORIZED static void
bound_mirrored(const way *w, size_t j, double log_all, float *log_passing)
{
    const double more = log(w->bent) - log_all;
    const size_t end = w->to[j] / BLOCK;

    for (size_t b = w->from[j] / BLOCK; b < end; b++) {
        float *passing = log_passing + (end - 1 - b);

        *passing = rounded_up((double)*passing + log_above(measured(w, b), w->at.exponent[b]) + more);
    }
}

double
dpq_passing_log(const dpq_passing_problem *p, void *work, float *log_passing)
{
    const size_t m = p->levels, longest = dpq_passing_longest(p);
    double log_all;
    way w;

    for (size_t i = 0; i < m * longest; i++) {
        log_passing[i] = -INFINITY;
    }
    prepare(&w, p, 0, work);
    begin(&w);
    for (size_t j = 0; j < m; j++) {
        bound(&w, j, log_passing + j * longest);
        if (j + 1 < m) {
            go_on(&w, j);
        }
    }
    log_all = log_of_all(&w);
    prepare(&w, p, 1, work);
    begin(&w);
    for (size_t j = 0; j < m; j++) {
        bound_mirrored(&w, j, log_all, log_passing + (m - 1 - j) * longest);
        if (j + 1 < m) {
            go_on(&w, j);
        }
    }
    return log_all;
}
