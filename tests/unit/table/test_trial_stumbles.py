"""Mistakes of a reader who tried the library, and what they are answered."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake
from deltalog.errors import InvalidInputError, MalformedLogError

ROWS = pa.table({"id": [1, 2], "name": ["a", "b"]})


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    write_deltalake(tmp_path / "t", ROWS)
    return DeltaTable(tmp_path / "t")


@pytest.mark.parametrize(
    ("mistake", "answer"),
    [
        (lambda t: t.to_pandas("id"), r"columns=\[…\] selects columns"),
        (lambda t: t.to_pandas(["id"]), r"columns=\[…\] selects columns"),
        (lambda t: t.to_pandas(filters="[id] = 1"), "a name has backticks"),
        (lambda t: t.follow("earliest"), "the first version is 0"),
        (lambda t: t.load_as_version("latest"), "leave the argument out"),
        (
            lambda t: t.merge({"id": [1]}, "id = id").when_matched_delete().execute(),
            "write the alias, as in source.id = target.id",
        ),
        (
            lambda t: t.alter.set_table_properties({"delta.enableCDF": "true"}),
            "did you mean 'delta.enableChangeDataFeed'",
        ),
        (
            lambda t: t.alter.set_table_properties({"delta.dv": "true"}),
            "did you mean 'delta.enableDeletionVectors'",
        ),
    ],
)
def test_mistakes_are_answered(
    table: DeltaTable, mistake: Callable[[DeltaTable], Any], answer: str
) -> None:
    with pytest.raises(InvalidInputError, match=answer):
        mistake(table)


@pytest.mark.parametrize(
    ("mistake", "answer"),
    [
        (lambda t: t.optimize.compact(predicate="id = 1"), "did you mean 'partition_filters'"),
        (lambda t: t.optimize.compact(where="id = 1"), "did you mean 'partition_filters'"),
        (
            lambda t: write_deltalake(t, ROWS, mode="append", max_rows_per_file=1),  # type: ignore[call-arg]
            "target_file_size limits files",
        ),
    ],
)
def test_arguments_of_other_libraries_are_answered(
    table: DeltaTable, mistake: Callable[[DeltaTable], Any], answer: str
) -> None:
    with pytest.raises(TypeError, match=answer):
        mistake(table)


def test_a_commit_of_the_history_is_a_dictionary(table: DeltaTable) -> None:
    (commit,) = table.history()
    assert commit["version"] == 0
    assert json.loads(json.dumps(commit))["operation"] == commit["operation"]
    assert repr(commit).startswith("{'version': 0")
    with pytest.raises(
        AttributeError, match=r"this dictionary has no attribute .*: use \['version'\]"
    ):
        _ = commit.version  # type: ignore[attr-defined]


READS: dict[str, Callable[[DeltaTable], Any]] = {
    "open and read": lambda t: DeltaTable(t.table_uri).to_pyarrow_table(),
    "count": lambda t: DeltaTable(t.table_uri).count(),
    "refresh": lambda t: [t.update_incremental(), t.count()],  # type: ignore[func-returns-value]
    "history": lambda t: t.history(),
    "changes": lambda t: DeltaTable(t.table_uri).load_cdf(0).read_all(),
    "sql": lambda t: deltalog.sql("SELECT * FROM t", t=DeltaTable(t.table_uri)).to_arrow(),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("content", ['{"commitInfo":', "<html>", '{"add":{"path":1}}\n'])
def test_errors_about_damaged_commits_name_the_table(
    tmp_path: Path, read: Callable[[DeltaTable], Any], content: str
) -> None:
    path = tmp_path / "t"
    for _ in range(2):
        write_deltalake(
            path,
            ROWS,
            mode="append",
            configuration={"delta.enableChangeDataFeed": "true"},
        )
    table = DeltaTable(path)
    if read is READS["history"]:
        table.create_checkpoint()  # otherwise the table could not be opened
    if read is READS["refresh"]:
        damaged, damaged_number = path / "_delta_log" / f"{2:020}.json", 2
    else:
        damaged, damaged_number = path / "_delta_log" / f"{1:020}.json", 1
    damaged.write_text(content)
    if read is READS["history"]:
        if "add" in content:
            return  # the history reads only `commitInfo`
        table = DeltaTable(path)
    with pytest.raises(MalformedLogError) as raised:
        read(table)
    assert str(path) in str(raised.value)
    assert f"version {damaged_number}" in str(raised.value)
