"""What holds for a table whatever is done to it: bound once, and carried along.

Owns `TableContext`. A snapshot carries it, and a scan and a transaction carry their snapshot's, so
a function that needs a time zone or a clock takes it from there, and never from a keyword that a
caller may forget: values would change by it (a partition value without a zone read in one zone and
written in another).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from deltalog.clock import Clock, SystemClock, utc_moment
from deltalog.sql_session import SqlSession

if TYPE_CHECKING:
    from datetime import datetime

    from deltalog.catalog import Committer, LogTail
    from deltalog.storage.store import Store


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableContext:
    """Where a table is, and how its values, times and commits are understood; picklable.

    Args:
        store: of the table.
        time_zone: of timestamps and partition values that name none, as an IANA name or an offset.
        clock: tells the time and lets it pass.
        committer: makes commits happen; None is the store's own put-if-absent.
        log_tail: the newest commits, for a table whose catalog decides on them; None if the table
            was opened by its path.
    """

    store: Store
    time_zone: str
    clock: Clock = field(default_factory=SystemClock)
    committer: Committer | None = None
    log_tail: LogTail | None = None

    @property
    def now(self) -> datetime:
        """The present moment in UTC, by the clock of the context."""
        return utc_moment(self.clock.now_ms())

    @property
    def session(self) -> SqlSession:
        """The present moment and the time zone, for expressions; ask once for those of one verb."""
        return SqlSession(now=self.now, time_zone=self.time_zone)

    def with_log_tail(self, log_tail: LogTail | None) -> TableContext:
        """The same context with other newest commits."""
        return self if log_tail is self.log_tail else replace(self, log_tail=log_tail)

    def with_newest_log_tail(self) -> TableContext:
        """The same context with the newest commits that its committer knows, if it knows any.

        Cost: a request to the catalog, where one decides on the commits.
        """
        asked = None if self.committer is None else self.committer.log_tail(self.store)
        return self if asked is None else self.with_log_tail(asked)


def utc_context(store: Store) -> TableContext:
    """The context of a table whose zone-less values are in UTC."""
    return TableContext(store=store, time_zone="UTC")
