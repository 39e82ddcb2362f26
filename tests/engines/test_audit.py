"""Releases from tables on neighboring rows: exact losses, and mutants that are caught."""

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import dpq_fast as dpq
from dpq_fast import audit, privacy
from dpq_fast.data.queries import Cells
from dpq_fast.engines.batches import Batches
from dpq_fast.engines.duckdb import DuckDB

EPSILON, LEVEL = 1.0, 0.3
DOMAIN = [0.0, 1.0, 2.0]
ROWS = [[1.0], [0.0, 2.0], [0.0, 1.0, 1.0], [2.0, 2.0, 2.0, 0.0]]


def in_batches(column):
    return Batches(["x"], lambda names: [{"x": column}], 1, False)


def in_duckdb(column):
    return DuckDB(duckdb.connect().from_arrow(pa.table({"x": column})), None)


class Twice(Batches):
    """Counts the largest record of a column twice."""

    def __init__(self, column):
        again = np.append(column, column[-1:])
        super().__init__(["x"], lambda names: [{"x": again}], 1, False)


class Shifted(Batches):
    """Gives all records of a cell the least value of the cell, which follows from the records."""

    def __init__(self, column):
        def read(names):
            return [{"x": np.repeat(column.min(initial=2.0), column.size)}]

        super().__init__(["x"], read, 1, False)


class Late(Batches):
    """Counts of the first cell come with the number of all records above, once they are two."""

    def answer(self, tasks):
        states = super().answer(tasks)
        for state in states:
            if isinstance(state, Cells) and state.count.sum() > 1:
                first = np.flatnonzero(state.count)[0]
                state.count[first] += state.count[-1] + 3 * state.count[:-1].sum()
        return states


def found(engine_of, rows, neighbors):
    """The exact loss of a quantile of some rows."""
    options = dict(epsilon=EPSILON, neighbors=neighbors)
    promise = privacy.guarantee("joint_exp", q=[LEVEL], **options)

    def answers(column):
        column = np.array(column, dtype=np.float64)
        table = dpq.Table(engine_of(np.sort(column)))
        law = dpq.joint_exp_law(
            table["x"], [LEVEL], bounds=(0, 2), resolution=1, dither=False, **options
        )
        return {point: law.log_prob([point]) for point in DOMAIN}

    return audit.exact(answers, rows, domain=DOMAIN, guarantee=promise, neighbors=neighbors)


@pytest.mark.parametrize("engine_of", [in_batches, in_duckdb])
@pytest.mark.parametrize("neighbors", ["swap", "add-remove"])
@pytest.mark.parametrize("rows", ROWS)
def test_releases_from_tables_keep_their_promise(engine_of, neighbors, rows):
    audited = found(engine_of, rows, neighbors)
    assert audited.holds and audited.covered == pytest.approx(1.0, abs=1e-9)
    assert audited.epsilon > 0.1


@pytest.mark.parametrize(
    "mutant", [Twice, Shifted, lambda column: Late(["x"], lambda names: [{"x": column}], 1, False)]
)
def test_engines_that_count_wrongly_are_caught(mutant):
    assert not all(
        found(mutant, rows, neighbors).holds
        for rows in ROWS
        for neighbors in ("swap", "add-remove")
    )
