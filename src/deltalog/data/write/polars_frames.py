"""Polars frames as streams of Arrow batches; lazy frames with limited memory."""

from __future__ import annotations

from decimal import Decimal
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import pyarrow as pa

from deltalog._util.argument_types import with_article
from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import polars as pl


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
                f"cannot write the column {name!r}, {with_article(str(kind))}: Delta has no "
                "integers of 128 bits; cast them to pl.Decimal(38, 0)"
            )
        elif kind.is_nested() and _OBJECT in found:
            raise InvalidInputError(
                f"cannot write the column {name!r}, {with_article(str(kind))}: it contains "
                "Python objects, of which Polars exports only addresses; convert them to a type of "
                "Polars"
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
