"""Tables of the guides that cite measurements, made of the pages of the benchmarks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_DOCS: Final = Path(__file__).parent
_BENCHMARKS: Final = "[benchmarks](benchmarks.md)"
_WIRE: Final = "[on the wire](benchmarks-wire.md)"
_DELETE: Final = "delete 0.1 % of 10,000,000 rows"
_MERGE: Final = "merge 200,000 rows into 10,000,000"
_SPREAD: Final = "with half of them spread over all files"
_COMMITS: Final = "1,000 commits of one row by one writer"
_CLASSIC: Final = "open a checkpointed table of 1,000,000 files"
_SIZES: Final = (10_000, 100_000, 1_000_000, 10_000_000)


def growing_tables() -> str:
    """Tables by their number of files: time and memory to open, plan and append."""
    measured = {tuple(row[:2]): row[2] for row in _rows(_page("benchmarks-sizes")) if len(row) > 4}
    operations = ("open", "plan `id = x`", "append a row")
    rows = [
        (f"{files:,}", *(measured[f"{files:,}", what] for what in operations)) for files in _SIZES
    ]
    classic = _CLASSIC, "open it, and plan a scan of `id = x`"
    measures = [f"{_time(title)}, {_memory(title)}" for title in classic]
    rows.append((f"{1_000_000:,}, classic checkpoint", *measures, ""))
    return _table(("files", *operations), rows)


def memory_of_operations() -> str:
    """What each operation keeps in memory, and how much that was."""
    read = _memory("read 10,000,000 rows, compared with pyarrow on the same files")
    batches = _memory("read 10,000,000 rows batch by batch")
    partitioned = _memory("append 10,000,000 rows to 100 partitions")
    delete = _memory(f"{_DELETE}, in two files, with deletion vectors")
    update = _memory("update 0.1 % of 10,000,000 rows, in two files, with deletion vectors")
    merge = _memory("merge 200,000 rows into ten times 10,000,000, with less than 2 GB")
    checkpoint = _memory("open a table of 1,000,000 files, and write a checkpoint")
    changes = f"0.1 % of 10,000,000 rows, with deletion vectors: {delete} and {update}"
    spilled = "`max_spill_size`, 512 MiB; more rows are in temporary files"
    rows = [
        ("read all rows at once (`to_pandas`, `to_arrow`)", "all rows", f"10,000,000 rows: {read}"),
        ("read batch by batch (`for batch in scan`)", "some batches", f"the same rows: {batches}"),
        (
            "append",
            "some batches, and the open files of partitions",
            f"100 partitions: {partitioned}",
        ),
        ("delete, update", "some row groups", changes),
        (
            "merge",
            "the source's keys, and the matching rows",
            f"200,000 rows into 100,000,000: {merge}",
        ),
        ("sort (`z_order`, `cluster`)", spilled, ""),
        ("write a checkpoint", "the file list", f"1,000,000 files: {checkpoint}"),
    ]
    return _table(("operation", "memory for", "measured"), rows)


def times_of_operations() -> str:
    """How long common operations take."""
    imported = "`from deltalog import DeltaTable`: processor time in addition to `import pyarrow`"
    few, many = (
        _shown(_wire_ms(f"open: a checkpoint of {files} files and ten commits"))
        for files in ("500", "1,000,000")
    )
    read = "read 10,000,000 rows, compared with pyarrow on the same files"
    vectors = "read 10,000,000 rows with a deletion vector on every file"
    unsynced = _ms("1,000 commits of one row, without `fsync` (as deltalake)")
    marked = _time(f"{_DELETE}, in two files, with deletion vectors")
    rewritten = _time(f"{_DELETE} by rewriting two files")
    merge = _time(f"{_MERGE}, {_SPREAD}")
    rewriting = _time(f"{_MERGE} by rewriting files, {_SPREAD}")
    on_the_wire = _shown(_wire_ms("open and append a row, 100 times") / 100)
    deletes = f"{marked} with deletion vectors, {rewritten} with rewritten files"
    merges = f"{merge} with deletion vectors, {rewriting} with rewritten files"
    rows = [
        ("import", f"{_time(imported)} of processor time above pyarrow", _BENCHMARKS),
        ("open a table on S3, 5 ms away", f"{few} for 500 files, {many} for 1,000,000", _WIRE),
        ("read 10,000,000 rows, local", _time(read), _BENCHMARKS),
        ("read them with a deletion vector for each file", _time(vectors), _BENCHMARKS),
        ("append them", _time("append 10,000,000 rows"), _BENCHMARKS),
        ("commit one row, local, synced to the disk", _shown(_ms(_COMMITS) / 1000), _BENCHMARKS),
        ("the same without `fsync`", _shown(unsynced / 1000), _BENCHMARKS),
        ("commit one row on S3, 5 ms away", on_the_wire, _WIRE),
        (_DELETE, deletes, _BENCHMARKS),
        ("merge 200,000 rows into them", merges, _BENCHMARKS),
    ]
    return _table(("operation", "time", "source"), rows)


def times_of_appends() -> str:
    """One commit per row, compared with an appender."""
    together = _time("1,000 rows by 16 threads with `appender`, compared with 1,000 commits")
    alone = _shown(_wire_ms("open and append a row, 100 times"))
    threads = _shown(
        _wire_ms("open and append 100 rows by 16 threads, against one after the other")
    )
    rows = [
        ("1,000 rows, local disk", _time(_COMMITS), together, _BENCHMARKS),
        ("100 rows, S3 with a latency of 5 ms", alone, threads, _WIRE),
    ]
    return _table(("", "one commit per row", "appender, 16 threads", ""), rows)


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, *rows]
    first, *others = (f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines)
    return "\n".join([first, "|---" * len(head) + "|", *others])


def _page(name: str) -> str:
    return (_DOCS / f"{name}.md").read_text("utf-8")


def _rows(text: str) -> list[list[str]]:
    """The cells of all rows of all tables of a page."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def _ours(title: str) -> str:
    """What deltalog took for a workload: its time and memory, without the subject's name."""
    found = [
        row
        for row in _rows(_page("benchmarks"))
        if row[0] == title or row[0].startswith(f"{title},")
    ]
    if not found:
        raise LookupError(f"docs/benchmarks.md has no workload {title!r}")
    exact = [row for row in found if row[0] == title]
    return (exact or found)[0][1].rpartition("`")[2].strip()


def _ms(title: str) -> float:
    return _number(_ours(title), "ms")


def _time(title: str) -> str:
    return _shown(_ms(title))


def _memory(title: str) -> str:
    return f"{_number(_ours(title), 'MB'):.0f} MB"


def _wire_ms(operation: str) -> float:
    """The time of an operation over a network with a latency of 5 ms."""
    section = _page("benchmarks-wire").partition("\n## 5 ms\n")[2].partition("\n## ")[0]
    for row in _rows(section):
        if row[0] == operation:
            return _number(row[2], "ms")
    raise LookupError(f"docs/benchmarks-wire.md has no operation {operation!r}")


def _number(text: str, unit: str) -> float:
    found = re.search(rf"([\d,.]+) {unit}\b", text)
    if not found:
        raise LookupError(f"{text!r} has no number of {unit}")
    return float(found[1].replace(",", ""))


def _shown(milliseconds: float) -> str:
    """A time with two digits or, from 100 ms, none after the point."""
    if milliseconds >= 1000:
        return f"{milliseconds / 1000:.1f} s"
    return f"{milliseconds:.2g} ms" if milliseconds < 10 else f"{milliseconds:.0f} ms"
