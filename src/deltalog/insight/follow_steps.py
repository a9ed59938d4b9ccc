"""The values of following a table: offsets, options, steps, and the size limit of a step.

Owns the stored form of an offset. Which rows come when is decided by `follow`.

Protocol: none
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from deltalog._json import dumps, loads
from deltalog.arguments import as_bound
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.scan.reader import read_tasks
from deltalog.scan.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from deltalog.clock import Moment
    from deltalog.expressions import Expression
    from deltalog.scan.task import ScanTask
    from deltalog.schema import StructType
    from deltalog.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Offset:
    """The position of a follower: everything before it was returned.

    Args:
        table_id: of the table's metadata.
        version: the next version, or the one partly returned.
        index: how many of its files were returned.
        is_starting_version: whether all files of the version are returned, not just its changes.
    """

    table_id: str
    version: int
    index: int = 0
    is_starting_version: bool = False

    def to_json(self) -> str:
        """Encode the offset as text, to store it."""
        members = {
            "offsetVersion": 1,
            "tableId": self.table_id,
            "version": self.version,
            "index": self.index,
            "isStartingVersion": self.is_starting_version,
        }
        return dumps(members).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Offset:
        """Parse the text from `to_json`.

        Raises:
            InvalidInputError: it is no offset.
        """
        data = text.encode() if isinstance(text, str) else text
        try:
            node = loads(data, "offset")
            offset = cls(
                table_id=node["tableId"],
                version=node["version"],
                index=node["index"],
                is_starting_version=node["isStartingVersion"],
            )
            kinds = (offset.table_id, str), (offset.version, int), (offset.index, int)
            if node["offsetVersion"] == 1 and all(type(value) is kind for value, kind in kinds):
                return offset
        except (DeltaError, KeyError, TypeError):
            pass
        raise InvalidInputError(
            f"cannot follow from {text!r}: expected what Offset.to_json() gave"
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowOptions:
    """How a table is followed.

    Args:
        changes: return the change data feed instead of new rows: `_change_type` and so on.
        columns: to return; None is all.
        predicate: over the table's columns and, of changes, those of the feed; resolved against
            the schema of each version.
        max_files: most files of a step.
        max_bytes: most bytes of a step; a single file may be larger.
        ignore_deletes: skip commits that only delete.
        ignore_changes: of commits that rewrite files, return all rows of the new files, including
            unchanged ones; skip commits that only delete.
        skip_change_commits: skip commits that delete or rewrite, including the files they add.
        on_schema_change: `raise` stops before the first row of another schema; `evolve` goes on.
        poll_seconds: how long to wait when there is nothing new.
    """

    changes: bool = False
    columns: Sequence[str] | None = None
    predicate: Callable[[Snapshot], Expression | None] | None = None
    max_files: int = 1000
    max_bytes: int | None = None
    ignore_deletes: bool = False
    ignore_changes: bool = False
    skip_change_commits: bool = False
    on_schema_change: Literal["raise", "evolve"] = "raise"
    poll_seconds: float = 1.0

    def __post_init__(self) -> None:
        if self.max_files < 1 or (self.max_bytes is not None and self.max_bytes < 1):
            raise InvalidInputError(
                f"cannot follow with max_files_per_step={self.max_files}, "
                f"max_bytes_per_step={self.max_bytes}: expected 1 or more"
            )
        if self.on_schema_change not in {"raise", "evolve"}:
            raise InvalidInputError(
                f"on_schema_change: expected 'raise' or 'evolve', found {self.on_schema_change!r}"
            )
        if self.poll_seconds < 0:
            raise InvalidInputError(
                f"poll_seconds: expected 0 or more, found {self.poll_seconds!r}"
            )


@dataclass(frozen=True, eq=False)
class Step(Rows):
    """Some rows of a followed table; no data is read until they are requested.

    Args:
        tasks: the files, in order.
        offset: where to continue after these rows are processed.
        output: schema of the rows.
        table_schema: schema of the table.
    """

    tasks: tuple[ScanTask, ...]
    offset: Offset
    output: pa.Schema
    table_schema: StructType

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the rows."""
        return self.output

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches, in the order of the files."""
        return read_tasks(self.tasks)

    def __repr__(self) -> str:
        """Number of files, and the next position."""
        return f"Step({len(self.tasks)} files, next {self.offset.version}:{self.offset.index})"


def as_start(start: Any) -> Offset | int | Moment | Literal["latest"] | None:
    """Return where to start, from any form in which callers store it.

    Raises:
        InvalidInputError: it is no offset, version or moment.
    """
    if start is None or isinstance(start, Offset):
        return start
    if start == "latest":
        return "latest"
    if isinstance(start, Mapping):
        return Offset.from_json(dumps(dict(start)))
    if isinstance(start, str) and start.lstrip().startswith("{"):
        return Offset.from_json(start)
    if isinstance(start, bool):
        raise InvalidInputError(f"cannot follow from {start!r}: expected a version or an offset")
    return as_bound(start)


class Room:
    """The room left in a step; the first file always fits."""

    def __init__(self, options: FollowOptions) -> None:
        self.max_files: int = options.max_files
        self.tasks: list[ScanTask] = []
        self._bytes = options.max_bytes

    def admits(self, size_bytes: int | None) -> bool:
        """Whether a file of this size fits."""
        if not self.tasks:
            return True
        if len(self.tasks) >= self.max_files:
            return False
        return self._bytes is None or (size_bytes or 0) <= self._bytes

    def take(self, task: ScanTask) -> None:
        """Add a file."""
        self.tasks.append(task)
        if self._bytes is not None:
            self._bytes -= task.size_bytes or 0
