"""Exact certificates: whole output laws as fractions, and the largest ratio of neighbors' laws.

``python papers/certificates.py`` enumerates, compares and prints; ``--write`` makes
`results/certificates.json` and `docs/certificates.md` from it; ``--quick`` is a smaller form.

Where rates are multiples of ln 2, the weights of mechanisms are powers of two, so that laws are
rational. They are enumerated here from the definitions in the papers, in fractions, and nothing is
rounded: a ratio is at most 2^k, or it is not. No code is shared with the library, whose laws are
asked for in `compared` alone. All rates are in units of ln 2; k is epsilon / ln 2.

A data set is a multiset of points 0, 1, ..., by its records in ascending order. The keys of papers
are those of docs/papers.md.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from itertools import combinations, combinations_with_replacement, pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "papers" / "results" / "certificates.json"
PAGE = ROOT / "docs" / "certificates.md"
BEGIN, END = "<!-- certificates: begin -->", "<!-- certificates: end -->"

DataSet = tuple[int, ...]
# Probabilities of outputs; a law is one table, or several of independent outputs.
Table = dict[Any, Fraction]
Law = tuple[Table, ...]
Rates = tuple[Fraction, ...]
HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)
# By this part of a probability laws of floats may be off.
TOLERANCE = 1e-12
# Laws of floats are asked for some so many probabilities of a case, of every so many data sets;
# those of the reference, which is slow, for fewer.
ASKED, ASKED_OF_REFERENCE = 10_000, 1_000


# --- Data sets and neighbors


def data_sets(points: int, most: int) -> list[DataSet]:
    """All multisets of up to `most` records."""
    return [x for n in range(most + 1) for x in combinations_with_replacement(range(points), n)]


def pairs(points: int, most: int, relation: str, left_out: bool) -> Iterator[tuple]:
    """All neighbors, each pair once: what they have in common, and one record of each.

    Under "swap" a record is replaced by another point, or with `left_out` by none at all.
    """
    for common in data_sets(points, most - 1):
        around = [tuple(sorted((*common, point))) for point in range(points)]
        if relation == "swap":
            yield from combinations(around, 2)
        if relation == "add-remove" or left_out:
            yield from ((common, x) for x in around)


# --- Mechanisms, from their definitions


def power(exponent: Fraction) -> Fraction:
    """2 to a power, which is rational for whole ones alone."""
    if exponent.denominator != 1:
        raise ValueError(f"2 to the power {exponent} is not rational")
    return Fraction(2) ** exponent.numerator


def exponential(scores: Mapping[Any, Fraction]) -> Table:
    """The exponential mechanism [MT07]: outputs in proportion to 2 to their scores."""
    least = min(scores.values())
    weights = {o: power(score - least).numerator for o, score in scores.items()}
    total = sum(weights.values())
    return {o: Fraction(weight, total) for o, weight in weights.items()}


def permute_and_flip(scores: Mapping[Any, Fraction]) -> Table:
    """[MS20] Algorithm 1, over all orders.

    Of those that are left each is as likely as any other to come next. It is released with
    probability 2^(score - best score), and else taken out.
    """
    outputs, best = list(scores), max(scores.values())
    accepts = [power(score - best) for score in scores.values()]
    reached = {(1 << len(outputs)) - 1: Fraction(1)}  # the sets that are left, as bits
    law = dict.fromkeys(outputs, Fraction(0))
    for _ in outputs:
        smaller: dict[int, Fraction] = defaultdict(Fraction)
        for left, probability in reached.items():
            for i, o in enumerate(outputs):
                if left >> i & 1:
                    comes = probability / left.bit_count()
                    law[o] += comes * accepts[i]
                    smaller[left ^ 1 << i] += comes * (1 - accepts[i])
        reached = smaller
    return law


def depth(x: DataSet, q: Fraction, o: int) -> Fraction:
    """How far the target q n lies inside the records at o; negative outside ([S11], with ties)."""
    target = q * len(x)
    return min(target - bisect_left(x, o), bisect_right(x, o) - target)


def ind_exp(select: Callable, q: Rates, x: DataSet, points: int, rates: Rates) -> Law:
    """Independent selections by depth, sorted."""
    singles = [
        select({o: rate * depth(x, level, o) for o in range(points)})
        for level, rate in zip(q, rates, strict=True)
    ]
    law: Table = defaultdict(Fraction)
    for o in product(range(points), repeat=len(q)):
        law[tuple(sorted(o))] += math.prod(p[each] for p, each in zip(singles, o, strict=True))
    return (law,)


def joint_exp(q: Rates, x: DataSet, points: int, rates: Rates) -> Law:
    """[GJK21] 3.1: the score of o is minus the sum of |n(o_j-1, o_j) - (q_j - q_j-1) n|."""
    (rate,), n = rates, len(x)
    expected = [(right - left) * n for left, right in pairwise((Fraction(0), *q, Fraction(1)))]

    @cache
    def score(ranks: tuple[int, ...]) -> Fraction:
        inside = (right - left for left, right in pairwise((0, *ranks, n)))
        return -rate * sum(abs(c - e) for c, e in zip(inside, expected, strict=True))

    rank = [bisect_left(x, o) for o in range(points)]
    outputs = combinations_with_replacement(range(points), len(q))
    return (exponential({o: score(tuple(rank[each] for each in o)) for o in outputs}),)


def approx_quantiles(q: Rates, x: DataSet, points: int, rates: Rates) -> Law:
    """[KSS22]: the middle level first, then those on either side, of the records there.

    A part aims at its own level, of its own records; those at the cut go to the right.
    """

    def part(inside: DataSet, lower: int, upper: int, low: int, high: int) -> Table:
        if lower == upper:
            return {(): Fraction(1)}
        middle = (lower + upper) // 2
        edges = (Fraction(0), *q, Fraction(1))
        before, after = edges[lower], edges[upper + 1]
        target = (q[middle] - before) / (after - before) * len(inside)
        rank = {o: bisect_left(inside, o) for o in range(low, high + 1)}
        single = exponential({o: -rates[middle] * abs(r - target) for o, r in rank.items()})
        law = {}
        for o, p in single.items():
            left = part(inside[: rank[o]], lower, middle, low, o)
            right = part(inside[rank[o] :], middle + 1, upper, o, high)
            for (a, p_a), (b, p_b) in product(left.items(), right.items()):
                law[(*a, o, *b)] = p_a * p * p_b
        return law

    return (part(x, 0, len(q), 0, points - 1),)


def geometric(center: int, rate: Fraction, low: int, high: int) -> Table:
    """Discrete Laplace noise on an integer: z in proportion to 2^(-rate |z|).

    Beyond all integers that it is added to ratios stay what they are: one output on either side.
    """
    a = power(-rate)
    table: Table = {y: (1 - a) / (1 + a) * a ** abs(y - center) for y in range(low, high + 1)}
    table[f"below {low}"] = a ** (center - low + 1) / (1 + a)
    table[f"above {high}"] = a ** (high - center + 1) / (1 + a)
    return table


def noisy(
    integers: Callable[[DataSet], Sequence[int]],
    spans: Sequence[tuple[int, int]],
    x: DataSet,
    points: int,
    rates: Rates,
) -> Law:
    """Independent noise on some integers, from low to high each; none where there is no rate."""
    return tuple(
        geometric(value, rate, *span) if rate else {value: Fraction(1)}
        for value, rate, span in zip(integers(x), rates, spans, strict=True)
    )


def nodes(height: int, branching: int, points: int, x: DataSet) -> list[int]:
    """Counts of a tree over points, level by level below its root ([GJK21] 5.1)."""
    counts = []
    for leaves in (branching**level for level in range(1, height + 1)):
        own, finest = [0] * leaves, branching**height
        for point in x:
            leaf = point * min(finest, points) // points
            own[leaf * leaves // finest] += 1
        counts += own
    return counts


def halts(gaps: Sequence[Fraction], rates: Rates, noise: str) -> list[Fraction]:
    """AboveThreshold [Dur23, Algorithm 1]: to halt at each query, and at none.

    Gaps are queries minus threshold. With a threshold's noise t a query is passed with probability
    F(t - gap). Between two gaps all factors are sums of powers 2^(e t), and so are products; their
    integrals are rational, except for e = 0.
    """
    first, second = rates
    if noise == "gumbel":  # [Dur23] Lemma 3.3
        through = [Fraction(1)]
        for gap in gaps:
            through.append(1 / (1 / through[-1] + power(second * gap)))
        return [a - b for a, b in pairwise(through)] + through[-1:]
    sides = 1 if noise == "exponential" else 2
    bends = sorted({Fraction(0), *(gap for gap in gaps if sides == 2 or gap > 0)})
    ends = [*bends, math.inf] if sides == 1 else [-math.inf, *bends, math.inf]
    law = [Fraction(0)] * (len(gaps) + 1)
    for low, high in pairwise(ends):
        left = {-first if low >= 0 else first: first / sides}  # what is left of the density
        for k, gap in enumerate(gaps):
            if low >= gap:
                stays = {Fraction(0): Fraction(1), -second: -power(second * gap) / sides}
            else:
                stays = {second: power(-second * gap) / 2} if sides == 2 else {}
            passed = _times(left, stays)
            law[k] += _integral(left, low, high) - _integral(passed, low, high)
            left = passed
        law[-1] += _integral(left, low, high)
    return law


Powers = dict[Fraction, Fraction]  # the factor of each 2^(e t)


def _times(one: Powers, other: Powers) -> Powers:
    powers: Powers = defaultdict(Fraction)
    for (e, c), (e2, c2) in product(one.items(), other.items()):
        powers[e + e2] += c * c2
    return powers


def _integral(powers: Powers, low: Any, high: Any) -> Fraction:
    """Of a sum of powers, times ln 2."""
    total = Fraction(0)
    for e, c in powers.items():
        if e == 0:
            raise ValueError("an integral of 1 is a multiple of ln 2, which is not rational")
        at_low, at_high = (power(e * t) if abs(t) < math.inf else 0 for t in (low, high))
        total += c * (at_high - at_low) / e
    return total


def above_threshold(noise: str, x: DataSet, points: int, rates: Rates) -> Law:
    """Whether a point has a record, point after point."""
    law = halts(tuple(Fraction(x.count(point) - 1) for point in range(points)), rates, noise)
    return (dict(zip([*range(points), None], law, strict=True)),)


def search(q: Fraction, noise: str, x: DataSet, points: int, rates: Rates) -> Law:
    """[Dur23] Algorithm 2, whose candidates are the points: the records below each, but the first.

    The last one is released where none halts.
    """
    gaps = (len([each for each in x if each < o]) - q * len(x) for o in range(1, points))
    law = halts(tuple(gaps), rates, noise)
    return (dict(enumerate([*law[:-2], law[-2] + law[-1]], 1)),)


def search_both(q: Fraction, noise: str, x: DataSet, points: int, rates: Rates) -> Law:
    """[Dur23] Algorithm 4: up from 0, and where that halts at once, down from 0.

    Outputs are 0, and a candidate beyond each point on either side of it.
    """
    zero = points // 2  # the points below are negative
    far, ways = points - zero, []
    for sign, level in ((1, q), (-1, 1 - q)):
        placed = [sign * (each - zero + HALF) for each in x]
        gaps = (sum(each < i for each in placed) - level * len(x) for i in range(far + 1))
        law = halts(tuple(gaps), rates, noise)
        ways.append([*law[:-2], law[-2] + law[-1]])
    up, down = ways
    law = {0: up[0] * down[0]}
    law |= {i: p for i, p in enumerate(up) if i}
    return (law | {-i: up[0] * p for i, p in enumerate(down) if i},)


def kept_keys(delta: Fraction, x: DataSet, points: int, rates: Rates) -> Law:
    """The optimal rule for keys [DVGM22], each by its number of records."""
    up, down = (power(rate) for rate in rates[:2])
    entering = delta if rates[0] == rates[1] else 0  # "swap" spends delta on what leaves
    p = [Fraction(0)]
    while len(p) <= len(x):
        p.append(min(up * p[-1] + delta, 1 - (1 - p[-1] - entering) / down, Fraction(1)))
    law: Table = {(): Fraction(1)}
    for key in sorted(set(x)):
        keeps = p[x.count(key)]
        dropped = {kept: each * (1 - keeps) for kept, each in law.items()}
        law = dropped | {(*kept, key): each * keeps for kept, each in law.items()}
    return ({kept: each for kept, each in law.items() if each},)


# --- Dither


def dithers(x: DataSet, bits: int) -> list[DataSet]:
    """The equally likely data sets on a lattice of 2^bits times as many points.

    The i-th record of a point has the offset i, with its bits turned around, but for one shift of
    all: a uniform offset for each record, as even as can be in one point.
    """
    turned = [int(f"{i:0{bits}b}"[::-1], 2) for i in range(1 << bits)]
    offsets = [turned[(at - bisect_left(x, point)) % (1 << bits)] for at, point in enumerate(x)]
    return [
        tuple(sorted((point << bits) + (u ^ shift) for point, u in zip(x, offsets, strict=True)))
        for shift in range(1 << bits)
    ]


# --- Cases


@dataclass(frozen=True)
class Case:
    """A mechanism with all that is public about it.

    Attributes
    ----------
    mechanism, setting, relation : str
    points, most : int
        Points, and most records.
    k : Fraction
        The ratios are at most 2^k.
    rates : tuple of Fraction
    law : callable
        Of a data set, the number of points, and rates.
    source : str
        Where the rates come from.
    options : dict
        How the library is called.
    bits : int
        Of dither.
    left_out : bool
        Whether a record may be replaced by none.
    spread : Fraction or None
        The ranges are at most 2 to this, given the dither, where one is stated.
    delta : Fraction
    tight : tuple of str
        What is attained in theory: "ratio", "range" or "delta".
    """

    mechanism: str
    setting: str
    relation: str
    points: int
    most: int
    k: Fraction
    rates: Rates
    law: Callable[[DataSet, int, Rates], Law]
    source: str
    options: dict[str, Any]
    bits: int = 0
    left_out: bool = True
    spread: Fraction | None = None
    delta: Fraction = Fraction(0)
    tight: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.mechanism}, {self.setting}, {self.relation}"

    def at(self, times: Fraction | int, spent: Fraction | int) -> Case:
        """The same for `times` the budget, of which rates spend `spent`: honest if 1."""
        spread = None if self.spread is None else self.spread * times
        rates = tuple(rate * times * spent for rate in self.rates)
        return replace(self, k=self.k * times, spread=spread, rates=rates)


# What a case has beside its relation and size.
Fields = dict[str, Any]


def cases(points: int, most: int) -> list[Case]:
    """All that is certified, for data sets of a size."""
    families = (selections, joint, recursions, integers, trees, thresholds, searches, keys)
    return [
        Case(relation=relation, points=points, most=most, **fields)
        for family in families
        for relation in ("swap", "add-remove")
        for fields in family(relation, points, most)
    ]


def levels(q: Rates) -> str:
    return f"q = {', '.join(map(str, q))}"


def selections(relation: str, *size: int) -> Iterator[Fields]:
    """Rate e / 2Δ of each level's part e: the depth has Δ = 1, or max(q, 1 - q)."""
    source = {
        "swap": "Δ = 1 [S11; GJK21, Lemma 7]",
        "add-remove": "Δ = max(q, 1 − q): target and count move together",
    }[relation]
    for q in ((HALF,), (QUARTER,), (QUARTER, HALF)):
        sensitivities = [1 if relation == "swap" else max(level, 1 - level) for level in q]
        each = 4 * max(sensitivities) * (1 if q[0] == HALF else 2)
        rates = tuple(Fraction(each) / (2 * sensitivity) for sensitivity in sensitivities)
        k = each * len(q)
        for selection, select in (
            ("exponential", exponential),
            ("permute-and-flip", permute_and_flip),
        ):
            yield dict(
                mechanism="ind_exp",
                setting=f"{selection}, {levels(q)}",
                k=Fraction(k),
                rates=rates,
                law=partial(ind_exp, select, q),
                source=source,
                options=dict(q=q, selection=selection),
                spread=Fraction(k) if select is exponential else None,
                tight=("range",) if select is exponential else ("ratio",)[: 2 - len(q)],
            )


def joint(relation: str, *size: int) -> Iterator[Fields]:
    """Rate ε / 2Δ."""
    source = {
        "swap": "Δ = 2 [GJK21, Lemma 3]",
        "add-remove": "Δ = 2 (1 − min (q_j − q_{j−1})) [GJK21, Lemma 10]",
    }[relation]
    for q, bits in (
        *(((HALF,), bits) for bits in (0, 1, 2)),
        *(((QUARTER, 3 * QUARTER), bits) for bits in (0, 1, 2)),
        *(((QUARTER, HALF, 3 * QUARTER), bits) for bits in (0, 1)),
    ):
        gap = min(right - left for left, right in pairwise((Fraction(0), *q, Fraction(1))))
        sensitivity = 2 if relation == "swap" else 2 * (1 - gap)
        k = 2 * sensitivity * (1 if len(q) == 1 else 2)
        yield dict(
            mechanism="joint_exp",
            setting=levels(q) + dithered(bits),
            k=Fraction(k),
            rates=(Fraction(k) / (2 * sensitivity),),
            law=partial(joint_exp, q),
            source=source,
            options=dict(q=q),
            bits=bits,
            spread=Fraction(k),
            tight=("range",),
        )


def dithered(bits: int) -> str:
    return ("", ", 1 bit of dither", ", 2 bits of dither")[bits]


def recursions(relation: str, *size: int) -> Iterator[Fields]:
    """Two depths, of ε/2 each; all parts aim at their middle.

    One record more or less changes one part of a depth, whose target moves: 2 max(1/2, 1/2) times
    the rate. A replaced one stays in its part, for 2 times the rate, or changes two.
    """
    source = {
        "swap": "ε/2 for each depth [KSS22]: 2 rates in one part, or 1 in each of two",
        "add-remove": "ε/2 for each depth [KSS22]: 1 rate in one part",
    }[relation]
    k = Fraction(8 if relation == "swap" else 4)
    rate = k / 2 / (2 if relation == "swap" else 1)
    for q, bits in (
        *(((QUARTER, HALF), bits) for bits in (0, 1, 2)),
        *(((QUARTER, HALF, 3 * QUARTER), bits) for bits in (0, 1)),
    ):
        yield dict(
            mechanism="approx_quantiles",
            setting=levels(q) + dithered(bits),
            k=k,
            rates=(rate,) * len(q),
            law=partial(approx_quantiles, q),
            source=source,
            options=dict(q=q),
            bits=bits,
        )


def integers(relation: str, points: int, most: int) -> Iterator[Fields]:
    """Counts, sums and means: the rates of their integers are shares of ε over what they change."""
    swap, width = relation == "swap", points - 1

    def case(
        name: str, setting: str, of: Callable, unit: int, rates: Sequence, source: str, **options
    ) -> Fields:
        centers = list(zip(*(of(x) for x in data_sets(points, most)), strict=True))
        return dict(
            mechanism=name,
            setting=setting,
            k=Fraction(unit),
            rates=tuple(map(Fraction, rates)),
            law=partial(noisy, of, [(min(each), max(each)) for each in centers]),
            source=source,
            tight=("ratio",),
            left_out=options.pop("left_out", True),
            options=options,
        )

    yield case("count", "records", lambda x: (len(x),), 3, [3], "one record")
    for low in (0, -2, 1):
        high = low + width
        for left_out in (True, False) if swap else (True,):
            most_of_one = max(abs(low), abs(high))
            replaced = max(width, most_of_one) if left_out else width
            change = replaced if swap else most_of_one
            yield case(
                "sum",
                f"from {low} to {high}" + ("" if left_out else ", none left out"),
                lambda x, low=low: (sum(low + each for each in x),),
                2 * change,
                [2],
                "width of the clip, or its farther end" if swap else "farther end of the clip",
                low=low,
                left_out=left_out,
            )
    if not swap:
        yield case(
            "mean",
            f"from 0 to {width}",
            lambda x: (sum(x), sum(width - each for each in x)),
            width,
            [1, 1],
            "x − low and high − x add up to the width",
            low=0,
        )
    else:
        centered = lambda x: (sum(2 * each - width for each in x), len(x))  # noqa: E731
        source = "2 widths; or a width and one record, of half of ε each"
        for left_out in (True, False):
            yield case(
                "mean",
                f"from 0 to {width}" + ("" if left_out else ", none left out"),
                centered,
                2 * width,
                [1, width if left_out else 0],
                source if left_out else "2 widths",
                low=0,
                left_out=left_out,
            )


def trees(relation: str, points: int, most: int) -> Iterator[Fields]:
    """A record is in one node of each of h levels; a replaced one in two."""
    reached = {"swap": 2, "add-remove": 1}[relation]
    for height, branching in ((1, points), (2, 2), (2, 3)):
        if branching ** (height - 1) >= points:
            continue  # a level less is enough
        size = sum(branching**level for level in range(1, height + 1))
        yield dict(
            mechanism="agg_tree",
            setting=f"height {height}, branching {branching}",
            k=Fraction(reached * height),
            rates=(Fraction(1),) * size,
            law=partial(noisy, partial(nodes, height, branching, points), [(0, most)] * size),
            source="h counts of one each [GJK21, 5.1]" + (", twice" if reached == 2 else ""),
            options=dict(height=height, branching=branching),
            tight=("ratio",),
        )


# Rates of the threshold and of queries that make laws rational: gaps are multiples of 1 here.
HALTING = {"exponential": (2, 1), "laplace": (3, 2), "gumbel": (1, 1)}


def thresholds(relation: str, *size: int) -> Iterator[Fields]:
    """Counts of points: one record moves two of them, up and down, or one."""
    for noise, (first, second) in HALTING.items():
        whole = Fraction(first + 2 * second)
        monotonic = relation == "add-remove"
        yield dict(
            mechanism="above_threshold",
            setting=f"{noise} noise",
            k=whole - second if monotonic else whole,
            rates=(Fraction(first), Fraction(second)),
            law=partial(above_threshold, noise),
            source="monotonic: ε₁ + ε₂ [Dur23, Corollary 3.1]"
            if monotonic
            else "ε₁ + 2ε₂ [Dur23, Lemmas 3.1 and 3.2]",
            options=dict(noise=noise, monotonic=monotonic),
            spread=whole if monotonic else None,
        )


def searches(relation: str, *size: int) -> Iterator[Fields]:
    """Thresholds at q n, which moves with the number of records."""
    for way, q, noise in (
        *(("up", HALF, noise) for noise in HALTING),
        ("up", QUARTER, "exponential"),
        ("down", QUARTER, "exponential"),
        ("both", HALF, "exponential"),
        ("both", QUARTER, "exponential"),
    ):
        parts = q.denominator  # the gaps are multiples of 1/parts
        first, second = (Fraction(parts * each) for each in HALTING[noise])
        level = 1 - q if way == "down" else q
        # [Dur23] Lemma B.1: what one record more costs, and one less
        more = level * first + second
        less = max(level * second, (1 - level) * first)
        k, spread = first + second, first + 2 * second
        source = "ε₁ + ε₂ [Dur23, Lemma 4.1]"
        if way == "both":
            k, spread = first + 2 * second, None
            source = "ε₁ + 2ε₂: ε₁ + ε₂ in one search, ε₂ in the other [Dur23, Lemma A.3]"
        elif relation == "add-remove":
            k, spread = max(more, less), more + less
            source = "max{(1 − q)ε₁, qε₁ + ε₂} [Dur23, Lemma B.1]"
        yield dict(
            mechanism="unbounded_quantile",
            setting=f"{way}, {noise} noise, {levels((q,))}",
            k=k,
            rates=(first, second),
            law=partial(search_both if way == "both" else search, level, noise),
            source=source,
            options=dict(q=(q,), way=way, noise=noise, split=first / (first + second)),
            spread=spread,
        )


def keys(relation: str, *size: int) -> Iterator[Fields]:
    """Rates that add up to ε where two keys change, and are both ε where one does."""
    for k, delta in ((5, Fraction(1, 64)), (5, Fraction(1, 4096))):
        rates = (Fraction(3), Fraction(2)) if relation == "swap" else (Fraction(5),) * 2
        yield dict(
            mechanism="select_keys",
            setting=f"δ = {delta}",
            k=Fraction(k),
            rates=rates,
            law=partial(kept_keys, delta),
            source="ε = 3/5 ε + 2/5 ε" if relation == "swap" else "ε for one key [DVGM22]",
            options={},
            delta=delta,
            tight=("delta",),
        )


# --- What is found


class Found(NamedTuple):
    """Of one case.

    Attributes
    ----------
    data_sets, pairs, probabilities : int
        How many there are; of probabilities, in the laws given the dither.
    ratio, spread : Fraction
        Largest ratio of two neighbors' probabilities of an output, infinite if one of them is 0;
        and of two such ratios, given the dither.
    delta : Fraction
        The most that one law has beyond 2^k times the other.
    library, reference : float or None
        Largest difference of their laws from these, as a part of a probability.
    """

    data_sets: int
    pairs: int
    probabilities: int
    ratio: Fraction | float
    spread: Fraction | float
    delta: Fraction
    library: float | None = None
    reference: float | None = None

    def holds(self, case: Case) -> bool:
        """Whether all that is claimed is true, exactly."""
        pure = self.ratio <= power(case.k) if not case.delta else self.delta <= case.delta
        return pure and (case.spread is None or self.spread <= power(case.spread))

    def attained(self, case: Case) -> tuple[str, ...]:
        """What is exactly as large as it may be."""
        ends = {
            "ratio": (self.ratio, power(case.k)),
            "range": (self.spread, None if case.spread is None else power(case.spread)),
            "delta": (self.delta, case.delta or None),
        }
        return tuple(name for name, (found, most) in ends.items() if found == most)


class Laws:
    """The laws of a case, each enumerated once."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.given: dict[DataSet, Law] = {}

    def of(self, x: DataSet) -> Law:
        """Given a dither, if there is one: of a data set on its lattice."""
        if x not in self.given:
            law = self.case.law(x, self.case.points << self.case.bits, self.case.rates)
            assert all(sum(table.values()) == 1 for table in law)
            self.given[x] = law
        return self.given[x]

    def whole(self, x: DataSet) -> Law:
        """The law over all dithers."""
        bits = self.case.bits
        if not bits:
            return self.of(x)
        mean: Table = defaultdict(Fraction)
        for fine in dithers(x, bits):
            (table,) = self.of(fine)
            for o, p in table.items():
                mean[tuple(point >> bits for point in o)] += p
        return ({o: p / (1 << bits) for o, p in mean.items()},)


def extremes(law: Law, other: Law) -> tuple[Fraction | float, Fraction | float]:
    """The least and the largest ratio of two laws; those of independent outputs multiply."""
    least: Fraction | float = Fraction(1)
    largest: Fraction | float = Fraction(1)
    for one, two in zip(law, other, strict=True):
        if one is two or one == two:
            continue
        if one.keys() != two.keys():
            return 0.0, math.inf
        ratios = [p / two[o] for o, p in one.items()]
        least, largest = least * min(ratios), largest * max(ratios)
    return least, largest


def beyond(law: Law, other: Law, k: Fraction) -> Fraction:
    """What a law has beyond 2^k times another."""
    (one,), (two,) = law, other
    most = power(k)
    return sum((max(p - most * two.get(o, 0), Fraction(0)) for o, p in one.items()), Fraction(0))


def certify(case: Case) -> tuple[Found, Laws]:
    """All data sets, all neighbors, all outputs."""
    laws = Laws(case)
    whole = {x: laws.whole(x) for x in data_sets(case.points, case.most)}
    ratio = spread = delta = Fraction(0)
    number = 0
    for x, other in pairs(case.points, case.most, case.relation, case.left_out):
        number += 1
        least, largest = extremes(whole[x], whole[other])
        ratio = max(ratio, largest, 1 / least if least else math.inf)
        if case.delta:
            both = (whole[x], whole[other]), (whole[other], whole[x])
            delta = max(delta, *(beyond(a, b, case.k) for a, b in both))
        if case.spread is not None:
            for fine in zip(dithers(x, case.bits), dithers(other, case.bits), strict=True):
                least, largest = extremes(*map(laws.of, fine))
                spread = max(spread, largest / least)
    probabilities = sum(len(table) for law in laws.given.values() for table in law)
    return Found(len(whole), number, probabilities, ratio, spread, delta), laws


# --- The library's laws


def compared(case: Case, laws: Laws) -> tuple[float, float | None]:
    """Largest relative difference of the library's laws from those, and of the reference's.

    Here alone the library is imported. Its laws are asked for with its own arguments: epsilon is
    k ln 2 as a float64 number, and its rates are its own. Of mechanisms with dither the laws given
    the dither are compared; of many probabilities those of every so many data sets. The reference
    draws the noise of integers, and has no law of it.
    """
    sys.path.append(str(ROOT))  # behind what is installed, as for `papers/run.py`
    import numpy as np

    import dpq_fast
    from dpq_fast import privacy, reference
    from dpq_fast.audit.methods import METHODS
    from dpq_fast.laws.key_selection import KeysLaw
    from dpq_fast.noise import discrete_laplace_log_prob
    from dpq_fast.reference.agg_tree import Leaves, exact_counts
    from dpq_fast.reference.key_selection import UNIT, keep_probabilities
    from dpq_fast.reference.lattice import Lattice

    size = sum(len(table) for law in laws.given.values() for table in law)

    def given(library: Any) -> list[tuple[DataSet, Law]]:
        asked = ASKED if library is dpq_fast else ASKED_OF_REFERENCE
        return list(laws.given.items())[:: 1 + size // asked]

    public = dict(epsilon=float(case.k) * math.log(2.0), neighbors=case.relation)
    points, options = case.points << case.bits, dict(case.options)
    if "q" in options:
        options["q"] = [float(level) for level in options["q"]]

    def column(x: DataSet) -> Any:
        return np.array(x, dtype=np.float64)

    def off(found: float, exact: Fraction) -> float:
        """From a logarithm."""
        return abs(math.exp(found) / float(exact) - 1.0) if exact else math.exp(found)

    def of_law(law: Any, exact: Table, value: Callable[[Any], Any]) -> float:
        return max(off(law.log_prob(value(o)), p) for o, p in exact.items())

    def on_lattice(library: Any) -> float:
        law_of = getattr(library, f"{case.mechanism}_law")
        form = public | dict(bounds=(0, points - 1), resolution=1, dither=False) | options
        return max(of_law(law_of(column(x), **form), table, list) for x, (table,) in given(library))

    def halting(library: Any) -> float:
        first, second = (float(rate) * math.log(2.0) for rate in case.rates)
        worst, seen = 0.0, set()
        for x, (table,) in given(library):
            queries = tuple(x.count(point) for point in range(points))
            if queries in seen:
                continue
            seen.add(queries)
            form = dict(epsilon1=first, epsilon2=second, noise=options["noise"])
            law = library.above_threshold_law(list(queries), 1, **form)
            worst = max(worst, of_law(law, table, lambda o: o))
        return worst

    def searching(library: Any) -> float:
        way, split = options["way"], float(options["split"])
        form = public | dict(q=options["q"], noise=options["noise"])
        if options["noise"] != "gumbel":
            form["split"] = split
        if way == "both":
            zero = points // 2
            beta = 2.0 ** (1023 // (points - zero))  # few are left below the largest float64
            form |= dict(lower=None, upper=None, beta=beta)
            at = [
                math.copysign(beta ** abs(i - zero + 0.5), i - zero + 0.5) / 2.0
                for i in range(points)
            ]
            value = lambda o: math.copysign(beta ** abs(o) - 1.0, o) if o else 0.0  # noqa: E731
        elif way == "down":
            beta = 2.0 ** (1023 // (points - 1))
            form |= dict(lower=None, upper=0.0, beta=beta)
            at = [-(beta**i - 1.0) for i in range(points)]
            value = at.__getitem__
        else:
            at = [2.0**i - 1.0 for i in range(points)]
            form |= dict(lower=0.0, upper=at[-1], beta=2.0)
            value = at.__getitem__
        worst = 0.0
        for x, (table,) in given(library):
            law = library.unbounded_quantile_law(np.array([at[each] for each in x]), **form)
            found = [[value(o)] for o in table]
            worst = max(
                worst,
                *(off(law.log_prob(o), p) for o, p in zip(found, table.values(), strict=True)),
            )
        return worst

    def integers() -> float:
        shift, tables = options.pop("low", 0), METHODS[case.mechanism].tables
        # all of them: outputs beyond what these add up to are put together
        columns = [column(x) + shift for x in laws.given]
        form = dict(public)
        if case.mechanism != "count":
            form |= dict(q=None, lower=shift, upper=shift + points - 1, resolution=1)
        if not case.left_out:
            form["nan_policy"] = "raise"
        worst = 0.0
        for found, law in zip(tables(columns, form, None), laws.given.values(), strict=True):
            exact = {
                tuple(o for o, _ in chosen): math.prod(p for _, p in chosen)
                for chosen in product(*(table.items() for table in law))
            }
            assert {o for o, log_p in found.items() if log_p > -math.inf} == exact.keys()
            worst = max(worst, *(off(found[o], p) for o, p in exact.items()))
        return worst

    def tree(counts_of: Callable[[DataSet], Sequence[int]]) -> float:
        shape = dict(height=options["height"], branching=options["branching"], points=points)
        scale = privacy.agg_tree.calibrate(**public, **shape).noise.scale
        inside = np.arange(case.most + 1)
        worst = 0.0
        for x, law in laws.given.items():
            for center, table in zip(counts_of(x), law, strict=True):
                found = discrete_laplace_log_prob(inside - center, scale).tolist()
                worst = max(worst, *(off(found[y], table[y]) for y in inside.tolist()))
        return worst

    def library_nodes(x: DataSet) -> list[int]:
        height, branching = options["height"], options["branching"]
        form = dict(bounds=(0, points - 1), resolution=1, height=height, branching=branching)
        counts = np.zeros(branching**height, dtype=np.int64)
        leaves = dpq_fast.PartialTree.of(column(x), **form)._leaves
        counts[: leaves.size] = leaves  # the others hold no point
        return [
            int(count)
            for level in range(1, height + 1)
            for count in counts.reshape(branching**level, -1).sum(axis=1)
        ]

    def reference_nodes(x: DataSet) -> list[int]:
        height, branching = options["height"], options["branching"]
        lattice = Lattice.of((0.0, points - 1.0), 1.0, False)
        leaves = Leaves((0.0, points - 1.0), lattice, branching**height).counts(column(x))
        counts = exact_counts(leaves, height, branching)
        return [counts[node] for node in sorted(counts)]

    def keeping() -> tuple[float, float]:
        spent = privacy.key_selection.calibrate(delta=float(case.delta), **public)
        plain = [p / UNIT for p in keep_probabilities(spent, case.most)]
        worst = worst_of_reference = 0.0
        for x, (table,) in laws.given.items():
            numbers = {key: x.count(key) for key in sorted(set(x))}
            law = KeysLaw(list(numbers), np.array(list(numbers.values()), dtype=np.int64), spent)
            worst = max(worst, of_law(law, table, list))
            for kept, p in table.items():
                found = math.prod(
                    plain[n] if key in kept else 1.0 - plain[n] for key, n in numbers.items()
                )
                worst_of_reference = max(worst_of_reference, abs(found / float(p) - 1.0))
        return worst, worst_of_reference

    if case.mechanism in ("ind_exp", "joint_exp", "approx_quantiles"):
        return on_lattice(dpq_fast), on_lattice(reference)
    if case.mechanism == "above_threshold":
        return halting(dpq_fast), halting(reference)
    if case.mechanism == "unbounded_quantile":
        return searching(dpq_fast), searching(reference)
    if case.mechanism == "agg_tree":
        return tree(library_nodes), tree(reference_nodes)
    if case.mechanism == "select_keys":
        return keeping()
    return integers(), None


# --- The command, and the page


FULL, QUICK = (6, 5), (4, 3)


def log2(number: Fraction) -> float:
    return math.log2(number.numerator) - math.log2(number.denominator)


def entry(case: Case, found: Found) -> dict[str, Any]:
    """What is kept of a case: exact numbers as they are written."""
    return {
        "mechanism": case.mechanism,
        "relation": case.relation,
        "setting": case.setting,
        "source": case.source,
        "k": str(case.k),
        "pairs": found.pairs,
        "probabilities": found.probabilities,
        "ratio": str(found.ratio),
        "range": None if case.spread is None else str(found.spread),
        "range of": None if case.spread is None else str(case.spread),
        "delta": str(found.delta) if case.delta else None,
        "delta of": str(case.delta) if case.delta else None,
        "holds": found.holds(case),
        "attained": found.attained(case),
        "library": found.library and float(f"{found.library:.1e}"),
        "reference": found.reference and float(f"{found.reference:.1e}"),
    }


def certified(size: tuple[int, int], index: int) -> dict[str, Any]:
    """One case, enumerated and compared."""
    case = cases(*size)[index]
    found, laws = certify(case)
    library, reference = compared(case, laws)
    return entry(case, found._replace(library=library, reference=reference))


def measured(
    size: tuple[int, int], tell: Callable[[dict[str, Any]], None], workers: int
) -> dict[str, Any]:
    """All cases of a size, each told when it is done."""
    entries = []
    with ProcessPoolExecutor(workers) as pool:
        for each in pool.map(partial(certified, size), range(len(cases(*size)))):
            tell(each)
            entries.append(each)
    points, most = size
    return {
        "points": points,
        "most": most,
        "data_sets": len(data_sets(points, most)),
        "cases": entries,
    }


def exact(number: str, most: str | None = None, attained: bool = False) -> str:
    """A number, by its power of two unless it is short, and what it is at most."""
    if number == "inf":
        return "∞"
    value = Fraction(number)
    exponent = log2(value) if value else 0.0
    shown = str(value) if len(number) <= 12 else f"2^{math.floor(exponent * 1e4) / 1e4:.4f}"
    if value != 1 and power(Fraction(round(exponent))) == value:
        shown = f"2^{round(exponent)}"
    if most is None:
        return shown
    return f"{shown}, attained" if attained else f"{shown} of {most}"


def cells(each: dict[str, Any]) -> list[str]:
    """What is shown of a case."""
    of_ratio = None if each["delta"] else f"2^{each['k']}"
    spread, delta = "", ""
    if each["range"]:
        spread = exact(each["range"], f"2^{each['range of']}", "range" in each["attained"])
    if each["delta"]:
        delta = exact(each["delta"], each["delta of"], "delta" in each["attained"])
    return [
        each["relation"],
        each["setting"],
        each["source"],
        f"{each['pairs']:,}",
        f"{each['probabilities']:,}",
        exact(each["ratio"], of_ratio, "ratio" in each["attained"]),
        spread or delta,
        *("" if each[by] is None else f"{each[by]:.0e}" for by in ("library", "reference")),
    ]


TITLES = (
    "relation",
    "setting",
    "rates by",
    "pairs",
    "probabilities",
    "largest ratio",
    "range, or δ",
    "library",
    "reference",
)


def summary(results: dict[str, Any]) -> str:
    """The whole in a few sentences."""
    entries = results["cases"]
    worst = [max(each[by] or 0.0 for each in entries) for by in ("library", "reference")]
    held = sum(each["holds"] for each in entries)
    return (
        f"{results['data_sets']:,} data sets of up to {results['most']} records on "
        f"{results['points']} points; {len(entries)} cases, "
        f"{sum(each['pairs'] for each in entries):,} pairs of neighbors, "
        f"{sum(each['probabilities'] for each in entries):,} probabilities. "
        f"{'All' if held == len(entries) else held} cases hold exactly. "
        f"The library's laws are within {worst[0]:.0e} of each probability, the reference's "
        f"within {worst[1]:.0e}."
    )


def written(document: str, results: dict[str, Any]) -> str:
    """The page with these results between its marks."""
    parts = [summary(results)]
    for mechanism in dict.fromkeys(each["mechanism"] for each in results["cases"]):
        rows = [cells(each) for each in results["cases"] if each["mechanism"] == mechanism]
        lines = [" | ".join(row) for row in (TITLES, ["---"] * len(TITLES), *rows)]
        parts.append("\n".join([f"### `{mechanism}`", "", *(f"| {line} |" for line in lines)]))
    before, rest = document.split(BEGIN)
    return "\n\n".join([before + BEGIN, *parts, END + rest.split(END)[1]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer records, on fewer points")
    parser.add_argument("--write", action="store_true", help="keep the results, for the page")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    options = parser.parse_args()
    if options.quick and options.write:
        parser.error("what is written is the full form")
    start = time.perf_counter()

    def tell(each: dict[str, Any]) -> None:
        relation, setting, _, *others = cells(each)
        wrong = "" if each["holds"] else "  DOES NOT HOLD"
        print(
            f"{each['mechanism']}, {setting}, {relation}: {' | '.join(others)}{wrong}", flush=True
        )
        print(f"    largest ratio {each['ratio']}, attained: {', '.join(each['attained']) or 'no'}")

    print(" | ".join(TITLES[3:]))
    results = measured(QUICK if options.quick else FULL, tell, options.workers)
    print(f"\n{summary(results)} {time.perf_counter() - start:.0f} seconds.")
    if options.write:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", "utf-8")
        PAGE.write_text(written(PAGE.read_text("utf-8"), results), "utf-8")
    if not all(each["holds"] for each in results["cases"]):
        sys.exit("a case does not hold")


if __name__ == "__main__":
    main()
