#include "dither.h"

#include "vector.h"

/* `bits` bits turned around. */
static uint32_t
reverse(uint32_t x, int bits)
{
    x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
    x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
    x = (x >> 4 & 0x0F0F0F0F) | (x & 0x0F0F0F0F) << 4;
    x = (x >> 8 & 0x00FF00FF) | (x & 0x00FF00FF) << 8;
    x = x >> 16 | x << 16;
    return x >> (32 - bits);
}

static uint32_t
lowest_bits(int k)
{
    return (uint32_t)((UINT64_C(1) << k) - 1);
}

dpq_dither
dpq_dither_of(int bits, uint64_t word)
{
    uint32_t shift = (uint32_t)word & lowest_bits(bits);

    return (dpq_dither){bits, shift, reverse(shift, bits)};
}

/* A part of a cell, the offsets that begin with some `depth` bits: its records are those whose i is
 * `rest` modulo 2^depth. */
typedef struct {
    int depth;
    uint32_t rest;
} part;

static int64_t
size_of(part p, int64_t count)
{
    return count > p.rest ? ((count - 1 - p.rest) >> p.depth) + 1 : 0;
}

/* Its lower half: the next bit is 0. Bit d from the top is bit d of what is turned around. */
static part
lower_half(const dpq_dither *d, part p)
{
    return (part){p.depth + 1, p.rest | (d->turned & UINT32_C(1) << p.depth)};
}

static part
upper_half(const dpq_dither *d, part p)
{
    return (part){p.depth + 1, p.rest | (~d->turned & UINT32_C(1) << p.depth)};
}

/* s(i) of the only record of a part. */
static uint32_t
offset_of(const dpq_dither *d, part p)
{
    return reverse(p.rest, d->bits) ^ d->shift;
}

int64_t
dpq_dither_below(const dpq_dither *d, int64_t count, int64_t offset)
{
    part p = {0, 0};
    int64_t size = count, below = 0;

    if (offset <= 0 || offset >> d->bits) {
        return offset <= 0 ? 0 : count;
    }
    while (size > 1 && p.depth < d->bits) {
        part lower = lower_half(d, p);
        int64_t in_lower = size_of(lower, count);

        if (offset >> (d->bits - 1 - p.depth) & 1) {
            p = upper_half(d, p);
            below += in_lower;
            size -= in_lower;
        }
        else {
            p = lower;
            size = in_lower;
        }
    }
    /* what is left lies at one offset: at this one if nothing is left to halve */
    return below + (size == 1 && offset_of(d, p) < offset);
}

int64_t
dpq_dither_offset(const dpq_dither *d, int64_t count, int64_t place)
{
    part p = {0, 0};
    int64_t size = count;

    while (size > 1 && p.depth < d->bits) {
        part lower = lower_half(d, p);
        int64_t in_lower = size_of(lower, count);

        if (place < in_lower) {
            p = lower;
            size = in_lower;
        }
        else {
            p = upper_half(d, p);
            place -= in_lower;
            size -= in_lower;
        }
    }
    return offset_of(d, p);
}

/* How many first bits tell `count` records apart, at least 1; all bits where these do not. */
static int
depth_for(const dpq_dither *d, int64_t count)
{
    int depth = 1;

    while (depth < d->bits && INT64_C(1) << depth < count) {
        depth++;
    }
    return depth;
}

/* What the first `depth` bits of an offset, turned around, change by from `index` of them to the next: all
 * bits up to the lowest one that is 0 change. */
static uint32_t
turned_step(uint32_t index, int depth)
{
    uint32_t lowest = (index + 1) & ~index;

    return index & 1 ? reverse(2 * lowest - 1, depth) : UINT32_C(1) << (depth - 1);
}

/* The records at `place` and after it of `count` at one point, n of them, in order: the parts of a cell
 * that tell them apart are gone through, from the lowest one on. */
static void
fill(const dpq_dither *d, int64_t count, int64_t place, size_t n, int64_t origin, int64_t *point)
{
    const int depth = depth_for(d, count), rest = d->bits - depth;
    const uint32_t low = d->shift & lowest_bits(rest);
    uint32_t index = 0, turned = d->turned & lowest_bits(depth);
    int64_t skipped = 0;
    size_t done = 0;

    if (place > 0) {
        int64_t at = dpq_dither_offset(d, count, place);

        index = (uint32_t)(at >> rest);
        turned ^= reverse(index, depth);
        skipped = place - dpq_dither_below(d, count, at); /* records at the same offset */
    }
    origin |= low;
    if (count <= INT64_C(1) << depth) { /* one in a part, or none: no branch but at the end */
        for (; done < n; index++) {
            point[done] = origin | (int64_t)index << rest;
            done += turned < count;
            turned ^= turned_step(index, depth);
        }
        return;
    }
    for (; done < n; index++) {
        int64_t size = size_of((part){depth, turned}, count) - skipped;

        for (; size > 0 && done < n; size--) {
            point[done++] = origin | index;
        }
        skipped = 0;
        turned ^= turned_step(index, depth);
    }
}

/* Points that have one record each. */
DPQ_VECTORIZED static void
move(const dpq_dither *d, size_t n, int64_t *point)
{
    const int64_t size = INT64_C(1) << d->bits, offset = d->shift;

    for (size_t i = 0; i < n; i++) {
        point[i] = point[i] * size + offset;
    }
}

void
dpq_dither_points(const dpq_dither *d, size_t n, int64_t *point, int64_t before, int64_t after)
{
    size_t done = 0; /* up to there, records are alone at their points, or laid out */

    for (size_t i = 0, end; i < n; i = end) {
        int64_t place = i == 0 ? before : 0, count;

        for (end = i + 1; end < n && point[end] == point[i];) {
            end++;
        }
        count = place + (int64_t)(end - i) + (end == n ? after : 0);
        if (count > 1) {
            move(d, i - done, point + done);
            fill(d, count, place, end - i, point[i] * (INT64_C(1) << d->bits), point + i);
            done = end;
        }
    }
    move(d, n - done, point + done);
}
