"""Answers of queries as they are shown: their names, and values of types that DuckDB has not.

Protocol: none
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltalog.errors import InvalidInputError
from deltalog.expressions.implicit import fine_literal
from deltalog.features.previews import is_supported
from deltalog.features.registry import Support
from deltalog.names import name_key
from deltalog.schema.arrow import told_of_query
from deltalog.schema.primitives.spans import NAMED_MONTHS, time_spans
from deltalog.schema.types import (
    TIMESTAMP,
    TIMESTAMP_NANOS,
    TIMESTAMP_NANOS_NTZ,
    TIMESTAMP_NTZ,
    YEAR_TO_MONTH,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog.expressions import Literal


def has_nanos(rows: Any) -> bool:
    """Return whether rows have moments in nanoseconds."""
    schema: Any = rows.schema
    return any(pa.types.is_timestamp(part.type) and part.type.unit == "ns" for part in schema)


def with_spans(reader: pa.RecordBatchReader, shown: str) -> pa.RecordBatchReader:
    """Return the rows with DuckDB's intervals as the spans of time that they are in tables.

    Args:
        reader: of the rows.
        shown: the query in errors.
    """
    places = [n for n, part in enumerate(reader.schema) if pa.types.is_interval(part.type)]
    if not places:
        return reader
    schema = reader.schema
    for place in places:
        schema = schema.set(place, schema.field(place).with_type(pa.duration("us")))

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            found = batch
            try:
                for place in places:
                    spans = time_spans(batch.column(place))
                    found = found.set_column(place, schema.field(place), spans)
            except ValueError as error:
                raise InvalidInputError(f"cannot run {shown!r}: {error}") from error
            yield found

    return pa.RecordBatchReader.from_batches(schema, batches())


def with_months(reader: pa.RecordBatchReader, shown: str) -> pa.RecordBatchReader:
    """Return the rows with months as numbers, in fields that tell it.

    Args:
        reader: of the rows, whose months are `NAMED_MONTHS`.
        shown: the query in errors.

    Raises:
        InvalidInputError: an array, a map or a struct has months.
    """
    places = [n for n, part in enumerate(reader.schema) if part.type == NAMED_MONTHS]
    schema = reader.schema
    for place in places:
        numbers = pa.field(schema.names[place], pa.int32())
        schema = schema.set(place, told_of_query(numbers, YEAR_TO_MONTH))
    inside = [part.name for part in schema if str(NAMED_MONTHS) in str(part.type)]
    if inside:
        raise InvalidInputError(
            f"cannot run {shown!r}: column {inside[0]!r} would have intervals of years and months "
            "inside of another type, which a query cannot give"
        )
    if not places:
        return reader

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            found = batch
            for place in places:
                column: Any = batch.column(place)
                found = found.set_column(place, schema.field(place), column.flatten()[0])
            yield found

    return pa.RecordBatchReader.from_batches(schema, batches())


def as_inserted(literal: Literal) -> Literal:
    """Return a constant of VALUES, in nanoseconds if it has some: its column may keep them."""
    is_kept = literal.nanos and is_supported("timestampNanos", Support.PREVIEW)
    if not is_kept or literal.type not in {TIMESTAMP, TIMESTAMP_NTZ}:
        return literal
    has_zone = literal.type == TIMESTAMP
    return fine_literal(literal, TIMESTAMP_NANOS if has_zone else TIMESTAMP_NANOS_NTZ)


def as_spelled(reader: pa.RecordBatchReader, names: Sequence[str | None]) -> pa.RecordBatchReader:
    """Return the rows with the query's names of columns, as in Spark: DuckDB gives the table's."""
    own = reader.schema.names
    if len(names) != len(own):
        return reader
    spelled = [
        name if name is not None and name_key(name) == name_key(one) else one
        for one, name in zip(own, names, strict=True)
    ]
    return reader if spelled == own else with_names(reader, spelled)


def with_names(reader: pa.RecordBatchReader, names: Sequence[str]) -> pa.RecordBatchReader:
    """Return the rows with other names of columns, streamed."""
    fields = zip(reader.schema, names, strict=True)
    return with_schema(reader, pa.schema([field.with_name(name) for field, name in fields]))


def with_schema(reader: pa.RecordBatchReader, schema: pa.Schema) -> pa.RecordBatchReader:
    """Return the rows with fields of the same types, which have other names or metadata."""
    batches = (
        pa.RecordBatch.from_arrays(batch.columns, schema=schema) if batch.num_columns else batch
        for batch in reader
    )
    return pa.RecordBatchReader.from_batches(schema, batches)
