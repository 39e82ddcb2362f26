"""The public levels: np.quantile's manners in, np.quantile's manners out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpq_fast.privacy.levels import Levels


@pytest.mark.parametrize("q", [0.5, np.float32(0.5), np.array(0.5), 0, 1, np.int64(1)])
def test_restore_of_a_scalar_is_a_float(q):
    levels = Levels(q)
    assert levels.m == 1
    assert levels.values.tolist() == [float(q)]
    answer = levels.restore(np.array([7.5]))
    assert type(answer) is float and answer == 7.5


def test_restore_keeps_shape_order_and_duplicates():
    levels = Levels([[0.9, 0.1], [0.5, 0.9]])
    assert levels.m == 3
    assert levels.values.tolist() == [0.1, 0.5, 0.9]
    out = levels.restore(np.array([1.0, 5.0, 9.0]))
    assert out.tolist() == [[9.0, 1.0], [5.0, 9.0]]


@pytest.mark.parametrize("q, shape", [([0.5], (1,)), ([[0.5]], (1, 1)), ([0.5, 0.5], (2,))])
def test_restore_keeps_the_shape_of_one_level(q, shape):
    levels = Levels(q)
    assert levels.m == 1
    out = levels.restore(np.array([3.0]))
    assert isinstance(out, np.ndarray) and out.shape == shape
    assert (out == 3.0).all()


@pytest.mark.parametrize("q, shape", [(0.5, ()), ([0.2, 0.1], (2,)), ([[0.2], [0.1]], (2, 1))])
def test_restore_puts_draws_before_the_shape_of_q(q, shape):
    levels = Levels(q)
    draws = np.arange(3.0 * levels.m).reshape(3, levels.m)
    out = levels.restore(draws)
    assert out.shape == (3, *shape)
    for i in range(3):
        np.testing.assert_array_equal(out[i], levels.restore(draws[i]))


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=8))
def test_distinct_inverts_restore(q):
    levels = Levels(q)
    assert (np.diff(levels.values) > 0.0).all()
    assert set(levels.values.tolist()) == set(q)
    answers = np.arange(levels.m, dtype=float)
    out = levels.restore(answers)
    np.testing.assert_array_equal(levels.distinct(out), answers)
    np.testing.assert_array_equal(levels.values[out.astype(int)], q)


def test_distinct_is_none_where_duplicates_disagree():
    levels = Levels([0.5, 0.1, 0.5])
    assert levels.distinct([2.0, 1.0, 2.0]).tolist() == [1.0, 2.0]
    assert levels.distinct([2.0, 1.0, 3.0]) is None


@pytest.mark.parametrize("o", [1.0, [1.0], [[1.0, 2.0]], [1.0, 2.0, 3.0]])
def test_distinct_rejects_other_shapes(o):
    with pytest.raises(ValueError, match=r"o must have the shape of q, \(2,\), got"):
        Levels([0.1, 0.2]).distinct(o)


def test_levels_are_kept_to_the_last_bit():
    close = [0.5, 0.5 + 2.0**-54, 0.5 - 2.0**-54, 1e-300]
    assert Levels(close).values.tolist() == [1e-300, 0.5 - 2.0**-54, 0.5]
    assert Levels([0.5, np.nextafter(0.5, 1.0)]).m == 2


def test_levels_do_not_alias_the_argument():
    q = np.array([0.25, 0.75])
    levels = Levels(q)
    q[:] = 2.0
    assert levels.values.tolist() == [0.25, 0.75]
    single = np.array([0.25])
    levels = Levels(single)
    single[0] = 2.0
    assert levels.values.tolist() == [0.25]


@pytest.mark.parametrize(
    "q, error, message",
    [
        ([], ValueError, "q must hold at least one level"),
        (np.empty((0, 3)), ValueError, "q must hold at least one level"),
        (1.5, ValueError, r"q must lie in \[0, 1\], got 1.5"),
        (-1e-300, ValueError, r"q must lie in \[0, 1\], got -1e-300"),
        (np.nan, ValueError, r"q must lie in \[0, 1\], got nan"),
        ([0.5, np.inf], ValueError, r"q must lie in \[0, 1\], got q\[1\] = inf"),
        ([0.1, 0.2, -0.5, 7.0], ValueError, r"q must lie in \[0, 1\], got q\[2\] = -0.5"),
        ("0.5", TypeError, "q must be real numbers"),
        ([0.5, "0.7"], TypeError, "q must be real numbers"),
        (True, TypeError, "q must be real numbers, got dtype bool"),
        ([0.5 + 0j], TypeError, "q must be real numbers, got dtype complex128"),
        (None, TypeError, "q must be real numbers, got dtype object"),
        ([0.5, None], TypeError, "q must be real numbers, got dtype object"),
    ],
)
def test_levels_rejects(q, error, message):
    with pytest.raises(error, match=message):
        Levels(q)


STRANGE = {
    "beyond float64": np.longdouble("1e4000"),
    "signaling": np.array([0x7F800001], dtype=np.uint32).view(np.float32),
}


@pytest.mark.parametrize("q", STRANGE.values(), ids=STRANGE)
def test_strange_levels_are_refused_without_a_warning(q):
    with pytest.raises(ValueError, match=r"^q(\[0\] =)? must lie in \[0, 1\], got"):
        Levels(q)


def test_levels_do_not_change_with_the_callers_array():
    q = np.array([0.25, 0.5])
    levels = Levels(q)
    q[:] = 0.0
    assert levels.values.tolist() == [0.25, 0.5]


@pytest.mark.parametrize("outputs", ["1", 10**400, 1j])
def test_outputs_that_are_no_float64_numbers_are_refused(outputs):
    with pytest.raises(TypeError, match=r"^o must be real numbers, got dtype"):
        Levels(0.5).distinct(outputs)
