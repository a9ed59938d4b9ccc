"""`python -m benchmarks.sizes [--files N …] [--directory DIR] [--report FILE]`: tables that grow.

It measures how opening, planning and appending depend on the number of files. The checkpoints are
V2, with a sidecar for each 100,000 files, and statistics as JSON and as columns. Files are sorted
by `id`, so footers exclude sidecars, and are not sorted by `mixed`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from benchmarks.asking import ROOT, ask, in_turns
from benchmarks.tables import MAP, ROWS_PER_FILE, metadata_action, schema_text

FILES = (10_000, 100_000, 1_000_000, 10_000_000)
SIDECAR_FILES = 100_000
GROUP_FILES = 50_000
REPEATS = 5
_MULTIPLIER = 7_368_787  # a prime: `mixed` runs through all files in an order of its own

SUBJECTS: Mapping[str, str] = {
    "deltalog_open": "open",
    "deltalake_open": "open",
    "deltalog_plan": "plan `id = x`",
    "deltalake_plan": "plan `id = x`",
    "deltalog_plan_mixed": "plan `mixed = x`",
    "deltalake_plan_mixed": "plan `mixed = x`",
    "deltalog_append_row": "append a row",
    "deltalake_append_row": "append a row",
}
pc: Any = pyarrow.compute  # the stubs know no texts beside arrays of texts
_SCHEMA = schema_text(("id", "long"), ("mixed", "long"), ("day", "integer"))
_FEATURES = ["v2Checkpoint"]
_PROTOCOL = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": _FEATURES,
    "writerFeatures": _FEATURES,
}


def build(directory: Path, num_files: int) -> Path:
    """Return the path of a table with this number of files; build it unless it is complete."""
    path = directory / f"sizes-{num_files}"
    log = path / "_delta_log"
    if (path / "finished").exists():
        return path
    shutil.rmtree(path, ignore_errors=True)
    (log / "_sidecars").mkdir(parents=True)
    first: list[dict[str, object]] = [
        {"protocol": _PROTOCOL},
        {"metaData": metadata_action(_SCHEMA, ["day"], **{"delta.checkpointPolicy": "v2"})},
    ]
    _write_lines(log / f"{0:020d}.json", [{"commitInfo": {"operation": "CREATE TABLE"}}, *first])
    top: list[dict[str, object]] = [{"checkpointMetadata": {"version": 0}}, *first]
    for start in range(0, num_files, SIDECAR_FILES):
        name = f"{start:012d}.parquet"
        rows = np.arange(start, min(start + SIDECAR_FILES, num_files))
        adds = _adds(rows, num_files)
        pq.write_table(adds, log / "_sidecars" / name, row_group_size=GROUP_FILES)
        size = (log / "_sidecars" / name).stat().st_size
        top.append({"sidecar": {"path": name, "sizeInBytes": size, "modificationTime": 1}})
    name = f"{0:020d}.checkpoint.8c24f1a2-6b0f-4f6e-9f3c-0d6f5f1f7a01.json"
    _write_lines(log / name, top)
    (path / "finished").touch()
    return path


def _write_lines(path: Path, objects: Sequence[Mapping[str, object]]) -> None:
    lines = [json.dumps(one, separators=(",", ":")) for one in objects]
    path.write_text("\n".join(lines) + "\n", "utf-8")


def _adds(numbers: np.ndarray[tuple[int], np.dtype[np.int64]], num_files: int) -> pa.Table:
    low, mixed = numbers * ROWS_PER_FILE, (numbers * _MULTIPLIER % num_files) * ROWS_PER_FILE
    bounds = [pa.array(values) for values in (low, mixed)]
    ends = [pc.add(values, ROWS_PER_FILE - 1) for values in bounds]
    texts = [pc.cast(values, pa.string()) for values in (*bounds, *ends)]
    pieces = [f'{{"numRecords":{ROWS_PER_FILE},"minValues":{{"id":', ',"mixed":']
    pieces += ['},"maxValues":{"id":', ',"mixed":', '},"nullCount":{"id":0,"mixed":0}}']
    joined = [text for pair in zip(pieces, texts, strict=False) for text in pair]
    count = len(numbers)
    days = pa.array(numbers * 100 // num_files)
    day_texts = pc.cast(days, pa.string())
    number_texts = pc.utf8_lpad(pc.cast(pa.array(numbers), pa.string()), 9, "0")
    offsets = pa.array(np.arange(count + 1, dtype=np.int32))
    zeros = pa.array(np.zeros(count, np.int64))
    pair = ["id", "mixed"]
    parsed = {
        "numRecords": pa.array(np.full(count, ROWS_PER_FILE, np.int64)),
        "minValues": pa.StructArray.from_arrays(bounds, pair),
        "maxValues": pa.StructArray.from_arrays(ends, pair),
        "nullCount": pa.StructArray.from_arrays([zeros, zeros], pair),
    }
    members = {
        "path": pc.binary_join_element_wise(
            "day=", day_texts, "/part-", number_texts, "-c000.snappy.parquet", ""
        ),
        "partitionValues": pa.MapArray.from_arrays(  # type: ignore[call-overload]  # the stubs want 64-bit offsets
            offsets, pa.array(["day"] * count), day_texts
        ).cast(MAP),
        "size": pa.array(50_000 + numbers % 1_000),
        "modificationTime": pa.array(1_700_000_000_000 + numbers),
        "dataChange": pa.array(np.zeros(count, np.bool_)),
        "stats": pc.binary_join_element_wise(*joined, pieces[-1], ""),
        "partitionValues_parsed": pa.StructArray.from_arrays([days.cast(pa.int32())], ["day"]),
        "stats_parsed": pa.StructArray.from_arrays(list(parsed.values()), list(parsed)),
    }
    return pa.table({"add": pa.StructArray.from_arrays(list(members.values()), list(members))})


def _measure(subject: str, path: Path, needle: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        where = path
        if subject.endswith("_append_row"):  # the log is written to, so it is one of links
            where = Path(scratch) / "table"
            shutil.copytree(path, where, copy_function=os.link)
        return ask(subject, where, needle, scratch)


def _row(path: Path, num_files: int, question: str, peers_up_to: int) -> str:
    subjects = [name for name, asked in SUBJECTS.items() if asked == question]
    if num_files > peers_up_to:
        subjects = subjects[:1]
    found: dict[str, list[dict[str, float]]] = {name: [] for name in subjects}
    for name in in_turns(subjects, REPEATS):
        found[name].append(_measure(name, path, num_files * ROWS_PER_FILE * 2 // 3))
    answers = {str(run["answer"]) for runs in found.values() for run in runs}
    assert len(answers) == 1, f"{question} of {num_files} files: answers differ: {answers}"
    shown = []
    times = []
    for runs in found.values():
        times.append(statistics.median(run["seconds"] for run in runs))
        memory = statistics.median(run["memory_bytes"] for run in runs)
        shown.append(f"{times[-1] * 1000:,.0f} ms, {memory / 1e6:,.0f} MB")
    ratio = f"{times[1] / times[0]:.1f}" if len(times) > 1 else ""
    return f"| {num_files:,} | {question} | {' | '.join([*shown, 'none'][:2])} | {ratio} |"


def main() -> None:
    """Build the tables, measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=list(FILES))
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()) / "bench")
    parser.add_argument("--report", type=Path, default=ROOT / "docs" / "benchmarks-sizes.md")
    parser.add_argument("--peers-up-to", type=int, default=1_000_000)
    asked = parser.parse_args()
    rows = []
    for num_files in asked.files:
        path = build(asked.directory, num_files)
        for question in dict.fromkeys(SUBJECTS.values()):
            rows.append(_row(path, num_files, question, asked.peers_up_to))
            print(rows[-1], flush=True)
    head = f"""# Benchmarks: tables that grow

`python -m benchmarks.sizes` creates tables with a V2 checkpoint. The checkpoint has a sidecar for
each {SIDECAR_FILES:,} files, with statistics as JSON and as columns. Each operation runs in a
process of its own, and the libraries take turns. Times are medians of {REPEATS} runs, without
imports. Memory is the peak above the memory after the imports.

Files are sorted by `id`, so the footers of nearly all sidecars exclude `id = x`, and these sidecars
are not read. Files are not sorted by `mixed`, so all statistics of `mixed` are read. Measured on
{platform.machine()} with {os.cpu_count()} cores. deltalake was measured with up to
{asked.peers_up_to:,} files.

| files | operation | deltalog | deltalake | ratio |
|---|---|---|---|---|
"""
    asked.report.write_text(head + "\n".join(rows) + "\n", "utf-8")


if __name__ == "__main__":
    main()
