"""What the commands share: the application, their common options, how errors end them.

Owns the exit codes: 0 done, 1 the doctor found something, 2 the call is wrong, 3 the table or the
store does not allow it. Answers go to stdout, everything else to stderr.
"""

from __future__ import annotations

import functools
import inspect
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any, Final, ParamSpec

import typer

from deltalog._version import __version__
from deltalog.cli.output import OutputFormat
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.escaping import printable
from deltalog.progress import progress_bar
from deltalog.table import DeltaTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

P = ParamSpec("P")

Location = Annotated[
    str, typer.Argument(help="Path, URL or uc://catalog.schema.table; `table@v3` names a version.")
]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", help="A storage option, key=value; may be repeated."),
]
As = Annotated[OutputFormat, typer.Option("--format", "-f", help="How to print the answer.")]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column", "--columns", "-c", help="A column, or several with commas; may be repeated."
    ),
]
Where = Annotated[str | None, typer.Option("--where", "-w", help="A condition in Spark SQL.")]

app: typer.Typer = typer.Typer(
    help="Look into Delta tables and keep them in order.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _tell_version(is_asked: bool) -> None:  # noqa: FBT001  # typer's form
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
    """A command whose errors are one message, not a traceback.

    One that prints in forms also takes `--json` and `--csv` for `--format json` and so on.
    """

    def register(function: Callable[P, None]) -> Callable[P, None]:
        signature = inspect.signature(function, eval_str=True)

        @functools.wraps(function)
        def run(*args: P.args, **options: P.kwargs) -> None:
            try:
                _choose_form(options)
                function(*args, **options)
            except DeltaError as error:
                for line in [f"error: {error}", *_indented(getattr(error, "__notes__", ()))]:
                    typer.echo("\n".join(map(printable, line.split("\n"))), err=True)
                code = 2 if isinstance(error, InvalidInputError) else 3
                raise typer.Exit(code) from None

        if "form" in signature.parameters:
            given = [*signature.parameters.values(), *_SHORT_FORMS]
            run.__signature__ = signature.replace(parameters=given)  # type: ignore[attr-defined]
        return app.command(name)(run)

    return register


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
    """Put the form that was asked for in short where the command looks for it."""
    short = [each.name for each in _SHORT_FORMS if options.pop(each.name, False)]
    if not short:
        return
    given = [*short, *([] if options["form"] is OutputFormat.TABLE else [options["form"]])]
    if len(set(given)) > 1:
        raise InvalidInputError(
            f"cannot print in several forms: {', '.join(given)}: give one of them"
        )
    options["form"] = OutputFormat(given[0])


def open_table(table: str, option: list[str] | None) -> DeltaTable:
    """Open the table that was named, with the options of its store."""
    return DeltaTable(table, storage_options=storage_options(option))


def storage_options(option: list[str] | None) -> dict[str, str] | None:
    """Return the options of a store, which were given as key=value."""
    return pairs(option, "-o") if option else None


def pairs(texts: Iterable[str], name: str) -> dict[str, str]:
    """Return what was given as key=value, by the option of that name."""
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:  # the value may be a secret
            raise InvalidInputError(f"cannot take {name} {key!r}…: expected key=value")
        found[key] = value
    return found


def as_version(text: str) -> int | str:
    """Return a version if the text is a number, else the text of a moment."""
    return int(text) if text.isascii() and text.isdigit() else text


def bar(title: str) -> Any:
    """Show a bar to people; nothing where nobody looks."""
    return progress_bar(title) if sys.stderr.isatty() else nullcontext()


def columns_of(table: DeltaTable, given: list[str] | None) -> list[str] | None:
    """Return the columns that were named; a comma divides names unless it is part of one."""
    if not given:
        return None
    known = set(table.schema().names)
    return [
        name
        for text in given
        for name in ([text] if text in known else map(str.strip, text.split(",")))
    ]
