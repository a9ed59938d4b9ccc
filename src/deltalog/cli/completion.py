"""`deltalog completion`: a script by which a shell completes commands and options.

Owns the command; the scripts, and the answers to what they ask, are typer's.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer
from typer.completion import (  # type: ignore[attr-defined]  # typer's program takes them there
    completion_init,
    get_completion_script,
)

from deltalog.cli.application import command
from deltalog.cli.sql import app

__all__ = ["app"]

completion_init()  # so that the process answers the scripts


class Shell(StrEnum):
    """Shells for which there is a script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@command("completion")
def completion(shell: Annotated[Shell, typer.Argument(help="Which shell asks.")]) -> None:
    """Print a script that lets a shell complete commands and options."""
    script = get_completion_script(
        prog_name="deltalog", complete_var="_DELTALOG_COMPLETE", shell=shell
    )
    typer.echo(script)
