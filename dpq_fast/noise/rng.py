"""Where random bits come from.

The default is ChaCha20 keyed from the operating system: noise that can be predicted is no
privacy. Seeds and generators of the caller are for tests and experiments.
"""

from __future__ import annotations

import os
import secrets
import threading
from typing import Any

import numpy as np
from randomgen import ChaCha

# Keying a generator takes longer than a small release, so each thread keeps its own.
_secure = threading.local()


def _forget() -> None:
    """Drop every cached generator: a forked child must not repeat its parent's stream."""
    global _secure
    _secure = threading.local()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def default_rng(rng: Any = None) -> np.random.Generator:
    """The generator that a release draws from.

    Parameters
    ----------
    rng : None, int, SeedSequence, BitGenerator or Generator, optional
        ``None`` (the default, and the only choice for a real release unless the caller brings
        a cryptographic generator): ChaCha with 20 rounds, keyed with 256 bits by `secrets`,
        one per thread, replaced in a forked child. Anything else goes to
        `numpy.random.default_rng`.

    Returns
    -------
    numpy.random.Generator
    """
    if rng is not None:
        return np.random.default_rng(rng)
    generator = getattr(_secure, "generator", None)
    if generator is None:
        generator = np.random.Generator(ChaCha(key=secrets.randbits(256), rounds=20))
        _secure.generator = generator
    return generator


def seeds_of(rng: np.random.Generator, parts: int) -> bytes | None:
    """Keys for the generators of parts of a release, drawn from the caller's.

    None where it is this thread's own, made by the operating system's bits: then each thread has
    such a one, and keying takes longer than a small release.
    """
    return None if rng is default_rng() else rng.bytes(32 * parts)


def child(seeds: bytes | None, number: int) -> np.random.Generator:
    """The generator of one part, by `seeds_of`.

    Differs from ``Generator.spawn``, which does not look at the key of a ChaCha generator that
    the caller brings: its children come from the operating system, in 128 bits.
    """
    if seeds is None:
        return default_rng()
    key = int.from_bytes(seeds[32 * number : 32 * (number + 1)], "little")
    return np.random.Generator(ChaCha(key=key, rounds=20))
