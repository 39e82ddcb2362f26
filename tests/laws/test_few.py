"""A few records, released by one call of a kernel: the draws of the laws, seed by seed."""

import numpy as np
import pytest

import dpq_fast as dpq
from dpq_fast.laws import few
from dpq_fast.mechanisms.joint_exp import JointExpLaw

RNG = np.random.default_rng(11)
NORMAL = RNG.normal(0.0, 5.0, 100)
COLUMNS = {
    "none": np.empty(0),
    "one": np.array([3.25]),
    "two": np.array([7.0, -0.0]),
    "normal": NORMAL,
    "ordered": np.sort(NORMAL),
    "tied": np.round(NORMAL / 4.0) * 4.0,
    "all tied": np.full(50, 2.0),
    "zeros": np.array([0.0, -0.0, 0.0, -0.0]),
    "far out": np.array([np.inf, -np.inf, 1e300, -1e300, 100.0, -100.0]),
    "missing": np.where(np.arange(100) % 3 == 0, np.nan, NORMAL),
    "all missing": np.full(5, np.nan),
    "integers": np.round(NORMAL).astype(np.int8),
    "strided": np.repeat(NORMAL, 2)[::2],
    "gaps": np.array([1e-300, 1e-200, 0.5, 99.0]),
}
FORMS = [
    {},
    {"resolution": 0},
    {"resolution": 1},
    {"resolution": 1, "dither": False},
    {"bounds": (-3.0, 4.0)},
    {"resolution": 0, "bounds": (-1e307, 1e307)},
    {"epsilon": 1e5},
]
LEVELS = [0.5, 0.0, [0.2, 0.5, 0.9], [1.0, 0.1, 0.1]]


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("function", ["joint_exp", "ind_exp"])
def test_few_records_are_drawn_as_by_their_law(function, name, monkeypatch):
    release, law_of = getattr(dpq, function), getattr(dpq, f"{function}_law")
    for form in FORMS:
        options = dict(epsilon=1.0, bounds=(-100.0, 100.0)) | form
        if function == "ind_exp":
            options.pop("dither", None)
        for q in LEVELS:
            rng = np.random.default_rng(3)
            first = release(COLUMNS[name], q, rng=rng, **options)
            after = rng.bit_generator.state
            with monkeypatch.context() as changed:
                changed.setattr(few, "MOST", -1)
                rng = np.random.default_rng(3)
                again = release(COLUMNS[name], q, rng=rng, **options)
            assert np.array_equal(first, again), (form, q)
            assert rng.bit_generator.state == after  # not one number more
            if function == "ind_exp" or options.get("dither") is False:
                law = law_of(COLUMNS[name], q, **options)
                assert np.array_equal(law.sample(np.random.default_rng(3)), first)


def test_few_records_make_no_law(monkeypatch):
    def refused(*_):
        raise AssertionError("a law was made")

    monkeypatch.setattr(JointExpLaw, "__init__", refused)
    options = dict(epsilon=1.0, bounds=(-100.0, 100.0))
    most = few.most_of_paths(3)
    for n in (0, 1, most):
        dpq.joint_exp(NORMAL[np.arange(n) % 100], [0.2, 0.5, 0.9], **options)
    for column, form in (
        (np.zeros(most + 1), {}),
        (NORMAL, {"prior": "uniform", "confidence": 0.9}),
        (NORMAL[:5], {"counts": [1] * 5}),
        (dpq.Sample.of(NORMAL[:5], (-100.0, 100.0)), {}),
    ):
        with pytest.raises(AssertionError, match="a law was made"):
            dpq.joint_exp(column, [0.2, 0.5, 0.9], **options | form)


def test_columns_that_can_be_read_once_are_read_once():
    asked = []

    def column():
        asked.append(1)
        return NORMAL

    for n_is_few in (True, False):
        asked.clear()
        levels = 0.5 if n_is_few else [0.01 * j for j in range(1, 100)]
        dpq.joint_exp(column, levels, epsilon=1.0, bounds=(-100.0, 100.0), rng=0)
        assert len(asked) == 1


@pytest.mark.parametrize("function", ["joint_exp", "ind_exp", "quantile"])
def test_missing_records_of_a_few_are_refused_where_there_must_be_none(function):
    release = getattr(dpq, function)
    options = dict(epsilon=1.0, bounds=(-100.0, 100.0), nan_policy="raise")
    for column in ([np.nan], [1.0, np.nan], [np.nan, 1.0, 0.0]):
        with pytest.raises(ValueError, match="x must not contain NaN with nan_policy='raise'"):
            release(np.array(column), 0.5, **options)
    assert -100.0 <= release(np.array([1.0, 0.0]), 0.5, **options) <= 100.0
