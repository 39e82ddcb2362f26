"""diffprivlib's tools as documented, one test each; against the real ones where they are."""

from __future__ import annotations

import importlib
import inspect
import itertools
import math
import subprocess
import sys
import tempfile
import warnings
from fractions import Fraction
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from conftest import Untouchable

import dpq_fast as dpq
from dpq_fast import privacy
from dpq_fast.compat import diffprivlib as ours
from dpq_fast.noise.rng import default_rng

ROOT = Path(__file__).parents[2]
B = (-10.0, 10.0)
X = np.random.default_rng(0).normal(0.0, 5.0, size=600)
TABLE = X.reshape(100, 6)
FIRST = "epsilon=1.0, bounds=None, axis=None"
LAST = "keepdims=False, random_state=None, accountant=None"
# Of version 0.6.6, without what is ours alone.
SIGNATURES = {
    "quantile": f"(array, quant, {FIRST}, {LAST}, **unused_args)",
    "percentile": f"(array, percent, {FIRST}, {LAST}, **unused_args)",
    "median": f"(array, {FIRST}, {LAST}, **unused_args)",
    "mean": f"(array, {FIRST}, dtype=None, {LAST}, **unused_args)",
    "nanmean": f"(array, {FIRST}, dtype=None, {LAST}, **unused_args)",
    "var": f"(array, {FIRST}, dtype=None, {LAST}, **unused_args)",
    "nanvar": f"(array, {FIRST}, dtype=None, {LAST}, **unused_args)",
    "std": f"(array, {FIRST}, dtype=None, {LAST}, **unused_args)",
    "nanstd": f"(array, {FIRST}, dtype=None, {LAST}, **unused_args)",
    "sum": f"(array, {FIRST}, dtype=None, {LAST}, **unused_args)",
    "nansum": f"(array, {FIRST}, dtype=None, {LAST}, **unused_args)",
    "count_nonzero": f"(array, epsilon=1.0, axis=None, {LAST})",
}
HISTOGRAM = (
    "(sample, epsilon=1.0, bins=10, range=None, weights=None, density=None, random_state=None, "
    "accountant=None, **unused_args)"
)
SPREADS = ("var", "nanvar", "std", "nanstd")
NUMBERS = [name for name in SIGNATURES if name not in ("quantile", "percentile", "median")]
# A call of each function, but for the array.
CALLS = {name: {"bounds": B} if name != "count_nonzero" else {} for name in SIGNATURES}
CALLS["quantile"]["quant"] = 0.5
CALLS["percentile"]["percent"] = 50


@pytest.fixture
def theirs():
    """The tools of diffprivlib, and nothing of it afterwards."""
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path, str(ROOT)])
        peers = importlib.import_module("bench.peers")
        peers.diffprivlib.cache_clear()
        with warnings.catch_warnings():  # it changes the filters
            try:
                yield peers.diffprivlib()
            except peers.Missing as reason:
                pytest.skip(str(reason))
            finally:
                for name in set(sys.modules) - before:
                    if name.startswith("diffprivlib"):
                        del sys.modules[name]


def call(tools, name, array=X, **options):
    return getattr(tools, name)(array, **CALLS[name] | options)


class Budget:
    """What diffprivlib says an accountant is."""

    def __init__(self, most=math.inf):
        self.most, self.spent = most, []

    def check(self, epsilon, delta):
        if epsilon + math.fsum(spent for spent, _ in self.spent) > self.most:
            raise ValueError("not permissible")
        return True

    def spend(self, epsilon, delta):
        self.check(epsilon, delta)
        self.spent.append((epsilon, delta))
        return self


# Signatures


@pytest.mark.parametrize("name", [*SIGNATURES, "histogram"])
def test_arguments_are_those_of_diffprivlib_and_then_our_own(name):
    parameters = inspect.signature(getattr(ours, name)).parameters.values()
    own = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    assert own in (
        ["neighbors"],
        ["resolution", "neighbors"],
        ["resolution", "neighbors", "nan_policy"],
        ["neighbors", "nan_policy"],
    )
    shared = [p.replace(annotation=p.empty) for p in parameters if p.name not in own]
    assert str(inspect.Signature(shared)) == SIGNATURES.get(name, HISTOGRAM)


@pytest.mark.parametrize("name", [*SIGNATURES, "histogram"])
def test_signatures_written_out_are_those_of_diffprivlib(name, theirs):
    assert str(inspect.signature(getattr(theirs, name))) == SIGNATURES.get(name, HISTOGRAM)


def test_what_is_here_and_what_is_not(theirs):
    tools = {name for name, tool in vars(theirs).items() if inspect.isfunction(tool)}
    here = {*SIGNATURES, "histogram"}
    assert here <= tools
    assert tools - here == set(ours.INSTEAD) - {"BudgetAccountant"}


def test_what_is_not_here_says_what_to_use():
    for name in ("histogram2d", "histogramdd"):
        with pytest.raises(AttributeError, match=rf"no attribute '{name}': use dpq_fast\.count_by"):
            getattr(ours, name)
    with pytest.raises(AttributeError, match=r"no attribute 'quantlie'$"):
        _ = ours.quantlie
    assert set(ours.__all__) == {
        *SIGNATURES,
        "histogram",
        "PrivacyLeakWarning",
        "DiffprivlibCompatibilityWarning",
    }


def test_diffprivlib_is_never_imported():
    code = (
        "import sys, dpq_fast.compat.diffprivlib as d; d.median([1.0, 2.0], bounds=(0, 3)); "
        "print([name for name in sys.modules if name.startswith(('diffprivlib', 'sklearn'))])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tempfile.gettempdir(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == "[]"


# Levels


@pytest.mark.parametrize(
    ("quant", "shape"),
    [(0.5, ()), ([0.5], ()), (np.array([[0.5]]), ()), ([0.2, 0.5], (2,)), ([[0.9], [0.1]], (2,))],
)
def test_levels_of_an_array_are_flattened_and_one_gives_a_number(quant, shape):
    found = ours.quantile(X, quant, bounds=B)
    assert np.shape(found) == shape
    assert isinstance(found, np.ndarray if shape else np.float64)


@pytest.mark.parametrize("quant", [0.5, [0.5], [0.2, 0.5], [[0.9], [0.1]], True])
@pytest.mark.parametrize("options", [{}, {"axis": 0}, {"axis": (0, 1), "keepdims": True}])
def test_shapes_are_those_of_diffprivlib(quant, options, theirs):
    found, expected = (
        call(tools, "quantile", TABLE, quant=quant, **options) for tools in (ours, theirs)
    )
    assert type(found) is type(expected)
    assert np.shape(found) == np.shape(expected)


def test_levels_are_released_at_once_and_never_cross():
    few, many = X[:5], np.linspace(1.0, 0.0, 30)
    for seed in range(20):
        found = ours.quantile(few, many, bounds=B, random_state=seed)
        assert (np.diff(found) <= 0.0).all()


def test_percentiles_are_quantiles_of_hundredths():
    for seed in range(3):
        found = ours.percentile(X, [25, 50], bounds=B, random_state=seed)
        expected = ours.quantile(X, [0.25, 0.5], bounds=B, random_state=seed)
        np.testing.assert_array_equal(found, expected)


def test_median_is_the_quantile_of_a_half():
    found = ours.median(X, bounds=B, random_state=1)
    assert found == ours.quantile(X, 0.5, bounds=B, random_state=1)


# The mechanism


def seeded(seed):
    words = np.random.RandomState(seed).randint(2**32, size=8, dtype=np.uint64)
    return default_rng(words.tolist())


@pytest.mark.parametrize("q", [0.5, [0.1, 0.5, 0.9], np.linspace(0.0, 1.0, 99)])
@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
def test_quantiles_are_those_of_our_own_quantile(q, neighbors):
    options = dict(neighbors=neighbors, resolution=0.01, bounds=B)
    found = ours.quantile(TABLE, q, 2.0, random_state=7, **options)
    expected_n = X.size if neighbors == "swap" else None
    expected = dpq.quantile(X, q, epsilon=2.0, rng=seeded(7), expected_n=expected_n, **options)
    np.testing.assert_array_equal(found, expected)


def test_one_level_is_as_private_where_a_record_comes_or_goes():
    """Of `median` and the like, whose law is that of `ind_exp`, calibrated for "swap"."""
    place = dict(epsilon=1.0, neighbors="swap", bounds=(0.0, 2.0), resolution=1, dither=False)
    for q in (0.0, 0.3, 0.5, 1.0):
        laws = {}
        for n in range(5):
            for x in itertools.combinations_with_replacement((0.0, 1.0, 2.0), n):
                law = dpq.ind_exp_law(np.array(x), q, **place)
                laws[x] = np.array([law.log_prob(o) for o in (0.0, 1.0, 2.0)])
        for x, law in laws.items():
            for i in range(len(x)):
                assert np.abs(law - laws[x[:i] + x[i + 1 :]]).max() <= 1.0 + 1e-12


@pytest.mark.parametrize("name", ["mean", "sum", "var", "std"])
@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("nan_policy", ["omit", "raise"])
def test_sums_means_and_spreads_are_those_of_our_own(name, neighbors, nan_policy):
    options = dict(neighbors=neighbors, nan_policy=nan_policy, resolution=0.01)
    found = getattr(ours, name)(TABLE, 2.0, B, random_state=7, **options)
    release = getattr(dpq, name)
    place = dict(q=None, lower=B[0], upper=B[1])
    assert found == release(X, epsilon=2.0, rng=seeded(7), **place, **options)


def test_counts_are_those_of_our_own_sum():
    found = ours.count_nonzero(TABLE > 0.0, 0.1, random_state=7)
    place = dict(q=None, lower=0.0, upper=1.0, resolution=1)
    assert found == dpq.sum(X > 0.0, epsilon=0.1, rng=seeded(7), **place)


def test_missing_records_hidden_by_a_sum_cost_noise_and_stated_absence_does_not():
    place, draws = dict(bounds=(100.0, 101.0), resolution=1.0), range(200)
    x = np.full(50, 100.5)
    spreads = [
        np.std([ours.sum(x, random_state=seed, nan_policy=policy, **place) for seed in draws])
        for policy in ("raise", "omit")
    ]
    assert spreads[0] < 3.0 and spreads[1] > 50.0


@pytest.mark.parametrize("name", SIGNATURES)
def test_equal_records_have_their_value_as_quantile(name):
    ties = np.full(10**5, 65.0)
    if name in ("quantile", "percentile", "median"):
        found = [call(ours, name, ties, bounds=(0, 100), resolution=1) for _ in range(20)]
        assert set(found) == {65.0}
    elif "sum" in name:
        assert call(ours, name, ties, bounds=(0, 100)) == pytest.approx(65e5, rel=1e-3)
    elif "mean" in name:
        assert call(ours, name, ties, bounds=(0, 100)) == pytest.approx(65.0, rel=1e-3)
    elif name in SPREADS:
        assert call(ours, name, ties, bounds=(0, 100)) <= 1.0
    else:
        assert call(ours, name, ties) == pytest.approx(10**5, abs=50)


def test_equal_records_defeat_diffprivlib(theirs):
    """Issue 107 of its repository."""
    ties = np.full(10**5, 65.0)
    with np.errstate(all="ignore"), pytest.raises(RuntimeError, match="Can't find a candidate"):
        theirs.median(ties, bounds=(0, 100))


def test_half_of_the_records_tied_beside_others():
    x = np.append(np.full(80_000, 65.0), np.random.default_rng(0).integers(0, 500, size=20_000))
    found = ours.quantile(x, [0.4, 0.5, 0.6], 0.5, (0, 500), resolution=1)
    np.testing.assert_array_equal(found, 65.0)


def test_default_lattice_finds_ties_to_its_spacing():
    assert ours.median(np.full(10**5, 65.0), bounds=(0, 100)) == pytest.approx(65.0, abs=1e-3)


def test_answers_lie_on_the_lattice_within_the_bounds():
    for seed in range(20):
        found = ours.quantile(X, [0.01, 0.99], 0.1, (-3.0, 4.0), random_state=seed, resolution=0.5)
        assert set(found * 2.0) <= set(range(-6, 9))


def test_spreads_stay_within_what_bounds_allow():
    apart = np.where(np.arange(40) % 2, -1.0, 3.0)
    for seed in range(50):
        options = dict(epsilon=0.01, bounds=(-1.0, 3.0), random_state=seed)
        assert 0.0 <= ours.var(apart, **options) <= 4.0
        assert ours.std(apart, **options) == math.sqrt(ours.var(apart, **options))


@pytest.mark.parametrize("bounds", [(7.0, 7.0), (-1e3, -1e3), (0.0, 0.0)])
def test_equal_bounds_leave_no_spread(bounds):
    assert ours.var(X, bounds=bounds) == pytest.approx(0.0, abs=1e-12)
    assert ours.std(X, bounds=bounds) == pytest.approx(0.0, abs=1e-12)


def test_means_and_sums_stay_within_what_bounds_allow():
    for seed in range(50):
        options = dict(epsilon=0.01, random_state=seed)
        assert -1.0 <= ours.mean(X, bounds=(-1.0, 3.0), **options) <= 3.0
        assert -600.0 <= ours.sum(X, bounds=(-1.0, 3.0), **options) <= 1_800.0
        assert ours.sum(X, bounds=(1.0, 3.0), nan_policy="raise", **options) >= 600.0
        assert ours.sum(X, bounds=(1.0, 3.0), neighbors="add-remove", **options) >= 0.0
        assert ours.sum(X, bounds=(-3.0, -1.0), neighbors="add-remove", **options) <= 0.0
        assert 0 <= ours.count_nonzero(X, **options) <= 600
    options = dict(epsilon=9.0, random_state=1)
    for missing in (300, 600):  # what is left out adds nothing
        x = np.where(np.arange(600) < missing, np.nan, 2.0)
        found = [
            ours.nansum(x, bounds=bounds, neighbors=neighbors, **options)
            for bounds in ((1.0, 3.0), (-3.0, 3.0))
            for neighbors in ("swap", "add-remove")
        ]
        assert found == pytest.approx([2.0 * (600 - missing)] * 4, abs=20.0)
        found = ours.nansum(-x, bounds=(-3.0, -1.0), neighbors="add-remove", **options)
        assert found == pytest.approx(-2.0 * (600 - missing), abs=20.0)


@pytest.mark.parametrize("name", [name for name in SIGNATURES if name != "count_nonzero"])
def test_answers_are_about_those_of_diffprivlib(name, theirs):
    x = np.random.default_rng(1).normal(1.0, 2.0, size=20_000)
    found, expected = (call(tools, name, x) for tools in (ours, theirs))
    off = 400.0 if "sum" in name else 1.0 if name in SPREADS else 0.1
    assert found == pytest.approx(expected, abs=off)


# Bounds


@pytest.mark.parametrize("bounds", [B, ([-10.0], [10.0]), (np.array(-10), np.array([10]))])
def test_bounds_are_two_numbers(bounds):
    assert ours.median(X, bounds=bounds, random_state=1) == ours.median(X, 1.0, B, random_state=1)


@pytest.mark.parametrize(
    "name", [name for name in SIGNATURES if name not in ("count_nonzero", *SPREADS)]
)
def test_bounds_may_differ_by_entry_of_a_one_dimensional_output(name):
    lower = np.arange(6) * 100.0
    found = call(ours, name, TABLE, bounds=(lower, lower + 1.0), axis=0, epsilon=1e4)
    per_record = found / 100.0 if "sum" in name else found
    assert ((per_record >= 0.9 * lower) & (per_record <= lower + 1.0)).all()
    if "sum" not in name:
        assert (found >= lower).all()


@pytest.mark.parametrize("name", SPREADS)
def test_bounds_of_spreads_may_differ_by_entry(name):
    lower = np.arange(6) * 100.0
    widths = np.array([1.0, 10.0, 100.0, 1e3, 1e4, 1e5])
    x = np.where(np.arange(400)[:, None] % 2, lower, lower + widths)
    found = call(ours, name, x, bounds=(lower, lower + widths), axis=0, epsilon=1e4)
    halves = widths / 2.0
    np.testing.assert_allclose(found, halves if "std" in name else halves**2, rtol=0.05)


def test_equal_bounds_of_quantiles_are_moved_apart():
    lower, upper = np.zeros(6), np.zeros(6)
    found = ours.median(TABLE, bounds=(lower, upper), axis=0)
    assert (np.abs(found) <= 0.5e-5).all()
    assert not lower.any() and not upper.any()  # the caller's own
    assert ours.median(X, bounds=(7, 7)) == pytest.approx(7.0, abs=0.6e-5)
    assert ours.median(X, bounds=(1e300, 1e300)) == 1e300


@pytest.mark.parametrize("value", [0.0, 7.0, -1e300])
def test_equal_bounds_of_a_mean_or_sum_are_its_value(value):
    assert ours.mean(X, bounds=(value, value)) == pytest.approx(value)
    total = ours.sum(X, bounds=(value, value), nan_policy="raise")
    assert total == pytest.approx(value * X.size)


@pytest.mark.parametrize("name", [name for name in SIGNATURES if name != "count_nonzero"])
def test_without_bounds_there_is_a_warning_and_the_data_has_them(name):
    x = np.linspace(40.0, 50.0, 500)
    with pytest.warns(ours.PrivacyLeakWarning, match="specify bounds for each dimension") as said:
        found = call(ours, name, x, bounds=None)
    assert said[0].filename == __file__ and len(said) == 1
    low, high = (0.0, 500 * 50.0) if "sum" in name else (40.0, 50.0)
    if name in SPREADS:
        low, high = 0.0, 25.0
    assert low <= found <= high
    assert issubclass(ours.PrivacyLeakWarning, RuntimeWarning)


@pytest.mark.filterwarnings("ignore::dpq_fast.compat.diffprivlib.PrivacyLeakWarning")
@pytest.mark.parametrize("name", [name for name in SIGNATURES if name != "count_nonzero"])
def test_without_bounds_no_data_is_refused(name):
    for x in (
        [math.nan] * 3,
        [1.0, math.nan],
        [math.inf, -math.inf],
        [-1.7e308, 1.7e308],
        [5.0] * 9,
        [1e300] * 9,
        [None, 3],
        np.ma.masked_invalid([1.0, math.nan]),
    ):
        assert not np.isnan(call(ours, name, x, bounds=None))  # a variance may be infinite
    with pytest.raises(ValueError, match="zero-size array to reduction operation minimum"):
        call(ours, name, [], bounds=None)


def test_warnings_are_caught_by_the_classes_of_diffprivlib(monkeypatch):
    kinds = {
        name: type(name, (RuntimeWarning,), {})
        for name in ("PrivacyLeakWarning", "DiffprivlibCompatibilityWarning")
    }
    monkeypatch.setitem(sys.modules, "diffprivlib.utils", SimpleNamespace(**kinds))
    for kind in (kinds["PrivacyLeakWarning"], ours.PrivacyLeakWarning):
        with pytest.warns(kind) as said:
            ours.median(X)
        assert said[0].category.__name__ == "PrivacyLeakWarning"
    for kind in (
        kinds["DiffprivlibCompatibilityWarning"],
        ours.DiffprivlibCompatibilityWarning,
    ):
        with pytest.warns(kind):
            ours.median(X, bounds=B, out=None)


def test_warnings_of_both_are_the_same(theirs):
    for options in ({"bounds": None}, {"spam": 1}):
        said = []
        for tools in (ours, theirs):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                call(tools, "mean", **options)
            said.append([(one.category.__name__, str(one.message)) for one in caught])
        assert said[0] == said[1] and len(said[0]) == 1


@pytest.mark.parametrize("name", [name for name in SIGNATURES if name != "count_nonzero"])
def test_unknown_arguments_are_warned_of_by_name(name):
    with pytest.warns(ours.DiffprivlibCompatibilityWarning) as said:
        call(ours, name, out=None, overwrite_input=True)
    assert [str(one.message) for one in said] == [
        f"Parameter '{argument}' is not functional in diffprivlib.  Remove this parameter to "
        "suppress this warning."
        for argument in ("out", "overwrite_input")
    ]
    assert said[0].filename == __file__


def test_counts_take_no_other_arguments():
    with pytest.raises(TypeError, match=r"^count_nonzero\(\) has no argument 'bounds'"):
        ours.count_nonzero(X, bounds=(0, 1))


# Axes


@pytest.mark.parametrize("name", SIGNATURES)
@pytest.mark.parametrize(
    ("axis", "keepdims", "shape"),
    [
        (None, False, ()),
        (None, True, (1, 1, 1)),
        (0, False, (3, 4)),
        (-1, True, (2, 3, 1)),
        ((0, 2), False, (3,)),
        ((2, 0), True, (1, 3, 1)),
        ((), False, (2, 3, 4)),
        (np.int64(1), False, (2, 4)),
    ],
)
def test_axes_are_reduced_as_by_numpy(name, axis, keepdims, shape):
    array = np.arange(24.0).reshape(2, 3, 4)
    assert array.sum(axis=axis, keepdims=keepdims).shape == shape
    place = {} if name == "count_nonzero" else {"bounds": (0.0, 24.0)}
    found = call(ours, name, array, axis=axis, keepdims=keepdims, epsilon=1e9, **place)
    assert np.shape(found) == shape
    assert np.asarray(found).dtype == (np.intp if name == "count_nonzero" else np.float64)


def test_answers_of_axes_are_those_of_their_slices():
    array = np.random.default_rng(1).integers(0, 100, size=(5, 51, 3))
    for axis, keepdims in ((1, False), ((0, 1), True), (None, False)):
        options = dict(axis=axis, keepdims=keepdims)
        place = dict(epsilon=1e6, bounds=(0, 100), resolution=1) | options
        expected = np.quantile(array, 0.5, method="inverted_cdf", **options)
        np.testing.assert_array_equal(ours.median(array, **place), expected)
        np.testing.assert_array_equal(ours.sum(array, **place), array.sum(**options))
        np.testing.assert_allclose(ours.mean(array, **place), array.mean(**options), rtol=1e-3)
        np.testing.assert_allclose(ours.var(array, **place), array.var(**options), rtol=1e-3)
        counts = ours.count_nonzero(array > 50, epsilon=1e6, **options)
        np.testing.assert_array_equal(counts, (array > 50).sum(**options))


def test_each_entry_has_an_even_part_of_epsilon_rounded_down():
    generator, part = seeded(3), math.nextafter(1.0 / 6.0, 0.0)
    expected = [
        dpq.quantile(row, [0.2, 0.5], epsilon=part, bounds=B, expected_n=100, rng=generator)
        for row in TABLE.T
    ]
    found = ours.quantile(TABLE, [0.2, 0.5], 1.0, B, 0, random_state=3)
    np.testing.assert_array_equal(found, np.transpose(expected))
    for epsilon in (1.0, 0.1, 3.7, 5e-300):
        for entries in (3, 6, 49, 10_007):
            whole = Fraction(math.nextafter(epsilon / entries, 0.0)) * entries
            assert whole <= Fraction(epsilon) < whole * (1 + Fraction(1, 2**50))


def test_an_entry_of_no_records_is_an_answer_and_no_entry_a_refusal():
    assert ours.median(np.zeros((0, 3)), bounds=B, axis=0).shape == (3,)
    assert -10.0 <= ours.mean([], bounds=B) <= 10.0
    with pytest.raises(ValueError, match=r"must have an entry, got an array of shape \(0, 3\)"):
        ours.median(np.zeros((0, 3)), bounds=B, axis=1)


@pytest.mark.parametrize("name", SIGNATURES)
def test_arrays_of_any_kind_are_taken(name):
    for array in (3, [1, 2], [[1.0], [2.0]], (True, False), X.astype(np.float32), X[::2], TABLE.T):
        assert np.isfinite(call(ours, name, array))


# Types of answers


def test_integers_come_as_whole_numbers():
    found = ours.sum(X, bounds=(0, 5.7), dtype=int)
    assert type(found) is int and found <= 5 * X.size  # the bounds are cut
    columns = ours.sum(TABLE, bounds=(0, 5), dtype=np.int32, axis=0)
    assert columns.dtype == np.int32
    assert ours.sum(X, bounds=(-9, -1), dtype=np.uint8) == 0
    assert ours.sum([1e300], bounds=(0, 2**62), dtype=np.int64, resolution=2**40, epsilon=99) > 0
    assert type(ours.mean(X, bounds=(0, 5), dtype=int)) is int
    assert type(ours.var(X, bounds=(0, 5.7), dtype=int)) is int
    assert ours.std(X, 1e-3, bounds=(0, 5.7), dtype=int) <= 3  # the bounds are cut


def test_floats_come_in_their_type():
    assert type(ours.mean(X, bounds=B, dtype=np.float32)) is np.float32
    assert ours.mean(TABLE, bounds=B, dtype="f4", axis=0).dtype == np.float32
    assert ours.sum(np.full(9, 6e4), 1e3, (0, 6e4), dtype=np.float16) == math.inf
    assert type(ours.mean(X, bounds=B)) is type(ours.sum(X, bounds=B)) is np.float64
    assert ours.sum(TABLE.astype(int), bounds=B, axis=0).dtype == np.float64
    with pytest.raises(TypeError, match="dtype must be one of integers or floats, got complex128"):
        ours.mean(X, bounds=B, dtype=complex)


def test_counts_are_of_what_is_true():
    given = dict(epsilon=1e6)
    assert ours.count_nonzero(["a", "", "b"], **given) == 2
    assert ours.count_nonzero([b"a", b""], **given) == 1
    assert ours.count_nonzero([None, 1, "", "x", 0.0], **given) == 2
    assert ours.count_nonzero([0.0, math.nan, 2.0], **given) == 2
    assert ours.count_nonzero(np.ma.masked_equal([0, 1, 2], 2), **given) == 1
    assert ours.count_nonzero(np.ma.masked_equal(["", "a", "b"], "b"), **given) == 1
    missing = pytest.importorskip("pandas", reason="extra `test`").NA
    assert ours.count_nonzero(np.array([missing, True, False], dtype=object), **given) == 1
    assert type(ours.count_nonzero(X)) is int


# Histograms

PLACE = dict(range=(-10.0, 10.0))


@pytest.mark.parametrize(
    ("bins", "ends"),
    [(10, (-10.0, 10.0)), (np.int64(3), [0, 1]), ([-10, 0, 1, 10], None), (np.arange(4.0), (7, 7))],
)
@pytest.mark.parametrize("density", [None, False, True])
def test_histograms_have_the_manners_of_numpy(bins, ends, density):
    found, edges = ours.histogram(TABLE, 1e6, bins, ends, density=density)
    expected, expected_edges = np.histogram(TABLE, bins, ends, density=density)
    np.testing.assert_allclose(found, expected)
    np.testing.assert_array_equal(edges, expected_edges)
    assert found.dtype == expected.dtype and edges.dtype == np.float64


@pytest.mark.parametrize("density", [None, True])
@pytest.mark.parametrize("bins", [5, [-10.0, 0.0, 1.0, 10.0]])
def test_histograms_are_about_those_of_diffprivlib(bins, density, theirs):
    options = PLACE | dict(bins=bins, density=density)
    found, expected = (tools.histogram(X, 9.0, **options) for tools in (ours, theirs))
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, atol=0.02 if density else 10)


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("nan_policy", ["omit", "raise"])
@pytest.mark.parametrize("bins", [7, [-5.0, 0.0, 1.0, 3.0]])
def test_histograms_are_our_own(neighbors, nan_policy, bins):
    options = dict(neighbors=neighbors, nan_policy=nan_policy)
    found, _ = ours.histogram(TABLE, 0.1, bins, B, random_state=7, **options)
    bounds = B if bins == 7 else None
    expected, _ = dpq.histogram(X, bins, bounds, epsilon=0.1, rng=seeded(7), **options)
    np.testing.assert_array_equal(found, expected)


def test_numbers_of_a_histogram_are_whole_and_add_up_where_none_is_missing():
    for seed in range(20):
        options = dict(epsilon=0.05, bins=[-np.inf, -1.0, 1.0, np.inf], random_state=seed)
        found, _ = ours.histogram(X, nan_policy="raise", **options)
        assert found.dtype == np.int64 and (found >= 0).all() and found.sum() == X.size
        assert (ours.histogram(X[:3], **options)[0] >= 0).all()
    with pytest.raises(ValueError, match="x must not contain NaN with nan_policy='raise'"):
        ours.histogram([math.nan], nan_policy="raise", **PLACE)
    missing = np.where(np.arange(600) < 200, math.nan, X)
    found, _ = ours.histogram(missing, 1e6, **PLACE)
    np.testing.assert_array_equal(found, np.histogram(X[200:], **PLACE)[0])
    masked, _ = ours.histogram(np.ma.masked_invalid(missing), 1e6, **PLACE)
    np.testing.assert_array_equal(masked, found)


def test_a_histogram_of_a_number_of_bins_without_a_range_is_warned_of():
    with pytest.warns(ours.PrivacyLeakWarning, match="^Range parameter has not been spec") as said:
        found, edges = ours.histogram(X, 1e6)
    assert said[0].filename == __file__ and len(said) == 1
    expected, expected_edges = np.histogram(X)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(edges, expected_edges)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours.histogram(X, bins=[0.0, 1.0])  # nothing is read off the records
    with pytest.warns(ours.DiffprivlibCompatibilityWarning, match="'normed'") as said:
        ours.histogram(X, normed=True, **PLACE)
    assert said[0].filename == __file__


@pytest.mark.filterwarnings("ignore::dpq_fast.compat.diffprivlib.PrivacyLeakWarning")
@pytest.mark.parametrize(
    "x",
    [
        *([], [math.nan], [5.0] * 9, [1e300] * 9, [-1.7e308, 1.7e308], [1.0, 1.0 + 2.0**-52]),
        *([5e-324, 0.0], [0.0, math.inf], [None, 3], (True, False)),
    ],
)
def test_without_a_range_no_sample_is_refused(x):
    hist, edges = ours.histogram(x)
    assert hist.shape == (10,) and (np.diff(edges) > 0.0).all()


def test_warnings_of_histograms_are_those_of_diffprivlib(theirs):
    said = []
    for tools in (ours, theirs):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            tools.histogram(X, normed=None)
        said.append([(one.category.__name__, str(one.message)) for one in caught])
    assert said[0] == said[1] and len(said[0]) == 2


def test_histograms_can_be_repeated_and_are_charged_once_before_a_record_is_read():
    options = PLACE | dict(epsilon=0.1)
    once, again = (ours.histogram(X, random_state=1, **options)[0] for _ in range(2))
    np.testing.assert_array_equal(once, again)
    budget, accountant = Budget(), privacy.Accountant(0.7)
    for payer in (budget, accountant):
        ours.histogram(X, 0.7, accountant=payer, **PLACE)
        with pytest.raises(TypeError, match="x must hold real numbers"):
            ours.histogram(["a"], accountant=Budget(), **PLACE)
    assert budget.spent == [(0.7, 0)]
    assert accountant.spent.epsilon == 0.7 and len(accountant.history) == 1
    with pytest.raises(ValueError, match="fit"):
        ours.histogram(Untouchable(), 0.1, accountant=accountant, **PLACE)


HISTOGRAM_ERRORS = [
    ({"bins": 2.5}, TypeError, "'float' object cannot be interpreted as an integer"),
    ({"bins": 0}, ValueError, "bins must"),
    ({"bins": [2, 1]}, ValueError, "bins must ascend"),
    ({"bins": [[1, 2]]}, ValueError, "bins must be a number, or two edges or more"),
    ({"range": (1, 0)}, ValueError, "lower bound must be smaller than upper bound"),
    ({"range": (0, math.inf)}, ValueError, "bounds must be finite"),
    ({"range": 5}, TypeError, "'int' object is not iterable"),
    ({"range": (1, 2, 3)}, ValueError, "too many values to unpack"),
    ({"epsilon": 0}, ValueError, "^Epsilon and Delta cannot both be zero"),
    ({"accountant": 3}, TypeError, "^Accountant must be of type BudgetAccountant"),
    ({"random_state": "a"}, ValueError, "cannot be used to seed a numpy.random.RandomState"),
]
# What diffprivlib takes.
HISTOGRAM_OURS_ALONE = [
    ({"bins": "auto"}, ValueError, "by the rule 'auto' they are read off the records"),
    ({"bins": 10**12}, ValueError, r"bins must be at most 2\^20"),
    ({"weights": [1.0]}, ValueError, "weights must be None: dpq_fast.histogram takes counts"),
    ({"density": 2}, TypeError, "density must"),
    ({"neighbors": "spam"}, ValueError, "neighbors must be one of 'swap', 'add-remove'"),
    ({"nan_policy": "spam"}, ValueError, "nan_policy must be one of 'omit', 'raise'"),
]


@pytest.mark.parametrize(("options", "error", "message"), HISTOGRAM_ERRORS + HISTOGRAM_OURS_ALONE)
def test_errors_of_histograms_come_before_a_charge_and_the_sample(options, error, message):
    budget = Budget()
    with pytest.raises(error, match=message):
        ours.histogram(Untouchable(), **{"accountant": budget} | PLACE | options)
    assert budget.spent == []


@pytest.mark.parametrize(("options", "error", "message"), HISTOGRAM_ERRORS)
def test_errors_of_histograms_are_those_of_diffprivlib(options, error, message, theirs):
    with pytest.raises(error):
        theirs.histogram(X, **PLACE | options)


# NaN


@pytest.mark.parametrize("name", SIGNATURES)
def test_missing_records_are_left_out_without_a_word(name):
    x = np.where(np.arange(3_000) % 3 == 0, math.nan, 4.0)
    place = {} if name == "count_nonzero" else dict(resolution=0.5)
    found = call(ours, name, x, epsilon=1e6, **place)
    expected = {"sum": 8_000.0, "nansum": 8_000.0, "count_nonzero": 3_000}
    expected |= dict.fromkeys(SPREADS, 0.0)
    assert found == pytest.approx(expected.get(name, 4.0), abs=1e-2 if name in SPREADS else None)
    if name != "count_nonzero":
        assert np.isfinite(call(ours, name, [math.nan] * 5))
        masked = np.ma.masked_invalid(x)
        assert call(ours, name, masked, random_state=1) == call(ours, name, x, random_state=1)


@pytest.mark.parametrize("name", ["mean", "sum", "var", "std"])
def test_stated_absence_of_missing_records_is_held_to(name):
    budget = Budget()
    with pytest.raises(ValueError, match="x must not contain NaN with nan_policy='raise'"):
        call(ours, name, [1.0, math.nan], nan_policy="raise", accountant=budget)
    assert budget.spent == [(1.0, 0)]


# Randomness


@pytest.mark.parametrize("name", SIGNATURES)
def test_answers_can_be_repeated(name):
    once = [call(ours, name, epsilon=0.01, random_state=seed) for seed in (1, np.int64(1))]
    state, other = np.random.RandomState(1), np.random.RandomState(1)
    for _ in range(2):
        once.append(call(ours, name, epsilon=0.01, random_state=state))
        assert once[-1] == call(ours, name, epsilon=0.01, random_state=other)
    assert once[0] == once[1] == once[2] != once[3]


@pytest.mark.parametrize("name", SIGNATURES)
@pytest.mark.parametrize("given", [None, np.random, np.random.mtrand._rand])
def test_without_a_seed_noise_is_cryptographic(name, given):
    generator = default_rng()
    before = repr(generator.bit_generator.state)
    state = repr(np.random.mtrand._rand.get_state())
    for _ in range(4):  # a draw may take bits that are left over
        call(ours, name, random_state=given)
    assert repr(generator.bit_generator.state) != before
    assert repr(np.random.mtrand._rand.get_state()) == state


# Accountants


@pytest.mark.parametrize("name", SIGNATURES)
def test_an_accountant_is_charged_once_for_the_call(name):
    for options in ({}, {"axis": 0}, {"axis": None, "keepdims": True}):
        budget = Budget()
        call(ours, name, TABLE, epsilon=0.7, accountant=budget, **options)
        assert budget.spent == [(0.7, 0)]
        accountant = privacy.Accountant(0.7)
        call(ours, name, TABLE, epsilon=0.7, accountant=accountant, **options)
        assert accountant.spent.epsilon == pytest.approx(0.7, rel=1e-14)
        assert len(accountant.history) == 1


def test_several_levels_are_one_charge():
    budget = Budget(1.0)
    ours.quantile(TABLE, [0.1, 0.5, 0.9], 1.0, B, 0, accountant=budget)
    assert budget.spent == [(1.0, 0)]


def test_what_does_not_fit_is_refused_before_a_record_is_read():
    letters = np.array([["a", "b"]])  # which no release takes
    for accountant, message in ((Budget(0.5), "permissible"), (privacy.Accountant(0.5), "fit")):
        with pytest.raises(ValueError, match=message):
            ours.median(letters, bounds=B, axis=0, accountant=accountant)
    assert accountant.history == ()


def test_there_is_no_refund():
    for accountant in (Budget(), privacy.Accountant(1.0)):
        with pytest.raises(TypeError, match="x must hold real numbers"):
            ours.median(np.array(["a", "b"]), bounds=B, accountant=accountant)
        spent = accountant.spent
        assert (spent[0][0] if isinstance(spent, list) else spent.epsilon) == 1.0


@pytest.mark.filterwarnings("ignore::dpq_fast.compat.diffprivlib.PrivacyLeakWarning")
def test_bounds_that_come_from_the_data_are_charged_before():
    budget = Budget(0.5)
    with pytest.raises(ValueError, match="permissible"):
        ours.median(np.array(["a"]), accountant=budget)
    with pytest.raises(TypeError, match="x must hold real numbers"):
        ours.median(np.array(["a"]), epsilon=0.5, accountant=budget)
    assert budget.spent == [(0.5, 0)]


def test_what_is_refused_for_public_reasons_costs_nothing():
    """Of all entries, before the first one is released."""
    budget = Budget()
    lower, upper = np.full(6, -10.0), np.full(6, 10.0)
    upper[5] = math.inf
    for options in (
        dict(bounds=(lower, upper), axis=0),
        dict(bounds=B, resolution=1e-300),
        dict(bounds=B, neighbors="spam"),
        dict(bounds=B, axis=4),
    ):
        with pytest.raises(ValueError):
            ours.median(TABLE, accountant=budget, **options)
    assert budget.spent == []


def test_our_accountant_adds_up_by_its_own_theorem():
    accountant = privacy.Accountant(4.0, 1e-6, composition="zcdp")
    ours.median(X, 0.5, B, accountant=accountant)
    # the exponential mechanism, as `quantile` takes for it
    expected = privacy.guarantee("ind_exp", q=0.5, epsilon=0.5, selection="exponential").rho
    assert accountant.history[0].rho == pytest.approx(expected)
    ours.median(TABLE, 3.0, B, 0, accountant=accountant)
    assert accountant.history[1].rho == pytest.approx(6.0 * expected)


def test_our_accountant_holds_to_its_relation():
    accountant = privacy.Accountant(1.0, neighbors="add-remove")
    with pytest.raises(ValueError, match="must be under 'add-remove'"):
        ours.median(X, bounds=B, accountant=accountant)
    ours.median(X, bounds=B, accountant=accountant, neighbors="add-remove")
    assert accountant.spent.epsilon == 1.0


def test_the_default_accountant_of_diffprivlib_is_charged(monkeypatch):
    default = Budget(1.0)

    class BudgetAccountant:
        @staticmethod
        def load_default(accountant):
            assert accountant is None
            return default

    module = ModuleType("diffprivlib.accountant")
    monkeypatch.setitem(sys.modules, "diffprivlib.accountant", module)
    ours.median(X, bounds=B)  # half imported
    module.BudgetAccountant = BudgetAccountant
    ours.median(X, bounds=B)
    assert default.spent == [(1.0, 0)]
    with pytest.raises(ValueError, match="not permissible"):
        ours.median(X, bounds=B)
    other = Budget()
    ours.median(X, bounds=B, accountant=other)
    assert other.spent == [(1.0, 0)]


def test_accountants_of_diffprivlib_are_charged_in_all_their_ways(theirs):
    from diffprivlib.accountant import BudgetAccountant
    from diffprivlib.utils import BudgetError

    given = BudgetAccountant(1.5, 0)
    ours.mean(X, bounds=B, accountant=given)
    assert given.total() == (1.0, 0)
    with pytest.raises(BudgetError, match="will exceed remaining privacy budget"):
        ours.quantile(X, [0.2, 0.5], bounds=B, accountant=given)
    with BudgetAccountant() as inside:
        ours.quantile(TABLE, [0.2, 0.5], 0.3, B, 0)
        theirs.mean(X, 0.2, B)
    assert inside.spent_budget == [(0.3, 0), (0.2, 0)]
    default = BudgetAccountant().set_default()
    try:
        ours.count_nonzero(X > 0.0, 0.5)
        assert default.total() == (0.5, 0)
    finally:
        BudgetAccountant.pop_default()


# Errors

ERRORS = [
    ("quantile", {"quant": 1.5}, ValueError, r"^Quantiles must be in the unit interval \[0, 1\]\."),
    ("quantile", {"quant": [0.5, -0.1]}, ValueError, "^Quantiles must be in the unit interval"),
    ("quantile", {"quant": "a"}, TypeError, "quant must be real numbers, got dtype <U1"),
    ("quantile", {"quant": []}, ValueError, "quant must hold at least one level, got none"),
    ("percentile", {"percent": 101}, ValueError, "^Percentiles must be between 0 and 100 inclusi"),
    ("percentile", {"percent": "a"}, TypeError, "percent must be real numbers, got dtype <U1"),
    ("median", {"epsilon": 0}, ValueError, "^Epsilon and Delta cannot both be zero"),
    ("mean", {"epsilon": -1}, ValueError, "^Epsilon must be non-negative"),
    ("sum", {"epsilon": "1"}, TypeError, "^Epsilon and delta must be numeric"),
    ("count_nonzero", {"epsilon": None}, TypeError, "^Epsilon and delta must be numeric"),
    ("count_nonzero", {"epsilon": -1.0}, ValueError, "^Epsilon must be non-negative"),
    ("median", {"bounds": [-1, 1]}, TypeError, r"^Bounds must be specified as a tuple of \(min"),
    ("median", {"bounds": (1, -1)}, ValueError, "lower bound must be smaller than upper bound"),
    ("mean", {"bounds": (1, 2, 3)}, ValueError, "too many values to unpack"),
    ("median", {"bounds": ("a", "b")}, ValueError, "could not convert string to float"),
    ("median", {"bounds": (0, math.inf)}, ValueError, "bounds must be finite"),
    ("median", {"bounds": ([0, 0], [1, 1])}, ValueError, r"must have 1 element\(s\), got 2\."),
    ("median", {"bounds": ([0, 0], 1)}, ValueError, "must be the same shape array"),
    ("mean", {"bounds": ([[0], [0]], [[1], [1]])}, ValueError, "scalar or a 1-dimensional array"),
    (
        "median",
        {"array": TABLE, "axis": 0, "bounds": ([0] * 3, [1] * 3)},
        ValueError,
        r"^lower and upper bounds must have 6 element\(s\), got 3\.$",
    ),
    (
        "median",
        {"array": TABLE, "axis": 0, "keepdims": True, "bounds": ([0] * 6, [1] * 6)},
        ValueError,
        r"must have 1 element\(s\), got 6\.$",
    ),
    ("median", {"axis": 1}, np.exceptions.AxisError, "axis 1 is out of bounds for array of dimen"),
    ("mean", {"axis": (0, 0)}, ValueError, "duplicate value in 'axis'"),
    ("mean", {"axis": 1.5}, TypeError, "'float' object cannot be interpreted as an integer"),
    ("sum", {"keepdims": "a"}, TypeError, "'str' object cannot be interpreted as an integer"),
    ("mean", {"accountant": 3}, TypeError, "^Accountant must be of type BudgetAccountant, got <cl"),
    ("median", {"random_state": "a"}, ValueError, "cannot be used to seed a numpy.random.RandomS"),
    ("median", {"random_state": -1}, ValueError, "Seed must be between 0 and 2"),
    ("median", {"random_state": 2**40}, ValueError, "Seed must be between 0 and 2"),
    (
        "sum",
        {"random_state": np.random.default_rng(1)},
        ValueError,
        "cannot be used to seed a numpy.random.RandomState instance",
    ),
    ("mean", {"dtype": "spam"}, TypeError, "data type 'spam' not understood"),
]
# What diffprivlib takes, and answers with NaN, noise of no guarantee, or an error of its own.
OURS_ALONE = [
    ("quantile", {"quant": math.nan}, ValueError, "^Quantiles must be in the unit interval"),
    ("median", {"epsilon": math.inf}, ValueError, "epsilon must be positive and finite, got inf"),
    ("median", {"epsilon": math.nan}, ValueError, "epsilon must be positive and finite, got nan"),
    ("median", {"bounds": (math.nan, 1)}, ValueError, r"bounds must be finite .* got \(nan, 1.0"),
    ("mean", {"bounds": (0, math.inf)}, ValueError, "bounds must be finite"),
    ("mean", {"bounds": (0, 10**400)}, ValueError, "got an integer beyond float64"),
    ("median", {"bounds": (1j, 2)}, TypeError, "not 'complex'"),
    ("median", {"resolution": -1}, ValueError, "resolution must"),
    ("median", {"neighbors": "spam"}, ValueError, "neighbors must be one of 'swap', 'add-remove'"),
    ("sum", {"nan_policy": "spam"}, ValueError, "nan_policy must be one of 'omit', 'raise'"),
    ("median", {"bounds": ([0, 2], [1, 1])}, ValueError, "lower bound must be smaller .* others"),
]


@pytest.mark.parametrize(("name", "options", "error", "message"), ERRORS + OURS_ALONE)
def test_errors_by_type_and_text(name, options, error, message):
    budget = Budget()
    with pytest.raises(error, match=message):
        call(ours, name, **{"accountant": budget} | options)
    assert budget.spent == []


@pytest.mark.parametrize(("name", "options", "error", "message"), ERRORS)
def test_errors_are_those_of_diffprivlib(name, options, error, message, theirs):
    with pytest.raises(error):
        call(theirs, name, **options)


SHAPELESS = [
    case for case in ERRORS + OURS_ALONE if not {"axis", "keepdims", "array"} & set(case[1])
]


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        case
        for case in SHAPELESS
        if "element" not in case[3]  # which is about the shape of the array, and
        # what releases themselves check
        and not {"neighbors", "nan_policy", "resolution"} & set(case[1])
        and "finite " not in case[3]
        and "bounds must be finite" not in case[3]
    ],
)
def test_public_arguments_are_refused_before_the_array_is_looked_at(name, options, error, message):
    with pytest.raises(error, match=message):
        call(ours, name, Untouchable(), **options)


def test_messages_show_no_array():
    column = np.array([123.456, 1.0])
    for options in ({"random_state": column}, {"epsilon": column}, {"accountant": column}):
        with pytest.raises((TypeError, ValueError)) as raised:
            ours.median(X, **{"bounds": B} | options)
        assert "123" not in str(raised.value)
    with pytest.raises(ValueError) as raised:
        ours.median(X, bounds=(column, column[::-1]))
    assert "123" not in str(raised.value)
