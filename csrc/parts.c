#include "parts.h"

#include <math.h>

#include "parts_walk.h"
#include "race.h"
#include "ranks.h"
#include "uniform.h"

#define FEW 8    /* parts at once, to find one of the first */
#define TRIES 16 /* to draw a part of a leaf, before all of them are looked at */
#define MOST_WIDTH 0x1p53 /* float64 holds all integers up to this */

static int64_t
each_of(const dpq_parts *p, size_t cut)
{
    return p->each ? p->each[cut] : INT64_C(1) << p->dither.bits;
}

static int64_t
last_of(const dpq_parts *p, size_t cut)
{
    return p->first[cut] + each_of(p, cut) - 1;
}

/* The last fine point of the offsets below one, or of what is below the cell. */
static int64_t
before_offset(const dpq_parts *p, size_t cut, int64_t offset)
{
    const int bits = p->dither.bits;
    const int64_t offsets = INT64_C(1) << bits;
    int64_t each, rest;

    if (!p->each) {
        return p->first[cut] + offset - 1;
    }
    each = p->each[cut]; /* offset * each may overflow */
    rest = each & (offsets - 1);
    return p->first[cut] - 1 + offset * (each >> bits) + ((offset * rest + offsets - 1) >> bits);
}

static dpq_parts_node
cell_of(const dpq_parts *p, size_t cut)
{
    return (dpq_parts_node){
        .rank = p->below[cut],
        .size = p->above[cut] - p->below[cut],
        .left = p->first[cut] - 1,
        .right = last_of(p, cut),
    };
}

/* Halve: the lower half, and the upper one. */
static void
halve(const dpq_parts_walk *w, const dpq_parts_node *x, dpq_parts_node half[2])
{
    const dpq_parts *p = w->parts;
    int64_t size = INT64_C(1) << (p->dither.bits - 1 - x->part.depth);

    half[0] = half[1] = *x;
    half[0].part = dpq_dither_lower(&p->dither, x->part);
    half[1].part = dpq_dither_upper(&p->dither, x->part);
    half[0].size = dpq_dither_size(half[0].part, w->count);
    half[1].size -= half[0].size;
    half[1].rank += half[0].size;
    half[1].offset += size;
    half[0].right = half[1].left = before_offset(p, w->next - 1, half[1].offset);
}

/* Whether all ranks up to one are in the stretch at hand. */
static int
is_in_one(const dpq_parts_walk *w, int64_t high)
{
    return w->parts->start[w->stretch + 1] > high;
}

/* How many records a part with the ranks low, ..., low + size may have, or if that is less than `size`, any number
 * that is less and not below it; -1 if none of these ranks is asked for. */
static int64_t
allowed(dpq_parts_walk *w, int64_t low, int64_t size)
{
    const dpq_parts *p = w->parts;
    int64_t most = -1;

    while (p->start[w->stretch + 1] <= low) {
        w->stretch++;
    }
    for (size_t t = w->stretch;; t++) {
        if (p->most[t] >= 0 && (most < 0 || p->most[t] < most)) {
            most = p->most[t];
        }
        if (p->start[t + 1] > low + size || (most >= 0 && most < size)) {
            break;
        }
    }
    return most;
}

/* Outputs from one point to another, if there are any. */
static size_t
give(dpq_part *to, int64_t left, int64_t right, int64_t least, int64_t most)
{
    *to = (dpq_part){left, right - left, least, most};
    return right > left;
}

/* A part of the cell at hand, with so many records. Those at its last offset are below no output of it. */
static size_t
give_part(const dpq_parts_walk *w, dpq_part *to, dpq_dither_part part, int64_t left, int64_t right, int64_t rank,
          int64_t size, int64_t most)
{
    const dpq_dither *d = &w->parts->dither;

    if (part.depth == d->bits) {
        return give(to, left, right, rank, rank);
    }
    if (size == 1 && most == 0) {
        int64_t record = before_offset(w->parts, w->next - 1, dpq_dither_only(d, part) + 1);
        size_t n = give(to, left, record, rank, rank);

        return n + give(to + n, record, right, rank + 1, rank + 1);
    }
    return give(to, left, right, rank, rank + size - (w->count >> d->bits));
}

/* Of `n` parts of a node, those that are asked for: ranks may be that none of them has. So what is left out between
 * two parts is of another rank than the second begins at. */
static size_t
asked_for(dpq_parts_walk *w, dpq_part *part, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        if (allowed(w, part[i].least, part[i].most - part[i].least) >= 0) {
            part[kept++] = part[i];
        }
    }
    return kept;
}

/* Go on in a run, as far as there is room. */
static size_t
go_on(dpq_parts_walk *w, dpq_part *to, size_t room)
{
    const dpq_parts *p = w->parts;
    const int rest_bits = p->dither.bits - w->run.depth;
    const size_t cut = w->next - 1;
    dpq_parts_run r = w->run;
    size_t n = 0;

    if (!p->each && r.most > 0 && r.depth + 1 < p->dither.bits && w->count >> p->dither.bits == 0) {
        for (; r.index < r.end && n + 2 <= room; r.index++) { /* as below, without a branch */
            dpq_dither_part part = {r.depth, r.rest};
            int64_t size = dpq_dither_size(part, w->count), most = r.rank + size;
            int64_t below = dpq_dither_size(dpq_dither_lower(&p->dither, part), w->count);
            int64_t right = r.left + (INT64_C(1) << rest_bits);
            int64_t middle = r.left + (INT64_C(1) << (rest_bits - 1));
            size_t two = size > r.most;

            to[n] = (dpq_part){r.left, (two ? middle : right) - r.left, r.rank, two ? r.rank + below : most};
            to[n + 1] = (dpq_part){middle, right - middle, r.rank + below, most};
            n += 1 + two;
            r.rank = most;
            r.left = right;
            if (r.index + 1 < r.end) {
                r.rest ^= dpq_dither_step(r.index, r.depth);
            }
        }
    }
    for (; r.index < r.end && n + 4 <= room; r.index++) {
        dpq_dither_part part = {r.depth, r.rest};
        int64_t size = dpq_dither_size(part, w->count), offset = (int64_t)(r.index + 1) << rest_bits;
        int64_t right = before_offset(p, cut, offset);

        if (size <= r.most || size == 1) {
            n += give_part(w, to + n, part, r.left, right, r.rank, size, r.most);
        }
        else {
            dpq_dither_part lower = dpq_dither_lower(&p->dither, part);
            int64_t below = dpq_dither_size(lower, w->count);
            int64_t middle = before_offset(p, cut, offset - (INT64_C(1) << (rest_bits - 1)));

            n += give_part(w, to + n, lower, r.left, middle, r.rank, below, r.most);
            n += give_part(w, to + n, dpq_dither_upper(&p->dither, part), middle, right, r.rank + below,
                           size - below, r.most);
        }
        r.rank += size;
        r.left = right;
        if (r.index + 1 < r.end) {
            r.rest ^= dpq_dither_step(r.index, r.depth);
        }
    }
    w->run = r;
    return n;
}

/* Begin a run of what is inside of a part, if that is not to be halved where it has few fine points: all
 * halves of one depth still have too many records for `most`, and their halves have not. */
static int
begin_run(dpq_parts_walk *w, const dpq_parts_node *x, int64_t most)
{
    const dpq_parts *p = w->parts;
    const int bits = p->dither.bits;
    const int64_t halved = most > 0 ? most : 1;
    int depth = x->part.depth;
    uint32_t lower; /* bits that are as in the lowest part */

    while (depth + 1 < bits && (w->count - 1) >> (depth + 1) >= halved) {
        depth++;
    }
    if (each_of(p, w->next - 1) >> depth == 0) {
        return 0;
    }
    lower = (UINT32_C(1) << depth) - (UINT32_C(1) << x->part.depth);
    w->run = (dpq_parts_run){
        .depth = depth,
        .index = (uint32_t)(x->offset >> (bits - depth)),
        .rest = x->part.rest | (p->dither.turned & lower),
        .rank = x->rank,
        .left = x->left,
        .most = most,
    };
    w->run.end = w->run.index + (UINT32_C(1) << (depth - x->part.depth));
    return 1;
}

/* The lowest part inside of one, down to where it is to be halved no more, if it is asked for; or a run; or a whole
 * one: of a cell of so few records that none of its parts is a single offset. */
static size_t
lowest(dpq_parts_walk *w, dpq_parts_node x, dpq_part *to)
{
    for (;;) {
        int64_t most = allowed(w, x.rank, x.size);
        dpq_parts_node half[2];

        if (most < 0 || x.left == x.right) {
            return 0;
        }
        if (x.size <= most || x.size == 1 || x.part.depth == w->parts->dither.bits) {
            return asked_for(w, to, give_part(w, to, x.part, x.left, x.right, x.rank, x.size, most));
        }
        if (is_in_one(w, x.rank + x.size)) {
            if (w->sums && w->count >> (w->parts->dither.bits - 1) == 0) {
                w->whole = x;
                w->most = most;
                return 0;
            }
            if (begin_run(w, &x, most)) {
                return 0;
            }
        }
        halve(w, &x, half);
        w->stack[w->waiting++] = half[1];
        x = half[0];
    }
}

/* What lies before the cell of the next cut, or, where it has no records, up to its end. */
static size_t
next_cut(dpq_parts_walk *w, dpq_part *to)
{
    const dpq_parts *p = w->parts;
    size_t cut = w->next++;
    int64_t end = last_of(p, cut), most = p->above[cut];

    w->count = p->above[cut] - p->below[cut];
    if (w->count > 0) {
        w->stack[w->waiting++] = cell_of(p, cut);
        end = p->first[cut] - 1;
        most = p->below[cut];
    }
    if (cut == 0 || last_of(p, cut - 1) == end || allowed(w, p->above[cut - 1], most - p->above[cut - 1]) < 0) {
        return 0;
    }
    return give(to, last_of(p, cut - 1), end, p->above[cut - 1], most);
}

size_t
dpq_parts_next(dpq_parts_walk *w, dpq_part *to, size_t room)
{
    size_t n = 0;

    w->whole.size = 0;
    while (n + 4 <= room && w->whole.size == 0) {
        if (w->run.index < w->run.end) {
            n += go_on(w, to + n, room - n);
        }
        else if (w->waiting > 0) {
            n += lowest(w, w->stack[--w->waiting], to + n);
        }
        else if (w->next < w->parts->cuts) {
            n += next_cut(w, to + n);
        }
        else {
            break;
        }
    }
    return n;
}

/* The stretch that a rank is in. */
static size_t
stretch_of(const dpq_parts *p, int64_t rank)
{
    return dpq_ranks_first(p->start + 1, 0, p->stretches - 1, rank + 1);
}

/* Whether a part is to be halved, given a rank and how many records parts with it may have. */
static int
is_halved(dpq_parts_walk *w, const dpq_parts_node *x, int64_t rank, int64_t most_here)
{
    if (x->size <= 1 || x->part.depth == w->parts->dither.bits) {
        return 0;
    }
    if (most_here < 0 || x->size <= most_here || rank < x->rank || rank > x->rank + x->size) {
        w->stretch = stretch_of(w->parts, x->rank);
        most_here = allowed(w, x->rank, x->size);
    }
    return most_here >= 0 && x->size > most_here;
}

/* On the way to the first part of a rank, or a little before. */
static dpq_parts_walk
walk_from(const dpq_parts *p, int64_t rank)
{
    dpq_parts_walk w = {.parts = p};
    /* nothing before this cut, or in front of its cell, is of that rank */
    size_t cut = dpq_ranks_first(p->above, 0, p->cuts - 1, rank);
    int64_t low = cut > 0 ? p->above[cut - 1] : p->below[cut];

    w.next = cut;
    if (p->above[cut] > p->below[cut]) {
        dpq_parts_node x = cell_of(p, cut), half[2];
        const int64_t most_here = p->most[stretch_of(p, rank)];

        w.next++;
        w.count = x.size;
        while (x.left < x.right && is_halved(&w, &x, rank, most_here)) {
            halve(&w, &x, half);
            if (half[1].rank < rank) { /* and so is all of the lower one */
                x = half[1];
            }
            else {
                w.stack[w.waiting++] = half[1];
                x = half[0];
            }
        }
        w.stack[w.waiting++] = x;
        low = x.rank;
    }
    w.stretch = stretch_of(p, low);
    return w;
}

/* Where records do not ascend, a part all the same. */
static dpq_part
no_part(int64_t rank)
{
    return (dpq_part){.width = 1, .least = rank, .most = rank};
}

size_t
dpq_parts_of(const dpq_parts *p, int64_t rank, size_t room, dpq_part *part)
{
    dpq_parts_walk w = walk_from(p, rank);
    const size_t u = dpq_ranks_first(p->begin + 1, 0, p->widths - 1, rank + 1);
    const int64_t end = dpq_parts_end_after(p, u, rank);
    dpq_part some[DPQ_PARTS_STEPS];
    int64_t right = 0;
    size_t length = 0;

    for (size_t n; (n = dpq_parts_next(&w, some, DPQ_PARTS_STEPS)) > 0;) {
        for (size_t i = 0; i < n; i++) {
            if (some[i].least < rank) {
                continue;
            }
            right = length > 0 ? right : some[i].left;
            if (length > 0 && (length == room || dpq_parts_is_beyond(some[i], end, right))) {
                return length;
            }
            right += some[i].width;
            part[length++] = some[i];
        }
    }
    if (length == 0) {
        part[length++] = no_part(rank);
    }
    return length;
}

/* The outputs of a leaf are behind this point; the leaf is given by its least rank. */
static int64_t
left_of(const dpq_parts *p, int64_t rank)
{
    dpq_parts_walk w = walk_from(p, rank);
    dpq_part some[FEW];

    for (size_t n; (n = dpq_parts_next(&w, some, FEW)) > 0;) {
        for (size_t i = 0; i < n; i++) {
            if (some[i].least >= rank) {
                return some[i].left;
            }
        }
    }
    return p->first[0] - 1; /* as for no_part() */
}

/* The part of an output that is in one, near a rank. */
static dpq_part
holding(const dpq_parts *p, int64_t rank, int64_t output)
{
    const int64_t most_here = p->most[stretch_of(p, rank)];
    dpq_parts_walk w = {.parts = p};
    size_t cut = dpq_ranks_first(p->first, 0, p->cuts, output + 1), n;
    dpq_parts_node x, half[2];
    dpq_part given[2];

    if (cut == p->cuts || (cut > 0 && output <= last_of(p, cut - 1))) { /* not below the next cell */
        cut--;
    }
    x = cell_of(p, cut);
    if (cut > 0 && (x.size == 0 || output <= x.left)) {
        const int64_t left = last_of(p, cut - 1);

        return (dpq_part){left, (x.size > 0 ? x.left : x.right) - left, p->above[cut - 1], x.rank};
    }
    w.next = cut + 1;
    w.count = x.size;
    while (is_halved(&w, &x, rank, most_here)) {
        halve(&w, &x, half);
        x = half[output > half[1].left];
    }
    w.stretch = stretch_of(p, x.rank);
    n = give_part(&w, given, x.part, x.left, x.right, x.rank, x.size, allowed(&w, x.rank, x.size));
    return n == 0 ? no_part(rank) : given[n == 2 && output > given[1].left];
}

/* By so many ranks more than others a part's weight may be bent. */
static int64_t
away_from(const dpq_parts_leaf *leaf, const dpq_part *part, int bend)
{
    return bend > 0 ? part->least - leaf->least : bend < 0 ? leaf->most - part->most : 0;
}

dpq_part
dpq_parts_draw(const dpq_parts *p, double rate, const dpq_parts_leaf *leaf, int bend, bitgen_t *rng,
               size_t room, dpq_part *part, double *weight)
{
    size_t n, drawn = 0;

    if (leaf->width < MOST_WIDTH) {
        const int64_t left = left_of(p, leaf->least);

        for (int i = 0; i < TRIES; i++) {
            const uint64_t at = dpq_uniform_below((uint64_t)leaf->width, rng);
            const dpq_part of = holding(p, leaf->least, left + 1 + (int64_t)at);

            if (bend == 0 || dpq_uniform_log(rng) < -rate * (double)away_from(leaf, &of, bend)) {
                return of;
            }
        }
    }
    n = dpq_parts_of(p, leaf->least, room, part);
    for (size_t i = 0; i < n; i++) {
        weight[i] = log((double)part[i].width) - rate * (double)away_from(leaf, &part[i], bend);
    }
    (void)dpq_race_draw(n, weight, rng, &drawn);
    return part[drawn];
}
