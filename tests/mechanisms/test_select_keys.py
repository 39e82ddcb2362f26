"""Selection of keys: its law, what a key is, and what an answer says."""

from __future__ import annotations

import datetime
import itertools
import math
import time
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

import dpq_fast as dpq
from dpq_fast import privacy
from dpq_fast.data.key_counts import count_keys
from dpq_fast.data.keys import as_array
from dpq_fast.laws.key_selection import KeysLaw

SURE = dict(epsilon=50.0, delta=0.9)
BUDGET = dict(epsilon=2.0, delta=0.2)


def all_kept(implementation: Any, by: Any, **options: Any) -> Any:
    """The kept keys where each of two records is kept but for e^-20."""
    return implementation.select_keys(by, rng=1, **SURE | options)


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("k", [1, 2])
def test_draws_follow_the_law(implementation, neighbors, k):
    """All eight sets, by chi-square: the recurrence in fractions against the public function."""
    by = [5] * 1 + [3] * 2 + [9] * 3
    options = BUDGET | dict(neighbors=neighbors, max_contributions=k)
    p = probabilities(neighbors, k, 3)
    rng = np.random.default_rng(7)
    size = 1_500 if implementation is dpq else 400
    drawn = [tuple(implementation.select_keys(by, rng=rng, **options)) for _ in range(size)]
    seen, expected = [], []
    for kept in itertools.product([False, True], repeat=3):
        label = tuple(key for key, yes in zip((3, 5, 9), kept, strict=True) if yes)
        of_each = zip(kept, (p[2], p[1], p[3]), strict=True)
        expected.append(size * math.prod(q if yes else 1.0 - q for yes, q in of_each))
        seen.append(drawn.count(label))
    possible = np.array(expected) > 0.0  # a key of three records may be sure to be kept
    assert np.array(seen)[possible].sum() == size
    found = stats.chisquare(np.array(seen)[possible], np.array(expected)[possible])
    assert found.pvalue > 1e-6


def probabilities(neighbors: str, k: int, most: int) -> list[float]:
    """The rule once more, in floats."""
    alpha = beta = BUDGET["epsilon"] / k
    tau = delta = BUDGET["delta"] / sum(math.exp(i * alpha) for i in range(k))
    if neighbors == "swap":
        alpha, beta, tau = 0.6 * alpha, 0.4 * beta, 0.0
        delta = BUDGET["delta"] / sum(math.exp(i * alpha) for i in range(k))
    p = [0.0]
    for _ in range(most):
        kept = math.exp(alpha) * p[-1] + delta
        p.append(min(kept, 1.0 - math.exp(-beta) * (1.0 - p[-1] - tau), 1.0))
    return p


@pytest.mark.parametrize("seed", range(5))
def test_fast_equals_reference(seed):
    """The same seed, the same draws."""
    by = np.random.default_rng(seed).integers(0, 40, size=500)
    for neighbors, k in (("swap", 1), ("add-remove", 3)):
        options = dict(epsilon=1.0, delta=1e-3, neighbors=neighbors, max_contributions=k, rng=seed)
        fast, plain = (side.select_keys(by, **options) for side in (dpq, dpq.reference))
        assert fast.dtype == plain.dtype and fast.tolist() == plain.tolist()
        assert 0 < fast.size < 40


class Stuck:
    """A generator whose words are all the same, and then as given."""

    def __init__(self, word: int, rest: list[bytes]) -> None:
        self.word, self.rest = word, rest

    def integers(self, low: int, high: int, size: int, dtype: Any) -> Any:
        assert (low, high) == (0, 2**64)
        return np.full(size, self.word, dtype=dtype)

    def bytes(self, length: int) -> bytes:
        more = self.rest.pop(0)
        assert len(more) == length
        return more


def test_a_word_on_the_threshold_is_decided_by_more_bits(monkeypatch):
    """Exactly: one bit below the probability is kept, the next above is not."""
    import dpq_fast.laws.key_selection as module

    monkeypatch.setattr(module, "default_rng", lambda rng: rng)
    calibration = privacy.key_selection.calibrate(epsilon=1.0, delta=1e-6)
    low, high = calibration.bounds(10, 128)
    assert high - low == 1
    word, rest = divmod(low, 2**64)
    law = KeysLaw(["a"], np.array([10]), calibration)

    def kept(word: int, *more: int) -> bool:
        rest = [bits.to_bytes(8 << i, "little") for i, bits in enumerate(more)]
        return law.sample(Stuck(word, rest)) == ["a"]

    assert kept(word - 1) and not kept(word + 1)
    assert kept(word, rest - 1) and not kept(word, rest + 1)
    low, _ = calibration.bounds(10, 256)
    assert kept(word, rest, low % 2**128 - 1) and not kept(word, rest, low % 2**128 + 2)
    # likelier than nothing, and less likely than the least word
    calibration = privacy.key_selection.calibrate(epsilon=1.0, delta=1e-30)
    law = KeysLaw(["a"], np.array([1]), calibration)
    assert kept(0, 0) and not kept(0, 2**64 - 1)


def test_a_generator_stuck_on_the_threshold_does_not_hang(monkeypatch):
    import dpq_fast.laws.key_selection as module

    monkeypatch.setattr(module, "default_rng", lambda rng: rng)
    calibration = privacy.key_selection.calibrate(epsilon=1.0, delta=0.5, neighbors="add-remove")
    zeros = [bytes(8 << i) for i in range(5)]  # 2,048 bits in all are not exceeded
    law = KeysLaw(["a"], np.array([1]), calibration)
    start = time.process_time()
    assert law.sample(Stuck(2**63 - 1, [b"\xff" * len(more) for more in zeros])) == []
    assert law.sample(Stuck(2**63, zeros)) == []
    assert time.process_time() - start < 20.0


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
def test_log_prob_is_that_of_independent_decisions(neighbors):
    calibration = privacy.key_selection.calibrate(**BUDGET, neighbors=neighbors)
    law = KeysLaw(["a", "b"], np.array([1, 2]), calibration)
    _, a, b = probabilities(neighbors, 1, 2)
    for kept, expected in {
        (): (1.0 - a) * (1.0 - b),
        ("a",): a * (1.0 - b),
        ("b",): (1.0 - a) * b,
        ("b", "a"): a * b,
    }.items():
        assert law.log_prob(kept) == pytest.approx(math.log(expected))
    assert law.log_prob(["a", "c"]) == -math.inf
    sure = privacy.key_selection.calibrate(epsilon=1.0, delta=0.9, neighbors="add-remove")
    assert KeysLaw(["a"], np.array([9]), sure).log_prob([]) == -math.inf


def test_keys_of_one_person_are_kept_with_delta():
    """20,000 keys of one record each, and as many of two by one person."""
    for by, k in ((np.arange(20_000), 1), (np.repeat(np.arange(20_000), 2), 2)):
        for neighbors in ("swap", "add-remove"):
            options = dict(epsilon=1.0, delta=0.05, neighbors=neighbors, max_contributions=k)
            kept = dpq.select_keys(by, rng=3, **options).size
            assert stats.binomtest(kept, 20_000, 0.05).pvalue > 1e-6


KEYS = [3, -1, 3, 2, 2, -1, 3]
DAY, A_DAY = datetime.date(2020, 1, 1), datetime.timedelta(days=1)
WORDS = ["b", "", "b", "ä", "ä", "", "b"]


def test_answers_do_not_depend_on_what_holds_the_keys(implementation):
    """Containers, types and the order of rows: the keys that are there, ascending."""
    for keys, expected, dtype in ((KEYS, [-1, 2, 3], np.int64), (WORDS, ["", "b", "ä"], object)):
        missing = [*keys, None, None, None]
        columns = [
            keys,
            tuple(keys),
            iter(keys) if implementation is dpq else keys,
            np.array(keys),
            np.array(keys, dtype=object),
            np.array(missing, dtype=object),
            missing,
            [*missing, math.nan, 2.5, b"x", (1,), [1]],
            pd.Series(keys),
            pd.Series(missing, dtype="Int64" if keys is KEYS else "string"),
            pd.Series(keys).astype("category"),
            pd.Categorical(missing),
            pl.Series(keys),
            pl.Series(missing),
            pa.array(keys),
            pa.array(missing),
            pa.chunked_array([keys, missing]),
            pa.array(missing).dictionary_encode(),
        ]
        if keys is WORDS:
            columns += [pl.Series(missing, dtype=pl.Categorical), np.array(keys, dtype="T")]
        else:
            columns += [np.array(keys, dtype=np.int8), np.array(keys, dtype=">i4")]
            columns += [np.ma.masked_equal([*keys, 7, 7], 7)]
        for column in columns:
            found = all_kept(implementation, column)
            assert found.tolist() == expected, type(column)
            assert found.dtype == dtype
        drawn = dpq.select_keys(keys, rng=2, **BUDGET).tolist()
        assert drawn == dpq.select_keys(keys[::-1], rng=2, **BUDGET).tolist()


def test_type_of_an_answer_is_that_of_the_kept_keys(implementation):
    def kept(keys: list[Any]) -> Any:
        return all_kept(implementation, 2 * keys)

    high = 2**63 + 5
    assert kept([7, high]).dtype == np.uint64
    assert kept([7, high]).tolist() == [7, high]
    assert kept([2**63 - 1]).dtype == np.int64
    assert kept([-7, high]).tolist() == [-7, high]
    assert kept([-7, high]).dtype == object
    assert kept(["a", 3, "b", -2]).tolist() == [-2, 3, "a", "b"]
    assert kept([2**64, -(2**63) - 1, 4]).tolist() == [4]
    small = np.array([7, 7], dtype=np.uint64)
    assert all_kept(implementation, small).dtype == np.int64
    for nothing in ([], [None], np.array([], dtype=np.int64), np.array([], dtype="U3")):
        found = all_kept(implementation, nothing)
        assert found.shape == (0,) and found.dtype == object


def test_answers_are_groups():
    x, towns = np.arange(200.0), np.repeat(["a", "b"], 100)
    for by in (towns, np.arange(200) % 3):
        groups = dpq.select_keys(by, epsilon=1.0, delta=1e-6, rng=1)
        out = dpq.quantile_by(x, by, 0.5, groups=groups, epsilon=1.0, bounds=(0, 200), rng=1)
        assert out.groups.tolist() == groups.tolist() == np.unique(by).tolist()
    nobody = dpq.select_keys([1, 2], epsilon=1.0, delta=1e-6, rng=1)
    assert len(dpq.quantile_by([1.0], [1], 0.5, groups=nobody, epsilon=1.0, bounds=(0, 9))) == 0


def test_counts_repeat_rows(implementation):
    rows, counts = [3, 4, 3, 5, None, 4], [1, 0, 2, 7, 9, 0]
    long = np.repeat(np.array(rows, dtype=object), counts)
    for seed in range(10):
        options = BUDGET | dict(rng=seed)
        found = implementation.select_keys(rows, counts=counts, **options)
        assert found.tolist() == implementation.select_keys(long, **options).tolist()
    assert all_kept(implementation, rows, counts=counts).tolist() == [3, 5]
    as_integers = np.array([3, 4, 3, 5, 6, 4])
    counted = count_keys(as_integers, np.array([1, 0, 2**53 - 10, 7, 0, 0]))
    assert counted.keys == [3, 5] and counted.counts.tolist() == [2**53 - 9, 7]


def test_categories_that_are_one_key_are_one(implementation):
    codes = pd.Categorical.from_codes([0, 1, 1, -1], categories=[1, "1"])
    assert count_keys(codes).keys == [1, "1"]
    assert all_kept(implementation, codes).tolist()[-1] == "1"


def test_as_array_is_of_the_keys():
    assert as_array([]).dtype == object
    assert as_array([2, 1]).tolist() == [2, 1]


def test_input_is_left_unchanged():
    by, counts = np.array([3, 1, 3]), np.array([1, 2, 3])
    for array in (by, counts):
        array.flags.writeable = False
    dpq.select_keys(by, counts=counts, rng=1, **BUDGET)
    assert by.tolist() == [3, 1, 3] and counts.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (dict(by=7), TypeError, r"^by must be a column of integers, .*, got int$"),
        (dict(by="abc"), TypeError, r"^by must be a column of integers, .*, got str$"),
        (dict(by={1, 2}), TypeError, r"^by must be a column of integers, .*, got set$"),
        (dict(by=np.array([1j])), TypeError, r"^by must hold integers, .*, got dtype com"),
        (dict(by=np.ones((2, 2), int)), ValueError, "^by must be one-dimensional, got 2 dimen"),
        (dict(delta=0.0), ValueError, "^delta must be positive: without it no key is ever kept"),
        (dict(delta=0), ValueError, "^delta must be positive: without it no key is ever kept"),
        (dict(delta=None), TypeError, "^delta must be a real number, got None$"),
        (dict(counts=[1]), ValueError, "^counts must have one entry for each value of by$"),
        (dict(counts=[1, -1, 0]), ValueError, "^counts must not be negative$"),
        (dict(counts=[2**53, 1, 0]), ValueError, r"^counts must sum to at most 2\^53$"),
        (dict(accountant=3.0), TypeError, "^accountant must be an Accountant, got float$"),
    ],
)
def test_select_keys_rejects(implementation, given, error, message):
    with pytest.raises(error, match=message):
        implementation.select_keys(**dict(by=[1, 2, 3], rng=1) | BUDGET | given)


def test_what_is_charged_and_when(implementation):
    accountant = privacy.Accountant(2.0, 1e-5)
    options = dict(epsilon=1.0, delta=4e-6, accountant=accountant, rng=1)
    for bad in (dict(delta=0.0), dict(by=3), dict(neighbors="x"), dict(rng="seed")):
        with pytest.raises((TypeError, ValueError)):
            implementation.select_keys(**dict(by=[1, 2]) | options | bad)
    assert accountant.history == ()
    implementation.select_keys([1, 2], **options)
    with pytest.raises(ValueError, match="counts"):  # which are private: a charge is not undone
        implementation.select_keys([1, 2], counts=[1], **options)
    assert accountant.history == 2 * (privacy.guarantee("select_keys", epsilon=1.0, delta=4e-6),)
    with pytest.raises(privacy.BudgetExceeded):
        implementation.select_keys([1], **options)


def test_hostile_keys_are_left_out():
    """No key, and no reason to tell: whatever a row does when it is looked at."""

    class Wild(int):
        def __int__(self) -> int:
            raise RuntimeError("no")

        def __index__(self) -> int:
            raise RuntimeError("no")

    class Scalar:
        def as_py(self) -> Any:
            raise RuntimeError("no")

    found = dpq.select_keys([Wild(3), Scalar(), 4, 4, Fraction(4), {}], rng=1, **SURE)
    assert found.tolist() == [4]


def test_keys_of_other_kinds_and_of_several_columns(implementation):
    """Each as it is given back: from what is kept alone."""
    zone = datetime.timezone(datetime.timedelta(hours=2))
    noon = datetime.datetime(2020, 1, 1, 12)
    for by, expected in (
        (np.array([True, False, True]), [False, True]),
        ([True, False, 3], [0, 1, 3]),
        (np.array(["2020-01-02", "NaT", "2020-01-01"], "M8[D]"), [DAY, DAY + A_DAY]),
        (pl.Series([DAY, None, DAY + A_DAY]), [DAY, DAY + A_DAY]),
        (pd.Series([noon, pd.NaT, pd.Timestamp(DAY)]), [DAY, noon]),
        ([noon.replace(tzinfo=zone), noon, None], [noon, noon.replace(tzinfo=zone)]),
        (np.array([1], "M8[ns]"), [np.datetime64(1, "ns")]),
        (pd.DataFrame(dict(a=["x", "y", None], b=[1, 2, 3])), [("x", 1), ("y", 2)]),
        ([["x", "x", "w"], pl.Series([2, 1, 1])], [("w", 1), ("x", 1), ("x", 2)]),
        (pa.table(dict(a=pa.array([], pa.string()), b=pa.array([], pa.int8()))), []),
    ):
        size = 3 if isinstance(by, list) else len(by)
        found = all_kept(implementation, by, counts=[99] * size).tolist()
        assert found == expected and list(map(type, found)) == list(map(type, expected))
    with pytest.raises(ValueError, match=r"^by must have columns of one length$"):
        implementation.select_keys([[1, 2], [1]], rng=1, **BUDGET)


def test_keys_are_dates_of_any_year():
    """Python has those of the years 1 to 9999, NumPy the others."""
    days = np.array(["-0044-03-15", "0001-01-01", "9999-12-31", "10000-01-01"], dtype="M8[D]")
    expected = [days[0], datetime.date.min, datetime.date.max, days[3]]
    columns = [days, pl.Series(days.astype(np.int32)).cast(pl.Date), pa.array(days)]
    columns += [pd.Series(days.astype("M8[s]")), days.astype("M8[us]"), list(days)]
    for column in columns:
        kept = dpq.select_keys(column, counts=[10**6] * 4, epsilon=1.0, delta=1e-6, rng=1)
        assert kept.tolist() == expected
        counted = dpq.count_by([1.0] * 4, column, groups=list(kept), epsilon=900.0, rng=1)
        assert counted.values.tolist() == [1, 1, 1, 1]
        assert counted[days[3]] == counted[days.astype("M8[s]")[3]] == 1
    ends = np.array([-(2**63) + 1, 2**63 - 1])
    columns = [ends.view(f"M8[{unit}]") for unit in ("Y", "W", "D", "h", "s", "ms", "us", "ns")]
    columns += [pd.Series(ends.view("M8[us]")).dt.tz_localize("UTC")]
    for column in columns:
        kept = dpq.select_keys(column, counts=[10**6] * 2, epsilon=1.0, delta=1e-6, rng=1)
        assert len(kept) == 2
        found = dpq.count_by([1.0] * 2, column, groups=list(kept), epsilon=900.0, rng=1)
        assert found.values.tolist() == [1, 1]


def test_durations_are_no_keys():
    """To NumPy they are integers."""
    with pytest.raises(TypeError, match=r"^groups must hold integers, strings, booleans, dates"):
        dpq.count_by([1.0], [np.timedelta64(1, "s")], groups=[np.timedelta64(1, "s")], epsilon=1.0)
    column = [np.timedelta64(1, "s")] * 99
    assert dpq.select_keys(column, epsilon=9.0, delta=0.1, rng=1).tolist() == []
