#include "halves.h"

#include <math.h>

#include "uniform.h"

#define LN2 0.693147180559945309417
#define SMALLEST_TERM 1e-18 /* of a series, relative to its sum */

/* The next k bits, 0 < k < 64. */
static uint64_t
take(dpq_halves *h, int k)
{
    uint64_t taken;

    if (h->left < k) {
        h->word = h->rng->next_uint64(h->rng->state);
        h->left = 64;
    }
    taken = h->word & ((UINT64_C(1) << k) - 1);
    h->word >>= k;
    h->left -= k;
    return taken;
}

static int64_t
ones_of(uint64_t word)
{
    word -= (word >> 1) & UINT64_C(0x5555555555555555);
    word = (word & UINT64_C(0x3333333333333333)) + ((word >> 2) & UINT64_C(0x3333333333333333));
    word = (word + (word >> 4)) & UINT64_C(0x0F0F0F0F0F0F0F0F);
    return (int64_t)((word * UINT64_C(0x0101010101010101)) >> 56);
}

double
dpq_halves_log_binomial(int64_t half, int64_t distance)
{
    /* Stirling's series for the three factorials, with what cancels left out */
    const double count[3] = {(double)half, (double)(half + distance), (double)(half - distance)};
    double x = (double)distance / (double)half, square = x * x, power = square;
    double exponent = 0.0, rest = 0.0;

    if (x > 0.5) { /* nothing cancels */
        exponent = (1.0 + x) * log1p(x) + count[2] / count[0] * log(count[2] / count[0]);
    } else { /* (1 + x) ln(1 + x) + (1 - x) ln(1 - x), a sum over k >= 1 of x^2k / (k (2k - 1)) */
        for (double k = 1.0; power > SMALLEST_TERM * exponent; k += 1.0) {
            exponent += power / (k * (2.0 * k - 1.0));
            power *= square;
        }
    }
    for (int i = 0; i < 3; i++) {
        rest += (i == 0 ? 2.0 : -1.0) *
                (1.0 / (12.0 * count[i]) - 1.0 / (360.0 * count[i] * count[i] * count[i]));
    }
    return rest - count[0] * exponent -
           0.5 * (log1p(x) + (x > 0.5 ? log(count[2] / count[0]) : log1p(-x)));
}

static int64_t
binomial_by_rejection(dpq_halves *h, int64_t count)
{
    const int64_t half = count / 2, size = (int64_t)sqrt((double)count);

    for (;;) {
        int64_t block = 0, distance;
        bool is_above;

        while (take(h, 1)) {
            block++;
        }
        distance = block * size + (int64_t)dpq_uniform_below((uint64_t)size, h->rng);
        is_above = take(h, 1);
        /* the middle is proposed only once */
        if (distance >= half || (distance == 0 && is_above)) {
            continue;
        }
        /* P[half + distance] <= 2^-block P[half], since distance^2 / half is about 2 block^2 at least */
        if (dpq_uniform_log(h->rng) <
            dpq_halves_log_binomial(half, distance) + (double)block * LN2) {
            return is_above ? half + distance : half - distance;
        }
    }
}

int64_t
dpq_halves_binomial(dpq_halves *h, int64_t count)
{
    int64_t ones = 0;

    if (count > h->counted) {
        if (count % 2) {
            ones = (int64_t)take(h, 1);
        }
        return ones + binomial_by_rejection(h, count - count % 2);
    }
    for (; count >= 64; count -= 64) {
        ones += ones_of(h->rng->next_uint64(h->rng->state));
    }
    return count > 0 ? ones + ones_of(take(h, (int)count)) : ones;
}

/* A part of a cell: 2^bits offsets from `at` on. */
typedef struct {
    int32_t known;
    int bits;
    int64_t at;
    int64_t start, count; /* the place of its first record, and how many it has */
} part;

static int64_t
size_of(int bits)
{
    return INT64_C(1) << bits;
}

/* Shell's, by gaps of a third each. */
static void
sort(uint32_t *drawn, int64_t count)
{
    int64_t gap = 1;

    while (gap < count / 3) {
        gap = 3 * gap + 1;
    }
    for (; gap > 0; gap /= 3) {
        for (int64_t i = gap; i < count; i++) {
            uint32_t offset = drawn[i];
            int64_t k = i;

            for (; k >= gap && drawn[k - gap] > offset; k -= gap) {
                drawn[k] = drawn[k - gap];
            }
            drawn[k] = offset;
        }
    }
}

/* Make something known of a part that has records and can be halved; false where there is no room. */
static bool
reveal(dpq_halves *h, int32_t *known, int bits, int64_t at, int64_t count)
{
    if (count <= h->few) {
        uint32_t *drawn = h->drawn + h->offsets;

        if (h->offset_room - h->offsets < (size_t)count) {
            return false;
        }
        for (int64_t i = 0; i < count; i++) {
            drawn[i] = (uint32_t)at + (uint32_t)take(h, bits);
        }
        sort(drawn, count);
        *known = -1 - (int32_t)h->offsets;
        h->offsets += (size_t)count;
        return true;
    }
    if (h->nodes == h->node_room) {
        return false;
    }
    h->node[h->nodes] = (dpq_half){dpq_halves_binomial(h, count), 0, 0};
    *known = (int32_t)h->nodes++;
    return true;
}

/* How many of some ascending offsets are below one of them or between them. */
static int64_t
drawn_below(const uint32_t *drawn, int64_t count, int64_t offset)
{
    int64_t low = 0, high = count;

    while (low < high) {
        int64_t middle = low + (high - low) / 2;

        if (drawn[middle] < offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Both halves of a part of which something is known. */
static void
halve(const dpq_halves *h, part whole, part *lower, part *upper)
{
    const int bits = whole.bits - 1;
    const int64_t middle = whole.at + size_of(bits);
    int64_t below;
    int32_t known_lower = whole.known, known_upper;

    if (whole.known < 0) {
        below = drawn_below(h->drawn - (whole.known + 1), whole.count, middle);
        known_upper = whole.known - (int32_t)below;
    } else {
        const dpq_half *node = h->node + whole.known;

        below = node->below;
        known_lower = node->lower;
        known_upper = node->upper;
    }
    *lower = (part){known_lower, bits, whole.at, whole.start, below};
    *upper = (part){known_upper, bits, middle, whole.start + below, whole.count - below};
}

static int64_t
min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t
max_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static bool
draw(dpq_halves *h, int32_t *known, int bits, int64_t at, int64_t count, int64_t start,
     int64_t stop)
{
    dpq_half *node;

    if (start >= stop || bits == 0) {
        return true;
    }
    if (*known == 0 && !reveal(h, known, bits, at, count)) {
        return false;
    }
    if (*known < 0) {
        return true;
    }
    node = h->node + *known;
    return draw(h, &node->lower, bits - 1, at, node->below, start, min_of(stop, node->below)) &&
           draw(h, &node->upper, bits - 1, at + size_of(bits - 1), count - node->below,
                max_of(start - node->below, 0), stop - node->below);
}

bool
dpq_halves_draw(dpq_halves *h, int32_t *known, int64_t count, int64_t start, int64_t stop)
{
    return draw(h, known, h->bits, 0, count, start, stop);
}

static void
read_part(const dpq_halves *h, part p, int64_t start, int64_t stop, int64_t *offset)
{
    const int64_t from = max_of(start, p.start), to = min_of(stop, p.start + p.count);
    part lower, upper;

    if (from >= to) {
        return;
    }
    if (p.bits == 0 || p.known < 0) {
        for (int64_t i = from; i < to; i++) {
            offset[i - start] = p.bits == 0 ? p.at : h->drawn[i - p.start - (p.known + 1)];
        }
        return;
    }
    halve(h, p, &lower, &upper);
    read_part(h, lower, start, stop, offset);
    read_part(h, upper, start, stop, offset);
}

void
dpq_halves_read(const dpq_halves *h, int32_t known, int64_t count, int64_t start, int64_t stop,
                int64_t *offset)
{
    read_part(h, (part){known, h->bits, 0, 0, count}, start, stop, offset);
}

bool
dpq_halves_below(dpq_halves *h, int32_t *known, int64_t count, int64_t offset, int64_t *below)
{
    int bits = h->bits;
    int64_t at = 0, lower = 0;

    while (count > 0 && offset > at && offset - at < size_of(bits)) {
        dpq_half *node;

        if (*known == 0 && !reveal(h, known, bits, at, count)) {
            return false;
        }
        if (*known < 0) {
            *below = lower + drawn_below(h->drawn - (*known + 1), count, offset);
            return true;
        }
        node = h->node + *known;
        bits--;
        if (offset - at <= size_of(bits)) {
            known = &node->lower;
            count = node->below;
        } else {
            at += size_of(bits);
            lower += node->below;
            count -= node->below;
            known = &node->upper;
        }
    }
    *below = offset > at ? lower + count : lower;
    return true;
}

void
dpq_halves_begin(const dpq_halves_around *around)
{
    for (size_t s = 0; s < around->sizes; s++) {
        around->stretch[s] = around->offset[s];
    }
}

/* How many records a part may have, at most, and whether it meets a stretch at all. Parts are asked about
 * in the order of their starts. */
static int64_t
full_of(const dpq_halves_around *around, int64_t start, int64_t count, bool *meets)
{
    *meets = true;
    for (size_t s = 0; s < around->sizes; s++) {
        size_t *at = &around->stretch[s];

        while (*at < around->offset[s + 1] && around->last[*at] < start) {
            ++*at;
        }
        if (*at < around->offset[s + 1] && around->first[*at] <= start + count) {
            return around->full[s];
        }
    }
    *meets = false;
    return around->full[around->sizes - 1];
}

static bool
split(dpq_halves *h, const dpq_halves_around *around, int64_t start, int32_t *known, int bits,
      int64_t at, int64_t count)
{
    bool meets;
    int64_t below;
    dpq_half *node;

    /* offsets that are drawn are parts of any size */
    if (bits == 0 || *known < 0 || count < full_of(around, start, count, &meets) || !meets) {
        return true;
    }
    if (*known == 0 && !reveal(h, known, bits, at, count)) {
        return false;
    }
    if (*known < 0) {
        return true;
    }
    node = h->node + *known;
    below = node->below;
    return split(h, around, start, &node->lower, bits - 1, at, below) &&
           split(h, around, start + below, &node->upper, bits - 1, at + size_of(bits - 1),
                 count - below);
}

bool
dpq_halves_split(dpq_halves *h, const dpq_halves_around *around, int64_t start, int32_t *known,
                 int64_t count)
{
    return split(h, around, start, known, h->bits, 0, count);
}

/* Cuts, ascending; those at one offset are one. */
typedef struct {
    size_t count;
    int64_t at, less, more;     /* the last one, still to be written */
    int64_t *to, *below, *above; /* NULL to count them */
    int64_t full, block;        /* of the part before */
} cutting;

static void
write_last(cutting *c)
{
    if (c->at >= 0) {
        if (c->to) {
            c->to[c->count] = c->at;
            c->below[c->count] = c->less;
            c->above[c->count] = c->more;
        }
        c->count++;
    }
}

static void
cut(cutting *c, int64_t at, int64_t less, int64_t more)
{
    if (at == c->at) {
        c->less = min_of(c->less, less);
        c->more = max_of(c->more, more);
        return;
    }
    write_last(c);
    c->at = at;
    c->less = less;
    c->more = more;
}

static void
cut_part(const dpq_halves *h, const dpq_halves_around *around, cutting *c, int64_t origin, part p)
{
    bool meets, tied;
    int64_t full;

    if (p.count == 0) {
        return;
    }
    full = full_of(around, p.start, p.count, &meets);
    if (meets && p.count >= full && p.bits > 0) {
        part lower, upper;

        halve(h, p, &lower, &upper);
        cut_part(h, around, c, origin, lower);
        cut_part(h, around, c, origin, upper);
        return;
    }
    tied = p.bits == 0 && p.count >= full;
    if (tied || full != c->full || p.start / full > c->block) {
        cut(c, origin + p.at - 1, p.start, p.start);
    }
    if (tied) {
        cut(c, origin + p.at, p.start, p.start + p.count);
    }
    c->full = full;
    c->block = p.start / full;
}

size_t
dpq_halves_cuts(const dpq_halves *h, const dpq_halves_around *around, size_t points,
                const int64_t *point, const int64_t *start, const int64_t *stop,
                const int64_t *cell, const int32_t *known, int64_t *at, int64_t *below,
                int64_t *above)
{
    cutting c = {0, -1, 0, 0, at, below, above, 0, -1};

    dpq_halves_begin(around);
    for (size_t i = 0; i < points; i++) {
        const int64_t origin = point[i] * size_of(h->bits);

        if (stop[i] > start[i]) {
            cut(&c, origin - 1, start[i], start[i]);
        }
        if (cell[i] >= 0) {
            cut_part(h, around, &c, origin,
                     (part){known[cell[i]], h->bits, 0, start[i], stop[i] - start[i]});
        }
        cut(&c, origin + size_of(h->bits) - 1, stop[i], stop[i]);
    }
    write_last(&c);
    return c.count;
}
