"""Looking after a table: what differs, what is wrong, what comes.

Nothing here changes a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from deltalog.arguments import as_bound, as_columns, as_condition, check_number
from deltalog.errors import InvalidInputError
from deltalog.progress import shown
from deltalog.table.care import CaredForTable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from deltalog.clock import Clock
    from deltalog.expressions import Expression
    from deltalog.insight.diff import TableDiff
    from deltalog.insight.doctor import Report
    from deltalog.insight.follow import Follower
    from deltalog.insight.follow_steps import Offset
    from deltalog.progress import Progress
    from deltalog.scan.changes import Moment
    from deltalog.snapshot import Snapshot


class TendedTable(CaredForTable):
    """Looking after a table; `DeltaTable` explains the arguments."""

    def diff(
        self,
        before: int | str | datetime,
        after: int | str | datetime | None = None,
        *,
        key: str | Sequence[str] = (),
        columns: Sequence[str] | None = None,
    ) -> TableDiff:
        """What differs between two versions: rows, schema, settings. No change feed is needed.

        Args:
            before: version, timestamp text (ISO 8601) or datetime.
            after: likewise; None is the version that this object shows.
            key: columns that identify a row. Without them rows are known by their row ids, if
                both versions have them; otherwise a changed row is one removed and one added.
            columns: only these are compared and shown; None is all.

        Returns:
            A `TableDiff`: rows with `_change_type`, and tables of schema and setting changes.

        Raises:
            VersionNotFoundError: a version is not there.
            InvalidInputError: unknown columns.

        Cost: files that both versions have with the same deletion vector are not read.
        """
        from deltalog.insight.diff import diff_snapshots

        return diff_snapshots(
            self._load(before),
            self._snapshot if after is None else self._load(after),
            key=as_columns([key] if isinstance(key, str) else key) or (),
            columns=as_columns(columns),
        )

    def doctor(
        self,
        *,
        checks: Sequence[str] | str | None = None,
        samples: int = 8,
        progress: Progress | None = None,
    ) -> Report:
        """Look at the table from all sides and say what is wrong, how bad, and what to do.

        The log against the protocol, features against properties, checkpoints and checksums
        against the log, statistics against samples of the data, deletion vectors, files that are
        gone or too many, and which engines can read and write the table.

        Args:
            checks: names of checks, or one; None is all.
            samples: how many data files and deletion vectors are read.
            progress: True for a bar, or told after each check how many of how many are done.

        Returns:
            A `Report`: `findings`, `is_healthy`, `to_table()`.

        Cost: two listings, the newest commits, the newest checkpoints, and the samples.
        """
        from deltalog.insight.doctor import examine

        check_number("samples", samples)
        with shown(progress, "examining") as tell:
            return examine(
                self._context,
                snapshot=self._snapshot,
                checks=[checks] if isinstance(checks, str) else checks,
                num_samples=samples,
                progress=tell,
            )

    def follow(  # noqa: PLR0913  # each is the caller's choice
        self,
        start: Offset | Mapping[str, Any] | int | str | datetime | None = None,
        *,
        changes: bool = False,
        columns: Sequence[str] | None = None,
        predicate: Any = None,
        max_files_per_step: int = 1000,
        max_bytes_per_step: int | None = None,
        ignore_deletes: bool = False,
        ignore_changes: bool = False,
        skip_change_commits: bool = False,
        on_schema_change: Literal["raise", "evolve"] = "raise",
        poll_seconds: float = 1.0,
        clock: Clock | None = None,
    ) -> Follower:
        """What is in the table, then what comes, in steps: each row once.

        `for step in table.follow()` waits for what comes, and so does `async for`; `available()`
        ends where nothing is left. A step gives rows as a scan does; when they are dealt with,
        `step.offset.to_json()` is to be stored, and `start` takes it back.

        Args:
            start: a stored offset; or a version, timestamp text or datetime, with whose changes
                to start; `latest` starts with what comes. None gives all rows first.
            changes: give the change data feed (`_change_type` and so on) instead of new rows.
            columns: which; None is all.
            predicate: anything that `scan` takes.
            max_files_per_step: most files of a step.
            max_bytes_per_step: most bytes of a step, though one file at least.
            ignore_deletes: pass over commits that only delete.
            ignore_changes: give all rows of rewritten files, unchanged ones among them.
            skip_change_commits: pass over commits that delete or rewrite.
            on_schema_change: `raise` stops before the first row of another schema, and a new
                follower goes on from the offset; `evolve` goes on.
            poll_seconds: how long to wait when there is nothing new.
            clock: lets time pass.

        Raises:
            InvalidInputError: an offset of another table, or unknown columns.
            VersionNotFoundError: the version is not there.

        Cost: one listing per look, one request per commit, and the files whose rows are asked for.
        """
        from deltalog.insight.follow import Follower
        from deltalog.insight.follow_steps import FollowOptions

        self.update_incremental()

        def condition(snapshot: Snapshot) -> Expression | None:
            return as_condition(snapshot.configuration.schema, predicate)

        return Follower(
            self._snapshot,
            start=_as_start(start),
            options=FollowOptions(
                changes=changes,
                columns=as_columns(columns),
                predicate=None if predicate is None else condition,
                max_files=max_files_per_step,
                max_bytes=max_bytes_per_step,
                ignore_deletes=ignore_deletes,
                ignore_changes=ignore_changes,
                skip_change_commits=skip_change_commits,
                on_schema_change=on_schema_change,
                poll_seconds=poll_seconds,
            ),
            clock=clock,
        )


def _as_start(
    start: Offset | Mapping[str, Any] | int | str | datetime | None,
) -> Offset | int | Moment | Literal["latest"] | None:
    """A start in any form that people store it in."""
    from deltalog._json import dumps
    from deltalog.insight.follow_steps import Offset

    if start is None or isinstance(start, Offset):
        return start
    if isinstance(start, str):
        if start == "latest":
            return "latest"
        return Offset.from_json(start) if start.lstrip().startswith("{") else as_bound(start)
    if isinstance(start, Mapping):
        return Offset.from_json(dumps(dict(start)))
    if isinstance(start, bool):
        raise InvalidInputError(f"cannot follow from {start!r}: expected a version or an offset")
    return as_bound(start)
