"""Group rows by the values of their partition columns.

Rows belong to one partition if their values have the same serialised form in the log, so that an
empty string and NULL are one partition.

Protocol: Partition Value Serialization
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from deltalog.errors import InvalidInputError
from deltalog.kernels import Array, compute, pc
from deltalog.partition_values import encode_value
from deltalog.schema.primitives.moments import values_or_counts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.schema import Field

Values = tuple[str | None, ...]


class Group(NamedTuple):
    """The rows of one partition.

    Args:
        values: serialised partition values, in the order of the partition columns.
        rows: positions in the batch, ascending; None is all.
    """

    values: Values
    rows: pa.Int64Array | None


def split(batch: pa.RecordBatch, columns: Sequence[Field]) -> list[Group]:
    """Group the rows of a batch by partition.

    Args:
        batch: in the table's logical schema.
        columns: the partition columns, in the order of partitioning.

    Raises:
        InvalidInputError: a value has no serialised form; the message names the column.

    Cost: some kernels over each partition column; Python touches each distinct value once.
    """
    if not batch.num_rows:
        return []
    codes: Array = None
    texts: list[Values] = [()]
    for field in columns:
        numbers, found = _numbered(batch.column(field.name), field)
        if codes is None:
            codes, texts = numbers, [(text,) for text in found]
            continue
        joined = pc.add(pc.multiply(codes, pa.scalar(len(found), pa.int64())), numbers)
        encoded = joined.dictionary_encode()
        codes = encoded.indices.cast(pa.int64())
        pairs = [divmod(code, len(found)) for code in encoded.dictionary.to_pylist()]
        texts = [(*texts[before], found[number]) for before, number in pairs]
    if len(texts) == 1:
        return [Group(texts[0], None)]
    return _grouped(codes, texts)


def _grouped(codes: Array, texts: Sequence[Values]) -> list[Group]:
    order: Array = pc.array_sort_indices(codes)
    runs = compute.run_end_encode(codes.take(order))
    ends = runs.run_ends.to_pylist()
    groups: list[Group] = []
    start = 0
    for end, code in zip(ends, runs.values.to_pylist(), strict=True):
        groups.append(Group(texts[code], order.slice(start, end - start)))
        start = end
    return groups


def _numbered(array: Array, field: Field) -> tuple[Array, list[str | None]]:
    """Return a number for every row, and the serialised value for each number."""
    encoded: Array = pc.dictionary_encode(array, null_encoding="encode")
    numbers: dict[str | None, int] = {}
    try:
        texts = [encode_value(value, field.type) for value in values_or_counts(encoded.dictionary)]
    except (InvalidInputError, ValueError, OverflowError) as error:
        raise InvalidInputError(f"partition column {field.name!r}: {error}") from error
    mapped = [numbers.setdefault(text, len(numbers)) for text in texts]
    codes: Array = pa.array(mapped, pa.int64()).take(encoded.indices)
    return codes, list(numbers)
