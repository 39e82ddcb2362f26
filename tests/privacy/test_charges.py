"""What an accountant is charged: nothing for public arguments, all once a record was read."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import pytest
from releases import BOUNDS, NEEDED, RELEASES

import dpq_fast as dpq
from dpq_fast import privacy
from dpq_fast.mechanisms.registry import MECHANISMS

X = np.random.default_rng(0).normal(0.0, 2.0, size=600)
OF_QUERIES = ("above_threshold", "sparse_vector")  # which have no records of their own


def clipped(name: str, method: str) -> Any:
    """A sum or a mean with a clip by a mechanism that needs bounds."""
    public = dict(epsilon=1.0, method=method, lower=-10.0, upper=10.0)
    return lambda x, rng, **more: getattr(dpq, name)(x, rng=rng, **public | more)


EVERY = RELEASES | {
    f"{name}, {method}": clipped(name, method)
    for name in ("sum", "mean")
    for method in ("joint_exp", "ind_exp")
}
OF_COLUMNS = [name for name in EVERY if name not in OF_QUERIES]
# A sample brings a prior of its own, and groups need keys.
OF_SAMPLES = [name for name in OF_COLUMNS if "prior" not in name and "_by" not in name]

# No release takes all of these; an argument that it does not have is refused, too.
BAD = [
    dict(bounds=(1.0, 0.0)),
    dict(bounds=3.0),
    dict(resolution=-1.0),
    dict(resolution=100.0, bounds=(0.3, 0.6)),
    dict(resolution=0.0, dither=True),
    dict(dither="yes"),
    dict(assume_sorted=2),
    dict(nan_policy="ignore"),
    dict(workers=0),
    dict(workers=1.5),
    dict(neighbors="replace"),
    dict(max_contributions=0),
    dict(epsilon=0.0),
    dict(epsilon=1e-320),
    dict(delta=1.0),
    dict(rho=-1.0),
    dict(q=1.5),
    dict(q="median"),
    dict(kernel="fast"),
    dict(method="exact"),
    dict(base="other"),
    dict(groups=[0, 0]),
    dict(groups=["a"]),
    dict(public_by="no"),
    dict(height=0),
    dict(branching=1),
    dict(bins=0),
    dict(steps=0),
    dict(levels=0),
    dict(aggregate="yes"),
    dict(noise="uniform"),
    dict(lower=math.nan),
    dict(upper=-math.inf),
    dict(beta=1.0),
    dict(invert="yes"),
    dict(split=1.0),
    dict(offset=math.nan),
    dict(uniform="yes"),
    dict(share=1.0),
    dict(t=-1.0),
    dict(epsilon1=0.0),
    dict(epsilon2=math.nan),
    dict(sensitivity=0.0),
    dict(monotonic="yes"),
    dict(threshold=math.inf),
    dict(halts=0),
    dict(unknown=1),
]


class Ledger(privacy.Accountant):
    """An accountant of a large budget that takes every statement."""

    def __init__(self) -> None:
        super().__init__(1e6)
        self.promises: list[privacy.Guarantee] = []

    @property
    def charges(self) -> int:
        return len(self.promises)

    def charge(self, guarantee: privacy.Guarantee) -> None:
        assert isinstance(guarantee, privacy.Guarantee)
        self.promises.append(guarantee)


class Failure(Exception):
    """An error of the caller's own."""


@pytest.mark.parametrize("name", EVERY)
def test_release_is_charged_once(name):
    ledger = Ledger()
    EVERY[name](X, 1, accountant=ledger)
    assert ledger.charges == 1


# What a promise depends on, beside the relation and the records of a person. Each release gets
# its bounds and the like from `releases.NEEDED`.
PROMISED: dict[str, list[dict[str, Any]]] = dict(
    joint_exp=[dict(q=0.5, epsilon=0.7)],
    ind_exp=[
        dict(q=[0.2, 0.6], epsilon=0.7),
        dict(q=[0.2, 0.6, 0.9], epsilon=0.7, delta=1e-6),
        dict(q=[0.2, 0.6], rho=0.3),
    ],
    approx_quantiles=[
        dict(q=[0.2, 0.6], epsilon=0.7),
        dict(q=[0.2, 0.6], rho=0.3),
        dict(q=[0.2, 0.6], epsilon=0.7, base="unbounded"),
    ],
    unbounded_quantile=[
        dict(q=0.2, epsilon=0.7),
        dict(q=0.2, rho=0.3),
        dict(q=0.2, epsilon=0.7, lower=None),
        dict(q=0.2, epsilon=0.7, lower=None, upper=9.0),
        dict(q=0.2, epsilon=0.7, lower=-9.0, invert=True),
        dict(q=0.2, epsilon=0.7, split=0.3),
        dict(q=0.2, epsilon=0.7, noise="gumbel"),
        dict(q=[0.2, 0.6], epsilon=0.7, split=0.3),
    ],
    quantile_by=[
        dict(q=[0.2, 0.6], epsilon=0.7),
        dict(q=[0.2, 0.6], epsilon=0.7, public_by=True),
        dict(q=[0.2, 0.6], epsilon=0.7, method="approx_quantiles"),
        dict(q=[0.2, 0.6], rho=0.3, method="csmooth", public_by=True),
        dict(q=0.2, epsilon=0.7, delta=1e-6),
    ],
    count_by=[dict(epsilon=0.7), dict(epsilon=0.7, public_by=True), dict(rho=0.3), dict(rho=9.0)],
    **{
        name: [
            dict(epsilon=0.7),
            dict(epsilon=0.7, public_by=True, share=0.3),
            dict(epsilon=0.7, q=None, lower=0.0, upper=9.0),
            dict(rho=0.3),
            dict(rho=0.3, q=None, lower=0.0, upper=9.0, public_by=True),
        ]
        for name in ("sum_by", "mean_by", "var_by", "std_by")
    },
    two_stage=[
        dict(q=0.5, epsilon=0.7, expected_n=100),
        dict(q=[0.2, 0.6], epsilon=0.7, expected_n=3),
        dict(q=[0.2, 0.6], rho=0.3, expected_n=1_000),
        dict(q=[k / 20 for k in range(1, 20)], epsilon=0.7, expected_n=100),
    ],
    csmooth=[dict(q=0.5, rho=0.3)],
    agg_tree=[
        dict(q=0.5, epsilon=0.7, height=2, branching=4),
        dict(q=0.5, epsilon=0.7, height=4, branching=2, noise="laplace"),
        dict(q=0.5, rho=0.3, height=2, branching=4, noise="gaussian"),
    ],
    cdf=[
        dict(epsilon=0.7, bins=8),
        dict(rho=0.3, bins=8),
        dict(epsilon=0.7, method="agg_tree", height=2, branching=4),
        dict(epsilon=0.7, method="histogram", bins=8),
        dict(epsilon=0.7, method="adaptive", steps=5, bins=32),
        dict(epsilon=0.7, delta=1e-6, method="gaussian", levels=3),
        dict(epsilon=0.7, delta=1e-6, method="smooth_gaussian", levels=3),
    ],
    count=[dict(epsilon=0.7), dict(rho=0.3), dict(rho=9.0)],
    histogram=[dict(epsilon=0.7), dict(rho=0.3), dict(rho=9.0)],
    select_keys=[dict(epsilon=0.7, delta=1e-6)],
) | {
    name: [
        dict(epsilon=0.7),
        dict(epsilon=0.7, q=0.2, share=0.3, split=0.3),
        dict(epsilon=0.7, q=0.2, lower=None),
        dict(epsilon=0.7, q=0.2, lower=None, upper=9.0),
        dict(epsilon=0.7, q=None, lower=-4.0, upper=8.0),
        dict(epsilon=0.7, method="ind_exp", lower=-4.0, upper=8.0),
        dict(rho=0.3),
        dict(rho=0.3, q=None, lower=-4.0, upper=8.0),
        dict(rho=9.0, q=None, lower=-4.0, upper=8.0),
    ]
    for name in ("sum", "mean", "var", "std")
}


@pytest.mark.parametrize("records", [1, 3])
@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("name", PROMISED)
def test_release_is_charged_what_its_public_arguments_promise(
    name, neighbors, records, monkeypatch
):
    """All of them are handed on, those too that the charge only checks."""
    handed: list[dict[str, Any]] = []

    def recorder(calibrate: Any) -> Any:
        def recorded(*arguments: Any, **parameters: Any) -> Any:
            handed.append(parameters)
            return calibrate(*arguments, **parameters)

        return recorded

    for calibrate in {row.calibrate for row in MECHANISMS.values()}:
        module = importlib.import_module(calibrate.__module__)
        monkeypatch.setattr(module, calibrate.__name__, recorder(calibrate))
    person = dict(neighbors=neighbors, max_contributions=records)
    for public in PROMISED[name]:
        ledger = Ledger()
        options = NEEDED.get(name, {}) | public | person
        getattr(dpq, name)([0.5, 1.0, 2.0], rng=1, accountant=ledger, **options)
        if "_by" in name or name == "histogram":  # that of each group is another one
            del handed[1:]
        assert handed and all(parameters.items() >= person.items() for parameters in handed)
        assert ledger.promises == [privacy.guarantee(name, **public, **person)]
        handed.clear()


def test_every_mechanism_is_charged_here():
    assert {*PROMISED, *OF_QUERIES} == MECHANISMS.keys()


@pytest.mark.parametrize("name", OF_QUERIES)
@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize(
    "more",
    [{}, dict(monotonic=True), dict(noise="laplace"), dict(noise="laplace", sensitivity=3.0)],
)
def test_release_of_queries_is_charged_what_its_public_arguments_promise(name, neighbors, more):
    public = dict(epsilon1=0.3, epsilon2=0.7, neighbors=neighbors) | more
    if name == "sparse_vector":
        public["halts"] = 3
    ledger = Ledger()
    getattr(dpq, name)([0.0, 9.0], threshold=1.0, accountant=ledger, rng=1, **public)
    assert ledger.promises == [privacy.guarantee(name, **public)]


@pytest.mark.parametrize("name", EVERY)
def test_release_that_public_arguments_forbid_costs_nothing(name):
    refused = 0
    for bad in BAD:
        ledger = Ledger()
        try:
            EVERY[name](X, 1, accountant=ledger, **bad)
        except (TypeError, ValueError):
            refused += 1
            assert ledger.charges == 0, bad
        else:
            assert ledger.charges == 1, bad
    # `resolution` with `bounds` of a `sum`, an `epsilon` next to a `rho` and the like are no fault
    assert refused >= len(BAD) - 3
    for rng in ("seed", -1):
        ledger = Ledger()
        with pytest.raises((TypeError, ValueError)):
            EVERY[name](X, rng, accountant=ledger)
        assert ledger.charges == 0


@pytest.mark.parametrize("name", OF_COLUMNS)
def test_release_of_no_column_by_its_dimension_costs_nothing(name):
    ledger = Ledger()
    with pytest.raises(ValueError, match="must be one-dimensional, got 2 dimensions"):
        EVERY[name](X.reshape(2, -1), 1, accountant=ledger)
    assert ledger.charges == 0


@pytest.mark.parametrize("name", OF_COLUMNS)
def test_release_that_finds_nan_where_there_must_be_none_is_charged(name):
    ledger = Ledger()
    columns = [np.append(X, math.nan), np.append(X[:21], math.nan), [0.5, None]]
    for x in columns:
        with pytest.raises(ValueError, match="nan_policy='raise'"):
            EVERY[name](x, 1, accountant=ledger, nan_policy="raise")
    assert ledger.charges == len(columns)


@pytest.mark.parametrize("name", OF_COLUMNS)
def test_release_of_records_that_are_no_numbers_is_charged(name):
    ledger = Ledger()
    with pytest.raises(TypeError, match="x must hold real numbers, got complex"):
        EVERY[name]([0.5, 1j], 1, accountant=ledger)  # texts are counted
    assert ledger.charges == 1


@pytest.mark.parametrize("name", OF_SAMPLES)
@pytest.mark.parametrize("error", [Failure(), KeyboardInterrupt(), MemoryError()], ids=repr)
def test_release_whose_source_fails_is_charged(name, error):
    """At every pass."""
    more = dict(resolution=None) if "dither" in name or "fft" in name else {}
    passes, failing = 0, math.inf

    def source() -> Any:
        nonlocal passes
        passes += 1
        for i, batch in enumerate(np.array_split(X, 3)):
            if passes == failing and i == 1:
                raise error
            yield batch

    # more points than are counted once and for all
    sample = dpq.Sample.from_batches(source, resolution=1e-7, **BOUNDS)
    made = passes
    EVERY[name](sample, 1, **more)
    needed = passes - made
    assert needed >= 1
    for failed in range(1, needed + 1):
        ledger, failing = Ledger(), passes + failed
        with pytest.raises(type(error)):
            EVERY[name](sample, 1, accountant=ledger, **more)
        assert ledger.charges == 1


@pytest.mark.parametrize("name", OF_COLUMNS)
def test_release_that_is_interrupted_is_charged(name):
    class Column(list):
        """Records that are read until somebody interrupts."""

        def __iter__(self) -> Any:
            yield 0.5
            raise KeyboardInterrupt

    ledger = Ledger()
    with pytest.raises(KeyboardInterrupt):
        EVERY[name](Column([0.5, 1.0]), 1, accountant=ledger)
    assert ledger.charges == 1


def test_release_of_queries_that_are_no_numbers_is_charged_if_they_were_read(implementation):
    for release, more in (
        (implementation.above_threshold, {}),
        (implementation.sparse_vector, dict(halts=2)),
    ):
        ledger = Ledger()
        options = dict(threshold=1.0, epsilon1=1.0, epsilon2=1.0, accountant=ledger) | more
        for queries in (np.zeros((2, 2)), np.array(["a"])):
            with pytest.raises((TypeError, ValueError)):
                release(queries, **options)
        assert ledger.charges == 0
        with pytest.raises(TypeError):
            release([0.0, "a"], **options)
        assert ledger.charges == 1


REFERENCE: dict[str, dict[str, Any]] = dict(
    joint_exp=dict(q=0.5, epsilon=1.0, **BOUNDS),
    ind_exp=dict(q=0.5, epsilon=1.0, **BOUNDS),
    approx_quantiles=dict(q=0.5, epsilon=1.0, **BOUNDS),
    csmooth=dict(q=0.5, rho=0.5, **BOUNDS),
    agg_tree=dict(q=0.5, epsilon=1.0, height=1, branching=4, **BOUNDS),
    cdf=dict(epsilon=1.0, bins=8, **BOUNDS),
    unbounded_quantile=dict(q=0.5, epsilon=1.0, lower=-10.0, upper=10.0),
    sum=dict(epsilon=1.0),
    mean=dict(epsilon=1.0),
    var=dict(epsilon=1.0),
    std=dict(rho=1.0),
    histogram=dict(bins=[0, 1, 2], epsilon=1.0),
    count=dict(epsilon=1.0),
    quantile_by=dict(by=[0, 0, 1], q=0.5, groups=[0, 1], epsilon=1.0, **BOUNDS),
    **{
        name: dict(by=[0, 0, 1], groups=[0, 1], epsilon=1.0)
        for name in ("count_by", "sum_by", "mean_by", "var_by", "std_by")
    },
)


@pytest.mark.parametrize("name", REFERENCE)
def test_reference_is_charged_like_the_fast_side(name):
    release, options = getattr(dpq.reference, name), REFERENCE[name]
    x = [0.5, math.nan, 1.0]
    ledger = Ledger()
    release(x, accountant=ledger, rng=1, **options)
    assert ledger.charges == 1
    refused = 0
    for bad in BAD:
        ledger = Ledger()
        try:
            release(x, accountant=ledger, rng=1, **options | bad)
        except (TypeError, ValueError):
            refused += 1
            assert ledger.charges == 0, bad
    assert refused >= len(BAD) - 6  # it does not use `workers`, nor a promise about the order
    with pytest.raises(ValueError, match="nan_policy='raise'"):
        release(x, accountant=ledger, nan_policy="raise", rng=1, **options)
    assert ledger.charges == 1


def test_failures_cannot_be_repeated_for_ever():
    accountant = privacy.Accountant(3.0)
    options = dict(epsilon=1.0, nan_policy="raise", accountant=accountant, **BOUNDS)
    for _ in range(3):
        with pytest.raises(ValueError, match="nan_policy='raise'"):
            dpq.median([1.0, math.nan], **options)
    with pytest.raises(privacy.BudgetExceeded):
        dpq.median([1.0, math.nan], **options)
