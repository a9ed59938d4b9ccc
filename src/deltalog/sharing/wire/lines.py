"""The lines of a response about a table: newline-delimited JSON, one wrapped object per line.

This module contains both response formats. In the format `parquet`, a line has fields that the
sharing protocol defines. In the format `delta`, a line wraps an action of the Delta log whose
`path` is a signed URL.

Protocol: API Response Format in Parquet, API Response Format in Delta
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from deltalog._util.json import JsonObject, dumps
from deltalog.errors import MalformedMessageError
from deltalog.protocol.actions.codec import action_to_json, metadata_from_json, protocol_from_json
from deltalog.sharing.wire.codec import (
    Member,
    MessageCodec,
    nonempty_text,
    number,
    optional_text,
    parse_object,
    required_number,
    required_text,
    string_map,
    texts,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deltalog.protocol.actions.model import Metadata, Protocol

READER_VERSION: Final = 1

ACTION_OF_KIND: Final = {"file": "add", "add": "add", "cdf": "cdc", "remove": "remove"}
"""The action of the Delta log for each kind of file line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetProtocol:
    """The version of the sharing protocol that a reader must support (not the Delta protocol).

    Protocol: Protocol
    """

    min_reader_version: int = READER_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetMetadata:
    """The table's schema, partitioning and names, in the format `parquet`.

    Args:
        configuration: `enableChangeDataFeed` is the only property that this format has.
        version: only present if the request names a version or requests historical metadata.
        size_bytes: size of all files, if the log has it.
        num_files: number of files, if the log has it.

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
class ParquetFileLine:
    """A file of a table or of its changes, in the format `parquet`.

    Args:
        kind: `file` (of a version), `add`, `cdf` or `remove` (of changes).
        id: "The same file is guaranteed to have the same id across multiple requests."
        partition_values: values by column; None means null, which is `""` or null in JSON.
        stats: statistics as a JSON string.

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
    """The table's Delta protocol, in the format `delta`.

    Args:
        version: only present if the request asks for historical protocols.

    Protocol: Protocol in Delta Format
    """

    protocol: Protocol
    version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaMetadata:
    """The table's metadata as stored in the log, in the format `delta`.

    Protocol: Metadata in Delta Format
    """

    metadata: Metadata
    version: int | None = None
    size_bytes: int | None = None
    num_files: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaFileLine:
    """An action of the log with signed URLs in place of paths, in the format `delta`.

    Args:
        action: the wrapped single action, `{"add": {…}}`, `{"cdc": {…}}` or `{"remove": {…}}`. Its
            `path` is a signed URL, which must not be percent-decoded. The `pathOrInlineDv` of a
            deletion vector with `storageType` `p` is a signed URL, too.

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
        """Return the kind of the action: `add`, `cdc` or `remove`."""
        return next(iter(self.action))

    @property
    def values(self) -> Mapping[str, Any]:
        """Return the members of the wrapped action."""
        found: Mapping[str, Any] = self.action[self.kind]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class EndStreamAction:
    """The last line of a response, for clients that requested it.

    Args:
        next_page_token: token to request the next page of files; None on the last page.
        refresh_token: token to request new URLs for the same files.
        error_message: the reason why the response is incomplete.

    Protocol: EndStreamAction
    """

    next_page_token: str | None = None
    refresh_token: str | None = None
    min_url_expiration_timestamp_ms: int | None = None
    error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryStatus:
    """The state of an asynchronous query, which is sent instead of the query's lines.

    Args:
        query_id: the id with which the client polls.
        status: `pending` or `failed`.

    Protocol: Asynchronous queries
    """

    query_id: str
    status: str = "pending"
    error: str | None = None


Line = (
    ParquetProtocol
    | ParquetMetadata
    | ParquetFileLine
    | DeltaProtocol
    | DeltaMetadata
    | DeltaFileLine
    | EndStreamAction
    | QueryStatus
)


def parse_line(data: bytes | str, where: str = "line") -> Line | None:
    """Return the message of one line, or None for an unknown kind of line.

    Raises:
        MalformedMessageError: the line is truncated, not JSON, or not an object with one member.
    """
    kind, value = _single_member(parse_object(data, where))
    node = JsonObject(value, f"{where}: {kind}", MalformedMessageError)
    if kind in ACTION_OF_KIND:
        # Both formats use the member `file`, but only the format delta has `deltaSingleAction` in
        # it.
        if node.values.get("deltaSingleAction") is not None:
            return _DELTA_FILE.parse(node)
        return _PARQUET_FILE.parse(node, kind=kind)
    codec = _codec_of(kind, node)
    return None if codec is None else codec.parse(node)


def encode_line(line: Line) -> bytes:
    """Return one line with its line end."""
    return dumps(line_to_json(line)) + b"\n"


def encode_file_line(
    kind: str,
    *,
    is_delta: bool,
    file_id: str,
    url: str,
    values: Mapping[str, Any],
    change: Mapping[str, int],
    expires_ms: int,
    vector_id: str | None = None,
) -> bytes:
    """Return the line of a file; faster than `encode_line`, because tables may have many files.

    Args:
        kind: `file`, `add`, `cdf` or `remove`.
        is_delta: whether the answer is in the format `delta`.
        file_id: id of the file.
        url: URL of the file.
        values: the other members of the file, or of the action of the format `delta`.
        change: `version` and `timestamp` of a change; empty for a file of a version.
        expires_ms: when the URL expires.
        vector_id: id of the deletion vector's file.

    The line has the members that `parse_line` reads. `values` are written unchanged.
    """
    if not is_delta:
        line = {"url": url, "id": file_id, **values, **change, "expirationTimestamp": expires_ms}
        return dumps({kind: line}) + b"\n"
    vector = {} if vector_id is None else {"deletionVectorFileId": vector_id}
    action = {ACTION_OF_KIND[kind]: {**values, "path": url}}
    expiry = {"expirationTimestamp": expires_ms}
    line = {"id": file_id, **vector, **change, **expiry, "deltaSingleAction": action}
    return dumps({"file": line}) + b"\n"


def line_to_json(line: Line) -> dict[str, Any]:
    """Return the wrapped object of one line."""
    if isinstance(line, ParquetFileLine):
        return {line.kind: _PARQUET_FILE.encode(line)}
    kind, codec = _CODECS[type(line)]
    return {kind: codec.encode(line)}


def _single_member(node: JsonObject) -> tuple[str, Any]:
    # The protocol: "It must contain only ONE of the above fields." A member that is null does not
    # count.
    present = [(key, value) for key, value in node.values.items() if value is not None]
    if len(present) != 1:
        raise node.error(f"{node.where}: expected an object with one member, found {len(present)}")
    return present[0]


def _codec_of(kind: str, node: JsonObject) -> MessageCodec[Any] | None:
    match kind:
        case "protocol":
            wrapped = node.values.get("deltaProtocol")
            return _PARQUET_PROTOCOL if wrapped is None else _DELTA_PROTOCOL
        case "metaData":
            wrapped = node.values.get("deltaMetadata")
            return _PARQUET_METADATA if wrapped is None else _DELTA_METADATA
        case "endStreamAction":
            return _END_STREAM_ACTION
        case "queryStatus":
            return _QUERY_STATUS
    return None


def _wrapped(name: str, parse: Callable[[JsonObject], Any], kind: str) -> Member:
    """Return a member that contains an action of the Delta log."""
    return Member(
        name, lambda node, name: node.child(name, parse), lambda one: action_to_json(one)[kind]
    )


def _single_action(node: JsonObject, name: str) -> Mapping[str, Any]:
    child = JsonObject(node.values[name], f"{node.where}.{name}", node.error)
    kind, action = _single_member(child)
    if kind not in ACTION_OF_KIND.values():
        raise node.error(f"{child.where}: expected add, cdc or remove, found {kind[:40]!r}")
    JsonObject(action, child.where, node.error).required("path", str)
    return {kind: action}


def _status(node: JsonObject, name: str) -> str:
    status = node.values[name]
    return status if isinstance(status, str) else "pending"


_VERSION: Final = {"version": number("version")}
_COUNTS: Final = {"size_bytes": number("size"), "num_files": number("numFiles")}
_MOMENT: Final = {
    **_VERSION,
    "timestamp_ms": number("timestamp"),
    "expiration_timestamp_ms": number("expirationTimestamp"),
}
# This is the `minReaderVersion` of the sharing protocol, not of the Delta protocol: "Currently it's
# always 1."
_PARQUET_PROTOCOL: Final = MessageCodec(
    ParquetProtocol, min_reader_version=required_number("minReaderVersion")
)
_PARQUET_METADATA: Final = MessageCodec(
    ParquetMetadata,
    id=required_text("id"),
    name=optional_text("name"),
    description=optional_text("description"),
    provider=Member(
        "format",
        lambda node, name: node.child(name, lambda one: one.optional("provider", str)) or "parquet",
        lambda provider: {"provider": provider},
    ),
    schema_string=required_text("schemaString"),
    # This member is written even if it is empty: "When a table doesn't have partition columns, this
    # will be an empty array. Required."
    partition_columns=Member("partitionColumns", JsonObject.texts, list),
    configuration=string_map("configuration"),
    **_VERSION,
    **_COUNTS,
)
_PARQUET_FILE: Final = MessageCodec(
    ParquetFileLine,
    url=required_text("url"),
    id=required_text("id"),
    # This member is written even if it is empty: "When the table doesn't have partition columns,
    # this will be an empty map. Required."
    partition_values=Member("partitionValues", JsonObject.mapping, dict),
    size_bytes=required_number("size"),
    stats=optional_text("stats"),
    **_MOMENT,
)
_DELTA_PROTOCOL: Final = MessageCodec(
    DeltaProtocol, protocol=_wrapped("deltaProtocol", protocol_from_json, "protocol"), **_VERSION
)
_DELTA_METADATA: Final = MessageCodec(
    DeltaMetadata,
    metadata=_wrapped("deltaMetadata", metadata_from_json, "metaData"),
    **_VERSION,
    **_COUNTS,
)
_DELTA_FILE: Final = MessageCodec(
    DeltaFileLine,
    # The example in the protocol also has a `size`, which is omitted here because it is not in the
    # list of fields.
    id=required_text("id"),
    deletion_vector_file_id=optional_text("deletionVectorFileId"),
    **_MOMENT,
    action=Member("deltaSingleAction", _single_action, dict),
)
_END_STREAM_ACTION: Final = MessageCodec(
    EndStreamAction,
    next_page_token=nonempty_text("nextPageToken"),
    refresh_token=nonempty_text("refreshToken"),
    min_url_expiration_timestamp_ms=number("minUrlExpirationTimestamp"),
    error_message=nonempty_text("errorMessage"),
)
_QUERY_STATUS: Final = MessageCodec(
    QueryStatus,
    query_id=required_text("queryId"),
    status=Member("status", _status),
    error=optional_text("error"),
)

_CODECS: Final[Mapping[type, tuple[str, MessageCodec[Any]]]] = {
    ParquetProtocol: ("protocol", _PARQUET_PROTOCOL),
    ParquetMetadata: ("metaData", _PARQUET_METADATA),
    DeltaProtocol: ("protocol", _DELTA_PROTOCOL),
    DeltaMetadata: ("metaData", _DELTA_METADATA),
    DeltaFileLine: ("file", _DELTA_FILE),
    EndStreamAction: ("endStreamAction", _END_STREAM_ACTION),
    QueryStatus: ("queryStatus", _QUERY_STATUS),
}


# --- Listings: pages of shares, schemas and tables


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A logical grouping of schemas that is shared with recipients.

    Args:
        id: "unique across the sharing server and stay[s] immutable through the share's lifecycle".
    """

    name: str
    id: str | None = None
    display_name: str | None = None
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """A logical grouping of tables in a share."""

    name: str
    share: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of a schema of a share.

    Args:
        location: present only for recipients that may read the table's directory.
        access_modes: `url` (signed URLs, the default) and `dir` (temporary credentials).
    """

    name: str
    schema: str
    share: str
    share_id: str | None = None
    id: str | None = None
    location: str | None = None
    auxiliary_locations: tuple[str, ...] = ()
    access_modes: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        """Return the name as `share.schema.table`."""
        return f"{self.share}.{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingPage(Generic[T]):
    """One page of a listing.

    Args:
        next_page_token: token to request the next page; None at the end of the listing. "The server
            may return fewer than maxResults items even if there are more available."
    """

    items: tuple[T, ...] = ()
    next_page_token: str | None = None


SHARE: Final = MessageCodec(
    Share,
    name=required_text("name"),
    id=optional_text("id"),
    display_name=optional_text("displayName"),
    comment=optional_text("comment"),
    properties=string_map("properties"),
)
SCHEMA: Final = MessageCodec(Schema, name=required_text("name"), share=required_text("share"))
TABLE: Final = MessageCodec(
    Table,
    name=required_text("name"),
    schema=required_text("schema"),
    share=required_text("share"),
    share_id=optional_text("shareId"),
    id=optional_text("id"),
    location=optional_text("location"),
    auxiliary_locations=texts("auxiliaryLocations"),
    access_modes=texts("accessModes"),
)
_ITEM_CODECS: Final[Mapping[type, MessageCodec[Any]]] = {
    Share: SHARE,
    Schema: SCHEMA,
    Table: TABLE,
}


def parse_page(data: bytes, codec: MessageCodec[T], where: str = "listing") -> ListingPage[T]:
    """Return one page of a listing.

    Args:
        data: the body of the response.
        codec: `SHARE`, `SCHEMA` or `TABLE`.
        where: name of the listing, for errors.

    Raises:
        MalformedMessageError: the body is not a page.
    """
    node = parse_object(data, where)
    # The items may be absent. The protocol: "The items field may be an empty array or missing when
    # no results are found". The token may also be absent or empty.
    items = node.values.get("items")
    if not isinstance(items, list | None):
        raise MalformedMessageError(f"{where}.items: expected a list")
    return ListingPage(
        items=tuple(
            codec.parse(JsonObject(item, f"{where}.items[{index}]", MalformedMessageError))
            for index, item in enumerate(items or ())
        ),
        next_page_token=node.optional("nextPageToken", str) or None,
    )


def parse_share(data: bytes) -> Share:
    """Return the share in the body of `GET /shares/{share}`.

    Raises:
        MalformedMessageError: the body contains no share.
    """
    share = parse_object(data, "share").child("share", SHARE.parse)
    if share is None:
        raise MalformedMessageError("share: the response has none")
    return share


def encode_page(page: ListingPage[Share] | ListingPage[Schema] | ListingPage[Table]) -> bytes:
    """Return the body of a page of a listing."""
    body: dict[str, Any] = {"items": [_ITEM_CODECS[type(one)].encode(one) for one in page.items]}
    if page.next_page_token is not None:
        body["nextPageToken"] = page.next_page_token
    return dumps(body)


def encode_share(share: Share) -> bytes:
    """Return the body of the response to `GET /shares/{share}`."""
    return dumps({"share": SHARE.encode(share)})
