"""Calls that do not fit a public function, refused by its own name and before all else.

A call that fits pays for nothing but one more call of Python: whether it does not is looked at only
once it has failed. What does not fit fails before anything is charged or read, as arguments are
bound, or as they are handed to what takes them.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

# Words of other libraries: the argument of ours that stands for them, and what it is. Where a
# function has no such argument, nothing is said.
_WORDS: dict[str, tuple[tuple[str, ...], str]] = {
    "bounds": (
        ("clamp", "clip", "clip_bounds", "limits", "range", "minmax", "min_value", "max_value"),
        "(low, high), chosen without looking at the records",
    ),
    "confidence": (
        ("alpha", "ci", "conf_level", "confidence_level"),
        "how likely an interval covers: 0.95 for an alpha of 0.05",
    ),
    "counts": (
        ("weights", "weight", "sample_weight", "freq", "frequencies"),
        "how often each value occurs, or Weights(...) of records",
    ),
    "covers": (("population",), "which is 'sample' or 'population'"),
    "epsilon": (("eps", "privacy_budget", "budget"), "the budget of the call"),
    "by": (("group", "group_by", "groupby", "keys"), "the key of each record"),
    "groups": (("partitions", "public_partitions", "categories"), "the public keys"),
    "max_contributions": (
        ("k", "l0", "max_partitions_contributed", "contribution_bound", "num_contributions"),
        "how many records a person may have",
    ),
    "method": (("mechanism", "algorithm"), "the name of the mechanism"),
    "nan_policy": (
        ("skipna", "dropna", "ignore_nulls", "missing", "na_rm"),
        "which leaves missing values out, or states that there are none",
    ),
    "neighbors": (
        ("adjacency", "relation", "neighbours", "neighboring", "swap"),
        "which is 'swap' or 'add-remove'",
    ),
    "privacy_unit": (
        ("privacy_id", "privacy_key", "privacy_id_column", "user_id", "id_column", "identifier"),
        "the ids of the persons whose the records are",
    ),
    "q": (
        ("quant", "quantiles", "percentiles", "percent", "probs", "levels", "alphas", "p"),
        "the levels",
    ),
    "resolution": (
        ("candidates", "granularity", "step", "bin_width", "interpolation"),
        "the spacing of the answers that are possible",
    ),
    "rng": (
        ("seed", "random_state", "generator"),
        "a seed for tests alone: noise that can be predicted is no privacy",
    ),
    "workers": (("n_jobs", "num_threads", "n_workers", "threads"), "the number of threads"),
}
# And words that no argument of ours stands for.
_NOTHING: dict[str, tuple[str, ...]] = {
    "a column has one dimension; call once for each column, or use describe": ("axis",),
    "an answer has the shape of the levels": ("keepdims", "out", "dtype", "squeeze"),
    "nothing is written to x": ("overwrite_input", "inplace", "copy"),
    "records are chosen before the call": ("where", "filter", "query", "numeric_only"),
    "noise follows from the budget": ("scale", "sigma", "noise_scale", "noise_multiplier"),
    "sensitivities follow from the other arguments": ("sensitivity",),
    "levels lie in [0, 1], or are those of percentile": ("percentage",),
}


def in_our_words(function: Function) -> Function:
    """Let a public function, or the constructor of a class, refuse by name what does not fit it."""
    if isinstance(function, type):
        _constructor(function)
        return cast(Function, function)

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except (TypeError, ValueError):
            refuse_misfit(call, arguments, options)
            raise

    # for whoever does not follow wrappers, as OpenDP
    call.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return cast(Function, call)


def _constructor(kind: Any) -> None:
    own = kind.__init__

    @functools.wraps(own)
    def construct(*arguments: Any, **options: Any) -> None:
        try:
            own(*arguments, **options)
        except (TypeError, ValueError):
            refuse_misfit(construct, arguments, options, f"{kind.__name__}()")
            raise

    kind.__init__ = construct


def with_further(names: Callable[[], Iterable[str]]) -> Callable[[Function], Function]:
    """Say which names a function takes beyond those of its signature, in ``**options``."""

    def declare(function: Function) -> Function:
        function.further_names = names  # type: ignore[attr-defined]
        return function

    return declare


def names_of(function: Callable[..., Any], further: bool = True) -> list[str]:
    """The names of the arguments that a function takes, in ``**options``, too."""
    parameters = inspect.signature(function).parameters.values()
    names = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if further and hasattr(function, "further_names"):
        names += [name for name in function.further_names() if name not in names]
    return names


def refuse_misfit(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    options: Mapping[str, Any],
    name: str | None = None,
    further: Sequence[str] = (),
) -> None:
    """Raise TypeError where a call does not fit the signature that a function shows.

    Parameters
    ----------
    function : callable
    arguments, options
        Of the call, `self` included.
    name : str, optional
        What the call is named by. Default: the function, with its class.
    further : sequence of str
        Names that it takes beyond those that it shows.
    """
    name = f"{function.__qualname__}()" if name is None else name
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    known = [each for each in (*names_of(function), *further) if each not in ("self", "cls")]
    is_open = any(p.kind is p.VAR_KEYWORD for p in parameters)
    if not is_open or hasattr(function, "further_names"):
        for option in options:
            if option not in known:
                raise TypeError(unknown(name, option, known)) from None
    by_position = [
        p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if len(arguments) > len(by_position) and all(
        p.kind is not p.VAR_POSITIONAL for p in parameters
    ):
        shown = [each for each in by_position if each not in ("self", "cls")]
        listed = f"{_listed(shown)} alone" if shown else "nothing"
        raise TypeError(
            f"{name} takes {listed} by position, got "
            f"{len(arguments) - len(by_position) + len(shown)} arguments"
        ) from None
    given = {*by_position[: len(arguments)], *options}
    missing = [
        p.name
        for p in parameters
        if p.default is p.empty
        and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        and p.name not in given
    ]
    budgets = [p.name for p in parameters if p.name in ("epsilon", "rho") and p.default is None]
    if len(budgets) == 2 and given.isdisjoint(budgets):
        missing.append("epsilon or rho")
    if missing:
        raise TypeError(f"{name} needs {_listed(missing)}") from None
    for option in by_position[: len(arguments)]:
        if (
            option in options
            and signature.parameters[option].kind is not inspect.Parameter.POSITIONAL_ONLY
        ):
            raise TypeError(f"{name} takes {option} once, got it twice") from None


def unknown(name: str, option: str, known: Collection[str]) -> str:
    """What is said of an argument that a function does not have."""
    said = f"{name} has no argument {option!r}"
    for ours, (words, meaning) in _WORDS.items():
        if option in words and ours in known:
            return f"{said}; use {ours!r}, {meaning}"
    for instead, nowhere in _NOTHING.items():
        if option in nowhere:
            return f"{said}: {instead}"
    if close := difflib.get_close_matches(option, known, 1):
        return f"{said}; did you mean {close[0]!r}?"
    return said


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
