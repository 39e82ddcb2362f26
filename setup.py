"""The compiled modules; everything else is in pyproject.toml."""

from glob import glob

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup

# One Cython module per C kernel, same stem, with the C files it is linked from.
KERNELS = {
    "status": [],
    "lattice": ["lattice"],
    "intervals": ["intervals"],
    "histogram": ["histogram"],
    "uniform": ["uniform"],
    "halting": ["halting", "uniform"],
    "race": ["race", "uniform"],
    "noise": ["noise"],
    "scan": ["scan"],
    "select": ["select"],
    "path": ["path", "race", "uniform"],
    "groups": ["groups", "intervals", "lattice", "path", "race", "scan", "uniform"],
}

setup(
    ext_modules=cythonize(
        [
            Extension(
                f"dpq_fast._kernels.{stem}",
                [f"dpq_fast/_kernels/{stem}.pyx", *(f"csrc/{source}.c" for source in sources)],
                depends=glob("csrc/*.h"),
                include_dirs=["csrc", numpy.get_include()],
                define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION")],
                # -ffp-contract=off: the accuracy contracts count roundings, the same on every CPU.
                extra_compile_args=["-std=c11", "-O3", "-ffp-contract=off"],
            )
            for stem, sources in KERNELS.items()
        ],
        compiler_directives={
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "freethreading_compatible": False,
        },
    )
)
