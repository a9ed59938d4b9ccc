"""Partition values, bounds and names in Iceberg's manifests, both ways, of every type."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
import shutil
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyiceberg.avro.file
import pytest
from pyiceberg import types
from pyiceberg.avro.decoder import StreamingBinaryDecoder
from pyiceberg.avro.file import AvroFile
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable
from pyiceberg.transforms import (
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from pyiceberg.typedef import Record

from deltalog import DeltaTable, connect, convert_to_deltalake, write_deltalake
from deltalog.iceberg.manifests import avro_name
from tests.support.iceberg_tables import Catalog, iceberg, path_of

__all__ = ["iceberg"]

EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001  # of timestamps without a zone
LAST = dt.datetime(9999, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001
FIRST = dt.datetime(1, 1, 1)  # noqa: DTZ001
BEFORE = EPOCH - dt.timedelta(microseconds=1)
DAYS = [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(9999, 12, 31)]
SINGLE = struct.unpack("<f", struct.pack("<f", 0.1))[0]

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "boolean": (pa.bool_(), [True, False]),
    "byte": (pa.int8(), [-128, 0, 127]),
    "int": (pa.int32(), [-(2**31), 0, 2**31 - 1]),
    "long": (pa.int64(), [-(2**63), 0, 2**63 - 1]),
    "float": (pa.float32(), [SINGLE, -1.5, math.inf, -math.inf, 3.4028234663852886e38, math.nan]),
    "double": (pa.float64(), [0.1, -1 / 3, 1e300, 5e-324, math.inf, -math.inf, math.nan]),
    "decimal(9,2)": (pa.decimal128(9, 2), [Decimal("0.10"), Decimal("-9999999.99")]),
    "decimal(20,3)": (pa.decimal128(20, 3), [Decimal("-0.128"), Decimal("9999999999999999.999")]),
    "decimal(38,0)": (pa.decimal128(38, 0), [Decimal(10**38 - 1), Decimal(1 - 10**38)]),
    "date": (pa.date32(), DAYS),
    "timestamp_ntz": (pa.timestamp("us"), [FIRST, BEFORE, EPOCH, LAST]),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        [one.replace(tzinfo=dt.UTC) for one in (FIRST, BEFORE, EPOCH, LAST)],
    ),
    "string": (pa.string(), ["a", "\xe4/=%", "null", " ", "\U0001f600"]),
    "binary": (pa.binary(), [b"\x00\x7f", b"a"]),
}
ZEROS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "float": (pa.float32(), [0.0, -0.0]),
    "double": (pa.float64(), [0.0, -0.0]),
}
VALUES_OF_TRANSFORMS = {
    "year": -1,
    "month": -1,
    "day": -1,
    "hour": -1,
    "truncate[2]": "\xe4b",
    "truncate[10]": -10,
}
EVERY = pytest.mark.parametrize(
    ("kind", "values"),
    [pytest.param(kind, [*values, None], id=name) for name, (kind, values) in VALUES.items()],
)
ICEBERG_TYPES: dict[Any, types.PrimitiveType] = {
    pa.bool_(): types.BooleanType(),
    pa.int8(): types.IntegerType(),
    pa.int32(): types.IntegerType(),
    pa.int64(): types.LongType(),
    pa.float32(): types.FloatType(),
    pa.float64(): types.DoubleType(),
    pa.date32(): types.DateType(),
    pa.timestamp("us"): types.TimestampType(),
    pa.timestamp("us", "UTC"): types.TimestamptzType(),
    pa.string(): types.StringType(),
    pa.binary(): types.BinaryType(),
}


@contextmanager
def exact() -> Iterator[None]:
    """Let PyIceberg read by its decoder in Python: the compiled one rounds doubles."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pyiceberg.avro.file, "new_decoder", StreamingBinaryDecoder)
        yield


def _on(compatibility: str) -> dict[str, str]:
    return {
        "delta.universalFormat.enabledFormats": "iceberg",
        f"delta.enableIcebergCompat{compatibility}": "true",
    }


def _stored(value: Any) -> Any:
    """A value as manifests store it."""
    if isinstance(value, dt.datetime):
        return (value.replace(tzinfo=None) - EPOCH) // dt.timedelta(microseconds=1)
    return value.toordinal() - EPOCH.toordinal() if isinstance(value, dt.date) else value


def _in_order(values: Any) -> list[str]:
    return sorted(map(repr, values))


def _data_files(path: Path) -> list[DataFile]:
    table = StaticTable.from_metadata(DeltaTable(path).sync_iceberg().metadata_location)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    with exact():
        return [
            entry.data_file
            for manifest in snapshot.manifests(table.io)
            if manifest.content == ManifestContent.DATA
            for entry in manifest.fetch_manifest_entry(table.io)
        ]


def _rows(path: Path) -> list[dict[str, Any]]:
    return sorted(DeltaTable(path).to_pyarrow_table().to_pylist(), key=repr)


@EVERY
@pytest.mark.parametrize("compatibility", ["V1", "V2", "V3"])
def test_partition_values_are_written_exactly(
    tmp_path: Path, kind: Any, values: list[Any], compatibility: str
) -> None:
    rows = pa.table({"id": range(len(values)), "p": pa.array(values, kind)})
    write_deltalake(tmp_path, rows, partition_by=["p"], configuration=_on(compatibility))
    written = [one.partition[0] for one in _data_files(tmp_path)]
    assert _in_order(written) == _in_order(map(_stored, values))


@EVERY
def test_partition_values_are_written_again_exactly(
    tmp_path: Path, kind: Any, values: list[Any]
) -> None:
    # A removed file has its manifest read and written anew.
    rows = pa.table({"id": range(len(values)), "p": pa.array(values, kind)})
    write_deltalake(tmp_path, rows, partition_by=["p"], configuration=_on("V2"))
    DeltaTable(tmp_path).sync_iceberg()
    DeltaTable(tmp_path).delete("id = 0")
    written = [one.partition[0] for one in _data_files(tmp_path)]
    assert _in_order(written) == _in_order(map(_stored, values[1:]))


@EVERY
@pytest.mark.parametrize("compatibility", ["V2", "V3"])
def test_partition_values_survive_both_ways(
    tmp_path: Path, kind: Any, values: list[Any], compatibility: str
) -> None:
    path = tmp_path / "t"
    rows = pa.table({"id": range(len(values)), "p": pa.array(values, kind)})
    write_deltalake(path, rows, partition_by=["p"], configuration=_on(compatibility))
    DeltaTable(path).sync_iceberg()
    shutil.rmtree(path / "_delta_log")
    convert_to_deltalake(path, source_format="iceberg")
    found = DeltaTable(path).to_pyarrow_table()
    assert _in_order(found.to_pylist()) == _in_order(rows.to_pylist())
    assert list(DeltaTable(path).metadata().partition_columns) == ["p"]


def _iceberg_type(kind: Any) -> types.PrimitiveType:
    if pa.types.is_decimal(kind):
        return types.DecimalType(kind.precision, kind.scale)
    return ICEBERG_TYPES[kind]


@EVERY
@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("is_partitioned", [True, False])
def test_a_table_of_iceberg_keeps_its_values(
    iceberg: Catalog, kind: Any, values: list[Any], version: str, is_partitioned: bool
) -> None:
    fields = [PartitionField(2, 1000, IdentityTransform(), "p")] if is_partitioned else []
    table = iceberg.create(
        Schema(
            types.NestedField(1, "id", types.LongType()),
            types.NestedField(2, "p", _iceberg_type(kind)),
        ),
        partition_spec=PartitionSpec(*fields),
        properties={"format-version": version},
    )
    kind = pa.int32() if kind == pa.int8() else kind
    if is_partitioned:  # PyIceberg 0.12 cannot write a partition of these
        values = [one for one in values if not isinstance(one, float) or math.isfinite(one)]
    rows = pa.table({"id": range(len(values)), "p": pa.array(values, kind)})
    table.append(rows)
    convert_to_deltalake(path_of(table), source_format="iceberg")
    found = DeltaTable(path_of(table)).to_pyarrow_table()
    assert _in_order(found.to_pylist()) == _in_order(rows.to_pylist())


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize(
    ("transform", "column"),
    [
        (VoidTransform(), "at"),
        (YearTransform(), "at"),
        (MonthTransform(), "at"),
        (DayTransform(), "at"),
        (HourTransform(), "at"),
        (TruncateTransform(2), "text"),
        (TruncateTransform(10), "id"),
    ],
    ids=str,
)
def test_other_transforms_leave_the_values_to_the_files(
    iceberg: Catalog, transform: Transform[Any, Any], column: str, version: str
) -> None:
    schema = Schema(
        types.NestedField(1, "id", types.LongType()),
        types.NestedField(2, "at", types.TimestampType()),
        types.NestedField(3, "text", types.StringType()),
    )
    source = schema.find_field(column).field_id
    table = iceberg.create(
        schema,
        partition_spec=PartitionSpec(PartitionField(source, 1000, transform, "part")),
        properties={"format-version": version},
    )
    rows = pa.table(
        {
            "id": pa.array([-1], pa.int64()),
            "at": pa.array([BEFORE], pa.timestamp("us")),
            "text": ["\xe4bc"],
        }
    )
    path = path_of(table) / "data" / "a.parquet"
    path.parent.mkdir(exist_ok=True)
    numbered = [
        field.with_metadata({"PARQUET:field_id": str(place + 1)})
        for place, field in enumerate(rows.schema)
    ]
    pq.write_table(rows.cast(pa.schema(numbered)), path)
    value = None if isinstance(transform, VoidTransform) else VALUES_OF_TRANSFORMS[str(transform)]
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
        append.append_data_file(
            DataFile.from_args(
                content=DataFileContent.DATA,
                file_path=f"file://{path}",
                file_format=FileFormat.PARQUET,
                partition=Record(value),
                record_count=1,
                file_size_in_bytes=path.stat().st_size,
                spec_id=0,
            )
        )
    convert_to_deltalake(path_of(table), source_format="iceberg")
    found = DeltaTable(path_of(table))
    assert found.to_pyarrow_table().to_pylist() == rows.to_pylist()
    assert list(found.metadata().partition_columns) == []


def test_a_table_of_version_1_is_cloned(iceberg: Catalog, tmp_path: Path) -> None:
    table = iceberg.create(
        Schema(types.NestedField(1, "id", types.LongType())), properties={"format-version": "1"}
    )
    table.append(pa.table({"id": [1, 2]}))
    table.append(pa.table({"id": [3]}))
    with connect() as db:
        db.sql(
            f"CREATE TABLE c SHALLOW CLONE iceberg.`file:{path_of(table)}` "
            f"LOCATION '{tmp_path}/copy'"
        )
    assert _rows(tmp_path / "copy") == [{"id": 1}, {"id": 2}, {"id": 3}]


@pytest.mark.parametrize(("kind", "zeros"), ZEROS.values(), ids=ZEROS)
@pytest.mark.parametrize("is_partitioned", [True, False])
def test_either_zero_is_within_the_bounds(
    tmp_path: Path, kind: Any, zeros: list[float], is_partitioned: bool
) -> None:
    pack = "<f" if kind == pa.float32() else "<d"
    expected = [struct.pack(pack, -0.0), struct.pack(pack, 0.0)]
    for zero in zeros:
        path = tmp_path / str(zero)
        rows = pa.table({"id": [1], "p": pa.array([zero], kind)})
        partition_by = ["p"] if is_partitioned else []
        write_deltalake(path, rows, partition_by=partition_by, configuration=_on("V2"))
        table = StaticTable.from_metadata(DeltaTable(path).sync_iceberg().metadata_location)
        snapshot = table.current_snapshot()
        assert snapshot is not None
        (manifest,) = snapshot.manifests(table.io)
        if is_partitioned:
            (summary,) = manifest.partitions or []
            assert [summary.lower_bound, summary.upper_bound] == expected
        else:
            (entry,) = manifest.fetch_manifest_entry(table.io)
            bounds = entry.data_file.lower_bounds, entry.data_file.upper_bounds
            number = table.schema().find_field("p").field_id
            assert [one[number] for one in bounds] == expected


@EVERY
def test_bounds_hold_the_values(tmp_path: Path, kind: Any, values: list[Any]) -> None:
    from pyiceberg.conversions import from_bytes

    finite: list[Any] = [one for one in values if one is not None and one == one]  # noqa: PLR0124  # NaN
    rows = pa.table({"id": range(len(finite)), "p": pa.array(finite, kind)})
    write_deltalake(tmp_path, rows, configuration=_on("V2"))
    (file,) = _data_files(tmp_path)
    number = 2
    if number not in (file.lower_bounds or {}):
        assert kind in {pa.bool_(), pa.binary()}
        return
    column = _iceberg_type(kind)
    lower = from_bytes(column, file.lower_bounds[number])
    upper = from_bytes(column, file.upper_bounds[number])
    stored = finite if pa.types.is_decimal(kind) else [_stored(one) for one in finite]
    assert lower <= min(stored)
    assert upper >= max(stored)


def _partition_fields(path: Path) -> list[dict[str, Any]]:
    table = StaticTable.from_metadata(DeltaTable(path).sync_iceberg().metadata_location)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    (manifest,) = snapshot.manifests(table.io)
    with AvroFile(table.io.new_input(manifest.manifest_path)) as file:  # type: ignore[var-annotated]
        schema = json.loads(file.header.meta["avro.schema"])
    data_file = next(one for one in schema["fields"] if one["name"] == "data_file")["type"]
    partition = next(one for one in data_file["fields"] if one["name"] == "partition")["type"]
    found: list[dict[str, Any]] = partition["fields"]
    return found


NAMES = {
    "gr\xf6\xdfe": "gr_xF6_xDFe",
    "_xE4": "_xE4",
    "\xe4": "_xE4_1002",
    "1st": "_1st",
    "a b": "a_x20b",
    "x-y.z": "x_x2Dy_x2Ez",
    "\U0001f600": "_xD83D_xDE00",
    "\u65e5\u672c": "_x65E5_x672C",
    "\u0663": "_x663",
    "plain_1": "plain_1",
}


def test_partition_columns_have_names_of_avro(tmp_path: Path) -> None:
    columns: dict[str, list[Any]] = {name: ["a", "b"] for name in NAMES}
    rows = pa.table({**columns, "v": [1, 2]})
    write_deltalake(tmp_path, rows, partition_by=list(NAMES), configuration=_on("V2"))
    found = _partition_fields(tmp_path)
    assert {one.get("iceberg-field-name", one["name"]): one["name"] for one in found} == NAMES
    assert all(re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", one["name"]) for one in found)

    DeltaTable(tmp_path).delete("v = 1")  # reads the manifest back
    metadata = DeltaTable(tmp_path).sync_iceberg().metadata_location
    expected = rows.slice(1).to_pylist()
    assert StaticTable.from_metadata(metadata).scan().to_arrow().to_pylist() == expected
    shutil.rmtree(tmp_path / "_delta_log")
    convert_to_deltalake(tmp_path, source_format="iceberg")
    assert DeltaTable(tmp_path).to_pyarrow_table(filters="v = 2").to_pylist() == expected


def test_a_name_of_avro_is_its_own() -> None:
    assert avro_name("a_B9") == "a_B9"
    assert avro_name("\ud800") == "_xD800"
