"""Exact discrete noise, continuous noise of many digits, and where random bits come from.

Who lives here takes scales and a generator, and knows neither records nor budgets: draws, their
log-probabilities and tails, noises of counts and of AboveThreshold as objects, and the default
generator, which is cryptographic.
"""

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
