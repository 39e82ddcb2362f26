r"""Optimal composition of releases of which epsilon and delta are known.

**The bound.** For neighbors x and x', a release that is (epsilon, delta)-DP is a function, random
or not, of one bit seen through a channel: with probability delta the bit itself comes through, and
else randomized response, which is right with odds of :math:`e^\epsilon` [KOV15]. The function may
depend on what came before, and what came before is a function of the earlier channels. So, *whether
or not releases depend on earlier outputs*, all outputs together are a function of k independent
channels, whose parameters were fixed beforehand. Their divergence bounds that of all outputs; and
it is attained, by the channels themselves: nothing smaller follows from the epsilons and deltas.
With :math:`L = \sum_i \pm\epsilon_i`, plus with probability
:math:`p_i = e^{\epsilon_i} / (1 + e^{\epsilon_i})`,

.. math:: 1 - \delta(\epsilon)
          = \prod_i (1 - \delta_i) \left(1 - E (1 - e^{\epsilon - L})_+\right),

which is the formula of [MV16]. To compute it exactly is #P-complete where the epsilons differ.

**The grid.** As in [MV16], each epsilon is rounded up to a multiple of one step, which only weakens
what is assumed of its release; the law of L then has few values, and is found by adding one
release after another. All terms are positive, so that relative errors add up: below 1e-11 for
`MAX_PARTS` releases. There is no Fourier transform, whose error would be relative to the largest
probability, and not to the tail. Steps are chosen to waste little: epsilons that are multiples of
one number waste nothing.

**Rounding.** The answer is rounded against the caller: delta is reduced by a relative 1e-9 for the
errors of the probabilities, and what is lost by underflow (less than 1e-290 in all, where the
least delta is 1e-250); and epsilon is increased by that of the difference of epsilon and L, some
units in the last place of the largest L.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

# Most releases, most steps in the sum of all epsilons, also for each release, and most additions.
MAX_PARTS = 2**13
MAX_STEPS = 2**17
MAX_STEPS_EACH = 2**12
MAX_WORK = 2**27
# Of how many steps the best is chosen, times different epsilons.
MAX_TRIED = 2**22
# Below it probabilities that underflow might matter.
LEAST_DELTA = 1e-250
# Relative errors of the probabilities, with room to spare.
SLACK = 1e-9


def optimal_epsilon(parts: Iterable[tuple[float, float]], delta: float) -> float | None:
    r"""Smallest epsilon that follows from those, and the deltas, of several releases.

    Parameters
    ----------
    parts : iterable of (float, float)
        Epsilon and delta of each release, fixed before the first one.
    delta : float
        The total delta.

    Returns
    -------
    float or None
        All releases together are (that, `delta`)-DP; rounded up. None where `delta` is not more
        than what the deltas of the releases need, or there are too many releases to tell.

    Notes
    -----
    At most `MAX_PARTS` releases, fewer if their epsilons are very different. It takes a fraction
    of a second for thousands of them.
    """
    parts = list(parts)
    certain = -math.expm1(math.fsum(math.log1p(-own) for _, own in parts))
    if not certain * (1.0 + SLACK) < delta * (1.0 - SLACK):
        return None
    # 1 - delta = (1 - certain) (1 - left)
    left = (delta * (1.0 - SLACK) - certain * (1.0 + SLACK)) / (1.0 - certain)
    if left < LEAST_DELTA:
        return None
    grid = _grid(Counter(epsilon for epsilon, _ in parts if epsilon > 0.0))
    if grid is None:
        return None
    step, numbers = grid
    law = _law(step, numbers)
    most = step * sum(numbers.elements())  # the largest L
    losses = most * np.linspace(-1.0, 1.0, law.size)
    low, high = 0.0, most
    if _divergence(law, losses, low) <= left:
        return low
    while (middle := 0.5 * (low + high)) not in (low, high):
        if _divergence(law, losses, middle) <= left:
            high = middle
        else:
            low = middle
    return high + 32.0 * 2.0**-53 * most


def _grid(epsilons: Counter[float]) -> tuple[float, Counter[int]] | None:
    """A step, and for each number of steps how many releases have as many; None if too many."""
    parts = epsilons.total()
    if parts > MAX_PARTS:
        return None
    if not parts:
        return 1.0, Counter()
    values, counts = np.array(list(epsilons)), np.array(list(epsilons.values()))
    whole, top = float(values @ counts), float(values.max())
    limit = min(MAX_STEPS, MAX_STEPS_EACH * parts, MAX_WORK // parts)
    # steps of the grid for the largest one, at most
    most = max(1, int(limit * (top / whole)))
    tried = np.unique(np.linspace(1, most, min(most, MAX_TRIED // values.size)).astype(np.int64))
    steps = np.zeros(tried.size)
    size = np.zeros(tried.size)
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        number = _rounded(value / top, tried)
        steps += count * number
        np.maximum(size, value / number, out=size)
    waste = np.where(steps <= limit, steps * size - whole, math.inf)
    if not math.isfinite(least := float(waste.min())):
        return None
    best = int(np.argmax(waste <= least + 1e-12 * whole))  # the coarsest of the best ones
    numbers: Counter[int] = Counter()
    for value, count in epsilons.items():
        numbers[int(_rounded(value / top, tried[best]))] += count
    return float(size[best]) * (1.0 + 2.0**-50), numbers


def _rounded(ratio: float, steps: NDArray[np.int64]) -> NDArray[np.float64]:
    """Numbers of steps for an epsilon; the step is then made large enough for all of them."""
    numbers: NDArray[np.float64] = np.maximum(np.ceil(ratio * steps - 1e-9), 1.0)
    return numbers


def _law(step: float, numbers: Counter[int]) -> NDArray[np.float64]:
    """Probabilities of L, from the least to the largest, in steps of two."""
    law = np.ones(1)
    for number, count in numbers.items():
        shrunk = math.exp(-number * step)
        right = 1.0 / (1.0 + shrunk)
        for _ in range(count):
            longer = np.zeros(law.size + number)
            longer[: law.size] = (shrunk * right) * law
            longer[number:] += right * law
            law = longer
    return law


def _divergence(law: NDArray[np.float64], losses: NDArray[np.float64], epsilon: float) -> float:
    """The expectation of (1 - exp(epsilon - L))+."""
    above = int(np.searchsorted(losses, epsilon, side="right"))
    return float(-(law[above:] @ np.expm1(epsilon - losses[above:])))
