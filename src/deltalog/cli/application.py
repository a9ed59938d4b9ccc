"""The common parts of the commands: the application, shared options, output, and errors.

The exit codes are 0: success; 1: the command found a problem, such as `doctor`; 2: the arguments
are invalid; 3: the table or the store does not allow the command. Results are printed to stdout,
and everything else to stderr.
"""

from __future__ import annotations

import functools
import inspect
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, ParamSpec

import pyarrow as pa
import typer
from rich.cells import cell_len, set_cell_size
from typer.core import TyperArgument, TyperCommand, TyperGroup

from deltalog._util.cards import progress_bar
from deltalog._util.escaping import printable, printable_json, printable_lines
from deltalog._util.json import dumps
from deltalog._util.readable import counted, details, outcome, readable_size, readable_time
from deltalog._util.version import __version__
from deltalog.cli.advice import (
    COMMANDS_MEANT,
    SUBCOMMANDS_MEANT,
    help_meant,
    in_shell,
    options_of,
    plain_usage,
    quoting_advice,
)
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.expressions.string_forms import has_far_years
from deltalog.schema.check import readable_moment, readable_rows, readable_tuples, readable_values
from deltalog.table import DeltaTable

# --- output: a table for people; JSON lines, CSV or Arrow for programs


_MOST_LETTERS: Final = 60
_FEWEST_LETTERS: Final = 20
_MOST_NAMED: Final = 5


class OutputFormat(StrEnum):
    """The form of the output."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    ARROW = "arrow"


def print_rows(rows: list[dict[str, Any]], form: OutputFormat) -> None:
    """Print a few rows of facts. In the table format, `humane` converts the values."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    if form is OutputFormat.JSON:
        for row in rows:
            typer.echo(printable_json(dumps(_plain(row)).decode()))
    elif form is OutputFormat.TABLE:
        _draw_facts(names, [[row.get(name) for name in names] for row in rows])
    else:
        texts = [{name: as_text(row.get(name)) for name in names} for row in rows]
        kinds = pa.schema([(name, pa.string()) for name in names])
        table = pa.Table.from_pylist(texts, schema=kinds)
        print_batches(table.schema, table.to_batches(), form)


def print_record(record: dict[str, Any], form: OutputFormat) -> None:
    """Print one record. The table format has one line per member."""
    if form is OutputFormat.TABLE:
        facts = [(name, humane(name, value)) for name, value in record.items()]
        _draw(["", ""], [fact for fact in facts if fact[1]])
    else:
        print_rows([record], form)


def print_outcome(facts: Mapping[str, Any], form: OutputFormat, sentence: str = "") -> None:
    """Print the result of an operation. The table format has a sentence, and what it leaves out.

    Args:
        facts: the result.
        form: the format.
        sentence: what was done; by default, `outcome` describes the facts.
    """
    if form is not OutputFormat.TABLE:
        print_rows([dict(facts)], form)
        return
    print_text(sentence or outcome(facts) or "done")
    lines, _ = lay_out(["", ""], list(details(facts).items()), None)
    for line in lines[1:]:
        typer.echo(f"  {line}")


def print_facts(table: pa.Table, form: OutputFormat) -> None:
    """Print Arrow data that comes from the log or from an operation."""
    if form is OutputFormat.TABLE:
        _draw_facts(table.column_names, list(readable_tuples(table)))
    else:
        print_batches(table.schema, table.to_batches(), form)


def print_text(text: str) -> None:
    """Print lines for people. Control characters, which may be in a log, are escaped."""
    for line in text.split("\n"):
        typer.echo(printable(line))


def print_batches(schema: pa.Schema, batches: Iterable[pa.RecordBatch], form: OutputFormat) -> None:
    """Print rows of a table, batch by batch, with unchanged values."""
    match form:
        case OutputFormat.JSON:
            twice = {name for name in schema.names if schema.names.count(name) > 1}
            if twice:
                raise InvalidInputError(
                    f"cannot print JSON: several columns are called {min(twice)!r}; give each "
                    "another alias"
                )
            for batch in batches:
                for row in readable_rows(batch):
                    typer.echo(printable_json(dumps(_plain(row)).decode()))
        case OutputFormat.TABLE:
            rows = [
                ["NULL" if value is None else _shown(value) for value in row]
                for batch in batches
                for row in readable_tuples(batch)
            ]
            _draw(schema.names, rows)
        case OutputFormat.CSV:
            _write_csv(schema, batches)
        case OutputFormat.ARROW:
            with pa.ipc.new_stream(_out(), schema) as writer:
                for batch in batches:
                    writer.write_batch(batch)


def _write_csv(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    from pyarrow import csv  # noqa: PLC0415  # only this function needs it

    # Files and programs receive the values unchanged. For a terminal, control characters are
    # escaped.
    is_shown = sys.stdout.isatty()
    names = [printable(name) if is_shown else name for name in schema.names]
    flat = [_flat_field(field).with_name(name) for field, name in zip(schema, names, strict=True)]
    csv.write_csv(pa.schema(flat).empty_table(), _out())
    without_header = csv.WriteOptions(include_header=False)
    for batch in batches:
        columns: list[Any] = []
        for field, column in zip(flat, batch.columns, strict=True):
            held: Any = column
            if not field.type.equals(column.type) or _is_beyond_csv(column):
                held = pa.array([as_text(one) for one in readable_values(column)], pa.string())
            if is_shown and held.type in {pa.string(), pa.large_string()}:
                texts = held.to_pylist()
                held = pa.array([one and printable_lines(one) for one in texts], held.type)
            columns.append(held)
        csv.write_csv(pa.RecordBatch.from_arrays(columns, names), _out(), without_header)


def _is_beyond_csv(column: pa.Array[Any]) -> bool:
    """Return whether Arrow would print wrong years, because it uses 16 bits for a year."""
    has_days = pa.types.is_date(column.type) or pa.types.is_timestamp(column.type)
    return has_days and has_far_years(column)


def _out() -> Any:
    return typer.get_binary_stream("stdout")


def _flat_field(field: pa.Field[Any]) -> pa.Field[Any]:
    """Return the field for CSV. It becomes a string if its values must be converted to JSON."""
    kind = field.type
    is_odd = pa.types.is_nested(kind) or isinstance(kind, pa.ExtensionType)
    if is_odd or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.field(field.name, pa.string())
    return field


def _draw_facts(names: list[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print facts as a table for people. Empty columns are omitted."""
    cells = [[humane(*pair) for pair in zip(names, row, strict=True)] for row in rows]
    kept = [number for number in range(len(names)) if any(row[number] for row in cells)]
    _draw([names[number] for number in kept], [[row[number] for number in kept] for row in cells])


def _draw(names: list[str], rows: Sequence[Sequence[str | None]]) -> None:
    # If the output is not a terminal, lines are neither truncated nor padded.
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    lines, num_left_out = lay_out(names, rows, width)
    is_bold = width is not None and not is_plain_terminal()
    for number, line in enumerate(lines):
        if number == 0 and not any(names):
            continue
        typer.echo(typer.style(line, bold=True) if is_bold and number == 0 else line)
    if num_left_out:
        missing = ", ".join(map(printable, names[-num_left_out:]))
        if num_left_out > _MOST_NAMED:
            missing = counted(num_left_out, "column")
        typer.echo(f"left out, because the line is full: {missing} (--json shows all)", err=True)


def is_plain_terminal() -> bool:
    """Return whether the terminal has no styles, or the user disabled them (no-color.org)."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def lay_out(
    names: list[str], rows: Sequence[Sequence[str | None]], width: int | None
) -> tuple[list[str], int]:
    """Align cells under the names of their columns, with two blanks between columns.

    Args:
        names: the names of the columns.
        rows: the rows, with one string per column; None is an empty cell.
        width: the maximum number of characters in a line; None means no limit. Long cells are
            truncated, paths in the middle. The last columns are omitted if there is not enough
            space for `_FEWEST_LETTERS` characters of each column.

    Returns:
        The lines, and the number of omitted columns.
    """
    lines = [[printable(cell or "") for cell in row] for row in [names, *rows]]
    if not names:
        return [], 0
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    if width is not None:
        widths = _fitting([min(letters, _MOST_LETTERS) for letters in widths], width)
    drawn = [
        "  ".join(
            set_cell_size(_cut(cell, letters), letters)
            for cell, letters in zip(line, widths, strict=False)
        ).rstrip()
        for line in lines
    ]
    return drawn, len(names) - len(widths)


def _fitting(wanted: list[int], width: int) -> list[int]:
    """Return the width of each column. The widest columns are made narrower first."""
    least = [min(letters, _FEWEST_LETTERS) for letters in wanted]
    num_columns = len(wanted)
    while num_columns > 1 and sum(least[:num_columns]) + 2 * (num_columns - 1) > width:
        num_columns -= 1
    found = wanted[:num_columns]
    while sum(found) + 2 * (num_columns - 1) > width and max(found) > 1:
        found[found.index(max(found))] -= 1
    return found


def _cut(text: str, letters: int) -> str:
    if cell_len(text) <= letters:
        return text
    if "/" not in text or " " in text:
        return set_cell_size(text, letters - 1) + "…"
    # Truncate a path in the middle, because its end distinguishes it from other paths.
    half = (letters - 1) // 2
    return text[: letters - 1 - half] + "…" + text[len(text) - half :]


def humane(name: str, value: object) -> str | None:
    """Return a value for people: a size with a unit, a time as a date, others as in `as_text`."""
    if value in (None, [], {}):
        return None
    readable = _HUMANE.get(name)
    return as_text(value) if readable is None else readable(value)


def as_text(value: object) -> str | None:
    """Return a value as a string. Nested values are converted to JSON."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict | list | tuple | bytes):
        held = _plain(value)
        return held if isinstance(held, str) else dumps(held).decode()
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _shown(value: object) -> str | None:
    """Return a value of a row for people: a time as in `readable_time`."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return readable_time(value)
    return as_text(value)


def _plain(value: Any) -> Any:
    """Convert a value to one that JSON can represent."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if value == value and abs(value) != float("inf") else str(value)  # noqa: PLR0124  # NaN differs from itself
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


def _moment_text(moment: Any) -> str:
    """Return a time as a string in UTC. A number means milliseconds since 1970."""
    if not isinstance(moment, datetime):
        return readable_moment(int(moment))
    return str(moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ"))


def _size_text(size_bytes: Any) -> str:
    """Return a size with a unit. The size may be a string, as in the metrics of operations."""
    return readable_size(int(size_bytes))


_HUMANE: Final[dict[str, Callable[[Any], str]]] = {
    "size_bytes": _size_text,
    "sizeInBytes": _size_text,
    "bytes_to_read": _size_text,
    "modification_time": _moment_text,
    "timestamp": _moment_text,
    "createdAt": _moment_text,
    "lastModified": _moment_text,
    "created": _moment_text,
    "expires": _moment_text,
    "restoredBytes": _size_text,
    "removedBytes": _size_text,
}
"""Name of a value that a command prints → the function that formats the value for people."""


# --- the application, shared options and errors


P = ParamSpec("P")

Location = Annotated[
    str, typer.Argument(help="Path, URL or uc://catalog.schema.table; `table@v3` names a version.")
]
NewestLocation = Annotated[str, typer.Argument(help="Path, URL or uc://catalog.schema.table.")]
"""The location of a table that a command changes."""
Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        "-o",
        metavar="<key=value>",
        help="A storage option, key=value; may be repeated.",
    ),
]
As = Annotated[OutputFormat, typer.Option("--format", "-f", help="Output format.")]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        "--columns",
        "-c",
        metavar="<columns>",
        help="One or more columns, with commas; may be repeated.",
    ),
]
Where = Annotated[
    str | None, typer.Option("--where", "-w", metavar="<sql>", help="A condition in Spark SQL.")
]


_GROUPS: Final = {
    "Read rows": ("head", "scan", "count", "sql", "explain", "cdf", "diff"),
    "Inspect": ("show", "schema", "history", "files", "properties", "doctor"),
    "Write and change": ("write", "convert", "restore", "branch", "branches", "publish"),
    "Maintain": ("optimize", "vacuum", "checkpoint"),
    "Share": ("share",),
    "Tools": ("completion", "spark-archive", "simulate"),
}
"""Heading in the help → the commands below it."""


class Command(TyperCommand):
    """A command whose help and errors write arguments in capitals, as in `TABLE [START]`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        """Give each argument the name that the usage shows."""
        super().__init__(*args, **options)
        for parameter in self.params:
            if isinstance(parameter, TyperArgument) and parameter.metavar is None:
                parameter.metavar = str(parameter.name).upper()

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage; typer writes required arguments in braces."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


class Subcommands(TyperGroup):
    """The commands after `share`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; an unknown one of another program gets advice."""
        advice = SUBCOMMANDS_MEANT.get(args[0].lower())
        if args[0].lower() == "help":
            advice = help_meant(self, args[1:], "deltalog share")
        if args[0] not in self.commands and advice is not None:
            ctx.fail(f"No such command {args[0]!r}. {advice}")
        return super().resolve_command(ctx, args)


class _Commands(TyperGroup):
    """The commands. Their usage errors say what to use instead."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the names of the commands with their help, grouped by their purpose."""
        width = max(map(len, self.commands))
        for heading, names in _GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl(
                    (
                        name.ljust(width),
                        self.commands[name].get_short_help_str(formatter.width - width - 6),
                    )
                    for name in names
                )
        del ctx

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; an unknown one of another program gets advice."""
        advice = None if args[0] in self.commands else COMMANDS_MEANT.get(args[0].lower())
        if args[0].lower() == "help":
            advice = help_meant(self, args[1:])
        elif args[0] not in self.commands and advice is None and Path(args[0]).is_dir():
            advice = f"The command is before the table, as in deltalog show {args[0]}"
        if advice is not None:
            ctx.fail(f"No such command {args[0]!r}. {advice}")
        return super().resolve_command(ctx, args)

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Parse what is before the command."""
        with plain_usage(self._options):
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Parse the options of the command, and run it."""
        with plain_usage(self._options):
            return super().invoke(ctx)

    def _options(self) -> set[str]:
        return set().union(*map(options_of, self.commands.values()))


app: typer.Typer = typer.Typer(
    cls=_Commands,
    help=(
        "Read, write, check and maintain Delta tables.\n\n"
        "deltalog COMMAND --help shows the options of a command."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"max_content_width": 120, "help_option_names": ["-h", "--help"]},
)


def _tell_version(is_asked: bool) -> None:  # noqa: FBT001  # typer's signature
    if is_asked:
        typer.echo(f"deltalog {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_tell_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    del version


def command(name: str) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Register a command. Its errors are printed as a message, without a traceback.

    A command with `--format` also accepts the short forms, such as `--json` and `--csv`.
    """

    def register(function: Callable[P, None]) -> Callable[P, None]:
        signature = inspect.signature(function, eval_str=True)

        @functools.wraps(function)
        def run(*args: P.args, **options: P.kwargs) -> None:
            try:
                _choose_form(options)
                with warnings.catch_warnings():
                    warnings.showwarning = _show_warning
                    function(*args, **options)
            except DeltaError as error:
                hint = quoting_advice(error, options)
                for line in [f"error: {error}{hint}", *_indented(getattr(error, "__notes__", ()))]:
                    _complain(line)
                code = 2 if isinstance(error, InvalidInputError) else 3
                raise typer.Exit(code) from None
            except BrokenPipeError:
                # The reader, such as `head`, needs no more. Python would fail to flush at its end.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                raise typer.Exit from None

        if "form" in signature.parameters:
            given = [*signature.parameters.values(), *_SHORT_FORMS]
            run.__signature__ = signature.replace(parameters=given)  # type: ignore[attr-defined]
        return app.command(name, cls=Command)(run)

    return register


def _complain(line: str) -> None:
    text = in_shell(line)
    typer.echo("\n".join(map(printable, text.split("\n"))), err=True)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning without the line of code, which is deltalog's own."""
    _complain(f"warning: {message}")


def _indented(notes: Iterable[str]) -> list[str]:
    return [f"  {note}" for note in notes]


_SHORT_FORMS: Final = [
    inspect.Parameter(
        form,
        inspect.Parameter.KEYWORD_ONLY,
        default=False,
        annotation=Annotated[bool, typer.Option(f"--{form}", help=f"Short for --format {form}.")],
    )
    for form in (OutputFormat.JSON, OutputFormat.CSV)
]


def _choose_form(options: dict[str, Any]) -> None:
    """Set `--format` according to a short form, such as `--json`."""
    short = [each.name for each in _SHORT_FORMS if options.pop(each.name, False)]
    if not short:
        return
    given = [*short, *([] if options["form"] is OutputFormat.TABLE else [options["form"]])]
    if len(set(given)) > 1:
        raise InvalidInputError(
            f"cannot print in several formats: {', '.join(given)}: give one of them"
        )
    options["form"] = OutputFormat(given[0])


def open_table(table: str, option: list[str] | None) -> DeltaTable:
    """Open the table with the storage options of the command."""
    return DeltaTable(table, storage_options=storage_options(option))


def storage_options(option: list[str] | None) -> dict[str, str] | None:
    """Return the options of a store from arguments of the form key=value."""
    return pairs(option, "-o") if option else None


def pairs(texts: Iterable[str], name: str) -> dict[str, str]:
    """Return arguments of the form key=value as a dictionary.

    Args:
        texts: the arguments.
        name: the name of the option, for errors.
    """
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:  # the error does not contain the value, which may be a secret
            raise InvalidInputError(
                f"cannot use {name} {key!r}: expected key=value, with a value after ="
                if not equals
                else f"cannot use {name}: expected key=value, with a key before ="
            )
        found[key] = value
    return found


def as_version(text: str) -> int | str:
    """Return the number of a version, such as 3 or v3; another string is a timestamp."""
    number = text.removeprefix("v")
    return int(number) if number.isascii() and number.isdigit() else text


def bar(title: str) -> Any:
    """Show a progress bar in a terminal."""
    return progress_bar(title) if sys.stderr.isatty() else nullcontext()


def columns_of(
    table: DeltaTable, given: list[str] | None, option: str = "--columns"
) -> list[str] | None:
    """Return the columns of an option; None if it is not given.

    A comma separates names, unless a column's name contains it.
    """
    if not given:
        return None
    known = set(table.schema().names)
    for text in given:
        if text not in known and len(text.split()) > 1 and known.issuperset(text.split()):
            raise InvalidInputError(
                f"{option} {text!r}: commas separate names, as in {','.join(text.split())}"
            )
    return [
        name
        for text in given
        for name in ([text] if text in known else map(str.strip, text.split(",")))
    ]
