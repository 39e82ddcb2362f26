"""The secure default generator: what it is, whose it is, and that nobody else repeats it."""

import os
import subprocess
import sys
import tempfile
import threading

import numpy as np
import pytest
from randomgen import ChaCha

from dpq_fast.rng import default_rng

FORK = """
import os
from dpq_fast.rng import default_rng

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
FIRST_DRAW = "from dpq_fast.rng import default_rng; print(default_rng().integers(0, 2**63))"


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


def test_default_rng_has_a_key_of_256_bits(monkeypatch):
    asked = []

    def randbits(bits):
        asked.append(bits)
        return 12345 << 200

    monkeypatch.setattr("dpq_fast.rng.secrets.randbits", randbits)
    monkeypatch.setattr("dpq_fast.rng._secure", threading.local())
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
