"""Delta tables as lazy frames of Polars. `scan_delta` has the name of Polars' own function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from deltalog._util.argument_types import checked_types
from deltalog._util.lazy_names import explain_call, explain_names
from deltalog.integrations.tasks import open_version

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date, datetime
    from pathlib import PurePath

    import polars as pl

    from deltalog.catalogs.protocol import NamedTable
    from deltalog.storage import Store
    from deltalog.storage.fsspec_store import StorageOptions
    from deltalog.table import DeltaTable

__all__ = ["scan_delta"]


@checked_types
def scan_delta(
    source: str | PurePath | Store | NamedTable | DeltaTable,
    *,
    version: int | str | datetime | date | None = None,
    storage_options: StorageOptions | None = None,
    delta_table_options: Mapping[str, Any] | None = None,
) -> pl.LazyFrame:
    """Return one version of a table as a lazy frame that reads only the data that a query needs.

    Polars pushes the columns, filters and limit of a query down to the scan, which returns rows in
    batches. The results are the same as for a Polars dataframe with all rows of the table.

    Args:
        source: the location of the table, or the table.
        version: the number of a version, or a timestamp as a string, datetime or date. None means
            the latest version, or the version of a `DeltaTable`.
        storage_options: see `DeltaTable`.
        delta_table_options: other arguments of `DeltaTable`.

    Raises:
        TableNotFoundError: there is no Delta table.
        VersionNotFoundError: there is no such version.
        InvalidInputError: options are set for a `DeltaTable`, or Polars is not installed.
        UnsupportedFeatureError, UnsupportedTypeError: deltalog cannot read the table's rows.

    Cost: opens the table. Data is read when the frame is collected.

    Examples:
        >>> import polars as pl
        >>> from deltalog import write_deltalake
        >>> from deltalog.polars import scan_delta
        >>> write_deltalake("memory://lazy", [{"id": 1, "n": 5}, {"id": 2, "n": 7}])
        >>> scan_delta("memory://lazy").filter(pl.col("n") > 5).collect().to_dicts()
        [{'id': 2, 'n': 7}]
    """
    table = open_version(source, version, storage_options, delta_table_options)
    return table.to_polars(lazy=True)


_MEANT: Final = {
    **dict.fromkeys(
        ("read_delta", "read", "read_deltalake", "read_deltalog"),
        "DeltaTable(location).to_polars()",
    ),
    **dict.fromkeys(("scan", "scan_deltalake", "scan_deltalog"), "scan_delta(location)"),
    **dict.fromkeys(
        ("write_delta", "sink_delta", "write", "write_deltalake", "to_delta"),
        "deltalog.write_deltalake(table, frame)",
    ),
}
"""Polars' other functions for Delta tables, and what to use instead."""

if not TYPE_CHECKING:  # type checkers must report unknown names
    __getattr__ = explain_names(__name__, __all__, _MEANT)
    explain_call(__name__, "deltalog.polars.scan_delta(location)")
