"""Advice in errors of commands: how to write it in the shell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deltalog import DeltaTable, write_deltalake
from tests.support.command_line import run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("head {t} --columns|id name", 2, "commas separate names, as in id,name"),
        ("cdf {t} 0", 3, "deltalog properties TABLE --set delta.enableChangeDataFeed=true"),
        ("publish {t}", 2, "@NAME')"),
        ("sql|SELECT * FROM t", 3, "deltalog sql -t t=LOCATION"),
        ("sql --catalog {t}/nope|SHOW TABLES", 2, "there is no such directory"),
        ("sql -t t={t}|SELECT TOP 5 * FROM t", 2, "write LIMIT n at the end"),
        ("count {t} --where|WHERE id = 1", 2, "leave out WHERE"),
    ],
)
def test_advice(tmp_path: Path, command: str, code: int, words: str) -> None:
    place = str(tmp_path / "t")
    write_deltalake(place, {"id": [1], "name": ["n1"]})
    options, _, last = command.format(t=place).partition("|")
    found = run(*options.split(), *([last] if last else []), code=code)
    assert words in found.stderr
    assert DeltaTable(place).version() == 0


def test_a_version_may_begin_with_v(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    write_deltalake(place, {"id": [1]})
    write_deltalake(place, {"id": [2]}, mode="append")
    run("restore", place, "v0")
    assert DeltaTable(place).count() == 1
