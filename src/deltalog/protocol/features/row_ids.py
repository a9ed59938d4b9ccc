"""Row ids and row commit versions, in the dialects of the draft and of today's protocol.

This module determines a table's dialect and its hidden columns, and handles both forms of the high
water mark. Writers assign the ids of new files.

Protocol: Row Tracking; Row IDs (draft)
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from deltalog._util.json import JsonObject, dumps, loads
from deltalog.errors import DeltaProtocolError, InvalidInputError
from deltalog.protocol.actions.model import CommitInfo, DomainMetadata, RowIdHighWaterMark

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from deltalog.protocol.actions.properties import TableProperties

ROW_TRACKING_DOMAIN: Final = "delta.rowTracking"
BACKFILL: Final = "ROW TRACKING BACKFILL"
UNBACKFILL: Final = "ROW TRACKING UNBACKFILL"
PRESERVED_TAG: Final = "delta.rowTracking.preserved"
NO_ROW_ID: Final = -1
"""The high water mark of a table that has not assigned any row id."""
MAX_ROW_ID: Final = (1 << 63) - 1


class Dialect(StrEnum):
    """How the log stores row ids."""

    CURRENT = "rowTracking"
    DRAFT = "rowIds"


def dialects_of(features: Collection[str]) -> tuple[Dialect, ...]:
    """Return the dialects of a table, today's dialect first; a table should have at most one.

    Args:
        features: current names of the features that the protocol supports.
    """
    return tuple(dialect for dialect in Dialect if dialect.value in features)


def dialect_of(features: Collection[str]) -> Dialect | None:
    """Return the dialect of a table, preferably today's; None if it has no row ids."""
    return next(iter(dialects_of(features)), None)


def is_enabled(dialect: Dialect | None, properties: TableProperties) -> bool:
    """Return whether every row has a stable id.

    If row ids are supported, but not enabled, a rewrite may change them.
    """
    if dialect is None:
        return False
    draft = dialect is Dialect.DRAFT
    return properties.enable_row_ids if draft else properties.enable_row_tracking


def is_assigning(dialect: Dialect | None, properties: TableProperties) -> bool:
    """Return whether new files get row ids: row ids are supported and not suspended."""
    # Even if row ids are supported but not enabled, "writers must assign new fresh row IDs".
    return dialect is not None and not properties.row_tracking_suspended


def row_id_column(dialect: Dialect | None, properties: TableProperties) -> str | None:
    """Return the hidden column of data files with the row ids of moved rows, or None."""
    if dialect is None:
        return None
    if dialect is Dialect.DRAFT:
        return properties.row_ids_physical_column_name
    return properties.materialized_row_id_column_name


def row_commit_version_column(dialect: Dialect | None, properties: TableProperties) -> str | None:
    """Return the hidden column with the row commit versions of moved rows; None in the draft."""
    if dialect is not Dialect.CURRENT:
        return None
    return properties.materialized_row_commit_version_column_name


def keeps_copied_ids(
    dialect: Dialect, features: Collection[str], properties: TableProperties
) -> bool:
    """Return whether writers preserve the ids of copied and updated rows in `dialect`.

    Ids are preserved if the dialect is enabled and its hidden column is written. In a table with
    both dialects, only the column of today's dialect is written.
    """
    written = dialect_of(features)
    return (
        is_enabled(dialect, properties)
        and is_enabled(written, properties)
        and row_id_column(dialect, properties) == row_id_column(written, properties)
    )


def check_change(
    features: Collection[str],
    properties: TableProperties,
    *,
    before: Collection[str] | None,
    was_enabled: bool,
    table: str,
    operation: str,
) -> None:
    """Raise for a commit after which rows with ids of the draft would have a second id.

    Args:
        features: current names of the features after the commit.
        properties: properties after the commit.
        before: current names of the features before the commit; None for a new table.
        was_enabled: whether today's row ids were enabled before.
        table: location, for the message.
        operation: what is attempted.

    Raises:
        InvalidInputError: the table would begin to support, or to enable, row tracking while it
            has row ids of the draft, or the other way round.
    """
    if len(dialects_of(features)) < len(Dialect):
        return
    gains = before is None or len(dialects_of(before)) < len(Dialect)
    if gains or (not was_enabled and is_enabled(Dialect.CURRENT, properties)):
        raise InvalidInputError(
            f"cannot {operation} {table}: the table would have both row tracking and the "
            "row ids of a protocol draft (table feature rowIds), with two ids for each row; "
            "alter.upgrade_row_ids() converts the draft's row ids to row tracking"
        )


def high_water_mark(
    domains: Mapping[str, DomainMetadata], action: RowIdHighWaterMark | None = None
) -> int | None:
    """Return the highest row id that may be in use, or None if no row id was ever assigned.

    A table that changed its dialect has both forms; the higher mark is used (requirement B-72).

    Raises:
        MalformedLogError: the domain's configuration has no high water mark.
    """
    marks = [] if action is None else [action.high_water_mark]
    domain = domains.get(ROW_TRACKING_DOMAIN)
    if domain is not None and not domain.removed:
        text = domain.configuration
        values = loads(text, ROW_TRACKING_DOMAIN) if isinstance(text, str) else dict(text)
        marks.append(JsonObject(values, ROW_TRACKING_DOMAIN).required("rowIdHighWaterMark", int))
    return max(marks, default=None)


def high_water_mark_action(
    dialect: Dialect, mark: int, *, preserved: bool
) -> DomainMetadata | RowIdHighWaterMark:
    """Return the action that stores a new high water mark in the table's dialect.

    Args:
        dialect: dialect of the table.
        mark: the highest row id that may be in use.
        preserved: whether the ids of copied rows were preserved, which the draft stores in this
            action.
    """
    if dialect is Dialect.DRAFT:
        return RowIdHighWaterMark(high_water_mark=mark, preserved_row_ids=preserved)
    text = dumps({"rowIdHighWaterMark": mark, "domainName": ROW_TRACKING_DOMAIN}).decode()
    return DomainMetadata(domain=ROW_TRACKING_DOMAIN, configuration=text)


def preserved_row_ids(
    commit: CommitInfo | None, action: RowIdHighWaterMark | None = None
) -> bool | None:
    """Return whether a commit preserved the ids of copied rows; None if this is not recorded.

    The draft records this in its own action, today's protocol in a tag of commitInfo (requirement
    B-73).
    """
    if action is not None:
        return action.preserved_row_ids
    tags = None if commit is None else commit.values.get("tags")
    flag = tags.get(PRESERVED_TAG) if isinstance(tags, dict) else None
    return None if flag is None else str(flag).lower() == "true"


def check_enabled(dialect: Dialect | None, properties: TableProperties, table: str) -> None:
    """Raise for a read of row ids that may not be stable.

    Raises:
        DeltaProtocolError: row ids are not enabled.

    Protocol: Reader Requirements for Row Tracking
    """
    if not is_enabled(dialect, properties):
        raise DeltaProtocolError(
            f"cannot read row ids or row commit versions of {table}: row tracking is not enabled; "
            "set delta.enableRowTracking=true first"
        )
