"""
Private and true deciles
========================

The deciles of 20,000 generated salaries, with intervals, beside the true ones. In a real release
nobody would see the true ones.
"""

import matplotlib.pyplot as plt
import numpy as np

import dpq_fast as dpq
from dpq_fast.cli import generated_payroll

pay = generated_payroll()
levels = np.arange(1, 10) / 10

# rng is for this page: a release has no seed
deciles = dpq.quantile(
    pay,
    levels,
    epsilon=0.5,
    bounds=(0, 1_000_000),
    resolution=100,
    confidence=0.95,
    rng=1,
)
print(deciles)

# %%
# Each bar is the interval; all nine together hold the true deciles with a probability of 95% or
# more.

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.plot(levels, np.quantile(pay, levels), "_", ms=16, color="black", label="true")
dpq.plots.quantiles(levels, deciles, axes, label="private, ε = 0.5")
axes.set_ylabel("salary\n(95% intervals)")
axes.legend()
plt.show()
