"""Two stages: a pilot asks where records lie, and the release goes by what it said."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks, privacy
from dpq_fast._arguments import in_our_words
from dpq_fast._prepared import Prepared, about_persons, releases
from dpq_fast.data.lattice import LARGEST, Lattice, default_step
from dpq_fast.data.prior import Masses
from dpq_fast.data.sample import Reader, Sample
from dpq_fast.data.shares import Learning, Shares, learned, round_between
from dpq_fast.data.units import DURATIONS, INSTANTS
from dpq_fast.laws.joint.path import likely_reach, likely_reaches
from dpq_fast.mechanisms import ind_exp, joint_exp
from dpq_fast.mechanisms._calls import with_options
from dpq_fast.mechanisms.agg_tree import PartialTree, noised
from dpq_fast.mechanisms.ind_exp import IndExpLaw
from dpq_fast.mechanisms.intervals import with_interval
from dpq_fast.mechanisms.joint_exp import JointExpLaw
from dpq_fast.noise.rng import child, default_rng, seeds_of
from dpq_fast.privacy.intervals import Request
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.relations import relation_of
from dpq_fast.released.agg_tree import AggTree

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from dpq_fast.mechanisms._calls import ColumnOptions

# What is made of a pilot's answers: leaves of a tree are to be everywhere, if few; answers of
# exponential mechanisms are to stay near, if levels are near an end.
FOR_TREES = Learning(base=0.05, answer=0.03, beside=0.4, reach=0.6, power=2.0)
FOR_ANSWERS = Learning(base=0.005, answer=0.03, beside=0.2, reach=4.0, power=3.0)

# Round numbers of the answers' scale, which many records may share, get leaves of their own: up to
# this part of all, where there are so many; and for that each gets so many times a leaf's mass.
ROUND, MANY_LEAVES, TIED = 0.15, 64, 1.7
# Without leaves they are so many, with this part of the mass.
ROUND_NUMBERS, SHARED = 300, 0.2


class OfTree:
    """Quantiles that are read off a tree, as a law: of its noise.

    Parameters
    ----------
    column : Sample
    levels : Levels
    spent : privacy.agg_tree.Calibration
    rows : int or None
        A public number that there are no more records than.
    """

    def __init__(
        self,
        column: Sample,
        levels: Levels,
        spent: privacy.agg_tree.Calibration,
        rows: int | None,
    ) -> None:
        self.column = column
        self._levels = levels
        self._spent = spent
        self._rows = rows

    @property
    def lattice(self) -> Lattice | None:
        """The points of outputs, with the prior."""
        return self.column.lattice

    @cached_property
    def counts(self) -> PartialTree:
        """Exact counts of leaves. Private."""
        return PartialTree.reader(
            self.column,
            bounds=None,
            height=self._spent.height,
            branching=self._spent.branching,
            resolution=None,
            prior=None,
            counts=None,
            nan_policy="omit",
            workers=1,
        )()

    def tree(self, rng: np.random.Generator) -> AggTree:
        """Draw the tree."""
        spent = self._spent
        return noised(self.counts, spent.noise, spent.relation, True, rng, self._rows)

    def sample(self, rng: Any = None, size: int | None = None) -> Any:
        """Draw outputs, as of `SampleLaw.sample`."""
        generator, q = default_rng(rng), self._levels.values
        draws = np.empty((_checks.check_size(size), q.size))
        for draw in draws:
            draw[:] = self.tree(generator).quantile(q)
        return self._levels.restore(draws[0] if size is None else draws)


class TwoStageLaw:
    """The laws of both stages on one sample. Not a release: see `two_stage_law`.

    Attributes
    ----------
    spent : privacy.two_stage.Calibration
    pilot : JointExpLaw
        The law of the pilot's answers.
    """

    def __init__(
        self,
        read: Reader,
        levels: Levels,
        spent: privacy.two_stage.Calibration,
        place: Place,
        rows: int | None,
        dither_rng: Any,
    ) -> None:
        self.spent = spent
        self._read = read
        self._likely = _likely(levels, spent)
        self._column = read(*self._likely)
        self._levels = levels
        self._place = place
        self._rows = rows
        self._dither_rng = dither_rng
        q, rate = spent.design.levels, spent.pilot.rate
        self.pilot = joint_exp.law_of(self._column.on(place.lattice), q, rate, "scan", dither_rng)

    def given(self, answers: Any, dither_rng: Any = None) -> IndExpLaw | JointExpLaw | OfTree:
        """The law of the second stage, given the pilot's answers.

        Parameters
        ----------
        answers : array_like of float, shape (k,)
            Those of the pilot, as it gives them.
        dither_rng : None, int, SeedSequence, BitGenerator or Generator, optional
            Source of the dither. Default: that of the pilot's.
        """
        dither_rng = self._dither_rng if dither_rng is None else dither_rng
        q, spent = self.spent.design.levels.values, self.spent.main
        lattice = self._place.after(np.asarray(answers), q, self.spent.leaves)
        if self._place.fixed:
            column = self._column.on(lattice)
        else:  # cells of records know the points that they were cut for
            column = self._read.on(lattice)(*self._likely)
        if isinstance(spent, privacy.ind_exp.Calibration):
            return ind_exp.law_of(column, self._levels, spent)
        if isinstance(spent, privacy.joint_exp.Calibration):
            return joint_exp.law_of(column, self._levels, spent.rate, "scan", dither_rng)
        assert isinstance(spent, privacy.agg_tree.Calibration)
        return OfTree(column.undithered(), self._levels, spent, self._rows)

    def sample(self, rng: Any = None) -> Any:
        """Draw an output: a pilot, and what follows."""
        generator = default_rng(rng)
        return self.given(self.pilot.sample(generator)).sample(generator)


class Place(NamedTuple):
    """Where a release lies: its lattice and prior, before and after the pilot. Public.

    Attributes
    ----------
    lattice : Lattice
        Of the pilot, with its prior.
    given : Masses or None
        A prior of the caller's.
    fixed : bool
        Whether the second stage has the points of the pilot.
    """

    lattice: Lattice
    given: Masses | None
    fixed: bool

    @classmethod
    def of(cls, lattice: Lattice, x: Any, prior: Any, resolution: Any) -> Place:
        """Of the arguments of a call, of which `lattice` was made."""
        own = isinstance(x, Sample)
        given = lattice.masses if own or prior is not None else None
        fixed = own or prior is not None or resolution is not None
        if lattice.masses is None:
            lattice = lattice.weighed(lattice.scale_free)
        return cls(lattice, given, fixed)

    @property
    def known_points(self) -> int | None:
        """How many points the second stage has, as far as that is known before the pilot."""
        return self.lattice.points if self.fixed else None

    def after(self, answers: NDArray[np.float64], q: NDArray[np.float64], leaves: int) -> Lattice:
        """The lattice and prior of the second stage, by what the pilot released.

        Parameters
        ----------
        answers, q : ndarray of float64, shape (k,)
            The pilot's answers and their levels, both ascending.
        leaves : int
            Of the tree that the second stage is; 0 where it is none.
        """
        own = self.lattice
        if not self.fixed:
            # beyond float64, where bounds are as wide as they may be
            apart = min(float(answers[-1] - answers[0]) / float(q[-1] - q[0]), LARGEST)
            step = max(default_step(apart or own.high - own.low), own.step)
            chosen = Lattice.of((own.low, own.high), step, False)
            assert chosen is not None  # its step is not 0
            own = chosen
        base = own.no_scale if self.given is None else Shares.of_masses(self.given)
        how = FOR_TREES if leaves else FOR_ANSWERS
        points = own.encode(answers)
        if 0 < leaves < MANY_LEAVES:
            return own.weighed(learned(points, q, base, own.points, how))
        half = int(points[-1] - points[0]) // 2
        least = max(int(points[0]) - half, 0) + own.first
        most = min(int(points[-1]) + half, own.points - 1) + own.first
        found = round_between(least, most, int(leaves * ROUND) or ROUND_NUMBERS) - own.first
        ties, tied = Shares.at(found), TIED * found.size / leaves if leaves else SHARED
        return own.weighed(learned(points, q, base, own.points, how, ties, tied))


@releases(INSTANTS, DURATIONS)
@with_options(Sample.reader)
def two_stage(
    x: Any,
    q: Any,
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    neighbors: str = "swap",
    max_contributions: int = 1,
    expected_n: int | None = None,
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
    confidence: float | None = None,
    covers: str = "sample",
    interval_share: float | None = None,
    **column: Unpack[ColumnOptions],
) -> Prepared[Any]:
    r"""Release quantiles where neither scale nor ties nor tails are known.

    A part of the budget buys a few quantiles of the records, the *pilot*. They are released, so
    what is made of them is public: a lattice of their scale and a prior, by which the rest of the
    budget answers.

    Parameters
    ----------
    x : array_like of real numbers, shape (n,)
        Private sample, as in `joint_exp`.
    q : float or array_like of float
        Levels in [0, 1], any order and shape, at least one; duplicates are released once. Public.
    epsilon : float
        Budget of both stages, positive and finite. Public. Exactly one of `epsilon` and `rho`.
    rho : float, optional
        zCDP budget instead of `epsilon`. Public.
    bounds : (float, float)
        Finite low < high, chosen without looking at `x`; they may be far wider than the records.
        Public. Left out only for a `Sample`.
    neighbors : {"swap", "add-remove"}, default "swap"
        "swap" replaces one record, n is public; "add-remove" adds or deletes one.
    resolution : float, optional
        Spacing of the lattice of outputs, in the unit of `x`, not 0. Default: a power of ten, about
        10^-6 of how far the pilot's answers are apart. Public.
    prior : "uniform", "log", "scale-free", distribution, functions or mixture, optional
        What the pilot begins with, and a small part of what the second stage goes by. Default:
        "scale-free". Public.
    counts, assume_sorted, nan_policy, workers
        As in `joint_exp`.
    dither : bool, optional
        Left out: the stages know what to do with ties.
    privacy_unit, contributions : optional
        Ids of persons, as in `quantile`: the guarantee is about whole persons.
    max_contributions : int, default 1
        Up to this many records per person: the guarantee is per person.
    expected_n : int, optional
        About how many records there are, chosen without looking at `x`: what the budget is split
        by. Default: under "swap" the number of rows, which is public there; else 10,000. Public.
    accountant : Accountant, optional
        Charged once with ``guarantee("two_stage", q=q, ...)``; refuses before `x` is touched.
    rng : None, int, SeedSequence, BitGenerator or Generator, optional
        As in `joint_exp`.
    confidence, covers, interval_share : optional
        For an interval, as in `quantile`. Public.

    Returns
    -------
    float, ndarray of float64 or Estimate
        In the shape of `q`, non-decreasing in `q`, on the lattice inside `bounds`, in the unit of
        `x`.

    Raises
    ------
    TypeError
        If `x` or an argument is not of the type its rule above asks for.
    ValueError
        If a public argument breaks its rule, or `x` or `counts` its form (`Sample.of`).
    BudgetExceeded
        If `accountant` has too little left.

    See Also
    --------
    joint_exp : One stage, which is better where bounds are good and levels few.
    quantile : Takes two stages where they are expected to be better.
    quantile_by : Of each group, by its own pilot.

    Notes
    -----
    **Mechanism.** The pilot is `joint_exp` of two to five levels, by a prior that knows no scale
    (`dpq_fast.data.shares`). Its answers make a prior: the mass between two of their levels lies
    between the two answers, partly near them; beyond the outermost it falls with the distance; some
    is at each answer and at round numbers around them, where many records may be tied, and little
    is where the pilot began. Then one level is drawn by `ind_exp`, a few by `joint_exp`, and many
    are read off a tree of noisy counts of leaves of equal mass. Which of these, the levels of the
    pilot and its part of the budget, 1 to 40%, follow from the number of levels and from n epsilon
    (`privacy.two_stage.design_of`).

    **Privacy.** Pure `epsilon`-DP under `neighbors`, or `rho`-zCDP, by adaptive composition of two
    releases; proof: `privacy.two_stage`. The pilot's answers are paid for. Not covered: running
    time and memory.

    **Cost.** That of the pilot and of the second stage. Records are read and put in order for each
    of them, but once for both where a `resolution` or a `prior` is given, or a `Sample`. A column
    of a `Table` takes one round more than `joint_exp`: cells are counted once, and the pilot and
    what goes by its answers read records, or count leaves, one after the other.

    Examples
    --------
    >>> import numpy as np
    >>> latencies = np.random.default_rng(0).lognormal(4.6, 0.8, size=1_000)
    >>> p99 = two_stage(latencies, 0.99, epsilon=1.0, bounds=(1, 100_000))
    >>> bool(100 < p99 < 100_000)
    True
    """
    levels = Levels.of(q)
    read, place = reader(x, column)
    counts = column.get("counts")
    rows = _checks.public_rows(x, counts, relation_of(neighbors).n_is_public)
    told = _told(rows, expected_n)

    def value_of(*, epsilon: float | None, rho: float | None, **_: Any) -> Any:
        spent = privacy.two_stage.calibrate(
            levels,
            epsilon=epsilon,
            rho=rho,
            neighbors=neighbors,
            max_contributions=max_contributions,
            expected_n=told,
            points=place.known_points,
        )
        return spent, lambda rng: _after_pilot(read, levels, spent, place, rows, rng)

    request = Request.of(confidence, covers, interval_share)
    return with_interval(
        value_of,
        levels,
        request,
        x=x,
        epsilon=epsilon,
        rho=rho,
        neighbors=neighbors,
        max_contributions=max_contributions,
        counts=counts,
        expected_n=None if request is None else told,
    )


@in_our_words
@about_persons()
@with_options(Sample.reader)
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
    **column: Unpack[ColumnOptions],
) -> TwoStageLaw:
    """The laws of both stages of `two_stage`. Not a release: for audits and research.

    Everything but `dither_rng` is as in `two_stage`.

    Parameters
    ----------
    dither_rng : None, int, SeedSequence, BitGenerator or Generator, optional
        Source of the dithers that the laws are conditional on.

    Returns
    -------
    TwoStageLaw
        ``pilot``, the law of the pilot, ``given(answers)``, that of the second stage, and
        ``sample(rng)``.

    Examples
    --------
    >>> law = two_stage_law([1, 2, 2, 5], 0.5, epsilon=1.0, bounds=(0, 9), resolution=1)
    >>> law.given([1.0, 3.0]).log_prob(2.0) < 0.0
    True
    """
    levels = Levels.of(q)
    read, place = reader(x, column)
    rows = _checks.public_rows(x, column.get("counts"), relation_of(neighbors).n_is_public)
    spent = privacy.two_stage.calibrate(
        levels,
        epsilon=epsilon,
        rho=rho,
        neighbors=neighbors,
        max_contributions=max_contributions,
        expected_n=_told(rows, expected_n),
        points=place.known_points,
    )
    return TwoStageLaw(read, levels, spent, place, rows, dither_rng)


def _told(rows: int | None, expected_n: int | None) -> int | None:
    """About how many records there are: what is said, else the rows, as far as they are public."""
    return rows if expected_n is None else _checks.check_count("expected_n", expected_n)


def tree_of(
    x: Any, column: ColumnOptions, spent: privacy.two_stage.Calibration
) -> Callable[[np.random.Generator], OfTree]:
    """What reads the records, draws the pilot, and gives the law of the tree that follows it."""
    read, place = reader(x, column)

    def law_of(rng: np.random.Generator) -> OfTree:
        found = _after_pilot(read, spent.design.levels, spent, place, None, rng)
        assert isinstance(found, OfTree)
        return found

    return law_of


def _after_pilot(
    read: Reader,
    levels: Levels,
    spent: privacy.two_stage.Calibration,
    place: Place,
    rows: int | None,
    rng: np.random.Generator,
) -> IndExpLaw | JointExpLaw | OfTree:
    """Draw a pilot; the law of what follows.

    The pilot has a generator of its own: how many of the caller's random words are left does not
    follow from how the records are read.
    """
    own = child(seeds_of(rng, 1), 0)
    law = TwoStageLaw(read, levels, spent, place, rows, own)
    return law.given(law.pilot.sample(own), rng)


def reader(x: Any, column: ColumnOptions) -> tuple[Reader, Place]:
    """What reads the records, and where they lie; all that is public about them is checked here."""
    ind_exp.no_dither(column.get("dither"), "two_stage")
    prior, resolution = column.get("prior"), column.get("resolution")
    if prior is None and not isinstance(x, Sample):
        prior = _checks.SCALE_FREE
    if resolution is not None and _checks.check_nonnegative("resolution", resolution) == 0.0:
        raise ValueError("resolution must be positive for two_stage, got 0.0")
    own: ColumnOptions = {**column, "dither": None, "prior": prior}
    read = Sample.reader(x, **own)
    if read.lattice is None:
        raise ValueError("a Sample must have a lattice for two_stage, got one with resolution=0")
    return read, Place.of(read.lattice, x, column.get("prior"), resolution)


def _likely(
    levels: Levels, spent: privacy.two_stage.Calibration
) -> tuple[NDArray[np.float64], Callable[[int], float]]:
    """Levels that records are read around, and how many ranks around them, of so many records."""
    pilot, main = spent.design.levels, spent.main

    def around(n: int) -> float:
        reach = likely_reach(n, pilot.m, spent.pilot.rate)
        if isinstance(main, privacy.ind_exp.Calibration):
            return max(reach, likely_reaches(n, main.rates))
        if isinstance(main, privacy.joint_exp.Calibration):
            return max(reach, likely_reach(n, levels.m, main.rate))
        return reach

    return pilot.values if spent.leaves else np.union1d(pilot.values, levels.values), around
