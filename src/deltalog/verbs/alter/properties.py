"""Table properties set and unset; name and description of the table.

Protocol: Table Properties
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltalog.actions.properties import CONSTRAINT_PREFIX
from deltalog.actions.settable import canonical_key
from deltalog.errors import InvalidInputError
from deltalog.features.iceberg_compat import enabled_versions
from deltalog.table_change import changed_table, is_set_by_writers
from deltalog.verbs.alter.row_tracking import stage_all_row_ids
from deltalog.verbs.alter.staging import change_properties, record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.transaction import PendingTransaction

_COMMENT: Final = "comment"


def set_table_properties(
    pending: PendingTransaction,
    properties: Mapping[str, str],
    *,
    raise_if_not_exists: bool = True,
) -> None:
    """Set properties, and raise the protocol as they need it.

    Args:
        pending: the transaction.
        properties: key → text; `delta.feature.…` and `delta.min…Version` ask for a protocol.
        raise_if_not_exists: whether `delta.` properties that nobody knows are refused.

    Raises:
        InvalidInputError: a property is none, has a bad value, or does not go with the table.
        UnsupportedFeatureError: deltalog could not write the table any more.
    """
    if not properties:
        raise InvalidInputError("there are no table properties to set")
    for key in properties:
        if key.lower().startswith(CONSTRAINT_PREFIX):
            raise InvalidInputError(
                f"cannot set {key} as a property: add_constraint checks the rows that are there"
            )
    before = pending.configuration
    # As in the reference, this one is no property of the table but its description.
    stored = {key: text for key, text in properties.items() if key != _COMMENT}
    spelled = {_spelled(key, lenient=not raise_if_not_exists): text for key, text in stored.items()}
    if len(spelled) < len(stored):
        raise InvalidInputError("a table property is given twice, in different spellings")
    after = change_properties(
        pending,
        {**before.metadata.configuration, **spelled},
        description=properties.get(_COMMENT),
        arbitrary_properties=not raise_if_not_exists,
    )
    if after.row_ids_enabled and not before.row_ids_enabled:
        stage_all_row_ids(pending)
    if enabled_versions(after.properties) and not enabled_versions(before.properties):
        _check_files_for_iceberg(pending)
    record(pending, "SET TBLPROPERTIES", properties=dict(properties))


def unset_table_properties(
    pending: PendingTransaction, keys: Sequence[str], *, raise_if_not_exists: bool = True
) -> None:
    """Take properties away; what they were set to is then the default.

    Raises:
        InvalidInputError: the table does not have the property, or it is a constraint or none
            that a user may change.
    """
    configuration = dict(pending.configuration.metadata.configuration)
    by_folded = {key.lower(): key for key in configuration}
    for key in keys:
        if key.lower().startswith(CONSTRAINT_PREFIX):
            raise InvalidInputError(f"cannot unset {key}: drop the constraint")
        found = by_folded.get(key.lower())
        if found is not None and is_set_by_writers(found):
            raise InvalidInputError(f"table property {found} is set by writers themselves")
        if found is None:
            if raise_if_not_exists:
                raise InvalidInputError(
                    f"cannot unset the table property {key!r}: {pending.store.root} does not "
                    "have it"
                )
            continue
        configuration.pop(found, None)
    change_properties(pending, configuration)
    record(pending, "UNSET TBLPROPERTIES", properties=list(keys), ifExists=not raise_if_not_exists)


def set_table_name(pending: PendingTransaction, name: str) -> None:
    """Name the table in its own metadata; catalogs have names of their own."""
    pending.set_configuration(changed_table(pending.configuration, name=name))
    record(pending, "UPDATE TABLE METADATA", name=name)


def set_table_description(pending: PendingTransaction, description: str) -> None:
    """Describe the table."""
    pending.set_configuration(changed_table(pending.configuration, description=description))
    record(pending, "SET TBLPROPERTIES", properties={_COMMENT: description})


def _spelled(key: str, *, lenient: bool) -> str:
    try:
        return canonical_key(key)
    except InvalidInputError:
        if lenient:
            return key
        raise


def _check_files_for_iceberg(pending: PendingTransaction) -> None:
    """Iceberg's readers know no deletion vectors."""
    if pending.snapshot is None:
        return
    vectors = pending.snapshot.files(["deletionVector"]).column("deletionVector")
    if vectors.null_count < len(vectors):
        raise InvalidInputError(
            "cannot switch on Iceberg compatibility: files have deletion vectors; rewrite them "
            "first"
        )
