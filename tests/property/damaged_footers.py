"""Reads a table whose checkpoint's footer is damaged, again and again; a process of its own.

What a damaged footer breaks may be the process, not a test: Arrow decodes by it. The parent sees
from the last seed that was printed where it ended.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from deltalog.errors import DeltaError
from tests.property.test_fuzz import make_subject
from tests.support.damaging import damage_footer


def main(directory: str, first_seed: int, inputs: int) -> None:
    """Any exception that is not ours ends the process with it."""
    subject = make_subject(Path(directory), keep_commits=False)
    original = subject.checkpoint.read_bytes()
    for seed in range(first_seed, first_seed + inputs):
        sys.stdout.write(f"{seed}\n")
        sys.stdout.flush()
        subject.checkpoint.write_bytes(damage_footer(original, random.Random(seed)))
        try:
            subject.read()
        except DeltaError:
            continue


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
