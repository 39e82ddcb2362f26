"""A release before its charge: what it will spend, and how it then reads and draws.

Every public function that releases makes a `Prepared` of its arguments, by the rules that are
public, and runs it: charge, read, draw. Whoever makes one release of several prepares them, charges
once, and draws each.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks, privacy
from dpq_fast._arguments import refuse_misfit
from dpq_fast.data.persons import WEIGHTS, Persons
from dpq_fast.data.records import Records
from dpq_fast.data.sample import Sample
from dpq_fast.data.table_persons import in_place_of
from dpq_fast.data.units import are_numbers, placed
from dpq_fast.noise.rng import default_rng
from dpq_fast.privacy.accounting import Calibrated, mechanism_of
from dpq_fast.privacy.aggregates import AUTO, public_clip

Answer = TypeVar("Answer")
Other = TypeVar("Other")
P = ParamSpec("P")


@dataclass(slots=True, eq=False)
class Prepared(Generic[Answer]):
    """A release of which all that is public was checked: nothing was charged, no record was read.

    Attributes
    ----------
    spent : Calibrated
        What it spends and guarantees.
    draw : callable
        Reads the records and draws the answer, given a generator. Whoever calls it has charged.
    name : str or None
        The mechanism, where it is not that of `spent`.
    """

    spent: Calibrated
    draw: Callable[[np.random.Generator], Answer]
    name: str | None = None

    @classmethod
    def of(
        cls, release: Callable[..., Answer], *arguments: Any, **options: Any
    ) -> Prepared[Answer]:
        """What a call of a public function would run.

        Of an `accountant` nothing is asked but how it composes; a `rng` is not used.
        """
        made: Prepared[Answer] = cast(Any, release).prepared(*arguments, **options)
        return made

    @property
    def mechanism(self) -> str:
        """What the charge is for."""
        return mechanism_of(self.spent) if self.name is None else self.name

    @property
    def guarantee(self) -> privacy.Guarantee:
        """What is charged."""
        return self.spent.guarantee

    def then(self, change: Callable[[Answer], Other]) -> Prepared[Other]:
        """The same release with post-processing."""
        return Prepared(self.spent, lambda rng: change(self.draw(rng)), self.name)

    def run(self, accountant: privacy.Accountant | None = None, rng: Any = None) -> Answer:
        """Charge, read and draw."""
        generator = default_rng(rng)
        privacy.charge(accountant, self.spent, self.name)
        return self.draw(generator)


def releases(
    *kinds: str,
    of_each: Callable[[Persons, NDArray[Any]], NDArray[np.float64]] | None = None,
    lengths: bool = False,
) -> Callable[[Callable[P, Prepared[Answer]]], Callable[P, Answer]]:
    """Make a public function, which releases, of one that prepares a release.

    The function declares `accountant` and `rng`, and leaves them alone: what it has prepared is run
    with them. A call that does not fit is refused by its name.

    Parameters
    ----------
    *kinds : str
        Of times, `INSTANTS` or `DURATIONS`, that the function takes and gives. Where the public
        arguments that say where a column lies are times, the column is read in steps of the
        resolution, the function sees these, and its answer becomes times again: before it a public
        map of each record, after it post-processing.
    of_each : callable, optional
        Makes a column of one record for each person of a column of several, for a release by
        ``contributions="weights"``. Default: the records share the weight of their person.
    lengths : bool, default False
        Whether answers are differences of records: of times, durations.
    """

    def release_of(given: Callable[P, Prepared[Answer]]) -> Callable[P, Answer]:
        body: Callable[P, Prepared[Answer]] = about_persons(of_each)(given)
        of_times = _of_times(body, kinds, lengths)

        def prepared(*arguments: Any, **options: Any) -> Prepared[Answer]:
            try:
                if not kinds or (arguments and are_numbers(arguments[0], options)):
                    return body(*arguments, **options)
                return of_times(*arguments, **options)
            except (TypeError, ValueError):
                refuse_misfit(call, arguments, options)
                raise

        @functools.wraps(body)
        def call(*arguments: P.args, **options: P.kwargs) -> Answer:
            made = prepared(*arguments, **options)
            return made.run(cast(Any, options.get("accountant")), options.get("rng"))

        shown: Any = call
        shown.prepared = prepared
        signature = inspect.signature(body)  # for whoever does not follow wrappers, as OpenDP
        answer = str(signature.return_annotation)
        if answer.startswith("Prepared["):
            answer = answer[len("Prepared[") : -1]
        shown.__signature__ = signature.replace(return_annotation=answer)
        return call

    return release_of


def about_persons(
    of_each: Callable[[Persons, NDArray[Any]], NDArray[np.float64]] | None = None,
) -> Callable[[Callable[..., Other]], Callable[..., Other]]:
    """Let what is private per person of so many records take ids of persons.

    The function declares `privacy_unit` and `contributions`, and leaves them alone: it gets
    `counts` that are made of the ids, and how many a person has at most (`dpq_fast.data.persons`).
    An expected number of records is one of persons.
    """

    def take(body: Callable[..., Other]) -> Callable[..., Other]:
        taken = inspect.signature(body).parameters
        # parts of a description are about persons each by itself
        if "frame" in taken or not {"privacy_unit", "max_contributions"} <= taken.keys():
            return body

        first = next(iter(taken))

        @functools.wraps(body)
        def call(*arguments: Any, **options: Any) -> Other:
            if not arguments:
                if options.get(first) is None:
                    return body(**options)  # what is missing is told there
                arguments = (options.pop(first),)
            x, *rest = arguments
            ids = options.pop("privacy_unit", None)
            x, given = in_place_of(
                x, options.get("counts"), ids, options.pop("contributions", WEIGHTS)
            )
            held = x.persons if isinstance(x, (Sample, Records)) else None
            persons = given if isinstance(given, Persons) else held
            if persons is None:
                return body(x, *rest, **options)
            most = options.pop("max_contributions", None)
            if ids is None and most == persons.most:  # of a call that has them already
                return body(x, *rest, **options, max_contributions=most)
            if most is not None:
                raise ValueError(
                    f"max_contributions must be left out with {persons.asked}, got {most!r}"
                )
            if ids is not None and isinstance(x, Sample):
                raise ValueError(
                    "privacy_unit belongs to Sample.of, and must be left out for a Sample"
                )
            if of_each is not None and persons.share:
                if persons is held:
                    raise ValueError(
                        f"x must be a column, beside {persons.asked}, for {body.__name__}, got a "
                        f"{type(x).__name__} of persons"
                    )
                nan_policy = options.get("nan_policy", "omit")
                return body(persons.beside(x).column(x, of_each, nan_policy), *rest, **options)
            if persons is not held:
                options["counts"] = persons.beside(x)
            if options.get("expected_n") is not None:
                expected = _checks.check_count("expected_n", options["expected_n"])
                options["expected_n"] = expected * persons.most
            return body(x, *rest, **options, max_contributions=persons.most)

        return call

    return take


def _of_times(
    body: Callable[..., Prepared[Answer]], kinds: tuple[str, ...], lengths: bool
) -> Callable[..., Prepared[Any]]:
    """The function of columns of numbers as one of columns of numbers and times."""
    # of a sum they are ends of a clip, and no answers of a lattice lie between them
    clips = inspect.signature(body).parameters.keys() >= {"bounds", "lower"}

    def of_times(x: Any, *arguments: Any, **options: Any) -> Prepared[Any]:
        if clips:
            options = _ends_of(options)
        x, unit, options = placed(x, **options)
        if unit is None:
            return body(x, *arguments, **options)
        if unit.kind not in kinds:
            raise TypeError(
                f"{body.__name__} must be of numbers or {' or '.join(kinds)}, got {unit.kind}"
            )
        column = x.in_steps() if isinstance(x, Sample) else x
        answers = unit.of_lengths if lengths else unit
        return body(column, *arguments, **options).then(answers.restored)

    return of_times


def _ends_of(options: dict[str, Any]) -> dict[str, Any]:
    """Options of a sum, with `bounds` as the ends of its clip."""
    given = dict(bounds=None, q=AUTO, lower=0.0, upper=None) | options
    ends = public_clip(*(given[name] for name in ("bounds", "q", "lower", "upper")))
    if given.pop("bounds") is None:
        return options
    return {name: given[name] for name in options if name != "bounds"} | dict(
        zip(("q", "lower", "upper"), ends, strict=True)
    )
