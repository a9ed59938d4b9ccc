"""What `benchmarks.md` measured against one other library, the rows that deltalog loses first."""

from __future__ import annotations

import re
from pathlib import Path

_PAGE = Path(__file__).parent / "benchmarks.md"
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def rows_against(prefix: str) -> str:
    """A Markdown table of the workloads whose other subject's name begins with `prefix`.

    Args:
        prefix: such as `deltalake_`; subjects are named after their library.
    """
    rows = sorted(_rows(prefix))
    if not rows:
        raise LookupError(f"docs/benchmarks.md has no row of a subject {prefix!r}")
    lines = [
        f"| {title} | {ours} | {other} | {ratio:.2f} |\n" for ratio, title, ours, other in rows
    ]
    head = "| workload | deltalog | the other | times quicker |\n|---|---|---|---|\n"
    return head + "".join(lines)


def _rows(prefix: str) -> list[tuple[float, str, str, str]]:
    found = []
    for line in _PAGE.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 6 and cells[2].startswith(f"`{prefix}"):
            ratio = _NUMBER.search(cells[3])
            assert ratio, f"no ratio in {line!r}"
            found.append((float(ratio[0]), cells[0], _time(cells[1]), _time(cells[2])))
    return found


def _time(cell: str) -> str:
    """Time and memory, without the subject's name."""
    return cell.rpartition("`")[2].strip().removesuffix(", 0 MB")
