"""Lines about files, from columns of the log.

Owns what of an action is told in which format, the ids of files, and that no file outside of the
table gets a URL. Works on batches of columns: a table may have a million files.

Protocol: File, Data Change Files, File in Delta Format
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from deltalog._json import dumps
from deltalog.deletion_vectors import location
from deltalog.errors import UnsafePathError
from deltalog.paths import canonical_path, check_confined, decode_path, is_absolute
from deltalog.scan.plan import descriptor_of
from deltalog.sharing.server.faults import invalid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from deltalog.sharing.server.formats import Format

LINES_PER_CHUNK: Final = 512

PARQUET_COLUMNS: Final = ("path", "partitionValues", "size", "stats")
DELTA_COLUMNS: Final = (
    "path",
    "partitionValues",
    "size",
    "modificationTime",
    "dataChange",
    "stats",
    "tags",
    "deletionVector",
    "baseRowId",
    "defaultRowCommitVersion",
    "clusteringProvider",
)
# What needs a closer look: escapes, schemes, climbing, absolute paths, and the log's own files.
_SUSPECT: Final = r"[%:\\\x00]|\.\.|^/|^$|(?:^|/)_delta_log/"

_HASHES: Final[Mapping[str, Callable[[bytes], str]]] = {
    "md5": lambda data: hashlib.md5(data, usedforsecurity=False).hexdigest(),
    "sha256": lambda data: hashlib.sha256(data).hexdigest(),
}


def check_paths(paths: pa.ChunkedArray[Any], root: str) -> None:
    """Refuse files that are not inside of the table (ledger SHARE-SEC-02).

    Args:
        paths: encoded, as they stand in the log.
        root: of the table.

    Raises:
        UnsafePathError: one leads out, or into the log.

    Cost: one pass; Python touches only paths that hold something odd.
    """
    suspects = paths.filter(pc.match_substring_regex(paths, _SUSPECT))
    for path in suspects.to_pylist():
        inner_path(str(path), root)


def inner_path(encoded: str, root: str) -> str:
    """The decoded path of a file inside of the table, relative to its root.

    Raises:
        UnsafePathError: it leads out, or into the log.
    """
    path = decode_path(encoded)
    check_confined(path)
    if is_absolute(path):
        path = canonical_path(path, root)
        if is_absolute(path):
            raise UnsafePathError(f"path {path!r} is refused: it is outside of the table")
    if path.lstrip("./").startswith("_delta_log/") or "/_delta_log/" in path:
        raise UnsafePathError(f"path {path!r} is refused: it is in the log")
    return path


def file_id_hash(asked: str | None, form: Format) -> str:
    """Which hash makes the ids of files (ledger SHARE-QT-17).

    Raises:
        Fault: 400: no hash that is known.
    """
    name = (asked or "").strip().lower() or ("sha256" if form.is_delta else "md5")
    if name not in _HASHES:
        raise invalid(f"fileidhash: expected one of {', '.join(_HASHES)}")
    return name


@dataclass(frozen=True)
class FileLines:
    """Writes the lines of files.

    Args:
        form: of the answer.
        root: of the table.
        sign: makes a URL of a decoded path.
        hash_name: of the files' ids.
        expires_ms: when the URLs end.
    """

    form: Format
    root: str
    sign: Callable[[str], str]
    hash_name: str
    expires_ms: int

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the log that lines of added files are made of."""
        return DELTA_COLUMNS if self.form.is_delta else PARQUET_COLUMNS

    def chunks(
        self,
        files: pa.Table,
        kind: str,
        *,
        version: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Iterator[bytes]:
        """The lines of some files, many at a time.

        Args:
            files: columns of the log.
            kind: `file`, `add`, `cdf` or `remove`.
            version: to be told in each line.
            timestamp_ms: of that version.
        """
        moment = {} if version is None else {"version": version}
        if timestamp_ms is not None:
            moment["timestamp"] = timestamp_ms
        write = self._delta_line if self.form.is_delta else self._parquet_line
        for batch in files.to_batches(max_chunksize=LINES_PER_CHUNK):
            yield b"".join(write(row, kind, moment) for row in _rows(batch))

    def _parquet_line(self, row: dict[str, Any], kind: str, moment: Mapping[str, int]) -> bytes:
        encoded = row["path"]
        values: dict[str, Any] = {
            "url": self.sign(inner_path(encoded, self.root)),
            "id": _HASHES[self.hash_name](encoded.encode()),
            "partitionValues": row["partitionValues"],
            "size": row["size"] or 0,
        }
        if (stats := row.get("stats")) is not None:
            values["stats"] = stats
        values |= moment
        values["expirationTimestamp"] = self.expires_ms
        return dumps({kind: values}) + b"\n"

    def _delta_line(self, row: dict[str, Any], kind: str, moment: Mapping[str, int]) -> bytes:
        encoded = row["path"]
        action = {key: value for key, value in row.items() if value is not None}
        action["path"] = self.sign(inner_path(encoded, self.root))
        action["partitionValues"] = row["partitionValues"]
        if (tags := row.get("tags")) is not None:
            action["tags"] = _without_places(tags)
        values: dict[str, Any] = {"id": _HASHES[self.hash_name](encoded.encode())}
        vector = row.get("deletionVector")
        if vector is not None:
            file_id, action["deletionVector"] = self._vector(vector)
            if file_id is not None:
                values["deletionVectorFileId"] = file_id
        values |= moment
        values["expirationTimestamp"] = self.expires_ms
        values["deltaSingleAction"] = {_ACTIONS[kind]: action}
        return dumps({"file": values}) + b"\n"

    def _vector(self, row: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
        """The vector's id and its descriptor, with a URL for the place of its file."""
        descriptor = descriptor_of(row)
        values = {key: value for key, value in row.items() if value is not None}
        path = None if descriptor is None else location(descriptor)
        if path is None or descriptor is None:
            return None, values
        if is_absolute(path):
            path = canonical_path(path, self.root)
            if is_absolute(path):
                raise UnsafePathError(f"path {path!r} is refused: it is outside of the table")
        values["storageType"] = "p"
        values["pathOrInlineDv"] = self.sign(path)
        return _HASHES[self.hash_name](descriptor.unique_id.encode()), values


_ACTIONS: Final = {"file": "add", "add": "add", "cdf": "cdc", "remove": "remove"}


def _without_places(tags: Iterable[tuple[str, str | None]]) -> dict[str, str | None]:
    """Tags that do not tell where something is stored (D-77)."""
    return {
        key: value
        for key, value in dict(tags).items()
        if value is None or ("://" not in value and not value.startswith("/"))
    }


def _rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows, maps as dicts; a map that is not there is empty."""
    names = batch.schema.names
    columns = [batch.column(index).to_pylist() for index in range(len(names))]
    if "partitionValues" in names:
        place = names.index("partitionValues")
        columns[place] = [dict(value) if value else {} for value in columns[place]]
    for values in zip(*columns, strict=True):
        yield dict(zip(names, values, strict=True))
