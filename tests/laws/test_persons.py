"""Laws of releases about persons: small data sets of whole persons, and all their neighbors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest

import dpq_fast as dpq
import enumeration
from dpq_fast import privacy
from dpq_fast.data.persons import WEIGHT, Persons

VALUES = (0, 1, 2)
PLACE = dict(bounds=(0, 2), resolution=1)
# Of exact laws in float64.
ROUNDING = 1e-8

Person = tuple[Any, ...]
DataSet = tuple[Person, ...]


def persons_of(records: Sequence[Any], most: int) -> list[Person]:
    """All that one person may hold: up to so many records, and nothing but a missing one."""
    held = [each for k in range(1, most + 1) for each in combinations_with_replacement(records, k)]
    missing = math.nan if not isinstance(records[0], tuple) else (math.nan, records[0][1])
    return [*held, (missing,)]


def data_sets(persons: Sequence[Person], most: int) -> list[DataSet]:
    return [each for n in range(most + 1) for each in combinations_with_replacement(persons, n)]


def neighbors_of(
    data: DataSet, persons: Sequence[Person], relation: str, most: int
) -> Iterator[DataSet]:
    """What comes of one whole person who is replaced, removed or added."""
    place = {person: i for i, person in enumerate(persons)}

    def ordered(rows: Sequence[Person]) -> DataSet:
        return tuple(sorted(rows, key=place.__getitem__))

    for i in range(len(data)):
        rest = data[:i] + data[i + 1 :]
        if relation == "add-remove":
            yield rest
        else:
            for person in persons:
                yield ordered((*rest, person))
    if relation == "add-remove" and len(data) < most:
        for person in persons:
            yield ordered((*data, person))


def rows_of(data: DataSet) -> tuple[np.ndarray, np.ndarray]:
    """Values and ids of the rows, in an order that mixes persons."""
    rows = [(value, i) for i, person in enumerate(data) for value in person]
    rows = rows[::2] + rows[1::2]
    values = np.array([value for value, _ in rows], dtype=np.float64)
    return values, np.array([i for _, i in rows], dtype=np.int64)


def largest_loss(
    law: Callable[[DataSet], dict[Any, float]], persons: list[Person], most: int, relation: str
) -> float:
    """The largest log ratio over all neighbors and outputs."""
    laws = {data: law(data) for data in data_sets(persons, most)}
    loss = 0.0
    for data, own in laws.items():
        for other in neighbors_of(data, persons, relation, most):
            beside = laws[other]
            loss = max(loss, *(own[o] - beside[o] for o in own))
    return loss


def weighed(data: DataSet) -> list[tuple[int, Fraction]]:
    """The records with their weights in units of a person, from the definition."""
    found = []
    for person in data:
        held = [value for value in person if value == value]
        parts = WEIGHT // len(held) if held else 0
        found += [(value, Fraction(parts, WEIGHT)) for value in held]
    return found


def brute_ind_exp(data: DataSet, q: Sequence[float], rates: Sequence[float]) -> dict[Any, float]:
    """Permute-and-flip by weighted depth, with rates for a whole person."""
    records = weighed(data)
    whole = sum(weight for _, weight in records)
    singles = []
    for level, rate in zip(q, rates, strict=True):
        depths = []
        for o in VALUES:
            below = sum(weight for value, weight in records if value < o)
            up_to = sum(weight for value, weight in records if value <= o)
            target = Fraction(level) * whole
            depths.append(float(min(target - below, up_to - target)))
        singles.append(enumeration.permute_and_flip([rate * depth for depth in depths]))
    return enumeration.sorted_tuples(singles)


def brute_joint_exp(data: DataSet, q: Sequence[float], rate: float) -> dict[Any, float]:
    """JointExp by weighted deviations, without a dither."""
    records = weighed(data)
    whole = sum(weight for _, weight in records)
    levels = [Fraction(0), *map(Fraction, q), Fraction(1)]
    found = {}
    for o in combinations_with_replacement(VALUES, len(q)):
        edges = [-math.inf, *o, math.inf]
        total = Fraction(0)
        for j in range(1, len(edges)):
            inside = sum(w for value, w in records if edges[j - 1] <= value < edges[j])
            total += abs(inside - (levels[j] - levels[j - 1]) * whole)
        found[o] = -rate * float(total)
    return enumeration.normalized(found)


def table_of(made: Any, m: int) -> dict[Any, float]:
    return {o: made.log_prob(list(o)) for o in combinations_with_replacement(VALUES, m)}


LAWS: dict[str, Callable[[DataSet, str], dict[Any, float]]] = {
    "ind_exp, one level": lambda data, relation: _law(dpq.ind_exp_law, data, 0.5, relation),
    "ind_exp, exponential": lambda data, relation: _law(
        dpq.ind_exp_law, data, 0.25, relation, selection="exponential"
    ),
    "ind_exp, two levels": lambda data, relation: _law(
        dpq.ind_exp_law, data, [0.25, 0.5], relation
    ),
    "joint_exp": lambda data, relation: _law(
        dpq.joint_exp_law, data, [0.25, 0.5], relation, dither=False
    ),
    "approx_quantiles": lambda data, relation: _law(
        dpq.approx_quantiles_law, data, [0.25, 0.5], relation, dither=False
    ),
    "ind_exp, two records": lambda data, relation: _law(
        dpq.ind_exp_law, data, 0.5, relation, contributions=2
    ),
    "joint_exp, two records": lambda data, relation: _law(
        dpq.joint_exp_law, data, [0.5], relation, dither=False, contributions=2
    ),
}
EPSILON = 1.0
# What the worst of them take of it at least, where it is told by three persons: all, if they may be
# one more or less, and one level is asked for.
TAKEN = {
    ("ind_exp, one level", "add-remove"): 1.0 - 1e-6,
    ("ind_exp, two records", "add-remove"): 1.0 - 1e-6,
    ("ind_exp, one level", "swap"): 0.95,
    ("ind_exp, two records", "swap"): 0.95,
}


def _law(law: Any, data: DataSet, q: Any, relation: str, **options: Any) -> dict[Any, float]:
    values, ids = rows_of(data)
    options = dict(neighbors=relation) | PLACE | options
    return table_of(
        law(values, np.atleast_1d(q), epsilon=EPSILON, privacy_unit=ids, **options), np.size(q)
    )


@pytest.mark.parametrize("relation", ["swap", "add-remove"])
@pytest.mark.parametrize("name", ["ind_exp, two levels", "joint_exp"])
def test_laws_of_persons_are_those_of_their_weights(name, relation):
    rng = np.random.default_rng(3)
    persons = persons_of(VALUES, 3)
    q = [0.25, 0.5]
    for _ in range(40):
        data = tuple(persons[i] for i in rng.integers(0, len(persons), rng.integers(1, 5)))
        if name == "joint_exp":
            rate = privacy.joint_exp.calibrate(q, epsilon=EPSILON, neighbors=relation).rate
            expected = brute_joint_exp(data, q, rate)
        else:
            spent = privacy.ind_exp.calibrate(q, epsilon=EPSILON, neighbors=relation)
            expected = brute_ind_exp(data, q, spent.rates)
        found = LAWS[name](data, relation)
        assert found.keys() == expected.keys()
        for o, log_prob in expected.items():
            assert found[o] == pytest.approx(log_prob, abs=1e-7)


@pytest.mark.parametrize("relation", ["swap", "add-remove"])
@pytest.mark.parametrize(
    "name", [each if "one" in each else pytest.param(each, marks=pytest.mark.slow) for each in LAWS]
)
def test_a_whole_person_costs_no_more_than_epsilon(name, relation):
    persons = persons_of(VALUES, 3)
    loss = largest_loss(lambda data: LAWS[name](data, relation), persons, 3, relation)
    assert TAKEN.get((name, relation), 0.3) * EPSILON <= loss <= EPSILON + ROUNDING


def mutants() -> dict[str, Callable[[pytest.MonkeyPatch], None]]:
    """Faults of weights and choice."""

    def by_rows(self: Persons, values: np.ndarray) -> np.ndarray:
        return np.where(np.isnan(values), 0, WEIGHT).astype(np.int64)

    def all_stay(self: Persons, values: np.ndarray) -> np.ndarray:
        return np.where(np.isnan(values), 0, 1).astype(np.int64)

    def missing_ids_in_one(self: Persons, values: np.ndarray) -> np.ndarray:
        return WEIGHT // np.maximum(np.bincount(self._codes), 1)[self._codes] * 2

    return {
        "weights by rows": lambda patch: patch.setattr(Persons, "weights", by_rows),
        "twice the weight": lambda patch: patch.setattr(Persons, "weights", missing_ids_in_one),
        "no bound": lambda patch: patch.setattr(Persons, "weights", all_stay),
    }


@pytest.mark.parametrize("mutant", mutants())
def test_a_faulty_weight_is_found(mutant, monkeypatch):
    mutants()[mutant](monkeypatch)
    name = "ind_exp, two records" if mutant == "no bound" else "ind_exp, one level"
    persons = persons_of(VALUES, 3)
    loss = largest_loss(lambda data: LAWS[name](data, "add-remove"), persons, 2, "add-remove")
    assert loss > 1.1 * EPSILON


# Groups

GROUPS = (0, 1)
RECORDS = [(value, group) for value in (0, 1) for group in GROUPS]


def table_rows(data: DataSet) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows = [(*record, i) for i, person in enumerate(data) for record in person]
    rows = rows[::2] + rows[1::2]
    values, groups, ids = (
        (np.array(part) for part in zip(*rows, strict=True)) if rows else [np.zeros(0)] * 3
    )
    return values.astype(np.float64), groups.astype(np.int64), ids.astype(np.int64)


def parts_of_groups(data: DataSet) -> dict[Any, int]:
    """How many parts each group has at each value, of the rows as `quantile_by` reads them."""
    values, groups, ids = table_rows(data)
    found = {}
    for value in (0, 1):
        held = np.where(values == value, values, np.nan)
        # noise of a scale far below one part
        number = dpq.count_by(
            values, 2 * groups + (held == value), groups=[1, 3], epsilon=1e12, privacy_unit=ids
        )
        found |= {(g, value): round(n * WEIGHT) for g, n in zip(GROUPS, number.values, strict=True)}
    return found


@pytest.fixture(scope="module")
def grouped():
    """The persons, and what each data set has in each group."""
    persons = persons_of(RECORDS, 2)
    return persons, {data: parts_of_groups(data) for data in data_sets(persons, 2)}


@pytest.mark.parametrize("relation", ["swap", "add-remove"])
def test_parts_of_a_person_add_up_over_groups(grouped, relation):
    persons, parts = grouped
    allowed, most = WEIGHT * (2 if relation == "swap" else 1), 0
    for data, own in parts.items():
        for other in neighbors_of(data, persons, relation, 2):
            beside = parts[other]
            most = max(most, sum(abs(own[place] - beside[place]) for place in own))
    assert most == allowed


def depths_in(parts: dict[Any, int], group: int, rate: float) -> list[float]:
    """ln of permute-and-flip's law of a median of 0 and 1 in one group."""
    zeros, ones = parts[group, 0], parts[group, 1]
    half = Fraction(zeros + ones, 2)
    depths = [min(half, zeros - half), min(half - zeros, half)]
    return enumeration.permute_and_flip([rate * float(depth) for depth in depths])


@pytest.mark.parametrize("relation", ["swap", "add-remove"])
def test_medians_of_groups_cost_no_more_than_epsilon(grouped, relation):
    persons, parts = grouped
    spent = privacy.quantile_by.calibrate(
        0.5, epsilon=EPSILON, neighbors=relation, max_contributions=WEIGHT
    )
    laws = {
        data: [depths_in(own, group, spent.rate) for group in GROUPS] for data, own in parts.items()
    }
    loss = 0.0
    for data, own in laws.items():
        for other in neighbors_of(data, persons, relation, 2):
            pairs = zip(own, laws[other], strict=True)
            loss = max(loss, sum(max(a - b for a, b in zip(*pair, strict=True)) for pair in pairs))
    assert 0.9 * EPSILON <= loss <= EPSILON + ROUNDING


def test_medians_of_groups_are_drawn_from_that_law():
    data = (((0, 0), (1, 1)), ((0, 0), (0, 0), (1, 0)), ((1, 0),))
    values, groups, ids = table_rows(data)
    rng = np.random.Generator(np.random.PCG64(1))
    draws = np.array(
        [
            dpq.quantile_by(
                values,
                groups,
                0.5,
                groups=GROUPS,
                epsilon=4.0,
                bounds=(0, 1),
                resolution=1,
                privacy_unit=ids,
                rng=rng,
            ).values
            for _ in range(2_000)
        ]
    )
    spent = privacy.quantile_by.calibrate(0.5, epsilon=4.0, max_contributions=WEIGHT)
    for group in GROUPS:
        share = math.exp(depths_in(parts_of_groups(data), group, spent.rate)[1])
        beside = 5.0 * math.sqrt(share * (1.0 - share) / len(draws))
        assert 0.02 < share < 0.98
        assert abs(draws[:, group].mean() - share) < beside


@pytest.mark.parametrize("relation", ["swap", "add-remove"])
def test_keys_by_persons_cost_no_more_than_epsilon_and_delta(grouped, relation):
    persons, parts = grouped
    epsilon, delta = 1.0, 0.05
    spent = privacy.key_selection.calibrate(
        epsilon=epsilon, delta=delta, neighbors=relation, max_contributions=WEIGHT
    )
    kept: dict[int, float] = {}

    def law(data: DataSet) -> np.ndarray:
        own, shares = parts[data], []
        for group in GROUPS:
            number = own[group, 0] + own[group, 1]
            if number not in kept:
                low, high = spent.bounds(number, 60)
                kept[number] = (low + high) / 2.0 / 2.0**60
            shares.append(kept[number])
        first, second = shares
        return np.outer([1.0 - first, first], [1.0 - second, second])

    laws = {data: law(data) for data in parts}
    most = 0.0
    for data, own in laws.items():
        for other in neighbors_of(data, persons, relation, 2):
            beyond = np.maximum(own - math.exp(epsilon) * laws[other], 0.0).sum()
            most = max(most, float(beyond))
    assert 0.9 * delta <= most <= delta * (1.0 + 1e-9)


# Sums, means and numbers of persons


@pytest.mark.parametrize("relation", ["swap", "add-remove"])
def test_sums_by_group_change_by_no_more_than_a_clip(relation):
    records = [(value, group) for value in (-1.0, 0.5, 3.0) for group in GROUPS]
    persons, upper = persons_of(records, 2), 2.0
    exact = dict(groups=GROUPS, epsilon=1e12, q=None, lower=-upper, upper=upper)
    sums = {}
    for data in data_sets(persons, 2):
        values, groups, ids = table_rows(data)
        sums[data] = dpq.sum_by(values, groups, privacy_unit=ids, **exact).values
    allowed, most = upper * (2.0 if relation == "swap" else 1.0), 0.0
    for data, own in sums.items():
        for other in neighbors_of(data, persons, relation, 2):
            most = max(most, float(np.abs(own - sums[other]).sum()))
    assert 0.99 * allowed <= most <= allowed + 1e-4


def test_sums_means_and_numbers_are_of_persons():
    values = np.array([1.0, 2.0, 3.0, np.nan, 10.0, 5.0])
    ids = ["a", "b", "a", "c", None, "b"]
    exact = dict(epsilon=1e9, privacy_unit=ids)
    assert dpq.count(values, **exact) == 2
    assert dpq.sum(values, bounds=(0, 100), **exact) == pytest.approx(11.0, abs=1e-3)
    assert dpq.mean(values, bounds=(0, 100), **exact) == pytest.approx(2.75, abs=1e-3)
    assert dpq.sum(values, bounds=(0, 5), **exact) == pytest.approx(9.0, abs=1e-3)
