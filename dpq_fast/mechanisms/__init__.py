"""One mechanism in each file, from its public arguments to the release.

A public function checks its arguments and calibrates; what it has prepared (`Prepared`) is
charged, reads and draws. Its docstring says what it promises. `quantile` and `registry` are over
all of them; other files that several need hold arguments, intervals, and rows by group. Formulas
of epsilon live in `privacy`, laws in `laws`, what is handed out in `released`.
"""
