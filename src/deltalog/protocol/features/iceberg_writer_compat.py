"""Iceberg writer compatibility: the requirements of V1, so that Iceberg engines could write tables.

Protocol: RFC IcebergWriterCompatV1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from deltalog.errors import InvalidInputError
from deltalog.protocol.column_mapping import Mode, field_id, physical_name, physical_name_by_id
from deltalog.schema.columns import walk, walk_types
from deltalog.schema.types import BYTE, SHORT, DataType, MapType, StructType

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from deltalog.protocol.actions.properties import TableProperties

FEATURE: Final = "icebergWriterCompatV1"
_ALLOWED: Final = frozenset({
    *("appendOnly", "columnMapping", FEATURE, "icebergCompatV2", "domainMetadata"),
    *("vacuumProtocolCheck", "v2Checkpoint", "inCommitTimestamp", "clustering", "timestampNtz"),
    *("typeWidening", "catalogManaged"),
})  # fmt: skip
# The features that a protocol may list, but that must not be active.
_INACTIVE: Final = (
    "invariants", "changeDataFeed", "checkConstraints", "identityColumns", "generatedColumns",
)  # fmt: skip


def with_required_properties(
    configuration: Mapping[str, str], properties: TableProperties
) -> dict[str, str]:
    """Return a new table's properties, with the properties that writer compatibility requires.

    Properties that are set explicitly are not changed; `check` raises if they are invalid.
    """
    if not properties.enable_iceberg_writer_compat_v1:
        return dict(configuration)
    needed = {
        "delta.columnMapping.mode": Mode.ID.value,
        "delta.enableIcebergCompatV2": "true",
    }
    return {**needed, **configuration}


def check(
    features: Collection[str],
    properties: TableProperties,
    schema: StructType,
    *,
    before: StructType | None,
    is_active: Callable[[str], bool],
) -> None:
    """Raise for a table that Iceberg engines could not write.

    Args:
        features: current names of the features that the protocol supports.
        properties: properties of the table.
        schema: schema of the table.
        before: the schema before the change; None for a new table.
        is_active: whether a feature has an effect.

    Raises:
        InvalidInputError: icebergCompatV2 or column mapping by id is off, a feature is not allowed,
            a physical name is not `col-<id>`, a column has a type that Iceberg lacks, or the
            struct that is the key of a map changes.

    Protocol: Writer Requirements for IcebergWriterCompatV1
    """
    if not properties.enable_iceberg_writer_compat_v1:
        return
    if not properties.enable_iceberg_compat_v2:
        raise InvalidInputError(f"{FEATURE} needs delta.enableIcebergCompatV2 = true as well")
    if properties.column_mapping_mode != Mode.ID:
        raise InvalidInputError(f"{FEATURE} needs delta.columnMapping.mode = id")
    extra = sorted(set(features) - _ALLOWED - set(_INACTIVE))
    active = [name for name in _INACTIVE if name in features and is_active(name)]
    if extra or active:
        raise InvalidInputError(
            f"{FEATURE} does not allow {', '.join([*extra, *active])}: disable these features, or "
            "do not set delta.enableIcebergWriterCompatV1"
        )
    _check_columns(schema)
    if before is not None:
        _check_map_keys(before, schema)


def _check_columns(schema: StructType) -> None:
    for path, field in walk(schema):
        name, number = ".".join(path), field_id(field)
        if number is None or physical_name(field) != physical_name_by_id(number):
            raise InvalidInputError(
                f"{FEATURE} needs the physical name {physical_name_by_id(number or 0)!r} of column "
                f"{name!r}, found {physical_name(field)!r}: only a new table can have such names"
            )
        for _, found in walk_types(field.type):
            if found in {BYTE, SHORT}:
                raise InvalidInputError(
                    f"{FEATURE} does not allow the type {found} of column {name!r}: use integer"
                )


def _check_map_keys(before: StructType, after: StructType) -> None:
    known = _map_keys(before)
    for key, (name, found) in _map_keys(after).items():
        if key in known and known[key][1] != found:
            raise InvalidInputError(
                f"{FEATURE} does not allow changes of map keys: cannot change the key in {name!r} "
                f"from {known[key][1]} to {found}"
            )


def _map_keys(schema: StructType) -> dict[Any, tuple[str, DataType]]:
    """Return the structs that are map keys, by column id and position in the column."""
    return {
        (field_id(field), place): (".".join(path), found.key_type)
        for path, field in walk(schema)
        for place, found in walk_types(field.type)
        if isinstance(found, MapType) and isinstance(found.key_type, StructType)
    }
