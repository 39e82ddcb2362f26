"""What the five documents print: their list of tables and figures, and every number, once.

Documents: [GJK21] is two of the five texts, the proceedings and the version with its appendix;
[Dur23]; Sarus' note on distribution functions; the poster "Privately Releasing Quantiles".
"""

from __future__ import annotations

from typing import NamedTuple

JOINT, UNBOUNDED, NOTE, POSTER = "[GJK21]", "[Dur23]", "the note", "the poster"
DOCUMENTS = {
    JOINT: "J. Gillenwater, M. Joseph, A. Kulesza. Differentially Private Quantiles. ICML 2021: "
    "the proceedings' text, and the version with its appendix",
    UNBOUNDED: "D. Durfee. Unbounded Differentially Private Quantile and Maximum Estimation. "
    "NeurIPS 2023",
    NOTE: "C. Gastaud. Estimating a cumulative distribution function with differential privacy. "
    "Sarus, Differential privacy in practice, 2023",
    POSTER: "N. Manohar. Privately Releasing Quantiles. Privacy Tools for Sharing Research Data, "
    "Harvard, poster of 2014",
}


class Place(NamedTuple):
    """A table, a figure or numbers of a document, and the item that makes them again."""

    document: str
    where: str
    what: str
    item: str


INDEX = (
    Place(JOINT, "Figure 1", "the chain of intervals; Lemmas 3 to 7, 10", "joint_law"),
    Place(JOINT, "Figure 2", "histograms of the four data sets", "joint_data"),
    Place(JOINT, "Figure 3", "missed points over m", "joint_missed"),
    Place(JOINT, "Figure 4", "time over m (the text calls it Figure 6)", "joint_times"),
    Place(JOINT, "Figure 5", "tuned t", "joint_smoothness"),
    Place(JOINT, "Figure 6", "distance over m", "joint_distance"),
    Place(JOINT, "Table 1", "tuned trees, missed points", "joint_trees_missed"),
    Place(JOINT, "Table 2", "tuned trees, distance", "joint_trees_distance"),
    Place(JOINT, "§4, §5.4", "1 ms, under a minute; Theorem 1: time and memory", "joint_times"),
    Place(JOINT, "§5.1, Appendices D, E", "numbers in the text; Lemmas 8, 12, 14", "joint_numbers"),
    Place(UNBOUNDED, "Figure 1", "densities beside a loose bound", "unbounded_density"),
    Place(UNBOUNDED, "Figure 2", "histograms of the six data sets", "unbounded_data"),
    Place(UNBOUNDED, "Figure 3", "errors of single quantiles", "unbounded_levels"),
    Place(UNBOUNDED, "Table 1", "errors of clipped sums, 36 cells", "unbounded_sums"),
    Place(UNBOUNDED, "§6.4", "β = 1.01, q = 1, a threshold of n + 1/ε", "unbounded_tuning"),
    Place(UNBOUNDED, "§3 to 5, Appendices A to C", "numbers in the text", "unbounded_numbers"),
    Place(NOTE, "first figure", "the data set and its distribution function", "note_data"),
    Place(NOTE, "the naive approach", "the noise of 188, and its figure", "note_naive"),
    Place(NOTE, "smooth sensitivity", "its figure", "note_smooth"),
    Place(NOTE, "histogram queries", "its figure, over ε", "note_histogram"),
    Place(NOTE, "adaptive estimation", "its figure, over ε", "note_adaptive"),
    Place(NOTE, "comparison over σ", "three distances", "note_widths"),
    Place(NOTE, "comparison over bins", "three distances", "note_bins"),
    Place(POSTER, "α, β", "α = 9333.16 at β = 0.05; the smoothing formula", "poster_alpha"),
    Place(POSTER, "income", "curve, and points beyond α in 10 trials", "poster_income"),
    Place(POSTER, "age", "curve, and points beyond α in 10 trials", "poster_age"),
)

# --- [GJK21] --------------------------------------------------------------------------------------

# Table 1 and Table 2: heights and branchings by m = 1, 2, ..., each in two rows of columns.
FROM_16 = (10, 10, 10, 7, 10, 10, 7, 10, 12, 12, 12, 10, 10, 12)
FROM_16_BY_DISTANCE = (8, 10, 7, 10, 10, 12, 8, 10, 12, 10, 7, 5, 7, 5)
TREES = {
    "missed points": (
        (4, 3, 3, 3, 2, *(3,) * 24),
        (4, 6, 6, 9, 14, 10, 7, 7, 10, 10, 8, 7, 7, 12, 10, *FROM_16),
    ),
    "distance": (
        (3,) * 29,
        (8, 6, 6, 10, 9, 9, 10, 10, 12, 12, 10, 10, 7, 10, 8, *FROM_16_BY_DISTANCE),
    ),
}
# The third of m is 3 at its middle level: the one number that Figure 5's caption gives.
SMOOTHNESS = {(3, 0.5): 0.13}
TIMES = {1_000: 1e-3, 10**6: 60.0}  # §5.4, m = 30; the second is "slightly under"
CONVERTED = 5.76  # §5.1: epsilon of 1/2-zCDP at delta 1e-6
BEYOND = 0.434  # Appendix D: Laplace noise of scale 6 beyond the range ±5
SWAPS = 50.0  # Appendix D: ln^2(n) + 2
LARGEST_MEDIAN_ERROR = 25.0  # Appendix D: of all mechanisms, uniform data
BEHIND_GROWTH = (2.0, 3.0)  # §5.3: the closest competitor's error over JointExp's

# --- [Dur23] --------------------------------------------------------------------------------------

BETA, COARSE_BETA, SPLIT, CLIP_LEVEL = 1.001, 1.01, 0.5, 0.99
# §6.2: noise that parts ties.
PERTURBATION = {"average_rating": 0.001, "num_pages": 0.1, "age": 0.1, "hours_per_week": 0.1}
SUM_RANGE = (0.0, 10_000.0)
SUM_COLUMNS = ("average_rating", "num_pages", "age", "hours_per_week")
SUM_LEVELS = (0.95, 0.96, 0.97, 0.98, 0.99)  # of EMQ and AT: the best one is shown
SUM_TREE = (3, 10)
# Table 1: mean absolute error and its standard deviation over 100 iterations.
SUMS = {
    ("UQE", 1.0): ((4.78, 0.21), (4385.23, 2077.16), (103.05, 16.04), (180.48, 44.92)),
    ("EMQ", 1.0): ((5.73, 0.54), (4324.38, 2343.25), (187.06, 33.55), (339.06, 75.82)),
    ("AT", 1.0): ((8.75, 0.31), (4377.45, 2340.93), (293.11, 117.32), (471.98, 174.07)),
    ("UQE", 0.5): ((9.22, 0.31), (7102.34, 3093.13), (180.61, 27.03), (277.89, 77.60)),
    ("EMQ", 0.5): ((6906.13, 7123.36), (7601.47, 3963.52), (678.22, 1931.11), (2131.80, 4669.11)),
    ("AT", 0.5): ((29.01, 115.04), (7491.97, 4367.31), (473.19, 238.19), (582.58, 369.29)),
    ("UQE", 0.1): ((44.59, 1.79), (21916.37, 6423.75), (821.77, 157.68), (981.10, 219.66)),
    ("EMQ", 0.1): (
        (45861.79, 28366.46),
        (46552.09, 27944.18),
        (50558.32, 28843.72),
        (47185.58, 29437.22),
    ),
    ("AT", 0.1): (
        (11351.77, 21423.40),
        (30830.49, 20422.05),
        (14490.06, 25268.71),
        (9928.18, 20159.17),
    ),
}
MANY_CANDIDATES = (50_000, 1e21)  # §4.2: after so many, candidates are over so much
FIVE_MORE = (2.0, 5, 32.0)  # footnote 3: beta, further candidates, factor

# --- The note -------------------------------------------------------------------------------------

NOTE_N, NOTE_RANGE = 10_000, (-5.0, 5.0)
NAIVE = (1.0, 1e-4, 188.0)  # epsilon, delta, standard deviation
DECENT = 0.1  # epsilon from which the histogram is decent
ADAPTIVE_GAIN = 2.0  # "around 2"

# --- The poster -----------------------------------------------------------------------------------

POSTER_EPSILON, POSTER_BETA, ALPHA = 0.01, 0.05, 9333.16
BEYOND_ALPHA = {
    "income": (0, 0, 1, 1, 2, 0, 0, 0, 0, 1),
    "age": (0, 12, 2, 4, 3, 4, 0, 1, 1, 0),
}
EXPECTED_BEYOND = 5
