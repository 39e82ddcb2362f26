"""Private selection of keys: the rule step by step, in integers of many digits.

[DVGM22] is Desfontaines, Voss, Gipson, Mandayam, "Differentially private partition selection".
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import privacy
from dpq_fast._checks import aligned, named_keys
from dpq_fast.reference._calls import default_rng
from dpq_fast.reference.columns import repeats
from dpq_fast.reference.keys import NO_KEY, check_column, columns_of, key_of, kind_of_pandas, shown

# All probabilities are integers of this unit.
BITS = 1280
UNIT = 1 << BITS
# Bits that a decision draws first.
WORD = 64


def exp(x: Fraction) -> int:
    """e^x for x >= 0, by its series, for an argument that is halved until it is small."""
    halvings = max(x.numerator.bit_length() - x.denominator.bit_length() + 4, 0)
    small = x / 2**halvings
    total, term, i = UNIT, UNIT, 0
    while term:
        i += 1
        term = term * small.numerator // (i * small.denominator)
        total += term
    for _ in range(halvings):
        total = total * total // UNIT
    return total


def of_one(delta: float, rate: Fraction, k: int) -> int:
    """What one record may have of a delta: its group of k has 1 + e^rate + ... times as much."""
    numerator, denominator = delta.as_integer_ratio()
    return numerator * UNIT * (exp(rate) - UNIT) // (denominator * (exp(k * rate) - UNIT))


def keep_probabilities(calibration: privacy.key_selection.Calibration, most: int) -> list[int]:
    """The probabilities of 0, ..., `most` records, in units: the recurrence itself."""
    alpha, beta, k = calibration.alpha, calibration.beta, calibration.k
    up, down = exp(alpha), UNIT * UNIT // exp(beta)
    delta, tau = of_one(calibration.delta, alpha, k), of_one(calibration.tau, beta, k)
    p = [0]
    for _ in range(most):
        kept = up * p[-1] // UNIT + delta
        dropped = down * (UNIT - p[-1] - tau) // UNIT
        p.append(min(kept, UNIT - dropped, UNIT))
    return p


def select_keys(
    by: Any,
    *,
    epsilon: float,
    delta: float,
    neighbors: str = "swap",
    max_contributions: int = 1,
    counts: Any = None,
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
) -> NDArray[Any]:
    """Release which keys there are, each with a probability that its number of records gives it.

    The law is that of `dpq_fast.select_keys`, whose docstring has every rule in full.

    Parameters
    ----------
    by : array_like, shape (n,), or several
        The private key of each record.
    epsilon, delta : float
        Budget of the whole call. Public.
    neighbors : {"swap", "add-remove"}
        What the budget protects.
    max_contributions : int
        Most records that one person has.
    counts : array_like of int, shape (n,), optional
        How many records each entry stands for.
    accountant : Accountant, optional
        Charged with the release.
    rng : None, int, SeedSequence, BitGenerator or Generator, optional
        See `default_rng`.

    Returns
    -------
    ndarray
        The kept keys, ascending.
    """
    calibration = privacy.key_selection.calibrate(
        epsilon=epsilon, delta=delta, neighbors=neighbors, max_contributions=max_contributions
    )
    first, *rest = named_keys(split(by))
    *others, counts = aligned(first[1], [*rest, ("counts", counts)], first[0])
    columns = [first[1], *others]
    rng = default_rng(rng)
    privacy.charge(accountant, calibration, "select_keys")
    kept = kept_keys(columns, counts, calibration, rng)
    return as_array([key[0] for key in kept] if len(columns) == 1 else list(kept))


def kept_keys(
    columns: list[Any],
    counts: Any,
    calibration: privacy.key_selection.Calibration,
    rng: np.random.Generator,
) -> list[tuple[Any, ...]]:
    """The keys that are kept, column by column, as they are given back."""
    kinds = [check_column(column) for column in columns]
    keys = [[key_of(item) for item in column] for column in columns]
    if len({len(column) for column in keys}) > 1:
        raise ValueError("by must have columns of one length")
    rows = list(zip(*keys, strict=True))
    weights = [1] * len(rows) if counts is None else repeats(counts, len(rows), "by").tolist()
    records: Counter[tuple[Any, ...]] = Counter()
    for key, number in zip(rows, weights, strict=True):
        if all(map(is_key, key)):
            records[key] += number
    present = sorted(+records, key=lambda key: [rank(part) for part in key])
    p = keep_probabilities(calibration, max(records.values(), default=0))
    words = rng.integers(0, 2**WORD, size=len(present), dtype=np.uint64).tolist()
    kept = []
    for key, word in zip(present, words, strict=True):
        first, rest = divmod(p[records[key]], UNIT >> WORD)
        if word < first or (word == first and below(rest, rng)):
            kept.append(tuple(map(shown, key, kinds)))
    return kept


def split(by: Any) -> list[Any]:
    """The columns of keys: of a frame, or of a list or a tuple of nothing but columns; checked."""
    columns = columns_of(by)
    if columns is None:
        several = isinstance(by, (list, tuple)) and len(by) > 0
        several = several and all(
            hasattr(c, "__iter__") and not isinstance(c, (str, bytes)) for c in by
        )
        columns = list(by) if several else [by]
    for column in columns:
        check_column(column)
    return columns


def is_key(part: Any) -> bool:
    """Whether a key as it is compared is one: integers are of 64 bits."""
    return part not in (None, NO_KEY) and (not isinstance(part, int) or -(2**63) <= part < 2**64)


def rank(part: Any) -> tuple[int, Any]:
    """Integers before strings, those before dates and times of day, then periods and intervals."""
    own = kind_of_pandas(part)
    if own == "periods":
        return 5, (part.freqstr, part.ordinal)
    if own == "intervals":
        return 6, (end(part.left), end(part.right), part.closed)
    if isinstance(part, tuple):
        return 4 if part[1] is None else 2 + part[1], part
    return int(isinstance(part, str)), part


def end(value: Any) -> tuple[int, Any]:
    """An end of an interval: numbers before lengths, and those before times."""
    if hasattr(value, "asm8"):
        zoned = getattr(value, "tzinfo", None) is not None
        return 1 + hasattr(value, "year") + zoned, value
    return 0, value


def below(rest: int, rng: np.random.Generator) -> bool:
    """Whether the bits after a word are below those of a probability."""
    return int.from_bytes(rng.bytes((BITS - WORD) // 8), "little") < rest


def as_array(keys: list[Any]) -> NDArray[Any]:
    """int64 or uint64 if all are integers that fit, else objects."""
    if keys and all(isinstance(key, bool) for key in keys):
        return np.array(keys)
    for dtype in (np.int64, np.uint64):
        limits = np.iinfo(dtype)
        if keys and all(isinstance(key, int) and limits.min <= key <= limits.max for key in keys):
            return np.array(keys, dtype=dtype)
    array = np.empty(len(keys), dtype=object)
    array[:] = keys
    return array
