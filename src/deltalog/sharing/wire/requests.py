"""A client's requests about a table: the body of a query, and URL parameters of other requests.

This module contains the parameters and their types. The server checks for parameters that exclude
each other. Unknown members are ignored.

Protocol: Read Data from a Table, Read Change Data Feed from a Table, Query Table Version
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deltalog._util.json import JsonObject, dumps
from deltalog.errors import MalformedMessageError
from deltalog.sharing.wire.codec import (
    Member,
    MessageCodec,
    encode_timestamp,
    natural_number,
    nonempty_text,
    optional_text,
    parse_object,
    parse_timestamp,
    timestamp,
    whole_number_from_0,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class TableQuery:
    """The body of `POST …/query`.

    Args:
        predicate_hints: SQL conditions; the client needs only rows for which all are true.
        json_predicate_hints: a predicate as a JSON string, see `wire.hints`.
        limit_hint: a number of rows that is enough for the client.
        version: version of the table; excludes `timestamp_ms` and `starting_version`.
        starting_version: requests the changes from this version on, instead of the files
            of one version.
        max_files: maximum number of file lines per page.
        idempotency_key: key of the query, so that repeated requests start only one asynchronous
            query.
    """

    predicate_hints: tuple[str, ...] = ()
    json_predicate_hints: str | None = None
    limit_hint: int | None = None
    version: int | None = None
    timestamp_ms: int | None = None
    starting_version: int | None = None
    ending_version: int | None = None
    max_files: int | None = None
    page_token: str | None = None
    include_refresh_token: bool = False
    refresh_token: str | None = None
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesQuery:
    """The URL parameters of `GET …/changes`.

    Args:
        starting_version: the first version; either this or `starting_timestamp_ms` is required.
        ending_version: the last version, instead of `ending_timestamp_ms`; without both, the range
            ends with the latest version.
    """

    starting_version: int | None = None
    starting_timestamp_ms: int | None = None
    ending_version: int | None = None
    ending_timestamp_ms: int | None = None
    include_historical_metadata: bool = False
    include_historical_protocol: bool = False
    max_files: int | None = None
    page_token: str | None = None


def parse_table_query(data: bytes) -> TableQuery:
    """Return the query in a body; an empty body is a query without parameters.

    Raises:
        MalformedMessageError: the body is not a JSON object, or a member has a wrong type or value.
    """
    return _TABLE_QUERY.parse(parse_object(data.strip() or b"{}", "query"))


def encode_table_query(query: TableQuery) -> bytes:
    """Return the body of a query; `{}` for a query without parameters (requirement SHARE-QT-01)."""
    return dumps(_TABLE_QUERY.encode(query))


def parse_changes_query(parameters: Mapping[str, str]) -> ChangesQuery:
    """Return the query in a URL's parameters.

    Raises:
        MalformedMessageError: a value has a wrong form.
    """
    return _CHANGES_QUERY.parse(JsonObject(dict(parameters), "changes", MalformedMessageError))


def encode_changes_query(query: ChangesQuery) -> dict[str, str]:
    """Return the URL parameters of a query."""
    return {name: str(value) for name, value in _CHANGES_QUERY.encode(query).items()}


def parse_number_parameter(parameters: Mapping[str, str], name: str) -> int | None:
    """Return a URL parameter that is a number of 0 or more, or None if it is absent.

    Raises:
        MalformedMessageError: the parameter is not such a number.
    """
    return whole_number_from_0(JsonObject(dict(parameters), "request", MalformedMessageError), name)


def parse_timestamp_parameter(parameters: Mapping[str, str], name: str) -> int | None:
    """Return a URL parameter that is a time, in milliseconds since 1970, or None if it is absent.

    Raises:
        MalformedMessageError: the parameter is not a time.
    """
    text = parameters.get(name)
    # The plus sign of a time zone becomes a space if the client does not escape it in the URL.
    return None if text is None else parse_timestamp(text.replace(" ", "+"), name)


def _predicate_hints(node: JsonObject, name: str) -> tuple[str, ...] | None:
    # The text of the protocol says "String", but its example shows a list (requirement B-99).
    single = node.values[name]
    return (single,) if isinstance(single, str) else node.texts(name)


def _flag_parameter(node: JsonObject, name: str) -> bool:
    text: str = node.values[name].strip().lower()
    if text not in {"true", "false", ""}:
        raise MalformedMessageError(f"{name}: expected true or false, found {text[:40]!r}")
    return text == "true"


def _parameter_timestamp(name: str) -> Member:
    return Member(
        name, lambda node, name: parse_timestamp_parameter(node.values, name), encode_timestamp
    )


def _parameter_flag(name: str) -> Member:
    return Member(name, _flag_parameter, lambda value: "true" if value else None)


_TABLE_QUERY: Final = MessageCodec(
    TableQuery,
    predicate_hints=Member("predicateHints", _predicate_hints, lambda value: list(value) or None),
    json_predicate_hints=optional_text("jsonPredicateHints"),
    limit_hint=natural_number("limitHint"),
    version=natural_number("version"),
    timestamp_ms=timestamp("timestamp"),
    starting_version=natural_number("startingVersion"),
    # The server may send later versions. The protocol: "The server can use it as a hint […]. This
    # is not enforcement".
    ending_version=natural_number("endingVersion"),
    max_files=natural_number("maxFiles"),
    page_token=nonempty_text("pageToken"),
    include_refresh_token=Member(
        "includeRefreshToken",
        lambda node, name: node.optional(name, bool),
        lambda value: value or None,
    ),
    refresh_token=nonempty_text("refreshToken"),
    idempotency_key=nonempty_text("idempotencyKey"),
)
_CHANGES_QUERY: Final = MessageCodec(
    ChangesQuery,
    starting_version=natural_number("startingVersion"),
    starting_timestamp_ms=_parameter_timestamp("startingTimestamp"),
    ending_version=natural_number("endingVersion"),
    ending_timestamp_ms=_parameter_timestamp("endingTimestamp"),
    include_historical_metadata=_parameter_flag("includeHistoricalMetadata"),
    include_historical_protocol=_parameter_flag("includeHistoricalProtocol"),
    max_files=natural_number("maxFiles"),
    page_token=nonempty_text("pageToken"),
)


# --- The `delta-sharing-capabilities` header, and the names of the protocol's other headers


CAPABILITIES_HEADER: Final = "delta-sharing-capabilities"
VERSION_HEADER: Final = "Delta-Table-Version"
FILE_ID_HASH_HEADER: Final = "fileidhash"

PARQUET: Final = "parquet"
DELTA: Final = "delta"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """Capabilities of a client, or of a server's response; all strings are in lower case.

    Args:
        response_formats: names of formats in order of preference; empty means only `parquet`.
        reader_features: table features that the client supports; only for the format `delta`.
        include_end_stream_action: whether the last line of a response is an `endStreamAction`.
        asynchronous: whether a query may be answered with an id, which the client polls.
    """

    response_formats: tuple[str, ...] = ()
    reader_features: frozenset[str] = frozenset()
    include_end_stream_action: bool = False
    asynchronous: bool = False

    @property
    def formats(self) -> tuple[str, ...]:
        """The response formats; the default is `parquet` (requirement SHARE-CAP-02)."""
        return self.response_formats or (PARQUET,)


def parse_capabilities(header: str | None) -> Capabilities:
    """Return the capabilities in a header; every string is valid, and unknown keys are ignored.

    "All keys and values should be case-insensitive when processed by the server."
    """
    found: dict[str, tuple[str, ...]] = {}
    for part in (header or "").split(";"):
        key, _, values = part.partition("=")
        words = (word.strip().lower() for word in values.split(","))
        found[key.strip().lower()] = tuple(dict.fromkeys(word for word in words if word))
    # The result also contains unknown formats and features, which newer clients may list. The
    # server ignores them.
    return Capabilities(
        response_formats=found.get("responseformat", ()),
        reader_features=frozenset(found.get("readerfeatures", ())),
        include_end_stream_action=found.get("includeendstreamaction") == ("true",),
        asynchronous=found.get("asyncquery") == ("true",),
    )


def encode_capabilities(capabilities: Capabilities) -> str:
    """Return the header's value."""
    parts = []
    if capabilities.response_formats:
        parts.append("responseformat=" + ",".join(capabilities.response_formats))
    if capabilities.reader_features:
        parts.append("readerfeatures=" + ",".join(sorted(capabilities.reader_features)))
    if capabilities.include_end_stream_action:
        parts.append("includeendstreamaction=true")
    if capabilities.asynchronous:
        parts.append("asyncquery=true")
    return ";".join(parts)


# --- Error bodies: `errorCode` and `message`


# The reference server uses only the first four codes and INTERNAL_ERROR. It has no codes for the
# other cases (requirement SHARE-GEN-07).
NOT_FOUND: Final = "RESOURCE_DOES_NOT_EXIST"
INVALID_PARAMETER: Final = "INVALID_PARAMETER_VALUE"
MALFORMED_REQUEST: Final = "MALFORMED_REQUEST"
UNSUPPORTED_OPERATION: Final = "UNSUPPORTED_OPERATION"
UNAUTHENTICATED: Final = "UNAUTHENTICATED"
FORBIDDEN: Final = "PERMISSION_DENIED"
METHOD_NOT_ALLOWED: Final = "METHOD_NOT_ALLOWED"
TOO_LARGE: Final = "REQUEST_TOO_LARGE"
TOO_MANY_REQUESTS: Final = "TOO_MANY_REQUESTS"
INTERNAL_ERROR: Final = "INTERNAL_ERROR"
UNAVAILABLE: Final = "TEMPORARILY_UNAVAILABLE"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBody:
    """An error: a code for programs, and a message for people."""

    error_code: str
    message: str


def parse_error(data: bytes) -> ErrorBody | None:
    """Return the error in a body, or None for other bodies, such as those of proxies."""
    try:
        node = parse_object(data, "error")
        code = node.optional("errorCode", str)
        message = node.optional("message", str)
    except MalformedMessageError:
        return None
    if code is None and message is None:
        return None
    return ErrorBody(error_code=code or "", message=message or "")


def encode_error(error: ErrorBody) -> bytes:
    """Return the body of an error."""
    return dumps({"errorCode": error.error_code, "message": error.message})
