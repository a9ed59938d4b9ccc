"""The lines for files in an answer, made from the file columns of the log.

This module selects the members of an action that each format has, and computes the ids of files. It
ensures that files outside of the table are never given a URL. It works on batches of columns,
because a table may have a million files.

Protocol: File, Data Change Files, File in Delta Format
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.kernels import pc
from deltalog._util.paths import canonical_path, check_confined, decode_path, is_absolute
from deltalog.data.scan.plan import descriptor_of
from deltalog.errors import UnsafePathError
from deltalog.protocol.deletion_vectors import location
from deltalog.sharing.server.faults import invalid
from deltalog.sharing.server.formats import ResponseFormat, without_locations
from deltalog.sharing.wire.lines import (
    encode_file_line,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from deltalog.sharing.server.answers import TableRequest

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

# Paths that match this pattern need a check in Python: absolute paths, files of the log, and paths
# with escapes, schemes or `..`.
_SUSPECT: Final = r"[%:\\\x00]|\.\.|^/|^$|(?:^|/)_delta_log/"

_IS_SUSPECT: Final = re.compile(_SUSPECT).search

# The hash functions for file ids, by their names in the request header `fileidhash`. The results of
# a function must never change, because clients cache files by their ids.
_HASHES: Final[Mapping[str, Callable[[bytes], str]]] = {
    "md5": lambda data: hashlib.md5(data, usedforsecurity=False).hexdigest(),
    "sha256": lambda data: hashlib.sha256(data).hexdigest(),
}


def check_paths(paths: pa.ChunkedArray[Any], root: str) -> None:
    """Raise for files that are not inside of the table (requirement SHARE-SEC-02).

    Args:
        paths: percent-encoded paths, as in the log.
        root: location of the table.

    Raises:
        UnsafePathError: a path is outside of the table, or in its log.

    Cost: one pass in Arrow; Python checks only paths with unusual characters.
    """
    suspects = paths.filter(pc.match_substring_regex(paths, _SUSPECT))
    for path in suspects.to_pylist():
        path_in_table(str(path), root)


def path_in_table(encoded: str, root: str) -> str:
    """Return the decoded path of a file inside of the table, relative to the table's root.

    Raises:
        UnsafePathError: the path is outside of the table, or in its log.
    """
    if not _IS_SUSPECT(encoded):
        return encoded
    path = decode_path(encoded)
    check_confined(path)
    path = _relative(path, root)
    if path.lstrip("./").startswith("_delta_log/") or "/_delta_log/" in path:
        raise UnsafePathError(f"path {path!r} is refused: it is in the log")
    return path


def _relative(path: str, root: str) -> str:
    if is_absolute(path):
        path = canonical_path(path, root)
        if is_absolute(path):
            raise UnsafePathError(f"path {path!r} is refused: it is outside of the table")
    return path


class FileLines:
    """Encodes the lines of a table's files.

    Args:
        request: a recipient's request.
        response_format: response format of the answer.

    Raises:
        Fault: 400 if the request names an unknown hash.
    """

    def __init__(self, request: TableRequest, response_format: ResponseFormat) -> None:
        self._is_delta = response_format.is_delta
        self._root = request.table.store.root
        self._sign = request.signer()
        self._expires_ms = request.url_expiry_ms
        asked = (request.file_id_hash or "").strip().lower()
        self.hash_name: str = asked or ("sha256" if self._is_delta else "md5")
        if self.hash_name not in _HASHES:
            raise invalid(f"fileidhash: expected one of {', '.join(_HASHES)}")
        self._hash = _HASHES[self.hash_name]

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns of the log from which the lines of added files are made."""
        return DELTA_COLUMNS if self._is_delta else PARQUET_COLUMNS

    def chunks(
        self,
        files: pa.Table,
        kind: str,
        *,
        version: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Iterator[bytes]:
        """Yield the lines of some files in chunks of many lines.

        Args:
            files: columns of the log.
            kind: `file`, `add`, `cdf` or `remove`.
            version: the version to write into each line.
            timestamp_ms: the commit time of that version.
        """
        change = {} if version is None else {"version": version}
        if timestamp_ms is not None:
            change["timestamp"] = timestamp_ms
        for batch in files.to_batches(max_chunksize=LINES_PER_CHUNK):
            yield b"".join(self._line(row, kind, change) for row in _rows(batch))

    def _line(self, row: dict[str, Any], kind: str, change: Mapping[str, int]) -> bytes:
        path = row["path"]
        vector_id = None
        if self._is_delta:
            values = {key: value for key, value in row.items() if value is not None}
            if "tags" in values:
                values["tags"] = without_locations(dict(values["tags"]))
            if "deletionVector" in values:
                vector_id, values["deletionVector"] = self._vector(values["deletionVector"])
        else:
            values = {"partitionValues": row["partitionValues"], "size": row["size"] or 0}
            if (stats := row.get("stats")) is not None:
                values["stats"] = stats
        return encode_file_line(
            kind,
            is_delta=self._is_delta,
            file_id=self._hash(path.encode()),
            url=self._sign(path_in_table(path, self._root)),
            values=values,
            change=change,
            expires_ms=self._expires_ms,
            vector_id=vector_id,
        )

    def _vector(self, row: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
        """Return the id of a deletion vector's file, and the descriptor with the file's URL."""
        descriptor = descriptor_of(row)
        values = {key: value for key, value in row.items() if value is not None}
        path = None if descriptor is None else location(descriptor)
        if path is None or descriptor is None:
            return None, values
        # With the storage type `p`, a descriptor contains a URL instead of a path relative to the
        # table.
        values["storageType"] = "p"
        values["pathOrInlineDv"] = self._sign(_relative(path, self._root))
        return self._hash(descriptor.unique_id.encode()), values


def _rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Yield the rows, with maps as dictionaries; NULL partition values become `{}`."""
    names = batch.schema.names
    columns = [batch.column(index).to_pylist() for index in range(len(names))]
    if "partitionValues" in names:
        place = names.index("partitionValues")
        columns[place] = [dict(value) if value else {} for value in columns[place]]
    for values in zip(*columns, strict=True):
        yield dict(zip(names, values, strict=True))
