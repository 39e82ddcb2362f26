"""The secure default generator: what it is, whose it is, and that nobody else repeats it."""

import ast
import os
import subprocess
import sys
import tempfile
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from randomgen import ChaCha

import dpq_fast
from dpq_fast.noise import rng as dpq_rng
from dpq_fast.noise.rng import default_rng

FORK = """
import os
from dpq_fast.noise.rng import default_rng

parent = default_rng()
parent.integers(0, 2**63)
receive, send = os.pipe()
children = []
for _ in range(2):
    child = os.fork()
    if child == 0:
        fresh = default_rng() is not parent
        os.write(send, f"{fresh} {default_rng().integers(0, 2**63)}\\n".encode())
        os._exit(0)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
print(os.read(receive, 4096).decode(), end="")
print(default_rng() is parent, default_rng().integers(0, 2**63))
"""
FIRST_DRAW = "from dpq_fast.noise.rng import default_rng; print(default_rng().integers(0, 2**63))"


def script(code: str) -> list[str]:
    """Lines that a process of its own prints."""
    # not in the checkout: its dpq_fast/ would be found first, without compiled modules
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tempfile.gettempdir(),
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout.splitlines()


def test_default_rng_is_chacha20():
    bit_generator = default_rng().bit_generator
    assert isinstance(bit_generator, ChaCha)
    assert bit_generator.state["state"]["rounds"] == 20


def keyed(monkeypatch, key: bytes, counter: int = 0, nonce: bytes = bytes(12)) -> bytes:
    """The first 128 bytes of a new default generator, given its key and where it starts.

    RFC 8439 counts blocks in the first of the last four words of the state, and has a nonce in
    the others. Here all four are one counter of blocks, and `ChaCha` is given that of words, of
    which a block has 16. Releases start at 0, as with a nonce of zeros.
    """
    start = int.from_bytes(counter.to_bytes(4, "little") + nonce, "little")
    monkeypatch.setattr(dpq_rng, "ChaCha", partial(ChaCha, counter=16 * start))
    monkeypatch.setattr(dpq_rng.secrets, "randbits", lambda bits: int.from_bytes(key, "little"))
    dpq_rng._forget()
    try:
        return default_rng().bit_generator.random_raw(16).astype("<u8").tobytes()
    finally:
        dpq_rng._forget()


def test_default_rng_gives_the_key_stream_of_rfc_8439(monkeypatch):
    # Appendix A.1, test vectors 1 and 2: a key of zeros, blocks 0 and 1
    assert keyed(monkeypatch, bytes(32)) == bytes.fromhex(
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
        "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
        "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f"
    )
    # Section 2.3.2
    stream = keyed(monkeypatch, bytes(range(32)), 1, bytes.fromhex("000000090000004a00000000"))
    assert stream[:64] == bytes.fromhex(
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
    )
    # Section 2.4.2
    plain = (
        b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the "
        b"future, sunscreen would be it."
    )
    stream = keyed(monkeypatch, bytes(range(32)), 1, bytes.fromhex("000000000000004a00000000"))
    cipher = bytes(a ^ b for a, b in zip(plain, stream[: len(plain)], strict=True))
    assert cipher == bytes.fromhex(
        "6e2e359a2568f98041ba0728dd0d6981e97e7aec1d4360c20a27afccfd9fae0b"
        "f91b65c5524733ab8f593dabcd62b3571639d624e65152ab8f530c359f0861d8"
        "07ca0dbf500d6a6156a38e088a22b65e52bc514d16ccf806818ce91ab7793736"
        "5af90bbf74a35be6b40b8eedf2785e42874d"
    )


def test_default_rng_of_fewer_rounds_would_give_another_key_stream(monkeypatch):
    expected = keyed(monkeypatch, bytes(32))
    for rounds in (8, 12, 18):
        fewer = ChaCha(key=0, rounds=rounds).random_raw(16).astype("<u8").tobytes()
        assert fewer != expected


def test_default_rng_has_a_key_of_256_bits(monkeypatch):
    asked = []

    def randbits(bits):
        asked.append(bits)
        return 12345 << 200

    monkeypatch.setattr("dpq_fast.noise.rng.secrets.randbits", randbits)
    monkeypatch.setattr("dpq_fast.noise.rng._secure", threading.local())
    draws = default_rng().integers(0, 2**63, size=4)
    assert asked == [256]
    expected = np.random.Generator(ChaCha(key=12345 << 200, rounds=20))
    np.testing.assert_array_equal(draws, expected.integers(0, 2**63, size=4))


def test_default_rng_is_kept_per_thread():
    mine = default_rng()
    assert default_rng() is mine and default_rng(None) is mine
    others = []
    barrier = threading.Barrier(4)

    def work():
        generator = default_rng()
        barrier.wait()  # all alive at once: no generator can be a freed one's place in memory
        others.append((generator, default_rng() is generator))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(kept for _, kept in others)
    generators = [mine, *(generator for generator, _ in others)]
    assert len({id(generator) for generator in generators}) == 5
    draws = [int(generator.integers(0, 2**63)) for generator in generators]
    assert len(set(draws)) == 5


def test_default_rng_hands_seeds_and_generators_on():
    generator = np.random.default_rng(3)
    assert default_rng(generator) is generator
    bit_generator = np.random.PCG64(3)
    assert default_rng(bit_generator).bit_generator is bit_generator
    for seed in (0, 7, [1, 2], np.random.SeedSequence(5)):
        again = np.random.SeedSequence(5) if isinstance(seed, np.random.SeedSequence) else seed
        drawn = default_rng(seed).integers(0, 2**63, size=3)
        np.testing.assert_array_equal(
            drawn, np.random.default_rng(again).integers(0, 2**63, size=3)
        )


@pytest.mark.parametrize("rng, error", [("seed", TypeError), (-1, ValueError), (1.5, TypeError)])
def test_default_rng_rejects_what_numpy_rejects(rng, error):
    with pytest.raises(error):
        default_rng(rng)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no os.fork on this platform")
def test_default_rng_is_replaced_in_a_forked_child():
    first, second, parent = (line.split() for line in script(FORK))
    assert [first[0], second[0], parent[0]] == ["True", "True", "True"]
    assert len({first[1], second[1], parent[1]}) == 3


def test_default_rng_does_not_repeat_in_another_process():
    assert script(FIRST_DRAW) != script(FIRST_DRAW)


# Nothing but the secure generator is drawn from, unless the caller says so

# Where a generator may be made, and why.
ALLOWED = {
    ("rng.py", "default_rng"): "the one place; a seed is the caller's wish",
    ("_calls.py", "default_rng"): "that of the references",
    ("rng.py", "child"): "ChaCha, keyed from the caller's generator",
    ("csmooth.py", "tune_t"): "synthetic data, not noise",
    ("cdf.py", "_simulated"): "a law of noise that is public; none that is released",
    ("coarse.py", "_no_release"): "which cells are narrow: the cost of a draw, never its law",
    ("samples.py", "public_rng"): "public samples, and noise of no release",
    ("calls.py", "_counted"): "a seed is the caller's wish",
    ("payroll.py", "generated_payroll"): "the made-up payroll, not noise",
    ("_diffprivlib_calls.py", "generator_of"): "a seed is the caller's wish",
    ("accounting.py", "now"): "the time of a charge, no noise",
}
# Names of types, which draw nothing.
TYPES = {"Generator", "BitGenerator", "SeedSequence"}
MODULES = {"random", "time", "uuid"}
# What types of times say of the present.
CLOCKS = {"now", "utcnow", "today"}


def drawn_from(source: str) -> list[str]:
    """The functions of a source that make or use randomness of their own, or know the time."""
    found = []

    def walk(node: ast.AST, function: str) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = node.name
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name.split(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [(node.module or "").split(".")[0]]
            if node.module in ("numpy", "numpy.random"):
                names += ["random"] * any(alias.name != "ndarray" for alias in node.names)
        made = isinstance(node, ast.Call) and ast.unparse(node.func).endswith("random.Generator")
        used = (
            isinstance(node, ast.Attribute)
            and ast.unparse(node.value) in ("np.random", "numpy.random")
            and node.attr not in TYPES
        )
        used |= isinstance(node, ast.Attribute) and node.attr in CLOCKS
        if made or used or MODULES.intersection(names):
            found.append(function)
        for child in ast.iter_child_nodes(node):
            walk(child, function)

    walk(ast.parse(source), "")
    return found


@pytest.mark.parametrize(
    "source",
    [
        "def f(): return np.random.default_rng()",
        "def f(): return numpy.random.rand(3)",
        "def f(): return np.random.Generator(np.random.PCG64(1))",
        "def f():\n    import random",
        "def f():\n    from numpy.random import default_rng",
        "def f():\n    from numpy import random",
        "def f():\n    from time import time_ns",
        "def f(): return datetime.datetime.now()",
    ],
)
def test_drawn_from_finds_it(source):
    assert "f" in drawn_from(source)
    assert drawn_from("def f(rng: np.random.Generator): return rng.random()") == []


@pytest.mark.slow
def test_package_makes_generators_in_named_places_only():
    package = Path(dpq_fast.__file__).parent
    found = {
        (path.name, function)
        for path in package.rglob("*.py")
        for function in drawn_from(path.read_text())
    }
    assert found == set(ALLOWED)


COLUMN = [1.0, 2.0, 2.0, 5.0]
RELEASES = {
    "joint_exp": lambda: dpq_fast.joint_exp(COLUMN, 0.5, epsilon=1.0, bounds=(0, 9)),
    "ind_exp": lambda: dpq_fast.ind_exp(COLUMN, 0.5, epsilon=1.0, bounds=(0, 9)),
    "approx_quantiles": lambda: dpq_fast.approx_quantiles(
        COLUMN, [0.2, 0.5], epsilon=1.0, bounds=(0, 9)
    ),
    "two_stage": lambda: dpq_fast.two_stage(COLUMN, [0.2, 0.5], epsilon=1.0, bounds=(0, 9)),
    "csmooth": lambda: dpq_fast.csmooth(COLUMN, 0.5, rho=1.0, bounds=(0, 9)),
    "quantile": lambda: dpq_fast.quantile(COLUMN, 0.5, epsilon=1.0, bounds=(0, 9)),
    "median": lambda: dpq_fast.median(COLUMN, epsilon=1.0, bounds=(0, 9)),
    "percentile": lambda: dpq_fast.percentile(COLUMN, 50, epsilon=1.0, bounds=(0, 9)),
    "min": lambda: dpq_fast.min(COLUMN, epsilon=1.0, bounds=(0, 9)),
    "max": lambda: dpq_fast.max(COLUMN, epsilon=1.0, bounds=(0, 9)),
    "iqr": lambda: dpq_fast.iqr(COLUMN, epsilon=1.0, bounds=(0, 9)),
    "box": lambda: dpq_fast.box(COLUMN, epsilon=1.0, bounds=(0, 9)),
    **{
        name: lambda name=name: getattr(dpq_fast, name)(
            COLUMN, [0, 0, 1, 1], groups=[0, 1], epsilon=1.0, bounds=(0, 9)
        )
        for name in ("min_by", "max_by", "iqr_by", "box_by")
    },
    "quantile_by": lambda: dpq_fast.quantile_by(
        COLUMN, [0, 0, 1, 1], 0.5, groups=[0, 1], epsilon=1.0, bounds=(0, 9)
    ),
    "count_by": lambda: dpq_fast.count_by(COLUMN, [0, 0, 1, 1], groups=[0, 1], epsilon=1.0),
    "sum_by": lambda: dpq_fast.sum_by(COLUMN, [0, 0, 1, 1], groups=[0, 1], epsilon=1.0),
    "mean_by": lambda: dpq_fast.mean_by(
        COLUMN, [0, 0, 1, 1], groups=[0, 1], epsilon=1.0, q=None, lower=0, upper=9
    ),
    "select_keys": lambda: dpq_fast.select_keys([1, 2, 2, 5], epsilon=1.0, delta=1e-6),
    "unbounded_quantile": lambda: dpq_fast.unbounded_quantile(COLUMN, 0.5, epsilon=1.0),
    "above_threshold": lambda: dpq_fast.above_threshold([1, 2, 3], 2, epsilon1=1.0, epsilon2=1.0),
    "sparse_vector": lambda: dpq_fast.sparse_vector(
        [1, 2, 3], 2, halts=2, epsilon1=1.0, epsilon2=1.0
    ),
    "count": lambda: dpq_fast.count(COLUMN, epsilon=1.0),
    "describe": lambda: (
        dpq_fast.describe({"x": COLUMN}, epsilon=1.0, bounds={"x": (0, 9)}).to_numpy().tolist()
    ),
    "sum": lambda: dpq_fast.sum(COLUMN, epsilon=1.0),
    "mean": lambda: dpq_fast.mean(COLUMN, epsilon=1.0),
    "histogram": lambda: dpq_fast.histogram(COLUMN, 3, (0, 9), epsilon=1.0)[0],
    "value_counts": lambda: dpq_fast.value_counts([1, 2, 2, 5], categories=[1, 2], epsilon=1.0),
    "var": lambda: dpq_fast.var(COLUMN, epsilon=1.0),
    "std": lambda: dpq_fast.std(COLUMN, epsilon=1.0, bounds=(0, 9)),
    "var_by": lambda: dpq_fast.var_by(COLUMN, [0, 0, 1, 1], groups=[0, 1], epsilon=1.0),
    "std_by": lambda: dpq_fast.std_by(COLUMN, [0, 0, 1, 1], groups=[0, 1], epsilon=1.0),
    "sum, rho": lambda: dpq_fast.sum(COLUMN, rho=1.0),
    "agg_tree": lambda: dpq_fast.agg_tree(COLUMN, 0.5, epsilon=1.0, bounds=(0, 9)),
    "AggTree.of": lambda: dpq_fast.AggTree.of(
        COLUMN, rho=1.0, noise="gaussian", bounds=(0, 9), height=2, branching=3
    ),
    "PartialTree.release": lambda: dpq_fast.PartialTree.of(COLUMN, bounds=(0, 9)).release(
        epsilon=1.0
    ),
    "cdf": lambda: dpq_fast.cdf(COLUMN, epsilon=1.0, bounds=(0, 9)),
    "cdf, adaptive": lambda: dpq_fast.cdf(COLUMN, epsilon=1.0, bounds=(0, 9), method="adaptive"),
    "cdf, factorized": lambda: dpq_fast.cdf(COLUMN, rho=1.0, bounds=(0, 9), method="factorized"),
    "cdf, gaussian": lambda: dpq_fast.cdf(COLUMN, rho=1.0, bounds=(0, 9), method="gaussian"),
    "cdf, smooth_gaussian": lambda: dpq_fast.cdf(
        COLUMN, epsilon=1.0, delta=1e-6, bounds=(0, 9), method="smooth_gaussian"
    ),
    "joint_exp_law": lambda: dpq_fast.joint_exp_law(
        COLUMN, 0.5, epsilon=1.0, bounds=(0, 9)
    ).sample(),
    "ind_exp_law": lambda: dpq_fast.ind_exp_law(COLUMN, 0.5, epsilon=1.0, bounds=(0, 9)).sample(),
    "approx_quantiles_law": lambda: dpq_fast.approx_quantiles_law(
        COLUMN, 0.5, epsilon=1.0, bounds=(0, 9)
    ).sample(),
    "two_stage_law": lambda: dpq_fast.two_stage_law(
        COLUMN, 0.5, epsilon=1.0, bounds=(0, 9)
    ).sample(),
    "unbounded_quantile_law": lambda: dpq_fast.unbounded_quantile_law(
        COLUMN, 0.5, epsilon=1.0
    ).sample(),
    "above_threshold_law": lambda: dpq_fast.above_threshold_law(
        [1, 2, 3], 2, epsilon1=1.0, epsilon2=1.0
    ).sample(),
    "noise.discrete_laplace": lambda: dpq_fast.noise.discrete_laplace(5),
    "noise.discrete_gaussian": lambda: dpq_fast.noise.discrete_gaussian(5),
    "noise.bernoulli_exp": lambda: dpq_fast.noise.bernoulli_exp(0.5),
    "Sample": lambda: dpq_fast.Sample.of(COLUMN, (0, 9), resolution=1).order(),
}


@pytest.mark.parametrize("name", RELEASES)
def test_default_generator_of_every_function_is_the_secure_one(name, monkeypatch):
    def handed_on(rng=None):
        assert isinstance(rng, np.random.Generator)  # nothing is seeded by NumPy
        return rng

    monkeypatch.setattr(np.random, "default_rng", handed_on)
    generator = default_rng()
    before = repr(generator.bit_generator.state)
    for _ in range(4):  # a draw may take bits that are left over
        RELEASES[name]()
    assert repr(generator.bit_generator.state) != before
    assert default_rng() is generator


def test_every_public_function_is_in_the_list_of_releases():
    functions = {name for name in dpq_fast.__all__ if callable(getattr(dpq_fast, name))}
    others = {"AggTree", "PartialTree", "CDF"}  # classes: what draws in them has a line of its own
    others |= {"Box", "Estimate", "Plan", "plan", "plan_mean", "plan_sum", "Table"}  # no releases
    # answers, and what stands for counts
    others |= {"GroupBoxes", "GroupQuantiles", "GroupValues", "Weights"}
    others |= {"together"}  # of others
    others |= {"Accountant", "BudgetExceeded", "Guarantee"}  # what is spent
    assert functions - others <= set(RELEASES)


FORK_WITH_THREADS = """
import os, threading
import dpq_fast
from dpq_fast.noise.rng import default_rng

def drawn(threads):
    out, barrier = [], threading.Barrier(threads)
    def work():
        barrier.wait()  # all alive at once
        out.extend(int(default_rng().integers(0, 2**63)) for _ in range(5))
    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers: worker.start()
    for worker in workers: worker.join()
    return out + [int(default_rng().integers(0, 2**63)) for _ in range(5)]

numbers = drawn(4)
receive, send = os.pipe()
for _ in range(3):
    child = os.fork()
    if child == 0:
        os.write(send, (" ".join(map(str, drawn(4))) + "\\n").encode())
        os._exit(0)
    os.waitpid(child, 0)
    numbers += drawn(2)
print(os.read(receive, 65536).decode(), end="")
print(*numbers)
"""
SAME_CLOCK = """
import os, time
time.time = time.monotonic = time.perf_counter = lambda: 1e9
time.time_ns = time.monotonic_ns = time.perf_counter_ns = lambda: 10**18
os.getpid = lambda: 1
import dpq_fast
from dpq_fast.noise.rng import default_rng
print(default_rng().integers(0, 2**63))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no os.fork on this platform")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_no_number_is_drawn_twice_by_threads_of_forked_processes():
    numbers = [number for line in script(FORK_WITH_THREADS) for number in line.split()]
    assert len(numbers) == 3 * 25 + 25 + 3 * 15
    assert len(set(numbers)) == len(numbers)


def test_generator_does_not_depend_on_clock_or_process_number():
    assert script(SAME_CLOCK) != script(SAME_CLOCK)
