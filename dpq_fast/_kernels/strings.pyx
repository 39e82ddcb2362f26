"""Strings found among a set of others, csrc/strings.h."""

import numpy as np

cimport cython
from dpq_fast._kernels.buffers cimport PyArray_DATA, check_given
from dpq_fast._kernels.csrc cimport (
    DPQ_PREFETCH,
    DPQ_STRINGS_INT32,
    DPQ_STRINGS_INT64,
    DPQ_STRINGS_VIEWS,
    dpq_strings_arrow,
    dpq_strings_buffer,
    dpq_strings_fill,
    dpq_strings_find,
    dpq_strings_find_arrow,
    dpq_strings_find_fixed,
    dpq_strings_layout,
    dpq_strings_one,
    dpq_strings_slot,
    dpq_strings_slots,
    dpq_strings_table,
    size_t,
)
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.float cimport PyFloat_CheckExact
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_CheckExact
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy
from numpy cimport NPY_OBJECT, ndarray


cdef extern from "Python.h":
    PyObject **PySequence_Fast_ITEMS(object items)
    Py_ssize_t PyUnicode_GET_LENGTH(object string)
    uint32_t PyUnicode_KIND(object string)
    void *PyUnicode_DATA(object string)


# How strings of Arrow are laid out; see csrc/strings.h.
INT32, INT64, VIEWS = int(DPQ_STRINGS_INT32), int(DPQ_STRINGS_INT64), int(DPQ_STRINGS_VIEWS)

# What is no string, nor None or NaN.
OTHER = -2

cdef enum:
    BATCH = 64
    AHEAD = 24  # objects: each is asked for, where it begins and its characters, before it is read


cdef inline int32_t describe(object item, dpq_strings_one *string) noexcept:
    """Where the characters of an object are, as they are; runs no code of Python's.

    Two strings are equal if and only if their characters are, of the same bytes each.
    """
    string.bytes = NULL
    if PyUnicode_CheckExact(item):
        string.kind = PyUnicode_KIND(item)
        string.size = string.kind * <size_t>PyUnicode_GET_LENGTH(item)
        string.bytes = <const uint8_t *>PyUnicode_DATA(item)
        return 0
    return 0 if item is None or PyFloat_CheckExact(item) else OTHER


cdef class Table:
    """The places of some strings.

    Parameters
    ----------
    keys : list of bytes, of str, or None
        Distinct: bytes to be found by `find_arrow` and `find_fixed`, or strings by `find_objects`.
        None is not found.
    """

    cdef:
        dpq_strings_table table
        object strings, bytes, slots  # what the table points to

    def __init__(self, list keys not None):
        cdef:
            size_t n = len(keys), total = 0, i, slots = dpq_strings_slots(n)
            uint8_t[::1] strings = np.zeros((n + 1) * sizeof(dpq_strings_one), dtype=np.uint8)
            uint8_t[::1] slot = np.empty(slots * sizeof(dpq_strings_slot), dtype=np.uint8)
            uint8_t[::1] bytes
            dpq_strings_one *string = <dpq_strings_one *>&strings[0]
            object key

        for i in range(n):
            key = keys[i]
            if PyBytes_CheckExact(key):
                string[i].bytes = <const uint8_t *>PyBytes_AS_STRING(key)
                string[i].size = PyBytes_GET_SIZE(key)
            elif describe(key, &string[i]) != 0:
                raise TypeError("keys must be bytes or strings")
            total += string[i].size
        bytes = np.empty(total + 1, dtype=np.uint8)  # side by side, in few pages
        total = 0
        for i in range(n):
            if string[i].bytes != NULL:
                memcpy(&bytes[total], string[i].bytes, string[i].size)
                string[i].bytes = &bytes[total]
                total += string[i].size
        self.strings, self.bytes, self.slots = strings.base, bytes.base, slot.base
        self.table.slots = slots
        self.table.key = string
        self.table.slot = <dpq_strings_slot *>&slot[0]
        # Words that nobody outside of this process knows, as for Python's own dictionaries.
        self.table.seed[0] = <uint64_t><Py_ssize_t>hash("dpq_fast")
        self.table.seed[1] = <uint64_t><Py_ssize_t>hash("strings")
        with nogil:
            dpq_strings_fill(n, string, self.table.seed, slots, <dpq_strings_slot *>&slot[0])

    def find_arrow(self, int layout, size_t first, const uint8_t[::1] valid,
                   const uint8_t[::1] entry not None, list buffers not None,
                   int32_t[::1] place not None):
        """Places of the strings `first`, ..., of an array of Arrow, as many as `place` has; -1.

        `valid` is None where no string is missing; `buffers` are arrays of uint8.
        """
        cdef:
            size_t n = place.shape[0], last = first + n, k
            const uint8_t[::1] bytes
            uint8_t[::1] room = np.empty(max(len(buffers), 1) * sizeof(dpq_strings_buffer),
                                         dtype=np.uint8)
            dpq_strings_buffer *buffer = <dpq_strings_buffer *>&room[0]
            dpq_strings_arrow array

        if n == 0:
            return
        if layout not in (DPQ_STRINGS_INT32, DPQ_STRINGS_INT64, DPQ_STRINGS_VIEWS):
            raise ValueError("layout must be INT32, INT64 or VIEWS")
        if (last < first or <size_t>entry.shape[0] // layout < last + (layout != DPQ_STRINGS_VIEWS)
                or (valid is not None and <size_t>valid.shape[0] < (last + 7) // 8)
                or (layout != DPQ_STRINGS_VIEWS and len(buffers) != 1)):
            raise ValueError("an array of Arrow must have buffers for all of its strings")
        for k in range(<size_t>len(buffers)):
            bytes = buffers[k]
            buffer[k].size = bytes.shape[0]
            buffer[k].bytes = &bytes[0] if bytes.shape[0] else NULL
        array.layout = <dpq_strings_layout>layout
        array.entry = &entry[0]
        array.valid = NULL if valid is None else &valid[0]
        array.first = first
        array.buffers = len(buffers)
        array.buffer = buffer
        with nogil:
            dpq_strings_find_arrow(&self.table, &array, n, &place[0])

    def find_fixed(self, const uint32_t[:, ::1] character not None, int32_t[::1] place not None):
        """Places of strings that are rows of characters, filled up with zeros; -1 for none."""
        cdef size_t n = place.shape[0], width = character.shape[1]

        if <size_t>character.shape[0] != n or width == 0:
            raise ValueError("character and place must have one length, and rows a character")
        if n > 0:
            with nogil:
                dpq_strings_find_fixed(&self.table, n, width, &character[0, 0], &place[0])

    def find_objects(self, items not None, int32_t[::1] place not None):
        """Places of the strings of a list or an array of objects; -1 for none, None and numbers.

        OTHER for what may be equal to a string nevertheless.
        """
        cdef:
            size_t n = place.shape[0], i, k, batch
            PyObject **item
            dpq_strings_one[BATCH] string
            int32_t[BATCH] other

        # Nothing in here lets another thread run, nor code that could change the items; without the
        # GIL another thread waits before it changes the list. Of arrays NumPy asks the same.
        with cython.critical_section(items):
            if isinstance(items, ndarray):
                check_given(items, 1, NPY_OBJECT)
                item = <PyObject **>PyArray_DATA(items)
            elif type(items) is list:
                item = PySequence_Fast_ITEMS(items)
            else:
                raise TypeError("items must be a list or an array of objects")
            if <size_t>len(items) != n:
                raise ValueError("items and place must have one length")
            for i in range(0, n, BATCH):
                batch = min(n - i, <size_t>BATCH)
                for k in range(batch):
                    if n - i - k > AHEAD:
                        DPQ_PREFETCH(item[i + k + AHEAD])
                        DPQ_PREFETCH(<const void *>(<size_t>item[i + k + AHEAD] + 48))
                    string[k].bytes = NULL
                    other[k] = 0
                    if item[i + k] != NULL:
                        other[k] = describe(<object>item[i + k], &string[k])
                dpq_strings_find(&self.table, batch, &string[0], &place[i])
                for k in range(batch):
                    if other[k] != 0:
                        place[i + k] = OTHER
