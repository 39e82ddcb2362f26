"""Status codes of csrc/status.h as exceptions.

Every code is reached by a broken promise inside the library, never by a user's data.
"""

from dpq_fast._kernels.csrc cimport (
    DPQ_ERR_NAN,
    DPQ_ERR_NO_MASS,
    DPQ_ERR_RANGE,
    DPQ_OK,
    DPQ_STATUS_END,
    dpq_status,
)

STATUS_END = <int>DPQ_STATUS_END

_EXCEPTIONS = {
    <int>DPQ_ERR_NO_MASS: (ValueError, "at least one weight must be positive, got none"),
    <int>DPQ_ERR_NAN: (ValueError, "log-weights must be finite or -inf, got NaN or +inf"),
    <int>DPQ_ERR_RANGE: (
        FloatingPointError,
        "a weight left the range of float64 where rows in blocks were due; please report this",
    ),
}


def exception_of(int status):
    """The exception that stands for a negative status code."""
    kind, message = _EXCEPTIONS[status]
    return kind(message)


cdef int check(dpq_status status) except -1:
    if status != DPQ_OK:
        raise exception_of(status)
    return 0
