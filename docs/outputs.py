"""Outputs below the Python blocks of pages: found, compared with what a run printed, written.

A block is followed by what it prints:

    <!-- output -->
    ```text
    3 rows
    ```

Nobody types that: `make outputs` runs the pages and writes it. What is different each time
(moments, durations, sizes, ids) is compared by its kind, see `VARYING`; the page keeps the values
of one run. `<!-- not run: reason -->` and `<!-- output not shown: reason -->` before a block say
why it is an exception.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_BLOCK = re.compile(
    r"(?:^<!-- (?P<exception>not run|output not shown): (?P<why>[^\n]+?) -->\n)?"
    r"^```python\n(?P<code>.*?)^```\n"
    r"(?P<below>\n<!-- output -->\n```text\n(?P<output>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)

_UUID: Final = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
# Kinds of values that no two runs share, each with the name that it is compared by.
VARYING: Final = (
    # 2026-11-23 13:31:07.123+00:00, with T, Z or UTC, to the minute or finer
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?( ?(Z|UTC|[+-]\d\d:?\d\d))?", "<moment>"),
    (r"\b1[5-9]\d{11}\b", "<moment>"),  # milliseconds since 1970
    (_UUID, "<id>"),
    (r"\b\d[\d,.]* ?(bytes|B|[KMGT]i?B)\b", "<size>"),
    (r"(['\"]?\w*([Ss]ize|[Bb]ytes)\w*['\"]?: ?)\d+", r"\1<size>"),
    (r"(['\"]?\w*(_ms|TimeMs)['\"]?: ?)\d+", r"\1<duration>"),
    (r"\b\d+(\.\d+)? ?(ms|s)\b", "<duration>"),
    (r"(127\.0\.0\.1|localhost):\d+", "<address>"),
)


@dataclass(frozen=True, slots=True)
class Block:
    """A Python block of a page.

    Args:
        code: what is run.
        line: of the page, before the first of the code.
        is_run: whether it is.
        is_hidden: whether what it prints is left out, with a reason.
        output: what the page says that it prints; None where it says nothing.
        end: where the block ends in the page's text.
        output_end: where its output ends; the same as `end` where there is none.
    """

    code: str
    line: int
    is_run: bool
    is_hidden: bool
    output: str | None
    end: int
    output_end: int


def find_blocks(text: str) -> list[Block]:
    """The Python blocks of a page, in order."""
    return [
        Block(
            code=found["code"],
            line=text.count("\n", 0, found.start("code")),
            is_run=found["exception"] != "not run",
            is_hidden=found["exception"] == "output not shown",
            output=found["output"],
            end=found.start("below") if found["below"] else found.end(),
            output_end=found.end(),
        )
        for found in _BLOCK.finditer(text)
    ]


def is_same(shown: str, printed: str) -> bool:
    """Whether an output is what was printed, but for values that vary and the width they take."""
    return shown == printed or _settled(shown) == _settled(printed)


def _settled(text: str) -> list[str]:
    for pattern, name in VARYING:
        text = re.sub(pattern, name, text)
    # A longer value widens its column, and the line below the column's name.
    text = re.sub(r"([-─═])\1+", r"\1", re.sub(r"[ \t]+", " ", text))
    return [line.strip() for line in text.strip().splitlines()]


def disagreement(block: Block, printed: str) -> str | None:
    """What is wrong with the output of a block; None if nothing is."""
    shown = None if block.is_hidden else block.output
    if block.is_hidden or is_same(shown or "", printed):
        return None
    return (
        f"line {block.line}: `make outputs` brings up to date what this block prints\n"
        f"--- printed\n{printed}--- shown\n{shown or 'nothing'}"
    )


def with_outputs(text: str, printed: Sequence[str]) -> str:
    """The page with each block's output below it, all of one run; unchanged if all are the same.

    Args:
        text: of the page.
        printed: by each of its blocks; empty where a block is not run.
    """
    parts, done = [], 0
    pairs = list(zip(find_blocks(text), printed, strict=True))
    if not any(disagreement(*pair) for pair in pairs if pair[0].is_run):
        return text
    for block, output in pairs:
        parts.append(text[done : block.end])
        if block.is_run:
            parts.append(_below(output) if output.strip() and not block.is_hidden else "")
        else:
            parts.append(text[block.end : block.output_end])
        done = block.output_end
    return "".join([*parts, text[done:]])


def _below(output: str) -> str:
    lines = "\n".join(line.rstrip() for line in output.strip("\n").splitlines())
    return f"\n<!-- output -->\n```text\n{lines}\n```\n"
