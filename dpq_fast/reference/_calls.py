"""The order of a release, and where its random bits come from."""

from __future__ import annotations

import functools
import inspect
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from randomgen import ChaCha

from dpq_fast import privacy
from dpq_fast._checks import check_size
from dpq_fast.privacy.accounting import Calibrated
from dpq_fast.privacy.levels import Levels

Function = TypeVar("Function", bound=Callable[..., Any])


def with_options(taker: Callable[..., Any]) -> Callable[[Function], Function]:
    """Show, in place of ``**options``, what the function takes that gets them, by keyword.

    A call that does not fit is refused by the name of the function that is called.
    """
    taken = inspect.signature(taker).parameters

    def declare(function: Function) -> Function:
        *own, _ = inspect.signature(function).parameters.values()
        known = {p.name for p in own}
        own += [
            p if p.kind is p.VAR_KEYWORD else p.replace(kind=p.KEYWORD_ONLY)
            for p in taken.values()
            if p.kind is not p.POSITIONAL_ONLY and p.name not in known
        ]
        signature = inspect.signature(function).replace(parameters=own)

        @functools.wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            try:
                signature.bind(*arguments, **options)
            except TypeError as error:
                raise TypeError(f"{function.__name__}() {error}") from None
            return function(*arguments, **options)

        call.__signature__ = signature  # type: ignore[attr-defined]
        return cast(Function, call)

    return declare


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


class Law(ABC):
    """The exact law of the quantiles of some levels, ``self.levels``."""

    levels: Levels

    @abstractmethod
    def _draw(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """One ascending output, shape (m,)."""

    def sample(self, rng: Any = None, size: int | None = None) -> Any:
        """Draw outputs, independently given this law.

        Parameters
        ----------
        rng : None, int, SeedSequence, BitGenerator or Generator, optional
            See `default_rng`.
        size : int, optional
            Number of outputs.

        Returns
        -------
        float or ndarray of float64
            One output of q's shape, or with `size` an array of shape (size,) + q's.
        """
        rng = default_rng(rng)
        if size is None:
            return self.levels.restore(self._draw(rng))
        draws = [self._draw(rng) for _ in range(check_size(size))]
        return self.levels.restore(np.array(draws).reshape(size, self.levels.m))
