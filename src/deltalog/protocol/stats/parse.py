"""Parse statistics: JSON strings to struct columns with the requested leaves.

`pyarrow.json` has two problems. It drops empty strings, so that later rows would shift. And it
fails for all rows if it cannot convert a single row, for example because of `"NaN"`, an integer
written as `1.0`, a repeated key or a truncated string. So this module first normalises the strings,
reads dates and times as strings, and checks the number of rows. If reading fails, it finds the rows
with errors by bisection, and reads them one by one.

Malformed statistics never cause an error. An unreadable statistic is NULL, which never prunes a
file.

Protocol: Per-file Statistics
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, DecimalException
from typing import Any, Final

import pyarrow as pa
import pyarrow.json as pj
import pyarrow.types as pt

from deltalog._util.json import loads, parse_lexemes
from deltalog._util.kernels import Array, compute, pc
from deltalog.errors import MalformedLogError
from deltalog.protocol.stats.schema import (
    MAX_VALUES,
    MIN_VALUES,
    NULL_COUNT,
    NULL_COUNT_ALIAS,
    Path,
    bounds_in_arrow,
    conform_stats,
    leaves_of_schema,
    schema_of_leaves,
)

# The size in bytes of the slices of JSON strings that are parsed separately. Larger slices would
# use fewer cores, and more memory for the copy of the strings.
_SLICE_BYTES: Final = 32 << 20
_BLOCK_BYTES: Final = 1 << 20
_FEW_ROWS: Final = 16
_PIECES: Final = 8

_QUOTED_FLOAT: Final = r'"[+-]?(NaN|Infinity)"'


def parse_stats(json: pa.Array[Any] | pa.ChunkedArray[Any], schema: pa.Schema) -> pa.Table:
    """Return the statistics of every row, restricted to the leaves of `schema`.

    Args:
        json: one string for each file; a null, empty or malformed string has no statistics.
        schema: the requested leaves, such as the result of `stats_schema`.

    Returns:
        A table with `schema`, and one row for each row of `json` in the same order.

    Cost: one pass of `pyarrow.json`; some microseconds for each row that it cannot read.
    """
    if not len(schema):
        rows = pa.repeat(pa.scalar({}, pa.struct([])), len(json))
        return pa.Table.from_batches([pa.RecordBatch.from_struct_array(rows)])
    wire = _wire_schema(schema)
    tables = [
        conform_stats(_read(_tidy(texts), wire).to_struct_array(), schema)
        for chunk in (json.chunks if isinstance(json, pa.ChunkedArray) else [json])
        for texts in _slices(chunk)
    ]
    return pa.concat_tables(tables) if tables else schema.empty_table()


def parsed_leaves(
    texts: pa.ChunkedArray[Any], leaves: Sequence[StatsLeaf]
) -> list[pa.ChunkedArray[Any]]:
    """Return a column for each leaf, with a row for each JSON string."""
    table = parse_stats(texts, schema_of_leaves(leaves))
    return [leaf_of(table, path) for path, _ in leaves]


def _wire_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema for reading JSON: wide integers, and strings for unusual values."""
    leaves: list[tuple[Path, pa.DataType]] = []
    for path, data_type in leaves_of_schema(schema):
        leaves.append((path, bounds_in_arrow(data_type).wire or data_type))
        if path[0] == NULL_COUNT:
            leaves.append(((NULL_COUNT_ALIAS, *path[1:]), pa.int64()))
    return schema_of_leaves(leaves)


def _slices(chunk: Array) -> Iterator[Array]:
    step = max(1, len(chunk) * _SLICE_BYTES // max(chunk.nbytes, 1))
    for start in range(0, len(chunk), step):
        part = chunk.slice(start, step)
        yield part if pt.is_string(part.type) else part.cast(pa.string())


def _tidy(texts: Array) -> Array:
    """Replace every string that does not start with `{` and end with `}` by `{}`.

    A row that starts with `{` and ends with `}` cannot be dropped or merged with the next row. So
    if the numbers of documents and rows are equal, each row is one document.
    """
    texts = pc.fill_null(texts, "{}")
    if _is_tidy(texts):
        return texts
    texts = pc.utf8_trim_whitespace(texts)
    ends = pc.and_(pc.starts_with(texts, "{"), pc.ends_with(texts, "}"))
    return pc.if_else(ends, texts, "{}")


def _is_tidy(texts: Array) -> bool:
    starts, ends = pc.all(pc.starts_with(texts, "{")), pc.all(pc.ends_with(texts, "}"))
    return bool(starts.as_py()) and bool(ends.as_py())


def _read(texts: Array, wire: pa.Schema) -> pa.Table:
    table = _read_at_once(texts, wire)
    if table is not None:
        return table
    if len(texts) <= _FEW_ROWS:
        return read_by_row(texts, wire)
    if any(pt.is_floating(leaf) for _, leaf in leaves_of_schema(wire)):
        odd: Array = pc.match_substring_regex(texts, _QUOTED_FLOAT)
        if 0 < (count := odd.true_count) < len(texts):
            return _read_apart(texts, odd, wire)
        if count:
            return read_by_row(texts, wire)
    step = -(-len(texts) // _PIECES)
    pieces = [texts.slice(start, step) for start in range(0, len(texts), step)]
    tables = [_read_at_once(piece, wire) for piece in pieces]
    # If all pieces fail, the writer probably makes the same error in each row. Then read row by row
    # instead of searching for the wrong rows.
    narrow = _read if any(tables) else read_by_row
    return pa.concat_tables(
        [
            narrow(piece, wire) if table is None else table
            for piece, table in zip(pieces, tables, strict=True)
        ]
    )


def _read_apart(texts: Array, odd: Array, wire: pa.Schema) -> pa.Table:
    """Read the rows marked in `odd` one by one and the other rows together; restore the order."""
    even: Array = pc.invert(odd)
    both = pa.concat_tables([_read(texts.filter(even), wire), read_by_row(texts.filter(odd), wire)])
    order = pa.concat_arrays([pc.indices_nonzero(even), pc.indices_nonzero(odd)])
    return both.take(pc.sort_indices(order))


def _read_at_once(texts: Array, wire: pa.Schema) -> pa.Table | None:
    """Read all rows with `pyarrow.json`; return None if it cannot read all of them."""
    lines = pc.binary_join_element_wise(texts, "", "\n")
    data = lines.buffers()[2]  # the array is new and not a slice, so it uses the whole buffer
    lengths: Array = pc.binary_length(texts)
    longest = pc.max(lengths).as_py()
    try:
        table = pj.read_json(
            pa.BufferReader(data),  # type: ignore[arg-type]  # the stubs lack Arrow's own files
            # `pyarrow.json` cannot read a row longer than a block.
            read_options=pj.ReadOptions(
                use_threads=False, block_size=max(_BLOCK_BYTES, 2 * longest + 2)
            ),
            parse_options=pj.ParseOptions(explicit_schema=wire, unexpected_field_behavior="ignore"),
        )
    except pa.ArrowInvalid:
        return None
    return table if table.num_rows == len(texts) else None


# --- Reading of statistics value by value, if `pyarrow.json` cannot read them


_FLOATS: Final = {
    "NaN": math.nan,
    "Infinity": math.inf,
    "+Infinity": math.inf,
    "-Infinity": -math.inf,
}
_WHOLE_DIGITS: Final = 20
_MAX_FLOAT32: Final = 3.4028235677973366e38


def read_by_row(texts: Array, wire: pa.Schema) -> pa.Table:
    """Return the leaves of every string; NULL for missing or invalid values.

    Args:
        texts: the strings, without NULL.
        wire: a nested schema of integers, floats, decimals, strings and booleans.

    Cost: some microseconds per row.
    """
    leaves = leaves_of_schema(wire)
    exact = any(pt.is_decimal(data_type) for _, data_type in leaves)
    rows = [_document(text, exact=exact) for text in texts.to_pylist()]
    columns: dict[Path, Array] = {}
    for path, leaf in leaves:
        convert = next(convert for applies, convert in _CONVERT if applies(leaf))
        columns[path] = pa.array([convert(_dig(row, path), path, leaf) for row in rows], leaf)
    arrays = [_nest((field.name,), field, columns) for field in wire]
    return pa.table(arrays, schema=wire)


def _document(text: str, *, exact: bool) -> Any:
    try:
        return parse_lexemes(text) if exact else loads(text)
    except MalformedLogError:
        return None


def _dig(row: Any, path: Path) -> Any:
    for name in path:
        if not isinstance(row, dict):
            return None
        row = row.get(name)
    return row


def _nest(path: Path, field: pa.Field[Any], columns: dict[Path, Array]) -> Array:
    if not pt.is_struct(field.type):
        return columns[path]
    children = list(field.type)
    arrays = [_nest((*path, child.name), child, columns) for child in children]
    return pa.StructArray.from_arrays(arrays, fields=children)


def _to_whole(value: Any, _path: Path, _leaf: pa.DataType) -> int | None:
    if isinstance(value, bool) or value is None or type(value) is str:
        return None
    try:
        number = Decimal(value)
        whole = int(number) if number.adjusted() < _WHOLE_DIGITS else 0
    except (DecimalException, TypeError, ValueError, OverflowError):
        return None
    return whole if whole == number and -(1 << 63) <= whole < 1 << 63 else None


def _to_float(value: Any, _path: Path, leaf: pa.DataType) -> float | None:
    if type(value) is str:
        return _FLOATS.get(value)
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    if pt.is_float32(leaf) and abs(number) >= _MAX_FLOAT32:
        return None
    return number if math.isfinite(number) else None


def _to_decimal(value: Any, path: Path, leaf: Any) -> Decimal | None:
    """Return a decimal; a minimum with too many digits is rounded down, a maximum up."""
    if value is None or isinstance(value, bool):
        return None
    rounding = {MIN_VALUES: ROUND_FLOOR, MAX_VALUES: ROUND_CEILING}.get(path[0], ROUND_FLOOR)
    try:
        number = Decimal(value).quantize(
            Decimal(1).scaleb(-leaf.scale), rounding, Context(prec=leaf.precision)
        )
    except (DecimalException, TypeError, ValueError):
        return None
    return number if number.is_finite() else None


def _to_text(value: Any, _path: Path, _leaf: pa.DataType) -> str | None:
    if type(value) is not str:
        return None
    # A string with a lone surrogate is not valid Unicode, so no column can contain it.
    return value if value.isascii() or value.encode(errors="ignore").decode() == value else None


def _to_boolean(value: Any, _path: Path, _leaf: pa.DataType) -> bool | None:
    return value if isinstance(value, bool) else None


_CONVERT: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any, Path, Any], Any]], ...]] = (
    (pt.is_integer, _to_whole),
    (pt.is_floating, _to_float),
    (pt.is_decimal, _to_decimal),
    (pt.is_string, _to_text),
    (pt.is_boolean, _to_boolean),
)


# --- Batches of add actions with statistics, from a checkpoint or from commits


@dataclass(frozen=True, slots=True)
class AddBatch:
    """A batch of add actions that is decoded on request.

    Args:
        num_rows: the number of rows of the batch.
        decode: returns a table with `FILE_SCHEMA`, and one column for each leaf of the statistics.
            It may be called in another thread.
    """

    num_rows: int
    decode: Callable[[], tuple[pa.Table, list[pa.ChunkedArray[Any]]]]

    def filter(self, kept: pa.ChunkedArray[pa.BooleanScalar]) -> AddBatch:
        """Return a batch with only the actions for which `kept` is true."""

        def decode() -> tuple[pa.Table, list[pa.ChunkedArray[Any]]]:
            adds, columns = self.decode()
            return adds.filter(kept), [column.filter(kept) for column in columns]

        return AddBatch(compute.sum(kept).as_py() or 0, decode)


def unread_adds(adds: pa.Table, leaves: Sequence[StatsLeaf]) -> AddBatch:
    """Return a batch of `add` actions from commits. `decode` parses their statistics.

    Args:
        adds: a table of `FILE_SCHEMA`.
        leaves: the requested leaves of the statistics.
    """
    return AddBatch(adds.num_rows, lambda: (adds, parsed_leaves(adds.column("stats"), leaves)))


# --- Splitting tables of statistics into leaves, and assembling them again


StatsLeaf = tuple[Path, pa.DataType]


def leaf_of(table: pa.Table, path: Sequence[str]) -> pa.ChunkedArray[Any]:
    """Return a leaf of a table of struct columns. It is NULL where a parent struct is NULL."""
    column = table.column(path[0])
    for name in path[1:]:
        column = compute.struct_field(column, [column.type.get_field_index(name)])
    return column


def nest(leaves: Sequence[tuple[Path, pa.ChunkedArray[Any]]]) -> pa.Table:
    """Return a table of struct columns, built from leaves of equal length.

    Cost: no copy.
    """
    schema = schema_of_leaves((path, column.type) for path, column in leaves)
    flat = pa.Table.from_arrays(
        [column for _, column in leaves], [str(n) for n in range(len(leaves))]
    )
    batches = []
    for batch in flat.to_batches():
        by_path = {path: batch.column(number) for number, (path, _) in enumerate(leaves)}
        columns = [_nested(field, (field.name,), by_path) for field in schema]
        batches.append(pa.RecordBatch.from_arrays(columns, schema=schema))
    return pa.Table.from_batches(batches, schema)


def _nested(field: Any, path: Path, leaves: dict[Path, Any]) -> Any:
    if path in leaves:
        return leaves[path]
    children = [_nested(child, (*path, child.name), leaves) for child in field.type]
    return pa.StructArray.from_arrays(children, fields=list(field.type))
