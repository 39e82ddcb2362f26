"""The functions of dp_multiq: its argument orders, and the guarantees and answers of ours."""

from __future__ import annotations

import inspect
import math
from functools import partial

import numpy as np
import pytest

import dpq_fast as dpq
from dpq_fast import privacy
from dpq_fast.compat import dp_multiq
from dpq_fast.privacy import Accountant, BudgetExceeded

X = np.sort(np.random.default_rng(0).normal(0.0, 5.0, size=400))
LOW, HIGH = -100.0, 100.0
QS = [0.1, 0.5, 0.9]
# As published; a default in place of none is allowed.
PUBLISHED = {
    "joint_exp": "sorted_data data_low data_high qs eps swap",
    "ind_exp": "sorted_data data_low data_high qs divided_eps swap",
    "opt_comp_calculator": "overall_eps overall_delta num_comps",
    "csmooth": "sorted_data data_low data_high qs divided_eps ts",
    "tree": "sampled_data data_low data_high qs eps delta swap tree_height=4 branching_factor=16",
    "agg_tree": "sampled_data data_low data_high qs eps delta swap tree_height branching_factor",
}
# What comes after the levels, as a user of the published code gives it.
CALLS = {
    "joint_exp": (1.0, True),
    "ind_exp": (0.3, True),
    "csmooth": (0.5, [0.1, 0.2, 0.3]),
    "tree": (1.0, 0, True),
    "tree, gaussian": (1.0, 1e-6, True),
    "agg_tree": (1.0, 0, True, 3, 8),
    "agg_tree, gaussian": (1.0, 1e-6, True, 3, 8),
}


def function(name):
    return getattr(dp_multiq, name.split(",")[0])


def released(name, x, qs=QS, low=LOW, high=HIGH, **options):
    return function(name)(x, low, high, qs, *CALLS[name], **options)


@pytest.mark.parametrize("name", PUBLISHED)
def test_arguments_have_the_published_names_order_and_defaults(name):
    own = inspect.signature(getattr(dp_multiq, name)).parameters.values()
    by_place = [p for p in own if p.kind is p.POSITIONAL_OR_KEYWORD]
    published = [word.partition("=") for word in PUBLISHED[name].split()]
    assert [p.name for p in by_place] == [word for word, _, _ in published]
    for parameter, (_, _, default) in zip(by_place, published, strict=True):
        if default:
            assert parameter.default == int(default)
        elif parameter.name != "ts":
            assert parameter.default is parameter.empty


def test_all_names_are_there_and_documented():
    assert sorted(PUBLISHED) == dp_multiq.__all__
    for name in PUBLISHED:
        text = inspect.getdoc(getattr(dp_multiq, name))
        assert all(heading in text for heading in ("Parameters\n", "Returns\n", "Notes\n"))


TREE = dict(height=3, branching=8)
RHO = privacy.zcdp_rho(1.0, 1e-6)
NATIVE = {
    "joint_exp": partial(dpq.joint_exp, epsilon=1.0),
    "ind_exp": partial(dpq.ind_exp, epsilon=math.nextafter(0.9, 0), selection="exponential"),
    "csmooth": partial(dpq.csmooth, rho=3 * 0.125, t=[0.1, 0.2, 0.3]),
    "tree": partial(dpq.agg_tree, epsilon=1.0, aggregate=False, height=4, branching=16),
    "tree, gaussian": partial(
        dpq.agg_tree, rho=RHO, noise="gaussian", aggregate=False, height=4, branching=16
    ),
    "agg_tree": partial(dpq.agg_tree, epsilon=1.0, **TREE),
    "agg_tree, gaussian": partial(dpq.agg_tree, rho=RHO, noise="gaussian", **TREE),
}


@pytest.mark.parametrize("swap", [True, False])
@pytest.mark.parametrize("name", CALLS)
def test_answers_and_guarantees_are_those_of_our_mechanisms(name, swap):
    neighbors = "swap" if swap else "add-remove"
    ours, theirs = (Accountant(50.0, 1e-5, neighbors, "zcdp") for _ in range(2))
    shared = dict(resolution=0.5, rng=7)
    if name == "csmooth":
        answer = released(name, X, swap=swap, accountant=theirs, **shared)
    else:
        values = [swap if value is True else value for value in CALLS[name]]
        answer = function(name)(X, LOW, HIGH, QS, *values, accountant=theirs, **shared)
    expected = NATIVE[name](
        X, QS, bounds=(LOW, HIGH), neighbors=neighbors, accountant=ours, **shared
    )
    np.testing.assert_array_equal(answer, expected)
    (charged,), (known,) = theirs.history, ours.history
    assert charged == known
    assert charged.neighbors == neighbors


def test_guarantees_are_those_that_the_docstrings_state():
    accountant = Accountant(100.0, 1e-5, composition="zcdp")
    for name in CALLS:
        released(name, X, accountant=accountant)
    joint, ind, smooth, tree, tree_gaussian, agg, agg_gaussian = accountant.history
    assert (joint.epsilon, joint.bounded_range, joint.delta) == (1.0, 1.0, 0.0)
    assert ind.epsilon == ind.bounded_range == pytest.approx(0.9, rel=1e-15)
    assert ind.rho == pytest.approx(3 * privacy.bounded_range_rho(0.3), rel=1e-12)
    assert (smooth.epsilon, smooth.rho) == (None, 3 * 0.5**2 / 2)
    assert tree.epsilon == agg.epsilon == 1.0 and tree.delta == agg.delta == 0.0
    for one in (tree_gaussian, agg_gaussian):
        assert one.epsilon is None
        assert privacy.zcdp_epsilon(one.rho, 1e-6) == pytest.approx(1.0, rel=1e-9)
        assert privacy.zcdp_epsilon(one.rho, 1e-6) <= 1.0


@pytest.mark.parametrize("m", [1, 2, 3, 7, 49, 1000])
@pytest.mark.parametrize("each", [0.1, 0.3, 1 / 3, 1e-3])
def test_no_level_of_ind_exp_spends_more_than_divided_eps(m, each, monkeypatch):
    spent = []
    monkeypatch.setattr(dp_multiq, "_ind_exp", lambda *a, epsilon, **_: spent.append(epsilon))
    dp_multiq.ind_exp(X, LOW, HIGH, np.linspace(0, 1, m + 2)[1:-1], each, True)
    (total,) = spent
    assert each * (1.0 - 1e-15) <= total / m <= each


def test_levels_that_occur_twice_are_released_once():
    accountant = Accountant(10.0)
    answer = dp_multiq.ind_exp(X, LOW, HIGH, [0.5, 0.1, 0.5], 0.25, True, accountant=accountant)
    assert accountant.spent.epsilon == 0.5
    assert answer[0] == answer[2] >= answer[1]
    twice = dp_multiq.csmooth(X, LOW, HIGH, [0.5, 0.1, 0.5], 0.25, [0.1, 0.2, 0.1])
    assert twice[0] == twice[2] >= twice[1]


# Composition


def searched(overall_eps, overall_delta, k, step=0.01):
    """The published way: the last epsilon of a grid whose delta, by the theorem, still fits."""
    best = None
    for each in np.arange(overall_eps / k, overall_eps, step).tolist():
        delta = 0.0
        for ell in range(k + 1):
            t = min(max((overall_eps + (ell + 1) * each) / (k + 1), 0.0), each)
            p = (math.exp(-t) - math.exp(-each)) / (1.0 - math.exp(-each))
            terms = (
                math.comb(k, i)
                * p ** (k - i)
                * (1 - p) ** i
                * max(math.exp(k * t - i * each) - math.exp(overall_eps), 0.0)
                for i in range(k + 1)
            )
            delta = max(delta, math.fsum(terms))
        if delta > overall_delta:
            return best
        best = each
    return best


@pytest.mark.parametrize("eps, delta, k", [(1.0, 1e-6, 10), (0.5, 1e-5, 5), (2.0, 1e-3, 30)])
def test_opt_comp_calculator_gives_at_least_what_the_published_search_finds(eps, delta, k):
    each = dp_multiq.opt_comp_calculator(eps, delta, k)
    found = searched(eps, delta, k)
    assert found <= each < found + 0.01
    assert searched(eps, delta, k, 0.0004) <= each < searched(eps, delta, k, 0.0004) + 0.0004
    assert privacy.bounded_range_delta(each, k, eps) <= delta
    assert privacy.bounded_range_delta(each * (1 + 1e-9), k, eps) > delta


def test_opt_comp_calculator_without_delta_divides():
    assert dp_multiq.opt_comp_calculator(1.0, 0.0, 4) == 0.25
    assert dp_multiq.opt_comp_calculator(1.0, 1e-6, 1) >= 1.0


def test_approximate_ind_exp_is_the_release_of_our_own_call():
    """What the published experiments call AppIndExp."""
    each = dp_multiq.opt_comp_calculator(1.0, 1e-6, 3)
    answer = dp_multiq.ind_exp(X, LOW, HIGH, QS, each, True, rng=3)
    expected = dpq.ind_exp(X, QS, epsilon=1.0, delta=1e-6, bounds=(LOW, HIGH), rng=3)
    np.testing.assert_array_equal(answer, expected)


# What users of the published code meet


@pytest.mark.parametrize("name", CALLS)
def test_equal_records_are_found(name):
    """The published code returns a uniform draw from the bounds, or a bound."""
    x = np.full(20_000, 3.0)
    np.testing.assert_allclose(released(name, x, resolution=1, rng=1), 3.0, atol=2.0)


@pytest.mark.parametrize("name", CALLS)
def test_records_in_any_order_with_missing_ones_and_none_at_all(name):
    mixed = np.concatenate((X[::-1], [np.nan, math.inf, -math.inf]))
    for x in (mixed, X.tolist(), X.astype(np.float32), [], [np.nan]):
        answer = released(name, x)
        assert answer.shape == (3,)
        assert (np.diff(answer) >= 0).all()
        assert ((answer >= LOW) & (answer <= HIGH)).all()


@pytest.mark.parametrize("name", CALLS)
def test_levels_in_any_order_and_a_single_one(name):
    answer = released(name, X, qs=[0.9, 0.1, 0.5], rng=5)
    assert answer[0] >= answer[2] >= answer[1]
    one = (*CALLS[name][:1], None) if name == "csmooth" else CALLS[name]
    assert isinstance(function(name)(X, LOW, HIGH, 0.5, *one), float)


@pytest.mark.parametrize("name", CALLS)
def test_records_stay_as_they_are_and_so_does_the_global_generator(name):
    x = X.copy()
    x.flags.writeable = False
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first = released(name, x)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    assert any((released(name, x) != first).any() for _ in range(5))
    np.testing.assert_array_equal(x, X)


def test_smoothness_is_chosen_where_it_is_left_out():
    answer = dp_multiq.csmooth(X, LOW, HIGH, QS, 0.5, rng=2)
    expected = dpq.csmooth(X, QS, rho=0.375, bounds=(LOW, HIGH), rng=2)
    np.testing.assert_array_equal(answer, expected)


class Untouched:
    """A column that is not to be read."""

    def __array__(self, *_, **__):
        raise AssertionError("read")


@pytest.mark.parametrize("name", CALLS)
def test_what_overdraws_is_refused_before_records_are_read(name):
    accountant = Accountant(1e-3, 1e-9, composition="zcdp")
    with pytest.raises(BudgetExceeded, match="a release must fit the budget of rho="):
        released(name, Untouched(), accountant=accountant)


@pytest.mark.parametrize("name", ["csmooth", "tree, gaussian", "agg_tree, gaussian"])
def test_releases_of_rho_are_refused_by_an_accountant_of_epsilons(name):
    with pytest.raises(ValueError, match="a release must state epsilon for an accountant of"):
        released(name, Untouched(), accountant=Accountant(10.0, 1e-3))


@pytest.mark.parametrize(
    "name, arguments, error, message",
    [
        ("joint_exp", (5, 1, QS, 1.0, True), ValueError, r"with low < high, got \(5.0, 1.0\)"),
        ("joint_exp", (0, 1, [1.5], 1.0, True), ValueError, r"q must lie in \[0, 1\]"),
        ("joint_exp", (0, 1, QS, -1.0, True), ValueError, "^eps must be positive and finite"),
        ("joint_exp", (0, 1, QS, 1.0, 1), TypeError, "^swap must be True or False, got 1"),
        ("joint_exp", (0, 1, QS, 1.0, "swap"), TypeError, "^swap must be True or False"),
        ("ind_exp", (0, 1, QS, 0.0, True), ValueError, "^divided_eps must be positive and finite"),
        ("ind_exp", (0, 1, QS, "1", True), TypeError, "^divided_eps must be a real number"),
        ("csmooth", (0, 1, QS, math.inf, None), ValueError, "^divided_eps must be positive"),
        ("csmooth", (0, 1, QS, 1.0, [0.1]), ValueError, "^t must be one number or of q's shape"),
        ("csmooth", (0, 1, [0.5, 0.5], 1.0, [0.1, 0.2]), ValueError, "^t must be the same"),
        ("tree", (0, 1, QS, 1.0, 1.0, True), ValueError, r"^delta must lie in \[0, 1\), got 1.0"),
        ("tree", (0, 1, QS, math.nan, 0, True), ValueError, "^eps must be positive and finite"),
        ("tree", (0, 1, QS, 1.0, 0, True, 0, 2), ValueError, "^height must be at least 1, got 0"),
        ("tree", (0, 1, QS, 1.0, 0, True, 2, 1), ValueError, "^branching must be at least 2"),
        ("agg_tree", (0, 1, QS, 1.0, 0, None, 2, 2), TypeError, "^swap must be True or False"),
        ("agg_tree", (1, 1, QS, 1.0, 0, True, 2, 2), ValueError, "with low < high"),
    ],
)
def test_arguments_that_break_their_rule_are_refused_unread(name, arguments, error, message):
    with pytest.raises(error, match=message):
        function(name)(Untouched(), *arguments)


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ((0.0, 1e-6, 3), ValueError, "^overall_eps must be positive and finite, got 0.0"),
        ((1.0, 1.0, 3), ValueError, r"^delta must lie in \[0, 1\), got 1.0"),
        ((1.0, 1e-6, 0), ValueError, "^num_comps must be at least 1, got 0"),
        ((1.0, 1e-6, 2.5), TypeError, "^num_comps must be an integer, got 2.5"),
    ],
)
def test_opt_comp_calculator_refuses(arguments, error, message):
    with pytest.raises(error, match=message):
        dp_multiq.opt_comp_calculator(*arguments)
