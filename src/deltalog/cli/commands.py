"""The command line: `deltalog show flights`, and so on.

Owns the commands, what they print and their exit codes; each is a few lines over `DeltaTable`.
Answers go to stdout, everything else to stderr. Exit codes: 0 done, 1 the doctor found something,
2 the call is wrong, 3 the table or the store does not allow it.
"""

from __future__ import annotations

import functools
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec

import pyarrow as pa
import typer

from deltalog.cli.output import OutputFormat, as_text, moment_text, print_batches, print_rows
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.locations import open_table_context
from deltalog.progress import progress_bar
from deltalog.table import DeltaTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

P = ParamSpec("P")

_MOST_SHOWN = 50

Location = Annotated[
    str, typer.Argument(help="Path, URL or uc://catalog.schema.table; `table@v3` names a version.")
]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", help="A storage option, key=value; may be repeated."),
]
As = Annotated[OutputFormat, typer.Option("--format", "-f", help="How to print the answer.")]
Where = Annotated[str | None, typer.Option("--where", "-w", help="A condition in Spark SQL.")]

app = typer.Typer(
    help="Look into Delta tables and keep them in order.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def command(name: str) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """A command whose errors are one message, not a traceback."""

    def register(function: Callable[P, None]) -> Callable[P, None]:
        @functools.wraps(function)
        def run(*args: P.args, **options: P.kwargs) -> None:
            try:
                function(*args, **options)
            except DeltaError as error:
                typer.echo(f"error: {error}", err=True)
                for note in getattr(error, "__notes__", ()):
                    typer.echo(f"  {note}", err=True)
                code = 2 if isinstance(error, InvalidInputError) else 3
                raise typer.Exit(code) from None

        return app.command(name)(run)

    return register


@command("show")
def show(table: Location, option: Options = None, form: As = OutputFormat.TABLE) -> None:
    """What the table is: where, which version, how large, which columns."""
    opened = _open(table, option)
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
    rows = _open(table, option).history(limit)
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
    opened = _open(table, option)
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
    rows = _open(table, option).scan(column or None, where, limit=limit)
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
    found = _open(table, option).diff(
        _version(before), None if after is None else _version(after), key=key or ()
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
    snapshot = None if at is None else _open(table, option).snapshot
    with _bar("examining") as progress:
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
    optimizer = _open(table, option).optimize
    with _bar("optimizing") as progress:
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
    opened = _open(table, option)
    if not delete:
        found = opened.vacuum_report(retention_hours, full=full)
        print_batches(found.schema, found.to_batches(), form)
        return
    with _bar("deleting") as progress:
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
    print_rows([_open(table, option).restore(_version(target))], form)


@command("checkpoint")
def checkpoint(table: Location, option: Options = None) -> None:
    """Write a checkpoint of the latest version."""
    opened = _open(table, option)
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
    opened = _open(table, option)
    if set_:
        opened.alter.set_table_properties(_pairs(set_, "--set"))
    if unset:
        opened.alter.unset_table_properties(unset)
    found = opened.metadata().configuration
    print_rows([{"property": name, "value": found[name]} for name in sorted(found)], form)


def _open(table: str, option: list[str] | None) -> DeltaTable:
    return DeltaTable(table, storage_options=storage_options(option))


def storage_options(option: list[str] | None) -> dict[str, str] | None:
    """Return the options of a store, which were given as key=value."""
    return _pairs(option, "-o") if option else None


def _pairs(texts: Iterable[str], name: str) -> dict[str, str]:
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:  # the value may be a secret
            raise InvalidInputError(f"cannot take {name} {key!r}…: expected key=value")
        found[key] = value
    return found


def _version(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() else text


def _bar(title: str) -> Any:
    """A bar for people; nothing where nobody looks."""
    return progress_bar(title) if sys.stderr.isatty() else nullcontext()
