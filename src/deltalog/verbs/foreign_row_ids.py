"""Row ids in data files that Iceberg's readers would take, or miss, and Delta's would not.

Iceberg finds ids and versions of rows by reserved field ids, Delta by the names of hidden columns.
A file that has the one without the other tells each of them something else.

Protocol: Row Tracking (Materialized columns); RFC IcebergCompatV3; Iceberg Table Spec: Row Lineage
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.features.iceberg_compat import ROW_COMMIT_VERSION_FIELD, ROW_ID_FIELD
from deltalog.paths import decode_path
from deltalog.schema.arrow import parquet_field_id
from deltalog.storage.parquet import open_parquet
from deltalog.storage.pool import map_in_pool

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalog.configuration import TableConfiguration
    from deltalog.storage.store import Store

_RESERVED: Final = frozenset({ROW_ID_FIELD, ROW_COMMIT_VERSION_FIELD})


def hidden_columns(configuration: TableConfiguration) -> dict[str, int]:
    """The hidden columns of row tracking, with the field ids that Iceberg has for them."""
    names = {
        configuration.row_id_column: ROW_ID_FIELD,
        configuration.row_commit_version_column: ROW_COMMIT_VERSION_FIELD,
    }
    return {name: number for name, number in names.items() if name is not None}


def with_other_row_ids(store: Store, files: pa.Table, own: Mapping[str, int]) -> pa.BooleanArray:
    """Mark the files in which both formats would not find the same ids of rows.

    Args:
        store: of the table.
        files: with the columns `path` and `size`.
        own: `hidden_columns` of the table that has the files; none if its files may hold no ids.

    Cost: the footer of every file.
    """

    def look(file: Any) -> bool:
        path, size_bytes = file
        reader = open_parquet(store, decode_path(path), size_bytes=size_bytes, footer_only=True)
        try:
            return any(_is_other(column, own) for column in reader.arrow_schema)
        finally:
            reader.close()

    rows = zip(files.column("path").to_pylist(), files.column("size").to_pylist(), strict=True)
    return pa.array(map_in_pool(look, list(rows)), pa.bool_())


def _is_other(column: pa.Field[Any], own: Mapping[str, int]) -> bool:
    number = parquet_field_id(column)
    return number != own[column.name] if column.name in own else number in _RESERVED
