"""The real engines, started once in a session: PostgreSQL, Spark, Dask, Ray; DuckDB, SQLite.

What uses one of these fixtures is marked `engines`. Where an engine is missing its tests are
skipped, except with DPQ_ENGINES=1, as in `.ci/engines`: there it is a failure.
"""

from __future__ import annotations

import importlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest

# Of Dask, where it reads Parquet with pandas 3.1.
PANDAS_IN_DASK = ["ignore:The inplace keyword in:DeprecationWarning"]
# Fixtures of what `.[test]` does not install, and warnings that come from an engine's own lines.
ENGINES: dict[str, list[str]] = {
    "postgres": [],
    "postgres_ibis": [],
    "ibis_polars": [],
    "sqlite_ibis": [],
    # Of ibis 12 with DuckDB 2, where it looks up the columns of a table.
    "duckdb_ibis": [
        r"ignore:fetch_arrow_table\(\) is deprecated:DeprecationWarning",
        "ignore:Arrow output on a DB-API result:UserWarning",
    ],
    # Of every mapInArrow beside pandas 3, which that call does not use.
    "spark": ["ignore:PySpark does not yet fully support pandas:FutureWarning"],
    "dask_cluster": PANDAS_IN_DASK,
    "dask_synchronous": PANDAS_IN_DASK,
    # Of Ray's own defaults for its own options, when the first data set is made.
    "ray_cluster": [r"ignore:`use_\w+` is deprecated:DeprecationWarning"],
}
# Seconds that a server may take to start, and to stop.
PATIENCE = 60.0


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        named = set(getattr(item, "fixturenames", ()))
        if callspec := getattr(item, "callspec", None):  # names for request.getfixturevalue
            named.update(value for value in callspec.params.values() if isinstance(value, str))
        used = ENGINES.keys() & named
        if used:
            item.add_marker("engines")
        for name in used:
            for warning in ENGINES[name]:
                item.add_marker(pytest.mark.filterwarnings(warning))


def missing(what: str) -> NoReturn:
    """Skip what needs an engine, or fail where all engines must be there."""
    if os.environ.get("DPQ_ENGINES"):
        pytest.fail(f"DPQ_ENGINES is set, and {what} is missing")
    pytest.skip(f"{what} is missing")


def module(name: str, extra: str) -> Any:
    """An engine's module."""
    try:
        return importlib.import_module(name)
    except ImportError:
        missing(f"{name} (extra `{extra}`)")


# PostgreSQL


@dataclass(frozen=True)
class Postgres:
    """A server that listens on a Unix socket in a folder, and nowhere else."""

    folder: Path
    port: int
    user: str
    log: Path

    @property
    def dsn(self) -> str:
        """What psycopg and DuckDB connect by."""
        return f"host={self.folder} port={self.port} user={self.user} dbname=postgres"

    def connect(self) -> Any:
        """A new connection of psycopg."""
        return module("psycopg", "sql").connect(self.dsn)

    def ibis(self) -> Any:
        """A new connection through ibis."""
        return module("ibis", "sql").postgres.connect(
            host=str(self.folder), port=self.port, user=self.user, database="postgres"
        )


def postgres_program(name: str) -> str:
    """The path of a program of the newest PostgreSQL, which Debian keeps out of PATH."""
    installed = Path("/usr/lib/postgresql").glob(f"*/bin/{name}")
    newest = max(installed, key=lambda path: float(path.parts[-3]), default=None)
    found = str(newest) if newest else shutil.which(name)
    return found or missing(f"{name} of PostgreSQL")


def unprivileged() -> dict[str, Any]:
    """Arguments of Popen under which PostgreSQL starts: it refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    import pwd

    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    missing("a user that PostgreSQL may run as")


def started(server: subprocess.Popen, probe: list[str], log: Path) -> None:
    """Wait until a server answers; its log is told if it does not."""
    deadline = time.monotonic() + PATIENCE
    while subprocess.run(probe, capture_output=True, check=False).returncode != 0:
        if server.poll() is not None or time.monotonic() > deadline:
            pytest.fail(f"PostgreSQL did not start: {log.read_text()}")
        time.sleep(0.05)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server of this session's own, empty, gone after it."""
    initdb, program, isready = map(postgres_program, ("initdb", "postgres", "pg_isready"))
    owner = unprivileged()
    # Short: the path of a Unix socket has at most 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="dpq-pg-"))
    data, log = folder / "data", folder / "log"
    try:
        if owner:
            os.chown(folder, owner["user"], owner["group"])
        own: dict[str, Any] = {"cwd": folder, "stdin": subprocess.DEVNULL, **owner}
        options = ["--auth=trust", "--username=dpq", "--encoding=UTF8", "--locale=C", "--no-sync"]
        command = [initdb, f"--pgdata={data}", *options]
        made = subprocess.run(command, capture_output=True, text=True, check=False, **own)
        if made.returncode != 0:
            pytest.fail(f"initdb failed: {made.stderr}")
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": folder,
            "port": 5432,  # names the socket: one folder, one server
            "fsync": "off",
            "full_page_writes": "off",
            "synchronous_commit": "off",
            "autovacuum": "off",
            # A test reads what reaches the log.
            "log_statement": "none",
        }
        command = [program, "-D", str(data)]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        with log.open("wb") as output:
            server = subprocess.Popen(command, stdout=output, stderr=output, **own)
        with server:
            try:
                address = [f"--host={folder}", "--port=5432", "--username=dpq"]
                started(server, [isready, "--dbname=postgres", *address], log)
                yield Postgres(folder, 5432, "dpq", log)
            finally:
                server.send_signal(signal.SIGINT)  # PostgreSQL's fast shutdown
                try:
                    server.wait(PATIENCE)
                except subprocess.TimeoutExpired:
                    server.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# SQL through ibis


@pytest.fixture
def postgres_ibis(postgres: Postgres) -> Iterator[Any]:
    """PostgreSQL through ibis."""
    connection = postgres.ibis()
    yield connection
    connection.disconnect()


@pytest.fixture
def sqlite_ibis() -> Iterator[Any]:
    """SQLite in memory through ibis."""
    connection = module("ibis", "sql").sqlite.connect()
    yield connection
    connection.disconnect()


@pytest.fixture
def ibis_polars() -> Any:
    """A data base of ibis that it has no words for here: polars."""
    return module("ibis", "sql").polars.connect()


@pytest.fixture
def duckdb_ibis() -> Iterator[Any]:
    """DuckDB in memory through ibis."""
    connection = module("ibis", "sql").duckdb.connect()
    yield connection
    connection.disconnect()


# Engines of several processes


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A Spark session with two workers in this machine's memory."""
    if not shutil.which("java") and "JAVA_HOME" not in os.environ:
        missing("java")
    session = module("pyspark.sql", "spark").SparkSession
    folder = tmp_path_factory.mktemp("spark")
    options = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder}",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = session.builder.master("local[2]").appName("dpq_fast").config(map=options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)  # of the workers, else python3 of PATH
        with patch.context() as start:
            start.chdir(folder)  # workers look for modules here: not in a checkout, unbuilt
            running = builder.getOrCreate()
        running.sparkContext.setLogLevel("ERROR")
        yield running
        running.stop()


@pytest.fixture(scope="session")
def dask_cluster() -> Iterator[Any]:
    """A client of two Dask workers, each a process of its own."""
    distributed = module("distributed", "dask")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    with (
        distributed.LocalCluster(
            **options, host="127.0.0.1", dashboard_address="127.0.0.1:0", memory_limit="2GiB"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def dask_synchronous() -> Iterator[Any]:
    """Dask in this thread."""
    dask = module("dask", "dask")
    with dask.config.set(scheduler="synchronous"):
        yield dask


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[Any]:
    """Ray on two cores, without its dashboard."""
    # Short, for the paths of its sockets.
    folder = tempfile.mkdtemp(prefix="dpq-ray-")
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
            # Its servers listen on all addresses: a token of this session's own, not one that Ray
            # would leave in the home folder.
            patch.setenv("RAY_AUTH_MODE", "token")
            patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
            ray = module("ray", "ray")
            with patch.context() as start:
                start.chdir(folder)  # as for Spark
                ray.init(
                    num_cpus=2,
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level="error",
                    object_store_memory=256 * 2**20,
                    _temp_dir=folder,
                )
            yield ray
            ray.shutdown()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
