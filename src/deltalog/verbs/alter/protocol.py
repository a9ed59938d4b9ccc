"""Verbs that upgrade the protocol: add features, raise versions.

Protocol: Protocol Evolution, Table Features
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from deltalog.errors import InvalidInputError
from deltalog.features.protocol_change import requested_protocol
from deltalog.table_change import changed_table
from deltalog.verbs.alter.staging import Alteration, change_features, who_loses_access

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.actions import Protocol
    from deltalog.transaction import PendingTransaction


@dataclass(frozen=True, slots=True)
class AddFeature(Alteration):
    """Add table features to the protocol; properties or columns that use them are set separately.

    Args:
        features: one or several, by name.
        allow_protocol_versions_increase: whether reader and writer version may be raised.

    Protocol: Table Features
    """

    features: str | Sequence[str]
    allow_protocol_versions_increase: bool = False
    name: ClassVar[str] = "ADD FEATURE"  # deltalake's; Delta Spark sets a property instead

    def change(self, transaction: PendingTransaction) -> dict[str, Any]:
        """Change the protocol.

        Raises:
            InvalidInputError: the feature is unknown, or versions would have to be raised.
            UnsupportedFeatureError: deltalog could not write the table afterwards.
        """
        given = [self.features] if isinstance(self.features, str) else self.features
        names = [str(feature) for feature in given]
        before = transaction.configuration.protocol
        after = changed_table(transaction.configuration, features=names).protocol
        rises = (
            after.min_reader_version > before.min_reader_version
            or after.min_writer_version > before.min_writer_version
        )
        if rises and not self.allow_protocol_versions_increase:
            lost = who_loses_access(before, after)
            raise InvalidInputError(
                f"cannot add {', '.join(names)} to {transaction.store.root}: the protocol would "
                f"rise from {_versions(before)} to {_versions(after)}"
                + (f", and {lost}" if lost else "")
                + "; pass allow_protocol_versions_increase=True if that is meant"
            )
        change_features(transaction, names)
        return {"name": names}


@dataclass(frozen=True, slots=True)
class UpgradeProtocol(Alteration):
    """Raise the protocol versions; lower versions change nothing, as in Delta Spark.

    Protocol: Protocol Evolution
    """

    reader_version: int
    writer_version: int
    name: ClassVar[str] = "UPGRADE PROTOCOL"

    def change(self, transaction: PendingTransaction) -> dict[str, Any]:
        """Change the protocol.

        Raises:
            InvalidInputError: a version is not an integer, or does not exist.
        """
        versions: tuple[object, ...] = (self.reader_version, self.writer_version)
        if not all(type(version) is int for version in versions):
            raise InvalidInputError(
                f"expected protocol versions as whole numbers, found {versions}"
            )
        asked, _ = requested_protocol(
            {
                "delta.minReaderVersion": str(self.reader_version),
                "delta.minWriterVersion": str(self.writer_version),
            }
        )
        change_features(transaction, protocol=asked)
        return protocol_parameters(transaction)


def protocol_parameters(transaction: PendingTransaction) -> dict[str, Any]:
    """Return the protocol as Delta Spark's operationParameters show it."""
    protocol = transaction.configuration.protocol
    readers, writers = protocol.reader_features, protocol.writer_features
    return {
        "newProtocol": {
            "minReaderVersion": protocol.min_reader_version,
            "minWriterVersion": protocol.min_writer_version,
            "readerFeatures": None if readers is None else list(readers),
            "writerFeatures": None if writers is None else list(writers),
        }
    }


def _versions(protocol: Protocol) -> str:
    return f"({protocol.min_reader_version}, {protocol.min_writer_version})"
