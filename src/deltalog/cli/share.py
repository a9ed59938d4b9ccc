"""`deltalog share`: a Delta Sharing server from the command line.

Owns the commands; what they do is `deltalog.sharing`'s, which is imported when one is called.
"""

from __future__ import annotations

from typing import Annotated

import typer

from deltalog.cli.commands import app

_share = typer.Typer(help="Share tables with others by Delta Sharing.", no_args_is_help=True)
app.add_typer(_share, name="share")

Config = Annotated[str, typer.Argument(help="A YAML or TOML file.")]


@_share.command("serve")
def serve(
    config: Config,
    host: Annotated[str | None, typer.Option(help="Instead of the file's.")] = None,
    port: Annotated[int | None, typer.Option(help="Instead of the file's.")] = None,
) -> None:
    """Share the tables of a configuration file until the process is told to end."""
    options = [] if host is None else ["--host", host]
    options += [] if port is None else ["--port", str(port)]
    _run("serve", config, *options)


@_share.command("check")
def check(
    config: Config,
    *,
    tables: Annotated[bool, typer.Option("--tables", help="Open every table, too.")] = False,
) -> None:
    """Look for faults in a configuration file."""
    _run("check", config, *(["--tables"] if tables else []))


@_share.command("token")
def token() -> None:
    """Make a token, and the hash that the configuration keeps of it."""
    _run("token")


def _run(*arguments: str) -> None:
    try:
        from deltalog.sharing.__main__ import main  # noqa: PLC0415 -- its extras may be missing
    except ModuleNotFoundError as error:
        typer.echo(f"error: {error}; pip install 'deltalog[sharing]'", err=True)
        raise typer.Exit(2) from None
    raise typer.Exit(main(list(arguments)))


__all__ = ["app"]
