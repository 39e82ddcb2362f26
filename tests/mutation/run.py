"""Mutation testing of all Python that touches privacy: ``python tests/mutation/run.py``.

Each mutant is a small fault in one function. A process that has collected the whole suite forks a
child for it; the child puts the fault into the living function, and runs the tests that come by
its lines until one fails. Results are kept in ``.mutation/``, by the function's code: a second run
does only what has changed, and what had survived when the tests have changed. The lines that tests
come by are kept by file of tests. ``--tests`` collects some files and folders alone: what lives
through these tests is told as alive. Tests of engines run where the engines are installed.

``--report`` writes no more than the score, and every survivor that ``survivors.toml`` does not
explain, or explains though it is dead. Needs coverage, and Python 3.11 or newer.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import importlib
import inspect
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import types
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import _lru_cache_wrapper, cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import tomllib
from mutants import Faults, Mutant

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "dpq_fast"
STORE = ROOT / ".mutation"
SURVIVORS = Path(__file__).with_name("survivors.toml")
# All Python between a public argument and a release.
WINGS = (
    *("privacy", "mechanisms", "released", "laws", "orders", "data", "noise"),
    *("engines", "compat", "planning", "cli"),
)
MODULES = (
    "_arguments",
    "_checks",
    *(
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        for wing in WINGS
        for path in sorted((PACKAGE / wing).rglob("*.py"))
        if path.stem != "__init__"
    ),
)
# Slow tests have faster ones beside them.
ARGUMENTS = ["-q", "-s", "-m", "not slow", "-p", "no:cacheprovider", "-n", "0"]
# What reads default arguments without a call.
SIGNATURES = "tests/reference/test_signatures.py"
# Seconds of tests for one mutant, as long as they took when the lines were recorded.
BUDGET = 40.0
# A test hangs if it computes for this many seconds more, and this many times as long; or if it
# waits for this many times as long again.
PATIENCE, SLOWER, WAITING = 4.0, 6.0, 20.0
# Bytes that a mutant may take on top of what the suite takes.
MEMORY = 4 << 30


class Job(NamedTuple):
    """A mutant of a module, and what is known of it under which key."""

    module: str
    mutant: Mutant

    @property
    def key(self) -> str:
        return "|".join((self.module, self.mutant.function, self.mutant.change, self.mutant.digest))

    @property
    def name(self) -> str:
        """How ``survivors.toml`` calls it."""
        return f"{self.mutant.function or '(import)'}: {self.mutant.change}"


# --- What is known


def digest_of(paths: Iterable[Path]) -> str:
    found = hashlib.sha256()
    for path in sorted(paths):
        found.update(str(path.relative_to(ROOT)).encode())
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


def tests_digest() -> str:
    return digest_of((ROOT / "tests").rglob("*.py"))


def lines_digest(file: str) -> str:
    """Of a file of tests, and of all that these tests come by."""
    shared = [
        path
        for path in (ROOT / "tests").rglob("*.py")
        if not path.name.startswith("test_") and path.parent != SURVIVORS.parent
    ]
    return digest_of([ROOT / file, *map(path_of, MODULES), *shared])


def read_results() -> dict[str, dict[str, Any]]:
    path = STORE / "results.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return {record["key"]: record for record in map(json.loads, lines)}


def explained() -> dict[str, dict[str, str]]:
    """For each module, the mutants that no test can tell from the code, and why."""
    return tomllib.loads(SURVIVORS.read_text())


def path_of(module: str) -> Path:
    return PACKAGE / f"{module.replace('.', '/')}.py"


@cache
def faults_of(module: str) -> Faults:
    path = path_of(module)
    return Faults(path.read_text(), str(path))


# --- What runs


class Living:
    """What runs in this process, found once: a look at all objects takes longer than most tests.

    Attributes
    ----------
    functions : dict
        By the file that they are written in.
    caches : list
        Of the package and of the tests.
    """

    def __init__(self) -> None:
        self.functions: dict[str, list[types.FunctionType]] = defaultdict(list)
        self.caches: list[Any] = []
        gc.unfreeze()  # objects that the suite has frozen are not told
        for found in gc.get_objects():
            if type(found) is types.FunctionType:
                self.functions[found.__code__.co_filename].append(found)
            elif type(found) is _lru_cache_wrapper:
                module = sys.modules.get(found.__module__)
                if str(getattr(module, "__file__", "")).startswith(str(ROOT)):
                    self.caches.append(found)

    def forget_answers(self) -> None:
        """Empty the caches: what is in them was computed by other code, or for another test."""
        for kept in self.caches:
            kept.cache_clear()


# --- Which test comes by which line


class Lines(NamedTuple):
    """For each module and line the tests that come by, and how long each test takes."""

    tests: dict[str, dict[int, list[str]]]
    seconds: dict[str, float]


class Recorder:
    """Runs tests under coverage, each in a context of its own, in a few forks by file.

    Leaves out the files of which the lines are known.
    """

    def __init__(self, workers: int, stale: bool) -> None:
        self._workers, self._stale = workers, stale

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        files: dict[str, list[pytest.Item]] = defaultdict(list)
        for item in session.items:
            files[str(item.path.relative_to(ROOT))].append(item)
        queue = [(file, items) for file, items in files.items() if not self._is_known(file)]
        if not queue:
            return True
        print(f"recording the lines that {len(queue)} files of tests come by", flush=True)
        # the longest first; every worker reads its next file from one pipe
        queue.sort(key=lambda pair: len(pair[1]), reverse=True)
        take, give = os.pipe()
        os.write(give, bytes(range(len(queue))))
        os.close(give)
        living = Living()
        children = []
        for _ in range(self._workers):
            child = os.fork()
            if child == 0:
                try:
                    self._record(session, queue, take, living)
                finally:
                    os._exit(0)
            children.append(child)
        for child in children:
            os.waitpid(child, 0)
        return True

    def _is_known(self, file: str) -> bool:
        known = lines_path(file)
        if not known.exists():
            return False
        return self._stale or json.loads(known.read_text())["digest"] == lines_digest(file)

    def _record(
        self,
        session: pytest.Session,
        queue: list[tuple[str, list[pytest.Item]]],
        take: int,
        living: Living,
    ) -> None:
        import coverage

        while number := os.read(take, 1):
            file, items = queue[number[0]]
            recording = coverage.Coverage(data_file=None, source=[str(PACKAGE)])
            recording.start()
            seconds: dict[str, float] = {}
            for item, following in zip(items, [*items[1:], None], strict=True):
                living.forget_answers()
                recording.switch_context(item.nodeid)
                start, failed = time.process_time(), session.testsfailed
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if session.testsfailed == failed:
                    seconds[item.nodeid] = time.process_time() - start
            recording.stop()
            data = recording.get_data()
            tests = {}
            for module in MODULES:
                lines = data.contexts_by_lineno(str(path_of(module)))
                tests[module] = {
                    line: [test for test in contexts if test in seconds]
                    for line, contexts in lines.items()
                }
            known = {"digest": lines_digest(file), "tests": tests, "seconds": seconds}
            lines_path(file).write_text(json.dumps(known))


def lines_path(file: str) -> Path:
    """Where the lines are kept that the tests of a file come by."""
    return STORE / "lines" / f"{file.replace('/', '.')}.json"


def known_lines(collected: list[str], workers: int, stale: bool) -> Lines:
    """Of all files of tests, those that are not known recorded if they are collected."""
    (STORE / "lines").mkdir(exist_ok=True)
    child = os.fork()  # what the recording imports and keeps must not be there later
    if child == 0:
        pytest.main([*ARGUMENTS, *collected], plugins=[Recorder(workers, stale)])
        os._exit(0)
    os.waitpid(child, 0)
    lines = Lines({module: defaultdict(list) for module in MODULES}, {})
    for path in sorted((STORE / "lines").iterdir()):
        known = json.loads(path.read_text())
        lines.seconds.update(known["seconds"])
        for module, found in known["tests"].items():
            for line, names in found.items():
                lines.tests[module][int(line)] += names
    return lines


# --- A fault in a living function


def code_within(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from code_within(constant)


def place_of(code: types.CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def our_modules() -> list[types.ModuleType]:
    return [
        module
        for module in list(sys.modules.values())
        if str(getattr(module, "__file__", "")).startswith(str(ROOT))
    ]


def put_in(job: Job, faults: Faults, living: Living) -> None:
    """Give this process the fault."""
    path = str(path_of(job.module))
    code = faults.compiled(job.mutant)
    if job.mutant.function and not job.mutant.default:
        outermost = job.mutant.function, job.mutant.first
        changed = {
            place_of(inner): inner
            for found in code_within(code)
            if place_of(found) == outermost
            for inner in code_within(found)
        }
        reached = 0
        for function in living.functions[path]:
            new = changed.get(place_of(function.__code__))
            if new is not None:
                function.__code__ = new
                reached += place_of(new) == outermost
        assert reached, f"no living function {outermost}"
    else:
        module = importlib.import_module(f"dpq_fast.{job.module}")
        copy = types.ModuleType(module.__name__)
        copy.__file__, copy.__package__ = path, module.__package__
        original = sys.modules[module.__name__]
        sys.modules[module.__name__] = copy  # dataclasses look there
        try:
            exec(code, copy.__dict__)
        finally:
            sys.modules[module.__name__] = original
        if job.mutant.default:
            new = copy
            for part in job.mutant.function.split("."):
                new = getattr(new, part)
            new = unwrapped(new)
            for function in living.functions[path]:
                if place_of(function.__code__) == place_of(new.__code__) and function is not new:
                    function.__defaults__ = new.__defaults__
                    function.__kwdefaults__ = new.__kwdefaults__
                    show_signature(function, living)
        else:
            rebind(vars(module), vars(copy), job.mutant.names)
    living.forget_answers()


def show_signature(function: types.FunctionType, living: Living) -> None:
    """Let what wraps a function show its defaults, where it shows a signature of its own."""
    for wrappers in living.functions.values():
        for wrapper in wrappers:
            if getattr(wrapper, "__wrapped__", None) is function:
                wrapper.__signature__ = inspect.signature(function)


def unwrapped(function: Any) -> Any:
    """The function under decorators, classmethods and properties."""
    function = getattr(function, "fget", None) or getattr(function, "__func__", function)
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def rebind(old: dict[str, Any], new: dict[str, Any], names: tuple[str, ...]) -> None:
    """Give every module the changed constants, and those that follow from them."""
    for name in names:
        if "." in name:
            owner, attribute = name.split(".")
            setattr(old[owner], attribute, getattr(new[owner], attribute))
            for made in ("__init__", "__new__"):  # of dataclasses and named tuples
                ours, theirs = (getattr(found[owner], made) for found in (old, new))
                if isinstance(ours, types.FunctionType):
                    ours.__defaults__ = theirs.__defaults__
                    ours.__kwdefaults__ = theirs.__kwdefaults__
    plain = (bool, int, float, str, tuple, dict, frozenset)
    for name, value in new.items():
        before = old.get(name)
        if name.startswith("__") or not (name in names or type(value) in plain):
            continue
        if name not in names and repr(before) == repr(value):
            continue
        for module in our_modules():
            if name in vars(module) and vars(module)[name] is before:
                setattr(module, name, value)


# --- One child for each mutant


class Runner:
    """Runs mutants in forks of a process that has collected the suite."""

    def __init__(self, jobs: list[Job], lines: Lines, workers: int, budget: float) -> None:
        self._jobs, self._lines = jobs, lines
        self._workers, self._budget = workers, budget
        self._faults = {job.module: faults_of(job.module) for job in jobs}
        self._killers: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self._spread = Counter(
            test for tests in lines.tests.values() for names in tests.values() for test in names
        )
        self._digest = tests_digest()

    def pytest_sessionstart(self) -> None:
        from hypothesis import Phase, settings

        # a failing example does not have to be small, or told
        settings.register_profile(
            "mutation", settings.default, phases=(Phase.explicit, Phase.generate)
        )
        settings.load_profile("mutation")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._items = {item.nodeid: item for item in session.items}
        for module in self._faults:
            importlib.import_module(f"dpq_fast.{module}")
        self._living = Living()
        gc.collect()
        gc.freeze()
        running: dict[int, tuple[Job, float, Path, int]] = {}
        waiting = iter(self._jobs)
        done, start = 0, time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            while True:
                while len(running) < self._workers and (job := next(waiting, None)):
                    tests = self._tests_of(job)
                    if not tests:
                        self._keep(job, "unreached", None, 0.0, 0)
                        done += 1
                        continue
                    slot = Path(folder, f"{time.monotonic_ns()}")
                    slot.mkdir()
                    pid = os.fork()
                    if pid == 0:
                        self._child(job, [self._items[test] for test in tests], session, slot)
                    running[pid] = job, time.perf_counter(), slot, len(tests)
                if not running:
                    return True
                pid, status = os.wait()
                job, begun, slot, number = running.pop(pid)
                try:
                    os.killpg(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                outcome, killer = verdict(status, slot)
                shutil.rmtree(slot, ignore_errors=True)
                if killer:
                    self._killers[job.module, job.mutant.function][killer] += 1
                self._keep(job, outcome, killer, time.perf_counter() - begun, number)
                done += 1
                if done % 50 == 0:
                    took = time.perf_counter() - start
                    print(f"{done} of {len(self._jobs)} mutants in {took:.0f} s", flush=True)

    def _tests_of(self, job: Job) -> list[str]:
        """The tests that come by, likely killers first, as many as the budget allows."""
        recorded = self._lines.tests[job.module]
        lines: Iterable[int] = job.mutant.lines
        if job.mutant.default:
            lines = range(job.mutant.first, job.mutant.last + 1)
        if job.mutant.names:
            users = [name.split(".")[-1] for name in job.mutant.names]
            reached = set(self._users(self._faults[job.module].following(users)))
        else:
            reached = {test for line in lines for test in recorded.get(line, ())}
        if job.mutant.default:
            reached |= {test for test in self._items if test.startswith(SIGNATURES)}
        reached &= self._lines.seconds.keys() & self._items.keys()
        *wing, stem = job.module.split(".")
        own = "/".join(["tests", *wing, f"test_{stem.removeprefix('_')}.py"])
        killers = self._killers[job.module, job.mutant.function]
        seconds = self._lines.seconds

        def rank(test: str) -> tuple[int, float]:
            away = 1.0 if test.startswith(own) else 3.0
            return -killers[test], (seconds[test] + 0.01) * away * self._spread[test] ** 0.5

        chosen, total = [], 0.0
        for test in sorted(reached, key=rank):
            # one long test more than the budget allows, if it is all there is
            if total and total + seconds[test] > self._budget:
                continue
            chosen.append(test)
            total += seconds[test]
        return chosen

    def _users(self, names: list[str]) -> Iterator[str]:
        """Tests that come by a line where one of these names stands."""
        for module in MODULES:
            text = path_of(module).read_text().splitlines()
            for number, line in enumerate(text, 1):
                if any(name in line for name in names):
                    yield from self._lines.tests[module].get(number, ())

    def _child(
        self, job: Job, items: list[pytest.Item], session: pytest.Session, slot: Path
    ) -> None:
        """Run the tests with the fault until one fails; never returns."""
        code = 3
        try:
            os.setpgid(0, 0)
            silence = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(silence, stream)
            os.environ["PYTEST_DEBUG_TEMPROOT"] = os.environ["TMPDIR"] = str(slot)
            tempfile.tempdir = None
            limit = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (limit + MEMORY, limit + MEMORY))
            put_in(job, self._faults[job.module], self._living)
            code = 0
            for place, item in enumerate(items):
                following = items[place + 1] if place + 1 < len(items) else None
                (slot / "test").write_text(item.nodeid)
                allowed = PATIENCE + SLOWER * self._lines.seconds[item.nodeid]
                signal.setitimer(signal.ITIMER_PROF, allowed)
                signal.setitimer(signal.ITIMER_REAL, WAITING * allowed)
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if session.testsfailed:
                    code = 1
                    break
        except BaseException as error:
            (slot / "error").write_text(repr(error))
        finally:
            os._exit(code)

    def _keep(self, job: Job, outcome: str, killer: str | None, seconds: float, tests: int) -> None:
        record = {
            "key": job.key,
            "outcome": outcome,
            "killer": killer,
            "seconds": round(seconds, 2),
            "tests": tests,
            "suite": self._digest,
        }
        with (STORE / "results.jsonl").open("a") as results:
            results.write(json.dumps(record) + "\n")


def verdict(status: int, slot: Path) -> tuple[str, str | None]:
    """What became of a mutant, and by which test."""
    test = (slot / "test").read_text() if (slot / "test").exists() else None
    if os.WIFSIGNALED(status):
        late = os.WTERMSIG(status) in (signal.SIGALRM, signal.SIGPROF)
        return "timeout" if late else "crashed", test
    code = os.WEXITSTATUS(status)
    if code == 3 and (slot / "error").exists():
        # a fault that cannot be put in is none; a test that ends the process is a kill
        return ("killed" if test else f"failed: {(slot / 'error').read_text()}"), test
    return ("killed", test) if code else ("survived", None)


def run(jobs: list[Job], lines: Lines, collected: list[str], workers: int, budget: float) -> None:
    """Collect the tests, and run the mutants inside the session."""
    pytest.main([*ARGUMENTS, *collected], plugins=[Runner(jobs, lines, workers, budget)])


# --- The report


ALIVE = ("survived", "unreached")


def report(jobs: list[Job], results: dict[str, dict[str, Any]]) -> bool:
    """Print the score by module and what survives unexplained; whether all is in order."""
    reasons = explained()
    fine = True
    total: Counter[str] = Counter()
    by_module: dict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        by_module[job.module].append(job)
    print(f"{'module':30} mutants killed explained survivors  score")
    for module, inside in by_module.items():
        known = [(job, results[job.key]) for job in inside if job.key in results]
        usable = [(job, r) for job, r in known if not r["outcome"].startswith("failed")]
        alive = [job for job, r in usable if r["outcome"] in ALIVE]
        said = [job for job in alive if job.name in reasons.get(module, {})]
        counts = Counter(
            mutants=len(usable),
            killed=len(usable) - len(alive),
            explained=len(said),
            survivors=len(alive) - len(said),
            unknown=len(inside) - len(known),
        )
        total.update(counts)
        print_score(module, counts)
    print_score("all", total)
    for module, inside in by_module.items():
        names = {job.name: job for job in inside}
        every = {Job(module, mutant).name for mutant in faults_of(module).mutants}
        for job in inside:
            found = results.get(job.key, {"outcome": "unknown"})
            if found["outcome"] in ALIVE and job.name not in reasons.get(module, {}):
                fine = False
                line = job.mutant.lines[0]
                print(f"{path_of(module).relative_to(ROOT)}:{line}: {found['outcome']}: {job.name}")
            if found["outcome"].startswith("failed"):
                print(f"{module}: {job.name}: {found['outcome']}")
        for name in reasons.get(module, {}):
            outcome = name in names and results.get(names[name].key, {}).get("outcome")
            if name not in every or (outcome and outcome not in ALIVE):
                fine = False
                print(f"{module}: explained, but {'killed' if outcome else 'gone'}: {name}")
    return fine


def print_score(module: str, counts: Counter[str]) -> None:
    score = counts["killed"] / max(1, counts["mutants"])
    unknown = f"  {counts['unknown']} not run" if counts["unknown"] else ""
    print(
        f"{module:30} {counts['mutants']:7} {counts['killed']:6} {counts['explained']:9}"
        f" {counts['survivors']:9} {score:6.1%}{unknown}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--modules", nargs="+", choices=MODULES, default=MODULES)
    parser.add_argument("--function", help="only mutants of functions with this in their name")
    parser.add_argument("--limit", type=int, help="at most this many mutants")
    parser.add_argument("--sample", type=int, help="this many of each module, drawn with --seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tests", nargs="+", default=[], help="files and folders; all of them")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--budget", type=float, default=BUDGET, help="seconds of tests for each")
    parser.add_argument("--again", action="store_true", help="run known survivors again")
    parser.add_argument("--stale", action="store_true", help="do not record the lines again")
    parser.add_argument("--report", action="store_true", help="run nothing")
    options = parser.parse_args()
    STORE.mkdir(exist_ok=True)
    sys.path.insert(0, str(ROOT))
    os.chdir(ROOT)
    jobs = []
    for module in options.modules:
        inside = [
            Job(module, mutant)
            for mutant in faults_of(module).mutants
            if options.function is None or options.function in mutant.function
        ]
        if options.sample is not None:
            drawn = min(options.sample, len(inside))
            inside = random.Random(options.seed).sample(inside, drawn)
        jobs += inside
    if not options.report:
        lines = known_lines(options.tests, options.workers, options.stale)
        results, suite = read_results(), tests_digest()

        def settled(job: Job) -> bool:
            found = results.get(job.key)
            if found is None:
                return False
            alive = found["outcome"] in ALIVE
            return not alive or (found["suite"] == suite and not options.again)

        wanted = [job for job in jobs if not settled(job)][: options.limit]
        print(f"{len(wanted)} of {len(jobs)} mutants to run", flush=True)
        if wanted:
            run(wanted, lines, options.tests, options.workers, options.budget)
    return 0 if report(jobs, read_results()) else 1


if __name__ == "__main__":
    sys.exit(main())
