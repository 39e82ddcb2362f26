"""A budget in a file: processes share it, and it outlives them.

**What is durable.** A charge is one SQLite transaction that takes the write lock before it reads
(``BEGIN IMMEDIATE``), finds what is spent, refuses or adds an entry, and commits. With
``synchronous=EXTRA`` and a rollback journal, the entry, and that the journal is gone, are on the
disk before `charge` returns, so before the release reads a record. Who dies before the commit has
charged nothing, and released nothing; who dies after it has charged. If the commit itself reports
an error, nothing is released, and the charge may stand.

**Why no write-ahead log.** It needs memory that all processes share, which those of several
machines do not have. The rollback journal needs file locks only.

**Connections** are opened for one transaction and closed after it. So nothing is left that a
forked child, another thread or a pickled copy could use by mistake, and a file that was moved away
is not charged behind the back of its successor. A fork waits until no thread of the process is
inside a transaction: a child that inherited one would undo it when it drops its copy.

**Sums** are exact. Each entry holds the totals up to it, as the floats of `accounting.added`,
whose sum is exact; so a charge reads the last entry alone, however many there are, and accepts and
refuses what an `Accountant` in memory does, bit for bit.

**A new file** is made under another name, and gets its own when it is whole, unless another process
was first: nobody sees one that is empty, or half of one. So an empty file is a ledger that lost
what was in it, or never was one.

**The chain.** Each entry holds the SHA-256 of itself and of the hash before it, the first one that
of the budget. Triggers refuse to change or delete entries. Both are against accidents: who may
write the file can forge all of it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from dpq_fast._checks import check_choice, check_delta
from dpq_fast.privacy.accounting import COMPOSITIONS, Accountant, Entry, Totals, now
from dpq_fast.privacy.guarantees import Guarantee
from dpq_fast.privacy.relations import relation_of

# In the header of the file: "dpqL", and the version of what follows.
APPLICATION = 0x6470714C
VERSION = 1

# Seconds that a lock is waited for at a time, since a fork of another thread waits meanwhile,
WAIT = 0.1
# between two tries, and in all.
PAUSE = 0.002
PATIENCE = 60.0

BEGIN_WRITE = "BEGIN IMMEDIATE"
BEGIN_READ = "BEGIN"
JOURNAL = "DELETE"

SCHEMA = {
    "budget": """CREATE TABLE budget (
    identity TEXT NOT NULL,
    made TEXT NOT NULL,
    epsilon REAL NOT NULL,
    delta REAL NOT NULL,
    neighbors TEXT NOT NULL,
    composition TEXT NOT NULL
)""",
    "entries": """CREATE TABLE entries (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    made TEXT NOT NULL,
    what TEXT NOT NULL,
    epsilon REAL,
    delta REAL NOT NULL,
    rho REAL,
    bounded_range REAL,
    neighbors TEXT NOT NULL,
    composition TEXT NOT NULL,
    totals TEXT NOT NULL,
    hash TEXT NOT NULL
)""",
    "one_budget": """CREATE TRIGGER one_budget BEFORE INSERT ON budget
WHEN EXISTS (SELECT 1 FROM budget)
BEGIN SELECT RAISE(ABORT, 'a ledger has one budget'); END""",
    # a row of a number that is there would replace it, where it is inserted "or replace"
    "next_number": """CREATE TRIGGER next_number BEFORE INSERT ON entries
WHEN NEW.number IS NOT (SELECT coalesce(max(number), 0) + 1 FROM entries)
BEGIN SELECT RAISE(ABORT, 'entries of a ledger are numbered in turn'); END""",
    **{
        f"no_{action.lower()}_of_{table}": f"""CREATE TRIGGER no_{action.lower()}_of_{table}
BEFORE {action} ON {table}
BEGIN SELECT RAISE(ABORT, 'a ledger is never changed, only added to'); END"""
        for table in ("budget", "entries")
        for action in ("UPDATE", "DELETE")
    },
}

# The columns of an entry, up to its hash.
COLUMNS = "number, made, what, epsilon, delta, rho, bounded_range, neighbors, composition, totals"
INSERT = f"INSERT INTO entries ({COLUMNS}, hash) VALUES ({', '.join('?' * 11)})"
ENTRIES = f"SELECT {COLUMNS}, hash FROM entries ORDER BY number"
LAST = f"{ENTRIES} DESC LIMIT 1"

_T = TypeVar("_T")
_Work = Callable[[sqlite3.Connection], _T]

# Held in a transaction, and by a thread that forks.
_LOCK = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release
    )


class Budget(NamedTuple):
    """The one row of a ledger's budget.

    Attributes
    ----------
    identity : str
        A random name of this ledger.
    made : str
        When.
    epsilon, delta, neighbors, composition
        As of `Accountant`.
    """

    identity: str
    made: str
    epsilon: float
    delta: float
    neighbors: str
    composition: str


class Ledger(Accountant):
    r"""A budget in a file, made by `Accountant.open`.

    Parameters
    ----------
    path, epsilon, delta, neighbors, composition, convert
        As of `Accountant.open`.

    Raises
    ------
    TypeError, ValueError, OSError
        As of `Accountant.open`. Every use raises `ValueError` if the file is no longer the ledger
        that was opened, its last entry was changed, entries that were there are missing, or the
        ledger was closed; `TimeoutError` if others hold the file for a minute; `PermissionError`
        at a charge if it may not be written; and another `OSError` where the disk fails. Nothing
        is released then.

    Notes
    -----
    Processes and threads may charge one file at the same time; all charges together stay within
    the budget. A `Ledger` may be used in forked children, and be pickled: it is opened again by
    its path.

    What it needs: a file system whose locks work between all who charge (local disks do, NFS
    where its lock service runs; folders that are copied to and fro, as by Dropbox, do not), one
    path (no hard links but the one by which a new file gets its name), and a disk that has written
    what it says it has. A copy or a backup of the file is another budget; one that is put back has
    forgotten what was spent since, which only a `Ledger` that was open before notices. Copy it
    while nobody charges. Do not open it by other means in a process that charges it: on POSIX its
    locks go when any handle of the file is closed.

    The text of `noted`, times and guarantees are public facts about releases; the file holds
    nothing of the records. Who may write it can forge it.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
        neighbors: str = "swap",
        composition: str = "basic",
        convert: bool = False,
    ) -> None:
        try:
            self._path = os.path.abspath(os.fsdecode(path))
        except TypeError:
            raise TypeError(f"path must be a string or a path, got {type(path).__name__}") from None
        if "\0" in self._path:  # where C would end it
            raise ValueError(f"path must hold no null character, got {self._path!r}")
        wanted: dict[str, Any] = dict(delta=check_delta(delta), neighbors=neighbors)
        relation_of(neighbors)
        wanted["composition"] = check_choice("composition", composition, COMPOSITIONS)
        if epsilon is not None:
            super().__init__(epsilon, convert=convert, **wanted)
            wanted["epsilon"] = self._epsilon
        else:
            defaults = dict(delta=0.0, neighbors="swap", composition="basic")
            wanted = {name: value for name, value in wanted.items() if value != defaults[name]}
        self._is_open = True
        self._file: Budget | None = None
        # The number and the hash of an entry that is in the file.
        self._seen = (0, "")
        if not os.path.isdir(folder := os.path.dirname(self._path)):
            raise FileNotFoundError(f"path must lie in a folder that exists, got {folder!r}")
        left = f"{self._path}-journal"
        is_left = os.path.exists(left)  # looked for first: others may make the ledger and charge it
        if not os.path.exists(self._path):
            if epsilon is None:
                raise FileNotFoundError(
                    f"epsilon must be given for a new ledger, got None and no file {self._path!r}"
                )
            if is_left:  # which SQLite would undo the new one by
                raise FileExistsError(
                    f"a new ledger must have no journal of another one beside it, got {left!r}: "
                    "move it back to the ledger that it belongs to, or remove it"
                )
            self._make()
        found = self._transact(self._budget_of)
        if found is None:
            raise ValueError(
                f"path must be a ledger, or no file yet, got an empty file {self._path!r}: if it "
                "was a ledger, what was spent is lost, so put a copy of it in its place; if it "
                "never was, remove it"
            )
        if any(getattr(found, name) != value for name, value in wanted.items()):
            stated = ", ".join(
                f"{name}={wanted[name]!r}" for name in Budget._fields if name in wanted
            )
            raise ValueError(
                f"the budget must be that of the ledger, {_stated(found)}, got {stated}"
            )
        super().__init__(*found[2:], convert=convert)
        self._file = found

    @property
    def path(self) -> str:
        """Where the file is."""
        return self._path

    def close(self) -> None:
        """Take no more charges. Nothing is left open between charges, so nothing is lost."""
        self._is_open = False

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        self._require_open()
        return _reopened, (self._path, self._convert, self._file, self._seen)

    def __repr__(self) -> str:
        try:
            balance = self._balance()
        except (OSError, ValueError) as error:
            balance = str(error)
        return f"<{type(self).__name__} {self._path!r} of {self._budget()}: {balance}>"

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The charges, in the order in which they were made, by whom ever."""
        return self._transact(self._read)

    def check(self) -> None:
        """Check the whole file, from the first entry to the last.

        Raises
        ------
        ValueError
            If the file is damaged, is not as it was made, an entry is missing or was changed, or
            the entries are beyond the budget.
        OSError
            If the file cannot be read.
        """
        self._transact(self._check)

    # --- Transactions -----------------------------------------------------------------------------

    def _require_open(self) -> None:
        if not self._is_open:
            raise ValueError(f"a ledger must be open to be used, got {self._path!r}, closed")

    def _transact(self, work: _Work[_T], *, write: bool = False, new: str | None = None) -> _T:
        """What `work` gives in a transaction of its own, which may be begun several times.

        In the file, or in a `new` one.
        """
        self._require_open()
        begun = os.times().elapsed
        while True:
            try:
                with _LOCK:
                    return self._attempt(work, write, new)
            except sqlite3.Error as error:
                self._explain(error)
            if os.times().elapsed - begun >= PATIENCE:
                raise TimeoutError(
                    f"a ledger must be free within {PATIENCE:g} seconds, got {self._path!r}, "
                    "which others hold"
                )
            threading.Event().wait(PAUSE)

    def _attempt(self, work: _Work[_T], write: bool, new: str | None) -> _T:
        name = f"{Path(new or self._path).as_uri()}?mode={'rwc' if new else 'rw'}"
        opened = sqlite3.connect(name, uri=True, timeout=WAIT, isolation_level=None)
        with closing(opened) as connection:  # which rolls back what was not committed
            self._is_ledger(connection)  # before anything is written
            if write:
                connection.execute("PRAGMA synchronous=EXTRA")
                connection.execute("PRAGMA fullfsync=1")  # on macOS, where fsync stops halfway
                (journal,) = connection.execute(f"PRAGMA journal_mode={JOURNAL}").fetchone()
                if journal != "delete":
                    raise OSError(f"a ledger must have a rollback journal, got {journal!r}")
            connection.execute(BEGIN_WRITE if write else BEGIN_READ)
            result = work(connection)
            connection.execute("COMMIT")
            return result

    def _explain(self, error: sqlite3.Error) -> None:
        """Raise what an error of SQLite means; return for one of patience."""
        text = str(error)
        if isinstance(error, sqlite3.OperationalError):
            if "locked" in text:
                return
            if "readonly" in text:
                raise PermissionError(
                    f"a ledger must be writable to be charged, got {self._path!r}: {text}"
                ) from error
            if any(word in text for word in ("unable to open", "disk", "full")):
                raise OSError(f"a ledger must be readable, got {self._path!r}: {text}") from error
        raise ValueError(f"path must be a ledger, got {self._path!r}: {text}") from error

    def _is_ledger(self, connection: sqlite3.Connection) -> bool:
        """Whether the file is a ledger; False for an empty one, an error for any other."""
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application == APPLICATION:
            if version != VERSION:
                raise ValueError(
                    f"a ledger must be of version {VERSION}, got {self._path!r} of version "
                    f"{version}"
                )
            return True
        (objects,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application or version or objects:
            raise ValueError(f"path must be a ledger, got {self._path!r}, another data base")
        return False

    def _budget_of(self, connection: sqlite3.Connection) -> Budget | None:
        """The budget of the file, which must still be that of this ledger; None if it is empty."""
        if not self._is_ledger(connection):
            if self._file is not None:
                raise ValueError(
                    f"path must still be the ledger that was opened, got an empty {self._path!r}"
                )
            return None
        rows = connection.execute(f"SELECT {', '.join(Budget._fields)} FROM budget").fetchall()
        if len(rows) != 1:
            raise ValueError(f"a ledger must have one budget, got {len(rows)} in {self._path!r}")
        budget = Budget(*rows[0])
        if self._file is not None and budget != self._file:
            raise ValueError(
                f"path must still be the ledger that was opened, got another one in {self._path!r}"
            )
        return budget

    def _make(self) -> None:
        """Make the file, unless another process has made it by now."""
        new = f"{self._path}-{secrets.token_hex(8)}"
        try:
            self._transact(self._fill, write=True, new=new)
            try:
                os.link(new, self._path)
            except FileExistsError:
                pass
            except OSError as error:
                raise OSError(
                    "a new ledger must lie where files can have two names (hard links), got "
                    f"{self._path!r}: {error}"
                ) from error
        finally:
            with suppress(FileNotFoundError):
                os.unlink(new)

    def _fill(self, connection: sqlite3.Connection) -> None:
        """The tables of a new file, and its budget."""
        for statement in SCHEMA.values():
            connection.execute(statement)
        budget = Budget(
            secrets.token_hex(16),
            now().isoformat(timespec="microseconds"),
            self._epsilon,
            self._delta,
            self._neighbors,
            self._composition,
        )
        connection.execute(f"INSERT INTO budget VALUES ({', '.join('?' * 6)})", budget)
        connection.execute(f"PRAGMA application_id={APPLICATION}")
        connection.execute(f"PRAGMA user_version={VERSION}")

    def _last(self, connection: sqlite3.Connection) -> tuple[int, Totals, str]:
        """The number, totals and hash of the last entry, which must be whole."""
        budget = self._budget_of(connection)
        assert budget is not None
        row = connection.execute(LAST).fetchone()
        number, hash_ = (0, _hashed("", budget)) if row is None else (row[0], row[-1])
        self._find_missing(connection, number)
        totals = self._nothing()
        if row is not None:
            before = self._hash_of(connection, number - 1, budget)
            if hash_ != _hashed(before, row[:-1]):
                raise ValueError(f"entry {number} must be as it was made, got a changed one")
            totals = _read_totals(row[-2])
        self._seen = number, hash_
        return number, totals, hash_

    def _find_missing(self, connection: sqlite3.Connection, number: int) -> None:
        """Refuse a file whose last entry is not the last that there was."""
        made = connection.execute(
            "SELECT seq FROM sqlite_sequence WHERE name = 'entries'"
        ).fetchone()
        seen, hash_ = self._seen
        if number != (0 if made is None else made[0]) or number < seen:
            raise ValueError(
                f"a ledger must keep its entries, got {number} of "
                f"{max(seen, 0 if made is None else made[0])} in {self._path!r}"
            )
        if seen and self._hash_of(connection, seen, None) != hash_:
            raise ValueError(
                f"a ledger must keep its entries, got another entry {seen} in {self._path!r} than "
                "there was"
            )

    def _hash_of(self, connection: sqlite3.Connection, number: int, budget: Budget | None) -> str:
        """The hash of an entry; of number 0, that of the budget."""
        if number == 0 and budget is not None:
            return _hashed("", budget)
        row = connection.execute("SELECT hash FROM entries WHERE number = ?", (number,)).fetchone()
        if row is None:
            raise ValueError(f"a ledger must keep its entries, got no entry {number}")
        hash_: str = row[0]
        return hash_

    def _record(self, what: str, charged: Guarantee) -> None:
        self._seen = self._transact(partial(self._append, what, charged), write=True)

    def _append(
        self, what: str, charged: Guarantee, connection: sqlite3.Connection
    ) -> tuple[int, str]:
        """The number and the hash of a new entry, or `BudgetExceeded`."""
        number, totals, before = self._last(connection)
        row = (
            number + 1,
            now().isoformat(timespec="microseconds"),
            what,
            *map(_plain, (charged.epsilon, charged.delta, charged.rho, charged.bounded_range)),
            charged.neighbors,
            charged.composition,
            _written_totals(self._fitting(totals, charged)),
        )
        hash_ = _hashed(before, row)
        connection.execute(INSERT, (*row, hash_))
        return number + 1, hash_

    def _state(self) -> tuple[int, Totals]:
        number, totals, _ = self._transact(self._last)
        return number, totals

    def _read(self, connection: sqlite3.Connection) -> tuple[Entry, ...]:
        self._budget_of(connection)
        return tuple(map(_entry, connection.execute(ENTRIES)))

    def _check(self, connection: sqlite3.Connection) -> None:
        budget = self._budget_of(connection)
        assert budget is not None
        (found,) = connection.execute("PRAGMA integrity_check").fetchone()
        if found != "ok":
            raise ValueError(f"the file of a ledger must be whole, got {self._path!r}: {found}")
        objects = dict(
            connection.execute(
                "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'"
            )
        )
        if changed := sorted({name for name, _ in objects.items() ^ SCHEMA.items()}):
            raise ValueError(
                f"a ledger must have the tables and triggers that it was made with, got others for "
                f"{', '.join(changed)}"
            )
        totals, hash_, number = self._nothing(), _hashed("", budget), 0
        for number, row in enumerate(connection.execute(ENTRIES), start=1):
            if row[0] != number:
                raise ValueError(f"entries must be numbered in turn, got {row[0]} for {number}")
            if row[-1] != _hashed(hash_, row[:-1]):
                raise ValueError(f"entry {number} must be as it was made, got a changed one")
            hash_ = row[-1]
            expected = self._with(totals, self._accepted(_entry(row).guarantee))
            totals = _read_totals(row[-2])
            # not bit for bit: another version may round the rho of an epsilon otherwise
            if not all(
                math.isclose(math.fsum(sum_), math.fsum(other), rel_tol=1e-9)
                for sum_, other in zip(totals, expected, strict=True)
            ):
                raise ValueError(f"entry {number} must hold the totals up to it, got others")
            if not self._fits(totals):
                raise ValueError(
                    f"entries must fit the budget of {self._budget()}, got more than that by "
                    f"entry {number}"
                )
        self._find_missing(connection, number)


def _reopened(path: str, convert: bool, budget: Budget, seen: tuple[int, str]) -> Ledger:
    """A ledger that was pickled."""
    ledger = Ledger(path, convert=convert)
    ledger._file, ledger._seen = budget, seen
    ledger._state()  # refuses another file, and one that has lost entries
    return ledger


def _stated(budget: Budget) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in list(budget._asdict().items())[2:])


def _plain(value: float | None) -> float | None:
    """A float of Python's, without the sign of a zero, which SQLite does not keep."""
    return None if value is None else float(value) + 0.0


def _hashed(before: str, row: Sequence[Any]) -> str:
    """The hash of a row and of the one before it: SHA-256 of their JSON, floats in hexadecimals."""
    fields = [value.hex() if isinstance(value, float) else value for value in row]
    return hashlib.sha256(json.dumps([before, *fields]).encode()).hexdigest()


def _written_totals(totals: Totals) -> str:
    return ";".join(" ".join(map(float.hex, total)) for total in totals)


def _read_totals(text: str) -> Totals:
    return tuple(tuple(map(float.fromhex, total.split())) for total in text.split(";"))


def _entry(row: Sequence[Any]) -> Entry:
    number, made, what, *statements = row[:9]
    return Entry(number, datetime.fromisoformat(made), what, Guarantee(*statements))
