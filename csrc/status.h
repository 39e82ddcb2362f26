/* The status codes of all kernels: the only list. Each has an exception in _kernels/status.pyx. */
#ifndef DPQ_STATUS_H
#define DPQ_STATUS_H

typedef enum {
    DPQ_OK = 0,
    DPQ_ERR_NO_MASS = -1, /* every weight is zero */
    DPQ_ERR_NAN = -2,     /* a weight is NaN or +inf */
    DPQ_ERR_RANGE = -3,   /* a weight left the range of float64: rows of scan_blocks.h are due */
    DPQ_STATUS_END = -4   /* one past the last code, never returned */
} dpq_status;

#endif
