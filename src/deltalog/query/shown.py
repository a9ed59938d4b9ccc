"""Answers of queries as they are shown: their names, and values of types that DuckDB has not.

Protocol: none
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.errors import InvalidInputError
from deltalog.expressions.implicit import fine_literal
from deltalog.features.previews import is_supported
from deltalog.features.registry import Support
from deltalog.schema.primitives.spans import time_spans
from deltalog.schema.types import TIMESTAMP, TIMESTAMP_NANOS, TIMESTAMP_NANOS_NTZ, TIMESTAMP_NTZ

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog.expressions import Literal

_MONTHS: Final = "deltalog months"
MONTHS_TEXT: Final = f'STRUCT("{_MONTHS}" INTEGER)'
"""Intervals of years and months on their way through DuckDB, whose own have days as well."""


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


def as_months(values: pa.Array[Any]) -> pa.Array[Any]:
    """Return numbers of months as DuckDB gets them, of the type `MONTHS_TEXT`."""
    return pa.StructArray.from_arrays([values], [_MONTHS], mask=values.is_null())


def with_months(reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Return the rows with what `as_months` gave as numbers again, in fields that are marked."""
    kind = pa.struct([(_MONTHS, pa.int32())])
    places = [n for n, part in enumerate(reader.schema) if part.type == kind]
    schema = reader.schema
    for place in places:
        marked = pa.field(schema.names[place], pa.int32(), metadata={_MONTHS: ""})
        schema = schema.set(place, marked)

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            found = batch
            for place in places:
                column: Any = batch.column(place)
                found = found.set_column(place, schema.field(place), column.flatten()[0])
            yield found

    return pa.RecordBatchReader.from_batches(schema, batches())


def has_months(field: pa.Field[Any]) -> bool:
    """Whether a field of `with_months` has numbers of months."""
    return _MONTHS.encode() in (field.metadata or {})


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
        name if name is not None and name.lower() == one.lower() else one
        for one, name in zip(own, names, strict=True)
    ]
    return reader if spelled == own else with_names(reader, spelled)


def with_names(reader: pa.RecordBatchReader, names: Sequence[str]) -> pa.RecordBatchReader:
    """Return the rows with other names of columns, streamed."""
    fields = zip(reader.schema, names, strict=True)
    schema = pa.schema([field.with_name(name) for field, name in fields])
    batches = (batch.rename_columns(schema.names) for batch in reader)
    return pa.RecordBatchReader.from_batches(schema, batches)
