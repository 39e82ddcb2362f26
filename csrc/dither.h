/* Records that lie uniformly in the cells of their points, drawn one by one as far as they are asked for.
 *
 * Each record has an offset of 0, ..., 2^bits - 1, keyed by its place in the order of points. Offsets are
 * drawn by stretches of places; what was drawn is kept, and holds for all that is asked later. A block is
 * all records of one point: in order, they are at its offsets in ascending order.
 */
#ifndef DPQ_DITHER_H
#define DPQ_DITHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <numpy/random/bitgen.h>

/* A slot of a hash table. */
typedef struct {
    int64_t stretch;
    const uint32_t *offset; /* of the places of the stretch; NULL in a free slot */
} dpq_dither_slot;

/* All that is known of the records. */
typedef struct {
    int bits;              /* 1 to 32 */
    int stretch_bits;      /* a stretch has 2^stretch_bits places, 0 to 20 */
    dpq_dither_slot *slot; /* length slots, a power of two >= 1 */
    size_t slots;
    uint32_t *room; /* for the stretches drawn next, `left` of them */
    size_t left;
} dpq_dither;

/* All that is known in a larger table: slots free, a power of two, more than there are stretches. */
void
dpq_dither_move(const dpq_dither *from, dpq_dither *to);

/* Draw the offsets of the places start, ..., stop - 1 and of all in their stretches, where they are
 * missing. There has to be a free slot for each stretch and one more.
 *
 *   start, stop  0 <= start < stop
 *   rng          IN OUT, the caller holds its lock
 *
 * Draws     stretch after stretch, as dpq_uniform_bits
 * Returns   stop; or the first place of a stretch for which there was no room: go on from there.
 */
int64_t
dpq_dither_draw(dpq_dither *d, int64_t start, int64_t stop, bitgen_t *rng);

/* Whether all of these places are drawn. */
bool
dpq_dither_drawn(const dpq_dither *d, int64_t start, int64_t stop);

/* The functions below are about places that are drawn. */

/* Offsets of the records at places start, ..., stop - 1.
 *
 *   offset       OUT, length stop - start
 */
void
dpq_dither_read(const dpq_dither *d, int64_t start, int64_t stop, int64_t *offset);

/* How many of them are below an offset. */
int64_t
dpq_dither_below(const dpq_dither *d, int64_t start, int64_t stop, int64_t offset);

/* The records at places start, ..., stop - 1 of some blocks. */
typedef struct {
    int64_t start, stop; /* start < stop */
    const int64_t *point; /* length stop - start, ascending */
    int64_t low, high;   /* low <= start: where the block of the first one begins; stop <= high: where
                          * that of the last one ends */
} dpq_dither_window;

#define DPQ_DITHER_PADDING 64

/* Whether no block has more than `most` records. */
bool
dpq_dither_fits(const dpq_dither_window *window, int64_t most);

/* These records in order, point 2^bits + offset each, which int64_t has to hold.
 *
 *   work         WORK, length 3 (k + DPQ_DITHER_PADDING) for blocks of at most k records
 *   fine         OUT, length stop - start
 *
 * Cost      O(1) for each record, but for offsets that are equal where k is large.
 */
void
dpq_dither_points(const dpq_dither *d, const dpq_dither_window *window, uint32_t *work,
                  int64_t *fine);

#endif
