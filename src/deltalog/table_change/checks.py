"""What a table must be after it was made or changed.

The rules are the features' own; here they are called, in one order.

Protocol: Table Features
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.column_mapping import Mode, check_mode_change
from deltalog.errors import InvalidInputError
from deltalog.features import change_data_feed, iceberg_compat
from deltalog.features.clustering import check_clustering_columns
from deltalog.features.declarations import check_declarations, dependents
from deltalog.schema.check import check_new_schema
from deltalog.schema.columns import canonical_path_of
from deltalog.table_change.access import check_usable
from deltalog.table_change.columns import check_reserved

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.configuration import TableConfiguration
    from deltalog.schema.columns import Path


def check(
    made: TableConfiguration,
    *,
    before: TableConfiguration | None = None,
    clustering_columns: Sequence[str | tuple[str, ...]] | None = None,
    is_whole: bool = False,
) -> None:
    """Refuse a table that contradicts itself, or that deltalog could not use.

    Args:
        made: the table to be.
        before: the table as it was; what is as it was is not checked again.
        clustering_columns: of a new table.
        is_whole: whether names and types are checked though the schema is as it was.

    Raises:
        InvalidInputError: schema, partitioning and properties do not go together.
        UnsupportedFeatureError: deltalog could not write the table.
    """
    check_usable(made, before=before)
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
    change_data_feed.check_columns(properties, schema)
    iceberg_compat.check(made.features, properties, schema)
    check_reserved(schema, (made.row_id_column, made.row_commit_version_column))


def check_change(
    before: TableConfiguration,
    after: TableConfiguration,
    touched: Sequence[Path],
    *,
    replaces_data: bool,
) -> None:
    """Refuse a change that the files and the rules of the table cannot follow.

    Args:
        before: the table as it was.
        after: the table to be.
        touched: columns that went, or have another name or type; paths in the schema before.
        replaces_data: whether all rows go with the same commit.

    Raises:
        InvalidInputError: partitioning or column mapping change while files stay, or a rule names
            a column that is no longer the same.
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
    if touched:
        _check_dependents(before, after, touched)


def _check_dependents(
    before: TableConfiguration, after: TableConfiguration, touched: Sequence[Path]
) -> None:
    left = {rule.text for rule in dependents(after.metadata.configuration, after.schema)}
    names = set(after.schema.names)
    for rule in dependents(before.metadata.configuration, before.schema):
        # A rule that goes with the same change holds nothing back.
        stays = rule.text in left if rule.owner is None else rule.owner in names
        broken = [path for path in touched if rule.needs(path)]
        if stays and broken:
            raise InvalidInputError(
                f"cannot change the column {'.'.join(broken[0])!r}: {rule.what} ({rule.text}) "
                "depends on it; drop that first"
            )
