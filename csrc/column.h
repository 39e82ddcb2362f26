/* Values of a column in their own type, read as float64 by blocks that stay in the first cache. */
#ifndef DPQ_COLUMN_H
#define DPQ_COLUMN_H

#include <stddef.h>
#include <stdint.h>

/* Types of values; all others are converted before a kernel sees them. */
typedef enum {
    DPQ_FLOAT64,
    DPQ_FLOAT32,
    DPQ_INT64,
    DPQ_INT32,
    DPQ_INT16,
    DPQ_INT8,
    DPQ_UINT64,
    DPQ_UINT32,
    DPQ_UINT16,
    DPQ_UINT8, /* booleans, too */
    DPQ_KINDS
} dpq_column_kind;

typedef struct {
    const void *value; /* contiguous, aligned, of the machine's byte order */
    dpq_column_kind kind;
} dpq_column;

/* Values that are read at once, at most. */
#define DPQ_COLUMN_BLOCK 1024
/* Bytes of memory that come together, at most. */
#define DPQ_COLUMN_LINE 64

/* Size of a value in bytes. */
size_t
dpq_column_width(const dpq_column *column);

/* How many of n values to look at together from `start` on, at most `most`: up to where a line of memory
 * ends, so that no vector of the blocks after the first is in two lines, or to the last value.
 *
 *   most         a multiple of DPQ_COLUMN_LINE
 */
size_t
dpq_column_block(const dpq_column *column, size_t start, size_t n, size_t most);

/* Where the values stand that are read after the block at `start` of n; some before, if there are too
 * few. Memory to ask for ahead.
 */
const char *
dpq_column_ahead(const dpq_column *column, size_t start, size_t n);

/* The values start, ..., start + n - 1 as float64, rounded to nearest where they do not fit.
 *
 *   n            at most DPQ_COLUMN_BLOCK
 *   room         WORK, length n
 *
 * Returns   where they stand: in the column itself if it is of float64, else in `room`.
 */
const double *
dpq_column_read(const dpq_column *column, size_t start, size_t n, double *room);

/* The values at some places, which need not be near each other.
 *
 *   place        IN, length n, any number of them
 *   value        OUT, length n
 */
void
dpq_column_at(const dpq_column *column, size_t n, const int64_t *place, double *value);

/* The values that dpq_column_read() has as integers, of a column of integers but DPQ_UINT64. */
const int64_t *
dpq_column_integers(const dpq_column *column, size_t start, size_t n, int64_t *room);

#endif
