"""
The error against epsilon
=========================

How far off quartiles will be, for each epsilon, before any record is read. A plan costs no budget:
it knows public facts, and a public guess at the data.
"""

import matplotlib.pyplot as plt
from scipy import stats

import dpq_fast as dpq

guess = stats.norm(45, 15)  # ages, as one would have said without the data
quartiles = dict(q=[0.25, 0.5, 0.75], bounds=(0, 120), guess=guess)
_, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for n in (1_000, 10_000):
    dpq.plots.plan(dpq.plan(n=n, **quartiles), axes, label=f"{n:,} records")
axes.legend()
plt.show()

# %%
# Errors in ranks hardly depend on the number of records. All methods, for 1,000; a filled marker
# says that "auto" takes the method there.

_, axes = plt.subplots(figsize=(7, 4), layout="constrained")
budgets = [0.03, 0.1, 0.3, 1.0, 3.0]
dpq.plots.plan(dpq.plan(n=1_000, epsilon=budgets, method="all", **quartiles), axes)
plt.show()

# %%
# The smallest epsilon for which 95% of releases are within 25 ranks, on average over the quartiles.

print(dpq.plan(n=10_000, target=25, **quartiles).needed)
