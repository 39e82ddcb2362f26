"""Two stages: JointExp for a few levels, and what follows by the prior that its answers make.

Budgets, levels of the pilot and what follows are those of `privacy.two_stage`; the prior is that of
`dpq_fast.data.shares`, here in `reference.shares`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast import privacy
from dpq_fast._checks import SCALE_FREE, check_count, check_nonnegative, check_size, public_rows
from dpq_fast.privacy.intervals import Request
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.relations import relation_of
from dpq_fast.reference._calls import default_rng, with_options
from dpq_fast.reference.agg_tree import AggTree, Leaves, exact_counts
from dpq_fast.reference.ind_exp import IndExpLaw, no_dither
from dpq_fast.reference.intervals import Column, released
from dpq_fast.reference.joint_exp import JointExpLaw
from dpq_fast.reference.lattice import DIGITS, LARGEST, Lattice
from dpq_fast.reference.noise import discrete_gaussian, discrete_laplace
from dpq_fast.reference.prior import Masses
from dpq_fast.reference.sample import check_form, kept_records, placed, reader
from dpq_fast.reference.shares import (
    Learning,
    learned,
    no_scale,
    of_masses,
    only,
    round_between,
)

FOR_TREES = Learning(base=0.05, answer=0.03, beside=0.4, reach=0.6, power=2.0)
FOR_ANSWERS = Learning(base=0.005, answer=0.03, beside=0.2, reach=4.0, power=3.0)
# Of many leaves up to such a part is for round numbers, of which each has so much of a leaf.
ROUND, MANY_LEAVES, TIED = 0.15, 64, 1.7
# Where there are no leaves: how many round numbers have what part of the mass.
ROUND_NUMBERS, SHARED = 300, 0.2


class OfTree:
    """Quantiles of a tree of noisy counts.

    Parameters
    ----------
    records : ndarray of float64
    lattice : Lattice
    levels : Levels
    spent : privacy.agg_tree.Calibration
    total : int or None
        How many records there are, where that is public.
    most : int or None
        A public number that there are no more than.
    """

    def __init__(
        self,
        records: NDArray[np.float64],
        lattice: Lattice,
        levels: Levels,
        spent: privacy.agg_tree.Calibration,
        total: int | None,
        most: int | None,
    ) -> None:
        self.levels = levels
        self.spent = spent
        bounds, height, branching = (lattice.low, lattice.high), spent.height, spent.branching
        leaves = Leaves(bounds, lattice, branching**height).counts(records)
        self.exact = exact_counts(leaves, height, branching)
        self.public = dict[str, Any](total=total, most=most, lattice=lattice)

    def sample(self, rng: Any = None, size: int | None = None) -> Any:
        """Draw outputs, as `Law.sample`."""
        rng = default_rng(rng)
        draws = [self._draw(rng) for _ in range(check_size(size))]
        return self.levels.restore(draws[0] if size is None else np.array(draws))

    def _draw(self, rng: np.random.Generator) -> NDArray[np.float64]:
        noise = self.spent.noise
        draw = discrete_gaussian if self.spent.rho is not None else discrete_laplace
        nodes: dict[tuple[int, int], float] = {
            node: count + draw(noise.scale, rng=rng) for node, count in self.exact.items()
        }
        lattice: Lattice = self.public["lattice"]
        deviation = math.sqrt(noise.variance)
        tree = AggTree(nodes, (lattice.low, lattice.high), deviation=deviation, **self.public)
        answers: NDArray[np.float64] = tree.quantile(self.levels.values)
        return answers


class Call(NamedTuple):
    """What is public about the records of a call.

    Attributes
    ----------
    x, counts, nan_policy
        As they were given.
    lattice : Lattice
        Of the pilot.
    given : Masses or None
        A prior of the caller's.
    fixed : bool
        Whether the lattice is that of the release, too.
    """

    x: Any
    counts: Any
    nan_policy: str
    lattice: Lattice
    given: Masses | None
    fixed: bool

    @classmethod
    def of(cls, x: Any, column: dict[str, Any]) -> Call:
        """All that is public is checked."""
        no_dither(column.get("dither"), "two_stage")
        resolution, prior = column.get("resolution"), column.get("prior")
        if resolution is not None and check_nonnegative("resolution", resolution) == 0.0:
            raise ValueError("resolution must be positive for two_stage, got 0.0")
        column = column | {"dither": None, "prior": SCALE_FREE if prior is None else prior}
        reader(x, **column)
        counts, nan_policy = column.get("counts"), column.get("nan_policy", "omit")
        form = column.get("bounds"), resolution, None, nan_policy, column["prior"], counts
        _, lattice = check_form(x, *form)
        assert lattice is not None
        given = None if prior is None else lattice.masses
        fixed = prior is not None or resolution is not None
        if lattice.masses is None:
            lattice = lattice.weighed(lattice.scale_free)
        return cls(x, counts, nan_policy, lattice, given, fixed)

    @property
    def points(self) -> int | None:
        """How many lattice points a release has, as far as that is known before."""
        return self.lattice.points if self.fixed else None

    def records(self) -> NDArray[np.float64]:
        """Those that are kept."""
        return kept_records(self.x, self.counts, self.nan_policy)

    def after(self, answers: list[float], q: list[float], leaves: int) -> Lattice:
        """The lattice of the second stage, with the prior that the answers make.

        `leaves` are those of a tree, 0 where there is none.
        """
        own = self.lattice
        bounds = own.low, own.high
        if not self.fixed:
            apart = (answers[-1] - answers[0]) / (q[-1] - q[0]) or own.high - own.low
            apart = min(apart, LARGEST)
            step = max(float(f"1e{round(math.log10(apart)) - DIGITS}"), own.step)
            coarser = Lattice.of(bounds, step, False)
            assert coarser is not None
            own = coarser
        base = no_scale(own.points, own.first) if self.given is None else of_masses(self.given)
        points = [own.nearest(answer) for answer in answers]
        how = FOR_TREES if leaves else FOR_ANSWERS
        if 0 < leaves < MANY_LEAVES:
            return own.weighed(learned(points, q, base, own.points, how))
        half = (points[-1] - points[0]) // 2
        low, high = max(points[0] - half, 0), min(points[-1] + half, own.points - 1)
        most = int(leaves * ROUND) if leaves else ROUND_NUMBERS
        numbers = round_between(low + own.first, high + own.first, most)
        ties = only([number - own.first for number in numbers])
        tied = TIED * len(numbers) / leaves if leaves else SHARED
        return own.weighed(learned(points, q, base, own.points, how, ties, tied))


class TwoStageLaw:
    """The laws of both stages.

    Attributes
    ----------
    pilot : JointExpLaw
    """

    def __init__(
        self, call: Call, levels: Levels, spent: privacy.two_stage.Calibration, dither_rng: Any
    ) -> None:
        self.call = call
        self.levels = levels
        self.spent = spent
        self.dither_rng = dither_rng
        self.records = call.records()
        data = self._placed(call.lattice, dither_rng).intervals()
        self.pilot = JointExpLaw(data, spent.design.levels, spent.pilot.rate)

    def _placed(self, lattice: Lattice, dither_rng: Any) -> Any:
        return placed(self.records, (lattice.low, lattice.high), lattice, dither_rng)

    def after(self, answers: Any) -> Lattice:
        """The lattice of the second stage."""
        design = self.spent.design
        given = np.asarray(answers, dtype=np.float64).tolist()
        main, leaves = self.spent.main, 0
        if isinstance(main, privacy.agg_tree.Calibration):
            leaves = main.branching**main.height
        return self.call.after(given, design.levels.values.tolist(), leaves)

    def given(self, answers: Any) -> JointExpLaw | IndExpLaw | OfTree:
        """The law of the second stage, given the pilot's answers."""
        lattice, main = self.after(answers), self.spent.main
        if isinstance(main, privacy.joint_exp.Calibration):
            data = self._placed(lattice, self.dither_rng).intervals()
            return JointExpLaw(data, self.levels, main.rate)
        if isinstance(main, privacy.ind_exp.Calibration):
            data = self._placed(undithered(lattice), None).even().intervals()
            return IndExpLaw(data, self.levels, main.rates, main.selection, lattice.masses)
        assert isinstance(main, privacy.agg_tree.Calibration)
        call, relation = self.call, self.spent.relation
        known = relation.n_is_public and call.nan_policy == "raise"
        return OfTree(
            self.records,
            lattice,
            self.levels,
            main,
            self.records.size if known else None,
            public_rows(call.x, call.counts, relation.n_is_public),
        )

    def column(self, lattice: Lattice) -> Column:
        """The records that an interval is about."""
        return Column.of(self._placed(undithered(lattice), None))

    def sample(self, rng: Any = None) -> Any:
        """Draw an output."""
        rng = default_rng(rng)
        return self.given(self.pilot.sample(rng)).sample(rng)


def undithered(lattice: Lattice) -> Lattice:
    """The same points and masses without dither bits."""
    return replace(lattice, bits=0)


@with_options(reader)
def two_stage_law(
    x: Any,
    q: Any,
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
    expected_n: int | None = None,
    dither_rng: Any = None,
    **column: Any,
) -> TwoStageLaw:
    """The laws of both stages of `two_stage`. Not a release: for audits and tests.

    Parameters
    ----------
    x, q, epsilon, rho, bounds, neighbors, resolution, dither, prior, counts, assume_sorted, \
nan_policy, max_contributions, expected_n
        As in `two_stage`.
    dither_rng : None, int, SeedSequence, BitGenerator or Generator, optional
        Where the dithers that the laws are conditional on come from.

    Returns
    -------
    TwoStageLaw
    """
    levels = Levels(q)
    call = Call.of(x, column)
    budget = dict[str, Any](epsilon=epsilon, rho=rho)
    told = told_n(call, neighbors, expected_n)
    person = dict[str, Any](neighbors=neighbors, max_contributions=max_contributions)
    spent = privacy.two_stage.calibrate(
        levels, **budget, **person, expected_n=told, points=call.points
    )
    return TwoStageLaw(call, levels, spent, dither_rng)


@with_options(reader)
def two_stage(
    x: Any,
    q: Any,
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
    expected_n: int | None = None,
    accountant: Any = None,
    rng: Any = None,
    confidence: float | None = None,
    covers: str = "sample",
    interval_share: float | None = None,
    **column: Any,
) -> Any:
    """Release quantiles by what a pilot says.

    The law is that of `dpq_fast.two_stage`, whose docstring has every rule in full.

    Parameters
    ----------
    x, q
        As in `joint_exp`.
    epsilon, rho : float
        Budget of both stages. Public.
    bounds, neighbors
        As in `joint_exp`.
    resolution : float, optional
        Spacing of the lattice of outputs, not 0; by default, by what the pilot says.
    prior : optional
        What the pilot begins with; by default "scale-free".
    dither : bool, optional
        False or left out.
    counts, assume_sorted, nan_policy, max_contributions
        As in `joint_exp`.
    expected_n : int, optional
        About how many records there are, where that is not public.
    accountant, rng
        As in `joint_exp`.
    confidence, covers, interval_share : optional
        For an interval, as in `dpq_fast.quantile`.

    Returns
    -------
    float, ndarray of float64 or Estimate
        In q's shape and the unit of `x`, inside `bounds`, non-decreasing in `q`.
    """
    levels = Levels(q)
    call = Call.of(x, column)
    told = told_n(call, neighbors, expected_n)
    person = dict[str, Any](neighbors=neighbors, max_contributions=max_contributions)
    columns: list[Column] = []

    def value_of(*, epsilon: float | None, rho: float | None, **_: Any) -> Any:
        spent = privacy.two_stage.calibrate(
            levels, epsilon=epsilon, rho=rho, **person, expected_n=told, points=call.points
        )

        def law_of(rng: np.random.Generator) -> Any:
            law = TwoStageLaw(call, levels, spent, rng)
            answers = law.pilot.sample(rng)
            columns.append(law.column(law.after(answers)))
            return law.given(answers)

        return spent, law_of

    request = Request.of(confidence, covers, interval_share)
    return released(
        value_of,
        levels,
        request,
        lambda: columns[-1],
        x=x,
        counts=call.counts,
        epsilon=epsilon,
        rho=rho,
        expected_n=None if request is None else told,
        accountant=accountant,
        rng=rng,
        **person,
    )


def told_n(call: Call, neighbors: str, expected_n: int | None) -> int | None:
    """About how many records there are, by what is public."""
    if expected_n is not None:
        return check_count("expected_n", expected_n)
    return public_rows(call.x, call.counts, relation_of(neighbors).n_is_public)
