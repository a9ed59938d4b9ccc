"""Decide per file: drop, mask with a deletion vector, or rewrite.

A deletion vector is cheap to write, but every later read decodes the deleted rows until the file is
compacted. A rewrite costs a copy of the remaining rows. So a file is rewritten if more than half of
its rows would be deleted (`deltalog.maxDeletedRowsRatio` sets another share), which never copies
more than half of its rows. Files are always masked if several writers are to change one file at a
time (`delta.enableRowLevelConcurrency`), or if only a rewrite would make change data files
necessary.

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
    from deltalog.rows.find import SelectedRows
    from deltalog.snapshot import Snapshot

_MOST_DEAD: Final = 0.5
_SCHEMA: Final[Sequence[str]] = ("path", "action", "num_rows", "deleted_ratio", "reason")


class FileDecision(StrEnum):
    """Whether a file is dropped, masked or rewritten."""

    REMOVED = "remove"
    MASKED = "mask"
    REWRITTEN = "rewrite"


def decide_files(
    snapshot: Snapshot, selected: SelectedRows, *, asked: bool | None, tells_rows: bool = True
) -> tuple[FileDecision, ...]:
    """Decide for each file whether it is dropped, masked or rewritten.

    Args:
        snapshot: of the table.
        selected: the files, and the positions of the rows to delete.
        asked: True masks, False rewrites; None decides by share if the table has deletion vectors
            enabled, and rewrites otherwise.
        tells_rows: whether change data files are written in any case; if not, a rewrite with the
            change data feed on would need them.

    Raises:
        InvalidInputError: deletion vectors are asked for, but the table does not support them.
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
        if selected.is_whole(number)
        else FileDecision.MASKED
        if dead <= most
        else FileDecision.REWRITTEN
        for number, dead in enumerate(dead_ratios(selected))
    )


def _most_dead(configuration: TableConfiguration, *, asked: bool | None, tells_rows: bool) -> float:
    """The greatest share of deleted rows with which a file is masked; negative means never."""
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


def may_mask(configuration: TableConfiguration, *, asked: bool | None) -> bool:
    """Return whether `decide_files` may mask any file of an UPDATE."""
    return _most_dead(configuration, asked=asked, tells_rows=True) > 0


def explain_choice(snapshot: Snapshot, *, asked: bool | None) -> str:
    """Describe in words how `decide_files` would decide with these arguments."""
    most = _most_dead(snapshot.configuration, asked=asked, tells_rows=True)
    if most >= 1:
        return "rows are marked by deletion vectors"
    if most < 0:
        return "rows that stay are written once more"
    return (
        f"rows are marked by deletion vectors; where more than {most:.0%} of a file would be "
        "deleted, rows that stay are written once more"
    )


def dead_ratios(selected: SelectedRows) -> list[float]:
    """Return for each file the share of its physical rows that would be deleted."""
    vectors: list[Any] = selected.files.column("deletionVector").to_pylist()
    found = []
    for number, vector in enumerate(vectors):
        positions, rows = selected.positions[number], selected.num_records[number]
        dead = 0 if vector is None else vector["cardinality"]
        if positions is None or not rows:
            found.append(1.0)
        else:
            found.append((dead + len(positions)) / rows)
    return found


def copied_rows(selected: SelectedRows, decisions: Sequence[FileDecision]) -> int:
    """Count the unchanged rows of the files to rewrite."""
    total = 0
    for number, decision in enumerate(decisions):
        live, found = selected.num_live_rows(number), selected.positions[number]
        if decision is FileDecision.REWRITTEN and live is not None and found is not None:
            total += live - len(found)
    return total


def explain_decisions(selected: SelectedRows, decisions: Sequence[FileDecision]) -> pa.Table:
    """Return a table with the decision and its reason, one row per file.

    Args:
        selected: the files.
        decisions: one per file.

    Returns:
        path (decoded), action (`remove`, `mask` or `rewrite`), num_rows to delete (NULL for a
        whole file without `numRecords`), deleted_ratio afterwards, reason.
    """
    paths: list[Any] = selected.files.column("path").to_pylist()
    counts = [
        selected.num_live_rows(number) if found is None else len(found)
        for number, found in enumerate(selected.positions)
    ]
    ratios = dead_ratios(selected)
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
