"""A bit generator's capsule as the `bitgen_t *` that kernels draw from."""

from cpython.pycapsule cimport PyCapsule_GetPointer
from numpy.random cimport bitgen_t


cdef inline bitgen_t *bitgen_of(object bit_generator) except NULL:
    """Valid as long as the caller keeps `bit_generator` alive; hold its lock while drawing."""
    return <bitgen_t *>PyCapsule_GetPointer(bit_generator.capsule, "BitGenerator")
