"""Opening data of any supported type as a stream of Arrow batches.

This module defines the types of data that a write accepts. If possible, data is streamed, so that
it is never completely in memory. `enforce` matches the columns with the table.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from decimal import Decimal
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeGuard
from uuid import UUID

import pyarrow as pa

from deltalog.errors import InvalidInputError, SchemaMismatchError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_ACCEPTED = (
    "a pyarrow Table, RecordBatch, RecordBatchReader or Dataset, a pandas or Polars DataFrame, a "
    "Polars LazyFrame, a DuckDB relation, any object with __arrow_c_stream__ or "
    "__arrow_c_array__, a dict of columns, a list of dicts, dataclasses or pydantic models, or an "
    "iterable of record batches"
)


class Rereadable:
    """Base class of rows that can be read several times with the same result."""

    __slots__ = ()


class RereadableRows(Rereadable, ABC):
    """Base class of rows that can be opened several times in this process."""

    __slots__ = ()

    @abstractmethod
    def opened(self) -> pa.RecordBatchReader:
        """Return the rows as a reader that raises errors of the source unchanged."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows as a stream of Arrow's C interface."""
        reader: Any = self.opened()
        stream: object = reader.__arrow_c_stream__(requested_schema)
        return stream


_REREADABLE = (pa.Table, pa.RecordBatch, list, tuple, dict, Rereadable)


def open_batches(data: object) -> pa.RecordBatchReader:
    """Return a reader of the rows of `data`.

    Args:
        data: a pyarrow Table, RecordBatch, RecordBatchReader or Dataset, a pandas or Polars
            DataFrame, a Polars LazyFrame, a DuckDB relation, any object of Arrow's C interfaces, a
            dict of columns (lists or arrays), a list of dicts (a missing key is NULL), of
            dataclasses or of pydantic models, or an iterable of batches or tables of one schema.
            If there are neither rows nor a schema, the reader has no columns. The index of a pandas
            DataFrame becomes a column (without a name: `__index_level_0__`), unless it is a range
            without a name.

    Raises:
        InvalidInputError: the data is of another type, or values of a column have no common type.
        SchemaMismatchError: the batches have different schemas (raised on reading).

    Cost: reads the first batch of an iterable immediately; converts a list of dicts completely.
    """
    data = native_frame(data)
    if (opened := _opened_frame(data)) is not None:
        return opened
    if isinstance(data, RereadableRows):
        return data.opened()
    if isinstance(data, pa.RecordBatchReader):
        # Use the reader itself, because Arrow's C interface would not preserve the type of an error
        # of the source.
        return data
    if hasattr(data, "__arrow_c_stream__"):
        return _stream_of(data)
    if hasattr(data, "__arrow_c_array__"):
        batch = pa.record_batch(data)
        return pa.RecordBatchReader.from_batches(batch.schema, [batch])
    for method, then in (("scanner", "to_reader"), ("to_reader", None)):
        # `data` is a Dataset or a Scanner of pyarrow. Do not use `isinstance`, because importing
        # pyarrow.dataset is slow.
        if hasattr(data, method) and hasattr(data, "to_batches"):
            found: Any = getattr(data, method)()
            reader: pa.RecordBatchReader = found if then is None else getattr(found, then)()
            return reader
    if isinstance(data, Mapping):
        return _table_of_columns(data).to_reader()
    if isinstance(data, Iterable) and not isinstance(data, str | bytes | bytearray):
        return _read_items(data)
    raise _unknown(data)


def is_rereadable(data: object) -> bool:
    """Whether `open_batches` can be called again for the same rows.

    Returns False for unknown types.
    """
    data = native_frame(data)
    if isinstance(data, _REREADABLE) or _is_pandas(data):
        return True
    if isinstance(data, pa.RecordBatchReader | Iterator):
        return False
    kind = type(data)
    return (
        hasattr(data, "scanner")
        or hasattr(data, "__arrow_c_array__")
        or (kind.__module__.startswith(("polars.", "pyspark.")) and kind.__name__ == "DataFrame")
        or kind.__name__ == "DuckDBPyRelation"
    )


def _opened_frame(data: Any) -> pa.RecordBatchReader | None:
    if _is_pandas(data):
        return _table_of_pandas(data).to_reader()
    match frame_kind(data):
        case "DataFrame":
            return open_frame(data)
        case "LazyFrame":
            return open_lazy_frame(data)
    return None


def _stream_of(data: Any) -> pa.RecordBatchReader:
    try:
        return pa.RecordBatchReader.from_stream(data)
    except pa.ArrowInvalid as error:
        if "non-struct" not in str(error):
            raise
        raise InvalidInputError(
            f"cannot write the data, a {type(data).__name__}: it is one column, not a table; "
            "make a data frame of it, which names the column"
        ) from None
    except Exception as error:
        if type(error).__name__ != "ConnectionException":  # of DuckDB
            raise
        raise InvalidInputError(
            f"cannot write the data, a {type(data).__name__}: {error}; keep the connection open "
            "until the rows are written"
        ) from error


def _is_pandas(data: object) -> TypeGuard[Any]:
    kind = type(data)
    return kind.__module__.partition(".")[0] == "pandas" and kind.__name__ == "DataFrame"


def _has_keys(index: Any) -> bool:
    """Whether a pandas index contains more than row numbers.

    The keys of `groupby` and `pivot` exist only in the index. deltalake also writes them, but it
    does not write a range with a name.
    """
    return type(index).__name__ != "RangeIndex" or index.name is not None


def _read_items(items: Iterable[Any]) -> pa.RecordBatchReader:
    if hasattr(items, "ndim") or type(items).__name__.endswith("GroupBy"):
        raise _unknown(items)  # an error about its items would not name it
    iterator = iter(items)
    first = next(iterator, None)
    if first is None:
        return pa.RecordBatchReader.from_batches(pa.schema([]), [])
    rest = itertools.chain([first], iterator)
    if isinstance(first, Mapping) or _as_mapping(first) is not None:
        return _table_of_dicts(items if isinstance(items, Sequence) else list(rest)).to_reader()
    batches = _batches(rest)
    head = next(batches, None)
    if head is None:
        # A table without rows still has a schema.
        return pa.RecordBatchReader.from_batches(_schema_of(first), [])
    return pa.RecordBatchReader.from_batches(
        head.schema, _same_schema(itertools.chain([head], batches), head.schema)
    )


def _batches(items: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    for item in items:
        if isinstance(item, pa.RecordBatch):
            yield item
        elif isinstance(item, pa.Table) or hasattr(item, "__arrow_c_stream__") or _is_pandas(item):
            yield from open_batches(item)
        elif hasattr(item, "__arrow_c_array__"):
            yield pa.record_batch(item)
        else:
            raise _unknown(item, "an item of the data")


def _schema_of(item: Any) -> pa.Schema:
    return item.schema if isinstance(item, pa.Table | pa.RecordBatch) else open_batches(item).schema


def _same_schema(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for number, batch in enumerate(batches):
        if not batch.schema.equals(schema):
            raise SchemaMismatchError(
                f"batch {number} of the data has another schema than the first one: expected "
                f"{_shown(schema)}, found {_shown(batch.schema)}"
            )
        yield batch


def _table_of_pandas(frame: Any) -> pa.Table:
    names = list(map(str, frame.columns))
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise InvalidInputError(
            f"cannot write the DataFrame: several columns have the name {twice[0]!r}; rename them"
        )
    try:
        return pa.Table.from_pandas(frame, preserve_index=_has_keys(frame.index))
    except (pa.ArrowException, TypeError, ValueError) as error:
        problem = "; ".join(str(one).rstrip(".") for one in error.args)
        advice = "cast the column to one type, as with .astype(str)"
        if "Sparse" in problem:
            advice = "make the column dense, as with .sparse.to_dense()"
        elif "complex" in problem:
            advice = "Delta tables have no complex numbers; write .real and .imag as two columns"
        raise InvalidInputError(f"cannot write the DataFrame: {problem}; {advice}") from error


def _table_of_columns(data: Mapping[Any, Any]) -> pa.Table:
    columns = {str(name): _column(name, values) for name, values in data.items()}
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name}: {length}" for name, length in lengths.items())
        raise InvalidInputError(
            "cannot write the data, a dict of columns: expected columns of the same length, found "
            f"{found}"
        )
    return pa.table(list(columns.values()), names=list(columns))


def _column(name: object, values: Any) -> pa.Array[Any] | pa.ChunkedArray[Any]:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if (series := column_of_series(values, str(name))) is not None:
        return series
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidInputError(
            f"cannot write the column {name!r} of a dict: expected a list or an array of values, "
            f"found a {type(values).__name__}; to write rows, pass a list of dicts"
        )
    try:
        items: Any = values if hasattr(values, "__len__") else list(values)
        found: Any = pa.array(items)
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise InvalidInputError(
            f"cannot write the values of {name!r}: "
            + (
                "a number is too large for a long, which has 64 bits; pass values of "
                "decimal.Decimal"
                if isinstance(error, OverflowError)
                else f"they have no common Arrow type: {error}"
            )
        ) from error
    return found  # type: ignore[no-any-return]  # an array


def _as_mapping(row: Any) -> Mapping[str, Any] | None:
    """Return a dataclass or a pydantic model as a dict; None if the row is of another type."""
    if is_dataclass(row) and not isinstance(row, type):
        return asdict(row)
    dump = getattr(row, "model_dump", None)
    return dump() if callable(dump) and hasattr(type(row), "model_fields") else None


def _table_of_dicts(items: Sequence[Any]) -> pa.Table:
    """Return dicts as a table with the keys of all rows; Arrow would use only the first row."""
    names: dict[str, None] = {}
    rows = []
    for number, item in enumerate(items):
        row = item if isinstance(item, Mapping) else _as_mapping(item)
        if row is None:
            raise InvalidInputError(
                f"cannot write item {number} of the list: expected a dict, a dataclass or a "
                f"pydantic model as the first one, found a {type(item).__name__}"
            )
        names.update(dict.fromkeys(row))
        rows.append(row)
    columns = [_column(name, [row.get(name) for row in rows]) for name in names]
    return pa.table(columns, names=[str(name) for name in names])


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)


def _unknown(data: object, what: str = "the data") -> InvalidInputError:
    module, name = type(data).__module__, type(data).__qualname__
    shown = name if module == "builtins" else f"{module}.{name}"
    hint = ""
    if isinstance(data, str | PurePath):
        hint = "; read a file first, as with pyarrow.dataset.dataset(path), or a table with "
        hint += "DeltaTable(path)"
    elif hasattr(data, "ndim"):
        hint = "; make a data frame of it, which names the columns"
    elif name.endswith("GroupBy"):
        hint = "; aggregate the groups first, as with .agg(…)"
    return InvalidInputError(f"cannot write {what}, a {shown}: expected {_ACCEPTED}{hint}")


# --- The types of data that writes accept, for type checkers


class ArrowStream(Protocol):
    """A table or stream of any library, such as a Polars data frame or a DuckDB relation."""

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
    """Any data that `write_deltalake` accepts."""


# --- Polars frames as streams of Arrow batches; lazy frames with limited memory


_WIDE: Final = frozenset({"Int128", "UInt128"})
_OBJECT: Final = "Object"


def frame_kind(data: object) -> str | None:
    """Return `DataFrame` or `LazyFrame` for frames of Polars, None for anything else."""
    kind = type(data)
    is_frame = kind.__module__.startswith("polars.") and kind.__name__ in {"DataFrame", "LazyFrame"}
    return kind.__name__ if is_frame else None


def open_frame(frame: pl.DataFrame) -> pa.RecordBatchReader:
    """Return a reader of a frame; 128-bit integers are converted to decimals.

    Raises:
        InvalidInputError: a 128-bit integer has more than 38 digits, or is in a nested value; or a
            column has Python objects other than UUIDs, paths and decimals.
    """
    return pa.RecordBatchReader.from_stream(_narrowed(frame))


def column_of_series(data: Any, name: str) -> pa.ChunkedArray[Any] | None:
    """Return the values of a series of Polars; None for anything else.

    Raises:
        InvalidInputError: see `open_frame`.
    """
    series = native_frame(data)
    kind = type(series)
    if not kind.__module__.startswith("polars.") or kind.__name__ != "Series":
        return None
    return open_frame(series.alias(name).to_frame()).read_all().column(0)


def open_lazy_frame(frame: pl.LazyFrame) -> pa.RecordBatchReader:
    """Return a reader of a lazy frame's rows; its query runs while the rows are read.

    Raises:
        InvalidInputError: this release of Polars cannot return batches; see also `open_frame`.

    Cost: the memory of the query and of a few batches; with a column of Python objects, the memory
        of all rows.
    """
    import polars as pl  # noqa: PLC0415  # optional, but installed, because `frame` is a Polars frame

    if not hasattr(frame, "collect_batches"):
        raise InvalidInputError(
            f"cannot write a LazyFrame of Polars {pl.__version__}, which cannot collect "
            "batches: write frame.collect(), or use a newer Polars"
        )
    kinds = frame.collect_schema()
    if _object_columns(kinds):
        return open_frame(frame.collect())  # the type of Python objects depends on all values
    schema = open_frame(pl.DataFrame(schema=kinds)).schema
    return pa.RecordBatchReader.from_batches(schema, _collected(frame))


def _collected(frame: pl.LazyFrame) -> Iterator[pa.RecordBatch]:
    for part in frame.collect_batches(lazy=True):
        yield from open_frame(part)


def exportable(data: Any) -> Any:
    """Return rows in a form that other libraries can read through Arrow's interfaces.

    Raises:
        InvalidInputError: a frame of Polars has values that Arrow does not support.
    """
    frame = native_frame(data)
    match frame_kind(frame):
        case "DataFrame":
            return _narrowed(frame)
        case "LazyFrame" if _object_columns(frame.collect_schema()):
            return _narrowed(frame.collect())
        case None:
            return data
    return frame


def native_frame(data: Any) -> Any:
    """Return the native frame or series of a narwhals object; return other data unchanged."""
    is_wrapped = type(data).__module__.startswith("narwhals.") and hasattr(data, "to_native")
    return data.to_native() if is_wrapped else data


def _narrowed(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with Arrow types instead of 128-bit integers and Python objects."""
    import polars as pl  # noqa: PLC0415  # optional, but installed, because `frame` is a Polars frame

    wide = []
    for name, kind in frame.schema.items():
        if str(kind) in _WIDE:
            wide.append(name)
        elif kind.is_nested() and not _WIDE.isdisjoint(found := _names_of_parts(kind)):
            raise InvalidInputError(
                f"cannot write the column {name!r}, a {kind}: Delta has no integers of 128 bits; "
                "cast them to pl.Decimal(38, 0)"
            )
        elif kind.is_nested() and _OBJECT in found:
            raise InvalidInputError(
                f"cannot write the column {name!r}, a {kind}: it contains Python objects, of which "
                "Polars exports only addresses; convert them to a Polars type"
            )
    objects = [_without_objects(frame[name]) for name in _object_columns(frame.schema)]
    if objects:
        frame = frame.with_columns(objects)
    if not wide:
        return frame
    try:
        return frame.with_columns(pl.col(wide).cast(pl.Decimal(38, 0)))
    except pl.exceptions.PolarsError as error:
        raise InvalidInputError(
            f"cannot write the columns {wide!r}, integers of 128 bits, as decimal(38,0): "
            f"{str(error).partition(chr(10))[0]}"
        ) from error


def _names_of_parts(kind: Any) -> set[str]:
    """Return the names of a type and of all types inside it."""
    fields = [part.dtype for part in getattr(kind, "fields", ())]
    inner = getattr(kind, "inner", None)
    parts = [*fields, *([] if inner is None else [inner])]
    return {type(kind).__name__, str(kind)}.union(*map(_names_of_parts, parts))


def _object_columns(schema: Mapping[str, Any]) -> list[str]:
    return [name for name, kind in schema.items() if str(kind) == _OBJECT]


def _without_objects(column: pl.Series) -> pl.Series:
    """Convert a column of Python objects, because Arrow streams contain only their addresses."""
    import polars as pl  # noqa: PLC0415  # optional, but installed, because `column` is a Polars column

    values = column.to_list()
    kinds = {type(value) for value in values if value is not None}
    try:
        if all(issubclass(kind, UUID | PurePath) for kind in kinds) and kinds:
            texts = [None if value is None else str(value) for value in values]
            return pl.Series(column.name, pa.array(texts, pa.string()))
        if all(issubclass(kind, Decimal) for kind in kinds):
            exact: pa.Array[Any] = pa.array(values)
            is_null = pa.types.is_null(exact.type)
            if (is_null or pa.types.is_decimal128(exact.type)) and exact.to_pylist() == values:
                return pl.Series(column.name, exact)
    except (pa.ArrowException, ValueError, TypeError):  # for example a path that is not Unicode
        pass
    found = ", ".join(sorted(kind.__qualname__ for kind in kinds))
    raise InvalidInputError(
        f"cannot write the column {column.name!r}, a Polars Object: expected UUIDs, paths, or "
        f"decimals of at most 38 digits, found {found}; convert them to a Polars type, such as "
        "String"
    )
