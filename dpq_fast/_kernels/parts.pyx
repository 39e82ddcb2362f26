"""Outputs of a dithered column in parts of nearly equal rank: csrc/parts.h."""

import numpy as np

from dpq_fast._kernels.bitgen cimport bitgen_of
from dpq_fast._kernels.buffers cimport (
    doubles,
    given_doubles,
    given_integers,
    integers,
    new_doubles,
    new_integers,
    new_places,
    places,
)
from dpq_fast._kernels.csrc cimport (
    dpq_decay,
    dpq_decay_fill,
    dpq_part,
    dpq_parts,
    dpq_parts_draw,
    dpq_parts_leaf,
    dpq_parts_leaves,
    dpq_parts_of,
    int64_t,
    size_t,
)
from dpq_fast._kernels.dither cimport Offsets
from numpy cimport import_array, ndarray
from numpy.random cimport bitgen_t

import_array()


cdef class Parts:
    """Parts in leaves. What it was made of is kept, and is not to be changed.

    Parameters
    ----------
    offsets : dither.Offsets
    first : ndarray of int64, shape (C,)
        The first fine point of each cell that is cut out, ascending; C >= 1.
    each : ndarray of int64, shape (C,), or None
        Its number of fine points, if these are not its offsets.
    below, above : ndarray of int64, shape (C,)
        Records below the cell, and up to its end; equal where only the latter is known.
    start : ndarray of int64, shape (T + 1,)
        Stretch t has the ranks start[t], ..., start[t + 1] - 1. They hold all ranks.
    most : ndarray of int64, shape (T,)
        How many records parts with these ranks may have; -1 where no part is asked for.
    begin : ndarray of int64, shape (U + 1,)
        From start[0] to start[T].
    ranks : ndarray of float64, shape (U,)
        All parts of a leaf that begins at a rank from begin[u] on, below begin[u + 1], begin at such a
        rank, between two multiples of ranks[u]; they leave nothing out.
    rate : float
        Loss of log-weight per rank, c.
    room : int
        About as many leaves there may be.

    Attributes
    ----------
    leaves, parts, longest : int
        How many leaves there are, and parts, and parts of one leaf at most.
    """

    cdef:
        dpq_parts problem
        object kept
        tuple sums
        double rate
        readonly size_t leaves, parts, longest

    def __init__(self, Offsets offsets not None, ndarray first not None, ndarray each,
                 ndarray below not None, ndarray above not None, ndarray start not None,
                 ndarray most not None, ndarray begin not None, ndarray ranks not None,
                 double rate, size_t room):
        cdef:
            ndarray table = new_doubles(sizeof(dpq_decay) // 8)
            dpq_decay *decay = <dpq_decay *>doubles(table)
            int64_t *low
            int64_t *high
            double *sums[3]

        if not (0 < first.shape[0] == below.shape[0] == above.shape[0]
                and (each is None or each.shape[0] == first.shape[0])):
            raise ValueError("there must be a cut, and each needs its numbers of records")
        if not 0 < most.shape[0] == start.shape[0] - 1:
            raise ValueError("there must be a stretch, and a start more")
        if not (0 < ranks.shape[0] == begin.shape[0] - 1 and begin[0] == start[0]
                and begin[ranks.shape[0]] == start[most.shape[0]]):
            raise ValueError("leaves must begin where stretches do, up to the last one's end")
        if not ((ranks >= 1.0) & (ranks <= 2.0**62)).all():
            raise ValueError("leaves have ranks")
        self.problem.dither = offsets.dither
        self.problem.cuts, self.problem.first = first.shape[0], given_integers(first)
        if each is not None:
            self.problem.each = given_integers(each)
        self.problem.below, self.problem.above = given_integers(below), given_integers(above)
        self.problem.stretches, self.problem.start = most.shape[0], given_integers(start)
        self.problem.most = given_integers(most)
        self.problem.widths, self.problem.begin = ranks.shape[0], given_integers(begin)
        self.problem.ranks = given_doubles(ranks)
        if below.min() < start[0] or above.max() >= start[start.shape[0] - 1]:
            raise ValueError("all ranks must be in a stretch")
        self.kept = first, each, below, above, start, most, begin, ranks
        self.rate = 2.0 * rate
        dpq_decay_fill(decay, self.rate, start[start.shape[0] - 1])
        while True:
            least, most_of = (new_integers(room) for _ in range(2))
            rising, width, falling = (new_doubles(room) for _ in range(3))
            low, high = integers(least), integers(most_of)
            sums[0], sums[1], sums[2] = doubles(rising), doubles(width), doubles(falling)
            with nogil:
                self.leaves = dpq_parts_leaves(&self.problem, decay, room, low, high, sums,
                                               &self.parts, &self.longest)
            if self.leaves <= room:
                break
            least = most_of = rising = width = falling = None
            room += room // 2 + 1
        for array in (least, most_of, rising, width, falling):
            array.resize(self.leaves, refcheck=False)
        self.sums = least, most_of, rising, width, falling

    def take(self):
        """Ranks of each leaf, and what it sums up to: once, as these may be long.

        Returns
        -------
        least, most : ndarray of int64, shape (K,)
            Ranks of each leaf.
        rising, width, falling : ndarray of float64, shape (K,)
            Widths of its parts together, times exp(2c (r - rho)) or 1 or exp(-2c (r - rho)): r is
            the most of a part's ranks, or the least, and rho is in the middle of the leaf's.
        """
        sums, self.sums = self.sums, None
        return sums

    def of(self, ndarray rank not None):
        """The parts of some leaves, given by their least ranks, one leaf after the other.

        Returns where those of each begin, and the end, in uintp; and of each part the least and the
        greatest rank, its width (float64), and the point after which it begins.
        """
        cdef:
            const int64_t *ranks = given_integers(rank)
            size_t n = rank.shape[0], i, j, size, at = 0
            # about as many as n leaves have, and one leaf more
            size_t room = n * (self.parts // max(self.leaves, 1) + 1) + self.longest
            ndarray starts = new_places(n + 1), found = new_integers(4 * self.longest)
            ndarray low = new_integers(room), high = new_integers(room)
            ndarray after = new_integers(room), width = new_doubles(room)
            size_t *start = places(starts)
            dpq_part *part = <dpq_part *>integers(found)
            int64_t *least = integers(low)
            int64_t *most = integers(high)
            int64_t *begin = integers(after)
            double *wide = doubles(width)

        start[0] = 0
        for i in range(n):
            if room - at < self.longest:
                room *= 2
                for array in (low, high, after, width):
                    array.resize(room, refcheck=False)
                least, most, begin = integers(low), integers(high), integers(after)
                wide = doubles(width)
            with nogil:
                size = dpq_parts_of(&self.problem, ranks[i], self.longest, part)
                for j in range(size):
                    least[at + j], most[at + j] = part[j].least, part[j].most
                    wide[at + j], begin[at + j] = <double>part[j].width, part[j].left
                at += size
            start[i + 1] = at
        for array in (low, high, after, width):
            array.resize(at, refcheck=False)
        return starts, low, high, width, after

    def draw(self, ndarray least not None, ndarray most not None, ndarray width not None,
             ndarray bend not None, rng not None):
        """One part of each of some leaves, by its width and a bend.

        Parameters
        ----------
        least, most, width : ndarray, shape (N,)
            As of `take`; a leaf may be given several times.
        bend : ndarray of int64, shape (N,)
            1: a part counts exp(-2c r) times as much, r the least of its ranks. -1: exp(2c r), r
            the greatest. 0: as it is.

        Returns
        -------
        least, most, width, left : ndarray, shape (N,)
            As of `of`.
        """
        cdef:
            size_t n = least.shape[0]
            const int64_t *low = given_integers(least)
            const int64_t *high = given_integers(most)
            const double *wide = given_doubles(width)
            const int64_t *bends = given_integers(bend)
            ndarray all_parts = new_integers(4 * self.longest), weights = new_doubles(self.longest)
            dpq_part *part = <dpq_part *>integers(all_parts)
            double *weight = doubles(weights)
            ndarray drawn = np.empty((3, n), dtype=np.int64), widths = new_doubles(n)
            int64_t *found = integers(drawn)
            double *found_width = doubles(widths)
            dpq_parts_leaf leaf
            dpq_part one
            size_t i
            object bit_generator = rng.bit_generator
            bitgen_t *bits = bitgen_of(bit_generator)

        if not n == most.shape[0] == width.shape[0] == bend.shape[0]:
            raise ValueError("each leaf needs all numbers")
        if not ((width >= 1.0) & (abs(bend) <= 1)).all():
            raise ValueError("leaves have a width, and a bend is -1, 0 or 1")
        with bit_generator.lock, nogil:
            for i in range(n):
                leaf.least, leaf.most, leaf.width = low[i], high[i], wide[i]
                one = dpq_parts_draw(&self.problem, self.rate, &leaf, <int>bends[i], bits,
                                     self.longest, part, weight)
                found[i], found[n + i], found[2 * n + i] = one.least, one.most, one.left
                found_width[i] = <double>one.width
        return drawn[0], drawn[1], widths, drawn[2]
