"""Records that lie uniformly in cells, drawn one by one: csrc/dither.h."""

from cpython.mem cimport PyMem_Calloc, PyMem_Free
from dpq_fast._kernels.bitgen cimport bitgen_of
from dpq_fast._kernels.buffers cimport (
    PyArray_DATA,
    given_integers,
    grown,
    integers,
    new_integers,
    new_table,
    new_truths,
    truths,
)
from dpq_fast._kernels.csrc cimport (
    DPQ_DITHER_PADDING,
    dpq_dither,
    dpq_dither_below,
    dpq_dither_draw,
    dpq_dither_drawn,
    dpq_dither_fits,
    dpq_dither_move,
    dpq_dither_points,
    dpq_dither_read,
    dpq_dither_slot,
    dpq_dither_window,
    int64_t,
    size_t,
    uint32_t,
)
from numpy cimport NPY_UINT32, import_array, ndarray, npy_bool
from numpy.random cimport bitgen_t

import_array()


cdef enum:
    MOST_ROOM = 1 << 22  # offsets for which there is room at once


cdef class Offsets:
    """Offsets of the records of some places, drawn by stretches of 2^stretch_bits of them.

    Blocks have at most `most` records where they are put in order. One thread at a time may ask.
    """

    cdef:
        dpq_dither dither
        size_t stretches  # drawn so far, and there is room for
        size_t expected  # offsets that will be asked for soon
        list rooms
        object bit_generator
        bitgen_t *rng
        int64_t most
        uint32_t *work

    def __cinit__(self, int bits, rng not None, int stretch_bits, int64_t most):
        if not (1 <= bits <= 32 and 0 <= stretch_bits <= 20 and 0 <= most <= 2**20):
            raise ValueError("cells have 1 to 32 bits, stretches 0 to 20, blocks up to 2^20 records")
        self.bit_generator = rng.bit_generator
        self.rng = bitgen_of(self.bit_generator)
        self.most = most
        self.rooms = []
        self.dither.bits, self.dither.stretch_bits = bits, stretch_bits
        self.dither.slots = 1
        self.dither.slot = <dpq_dither_slot *>PyMem_Calloc(1, sizeof(dpq_dither_slot))
        self.work = <uint32_t *>grown(NULL, 3 * (most + DPQ_DITHER_PADDING) * sizeof(uint32_t))
        if self.dither.slot == NULL:
            raise MemoryError

    def __dealloc__(self):
        PyMem_Free(self.dither.slot)
        PyMem_Free(self.work)

    def expect(self, size_t records):
        """Make room for so many at once, as they will be asked for in parts."""
        self.expected = records

    cdef int find_slots(self, size_t stretches) except -1:
        """Free slots for so many stretches more."""
        cdef:
            size_t slots = self.dither.slots
            dpq_dither old = self.dither

        while slots < 2 * (self.stretches + stretches + 1):
            slots *= 2
        if slots > old.slots:
            self.dither.slot = <dpq_dither_slot *>PyMem_Calloc(slots, sizeof(dpq_dither_slot))
            if self.dither.slot == NULL:
                self.dither.slot = old.slot
                raise MemoryError
            self.dither.slots = slots
            dpq_dither_move(&old, &self.dither)
            PyMem_Free(old.slot)
        return 0

    cdef int make_room(self, size_t stretches) except -1:
        """Room for some stretches, of which so many are asked for."""
        cdef:
            int bits = self.dither.stretch_bits
            # as many as there are: few rooms, none much too large
            size_t needed = max(stretches, self.stretches, self.expected >> bits), wished = 1
            ndarray room

        while wished < needed and wished << bits < MOST_ROOM:
            wished *= 2
        # NumPy's memory, large pieces of which cost less
        room = new_table(1, wished << bits, NPY_UINT32)
        self.rooms.append(room)
        self.dither.room, self.dither.left = <uint32_t *>PyArray_DATA(room), wished
        self.stretches += wished
        return 0

    cdef int draw(self, Py_ssize_t windows, const int64_t *start, const int64_t *stop) except -1:
        """Draw what is missing of places start[w], ..., stop[w] - 1."""
        cdef:
            Py_ssize_t w
            size_t stretches = 0
            int64_t at
            int bits = self.dither.stretch_bits

        for w in range(windows):
            if not 0 <= start[w] < stop[w]:
                raise ValueError("places must not be negative, and some in each window")
            stretches += ((stop[w] - 1) >> bits) - (start[w] >> bits) + 1
        self.find_slots(stretches)
        for w in range(windows):
            at = start[w]
            while at < stop[w]:
                with self.bit_generator.lock, nogil:
                    at = dpq_dither_draw(&self.dither, at, stop[w], self.rng)
                if at < stop[w]:
                    self.make_room(((stop[w] - 1) >> bits) - (at >> bits) + 1)
        return 0

    def are_drawn(self, ndarray start not None, ndarray stop not None):
        """Of which windows of places start[w], ..., stop[w] - 1 all offsets were drawn before."""
        cdef:
            const int64_t *from_ = given_integers(start)
            const int64_t *to = given_integers(stop)
            Py_ssize_t w, windows = start.shape[0]
            ndarray drawn = new_truths(windows)
            npy_bool *found = truths(drawn)

        if stop.shape[0] != windows:
            raise ValueError("arrays of windows must be of one length")
        with nogil:
            for w in range(windows):
                found[w] = dpq_dither_drawn(&self.dither, from_[w], to[w])
        return drawn

    def read(self, int64_t start, int64_t stop):
        """Offsets of the records at places start, ..., stop - 1."""
        cdef:
            ndarray offset
            int64_t *found

        self.draw(1, &start, &stop)
        offset = new_integers(stop - start)
        found = integers(offset)
        with nogil:
            dpq_dither_read(&self.dither, start, stop, found)
        return offset

    def below(self, ndarray start not None, ndarray stop not None, ndarray offset not None):
        """How many of the records at places start[w], ..., stop[w] - 1 lie below offset[w]."""
        cdef:
            const int64_t *from_ = given_integers(start)
            const int64_t *to = given_integers(stop)
            const int64_t *at = given_integers(offset)
            Py_ssize_t w, windows = start.shape[0]
            ndarray below = new_integers(windows)
            int64_t *found = integers(below)

        if not (stop.shape[0] == offset.shape[0] == windows):
            raise ValueError("arrays of windows must be of one length")
        self.draw(windows, from_, to)
        with nogil:
            for w in range(windows):
                found[w] = dpq_dither_below(&self.dither, from_[w], to[w], at[w])
        return below

    def points(self, ndarray point not None, ndarray first not None, ndarray start not None,
               ndarray stop not None, ndarray low not None, ndarray high not None,
               ndarray fine not None):
        """Fill in `fine` with the records at places start[w], ..., stop[w] - 1, in order.

        Their points are point[first[w]], ..., ascending. The block of the first one begins at place
        low[w], that of the last one ends before high[w]. False, and nothing is drawn, where a block
        has more than `most` records.
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
            int64_t records = 0
            bint fits = True
            dpq_dither_window window

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
                window = dpq_dither_window(starts[w], stops[w], points + firsts[w], lows[w], highs[w])
                fits = fits and dpq_dither_fits(&window, self.most)
        if not fits:
            return False
        self.draw(windows, lows, highs)
        with nogil:
            for w in range(windows):
                window = dpq_dither_window(starts[w], stops[w], points + firsts[w], lows[w], highs[w])
                dpq_dither_points(&self.dither, &window, self.work, found)
                found += stops[w] - starts[w]
        return True
