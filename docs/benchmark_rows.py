"""What `benchmarks.md` measured against one other library; rows in which it is faster are bold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_PAGE = Path(__file__).parent / "benchmarks.md"
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def rows_against(prefix: str) -> str:
    """A Markdown table of the workloads whose other subject's name begins with `prefix`.

    Args:
        prefix: such as `deltalake_`; subjects are named after their library.
    """
    rows = [
        f"| {title} | {ours} | {other} | {f'{ratio:.2f}' if ratio >= 1 else f'**{ratio:.2f}**'} |\n"
        for title, subject, ours, other, ratio in _rows()
        if subject.startswith(prefix)
    ]
    if not rows:
        raise LookupError(f"docs/benchmarks.md has no row of a subject {prefix!r}")
    head = "| workload | deltalog | other library | times as fast |\n|---|---|---|---|\n"
    return head + "".join(rows)


def _rows() -> Iterator[tuple[str, str, str, str, float]]:
    """Title, the other's subject, both measures, and how many times as fast deltalog is."""
    before = ""
    for line in _PAGE.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        ratio = _NUMBER.match(cells[3]) if len(cells) == 6 else None
        if not ratio:
            continue
        title = cells[0]
        if "the same, against" in title:  # as the row before, which is about another library
            title = f"{before.partition(', against')[0]}, against{title.partition(', against')[2]}"
        before = title
        subject = cells[2].strip("`").partition("`")[0]
        yield title, subject, _measure(cells[1]), _measure(cells[2]), float(ratio[0])


def _measure(cell: str) -> str:
    """Time and memory, without the subject's name."""
    return cell.rpartition("`")[2].strip().removesuffix(", 0 MB")
