"""Streams of the rows of a query: names of columns, and values of types that DuckDB lacks.

Protocol: none
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltalog._util.escaping import name_key
from deltalog.errors import InvalidInputError
from deltalog.schema.arrow import with_query_type
from deltalog.schema.primitives.moments import NAMED_MONTHS, time_spans
from deltalog.schema.types import YEAR_TO_MONTH

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def has_nanos(rows: Any) -> bool:
    """Return whether rows have timestamps in nanoseconds."""
    schema: Any = rows.schema
    return any(pa.types.is_timestamp(part.type) and part.type.unit == "ns" for part in schema)


def with_spans(reader: pa.RecordBatchReader, shown: str) -> pa.RecordBatchReader:
    """Convert the intervals of DuckDB in a stream of rows to the interval types of tables.

    Args:
        reader: the rows.
        shown: the query, for errors.
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
    """Convert months in a stream of rows to numbers. Metadata of the field marks them as months.

    Args:
        reader: the rows, in which months have the type `NAMED_MONTHS`.
        shown: the query, for errors.

    Raises:
        InvalidInputError: months are inside an array, a map or a struct.
    """
    places = [n for n, part in enumerate(reader.schema) if part.type == NAMED_MONTHS]
    schema = reader.schema
    for place in places:
        numbers = pa.field(schema.names[place], pa.int32())
        schema = schema.set(place, with_query_type(numbers, YEAR_TO_MONTH))
    inside = [part.name for part in schema if str(NAMED_MONTHS) in str(part.type)]
    if inside:
        raise InvalidInputError(
            f"cannot run {shown!r}: column {inside[0]!r} would have intervals of years and months "
            "inside of another type, which a query cannot return"
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


def as_spelled(reader: pa.RecordBatchReader, names: Sequence[str | None]) -> pa.RecordBatchReader:
    """Return the rows with the column names of the query; DuckDB uses the spelling of the table."""
    own = reader.schema.names
    if len(names) != len(own):
        return reader
    spelled = [
        name if name is not None and name_key(name) == name_key(one) else one
        for one, name in zip(own, names, strict=True)
    ]
    return reader if spelled == own else with_names(reader, spelled)


def with_names(reader: pa.RecordBatchReader, names: Sequence[str]) -> pa.RecordBatchReader:
    """Rename the columns of a stream of rows."""
    fields = zip(reader.schema, names, strict=True)
    return with_schema(reader, pa.schema([field.with_name(name) for field, name in fields]))


def with_schema(reader: pa.RecordBatchReader, schema: pa.Schema) -> pa.RecordBatchReader:
    """Return the stream of rows with another schema that has the same types."""
    batches = (
        pa.RecordBatch.from_arrays(batch.columns, schema=schema) if batch.num_columns else batch
        for batch in reader
    )
    return pa.RecordBatchReader.from_batches(schema, batches)
