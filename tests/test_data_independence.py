"""What a release does, but for its noise, depends on public arguments only."""

from __future__ import annotations

import datetime
import logging
import math
import warnings
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
from hostile import CALLS, COUNTS, NOISE, Checked
from hypothesis import given, settings
from hypothesis import strategies as st
from releases import BOUNDS, GRID, LEVELS, RELEASES
from values import KINDS, Kind

import dpq_fast as dpq
from dpq_fast import privacy
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.records import Records

RNG = np.random.default_rng(0)
LONG = 70_000  # more than are sorted

# Columns as different as can be; some with a neighbor.
COLUMNS = {
    "empty": [],
    "one": [1.0],
    "one missing": [math.nan],
    "all missing": [math.nan] * 50,
    "infinite": [math.inf, -math.inf, math.inf],
    "zeros": [0.0] * 20,
    "signed zeros": [-0.0, 0.0],
    "huge": [1e308, -1e308, 1.7e308],
    "subnormal": [5e-324, -5e-324],
    "at a bound": [10.0] * 30,
    "beyond a bound": [-1e6] * 30,
    "normal": RNG.normal(size=300),
    "normal, one more": np.append(RNG.normal(size=300), 9.0),
    "ties": RNG.integers(-3, 4, size=400).astype(float),
    "some missing": np.where(RNG.random(200) < 0.3, np.nan, 1.25),
    "long": RNG.normal(size=LONG),
    "long, tied": np.zeros(LONG),
    "long, missing": np.full(LONG, np.nan),
    "long, infinite": np.full(LONG, np.inf),
    "signaling": np.array([0x7FF0000000000001] * 3, dtype=np.uint64).view(np.float64),
    "descending": np.arange(100.0)[::-1],
}


def behavior(name: str, x: Any) -> dict[str, Any]:
    """All that is seen of a call but the numbers in its answer."""
    seen: dict[str, Any] = {"error": None}
    column = np.asarray(x, dtype=np.float64)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            out = RELEASES[name](column, 1)
        except Exception as error:
            seen["error"] = type(error), str(error)
        else:
            seen["type"] = (
                type(out) if out is not None else int
            )  # above_threshold: an index or None
            seen["dtype"] = getattr(out, "dtype", None)
            seen["shape"] = np.ndim(out) if name == "sparse_vector" else np.shape(out)
    seen["warnings"] = [(w.category, str(w.message)) for w in caught]
    return seen


@pytest.mark.parametrize("name", RELEASES)
def test_behavior_does_not_depend_on_the_records(name, capfd, caplog):
    with caplog.at_level(logging.DEBUG):
        seen = {key: behavior(name, x) for key, x in COLUMNS.items()}
    expected = seen["normal"]
    assert expected["error"] is None and expected["warnings"] == []
    assert {key: one for key, one in seen.items() if one != expected} == {}
    assert tuple(capfd.readouterr()) == ("", "") and caplog.records == []


@pytest.mark.parametrize("name", [name for name in RELEASES if "unbounded" not in name])
@settings(max_examples=8)
@given(x=st.lists(st.floats(allow_nan=True), max_size=12), data=st.data())
def test_behavior_is_that_on_a_neighbor(name, x, data):
    where = data.draw(st.integers(0, max(len(x) - 1, 0)))
    value = data.draw(st.floats(allow_nan=True))
    replaced = [*x[:where], value, *x[where + 1 :]]
    for other in (replaced, x[:where] + x[where + 1 :], [*x, value]):
        assert behavior(name, other) == behavior(name, x)


# Values of every type: none of them decides what is raised or warned


def made(kind: Kind, container: str, added: list[Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what making a column says does not count
        return kind.containers[container](kind.usual * 3 + added)


def usual_arguments(name: str) -> dict[str, Any]:
    """Those of a function in the table of hostile calls, but for its columns."""
    given = {key: one for key, one in CALLS[name].arguments.items() if one is not COUNTS}
    given = {key: one.value if isinstance(one, Checked) else one for key, one in given.items()}
    given = {key: 1 if one is NOISE else one for key, one in given.items()}
    if "confidence" in given:  # no intervals, which take their time
        given |= {key: None for key in PLAIN if key in given}
    return given


def call_on(name: str, kind: Kind, container: str, role: str, added: list[Any]) -> tuple[Any, ...]:
    """All that is seen of a call but its answer's numbers, a column of values being x or by."""
    call, given = CALLS[name], usual_arguments(name)
    column = made(kind, container, added)
    rows = len(kind.usual * 3 + added)
    if role == "x":
        given |= {"x" if "x" in given else "array": column}
        if "by" in given:
            given["by"] = np.arange(rows) % 2
        if isinstance(kind.bounds[0], (datetime.date, datetime.timedelta)):
            own = dict(bounds=kind.bounds, resolution=kind.resolution, prior=None)
            own |= dict(zip(("lower", "upper"), kind.bounds, strict=True))
            given |= {key: end for key, end in own.items() if given.get(key) is not None}
    else:
        given["by"] = column
        if "x" in given:
            given["x"] = np.arange(float(rows))
        if given.get("groups") is None:
            given["delta"] = 0.9  # few records are enough for a key
        else:
            given["groups"] = kind.containers[container](kind.usual)[:1]
        if role == "by, missing":
            given["groups"] = [*given["groups"], None]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            answer = call.make(given)
        except BaseException as error:
            return type(error), str(error), len(caught)
        return type(answer), [(one.category, str(one.message)) for one in caught]


PLAIN = ("confidence", "interval_share", "expected_n")
# Functions of a column of records, and of one of keys: some of them for all values, in any case.
OF_RECORDS = [
    name
    for name, call in CALLS.items()
    if {"x", "array"} & call.arguments.keys() and "epsilon" in call.arguments
    if not name.startswith(("audit", "metrics", "above", "sparse", "reference", "CDF", "AggTree."))
]
OF_KEYS = [name for name, call in CALLS.items() if "by" in call.arguments]
OF_KEYS = [name for name in OF_KEYS if not name.startswith(("reference", "describe"))]
FEW_OF_RECORDS = ("quantile, plain", "mean, plain", "count, plain", "quantile_by, depth")
FEW_OF_KEYS = ("quantile_by, depth", "count_by, selected", "select_keys")
WITH_MISSING = ("count_by",)
PAIRS = [(name, container) for name, kind in KINDS.items() for container in kind.containers]


@pytest.mark.parametrize(("name", "container"), PAIRS)
def test_no_value_decides_what_is_raised(name, container):
    """All values of a type at once, for some functions."""
    kind = KINDS[name]
    for role, functions in (
        ("x", FEW_OF_RECORDS),
        ("by", FEW_OF_KEYS),
        ("by, missing", WITH_MISSING),
    ):
        for function in functions:
            usual = call_on(function, kind, container, role, [])
            assert call_on(function, kind, container, role, kind.hostile) == usual
            assert isinstance(usual[-1], list) or issubclass(usual[0], (TypeError, ValueError))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "container"), PAIRS)
def test_no_value_decides_what_is_raised_by_any_function(name, container):
    """All values of a type at once, for all functions; one after the other, for some."""
    kind = KINDS[name]
    for role, functions, few in (("x", OF_RECORDS, FEW_OF_RECORDS), ("by", OF_KEYS, FEW_OF_KEYS)):
        for function in functions:
            usual = call_on(function, kind, container, role, [])
            assert call_on(function, kind, container, role, kind.hostile) == usual
            for value in kind.hostile if function in few else []:
                assert call_on(function, kind, container, role, [value]) == usual


# Public arguments that may be values.
ENDS = ("bounds", "lower", "upper", "resolution", "prior", "groups")
WITH_ENDS = [name for name in OF_RECORDS if set(ENDS) & CALLS[name].arguments.keys()]
FEW_WITH_ENDS = ("quantile, plain", "unbounded_quantile, plain", "sum, public", "count_by", "cdf")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in FEW_WITH_ENDS else [pytest.mark.slow])
        for name in WITH_ENDS
    ],
)
def test_a_value_as_a_public_argument_is_taken_or_refused_before_the_charge(name):
    usual = usual_arguments(name)
    for kind in KINDS.values():
        make = kind.containers.get("list", kind.containers.get("list of NumPy"))
        if make is None:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (first, *_), strange = make(kind.usual), make(kind.hostile)
        for key, value in product(sorted(usual.keys() & set(ENDS)), strange):
            own = [value]
            if key == "bounds":
                own = [(value, first), (first, value)]
            elif key in ("prior", "groups"):
                own = [[(value, "uniform")], [value, first]]
            for one in own:
                accountant = privacy.Accountant(1e6, 0.5)
                payer = {"accountant": accountant} if "accountant" in usual else {}
                x = make(kind.usual) if key in ("bounds", "lower", "upper") else [0.5]
                column = {key: x for key in ("x", "array") if key in usual}
                rows = {"by": [0] * len(x)} if "by" in usual else {}
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    try:
                        CALLS[name].make(usual | column | rows | payer | {key: one})
                    except (TypeError, ValueError) as error:
                        assert accountant.history == () or "x must hold" in str(error)


@pytest.mark.parametrize("key", COLUMNS)
def test_refusals_do_not_depend_on_the_records(key):
    """A bad public argument is refused with the same words, before the records are looked at."""
    x = np.asarray(COLUMNS[key], dtype=np.float64)
    accountant = privacy.Accountant(0.5)
    for options, message in (
        ({"epsilon": -1.0}, "epsilon must be positive and finite, got -1.0"),
        ({"q": 2.0}, r"q must lie in \[0, 1\], got 2.0"),
        ({"bounds": (1, 0)}, "bounds must be finite with low < high"),
        ({"resolution": 1e-300}, "resolution must be at least the float64 spacing"),
        ({"accountant": accountant}, "a release must fit the budget of epsilon=0.5"),
    ):
        with pytest.raises(ValueError, match=message):
            dpq.joint_exp(x, **LEVELS | options)
    assert accountant.history == ()


@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
def test_queries_of_any_bits_give_no_warning(noise):
    """NumPy warns of a signaling NaN in arithmetic, where it does not of others."""
    for bits in (0x7FF0000000000001, 0x7FF8000000000001, 0xFFF0000000000000):
        strange = np.array([bits] * 3, dtype=np.uint64).view(np.float64)
        budget = dict(epsilon1=1.0, epsilon2=1.0, noise=noise, rng=1)
        assert dpq.above_threshold(strange, 1.0, **budget) is None
        assert dpq.sparse_vector(strange, 1.0, halts=2, **budget).size == 0


# Sources of batches are taken or refused by their schema


def parquet(table, folder):
    pa.parquet.write_table(table, folder / "x.parquet")
    return folder / "x.parquet"


SOURCES = {
    "table": lambda table, folder: table,
    "table, filtered": lambda table, folder: table.filter(table["x"].is_valid()),
    "data set in memory": lambda table, folder: pa.dataset.dataset(table),
    "data set of batches": lambda table, folder: pa.dataset.dataset(
        table.to_batches(), schema=table.schema
    ),
    "data set, filtered": lambda table, folder: pa.dataset.dataset(table).filter(
        pa.dataset.field("x").is_valid()
    ),
    "data set of files": lambda table, folder: pa.dataset.dataset(parquet(table, folder)),
    "data set of some files": lambda table, folder: pa.dataset.dataset(
        [parquet(table, folder)][: table.num_rows], schema=table.schema
    ),
    "fragment": lambda table, folder: next(
        pa.dataset.dataset(parquet(table, folder)).get_fragments()
    ),
    "Parquet file": lambda table, folder: pa.parquet.ParquetFile(parquet(table, folder)),
}
FEW = {"none": [], "one": [1], "missing": [None], "all missing": [None] * 50, "both": [1, None]}


def source_of(kind: str, values: list, declared: pa.DataType, folder: Any) -> Any:
    x = pa.array(values).cast(declared)
    nested = pa.array([{"x": 1}] * len(values), pa.struct([("x", pa.int64())]))  # of no matter
    return SOURCES[kind](pa.table({"x": x, "nested": nested}), folder)


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize(
    "declared",
    [pa.int64(), pa.uint8(), pa.float64(), pa.float32(), pa.bool_(), pa.decimal128(30, 2)],
    ids=str,
)
def test_sources_of_any_type_and_any_records_have_one_lattice(kind, declared, tmp_path):
    for values in FEW.values():
        source = source_of(kind, values, declared, tmp_path)
        records = Records.from_batches(source, column="x")
        assert not records.n_is_public
        assert records.total == sum(value is not None for value in values)
        column = [float(value) for value in values if value is not None]
        totals = {
            dpq.sum(x, epsilon=1.0, q=None, lower=0.0, upper=3.0, rng=1) for x in (records, column)
        }
        assert len(totals) == 1
        sample = dpq.Sample.from_batches(source, BOUNDS["bounds"], column="x")
        assert sample.lattice == Lattice.of(BOUNDS["bounds"], None, None)
        for answer in (
            dpq.joint_exp(sample, rng=1, **LEVELS),
            dpq.agg_tree(records, rng=1, resolution=sample.lattice.step, **LEVELS),
            dpq.csmooth(sample, [0.2, 0.5], rho=0.5, rng=1),
            dpq.cdf(sample, epsilon=1.0, rng=1).quantile(LEVELS["q"]),
        ):
            assert on_lattice(answer, PER_UNIT, *BOUNDS["bounds"])


def total_of(made: Records | dpq.Sample) -> int:
    return (made.records if isinstance(made, dpq.Sample) else made).total


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize(
    "declared",
    [pa.string(), pa.date32(), pa.binary()],
    ids=str,
)
def test_sources_of_other_types_are_refused_unless_they_hold_nothing(kind, declared, tmp_path):
    """Where nothing is there, readers can have inferred any type: that is an empty sample."""
    for values in FEW.values():
        if declared == pa.binary():
            values = [None if value is None else b"1" for value in values]
        if declared == pa.date32():
            values = [None if value is None else datetime.date(2020, 1, 1) for value in values]
        source = source_of(kind, values, declared, tmp_path)
        for make in (Records.from_batches, partial(dpq.Sample.from_batches, bounds=(0, 1))):
            if any(value is not None for value in values):
                with pytest.raises(TypeError) as raised:  # at the first pass
                    total_of(make(source, column="x"))
                hint = ": bounds must be of its kind" if declared == pa.date32() else ""
                assert str(raised.value) == f"x must hold real numbers, got dtype {declared}{hint}"
            else:
                assert total_of(make(source, column="x")) == 0
            with pytest.raises(ValueError, match=r"^column must name exactly one column .* 'y'$"):
                make(source, column="y")


def test_a_source_of_several_columns_of_a_name_is_refused():
    for size in (0, 1):
        table = pa.table([pa.array([1] * size, pa.int64())] * 2, names=["x", "x"])
        with pytest.raises(ValueError, match="column must name exactly one column of the source"):
            Records.from_batches(table, column="x")


# Outputs lie on their lattice


# Points to a unit: 1 / resolution, and of the default lattice, 10^-6 for a range of 20.
PER_GRID_UNIT, PER_UNIT = 1.0 / GRID["resolution"], 1e6


def on_lattice(values: Any, per_unit: float, low: float, high: float) -> bool:
    flat = np.ravel(values)
    inside = bool(((flat >= low) & (flat <= high)).all())
    return inside and bool((flat == np.rint(flat * per_unit) / per_unit).all())


def by_key(x: Any, **options: Any) -> Any:
    return dpq.quantile_by(x, np.zeros(len(x), dtype=np.int64), groups=[0], **options).values


@pytest.mark.parametrize("key", COLUMNS)
def test_outputs_lie_on_the_lattice(key):
    x = np.asarray(COLUMNS[key], dtype=np.float64)
    low, high = BOUNDS["bounds"]
    for seed in range(3):
        for release in (dpq.joint_exp, dpq.ind_exp, dpq.approx_quantiles, dpq.agg_tree, by_key):
            out = release(x, rng=seed, **LEVELS, **GRID)
            assert on_lattice(out, PER_GRID_UNIT, low, high)
            assert on_lattice(release(x, rng=seed, **LEVELS), PER_UNIT, low, high)
        smooth = dpq.csmooth(x, [0.2, 0.5], rho=0.5, rng=seed, **BOUNDS, **GRID)
        assert on_lattice(smooth, PER_GRID_UNIT, low, high)
        smooth = dpq.csmooth(x, [0.2, 0.5], rho=0.5, rng=seed, **BOUNDS)
        assert on_lattice(smooth, PER_UNIT, low, high)
        for options in (
            dict(),
            dict(method="adaptive"),
            dict(method="gaussian", delta=1e-6),
            dict(method="smooth_gaussian", delta=1e-6),
        ):
            for form, per_unit in ((GRID, PER_GRID_UNIT), ({}, PER_UNIT)):
                curve = dpq.cdf(x, epsilon=1.0, rng=seed, **options, **BOUNDS, **form)
                assert on_lattice(curve.quantile(LEVELS["q"]), per_unit, low, high)
        total = dpq.sum(x, epsilon=1.0, q=None, lower=-4, upper=8, resolution=0.5, rng=seed)
        assert on_lattice(total, 2.0, -math.inf, math.inf)
        out = dpq.unbounded_quantile(x, 0.5, epsilon=1.0, upper=6.0, beta=2.0, rng=seed)
        assert out in (0.0, 1.0, 3.0, 6.0)


# NumPy's error state, where a program asks for an exception: what underflows depends on the records


@pytest.mark.parametrize("name", RELEASES)
def test_release_raises_no_floating_point_error(name):
    for column, x in COLUMNS.items():
        if column.startswith("long"):
            continue
        for seed in range(2):
            expected = RELEASES[name](np.array(x), seed)
            with np.errstate(all="raise"):
                np.testing.assert_array_equal(RELEASES[name](np.array(x), seed), expected)


CURVES = {
    "binary_tree": dict(epsilon=1.0),
    "aggregated": dict(epsilon=1.0, aggregate=True),
    "tiny epsilon": dict(epsilon=1e-6),
    "huge epsilon": dict(epsilon=1e6, resolution=0.01),
    "huge epsilon, many leaves": dict(epsilon=1e6),
    "agg_tree": dict(epsilon=1.0, method="agg_tree"),
    "histogram": dict(epsilon=1.0, method="histogram"),
    "adaptive": dict(epsilon=1.0, method="adaptive"),
    "gaussian": dict(epsilon=1.0, delta=1e-6, method="gaussian"),
    "smooth_gaussian": dict(epsilon=1.0, delta=1e-6, method="smooth_gaussian", levels=3),
}


SMALL_COLUMNS = ["empty", "one", "zeros", "beyond a bound", "normal"]
POINTS = np.linspace(-11.0, 11.0, 9)


@pytest.mark.parametrize(
    ("name", "column"),
    # many leaves take their time
    [
        pytest.param(
            name, column, marks=[pytest.mark.slow] if name == "huge epsilon, many leaves" else []
        )
        for name, column in product(CURVES, SMALL_COLUMNS)
        if "many leaves" not in name
        or column == "normal"
        or (column == "empty" and "huge epsilon" not in name)
    ],
)
def test_distribution_raises_no_floating_point_error(name, column):
    x = np.array(COLUMNS[column])
    seeds = range(1 if "huge epsilon" in name else 5)  # where all noise is 0
    with np.errstate(all="raise"):
        for seed in seeds:
            curve = dpq.cdf(x, rng=seed, **CURVES[name], **BOUNDS)
            found = curve.quantile([0.0, 1e-300, 0.1, 0.5, 1.0])
            assert (np.diff(found) >= 0.0).all()
            assert (np.diff(curve.cdf(POINTS)) >= 0.0).all()
            distances = curve.ks([0.0]), curve.wasserstein([0.0]), curve.energy([0.0])
            assert min(distances) >= 0.0


@pytest.mark.parametrize("column", SMALL_COLUMNS)
def test_tree_raises_no_floating_point_error(column):
    x = np.array(COLUMNS[column])
    with np.errstate(all="raise"):
        for seed in range(5):
            tree = dpq.AggTree.of(x, epsilon=1.0, rng=seed, **BOUNDS)
            assert (np.diff(tree.quantile([0.0, 1e-300, 0.5, 1.0])) >= 0.0).all()
            low, high = tree.quantile_confint([0.0, 0.5, 1.0])
            assert (low <= high).all()
            assert (np.diff(tree.cdf(POINTS)) >= 0.0).all()


@pytest.mark.parametrize("column", ["empty", "one", "zeros", "normal"])
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 1e6])
def test_law_raises_no_floating_point_error(column, epsilon):
    x, options = np.array(COLUMNS[column]), dict(q=[0.2, 0.5], epsilon=epsilon, dither=False)
    with np.errstate(all="raise"):
        for make in (dpq.joint_exp_law, dpq.ind_exp_law, dpq.approx_quantiles_law):
            law = make(x, **options, **BOUNDS)
            assert max(law.log_prob(o) for o in ([-10.0, 10.0], [0.0, 0.0], [10.0, 10.0])) <= 1e-12
        for noise in ("exponential", "laplace", "gumbel"):
            law = dpq.unbounded_quantile_law(
                x, 0.5, epsilon=epsilon, noise=noise, beta=2.0, upper=9.0
            )
            assert max(map(law.log_prob, law.candidates())) <= 1e-9
            law = dpq.above_threshold_law(
                [-1e300, -800.0, *x[:9]], 0.0, epsilon1=epsilon, epsilon2=epsilon, noise=noise
            )
            assert max(map(law.log_prob, [None, *range(2 + x[:9].size)])) <= 1e-9


@pytest.mark.parametrize("m", [1, 2, 50])
@pytest.mark.parametrize("epsilon", [1e-280, 1e-9, 1.0, 50.0, 1e280])
@pytest.mark.parametrize("delta", [5e-324, 1e-300, 1e-12, 0.5])
def test_composition_raises_no_floating_point_error(m, epsilon, delta):
    with np.errstate(all="raise"):
        each = privacy.bounded_range_epsilon_each(m, epsilon, delta)
        assert epsilon / m * (1.0 - 1e-15) <= each
        assert privacy.bounded_range_epsilon(m, epsilon, delta) <= m * epsilon * (1.0 + 1e-15)
        assert 0.0 <= privacy.bounded_range_delta(epsilon, m, 0.3 * m * epsilon) <= 1.0
        assert privacy.zcdp_epsilon(epsilon, delta) >= 0.0
