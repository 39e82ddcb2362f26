"""Exact discrete noise: integers in, random bits in, integers out, and no float in between.

A float is no obstacle: it is the binary fraction that it is, 0.1 the number
3602879701896397 / 2^55. The kernel draws where the terms of that fraction fit into 108 bits. Where
they do not, the same steps are made here with Python's integers, a hundred times slower.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks
from dpq_fast._kernels import noise as kernel
from dpq_fast.noise.rng import default_rng

# Draws per kernel call: an interrupt is heard in between.
CHUNK = 2**20
# Ratios below this have lost digits, or are 0 as float64.
MIN_RATE = 1e-300


def bernoulli_exp(gamma: Any, *, size: Any = None, rng: Any = None) -> Any:
    r"""Draw True with probability exp(-gamma), exactly.

    Parameters
    ----------
    gamma : int, float or Fraction
        Exponent, finite and at least 0, taken exactly. Public.
    size : int or tuple of int, optional
        Shape of the array of independent draws. Default: a single draw.
    rng : None, int, SeedSequence, BitGenerator or Generator, optional
        ``None`` for cryptographic randomness. Anything else is for tests and experiments.

    Returns
    -------
    drawn : bool or ndarray of bool
        An array where `size` is given.

    Raises
    ------
    TypeError
        If `gamma` is not a real number, or `size` is not made of integers.
    ValueError
        If `gamma` is negative or not finite, or `size` is negative.

    See Also
    --------
    discrete_laplace : Integer noise for pure differential privacy.

    Notes
    -----
    **Law.** Such a draw needs no exp(): comparisons of uniform integers are enough [1]_. Ours
    count a descending run of uniform numbers, of which mostly the leading bits alone are drawn.
    Exact for uniform random bits.

    **Cost.** Some ten nanoseconds per draw, fifty for a large `gamma`.

    References
    ----------
    .. [1] C. Canonne, G. Kamath, T. Steinke, "The Discrete Gaussian for Differential Privacy",
       NeurIPS 2020.

    Examples
    --------
    >>> from dpq_fast import noise
    >>> noise.bernoulli_exp(0)
    True
    >>> noise.bernoulli_exp(0.1, size=(2, 3), rng=0).shape
    (2, 3)
    """
    shape = _checks.check_shape(size)
    numerator, denominator = _checks.check_ratio("gamma", gamma, positive=False)
    whole, part = divmod(numerator, denominator)
    fits = denominator < kernel.LIMIT and whole < 2**64
    draw = kernel.bernoulli if fits else _each(_bernoulli)
    drawn = _fill(draw, (whole, part, denominator), shape or (), np.uint8, rng).view(bool)
    return drawn.item() if shape is None else drawn


@overload
def discrete_laplace(scale: Any, *, size: None = None, rng: Any = None) -> int: ...
@overload
def discrete_laplace(
    scale: Any, *, size: int | tuple[int, ...], rng: Any = None
) -> NDArray[np.int64]: ...
def discrete_laplace(scale: Any, *, size: Any = None, rng: Any = None) -> Any:
    r"""Draw integers k with probability proportional to exp(-\|k\| / scale), exactly.

    Parameters
    ----------
    scale : int, float or Fraction
        Positive and finite, taken exactly; at most 2^53 where `size` is given. Public.
    size : int or tuple of int, optional
        Shape of the array of independent draws. Default: a single draw.
    rng : None, int, SeedSequence, BitGenerator or Generator, optional
        ``None`` for cryptographic randomness. Anything else is for tests and experiments:
        predictable noise is no privacy.

    Returns
    -------
    drawn : int or ndarray of int64
        An array where `size` is given; else a Python integer, of any length.

    Raises
    ------
    TypeError
        If `scale` is not a real number, or `size` is not made of integers.
    ValueError
        If `scale` is not positive and finite or too large for arrays, or `size` is negative.

    See Also
    --------
    discrete_gaussian : Lighter tails, zero-concentrated differential privacy.
    discrete_laplace_log_prob : The law.

    Notes
    -----
    **Law.** P[k] = (1 - r) / (1 + r) r^|k| with r = exp(-1 / scale) [1]_, drawn as the whole part
    of an exponential variate and a sign. Decisions are comparisons of integers: exact for
    uniform random bits, but for a tail of 2^-1475 that arrays leave out.

    **Privacy.** Added to an integer that one person changes by at most s, the noise of scale
    s / epsilon makes it `epsilon`-DP. Write ``Fraction(s) / Fraction(epsilon)``: the quotient
    of floats is rounded. Not covered: timing.

    **Cost.** Some hundred nanoseconds per draw, most of it for secure random bits; some tens of
    microseconds if the terms of the fraction exceed 108 bits.

    References
    ----------
    .. [1] C. Canonne, G. Kamath, T. Steinke, "The Discrete Gaussian for Differential Privacy",
       NeurIPS 2020.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from dpq_fast import noise
    >>> epsilon = 0.1
    >>> isinstance(1234 + noise.discrete_laplace(1 / Fraction(epsilon)), int)
    True
    >>> noise.discrete_laplace(10, size=3, rng=0).dtype
    dtype('int64')
    """
    return _integers(kernel.laplace, _laplace, "scale", scale, size, rng)


@overload
def discrete_gaussian(sigma: Any, *, size: None = None, rng: Any = None) -> int: ...
@overload
def discrete_gaussian(
    sigma: Any, *, size: int | tuple[int, ...], rng: Any = None
) -> NDArray[np.int64]: ...
def discrete_gaussian(sigma: Any, *, size: Any = None, rng: Any = None) -> Any:
    r"""Draw integers k with probability proportional to exp(-k^2 / (2 sigma^2)), exactly.

    Parameters
    ----------
    sigma : int, float or Fraction
        Positive and finite, taken exactly; at most 2^53 where `size` is given. Public.
    size : int or tuple of int, optional
        Shape of the array of independent draws. Default: a single draw.
    rng : None, int, SeedSequence, BitGenerator or Generator, optional
        ``None`` for cryptographic randomness. Anything else is for tests and experiments:
        predictable noise is no privacy.

    Returns
    -------
    drawn : int or ndarray of int64
        An array where `size` is given; else a Python integer, of any length.

    Raises
    ------
    TypeError
        If `sigma` is not a real number, or `size` is not made of integers.
    ValueError
        If `sigma` is not positive and finite or too large for arrays, or `size` is negative.

    See Also
    --------
    discrete_laplace : Pure differential privacy.
    discrete_gaussian_log_prob : The law.

    Notes
    -----
    **Law.** The discrete Gaussian of [1]_; drawn as in [2]_, which needs `sigma` only and not
    its square. Exact for uniform random bits, but for a tail of 2^-700000 that is left out.
    The variance is at most sigma^2.

    **Privacy.** Added to an integer that one person changes by at most 1, it gives
    1 / (2 sigma^2)-zCDP; for a change of at most s, s^2 / (2 sigma^2)-zCDP [1]_. Not covered:
    timing.

    **Cost.** Some three hundred nanoseconds per draw; some tens of microseconds if the terms of
    the fraction exceed 108 bits.

    References
    ----------
    .. [1] C. Canonne, G. Kamath, T. Steinke, "The Discrete Gaussian for Differential Privacy",
       NeurIPS 2020.
    .. [2] C. F. F. Karney, "Sampling exactly from the normal distribution", ACM Transactions on
       Mathematical Software 42(1), 2016.

    Examples
    --------
    >>> from dpq_fast import noise
    >>> noise.discrete_gaussian(2.5, size=4, rng=0).shape
    (4,)
    """
    return _integers(kernel.gaussian, _gaussian, "sigma", sigma, size, rng)


def discrete_laplace_log_prob(k: Any, scale: Any) -> Any:
    """Natural logarithm of the probability of k under `discrete_laplace`.

    Parameters
    ----------
    k : int or array_like of int
        Outcomes.
    scale : int, float or Fraction
        As in `discrete_laplace`.

    Returns
    -------
    log_prob : float or ndarray of float64
        Of k's shape; relative error below 1e-12 for scales from 1e-3 to 1e15.
    """
    numerator, denominator = _checks.check_ratio("scale", scale)
    rate = _quotient(denominator, numerator)
    # ln tanh(rate / 2) = ln((1 - r) / (1 + r)); for a large rate, tanh() would round to 1
    if rate < MIN_RATE:
        log_zero = math.log(denominator) - math.log(numerator) - math.log(2.0)
    elif rate < 1.0:
        log_zero = math.log(math.tanh(rate / 2.0))
    else:
        r = math.exp(-rate)
        log_zero = math.log1p(-2.0 * r / (1.0 + r))
    return log_zero - _multiple(k, denominator, numerator)


def discrete_gaussian_log_prob(k: Any, sigma: Any) -> Any:
    """Natural logarithm of the probability of k under `discrete_gaussian`.

    Parameters
    ----------
    k : int or array_like of int
        Outcomes.
    sigma : int, float or Fraction
        As in `discrete_gaussian`.

    Returns
    -------
    log_prob : float or ndarray of float64
        Of k's shape; relative error below 1e-12 for sigmas from 1e-3 to 1e15.
    """
    numerator, denominator = _checks.check_ratio("sigma", sigma)
    terms = denominator**2, 2 * numerator**2
    steepness = _quotient(*terms)
    # The normalizer is a theta function: of its two series, one decays as exp(-pi j^2) or faster.
    if steepness > math.pi:
        log_total, decay = 0.0, steepness
    elif steepness < MIN_RATE:
        log_sigma = math.log(numerator) - math.log(denominator)
        log_total, decay = 0.5 * math.log(2.0 * math.pi) + log_sigma, math.inf
    else:
        log_total, decay = 0.5 * math.log(math.pi / steepness), math.pi**2 / steepness
    log_total += math.log1p(2.0 * sum(math.exp(-decay * j * j) for j in range(1, 5)))
    return -log_total - _multiple(k, *terms, power=2)


def _quotient(numerator: int, denominator: int) -> float:
    """Of integers of any length, to nearest; inf beyond float64."""
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf


def _multiple(k: Any, numerator: int, denominator: int, power: int = 1) -> Any:
    """|k| to a power, times a ratio, for one integer or an array of them; inf beyond float64."""
    if isinstance(k, int):
        if k.bit_length() > 63:
            return _quotient(abs(k) ** power * numerator, denominator)
        return float(_multiple(np.int64(k), numerator, denominator, power))
    values = np.asarray(k)
    if values.dtype.kind not in "iu":
        raise TypeError(f"k must be an integer or an array of integers, got {values.dtype}")
    magnitudes = np.abs(values.astype(np.float64)) ** power
    with np.errstate(invalid="ignore", over="ignore"):
        product = magnitudes * _quotient(numerator, denominator)
    return np.where(magnitudes == 0.0, 0.0, product)[()]


def _integers(
    draw: Callable[..., None],
    exact: Callable[..., int],
    name: str,
    value: Any,
    size: Any,
    rng: Any,
) -> Any:
    """Draws by the kernel `draw`, or by `exact` if the scale `value` does not fit the kernel."""
    shape = _checks.check_shape(size)
    numerator, denominator = _checks.check_scale(name, value, shape)
    fits = max(numerator, denominator) < kernel.LIMIT
    if shape is None:
        if not fits or numerator > denominator << 53:
            return exact(numerator, denominator, _Bits(default_rng(rng)))
        return _fill(draw, (numerator, denominator), (), np.int64, rng).item()
    return _fill(draw if fits else _each(exact), (numerator, denominator), shape, np.int64, rng)


def _fill(
    draw: Callable[..., None], law: tuple[int, ...], shape: tuple[int, ...], dtype: Any, rng: Any
) -> NDArray[Any]:
    """An array of draws, filled piece by piece."""
    generator = default_rng(rng)
    out = np.empty(shape, dtype)
    flat = out.reshape(-1)
    for start in range(0, flat.size, CHUNK):
        draw(*law, flat[start : start + CHUNK], generator)
    return out


def _each(exact: Callable[..., int]) -> Callable[..., None]:
    """A sampler of this module, called like a kernel."""

    def draw(*arguments: Any) -> None:
        *law, out, rng = arguments
        bits = _Bits(rng)
        for i in range(out.size):
            out[i] = exact(*law, bits)

    return draw


# The steps of csrc/noise.c, where they are proven, with integers of any length and the same bits.

DIGIT = 8


class _Bits:
    """Random bits of which none is lost."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._bits = 0
        self._left = 0

    def take(self, count: int) -> int:
        """An integer of `count` random bits."""
        while self._left < count:
            self._bits |= int(self._rng.integers(0, 2**64, dtype=np.uint64)) << self._left
            self._left += 64
        taken = self._bits & ((1 << count) - 1)
        self._bits >>= count
        self._left -= count
        return taken

    def below(self, n: int) -> int:
        """An integer from 0 to n - 1, all equally likely."""
        while True:
            drawn = self.take((n - 1).bit_length())
            if drawn < n:
                return drawn


class _Cell:
    """Digit and rest of a number on [0, 1); the rest of a uniform one is drawn when asked for."""

    def __init__(self, t: int, bits: _Bits, part: int | None = None) -> None:
        self._t, self._bits = t, bits
        self._rest: int | None = None
        if part is None:
            self.digit = bits.take(DIGIT)
        else:
            self.digit, self._rest = divmod(part << DIGIT, t)

    @property
    def rest(self) -> int:
        """What is below the digit."""
        if self._rest is None:
            self._rest = self._bits.below(self._t)
        return self._rest


def _descent_is_even(
    x: _Cell, tied: int, t: int, bits: _Bits, counts: Callable[[], bool] = lambda: True
) -> bool:
    """Whether a descent from x has an even number of steps that count."""
    last, even = x, True
    while True:
        following = _Cell(t, bits)
        if following.digit > last.digit:
            return even
        if following.digit < last.digit:
            tied = 1
        else:
            rest = last.rest
            if following.rest > rest:
                return even
            if following.rest < rest:
                tied = 1
            elif tied > 0 and bits.below(tied + 1) == tied:
                tied += 1
            else:
                return even
        if not counts():
            return even
        last, even = following, not even


def _decay(part: int, t: int, bits: _Bits) -> bool:
    """True with probability exp(-part / t), part <= t."""
    return _descent_is_even(_Cell(t, bits, part), 0, t, bits)


def _bernoulli(whole: int, part: int, t: int, bits: _Bits) -> bool:
    passed = 0
    while passed < whole and _decay(t, t, bits):
        passed += 1
    return passed == whole and _decay(part, t, bits)


def _signed(magnitude: Callable[[], int], bits: _Bits) -> int:
    while True:
        drawn = magnitude()
        if not bits.take(1):
            return drawn
        if drawn:
            return -drawn


def _laplace(t: int, s: int, bits: _Bits) -> int:
    def magnitude() -> int:
        whole, x = 0, _Cell(t, bits)
        while not _descent_is_even(x, 1, t, bits):
            whole, x = whole + 1, _Cell(t, bits)
        return ((whole << DIGIT | x.digit) * t + x.rest) // (s << DIGIT)

    return _signed(magnitude, bits)


def _gaussian(t: int, s: int, bits: _Bits) -> int:
    def magnitude() -> int:
        while True:
            whole = _whole(bits)
            first = -(-whole * t // s)
            step = bits.below(-(-t // s))
            part = (first + step) * s - whole * t
            if part < t and all(_fraction(whole, part, t, bits) for _ in range(whole + 1)):
                return first + step

    return _signed(magnitude, bits)


def _whole(bits: _Bits) -> int:
    """k >= 0 with probability proportional to exp(-k^2 / 2)."""
    while True:
        whole = 0
        while _decay(1, 2, bits):
            whole += 1
        if all(_decay(1, 2, bits) for _ in range(whole * (whole - 1))):
            return whole


def _fraction(k: int, part: int, t: int, bits: _Bits) -> bool:
    """True with probability exp(-x (2k + x) / (2k + 2)), x = part / t < 1."""
    x = _Cell(t, bits, part)

    def counts() -> bool:
        side = bits.below(2 * k + 2)
        if side != 2 * k:
            return side < 2 * k
        digit = bits.take(DIGIT)
        return digit < x.digit or (digit == x.digit and bits.below(t) < x.rest)

    return _descent_is_even(x, 0, t, bits, counts)
