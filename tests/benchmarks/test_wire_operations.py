from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.wire.operations import OPERATIONS, WIRE_SIZES, Operation
from benchmarks.wire.subjects import Place, prepared
from benchmarks.wire.tables import build, copied

pytest.importorskip("deltalake", reason="deltalake is not installed")
SIZE = WIRE_SIZES["smallest"]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_libraries_agree_on_a_local_disk(operation: Operation, directory: Path) -> None:
    table = build(operation.table, directory, SIZE)
    answers = {}
    for library in operation.libraries:
        if library == "pyarrow":  # it is asked through its S3 client alone
            continue
        path = copied(table, "turn") if operation.writes else table
        place = Place(
            url=str(path),
            options={},
            needle=SIZE.needle,
            file_rows=SIZE.file_rows,
            times=operation.repeats(SIZE),
        )
        answers[library] = json.dumps(prepared(library, operation.subject, place)())
    assert len(set(answers.values())) == 1, answers


def test_a_thousand_rows_are_usual_at_one_latency_alone() -> None:
    usual = {ms: {one.name for one in OPERATIONS if one.is_usual_at(ms)} for ms in (5, 25, 100)}
    assert usual[25] == {one.name for one in OPERATIONS}
    assert usual[25] - usual[5] == usual[25] - usual[100] == {"appender-many"}
    many = next(one for one in OPERATIONS if one.name == "appender-many")
    assert many.repeats(WIRE_SIZES["full"]) == 1_000


def test_a_copy_leaves_what_is_copied_as_it_is(directory: Path) -> None:
    table = build("logged", directory, SIZE)
    before = {file.name: file.read_bytes() for file in table.glob("*.*")}
    operation = next(one for one in OPERATIONS if one.name == "delete")
    path = copied(table, "turn")
    place = Place(url=str(path), options={}, needle=SIZE.needle, file_rows=SIZE.file_rows, times=1)
    assert prepared("deltalog", operation.subject, place)() == 100
    assert {file.name: file.read_bytes() for file in table.glob("*.*")} == before
    assert len(list((path / "_delta_log").iterdir())) == 1 + len(
        list((table / "_delta_log").iterdir())
    )


def test_a_finished_table_is_not_built_again(directory: Path) -> None:
    table = build("large", directory, SIZE)
    (table / "left by the test").touch()
    assert build("large", directory, SIZE) == table
    assert (table / "left by the test").exists()
    (table / "finished").unlink()
    build("large", directory, SIZE)
    assert not (table / "left by the test").exists()
