"""`DeltaTable.plot`: pictures of one version of a table.

Protocol: none
"""

from __future__ import annotations

from collections import Counter
from math import ceil
from typing import TYPE_CHECKING, Any, Final, NoReturn

import pyarrow as pa

from deltalog._util.call_errors import WrongCallError
from deltalog._util.kernels import arrow, compute, pc
from deltalog._util.readable import FILE, counted
from deltalog._util.similar_names import SimilarNames
from deltalog.data.scan.plan import check_rows_readable, plan_scan
from deltalog.errors import InvalidInputError
from deltalog.expressions import to_sql
from deltalog.log.listing import list_log
from deltalog.operations import arguments
from deltalog.protocol.column_mapping import physical_path
from deltalog.protocol.features import logical_clustering_columns
from deltalog.protocol.partition_values import extract, parse_column
from deltalog.protocol.stats.schema import MAX_VALUES, MIN_VALUES, has_bounds, stats_schema
from deltalog.schema import Field, canonical_path_of, find_field, leaf_columns
from deltalog.schema.columns import naming_the_attempt
from deltalog.table.inspect.description import leaf
from deltalog.table.inspect.plot import drawing
from deltalog.table.inspect.plot.drawing import Plot

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from deltalog.data.scan.prune import Pruned
    from deltalog.log.snapshot import Snapshot

_ROW_HEIGHT = 0.24  # inches


class TablePlots(SimilarNames):
    """Pictures of one version of a table, drawn from its log; no data files are read.

    Each method returns a `Plot`, which a notebook displays. `Plot.data` contains the numbers as an
    Arrow table. It has at most some hundred rows, even for a very large table. Drawing needs
    matplotlib: `pip install 'deltalog[plot]'`.

    Args:
        snapshot: the version.
    """

    _otherwise = "commits(), file_sizes(), partition_sizes(), clustering(), log() or scan()"

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def __repr__(self) -> str:
        """Show the names of the pictures."""
        return f"<plots of {self._title}: {self._names()}>"

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Raise an error that names the pictures."""
        raise WrongCallError(f"a table has several plots: call one of {self._names()}")

    def _names(self) -> str:
        return ", ".join(name for name in vars(TablePlots) if not name.startswith("_"))

    def commits(self, limit: int | None = 1000) -> Plot:
        """Draw the number of commits over time, by operation.

        Args:
            limit: number of the newest commits to draw; None means all.

        Cost: one request per commit, in parallel.
        """
        history = self._snapshot.history(arguments.as_limit(limit))
        title = f"Commits of {self._title}"
        return Plot(title=title, data=commits(history), draw=drawing.draw_commits)

    def file_sizes(self) -> Plot:
        """Draw the number of files by size.

        Cost: the size of every file, from the log.
        """
        data = file_sizes(self._snapshot)
        return Plot(title=f"File sizes of {self._title}", data=data, draw=drawing.draw_file_sizes)

    def partition_sizes(self, most: int = 30) -> Plot:
        """Draw the sizes of the partitions.

        Args:
            most: maximum number of partitions. The largest are drawn; one bar shows the others.

        Raises:
            InvalidInputError: the table has no partition columns.

        Cost: partition values and size of every file, from the log.
        """
        arguments.check_number("most", most, least=1)
        if most > 200:
            raise InvalidInputError(f"most: expected at most 200 partitions, found {most}")
        data = partition_sizes(self._snapshot, most)
        return Plot(
            title=f"Partitions of {self._title}",
            data=data,
            draw=drawing.draw_partition_sizes,
            height=0.8 + _ROW_HEIGHT * data.num_rows,
        )

    def clustering(self, columns: str | Sequence[str] | None = None) -> Plot:
        """Draw, for each value of a column, the number of files that may contain the value.

        A query for one value reads this number of files. The number is small if rows with similar
        values are in the same files. `optimize.z_order`, `optimize.cluster` and partitions make it
        smaller.

        Args:
            columns: names of columns. None means the clustering columns, or the first six columns
                with statistics.

        Raises:
            InvalidInputError: a column does not exist, or statistics have no bounds for its type.

        Cost: reads the statistics of these columns, for all files, from the log.
        """
        names = [columns] if isinstance(columns, str) else arguments.as_columns(columns)
        check_rows_readable(self._snapshot)
        with naming_the_attempt("plot the clustering of", self._snapshot.store.root):
            data = clustering(self._snapshot, names)
        return Plot(
            title=f"Overlap of {counted(self._snapshot.num_files, FILE)} of {self._title}",
            data=data,
            draw=drawing.draw_clustering,
        )

    def log(self) -> Plot:
        """Draw the sizes of commits, checkpoints and the other files of the log.

        Cost: one listing of the log.
        """
        data = log_growth(self._snapshot)
        return Plot(title=f"Log of {self._title}", data=data, draw=drawing.draw_log)

    def scan(
        self,
        predicate: Any = None,
        *,
        parameters: Sequence[object] | Mapping[str, object] | None = None,
    ) -> Plot:
        """Draw the share of files that a scan reads, and why the other files are skipped.

        `DeltaTable.scan(…).explain()` shows the conditions that skip files.

        Args:
            predicate: see `DeltaTable.scan`.
            parameters: values for `?` or `:name` in an SQL predicate.

        Raises:
            InvalidInputError: a column does not exist, or the predicate is invalid.

        Cost: reads the statistics of the predicate's columns, and all file sizes, from the log.
        """
        shown = self._snapshot
        condition = arguments.as_condition(
            shown.configuration.schema,
            predicate,
            session=shown.context.session,
            parameters=parameters,
        )
        planned = plan_scan(shown, predicate=condition, is_resolved=True)
        data = scan_outcome(planned.pruned)
        where = planned.spec.predicate
        what = "all rows" if where is None else to_sql(where)
        return Plot(
            title=f"A scan of {self._title} for {what}",
            data=data,
            draw=drawing.draw_scan,
            height=1.6,
        )

    @property
    def _title(self) -> str:
        shown = self._snapshot.metadata.name or self._snapshot.store.root
        return f"{shown}, version {self._snapshot.version}"


# --- The data of the pictures: counts of files and commits, in tables of bounded size


_PER_DOUBLING: Final = 2
"""The number of bins of file sizes for each power of two."""
_MOST_MOMENTS: Final = 60
_LEAST_SPAN_MS: Final = 1000
_MOST_OPERATIONS: Final = 7
_MOST_VERSIONS: Final = 200
_MOST_POINTS: Final = 100
_MOST_COLUMNS: Final = 6
_OTHERS: Final = "others"


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema(columns)


COMMITS: Final = _schema(begin_ms=pa.int64(), operation=pa.string(), commits=pa.int64())
FILE_SIZES: Final = _schema(
    from_bytes=pa.int64(), to_bytes=pa.int64(), files=pa.int64(), bytes=pa.int64()
)
PARTITION_SIZES: Final = _schema(partition=pa.string(), files=pa.int64(), bytes=pa.int64())
CLUSTERING: Final = _schema(
    column=pa.string(), position=pa.float64(), files=pa.float64(), most_files=pa.int64()
)
LOG: Final = _schema(version=pa.int64(), kind=pa.string(), files=pa.int64(), bytes=pa.int64())
SCAN: Final = _schema(measure=pa.string(), outcome=pa.string(), amount=pa.int64())


def commits(history: Sequence[dict[str, Any]]) -> pa.Table:
    """Count commits by time and operation.

    Args:
        history: from `Snapshot.history`.

    Returns:
        A table with the schema `COMMITS`: one row per time span and operation. There are at most 60
        spans of equal length, of at least a second, and at most 8 operations; `others` combines the
        rarest operations.
    """
    named = Counter(map(_operation, history))
    most = len(named) if len(named) <= _MOST_OPERATIONS + 1 else _MOST_OPERATIONS
    shown_names = {name for name, _ in named.most_common(most)}
    times = [int(one["timestamp"]) for one in history]
    first = min(times, default=0)
    width = max(_LEAST_SPAN_MS, -(-(max(times, default=0) - first + 1) // _MOST_MOMENTS))
    counts = Counter(
        (
            first + (time - first) // width * width,
            name if (name := _operation(one)) in shown_names else _OTHERS,
        )
        for time, one in zip(times, history, strict=True)
    )
    rows = [
        {"begin_ms": begin, "operation": name, "commits": count}
        for (begin, name), count in sorted(counts.items())
    ]
    return pa.Table.from_pylist(rows, schema=COMMITS)


def _operation(commit: dict[str, Any]) -> str:
    """Return the operation of a commit; a log may contain anything there."""
    named = commit.get("operation")
    return named if isinstance(named, str) and named else "unknown"


def file_sizes(snapshot: Snapshot) -> pa.Table:
    """Count the live files by size.

    Returns:
        A table with the schema `FILE_SIZES`: two rows (bins) for each power of two that has files.

    Cost: reads the sizes of all files from the log.
    """
    sizes: Any = snapshot.files(["size"])["size"]
    sizes = compute.fill_null(sizes, 0).filter(
        compute.greater_equal(compute.fill_null(sizes, 0), 0)
    )
    doublings: Any = pc.log2(compute.cast(compute.max_element_wise(sizes, 1), pa.float64()))
    bins = compute.cast(pc.floor(compute.multiply(doublings, float(_PER_DOUBLING))), pa.int64())
    counted = (
        _table(bin=bins, bytes=sizes)
        .group_by("bin", use_threads=False)
        .aggregate([("bytes", "count"), ("bytes", "sum")])
        .sort_by("bin")
    )
    rows = [
        {
            "from_bytes": 0 if row["bin"] == 0 else _edge(row["bin"]),
            "to_bytes": _edge(row["bin"] + 1),
            "files": row["bytes_count"],
            "bytes": row["bytes_sum"],
        }
        for row in counted.to_pylist()
    ]
    return pa.Table.from_pylist(rows, schema=FILE_SIZES)


def _edge(number: int) -> int:
    return ceil(2 ** (number / _PER_DOUBLING))


def partition_sizes(snapshot: Snapshot, most: int) -> pa.Table:
    """Add up the live files of each partition.

    Args:
        snapshot: the version.
        most: maximum number of partitions. The row `others` is the sum of the other partitions.

    Returns:
        A table with the schema `PARTITION_SIZES`, the largest partition first.

    Raises:
        InvalidInputError: the table has no partition columns.

    Cost: partition values and size of every file, from the log.
    """
    configuration = snapshot.configuration
    names = configuration.partition_columns
    if not names:
        raise InvalidInputError(
            f"cannot plot the partitions of {snapshot.store.root}: it has no partition columns; "
            "clustering() shows how rows are arranged"
        )
    files = snapshot.files(["partitionValues", "size"])
    keys = [f"key{place}" for place in range(len(names))]
    stored = configuration.physical_partition_columns
    values = [extract(files["partitionValues"], key) for key in stored]
    counted = (
        _table(**dict(zip(keys, values, strict=True)), size=files["size"])
        .group_by(keys, use_threads=False)
        .aggregate([("size", "count"), ("size", "sum")])
        .sort_by([("size_sum", "descending"), *((key, "ascending") for key in keys)])
    )
    rows = [
        {
            "partition": "/".join(
                f"{name}={'NULL' if row[key] is None else row[key]}"
                for name, key in zip(names, keys, strict=True)
            ),
            "files": row["size_count"],
            "bytes": row["size_sum"],
        }
        for row in counted.slice(0, most).to_pylist()
    ]
    rest = counted.slice(most)
    if rest.num_rows:
        files_left, bytes_left = (
            compute.sum(rest[f"size_{name}"]).as_py() for name in ("count", "sum")
        )
        rows.append(
            {
                "partition": f"{rest.num_rows:,} {_OTHERS}",
                "files": files_left,
                "bytes": bytes_left,
            }
        )
    return pa.Table.from_pylist(rows, schema=PARTITION_SIZES)


def clustering(snapshot: Snapshot, columns: Sequence[str] | None) -> pa.Table:
    """Count, for values of a column, the files that may contain the value.

    Args:
        snapshot: the version.
        columns: names of columns. None means the clustering columns, or the first columns with
            statistics.

    Returns:
        A table with the schema `CLUSTERING`: for each column at most 100 rows, from its least to
        its greatest value. Each row is a range of the sorted distinct bounds of all files.
        `position` is the share of bounds before this range. `files` is the average number of files
        that may contain a value of the range, and `most_files` is the maximum. A file without
        statistics may contain any value.

    Raises:
        InvalidInputError: a column does not exist, or statistics have no bounds for its type.

    Cost: reads the statistics of these columns, for all files, from the log.
    """
    parts = [_overlap(snapshot, path, field) for path, field in _columns(snapshot, columns)]
    return pa.concat_tables([CLUSTERING.empty_table(), *parts])


def _columns(
    snapshot: Snapshot, columns: Sequence[str] | None
) -> Iterator[tuple[tuple[str, ...], Field]]:
    configuration = snapshot.configuration
    schema = configuration.schema
    if columns is None:
        paths = logical_clustering_columns(
            snapshot.domain_metadata, schema, configuration.column_mapping_mode
        )
        known = [(path, field) for path, field in leaf_columns(schema) if has_bounds(field)]
        found = [(path, field) for path, field in known if path in set(paths)] or known
        yield from found[:_MOST_COLUMNS]
        return
    for name in columns:
        path = tuple(canonical_path_of(schema, name))
        field = find_field(schema, path)
        if not has_bounds(field):
            raise InvalidInputError(
                f"cannot plot the clustering of {name!r} of {snapshot.store.root}: a column of the "
                f"type {field.type} has no least and greatest value in statistics"
            )
        yield path, field


def _overlap(snapshot: Snapshot, path: tuple[str, ...], field: Field) -> pa.Table:
    lows, highs = _bounds(snapshot, path, field)
    is_known = compute.and_(compute.is_valid(lows), compute.is_valid(highs))
    lows, highs = lows.filter(is_known), highs.filter(is_known)
    unknown = snapshot.num_files - len(lows)
    ranks = compute.rank(
        pa.chunked_array([*_chunks(lows), *_chunks(highs)], lows.type), tiebreaker="dense"
    )
    ones, none = pa.repeat(pa.scalar(1), len(lows)), pa.repeat(pa.scalar(0), len(lows))
    steps = (
        _table(rank=ranks, low=pa.chunked_array([ones, none]), high=pa.chunked_array([none, ones]))
        .group_by("rank", use_threads=False)
        .aggregate([("low", "sum"), ("high", "sum")])
        .sort_by("rank")
    )
    if not steps.num_rows:
        return CLUSTERING.empty_table()
    begun, ended = (compute.cumulative_sum(steps[f"{side}_sum"]) for side in ("low", "high"))
    # For each value: the number of files whose minimum is at most the value, minus the number of
    # files whose maximum is less than the value. So this is the number of files that may contain
    # the value.
    held = compute.add(compute.subtract(begun, compute.subtract(ended, steps["high_sum"])), unknown)
    places = pa.chunked_array([arrow.arange(0, steps.num_rows)])
    width = -(-steps.num_rows // _MOST_POINTS)
    binned = (
        _table(bin=compute.divide(places, width), held=held)
        .group_by("bin", use_threads=False)
        .aggregate([("held", "mean"), ("held", "max")])
        .sort_by("bin")
    )
    position = compute.divide(
        compute.cast(compute.multiply(binned["bin"], width), pa.float64()), float(steps.num_rows)
    )
    name = ".".join(path)
    columns = [
        pa.chunked_array([pa.repeat(pa.scalar(name), binned.num_rows)]),
        position,
        binned["held_mean"],
        compute.cast(binned["held_max"], pa.int64()),
    ]
    return pa.Table.from_arrays(columns, schema=CLUSTERING)


def _chunks(values: Any) -> list[Any]:
    return values.chunks if isinstance(values, pa.ChunkedArray) else [values]


def _bounds(snapshot: Snapshot, path: tuple[str, ...], field: Field) -> tuple[Any, Any]:
    """Return the least and the greatest value of each file; NULL for files without statistics."""
    configuration = snapshot.configuration
    mode = configuration.column_mapping_mode
    stored = tuple(physical_path(configuration.schema, path, mode))
    if path[0] in configuration.partition_columns:
        values = parse_column(
            extract(snapshot.files(["partitionValues"])["partitionValues"], stored[0]),
            field.type,
            column=path[0],
            time_zone=snapshot.context.time_zone,
        )
        return values, values
    stats = snapshot.stats(stats_schema([(stored, field)], tight_bounds=False))
    return leaf(stats, (MIN_VALUES, *stored)), leaf(stats, (MAX_VALUES, *stored))


def log_growth(snapshot: Snapshot) -> pa.Table:
    """Add up the files of the log by version and kind.

    Returns:
        A table with the schema `LOG`, with at most 200 ranges of versions of equal length. A range
        is identified by its first version. `kind` is `commit`, `checkpoint`, `compaction` or
        `checksum`. Sidecars of checkpoints are not counted.

    Cost: one listing of the log.
    """
    listing = list_log(snapshot.store, log_tail=snapshot.log_tail)
    found = [("commit", version, one.info.size_bytes) for version, one in listing.commits.items()]
    found += [
        ("checkpoint", one.version, file.size_bytes)
        for one in listing.checkpoints
        for file in one.files
    ]
    found += [("compaction", one.version, one.info.size_bytes) for one in listing.compactions]
    found += [("checksum", version, one.size_bytes) for version, one in listing.checksums.items()]
    first = min((version for _, version, _ in found), default=0)
    last = max((version for _, version, _ in found), default=0)
    width = -(-(last - first + 1) // _MOST_VERSIONS)
    kinds, versions, sizes = zip(*found, strict=True) if found else ((), (), ())
    begins = pa.array(
        [first + (version - first) // width * width for version in versions], pa.int64()
    )
    counted = (
        _table(version=begins, kind=pa.array(kinds, pa.string()), size=pa.array(sizes, pa.int64()))
        .group_by(["version", "kind"], use_threads=False)
        .aggregate([("size", "count"), ("size", "sum")])
        .sort_by([("version", "ascending"), ("kind", "ascending")])
    )
    return counted.rename_columns(LOG.names).cast(LOG)


def scan_outcome(pruned: Pruned) -> pa.Table:
    """Count the files and bytes that a scan reads, and those that it skips.

    Returns:
        A table with the schema `SCAN`. `measure` is `files` or `bytes`. `outcome` is `read`, or the
        reason why the files are skipped.

    Cost: reads the sizes of the files from the log.
    """
    exact = pruned.counted()
    total, read = (
        compute.sum(one.files(["size"])["size"]).as_py() or 0 for one in (pruned.snapshot, exact)
    )
    rows = [
        ("files", "read", exact.num_left),
        ("files", "pruned by partition values", exact.num_by_partition),
        ("files", "pruned by statistics", exact.num_by_statistics),
        ("bytes", "read", read),
        ("bytes", "pruned", total - read),
    ]
    columns = [list(column) for column in zip(*rows, strict=True)]
    return pa.table(dict(zip(SCAN.names, columns, strict=True)), schema=SCAN)


def _table(**columns: Any) -> pa.Table:
    """Return a table of named columns; a column may be an array or a chunked array."""
    return pa.table(columns)
