"""One mechanism in each file, from its public arguments to the release.

A public function checks its arguments, calibrates, charges, reads and draws, in this order, and
says in its docstring what it promises. `quantile` and `registry` are over all of them; files that
several need hold the steps of a call, intervals, and rows by group. Formulas of epsilon live in
`privacy`, laws in `laws`, what is handed out in `released`.
"""
