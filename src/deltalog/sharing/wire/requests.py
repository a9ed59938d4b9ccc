"""What a client asks of a table: the body of a query, the parameters of changes and metadata.

Owns which parameters there are, their types and which exclude each other. Fields that nobody
knows are ignored.

Protocol: Read Data from a Table, Read Change Data Feed from a Table, Query Table Version
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deltalog._json import JsonObject, dumps
from deltalog.errors import MalformedMessageError
from deltalog.sharing.wire.codec import encode_timestamp, parse_timestamp
from deltalog.sharing.wire.lines import whole_number
from deltalog.sharing.wire.listing import message_object

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_RESULTS = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TableQuery:
    """The body of `POST …/query`.

    Args:
        predicate_hints: SQL, all of which hold for the rows that are wanted.
        json_predicate_hints: a JSON text, see `hints`.
        limit_hint: rows that are enough.
        version: of the table, or `timestamp_ms`, or `starting_version`: one at most.
        starting_version: changes from there on, inclusive, instead of the files of one version.
        max_files: file lines a page.
        idempotency_key: names this very query, for asynchronous ones.
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
    """The parameters of `GET …/changes`.

    Args:
        starting_version: or `starting_timestamp_ms`: exactly one.
        ending_version: or `ending_timestamp_ms`: one at most; none is the latest version.
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
    """The query of a body; no body is the empty query.

    Raises:
        MalformedMessageError: it is no JSON object, or a member has a wrong type or value.
    """
    node = message_object(data.strip() or b"{}", "query")
    timestamp = node.optional("timestamp", str)
    return TableQuery(
        predicate_hints=_hints(node),
        json_predicate_hints=node.optional("jsonPredicateHints", str),
        limit_hint=_not_negative(node, "limitHint"),
        version=_not_negative(node, "version"),
        timestamp_ms=None if timestamp is None else parse_timestamp(timestamp, "query.timestamp"),
        starting_version=_not_negative(node, "startingVersion"),
        ending_version=_not_negative(node, "endingVersion"),
        max_files=_not_negative(node, "maxFiles"),
        page_token=node.optional("pageToken", str) or None,
        include_refresh_token=node.optional("includeRefreshToken", bool) or False,
        refresh_token=node.optional("refreshToken", str) or None,
        idempotency_key=node.optional("idempotencyKey", str) or None,
    )


def encode_table_query(query: TableQuery) -> bytes:
    """The body's bytes; `{}` when nothing is asked for (ledger SHARE-QT-01)."""
    values: dict[str, Any] = {
        "predicateHints": list(query.predicate_hints) or None,
        "jsonPredicateHints": query.json_predicate_hints,
        "limitHint": query.limit_hint,
        "version": query.version,
        "timestamp": _moment(query.timestamp_ms),
        "startingVersion": query.starting_version,
        "endingVersion": query.ending_version,
        "maxFiles": query.max_files,
        "pageToken": query.page_token,
        "includeRefreshToken": query.include_refresh_token or None,
        "refreshToken": query.refresh_token,
        "idempotencyKey": query.idempotency_key,
    }
    return dumps({key: value for key, value in values.items() if value is not None})


def parse_changes_query(parameters: Mapping[str, str]) -> ChangesQuery:
    """The query of a URL's parameters.

    Raises:
        MalformedMessageError: a value has a wrong form.
    """
    node = JsonObject(dict(parameters), "changes", MalformedMessageError)
    return ChangesQuery(
        starting_version=_not_negative(node, "startingVersion"),
        starting_timestamp_ms=_moment_parameter(parameters, "startingTimestamp"),
        ending_version=_not_negative(node, "endingVersion"),
        ending_timestamp_ms=_moment_parameter(parameters, "endingTimestamp"),
        include_historical_metadata=_flag(parameters, "includeHistoricalMetadata"),
        include_historical_protocol=_flag(parameters, "includeHistoricalProtocol"),
        max_files=_not_negative(node, "maxFiles"),
        page_token=parameters.get("pageToken") or None,
    )


def changes_parameters(query: ChangesQuery) -> dict[str, str]:
    """The URL's parameters of a query."""
    values = {
        "startingVersion": query.starting_version,
        "startingTimestamp": _moment(query.starting_timestamp_ms),
        "endingVersion": query.ending_version,
        "endingTimestamp": _moment(query.ending_timestamp_ms),
        "includeHistoricalMetadata": "true" if query.include_historical_metadata else None,
        "includeHistoricalProtocol": "true" if query.include_historical_protocol else None,
        "maxFiles": query.max_files,
        "pageToken": query.page_token,
    }
    return {key: str(value) for key, value in values.items() if value is not None}


def parse_number_parameter(parameters: Mapping[str, str], name: str) -> int | None:
    """A parameter that is no negative number.

    Raises:
        MalformedMessageError: it is something else.
    """
    return _not_negative(JsonObject(dict(parameters), "request", MalformedMessageError), name)


def parse_moment_parameter(parameters: Mapping[str, str], name: str) -> int | None:
    """A parameter that is a time, in milliseconds since 1970.

    Raises:
        MalformedMessageError: it is something else.
    """
    return _moment_parameter(parameters, name)


def _hints(node: JsonObject) -> tuple[str, ...]:
    # The text of the protocol says "String", its example shows a list (ledger B-99).
    single = node.values.get("predicateHints")
    if isinstance(single, str):
        return (single,)
    return node.texts("predicateHints") or ()


def _not_negative(node: JsonObject, name: str) -> int | None:
    value = whole_number(node, name)
    if value is not None and value < 0:
        raise node.error(f"{node.where}.{name}: expected no negative number, found {value}")
    return value


def _moment(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else encode_timestamp(milliseconds)


def _moment_parameter(parameters: Mapping[str, str], name: str) -> int | None:
    text = parameters.get(name)
    # A plus sign that the client did not escape arrives as a blank.
    return None if text is None else parse_timestamp(text.replace(" ", "+"), name)


def _flag(parameters: Mapping[str, str], name: str) -> bool:
    text = parameters.get(name, "false").strip().lower()
    if text not in {"true", "false", ""}:
        raise MalformedMessageError(f"{name}: expected true or false, found {text[:40]!r}")
    return text == "true"
