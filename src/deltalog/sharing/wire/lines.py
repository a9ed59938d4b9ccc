"""The lines of an answer about a table: newline-delimited JSON, one wrapped object a line.

Owns both response formats. In the format `parquet` a line has sharing's own fields; in the format
`delta` it wraps an action of the Delta log, whose `path` is a signed URL.

Protocol: API Response Format in Parquet, API Response Format in Delta
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from deltalog._json import JsonObject, dumps, loads
from deltalog.actions.codec import (
    action_to_json,
    metadata_from_json,
    protocol_from_json,
)
from deltalog.errors import MalformedLogError, MalformedMessageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deltalog.actions.model import Metadata, Protocol

READER_VERSION: Final = 1

FILE_KINDS: Final = ("file", "add", "cdf", "remove")
DELTA_FILE_KINDS: Final = ("add", "cdc", "remove")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetProtocol:
    """Version of the response format, not of the Delta protocol.

    Protocol: Protocol
    """

    min_reader_version: int = READER_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetMetadata:
    """What a table is, in the format `parquet`.

    Args:
        version: told where the request names a version, or asks for historical metadata.
        size_bytes: of all files, if the log tells.
        num_files: if the log tells.

    Protocol: Metadata
    """

    id: str
    schema_string: str = field(repr=False)
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    provider: str = "parquet"
    name: str | None = None
    description: str | None = None
    version: int | None = None
    size_bytes: int | None = None
    num_files: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetFile:
    """A file of a table or of its changes, in the format `parquet`.

    Args:
        kind: `file` (of a version), `add`, `cdf` or `remove` (of changes).
        id: the same in every answer about this file.
        partition_values: None is null; on the wire it is an empty text or null.
        stats: JSON text.

    Protocol: File, Data Change Files
    """

    kind: str
    url: str = field(repr=False)
    id: str
    size_bytes: int
    partition_values: Mapping[str, str | None] = field(default_factory=dict)
    stats: str | None = None
    version: int | None = None
    timestamp_ms: int | None = None
    expiration_timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaProtocol:
    """The table's own protocol, in the format `delta`.

    Args:
        version: told where historical protocols were asked for.

    Protocol: Protocol in Delta Format
    """

    protocol: Protocol
    version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaMetadata:
    """The table's own metadata, in the format `delta`.

    Protocol: Metadata in Delta Format
    """

    metadata: Metadata
    version: int | None = None
    size_bytes: int | None = None
    num_files: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaFile:
    """An action of the log with signed URLs for paths, in the format `delta`.

    Args:
        action: the wrapped single action, `{"add": {…}}`, `{"cdc": {…}}` or `{"remove": {…}}`.
            Its `path` is a URL, to be taken as it stands; so is the place of a deletion vector
            whose `storageType` is `p`.

    Protocol: File in Delta Format
    """

    id: str
    action: Mapping[str, Any] = field(repr=False)
    deletion_vector_file_id: str | None = None
    version: int | None = None
    timestamp_ms: int | None = None
    expiration_timestamp_ms: int | None = None

    @property
    def kind(self) -> str:
        """`add`, `cdc` or `remove`."""
        return next(iter(self.action))

    @property
    def values(self) -> Mapping[str, Any]:
        """The members of the wrapped action."""
        found: Mapping[str, Any] = self.action[self.kind]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class EndStreamAction:
    """The last line of an answer, for clients that asked for one.

    Args:
        next_page_token: how the following files are asked for; None is the end.
        refresh_token: how new URLs for the same files are asked for.
        error_message: the answer is incomplete, and why.

    Protocol: EndStreamAction
    """

    next_page_token: str | None = None
    refresh_token: str | None = None
    min_url_expiration_timestamp_ms: int | None = None
    error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryStatus:
    """Instead of an answer: the query goes on under this id.

    Args:
        status: `pending` or `failed`.

    Protocol: Asynchronous queries
    """

    query_id: str
    status: str = "pending"
    error: str | None = None


Line = (
    ParquetProtocol
    | ParquetMetadata
    | ParquetFile
    | DeltaProtocol
    | DeltaMetadata
    | DeltaFile
    | EndStreamAction
    | QueryStatus
)


def parse_line(data: bytes | str, where: str = "line") -> Line | None:
    """What one line says; None for a kind of line that nobody knows here.

    Raises:
        MalformedMessageError: it is cut, no JSON, or no object with one member.
    """
    try:
        values = loads(data, where)
    except MalformedLogError as error:
        raise MalformedMessageError(str(error)) from None
    if not isinstance(values, dict):
        raise MalformedMessageError(f"{where}: expected an object")
    present = {key: value for key, value in values.items() if value is not None}
    if len(present) != 1:
        raise MalformedMessageError(
            f"{where}: expected an object with one member, found {len(present)}"
        )
    kind, value = next(iter(present.items()))
    node = JsonObject(value, f"{where}: {kind}", MalformedMessageError)
    if kind in FILE_KINDS:
        return _file_from_json(kind, node)
    parse = _PARSERS.get(kind)
    return None if parse is None else parse(node)


def encode_line(line: Line) -> bytes:
    """One line, ended. Members that are None are left out (ledger SHARE-META-05)."""
    return dumps(line_to_json(line)) + b"\n"


def line_to_json(line: Line) -> dict[str, Any]:
    """The wrapped object of one line."""
    kind, values = _ENCODERS[type(line)](line)
    return {kind: {key: value for key, value in values.items() if value is not None}}


def whole_number(node: JsonObject, name: str) -> int | None:
    """A 64-bit number, also as a text (ledger SHARE-QT-20); None if it is not there."""
    value = node.values.get(name)
    if isinstance(value, str):
        if not value.lstrip("-").isdecimal() or not value.isascii() or len(value) > 20:
            raise node.error(f"{node.where}.{name}: expected a whole number, found {value[:40]!r}")
        value = int(value)
    else:
        value = node.optional(name, int)
    if value is not None and not -(2**63) <= value < 2**63:
        raise node.error(f"{node.where}.{name}: the number is beyond 64 bits")
    return value


def _required_number(node: JsonObject, name: str) -> int:
    found = whole_number(node, name)
    if found is None:
        raise node.error(f"{node.where}.{name}: required number is missing")
    return found


def _protocol_from_json(node: JsonObject) -> ParquetProtocol | DeltaProtocol:
    wrapped = node.child("deltaProtocol", protocol_from_json)
    if wrapped is not None:
        return DeltaProtocol(protocol=wrapped, version=whole_number(node, "version"))
    return ParquetProtocol(min_reader_version=_required_number(node, "minReaderVersion"))


def _metadata_from_json(node: JsonObject) -> ParquetMetadata | DeltaMetadata:
    wrapped = node.child("deltaMetadata", metadata_from_json)
    version, size_bytes = whole_number(node, "version"), whole_number(node, "size")
    num_files = whole_number(node, "numFiles")
    if wrapped is not None:
        return DeltaMetadata(
            metadata=wrapped, version=version, size_bytes=size_bytes, num_files=num_files
        )
    return ParquetMetadata(
        id=node.required("id", str),
        schema_string=node.required("schemaString", str),
        partition_columns=node.texts("partitionColumns") or (),
        configuration=node.mapping_of_strings("configuration") or {},
        provider=node.child("format", _provider) or "parquet",
        name=node.optional("name", str),
        description=node.optional("description", str),
        version=version,
        size_bytes=size_bytes,
        num_files=num_files,
    )


def _provider(node: JsonObject) -> str:
    return node.optional("provider", str) or ""


def _file_from_json(kind: str, node: JsonObject) -> ParquetFile | DeltaFile:
    single = node.values.get("deltaSingleAction")
    version, timestamp_ms = whole_number(node, "version"), whole_number(node, "timestamp")
    expiration_ms = whole_number(node, "expirationTimestamp")
    if single is not None:
        return DeltaFile(
            id=node.required("id", str),
            action=_single_action(single, node),
            deletion_vector_file_id=node.optional("deletionVectorFileId", str),
            version=version,
            timestamp_ms=timestamp_ms,
            expiration_timestamp_ms=expiration_ms,
        )
    return ParquetFile(
        kind=kind,
        url=node.required("url", str),
        id=node.required("id", str),
        size_bytes=_required_number(node, "size"),
        partition_values=node.mapping("partitionValues") or {},
        stats=node.optional("stats", str),
        version=version,
        timestamp_ms=timestamp_ms,
        expiration_timestamp_ms=expiration_ms,
    )


def _single_action(value: object, node: JsonObject) -> Mapping[str, Any]:
    where = f"{node.where}.deltaSingleAction"
    values = JsonObject(value, where, MalformedMessageError).values
    present = {key: one for key, one in values.items() if one is not None}
    if len(present) != 1 or next(iter(present)) not in DELTA_FILE_KINDS:
        raise MalformedMessageError(f"{where}: expected one of {', '.join(DELTA_FILE_KINDS)}")
    JsonObject(next(iter(present.values())), where, MalformedMessageError).required("path", str)
    return present


def _end_from_json(node: JsonObject) -> EndStreamAction:
    return EndStreamAction(
        next_page_token=node.optional("nextPageToken", str) or None,
        refresh_token=node.optional("refreshToken", str) or None,
        min_url_expiration_timestamp_ms=whole_number(node, "minUrlExpirationTimestamp"),
        error_message=node.optional("errorMessage", str) or None,
    )


def _status_from_json(node: JsonObject) -> QueryStatus:
    status = node.values.get("status")
    return QueryStatus(
        query_id=node.required("queryId", str),
        status=status if isinstance(status, str) else "pending",
        error=node.optional("error", str),
    )


_PARSERS: Final[Mapping[str, Callable[[JsonObject], Line]]] = {
    "protocol": _protocol_from_json,
    "metaData": _metadata_from_json,
    "endStreamAction": _end_from_json,
    "queryStatus": _status_from_json,
}


def _encode_parquet_metadata(line: ParquetMetadata) -> tuple[str, dict[str, Any]]:
    return "metaData", {
        "id": line.id,
        "name": line.name,
        "description": line.description,
        "format": {"provider": line.provider},
        "schemaString": line.schema_string,
        "partitionColumns": list(line.partition_columns),
        "configuration": dict(line.configuration) or None,
        "version": line.version,
        "size": line.size_bytes,
        "numFiles": line.num_files,
    }


def _encode_parquet_file(line: ParquetFile) -> tuple[str, dict[str, Any]]:
    return line.kind, {
        "url": line.url,
        "id": line.id,
        "partitionValues": dict(line.partition_values),
        "size": line.size_bytes,
        "stats": line.stats,
        "version": line.version,
        "timestamp": line.timestamp_ms,
        "expirationTimestamp": line.expiration_timestamp_ms,
    }


def _encode_delta_protocol(line: DeltaProtocol) -> tuple[str, dict[str, Any]]:
    wrapped = action_to_json(line.protocol)["protocol"]
    return "protocol", {"deltaProtocol": wrapped, "version": line.version}


def _encode_delta_metadata(line: DeltaMetadata) -> tuple[str, dict[str, Any]]:
    return "metaData", {
        "deltaMetadata": action_to_json(line.metadata)["metaData"],
        "version": line.version,
        "size": line.size_bytes,
        "numFiles": line.num_files,
    }


def _encode_delta_file(line: DeltaFile) -> tuple[str, dict[str, Any]]:
    return "file", {
        "id": line.id,
        "deletionVectorFileId": line.deletion_vector_file_id,
        "version": line.version,
        "timestamp": line.timestamp_ms,
        "expirationTimestamp": line.expiration_timestamp_ms,
        "deltaSingleAction": dict(line.action),
    }


def _encode_end(line: EndStreamAction) -> tuple[str, dict[str, Any]]:
    return "endStreamAction", {
        "nextPageToken": line.next_page_token,
        "refreshToken": line.refresh_token,
        "minUrlExpirationTimestamp": line.min_url_expiration_timestamp_ms,
        "errorMessage": line.error_message,
    }


_ENCODERS: Final[Mapping[type, Callable[[Any], tuple[str, dict[str, Any]]]]] = {
    ParquetProtocol: lambda line: ("protocol", {"minReaderVersion": line.min_reader_version}),
    ParquetMetadata: _encode_parquet_metadata,
    ParquetFile: _encode_parquet_file,
    DeltaProtocol: _encode_delta_protocol,
    DeltaMetadata: _encode_delta_metadata,
    DeltaFile: _encode_delta_file,
    EndStreamAction: _encode_end,
    QueryStatus: lambda line: (
        "queryStatus",
        {"queryId": line.query_id, "status": line.status, "error": line.error},
    ),
}
