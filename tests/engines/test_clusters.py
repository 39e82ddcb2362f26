"""Tables of clusters: their answers against those from memory; what is seen of them, and left."""

from __future__ import annotations

import _thread
import contextlib
import datetime
import decimal
import functools
import logging
import pathlib
import pickle
import struct
import threading
import time

import numpy as np
import pyarrow as pa
import pytest

import dpq_fast as dpq
from dpq_fast.data.histogram import Bins
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.public_keys import Groups
from dpq_fast.data.queries import AnyMissing, BinCounts, CellCounts, PointCounts, Sums
from dpq_fast.data.tables import opened
from dpq_fast.data.tasks import ColumnTask, GroupTask
from dpq_fast.engines import partials
from dpq_fast.engines.partials import Sealed
from dpq_fast.mechanisms import grouping

N = 6_000
PARTS = 11  # more than are merged at once


def rows():
    """A table of Arrow: columns of all kinds, with missing records, ties and infinities."""
    rng = np.random.default_rng(5)
    x = np.round(rng.normal(0, 5, N), 1)
    x[::50] = np.nan
    x[7:9] = np.inf, -np.inf
    whole = np.arange(N) % 17
    start = datetime.datetime(2026, 1, 1)
    times = [start + datetime.timedelta(hours=int(hour)) for hour in rng.integers(0, 9_000, N)]
    absent = whole == 3
    return pa.table(
        {
            "x": pa.array(x, mask=absent),
            "whole": pa.array(whole, mask=absent),
            "yes": pa.array(whole < 5, mask=absent),
            "price": pa.array([decimal.Decimal(int(v)) / 4 for v in whole], pa.decimal128(10, 2)),
            "day": pa.array([time.date() for time in times], pa.date32(), mask=absent),
            "time": pa.array(times, pa.timestamp("us"), mask=absent),
            "instant": pa.array(times, pa.timestamp("us", "UTC"), mask=absent),
            "wait": pa.array([t - start for t in times], pa.duration("us"), mask=absent),
            "key": pa.array(whole % 3),
            "town.name": pa.array([f"t{v % 4}" for v in whole], mask=absent),
        }
    )


ROWS = rows()


def dask_frame(table):
    import dask.dataframe

    # decimals and dates are objects of pandas, which Dask would take for strings
    with dask.config.set({"dataframe.convert-string": False}):
        return dask.dataframe.from_pandas(table.to_pandas(), npartitions=PARTS)


def dask_frame_of_arrow(table):
    import dask.dataframe
    import pandas as pd

    frame = table.to_pandas(types_mapper=pd.ArrowDtype)
    return dask.dataframe.from_pandas(frame, npartitions=PARTS)


def spark_frame(table):
    from pyspark.sql import SparkSession

    frame = SparkSession.active().createDataFrame(table).repartition(3)
    # Spark takes all times of Arrow for instants
    return frame.withColumn("time", frame["time"].cast("timestamp_ntz"))


def ray_data_set(table):
    import ray.data

    size = -(-len(table) // PARTS)
    return ray.data.from_arrow([table.slice(size * part, size) for part in range(PARTS)])


CLUSTERS = pytest.mark.parametrize(
    ("engine", "make"),
    [
        pytest.param("dask_synchronous", dask_frame, id="dask"),
        pytest.param("dask_synchronous", dask_frame_of_arrow, id="dask-arrow"),
        pytest.param("dask_cluster", dask_frame, id="dask-cluster"),
        pytest.param("spark", spark_frame, id="spark"),
        pytest.param("ray_cluster", ray_data_set, id="ray"),
    ],
)


@pytest.fixture
def source(request, engine, make):
    """The rows in an engine."""
    server = request.getfixturevalue(engine)
    with server.as_current() if engine == "dask_cluster" else contextlib.nullcontext():
        yield make(ROWS)


# Answers

LOW = 1.2345678901234567  # a stretch, to be looked for
CELLS = CellCounts(-20.0, 20.0, np.array([-20.0, LOW]), np.array([LOW - 0.5, 20.0]), 64)
TASKS = [
    ColumnTask("x", None, CELLS),
    ColumnTask("x", None, BinCounts(Bins.uniform(-20.0, 20.0, 2**10), negate=True)),
    ColumnTask("whole", None, PointCounts(Lattice.of((0.0, 16.0), 1.0, None))),
    ColumnTask("x", None, Sums(4.0, -100, 100)),
    ColumnTask("key", None, AnyMissing()),
    GroupTask("x", None, CELLS, ("town.name",), Groups(["t1", "t3", "nowhere"])),
    GroupTask("price", None, CELLS, ("town.name", "key"), Groups([("t0", 0), ("t0", 2)])),
]


def plain(state):
    """What a state is made of."""
    if isinstance(state, dict):
        return {group: plain(own) for group, own in state.items()}
    return vars(state) if hasattr(state, "__dict__") else state


@CLUSTERS
def test_answers_are_those_from_memory(source):
    expected = dpq.Table.of(ROWS).answer(TASKS)
    found = dpq.Table.of(source).answer(TASKS)
    assert len(expected[-1]) == 2
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_equal(plain(one), plain(other))


@CLUSTERS
@pytest.mark.parametrize("few", [100, 2**16])
def test_releases_by_group_are_those_from_memory(source, few, monkeypatch):
    """Of groups that are brought whole, and of groups that are released by passes."""
    monkeypatch.setattr(grouping, "FEW_RECORDS", few)
    asked = dict(epsilon=2.0, bounds=(-20.0, 20.0), rng=5)
    towns = ["t0", "t2", "nowhere"]
    releases = [
        lambda t: dpq.quantile_by(t["x"], t["town.name"], 0.5, groups=towns, **asked),
        lambda t: dpq.quantile_by(t["x"], t["key"], 0.5, groups=None, delta=1e-6, **asked),
        lambda t: dpq.count_by(
            t["x"], t["town.name", "key"], groups=[("t0", 1), ("t1", 2)], epsilon=1.0, rng=1
        ),
        lambda t: dpq.mean_by(t["x"], t["yes"], groups=[True], epsilon=1.0, upper=9, q=None, rng=1),
    ]
    for release in releases:
        one, other = (release(dpq.Table.of(each)) for each in (ROWS, source))
        assert one.groups.tolist() == other.groups.tolist() and len(one)
        np.testing.assert_array_equal(one.values, other.values)
    described = dict(epsilon=9.0, bounds={"x": (-20, 20)}, by="town.name", groups=["t1"], rng=3)
    one, other = (dpq.describe(dpq.Table.of(each), q=0.5, **described) for each in (ROWS, source))
    assert one.values.tolist() == other.values.tolist()


NUMBERS = dict(bounds=(-20.0, 20.0))
DAYS = dict(bounds=(np.datetime64("2025-01-01"), np.datetime64("2028-01-01")))
KINDS = {
    "x": NUMBERS,
    "whole": NUMBERS,
    "yes": NUMBERS,
    "price": NUMBERS,
    "day": dict(DAYS, resolution=np.timedelta64(1, "D")),
    "time": dict(DAYS, resolution=np.timedelta64(1, "h")),
    "instant": dict(
        bounds=tuple(
            datetime.datetime(year, 1, 1, tzinfo=datetime.timezone.utc) for year in (2025, 2028)
        ),
        resolution=datetime.timedelta(hours=1),
    ),
    "wait": dict(
        bounds=(np.timedelta64(0, "h"), np.timedelta64(10**4, "h")),
        resolution=np.timedelta64(1, "h"),
    ),
}


@CLUSTERS
def test_columns_of_all_kinds_are_those_from_memory(source, no_few):
    table = dpq.Table.of(source)
    assert table.names == ROWS.column_names
    asked = {name: dict(options, epsilon=1.0, rng=3) for name, options in KINDS.items()}
    found = dpq.together(
        *(
            functools.partial(dpq.joint_exp, table[name], [0.3, 0.5], **asked[name])
            for name in asked
        )
    )
    for name, one in zip(asked, found, strict=True):
        expected = dpq.joint_exp(ROWS[name], [0.3, 0.5], **asked[name])
        np.testing.assert_array_equal(np.asarray(one), np.asarray(expected), err_msg=name)


# Errors


@CLUSTERS
def test_an_error_of_records_is_raised_and_the_charge_stays(source):
    accountant = dpq.privacy.Accountant(epsilon=1.0)
    column = dpq.Table.of(source)["x"]
    asked = dict(epsilon=0.5, bounds=(0, 1), nan_policy="raise", accountant=accountant)
    with pytest.raises(ValueError, match=r"^x must not contain NaN with nan_policy='raise'$"):
        dpq.median(column, **asked)
    assert accountant.spent.epsilon == 0.5


def test_partials_carry_errors_that_can_be_carried():
    tasks = Sealed.of(TASKS[:1])

    def failing(error):
        def rows(name):
            raise error

        return partials.partial_of(tasks, [rows])

    found = [partials.partial_of(tasks, [{"x": [1.0]}.__getitem__]), failing(OverflowError("rule"))]
    for carried in (found, [partials.merged(tasks, found)]):
        with pytest.raises(OverflowError, match="rule"):
            partials.states_of(TASKS[:1], carried)
    local = type("Local", (Exception,), {})
    with pytest.raises(local):
        failing(local())
    with pytest.raises(Demanding, match="1 and 2"):
        failing(Demanding("1 and 2"))
    with pytest.raises(OSError):  # of what gives the rows, not of a task
        partials.partial_of(tasks, iter_of(OSError()))


class Demanding(Exception):
    """One that is pickled, but cannot be made again, whoever has a way for errors of his own."""

    def __reduce__(self):
        return never_made, ()


def never_made():
    raise TypeError("an error needs what it was made of")


def iter_of(error):
    yield {"x": [1.0]}.__getitem__
    raise error


def test_rows_of_arrow_hold_all_bytes():
    for data in (b"", b"\x00", b"x\x01\x00\x00"):
        assert Sealed(data).as_row()["partial"].to_pylist() == [data]


def test_partials_are_changed_by_no_merging():
    """A worker may be asked again, with the same partials."""
    tasks = Sealed.of(TASKS)
    part = partials.partial_of(tasks, [ROWS.column])
    found = [partials.merged(tasks, [part, part, part]).open() for _ in range(2)]
    for one, other in zip(*found, strict=True):
        np.testing.assert_equal(plain(one), plain(other))


# What is seen


def test_what_is_sealed_shows_nothing():
    sealed = Sealed.of(TASKS)
    assert repr(sealed) == str(sealed) == "Sealed()"
    assert repr(pickle.loads(pickle.dumps(sealed))) == "Sealed()"
    assert len(sealed.open()) == len(TASKS)


# A stretch as text and as bytes, and how bytes that are sealed begin, as text.
SIGNS = (b"1.23456789", struct.pack("<d", LOW), struct.pack("<d", LOW).hex().encode(), rb"x\x01")


def shown(log):
    """Which of the signs a log holds."""
    return [sign for sign in SIGNS if sign in (log.encode() if isinstance(log, str) else log)]


def test_signs_are_seen_where_they_are():
    for log in (repr(CELLS.lo), CELLS.lo.tobytes(), repr(Sealed.of(TASKS).data)):
        assert shown(log)


@CLUSTERS
def test_one_column_is_a_column(source, engine):
    expected = dpq.median(ROWS["x"], epsilon=1.0, rng=0, **NUMBERS)
    column = source.select_columns(["x"]) if engine == "ray_cluster" else source[["x"]]
    assert dpq.median(column, epsilon=1.0, rng=0, **NUMBERS) == expected


# Dask


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_dask_series_and_arrays_are_columns(dask_synchronous, scheduler):
    frame = dask_frame(ROWS)
    expected = dpq.joint_exp(ROWS["x"], [0.2, 0.6], epsilon=1.0, rng=0, **NUMBERS)
    with dask_synchronous.config.set(scheduler=scheduler):
        for column in (frame["x"], frame["x"].to_dask_array(), frame["x"].rename(None)):
            found = dpq.joint_exp(column, [0.2, 0.6], epsilon=1.0, rng=0, **NUMBERS)
            np.testing.assert_array_equal(found, expected)
            assert dpq.Table.of(column).names == ["x"]


def test_dask_refuses_what_is_no_table(dask_synchronous):
    import dask.array
    import dask.bag

    with pytest.raises(ValueError, match="source must be one-dimensional, got 2 dimensions"):
        dpq.Table.of(dask.array.zeros((3, 3)))
    for other in (dask.bag.from_sequence([1.0]), dask.delayed(1.0)):
        assert opened(other) is other
        with pytest.raises(TypeError, match="source must be a data frame"):
            dpq.Table.of(other)


@pytest.mark.parametrize("engine", ["dask_synchronous", "dask_cluster"])
def test_dask_shows_its_bar_on_request(engine, request, capsys):
    server = request.getfixturevalue(engine)
    with server.as_current() if engine == "dask_cluster" else contextlib.nullcontext():
        frame = dask_frame(ROWS)
        expected = dpq.count(dpq.Table.of(frame)["x"], epsilon=1.0, rng=0)
        assert capsys.readouterr().out == ""
        assert dpq.count(dpq.Table.of(frame, progress=True)["x"], epsilon=1.0, rng=0) == expected
        assert "100" in capsys.readouterr().out


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_dask_logs_no_stretch(dask_synchronous, scheduler, caplog):
    with caplog.at_level(logging.DEBUG), dask_synchronous.config.set(scheduler=scheduler):
        dpq.Table.of(dask_frame(ROWS)).answer(TASKS)
    assert not shown(caplog.text)


def set_level(level):
    for name in list(logging.root.manager.loggerDict):
        if name.startswith("distributed"):
            logging.getLogger(name).setLevel(level)


def test_dask_workers_log_no_stretch(dask_cluster):
    """Nor does the scheduler, which is in this process; nor is one in the names of tasks."""
    dask_cluster.run(set_level, logging.DEBUG)
    set_level(logging.DEBUG)
    try:
        with dask_cluster.as_current():
            table = dpq.Table.of(dask_frame(ROWS))
            table.answer(TASKS)
            with pytest.raises(TypeError, match="x must hold real numbers"):
                table.answer([*TASKS, ColumnTask("town.name", None, CELLS)])
        logs = dask_cluster.get_worker_logs(), dask_cluster.get_scheduler_logs()
        events = dask_cluster.get_events(), dask_cluster.get_task_stream()
        assert all(logs) and any(events)
        assert not shown(repr(logs)) and not shown(repr(events))
    finally:
        dask_cluster.run(set_level, logging.INFO)
        set_level(logging.INFO)


def slow(frame):
    time.sleep(0.3)
    return frame


def interrupted(call):
    """Interrupt a call while its parts are at work."""
    timer = threading.Timer(1.0, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        call()
    timer.join()


def test_dask_keeps_nothing_after_an_interrupt(dask_cluster):
    with dask_cluster.as_current():
        frame = dask_frame(ROWS)
        for progress in (False, True):
            table = dpq.Table.of(frame.map_partitions(slow, meta=frame._meta), progress=progress)
            interrupted(lambda table=table: table.answer(TASKS))
    deadline = time.monotonic() + 30.0
    while dask_cluster.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def broken(frame):
    raise OSError("the disk is gone")


@pytest.mark.parametrize("engine", ["dask_synchronous", "dask_cluster"])
def test_dask_raises_what_its_parts_raise(engine, request):
    server = request.getfixturevalue(engine)
    with server.as_current() if engine == "dask_cluster" else contextlib.nullcontext():
        frame = dask_frame(ROWS)
        failing = frame.map_partitions(broken, meta=frame._meta)
        with pytest.raises(OSError, match="the disk is gone"):
            dpq.median(failing[["x"]], epsilon=1.0, **NUMBERS)


# Spark


@pytest.fixture
def spark_log(spark):
    """What Spark logs meanwhile, all of it: a function that gives the text."""
    jvm = spark.sparkContext._jvm
    log4j = jvm.org.apache.logging.log4j
    context = log4j.LogManager.getContext(False)
    text = jvm.java.io.StringWriter()
    appender = log4j.core.appender.WriterAppender.createAppender(
        None, None, text, "memory", False, True
    )
    appender.start()
    root = context.getConfiguration().getRootLogger()
    before = root.getLevel()
    others = list(root.getAppenders().values())
    for other in others:
        root.removeAppender(other.getName())
    root.addAppender(appender, log4j.Level.DEBUG, None)
    root.setLevel(log4j.Level.DEBUG)
    context.updateLoggers()
    yield text.toString
    root.removeAppender("memory")
    for other in others:
        root.addAppender(other, None, None)
    root.setLevel(before)
    context.updateLoggers()


def test_spark_logs_no_stretch(spark, spark_log, capfd):
    table = dpq.Table.of(spark_frame(ROWS))
    table.answer(TASKS)
    with pytest.raises(TypeError, match="x must hold real numbers"):
        table.answer([*TASKS, ColumnTask("town.name", None, CELLS)])
    log = spark_log()
    assert "MapInArrow count(" in log
    assert not shown(log)
    assert "Traceback" not in log


def slow_batches(batches):
    for batch in batches:
        time.sleep(0.5)
        yield batch


def test_spark_keeps_nothing_after_an_interrupt(spark):
    frame = spark_frame(ROWS).select("x")
    slow = frame.mapInArrow(slow_batches, frame.schema)
    for progress in (False, True):
        table = dpq.Table.of(slow, progress=progress)
        interrupted(lambda table=table: table.answer(TASKS[:2]))
    deadline = time.monotonic() + 30.0
    while spark.sparkContext.statusTracker().getActiveJobsIds():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert spark.sparkContext._jsc.getPersistentRDDs().isEmpty()
    assert not spark.getTags()
    assert dpq.Table.of(frame).answer(TASKS[:1])[0].count.sum()


def test_spark_shows_a_bar_on_request(spark, capsys):
    frame = spark_frame(ROWS).select("x")
    slow = frame.mapInArrow(slow_batches, frame.schema)
    for progress in (False, True):
        dpq.Table.of(slow, progress=progress).answer(TASKS[:2])
        assert ("pass" in capsys.readouterr().err) == progress


def broken_batches(batches):
    for batch in batches:
        raise OSError("the disk is gone")
        yield batch


def test_spark_raises_what_its_frame_raises(spark):
    from pyspark.errors import PythonException

    frame = spark_frame(ROWS).select("x")
    with pytest.raises(PythonException, match="OSError: the disk is gone"):
        dpq.Table.of(frame.mapInArrow(broken_batches, frame.schema)).answer(TASKS[:2])


def test_spark_frames_of_few_rows(spark):
    empty = dpq.Table.of(spark.createDataFrame(ROWS.slice(0, 1)).limit(0))
    for found, expected in zip(empty.answer(TASKS), [task.start() for task in TASKS], strict=True):
        np.testing.assert_equal(plain(found), plain(expected))
    one = dpq.Table.of(spark.createDataFrame(ROWS.slice(1, 1)))
    for found, expected in zip(
        one.answer(TASKS), dpq.Table.of(ROWS.slice(1, 1)).answer(TASKS), strict=True
    ):
        np.testing.assert_equal(plain(found), plain(expected))
    column = spark_frame(ROWS)["x"]
    assert opened(column) is column


# Ray


def session_files(ray):
    folder = pathlib.Path(ray._private.worker._global_node.get_session_dir_path())
    return [path for path in folder.rglob("*") if path.is_file()]


def test_ray_logs_no_stretch(ray_cluster, caplog, capfd):
    table = dpq.Table.of(ray_data_set(ROWS))
    with caplog.at_level(logging.DEBUG):
        table.answer(TASKS)
        with pytest.raises(TypeError, match="x must hold real numbers"):
            table.answer([*TASKS, ColumnTask("town.name", None, CELLS)])
    logs = [path.read_bytes() for path in session_files(ray_cluster)]
    assert any(b"MapBatches(count)" in log for log in logs)
    for log in (caplog.text, *capfd.readouterr(), *logs):
        assert not shown(log)
    assert not any(b"x must hold real numbers" in log for log in logs)


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("progress", [True, False])
def test_ray_shows_its_bar_on_request(ray_cluster, before, progress, monkeypatch):
    from ray.data import Dataset

    source = ray_data_set(ROWS)
    monkeypatch.setattr(source.context, "enable_progress_bars", before)
    seen = []

    def asked(own):
        def method(data_set, *arguments, **options):
            seen.append(data_set.context.enable_progress_bars)
            return own(data_set, *arguments, **options)

        return method

    for name in ("columns", "iter_batches"):
        monkeypatch.setattr(Dataset, name, asked(getattr(Dataset, name)))
    dpq.Table.of(source, progress=progress).answer(TASKS)
    assert len(seen) >= 2 and set(seen) == {progress}
    assert source.context.enable_progress_bars == before


def slow_block(block):
    time.sleep(0.5)
    return block


def test_ray_keeps_nothing_after_an_interrupt(ray_cluster):
    source = ray_data_set(ROWS).map_batches(slow_block, batch_format="pyarrow")
    table = dpq.Table.of(source)
    interrupted(lambda: table.answer(TASKS))
    deadline = time.monotonic() + 30.0
    while ray_cluster.available_resources().get("CPU", 0.0) < 2.0:  # workers are at rest again
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert dpq.Table.of(ray_data_set(ROWS)).answer(TASKS[:1])[0].count.sum()


def broken_block(block):
    raise OSError("the disk is gone")


def test_ray_raises_what_its_data_set_raises(ray_cluster):
    from ray.exceptions import RayTaskError

    broken = ray_data_set(ROWS).map_batches(broken_block, batch_format="pyarrow")
    with pytest.raises(RayTaskError, match="OSError: the disk is gone"):
        dpq.Table.of(broken.select_columns(["x"])).answer(TASKS[:2])


def test_ray_data_sets_of_few_rows(ray_cluster):
    one, none = ROWS.slice(1, 1), ROWS.slice(0, 0)
    import ray.data

    table = dpq.Table.of(ray.data.from_arrow([none, one, none]))
    for found, expected in zip(table.answer(TASKS), dpq.Table.of(one).answer(TASKS), strict=True):
        np.testing.assert_equal(plain(found), plain(expected))
    table = dpq.Table.of(ray.data.from_arrow(none))
    assert table.answer(TASKS[:1])[0].count.sum() == 0
