"""The commands that look into a table and keep it in order: `deltalog show flights`, and so on.

Each is a few lines over `DeltaTable`.
"""

from __future__ import annotations

from typing import Annotated

import pyarrow as pa
import typer

from deltalog.cli.application import (
    As,
    Location,
    Options,
    Where,
    app,
    as_version,
    bar,
    command,
    open_table,
    pairs,
    storage_options,
)
from deltalog.cli.output import OutputFormat, as_text, moment_text, print_batches, print_rows
from deltalog.errors import InvalidInputError
from deltalog.locations import open_table_context

__all__ = ["app"]

_MOST_SHOWN = 50


@command("show")
def show(table: Location, option: Options = None, form: As = OutputFormat.TABLE) -> None:
    """What the table is: where, which version, how large, which columns."""
    opened = open_table(table, option)
    facts = opened.detail()
    columns = [
        {"column": field.name, "type": str(field.type), "nullable": field.nullable}
        for field in opened.schema()
    ]
    if form is not OutputFormat.TABLE:
        print_rows([{**facts, "schema": columns}], form)
        return
    shown = {name: value for name, value in facts.items() if value not in (None, [], {})}
    shown |= {
        name: moment_text(facts[name]) for name in ("createdAt", "lastModified") if facts[name]
    }
    print_rows([{"": name, "value": as_text(value)} for name, value in shown.items()], form)
    print_rows(columns, form)


@command("history")
def history(
    table: Location,
    option: Options = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=0)] = None,
    form: As = OutputFormat.TABLE,
) -> None:
    """The commits, newest first."""
    rows = open_table(table, option).history(limit)
    if form is OutputFormat.JSON:
        print_rows(rows, form)
        return
    print_rows(
        [
            {
                "version": row["version"],
                "timestamp": moment_text(row["timestamp"]),
                "operation": row.get("operation"),
                "parameters": as_text(row.get("operationParameters")),
                "metrics": as_text(row.get("operationMetrics")),
            }
            for row in rows
        ],
        form,
    )


@command("files")
def files(
    table: Location, option: Options = None, where: Where = None, form: As = OutputFormat.TABLE
) -> None:
    """The data files, with what the log says of each."""
    opened = open_table(table, option)
    rows = opened.get_add_actions(flatten=True)
    if where is not None:
        chosen = opened.file_uris(file_pruning_predicate=where)
        known = opened.file_uris()
        kept = set(chosen)
        rows = rows.filter(pa.array([uri in kept for uri in known], pa.bool_()))
    print_batches(rows.schema, rows.to_batches(), form)


@command("scan")
def scan(
    table: Location,
    option: Options = None,
    column: Annotated[
        list[str] | None, typer.Option("--column", "-c", help="A column; may be repeated.")
    ] = None,
    where: Where = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=0)] = None,
    form: As = OutputFormat.TABLE,
) -> None:
    """Rows of the table; as a table the first 50, unless a limit is given."""
    if limit is None and form is OutputFormat.TABLE:
        limit = _MOST_SHOWN
    rows = open_table(table, option).scan(column or None, where, limit=limit)
    print_batches(rows.schema, rows.to_batches(), form)


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
        typer.echo(repr(found))
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


@command("doctor")
def doctor(
    table: Location,
    option: Options = None,
    check: Annotated[
        list[str] | None, typer.Option("--check", help="Only this check; may be repeated.")
    ] = None,
    samples: Annotated[int, typer.Option(help="How many data files are read.", min=0)] = 8,
    form: As = OutputFormat.TABLE,
) -> None:
    """What is wrong with the table, how bad it is, and what to do; also if it cannot be opened."""
    from deltalog.insight.doctor import examine  # noqa: PLC0415  # only here

    context, at = open_table_context(table, storage_options(option), None, time_zone="UTC")
    snapshot = None if at is None else open_table(table, option).snapshot
    with bar("examining") as progress:
        report = examine(
            context,
            snapshot=snapshot,
            checks=check or None,
            num_samples=samples,
            progress=progress,
        )
    if form is OutputFormat.TABLE:
        typer.echo(repr(report))
    else:
        found = report.to_table()
        print_batches(found.schema, found.to_batches(), form)
    if not report.is_healthy:
        raise typer.Exit(1)


@command("optimize")
def optimize(
    table: Location,
    option: Options = None,
    z_order: Annotated[
        list[str] | None, typer.Option("--z-order", "-z", help="A column to cluster by.")
    ] = None,
    purge: Annotated[bool, typer.Option("--purge", help="Only write deleted rows away.")] = False,  # noqa: FBT002  # typer's form
    target_size: Annotated[int | None, typer.Option(help="Bytes of a file.", min=1)] = None,
    form: As = OutputFormat.JSON,
) -> None:
    """Write few large files instead of many small ones."""
    if z_order and purge:
        raise InvalidInputError("cannot take both --z-order and --purge: give one of them")
    optimizer = open_table(table, option).optimize
    with bar("optimizing") as progress:
        if z_order:
            metrics = optimizer.z_order(z_order, target_size=target_size, progress=progress)
        elif purge:
            metrics = optimizer.purge(target_size=target_size, progress=progress)
        else:
            metrics = optimizer.compact(target_size=target_size, progress=progress)
    print_rows([metrics], form)


@command("vacuum")
def vacuum(
    table: Location,
    option: Options = None,
    retention_hours: Annotated[
        float | None, typer.Option(help="How long removed files stay; the table says it.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="List all files.")] = False,  # noqa: FBT002  # typer's form
    delete: Annotated[bool, typer.Option("--delete", help="Really delete them.")] = False,  # noqa: FBT002  # typer's form
    form: As = OutputFormat.TABLE,
) -> None:
    """Name the files that no version needs any more, or delete them."""
    opened = open_table(table, option)
    if not delete:
        found = opened.vacuum_report(retention_hours, full=full)
        print_batches(found.schema, found.to_batches(), form)
        return
    with bar("deleting") as progress:
        paths = opened.vacuum(retention_hours, dry_run=False, full=full, progress=progress)
    print_rows([{"path": path} for path in paths], form)


@command("restore")
def restore(
    table: Location,
    target: Annotated[str, typer.Argument(help="A version or a timestamp.")],
    option: Options = None,
    form: As = OutputFormat.JSON,
) -> None:
    """Make the table what it was."""
    print_rows([open_table(table, option).restore(as_version(target))], form)


@command("checkpoint")
def checkpoint(table: Location, option: Options = None) -> None:
    """Write a checkpoint of the latest version."""
    opened = open_table(table, option)
    opened.create_checkpoint()
    typer.echo(f"version {opened.version()}", err=True)


@command("properties")
def properties(
    table: Location,
    option: Options = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A property, key=value; may be repeated.")
    ] = None,
    unset: Annotated[
        list[str] | None, typer.Option("--unset", help="A property's key; may be repeated.")
    ] = None,
    form: As = OutputFormat.TABLE,
) -> None:
    """Show the table's properties, or change them first."""
    opened = open_table(table, option)
    if set_:
        opened.alter.set_table_properties(pairs(set_, "--set"))
    if unset:
        opened.alter.unset_table_properties(unset)
    found = opened.metadata().configuration
    print_rows([{"property": name, "value": found[name]} for name in sorted(found)], form)
