"""FFT rows against scan rows: certified entry by entry."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpq_fast._kernels.scan import Scan
from dpq_fast.laws import fft as toeplitz
from dpq_fast.laws.fft import FftForward


def scans(rank, width, q, n, rate, lo=None, hi=None):
    """Two scans of one problem, rows not computed yet."""
    m = len(q)
    arguments = (
        np.asarray(rank, dtype=np.int64),
        np.asarray(width, dtype=np.float64),
        True,
        np.asarray(q, dtype=np.float64),
        n,
        np.zeros(m, dtype=np.uintp) if lo is None else lo,
        np.full(m, len(rank), dtype=np.uintp) if hi is None else hi,
        rate,
    )
    return Scan(*arguments), Scan(*arguments)


def assert_same_rows(by_fft, by_scan, tolerance=1e-8):
    assert by_fft.log_total == pytest.approx(by_scan.log_total, abs=tolerance)
    if by_scan.exponent is None:
        assert by_fft.exponent is None
        return
    scale = np.repeat(by_fft.exponent - by_scan.exponent, (by_scan.hi - by_scan.lo).astype(int))
    for mine, other in ((by_fft.A, by_scan.A), (by_fft.H, by_scan.H)):
        np.testing.assert_allclose(np.ldexp(mine, scale), other, rtol=tolerance)


@given(st.integers(0, 2**32), st.integers(1, 8), st.floats(1e-6, 30.0), st.integers(1, 6))
def test_fft_rows_equal_scan_rows(seed, m, rate, gap):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 150))
    rank = np.cumsum(rng.integers(1, gap + 1, size)) - 1
    width = np.ceil(rng.lognormal(3, 3, size))
    q = np.unique(rng.random(m))
    by_fft, by_scan = scans(rank, width, q, int(rank[-1] + rng.integers(0, 3)), rate)
    FftForward()(by_fft)
    by_scan.forward()
    assert_same_rows(by_fft, by_scan)


def test_fft_rows_equal_scan_rows_inside_windows():
    rng = np.random.default_rng(1)
    rank = np.sort(rng.choice(5000, 2500, replace=False))
    width = np.ceil(rng.lognormal(3, 2, rank.size))
    q = np.arange(1, 10) / 10
    lo = np.searchsorted(rank, 5000 * q - 300).astype(np.uintp)
    hi = np.searchsorted(rank, 5000 * q + 300).astype(np.uintp)
    by_fft, by_scan = scans(rank, width, q, 5000, 0.25, lo, hi)
    forward = FftForward()
    forward(by_fft)
    by_scan.forward()
    assert_same_rows(by_fft, by_scan)
    assert forward.entries == int((hi[1:] - lo[1:]).sum())


def test_most_entries_are_certified_where_the_published_code_clips():
    # n = 2,000, m = 5: a plain FFT product of the rows has 44% negative entries
    rng = np.random.default_rng(2)
    x = np.sort(rng.normal(0, 5, 2000))
    width = np.diff(np.concatenate(([-100], x, [100])))
    by_fft, by_scan = scans(np.arange(2001), width, np.arange(1, 6) / 6, 2000, 0.25)
    forward = FftForward()
    forward(by_fft)
    by_scan.forward()
    assert_same_rows(by_fft, by_scan)
    assert forward.recomputed < 0.01 * forward.entries


def test_entries_that_are_not_certified_come_from_the_scan(monkeypatch):
    monkeypatch.setattr(toeplitz, "TOLERANCE", 0.0)
    by_fft, by_scan = scans(np.arange(50), np.arange(1.0, 51.0), [0.2, 0.4, 0.9], 49, 0.1)
    forward = FftForward()
    forward(by_fft)
    by_scan.forward()
    assert forward.recomputed == forward.entries == 100
    np.testing.assert_array_equal(by_fft.H, by_scan.H)


@pytest.mark.parametrize("tilt", [-0.09, -0.01, 0.0, 0.003, 0.09])
@pytest.mark.parametrize("size", [10, 100, 1000, 5000])
def test_error_bound_holds(size, tilt):
    # the bound against the true error: the scan, right to 1e-13 of each entry, is the truth
    rng = np.random.default_rng(3)
    scan, _ = scans(np.arange(size), rng.lognormal(0, 2, size), [0.3, 0.6], size - 1, 0.05)
    scan.forward()
    truth = scan.sums(1)
    for above in (True, False):
        product = toeplitz._Product(scan, 1, above, {})
        side = np.flatnonzero((product.v >= 0) == above)
        values, error, log_scale = product.tilted(tilt, side)
        true_values = truth[side] * np.exp(-log_scale)
        assert (np.abs(values - true_values) <= error + 1e-13 * true_values).all()


def test_plans_are_not_shared_between_threads():
    found = [toeplitz._plan(64)]
    thread = threading.Thread(target=lambda: found.append(toeplitz._plan(64)))
    thread.start()
    thread.join()
    assert toeplitz._plan(64) is found[0] and found[1] is not found[0]
