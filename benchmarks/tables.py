"""The tables for the measurements, built with pyarrow and the standard library only.

None of the compared libraries writes them, so none has an advantage.
"""

from __future__ import annotations

import json
import shutil
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyroaring import BitMap

from benchmarks.workloads import Size

ROWS_PER_FILE = 1_000  # of the tables whose data files do not exist
DELETED_EVERY = 1_000
WIDE_COLUMNS = 2_000
ID_FACTOR = 6_700_417  # a prime, so that multiples modulo the number of rows are a permutation
_MAGIC = 1681511377


def build(name: str, directory: Path, size: Size) -> Path:
    """Return the path of a table; build it unless it is complete."""
    path = directory / f"{name}-{abs(hash_of(size)):08x}"
    if not (path / "finished").exists():
        shutil.rmtree(path, ignore_errors=True)
        (path / "_delta_log").mkdir(parents=True)
        BUILDERS[name](path, size)
        (path / "finished").touch()
    return path


def hash_of(size: Size) -> int:
    """Return a number that changes if the built tables change."""
    return zlib.crc32(f"3 {size}".encode())


def schema_text(*columns: tuple[str, str]) -> str:
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in columns]
    return json.dumps({"type": "struct", "fields": fields})


def metadata_action(
    schema: str, partition_columns: list[str], **configuration: str
) -> dict[str, object]:
    return {
        "id": "8c24f1a2-6b0f-4f6e-9f3c-0d6f5f1f7a01",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": partition_columns,
        "configuration": configuration,
        "createdTime": 1_700_000_000_000,
    }


def name_of(index: int) -> str:
    """Return the path of a file by its number; most files do not exist."""
    return f"day={index % 100}/part-{index:08d}-c000.snappy.parquet"


def add_action(index: int) -> dict[str, object]:
    return {
        "path": name_of(index),
        "partitionValues": {"day": str(index % 100)},
        "size": 50_000 + index % 1_000,
        "modificationTime": 1_700_000_000_000 + index,
        "dataChange": True,
        "stats": _stats(index),
    }


def _stats(index: int) -> str:
    low, high = index * ROWS_PER_FILE, (index + 1) * ROWS_PER_FILE - 1
    return (
        f'{{"numRecords":{ROWS_PER_FILE},"minValues":{{"id":{low},"name":"n{low:012d}"}},'
        f'"maxValues":{{"id":{high},"name":"n{high:012d}"}},"nullCount":{{"id":0,"name":0}}}}'
    )


def write_commit(path: Path, version: int, actions: list[dict[str, object]]) -> None:
    info = {"commitInfo": {"timestamp": 1_700_000_000_000 + version, "operation": "WRITE"}}
    lines = [json.dumps(action, separators=(",", ":")) for action in (info, *actions)]
    (path / "_delta_log" / f"{version:020d}.json").write_text("\n".join(lines) + "\n", "utf-8")


PROTOCOL: dict[str, object] = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
_FILES_SCHEMA = schema_text(
    ("id", "long"), ("name", "string"), ("value", "double"), ("day", "integer")
)


def _build_checkpointed(path: Path, size: Size) -> None:
    """Build a checkpoint with an add action for each file, and one commit after it."""
    version = 10
    adds = pa.table(
        {
            "path": [f"day={i % 100}/part-{i:08d}-c000.snappy.parquet" for i in range(size.files)],
            "partitionValues": pa.array([[("day", str(i % 100))] for i in range(size.files)], MAP),
            "size": pa.array(range(50_000, 50_000 + size.files), pa.int64()),
            "modificationTime": pa.array(range(size.files), pa.int64()),
            "dataChange": pa.array([False] * size.files),
            "stats": [_stats(i) for i in range(size.files)],
        }
    )
    write_checkpoint(path, version, {"add": adds})
    write_commit(path, version, [])
    write_commit(path, version + 1, [{"add": add_action(size.files)}])


def _build_shown(path: Path, size: Size) -> None:
    """Build a checkpoint of add actions, with Iceberg metadata, which only deltalog writes."""
    from deltalog import DeltaTable

    _build_checkpointed(path, size)
    DeltaTable(path).alter.set_table_properties(
        {
            "delta.universalFormat.enabledFormats": "iceberg",
            "delta.enableIcebergCompatV2": "true",
            "delta.columnMapping.mode": "name",
        }
    )


MAP = pa.map_(pa.string(), pa.string())
_PROTOCOL_TYPE = pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())])
_METADATA_TYPE = pa.struct(
    [
        ("id", pa.string()),
        ("format", pa.struct([("provider", pa.string()), ("options", MAP)])),
        ("schemaString", pa.string()),
        ("partitionColumns", pa.list_(pa.string())),
        ("configuration", MAP),
        ("createdTime", pa.int64()),
    ]
)


def write_checkpoint(
    path: Path,
    version: int,
    files: Mapping[str, pa.Table],
    metadata: dict[str, object] | None = None,
) -> None:
    """Write protocol and metadata, and then one kind of file actions after the other."""
    metadata = {
        **(metadata or metadata_action(_FILES_SCHEMA, ["day"])),
        "configuration": [],
        "format": {"provider": "parquet", "options": []},
    }
    few: list[dict[str, object]] = [PROTOCOL, {"metaData": metadata}]
    parts = [
        pa.table(
            {
                "protocol": pa.array([row.get("protocol") for row in few], _PROTOCOL_TYPE),
                "metaData": pa.array([row.get("metaData") for row in few], _METADATA_TYPE),
            }
        ),
        *(pa.table([rows.to_struct_array()], names=[kind]) for kind, rows in files.items()),
    ]
    checkpoint = pa.concat_tables(parts, promote_options="default")
    log = path / "_delta_log"
    pq.write_table(checkpoint, log / f"{version:020d}.checkpoint.parquet", row_group_size=250_000)
    hint = {"version": version, "size": checkpoint.num_rows}
    (log / "_last_checkpoint").write_text(json.dumps(hint), "utf-8")


def _build_commits(path: Path, size: Size) -> None:
    """Build only commits: eleven adds each, and a remove of a file of the previous commit."""
    start: list[dict[str, object]] = [
        PROTOCOL,
        {"metaData": metadata_action(_FILES_SCHEMA, ["day"])},
    ]
    for version in range(size.commits):
        actions = start if version == 0 else [_remove((version - 1) * 11)]
        adds: list[dict[str, object]] = [{"add": add_action(version * 11 + i)} for i in range(11)]
        write_commit(path, version, [*actions, *adds])


def _remove(index: int) -> dict[str, object]:
    return {"remove": _removed(index)}


def _removed(index: int) -> dict[str, object]:
    added = add_action(index)
    removed = {key: added[key] for key in ("path", "partitionValues", "size")}
    removed |= {"deletionTimestamp": 1_700_000_000_000, "dataChange": True}
    return removed | {"extendedFileMetadata": True}


def _build_tombstones(path: Path, size: Size) -> None:
    """Build a table that was overwritten repeatedly, with old files for vacuum."""
    per_commit = size.tombstones // 100
    start: list[dict[str, object]] = [
        PROTOCOL,
        {"metaData": metadata_action(_FILES_SCHEMA, ["day"])},
    ]
    for version in range(101):
        gone = range((version - 1) * per_commit, version * per_commit) if version else ()
        new = range(version * per_commit, (version + 1) * per_commit)
        adds: list[dict[str, object]] = [{"add": add_action(index)} for index in new]
        actions = [*map(_remove, gone), *adds]
        write_commit(path, version, actions if version else [*start, *actions])
    kept = _table_of(add_action, range(size.tombstones, size.tombstones + per_commit))
    removes = _table_of(_removed, range(size.tombstones))
    write_checkpoint(path, 100, {"add": kept, "remove": removes})
    for day in range(100):
        (path / f"day={day}").mkdir()
    for index in range(size.tombstones + per_commit):
        (path / str(add_action(index)["path"])).touch()


def _table_of(action: Callable[[int], dict[str, object]], numbers: range) -> pa.Table:
    rows = pa.Table.from_pylist([{**action(index), "partitionValues": None} for index in numbers])
    partitions = pa.array([[("day", str(index % 100))] for index in numbers], MAP)
    return rows.set_column(
        rows.column_names.index("partitionValues"), "partitionValues", partitions
    )


def batches(size: Size) -> Iterator[pa.Table]:
    generator = np.random.default_rng(7)
    per_file = size.rows // size.row_files
    for number in range(size.row_files):
        ids = np.arange(number * per_file, (number + 1) * per_file)
        yield pa.table(
            {
                "id": pa.array(ids),
                "amount": pa.array(generator.normal(size=per_file)),
                "quantity": pa.array(generator.integers(0, 1_000, per_file, dtype=np.int32)),
                "name": pa.array([f"name-{i % 5_000}" for i in range(per_file)]),
                "at": pa.array(1_600_000_000_000_000 + ids * 1_000, pa.timestamp("us", "UTC")),
            }
        )


def narrow_batches(size: Size) -> Iterator[pa.Table]:
    """Yield the rows of `batches` with few columns, for tables of many rows."""
    per_file = size.rows // size.row_files
    for number in range(size.row_files):
        ids = np.arange(number * per_file, (number + 1) * per_file)
        yield pa.table({"id": pa.array(ids), "quantity": pa.array((ids % 1_000).astype(np.int32))})


NARROW_SCHEMA = schema_text(("id", "long"), ("quantity", "integer"))
ROWS_SCHEMA = schema_text(
    ("id", "long"),
    ("amount", "double"),
    ("quantity", "integer"),
    ("name", "string"),
    ("at", "timestamp"),
)


def add_file(
    path: Path, number: int, table: pa.Table, *, group_rows: int = 128_000
) -> dict[str, object]:
    """Write a data file, and return its add action.

    Like a file of deltalog, it has page indexes, pages of the same number of rows, and dictionaries
    for repeated values.
    """
    name = f"part-{number:05d}.snappy.parquet"
    pq.write_table(
        table,
        path / name,
        row_group_size=group_rows,
        write_page_index=True,
        max_rows_per_page=5_000,
        use_dictionary=["name"] if "name" in table.column_names else False,  # type: ignore[arg-type]  # stubs
    )
    ends = pc.min_max(table["id"])
    stats = {
        "numRecords": table.num_rows,
        "minValues": {"id": ends["min"].as_py()},
        "maxValues": {"id": ends["max"].as_py()},
        "nullCount": {"id": 0},
    }
    return {
        "path": name,
        "partitionValues": {},
        "size": (path / name).stat().st_size,
        "modificationTime": 1_700_000_000_000,
        "dataChange": True,
        "stats": json.dumps(stats),
    }


def _build_rows(
    path: Path,
    size: Size,
    vector: Callable[[int], object] | None = None,
    *,
    is_maskable: bool = False,
    is_fed: bool = False,
    is_ordered: bool = True,
    is_narrow: bool = False,
) -> None:
    """Build existing data files, in the order of ids or in no order."""
    protocol = PROTOCOL
    configuration = {}
    if is_fed:
        protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}}
        configuration = {"delta.enableChangeDataFeed": "true"}
    if vector is not None or is_maskable:
        features = ["deletionVectors"]
        versions = {"minReaderVersion": 3, "minWriterVersion": 7}
        protocol = {
            "protocol": {**versions, "readerFeatures": features, "writerFeatures": features}
        }
        configuration = {"delta.enableDeletionVectors": "true"}
    schema = NARROW_SCHEMA if is_narrow else ROWS_SCHEMA
    metadata = metadata_action(schema, [], **configuration)
    actions: list[dict[str, object]] = [protocol, {"metaData": metadata}]
    for number, table in enumerate(narrow_batches(size) if is_narrow else batches(size)):
        if not is_ordered:
            ids = table["id"].to_numpy() * ID_FACTOR % size.rows
            table = table.set_column(0, "id", pa.array(ids))  # noqa: PLW2901  # the same rows
        add = add_file(path, number, table)
        if vector is not None:
            add["deletionVector"] = vector(table.num_rows)
        actions.append({"add": add})
    write_commit(path, 0, actions)


def _build_keyed(path: Path, size: Size, *, is_narrow: bool = False) -> None:
    """Build rows whose ids are in no order, with a key index, which only deltalog has."""
    from deltalog import DeltaTable

    _build_rows(path, size, is_maskable=True, is_ordered=False, is_narrow=is_narrow)
    table = DeltaTable(path)
    table.alter.set_key_index(["id"])
    table.optimize.key_index()


def _build_wide(path: Path, size: Size) -> None:
    """Build ten files of a thousand rows; the columns after `id` are numbers."""
    del size
    names = [f"value_{number:04d}" for number in range(1, WIDE_COLUMNS)]
    schema = schema_text(("id", "long"), *((name, "double") for name in names))
    actions: list[dict[str, object]] = [PROTOCOL, {"metaData": metadata_action(schema, [])}]
    generator = np.random.default_rng(7)
    for number in range(10):
        ids = pa.array(np.arange(number * ROWS_PER_FILE, (number + 1) * ROWS_PER_FILE))
        values = {name: pa.array(generator.normal(size=ROWS_PER_FILE)) for name in names}
        actions.append({"add": add_file(path, number, pa.table({"id": ids, **values}))})
    write_commit(path, 0, actions)


def _build_trickle(path: Path, size: Size) -> None:
    """Build a commit for each small file of a thousand rows."""
    metadata = metadata_action(ROWS_SCHEMA, [])
    start: list[dict[str, object]] = [PROTOCOL, {"metaData": metadata}]
    rows = ROWS_PER_FILE * size.small_files
    for version, table in enumerate(batches(replace(size, rows=rows, row_files=size.small_files))):
        actions: list[dict[str, object]] = [{"add": add_file(path, version, table)}]
        write_commit(path, version, actions if version else [*start, *actions])


def _build_vectors(path: Path, size: Size) -> None:
    """Build the same rows; one in a thousand of each file is deleted."""

    def vector(num_rows: int) -> object:
        bits = BitMap(range(0, num_rows, DELETED_EVERY)).serialize()
        bitmap = struct.pack("<iqi", _MAGIC, 1, 0) + bits
        name = path / f"vector-{len(list(path.glob('vector-*')))}.bin"
        framed = struct.pack(">i", len(bitmap)) + bitmap + struct.pack(">I", zlib.crc32(bitmap))
        name.write_bytes(b"\x01" + framed)
        return {
            "storageType": "p",
            "pathOrInlineDv": name.absolute().as_uri(),
            "offset": 1,
            "sizeInBytes": len(bitmap),
            "cardinality": len(range(0, num_rows, DELETED_EVERY)),
        }

    _build_rows(path, size, vector)


def _times(factor: int, size: Size) -> Size:
    return replace(size, rows=size.rows * factor, row_files=size.row_files * factor)


_thrice, _large, _huge = partial(_times, 3), partial(_times, 10), partial(_times, 100)


BUILDERS: dict[str, Callable[[Path, Size], None]] = {
    "checkpointed": _build_checkpointed,
    "shown": _build_shown,
    "commits": _build_commits,
    "rows": _build_rows,
    "vectors": _build_vectors,
    "maskable": lambda path, size: _build_rows(path, size, is_maskable=True),
    "small_files": lambda path, size: _build_rows(
        path, replace(size, rows=size.rows // 10, row_files=size.small_files)
    ),
    "trickle": _build_trickle,
    "wide": _build_wide,
    "tombstones": _build_tombstones,
    "large": lambda path, size: _build_rows(path, _large(size), is_maskable=True),
    "thrice": lambda path, size: _build_rows(path, _thrice(size)),
    "fed": lambda path, size: _build_rows(path, _thrice(size), is_fed=True),
    "large_plain": lambda path, size: _build_rows(path, _large(size)),
    "keyed": _build_keyed,
    "keyed_plain": lambda path, size: _build_rows(path, size, is_ordered=False),
    "keyed_large": lambda path, size: _build_keyed(path, _large(size)),
    "keyed_huge": lambda path, size: _build_keyed(path, _huge(size), is_narrow=True),
    "keyed_large_plain": lambda path, size: _build_rows(path, _large(size), is_ordered=False),
    "shared": lambda path, size: _build_rows(path, replace(size, row_files=size.shared_files)),
    "many": lambda path, size: _build_checkpointed(path, replace(size, files=size.many_files)),
}
