#include "parts_walk.h"

/* What parts of a leaf weigh; see dpq_parts_leaves. */
typedef struct {
    double rising, width, falling; /* the first in units of the weight at the leaf's end */
    size_t parts;
} weights;

/* On the way through all leaves. */
typedef struct {
    const dpq_parts *parts;
    const dpq_decay *decay;
    size_t room, leaves;         /* as many as there are, the last of which is at hand, */
    int64_t *least, *most;       /* OUT, all of these */
    double *const *sum;
    size_t done, longest;        /* parts of those before it */
    size_t u;                    /* as in begin[u], of where it begins: */
    int64_t rank, end;           /* at this rank, and no part of it at this one; */
    int64_t right;               /* it goes up to here */
    weights all;
} gathering;

/* The leaf at hand is done. */
static void
finish(gathering *g)
{
    const size_t at = g->leaves - 1;
    const int64_t middle = (g->most[at] - g->rank) / 2;

    g->sum[0][at] = g->all.rising * dpq_decay_signed(g->decay, g->rank + middle - g->end);
    g->sum[1][at] = g->all.width;
    g->sum[2][at] = g->all.falling / dpq_decay_at(g->decay, middle);
    g->done += g->all.parts;
    g->longest = g->all.parts > g->longest ? g->all.parts : g->longest;
}

/* Begin a leaf, if there is room for it. */
static int
begin(gathering *g, int64_t left, int64_t rank)
{
    if (g->leaves > 0) {
        finish(g);
    }
    if (g->leaves == g->room) {
        return 0;
    }
    while (g->parts->begin[g->u + 1] <= rank) {
        g->u++;
    }
    g->rank = rank;
    g->end = dpq_parts_end_after(g->parts, g->u, rank);
    g->right = left;
    g->all = (weights){0.0, 0.0, 0.0, 0};
    g->least[g->leaves] = g->most[g->leaves] = rank;
    g->leaves++;
    return 1;
}

/* Add some parts to the leaf at hand. */
static void
add(gathering *g, const dpq_part *part, size_t n)
{
    const dpq_decay *decay = g->decay;
    const uint64_t size = (uint64_t)decay->size; /* no number below 0 is less */
    const int64_t rank = g->rank, end = g->end;
    weights all = g->all;
    size_t i = 0;

    for (; i < n; i++) { /* nearly all ranks are in the table */
        const uint64_t below = (uint64_t)(end - part[i].most), above = (uint64_t)(part[i].least - rank);
        const double each = (double)part[i].width;

        if (below >= size || above >= size) {
            break;
        }
        all.rising += each * decay->table[below];
        all.width += each;
        all.falling += each * decay->table[above];
    }
    for (; i < n; i++) {
        const double each = (double)part[i].width;

        all.rising += each * dpq_decay_signed(decay, end - part[i].most);
        all.width += each;
        all.falling += each * dpq_decay_at(decay, part[i].least - rank);
    }
    all.parts += n;
    g->all = all;
    g->most[g->leaves - 1] = part[n - 1].most;
    g->right = part[n - 1].left + part[n - 1].width;
}

/* What is inside of a half of a half ... of a cell. */
typedef struct {
    double rising, falling; /* as of weights, relative to its end, and in units of its width */
    size_t parts;
    int64_t span; /* ranks go up by so many: by its records, but for one at its end */
} inside;

/* Those of depth d have floor(count / 2^d) records, or one more; and only that tells what is inside of them. */
typedef struct {
    int64_t count, most; /* of this cell, in parts of so many records; a count of 0 to begin with */
    inside half[33][2];
} table;

/* How many records are in the lower half of a part. */
static inline int64_t
lower_of(const dpq_dither *d, int depth, int64_t size)
{
    return (size + 1 - (d->turned >> depth & 1)) / 2;
}

/* One that is not halved, which may be cut at its only record. */
static inside
not_halved(const dpq_dither *d, const dpq_decay *decay, int depth, int64_t size, int64_t most)
{
    const int64_t offsets = INT64_C(1) << (d->bits - depth), below = (d->shift & (offsets - 1)) + 1;
    const double part = (double)below / (double)offsets, rest = (double)(offsets - below) / (double)offsets;
    const double one = dpq_decay_at(decay, 1);

    if (size <= most) {
        return (inside){1.0, 1.0, 1, size};
    }
    return (inside){part * one + rest, part + rest * one, rest > 0.0 ? 2 : 1, rest > 0.0};
}

static void
fill(table *t, const dpq_dither *d, const dpq_decay *decay, int64_t count, int64_t most)
{
    const int64_t least = most > 0 ? most : 1; /* nothing of so many records is halved */
    int depth = 0;

    while (count >> depth >= least) {
        depth++;
    }
    t->count = count;
    t->most = most;
    for (int more = 0; more < 2; more++) {
        t->half[depth][more] = not_halved(d, decay, depth, (count >> depth) + more, most);
    }
    while (depth-- > 0) {
        for (int more = 0; more < 2; more++) {
            const int64_t size = (count >> depth) + more;
            const int64_t below = lower_of(d, depth, size), above = size - below;
            const inside *lower = &t->half[depth + 1][below - (count >> (depth + 1))];
            const inside *upper = &t->half[depth + 1][above - (count >> (depth + 1))];

            t->half[depth][more] = size <= least ? not_halved(d, decay, depth, size, most) : (inside){
                .rising = 0.5 * (upper->rising + lower->rising * dpq_decay_at(decay, above)),
                .falling = 0.5 * (lower->falling + upper->falling * dpq_decay_at(decay, below)),
                .parts = lower->parts + upper->parts,
                .span = below + upper->span,
            };
        }
    }
}

/* Add some parts in a row to the leaf at hand, or the next ones. No if there is no room for a leaf more. */
static int
gather(gathering *g, const dpq_part *part, size_t n)
{
    for (size_t i = 0; i < n;) {
        const size_t first = i;
        int64_t right;

        if (dpq_parts_is_beyond(part[i], g->end, g->right) && !begin(g, part[i].left, part[i].least)) {
            return 0;
        }
        for (right = g->right; i < n && !dpq_parts_is_beyond(part[i], g->end, right); i++) {
            right += part[i].width;
        }
        add(g, part + first, i - first);
    }
    return 1;
}

/* Add all parts inside of a whole node: as far as they are of one leaf and in one bin, together. */
static int
gather_inside(gathering *g, table *t, const dpq_parts_walk *w)
{
    const dpq_dither *d = &g->parts->dither;
    struct {
        int depth;
        int64_t size;
    } waiting[34] = {{w->whole.part.depth, w->whole.size}}; /* the lowest part last */
    int64_t rank = w->whole.rank, left = w->whole.left;

    if (t->count != w->count || t->most != w->most) {
        fill(t, d, g->decay, w->count, w->most);
    }
    for (int n = 1; n > 0;) {
        int depth = waiting[--n].depth;
        int64_t size = waiting[n].size, width;

        if ((rank >= g->end || left != g->right) && !begin(g, left, rank)) {
            return 0;
        }
        while (size > w->most && size > 1 && rank + size >= g->end) {
            int64_t below = lower_of(d, depth, size);

            depth++;
            waiting[n].depth = depth;
            waiting[n++].size = size - below;
            size = below;
        }
        width = INT64_C(1) << (d->bits - depth);
        if (rank + size < g->end) {
            const inside *of = &t->half[depth][size - (w->count >> depth)];

            g->all.rising += (double)width * of->rising * dpq_decay_at(g->decay, g->end - rank - size);
            g->all.width += (double)width;
            g->all.falling += (double)width * of->falling * dpq_decay_at(g->decay, rank - g->rank);
            g->all.parts += of->parts;
            g->most[g->leaves - 1] = rank + of->span;
            g->right = left + width;
        }
        else {
            const int64_t below = size > w->most ? (d->shift & (width - 1)) + 1 : width; /* up to its record */
            const dpq_part part[2] = {
                {left, below, rank, rank + (size > w->most ? 0 : size)},
                {left + below, width - below, rank + size, rank + size},
            };

            if (!gather(g, part, 1 + (below < width))) {
                return 0;
            }
        }
        rank += size;
        left += width;
    }
    return 1;
}

size_t
dpq_parts_leaves(const dpq_parts *p, const dpq_decay *decay, size_t room, int64_t *least, int64_t *most,
                 double *sum[3], size_t *parts, size_t *longest)
{
    dpq_parts_walk w = {.parts = p, .sums = !p->each};
    gathering g = {.parts = p,
                   .decay = decay,
                   .room = room,
                   .least = least,
                   .most = most,
                   .sum = sum,
                   .end = INT64_MIN};
    table halves = {.count = 0};
    dpq_part part[DPQ_PARTS_STEPS];
    size_t n;

    while ((n = dpq_parts_next(&w, part, DPQ_PARTS_STEPS)) > 0 || w.whole.size > 0) {
        if (!gather(&g, part, n) || (w.whole.size > 0 && !gather_inside(&g, &halves, &w))) {
            return room + 1;
        }
    }
    if (g.leaves > 0) {
        finish(&g);
    }
    *parts = g.done;
    *longest = g.longest;
    return g.leaves;
}
