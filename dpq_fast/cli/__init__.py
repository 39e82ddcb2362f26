"""The command `dpq-fast`: files and options in, a private answer out.

A thin coat over the library. Nothing printed depends on the data except the values of a release;
the one exception is `demo`, whose column is generated and holds nobody's record.
"""

from __future__ import annotations

import sys

try:
    import click  # noqa: F401
    import pyarrow  # noqa: F401
    import rich  # noqa: F401
except ModuleNotFoundError as missing:
    package = str(missing.name).partition(".")[0]
    print(f"dpq-fast needs {package}: pip install 'dpq_fast[cli]'", file=sys.stderr)
    raise SystemExit(2) from None

from dpq_fast.cli.app import main
from dpq_fast.cli.payroll import generated_payroll

__all__ = ["generated_payroll", "main"]
