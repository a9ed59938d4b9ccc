"""Lines of a response as lines of a Delta log, which snapshots and change feeds are made of.

Owns the translation from both response formats. In an action, the path of a file is made of its id:
"The same file is guaranteed to have the same id across multiple requests." The signed URLs are kept
beside the actions, so that they can be renewed while a scan runs.

Protocol: API Response Format in Parquet, API Response Format in Delta
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from deltalog._json import dumps
from deltalog.actions.codec import action_to_json
from deltalog.actions.model import Metadata, Protocol
from deltalog.actions.properties import TableProperties
from deltalog.features import canonical_name, supported_features, with_features
from deltalog.features.protocol_change import least_protocol
from deltalog.paths import encode_path
from deltalog.schema import parse_schema
from deltalog.sharing.wire.lines import (
    ACTION_OF_KIND,
    DeltaFileLine,
    DeltaMetadata,
    ParquetFileLine,
    ParquetMetadata,
    ParquetProtocol,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalog.sharing.wire.lines import DeltaProtocol, Line

_CHANGE_DATA_FEED: Final = "delta.enableChangeDataFeed"
_URL_STORAGE: Final = "p"
# The catalog says which commits of such a table count. The server asked it before it answered.
_WITHOUT_MEANING: Final = frozenset({"catalogManaged"})


class ActionCollector:
    """Collects the file lines of a page as encoded actions of a log.

    Attributes:
        lines: encoded actions, each with its line end, by the version of the line; None for lines
            without a version.
        urls: signed URLs by the path in the action.
        times_ms: commit times by version, where the lines have them.
        expires_ms: when the first of the URLs expires; None is unknown.
        later: protocols and metadata of later versions.
    """

    def __init__(self) -> None:
        self.lines: dict[int | None, list[bytes]] = {}
        self.urls: dict[str, str] = {}
        self.times_ms: dict[int, int] = {}
        self.expires_ms: int | None = None
        self.later: list[Line] = []

    def take(self, line: Line) -> None:
        """Take a file line, or the protocol or metadata of a later version."""
        if not isinstance(line, ParquetFileLine | DeltaFileLine):
            self.later.append(line)
            return
        path = f"files/{_path_part(line.id)}"
        if isinstance(line, ParquetFileLine):
            self.urls[path] = line.url
            action = {ACTION_OF_KIND[line.kind]: _parquet_action(line, path)}
        else:
            self.urls[path] = line.values["path"]
            action = {line.kind: self._delta_action(line, path)}
        self.lines.setdefault(line.version, []).append(dumps(action) + b"\n")
        if line.version is not None and line.timestamp_ms is not None:
            self.times_ms[line.version] = line.timestamp_ms
        self.expires_by(line.expiration_timestamp_ms)

    def expires_by(self, time_ms: int | None) -> None:
        """Note that a URL expires at this time; None is unknown."""
        if time_ms is not None and (self.expires_ms is None or time_ms < self.expires_ms):
            self.expires_ms = time_ms

    def extend(self, page: ActionCollector) -> None:
        """Add what the next page holds."""
        for version, lines in page.lines.items():
            self.lines.setdefault(version, []).extend(lines)
        self.urls.update(page.urls)
        self.times_ms.update(page.times_ms)
        self.later.extend(page.later)
        self.expires_by(page.expires_ms)

    def _delta_action(self, line: DeltaFileLine, path: str) -> dict[str, Any]:
        values = {
            "modificationTime": line.timestamp_ms or 0,
            "dataChange": True,
            **line.values,
            "path": _encoded(path),
        }
        vector: Any = values.get("deletionVector")
        is_remote = isinstance(vector, dict) and vector.get("storageType") == _URL_STORAGE
        # A malformed deletion vector is refused by the reader of the log.
        if is_remote and isinstance(url := vector.get("pathOrInlineDv"), str):
            name = line.deletion_vector_file_id or f"{line.kind}-{line.version}-{line.id}"
            vector_path = f"vectors/{_path_part(name)}"
            self.urls[vector_path] = url
            values["deletionVector"] = {**vector, "pathOrInlineDv": _encoded(vector_path)}
        return values


def _path_part(name: str) -> str:
    """Return an id, in which a server may use any characters, as one part of a path."""
    return name if name.isalnum() and name.isascii() else quote(name, safe="")


def _encoded(path: str) -> str:
    """Return the path as a log encodes it; most ids need no escapes."""
    return encode_path(path) if "%" in path else path


def _parquet_action(line: ParquetFileLine, path: str) -> dict[str, Any]:
    return {
        "path": _encoded(path),
        "partitionValues": dict(line.partition_values),
        "size": line.size_bytes,
        "modificationTime": line.timestamp_ms or 0,
        "dataChange": True,
        "stats": line.stats,
    }


def table_metadata(line: ParquetMetadata | DeltaMetadata, *, has_changes: bool = False) -> Metadata:
    """Return the table's metadata.

    Args:
        line: of a response.
        has_changes: the response is about changes, so the change data feed is on.
    """
    if isinstance(line, DeltaMetadata):
        metadata = line.metadata
    else:
        metadata = Metadata(
            id=line.id,
            schema_string=line.schema_string,
            partition_columns=line.partition_columns,
            # The format `parquet` has this one property, without the prefix.
            configuration={
                f"delta.{name}" if name == "enableChangeDataFeed" else name: value
                for name, value in line.configuration.items()
            },
            name=line.name,
            description=line.description,
        )
    if has_changes:
        on = {**metadata.configuration, _CHANGE_DATA_FEED: "true"}
        return replace(metadata, configuration=on)
    return metadata


def table_protocol(line: ParquetProtocol | DeltaProtocol, metadata: Metadata) -> Protocol:
    """Return the table's Delta protocol; the format `parquet` has none, so the least that fits."""
    if isinstance(line, ParquetProtocol):
        schema = parse_schema(metadata.schema_string)
        current = Protocol(min_reader_version=1, min_writer_version=2)
        return least_protocol(TableProperties(metadata.configuration), schema, current=current)
    protocol = _for_reading(line.protocol)
    if metadata.configuration.get(_CHANGE_DATA_FEED, "").lower() == "true" and (
        "changeDataFeed" not in supported_features(protocol)
    ):
        return with_features(protocol, ["changeDataFeed"])
    return protocol


def _for_reading(protocol: Protocol) -> Protocol:
    """Return the protocol without features that mean nothing here; a missing list becomes empty."""
    reader, writer = protocol.reader_features, protocol.writer_features
    if protocol.min_reader_version >= 3:
        reader = _meaningful(reader)
    if protocol.min_writer_version >= 7:
        writer = _meaningful(writer)
    return replace(protocol, reader_features=reader, writer_features=writer)


def _meaningful(names: tuple[str, ...] | None) -> tuple[str, ...]:
    return tuple(name for name in names or () if canonical_name(name) not in _WITHOUT_MEANING)


def commit_bytes(
    lines: list[bytes],
    *,
    protocol: Protocol | None = None,
    metadata: Metadata | None = None,
    time_ms: int | None = None,
) -> bytes:
    """Return one commit of a log.

    Args:
        lines: encoded actions, each with its line end.
        protocol: of this version, if it changed.
        metadata: of this version, if it changed.
        time_ms: when it was committed.
    """
    first: list[Mapping[str, Any]] = []
    if time_ms is not None:
        # Change feeds take `_commit_timestamp` from here; the client has no commit files.
        first.append({"commitInfo": {"inCommitTimestamp": time_ms, "timestamp": time_ms}})
    first += [action_to_json(action) for action in (protocol, metadata) if action is not None]
    return b"".join([*(dumps(action) + b"\n" for action in first), *lines])
