"""Benchmarks: asv-shaped classes by subject, and `run.py`, which prints the tables without asv.

The modules import each other by their bare names, as a script's do; this makes asv find them, too.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
