"""The compiled modules; everything else is in pyproject.toml."""

import os
from glob import glob
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# -ffp-contract=off: the accuracy contracts count roundings, the same on every CPU.
FLAGS = ["-std=c11", "-O3", "-ffp-contract=off"]
# Python's own flags ask for debug symbols, five times as large as the code. Who wants them says so.
if not any(flag.startswith("-g") for flag in os.environ.get("CFLAGS", "").split()):
    FLAGS.append("-g0")
INCLUDED = ["csrc", numpy.get_include()]


class BuildModules(build_ext):
    """The C kernels once, in a static library, then the modules side by side."""

    def initialize_options(self) -> None:
        super().initialize_options()
        self.parallel = True

    def run(self) -> None:
        self.run_command("build_clib")
        super().run()


setup(
    cmdclass={"build_ext": BuildModules},
    libraries=[
        (
            "dpq_kernels",
            {
                "sources": sorted(glob("csrc/*.c")),
                "obj_deps": {"": glob("csrc/*.h")},
                "include_dirs": INCLUDED,
                "cflags": FLAGS,
            },
        )
    ],
    # One Cython module per C kernel, same stem; each links those it calls from the library.
    ext_modules=cythonize(
        [
            Extension(
                f"dpq_fast._kernels.{Path(source).stem}",
                [source],
                # All that a source distribution needs, too.
                depends=[source, *glob("dpq_fast/_kernels/*.pxd"), *glob("csrc/*.[ch]")],
                include_dirs=INCLUDED,
                define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION")],
                extra_compile_args=FLAGS,
            )
            for source in sorted(glob("dpq_fast/_kernels/*.pyx"))
        ],
        compiler_directives={
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "freethreading_compatible": False,
        },
    ),
)
