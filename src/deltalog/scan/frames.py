"""Rows of a table for data-frame libraries, which are imported only when asked for.

Protocol: none
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


def to_pandas(table: pa.Table, **options: Any) -> pd.DataFrame:
    """A pandas data frame; options are those of `pyarrow.Table.to_pandas`."""
    _require("pandas")
    return table.to_pandas(**options)


def to_polars(table: pa.Table) -> pl.DataFrame:
    """A Polars data frame."""
    polars = _require("polars")
    return polars.from_arrow(table)  # type: ignore[no-any-return]  # a table gives a frame


def to_duckdb(source: Any, connection: Any = None) -> Any:
    """A DuckDB relation over a dataset or an Arrow stream.

    Args:
        source: what DuckDB reads from.
        connection: DuckDB's; None is a new one in memory.
    """
    duckdb = _require("duckdb")
    connection = duckdb.connect() if connection is None else connection
    return connection.from_arrow(source)


def _require(name: str) -> Any:
    """The library, or an error that says how to install it."""
    from importlib import import_module  # noqa: PLC0415  # the door to optional libraries

    try:
        return import_module(name)
    except ImportError as error:
        raise InvalidInputError(
            f"cannot give rows to {name}: it is not installed; pip install 'deltalog[{name}]'"
        ) from error
