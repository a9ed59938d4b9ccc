"""Typed statistics of the files in a checkpoint.

Owns the choice of the source: the leaves of `stats_parsed` that the checkpoint has, and its JSON
texts for the others. A statistic in neither is NULL.

Protocol: Checkpoint Schema, Per-file Statistics
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.checkpoints.schema import chunked, nulls
from deltalog.kernels import compute
from deltalog.stats import (
    conform_stats,
    encode_stats_column,
    leaf_of,
    leaves_of_schema,
    parsed_leaves,
    schema_of_leaves,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from deltalog.checkpoints.layout import CheckpointFile
    from deltalog.stats import StatsLeaf

_PARSED: Final = ("add", "stats_parsed")
_JSON: Final = ("add", "stats")
_BATCH_ROWS: Final = 1 << 15
_ALIASES: Final = {"nullCount": "nullCounts"}
_CURRENT: Final = {alias: name for name, alias in _ALIASES.items()}


def read_stats(
    file: CheckpointFile,
    leaves: Sequence[StatsLeaf],
    where: pa.BooleanArray | None = None,
) -> list[pa.ChunkedArray[Any]]:
    """One column per leaf, one row per `add` of the file.

    Args:
        file: of the checkpoint.
        leaves: of the statistics.
        where: which adds are wanted; None is all.

    Cost: the leaves of `stats_parsed`, or the JSON texts up to the last one that is wanted, and one
    pass through those that are.
    """
    sources = stats_sources(set(file.leaves("add")), leaves)
    if _JSON not in sources and where is None:
        return stats_of(file.actions("add", sources), leaves)
    # JSON texts are many times larger than the columns parsed from them: few are held at a time.
    parts = []
    row = 0
    end = _end(where)
    for actions in file.batches("add", sources, _BATCH_ROWS) if end != 0 else ():
        wanted = None if where is None else where.slice(row, len(actions))
        row += len(actions)
        if wanted is None:
            parts.append(stats_of(actions, leaves))
        elif wanted.true_count:
            parts.append(stats_of(actions.filter(wanted), leaves))
        if end is not None and row >= end:
            break
    return [
        chunked([chunk for part in parts for chunk in part[number].chunks], kind)
        for number, (_, kind) in enumerate(leaves)
    ]


def _end(where: pa.BooleanArray | None) -> int | None:
    """The number of rows up to the last that is wanted; None is all."""
    if where is None:
        return None
    wanted = compute.indices_nonzero(where)
    return wanted[-1].as_py() + 1 if len(wanted) else 0


def stats_sources(
    have: Collection[tuple[str, ...]], leaves: Sequence[StatsLeaf]
) -> list[tuple[str, ...]]:
    """The columns of a file from which `leaves` are made: typed ones, and JSON for the others."""
    stored = [_stored_as(path, have) for path, _ in leaves]
    fields = [source for source in stored if source is not None]
    return [*fields, _JSON] if len(fields) < len(leaves) and _JSON in have else fields


def stats_of(
    actions: pa.ChunkedArray[Any], leaves: Sequence[StatsLeaf]
) -> list[pa.ChunkedArray[Any]]:
    """One column per leaf, one row per action, from the columns of `stats_sources`."""
    have = set(_members(actions.type))
    parsed = [leaf for leaf in leaves if _stored_as(leaf[0], have) is not None]
    others = [leaf for leaf in leaves if _stored_as(leaf[0], have) is None]
    found: dict[tuple[str, ...], pa.ChunkedArray[Any]] = {}
    if parsed:
        table = conform_stats(member_of(actions, "stats_parsed"), schema_of_leaves(parsed))
        found.update({path: leaf_of(table, path) for path, _ in parsed})
    if others and _JSON in have:
        columns = parsed_leaves(member_of(actions, "stats"), others)
        found.update({path: column for (path, _), column in zip(others, columns, strict=True)})
    else:
        rows = len(actions)
        found.update({path: chunked([nulls(rows, kind)], kind) for path, kind in others})
    return [found[path] for path, _ in leaves]


def _members(action_type: Any) -> Iterator[tuple[str, ...]]:
    for field in action_type:
        yield ("add", field.name)
        if field.name == _PARSED[1] and pa.types.is_struct(field.type):
            yield from ((*_PARSED, *path) for path, _ in leaves_of_schema(pa.schema(field.type)))


def texts_of_stats(actions: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    """`stats_parsed` as the JSON texts that `stats` would hold.

    Cost: some kernels per statistic; needed only for checkpoints without the texts.
    """
    chunks: list[pa.Array[Any]] = []
    structs: Any = member_of(actions, "stats_parsed").chunks
    for chunk in structs:
        names = [_CURRENT.get(field.name, field.name) for field in chunk.type]
        chunks.extend(encode_stats_column(pa.Table.from_arrays(chunk.flatten(), names)).chunks)
    return chunked(chunks, pa.string())


def member_of(actions: pa.ChunkedArray[Any], name: str) -> pa.ChunkedArray[Any]:
    """A member of a struct column, not converted; empty if the struct does not have it."""
    if actions.type.get_field_index(name) < 0:
        return chunked([], pa.struct([]))
    member: pa.ChunkedArray[Any] = compute.struct_field(actions, name)
    return member


def _stored_as(path: tuple[str, ...], have: Collection[tuple[str, ...]]) -> tuple[str, ...] | None:
    """The path at which the file stores a leaf of the statistics; None if it does not."""
    spellings = (path[0], _ALIASES.get(path[0], path[0]))
    for name in spellings:
        if (*_PARSED, name, *path[1:]) in have:
            return (*_PARSED, name, *path[1:])
    return None
