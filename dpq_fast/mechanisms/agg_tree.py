"""AggTree: noisy counts of a tree of bins.

The one release is the tree of noisy counts below the root, `AggTree.nodes`. Exact counts of parts
of the records are added up before it, as `PartialTree`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks, privacy
from dpq_fast._arguments import in_our_words
from dpq_fast._prepared import Prepared, releases
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.leaves import Leaves
from dpq_fast.data.persons import WEIGHTS, Persons
from dpq_fast.data.records import Records
from dpq_fast.data.reprs import placement, shown
from dpq_fast.data.sample import Sample
from dpq_fast.data.units import DURATIONS, INSTANTS, Unit, placed
from dpq_fast.noise.counts import CountNoise
from dpq_fast.privacy.intervals import Request
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.relations import Relation
from dpq_fast.released.agg_tree import AggTree
from dpq_fast.released.estimate import Estimate
from dpq_fast.released.packing import Packed, check_unit
from dpq_fast.released.tree_counts import sums

# Records of a part are no more.
MOST_COUNTED = 2.0**53


@in_our_words
class PartialTree(Packed, byte=2):
    """Exact counts of a tree's leaves, not noised: private, to be merged and then released once.

    It may be sent to where others are, as bytes (`to_bytes`) or pickled: either is private, too.

    Attributes
    ----------
    bounds : (float, float)
        Public.
    height, branching : int
        Levels below the root, and children of a node: where the lattice has no more points than
        the tree has leaves, no more than it takes to give each point a leaf. Public.
    lattice : Lattice or None
        The points that records are rounded to, and that leaves are runs of. Public.
    unit : Unit or None
        What numbers stand for where records are times or durations, as in `Sample`. Public.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> shape = dict(bounds=(0, 120), resolution=1, height=2, branching=11)
    >>> first, second = (PartialTree.of(rng.integers(18, 80, size=500), **shape) for _ in "ab")
    >>> tree = first.merge(second).release(epsilon=1.0)
    >>> bool(35 < tree.quantile(0.5) < 65)
    True
    """

    def __init__(
        self,
        leaves: NDArray[np.int64],
        bounds: tuple[float, float],
        height: int,
        branching: int,
        lattice: Lattice | None,
        n_is_public: bool,
        unit: Unit | None = None,
    ) -> None:
        self.unit = unit
        self._leaves = leaves
        self._n_is_public = n_is_public
        self.bounds = bounds
        self.height = height
        self.branching = branching
        self.lattice = lattice

    def __repr__(self) -> str:
        shape = dict(height=self.height, branching=self.branching)
        return shown(self, **placement(self.bounds, self.lattice, self.unit), **shape)

    def _parts(self) -> dict[str, Any]:
        names = "bounds", "height", "branching", "lattice", "unit"
        public = {name: getattr(self, name) for name in names}
        return public | dict(n_is_public=self._n_is_public, leaves=self._leaves)

    @classmethod
    def _of_parts(cls, parts: dict[str, Any]) -> PartialTree:
        tree = cls(**parts)
        check_unit(tree.unit)
        _checks.check_flag("n_is_public", tree._n_is_public)
        lattice, leaves = tree.lattice, tree._leaves
        if _checks.check_bounds(tree.bounds) != tree.bounds or (
            lattice is not None and (lattice.low, lattice.high) != tree.bounds
        ):
            raise ValueError("bounds must be those of the lattice")
        shape = tree.height, tree.branching
        if _checks.check_tree(*shape, None if lattice is None else lattice.points) != shape:
            raise ValueError("trees must have no more leaves than it takes")
        if leaves.dtype != np.int64 or leaves.shape != (tree.branching**tree.height,):
            raise ValueError("leaves must be integers of 64 bits, one for each leaf")
        if (leaves < 0).any() or float(leaves.sum(dtype=np.float64)) > MOST_COUNTED:
            raise ValueError("leaves must be counts")
        return tree

    def to_bytes(self) -> bytes:
        """The tree as bytes, to be merged elsewhere. **Not for release**: they are private.

        Returns
        -------
        bytes
            For `PartialTree.from_bytes`. Equal on every platform.

        Notes
        -----
        They hold the exact counts of all leaves, as plain numbers, and so does a pickle. Send and
        keep them as you would the records: encrypted, and seen by nobody who may not see those.
        Nothing is charged for them, and no noise is in them; `release` of what they are merged
        into is what is released.
        """
        return super().to_bytes()

    @classmethod
    @in_our_words
    def of(
        cls,
        x: Any,
        *,
        bounds: tuple[float, float] | None = None,
        height: int | None = None,
        branching: int | None = None,
        resolution: float | None = None,
        prior: Any = None,
        counts: Any = None,
        nan_policy: str = "omit",
        expected_n: int | None = None,
        workers: int = 1,
    ) -> PartialTree:
        """Count the records of a column by leaf, in one pass.

        Parameters
        ----------
        x, bounds, resolution, prior, counts, nan_policy, workers
            As in `agg_tree`. `x` may be `Records`, too.
        height, branching : int, optional
            As in `agg_tree`. Default: for `expected_n` records and an epsilon of 1. Trees of parts
            have the shape for all of them together.
        expected_n : int, optional
            About how many records there are in all. Public. Default: 10,000.

        Returns
        -------
        PartialTree

        Raises
        ------
        TypeError, ValueError
            As in `agg_tree`.
        """
        if isinstance(x, (Sample, Records)) and x.persons is not None:
            raise ValueError(
                f"x must be of records for a tree of a part, got a {type(x).__name__} of persons, "
                "who may have records in others"
            )
        if isinstance(counts, Persons):  # whose leaves would hold parts of records
            raise ValueError(f"counts must be whole numbers for a tree of a part, got {counts!r}")
        x, unit, place = placed(x, bounds=bounds, resolution=resolution, prior=prior)
        _, lattice = public_lattice(x, **place, counts=counts, nan_policy=nan_policy)
        points = None if lattice is None else lattice.points
        height, branching = privacy.agg_tree.shape_of(height, branching, points, expected_n)
        read = cls.reader(
            x,
            **place,
            height=height,
            branching=branching,
            counts=counts,
            nan_policy=nan_policy,
            workers=workers,
        )
        tree = read()
        tree.unit = unit
        return tree

    @classmethod
    def reader(
        cls,
        x: Any,
        *,
        bounds: tuple[float, float] | None,
        height: int,
        branching: int,
        resolution: float | None,
        prior: Any,
        counts: Any,
        nan_policy: str,
        workers: int,
    ) -> Callable[[], PartialTree]:
        """`of` in two steps, as `Sample.reader`."""
        bounds, lattice = public_lattice(x, bounds, resolution, prior, counts, nan_policy)
        points = None if lattice is None else lattice.points
        height, branching = _checks.check_tree(height, branching, points)
        if lattice is None:
            _checks.check_leaves(bounds, branching**height)
        read_records = Records.reader(x, counts=counts, nan_policy=nan_policy, workers=workers)

        def read() -> PartialTree:
            records = read_records()
            most = branching**height
            leaves = np.zeros(most, dtype=np.int64)
            bins = Leaves.of(bounds, lattice, most).bins()
            leaves[: bins.size] = records.count(bins)
            return cls(leaves, bounds, height, branching, lattice, records.n_is_public)

        return read

    @in_our_words
    def merge(self, *others: PartialTree) -> PartialTree:
        """The tree of all records together.

        Parameters
        ----------
        *others : PartialTree
            Of other records, with the same bounds, height, branching and lattice.

        Returns
        -------
        PartialTree
        """
        for other in others:
            if not isinstance(other, PartialTree):
                raise TypeError(f"others must be PartialTree objects, got {type(other).__name__}")
            if self._public != other._public:
                raise ValueError(
                    "trees must have the same bounds, height, branching, lattice and unit"
                )
        trees = (self, *others)
        leaves = np.sum([tree._leaves for tree in trees], axis=0)
        n_is_public = all(tree._n_is_public for tree in trees)
        public = self.bounds, self.height, self.branching, self.lattice
        return PartialTree(leaves, *public, n_is_public, self.unit)

    @property
    def _public(self) -> tuple[Any, ...]:
        return self.bounds, self.height, self.branching, self.lattice, self.unit

    @in_our_words
    def release(
        self,
        *,
        epsilon: float | None = None,
        rho: float | None = None,
        noise: str = "geometric",
        aggregate: bool = True,
        neighbors: str = "swap",
        max_contributions: int = 1,
        accountant: privacy.Accountant | None = None,
        rng: Any = None,
    ) -> AggTree:
        """Add noise to every count below the root.

        Parameters
        ----------
        epsilon, rho, noise, aggregate, neighbors, max_contributions, accountant, rng
            As in `agg_tree`. Each call is a release of its own, and spends its own budget.

        Returns
        -------
        AggTree
        """
        calibration = privacy.agg_tree.calibrate(
            epsilon=epsilon,
            rho=rho,
            height=self.height,
            branching=self.branching,
            noise=noise,
            neighbors=neighbors,
            max_contributions=max_contributions,
        )
        _checks.check_flag("aggregate", aggregate)

        def draw(rng: np.random.Generator) -> AggTree:
            tree = noised(self, calibration.noise, calibration.relation, aggregate, rng)
            tree.unit, tree.most = self.unit, max_contributions
            return tree

        return Prepared(calibration, draw).run(accountant, rng)

    def n_is_public(self, relation: Relation) -> bool:
        """Whether the number of records may be told.

        Where a record may be left out as missing, how many are kept is private.
        """
        return relation.n_is_public and self._n_is_public


def noised(
    tree: PartialTree,
    noise: CountNoise,
    relation: Relation,
    aggregate: bool,
    rng: np.random.Generator,
    most: int | None = None,
) -> AggTree:
    """A tree with noise on every count below the root. The caller has charged for it."""
    exact = tree._leaves
    nodes: list[NDArray[Any]] = []
    for _ in range(tree.height):
        nodes.insert(0, exact + noise.draw(exact.size, rng))
        exact = sums(exact, tree.branching)
    return AggTree(
        nodes,
        tree.bounds,
        noise,
        total=int(exact[0]) if tree.n_is_public(relation) else None,
        most=most,
        aggregate=aggregate,
        lattice=tree.lattice,
    )


def public_lattice(
    x: Any, bounds: Any, resolution: Any, prior: Any, counts: Any, nan_policy: str
) -> tuple[tuple[float, float], Lattice | None]:
    """Bounds and lattice for a tree of `x`, of which only a `Sample` is asked.

    There is no dither: a record is counted at the point that it rounds to.
    """
    if not isinstance(x, Sample):
        return Lattice.between(bounds, resolution, False, prior)
    # refuses what belongs to the sample
    Sample.of(x, bounds, resolution=resolution, prior=prior, counts=counts, nan_policy=nan_policy)
    return x.bounds, x.undithered().lattice


@releases(INSTANTS, DURATIONS)
def agg_tree(
    x: Any,
    q: Any,
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    bounds: tuple[float, float] | None = None,
    height: int | None = None,
    branching: int | None = None,
    noise: str = "geometric",
    aggregate: bool = True,
    neighbors: str = "swap",
    resolution: float | None = None,
    prior: Any = None,
    counts: Any = None,
    privacy_unit: Any = None,
    contributions: Any = WEIGHTS,
    nan_policy: str = "omit",
    expected_n: int | None = None,
    max_contributions: int = 1,
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
    workers: int = 1,
    confidence: float | None = None,
    covers: str = "sample",
    interval_share: float | None = None,
) -> Prepared[Any]:
    r"""Release a tree of noisy counts, and read quantiles off it.

    Parameters
    ----------
    x : array_like of real numbers, shape (n,)
        Private sample, any order: an array, a pandas, polars or pyarrow column, a sequence, or a
        `Sample`. Clamped to `bounds`; NaN and null are left out (`nan_policy`). n >= 0.
    q : float or array_like of float
        Levels in [0, 1], any order and shape, at least one. Public.
    epsilon : float
        Budget of the whole tree, positive and finite. Public. Exactly one of `epsilon` and `rho`.
    rho : float, optional
        zCDP budget instead of `epsilon`, for ``noise="gaussian"``. Public.
    bounds : (float, float)
        Finite low < high, chosen without looking at `x`. Public. Left out only for a `Sample`.
        With a `prior` that has quantiles an end may be infinite (`Sample.of`).
    height : int, optional
        Levels h below the root, at least 1: with 1, plain bins. Public. Default: chosen by public
        arguments alone (see Notes).
    branching : int, optional
        Children b of a node, at least 2; b^h is at most 2^26. Public. Default: chosen, too.
    noise : {"geometric", "laplace", "gaussian"}, default "geometric"
        Two-sided geometric, exact integers; Laplace as in the paper, in floating point and *not
        hardened*: its low-order bits may tell more than `epsilon` allows; or discrete Gaussian,
        exact, for `rho`. Public.
    aggregate : bool, default True
        Combine the counts of all levels into estimates of smallest variance. Public.
    neighbors : {"swap", "add-remove"}, default "swap"
        "swap" replaces one record, n is public; "add-remove" adds or deletes one.
    resolution : float, optional
        Spacing of the lattice, in the unit of `x`: records are rounded to it one by one, and
        answers lie on it; 0 for none. Default as in `joint_exp`: about 10^-6 of the range. Public.
    prior : "uniform", "log", "scale-free", distribution, functions or mixture, optional
        A guess at the distribution of the records, made without looking at `x`, as in `joint_exp`:
        leaves have equal masses, and what is inside a leaf is spread in proportion to it. Public.
    counts : array_like of int, shape (n,), optional
        How many records each entry of `x` stands for. Private.
    nan_policy : {"omit", "raise"}, default "omit"
        Leave NaN and null out record by record, or state that there are none. Under "swap" the
        number of records is used as public, and answers are better for it, only with "raise": else
        how many are kept is private.
    expected_n : int, optional
        About how many records there are: what the shape is chosen for. Public. Default: the length
        of `x` where that is public, that is, under "swap" with ``nan_policy="raise"`` and without
        `counts`; else 10,000.
    privacy_unit, contributions : optional
        Ids of persons, as in `quantile`: the guarantee is about whole persons.
    max_contributions : int, default 1
        Up to this many records per person: the guarantee is per person.
    accountant : Accountant, optional
        Charged with ``guarantee("agg_tree", ...)``; refuses before `x` is touched.
    rng : None, int, SeedSequence, BitGenerator or Generator, optional
        None, for real releases: a cryptographic generator keyed by the operating system.
    workers : int, default 1
        Threads for passes over a long `x`; the answer does not depend on it.
    confidence, covers : optional
        Give an `Estimate`, with the ends of `AggTree.quantile_confint`. Public.
    interval_share : float, optional
        Left out: value and ends are read off one tree.

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
    AggTree : The tree itself: counts of intervals, the CDF, confidence intervals.
    PartialTree : Trees of parts of the records, added up before there is noise.
    joint_exp : More accurate where the levels are few and known beforehand.

    Notes
    -----
    **Mechanism.** The lattice points inside the bounds are cut into b^h runs, as even as can be,
    the leaves (without a lattice: the bounds into equal intervals), and a tree of b-fold branching
    put over them. Where there are no more points than leaves, leaves are points, and the tree has
    no more levels and children than that takes: less noise. Each node below the root gets the
    number of records that round to its points and independent noise [1]_. The root is n where that
    is public, else the sum of its children; under "swap" the number of rows is public, and taken
    for n unless the noisy counts say that many are missing. Estimates are combined by least squares
    (`AggTree`), those of the distribution function with the constraint that no mass is negative;
    inside leaves it is a monotone cubic. A quantile is the smallest point at which it reaches its
    level.

    **Shape.** Where it is not given, the height and branching of the smallest expected error, by
    the formula of `privacy.agg_tree.shape_of`: more leaves for more records and for a larger
    budget, one level of bins where both are small; with Gaussian noise, whose standard deviation
    grows with the square root of the height alone, binary trees. It knows the budget, the relation,
    `expected_n` and the number of lattice points, and guesses that the standard deviation of the
    records is about a 40th of the bounds' width (on few points, 20 points; with a `prior`, of its
    mass). Say the shape where the bounds are far wider than that: for N(0, 5) in ±10,000, ten
    thousand records and an epsilon of 1, a height of 4 and 10 children.

    **Privacy.** A record touches h noised counts: pure `epsilon`-DP with scale h / epsilon under
    "add-remove", 2h / epsilon under "swap", where two paths change, with h that of the tree that
    is released (`AggTree.height`); which leaf a record is in depends on the record and on public
    facts alone. `rho`-zCDP with
    :math:`\sigma^2 = h / 2\rho`, :math:`h / \rho`. Times `max_contributions` (its square for
    :math:`\sigma^2`). Proofs: `privacy.agg_tree.sensitivities`, `privacy.agg_tree.calibrate`. All
    that is read off the tree is post-processing. Not covered: running time and memory.

    **Cost.** One pass over `x`, O(n), then O(b^h log b^h) time and O(b^h) memory; noise takes some
    0.1 to 0.3 microseconds per node.

    References
    ----------
    .. [1] J. Gillenwater, M. Joseph, A. Kulesza, "Differentially Private Quantiles", ICML 2021,
       PMLR 139:3713-3722. Section 5.1, Appendix E.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=1_000)
    >>> out = agg_tree(x, [0.25, 0.5, 0.75], epsilon=1.0, bounds=(-10, 10))
    >>> bool((out[1:] >= out[:-1]).all())
    True
    """
    Levels.of(q)  # refused before x is touched
    request = Request.of(confidence, covers, interval_share)
    if interval_share is not None:
        raise ValueError(
            "interval_share must be left out for a tree, which gives values and intervals of one "
            f"budget, got {interval_share}"
        )
    tree = Prepared.of(
        AggTree.of,
        x,
        epsilon=epsilon,
        rho=rho,
        bounds=bounds,
        height=height,
        branching=branching,
        noise=noise,
        aggregate=aggregate,
        neighbors=neighbors,
        resolution=resolution,
        prior=prior,
        counts=counts,
        nan_policy=nan_policy,
        expected_n=expected_n,
        max_contributions=max_contributions,
        workers=workers,
    )

    def read(tree: AggTree) -> Any:
        value = tree.quantile(q)
        if request is None:
            return value
        ends = tree.quantile_confint(q, request.confidence, request.covers)
        return Estimate.around(value, *ends, request)

    return tree.then(read)
