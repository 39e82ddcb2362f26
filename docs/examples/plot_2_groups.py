"""
Medians by department, from a Parquet file
==========================================

A private median for each department, with intervals, read from a file of which only the columns
that are needed are loaded.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import dpq_fast as dpq

# %%
# A file, as yours would be.

rng = np.random.default_rng(0)
departments = ["hr", "it", "law", "ops", "sales"]
middle = {"hr": 45_000, "it": 68_000, "law": 82_000, "ops": 39_000, "sales": 52_000}
department = rng.choice(departments, size=8_000, p=[0.1, 0.2, 0.05, 0.35, 0.3])
salary = np.round([middle[name] * np.exp(0.3 * rng.normal()) for name in department], -2)
path = Path(tempfile.mkdtemp()) / "staff.parquet"
pd.DataFrame({"department": department, "salary": salary}).to_parquet(path)

# %%
# One call. The departments are listed, since which ones occur would be private. ``rng`` is for
# this page: a release has no seed.

table = dpq.Table.of(str(path))
medians = dpq.quantile_by(
    table["salary"],
    table["department"],
    0.5,
    groups=departments,
    epsilon=1.0,
    bounds=(0, 500_000),
    resolution=100,
    confidence=0.95,
    rng=1,
)
print(medians)

# %%

axes = dpq.plots.groups(medians)
axes.set_title("Median salary by department")
plt.show()
