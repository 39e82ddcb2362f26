"""Plans for sums and means."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dpq_fast import _checks
from dpq_fast._arguments import in_our_words, names_of, with_further
from dpq_fast.data.records import Records
from dpq_fast.mechanisms import aggregates
from dpq_fast.mechanisms._calls import as_called
from dpq_fast.planning.guesses import Guess
from dpq_fast.planning.outcomes import Outcomes, summary
from dpq_fast.planning.plans import Plan
from dpq_fast.planning.requests import PlanRequest, Row
from dpq_fast.planning.samples import RELEASES, PublicSample, numbers_of, places_of, public_rng
from dpq_fast.planning.shapes import guesses_of
from dpq_fast.privacy.aggregates import AUTO, public_clip

# Arguments of releases that are none of a plan; persons are records of their own.
NO_PLAN = (
    *("x", "counts", "privacy_unit", "contributions"),
    *("accountant", "rng", "workers", "confidence", "covers"),
)
# Sums and means are released less often than quantiles: they take longer.
SLOW = 2.5


def _plan_total(
    release: Callable[..., Any],
    /,
    *,
    n: int,
    guess: Any = None,
    epsilon: Any = None,
    target: float | None = None,
    level: float = 0.95,
    releases: int = RELEASES,
    **options: Any,
) -> Plan:
    """A plan of sums or means."""
    n = _checks.check_count("n", n)
    request = PlanRequest.of(epsilon, target, "value", "mean", level, releases)
    for name in NO_PLAN:
        if name in options:
            raise TypeError(f"{name} must be left out for a plan")
    given = dict(bounds=None, q=AUTO, lower=0.0, upper=None) | options
    q, lower, upper = public_clip(given["bounds"], given["q"], given["lower"], given["upper"])
    public = q is None
    if guess is None and not public:
        raise ValueError("guess must be given unless bounds are, or q is None")
    method = "none" if public else options.get("method", "unbounded")
    bounds = (lower, upper) if public else None
    if guess is None:
        guesses, text = guesses_of(None, _checks.check_bounds(bounds))
    else:
        guesses, text = guesses_of(Guess.of(guess, bounds), None)

    def rows_of(one_guess: Guess) -> Callable[[float], list[Row]]:
        one = Totals(release, n, one_guess, options, method, request.releases, len(guesses))
        return lambda budget: [one.row(budget, request.level)]

    title = (
        f"Predicted errors of {release.__name__}: n = {n:,}, "
        f"neighbors {options.get('neighbors', 'swap')},\n{text}"
    )
    predictions = {name: rows_of(each) for name, each in guesses.items()}
    return request.answer(title, predictions, True)


@in_our_words
@with_further(lambda: names_of(aggregates.sum))
@as_called(_plan_total)
def plan_sum(**options: Any) -> Plan:
    """Predict the errors of `sum` for each epsilon, before any data is read.

    Parameters
    ----------
    n, epsilon, level
        As in `plan`.
    guess : frozen distribution or array_like of float
        As in `plan`. Left out only for a public clip (`bounds`): then the largest errors over the
        shapes of `plan` inside the clip.
    target : float, optional
        As in `plan`: an error in the unit of the data.
    releases : int, default 1,000
        How many are simulated at each epsilon, from 100 to a million; fewer of more than 100
        levels.
    **options
        As they will be given to `sum`: `bounds`, `q`, `lower`, `upper`, `method`, `share`,
        `expected_n`, `resolution`, `neighbors`, `max_contributions` and those of the method.

    Returns
    -------
    Plan
        Its errors are ``values``: absolute differences from the sum of all records, which noise
        and clip make together.

    Raises
    ------
    TypeError, ValueError
        As in `plan` and `sum`.

    Notes
    -----
    Public samples of the guess are released: clips by their law, noise by its own.

    **Persons.** For a sum about persons by weights (``privacy_unit=``), let n be their number and
    the guess one at what the rows of a person add up to; for a mean, at their mean.

    Examples
    --------
    >>> out = plan_sum(n=1_000, bounds=(0, 10), epsilon=[0.5, 1.0])
    >>> bool(out.values.expected[0] > out.values.expected[1])
    True
    """
    return _plan_total(aggregates.sum, **options)


@in_our_words
@with_further(lambda: names_of(aggregates.mean))
@as_called(_plan_total)
def plan_mean(**options: Any) -> Plan:
    """Predict the errors of `mean` for each epsilon, before any data is read.

    Parameters
    ----------
    n, guess, epsilon, target, level, releases, **options
        As in `plan_sum`.

    Returns
    -------
    Plan
        Its errors are ``values``: absolute differences from the mean of all records.

    Raises
    ------
    TypeError, ValueError
        As in `plan_sum`.

    See Also
    --------
    plan_sum : With all about the prediction.

    Examples
    --------
    >>> out = plan_mean(n=1_000, bounds=(0, 10), epsilon=1.0)
    >>> bool(0.0 < out.values.expected[0] < 0.1)
    True
    """
    return _plan_total(aggregates.mean, **options)


class Rows(Records):
    """Public records, none of them missing, that are as many rows."""

    __slots__ = ()

    def sums(self, scale: float, first: int, last: int) -> tuple[int, int, int | None]:
        """As for `Records`."""
        total, number, _ = super().sums(scale, first, last)
        return total, number, number


class Totals:
    """Predictions for sums or means.

    Parameters
    ----------
    release : callable
        `sum` or `mean`.
    n : int
    guess : Guess
    options : dict
        Further arguments of the release.
    method : str
        What finds the clip; "none" for a public one.
    releases : int
    guesses : int
        How many there are, one of which is this one.
    """

    def __init__(
        self,
        release: Callable[..., Any],
        n: int,
        guess: Guess,
        options: dict[str, Any],
        method: str,
        releases: int,
        guesses: int,
    ) -> None:
        self._release = release
        self._n = n
        self._options, self._method = options, method
        places = places_of(n, np.array([0.0, float(n)]))
        samples, draws = numbers_of(releases, places.size, guesses)
        self._draws = math.ceil(draws / SLOW)
        self._samples = [
            PublicSample(guess.of_size(n), n, places, public_rng(0, i)) for i in range(samples)
        ]

    def _column(self, sample: PublicSample) -> tuple[Any, dict[str, Any]]:
        """A sample as its column is released: with a public number of rows, but for samplers."""
        options = dict(self._options)
        if self._method not in ("none", "unbounded"):
            return sample.values, options | {"counts": sample.weights}
        policy = options.pop("nan_policy", "omit")
        return Rows.of(sample.values, counts=sample.weights, nan_policy=policy), options

    def row(self, epsilon: float, level: float) -> Row:
        """The errors at an epsilon."""
        found = []
        for i, sample in enumerate(self._samples):
            rng = public_rng(2, i)
            with np.errstate(over="ignore"):
                true = float(sample.values @ sample.weights)
            if self._release is aggregates.mean:
                true /= self._n
            x, options = self._column(sample)
            released = [
                self._release(x, epsilon=epsilon, rng=rng, **options) for _ in range(self._draws)
            ]
            with np.errstate(over="ignore", invalid="ignore"):
                errors = np.abs(np.array(released) - true)[:, None]
            errors[np.isnan(errors)] = np.inf  # sums beyond float64
            found.append((np.zeros_like(errors), errors))
        _, values, uncertainty = summary(Outcomes.of_each(found), level)
        return Row(epsilon, self._method, True, None, self._n, None, values, uncertainty)
