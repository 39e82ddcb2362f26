/* From one row of the forward pass to the next: what both the scan of intervals and that of cells do. */
#ifndef DPQ_STEP_H
#define DPQ_STEP_H

#include <stddef.h>
#include <stdint.h>

#include "scan.h"

typedef struct {
    const int64_t *rank_before; /* the last row's ranks, non-decreasing */
    const int64_t *rank;        /* this row's, likewise */
    size_t size;                /* entries of this row */
    const uint32_t *end;        /* entry t comes after the entries s < end[t] of the last row, */
    size_t shift, before;       /* or, if that is NULL, after s < min(t + shift, before) */
    int64_t whole, whole_now;   /* the last row's target and this one's: floor */
    double part, part_now;      /* and fraction */
    const dpq_scan_level *level; /* this row's constants */
} dpq_scan_step;

static inline size_t
dpq_scan_step_end(const dpq_scan_step *step, size_t t)
{
    if (step->end) {
        return step->end[t];
    }
    return t + step->shift < step->before ? t + step->shift : step->before;
}

#endif
