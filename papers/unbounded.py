"""[Dur23]: Figures 1 to 3, Table 1, §6.4, and numbers in the text.

"UQE" is the paper's: beta 1.001, an even split, exponential noise. "EMQ" and "AT" are those of
[GJK21], as published; without that word a side is this library's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import combinations_with_replacement, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import dpq_fast as dpq
from bench import published
from bench.columns import REAL, gaussian
from bench.errors import N, real_sample
from dpq_fast import privacy
from dpq_fast.laws.unbounded import BETA
from dpq_fast.mechanisms.clipping import BETA as CLIP_BETA
from dpq_fast.noise.threshold import Exponential
from dpq_fast.privacy import aggregates
from papers import printed
from papers.outcome import BETTER, WORSE, Effort, Outcome, Row, claim, mean_of, there
from papers.report import digits

SPLIT = Exponential.fraction  # the default
PAPER = {"beta": printed.BETA, "split": printed.SPLIT}
EPSILONS = (1.0, 0.5, 0.1)
SHORT = dict(zip(printed.SUM_COLUMNS, ("ratings", "pages", "ages", "work hours"), strict=True))

sampler = cache(real_sample)


class Draw(NamedTuple):
    """Records as they are, and with the paper's perturbation."""

    name: str
    records: NDArray
    perturbed: NDArray[np.float64]

    @classmethod
    def of(cls, name: str, seed: int) -> Draw:
        """1,000 records of a real column."""
        rng = np.random.default_rng([seed, 0])
        records = sampler(name)(rng)
        noise = rng.normal(0.0, printed.PERTURBATION[name], records.size)
        return cls(name, records, records + noise)

    def outputs(self, drawn: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rounded for integer records, as in the paper."""
        return np.rint(drawn) if self.records.dtype.kind == "i" else drawn


# --- Figure 2, and the data of Figure 3 -----------------------------------------------------------


class Population(NamedTuple):
    """A data set of [Dur23] §6.1, its tight range, and how the paper parts its ties."""

    title: str
    range: tuple[float, float]
    column: NDArray
    resolution: float | None
    perturbation: float


def populations(outcome: Outcome) -> list[Population]:
    uniform = np.random.default_rng(0).uniform(-5.0, 5.0, 10_000)
    found = [
        Population("uniform on ±5", (-5.0, 5.0), uniform, None, 0.0),
        Population("normal, sd 5", (-25.0, 25.0), gaussian(10_000), None, 0.0),
    ]
    for name in there(printed.SUM_COLUMNS, outcome):
        column, noise = REAL[name], printed.PERTURBATION[name]
        found.append(
            Population(SHORT[name], column.bounds, column.load(), column.resolution, noise)
        )
    return found


def unbounded_data(effort: Effort) -> Outcome:
    """Figure 2."""
    outcome = Outcome(trials="all records")
    histograms = {}
    sizes = {"ratings": 11_123, "pages": 11_123, "ages": 48_842, "work hours": 48_842}
    for each in populations(outcome):
        counts, edges = np.histogram(each.column, 50, each.range)
        histograms[each.title] = {"edges": edges, "counts": counts}
        size = sizes.get(each.title, 10_000)
        row = Row(f"{each.title}: records", each.column.size, 0.0, size, 4.0)
        if row.ours != size:
            row.why = "The paper leaves out four malformed rows of the source."
        outcome.rows.append(row)
    outcome.curves["histograms"] = histograms
    return outcome


# --- Figure 1 -------------------------------------------------------------------------------------


def unbounded_density(effort: Effort) -> Outcome:
    """Figure 1: what a loose upper bound does to the density of a high quantile."""
    n, level, epsilon = 50, 0.9, 1.0
    outcome = Outcome(trials=f"none: exact densities; {n} records of U(0, 10), ε = {epsilon:g}")
    x = np.random.default_rng(0).uniform(0.0, 10.0, n)
    edges = np.linspace(0.0, 20.0, 2_001)
    grid = (edges[1:] + edges[:-1]) / 2.0
    beyond: dict[str, list[float]] = {"EMQ": [], "UQE": []}
    for end in (20.0, 10.0):
        laws: dict[str, Any] = {
            "EMQ": dpq.ind_exp_law(x, level, epsilon=epsilon, bounds=(0.0, end), resolution=0),
            "UQE": dpq.unbounded_quantile_law(
                x, level, epsilon=epsilon, noise="gumbel", uniform=True, beta=BETA
            ),
        }
        for label, law in laws.items():
            density = np.exp([law.log_prob(o) for o in grid])
            outcome.curves[f"{label}, range [0, {end:g}]"] = density[::10]
            beyond[label].append(float((density * np.diff(edges))[grid > x.max()].sum()))
    outcome.curves["x"], outcome.curves["records"] = grid[::10], x
    outcome.rows += [
        claim(
            "EMQ: P(output > largest record), range [0, 20] over [0, 10]",
            '"dramatically increases"',
            beyond["EMQ"][0] / beyond["EMQ"][1],
            beyond["EMQ"][0] > 2.0 * beyond["EMQ"][1],
        ),
        claim(
            "UQE: the same",
            '"stays the same in both figures"',
            beyond["UQE"][0] / beyond["UQE"][1],
            math.isclose(*beyond["UQE"]),
        ),
        claim(
            "P(20 > output > largest record), range [0, 20]: UQE over EMQ",
            "less, drawn",
            beyond["UQE"][0] / beyond["EMQ"][0],
            beyond["UQE"][0] < beyond["EMQ"][0],
        ),
    ]
    return outcome


# --- Figure 3 -------------------------------------------------------------------------------------


def unbounded_levels(effort: Effort) -> Outcome:
    """Figure 3: errors of single quantiles, over that of UQE."""
    step = 1 if effort.full else 5
    levels = np.arange(5, 96, step) / 100.0
    samples, draws = effort.of(20, 100), 5
    outcome = Outcome(
        trials=f"{samples} samples of 1,000 records, {draws} draws each, {levels.size} levels"
    )
    for each in populations(outcome):
        errors = _quantile_errors(each, levels, samples, draws)
        base = errors["UQE"].mean(axis=0)
        ratios = {}
        for side in ("EMQ", "ind_exp, by depth"):
            error = errors[side].mean(axis=0)
            # nothing of either is missed where most records are tied
            ratios[side] = np.divide(error, base, out=np.full(base.size, np.nan), where=base > 0.0)
        outcome.curves[each.title] = {"levels": levels, **ratios}
        of_sums = {side: found.mean(axis=1) for side, found in errors.items()}
        synthetic = each.perturbation == 0.0
        known = ~np.isnan(ratios["EMQ"])
        lower = float((ratios["EMQ"][known] < 1.0).mean())
        outcome.rows.append(
            claim(
                f"{each.title}: share of levels with EMQ below UQE",
                '"consistently", synthetic data' if synthetic else '"UQE often performs better"',
                lower,
                lower >= 0.8 if synthetic else lower <= 0.6,
                se=0.5 / math.sqrt(known.sum()),
                why="In the mean over the levels (below), not at each level."
                if synthetic
                else "EMQ is lower at most levels of this column, perturbed as in the paper.",
            )
        )
        paper, paper_se = mean_of(of_sums["UQE"])
        for side in ("EMQ", "ind_exp, by depth"):
            mean, se = mean_of(of_sums[side])
            outcome.rows.append(
                Row(
                    f"{each.title}: mean absolute error, {side}",
                    mean,
                    se,
                    paper,
                    paper_se,
                    says="UQE of the paper, run here",
                    why=""
                    if synthetic
                    else "Of the paper's own comparison: EMQ on perturbed records."
                    if side == "EMQ"
                    else "Its errors are in ranks, which long tails make long distances.",
                )
            )
    return outcome


def _quantile_errors(
    population: Population, levels: NDArray[np.float64], samples: int, draws: int
) -> dict[str, NDArray[np.float64]]:
    """Mean absolute error of each side: (sample, level)."""
    whole = population.column.dtype.kind == "i"
    bounds = population.range
    found: dict[str, list[NDArray[np.float64]]] = {}
    for seed in range(samples):
        rng = np.random.default_rng([seed, 2])
        x = rng.choice(population.column, N, replace=False)
        perturbed = x + rng.normal(0.0, population.perturbation, N)
        truth = np.quantile(x, levels)
        tight = dpq.Sample.of(perturbed, bounds, resolution=0)
        known = dpq.Sample.of(x, bounds, resolution=population.resolution)
        laws: dict[str, Callable[[float], Any]] = {
            "UQE": lambda q, x=perturbed: dpq.unbounded_quantile_law(
                x, q, epsilon=1.0, lower=bounds[0], **PAPER
            ),
            "EMQ": lambda q, x=tight: dpq.ind_exp_law(x, q, epsilon=1.0),
            "ind_exp, by depth": lambda q, x=known: dpq.ind_exp_law(x, q, epsilon=1.0),
        }
        for side, law in laws.items():
            drawn = np.stack([law(q).sample(rng, size=draws) for q in levels.tolist()])
            drawn = np.rint(drawn) if whole else drawn
            found.setdefault(side, []).append(np.abs(drawn - truth[:, None]).mean(axis=1))
    return {side: np.array(errors) for side, errors in found.items()}


# --- Table 1 --------------------------------------------------------------------------------------

ITERATIONS, CLIPS = 100, 25  # of the paper; clips of each of our samples


def sum_error(x: NDArray, clips: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
    """Mean absolute error of the sum of clipped records with Laplace noise clip / epsilon.

    The mean over the noise is exact: E|b + Lap(s)| = |b| + s exp(-|b| / s).
    """
    ordered = np.sort(x)
    from_there = np.append(np.cumsum(ordered[::-1])[::-1], 0)
    above = np.searchsorted(ordered, clips)
    lost = from_there[above] - (x.size - above) * clips
    with np.errstate(over="ignore"):
        scale = np.maximum(clips / epsilon, np.finfo(float).tiny)
    return lost + scale * np.exp(-lost / scale)


# Clips of a draw, (level, clip), for a budget of the clip.
Clips = Callable[[Draw, float, np.random.Generator], NDArray[np.float64]]


def uqe(level: float = printed.CLIP_LEVEL, offset: float = 0.0, **options: float) -> Clips:
    """Of the paper; the threshold has `offset` / epsilon records more."""

    def clips(draw: Draw, epsilon: float, rng: np.random.Generator) -> NDArray[np.float64]:
        law = dpq.unbounded_quantile_law(
            draw.perturbed, level, epsilon=epsilon, offset=offset, **(PAPER | options)
        )
        return law.sample(rng, size=CLIPS)[None]

    return clips


def clip_of_sum(draw: Draw, epsilon: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """The clip of `dpq.sum`."""
    level, offset = aggregates.aim_of("auto", "unbounded")
    return uqe(level, offset, beta=CLIP_BETA, split=aggregates.FRACTION)(draw, epsilon, rng)


def emq(draw: Draw, epsilon: float, rng: np.random.Generator) -> NDArray[np.float64]:
    sample = dpq.Sample.of(draw.perturbed, printed.SUM_RANGE, resolution=0)
    return _of_levels(sample, epsilon, rng)


def by_depth(draw: Draw, epsilon: float, rng: np.random.Generator) -> NDArray[np.float64]:
    resolution = REAL[draw.name].resolution
    sample = dpq.Sample.of(draw.records, printed.SUM_RANGE, resolution=resolution)
    return _of_levels(sample, epsilon, rng)


def _of_levels(sample: dpq.Sample, epsilon: float, rng: np.random.Generator) -> NDArray[np.float64]:
    laws = (dpq.ind_exp_law(sample, q, epsilon=epsilon) for q in printed.SUM_LEVELS)
    return np.stack([law.sample(rng, size=CLIPS) for law in laws])


def published_tree(draw: Draw, epsilon: float, rng: np.random.Generator) -> NDArray[np.float64]:
    q, shape = np.array(printed.SUM_LEVELS), printed.SUM_TREE
    x, ends = draw.perturbed, printed.SUM_RANGE
    trees = (published.agg_tree(x, q, epsilon, ends, *shape, rng) for _ in range(CLIPS))
    return np.stack(list(trees), axis=1)


def first_passage(**shape: int) -> Clips:
    """Of our tree; n is public, as for the other sides."""

    def clips(draw: Draw, epsilon: float, rng: np.random.Generator) -> NDArray[np.float64]:
        counts = dpq.PartialTree.of(
            draw.perturbed, bounds=printed.SUM_RANGE, nan_policy="raise", **shape
        )
        trees = (counts.release(epsilon=epsilon, rng=rng) for _ in range(CLIPS))
        return np.stack([tree.first_passage(printed.SUM_LEVELS) for tree in trees], axis=1)

    return clips


class Side(NamedTuple):
    """A way to choose the clip, the paper's row that it stands beside, its part of the budget."""

    name: str
    paper: str
    clips: Clips
    share: float = 0.5


HEIGHT, BRANCHING = printed.SUM_TREE
SIDES = (
    Side("UQE, published", "UQE", uqe()),
    Side("EMQ, published", "EMQ", emq),
    Side("AT, published, height 3, branching 10", "AT", published_tree),
    Side(
        "AT, the same shape, by first passage",
        "AT",
        first_passage(height=HEIGHT, branching=BRANCHING),
    ),
    Side("sum", "UQE", clip_of_sum, aggregates.SHARE),
    Side("ind_exp, by depth", "EMQ", by_depth),
    Side("agg_tree, by first passage", "AT", first_passage()),
)
NO_EMPTY_DRAWS = (
    f"{printed.SUMS['EMQ', 1.0][0][0]} is the error of the level 0.97 without its draws from the "
    "empty range beyond the records, which a fifth are here; the level 0.96, with hardly any, has "
    "6.5."
)
WHYS = {
    "UQE, published": "",
    "EMQ, published": NO_EMPTY_DRAWS,
    "AT, published, height 3, branching 10": "The authors' code of the time may differ from what "
    "is published now.",
    "AT, the same shape, by first passage": "The first of noisy counts that reaches a level is "
    "often too early, which long tails pay for; and cells of 10 are wide for ratings.",
    "sum": "Its clip aims at what an unknown tail costs; see `dpq_fast.privacy.aggregates`.",
    "ind_exp, by depth": NO_EMPTY_DRAWS,
    "agg_tree, by first passage": "Its shape is for quantiles inside, and its leaves are coarser "
    "than small records.",
}


@cache
def sum_errors(side: Side, name: str, epsilon: float, samples: int) -> NDArray[np.float64]:
    """Errors of sums, shape (levels, samples * CLIPS)."""
    found = []
    for seed in range(samples):
        draw = Draw.of(name, seed)
        rng = np.random.default_rng([seed, 1])
        clips = draw.outputs(side.clips(draw, 2.0 * side.share * epsilon, rng))
        found.append(sum_error(draw.records, clips, 2.0 * (1.0 - side.share) * epsilon))
    return np.concatenate(found, axis=1)


def of_iterations(errors: NDArray[np.float64]) -> tuple[float, float]:
    """Mean and std that 100 iterations of the best level typically have.

    The medians over many such experiments: a mean of all errors would be ruined by a few clips.
    """
    chosen = np.random.default_rng(0).integers(0, errors.shape[1], (1_000, ITERATIONS))
    experiments = errors[:, chosen]
    means = experiments.mean(axis=2)
    best, every = means.argmin(axis=0), np.arange(1_000)
    stds = experiments[best, every].std(axis=1, ddof=1)
    return float(np.median(means[best, every])), float(np.median(stds))


def unbounded_sums(effort: Effort) -> Outcome:
    """Table 1: the error of a sum whose records are clipped at a private quantile."""
    samples = effort.of(20, 400)
    outcome = Outcome(
        trials=f"{samples} samples of 1,000 records, {CLIPS} clips each; the mean over the sum's "
        "noise is exact, where the paper drew it 100 times"
    )
    columns = there(printed.SUM_COLUMNS, outcome)
    cells: dict[tuple[str, float], list[str]] = {}
    for side, epsilon in product(SIDES, EPSILONS):
        for name in columns:
            place = printed.SUM_COLUMNS.index(name)
            paper, paper_std = printed.SUMS[side.paper, epsilon][place]
            mean, std = of_iterations(sum_errors(side, name, epsilon, samples))
            # iterations of one sample are alike; the paper drew the noise: about 1% of the mean
            row = Row(
                f"{SHORT[name]}, ε = {epsilon:g}: {side.name}",
                mean,
                std / math.sqrt(samples),
                paper,
                math.hypot(max(paper_std, std) / math.sqrt(ITERATIONS), paper / ITERATIONS),
            )
            if row.verdict != "reproduced":
                row.why = WHYS[side.name]
            outcome.rows.append(row)
            cells.setdefault((side.name, epsilon), []).append(digits(mean))
    outcome.table(
        "Mean absolute error; the paper's in its order: UQE, EMQ, AT",
        ("ε", "side", *(SHORT[name] for name in columns)),
        (
            line
            for epsilon in EPSILONS
            for line in (
                *(
                    (
                        f"{epsilon:g}",
                        f"{paper}, the paper",
                        *(
                            digits(printed.SUMS[paper, epsilon][printed.SUM_COLUMNS.index(n)][0])
                            for n in columns
                        ),
                    )
                    for paper in ("UQE", "EMQ", "AT")
                ),
                *((f"{epsilon:g}", side.name, *cells[side.name, epsilon]) for side in SIDES),
            )
        ),
    )
    return outcome


def unbounded_tuning(effort: Effort) -> Outcome:
    """§6.4: other ratios of candidates and thresholds, over Table 1's UQE."""
    samples = effort.of(20, 400)
    outcome = Outcome(trials=f"{samples} samples of 1,000 records, {CLIPS} clips each, paired")
    columns = there(printed.SUM_COLUMNS, outcome)
    others = {
        f"β = {printed.COARSE_BETA}": (
            Side("coarse", "UQE", uqe(beta=printed.COARSE_BETA)),
            '"actually improves our results in Table 1"',
        ),
        "q = 1": (Side("whole", "UQE", uqe(1.0)), '"initial testing showed improvement in error"'),
        "threshold n + 1/ε": (
            Side("beyond", "UQE", uqe(1.0, 1.0)),
            '"particularly useful for heavy-tailed data"',
        ),
    }
    base = SIDES[0]
    for label, (side, says) in others.items():
        ratios = {}
        for epsilon, name in product(EPSILONS, columns):
            mean = of_iterations(sum_errors(side, name, epsilon, samples))[0]
            ratios[epsilon, name] = (
                mean / of_iterations(sum_errors(base, name, epsilon, samples))[0]
            )
        asked = (
            {key: ratio for key, ratio in ratios.items() if key[1] == "num_pages"}
            if "n + 1" in label
            else ratios
        )
        if not asked:
            continue
        logs = np.log(list(asked.values()))
        where = "pages, three ε" if "n + 1" in label else f"{len(asked)} cells"
        outcome.rows.append(
            claim(
                f"{label}: error over that of Table 1's UQE, geometric mean of {where}",
                says,
                float(np.exp(logs.mean())),
                logs.mean() < 0.01,
                se=float(logs.std(ddof=1) / math.sqrt(logs.size)),
                why="Not on these columns: a clip beyond the largest record costs more noise than "
                "it saves."
                if logs.mean() >= 0.01
                else "",
            )
        )
        outcome.table(
            f"{label}: error over that of Table 1's UQE",
            ("ε", *(SHORT[name] for name in columns)),
            (
                (f"{epsilon:g}", *(f"{ratios[epsilon, name]:.2f}" for name in columns))
                for epsilon in EPSILONS
            ),
        )
    return outcome


# --- Numbers in the text --------------------------------------------------------------------------


def unbounded_numbers(effort: Effort) -> Outcome:
    """Constants, lemmas and the snippet of Appendix C."""
    outcome = Outcome(trials="none: exact")
    many, far = printed.MANY_CANDIDATES
    beta, more, factor = printed.FIVE_MORE
    half = dict(epsilon1=0.5, epsilon2=0.5)
    promise = privacy.guarantee("above_threshold", monotonic=True, **half)
    outcome.rows += [
        claim(
            f"§4.2: candidate {many:,} at β = 1.001, log10",
            "over 21",
            many * math.log10(printed.BETA),
            many * math.log10(printed.BETA) > math.log10(far),
        ),
        claim(
            "footnote 3: five more queries at β = 2",
            "over 32 times",
            beta**more,
            beta**more >= factor,
        ),
        Row(
            "Theorem 1: ρ at ε₁ = ε₂ = 1/2, monotonic",
            promise.rho,
            paper=(0.5 / 2.0 + 0.5) ** 2 / 2.0,
            says="(ε₁/2 + ε₂)²/2",
            verdict=BETTER,
            why="The exact constant of a bounded range, [HM26].",
        ),
        Row("Theorem 1: ε₁/2 + ε₂ is half the range", promise.bounded_range / 2.0, paper=0.75),
        Row("Lemma 3.1: ε, monotonic, at ε₁ = ε₂ = 1/2", promise.epsilon, paper=1.0),
        Row(
            "Lemma 3.1: ε, any queries",
            privacy.guarantee("above_threshold", monotonic=False, **half).epsilon,
            paper=1.5,
        ),
    ]
    # Lemma 3.3 against the law
    counts, threshold = np.array([0.0, 1.0, 3.0, 4.0, 6.0]), 3.5
    law = dpq.above_threshold_law(counts, threshold, noise="gumbel", **half)
    off = 0.0
    for k in range(counts.size):
        weights, at = np.exp(0.5 * counts), math.exp(0.5 * threshold)
        before = at + weights[:k].sum()
        off = max(
            off, abs(law.log_prob(k) - math.log(weights[k] / (before + weights[k]) * at / before))
        )
    outcome.rows.append(
        claim("Lemma 3.3: ln of the closed form, largest difference", "0", off, off < 1e-9)
    )
    # losses of all small data sets: Lemma 3.1 with Lemma 4.1, Corollary B.1
    edges = np.array([1.0, 2.0, 3.0, 4.0])
    small = [np.array(x) + 0.5 for n in (2, 3) for x in combinations_with_replacement(range(4), n)]

    def law_of(x: NDArray, target: float) -> NDArray[np.float64]:
        counts = np.searchsorted(np.sort(x), edges).astype(float)
        law = dpq.above_threshold_law(counts, target, **half)
        return np.array([law.log_prob(k) for k in range(edges.size)])

    for q in (0.5, 0.9):
        swap = max(
            float(np.abs(law_of(a, q * a.size) - law_of(b, q * b.size)).max())
            for a in small
            for b in small
            if a.size == b.size and _apart(a, b) == 1
        )
        added = max(
            float(np.abs(law_of(a, q * a.size) - law_of(b, q * b.size)).max())
            for a in small
            for b in small
            if b.size == a.size + 1 and _apart(a, b) == 0
        )
        outcome.rows += [
            claim(
                f"Lemmas 3.1, 4.1: largest loss, swap, q = {q}",
                "at most 1",
                swap,
                swap <= 1.0 + 1e-9,
            ),
            claim(
                f"Corollary B.1: largest loss, add-remove, q = {q}",
                f"at most qε₁ + ε₂ = {(1.0 + q) / 2.0:g}",
                added,
                added <= (1.0 + q) / 2.0 + 1e-9,
            ),
        ]
    # lambda more queries once all records are below the candidate
    run = dpq.above_threshold_law(np.full(400, 1_000.0), 990.0, **half)
    ends = np.exp([run.log_prob(k) for k in range(400)])
    going_on = 1.0 - np.cumsum(ends)
    outcome.rows += [
        claim(
            "§5.2: largest rise of the probability to go on for λ more queries, λ < 400",
            '"decreases in λ"',
            float(np.diff(going_on).max()),
            bool(np.diff(going_on).max() <= 0.0),
        ),
        claim(
            "the same, λ = 100: probability, 10 records beyond the target, ε = 1",
            '"we expect λ to most likely be small"',
            float(going_on[99]),
            going_on[99] < 0.5,
        ),
        claim(
            "Appendix B.3: levels of the recursion for m = 7",
            "log₂(m + 1) = 3",
            _depth(7),
            _depth(7) == 3,
        ),
    ]
    edges = [printed.BETA**k for k in range(1, 5_001)]
    wrong = np.mean([math.log(x, printed.BETA) // 1 != k for k, x in enumerate(edges, 1)])
    outcome.rows.append(
        Row(
            "Appendix C: exact edges β^k, k to 5,000, that the snippet puts into another bin",
            float(wrong),
            paper=0.0,
            says="none",
            verdict=WORSE,
            why="An erratum: math.log(x, b) // 1 rounds. The snippet also returns b**i - l + 1 for "
            "b**i + l - 1. The library bins by comparison with the candidates.",
        )
    )
    return outcome


def _apart(a: NDArray, b: NDArray) -> int:
    """Records of a that are not in b."""
    rest = list(b)
    for value in a:
        if value in rest:
            rest.remove(value)
    return a.size - (b.size - len(rest))


def _depth(m: int) -> int:
    return 0 if m == 0 else 1 + _depth(m // 2)


ITEMS = {
    "unbounded_density": unbounded_density,
    "unbounded_data": unbounded_data,
    "unbounded_levels": unbounded_levels,
    "unbounded_sums": unbounded_sums,
    "unbounded_tuning": unbounded_tuning,
    "unbounded_numbers": unbounded_numbers,
}
