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

/* How many of `count` records, at least 0, lie below an offset; any offset is allowed. */
int64_t
dpq_dither_below(const dpq_dither *d, int64_t count, int64_t offset);

/* The offset of one of `count` records: of the one at `place`, 0 <= place < count, in their order. */
int64_t
dpq_dither_offset(const dpq_dither *d, int64_t count, int64_t place);

/* Some records in order, from points to fine points, point 2^bits + offset.
 *
 *   point        IN OUT, length n, ascending
 *   before       records at the first point that come before, and
 *   after        at the last one that follow
 */
void
dpq_dither_points(const dpq_dither *d, size_t n, int64_t *point, int64_t before, int64_t after);

#endif
