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
for n in (1_000, 10_000):
    plan = dpq.plan([0.25, 0.5, 0.75], n=n, bounds=(0, 120), resolution=1, guess=guess)
    plt.loglog(plan.epsilon, plan.ranks.expected / n, "o-", label=f"{n:,} records")
plt.xlabel("epsilon, for all three quartiles")
plt.ylabel("expected rank error, as a share of the records")
plt.legend()
plt.show()
