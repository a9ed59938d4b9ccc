"""The commands that read: rows, changes, differences, and what a read would cost.

Each is a few lines over `DeltaTable`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from deltalog.cli.application import (
    As,
    Columns,
    Location,
    Options,
    OutputFormat,
    Where,
    app,
    as_version,
    columns_of,
    command,
    open_table,
    print_batches,
    print_rows,
    print_text,
)
from deltalog.schema.columns import schema_rows, schema_tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

__all__ = ["app"]

_MOST_SHOWN = 50
_LIMIT = typer.Option("--limit", "-n", min=0, help="At most so many rows.")

Limit = Annotated[int | None, _LIMIT]


@command("schema")
def schema(table: Location, option: Options = None, form: As = OutputFormat.TABLE) -> None:
    """The columns as a tree; for programs a line for each, at every depth."""
    found = open_table(table, option).schema()
    if form is OutputFormat.TABLE:
        print_text("\n".join(schema_tree(found)))
    else:
        print_rows(schema_rows(found), form)


@command("scan")
def scan(  # each is the caller's choice
    table: Location,
    option: Options = None,
    column: Columns = None,
    where: Where = None,
    limit: Limit = None,
    form: As = OutputFormat.TABLE,
) -> None:
    """Rows of the table; as a table the first 50, unless a limit is given."""
    opened = open_table(table, option)
    rows = opened.scan(columns_of(opened, column), where, limit=_shown(limit, form))
    print_batches(rows.schema, rows.to_batches(), form)


@command("head")
def head(  # each is the caller's choice
    table: Location,
    option: Options = None,
    column: Columns = None,
    where: Where = None,
    limit: Annotated[int, _LIMIT] = 5,
    form: As = OutputFormat.TABLE,
) -> None:
    """A few rows; as few files are read as hold them."""
    opened = open_table(table, option)
    rows = opened.scan(columns_of(opened, column), where, limit=limit)
    print_batches(rows.schema, rows.to_batches(), form)


@command("count")
def count(
    table: Location, option: Options = None, where: Where = None, form: As = OutputFormat.TABLE
) -> None:
    """The number of rows; no data is read where the log knows it."""
    rows = open_table(table, option).scan(predicate=where).count()
    if form is OutputFormat.TABLE:
        typer.echo(str(rows))
    else:
        print_rows([{"rows": rows}], form)


@command("explain")
def explain(
    table: Location,
    option: Options = None,
    column: Columns = None,
    where: Where = None,
    form: As = OutputFormat.TABLE,
) -> None:
    """Which files a condition leaves to be read, and why not the others; no data is read."""
    opened = open_table(table, option)
    planned = opened.scan(columns_of(opened, column), where)
    if form is OutputFormat.TABLE:
        print_text(planned.explain())
    else:
        print_rows([planned.explain().facts], form)


@command("cdf")
def cdf(  # noqa: PLR0917  # each is the caller's choice
    table: Location,
    start: Annotated[str, typer.Argument(help="The first version, or a timestamp.")],
    end: Annotated[str | None, typer.Argument(help="The last; the latest by default.")] = None,
    option: Options = None,
    column: Columns = None,
    where: Where = None,
    limit: Limit = None,
    form: As = OutputFormat.TABLE,
) -> None:
    """Changed rows of a range of versions: the change data feed; as a table the first 50."""
    opened = open_table(table, option)
    first, last = as_version(start), None if end is None else as_version(end)
    rows = opened.load_cdf(
        starting_version=first if isinstance(first, int) else None,
        starting_timestamp=first if isinstance(first, str) else None,
        ending_version=last if isinstance(last, int) else None,
        ending_timestamp=last if isinstance(last, str) else None,
        columns=columns_of(opened, column),
        predicate=where,
    )
    print_batches(rows.schema, _first(rows.to_batches(), _shown(limit, form)), form)


def _shown(limit: int | None, form: OutputFormat) -> int | None:
    """The limit that was given; else that of a table that people read, and none for programs."""
    return _MOST_SHOWN if limit is None and form is OutputFormat.TABLE else limit


def _first(batches: Iterable[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    """Yield at most so many rows; nothing is read for others."""
    if limit is None:
        yield from batches
        return
    missing = limit
    for batch in [] if missing == 0 else batches:
        yield batch.slice(0, missing)
        missing -= min(missing, batch.num_rows)
        if not missing:
            return


@command("diff")
def diff(  # noqa: PLR0917  # each is the caller's choice
    table: Location,
    before: Annotated[str, typer.Argument(help="A version or a timestamp.")],
    after: Annotated[str | None, typer.Argument(help="Another; the latest by default.")] = None,
    option: Options = None,
    key: Annotated[
        list[str] | None, typer.Option("--key", "-k", help="A column that identifies rows.")
    ] = None,
    rows: Annotated[bool, typer.Option("--rows", help="Print the rows that differ.")] = False,  # noqa: FBT002  # typer's form
    form: As = OutputFormat.TABLE,
) -> None:
    """What differs between two versions."""
    found = open_table(table, option).diff(
        as_version(before), None if after is None else as_version(after), key=key or ()
    )
    if rows:
        print_batches(found.schema, found.to_batches(), form)
    elif form is OutputFormat.TABLE:
        print_text(repr(found))
        if len(found.schema) > 1:  # else no row can be compared
            counts = found.summary()
            typer.echo("  rows: " + ", ".join(f"{count} {name}" for name, count in counts.items()))
    else:
        answer = {
            "schema": found.schema_changes.to_pylist(),
            "settings": found.setting_changes.to_pylist(),
            "files": found.file_counts,
            "rows": found.summary() if len(found.schema) > 1 else None,
        }
        print_rows([answer], form)
