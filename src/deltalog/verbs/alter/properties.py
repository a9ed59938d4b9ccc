"""Verbs that set and unset table properties, and set the name and description of a table.

Protocol: Table Properties
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from deltalog.actions.properties import CONSTRAINT_PREFIX
from deltalog.actions.settable import canonical_key
from deltalog.errors import InvalidInputError
from deltalog.features.iceberg_compat import enabled_versions, with_row_tracking
from deltalog.table_change import changed_table, is_set_by_writers
from deltalog.verbs.alter.iceberg import check_files
from deltalog.verbs.alter.row_tracking import stage_all_row_ids
from deltalog.verbs.alter.staging import Alteration, change_properties

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.transaction import PendingTransaction

_COMMENT: Final = "comment"


@dataclass(frozen=True, slots=True)
class SetTableProperties(Alteration):
    """Set table properties, and upgrade the protocol if they need it.

    Args:
        properties: key → text; `delta.feature.…` and `delta.min…Version` change the protocol.
        raise_if_not_exists: whether unknown `delta.` properties raise.
    """

    properties: Mapping[str, str]
    raise_if_not_exists: bool = True
    name: ClassVar[str] = "SET TBLPROPERTIES"

    def change(self, transaction: PendingTransaction) -> dict[str, Any]:
        """Change the metadata; enabling row tracking also assigns row ids to existing files.

        Raises:
            InvalidInputError: a property is unknown or invalid, or contradicts the table.
            UnsupportedFeatureError: deltalog could not write the table afterwards.
        """
        if not self.properties:
            raise InvalidInputError("there are no table properties to set")
        for key in self.properties:
            if key.lower().startswith(CONSTRAINT_PREFIX):
                raise InvalidInputError(
                    f"cannot set {key} as a property: add_constraint checks the rows that are there"
                )
        before, lenient = transaction.configuration, not self.raise_if_not_exists
        # As in Delta Spark, `comment` is stored as the table's description.
        stored = {key: text for key, text in self.properties.items() if key != _COMMENT}
        spelled = {_spelled(key, lenient=lenient): text for key, text in stored.items()}
        if len(spelled) < len(stored):
            raise InvalidInputError("a table property is given twice, in different spellings")
        after = change_properties(
            transaction,
            with_row_tracking({**before.metadata.configuration, **spelled}, before.properties),
            description=self.properties.get(_COMMENT),
            arbitrary_properties=lenient,
        )
        if after.row_ids_enabled and not before.row_ids_enabled:
            stage_all_row_ids(transaction)
        compatible = enabled_versions(after.properties)
        is_new = compatible != enabled_versions(before.properties)
        if compatible and is_new and transaction.snapshot is not None:
            check_files(transaction, transaction.snapshot, compatible[0])
        return {"properties": dict(self.properties)}


@dataclass(frozen=True, slots=True)
class UnsetTableProperties(Alteration):
    """Remove table properties, so that their defaults apply."""

    keys: Sequence[str]
    raise_if_not_exists: bool = True
    name: ClassVar[str] = "UNSET TBLPROPERTIES"

    def change(self, transaction: PendingTransaction) -> dict[str, Any]:
        """Change the metadata.

        Raises:
            InvalidInputError: the table does not have the property, or it is a constraint or is
                maintained by writers.
        """
        configuration = dict(transaction.configuration.metadata.configuration)
        by_folded = {key.lower(): key for key in configuration}
        for key in self.keys:
            if key.lower().startswith(CONSTRAINT_PREFIX):
                raise InvalidInputError(f"cannot unset {key}: drop the constraint")
            found = by_folded.get(key.lower())
            if found is not None and is_set_by_writers(found):
                raise InvalidInputError(f"table property {found} is set by writers themselves")
            if found is None and self.raise_if_not_exists:
                raise InvalidInputError(
                    f"cannot unset the table property {key!r}: {transaction.store.root} does not "
                    "have it"
                )
            configuration.pop(found or key, None)
        change_properties(transaction, configuration)
        return {"properties": list(self.keys), "ifExists": not self.raise_if_not_exists}


@dataclass(frozen=True, slots=True)
class SetTableName(Alteration):
    """Set the table's name in its metadata; the name in a catalog does not change."""

    table_name: str
    name: ClassVar[str] = "UPDATE TABLE METADATA"

    def change(self, transaction: PendingTransaction) -> dict[str, str]:
        """Change the metadata."""
        changed = changed_table(transaction.configuration, name=self.table_name)
        transaction.set_configuration(changed)
        return {"name": self.table_name}


@dataclass(frozen=True, slots=True)
class SetTableDescription(Alteration):
    """Set the table's description."""

    description: str
    name: ClassVar[str] = "SET TBLPROPERTIES"

    def change(self, transaction: PendingTransaction) -> dict[str, Any]:
        """Change the metadata."""
        changed = changed_table(transaction.configuration, description=self.description)
        transaction.set_configuration(changed)
        return {"properties": {_COMMENT: self.description}}


def _spelled(key: str, *, lenient: bool) -> str:
    try:
        return canonical_key(key)
    except InvalidInputError:
        if lenient:
            return key
        raise
