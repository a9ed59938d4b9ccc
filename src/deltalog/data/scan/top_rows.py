"""Reading the first rows of a sort order, without files that cannot contain such rows.

Files are read in the order of their bounds. After each group of files, the last of the best rows so
far becomes a condition, by which pruning skips further files.

Protocol: Per-file Statistics
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.kernels import FALSE, compute
from deltalog.data.scan.prune import Pruned, prune
from deltalog.data.scan.reader import ScanTask, read_tasks
from deltalog.expressions import conjunction, evaluate, resolve_predicate
from deltalog.expressions.comparing import keys
from deltalog.expressions.literals import from_scalar
from deltalog.expressions.ordering import SortKey, arranged
from deltalog.protocol.column_mapping import physical_path
from deltalog.protocol.partition_values import extract, parse_column
from deltalog.protocol.stats.schema import (
    MAX_VALUES,
    MIN_VALUES,
    NULL_COUNT,
    has_bounds,
    leaf_of_bound,
    schema_of_leaves,
)
from deltalog.schema import find_field, to_arrow_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from deltalog.data.scan.task import ReadSpec
    from deltalog.expressions import Expression
    from deltalog.log.snapshot import Snapshot

_FILES_AT_FIRST: Final = 8

_HELD_ROWS: Final = 64 * 1024

_HELD_BYTES: Final = 64 * 1024 * 1024


def first_rows(
    snapshot: Snapshot,
    spec: ReadSpec,
    keys: Sequence[SortKey],
    limit: int,
    *,
    pruned: Pruned,
    names: Sequence[str],
    tasks: Callable[[ReadSpec, pa.Table], Iterator[ScanTask]],
) -> pa.Table:
    """Return the first rows of an order, with the columns of `spec`.

    Args:
        snapshot: the version to read.
        spec: the spec of the read, with all columns of the keys in its output.
        keys: the sort keys.
        limit: the number of rows, 1 or more.
        pruned: the files that may have rows for `spec`.
        names: the log's columns that `tasks` needs.
        tasks: returns the tasks of some files.

    Cost: reads files that may contain such a row, those with the best bounds first. Memory for a
        few times `limit` rows.
    """
    best = _Best(spec, keys, limit)
    waiting = _by_bound(pruned, names, keys[0])
    num_files = _files_for(waiting, limit)
    wanted = spec
    while waiting.num_rows:
        for batch in read_tasks(tasks(wanted, waiting.slice(0, num_files))):
            best.add(batch)
        waiting = waiting.slice(num_files)
        num_files = max(_FILES_AT_FIRST, 2 * num_files)
        bound = best.bound()
        if bound is None or not waiting.num_rows:
            continue
        condition = resolve_predicate(bound, snapshot.configuration.schema)
        parts = [condition] if spec.predicate is None else [spec.predicate, condition]
        wanted = replace(spec, predicate=conjunction(parts))
        left = prune(snapshot, wanted.predicate).files(["path"]).column("path")
        waiting = waiting.filter(compute.is_in(waiting.column("path"), left))
    return best.rows()


class _Best:
    """Collects the first rows of a sort order from batches."""

    def __init__(self, spec: ReadSpec, keys: Sequence[SortKey], limit: int) -> None:
        self._schema = spec.output
        self._keys = keys
        self._limit = limit
        self._held: list[pa.RecordBatch] = []
        self._num_held = self._held_bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self._held.append(batch)
        self._num_held += batch.num_rows
        self._held_bytes += batch.nbytes
        is_long = self._held_bytes > _HELD_BYTES and self._num_held > 2 * self._limit
        if is_long or self._num_held > 2 * self._limit + _HELD_ROWS:
            self._keep(self.rows())

    def rows(self) -> pa.Table:
        """Return the first rows, in order."""
        rows = pa.Table.from_batches(self._held, schema=self._schema).combine_chunks()
        columns = [_values(rows, key) for key in self._keys]
        return arranged(rows, self._keys, columns).slice(0, self._limit)

    def bound(self) -> Expression | None:
        """Return a condition that is true for rows that sort before the last of the best rows."""
        rows = self.rows()
        self._keep(rows)
        if rows.num_rows < self._limit:
            return None
        key = self._keys[0]
        return key.not_after(from_scalar(_values(rows.slice(self._limit - 1), key)[0]))

    def _keep(self, rows: pa.Table) -> None:
        self._held = rows.to_batches()
        self._num_held, self._held_bytes = rows.num_rows, rows.nbytes


def _values(rows: pa.Table, key: SortKey) -> Any:
    found: Any = evaluate(key.value, rows)
    return found


def _by_bound(pruned: Pruned, names: Sequence[str], key: SortKey) -> pa.Table:
    """Return the files with `numRecords`, sorted by their bounds, the best files first."""
    files = pruned.files(names)
    files = files.append_column("numRecords", pruned.num_records())
    bounds = _bounds(pruned, files, key)
    if bounds is None:
        return files
    table = pa.table({"is_known": compute.is_valid(bounds).cast(pa.int8()), "bound": bounds})
    turns = [("is_known", "ascending"), ("bound", "descending" if key.descending else "ascending")]
    return files.take(compute.sort_indices(table, sort_keys=turns))


def _bounds(pruned: Pruned, files: pa.Table, key: SortKey) -> Any:
    """Return, for each file, a bound of its first value, or NULL; None if no file has bounds."""
    configuration = pruned.snapshot.configuration
    path = physical_path(configuration.schema, key.path, configuration.column_mapping_mode)
    if key.path[0] in configuration.partition_columns:
        texts = extract(files.column("partitionValues"), path[0])
        values = parse_column(
            texts, key.type, column=key.path[0], time_zone=pruned.snapshot.context.time_zone
        )
        return _keys(values, key)
    field = find_field(configuration.schema, key.path)
    if key.has_nan or (key.collation is None and not has_bounds(field)):
        return None
    leaf = leaf_of_bound(MAX_VALUES if key.descending else MIN_VALUES, path, key.collation)
    wanted = [(leaf, to_arrow_type(key.type)), ((NULL_COUNT, *path), pa.int64())]
    stats = pruned.stats(schema_of_leaves(wanted))
    bound, nulls = (_leaf(stats, leaf) for leaf, _ in wanted)
    bound = _keys(bound, key)
    if not key.nulls_first:
        return bound
    has_none = compute.fill_null(compute.equal(nulls, 0), FALSE)
    return compute.if_else(has_none, bound, None)


def _keys(values: Any, key: SortKey) -> Any:
    return values if key.collation is None else keys(values, key.collation)


def _leaf(stats: pa.Table, path: tuple[str, ...]) -> Any:
    found: Any = stats.column(path[0])
    for name in path[1:]:
        found = compute.struct_field(found, [name])
    return found


def _files_for(files: pa.Table, limit: int) -> int:
    """Return how many of the first files probably contain `limit` rows."""
    rows = compute.cumulative_sum(compute.fill_null(files.column("numRecords"), 1))
    return int(compute.sum(compute.less(rows, limit)).as_py() or 0) + 1
