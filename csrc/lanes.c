#include "lanes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "race.h"
#include "ranks.h"
#include "uniform.h"
#include "vector.h"

#define FEW 3               /* outputs in one interval that are added without a look at the rest, */
#define OFTEN 2             /* and how many more between two looks */
#define ROOM 0x1p-13        /* beyond the total: far more than it may be off by */
#define COPIES_ROOM 0x1p-10 /* the same for the share of several outputs in an interval, */
#define COPIES_MORE 0x1p-40 /* which may be lost to rounding itself */
#define LIKELY 0.5          /* a share from which on its complement might be */

static size_t
intervals_of(const dpq_lanes *lanes)
{
    return lanes->records + 1;
}

int
dpq_lanes_fit(const dpq_lanes *lanes)
{
    if (lanes->records < 1 || lanes->records > DPQ_LANES_MOST) {
        return 0;
    }
    for (size_t j = 1; j < lanes->levels; j++) {
        if (lanes->level[j].reach < 1) {
            return 0;
        }
    }
    return 1;
}

DPQ_VECTORIZED void
dpq_lanes_prepare(const dpq_lanes *lanes)
{
    const double *table = lanes->decay->table;
    const size_t size = intervals_of(lanes);

    for (size_t j = 0; j < lanes->levels; j++) {
        const dpq_scan_level *level = lanes->level + j;
        const size_t whole = (size_t)lanes->whole[j];
        double *fade = lanes->fade + j * size, *stay = lanes->stay + j * size;
        double *above = lanes->above + j * size, *below = lanes->below + j * size;
        size_t next = size; /* first rank not below the next target */

        if (j + 1 < lanes->levels) {
            next = (size_t)lanes->whole[j + 1] + (lanes->part[j + 1] > 0.0);
        }
        for (size_t t = 0; t <= whole; t++) {
            fade[t] = table[whole - t] * level->down;
            below[t] = fade[t]; /* 1 on a target that is a rank */
            above[t] = 1.0;
            stay[t] = 1.0;
        }
        for (size_t t = whole + 1; t < size; t++) {
            fade[t] = table[t - whole - 1] * level->up;
            above[t] = fade[t];
            below[t] = 1.0;
            stay[t] = fade[t];
        }
        for (size_t t = next > whole + 1 ? next : whole + 1; t < size; t++) {
            stay[t] = level[1].stay;
        }
    }
}

/* Scale row j so that the largest factor of an entry is about one: widths, and what the last row ended
 * with. Lanes that `failed`, or that fail here, are not scaled; they are returned. */
static unsigned
set_gains(const dpq_lanes *lanes, size_t j, unsigned failed, const double *widest,
          const double *largest)
{
    for (size_t i = 0; i < DPQ_LANES; i++) {
        int scaling = 0, last = 0;

        if (!(failed >> i & 1)) {
            (void)frexp(widest[i], &scaling);
            (void)frexp(largest[i], &last);
            scaling += last;
        }
        if (last < DPQ_SCAN_SMALLEST_ROW || abs(scaling) > DPQ_SCAN_MOST_SCALING) {
            failed |= 1U << i;
            scaling = 0;
        }
        lanes->gain[DPQ_LANES * j + i] = ldexp(1.0, -scaling);
    }
    return failed;
}

/* The lanes whose number is below `least`, or is none. */
static unsigned
lanes_below(const double *number, double least)
{
    unsigned below = 0;

    for (size_t i = 0; i < DPQ_LANES; i++) {
        below |= (unsigned)!(number[i] >= least) << i;
    }
    return below;
}

/* The forward pass, by vectors of the machine's own length. */

#define VECTORS (DPQ_LANES / LANES)
#define EACH(i) for (size_t i = 0; i < VECTORS; i++)

/* One number in all lanes of a vector; the vectors of row `row` of an array. */
#define SAME(x) ((numbers){0} + (x))
#define AT(array, row) ((stored *)((array) + DPQ_LANES * (row)))

/* Each version has types of its own. */
#define numbers NAME(numbers)
#define truths NAME(truths)
#define stored NAME(stored)
#define row_pass NAME(row_pass)

#define BODY "lanes_body.h"
#include "versions.h"
#undef BODY

unsigned
dpq_lanes_forward(const dpq_lanes *lanes)
{
    return DPQ_LONGEST(forward)(lanes);
}

/* Number of row j, entry t of a lane. */
static double
entry(const dpq_lanes *lanes, const double *rows, size_t j, size_t t, size_t lane)
{
    return rows[DPQ_LANES * (j * intervals_of(lanes) + t) + lane];
}

static double
width_of(const dpq_lanes *lanes, size_t t, size_t lane)
{
    return entry(lanes, lanes->point, 0, t + 1, lane) - entry(lanes, lanes->point, 0, t, lane);
}

/* A choice of the interval at level j before interval t at level j + 1, or of the last one. */
typedef struct {
    const double *h;         /* row j of the lane, an entry every DPQ_LANES */
    size_t size;             /* candidates: the intervals s < size */
    const double *table;     /* of decays */
    const double *side;      /* what they keep on one side of `turn`, */
    double kept;             /* and on the other, times the decay of how far they are */
    int64_t turn;            /* u <= v for s <= turn = t - reach */
    int last, fades_left;
} choice;

static choice
choice_before(const dpq_lanes *lanes, size_t lane, size_t j, size_t t)
{
    const size_t size = intervals_of(lanes);
    choice c = {.h = lanes->H + DPQ_LANES * j * size + lane,
                .size = t,
                .table = lanes->decay->table,
                .side = lanes->fade + j * size,
                .last = t == size};

    if (!c.last) {
        const dpq_scan_level *level = lanes->level + (j + 1);

        c.turn = (int64_t)t - level->reach;
        c.fades_left = (int64_t)t < lanes->whole[j + 1] + (lanes->part[j + 1] > 0.0);
        c.side = (c.fades_left ? lanes->above : lanes->below) + j * size;
        c.kept = c.fades_left ? level->past : level->ahead;
    }
    return c;
}

/* What candidate s weighs. */
static inline double
weight_of(const choice *c, size_t s)
{
    int64_t back = c->turn - (int64_t)s;
    double kept = c->side[s];

    if (!c->last && (back >= 0) == c->fades_left) {
        kept = c->table[back >= 0 ? back : -back - 1] * c->kept;
    }
    return c->h[DPQ_LANES * s] * kept;
}

/* The intervals first <= t < end of one lane by themselves, as path.c has them. */
static dpq_scan_problem
take_lane(const dpq_lanes *lanes, size_t lane, size_t first, size_t end)
{
    const size_t m = lanes->levels;
    size_t kept = 0;

    for (size_t t = first; t < end; t++) {
        lanes->rank[kept] = (int64_t)t;
        lanes->width[kept] = width_of(lanes, t, lane);
        kept += lanes->width[kept] > 0.0;
    }
    for (size_t j = 0; j < m; j++) {
        int scaling;

        (void)frexp(lanes->gain[DPQ_LANES * j + lane], &scaling);
        lanes->exponent[j] = (j > 0 ? lanes->exponent[j - 1] : 0) + (1 - scaling);
        lanes->lo[j] = 0;
        lanes->hi[j] = kept;
        lanes->start[j] = j * kept;
        for (size_t k = 0; k < kept; k++) {
            size_t t = (size_t)lanes->rank[k];

            lanes->plain_A[j * kept + k] = entry(lanes, lanes->A, j, t, lane);
            lanes->plain_H[j * kept + k] = entry(lanes, lanes->H, j, t, lane);
        }
    }
    return (dpq_scan_problem){.intervals = kept,
                              .rank = lanes->rank,
                              .width = lanes->width,
                              .lattice = lanes->lattice,
                              .levels = m,
                              .whole = lanes->whole,
                              .part = lanes->part,
                              .lo = lanes->lo,
                              .hi = lanes->hi,
                              .start = lanes->start,
                              .rate = lanes->rate};
}

/* The rows of one lane by itself. */
static dpq_path_rows
taken_rows(const dpq_lanes *lanes)
{
    return (dpq_path_rows){
        .A = lanes->plain_A, .H = lanes->plain_H, .exponent = lanes->exponent};
}

/* The place of interval t among those that were taken. */
static size_t
place_of(const dpq_scan_problem *p, size_t t)
{
    return dpq_ranks_first(p->rank, 0, p->intervals, (int64_t)t);
}

/* Draw one of the candidates of a choice that are light, whose room is `room`, or from all anew. */
static size_t
draw_light(const dpq_lanes *lanes, size_t lane, size_t j, size_t t, const choice *c, double limit,
           double room, bitgen_t *rng)
{
    double *weight = lanes->weight, light = 0.0;
    dpq_path_rows rows = taken_rows(lanes);
    dpq_scan_problem p;

    for (size_t s = 0; s < c->size; s++) {
        double own = weight_of(c, s);

        weight[s] = 0.0;
        if (own < limit && width_of(lanes, s, lane) > 0.0) {
            weight[s] = fmax(own, DPQ_PATH_FLOOR);
            light += weight[s];
        }
    }
    if (light > 0.0 && dpq_uniform_fine(rng) < light / room) {
        size_t s = dpq_race_draw_plain(c->size, weight, rng);

        if (weight[s] > DPQ_PATH_FLOOR) {
            return s;
        }
        p = take_lane(lanes, lane, 0, intervals_of(lanes));
        return (size_t)p.rank[dpq_path_settle(&p, lanes->decay, &rows, j, place_of(&p, t),
                                              place_of(&p, s), rng, weight)];
    }
    p = take_lane(lanes, lane, 0, intervals_of(lanes));
    return (size_t)p.rank[dpq_path_draw_before(&p, lanes->decay, &rows, j, place_of(&p, t), rng,
                                               weight)];
}

/* Draw the interval at level j before interval t at level j + 1, or the last one for t = n + 1. */
static size_t
draw_before(const dpq_lanes *lanes, size_t lane, size_t j, size_t t, bitgen_t *rng)
{
    choice c = choice_before(lanes, lane, j, t);
    double total = lanes->total[lane], limit, v, reached = 0.0;
    size_t up, down;

    if (!c.last) {
        double scale = width_of(lanes, t, lane) * lanes->gain[DPQ_LANES * (j + 1) + lane];

        total = entry(lanes, lanes->A, j + 1, t, lane) / scale;
    }
    if (!(total >= DPQ_PATH_LEAST)) {
        dpq_path_rows rows = taken_rows(lanes);
        dpq_scan_problem p = take_lane(lanes, lane, 0, intervals_of(lanes));

        return (size_t)p.rank[dpq_path_draw_before(&p, lanes->decay, &rows, j, place_of(&p, t),
                                                   rng, lanes->weight)];
    }
    limit = total * lanes->light;
    total *= 1.0 + ROOM;
    v = dpq_uniform_fine(rng) * total;
    up = down = (size_t)lanes->whole[j] < c.size ? (size_t)lanes->whole[j] : c.size - 1;
    while (up < c.size || down > 0) {
        double weight;

        if (up < c.size) {
            weight = weight_of(&c, up);
            reached += weight >= limit ? weight : 0.0;
            if (v < reached) {
                return up;
            }
            up++;
        }
        if (down > 0) {
            weight = weight_of(&c, --down);
            reached += weight >= limit ? weight : 0.0;
            if (v < reached) {
                return down;
            }
        }
    }
    return draw_light(lanes, lane, j, t, &c, limit, total - reached, rng);
}

/* Draw how many outputs there are in interval t, of which the last is at level j. */
static size_t
draw_copies(const dpq_lanes *lanes, size_t lane, size_t j, size_t t, bitgen_t *rng)
{
    double alone = entry(lanes, lanes->A, j, t, lane), all = entry(lanes, lanes->H, j, t, lane);
    double several = (all - alone) / all * (1.0 + COPIES_ROOM) + COPIES_MORE; /* at least */
    dpq_path_rows rows = taken_rows(lanes);
    dpq_scan_problem p;
    size_t most, more = 0;

    if (several < LIKELY && dpq_uniform_fine(rng) >= several) {
        return 1;
    }
    p = take_lane(lanes, lane, t, t + 1);
    (void)dpq_path_log_copies(&p, lanes->decay, &rows, j, 0, lanes->exponent[j], &most,
                              lanes->weight);
    if (several < LIKELY) { /* not so by more than it is off */
        double share = dpq_race_log_sum(most - 1, lanes->weight + 1) -
                       dpq_race_log_sum(most, lanes->weight);

        if (dpq_uniform_log(rng) >= share - log(several)) {
            return 1;
        }
        (void)dpq_race_draw(most - 1, lanes->weight + 1, rng, &more);
        return 2 + more;
    }
    (void)dpq_race_draw(most, lanes->weight, rng, &more);
    return 1 + more;
}

void
dpq_lanes_draw(const dpq_lanes *lanes, size_t lane, bitgen_t *rng, size_t *path)
{
    size_t j = lanes->levels, t = intervals_of(lanes);

    while (j > 0) {
        size_t copies = 1;

        t = draw_before(lanes, lane, j - 1, t, rng);
        if (j > 1) {
            copies = draw_copies(lanes, lane, j - 1, t, rng);
        }
        for (; copies > 0; copies--) {
            path[--j] = t;
        }
    }
}
