"""Quantiles by group: law of each group, keys, threads, and the promise over all groups."""

from __future__ import annotations

import dataclasses
import importlib
import json
import math
import re
import sys
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from functools import cache
from itertools import combinations_with_replacement, product
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import SMALLEST_P, assert_draws_follow, lattice_of, tabulate
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from randomgen import ChaCha
from scipy import stats

import dpq_fast as dpq
import enumeration
from dpq_fast import privacy, reference
from dpq_fast._kernels import groups_release, groups_scatter
from dpq_fast._prepared import Prepared
from dpq_fast.data import key_columns, keys, public_keys
from dpq_fast.data.lattice import Lattice
from dpq_fast.laws.depth import DepthLaw
from dpq_fast.privacy import Accountant, BudgetExceeded, guarantee

module = importlib.import_module("dpq_fast.mechanisms.quantile_by")
grouping = importlib.import_module("dpq_fast.mechanisms.grouping")

Q = [0.3, 0.5, 0.7]
OPTIONS = {"epsilon": 2.0, "bounds": (0.0, 4.0)}
# Records of a group on 0 .. 4: none, one, all tied, two of one size and span of ranks one after the
# other (which share their decays), ties at both ends, many.
SAMPLES = [[], [1], [2, 2, 2], [0, 2, 2, 3], [1, 1, 3, 3], [0, 0, 4, 4, 4], list(range(5)) * 4]


def rows_of(samples, copies: int, rng=0):
    """Rows of copies of each sample in random order; group g holds samples[g % len(samples)]."""
    x = np.concatenate([np.array(sample, dtype=float) for sample in samples] * copies)
    sizes = [len(sample) for sample in samples] * copies
    by = np.repeat(np.arange(len(sizes)), sizes)
    order = np.random.default_rng(rng).permutation(x.size)
    return x[order], by[order], np.arange(len(sizes))


def cells_of(law, cells: int, m: int) -> dict:
    """Law over unit cells of one density each; k outputs in one cell have 1 / k! of its power."""
    return {
        cell: law.log_prob(np.array(cell) + 0.5)
        - sum(math.lgamma(cell.count(a) + 1.0) for a in set(cell))
        for cell in combinations_with_replacement(range(cells), m)
    }


# The law of each group


@pytest.mark.parametrize(
    ("neighbors", "public_by", "each", "relation"),
    [
        ("swap", False, 1.0, "add-remove"),
        ("swap", True, 2.0, "swap"),
        ("add-remove", False, 2.0, "add-remove"),
        ("add-remove", True, 2.0, "add-remove"),
    ],
)
def test_quantile_by_draws_follow_the_law_of_each_group(neighbors, public_by, each, relation):
    x, by, groups = rows_of(SAMPLES, 4_000)
    out = dpq.quantile_by(
        x,
        by,
        Q,
        groups=groups,
        neighbors=neighbors,
        public_by=public_by,
        resolution=1,
        dither=False,
        rng=3,
        **OPTIONS,
    )
    assert out.values.shape == (groups.size, 3)
    for i, sample in enumerate(SAMPLES):
        law = reference.joint_exp_law(
            np.array(sample, dtype=float),
            Q,
            epsilon=each,
            bounds=(0, 4),
            neighbors=relation,
            resolution=1,
            dither=False,
        )
        draws = out.values[i :: len(SAMPLES)].astype(int)
        assert_draws_follow(map(tuple, draws.tolist()), tabulate(law, 5, 3))


def test_quantile_by_large_groups_follow_their_law(monkeypatch):
    monkeypatch.setattr(module, "SMALL_ENTRIES", 12)  # up to 3 records are small
    x, by, groups = rows_of(SAMPLES, 2_000)
    out = dpq.quantile_by(x, by, Q, groups=groups, resolution=1, dither=False, rng=4, **OPTIONS)
    for i, sample in enumerate(SAMPLES):
        law = dpq.joint_exp_law(
            np.array(sample, dtype=float),
            Q,
            epsilon=1.0,
            bounds=(0, 4),
            neighbors="add-remove",
            resolution=1,
            dither=False,
        )
        draws = out.values[i :: len(SAMPLES)].astype(int)
        assert_draws_follow(map(tuple, draws.tolist()), tabulate(law, 5, 3))


@pytest.mark.parametrize("bits", [1, 2])
def test_releases_follow_the_law_over_all_dithers(bits):
    """The kernel's own dither, exactly, on a lattice of few bits."""
    samples, q, copies = [[], [1], [0, 1, 1], [2, 2]], [0.25, 0.6], 5_000
    x, by, groups = rows_of(samples, copies)
    lattice = lattice_of(3, bits)
    releases = groups_release.Releases(np.array(q), 0.5, (0.0, 2.0), lattice)
    start, ordered = groups_scatter.order(x, by.astype(np.uint16), groups.size)
    points = np.empty((groups.size, 2), dtype=np.int64)
    order = np.argsort(np.diff(start), kind="stable")
    rng = np.random.default_rng(5)
    assert releases.run(start, ordered, order, 0, points, rng) == (groups.size, None)
    for i, sample in enumerate(samples):
        law = enumeration.joint_exp_dithered(sample, 3, q, 0.5, bits)
        draws = points[i :: len(samples)] >> bits
        assert_draws_follow(map(tuple, draws.tolist()), law)


@pytest.mark.parametrize("bits", [8, 24, 32])
def test_groups_side_by_side_are_dithered_as_one_is(bits):
    """The middle one of tied records lies as of one group."""
    n, copies, q = 41, 200_000, np.array([0.5])
    releases = groups_release.Releases(q, 8.0, (0.0, 2.0), lattice_of(3, bits))
    start, rng = np.arange(copies + 1) * n, np.random.default_rng(14)
    beside, alone = (np.empty((size, 1), dtype=np.int64) for size in (copies, 8_000))
    assert releases.run(start, np.ones(copies * n), np.arange(copies), 0, beside, rng)[0] == copies
    for row in range(alone.size):
        assert releases.run(start[:2], np.ones(n), np.arange(1), 0, alone[row:], rng)[0] == 1
    edges = np.unique(np.quantile(alone, np.arange(1, 16) / 16, method="lower"))[:-1]
    parts = edges.size + 1
    counts = [
        np.bincount(np.searchsorted(edges, of[:, 0], side="right"), minlength=parts)
        for of in (beside, alone)
    ]
    assert stats.chi2_contingency(counts).pvalue > SMALLEST_P
    assert (beside >> bits == 1).all()


def test_groups_side_by_side_have_dithers_of_their_own():
    """Of two tied records in each, what lies between them tells the lowest bit of the shift."""
    copies, rng = 4_000, np.random.default_rng(15)
    releases = groups_release.Releases(np.array([0.5]), 8.0, (0.0, 2.0), lattice_of(3, 2))
    points = np.empty((copies, 1), dtype=np.int64)
    start = 2 * np.arange(copies + 1)
    assert releases.run(start, np.ones(2 * copies), np.arange(copies), 0, points, rng)[0] == copies
    assert (points >> 2 == 1).all()
    # between offsets 0 and 2, or 1 and 3
    single = {1: math.log(0.25), 2: math.log(0.5), 3: math.log(0.25)}
    law = {(a, b): single[a] + single[b] for a in single for b in single}
    assert_draws_follow(map(tuple, (points.reshape(-1, 2) & 3).tolist()), law)


ADVERSARIAL = {
    "one": [3],
    "two": [0, 8],
    "a gap": [0] * 3 + [1, 1, 8, 8, 8, 8],
    "a cluster": [0, 2] + [4] * 20 + [5, 7, 8],
    "atoms at the bounds": [0] * 9 + [3] + [8] * 9,
    "tied": [6] * 16,
    "spread": [0, 1, 1, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 6, 7, 8, 8],
}


@pytest.mark.parametrize("light", [None, 0.05, 0.9])
@pytest.mark.parametrize(
    ("q", "rate"), [([0.25, 0.5, 0.75], 0.25), ([0.5], 0.02), ([0.4, 0.45, 1.0], 20.0)]
)
def test_groups_side_by_side_follow_the_law(q, rate, light):
    """`light` makes most weights such that are drawn by themselves."""
    copies, options = 4_001, {} if light is None else {"light": light}
    releases = groups_release.Releases(np.array(q), rate, (0.0, 8.0), lattice_of(9, 0), **options)
    for sample in ADVERSARIAL.values():
        points = np.empty((copies, len(q)), dtype=np.int64)
        start, order = np.arange(copies + 1) * len(sample), np.arange(copies)
        value = np.tile(np.array(sample, dtype=float), copies)
        rng = np.random.default_rng(12)
        assert releases.run(start, value, order, 0, points, rng) == (copies, None)
        law = enumeration.joint_exp(sample, 9, q, rate)
        assert_draws_follow(map(tuple, points.tolist()), law)


@pytest.mark.parametrize("light", [2.0**-16, 0.9])
def test_groups_side_by_side_follow_the_density(light):
    sample, q, copies = [0.0, 2.0, 2.0, 3.0, 3.0, 3.0], [0.2, 0.7], 6_000
    releases = groups_release.Releases(np.array(q), 0.25, (0.0, 4.0), None, light=light)
    numbers = np.empty((copies, 2))
    value, start = np.tile(sample, copies), np.arange(copies + 1) * len(sample)
    rng = np.random.default_rng(13)
    assert releases.run(start, value, np.arange(copies), 0, numbers, rng) == (copies, None)
    law = reference.joint_exp_law(sample, q, resolution=0, epsilon=1.0, bounds=(0, 4))
    assert_draws_follow(map(tuple, np.floor(numbers).astype(int).tolist()), cells_of(law, 4, 2))


@pytest.mark.parametrize("entries", [0, 20_000])
def test_quantile_by_dithers_integers(entries, monkeypatch):
    """All records on one point: the answer is that point, which no undithered release finds."""
    monkeypatch.setattr(module, "SMALL_ENTRIES", entries)
    x, by = np.full(600, 37), np.arange(600) % 3
    out = dpq.quantile_by(
        x, by, Q, groups=range(3), epsilon=4.0, bounds=(0, 100), resolution=1, rng=1
    )
    assert (out.values == 37.0).all()


@pytest.mark.parametrize("entries", [0, 20_000])
@pytest.mark.parametrize(
    "sample", [[], [0.0, 2.0, 2.0, 3.0], [1e-300, 1.0], [-5.0, -0.0, 0.0, 9.0]], ids=str
)
def test_quantile_by_draws_follow_the_density(sample, entries, monkeypatch):
    monkeypatch.setattr(module, "SMALL_ENTRIES", entries)
    x, by, groups = rows_of([sample], 3_000)
    out = dpq.quantile_by(
        x, by, [0.3, 0.7], groups=groups, resolution=0, neighbors="add-remove", rng=6, **OPTIONS
    )
    law = reference.joint_exp_law(
        sample, [0.3, 0.7], resolution=0, neighbors="add-remove", **OPTIONS
    )
    assert_draws_follow(map(tuple, np.floor(out.values).astype(int).tolist()), cells_of(law, 4, 2))
    assert (np.diff(out.values) >= 0.0).all()


def test_releases_leave_out_of_range_groups_to_the_caller_with_their_dither():
    releases = groups_release.Releases(np.array([0.3, 0.7]), 0.5, (0.0, 1.0), None)
    value = np.array([0.5, 0.75, 1.0, 1e-300, 0.25])
    start = np.array([0, 2, 5, 5])
    answers = np.full((3, 2), np.nan)
    rng = np.random.default_rng(0)
    order = np.array([2, 1, 0])
    at, points = releases.run(start, value, order, 0, answers, rng)
    assert at == 1 and points.tolist() == [1e-300, 0.25, 1.0]
    assert not np.isnan(answers[2]).any() and np.isnan(answers[:2]).all()
    assert releases.run(start, value, order, 2, answers, rng) == (3, None)
    assert np.isnan(answers[1]).all() and not np.isnan(answers[0]).any()
    for wrong in ([3], [-1]):
        with pytest.raises(ValueError, match="each group needs a start and a row"):
            releases.run(start, value, np.array(wrong), 0, answers, rng)

    lattice = lattice_of(1_000, 4)
    releases = groups_release.Releases(np.array([0.3, 0.7]), 5_000.0, (0.0, 999.0), lattice)
    points = np.empty((1, 2), dtype=np.int64)
    at, dithered = releases.run(
        np.array([0, 3]), np.array([7.0, 3, 3]), np.array([0]), 0, points, rng
    )
    assert at == 0
    assert (dithered >> 4).tolist() == [3, 3, 7] and (np.diff(dithered) >= 0).all()
    out = dpq.quantile_by(
        [7.0, 3.0, 3.0],
        [0, 0, 0],
        [0.3, 0.7],
        groups=[0],
        epsilon=20_000.0,
        bounds=(0.0, 999.0),
        resolution=1,
    )
    assert set(out[0].tolist()) <= {3.0, 4.0, 5.0, 6.0, 7.0}


@given(st.lists(st.integers(-(2**62), 2**62), max_size=300), st.integers(0, 62))
def test_sort_equals_numpy(points, shift):
    points = np.array(points, dtype=np.int64) >> shift
    assert np.array_equal(groups_release.sort(points), np.sort(points))


def test_sort_of_runs_by_the_zero_one_principle():
    for n in range(18):
        for bits in range(1 << n if n <= 9 else 512):
            points = np.array([bits >> i & 1 for i in range(n)], dtype=np.int64)
            assert (np.diff(groups_release.sort(points)) >= 0).all()


def law_of_group(sample, points, q, spent):
    """By brute force."""
    if spent.method == "ind_exp":
        return enumeration.ind_exp(sample, points, q, [spent.rate])
    return enumeration.joint_exp(sample, points, q, spent.rate)


@pytest.mark.parametrize("method", [None, "ind_exp", "joint_exp"])
def test_quantile_by_reference_follows_the_same_law(method):
    x, by, groups = rows_of([[0, 2, 2, 3], [1]], 400)
    spent = privacy.quantile_by.calibrate(0.5, epsilon=2.0, method=method)
    assert spent.method == (method or "ind_exp")
    for implementation in (dpq, reference):
        out = implementation.quantile_by(
            x,
            by,
            0.5,
            groups=groups,
            method=method,
            resolution=1,
            dither=False,
            rng=8,
            **OPTIONS,
        )
        for i, sample in enumerate([[0, 2, 2, 3], [1]]):
            law = law_of_group(sample, 5, [0.5], spent)
            assert_draws_follow(((int(v),) for v in out.values[i::2]), law)


@pytest.mark.slow
@pytest.mark.parametrize("entries", [0, 3, 20_000])
@pytest.mark.parametrize("q", [0.0, 0.4, 1.0])
def test_quantile_by_single_level_follows_the_law_of_depth(q, entries, monkeypatch):
    monkeypatch.setattr(module, "SMALL_ENTRIES", entries)
    x, by, groups = rows_of(SAMPLES, 1_200)
    out = dpq.quantile_by(x, by, q, groups=groups, resolution=1, rng=3, **OPTIONS)
    for i, sample in enumerate(SAMPLES):
        law = enumeration.ind_exp(sample, 5, [q], [1.0 / (2.0 * max(q, 1.0 - q))])
        assert_draws_follow(((int(v),) for v in out.values[i :: len(SAMPLES)]), law)


@pytest.mark.parametrize("rate", [0.05, 0.6])
@pytest.mark.parametrize("q", [0.0, 0.3, 0.9])
def test_flips_follow_the_law_of_many_intervals(q, rate):
    """Blocks of intervals, those that are opened and those that are not."""
    rng = np.random.default_rng(0)
    values = np.rint(rng.normal(50.0, 20.0, size=60)).clip(0.0, 99.0)
    lattice, copies = lattice_of(100, 0), 20_000
    releases = groups_release.Releases(np.array([q]), rate, (0.0, 99.0), lattice)
    points = np.empty((copies, 1), dtype=np.int64)
    start = np.arange(copies + 1) * values.size
    releases.flip(start, np.tile(values, copies), 0, copies, points, rng)
    order = dpq.Sample.of(values, (0.0, 99.0), resolution=1, dither=False).order()
    law = DepthLaw(order, q, rate, flip=True)
    expected = {(point,): law.log_prob(np.array([point])) for point in range(100)}
    assert_draws_follow(map(tuple, points.tolist()), expected)


def test_flips_are_for_one_level_and_a_lattice_without_dither():
    answers, rng = np.empty((0, 1), dtype=np.int64), np.random.default_rng(0)
    for q, lattice in (([0.5], None), ([0.5], lattice_of(3, 1)), ([0.2, 0.5], lattice_of(3, 0))):
        releases = groups_release.Releases(np.array(q), 0.5, (0.0, 2.0), lattice)
        with pytest.raises(ValueError, match="flips are for one level"):
            releases.flip(np.array([0]), np.empty(0), 0, 0, answers, rng)


def test_flips_of_one_sample_are_for_a_lattice_without_dither():
    rng, q, value = np.random.default_rng(0), np.array([0.2, 0.5]), np.zeros(3)
    for lattice in (None, lattice_of(3, 1)):
        with pytest.raises(ValueError, match="flips are for a lattice without dither"):
            groups_release.Releases(q, 0.0, (0.0, 2.0), lattice).flip_one(value, np.ones(2), rng)
    releases = groups_release.Releases(q, 0.0, (0.0, 2.0), lattice_of(3, 0))
    with pytest.raises(ValueError, match="each level needs a rate"):
        releases.flip_one(value, np.ones(3), rng)


@pytest.mark.parametrize(
    ("groups", "chunk", "chunks"),
    [(0, 1, 0), (1, 1, 1), (8, 1, 8), (9, 2, 5), (1_000, 128, 8), (10**6, 1_024, 977)],
)
def test_chunks_of_few_groups_are_shared_by_threads(groups, chunk, chunks):
    keys = groups_scatter.Keys(groups, 0, None)
    assert (keys.groups, keys.chunk, keys.chunks) == (groups, chunk, chunks)


def test_quantile_by_of_one_level_finds_a_tied_value_without_dither():
    x, by = np.repeat([37.0, 80.0], [401, 199]), np.arange(600) % 3
    for q, answer in ((0.5, 37.0), (0.9, 80.0)):
        for implementation in (dpq, reference):
            out = implementation.quantile_by(
                x, by, q, groups=range(3), epsilon=4.0, bounds=(0, 100), resolution=1, rng=1
            )
            assert (out.values == answer).all()


def test_quantile_by_chooses_the_mechanism_by_public_arguments(implementation, monkeypatch):
    form = dict(groups=[0, 1], bounds=(0, 4), epsilon=0.5, rng=1)
    x, by = [1.0, 2.0, 3.0], [0, 0, 1]

    def charged(q, accountant=None, **more):
        spent = []
        monkeypatch.setattr(
            privacy, "charge", lambda _, calibration, *__: spent.append(calibration)
        )
        implementation.quantile_by(x, by, q, accountant=accountant, **form | more)
        return spent[0].guarantee.bounded_range

    zcdp = Accountant(9.0, delta=1e-6, composition="zcdp")

    assert charged(0.5) is None
    assert charged([0.5]) is None
    assert charged([0.5, 0.5], resolution=0) is None
    assert charged([0.2, 0.5]) == 0.5
    assert charged(0.5, dither=True) == 0.5
    assert charged(0.5, dither=True, expected_n=50) == 0.5  # there is nothing left to choose
    assert charged(0.5, method="joint_exp") == 0.5
    assert charged(0.5, zcdp) == 0.5
    assert charged(0.5, zcdp, method="ind_exp") is None
    with pytest.raises(ValueError, match=r"^dither must be left out for ind_exp, got True$"):
        charged(0.5, method="ind_exp", dither=True)
    with pytest.raises(TypeError, match=r"^dither must be True or False"):
        charged(0.5, dither="no")
    assert charged([0.2, 0.5], method="ind_exp") is None


WIDE = dict(bounds=(1, 1e5), epsilon=2.0, expected_n=1_000)
TOLD: dict[str, tuple] = {
    "near an end": (0.99, {}, "two_stage"),
    "near an end, with intervals": ([0.5, 0.99], dict(confidence=0.9), "two_stage"),
    "near an end, rho": (0.99, dict(epsilon=None, rho=0.5), "two_stage"),
    "near an end, zcdp": (0.99, dict(composed=True), "two_stage"),
    "not near an end": (0.5, {}, "ind_exp"),
    "not near an end, zcdp": (0.5, dict(composed=True), "joint_exp"),
    "near an end for half the budget": (0.99, dict(public_by=True), "ind_exp"),
    "many records": (0.99, dict(expected_n=100_000), "ind_exp"),
    "few records": (0.99, dict(expected_n=50), "ind_exp"),
    "few levels": ([0.25, 0.5, 0.75], {}, "joint_exp"),
    "several levels, rho": ([0.25, 0.75], dict(epsilon=None, rho=0.5), "approx_quantiles"),
    "many levels": (np.arange(1, 60) / 60, {}, "two_stage"),
    "few points": ([0.5, 0.99], dict(bounds=(0, 9), resolution=1), "agg_tree"),
    "no lattice": (0.99, dict(resolution=0), "ind_exp"),
    "both signs": (0.5, dict(bounds=(-9, 9), expected_n=10_000), "two_stage"),
    "both signs, of one group": (
        0.5,
        dict(bounds={0: (1, 9), 1: (-9, 9)}, expected_n=10_000),
        "two_stage",
    ),
    "selected": (0.99, dict(groups=None, delta=1e-6), "two_stage"),
    "delta": (0.99, dict(delta=1e-6), "ind_exp"),
    "delta, with intervals": (0.99, dict(delta=1e-6, confidence=0.9), "ind_exp"),
    "dither": (0.99, dict(dither=True, confidence=0.9), "joint_exp"),
}


@pytest.mark.parametrize("name", TOLD)
def test_quantile_by_goes_by_how_many_records_a_group_is_said_to_have(
    implementation, name, monkeypatch
):
    """As `quantile` of a group does; what is charged is what the guarantee states."""
    q, options, method = TOLD[name]
    x, by = [1.0, 2.0, 5.0], [0, 0, 1]
    asked = dict(groups=[0, 1]) | WIDE | options
    composed, spent = asked.pop("composed", False), {}
    if composed:
        asked["accountant"] = Accountant(9.0, delta=1e-6, composition="zcdp")
    monkeypatch.setattr(privacy, "charge", lambda _, made, name=None: spent.update({name: made}))
    implementation.quantile_by(x, by, q, rng=1, **asked)
    made = spent["quantile_by"]
    assert getattr(made, "release", made).method == method
    public = {
        key: asked[key]
        for key in ("epsilon", "rho", "delta", "public_by", "confidence", "expected_n")
        if key in asked
    }
    if name == "dither":
        public["method"] = method
    if asked["groups"] is None:
        public["selection_share"] = privacy.kept_groups.SHARE
    pairs = asked["bounds"].values() if isinstance(asked["bounds"], dict) else [asked["bounds"]]
    lattices = [Lattice.of(pair, asked.get("resolution"), None) for pair in pairs]
    points = max((each.points for each in lattices if each is not None), default=None)
    sides = dict(points=points, two_sided=any(low < 0.0 < high for low, high in pairs))
    promise = guarantee("quantile_by", q=q, composed=composed, **public, **sides)
    assert promise == dataclasses.replace(made.guarantee, mechanism="quantile_by")


@pytest.mark.parametrize("entries", [0, 20_000])
def test_quantile_by_one_level_without_a_lattice_follows_the_density(entries, monkeypatch):
    monkeypatch.setattr(module, "SMALL_ENTRIES", entries)
    sample = [0.0, 2.0, 2.0, 3.0]
    x, by, groups = rows_of([sample], 3_000)
    form = dict(resolution=0, neighbors="add-remove")
    out = dpq.quantile_by(x, by, 0.7, groups=groups, rng=6, **form, **OPTIONS)
    law = reference.ind_exp_law(sample, 0.7, **form, **OPTIONS)
    expected = {(cell,): law.log_prob(cell + 0.5) for cell in range(4)}
    assert_draws_follow(((int(v),) for v in np.floor(out.values)), expected)


# Other methods, and groups with bounds of their own

IN_PARTS = {
    "approx_quantiles": dict(method="approx_quantiles", epsilon=2.0),
    "approx_quantiles, rho": dict(rho=0.5),
    "agg_tree": dict(method="agg_tree", epsilon=2.0, height=2, branching=4),
    "agg_tree, rho": dict(method="agg_tree", rho=0.5, noise="gaussian", height=2, branching=4),
    "two_stage": dict(method="two_stage", epsilon=2.0),
    "two_stage, rho": dict(method="two_stage", rho=0.5),
    "unbounded_quantile": dict(method="unbounded_quantile", epsilon=2.0, beta=1.2),
    "csmooth": dict(method="csmooth", rho=0.5),
    "ind_exp": dict(method="ind_exp", epsilon=2.0),
    "ind_exp, delta": dict(method="ind_exp", epsilon=2.0, delta=1e-3),
    "ind_exp, rho": dict(method="ind_exp", rho=0.5),
}
RELATIONS = [("swap", False), ("swap", True), ("add-remove", False)]


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_PARTS)
@pytest.mark.parametrize(("neighbors", "public_by"), RELATIONS)
def test_quantile_by_of_any_method_is_that_of_each_group(neighbors, public_by, name):
    """Against the front door of one sample, which gets the part of the budget."""
    sample, options = [0.5, 1.0, 3.2, 3.3, 3.4, math.nan], dict(IN_PARTS[name])
    budget = {key: options.pop(key) for key in ("epsilon", "delta", "rho") if key in options}
    form = dict(neighbors=neighbors, public_by=public_by)
    part = privacy.parallel.part_of(**budget, **form)
    given = dict(method="approx_quantiles") | options
    rng = np.random.default_rng(1)
    expected = [
        dpq.quantile(sample, [0.3, 0.7], bounds=(0, 4), neighbors=part.neighbors, rng=rng,
                     counts=[1] * 6, expected_n=10_000, **part.given(), **given)[1]
        for _ in range(400)
    ]  # fmt: skip
    x, by, groups = rows_of([sample], 300)
    form |= budget | options | dict(bounds=(0, 4), rng=2)
    for side, number in ((dpq, 300), (reference, 40)):
        few = by < number
        out = side.quantile_by(x[few], by[few], [0.3, 0.7], groups=groups[:number], **form)
        assert stats.ks_2samp(out.values[:, 1], expected).pvalue > 1e-6
    again = dpq.quantile_by(x, by, [0.3, 0.7], groups=groups, workers=2, **form)
    assert np.array_equal(again.values, dpq.quantile_by(
        x, by, [0.3, 0.7], groups=groups, counts=np.ones(x.size, int), **form
    ).values)  # fmt: skip


@pytest.mark.parametrize("confidence", [None, 0.9])
@pytest.mark.parametrize("name", IN_PARTS)
def test_releases_of_groups_spend_no_more_than_their_part(name, confidence, monkeypatch):
    """What each of them would be charged, one by one."""
    options = dict(IN_PARTS[name])
    if confidence is not None:
        if name == "csmooth":
            return
        options |= dict(confidence=confidence)
    budget = {key: options[key] for key in ("epsilon", "delta", "rho") if key in options}
    prepared, of = [], Prepared.of

    def recorded(*arguments, **options):
        prepared.append(of(*arguments, **options))
        return prepared[-1]

    monkeypatch.setattr(Prepared, "of", recorded)
    for neighbors, public_by in RELATIONS:
        form = dict(neighbors=neighbors, public_by=public_by, max_contributions=3)
        prepared.clear()
        dpq.quantile_by(X, CODES, [0.2, 0.7], groups=[0, 1], bounds=(0, 4), **options, **form)
        part = privacy.parallel.part_of(**budget, **form)
        assert len(prepared) == (6 if "agg_tree" in name else 3)  # one without records; trees twice
        for own in (each.guarantee for each in prepared):
            assert own.neighbors == part.neighbors
            if part.rho is not None:
                assert own.implied_rho <= part.rho * (1.0 + 1e-12)
            else:
                assert own.epsilon <= part.epsilon and own.delta <= part.delta


@pytest.mark.slow
@pytest.mark.parametrize("method", [None, "ind_exp", "agg_tree"])
def test_quantile_by_takes_bounds_by_group(method, implementation):
    x, by = np.repeat([1.0, 100.0, 7.0], 50), np.repeat(["a", "b", "c"], 50)
    pairs = {"a": (0, 4), "c": (0.0, 9.0), "b": (50, 150), "z": (0, 1)}
    form = dict(groups=["b", "a", "c"], epsilon=400.0, resolution=0.5, method=method)
    spread = np.array([[50, 150], [0, 4], [0, 9]])
    for bounds in (pairs, spread, spread.tolist(), {**pairs, "a": [0, 4]}):
        out = implementation.quantile_by(x, by, 0.5, bounds=bounds, rng=1, **form)
        assert np.allclose(out.values, [100.0, 1.0, 7.0], atol=0.5)
    around = implementation.quantile_by(
        x, by, [0.5, 0.6], bounds=pairs, confidence=0.9, rng=1, **form | dict(method=None)
    )
    assert (around.low <= around.values).all() and (around.high >= around.values).all()
    assert (np.abs(around.values[:, 0] - [100.0, 1.0, 7.0]) < 2.0).all()
    for bounds, message in (
        ({"a": (0, 1)}, "^bounds must have a pair for each group, got none for b$"),
        (spread[:2], "^bounds must have a pair for each of 3 groups, got 2$"),
        (pairs | {"b": (1, 0)}, "^bounds must be finite with low < high"),
    ):
        with pytest.raises(ValueError, match=message):
            implementation.quantile_by(x, by, 0.5, bounds=bounds, **form)


def test_quantile_by_bounds_of_groups_follow_the_law_of_each_group():
    x, by, groups = rows_of([[0, 2, 2, 3]], 2_000)
    out = dpq.quantile_by(
        x, by, 0.5, groups=groups, epsilon=2.0, bounds=[(0, 4)] * 2_000, resolution=1, rng=3
    )
    law = enumeration.ind_exp([0, 2, 2, 3], 5, [0.5], [1.0])
    assert_draws_follow(((int(v),) for v in out.values), law)
    many = dict(groups=[0], bounds=[(0, 4)], epsilon=2.0)
    ledger = Accountant(10.0)
    dpq.quantile_by(x, by, [0.2, 0.5], accountant=ledger, **many)
    assert ledger.history == (guarantee("quantile_by", q=[0.2, 0.5], epsilon=2.0),)


def test_quantile_by_leaves_out_what_a_method_does_not_take(implementation):
    form = dict(groups=[0], epsilon=1.0, bounds=(0, 4))
    for options, error, message in (
        (dict(height=2), TypeError, "^height must be left out for method 'ind_exp'"),
        (dict(method="joint_exp", noise="x"), TypeError, "^noise must be left out for method"),
        (dict(method="unbounded_quantile", dither=True), ValueError, "^dither and assume_sorted"),
        (dict(method="unbounded_quantile", prior="log"), ValueError, "^prior must be left out"),
        (dict(method="agg_tree", dither=True), ValueError, "^dither must be left out for method"),
        (dict(bounds=None), TypeError, "^bounds must"),
    ):
        ledger = Accountant(1.0)
        with pytest.raises(error, match=message):
            implementation.quantile_by(X, CODES, 0.5, accountant=ledger, **form | options)
        assert ledger.history == ()
    out = implementation.quantile_by(
        X, CODES, 0.5, **form | dict(method="unbounded_quantile", bounds=None), rng=1
    )
    assert out.values.shape == (1,)


# Keys

NAMES = ["b", "a", "", "ü", "never"]
NUMBERS = [3, -1, 2**62 + 1, 0, 77]
CODES = np.random.default_rng(1).integers(0, 6, size=400)  # 4: in no group; 5: missing


def named(keys, other, missing):
    return [[*keys[:4], other, missing][code] for code in CODES]


def as_int64(keys):
    return np.array(named(keys, 12_345, 6))


STRING_COLUMNS = {
    "list": lambda: named(NAMES, "other", None),
    "tuple": lambda: tuple(named(NAMES, "other", "none")),
    "str": lambda: np.array(named(NAMES, "other", "none")),
    "object": lambda: np.array(named(NAMES, "other", None), dtype=object),
    "unhashable": lambda: named(NAMES, ["b"], {}),
    "StringDType": lambda: np.array(named(NAMES, "other", "none"), dtype=np.dtypes.StringDType()),
    "masked": lambda: np.ma.masked_array(named(NAMES, "other", "b"), mask=CODES == 5),
    "pandas": lambda: pd.Series(named(NAMES, "other", None)),
    "pandas object": lambda: pd.Series(named(NAMES, "other", None), dtype=object),
    "categorical": lambda: pd.Categorical(named(NAMES, "other", None)),
    "category": lambda: pd.Series(named(NAMES, "other", None), dtype="category"),
    "CategoricalIndex": lambda: pd.CategoricalIndex(named(NAMES, "other", None)),
    "Index": lambda: pd.Index(named(NAMES, "other", None)),
    "polars": lambda: pl.Series(named(NAMES, "other", None)),
    "polars categorical": lambda: pl.Series(named(NAMES, "other", None), dtype=pl.Categorical),
    "pyarrow": lambda: pa.array(named(NAMES, "other", None)),
    "pyarrow chunks": lambda: pa.chunked_array([named(NAMES, "other", None)]),
    "pyarrow dictionary": lambda: pa.array(named(NAMES, "other", None)).dictionary_encode(),
    "chunks of a dictionary": lambda: pa.chunked_array(
        [pa.array(named(NAMES, "other", None)).dictionary_encode()]
    ),
    "polars enum": lambda: pl.Series(named(NAMES, "other", None), dtype=pl.Enum([*NAMES, "other"])),
    "string": lambda: pd.Series(named(NAMES, "other", None), dtype="string"),
    "string[pyarrow]": lambda: pd.Series(
        named(NAMES, "other", None), dtype=pd.ArrowDtype(pa.string())
    ),
}
INTEGER_COLUMNS = {
    "int64": lambda: as_int64(NUMBERS),
    "big-endian": lambda: as_int64(NUMBERS).astype(">i8"),
    "strided": lambda: np.repeat(as_int64(NUMBERS), 2)[::2],
    "list": lambda: named(NUMBERS, 12_345, None),
    "object": lambda: np.array(named(NUMBERS, 12_345, None), dtype=object),
    "masked": lambda: np.ma.masked_array(as_int64(NUMBERS), mask=CODES == 5),
    "pandas": lambda: pd.Series(as_int64(NUMBERS)),
    "Int64": lambda: pd.Series(named(NUMBERS, 12_345, None), dtype="Int64"),
    "categorical": lambda: pd.Categorical(named(NUMBERS, 12_345, None)),
    "polars": lambda: pl.Series(named(NUMBERS, 12_345, None)),
    "pyarrow": lambda: pa.array(named(NUMBERS, 12_345, None)),
    "pyarrow dictionary": lambda: pa.array(named(NUMBERS, 12_345, None)).dictionary_encode(),
    "chunks of a dictionary": lambda: pa.chunked_array(
        [pa.array(named(NUMBERS, 12_345, None)).dictionary_encode()]
    ),
    "int64[pyarrow]": lambda: pd.Series(
        named(NUMBERS, 12_345, None), dtype=pd.ArrowDtype(pa.int64())
    ),
}
X = np.random.default_rng(2).normal(2.0, 1.0, size=400)


def answers_by_code() -> np.ndarray:
    out = dpq.quantile_by(X, CODES, Q, groups=[0, 1, 2, 3, 99], rng=9, **OPTIONS)
    return out.values


@pytest.mark.parametrize("kind", STRING_COLUMNS)
def test_quantile_by_takes_string_keys(kind):
    out = dpq.quantile_by(X, STRING_COLUMNS[kind](), Q, groups=NAMES, rng=9, **OPTIONS)
    assert np.array_equal(out.values, answers_by_code())
    assert list(out) == NAMES


@pytest.mark.parametrize("kind", INTEGER_COLUMNS)
def test_quantile_by_takes_integer_keys(kind):
    out = dpq.quantile_by(X, INTEGER_COLUMNS[kind](), Q, groups=NUMBERS, rng=9, **OPTIONS)
    assert np.array_equal(out.values, answers_by_code())
    assert list(out) == NUMBERS


@pytest.mark.parametrize("kind", ["Int64", "object", "list"])
def test_quantile_by_reference_ignores_missing_keys(kind):
    given = {"q": Q, "groups": NUMBERS, "rng": 9, **OPTIONS}
    out = reference.quantile_by(X[:40], INTEGER_COLUMNS[kind]()[:40], **given)
    expected = reference.quantile_by(X[:40], as_int64(NUMBERS)[:40], **given)
    assert np.array_equal(out.values, expected.values)


FLOATS = [1.0, 2.0, math.nan, 0.5, -0.0, 2.0, math.inf, -1e300, 1.8446744073709550e19]
FLOAT_COLUMNS = {
    "list": list,
    "float64": np.array,
    "longdouble": lambda keys: np.array(keys, dtype=np.longdouble),
    "object": lambda keys: np.array(keys, dtype=object),
    "masked": lambda keys: np.ma.masked_invalid(np.array(keys)),
    "pandas": pd.Series,
    "pandas, nullable": lambda keys: pd.Series(keys, dtype="Float64"),
    "pandas, Arrow": lambda keys: pd.Series(keys, dtype="double[pyarrow]"),
    "category": lambda keys: pd.Series(keys).astype("category"),
    "polars": pl.Series,
    "pyarrow": pa.array,
    "pyarrow, chunks": lambda keys: pa.chunked_array([keys[:3], keys[3:]]),
    "pyarrow, dictionary": lambda keys: pa.array(keys).dictionary_encode(),
}


@pytest.mark.parametrize("kind", FLOAT_COLUMNS)
def test_floats_that_are_whole_are_integer_keys(kind):
    """As pandas has integers beside a missing one: the type of a key follows other rows."""
    by, x = FLOAT_COLUMNS[kind](FLOATS), np.ones(len(FLOATS))
    budget = dict(epsilon=900.0, rng=1)
    for module in (dpq, reference):
        for groups in ([0, 1, 2], [0.0, 1.0, 2.0], pd.Series([0.0, 1.0, 2.0])):
            made = module.count_by(x, by, groups=groups, **budget)
            assert made.groups.tolist() == [0, 1, 2] and made.groups.dtype == np.int64
            assert made.values.tolist() == [1, 1, 2]
        large = module.count_by(x, by, groups=[2**64 - 2048], **budget)
        assert large.values.tolist() == [1]
        kept = module.select_keys(by, counts=[10**4] * len(FLOATS), epsilon=1.0, delta=1e-3, rng=1)
        assert kept.tolist() == [0, 1, 2, 2**64 - 2048]
        for groups in (["a"], [date(2020, 1, 1)]):
            assert module.count_by(x, by, groups=groups, **budget).values.tolist() == [0]
        pairs = module.count_by(x, [by, ["a"] * len(FLOATS)], groups=[(2, "a"), (1, "b")], **budget)
        assert pairs.values.tolist() == [2, 0]


INTEGERS, STRINGS = [1, 2], ["a", "b"]  # keys, and the groups that fit
BOOLEANS, DATES = [True, False], [date(2020, 1, 1), date(2020, 1, 2)]
MOMENTS = [datetime(2020, 1, 1), datetime(2020, 1, 2, 3, 4)]
ZONED = AWARE = [moment.replace(tzinfo=timezone.utc) for moment in MOMENTS]
PERIODS = [pd.Period(day, "D") for day in DATES]
INTERVALS = [pd.Interval(0.0, 1.0), pd.Interval(1.0, 5.0)]
EVERY = [INTEGERS, STRINGS, BOOLEANS, DATES, ZONED, PERIODS, INTERVALS]
# Types of each library: how it names them, two keys, and the groups that are taken.
ARROW_TYPES = [
    (pa.int64(), INTEGERS, [INTEGERS]),
    (pa.uint8(), INTEGERS, [INTEGERS]),
    (pa.string(), STRINGS, [STRINGS]),
    (pa.large_string(), STRINGS, [STRINGS]),
    (pa.string_view(), STRINGS, [STRINGS]),
    (pa.dictionary(pa.int32(), pa.int64()), INTEGERS, [INTEGERS]),
    (pa.dictionary(pa.int8(), pa.string()), STRINGS, [STRINGS]),
    (pa.dictionary(pa.int32(), pa.float64()), [1.0, 2.0], EVERY),
    (pa.bool_(), BOOLEANS, [BOOLEANS]),
    (pa.float64(), [1.0, 2.0], EVERY),
    (pa.date32(), DATES, [DATES]),
    (pa.date64(), DATES, [DATES]),
    (pa.timestamp("us"), MOMENTS, [DATES]),
    (pa.timestamp("s", "UTC"), AWARE, [ZONED]),
    (pa.duration("s"), [timedelta(1), timedelta(2)], []),
    (pa.binary(), [b"a", b"b"], []),
    (pa.list_(pa.int64()), [[1], [2]], []),
]
POLARS_TYPES = [
    (pl.Int64, INTEGERS, [INTEGERS]),
    (pl.UInt8, INTEGERS, [INTEGERS]),
    (pl.String, STRINGS, [STRINGS]),
    (pl.Categorical, STRINGS, [STRINGS]),
    (pl.Enum(STRINGS), STRINGS, [STRINGS]),
    (pl.Object, [1, "a"], EVERY),
    (pl.Boolean, BOOLEANS, [BOOLEANS]),
    (pl.Float64, [1.0, 2.0], EVERY),
    (pl.Date, DATES, [DATES]),
    (pl.Datetime("ms"), MOMENTS, [DATES]),
    (pl.Datetime("ns", "UTC"), AWARE, [ZONED]),
    (pl.Duration, [timedelta(1), timedelta(2)], []),
]
PANDAS_TYPES = [
    ("Int64", INTEGERS, [INTEGERS]),
    ("UInt8", INTEGERS, [INTEGERS]),
    ("string", STRINGS, [STRINGS]),
    ("object", [1, "a"], EVERY),
    ("object", AWARE, EVERY),
    ("datetime64[us]", MOMENTS, [DATES]),
    ("datetime64[ns, UTC]", AWARE, [ZONED]),
    (pd.CategoricalDtype(), INTEGERS, EVERY),
    (pd.CategoricalDtype(), STRINGS, EVERY),
    (pd.CategoricalDtype(), BOOLEANS, EVERY),
    ("boolean", BOOLEANS, [BOOLEANS]),
    ("Float64", [1.0, 2.0], EVERY),
    ("period[D]", PERIODS, [PERIODS]),
    ("interval[float64, right]", INTERVALS, [INTERVALS]),
    (pd.CategoricalDtype(), PERIODS, EVERY),
    (pd.CategoricalDtype(), INTERVALS, EVERY),
    ("timedelta64[ns]", [timedelta(1), timedelta(2)], []),
    *((pd.ArrowDtype(declared), *rest) for declared, *rest in ARROW_TYPES),
]
MASKED_TYPES = [(np.int64, INTEGERS, [INTEGERS]), (np.bool_, BOOLEANS, [BOOLEANS])]


def masked(keys, dtype):
    filled = [0 if key is None else key for key in keys]
    return np.ma.masked_array(filled, [key is None for key in keys], dtype)


CONTAINERS = {
    "pyarrow": (pa.array, ARROW_TYPES),
    "pyarrow chunks": (
        lambda keys, declared: pa.chunked_array(
            [pa.array([key], declared) for key in keys], declared
        ),
        ARROW_TYPES,
    ),
    "polars": (lambda keys, declared: pl.Series(keys, dtype=declared), POLARS_TYPES),
    "pandas": (lambda keys, declared: pd.Series(keys, dtype=declared), PANDAS_TYPES),
    "pandas array": (lambda keys, declared: pd.array(keys, dtype=declared), PANDAS_TYPES),
    "pandas Index": (lambda keys, declared: pd.Index(keys, dtype=declared), PANDAS_TYPES),
    "masked": (masked, MASKED_TYPES),
    "list": (lambda keys, _: keys, [(None, [1, "a"], EVERY)]),
}


@pytest.mark.parametrize("groups", EVERY, ids=str)
@pytest.mark.parametrize(
    ("container", "declared", "keys", "taken"),
    [(container, *row) for container, (_, types) in CONTAINERS.items() for row in types],
    ids=str,
)
def test_quantile_by_takes_or_refuses_keys_by_their_declared_type(
    container, declared, keys, taken, groups
):
    make = CONTAINERS[container][0]
    one, other = keys
    outcomes = set()
    for column in ([one, other], [one, None], [None, other], [None, None], []):
        x, by = X[: len(column)], make(column, declared)
        try:
            out = dpq.quantile_by(x, by, Q, groups=groups, rng=1, **OPTIONS)
        except Exception as error:
            outcomes.add(f"{type(error).__name__}: {error}")
        else:
            outcomes.add("answered")
            of_list = dpq.quantile_by(x, column, Q, groups=groups, rng=1, **OPTIONS)
            assert np.array_equal(out.values, of_list.values)
    (outcome,) = outcomes
    rule = "answered|TypeError: (by must hold integers, str|groups must be .* as the column by is)"
    assert re.match(rule, outcome)
    assert (outcome == "answered") == (groups in taken)


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_missing_key_is_a_group_on_request(container, implementation):
    """Of any type, alone, beside others and within a tuple; without it such rows are left out."""
    make, types = CONTAINERS[container]
    budget = dict(epsilon=900.0, rng=1)
    for declared, (one, other), taken in types:
        if not taken:
            continue
        by = make([one, None, other, None, one, None], declared)
        key = int(one) if isinstance(one, float) else one
        for missing in (None, math.nan, pd.NaT, pd.NA, pa.scalar(None)):
            found = implementation.count_by(X[:6], by, groups=[missing, key], **budget)
            assert found.groups.tolist() == [None, key] and found.values.tolist() == [3, 2]
            assert len(found) == 2 and None in found
        found = implementation.count_by(X[:6], by, groups=[None], **budget)
        assert found.values.tolist() == [3]
        found = implementation.count_by(X[:6], by, groups=[key], **budget)
        assert found.values.tolist() == [2] and None not in found
        pairs = [(None, "a"), (key, None), (None, None), (key, "a")]
        both = [by, ["a", "a", "a", None, None, "a"]]
        found = implementation.count_by(X[:6], both, groups=pairs, **budget)
        assert found.values.tolist() == [2, 1, 1, 1] and list(found) == pairs
        if implementation is dpq:
            frame = [pd.DataFrame(pairs), pl.DataFrame(pairs, orient="row", strict=False)]
            for groups in frame if isinstance(key, str) else []:
                assert list(dpq.count_by(X[:6], both, groups=groups, **budget)) == pairs


def test_what_is_no_key_is_not_missing(implementation):
    """A number that is not whole, a length, a list: another key, which is in no group."""
    others = [2.5, math.inf, 2**70, b"x", [1], {}, timedelta(1), np.datetime64(1, "ps"), (None,)]
    others += [pa.scalar(timedelta(1)), date(2020, 1, 1), True]
    gone = [None, math.nan, np.float32("nan"), np.datetime64("NaT"), np.timedelta64("NaT", "s")]
    gone += [pd.NaT, pd.NA, Decimal("NaN"), Decimal("-sNaN"), pa.scalar(None), np.ma.masked]
    for by in ([*others, *gone, "a"], np.array([*others, *gone, "a"], dtype=object)):
        found = implementation.count_by(np.ones(len(by)), by, groups=["a", None], epsilon=900.0)
        assert found.values.tolist() == [1, len(gone)]
    for floats in ([math.nan, 0.5, math.inf, 2.0], [math.nan, 0.5, -math.inf, 2.0, 2.0**63]):
        for make in FLOAT_COLUMNS.values():
            by = make(floats)
            found = implementation.count_by(np.ones(len(by)), by, groups=[2, None], epsilon=900.0)
            held = 2 if isinstance(by, np.ma.MaskedArray) else 1  # masked_invalid
            assert found.values.tolist() == [1, held]


def test_groups_with_a_missing_key_are_released_as_any_others(implementation, monkeypatch):
    monkeypatch.setattr(public_keys, "TABLE_FLOOR", 0)
    monkeypatch.setattr(public_keys, "TABLE_FACTOR", 0)
    codes = np.array([{4: 9}.get(code, code) for code in CODES])
    expected = implementation.quantile_by(X, codes, Q, groups=[3, 5, 0, 2], rng=9, **OPTIONS)
    by = pd.Series(np.where(codes == 5, np.nan, codes * 10.0**6))
    public = [3 * 10**6, None, 0, 2 * 10**6]
    for bounds in ((0.0, 4.0), {key: (0.0, 4.0) for key in public}):
        found = implementation.quantile_by(
            X, by, Q, groups=public, rng=9, method="joint_exp", **OPTIONS | dict(bounds=bounds)
        )
        assert list(found) == public
        if isinstance(bounds, tuple):
            assert np.array_equal(found.values, expected.values)
    assert np.array_equal(found[None], found[math.nan])
    assert found.to_pandas().index.isna().tolist() == [False, True, False, False]


@pytest.mark.parametrize(
    "groups", [[None, None], [None, math.nan], [1, None, pd.NA], [(None, 1), (math.nan, 1)]]
)
def test_a_missing_key_is_one_group(groups, implementation):
    by = [[1], [1]] if isinstance(groups[0], tuple) else [1]
    with pytest.raises(ValueError, match=r"^groups must be distinct, got .*None.* twice$"):
        implementation.count_by([1.0], by, groups=groups, epsilon=1.0)


CUT = pd.cut(pd.Series([*range(1, 10), -5, math.nan]), [0, 3, 6, 9])
DAYS_OF = pd.Series(pd.to_datetime(["2020-01-31", "2020-02-01", "2020-02-29", None]))
CLOCKS = [time(8), time(8), time(9, 30), None, time(0, 0, 0, 7)] * 8
CLOCK_COLUMNS = {
    "list": CLOCKS,
    "pandas": pd.Series(CLOCKS),
    "pandas, Arrow": pd.Series(CLOCKS, dtype=pd.ArrowDtype(pa.time64("us"))),
    "polars": pl.Series(CLOCKS),
    "Arrow": pa.array(CLOCKS),
    "Arrow, ns": pa.array(CLOCKS).cast(pa.time64("ns")),
    "Arrow, dictionary": pa.array(CLOCKS).dictionary_encode(),
    "list of Arrow": list(pa.array(CLOCKS)),
}


@pytest.mark.parametrize("name", CLOCK_COLUMNS)
def test_times_of_day_are_keys(name):
    by, x = CLOCK_COLUMNS[name], np.ones(len(CLOCKS))
    for groups in ([time(9, 30), time(8), time(1)], [None, time(0, 0, 0, 7)]):
        found = dpq.count_by(x, by, groups=groups, epsilon=1e6, rng=0)
        assert found.values.tolist() == [CLOCKS.count(key) for key in groups]
    selected = dpq.select_keys(by, epsilon=50.0, delta=0.1, rng=0)
    assert list(selected) == [time(0, 0, 0, 7), time(8), time(9, 30)]


def test_times_of_day_are_keys_by_their_type():
    rule = "groups must be times of day as the column by is, got strings"
    with pytest.raises(TypeError, match=rule):
        dpq.count_by(np.ones(40), pa.array(CLOCKS), groups=["08:00"], epsilon=1.0)
    rule = "groups must be dates as the column by is, got times of day"
    with pytest.raises(TypeError, match=rule):
        dpq.count_by(np.ones(2), np.zeros(2, "M8[us]"), groups=[time(8)], epsilon=1.0)
    with pytest.raises(TypeError, match=r"groups must hold .* all of one kind"):
        dpq.count_by(np.ones(40), CLOCKS, groups=[time(8, tzinfo=timezone.utc)], epsilon=1.0)


MONTHS = [pd.Period("2020-01", "M"), pd.Period("2020-02", "M")]


@pytest.mark.parametrize("kind", ["category", "interval", "index", "object", "list"])
def test_parts_of_a_range_are_keys(kind, implementation):
    """As `pandas.cut` makes them; a number beyond them is in none."""
    by = {
        "category": CUT,
        "interval": CUT.astype("interval[float64, right]"),
        "index": pd.IntervalIndex(CUT),
        "object": CUT.astype(object),
        "list": list(CUT),
    }[kind]
    parts, x = CUT.cat.categories, np.arange(1.0, 12.0)
    for groups in (parts, list(parts), [pd.Interval(0.0, 3.0), *parts[1:]]):
        found = implementation.count_by(x, by, groups=groups, epsilon=900.0, rng=1)
        assert found.values.tolist() == [3, 3, 3] and list(found) == list(parts)
    middle = dict(epsilon=900.0, bounds=(0, 20), resolution=1, rng=1)
    found = implementation.quantile_by(x, by, 0.5, groups=parts[::-1], **middle)
    assert [found[part] for part in parts] == [2.0, 5.0, 8.0]
    assert pd.Interval(0, 3, closed="left") not in found and pd.Interval(0, 4) not in found
    asked = dict(counts=[10**4] * 11, epsilon=1.0, delta=1e-3, rng=1)
    assert implementation.select_keys(by, **asked).tolist() == list(parts)
    kept = implementation.quantile_by(x, by, 0.5, groups=None, **asked, bounds=(0, 20))
    assert isinstance(kept.to_pandas().index, pd.IntervalIndex) and list(kept) == list(parts)


def test_periods_are_keys(implementation):
    by, x = DAYS_OF.dt.to_period("M"), [1.0, 2.0, 4.0, 8.0]
    for column in (by, by.astype("category"), pd.PeriodIndex(by), list(by)):
        found = implementation.count_by(x, column, groups=MONTHS, epsilon=900.0, rng=1)
        assert found.values.tolist() == [1, 2] and list(found) == MONTHS
        kept = implementation.select_keys(
            column, counts=[10**4] * 4, epsilon=1.0, delta=1e-3, rng=1
        )
        assert kept.tolist() == MONTHS
    pairs = [(MONTHS[1], pd.Interval(1, 3)), (MONTHS[0], pd.Interval(1, 3))]
    part = pd.cut(pd.Series(x), [1, 3, 9])
    for both in ([by, part], pd.DataFrame(dict(m=by, c=part))):
        found = implementation.count_by(x, both, groups=pairs, epsilon=900.0, rng=1)
        assert found.values.tolist() == [1, 0] and list(found) == pairs
    with pytest.raises(TypeError, match=r"^groups must be periods as the column by is, got dates$"):
        implementation.count_by(x, by, groups=[date(2020, 1, 1)], epsilon=1.0)
    # days and months that begin on one day are no peers
    mixed = [pd.Period("2020-01", "M"), pd.Period("2020-01-01", "D"), pd.Period("2020-01-01", "D")]
    found = implementation.count_by([1.0] * 3, mixed, groups=mixed[:2], epsilon=900.0, rng=1)
    assert found.values.tolist() == [1, 2]


def test_periods_and_intervals_are_texts_in_frames_and_json():
    by = pd.DataFrame(dict(part=pd.cut([1.0, 2.0], [0, 3]), month=DAYS_OF[:2].dt.to_period("M")))
    pairs = [(pd.Interval(0, 3), month) for month in MONTHS]
    found = dpq.count_by([1.0, 2.0], by, groups=pairs, epsilon=900.0, rng=1)
    rows = [{"part": "(0, 3]", "month": f"2020-0{m}", "value": 1} for m in (1, 2)]
    assert found.to_polars().to_dicts() == found.to_arrow().to_pylist() == rows
    assert json.loads(found.to_json()) == rows
    assert list(found.to_pandas().index) == pairs and list(found.to_dict()) == pairs


def test_quantile_by_keeps_keys_apart_whatever_is_missing():
    """NumPy cuts zeros off the ends of strings, where none is missing."""
    x, keys = np.repeat([1.0, 3.0], 300), ["a"] * 300 + ["a\0"] * 300
    for last in ("a\0", None):
        by = pl.Series([*keys[:-1], last])
        out = dpq.quantile_by(
            x, by, 0.9, groups=["a"], epsilon=9.0, bounds=(0, 4), resolution=1, rng=1
        )
        assert out["a"] == 1.0


TOWNS, DAYS = ["north", "south", None], [date(2020, 1, 1), date(2020, 1, 3), None]
PAIR = ([TOWNS[code % 3] for code in CODES], [DAYS[code // 2] for code in CODES])
PAIRS = [("north", date(2020, 1, 1)), ("south", date(2020, 1, 3)), ("west", date(1, 1, 1))]
PAIRS += [("south", date(2020, 1, 1))]
OF_PAIRS = {
    "list": lambda: list(PAIR),
    "tuple": lambda: PAIR,
    "pandas": lambda: pd.DataFrame(dict(town=PAIR[0], day=pd.to_datetime(PAIR[1]))),
    "categories": lambda: pd.DataFrame(dict(town=PAIR[0], day=PAIR[1])).astype("category"),
    "levels": lambda: pd.MultiIndex.from_arrays(PAIR, names=["town", "day"]),
    "polars": lambda: pl.DataFrame(dict(town=PAIR[0], day=PAIR[1])),
    "pyarrow": lambda: pa.table(dict(town=PAIR[0], day=PAIR[1])),
    "mixed": lambda: (pl.Series(PAIR[0]).cast(pl.Categorical), pa.array(PAIR[1])),
}


@pytest.mark.parametrize("kind", OF_PAIRS)
@pytest.mark.parametrize("spread", [False, True])
def test_quantile_by_takes_keys_of_several_columns(kind, spread, implementation, monkeypatch):
    if spread:
        monkeypatch.setattr(public_keys, "TABLE_FLOOR", 0)
        monkeypatch.setattr(public_keys, "TABLE_FACTOR", 0)
    group_of = {pair: g for g, pair in enumerate(PAIRS)}
    codes = [group_of.get(pair, 9) for pair in zip(*PAIR, strict=True)]
    expected = implementation.quantile_by(X, codes, Q, groups=range(4), rng=9, **OPTIONS)
    frame = pd.DataFrame(PAIRS).astype({1: "object"})
    for groups in (PAIRS, pl.DataFrame(PAIRS, orient="row"), frame):
        out = implementation.quantile_by(X, OF_PAIRS[kind](), Q, groups=groups, rng=9, **OPTIONS)
        assert np.array_equal(out.values, expected.values)
        assert list(out) == PAIRS
    assert np.array_equal(out["south", np.datetime64("2020-01-03")], out.values[1])
    assert ("north", date(2020, 1, 3)) not in out
    table = out.to_pandas()
    assert table.index.nlevels == 2 and table.shape == (4, 3)
    named = kind in ("pandas", "categories", "levels", "polars", "pyarrow")
    assert list(table.index.names) == (["town", "day"] if named else [None, None])


STAMPS = [-(10**6), -1, 0, 1, 59, 60, 3_600, 86_400, 604_800, 31_536_000, 2**40]


@pytest.mark.parametrize(
    "of, unit, order",
    [
        *product([np.asarray], ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "7s"], "<>"),
        *product([pd.DatetimeIndex, pd.Series], ["s", "ms", "us", "ns"], "="),
    ],
)
def test_dates_in_a_type_of_numpy_are_found_as_each_of_them_is(of, unit, order):
    """In one step for all of them, if they are in 64 bits of nanoseconds."""
    short = {"Y": 4_000, "M": 40_000, "W": 10**5, "D": 10**6}.get(unit, 2**62)
    stamps = [stamp for stamp in STAMPS if abs(stamp) < short]
    given = np.array(stamps, dtype="i8").view(f"M8[{unit}]").astype(f"{order}M8[{unit}]")
    public = of(given)
    found, each = public_keys.Groups(public), public_keys.Groups(list(public))
    column = found.columns[0]
    assert column.kind == each.columns[0].kind == keys.DATES
    assert column.compared == each.columns[0].compared
    assert [type(key) for key in found.keys] == [type(key) for key in each.keys]
    for by in ("Y", "D", "7s", "s", "ns"):
        shifted = np.concatenate((given.astype("M8[s]"), given.astype("M8[s]") + 1))
        records = np.append(shifted, np.datetime64("NaT", "ns")).astype(f"M8[{by}]")
        places = found.places(records, records.size)
        assert places.tolist() == each.places(records, records.size).tolist()
    some = np.array([2, 0])
    assert found.pick(some).columns[0].compared == each.pick(some).columns[0].compared


def test_dates_beyond_64_bits_of_nanoseconds_are_found_one_by_one():
    public = np.array(["0001-01-01", "2020-01-01", "9999-01-01"], dtype="M8[D]")
    found = public_keys.Groups(public)
    assert found.columns[0].moments is None and found.columns[0].kind == keys.DATES
    assert found.places(public[::-1], 3).tolist() == [2, 1, 0]
    with pytest.raises(ValueError, match=r"^groups must be distinct, got 0001-01-01 twice$"):
        public_keys.Groups(np.append(public, public[:1]))


def test_quantile_by_takes_a_frame_of_one_column(implementation):
    by = pd.DataFrame(dict(town=PAIR[0]))
    expected = implementation.quantile_by(X, PAIR[0], Q, groups=TOWNS[:2], rng=9, **OPTIONS)
    out = implementation.quantile_by(X, by, Q, groups=TOWNS[:2], rng=9, **OPTIONS)
    assert np.array_equal(out.values, expected.values)
    assert out.to_pandas().index.name == "town"
    with pytest.raises(ValueError, match=r"^groups must be tuples of as many"):
        implementation.quantile_by(X, OF_PAIRS["pandas"](), Q, groups=["north"], **OPTIONS)
    with pytest.raises(TypeError, match=r"^groups must be dates as the column by is"):
        groups = [("north", 1)]
        implementation.quantile_by(X, OF_PAIRS["polars"](), Q, groups=groups, **OPTIONS)


# Columns of other than whole days, and of more of them than nanoseconds can count.
STEPS = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "25s"]


@pytest.mark.parametrize("step", STEPS)
def test_quantile_by_takes_dates_of_any_unit(step, implementation):
    years = np.array(["1970", "1972", "1972", "NaT"], "M8[Y]")
    if step == "25s":
        years = np.array(["1970-01-01T00", "1970-01-01T05", "1970-01-01T05", "NaT"], "M8[h]")
    if step == "W":
        years = np.array(["1970-01-01", "1970-01-08", "1970-01-08", "NaT"], "M8[D]")
    by = np.tile(years, 100).astype(f"M8[{step}]")
    groups = [years[0], years[1].astype("M8[s]").item(), date(1, 1, 1)]
    codes = np.tile([0, 1, 1, 7], 100)
    expected = implementation.quantile_by(X, codes, Q, groups=[0, 1, 2], rng=9, **OPTIONS)
    out = implementation.quantile_by(X, by, Q, groups=groups, rng=9, **OPTIONS)
    assert np.array_equal(out.values, expected.values)


def test_quantile_by_keeps_zones_apart_and_instants_together(implementation):
    """One moment has many names; without a zone it is another one."""
    here = timezone(timedelta(hours=3))
    moment = datetime(2020, 1, 1, 12, tzinfo=timezone.utc)
    by = [moment, moment.astimezone(here), moment.replace(tzinfo=None)] * 50
    x = np.tile([1.0, 1.0, 3.0], 50)
    for group, answer in ((moment.astimezone(here), 1.0), (moment.replace(tzinfo=None), 3.0)):
        out = implementation.quantile_by(
            x, by, 0.5, groups=[group], epsilon=50.0, bounds=(0, 4), resolution=1, rng=1
        )
        assert out[group] == answer


@pytest.mark.parametrize("container", ["pandas", "polars", "pyarrow", "list"])
def test_quantile_by_reference_reads_columns_as_the_fast_side_does(container):
    make, types = CONTAINERS[container]
    for declared, pair, taken in types:
        by = make([*pair, None, pair[1]], declared)
        for groups in taken:
            for side in (dpq, reference):
                out = side.quantile_by(
                    [1.0, 3.0, 2.0, 3.0], by, 0.5, groups=groups, epsilon=400.0, bounds=(0, 4),
                    resolution=1, rng=1,
                )  # fmt: skip
                if {type(key) for key in groups} == {type(key) for key in pair}:
                    assert out.values.tolist() == [1.0, 3.0], (declared, side)
        if taken:
            continue
        for side in (dpq, reference):
            with pytest.raises(TypeError, match=r"^by must hold integers"):
                side.quantile_by([1.0] * 4, by, 0.5, groups=[1], epsilon=1.0, bounds=(0, 4))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
@pytest.mark.parametrize(
    "keys", [[0, 1, 2, 3, 4], [13, 10, 11, 12, 90], [100, 3, 0, 99, 1]], ids=str
)
def test_quantile_by_takes_small_integers(dtype, keys):
    by = np.array([*keys[:4], 7, 120], dtype=dtype)[CODES]
    out = dpq.quantile_by(X, by, Q, groups=keys, rng=9, **OPTIONS)
    assert np.array_equal(out.values, answers_by_code())


def test_quantile_by_does_not_wrap_unsigned_keys():
    big = 2**64 - 1
    by = np.array([*NUMBERS[:1], 5, 6, 7, 12_345, big], dtype=np.uint64)[CODES]
    for groups in ([3, 5, 6, 7, -1], [3, 5, 6, 7, 2**63]):
        out = dpq.quantile_by(X, by, Q, groups=groups, rng=9, **OPTIONS)
        assert np.array_equal(out.values, answers_by_code())
    # code 5 is a group now
    swapped = np.where(CODES == 5, 0, np.where(CODES == 0, 5, CODES))
    expected = dpq.quantile_by(X, swapped, Q, groups=[0, 1, 2, 3, 99], rng=9, **OPTIONS)
    out = dpq.quantile_by(X, by, Q, groups=np.array([big, 5, 6, 7, 1], np.uint64), rng=9, **OPTIONS)
    assert np.array_equal(out.values, expected.values)
    assert next(iter(out)) == big


@pytest.mark.parametrize(
    "groups",
    [
        np.array([4, 5, 6]),
        range(4, 7),
        (4, 5, 6),
        pd.Index([4, 5, 6]),
        pd.Series([4, 5, 6]),
        pl.Series([4, 5, 6]),
        pa.array([4, 5, 6]),
        [np.int8(4), np.uint64(5), 6],
    ],
    ids=lambda groups: type(groups).__name__,
)
def test_quantile_by_takes_groups_of_any_sequence(groups):
    out = dpq.quantile_by([1.0, 2.0], [4, 6], 0.5, groups=groups, rng=1, **OPTIONS)
    assert list(out) == [4, 5, 6]


def test_quantile_by_ignores_rows_of_other_keys():
    keep = CODES < 4
    out = dpq.quantile_by(X[keep], CODES[keep], Q, groups=[0, 1, 2, 3, 99], rng=9, **OPTIONS)
    assert np.array_equal(out.values, answers_by_code())
    x = np.where(keep, X, np.nan)
    out = dpq.quantile_by(
        x, CODES, Q, groups=[0, 1, 2, 3, 99], nan_policy="raise", rng=9, **OPTIONS
    )
    assert np.array_equal(out.values, answers_by_code())


def test_quantile_by_keeps_the_order_of_groups():
    x, by = np.repeat([1.0, 2.0, 3.0], 300), np.repeat(["l", "m", "h"], 300)
    for groups in (["h", "l", "m"], ["m", "h", "l"]):
        out = dpq.quantile_by(
            x, by, 0.5, groups=groups, epsilon=9.0, bounds=(0, 4), resolution=1, rng=1
        )
        assert out.groups.tolist() == groups
        assert {key: out[key] for key in out} == {"l": 1.0, "m": 2.0, "h": 3.0}


def test_quantile_by_of_no_rows_and_no_groups():
    for x, by in (([], []), ([1.0], [7]), (np.empty(0), np.empty(0, dtype=int))):
        out = dpq.quantile_by(x, by, Q, groups=[1, 2], rng=1, **OPTIONS)
        assert out.values.shape == (2, 3) and ((out.values >= 0) & (out.values <= 4)).all()
    out = dpq.quantile_by([1.0], [7], Q, groups=[], rng=1, **OPTIONS)
    assert out.values.shape == (0, 3) and len(out) == 0


# The result


def test_group_quantiles_restore_the_shape_of_q():
    q = [[0.9, 0.1], [0.5, 0.9]]
    out = dpq.quantile_by(X, CODES, q, groups=[2, 0, 5], rng=1, **OPTIONS)
    assert out.values.shape == (3, 2, 2) and out[0].shape == (2, 2)
    assert (out.values[:, 0, 0] == out.values[:, 1, 1]).all()
    assert (out.values[:, 0, 1] <= out.values[:, 1, 0]).all()
    frame = out.to_pandas()
    assert frame.shape == (3, 4) and frame.index.tolist() == [2, 0, 5]
    scalar = dpq.quantile_by(X, CODES, 0.5, groups=[2, 0], rng=1, **OPTIONS)
    assert scalar.values.shape == (2,) and isinstance(scalar[2], float)
    assert scalar.to_pandas().loc[0, 0.5] == scalar[0]
    assert scalar.to_pandas().index.name == "group"


def test_group_quantiles_are_a_mapping_of_keys():
    out = dpq.quantile_by(X, CODES, Q, groups=[2, 0], rng=1, **OPTIONS)
    assert len(out) == 2 and 2 in out and 1 not in out
    assert np.array_equal(out[np.int64(0)], out.values[1])
    with pytest.raises(KeyError):
        out[1]
    with pytest.raises(dataclasses.FrozenInstanceError):
        out.values = None


def test_group_quantiles_give_their_keys_and_answers():
    out = dpq.quantile_by(X, CODES, Q, groups=[2, 0], rng=1, **OPTIONS)
    assert list(out.keys()) == [2, 0] and 2 in out.keys()
    assert out.keys() & {0, 1} == {0}
    assert [(key, answer.tolist()) for key, answer in out.items()] == [
        (key, out[key].tolist()) for key in (2, 0)
    ]
    assert len(out.items()) == 2
    assert isinstance(out.values, np.ndarray) and out.values.shape == (2, 3)
    assert dict(out).keys() == {2, 0}
    assert out.to_dict() == dict(zip([2, 0], out.values.tolist(), strict=True))


@pytest.mark.parametrize("confidence", [None, 0.9])
@pytest.mark.parametrize("q", [0.5, [0.9, 0.1], [[0.9], [0.1]]])
def test_group_quantiles_go_to_frames_and_json_by_group_and_level(q, confidence):
    out = dpq.quantile_by(
        X, CODES, q, groups=[2, 0], rng=1, confidence=confidence, covers="sample", **OPTIONS
    )
    levels = np.ravel(q).tolist()
    parts = {"value": out.values, "low": out.low, "high": out.high}
    expected = {"group": [key for key in (2, 0) for _ in levels], "q": levels * 2} | {
        name: part.ravel().tolist() for name, part in parts.items() if part is not None
    }
    assert out.to_polars().to_dict(as_series=False) == expected
    assert out.to_arrow().to_pydict() == expected
    assert json.loads(out.to_json()) == pl.DataFrame(expected).to_dicts()
    for key, answer in out.to_dict().items():
        assert answer == (out[key].to_dict() if confidence else np.asarray(out[key]).tolist())


def test_groups_of_several_columns_go_to_frames_by_their_names():
    days = [date(2020, 1, 1), date(2020, 1, 2)]
    by = pl.DataFrame({"town": ["a", "b"] * 5, "day": days * 5})
    groups = [("a", days[0]), ("b", days[1])]
    out = dpq.count_by(range(10), by, groups=groups, epsilon=1.0, confidence=0.9, rng=1)
    frame = out.to_polars()
    assert frame.columns == ["town", "day", "value", "low", "high"]
    assert frame.schema["day"] == pl.Date
    assert frame.select("town", "day").rows() == groups
    assert json.loads(out.to_json())[0] == {
        "town": "a",
        "day": "2020-01-01",
        "value": int(out.values[0]),
        "low": out.low[0],
        "high": out.high[0],
    }
    assert out.to_dict()["a", days[0]]["value"] == out.values[0]
    # names that columns of answers have are left out
    taken = dpq.count_by(range(10), by.rename({"day": "value"}), groups=groups, epsilon=1.0, rng=1)
    assert taken.to_polars().columns == ["group 1", "group 2", "value"]


@pytest.mark.parametrize("unit", ["D", "s", "ms", "us", "ns"])
def test_groups_of_times_go_to_frames_and_json(unit):
    bounds = (np.datetime64("2020-01-01", unit), np.datetime64("2021-01-01", unit))
    answers = np.array(["2020-02-03", "NaT"], dtype=f"M8[{unit}]")
    keys = np.array(["a", "b"], dtype=object)
    out = dpq.quantile_by([bounds[0]], ["a"], 0.5, groups=["a", "b"], epsilon=1.0, bounds=bounds)
    out = dataclasses.replace(out, values=answers, groups=keys)
    days = [date(2020, 2, 3), None]
    assert out.to_polars()["value"].cast(pl.Date).to_list() == days
    assert out.to_arrow()["value"].cast(pa.timestamp("s")).cast(pa.date32()).to_pylist() == days
    first, second = json.loads(out.to_json())
    assert first["value"].startswith("2020-02-03") and second["value"] is None


def test_groups_of_both_hours_of_one_name_are_all_there():
    """When clocks are put back; of datetimes of one zone, Python says that they are equal."""
    first = datetime(2021, 10, 31, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    keys = [first, first.replace(fold=1)]
    out = dpq.count_by(range(30), [keys[0]] * 10 + [keys[1]] * 20, groups=keys, epsilon=1e6, rng=1)
    assert [answer for _, answer in out.items()] == [out[key] for key in keys] == [10, 20]
    assert [row["group"] for row in json.loads(out.to_json())] == [key.isoformat() for key in keys]
    assert out.to_polars()["group"].n_unique() == 2
    with pytest.raises(ValueError, match=r"^keys must differ as Python compares them"):
        out.to_dict()


def test_groups_of_endless_integers_go_to_frames_as_floats():
    out = dpq.count_by([1], [1], groups=[1, 2], epsilon=1e-25, rng=1)
    assert max(map(abs, out.values.tolist())) > 2**64
    assert out.to_polars()["value"].to_list() == out.values.astype(float).tolist()
    assert [row["value"] for row in json.loads(out.to_json())] == out.values.tolist()


SHOWN = {
    "quantile": (0.5, ["a", None], np.array([1.5, math.inf]), ("town",)),
    "quantiles": (np.array([[0.1], [0.2]]), np.array([3, 4]), np.ones((2, 2, 1)), ()),
    "counts": (None, np.array([True, False]), np.array([3, 2**70], dtype=object), ("value",)),
    "sums": (None, [("a", 1), ("b", 2)], np.array([0.5, 2.0]), ("town", "year")),
    "taken": (0.5, [("a", date(2020, 1, 1))], np.array([0.5]), ("q", "day")),
    "parts": (None, [pd.Interval(0, 1), pd.Interval(1, 2)], np.array([1, 2]), ()),
    "months": (0.5, [("a", pd.Period("2020-01", "M"))], np.array([0.5]), ()),
    "nothing": (None, [], np.empty(0), ()),
}


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("name", SHOWN)
def test_answers_of_the_reference_are_used_as_those_of_the_package(name, ends):
    q, given, values, names = SHOWN[name]
    options = dict(groups=keys.as_array(given) if isinstance(given, list) else given)
    options |= dict(values=values, names=names)
    if ends:
        options |= dict(low=values, high=values, confidence=0.9, covers="sample")
    of, kind = "aggregates_by", "GroupValues"
    if q is not None:
        of, kind, options = "quantile_by", "GroupQuantiles", options | dict(q=q)
    made = [
        getattr(importlib.import_module(f"dpq_fast.{wing}.{of}"), kind)(**options)
        for wing in ("mechanisms", "reference")
    ]
    ours, theirs = made
    assert list(ours.keys()) == list(theirs.keys()) and len(ours) == len(theirs)
    for key, answer in ours.items():
        assert key in theirs and "nowhere" not in theirs
        assert type(answer).__name__ == type(theirs[key]).__name__
        pairs = zip(answer, theirs[key], strict=False) if ends else [(answer, theirs[key])]
        assert all(np.array_equal(one, other) for one, other in pairs)
    assert ours.to_dict() == theirs.to_dict()
    assert json.loads(ours.to_json()) == json.loads(theirs.to_json())
    pd.testing.assert_frame_equal(ours.to_pandas(), theirs.to_pandas())
    if len(ours) and values.dtype != object:
        assert ours.to_polars().equals(theirs.to_polars())
        assert ours.to_arrow().equals(theirs.to_arrow())


def test_no_groups_go_to_frames():
    out = dpq.mean_by([], [], groups=[], epsilon=1.0, q=None, lower=0, upper=1, confidence=0.5)
    columns = ["group", "value", "low", "high"]
    assert out.to_polars().columns == out.to_arrow().column_names == columns
    assert (out.to_dict(), out.to_json(), list(out.keys())) == ({}, "[]", [])


@pytest.mark.parametrize(
    ("library", "method", "name"),
    [
        ("pandas", "to_pandas", "pandas"),
        ("polars", "to_polars", "polars"),
        ("pyarrow", "to_arrow", "arrow"),
    ],
)
def test_group_quantiles_name_the_extra_that_a_library_is_in(library, method, name, monkeypatch):
    out = dpq.quantile_by(X, CODES, Q, groups=[2, 0], rng=1, **OPTIONS)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf"pip install 'dpq_fast\[{name}\]'"):
        getattr(out, method)()


# Threads and seeds


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("resolution", [None, 0, 0.5])
def test_quantile_by_does_not_depend_on_workers(resolution, counted, monkeypatch):
    monkeypatch.setattr(grouping, "BLOCK", 1_000)
    monkeypatch.setattr(module, "SMALL_ENTRIES", 60)
    rng = np.random.default_rng(3)
    x, by = rng.normal(2.0, 1.0, 20_000), rng.integers(0, 3 * groups_scatter.CHUNK, 20_000)
    groups = rng.permutation(3 * groups_scatter.CHUNK)
    counts = rng.integers(0, 3, 20_000) if counted else None

    def answer(workers, seed):
        return dpq.quantile_by(
            x,
            by,
            Q,
            groups=groups,
            resolution=resolution,
            counts=counts,
            workers=workers,
            rng=seed,
            **OPTIONS,
        ).values

    expected = answer(1, 5)
    for workers in (2, 3, -1):
        assert np.array_equal(answer(workers, 5), expected)
    assert not np.array_equal(answer(2, 6), expected)
    for make in (np.random.default_rng, lambda key: np.random.Generator(ChaCha(key=key))):
        first, second = make(7), make(7)
        one, two = answer(1, first), answer(2, second)
        assert np.array_equal(one, two)
        assert not np.array_equal(answer(2, second), two)  # the generator went on
    assert not np.array_equal(answer(2, None), answer(2, None))
    monkeypatch.setattr(grouping, "BLOCK", 10**6)
    assert np.array_equal(answer(1, 5), expected)


def test_quantile_by_leaves_input_unchanged():
    x, by, groups = X.copy(), CODES.copy(), np.array([3, 1])
    for array in (x, by, groups):
        array.flags.writeable = False
    for resolution in (None, 0, 1):
        out = dpq.quantile_by(x, by, Q, groups=groups, resolution=resolution, **OPTIONS)
        out.groups[0] = 5
    assert np.array_equal(x, X) and np.array_equal(by, CODES)
    assert groups.tolist() == [3, 1]


@pytest.mark.parametrize("make", [np.float32, ">f8", np.float16])
def test_quantile_by_takes_any_real_column(make):
    x = np.round(X * 8) / 8
    expected = dpq.quantile_by(x, CODES, Q, groups=[0, 1], rng=1, **OPTIONS).values
    for column in (x.astype(make), np.repeat(x.astype(make), 2)[::2], pd.Series(x.astype("f4"))):
        out = dpq.quantile_by(column, CODES, Q, groups=[0, 1], rng=1, **OPTIONS).values
        assert np.array_equal(out, expected)


# Missing values


def test_quantile_by_omits_missing_values_record_by_record():
    gone = np.arange(400) % 7 == 0
    expected = dpq.quantile_by(X[~gone], CODES[~gone], Q, groups=[0, 1], rng=1, **OPTIONS).values
    x = np.where(gone, np.nan, X)
    for column in (x, pd.Series(x), pl.Series(x), [None if g else v for g, v in zip(gone, X)]):  # noqa: B905
        out = dpq.quantile_by(column, CODES, Q, groups=[0, 1], rng=1, **OPTIONS).values
        assert np.array_equal(out, expected)


def test_quantile_by_raises_for_missing_values_if_asked_to(monkeypatch):
    x = X.copy()
    x[np.flatnonzero(CODES == 1)[0]] = np.nan
    accountant = Accountant(10.0)
    with pytest.raises(ValueError, match=r"^x must not contain NaN with nan_policy='raise'$"):
        dpq.quantile_by(
            x,
            CODES,
            Q,
            groups=[0, 1],
            nan_policy="raise",
            accountant=accountant,
            workers=2,
            **OPTIONS,
        )
    assert len(accountant.history) == 1  # it has read the records


# Counts


@st.composite
def aggregated(draw: st.DrawFn) -> tuple[NDArray, NDArray, NDArray]:
    """Rows (value, key, count) with ties, NaN, keys of no group and counts of 0."""
    value = st.sampled_from([0.0, 1.0, 1.4, 3.0, 9.0, math.nan])
    row = st.tuples(value, st.integers(0, 4), st.sampled_from([0, 1, 2, 7]))
    rows = draw(st.lists(row, max_size=25))
    x, by, counts = np.array(rows).reshape(-1, 3).T
    return x, by.astype(np.int64), counts.astype(np.int64)


@pytest.mark.slow
@given(aggregated(), st.sampled_from([{}, {"resolution": 1}, {"resolution": 0}]))
def test_quantile_by_counts_stand_for_repeated_rows(implementation, rows, options):
    x, by, counts = rows
    expected = implementation.quantile_by(
        np.repeat(x, counts), np.repeat(by, counts), Q, groups=range(4), rng=1, **options, **OPTIONS
    )
    for weights in (counts, counts.tolist(), counts.astype(float), pl.Series(counts)):
        out = implementation.quantile_by(
            x, by, Q, groups=range(4), counts=weights, rng=1, **options, **OPTIONS
        )
        assert np.array_equal(out.values, expected.values)


@given(aggregated())
def test_quantile_by_counts_of_large_groups_stand_for_repeated_rows(rows):
    """On a lattice that is counted point by point the algorithm is the same, so the bits are."""
    x, by, counts = rows
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SMALL_ENTRIES", 30)  # up to 9 records are small
        out, expected = (
            dpq.quantile_by(*columns, Q, groups=range(4), resolution=1, rng=1, **more, **OPTIONS)
            for columns, more in (
                ((x, by), {"counts": counts}),
                ((np.repeat(x, counts), np.repeat(by, counts)), {}),
            )
        )
    assert np.array_equal(out.values, expected.values)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{"resolution": 1, "dither": False}, {"resolution": 0}], ids=str
)
def test_quantile_by_counts_follow_the_law_of_repeated_rows(implementation, options, monkeypatch):
    """Each group of rows with its law: some are repeated, some are large."""
    monkeypatch.setattr(module, "SMALL_ENTRIES", 12)
    samples = [([0, 2, 3], [1, 0, 2]), ([0, 2, 3], [3, 1, 4]), ([4], [0]), ([1, 4], [0, 12])]
    copies = 1_500 if implementation is dpq else 350
    x, by, groups = rows_of([values for values, _ in samples], copies)
    counts = rows_of([weights for _, weights in samples], copies)[0]
    out = implementation.quantile_by(
        x, by, Q, groups=groups, counts=counts, rng=4, **options, **OPTIONS
    )
    for i, (values, weights) in enumerate(samples):
        law = reference.joint_exp_law(
            np.repeat(np.array(values, dtype=float), weights),
            Q,
            epsilon=1.0,
            neighbors="add-remove",
            bounds=OPTIONS["bounds"],
            **options,
        )
        draws = out.values[i :: len(samples)]
        if options["resolution"]:
            observed = map(tuple, draws.astype(int).tolist())
            assert_draws_follow(observed, tabulate(law, 5, 3))
        else:  # all records lie on integers: a unit cell holds one density
            observed = map(tuple, np.floor(draws).astype(int).tolist())
            assert_draws_follow(observed, cells_of(law, 4, 3))


# Two groups of so many records, a small one, one without; and a row of no group.
HUGE = {"x": [1.0, 3.0, 2.0, 2.0, 0.0], "by": [0, 0, 2, 1, 7], "groups": [0, 1, 2, 3]}


@pytest.mark.parametrize("resolution", [None, 0])
def test_quantile_by_counts_may_sum_to_2_to_the_53(resolution):
    counts = np.array([2**51, 2**51, 5, 2**52 - 31_337, 31_332])
    # without a dither, which takes memory for some square roots of so many tied records
    lattice = {"resolution": resolution, "dither": False}
    given = {**HUGE, "q": [0.25, 0.75], "rng": 1, **lattice, **OPTIONS}
    out = dpq.quantile_by(**given, counts=counts)
    assert out[0][0] <= 3.0 and out[0][1] >= 1.0 and out[1][0] <= 2.0 <= out[1][1]
    with pytest.raises(ValueError, match=r"^counts must sum to at most 2\^53$"):
        dpq.quantile_by(**given, counts=[*counts[:4], 31_333])


def test_quantile_by_huge_counts_are_dithered():
    counts = [10**12, 10**12, 5, 10**12, 1]
    out = dpq.quantile_by(**HUGE, q=[0.25, 0.75], counts=counts, resolution=1, rng=1, **OPTIONS)
    assert out[0].tolist() == [1.0, 3.0] and out[1].tolist() == [2.0, 2.0]


def test_quantile_by_counts_follow_nan_policy_for_rows_that_are_there(implementation):
    x, by = [1.0, math.nan, math.nan], [1, 1, 2]
    given = {"groups": [1], "nan_policy": "raise", "rng": 1, **OPTIONS}
    implementation.quantile_by(x, by, Q, counts=[3, 0, 1], **given)
    with pytest.raises(ValueError, match=r"^x must not contain NaN with nan_policy='raise'$"):
        implementation.quantile_by(x, by, Q, counts=[3, 1, 1], **given)


# Bad input

GOOD = {"x": [1.0, 2.0], "by": [1, 2], "q": [0.5], "groups": [1, 2], **OPTIONS}
BAD = [
    ({"epsilon": 0.0}, ValueError, "epsilon must be positive and finite, got 0.0"),
    ({"epsilon": "1"}, TypeError, "epsilon must be a real number"),
    ({"q": []}, ValueError, "q must hold at least one level"),
    ({"q": 1.2}, ValueError, r"q must lie in \[0, 1\]"),
    ({"bounds": (1, 1)}, ValueError, "bounds must be finite with low < high"),
    ({"neighbors": "replace"}, ValueError, "neighbors must be one of"),
    ({"public_by": 1}, TypeError, "public_by must be True or False, got 1"),
    ({"max_contributions": 0}, ValueError, "max_contributions must be at least 1"),
    ({"nan_policy": "keep"}, ValueError, "nan_policy must be one of"),
    ({"resolution": -1.0}, ValueError, "resolution must be finite and not negative"),
    ({"dither": 1}, TypeError, "dither must be True or False"),
    ({"accountant": 1.0}, TypeError, "accountant must be an Accountant"),
    ({"workers": 0}, ValueError, "workers must"),
    ({"workers": 1.5}, TypeError, "workers must be an integer"),
    ({"groups": [1, 1]}, ValueError, "^groups must be distinct, got 1 twice$"),
    ({"groups": ["a", "b", "a"]}, ValueError, "^groups must be distinct, got a twice$"),
    (
        {"groups": [1, "a"]},
        TypeError,
        "^groups must hold integers, strings, .*, periods or intervals, all of one kind$",
    ),
    ({"groups": [1.5]}, TypeError, "^groups must hold integers, strings"),
    ({"groups": np.array([math.nan, 0.5])}, TypeError, "^groups must hold integers, strings"),
    ({"groups": [True, 2]}, TypeError, "^groups must hold integers, strings"),
    ({"groups": [True, True]}, ValueError, "^groups must be distinct, got True twice$"),
    ({"groups": [date(2020, 1, 1), np.datetime64("2020-01-01T00")]}, ValueError, "twice$"),
    ({"groups": [np.datetime64(1, "ps"), None]}, TypeError, "^groups must hold integers, strings"),
    ({"groups": np.array([1, 2], "M8[ps]")}, TypeError, "^groups must hold integers, strings"),
    ({"groups": np.array(["2020", "NaT", "NaT"], "M8[D]")}, ValueError, "got None twice$"),
    ({"groups": np.array(["2020", "2021", "2020"], "M8[s]")}, ValueError, "2020-01-01T.* twice$"),
    ({"groups": [(1, 2), 3]}, ValueError, "^groups must be keys, or tuples of one length"),
    ({"groups": [(1, 2)]}, TypeError, "^by must be a column of .* got int$"),
    ({"groups": [(1, 2, 3)]}, ValueError, "^groups must be .*as many keys as by has columns"),
    ({"groups": [1, None, "a"]}, TypeError, "^groups must hold integers, strings"),
    ({"groups": [2**64]}, ValueError, "^groups must be integers of 64 bits$"),
    ({"groups": [-1, 2**63]}, ValueError, "^groups must be integers of 64 bits$"),
    ({"groups": {1, 2}}, TypeError, "^groups must be a sequence .* got set$"),
    ({"groups": {1: 2}}, TypeError, "^groups must be a sequence .* got dict$"),
    ({"groups": "ab"}, TypeError, "^groups must be a sequence .* got str$"),
    ({"groups": 3}, TypeError, "^groups must be a sequence .* got int$"),
    ({"groups": None}, ValueError, "^delta must be positive: without it no key is ever kept"),
    ({"groups": None, "rho": 0.5}, ValueError, "^epsilon must be given in place of rho to select"),
    ({"selection_share": 0.5}, ValueError, "^selection_share must be left out where groups are"),
    ({"groups": np.zeros((2, 2), int)}, ValueError, "^groups must be one-dimensional"),
    ({"by": [1]}, ValueError, "^by must have one key for each row of x$"),
    ({"by": np.arange(3)}, ValueError, "^by must have one key for each row of x$"),
    ({"by": np.zeros((2, 2), int)}, ValueError, "^by must be one-dimensional, got 2 dimensions$"),
    ({"by": np.array([1j, 2.0])}, TypeError, r"^by must hold integers, .* got dtype"),
    ({"by": np.array([True, False])}, TypeError, "^groups must be booleans as the column by is"),
    ({"by": np.array([1, 2], "M8[ps]")}, TypeError, r"^by must hold integers, .* got dtype"),
    ({"by": np.array([1, 2], "m8[s]")}, TypeError, "^by must hold integers, .* got dtype"),
    ({"by": pd.Series([1.5j, 2.5])}, TypeError, r"^by must hold integers, .* got dtype"),
    ({"by": pl.Series([timedelta(1)] * 2)}, TypeError, r"^by must hold integers, .* got dtype"),
    ({"by": np.array(["2020-01-01"] * 2, "M8[D]")}, TypeError, "^groups must be dates as the"),
    ({"by": "ab"}, TypeError, "^by must be a column of integers, .* got str$"),
    ({"by": {1: 2}}, TypeError, "^by must be a column .* got dict$"),
    ({"by": None}, TypeError, "^by must be a column .* got NoneType$"),
    ({"by": np.array(["a", "b"])}, TypeError, "^groups must be strings as the column by is, got"),
    ({"groups": ["a"], "by": np.arange(2)}, TypeError, "^groups must be integers as the column"),
    ({"groups": np.arange(2), "by": np.array(["a", "b"])}, TypeError, "^groups must be strings as"),
    ({"x": np.zeros((2, 2))}, ValueError, "x must be one-dimensional"),
    ({"x": ["a", "b"]}, TypeError, "x must hold real numbers"),
    ({"x": dpq.Sample.of([1.0, 2.0], (0, 4))}, TypeError, "x must be"),
]


@pytest.mark.parametrize(("change", "error", "message"), BAD)
def test_quantile_by_rejects(change, error, message):
    arguments = {**GOOD, **change}
    with pytest.raises(error, match=message):
        dpq.quantile_by(arguments.pop("x"), arguments.pop("by"), arguments.pop("q"), **arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": np.zeros((2, 2))}, "x must be one-dimensional"),
        ({"x": "ab"}, "x must be a one-dimensional array or sequence"),
        ({"by": np.array(["a", "b"])}, "groups must be strings as the column by is"),
    ],
    ids=["dimensions", "string", "keys"],
)
def test_quantile_by_refuses_what_columns_declare_before_the_charge(change, message):
    accountant = privacy.Accountant(9.0)
    with pytest.raises((TypeError, ValueError), match=message):
        dpq.quantile_by(**GOOD | change, accountant=accountant)
    assert accountant.history == ()


@pytest.mark.parametrize(
    ("counts", "error", "message"),
    [
        ([1], ValueError, "^counts must have one entry for each value of x$"),
        ([[1, 2]], ValueError, "^counts must have one entry for each value of x$"),
        ([1, -2], ValueError, "^counts must not be negative$"),
        ([1, 2.5], ValueError, "^counts must be integers, got a fractional or non-finite"),
        (["1", "2"], TypeError, "^counts must be integers, got dtype"),
        ([2**53, 1], ValueError, r"^counts must sum to at most 2\^53$"),
    ],
)
def test_quantile_by_rejects_counts(implementation, counts, error, message):
    with pytest.raises(error, match=message):
        implementation.quantile_by(**GOOD, counts=counts)


class Untouchable:
    """A column that declares nothing, and whose records must not be looked at."""

    def __getattr__(self, name):
        if name in ("dtype", "type", "ndim", "cat"):
            raise AttributeError(name)
        raise AssertionError("the data was touched")

    def __iter__(self):
        raise AssertionError("the data was touched")

    __array__ = __len__ = __iter__


def test_quantile_by_asks_the_accountant_before_it_touches_data():
    accountant = Accountant(1.0)
    with pytest.raises(BudgetExceeded):
        dpq.quantile_by(
            Untouchable(),
            Untouchable(),
            Q,
            groups=[1],
            epsilon=1.5,
            bounds=(0, 1),
            accountant=accountant,
        )
    dpq.quantile_by(
        [0.5], [1], Q, groups=[1, 2, 3], epsilon=1.0, bounds=(0, 1), accountant=accountant
    )
    assert accountant.spent.epsilon == 1.0  # whatever the number of groups


TEXTS = st.sampled_from(["", "a", "b", "a\0", "ü", "日本", "x" * 12, "x" * 13, "x" * 16, "y" * 40])


def arrow_of(texts, declared):
    """In chunks, of which each is a slice."""
    half = len(texts) // 2
    parts = [["before", None, *part, "after"] for part in (texts[:half], texts[half:], [])]
    return pa.chunked_array([pa.array(part, declared)[2:-1] for part in parts], declared)


TEXT_COLUMNS = {
    "string": lambda texts: arrow_of(texts, pa.string()),
    "large_string": lambda texts: arrow_of(texts, pa.large_string()),
    "string_view": lambda texts: arrow_of(texts, pa.string_view()),
    "dictionary": lambda texts: arrow_of(texts, pa.string()).dictionary_encode(),
    "one chunk": lambda texts: pa.array(texts, pa.string()),
    "list": lambda texts: texts,
    "objects": lambda texts: np.array([*texts, None], dtype=object)[:-1],
    "every other": lambda texts: np.repeat(np.array([*texts, None], dtype=object)[:-1], 2)[::2],
    "NumPy": lambda texts: np.array(["" if text is None else text for text in texts], dtype=str),
    "big-endian": lambda texts: np.array(["" if text is None else text for text in texts], ">U44"),
    "pandas": lambda texts: pd.Series(texts, dtype="str"),
    "pandas object": lambda texts: pd.Series(texts, dtype=object),
    "pandas python": lambda texts: pd.Series(texts, dtype="string[python]"),
    "pandas category": lambda texts: pd.Series(texts, dtype="str").astype("category"),
    "polars": lambda texts: pl.Series(texts, dtype=pl.String),
    "polars chunks": lambda texts: pl.concat(
        [pl.Series(part, dtype=pl.String) for part in (texts[:3], texts[3:])], rechunk=False
    ),
    "polars category": lambda texts: pl.Series(texts, dtype=pl.String).cast(pl.Categorical),
    "polars small": lambda texts: pl.Series(texts, dtype=pl.String).cast(
        pl.Categorical(pl.Categories("texts", physical=pl.UInt8))
    ),
}


@pytest.mark.parametrize("kind", TEXT_COLUMNS)
@given(st.lists(TEXTS, unique=True, max_size=6), st.lists(TEXTS | st.none(), max_size=20))
def test_strings_are_found_as_by_a_dictionary(kind, public, texts):
    column = TEXT_COLUMNS[kind](texts)
    held = column.tolist() if isinstance(column, np.ndarray) else texts
    place = {key: g for g, key in enumerate(public)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(public_keys, "BLOCK", 4)
        own = public_keys.Groups(public).columns[0]
        lookup = own.lookup(
            key_columns.Column.of(column), lambda find, blocks: list(map(find, blocks))
        )
    assert lookup.places(slice(None)).tolist() == [place.get(text, -1) for text in held]


def test_strings_of_arrow_are_found_among_any_keys():
    column = pa.chunked_array([["a", None, "b"], ["c", "a", ""]])
    values = np.arange(6.0)
    options = dict(epsilon=1.0, bounds=(0, 9), rng=1)
    for groups in (["a", "", "x"], ["\ud800", "b"], [np.str_("c"), "a"]):
        expected = dpq.quantile_by(values, column.to_pylist(), 0.5, groups=groups, **options)
        for by in (column, column.combine_chunks(), pl.Series(column), column.to_pandas()):
            found = dpq.quantile_by(values, by, 0.5, groups=groups, **options)
            assert found.values.tolist() == expected.values.tolist()


# Privacy

POINTS = 3
# What a row can be: a group of two and a value; or in no group, or without a value.
ROWS = [*product(range(2), range(POINTS)), None]


def neighbors_of(rows: tuple, neighbors: str, public_by: bool) -> Iterator[tuple]:
    for row in dict.fromkeys(rows):  # of equal rows, each gives the same neighbors
        i = rows.index(row)
        if neighbors == "add-remove":
            yield rows[:i] + rows[i + 1 :]
            continue
        for new in ROWS:
            if not public_by or row is None or new is None or new[0] == row[0]:
                yield tuple(sorted((*rows[:i], new, *rows[i + 1 :]), key=str))
    if neighbors == "add-remove":
        for new in ROWS:
            yield tuple(sorted((*rows, new), key=str))


class Releases:
    """The exact law of a call: a product over two groups of brute-force laws."""

    def __init__(self, q, spent):
        self.q, self.spent = q, spent
        # groups of different data sets have the same records
        self.log_prob, self.ends, self.group_renyi = map(
            cache, (self.log_prob, self.ends, self.group_renyi)
        )

    def log_prob(self, records):
        """Log-probabilities of all outputs for one group."""
        law = law_of_group(records, POINTS, self.q, self.spent)
        return np.array([law[output] for output in sorted(law)])

    def ends(self, a, b):
        """Largest and smallest log ratio of one group's outputs."""
        ratio = self.log_prob(a) - self.log_prob(b)
        return ratio.max(), ratio.min()

    def group_renyi(self, a, b, alpha):
        log_p, log_r = self.log_prob(a), self.log_prob(b)
        return np.logaddexp.reduce(alpha * log_p + (1.0 - alpha) * log_r) / (alpha - 1.0)

    def loss(self, x, y):
        """Largest |log ratio| and its range over all pairs of outputs: groups are independent."""
        ends = [self.ends(a, b) for a, b in zip(grouped(x), grouped(y), strict=True)]
        highest, lowest = map(sum, zip(*ends, strict=True))
        return max(highest, -lowest), highest - lowest

    def renyi(self, x, y, alpha):
        """Divergence of order alpha; it adds up over groups."""
        pairs = zip(grouped(x), grouped(y), strict=True)
        return sum(self.group_renyi(a, b, alpha) for a, b in pairs)


@cache
def grouped(rows: tuple) -> tuple[tuple[int, ...], ...]:
    """The records of each of the two groups, in order."""
    return tuple(
        tuple(sorted(row[1] for row in rows if row is not None and row[0] == group))
        for group in range(2)
    )


CASES = [
    ("swap", False),
    ("swap", True),
    ("add-remove", False),
]


def datasets(most: int) -> Iterator[tuple]:
    """All small ones, and some where one more row moves every output by almost the sensitivity."""
    for n in range(most + 1):
        yield from combinations_with_replacement(sorted(ROWS, key=str), n)
    for n in (4, 10, 20):
        for low in range(0, n + 1, 2):
            side = [0] * low + [2] * (n - low)
            yield tuple((group, value) for group in range(2) for value in side)


@pytest.mark.slow
@pytest.mark.parametrize("q", [[0.5], [0.1, 0.6], [0.0, 0.3, 1.0], [0.9]], ids=str)
@pytest.mark.parametrize(("neighbors", "public_by"), CASES)
def test_quantile_by_privacy_ratio_over_all_neighbors(neighbors, public_by, q):
    epsilon = 1.5
    form = dict(epsilon=epsilon, neighbors=neighbors, public_by=public_by)
    promise = guarantee("quantile_by", q=q, **form)
    releases = Releases(q, privacy.quantile_by.calibrate(q, **form))
    worst = worst_range = worst_rho = 0.0
    for x in datasets(4 if len(q) < 3 else 3):
        for y in neighbors_of(x, neighbors, public_by):
            loss, spread = releases.loss(x, y)
            worst, worst_range = max(worst, loss), max(worst_range, spread)
            for alpha in (1.01, 3.0, 30.0):
                worst_rho = max(worst_rho, releases.renyi(x, y, alpha) / alpha)
    assert 0.2 * epsilon < worst <= promise.epsilon + 1e-9
    # permute-and-flip has no range of its own
    assert 0.6 * epsilon < worst_range <= (promise.bounded_range or 2.0 * epsilon) + 1e-9
    assert 0.1 * promise.rho < worst_rho <= promise.rho + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("q", [[0.5], [0.2, 0.6]], ids=str)
@pytest.mark.parametrize(("neighbors", "public_by"), CASES)
def test_quantile_by_privacy_ratio_of_two_contributions(neighbors, public_by, q):
    epsilon = 1.5
    form = dict(epsilon=epsilon, neighbors=neighbors, public_by=public_by, max_contributions=2)
    promise = guarantee("quantile_by", q=q, **form)
    releases = Releases(q, privacy.quantile_by.calibrate(q, **form))
    worst = worst_range = worst_rho = 0.0
    for x in datasets(3):
        further = {
            z
            for y in neighbors_of(x, neighbors, public_by)
            for z in neighbors_of(y, neighbors, public_by)
        }
        for y in further:
            loss, spread = releases.loss(x, y)
            worst, worst_range = max(worst, loss), max(worst_range, spread)
            worst_rho = max(worst_rho, releases.renyi(x, y, 2.0) / 2.0)
    assert 0.2 * epsilon < worst <= promise.epsilon + 1e-9
    assert worst_range <= (promise.bounded_range or 2.0 * epsilon) + 1e-9
    assert worst_rho <= promise.rho + 1e-9


def test_quantile_by_swap_is_half_its_epsilon_under_add_remove():
    q = [0.25, 0.5]
    releases = Releases(q, privacy.quantile_by.calibrate(q, epsilon=2.0))
    worst = max(
        releases.loss(x, y)[1] for x in datasets(3) for y in neighbors_of(x, "add-remove", False)
    )
    assert 0.5 < worst <= 1.0 + 1e-9


# Keys at the ends


# Distinct groups with a gap before, between and beyond their keys, and keys that are none of them.
SPREAD = {
    "wide": [-(2**62), 0, 2**62],
    "least": [-(2**63), 0, 3],
    "zero and unsigned": [0, 2**63, 2**64 - 1],
    "negative": [-5, 0, 200],
    "far apart": [7, 3, 10**12],
}


@pytest.mark.parametrize("groups", SPREAD.values(), ids=SPREAD.keys())
@pytest.mark.parametrize("as_array", [False, True])
def test_quantile_by_finds_the_group_of_every_key(groups, as_array):
    dtype = np.uint64 if max(groups) >= 2**63 else np.int64
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    near = {key + step for key in groups for step in (-1, 1)}
    others = sorted(key for key in near if least <= key <= most and key not in groups)
    # each group has records at one place, and everybody else's are far from it
    keys = [key for key in [*groups, *others] for _ in range(40)]
    x = np.repeat([1.0, 2.0, 3.0, *[4.0] * len(others)], 40)
    by = np.array(keys, dtype=dtype) if as_array else keys
    out = dpq.quantile_by(
        x, by, 0.5, groups=groups, epsilon=1e4, bounds=(0, 4), resolution=1, rng=1
    )
    assert out.groups.tolist() == groups
    assert out.values.tolist() == [1.0, 2.0, 3.0]


def test_quantile_by_ignores_masked_keys():
    by = np.ma.masked_array(np.repeat([0, 1], 60), mask=np.arange(120) % 60 >= 20)
    x = np.where(np.arange(120) % 60 >= 20, 4.0, np.repeat([1.0, 2.0], 60))
    out = dpq.quantile_by(
        x, by, 0.5, groups=[0, 1], epsilon=1e4, bounds=(0, 4), resolution=1, rng=1
    )
    assert out.values.tolist() == [1.0, 2.0]


def test_quantile_by_takes_an_iterator_of_keys():
    x, keys = np.repeat([1.0, 2.0], 40), [0, 1] * 40
    first, second = (
        dpq.quantile_by(x, by, Q, groups=[0, 1], rng=1, **OPTIONS) for by in (keys, iter(keys))
    )
    assert np.array_equal(first.values, second.values)


def test_quantile_by_refuses_what_an_array_says_of_its_keys():
    class Column:
        """No type, and an array that has one."""

        def __iter__(self):
            return iter(["a", "b"])

        def __array__(self, dtype=None, copy=None):
            return np.array(["a", "b"])

    with pytest.raises(TypeError, match=r"^groups must be strings as the column by is, got int"):
        dpq.quantile_by([1.0, 2.0], Column(), Q, groups=[0, 1], rng=1, **OPTIONS)


@pytest.mark.parametrize("place", [0, 5, 11])
def test_quantile_by_finds_nan_in_any_block(place, monkeypatch):
    monkeypatch.setattr(grouping, "BLOCK", 4)
    x = np.ones(12)
    x[place] = math.nan
    with pytest.raises(ValueError, match="nan_policy='raise'"):
        dpq.quantile_by(x, [0] * 12, Q, groups=[0], nan_policy="raise", rng=1, **OPTIONS)


@pytest.mark.parametrize("largest", [12, 20_000])
def test_quantile_by_without_a_lattice_rounds_nothing(largest, monkeypatch):
    monkeypatch.setattr(module, "SMALL_ENTRIES", largest)
    x = np.random.default_rng(5).uniform(0.0, 4.0, size=90)
    out = dpq.quantile_by(x, np.arange(90) % 3, Q, groups=[0, 1, 2], resolution=0, rng=1, **OPTIONS)
    assert ((out.values > 0.0) & (out.values < 4.0) & (out.values % 1.0 != 0.0)).all()
