"""TPC-H and TPC-DS beside other engines: `python -m benchmarks.tpc SCALE [KIND VARIANT]`.

The tables and queries come from `make .cache/tpc/…`. Each query is answered once by each side, then
five times in turns; the page `docs/benchmarks-tpc.md` has the medians. Answers of `deltalog.sql`
are compared with the answers of DuckDB's extension. The tables are written beside those of the
generator, unless they are there.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

import deltalog
from tests.support.tpc_answers import (
    NUMBERS,
    Benchmark,
    difference,
    find_scale,
    in_spark_sql,
    write_tables,
)

_PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "benchmarks-tpc.md"
_TURNS: Final = 5
_PARTS: Final = (
    ("h", "plain"), ("h", "vectors"), ("h", "mapped"), ("h", "partitioned"), ("ds", "plain"),
)  # fmt: skip
_TITLES: Final = {"h": "TPC-H", "ds": "TPC-DS"}
_OURS, _FILES = "deltalog.sql", "DuckDB on the Parquet files"


@dataclass(frozen=True, slots=True)
class Side:
    """An engine over the tables of one part.

    Args:
        name: the name in the report.
        ask: answers the query with this number.
    """

    name: str
    ask: Callable[[int], Any]


def sides(made: Benchmark, plain: Benchmark) -> list[Side]:
    """Return the engines to compare.

    Args:
        made: the tables of the part.
        plain: the same rows in tables without features, whose files any reader can read.
    """
    return [
        Side(_OURS, lambda number: _by_sql(made, number)),
        Side(_FILES, _by_duckdb(plain, made, _parquet)),
        Side("DuckDB over `to_pyarrow_dataset()`", _by_duckdb(made, made, _dataset)),
    ]


def _by_sql(made: Benchmark, number: int) -> pa.Table:
    return deltalog.sql(in_spark_sql(made.query(number)), **made.tables).to_arrow()


def _parquet(connection: Any, name: str, table: Any) -> None:
    paths = ", ".join(f"'{uri.removeprefix('file://')}'" for uri in table.file_uris())
    connection.execute(f"CREATE VIEW {name} AS FROM read_parquet([{paths}])")


def _dataset(connection: Any, name: str, table: Any) -> None:
    connection.register(name, table.to_pyarrow_dataset())


def _by_duckdb(
    made: Benchmark, queries: Benchmark, register: Callable[[Any, str, Any], None]
) -> Callable[[int], pa.Table]:
    connection = duckdb.connect(config={"default_null_order": "nulls_first"})
    for name, table in made.tables.items():
        register(connection, name, table)

    def ask(number: int) -> pa.Table:
        found: pa.Table = connection.sql(queries.query(number)).to_arrow_table()
        return found

    return ask


def measured(kind: str, made: Benchmark, found: list[Side]) -> dict[str, dict[int, float]]:
    """Return the median seconds of each side for each query."""
    medians: dict[str, dict[int, float]] = {side.name: {} for side in found}
    for number in NUMBERS[kind]:
        answer = found[0].ask(number)
        wrong = difference(answer, made.answer(number), made.query(number))
        if wrong is not None:
            raise SystemExit(f"{_TITLES[kind]} query {number} of {_OURS} is wrong: {wrong}")
        for side in found[1:]:
            side.ask(number)
        seconds: dict[str, list[float]] = {side.name: [] for side in found}
        for turn in range(_TURNS):
            for side in found if turn % 2 else reversed(found):
                began = time.perf_counter()
                side.ask(number)
                seconds[side.name].append(time.perf_counter() - began)
        for name, times in seconds.items():
            medians[name][number] = statistics.median(times)
        shown = ", ".join(f"{name} {1000 * medians[name][number]:.0f} ms" for name in medians)
        print(f"{_TITLES[kind]} {number}: {shown}", flush=True)
    return medians


def report(title: str, medians: Mapping[str, Mapping[int, float]]) -> list[str]:
    """Return the lines of a section: the mean ratios to bare Parquet, and each query in ms."""
    base = medians[_FILES]
    lines = [
        f"## {title}",
        "",
        "| side | geometric mean | worst query | total s |",
        "|---|---|---|---|",
    ]
    for name, times in medians.items():
        ratios = {number: times[number] / base[number] for number in base}
        mean = statistics.geometric_mean(ratios.values())
        worst = max(ratios, key=lambda number: ratios[number])
        total = sum(times.values())
        lines.append(f"| {name} | {mean:.2f} | {ratios[worst]:.2f} (query {worst}) | {total:.2f} |")
    lines += ["", f"| query | {' | '.join(medians)} |", "|---|" + "---|" * len(medians)]
    for number in base:
        cells = " | ".join(f"{1000 * times[number]:.0f}" for times in medians.values())
        lines.append(f"| {number} | {cells} |")
    return [*lines, ""]


def main(scale: str, parts: tuple[tuple[str, str], ...]) -> None:
    """Measure parts, and write the page."""
    about = (
        f"Scale {scale}; milliseconds, medians of {_TURNS} runs in turns after one run that is not "
        "counted. Ratios are to DuckDB on the Parquet files of plain tables. All answers are right."
    )
    lines = ["# TPC-H and TPC-DS", "", about, "", "`make bench-tpc` writes this page.", ""]
    for kind, variant in parts:
        place = find_scale(kind, scale)
        if place is None:
            raise SystemExit(f"there are no tables: make .cache/tpc/{kind}-{scale}/.ready")
        plain = write_tables(place, place / "plain")
        made = write_tables(place, place / variant, variant)
        medians = measured(kind, made, sides(made, plain))
        section = report(f"{_TITLES[kind]}, {variant}", medians)
        print("\n".join(section), flush=True)
        lines += section
    _PAGE.write_text("\n".join(lines), "utf-8")


if __name__ == "__main__":
    chosen = (sys.argv[2], sys.argv[3]) if len(sys.argv) > 3 else None
    main(sys.argv[1], (chosen,) if chosen else _PARTS)
