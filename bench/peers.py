"""Other libraries' private quantiles and sums, each called the way its documentation shows.

`diffprivlib` and `opendp` are None where they are not installed.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

# opendp picks among candidates that the caller lists: this many, evenly spaced over the bounds.
CANDIDATES = 2_001


def _import_diffprivlib() -> Any:
    """`diffprivlib.tools`, without its models, which need an older scikit-learn."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                from diffprivlib import tools
            except ImportError:
                for name in [name for name in sys.modules if name.startswith("diffprivlib")]:
                    del sys.modules[name]
                sys.modules["diffprivlib.models"] = ModuleType("diffprivlib.models")
                from diffprivlib import tools
    except ImportError:
        return None
    return tools


def _import_opendp() -> Any:
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    return dp


diffprivlib = _import_diffprivlib()
opendp = _import_opendp()


def diffprivlib_quantile(
    x: NDArray, q: NDArray, epsilon: float, bounds: tuple[float, float]
) -> Callable[[], Any]:
    """A call that releases all levels; `epsilon` in total."""
    return lambda: diffprivlib.quantile(x, q, epsilon=epsilon, bounds=bounds)


def opendp_quantile(
    x: NDArray, q: NDArray, epsilon: float, bounds: tuple[float, float]
) -> Callable[[], Any]:
    """A call that releases all levels; `epsilon` in total, one composed measurement.

    Calibrating the measurements is left out of the call, handing over the array is part of it.
    """
    domain = opendp.vector_domain(opendp.atom_domain(T=float, nan=False), size=x.size)
    metric = opendp.symmetric_distance()
    candidates = np.linspace(*bounds, CANDIDATES).tolist()

    def at_scale(level: float, scale: float) -> Any:
        return opendp.m.make_private_quantile(
            domain, metric, opendp.max_divergence(), candidates, level, scale
        )

    # one replaced record is a symmetric distance of 2
    budget = epsilon / q.size
    scale = {
        level: opendp.binary_search_param(lambda s, a=level: at_scale(a, s), 2, budget)
        for level in q.tolist()
    }
    measurements = [at_scale(level, scale[level]) for level in q.tolist()]
    release = measurements[0] if q.size == 1 else opendp.c.make_composition(measurements)
    return lambda: release(x)


def diffprivlib_sum(x: NDArray, epsilon: float, bounds: tuple[float, float]) -> Callable[[], Any]:
    """A call that releases the sum of the clamped records."""
    return lambda: diffprivlib.sum(x, epsilon=epsilon, bounds=bounds)


def opendp_sum(x: NDArray, epsilon: float, bounds: tuple[float, float]) -> Callable[[], Any]:
    """A call that releases the sum of the clamped records, n public; noise calibrated before."""
    domain = opendp.vector_domain(opendp.atom_domain(T=float, nan=False), size=x.size)
    metric = opendp.symmetric_distance()
    total = (domain, metric) >> opendp.t.then_clamp(bounds) >> opendp.t.then_sum()
    measurement = opendp.binary_search_chain(
        lambda scale: total >> opendp.m.then_laplace(scale), d_in=2, d_out=epsilon
    )
    return lambda: measurement(x)
