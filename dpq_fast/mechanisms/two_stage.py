"""Two stages: a pilot asks where records lie, and the release goes by what it said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks, privacy
from dpq_fast._prepared import Prepared, releases
from dpq_fast.data.lattice import Lattice, default_step
from dpq_fast.data.prior import Masses
from dpq_fast.data.sample import Sample
from dpq_fast.data.shares import Learning, Shares, learned
from dpq_fast.data.units import DURATIONS, INSTANTS
from dpq_fast.mechanisms import ind_exp, joint_exp
from dpq_fast.mechanisms._calls import Drawable, with_options
from dpq_fast.mechanisms.agg_tree import PartialTree, noised
from dpq_fast.mechanisms.intervals import with_interval
from dpq_fast.privacy.intervals import Request
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.relations import relation_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from dpq_fast.mechanisms._calls import ColumnOptions

# What is made of a pilot's answers: leaves of a tree are to be everywhere, if few; answers of
# exponential mechanisms are to stay near, if levels are near an end.
FOR_TREES = Learning(base=0.05, answer=0.03, beside=0.2, reach=0.6, power=2.0)
FOR_ANSWERS = Learning(base=0.005, answer=0.03, beside=0.2, reach=4.0, power=3.0)


class SecondStage(NamedTuple):
    """What the second stage draws from, given the pilot's answers. Private."""

    column: Sample
    law: Drawable

    def sample(self, rng: np.random.Generator) -> Any:
        """The answers."""
        return self.law.sample(rng)


class OfTree(NamedTuple):
    """Quantiles that are read off a tree."""

    column: Sample
    levels: Levels
    spent: privacy.agg_tree.Calibration
    rows: int | None

    def sample(self, rng: np.random.Generator) -> Any:
        """The answers."""
        read = PartialTree.reader(
            self.column,
            bounds=None,
            height=self.spent.height,
            branching=self.spent.branching,
            resolution=None,
            prior=None,
            counts=None,
            nan_policy="omit",
            workers=1,
        )
        tree = noised(read(), self.spent.noise, self.spent.relation, True, rng, self.rows)
        return self.levels.restore(tree.quantile(self.levels.values))


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

    Notes
    -----
    **Mechanism.** The pilot is `joint_exp` of two to five levels, by a prior that knows no scale
    (`dpq_fast.data.shares`). Its answers make a prior: the mass between two of their levels lies
    between the two answers, partly near them; beyond the outermost it falls with the distance; some
    is at each answer, where many records may be tied, and little is where the pilot began. Then one
    level is drawn by `ind_exp`, a few by `joint_exp`, and many are read off a tree of noisy counts
    of leaves of equal mass. Which of these, the levels of the pilot and its part of the budget, 1
    to 40%, follow from the number of levels and from n epsilon (`privacy.two_stage.design_of`).

    **Privacy.** Pure `epsilon`-DP under `neighbors`, or `rho`-zCDP, by adaptive composition of two
    releases; proof: `privacy.two_stage`. The pilot's answers are paid for. Not covered: running
    time and memory.

    **Cost.** That of the pilot and of the second stage; records are put in order once.

    Examples
    --------
    >>> import numpy as np
    >>> latencies = np.random.default_rng(0).lognormal(4.6, 0.8, size=1_000)
    >>> p99 = two_stage(latencies, 0.99, epsilon=1.0, bounds=(1, 100_000))
    >>> bool(100 < p99 < 100_000)
    True
    """
    levels = Levels.of(q)
    ind_exp.no_dither(column.get("dither"), "two_stage")
    prior = column.get("prior")
    if prior is None and not isinstance(x, Sample):
        column["prior"] = _checks.SCALE_FREE
    if isinstance(column.get("resolution"), (int, float)) and column.get("resolution") == 0.0:
        raise ValueError("resolution must not be 0 for two_stage, which needs a lattice")
    read = Sample.reader(x, **cast(Any, {**column, "dither": None}))
    if read.lattice is None:
        raise ValueError("a Sample for two_stage must have a lattice, got one with resolution=0")
    given = read.lattice.masses if isinstance(x, Sample) or prior is not None else None
    lattice = read.lattice if read.lattice.masses else read.lattice.weighed(read.lattice.scale_free)
    fixed = isinstance(x, Sample) or prior is not None or column.get("resolution") is not None
    relation = relation_of(neighbors)
    counts = column.get("counts")
    rows = _checks.public_rows(x, counts, relation.n_is_public)
    if expected_n is None:
        expected_n = rows
    else:
        _checks.check_count("expected_n", expected_n)

    def value_of(*, epsilon: float | None, rho: float | None, **_: Any) -> Any:
        spent = privacy.two_stage.calibrate(
            levels,
            epsilon=epsilon,
            rho=rho,
            neighbors=neighbors,
            max_contributions=max_contributions,
            expected_n=expected_n,
            points=lattice.points if fixed else None,
        )

        def law_of(rng: np.random.Generator) -> SecondStage | OfTree:
            pilot = spent.design.levels
            sample = read(np.union1d(pilot.values, levels.values), None)
            answers = joint_exp.law_of(
                sample.on(lattice), pilot, spent.pilot.rate, "scan", rng
            ).sample(rng)
            how = FOR_TREES if spent.design.main == "agg_tree" else FOR_ANSWERS
            own = lattice if fixed else _lattice_of(lattice, answers, pilot.values)
            after = after_pilot(own, answers, pilot.values, given, how)
            return second_stage(sample.on(after), levels, spent.main, rows, rng)

        return spent, law_of

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
        expected_n=None if request is None else expected_n,
    )


def _lattice_of(lattice: Lattice, answers: NDArray[np.float64], q: NDArray[np.float64]) -> Lattice:
    """The lattice of the second stage, of the scale of a pilot's answers, which are released."""
    apart = float(answers[-1] - answers[0]) / float(q[-1] - q[0])
    step = max(default_step(apart or lattice.high - lattice.low), lattice.step)
    own = Lattice.of((lattice.low, lattice.high), step, False)
    assert own is not None  # its step is not 0
    return own


def after_pilot(
    lattice: Lattice,
    answers: NDArray[np.float64],
    q: NDArray[np.float64],
    given: Masses | None,
    how: Learning,
) -> Lattice:
    """The lattice with the prior of the second stage, by what a pilot released.

    Parameters
    ----------
    lattice : Lattice
        Of the second stage.
    answers, q : ndarray of float64, shape (k,)
        The pilot's answers and their levels.
    given : Masses, optional
        A prior of the caller's on this lattice. Default: none.
    how : Learning
    """
    base = lattice.no_scale if given is None else Shares.of_masses(given)
    return lattice.weighed(learned(lattice.encode(answers), q, base, lattice.points, how))


def second_stage(
    sample: Sample, levels: Levels, spent: Any, rows: int | None, rng: np.random.Generator
) -> SecondStage | OfTree:
    """What answers on the lattice and prior of a sample."""
    if isinstance(spent, privacy.ind_exp.Calibration):
        return SecondStage(sample, ind_exp.law_of(sample, levels, spent))
    if isinstance(spent, privacy.joint_exp.Calibration):
        return SecondStage(sample, joint_exp.law_of(sample, levels, spent.rate, "scan", rng))
    return OfTree(sample.undithered(), levels, spent, rows)
