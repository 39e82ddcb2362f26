"""Discrete noise, [CKS20] Algorithms 1 to 3, with Python's integers and fractions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from dpq_fast._checks import check_ratio, check_scale, check_shape
from dpq_fast.reference._calls import default_rng


def bernoulli_exp(gamma: Any, *, size: Any = None, rng: Any = None) -> Any:
    """True with probability exp(-gamma); as `dpq_fast.noise.bernoulli_exp`."""
    shape = check_shape(size)
    exact = Fraction(*check_ratio("gamma", gamma, positive=False))
    return _draws(lambda generator: _bernoulli_exp(exact, generator), shape, bool, rng)


def discrete_laplace(scale: Any, *, size: Any = None, rng: Any = None) -> Any:
    """P[k] proportional to exp(-|k| / scale); as `dpq_fast.noise.discrete_laplace`."""
    shape = check_shape(size)
    t, s = check_scale("scale", scale, shape)
    return _draws(lambda generator: _discrete_laplace(t, s, generator), shape, np.int64, rng)


def discrete_gaussian(sigma: Any, *, size: Any = None, rng: Any = None) -> Any:
    """P[k] proportional to exp(-k^2 / (2 sigma^2)); as `dpq_fast.noise.discrete_gaussian`."""
    shape = check_shape(size)
    variance = Fraction(*check_scale("sigma", sigma, shape)) ** 2
    return _draws(lambda generator: _discrete_gaussian(variance, generator), shape, np.int64, rng)


def _draws(
    draw: Callable[[np.random.Generator], Any], shape: tuple[int, ...] | None, dtype: Any, rng: Any
) -> Any:
    """One draw, or an array of them."""
    generator = default_rng(rng)
    if shape is None:
        return draw(generator)
    out = np.empty(shape, dtype)
    for index in np.ndindex(shape):
        out[index] = draw(generator)
    return out


def _bernoulli_exp(gamma: Fraction, rng: np.random.Generator) -> bool:
    """[CKS20] Algorithm 1."""
    while gamma > 1:
        if not _bernoulli_exp(Fraction(1), rng):
            return False
        gamma -= 1
    k = 1
    while _bernoulli(gamma / k, rng):
        k += 1
    return k % 2 == 1


def _discrete_laplace(t: int, s: int, rng: np.random.Generator) -> int:
    """[CKS20] Algorithm 2, for the scale t / s."""
    while True:
        u = _below(t, rng)
        if not _bernoulli_exp(Fraction(u, t), rng):
            continue
        v = 0
        while _bernoulli_exp(Fraction(1), rng):
            v += 1
        y = (u + t * v) // s
        negative = _bernoulli(Fraction(1, 2), rng)
        if not (negative and y == 0):
            return -y if negative else y


def _discrete_gaussian(variance: Fraction, rng: np.random.Generator) -> int:
    """[CKS20] Algorithm 3."""
    t = _floor_sqrt(variance) + 1
    while True:
        y = _discrete_laplace(t, 1, rng)
        if _bernoulli_exp((abs(y) - variance / t) ** 2 / (2 * variance), rng):
            return y


def _floor_sqrt(value: Fraction) -> int:
    """The largest integer whose square is at most `value`."""
    return math.isqrt(value.numerator // value.denominator)


def _bernoulli(p: Fraction, rng: np.random.Generator) -> bool:
    """True with probability p."""
    return _below(p.denominator, rng) < p.numerator


def _below(n: int, rng: np.random.Generator) -> int:
    """Uniform on 0, ..., n - 1: as many random bits as n - 1 has, again until they fit."""
    bits = (n - 1).bit_length()
    while True:
        drawn = 0
        for word in rng.integers(0, 2**64, size=-(-bits // 64), dtype=np.uint64).tolist():
            drawn = drawn << 64 | word
        drawn &= (1 << bits) - 1
        if drawn < n:
            return drawn
