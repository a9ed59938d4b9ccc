"""What a shared table shows: which version, and what is asked of the server for it.

Owns that one version is shown as long as the server lets it, and that a hint is made for the very
schema that answers it.

Protocol: Read Data from a Table, Query Table Metadata
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from deltalog.arguments import as_timestamp_ms
from deltalog.configuration import TableConfiguration
from deltalog.errors import InvalidInputError, SharingAccessError, SharingError
from deltalog.sharing.client.answers import ask_files, ask_head
from deltalog.sharing.client.bridge import run
from deltalog.sharing.client.hints import json_hint, sql_hints
from deltalog.sharing.client.snapshots import open_files
from deltalog.sharing.client.urls import Question
from deltalog.sharing.wire import TableQuery

if TYPE_CHECKING:
    from datetime import datetime

    from deltalog.expressions import Expression
    from deltalog.sharing.client.answers import TableAnswer
    from deltalog.sharing.client.rest import AsyncRestClient
    from deltalog.sharing.wire import Table
    from deltalog.snapshot import Snapshot

logger = logging.getLogger(__name__)

Conditions = Callable[[TableConfiguration], "Expression | None"]
"""A predicate, once the schema is known."""

_MOST_ROWS: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Which version of a table: a number, a time, or the latest."""

    version: int | None = None
    timestamp_ms: int | None = None

    @property
    def is_latest(self) -> bool:
        """Whether neither is named."""
        return self.version is None and self.timestamp_ms is None

    def is_after(self, version: int) -> bool:
        """Whether a version is named that is later."""
        return self.version is not None and self.version > version


class TableView:
    """One version of a shared table, or its latest.

    Args:
        client: the server.
        table: which.
        at: the version to show.
        time_zone: of partition values without a zone.
    """

    def __init__(
        self, client: AsyncRestClient, table: Table, at: Moment, *, time_zone: str
    ) -> None:
        self.client = client
        self.table = table
        self.at = at
        self.time_zone = time_zone
        self._known: TableAnswer | None = None
        self._files: Snapshot | None = None

    @property
    def head(self) -> TableAnswer:
        """Version, protocol and metadata.

        Cost: one request, the first time.
        """
        if self._known is None:
            self._known = self._ask_head(self.at)
        return self._known

    @property
    def configuration(self) -> TableConfiguration:
        """Protocol and metadata, checked against each other."""
        return configuration_of(self.head)

    @property
    def snapshot(self) -> Snapshot:
        """The version with all of its files.

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
        at: Moment | None = None,
        json_hint: str | None = None,
    ) -> Snapshot:
        """The files that may hold the rows of a scan.

        Args:
            conditions: what the rows must fulfil.
            limit: so many are enough.
            at: another version than the one shown.
            json_hint: what is told of `conditions`, if it is said already.

        Cost: one query, unless all files are known; with conditions and no hint, `head` too.
        """
        at = self.at if at is None else at
        if at == self.at and (self._files is not None or (conditions is None and limit is None)):
            return self.snapshot
        if json_hint is not None:
            return self._open(replace(_query(), json_predicate_hints=json_hint), at)
        if conditions is not None:
            return self._open_hinting(conditions, at)
        # A limit is told alone: how many rows of a file match a predicate, no server knows.
        return self._open(_query(limit_hint=limit), at)

    def _open_hinting(self, conditions: Conditions, at: Moment) -> Snapshot:
        head = self.head if at == self.at else self._ask_head(at)
        configuration = configuration_of(head)
        for _ in range(2):
            snapshot = self._open(_hinting(conditions(configuration), configuration), at)
            answered = snapshot.configuration
            if answered.metadata.schema_string == configuration.metadata.schema_string:
                return snapshot
            configuration = answered  # the table was changed, and the hint may mean another thing
        return self._open(_query(), at)

    def _open(self, query: TableQuery, at: Moment) -> Snapshot:
        query = _travelling(query, at)
        answer = run(ask_files, self.client, self.table, query)
        if at == self.at:
            query, answer = self._settled(query, answer)
        question = Question(
            rest=self.client,
            table=self.table,
            query=query,
            version=answer.version,
            time_zone=self.time_zone,
            refresh_token=answer.refresh_token,
        )
        return open_files(question, answer)

    def _settled(self, query: TableQuery, answer: TableAnswer) -> tuple[TableQuery, TableAnswer]:
        """The answer for the version that is shown, or where that can't be had, a new one."""
        known = self._known
        if known is not None and known.version != answer.version:
            older = _travelling(query, Moment(version=known.version))
            try:
                return older, run(ask_files, self.client, self.table, older)
            except SharingAccessError:
                raise
            except SharingError:
                logger.info(
                    "%s moves from version %d to %d, as older ones are not shared",
                    self.table.name,
                    known.version,
                    answer.version,
                )
                self._files = None
        self._known = replace(answer, commits={}, times_ms={}, urls={})
        return query, answer

    def _ask_head(self, at: Moment) -> TableAnswer:
        return run(
            ask_head, self.client, self.table, version=at.version, timestamp_ms=at.timestamp_ms
        )


def configuration_of(head: TableAnswer) -> TableConfiguration:
    """Protocol and metadata of an answer, checked against each other."""
    return TableConfiguration(head.protocol, head.metadata)


def as_moment(version: int | str | datetime | None, *, default: int | None = None) -> Moment:
    """The moment that a caller names; None is the latest, or `default`."""
    if version is None:
        return Moment(version=default)
    if isinstance(version, int) and not isinstance(version, bool):
        if version < 0:
            raise InvalidInputError(f"cannot read version {version}: expected 0 or more")
        return Moment(version=version)
    return Moment(timestamp_ms=as_timestamp_ms(version))


def _travelling(query: TableQuery, at: Moment) -> TableQuery:
    if at.is_latest:
        return query
    # Refresh tokens are given for the latest version alone.
    return replace(
        query,
        version=at.version,
        timestamp_ms=at.timestamp_ms,
        include_refresh_token=False,
    )


def _query(*, limit_hint: int | None = None) -> TableQuery:
    hint = None if limit_hint is None else min(limit_hint, _MOST_ROWS)
    return TableQuery(limit_hint=hint, include_refresh_token=True)


def _hinting(predicate: Expression | None, configuration: TableConfiguration) -> TableQuery:
    if predicate is None:
        return _query()
    return replace(
        _query(),
        json_predicate_hints=json_hint(predicate, configuration.schema),
        predicate_hints=sql_hints(predicate, configuration.schema),
    )
