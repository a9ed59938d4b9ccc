"""What becomes of each file of which rows change: deletion vectors, or new files in its place.

Owns the choice. A deletion vector costs little now, and something whenever the file is read: dead
rows are decoded and left out until somebody compacts them away. Writing a file once more costs the
rows that stay. So a file is written once more where more of its rows would be dead than alive
(`deltalog.maxDeletedRowsRatio` sets another share), and that is never more than half of its rows.
Where writers are to share files (`delta.enableRowLevelConcurrency`), and where a change feed would
have to be told apart for it, vectors are worth more.

Protocol: Deletion Vectors
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.errors import InvalidInputError
from deltalog.paths import decode_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.configuration import TableConfiguration
    from deltalog.rows.find import MatchingFiles
    from deltalog.snapshot import Snapshot

_MOST_DEAD: Final = 0.5
_SCHEMA: Final[Sequence[str]] = ("path", "action", "num_rows", "deleted_ratio", "reason")


class FileDecision(StrEnum):
    """What becomes of a file."""

    REMOVED = "remove"
    MASKED = "mask"
    REWRITTEN = "rewrite"


def decide_files(
    snapshot: Snapshot, matching: MatchingFiles, *, asked: bool | None, tells_rows: bool = True
) -> tuple[FileDecision, ...]:
    """What becomes of each file.

    Args:
        snapshot: of the table.
        matching: the files, and which of their rows go.
        asked: True masks, False rewrites; None chooses where the table has vectors enabled.
        tells_rows: whether the change feed is told of the rows that go in any case; if not, a file
            that is written once more would make that necessary.

    Raises:
        InvalidInputError: deletion vectors are asked for, and the table does not allow them.
    """
    configuration = snapshot.configuration
    if asked and not configuration.may_have_deletion_vectors:
        raise InvalidInputError(
            f"cannot write deletion vectors to {snapshot.store.root}: the table does not support "
            "them; set delta.enableDeletionVectors=true first"
        )
    most = _most_dead(configuration, asked=asked, tells_rows=tells_rows)
    return tuple(
        FileDecision.REMOVED
        if matching.is_whole(number)
        else FileDecision.MASKED
        if dead <= most
        else FileDecision.REWRITTEN
        for number, dead in enumerate(dead_ratios(matching))
    )


def _most_dead(configuration: TableConfiguration, *, asked: bool | None, tells_rows: bool) -> float:
    """Up to which share of dead rows a file is masked; below 0 is never."""
    if asked is not None:
        return 1.0 if asked else -1.0
    if not configuration.writes_deletion_vectors:
        return -1.0
    set_ratio = configuration.properties.max_deleted_rows_ratio
    if set_ratio is not None:
        return set_ratio
    is_told_apart = configuration.change_data_feed_enabled and not tells_rows
    if is_told_apart or configuration.properties.enable_row_level_concurrency:
        return 1.0
    return _MOST_DEAD


def explain_choice(snapshot: Snapshot, *, asked: bool | None) -> str:
    """How the choice is made, in words; `decide_files` explains the arguments."""
    most = _most_dead(snapshot.configuration, asked=asked, tells_rows=True)
    if most >= 1:
        return "rows are marked by deletion vectors"
    if most < 0:
        return "rows that stay are written once more"
    return (
        f"rows are marked by deletion vectors; where more than {most:.0%} of a file would be "
        "deleted, rows that stay are written once more"
    )


def dead_ratios(matching: MatchingFiles) -> list[float]:
    """For each file, the share of its physical rows that would be deleted."""
    vectors: list[Any] = matching.files.column("deletionVector").to_pylist()
    found = []
    for number, vector in enumerate(vectors):
        positions, rows = matching.positions[number], matching.num_records[number]
        dead = 0 if vector is None else vector["cardinality"]
        if positions is None or not rows:
            found.append(1.0)
        else:
            found.append((dead + len(positions)) / rows)
    return found


def copied_rows(matching: MatchingFiles, decisions: Sequence[FileDecision]) -> int:
    """How many rows of files that are written once more stay as they are."""
    total = 0
    for number, decision in enumerate(decisions):
        live, found = matching.num_live_rows(number), matching.positions[number]
        if decision is FileDecision.REWRITTEN and live is not None and found is not None:
            total += live - len(found)
    return total


def explain_decisions(matching: MatchingFiles, decisions: Sequence[FileDecision]) -> pa.Table:
    """A row for each file: what would become of it, and why.

    Args:
        matching: the files.
        decisions: of each.

    Returns:
        path (decoded), action (`remove`, `mask` or `rewrite`), num_rows that go (NULL where the
        log does not tell it of a whole file), deleted_ratio afterwards, reason.
    """
    paths: list[Any] = matching.files.column("path").to_pylist()
    counts = [
        matching.num_live_rows(number) if found is None else len(found)
        for number, found in enumerate(matching.positions)
    ]
    ratios = dead_ratios(matching)
    columns: list[Any] = [
        pa.array([decode_path(path) for path in paths], pa.string()),
        pa.array([decision.value for decision in decisions], pa.string()),
        pa.array(counts, pa.int64()),
        pa.array(ratios, pa.float64()),
        pa.array([_reason(*one) for one in zip(decisions, ratios, strict=True)], pa.string()),
    ]
    return pa.table(dict(zip(_SCHEMA, columns, strict=True)))


def _reason(decision: FileDecision, ratio: float) -> str:
    if decision is FileDecision.REMOVED:
        return "all of its rows go"
    share = f"{ratio:.1%} of its rows would be deleted"
    if decision is FileDecision.MASKED:
        return f"{share}: marking them costs less"
    return f"{share}: the rows that stay are written once more"
