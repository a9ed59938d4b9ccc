"""Tracebacks of scripts end at the call of deltalog."""

from __future__ import annotations

import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import DeltaError, InvalidInputError
from tests.support.facade import make


def frames_of(error: BaseException | None) -> list[str]:
    """The modules of the frames of an error and of its causes."""
    found = []
    while error is not None:
        found += [one.name for one in traceback.extract_tb(error.__traceback__)]
        error = error.__cause__
    return found


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.delete("idd = 1"),
        lambda t: t.scan(["idd"]).to_table(),
        lambda t: t.to_pandas(columns=["idd"]),
        lambda t: write_deltalake(t, pd.DataFrame({"id": [1, "x"]}), mode="append"),
        lambda t: t.merge([{"id": 1}], "a = b").when_matched_update_all().execute(),
        lambda t: t.alter.add_columns({"a": "b"}),
        lambda t: t.optimize.compact("idd = 1"),
        lambda _: DeltaTable("memory://no-table"),
        lambda _: DeltaTable.create("memory://no-table", {"a": "b"}),
    ],
)
def test_they_end_at_the_caller(call: Callable[[DeltaTable], Any]) -> None:
    table = make([{"id": 1}])
    with pytest.raises(DeltaError) as caught:
        call(table)
    inner = frames_of(caught.value)
    assert [name for name in inner if name != "<lambda>"] == ["test_they_end_at_the_caller"]


def test_frames_of_a_caller_s_generator_are_kept() -> None:
    def rows() -> Iterator[dict[str, int]]:
        yield {"id": 1}
        make([{"id": 1}]).delete("idd = 1")

    with pytest.raises(InvalidInputError) as caught:
        write_deltalake("memory://rows", rows())
    assert frames_of(caught.value)[-1] == "rows"


@pytest.mark.parametrize("full", ["", "1"])
def test_a_variable_keeps_all_frames(
    full: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "from deltalog import DeltaTable\nDeltaTable('nowhere')\n"
    (tmp_path / "script.py").write_text(script)
    monkeypatch.setenv("DELTALOG_FULL_TRACEBACKS", full)
    ran = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    lines = ran.stderr.splitlines()
    assert lines[-1].startswith("deltalog.errors.TableNotFoundError: cannot open")
    assert (len(lines) > 20) is bool(full)
    assert any("deltalog/table" in line.replace("\\", "/") for line in lines) is bool(full)
