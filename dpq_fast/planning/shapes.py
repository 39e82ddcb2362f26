"""The columns that a plan without a guess is for: shapes between the bounds, all of them public.

No public fact says how the records lie between the bounds, and errors go by it: by what part of
the bounds they fill, and by their ties. So nothing is said of one column as if it were known.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy
from numpy.typing import NDArray

from dpq_fast.planning.guesses import Guess


def _ndtri(u: NDArray[np.float64]) -> NDArray[np.float64]:
    """The standard normal's quantiles; SciPy's module is loaded when it is used."""
    found: NDArray[np.float64] = scipy.special.ndtri(u)
    return found


# Halvings that invert a quantile function to all digits of float64.
HALVINGS = 60

# Quantile functions, in units of the bounds: 0 is the lower one, 1 the upper one, and what is
# beyond is clamped. By how wide columns are, how skewed, and how tied; standard deviations are
# parts of the bounds.
SHAPES: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "even": lambda u: u,
    "normal (1/8 of the bounds)": lambda u: 0.5 + _ndtri(u) / 8.0,
    "normal (1/40)": lambda u: 0.5 + _ndtri(u) / 40.0,
    "normal (1/1,000)": lambda u: 0.5 + _ndtri(u) / 1_000.0,
    "Cauchy (1/200)": lambda u: 0.5 + np.tan(np.pi * (u - 0.5)) / 200.0,
    "lognormal (1/200)": lambda u: np.exp(_ndtri(u)) / 200.0,
    "80% at the lower bound": lambda u: np.where(
        u < 0.8, 0.0, np.exp(_ndtri(np.maximum(5.0 * u - 4.0, 0.0))) / 50.0
    ),
    "half in one place": lambda u: np.where(np.abs(u - 0.5) < 0.25, 0.5, 0.5 + _ndtri(u) / 40.0),
    "20 round numbers": lambda u: (np.floor(20.0 * u) + 0.5) / 20.0,
    "two clusters (1/1,000)": lambda u: (
        np.where(u < 0.5, 0.25, 0.75) + _ndtri(np.maximum(np.mod(2.0 * u, 1.0), 2.0**-60)) / 1_000.0
    ),
}


def guesses_of(
    guess: Guess | None, bounds: tuple[float, float] | None
) -> tuple[dict[str, Guess], str]:
    """What is predicted for, by name, and in words: one guess, or the shapes between bounds."""
    if guess is not None:
        return {"": guess}, guess.text
    assert bounds is not None
    return {name: _guess(name, bounds) for name in SHAPES}, "guess: none (a range over shapes)"


def _guess(name: str, bounds: tuple[float, float]) -> Guess:
    low, high = bounds
    width = high - low

    def ppf(u: NDArray[np.float64]) -> NDArray[np.float64]:
        inside = np.clip(SHAPES[name](u), 0.0, 1.0)
        return np.minimum(low + width * inside, high)

    def cdf(x: NDArray[np.float64]) -> NDArray[np.float64]:
        """The largest u whose quantile is not above x, by bisection."""
        reached, beyond = np.zeros(np.shape(x)), np.ones(np.shape(x))
        for _ in range(HALVINGS):
            middle = (reached + beyond) / 2.0
            below = ppf(middle) <= x
            reached, beyond = np.where(below, middle, reached), np.where(below, beyond, middle)
        return np.where(x >= high, 1.0, beyond)

    return Guess(ppf, cdf, name)
