"""Small logs, written by hand into a store that is a dict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq  # writes checkpoints as other writers do

from deltalog._util.json import dumps
from deltalog._util.paths import FileInfo
from deltalog.errors import AlreadyExistsError, ObjectNotFoundError
from deltalog.log import names
from deltalog.protocol.actions import arrow

Json = dict[str, Any]

SCHEMA = (
    '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}},'
    '{"name":"p","type":"string","nullable":true,"metadata":{}}]}'
)
PROTOCOL: Json = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
TYPES: Mapping[str, pa.DataType] = {
    "protocol": arrow.PROTOCOL_TYPE,
    "metaData": arrow.METADATA_TYPE,
    "add": arrow.ADD_TYPE,
    "remove": arrow.REMOVE_TYPE,
    "txn": arrow.TXN_TYPE,
    "domainMetadata": arrow.DOMAIN_TYPE,
    "rowIdHighWaterMark": arrow.HIGH_WATER_MARK_TYPE,
    "checkpointMetadata": arrow.CHECKPOINT_METADATA_TYPE,
    "sidecar": arrow.SIDECAR_TYPE,
}
SIDECAR_UUID = "3a0d65cd-4056-49b8-937b-95f9e3ee90e5"


@dataclass
class DictStore:
    """A store whose files are in a dict; times are what the writer of a test sets."""

    files: dict[str, bytes] = field(default_factory=dict)
    times_ms: dict[str, int] = field(default_factory=dict)
    root: str = "memory://table"

    def list_from(self, directory: str, first: str) -> Iterator[FileInfo]:
        """As `Store`."""
        found = []
        for path in self.files:
            parent, _, name = path.rpartition("/")
            if parent == directory and name >= first:
                found.append(self.stat(path))
        return iter(sorted(found, key=lambda info: info.path))

    def list_all(self, directory: str) -> Iterator[FileInfo]:
        """As `Store`."""
        prefix = f"{directory}/" if directory else ""
        return iter([self.stat(path) for path in self.files if path.startswith(prefix)])

    def stat(self, path: str) -> FileInfo:
        """As `Store`."""
        return FileInfo(path, len(self.read(path)), self.times_ms.get(path, 0))

    def read(self, path: str) -> bytes:
        """As `Store`."""
        if path not in self.files:
            raise ObjectNotFoundError(f"there is no {path}")
        return self.files[path]

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """As `Store`."""
        return [self.read(path)[start:end] for start, end in ranges]

    def read_many(self, paths: Sequence[str]) -> list[bytes]:
        """As `Store`."""
        return [self.read(path) for path in paths]

    def open(self, path: str) -> BinaryIO:
        """As `Store`."""
        return BytesIO(self.read(path))

    def put_if_absent(self, path: str, data: bytes) -> None:
        """As `Store`."""
        if path in self.files:
            raise AlreadyExistsError(path)
        self.put(path, data)

    def put(self, path: str, data: bytes) -> None:
        """As `Store`."""
        self.files[path] = data

    def delete_many(self, paths: Sequence[str]) -> None:
        """As `Store`."""
        for path in paths:
            self.files.pop(path, None)


def metadata(**members: Any) -> Json:
    """A `metaData` line."""
    base = {
        "id": "5fba94ed-9794-4965-ba6e-6ee3c0d22af9",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": SCHEMA,
        "partitionColumns": [],
        "configuration": {},
        "createdTime": 1,
    }
    return {"metaData": {**base, **members}}


def add(path: str, **members: Any) -> Json:
    """An `add` line."""
    base = {
        "path": path,
        "partitionValues": {},
        "size": 1,
        "modificationTime": 1,
        "dataChange": True,
    }
    return {"add": {**base, **members}}


def remove(path: str, **members: Any) -> Json:
    """A `remove` line."""
    return {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True, **members}}


def vector(place: str, offset: int | None = 1) -> Json:
    """A deletion vector's descriptor; only its identity matters."""
    at = {} if offset is None else {"offset": offset}
    return {
        "storageType": "u",
        "pathOrInlineDv": place,
        "sizeInBytes": 34,
        "cardinality": 1,
        **at,
    }


def txn(app_id: str, version: int, last_updated_ms: int | None = None) -> Json:
    """A `txn` line."""
    return {"txn": {"appId": app_id, "version": version, "lastUpdated": last_updated_ms}}


def domain(name: str, configuration: Any = "{}", *, removed: bool = False) -> Json:
    """A `domainMetadata` line."""
    return {"domainMetadata": {"domain": name, "configuration": configuration, "removed": removed}}


def ndjson(actions: Iterable[Json]) -> bytes:
    """The actions as lines."""
    return b"".join(dumps(action) + b"\n" for action in actions)


def commit(store: DictStore, version: int, *actions: Json, time_ms: int | None = None) -> None:
    """Write one commit."""
    path = names.commit_path(version)
    store.put(path, ndjson(actions) or b"\n")  # an empty file is a torn one
    store.times_ms[path] = 1000 * version if time_ms is None else time_ms


def table_of(*commits: Sequence[Json]) -> DictStore:
    """A table with these commits; version 0 gets protocol and metadata in front."""
    store = DictStore()
    for version, actions in enumerate(commits):
        first = [PROTOCOL, metadata()] if version == 0 else []
        commit(store, version, *first, *actions)
    return store


def checkpoint_parquet(
    actions: Sequence[Json],
    *,
    types: Mapping[str, pa.DataType] = TYPES,
    row_group_rows: int | None = None,
) -> bytes:
    """The actions as rows of a Parquet file, a struct column per kind in `types`."""
    columns = {
        kind: pa.array([_pairs(action.get(kind), data_type) for action in actions], data_type)
        for kind, data_type in types.items()
    }
    sink = BytesIO()
    pq.write_table(pa.table(columns), sink, row_group_size=row_group_rows)
    return sink.getvalue()


def _pairs(value: Any, data_type: pa.DataType) -> Any:
    """Mappings as the pairs that Arrow makes maps of."""
    if isinstance(value, Mapping):
        if isinstance(data_type, pa.MapType):
            return list(value.items())
        assert isinstance(data_type, pa.StructType)
        kinds = {member.name: member.type for member in data_type}
        return {name: _pairs(item, kinds[name]) for name, item in value.items() if name in kinds}
    return value


def classic_checkpoint(store: DictStore, version: int, actions: Sequence[Json]) -> str:
    """Write a checkpoint of one file; its path."""
    path = names.log_path(names.checkpoint_name(version))
    store.put(path, checkpoint_parquet(actions))
    return path


def multi_part_checkpoint(
    store: DictStore, version: int, parts: Sequence[Sequence[Json]]
) -> list[str]:
    """Write a checkpoint of several files; their paths."""
    paths = []
    for number, actions in enumerate(parts, 1):
        name = names.checkpoint_part_name(version, number, len(parts))
        paths.append(names.log_path(name))
        store.put(paths[-1], checkpoint_parquet(actions))
    return paths


def v2_checkpoint(
    store: DictStore,
    version: int,
    actions: Sequence[Json],
    *,
    suffix: str = "json",
    sidecars: int = 1,
    name: str | None = None,
    absolute: bool = False,
) -> list[str]:
    """Write a V2 checkpoint; paths of the top-level file and of the sidecars."""
    files = [action for action in actions if "add" in action or "remove" in action]
    top = [action for action in actions if action not in files]
    top.insert(0, {"checkpointMetadata": {"version": version, "tags": None}})
    paths = []
    for number in range(sidecars):
        sidecar = f"{version:020d}.{number}.{SIDECAR_UUID}.parquet"
        path = f"{names.SIDECAR_DIRECTORY}/{sidecar}"
        rows = files[number::sidecars]
        kinds = {kind: TYPES[kind] for kind in ("add", "remove")}
        store.put(path, checkpoint_parquet(rows, types=kinds))
        paths.append(path)
        place = f"{store.root}/{path}" if absolute else sidecar
        size = len(store.files[path])
        top.append({"sidecar": {"path": place, "sizeInBytes": size, "modificationTime": 1}})
    if not sidecars:
        top += files
    name = name or names.v2_checkpoint_name(version, SIDECAR_UUID, suffix)
    paths.insert(0, names.log_path(name))
    store.put(paths[0], ndjson(top) if name.endswith("json") else checkpoint_parquet(top))
    return paths
