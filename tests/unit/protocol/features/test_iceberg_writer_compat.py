"""icebergWriterCompatV1: tables are as Iceberg's engines could write them, or are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import InvalidInputError
from deltalog.schema import Field, MapType, StructType

if TYPE_CHECKING:
    from pathlib import Path

ON = {"delta.enableIcebergWriterCompatV1": "true"}
KEY = StructType([Field("s", "string")])


def create(path: Path, *fields: Field, **properties: str) -> DeltaTable:
    configuration = {**ON, **{f"delta.{key}": text for key, text in properties.items()}}
    return DeltaTable.create(path, StructType(list(fields)), configuration=configuration)


@pytest.mark.protocol("B-53")
def test_physical_names_follow_from_ids(tmp_path: Path) -> None:
    table = create(tmp_path / "t", Field("a", "long"), Field("m", MapType(KEY, "long")))
    table.alter.add_columns(Field("b", StructType([Field("c", "string")])))
    rows = pa.table({"a": [1], "b": [{"c": "x"}]})
    write_deltalake(tmp_path / "t", rows, mode="append")

    configuration = DeltaTable(tmp_path / "t").snapshot.configuration
    assert configuration.properties.column_mapping_mode == "id"
    assert configuration.properties.enable_iceberg_compat_v2
    for field in configuration.schema.fields:
        number = field.metadata["delta.columnMapping.id"]
        assert field.metadata["delta.columnMapping.physicalName"] == f"col-{number}"
    assert DeltaTable(tmp_path / "t").to_pyarrow_table()["b"].to_pylist() == [{"c": "x"}]


@pytest.mark.protocol("B-53")
@pytest.mark.parametrize(
    ("field", "properties", "message"),
    [
        (Field("a", "byte"), {}, "type byte of column 'a'"),
        (Field("a", StructType([Field("b", "short")])), {}, "type short of column 'a'"),
        (Field("a", "long"), {"columnMapping.mode": "name"}, "mode = id"),
        (Field("a", "long"), {"enableIcebergCompatV2": "false"}, "enableIcebergCompatV2"),
        (Field("a", "long"), {"enableChangeDataFeed": "true"}, "changeDataFeed"),
        (Field("a", "long"), {"enableRowTracking": "true"}, "rowTracking"),
        (Field("a", "long"), {"constraints.c": "a > 0"}, "checkConstraints|constraint"),
    ],
)
def test_what_does_not_fit_is_refused(
    tmp_path: Path, field: Field, properties: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        create(tmp_path / "t", field, **properties)
    assert not DeltaTable.is_deltatable(str(tmp_path / "t"))


@pytest.mark.protocol("B-53")
def test_a_table_that_is_there_has_other_names(tmp_path: Path) -> None:
    on = {"delta.enableIcebergCompatV2": "true", "delta.columnMapping.mode": "id"}
    write_deltalake(tmp_path / "t", pa.table({"a": [1]}), configuration=on)
    with pytest.raises(InvalidInputError, match="only a new table"):
        DeltaTable(tmp_path / "t").alter.set_table_properties(ON)


@pytest.mark.protocol("B-53")
def test_the_keys_of_maps_stay(tmp_path: Path) -> None:
    table = create(tmp_path / "t", Field("m", MapType(KEY, KEY)))
    with pytest.raises(InvalidInputError, match="does not allow changes of map keys"):
        table.alter.add_columns(Field("t", "string"), parent=("m", "key"))
    table.alter.rename_column("m", "n")
