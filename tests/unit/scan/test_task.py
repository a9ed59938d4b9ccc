"""What one file of a scan needs."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from deltalog.expressions import as_expression, resolve_predicate
from deltalog.scan.plan import make_tasks, read_spec
from deltalog.scan.task import (
    METADATA_COLUMNS,
    ScanTask,
    metadata_columns_of,
    with_metadata_columns,
)
from deltalog.schema import Field, StructType
from tests.support.raw_tables import DataTable

SCHEMA = StructType([Field("id", "long"), Field("p", "string")])


@pytest.mark.parametrize("name", ["_metadata", "_METADATA"])
def test_a_column_of_its_own_hides_the_hidden_ones(name: str) -> None:
    own = StructType([Field(name, "long")])
    assert dict(metadata_columns_of(own)) == {}
    assert with_metadata_columns(own) is own


def test_predicates_see_one_struct_more() -> None:
    assert metadata_columns_of(SCHEMA) is METADATA_COLUMNS
    seen = with_metadata_columns(SCHEMA)
    assert seen.names == ("id", "p", "_metadata")
    hidden = seen.fields[-1]
    assert not hidden.nullable
    assert isinstance(hidden.type, StructType)
    assert {field.name: str(field.type) for field in hidden.type} == {
        "file_path": "string",
        "file_name": "string",
        "file_size": "long",
        "file_modification_time": "timestamp",
        "row_index": "long",
        "row_id": "long",
        "row_commit_version": "long",
    }


def tasks(condition: str | None) -> tuple[ScanTask, ...]:
    table = DataTable([("id", "long"), ("v", "string"), ("p", "string")], partition_by=["p"])
    for partition in ("a", None):
        table.commit(table.add({"id": [1, 2], "v": ["x", "y"]}, partitionValues={"p": partition}))
    snapshot = table.snapshot()
    schema = snapshot.configuration.schema
    predicate = (
        None if condition is None else resolve_predicate(as_expression(condition, schema), schema)
    )
    spec = read_spec(snapshot, columns=["id", "v", "p"], predicate=predicate)
    return tuple(make_tasks(snapshot, spec, snapshot.files()))


def test_tasks_travel() -> None:
    there: tuple[ScanTask, ...] = pickle.loads(pickle.dumps(tasks(None)))
    assert len(there) == 2
    assert {task.spec.output.names == ["id", "v", "p"] for task in there} == {True}
    assert there[0].spec.data_columns.names == ("id", "v")


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        (None, ()),
        ("id > 1", ("id",)),
        ("p = 'a'", ()),
        ("v = 'x' or id > 1 and p = 'a'", ("id", "v")),
    ],
)
def test_without_output_only_what_decides_is_read(
    condition: str | None, left: tuple[str, ...]
) -> None:
    spec = tasks(condition)[0].spec
    bare = spec.without_output()
    assert bare.data_columns.names == left
    assert bare.output == pa.schema([])
    assert bare.predicate is spec.predicate
    assert spec.output.names == ["id", "v", "p"]
