"""Published ways, re-stated from the papers: the other side of the comparisons.

JointExp: [GJK21] Algorithm 1 over all n + 1 intervals and all of alpha(j, i, k), in logarithms
(Appendix B), with FFT products (§3.3) and racing (Appendix C): O(m n log n + m^2 n) time,
O(m^2 n) memory.

NOT PRIVATE, and not for use. Because it stands for the published code it repeats that code's
faults on purpose: FFT entries that come out negative are clipped to zero, so that
outputs of positive probability get none; zero-width intervals, which ties make, get none either,
without a lattice or a dither; races are run with 53-bit uniforms; outputs are
``x_i + u (x_{i+1} - x_i)`` in float64, whose low-order bits show the data. JointExp is about
three times faster than the authors' own code was measured to be, so ratios to it are low.
"""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
from numpy.typing import NDArray


def joint_exp(
    x: NDArray[np.float64],
    q: NDArray[np.float64],
    epsilon: float,
    bounds: tuple[float, float],
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Quantiles at ascending levels q of ascending x, for the swap relation."""
    n, m = x.size, q.size
    x = np.concatenate((bounds[:1], np.clip(x, *bounds), bounds[1:]))
    n_j = np.diff(q, prepend=0.0, append=1.0) * n
    difference = np.arange(n + 1.0)

    def log_phi(j: int) -> NDArray[np.float64]:
        """ln phi(i, i', j) by difference i' - i, at sensitivity 2."""
        return -epsilon / 4.0 * np.abs(difference - n_j[j - 1])

    with np.errstate(divide="ignore", invalid="ignore"):  # ln 0 = -inf, here and below
        log_tau = np.log(np.diff(x))
        # log_alpha[j - 1, i, k - 1] is ln alpha(j, i, k)
        log_alpha = np.full((m, n + 1, m), -np.inf)
        log_alpha[0, :, 0] = log_phi(1) + log_tau
        for j in range(2, m + 1):
            before = log_alpha[j - 2, :, : j - 1]
            log_alpha[j - 1, :, 0] = log_tau + _log_toeplitz(log_phi(j), _log_sum(before))
            log_alpha[j - 1, :, 1:j] = (
                (log_tau + log_phi(j)[0])[:, np.newaxis] + before - np.log(np.arange(2, j + 1))
            )

        s = np.empty(m, dtype=np.intp)
        j, following = m, n
        while j > 0:
            # i <= n for the last run, i < i_{j+1} for the others
            last = max(following, 1) if j < m else n + 1
            weight = log_alpha[j - 1, :last] + log_phi(j + 1)[following - np.arange(last), None]
            i, k = divmod(_race(weight, rng), m)
            s[max(j - k - 1, 0) : j] = i
            j, following = j - k - 1, i
    return np.sort(x[s] + rng.random(m) * (x[s + 1] - x[s]))


def csmooth(
    x: NDArray[np.float64],
    q: float,
    t: float,
    sigma: float,
    s: float,
    bounds: tuple[float, float],
    rng: np.random.Generator,
) -> float:
    """One quantile of ascending x by [GJK21] Lemmas 13 and 14, over all n records.

    By the O(n log n) divide and conquer of Nissim et al. (2007), as the paper says of its own code,
    with one row at a time in NumPy. Its faults: the output is a float64 that shows the data in its
    low-order bits, and the sensitivity underflows to 0 where very many records are tied.
    """
    n = x.size
    padded = np.concatenate((bounds[:1], np.clip(x, *bounds), bounds[1:]))
    j = max(1, int(np.ceil(q * n)))
    smooth, rows = 0.0, [(0, j, j, n + 1)]  # lows from, to; highs from, to
    while rows:
        following = []
        for low_from, low_to, high_from, high_to in rows:
            low = (low_from + low_to) // 2
            highs = np.arange(max(high_from, low + 1), high_to + 1)
            terms = np.exp(-t * (highs - low - 1)) * (padded[highs] - padded[low])
            place = int(np.argmax(terms))
            smooth = max(smooth, float(terms[place]))
            high = int(highs[place])
            if low_from < low:
                following.append((low_from, low - 1, high_from, high))
            if low < low_to:
                following.append((low + 1, low_to, high, high_to))
        rows = following
    noise = rng.laplace() * np.exp(sigma * rng.standard_normal())
    return float(np.clip(padded[j] + smooth * noise / s, *bounds))


def unbounded_quantile(
    data: list[float],
    q: float,
    epsilon1: float,
    epsilon2: float,
    lower: float,
    beta: float,
    rng: np.random.Generator,
) -> float:
    """[Dur23] Appendix C, with exponential noise: loops over all records and all candidates."""
    counts: defaultdict[int, int] = defaultdict(int)
    for x in data:
        counts[math.log(x - lower + 1.0, beta) // 1] += 1
    threshold = q * len(data) + rng.exponential(1.0 / epsilon1)
    below = i = 0
    while True:
        below += counts[i]
        i += 1
        if below + rng.exponential(1.0 / epsilon2) > threshold:
            return beta**i - 1.0 + lower


def _log_sum(log_terms: NDArray[np.float64]) -> NDArray[np.float64]:
    """ln of sums over the last axis ([GJK21] Appendix B)."""
    largest = log_terms.max(axis=-1, keepdims=True)
    largest[np.isneginf(largest)] = 0.0
    return np.log(np.exp(log_terms - largest).sum(axis=-1)) + largest[..., 0]


def _log_toeplitz(log_phi: NDArray[np.float64], log_b: NDArray[np.float64]) -> NDArray[np.float64]:
    """ln of sum_{i' < i} phi(i - i') b(i') by FFT ([GJK21] Appendix B), negatives clipped."""
    phi = np.exp(log_phi - log_phi.max())
    phi[0] = 0.0
    b = np.exp(log_b - log_b.max())
    length = 1 << (2 * phi.size - 1).bit_length()
    product = np.fft.irfft(np.fft.rfft(phi, length) * np.fft.rfft(b, length), length)
    return np.log(np.maximum(product[: phi.size], 0.0)) + log_phi.max() + log_b.max()


def _race(log_weight: NDArray[np.float64], rng: np.random.Generator) -> int:
    """Flat index drawn with probability proportional to exp(log_weight) ([GJK21] Lemma 11)."""
    return int(np.argmin(np.log(np.log(1.0 / rng.random(log_weight.shape))) - log_weight))


def tree(
    x: NDArray,
    q: NDArray,
    epsilon: float,
    bounds: tuple[float, float],
    height: int,
    branching: int,
    rng: np.random.Generator,
) -> NDArray:
    """Quantiles from a plain tree of Laplace counts, under swap, as the authors descend it."""
    return _descended(_noisy(x, epsilon, bounds, height, branching, rng), q, bounds, branching)


def agg_tree(
    x: NDArray,
    q: NDArray,
    epsilon: float,
    bounds: tuple[float, float],
    height: int,
    branching: int,
    rng: np.random.Generator,
) -> NDArray:
    """The same with Honaker's estimates from below and from above, n known.

    Its fault: from the second level on, the pass from above takes the numbers of nodes for their
    parents' counts. Only trees of three levels or more use what it finds there.
    """
    noisy = _noisy(x, epsilon, bounds, height, branching, rng)
    of_one = 8.0 * (height / epsilon) ** 2  # variance
    below, variance = [noisy[-1]], [of_one]
    for counts in noisy[-2::-1]:
        weight = (1.0 / of_one) / (1.0 / of_one + 1.0 / (branching * variance[0]))
        sums = below[0].reshape(-1, branching).sum(axis=1)
        below.insert(0, weight * counts + (1.0 - weight) * sums)
        variance.insert(0, weight * of_one)
    parents, of_parents, first = np.array([float(x.size)]), 0.0, 1
    wrong, final = parents, []
    for depth, counts in enumerate(noisy):
        # of a node, from its parent and its siblings
        apart = of_parents + (branching - 1) * variance[depth]
        sums = below[depth].reshape(-1, branching).sum(axis=1)
        rest = np.repeat(parents - sums, branching) + below[depth]
        weight = (1.0 / variance[depth]) / (1.0 / variance[depth] + 1.0 / apart)
        final.append(weight * below[depth] + (1.0 - weight) * rest)
        weight = (1.0 / of_one) / (1.0 / of_one + 1.0 / apart)
        rest = np.repeat(wrong - sums, branching) + below[depth]
        parents = weight * counts + (1.0 - weight) * rest
        wrong = np.arange(first, first + counts.size, dtype=float)
        of_parents, first = weight * of_one, first + counts.size
    return _descended(final, q, bounds, branching)


def _noisy(
    x: NDArray,
    epsilon: float,
    bounds: tuple[float, float],
    height: int,
    branching: int,
    rng: np.random.Generator,
) -> list[NDArray[np.float64]]:
    """Counts of each level below the root, with Laplace noise."""
    counts = np.histogram(np.clip(x, *bounds), branching**height, bounds)[0]
    noisy: list[NDArray[np.float64]] = []
    for _ in range(height):
        noisy.insert(0, counts + rng.laplace(0.0, 2.0 * height / epsilon, counts.size))
        counts = counts.reshape(-1, branching).sum(axis=1)
    return noisy


def _descended(
    levels: list[NDArray[np.float64]], q: NDArray, bounds: tuple[float, float], branching: int
) -> NDArray[np.float64]:
    """Quantiles by a descent through the shares of children, whatever their signs are."""
    low, width = bounds[0], bounds[1] - bounds[0]
    answers = []
    for level in q:
        index, depth = 0, 0
        while depth < len(levels):
            children = levels[depth][index * branching : (index + 1) * branching]
            total = children.sum()
            if total <= 0.0:
                break
            through = children.cumsum()
            child = int(np.argmax(through / total >= level - 1e-6))
            before = through[child] - children[child]
            level = min((total * level - before) / children[child], 1.0)
            index, depth = index * branching + child, depth + 1
        answers.append(low + width * (index + level) / branching**depth)
    return np.array(answers)
