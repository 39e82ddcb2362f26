"""Objects as bytes: there and back, old ones, exact ones, and those that nobody wrote."""

import copy
import dataclasses
import datetime
import json
import pickle
import struct
import tracemalloc
import zlib
import zoneinfo
from fractions import Fraction
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import dpq_fast as dpq
from dpq_fast.data.keys import CLOCKS, ZONED, Instant, as_array, objects
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.units import unit_of
from dpq_fast.mechanisms.cdf import NOISES
from dpq_fast.noise.counts import Gaussian, Geometric, Laplace
from dpq_fast.planning.plans import Errors
from dpq_fast.released.cdf import CumulativeNoise
from dpq_fast.released.packing import VERSION, Packed, packed, unpacked

DATA = Path(__file__).parent / "data"
CLASSES = (
    *(dpq.AggTree, dpq.PartialTree, dpq.CDF, dpq.Estimate),
    *(dpq.GroupQuantiles, dpq.GroupValues, dpq.Plan),
    *(dpq.Box, dpq.GroupBoxes),
)
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
EAST = datetime.timezone(datetime.timedelta(hours=5, minutes=45))
NOON = datetime.datetime(2021, 3, 1, 12, 30, 15, 250)
PRIOR = stats.norm(50, 20)
DATES = (datetime.date(2021, 1, 1), datetime.date(2022, 1, 1))
# Keys of every kind, as `groups` may hold them.
KEYS = {
    "integers": [3, -7, 2**40],
    "large integers": [2**63 + 1, 0],
    "larger integers": [10**40, -1],
    "strings": ["a", "", "Zürich \U0001f600", "\x00"],
    "booleans": [True, False],
    "days": [*DATES, datetime.date.min],
    "times": [NOON, datetime.datetime.max],
    "times of zones": [NOON.replace(tzinfo=BERLIN), NOON.replace(tzinfo=EAST, hour=1)],
    "put back": [datetime.datetime(2021, 10, 31, 2, 30, fold=f, tzinfo=BERLIN) for f in (0, 1)],
    "of NumPy": [np.datetime64(5, unit) for unit in ("Y", "M", "W", "D", "h", "ms", "ns")],
    "stamps": [pd.Timestamp("2021-03-01", tz="Europe/Berlin"), pd.Timestamp(5).as_unit("ms")],
    "clocks": [datetime.time(1, 2, 3, 4), datetime.time(0)],
    "periods": [pd.Period("2021-03", "M"), pd.Period("2021Q2", "Q")],
    "intervals": [pd.Interval(0.5, 2.5), pd.Interval(pd.Timestamp(0), pd.Timestamp(5), "left")],
    "moments": [Instant(-5, ZONED), Instant(7, CLOCKS)],
    "tuples": [("a", 1, NOON), ("a", None, datetime.time(5)), (("b", 2.5), True, None)],
    "missing": [None, "a"],
}


def parts_equal(one, other):
    """Whether two parts are equal, and of one type."""
    if isinstance(one, np.ndarray):
        same = isinstance(other, np.ndarray) and one.dtype == other.dtype
        if not same or one.shape != other.shape:
            return False
        if one.dtype == object:
            return all(map(parts_equal, one.ravel().tolist(), other.ravel().tolist()))
        return np.array_equal(one, other, equal_nan=one.dtype.kind in "fmM")
    if isinstance(one, (tuple, list)):
        return type(one) is type(other) and len(one) == len(other) and all(
            map(parts_equal, one, other)
        )  # fmt: skip
    if isinstance(one, datetime.datetime) and one == one and one.utcoffset() != other.utcoffset():
        return False
    missing = one != one and other != other
    return type(one) is type(other) and bool(one == other or missing)


def same(one, other):
    """Whether two objects have the same parts and public attributes, and give the same bytes."""
    assert type(one) is type(other)
    mine, yours = one._parts(), other._parts()
    assert mine.keys() == yours.keys()
    for name in mine:
        assert parts_equal(mine[name], yours[name]), name
    for name in (name for name in vars(one) if not name.startswith("_")):
        assert parts_equal(getattr(one, name), getattr(other, name)), name
    assert one.to_bytes() == other.to_bytes()
    return True


def answers(made):
    """What an object says to whoever asks."""
    said = [repr(made), str(made)]
    if isinstance(made, dpq.AggTree):
        q = [0.0, 0.1, 0.5, 0.9, 1.0]
        ends = made.edges[[0, -1]] if made.unit is None else made.unit.restored(made.edges[[0, -1]])
        said += [made.total, made.quantile(q), made.quantile_confint(q), made.first_passage(q)]
        said += [made.cdf(ends), made.cdf(ends, monotone=False), made.count(*ends)]
        said += [made.count_confint(*ends, 0.9), made.quantile_confint(0.5, covers="population")]
    if isinstance(made, dpq.CDF):
        q = [0.0, 0.1, 0.5, 0.9, 1.0]
        said += [made.quantile(q), made(made.quantile(q)), made.ks(made), made.energy(made)]
        said += [made.count(*made.quantile([0.1, 0.9]))] if made.total is not None else []
        said += [made.accuracy(0.1)] if made._noise is not None else []
        said.append(made.to_frame())
    if isinstance(made, dpq.PartialTree):
        said.append(answers(made.merge(made).release(epsilon=0.5, rng=1)))
    if isinstance(made, (dpq.GroupQuantiles, dpq.GroupValues, dpq.GroupBoxes)):
        said += [made.to_json(), [made[key] for key in made], made.to_pandas()]
    if isinstance(made, dpq.Estimate):
        said += [made.to_json(), np.asarray(made)]
    if isinstance(made, dpq.Box):
        said += [made.to_json(), *made]
    if isinstance(made, dpq.Plan):
        said += [made.to_frame(), made.best]
    return [str(each) for each in said]


def plan_of(**parts):
    errors = Errors(np.array([0.5, 2.0]), np.array([1.0, 3.0]), np.array([1.0, 4.0]))
    names = dict(title="Predicted errors, ε", level=0.95, needed=0.25, least=errors)
    columns = dict(epsilon=np.array([0.1, 1.0]), method=np.array(["ind_exp", "joint_exp"]))
    columns |= dict(chosen=np.array([True, False]), n=np.array([10, 10**12]))
    columns |= dict(group=objects(["a", ("b", 2)]), shape=np.array(["normal", "of a spike"]))
    columns |= dict(ranks=errors, values=None, uncertainty=np.array([0.0, 0.125]))
    return dpq.Plan(**names | columns | parts)


def tree_of(
    b=2, height=2, *, noise=None, bounds=(0.0, 8.0), resolution=1, prior=None, unit=None, **more
):
    """A tree of counts that are written here."""
    nodes = [np.arange(b**depth) * 5 - 3 for depth in range(1, height + 1)]
    bounds, lattice = Lattice.between(bounds, resolution, False, prior)
    noise = Geometric(Fraction(7, 3)) if noise is None else noise
    tree = dpq.AggTree(nodes, bounds, noise, lattice=lattice, **more)
    tree.unit = unit
    return tree


def curve_of(noise=None, apart=0.0, **more):
    """A distribution function whose values are written here."""
    x, p = np.array([-1.0, 1.0, 4.0, 8.0]), np.array([0.0, 0.25, 0.5, 1.0])
    _, lattice = Lattice.between((0.0, 8.0), 1, False, None)
    noise = None if noise is None else noise._replace(apart=apart)
    return dpq.CDF(x, p, lattice=lattice, total=20.5, noise=noise, **more)


def grouped(keys, **more):
    keys = as_array(list(keys))
    return dpq.GroupValues(keys, np.arange(keys.size), **more)


def kept():
    """Objects that are written out here, of which bytes of each version are kept."""
    unit = unit_of(dict(bounds=DATES))
    zoned = unit_of(dict(bounds=(NOON.replace(tzinfo=BERLIN), NOON.replace(tzinfo=BERLIN, day=9))))
    third = Geometric(Fraction(1, 3))
    parted = tree_of()
    parted.parts, parted.most = 2**20, 3
    levels = np.array([[0.25, 0.5]])
    values = np.array([[[1.5, -0.0]], [[np.inf, 5e-324]]])
    ends = dict(low=values - 1.0, high=values + 1.0, confidence=0.9, covers="population")
    days = np.array(["2021-03-01", "NaT"], dtype="M8[D]")
    return {
        "tree": tree_of(total=14),
        "tree-3": tree_of(3, 1, noise=Gaussian(Fraction(5, 2)), resolution=0, most=10**6),
        "tree-laplace": tree_of(aggregate=False, noise=Laplace(Fraction(3)), resolution=0.5),
        "tree-prior": tree_of(bounds=(1.0, 1000.0), prior="log", resolution=1),
        "tree-days": tree_of(bounds=(0.0, 365.0), unit=unit),
        "tree-zone": tree_of(bounds=(0.0, 100.0), unit=zoned),
        "tree-persons": parted,
        "partial": dpq.PartialTree.of([1, 2, 2, 7], bounds=(0, 8), resolution=1, height=2,
                                      branching=3),
        "partial-days": dpq.PartialTree.of(np.array(["2021-03-01"], dtype="M8[D]"), bounds=DATES,
                                           height=2, branching=2, nan_policy="raise"),
        "cdf": curve_of(),
        "cdf-tree": curve_of(NOISES["tree"](third, 2, 2, 3, True, False)),
        "cdf-sums": curve_of(NOISES["sums"](Gaussian(Fraction(9)), 3, False)),
        "cdf-halves": curve_of(NOISES["halves"](third, 2, False), 1.5),
        "estimate": dpq.Estimate(7, -np.inf, 9.5, 0.95, "sample"),
        "estimate-levels": dpq.Estimate(values[0], values[0], values[1], 0.5, "population"),
        "estimate-days": dpq.Estimate(days, days, days, 0.5, "sample"),
        "estimate-time": dpq.Estimate(NOON, NOON, NOON.replace(day=2), 0.5, "sample"),
        "estimate-length": dpq.Estimate(*[datetime.timedelta(hours=h) for h in (2, 1, 3)], 0.5,
                                        "sample"),
        "quantiles": dpq.GroupQuantiles(objects([("a", 1), ("b", 2)]), levels, values,
                                        names=("town", 5), **ends),
        "quantiles-one": dpq.GroupQuantiles(np.array([1, 2]), 0.5, np.array([0.1, 0.2])),
        **{f"values-{kind}".replace(" ", "-"): grouped(keys) for kind, keys in KEYS.items()},
        "values-none": grouped([]),
        "box": dpq.Box(-1.5, 0.0, 2.25, 1e300, np.inf, 0.024),
        "box-times": dpq.Box(*[NOON.replace(day=day) for day in range(1, 6)], 0.25),
        "boxes": dpq.GroupBoxes(objects(["a", "b"]), np.arange(10.0).reshape(2, 5), 0.01,
                                names=("town",)),
        "plan": plan_of(),
        "plan-values": plan_of(ranks=None, values=plan_of().ranks, least=None, shape=None,
                               group=None, needed=None),
    }  # fmt: skip


KEPT = kept()


# Exact bytes


def test_bytes_are_as_documented():
    """Each of them: they do not depend on the order of bytes of the machine."""
    made = dpq.Estimate(np.array([1.0, 2.0]), np.array([1, -2], dtype=">i2"), 3, 0.5, "sample")
    text = (
        b'{"value":["array","<f8",[2]],"low":["array","<i2",[2]],"high":3,'
        b'"confidence":["float","0x1.0000000000000p-1"],"covers":"sample"}'
    )
    body = b"\x89dpq\x04\x01" + bytes([len(text)]) + bytes(7) + text
    body += bytes.fromhex("000000000000f03f 0000000000000040 0100 feff")
    assert made.to_bytes() == body + zlib.crc32(body).to_bytes(4, "little")


def test_bytes_of_large_endian_arrays_are_those_of_others():
    tree = tree_of()
    swapped = dpq.AggTree(
        [level.astype(">i8") for level in tree.nodes], tree.bounds, tree.noise, lattice=tree.lattice
    )
    assert swapped.to_bytes() == tree.to_bytes()
    assert all(level.dtype.isnative for level in dpq.AggTree.from_bytes(tree.to_bytes()).nodes)


def test_every_class_has_a_byte_of_its_own():
    names = {1: "AggTree", 2: "PartialTree", 3: "CDF", 4: "Estimate", 5: "GroupQuantiles"}
    assert Packed._kinds == names | {6: "GroupValues", 7: "Plan", 9: "Box", 10: "GroupBoxes"}


@pytest.mark.parametrize("name", KEPT)
def test_bytes_of_version_1_are_read(name):
    """The file was written once, and never again."""
    data = (DATA / f"{name}.1.bin").read_bytes()
    made = type(KEPT[name]).from_bytes(data)
    assert same(made, KEPT[name])
    assert answers(made) == answers(KEPT[name])
    assert VERSION > 1 or KEPT[name].to_bytes() == data  # else give it a new number


def test_all_bytes_that_are_kept_are_read():
    assert {path.name.partition(".")[0] for path in DATA.glob("*.bin")} == KEPT.keys()


# There and back

COUNTED = np.random.default_rng(0).integers(17, 91, size=200)
PLACE = dict(bounds=(0, 120), resolution=0.5)
ROWS = dict(groups=[0, 1], epsilon=1.0, rng=1)
STAMPS = (pd.Timestamp("2021-01-01", tz="Europe/Berlin"), pd.Timestamp("2022", tz="Europe/Berlin"))
HOURS = pd.Series(pd.date_range("2021-03-01", periods=50, freq="h", tz="UTC"))
LENGTHS = dict(bounds=(datetime.timedelta(0), datetime.timedelta(hours=5)))
PERSONS = dict(privacy_unit=np.arange(200) // 3)
# What makes them.
MADE = {
    **{
        f"cdf, {method} {at}": partial(dpq.cdf, COUNTED, method=method, rng=1, **PLACE | options)
        for at, (method, options) in enumerate(
            (
                ("agg_tree", dict(epsilon=1.0, height=2, branching=4)),
                ("agg_tree", dict(epsilon=1.0, height=2, branching=4, aggregate=False)),
                ("agg_tree", dict(epsilon=1.0, height=2, branching=4, resolution=0)),
                ("binary_tree", dict(epsilon=1.0, bins=16, nan_policy="raise")),
                ("two_stage", dict(epsilon=1.0)),
                ("histogram", dict(rho=0.5, bins=16)),
                ("adaptive", dict(epsilon=1.0, bins=16, steps=5)),
                ("factorized", dict(rho=0.5, bins=16)),
                ("gaussian", dict(epsilon=1.0, delta=1e-6, bins=16)),
                ("gaussian", dict(epsilon=1.0, delta=1e-6)),
                ("smooth_gaussian", dict(epsilon=1.0, delta=1e-6)),
            )
        )
    },
    "cdf, prior": lambda: dpq.cdf(COUNTED, epsilon=1.0, prior=PRIOR, rng=1, **PLACE),
    "cdf, dates": lambda: dpq.cdf(np.array(DATES), epsilon=1.0, bounds=DATES, rng=1),
    "cdf, persons": lambda: dpq.cdf(COUNTED, epsilon=1.0, rng=1, **PERSONS, **PLACE),
    "AggTree": lambda: dpq.AggTree.of(COUNTED, epsilon=1.0, rng=1, **PLACE),
    "AggTree, default": lambda: dpq.AggTree.of(COUNTED, epsilon=1.0, rng=1, bounds=(0.1, 130.3)),
    "AggTree, scale-free": lambda: dpq.AggTree.of(
        COUNTED, epsilon=1.0, rng=1, prior="scale-free", bounds=(-1e9, 1e9)
    ),
    "AggTree, prior": lambda: dpq.AggTree.of(
        COUNTED, epsilon=1.0, rng=1, bounds=(0, 200), prior=PRIOR
    ),
    "AggTree, laplace": lambda: dpq.AggTree.of(
        COUNTED, epsilon=1.0, noise="laplace", rng=1, **PLACE
    ),
    "AggTree, gaussian": lambda: dpq.AggTree.of(COUNTED, rho=0.3, noise="gaussian", rng=1, **PLACE),
    "AggTree, zone": lambda: dpq.AggTree.of(HOURS, epsilon=1.0, bounds=STAMPS, rng=1),
    "AggTree, lengths": lambda: dpq.AggTree.of([], epsilon=1.0, rng=1, **LENGTHS),
    "AggTree, persons": lambda: dpq.AggTree.of(COUNTED, epsilon=1.0, rng=1, **PERSONS, **PLACE),
    "PartialTree": lambda: dpq.PartialTree.of(COUNTED, **PLACE),
    "PartialTree, zone": lambda: dpq.PartialTree.of(HOURS, bounds=STAMPS),
    "PartialTree, prior": lambda: dpq.PartialTree.of(COUNTED, bounds=(0, 200), prior=PRIOR),
    "Estimate": lambda: dpq.quantile(
        COUNTED, [[0.2, 0.5]], epsilon=1.0, confidence=0.9, rng=1, **PLACE
    ),
    "Estimate, one": lambda: dpq.median(COUNTED, epsilon=1.0, confidence=0.9, rng=1, **PLACE),
    "Estimate, count": lambda: dpq.count(
        COUNTED, epsilon=1.0, neighbors="add-remove", confidence=0.9, rng=1
    ),
    "Estimate, zone": lambda: dpq.median(HOURS, epsilon=1.0, confidence=0.9, bounds=STAMPS, rng=1),
    "Estimate, zones": lambda: dpq.quantile(
        HOURS, [0.1, 0.5], epsilon=1.0, confidence=0.9, bounds=STAMPS, rng=1
    ),
    "GroupQuantiles": lambda: dpq.quantile_by(COUNTED, COUNTED % 2, [0.2, 0.5], **ROWS, **PLACE),
    "GroupQuantiles, times": lambda: dpq.quantile_by(
        HOURS, np.arange(50) % 2, 0.5, confidence=0.9, bounds=STAMPS, **ROWS
    ),
    "GroupValues": lambda: dpq.count_by(COUNTED, COUNTED % 2, confidence=0.9, **ROWS),
    "GroupValues, names": lambda: dpq.mean_by(
        COUNTED,
        pd.DataFrame({"town": COUNTED % 2, "sex": np.where(COUNTED % 3, "f", "m")}),
        groups=[(0, "f"), (1, "m")],
        epsilon=1.0,
        rng=1,
    ),
    "GroupValues, selected": lambda: dpq.count_by(
        COUNTED, COUNTED % 2, groups=None, epsilon=9.0, delta=1e-3, rng=1
    ),
    "Plan": lambda: dpq.plan(0.5, n=200, epsilon=[1.0, 2.0], **PLACE),
    "Plan, groups": lambda: dpq.plan(
        [0.2, 0.5], groups={"a": 20, "b": 30}, epsilon=1.0, guess=PRIOR, releases=100, **PLACE
    ),
    "Plan, target": lambda: dpq.plan_mean(n=200, target=3.0, guess=PRIOR, releases=100, **PLACE),
}
ALL = [*KEPT, *MADE]


@cache
def made_of(name):
    return KEPT[name] if name in KEPT else MADE[name]()


@pytest.mark.parametrize("name", ALL)
def test_objects_are_the_same_after_bytes(name):
    made = made_of(name)
    again = type(made).from_bytes(made.to_bytes())
    assert same(again, made)
    assert answers(again) == answers(made)
    for form in (bytearray, memoryview):
        assert same(type(made).from_bytes(form(made.to_bytes())), made)


@pytest.mark.parametrize("name", ALL)
def test_objects_are_the_same_after_pickles_and_copies(name):
    made = made_of(name)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert same(pickle.loads(pickle.dumps(made, protocol)), made)
    assert same(copy.copy(made), made) and same(copy.deepcopy(made), made)


def test_arrays_that_come_back_may_be_changed():
    again = dpq.AggTree.from_bytes(KEPT["tree"].to_bytes())
    again.nodes[0][:] = 5
    assert KEPT["tree"].nodes[0].tolist() != [5, 5]


zones = st.one_of(st.none(), st.timezones(), st.just(EAST))
instants = st.datetimes(
    datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1), timezones=zones,
    allow_imaginary=False,
)  # fmt: skip
ticks = st.sampled_from(["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"])
of_numpy = st.builds(np.datetime64, st.integers(-(2**63) + 1, 2**63 - 1), ticks)
plain_keys = st.one_of(
    st.integers(), st.integers(-5, 5), st.text(st.characters(exclude_categories=())),
    st.booleans(), st.dates(), instants, st.times(), of_numpy, st.none(),
    st.builds(Instant, st.integers(), st.just(ZONED)),
    st.builds(pd.Interval, st.integers(-9, 0), st.integers(1, 9),
              st.sampled_from(["left", "both"])),
    st.builds(pd.Timestamp, instants),
    st.builds(lambda n, unit: pd.Period(ordinal=n, freq=unit), st.integers(0, 500),
              st.sampled_from(["D", "M", "h", "W-SUN"])),
)  # fmt: skip
keys = st.one_of(plain_keys, st.tuples(plain_keys, plain_keys))
doubles = st.floats(width=64)


@given(st.lists(keys, max_size=6), st.lists(doubles, min_size=6, max_size=6), st.data())
def test_answers_by_group_are_the_same_after_bytes(groups, numbers, data):
    groups = objects(groups)
    values = np.array(numbers[: groups.size])
    names = tuple(data.draw(st.lists(st.one_of(st.text(), st.integers()), max_size=2)))
    given_ends = data.draw(st.booleans())
    ends = dict(low=values, high=values, confidence=0.9, covers="sample") if given_ends else {}
    made = dpq.GroupValues(groups, values, names=names, **ends)
    assert same(pickle.loads(pickle.dumps(made)), made)
    q = np.array(numbers[:2])
    quantiles = dpq.GroupQuantiles(groups, q, np.stack([values, values], axis=-1), names=names)
    assert same(dpq.GroupQuantiles.from_bytes(quantiles.to_bytes()), quantiles)


@given(
    st.one_of(doubles, st.integers(), instants, of_numpy, st.timedeltas(), st.just(pd.NaT),
              st.builds(np.timedelta64, st.integers(-9, 9), ticks)),
    st.floats(0.0, 1.0, exclude_min=True, exclude_max=True),
)  # fmt: skip
def test_estimates_are_the_same_after_bytes(value, confidence):
    made = dpq.Estimate(value, value, value, confidence, "sample")
    assert same(dpq.Estimate.from_bytes(made.to_bytes()), made)


@st.composite
def trees(draw):
    height, b = draw(st.integers(1, 3)), draw(st.integers(2, 4))
    counts = st.integers(-(2**40), 2**40)
    nodes = [
        np.array(draw(st.lists(counts, min_size=b**depth, max_size=b**depth)))
        for depth in range(1, height + 1)
    ]
    if draw(st.booleans()):
        nodes = [level.astype(np.float64) / 3.0 for level in nodes]
    scale = draw(st.fractions(Fraction(1, 10**40), 2**53))
    noise = draw(st.sampled_from([Geometric, Gaussian, Laplace]))(scale or Fraction(1))
    prior, width = (
        draw(st.sampled_from([None, "log", "scale-free", PRIOR])),
        draw(st.floats(1, 1e9)),
    )
    bounds, lattice = Lattice.between((1.0, 1.0 + width), None, False, prior)
    tree = dpq.AggTree(
        nodes, bounds, noise, aggregate=draw(st.booleans()),
        total=draw(st.none() | st.integers(0, 2**53)), most=draw(st.none() | st.integers(0, 2**53)),
        lattice=draw(st.sampled_from([None, lattice])),
    )  # fmt: skip
    tree.parts, tree.most = draw(st.sampled_from([1, 2**20])), draw(st.integers(1, 9))
    return tree


@given(trees())
def test_trees_are_the_same_after_bytes(tree):
    again = dpq.AggTree.from_bytes(tree.to_bytes())
    assert same(again, tree)
    q = np.linspace(0.0, 1.0, 7)
    np.testing.assert_array_equal(again.quantile(q), tree.quantile(q))
    np.testing.assert_array_equal(again.cdf(tree.edges), tree.cdf(tree.edges))
    np.testing.assert_array_equal(again.quantile_confint(q), tree.quantile_confint(q))


@given(
    st.lists(st.floats(-1e3, 1e3), max_size=20),
    st.sampled_from([None, 0, 0.25]),
    st.sampled_from([None, "log"]),
)
def test_partial_trees_are_the_same_after_bytes(x, resolution, prior):
    prior = None if resolution == 0 else prior
    shape = dict(bounds=(1, 1e3), resolution=resolution, prior=prior, height=2, branching=3)
    tree = dpq.PartialTree.of(x, **shape)
    assert same(dpq.PartialTree.from_bytes(tree.to_bytes()), tree)


# Parts of trees


@pytest.mark.parametrize("send", [lambda tree: dpq.PartialTree.from_bytes(tree.to_bytes()),
                                  lambda tree: pickle.loads(pickle.dumps(tree))])  # fmt: skip
@pytest.mark.parametrize(
    "options",
    [
        PLACE,
        dict(bounds=(0, 120), prior="scale-free"),
        dict(bounds=(0, 120), prior=PRIOR, nan_policy="raise"),
        dict(bounds=(0, 120), resolution=0, height=2, branching=5),
    ],
)
def test_parts_that_were_sent_are_released_as_those_that_stayed(options, send):
    parts = [dpq.PartialTree.of(x, **options) for x in np.array_split(COUNTED, 5)]
    sent = list(map(send, parts))
    for neighbors in ("swap", "add-remove"):
        budget = dict(epsilon=0.3, neighbors=neighbors, rng=7)
        one = parts[0].merge(*parts[1:]).release(**budget)
        other = sent[0].merge(*sent[1:]).release(**budget)
        mixed = sent[0].merge(*parts[1:]).release(**budget)
        assert same(one, other) and same(one, mixed)


def test_parts_of_times_that_were_sent_are_released_as_those_that_stayed():
    parts = [dpq.PartialTree.of(x, bounds=STAMPS) for x in (HOURS[:20], HOURS[20:])]
    sent = [dpq.PartialTree.from_bytes(part.to_bytes()) for part in parts]
    one, other = (p.merge(q).release(epsilon=1.0, rng=1) for p, q in (parts, sent[::-1]))
    assert same(one, other)


# What is private


def test_bytes_of_a_part_hold_its_counts():
    """So they are private, and say so."""
    tree = dpq.PartialTree.of(
        [1] * 77 + [2] * 5, bounds=(0, 8), resolution=1, height=1, branching=8
    )
    assert struct.pack("<qq", 77, 5) in tree.to_bytes()
    assert "Not for release" in dpq.PartialTree.to_bytes.__doc__
    assert "private" in dpq.PartialTree.__doc__


@pytest.mark.parametrize("aggregate", [True, False])
def test_bytes_of_a_tree_are_those_of_its_noisy_counts(monkeypatch, aggregate):
    """Of other records, with noise that makes up for them, they are the same."""
    found = set()
    for records in ([1, 2, 2, 7], [0, 0, 0, 0], [5], []):
        parts = dpq.PartialTree.of(records, bounds=(0, 8), resolution=1, height=2, branching=3)
        exact = parts._leaves
        levels = iter([exact, exact.reshape(-1, 3).sum(axis=1)])
        monkeypatch.setattr(Geometric, "draw", lambda self, size, rng, of=levels: 9 - next(of))
        for after in (lambda tree: tree, answers):
            levels = iter([exact, exact.reshape(-1, 3).sum(axis=1)])
            monkeypatch.setattr(Geometric, "draw", lambda self, size, rng, of=levels: 9 - next(of))
            tree = parts.release(epsilon=1.0, aggregate=aggregate, neighbors="add-remove", rng=1)
            after(tree)  # what it keeps for later questions is not sent
            found |= {tree.to_bytes(), pickle.dumps(tree)}
    assert len(found) == 2


@pytest.mark.parametrize("name", ALL)
def test_pickles_hold_bytes_and_nothing_else(name):
    made = made_of(name)
    before = pickle.dumps(made)
    answers(made)
    vars(made)["_records"] = "kept beside"
    try:
        assert pickle.dumps(made) == before and b"kept beside" not in before
    finally:
        del vars(made)["_records"]
    assert made.to_bytes() in before


# Bytes that are refused


def sealed(body):
    return body + struct.pack("<I", zlib.crc32(body))


def forged(kind, parts, arrays=b""):
    """Bytes with a text of any kind, and what is right about all else."""
    text = parts if isinstance(parts, bytes) else json.dumps(parts).encode()
    return sealed(struct.pack("<4sBBQ", b"\x89dpq", kind._byte, VERSION, len(text)) + text + arrays)


DAMAGED = "data must be as `to_bytes` gave them, got bytes cut off or damaged"


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("data", [None, "text", 5, [1], np.datetime64(5, "s"), object()])
def test_what_is_no_bytes_is_refused(kind, data):
    with pytest.raises(TypeError, match=f"data must be bytes, got {type(data).__name__}"):
        kind.from_bytes(data)


@pytest.mark.parametrize("kind", CLASSES)
def test_bytes_of_another_class_are_refused(kind):
    for made in KEPT.values():
        if not isinstance(made, kind):
            words = f"data must be those of {kind.__name__}, got those of {type(made).__name__}"
            with pytest.raises(ValueError, match=words):
                kind.from_bytes(made.to_bytes())


@pytest.mark.parametrize(
    "data", [b"", b"\x89dp", b"\x89dpq\x01", b"PK\x03\x04" + bytes(90), bytes(90)]
)
def test_other_bytes_are_refused(data):
    for kind in CLASSES:
        with pytest.raises(ValueError, match="data must be bytes that `to_bytes` gave, got others"):
            kind.from_bytes(data)


def test_bytes_of_a_newer_version_are_refused():
    data = bytearray(KEPT["tree"].to_bytes()[:-4])
    data[5] = VERSION + 1
    words = f"data must be of version {VERSION} at most, got those of version {VERSION + 1}"
    with pytest.raises(ValueError, match=words):
        dpq.AggTree.from_bytes(sealed(bytes(data)))
    data[4] = 200  # whatever it is of
    with pytest.raises(ValueError, match=words):
        dpq.AggTree.from_bytes(sealed(bytes(data)))
    for byte, to in ((5, 0), (4, 200)):
        data = bytearray(KEPT["tree"].to_bytes()[:-4])
        data[byte] = to
        with pytest.raises(ValueError, match=DAMAGED):
            dpq.AggTree.from_bytes(sealed(bytes(data)))


@pytest.mark.parametrize("name", KEPT)
def test_bytes_that_are_cut_off_or_flipped_are_refused(name):
    """At every byte."""
    kind, data = type(KEPT[name]), KEPT[name].to_bytes()
    for end in range(len(data)):
        with pytest.raises(ValueError, match="data must be"):
            kind.from_bytes(data[:end])
        flipped = bytearray(data)
        flipped[end] ^= 1 << end % 8
        with pytest.raises(ValueError, match="data must be"):
            kind.from_bytes(flipped)
    with pytest.raises(ValueError, match=DAMAGED):
        kind.from_bytes(data + b"\x00")


@pytest.mark.parametrize("name", KEPT)
def test_bytes_that_were_changed_on_purpose_are_refused_or_work(name):
    """With a checksum that fits: at random places, by bits, and by other text."""
    kind, data = type(KEPT[name]), KEPT[name].to_bytes()[:-4]
    rng = np.random.default_rng(3)
    read = 0
    for _ in range(100):
        forgery = bytearray(data)
        for at in rng.integers(6, len(data), size=rng.integers(1, 3)):
            words = bytes(rng.choice(list(b'0123456789-+.,"[]{}ntfpx\xff\x7f\x00')) for _ in "a")
            forgery[at] = rng.choice([forgery[at] ^ (1 << rng.integers(8)), *words])
        try:
            made = kind.from_bytes(sealed(bytes(forgery)))
        except ValueError as error:
            assert str(error).startswith("data must be"), error
            continue
        read += 1
        try:
            assert len(answers(made)) >= 2
            assert made.to_bytes()
        except ValueError:  # as times beyond those that there are
            pass
    assert read > 0 or name == "values-none"


FLOAT = ["float", "0x1p+0"]
BOUNDS = ["tuple", ["float", "0x0p+0"], ["float", "0x1p+3"]]
NOISE = ["noise", "geometric", ["fraction", 7, 3]]
TREE = dict(
    nodes=["list", ["array", "<i8", [2]]], bounds=BOUNDS, noise=NOISE, total=None, most=None
)
TREE |= dict(aggregate=True, lattice=None, unit=None, parts=1, max_contributions=1)
TWO = struct.pack("<qq", 5, 6)


def test_forged_trees_are_read_where_nothing_is_wrong():
    assert dpq.AggTree.from_bytes(forged(dpq.AggTree, TREE, TWO)).nodes[0].tolist() == [5, 6]


@pytest.mark.parametrize(
    "parts",
    [
        {"nodes": ["list", ["array", "<i8", [10**12]]]},
        {"nodes": ["list", ["array", "<i8", [2**62, 2**62]]]},
        {"nodes": ["list", ["array", "<i8", [-1]]]},
        {"nodes": ["list", ["array", "<i8", [2, 2**40, 0]]]},
        {"nodes": ["list", ["array", "<U99999999999", [1]]]},
        {"nodes": ["list", ["array", "<U4", [1]]]},
        {"nodes": ["list", ["array", "O", [2], 5, 6]]},
        {"nodes": ["list", ["array", ">i8", [2]]]},
        {"nodes": ["list", ["array", "|O8", [2]]]},
        {"nodes": ["list", ["array", "<f8", [2], 1]]},
        {"nodes": ["list", ["array", "<M8[s]", [2]]]},
        {"nodes": ["list", ["array", "<i8", [1]]]},
        {"nodes": ["list"]},
        {"nodes": {"list": 1}},
        {"nodes": 1.5},
        {"bounds": ["tuple", FLOAT, FLOAT]},
        {"bounds": ["tuple", FLOAT, ["float", "inf"]]},
        {"bounds": ["tuple", FLOAT, ["float", "x"]]},
        {"noise": None},
        {"noise": ["noise", "geometric", ["fraction", 1, 0]]},
        {"noise": ["noise", "geometric", ["fraction", -1, 3]]},
        {"noise": ["noise", "geometric", ["float", "nan"]]},
        {"noise": ["noise", "geometric", 2**64]},
        {"noise": ["noise", "uniform", 1]},
        {"lattice": ["lattice", FLOAT, ["float", "0x1p+3"], ["float", "0x0p+0"], 0, None, None]},
        {"lattice": ["lattice", *BOUNDS[1:], ["float", "-0x1p+0"], 0, None, None]},
        {"lattice": ["lattice", *BOUNDS[1:], FLOAT, 99, None, None]},
        {"lattice": ["lattice", FLOAT, ["float", "0x1p+3"], FLOAT, 0, None, None]},
        {"unit": FLOAT},
        {"unit": ["unit", "times", 0, 0, None, "numpy", "D"]},
        {"unit": ["unit", "times", 10**60, 1, None, "numpy", "D"]},
        {"unit": ["unit", "times", 0, 1, "../../etc/passwd", "numpy", "D"]},
        {"unit": ["unit", "times", 0, 1, "Nowhere/Town", "numpy", "D"]},
        {"unit": ["unit", "times", 0, 1, 10**20, "numpy", "D"]},
        {"unit": ["unit", "spaces", 0, 1, None, "numpy", "D"]},
        {"unit": ["unit", "times", 0, 1, None, "os", "D"]},
        {"parts": 0},
        {"max_contributions": None},
        {"aggregate": 1.5},
        {"secret": 1},
        {"nodes": ["os.system", "true"]},
        {"nodes": ["__import__", "os"]},
    ],
)
def test_forged_trees_are_refused(parts):
    with pytest.raises(ValueError, match=DAMAGED):
        dpq.AggTree.from_bytes(forged(dpq.AggTree, TREE | parts, TWO))


def test_forged_texts_are_refused():
    deep = b'{"nodes":' + b"[" * 10**6 + b"]" * 10**6 + b"}"
    tuples = b'{"nodes":' + b'["tuple",' * 5_000 + b"1" + b"]" * 5_000 + b"}"
    long = b'{"total":' + b"9" * 10**5 + b"}"
    for text in (deep, tuples, long, b"", b"5", b"[]", b"\xff", b'{"nodes":NaN}', b"{" + b" " * 50):
        with pytest.raises(ValueError, match=DAMAGED):
            dpq.AggTree.from_bytes(forged(dpq.AggTree, text, TWO))
    with pytest.raises(ValueError, match=DAMAGED):
        dpq.AggTree.from_bytes(forged(dpq.AggTree, TREE, TWO + b"\x00"))


def test_lengths_are_checked_before_memory_is_taken():
    head = struct.pack("<4sBBQ", b"\x89dpq", 1, VERSION, 2**64 - 1)
    large = {"nodes": ["list", ["array", "<i8", [2**40]]]}
    tracemalloc.start()
    for data in (sealed(head), sealed(head + bytes(50)), forged(dpq.AggTree, TREE | large, TWO)):
        with pytest.raises(ValueError, match=DAMAGED):
            dpq.AggTree.from_bytes(data)
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


@pytest.mark.parametrize(
    "name, parts",
    [
        ("partial", {"leaves": np.full(9, -1)}),
        ("partial", {"leaves": np.full(9, 2**62)}),
        ("partial", {"leaves": np.zeros(9)}),
        ("partial", {"leaves": np.zeros(8, dtype=np.int64)}),
        ("partial", {"height": 20}),
        ("partial", {"height": 27, "branching": 2}),
        ("partial", {"branching": 9}),
        ("partial", {"bounds": (0.0, 9.0)}),
        ("partial", {"bounds": None}),
        ("partial", {"n_is_public": None}),
        ("partial", {"unit": 5}),
        ("cdf", {"p": np.array([0.0, 0.5, 0.25, 1.0])}),
        ("cdf", {"x": np.array([-1.0, 1.0, 4.0, 8.5])}),
        ("cdf", {"total": -1.0}),
        ("cdf", {"edges": np.array([0.0, 0.5])}),
        ("cdf-tree", {"noise": (0.0, "tree", 5, 2, 2, 3, True, True)}),
        ("cdf-tree", {"noise": (np.inf, "tree", Geometric(Fraction(3)), 2, 2, 3, True, True)}),
        ("cdf-tree", {"noise": (0.0, "tree", Geometric(Fraction(3)), 40, 2, 3, True, True)}),
        ("cdf-tree", {"noise": (0.0, "tree", Geometric(Fraction(3)), 2, 2, 5, True, True)}),
        ("cdf-sums", {"noise": (0.0, "sums", Geometric(Fraction(3)), 2**20, True)}),
        ("cdf-halves", {"noise": (0.0, "halves", Geometric(Fraction(3)), 60, True)}),
        ("cdf-halves", {"noise": (0.0, "eval", "1")}),
        ("estimate", {"low": np.zeros(2)}),
        ("estimate", {"confidence": 2.0}),
        ("estimate", {"confidence": "x"}),
        ("box", {"level": 0.7}),
        ("box", {"level": None}),
        ("box", {"low": "x"}),
        ("boxes", {"values": np.zeros((2, 4))}),
        ("boxes", {"level": "x"}),
        ("quantiles", {"values": np.zeros(2)}),
        ("quantiles", {"low": None}),
        ("quantiles", {"confidence": None}),
        ("quantiles", {"confidence": 1.0}),
        ("quantiles", {"groups": np.zeros((2, 1))}),
        ("quantiles", {"groups": objects([[1], [2]])}),
        ("quantiles", {"names": "town"}),
        ("plan", {"n": np.zeros(3, dtype=np.int64)}),
        ("plan", {"n": np.zeros(2)}),
        ("plan", {"ranks": None}),
        ("plan", {"title": 5}),
        ("plan", {"level": 2.0}),
        ("plan", {"ranks": (np.zeros(2),)}),
    ],
)
def test_parts_that_do_not_fit_are_refused(name, parts):
    made = KEPT[name]
    with pytest.raises(ValueError, match=DAMAGED):
        type(made).from_bytes(packed(made._byte, made._parts() | parts))


# What cannot become bytes


class Own:
    """A type that nothing is known of."""


@pytest.mark.parametrize(
    "made, words",
    [
        (grouped([Own()]), "parts must be numbers, texts, times or keys .* got Own"),
        (grouped([1], names=(Own(),)), "parts must be numbers, texts, times or keys .* got Own"),
        (grouped([1j]), "got complex"),
        (dpq.Estimate(np.array([1j]), 1, 1, 0.5, "sample"), "arrays must hold numbers, .* complex"),
        (
            dpq.Estimate(NOON.replace(tzinfo=datetime.tzinfo()), 1, 1, 0.5, ""),
            "time zones must have",
        ),
        (
            curve_of(CumulativeNoise(Geometric(Fraction(1)), lambda: np.ones(4), True)),
            "of a release",
        ),
    ],
)
def test_what_bytes_have_no_form_for_is_refused(made, words):
    class Zone(datetime.tzinfo):
        def utcoffset(self, _):
            return datetime.timedelta(0)

    if isinstance(made, dpq.Estimate) and isinstance(made.value, datetime.datetime):
        made = dataclasses.replace(made, value=NOON.replace(tzinfo=Zone()))
    for call in (made.to_bytes, lambda: pickle.dumps(made)):
        with pytest.raises(TypeError, match=words):
            call()


def test_keys_of_arrow_become_those_of_python():
    pa = pytest.importorskip("pyarrow")
    made = grouped([pa.scalar("a"), pa.scalar(DATES[0])])
    assert dpq.GroupValues.from_bytes(made.to_bytes()).groups.tolist() == ["a", DATES[0]]


def test_parts_of_packed_objects_are_read_by_name():
    assert unpacked(4, "Estimate", {}, packed(4, {"a": (1, None, True)})) == {"a": (1, None, True)}
