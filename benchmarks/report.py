"""The page of the documentation with the results."""

from __future__ import annotations

import importlib.metadata
import math
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.chart import Bar, draw
from benchmarks.workloads import WORKLOADS, Size, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Medians of one subject over a number of turns."""

    subject: str
    turns: int
    seconds: float
    memory_bytes: int
    answer: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One workload: deltalog, and the fastest of the others, if there are any."""

    workload: Workload
    ours: Measured
    other: Measured | None

    @property
    def ratio(self) -> float:
        """How many times as fast deltalog is as the other library, or as the goal."""
        theirs = self.workload.most_seconds if self.other is None else self.other.seconds
        return (theirs or 0) / self.ours.seconds

    @property
    def memory_ratio(self) -> float:
        """The memory of deltalog relative to that of the other library."""
        theirs = 0 if self.other is None else self.other.memory_bytes
        return self.ours.memory_bytes / max(1, theirs)

    @property
    def is_met(self) -> bool:
        """Whether all goals are reached."""
        workload = self.workload
        goal, most = workload.memory_goal, workload.most_bytes
        return (
            self.ratio >= workload.goal
            and (goal is None or self.memory_ratio <= goal)
            and (most is None or self.ours.memory_bytes <= most)
            and all(amounts(self.ours)[what] <= limit for what, limit in workload.limits)
        )

    def to_json(self) -> dict[str, object]:
        """Return the result for the next run, with the name of the workload."""
        other = None if self.other is None else asdict(self.other)
        return {"ours": asdict(self.ours), "other": other}


def kept(found: Mapping[str, Mapping[str, Any]]) -> dict[str, Result]:
    """Return the results of `to_json` for workloads that still exist."""
    results = {}
    for workload in WORKLOADS:
        if (one := found.get(workload.name)) is not None:
            other = None if one["other"] is None else Measured(**one["other"])
            results[workload.name] = Result(
                workload=workload, ours=Measured(**one["ours"]), other=other
            )
    return results


GROUPS = {
    "Open and plan": ("open", "plan", "commits", "import", "first-write", "checkpoint", "iceberg"),
    "Read": ("scan", "scan-peer", "vectors", "lookup", "wide-open", "wide-scan"),
    "Write": (
        *("append", "append-parquet", "partitioned", "wide-append"),
        *("small-commits", "unsynced-commits", "path-commits", "path-commits-unsynced"),
        *("appender", "fsync"),
    ),
    "Change and maintain": (
        *("delete", "delete-rewrite", "delete-rewrite-unsynced", "update"),
        *("merge", "merge-near", "merge-rewrite", "merge-near-rewrite"),
        *("merge-large", "merge-ranges"),
        *("compact", "compact-parquet", "z-order", "vacuum-lite"),
    ),
    "Key index": (
        *("key-lookup", "key-merge", "key-merge-spark", "key-merge-one", "key-upserts"),
        *("key-build", "key-huge-lookup", "key-huge-open", "key-append"),
    ),
    "Delta Sharing": (
        *("share-load", "share-column", "share-point", "share-first-line", "share-lines"),
    ),
    "Spark": (
        *("spark-read", "spark-read-delta", "spark-column", "spark-column-delta"),
        *("spark-vectors", "spark-vectors-delta"),
        *("spark-read-format-count", "spark-read-format-column", "spark-read-format-point"),
        *("spark-feed", "spark-append", "spark-append-large", "spark-append-format"),
        *("spark-merge", "spark-plan", "spark-stream"),
    ),
}
"""The sections of the page, and the workloads of each, in their order."""
DRAWN = (
    *("open", "plan", "scan-peer", "lookup", "wide-scan", "append", "small-commits"),
    *("delete", "merge", "compact", "z-order", "key-lookup", "key-merge", "share-load"),
    *("spark-read-delta", "spark-merge"),
)
"""The workloads of the chart: the common operations, also those in which others are faster."""
_HEAD = """\
| workload | deltalog | other | ratio | goal | goal met |
|---|---|---|---|---|---|
"""

_PAGE = """\
# Benchmarks

How fast deltalog reads, writes and changes tables, compared with the fastest way of another
library; rows in which that library is faster are here, too. The tables are made with pyarrow and
the standard library, without deltalog; the data files have page indexes, and dictionaries only for
strings, as those of deltalog. Each library runs in a process of its own, in turns. Times are
medians of {turns} runs or more and do not include imports. Memory is the peak in addition to the
memory after the imports. A ratio above 1 means that deltalog is faster. The names in code are
those of the functions in `benchmarks/subjects.py`, and `make bench` repeats the measurements and
rewrites this page.

The chart shows the most common operations, and the tables below show all workloads.

![The ratios of common operations](benchmarks.svg)

Measured on {machine} with Python {python}, {versions}. Results vary between
machines and runs: a ratio within 10 % of its goal can be on the other side of it in another run.

{tables}
{reasons}"""


def render(results: list[Result], size: Size) -> str:
    """Return the page in Markdown."""
    packages = ("deltalog", "deltalake", "pyarrow")
    return _PAGE.format(
        turns=min(result.ours.turns for result in results),
        tables=tables(results, size),
        machine=f"{os.cpu_count()} cores ({platform.machine()})",
        python=platform.python_version(),
        versions=", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages),
        reasons=_reasons(results, size),
    )


def tables(results: list[Result], size: Size) -> str:
    """Return the sections of the page: a table of all workloads of each group that has results."""
    by_name = {result.workload.name: result for result in results}
    sections = []
    for title, names in GROUPS.items():
        rows = "".join(_row(by_name[name], size) for name in names if name in by_name)
        if rows:
            sections.append(f"## {title}\n\n{_HEAD}{rows}")
    return "\n".join(sections)


def picture(results: list[Result], size: Size) -> str:
    """Return a chart of the ratios of `DRAWN` as SVG."""
    by_name = {result.workload.name: result for result in results}
    found = [by_name[name] for name in DRAWN if name in by_name]
    return draw(
        [
            Bar(_title(one, size), one.ratio, one.workload.goal, one.is_met)
            for one in found
            if math.isfinite(one.ratio)
        ]
    )


def summary(result: Result) -> str:
    """Return a summary line for the terminal."""
    theirs = (
        "" if result.other is None else f", {result.other.subject} {result.other.seconds:.4f} s"
    )
    return (
        f"{result.ours.seconds:.4f} s{theirs}: {result.ratio:.2f} times, goal "
        f"{result.workload.goal:.2f}, memory {result.memory_ratio:.2f}"
    )


def _reasons(results: list[Result], size: Size) -> str:
    """Return the reasons why goals are not reached."""
    missed = [result for result in results if not result.is_met]
    if not missed:
        return ""
    lines = [f"- {_title(result, size)}: {result.workload.why}." for result in missed]
    return "## Goals that are not met\n\n" + "\n".join(lines) + "\n"


def _title(result: Result, size: Size) -> str:
    return result.workload.title.format_map(asdict(size))


def _row(result: Result, size: Size) -> str:
    workload = result.workload
    title = _title(result, size)
    goal = f"≥ {workload.goal:.2f}"
    if workload.most_seconds is not None:
        goal = f"≤ {workload.most_seconds * 1_000:,.0f} ms"
    ratio = f"{result.ratio:.2f}"
    if workload.memory_goal is not None:
        goal += f", memory ≤ {workload.memory_goal:.2f}"
        ratio += f", memory {result.memory_ratio:.2f}"
    if workload.most_bytes is not None:
        goal += f", ≤ {workload.most_bytes / 1_000_000:,.0f} MB"
    goal += "".join(f", ≤ {limit:g} {what}" for what, limit in workload.limits)
    other = "none" if result.other is None else _cell(result.other)
    return (
        f"| {title} | {_measure(result.ours)} | {other} "
        f"| {ratio} | {goal} | {'yes' if result.is_met else 'no'} |\n"
    )


def _cell(measured: Measured) -> str:
    """Return the name of another subject, whose library it names, and what was measured."""
    return f"`{measured.subject}` {_measure(measured)}"


def _measure(measured: Measured) -> str:
    memory = measured.memory_bytes / 1_000_000
    counts = measured.answer if isinstance(measured.answer, Mapping) else {}
    fixed = amounts(measured)
    rates = "".join(
        f", {n / measured.seconds:,.0f} {what}/s" for what, n in counts.items() if what not in fixed
    )
    more = "".join(f", {n:,.1f} {what}" for what, n in fixed.items())
    return f"{measured.seconds * 1_000:,.1f} ms, {memory:,.0f} MB{rates}{more}"


def amounts(measured: Measured) -> dict[str, float]:
    """Return the numbers in a subject's result that do not depend on the time."""
    counts = measured.answer if isinstance(measured.answer, Mapping) else {}
    return {what: float(n) for what, n in counts.items() if " per " in what}
