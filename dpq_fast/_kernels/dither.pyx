"""Records that share a point, laid out evenly in its cell: csrc/dither.h."""

from dpq_fast._kernels.bitgen cimport bitgen_of
from dpq_fast._kernels.buffers cimport given_integers, integers, new_integers
from dpq_fast._kernels.csrc cimport (
    dpq_dither_at,
    dpq_dither_below,
    dpq_dither_draw,
    dpq_dither_points,
    int64_t,
)
from libc.string cimport memcpy
from numpy cimport import_array, ndarray
from numpy.random cimport bitgen_t

import_array()


cdef class Offsets:
    """The offsets of records in cells of 2^bits of them, with a random shift.

    Parameters
    ----------
    bits : int
        1 to 32.
    rng : Generator
        A word is drawn.
    """

    def __cinit__(self, int bits, rng not None):
        cdef:
            object bit_generator = rng.bit_generator
            bitgen_t *words = bitgen_of(bit_generator)

        if not 1 <= bits <= 32:
            raise ValueError("cells have 1 to 32 bits")
        with bit_generator.lock, nogil:
            self.dither = dpq_dither_draw(bits, words)

    def below(self, ndarray count not None, ndarray offset not None):
        """How many of the count[i] records of a cell lie below offset[i]."""
        cdef:
            Py_ssize_t i, n = count.shape[0]
            const int64_t *counts = given_integers(count)
            const int64_t *offsets = given_integers(offset)
            ndarray below = new_integers(n)
            int64_t *found = integers(below)

        if offset.shape[0] != n:
            raise ValueError("each count needs an offset")
        with nogil:
            for i in range(n):
                found[i] = dpq_dither_below(&self.dither, counts[i], offsets[i])
        return below

    def at(self, ndarray place not None, ndarray point not None, ndarray below not None,
           ndarray above not None):
        """Records at some places, ascending, each of a run of records at one point.

        Run r is at point[r], below[r] records are before it, and above[r] up to its end. Runs
        ascend; some may be there more than once.
        """
        cdef:
            Py_ssize_t n = place.shape[0], runs = point.shape[0]
            const int64_t *places = given_integers(place)
            const int64_t *points = given_integers(point)
            const int64_t *lows = given_integers(below)
            const int64_t *highs = given_integers(above)
            ndarray fine = new_integers(n)
            int64_t *found = integers(fine)
            Py_ssize_t done

        if not (below.shape[0] == above.shape[0] == runs):
            raise ValueError("each point needs what is below and up to it")
        with nogil:
            done = dpq_dither_at(&self.dither, n, places, runs, points, lows, highs, found)
        if done < n:
            raise ValueError("records must be of runs, in order")
        return fine

    def points(self, ndarray point not None, ndarray first not None, ndarray start not None,
               ndarray stop not None, ndarray low not None, ndarray high not None,
               ndarray fine not None):
        """Fill in `fine` with the records at places start[w], ..., stop[w] - 1, in order.

        Their points are point[first[w]], ..., ascending. The records at the first one of these begin
        at place low[w], those at the last one end before high[w].
        """
        cdef:
            const int64_t *points = given_integers(point)
            const int64_t *firsts = given_integers(first)
            const int64_t *starts = given_integers(start)
            const int64_t *stops = given_integers(stop)
            const int64_t *lows = given_integers(low)
            const int64_t *highs = given_integers(high)
            int64_t *found = <int64_t *>given_integers(fine)
            Py_ssize_t w, windows = first.shape[0]
            int64_t size, records = 0

        if not (start.shape[0] == stop.shape[0] == low.shape[0] == high.shape[0] == windows):
            raise ValueError("arrays of windows must be of one length")
        for w in range(windows):
            if not (lows[w] <= starts[w] < stops[w] <= highs[w] and 0 <= firsts[w]
                    and firsts[w] + stops[w] - starts[w] <= point.shape[0]):
                raise ValueError("windows must be inside of their blocks, and of the points given")
            records += stops[w] - starts[w]
        if fine.shape[0] != records:
            raise ValueError("there must be room for all records")
        with nogil:
            for w in range(windows):
                size = stops[w] - starts[w]
                memcpy(found, points + firsts[w], size * sizeof(int64_t))
                dpq_dither_points(&self.dither, size, found, starts[w] - lows[w],
                                  highs[w] - stops[w])
                found += size
