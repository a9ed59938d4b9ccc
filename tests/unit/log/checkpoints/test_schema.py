from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog.errors import MalformedLogError
from deltalog.log import names
from deltalog.log.checkpoints.reader import Checkpoint
from deltalog.log.checkpoints.rows import conform
from deltalog.log.listing import list_log
from deltalog.log.segment import build_segment
from deltalog.protocol.actions.arrow import DELETION_VECTOR_TYPE, FILE_SCHEMA
from tests.support.logs import DictStore

_NUMBERS = [(name, pa.int64()) for name in ("offset", "sizeInBytes", "cardinality")]


@pytest.mark.protocol("CKPT-11", "CKPT-23")
def test_other_flavours_of_the_types_are_read() -> None:
    path = pa.array(["a", "b"], pa.large_string())
    size = pa.array([1, 2], pa.int32())
    vectors = pa.StructArray.from_arrays(
        [
            *(pa.array([None, text]) for text in ("p", "x")),
            *(pa.array([None, number], pa.int64()) for number in (3, 34, 1)),
        ],
        ["storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality"],
    )
    maps = pa.array([[("p", "1")], None], pa.map_(pa.large_string(), pa.large_string()))
    stats = pa.array(["{}", None]).dictionary_encode()
    fields: list[pa.Field[Any]] = [
        pa.field("path", pa.large_string(), nullable=False),
        pa.field("size", pa.int32()),
        pa.field("deletionVector", vectors.type),
        pa.field("partitionValues", maps.type),
        pa.field("stats", stats.type),
    ]
    adds = pa.StructArray.from_arrays([path, size, vectors, maps, stats], fields=fields)
    store = DictStore()
    sink = pa.BufferOutputStream()
    schema = pa.schema([pa.field("add", adds.type, nullable=False)])
    pq.write_table(pa.Table.from_arrays([adds], schema=schema), sink)
    store.put(names.log_path(names.checkpoint_name(0)), sink.getvalue().to_pybytes())
    files = build_segment(list_log(store)).checkpoint
    assert files is not None
    found = Checkpoint(store, files).columns("add", FILE_SCHEMA.names)
    assert found.schema == FILE_SCHEMA
    assert found["path"].to_pylist() == ["a", "b"]
    assert found["size"].to_pylist() == [1, 2]
    assert found["partitionValues"].to_pylist() == [[("p", "1")], None]
    assert found["stats"].to_pylist() == ["{}", None]
    first, second = found["deletionVector"].to_pylist()
    assert first is None
    assert second is not None
    assert list(second.values()) == ["p", "x", 3, 34, 1, None]


@pytest.mark.protocol("DV-02")
@pytest.mark.parametrize("member", ["storageType", "pathOrInlineDv", "sizeInBytes", "cardinality"])
def test_half_of_a_deletion_vector_is_damage(member: str) -> None:
    vector: dict[str, Any] = {"storageType": "p", "pathOrInlineDv": "x", "offset": 1}
    vector = {**vector, "sizeInBytes": 34, "cardinality": 1, member: None}
    kind = pa.struct([*((name, pa.string()) for name in list(vector)[:2]), *_NUMBERS])
    column = pa.array([None, vector], kind)
    with pytest.raises(MalformedLogError, match=f"row 1: deletionVector.{member}: required"):
        conform(column, DELETION_VECTOR_TYPE)


@pytest.mark.protocol("CKPT-14")
def test_typed_partition_values_stand_in_for_the_map() -> None:
    values = pa.struct([("d", pa.date32()), ("region", pa.string()), ("n", pa.int32())])
    adds = pa.array(
        [
            {"path": "a", "partitionValues_parsed": {"d": 19723, "region": "eu", "n": 3}},
            {"path": "b", "partitionValues_parsed": {"d": None, "region": None, "n": None}},
        ],
        pa.struct([("path", pa.string()), ("partitionValues_parsed", values)]),
    )
    store = DictStore()
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"add": adds}), sink)
    store.put(names.log_path(names.checkpoint_name(0)), sink.getvalue().to_pybytes())
    files = build_segment(list_log(store)).checkpoint
    assert files is not None
    found = Checkpoint(store, files).columns("add", ["partitionValues"])
    assert found["partitionValues"].to_pylist() == [
        [("d", "2024-01-01"), ("region", "eu"), ("n", "3")],
        [("d", None), ("region", None), ("n", None)],
    ]


def test_columns_of_extension_types_are_what_they_are_stored_as() -> None:
    texts = pa.array(["{}", None], pa.string())
    assert conform(pa.ExtensionArray.from_storage(pa.json_(), texts), pa.string()).equals(texts)
    ids = pa.array([b"0123456789abcdef", None], pa.binary(16))
    found = conform(pa.ExtensionArray.from_storage(pa.uuid(), ids), pa.binary())
    assert found.to_pylist() == ids.to_pylist()
