"""The base of all verbs that change metadata."""

from __future__ import annotations

import logging
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from deltalog.table_change import changed_table, engines_losing_access
from deltalog.verbs.verb import Nothing, Verb

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.actions import Protocol
    from deltalog.configuration import TableConfiguration
    from deltalog.engine import Engine
    from deltalog.schema import Field, StructType
    from deltalog.transaction import PendingTransaction

logger: logging.Logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Alteration(Verb[Nothing]):
    """A verb that changes metadata; it commits only if something changed."""

    skips_empty: ClassVar[bool] = True

    @abstractmethod
    def change(self, transaction: PendingTransaction) -> Mapping[str, Any]:
        """Stage the change; return Delta Spark's operationParameters for it."""

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Nothing:
        """Stage the change, and record its parameters."""
        del engine
        transaction.parameters.update(self.change(transaction))
        return Nothing()


def change_schema(pending: PendingTransaction, schema: StructType) -> None:
    """Stage another schema that fits the existing files.

    Raises:
        InvalidInputError: the files do not fit it, or no table may have the schema.
    """
    pending.set_configuration(changed_table(pending.configuration, schema=schema))


def change_properties(
    pending: PendingTransaction, configuration: Mapping[str, str], **options: Any
) -> TableConfiguration:
    """Stage other properties, and the protocol that they need.

    Raises:
        InvalidInputError: a property is invalid, or the change is not allowed.
    """
    return _change(pending, configuration=configuration, **options)


def change_features(
    pending: PendingTransaction, features: Sequence[str] = (), **options: Any
) -> TableConfiguration:
    """Stage more table features.

    Raises:
        InvalidInputError: a feature is unknown.
        UnsupportedFeatureError: deltalog could not write the table afterwards.
    """
    return _change(pending, features=features, **options)


def who_loses_access(before: Protocol, after: Protocol) -> str:
    """Describe which engines lose read or write access to the table; empty if none does."""
    reading = engines_losing_access(before, after)
    writing = [
        engine
        for engine in engines_losing_access(before, after, writing=True)
        if engine not in reading
    ]
    parts = [f"{' and '.join(reading)} cannot read it any more"] if reading else []
    if writing:
        parts.append(f"{' and '.join(writing)} cannot write it any more")
    return ", ".join(parts)


def _change(pending: PendingTransaction, **options: Any) -> TableConfiguration:
    before = pending.configuration.protocol
    changed = changed_table(pending.configuration, **options)
    pending.set_configuration(changed)
    lost = who_loses_access(before, changed.protocol)
    if lost:
        # A protocol upgrade is hard to undo, so the caller is warned.
        logger.warning("changing the protocol of %s: %s", pending.store.root, lost)
    return changed


def described(field: Field, name: str | None = None) -> dict[str, Any]:
    """Return a column as in Delta Spark's operationParameters, without parts of nested types."""
    return {
        "name": name or field.name,
        "type": getattr(field.type, "type", str(field.type)),
        "nullable": field.nullable,
        "metadata": {
            key: value
            for key, value in field.metadata.items()
            if not key.startswith("delta.columnMapping.")
        },
    }
