"""The commands of "Share in five minutes", as the guide has them."""

from __future__ import annotations

import os
import re
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from deltalog._util.json import loads
from deltalog.sharing.__main__ import main

pytestmark = pytest.mark.skipif(
    os.name != "posix", reason="the guide has commands of a POSIX shell"
)

GUIDE: Final = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "sharing-server.md"


def _section() -> str:
    text = GUIDE.read_text("utf-8").partition("## Share in five minutes\n")[2]
    return text.partition("\n## ")[0]


def _on_a_free_port(section: str) -> str:
    """The section as it is, or with another port where somebody has the guide's."""
    with socket.socket() as probe:
        try:
            probe.bind(("localhost", 8080))
        except OSError:
            probe.bind(("localhost", 0))
        else:
            return section
        port = str(probe.getsockname()[1])
    endpoint = f" --endpoint http://localhost:{port}/delta-sharing/)"
    return section.replace("alice.share)", f"alice.share{endpoint}").replace("8080", port)


def test_the_guide_runs_as_it_is_typed(tmp_path: Path) -> None:
    section = _on_a_free_port(_section())
    prepare, read = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    command = re.findall(r"^\$ (deltalog share .+)$", section, re.MULTILINE)[0]
    shown = re.findall(r"^listening on .+$", section, re.MULTILINE)[0]
    program = tmp_path / "bin" / "deltalog"  # the tests may run without the installed script
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m deltalog "$@"\n')
    program.chmod(0o755)
    places = f"{program.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": places}

    def run(script: str) -> str:
        done = subprocess.run(
            ["/bin/sh", "-ec", script],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            check=False,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "travel.default.flights: can be shared" in run(prepare)
    hash_of_alice = re.findall(r"export ALICE_HASH=.+", prepare)[0]
    (tmp_path / "alice.share").unlink()
    with subprocess.Popen(
        ["/bin/sh", "-ec", f"{hash_of_alice}\nexec {command}"],
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stderr is not None
        try:
            said = next(line for line in server.stderr if line.startswith("listening on "))
            assert said.rstrip() == shown
            assert "UA" in run(read)
        finally:
            server.terminate()


def test_a_profile_is_new_secret_and_holds_the_token(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = tmp_path / "a.share"
    asked = ["token", "--profile", str(profile), "--endpoint", "https://s.example/d/"]
    assert main(asked) == 0
    assert re.fullmatch(r"sha256:[0-9a-f]{64}\n", capsys.readouterr().out)
    assert stat.S_IMODE(profile.stat().st_mode) == 0o600
    written = loads(profile.read_bytes())
    assert written.pop("bearerToken")
    assert written == {"shareCredentialsVersion": 1, "endpoint": "https://s.example/d/"}
    assert main(asked) == 2
    assert "the file exists" in capsys.readouterr().err
