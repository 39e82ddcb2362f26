"""Which keys are kept: an independent decision for each, by its number of records."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast.data.reprs import shown
from dpq_fast.noise.rng import default_rng
from dpq_fast.privacy.key_selection import Calibration

# Of a word, which is what a decision draws first.
WORD = 64
# A decision that so many bits do not make is a no: a generator stuck at one number must not hang.
MAX_BITS = 2048


class KeysLaw:
    """The law of the kept keys.

    Parameters
    ----------
    keys : list
        Distinct, in the order of the output.
    counts : ndarray of int64, shape (len(keys),)
        How many records each has, positive.
    calibration : Calibration
        Of `privacy.key_selection`.
    """

    def __init__(
        self, keys: list[Any], counts: NDArray[np.int64], calibration: Calibration
    ) -> None:
        self.keys = keys
        self._counts, self._calibration = counts, calibration

    def __repr__(self) -> str:
        guarantee = self._calibration.guarantee
        return shown(self, epsilon=guarantee.epsilon, delta=guarantee.delta)

    def log_prob(self, kept: Iterable[Any]) -> float:
        """Natural logarithm of the probability that these keys are kept, and no others."""
        chosen = set(kept)
        if not chosen <= set(self.keys):
            return -math.inf
        total = 0.0
        for key, number in zip(self.keys, self._counts.tolist(), strict=True):
            probability = self._calibration.probability(number)
            if key not in chosen:
                probability = 1.0 - probability
            total += math.log(probability) if probability > 0.0 else -math.inf
        return total

    def sample(self, rng: Any = None) -> list[Any]:
        """Draw the kept keys, exactly: each by a uniform number, drawn as far as it takes."""
        rng = default_rng(rng)
        words = rng.integers(0, 2**WORD, size=len(self.keys), dtype=np.uint64)
        numbers, places = np.unique(self._counts, return_inverse=True)
        bounds = [self._calibration.bounds(number, WORD) for number in numbers.tolist()]
        # the last words that are below them; -1 is no word
        sure, unsure = (
            (
                np.array([max(bound - 1, 0) for bound in ends], dtype=np.uint64)[places],
                np.array([bound > 0 for bound in ends], dtype=bool)[places],
            )
            for ends in (list(zip(*bounds, strict=True)) or [(), ()])
        )
        kept = sure[1] & (words <= sure[0])
        for at in np.flatnonzero(~kept & unsure[1] & (words <= unsure[0])).tolist():
            kept[at] = self._drawn(int(words[at]), int(self._counts[at]), rng)
        return [self.keys[at] for at in np.flatnonzero(kept).tolist()]

    def _drawn(self, word: int, number: int, rng: np.random.Generator) -> bool:
        """Whether a key is kept whose first bits do not say it."""
        bits = WORD
        while bits < MAX_BITS:
            word = word << bits | int.from_bytes(rng.bytes(bits // 8), "little")
            bits *= 2
            low, high = self._calibration.bounds(number, bits)
            if word < low:
                return True
            if word >= high:
                return False
        return False
