"""`dpq-fast demo`."""

import re

import numpy as np
from command_line import run

from dpq_fast.cli import payroll


def test_demo_states_the_release_and_shows_nine_deciles():
    result = run("demo")
    assert result.exit_code == 0, result.output
    text = " ".join(result.stdout.split())
    for fact in (
        "generated payroll",
        "epsilon 1, delta 0, neighbors swap",
        "bounds [0, 500,000]",
        "mechanism joint_exp",
        "resolution 100",
        "noise: fresh, cryptographic",
        "True values and rank errors are shown only because the column is generated",
    ):
        assert fact in text
    assert re.search(r"decile .* true .* private .* rank error .*(▀|') true (▄|\.) private", text)
    rows = re.findall(r"(\d0)% +│ +([\d,]+) +│ +([\d,]+) +│ +([\d,]+) +│ (\S+)", result.stdout)
    assert [row[0] for row in rows] == [f"{j}0" for j in range(1, 10)]
    numbers = np.array([[cell.replace(",", "") for cell in row[1:4]] for row in rows], dtype=float)
    true, private, error = numbers.T
    np.testing.assert_array_equal(true, np.quantile(payroll.generated_payroll(), payroll.DECILES))
    assert (np.diff(private) >= 0).all()
    assert (private % payroll.RESOLUTION == 0).all()
    # JointExp misses by about 7 records here; 500 would need probabilities below exp(-100).
    assert error.max() < 500


def test_demo_fits_80_columns():
    assert max(len(line) for line in run("demo", "--epsilon", "0.001").stdout.splitlines()) <= 80


def test_demo_draws_fresh_noise_unless_seeded():
    outputs = {run("demo", "--epsilon", "0.1").stdout for _ in range(3)}
    assert len(outputs) == 3
    seeded = [run("demo", "--seed", "3").stdout for _ in range(2)]
    assert seeded[0] == seeded[1]
    assert "noise: repeatable, from seed 3" in seeded[0]


def test_demo_rejects_epsilon_of_zero():
    result = run("demo", "--epsilon", "0")
    assert result.exit_code == 2
    assert "epsilon must be positive and finite, got 0.0" in result.stderr


def test_generated_payroll_is_public_and_full_of_ties():
    salaries = payroll.generated_payroll()
    np.testing.assert_array_equal(salaries, payroll.generated_payroll())
    assert (salaries % 100 == 0).all()
    assert np.unique(salaries).size < salaries.size / 5
    low, high = payroll.BOUNDS
    assert low < salaries.min() and salaries.max() < high
