"""Keys that nobody can list beforehand, selected privately by their numbers of records."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from numpy.typing import NDArray

from dpq_fast import _checks, privacy
from dpq_fast._prepared import Prepared, releases
from dpq_fast.data import tables
from dpq_fast.data.key_counts import KeyCounts, count_keys, split_columns
from dpq_fast.data.keys import as_array
from dpq_fast.data.persons import WEIGHTS, in_order, named
from dpq_fast.data.table_persons import TablePersons
from dpq_fast.data.table_persons import count_keys as count_keys_of_persons
from dpq_fast.data.tables import TableColumns
from dpq_fast.laws.key_selection import KeysLaw


@releases()
def select_keys(
    by: Any,
    *,
    epsilon: float,
    delta: float,
    neighbors: str = "swap",
    max_contributions: int = 1,
    counts: Any = None,
    privacy_unit: Any = None,
    contributions: Any = WEIGHTS,
    accountant: privacy.Accountant | None = None,
    rng: Any = None,
) -> Prepared[NDArray[Any]]:
    r"""Release which keys there are, without those of few records.

    Parameters
    ----------
    by : array_like of int, str, bool or date, shape (n,); or several
        The key of each record, as in `quantile_by`: for keys of several columns a data frame, or a
        list that holds nothing but columns; or columns of a `Table`, ``table["town", "year"]``, or
        what it is made of, with no other columns. Private. Rows without a key in some column, and
        those whose key is of another type, or no integer of 64 bits, are left out, silently.
        Only the type of a column may be refused.
    epsilon : float
        Budget, positive and finite. Public, as all that follow but `counts`.
    delta : float
        Failure probability, strictly between 0 and 1: that of keeping a key of a single person.
        Much less than one over the number of persons.
    neighbors : {"swap", "add-remove"}, default "swap"
        "swap" replaces the key of one record; "add-remove" adds or deletes one record.
    privacy_unit : array_like of ids, shape (n,); or several, optional
        Whose each record is, as in `quantile`. Private. Then the guarantee is about whole persons,
        whose records are parts of one, whatever keys they have.
    contributions : "weights" or int, default "weights"
        As in `quantile`.
    max_contributions : int, default 1
        Up to this many records per person, of one key or of several: the guarantee is per person.
    counts : array_like of int, shape (n,), optional
        How many records each entry of `by` stands for; 1 each by default. Private. Columns of
        pandas go by the labels of their indexes, as in `quantile_by`.
    accountant : Accountant, optional
        Charged with ``guarantee("select_keys", ...)``; refuses before `by` is touched.
    rng : None, int, SeedSequence, BitGenerator or Generator, optional
        None, for real releases: a cryptographic generator keyed by the operating system.

    Returns
    -------
    ndarray, shape (K,)
        The kept keys, ascending: int64 (uint64 where they need it), booleans, or all others and
        tuples of keys as objects. The answer is a function of the kept keys alone; nothing is
        said of the numbers of records. Fit for `groups` of `quantile_by`.

    Raises
    ------
    TypeError
        If `by`, `counts` or an argument is not of the type its rule above asks for.
    ValueError
        If a public argument breaks its rule, `by` is not one-dimensional, or `counts` breaks its
        rule.
    BudgetExceeded
        If `accountant` has too little left.

    See Also
    --------
    quantile_by : Quantiles of each group.
    privacy.key_selection.keep_probability : How many records a key needs.

    Notes
    -----
    **Mechanism.** The truncated geometric rule [1]_: each key is kept by itself, with a probability
    that grows with its number of records, from `delta` for one record to 1. Under "add-remove" and
    for one record per person no other rule keeps a key of any number of records more often.

    **Privacy.** (`epsilon`, `delta`)-DP under `neighbors`. Under "swap" a record leaves a key and
    enters another: three fifths of `epsilon`, and `delta`, go to the former. With
    ``max_contributions=k`` the worst person has all records in one key; such a key of a single
    person is kept with probability `delta`. Proof: `privacy.key_selection`. Decisions compare
    random bits with the exact probabilities: nothing is rounded. Not covered: running time.

    **Cost.** O(n log n) for integers, a dictionary entry per row for strings, and a fifth of a
    millisecond for each number of records that occurs. Of a `Table` one pass: the keys and their
    numbers, which are private, are sent here, but no row; with a `privacy_unit` the number of the
    key and one in place of the id of each row, too (`Table.of`).

    References
    ----------
    .. [1] D. Desfontaines, J. Voss, B. Gipson, C. Mandayam, "Differentially private partition
       selection", Proceedings on Privacy Enhancing Technologies 2022(1).

    Examples
    --------
    >>> towns = ["Aarau"] * 200 + ["Basel"] * 3_000 + ["Chur"] * 2
    >>> select_keys(towns, epsilon=1.0, delta=1e-9).tolist()
    ['Aarau', 'Basel']
    """
    calibration = privacy.key_selection.calibrate(
        epsilon=epsilon, delta=delta, neighbors=neighbors, max_contributions=max_contributions
    )
    by = tables.key_columns(by)
    counted: Callable[[], KeyCounts]
    if isinstance(by, TableColumns) and isinstance(counts, TablePersons):
        counted = partial(count_keys_of_persons, by, counts)
    elif isinstance(by, TableColumns):
        tables.refuse_counts(counts)
        counted = partial(tables.count_keys, by)
    else:
        (name, first), *others = _checks.named_keys(split_columns(by))
        beside = _checks.aligned(first, [*others, *named(counts)], name)
        rest, own = beside[: len(others)], in_order(counts, beside[len(others) :])
        counted = partial(count_keys, [first, *rest], own)
    return Prepared(
        calibration,
        lambda rng: as_array(KeysLaw(*counted(), calibration).sample(rng)),
        "select_keys",
    )
