"""Neighboring relations: costs, changes, distances; and a third relation, as one class more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from conftest import BOTH, VALUES
from hypothesis import given
from hypothesis import strategies as st
from releases import PUBLIC

import dpq_fast as dpq
from dpq_fast import privacy
from dpq_fast.mechanisms.registry import MECHANISMS
from dpq_fast.privacy import Guarantee
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.relations import RELATIONS, AddRemove, Relation, Swap, relation_of


@pytest.mark.parametrize(
    ("given_name", "error", "message"),
    [
        ("replace", ValueError, "^neighbors must be one of 'swap', 'add-remove', got 'replace'$"),
        (None, TypeError, "one of 'swap', 'add-remove', got None$"),
        (Swap(), TypeError, "^neighbors must be one of 'swap', 'add-remove', got"),
    ],
)
def test_relation_of_rejects_what_names_none(given_name, error, message):
    with pytest.raises(error, match=message):
        relation_of(given_name)


def test_relations_by_name():
    assert list(RELATIONS) == BOTH
    assert isinstance(relation_of("swap"), Swap) and isinstance(
        relation_of("add-remove"), AddRemove
    )
    for name in BOTH:
        assert relation_of(name) is RELATIONS[name]
        assert relation_of(name).name == name
    assert (relation_of("swap").n_is_public, relation_of("swap").parts) == (True, 2)
    assert (relation_of("add-remove").n_is_public, relation_of("add-remove").parts) == (False, 1)


COSTS = st.floats(0.0, 1e9)


@given(one=COSTS, same=COSTS, moved=st.none() | COSTS, missing=st.booleans())
def test_worst_is_the_largest_of_the_changes_that_there_are(one, same, moved, missing):
    of = dict(one=one, same=same, moved=moved, may_have_missing=missing)
    assert relation_of("add-remove").worst(**of) == one
    replaced = [same, *([one] if missing else []), *([] if moved is None else [moved])]
    assert relation_of("swap").worst(**of) == max(replaced)
    several = {name: np.array([cost, 0.0]) for name, cost in of.items() if type(cost) is float}
    for name in BOTH:
        found = relation_of(name).worst(**several, may_have_missing=missing)
        assert found.tolist() == [relation_of(name).worst(**of), 0.0]
    several["same"] = same  # a number holds for all entries
    found = relation_of("swap").worst(**several, may_have_missing=missing)
    assert np.broadcast_to(found, 2).tolist() == [relation_of("swap").worst(**of), same]


def test_worst_of_integers_and_fractions_is_exact():
    huge = 2**80
    assert relation_of("swap").worst(one=huge + 1, same=huge) == huge + 1
    assert relation_of("swap").worst(one=huge + 1, same=huge, may_have_missing=False) == huge


def changed(records: Sequence[Any], index: int | None, brought: tuple[Any, ...]) -> list[Any]:
    left = list(records) if index is None else [*records[:index], *records[index + 1 :]]
    return sorted([*left, *brought], key=str)


@pytest.mark.parametrize("records", [(), (0,), (0, 2), (1, 1, None)])
@pytest.mark.parametrize("name", BOTH)
def test_changes_are_all_the_neighbors(name, records):
    found = [changed(records, *change) for change in relation_of(name).changes(records, VALUES)]
    if name == "swap":
        expected = [
            [*records[:i], value, *records[i + 1 :]]
            for i in range(len(records))
            for value in VALUES
        ]
    else:
        expected = [[*records[:i], *records[i + 1 :]] for i in range(len(records))]
        expected += [[*records, value] for value in VALUES]
    assert found == [sorted(one, key=str) for one in expected]


@pytest.mark.parametrize("name", BOTH)
def test_distance_is_how_many_changes_there_are(name):
    relation = relation_of(name)
    for index, brought in relation.changes((0, 1), VALUES):
        assert relation.distance(int(index is not None), len(brought)) == 1
    assert relation.distance(0, 0) == 0
    assert relation.distance(3, 3) == (3 if name == "swap" else 6)
    assert relation.distance(2, 1) == (np.inf if name == "swap" else 3)


def test_steps_from_one_relation_to_another():
    swap, add_remove = relation_of("swap"), relation_of("add-remove")
    assert swap.steps_to(swap) == add_remove.steps_to(add_remove) == 1
    assert add_remove.steps_to(swap) == 2
    assert swap.steps_to(add_remove) is None


class Blank(Relation):
    """One record becomes missing, or was: neither added nor replaced by another."""

    name = "blank"
    n_is_public = True
    parts = 1

    def worst(
        self, *, one: Any, same: Any, moved: Any = None, may_have_missing: bool = True
    ) -> Any:
        return one

    def changes(
        self, records: Sequence[Any], values: Iterable[Any]
    ) -> Iterator[tuple[int | None, tuple[Any, ...]]]:
        for i, record in enumerate(records):
            for value in values if record is None else (None,):
                yield i, (value,)

    def distance(self, removed: int, added: int) -> float:
        return removed if removed == added else np.inf

    def steps_to(self, other: Relation) -> int | None:
        return 1 if isinstance(other, Swap) else super().steps_to(other)


@pytest.fixture
def blank(monkeypatch):
    """A third relation, known by its name."""
    monkeypatch.setitem(RELATIONS, "blank", Blank())
    return RELATIONS["blank"]


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_third_relation_is_one_class_more(blank, name):
    made = privacy.guarantee(name, neighbors="blank", **PUBLIC[name])
    other = privacy.guarantee(name, neighbors="add-remove", **PUBLIC[name])
    assert made.neighbors == "blank"
    statements = ("epsilon", "delta", "rho", "bounded_range", "composition")
    assert [getattr(made, one) for one in statements] == [getattr(other, one) for one in statements]


def test_a_third_relation_has_its_own_rates_and_conversions(blank):
    levels = Levels([0.25, 0.5])
    assert privacy.joint_exp.sensitivity(levels, blank) == 1.5
    assert privacy.joint_exp.calibrate(levels, epsilon=3.0, neighbors="blank").rate == 1.0
    assert privacy.aggregates.calibrate(epsilon=1.0, q=None, neighbors="blank").sum_scale(
        2, 3, True
    ) == (3)
    assert privacy.agg_tree.calibrate(epsilon=1.0, height=2, neighbors="blank").noise.scale == 2
    made = Guarantee(1.0, neighbors="blank")
    assert made.to("blank") is made
    assert made.to("swap").epsilon == 1.0
    with pytest.raises(ValueError, match=r"neighbors"):
        Guarantee(1.0, neighbors="add-remove").to("blank")


@pytest.mark.parametrize("levels", [1, 3, 40])
def test_a_third_relation_is_taken_by_the_front_door(blank, levels):
    q = np.linspace(0.1, 0.9, levels)
    for budget in ({"epsilon": 1.0}, {"rho": 0.1}):
        accountant = privacy.Accountant(9.0, 1e-6, neighbors="blank", composition="zcdp")
        out = dpq.quantile(
            [1.0, 2.0, 5.0],
            q,
            bounds=(0, 9),
            neighbors="blank",
            accountant=accountant,
            rng=1,
            **budget,
        )
        assert out.shape == q.shape and accountant.history[0].neighbors == "blank"


def test_a_third_relation_is_refused_where_it_is_not_known():
    with pytest.raises(ValueError, match=r"^neighbors must be one of 'swap', 'add-remove', got"):
        privacy.guarantee("joint_exp", epsilon=1.0, neighbors="blank")
