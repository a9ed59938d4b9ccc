"""Check the configuration of a table that is to be created or changed.

Owns the order of the features' checks, and the check that deltalog can still use the table
afterwards.

Protocol: Table Features, Protocol Evolution
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.column_mapping import Mode, check_mode_change
from deltalog.errors import InvalidInputError
from deltalog.features import iceberg_compat, iceberg_writer_compat
from deltalog.features.clustering import check_clustering_columns
from deltalog.features.declarations import check_declarations, dependents
from deltalog.features.guards import check_change_columns
from deltalog.features.protocol_change import supported_features
from deltalog.features.support import check_writable, engines_for
from deltalog.schema.check import check_new_schema
from deltalog.schema.columns import canonical_path_of
from deltalog.table_change.columns import check_reserved

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.actions.model import Protocol
    from deltalog.configuration import TableConfiguration
    from deltalog.features.registry import OtherEngine
    from deltalog.schema.columns import Path


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
        before: the current table; what does not change is not checked again.
        clustering_columns: of a new table.
        is_whole: whether to check names and types even if the schema does not change.
        has_catalog: whether a catalog makes the table.

    Raises:
        InvalidInputError: schema, partitioning and properties contradict each other.
        UnsupportedFeatureError: deltalog could not write the table.
    """
    check_usable(made, before=before, has_catalog=has_catalog)
    properties, schema = made.properties, made.schema
    if is_whole or before is None or schema != before.schema:
        is_mapped = made.column_mapping_mode is not Mode.NONE
        check_new_schema(schema, made.metadata.partition_columns, has_column_mapping=is_mapped)
    if before is None or properties.data_skipping_stats_columns != (
        before.properties.data_skipping_stats_columns
    ):
        for path in properties.data_skipping_stats_columns or ():
            canonical_path_of(schema, path)  # raises where there is no such column
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
    iceberg_writer_compat.check(
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
        changed: columns that are dropped, renamed or get another type or collation; paths in the
            old schema.
        replaces_data: whether the same commit removes all rows.

    Raises:
        InvalidInputError: partitioning or column mapping change while files stay, or a constraint
            or generated column names a changed column.
    """
    check_mode_change(
        before.column_mapping_mode, after.column_mapping_mode, is_rewrite=replaces_data
    )
    layouts = before.physical_partition_columns, after.physical_partition_columns
    if not replaces_data and layouts[0] != layouts[1]:
        raise InvalidInputError(
            f"cannot change the partition columns from {list(before.partition_columns)} to "
            f"{list(after.partition_columns)}: files are laid out by them; overwrite the table"
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
        # A rule that the same change removes does not count.
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

    Otherwise a user could lock themselves out, and could not undo the change.

    Args:
        configuration: of the new table.
        before: of the current table. A table that a catalog already manages stays usable.
        has_catalog: whether a catalog makes the table, so that it may manage it.

    Raises:
        DeltaProtocolError: as `features.support.check_writable`, and where protocol, schema and
            properties contradict.
    """
    check_writable(
        configuration,
        table="the table as it would be",
        has_log_tail=has_catalog or (before is not None and before.is_catalog_managed),
    )
    # Computed on access; they raise where protocol, schema and properties contradict.
    _ = configuration.physical_schema
    _ = configuration.partition_columns
    _ = configuration.in_commit_timestamps


def engines_losing_access(
    before: Protocol, after: Protocol, *, writing: bool = False
) -> tuple[OtherEngine, ...]:
    """Return the engines that can read (or write) the current table, but not the new one."""
    could = engines_for(tuple(supported_features(before).values()), writing=writing)
    can = engines_for(tuple(supported_features(after).values()), writing=writing)
    return tuple(engine for engine in could if engine not in can)
