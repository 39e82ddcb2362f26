"""Recursive quantiles after [KSS22]: each part of the sample as a list of its records.

[KSS22] is Kaplan, Schnapp, Stemmer, "Differentially Private Approximate Quantiles", ICML 2022.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import privacy
from dpq_fast._checks import check_choice
from dpq_fast.privacy.approx_quantiles import BASES
from dpq_fast.privacy.intervals import Request
from dpq_fast.privacy.levels import Levels, Split, splits
from dpq_fast.reference._calls import Law
from dpq_fast.reference.intervals import released, undithered
from dpq_fast.reference.lattice import Lattice
from dpq_fast.reference.race import race
from dpq_fast.reference.sample import Intervals, decoded, distances, reader
from dpq_fast.reference.unbounded_quantile import (
    UnboundedQuantileLaw,
    unbounded_ends,
    unbounded_quantile,
    unbounded_quantile_law,
)


class ApproxQuantilesLaw(Law):
    """The exact law of the released tuple on one sample and, if there is one, one dither.

    Parameters
    ----------
    records : ndarray of int64 (fine points) or float64
    bounds : (float, float)
    lattice : Lattice or None
    levels : Levels
    rates : array_like of float, shape (m,)
        The rate c of each step, in the order of `splits`.
    """

    def __init__(
        self,
        records: NDArray[Any],
        bounds: tuple[float, float],
        lattice: Lattice | None,
        levels: Levels,
        rates: Any,
    ) -> None:
        self.records = np.sort(records)
        self.bounds = bounds
        self.lattice = lattice
        self.levels = levels
        self.steps = list(zip(splits(levels.values), np.asarray(rates).tolist(), strict=True))

    def _part(self, step: Split, outputs: dict[int, Any]) -> Intervals:
        """The records and the outputs that a step has to do with, given the (fine) outputs so far.

        `outputs` has an entry for each level that was released.
        """
        below, above = outputs.get(step.lower - 1), outputs.get(step.upper)
        # All records at a cut go right: each record is in one part of every depth.
        x = self.records
        if below is not None:
            x = x[x >= below]
        if above is not None:
            x = x[x < above]
        if self.lattice is None:
            first = self.bounds[0] if below is None else below
            last = self.bounds[1] if above is None else above
        else:
            first = -1 if below is None else below - 1
            last = self.lattice.fine_points - 1 if above is None else above
        return Intervals.between(x, first, last, self.bounds, self.lattice)

    def log_prob(self, o: Any) -> float:
        """Log density (continuous) or log-probability (lattice) of one output of q's shape.

        -inf for outputs that can not occur: outside the bounds, off the lattice, or decreasing.
        The density is inf where two outputs meet. Several levels need a sample without
        dither and prior.
        """
        if self.lattice is not None and self.lattice.refined and self.levels.m > 1:
            raise ValueError(
                "log_prob of several levels needs a sample without dither and prior: "
                "pass dither=False"
            )
        outputs = self.levels.distinct(o)
        if outputs is None or not (outputs[1:] >= outputs[:-1]).all():
            return -math.inf
        if not (self.bounds[0] <= outputs[0] and outputs[-1] <= self.bounds[1]):
            return -math.inf
        points = outputs.tolist()
        if self.lattice is not None:
            points = [self.lattice.locate(output) for output in points]
            if None in points:
                return -math.inf
        total = 0.0
        released: dict[int, Any] = {}
        for step, rate in self.steps:
            part = self._part(step, released)
            if part.width.size == 0:
                return math.inf
            terms = [
                float(log_score(part, rank, step, rate)) + math.log(count)
                for rank, count in part.pieces(float(outputs[step.middle]))
            ]
            total += np.logaddexp.reduce(terms) - np.logaddexp.reduce(log_weights(part, step, rate))
            released[step.middle] = points[step.middle]
        return float(total)

    def _draw(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """One ascending output, shape (m,)."""
        released: dict[int, Any] = {}
        for step, rate in self.steps:
            part = self._part(step, released)
            if part.width.size == 0:  # two numbers that meet: nothing lies between them
                released[step.middle] = released[step.upper]
                continue
            t = race(log_weights(part, step, rate), rng)
            released[step.middle] = part.draw_points(t, 1, rng)[0]
        return decoded(np.array([released[j] for j in range(self.levels.m)]), self.lattice)


def log_score(part: Intervals, ranks: Any, step: Split, rate: float) -> NDArray[np.float64]:
    """The exponent of the exponential mechanism at `ranks` of a part.

    The target is the exact product of the local level and the number of records in the part.
    """
    return -rate * distances(ranks, Fraction(step.local) * part.n)


def log_weights(part: Intervals, step: Split, rate: float) -> NDArray[np.float64]:
    """Log-weights of a part's intervals."""
    log_width: NDArray[np.float64] = np.log(part.width)
    return log_score(part, part.rank, step, rate) + log_width


def approx_quantiles_law(
    x: Any,
    q: Any,
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    bounds: tuple[float, float] | None = None,
    base: str = "ind_exp",
    neighbors: str = "swap",
    resolution: float | None = None,
    dither: bool | None = None,
    prior: Any = None,
    counts: Any = None,
    assume_sorted: bool = False,
    nan_policy: str = "omit",
    max_contributions: int = 1,
    dither_rng: Any = None,
    **base_options: Any,
) -> ApproxQuantilesLaw | UnboundedQuantileLaw:
    """The exact output law of `approx_quantiles` on this sample. Not a release: for audits.

    Parameters
    ----------
    x, q, epsilon, rho, bounds, base, neighbors, resolution, dither, prior, counts, assume_sorted, \
nan_policy, max_contributions, **base_options
        As in `approx_quantiles`.
    dither_rng : None, int, SeedSequence, BitGenerator or Generator, optional
        Where the one dither that the law is conditional on comes from.

    Returns
    -------
    ApproxQuantilesLaw or UnboundedQuantileLaw
    """
    levels = Levels(q)
    if check_choice("base", base, BASES) == "unbounded":
        return unbounded_quantile_law(
            x,
            levels,
            epsilon=epsilon,
            rho=rho,
            neighbors=neighbors,
            counts=counts,
            nan_policy=nan_policy,
            max_contributions=max_contributions,
            **unbounded_ends(bounds, resolution, dither, prior, assume_sorted),
            **base_options,
        )
    refuse(base_options)
    calibration = privacy.approx_quantiles.calibrate(
        levels, epsilon=epsilon, rho=rho, neighbors=neighbors, max_contributions=max_contributions
    )
    read = reader(x, bounds, resolution, dither, counts, assume_sorted, nan_policy, prior)
    return ApproxQuantilesLaw(*read(dither_rng), levels, calibration.steps)


def approx_quantiles(
    x: Any,
    q: Any,
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    bounds: tuple[float, float] | None = None,
    base: str = "ind_exp",
    neighbors: str = "swap",
    resolution: float | None = None,
    dither: bool | None = None,
    prior: Any = None,
    counts: Any = None,
    assume_sorted: bool = False,
    nan_policy: str = "omit",
    max_contributions: int = 1,
    accountant: Any = None,
    rng: Any = None,
    confidence: float | None = None,
    covers: str = "sample",
    interval_share: float | None = None,
    expected_n: int | None = None,
    **base_options: Any,
) -> Any:
    """Release the middle quantile, then those of the records below and above it, and so on.

    The law is that of `dpq_fast.approx_quantiles`, whose docstring has every rule in full.

    Parameters
    ----------
    x, q, epsilon
        As in `joint_exp`.
    rho : float, optional
        Zero-concentrated budget instead of `epsilon`.
    bounds : (float, float)
        Finite low < high, chosen without looking at `x`. Public.
    base : {"ind_exp", "unbounded"}
        What releases a middle level.
    neighbors, resolution
        As in `joint_exp`.
    dither : bool, optional
        Whether records on the lattice are spread over their cells, once for all levels.
    prior, counts, assume_sorted, nan_policy, max_contributions, accountant, rng
        As in `joint_exp`.
    confidence, covers, interval_share, expected_n : optional
        For an interval, as in `dpq_fast.quantile`.
    **base_options
        For "unbounded", what `unbounded_quantile` takes besides.

    Returns
    -------
    float, ndarray of float64 or Estimate
        In q's shape and the unit of `x`, inside `bounds`, non-decreasing in `q`.
    """
    levels = Levels(q)
    if check_choice("base", base, BASES) == "unbounded":
        return unbounded_quantile(
            x,
            levels,
            epsilon=epsilon,
            rho=rho,
            neighbors=neighbors,
            counts=counts,
            nan_policy=nan_policy,
            max_contributions=max_contributions,
            accountant=accountant,
            rng=rng,
            confidence=confidence,
            covers=covers,
            interval_share=interval_share,
            expected_n=expected_n,
            **unbounded_ends(bounds, resolution, dither, prior, assume_sorted),
            **base_options,
        )
    refuse(base_options)
    person = dict[str, Any](neighbors=neighbors, max_contributions=max_contributions)
    read = reader(x, bounds, resolution, dither, counts, assume_sorted, nan_policy, prior)

    def value_of(*, epsilon: float | None, rho: float | None, **_: Any) -> Any:
        calibration = privacy.approx_quantiles.calibrate(levels, epsilon=epsilon, rho=rho, **person)
        return calibration, lambda dither_rng: ApproxQuantilesLaw(
            *read(dither_rng), levels, calibration.steps
        )

    return released(
        value_of,
        levels,
        Request.of(confidence, covers, interval_share),
        lambda: undithered(
            x, bounds, resolution, counts=counts, nan_policy=nan_policy, prior=prior
        ),
        x=x,
        counts=counts,
        epsilon=epsilon,
        rho=rho,
        expected_n=expected_n,
        accountant=accountant,
        rng=rng,
        **person,
    )


def refuse(base_options: dict[str, Any]) -> None:
    """Base "ind_exp" takes no arguments of its own."""
    for name in base_options:
        raise TypeError(f"approx_quantiles with base 'ind_exp' takes no argument {name!r}")
