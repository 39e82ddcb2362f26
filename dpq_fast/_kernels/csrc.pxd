"""Declarations of csrc/*.h; the headers are the contracts."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from numpy.random cimport bitgen_t


cdef extern from "column.h" nogil:
    ctypedef enum dpq_column_kind:
        DPQ_FLOAT64
        DPQ_FLOAT32
        DPQ_INT64
        DPQ_INT32
        DPQ_INT16
        DPQ_INT8
        DPQ_UINT64
        DPQ_UINT32
        DPQ_UINT16
        DPQ_UINT8

    const size_t DPQ_COLUMN_BLOCK
    const size_t DPQ_COLUMN_LINE

    ctypedef struct dpq_column:
        const void *value
        dpq_column_kind kind

    size_t dpq_column_width(const dpq_column *column)
    size_t dpq_column_block(const dpq_column *column, size_t start, size_t n, size_t most)

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
    size_t dpq_race_draw_plain(size_t n, const double *weight, bitgen_t *rng)

cdef extern from "depth.h" nogil:
    size_t dpq_depth_cells(size_t intervals, const int64_t *rank, const double *width,
                           const int64_t *left, int64_t n, int64_t whole, double part,
                           int64_t below, int64_t through, int64_t *start, double *points,
                           double *loss)
    size_t dpq_depth_flip(size_t cells, const double *points, const double *loss, double rate,
                          size_t best, bitgen_t *rng)
    int64_t dpq_depth_point(size_t intervals, const int64_t *rank, const double *width,
                            const int64_t *left, int64_t n, int64_t whole, double part,
                            double rate, bitgen_t *rng)

cdef extern from "noise.h" nogil:
    int DPQ_NOISE_BITS

    ctypedef struct dpq_noise_ratio:
        uint64_t numerator[2]
        uint64_t denominator[2]

    void dpq_noise_bernoulli(uint64_t whole, const dpq_noise_ratio *part, size_t size,
                             bitgen_t *rng, uint8_t *drawn)
    void dpq_noise_laplace(const dpq_noise_ratio *scale, size_t size, bitgen_t *rng,
                           int64_t *drawn)
    void dpq_noise_gaussian(const dpq_noise_ratio *sigma, size_t size, bitgen_t *rng,
                            int64_t *drawn)

cdef extern from "lattice.h" nogil:
    void dpq_lattice_encode(size_t n, const double *value, double low, double high,
                            double per_unit, double step, int64_t first, int64_t points,
                            int64_t *point)
    void dpq_lattice_count(size_t n, const dpq_column *column, double low, double high,
                           double per_unit, double step, int64_t first, int64_t points,
                           int64_t *count)
    void dpq_lattice_count_integers(size_t n, const dpq_column *column, int64_t first, int64_t points,
                                    int64_t *count)
    void dpq_lattice_bisect(size_t asked, const dpq_column *column, double low, double high,
                            double per_unit, double step, int64_t first, int64_t points,
                            const int64_t *point, int64_t *lo, int64_t *hi)
    ctypedef struct dpq_lattice_places:
        size_t stretches
        const int64_t *low
        const int64_t *high
        const int64_t *size

    ctypedef struct dpq_lattice_place:
        size_t stretch
        int64_t above

    size_t dpq_lattice_runs(size_t n, const dpq_column *column, double low, double high,
                            double per_unit, double step, int64_t first, int64_t points,
                            const dpq_lattice_places *places, dpq_lattice_place *at, size_t room,
                            int64_t *point, int64_t *below, int64_t *above)
    void dpq_lattice_ties(size_t n, const dpq_column *column, double low, double high,
                          double per_unit, double step, int64_t first, int64_t points,
                          size_t asked, const int64_t *place, int64_t *point, int64_t *below,
                          int64_t *above)
    void dpq_lattice_least(size_t n, const int64_t *point, double low, double high, double per_unit,
                           double step, int64_t first, int64_t points, double *value)
    void dpq_lattice_decode(size_t n, const int64_t *point, double per_unit, double step,
                            int64_t first, double *value)
    bint dpq_lattice_is_sorted(size_t n, const double *value)
    bint dpq_lattice_has_missing(size_t n, const double *value)

cdef extern from "sums.h" nogil:
    const int64_t DPQ_SUMS_REACH, DPQ_SUMS_ASIDE

    ctypedef struct dpq_sums_wide:
        int64_t high
        uint64_t low

    size_t dpq_sums_plain(size_t n, const dpq_column *column, double scale, int64_t first,
                          int64_t last, int64_t *total)
    size_t dpq_sums_squares(size_t n, const dpq_column *column, double scale, int64_t first,
                            int64_t last, int64_t middle, int64_t *total, int64_t *squares)
    int64_t dpq_sums_weighted(size_t n, const double *value, const int64_t *weight, double scale,
                              int64_t first, int64_t last, dpq_sums_wide *total)
    int64_t dpq_sums_weighted_squares(size_t n, const double *value, const int64_t *weight,
                                      double scale, int64_t first, int64_t last, int64_t middle,
                                      dpq_sums_wide *total, dpq_sums_wide *squares)

cdef extern from "key.h" nogil:
    int64_t dpq_key_of(double value)
    double dpq_key_value(int64_t key)

cdef extern from "select.h" nogil:
    const int64_t DPQ_SELECT_BUCKETS

    ctypedef struct dpq_select_map:
        double low
        double high
        int linear
        double origin
        double scale
        int64_t base
        int shift
        int64_t buckets

    size_t dpq_select_count(const dpq_select_map *map, size_t rows, size_t n, size_t apart,
                            const dpq_column *column, int64_t *count, const uint8_t *wanted,
                            size_t room, double *out)
    void dpq_select_sample(const dpq_select_map *map, size_t run, size_t apart, size_t runs,
                           const dpq_column *column, int64_t *count)
    dpq_select_map dpq_select_choose(double low, double high, int64_t buckets, size_t n,
                                     const double *value)
    double dpq_select_edge(const dpq_select_map *map, int64_t bucket)
    void dpq_select_buckets(const dpq_select_map *map, size_t n, const double *value,
                            uint32_t *bucket)
    int64_t dpq_select_bucket(const dpq_select_map *map, double value)
    void dpq_select_refine(const dpq_select_map *map, const int32_t *cell, const int64_t *key_lo,
                           const int64_t *key_hi, const int32_t *shift, const int64_t *pivot,
                           int64_t parts, size_t n, const dpq_column *column, int64_t *count)
    void dpq_select_cells(double low, double high, size_t ranges, const double *lo,
                          const double *hi, const double *scale, int64_t parts, size_t n,
                          const dpq_column *column, int64_t *count, double *least, double *most)
    size_t dpq_select_between(double low, double high, size_t ranges, const double *lo,
                              const double *hi, size_t n, const dpq_column *column, size_t room,
                              double *out)
    size_t dpq_select_collect(const dpq_select_map *map, const uint8_t *wanted, size_t ranges,
                              const int64_t *key_lo, const int64_t *key_hi, size_t n,
                              const dpq_column *column, size_t room, double *out)

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
    size_t dpq_intervals_windows_by_level(size_t m, const double *q, int64_t n,
                                          const int64_t *window, int64_t *first, int64_t *last,
                                          int64_t *segment, int64_t *count)
    void dpq_intervals_probes(size_t m, const double *q, int64_t n, const int64_t *reach,
                              int64_t *place)
    void dpq_intervals_log_spans(size_t m, const double *value, double low, double high,
                                 double unit, double *log_span)
    int dpq_intervals_ranges(size_t m, const int64_t *first, const int64_t *last,
                             size_t intervals, const int64_t *rank, size_t *lo, size_t *hi)

cdef extern from "decay.h" nogil:
    ctypedef struct dpq_decay:
        pass

    void dpq_decay_fill(dpq_decay *decay, double rate, int64_t largest)

cdef extern from "large.h" nogil:
    ctypedef struct dpq_large:
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

    ctypedef struct dpq_scan_level:
        double gain
        double largest

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
                                dpq_scan_level *level, size_t first, double *A, double *H,
                                int64_t *exponent, double *work, double *log_total)

cdef extern from "scan_blocks.h" nogil:
    ctypedef struct dpq_scan_blocks:
        int alone
        const uint32_t *of_interval "of"
        const size_t *begin
        const size_t *first
        int64_t *A
        int64_t *H

    void dpq_scan_choose_blocks(const dpq_scan_problem *p, int alone, size_t known,
                                uint8_t *begins, uint32_t *of_interval, size_t *begin)
    dpq_status dpq_scan_forward_blocks(const dpq_scan_problem *p, dpq_decay *decay,
                                       dpq_scan_level *level, size_t first,
                                       const dpq_scan_blocks *blocks, double *A, double *H,
                                       dpq_large *work, double *log_total)

cdef extern from "path.h" nogil:
    size_t DPQ_PATH_BLOCK

    ctypedef struct dpq_path_rows:
        const double *A
        const double *H
        const int64_t *exponent
        dpq_scan_blocks blocks

    void dpq_path_draw(const dpq_scan_problem *p, const dpq_decay *decay,
                       const dpq_path_rows *rows, double log_escape, size_t size, bitgen_t *rng,
                       double *work, size_t *path, size_t *escaped)
    size_t dpq_path_go_on(const dpq_scan_problem *p, const dpq_decay *decay,
                          const dpq_path_rows *rows, size_t first, size_t left, bitgen_t *rng,
                          double *work, size_t *path)
    void dpq_path_points_lattice(size_t m, size_t size, const size_t *path, const int64_t *left,
                                 const double *width, bitgen_t *rng, int64_t *point)
    void dpq_path_points_continuous(size_t m, size_t size, const size_t *path,
                                    const double *left, const double *width, bitgen_t *rng,
                                    double *point)

cdef extern from "histogram.h" nogil:
    ctypedef struct dpq_histogram:
        size_t edges
        const int64_t *edge
        double low
        double base
        double scale
        int logarithmic
        int shift
        uint32_t last
        uint32_t *start
        double cap
        uint64_t first
        size_t most
        const int64_t *next

    size_t DPQ_HISTOGRAM_WORK

    void dpq_histogram_prepare(dpq_histogram *h)
    void dpq_histogram_count(const dpq_histogram *h, size_t n, const dpq_column *column, double sign,
                             const int64_t *weight, int64_t *count, uint32_t *work)
    size_t dpq_histogram_thresholds(double base, double lower, double upper, size_t skip,
                                    size_t step, size_t size, double *threshold)

cdef extern from "smooth.h" nogil:
    void dpq_smooth_log(size_t runs, const int64_t *rank, const double *value, int64_t target,
                        size_t count, const double *t, double *log_smooth)

cdef extern from "fit.h" nogil:
    ctypedef struct dpq_fit_bend:
        double price
        double slope
        size_t leaf

    ctypedef struct dpq_fit_tree:
        size_t leaves
        size_t levels
        const size_t *first
        const size_t *stop

    void dpq_fit_masses(const dpq_fit_tree *tree, const double *leaf_count,
                        const double *node_count, double total, double *mass, dpq_fit_bend *bend,
                        dpq_fit_bend *spare, double *offset, double *gain)

cdef extern from "lanes.h" nogil:
    enum:
        DPQ_LANES
        DPQ_LANES_MOST
    const double DPQ_LANES_LIGHT

    ctypedef struct dpq_lanes:
        double *fade
        double *above
        double *below
        double *stay
        double *point
        double *A
        double *H
        double *gain
        double *total
        double *suffix

cdef extern from "groups_scatter.h" nogil:
    int DPQ_GROUPS_MOST

    ctypedef struct dpq_groups_keys:
        int64_t lowest
        uint64_t span
        const int32_t *table
        int shift

    void dpq_groups_count(const dpq_groups_keys *keys, size_t n, const int64_t *key,
                          int64_t *count)
    int64_t dpq_groups_scatter(const dpq_groups_keys *keys, size_t n, const int64_t *key,
                               const double *value, int64_t *place, const int64_t *end,
                               double *grouped, uint16_t *member)
    void dpq_groups_order(size_t n, const double *value, const uint16_t *member, size_t groups,
                          int64_t *start, double *ordered)

cdef extern from "groups_sort.h" nogil:
    size_t dpq_groups_room(size_t n)
    int64_t *dpq_groups_sort(size_t n, int64_t *point, int64_t *spare)

cdef extern from "groups_release.h" nogil:
    ctypedef struct dpq_groups_law:
        size_t levels
        const double *q
        double rate
        double low
        double high
        int lattice
        double per_unit
        double step
        int64_t first
        int64_t points
        int bits
        double light

    ctypedef struct dpq_groups_work:
        int64_t *point
        int64_t *spare
        int64_t *rank
        int64_t *left
        double *width
        double *number
        double *edge
        double *A
        double *H
        double *race
        int64_t *exponent
        int64_t *whole
        double *part
        int64_t *first
        int64_t *last
        size_t *lo
        size_t *hi
        size_t *row
        size_t *path
        dpq_decay *decay
        dpq_scan_level *level
        size_t lanes_room
        dpq_lanes lanes
        int64_t *column

    ctypedef struct dpq_groups_windows:
        double log_volume
        double spare
        int64_t held
        int64_t reach
        double log_bound
        bint escaped

    dpq_status dpq_groups_release(const dpq_groups_law *law, size_t groups, const int64_t *start,
                                  const double *value, const int64_t *order,
                                  const dpq_groups_work *work, bitgen_t *rng, size_t *next,
                                  int64_t *point, double *number)
    dpq_status dpq_groups_release_one(const dpq_groups_law *law, size_t n, const double *value,
                                      const dpq_groups_work *work, bitgen_t *rng,
                                      dpq_groups_windows *windows, int64_t *point, double *number)
    void dpq_groups_flip_one(const dpq_groups_law *law, const double *rate, size_t n,
                             const double *value, const dpq_groups_work *work, bitgen_t *rng,
                             int64_t *point)
    void dpq_groups_flip(const dpq_groups_law *law, size_t first, size_t groups,
                         const int64_t *start, const double *value, const dpq_groups_work *work,
                         bitgen_t *rng, int64_t *point)

cdef extern from "halting.h" nogil:
    ctypedef enum dpq_halting_noise:
        DPQ_HALTING_EXPONENTIAL
        DPQ_HALTING_LAPLACE
        DPQ_HALTING_GUMBEL

    ctypedef struct dpq_halting:
        pass

    void dpq_halting_start(dpq_halting_noise noise, double rate1, double rate2, bitgen_t *rng,
                           dpq_halting *state)
    bint dpq_halting_advance(dpq_halting *state, size_t runs, const double *value,
                             const int64_t *length, bitgen_t *rng, int64_t *step)
    bint dpq_halting_confirm(dpq_halting *state, double value, int64_t step, bitgen_t *rng)
    bint dpq_halting_ask(dpq_halting *state, size_t first, size_t n, const dpq_column *column,
                         double threshold, bitgen_t *rng, int64_t *step)

cdef extern from "strings.h" nogil:
    ctypedef struct dpq_strings_one:
        const uint8_t *bytes
        size_t size
        uint32_t kind

    ctypedef struct dpq_strings_slot:
        pass

    ctypedef struct dpq_strings_table:
        size_t slots
        const dpq_strings_slot *slot
        const dpq_strings_one *key
        uint64_t seed[2]

    ctypedef enum dpq_strings_layout:
        DPQ_STRINGS_INT32
        DPQ_STRINGS_INT64
        DPQ_STRINGS_VIEWS

    ctypedef struct dpq_strings_buffer:
        const uint8_t *bytes
        size_t size

    ctypedef struct dpq_strings_arrow:
        dpq_strings_layout layout
        const uint8_t *entry
        const uint8_t *valid
        size_t first
        size_t buffers
        const dpq_strings_buffer *buffer

    size_t dpq_strings_slots(size_t n)
    void dpq_strings_fill(size_t n, const dpq_strings_one *key, const uint64_t *seed, size_t slots,
                          dpq_strings_slot *slot)
    void dpq_strings_find(const dpq_strings_table *table, size_t n, const dpq_strings_one *string,
                          int32_t *place)
    void dpq_strings_find_arrow(const dpq_strings_table *table, const dpq_strings_arrow *array,
                                size_t n, int32_t *place)
    void dpq_strings_find_fixed(const dpq_strings_table *table, size_t n, size_t width,
                                const uint32_t *character, int32_t *place)

cdef extern from "vector.h" nogil:
    void DPQ_PREFETCH(const void *address)

cdef extern from "stray.h" nogil:
    double DPQ_STRAY_WIDEST

    ctypedef struct dpq_stray_intervals:
        size_t intervals
        const int64_t *rank
        const double *width
        const int64_t *points
        const double *numbers

    ctypedef struct dpq_stray_borders:
        const int64_t *points
        const double *numbers

    ctypedef struct dpq_stray_problem:
        size_t levels
        const int64_t *whole
        const double *part
        double rate
        size_t cells
        size_t inside
        const int64_t *start
        const int64_t *window

    size_t dpq_stray_cells(int64_t window, int64_t reach, double rate, size_t m, double share,
                           size_t *inside, int64_t *start)
    void dpq_stray_levels(const dpq_stray_problem *p, const dpq_stray_intervals *intervals,
                          const dpq_stray_borders *borders, size_t first, size_t last,
                          double *work, int64_t *power)
    void dpq_stray_ranks(const dpq_stray_problem *p, int64_t n, size_t j, int64_t *rank)
    double dpq_stray_log(const dpq_stray_problem *p, const double *work, int64_t power)

cdef extern from "dither.h" nogil:
    ctypedef struct dpq_dither:
        int bits

    dpq_dither dpq_dither_draw(int bits, bitgen_t *rng)
    int64_t dpq_dither_below(const dpq_dither *d, int64_t count, int64_t offset)
    size_t dpq_dither_at(const dpq_dither *d, size_t n, const int64_t *place, size_t runs,
                         const int64_t *point, const int64_t *below, const int64_t *above,
                         int64_t *fine)
    void dpq_dither_points(const dpq_dither *d, size_t n, int64_t *point, int64_t before,
                           int64_t after)

cdef extern from "parts.h" nogil:
    ctypedef struct dpq_parts:
        dpq_dither dither
        size_t cuts
        const int64_t *first
        const int64_t *each
        const int64_t *below
        const int64_t *above
        size_t stretches
        const int64_t *start
        const int64_t *most
        size_t widths
        const int64_t *begin
        const double *ranks

    ctypedef struct dpq_part:
        int64_t left
        int64_t width
        int64_t least
        int64_t most

    size_t dpq_parts_leaves(const dpq_parts *p, const dpq_decay *decay, size_t room,
                            int64_t *least, int64_t *most, double **sum,
                            size_t *parts, size_t *longest)
    size_t dpq_parts_of(const dpq_parts *p, int64_t rank, size_t room, dpq_part *part)

    ctypedef struct dpq_parts_leaf:
        int64_t least
        int64_t most
        double width

    dpq_part dpq_parts_draw(const dpq_parts *p, double rate, const dpq_parts_leaf *leaf, int bend,
                            bitgen_t *rng, size_t room, dpq_part *part, double *weight)

cdef extern from "coarse.h" nogil:
    ctypedef struct dpq_coarse_ranks:
        int64_t *wide
        int32_t *narrow

    ctypedef struct dpq_coarse_problem:
        size_t leaves
        int heights
        const size_t *offset
        dpq_coarse_ranks least
        dpq_coarse_ranks most
        const double *volume[3]
        int lattice
        size_t levels
        const int64_t *whole
        const double *part
        const size_t *from_leaf "from"
        const size_t *to_leaf "to"
        const size_t *stretch
        const int64_t *until
        const double *span
        double rate

    const size_t DPQ_COARSE_BLOCK

    ctypedef struct dpq_coarse_segment:
        uint32_t at
        uint32_t cell

    ctypedef struct dpq_coarse_rows:
        const size_t *start
        const size_t *begin
        const dpq_coarse_segment *segment
        size_t held
        double *weight[2]
        int32_t *exponent
        double *run
        size_t *first_run
        uint32_t *has_run
        dpq_large *block[2]

    ctypedef struct dpq_coarse_runs:
        size_t room
        dpq_large *weight[2]
        size_t kept
        size_t room_kept

    ctypedef struct dpq_coarse_draw:
        pass

    ctypedef struct dpq_coarse_pieces:
        const size_t *slot
        const size_t *start
        const double *width
        const int64_t *least
        const int64_t *most
        const int64_t *points
        const double *numbers
        size_t longest

    void dpq_coarse_tree(const dpq_decay *decay, int heights, const size_t *offset, int64_t near,
                         uint8_t *heavy, const dpq_coarse_ranks *least,
                         const dpq_coarse_ranks *most, double **volume)
    size_t dpq_coarse_cells(const dpq_coarse_problem *p, size_t room, size_t *start, size_t *begin,
                            dpq_coarse_segment *segment)
    size_t dpq_coarse_block(const dpq_coarse_rows *rows, size_t j)
    size_t dpq_coarse_room(size_t longest, size_t levels)
    void dpq_coarse_prepare(const dpq_coarse_problem *p, dpq_decay *decay, dpq_scan_level *level)
    void dpq_coarse_begin_pass(const dpq_coarse_problem *p, const dpq_decay *decay,
                               const dpq_scan_level *level, const dpq_coarse_rows *rows,
                               const size_t *begins, void *work)
    size_t dpq_coarse_forward(const dpq_coarse_problem *p, const dpq_decay *decay,
                              const dpq_scan_level *level, const dpq_coarse_rows *rows,
                              size_t first, size_t last, dpq_coarse_runs *runs, void *work)
    const size_t *dpq_coarse_begins(const dpq_coarse_problem *p, const dpq_coarse_rows *rows,
                                    size_t j, void *work)
    double dpq_coarse_total(const dpq_coarse_problem *p, const dpq_coarse_rows *rows, void *work)
    void dpq_coarse_begin(const dpq_coarse_problem *p, const dpq_decay *decay,
                          const dpq_scan_level *level, const dpq_coarse_rows *rows, size_t size,
                          dpq_coarse_draw *state, void *work)
    size_t dpq_coarse_paths(const dpq_coarse_problem *p, const dpq_decay *decay,
                          const dpq_scan_level *level, const dpq_coarse_rows *rows, size_t first,
                          size_t last, size_t size, bitgen_t *rng, dpq_coarse_draw *state, void *work,
                          size_t *path)
    void dpq_coarse_bends(const dpq_coarse_problem *p, size_t size, const size_t *path,
                          int64_t *bend)
    void dpq_coarse_leaves(const dpq_coarse_problem *p, size_t size, size_t m, const size_t *path,
                           const int64_t *bend, bitgen_t *rng, size_t *leaf, uint32_t *copied)
    void dpq_coarse_points(const dpq_coarse_problem *p, const dpq_coarse_pieces *pieces,
                           size_t size, size_t m, const size_t *path, const int64_t *bend,
                           const size_t *leaf, const uint32_t *copied, bitgen_t *rng,
                           double *work, size_t *piece, int64_t *point, double *number)
