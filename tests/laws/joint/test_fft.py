"""FFT rows against scan rows: certified entry by entry."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpq_fast._kernels.scan import Scan
from dpq_fast.laws.joint import fft as toeplitz
from dpq_fast.laws.joint.fft import FftForward


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


def product(spectra, n_whole, nearest, part=0.0, size=6):
    """A product whose ranks and gap are given: only what `_Product` reads of a scan."""
    rank = np.concatenate([np.arange(size), nearest + size - 1 + np.arange(size)])
    scan = SimpleNamespace(
        rank=rank,
        lo=[0, size],
        hi=[size, 2 * size],
        whole=[2, 2 + n_whole],
        part=[0.25, 0.25 + part],
        rate=0.3,
        row=lambda j: np.linspace(1.0, 2.0, size),
    )
    return toeplitz._Product(scan, 1, True, spectra)


@pytest.mark.parametrize(
    "others",
    [
        [(3, 1), (5, 3), (2, -1), (1, -2)],  # of one difference of gap and nearest rank
        [(3, 2), (4, 1), (1, 4)],  # of one sum of them
        [(3, 0), (3, -3), (3, 2)],
    ],
)
def test_levels_share_a_transform_only_where_it_is_the_same(others):
    spectra = {}
    for n_whole, nearest in others:
        for part in (0.0, 0.5):
            shared = product(spectra, n_whole, nearest, part)._kernel(0.0)
            alone = product({}, n_whole, nearest, part)._kernel(0.0)
            np.testing.assert_array_equal(shared[0], alone[0])
            assert shared[1:] == alone[1:]


def test_tilted_transforms_are_not_shared():
    spectra = {}
    product(spectra, 3, 1)._kernel(0.5)
    found = product(spectra, 3, 1)._kernel(0.0)
    np.testing.assert_array_equal(found[0], product({}, 3, 1)._kernel(0.0)[0])
    assert product(spectra, 3, 1)._kernel(0.0) is found


def test_error_bound_is_that_of_three_transforms():
    made = product({}, 3, 1, size=40)
    _, error, _ = made.tilted(0.0, np.arange(40))
    a, _ = toeplitz._scaled(made._log_a)
    b, _ = toeplitz._scaled(made._log_b)
    length = made._plan.values.size
    norms = np.linalg.norm(a) * np.linalg.norm(b)
    assert error == pytest.approx(8.0 * 2.0**-53 * np.log2(length) * norms, rel=1e-12)


def test_entries_are_certified_to_a_share_of_the_tolerance(monkeypatch):
    """Twenty levels: an error bound of 1e-9 of an entry is too much for one of them."""
    q = np.arange(1, 21) / 21
    rank, width = np.arange(2001), np.ones(2001)
    recomputed = []
    for constant in (8.0, 8.0e4):
        by_fft, _ = scans(rank, width, q, 2000, 0.01)
        monkeypatch.setattr(toeplitz, "ERROR_CONSTANT", constant)
        forward = FftForward()
        forward(by_fft)
        recomputed.append(forward.recomputed / forward.entries)
    assert recomputed[0] < 0.1 < 0.9 < recomputed[1]
