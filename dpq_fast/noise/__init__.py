"""Exact discrete noise, continuous noise of many digits, and where random bits come from."""

from dpq_fast.noise.discrete import (
    bernoulli_exp,
    discrete_gaussian,
    discrete_gaussian_log_prob,
    discrete_laplace,
    discrete_laplace_log_prob,
)

__all__ = [
    "bernoulli_exp",
    "discrete_gaussian",
    "discrete_gaussian_log_prob",
    "discrete_laplace",
    "discrete_laplace_log_prob",
]
