"""Distribution functions: the figures of Sarus' note, and the curves and rows of the poster."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

import dpq_fast as dpq
from bench.columns import REAL
from dpq_fast import privacy
from dpq_fast.released.cdf import CumulativeNoise
from papers import printed
from papers.outcome import (
    BETTER,
    NOT_POSSIBLE,
    REPRODUCED,
    WORSE,
    Effort,
    Outcome,
    Row,
    claim,
    mean_of,
    ratio_of,
    there,
)
from papers.report import digits

# --- The note -------------------------------------------------------------------------------------

N, RANGE = printed.NOTE_N, printed.NOTE_RANGE
EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
FEW = (0.01, 0.1, 1.0)  # those that rows are about, of both
SIGMAS = (1.0, 0.3, 0.1, 0.03, 0.01)
SIZES = (4, 8, 16, 32, 64, 128, 256)
METRICS = {"ks": "Kolmogorov-Smirnov", "wasserstein": "Wasserstein", "energy": "energy"}
TRIALS = (3, 20)
FAIR = 0.1  # what we take "decent" for

Released = Callable[[NDArray, int, float, np.random.Generator], dpq.CDF]


def _cdf(options: Callable[[int, float], dict[str, Any]]) -> Released:
    def release(x: NDArray, size: int, epsilon: float, rng: np.random.Generator) -> dpq.CDF:
        return dpq.cdf(x, bounds=RANGE, nan_policy="raise", rng=rng, **options(size, epsilon))

    return release


def _levels(method: str, size: int, epsilon: float) -> dict[str, Any]:
    return dict(method=method, levels=size - 1, epsilon=epsilon, delta=1.0 / N)


def _rho(epsilon: float) -> float:
    """Of Gaussian noise for (epsilon, 1/N): the note's accountant, in closed form."""
    return privacy.zcdp_rho(epsilon, 1.0 / N)


def notes_histogram(x: NDArray, size: int, epsilon: float, rng: np.random.Generator) -> dpq.CDF:
    """Gaussian noise on each bin, the budget divided by the bins, as the note says."""
    counts, edges = np.histogram(x, size, RANGE)
    noisy = counts + rng.normal(0.0, math.sqrt(size / (2.0 * _rho(epsilon))), size)
    shares = np.maximum.accumulate(np.clip(np.cumsum(noisy) / N, 0.0, 1.0))
    return dpq.CDF(edges, np.concatenate(([0.0], shares[:-1], [1.0])))


# Of a number of intervals and an epsilon.
SIDES: dict[str, Released] = {
    "naive": _cdf(partial(_levels, "gaussian")),
    "smooth sensitivity": _cdf(partial(_levels, "smooth_gaussian")),
    "histogram, the note's": notes_histogram,
    "adaptive": _cdf(lambda size, e: dict(method="adaptive", steps=size - 1, rho=_rho(e))),
    "cdf, histogram": _cdf(lambda size, e: dict(method="histogram", bins=size, epsilon=e)),
    "cdf, binary_tree": _cdf(lambda size, e: dict(method="binary_tree", bins=size, epsilon=e)),
}


@cache
def distances(
    side: str, size: int, epsilon: float, sigma: float, trials: int
) -> NDArray[np.float64] | None:
    """Distances between releases and their records, (trial, metric); None where it is refused."""
    found = []
    for seed in range(trials):  # the same records for every side
        rng = np.random.default_rng([seed, 7])
        x = rng.normal(0.0, sigma, N).clip(*RANGE)
        try:
            released = SIDES[side](x, size, epsilon, rng)
        except ValueError:  # epsilon above 4 for a level
            return None
        found.append([getattr(released, metric)(x) for metric in METRICS])
    return np.array(found)


@cache
def best(side: str, epsilon: float, sigma: float, trials: int) -> NDArray[np.float64]:
    """At the best of all sizes for each distance, a search that the note does not count either."""
    tried = [distances(side, size, epsilon, sigma, trials) for size in SIZES]
    known = np.array([each for each in tried if each is not None])
    return np.stack([known[k, :, i] for i, k in enumerate(known.mean(axis=1).argmin(axis=0))], 1)


def uniform_line(sigma: float) -> NDArray[np.float64]:
    """Distances of the uniform law on the range, which costs no privacy."""
    x = np.random.default_rng([0, 7]).normal(0.0, sigma, N).clip(*RANGE)
    line = dpq.CDF(np.array(RANGE), np.array([0.0, 1.0]))
    return np.array([getattr(line, metric)(x) for metric in METRICS])


def _over_epsilon(effort: Effort, *sides: str) -> Outcome:
    trials, epsilons = effort.of(*TRIALS), EPSILONS if effort.times >= 0.5 else FEW
    outcome = Outcome(
        trials=f"{trials} samples of {N:,} records of N(0, 1) in ±5, δ = 1/n, the best of "
        f"{len(SIZES)} sizes"
    )
    for place, metric in enumerate(METRICS.values()):
        outcome.table(
            f"{metric} distance over ε",
            ("", *(f"{e:g}" for e in epsilons)),
            (
                (side, *(digits(best(side, e, 1.0, trials)[:, place].mean()) for e in epsilons))
                for side in sides
            ),
        )
    outcome.curves = {
        side: [best(side, e, 1.0, trials).mean(axis=0) for e in epsilons] for side in sides
    }
    outcome.curves["x"] = epsilons
    return outcome


def note_data(effort: Effort) -> Outcome:
    """The data set, and its distribution function."""
    outcome = Outcome(trials=f"{N:,} records")
    x = np.random.default_rng([0, 7]).normal(0.0, 1.0, N).clip(*RANGE)
    counts, edges = np.histogram(x, 100, RANGE)
    outcome.curves["histograms"] = {"N(0, 1)": {"edges": edges, "counts": counts}}
    outcome.rows.append(claim("records", "10,000 from a normal distribution", x.size, x.size == N))
    return outcome


def note_naive(effort: Effort) -> Outcome:
    """Noise by global sensitivity."""
    outcome = _over_epsilon(effort, "naive")
    epsilon, delta, paper = printed.NAIVE
    width = RANGE[1] - RANGE[0]
    lemma = 2.0 * math.log(1.25 / delta)
    outcome.rows += [
        Row(
            "standard deviation at (1, 10⁻⁴), width 10: 2 ln(1.25/δ) Δ/ε",
            width * lemma / epsilon,
            0.0,
            paper,
            1.0,
        ),
        Row(
            "the same by the theorem that is meant, √(2 ln(1.25/δ)) Δ/ε",
            width * math.sqrt(lemma) / epsilon,
            paper=paper,
            verdict=BETTER,
            why="An erratum: the note's 188 lacks the square root.",
        ),
        Row(
            "the same, exactly: privacy.gaussian_sigma",
            privacy.gaussian_sigma(width * width, epsilon, delta),
            paper=paper,
            verdict=BETTER,
            why="[BW18]: the least noise that has this ε and δ.",
        ),
    ]
    found = best("naive", 1.0, 1.0, effort.of(*TRIALS))
    for place, metric in enumerate(METRICS.values()):
        mean, se = mean_of(found[:, place])
        line = uniform_line(1.0)[place]
        outcome.rows.append(
            claim(
                f"{metric} distance at ε = 1 over that of the uniform law",
                '"a uniform distribution would approximate the CDF better"',
                mean / line,
                mean > line,
                se=se / line,
                why="With exact noise for all levels together, and answers that are sorted, it is "
                "no worse than that."
                if mean <= line
                else "",
            )
        )
    return outcome


def note_smooth(effort: Effort) -> Outcome:
    """Noise by smooth sensitivity."""
    outcome = _over_epsilon(effort, "naive", "smooth sensitivity")
    trials = effort.of(*TRIALS)
    naive, smooth = (best(side, 1.0, 1.0, trials) for side in ("naive", "smooth sensitivity"))
    for place, metric in enumerate(METRICS.values()):
        ratio, se = ratio_of(smooth[:, place], naive[:, place])
        outcome.rows.append(
            claim(
                f"{metric} distance at ε = 1 over that of the naive approach",
                '"a much closer approximation"',
                ratio,
                ratio < 0.5,
                se=se,
            )
        )
    return outcome


def note_histogram(effort: Effort) -> Outcome:
    """Counts of bins."""
    sides = ("histogram, the note's", "cdf, histogram")
    outcome, trials = _over_epsilon(effort, *sides), effort.of(*TRIALS)
    for epsilon in (printed.DECENT, 1.0):
        mean, se = mean_of(best(sides[0], epsilon, 1.0, trials)[:, 0])
        outcome.rows.append(
            claim(
                f"largest difference (KS) at ε = {epsilon:g}, the note's histogram",
                '"for ε ≥ 0.1, we get decent accuracy"',
                mean,
                mean <= FAIR,
                se=se,
            )
        )
        outcome.rows.append(_ours("cdf, histogram", sides[0], epsilon, trials))
    return outcome


def _ours(side: str, old: str, epsilon: float, trials: int, sigma: float = 1.0) -> Row:
    mean, se = mean_of(best(side, epsilon, sigma, trials)[:, 0])
    paper, paper_se = mean_of(best(old, epsilon, sigma, trials)[:, 0])
    return Row(
        f"KS distance at ε = {epsilon:g}, σ = {sigma:g}: {side}",
        mean,
        se,
        paper,
        paper_se,
        says=f"{old}, run here",
    )


def note_adaptive(effort: Effort) -> Outcome:
    """One bin after the other is halved."""
    sides = ("histogram, the note's", "adaptive", "cdf, binary_tree")
    outcome, trials = _over_epsilon(effort, *sides), effort.of(*TRIALS)
    for place, metric in enumerate(METRICS.values()):
        ratio, se = ratio_of(
            best("adaptive", 1.0, 1.0, trials)[:, place],
            best("histogram, the note's", 1.0, 1.0, trials)[:, place],
        )
        outcome.rows.append(
            claim(
                f"{metric} distance at ε = 1: adaptive over the note's histogram",
                '"increase even more the precision"',
                ratio,
                ratio < 1.0,
                se=se,
            )
        )
    mean, se = mean_of(best("adaptive", 0.01, 1.0, trials)[:, 0])
    outcome.rows += [
        Row(
            "KS distance at ε = 0.01, adaptive",
            mean,
            se,
            says='"decent results are still hard to achieve for very small ε"',
            verdict=BETTER if mean < FAIR else REPRODUCED,
            why="Within what is called decent at 0.1: the accounting is exact.",
        ),
        _ours("cdf, binary_tree", "adaptive", 1.0, trials),
        _ours("cdf, binary_tree", "adaptive", 0.01, trials),
    ]
    for row in outcome.rows[-2:]:
        row.why = (
            "On a range that fits the data, a tree in a pure ε has as many levels as it has leaves "
            "to tell apart; the search counts only where records are, and has a δ."
        )
    return outcome


def note_widths(effort: Effort) -> Outcome:
    """All methods over the standard deviation of the data."""
    trials, sigmas = effort.of(*TRIALS), SIGMAS if effort.times >= 0.5 else FEW
    outcome = Outcome(
        trials=f"{trials} samples of {N:,} records of N(0, σ) in ±5, (1, 1/n), the best of "
        f"{len(SIZES)} sizes"
    )
    gains = []
    for place, metric in enumerate(METRICS.values()):
        outcome.table(
            f"{metric} distance over σ",
            ("", *(f"{s:g}" for s in sigmas)),
            (
                (side, *(digits(best(side, 1.0, s, trials)[:, place].mean()) for s in sigmas))
                for side in SIDES
            ),
        )
        for sigma in (1.0, 0.1, 0.01):
            ratio, se = ratio_of(
                best("histogram, the note's", 1.0, sigma, trials)[:, place],
                best("adaptive", 1.0, sigma, trials)[:, place],
            )
            gains.append(ratio)
            outcome.rows.append(
                claim(
                    f"{metric} distance, σ = {sigma:g}: the note's histogram over adaptive",
                    '"a factor around 2 for reasonably well set bounds"'
                    if sigma == 1.0
                    else '"simple histograms can\'t keep up"',
                    ratio,
                    ratio >= 1.3 if sigma == 1.0 else ratio >= 2.0,
                    se=se,
                    why="Less than the note's factor where bounds fit." if sigma == 1.0 else "",
                )
            )
        naive = best("naive", 1.0, 1.0, trials)[:, place].mean()
        others = [
            best(side, 1.0, 1.0, trials)[:, place].mean() for side in SIDES if side != "naive"
        ]
        outcome.rows.append(
            claim(
                f"{metric} distance, σ = 1: naive over the worst of the others",
                '"the naive approach just does not cut it"',
                naive / max(others),
                naive > max(others),
                se=0.3 * naive / max(others),
            )
        )
    for sigma in (1.0, 0.01):
        row = _ours("cdf, binary_tree", "adaptive", 1.0, trials, sigma)
        row.why = (
            "Even bins over the whole range: `cdf` with a prior, or `adaptive`, is for data that "
            "is narrow in its bounds."
        )
        outcome.rows.append(row)
    outcome.curves = {
        side: [best(side, 1.0, s, trials).mean(axis=0) for s in sigmas] for side in SIDES
    }
    outcome.curves["x"] = sigmas
    return outcome


def note_bins(effort: Effort) -> Outcome:
    """Histogram and search over the number of bins."""
    trials, sigma = effort.of(*TRIALS), 0.1
    outcome = Outcome(
        trials=f"{trials} samples of {N:,} records of N(0, {sigma:g}) in ±5, (1, 1/n)"
    )
    sides = ("histogram, the note's", "adaptive", "cdf, histogram")
    known = {side: [distances(side, k, 1.0, sigma, trials) for k in SIZES] for side in sides}
    for place, metric in enumerate(METRICS.values()):
        means = {side: np.array([d[:, place].mean() for d in known[side]]) for side in sides}
        outcome.table(
            f"{metric} distance over bins, or steps + 1",
            ("", *map(str, SIZES)),
            ((side, *map(digits, by)) for side, by in means.items()),
        )
        note, adaptive = means["histogram, the note's"], means["adaptive"]
        outcome.rows += [
            claim(
                f"{metric} distance: share of sizes at which adaptive is better",
                '"whatever the number of bins, the adaptive model performs better"',
                float((adaptive < note).mean()),
                bool((adaptive < note)[1:].all()),
                se=0.1,
            ),
            claim(
                f"{metric} distance: sizes within twice the best, adaptive less histogram",
                '"the range of values that are close to optimal is much larger"',
                float((adaptive <= 2.0 * adaptive.min()).sum() - (note <= 2.0 * note.min()).sum()),
                (adaptive <= 2.0 * adaptive.min()).sum() >= (note <= 2.0 * note.min()).sum(),
                se=1.0,
                why="Both have a wide range: the histogram's error is that of its bins up to the "
                "largest number.",
            ),
        ]
    outcome.curves = {
        side: [d.mean(axis=0) for d in by if d is not None] for side, by in known.items()
    }
    outcome.curves["x"] = SIZES
    return outcome


# --- The poster -----------------------------------------------------------------------------------

POINTS = 101  # of the universe, 0 to 100: the poster's alpha says so, see `poster_alpha`
BETA, EPSILON = printed.POSTER_BETA, printed.POSTER_EPSILON
TREE: dict[str, Any] = dict(
    epsilon=EPSILON, method="binary_tree", bins=128, bounds=(0, 128), nan_policy="raise"
)


def published_alpha(points: int) -> float:
    """Of an interval of log2(points) counts with Laplace noise log2(points) / epsilon each."""
    depth = math.log2(points)
    return depth / EPSILON * math.sqrt(8.0 * depth * math.log(2.0 / BETA))


def smoothed(v: NDArray[np.float64]) -> NDArray[np.float64]:
    """The poster's formula: min over j >= k of the max over i <= j of M[i, j]."""
    means = np.full((v.size, v.size), -np.inf)
    for i in range(v.size):
        means[i, i:] = np.cumsum(v[i:]) / np.arange(1, v.size - i + 1)
    return np.minimum.accumulate(means.max(axis=0)[::-1])[::-1]


def poster_alpha(effort: Effort) -> Outcome:
    """Alpha from the epsilon and beta of the poster; the smoothing formula."""
    outcome = Outcome(trials="none: exact")
    outcome.rows.append(
        Row(
            "α = log₂(101)/ε · √(8 log₂(101) ln(2/β)), ε = 0.01, β = 0.05",
            published_alpha(POINTS),
            0.0,
            printed.ALPHA,
            0.005,
            why="",
        )
    )
    for neighbors, why in (
        ("add-remove", "The exact tail of the noise, for the poster's relation."),
        ("swap", "A replaced record changes two leaves: twice the noise, with the exact tail."),
    ):
        released = dpq.cdf(np.zeros(10), neighbors=neighbors, rng=0, **TREE)
        noise = released._noise
        assert noise is not None
        # one interval of as many counts as the tree is high
        one = CumulativeNoise(noise.noise, lambda: np.array([7.0]), True).margin(BETA)
        outcome.rows.append(
            Row(
                f"α of one interval: cdf, binary_tree, 128 points, {neighbors}",
                one,
                paper=printed.ALPHA,
                verdict=BETTER if one < printed.ALPHA else WORSE,
                why=why,
            )
        )
        outcome.rows.append(
            Row(
                f"α of all intervals at once, {neighbors}",
                released.accuracy(BETA),
                paper=printed.ALPHA,
                says="of one interval",
                verdict=BETTER if released.accuracy(BETA) < printed.ALPHA else WORSE,
                why="Of another promise: no interval at all is farther off, with 95%.",
                se=100.0,  # of ranges that are simulated
            )
        )
    v = np.random.default_rng(0).normal(0.0, 5.0, 60) + np.arange(60)
    off = float(np.abs(smoothed(v) - scipy.optimize.isotonic_regression(v).x).max())
    outcome.rows.append(
        claim(
            "the smoothing formula against the nearest monotone vector, largest difference",
            "0",
            off,
            off < 1e-9,
        )
    )
    return outcome


def published_tree(x: NDArray, rng: np.random.Generator) -> NDArray[np.float64]:
    """Numbers of records up to each point, of the poster's tree, smoothed."""
    depth = math.ceil(math.log2(POINTS))
    counts = np.bincount(x, minlength=2**depth).astype(float)
    noisy = {}
    for level in range(depth + 1):
        noisy[level] = counts + rng.laplace(0.0, math.log2(POINTS) / EPSILON, counts.size)
        counts = counts.reshape(-1, 2).sum(axis=1) if counts.size > 1 else counts
    ends = np.arange(1, POINTS + 1)
    found = np.zeros(POINTS)
    for level in range(depth + 1):
        used = (ends >> level) & 1 == 1
        found[used] += noisy[level][((ends[used] >> (level + 1)) << 1)]
    return scipy.optimize.isotonic_regression(found).x


def _poster(effort: Effort, name: str, x: NDArray, stands_for: str) -> Outcome:
    outcome = Outcome(trials=f"{effort.of(40, 400)} releases of {x.size:,} records: {stands_for}")
    true = np.bincount(x, minlength=POINTS).cumsum()[:POINTS]
    beyond, ours, errors = [], [], []
    for seed in range(effort.of(40, 400)):
        rng = np.random.default_rng([seed, 9])
        smooth = published_tree(x, rng)
        beyond.append((np.abs(smooth - true) > printed.ALPHA).sum())
        released = dpq.cdf(x, neighbors="add-remove", rng=rng, **TREE)
        assert released.total is not None
        counted = released.total * released.cdf(np.arange(float(POINTS)))
        ours.append((np.abs(counted - true) > printed.ALPHA).sum())
        errors.append((np.abs(smooth - true).mean(), np.abs(counted - true).mean()))
        if seed == 0:
            outcome.curves = {"true": true, "published": smooth, "released": counted}
    says = ", ".join(map(str, printed.BEYOND_ALPHA[name])) + " in 10 trials"
    for label, found in (("the poster's tree", beyond), ("cdf, binary_tree", ours)):
        outcome.rows.append(
            Row(
                f"points of 101 beyond α, a trial: {label}",
                float(np.mean(found)),
                # of a mean of ten trials with the noise that is described, none of which has one
                max(float(np.std(found)) / math.sqrt(10.0), 0.05),
                float(np.mean(printed.BEYOND_ALPHA[name])),
                says=says,
                why="α is several times the error of the noise that is described: the poster's "
                "counts are of more noise, or of something else.",
            )
        )
    outcome.rows.append(
        Row(
            "P(one point is beyond α), the poster's tree: points of 100",
            mean_of(beyond)[0] * 100.0 / POINTS,
            max(mean_of(beyond)[1], 0.05),
            printed.EXPECTED_BEYOND,
            says="expectation of 5",
            why="β bounds the probability; the true one is far below it.",
        )
    )
    old, new = np.array(errors).T
    outcome.rows.append(
        Row(
            "mean error of a count, cdf, binary_tree",
            *mean_of(new),
            *mean_of(old),
            says="the poster's tree, run here",
            why="",
        )
    )
    return outcome


def poster_age(effort: Effort) -> Outcome:
    """Ages: those of Adult."""
    outcome = Outcome()
    if there(["age"], outcome):
        return _poster(
            effort, "age", REAL["age"].load(), "Adult's ages; the poster's are not known"
        )
    return outcome


def poster_income(effort: Effort) -> Outcome:
    """Income in thousands."""
    rng = np.random.default_rng(0)
    x = np.rint(rng.lognormal(3.5, 0.8, 100_000)).clip(0, POINTS - 1).astype(np.int64)
    outcome = _poster(
        effort,
        "income",
        x,
        "incomes in thousands, lognormal(3.5, 0.8), up to 100; the poster's are not known",
    )
    outcome.rows.append(
        Row(
            "the poster's own incomes",
            None,
            says="a large data set",
            verdict=NOT_POSSIBLE,
            why="It does not say which they are. Noise does not depend on the data: only the "
            "smoothing does, a little.",
        )
    )
    return outcome


ITEMS = {
    "note_data": note_data,
    "note_naive": note_naive,
    "note_smooth": note_smooth,
    "note_histogram": note_histogram,
    "note_adaptive": note_adaptive,
    "note_widths": note_widths,
    "note_bins": note_bins,
    "poster_alpha": poster_alpha,
    "poster_income": poster_income,
    "poster_age": poster_age,
}
