"""TPC-H and TPC-DS in our tables, and the comparison of an answer with DuckDB's.

What is compared: the number of rows, each row, and the order as far as ORDER BY determines it.
Numbers may differ by 1e-6 of their value or by 1e-4: Spark divides decimals to at least 6 digits
after the point where DuckDB divides as doubles, and some queries multiply by 100 afterwards; sums
of doubles depend on the order of rows.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import sqlglot
from sqlglot import exp

from deltalog import DeltaTable, write_deltalake
from tests.support.tpc import LIMIT

NUMBERS: Final = {"h": range(1, 23), "ds": range(1, 100)}
_ROOT: Final = Path(__file__).resolve().parents[2]
_RELATIVE, _ABSOLUTE = 1e-6, 1e-4

Row = tuple[Any, ...]


def find_scale(kind: str, scale: str) -> Path | None:
    """The directory with tables, queries and answers of a scale; None if it was not made.

    Args:
        kind: `h` or `ds`.
        scale: the scale factor.
    """
    place = Path(os.environ.get("DELTALOG_TPC") or _ROOT / ".cache" / "tpc") / f"{kind}-{scale}"
    return place if place.is_dir() else None


@dataclass(frozen=True, slots=True)
class Benchmark:
    """The queries, and the tables that we wrote.

    Args:
        place: from `find_scale`.
        tables: by name.
    """

    place: Path
    tables: dict[str, Any]

    def query(self, number: int) -> str:
        """The text of a query, in DuckDB's dialect."""
        return (self.place / "queries" / f"{number:02d}.sql").read_text("utf-8")

    def answer(self, number: int) -> pa.Table:
        """All rows of a query's answer, in order, without its limit."""
        return pq.read_table(self.place / "answers" / f"{number:02d}.parquet")

    def source(self, name: str) -> pa.Table:
        """The rows that were written to a table."""
        return pq.read_table(self.place / "tables" / f"{name}.parquet")


def write_tables(place: Path, directory: Path, variant: str = "plain") -> Benchmark:
    """Write the tables of a scale with deltalog; those that are there are kept.

    Args:
        place: from `find_scale`.
        directory: where to write.
        variant: a key of `VARIANTS`.
    """
    tables: dict[str, Any] = {}
    for file in sorted((place / "tables").iterdir()):
        if not DeltaTable.is_deltatable(directory / file.stem):
            VARIANTS[variant](file, directory / file.stem)
        tables[file.stem] = DeltaTable(directory / file.stem)
    return Benchmark(place, tables)


def _plainly(file: Path, to: Path, **options: Any) -> None:
    with pq.ParquetFile(file) as rows:
        reader = pa.RecordBatchReader.from_batches(rows.schema_arrow, rows.iter_batches())
        write_deltalake(to, reader, **options)


def _with_vectors(file: Path, to: Path) -> None:
    """Write a copy of each hundredth row as well, and delete the copies by vectors."""
    rows = pq.read_table(file)
    numbers = [number for row in range(rows.num_rows) for number in [row] * (1 + (row % 100 == 0))]
    both = rows.take(pa.array(numbers))
    is_copy = [one == other for one, other in zip(numbers, [-1, *numbers], strict=False)]
    properties = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
    write_deltalake(to, both.append_column(_COPY, pa.array(is_copy)), configuration=properties)
    table = DeltaTable(to)
    table.delete(_COPY)
    table.alter.drop_columns([_COPY])


def _mapped(file: Path, to: Path) -> None:
    """Write with column mapping, and other names in the files than in the table."""
    _plainly(file, to, configuration={"delta.columnMapping.mode": "name"})


def _partitioned(file: Path, to: Path) -> None:
    """Write in up to 25 partitions, by the first column with few values."""
    rows = pq.read_table(file)
    few = [
        name for name in rows.column_names
        if 1 < rows.column(name).combine_chunks().unique().__len__() <= _MOST_PARTITIONS
    ]  # fmt: skip
    write_deltalake(to, rows, partition_by=few[:1] or None)


_COPY: Final = "is_copy"
_MOST_PARTITIONS: Final = 25
VARIANTS: Final[dict[str, Callable[[Path, Path], None]]] = {
    "plain": _plainly,
    "vectors": _with_vectors,
    "mapped": _mapped,
    "partitioned": _partitioned,
}


def in_spark_sql(text: str) -> str:
    """A query in Spark's dialect: names are quoted by backticks. Nothing else differs."""
    return text.replace('"', "`")


def difference(found: pa.Table, answer: pa.Table, text: str) -> str | None:
    """What is wrong with an answer; None if it is right.

    Args:
        found: the rows to compare.
        answer: all rows, in order, without the query's limit.
        text: the query.
    """
    rows, expected = _rows_of(found), _rows_of(answer)
    limit = LIMIT.search(text)
    most = int(limit[1]) if limit else len(expected)
    if len(rows) != min(most, len(expected)):
        return f"{len(rows)} rows instead of {min(most, len(expected))}"
    wrong = _first_unknown(rows, expected)
    if wrong is not None:
        return f"row {wrong} is not in the answer: {rows[wrong]}"
    keys = _order(text, answer.column_names)
    for number, (ours, theirs) in enumerate(zip(rows, expected, strict=False)):
        pairs = [(ours[key], theirs[key]) for key in keys]
        if not all(_are_equal(*pair) for pair in pairs):
            return f"row {number} is out of order: {ours} instead of {theirs}"
    return None


def _rows_of(table: pa.Table) -> list[Row]:
    columns = [list(map(_plain, column.to_pylist())) for column in table.columns]
    return list(zip(*columns, strict=True))


def _plain(value: Any) -> Any:
    """A value as the comparison takes it: every number is a float."""
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return float(value) if is_number else value


def _first_unknown(rows: Sequence[Row], expected: Sequence[Row]) -> int | None:
    """The first row that is in the expected ones less often."""
    left: dict[Row, list[Row]] = defaultdict(list)
    for row in expected:
        left[_without_numbers(row)].append(row)
    for number, row in enumerate(rows):
        candidates = left[_without_numbers(row)]
        place = next(
            (n for n, one in enumerate(candidates) if all(map(_are_equal, row, one))), None
        )
        if place is None:
            return number
        del candidates[place]
    return None


def _without_numbers(row: Row) -> Row:
    return tuple(float if isinstance(value, float) else value for value in row)


def _are_equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        return math.isclose(one, other, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE)
    return bool(one == other)


def _order(text: str, names: Sequence[str]) -> list[int]:
    """The columns by which the rows are ordered, as far as ORDER BY names columns of the result.

    Keys after one that is no column are left out: they order within that key only.
    """
    tree = sqlglot.parse_one(text, dialect="duckdb")
    order = tree.args.get("order")
    found: list[int] = []
    lower = [name.lower() for name in names]
    chosen = [one.unalias().sql().lower() for one in getattr(tree, "selects", ())]
    for key in order.expressions if order else ():
        one = key.this
        if isinstance(one, exp.Literal) and one.is_int:
            found.append(int(one.this) - 1)
        elif isinstance(one, exp.Column) and lower.count(one.name.lower()) == 1:
            found.append(lower.index(one.name.lower()))
        elif chosen.count(one.sql().lower()) == 1 and len(chosen) == len(names):
            found.append(chosen.index(one.sql().lower()))
        else:
            break
    return found
