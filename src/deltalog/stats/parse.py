"""Statistics from JSON: a column of texts as struct columns of the leaves asked for.

Owns the traps of `pyarrow.json`, measured: it drops an empty text (rows would shift), and one row
that it cannot convert fails them all (`"NaN"`, a whole number written `1.0`, a key that stands
twice, a torn text). So rows are made tidy first, dates and times come in as texts, the count is
checked, and rows that still fail are narrowed down and read one by one.

A statistic that cannot be read is NULL, and NULL never prunes: nothing here fails a read.

Protocol: Per-file Statistics
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.json as pj
import pyarrow.types as pt

from deltalog.kernels import Array, pc
from deltalog.stats.leaves import leaf_of
from deltalog.stats.rows import read_by_row
from deltalog.stats.schema import (
    NULL_COUNT,
    NULL_COUNT_ALIAS,
    bounds_in_arrow,
    conform_stats,
    leaves_of_schema,
    schema_of_leaves,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog.stats.leaves import StatsLeaf
    from deltalog.stats.schema import Path


# Large enough to keep both cores busy, small enough that the copy of the texts stays small.
_SLICE_BYTES: Final = 32 << 20
_BLOCK_BYTES: Final = 1 << 20
_FEW_ROWS: Final = 16
_PIECES: Final = 8

_QUOTED_FLOAT: Final = r'"[+-]?(NaN|Infinity)"'


def parse_stats(json: pa.Array[Any] | pa.ChunkedArray[Any], schema: pa.Schema) -> pa.Table:
    """Return the statistics of every row, restricted to the leaves of `schema`.

    Args:
        json: one text per file; null, empty and malformed texts have no statistics.
        schema: the leaves wanted (`stats_schema`, `project_stats`, `Skipping.stats_schema`).

    Returns:
        One row per row of `json`, in order, with `schema`.

    Cost: one pass of `pyarrow.json`; rows that it refuses cost some microseconds each.
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
    """One column per leaf, one row per JSON text."""
    table = parse_stats(texts, schema_of_leaves(leaves))
    return [leaf_of(table, path) for path, _ in leaves]


def _wire_schema(schema: pa.Schema) -> pa.Schema:
    """The schema to read JSON with: wide integers, and texts where a value may be odd."""
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
    """Every row as one `{…}`; a text that is no object becomes the empty one.

    A row that starts with `{` and ends with `}` can neither vanish nor join the next one, so that
    as many documents as rows means one document per row.
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
    # A fault in every piece is a writer's habit: looking for the good rows would cost more.
    narrow = _read if any(tables) else read_by_row
    return pa.concat_tables(
        [
            narrow(piece, wire) if table is None else table
            for piece, table in zip(pieces, tables, strict=True)
        ]
    )


def _read_apart(texts: Array, odd: Array, wire: pa.Schema) -> pa.Table:
    """The odd rows read by row and the others at once, in their order."""
    even: Array = pc.invert(odd)
    both = pa.concat_tables([_read(texts.filter(even), wire), read_by_row(texts.filter(odd), wire)])
    order = pa.concat_arrays([pc.indices_nonzero(even), pc.indices_nonzero(odd)])
    return both.take(pc.sort_indices(order))


def _read_at_once(texts: Array, wire: pa.Schema) -> pa.Table | None:
    """All rows through `pyarrow.json`, or None if it refuses one of them."""
    lines = pc.binary_join_element_wise(texts, "", "\n")
    data = lines.buffers()[2]  # all of it: what Arrow has just made is no slice
    lengths: Array = pc.binary_length(texts)
    longest = pc.max(lengths).as_py()
    try:
        table = pj.read_json(
            pa.BufferReader(data),  # type: ignore[arg-type]  # stubs: any file but Arrow's
            # A row longer than a block would be refused.
            read_options=pj.ReadOptions(
                use_threads=False, block_size=max(_BLOCK_BYTES, 2 * longest + 2)
            ),
            parse_options=pj.ParseOptions(explicit_schema=wire, unexpected_field_behavior="ignore"),
        )
    except pa.ArrowInvalid:
        return None
    return table if table.num_rows == len(texts) else None
