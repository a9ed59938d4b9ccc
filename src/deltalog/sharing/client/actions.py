"""Lines of an answer as actions of a Delta log: what the other rooms read.

Owns the translation of both response formats. A file's path becomes its id, which is the same in
every answer, and the signed URL is kept apart, so that it can be replaced while a scan goes on.

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
    DeltaFile,
    DeltaMetadata,
    DeltaProtocol,
    ParquetFile,
    ParquetMetadata,
    ParquetProtocol,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalog.sharing.wire.lines import Line

_CHANGE_DATA_FEED: Final = "delta.enableChangeDataFeed"
_ACTIONS: Final = {"file": "add", "add": "add", "cdf": "cdc", "remove": "remove"}
_URL_VECTOR: Final = "p"
# Who may say which commits count has said so: the server did, before it answered.
_SETTLED_FEATURES: Final = frozenset({"catalogManaged"})


class LogLines:
    """Gathers file lines as lines of commits; the collector of one page.

    Attributes:
        lines: encoded actions, each with its line end, by the version of the line; None where it
            tells none.
        urls: by the path that stands in the action.
        times_ms: of versions, where the lines tell them.
        expires_ms: when the first of the URLs ends; None is unknown.
        later: protocols and metadata of later versions.
    """

    def __init__(self) -> None:
        self.lines: dict[int | None, list[bytes]] = {}
        self.urls: dict[str, str] = {}
        self.times_ms: dict[int, int] = {}
        self.expires_ms: int | None = None
        self.later: list[Line] = []

    def take(self, line: ParquetFile | DeltaFile) -> None:
        """One file."""
        path = f"files/{_part(line.id)}"
        if isinstance(line, ParquetFile):
            self.urls[path] = line.url
            action = {_ACTIONS[line.kind]: _from_parquet(line, path)}
        else:
            self.urls[path] = line.values["path"]
            action = {line.kind: self._from_delta(line, path)}
        self.lines.setdefault(line.version, []).append(dumps(action) + b"\n")
        if line.version is not None and line.timestamp_ms is not None:
            self.times_ms[line.version] = line.timestamp_ms
        if line.expiration_timestamp_ms is not None:
            self.expires_before(line.expiration_timestamp_ms)

    def take_metadata(self, line: Line) -> None:
        """A protocol or metadata of a later version."""
        self.later.append(line)

    def expires_before(self, moment_ms: int | None) -> None:
        """The URLs end at this moment at the latest."""
        known = self.expires_ms
        if known is None or (moment_ms is not None and moment_ms < known):
            self.expires_ms = moment_ms

    def extend(self, page: LogLines) -> None:
        """Take what a page brought."""
        for version, lines in page.lines.items():
            self.lines.setdefault(version, []).extend(lines)
        self.urls.update(page.urls)
        self.times_ms.update(page.times_ms)
        self.later.extend(page.later)
        self.expires_before(page.expires_ms)

    def _from_delta(self, line: DeltaFile, path: str) -> dict[str, Any]:
        values = {
            "modificationTime": line.timestamp_ms or 0,
            "dataChange": True,
            **line.values,
            "path": _encoded(path),
        }
        vector: Any = values.get("deletionVector")
        is_remote = isinstance(vector, dict) and vector.get("storageType") == _URL_VECTOR
        # A vector that is none is refused by who reads it, as in any log.
        if is_remote and isinstance(url := vector.get("pathOrInlineDv"), str):
            name = line.deletion_vector_file_id or f"{line.kind}-{line.version}-{line.id}"
            place = f"vectors/{_part(name)}"
            self.urls[place] = url
            values["deletionVector"] = {**vector, "pathOrInlineDv": _encoded(place)}
        return values


def _part(name: str) -> str:
    """An id as one part of a path, whatever a server takes for its ids."""
    return name if name.isalnum() and name.isascii() else quote(name, safe="")


def _encoded(path: str) -> str:
    """The path as it stands in a log; most ids need no escapes."""
    return encode_path(path) if "%" in path else path


def _from_parquet(line: ParquetFile, path: str) -> dict[str, Any]:
    return {
        "path": _encoded(path),
        "partitionValues": dict(line.partition_values),
        "size": line.size_bytes,
        "modificationTime": line.timestamp_ms or 0,
        "dataChange": True,
        "stats": line.stats,
    }


def table_metadata(line: ParquetMetadata | DeltaMetadata, *, has_changes: bool = False) -> Metadata:
    """The table's metadata.

    Args:
        line: of an answer.
        has_changes: the answer is about changes, so they are on, whatever else is told.
    """
    if isinstance(line, DeltaMetadata):
        metadata = line.metadata
    else:
        metadata = Metadata(
            id=line.id,
            schema_string=line.schema_string,
            partition_columns=line.partition_columns,
            # The format `parquet` knows this one property, without its prefix.
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
    """The table's protocol; where the answer does not tell it, the weakest that fits."""
    if isinstance(line, ParquetProtocol):
        schema = parse_schema(metadata.schema_string)
        current = Protocol(min_reader_version=1, min_writer_version=2)
        return least_protocol(TableProperties(metadata.configuration), schema, current=current)
    protocol = _settled(line.protocol)
    if metadata.configuration.get(_CHANGE_DATA_FEED, "").lower() == "true" and (
        "changeDataFeed" not in supported_features(protocol)
    ):
        return with_features(protocol, ["changeDataFeed"])
    return protocol


def _settled(protocol: Protocol) -> Protocol:
    """Without what no longer matters; a missing list of features is an empty one."""
    reader, writer = protocol.reader_features, protocol.writer_features
    if protocol.min_reader_version >= 3:
        reader = _without_settled(reader)
    if protocol.min_writer_version >= 7:
        writer = _without_settled(writer)
    return replace(protocol, reader_features=reader, writer_features=writer)


def _without_settled(names: tuple[str, ...] | None) -> tuple[str, ...]:
    return tuple(name for name in names or () if canonical_name(name) not in _SETTLED_FEATURES)


def commit_bytes(
    lines: list[bytes],
    *,
    protocol: Protocol | None = None,
    metadata: Metadata | None = None,
    time_ms: int | None = None,
) -> bytes:
    """One commit of a log.

    Args:
        lines: encoded actions, each with its line end.
        protocol: of this version, if it changed.
        metadata: of this version, if it changed.
        time_ms: when it was committed.
    """
    first: list[Mapping[str, Any]] = []
    if time_ms is not None:
        first.append({"commitInfo": {"inCommitTimestamp": time_ms, "timestamp": time_ms}})
    first += [action_to_json(action) for action in (protocol, metadata) if action is not None]
    return b"".join([*(dumps(action) + b"\n" for action in first), *lines])
