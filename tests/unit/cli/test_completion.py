"""Completion of commands and options by a shell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import run


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(shell: str) -> None:
    script = run("completion", shell).stdout
    assert f"_DELTALOG_COMPLETE=complete_{shell}" in script
    assert "deltalog" in script


def test_other_shells_are_refused() -> None:
    assert "tcsh" in run("completion", "tcsh", code=2).stderr


def test_bash_completes_commands_and_options(tmp_path: Path) -> None:
    """The script is run by bash itself, with a `deltalog` of these sources."""
    program = tmp_path / "deltalog"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m deltalog "$@"\n', "utf-8")
    program.chmod(0o755)
    (tmp_path / "script").write_text(run("completion", "bash").stdout, "utf-8")
    asked = """
        source "$0"
        COMP_WORDS=(deltalog hist); COMP_CWORD=1; _deltalog_completion deltalog
        echo "${COMPREPLY[@]}"
        COMP_WORDS=(deltalog count --wh); COMP_CWORD=2; _deltalog_completion deltalog
        echo "${COMPREPLY[@]}"
    """
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    found = subprocess.run(
        ["bash", "-c", asked, str(tmp_path / "script")],  # noqa: S607  # whichever bash is there
        capture_output=True,
        env=environment,
        check=True,
        text=True,
    )
    assert found.stdout.split() == ["history", "--where"]
