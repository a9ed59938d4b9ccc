"""Iceberg compatibility: the requirements of V1, V2 and V3 for schema and properties.

The requirements of writer compatibility V1 let Iceberg engines write tables.

Protocol: Iceberg Compatibility V1, Iceberg Compatibility V2; RFC IcebergCompatV3, RFC
IcebergWriterCompatV1
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from deltalog import expressions
from deltalog._util.escaping import name_key
from deltalog._util.similar_names import similar_to
from deltalog.errors import InvalidInputError
from deltalog.protocol.actions.properties import TableProperties
from deltalog.protocol.column_mapping import Mode, field_id, physical_name, physical_name_by_id
from deltalog.protocol.features.declarations import default_expressions
from deltalog.schema.columns import map_fields, walk, walk_types
from deltalog.schema.evolve import widening_changes
from deltalog.schema.types import (
    BYTE,
    SHORT,
    VOID,
    ArrayType,
    DataType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
    VariantType,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence


NESTED_IDS_KEY: Final = "delta.columnMapping.nested.ids"


ROW_ID_FIELD: Final = 2147483540
"""The field id of materialized row ids in data files of V3: Iceberg's `_row_id`."""
ROW_COMMIT_VERSION_FIELD: Final = 2147483539
"""The field id of materialized row commit versions: Iceberg's `_last_updated_sequence_number`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompatibilityRules:
    """The requirements of a version of Iceberg compatibility.

    Args:
        format_version: version of the Iceberg metadata that such a table can have.
        allows_nested: whether columns may be lists and maps.
        allows_variants: whether columns may be variants.
        allows_vectors: whether rows may be deleted by deletion vectors.
        allows_vectors_feature: whether the protocol may support deletion vectors.
        needs_row_tracking: whether rows have ids.
        needs_literal_defaults: whether defaults of columns are literals.
    """

    format_version: int = 2
    allows_nested: bool = True
    allows_variants: bool = False
    allows_vectors: bool = False
    allows_vectors_feature: bool = True
    needs_row_tracking: bool = False
    needs_literal_defaults: bool = False


_VECTORS_FEATURE: Final = "the feature of deletion vectors"
VERSIONS: Final[Mapping[int, CompatibilityRules]] = {
    1: CompatibilityRules(allows_nested=False, allows_vectors_feature=False),
    2: CompatibilityRules(),
    3: CompatibilityRules(
        format_version=3,
        allows_variants=True,
        allows_vectors=True,
        needs_row_tracking=True,
        needs_literal_defaults=True,
    ),
}


def enabled_versions(properties: TableProperties) -> tuple[int, ...]:
    """Return the enabled versions of Iceberg compatibility."""
    flags = (
        properties.enable_iceberg_compat_v1,
        properties.enable_iceberg_compat_v2,
        properties.enable_iceberg_compat_v3,
    )
    return tuple(number for number, is_on in enumerate(flags, 1) if is_on)


def format_version(properties: TableProperties) -> int | None:
    """Return the version of Iceberg metadata that a table can have; None if not compatible."""
    versions = enabled_versions(properties)
    return VERSIONS[versions[0]].format_version if versions else None


def with_required_properties(
    configuration: Mapping[str, str], properties: TableProperties
) -> dict[str, str]:
    """Return a table's properties, with the properties that Iceberg compatibility requires.

    Properties that are set explicitly are not changed; `check` raises if they are invalid.
    """
    versions = enabled_versions(properties)
    if not versions:
        return dict(configuration)
    needed = {"delta.columnMapping.mode": Mode.NAME.value}
    if VERSIONS[versions[0]].needs_row_tracking:
        needed["delta.enableRowTracking"] = "true"
    return {**needed, **configuration}


def with_row_tracking(configuration: Mapping[str, str], before: TableProperties) -> dict[str, str]:
    """Return a table's new properties, with row tracking if Iceberg compatibility requires it.

    Properties that are set explicitly are not changed; `check` raises if they are invalid.

    Args:
        configuration: all new properties of the table.
        before: the current properties.
    """
    versions = enabled_versions(TableProperties(dict(configuration)))
    is_new = versions != enabled_versions(before)
    if not is_new or not any(VERSIONS[one].needs_row_tracking for one in versions):
        return dict(configuration)
    return {TableProperties.enable_row_tracking.key: "true", **configuration}


def check(features: Collection[str], properties: TableProperties, schema: StructType) -> None:
    """Raise for a table that Iceberg readers could not read.

    Args:
        features: current names of the features that the protocol supports.
        properties: properties of the table.
        schema: schema of the table.

    Raises:
        InvalidInputError: column mapping or row tracking is off, deletion vectors are on, two
            versions are enabled, a column has a type that Iceberg lacks, or a default is not a
            literal.

    Protocol: Writer Requirements for IcebergCompatV1, IcebergCompatV2, IcebergCompatV3
    """
    versions = enabled_versions(properties)
    if not versions:
        return
    name, rules = f"icebergCompatV{versions[0]}", VERSIONS[versions[0]]
    if len(versions) > 1:
        raise InvalidInputError(
            f"expected one version of Iceberg compatibility, found "
            f"{' and '.join(map(str, versions))}: set the properties of the others to false"
        )
    if properties.column_mapping_mode == Mode.NONE:
        raise InvalidInputError(
            f"{name} needs column mapping: set delta.columnMapping.mode = name as well, or use "
            f"optimize.upgrade_uniform({versions[0]}), which sets all properties"
        )
    if rules.needs_row_tracking and not properties.enable_row_tracking:
        raise InvalidInputError(
            f"{name} needs row tracking: set delta.enableRowTracking = true as well"
        )
    # V1 forbids the table feature `deletionVectors`. V2 forbids only new vectors.
    has_vectors = properties.enable_deletion_vectors and not rules.allows_vectors
    if has_vectors or (not rules.allows_vectors_feature and "deletionVectors" in features):
        version = versions[0] if rules.allows_vectors_feature else 2
        what = "deletion vectors" if has_vectors else _VECTORS_FEATURE
        drop = "" if rules.allows_vectors_feature else ", drop the feature 'deletionVectors'"
        raise InvalidInputError(
            f"{name} does not allow {what}: leave delta.enableDeletionVectors out of the "
            "properties of a new table; for an existing one, use optimize.upgrade_uniform("
            f"{version}), which rewrites files that have them{drop}; or set "
            "delta.enableIcebergCompatV3 = true instead, which allows them, as tables that a "
            "catalog manages may need"
        )
    _check_types(name, schema, rules)
    if rules.needs_literal_defaults:
        _check_defaults(name, schema)


def check_partitioning(
    properties: TableProperties, before: Sequence[str], after: Sequence[str]
) -> None:
    """Raise if replacing the rows of a partitioned table would change its partitioning.

    Args:
        properties: properties of the new table.
        before: partition columns of the current table.
        after: partition columns of the new table.

    Raises:
        InvalidInputError: the names differ.

    Protocol: Writer Requirements for IcebergCompatV1, IcebergCompatV2, IcebergCompatV3
    """
    versions = enabled_versions(properties)
    folded = [[name_key(name) for name in names] for names in (before, after)]
    if versions and before and folded[0] != folded[1]:
        raise InvalidInputError(
            f"icebergCompatV{versions[0]} does not allow changes of partition columns: expected "
            f"{list(before)}, found {list(after)}; write to another table"
        )


def check_formats(properties: TableProperties, before: TableProperties | None) -> None:
    """Raise for metadata formats that are newly enabled, but cannot be written.

    Raises:
        InvalidInputError: Hudi or an unknown format is requested, or Iceberg without Iceberg
            compatibility.
    """
    formats = properties.universal_format_enabled_formats
    known = () if before is None else before.universal_format_enabled_formats
    if "hudi" in formats and "hudi" not in known:
        raise InvalidInputError(
            "cannot write Hudi metadata: expected iceberg or nothing in "
            "delta.universalFormat.enabledFormats; use an engine that writes Hudi"
        )
    if unknown := [one for one in formats if one not in {"iceberg", "hudi", *known}]:
        raise InvalidInputError(
            f"cannot write metadata in the format {unknown[0]!r}: expected iceberg or nothing in "
            f"delta.universalFormat.enabledFormats{similar_to(unknown[0], ['iceberg'])}"
        )
    is_compatible = bool(enabled_versions(properties))
    was_compatible = before is not None and bool(enabled_versions(before))
    if "iceberg" in formats and not is_compatible and (was_compatible or "iceberg" not in known):
        raise InvalidInputError(
            "delta.universalFormat.enabledFormats = iceberg needs Iceberg compatibility: set "
            "delta.enableIcebergCompatV2 = true as well"
        )


def with_nested_ids(schema: StructType, highest: int) -> tuple[StructType, int]:
    """Return the schema with ids for list elements, map keys and map values; and the highest id.

    A field stores the ids of its own lists and maps, by physical path; existing ids are preserved.

    Protocol: Iceberg Compatibility V2 (`delta.columnMapping.nested.ids`)
    """
    known = [
        number
        for _, field in walk(schema)
        for number in (field_id(field) or 0, *_nested_ids(field).values())
    ]
    last = max([highest, *known])

    def complete(field: Field) -> Field:
        nonlocal last
        ids = _nested_ids(field)
        found: dict[str, int] = {}
        for path in _nested_paths(field.type, physical_name(field)):
            if path not in ids:
                last += 1
            found[path] = ids.get(path, last)
        return replace(field, metadata={**field.metadata, NESTED_IDS_KEY: found})

    return map_fields(schema, complete), last


def is_iceberg_promotion(before: DataType, after: DataType) -> bool:
    """Return whether Iceberg 2 supports a type promotion, such as int to long."""
    if not isinstance(before, PrimitiveType) or not isinstance(after, PrimitiveType):
        return False
    if before.is_decimal and after.is_decimal:
        return before.scale == after.scale and before.precision < after.precision
    one, other = before.primitive, after.primitive
    return one.family is other.family and 0 < one.bits < other.bits


def _nested_ids(field: Field) -> dict[str, int]:
    entry = field.metadata.get(NESTED_IDS_KEY)
    if not isinstance(entry, dict):
        return {}
    return {path: int(number) for path, number in entry.items()}


def _nested_paths(data_type: DataType, path: str) -> Iterator[str]:
    """Yield the paths of nested elements, keys and values, in Delta Spark's order of numbering."""
    match data_type:
        case ArrayType():
            yield f"{path}.element"
            yield from _nested_paths(data_type.element_type, f"{path}.element")
        case MapType():
            yield f"{path}.key"
            yield f"{path}.value"
            yield from _nested_paths(data_type.key_type, f"{path}.key")
            yield from _nested_paths(data_type.value_type, f"{path}.value")
        case _:
            return


def _check_defaults(name: str, schema: StructType) -> None:
    for column, text in default_expressions(schema).items():
        if not isinstance(expressions.parse_sql(text), expressions.Literal):
            raise InvalidInputError(
                f"{name} does not allow the default of column {column!r}: expected a literal, "
                f"found {text}"
            )


def _check_types(name: str, schema: StructType, rules: CompatibilityRules) -> None:
    for path, field in walk(schema):
        for _, found in walk_types(field.type):
            is_nested = isinstance(found, ArrayType | MapType) and not rules.allows_nested
            is_variant = isinstance(found, VariantType) and not rules.allows_variants
            is_draft = isinstance(found, PrimitiveType) and found.primitive.is_declared
            if is_nested or is_variant or is_draft or found == VOID:
                other = "; set delta.enableIcebergCompatV2 instead" if is_nested else ""
                raise InvalidInputError(
                    f"{name} does not allow the type {found} of column {'.'.join(path)!r}{other}"
                )
        for change in widening_changes(field):
            if not is_iceberg_promotion(change.from_type, change.to_type):
                raise InvalidInputError(
                    f"{name} does not allow the type change of column {'.'.join(path)!r} from "
                    f"{change.from_type} to {change.to_type}"
                )


# --- Writer compatibility

_WRITER: Final = "icebergWriterCompatV1"
_ALLOWED: Final = frozenset({
    *("appendOnly", "columnMapping", _WRITER, "icebergCompatV2", "domainMetadata"),
    *("vacuumProtocolCheck", "v2Checkpoint", "inCommitTimestamp", "clustering", "timestampNtz"),
    *("typeWidening", "catalogManaged"),
})  # fmt: skip
# The features that a protocol may list, but that must not be active.
_INACTIVE: Final = (
    "invariants", "changeDataFeed", "checkConstraints", "identityColumns", "generatedColumns",
)  # fmt: skip


def with_writer_properties(
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


def check_writer(
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
        raise InvalidInputError(f"{_WRITER} needs delta.enableIcebergCompatV2 = true as well")
    if properties.column_mapping_mode != Mode.ID:
        raise InvalidInputError(f"{_WRITER} needs delta.columnMapping.mode = id")
    extra = sorted(set(features) - _ALLOWED - set(_INACTIVE))
    active = [name for name in _INACTIVE if name in features and is_active(name)]
    if extra or active:
        raise InvalidInputError(
            f"{_WRITER} does not allow {', '.join([*extra, *active])}: disable these features, or "
            "do not set delta.enableIcebergWriterCompatV1"
        )
    _check_writer_columns(schema)
    if before is not None:
        _check_map_keys(before, schema)


def _check_writer_columns(schema: StructType) -> None:
    for path, field in walk(schema):
        name, number = ".".join(path), field_id(field)
        if number is None or physical_name(field) != physical_name_by_id(number):
            raise InvalidInputError(
                f"{_WRITER} needs the physical name {physical_name_by_id(number or 0)!r} of column "
                f"{name!r}, found {physical_name(field)!r}: only a new table can have such names"
            )
        for _, found in walk_types(field.type):
            if found in {BYTE, SHORT}:
                raise InvalidInputError(
                    f"{_WRITER} does not allow the type {found} of column {name!r}: use integer"
                )


def _check_map_keys(before: StructType, after: StructType) -> None:
    known = _map_keys(before)
    for key, (name, found) in _map_keys(after).items():
        if key in known and known[key][1] != found:
            raise InvalidInputError(
                f"{_WRITER} does not allow changes of map keys: cannot change the key in {name!r} "
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
