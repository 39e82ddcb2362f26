"""Predictions for quantiles, by method."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast import privacy
from dpq_fast._prepared import Prepared
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.leaves import Leaves
from dpq_fast.data.sample import Sample
from dpq_fast.laws.depth import DepthLaw
from dpq_fast.laws.joint.path import PathLaw
from dpq_fast.mechanisms.approx_quantiles import ApproxQuantilesLaw
from dpq_fast.mechanisms.quantile import choose_method, default_prior
from dpq_fast.mechanisms.quantile_by import quantile_by
from dpq_fast.mechanisms.two_stage import two_stage_law
from dpq_fast.mechanisms.unbounded_quantile import unbounded_ends, unbounded_quantile_law
from dpq_fast.orders.counted import CountedOrder
from dpq_fast.planning.guesses import Guess
from dpq_fast.planning.outcomes import Missed, Outcomes, Runs, summary
from dpq_fast.planning.persons import Kept
from dpq_fast.planning.plans import Errors
from dpq_fast.planning.requests import Row
from dpq_fast.planning.samples import (
    PublicSample,
    numbers_of,
    ordered_shares,
    places_of,
    public_rng,
)
from dpq_fast.planning.trees import Trees
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.relations import relation_of

# Quantiles per more levels than this are released less often: they take longer, and a mean over
# many levels hardly varies.
FEW_LEVELS = 100
# Points of a cell that an exact law takes for its error in the unit of the data.
PARTS = 4
# Permute-and-flip draws like the exponential mechanism where points of this total weight compete:
# to a relative error of one over it.
CROWD = 100.0
# Probabilities of cells that are left out.
NEGLIGIBLE = 1e-8


class Settings(NamedTuple):
    """The arguments of a release of quantiles, checked; `public_by` is None without groups.

    Of persons `kept` is what a release keeps of each; None of rows.
    """

    levels: Levels
    bounds: tuple[float, float] | None
    lattice: Lattice | None
    resolution: float | None
    dither: bool | None
    prior: Any
    neighbors: str
    max_contributions: int
    kept: Kept | None
    public_by: bool | None
    expected_n: int | None
    guess: Guess
    automatic: bool
    has_values: bool
    releases: int
    guesses: int


class Quantiles:
    """Predictions for one number of records, or of persons.

    Parameters
    ----------
    settings : Settings
    n : int
    """

    def __init__(self, settings: Settings, n: int) -> None:
        self._settings = settings
        self._counted = n
        known = n  # where it is public
        if settings.kept is not None:
            known, n = n * settings.kept.most, settings.kept.records(n)
        self._n = n
        self._targets = settings.levels.values * n
        self._guess = settings.guess.of_size(n)
        self._prior, self._lattice = settings.prior, settings.lattice
        if settings.automatic and settings.prior is None and settings.bounds is not None:
            place = settings.bounds, settings.resolution
            self._prior = default_prior(None, *place, "joint_exp", settings.levels.m)
            _, self._lattice = Lattice.between(*place, settings.dither, self._prior)
        self._places = places_of(n, self._targets)
        self._count, self._draws = numbers_of(
            settings.releases, self._places.size, settings.guesses
        )
        self._drawn = math.ceil(self._draws * min(1.0, FEW_LEVELS / settings.levels.m))
        self._person = dict[str, Any](
            neighbors=settings.neighbors, max_contributions=settings.max_contributions
        )
        # as a release of an array knows it: where the number of rows is public, or it is told
        self._expected_n = settings.expected_n
        if settings.public_by is not None:
            # of the release in each group, which has its part of the budget, and no public number
            part = privacy.parallel.part_of(
                epsilon=1.0, public_by=settings.public_by, **self._person
            )
            self._person = dict(neighbors=part.neighbors, max_contributions=1)
        elif relation_of(settings.neighbors).n_is_public and settings.expected_n is None:
            self._expected_n = known

    def methods(self, method: str, epsilon: float) -> list[str]:
        """Those that are predicted at an epsilon."""
        if method == "all":
            others = [] if self._settings.dither else ["agg_tree", "two_stage"]
            if self._settings.levels.m == 1 and not self._settings.dither:
                others.append("ind_exp")
            return ["joint_exp", "approx_quantiles", *others]
        return [self._chosen(epsilon) if method == "auto" else method]

    def _chosen(self, epsilon: float) -> str:
        """What "auto" takes."""
        settings = self._settings
        return choose_method(
            None,
            settings.levels,
            epsilon=epsilon,
            bounds=settings.bounds,
            resolution=settings.resolution,
            dither=settings.dither,
            prior=settings.prior,
            expected_n=self._expected_n,
            **self._person,
        )

    def row(self, epsilon: float, method: str, level: float) -> Row:
        """The errors of one method."""
        outcomes = getattr(self, f"_by_{method}")(epsilon)
        return self._row(epsilon, method, method == self._chosen(epsilon), outcomes, level)

    def _row(
        self, epsilon: float, method: str, chosen: bool, outcomes: list[Outcomes], level: float
    ) -> Row:
        """Errors in ranks of records, or of persons, who have as many records each."""
        ranks, values, uncertainty = summary(outcomes, level)
        each = self._counted / self._n
        of_persons = Errors(*(each * error for error in ranks))
        return Row(epsilon, method, chosen, None, self._counted, of_persons, values, uncertainty)

    def group_row(self, epsilon: float, method: str, level: float) -> Row:
        """The errors in a group of `quantile_by`."""
        settings = self._settings
        spent: Any = Prepared.of(
            quantile_by,
            [],
            [],
            settings.levels.values,
            groups=[0],
            epsilon=epsilon,
            bounds=settings.bounds,
            neighbors=settings.neighbors,
            public_by=settings.public_by,
            method=None if method == "auto" else method,
            resolution=settings.resolution,
            dither=settings.dither,
            prior=settings.prior,
            max_contributions=settings.max_contributions,
            expected_n=settings.expected_n,
        ).spent
        if isinstance(spent, privacy.quantile_by.PartCalibration):
            outcomes = getattr(self, f"_by_{spent.method}")(spent.part.epsilon)
        elif spent.method == privacy.quantile_by.IND_EXP:
            outcomes = self._of_one(spent.rate, True)
        else:
            outcomes = self._of_paths(spent.rate)
        return self._row(epsilon, spent.method, True, outcomes, level)

    @cached_property
    def _samples(self) -> list[PublicSample]:
        return [
            PublicSample(self._guess, self._n, self._places, public_rng(0, i))
            for i in range(self._count)
        ]

    @property
    def _grid(self) -> Lattice:
        assert self._lattice is not None
        return self._lattice

    @cached_property
    def _missed(self) -> list[Missed]:
        """By releases of the samples as they are."""
        return [Missed(Runs.of(each.values, each.weights), self._targets) for each in self._samples]

    @cached_property
    def _ordered(self) -> list[CountedOrder]:
        """The samples in order, on the lattice without a prior."""
        grid = dataclasses.replace(self._grid.even, bits=0)
        runs = [Runs.of(grid.encode(each.values), each.weights) for each in self._samples]
        return [CountedOrder(each.values, each.weights, grid, self._bounds) for each in runs]

    @cached_property
    def _dithered(self) -> list[CountedOrder]:
        """The same with dithers, in order: so each near a level has a place of its own."""
        grid, rng, made = self._grid, public_rng(1), []
        for sample in self._samples:
            points = grid.encode(sample.values)
            dither = ordered_shares(points, sample.weights, rng) * float(1 << grid.bits)
            fine = (points << grid.bits) + dither.astype(np.int64)
            runs = Runs.of(grid.spread(fine), sample.weights)
            made.append(CountedOrder(runs.values, runs.weights, grid, self._bounds))
        return made

    @property
    def _bounds(self) -> tuple[float, float]:
        return self._grid.low, self._grid.high

    def _outcomes(
        self, draw: Callable[[int, np.random.Generator], NDArray[np.float64]]
    ) -> list[Outcomes]:
        """Errors of what ``draw(i, rng)`` releases of sample i."""
        rng = public_rng(2)
        return Outcomes.of_each([each.by(draw(i, rng)) for i, each in enumerate(self._missed)])

    def _of_paths(self, rate: float) -> list[Outcomes]:
        """JointExp."""
        q, grid = self._settings.levels.values, self._grid
        return self._outcomes(
            lambda i, rng: grid.decode(
                grid.points_of(PathLaw(self._dithered[i], q, rate).draw(rng, self._drawn))
            )
        )

    def _by_joint_exp(self, epsilon: float) -> list[Outcomes]:
        levels = self._settings.levels
        calibration = privacy.joint_exp.calibrate(levels, epsilon=epsilon, **self._person)
        return self._of_paths(calibration.rate)

    def _by_approx_quantiles(self, epsilon: float) -> list[Outcomes]:
        settings, levels = self._settings, Levels(self._settings.levels.values)
        calibration = privacy.approx_quantiles.calibrate(levels, epsilon=epsilon, **self._person)
        # It knows the lattice; the records are in the order.
        empty = Sample.of(
            [],
            settings.bounds,
            resolution=settings.resolution,
            dither=settings.dither,
            prior=self._prior,
        )

        def draw(i: int, rng: np.random.Generator) -> NDArray[np.float64]:
            law = ApproxQuantilesLaw(empty, levels, self._dithered[i], calibration.steps)
            drawn: NDArray[np.float64] = law.sample(rng, self._drawn)
            return drawn

        return self._outcomes(draw)

    def _by_agg_tree(self, epsilon: float) -> list[Outcomes]:
        settings, grid = self._settings, self._settings.lattice
        assert grid is not None
        calibration = privacy.agg_tree.calibrate(
            epsilon=epsilon, points=grid.points, expected_n=self._expected_n, **self._person
        )
        most = calibration.branching**calibration.height
        leaves = Leaves.of((grid.low, grid.high), grid, most)
        shares = self._guess.below(grid.least(leaves.starts[1:-1]))
        counts = np.zeros((self._count, most), dtype=np.int64)
        for own, sample in zip(counts, self._samples, strict=True):
            own[: leaves.size] = np.diff(sample.counts_below(shares), prepend=0, append=self._n)
        known = calibration.relation.n_is_public and settings.public_by is None
        known = known and settings.kept is None
        trees = Trees(calibration, leaves, self._n if known else None)
        drawn = trees.quantiles(counts, self._draws, settings.levels.values, public_rng(2))
        return self._outcomes(lambda i, _: drawn[i])

    def _by_ind_exp(self, epsilon: float) -> list[Outcomes]:
        levels, grid = self._settings.levels, self._grid
        spent = privacy.ind_exp.calibrate(levels, epsilon=epsilon, **self._person)
        flip = spent.selection == privacy.ind_exp.FLIP
        singles = list(zip(levels.values.tolist(), spent.rates.tolist(), strict=True))
        if levels.m == 1:
            return self._of_one(spent.rates[0], flip)

        def draw(i: int, rng: np.random.Generator) -> NDArray[np.float64]:
            laws = (DepthLaw(self._ordered[i], *one, flip, masses=grid.masses) for one in singles)
            drawn = [law.draw(rng, self._drawn) for law in laws]
            return grid.decode(np.sort(np.concatenate(drawn, axis=1), axis=1))

        return self._outcomes(draw)

    def _of_one(self, rate: float, flip: bool) -> list[Outcomes]:
        """One level, by depth."""
        level, grid = float(self._settings.levels.values[0]), self._grid
        parts = PARTS if self._settings.has_values else 1
        laws = (
            DepthLaw(order, level, float(rate), flip, masses=grid.masses) for order in self._ordered
        )
        return [
            _exactly(law, grid, missed, parts)
            for law, missed in zip(laws, self._missed, strict=True)
        ]

    def _by_two_stage(self, epsilon: float) -> list[Outcomes]:
        settings = self._settings
        levels = Levels(settings.levels.values)

        def draw(i: int, rng: np.random.Generator) -> NDArray[np.float64]:
            sample = self._samples[i]
            law = two_stage_law(
                sample.values,
                levels,
                epsilon=epsilon,
                bounds=settings.bounds,
                resolution=settings.resolution,
                prior=settings.prior,
                counts=sample.weights,
                expected_n=self._expected_n,
                dither_rng=rng,
                **self._person,
            )
            drawn: NDArray[np.float64] = law.given(law.pilot.sample(rng)).sample(rng, self._drawn)
            return drawn

        return self._outcomes(draw)

    def _by_unbounded_quantile(self, epsilon: float) -> list[Outcomes]:
        settings = self._settings
        levels = Levels(settings.levels.values)
        ends = unbounded_ends(settings.bounds, settings.resolution, settings.dither, None, False)

        def draw(i: int, rng: np.random.Generator) -> NDArray[np.float64]:
            sample = self._samples[i]
            law = unbounded_quantile_law(
                sample.values,
                levels,
                epsilon=epsilon,
                counts=sample.weights,
                **ends,
                **self._person,
            )
            drawn: NDArray[np.float64] = law.sample(rng, self._drawn)
            return drawn

        return self._outcomes(draw)


def _exactly(law: DepthLaw, lattice: Lattice, missed: Missed, parts: int) -> Outcomes:
    """The errors of all outputs of one level, with their probabilities."""
    cells, probability = law.cell_probabilities(CROWD)
    kept = probability > NEGLIGIBLE
    cells, probability = cells.where(kept), probability[kept] / probability[kept].sum()
    share = (np.arange(parts) + 0.5) / parts
    points = np.floor(cells.start[:, None] + 1.0 + cells.points[:, None] * share)
    outputs = lattice.decode(points.astype(np.int64).reshape(-1, 1))
    both = np.concatenate(missed.by(outputs), axis=1)
    return Outcomes(both, both, np.repeat(probability / parts, parts))
