"""Thousands of calls with wrong arguments and strange columns: an answer, or a clear refusal."""

import hostile
import pyarrow.dataset  # noqa: F401 - which a path loads
import pytest


def test_hostile_calls():
    assert hostile.calls(1_500, seed=1).other == {}


@pytest.mark.slow
def test_hostile_calls_do_not_grow_the_process():
    hostile.calls(5_000, seed=2)  # caches of public facts fill
    before = hostile.resident()
    assert hostile.calls(30_000, seed=3).other == {}
    assert hostile.resident() - before < 5 * 2**20
