"""Mutation testing of the C kernels: ``python tests/mutation/kernels.py smooth race``.

Each mutant is a small fault in ``csrc/<kernel>.c``, or in a file ``csrc/<kernel>_*.c`` that it has
beside it and that has no fuzz target of its own: a constant, a comparison, a sign or an index.
It is linked with the kernel's fuzz target, which checks it against another way to the same answer,
and is killed if the target breaks, or does not end, on the replay's inputs (`tests/fuzz/replay`).
What survives here may yet be killed by the tests in Python. Needs a C compiler, and leaves the
sources as they are.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
CSRC, FUZZ = ROOT / "csrc", ROOT / "tests" / "fuzz"
FLAGS = ["-std=c11", "-w", "-O1", "-ffp-contract=off", f"-I{CSRC}", f"-I{FUZZ}"]
FLAGS += ["-isystem", np.get_include()]
# An index that leaves its array is a fault even where nothing comes of it.
CHECKED = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
# A target hangs if it takes this many seconds, and this many times as long as without a fault.
PATIENCE, SLOWER = 2.0, 5.0
COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
SIGNS = {"+": "-", "-": "+"}
# What is left as it is: comments, strings, and the lines of the preprocessor.
QUIET = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\])*"|^[ \t]*#.*?(?<!\\)$', re.DOTALL | re.MULTILINE)
FAULTS = re.compile(
    r"(?P<comparison> (?:<=|>=|==|!=|<|>) )"
    r"|(?P<sign> [+-] )"
    r"|(?P<number>(?<![\w.])\d+(?:\.\d+)?(?![\w.]))"
    r"|(?P<index>(?<=\w)\[[^\[\]]+\](?! ?= ?\{))"
)


class Mutant(NamedTuple):
    """A fault: what stands where, and what is put there."""

    start: int
    stop: int
    line: int
    old: str
    new: str


def mutants_of(source: str) -> Iterator[Mutant]:
    """All faults of a source, in its order."""
    shown = QUIET.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), source)
    for found in FAULTS.finditer(shown):
        old = found.group()
        if found["comparison"]:
            new = f" {COMPARISONS[old.strip()]} "
        elif found["sign"]:
            new = f" {SIGNS[old.strip()]} "
        elif found["number"]:
            new = f"{float(old) + 1.0}" if "." in old else f"{int(old) + 1}"
        else:
            new = f"{old[:-1]} + 1]"
        yield Mutant(*found.span(), shown.count("\n", 0, found.start()) + 1, old, new)


def sources_of(name: str) -> list[Path]:
    """The files that a kernel consists of."""
    beside = sorted(CSRC.glob(f"{name}_*.c"))
    own = [CSRC / f"{name}.c", *(path for path in beside if not (FUZZ / path.name).exists())]
    return [path for path in own if path.exists()]


def compiled(source: Path, target: Path) -> bool:
    command = [os.environ.get("CC", "cc"), *FLAGS, *CHECKED, "-c", str(source), "-o", str(target)]
    return subprocess.run(command, capture_output=True).returncode == 0


class Kernel:
    """One file of a kernel with its fuzz target, and how long that takes."""

    def __init__(self, name: str, path: Path, objects: list[Path], work: Path, inputs: int) -> None:
        self.path, self._work, self._inputs = path, work, inputs
        self._others = [each for each in objects if each.stem != path.stem]
        self._findings = sorted(map(str, (FUZZ / "findings" / name).glob("*")))
        self.source = path.read_text()
        if not compiled(FUZZ / f"{name}.c", work / "fuzzed.o"):
            raise SystemExit(f"the fuzz target of {name} does not compile")
        started = time.perf_counter()
        self._seconds: float | None = None
        if self.is_killed(self.source) is not False:
            raise SystemExit(f"the fuzz target of {name} breaks without a fault")
        self._seconds = max(PATIENCE, SLOWER * (time.perf_counter() - started))

    def is_killed(self, source: str) -> bool | None:
        """Whether the target notices; None if the source does not compile."""
        path = self._work / self.path.name
        path.write_text(source)
        if not compiled(path, path.with_suffix(".o")):
            return None
        objects = [path.with_suffix(".o"), self._work / "fuzzed.o", *self._others]
        target = self._work / "target"
        command = [os.environ.get("CC", "cc"), *CHECKED, *map(str, objects), "-lm"]
        subprocess.run([*command, "-o", str(target)], check=True)
        try:
            ended = subprocess.run(
                [str(target), str(self._inputs), *self._findings],
                capture_output=True,
                timeout=self._seconds,
            )
        except subprocess.TimeoutExpired:
            return True
        return ended.returncode != 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    names = sorted(path.stem for path in FUZZ.glob("*.c") if sources_of(path.stem))
    parser.add_argument("kernels", nargs="*", metavar="KERNEL")
    parser.add_argument("--inputs", type=int, default=2_000, help="of the replay, for each mutant")
    parser.add_argument("--sample", type=int, help="this many mutants of each, drawn with --seed")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    survived = 0
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        objects = [work / f"{path.stem}.o" for path in (*CSRC.glob("*.c"), FUZZ / "replay/main.c")]
        for path, made in zip((*CSRC.glob("*.c"), FUZZ / "replay/main.c"), objects, strict=True):
            assert compiled(path, made), path
        for name, path in ((n, path) for n in asked.kernels or names for path in sources_of(n)):
            (work / path.stem).mkdir()
            kernel = Kernel(name, path, objects, work / path.stem, asked.inputs)
            mutants = list(mutants_of(kernel.source))
            if asked.sample is not None and asked.sample < len(mutants):
                mutants = sorted(random.Random(asked.seed).sample(mutants, asked.sample))
            found = []
            for mutant in mutants:
                faulty = kernel.source[: mutant.start] + mutant.new + kernel.source[mutant.stop :]
                killed = kernel.is_killed(faulty)
                if killed is None:
                    continue
                found.append(killed)
                if not killed:
                    change = f"{mutant.old.strip()} → {mutant.new.strip()}"
                    print(f"{path.name}:{mutant.line}: {change}", flush=True)
            survived += found.count(False)
            print(f"{path.stem}: {sum(found)} of {len(found)} killed", flush=True)
            shutil.rmtree(work / path.stem)
    return int(survived > 0)


if __name__ == "__main__":
    sys.exit(main())
