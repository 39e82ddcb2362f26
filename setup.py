"""The compiled modules; everything else is in pyproject.toml."""

import os
import sys
from glob import glob
from pathlib import Path
from typing import Any

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_clib import build_clib
from setuptools.command.build_ext import build_ext

INCLUDED = ["csrc", numpy.get_include()]


def flags(level: str) -> list[str]:
    """For all compilers; and for so much speed, if nobody asks for less."""
    # -ffp-contract=off: the accuracy contracts count roundings, the same on every CPU
    found, asked = ["-std=c11", "-ffp-contract=off"], os.environ.get("CFLAGS", "").split()
    # Python's own flags ask for less speed, and for debug symbols, five times as large as the code.
    # Who wants these, or a build in half of the time, says so.
    if not {"-O0", "-Og", "-O1"} & set(asked):
        found.append(level)
    if sys.platform == "win32":
        return [f"/clang:{flag}" for flag in found]
    return found if any(flag.startswith("-g") for flag in asked) else [*found, "-g0"]


def take_clang(compiler: Any) -> None:
    """On Windows compile by clang-cl, which has C11 and vectorizes, and link as Python does."""
    if compiler.compiler_type == "msvc":
        compiler.initialize()
        compiler.cc = "clang-cl"


class BuildKernels(build_clib):
    def build_libraries(self, libraries: Any) -> None:
        take_clang(self.compiler)
        super().build_libraries(libraries)


class BuildModules(build_ext):
    """The C kernels once, in a static library, then the modules side by side."""

    def initialize_options(self) -> None:
        super().initialize_options()
        self.parallel = True

    def run(self) -> None:
        self.run_command("build_clib")
        super().run()

    def build_extensions(self) -> None:
        take_clang(self.compiler)
        super().build_extensions()


setup(
    cmdclass={"build_clib": BuildKernels, "build_ext": BuildModules},
    libraries=[
        (
            "dpq_kernels",
            {
                "sources": sorted(glob("csrc/*.c")),
                "obj_deps": {"": glob("csrc/*.h")},
                "include_dirs": INCLUDED,
                "cflags": flags("-O3"),
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
                extra_compile_args=flags("-O2"),  # more makes them no faster
            )
            for source in sorted(glob("dpq_fast/_kernels/*.pyx"))
        ],
        compiler_directives={
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            # Nothing in a module changes after its import: CONTRIBUTING.md, Release.
            "freethreading_compatible": True,
        },
    ),
)
