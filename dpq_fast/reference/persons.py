"""Whose the records are, in counts: a reference takes these in the place of ids."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence

WEIGHT = 2**20


def counts_of(
    x: Sequence[float], privacy_unit: Sequence[Hashable], contributions: int | str = "weights"
) -> tuple[list[int], int]:
    """How many records each row stands for, and how many a person has at most.

    Parameters
    ----------
    x : sequence of float, shape (n,)
        Private records.
    privacy_unit : sequence, shape (n,)
        The id of each record's person; None where it is missing.
    contributions : "weights" or int, default "weights"
        As in `dpq_fast.quantile`.

    Returns
    -------
    counts : list of int
        For `counts` of a release. By weights the records are laid out one by one where the fast
        side moves them as one: the laws are alike, and the same without a dither.
    most : int
        For its `max_contributions`.

    Examples
    --------
    >>> counts_of([3.0, 1.0, 2.0, 9.0], ["ann", "ann", "ann", "bob"])
    ([349525, 349525, 349525, 1048576], 1048576)
    >>> counts_of([3.0, 1.0, 2.0, 9.0], ["ann", "ann", "ann", "bob"], 1)
    ([0, 0, 1, 1], 1)
    """
    rows: dict[Hashable, list[int]] = defaultdict(list)
    for row, (value, person) in enumerate(zip(x, privacy_unit, strict=True)):
        if person is not None and not math.isnan(value):
            rows[person].append(row)
    counts = [0] * len(x)
    for own in rows.values():
        number = len(own)
        if not isinstance(contributions, int):
            for row in own:
                counts[row] = WEIGHT // number
            continue
        kept = min(contributions, number)
        for place, row in enumerate(sorted(own, key=x.__getitem__)):
            before, after = (at * kept + number // 2 for at in (place, place + 1))
            counts[row] = after // number - before // number
    return counts, WEIGHT if contributions == "weights" else int(contributions)


def parts_of_weights(weights: Sequence[float], max_weight: float) -> list[int]:
    """How many parts each record has, of the 2**20 of the largest: as `dpq_fast.Weights`.

    Parameters
    ----------
    weights : sequence of float, shape (n,)
        Private.
    max_weight : float
        The largest one that a record may have.

    Returns
    -------
    list of int
        For `counts` of a release, with ``max_contributions=2**20``.

    Examples
    --------
    >>> parts_of_weights([1.0, 4.0, 9.0, float("nan")], 4.0)
    [262144, 1048576, 1048576, 0]
    """
    parts = []
    for weight in weights:
        share = 0.0 if math.isnan(weight) else min(max(weight / max_weight, 0.0), 1.0)
        parts.append(math.floor(share * WEIGHT))
    return parts
