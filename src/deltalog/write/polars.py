"""Frames of Polars as streams of Arrow batches, lazy ones in bounded memory.

Owns what Polars has and Arrow does not: queries, and integers of 128 bits. Knows no tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

_WIDE: Final = frozenset({"Int128", "UInt128"})


def frame_kind(data: object) -> str | None:
    """Return `DataFrame` or `LazyFrame` for those of Polars, None for anything else."""
    kind = type(data)
    is_frame = kind.__module__.startswith("polars.") and kind.__name__ in {"DataFrame", "LazyFrame"}
    return kind.__name__ if is_frame else None


def open_frame(frame: pl.DataFrame) -> pa.RecordBatchReader:
    """Return a reader of a frame; integers of 128 bits are decimals without a fraction.

    Raises:
        InvalidInputError: such a number has more than 38 digits, or is inside another value.
    """
    return pa.RecordBatchReader.from_stream(_narrowed(frame))


def open_lazy_frame(frame: pl.LazyFrame) -> pa.RecordBatchReader:
    """Return a reader of what a lazy frame gives; its query runs while the rows are read.

    Raises:
        InvalidInputError: this release of Polars gives no batches; or as for `open_frame`.

    Cost: memory for what the query itself keeps, and for a few batches.
    """
    import polars as pl  # noqa: PLC0415  # optional, and there: this is a frame of it

    if not hasattr(frame, "collect_batches"):
        raise InvalidInputError(
            f"cannot write a LazyFrame of Polars {pl.__version__}, which gives no batches: "
            "write frame.collect(), or use a newer Polars"
        )
    schema = open_frame(pl.DataFrame(schema=frame.collect_schema())).schema
    return pa.RecordBatchReader.from_batches(schema, _batches(frame))


def _batches(frame: pl.LazyFrame) -> Iterator[pa.RecordBatch]:
    for part in frame.collect_batches(lazy=True):
        yield from open_frame(part)


def _narrowed(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with decimals for integers of 128 bits, for which Arrow has no type."""
    import polars as pl  # noqa: PLC0415  # as above

    wide = []
    for name, kind in frame.schema.items():
        if str(kind) in _WIDE:
            wide.append(name)
        elif kind.is_nested() and any(part in str(kind) for part in _WIDE):
            raise InvalidInputError(
                f"cannot write the column {name!r}, a {kind}: Delta has no integers of 128 bits; "
                "cast them to pl.Decimal(38, 0)"
            )
    if not wide:
        return frame
    try:
        return frame.with_columns(pl.col(wide).cast(pl.Decimal(38, 0)))
    except pl.exceptions.PolarsError as error:
        raise InvalidInputError(
            f"cannot write the columns {wide!r}, integers of 128 bits, as decimal(38,0): "
            f"{str(error).partition(chr(10))[0]}"
        ) from error
