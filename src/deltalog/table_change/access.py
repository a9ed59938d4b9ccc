"""Who can use a table after a change: deltalog itself must, and others may lose it.

Protocol: Protocol Evolution
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.features.protocol_change import supported_features
from deltalog.features.support import check_writable, engines_for

if TYPE_CHECKING:
    from deltalog.actions.model import Protocol
    from deltalog.configuration import TableConfiguration
    from deltalog.features.registry import Engine


def check_usable(
    configuration: TableConfiguration, *, before: TableConfiguration | None = None
) -> None:
    """Refuse a table that deltalog itself could not read and write any more.

    A change that locks its author out could not be taken back by that author.

    Args:
        configuration: of the table to be.
        before: of the table as it was. One that a catalog manages already goes on through it.

    Raises:
        DeltaProtocolError: as `features.support.check_writable`, and where protocol, schema and
            properties contradict.
    """
    check_writable(
        configuration,
        table="the table as it would be",
        has_log_tail=before is not None and before.is_catalog_managed,
    )
    # Worked out on access; they raise where protocol, schema and properties contradict.
    _ = configuration.physical_schema
    _ = configuration.partition_columns
    _ = configuration.in_commit_timestamps


def engines_losing_access(
    before: Protocol, after: Protocol, *, writing: bool = False
) -> tuple[Engine, ...]:
    """The other engines that could read, or write, the table before and cannot any more."""
    could = engines_for(tuple(supported_features(before).values()), writing=writing)
    can = engines_for(tuple(supported_features(after).values()), writing=writing)
    return tuple(engine for engine in could if engine not in can)
