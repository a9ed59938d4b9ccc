"""Checking the configuration of a table that is created or changed.

This module calls the features' checks in the right order, and checks that deltalog can still use
the table after the change.

Protocol: Table Features, Protocol Evolution
"""

from __future__ import annotations

import logging
import uuid
from typing import TYPE_CHECKING, Final

from deltalog.errors import InvalidInputError
from deltalog.protocol.actions.properties import (
    MIN_READER_VERSION,
    MIN_WRITER_VERSION,
    PROPERTIES,
    TableProperties,
    canonical_key,
    check_settable,
    key_without_prefix,
)
from deltalog.protocol.column_mapping import (
    HAS_DROPPED_OR_RENAMED_PROPERTY,
    USAGE_TRACKING,
    Mode,
    check_mode_change,
    physical_path,
)
from deltalog.protocol.features import iceberg_compat
from deltalog.protocol.features.clustering import check_clustering_columns, clustering_action
from deltalog.protocol.features.declarations import check_declarations, dependents
from deltalog.protocol.features.protocol_change import requested_protocol, supported_features
from deltalog.protocol.features.registry import canonical_name
from deltalog.protocol.features.support import (
    asked_features,
    check_change_columns,
    check_writable,
    engines_for,
    mapping_consequences,
)
from deltalog.protocol.table_change.columns import check_reserved
from deltalog.schema.check import check_new_schema
from deltalog.schema.columns import Path, canonical_path_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.protocol.actions import DomainMetadata
    from deltalog.protocol.actions.model import Protocol
    from deltalog.protocol.configuration import TableConfiguration

logger: logging.Logger = logging.getLogger(__name__)


def check(
    made: TableConfiguration,
    *,
    before: TableConfiguration | None = None,
    clustering_columns: Sequence[str | tuple[str, ...]] | None = None,
    is_whole: bool = False,
    has_catalog: bool = False,
) -> None:
    """Raise if a configuration is contradictory, or deltalog could not use the table.

    Args:
        made: the new table.
        before: the current table; unchanged parts are not checked again.
        clustering_columns: the clustering columns of a new table.
        is_whole: whether to check names and types even if the schema does not change.
        has_catalog: whether a catalog creates the table, so that it may be catalog-managed.

    Raises:
        InvalidInputError: schema, partitioning and properties contradict each other.
        UnsupportedFeatureError: deltalog could not write the table.
    """
    check_usable(made, before=before, has_catalog=has_catalog)
    properties, schema = made.properties, made.schema
    if is_whole or before is None or schema != before.schema:
        is_mapped = made.column_mapping_mode is not Mode.NONE
        check_new_schema(
            schema,
            made.metadata.partition_columns,
            has_column_mapping=is_mapped,
            consequences=mapping_consequences,
        )
    if before is None or properties.data_skipping_stats_columns != (
        before.properties.data_skipping_stats_columns
    ):
        for path in properties.data_skipping_stats_columns or ():
            canonical_path_of(schema, path)  # raises if the column does not exist
    if clustering_columns is not None:
        check_clustering_columns(clustering_columns, schema, made.partition_columns, properties)
    check_declarations(
        made.metadata.configuration,
        schema,
        made.partition_columns,
        known=None if before is None else before.schema,
        known_configuration=None if before is None else before.metadata.configuration,
    )
    check_change_columns(properties, schema)
    iceberg_compat.check(made.features, properties, schema)
    iceberg_compat.check_writer(
        made.features,
        properties,
        schema,
        before=None if before is None else before.schema,
        is_active=made.is_active,
    )
    iceberg_compat.check_formats(properties, None if before is None else before.properties)
    check_reserved(schema, (made.row_id_column, made.row_commit_version_column))


def check_change(
    before: TableConfiguration,
    after: TableConfiguration,
    changed: Sequence[Path],
    *,
    replaces_data: bool,
) -> None:
    """Raise for a change that existing files, constraints or generated columns do not allow.

    Args:
        before: the current table.
        after: the new table.
        changed: the old paths of columns that are dropped, renamed, or get another type or
            collation.
        replaces_data: whether the same commit removes all rows.

    Raises:
        InvalidInputError: partitioning or column mapping changes although existing files remain in
            the table, or a constraint or generated column uses a changed column.
    """
    check_mode_change(
        before.column_mapping_mode, after.column_mapping_mode, is_rewrite=replaces_data
    )
    layouts = before.physical_partition_columns, after.physical_partition_columns
    if not replaces_data and layouts[0] != layouts[1]:
        raise InvalidInputError(
            f"cannot change the partition columns from {list(before.partition_columns)} to "
            f"{list(after.partition_columns)}: existing files depend on them; overwrite the table"
        )
    if replaces_data:
        iceberg_compat.check_partitioning(
            after.properties, before.partition_columns, after.partition_columns
        )
    if changed:
        _check_dependents(before, after, changed)


def _check_dependents(
    before: TableConfiguration, after: TableConfiguration, changed: Sequence[Path]
) -> None:
    left = {rule.text for rule in dependents(after.metadata.configuration, after.schema)}
    names = set(after.schema.names)
    for rule in dependents(before.metadata.configuration, before.schema):
        # Ignore a constraint or generated column that the same change removes.
        stays = rule.text in left if rule.owner is None else rule.owner in names
        broken = [path for path in changed if rule.needs(path)]
        if stays and broken:
            raise InvalidInputError(
                f"cannot change the column {'.'.join(broken[0])!r}: {rule.what} ({rule.text}) "
                "depends on it; drop that first"
            )


def check_usable(
    configuration: TableConfiguration,
    *,
    before: TableConfiguration | None = None,
    has_catalog: bool = False,
) -> None:
    """Raise if deltalog could no longer read and write the table.

    Otherwise the user could not undo the change.

    Args:
        configuration: the new table.
        before: the current table. If it is already catalog-managed, this is not an error.
        has_catalog: whether a catalog creates the table, so that it may manage it.

    Raises:
        DeltaProtocolError: see `features.support.check_writable`; or protocol, schema and
            properties contradict each other.
    """
    check_writable(
        configuration,
        table="the table as it would be",
        has_log_tail=has_catalog or (before is not None and before.is_catalog_managed),
    )
    # Access these attributes, which raise if protocol, schema and properties contradict each other.
    _ = configuration.physical_schema
    _ = configuration.partition_columns
    _ = configuration.in_commit_timestamps


def engines_losing_access(
    before: Protocol, after: Protocol, *, writing: bool = False
) -> tuple[str, ...]:
    """Return the engines that can read (or write) the current table, but not the new one."""
    could = engines_for(asked_features(before), writing=writing)
    can = engines_for(asked_features(after), writing=writing)
    return tuple(engine for engine in could if engine not in can)


# --- The metadata domain of clustering columns


def clustering_domain(
    configuration: TableConfiguration, columns: Sequence[str | Path]
) -> DomainMetadata:
    """Return the metadata domain `delta.clustering` for these columns, by physical names.

    Raises:
        InvalidInputError: a column cannot be a clustering column.
    """
    paths = check_clustering_columns(
        columns, configuration.schema, configuration.partition_columns, configuration.properties
    )
    mode = configuration.column_mapping_mode
    return clustering_action([physical_path(configuration.schema, path, mode) for path in paths])


# --- Table properties of the user and of writers


_P: Final = TableProperties
_ENABLEMENT: Final = (
    _P.in_commit_timestamp_enablement_version.key,
    _P.in_commit_timestamp_enablement_timestamp.key,
)


def is_set_by_writers(key: str) -> bool:
    """Return whether only writers may set the property."""
    known = PROPERTIES.get(key)
    return known is not None and not known.settable


def checked_configuration(
    current: Mapping[str, str], asked: Mapping[str, str], *, is_lenient: bool = False
) -> dict[str, str]:
    """Return the new table properties, after checking the changed properties.

    Unchanged properties are not checked, because another writer may have set them. Properties that
    only writers set are preserved, even if the user leaves them out.

    Args:
        current: the current properties.
        asked: the whole configuration that the user requests.
        is_lenient: whether to store unknown `delta.` properties without checks.

    Raises:
        InvalidInputError: a changed property is unknown, may be set only by writers, or has an
            invalid value.
    """
    given: Mapping[str, object] = asked  # callers may pass other types
    odd = {key: value for key, value in given.items() if not isinstance(value, str)}
    if odd:
        raise InvalidInputError(f"expected table properties as strings, found {odd}")
    changes = {key: text for key, text in asked.items() if current.get(key) != text}
    unknown = {key: text for key, text in changes.items() if is_lenient and not _is_known(key)}
    wanted = check_settable({key: text for key, text in changes.items() if key not in unknown})
    unchanged = {
        key: text
        for key, text in current.items()
        if (key in asked and key not in changes) or is_set_by_writers(key)
    }
    return {**unchanged, **unknown, **wanted}


def warn_of_no_effect(asked: Mapping[str, str], made: Protocol, current: Mapping[str, str]) -> None:
    """Warn about new properties that have no effect, although their user expects one.

    Args:
        asked: the properties that the user requests.
        made: the protocol of the table with these properties.
        current: the current properties; nothing is said about them.
    """
    for key, text in asked.items():
        if key in current:
            continue
        if (known := key_without_prefix(key)) is not None:
            logger.warning(
                "the table property %r is stored, but has no effect: did you mean %r?", key, known
            )
        if key.lower().startswith("spark.databricks."):
            logger.warning(
                "the table property %r is stored, but has no effect: it is a setting of a Spark "
                "session; table properties begin with delta.",
                key,
            )
        reached = {
            MIN_READER_VERSION: made.min_reader_version,
            MIN_WRITER_VERSION: made.min_writer_version,
        }.get(key)
        if reached is not None and int(text) > reached:
            logger.warning(
                "%s = %s has no effect: the version remains %d until the table has a feature that "
                "needs a higher version; alter.add_feature and delta.feature.… add features",
                key,
                text,
                reached,
            )


def _is_known(key: str) -> bool:
    try:
        canonical_key(key)
    except InvalidInputError:
        return False
    return True


def check_dialect(
    configuration: Mapping[str, str], current: Protocol, features: Sequence[str]
) -> None:
    """Raise if the draft's row ids are enabled on a table that does not support them yet.

    No other engine supports the draft's feature, so such a table could be written by deltalog only.

    Raises:
        InvalidInputError: `delta.enableRowIds` is set, and the table does not support the feature.
    """
    if not TableProperties(configuration).enable_row_ids:
        return
    _, requested = requested_protocol(configuration)
    named = {canonical_name(name) for name in (*features, *requested)}
    if "rowIds" not in named and "rowIds" not in supported_features(current):
        raise InvalidInputError(
            "cannot set delta.enableRowIds: it belongs to a draft of the protocol, and other "
            "engines could not write the table; set delta.enableRowTracking = true"
        )


def has_first_names(configuration: Mapping[str, str], protocol: Protocol) -> bool:
    """Return whether no column was ever dropped or renamed, so logical names can be physical names.

    Protocol: RFC Column Mapping Usage Tracking
    """
    tracked = USAGE_TRACKING in supported_features(protocol)
    return tracked and configuration.get(HAS_DROPPED_OR_RENAMED_PROPERTY) == "false"


def with_lost_names(configuration: Mapping[str, str]) -> dict[str, str]:
    """Record in the properties that a column was dropped or renamed, if the table tracks this.

    Protocol: RFC Column Mapping Usage Tracking
    """
    if HAS_DROPPED_OR_RENAMED_PROPERTY not in configuration:
        return dict(configuration)
    return {**configuration, HAS_DROPPED_OR_RENAMED_PROPERTY: "true"}


def stored_configuration(
    configuration: Mapping[str, str],
    protocol: Protocol,
    *,
    before: TableConfiguration | None = None,
) -> dict[str, str]:
    """Return the properties to store, with the names of the materialized row id columns.

    Delta Spark names the hidden columns as soon as the feature is supported. The names are random,
    so that they never collide with a column of the table. The first version with in-commit
    timestamps is recorded, and traces of an earlier period are removed.

    Protocol: Row Tracking (Materialized Row IDs)
    """
    features = supported_features(protocol)
    needed: dict[str, str] = {}
    if "rowTracking" in features:
        needed[_P.materialized_row_id_column_name.key] = f"_row-id-col-{uuid.uuid4()}"
        key = _P.materialized_row_commit_version_column_name.key
        needed[key] = f"_row-commit-version-col-{uuid.uuid4()}"
    if "rowIds" in features:
        needed[_P.row_ids_physical_column_name.key] = f"_row-id-col-{uuid.uuid4()}"
    found = {**needed, **configuration}
    if USAGE_TRACKING in features:
        if before is None:
            found.setdefault(HAS_DROPPED_OR_RENAMED_PROPERTY, "false")
        elif not before.supports(USAGE_TRACKING):
            # Columns of an existing table may have been dropped or renamed before.
            found[HAS_DROPPED_OR_RENAMED_PROPERTY] = "true"
    if before is None or before.in_commit_timestamps is None:
        for key in _ENABLEMENT:
            found.pop(key, None)
    return found
