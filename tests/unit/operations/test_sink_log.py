"""A directory that a streaming sink of Spark wrote: its log says which files are whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable, convert_to_deltalake
from deltalog.errors import InvalidInputError
from deltalog.operations.convert_files import files_of_sink
from deltalog.storage import open_store


class Sink:
    """A directory as the sink leaves it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "_spark_metadata").mkdir(parents=True)

    def file(self, name: str, *values: int) -> str:
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"x": values}), path)
        return name

    def batch(self, number: int | str, *names: str, action: str = "add", **more: str) -> None:
        lines = [
            json.dumps({"path": (self.root / name).as_uri(), "action": action, "size": 1, **more})
            for name in names
        ]
        self.note(number, "\n".join(["v1", *lines]))

    def note(self, number: int | str, text: str) -> None:
        (self.root / "_spark_metadata" / str(number)).write_text(text)

    def convert(self) -> list[int]:
        convert_to_deltalake(self.root)
        rows = DeltaTable(self.root).to_pyarrow_table()
        found: list[Any] = rows.column("x").to_pylist()
        return sorted(found)


@pytest.fixture
def sink(tmp_path: Path) -> Sink:
    return Sink(tmp_path / "a b")


def test_only_what_was_committed_is_converted(sink: Sink) -> None:
    sink.batch(0, sink.file("p=1 2/part-0.parquet", 1))
    sink.batch(1, sink.file("p=1 2/part-1.parquet", 2))
    sink.file("p=1 2/part-1-again.parquet", 2)  # of a batch that ran twice
    sink.file("_spark_metadata/x.parquet", 9)
    assert sink.convert() == [1, 2]
    plan = DeltaTable(sink.root).vacuum(0, full=True, enforce_retention_duration=False)
    assert [Path(path).name for path in plan] == ["part-1-again.parquet"]


def test_a_compacted_log_stands_for_the_batches_before_it(sink: Sink) -> None:
    first, second = sink.file("part-0.parquet", 1), sink.file("part-1.parquet", 2)
    third = sink.file("part-2.parquet", 3)
    sink.batch(0, first)
    sink.batch("1.compact", second)
    sink.batch(2, third)
    assert files_of_sink(open_store(str(sink.root))) == frozenset({second, third})
    sink.batch(3, second, action="delete")
    sink.note(".4.tmp", "v1")
    assert sink.convert() == [3]


def test_a_directory_without_such_a_log_is_taken_whole(tmp_path: Path) -> None:
    sink = Sink(tmp_path)
    assert files_of_sink(open_store(str(tmp_path))) is None
    sink.file("part-0.parquet", 1)
    assert sink.convert() == [1]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("v2\n", "begins with 'v2'"),
        ("", "begins with ''"),
        ("v1\n{", "cannot convert"),
        ('v1\n{"path": 1}', "path"),
        (
            'v1\n{"path": "file:///elsewhere/x.parquet", "action": "add"}',
            "is outside of the directory",
        ),
        (
            'v1\n{"path": "gone.parquet", "action": "add"}',
            "names 1 file that cannot be found, such as gone",
        ),
    ],
)
def test_a_log_that_does_not_fit_is_refused(sink: Sink, text: str, problem: str) -> None:
    sink.file("part-0.parquet", 1)
    sink.note(0, text)
    with pytest.raises(InvalidInputError, match=problem):
        sink.convert()
    assert not (sink.root / "_delta_log").exists()
