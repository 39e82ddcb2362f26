"""What `import dpq_fast` loads, and what is there although it is loaded later."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import dpq_fast as dpq

LATER = ("audit", "plots", "reference")
HEAVY = {
    *("scipy.integrate", "scipy.linalg", "scipy.optimize", "scipy.special", "scipy.stats"),
    *("matplotlib", "pandas", "polars", "pyarrow", "pyfftw"),
    *("dpq_fast.laws.joint.fft", *(f"dpq_fast.{name}" for name in LATER)),
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
        "dpq.two_stage(x, q, epsilon=1, bounds=(0, 9))",
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


WITHOUT_PYFFTW = "import sys; sys.modules['pyfftw'] = None; import dpq_fast as dpq\n"


def test_without_pyfftw_everything_but_the_fft_kernel_works():
    code = (
        "x = [1.0, 2.0, 3.0]; form = dict(epsilon=1, bounds=(0, 9))\n"
        "dpq.audit, dpq.reference\n"
        "for release in (dpq.quantile, dpq.joint_exp, dpq.ind_exp, dpq.agg_tree):\n"
        "    release(x, [0.25, 0.5], **form)\n"
        "dpq.quantile_by(x, [1, 1, 2], 0.5, groups=[1, 2], **form)\n"
        "dpq.cdf(x, **form), dpq.mean(x, epsilon=1), dpq.count(x, epsilon=1)\n"
        "dpq.cdf(x, bounds=(0, 9), rho=1, method='factorized')\n"
        "dpq.joint_exp_law(x, [0.5], **form).sample(1)\n"
        "print(sys.modules['pyfftw'])"
    )
    assert fresh(WITHOUT_PYFFTW + code) == "None"


@pytest.mark.parametrize(
    "call",
    [
        "dpq.joint_exp(records, 0.5, epsilon=1, bounds=(0, 9), kernel='fft', "
        "accountant=accountant)",
        "dpq.joint_exp_law(records, 0.5, epsilon=1, bounds=(0, 9), kernel='fft')",
        "dpq.mean(records, q=0.5, epsilon=1, method='joint_exp', lower=0, upper=9, kernel='fft', "
        "accountant=accountant)",
    ],
)
def test_fft_kernel_without_pyfftw_is_refused_before_anything_is_spent_or_read(call):
    code = (
        "accountant = dpq.privacy.Accountant(epsilon=1)\n"
        "class Records(list):\n"
        "    def __iter__(self): print('read')\n"
        "records = Records([1.0])\n"
        f"try: {call}\n"
        "except ImportError as error: print(error)\n"
        "print(accountant.spent.epsilon)"
    )
    refusal = 'kernel="fft" needs pyfftw: pip install pyfftw; kernel="scan" has the same law'
    assert fresh(WITHOUT_PYFFTW + code).splitlines() == [refusal, "0.0"]


@pytest.mark.parametrize("name", LATER)
def test_modules_loaded_later_are_attributes(name):
    code = f"import dpq_fast as dpq; print(dpq.{name}.__name__, dpq.{name} is dpq.{name})"
    assert fresh(code) == f"dpq_fast.{name} True"


def test_a_checkout_that_is_not_built_says_so(tmp_path):
    package = Path(dpq.__file__).parent
    only_source = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    shutil.copytree(package, tmp_path / "dpq_fast", ignore=only_source)
    code = f"""
import sys; sys.path.insert(0, {str(tmp_path)!r})
try: import dpq_fast
except ImportError as error: print(error)
"""
    assert fresh(code) == (
        f"the extension modules of dpq_fast are not built in {tmp_path / 'dpq_fast' / '_kernels'}: "
        "run `pip install .` in the checkout, then start Python in another folder, where the "
        "installed package is found"
    )


def test_all_names_are_there_and_stay_what_they_are():
    """Functions stay functions where a module has the same name and is loaded later."""
    code = (
        "import dpq_fast as dpq; before = {n: getattr(dpq, n) for n in dir(dpq)}; "
        "from dpq_fast import *; import dpq_fast.audit, dpq_fast.reference; "
        "import dpq_fast.laws.joint.fft; "
        "print(*(n for n in dpq.__all__ if globals()[n] is not getattr(dpq, n)), "
        "*(n for n in before if getattr(dpq, n) is not before[n]), set(dpq.__all__) <= set(before))"
    )
    assert fresh(code) == "True"


def test_dir_lists_public_names_alone():
    assert dir(dpq) == sorted(dpq.__all__)
    for name in ("Accountant", "BudgetExceeded", "Guarantee"):
        assert getattr(dpq, name) is getattr(dpq.privacy, name)


def test_unknown_names_are_refused_by_name():
    with pytest.raises(AttributeError, match="'dpq_fast' has no attribute 'quantlie'"):
        _ = dpq.quantlie
