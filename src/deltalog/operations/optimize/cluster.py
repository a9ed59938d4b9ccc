"""Cluster: sort the rows of a clustered table along a curve through its clustering columns.

Like Delta Spark's OPTIMIZE, it rewrites only new files and files of ZCubes that are not full.

Protocol: Clustered Table
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

import pyarrow as pa

from deltalog._util.json import dumps, loads
from deltalog._util.kernels import arrow, compute, pc
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.expressions.coercion import is_opaque
from deltalog.log.context import MaintenanceOperation
from deltalog.operations.changes.bins import Bin, BinReader, Rewritten
from deltalog.operations.changes.external_sort import SortLimits, one_piece, sort_batches
from deltalog.operations.optimize.rewrite import (
    Optimized,
    RewriteOperation,
    by_partition,
    pack,
    partition_condition,
    record,
)
from deltalog.protocol.column_mapping import physical_path
from deltalog.protocol.features.clustering import clustering_columns
from deltalog.protocol.partition_values import extract
from deltalog.schema import PrimitiveType, StructType, canonical_path_of, find_field
from deltalog.schema.columns import Path, walk
from deltalog.schema.metadata_columns import METADATA
from deltalog.schema.types import VOID
from deltalog.transaction.maintenance.checksum import check_maintenance

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from deltalog.data.write.written import WrittenFiles
    from deltalog.log.snapshot import Snapshot
    from deltalog.operations.engine import Engine
    from deltalog.schema.columns import Path
    from deltalog.transaction import PendingTransaction


_GIB: Final = 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class CubeSizes:
    """The sizes of ZCubes, groups of files that were clustered together.

    The defaults are those of Delta Spark.

    Args:
        full_bytes: the size from which a ZCube is full, and is not clustered again.
        target_bytes: the total size of the files to cluster into one ZCube.
    """

    full_bytes: int = 100 * _GIB
    target_bytes: int = 150 * _GIB

    def __post_init__(self) -> None:
        """Raise if a size is less than 1."""
        if self.full_bytes < 1 or self.target_bytes < 1:
            raise InvalidInputError(
                f"cube sizes: expected numbers above 0, found {self.full_bytes!r} and "
                f"{self.target_bytes!r}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster(RewriteOperation):
    """Cluster the new files, together with the files of ZCubes that are not full.

    Args:
        full: whether to cluster all files. Use it after a change of the clustering columns, or to
            merge many small ZCubes.
        curve: the curve through the clustering columns, `hilbert` or `zorder`.
        options: options of the run.
        limits: limits of sorting.
        sizes: sizes of the ZCubes.
    """

    full: bool = False
    curve: Curve = "hilbert"
    limits: SortLimits = field(default_factory=SortLimits)
    sizes: CubeSizes = field(default_factory=CubeSizes)
    strategy: ClassVar[str] = "cluster"
    preserves_order: ClassVar[bool] = False

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Optimized:
        """Select files and let the engine rewrite them.

        Raises:
            InvalidInputError: the table has no clustering columns.
            StorageError: the temporary files of sorting exceed the limit in `limits`.

        Cost: reads each selected file twice, first only the clustering columns. Rows beyond the
        memory limit are spilled to temporary files.
        """
        snapshot = transaction.read_snapshot
        check_maintenance(snapshot, MaintenanceOperation.DATA_REORGANIZATION, "cluster")
        columns = clustered_by(snapshot)
        if not columns:
            raise InvalidInputError(
                f"cannot cluster {snapshot.store.root}: it has no clustering columns; set them "
                "with alter.set_clustering_columns"
            )
        if self.curve not in {"hilbert", "zorder"}:
            raise InvalidInputError(f"curve: expected 'hilbert' or 'zorder', found {self.curve!r}")
        paths = sortable_paths(snapshot.configuration.schema, columns, (), "cluster")
        order = Order(paths=paths, curve=self.curve, limits=self.limits)

        def select(files: pa.Table) -> list[Bin]:
            full_bytes = self.sizes.full_bytes
            chosen = with_cubes(files) if self.full else files_to_cluster(files, paths, full_bytes)
            return pack(chosen, max(full_bytes, self.sizes.target_bytes))

        names = [quoted(path) for path in paths]
        record(transaction, None, cluster_by=names, isFull=self.full)
        return self._stage_bins(transaction, engine, select, partial(_rewrite_cube, order))


def _rewrite_cube(order: Order, rows: BinReader, one: Bin) -> Rewritten:
    """Write the rows of a bin to the new files of a ZCube; a `Rewrite` that can be pickled."""
    found = order.rewrite(rows, one)
    return replace(found, written=tagged(found.written, cube_tags(order.paths), PROVIDER))


# --- ZCubes: groups of files that were clustered together, with the tags of Delta Spark


PROVIDER: Final = "liquid"
_ID: Final = "ZCUBE_ID"
_BY: Final = "ZCUBE_ZORDER_BY"
_CUBE: Final = "cube"
_PLAIN: Final = re.compile(r"(?!\d+$)[A-Za-z0-9_]+")


def clustered_by(snapshot: Snapshot) -> tuple[Path, ...]:
    """Return the logical paths of the clustering columns; empty if the table is not clustered.

    Raises:
        InvalidInputError: the metadata domain names a column that the table does not have.
    """
    wanted = clustering_columns(snapshot.domain_metadata) or ()
    if not wanted:
        return ()
    configuration = snapshot.configuration
    mode = configuration.column_mapping_mode
    known = {
        physical_path(configuration.schema, path, mode): path
        for path, _ in walk(configuration.schema)
    }
    for path in wanted:
        if path not in known:
            raise InvalidInputError(
                f"cannot cluster {snapshot.store.root} by {'.'.join(path)!r}: there is no such "
                "column; set the clustering columns again"
            )
    return tuple(known[path] for path in wanted)


def quoted(path: Path) -> str:
    """Return a column's path as Spark SQL, with backticks around names that need them."""
    return ".".join(
        part if _PLAIN.fullmatch(part) else f"`{part.replace('`', '``')}`" for part in path
    )


def cube_tags(columns: Sequence[Path]) -> dict[str, str | None]:
    """Return the file tags of a new ZCube."""
    names = [quoted(path) for path in columns]
    return {_ID: str(uuid.uuid4()), _BY: dumps(names).decode()}


def tagged(
    written: WrittenFiles, tags: Mapping[str, str | None], provider: str | None
) -> WrittenFiles:
    """Return the new files with the tags of a ZCube and a clustering provider."""
    adds = [
        replace(add, tags={**(add.tags or {}), **tags}, clustering_provider=provider)
        for add in written.adds
    ]
    return replace(written, adds=tuple(adds))


def with_cubes(files: pa.Table) -> pa.Table:
    """Return the files with an additional column `cube`, ordered by this column.

    It has the id of the file's ZCube, or NULL (first in the order) if the file is in no ZCube.
    """
    tags = files.column("tags")
    ids, names = (one_piece(extract(tags, key)) for key in (_ID, _BY))
    cubes = compute.if_else(names.is_valid(), ids, pa.scalar(None, pa.string()))
    found = files.append_column(_CUBE, cubes)
    order = compute.array_sort_indices(one_piece(compute.fill_null(cubes, "")))
    return found.take(order)


def cubes_of(files: pa.Table) -> Any:
    """Return the ZCube id of each file that `with_cubes` has returned."""
    return files.column(_CUBE)


def unclustered(files: pa.Table) -> pa.Table:
    """Return the files that are in no ZCube."""
    found = with_cubes(files)
    return found.filter(compute.is_null(cubes_of(found)))


def files_to_cluster(files: pa.Table, columns: Sequence[Path], min_cube_bytes: int) -> pa.Table:
    """Return the files that an incremental clustering rewrites, ordered by ZCube.

    These are files without a ZCube, and files of ZCubes that are not full. ZCubes by other columns
    and files of another clustering provider do not change before a full clustering.

    Args:
        files: files that `considered_files` has returned.
        columns: the clustering columns.
        min_cube_bytes: the size from which a ZCube is full.
    """
    found = with_cubes(files)
    provider = found.column("clusteringProvider")
    ours = compute.fill_null(compute.equal(provider, PROVIDER), fill_value=True)
    in_cube = compute.is_valid(cubes_of(found))
    matching = compute.or_(compute.invert(in_cube), _same_columns(found, columns))
    found = found.filter(compute.and_(ours, matching))
    by_cube = found.select([_CUBE, "liveSize"]).group_by(_CUBE, use_threads=False)
    sizes = by_cube.aggregate([("liveSize", "sum")])
    full = sizes.filter(compute.greater_equal(sizes.column("liveSize_sum"), min_cube_bytes))
    full_ids = compute.drop_null(full.column(_CUBE))
    is_full = compute.is_in(cubes_of(found), value_set=one_piece(full_ids))
    found = found.filter(compute.invert(is_full))
    # If all files are in one ZCube, clustering them again would change nothing.
    return found.slice(0, 0) if _is_one_cube(found) else found


def _is_one_cube(files: pa.Table) -> bool:
    cubes = cubes_of(files)
    return cubes.null_count == 0 and len(compute.unique(cubes)) == 1


def _same_columns(files: pa.Table, columns: Sequence[Path]) -> Any:
    """Return a mask of the files that were clustered by these columns.

    Each distinct tag is parsed only once.
    """
    texts = one_piece(extract(files.column("tags"), _BY))
    wanted = [quoted(path) for path in columns]
    known: list[Any] = compute.drop_null(compute.unique(texts)).to_pylist()
    same = [text for text in known if _names(text) == wanted]
    return compute.is_in(texts, value_set=pa.array(same, pa.string()))


def _names(text: str) -> object:
    try:
        return loads(text, _BY)
    except DeltaError:
        return None


# --- Rewrite of a bin in the order of a space-filling curve


_KEY: Final = f"{METADATA}.sort_key"  # no column of a table has this name
_BYTES_PER_ROW: Final = 64
_MOST_SAMPLED_ROWS: Final = 50_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The sort order of rows along a curve.

    Args:
        paths: the columns through which the curve runs; they have equal weight.
        curve: the name of the curve.
        limits: limits of sorting; bins that are rewritten at the same time share the memory.
    """

    paths: tuple[Path, ...]
    curve: Curve
    limits: SortLimits

    def rewrite(self, rows: BinReader, one: Bin) -> Rewritten:
        """Write the rows of a bin to new files in this order.

        Cost: reads the columns of the curve for a sample, then reads all columns, and sorts the
        rows with `sort_batches`.
        """
        bits = bits_for(len(self.paths))
        ranges = self._ranges(rows, one, 1 << bits)
        batches = rows.read(one.files)
        limits = replace(
            self.limits, memory_bytes=max(1, self.limits.memory_bytes // rows.num_tasks)
        )
        keyed = self._keyed(batches, ranges, bits)
        with rows.writer() as writer:
            for batch in sort_batches(keyed, _KEY, limits):
                rows.write(writer, batch.drop_columns([_KEY]))
            return Rewritten(written=writer.finish(), num_batches=batches.count)

    def _ranges(self, rows: BinReader, one: Bin, num_ranks: int) -> Sequence[Ranges]:
        counts = compute.coalesce(
            one.files.column("numRecords"),
            compute.divide(one.files.column("size"), _BYTES_PER_ROW),
        )
        num_rows = compute.sum(counts).as_py() or 0
        step = max(1, num_rows // _MOST_SAMPLED_ROWS)
        files = one.files.take(list(range(0, one.files.num_rows, step)))
        columns = list(dict.fromkeys(path[0] for path in self.paths))
        sampled = rows.read(files, columns)
        return sample_ranges(sampled, self.paths, num_rows // step, num_ranks)

    def _keyed(
        self, batches: Iterable[pa.RecordBatch], ranges: Sequence[Ranges], bits: int
    ) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            ranks = [column.ranks(batch) for column in ranges]
            keys = curve_keys(ranks, bits, self.curve)
            yield batch.append_column(_KEY, keys)


# --- Space-filling curves: one sort key from the ranks of several columns


Curve = Literal["zorder", "hilbert"]

_KEY_BITS: Final = 62
_MAX_BITS: Final = 12
_MAX_BITS_ALONE: Final = 16
_TABLE_BITS: Final = 8


def bits_for(num_columns: int) -> int:
    """Return the number of bits of each column's rank in a sort key."""
    most = _MAX_BITS_ALONE if num_columns == 1 else _MAX_BITS
    return max(1, min(most, _KEY_BITS // num_columns))


def curve_keys(ranks: Sequence[pa.Array[Any]], bits: int, curve: Curve) -> pa.Array[Any]:
    """Return the position of each row on the curve.

    Args:
        ranks: for each column, the ranks of the rows: `int64` numbers less than `2 ** bits`.
        bits: the number of bits of a rank.
        curve: the name of the curve.

    Returns:
        Non-negative `int64` numbers.
    """
    keys: pa.Array[Any] = _interleaved(ranks, bits)
    return keys if curve == "zorder" or len(ranks) == 1 else _hilbert(keys, len(ranks), bits)


def _interleaved(ranks: Sequence[Any], bits: int) -> Any:
    count = len(ranks)
    if count == 1:
        return ranks[0]
    spread = pa.array(_spread(bits, count), pa.int64())
    keys: Any = None
    for number, column in enumerate(ranks):
        # Each digit of the key contains one bit of each column, with the first column's bit first.
        part = compute.shift_left(spread.take(column), _number(count - 1 - number))
        keys = part if keys is None else compute.bit_wise_or(keys, part)
    return keys


@cache
def _spread(bits: int, count: int) -> tuple[int, ...]:
    """Return each number of `bits` bits, with `count - 1` zero bits between any two of its bits."""
    found = [0]
    for bit in range(bits):
        found += [value | 1 << bit * count for value in found]
    return tuple(found)


def _hilbert(keys: pa.Array[Any], count: int, bits: int) -> pa.Array[Any]:
    digits = max(1, _TABLE_BITS // count)  # the number of digits that one table look-up translates
    states: Any = pa.nulls(len(keys), pa.int64()).fill_null(0)
    result: pa.Array[Any] = states
    done = 0
    while done < bits:
        step = min(digits, bits - done)
        done += step
        width = step * count
        outputs, following = (pa.array(part, pa.int64()) for part in _translation(count, step))
        part = compute.bit_wise_and(
            compute.shift_right(keys, _number((bits - done) * count)), _number((1 << width) - 1)
        )
        places = compute.bit_wise_or(compute.shift_left(states, _number(width)), part)
        result = compute.bit_wise_or(
            compute.shift_left(result, _number(width)), outputs.take(places)
        )
        states = following.take(places)
    return result


@cache
def _translation(count: int, digits: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the table that translates positions on the Z-curve to positions on the Hilbert curve.

    A state is the entry corner and the direction of a part of the Hilbert curve.

    Returns:
        The Hilbert digits, and the next state, for each combination of a state and `digits` digits
        of the Z-curve.
    """
    outputs: list[int] = []
    states: list[int] = []
    for entry in range(1 << count):
        for direction in range(count):
            for value in range(1 << count * digits):
                now, result = (entry, direction), 0
                for digit in reversed(range(digits)):
                    corner = value >> digit * count & (1 << count) - 1
                    place, now = _step(corner, now, count)
                    result = result << count | place
                outputs.append(result)
                states.append(now[0] * count + now[1])
    return tuple(outputs), tuple(states)


def _step(corner: int, state: tuple[int, int], count: int) -> tuple[int, tuple[int, int]]:
    """Return a corner's position on the curve in its hypercube, and the state inside the corner."""
    entry, direction = state
    place = _from_gray(_rotated(corner ^ entry, -direction - 1, count))
    entry ^= _rotated(_entry(place), direction + 1, count)
    return place, (entry, (direction + _direction(place, count) + 1) % count)


def _rotated(value: int, by: int, count: int) -> int:
    by %= count
    return (value << by | value >> count - by) & (1 << count) - 1


def _from_gray(code: int) -> int:
    value = 0
    while code:
        value ^= code
        code >>= 1
    return value


def _entry(place: int) -> int:
    if place == 0:
        return 0
    even = (place - 1) // 2 * 2
    return even ^ even >> 1


def _direction(place: int, count: int) -> int:
    """Return the direction of the curve inside the corner at position `place`."""
    if place == 0:
        return 0
    last = place - 1 if place % 2 == 0 else place
    return _trailing_ones(last) % count


def _trailing_ones(value: int) -> int:
    return ((value + 1) & -(value + 1)).bit_length() - 1


def _number(value: int) -> Any:
    return pa.scalar(value, pa.int64())


# --- Ranks: small integers in the order of a column's values, about equally frequent


SAMPLE_ROWS: Final = 256 * 1024
# None if the version of PyArrow is too old and has no `search_sorted`.
_search_sorted: Final[Any] = getattr(pc, "search_sorted", None)


@dataclass(frozen=True, slots=True)
class Ranges:
    """The ranges into which the values of one column are divided.

    The rank of a value is the number of its range, from 1. The rank of NULL is 0.

    Args:
        path: path of the column.
        bounds: the smallest value of each range except the first, ascending.
    """

    path: Path
    bounds: pa.Array[Any]

    @classmethod
    def of_sample(cls, path: Path, sample: pa.Array[Any], num_ranks: int) -> Ranges:
        """Return ranges that contain equal shares of a sample.

        Args:
            path: path of the column.
            sample: a sample of the column's values.
            num_ranks: the maximum number of ranks, including the rank of NULL.
        """
        values: Any = compute.drop_null(_comparable(sample))
        values = values.take(compute.array_sort_indices(values))
        wanted = num_ranks - 2
        if len(values) > wanted:
            places = [(number + 1) * len(values) // (wanted + 1) for number in range(wanted)]
            values = values.take(pa.array(places, pa.int64()))
        bounds = compute.unique(values)
        return cls(path, bounds)

    def ranks(self, batch: pa.RecordBatch) -> pa.Array[Any]:
        """Return the rank of each row as `int64`."""
        values: Any = _comparable(column_at(batch, self.path))
        found = (
            ranks_by_sorting(self.bounds, values)
            if _search_sorted is None
            else _search_sorted(self.bounds, values, side="right")
        )
        ranks = compute.add(found.cast(pa.int64()), 1)
        result: pa.Array[Any] = compute.fill_null(ranks, 0)
        return result


def ranks_by_sorting(bounds: Any, values: Any) -> Any:
    """Return for each value the number of ascending `bounds` that are at most the value.

    NULL for the value NULL.
    """
    both = pa.concat_arrays([bounds, values])
    order = compute.array_sort_indices(both)
    is_bound = compute.less(order, pa.scalar(len(bounds), pa.uint64()))
    counts = compute.cumulative_sum(is_bound.cast(pa.int64()))
    places = compute.array_sort_indices(order)
    found = counts.take(places).slice(len(bounds))
    return compute.if_else(values.is_valid(), found, pa.scalar(None, pa.int64()))


def sample_ranges(
    batches: Iterable[pa.RecordBatch], paths: Sequence[Path], num_rows: int, num_ranks: int
) -> list[Ranges]:
    """Return the ranges of some columns, computed from every n-th row.

    Args:
        batches: batches with these columns.
        paths: paths of the columns.
        num_rows: the approximate number of rows in all batches.
        num_ranks: the maximum number of ranks of a column.
    """
    step = max(1, num_rows // SAMPLE_ROWS)
    samples: list[list[Any]] = [[] for _ in paths]
    first = 0
    for batch in batches:
        # Take each row whose number in the whole input is a multiple of `step`.
        start = -first % step
        first += batch.num_rows
        if start >= batch.num_rows:
            continue
        some = batch
        if step > 1:
            some = batch.take(arrow.arange(start, batch.num_rows, step))
        for path, sample in zip(paths, samples, strict=True):
            sample.append(column_at(some, path))
    return [
        Ranges.of_sample(path, pa.concat_arrays(sample), num_ranks)
        for path, sample in zip(paths, samples, strict=True)
        if sample
    ]


def column_at(batch: pa.RecordBatch, path: Path) -> Any:
    """Return a column, or a field of a struct. The field is NULL where the struct is NULL."""
    column: Any = batch.column(path[0])
    return column if len(path) == 1 else pc.struct_field(column, list(path[1:]))


def sortable_paths(
    schema: StructType, columns: Iterable[str | Path], partition_columns: Sequence[str], what: str
) -> tuple[Path, ...]:
    """Return the columns to sort by, in the schema's spelling.

    Raises:
        InvalidInputError: no columns are given; or a column does not exist, is repeated, is a
            partition column, or has a type without an order.
    """
    paths = tuple(canonical_path_of(schema, column) for column in columns)
    if not paths:
        raise InvalidInputError(f"cannot {what} without columns: name at least one")
    for number, path in enumerate(paths):
        name = ".".join(path)
        field = find_field(schema, path)
        if path in paths[:number]:
            raise InvalidInputError(f"cannot {what} by {name!r} twice")
        if path[0] in partition_columns:
            raise InvalidInputError(
                f"cannot {what} by {name!r}: it is a partition column, so all rows of a file "
                "already have the same value; name only other columns"
            )
        kind = field.type
        if not isinstance(kind, PrimitiveType) or kind == VOID or is_opaque(kind):
            raise InvalidInputError(
                f"cannot {what} by {name!r}: values of type {kind} have no order"
            )
    return paths


def _comparable(values: Any) -> Any:
    """Cast values to a type that Arrow can sort and search, without a change of their order."""
    if pa.types.is_decimal(values.type):
        return values.cast(pa.float64())
    if pa.types.is_boolean(values.type):
        return values.cast(pa.int8())
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class ZOrder(RewriteOperation):
    """Sort the rows of each partition along the Z-curve through some columns.

    Predicates on any of these columns then skip most files. Each run rewrites all files of the
    partitions. NULL is sorted before other values.

    Args:
        columns: names of columns, or paths of struct fields.
        filters: partition filters in any accepted form; None means all partitions.
        options: options of the run.
        limits: limits of sorting.
    """

    columns: Sequence[str | Path]
    filters: Any = None
    limits: SortLimits = field(default_factory=SortLimits)
    strategy: ClassVar[str] = "zOrder"
    preserves_order: ClassVar[bool] = False

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Optimized:
        """Select files and let the engine rewrite them.

        Raises:
            InvalidInputError: the values of a column have no order, the table is clustered, or a
                filter uses a column that is not a partition column.
            StorageError: the temporary files of sorting exceed the limit in `limits`.

        Cost: reads each file twice, first only the columns to sort by. Rows beyond the memory limit
        are spilled to temporary files.
        """
        snapshot = transaction.read_snapshot
        check_maintenance(snapshot, MaintenanceOperation.DATA_REORGANIZATION, "z-order")
        configuration = snapshot.configuration
        if clustered_by(snapshot):
            raise InvalidInputError(
                f"cannot z-order {snapshot.store.root}: its clustering columns define the order of "
                "rows; use optimize.cluster() instead"
            )
        predicate = partition_condition(transaction, self.filters)
        paths = sortable_paths(
            configuration.schema, self.columns, configuration.partition_columns, "z-order"
        )
        record(transaction, predicate, z_order_by=[quoted(path) for path in paths])
        order = Order(paths=paths, curve="zorder", limits=self.limits)
        return self._stage_bins(transaction, engine, by_partition, order.rewrite, predicate)
