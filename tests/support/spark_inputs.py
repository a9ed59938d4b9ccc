"""Expressions over edge values, for `spark_answers` to record Spark's answers to them.

`python -m tests.support.spark_inputs [function …]` prints the calls of the functions in
`spark_inputs.toml`, one a line: of each the combinations of its arguments' values, or a seeded
sample where they are many.
"""

from __future__ import annotations

import itertools
import random
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST: Final = 24
_INPUTS: Final[dict[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())


def expressions(wanted: list[str]) -> Iterator[str]:
    """The calls of some functions, or of all."""
    for row in _INPUTS["functions"]:
        for name in row["names"]:
            if not wanted or name in wanted:
                yield from _calls(name, list(map(_pool, row["arguments"])), row.get("optional", 0))


def _pool(values: list[str]) -> list[str]:
    found: list[str] = []
    for value in values:
        found += _pool(_INPUTS["pools"][value[1:]]) if value.startswith("@") else [value]
    return found


def _calls(name: str, pools: list[list[str]], optional: int) -> Iterator[str]:
    for count in range(len(pools) - optional, len(pools) + 1):
        rows = list(itertools.product(*pools[:count]))
        # The seed is the name, so that another function does not change this one's sample.
        chooser = random.Random(f"{name} {count}")
        if len(rows) > _MOST and count > 1:
            rows = chooser.sample(rows, min(len(rows), _MOST * count))
        for row in rows:
            yield f"{name}({', '.join(row)})"


if __name__ == "__main__":
    for expression in expressions(sys.argv[1:]):
        sys.stdout.write(expression + "\n")
