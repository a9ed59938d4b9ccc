"""The application: mounted, and checked in advance."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from deltalog import write_deltalake
from deltalog.sharing.__main__ import main
from tests.support.sharing import Caller, actions, small_config

T = "s.d.t"


def test_the_application_can_be_mounted(table: Path, caller: Caller) -> None:
    mounted = Caller(Starlette(routes=[Mount("/inner", caller.app)]), prefix="/inner/delta-sharing")
    url = actions(mounted.query(T), "file")[0]["url"]
    assert url.startswith("http://sharing.test/inner/delta-sharing/_files/")
    (data,) = (file for file in table.iterdir() if file.suffix == ".parquet")
    assert mounted.download(url).body == data.read_bytes()


def test_tables_are_looked_at_before_anybody_asks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_deltalake(tmp_path / "t", pa.table({"a": [1]}))
    tables = [
        {"name": "right", "location": str(tmp_path / "t"), "rowFilter": "a > 0"},
        {"name": "odd", "location": str(tmp_path / "t"), "columns": ["b"]},
        {"name": "gone", "location": str(tmp_path / "nowhere")},
    ]
    shares = [{"name": "s", "schemas": [{"name": "d", "tables": tables}]}]
    path = tmp_path / "c.json"
    path.write_text(json.dumps(small_config(shares=shares)))
    assert main(["check", str(path)]) == 0
    assert main(["check", "--tables", str(path)]) == 1
    printed = capsys.readouterr()
    assert printed.err.endswith("2 of 3 tables cannot be shared\n")
    *_, counts, right, odd, gone = printed.out.splitlines()
    assert counts.endswith("shares: 1, tables: 3, recipients: 1")
    assert right == "s.d.right: can be shared"
    assert odd.startswith("s.d.odd: ")
    assert "'b'" in odd
    assert "nowhere" in gone
    assert main(["check", "--tables", "--json", str(path)]) == 1
    first, second, _ = map(json.loads, capsys.readouterr().out.splitlines())
    assert first == {"table": "s.d.right", "problem": None}
    assert "'b'" in second["problem"]
    assert main(["check", "--json", str(path)]) == 0
    counted = json.loads(capsys.readouterr().out)
    assert counted == {"shares": 1, "tables": 3, "recipients": 1}
