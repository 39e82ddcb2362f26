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
# The band holds the true function everywhere at once, with a probability of 95%.

axes = dpq.plots.cdf(curve, label="private, ε = 1")
points = np.arange(0, 121)
true = np.searchsorted(np.sort(ages), points, side="right") / ages.size
axes.step(points, true, where="post", color="black", lw=0.8, label="true")
axes.set_xlabel("age")
axes.legend()
plt.show()
