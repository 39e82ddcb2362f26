"""
A whole distribution
====================

A private distribution function: one release, and then any number of shares and quantiles for
nothing.
"""

import matplotlib.pyplot as plt
import numpy as np

import dpq_fast as dpq

ages = np.random.default_rng(0).integers(17, 91, size=2_000)
curve = dpq.cdf(ages, epsilon=1.0, bounds=(0, 120), resolution=1, rng=1)
print("share below 65:", round(float(curve.cdf(65)), 3))
print("quartiles:", curve.quantile([0.25, 0.5, 0.75]))
reach = curve.accuracy(0.05) / curve.total
print("any share of ages is off by less than", round(reach, 3), "in 95% of releases")

# %%

points = np.arange(0, 121)
share = curve.cdf(points)
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.step(points, share, where="post", label="private, ε = 1")
axes.fill_between(points, share - reach, share + reach, step="post", alpha=0.25)
true = np.searchsorted(np.sort(ages), points, side="right") / ages.size
axes.step(points, true, where="post", color="black", lw=0.8, label="true")
axes.set(xlabel="age", ylabel="share of records up to this age", ylim=(-0.02, 1.02))
axes.legend()
plt.show()
