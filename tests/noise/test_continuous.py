"""Noise of 40 digits: its laws, its digits, and that the caller's decimal context is left alone."""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

import dpq_fast as dpq
from dpq_fast.noise import continuous
from dpq_fast.noise.rng import default_rng

SMALLEST_P = 1e-6


class Scripted:
    """A generator whose bytes are given, then zeros."""

    def __init__(self, *given: bytes) -> None:
        self._bytes = b"".join(given)

    def bytes(self, length: int) -> bytes:
        taken, self._bytes = self._bytes[:length], self._bytes[length:]
        return taken.ljust(length, b"\0")


def word(value: int) -> bytes:
    return value.to_bytes(16, "little")


@pytest.mark.slow
@pytest.mark.parametrize(
    "draw, law", [(continuous.laplace, stats.laplace), (continuous.normal, stats.norm)]
)
def test_variates_follow_their_law(draw, law):
    rng = np.random.default_rng(3)
    with continuous.digits():
        drawn = [float(draw(rng)) for _ in range(8_000)]
    assert stats.kstest(drawn, law.cdf).pvalue > SMALLEST_P
    assert stats.kstest(np.abs(drawn), lambda x: 2.0 * law.cdf(x) - 1.0).pvalue > SMALLEST_P
    signs = np.sign(drawn)
    assert stats.binomtest(int((signs > 0).sum()), len(drawn)).pvalue > SMALLEST_P
    # one draw says nothing of the next one's sign
    assert stats.binomtest(int((signs[1:] == signs[:-1]).sum()), signs.size - 1).pvalue > SMALLEST_P


@pytest.mark.parametrize("zeros", [0, 1, 127, 128, 129, 300])
def test_uniform_has_128_bits_after_the_leading_one(zeros):
    given = (1 << 128) + 12345  # its 128 bits come after so many zeros
    length = -(-(zeros + 129) // 128) * 128
    shifted = given << (length - zeros - 129)
    words = [word(shifted >> k & ((1 << 128) - 1)) for k in range(length - 128, -1, -128)]
    with continuous.digits():
        found = continuous._uniform(Scripted(*words))
    assert abs(Fraction(found) / Fraction(shifted, 1 << length) - 1) < Fraction(1, 10**38)


def test_uniform_draws_no_more_than_it_needs():
    script = Scripted(word(1), word(0), word(7))
    with continuous.digits():
        assert continuous._uniform(script) == Decimal(1 << 128) / (1 << 256)
    assert script.bytes(16) == word(7)


@pytest.mark.parametrize("word_of_coordinate, sign", [(1 << 127, 1), ((1 << 127) - 1, -1)])
def test_normal_known_values(word_of_coordinate, sign):
    """Coordinates are odd multiples of 2^-128: here 2^-128 or its negative, on the diagonal."""
    script = Scripted(word(1 << 127), word(0), *[word(word_of_coordinate)] * 2)
    with continuous.digits():
        found = continuous.normal(script)
    with mpmath.workdps(60):
        exact = sign * mpmath.sqrt(mpmath.log(2))  # the radius is sqrt(2 ln 2)
        assert abs(mpmath.mpf(str(found)) / exact - 1) < 1e-37


@pytest.mark.parametrize("signs, sign", [(0, 1), (1, 1), (2, -1), (3, -1)])
def test_laplace_keeps_digits_in_both_tails(signs, sign):
    for v in (
        3,
        1 << 60,
        1 << 173,
        1 << 175,
        1 << 200,
        1 << 213,
        1 << 215,
        1 << 254,
        (1 << 256) - 5,
    ):
        script = Scripted(bytes([signs]), word(v >> 128), word(v % (1 << 128)))
        script = script if v >> 128 else Scripted(bytes([signs]), word(0), word(v), word(7))
        with continuous.digits():
            found = continuous.laplace(script)
        with mpmath.workdps(120):
            exact_v = (
                mpmath.mpf(v) / mpmath.mpf(2) ** 256
                if v >> 128
                else (mpmath.mpf(v) * 2**128 + 7) / mpmath.mpf(2) ** 384
            )
            half = exact_v / 2
            exact = sign * (-mpmath.log(half) if signs & 1 else -mpmath.log1p(-half))
            assert abs(mpmath.mpf(str(found)) / exact - 1) < 1e-24


def test_generators_stuck_at_zero_end():
    with continuous.digits():
        assert continuous.laplace(Scripted()) > 0
        assert continuous._uniform(Scripted()) == Decimal(1) / (1 << 65536)


def test_factors_are_held_within_reach():
    with continuous.digits():
        assert len((Decimal(1) / 3).as_tuple().digits) == 40
        assert continuous.exp(Decimal("-1e30")) == continuous.exp(Decimal(-2000)) > 0
        assert continuous.exp(Decimal("1e30")) == continuous.exp(Decimal(2000))
        assert continuous.exp(Decimal(0)) == 1
        assert [continuous.nearest(Decimal(x)) for x in ("0.5", "1.5", "-2.4999")] == [0, 2, -2]


def test_the_context_of_the_caller_is_neither_used_nor_changed():
    options = dict(rho=0.5, bounds=(0, 10), rng=3)
    usual = dpq.csmooth([1.0, 2.0], 0.5, **options)
    with decimal.localcontext(decimal.Context(prec=3, traps=[decimal.Inexact])) as context:
        assert dpq.csmooth([1.0, 2.0], 0.5, **options) == usual
        assert decimal.getcontext() is context and not any(context.flags.values())


@pytest.mark.slow
def test_outputs_on_the_finest_lattice_are_not_those_of_float64_noise():
    """There, exp of a float64 number skips most points, and tells what it was added to."""
    rng, bits, center = default_rng(7), 52, round(0.3 * 2**52)
    options = dict(rho=2.0, bounds=(0, 1), resolution=2.0**-bits, rng=rng)
    outputs = [dpq.csmooth([0.3, 0.3, 0.7], 0.5, **options) for _ in range(2_000)]
    sizes = [abs(round(out * 2**bits) - center) for out in outputs if 0.0 < out < 1.0]
    far = [size for size in sizes if size > 2**50]
    assert len(far) > 100
    step = math.ulp(math.log(2**50))
    reached = sum(
        any(round(math.exp(math.log(size) + k * step)) == size for k in range(-3, 4))
        for size in far
    )
    assert reached < 0.3 * len(far)
