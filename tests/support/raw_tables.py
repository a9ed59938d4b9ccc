"""Tables written by hand: real data files, and a log made with the standard library.

For tests that break a log, or that must not trust our own writer.
"""

from __future__ import annotations

import io
import itertools
import json
import struct
import uuid
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap

from deltalog.data.scan import Scan, plan_scan
from deltalog.expressions import parse_sql
from deltalog.log.context import utc_context
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.protocol.deletion_vectors import encode_z85
from deltalog.storage import Store
from tests.support import logs
from tests.support.contexts import moved

Action = dict[str, Any]
_MAP = pa.map_(pa.string(), pa.string())


def _struct(**fields: pa.DataType) -> pa.StructType:
    return pa.struct(list(fields.items()))


_CHECKPOINT_TYPES: dict[str, pa.DataType] = {
    "protocol": _struct(
        minReaderVersion=pa.int32(),
        minWriterVersion=pa.int32(),
        readerFeatures=pa.list_(pa.string()),
        writerFeatures=pa.list_(pa.string()),
    ),
    "metaData": _struct(
        id=pa.string(),
        format=_struct(provider=pa.string(), options=_MAP),
        schemaString=pa.string(),
        partitionColumns=pa.list_(pa.string()),
        configuration=_MAP,
    ),
    "add": _struct(
        path=pa.string(),
        partitionValues=_MAP,
        size=pa.int64(),
        modificationTime=pa.int64(),
        dataChange=pa.bool_(),
        stats=pa.string(),
        deletionVector=_struct(
            storageType=pa.string(),
            pathOrInlineDv=pa.string(),
            offset=pa.int32(),
            sizeInBytes=pa.int32(),
            cardinality=pa.int64(),
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class RawTable:
    """A directory with columns `id` (long) and `p` (integer, the partition column)."""

    path: Path

    @property
    def log(self) -> Path:
        """The log's directory."""
        return self.path / "_delta_log"

    def commit_path(self, version: int) -> Path:
        """A commit's file."""
        return self.log / f"{version:020d}.json"

    def create(self) -> None:
        """Write version 0: protocol and metadata."""
        self.log.mkdir(parents=True)
        self.commit(0, [{"protocol": protocol()}, {"metaData": metadata()}])

    def commit(self, version: int, actions: Iterable[Action]) -> None:
        """Write a commit."""
        lines = [json.dumps(action) for action in actions]
        self.commit_path(version).write_text("\n".join(lines) + "\n", "utf-8")

    def add(self, ids: Sequence[int], p: int, vector: Action | None = None) -> Action:
        """Write a data file and return its action."""
        name = f"part-{uuid.uuid4().hex}.parquet"
        pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), self.path / name)
        stats = {
            "numRecords": len(ids),
            "minValues": {"id": min(ids)},
            "maxValues": {"id": max(ids)},
            "nullCount": {"id": 0},
        }
        add = {
            "path": name,
            "partitionValues": {"p": str(p)},
            "size": (self.path / name).stat().st_size,
            "modificationTime": 1_700_000_000_000,
            "dataChange": True,
            "stats": json.dumps(stats),
        }
        return {"add": add if vector is None else {**add, "deletionVector": vector}}

    def deletion_vector(self, rows: Iterable[int]) -> tuple[Path, Action]:
        """Write a deletion vector's file; the file and its descriptor."""
        positions = BitMap(rows)
        bitmap = struct.pack("<iqi", 1681511377, 1, 0) + positions.serialize()
        path = self.path / f"deletion_vector_{uuid.uuid4()}.bin"
        framed = struct.pack(">i", len(bitmap)) + bitmap + struct.pack(">I", zlib.crc32(bitmap))
        path.write_bytes(b"\x01" + framed)
        return path, {
            "storageType": "p",
            "pathOrInlineDv": path.as_uri(),
            "offset": 1,
            "sizeInBytes": len(bitmap),
            "cardinality": len(positions),
        }

    def checkpoint(self, version: int, adds: Iterable[Action]) -> Path:
        """Write a classic checkpoint and the hint that names it."""
        rows = [{"protocol": protocol()}, {"metaData": metadata()}, *adds]
        columns = {
            name: pa.array([_as_arrow(row.get(name)) for row in rows], kind)
            for name, kind in _CHECKPOINT_TYPES.items()
        }
        path = self.log / f"{version:020d}.checkpoint.parquet"
        pq.write_table(pa.table(columns), path)
        hint = {"version": version, "size": len(rows)}
        (self.log / "_last_checkpoint").write_text(json.dumps(hint), "utf-8")
        return path


def protocol() -> Action:
    """A protocol with deletion vectors."""
    features = ["deletionVectors"]
    return {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": features,
        "writerFeatures": features,
    }


def metadata() -> Action:
    """Columns `id` and `p`, partitioned by `p`."""
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in (("id", "long"), ("p", "integer"))
    ]
    return {
        "id": "0d5c5f3e-7f6f-4f58-9a3c-2f1e0c7b6a11",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": ["p"],
        "configuration": {"delta.enableDeletionVectors": "true"},
    }


def _as_arrow(value: Any) -> Any:
    """Maps as Arrow wants them."""
    if not isinstance(value, Mapping):
        return value
    return {
        key: list(item.items())
        if key in {"options", "configuration", "partitionValues"}
        else _as_arrow(item)
        for key, item in value.items()
    }


Fields = Sequence[tuple[str, Any] | dict[str, Any]]


@dataclass
class DataTable:
    """A table of any schema in memory: real data files, and a log made of dicts.

    Args:
        fields: columns as name and type, or as the log writes them.
        partition_by: names.
        features: of the protocol; None of them: the legacy protocol that reads everything here.
        configuration: the table's properties.
    """

    fields: Fields
    partition_by: Sequence[str] = ()
    features: Sequence[str] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    store: logs.DictStore = field(default_factory=logs.DictStore)

    def __post_init__(self) -> None:
        self._numbers = itertools.count()
        self._version = -1
        self.commit(self.protocol(), self.metadata())

    def protocol(self) -> Action:
        """The `protocol` line."""
        if not self.features:
            return {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
        names = list(self.features)
        reader = [name for name in names if name not in {"changeDataFeed", "rowTracking"}]
        lists = {"readerFeatures": reader, "writerFeatures": names}
        return {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **lists}}

    def metadata(
        self, fields: Fields | None = None, configuration: Mapping[str, str] | None = None
    ) -> Action:
        """The `metaData` line, of this or of a later schema and with more properties."""
        return logs.metadata(
            schemaString=schema_string(self.fields if fields is None else fields),
            partitionColumns=list(self.partition_by),
            configuration={**self.configuration, **(configuration or {})},
        )

    def commit(self, *actions: Action, time_ms: int | None = None) -> int:
        """Write the next commit; its version."""
        self._version += 1
        logs.commit(self.store, self._version, *actions, time_ms=time_ms)
        return self._version

    def file(
        self, data: pa.Table | Mapping[str, Any], *, path: str | None = None, **options: Any
    ) -> tuple[str, int]:
        """Write a data file and nothing else; its path and size. Options are pyarrow's."""
        table = data if isinstance(data, pa.Table) else pa.table(dict(data))
        sink = io.BytesIO()
        pq.write_table(table, sink, **options)
        path = f"part-{next(self._numbers)}.parquet" if path is None else path
        self.store.put(path, sink.getvalue())
        return path, len(sink.getvalue())

    def add(
        self,
        data: pa.Table | Mapping[str, Any],
        *,
        path: str | None = None,
        stats: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        **members: Any,
    ) -> Action:
        """Write a data file; its `add` line, with the number of rows unless stats are given.

        Members of the line that are None are left out.
        """
        table = data if isinstance(data, pa.Table) else pa.table(dict(data))
        path, size = self.file(table, path=path, **(options or {}))
        stats = {"numRecords": table.num_rows} if stats is None else stats
        members = {name: value for name, value in members.items() if value is not None}
        return logs.add(path, size=size, stats=json.dumps(stats), **members)

    def cdc(self, data: pa.Table | Mapping[str, Any], **members: Any) -> Action:
        """Write a change file; its `cdc` line."""
        path, size = self.file(data, path=f"_change_data/cdc-{next(self._numbers)}.parquet")
        line = {"path": path, "partitionValues": {}, "size": size, "dataChange": False}
        return {"cdc": {**line, **members}}

    def vectors(self, *rows: Iterable[int]) -> list[Action]:
        """Write one file of deletion vectors; their descriptors."""
        name = uuid.UUID(int=next(self._numbers))
        path = f"deletion_vector_{name}.bin"
        content = b"\x01"
        found = []
        for positions in map(set, rows):
            body = vector_body(positions)
            at = {"storageType": "u", "pathOrInlineDv": encode_z85(name.bytes)}
            found.append(
                {
                    **at,
                    "offset": len(content),
                    "sizeInBytes": len(body),
                    "cardinality": len(positions),
                }
            )
            content += struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body))
        self.store.put(path, content)
        return found

    def vector(self, *rows: int) -> Action:
        """Write a file of one deletion vector; its descriptor."""
        return self.vectors(rows)[0]

    def snapshot(self, version: int | None = None, *, store: Store | None = None) -> Snapshot:
        """A version, loaded anew."""
        return load_snapshot(utc_context(self.store if store is None else store), version=version)

    def scan(
        self,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        *,
        time_zone: str = "UTC",
    ) -> Scan:
        """A scan of the latest version."""
        snapshot = moved(self.snapshot(), time_zone=time_zone)
        predicate = None
        if where is not None:
            predicate = parse_sql(where)
        return plan_scan(snapshot, columns=columns, predicate=predicate, limit=limit)

    def rows(self, where: str | None = None, columns: Sequence[str] | None = None) -> list[Any]:
        """The rows of the latest version: tuples, or bare values of a single column."""
        return rows_of(self.scan(where, columns).to_table())


def rows_of(table: pa.Table) -> list[Any]:
    """The rows of a table: tuples, or bare values of a single column."""
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return [row[0] for row in rows] if table.num_columns == 1 else rows


def vector_body(rows: Iterable[int]) -> bytes:
    """A deletion vector as it is stored, without its frame."""
    return struct.pack("<iqi", 1681511377, 1, 0) + BitMap(rows).serialize()


def schema_string(fields: Fields) -> str:
    """The `schemaString` of columns that may be NULL."""
    return json.dumps(struct_of(*fields))


def struct_of(*fields: tuple[str, Any] | dict[str, Any]) -> dict[str, Any]:
    """A struct type as the log writes it."""
    members = [item if isinstance(item, dict) else column(*item) for item in fields]
    return {"type": "struct", "fields": members}


def column(name: str, kind: Any, **metadata: Any) -> dict[str, Any]:
    """A field as the log writes it."""
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def mapped(name: str, kind: Any, number: int, physical: str) -> dict[str, Any]:
    """A field with its column mapping."""
    return column(
        name,
        kind,
        **{"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical},
    )
