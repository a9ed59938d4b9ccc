"""Tables written by hand: real data files, and a log made with the standard library.

For tests that break a log, or that must not trust our own writer.
"""

from __future__ import annotations

import json
import struct
import uuid
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap

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
