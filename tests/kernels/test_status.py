"""Every status code of the kernels is an exception."""

import re
from pathlib import Path

import pytest

from dpq_fast._kernels import status

HEADER = Path(__file__).resolve().parents[2] / "csrc" / "status.h"


def test_exception_of_knows_every_code():
    codes = range(-1, status.STATUS_END, -1)
    assert len(codes) >= 1
    messages = set()
    for code in codes:
        exception = status.exception_of(code)
        assert isinstance(exception, Exception)
        (message,) = exception.args
        assert message
        messages.add(message)
    assert len(messages) == len(codes)


@pytest.mark.parametrize("code", [0, 1, status.STATUS_END])
def test_exception_of_knows_no_other_code(code):
    with pytest.raises(KeyError):
        status.exception_of(code)


@pytest.mark.skipif(not HEADER.is_file(), reason="csrc/status.h is only in a checkout")
def test_header_numbers_its_codes_without_gaps():
    found = re.findall(r"^\s*(DPQ_\w+)\s*=\s*(-?\d+)", HEADER.read_text(), flags=re.MULTILINE)
    names = [name for name, _ in found]
    assert names[0] == "DPQ_OK" and names[-1] == "DPQ_STATUS_END"
    assert all(name.startswith("DPQ_ERR_") for name in names[1:-1])
    assert [int(value) for _, value in found] == list(range(0, status.STATUS_END - 1, -1))
