"""`deltalog simulate`: play histories of a simulated table, and replay one that went wrong.

Owns the command and what it prints; the simulation is `deltalog.testing.simulation`.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from deltalog.cli.application import command
from deltalog.cli.share import app
from deltalog.clock import Stopwatch

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["app"]


@command("simulate")
def simulate(
    seed: Annotated[int, typer.Option(help="Of the first history.", min=0)] = 0,
    histories: Annotated[int, typer.Option(help="How many, each with the next seed.", min=1)] = 1,
) -> None:
    """Play many writers on a failing store, and compare the table with a model; one seed, a trace.

    The same seed always gives the same history. Exit code 1: a history went wrong.
    """
    from deltalog.testing import simulation  # noqa: PLC0415  # only here

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
    typer.echo(f"{right} of {histories} histories are right: {versions} versions")
    seconds = max(watch.elapsed_ms(), 1) / 1000
    typer.echo(f"{histories / seconds:.1f} histories a second", err=True)
    if right < histories:
        raise typer.Exit(1)


def _show(lines: list[str]) -> None:
    for line in lines:
        typer.echo(line)


@contextmanager
def _quiet() -> Iterator[None]:
    """Let deltalog not tell of the failures that the simulation makes."""
    logger = logging.getLogger("deltalog")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
