"""Unbounded quantiles: exact laws against the reference, privacy by enumeration, every way."""

from __future__ import annotations

import functools
import inspect
import itertools
import math
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from conftest import Untouchable, assert_draws_follow
from hypothesis import given
from hypothesis import strategies as st

import dpq_fast as dpq
import dpq_fast.reference as reference
from dpq_fast import privacy
from dpq_fast.data.histogram import Bins
from dpq_fast.data.records import Records
from dpq_fast.laws import candidates as public_candidates
from dpq_fast.laws.halting import HaltingLaw
from dpq_fast.laws.unbounded import Search, UnboundedQuantileLaw
from dpq_fast.privacy.levels import splits

# What is bounded and which way is searched, with few candidates each.
WAYS = {
    "up": dict(lower=0.0, upper=6.0, beta=2.0),
    "up, no end": dict(lower=-1.0, beta=1e60),
    "down": dict(lower=None, upper=1.0, beta=1e100),
    "both": dict(lower=None, beta=1e100),
    "inverted": dict(invert=True, beta=1.2),
    "down, inverted": dict(lower=None, upper=1.5, invert=True, beta=1.3),
}
NOISES = ("exponential", "laplace", "gumbel")
POOL = (-3.0, 0.0, 0.5, 2.0, math.nan)


@pytest.fixture(params=list(WAYS))
def way(request: pytest.FixtureRequest) -> dict[str, Any]:
    return WAYS[request.param]


@pytest.fixture(params=NOISES)
def noise(request: pytest.FixtureRequest) -> str:
    return request.param


def candidates(way: dict[str, Any]) -> list[float]:
    """Everything that is ever released, from the definitions."""
    lower, upper = way.get("lower", 0.0), way.get("upper")
    low = -math.inf if lower is None else lower
    high = math.inf if upper is None else upper
    bound = lower if lower is not None else -(upper or 0.0)
    mirrored = lower is None and upper is not None
    if way.get("invert"):
        steps = itertools.count(1)
        powers = list(itertools.takewhile(lambda p: p < 2.0, (way["beta"] ** i for i in steps)))
        distances = [1.0 / (p - 1.0) - 1.0 for p in powers] + [0.0]
        values = [bound + d for d in distances]
    else:
        values = Bins.geometric(way["beta"], bound).edges.tolist()
        if upper is not None and not mirrored:
            values = values[: 1 + next(i for i, t in enumerate(values) if t >= upper)]
    values = [-v for v in values] if mirrored else values
    if lower is None and upper is None:
        values += [-v for v in values]
    return sorted({min(max(v, low), high) + 0.0 for v in values})


def test_outputs_are_the_candidates(way: dict[str, Any]) -> None:
    law = dpq.unbounded_quantile_law(list(POOL), 0.5, epsilon=0.5, **way)
    released = set(law.sample(np.random.default_rng(0), 2_000).tolist())
    known = candidates(way)
    assert all(min(abs(o - c) for c in known) <= 1e-9 * abs(o) for o in released)
    assert len(released) > 1


def outcomes(way: dict[str, Any], q: Any) -> list[Any]:
    """All outputs of a law, as the library computes the candidates."""
    law = dpq.unbounded_quantile_law([], q, epsilon=1.0, **way)
    single = sorted(
        {
            law._search.decode(counted, index, None)
            for counted in law._counted
            for index in range(counted.last + 1)
        }
    )
    if np.ndim(q) == 0:
        return single
    return list(itertools.combinations_with_replacement(single, len(q)))


# The law


@pytest.mark.parametrize("q", [0.0, 0.3, 0.5, 1.0])
def test_law_is_the_reference_law(way: dict[str, Any], noise: str, q: float) -> None:
    x = [-3.0, -0.25, 0.0, 0.5, 0.5, 2.0, math.inf]
    options = dict(epsilon=1.5, noise=noise, offset=0.75, **way)
    fast = dpq.unbounded_quantile_law(x, q, **options)
    slow = reference.unbounded_quantile_law(x, q, **options)
    total = 0.0
    for o in outcomes(way, q):
        assert fast.log_prob(o) == pytest.approx(slow.log_prob(o), abs=2e-9)
        total += math.exp(fast.log_prob(o))
    assert total == pytest.approx(1.0, abs=1e-9)
    assert fast.log_prob(0.123) == -math.inf


@pytest.mark.parametrize("name", ["up", "down", "inverted"])
@pytest.mark.parametrize("q", [[0.25, 0.5, 0.75], [0.1, 0.8], [0.0, 1.0]])
def test_law_of_several_levels_is_the_reference_law(name: str, q: list[float]) -> None:
    x = [-3.0, 0.0, 0.5, 0.5, 2.0, 4.0]
    options = dict(epsilon=2.0, noise="gumbel", **WAYS[name])
    fast = dpq.unbounded_quantile_law(x, q, **options)
    slow = reference.unbounded_quantile_law(x, q, **options)
    total = 0.0
    for o in outcomes(WAYS[name], q):
        log_prob = fast.log_prob(o)
        total += math.exp(log_prob)
        if log_prob > -30.0:
            assert log_prob == pytest.approx(slow.log_prob(o), abs=1e-8)
    assert total == pytest.approx(1.0, abs=1e-9)


@given(
    x=st.lists(st.one_of(st.floats(-5.0, 9.0), st.sampled_from([0.0, 1.0, 3.0, 7.0])), max_size=8),
    q=st.floats(0.0, 1.0),
    split=st.floats(0.1, 0.9),
    neighbors=st.sampled_from(["swap", "add-remove"]),
)
def test_counts_of_any_records(x: list[float], q: float, split: float, neighbors: str) -> None:
    options = dict(epsilon=1.0, split=split, neighbors=neighbors, **WAYS["up"])
    fast = dpq.unbounded_quantile_law(x, q, **options)
    slow = reference.unbounded_quantile_law(x, q, **options)
    for o in outcomes(WAYS["up"], q):
        assert fast.log_prob(o) == pytest.approx(slow.log_prob(o), abs=2e-9)


@pytest.mark.slow
def test_draws_follow_the_law(implementation: Any, way: dict[str, Any], noise: str) -> None:
    law = implementation.unbounded_quantile_law(
        [-3.0, 0.0, 0.5, 2.0, 4.0], 0.5, epsilon=1.0, noise=noise, **way
    )
    table = {o: log_prob for o in outcomes(way, 0.5) if (log_prob := law.log_prob(o)) > -math.inf}
    assert_draws_follow(law.sample(np.random.default_rng(1), 2_000).tolist(), table)


def test_draws_of_several_levels_follow_the_law(implementation: Any) -> None:
    q, way = [0.25, 0.5, 0.75], WAYS["down"]
    law = implementation.unbounded_quantile_law(
        [-3.0, -1.0, 0.5, 2.0], q, epsilon=3.0, noise="gumbel", **way
    )
    table = {o: law.log_prob(o) for o in outcomes(way, q)}
    table = {o: log_prob for o, log_prob in table.items() if log_prob > -math.inf}
    draws = law.sample(np.random.default_rng(2), 3_000)
    assert_draws_follow(map(tuple, draws.tolist()), table)


def test_uniform_draws_lie_between_the_candidates(implementation: Any) -> None:
    options = dict(epsilon=1.0, lower=0.0, upper=7.0, beta=2.0)
    steps = dpq.unbounded_quantile_law([0.5, 2.0, 5.0], 0.5, **options)
    law = implementation.unbounded_quantile_law([0.5, 2.0, 5.0], 0.5, uniform=True, **options)
    draws = law.sample(np.random.default_rng(3), 3_000)
    edges = [0.0, 1.0, 3.0, 7.0]
    inside = np.searchsorted(edges, draws, side="right")
    table = {i: steps.log_prob(edge) for i, edge in enumerate(edges[1:], 1)}
    assert_draws_follow(inside.tolist(), table)
    fractions = (draws[inside == 2] - 1.0) / 2.0
    assert_draws_follow((fractions * 8).astype(int).tolist(), dict.fromkeys(range(8), -math.log(8)))
    if implementation is dpq:
        # a number is drawn from the lower end of its step on, up to the upper one
        for low, high in itertools.pairwise(edges):
            expected = steps.log_prob(high) - math.log(high - low)
            assert law.log_prob(low) == law.log_prob((low + high) / 2) == pytest.approx(expected)
        assert law.log_prob(7.0) == -math.inf


def test_uniform_densities_of_both_ways() -> None:
    x, options = [-3.0, 0.5, 2.0, 5.0], dict(epsilon=1.0, lower=None, beta=1e100)
    steps = dpq.unbounded_quantile_law(x, 0.4, **options)
    law = dpq.unbounded_quantile_law(x, 0.4, uniform=True, **options)
    for edge in (1e100, -1e100):
        expected = steps.log_prob(edge) - math.log(1e100)
        assert law.log_prob(edge / 2) == pytest.approx(expected)
    assert law.log_prob(0.0) == law.log_prob(-1.0)


def test_uniform_draws_between_the_last_inverted_candidate_and_the_end(implementation: Any) -> None:
    law = implementation.unbounded_quantile_law(
        [0.0] * 50, 0.5, epsilon=50.0, invert=True, uniform=True, beta=1.3
    )
    draws = law.sample(np.random.default_rng(4), 300)
    assert_draws_follow((draws > 0.0).tolist(), {True: 0.0})
    nearest = 1.0 / (1.3**2 - 1.0) - 1.0  # 1.3^3 is more than 2
    inside = draws[draws < nearest] / nearest
    assert inside.size > 290
    assert_draws_follow((inside * 4).astype(int).tolist(), dict.fromkeys(range(4), -math.log(4)))


# Very many candidates, counted by blocks


def in_blocks(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    monkeypatch.setattr(public_candidates, "block_size", lambda candidates: step)


def fresh_draws(law: UnboundedQuantileLaw, x: Any, size: int, seed: int) -> list[Any]:
    """Draws each of which has to count its blocks anew."""
    rng, records = np.random.default_rng(seed), Records.of(np.array(x))
    draws = []
    for _ in range(size):
        anew = UnboundedQuantileLaw(law._search, law._search.count(records))
        draws.append(anew.sample(rng))
    return draws


# Every pair of a way, a noise and a size of blocks.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "noise", "step"),
    [
        (name, NOISES[(i + j) % 3], step)
        for i, name in enumerate(WAYS)
        for j, step in enumerate((2, 3, 64))
    ],
)
def test_draws_by_blocks_follow_the_law(
    name: str, noise: str, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, way = [-3.0, 0.0, 0.5, 2.0, 4.0], WAYS[name]
    law = dpq.unbounded_quantile_law(x, 0.5, epsilon=1.0, noise=noise, **way)
    table = {o: log_prob for o in outcomes(way, 0.5) if (log_prob := law.log_prob(o)) > -math.inf}
    in_blocks(monkeypatch, step)
    assert_draws_follow(fresh_draws(law, x, 600, step), table)


@pytest.mark.slow
@pytest.mark.parametrize("q", [0.5, 0.95])
def test_draws_by_blocks_of_steep_counts_follow_the_law(
    noise: str, q: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bounds far above the counts, many candidates that halt with some probability each."""
    x, way = np.linspace(0.0, 6.0, 40).tolist(), dict(lower=0.0, upper=7.0, beta=1.03)
    law = dpq.unbounded_quantile_law(x, q, epsilon=0.5, noise=noise, **way)
    table = {o: law.log_prob(o) for o in outcomes(way, q)}
    in_blocks(monkeypatch, 16)
    # 222 of them tell the law at twice epsilon
    assert_draws_follow(fresh_draws(law, x, 400, 1), table)


@pytest.mark.parametrize("name", ["up", "down", "inverted"])
def test_draws_by_blocks_of_several_levels_follow_the_law(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, q, way = [-3.0, -1.0, 0.5, 2.0], [0.25, 0.5, 0.75], WAYS[name]
    law = dpq.unbounded_quantile_law(x, q, epsilon=3.0, noise="gumbel", **way)
    table = {o: law.log_prob(o) for o in outcomes(way, q)}
    table = {o: log_prob for o, log_prob in table.items() if log_prob > -math.inf}
    in_blocks(monkeypatch, 2)
    # 548 of them tell the law at twice epsilon
    assert_draws_follow(map(tuple, np.array(fresh_draws(law, x, 600, 2)).tolist()), table)


@pytest.mark.parametrize("q", [0.3, [0.25, 0.75]])
@pytest.mark.parametrize("step", [2, 3, 64])
def test_law_does_not_depend_on_blocks(
    way: dict[str, Any], step: int, q: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if np.ndim(q) and way is WAYS["both"]:
        pytest.skip("log_prob takes one level there")
    x = [-3.0, -0.25, 0.0, 0.5, 0.5, 2.0, math.inf]
    options = dict(epsilon=1.5, noise="gumbel", offset=0.75, **way)
    law = dpq.unbounded_quantile_law(x, q, **options)
    known = [law.log_prob(o) for o in outcomes(way, q)]
    in_blocks(monkeypatch, step)
    law = dpq.unbounded_quantile_law(x, q, **options)
    assert [law.log_prob(o) for o in outcomes(way, q)] == pytest.approx(known, abs=1e-12)


@given(
    x=st.lists(st.floats(-9.0, 9.0) | st.sampled_from([0.0, 1.0, 3.0, math.inf]), max_size=9),
    name=st.sampled_from(list(WAYS)),
    step=st.integers(1, 9),
    seed=st.integers(0, 99),
)
def test_counts_by_blocks_are_exact(x: list[float], name: str, step: int, seed: int) -> None:
    search = dpq.unbounded_quantile_law([], 0.5, epsilon=1.0, **WAYS[name])._search
    rng = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as monkeypatch:
        in_blocks(monkeypatch, step)
        all_counted = search.count(Records.of(np.array(x)))
    for counted in all_counted:
        indices = rng.permutation(counted.last + 1)[:40].tolist()
        counted.refine_around(rng.uniform(0.0, len(x) + 1.0, 2))
        expected = [sum(counted.sign * v < counted.value(i) for v in x) for i in indices]
        assert [counted.below(i) for i in indices] == expected
        assert counted.total == len(x)


def test_bounds_are_no_smaller_than_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(3).exponential(2.0, 200)
    search = dpq.unbounded_quantile_law([], 0.5, epsilon=1.0, beta=1.05)._search
    (exact,) = search.count(Records.of(x))
    in_blocks(monkeypatch, 8)
    (counted,) = search.count(Records.of(x))
    assert (np.diff(counted._first) > 0).all()
    for index in range(counted.last + 1):
        run = counted._run(index)
        assert counted._below[run] >= exact.below(index)
        assert counted._loose[run] or counted._below[run] == exact.below(index)


def test_blocks_are_a_public_fact() -> None:
    for candidates, step in ((2, 1), (2**17, 1), (2**17 + 1, 4), (2**23, 128), (2**24, 256)):
        assert public_candidates.block_size(candidates) == step
        assert candidates / step <= max(2**16, 2**17 / step)


def test_fine_candidates_are_those_of_the_formula() -> None:
    x = np.random.default_rng(4).lognormal(1.0, 2.0, 3_000)
    bins = Bins.geometric(1.0005, 0.0)
    thresholds, counts = bins.edges, bins.count(x)
    assert public_candidates.block_size(thresholds.size) > 1
    below = np.append(0, np.cumsum(counts))
    law = dpq.unbounded_quantile_law(x, [0.2, 0.9], epsilon=1.0, beta=1.0005)
    (counted,) = law._counted
    for o in law.sample(np.random.default_rng(5), 50).ravel().tolist():
        index = int(np.searchsorted(thresholds, o))
        assert thresholds[index] == o == counted.value(index)
        assert counted.below(index) == below[index] == np.count_nonzero(x < o)


@pytest.mark.parametrize("q", [0.5, [0.1, 0.3, 0.5, 0.7, 0.9], 0.999])
def test_fine_candidates_take_few_passes(q: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    passes = []
    count = Records.count
    monkeypatch.setattr(
        Records, "count", lambda *args, **options: passes.append(0) or count(*args, **options)
    )
    x = np.random.default_rng(6).exponential(10.0, 100_000)
    for seed in range(20):
        dpq.unbounded_quantile(x, q, epsilon=1.0, beta=1.00001, rng=seed)
    assert 2.0 <= len(passes) / 20 <= 3.0 + np.size(q)


@pytest.mark.parametrize("q", [0.5, [0.1, 0.5, 0.9]])
def test_coarse_candidates_take_one_pass(q: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    passes = []
    count = Records.count
    monkeypatch.setattr(
        Records, "count", lambda *args, **options: passes.append(0) or count(*args, **options)
    )
    x = np.random.default_rng(6).exponential(10.0, 1_000)
    dpq.unbounded_quantile(x, q, epsilon=1.0, rng=0)
    assert len(passes) == 1


@pytest.mark.parametrize("outlier", [1e300, math.inf, -math.inf])
def test_an_outlier_costs_no_memory(outlier: float) -> None:
    x = np.append(np.random.default_rng(7).exponential(10.0, 10_000), outlier)
    for options in (dict(), dict(lower=None), dict(lower=None, upper=1e4)):
        dpq.unbounded_quantile(x, 0.5, epsilon=1.0, beta=1.00001, rng=0, **options)  # public tables
        tracemalloc.start()
        out = dpq.unbounded_quantile(x, 0.5, epsilon=1.0, beta=1.00001, rng=0, **options)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert abs(np.mean(x < out) - 0.5) < 0.02
        assert peak < 2**22


def test_batches_are_read_once_more_for_a_block() -> None:
    x = np.random.default_rng(8).exponential(10.0, 5_000)
    batches = Records.from_batches(lambda: np.array_split(x, 7), workers=2)
    for options in (dict(), dict(lower=None)):
        first, second = (
            dpq.unbounded_quantile(data, 0.5, epsilon=1.0, beta=1.00001, rng=9, **options)
            for data in (x, batches)
        )
        assert first == second


# Privacy


def datasets(most: int) -> Iterator[tuple[float, ...]]:
    for size in range(most + 1):
        yield from itertools.combinations_with_replacement(POOL, size)


def neighbors_of(x: tuple[float, ...], neighbors: str) -> Iterator[tuple[float, ...]]:
    for i in range(len(x)):
        rest = x[:i] + x[i + 1 :]
        if neighbors == "add-remove":
            yield rest
        else:
            for value in POOL:
                yield (*rest, value)


def worst(
    q: Any, way: dict[str, Any], most: int, **options: Any
) -> tuple[float, float, float, privacy.Guarantee]:
    """Largest log ratio, range and D_alpha / alpha over all neighbors, and what is promised."""
    outputs = outcomes(way, q)

    def in_order(x: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(sorted(x, key=lambda v: (math.isnan(v), v)))

    @functools.cache
    def law(x: tuple[float, ...]) -> np.ndarray:
        exact = dpq.unbounded_quantile_law(list(x), q, **options, **way)
        return np.array([exact.log_prob(o) for o in outputs])

    public = {name: way[name] for name in ("lower", "upper", "invert") if name in way}
    named = {name: value for name, value in options.items() if name not in ("noise", "offset")}
    if "split" not in named:
        named["split"] = 0.5 if options["noise"] == "gumbel" else 2.0 / 3.0
    guarantee = privacy.guarantee("unbounded_quantile", q=q, **public, **named)
    ratio = spread = renyi = 0.0
    seen = set()  # every pair once: what is measured does not depend on its order
    for x in map(in_order, datasets(most)):
        for y in map(in_order, neighbors_of(x, options["neighbors"])):
            if (x, y) in seen:
                continue
            seen |= {(x, y), (y, x)}
            a, b = law(x), law(y)
            assert ((a == -np.inf) == (b == -np.inf)).all()
            known = a > -np.inf
            difference = a[known] - b[known]
            ratio = max(ratio, np.abs(difference).max())
            spread = max(spread, difference.max() - difference.min())
            for alpha in (1.5, 2.0, 8.0, 32.0):
                for first, second in ((a, b), (b, a)):
                    terms = alpha * first[known] - (alpha - 1.0) * second[known]
                    divergence = np.logaddexp.reduce(terms) / (alpha - 1.0)
                    renyi = max(renyi, divergence / alpha)
    return ratio, spread, renyi, guarantee


def assert_promised(
    found: tuple[float, float, float, privacy.Guarantee], tolerance: float = 1e-9
) -> None:
    ratio, spread, renyi, guarantee = found
    assert ratio <= guarantee.epsilon + tolerance
    if guarantee.bounded_range is not None:
        assert spread <= guarantee.bounded_range + tolerance
    assert renyi <= guarantee.implied_rho + tolerance


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("q", [0.2, 0.5, 0.9])
def test_epsilon_over_all_neighbors(
    way: dict[str, Any], noise: str, q: float, neighbors: str
) -> None:
    """Every split with every level, every way and every noise, if not with all of them at once."""
    tolerance = 1e-9 if noise == "gumbel" else 4e-9  # quadrature is right to 1e-9 on each side
    turn = [0.2, 0.5, 0.9].index(q) + NOISES.index(noise) + (neighbors == "swap")
    split = 0.5 if noise == "gumbel" else (0.5, 0.8, 0.2)[turn % 3]
    found = worst(q, way, 2, epsilon=1.0, noise=noise, split=split, neighbors=neighbors)
    assert_promised(found, tolerance)


def test_epsilon_is_nearly_spent() -> None:
    """Enumeration sees what is promised: half the noise would be found out."""
    for name, neighbors in (("up", "swap"), ("both", "swap"), ("inverted", "add-remove")):
        ratio, _, _, guarantee = worst(
            0.5, WAYS[name], 2, epsilon=1.0, noise="exponential", neighbors=neighbors
        )
        assert ratio > 0.85 * guarantee.epsilon


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("budget", [{"epsilon": 1.0}, {"rho": 0.5}])
@pytest.mark.parametrize("q", [[0.25, 0.5, 0.75], [0.3, 0.6], [0.0, 0.9]])
def test_epsilon_of_several_levels(
    q: list[float], budget: dict[str, float], neighbors: str
) -> None:
    found = worst(q, WAYS["up"], 3, noise="gumbel", neighbors=neighbors, **budget)
    assert_promised(found)


@pytest.mark.parametrize("way_name", ["up", "both"])
def test_rho_over_all_neighbors(way_name: str) -> None:
    found = worst(0.5, WAYS[way_name], 2, rho=0.5, noise="exponential", neighbors="swap")
    assert_promised(found, 4e-9)
    assert found[3].rho == 0.5


def test_max_contributions_protect_persons() -> None:
    way, options = WAYS["up"], dict(epsilon=1.0, noise="gumbel", max_contributions=2)
    outputs = outcomes(way, 0.5)
    for x in itertools.combinations_with_replacement(POOL, 2):
        for y in itertools.combinations_with_replacement(POOL, 2):
            laws = [dpq.unbounded_quantile_law(list(z), 0.5, **options, **way) for z in (x, y)]
            for o in outputs:
                first, second = (law.log_prob(o) for law in laws)
                assert first == second or abs(first - second) <= 1.0 + 1e-9


def test_splits_cover_every_level_once() -> None:
    for m in range(1, 20):
        steps = splits(np.linspace(0.1, 0.9, m))
        assert sorted(step.middle for step in steps) == list(range(m))
        assert steps[-1].depth + 1 == m.bit_length() == math.ceil(math.log2(m + 1))
        assert [step.depth for step in steps] == sorted(step.depth for step in steps)


# Behavior


def test_answers_are_near_the_quantiles(implementation: Any) -> None:
    x = np.random.default_rng(4).exponential(10.0, 2_000)
    q = [0.9, 0.1, 0.5]
    for options in (dict(), dict(lower=None, upper=60.0), dict(lower=None), dict(upper=100.0)):
        out = implementation.unbounded_quantile(x, q, epsilon=20.0, beta=1.02, rng=5, **options)
        ranks = [np.mean(x < o) for o in out]
        assert np.abs(np.array(ranks) - q).max() < 0.12
    low = implementation.unbounded_quantile(x, 0.02, epsilon=5.0, invert=True, rng=6)
    assert abs(np.mean(x < low) - 0.02) < 0.02


def test_answers_at_the_edges(implementation: Any) -> None:
    law = implementation.unbounded_quantile
    assert law([], 0.5, epsilon=50.0, rng=0) >= 0.0
    assert law([math.nan], 0.5, epsilon=50.0, lower=None, rng=0) == pytest.approx(0.0, abs=10.0)
    assert law([math.inf] * 50, 0.5, epsilon=50.0, upper=3.0, rng=0) == 3.0
    assert law([-math.inf] * 50, 0.5, epsilon=50.0, lower=2.0, rng=0) < 2.1
    assert law([1e300] * 200, 0.5, epsilon=50.0, beta=1e10, rng=0) >= 1e300
    assert law([5.0] * 200, 1.0, epsilon=50.0, offset=-3.0, rng=0) == pytest.approx(5.0, rel=0.05)
    assert law([0.25] * 400, 0.5, epsilon=50.0, lower=None, upper=0.25, rng=0) <= 0.25


def test_the_tail_of_candidates_costs_nothing() -> None:
    """Nothing ever halts, and there are millions of candidates: the search returns at once."""
    out = dpq.unbounded_quantile([], 0.5, epsilon=1e-9, beta=1.00001, offset=1e9, rng=0)
    assert math.isfinite(out)
    assert out > 1e60


def test_counts_stand_for_records(implementation: Any) -> None:
    x, counts = [0.5, 2.0, 5.0], [3, 0, 2]
    options = dict(epsilon=1.0, **WAYS["up"])
    weighted = implementation.unbounded_quantile_law(x, 0.5, counts=counts, **options)
    plain = implementation.unbounded_quantile_law([0.5] * 3 + [5.0] * 2, 0.5, **options)
    for o in outcomes(WAYS["up"], 0.5):
        assert weighted.log_prob(o) == plain.log_prob(o)


def test_workers_do_not_matter() -> None:
    x = np.random.default_rng(7).lognormal(3.0, 1.0, 600_000)
    answers = [
        dpq.unbounded_quantile(x, [0.2, 0.5, 0.9], epsilon=1.0, workers=workers, rng=8).tolist()
        for workers in (1, 2, 3)
    ]
    assert answers[0] == answers[1] == answers[2]


def test_samples_are_clamped_to_their_bounds() -> None:
    x = [-5.0, 0.5, 2.0, 50.0]
    sample = dpq.Sample.of(x, (0.0, 3.0))
    options = dict(epsilon=1.0, **WAYS["up"])
    for o in outcomes(WAYS["up"], 0.5):
        clamped = dpq.unbounded_quantile_law(np.clip(x, 0.0, 3.0), 0.5, **options)
        law = dpq.unbounded_quantile_law(sample, 0.5, **options)
        assert law.log_prob(o) == clamped.log_prob(o)


def test_shape_and_order_of_levels(implementation: Any) -> None:
    x = np.random.default_rng(9).exponential(1.0, 300)
    out = implementation.unbounded_quantile(
        x, [[0.9, 0.1], [0.1, 0.5]], epsilon=30.0, beta=1.1, rng=1
    )
    assert out.shape == (2, 2)
    assert out[0, 1] == out[1, 0] <= out[1, 1] <= out[0, 0]
    assert isinstance(implementation.unbounded_quantile(x, 0.5, epsilon=1.0, rng=1), float)


def test_accountant_is_charged_before_the_data(implementation: Any) -> None:
    accountant = privacy.Accountant(1.0)
    implementation.unbounded_quantile([1.0], 0.5, epsilon=0.75, accountant=accountant)
    assert accountant.spent.epsilon == 0.75
    with pytest.raises(privacy.BudgetExceeded):
        implementation.unbounded_quantile([1.0], 0.5, epsilon=0.75, accountant=accountant)


@pytest.mark.parametrize("beta", [1.0, math.inf, math.nan])
def test_bad_ratios_are_refused_before_the_charge(implementation: Any, beta: float) -> None:
    accountant = privacy.Accountant(1.0)
    with pytest.raises(ValueError, match="beta must be finite and greater than 1"):
        implementation.unbounded_quantile(
            Untouchable(), 0.5, epsilon=0.5, beta=beta, accountant=accountant
        )
    assert accountant.history == ()


def test_default_split_tames_the_tail() -> None:
    """The probability to pass ten times as many steps falls a hundredfold, not tenfold."""
    tails = {}
    for split in (0.5, None):
        calibration = privacy.unbounded_quantile.calibrate(1.0, epsilon=1.0, split=split)
        ((first, second),) = calibration.step_epsilons
        log_never = [
            HaltingLaw(
                np.array([-5.0]), np.array([steps]), first, second, calibration.noise
            ).log_never()
            for steps in (10**5, 10**6)
        ]
        tails[split] = log_never[0] - log_never[1]
    assert tails[0.5] == pytest.approx(math.log(10.0), rel=0.05)
    assert tails[None] == pytest.approx(2.0 * math.log(10.0), rel=0.05)


# Lattices


@pytest.mark.parametrize("resolution", [1.0, 0.1, 0.5, 3.0])
@pytest.mark.parametrize("q", [0.0, 0.3, 1.0])
def test_law_on_a_lattice_is_the_reference_law(
    way: dict[str, Any], noise: str, q: float, resolution: float
) -> None:
    x = [-3.0, -0.25, 0.0, 0.5, 0.5, 1.5, 2.0, math.inf]
    options = dict(epsilon=1.5, noise=noise, offset=0.75, resolution=resolution, **way)
    fast = dpq.unbounded_quantile_law(x, q, **options)
    slow = reference.unbounded_quantile_law(x, q, **options)
    outputs = fast.candidates()
    low, high = way.get("lower"), way.get("upper")
    assert all(abs(math.remainder(o, resolution)) < 1e-9 for o in outputs if abs(o) < 1e9)
    assert low is None or min(outputs) >= low
    assert high is None or max(outputs) <= high
    for o in outputs:
        assert fast.log_prob(o) == pytest.approx(slow.log_prob(o), abs=2e-9)
    total = sum(math.exp(fast.log_prob(o)) for o in outputs)
    assert total == pytest.approx(1.0, abs=1e-9)
    assert fast.log_prob(0.123) == -math.inf


def test_law_of_several_levels_on_a_lattice_is_the_reference_law() -> None:
    x, q = [-3.0, 0.0, 0.5, 0.5, 2.0, 4.0], [0.25, 0.5, 0.75]
    options = dict(epsilon=2.0, noise="gumbel", resolution=1.0, **WAYS["up"])
    fast = dpq.unbounded_quantile_law(x, q, **options)
    slow = reference.unbounded_quantile_law(x, q, **options)
    outputs = list(itertools.combinations_with_replacement(fast.candidates(), 3))
    assert sum(math.exp(fast.log_prob(o)) for o in outputs) == pytest.approx(1.0, abs=1e-9)
    for o in outputs:
        if fast.log_prob(o) > -30.0:
            assert fast.log_prob(o) == pytest.approx(slow.log_prob(o), abs=1e-8)


@pytest.mark.parametrize("step", [2, 3])
def test_law_on_a_lattice_does_not_depend_on_blocks(
    step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = [-3.0, 0.0, 0.5, 2.0, 2.0, 4.0]
    options = dict(epsilon=1.5, resolution=0.5, invert=True, beta=1.05)
    law = dpq.unbounded_quantile_law(x, 0.3, **options)
    known = {o: law.log_prob(o) for o in law.candidates()}
    in_blocks(monkeypatch, step)
    law = dpq.unbounded_quantile_law(x, 0.3, **options)
    assert {o: law.log_prob(o) for o in known} == pytest.approx(known, abs=1e-12)
    assert len(known) > 2 * step


@pytest.mark.parametrize(
    ("options", "released"),
    [
        # the last candidate, 8 and 7, goes down to the highest multiple inside
        (dict(upper=6.5, beta=3.0, resolution=1.0), [0.0, 2.0, 6.0]),
        (dict(upper=4.0, beta=2.0, resolution=3.0), [0.0, 3.0]),
        (dict(lower=0.5, upper=1.5, beta=2.0, resolution=1.0), [1.0]),
        (dict(lower=2.0**53, upper=2.0**53 + 4.0, beta=2.0, resolution=2.0), [0.0, 4.0]),
    ],
    ids=str,
)
def test_what_is_released_on_a_lattice(
    implementation: Any, options: dict[str, Any], released: list[float]
) -> None:
    law = dpq.unbounded_quantile_law([1.0], 0.5, epsilon=1.0, **options)
    base = 2.0**53 if options.get("lower", 0.0) > 1.0 else 0.0
    assert [o - base for o in law.candidates()] == released
    out = implementation.unbounded_quantile([1.0], 0.5, epsilon=1.0, rng=1, **options)
    assert out - base in released


def test_records_of_2_to_the_53_steps_count_for_the_candidate_there() -> None:
    x = 2.0**53 + np.array([-2.0, -1.0, 0.0, 2.0, 4.0, 2.0**53])
    options = dict(lower=1.0, beta=2.0, resolution=1.0)
    law = dpq.unbounded_quantile_law(x, 0.5, epsilon=1.0, **options)
    (counted,) = law._counted
    points = [counted.value(index) for index in range(counted.last + 1)]
    assert 2.0**53 in points
    below = [counted.below(index) for index in range(1, counted.last + 1)]
    assert below == [np.count_nonzero(x <= point) for point in points[1:]]


@pytest.mark.slow
def test_draws_on_a_lattice_follow_the_law(implementation: Any, way: dict[str, Any]) -> None:
    law = implementation.unbounded_quantile_law(
        [-3.0, 0.0, 0.5, 2.0, 4.0], 0.5, epsilon=1.0, resolution=1.0, **way
    )
    outputs = dpq.unbounded_quantile_law([], 0.5, epsilon=1.0, resolution=1.0, **way).candidates()
    table = {o: log_prob for o in outputs if (log_prob := law.log_prob(o)) > -math.inf}
    assert_draws_follow(law.sample(np.random.default_rng(1), 2_000).tolist(), table)


@pytest.mark.parametrize(
    "options", [{}, dict(upper=1000.0), dict(lower=None), dict(invert=True)], ids=str
)
def test_a_value_that_many_records_have_is_released_itself(options: dict[str, Any]) -> None:
    """The median of 80% zeros was 0.01."""
    rng = np.random.default_rng(0)
    x = np.where(rng.random(10_000) < 0.8, 0, rng.geometric(0.02, 10_000))
    medians = [
        dpq.unbounded_quantile(x, 0.5, epsilon=1.0, resolution=1, rng=seed, **options)
        for seed in range(100)
    ]
    assert np.count_nonzero(np.array(medians) == 0.0) >= 99
    high = dpq.unbounded_quantile(x, 0.95, epsilon=1.0, resolution=1, rng=1, **options)
    assert high % 1.0 == 0.0 and abs(high - np.quantile(x, 0.95)) <= 3.0


@pytest.mark.parametrize("shift", [-7.0, 7.0])
def test_both_ways_release_the_value_of_ties_on_a_lattice(shift: float) -> None:
    out = [
        dpq.quantile(np.full(1_000, shift), 0.5, epsilon=1.0, lower=None, resolution=1, rng=seed)
        for seed in range(20)
    ]
    assert out == [shift] * 20


@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
def test_privacy_by_enumeration_on_a_lattice(way: dict[str, Any], neighbors: str) -> None:
    options = dict(epsilon=0.9, resolution=1.0, neighbors=neighbors, **way)
    outputs = dpq.unbounded_quantile_law([], 0.5, **options).candidates()
    laws: dict[tuple, np.ndarray] = {}

    def law(x: tuple[float, ...]) -> np.ndarray:
        if x not in laws:
            exact = dpq.unbounded_quantile_law(list(x), 0.5, **options)
            laws[x] = np.array([exact.log_prob(o) for o in outputs])
        return laws[x]

    worst_ratio = max(
        float(np.abs(law(x) - law(other)).max())
        for x in datasets(2)
        for other in neighbors_of(x, neighbors)
    )
    assert 0.1 < worst_ratio <= 0.9 + 1e-9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(resolution=-1.0), "resolution must be finite and not negative, got -1.0"),
        (dict(resolution=1.0, uniform=True), "uniform must be False with a resolution, got True"),
        (dict(resolution=1.0, lower=0.2, upper=0.7), "resolution must leave one of its multiples"),
        (dict(resolution=1e-9, lower=1e9), "resolution must be at least the float64 spacing at"),
    ],
)
def test_bad_resolutions(implementation: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        implementation.unbounded_quantile([1.0], 0.5, epsilon=1.0, **options)


# Bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(beta=1.0), "beta must be finite and greater than 1, got 1.0"),
        (dict(beta=math.nan), "beta must be finite and greater than 1, got nan"),
        (dict(beta=math.inf), "beta must be finite and greater than 1, got inf"),
        (dict(beta="2"), "beta must be a real number, got '2'"),
        (dict(lower=math.inf), "lower must be finite or None, got inf"),
        (dict(upper=math.nan), "upper must be finite or None, got nan"),
        (dict(lower=3.0, upper=3.0), "lower must be below upper, got (3.0, 3.0)"),
        (dict(lower="0"), "lower must be a real number, got '0'"),
        (
            dict(lower=None, invert=True),
            "invert must be False if neither lower nor upper is given, got True",
        ),
        (dict(invert=1), "invert must be True or False, got 1"),
        (dict(uniform=0), "uniform must be True or False, got 0"),
        (dict(offset=math.inf), "offset must be finite, got inf"),
        (dict(split=0.0), "split must lie strictly between 0 and 1, got 0.0"),
        (dict(split=1.0), "split must lie strictly between 0 and 1, got 1.0"),
        (dict(split=0.4, noise="gumbel"), "split must be 0.5 for noise 'gumbel', got 0.4"),
        (
            dict(noise="normal"),
            "noise must be one of 'exponential', 'laplace', 'gumbel', got 'normal'",
        ),
        (dict(epsilon=0.0), "epsilon must be positive and finite, got 0.0"),
        (dict(epsilon=None), "exactly one of epsilon and rho must be given, got neither"),
        (dict(rho=1.0), "exactly one of epsilon and rho must be given, got both"),
        (dict(neighbors="both"), "neighbors must be one of 'swap', 'add-remove', got 'both'"),
        (dict(max_contributions=0), "max_contributions must be at least 1, got 0"),
        (dict(nan_policy="drop"), "nan_policy must be one of 'omit', 'raise', got 'drop'"),
        (dict(nan_policy="raise"), "x must not contain NaN with nan_policy='raise'"),
        (dict(q=1.5), "q must lie in [0, 1], got 1.5"),
        (dict(q=[]), "q must hold at least one level, got none"),
        (dict(x=[[1.0]]), "x must be one-dimensional"),
        (dict(counts=[1]), "counts must have one entry for each value of x"),
    ],
)
def test_bad_input(implementation: Any, options: dict[str, Any], message: str) -> None:
    given_options = {"x": [1.0, math.nan], "q": 0.5, "epsilon": 1.0, **options}
    x, q = given_options.pop("x"), given_options.pop("q")
    with pytest.raises((TypeError, ValueError)) as caught:
        implementation.unbounded_quantile(x, q, **given_options)
    assert str(caught.value).startswith(message)


def test_outputs_that_differ_for_equal_levels_are_never_released() -> None:
    law = dpq.unbounded_quantile_law([1.0], [0.5, 0.5], epsilon=1.0, **WAYS["up"])
    assert law.log_prob([1.0, 3.0]) == -math.inf < law.log_prob([1.0, 1.0])


def test_searches_have_the_defaults_of_the_release() -> None:
    expected = inspect.signature(dpq.unbounded_quantile).parameters
    given_options = inspect.signature(Search).parameters
    for name in ("beta", "invert", "uniform", "offset", "resolution"):
        assert given_options[name].default == expected[name].default, name
    for options, beta in ((dict(), 1.01), (dict(invert=True), 1.001)):
        assert dpq.unbounded_quantile_law([], 0.5, epsilon=1.0, **options)._search.beta == beta


def test_defaults_are_those_of_the_docstring() -> None:
    x = np.random.default_rng(10).exponential(3.0, 200)
    documented = dict(
        lower=0.0, upper=None, beta=1.01, noise="exponential", invert=False, uniform=False
    )
    documented |= dict(
        offset=0.0, split=2 / 3, neighbors="swap", max_contributions=1, resolution=None
    )
    for release in (
        dpq.unbounded_quantile,
        lambda *args, rng, **options: dpq.unbounded_quantile_law(*args, **options).sample(rng),
    ):
        plain, explicit = (
            [release(x, 0.5, epsilon=0.5, rng=seed, **options) for seed in range(10)]
            for options in ({}, documented)
        )
        assert plain == explicit


def test_log_prob_says_what_it_takes() -> None:
    law = dpq.unbounded_quantile_law([1.0], [0.2, 0.5], epsilon=1.0, lower=None, beta=1e100)
    with pytest.raises(ValueError, match="log_prob takes one level without lower and upper"):
        law.log_prob([0.0, 0.0])
    with pytest.raises(ValueError, match=r"o must have the shape of q, \(2,\), got \(\)"):
        law.log_prob(0.0)


def test_an_end_that_candidates_do_not_reach_is_refused() -> None:
    with pytest.raises(ValueError, match="beta"):
        dpq.unbounded_quantile([1.0], 0.5, epsilon=1.0, upper=1e300, beta=1.000001)
