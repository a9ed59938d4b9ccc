"""The protocol raised: features added, versions upgraded.

Protocol: Protocol Evolution, Table Features
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltalog.errors import InvalidInputError
from deltalog.features.protocol_change import requested_protocol
from deltalog.table_change import changed_table
from deltalog.verbs.alter.staging import change_features, record, who_loses_access

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.actions import Protocol
    from deltalog.transaction import PendingTransaction


def add_feature(
    pending: PendingTransaction,
    features: str | Sequence[str],
    *,
    allow_protocol_versions_increase: bool = False,
) -> None:
    """Let the table have features; what puts them to use (a property, a column) is set apart.

    Args:
        pending: the transaction.
        features: one or several, by name.
        allow_protocol_versions_increase: whether reader and writer version may rise for it.

    Raises:
        InvalidInputError: nobody knows the feature, or versions would have to rise.
        UnsupportedFeatureError: deltalog could not write the table any more.

    Protocol: Table Features
    """
    names = [features] if isinstance(features, str) else list(features)
    before = pending.configuration.protocol
    asked = [str(name) for name in names]
    after = changed_table(pending.configuration, features=asked).protocol
    rises = (
        after.min_reader_version > before.min_reader_version
        or after.min_writer_version > before.min_writer_version
    )
    if rises and not allow_protocol_versions_increase:
        lost = who_loses_access(before, after)
        raise InvalidInputError(
            f"cannot add {', '.join(names)} to {pending.store.root}: the protocol would rise from "
            f"{_versions(before)} to {_versions(after)}"
            + (f", and {lost}" if lost else "")
            + "; pass allow_protocol_versions_increase=True if that is meant"
        )
    change_features(pending, asked)
    _record_upgrade(pending)


def upgrade_protocol(pending: PendingTransaction, reader_version: int, writer_version: int) -> None:
    """Raise the protocol; lower versions than the table's change nothing, as in the reference.

    Raises:
        InvalidInputError: a version is no whole number that the protocol has.

    Protocol: Protocol Evolution
    """
    versions: tuple[object, ...] = (reader_version, writer_version)
    if not all(type(version) is int for version in versions):
        raise InvalidInputError(f"expected protocol versions as whole numbers, found {versions}")
    asked, _ = requested_protocol(
        {
            "delta.minReaderVersion": str(reader_version),
            "delta.minWriterVersion": str(writer_version),
        }
    )
    change_features(pending, protocol=asked)
    _record_upgrade(pending)


def shown(protocol: Protocol) -> dict[str, Any]:
    """A protocol as the history shows it."""
    readers, writers = protocol.reader_features, protocol.writer_features
    return {
        "minReaderVersion": protocol.min_reader_version,
        "minWriterVersion": protocol.min_writer_version,
        "readerFeatures": None if readers is None else list(readers),
        "writerFeatures": None if writers is None else list(writers),
    }


def _record_upgrade(pending: PendingTransaction) -> None:
    record(pending, "UPGRADE PROTOCOL", newProtocol=shown(pending.configuration.protocol))


def _versions(protocol: Protocol) -> str:
    return f"({protocol.min_reader_version}, {protocol.min_writer_version})"
