"""TPC-H and TPC-DS, compared with other engines: `python -m benchmarks.tpc SCALE [KIND VARIANT]`.

For plain tables of TPC-H, the other engines include `delta_scan` of DuckDB and deltalake, and
Polars runs five queries on `lineitem`.

The tables and queries come from `make .cache/tpc/…`. Each engine runs each query once, then five
times in turns. The page `docs/benchmarks-tpc.md` contains the medians, and a chart. Results of
`deltalog.sql` are compared with those of DuckDB's extension. The tables are written to the
generator's directory, unless they exist. Three queries are also measured over a slow network
(`benchmarks.tpc_wire`).
"""

from __future__ import annotations

import datetime as dt
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Final

import deltalake
import duckdb
import polars as pl
import pyarrow as pa

import deltalog
from benchmarks import tpc_wire
from benchmarks.chart import Bar, draw
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
_TURNS_OF_POLARS: Final = 41  # two sides differ by less than the noise of the machine
_LONG_SECONDS: Final = 10
_PARTS: Final = (
    ("h", "plain"), ("h", "vectors"), ("h", "mapped"), ("h", "partitioned"), ("ds", "plain"),
)  # fmt: skip
_TITLES: Final = {"h": "TPC-H", "ds": "TPC-DS"}
_OURS, _FILES = "deltalog.sql", "DuckDB on the Parquet files"
_GOALS: Final = {
    ("h", "plain"): 1.15, ("h", "vectors"): 1.15 * 1.3, ("h", "mapped"): 1.15 * 1.1,
    ("h", "partitioned"): 1.15 * 1.2, ("ds", "plain"): 1.25,
}  # fmt: skip
"""By part, the maximum ratio of `deltalog.sql` to DuckDB on the Parquet files of plain tables."""


@dataclass(frozen=True, slots=True)
class Side:
    """An engine over the tables of one part.

    Args:
        name: the name in the report.
        ask: answers the query with this number, and returns the answer, or the seconds that another
            process took.
    """

    name: str
    ask: Callable[[int], Any]


def sides(kind: str, made: Benchmark, plain: Benchmark) -> list[Side]:
    """Return the engines to compare.

    Args:
        kind: `h` or `ds`.
        made: the tables of the part.
        plain: the same rows in tables without features, whose files any reader can read.
    """
    found = [
        Side(_OURS, lambda number: _by_sql(made, number)),
        Side(_FILES, _by_duckdb(plain, made, _parquet)),
    ]
    if (
        kind == "h"
    ):  # for a dataset, DuckDB has no number of rows: one query of TPC-DS ran for over 20 minutes
        found.append(Side("DuckDB over `to_pyarrow_dataset()`", _by_duckdb(made, made, _dataset)))
    return found


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


@contextmanager
def peers(kind: str, plain: Benchmark) -> Iterator[list[Side]]:
    """Return other readers of Delta tables, for plain tables of TPC-H."""
    if kind != "h":
        yield []
        return
    python = plain.place.parent / "bin" / "python"
    script = Path(__file__).with_name("delta_scan.py")
    process = subprocess.Popen(
        [python, script, plain.place / "plain"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    tables = {name: deltalake.DeltaTable(table.table_uri) for name, table in plain.tables.items()}
    queries: Any = deltalake.QueryBuilder()
    for name, table in tables.items():
        queries = queries.register(name, table)

    def by_delta_scan(number: int) -> float:
        process.stdin.write(f"{plain.place / 'queries' / f'{number:02d}.sql'}\n")  # type: ignore[union-attr]  # there are pipes
        process.stdin.flush()  # type: ignore[union-attr]  # as above
        return float(process.stdout.readline())  # type: ignore[union-attr]  # as above

    def by_query_builder(number: int) -> Any:
        return pa.table(queries.execute(plain.query(number)).read_all())

    try:
        yield [
            Side("DuckDB 1.5.5 `delta_scan`", by_delta_scan),
            Side("deltalake `QueryBuilder`", by_query_builder),
        ]
    finally:
        process.communicate()


def _seconds(ask: Callable[[], Any]) -> float:
    began = time.perf_counter()
    found = ask()
    return found if isinstance(found, float) else time.perf_counter() - began


def _in_turns(asks: Mapping[str, Callable[[], Any]], turns: int = _TURNS) -> dict[str, float]:
    """Return the median seconds of each side; a side that fails has none.

    A side that takes long runs once.
    """
    works: dict[str, Callable[[], Any]] = {}
    seconds: dict[str, list[float]] = {}
    for name, ask in asks.items():
        try:
            seconds[name] = [_seconds(ask)]
            if seconds[name][0] < _LONG_SECONDS:
                seconds[name] = []
                works[name] = ask
        except Exception as error:  # noqa: BLE001  # peers raise errors of many types
            print(f"{name} failed: {str(error)[:200]}", flush=True)
    for turn in range(turns):
        for name in list(works) if turn % 2 else reversed(works):
            seconds[name].append(_seconds(works[name]))
    return {name: statistics.median(times) for name, times in seconds.items()}


def measured(kind: str, made: Benchmark, found: Sequence[Side]) -> dict[str, dict[int, float]]:
    """Return the median seconds of each side for each query."""
    medians: dict[str, dict[int, float]] = {side.name: {} for side in found}
    for number in NUMBERS[kind]:
        answer = found[0].ask(number)
        wrong = difference(answer, made.answer(number), made.query(number))
        if wrong is not None:
            raise SystemExit(f"{_TITLES[kind]} query {number} of {_OURS} is wrong: {wrong}")
        times = _in_turns({side.name: partial(side.ask, number) for side in found})
        for name, median in times.items():
            medians[name][number] = median
        shown = ", ".join(f"{name} {1000 * median:.0f} ms" for name, median in times.items())
        print(f"{_TITLES[kind]} {number}: {shown}", flush=True)
    return medians


def _pricing(frame: pl.LazyFrame) -> pl.LazyFrame:
    price = pl.col("l_extendedprice") * (1 - pl.col("l_discount"))
    kept = frame.filter(pl.col("l_shipdate") <= dt.date(1998, 9, 2))
    sums = [pl.col("l_quantity").sum(), price.sum().alias("price"), pl.len()]
    return kept.group_by("l_returnflag", "l_linestatus").agg(sums)


def _revenue(frame: pl.LazyFrame) -> pl.LazyFrame:
    is_of_year = pl.col("l_shipdate").is_between(
        dt.date(1994, 1, 1), dt.date(1995, 1, 1), closed="left"
    )
    is_near = pl.col("l_discount").is_between(Decimal("0.05"), Decimal("0.07"))
    kept = frame.filter(is_of_year, is_near, pl.col("l_quantity") < 24)
    return kept.select((pl.col("l_extendedprice") * pl.col("l_discount")).sum())


_OF_POLARS: Final[Mapping[str, Callable[[pl.LazyFrame], pl.LazyFrame]]] = {
    "like query 1": _pricing,
    "like query 6": _revenue,
    "count": lambda frame: frame.select(pl.len()),
    "one column": lambda frame: frame.select(pl.col("l_orderkey").sum()),
    "all rows": lambda frame: frame,
}


def of_polars(plain: Benchmark) -> list[str]:
    """Return the lines of a section about Polars over `lineitem`."""
    table = plain.tables["lineitem"]
    files = [uri.removeprefix("file://") for uri in table.file_uris()]
    frames: dict[str, Callable[[], pl.LazyFrame]] = {
        "`to_polars(lazy=True)`": lambda: table.to_polars(lazy=True),
        "`pl.scan_parquet`": lambda: pl.scan_parquet(files),
        "`pl.scan_delta`": lambda: pl.scan_delta(table.table_uri),
    }
    lines = ["## Polars over lineitem", "", f"Medians of {_TURNS_OF_POLARS} runs.", ""]
    lines.append(f"| query | {' | '.join(frames)} |")
    lines.append("|---|" + "---|" * len(frames))
    for name, query in _OF_POLARS.items():
        asks = {
            side: lambda query=query, frame=frame: query(frame()).collect()
            for side, frame in frames.items()
        }
        times = _in_turns(asks, _TURNS_OF_POLARS)
        lines.append(f"| {name} | {' | '.join(f'{1000 * one:.1f}' for one in times.values())} |")
        print(lines[-1], flush=True)
    return [*lines, ""]


def of_the_wire(plain: Benchmark) -> list[str]:
    """Return the lines of a section about queries over a slow network."""
    with tpc_wire.sides(plain) as found:
        lines = [f"## TPC-H, plain, in an S3 store {tpc_wire.LATENCY_MS} ms away", ""]
        lines += [f"| query | {' | '.join(found)} |", "|---|" + "---|" * len(found)]
        for number in tpc_wire.QUERIES:
            for name, ask in found.items():
                wrong = difference(ask(number), plain.answer(number), plain.query(number))
                if wrong is not None:
                    raise SystemExit(f"TPC-H query {number} of {name} is wrong: {wrong}")
            times = _in_turns({name: partial(ask, number) for name, ask in found.items()})
            cells = (f"{1000 * times[name]:.0f}" if name in times else "fails" for name in found)
            lines.append(f"| {number} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    return [*lines, ""]


def bars(kind: str, variant: str, medians: Mapping[str, Mapping[int, float]]) -> list[Bar]:
    """Return how many times as fast `deltalog.sql` is as each other side, by geometric mean."""
    found = []
    ours = medians[_OURS]
    for name, times in medians.items():
        if name != _OURS and times:
            ratio = statistics.geometric_mean(
                times[one] / ours[one] for one in ours if one in times
            )
            goal = 1 / _GOALS[kind, variant] if name == _FILES else 1.0
            title = f"{_TITLES[kind]}, {variant}: {name.replace('`', '')}"
            found.append(Bar(title, ratio, goal, is_met=ratio >= goal))
    return found


def report(title: str, medians: Mapping[str, Mapping[int, float]]) -> list[str]:
    """Return the lines of a section: the mean ratios to bare Parquet, and each query in ms."""
    base = medians[_FILES]
    answered = {name: times for name, times in medians.items() if times}
    lines = [
        f"## {title}",
        "",
        "| engine | geometric mean | worst query | total s |",
        "|---|---|---|---|",
    ]
    for name, times in answered.items():
        ratios = {number: times[number] / base[number] for number in base if number in times}
        mean = statistics.geometric_mean(ratios.values())
        worst = max(ratios, key=lambda number: ratios[number])
        total = sum(times.values())
        lines.append(f"| {name} | {mean:.2f} | {ratios[worst]:.2f} (query {worst}) | {total:.2f} |")
    lines += ["", f"| query | {' | '.join(answered)} |", "|---|" + "---|" * len(answered)]
    for number in base:
        cells = " | ".join(
            f"{1000 * times[number]:.0f}" if number in times else "fails"
            for times in answered.values()
        )
        lines.append(f"| {number} | {cells} |")
    return [*lines, ""]


def main(scale: str, parts: tuple[tuple[str, str], ...]) -> None:
    """Measure parts, and write the page."""
    about = (
        f"Times are in milliseconds, at scale {scale}. They are medians of {_TURNS} runs in turns, "
        f"after one run that is not counted. A query that takes over {_LONG_SECONDS} s runs once. "
        "Ratios are relative to DuckDB on the Parquet files of plain tables. All results are right."
    )
    lines = ["# TPC-H and TPC-DS", "", about, "", "`make bench-tpc` writes this page.", ""]
    picture = _PAGE.with_suffix(".svg")
    lines += [f"![How many times faster deltalog.sql is, by engine]({picture.name})", ""]
    drawn: list[Bar] = []
    for kind, variant in parts:
        place = find_scale(kind, scale)
        if place is None:
            raise SystemExit(f"there are no tables: make .cache/tpc/{kind}-{scale}/.ready")
        plain = write_tables(place, place / "plain")
        made = write_tables(place, place / variant, variant)
        with peers(kind if variant == "plain" else "", plain) as others:
            medians = measured(kind, made, [*sides(kind, made, plain), *others])
        section = report(f"{_TITLES[kind]}, {variant}", medians)
        if kind == "h" and variant == "plain":
            section += [*of_polars(plain), *of_the_wire(plain)]
        drawn += bars(kind, variant, medians)
        print("\n".join(section), flush=True)
        lines += section
    _PAGE.write_text("\n".join(lines), "utf-8")
    picture.write_text(draw(drawn), "utf-8")


if __name__ == "__main__":
    chosen = (sys.argv[2], sys.argv[3]) if len(sys.argv) > 3 else None
    main(sys.argv[1], (chosen,) if chosen else _PARTS)
