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
            times=SIZE.appends,
        )
        answers[library] = json.dumps(prepared(library, operation.subject, place)())
    assert len(set(answers.values())) == 1, answers


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
