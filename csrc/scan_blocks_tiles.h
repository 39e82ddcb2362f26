/* Rows of consecutive ranks in blocks: the sums of tiles.h, in units of a tile each. */
#ifndef DPQ_SCAN_BLOCKS_TILES_H
#define DPQ_SCAN_BLOCKS_TILES_H

#include <stddef.h>

#include "decay.h"
#include "scan.h"
#include "scan_blocks.h"

#define DPQ_SCAN_LEAST_KEPT 0x1p-1000 /* positive entries of blocks are at least this in their units */

/* The sums of row j >= 1, and units of their blocks in place of those of A.
 *
 *   H            IN, row j - 1 of it
 *   sums         OUT, length hi[j] - lo[j]
 *
 * Returns   whether there is room for all.
 */
int
dpq_scan_blocks_tiles(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
                      const dpq_scan_blocks *blocks, size_t j, const double *H, double *restrict sums);

#endif
