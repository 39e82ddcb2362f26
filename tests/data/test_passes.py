"""Passes over a column: which pieces they give, and to how many threads."""

import numpy as np
import pytest

from dpq_fast.data import passes
from dpq_fast.data.passes import Chunks


def pieces_of(values, integers=False):
    """What one pass gives."""
    return Chunks.of_array(values, 1).fold(
        list, lambda pieces, piece: pieces.append(piece), integers=integers
    )


def test_pieces_are_small_where_they_are_converted(monkeypatch):
    monkeypatch.setattr(passes, "CONVERTED", 4)
    monkeypatch.setattr(passes, "PLAIN", 10)
    x = np.arange(25.0)
    for column, size in ((x, 10), (x.astype("f4"), 4), (x.astype(">f8"), 4), (x.astype("i8"), 4)):
        pieces = pieces_of(column)
        assert all(piece.dtype == np.float64 and piece.flags.c_contiguous for piece in pieces)
        assert [piece.size for piece in pieces] == [size] * (25 // size) + [25 % size]
        np.testing.assert_array_equal(np.concatenate(pieces), x)
    assert all(np.shares_memory(piece, x) for piece in pieces_of(x))


def test_pieces_of_integers_stay_as_they_are_where_that_is_asked(monkeypatch):
    monkeypatch.setattr(passes, "PLAIN", 10)
    x = 2**53 + np.arange(25)  # not all are float64 numbers
    pieces = pieces_of(x, integers=True)
    assert all(piece.dtype == np.int64 and np.shares_memory(piece, x) for piece in pieces)
    assert np.concatenate(pieces).tolist() == x.tolist()
    assert all(piece.dtype == np.float64 for piece in pieces_of(x))
    assert all(piece.dtype == np.float64 for piece in pieces_of(x.astype("i4"), integers=True))


@pytest.mark.parametrize(
    "workers, size, shares",
    [(1, 100, [100]), (4, 0, [0]), (4, 19, [19]), (4, 20, [10, 10]), (3, 99, [33, 33, 33])],
)
def test_threads_have_equal_shares_of_what_is_worth_them(workers, size, shares, monkeypatch):
    monkeypatch.setattr(passes, "MIN_SHARE", 10)
    x = np.arange(float(size))
    states = Chunks(lambda: (x, x), workers)._partials(
        list, lambda state, piece: state.extend(piece), False
    )
    assert [len(state) for state in states] == [2 * share for share in shares]
    assert sorted(value for state in states for value in state) == np.repeat(x, 2).tolist()


@pytest.mark.parametrize("place", [0, 50, 99])
def test_an_error_in_any_thread_is_raised(place, monkeypatch):
    monkeypatch.setattr(passes, "MIN_SHARE", 10)

    def step(state, piece):
        if place in piece:
            raise OSError("the disk is gone")

    for workers in (1, 4):
        with pytest.raises(OSError, match="the disk is gone"):
            Chunks.of_array(np.arange(100.0), workers).fold(list, step)


def test_first_batch_that_is_not_empty():
    assert Chunks(lambda: [], 1).first().size == 0
    assert Chunks(lambda: [np.empty(0)], 1).first().size == 0
    assert Chunks(lambda: [np.empty(0), np.ones(2), np.ones(3)], 1).first().tolist() == [1.0, 1.0]


@pytest.mark.parametrize("workers", [1, 2])
def test_collecting_ends_once_too_much_is_taken(workers):
    """A source that changed may give ever more: no more is kept than was counted."""
    seen = []

    def batches():
        for number in range(100):
            seen.append(number)
            yield np.ones(10)

    chunks = Chunks(batches, workers)
    assert chunks.collect(lambda piece: (piece, piece.size), 35) is None
    assert len(seen) < 100
    assert chunks.collect(lambda piece: (piece, piece.size), 1_001) is None
    collected = chunks.collect(lambda piece: (piece, piece.size), 1_000)
    np.testing.assert_array_equal(collected, np.ones(1_000))


def test_collected_values_are_float64():
    x = np.arange(10)

    def odd(piece):
        found = piece[piece % 2.0 == 1.0]
        return found, found.size

    collected = Chunks.of_array(x, 1).collect(odd, 5)
    assert collected.dtype == np.float64 and collected.tolist() == [1.0, 3.0, 5.0, 7.0, 9.0]
    assert Chunks.of_array(x, 1).collect(odd, 6) is None
    assert Chunks.of_array(x[:1], 1).collect(odd, 0).tolist() == []
