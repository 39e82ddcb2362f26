"""Interrupts, failing sources, no memory, threads: nothing is corrupted, errors come through."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pytest
from releases import BOUNDS, LEVELS, RELEASES

import dpq_fast as dpq
from dpq_fast import privacy

X = np.random.default_rng(0).normal(0.0, 2.0, size=90_000)  # too long to be sorted
BATCHES = np.array_split(X, 9)


class Failure(Exception):
    """An error of the caller's own."""


class Source:
    """Batches, in passes; one of them may fail half way."""

    def __init__(self, error: BaseException | None = None, failing: int = -1, at: int = 4) -> None:
        self.error, self.failing, self.at = error, failing, at
        self.passes = 0

    def __call__(self) -> Any:
        number, self.passes = self.passes, self.passes + 1
        for i, batch in enumerate(BATCHES):
            if number == self.failing and i == self.at:
                raise self.error
            yield batch


@pytest.mark.parametrize("error", [Failure("mine"), KeyboardInterrupt(), MemoryError()], ids=repr)
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("options", [{}, {"resolution": 0.25}], ids=["fine", "dither"])
def test_a_source_that_fails_half_way_surfaces_its_own_error(error, workers, options):
    """At every pass; and the sample still gives what it would have given."""
    whole = Source()
    sample = dpq.Sample.from_batches(whole, BOUNDS["bounds"], workers=workers, **options)
    made = whole.passes
    expected = dpq.joint_exp(sample, LEVELS["q"], epsilon=1.0, rng=5)
    for failing in range(whole.passes):
        source, accountant = Source(error, failing), privacy.Accountant(1.0)
        at_first = failing == 0 and made > 1  # only the type is taken from the first batch then
        source.at = 0 if at_first else 4
        with pytest.raises(type(error)) as caught:
            sample = dpq.Sample.from_batches(source, BOUNDS["bounds"], workers=workers, **options)
            dpq.joint_exp(sample, LEVELS["q"], epsilon=1.0, accountant=accountant, rng=5)
        assert caught.value is error
        # what failed before there was a release has no accountant
        assert len(accountant.history) == (failing >= made)
        if failing >= made:  # the sample was there
            accountant = privacy.Accountant(1.0)
            again = dpq.joint_exp(sample, LEVELS["q"], epsilon=1.0, accountant=accountant, rng=5)
            np.testing.assert_array_equal(again, expected)


def test_an_interrupted_iterator_of_queries_can_go_on():
    def queries() -> Any:
        yield 0.0
        raise KeyboardInterrupt

    budget = dict(epsilon1=1.0, epsilon2=1.0)
    with pytest.raises(KeyboardInterrupt):
        dpq.above_threshold(queries(), 1e6, rng=1, **budget)
    assert dpq.above_threshold([0.0, 1e9], 1e6, rng=1, **budget) == 1


INTERRUPTED = """
import os, resource, signal, sys, threading
import numpy as np
import dpq_fast as dpq

x = np.random.default_rng(0).normal(size=3_000_000)
small = np.arange(100.0)
options = dict(q=[0.25, 0.5, 0.9], epsilon=1.0, bounds=(-10.0, 100.0))


def work():
    dpq.joint_exp(x, workers=2, **options)
    dpq.sum(x, epsilon=1.0)
    dpq.quantile_by(x, np.zeros(x.size, dtype=int), groups=[0], **options)


def most_memory():
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


before = dpq.joint_exp(small, rng=5, **options).tolist()
work()
work()
held = most_memory()
heard = 0
for delay in np.linspace(0.02, 0.3, 20).tolist():
    threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        while True:
            work()
    except KeyboardInterrupt:
        heard += 1
after = dpq.joint_exp(small, rng=5, **options).tolist()
# what one pass holds, lost 20 times, would be more than ten times as much
leaked = most_memory() - held > 3 * x.nbytes
print(heard, before == after, threading.active_count() <= 2, leaked)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to oneself on this platform")
def test_an_interrupt_in_the_middle_of_a_pass_leaves_all_in_order():
    run = subprocess.run(
        [sys.executable, "-c", INTERRUPTED],
        cwd=tempfile.gettempdir(),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert run.stdout.split() == ["20", "True", "True", "False"]
    assert run.stderr == ""


# Nobody's records: few, tied at a bound, none beyond a tie, none at all.
TIED = {
    "few": [1.0, 2.0, 3.0, 3.0],
    "below": np.where(np.arange(12_000) < 8_000, -10.0, X[:12_000]),
    "above": np.where(np.arange(12_000) < 8_000, 10.0, X[:12_000]),
    "inside": np.where(np.arange(12_000) < 8_000, 0.0, np.round(X[:12_000], 1)),
    "none": [],
}
CONTINUOUS = {
    f"{name}, {epsilon}": partial(
        getattr(dpq, name), q=np.arange(1, 30) / 30, epsilon=epsilon, resolution=0, **BOUNDS
    )
    for name in ("joint_exp", "ind_exp", "approx_quantiles")
    for epsilon in (1e-3, 0.1, 3.0)
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*RELEASES, *CONTINUOUS])
def test_memory_that_was_not_set_decides_nothing(name, fill_memory):
    """What else is loaded, and what was released before, leave other bytes in it."""
    release = RELEASES.get(name) or (lambda x, rng: CONTINUOUS[name](x, rng=rng))
    for x in TIED.values():
        drawn = []
        for byte in (0x00, 0x55, 0xFF):
            fill_memory(byte)
            drawn.append(np.asarray(release(x, 3)))
        np.testing.assert_array_equal(drawn[1], drawn[0])
        np.testing.assert_array_equal(drawn[2], drawn[0])


# What allocates; one call of these fails, then the next one, until the release gets through.
ALLOCATORS = ("empty", "zeros", "concatenate", "array", "full", "empty_like")


@pytest.mark.parametrize("name", RELEASES)
@pytest.mark.parametrize("x", [X[:40], X], ids=["short", "long"])
def test_no_memory_is_an_error_that_leaves_all_in_order(name, x, monkeypatch):
    release = RELEASES[name]
    expected = release(x, 3)
    failing, failures = 0, 0
    while True:
        left = [failing]
        with monkeypatch.context() as patch:
            for allocator in ALLOCATORS:
                patch.setattr(np, allocator, out_of_memory(getattr(np, allocator), left))
            try:
                release(x, 3)
            except MemoryError:
                failures += 1
            else:
                assert left[0] >= 0  # nobody swallowed it
                break
        failing += 1
    assert failures > 0
    np.testing.assert_array_equal(release(x, 3), expected)


def out_of_memory(function: Any, left: list[int]) -> Any:
    """The function, which fails once after so many calls of all of them."""

    def allocate(*arguments: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] == -1:
            raise MemoryError
        return function(*arguments, **options)

    return allocate


# Threads


def in_threads(work: Any, calls: int, threads: int = 8) -> list[Any]:
    """Answers to many calls, which threads make in stretches of 50."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(threads) as pool:
            parts = (range(first, min(first + 50, calls)) for first in range(0, calls, 50))
            return [*chain.from_iterable(pool.map(lambda part: [*map(work, part)], parts))]
    finally:
        sys.setswitchinterval(interval)


def shared_calls(calls: int) -> None:
    """Threads share samples of every kind, and get what each seed gives in one thread."""
    rng = np.random.default_rng(4)
    bounds = BOUNDS["bounds"]
    samples = [
        dpq.Sample.of(rng.normal(size=60), bounds),
        dpq.Sample.of(rng.normal(size=60), bounds, resolution=0.5),
        dpq.Sample.of(rng.integers(-5, 5, size=40), bounds, counts=rng.integers(0, 9, size=40)),
        dpq.Sample.from_batches(lambda: np.array_split(X[:200], 3), bounds),
    ]
    works = [
        lambda sample, seed: dpq.joint_exp(sample, [0.3, 0.7], epsilon=1.0, rng=seed).tolist(),
        lambda sample, seed: dpq.count(sample, epsilon=1.0, rng=seed),
        lambda sample, seed: dpq.sum(sample, epsilon=1.0, q=None, lower=-4, upper=4, rng=seed),
        lambda sample, seed: dpq.ind_exp(sample, 0.5, epsilon=1.0, rng=seed),
    ]
    kinds = [(work, sample) for work in works for sample in samples]
    known = {
        (kind, seed): work(sample, seed)
        for kind, (work, sample) in enumerate(kinds)
        for seed in range(8)
    }

    def call(number: int) -> bool:
        kind, seed = number % len(kinds), (number // len(kinds)) % 8
        work, sample = kinds[kind]
        return work(sample, seed) == known[kind, seed]

    assert all(in_threads(call, calls))


@pytest.mark.slow
def test_threads_share_samples():
    shared_calls(20_000)


@pytest.mark.parametrize("name", ["joint_exp", "joint_exp, dither", "sum", "mean", "count"])
def test_more_workers_than_there_is_work_for_cost_nothing(name):
    """A number of threads that memory would not hold the counters of."""
    function = getattr(dpq, name.split(",")[0])
    options = dict(epsilon=1.0, rng=2)
    if name.startswith("joint"):
        options |= LEVELS | ({"resolution": 0.25} if "dither" in name else {})
    for x in (X, X[:50]):
        one = function(x, **options)
        np.testing.assert_array_equal(function(x, workers=2**60, **options), one)
