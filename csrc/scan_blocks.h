/* The forward pass of scan.h in rows that one exponent each would not do for: of blocks of intervals that
 * follow each other, with an exponent each.
 */
#ifndef DPQ_SCAN_BLOCKS_H
#define DPQ_SCAN_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "large.h"
#include "scan.h"

#define DPQ_SCAN_BLOCK 64      /* most intervals of a block */
#define DPQ_SCAN_STEEPEST 16.0 /* the largest rate that blocks of several are for */

typedef struct {
    int alone;           /* whether each interval is in a block of its own */
    const uint32_t *of;  /* IN, length T: which block an interval is in, ascending; rows have what is left of
                          * a block at their ends */
    const size_t *begin; /* IN: block b has the intervals begin[b], ..., begin[b + 1] - 1, at most
                          * DPQ_SCAN_BLOCK */
    const size_t *first; /* IN, length m: the exponents of row j begin here, and end where those of row
                          * j + 1 do */
    int64_t *A, *H;      /* entries stand for themselves times 2^exponent: 1 or more, below 2, for the
                          * largest of a block; 0 where all are 0 */
} dpq_scan_blocks;

/* Where the exponents of interval t of row j are. */
static inline size_t
dpq_scan_block(const dpq_scan_problem *p, const dpq_scan_blocks *blocks, size_t j, size_t t)
{
    return blocks->first[j] + (blocks->of[t] - blocks->of[p->lo[j]]);
}

/* Where the block of entry i of row j ends, among its entries. */
static inline size_t
dpq_scan_block_end(const dpq_scan_problem *p, const dpq_scan_blocks *blocks, size_t j, size_t i)
{
    size_t end = blocks->begin[blocks->of[p->lo[j] + i] + 1];

    return (end < p->hi[j] ? end : p->hi[j]) - p->lo[j];
}

/* Choose blocks: of one interval each, or of up to DPQ_SCAN_BLOCK. These have room for most rows: an interval
 * that is much wider than the one before it may hold many outputs, as may those that follow it, so that each is
 * in a block of its own.
 *
 *   alone        IN
 *   known        how many intervals from lo[0] on are known to begin one or not, by rows that are given
 *   begins       IN OUT, length T: whether a block begins at an interval; IN for the known ones
 *   of           OUT, length T
 *   begin        OUT, length T + 1
 */
void
dpq_scan_choose_blocks(const dpq_scan_problem *p, int alone, size_t known, uint8_t *begins,
                       uint32_t *of, size_t *begin);

/* The forward pass in such rows.
 *
 *   first        as for dpq_scan_forward
 *   blocks       IN OUT
 *   A, H         OUT, sum(hi - lo) entries each
 *   work         WORK, length 3 max(hi - lo)
 *   log_total    OUT, or NULL
 *
 * Returns   DPQ_OK, or DPQ_ERR_RANGE if a positive entry fell below 2^-1000 in units of its block, or would
 *           be likely to, as the rate is above DPQ_SCAN_STEEPEST: not where each interval is alone.
 * Cost      O(sum(hi - lo)), no allocation, reentrant.
 * Accuracy  every entry right to 1e-11 relative, however much is lost, for ranks up to 2^53; but the
 *           loss of a step beyond 1e17 is held there, and entries that are all so small are no longer
 *           told apart.
 */
dpq_status
dpq_scan_forward_blocks(const dpq_scan_problem *p, dpq_decay *decay, dpq_scan_level *level,
                        size_t first, const dpq_scan_blocks *blocks, double *A, double *H,
                        dpq_large *work, double *log_total);

#endif
