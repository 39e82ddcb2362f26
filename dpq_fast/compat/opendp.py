"""Our releases as measurements of OpenDP, for its `Context`, compositors, filters and odometers.

A constructor `make_...` takes ``input_domain, input_metric`` first, as OpenDP's own do; `then_...`
is for ``space >> then_...(...)``, and `register` gives a `Context` the queries `dpq_quantile`,
`dpq_cdf`, `dpq_sum`, `dpq_mean` and `dpq_count`. What holds for all of them:

- **Domain.** `column_domain`, or a user domain of your own whose members are one-dimensional NumPy
  arrays of real numbers: the array itself is handed over, and not copied. Also OpenDP's vector
  domains of numbers, after its transformations; these hand over lists, which takes far longer. NaN
  is left out.
- **Metric.** `change_one_distance` and `hamming_distance`: records are replaced ("swap", and their
  number is public). `symmetric_distance` and `insert_delete_distance`: records are added or removed
  ("add-remove").
- **Measure.** `max_divergence`, or `zero_concentrated_divergence` as `output_measure`: a release
  made for zCDP. Left out in a `Context` of zCDP, OpenDP casts a pure one, at a rho of half the
  square of its epsilon: quantiles then have half the epsilon, sums and means with a private clip
  0.6 to 0.7 of it, and distribution functions Laplace noise in place of Gaussian. Other measures
  come from these two by OpenDP's combinators, which a `Context` applies by itself.
- **Budget.** The loss at ``d_in=1``: epsilon, or rho. At ``d_in=k`` it is k times, or k^2 times,
  as much, rounded up: that is a chain of k neighbors. In a query it may be left out: OpenDP then
  finds the largest one that fits.
- **Accounting** is OpenDP's: no `accountant` is taken, and no `max_contributions`, which `d_in`
  says. It refuses what overdraws with its own errors.
- **Errors.** Public arguments are checked when a measurement is made. What it raises when it is
  invoked depends on the type of the data, never on the records: OpenDP does not count what fails.
- **Features.** OpenDP asks for "contrib" and "honest-but-curious" wherever Python code is a
  measurement. Enable them yourself; nothing here does.

OpenDP's Polars expressions are made of what OpenDP has compiled in, and cannot be extended: of a
`LazyFrame`, hand over a column as an array.

OpenDP (0.14 or later) is imported when it is used: ``pip install 'dpq_fast[opendp]'``.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from dpq_fast import _checks, privacy
from dpq_fast._arguments import in_our_words, refuse_misfit
from dpq_fast._docs import spell_out
from dpq_fast._prepared import Prepared
from dpq_fast.compat._opendp_spaces import budget_of, neighbors_of, reader_of, refusal_of
from dpq_fast.mechanisms._calls import as_called
from dpq_fast.mechanisms.aggregates import count as _count
from dpq_fast.mechanisms.aggregates import mean as _mean
from dpq_fast.mechanisms.aggregates import sum as _sum
from dpq_fast.mechanisms.cdf import cdf as _cdf
from dpq_fast.mechanisms.quantile import quantile as _quantile
from dpq_fast.mechanisms.registry import MECHANISMS
from dpq_fast.privacy.aggregates import AUTO
from dpq_fast.privacy.zcdp import largest_for_rho
from dpq_fast.released.cdf import CDF

__all__ = [
    "column_domain",
    "make_cdf",
    "make_count",
    "make_mean",
    "make_quantile",
    "make_sum",
    "register",
    "then_cdf",
    "then_count",
    "then_mean",
    "then_quantile",
    "then_sum",
]

# What a domain, a metric, a measure or an accountant of OpenDP says in its own way.
REFUSED = (
    *("x", "epsilon", "delta", "rho", "neighbors", "max_contributions", "accountant"),
    *("counts", "privacy_unit", "contributions", "assume_sorted", "nan_policy"),
)
# An accountant of a rho is made by an epsilon for a delta, whichever.
ANY_DELTA = 1e-300
IDENTIFIER = "one-dimensional NumPy arrays of real numbers"


class ReleasedCDF(CDF):
    """A `CDF` that holds nothing but what was released.

    To what a measurement gives, OpenDP attaches how it was called: its argument, too, which is the
    private data. Numbers, arrays and estimates take no new attribute, and nor does this.
    """

    __opendp_dict__ = property(doc="Not there, and not to be set.")


def column_domain() -> Any:
    """The domain of one-dimensional NumPy arrays of real numbers, of any type and length.

    Returns
    -------
    opendp.mod.Domain
        A user domain, which hands over the array itself. Its members may have NaN.

    Raises
    ------
    ImportError
        If OpenDP is not installed.
    opendp.mod.OpenDPException
        If the feature "honest-but-curious" is not enabled.
    """
    dp = _checks.extra("opendp.prelude", "column_domain", "opendp")
    return dp.user_domain(IDENTIFIER, lambda data: refusal_of(data) is None)


@in_our_words
def make_quantile(
    input_domain: Any,
    input_metric: Any,
    q: Any,
    budget: float,
    *,
    output_measure: Any = None,
    bounds: tuple[float, float] | None = None,
    method: str = "auto",
    resolution: float | None = None,
    dither: bool | None = None,
    prior: Any = None,
    expected_n: int | None = None,
    confidence: float | None = None,
    covers: str = "sample",
    interval_share: float | None = None,
    method_options: dict[str, Any] | None = None,
    rng: Any = None,
    workers: int = 1,
) -> Any:
    """A measurement that releases quantiles, as `dpq_fast.quantile`.

    Parameters
    ----------
    input_domain : opendp.mod.Domain
        `column_domain`, another user domain of such arrays, or a vector domain of numbers.
    input_metric : opendp.mod.Metric
        `change_one_distance`, `hamming_distance`, `symmetric_distance` or `insert_delete_distance`.
    q : float or array_like of float
        Levels in [0, 1], any order and shape.
    budget : float
        The loss of all levels together at ``d_in=1``: epsilon, or rho. Left out in a query of a
        `Context`, it is what the query may lose; `q` then goes by its place, not by name.
    output_measure : opendp.mod.Measure, optional
        `max_divergence`, the default, or `zero_concentrated_divergence`.
    bounds : (float, float), optional
        Finite low < high, chosen without looking at the data. Left out for a search upwards from 0
        (`dpq_fast.unbounded_quantile`).
    method, resolution, dither, prior, expected_n, confidence, covers, interval_share, workers
        As in `dpq_fast.quantile`.
    method_options : dict, optional
        Further arguments of the method, by name, such as ``{"noise": "gaussian"}``.
    rng : None, int, SeedSequence, BitGenerator or Generator, optional
        None, for real releases: a cryptographic generator keyed by the operating system.

    Returns
    -------
    opendp.mod.Measurement
        Of a float, an array of q's shape, or an `Estimate` of such.

    Raises
    ------
    ImportError
        If OpenDP is not installed.
    TypeError, ValueError
        If an argument breaks its rule.
    opendp.mod.OpenDPException
        If a feature that OpenDP asks for is not enabled.
    """
    return _measurement(
        _quantile,
        (input_domain, input_metric, output_measure),
        budget,
        dict(
            q=q,
            bounds=bounds,
            method=method,
            resolution=resolution,
            dither=dither,
            prior=prior,
            expected_n=expected_n,
            confidence=confidence,
            covers=covers,
            interval_share=interval_share,
            rng=rng,
            workers=workers,
        ),
        method_options,
    )


@in_our_words
def make_cdf(
    input_domain: Any,
    input_metric: Any,
    budget: float,
    *,
    output_measure: Any = None,
    bounds: tuple[float, float] | None = None,
    method: str = "auto",
    resolution: float | None = None,
    prior: Any = None,
    expected_n: int | None = None,
    method_options: dict[str, Any] | None = None,
    rng: Any = None,
    workers: int = 1,
) -> Any:
    """A measurement that releases a distribution function, as `dpq_fast.cdf`.

    Parameters
    ----------
    input_domain, input_metric, budget, output_measure, rng
        As in `make_quantile`.
    bounds : (float, float)
        Finite low < high, chosen without looking at the data.
    method, resolution, prior, expected_n, workers
        As in `dpq_fast.cdf`.
    method_options : dict, optional
        Further arguments of the method, by name, such as ``{"bins": 64}``.

    Returns
    -------
    opendp.mod.Measurement
        Of a `dpq_fast.CDF`, which can be asked as often as you like.

    Raises
    ------
    ImportError, TypeError, ValueError, opendp.mod.OpenDPException
        As in `make_quantile`.
    """
    return _measurement(
        _released_cdf,
        (input_domain, input_metric, output_measure),
        budget,
        dict(
            bounds=bounds,
            method=method,
            resolution=resolution,
            prior=prior,
            expected_n=expected_n,
            rng=rng,
            workers=workers,
        ),
        method_options,
    )


def _clipped(
    release: Callable[..., Any],
    /,
    input_domain: Any,
    input_metric: Any,
    budget: float,
    *,
    output_measure: Any = None,
    bounds: tuple[float, float] | None = None,
    q: float | str = AUTO,
    lower: float | None = 0.0,
    upper: float | None = None,
    method: str = "unbounded",
    share: float | None = None,
    expected_n: int | None = None,
    resolution: float | None = None,
    confidence: float | None = None,
    covers: str = "sample",
    method_options: dict[str, Any] | None = None,
    rng: Any = None,
    workers: int = 1,
) -> Any:
    """A measurement of a sum or a mean."""
    return _measurement(
        release,
        (input_domain, input_metric, output_measure),
        budget,
        dict(
            bounds=bounds,
            q=q,
            lower=lower,
            upper=upper,
            method=method,
            share=share,
            expected_n=expected_n,
            resolution=resolution,
            confidence=confidence,
            covers=covers,
            rng=rng,
            workers=workers,
        ),
        method_options,
    )


@in_our_words
@as_called(_clipped)
def make_sum(*arguments: Any, **options: Any) -> Any:
    """A measurement that releases the sum of the clipped records, as `dpq_fast.sum`.

    Parameters
    ----------
    input_domain, input_metric, budget, output_measure, rng
        As in `make_quantile`.
    bounds : (float, float), optional
        A public clip: all of the budget goes to the sum. Left out for a private one.
    q, lower, upper, method, share
        How a private clip is found, as in `dpq_fast.sum`. Left out with `bounds`.
    expected_n, resolution, confidence, covers, workers
        As in `dpq_fast.sum`.
    method_options : dict, optional
        Further arguments of the method, by name.

    Returns
    -------
    opendp.mod.Measurement
        Of a float or an `Estimate`.

    Raises
    ------
    ImportError, TypeError, ValueError, opendp.mod.OpenDPException
        As in `make_quantile`.
    """
    return _clipped(_sum, *arguments, **options)


@in_our_words
@as_called(_clipped)
def make_mean(*arguments: Any, **options: Any) -> Any:
    """A measurement that releases the mean of the clipped records, as `dpq_fast.mean`.

    Parameters
    ----------
    input_domain, input_metric, budget, output_measure, rng
        As in `make_quantile`.
    bounds, q, lower, upper, method, share, expected_n, resolution, method_options, workers
        As in `make_sum`.
    confidence, covers
        As in `dpq_fast.mean`.

    Returns
    -------
    opendp.mod.Measurement
        Of a float or an `Estimate`.

    Raises
    ------
    ImportError, TypeError, ValueError, opendp.mod.OpenDPException
        As in `make_quantile`.
    """
    return _clipped(_mean, *arguments, **options)


@in_our_words
def make_count(
    input_domain: Any,
    input_metric: Any,
    budget: float,
    *,
    output_measure: Any = None,
    confidence: float | None = None,
    rng: Any = None,
    workers: int = 1,
) -> Any:
    """A measurement that releases how many records are not missing, as `dpq_fast.count`.

    Parameters
    ----------
    input_domain, input_metric, budget, output_measure, rng
        As in `make_quantile`.
    confidence, workers
        As in `dpq_fast.count`.

    Returns
    -------
    opendp.mod.Measurement
        Of an int or an `Estimate`.

    Raises
    ------
    ImportError, TypeError, ValueError, opendp.mod.OpenDPException
        As in `make_quantile`.
    """
    space = input_domain, input_metric, output_measure
    options = dict(confidence=confidence, rng=rng, workers=workers)
    return _measurement(_count, space, budget, options, None)


def _then(constructor: Callable[..., Any], *first: str) -> Callable[..., Any]:
    """What waits for the domain and metric of a constructor; `first` may be given by position."""
    name = constructor.__name__.replace("make_", "then_")

    def then(*arguments: Any, **options: Any) -> Any:
        refuse_misfit(constructor, ("domain", "metric", *arguments), options, f"{name}()")
        mod = _checks.extra("opendp.mod", constructor.__name__, "opendp")
        return mod._PartialConstructor(
            lambda domain, metric: constructor(domain, metric, *arguments, **options)
        )

    taken = inspect.signature(constructor).parameters
    further = inspect.Parameter("options", inspect.Parameter.VAR_KEYWORD, annotation="Any")
    then.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [*(taken[each] for each in first), further], return_annotation="Any"
    )
    then.__name__ = then.__qualname__ = name
    then.__doc__ = f"""`{constructor.__name__}` for ``space >> {name}(...)``.

    Parameters
    ----------
    {", ".join(first)}, **options
        As in `{constructor.__name__}`.

    Returns
    -------
    opendp.mod._PartialConstructor
    """
    return then


then_quantile = _then(make_quantile, "q", "budget")
then_cdf = _then(make_cdf, "budget")
then_sum = _then(make_sum, "budget")
then_mean = _then(make_mean, "budget")
then_count = _then(make_count, "budget")


def register() -> None:
    """Give every `Context` queries `dpq_quantile`, `dpq_cdf`, `dpq_sum`, `dpq_mean`, `dpq_count`.

    They take what the constructors take, without ``input_domain, input_metric``. To call it again
    changes nothing.

    Raises
    ------
    ImportError
        If OpenDP is not installed.
    """
    context = _checks.extra("opendp.context", "register", "opendp")
    for constructor in (make_quantile, make_cdf, make_sum, make_mean, make_count):
        name = constructor.__name__.replace("make_", "dpq_")
        if name not in context.constructors:
            context.register(constructor, name)


@functools.wraps(_cdf)
def _released_cdf(x: Any, **options: Any) -> ReleasedCDF:
    """`cdf`, of a class that nothing can be attached to."""
    curve = _cdf(x, **options)
    curve.__class__ = ReleasedCDF
    assert isinstance(curve, ReleasedCDF)
    return curve


def _measurement(
    release: Callable[..., Any],
    space: tuple[Any, Any, Any],
    budget: Any,
    options: dict[str, Any],
    method_options: dict[str, Any] | None,
) -> Any:
    """The measurement of a release, by its domain, metric and measure."""
    name = f"make_{release.__name__}"
    dp = _checks.extra("opendp.prelude", name, "opendp")
    domain, metric, measure = space
    measure = dp.max_divergence() if measure is None else measure
    of_data = reader_of(domain, dp)
    neighbors = neighbors_of(metric, dp)
    kind = budget_of(measure, dp)
    # 0, where OpenDP begins to search for a budget, makes a measurement that loses nothing, and
    # that is refused when it is invoked.
    budget = _checks.check_nonnegative("budget", budget)
    if method_options is not None and not isinstance(method_options, dict):
        raise TypeError(f"method_options must be a dict, got {type(method_options).__name__}")
    own = method_options or {}
    refused = sorted(own.keys() & {*REFUSED, *options})
    if refused:
        raise ValueError(f"method_options must not hold {refused[0]!r}")
    options = options | own | dict(neighbors=neighbors)
    _check(release, kind, options)

    @functools.cache
    def spent() -> dict[str, float]:
        return _spent(release, kind, _checks.check_epsilon(budget, "budget"), options)

    def released(data: Any) -> Any:
        column, own = of_data(data), spent()
        return release(column, **options, **own, accountant=_limit(kind, budget, neighbors))

    return dp.m.make_user_measurement(
        domain, metric, measure, released, functools.partial(_loss, budget, kind)
    )


# The public arguments that were checked last, in a list of one.
_checked: list[tuple[Any, ...]] = [()]


def _check(release: Callable[..., Any], kind: str, options: dict[str, Any]) -> None:
    """Check all that is public but the budget, by what a release would charge.

    A search for a budget makes some 60 measurements of the same arguments: they are checked once.
    """
    asked, last = (release, kind, *options, *options.values()), _checked[0]
    if len(asked) == len(last) and all(map(operator.is_, asked, last)):
        return
    own = _spent(release, kind, 1.0, options)
    limit = _limit(kind, 1.0, options["neighbors"])
    made = Prepared.of(release, np.empty(0), **options | own, accountant=limit)
    privacy.charge(limit, made.spent)
    _checked[0] = asked


def _spent(
    release: Callable[..., Any], kind: str, budget: float, options: dict[str, Any]
) -> dict[str, float]:
    """A budget as a release takes it: of one that takes no rho, the epsilon that rho buys."""
    name = release.__name__
    if kind == "epsilon" or name == "quantile" or kind in MECHANISMS[name].budgets:
        return {kind: budget}
    known = inspect.signature(MECHANISMS[name].calibrate).parameters
    public = {key: value for key, value in options.items() if key in known}

    def rho_of(epsilon: float) -> float:
        rho = privacy.guarantee(name, epsilon=epsilon, **public).implied_rho
        assert rho is not None  # pure
        return rho

    # epsilon^2 / 2 is never less than the rho of epsilon
    return {"epsilon": largest_for_rho(rho_of, budget, math.sqrt(budget))}


def _limit(kind: str, budget: float, neighbors: str) -> privacy.Accountant:
    """An accountant that refuses a release which would lose more than the privacy map says."""
    if kind == "epsilon":
        return privacy.Accountant(budget, neighbors=neighbors)
    epsilon = privacy.zcdp_epsilon(budget, ANY_DELTA)
    return privacy.Accountant(epsilon, ANY_DELTA, neighbors, "zcdp")


def _loss(budget: float, kind: str, d_in: int) -> float:
    r"""What a release loses at a distance: that of a chain of `d_in` neighbors, rounded up.

    Epsilons add up along it. A rho grows with the square of its length [BS16].
    """
    exact = Fraction(budget) * (d_in if kind == "epsilon" else d_in * d_in)
    try:
        loss = float(exact)
    except OverflowError:
        return math.inf
    return loss if loss >= exact else math.nextafter(loss, math.inf)


spell_out({name: globals()[name] for name in __all__})
