r"""Weighted sums of the counts of bins: what "factorized" of `cdf` measures, and reads off them.

Numbers of records up to the ends of bins are the product of a lower-triangular matrix of ones and
the counts. It is the square of another one, whose diagonals are constant, too: the coefficients of
:math:`(1-x)^{-1/2}`. Noise is added between the two [HUU24], [FHU23]. The sums of two records are
much alike: where one takes the place of the other, they change by less than the counts of a tree.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpq_fast import privacy


def weighted_sums(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The exact sums, integers: at most 2^62 for 2^53 records."""
    factor = privacy.cdf.prefix_factor(counts.size)
    sums: NDArray[np.int64] = np.convolve(counts, factor)[: counts.size]
    return sums


def numbers_below(sums: NDArray[Any]) -> NDArray[np.float64]:
    """Numbers of records up to the end of each bin, from weighted sums, or their errors.

    For exact sums exact but for rounding, and linear: unbiased for noisy ones. A row for each
    vector of sums.
    """
    bins = sums.shape[-1]
    size = scipy.fft.next_fast_len(2 * bins - 1, real=True)
    product = scipy.fft.rfft(sums, size) * scipy.fft.rfft(weights_of(bins), size)
    numbers: NDArray[np.float64] = scipy.fft.irfft(product, size)[..., :bins]
    return numbers


@lru_cache(maxsize=16)  # public facts only
def weights_of(bins: int) -> NDArray[np.float64]:
    """Weights of the sums in the number of records up to the end of the last bin, that one first.

    What gives ones in a convolution with the integers of the sums. They are positive, and the first
    one, the inverse of the first integer, is the largest.
    """
    factor = privacy.cdf.prefix_factor(bins).astype(np.float64)
    weights = np.zeros(bins)
    for k in range(bins):
        weights[k] = (1.0 - factor[1 : k + 1] @ weights[:k][::-1]) / factor[0]
    weights.flags.writeable = False
    return weights
