"""What a table must be after it was made or changed.

Each check is a rule of some feature; here they are only called, in one order.

Protocol: Table Features
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.column_mapping import Mode, check_mode_change
from deltalog.errors import InvalidInputError
from deltalog.schema.check import check_new_schema
from deltalog.table_change.access import check_usable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.configuration import TableConfiguration


def check(
    made: TableConfiguration,
    *,
    clustering_columns: Sequence[str | tuple[str, ...]] | None = None,
) -> None:
    """Refuse a table that contradicts itself, or that deltalog could not use.

    Raises:
        InvalidInputError: schema, partitioning and properties do not go together.
        UnsupportedFeatureError: deltalog could not write the table.
    """
    is_mapped = made.column_mapping_mode is not Mode.NONE
    check_new_schema(made.schema, made.metadata.partition_columns, has_column_mapping=is_mapped)
    del clustering_columns
    check_usable(made)


def check_change(
    before: TableConfiguration, after: TableConfiguration, *, replaces_data: bool
) -> None:
    """Refuse a change that the files of the table cannot follow.

    Raises:
        InvalidInputError: partitioning or column mapping change, and the files stay.
    """
    check_mode_change(
        before.column_mapping_mode, after.column_mapping_mode, is_rewrite=replaces_data
    )
    if not replaces_data and before.partition_columns != after.partition_columns:
        raise InvalidInputError(
            f"cannot change the partition columns from {list(before.partition_columns)} to "
            f"{list(after.partition_columns)}: files are laid out by them; overwrite the table"
        )
