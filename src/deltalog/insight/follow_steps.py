"""What following a table is about: offsets, steps, and how much a step takes.

Owns the text that an offset is stored as. Which rows come when is `follow`'s.

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

    from deltalog.expressions import Expression
    from deltalog.scan.changes import Moment
    from deltalog.scan.task import ScanTask
    from deltalog.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Offset:
    """How far a follower is: everything before it was given.

    Args:
        table_id: of the table's metadata.
        version: that comes next, or that is being given.
        index: how many of its files were given.
        is_starting_version: whether all files of the version are given, not just its changes.
    """

    table_id: str
    version: int
    index: int = 0
    is_starting_version: bool = False

    def to_json(self) -> str:
        """A text to store; `from_json` takes it back."""
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
        """The offset that a text stands for.

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
        changes: give the change data feed instead of new rows: `_change_type` and so on.
        columns: which; None is all.
        predicate: over the table's columns, given the schema of each version.
        max_files: most files of a step.
        max_bytes: most bytes of a step, but for a step of one file.
        ignore_deletes: commits that only delete are passed over.
        ignore_changes: of commits that rewrite, all rows of the new files are given, old ones
            among them; commits that only delete are passed over.
        skip_change_commits: commits that delete or rewrite are passed over, with what they add.
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
    """Some rows of a followed table: nothing is read before they are asked for.

    Args:
        tasks: the files, in order.
        offset: where to go on when these rows are dealt with.
        output: the rows' schema.
    """

    tasks: tuple[ScanTask, ...]
    offset: Offset
    output: pa.Schema

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the rows."""
        return self.output

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch, in the order of the files."""
        return read_tasks(self.tasks)

    def __repr__(self) -> str:
        """How many files, and what comes next."""
        return f"Step({len(self.tasks)} files, next {self.offset.version}:{self.offset.index})"


def as_start(start: Any) -> Offset | int | Moment | Literal["latest"] | None:
    """Return where to start, given in any form that people store it in.

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
    """How much a step still takes: always one file."""

    def __init__(self, options: FollowOptions) -> None:
        self.max_files = options.max_files
        self.tasks: list[ScanTask] = []
        self._bytes = options.max_bytes

    def admits(self, size_bytes: int | None) -> bool:
        """Whether a file of that size fits in."""
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
