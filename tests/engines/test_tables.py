"""Tables in this process: what may be one, and releases from them, against those from memory."""

import functools
import io
import pathlib
import threading
import time

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import dpq_fast as dpq
from dpq_fast.data import rounds as rounds_module
from dpq_fast.data.queries import CellCounts
from dpq_fast.data.tables import opened
from dpq_fast.data.tasks import ColumnTask
from dpq_fast.engines import batches

N = 5_000
COLUMN = np.round(np.random.default_rng(0).normal(0, 5, N), 1)
COLUMN[::50] = np.nan
COLUMN[7:9] = np.inf, -np.inf
DAYS = np.datetime64("2026-01-01") + (np.arange(N) % 300).astype("timedelta64[D]")
NORMAL = np.random.default_rng(1).normal(0, 5, N)
FRAME = {"x": COLUMN, "day": DAYS, "whole": np.arange(N) % 17, "normal": NORMAL}


def lazily(tmp_path):
    """The same rows, from wherever this process reads them."""
    table = pa.table(FRAME)
    path = tmp_path / "rows.parquet"
    pq.write_table(table, path, row_group_size=700)
    (tmp_path / "folder").mkdir()
    for part in range(3):
        pq.write_table(table.slice(part * 2_000, 2_000), tmp_path / "folder" / f"{part}.parquet")
    return {
        "mapping": FRAME,
        "pandas": table.to_pandas(),
        "polars": pl.DataFrame(FRAME),
        "pyarrow": table,
        "lazy frame": pl.LazyFrame(FRAME),
        "scan": pl.scan_parquet(path),
        "path": path,
        "text": str(path),
        "folder": tmp_path / "folder",
        "data set": ds.dataset(table),
        "Parquet": pq.ParquetFile(path),
    }


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    return lazily(tmp_path_factory.mktemp("tables"))


SOURCES = (
    *("mapping", "pandas", "polars", "pyarrow", "lazy frame", "scan", "path", "text"),
    *("folder", "data set", "Parquet"),
)
OPTIONS = dict(epsilon=1.0, bounds=(-100, 100), rng=7)
RELEASES = {
    "joint_exp": lambda x: dpq.joint_exp(x, [0.1, 0.5, 0.9], **OPTIONS),
    "ind_exp": lambda x: dpq.ind_exp(x, [0.1, 0.5, 0.9], **OPTIONS),
    "median": lambda x: dpq.median(x, **OPTIONS),
    "approx_quantiles": lambda x: dpq.approx_quantiles(x, [0.1, 0.5, 0.9], **OPTIONS),
    "two_stage": lambda x: dpq.two_stage(x, [0.1, 0.5, 0.9], **OPTIONS),
    "interval": lambda x: dpq.median(x, confidence=0.9, **OPTIONS),
    "prior": lambda x: dpq.median(x, prior="uniform", resolution=0.5, **OPTIONS),
    "agg_tree": lambda x: dpq.agg_tree(x, [0.1, 0.5], **OPTIONS),
    "cdf": lambda x: dpq.cdf(x, **OPTIONS).quantile([0.2, 0.7]),
    "csmooth": lambda x: dpq.csmooth(x, 0.5, rho=0.5, bounds=(-100, 100), rng=7),
    "unbounded_quantile": lambda x: dpq.unbounded_quantile(x, 0.9, epsilon=1.0, rng=7),
    "mean": lambda x: dpq.mean(x, epsilon=1.0, lower=-20, upper=20, rng=7),
    "std": lambda x: dpq.std(x, epsilon=1.0, bounds=(-20, 20), ddof=1, rng=7),
    "histogram": lambda x: dpq.histogram(x, 6, (-20, 20), epsilon=1.0, rng=7)[0],
    "sum": lambda x: dpq.sum(x, epsilon=1.0, rng=7),
    "count": lambda x: dpq.count(x, epsilon=1.0, rng=7),
}


@pytest.mark.parametrize("name", RELEASES)
def test_releases_from_tables_are_those_from_memory(name, sources, no_few):
    release = RELEASES[name]
    # what comes second begins with the random words that are left: of other windows, others
    of_two = name in ("interval", "median", "two_stage")
    expected = release(dpq.Table.of(FRAME)["x"] if of_two else COLUMN)
    for source in sources.values():
        np.testing.assert_array_equal(release(dpq.Table.of(source)["x"]), expected)


@pytest.mark.parametrize("source", SOURCES)
def test_a_sample_of_an_engine_has_the_law_of_the_records(source, sources):
    sample = dpq.Sample.from_engine(sources[source], (-100, 100), column="x", resolution=0.0)
    law = dpq.joint_exp_law(sample, [0.25, 0.5], epsilon=1.0)
    expected = dpq.joint_exp_law(COLUMN, [0.25, 0.5], epsilon=1.0, bounds=(-100, 100), resolution=0)
    for outputs in ([-3.0, 0.0], [-100.0, 100.0], [5.0, 5.25]):
        assert law.log_prob(outputs) == pytest.approx(expected.log_prob(outputs), abs=1e-12)


def test_times_of_tables_are_answered_as_times(sources):
    bounds = np.datetime64("2025-01-01"), np.datetime64("2028-01-01")
    options = dict(epsilon=1.0, bounds=bounds, resolution=np.timedelta64(1, "D"), rng=0)
    expected = dpq.median(DAYS, **options)
    assert expected.dtype.kind == "M"
    for source in sources.values():
        assert dpq.median(dpq.Table.of(source)["day"], **options) == expected
    assert abs(dpq.count(dpq.Table.of(FRAME)["day"], epsilon=50.0, rng=0) - N) <= 1


def test_an_engine_object_of_one_column_is_a_column(sources):
    expected = dpq.ind_exp(COLUMN, 0.5, **OPTIONS)
    assert dpq.ind_exp(pl.LazyFrame({"x": COLUMN}), 0.5, **OPTIONS) == expected
    assert dpq.ind_exp(ds.dataset(pa.table({"x": COLUMN})), 0.5, **OPTIONS) == expected
    with pytest.raises(ValueError, match="x must be one column, got a frame of 4"):
        dpq.median(sources["lazy frame"], **OPTIONS)
    with pytest.raises(ValueError, match="x must be one column, got a frame of 2"):
        dpq.median(dpq.Table.of(FRAME)["x", "day"], **OPTIONS)
    assert opened(COLUMN) is COLUMN
    eager = pl.Series(COLUMN)
    assert opened(eager) is eager


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_threads_and_batches_make_no_difference(workers, sources, monkeypatch, no_few):
    monkeypatch.setattr(batches, "BATCH", 300)
    expected = RELEASES["joint_exp"](COLUMN)
    for source in ("data set", "Parquet", "lazy frame", "pandas", "pyarrow", "polars"):
        column = dpq.Table.of(sources[source], workers=workers)["x"]
        np.testing.assert_array_equal(RELEASES["joint_exp"](column), expected)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_of_a_batch_is_raised_and_the_charge_stays(workers):
    class Broken:
        schema = pa.schema([("x", pa.float64())])
        scanner = None

        def to_batches(self, columns, **options):
            yield pa.record_batch({"x": COLUMN})
            raise OSError("the disk is gone")

    Broken.__module__ = "pyarrow.broken"
    accountant = dpq.privacy.Accountant(epsilon=1.0)
    column = dpq.Table.of(Broken(), workers=workers)["x"]
    with pytest.raises(OSError, match="the disk is gone"):
        dpq.median(column, epsilon=0.5, bounds=(0, 1), accountant=accountant)
    assert accountant.spent.epsilon == 0.5


class Watched:
    """What pyarrow's data sets are asked for: batches of which this sees what is read of them."""

    schema = pa.schema([("x", pa.float64())])
    scanner = None
    __module__ = "pyarrow.watched"

    def __init__(self, read, number=6):
        self._read, self._number = read, number

    def to_batches(self, columns, **options):
        for place in range(self._number):
            yield WatchedBatch(functools.partial(self._read, place))


class WatchedBatch:
    def __init__(self, read):
        self._read = read

    def column(self, name):
        self._read()
        return pa.array(COLUMN)


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("broken", [0, 3, 5])
def test_no_batch_is_lost_to_an_error_whichever_it_is(workers, broken):
    def read(place):
        if place == broken:
            raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        dpq.count(dpq.Table.of(Watched(read), workers=workers)["x"], epsilon=1.0)


def test_threads_wait_for_the_counts_that_another_one_adds_to():
    """Else records would be lost: as long as the first of two batches is read, the third is not."""
    begun, third = [], threading.Event()

    def read(place):
        begun.append(place)
        if place == 2:
            third.set()
        if place == 0:
            third.wait(0.2)
            begun.append("first is read")

    column = dpq.Table.of(Watched(read), workers=2)["x"]
    assert dpq.count(column, epsilon=1e6) == 6 * np.count_nonzero(~np.isnan(COLUMN))
    assert set(begun[: begun.index("first is read")]) <= {0, 1} and len(begun) == 7


def test_progress_is_shown_on_request(sources, capsys):
    pytest.importorskip("tqdm")
    dpq.count(dpq.Table.of(sources["path"])["x"], epsilon=1.0)
    assert capsys.readouterr().err == ""
    dpq.count(dpq.Table.of(sources["path"], progress=True)["x"], epsilon=1.0)
    assert "pass" in capsys.readouterr().err


def test_what_is_no_table_is_refused():
    for source in ([1.0], 3, io.StringIO(), COLUMN):
        with pytest.raises(TypeError, match=r"source must be a data frame, or a table of pyarrow"):
            dpq.Table.of(source)
    with pytest.raises(TypeError, match="got int"):
        dpq.Table.of("select 1", connection=3)
    table = dpq.Table.of(FRAME)
    for name in ("y", 0, ("x", "y")):
        with pytest.raises((ValueError, TypeError)):
            table[name]
    with pytest.raises(ValueError, match="name must be that of one column of the table \\(x, day"):
        table["y"]
    with pytest.raises(ValueError, match="counts must be left out for a column of a table"):
        dpq.median(table["x"], counts=np.ones(N), **OPTIONS)
    with pytest.raises(ValueError, match="counts must be left out for a column of a table"):
        dpq.count(table["x"], counts=np.ones(N), epsilon=1.0)
    with pytest.raises(ValueError, match="assume_sorted must be left out"):
        dpq.joint_exp(table["x"], [0.5], assume_sorted=True, **OPTIONS)
    with pytest.raises(ValueError, match="x must not contain NaN"):
        dpq.median(table["x"], nan_policy="raise", **OPTIONS)
    with pytest.raises(ValueError, match="x must be one column, got a frame of 4"):
        dpq.Sample.from_engine(FRAME, (0, 1))
    with pytest.raises(TypeError, match="x must hold real numbers, got dtype datetime64"):
        dpq.median(table["day"], **OPTIONS)
    with pytest.raises(FileNotFoundError):
        dpq.Table.of(pathlib.Path("nowhere.parquet"))


def test_tables_and_columns_show_names_and_no_record():
    table = dpq.Table.of(FRAME)
    assert repr(table) == "Table(x, day, whole, normal)"
    assert repr(table["x"]) == "Table(x, day, whole, normal)['x']"
    assert table.names == ["x", "day", "whole", "normal"]
    assert dpq.Table.of(table) is table


# Rounds


@pytest.fixture
def counted(monkeypatch):
    """A table, and the tasks of each of its rounds."""
    table, rounds = dpq.Table.of(FRAME), []

    def answer(tasks, own=table.answer):
        rounds.append(len(tasks))
        return own(tasks)

    monkeypatch.setattr(table, "answer", answer)
    return table, rounds


def test_releases_together_share_their_rounds(counted):
    table, rounds = counted
    of_several = ("interval", "median", "two_stage", "cdf")
    chosen = [release for name, release in RELEASES.items() if name not in of_several]
    alone = [release(table["normal"]) for release in chosen]
    assert len(rounds) > len(chosen)
    rounds.clear()
    releases = [lambda release=release: release(table["normal"]) for release in chosen]
    found = dpq.together(*releases)
    assert len(rounds) == 2 and rounds[0] == len(chosen)
    for one, other in zip(found, alone, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("q", [0.5, [0.2, 0.7], np.arange(1, 100) / 100], ids=np.size)
@pytest.mark.parametrize("place", [dict(), dict(resolution=0.01), dict(prior="uniform")], ids=str)
def test_two_stages_count_cells_once(counted, q, place):
    """A round for cells, one for the pilot, and one for what goes by its answers."""
    table, rounds = counted
    asked = dict(epsilon=1.0, bounds=(-1e3, 1e3), expected_n=N, **place)
    dpq.two_stage(table["normal"], q, **asked)
    assert len(rounds) <= 3


def test_releases_together_take_turns_on_one_generator(counted):
    table, _ = counted
    asked = dict(epsilon=1.0, bounds=(-100, 100))

    def drawn(seed):
        rng = np.random.default_rng(seed)
        calls = [lambda: dpq.median(table["normal"], rng=rng, **asked)] * 3
        return dpq.together(*calls)

    assert drawn(0) == drawn(0)
    assert len({drawn(seed) for seed in range(9)}) > 1
    assert dpq.together() == ()
    assert dpq.together(lambda: dpq.median(COLUMN, rng=0, **asked)) == (
        dpq.median(COLUMN, rng=0, **asked),
    )


def test_releases_of_one_sample_count_it_once(counted):
    table, rounds = counted
    sample = dpq.Sample.from_engine(table, (-100, 100), column="normal")
    assert len(rounds) == 1
    asked = [lambda q=q: dpq.ind_exp(sample, q, epsilon=1.0) for q in (0.1, 0.5, 0.7, 0.9)]
    dpq.together(*asked)
    assert len(rounds) == 2


def test_a_release_that_fails_together_leaves_the_others_to_end(counted):
    table, _ = counted
    ended = []
    accountant = dpq.privacy.Accountant(epsilon=1.5)

    def release(epsilon):
        ended.append(dpq.median(table["x"], epsilon=epsilon, bounds=(0, 9), accountant=accountant))

    with pytest.raises(dpq.privacy.BudgetExceeded):
        dpq.together(lambda: release(1.0), lambda: release(1.0), lambda: release(0.5))
    assert len(ended) == 2 and accountant.spent.epsilon == 1.5
    with pytest.raises(TypeError, match="releases must be functions of no arguments, got 3"):
        dpq.together(3)


def test_an_error_of_a_round_is_that_of_all_that_asked(counted, monkeypatch):
    table, _ = counted
    seen = []

    def broken(tasks):
        raise OSError("the engine is gone")

    monkeypatch.setattr(table, "answer", broken)

    def release():
        try:
            dpq.median(table["x"], **OPTIONS)
        except OSError as error:
            seen.append(error)
            raise

    with pytest.raises(OSError, match="the engine is gone"):
        dpq.together(release, release)
    assert len(seen) == 2


def test_releases_together_within_releases_together_share_rounds(counted):
    table, rounds = counted

    def pair():
        return dpq.together(
            lambda: dpq.ind_exp(table["normal"], 0.5, **OPTIONS),
            lambda: dpq.count(table["normal"], epsilon=1.0, rng=0),
        )

    found = dpq.together(pair, lambda: dpq.ind_exp(table["normal"], 0.5, **OPTIONS))
    assert len(rounds) == 2 and rounds[0] == 3
    assert found[0][0] == found[1]


def test_an_interrupt_ends_all_releases(counted, monkeypatch):
    """Wherever it comes: in a pass, or while a release draws."""
    table, _ = counted
    before = threading.active_count()

    def interrupted(*_):
        raise KeyboardInterrupt

    release = functools.partial(dpq.median, table["normal"], **OPTIONS)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(table, "answer", interrupted)
        dpq.together(release, release)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(rounds_module, "_answer", interrupted)
        dpq.together(release, release)
    with pytest.raises(KeyboardInterrupt):
        dpq.together(release, interrupted, release)
    deadline = time.monotonic() + 30.0
    while threading.active_count() > before:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_one_answer_for_several_tasks():
    table = dpq.Table.of(FRAME)
    query = CellCounts(-9.0, 9.0, np.array([-9.0]), np.array([9.0]), 4)
    tasks = [ColumnTask("x", None, query), ColumnTask("whole", None, query)]
    one, other = table.answer(tasks)
    assert one.count.sum() == N and one.count[-1] == np.isnan(COLUMN).sum()
    assert other.count.tolist() == [
        0,
        0,
        (np.arange(N) % 17 < 5).sum(),
        (np.arange(N) % 17 > 4).sum(),
        0,
    ]
