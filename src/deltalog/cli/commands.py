"""The commands that read, inspect and maintain a table, such as `deltalog show flights`.

Each command calls a few methods of `DeltaTable`.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final

import pyarrow as pa
import typer

from deltalog._util.clock import utc_moment
from deltalog._util.escaping import printable
from deltalog._util.readable import FILE, changes_of_commit, counted, outcome, readable_parameters
from deltalog.catalogs.table_uri import open_table_context
from deltalog.cli.advice import in_shell
from deltalog.cli.application import (
    As,
    Columns,
    Location,
    NewestLocation,
    Options,
    OutputFormat,
    Where,
    app,
    as_version,
    bar,
    columns_of,
    command,
    open_table,
    pairs,
    print_batches,
    print_facts,
    print_outcome,
    print_record,
    print_rows,
    print_text,
    storage_options,
)
from deltalog.errors import AuditFailedError, InvalidInputError
from deltalog.protocol.actions.properties import parse_bytes
from deltalog.schema.columns import schema_rows, schema_tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


__all__ = ["app"]


# --- commands that read rows, changes and differences, or explain a read


_MOST_SHOWN = 50
_LIMIT = typer.Option("--limit", "-n", min=0, help="Maximum number of rows.")

Limit = Annotated[int | None, _LIMIT]


@command("schema")
def schema(table: Location, option: Options = None, form: As = OutputFormat.TABLE) -> None:
    """Show the columns as a tree.

    For programs, print one line per column at every depth.
    """
    found = open_table(table, option).schema()
    if form is OutputFormat.TABLE:
        print_text("\n".join(schema_tree(found)))
    else:
        print_rows(schema_rows(found), form)


@command("scan")
def scan(
    table: Location,
    option: Options = None,
    column: Columns = None,
    where: Where = None,
    limit: Limit = None,
    form: As = OutputFormat.TABLE,
) -> None:
    """Show rows of the table.

    The table format shows 50 rows unless a limit is given.

    Example: deltalog scan flights -c carrier --where "delay > 60" --csv
    """
    opened = open_table(table, option)
    rows = opened.scan(columns_of(opened, column), where, limit=_read(limit, form))
    _print_some(rows.schema, rows.to_batches(), limit, form)


@command("head")
def head(
    table: Location,
    option: Options = None,
    column: Columns = None,
    where: Where = None,
    limit: Annotated[int, _LIMIT] = 5,
    form: As = OutputFormat.TABLE,
) -> None:
    """Show a few rows; reads only as many files as necessary.

    Example: deltalog head flights -n 10
    """
    opened = open_table(table, option)
    rows = opened.scan(columns_of(opened, column), where, limit=limit)
    print_batches(rows.schema, rows.to_batches(), form)


@command("count")
def count(
    table: Location, option: Options = None, where: Where = None, form: As = OutputFormat.TABLE
) -> None:
    """Count rows; reads no data if the log has the number.

    Example: deltalog count flights --where "month = 1"
    """
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
    """Explain which files a condition reads, and why.

    The command reads no data.

    Example: deltalog explain flights --where "month = 1 and delay > 60"
    """
    opened = open_table(table, option)
    planned = opened.scan(columns_of(opened, column), where)
    if form is OutputFormat.TABLE:
        print_text(planned.explain())
    else:
        print_rows([planned.explain().facts], form)


@command("cdf")
def cdf(  # noqa: PLR0917  # callers need each parameter
    table: Location,
    start: Annotated[
        str, typer.Argument(help="The first version, or a timestamp; default: 0.")
    ] = "0",
    end: Annotated[str | None, typer.Argument(help="The last version; default: latest.")] = None,
    option: Options = None,
    column: Columns = None,
    where: Where = None,
    limit: Limit = None,
    form: As = OutputFormat.TABLE,
) -> None:
    """Show the change data feed of a range of versions.

    The table format shows 50 rows unless a limit is given.

    Example: deltalog cdf flights 3 5
    """
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
    _print_some(rows.schema, _first(rows.to_batches(), _read(limit, form)), limit, form)


def _read(limit: int | None, form: OutputFormat) -> int | None:
    """Return the number of rows to read. If no limit is given, only the table format has one."""
    return _MOST_SHOWN + 1 if limit is None and form is OutputFormat.TABLE else limit


def _print_some(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], limit: int | None, form: OutputFormat
) -> None:
    """Print rows. If the table format has no limit, say on stderr that there are more than 50."""
    if limit is not None or form is not OutputFormat.TABLE:
        print_batches(schema, batches, form)
        return
    found = pa.Table.from_batches(batches, schema=schema)
    print_batches(schema, found.slice(0, _MOST_SHOWN).to_batches(), form)
    if found.num_rows > _MOST_SHOWN:
        typer.echo(
            f"the first {_MOST_SHOWN} rows; --limit shows more, and --format csv, json or arrow "
            "all of them",
            err=True,
        )


def _first(batches: Iterable[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    """Yield at most `limit` rows. No batch after that is read."""
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
def diff(  # noqa: PLR0917  # callers need each parameter
    table: Location,
    before: Annotated[str, typer.Argument(help="A version or a timestamp.")],
    after: Annotated[str | None, typer.Argument(help="Another version; default: latest.")] = None,
    option: Options = None,
    key: Annotated[
        list[str] | None,
        typer.Option("--key", "-k", metavar="<column>", help="A column that identifies rows."),
    ] = None,
    rows: Annotated[bool, typer.Option("--rows", help="Print the rows that differ.")] = False,  # noqa: FBT002  # typer's signature
    form: As = OutputFormat.TABLE,
) -> None:
    """Show the differences between two versions.

    Example: deltalog diff flights 3 5 --key id --rows
    """
    found = open_table(table, option).diff(
        as_version(before), None if after is None else as_version(after), key=key or ()
    )
    if rows:
        print_batches(found.schema, found.to_batches(), form)
    elif form is OutputFormat.TABLE:
        print_text(repr(found))
        if len(found.schema) > 1:  # there are common columns, so rows can be compared
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


# --- commands that describe or maintain a table


@command("show")
def show(table: Location, option: Options = None, form: As = OutputFormat.TABLE) -> None:
    """Show the table's location, version, size and columns."""
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
    typer.echo(f"deltalog head {table} shows rows", err=True)


@command("history")
def history(
    table: Location,
    option: Options = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=0, help="Maximum number of commits.")
    ] = None,
    form: As = OutputFormat.TABLE,
) -> None:
    """Show the commits, newest first."""
    rows = open_table(table, option).history(limit)
    if form is OutputFormat.JSON:
        print_rows(rows, form)
        return
    if form is OutputFormat.TABLE:
        print_rows(list(map(_commit_of, rows)), form)
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


def _commit_of(row: dict[str, Any]) -> dict[str, Any]:
    """Return a commit for people: what tells most comes first, for a narrow terminal."""
    parameters = readable_parameters(row.get("operationParameters"))
    return {
        "version": row["version"],
        "timestamp": row["timestamp"],
        "operation": row.get("operation"),
        "changed": changes_of_commit(row.get("operationMetrics")),
        "parameters": "; ".join(f"{name}={value}" for name, value in parameters.items()),
    }


@command("files")
def files(
    table: Location,
    option: Options = None,
    where: Where = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=0, help="Maximum number of files.")
    ] = None,
    form: As = OutputFormat.TABLE,
) -> None:
    """Show the data files with their entries in the log."""
    opened = open_table(table, option)
    rows = opened.get_add_actions(flatten=True)
    if where is not None:
        chosen = opened.file_uris(file_pruning_predicate=where)
        known = opened.file_uris()
        kept = set(chosen)
        rows = rows.filter(pa.array([uri in kept for uri in known], pa.bool_()))
    print_facts(rows if limit is None else rows.slice(0, limit), form)


@command("doctor")
def doctor(
    table: Location,
    option: Options = None,
    check: Annotated[
        list[str] | None,
        typer.Option("--check", metavar="<check>", help="Run only this check; may be repeated."),
    ] = None,
    samples: Annotated[int, typer.Option(help="Number of data files to read.", min=0)] = 8,
    form: As = OutputFormat.TABLE,
) -> None:
    """Check the table: find problems, and how to solve them.

    The command also examines a table that cannot be opened.
    """
    from deltalog.table.inspect.doctor import examine  # noqa: PLC0415  # only this command needs it

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
    findings = [
        replace(one, message=in_shell(one.message), advice=one.advice and in_shell(one.advice))
        for one in report.findings
    ]
    report = replace(report, findings=tuple(findings))
    if form is OutputFormat.TABLE:
        print_text(repr(report))
    else:
        print_facts(report.to_table(), form)
    if not report.is_healthy:
        raise typer.Exit(1)


def _size(text: str) -> int:
    """Parse a size in bytes, or with a unit as in `delta.targetFileSize`."""
    try:
        return parse_bytes(text)
    except ValueError as error:
        raise typer.BadParameter(f"{error}, found {text!r}") from error


@command("optimize")
def optimize(  # noqa: PLR0917  # callers need each parameter
    table: NewestLocation,
    option: Options = None,
    z_order: Annotated[
        list[str] | None,
        typer.Option(
            "--z-order",
            "-z",
            metavar="<columns>",
            help="Columns to sort by, with commas; may be repeated.",
        ),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(
            "--where", "-w", metavar="<sql>", help="A condition on partition columns, in Spark SQL."
        ),
    ] = None,
    purge: Annotated[  # noqa: FBT002  # typer's signature
        bool, typer.Option("--purge", help="Rewrite only files with deleted rows.")
    ] = False,
    target_size: Annotated[
        int | None,
        typer.Option(
            parser=_size, metavar="<size>", help="Size of new files: bytes, or such as 512mb, 1gb."
        ),
    ] = None,
    form: As = OutputFormat.TABLE,
) -> None:
    """Combine small files, sort rows, or purge deleted rows.

    Example: deltalog optimize flights --where "month = 1" --z-order carrier
    """
    if z_order and purge:
        raise InvalidInputError("cannot use both --z-order and --purge: use one of them")
    opened = open_table(table, option)
    columns = columns_of(opened, z_order, "--z-order")
    optimizer = opened.optimize
    with bar("optimizing") as progress:
        if columns:
            metrics = optimizer.z_order(columns, where, target_size, progress=progress)
        elif purge:
            metrics = optimizer.purge(where, target_size=target_size, progress=progress)
        else:
            metrics = optimizer.compact(where, target_size, progress=progress)
    print_outcome(metrics, form)


@command("vacuum")
def vacuum(  # noqa: PLR0917  # callers need each parameter
    table: NewestLocation,
    option: Options = None,
    retention_hours: Annotated[
        float | None,
        typer.Option(
            "--retention-hours",
            "--hours",
            help="Hours to keep removed files; default: the table's.",
        ),
    ] = None,
    full: Annotated[  # noqa: FBT002  # typer's signature
        bool, typer.Option("--full", help="Also find files of failed writes; lists the store.")
    ] = False,
    delete: Annotated[bool, typer.Option("--delete", help="Delete the files.")] = False,  # noqa: FBT002  # typer's signature
    dry_run: Annotated[  # noqa: FBT002  # typer's signature
        bool, typer.Option("--dry-run", help="Only list the files, as without --delete.")
    ] = False,
    force: Annotated[  # noqa: FBT002  # typer's signature
        bool,
        typer.Option(
            "--force", help="Allow fewer hours than the table's; readers and writers may then fail."
        ),
    ] = False,
    form: As = OutputFormat.TABLE,
) -> None:
    """List or delete the files that no version needs.

    The command deletes files only with --delete.

    Example: deltalog vacuum flights --hours 240 --delete
    """
    if delete and dry_run:
        raise InvalidInputError("cannot use both --delete and --dry-run: use one of them")
    opened = open_table(table, option)
    if not delete:
        report = opened.vacuum_report(
            retention_hours, full=full, enforce_retention_duration=not force
        )
        print_facts(report, form)
        found = counted(report.num_rows, FILE)
        can_delete = f"{found} can be deleted: add --delete"
        _tell(form, can_delete if report.num_rows else "no file can be deleted")
        return
    with bar("deleting") as progress:
        paths = opened.vacuum(
            retention_hours,
            dry_run=False,
            full=full,
            enforce_retention_duration=not force,
            progress=progress,
        )
    print_rows([{"path": path} for path in paths], form)
    _tell(form, f"{counted(len(paths), FILE)} deleted")


def _tell(form: OutputFormat, text: str) -> None:
    """Print a line for people, apart from the output that programs read."""
    if form is OutputFormat.TABLE:
        typer.echo(text, err=True)


@command("convert")
def convert(
    table: Location,
    option: Options = None,
    form: As = OutputFormat.TABLE,
) -> None:
    """Convert Parquet files or an Iceberg table to a Delta table.

    The Delta table uses the existing data files.
    """
    from deltalog.table.convert import convert_to_deltalake  # noqa: PLC0415  # only this command converts

    with bar("reading") as progress:
        convert_to_deltalake(table, storage_options=storage_options(option), progress=progress)
    opened = open_table(table, option)
    number = len(opened.file_uris())
    if form is OutputFormat.TABLE:
        print_text(f"{counted(number, FILE)} converted as version {opened.version()}")
    else:
        print_record({"version": opened.version(), "files": number}, form)


@command("restore")
def restore(
    table: Location,
    target: Annotated[str, typer.Argument(help="A version or a timestamp.")],
    option: Options = None,
    ignore_missing_files: Annotated[  # noqa: FBT002  # typer's signature
        bool,
        typer.Option("--ignore-missing-files", help="Leave out files that vacuum has deleted."),
    ] = False,
    form: As = OutputFormat.TABLE,
) -> None:
    """Restore an earlier version, as a new version.

    Example: deltalog restore flights 3
    """
    opened = open_table(table, option)
    found = opened.restore(as_version(target), ignore_missing_files=ignore_missing_files)
    version = opened.version()
    shown = {name: found[member] for name, member in _RESTORED.items()}
    if form is OutputFormat.TABLE:
        print_outcome(found, form, f"restored as version {version}: {outcome(found)}")
    else:
        print_record({"version": version, **shown}, form)


_RESTORED: Final = {
    "numRestoredFiles": "numRestoredFile",
    "numRemovedFiles": "numRemovedFile",
    "numMissingFiles": "num_missing_files",
    "restoredBytes": "restored_bytes",
    "removedBytes": "removed_bytes",
}
"""Name that `deltalog restore` prints → the name in deltalake."""


@command("branch")
def branch(  # noqa: PLR0917  # callers need each parameter
    table: Location,
    name: Annotated[str, typer.Argument(help="The name of the branch.")],
    option: Options = None,
    version: Annotated[
        int | None, typer.Option(help="The version at which it starts; default: the latest.")
    ] = None,
    expires_days: Annotated[
        int | None, typer.Option(help="Days after which vacuum deletes it; default: never.", min=1)
    ] = None,
    drop: Annotated[bool, typer.Option("--drop", help="Delete the branch.")] = False,  # noqa: FBT002  # typer's signature
    form: As = OutputFormat.TABLE,
) -> None:
    """Create or delete a branch of the table (preview).

    TABLE@NAME opens the branch.
    """
    opened = open_table(table, option)
    if drop:
        opened.drop_branch(name)
        _tell(form, f"branch {name} deleted")
        return
    expires = None if expires_days is None else timedelta(days=expires_days)
    made = opened.branch(name, version=version, expires_after=expires)
    if form is OutputFormat.TABLE:
        print_text(f"{made.table_uri} created at version {made.version()}")
    else:
        print_record({"branch": name, "table": made.table_uri, "version": made.version()}, form)


@command("branches")
def branches(table: Location, option: Options = None, form: As = OutputFormat.TABLE) -> None:
    """List the branches of the table (preview)."""
    rows = [
        {
            "name": one.name,
            "baseVersion": one.base_version,
            "created": utc_moment(one.created_ms),
            "expires": None if one.expires_ms is None else utc_moment(one.expires_ms),
            "state": one.state.value,
        }
        for one in open_table(table, option).branches()
    ]
    print_rows(rows, form)
    if not rows:
        _tell(form, "the table has no branches")


@command("publish")
def publish(
    table: Annotated[str, typer.Argument(help="The branch: TABLE@NAME.")],
    name: Annotated[
        str | None, typer.Argument(help="The branch, if it is not part of TABLE.")
    ] = None,
    option: Options = None,
    check: Annotated[
        list[str] | None,
        typer.Option(
            "--check", metavar="<sql>", help="SQL that all rows must match; may be repeated."
        ),
    ] = None,
    form: As = OutputFormat.TABLE,
) -> None:
    """Commit the changes of a branch to its table (preview).

    If a check fails, nothing is committed.
    """
    try:
        branch = table if name is None else f"{table}@{name}"
        found = open_table(branch, option).publish(check or ())
    except AuditFailedError as error:
        for failure in error.failures:
            typer.echo(printable(in_shell(f"check failed: {failure}")), err=True)
        raise typer.Exit(1) from None
    if form is OutputFormat.TABLE:
        done = "was already published" if found.was_published else "published"
        print_text(f"{branch.rpartition('@')[2]} {done} as version {found.version}")
    else:
        print_record({"version": found.version, "wasPublished": found.was_published}, form)


@command("checkpoint")
def checkpoint(table: Location, option: Options = None, form: As = OutputFormat.TABLE) -> None:
    """Write a checkpoint of the latest version."""
    opened = open_table(table, option)
    opened.create_checkpoint()
    if form is not OutputFormat.TABLE:
        print_record({"version": opened.version()}, form)
    _tell(form, f"checkpoint of version {opened.version()} written")


@command("properties")
def properties(
    table: Location,
    option: Options = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="<key=value>", help="A property, key=value; may be repeated."
        ),
    ] = None,
    unset: Annotated[
        list[str] | None,
        typer.Option("--unset", metavar="<key>", help="A property's key; may be repeated."),
    ] = None,
    form: As = OutputFormat.TABLE,
) -> None:
    """Show the table's properties, or change them.

    Example: deltalog properties flights --set delta.appendOnly=true
    """
    opened = open_table(table, option)
    if set_:
        opened.alter.set_table_properties(pairs(set_, "--set"))
    if unset:
        opened.alter.unset_table_properties(unset)
    if set_ or unset:
        done = [("set", len(set_ or ())), ("removed", len(unset or ()))]
        changes = [
            f"{counted(count, 'property', 'properties')} {verb}" for verb, count in done if count
        ]
        _tell(form, f"{', '.join(changes)} as version {opened.version()}")
    found = opened.metadata().configuration
    if not found and form is OutputFormat.TABLE:
        typer.echo("the table has no properties", err=True)  # programs read stdout
    print_rows([{"property": name, "value": found[name]} for name in sorted(found)], form)
