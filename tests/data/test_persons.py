"""Whose the records are: ids of every kind, weights and choice."""

from __future__ import annotations

import datetime
import uuid

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpq_fast.data.persons import WEIGHT, Persons
from dpq_fast.reference.persons import counts_of

VALUES = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
HALF, THIRD = WEIGHT // 2, WEIGHT // 3
# The first two rows are one person's, the third one is another's or nobody's, the rest a third's.
WHOLE = {
    "integers": np.array([5, 5, 7, 9, 9, 9]),
    "far apart": np.array([-(2**62), -(2**62), 7, 2**62, 2**62, 2**62]),
    "far, few bits": np.array([0, 0, 7, 2**40, 2**40, 2**40]),
    "short": np.array([-128, -128, 0, 127, 127, 127], dtype=np.int8),
    "unsigned": np.array([2**64 - 1, 2**64 - 1, 7, 2**63, 2**63, 2**63], dtype=np.uint64),
    "strings": np.array(["a", "a", "b", "c", "c", "c"]),
    "bytes": np.array([b"a", b"a", b"b", b"c", b"c", b"c"]),
    "void": np.array([b"a", b"a", b"b", b"c", b"c", b"c"]).view("V1"),
    "a list": ["a", "a", "b", 3, 3, 3],
    "UUIDs": [uuid.UUID(int=k) for k in (1, 1, 2, 3, 3, 3)],
    "UUIDs of pandas": pd.Series([uuid.UUID(int=k) for k in (1, 1, 2, 3, 3, 3)]),
    "dates of Python": [datetime.date(2020, 1, k) for k in (1, 1, 2, 3, 3, 3)],
    "strings of pandas": pd.Series(["a", "a", "b", "c", "c", "c"]),
    "categories of pandas": pd.Series(["a", "a", "b", "c", "c", "c"]).astype("category"),
    "strings of pyarrow": pa.array(["a", "a", "b", "c", "c", "c"]),
    "chunks of pyarrow": pa.chunked_array([["a", "a"], ["b", "c", "c", "c"]]),
    "binary of pyarrow": pa.array([b"a", b"a", b"b", b"c", b"c", b"c"]),
    "binary of polars": pl.Series([b"a", b"a", b"b", b"c", b"c", b"c"]),
    "two columns": [np.array([1, 1, 1, 2, 2, 2]), np.array(["a", "a", "b", "a", "a", "a"])],
    "a frame": pd.DataFrame({"a": [1, 1, 1, 2, 2, 2], "b": list("aabaaa")}),
    "a frame of polars": pl.DataFrame({"a": [1, 1, 1, 2, 2, 2], "b": list("aabaaa")}),
}
WITHOUT = {
    "integers of pandas": pd.array([1, 1, None, 3, 3, 3], dtype="Int64"),
    "dates": np.array(["2020-01-01"] * 2 + ["NaT"] + ["2020-01-03"] * 3, dtype="M8[D]"),
    "a list": ["a", "a", None, "c", "c", "c"],
    "strings of pyarrow": pa.array(["a", "a", None, "c", "c", "c"]),
    "dictionary of pyarrow": pa.array(["a", "a", None, "c", "c", "c"]).dictionary_encode(),
    "strings of polars": pl.Series(["a", "a", None, "c", "c", "c"]),
    "integers of polars": pl.Series([1, 1, None, 3, 3, 3]),
    "binary of polars": pl.Series([b"a", b"a", None, b"c", b"c", b"c"]),
    "NaN among objects": np.array(["a", "a", float("nan"), "c", "c", "c"], dtype=object),
    "what has no hash": [1, 1, [2], 3, 3, 3],
    "two columns": [pa.array([1, 1, None, 2, 2, 2]), pa.array(["a"] * 6)],
    "masked": np.ma.array([1, 1, 2, 3, 3, 3], mask=[0, 0, 1, 0, 0, 0]),
}


@pytest.mark.parametrize("kind", WHOLE)
def test_records_of_a_person_share_a_weight(kind):
    persons = Persons(WHOLE[kind])
    assert persons.weights(VALUES).tolist() == [HALF, HALF, WEIGHT, THIRD, THIRD, THIRD]
    assert persons.rows_at_most() == 3 * WEIGHT and persons.most == WEIGHT
    two = Persons(WHOLE[kind], 2)
    assert two.weights(VALUES).tolist() == [1, 1, 1, 1, 0, 1]
    assert two.rows_at_most() == 6 and two.most == 2
    assert sorted(persons.totals(VALUES).tolist()) == [3.0, 3.0, 15.0]
    assert sorted(persons.means(VALUES).tolist()) == [1.5, 3.0, 5.0]


@pytest.mark.parametrize("kind", WITHOUT)
def test_records_without_an_id_are_left_out(kind):
    persons = Persons(WITHOUT[kind])
    assert persons.weights(VALUES).tolist() == [HALF, HALF, 0, THIRD, THIRD, THIRD]
    assert persons.rows_at_most() == 2 * WEIGHT
    assert sorted(persons.totals(VALUES).tolist()) == [3.0, 15.0]


def test_records_without_a_value_are_left_out():
    values = np.array([1.0, np.nan, np.nan, 4.0, 5.0, 6.0])
    persons = Persons(WHOLE["integers"])
    assert persons.weights(values).tolist() == [WEIGHT, 0, 0, THIRD, THIRD, THIRD]
    assert persons.rows_at_most() == 3 * WEIGHT  # all have an id
    totals = persons.totals(values).tolist()
    assert sorted(totals, key=str) == [1.0, 15.0, pytest.approx(np.nan, nan_ok=True)]
    assert np.nansum(persons.present(values)) == 2.0 and persons.present(values).size == 3


@pytest.mark.parametrize(
    "ids, error, message",
    [
        (3, TypeError, r"^privacy_unit must be a column of integers, .* got int$"),
        ("abc", TypeError, r"^privacy_unit must be a column of .* got str$"),
        ({1: 2}, TypeError, r"^privacy_unit must be a column of .* got dict$"),
        (np.zeros(6), TypeError, r"^privacy_unit must hold integers, .* got dtype float64$"),
        (pl.Series([1.5]), TypeError, r"^privacy_unit must hold integers, .* got dtype Float64$"),
        (pa.array([[1]]), TypeError, r"^privacy_unit must hold .* got dtype list<item: int64>$"),
        (np.zeros(2, dtype=complex), TypeError, r"^privacy_unit must hold .* got dtype complex128"),
        (np.zeros((2, 2), int), ValueError, r"^privacy_unit must be one-dimensional, got 2 dim"),
        (pd.DataFrame(), ValueError, r"^privacy_unit must have at least one column, got a frame"),
    ],
)
def test_what_is_no_column_of_ids_is_refused(ids, error, message):
    with pytest.raises(error, match=message):
        Persons(ids)


def test_columns_of_other_lengths_are_refused():
    with pytest.raises(ValueError, match=r"^privacy_unit must have one id for each value of x$"):
        Persons(np.arange(5)).weights(VALUES)
    with pytest.raises(ValueError, match=r"^privacy_unit must have columns of one length$"):
        Persons([np.arange(6), np.arange(5)]).weights(VALUES)


@pytest.mark.parametrize(
    "contributions, error, message",
    [
        ("weight", ValueError, r"^contributions must be 'weights' or a number of records, got 'w"),
        (0, ValueError, r"^contributions must be at least 1, got 0$"),
        (1.5, TypeError, r"^contributions must be an integer, got 1.5|float"),
        (None, TypeError, r"^contributions must be an integer, got "),
    ],
)
def test_contributions_are_weights_or_a_number(contributions, error, message):
    with pytest.raises(error, match=message):
        Persons(WHOLE["integers"], contributions)


rows = st.lists(
    st.tuples(
        st.sampled_from([None, 1, 2, 3, 4]),
        st.one_of(st.floats(-5.0, 5.0), st.just(float("nan")), st.integers(-2, 2).map(float)),
    ),
    max_size=30,
)


@given(rows, st.one_of(st.just("weights"), st.integers(1, 5)), st.randoms())
def test_weights_are_those_of_the_reference_in_any_order(rows, contributions, random):
    persons, values = (list(each) for each in zip(*rows, strict=True)) if rows else ([], [])
    ids = pd.array(persons, dtype="Int64")
    found = Persons(ids, contributions).weights(np.array(values, dtype=float))
    expected, most = counts_of(values, persons, contributions)
    # which of equal values stay is all the same
    assert chosen(persons, values, found) == chosen(persons, values, expected)
    place = list(range(len(rows)))
    random.shuffle(place)
    other = [persons[i] for i in place], [values[i] for i in place]
    again = Persons(pd.array(other[0], dtype="Int64"), contributions)
    found = again.weights(np.array(other[1], dtype=float))
    assert chosen(*other, found) == chosen(persons, values, expected)
    for person in {1, 2, 3, 4}:
        own = sum(w for w, p in zip(expected, persons, strict=True) if p == person)
        assert own <= most


def chosen(persons, values, weights):
    kept = zip(persons, values, weights, strict=True)
    return sorted((person, value, int(weight)) for person, value, weight in kept if weight)


@given(rows)
def test_sizes_add_up_to_the_records(rows):
    persons, values = (list(each) for each in zip(*rows, strict=True)) if rows else ([], [])
    large, parts = Persons(pd.array(persons, dtype="Int64")).sizes(np.array(values, dtype=float))
    for person in {1, 2, 3, 4}:
        own = [i for i, each in enumerate(persons) if each == person and values[i] == values[i]]
        assert parts[own].sum() <= WEIGHT
        whole = sum(abs(values[i]) for i in own)
        for i in own:
            assert abs(large[i]) == pytest.approx(whole) if values[i] else parts[i] == 0
            off = max(whole * 2.0**-19, 1e-300)
            assert large[i] * parts[i] / WEIGHT == pytest.approx(values[i], abs=off)


def test_one_person_of_very_many_records():
    ids = np.zeros(2 * WEIGHT, dtype=np.int64)
    values = np.arange(ids.size, dtype=np.float64)
    assert Persons(ids[:WEIGHT]).weights(values[:WEIGHT]).sum() == WEIGHT
    assert Persons(ids, 3).weights(values).sum() == 3
    ids[:2] = 1, -1
    weights = Persons(ids).weights(values)
    assert weights[:2].tolist() == [WEIGHT, WEIGHT] and weights[2:].sum() == WEIGHT


@given(rows, st.integers(1, 3), st.data())
def test_which_records_stay_depends_on_no_other_person(rows, contributions, data):
    """Row by row, also among equal values, which may be of several groups."""
    persons = [9] * 80 + [person for person, _ in rows]
    values = [0.0, 1.0, 0.0, 1.0] * 20 + [value for _, value in rows]
    own = np.arange(80)
    others = data.draw(st.permutations(values[80:])) if rows else []
    found = [
        Persons(pd.array(persons, dtype="Int64"), contributions).weights(np.array(held))[own]
        for held in (values, values[:80] + others)
    ]
    assert found[0].tolist() == found[1].tolist()
