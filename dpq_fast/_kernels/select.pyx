"""Selection from unsorted values, csrc/select.h."""

import numpy as np

from dpq_fast._kernels.buffers cimport doubles, given_column, integers
from dpq_fast._kernels.csrc cimport (
    DPQ_COLUMN_BLOCK,
    DPQ_COLUMN_LINE,
    DPQ_SELECT_BUCKETS,
    dpq_column,
    dpq_column_block,
    dpq_column_width,
    dpq_key_of,
    dpq_key_value,
    dpq_select_between,
    dpq_select_bucket,
    dpq_select_buckets,
    dpq_select_cells,
    dpq_select_choose,
    dpq_select_collect,
    dpq_select_count,
    dpq_select_edge,
    dpq_select_map,
    dpq_select_refine,
    dpq_select_sample,
    int32_t,
    int64_t,
    size_t,
    uint8_t,
    uint32_t,
)
from numpy cimport ndarray

# Bytes of memory that come together, at most.
LINE = DPQ_COLUMN_LINE


cdef class Map:
    """Which bucket a value falls in; NaN falls in bucket number `buckets`.

    Parameters
    ----------
    low, high : float
        Values are clamped to this first.
    buckets : int
        Number of buckets, 1 to 2^13.
    origin, scale : float, optional
        Bucket (v - origin) * scale, rounded down; scale > 0 and finite. Or:
    base, shift : int, optional
        Bucket (key(v) - base) >> shift, 0 <= shift < 64.
    """

    def __init__(self, double low, double high, int64_t buckets, *, origin=None, scale=None,
                 base=None, shift=None):
        if not 1 <= buckets <= DPQ_SELECT_BUCKETS:
            raise ValueError(f"buckets must be 1 to 2^13, got {buckets}")
        self.given = dict(origin=origin, scale=scale, base=base, shift=shift)
        self.map.low, self.map.high, self.map.buckets = low, high, buckets
        self.map.linear = origin is not None
        if self.map.linear:
            self.map.origin, self.map.scale = origin, scale
        else:
            self.map.base, self.map.shift = base, shift

    @staticmethod
    def chosen(double low, double high, int64_t buckets, const double[::1] value not None):
        """The map that spreads some values most evenly; they ascend, and are within the bounds.

        `buckets` is a power of 2.
        """
        cdef:
            size_t n = value.shape[0]
            dpq_select_map found = dpq_select_choose(low, high, buckets, n, &value[0] if n else NULL)

        if found.linear:
            return Map(low, high, buckets, origin=found.origin, scale=found.scale)
        return Map(low, high, buckets, base=found.base, shift=found.shift)

    def __reduce__(self):
        return _map, (self.map.low, self.map.high, self.map.buckets, self.given)

    @property
    def ends(self):
        """What values are clamped to."""
        return self.map.low, self.map.high

    def edges(self, const int64_t[::1] bucket not None):
        """About where buckets begin, but for the first."""
        cdef:
            ndarray found = np.empty(bucket.shape[0])
            double *out = doubles(found)
            Py_ssize_t i

        for i in range(bucket.shape[0]):
            out[i] = dpq_select_edge(&self.map, bucket[i])
        return found

    def buckets(self, const double[::1] value not None):
        """Bucket of each value."""
        cdef:
            size_t n = value.shape[0]
            ndarray found = np.empty(n, dtype=np.uint32)
            uint32_t[::1] bucket = found

        if n > 0:
            dpq_select_buckets(&self.map, n, &value[0], &bucket[0])
        return found

    def bucket(self, double value):
        """Bucket of one value."""
        return dpq_select_bucket(&self.map, value)

    def count(self, ndarray value not None, int64_t[::1] total not None,
              const uint8_t[::1] wanted=None, double[::1] out=None):
        """Add to `total`, of length buckets + 1, how many values are in each bucket.

        `value` may have two axes: rows that are apart in memory, but each of them is contiguous.
        The values of the `wanted` buckets (0 for others), clamped, are written to `out` as far as
        there is room; how many there are is given.
        """
        cdef:
            size_t rows = value.shape[0] if value.ndim == 2 else 1
            ndarray row = value[0] if value.ndim == 2 and rows else value
            dpq_column column = given_column(row)
            size_t n = row.shape[0], taken = 0, room = 0, apart = n
            double *to = NULL
            const uint8_t *flag = NULL

        if total.shape[0] != self.map.buckets + 1:
            raise ValueError("total must have one entry for each bucket, and one more")
        if rows > 1:
            if (value.strides[0] < <Py_ssize_t>n * row.itemsize
                    or value.strides[0] % row.itemsize != 0):
                raise ValueError("rows must ascend in memory, by whole values, and not overlap")
            apart = value.strides[0] // row.itemsize
        if wanted is not None:
            _check_wanted(wanted, self.map.buckets)
            flag = &wanted[0]
        if out is not None and out.shape[0] > 0:
            to, room = &out[0], out.shape[0]
        if n > 0:
            with nogil:
                taken = dpq_select_count(&self.map, rows, n, apart, &column, &total[0], flag,
                                         room, to)
        return taken

    def sample(self, ndarray value not None, size_t run, size_t runs,
               int64_t[::1] total not None):
        """Add to `total` how many values of a sample are in each bucket: `runs` of them, of length
        `run` each, equally far apart. They begin with lines of memory where they are far apart."""
        cdef:
            dpq_column column = given_column(value)
            size_t apart = value.shape[0] // max(runs, 1)
            size_t line = DPQ_COLUMN_LINE // dpq_column_width(&column)
            size_t lead = dpq_column_block(&column, 0, DPQ_COLUMN_LINE, DPQ_COLUMN_LINE) % line

        if total.shape[0] != self.map.buckets + 1:
            raise ValueError("total must have one entry for each bucket, and one more")
        if not 1 <= run <= DPQ_COLUMN_BLOCK or (runs > 0 and run > apart):
            raise ValueError("run must be 1 to 1,024, and runs must not overlap")
        if apart >= run + line:
            apart -= apart % line
            column.value = <const char *>column.value + lead * dpq_column_width(&column)
        if runs > 0:
            with nogil:
                dpq_select_sample(&self.map, run, apart, runs, &column, &total[0])

    def refine(self, const int32_t[::1] cell not None, const int64_t[::1] key_lo not None,
               const int64_t[::1] key_hi not None, const int32_t[::1] shift not None,
               const int64_t[::1] pivot not None, ndarray value not None,
               int64_t[:, ::1] total not None):
        """Add to `total`, a row for each cell, how many values are in each part of its keys.

        ``cell[bucket]`` numbers the cells, -1 for none; one cell, or none, for each bucket. Part
        ``(key - key_lo) >> shift`` of the keys ``key_lo <= key < key_hi``; with a shift of -1 those
        below, at and above the pivot.
        """
        cdef:
            dpq_column column = given_column(value)
            size_t n = value.shape[0]

        if cell.shape[0] != self.map.buckets + 1 or not (
            key_lo.shape[0] == key_hi.shape[0] == shift.shape[0] == pivot.shape[0]
            == total.shape[0] > 0
        ):
            raise ValueError("cell must have one entry for each bucket, and one more")
        if n > 0:
            with nogil:
                dpq_select_refine(&self.map, &cell[0], &key_lo[0], &key_hi[0], &shift[0],
                                  &pivot[0], total.shape[1], n, &column, &total[0, 0])

    def collect(self, const uint8_t[::1] wanted not None, const int64_t[::1] key_lo not None,
                const int64_t[::1] key_hi not None, ndarray value not None, size_t room):
        """Values of the wanted buckets or key ranges, at most `room`; and how many there were."""
        cdef:
            dpq_column column = given_column(value)
            size_t n = value.shape[0], total = 0, kept = min(room, n)
            size_t ranges = key_lo.shape[0]
            ndarray found = np.empty(kept)
            double *out = doubles(found)
            const int64_t *lo = &key_lo[0] if ranges else NULL
            const int64_t *hi = &key_hi[0] if ranges else NULL

        _check_wanted(wanted, self.map.buckets)
        if key_hi.shape[0] != key_lo.shape[0]:
            raise ValueError("key_lo and key_hi must have one entry for each range")
        if n > 0:
            with nogil:
                total = dpq_select_collect(&self.map, &wanted[0], ranges, lo, hi, n, &column,
                                           kept, out)
        return found[:min(total, kept)], total

    def between(self, const double[::1] lo not None, const double[::1] hi not None,
                ndarray value not None, size_t room):
        """Values with lo[r] <= v <= hi[r] for some r, clamped, as for `collect`."""
        cdef:
            dpq_column column = given_column(value)
            size_t n = value.shape[0], total = 0, kept = min(room, n)
            ndarray found = np.empty(kept)
            double *out = doubles(found)

        if not lo.shape[0] == hi.shape[0] > 0:
            raise ValueError("lo and hi must have one entry for each range")
        if n > 0:
            with nogil:
                total = dpq_select_between(self.map.low, self.map.high, lo.shape[0], &lo[0],
                                           &hi[0], n, &column, kept, out)
        return found[:min(total, kept)], total


cdef int _check_wanted(const uint8_t[::1] wanted, int64_t buckets) except -1:
    if wanted.shape[0] != buckets + 1:
        raise ValueError("wanted must have one entry for each bucket, and one more")
    return 0


def _map(low, high, buckets, given):
    """A map as it was pickled."""
    return Map(low, high, buckets, **given)


def cells(double low, double high, const double[::1] lo not None, const double[::1] hi not None,
          const double[::1] scale not None, ndarray value not None, int64_t[::1] count not None,
          double[:, ::1] least not None, double[:, ::1] most not None):
    """Add values, clamped to the bounds, to the counts of cells, and to their least and largest.

    Ranges lo[r] <= v <= hi[r] ascend and do not overlap; each is a row of `least` and `most`, with
    one entry for each part. `count` has one for each cell, and at last the number of NaN.
    """
    cdef:
        dpq_column column = given_column(value)
        Py_ssize_t ranges = lo.shape[0], parts = least.shape[1]

    if not (hi.shape[0] == scale.shape[0] == least.shape[0] == most.shape[0] == ranges > 0):
        raise ValueError("lo, hi, scale, least and most must have one entry for each range")
    if not (parts == most.shape[1] and 0 < parts <= 1 << 30 and
            count.shape[0] == ranges * parts + 1):
        raise ValueError("count must have one entry for each cell, and one more")
    if value.shape[0] > 0:
        with nogil:
            dpq_select_cells(low, high, ranges, &lo[0], &hi[0], &scale[0], parts, value.shape[0],
                             &column, &count[0], &least[0, 0], &most[0, 0])


def value_of(int64_t key):
    """The number with this key."""
    return dpq_key_value(key)


def keys(const double[::1] value not None):
    """Keys of numbers that are not NaN: int64 in the order of the values."""
    cdef:
        ndarray found = np.empty(value.shape[0], dtype=np.int64)
        int64_t *out = integers(found)
        Py_ssize_t i

    for i in range(value.shape[0]):
        out[i] = dpq_key_of(value[i])
    return found
