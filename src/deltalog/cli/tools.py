"""The commands that open no table: `share`, `spark-archive`, `simulate` and `completion`."""

from __future__ import annotations

import logging
import sys
import sysconfig
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.completion import (  # type: ignore[attr-defined]  # not exported by typer
    completion_init,
    get_completion_script,
)

from deltalog._util.clock import Stopwatch
from deltalog._util.readable import counted, readable_size
from deltalog.cli.application import (
    As,
    Command,
    OutputFormat,
    Subcommands,
    app,
    command,
    print_rows,
)
from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterator


# --- `deltalog share`: a Delta Sharing server


_share = typer.Typer(cls=Subcommands, help="Share tables with Delta Sharing.", no_args_is_help=True)
app.add_typer(_share, name="share")

Config = Annotated[str, typer.Argument(help="A YAML or TOML file.")]


@_share.command("serve", cls=Command)
def serve(
    config: Config,
    host: Annotated[str | None, typer.Option(help="Overrides the file's host.")] = None,
    port: Annotated[int | None, typer.Option(help="Overrides the file's port.")] = None,
) -> None:
    """Start a sharing server with a configuration file."""
    options = [] if host is None else ["--host", host]
    options += [] if port is None else ["--port", str(port)]
    _run("serve", config, *options)


@_share.command("check", cls=Command)
def check(
    config: Config,
    *,
    tables: Annotated[
        bool, typer.Option("--tables", help="Also open every table, as a recipient would.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print a line of JSON per table.")] = False,
) -> None:
    """Check a configuration file for errors.

    The exit code is 1 if a table cannot be shared, and 2 if the file is invalid.
    """
    options = ["--tables"] if tables else []
    _run("check", config, *options, *(["--json"] if json else []))


@_share.command("token", cls=Command)
def token(
    profile: Annotated[
        str | None, typer.Option(help="Write the token to this new file, print only the hash.")
    ] = None,
    endpoint: Annotated[str | None, typer.Option(help="The endpoint of the profile.")] = None,
) -> None:
    """Create a token, and its hash for the configuration file."""
    options = [] if profile is None else ["--profile", profile]
    options += [] if endpoint is None else ["--endpoint", endpoint]
    _run("token", *options)


def _run(*arguments: str) -> None:
    try:
        from deltalog.sharing.__main__ import main  # noqa: PLC0415 -- its extras may be missing
    except InvalidInputError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None
    raise typer.Exit(main(list(arguments)))


# --- `deltalog spark-archive`: what the workers of a Spark cluster need


@command("spark-archive")
def spark_archive(
    out: Annotated[Path, typer.Argument(help="The archive, such as deltalog.tar.gz.")],
    extras: Annotated[
        list[str] | None,
        typer.Option(
            "--extras",
            "-e",
            metavar="<extras>",
            help="Extras, such as s3, with commas; may be repeated.",
        ),
    ] = None,
    form: As = OutputFormat.TABLE,
) -> None:
    """Archive deltalog for the workers of a Spark cluster.

    The archive also contains the requirements of deltalog.
    """
    from deltalog.cli.spark_archive import write_spark_archive  # noqa: PLC0415  # as in `doctor`

    names = [name.strip() for text in extras or () for name in text.split(",")]
    packages = write_spark_archive(out, filter(None, names))
    print_rows([asdict(one) for one in packages], form)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    typer.echo(
        f"{out}: {readable_size(out.stat().st_size)} for Python {version} on "
        f"{sysconfig.get_platform()}; to use it:\n"
        f"spark-submit --archives {out}#packages "
        "--conf spark.executorEnv.PYTHONPATH=packages",
        err=True,
    )


# --- `deltalog simulate`: histories of a simulated table, for tests and to repeat a failure


@command("simulate")
def simulate(
    seed: Annotated[int, typer.Option(help="Seed of the first history.", min=0)] = 0,
    histories: Annotated[int, typer.Option(help="Number of histories and seeds.", min=1)] = 1,
) -> None:
    """Test deltalog with simulated writers and failures.

    The simulation compares the table with a model. With one history, print its trace. The same seed
    always gives the same history. The exit code is 1 if the table of a history is wrong.
    """
    from deltalog.testing import simulation  # noqa: PLC0415  # only this command needs it

    right, versions, watch = 0, 0, Stopwatch()
    with _quiet():
        for number in range(seed, seed + histories):
            try:
                report = simulation.simulate(number)
            except simulation.WrongHistoryError as error:
                _show(error.trace if histories == 1 else [])
                typer.echo(str(error))
                continue
            right, versions = right + 1, versions + report.versions
            if histories == 1:
                _show([*report.trace, f"digest {report.digest}"])
    typer.echo(f"{right} of {histories} histories are right: {counted(versions, 'version')}")
    seconds = max(watch.elapsed_ms(), 1) / 1000
    typer.echo(f"{histories / seconds:.1f} histories a second", err=True)
    if right < histories:
        raise typer.Exit(1)


def _show(lines: list[str]) -> None:
    for line in lines:
        typer.echo(line)


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the log messages of deltalog about the injected failures."""
    logger = logging.getLogger("deltalog")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


# --- `deltalog completion`: a script that lets a shell complete commands and options


completion_init()  # so that this process can answer the requests of completion scripts


class Shell(StrEnum):
    """The shells for which there are completion scripts."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@command("completion")
def completion(shell: Annotated[Shell, typer.Argument(help="The shell.")]) -> None:
    """Print a completion script for a shell.

    With the script, the shell completes commands and options.
    """
    script = get_completion_script(
        prog_name="deltalog", complete_var="_DELTALOG_COMPLETE", shell=shell
    )
    typer.echo(script)
