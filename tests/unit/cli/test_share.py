"""The server of Delta Sharing, started by the library's own command."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import run


def test_the_command_of_the_whole_library(tmp_path: Path) -> None:
    testing = pytest.importorskip("typer.testing", reason="typer is not installed")
    from deltalog.cli import app as commands

    runner = testing.CliRunner()
    assert "hash: sha256:" in runner.invoke(commands, ["share", "token"]).output
    wrong = tmp_path / "c.yaml"
    wrong.write_text("prot: 1")
    for command in (["share", "check", str(wrong)], ["share", "serve", str(wrong), "--port", "1"]):
        assert runner.invoke(commands, command).exit_code == 2


def test_a_port_beyond_the_last_one_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("uvicorn", reason="the extra sharing is not installed")
    from deltalog.sharing.__main__ import main

    assert main(["serve", str(tmp_path / "c.yaml"), "--port", "80899"]) == 2
    assert "expected a port from 0 to 65535, found 80899" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("serve", "--config", "c.yaml"), "the configuration is an argument without an option"),
        (("check", "-c", "c.yaml"), "the configuration is an argument without an option"),
        (("serve", "c.yaml", "8080"), "use --port 8080"),
        (("serve", "/no/such.yaml"), "it does not exist; expected a YAML or TOML file"),
        (("check", "{directory}"), "it is a directory; expected a YAML or TOML file"),
        (("token", "x"), "found 'x'; --profile FILE writes the token to a new profile"),
        (("token", "--output", "x"), "--profile FILE writes the token to a new profile"),
        (("token", "--endpoint", "https://x.example"), "--endpoint without --profile"),
        (("token", "--endpoint", "x", "--profile", "{directory}/p"), "expected a URL such as"),
    ],
)
def test_wrong_arguments_are_told_what_to_write(
    tmp_path: Path, arguments: tuple[str, ...], told: str, capfd: pytest.CaptureFixture[str]
) -> None:
    found = run("share", *(one.format(directory=tmp_path) for one in arguments), code=2)
    assert told in " ".join(f"{found.stderr} {capfd.readouterr().err}".split())
    assert not (tmp_path / "p").exists()
