"""What every change of a table's metadata does: change it, and say so in the history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltalog.table_change import changed_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalog.schema import Field, StructType
    from deltalog.transaction import PendingTransaction


def record(pending: PendingTransaction, operation: str, **parameters: Any) -> None:
    """Name the operation as the history shall tell it, in the reference's words."""
    pending.operation = operation
    pending.parameters.update(parameters)


def change_schema(pending: PendingTransaction, schema: StructType) -> None:
    """Give the table another schema that its files can follow.

    Raises:
        InvalidInputError: they cannot, or the schema is none that a table may have.
    """
    pending.set_configuration(changed_table(pending.configuration, schema=schema))


def change_properties(pending: PendingTransaction, configuration: Mapping[str, str]) -> None:
    """Give the table other properties, and the protocol that they need.

    Raises:
        InvalidInputError: a property is none, or the change is none that is allowed.
    """
    pending.set_configuration(changed_table(pending.configuration, configuration=configuration))


def described(field: Field, name: str | None = None) -> dict[str, Any]:
    """A column as Delta Spark writes it into the history: parts of nested types are left out."""
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
