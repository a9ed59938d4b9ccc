"""Iceberg tables whose columns were promoted: older files are read as Delta reads widened ones."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg import types
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable, Table

from deltalog import DeltaTable, connect, convert_to_deltalake, write_deltalake
from deltalog.errors import SchemaMismatchError
from tests.support.iceberg_tables import Catalog, iceberg, in_order, metadata_of, path_of

__all__ = ["iceberg"]


def changes_of(path: Path) -> dict[str, list[dict[str, str]]]:
    """The type changes that the schema remembers, by column."""
    found = DeltaTable(path).schema().fields
    return {
        field.name: field.metadata["delta.typeChanges"]
        for field in found
        if "delta.typeChanges" in field.metadata
    }


def first(n: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([n, None], pa.int32()),
            "real": pa.array([n + 0.1, None], pa.float32()),
            "amount": pa.array([Decimal(n) + Decimal("0.25"), None], pa.decimal128(5, 2)),
            "p": pa.array([n, n], pa.int32()),
        }
    )


def promoted(iceberg: Catalog) -> Table:
    """A table with files of two or three types for each column."""
    table = iceberg.create(first(0).schema)
    table.append(first(1))
    with table.update_schema() as change:
        change.update_column("amount", types.DecimalType(9, 2))
    table.append(
        first(2).set_column(2, "amount", pa.array([Decimal("99999.25"), None], pa.decimal128(9, 2)))
    )
    with table.update_schema() as change:
        change.update_column("id", types.LongType())
        change.update_column("real", types.DoubleType())
        change.update_column("amount", types.DecimalType(20, 2))
        change.update_column("p", types.LongType())
    newest = pa.table(
        {
            "id": pa.array([1 << 40, None], pa.int64()),
            "real": pa.array([0.1, None], pa.float64()),
            "amount": pa.array([Decimal(10) ** 17, None], pa.decimal128(20, 2)),
            "p": pa.array([3, 3], pa.int64()),
        }
    )
    table.append(newest)
    return table


@pytest.mark.parametrize("collect_stats", [True, False])
def test_promoted_columns_are_widened_ones(iceberg: Catalog, collect_stats: bool) -> None:
    table = promoted(iceberg)
    expected = in_order(table.scan().to_arrow())
    before = sorted(path_of(table).rglob("*.parquet"))

    convert_to_deltalake(table, collect_stats=collect_stats)

    found = DeltaTable(path_of(table))
    assert in_order(found.to_pyarrow_table()) == expected
    assert sorted(path_of(table).rglob("*.parquet")) == before
    assert changes_of(path_of(table)) == {
        "id": [{"fromType": "integer", "toType": "long"}],
        "real": [{"fromType": "float", "toType": "double"}],
        "amount": [
            {"fromType": "decimal(5,2)", "toType": "decimal(9,2)"},
            {"fromType": "decimal(9,2)", "toType": "decimal(20,2)"},
        ],
        "p": [{"fromType": "integer", "toType": "long"}],
    }
    assert "typeWidening" in (found.protocol().reader_features or ())
    for predicate in ("id = 1", "id > 2", "amount = 1.25", "amount > 5", "real < 1.0", "p >= 2"):
        rows = [row for row in expected if matches(row, predicate)]
        assert in_order(found.scan(predicate=predicate).to_table()) == rows, predicate
    write_deltalake(found, found.to_pyarrow_table().slice(0, 2), mode="append")
    found.optimize.compact()
    assert found.count() == len(expected) + 2


def matches(row: dict[str, Any], predicate: str) -> bool:
    name, sign, text = predicate.split()
    value, limit = row[name], Decimal(text)
    if value is None:
        return False
    value = Decimal(str(value))
    return {"=": value == limit, ">": value > limit, "<": value < limit, ">=": value >= limit}[sign]


def test_parts_of_columns_are_widened(iceberg: Catalog) -> None:
    schema = Schema(
        types.NestedField(1, "s", types.StructType(types.NestedField(2, "x", types.IntegerType()))),
        types.NestedField(3, "l", types.ListType(4, types.FloatType(), element_required=False)),
        types.NestedField(
            5,
            "m",
            types.MapType(6, types.StringType(), 7, types.DecimalType(5, 1), value_required=False),
        ),
    )
    table = iceberg.create(schema)
    table.append(
        pa.table(
            {
                "s": pa.array([{"x": 1}, None], pa.struct([("x", pa.int32())])),
                "l": pa.array([[0.5], None], pa.list_(pa.float32())),
                "m": pa.array(
                    [[("k", Decimal("1.5"))], None], pa.map_(pa.string(), pa.decimal128(5, 1))
                ),
            }
        )
    )
    with table.update_schema() as change:
        change.update_column(("s", "x"), types.LongType())
        change.update_column(("l", "element"), types.DoubleType())
        change.update_column(("m", "value"), types.DecimalType(8, 1))
    expected = in_order(table.scan().to_arrow())
    with connect() as db:
        name = f"iceberg.`{table.metadata_location}`"
        db.sql(f"CREATE TABLE c SHALLOW CLONE {name} LOCATION '{path_of(table)}-clone'")
    convert_to_deltalake(table)
    for path in (path_of(table), Path(f"{path_of(table)}-clone")):
        assert in_order(DeltaTable(path).to_pyarrow_table()) == expected
        assert changes_of(path) == {
            "l": [{"fromType": "float", "toType": "double", "fieldPath": "element"}],
            "m": [{"fromType": "decimal(5,1)", "toType": "decimal(8,1)", "fieldPath": "value"}],
        }
        kind: Any = DeltaTable(path).schema().fields[0].type
        assert kind.fields[0].metadata["delta.typeChanges"] == [
            {"fromType": "integer", "toType": "long"}
        ]


def test_a_promoted_partition_column_has_its_value_in_the_log(iceberg: Catalog) -> None:
    table = iceberg.create(first(0).schema)
    with table.update_spec() as spec:
        spec.add_identity("p")
    table.append(first(1))
    with table.update_schema() as change:
        change.update_column("p", types.LongType())
    newer = first(2)
    table.append(newer.set_column(3, "p", pa.array([1 << 40, 1], pa.int64())))
    expected = in_order(table.scan().to_arrow())
    convert_to_deltalake(table)
    found = DeltaTable(path_of(table))
    assert found.metadata().partition_columns == ("p",)
    assert in_order(found.to_pyarrow_table()) == expected
    assert found.scan(predicate="p = 1").count() == 3


def with_type(table: Table, name: str, kind: str) -> Path:
    """The metadata file of a table, in which a column has another type."""
    path = metadata_of(table)
    found = json.loads(path.read_text("utf-8"))
    for schema in found["schemas"]:
        for field in schema["fields"]:
            if field["name"] == name:
                field["type"] = kind
    path.write_text(json.dumps(found), "utf-8")
    return path


def test_dates_become_moments_as_version_3_has_it(iceberg: Catalog) -> None:
    table = iceberg.create(pa.schema([("d", pa.date32())]))
    table.append(pa.table({"d": pa.array([0, 20_000, None], pa.date32())}))
    convert_to_deltalake(with_type(table, "d", "timestamp"))
    found = DeltaTable(path_of(table))
    values = found.to_pyarrow_table()["d"]
    assert values.type == pa.timestamp("us")
    assert values.cast(pa.int64()).to_pylist() == [0, 20_000 * 86_400_000_000, None]
    assert changes_of(path_of(table)) == {"d": [{"fromType": "date", "toType": "timestamp_ntz"}]}


def test_dates_as_partitions_of_moments_are_refused(iceberg: Catalog) -> None:
    table = iceberg.create(pa.schema([("d", pa.date32())]))
    with table.update_spec() as spec:
        spec.add_identity("d")
    table.append(pa.table({"d": pa.array([0, 20_000], pa.date32())}))
    with pytest.raises(SchemaMismatchError, match="partition column 'd' is of type date"):
        convert_to_deltalake(with_type(table, "d", "timestamp"))


@pytest.mark.parametrize(
    ("stored", "kind"),
    [
        (pa.int64(), "int"),
        (pa.int32(), "double"),
        (pa.int32(), "decimal(12, 0)"),
        (pa.float64(), "float"),
        (pa.decimal128(9, 2), "decimal(5, 2)"),
        (pa.decimal128(5, 2), "decimal(9, 3)"),
        (pa.date32(), "timestamptz"),
        (pa.string(), "binary"),
        (pa.int32(), "string"),
    ],
    ids=str,
)
def test_other_types_are_refused(iceberg: Catalog, stored: Any, kind: str) -> None:
    table = iceberg.create(pa.schema([("n", stored)]))
    table.append(pa.table({"n": pa.array([None], stored)}))
    with pytest.raises(SchemaMismatchError, match="'n' is of type"):
        convert_to_deltalake(with_type(table, "n", kind))
    assert not (path_of(table) / "_delta_log").exists()


def shown_again(table: Table) -> list[dict[str, Any]]:
    """The rows of an Iceberg table that is converted, as Iceberg is shown them afterwards."""
    convert_to_deltalake(table)
    found = DeltaTable(path_of(table))
    found.optimize.upgrade_uniform(2)
    shown = StaticTable.from_metadata(found.sync_iceberg().metadata_location)
    return in_order(shown.scan().to_arrow())


def test_iceberg_follows_the_changes_that_it_has(iceberg: Catalog) -> None:
    table = promoted(iceberg)
    expected = in_order(table.scan().to_arrow())
    assert shown_again(table) == expected


def test_lists_are_found_by_their_ids_afterwards(iceberg: Catalog) -> None:
    """What Iceberg numbered stays numbered so when the table is shown as Iceberg again."""
    held = pa.table(
        {
            "l": pa.array([[1, 2], None], pa.list_(pa.int64())),
            "m": pa.array([[("k", [1])], None], pa.map_(pa.string(), pa.list_(pa.int64()))),
        }
    )
    table = iceberg.create(held.schema)
    table.append(held)
    with table.update_schema() as change:
        change.rename_column("l", "old")
    with table.update_schema() as change:
        change.add_column("l", types.ListType(1, types.StringType()))
    expected = in_order(table.scan().to_arrow())
    assert shown_again(table) == expected


def test_a_value_that_only_the_metadata_has_is_not_lost(iceberg: Catalog) -> None:
    """A file need not hold a column of which all rows have the value of its partition."""
    held = pa.table({"id": pa.array([1, 2], pa.int64()), "p": ["a", "a"]})
    table = iceberg.create(held.schema)
    with table.update_spec() as spec:
        spec.add_identity("p")
    table.append(held)
    with table.update_spec() as spec:
        spec.remove_field("p")
    table.append(held)
    convert_to_deltalake(table)
    assert DeltaTable(path_of(table)).count() == 4

    for file in path_of(table).rglob("p=a/*.parquet"):
        pq.write_table(pq.read_table(file).drop_columns(["p"]), file)
    (path_of(table) / "_delta_log").rename(path_of(table).parent / "log")
    with pytest.raises(SchemaMismatchError, match="whose value is only in the Iceberg metadata"):
        convert_to_deltalake(table)
