"""Laws as tables: the probability of every output, by mechanism."""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, combinations, combinations_with_replacement, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpq_fast import _checks, privacy
from dpq_fast._prepared import Prepared
from dpq_fast.audit.neighbors import DataSet
from dpq_fast.data.key_counts import count_keys
from dpq_fast.data.lattice import Lattice
from dpq_fast.data.records import Records
from dpq_fast.data.sample import Sample
from dpq_fast.laws.depth import DepthLaw
from dpq_fast.laws.joint.path import PathLaw
from dpq_fast.laws.key_selection import KeysLaw
from dpq_fast.laws.unbounded import UnboundedQuantileLaw
from dpq_fast.mechanisms import aggregates
from dpq_fast.mechanisms.above_threshold import above_threshold_law
from dpq_fast.mechanisms.clipping import Clip, Clipping, Mean, NoisyTerm
from dpq_fast.mechanisms.ind_exp import IndExpLaw
from dpq_fast.mechanisms.joint_exp import JointExpLaw
from dpq_fast.mechanisms.quantile_by import quantile_by
from dpq_fast.mechanisms.spread import WIDEST, Moments, Spread, twice_of
from dpq_fast.mechanisms.two_stage import two_stage_law
from dpq_fast.noise.discrete import discrete_laplace_log_prob
from dpq_fast.privacy.levels import Levels
from dpq_fast.privacy.quantile_by import IND_EXP
from dpq_fast.released.groups import GroupAnswers

# Tables of more outputs are refused.
MAX_OUTPUTS = 2**18
# Where dithers of two stages come from: they are the same for neighbors.
DITHER = 0
Table = Mapping[Any, float]


class Mixture(dict[Any, float]):
    """The law on records that are dithered, and what it is a mixture of.

    Attributes
    ----------
    points : Counter
        How many records are at each lattice point.
    given : dict
        The laws given the dithers, for each data set of dithered records.
    """

    def __init__(self, law: Table, points: Counter[int], given: Mapping[DataSet, Table]) -> None:
        super().__init__(law)
        self.points = points
        self.given = given


def tables_of(
    law_of: Callable[..., Any],
    columns: list[Any],
    parameters: Mapping[str, Any],
    outputs: list[Any] | None,
) -> list[Table]:
    """Laws of the caller's: mappings, or objects with ``log_prob``."""
    tables = []
    for column in columns:
        law = law_of(column, **parameters)
        if isinstance(law, Mapping):
            tables.append(restricted_to(law, outputs))
        elif outputs is None:
            raise ValueError("outputs must be given for laws that are no mappings, got None")
        else:
            tables.append({hashable(output): law.log_prob(output) for output in outputs})
    return tables


def restricted_to(table: Table, outputs: list[Any] | None) -> Table:
    """The entries of a table for some outputs, -inf where it has none; all if outputs are None."""
    if outputs is None:
        return table
    return {label: table.get(label, -math.inf) for label in map(hashable, outputs)}


def hashable(output: Any) -> Any:
    """An output that can be looked up: arrays, and what holds one, as flat tuples."""
    if isinstance(output, GroupAnswers):
        output = output.values
    if isinstance(output, (np.ndarray, np.generic, list, tuple)):
        flat = np.ravel(output).tolist()
        return flat[0] if np.ndim(output) == 0 else tuple(flat)
    return output


def _tuples(points: Sequence[Any], m: int) -> Iterator[tuple[Any, ...]]:
    """All ascending m-tuples, if they are not too many."""
    if math.comb(len(points) + m - 1, m) > MAX_OUTPUTS:
        raise ValueError(
            f"outputs must be given where there are more than {MAX_OUTPUTS}; or make them fewer, "
            "by a coarser resolution or beta"
        )
    return combinations_with_replacement(points, m)


def _lattice_of(parameters: Mapping[str, Any]) -> Lattice | None:
    names = ("bounds", "resolution", "dither", "prior")
    return Lattice.between(*(parameters.get(name) for name in names))[1]


def _given(lattice: Lattice | None) -> Lattice:
    """A lattice, whose points are the outputs."""
    if lattice is None:
        raise ValueError("outputs must be given with resolution=0, got None")
    return lattice


def on_lattice(
    law_of: Callable[..., Any],
    columns: list[Any],
    parameters: dict[str, Any],
    outputs: list[Any] | None,
    dithers: bool = True,
) -> list[Table]:
    """Laws of mechanisms with bounds, and a dither or not; without `dithers` they have none."""
    if parameters.get("base") == "unbounded":
        return by_candidates(law_of, columns, parameters, outputs)
    levels = Levels(parameters["q"])
    lattice = _lattice_of(parameters)
    if dithers and lattice is not None and lattice.bits:
        if lattice.masses is not None:
            raise ValueError("dither must be False with a prior, whose masses are too many to sum")
        given: dict[DataSet, Table] = {}
        return [
            _without_dither(law_of, column, lattice, levels, parameters, outputs, given)
            for column in columns
        ]
    if outputs is None:
        known = _given(lattice)
        outputs = [
            levels.restore(known.decode(np.array(points)))
            for points in _tuples(range(known.points), levels.m)
        ]
    return tables_of(law_of, columns, parameters, outputs)


def _without_dither(
    law_of: Callable[..., Any],
    column: NDArray[Any],
    lattice: Lattice,
    levels: Levels,
    parameters: dict[str, Any],
    outputs: list[Any] | None,
    given: dict[DataSet, Table],
) -> Mixture:
    """The law summed over both dithers of one bit: on a lattice of half the spacing, floored."""
    low, high = lattice.decode(np.array([0, lattice.points - 1])).tolist()
    step = lattice.step / 2.0
    bounds = (low, high + step)
    public = dict(bounds=bounds, resolution=step, dither=False)
    fine = _given(Lattice.of(bounds, step, False))
    kept = Counter(lattice.encode(column[~np.isnan(column)]).tolist())
    tuples = [np.array(points) for points in _tuples(range(2 * lattice.points), levels.m)]
    released = [levels.restore(fine.decode(points)) for points in tuples]
    labels = [hashable(levels.restore(lattice.decode(points >> 1))) for points in tuples]

    def given_dither(dithered: DataSet) -> Table:
        law = law_of(fine.decode(np.array(dithered, dtype=np.int64)), **{**parameters, **public})
        terms: dict[Any, list[float]] = {}
        for label, output in zip(labels, released, strict=True):
            terms.setdefault(label, []).append(law.log_prob(output))
        return {label: float(np.logaddexp.reduce(logs)) for label, logs in terms.items()}

    mixed: dict[Any, list[float]] = {}
    for dithered in (_dithered(kept, shift) for shift in (0, 1)):
        if dithered not in given:
            given[dithered] = given_dither(dithered)
        for label, log_prob in given[dithered].items():
            mixed.setdefault(label, []).append(log_prob - math.log(2.0))
    whole = {label: float(np.logaddexp.reduce(logs)) for label, logs in mixed.items()}
    return Mixture(restricted_to(whole, outputs), kept, given)


def _dithered(points: Counter[int], shift: int) -> DataSet:
    """Records at some points with one of the two dithers of one bit, as a data set."""
    halves: Counter[int] = Counter()
    for point, times in points.items():
        halves[2 * point + shift] += (times + 1) // 2
        halves[2 * point + 1 - shift] += times // 2
    return tuple(sorted(halves.elements()))


def coupled(one: Mixture, other: Mixture) -> Iterator[tuple[DataSet, DataSet]]:
    """Two data sets with each dither, the same for both."""
    for shift in (0, 1):
        yield _dithered(one.points, shift), _dithered(other.points, shift)


def in_stages(
    law_of: Callable[..., Any],
    columns: list[Any],
    parameters: dict[str, Any],
    outputs: list[Any] | None,
) -> list[Table]:
    """Laws of the pilot of `two_stage` and of what follows together, given the dithers."""
    if outputs is not None:
        raise ValueError("outputs must be left out for two_stage, which are those of both stages")
    if parameters.get("expected_n") is None:
        raise ValueError("expected_n must be given for two_stage, whose stages go by it, got None")
    levels = Levels(parameters["q"])
    lattice = _given(_lattice_of(parameters))
    tables: list[Table] = []
    for column in columns:
        law = law_of(column, dither_rng=DITHER, **parameters)
        if law.spent.design.main == "agg_tree":
            raise ValueError("q, epsilon and expected_n must make a second stage that is no tree")
        table: dict[Any, float] = {}
        for points in _tuples(range(lattice.points), law.spent.design.levels.m):
            answers = lattice.decode(np.array(points))
            log_prob, after = law.pilot.log_prob(answers), law.given(answers)
            for others in _tuples(range(lattice.points), levels.m):
                output = levels.restore(lattice.decode(np.array(others)))
                table[hashable(answers), hashable(output)] = log_prob + after.log_prob(output)
        tables.append(table)
    return tables


def by_candidates(
    law_of: Callable[..., Any],
    columns: list[Any],
    parameters: dict[str, Any],
    outputs: list[Any] | None,
) -> list[Table]:
    """Laws of searches."""
    if outputs is None:
        if parameters.get("uniform"):
            raise ValueError("outputs must be given with uniform=True, got None")
        levels = Levels(parameters["q"])
        candidates = law_of(columns[0], **parameters).candidates()
        outputs = [levels.restore(np.array(one)) for one in _tuples(candidates, levels.m)]
    return tables_of(law_of, columns, parameters, outputs)


def by_group(
    columns: list[Any], parameters: dict[str, Any], outputs: list[Any] | None
) -> list[Table]:
    """Laws of `quantile_by`: one of its mechanism for each group, independent."""
    groups = list(parameters["groups"])
    spent: Any = Prepared.of(quantile_by, [], [], **parameters).spent
    form: dict[str, Any] = {
        name: parameters.get(name) for name in ("bounds", "resolution", "dither", "prior")
    }
    law_of: Callable[[NDArray[Any]], Table]
    if spent.method == "two_stage":
        if outputs is not None:
            raise ValueError(
                "outputs must be left out for two_stage, which are those of both stages"
            )
        part = spent.part
        own = form | dict(q=parameters["q"], neighbors=part.neighbors, **part.given())
        own["expected_n"] = parameters.get("expected_n")

        def law_of(values: NDArray[Any]) -> Table:
            (table,) = in_stages(two_stage_law, [values], own, None)
            return {(*told, *np.ravel(o).tolist()): p for (told, o), p in table.items()}
    else:
        law_of = _at_rate(spent, parameters["q"], form)
    known: dict[tuple[Any, ...], Table] = {}
    tables = []
    for values, keys in columns:
        log_prob = np.zeros(1)
        each: list[Any] = []
        for group in groups:
            inside = values[np.array([key == group for key in keys], dtype=bool)]
            one = tuple(inside.tolist())
            if one not in known:
                known[one] = law_of(inside)
            each.append(known[one])
            log_prob = np.add.outer(log_prob, list(known[one].values())).ravel()
        labels = [hashable(o) for o in product(*each)]
        tables.append(restricted_to(dict(zip(labels, log_prob.tolist(), strict=True)), outputs))
    return tables


def _at_rate(spent: Any, q: Any, form: dict[str, Any]) -> Callable[[NDArray[Any]], Table]:
    """The law of JointExp, or of permute-and-flip, on the records of a group."""
    if not isinstance(spent, privacy.quantile_by.Calibration):
        raise ValueError(
            "method must be 'ind_exp' for one level, 'joint_exp' or 'two_stage', to have a law"
        )
    levels, by_depth = Levels(q), spent.method == IND_EXP
    if by_depth:
        form = form | {"dither": False}
    lattice = _lattice_of(form)
    if lattice is not None and lattice.bits:
        raise ValueError("dither must be False for quantile_by, whose groups are too many to sum")
    lattice = _given(lattice)
    singles = [
        levels.restore(lattice.decode(np.array(points)))
        for points in _tuples(range(lattice.points), levels.m)
    ]

    def law_of(values: NDArray[Any]) -> Table:
        sample = Sample.of(values, **form)
        order, q = sample.order(), levels.values
        law: IndExpLaw | JointExpLaw = JointExpLaw(sample, levels, PathLaw(order, q, spent.rate))
        if by_depth:
            by_depths = [DepthLaw(order, float(q[0]), spent.rate, flip=True)]
            law = IndExpLaw(sample, levels, by_depths, sample.lattice)
        return {hashable(output): law.log_prob(output) for output in singles}

    return law_of


def halts(
    columns: list[Any], parameters: dict[str, Any], outputs: list[Any] | None, single: bool
) -> list[Table]:
    """Laws of `sparse_vector`: AboveThreshold on what follows each halt; or of a single one."""
    public = {
        name: value
        for name, value in parameters.items()
        if name in ("threshold", "epsilon1", "epsilon2", "sensitivity", "noise")
    }
    most = 1 if single else _checks.check_count("halts", parameters["halts"])

    def halts(
        values: NDArray[Any], start: int, left: int
    ) -> Iterator[tuple[tuple[int, ...], float]]:
        if left == 0:
            yield (), 0.0
            return
        law = above_threshold_law(values[start:], **public)
        yield (), law.log_prob(None)
        for k in range(start, values.size):
            for rest, log_rest in halts(values, k + 1, left - 1):
                yield (k, *rest), law.log_prob(k - start) + log_rest

    tables = []
    for column in columns:
        values = np.asarray(parameters["queries"](column), dtype=np.float64)
        table: dict[Any, float] = dict(halts(values, 0, most))
        if single:
            table = {label[0] if label else None: value for label, value in table.items()}
        tables.append(restricted_to(table, outputs))
    return tables


def keys_of(column: NDArray[Any]) -> list[int | None]:
    """Records as keys; what is no whole number is none."""
    return [int(record) if float(record).is_integer() else None for record in column.tolist()]


def by_key(
    columns: list[Any], parameters: dict[str, Any], outputs: list[Any] | None
) -> list[Table]:
    """Laws of `select_keys` on columns of keys: the probability of each set that may be kept."""
    public = ("epsilon", "delta", "neighbors", "max_contributions")
    calibration = privacy.key_selection.calibrate(
        **{name: parameters[name] for name in public if name in parameters}
    )
    laws = [KeysLaw(*count_keys(keys_of(column)), calibration) for column in columns]
    keys = sorted({key for law in laws for key in law.keys})
    if 2 ** len(keys) > MAX_OUTPUTS:
        raise ValueError(f"domain must make at most {MAX_OUTPUTS} outputs, got 2^{len(keys)}")
    kept = list(chain.from_iterable(combinations(keys, size) for size in range(len(keys) + 1)))
    return [restricted_to({some: law.log_prob(some) for some in kept}, outputs) for law in laws]


def integers(
    columns: list[Any], parameters: dict[str, Any], outputs: list[Any] | None, name: str
) -> list[Table]:
    """Laws of integers with discrete Laplace noise, and of the clip that they depend on."""
    if outputs is not None:
        raise ValueError(f"outputs must be left out for {name!r}")
    if parameters.get("rho") is not None:
        raise ValueError(f"rho must be left out for an exact audit of {name!r}")
    form = {"nan_policy": parameters.get("nan_policy", "omit")}
    rows = [Records.of(column, **form) for column in columns]
    laws: list[dict[tuple[Any, ...], tuple[float, list[NoisyTerm]]]]
    if name == "count":
        scale = privacy.aggregates.calibrate_count(
            epsilon=parameters["epsilon"],
            max_contributions=parameters.get("max_contributions", 1),
        ).scale
        laws = [{(): (0.0, aggregates.count_terms(records, scale))} for records in rows]
    else:
        own = {key: value for key, value in parameters.items() if key != "ddof"}
        clipping = _clipping(own, WIDEST if name in ("var", "std") else None)
        laws = [
            {
                (*ends, *pilot): (log_prob + log_p, terms)
                for ends, log_prob in _clips(clipping, records)
                for pilot, log_p, terms in _terms(
                    name, clipping, records, clipping.clip(ends), own.get("expected_n")
                )
            }
            for records in rows
        ]
    # of the clip, and of the pilot of a mean
    spans: dict[tuple[Any, ...], list[tuple[int, int]]] = {}
    for ends in {ends for law in laws for ends in law}:
        # columns of fewer rows may have no pilot
        centers = [[value for value, _ in law[ends][1]] for law in laws if ends in law]
        spans[ends] = [(min(one), max(one)) for one in zip(*centers, strict=True)]
    size = sum(math.prod(high - low + 2 for low, high in span) for span in spans.values())
    if size > MAX_OUTPUTS:
        raise ValueError(f"resolution must be coarser: at most {MAX_OUTPUTS} outputs, got {size}")
    tables: list[Table] = []
    for law in laws:
        table: dict[Any, float] = {}
        for ends, (log_prob, parts) in law.items():
            noisy = [
                _laplace_table(value, scale, *span)
                for (value, scale), span in zip(parts, spans[ends], strict=True)
            ]
            for chosen in product(*(one.items() for one in noisy)):
                label = (*ends, *(label for label, _ in chosen))
                table[label] = log_prob + math.fsum(log_p for _, log_p in chosen)
        tables.append(table)
    return tables


def _laplace_table(center: int, scale: Any, low: int, high: int) -> dict[str | int, float]:
    """Discrete Laplace noise on one of the integers low, ..., high; what is beyond them as one."""
    if not scale:
        return {center: 0.0}
    rate = float(1 / scale)

    def log_tail(distance: int) -> float:
        return -distance * rate - math.log1p(math.exp(-rate))

    inside = range(low, high + 1)
    table: dict[str | int, float] = dict(
        zip(
            inside,
            discrete_laplace_log_prob(np.array(inside) - center, scale).tolist(),
            strict=True,
        )
    )
    return {
        **table,
        f"below {low}": log_tail(center - low + 1),
        f"above {high}": log_tail(high - center + 1),
    }


def _terms(
    name: str, clipping: Clipping, records: Records, clip: Clip, expected_n: int | None
) -> Iterator[tuple[tuple[int | str, ...], float, list[NoisyTerm]]]:
    """What is released before the last integers, its log-probability, and these integers."""
    if name == "sum":
        yield (), 0.0, clipping.sum_terms(records, clip)
        return
    if name == "mean":
        total, number, rows = records.sums(clip.scale, clip.first, clip.last)
        mean = clipping.mean(clip, not records.n_is_public, rows)
        yield from _mean_terms(mean, total, number, rows)
        return
    total, number, rows, squares = records.moments(clip.scale, clip.first, clip.last)
    moments = Moments(total, number, squares)
    spread = Spread.of(clipping, clip, not records.n_is_public, rows, expected_n)
    center = spread.center()
    if center is None:
        yield from _mean_terms(*spread.squares(moments, None), number, rows)
        return
    if spread.rows is None:
        raise ValueError("neighbors must be 'swap' for an exact audit of a center")
    for labels, log_p, pair in _outcomes(center, total, number, spread.rows):
        mean, about = spread.squares(moments, twice_of(center, *pair))
        for others, log_q, terms in _mean_terms(mean, about, number, rows):
            yield (*labels, *others), log_p + log_q, terms


def _mean_terms(
    mean: Mean, total: int, number: int, rows: int | None
) -> Iterator[tuple[tuple[int | str, ...], float, list[NoisyTerm]]]:
    """As `_terms`, of a mean: what its pilot may release."""
    if not mean.is_pilot:
        yield (), 0.0, mean.terms(total, number)
        return
    assert rows is not None  # else there is no pilot
    for labels, log_p, pair in _outcomes(mean, total, number, rows):
        yield labels, log_p, mean.after(*pair).terms(total, number)


def _outcomes(
    mean: Mean, total: int, number: int, rows: int
) -> Iterator[tuple[tuple[int | str, int | str], float, tuple[int, int]]]:
    """The two integers of a mean under "swap" as labels and numbers, with their log-probability.

    Beyond the numbers that records can add up to, all integers mean the same.
    """
    most = mean.clip.width * rows
    spans = (-most, most), (0, rows)
    terms = mean.terms(total, number)
    tables = [_laplace_table(*term, *span) for term, span in zip(terms, spans, strict=True)]
    for chosen in product(
        *(
            zip(_integers(table, *span), _ascending(table), strict=True)
            for table, span in zip(tables, spans, strict=True)
        )
    ):
        (first, (one, log_p)), (second, (other, log_q)) = chosen
        yield (one, other), log_p + log_q, (first, second)


def _integers(table: dict[str | int, float], low: int, high: int) -> list[Any]:
    """The integers of a table of `_laplace_table`, in the order of `_ascending`."""
    return list(table) if len(table) == 1 else list(range(low - 1, high + 2))


def _ascending(table: dict[str | int, float]) -> list[tuple[str | int, float]]:
    """The outputs of `_laplace_table`, from what is below to what is above."""
    if len(table) == 1:  # without noise
        return list(table.items())
    *inside, below, above = table.items()
    return [below, *inside, above]


def _clipping(parameters: dict[str, Any], widest: int | None) -> Clipping:
    """What a sum and a mean make of their arguments."""
    bound = inspect.signature(aggregates.sum).bind(None, **parameters)
    bound.apply_defaults()
    public = inspect.signature(privacy.aggregates.calibrate).parameters.keys() - {"bounds"}
    options = bound.arguments["method_options"]
    given = {name: value for name, value in bound.arguments.items() if name in public}
    return Clipping(options, widest=widest, **given)


def _clips(clipping: Clipping, records: Records) -> Iterator[tuple[tuple[float, ...], float]]:
    """The ends that may be released for a clip, with their log-probabilities."""
    if clipping.method not in (None, "unbounded"):
        raise ValueError(f"method must be 'unbounded' for an exact audit, got {clipping.method!r}")
    search = clipping.search
    if search is None:
        yield (), 0.0
        return
    find = search.sides if clipping.two_sided else search.count
    sides = []
    for counted in find(records):
        law = UnboundedQuantileLaw(search, [counted])
        sides.append([(end, law.log_prob(end)) for end in law.candidates()])
    for chosen in product(*sides):
        log_prob = math.fsum(log_p for _, log_p in chosen)
        if log_prob > -math.inf:
            yield tuple(end for end, _ in chosen), log_prob
