/* Records that lie uniformly in a cell, drawn by halves of it as far as they are asked for.
 *
 * A cell has 2^bits offsets, and each of its records lies at one of them, independently. Of K records the
 * number in the lower half is Binomial(K, 1/2), and within the halves they are uniform again. So a part of
 * a cell is halved only where something is asked that depends on it, until it has few records: these are
 * drawn one by one. What was drawn is kept, and holds for all that is asked later.
 */
#ifndef DPQ_HALVES_H
#define DPQ_HALVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <numpy/random/bitgen.h>

/* A part that was halved. What is known of a part is a number:
 *   0            nothing, or it has no records
 *   i > 0        node i
 *   -1 - i       its records lie at the offsets drawn[i], drawn[i + 1], ..., ascending
 */
typedef struct {
    int64_t below;        /* records in its lower half */
    int32_t lower, upper; /* what is known of both halves */
} dpq_half;

#define DPQ_HALVES_MOST INT32_MAX /* nodes, and offsets */

/* All that is known of some cells. */
typedef struct {
    int bits;        /* 1 to 32 */
    int64_t few;     /* parts of at most so many records are drawn one by one, >= 1 */
    int64_t counted; /* the number in a half is that of so many random bits at most */
    dpq_half *node;
    size_t nodes, node_room; /* 0 < nodes <= node_room <= DPQ_HALVES_MOST: node 0 is not used */
    uint32_t *drawn;
    size_t offsets, offset_room; /* offsets <= offset_room <= DPQ_HALVES_MOST */
    bitgen_t *rng; /* the caller holds its lock */
    uint64_t word; /* bits that are left of a word, `left` of them, the next ones lowest */
    int left;
} dpq_halves;

/* The functions below that return bool draw what is missing. They return false where there is no room,
 * for a node or for `few` offsets: then they are to be called again with more, and go on where they were. */

/* The records of a cell at places start, ..., stop - 1, in ascending order, from 0.
 *
 *   known        IN OUT, what is known of the cell
 *   count        its records
 */
bool
dpq_halves_draw(dpq_halves *h, int32_t *known, int64_t count, int64_t start, int64_t stop);

/* Their offsets, once they are drawn.
 *
 *   offset       OUT, length stop - start
 */
void
dpq_halves_read(const dpq_halves *h, int32_t known, int64_t count, int64_t start, int64_t stop,
                int64_t *offset);

/* How many records of a cell lie below an offset; any offset is allowed.
 *
 *   below        OUT
 */
bool
dpq_halves_below(dpq_halves *h, int32_t *known, int64_t count, int64_t offset, int64_t *below);

/* How short parts are to be around which places, among all records. */
typedef struct {
    size_t sizes;         /* >= 1 */
    const int64_t *full;  /* ascending, >= 1: parts have fewer records than that */
    const size_t *offset; /* length sizes + 1: size s is for the stretches offset[s], ... */
    const int64_t *first; /* a part of `count` records from place `start` on meets a stretch if */
    const int64_t *last;  /* first <= start + count and start <= last; both ascend for each size */
    size_t *stretch;      /* WORK, length sizes */
} dpq_halves_around;

/* Halve the parts of a cell that are too full for a stretch which they meet.
 *
 *   start        the place of its first record; no lower than in the call before, unless
 *                dpq_halves_begin was called since. That is needed where a call returned false, too.
 */
bool
dpq_halves_split(dpq_halves *h, const dpq_halves_around *around, int64_t start, int32_t *known,
                 int64_t count);

/* Let the next call of dpq_halves_split be about any cell. */
void
dpq_halves_begin(const dpq_halves_around *around);

/* Cuts between cells and inside of some, which were split: before and after each point that holds
 * records, after the others, before the first part of each `full` places, and around offsets that have as
 * many records. Cuts at one offset are one.
 *
 *   points       number of cells
 *   point        IN, ascending: cell i has the offsets point[i] 2^bits + (0, ..., 2^bits - 1)
 *   start, stop  IN, the places of its records
 *   cell         IN, -1 where it is not cut inside; else an index of
 *   known        IN, what is known of cells
 *   at           OUT, ascending: what is up to and with this offset is on one side; NULL to count them
 *   below        OUT, nothing on that side has more records below it
 *   above        OUT, nothing on the other side has fewer
 *
 * Returns   the number of cuts.
 */
size_t
dpq_halves_cuts(const dpq_halves *h, const dpq_halves_around *around, size_t points,
                const int64_t *point, const int64_t *start, const int64_t *stop,
                const int64_t *cell, const int32_t *known, int64_t *at, int64_t *below,
                int64_t *above);

/* A draw of Binomial(count, 1/2), count >= 0.
 *
 * Draws     `count` bits if these are at most `counted`. Beyond, in O(1), by rejection ([BKPPT14]): the
 *           distance from the middle is proposed in blocks of sqrt(count), block b with probability
 *           2^-(b + 1), and accepted with the ratio of the probabilities.
 * Accuracy  exact; by rejection probabilities are right to 1e-13 relative where count >= 2^17, but for
 *           the two outcomes of probability 2^-count, which are left out.
 */
int64_t
dpq_halves_binomial(dpq_halves *h, int64_t count);

/* ln of P[half + distance] / P[half] under Binomial(2 half, 1/2), 0 <= distance < half. */
double
dpq_halves_log_binomial(int64_t half, int64_t distance);

#endif
