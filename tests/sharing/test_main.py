"""The commands of `python -m deltalog.sharing`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deltalog.sharing.__main__ import main
from deltalog.sharing.server.tokens import token_digest
from tests.support.sharing import small_config


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps(small_config()))
    assert main(["check", str(path)]) == 0
    assert main(["check", str(tmp_path / "nowhere.toml")]) == 2
    assert "cannot read the configuration" in capsys.readouterr().err
    assert main(["token"]) == 0
    token, digest = (line.partition(": ")[2] for line in capsys.readouterr().out.splitlines())
    assert digest == f"sha256:{token_digest(token)}"
