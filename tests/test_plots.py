"""Pictures, by what is drawn: lines, bars, bands and labels; never by pixels."""

import datetime
import itertools
import re
import sys
import zoneinfo

import numpy as np
import pytest
from scipy import stats

import dpq_fast as dpq

matplotlib = pytest.importorskip("matplotlib", reason="extra 'plot' not installed")
matplotlib.use("Agg")
from matplotlib import dates, pyplot  # noqa: E402
from matplotlib.colors import to_rgb  # noqa: E402

plots = dpq.plots
Q = [0.9, 0.1, 0.5]
DAY = np.datetime64("2020-01-01")


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


@pytest.fixture
def ax():
    return pyplot.figure(figsize=(4, 3)).add_subplot()


@pytest.fixture(scope="module")
def ages():
    x = np.random.default_rng(0).integers(18, 80, size=2_000)
    return dpq.cdf(x, epsilon=1.0, bounds=(0, 120), resolution=1, rng=1)


@pytest.fixture(scope="module")
def compared():
    return dpq.plan([0.25, 0.75], n=500, bounds=(0, 1), method="all", epsilon=[2, 1], releases=100)


def by_value(estimate=True):
    value = np.array([3.0, 1.0, 2.0])
    if not estimate:
        return value
    return dpq.Estimate(value, value - [0.5, 1.0, 0.25], value + 1.0, 0.9, "population")


def band_of(ax):
    """Corners of the last band, as a set of points."""
    (path,) = ax.collections[-1].get_paths()
    return path.vertices


# cdf


def test_cdf_draws_its_steps(ages, ax):
    assert plots.cdf(ages, ax, band=False, label="ages", lw=3) is ax
    (line,) = ax.lines
    assert (line.get_label(), line.get_linewidth()) == ("ages", 3)
    x, p = line.get_data()
    assert (np.diff(x) >= 0).all() and (np.diff(p) >= 0).all()
    at = np.arange(0.0, 121.0)  # between two points it is flat, as the function is
    np.testing.assert_array_equal(np.interp(at[:-1] + 0.5, x, p), ages(at[:-1] + 0.5))
    assert not ax.collections
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("value", "share of the records")


@pytest.mark.parametrize("band, words", [(True, "95%"), (0.5, "50%")])
def test_cdf_band_is_the_stated_accuracy(ages, ax, band, words):
    plots.cdf(ages, ax, band=band)
    coverage = 0.95 if band is True else band
    share = ages.accuracy(1.0 - coverage) / ages.total
    corners = band_of(ax)
    low, high = corners[:, 1].min(), corners[:, 1].max()
    assert low == 0.0 and high == 1.0
    middle = ages(50)  # one point of the lattice, one bin
    assert np.isclose(corners[corners[:, 0] == 50.0, 1], middle - share).any()
    assert np.isclose(corners[corners[:, 0] == 50.0, 1], middle + share).any()
    assert ax.get_ylabel() == f"share of the records\n({words} band)"


@pytest.mark.parametrize("neighbors, resolution", [("swap", 1), ("add-remove", None), ("swap", 0)])
def test_cdf_band_covers_the_records(ax, neighbors, resolution):
    """Everywhere at once, with leaves of many points, and with an estimated total."""
    x = np.sort(np.random.default_rng(1).normal(60.0, 5.0, size=300))
    place = dict(bounds=(0, 120), resolution=resolution, neighbors=neighbors)
    released = dpq.cdf(x, epsilon=1.0, method="histogram", bins=40, rng=2, **place)
    plots.cdf(released, ax, band=0.999)
    at, low, high = plots._stairs(released, 0.001)
    assert {*np.round(low, 9), *np.round(high, 9)} >= {*np.round(band_of(ax)[:, 1], 9)}
    points = np.arange(0.5, 120.0)
    seen = np.searchsorted(np.round(x) if resolution == 1 else x, points, side="right") / x.size
    below = low[np.searchsorted(at, points, side="right") - 1]
    above = high[np.searchsorted(at, points, side="right") - 1]
    assert (below <= seen).all() and (seen <= above).all()
    assert (above - below < 1.0).any()


def test_cdf_band_of_many_steps_is_thinned_outwards(ax, monkeypatch):
    x = np.random.default_rng(0).normal(60.0, 5.0, size=1_000)
    released = dpq.cdf(x, epsilon=1.0, bounds=(0, 120), bins=64, rng=1)
    at, low, high = plots._stairs(released, 0.05)
    monkeypatch.setattr(plots, "MOST_STEPS", 10)
    few = plots._stairs(released, 0.05)
    assert few[0].size <= 20 < at.size
    wide = np.searchsorted(few[0], (at[::2] + at[1::2]) / 2.0) - 1
    assert (few[1][wide] <= low[::2]).all() and (few[2][wide] >= high[::2]).all()


def test_cdf_without_a_stated_accuracy_has_no_band(ax):
    place = dict(epsilon=1.0, delta=1e-6, bounds=(0, 9), method="gaussian", rng=1)
    released = dpq.cdf([1.0, 2.0], **place)
    assert not plots.cdf(released, ax).collections
    assert ax.get_ylabel() == "share of the records"
    with pytest.raises(ValueError, match="accuracy must be asked of a method that counts"):
        plots.cdf(released, ax, band=0.9)


def test_cdf_of_no_records_is_any(ax):
    released = dpq.cdf([], epsilon=1.0, bounds=(0, 9), nan_policy="raise", bins=8)
    plots.cdf(released, ax)
    assert set(band_of(ax)[:, 1]) == {0.0, 1.0}


def test_curves_on_the_same_axes_differ_in_color_and_line(ages, ax):
    plots.cdf(ages, ax)
    plots.cdf(ages, ax)
    first, second = ax.lines
    assert first.get_color() != second.get_color()
    assert first.get_linestyle() != second.get_linestyle()


def test_labels_of_the_axes_stay(ages, ax):
    ax.set(xlabel="age in years", ylabel="share")
    plots.cdf(ages, ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("age in years", "share")


# quantiles


def test_quantiles_are_dots_with_bars_by_level(ax):
    plots.quantiles(Q, by_value(), ax, color="k", ms=9)
    (drawn,) = ax.containers
    np.testing.assert_array_equal(drawn.lines[0].get_xdata(), [0.1, 0.5, 0.9])
    np.testing.assert_array_equal(drawn.lines[0].get_ydata(), [1.0, 2.0, 3.0])
    assert (drawn.lines[0].get_color(), drawn.lines[0].get_markersize()) == ("k", 9)
    bars = np.array(drawn.lines[2][0].get_segments())
    np.testing.assert_array_equal(bars[:, 0, 1], [0.0, 1.75, 2.5])
    np.testing.assert_array_equal(bars[:, 1, 1], [2.0, 3.0, 4.0])
    assert ax.get_xlabel() == "level"
    assert ax.get_ylabel() == "value\n(90% intervals for the population)"


def test_one_quantile_without_an_interval_is_a_dot(ax):
    plots.quantiles(0.5, 7.0, ax)
    (drawn,) = ax.containers
    assert drawn.lines[0].get_xydata().tolist() == [[0.5, 7.0]]
    assert not drawn.lines[2]
    assert ax.get_ylabel() == "value"


def test_many_quantiles_are_a_line_with_a_band(ax):
    q = np.arange(1, 100) / 100
    plots.quantiles(q, dpq.Estimate(q, q - 1.0, q + 2.0, 0.5, "sample"), ax)
    (line,) = ax.lines
    np.testing.assert_array_equal(line.get_xydata(), np.column_stack((q, q)))
    corners = band_of(ax)
    assert (corners[:, 1].min(), corners[:, 1].max()) == (q[0] - 1.0, q[-1] + 2.0)


def test_ends_that_are_nowhere_are_arrowheads_beyond_all(ax):
    value = np.array([1.0, 2.0])
    answer = dpq.Estimate(value, np.array([-np.inf, 1.0]), np.array([3.0, np.inf]), 0.9, "sample")
    plots.quantiles([0.2, 0.8], answer, ax)
    _, down, up = ax.lines
    assert (down.get_marker(), up.get_marker()) == ("v", "^")
    np.testing.assert_allclose(down.get_xydata(), [[0.2, 0.8]])
    np.testing.assert_allclose(up.get_xydata(), [[0.8, 3.2]])


def test_dates_are_dates_and_have_room(ax):
    answer = DAY + np.array([0, 100, 2_000])
    plots.quantiles(
        [0.1, 0.5, 0.9], dpq.Estimate(answer, answer - 9, answer + 9, 0.9, "sample"), ax
    )
    drawn = ax.containers[0].lines[0].get_ydata()
    np.testing.assert_allclose(drawn, dates.date2num(answer))
    assert ax.get_ylabel() == "date\n(90% intervals for the sample)"
    assert isinstance(ax.yaxis.get_major_formatter(), dates.ConciseDateFormatter)


def test_times_of_a_zone_are_told_in_it(ax):
    zone = zoneinfo.ZoneInfo("Asia/Tokyo")
    when = datetime.datetime(2024, 5, 1, 9, tzinfo=zone)
    plots.quantiles([0.5, 0.9], [when, None], ax)
    (first, second) = ax.containers[0].lines[0].get_ydata()
    assert first == dates.date2num(when) and np.isnan(second)
    assert ax.get_ylabel() == "time (Asia/Tokyo)"
    assert ax.yaxis.get_major_locator().tz is zone


@pytest.mark.parametrize(
    "times, words, numbers",
    [
        (np.array([0, 7_200], "m8[s]"), "hours", [0.0, 2.0]),
        (np.array([1_500, 500], "m8[ms]"), "seconds", [1.5, 0.5]),
        ([datetime.timedelta(days=2), datetime.timedelta(days=1)], "days", [2.0, 1.0]),
        (np.array([0, 7], "m8[ns]"), "nanoseconds", [0.0, 7.0]),
    ],
)
def test_durations_have_a_unit(ax, times, words, numbers):
    plots.quantiles([0.1, 0.2], times, ax)
    assert ax.get_ylabel() == words
    np.testing.assert_allclose(ax.containers[0].lines[0].get_ydata(), numbers)


def test_durations_keep_the_unit_of_the_axes(ax):
    plots.quantiles([0.1], np.array([7_200], "m8[s]"), ax)
    plots.quantiles([0.1], np.array([60], "m8[s]"), ax)
    assert ax.get_ylabel() == "hours"
    np.testing.assert_allclose(ax.containers[1].lines[0].get_ydata(), [1 / 60])


def test_cdf_of_dates_has_dates(ax):
    x = DAY + np.arange(100)
    released = dpq.cdf(x, epsilon=1.0, bounds=(DAY, DAY + 365), rng=1)
    plots.cdf(released, ax)
    assert ax.get_xlabel() == "date"
    ends = dates.date2num([DAY - 1, DAY + 365])
    np.testing.assert_allclose([ax.lines[0].get_xdata()[0], ax.lines[0].get_xdata()[-1]], ends)


# plan


def test_plan_is_a_line_for_each_method(compared, ax):
    plots.plan(compared, ax)
    names = list(dict.fromkeys(compared.method.tolist()))
    assert [line.get_label() for line in ax.lines] == names
    for line in ax.lines:
        rows = np.flatnonzero(compared.method == line.get_label())[::-1]
        np.testing.assert_array_equal(line.get_xdata(), [1.0, 2.0])
        np.testing.assert_array_equal(line.get_ydata(), compared.ranks.quantile[rows])
    assert len({(line.get_color(), line.get_marker()) for line in ax.lines}) == len(names)
    assert len({str(line.get_linestyle()) for line in ax.lines}) == len(names)
    filled = sum(len(each.get_offsets()) for each in ax.collections)
    assert filled == np.count_nonzero(compared.chosen)
    assert ax.get_legend().get_title().get_text() == "filled: auto takes it"
    assert ax.get_xscale() == ax.get_yscale() == "log"
    assert ax.get_xlabel() == "epsilon"
    assert ax.get_ylabel() == "error in ranks\n(95% of releases stay below)"


def test_plan_names_its_target(ax):
    made = dpq.plan(0.5, n=1_000, bounds=(0, 120), target=10, guess=stats.norm(60, 20))
    plots.plan(made, ax)
    assert ax.lines[-1].get_xdata() == [made.needed, made.needed]
    assert [text.get_text() for text in ax.get_legend().get_texts()][-1].startswith("target: 0.")


def test_plan_of_a_sum_is_in_the_unit_of_the_data(ax):
    made = dpq.plan_sum(n=100, guess=stats.norm(45, 15), epsilon=[1.0, 2.0], releases=100)
    plots.plan(made, ax)
    assert ax.get_ylabel() == "error in the unit of the data\n(95% of releases stay below)"
    assert ax.get_legend() is None


def test_plan_of_many_groups_names_the_largest_and_smallest_error(ax):
    sizes = {f"g{size}": size for size in range(20, 220, 20)}
    made = dpq.plan(
        0.5,
        groups=sizes,
        bounds=(0, 1),
        guess=stats.uniform(),
        epsilon=[0.01, 0.1],
        releases=100,
    )
    plots.plan(made, ax)
    assert len(ax.lines) == len(sizes)
    legend = ax.get_legend()
    assert legend.get_title().get_text() == "10 groups, among them"
    assert {text.get_text() for text in legend.get_texts()} >= {"g20"}
    assert len(legend.get_texts()) == 2


# groups


def test_groups_are_sorted_dots_with_bars(ax):
    plots.groups(["a", ("b", 2), 3], by_value(), ax)
    (drawn,) = ax.containers
    np.testing.assert_array_equal(drawn.lines[0].get_xdata(), [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(drawn.lines[0].get_ydata(), [0.0, 1.0, 2.0])
    names = dict(zip(ax.get_yticks(), (t.get_text() for t in ax.get_yticklabels()), strict=True))
    assert names == {0.0: "b / 2", 1.0: "3", 2.0: "a"}
    np.testing.assert_array_equal(
        np.array(drawn.lines[2][0].get_segments())[:, :, 0], [[0.0, 2.0], [1.75, 3.0], [2.5, 4.0]]
    )
    assert ax.get_xlabel() == "value\n(90% intervals for the population)"
    assert ax.get_ylabel() == "group"


def test_groups_take_what_releases_by_group_give():
    frame = {"team": ["a", "b"] * 50, "x": np.arange(100.0)}
    place = dict(groups=["a", "b"], epsilon=1.0, bounds=(0, 100), resolution=1, rng=1)
    released = dpq.quantile_by(frame["x"], frame["team"], [0.5], confidence=0.9, **place)
    ax = plots.groups(released)
    values = np.sort(released.values[:, 0])
    np.testing.assert_array_equal(ax.containers[0].lines[0].get_xdata(), values)
    assert ax.get_xlabel().endswith("(90% intervals for the sample)")
    counts = dpq.count_by(frame["x"], frame["team"], groups=["a", "b"], epsilon=1.0, rng=1)
    assert plots.groups(counts.groups, counts).get_xlabel() == "value"


def test_groups_without_a_value_are_last_and_not_drawn(ax):
    plots.groups(["a", "b"], [np.nan, 1.0], ax)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["b", "a"]
    assert np.isnan(ax.containers[0].lines[0].get_xdata()[0])


@pytest.mark.parametrize("number", [10, 40, 55])
def test_a_figure_of_their_own_has_room_for_all_names(number):
    ax = plots.groups(range(number), np.arange(number))
    assert len(ax.get_yticks()) == number
    ax.figure.draw_without_rendering()
    boxes = sorted(
        (text.get_window_extent() for text in ax.get_yticklabels()), key=lambda box: box.y0
    )
    assert all(low.y1 <= high.y0 + 1.0 for low, high in itertools.pairwise(boxes))


def test_too_many_names_are_thinned_evenly(ax):
    plots.groups(range(300), np.arange(300.0), ax)
    ticks = ax.get_yticks()
    assert 5 < len(ticks) < 40
    assert ticks[0] == 299.0 and len(set(np.diff(ticks))) == 1


# box


BOX = dpq.Box(1.0, 2.0, 3.0, 5.0, 8.0, 0.01)


def lines_of(ax):
    """The corners of all lines, one after the other."""
    return [np.column_stack(line.get_data()) for line in ax.lines]


def test_box_is_five_numbers_and_no_more(ax):
    assert plots.box(BOX, ax, widths=0.5) is ax
    drawn = lines_of(ax)
    assert {float(y) for each in drawn for y in each[:, 1]} == {1.0, 2.0, 3.0, 5.0, 8.0}
    median = next(each for each in drawn if (each[:, 1] == 3.0).all())
    np.testing.assert_allclose(median[:, 0], [0.75, 1.25])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("", "value")
    assert [text.get_text() for text in ax.get_xticklabels()] == [""]


def test_boxes_have_their_names(ax):
    plots.box({"a": BOX, ("b", 2): BOX}, ax)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["a", "b / 2"]
    place = dict(groups=["u", "v"], epsilon=1.0, bounds=(0, 9), rng=1)
    out = dpq.box_by([1.0, 2.0, 3.0, 4.0], ["u", "v", "u", "v"], **place)
    ax = plots.box(out)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["u", "v"]
    assert ax.get_xlabel() == "group"
    drawn = {float(y) for each in lines_of(ax) for y in each[:, 1]}
    assert drawn == {*out.values.ravel().tolist()}
    ax = plots.box([BOX, BOX], labels=["x", 7])
    assert [text.get_text() for text in ax.get_xticklabels()] == ["x", "7"]


def test_boxes_of_times_have_dates(ax):
    days = dpq.Box(*(DAY + np.arange(5) * 10), 0.01)
    plots.box([days], ax)
    assert ax.get_ylabel() == "date"
    drawn = {float(y) for each in lines_of(ax) for y in each[:, 1]}
    assert drawn == {dates.date2num(each) for each in days}
    waits = dpq.Box(*(datetime.timedelta(hours=hours) for hours in range(5)), 0.01)
    assert plots.box(waits).get_ylabel() == "hours"


def test_histograms_are_stairs(ax):
    assert plots.histogram([3, 1, 4, 1], [-np.inf, 0.0, 2.0, 3.0, np.inf], ax) is ax
    (stairs,) = ax.patches
    values, edges, _ = stairs.get_data()
    assert values.tolist() == [1, 4] and edges.tolist() == [0.0, 2.0, 3.0]
    assert ax.get_ylabel() == "records"
    assert plots.histogram([0.2], [DAY, DAY + 10]).get_xlabel() == "date"
    with pytest.raises(ValueError, match=r"^edges must be one more than hist has numbers, got"):
        plots.histogram([1, 2], [0.0, 1.0], ax)


# All of them

DRAWN = {
    "histogram": lambda ages, made, ax: plots.histogram([1, 2], [0, 1, 2], ax),
    "box": lambda ages, made, ax: plots.box([BOX, BOX], ax),
    "cdf": lambda ages, made, ax: plots.cdf(ages, ax),
    "quantiles": lambda ages, made, ax: plots.quantiles(Q, by_value(), ax),
    "plan": lambda ages, made, ax: plots.plan(made, ax),
    "groups": lambda ages, made, ax: plots.groups(["a", "b", "c"], by_value(), ax),
}


@pytest.mark.parametrize("name", DRAWN)
def test_pictures_change_nothing_global(name, ages, compared, ax, monkeypatch):
    monkeypatch.setattr(pyplot, "show", lambda: pytest.fail("shown"))
    before = dict(matplotlib.rcParams)
    assert DRAWN[name](ages, compared, ax) is ax
    assert pyplot.get_fignums() == [ax.figure.number]
    new = DRAWN[name](ages, compared, None)
    assert new is not ax and len(pyplot.get_fignums()) == 2
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("style", ["default", "dark_background"])
def test_colors_are_told_from_the_background(name, style, ages, compared):
    """By their luminance: at least 1.9 to 1, all of them; so they are there in a grey print."""
    with pyplot.style.context(style):
        ax = DRAWN[name](ages, compared, None)
    behind = _luminance(ax.get_facecolor())
    for line in ax.lines:
        low, high = sorted((behind, _luminance(line.get_color())))
        assert (high + 0.05) / (low + 0.05) > 1.9


def _luminance(color):
    channels = np.array(to_rgb(color))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("name", DRAWN)
def test_missing_matplotlib_is_named(name, ages, compared, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    message = f"plots.{name} needs matplotlib: pip install 'dpq_fast[plot]'"
    with pytest.raises(ImportError, match=re.escape(message)):
        DRAWN[name](ages, compared, None)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: plots.cdf([1.0]), TypeError, "F must be a CDF, got list"),
        (lambda: plots.plan("x"), TypeError, "made must be a Plan, got str"),
        (
            lambda: plots.quantiles(0.5, 1.0, pyplot.figure()),
            TypeError,
            "ax must be a Matplotlib Axes, got Figure",
        ),
        (lambda: plots.quantiles([], []), ValueError, "q must be one or more levels in [0, 1]"),
        (lambda: plots.quantiles(1.5, 1.0), ValueError, "q must be one or more levels in [0, 1]"),
        (lambda: plots.quantiles("x", 1.0), TypeError, "q must be real numbers, got dtype"),
        (
            lambda: plots.quantiles([0.5], 1.0),
            ValueError,
            "answer must have the shape of q, (1,), got ()",
        ),
        (
            lambda: plots.quantiles([0.5], ["x"]),
            TypeError,
            "answer must hold real numbers, times or durations, got dtype <U1",
        ),
        (
            lambda: plots.groups(["a", "b"], [1.0]),
            ValueError,
            "answer must be one value for each of 2 groups, got shape (1,)",
        ),
        (lambda: plots.box(3.0), TypeError, "boxes must be one or more boxes, got float"),
        (lambda: plots.box([1.0]), TypeError, "boxes must be one or more boxes, got float"),
        (lambda: plots.box([]), ValueError, "boxes must be one or more, got none"),
        (
            lambda: plots.box(BOX, labels=["a", "b"]),
            ValueError,
            "labels must be one for each of 1 boxes, got 2",
        ),
        (lambda: plots.box(BOX, labels="a"), TypeError, "labels must be a sequence of labels"),
        (lambda: plots.groups([], []), ValueError, "keys must be those of one or more groups"),
        (lambda: plots.groups("ab", [1, 2]), TypeError, "keys must be a sequence of keys, got str"),
    ],
)
def test_plots_refuse(call, error, message):
    with pytest.raises(error, match=re.escape(message)):
        call()


@pytest.mark.parametrize("band", [0, 1, 1.5])
def test_cdf_refuses_a_band_that_is_no_probability(ages, band):
    with pytest.raises(ValueError, match="band must be True, False or a probability strictly"):
        plots.cdf(ages, band=band)
