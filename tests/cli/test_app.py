"""The command as a whole: help, exit codes, completion."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["click", "rich", "pyarrow"])
def test_cli_without_its_extra_names_the_extra(tmp_path, module):
    code = f"import sys; sys.modules[{module!r}] = None; import dpq_fast.cli"
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode == 2
    assert result.stderr.splitlines() == [f"dpq-fast needs {module}: pip install 'dpq_fast[cli]'"]
