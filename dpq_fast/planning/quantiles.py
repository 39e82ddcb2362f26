"""Plans for quantiles, of all records or by group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpq_fast import _checks, privacy
from dpq_fast._arguments import in_our_words
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.persons import WEIGHTS
from dpq_fast.planning.groups import grid_of, sizes_of
from dpq_fast.planning.guesses import Guess
from dpq_fast.planning.methods import Quantiles, Settings
from dpq_fast.planning.persons import Kept
from dpq_fast.planning.plans import Plan
from dpq_fast.planning.requests import PlanRequest, Row
from dpq_fast.planning.samples import RELEASES
from dpq_fast.planning.shapes import guesses_of
from dpq_fast.planning.words import between, counted
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.relations import relation_of

METHODS = ("auto", "all", "joint_exp", "ind_exp", "approx_quantiles", "agg_tree", "two_stage")


@in_our_words
def plan(
    q: Any,
    *,
    n: int | None = None,
    bounds: tuple[float, float] | None = None,
    epsilon: Any = None,
    target: float | None = None,
    unit: str = "ranks",
    over: str = "mean",
    level: float = 0.95,
    guess: Any = None,
    method: str = "auto",
    neighbors: str = "swap",
    resolution: float | None = None,
    dither: bool | None = None,
    prior: Any = None,
    max_contributions: int = 1,
    privacy_unit: Any = None,
    contributions: Any = WEIGHTS,
    expected_n: int | None = None,
    groups: Any = None,
    public_by: bool = False,
    releases: int = RELEASES,
) -> Plan:
    r"""Predict the errors of `quantile` or `quantile_by` for each epsilon, before any data is read.

    Parameters
    ----------
    q : float or array_like of float
        Levels in [0, 1], any order and shape, as they will be asked for. Everything here is public.
    n : int
        About how many records there are, at least 1; with a `privacy_unit` how many persons. Left
        out with `groups`.
    bounds : (float, float)
        As they will be given to `quantile`. None for "unbounded_quantile", with a `guess`.
    epsilon : float or array_like of float, optional
        Total budgets of a call, positive and finite. Default: nine from 0.01 to 10.
    target : float, optional
        The largest error that will do; instead of `epsilon`. The plan is for the smallest epsilon
        between 10^-4 and 100 that reaches it, to about 1%.
    unit : {"ranks", "share", "value"}, default "ranks"
        Of `target`: records, a share of them, or the unit of the data (with a `guess`).
    over : {"mean", "worst"}, default "mean"
        Whether the mean over levels is to reach the target in a share `level` of all releases, or
        all levels are. All of several groups are to reach it, and one of several methods.
    level : float, default 0.95
        That share, strictly between 0 and 1.
    guess : frozen distribution or array_like of float, optional
        How the records may be distributed: an object with ``ppf`` and ``cdf``, as the frozen
        distributions of `scipy.stats` have, or public records such as last year's published
        figures. Never the private records, nor anything fitted to them. With a `resolution`, those
        of a distribution are taken to be its multiples. Default: the `prior`, and without one a set
        of shapes between the bounds (see Notes), over which the largest errors are given, and the
        least ones as `Plan.least`; then no error in the unit of the data is predicted.
    method : str, default "auto"
        "auto": the method that `quantile` takes at each epsilon. "all": those that it chooses from,
        to compare them. Where no `prior` is given both have the one that "auto" takes. Or one of
        them, as it is by name: "joint_exp", "ind_exp", "approx_quantiles", "agg_tree", "two_stage".
    neighbors, resolution, dither, prior, max_contributions
        As they will be given to `quantile`; `resolution` is not 0.
    privacy_unit : float, array_like of int, shape (k,), or frozen distribution, optional
        For a release about persons, a guess at how many rows a person has, at least 1: a number,
        numbers of some persons, or what has their ``ppf``. Public, and no ids. Then `n`, the sizes
        of `groups` and errors in ranks are numbers of persons: shares of the weight, times n.
    contributions : "weights" or int, default "weights"
        What of a person's records counts, with a `privacy_unit`. By weights the errors are the same
        for any number of rows; for a number k they go by how many persons have fewer, so that a
        mean says too little.
    expected_n : int, optional
        As it will be given to `quantile`, whose choice of a method, and of a tree's shape, goes by
        it. Default: as there for an array, that is, n under "swap", where the number of rows is
        public, else 10,000. `agg_tree` itself, and tables, take 10,000 for any relation. Of groups
        about how many each has, as it will be given to `quantile_by`; else the default there.
    groups : mapping or sequence of int, optional
        Public guesses at the numbers of records of groups, at least 1, by name or in order: a plan
        for `quantile_by`, with a row for each group. All have the same guess at their records. By
        weights a person counts in a group for the share of their rows that it has.
    public_by : bool, default False
        As it will be given to `quantile_by`.
    releases : int, default 1,000
        How many are simulated at each epsilon, from 100 to a million; fewer of more than 100
        levels.

    Returns
    -------
    Plan
        It prints as a table, has its columns as arrays, a ``plot()`` and a ``to_frame()``.

    Raises
    ------
    TypeError
        If an argument is not of the type its rule above asks for.
    ValueError
        If an argument breaks its rule, the guess has no mass between the bounds, or no epsilon up
        to 100 reaches the target.

    See Also
    --------
    plan_sum, plan_mean : The same for sums and means.
    dpq_fast.metrics.rank_error : What is predicted.

    Notes
    -----
    **Rank error** of a level: records between an output and its target rank :math:`q n`; 0 inside a
    run of ties that holds it. In the unit of the data: how far the output is from the nearest
    number whose rank error is 0, a quantile of the records. What a sample of a population is off
    comes on top.

    **No guess.** No public fact says how the records lie between the bounds, and errors go by it.
    So the plan is for each of `dpq_fast.planning.shapes.SHAPES`: even, narrow, skewed, heavy-tailed
    and tied columns, in parts of the bounds, rounded to the `resolution`, if there is one. What is
    needed for a target reaches it on every one of them, and on columns like them; it is more than
    most columns need. A column that is narrower than all of them, such as one in less than a
    thousandth of its bounds, may have larger errors: say so by a guess.

    **Prediction.** From public samples of n records that are drawn from the guess, with a fixed
    seed: 100 of them, or a tenth of `releases`; 25 of each shape. Public records are drawn without
    replacement where they are at least n, and n of them are the sample; where they are fewer, those
    that occur once are spread halfway to those beside them. One level by "ind_exp": its exact law
    on each sample. Else releases are drawn from the law on each sample, or for trees from the law
    of the noise; by "two_stage" after one pilot for each sample. `Plan.uncertainty` is the standard
    error that remains: at 1,000 releases some 3% of the quantile, and more for records with many
    ties, whose errors depend on where in a run of them a target happens to lie.

    **Persons.** By weights, what is predicted is the release of n persons of one record each, which
    is what a weight comes to: that the rows of a person spread a weight over several places is left
    out, and the error of large budgets, of a person or less, may be some 10% more. For a number k,
    it is the release of as many records as persons keep, with ``max_contributions=k``, as if they
    had been drawn one by one; its errors are those beside the quantiles of these records. How far
    they are from those of a random record of a random person is no noise, and in no plan.

    **Cost.** Grows with the number of levels, and hardly with n. For three levels and nine epsilons
    about .3 s with a guess, and 1 s without one; two to four times as much for a target.

    Examples
    --------
    >>> out = plan([0.25, 0.5, 0.75], n=1_000, bounds=(0, 120), resolution=1, epsilon=[0.1, 1])
    >>> bool(out.ranks.quantile[0] > out.ranks.quantile[1])
    True
    >>> out = plan(0.5, n=1_000, bounds=(0, 120), target=20)
    >>> bool(out.ranks.quantile[0] <= 20)
    True
    """
    levels = Levels(q)
    _checks.check_choice("method", method, (*METHODS, "unbounded_quantile"))
    request = PlanRequest.of(epsilon, target, unit, over, level, releases)
    if resolution is not None and _checks.check_nonnegative("resolution", resolution) == 0.0:
        raise ValueError("resolution must be positive for a plan, got 0.0")
    lattice = None
    if bounds is not None:
        bounds, lattice = Lattice.between(bounds, resolution, dither, prior)
    elif prior is not None:
        raise ValueError("prior must be left out without bounds")
    relation = relation_of(neighbors)
    if bounds is None and guess is None:
        raise ValueError("guess must be given without bounds")
    has_values = guess is not None or (lattice is not None and lattice.masses is not None)
    if request.unit == "value" and not has_values:
        raise ValueError("guess or prior must be given for unit='value'")
    if bounds is None and method not in ("auto", "unbounded_quantile"):
        raise ValueError(f"bounds must be given for method={method!r}")
    if dither is not None and _checks.check_flag("dither", dither):
        if method in ("ind_exp", "agg_tree", "two_stage", "unbounded_quantile"):
            raise ValueError(f"dither must be left out for method {method!r}, got True")
    made = None if guess is None else Guess.of(guess, bounds)
    if made is None and lattice is not None and lattice.masses is not None:
        made = Guess.of_prior(lattice)
    guesses, text = guesses_of(made, bounds)
    if lattice is not None and resolution is not None:
        guesses = {name: each.rounded(lattice) for name, each in guesses.items()}
    max_contributions = _checks.check_max_contributions(max_contributions)
    kept = Kept.of(privacy_unit, contributions, max_contributions)
    if kept is not None:
        max_contributions = kept.most
    if expected_n is not None:
        expected_n = _checks.check_count("expected_n", expected_n)
    records_told = expected_n
    if kept is not None and expected_n is not None:
        records_told = expected_n * kept.most  # as a release takes it
    names, sizes = (None, [_checks.check_count("n", n)]) if groups is None else sizes_of(groups, n)
    if groups is not None:
        if method not in ("auto", "joint_exp", "two_stage"):
            known = "'auto', 'joint_exp' or 'two_stage'"
            raise ValueError(f"method must be {known} for groups, got {method!r}")
        if bounds is None:
            raise ValueError("bounds must be given for groups")
    public_by = _checks.check_flag("public_by", public_by)
    rounded = grid_of(sizes)

    def rows_of(one_guess: Guess) -> Callable[[float], list[Row]]:
        settings = Settings(
            levels,
            bounds,
            lattice,
            resolution,
            dither,
            prior,
            neighbors,
            max_contributions,
            kept,
            None if groups is None else public_by,
            records_told,
            one_guess,
            groups is None and method in ("auto", "all"),
            has_values,
            request.releases,
            len(guesses),
        )
        predictors = {size: Quantiles(settings, size) for size in set(rounded)}

        def rows_at(budget: float) -> list[Row]:
            if names is None:
                one = predictors[rounded[0]]
                return [
                    one.row(budget, name, request.level) for name in one.methods(method, budget)
                ]
            found = {
                size: one.group_row(budget, method, request.level)
                for size, one in predictors.items()
            }
            return [
                found[size]._replace(group=name, n=own)
                for name, size, own in zip(names, rounded, sizes, strict=True)
            ]

        return rows_at

    records = f"n = {sum(sizes):,}" + ("" if kept is None else " persons")
    records += "" if names is None else f" in {len(names):,} groups"
    records += "" if kept is None else f", {kept.text}"
    what = "quantile" if names is None else "quantile_by"
    told = expected_n if names is not None or levels.m > 1 else None
    if told is None and names is None and levels.m > 1 and not relation.n_is_public:
        told = privacy.agg_tree.DEFAULT_N  # what `quantile` takes
    place = between(bounds) + ("" if told is None else f", expected_n {told:,}")
    title = (
        f"Predicted errors of {what}: {counted(levels.m, 'level')}, {records}, neighbors "
        f"{neighbors},\n{place}, {text}"
    )
    predictions = {name: rows_of(each) for name, each in guesses.items()}
    return request.answer(title, predictions, has_values)
