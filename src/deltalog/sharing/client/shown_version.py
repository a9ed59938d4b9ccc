"""One version of a shared table, and the queries for it.

This module returns the same version as long as the server provides it. It also ensures that the
schema from which hints were made is the schema of the version to which the server applies them.

Protocol: Read Data from a Table, Query Table Metadata
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final

from deltalog.errors import (
    InvalidInputError,
    MalformedMessageError,
    SharingAccessError,
    SharingError,
)
from deltalog.expressions import Column, Literal, columns, conjuncts, resolve_predicate
from deltalog.expressions.nodes import And, Comparison, IsNull, Not
from deltalog.expressions.sql_session import SqlSession
from deltalog.operations.arguments import (
    as_condition,
    as_timestamp_ms,
    as_whole_number,
    refuse_both,
)
from deltalog.protocol.configuration import TableConfiguration
from deltalog.schema import StructType, find_field
from deltalog.schema.collations import own_collation
from deltalog.schema.types import BY_BYTES, DOUBLE, FLOAT, TIMESTAMP
from deltalog.sharing.client.answers import TableAnswer, VersionHead, fetch_file_list, fetch_head
from deltalog.sharing.client.snapshots import snapshot_of_files
from deltalog.sharing.wire.hints import encode_json_hint, parse_json_hint
from deltalog.sharing.wire.requests import TableQuery
from deltalog.storage.http.client import run

if TYPE_CHECKING:
    from deltalog.expressions import Expression
    from deltalog.log.snapshot import Snapshot
    from deltalog.sharing.client.rest import AsyncRestClient
    from deltalog.sharing.wire.lines import Table

logger: logging.Logger = logging.getLogger(__name__)

_MOST_ROWS: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionOrTimestamp:
    """A version of a table, given by number or by time; if both are None, the latest version."""

    version: int | None = None
    timestamp_ms: int | None = None

    @property
    def is_latest(self) -> bool:
        """Whether neither a version nor a time is given."""
        return self.version is None and self.timestamp_ms is None

    def is_after(self, version: int) -> bool:
        """Return whether this is a version number greater than `version`."""
        return self.version is not None and self.version > version


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """The conditions of a scan, before they are resolved against the schema of a version.

    Args:
        given: the caller's conditions; all must be true.
        parameters: values for parameters in SQL conditions.
        session: the current time, which is the same for the server's hint and for filtering the
            rows.
    """

    given: tuple[Any, ...]
    parameters: Sequence[object] | Mapping[str, object] | None
    session: SqlSession

    def resolved(self, configuration: TableConfiguration) -> Expression | None:
        """Return all conditions as one condition on a version's columns; None without conditions.

        Raises:
            InvalidInputError: a condition is invalid, or names a column that does not exist.
        """
        return as_condition(
            configuration.schema, *self.given, session=self.session, parameters=self.parameters
        )


class ShownVersion:
    """One version of a shared table.

    Args:
        client: the server.
        table: a table of a share.
        at: the version to show.
        time_zone: the zone of partition values that have no zone.
    """

    def __init__(
        self, client: AsyncRestClient, table: Table, at: VersionOrTimestamp, *, time_zone: str
    ) -> None:
        self.client = client
        self.table = table
        self.at = at
        self.time_zone = time_zone
        self._known: VersionHead | None = None
        self._files: Snapshot | None = None

    @property
    def head(self) -> VersionHead:
        """Return version, protocol and metadata.

        Cost: one request, the first time.
        """
        if self._known is None:
            self._known = self._ask_head(self.at)
        return self._known

    @property
    def configuration(self) -> TableConfiguration:
        """Return protocol and metadata, after checking that they are consistent."""
        return self.head.configuration

    @property
    def snapshot(self) -> Snapshot:
        """Return the version with all of its files.

        Cost: one query without hints, the first time.
        """
        if self._files is None:
            self._files = self._open(_query(), self.at)
        return self._files

    def snapshot_for(
        self,
        conditions: Conditions | None = None,
        *,
        limit: int | None = None,
        at: VersionOrTimestamp | None = None,
        json_hint: str | None = None,
    ) -> Snapshot:
        """Return a snapshot with the files that may contain the rows of a scan.

        Args:
            conditions: the conditions of the rows.
            limit: the number of rows that suffices.
            at: the version; None means the shown version.
            json_hint: a JSON hint for `conditions`; if None, the hint is made from the conditions.

        Cost: one query, unless all files are known; with conditions but no hint, also `head`.
        """
        at = self.at if at is None else at
        is_limited = limit is not None or (conditions is not None and bool(conditions.given))
        if at == self.at and (self._files is not None or not is_limited):
            return self.snapshot
        if json_hint is not None:
            return self._open(replace(_query(), json_predicate_hints=json_hint), at)
        if conditions is not None and conditions.given:
            return self._open_hinting(conditions, at)
        # If there are conditions, send no limit, because the server cannot know how many rows match
        # them.
        return self._open(_query(limit_hint=limit), at)

    def _open_hinting(self, conditions: Conditions, at: VersionOrTimestamp) -> Snapshot:
        head = self.head if at == self.at else self._ask_head(at)
        configuration = head.configuration
        for _ in range(2):
            query = _hinting(conditions.resolved(configuration), configuration, self.time_zone)
            snapshot = self._open(query, at)
            answered = snapshot.configuration
            if answered.metadata.schema_string == configuration.metadata.schema_string:
                return snapshot
            configuration = answered  # the schema has changed, so make a new hint
        return self._open(_query(), at)

    def _open(self, query: TableQuery, at: VersionOrTimestamp) -> Snapshot:
        query = _at(query, at)
        answer = run(fetch_file_list, self.client, self.table, query)
        if at == self.at:
            # The answer may contain a newer version than the first request returned.
            query, answer = self._for_shown_version(query, answer)
        return snapshot_of_files(self.client, self.table, query, answer, time_zone=self.time_zone)

    def _for_shown_version(
        self, query: TableQuery, answer: TableAnswer
    ) -> tuple[TableQuery, TableAnswer]:
        """Return query and answer for the shown version or, if refused, the latest version."""
        known = self._known
        if known is not None and known.version != answer.head.version:
            older = _at(query, VersionOrTimestamp(version=known.version))
            try:
                return older, run(fetch_file_list, self.client, self.table, older)
            except SharingAccessError:
                raise
            # A server that does not share history no longer returns the shown version.
            except SharingError:
                logger.info(
                    "%s moves from version %d to %d: older versions are not shared",
                    self.table.name,
                    known.version,
                    answer.head.version,
                )
                self._files = None
        self._known = answer.head
        return query, answer

    def _ask_head(self, at: VersionOrTimestamp) -> VersionHead:
        return run(
            fetch_head, self.client, self.table, version=at.version, timestamp_ms=at.timestamp_ms
        )


def as_version(
    *, default: int | None = None, **given: int | str | datetime | date | None
) -> VersionOrTimestamp:
    """Return the version or time of a call; it may be given in one of several arguments.

    Args:
        default: the version number if no argument is given; None means the latest version.
        given: the values of the arguments; at most one is not None.
    """
    refuse_both(**given)
    version = next((one for one in given.values() if one is not None), default)
    if version is None:
        return VersionOrTimestamp()
    number = as_whole_number(version)
    if number is not None:
        if number < 0:
            raise InvalidInputError(f"cannot read version {number}: expected 0 or more")
        return VersionOrTimestamp(version=number)
    return VersionOrTimestamp(timestamp_ms=as_timestamp_ms(version))


def _at(query: TableQuery, at: VersionOrTimestamp) -> TableQuery:
    """Return the query for a version; a refresh token is requested only for the latest version."""
    if at.is_latest:
        return query
    return replace(
        query,
        version=at.version,
        timestamp_ms=at.timestamp_ms,
        include_refresh_token=False,
    )


def _query(*, limit_hint: int | None = None) -> TableQuery:
    hint = None if limit_hint is None else min(limit_hint, _MOST_ROWS)
    return TableQuery(limit_hint=hint, include_refresh_token=True)


def _hinting(
    predicate: Expression | None, configuration: TableConfiguration, time_zone: str
) -> TableQuery:
    if predicate is None:
        return _query()
    schema, unsafe = configuration.schema, _zoneless_columns(configuration, time_zone)
    return replace(
        _query(),
        json_predicate_hints=json_hint(predicate, schema, unsafe),
        predicate_hints=sql_hints(predicate, schema, unsafe),
    )


def _zoneless_columns(configuration: TableConfiguration, time_zone: str) -> frozenset[str]:
    """Return timestamp columns whose partition values may have no zone; servers assume UTC."""
    if time_zone == "UTC":
        return frozenset()
    fields = configuration.partition_schema.fields
    return frozenset(field.name for field in fields if field.type == TIMESTAMP)


# --- Predicate hints: the parts of a predicate that let a server skip files


_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN_TEXT: Final = re.compile(r"[^'\\\x00-\x1f]*")
_OPERATORS: Final = frozenset({"=", "<>", "<", "<=", ">", ">="})


def as_json_hint(text: str) -> Expression:
    """Return the predicate in a caller's `jsonPredicateHints`.

    Raises:
        InvalidInputError: the string is not a JSON predicate.
    """
    try:
        return parse_json_hint(text)
    except MalformedMessageError as error:
        raise InvalidInputError(f"cannot use the JSON predicate: {error}") from None


def json_hint(
    predicate: Expression, schema: StructType, unsafe: Collection[str] = ()
) -> str | None:
    """Return `jsonPredicateHints` for the safe parts of a predicate; None if no part is safe.

    Args:
        predicate: a resolved condition on the columns.
        schema: schema of the table.
        unsafe: columns whose values the server may interpret differently.
    """
    parts = tuple(_safe_parts(predicate, schema, unsafe))
    return encode_json_hint(And(parts)) if parts else None


def sql_hints(
    predicate: Expression, schema: StructType, unsafe: Collection[str] = ()
) -> tuple[str, ...]:
    """Return `predicateHints` for the safe parts of a predicate that the protocol supports."""
    texts = (_sql(part) for part in _safe_parts(predicate, schema, unsafe))
    return tuple(text for text in texts if text is not None)


def _safe_parts(
    predicate: Expression, schema: StructType, unsafe: Collection[str]
) -> Iterator[Expression]:
    known = {field.name for field in schema} - set(unsafe)
    for part in conjuncts(resolve_predicate(predicate, schema)):
        paths = columns(part)
        if paths and all(path[0] in known and not _is_unsafe(path, schema) for path in paths):
            yield part


def _is_unsafe(path: tuple[str, ...], schema: StructType) -> bool:
    # Conditions on these columns are not sent as hints. Engines disagree about the order of NaN,
    # and the min and max of a file may ignore NaN. Servers compare strings by bytes, which is wrong
    # for columns with another collation.
    field = find_field(schema, path)
    return field.type in (FLOAT, DOUBLE) or own_collation(field) != BY_BYTES


def _sql(node: Expression) -> str | None:
    """Return the condition in one of the protocol's eight SQL forms, or None."""
    match node:
        case Comparison(operator=operator, left=left, right=right) if operator in _OPERATORS:
            sides = [_sql_operand(left), _sql_operand(right)]
            # The protocol allows only comparisons "between a column in the table and a constant
            # value".
            one_column = isinstance(left, Column) != isinstance(right, Column)
            if one_column and None not in sides:
                return f"{sides[0]} {operator} {sides[1]}"
        case IsNull(operand=Column() as column) if name := _sql_operand(column):
            return f"{name} IS NULL"
        case Not(operand=IsNull(operand=Column() as column)) if name := _sql_operand(column):
            return f"{name} IS NOT NULL"
    return None


def _sql_operand(node: Expression) -> str | None:
    if isinstance(node, Column):
        is_plain = len(node.path) == 1 and _NAME.fullmatch(node.path[0])
        return node.path[0] if is_plain else None
    value = node.value if isinstance(node, Literal) and not node.is_far_moment else None
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str() if _PLAIN_TEXT.fullmatch(value):
            return f"'{value}'"
        case date() if not isinstance(value, datetime):
            return f"'{value.isoformat()}'"
    return None
