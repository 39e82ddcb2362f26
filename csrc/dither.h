/* Where records that share a point lie inside of its cell: evenly, however many there are.
 *
 * A cell has 2^bits offsets. K records at its point lie at
 *
 *   s(0), ..., s(K - 1),   s(i) = reverse(i mod 2^bits) xor shift,
 *
 * where reverse() turns `bits` bits around: van der Corput's sequence, digitally shifted. Of any 2^-d of a
 * cell that begins at a multiple of that they take floor(K / 2^d) or one more. And one record more adds
 * one offset and moves none: so samples that differ in one record still do.
 *
 * The first d bits of s(i) say what i is modulo 2^d. So to count the offsets below one, or to find one by
 * its place among them, takes O(log K), and nothing is kept.
 */
#ifndef DPQ_DITHER_H
#define DPQ_DITHER_H

#include <stddef.h>
#include <stdint.h>

#include <numpy/random/bitgen.h>

typedef struct {
    int bits;         /* 1 to 32 */
    uint32_t shift;   /* below 2^bits */
    uint32_t turned;  /* reverse(shift) */
} dpq_dither;

/* One with a shift of its lowest bits; any word is allowed. */
dpq_dither
dpq_dither_of(int bits, uint64_t word);

/* With a random one, so that each record's offset is uniform.
 *
 *   rng          IN OUT, the caller holds its lock
 *
 * Draws     a word.
 */
static inline dpq_dither
dpq_dither_draw(int bits, bitgen_t *rng)
{
    return dpq_dither_of(bits, rng->next_uint64(rng->state));
}

/* `bits` bits turned around. */
static inline uint32_t
dpq_dither_reverse(uint32_t x, int bits)
{
    x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
    x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
    x = (x >> 4 & 0x0F0F0F0F) | (x & 0x0F0F0F0F) << 4;
    x = (x >> 8 & 0x00FF00FF) | (x & 0x00FF00FF) << 8;
    x = x >> 16 | x << 16;
    return x >> (32 - bits);
}

/* What the first `depth` bits of an offset, turned around, change by from `index` of them to the next: all
 * bits up to the lowest one that is 0 change. */
static inline uint32_t
dpq_dither_step(uint32_t index, int depth)
{
    uint32_t lowest = (index + 1) & ~index;

    return index & 1 ? dpq_dither_reverse(2 * lowest - 1, depth) : UINT32_C(1) << (depth - 1);
}

/* A part of a cell, the offsets that begin with some `depth` bits: its records are those whose i is
 * `rest` modulo 2^depth. All of a cell is {0, 0}. */
typedef struct {
    int depth; /* at most `bits` */
    uint32_t rest;
} dpq_dither_part;

/* How many of `count` records lie in it. */
static inline int64_t
dpq_dither_size(dpq_dither_part p, int64_t count)
{
    return count > p.rest ? ((count - 1 - p.rest) >> p.depth) + 1 : 0;
}

/* Its lower half, and its upper one: the next bit is 0, or 1. Bit d from the top is bit d of what is turned
 * around. */
static inline dpq_dither_part
dpq_dither_lower(const dpq_dither *d, dpq_dither_part p)
{
    return (dpq_dither_part){p.depth + 1, p.rest | (d->turned & UINT32_C(1) << p.depth)};
}

static inline dpq_dither_part
dpq_dither_upper(const dpq_dither *d, dpq_dither_part p)
{
    return (dpq_dither_part){p.depth + 1, p.rest | (~d->turned & UINT32_C(1) << p.depth)};
}

/* The offset of its only record. */
static inline uint32_t
dpq_dither_only(const dpq_dither *d, dpq_dither_part p)
{
    return dpq_dither_reverse(p.rest, d->bits) ^ d->shift;
}

/* How many of `count` records, at least 0, lie below an offset; any offset is allowed. */
int64_t
dpq_dither_below(const dpq_dither *d, int64_t count, int64_t offset);

/* The fine points of some records, point 2^bits + offset.
 *
 *   place        IN, length n, ascending: of the record among all,
 *   runs         of records at one point, ascending; some may be there more than once,
 *   point        IN, length runs: what they lie at,
 *   below, above IN, length runs: how many records are below that point, and up to it
 *   fine         OUT, length n
 *
 * Returns   how many of them are found one after another: n, if each is of a run.
 * Cost      O(log(above - below) + log(runs since the last one)) for each.
 */
size_t
dpq_dither_at(const dpq_dither *d, size_t n, const int64_t *place, size_t runs, const int64_t *point,
              const int64_t *below, const int64_t *above, int64_t *fine);

/* Some records in order, from points to fine points, point 2^bits + offset.
 *
 *   point        IN OUT, length n, ascending
 *   before       records at the first point that come before, and
 *   after        at the last one that follow
 */
void
dpq_dither_points(const dpq_dither *d, size_t n, int64_t *point, int64_t before, int64_t after);

#endif
