"""How the command line prints: as a table for people, as JSON lines, CSV or Arrow for programs.

Owns the text of every value. Rows are printed as they come.

Protocol: none
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import typer
from rich.console import Console
from rich.table import Table

from deltalog._json import dumps

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_LETTERS = 60
_WIDE = 100_000


class OutputFormat(StrEnum):
    """How answers are printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    ARROW = "arrow"


def print_rows(rows: list[dict[str, Any]], form: OutputFormat) -> None:
    """A few rows, whatever their values are."""
    if form is OutputFormat.JSON:
        for row in rows:
            typer.echo(dumps(_plain(row)).decode())
        return
    names = list(dict.fromkeys(name for row in rows for name in row))
    if form is OutputFormat.TABLE:
        _draw(names, ([row.get(name) for name in names] for row in rows))
        return
    texts = [{name: as_text(row.get(name)) for name in names} for row in rows]
    table = pa.Table.from_pylist(texts, schema=pa.schema([(name, pa.string()) for name in names]))
    print_batches(table.schema, table.to_batches(), form)


def print_batches(schema: pa.Schema, batches: Iterable[pa.RecordBatch], form: OutputFormat) -> None:
    """Any number of rows, as they come."""
    match form:
        case OutputFormat.JSON:
            for batch in batches:
                for row in batch.to_pylist():
                    typer.echo(dumps(_plain(row)).decode())
        case OutputFormat.TABLE:
            rows = (
                list(row.values()) for batch in batches for row in batch.to_pylist()
            )  # a row has its columns in order
            _draw(schema.names, rows)
        case OutputFormat.CSV:
            _write_csv(schema, batches)
        case OutputFormat.ARROW:
            with pa.ipc.new_stream(_out(), schema) as writer:
                for batch in batches:
                    writer.write_batch(batch)


def _write_csv(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    from pyarrow import csv  # noqa: PLC0415  # only here

    flat = [_flat_field(field) for field in schema]
    with csv.CSVWriter(_out(), pa.schema(flat)) as writer:
        for batch in batches:
            columns: list[Any] = [
                column
                if field.type.equals(column.type)
                else pa.array([as_text(value) for value in column.to_pylist()], field.type)
                for field, column in zip(flat, batch.columns, strict=True)
            ]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=pa.schema(flat)))


def _out() -> Any:
    return typer.get_binary_stream("stdout")


def _flat_field(field: pa.Field[Any]) -> pa.Field[Any]:
    """CSV has no room for what is nested, nor for bytes: that is JSON text there."""
    kind = field.type
    is_odd = pa.types.is_nested(kind) or isinstance(kind, pa.ExtensionType)
    if is_odd or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.field(field.name, pa.string())
    return field


def _draw(names: list[str], rows: Iterable[list[Any]]) -> None:
    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        drawn.add_column(name, overflow="fold")
    for row in rows:
        drawn.add_row(*(_shortened(as_text(value)) for value in row))
    if sys.stdout.isatty():
        Console(markup=False, highlight=False).print(drawn)
        return
    # Without a terminal nothing is cut to its width, nor filled up to it.
    console = Console(width=_WIDE, markup=False, highlight=False, soft_wrap=True)
    with console.capture() as captured:
        console.print(drawn)
    for line in captured.get().splitlines():
        typer.echo(line.rstrip())


def _shortened(text: str | None) -> str:
    if text is None:
        return ""
    line = text.replace("\n", " ")
    if len(line) <= _MOST_LETTERS or not sys.stdout.isatty():
        return line
    return f"{line[:_MOST_LETTERS]}…"


def as_text(value: object) -> str | None:
    """A value as text; what has parts is JSON."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict | list | tuple | bytes):
        plain = _plain(value)
        return plain if isinstance(plain, str) else dumps(plain).decode()
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _plain(value: Any) -> Any:
    """A value that JSON can hold."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if value == value and abs(value) != float("inf") else str(value)  # noqa: PLR0124  # NaN
        case bytes():
            return value.hex()
        case datetime():
            return value.isoformat()
        case dict():
            return {str(name): _plain(part) for name, part in value.items()}
        case list() | tuple():
            return [_plain(part) for part in value]
        case _:
            return str(value)


def moment_text(time_ms: int) -> str:
    """A moment as people read it, UTC."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(" ", "seconds")
