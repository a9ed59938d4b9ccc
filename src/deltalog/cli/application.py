"""What the commands share: the application, their common options, how errors end them.

Owns the exit codes: 0 done, 1 the doctor found something, 2 the call is wrong, 3 the table or the
store does not allow it. Answers go to stdout, everything else to stderr.
"""

from __future__ import annotations

import functools
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec

import typer

from deltalog.cli.output import OutputFormat
from deltalog.errors import DeltaError, InvalidInputError
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
