"""`deltalog sql`: statements from an argument, a file, standard input or a prompt."""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from deltalog._util.escaping import printable
from deltalog._util.readable import details, outcome
from deltalog.cli.advice import in_shell
from deltalog.cli.application import (
    As,
    Options,
    OutputFormat,
    command,
    print_batches,
    print_outcome,
    storage_options,
)
from deltalog.errors import DeltaError, InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalog.statements import Connection
    from deltalog.statements.connection import LocatedStatement


_HISTORY: Final = Path("~/.deltalog_history")
_BEGINNINGS: Final = ("select ", "with ", "show ", "describe ", "insert ", "update ", "delete ")
_PROMPTS: Final = ("deltalog> ", "     ...> ")


@command("sql")
def sql(  # noqa: PLR0917  # callers need each parameter
    statement: Annotated[
        str | None, typer.Argument(help="Statements, separated by semicolons. - reads stdin.")
    ] = None,
    file: Annotated[
        str | None,
        typer.Option(
            "--file",
            "-i",
            metavar="<file>",
            help="A file with statements, separated by semicolons. - reads stdin.",
        ),
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(
            "--table",
            "-t",
            metavar="<name=location>",
            help="name=location: gives a table a name; may be repeated.",
        ),
    ] = None,
    catalog: Annotated[
        str | None,
        typer.Option(
            "--catalog",
            "-c",
            help="Catalog: uc:// (from the environment), a URL, glue, or a directory.",
        ),
    ] = None,
    schema: Annotated[
        str | None, typer.Option("--schema", "-s", help="Default schema of names.")
    ] = None,
    option: Options = None,
    form: As = OutputFormat.TABLE,
) -> None:
    """Run SQL statements, or start a prompt if none are given.

    Example: deltalog sql -t flights=flights "SELECT count(*) FROM flights"
    """
    from deltalog.statements import connect  # noqa: PLC0415  # slow, and only for SQL

    if statement is not None and file is not None:
        raise InvalidInputError("cannot run a statement and a file: give one of them")
    if schema is not None and catalog is None:
        raise InvalidInputError("cannot use --schema without --catalog: give both")
    _check_no_file(statement or "")
    _check_no_statement(catalog or "")
    options = storage_options(option)
    with connect(
        _tables(table), catalog=catalog, schema=schema, storage_options=options
    ) as connection:
        text = _content(file) if file is not None else statement
        if text == "-" or (text is None and not sys.stdin.isatty()):
            text = sys.stdin.read()
        if text is None:
            _ask(connection, form)
            return
        _run_script(connection, text, form, _name_of(statement, file))


_STANDARD_INPUT: Final = "standard input"


def _name_of(statement: str | None, file: str | None) -> str:
    """Return the name of the script for errors; empty for an argument."""
    if "-" in {statement, file} or (statement is None and file is None):
        return _STANDARD_INPUT
    return file or ""


def _run_script(connection: Connection, script: str, form: OutputFormat, name: str) -> None:
    from deltalog.statements import parse_statement  # noqa: PLC0415  # see `sql`
    from deltalog.statements.connection import located_statements  # noqa: PLC0415  # see `sql`

    try:
        statements = located_statements(script)
    except InvalidInputError as error:
        raise (error.with_message(f"{name}: {error}") if name else error) from None

    def attempt(one: LocatedStatement, run: Callable[[], object]) -> None:
        try:
            run()
        except DeltaError as error:
            if not name and len(statements) == 1:
                raise
            raise one.located(error, script, name or "the statements") from error

    if not script.strip() and name == _STANDARD_INPUT:
        raise InvalidInputError(
            "standard input is empty: give a statement, as in deltalog sql 'SELECT 1', or a file "
            "as --file FILE"
        )
    if not statements and name:
        typer.echo(f"{name} has no statements", err=True)
    for one in statements:  # so that no statement runs if a later one is invalid
        attempt(one, partial(parse_statement, one.text))
    for number, one in enumerate(statements):
        if number and form is OutputFormat.TABLE:
            typer.echo("")  # the results of two statements are apart
        attempt(one, partial(_run_statement, connection, one.text, form))


def _content(file: str) -> str:
    if file == "-":
        return file
    try:
        return Path(file).read_text("utf-8")
    except UnicodeDecodeError:
        raise InvalidInputError(f"cannot read {file!r}: it is not a text in UTF-8") from None
    except FileNotFoundError:
        raise InvalidInputError(f"cannot read {file!r}: it does not exist") from None
    except IsADirectoryError:
        problem = "it is a directory; --file expects a file with statements"
        raise InvalidInputError(f"cannot read {file!r}: {problem}") from None
    except OSError as error:
        raise InvalidInputError(f"cannot read {file!r}: {error.strerror}") from None


def _check_no_file(statement: str) -> None:
    """Refuse the name of a file where a statement is expected."""
    if statement.endswith(".sql") and len(statement.split()) == 1:
        raise InvalidInputError(
            f"cannot run {statement!r}: it is no statement; --file {statement} runs the statements "
            "of a file"
        )


def _check_no_statement(catalog: str) -> None:
    """Refuse a statement after -c, which is the option for it in other programs."""
    if catalog.lower().startswith(_BEGINNINGS) and not Path(catalog).exists():
        raise InvalidInputError(
            f"cannot use --catalog (-c) {catalog!r}: it is a statement; give it without an option"
        )


def _tables(given: list[str] | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in given or ():
        name, sign, location = pair.partition("=")
        if not sign or not name.strip() or not location.strip():
            raise InvalidInputError(f"--table: expected name=location, found {pair!r}")
        found[name.strip()] = location.strip()
    return found


def _run_statement(connection: Connection, statement: str, form: OutputFormat) -> None:
    result = connection.sql(statement)
    is_table = form is OutputFormat.TABLE
    if is_table and result.metrics is not None and outcome(result.metrics):
        print_outcome(result.metrics, form)
    elif result.schema.names:
        print_batches(result.schema, iter(result), form)
    elif is_table:
        typer.echo("done", err=True)
        for name, text in details(result.metrics or {}).items():
            typer.echo(printable(f"  {name}: {text}"), err=True)


def _ask(connection: Connection, form: OutputFormat) -> None:
    """Read statements from a prompt and run them. After an error, the prompt continues."""
    from deltalog.statements.connection import statements_of  # noqa: PLC0415  # see `sql`

    save = _with_history()
    typer.echo("Statements end with a semicolon; \\q or Ctrl-D ends the session.", err=True)
    try:
        while (text := _typed()) is not None:
            for statement in statements_of(text):
                try:
                    _run_statement(connection, statement, form)
                except DeltaError as error:
                    typer.echo(f"error: {in_shell(str(error))}", err=True)
                except KeyboardInterrupt:
                    typer.echo("interrupted", err=True)
    finally:
        save()


def _typed() -> str | None:
    """Return the user's input up to a semicolon; None at the end of the input."""
    from deltalog.statements.connection import is_complete  # noqa: PLC0415  # see `sql`

    lines: list[str] = []
    while True:
        try:
            line = input(_PROMPTS[bool(lines)])
            if not lines and line.strip().lower() in {"\\q", "exit", "quit"}:
                return None
            lines.append(line)
            text = "\n".join(lines)
            if not text.strip():
                lines.clear()
            elif is_complete(text):
                return text
        except EOFError:
            typer.echo("", err=True)
            return None
        except KeyboardInterrupt:
            typer.echo("", err=True)
            lines.clear()


def _with_history() -> Callable[[], None]:
    """Load the history of earlier sessions, if possible; return a function that saves it."""
    try:
        import readline  # noqa: PLC0415  # not available on every system
    except ImportError:
        return lambda: None
    path = _HISTORY.expanduser()
    module: Any = readline
    with suppress(OSError):
        module.read_history_file(path)

    def save() -> None:
        with suppress(OSError):
            module.set_history_length(1000)
            module.write_history_file(path)
            path.chmod(0o600)

    return save
