"""Statistics of a checkpoint's files, typed.

Owns the choice of the source: the leaves of `stats_parsed` where the file has them, the JSON texts
for what it has not. What neither has is NULL.

Protocol: Checkpoint Schema, Per-file Statistics
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from deltalog.checkpoints.schema import chunked, nulls
from deltalog.stats import conform_stats, encode_stats_column, parse_stats, schema_of_leaves

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from deltalog.checkpoints.layout import CheckpointFile

StatsLeaf = tuple[tuple[str, ...], pa.DataType]

_PARSED: Final = ("add", "stats_parsed")
_JSON: Final = ("add", "stats")
_ALIASES: Final = {"nullCount": "nullCounts"}
_CURRENT: Final = {alias: name for name, alias in _ALIASES.items()}
_compute: Final[Any] = pc  # the stubs know no chunked column beside a Python scalar


def read_stats(file: CheckpointFile, leaves: Sequence[StatsLeaf]) -> list[pa.ChunkedArray[Any]]:
    """One column per leaf, one row per `add` of the file.

    Cost: the leaves of `stats_parsed`, or the JSON texts and one pass through them.
    """
    have = set(file.leaves("add"))
    sources = {path: _stored_as(path, have) for path, _ in leaves}
    parsed = [leaf for leaf in leaves if sources[leaf[0]] is not None]
    others = [leaf for leaf in leaves if sources[leaf[0]] is None]
    found: dict[tuple[str, ...], pa.ChunkedArray[Any]] = {}
    if parsed:
        stored = [source for source in sources.values() if source is not None]
        column = member_of(file.actions("add", stored), "stats_parsed")
        table = conform_stats(column, schema_of_leaves(parsed))
        found.update({path: leaf_of(table, path) for path, _ in parsed})
    if others and _JSON in have:
        texts = member_of(file.actions("add", [_JSON]), "stats")
        table = parse_stats(texts, schema_of_leaves(others))
        found.update({path: leaf_of(table, path) for path, _ in others})
    elif others:
        rows = len(next(iter(found.values()))) if found else len(file.actions("add", []))
        found.update({path: chunked([nulls(rows, kind)], kind) for path, kind in others})
    return [found[path] for path, _ in leaves]


def texts_of_stats(actions: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    """`stats_parsed` as the JSON texts that `stats` would hold.

    Cost: some kernels per statistic; only checkpoints without the texts need it.
    """
    chunks: list[pa.Array[Any]] = []
    structs: Any = member_of(actions, "stats_parsed").chunks
    for chunk in structs:
        names = [_CURRENT.get(field.name, field.name) for field in chunk.type]
        chunks.extend(encode_stats_column(pa.Table.from_arrays(chunk.flatten(), names)).chunks)
    return chunked(chunks, pa.string())


def leaf_of(table: pa.Table, path: Sequence[str]) -> pa.ChunkedArray[Any]:
    """A leaf of a table of struct columns, NULL where a parent is."""
    column = table.column(path[0])
    for name in path[1:]:
        column = _compute.struct_field(column, [column.type.get_field_index(name)])
    return column


def nest(leaves: Sequence[tuple[tuple[str, ...], pa.ChunkedArray[Any]]]) -> pa.Table:
    """Leaf columns of equal length as the table of struct columns that has them.

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


def _nested(field: Any, path: tuple[str, ...], leaves: dict[tuple[str, ...], Any]) -> Any:
    if path in leaves:
        return leaves[path]
    children = [_nested(child, (*path, child.name), leaves) for child in field.type]
    return pa.StructArray.from_arrays(children, fields=list(field.type))


def member_of(actions: pa.ChunkedArray[Any], name: str) -> pa.ChunkedArray[Any]:
    """A member of a struct column as it is; empty if no action was found."""
    if actions.type.get_field_index(name) < 0:
        return chunked([], pa.struct([]))
    member: pa.ChunkedArray[Any] = _compute.struct_field(actions, name)
    return member


def _stored_as(path: tuple[str, ...], have: Collection[tuple[str, ...]]) -> tuple[str, ...] | None:
    """Where the file has a leaf of the statistics."""
    spellings = (path[0], _ALIASES.get(path[0], path[0]))
    for name in spellings:
        if (*_PARSED, name, *path[1:]) in have:
            return (*_PARSED, name, *path[1:])
    return None
