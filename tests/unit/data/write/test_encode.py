from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from deltalog.data.write import write_files
from deltalog.data.write.encode import physical_arrow_schema, to_physical
from deltalog.errors import InvalidInputError
from deltalog.protocol.column_mapping import field_id, physical_name
from deltalog.schema import ArrayType, Field, MapType, StructType, VariantType, walk
from tests.support.writes import batch_of, file_table, parquet_file, read_back, spec_of, table

DEEP = MapType("string", ArrayType(StructType([Field("x", "long"), Field("y", "string")])))


def field_ids(data_type: Any) -> list[int]:
    """The Parquet field ids below an Arrow type, in order."""
    found: list[int] = []
    children = [data_type.field(number) for number in range(data_type.num_fields)]
    for child in children:
        metadata = child.metadata or {}
        found += [int(metadata[b"PARQUET:field_id"])] if b"PARQUET:field_id" in metadata else []
        found += field_ids(child.type)
    return found


@pytest.mark.protocol("CM-08", "CM-03", "D-30", "D-31")
@pytest.mark.parametrize("mode", ["name", "id"])
def test_files_have_physical_names_and_ids_at_every_depth(mode: str) -> None:
    configuration = table(Field("a", "long"), Field("m", DEEP), mapping=mode)
    spec = spec_of(configuration)
    value = [("k", [{"x": 1, "y": "b"}, None])]
    data = pa.table({"a": [1], "m": pa.array([value], configuration.arrow_schema.field("m").type)})
    written = write_files(spec, data)
    found = parquet_file(spec, written.adds[0].path).schema_arrow
    fields = [field for _, field in walk(configuration.schema)]
    assert found.names == [physical_name(field) for field in configuration.schema]
    assert field_ids(pa.struct(list(found))) == [field_id(field) for field in fields]
    inner: Any = found.field(1).type
    assert [part.name for part in inner.item_type.value_type] == [
        physical_name(field) for field in fields[-2:]
    ]
    assert read_back(spec, written).to_pylist() == [{"a": 1, "m": value}]


@pytest.mark.protocol("CM-10", "CM-09", "D-29")
def test_partition_values_and_statistics_have_physical_names() -> None:
    configuration = table(
        Field("p", "string"), Field("a", "long"), partition_by="p", mapping="name"
    )
    (add,) = write_files(spec_of(configuration), [{"p": "x", "a": 1}]).adds
    p, a = (physical_name(field) for field in configuration.schema)
    assert add.partition_values == {p: "x"}
    assert add.stats is not None
    assert f'"minValues":{{"{a}":1}}' in add.stats


@pytest.mark.protocol("B-53")
def test_elements_keys_and_values_have_ids_where_they_are_given() -> None:
    ids = {"col.key": 10, "col.value": 11, "col.value.element": 12}
    metadata = {
        "delta.columnMapping.id": 1,
        "delta.columnMapping.physicalName": "col",
        "delta.columnMapping.nested.ids": ids,
    }
    field = Field("m", MapType("string", ArrayType("long")), metadata=metadata)
    configuration = table(field, mapping="name")
    schema = physical_arrow_schema(configuration)
    assert field_ids(pa.struct(list(schema))) == [1, 10, 11, 12]


def test_without_mapping_there_are_no_ids() -> None:
    field = Field("a", "long", metadata={"delta.columnMapping.id": 7})
    schema = physical_arrow_schema(table(field))
    assert schema.field("a").metadata is None


@pytest.mark.protocol("D-28", "B-37")
def test_void_is_not_stored_at_any_depth() -> None:
    inner = StructType([Field("v", "void"), Field("x", "long")])
    configuration = table(
        Field("v", "void"), Field("s", inner), Field("l", ArrayType(inner)), Field("a", "long")
    )
    spec = spec_of(configuration)
    row = {"v": None, "s": {"v": None, "x": 1}, "l": [{"v": None, "x": 2}, None], "a": 3}
    empty = {"v": None, "s": None, "l": None, "a": None}
    written = write_files(spec, [row, empty])
    found = file_table(spec, written.adds[0].path)
    assert found.to_pylist() == [{"s": {"x": 1}, "l": [{"x": 2}, None], "a": 3},
                                 {"s": None, "l": None, "a": None}]  # fmt: skip
    assert read_back(spec, written).to_pylist() == [row, empty]


@pytest.mark.protocol("D-28", "B-51")
def test_keys_and_values_of_maps_are_stored_as_what_is_in_them() -> None:
    inner = StructType([Field("v", "void"), Field("x", "long")])
    variants = MapType("string", VariantType())
    configuration = table(
        Field("k", MapType(inner, "long")), Field("m", variants), features=["variantType"]
    )
    spec = spec_of(configuration)
    value = {"metadata": b"\x01\x00\x00", "value": b"\x0c\x05"}
    row = {"k": [({"v": None, "x": 1}, 2)], "m": [("a", value), ("b", None)]}
    key = pa.struct([("v", pa.null()), ("x", pa.int64())])
    variant = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
    maps: tuple[Any, Any] = (pa.map_(key, pa.int64()), pa.map_(pa.string(), variant))
    kinds = pa.schema([pa.field("k", maps[0]), pa.field("m", maps[1])])
    written = write_files(spec, pa.Table.from_pylist([row], kinds))
    found = file_table(spec, written.adds[0].path).to_pylist()
    assert found == [{"k": [({"x": 1}, 2)], "m": [("a", value), ("b", None)]}]
    assert read_back(spec, written).to_pylist() == [row]


@pytest.mark.protocol("D-28")
@pytest.mark.parametrize(
    "kind", ["void", ArrayType("void"), MapType("string", "void"), StructType([Field("v", "void")])]
)
def test_what_no_file_could_hold_is_refused(kind: Any) -> None:
    with pytest.raises(InvalidInputError, match="void"):
        physical_arrow_schema(table(Field("x", kind)))


@pytest.mark.protocol("B-51")
def test_variants_are_two_binaries() -> None:
    configuration = table(
        Field("v", VariantType()), Field("l", ArrayType(VariantType())), features=["variantType"]
    )
    spec = spec_of(configuration)
    value = {"metadata": b"\x01\x00\x00", "value": b"\x0c\x05"}
    rows = [{"v": value, "l": [value, None]}, {"v": None, "l": None}]
    written = write_files(spec, rows)
    assert file_table(spec, written.adds[0].path).to_pylist() == rows
    assert read_back(spec, written).to_pylist() == rows


def test_half_a_variant_is_refused() -> None:
    configuration = table(Field("v", VariantType()), features=["variantType"])
    with pytest.raises(InvalidInputError, match="lacks its metadata or its value"):
        write_files(spec_of(configuration), [{"v": {"metadata": b"", "value": None}}])


@pytest.mark.protocol("B-57", "B-53")
@pytest.mark.parametrize(
    ("features", "properties", "kept"),
    [
        ([], {}, False),
        (["materializePartitionColumns"], {}, True),
        ([], {"writePartitionColumnsToParquet": "true"}, True),
        ([], {"writePartitionColumnsToParquet": "false"}, False),
        (["icebergCompatV2"], {"enableIcebergCompatV2": "true"}, True),
        (["icebergCompatV2"], {}, False),
    ],
)
def test_partition_columns_are_stored_where_they_must(
    features: list[str], properties: dict[str, str], kept: bool
) -> None:
    configuration = table(
        Field("p", "string"), Field("a", "long"),
        partition_by="p", features=features, **properties,
    )  # fmt: skip
    spec = spec_of(configuration)
    written = write_files(spec, [{"p": "x", "a": 1}])
    found = file_table(spec, written.adds[0].path).to_pydict()
    assert found == ({"a": [1], "p": ["x"]} if kept else {"a": [1]})
    assert '"p"' not in str(written.adds[0].stats)
    assert read_back(spec, written).to_pydict() == {"p": ["x"], "a": [1]}


ROW_IDS = {
    "rowTracking__materializedRowIdColumnName": "_row-id",
    "rowTracking__materializedRowCommitVersionColumnName": "_version",
}


@pytest.mark.protocol("ROWID-03", "ROWID-13", "ROWID-15", "B-74", "B-75")
def test_kept_row_ids_are_hidden_columns() -> None:
    configuration = table(Field("a", "long"), features=["rowTracking"], **ROW_IDS)
    batch = batch_of(configuration, a=[1, 2])
    assert to_physical(batch, configuration).schema.names == ["a"]
    found = to_physical(batch, configuration, row_ids=pa.array([7, None]))
    assert found.to_pydict() == {"a": [1, 2], "_row-id": [7, None], "_version": [None, None]}
    assert found.schema == physical_arrow_schema(configuration, with_row_ids=True)
    both = to_physical(
        batch, configuration, row_ids=pa.array([7, 8]), row_commit_versions=pa.array([1, None])
    )
    assert both.to_pydict() == {"a": [1, 2], "_row-id": [7, 8], "_version": [1, None]}


@pytest.mark.protocol("ROWID-03")
def test_the_draft_keeps_no_commit_versions() -> None:
    configuration = table(Field("a", "long"), features=["rowIds"], rowIds__physicalColumnName="_id")
    batch = batch_of(configuration, a=[1])
    found = to_physical(batch, configuration, row_ids=pa.array([7]))
    assert found.to_pydict() == {"a": [1], "_id": [7]}


def test_a_slice_is_stored_as_a_slice() -> None:
    inner = StructType([Field("v", "void"), Field("x", "long")])
    configuration = table(Field("l", ArrayType(inner)), Field("m", MapType("string", inner)))
    value = {"v": None, "x": 1}
    row = {"l": [value, value], "m": [("k", value)]}
    whole = pa.RecordBatch.from_pylist([row] * 5, schema=configuration.arrow_schema)
    found = to_physical(whole.slice(1, 2), configuration)
    found.validate(full=True)
    assert found.to_pylist() == [{"l": [{"x": 1}] * 2, "m": [("k", {"x": 1})]}] * 2


def test_columns_that_must_not_be_null_may_be_in_files() -> None:
    # A table may drop its NOT NULL, and files stay as they are.
    configuration = table(Field("a", "long", nullable=False))
    assert physical_arrow_schema(configuration).field("a").nullable


def test_fields_may_have_names_like_paths() -> None:
    inner = StructType([Field(".", "long"), Field(".x[0]", "void"), Field("a.b", "long")])
    configuration = table(Field("s", inner))
    spec = spec_of(configuration)
    row = {"s": {".": 1, ".x[0]": None, "a.b": 2}}
    assert read_back(spec, write_files(spec, [row])).to_pylist() == [row]


def test_a_materialised_partition_value_is_null_where_the_log_has_null() -> None:
    configuration = table(
        Field("p", "string"), Field("a", "long"),
        partition_by="p", features=["materializePartitionColumns"],
    )  # fmt: skip
    spec = spec_of(configuration)
    written = write_files(spec, [{"p": "", "a": 1}])
    assert file_table(spec, written.adds[0].path).to_pydict() == {"a": [1], "p": [None]}
