"""What domains, metrics and measures of OpenDP are here: arrays, relations and budgets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

# OpenDP's names of metrics, and the relation of which each is the number of steps.
RELATIONS = {
    "ChangeOneDistance": "swap",
    "HammingDistance": "swap",
    "SymmetricDistance": "add-remove",
    "InsertDeleteDistance": "add-remove",
}
# Its names of measures, and what a budget of each is called.
BUDGETS = {"MaxDivergence": "epsilon", "ZeroConcentratedDivergence": "rho"}
# Its names of the elements of vectors, and the types of arrays that hold all of them.
ELEMENTS = {
    **dict.fromkeys(("f32", "f64"), np.float64),
    **dict.fromkeys(("i8", "i16", "i32", "i64", "u8", "u16", "u32"), np.int64),
    **dict.fromkeys(("u64", "usize"), np.uint64),
}


def neighbors_of(metric: Any, dp: Any) -> str:
    """The relation of a metric."""
    found = RELATIONS.get(str(metric.type)) if isinstance(metric, dp.Metric) else None
    if found is None:
        raise ValueError(
            "input_metric must be change_one_distance() or hamming_distance() for replaced "
            "records, symmetric_distance() or insert_delete_distance() for added and removed "
            f"ones, got {_shown(metric, dp)}"
        )
    return found


def budget_of(measure: Any, dp: Any) -> str:
    """What a budget is called."""
    found = BUDGETS.get(str(measure.type)) if isinstance(measure, dp.Measure) else None
    if found is None:
        raise ValueError(
            "output_measure must be max_divergence() or zero_concentrated_divergence(), "
            f"got {_shown(measure, dp)}"
        )
    return found


def _shown(given: Any, dp: Any) -> str:
    """An object of OpenDP as it shows itself; of others, the type."""
    ours = isinstance(given, (dp.Domain, dp.Metric, dp.Measure))
    return repr(given) if ours else type(given).__name__


def reader_of(domain: Any, dp: Any) -> Callable[[Any], NDArray[Any]]:
    """What makes an array of a member of a domain."""
    carrier = str(domain.carrier_type) if isinstance(domain, dp.Domain) else ""
    if carrier == "ExtrinsicObject":
        return _array
    dtype = ELEMENTS.get(carrier.removeprefix("Vec<").removesuffix(">"))
    if dtype is None or not carrier.startswith("Vec<"):
        raise ValueError(
            "input_domain must be column_domain(), a user domain of arrays, or a vector domain of "
            f"numbers, got {_shown(domain, dp)}"
        )
    return lambda data: np.asarray(data, dtype=dtype)


def _array(data: Any) -> NDArray[Any]:
    """A member of `column_domain`, as it is."""
    refusal = refusal_of(data)
    if refusal is not None:
        raise TypeError(
            f"data must be a one-dimensional NumPy array of real numbers, got {refusal}"
        )
    column: NDArray[Any] = data
    return column


def refusal_of(data: Any) -> str | None:
    """Why something is no member of `column_domain`, by its type alone; None if it is one."""
    if not isinstance(data, np.ndarray):
        return type(data).__name__
    if data.ndim != 1:
        return f"{data.ndim} dimensions"
    return None if data.dtype.kind in "iuf" else f"dtype {data.dtype}"
