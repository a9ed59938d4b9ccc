"""The rules of concurrent commits as a small executable specification, written from the ledger.

Sets of paths and of row numbers, nothing of Arrow, logs or stores. `judge` is the whole of it: the
order of the checks (D-33), protocol, metadata, domains and applications (D-34), isolation levels
and appended files (D-35), removed files (D-36), and deletion vectors of one file that mark
different rows, which are united where the table allows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Level = Literal["Serializable", "WriteSerializable", "SnapshotIsolation"]
Marks = frozenset[int]
NONE: Marks = frozenset()


@dataclass(frozen=True, slots=True)
class File:
    """A data file: the rows `low` to `high`, of which some are marked by a deletion vector."""

    path: str
    low: int
    high: int
    marked: Marks | None = None

    @property
    def rows(self) -> Marks:
        """All rows, marked or not."""
        return frozenset(range(self.low, self.high + 1))


A = File("a", 0, 1)
B = File("b", 2, 3)
TABLE: Mapping[str, File] = {"a": A, "b": B}


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What one writer read in the table, and what it wants to commit.

    Args:
        name: of the intent.
        reads_all: whether the whole table was read.
        reads_rows: the predicate that was read, as the first and the last row that match.
        reads_files: files that were read.
        is_row_local: whether each row read decided about that row alone.
        adds: new files.
        removes: files that leave.
        marks: rows of files that leave by deletion vectors.
        changes_data: whether rows change, or only move to other files.
        sets: which of protocol, metadata, domain and application it sets.
    """

    name: str
    reads_all: bool = False
    reads_rows: tuple[int, int] | None = None
    reads_files: frozenset[str] = frozenset()
    is_row_local: bool = False
    adds: tuple[File, ...] = ()
    removes: frozenset[str] = frozenset()
    marks: Mapping[str, Marks] = field(default_factory=dict)
    changes_data: bool = True
    sets: frozenset[str] = frozenset()

    @property
    def is_blind(self) -> bool:
        """Whether it adds files only, and has read nothing."""
        reads = self.reads_all or self.reads_rows is not None or self.reads_files
        return not (reads or self.removes or self.marks)

    def level(self, of_table: Level) -> Level:
        """The isolation that it needs: moved rows are the same rows in every order."""
        names_files = bool(self.adds or self.removes or self.marks)
        return "SnapshotIsolation" if names_files and not self.changes_data else of_table


@dataclass(frozen=True, slots=True)
class Landed:
    """A commit that won a version."""

    adds: Mapping[str, File]
    removes: frozenset[str]
    is_blind: bool
    sets: frozenset[str]


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of an intent: the name of the error, or the commit."""

    error: str | None
    landed: Landed | None = None


def judge(mine: Intent, winners: Sequence[Landed], *, level: Level, unites_rows: bool) -> Decision:
    """Decide about an intent, staged on `TABLE`, after these commits were made on it."""
    own_level = mine.level(level)
    marked = {path: TABLE[path].marked or NONE for path in mine.marks}
    for winner in winners:
        united = set(_united(mine, winner, marked)) if unites_rows else set()
        error = _error(mine, winner, united, own_level)
        if error is not None:
            return Decision(error)
        for path in united:
            marked[path] = winner.adds[path].marked or NONE
    adds = {file.path: file for file in mine.adds}
    for path, rows in mine.marks.items():
        now = marked[path] | rows
        if now != TABLE[path].rows:
            adds[path] = File(path, TABLE[path].low, TABLE[path].high, now)
    removes = mine.removes | mine.marks.keys()
    return Decision(None, Landed(adds, removes, mine.is_blind, mine.sets))


def _united(mine: Intent, winner: Landed, marked: Mapping[str, Marks]) -> Iterable[str]:
    """Files in which the winner marked more rows, and none of mine."""
    for path, rows in mine.marks.items() if mine.is_row_local else ():
        theirs = winner.adds[path].marked if path in winner.adds else None
        replaced = path in winner.removes and theirs is not None
        if replaced and theirs is not None and theirs >= marked[path] and not theirs & rows:
            yield path


def _error(mine: Intent, winner: Landed, united: set[str], level: Level) -> str | None:
    both = mine.sets & winner.sets
    removed = winner.removes - united
    if "protocol" in both:
        return "ProtocolChangedError"
    if "metadata" in winner.sets:
        return "MetadataChangedError"
    if "domain" in both:
        return "DomainMetadataConflictError"
    if "application" in both:
        return "ConcurrentTransactionError"
    if _must_see(mine, winner, level) and any(
        _would_read(mine, file) for path, file in winner.adds.items() if path not in united
    ):
        return "ConcurrentAppendError"
    if removed and (mine.reads_all or removed & mine.reads_files):
        return "ConcurrentDeleteReadError"
    if removed & (mine.removes | mine.marks.keys()):
        return "ConcurrentDeleteDeleteError"
    return None


def _must_see(mine: Intent, winner: Landed, level: Level) -> bool:
    """Whether files of the winner that I would have read are in my way."""
    if level == "WriteSerializable" and winner.is_blind:
        return "metadata" in mine.sets
    return level != "SnapshotIsolation"


def _would_read(mine: Intent, file: File) -> bool:
    if mine.reads_all:
        return True
    if mine.reads_rows is None:
        return False
    low, high = mine.reads_rows
    return low <= file.high and file.low <= high
