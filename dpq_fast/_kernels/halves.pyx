"""Records that lie uniformly in cells, csrc/halves.h."""

from cpython.mem cimport PyMem_Free
from dpq_fast._kernels.bitgen cimport bitgen_of
from dpq_fast._kernels.buffers cimport (
    given_integers,
    given_places,
    grown,
    integers,
    new_integers,
    new_places,
    places,
)
from dpq_fast._kernels.csrc cimport (
    DPQ_HALVES_MOST,
    dpq_half,
    dpq_halves,
    dpq_halves_around,
    dpq_halves_begin,
    dpq_halves_below,
    dpq_halves_binomial,
    dpq_halves_cuts,
    dpq_halves_draw,
    dpq_halves_log_binomial,
    dpq_halves_read,
    dpq_halves_split,
    int32_t,
    int64_t,
    size_t,
    uint32_t,
)
from numpy cimport import_array, ndarray

import_array()

# Room at first, for nodes and for offsets; then a fourth more each time: it is seldom copied.
cdef enum:
    FIRST_ROOM = 64


cdef size_t more_than(size_t rooms, size_t needed) except 0:
    """Room for what is needed, and some more."""
    if needed > DPQ_HALVES_MOST:
        raise MemoryError
    return min(max(rooms + rooms // 4, needed) + FIRST_ROOM, DPQ_HALVES_MOST)


cdef class Halves:
    """All that is known of the records of some cells, which are numbered from 0 on.

    One thread at a time may ask.
    """

    cdef:
        dpq_halves halves
        object bit_generator
        # at most so many records are drawn one by one, where cuts or where records are asked for
        int64_t few
        int64_t whole
        int32_t *known
        int64_t *count
        Py_ssize_t room
        Py_ssize_t cells

    def __cinit__(self, int bits, rng not None, int64_t few, int64_t counted, int64_t whole=0):
        if not (1 <= bits <= 32 and few >= 1 and counted >= 0):
            raise ValueError("a cell has 1 to 32 bits, and a part that is drawn one record or more")
        self.bit_generator = rng.bit_generator
        self.halves.bits = bits
        self.few, self.whole = few, max(few, whole)
        self.halves.few = self.whole
        self.halves.counted = counted
        self.halves.rng = bitgen_of(self.bit_generator)
        self.halves.nodes = 1
        self.grow(self.whole)

    def __dealloc__(self):
        PyMem_Free(self.halves.node)
        PyMem_Free(self.halves.drawn)
        PyMem_Free(self.known)
        PyMem_Free(self.count)

    cdef int grow(self, size_t offsets) except -1:
        """Room for nodes, and for so many offsets."""
        cdef size_t rooms

        if self.halves.nodes >= self.halves.node_room:
            rooms = more_than(self.halves.node_room, self.halves.nodes + 1)
            self.halves.node = <dpq_half *>grown(self.halves.node, rooms * sizeof(dpq_half))
            self.halves.node_room = rooms
        if self.halves.offset_room - self.halves.offsets < offsets:
            rooms = more_than(self.halves.offset_room, self.halves.offsets + offsets)
            self.halves.drawn = <uint32_t *>grown(self.halves.drawn, rooms * sizeof(uint32_t))
            self.halves.offset_room = rooms
        return 0

    def add(self, ndarray count not None):
        """More cells, of so many records each; the number of the first one."""
        cdef:
            const int64_t *given = given_integers(count)
            Py_ssize_t i, first = self.cells, cells = first + count.shape[0]

        if cells > self.room:
            self.known = <int32_t *>grown(self.known, 2 * cells * sizeof(int32_t))
            self.count = <int64_t *>grown(self.count, 2 * cells * sizeof(int64_t))
            self.room = 2 * cells
        for i in range(first, cells):
            self.known[i] = 0
            self.count[i] = given[i - first]
        self.cells = cells
        return first

    def keep(self, Py_ssize_t cell, ndarray offset not None):
        """Offsets of all records of a new cell, ascending."""
        cdef:
            const int64_t *given = given_integers(offset)
            Py_ssize_t i

        self.check(cell)
        if self.known[cell] != 0 or self.count[cell] != offset.shape[0]:
            raise ValueError("offsets must be of all records of a cell that nothing is known of")
        self.grow(offset.shape[0])
        self.known[cell] = -1 - <int32_t>self.halves.offsets
        for i in range(offset.shape[0]):
            self.halves.drawn[self.halves.offsets] = <uint32_t>given[i]
            self.halves.offsets += 1

    cdef int check(self, int64_t cell) except -1:
        if not 0 <= cell < self.cells:
            raise IndexError("a cell must be among those added")
        return 0

    def order(self, Py_ssize_t cell, int64_t start, int64_t stop):
        """Offsets of the records start, ..., stop - 1 of a cell in ascending order."""
        cdef:
            int32_t *known
            int64_t *found
            int64_t count
            ndarray offset
            bint done = False

        self.check(cell)
        self.halves.few = self.whole
        known = &self.known[cell]
        count = self.count[cell]
        if not 0 <= start <= stop <= count:
            raise IndexError("records must be among those of the cell")
        while not done:
            with self.bit_generator.lock, nogil:
                done = dpq_halves_draw(&self.halves, known, count, start, stop)
            if not done:
                self.grow(self.halves.few)
        offset = new_integers(stop - start)
        found = integers(offset)
        with nogil:
            dpq_halves_read(&self.halves, known[0], count, start, stop, found)
        return offset

    def below(self, ndarray cell not None, ndarray offset not None):
        """How many records of each cell lie below an offset."""
        cdef:
            const int64_t *of = given_integers(cell)
            const int64_t *at = given_integers(offset)
            Py_ssize_t i, asked = cell.shape[0]
            ndarray below = new_integers(asked)
            int64_t *found = integers(below)
            bint done

        if offset.shape[0] != asked:
            raise ValueError("cells and offsets must be of one length")
        for i in range(asked):
            self.check(of[i])
        self.halves.few = self.whole
        for i in range(asked):
            done = False
            while not done:
                with self.bit_generator.lock, nogil:
                    done = dpq_halves_below(
                        &self.halves, &self.known[of[i]], self.count[of[i]], at[i], &found[i]
                    )
                if not done:
                    self.grow(self.halves.few)
        return below

    def cuts(self, ndarray point not None, ndarray start not None, ndarray stop not None,
             ndarray cell not None, ndarray full not None, ndarray offset not None,
             ndarray first not None, ndarray last not None):
        """Cuts between the cells at some points, and inside of those that are not numbered -1.

        Returns `at`, `below` and `above`. Size s, of full[s] records, is for the stretches
        offset[s], ..., offset[s + 1] - 1.
        """
        cdef:
            const int64_t *from_ = given_integers(start)
            const int64_t *to = given_integers(stop)
            const int64_t *of = given_integers(cell)
            const int64_t *points = given_integers(point)
            Py_ssize_t i, asked = point.shape[0], sizes = full.shape[0]
            ndarray work = new_places(sizes)
            ndarray at, below, above
            int64_t *cut
            int64_t *less
            int64_t *more
            size_t found
            dpq_halves_around around
            bint done

        if not (start.shape[0] == stop.shape[0] == cell.shape[0] == asked
                and offset.shape[0] == sizes + 1 and sizes > 0
                and first.shape[0] == last.shape[0]):
            raise ValueError("arrays of cells, and of stretches, must be of one length")
        around.sizes = sizes
        around.full = given_integers(full)
        around.offset = given_places(offset)
        around.first = given_integers(first)
        around.last = given_integers(last)
        around.stretch = places(work)
        if full.min() < 1 or around.offset[0] != 0 or around.offset[sizes] > <size_t>first.shape[0]:
            raise ValueError("sizes must be positive, and their stretches among those given")
        for i in range(asked):
            if of[i] >= 0:
                self.check(of[i])
        self.halves.few = self.few
        dpq_halves_begin(&around)
        for i in range(asked):
            done = of[i] < 0
            while not done:
                with self.bit_generator.lock, nogil:
                    done = dpq_halves_split(
                        &self.halves, &around, from_[i], &self.known[of[i]], to[i] - from_[i]
                    )
                if not done:
                    self.grow(self.halves.few)
                    dpq_halves_begin(&around)
        with nogil:
            found = dpq_halves_cuts(&self.halves, &around, asked, points, from_, to, of, self.known,
                                    NULL, NULL, NULL)
        at, below, above = new_integers(found), new_integers(found), new_integers(found)
        cut, less, more = integers(at), integers(below), integers(above)
        with nogil:
            dpq_halves_cuts(&self.halves, &around, asked, points, from_, to, of, self.known,
                            cut, less, more)
        return at, below, above


def fair_binomial(int64_t count, rng not None, int64_t counted):
    """A draw of Binomial(count, 1/2), count >= 0; by counting bits up to so many."""
    cdef:
        dpq_halves halves
        object bit_generator = rng.bit_generator
        int64_t drawn

    if count < 0:
        raise ValueError("a number of records must not be negative")
    halves.counted = counted
    halves.rng = bitgen_of(bit_generator)
    halves.left = 0
    with bit_generator.lock, nogil:
        drawn = dpq_halves_binomial(&halves, count)
    return drawn


def log_fair_binomial(int64_t half, int64_t distance):
    """ln of P[half + distance] / P[half] under Binomial(2 half, 1/2), 0 <= distance < half."""
    if not 0 <= distance < half:
        raise ValueError("a distance must be less than half of all")
    return dpq_halves_log_binomial(half, distance)
