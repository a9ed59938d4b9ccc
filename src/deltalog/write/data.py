"""The types of the data that writes take, for type checkers; `source` opens it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pandas as pd
    import polars as pl


class ArrowStream(Protocol):
    """A table or a stream of any library: pyarrow's, a Polars data frame, a DuckDB relation."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> object:
        """Return a stream of Arrow's C interface."""
        ...


class ArrowArray(Protocol):
    """A record batch of any library."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> object:
        """Return schema and array of Arrow's C interface."""
        ...


class ArrowBatches(Protocol):
    """A dataset of pyarrow, or a scanner."""

    def to_batches(self, *args: Any, **options: Any) -> Iterable[Any]:
        """Return the rows as record batches."""
        ...


class DataclassRow(Protocol):
    """An instance of a dataclass."""

    __dataclass_fields__: dict[str, Any]


class ModelRow(Protocol):
    """An instance of a pydantic model."""

    def model_dump(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""
        ...


if TYPE_CHECKING:
    Row = Mapping[str, object] | DataclassRow | ModelRow
    Rows = (
        ArrowStream
        | ArrowArray
        | ArrowBatches
        | pd.DataFrame
        | pl.LazyFrame
        | Mapping[str, Any]
        | Iterable[Row | ArrowStream | ArrowArray | pd.DataFrame]
    )
    """Whatever `write_deltalake` takes: rows in memory or elsewhere, as columns or one by one."""
