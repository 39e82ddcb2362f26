"""Exact output laws by brute force, from the definitions: nothing here knows how we compute them.

Every law is over all outputs, with exact rank deviations, for a handful of records and points. A
lattice is its points 0 .. points-1; records are such points. A law is a dict from output tuple to
log-probability. With `masses`, a point stands for a run of so many, the records at its last one.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, pairwise, product

import numpy as np

Law = dict[tuple[int, ...], float]

# Nodes and weights of a quadrature on [-1, 1]: many take their time.
legendre = cache(np.polynomial.legendre.leggauss)


def log_sum(terms: Iterable[float]) -> float:
    """ln of the sum of exp(terms)."""
    terms = list(terms)
    top = max(terms, default=-math.inf)
    if top == -math.inf:
        return top
    return top + math.log(math.fsum(math.exp(t - top) for t in terms))


def normalized(log_weight: Law) -> Law:
    total = log_sum(log_weight.values())
    return {o: w - total for o, w in log_weight.items()}


def deviation(records: Sequence[float], q: Sequence[float], o: Sequence[float]) -> float:
    """Σ_j |n(o_{j-1}, o_j) - n_j|, -u_Q of [GJK21] 3.1: n(u, v) counts the x with u <= x < v."""
    n = len(records)
    edges = [-math.inf, *o, math.inf]
    levels = [Fraction(0), *(Fraction(level) for level in q), Fraction(1)]
    total = Fraction(0)
    for j in range(1, len(edges)):
        inside = sum(1 for x in records if edges[j - 1] <= x < edges[j])
        total += abs(inside - (levels[j] - levels[j - 1]) * n)
    return float(total)


def joint_exp(
    records: Sequence[int],
    points: int,
    q: Sequence[float],
    rate: float,
    masses: Sequence[int] | None = None,
) -> Law:
    """JointExp on a lattice, without dithering."""
    masses = [1] * points if masses is None else masses
    return normalized(
        {
            o: log_ways(o, masses) - rate * deviation(records, q, o)
            for o in combinations_with_replacement(range(points), len(q))
        }
    )


def log_ways(o: Sequence[int], masses: Sequence[int]) -> float:
    """ln of the number of ascending tuples whose places lie in the runs `o`."""
    chosen = {run: o.count(run) for run in o}
    return sum(math.log(math.comb(masses[run] + k - 1, k)) for run, k in chosen.items())


def ind_exp(
    records: Sequence[int],
    points: int,
    q: Sequence[float],
    rates: Sequence[float],
    selection: str = "permute-and-flip",
    prior: Sequence[float] | None = None,
    masses: Sequence[int] | None = None,
) -> Law:
    """The sorted tuple of independent selections by depth on a lattice; with a prior, by ln too."""
    if masses is not None:
        return sorted_tuples(
            [
                depths_of_runs(records, level, rate, masses, selection)
                for level, rate in zip(q, rates, strict=True)
            ]
        )
    select = {"permute-and-flip": permute_and_flip, "exponential": exponential}[selection]
    bonus = [0.0] * points if prior is None else [math.log(mass) for mass in prior]
    singles = [
        select([rate * float(depth(records, level, o)) + bonus[o] for o in range(points)])
        for level, rate in zip(q, rates, strict=True)
    ]
    return sorted_tuples(singles)


def depth(records: Sequence[int], level: float, o: float) -> Fraction:
    """How far the target, level times n, is from the ends of the records at o; negative outside."""
    target = Fraction(level) * len(records)
    return min(target - sum(x < o for x in records), sum(x <= o for x in records) - target)


def depths_of_runs(
    records: Sequence[float], level: float, rate: float, masses: Sequence[int], selection: str
) -> list[float]:
    """One selection by depth over runs; in front of a run's last point no record is at a point."""
    last = [rate * float(depth(records, level, run)) for run in range(len(masses))]
    rest = [rate * float(depth(records, level, run - 0.5)) for run in range(len(masses))]
    copies = [*([1] * len(masses)), *(mass - 1 for mass in masses)]
    if selection == "exponential":
        scores = [*last, *rest]
        logs = [s + math.log(c) if c else -math.inf for s, c in zip(scores, copies, strict=True)]
        single = exponential(logs)
    else:
        single = flips_of_copies([*last, *rest], copies)
    return [
        log_sum(pair) for pair in zip(single[: len(masses)], single[len(masses) :], strict=True)
    ]


def flips_of_copies(scores: Sequence[float], copies: Sequence[int]) -> list[float]:
    """Permute-and-flip where each score c u is that of so many candidates.

    It is the largest score with exponential noise on each: with a = exp(c u - max c u), the
    integral from 0 to 1 of a times the product of 1 - a t over the others.
    """
    nodes, weights = legendre(200)
    u = (nodes + 1.0) / 2.0
    t, weights = u**3, 1.5 * u**2 * weights  # closer to 0, where long runs decide
    a = np.exp(np.array(scores) - max(scores))[:, None]
    number = np.array(copies, dtype=float)[:, None]
    rejected = np.log1p(-a * t)
    integrands = number * a * np.exp((number * rejected).sum(axis=0) - rejected)
    found = integrands @ weights
    assert abs(found.sum() - 1.0) < 1e-9
    return [math.log(p) if p > 0.0 else -math.inf for p in found.tolist()]


def exponential(scores: Sequence[float]) -> list[float]:
    """The exponential mechanism over scores c u."""
    total = log_sum(scores)
    return [score - total for score in scores]


def permute_and_flip(scores: Sequence[float]) -> list[float]:
    """Permute-and-flip over scores c u, by its definition.

    Of those that are left, each is as likely as any other to come next; it is released with
    probability exp(c u - max c u), and else taken out.
    """
    best = max(scores)
    accepts = [math.exp(score - best) for score in scores]
    rejects = [-math.expm1(score - best) for score in scores]
    reached = defaultdict(float)  # the sets that are left, as bits, and how likely they are
    reached[(1 << len(scores)) - 1] = 1.0
    released = [[] for _ in scores]
    for _ in scores:
        smaller = defaultdict(float)
        for left, probability in reached.items():
            for o in range(len(scores)):
                if left >> o & 1:
                    comes = probability / left.bit_count()
                    released[o].append(comes * accepts[o])
                    smaller[left ^ 1 << o] += comes * rejects[o]
        reached = smaller
    totals = map(math.fsum, released)
    return [math.log(total) if total > 0.0 else -math.inf for total in totals]


def sorted_tuples(singles: Sequence[Sequence[float]]) -> Law:
    """The law of independent draws, sorted; each single one by the log-probabilities of points."""
    terms = defaultdict(list)
    for o in product(range(len(singles[0])), repeat=len(singles)):
        drawn = sum(single[point] for single, point in zip(singles, o, strict=True))
        terms[tuple(sorted(o))].append(drawn)
    return {o: log_sum(t) for o, t in terms.items()}


def approx_quantiles(
    records: Sequence[int],
    points: int,
    q: Sequence[float],
    rates: Sequence[float],
    fixed: bool = False,
    twice: bool = False,
    masses: Sequence[int] | None = None,
) -> Law:
    """Recursive quantiles on a lattice, without dithering; rates by level.

    A split inside a run leaves parts of it: what is drawn from those is not told apart, so that
    such an output is shorter, the runs of the splits alone.

    With `fixed`, what must not be done where n is private: ranks and targets are those of the
    whole sample in every part. With `twice`, another fault: records at a cut go to both sides.
    """
    n = len(records)
    masses = [1] * points if masses is None else masses

    def part(
        inside: list[int], below: int, lower: int, upper: int, low: int, high: int
    ) -> Law:  # `below` records lie below the part
        if lower == upper:
            return {(): 0.0}
        middle = (lower + upper) // 2
        q_low = q[lower - 1] if lower > 0 else 0.0
        q_high = q[upper] if upper < len(q) else 1.0
        target = Fraction((q[middle] - q_low) / (q_high - q_low)) * len(inside)
        if fixed:
            target = Fraction(q[middle]) * n - below
        rank = {o: sum(1 for x in inside if x < o) for o in range(low, high + 1)}
        law = {}
        single = normalized(
            {
                o: math.log(masses[o]) - rates[middle] * float(abs(r - target))
                for o, r in rank.items()
            }
        )
        for o, log_p in single.items():
            if masses[o] > 1 and upper - lower > 1:
                law[(o,)] = log_p
                continue
            left_of = [x for x in inside if x < o or (twice and x == o)]
            left = part(left_of, below, lower, middle, low, o)
            right = part([x for x in inside if x >= o], below + rank[o], middle + 1, upper, o, high)
            for (a, log_a), (b, log_b) in product(left.items(), right.items()):
                law[(*a, o, *b)] = log_a + log_p + log_b
        return law

    return part(list(records), 0, 0, len(q), 0, points - 1)


def dithers(records: Sequence[int], bits: int) -> Iterator[list[int]]:
    """The 2^bits equally likely dithered samples, on the lattice of points << bits.

    The i-th record of a point has i, with its bits turned around, for an offset, but for a shift.
    """
    turned = list(_turned(records, bits))
    for shift in range(1 << bits):
        yield [(x << bits) + (u ^ shift) for x, u in zip(records, turned, strict=True)]


def _turned(records: Sequence[int], bits: int) -> Iterator[int]:
    """How many equal ones were before each record, modulo 2^bits and with its bits turned."""
    before: dict[int, int] = defaultdict(int)
    for x in records:
        yield sum((before[x] >> k & 1) << (bits - 1 - k) for k in range(bits))
        before[x] += 1


def floored(law: Law, bits: int) -> Law:
    """The law of the outputs floored to the lattice before dithering."""
    terms = defaultdict(list)
    for o, log_p in law.items():
        terms[tuple(point >> bits for point in o)].append(log_p)
    return {o: log_sum(t) for o, t in terms.items()}


def mixture(laws: Iterable[Law]) -> Law:
    """The average of laws on the same outputs."""
    terms = defaultdict(list)
    count = 0
    for law in laws:
        count += 1
        for o, log_p in law.items():
            terms[o].append(log_p)
    return {o: log_sum(t) - math.log(count) for o, t in terms.items()}


def joint_exp_dithered(
    records: Sequence[int],
    points: int,
    q: Sequence[float],
    rate: float,
    bits: int,
    masses: Sequence[int] | None = None,
) -> Law:
    """JointExp with dithering, whatever the dither turns out to be."""
    ends = [1] * ((1 << bits) - 1)
    runs = [1] * points if masses is None else masses
    spread = [mass for run in runs for mass in (((run - 1) << bits) + 1, *ends)]
    return mixture(
        floored(joint_exp(fine, points << bits, q, rate, spread), bits)
        for fine in dithers(records, bits)
    )


def on_line(records: Sequence[int], masses: Sequence[int], dither: Sequence[Fraction]) -> list[int]:
    """Records on the line on which each point has its mass; a dither of 1 is the end of a cell."""
    return [
        sum(masses[:x]) + math.ceil(u * masses[x]) - 1 for x, u in zip(records, dither, strict=True)
    ]


def off_line(law: Law, masses: Sequence[int]) -> Law:
    """The law of the points that outputs on the line belong to."""
    owner = [point for point, mass in enumerate(masses) for _ in range(mass)]
    terms = defaultdict(list)
    for o, log_p in law.items():
        terms[tuple(owner[place] for place in o)].append(log_p)
    return {o: log_sum(t) for o, t in terms.items()}


def weighed(
    law: Callable[..., Law],
    records: Sequence[int],
    masses: Sequence[int],
    q: Sequence[float],
    rate: float | Sequence[float],
    bits: int = 0,
) -> Law:
    """The law of a mechanism on points with masses, over all dithers of so many bits."""
    parts = [
        [Fraction((x & ((1 << bits) - 1)) + 1, 1 << bits) for x in fine]
        for fine in dithers(records, bits)
    ]
    return mixture(
        off_line(law(on_line(records, masses, dither), sum(masses), q, rate), masses)
        for dither in parts
    )


def joint_exp_density(
    records: Sequence[float], bounds: tuple[float, float], q: Sequence[float], rate: float
) -> Callable[[Sequence[float]], float]:
    """Log density of the continuous JointExp at ascending outputs away from the records."""
    edges = [bounds[0], *sorted(records), bounds[1]]
    terms = []
    for path in combinations_with_replacement(range(len(edges) - 1), len(q)):
        volume = 1.0
        for i in set(path):
            k = path.count(i)
            volume *= (edges[i + 1] - edges[i]) ** k / math.factorial(k)
        if volume > 0.0:
            middle = [(edges[i] + edges[i + 1]) / 2.0 for i in path]
            terms.append(math.log(volume) - rate * deviation(records, q, middle))
    log_total = log_sum(terms)
    return lambda o: -rate * deviation(records, q, o) - log_total


def ind_exp_density(
    records: Sequence[float],
    bounds: tuple[float, float],
    q: Sequence[float],
    rates: Sequence[float],
) -> Callable[[Sequence[float]], float]:
    """Log density of the sorted continuous IndExp at distinct outputs away from the records."""
    edges = [bounds[0], *sorted(records), bounds[1]]
    widths = [right - left for left, right in pairwise(edges)]

    def single(value: float, j: int) -> float:
        target = Fraction(q[j]) * len(records)
        total = math.fsum(
            width * math.exp(-rates[j] * float(abs(rank - target)))
            for rank, width in enumerate(widths)
        )
        rank = sum(1 for x in records if x < value)
        return -rates[j] * float(abs(rank - target)) - math.log(total)

    def log_density(o: Sequence[float]) -> float:
        orders = (order for order in product(o, repeat=len(q)) if sorted(order) == sorted(o))
        return log_sum(sum(single(order[j], j) for j in range(len(q))) for order in orders)

    return log_density


def swap_neighbors(x: Sequence[int], domain: Iterable[int]) -> Iterator[list[int]]:
    """Every sample that replaces one record by another value of `domain`."""
    for i, value in product(range(len(x)), list(domain)):
        if value != x[i]:
            yield [*x[:i], value, *x[i + 1 :]]


def add_remove_neighbors(x: Sequence[int], domain: Iterable[int]) -> Iterator[list[int]]:
    """Every sample with one record more, out of `domain`, or one less."""
    for value in domain:
        yield [*x, value]
    for i in range(len(x)):
        yield [*x[:i], *x[i + 1 :]]


def max_log_ratio(law1: Law, law2: Law) -> float:
    """max |ln P_1(o) - ln P_2(o)| over all outputs; infinite if only one of them has an output."""
    worst = 0.0
    for o in law1.keys() | law2.keys():
        log_p, log_r = law1.get(o, -math.inf), law2.get(o, -math.inf)
        if log_p != log_r:
            worst = max(worst, abs(log_p - log_r))
    return worst


def renyi_divergence(law1: Law, law2: Law, alpha: float) -> float:
    """D_alpha of the first law from the second, alpha > 1; both have the same outputs."""
    terms = (alpha * log_p + (1.0 - alpha) * law2[o] for o, log_p in law1.items())
    return log_sum(terms) / (alpha - 1.0)
