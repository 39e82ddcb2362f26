"""Budgets in files: what is charged stays, whoever dies, and nobody overdraws."""

from __future__ import annotations

import copy
import math
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from releases import NEEDED, PUBLIC

import dpq_fast as dpq
from dpq_fast.mechanisms.registry import MECHANISMS
from dpq_fast.privacy import Accountant, BudgetExceeded, Entry, Guarantee, ledger
from dpq_fast.privacy.accounting import added

# Forks of a process with threads are what is tested here, and what pytest's workers are.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no os.fork on this platform")
# Nobody is the super user where there are no numbers of users.
is_root = getattr(os, "getuid", lambda: None)() == 0

# Where a sync of the disk costs nothing: what dies here are processes, not machines.
MEMORY = Path("/dev/shm")


@pytest.fixture
def path() -> Iterator[str]:
    with TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else None) as folder:
        yield os.path.join(folder, "payroll.budget")


@pytest.fixture
def impatient(monkeypatch: Any) -> None:
    monkeypatch.setattr(ledger, "PATIENCE", 0.0)
    monkeypatch.setattr(ledger, "WAIT", 0.01)


def by_hand(path: str, *statements: str) -> None:
    """What somebody else does to the file, without its triggers."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for name in ledger.SCHEMA:
            if " ON " in ledger.SCHEMA[name]:
                connection.execute(f"DROP TRIGGER IF EXISTS {name}")
        for statement in statements:
            connection.execute(statement)
        for name in ledger.SCHEMA:
            if " ON " in ledger.SCHEMA[name]:
                connection.execute(ledger.SCHEMA[name])


# The interface


def test_ledger_keeps_charges_for_the_next_process(path):
    first = Accountant.open(path, epsilon=1.0, delta=1e-6)
    first.charge(Guarantee(0.25, 1e-7, 0.5, 2.0, composition="basic"))
    code = (
        "import sys, dpq_fast as dpq; a = dpq.privacy.Accountant.open(sys.argv[1]); "
        "a.charge(dpq.privacy.Guarantee(0.5)); print(a.remaining.epsilon, a.epsilon, a.delta)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, path],
        cwd=gettempdir(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == "0.25 1.0 1e-06\n"
    assert first.history == (
        Guarantee(0.25, 1e-7, 0.5, 2.0, composition="basic"),
        Guarantee(0.5),
    )
    assert first.spent == Guarantee(0.75, 1e-7, composition="basic")
    first.check()
    with pytest.raises(BudgetExceeded, match=r"of which epsilon=0.75, delta=1e-07 is spent, got"):
        first.charge(Guarantee(0.5))
    assert len(first.entries) == 2


def test_ledger_is_an_accountant_of_releases(path):
    accountant = Accountant.open(path, epsilon=1.0)
    assert isinstance(accountant, Accountant) and isinstance(accountant, ledger.Ledger)
    before = datetime.now(timezone.utc)
    dpq.median([1.0, 2.0, 3.0], epsilon=0.75, bounds=(0, 9), accountant=accountant, rng=1)
    (entry,) = accountant.entries
    assert isinstance(entry, Entry)
    assert (entry.number, entry.what, entry.guarantee.epsilon) == (1, "ind_exp", 0.75)
    assert entry.when.utcoffset() == timedelta(0)
    assert before <= entry.when <= datetime.now(timezone.utc)
    with pytest.raises(BudgetExceeded):
        dpq.median([1.0], epsilon=0.75, bounds=(0, 9), accountant=accountant, rng=1)


@pytest.mark.parametrize("side", ["fast", "reference"])
@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_charges_have_the_names_of_their_releases(name, neighbors, side):
    """Those of every mechanism that there is."""
    public = NEEDED.get(name, {}) | PUBLIC[name] | dict(neighbors=neighbors)
    release = getattr(dpq if side == "fast" else dpq.reference, name)
    x = [0.5, 1.0, 2.0]
    for more in ({}, dict(confidence=0.9)) if MECHANISMS[name].intervals else ({},):
        composition = "zcdp" if "rho" in public else "basic"
        accountant = Accountant(100.0, 0.5, neighbors, composition)
        release(x, rng=1, accountant=accountant, **public | more)
        assert [entry.what for entry in accountant.entries] == [name]


@pytest.mark.parametrize(
    ("release", "what"),
    [
        (lambda **own: dpq.select_keys([1, 2], delta=1e-6, **own), "select_keys"),
        (lambda **own: dpq.count_by([1], [1], delta=1e-6, groups=None, **own), "count_by"),
        (
            lambda **own: dpq.quantile_by(
                [1], [1], 0.5, delta=1e-6, groups=None, bounds=(0, 9), **own
            ),
            "quantile_by",
        ),
        (lambda **own: dpq.quantile([1], 0.5, bounds=(0, 9), **own), "ind_exp"),
        (lambda **own: dpq.median([1], method="agg_tree", bounds=(0, 9), **own), "agg_tree"),
        (
            lambda **own: dpq.describe({"pay": [1.0, 2.0]}, bounds={"pay": (0, 9)}, **own),
            "describe",
        ),
    ],
)
def test_other_calls_have_names(release, what):
    accountant = Accountant(10.0, 0.5)
    release(epsilon=1.0, rng=1, accountant=accountant)
    assert [entry.what for entry in accountant.entries] == [what]


def test_noted_says_what_charges_are_for(path):
    for accountant in (Accountant(9.0), Accountant.open(path, epsilon=9.0)):
        other = Accountant(9.0)
        accountant.charge(Guarantee(0.1))
        with accountant.noted("quantile of pay, payroll.csv"):
            dpq.count([1.0], epsilon=0.1, accountant=accountant, rng=1)
            with other.noted("not this one"), accountant.noted("Löhne \x00 '; --"):
                accountant.charge(Guarantee(0.1))
            thread = threading.Thread(target=accountant.charge, args=(Guarantee(0.1),))
            thread.start()
            thread.join()
            with pytest.raises(BudgetExceeded), accountant.noted("inner"):
                accountant.charge(Guarantee(10.0))
            accountant.charge(Guarantee(0.1))
        dpq.count([1.0], epsilon=0.1, accountant=accountant, rng=1)
        assert [entry.what for entry in accountant.entries] == [
            "charge",
            "quantile of pay, payroll.csv",
            "Löhne \x00 '; --",
            "charge",
            "quantile of pay, payroll.csv",
            "count",
        ]
        assert [entry.number for entry in accountant.entries] == [1, 2, 3, 4, 5, 6]
        for wrong, error, message in (
            (1, TypeError, "^what must be a string, got int$"),
            ("pay \udc80", ValueError, "^what must be Unicode text, got lone surrogates$"),
        ):
            with pytest.raises(error, match=message), accountant.noted(wrong):
                pass
    accountant.check()


@pytest.mark.parametrize(
    "guarantee",
    [
        Guarantee(math.pi, 5e-324, 1e308, 2.2250738585072014e-308),
        Guarantee(0.1 + 0.2, math.nextafter(1.0, 0.0), neighbors="swap", composition="x" * 1_000),
        Guarantee(0.0),
        Guarantee(-0.0, -0.0, -0.0, -0.0),
        Guarantee(np.float64(0.5), np.float64(0.25)),
    ],
)
def test_statements_are_kept_exactly(guarantee, path):
    with Accountant.open(path, epsilon=100.0, delta=math.nextafter(1.0, 0.0)) as accountant:
        accountant.charge(guarantee)
        assert accountant.history == (guarantee,)
        accountant.check()


def test_ledger_of_zcdp_takes_rho_alone(path):
    accountant = Accountant.open(path, epsilon=2.0, delta=1e-6, composition="zcdp")
    memory = Accountant(2.0, 1e-6, composition="zcdp")
    for each in (accountant, memory):
        each.charge(Guarantee(None, rho=0.05))
        each.charge(Guarantee(0.1))
    again = Accountant.open(path)
    assert again.composition == "zcdp"
    assert again.spent == memory.spent and again.remaining == memory.remaining
    assert again.history == memory.history
    assert "0.05" in repr(again) and "rho" in repr(again)
    again.check()
    with pytest.raises(ValueError, match=r"^a release must state rho"):
        again.charge(Guarantee(1.0, 1e-9))
    with pytest.raises(BudgetExceeded, match=r"^a release must fit the budget of rho="):
        again.charge(Guarantee(None, rho=1.0))


def test_relations_are_converted_by_who_wants_it(path):
    other = Guarantee(0.25, neighbors="add-remove")
    with pytest.raises(ValueError, match=r"^the guarantee must be under 'swap'"):
        Accountant.open(path, epsilon=1.0).charge(other)
    with Accountant.open(path, convert=True) as accountant:
        accountant.charge(other)
    assert Accountant.open(path).history == (other.to("swap"),)
    assert Accountant.open(path).spent.epsilon == 0.5


def test_reprs_tell_the_budget(path):
    accountant = Accountant.open(path, epsilon=1.0, neighbors="add-remove")
    accountant.charge(Guarantee(0.25, neighbors="add-remove"))
    told = (
        "epsilon=1.0, delta=0.0, neighbors='add-remove', composition='basic': 1 release, "
        "epsilon=0.25 spent, epsilon=0.75 left>"
    )
    assert repr(accountant) == f"<Ledger {path!r} of {told}"
    memory = Accountant(1.0, neighbors="add-remove")
    memory.charge(Guarantee(0.25, neighbors="add-remove"))
    assert repr(memory) == f"<Accountant of {told}"
    with_delta = Accountant(1.0, 0.5)
    assert repr(with_delta).endswith(
        "0 releases, epsilon=0.0, delta=0.0 spent, epsilon=1.0, delta=0.5 left>"
    )
    assert (with_delta.epsilon, with_delta.delta) == (1.0, 0.5)
    os.unlink(path)
    assert "unable to open" in repr(accountant)
    accountant.close()
    assert "a ledger must be open to be used" in repr(accountant)


def test_closed_ledger_takes_no_charges(path):
    with Accountant.open(path, epsilon=1.0) as accountant:
        assert accountant.path == path
    for use in (
        lambda: accountant.charge(Guarantee(0.1)),
        lambda: accountant.spent,
        accountant.check,
        lambda: pickle.dumps(accountant),
    ):
        with pytest.raises(ValueError, match=r"^a ledger must be open to be used, got .* closed$"):
            use()
    assert Accountant.open(path).entries == ()


def test_sqlite_is_loaded_when_it_is_used():
    code = (
        "import sys, dpq_fast as dpq; dpq.privacy.Accountant(1.0); "
        "print('sqlite3' in sys.modules, 'hashlib' in sys.modules and 'unused')"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=gettempdir(), capture_output=True, text=True, check=True
    )
    assert run.stdout.startswith("False")


# What is refused, before anything is charged


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (dict(path=3), TypeError, "^path must be a string or a path, got int$"),
        (dict(epsilon=0.0), ValueError, "^epsilon must be positive and finite, got 0.0$"),
        (dict(epsilon="1"), TypeError, "^epsilon must be a real number, got '1'$"),
        (dict(delta=1.0), ValueError, r"^delta must lie in \[0, 1\), got 1.0$"),
        (dict(neighbors="x"), ValueError, "^neighbors must be one of"),
        (dict(composition="best"), ValueError, "^composition must be one of 'basic', 'zcdp'"),
        (dict(epsilon=1.0, composition="zcdp"), ValueError, "^delta must be positive for comp"),
        (dict(epsilon=1.0, convert=1), TypeError, "^convert must be True or False, got 1$"),
        (dict(), FileNotFoundError, "^epsilon must be given for a new ledger, got None and no"),
    ],
)
def test_open_rejects(options, error, message, path):
    with pytest.raises(error, match=message):
        Accountant.open(**dict(path=path) | options)
    assert not os.path.exists(path)


@pytest.mark.parametrize("epsilon", [None, 1.0])
def test_open_rejects_places(epsilon, path):
    with pytest.raises(FileNotFoundError, match=r"^path must lie in a folder that exists, got"):
        Accountant.open(os.path.join(path, "no", "file"), epsilon=epsilon)
    with pytest.raises(OSError, match=r"^a ledger must be readable, got .* unable to open"):
        Accountant.open(os.path.dirname(path), epsilon=epsilon)
    with pytest.raises(ValueError, match=r"^path must hold no null character, got"):
        Accountant.open("a\x00b", epsilon=epsilon)


@pytest.mark.parametrize("epsilon", [None, 1.0])
@pytest.mark.parametrize(
    ("statements", "message"),
    [
        (["CREATE TABLE people (pay REAL)"], "another data base$"),
        (["PRAGMA application_id=7"], "another data base$"),
        (["PRAGMA user_version=1"], "another data base$"),
        ([f"PRAGMA application_id={ledger.APPLICATION}", "PRAGMA user_version=2"], "version 2$"),
        (
            [
                "CREATE TABLE people (pay REAL)",
                f"PRAGMA application_id={ledger.APPLICATION}",
                "PRAGMA user_version=1",
            ],
            "no such table: budget$",
        ),
        (
            [
                ledger.SCHEMA["budget"],
                f"PRAGMA application_id={ledger.APPLICATION}",
                "PRAGMA user_version=1",
            ],
            "^a ledger must have one budget, got 0 in",
        ),
    ],
)
def test_open_rejects_other_data_bases(statements, message, epsilon, path):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
    before = Path(path).read_bytes()
    with pytest.raises(ValueError, match=message):
        Accountant.open(path, epsilon=epsilon)
    assert Path(path).read_bytes() == before


@pytest.mark.parametrize("epsilon", [None, 1.0])
def test_open_leaves_files_of_others_alone(epsilon, path):
    Path(path).write_text("name,pay\nAda,3\n" * 100)
    with pytest.raises(ValueError, match=r"^path must be a ledger, got .*: file is not a database"):
        Accountant.open(path, epsilon=epsilon)
    assert Path(path).read_text() == "name,pay\nAda,3\n" * 100


@pytest.mark.parametrize("epsilon", [None, 1.0])
def test_open_refuses_an_empty_file(epsilon, path):
    """It may be a ledger that lost what was spent; so is a data base without tables."""
    message = r"^path must be a ledger, or no file yet, got an empty file .* put a copy of it in"
    Path(path).touch()
    with pytest.raises(ValueError, match=message):
        Accountant.open(path, epsilon=epsilon)
    assert Path(path).read_bytes() == b""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("VACUUM")
    assert Path(path).stat().st_size > 0
    with pytest.raises(ValueError, match=message):
        Accountant.open(path, epsilon=epsilon)


@pytest.mark.parametrize("epsilon", [None, 1.0])
@pytest.mark.parametrize("left", [0, 1, 99, 100, 4_096, 4_097, -4_096])
def test_ledger_that_was_truncated_is_refused(left, epsilon, path):
    """By who had it open, too."""
    accountant = three(path)
    whole = Path(path).read_bytes()
    truncated = whole[:left]
    Path(path).write_bytes(truncated)
    with pytest.raises(ValueError, match=r"^path must"):
        Accountant.open(path, epsilon=epsilon)
    for use in (lambda: accountant.charge(Guarantee(0.1)), lambda: accountant.spent):
        with pytest.raises(ValueError, match=r"^path must"):
            use()
    assert Path(path).read_bytes() == truncated
    Path(path).write_bytes(whole)
    accountant.check()


def test_new_ledger_is_never_seen_half_made(path, monkeypatch):
    """Not after any statement by which it is made."""
    seen: list[bool] = []

    class Looked(sqlite3.Connection):
        def execute(self, statement: str, *parameters: Any) -> Any:
            found = super().execute(statement, *parameters)
            seen.append(os.path.exists(path))
            return found

    connect, link = sqlite3.connect, os.link

    def linked(*arguments: Any) -> None:
        assert seen and not any(seen)
        link(*arguments)
        assert Accountant.open(path).spent.epsilon == 0.0

    monkeypatch.setattr(
        ledger.sqlite3, "connect", lambda *a, **options: connect(*a, factory=Looked, **options)
    )
    monkeypatch.setattr(os, "link", linked)
    Accountant.open(Path(path), epsilon=1.0)
    monkeypatch.undo()
    assert Accountant.open(os.fsencode(path), epsilon=1.0).entries == ()
    assert os.listdir(os.path.dirname(path)) == [os.path.basename(path)]


def test_ledger_that_another_process_made_first_is_theirs(path, monkeypatch):
    """Who is second has made another one, which is gone."""
    link = os.link

    def second(*arguments: Any) -> None:
        monkeypatch.setattr(os, "link", link)
        Accountant.open(path, epsilon=1.0).charge(Guarantee(0.75))
        link(*arguments)

    monkeypatch.setattr(os, "link", second)
    accountant = Accountant.open(path, epsilon=1.0)
    assert accountant.remaining.epsilon == 0.25
    with pytest.raises(BudgetExceeded):
        accountant.charge(Guarantee(0.5))
    assert os.listdir(os.path.dirname(path)) == [os.path.basename(path)]
    os.unlink(path)
    monkeypatch.setattr(os, "link", second)
    with pytest.raises(ValueError, match=r"^the budget must be that of the ledger"):
        Accountant.open(path, epsilon=2.0)


def test_new_ledger_needs_a_second_name(path, monkeypatch):
    def refused(*_: Any) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refused)
    with pytest.raises(OSError, match=r"^a new ledger must lie where files can have two names"):
        Accountant.open(path, epsilon=1.0)
    assert os.listdir(os.path.dirname(path)) == []


def test_new_ledger_beside_a_journal_is_refused(path):
    """SQLite would undo it by what is written there."""
    Path(f"{path}-journal").write_bytes(b"left behind")
    with pytest.raises(FileExistsError, match=r"^a new ledger must have no journal of another one"):
        Accountant.open(path, epsilon=1.0)
    assert not os.path.exists(path)


@pytest.mark.parametrize(
    "other",
    [
        dict(epsilon=math.nextafter(1.0, 2.0), delta=1e-6),
        dict(epsilon=1.0),
        dict(epsilon=1.0, delta=1e-6, neighbors="add-remove"),
        dict(epsilon=1.0, delta=1e-6, composition="zcdp"),
        dict(delta=1e-7),
        dict(neighbors="add-remove"),
        dict(composition="zcdp"),
    ],
)
def test_open_rejects_another_budget(other, path):
    Accountant.open(path, epsilon=1.0, delta=1e-6).charge(Guarantee(0.5))
    with pytest.raises(
        ValueError,
        match=r"^the budget must be that of the ledger, epsilon=1.0, delta=1e-06, "
        r"neighbors='swap', composition='basic', got ",
    ):
        Accountant.open(path, **other)
    for same in (dict(), dict(epsilon=1.0, delta=1e-6), dict(delta=1e-6)):
        assert Accountant.open(path, **same).spent.epsilon == 0.5


def as_nobody(work: Callable[[], None]) -> None:
    """Do `work` in a child without the rights of the super user; what fails there fails here."""
    child = os.fork()
    if child == 0:
        try:
            os.setuid(65534)
            work()
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.skipif(not is_root, reason="takes another user")
def test_ledger_that_may_not_be_written_is_read_but_not_charged(path):
    Accountant.open(path, epsilon=1.0).charge(Guarantee(0.25))
    os.chmod(path, 0o444)
    os.chmod(os.path.dirname(path), 0o755)
    read = []

    def work() -> None:
        accountant = Accountant.open(path)
        assert accountant.spent.epsilon == 0.25
        with pytest.raises(PermissionError, match=r"^a ledger must be writable to be charged, got"):
            dpq.count(read.append, epsilon=0.1, accountant=accountant)
        assert not read
        accountant.check()
        with pytest.raises(OSError, match=r"^a ledger must be readable, got .* unable to open"):
            Accountant.open(os.path.join(os.path.dirname(path), "new"), epsilon=1.0)

    as_nobody(work)
    assert len(Accountant.open(path).entries) == 1


def test_ledger_that_others_hold_is_given_up(path, impatient):
    accountant = Accountant.open(path, epsilon=1.0)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        message = r"^a ledger must be free within 0 seconds, got .* which others hold$"
        for use in (lambda: accountant.charge(Guarantee(0.1)), lambda: accountant.spent):
            with pytest.raises(TimeoutError, match=message):
                use()
        connection.execute("COMMIT")
    accountant.charge(Guarantee(0.1))
    assert len(accountant.entries) == 1


def test_ledger_waits_for_its_turn(path, monkeypatch):
    monkeypatch.setattr(ledger, "WAIT", 0.01)
    accountant = Accountant.open(path, epsilon=1.0)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        thread = threading.Thread(target=accountant.charge, args=(Guarantee(0.1),))
        thread.start()
        thread.join(0.2)
        assert thread.is_alive()
        connection.execute("COMMIT")
    thread.join()
    assert len(accountant.entries) == 1


# Statements of SQLite


class Watched(sqlite3.Connection):
    """A connection that notes its statements."""

    statements: ClassVar[list[str]] = []

    def execute(self, statement: str, *parameters: Any) -> Any:
        self.statements.append(statement)
        return super().execute(statement, *parameters)


def test_charge_is_durable_when_it_returns(path, monkeypatch):
    """The disk has the entry, and has no journal that would undo it."""
    accountant = Accountant.open(path, epsilon=1.0)
    connect = sqlite3.connect
    monkeypatch.setattr(
        ledger.sqlite3, "connect", lambda *a, **options: connect(*a, factory=Watched, **options)
    )
    Watched.statements.clear()
    accountant.charge(Guarantee(0.1))
    done = Watched.statements
    assert done.index("PRAGMA synchronous=EXTRA") < done.index("BEGIN IMMEDIATE")
    assert done.index("PRAGMA journal_mode=DELETE") < done.index("BEGIN IMMEDIATE")
    assert done.index("BEGIN IMMEDIATE") < done.index(ledger.LAST) < done.index(ledger.INSERT)
    assert done[-1] == "COMMIT"
    assert os.listdir(os.path.dirname(path)) == [os.path.basename(path)]


def test_ledger_leaves_the_write_ahead_log(path, monkeypatch):
    accountant = Accountant.open(path, epsilon=1.0)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode=WAL").fetchone() == ("wal",)
    accountant.charge(Guarantee(0.1))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    monkeypatch.setattr(ledger, "JOURNAL", "MEMORY")
    with pytest.raises(OSError, match=r"^a ledger must have a rollback journal, got 'memory'$"):
        accountant.charge(Guarantee(0.1))
    assert len(accountant.entries) == 1


def in_between(monkeypatch: Any, act: Callable[[], None]) -> None:
    """Let `act` happen once, after what is spent was read, and before the entry is added."""
    fitting = Accountant._fitting
    acts = [act]

    def interrupted(self: Any, *arguments: Any) -> Any:
        found = fitting(self, *arguments)
        if acts:
            acts.pop()()
        return found

    monkeypatch.setattr(Accountant, "_fitting", interrupted)


def charge_twice(path: str, monkeypatch: Any) -> None:
    """Two ledgers that charge 0.75 of 1 at once: one has to be refused."""
    first, second = Accountant.open(path, epsilon=1.0), Accountant.open(path)

    def act() -> None:
        with pytest.raises(TimeoutError):
            second.charge(Guarantee(0.75))

    in_between(monkeypatch, act)
    first.charge(Guarantee(0.75))
    with pytest.raises(BudgetExceeded):
        second.charge(Guarantee(0.75))
    assert len(first.entries) == 1
    first.check()


def test_nobody_charges_between_the_sum_and_the_entry(path, monkeypatch, impatient):
    charge_twice(path, monkeypatch)


class Unlocked(sqlite3.Connection):
    """A connection that begins no transactions: a mutant."""

    def execute(self, statement: str, *parameters: Any) -> Any:
        if statement.startswith(("BEGIN", "COMMIT")):
            statement = "SELECT 1"
        return super().execute(statement, *parameters)


def test_ledger_that_takes_no_lock_is_caught(path, monkeypatch, impatient):
    """By the test above; and even then the numbers of entries keep it from overdrawing.

    A lock that is taken late ("BEGIN DEFERRED") is one that SQLite refuses to one of two: it costs
    turns, and no privacy.
    """
    connect = sqlite3.connect
    monkeypatch.setattr(
        ledger.sqlite3, "connect", lambda *a, **options: connect(*a, factory=Unlocked, **options)
    )
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        charge_twice(path, monkeypatch)
    first = Accountant.open(path)
    in_between(monkeypatch, lambda: Accountant.open(path).charge(Guarantee(0.2)))
    with pytest.raises(ValueError, match="entries of a ledger are numbered in turn"):
        first.charge(Guarantee(0.05))
    assert [entry.guarantee.epsilon for entry in first.entries] == [0.75, 0.2]


def test_what_is_refused_or_interrupted_is_rolled_back(path, monkeypatch):
    accountant = Accountant.open(path, epsilon=1.0)

    def act() -> None:
        raise KeyboardInterrupt

    in_between(monkeypatch, act)
    with pytest.raises(KeyboardInterrupt):
        accountant.charge(Guarantee(0.1))
    accountant.charge(Guarantee(0.2))
    assert accountant.history == (Guarantee(0.2),)


def test_release_that_fails_after_the_charge_keeps_it(path):
    def source() -> Iterator[Any]:
        yield np.zeros(3)
        raise MemoryError

    accountant = Accountant.open(path, epsilon=1.0)
    with pytest.raises(ValueError, match="nan_policy='raise'"):
        dpq.median(
            [math.nan], epsilon=0.5, bounds=(0, 9), accountant=accountant, nan_policy="raise"
        )
    assert Accountant.open(path).spent.epsilon == 0.5
    with pytest.raises(ValueError, match="bounds"):
        dpq.median([1.0], epsilon=0.5, bounds=(9, 0), accountant=accountant)
    assert Accountant.open(path).spent.epsilon == 0.5


def test_many_entries_cost_no_time(path, monkeypatch):
    """A charge reads the last entries alone: the same statements, whatever is there."""
    accountant = Accountant.open(path, epsilon=1e3)
    for _ in range(300):
        accountant.charge(Guarantee(0.1))
    rows: list[int] = []
    connect = sqlite3.connect

    def connected(*arguments: Any, **options: Any) -> Any:
        connection = connect(*arguments, **options)
        connection.set_progress_handler(lambda: rows.append(1), 100)  # each 100 steps
        return connection

    monkeypatch.setattr(ledger.sqlite3, "connect", connected)
    accountant.charge(Guarantee(0.1))
    assert len(rows) < 30
    with closing(connect(path)) as connection:
        longest = connection.execute("SELECT max(length(totals)) FROM entries").fetchone()
    assert longest[0] < 100


# What was changed


CHANGES = {
    "epsilon": ("UPDATE entries SET epsilon = 0.01 WHERE number = 2", "^entry 2 must be as it was"),
    "rho": ("UPDATE entries SET rho = 0.01 WHERE number = 1", "^entry 1 must be as it was made"),
    "time": ("UPDATE entries SET made = '2020-01-01' WHERE number = 3", "^entry 3 must be as"),
    "text": ("UPDATE entries SET what = 'nothing' WHERE number = 2", "^entry 2 must be as it was"),
    "totals": ("UPDATE entries SET totals = ';' WHERE number = 3", "^entry 3 must be as it was"),
    "hash": ("UPDATE entries SET hash = 'x' WHERE number = 1", "^entry 1 must be as it was made"),
    "first": ("DELETE FROM entries WHERE number = 1", "^entries must be numbered in turn, got 2"),
    "middle": ("DELETE FROM entries WHERE number = 2", "numbered in turn, got 3 for 2$"),
    "last": ("DELETE FROM entries WHERE number = 3", "^a ledger must keep its entries, got 2 of 3"),
    "all": ("DELETE FROM entries", "^a ledger must keep its entries, got 0 of 3"),
    "budget": ("UPDATE budget SET epsilon = 9.0", "^path must still be the ledger that was opened"),
    "no budget": ("DELETE FROM budget", "^a ledger must have one budget, got 0"),
    "trigger": ("DROP TRIGGER no_update_of_entries", "made with, got others for no_update_of_ent"),
    "table": ("CREATE TABLE more (x)", "made with, got others for more$"),
}


def three(path: str) -> ledger.Ledger:
    accountant = Accountant.open(path, epsilon=1.0)
    for epsilon in (0.1, 0.2, 0.3):
        accountant.charge(Guarantee(epsilon, rho=0.5))
    accountant.check()
    return accountant


@pytest.mark.parametrize("change", CHANGES)
def test_check_finds_changes(change, path):
    accountant = three(path)
    statement, message = CHANGES[change]
    if change == "trigger":
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(statement)
    else:
        by_hand(path, statement)
    with pytest.raises(ValueError, match=message):
        accountant.check()


@pytest.mark.parametrize("change", ["time", "totals", "last", "all", "budget", "no budget"])
def test_charge_finds_changes_of_the_last_entry_and_of_the_budget(change, path):
    accountant = three(path)
    by_hand(path, CHANGES[change][0])
    with pytest.raises(ValueError, match=CHANGES[change][1]):
        accountant.charge(Guarantee(0.1))
    with closing(sqlite3.connect(path)) as connection:
        (number,) = connection.execute("SELECT count(*) FROM entries").fetchone()
    assert number == {"all": 0, "last": 2}.get(change, 3)


def test_missing_entries_are_found_by_who_never_saw_them(path):
    three(path)
    by_hand(path, "DELETE FROM entries WHERE number = 3")
    accountant = Accountant.open(path)
    for use in (accountant.check, lambda: accountant.spent):
        with pytest.raises(ValueError, match=r"^a ledger must keep its entries, got 2 of 3 in"):
            use()


def test_check_finds_an_entry_that_was_changed_with_its_hash(path):
    """The hash of the next one covers it."""
    three(path)
    columns = f"SELECT {ledger.COLUMNS}, hash FROM entries ORDER BY number"
    with closing(sqlite3.connect(path)) as connection:
        first, second, _ = connection.execute(columns).fetchall()
    row = (*second[:2], "nothing", *second[3:-1])
    by_hand(
        path,
        "UPDATE entries SET what = 'nothing', "
        f"hash = '{ledger._hashed(first[-1], row)}' WHERE number = 2",
    )
    with pytest.raises(ValueError, match=r"^entry 3 must be as it was made, got a changed one$"):
        Accountant.open(path).check()


def test_budget_that_was_changed_while_nobody_looked_is_found(path):
    three(path)
    by_hand(path, "UPDATE budget SET epsilon = 9.0")
    with pytest.raises(ValueError, match=r"^entry 1 must be as it was made, got a changed one$"):
        Accountant.open(path).check()


def test_check_compares_with_the_budget(path):
    three(path)
    for _ in range(5):
        charge_by_hand(path, Guarantee(0.1))
    with pytest.raises(ValueError, match=r"^entries must fit the budget of epsilon=1.0.* entry 8$"):
        Accountant.open(path).check()


BOOKS = {
    "epsilon": dict(epsilon=1.0, delta=1e-6),
    "delta": dict(epsilon=1.0, delta=1e-6),
    "rho": dict(epsilon=1.0, delta=1e-6, composition="zcdp"),
}


def charge_by_hand(path: str, charged: Guarantee, factors: tuple[float, ...] = ()) -> None:
    """Add an entry that nobody checks; its totals are right, times the factors that are given."""
    accountant = Accountant.open(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        number, totals, before = accountant._last(connection)
        totals = accountant._with(totals, charged)
        if factors:
            sums = map(math.fsum, totals)
            totals = tuple((sum_ * by,) for sum_, by in zip(sums, factors, strict=True))
        statements = map(
            ledger._plain, (charged.epsilon, charged.delta, charged.rho, charged.bounded_range)
        )
        row = (number + 1, ledger.now().isoformat(), "x", *statements, "swap", "")
        row = (*row, ledger._written_totals(totals))
        connection.execute(ledger.INSERT, (*row, ledger._hashed(before, row)))


@pytest.mark.parametrize("statement", BOOKS)
@pytest.mark.parametrize(
    ("factor", "is_found"),
    [(1.0, False), (1 - 5e-10, False), (1 - 2e-9, True), (1 + 2e-9, True), (1 - 1e-3, True)],
)
def test_check_compares_totals_to_nine_digits(statement, factor, is_found, path):
    accountant = Accountant.open(path, **BOOKS[statement])
    charged = Guarantee(0.1, 0.0 if statement == "rho" else 1e-7, rho=0.001)
    accountant.charge(charged)
    factors = {"epsilon": (factor, 1.0), "delta": (1.0, factor), "rho": (factor,)}
    charge_by_hand(path, charged, factors[statement])
    if is_found:
        with pytest.raises(ValueError, match=r"^entry 2 must hold the totals up to it, got others"):
            accountant.check()
    else:
        accountant.check()


@pytest.mark.parametrize("statement", BOOKS)
@pytest.mark.parametrize(("excess", "is_found"), [(5e-13, False), (2e-12, True), (1e-8, True)])
def test_check_compares_totals_with_the_budget_to_twelve_digits(statement, excess, is_found, path):
    accountant = Accountant.open(path, **BOOKS[statement])
    whole: dict[str, Any] = dict(epsilon=1.0, delta=1e-6)
    if statement == "rho":
        whole = dict(epsilon=None, rho=accountant.remaining.rho)
    half = Guarantee(**{name: value and value / 2 for name, value in whole.items()})
    accountant.charge(half)
    more = whole[statement] * (0.5 + excess)
    parts = {name: getattr(half, name) for name in whole} | {statement: more}
    charge_by_hand(path, Guarantee(**parts))
    if is_found:
        with pytest.raises(ValueError, match=r"^entries must fit the budget of .* by entry 2$"):
            accountant.check()
    else:
        accountant.check()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE entries SET epsilon = 0", "never changed, only added to"),
        ("DELETE FROM entries", "never changed, only added to"),
        ("UPDATE budget SET epsilon = 9", "never changed, only added to"),
        ("DELETE FROM budget", "never changed, only added to"),
        ("INSERT INTO budget SELECT * FROM budget", "has one budget"),
        ("INSERT OR REPLACE INTO entries SELECT * FROM entries", "numbered in turn"),
        (
            "INSERT INTO entries SELECT 9, made, what, epsilon, delta, rho, bounded_range, "
            "neighbors, composition, totals, hash FROM entries",
            "numbered in turn",
        ),
    ],
)
def test_entries_are_only_added_to(statement, message, path):
    accountant = three(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        with pytest.raises(sqlite3.IntegrityError, match=message):
            connection.execute(statement)
    accountant.check()


@pytest.mark.parametrize("where", [0.3, 0.6, 0.95])
def test_check_finds_a_damaged_file(where, path):
    accountant = three(path)
    pages = bytearray(Path(path).read_bytes())
    start = int(where * len(pages)) // 4096 * 4096
    pages[start : start + 4096] = os.urandom(4096)
    Path(path).write_bytes(pages)
    with pytest.raises((ValueError, OSError)):
        accountant.check()


def test_ledger_that_was_put_back_is_refused(path):
    """A backup has forgotten what was spent since."""
    accountant = three(path)
    backup = Path(path).read_bytes()
    accountant.charge(Guarantee(0.1))
    Path(path).write_bytes(backup)
    for use in (
        lambda: accountant.charge(Guarantee(0.1)),
        lambda: accountant.spent,
        accountant.check,
    ):
        with pytest.raises(ValueError, match=r"^a ledger must keep its entries, got 3 of 4 in"):
            use()
    Accountant.open(path).charge(Guarantee(0.2))  # somebody else does not know
    with pytest.raises(ValueError, match=r"^a ledger must keep its entries, got another entry 4"):
        accountant.charge(Guarantee(0.1))


def test_another_ledger_in_its_place_is_refused(path):
    accountant = Accountant.open(path, epsilon=1.0)
    uses: list[Callable[[], Any]] = [
        lambda: accountant.charge(Guarantee(0.1)),
        lambda: accountant.remaining,
        lambda: accountant.entries,
        accountant.check,
    ]
    dumped = pickle.dumps(accountant)
    os.unlink(path)
    for use in uses:
        with pytest.raises(OSError, match=r"^a ledger must be readable, got .* unable to open"):
            use()
    for make in (Path(path).touch, lambda: Accountant.open(path, epsilon=1.0)):
        Path(path).unlink(missing_ok=True)
        make()
        for use in uses:
            with pytest.raises(ValueError, match=r"^path must still be the ledger that was opened"):
                use()
    with pytest.raises(ValueError, match=r"^path must still be the ledger that was opened, got an"):
        pickle.loads(dumped)
    assert Accountant.open(path).entries == ()


def test_data_base_of_others_in_its_place_is_left_alone(path):
    """So is its write-ahead log."""
    accountant = Accountant.open(path, epsilon=1.0)
    os.unlink(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE people (pay REAL)")
    with pytest.raises(ValueError, match=r"another data base$"):
        accountant.charge(Guarantee(0.1))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


# Threads and processes


def test_threads_spend_exactly_the_budget(path):
    accountant = Accountant.open(path, epsilon=10.0)
    start = threading.Barrier(8)
    taken = [0] * 8

    def race(thread: int) -> None:
        start.wait()
        for _ in range(16):
            try:
                accountant.charge(Guarantee(0.1))
            except BudgetExceeded:
                continue
            taken[thread] += 1

    threads = [threading.Thread(target=race, args=(thread,)) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(taken) == len(accountant.entries) == 100
    assert accountant.remaining.epsilon == 0.0
    accountant.check()


@needs_fork
def test_forked_children_charge_the_same_ledger(path):
    accountant = Accountant.open(path, epsilon=1.0)
    accountant.charge(Guarantee(0.1))
    children = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            try:
                accountant.charge(Guarantee(0.1))
            except BaseException:
                os._exit(1)
            os._exit(0)
        children.append(child)
    accountant.charge(Guarantee(0.1))
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
    assert len(accountant.entries) == 5
    accountant.check()


@needs_fork
def test_fork_waits_for_transactions_of_other_threads(path):
    """What a child inherits in the middle of a transaction it would roll back."""
    accountant = Accountant.open(path, epsilon=1e6)
    stop = threading.Event()
    charged = [0]

    def work() -> None:
        while not stop.is_set():
            accountant.charge(Guarantee(0.1))
            charged[0] += 1

    thread = threading.Thread(target=work)
    thread.start()
    for _ in range(30):
        child = os.fork()
        if child == 0:
            free = ledger._LOCK.acquire(blocking=False)
            os._exit(0 if free else 1)
        assert os.waitpid(child, 0)[1] == 0
    stop.set()
    thread.join()
    assert len(accountant.entries) == charged[0]
    accountant.check()


@contextmanager
def held() -> Iterator[None]:
    """Another thread is in a transaction."""
    inside, leave = threading.Event(), threading.Event()

    def work() -> None:
        with ledger._LOCK:
            inside.set()
            leave.wait()

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait()
    timer = threading.Timer(0.2, leave.set)
    timer.start()
    yield
    thread.join()
    timer.join()


@needs_fork
def test_fork_begins_when_no_thread_is_in_a_transaction():
    with held():
        child = os.fork()
        if child == 0:  # the lock is this thread's, whoever had it before
            os._exit(0 if ledger._LOCK.acquire(blocking=False) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_copies_are_opened_by_path(path):
    accountant = Accountant.open(path, epsilon=1.0, convert=True)
    accountant.charge(Guarantee(0.25))
    for made in (pickle.loads(pickle.dumps(accountant)), copy.deepcopy(accountant)):
        assert made is not accountant and made.path == path
        made.charge(Guarantee(0.05, neighbors="add-remove"))
    assert accountant.spent.epsilon == pytest.approx(0.45)
    dumped = pickle.dumps(accountant)
    backup = Path(path).read_bytes()
    accountant.charge(Guarantee(0.1))
    later = pickle.dumps(accountant)
    Path(path).write_bytes(backup)
    assert len(pickle.loads(dumped).entries) == 3
    with pytest.raises(ValueError, match=r"^a ledger must keep its entries, got 3 of 4"):
        pickle.loads(later)


def test_spawned_processes_charge_the_same_ledger(path):
    code = (
        "import multiprocessing, sys\n"
        "from dpq_fast.privacy import Accountant, Guarantee\n"
        "if __name__ == '__main__':\n"
        "    a = Accountant.open(sys.argv[1], epsilon=1.0)\n"
        "    child = multiprocessing.get_context('spawn').Process(\n"
        "        target=a.charge, args=(Guarantee(0.25),))\n"
        "    child.start(); child.join(); print(child.exitcode, a.remaining.epsilon)\n"
    )
    script = os.path.join(os.path.dirname(path), "spawn.py")
    Path(script).write_text(code)
    run = subprocess.run(
        [sys.executable, script, path],
        cwd=gettempdir(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == "0 0.75\n"


COST = 0.1
# Where a charge is killed: before a statement of its transaction, or after it.
BEFORE = ("PRAGMA synchronous=EXTRA", "BEGIN IMMEDIATE", ledger.LAST, ledger.INSERT, "COMMIT")
AFTER = ("BEGIN IMMEDIATE", ledger.INSERT, "COMMIT")
POINTS = [("before", each) for each in BEFORE] + [("after", each) for each in AFTER]


def die_at(when: str, statement: str) -> None:
    """Make this process kill itself at a point of its next charge."""

    class Dying(sqlite3.Connection):
        def execute(self, executed: str, *parameters: Any) -> Any:
            if executed == statement and when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            found = super().execute(executed, *parameters)
            if executed == statement:
                os.kill(os.getpid(), signal.SIGKILL)
            return found

    connect = sqlite3.connect
    ledger.sqlite3.connect = lambda *a, **options: connect(*a, factory=Dying, **options)


def in_child(work: Callable[[], None]) -> Callable[[], int]:
    """Do `work` in a forked child; what waits for its end, and gives its status."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
        os._exit(0)
    return lambda: os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@needs_fork
@pytest.mark.parametrize(("when", "statement"), POINTS)
def test_charge_that_is_killed_stands_from_the_commit_on(when, statement, path):
    accountant = Accountant.open(path, epsilon=1.0)
    accountant.charge(Guarantee(0.5))

    def work() -> None:
        die_at(when, statement)
        accountant.charge(Guarantee(0.25))

    assert in_child(work)() == -signal.SIGKILL
    spent = 0.75 if (when, statement) == ("after", "COMMIT") else 0.5
    assert Accountant.open(path).spent.epsilon == accountant.spent.epsilon == spent
    accountant.charge(Guarantee(1.0 - spent))
    accountant.check()
    with pytest.raises(BudgetExceeded):
        accountant.charge(Guarantee(0.25))


@needs_fork
@pytest.mark.parametrize("page", [0.1, 1.1, 2.1, 3.1, 4.1])
def test_charge_that_is_killed_while_it_is_written_is_undone(page, path):
    """In the journal, or in the file, in the middle of a page: where a file may not grow beyond."""
    resource = pytest.importorskip("resource", reason="no limits of files on this platform")
    accountant = Accountant.open(path, epsilon=1.0)
    accountant.charge(Guarantee(0.5))

    def work() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(page * 4096), resource.RLIM_INFINITY))
        with accountant.noted("x" * 10_000):  # more than three pages
            accountant.charge(Guarantee(0.25))

    assert in_child(work)() == -signal.SIGXFSZ
    # the journal is there, but where it was its first page that could not be written
    assert os.path.exists(f"{path}-journal")
    assert Accountant.open(path).spent.epsilon == accountant.spent.epsilon == 0.5
    accountant.charge(Guarantee(0.5))
    accountant.check()


@needs_fork
@pytest.mark.parametrize("statement", [*ledger.SCHEMA.values(), "COMMIT"])
def test_ledger_that_is_killed_while_it_is_made_is_none(statement, path):
    """Nor is what is left a ledger of that name: the next one makes its own."""

    def work() -> None:
        die_at("before", statement)
        Accountant.open(path, epsilon=1.0)

    assert in_child(work)() == -signal.SIGKILL
    assert not os.path.exists(path)
    accountant = Accountant.open(path, epsilon=1.0)
    accountant.charge(Guarantee(0.25))
    accountant.check()


def charge_all(accountant: ledger.Ledger, most: float = math.inf) -> None:
    """Charge, and note each charge that came back, until the budget is spent, or `most` times."""
    note = os.open(f"{accountant.path}.notes", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    while most > 0:
        try:
            accountant.charge(Guarantee(COST))
        except BudgetExceeded:
            return
        os.write(note, b"x")  # no buffer: it is there when the process dies
        most -= 1


def kill_and_charge(path: str, charges: int, kills: int) -> None:
    """Eight processes charge one ledger at a time, of which the first `kills` are killed.

    Each is killed at a point of a charge, after some others. They charge too little to spend the
    budget, so that each gets there, however slow the machine is; then others spend it.
    """
    before = charges // (2 * kills)

    def opened() -> ledger.Ledger:
        return Accountant.open(path, epsilon=COST * charges)

    def victim(number: int) -> None:
        accountant = opened()
        charge_all(accountant, most=number % (before + 1))
        die_at(*POINTS[number % len(POINTS)])
        charge_all(accountant)

    waits = []
    for number in range(kills):
        waits.append(in_child(partial(victim, number)))
        if len(waits) == 8:
            assert waits.pop(0)() == -signal.SIGKILL
    assert [wait() for wait in waits] == [-signal.SIGKILL] * len(waits)
    waits = [in_child(lambda: charge_all(opened())) for _ in range(8)]
    assert [wait() for wait in waits] == [0] * 8
    accountant = Accountant.open(path)
    accountant.check()
    assert len(accountant.entries) == charges  # all that fits, and nothing more
    assert accountant.spent.epsilon <= COST * charges * (1.0 + 1e-12)
    # those that died after they had charged could not say so
    silent = sum(POINTS[number % len(POINTS)] == ("after", "COMMIT") for number in range(kills))
    assert os.path.getsize(f"{path}.notes") == charges - silent


@needs_fork
def test_processes_that_are_killed_lose_no_charge(path):
    kill_and_charge(path, 120, 12)


@needs_fork
@pytest.mark.slow
def test_ten_thousand_charges_by_processes_that_are_killed(path):
    kill_and_charge(path, 10_000, 100)


@needs_fork
def test_processes_that_make_the_ledger_at_once_agree(path):
    waits = [in_child(lambda: charge_all(Accountant.open(path, epsilon=0.8))) for _ in range(8)]
    assert [wait() for wait in waits] == [0] * 8
    assert len(Accountant.open(path).entries) == 8


# Sums


@given(
    st.lists(
        st.one_of(
            st.floats(0.0, 1e300), st.floats(0.0, 1.0), st.sampled_from([0.1, 1e-17, 5e-324, 1e16])
        ),
        max_size=60,
    )
)
@settings(deadline=None)
def test_totals_are_those_of_fsum(terms):
    total: tuple[float, ...] = ()
    for term in terms:
        total = added(total, term)
    assert math.fsum(total) == math.fsum(terms)
    assert len(total) <= 45  # 2,098 bits


def test_totals_beyond_float64_do_not_fit():
    assert added(added((), 1.7e308), 1.7e308) == (math.inf,)
    assert added((math.inf,), 1.0) == (math.inf,)
    accountant = Accountant(1.7e308)
    accountant.charge(Guarantee(1.7e308))
    with pytest.raises(BudgetExceeded, match=r"of which epsilon=1.7e\+308"):
        accountant.charge(Guarantee(1.7e308))


REQUESTS = st.builds(
    Guarantee,
    st.one_of(st.sampled_from([0.1, 0.25, 1e-3, 0.0]), st.floats(0.0, 0.6)),
    st.sampled_from([0.0, 1e-7, 5e-7]),
    st.one_of(st.none(), st.sampled_from([1e-3, 0.02])),
    neighbors=st.sampled_from(["swap", "add-remove"]),
)


@given(st.lists(REQUESTS, max_size=12), st.sampled_from(["basic", "zcdp"]), st.booleans())
@settings(deadline=None, max_examples=40)
def test_ledger_accepts_and_refuses_what_an_accountant_does(requests, composition, convert):
    def answers(charge: Callable[[Guarantee], None]) -> list[str]:
        found = []
        for request in requests:
            try:
                charge(request)
            except ValueError as error:
                found.append(f"{type(error).__name__}: {error}")
            else:
                found.append("")
        return found

    budget = dict(epsilon=1.0, delta=1e-6, composition=composition, convert=convert)
    memory = Accountant(**budget)
    with TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else None) as folder:
        file = Accountant.open(os.path.join(folder, "x"), **budget)
        assert answers(file.charge) == answers(memory.charge)
        assert file.history == memory.history
        assert (file.spent, file.remaining) == (memory.spent, memory.remaining)
        assert [entry[::2] for entry in file.entries] == [entry[::2] for entry in memory.entries]
        file.check()
