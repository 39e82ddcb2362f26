"""The compiled kernels, one module per file of csrc/. Private: sizes are the caller's duty."""

from importlib.util import find_spec

# Else a checkout says that it "cannot import name", which reads like a fault of its own.
if find_spec(f"{__name__}.uniform") is None:
    raise ImportError(
        f"the extension modules of dpq_fast are not built in {__path__[0]}: run `pip install .` in "
        "the checkout, then start Python in another folder, where the installed package is found"
    )
