/* Values of a column in their own type, read as float64 by blocks that stay in the first cache. */
#ifndef DPQ_COLUMN_H
#define DPQ_COLUMN_H

#include <stddef.h>

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

/* Size of a value in bytes. */
size_t
dpq_column_width(const dpq_column *column);

/* The values start, ..., start + n - 1 as float64, rounded to nearest where they do not fit.
 *
 *   n            at most DPQ_COLUMN_BLOCK
 *   room         WORK, length n
 *
 * Returns   where they stand: in the column itself if it is of float64, else in `room`.
 */
const double *
dpq_column_read(const dpq_column *column, size_t start, size_t n, double *room);

#endif
