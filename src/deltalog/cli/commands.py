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
    as_version,
    bar,
    command,
    open_table,
    pairs,
    storage_options,
)
from deltalog.cli.output import (
    OutputFormat,
    print_facts,
    print_record,
    print_rows,
    print_text,
)
from deltalog.cli.reading import app
from deltalog.errors import InvalidInputError
from deltalog.locations import open_table_context

__all__ = ["app"]


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
    print_record(facts, form)
    typer.echo("")
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
                "timestamp": row["timestamp"],
                "operation": row.get("operation"),
                "parameters": row.get("operationParameters"),
                "metrics": row.get("operationMetrics"),
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
    print_facts(rows, form)


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
        print_text(repr(report))
    else:
        print_facts(report.to_table(), form)
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
    form: As = OutputFormat.TABLE,
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
    print_record(metrics, form)


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
        print_facts(opened.vacuum_report(retention_hours, full=full), form)
        return
    with bar("deleting") as progress:
        paths = opened.vacuum(retention_hours, dry_run=False, full=full, progress=progress)
    print_rows([{"path": path} for path in paths], form)


@command("restore")
def restore(
    table: Location,
    target: Annotated[str, typer.Argument(help="A version or a timestamp.")],
    option: Options = None,
    form: As = OutputFormat.TABLE,
) -> None:
    """Make the table what it was."""
    print_record(open_table(table, option).restore(as_version(target)), form)


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
