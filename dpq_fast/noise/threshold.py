"""The noise of AboveThreshold: one law for the threshold and, at another rate, for each query.

The kernel draws by name (`csrc/halting.h`); what is here are the laws that it draws from.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray


class ThresholdNoise:
    """A law of noise, of density proportional to a power of e at a rate.

    Attributes
    ----------
    name : str
        What `noise` is given as.
    equal_rates : bool
        Whether its guarantee holds for equal rates of threshold and queries only.
    fraction : float
        Share of the threshold's epsilon in that of threshold and query, by default. The
        probability of k more steps than needed falls like k^-(f/(1 - f)) for a share f, so an even
        one has an error without a mean, in practice, too; see the notes of `unbounded_quantile`.
    one_sided : bool
        Whether no noise is negative.
    """

    name: str
    equal_rates = False
    fraction = 2.0 / 3.0
    one_sided = False


class IntegratedNoise(ThresholdNoise, ABC):
    """A noise whose law of halting is an integral over that of the threshold."""

    @abstractmethod
    def log_density(self, rate: float, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """ln p(z) of the threshold's noise, for z where it can be."""

    @abstractmethod
    def log_distribution(
        self, rate: float, gap: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """ln F and ln(1 - F) of a query's noise at `gap`."""


class Exponential(IntegratedNoise):
    """Density :math:`A e^{-Az}` at z >= 0: the least variance."""

    name = "exponential"
    one_sided = True

    def log_density(self, rate: float, z: NDArray[np.float64]) -> NDArray[np.float64]:
        return math.log(rate) - rate * np.abs(z)

    def log_distribution(
        self, rate: float, gap: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        x = np.maximum(rate * gap, 0.0)
        with np.errstate(divide="ignore"):
            log_f = np.where(x < math.log(2.0), np.log(-np.expm1(-x)), np.log1p(-np.exp(-x)))
        return log_f, -x


class Laplace(IntegratedNoise):
    """Density :math:`A e^{-A|z|} / 2`."""

    name = "laplace"

    def log_density(self, rate: float, z: NDArray[np.float64]) -> NDArray[np.float64]:
        return math.log(rate / 2.0) - rate * np.abs(z)

    def log_distribution(
        self, rate: float, gap: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        x = rate * gap
        log_half = -np.abs(x) - math.log(2.0)
        log_rest = np.log1p(-np.exp(log_half))
        return np.where(x < 0.0, log_half, log_rest), np.where(x < 0.0, log_rest, log_half)


class Gumbel(ThresholdNoise):
    r"""Distribution :math:`\exp(-e^{-Az})`: for equal rates halting has a closed form."""

    name = "gumbel"
    equal_rates = True
    fraction = 0.5


NOISES: dict[str, ThresholdNoise] = {kind.name: kind() for kind in (Exponential, Laplace, Gumbel)}
