"""The noise of counts: a law and its scale, draws, and how far they may be off."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import scipy
from numpy.typing import NDArray

from dpq_fast.noise.discrete import discrete_gaussian, discrete_laplace

# Noisy counts must fit int64.
_LARGEST_SCALE = 2**53


@dataclass(frozen=True, slots=True)
class CountNoise(ABC):
    """Independent noise of counts.

    Parameters
    ----------
    scale : Fraction or float
        Of one draw; of a Gaussian, sigma.

    Attributes
    ----------
    name : str
        What `noise` is given as.
    budget : {"epsilon", "rho"}
        What it is calibrated to.
    """

    scale: Fraction | float
    name: ClassVar[str]
    budget: ClassVar[str]

    @classmethod
    @abstractmethod
    def calibrated(cls, sensitivity: int, squared: int, budget: Fraction) -> CountNoise:
        """The noise for a budget.

        Parameters
        ----------
        sensitivity : int
            L1 sensitivity of all counts together.
        squared : int
            The square of their L2 sensitivity.
        budget : Fraction
            Epsilon or rho.
        """

    @classmethod
    def _check(cls, scale: Fraction, largest: int, budget: Fraction) -> None:
        if scale > largest:
            raise ValueError(
                f"{cls.budget} must give noise of a scale of at most 2^53, got {float(budget)}"
            )

    @abstractmethod
    def draw(self, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """Independent draws: integers, unless the law is continuous."""

    @property
    @abstractmethod
    def variance(self) -> float:
        """Variance of one draw, or a bound on it."""

    @abstractmethod
    def margin(self, level: float) -> float:
        """Half the width of an interval of that level around one noisy count.

        For a weighted sum of several draws, times the root of the sum of squared weights. The
        larger of what one draw needs and what a normal variable of its variance needs: a sum of
        draws is between the two.
        """

    @abstractmethod
    def log_moment(self, theta: float) -> float:
        """K(theta / scale) for the logarithm K of the moment generating function, from above."""


class Gaussian(CountNoise):
    """Discrete Gaussian noise [CKS20]."""

    __slots__ = ()
    name = "gaussian"
    budget = "rho"

    @classmethod
    def calibrated(cls, sensitivity: int, squared: int, budget: Fraction) -> CountNoise:
        """Sigma is the root of squared / 2 rho, rounded up."""
        square = squared / (2 * budget)  # this is known exactly
        cls._check(square, _LARGEST_SCALE**2, budget)
        sigma = math.sqrt(square)
        while Fraction(sigma) ** 2 < square:
            sigma = math.nextafter(sigma, math.inf)
        return cls(Fraction(sigma))

    def draw(self, size: int, rng: np.random.Generator) -> NDArray[Any]:
        return discrete_gaussian(self.scale, size=size, rng=rng)

    @property
    def variance(self) -> float:
        scale = float(self.scale)  # that of the discrete law is no more
        return scale * scale

    def margin(self, level: float) -> float:
        scale, miss = float(self.scale), 1.0 - level
        if scale >= 1.0:
            return scale * _normal_margin(level)
        # A narrow discrete Gaussian is no normal variable, but it is sub-Gaussian [CKS20].
        return scale * math.sqrt(2.0 * math.log(2.0 / miss))

    def log_moment(self, theta: float) -> float:
        return 0.5 * theta * theta  # sub-Gaussian [CKS20]


class Geometric(CountNoise):
    """Discrete Laplace noise."""

    __slots__ = ()
    name = "geometric"
    budget = "epsilon"

    @classmethod
    def calibrated(cls, sensitivity: int, squared: int, budget: Fraction) -> CountNoise:
        """The scale is sensitivity / epsilon, exactly."""
        scale = sensitivity / budget
        cls._check(scale, _LARGEST_SCALE, budget)
        return cls(scale)

    def draw(self, size: int, rng: np.random.Generator) -> NDArray[Any]:
        return discrete_laplace(self.scale, size=size, rng=rng)

    @property
    def variance(self) -> float:
        # 2 r / (1 - r)^2 with r = exp(-1 / scale)
        rate = 1.0 / float(self.scale)
        return 2.0 * math.exp(-rate) / math.expm1(-rate) ** 2

    def margin(self, level: float) -> float:
        # P[|X| > t] = 2 r^(floor(t) + 1) / (1 + r)
        factor = 2.0 / (1.0 + math.exp(-1.0 / float(self.scale)))
        return self._margin(level, factor)

    def _margin(self, level: float, factor: float) -> float:
        """For tails of `factor` times e^-t/scale."""
        single = math.log(factor / (1.0 - level))
        return float(self.scale) * max(single, _normal_margin(level) * math.sqrt(2.0))

    def log_moment(self, theta: float) -> float:
        # -ln(1 - sinh^2(theta / 2s) / sinh^2(1 / 2s)), where nothing overflows
        rate = 1.0 / float(self.scale)
        ratio = math.expm1(-theta * rate) / math.expm1(-rate) * math.exp((theta - 1.0) * rate / 2.0)
        return -math.log1p(-ratio * ratio)


class Laplace(Geometric):
    """Continuous Laplace noise, the paper's: its low-order bits depend on the counts."""

    __slots__ = ()
    name = "laplace"

    def draw(self, size: int, rng: np.random.Generator) -> NDArray[Any]:
        return rng.laplace(0.0, float(self.scale), size)

    @property
    def variance(self) -> float:
        scale = float(self.scale)
        return 2.0 * scale * scale

    def margin(self, level: float) -> float:
        return self._margin(level, 1.0)  # P[|X| > t] = r^t

    def log_moment(self, theta: float) -> float:
        return -math.log1p(-theta * theta)


COUNT_NOISES: dict[str, type[CountNoise]] = {
    kind.name: kind for kind in (Geometric, Laplace, Gaussian)
}


def _normal_margin(level: float) -> float:
    """Half the width of an interval of that level of a standard normal variable."""
    return -float(scipy.special.ndtri((1.0 - level) / 2.0))
