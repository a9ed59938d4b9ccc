"""Damaged files that are read in a process of their own, which must survive them."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


def lines_of(module: str, directory: Path, first: int, inputs: int, *more: str) -> list[str]:
    """What a process says that damages a file of `directory`: the seed of each input, at least.

    Fails if the process has ended badly.
    """
    ran = subprocess.run(
        [sys.executable, "-m", module, str(directory), str(first), str(inputs), *more],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    lines = ran.stdout.splitlines()
    assert ran.returncode == 0, f"ended with {ran.returncode} after {lines[-1:]}: {ran.stderr}"
    return lines


def damage_bytes(data: bytes, rng: random.Random) -> bytes:
    """One to three accidents: flips, gaps, repeats, garbage, a cut."""
    damaged = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at = rng.randrange(len(damaged) + 1)
        length = rng.choice((1, 1, 2, 4, 16, 64))
        match rng.randrange(6):
            case 0 if at < len(damaged):
                damaged[at] ^= 1 << rng.randrange(8)
            case 1:
                del damaged[at : at + length]
            case 2:
                damaged[at:at] = damaged[at : at + length]
            case 3:
                damaged[at:at] = rng.randbytes(length)
            case 4:
                damaged[at : at + length] = bytes(len(damaged[at : at + length]))
            case _:
                del damaged[at:]
    return bytes(damaged)


def damage_footer(data: bytes, rng: random.Random) -> bytes:
    """One to three bytes of the footer become others; its length and the magic stay."""
    (length,) = struct.unpack("<I", data[-8:-4])
    damaged = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        damaged[rng.randrange(len(data) - 8 - length, len(data) - 8)] = rng.randrange(256)
    return bytes(damaged)


def damaged(file: Path, first: int, inputs: int, part: str) -> Iterator[None]:
    """Damage a Parquet file time after time, and make it whole at the end.

    Says the seed of each input before it is tried, so that the last one names the culprit.

    Args:
        file: as it is whole.
        first: seed of the first input.
        inputs: how many.
        part: `footer` or `pages`.
    """
    original = file.read_bytes()
    footer_bytes = int.from_bytes(original[-8:-4], "little") + 8
    for seed in range(first, first + inputs):
        sys.stdout.write(f"{seed}\n")
        sys.stdout.flush()
        rng = random.Random(seed)
        if part == "footer":
            file.write_bytes(damage_footer(original, rng))
        else:
            tail = original[-footer_bytes:]
            file.write_bytes(damage_bytes(original[:-footer_bytes], rng) + tail)
        yield
    file.write_bytes(original)
