"""Rows in every form that callers take: batches, tables, data frames, Arrow streams.

Owns the conversions that scans and change feeds share, under the names of Arrow's readers too.
Data-frame libraries are imported only when they are asked for.

Protocol: none
"""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    import polars as pl


class Rows:
    """Something that gives batches of one schema, as often as it is asked.

    `read_next_batch` and `close` work as those of an Arrow reader: they share one position.
    """

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the rows."""
        raise InvalidInputError(f"{type(self).__name__} says no schema")

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch; memory stays bounded however many they are."""
        raise InvalidInputError(f"{type(self).__name__} gives no rows")

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch."""
        return self.to_batches()

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as an Arrow reader."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows for any library that takes Arrow streams."""
        reader: Any = self.to_reader()
        return reader.__arrow_c_stream__(requested_schema)

    def to_table(self) -> pa.Table:
        """All rows in memory."""
        return pa.Table.from_batches(self.to_batches(), schema=self.schema)

    def to_pandas(self, **options: Any) -> pd.DataFrame:
        """All rows as a pandas data frame; options are those of `pyarrow.Table.to_pandas`."""
        _require("pandas")
        return self.to_table().to_pandas(**options)

    def to_polars(self) -> pl.DataFrame:
        """All rows as a Polars data frame."""
        frame: pl.DataFrame = _require("polars").from_arrow(self.to_table())
        return frame

    def to_duckdb(self, connection: Any = None) -> Any:
        """All rows as a DuckDB relation; a new connection in memory if none is given."""
        return duckdb_relation(self.to_table(), connection)

    def read_all(self) -> pa.Table:
        """All rows in memory."""
        return self.to_table()

    def read_pandas(self, **options: Any) -> pd.DataFrame:
        """All rows as a pandas data frame."""
        return self.to_pandas(**options)

    @cached_property
    def _position(self) -> pa.RecordBatchReader:
        return self.to_reader()

    def read_next_batch(self) -> pa.RecordBatch:
        """The batch after the one that this method gave last; StopIteration after the last."""
        return self._position.read_next_batch()

    def close(self) -> None:
        """Let go of what `read_next_batch` holds."""
        held = self.__dict__.pop("_position", None)
        if held is not None:
            held.close()

    def __enter__(self) -> Self:
        """Itself; `close` is called at the end."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()


def duckdb_relation(source: Any, connection: Any = None) -> Any:
    """A DuckDB relation over a dataset or a table.

    Args:
        source: what DuckDB reads from.
        connection: DuckDB's; None is a new one in memory.
    """
    connection = _require("duckdb").connect() if connection is None else connection
    return connection.from_arrow(source)


def _require(name: str) -> Any:
    """The library, or an error that says how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise InvalidInputError(
            f"cannot give rows to {name}: it is not installed; pip install 'deltalog[{name}]'"
        ) from error
