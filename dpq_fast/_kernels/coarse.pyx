"""Paths through cells of ranks, csrc/coarse.h."""

from collections import namedtuple

import numpy as np

from libc.stdint cimport INT32_MAX
from libc.string cimport memcpy

from dpq_fast._kernels.bitgen cimport bitgen_of
from dpq_fast._kernels.buffers cimport (
    PyArray_DATA,
    check_given,
    doubles,
    given_doubles,
    given_integers,
    given_places,
    integers,
    new_doubles,
    new_places,
    new_table,
    places,
)
from dpq_fast._kernels.csrc cimport (
    DPQ_COARSE_BLOCK,
    dpq_coarse_begin,
    dpq_coarse_begin_pass,
    dpq_coarse_begins,
    dpq_coarse_block,
    dpq_coarse_bends,
    dpq_coarse_cells,
    dpq_coarse_draw,
    dpq_coarse_forward,
    dpq_coarse_leaves,
    dpq_coarse_paths,
    dpq_coarse_pieces,
    dpq_coarse_points,
    dpq_coarse_prepare,
    dpq_coarse_problem,
    dpq_coarse_ranks,
    dpq_coarse_room,
    dpq_coarse_rows,
    dpq_coarse_runs,
    dpq_coarse_segment,
    dpq_coarse_total,
    dpq_coarse_tree,
    dpq_decay,
    dpq_decay_fill,
    dpq_large,
    dpq_scan_level,
    int32_t,
    int64_t,
    size_t,
    uint8_t,
    uint32_t,
)
from numpy cimport (
    NPY_FLOAT64,
    NPY_INT32,
    NPY_INT64,
    NPY_UINT32,
    NPY_UINTP,
    PyArray_TYPE,
    import_array,
    ndarray,
)
from numpy.random cimport bitgen_t

import_array()

# Room for runs to begin with: `RUNS` for each entry of the longest row; and what is kept of them grows
# by one for `GROWN` entries.
RUNS, GROWN = 8, 64
# Up to `WHOLE` entries are all kept, 28 bytes each; of more, `KEPT` are, and the others are computed in
# parts of `PART` entries.
WHOLE, KEPT, PART = 11 * 2**19, 2**21, 2**20
# Numbers of 8 bytes in a large one.
cdef enum:
    LARGE = sizeof(dpq_large) // 8
# Rows that are given may take `GIVEN` times what a part does; and `BEFORE` levels of a part are drawn by
# the one before, as their runs may go on there.
GIVEN, BEFORE = 2.0, 32
# Room for segments of cells to begin with, for each row.
SEGMENTS = 256


def tree(ndarray least not None, ndarray most not None, ndarray rising not None,
         ndarray volume not None, ndarray falling not None, double rate, int64_t near):
    """Cells of 1, 2, 4, ... leaves, in the order that `Cells` asks for: offset, least, and so on.

    Ranks are of int32 where it holds them.

    Parameters
    ----------
    least, most, rising, volume, falling : ndarray, shape (K,)
        Of leaves; K >= 1. What is returned takes their place: they are of no use afterwards.
    rate : float
        Loss of log-weight per rank, c.
    near : int
        A leaf that holds more than half of all that is within `near` ranks of it is not part of a
        cell: those that it would be in have infinite volumes.
    """
    cdef:
        size_t leaves = least.shape[0], cells = leaves
        ndarray table = new_doubles(sizeof(dpq_decay) // 8), offset
        dpq_decay *decay = <dpq_decay *>doubles(table)
        ndarray heavy = np.empty(leaves, dtype=np.uint8)
        double *volumes[3]
        uint8_t *held = <uint8_t *>PyArray_DATA(heavy)
        const size_t *offsets
        dpq_coarse_ranks ranks[2]
        int heights
        list sizes = [leaves]

    if not 0 < most.shape[0] == rising.shape[0] == volume.shape[0] == falling.shape[0] == leaves:
        raise ValueError("there must be a leaf, with all numbers")
    while cells > 1:
        cells = (cells + 1) // 2
        sizes.append(cells)
    offset = np.cumsum([0, *sizes]).astype(np.uintp)
    offsets, heights = given_places(offset), len(sizes)
    cells = offsets[heights]
    if given_integers(most)[leaves - 1] <= INT32_MAX:
        least, most = (_as_narrow(each) for each in (least, most))
    tree = offset, least, most, rising, volume, falling
    for array in tree[1:]:
        array.resize(cells, refcheck=False)
    ranks[0], ranks[1] = given_ranks(least), given_ranks(most)
    for i in range(3):
        volumes[i] = <double *>given_doubles(tree[3 + i])
    dpq_decay_fill(decay, 2.0 * rate, cells)
    with nogil:
        dpq_coarse_tree(decay, heights, offsets, near, held, &ranks[0], &ranks[1], volumes)
    return tree


def _as_narrow(ranks):
    """In 4 bytes each; the others are given back at once."""
    narrow = ranks.astype(np.int32)
    ranks.resize(0, refcheck=False)
    return narrow


cdef dpq_coarse_ranks given_ranks(ndarray ranks) except *:
    cdef dpq_coarse_ranks given

    given.wide, given.narrow = NULL, NULL
    if PyArray_TYPE(ranks) == NPY_INT32:
        check_given(ranks, 1, NPY_INT32)
        given.narrow = <int32_t *>PyArray_DATA(ranks)
    else:
        given.wide = <int64_t *>given_integers(ranks)
    return given


# What a pass goes on from after one row: its entries; what several outputs weigh there; and that by how many
# they are, with where it begins for each entry.
Row = namedtuple("Row", "below above exponent several first_run has_run runs begins")

cdef class Cells  # of which these are rows


cdef class Part:
    """Rows of some levels after each other, computed.

    Parameters
    ----------
    cells : Cells
        All of them.
    first, stop : int
        Levels first, ..., stop - 1; first < stop.
    given : Row, optional
        The `last_row` of a part that ends where this one begins, unless this begins with level 0.

    Attributes
    ----------
    last_row : Row
        Of a part that is not the last one.
    log_total : float
        Of the last one: ln of the weight of all paths.
    """

    cdef:
        Cells cells
        dpq_coarse_rows rows
        ndarray below, above, exponent, several, first_run, has_run
        list sums
        readonly object last_row
        readonly double log_total

    def __cinit__(self, Cells cells not None, size_t first, size_t stop, given):
        cdef:
            ndarray workspace = new_doubles(cells.room)
            void *work = doubles(workspace)
            const size_t *begins = NULL
            dpq_coarse_runs runs
            list of_runs  # what they weigh, of a row and of the one before, by turns

        self.cells = cells
        self.make_room(first if given is None else first - 1, stop)
        runs.room, runs.kept = RUNS * cells.longest, 0
        if given is not None:
            runs.room = max(runs.room, given.runs.size // LARGE)
            runs.kept = given.several.size
            begins = given_places(given.begins)
        of_runs = [new_doubles(runs.room * LARGE) for _ in range(2)]
        runs.room_kept = runs.kept + cells.longest
        self.several = new_doubles(runs.room_kept)
        self.rows.run = doubles(self.several)
        if given is not None:
            copy_to(of_runs[self.rows.held % 2], given.runs)
            for array, row in zip((self.below, self.above, self.exponent, self.several, self.first_run,
                                   self.has_run), given):
                copy_to(array, row)
        dpq_coarse_begin_pass(&cells.problem, cells.decay, cells.level, &self.rows, begins, work)
        self.go_on(first, stop, &runs, of_runs, work)
        if stop == cells.problem.levels:
            self.log_total = dpq_coarse_total(&cells.problem, &self.rows, work)
        else:
            begins = dpq_coarse_begins(&cells.problem, &self.rows, stop - 1, work)
            self.last_row = self.row(stop - 1, begins, of_runs[(stop - 1) % 2])

    cdef int make_room(self, size_t held, size_t stop) except -1:
        """Make room for the rows of levels held, ..., stop - 1, but for runs."""
        cdef size_t entries = self.cells.rows.start[stop] - self.cells.rows.start[held], blocks

        self.rows = self.cells.rows
        self.rows.held = held
        blocks = dpq_coarse_block(&self.rows, stop) + 1
        self.below, self.above = new_doubles(entries), new_doubles(entries)
        self.rows.weight[0], self.rows.weight[1] = doubles(self.below), doubles(self.above)
        self.sums = [new_doubles(blocks * LARGE) for _ in range(2)]
        for kind in range(2):
            self.rows.block[kind] = <dpq_large *>doubles(self.sums[kind])
        self.exponent = np.empty(entries, dtype=np.int32)
        self.rows.exponent = <int32_t *>PyArray_DATA(self.exponent)
        self.first_run, self.has_run = new_places(blocks), np.empty(blocks, dtype=np.uint32)
        self.rows.first_run = places(self.first_run)
        self.rows.has_run = <uint32_t *>PyArray_DATA(self.has_run)
        return 0

    cdef int go_on(self, size_t j, size_t stop, dpq_coarse_runs *runs, list of_runs,
                   void *work) except -1:
        """The pass over levels j, ..., stop - 1."""
        cdef:
            Cells cells = self.cells
            const size_t *start = cells.rows.start
            int kind

        while True:
            for kind in range(2):
                runs.weight[kind] = <dpq_large *>doubles(of_runs[kind])
            self.rows.run = doubles(self.several)
            with nogil:
                j = dpq_coarse_forward(&cells.problem, cells.decay, cells.level, &self.rows, j, stop,
                                       runs, work)
            if j == stop:
                break
            if runs.room_kept < runs.kept + (start[j + 1] - start[j]):
                runs.room_kept += cells.longest + self.exponent.shape[0] // GROWN
                self.several.resize(runs.room_kept, refcheck=False)
            else:
                runs.room *= 2
                for array in of_runs:
                    array.resize(2 * array.size, refcheck=False)
        self.several.resize(runs.kept, refcheck=False)
        self.rows.run = doubles(self.several)
        return 0

    cdef object row(self, size_t j, const size_t *begins, ndarray runs):
        """Row j, the last one; its runs are the first ones of `runs`."""
        cdef:
            size_t at = self.rows.start[j] - self.rows.start[self.rows.held]
            size_t size = self.rows.start[j + 1] - self.rows.start[j]
            size_t block = dpq_coarse_block(&self.rows, j)
            ndarray copied = new_places(size + 1)

        memcpy(places(copied), begins, (size + 1) * sizeof(size_t))
        entries = [each[at:].copy() for each in (self.below, self.above, self.exponent)]
        first_run = self.first_run[block:]
        return Row(*entries, self.several[first_run[0]:].copy(), first_run - first_run[0],
                   self.has_run[block:].copy(), runs[:begins[size] * LARGE].copy(), copied)


def copy_to(array, row):
    """Let an array begin with a row."""
    array[:row.size] = row


cdef class Cells:
    """Rows over cells of leaves, and draws of their paths once `forward` was called.

    Parameters
    ----------
    offset : ndarray of uintp, shape (H + 1,)
        Cells of 2**h leaves are offset[h], ..., offset[h + 1] - 1.
    least, most : ndarray of int32 or int64, shape (C,)
        Ranks of outputs in each cell.
    rising, volume, falling : ndarray of float64, shape (C,)
        Volumes for the bends -1, 0 and 1.
    lattice : bool
        Whether several outputs of a cell are counted as multisets.
    whole, part : ndarray, shape (m,)
        Targets, see `scan.targets`.
    rate : float
        Loss of log-weight per rank, c.
    first, last : ndarray of uintp, shape (m,)
        Row j holds the leaves first[j] <= i < last[j].
    stretch : ndarray of uintp, shape (m + 1,)
        Where the stretches of each level begin, as indices of the next two.
    until : ndarray of int64, shape (S,)
        The last ranks of stretches; of a level's last one the largest integer.
    span : ndarray of float64, shape (S,)
        How many nats cells may have, from end to end, that have a rank there.

    Attributes
    ----------
    start : ndarray of uintp, shape (m + 1,)
        Row j has the entries start[j], ..., start[j + 1] - 1.
    entries : int
        Cells of all rows together.
    log_total : float
        ln of the weight of all paths, from `forward`.
    """

    cdef:
        dpq_coarse_problem problem
        dpq_coarse_rows rows
        dpq_decay *decay
        dpq_scan_level *level
        object kept
        readonly ndarray start
        ndarray begin, segments
        size_t longest, room  # entries of a row at most; workspace, in numbers of 8 bytes
        readonly size_t entries
        readonly double log_total
        list begins, given  # the first level of each part, and the row before
        Part last

    def __init__(self, ndarray offset not None, ndarray least not None, ndarray most not None,
                 ndarray rising not None, ndarray volume not None, ndarray falling not None,
                 bint lattice, ndarray whole not None, ndarray part not None, double rate,
                 ndarray first not None, ndarray last not None, ndarray stretch not None,
                 ndarray until not None, ndarray span not None):
        cdef:
            size_t m = whole.shape[0]
            # both consist of numbers of 8 bytes
            ndarray buffers = new_doubles((sizeof(dpq_decay) + m * sizeof(dpq_scan_level)) // 8)
            size_t fit = SEGMENTS * m, some = 0

        self.problem.heights = offset.shape[0] - 1
        self.problem.offset = given_places(offset)
        self.problem.leaves = self.problem.offset[1]
        self.problem.least, self.problem.most = given_ranks(least), given_ranks(most)
        self.problem.volume[0] = given_doubles(rising)
        self.problem.volume[1] = given_doubles(volume)
        self.problem.volume[2] = given_doubles(falling)
        self.problem.lattice = lattice
        self.problem.levels = m
        self.problem.whole, self.problem.part = given_integers(whole), given_doubles(part)
        self.problem.from_leaf, self.problem.to_leaf = given_places(first), given_places(last)
        self.problem.stretch, self.problem.until = given_places(stretch), given_integers(until)
        self.problem.span = given_doubles(span)
        self.problem.rate = 2.0 * rate
        self.decay = <dpq_decay *>doubles(buffers)
        self.level = <dpq_scan_level *>(self.decay + 1)
        self.start, self.begin = new_places(m + 1), new_places(m + 1)
        while True:
            self.segments = new_doubles(fit * sizeof(dpq_coarse_segment) // 8)
            self.entries = dpq_coarse_cells(
                &self.problem, fit, places(self.start), places(self.begin),
                <dpq_coarse_segment *>doubles(self.segments))
            some = places(self.begin)[m]
            if some <= fit:
                break
            fit = some
        self.segments.resize(some * sizeof(dpq_coarse_segment) // 8, refcheck=False)
        self.rows.start, self.rows.begin = places(self.start), places(self.begin)
        self.rows.segment = <const dpq_coarse_segment *>doubles(self.segments)
        self.kept = [offset, least, most, rising, volume, falling, whole, part, first,
                     last, buffers]
        self.problem.stretch, self.problem.until, self.problem.span = NULL, NULL, NULL

    def forward(self, size_t whole=WHOLE, size_t kept=KEPT, size_t each=PART):
        """Compute all rows.

        Parameters
        ----------
        whole, kept, each : int
            Of more entries than `whole`, about `kept` of the last levels are. The others are computed
            once more to draw from, about `each` at a time.
        """
        cdef:
            size_t j, begin = 0, longest = 1, m = self.problem.levels
            Part part = None

        for j in range(m):
            longest = max(longest, self.rows.start[j + 1] - self.rows.start[j])
        self.longest = longest
        self.room = dpq_coarse_room(longest, m) // 8 + 1
        dpq_coarse_prepare(&self.problem, self.decay, self.level)
        ends = np.empty(0, dtype=np.intp)
        if self.entries > whole:  # all rows that are given take about as much as a part
            each = max(each, int((GIVEN * self.entries * longest) ** 0.5))
            ends = np.arange(each, int(self.entries) - int(kept) + each, each)
            ends = self.start.view(np.intp).searchsorted(ends)
        self.begins, self.given = [], []
        for j in [*np.unique(ends[(ends > 0) & (ends < m)]).tolist(), m]:
            self.begins.append(begin)
            self.given.append(None if part is None else part.last_row)
            part = None  # before there is another one
            part = Part(self, begin, j, self.given[len(self.given) - 1])
            begin = j
        self.last, self.log_total = part, part.log_total

    @property
    def parts(self):
        """How many parts rows are computed in."""
        return len(self.begins)

    cdef size_t lowest(self, size_t i) except? 0:
        """The lowest level that is drawn by part i, if runs that go on before it are short."""
        cdef size_t m = self.problem.levels

        if i == 0:
            return 0
        return m if i == self.parts else min(<size_t>self.begins[i] + BEFORE, m)

    cdef Part part_of(self, size_t i, size_t stop):
        """Part i, and the levels after it up to `stop`."""
        if i + 1 == self.parts:
            return self.last
        return Part(self, self.begins[i], stop, self.given[i])

    def paths(self, size_t size, rng not None):
        """`size` paths of cells, uintp of shape (size, m)."""
        cdef:
            size_t left = self.problem.levels, low, index, held  # levels; parts
            Part part = self.last  # this one,
            bint lacks_rows = False  # which does not go back far enough
            ndarray drawn = new_table(size, left, NPY_UINTP)
            ndarray states = new_doubles(size * sizeof(dpq_coarse_draw) // 8)
            ndarray workspace
            size_t *path = places(drawn)
            dpq_coarse_draw *state = <dpq_coarse_draw *>doubles(states)
            void *work
            object bit_generator = rng.bit_generator
            bitgen_t *bits = bitgen_of(bit_generator)

        if part is None:
            raise ValueError("rows are to be computed before paths are drawn")
        workspace = new_doubles(self.room)
        work = doubles(workspace)
        dpq_coarse_begin(&self.problem, self.decay, self.level, &self.rows, size, state, work)
        held = self.parts - 1
        while left > 0:
            index = held - lacks_rows
            low = self.lowest(index)
            while low >= left:
                index -= 1
                low = self.lowest(index)
            if index != held:
                part = None  # before there is another one
                part, held = self.part_of(index, left), index
            with bit_generator.lock, nogil:
                left = dpq_coarse_paths(&self.problem, self.decay, self.level, &part.rows, low, left,
                                        size, bits, state, work, path)
            lacks_rows = left > low
        return drawn

    def bends(self, ndarray path not None):
        """Bends of paths, int64."""
        cdef:
            size_t size = path.shape[0]
            ndarray bends = new_table(size, self.problem.levels, NPY_INT64)
            const size_t *paths = places(path)

        check_given(path, 2, NPY_UINTP)
        if <size_t>path.shape[1] != self.problem.levels:
            raise ValueError("paths must have a cell at each level")
        dpq_coarse_bends(&self.problem, size, paths, integers(bends))
        return bends

    def leaves(self, ndarray path not None, ndarray bend not None, rng not None):
        """Leaves of outputs inside the cells of paths, and which outputs are copies of others.

        Both tables may be of some levels in a row, if no path stays in a cell at one more of them.
        """
        cdef:
            size_t size = path.shape[0], m = path.shape[1]
            ndarray drawn = new_table(size, m, NPY_UINTP), copied = new_table(size, m, NPY_UINT32)
            size_t *leaf = places(drawn)
            uint32_t *copies = <uint32_t *>PyArray_DATA(copied)
            const size_t *paths = places(path)
            const int64_t *bends = integers(bend)
            object bit_generator = rng.bit_generator
            bitgen_t *bits = bitgen_of(bit_generator)

        check_given(path, 2, NPY_UINTP)
        check_given(bend, 2, NPY_INT64)
        if (<object>bend).shape != (<object>path).shape:
            raise ValueError("tables must be of one shape")
        with bit_generator.lock, nogil:
            dpq_coarse_leaves(&self.problem, size, m, paths, bends, bits, leaf, copies)
        return drawn, copied

    def points(self, ndarray path not None, ndarray bend not None, ndarray leaf not None,
               ndarray copied not None, ndarray slot not None, ndarray start not None,
               ndarray least not None, ndarray most not None, ndarray width not None,
               ndarray left not None, size_t longest, rng not None):
        """Outputs inside the leaves of paths, and the pieces of leaves that hold them.

        All tables may be of some levels in a row, if no path stays in a cell at one more of them.
        The leaf of an output has the pieces start[slot], ..., start[slot + 1] - 1, at most `longest`
        of them.
        """
        cdef:
            size_t size = path.shape[0], m = path.shape[1]
            bint lattice = PyArray_TYPE(left) == NPY_INT64
            tuple shape = (<object>path).shape
            ndarray outputs = new_table(size, m, NPY_INT64 if lattice else NPY_FLOAT64)
            ndarray held = new_table(size, m, NPY_UINTP)
            ndarray workspace = new_doubles(longest)
            double *work = doubles(workspace)
            size_t *piece = places(held)
            const size_t *paths = places(path)
            const size_t *leaves = places(leaf)
            const uint32_t *copies = <const uint32_t *>PyArray_DATA(copied)
            const int64_t *bends = integers(bend)
            int64_t *point = NULL
            double *number = NULL
            dpq_coarse_pieces pieces
            object bit_generator = rng.bit_generator
            bitgen_t *bits = bitgen_of(bit_generator)

        for each in (path, leaf, slot):
            check_given(each, 2, NPY_UINTP)
        for each in (bend, leaf, copied, slot):
            if (<object>each).shape != shape:
                raise ValueError("tables must be of one shape")
        check_given(bend, 2, NPY_INT64)
        check_given(copied, 2, NPY_UINT32)
        pieces.slot, pieces.start = places(slot), given_places(start)
        pieces.least, pieces.most = given_integers(least), given_integers(most)
        pieces.width = given_doubles(width)
        pieces.points, pieces.numbers, pieces.longest = NULL, NULL, longest
        if lattice:
            pieces.points = given_integers(left)
            point = integers(outputs)
        else:
            pieces.numbers = given_doubles(left)
            number = doubles(outputs)
        with bit_generator.lock, nogil:
            dpq_coarse_points(&self.problem, &pieces, size, m, paths, bends, leaves, copies, bits,
                              work, piece, point, number)
        return outputs, held
