"""The order of a release, and where its random bits come from."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import numpy as np
from randomgen import ChaCha

from dpq_fast import privacy
from dpq_fast.privacy.accounting import Calibrated


def default_rng(rng: Any = None) -> np.random.Generator:
    """The generator that a release draws from.

    Parameters
    ----------
    rng : None, int, SeedSequence, BitGenerator or Generator, optional
        None: ChaCha with 20 rounds, keyed by the operating system. Anything else goes to
        `numpy.random.default_rng`.

    Returns
    -------
    numpy.random.Generator
    """
    if rng is not None:
        return np.random.default_rng(rng)
    return np.random.Generator(ChaCha(key=secrets.randbits(256), rounds=20))


def release(
    law_of: Callable[[np.random.Generator], Any],
    calibration: Calibrated,
    accountant: privacy.Accountant | None,
    rng: Any,
) -> Any:
    """One output: all that is public was checked, the call is charged, and the records are read."""
    generator = default_rng(rng)
    privacy.charge(accountant, calibration)
    return law_of(generator).sample(generator)
