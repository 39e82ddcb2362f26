"""The compiled kernels, one module per file of csrc/. Private: sizes are the caller's duty.

A module allocates what its kernel needs, calls it once without the GIL, and raises what its status
stands for. It knows arrays and the generator's bits: loops over numbers are in C, decisions in the
wings above. Types of all modules are in the stubs beside them.
"""

from importlib.util import find_spec

# Else a checkout says that it "cannot import name", which reads like a fault of its own.
if find_spec(f"{__name__}.uniform") is None:
    raise ImportError(
        f"the extension modules of dpq_fast are not built in {__path__[0]}: run `pip install .` in "
        "the checkout, then start Python in another folder, where the installed package is found"
    )
