"""Declarations of csrc/*.h; the headers are the contracts."""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint64_t
from numpy.random cimport bitgen_t


cdef extern from "status.h" nogil:
    ctypedef enum dpq_status:
        DPQ_OK
        DPQ_ERR_NO_MASS
        DPQ_ERR_NAN
        DPQ_ERR_RANGE
        DPQ_STATUS_END

cdef extern from "uniform.h" nogil:
    double dpq_uniform_log(bitgen_t *rng)
    uint64_t dpq_uniform_below(uint64_t n, bitgen_t *rng)
    void dpq_uniform_multiset(size_t k, uint64_t w, bitgen_t *rng, int64_t *drawn)

cdef extern from "race.h" nogil:
    dpq_status dpq_race_draw(size_t n, const double *log_weight, bitgen_t *rng, size_t *drawn)

cdef extern from "lattice.h" nogil:
    void dpq_lattice_encode(size_t n, const double *value, double low, double high,
                            double per_unit, double step, int64_t first, int64_t points,
                            int64_t *point)
    bint dpq_lattice_is_sorted(size_t n, const double *value)

cdef extern from "intervals.h" nogil:
    size_t dpq_intervals_lattice(size_t segments, const int64_t *first_rank, const int64_t *count,
                                 int64_t n, int64_t before, int64_t after, const int64_t *point,
                                 int64_t *rank, double *width, int64_t *left)
    size_t dpq_intervals_continuous(size_t segments, const int64_t *first_rank,
                                    const int64_t *count, int64_t n, double before, double after,
                                    const double *point, int64_t *rank, double *width,
                                    double *left)
    size_t dpq_intervals_windows(size_t m, const double *q, int64_t n, int64_t window,
                                 int64_t *first, int64_t *last, int64_t *segment, int64_t *count)
    void dpq_intervals_probes(size_t m, const double *q, int64_t n, const int64_t *reach,
                              int64_t *place)
    void dpq_intervals_log_spans(size_t m, const double *value, double low, double high,
                                 double unit, double *log_span)
    int dpq_intervals_ranges(size_t m, const int64_t *first, const int64_t *last,
                             size_t intervals, const int64_t *rank, size_t *lo, size_t *hi)

cdef extern from "decay.h" nogil:
    ctypedef struct dpq_decay:
        pass

cdef extern from "scan.h" nogil:
    ctypedef struct dpq_scan_problem:
        size_t intervals
        const int64_t *rank
        const double *width
        int lattice
        size_t levels
        const int64_t *whole
        const double *part
        const size_t *lo
        const size_t *hi
        const size_t *start
        double rate

    ctypedef struct dpq_wide:
        double mantissa
        int64_t exponent

    ctypedef struct dpq_scan_level:
        pass

    void dpq_scan_targets(size_t m, const double *q, int64_t n, int64_t *whole, double *part)
    void dpq_scan_prepare(const dpq_scan_problem *p, dpq_decay *decay, dpq_scan_level *level)
    void dpq_scan_sums(const dpq_scan_problem *p, const dpq_decay *decay,
                       const dpq_scan_level *level, size_t j, const double *H, double *sums,
                       double *work)
    dpq_status dpq_scan_close(const dpq_scan_problem *p, const dpq_decay *decay,
                              dpq_scan_level *level, size_t j, double *A, double *H,
                              int64_t *exponent)
    dpq_status dpq_scan_total(const dpq_scan_problem *p, const dpq_decay *decay,
                              const dpq_scan_level *level, const double *H,
                              const int64_t *exponent, double *log_total)
    dpq_status dpq_scan_forward(const dpq_scan_problem *p, dpq_decay *decay,
                                dpq_scan_level *level, double *A, double *H, int64_t *exponent,
                                double *work, double *log_total)
    void dpq_scan_forward_wide(const dpq_scan_problem *p, dpq_decay *decay, dpq_scan_level *level,
                               dpq_wide *A, dpq_wide *H, dpq_wide *work, double *log_total)

cdef extern from "path.h" nogil:
    size_t DPQ_PATH_BLOCK

    ctypedef struct dpq_path_rows:
        const double *A
        const double *H
        const int64_t *exponent
        const dpq_wide *wide_A
        const dpq_wide *wide_H

    dpq_status dpq_path_draw(const dpq_scan_problem *p, const dpq_decay *decay,
                             const dpq_path_rows *rows, double log_escape, size_t size,
                             bitgen_t *rng, double *work, size_t *path, size_t *escaped)
    void dpq_path_points_lattice(size_t m, size_t size, const size_t *path, const int64_t *left,
                                 const double *width, bitgen_t *rng, int64_t *point)
    void dpq_path_points_continuous(size_t m, size_t size, const size_t *path,
                                    const double *left, const double *width, bitgen_t *rng,
                                    double *point)
