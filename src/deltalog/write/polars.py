"""Frames of Polars as streams of Arrow batches, lazy ones in bounded memory.

Owns what Polars has and Arrow does not: queries, integers of 128 bits, and objects of Python: UUIDs
and paths are texts, and decimals are decimals. Knows no tables.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import pyarrow as pa

from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import polars as pl

_WIDE: Final = frozenset({"Int128", "UInt128"})
_OBJECT: Final = "Object"


def frame_kind(data: object) -> str | None:
    """Return `DataFrame` or `LazyFrame` for those of Polars, None for anything else."""
    kind = type(data)
    is_frame = kind.__module__.startswith("polars.") and kind.__name__ in {"DataFrame", "LazyFrame"}
    return kind.__name__ if is_frame else None


def open_frame(frame: pl.DataFrame) -> pa.RecordBatchReader:
    """Return a reader of a frame; integers of 128 bits are decimals without a fraction.

    Raises:
        InvalidInputError: such a number has more than 38 digits, or is inside another value; or a
            column has objects of Python that are no UUIDs, paths or decimals.
    """
    return pa.RecordBatchReader.from_stream(_narrowed(frame))


def column_of_series(data: Any, name: str) -> pa.ChunkedArray[Any] | None:
    """Return the values of a series of Polars, as in a frame; None for anything else.

    Raises:
        InvalidInputError: as for `open_frame`.
    """
    series = native_frame(data)
    kind = type(series)
    if not kind.__module__.startswith("polars.") or kind.__name__ != "Series":
        return None
    return open_frame(series.alias(name).to_frame()).read_all().column(0)


def open_lazy_frame(frame: pl.LazyFrame) -> pa.RecordBatchReader:
    """Return a reader of what a lazy frame gives; its query runs while the rows are read.

    Raises:
        InvalidInputError: this release of Polars gives no batches; or as for `open_frame`.

    Cost: memory for what the query itself keeps, and for a few batches; with a column of objects of
    Python for all rows.
    """
    import polars as pl  # noqa: PLC0415  # optional, and there: this is a frame of it

    if not hasattr(frame, "collect_batches"):
        raise InvalidInputError(
            f"cannot write a LazyFrame of Polars {pl.__version__}, which gives no batches: "
            "write frame.collect(), or use a newer Polars"
        )
    kinds = frame.collect_schema()
    if _object_columns(kinds):
        return open_frame(frame.collect())  # all of their values tell what they are
    schema = open_frame(pl.DataFrame(schema=kinds)).schema
    return pa.RecordBatchReader.from_batches(schema, _batches(frame))


def _batches(frame: pl.LazyFrame) -> Iterator[pa.RecordBatch]:
    for part in frame.collect_batches(lazy=True):
        yield from open_frame(part)


def exportable(data: Any) -> Any:
    """Return rows that other libraries read through Arrow; a frame without Python's objects.

    Raises:
        InvalidInputError: a frame of Polars has values that Arrow does not have.
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
    """Return what a frame or series of narwhals stands for; else the data."""
    is_wrapped = type(data).__module__.startswith("narwhals.") and hasattr(data, "to_native")
    return data.to_native() if is_wrapped else data


def _narrowed(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with types that Arrow has, for integers of 128 bits and for Python's objects."""
    import polars as pl  # noqa: PLC0415  # as above

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
                f"cannot write the column {name!r}, a {kind}: it holds objects of Python, of which "
                "Polars exports the addresses; make them values of a type of Polars"
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
    """The names of the types inside a type, and its own."""
    fields = [part.dtype for part in getattr(kind, "fields", ())]
    inner = getattr(kind, "inner", None)
    parts = [*fields, *([] if inner is None else [inner])]
    return {type(kind).__name__, str(kind)}.union(*map(_names_of_parts, parts))


def _object_columns(schema: Mapping[str, Any]) -> list[str]:
    return [name for name, kind in schema.items() if str(kind) == _OBJECT]


def _without_objects(column: pl.Series) -> pl.Series:
    """The values of a column of Python's objects; its stream of Arrow has their addresses."""
    import polars as pl  # noqa: PLC0415  # as above

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
    except (pa.ArrowException, ValueError, TypeError):  # such as a path that is no Unicode
        pass
    found = ", ".join(sorted(kind.__qualname__ for kind in kinds))
    raise InvalidInputError(
        f"cannot take the column {column.name!r}, an Object of Polars: expected UUIDs, paths, or "
        f"decimals of at most 38 digits in all, found {found}; make them values of a type of "
        "Polars, such as texts"
    )
