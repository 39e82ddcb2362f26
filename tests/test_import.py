"""What `import dpq_fast` loads, and what is there although it is loaded later."""

import subprocess
import sys
import tempfile

import pytest

import dpq_fast as dpq

LATER = ("audit", "plots", "reference")
HEAVY = {
    *("scipy.integrate", "scipy.linalg", "scipy.optimize", "scipy.special", "scipy.stats"),
    *("matplotlib", "pandas", "polars", "pyarrow", "pyfftw"),
    *("dpq_fast.laws.fft", *(f"dpq_fast.{name}" for name in LATER)),
}


def fresh(code: str) -> str:
    """What a new interpreter prints."""
    # not in the checkout: its dpq_fast/ would be found first, without compiled modules
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tempfile.gettempdir(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


@pytest.mark.parametrize(
    "call",
    [
        "",
        "dpq.joint_exp(x, q, epsilon=1, bounds=(0, 9))",
        "dpq.approx_quantiles(x, q, rho=1, bounds=(0, 9), neighbors='add-remove')",
        "dpq.quantile(x, q, epsilon=1)",
        "dpq.quantile_by(x, [1, 2], q, epsilon=1, bounds=(0, 9), groups=[1])",
        "dpq.agg_tree(x, q, epsilon=1, bounds=(0, 9))",
        "dpq.mean(x, epsilon=1)",
        "dpq.plan",
        "dpq.privacy.Accountant(1.0)",
        "dir(dpq)",
    ],
)
def test_import_and_releases_load_nothing_heavy(call):
    code = f"import sys, dpq_fast as dpq; x, q = [1.0, 2.0], [0.25, 0.5]; {call}\n"
    loaded = set(fresh(code + "print(*sys.modules)").split())
    assert "dpq_fast.mechanisms.joint_exp" in loaded
    assert loaded & HEAVY == set()


def test_fft_kernel_loads_what_it_needs():
    code = (
        "import dpq_fast as dpq, sys; "
        "dpq.joint_exp([1.0], 0.5, epsilon=1, bounds=(0, 9), kernel='fft'); "
        "print('pyfftw' in sys.modules)"
    )
    assert fresh(code) == "True"


@pytest.mark.parametrize("name", LATER)
def test_modules_loaded_later_are_attributes(name):
    code = f"import dpq_fast as dpq; print(dpq.{name}.__name__, dpq.{name} is dpq.{name})"
    assert fresh(code) == f"dpq_fast.{name} True"


def test_all_names_are_there_and_stay_what_they_are():
    """Functions stay functions where a module has the same name and is loaded later."""
    code = (
        "import dpq_fast as dpq; before = {n: getattr(dpq, n) for n in dir(dpq)}; "
        "from dpq_fast import *; import dpq_fast.audit, dpq_fast.reference, dpq_fast.laws.fft; "
        "print(*(n for n in dpq.__all__ if globals()[n] is not getattr(dpq, n)), "
        "*(n for n in before if getattr(dpq, n) is not before[n]), set(dpq.__all__) <= set(before))"
    )
    assert fresh(code) == "True"


def test_dir_lists_all_names():
    assert set(dpq.__all__) <= set(dir(dpq))
    assert dir(dpq) == sorted(dir(dpq))


def test_unknown_names_are_refused_by_name():
    with pytest.raises(AttributeError, match="'dpq_fast' has no attribute 'quantlie'"):
        _ = dpq.quantlie
