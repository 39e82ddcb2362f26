"""Threads: a shared Generator stays correct, kernels release the GIL, plans are never shared."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from conftest import assert_draws_follow, lattice_of, tabulate

import dpq_fast as dpq
from dpq_fast._kernels import intervals, lattice, path, race, strings, uniform
from dpq_fast._kernels.scan import EACH_BLOCK, Scan

THREADS = 8


def in_threads(work: Callable[[int], Any], calls: int) -> list:
    """Results of work(0), ..., work(calls - 1), run by 8 threads that start together."""
    barrier = threading.Barrier(THREADS)

    def share(thread: int) -> list:
        barrier.wait()
        return [work(call) for call in range(thread, calls, THREADS)]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # change threads as often as possible
    try:
        with ThreadPoolExecutor(THREADS) as pool:
            return [out for part in pool.map(share, range(THREADS)) for out in part]
    finally:
        sys.setswitchinterval(interval)


def listed(out: Any) -> tuple:
    return tuple(np.ravel(out).tolist())


# What each call takes from the generator is a fixed number of words here: without records all
# outputs lie in one interval, so no race is drawn, and a point of 2^k points or a number in a
# range takes one word. A kernel call holds the generator's lock, so the calls draw one after the
# other: whatever the order, the outputs are those of the serial run, as a multiset, and the
# generator ends in the same state.
FIXED = {
    "lattice": {"q": 0.5, "bounds": (0, 2**20 - 1), "resolution": 1, "dither": False},
    "dithered lattice": {"q": 0.5, "bounds": (0, 2**20 - 1), "resolution": 1},
    "continuous": {"q": [0.2, 0.5, 0.7], "bounds": (0.0, 1.0), "resolution": 0},
}


@pytest.mark.parametrize("options", FIXED.values(), ids=FIXED.keys())
@pytest.mark.parametrize("bit_generator", [np.random.PCG64, np.random.MT19937])
def test_sample_shared_by_threads_draws_what_it_draws_in_serial(bit_generator, options):
    options = dict(options)
    law = dpq.joint_exp_law([], options.pop("q"), epsilon=1.0, **options)
    shared, serial = (np.random.Generator(bit_generator(5)) for _ in range(2))
    outs = in_threads(lambda call: law.sample(shared, 50), 400)
    expected = [law.sample(serial, 50) for _ in range(400)]
    assert Counter(map(listed, outs)) == Counter(map(listed, expected))
    words = [generator.integers(0, 2**64, dtype=np.uint64) for generator in (shared, serial)]
    assert words[0] == words[1]


@pytest.mark.parametrize("options", FIXED.values(), ids=FIXED.keys())
def test_joint_exp_shared_by_threads_draws_what_it_draws_in_serial(options):
    options = dict(options)
    q = options.pop("q")
    shared, serial = np.random.default_rng(6), np.random.default_rng(6)

    def release(rng):
        return dpq.joint_exp([], q, epsilon=1.0, rng=rng, **options)

    outs = in_threads(lambda call: release(shared), 800)
    expected = [release(serial) for _ in range(800)]
    assert Counter(map(listed, outs)) == Counter(map(listed, expected))
    assert shared.bit_generator.state == serial.bit_generator.state


def test_dither_shared_by_threads_advances_as_in_serial():
    """24 bits for each of 500 records, in one call that holds the lock."""
    shared, serial = np.random.default_rng(7), np.random.default_rng(7)
    sample = dpq.Sample.of(np.arange(500) % 10, (0, 9), resolution=1)

    def fine(rng):
        order = sample.order(rng)
        return np.sort(np.concatenate([order.cell(point)[1] for point in range(10)]))

    outs = in_threads(lambda call: fine(shared), 80)
    expected = [fine(serial) for _ in range(80)]
    assert Counter(map(listed, outs)) == Counter(map(listed, expected))
    assert shared.bit_generator.state == serial.bit_generator.state


def test_sample_shared_by_threads_follows_its_law():
    """With records the number of words varies, so here it is the law that must hold."""
    x = [0, 2.0, 2.0, 3.0]
    law = dpq.joint_exp_law(x, [0.3, 0.7], epsilon=2.0, bounds=(0, 4), resolution=1, dither=False)
    shared = np.random.default_rng(8)
    outs = in_threads(lambda call: law.sample(shared), 8_000)
    assert all(0.0 <= out[0] <= out[1] <= 4.0 for out in outs)
    assert_draws_follow([tuple(out.astype(int).tolist()) for out in outs], tabulate(law, 5, 2))


def test_releases_in_threads_without_a_generator_differ():
    x = np.random.default_rng(0).normal(size=100)
    form = dict(bounds=(-5, 5), resolution=1e-12)
    outs = in_threads(lambda call: dpq.joint_exp(x, 0.5, epsilon=0.1, **form), 200)
    assert len(set(outs)) == 200  # of 10^13 points: a repeated stream would show
    assert all(-5.0 <= out <= 5.0 for out in outs)


def test_strings_of_a_list_are_found_while_other_threads_replace_them():
    """Each string that is read is one that lives."""
    table = strings.Table(["the first key", "the second key"])
    items = ["the first key"] * 500

    def work(call: int) -> bool:
        if call % 2:
            for i in range(len(items)):
                items[i] = f"the {('first', 'second')[call % 4 // 2]} key"  # a new one each time
            return True
        place = np.empty(len(items), dtype=np.int32)
        table.find_objects(items, place)
        return bool(np.isin(place, [0, 1]).all())

    assert all(in_threads(work, 200))


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["scan", "fft"])
def test_laws_in_threads_equal_the_serial_law(kernel):
    """A pyFFTW plan owns its arrays: shared by threads it would mix their rows."""
    rng = np.random.default_rng(9)
    samples = [rng.normal(size=size) for size in (300, 300, 300, 301, 310, 999)]
    q = [0.1, 0.4, 0.5, 0.9]
    outputs = [-1.0, -0.25, 0.0, 1.25]

    def log_prob(call: int) -> tuple[int, float]:
        which = call % len(samples)
        law = dpq.joint_exp_law(
            samples[which],
            q,
            epsilon=0.5,
            bounds=(-4.0, 4.0),
            resolution=0.25,
            dither_rng=which,
            kernel=kernel,
        )
        return which, law.log_prob(outputs)

    serial = dict(log_prob(call) for call in range(len(samples)))
    assert all(found == serial[which] for which, found in in_threads(log_prob, 240))


# The GIL

MANY = 1_000_000


def generator() -> np.random.Generator:
    return np.random.default_rng(1)


def long_scan() -> Scan:
    rank = np.arange(MANY // 4)
    ends = np.array([rank.size] * 4, dtype=np.uintp)
    width = np.ones(rank.size)
    q = np.array([0.2, 0.4, 0.6, 0.8])
    return Scan(rank, width, True, q, rank.size, np.zeros(4, dtype=np.uintp), ends, 0.01)


def drawn_from() -> Scan:
    scan = long_scan()
    scan.forward()
    return scan


def paths() -> tuple[np.ndarray, np.ndarray]:
    return np.zeros((MANY, 2), dtype=np.uintp), np.array([10.0])


def kernels() -> dict[str, Callable[[], Any]]:
    """For each kernel a call that runs for about a millisecond or more."""
    values = np.linspace(0.0, 9.0, MANY)
    ranks, counts = np.array([1]), np.array([MANY - 1])  # x_1, ..., x_MANY
    points = np.arange(MANY)
    grid = lattice_of(10)
    encode = (values, grid.low, grid.high, grid.per_unit, grid.step, grid.first, grid.points)
    where, width = paths()
    sums, blocks = drawn_from(), long_scan()
    return {
        "lattice.encode": lambda: lattice.encode(*encode),
        "lattice.is_sorted": lambda: lattice.is_sorted(values),
        "intervals.compress_lattice": lambda: intervals.compress_lattice(
            ranks, counts, MANY, -1, MANY, points
        ),
        "intervals.compress_continuous": lambda: intervals.compress_continuous(
            ranks, counts, MANY, 0.0, 1.0, values
        ),
        "scan.forward": long_scan().forward,
        "scan.forward_as": lambda: blocks.forward_as(EACH_BLOCK),
        "scan.sums": lambda: sums.sums(1),
        "path.draw": lambda: path.draw(sums, -np.inf, 20, generator()),
        "path.points_lattice": lambda: path.points_lattice(
            where, np.array([-1]), width, generator()
        ),
        "path.points_continuous": lambda: path.points_continuous(
            where, np.array([0.0]), width, generator()
        ),
        "race.draw": lambda: race.draw(-values, generator()),
        "uniform.log_uniforms": lambda: uniform.log_uniforms(MANY, generator()),
        "uniform.integers_below": lambda: uniform.integers_below(1000, MANY, generator()),
        "uniform.multiset": lambda: uniform.multiset(5_000, 2**40, generator()),
    }


@pytest.fixture(scope="module")
def kernel_calls() -> dict[str, Callable[[], Any]]:
    return kernels()


@pytest.mark.parametrize(
    "name",
    [
        "lattice.encode",
        "lattice.is_sorted",
        "intervals.compress_lattice",
        "intervals.compress_continuous",
        "scan.forward",
        "scan.forward_as",
        "scan.sums",
        "path.draw",
        "path.points_lattice",
        "path.points_continuous",
        "race.draw",
        "uniform.log_uniforms",
        "uniform.integers_below",
        "uniform.multiset",
    ],
)
def test_kernel_releases_the_gil(kernel_calls, name):
    """The main thread runs while a kernel does.

    With a switch interval of minutes nobody is ever asked to hand the GIL over: the main thread
    gets it back only where the worker gives it up by itself, in a kernel. A kernel that keeps it
    fails for certain; one that releases it has hundreds of calls to be seen.
    """
    call = kernel_calls[name]
    main_ran: list[bool] = []
    seen: list[bool] = []

    def work() -> None:
        for _ in range(300):
            call()
            if main_ran:
                break
        seen.append(bool(main_ran))

    worker = threading.Thread(target=work)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(600.0)
    try:
        worker.start()
        main_ran.append(True)
        worker.join()
    finally:
        sys.setswitchinterval(interval)
    assert seen == [True]
