"""Describe a table's columns from the log alone: number of nulls, minimum and maximum.

Only exact statistics are used. A bound that may be wider than the values of the rows is missing.

Protocol: Per-file Statistics
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.call_errors import WrongCallError, no_item
from deltalog._util.cards import card, folding, grid
from deltalog._util.escaping import printable
from deltalog._util.json import dumps
from deltalog._util.kernels import compute, exact_sum
from deltalog._util.readable import changes_of_commit, counted, readable_parameters
from deltalog._util.similar_names import SimilarNames, suggests_arguments
from deltalog.data.scan.plan import check_rows_readable
from deltalog.data.scan.rows import Rows, require_library
from deltalog.protocol.partition_values import extract, parse_column
from deltalog.protocol.stats.ranges import is_taken_as_stored
from deltalog.protocol.stats.schema import (
    MAX_VALUES,
    MIN_VALUES,
    NULL_COUNT,
    NUM_RECORDS,
    TIGHT_BOUNDS,
    bounds_of,
    has_bounds,
    stats_schema,
)
from deltalog.schema import Field, leaf_columns
from deltalog.schema.check import readable_moment, readable_values
from deltalog.schema.primitives import Family
from deltalog.schema.types import BINARY, STRING, PrimitiveType

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    import polars as pl

    from deltalog.log.snapshot import Snapshot
    from deltalog.protocol.stats.schema import Path

_KINDS: Final[dict[str, pa.DataType]] = {
    "column": pa.string(),
    "type": pa.string(),
    "nulls": pa.int64(),
    "min": pa.string(),
    "max": pa.string(),
    "missing": pa.string(),
}
_SCHEMA: Final = pa.schema(_KINDS)
_OF_A_FILE: Final[dict[str, pa.DataType]] = {NUM_RECORDS: pa.int64(), TIGHT_BOUNDS: pa.bool_()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDescription:
    """The exact statistics of one column, or of one field of a struct.

    Args:
        column: name of the column; for a field of a struct, the path with dots.
        type: Spark's name of the type.
        nulls: number of rows in which the column is NULL; None if unknown.
        min: the least value; None if it is unknown, or if all rows are NULL.
        max: the greatest value; None if it is unknown, or if all rows are NULL.
        missing: for each unknown statistic, its name and the reason.
    """

    column: str
    type: str
    nulls: int | None
    min: Any
    max: Any
    missing: tuple[str, ...]


@suggests_arguments
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableDescription(Rows):
    """The exact statistics of all columns in one version of a table.

    In Arrow and pandas, it has one row for each column of the table. The result columns are
    `column`, `type`, `nulls`, `min` and `max` (both as strings), and `missing`.

    Args:
        table: location of the table.
        version: the described version.
        num_rows: number of rows of the table; None if unknown.
        columns: the descriptions, in the order of the schema.
    """

    table: str
    version: int
    num_rows: int | None
    columns: tuple[ColumnDescription, ...]

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema, for one row per column of the table."""
        return _SCHEMA

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows in one batch."""
        rows = [
            {
                "column": one.column,
                "type": one.type,
                "nulls": one.nulls,
                "min": None if one.min is None else str(one.min),
                "max": None if one.max is None else str(one.max),
                "missing": "; ".join(one.missing) or None,
            }
            for one in self.columns
        ]
        yield pa.RecordBatch.from_pylist(rows, schema=_SCHEMA)

    def __repr__(self) -> str:
        """Show the description, one line per column."""
        lines = [self._title]
        for row in self.to_table().to_pylist():
            facts = [f"{name} {row[name]}" for name in _SCHEMA.names[2:] if row[name] is not None]
            lines.append(f"  {row['column']}: {row['type']}, {', '.join(facts)}".rstrip(", "))
        return "\n".join(map(printable, lines))

    def _repr_html_(self) -> str:
        """Return the notebook card."""
        rows = [tuple(row.values()) for row in self.to_table().to_pylist()]
        return card(f"Columns of {self._title}", grid(rows, _SCHEMA.names, omits_empty=True))

    @property
    def _title(self) -> str:
        number = self.num_rows
        rows = "an unknown number of rows" if number is None else counted(number, "row")
        return f"{self.table} at version {self.version}: {rows}"


def describe_columns(snapshot: Snapshot) -> TableDescription:
    """Describe the columns of a version by partition values and statistics.

    Only exact values are returned. A bound is not exact if it may belong to a deleted row, if it
    may be truncated (strings and times) or rounded (decimals), or if NaN may be the maximum.

    Raises:
        UnsupportedFeatureError: the table has a reader feature that deltalog does not support.

    Cost: reads no data files, but all statistics of all files, one column after the other.
    """
    check_rows_readable(snapshot)
    configuration = snapshot.configuration
    files = _Files.of(snapshot)
    keys = dict(zip(configuration.partition_columns, configuration.partition_schema, strict=True))
    pairs = zip(
        leaf_columns(configuration.schema), leaf_columns(configuration.physical_schema), strict=True
    )
    return TableDescription(
        table=snapshot.store.root,
        version=snapshot.version,
        num_rows=files.num_rows,
        columns=tuple(
            files.partition(path[0], stored[0], field)
            if len(path) == 1 and path[0] in keys
            else files.column(".".join(path), stored, field)
            for (path, field), (stored, _) in pairs
        ),
    )


@dataclass(frozen=True, slots=True)
class _Files:
    """The files of a version, and their row counts.

    Args:
        snapshot: the version.
        live: for each file, the number of rows that are not deleted; NULL if unknown.
        is_tight: for each file, whether its statistics describe exactly the live rows.
    """

    snapshot: Snapshot
    live: Any
    is_tight: Any

    @classmethod
    def of(cls, snapshot: Snapshot) -> _Files:
        vectors = snapshot.files(["deletionVector"])["deletionVector"]
        deleted = compute.fill_null(compute.struct_field(vectors, "cardinality"), 0)
        stats = snapshot.stats(pa.schema(_OF_A_FILE))
        live: Any = compute.subtract(stats[NUM_RECORDS], deleted)
        impossible = compute.less(live, 0)
        live = compute.if_else(impossible, pa.scalar(None, pa.int64()), live)
        is_tight = compute.and_(
            compute.fill_null(stats[TIGHT_BOUNDS], True),  # noqa: FBT003
            compute.equal(deleted, 0),
        )
        return cls(snapshot, live, is_tight)

    @property
    def num_rows(self) -> int | None:
        return _sum(self.live)

    def partition(self, name: str, key: str, field: Field) -> ColumnDescription:
        """Describe a partition column by the partition values of the files that have live rows."""
        stored = self.snapshot.files(["partitionValues"])["partitionValues"]
        zone = self.snapshot.context.time_zone
        values = pa.chunked_array(
            [parse_column(extract(stored, key), field.type, column=name, time_zone=zone)]
        )
        nulls = _sum(compute.if_else(compute.is_null(values), self.live, 0))
        missing = [] if nulls is not None else ["nulls: the rows of a file are not counted"]
        least = most = None
        if self.live.null_count:
            missing.append("min, max: the rows of a file are not counted")
        else:
            used = values.filter(compute.greater(self.live, 0))
            least, most = _extremes(used, used)
        return ColumnDescription(
            column=name, type=str(field.type), nulls=nulls, min=least, max=most,
            missing=tuple(missing),
        )  # fmt: skip

    def column(self, name: str, path: Path, field: Field) -> ColumnDescription:
        """Describe a data column by those statistics that are exact in every file."""
        stats = self.snapshot.stats(stats_schema([(path, field)], tight_bounds=False))
        stored_nulls = leaf(stats, (NULL_COUNT, *path))
        is_all_null = compute.fill_null(compute.equal(stored_nulls, stats[NUM_RECORDS]), False)  # noqa: FBT003
        is_empty = compute.fill_null(compute.equal(self.live, 0), False)  # noqa: FBT003
        # If a file has deleted rows, its null count is exact only if no row or every row is NULL.
        nulls = compute.if_else(
            is_empty,
            0,
            compute.if_else(
                compute.or_(self.is_tight, compute.equal(stored_nulls, 0)),
                stored_nulls,
                compute.if_else(is_all_null, self.live, pa.scalar(None, pa.int64())),
            ),
        )
        counted = _sum(nulls)
        missing = [] if counted is not None else [f"nulls: {self._why(stored_nulls, is_empty)}"]
        least = most = None
        doubt = _doubt(field)
        if doubt is not None:
            missing.append(f"min, max: {doubt}")
        else:
            counts = compute.invert(compute.or_(is_empty, is_all_null))
            lows, highs = (
                stats_column.filter(counts)
                for stats_column in (
                    leaf(stats, (MIN_VALUES, *path)),
                    leaf(stats, (MAX_VALUES, *path)),
                )
            )
            is_exact = compute.all(self.is_tight.filter(counts), min_count=0).as_py()
            if lows.null_count or highs.null_count:
                missing.append("min, max: a file has no statistics of it")
            elif not is_exact:
                missing.append("min, max: rows are deleted in a file")
            else:
                least, most = _extremes(lows, highs)
                if _is_floating(field):
                    most = None
                    missing.append("max: it may be NaN")
        return ColumnDescription(
            column=name, type=str(field.type), nulls=counted, min=least, max=most,
            missing=tuple(missing),
        )  # fmt: skip

    @staticmethod
    def _why(nulls: Any, is_empty: Any) -> str:
        is_unknown = compute.and_(compute.is_null(nulls), compute.invert(is_empty))
        if compute.any(is_unknown, min_count=0).as_py():
            return "a file has no statistics of it"
        return "rows are deleted in a file"


def _doubt(field: Field) -> str | None:
    """Return why stored bounds of a column may be inexact; None if they are exact."""
    if not has_bounds(field):
        return "statistics have no bounds for this type"
    if field.type in (STRING, BINARY):
        return "strings may be truncated"
    bounds = bounds_of(field.type)
    if bounds is not None and bounds.has_millis:
        return "times may be truncated to milliseconds"
    return None if is_taken_as_stored(field) else "values may be rounded"


def _is_floating(field: Field) -> bool:
    kind = field.type
    return isinstance(kind, PrimitiveType) and kind.primitive.family is Family.FLOATING


def leaf(stats: pa.Table, path: Path) -> Any:
    """Return one statistic of every file; NULL for files without this statistic."""
    found: Any = stats[path[0]]
    for name in path[1:]:
        found = compute.struct_field(found, name)
    return found


def _sum(counts: Any) -> int | None:
    """Return the sum; None if a count is unknown (NULL)."""
    return None if counts.null_count else exact_sum(counts)


def _extremes(lows: Any, highs: Any) -> tuple[Any, Any]:
    least, most = readable_values(pa.array([compute.min(lows)], lows.type)) + readable_values(
        pa.array([compute.max(highs)], highs.type)
    )
    # Writers store the lower bound -0.0 for both 0.0 and -0.0, so show 0.0 instead of -0.0.
    return (0.0 if isinstance(least, float) and least == 0 else least), most


# --- The commits of a table, as a list with a notebook card


_MOST_SHOWN: Final = 50
_OF_HISTORIES: Final = {
    "pl": "to_polars()",
    **dict.fromkeys(
        ("to_arrow", "to_table", "to_pyarrow_table"), "pyarrow.table(history.to_pandas())"
    ),
    **dict.fromkeys(("toPandas", "df", "to_df", "collect", "show"), "to_pandas()"),
    **dict.fromkeys(
        ("to_dicts", "to_pylist", "to_list", "rows"), "list(history), or the history itself"
    ),
    **dict.fromkeys(("shape", "count_rows", "height", "num_rows"), "len(history)"),
    **dict.fromkeys(("columns", "schema", "iterrows", "tail"), "to_pandas()"),
    **dict.fromkeys(("first", "last"), "history[0] for the newest commit, history[-1]"),
    **dict.fromkeys(("filter", "where", "select"), "to_pandas(), or a loop over the dictionaries"),
    **dict.fromkeys(("head", "limit", "take"), "history(limit=…)"),
    **dict.fromkeys(("version", "operation", "timestamp", "keys"), "a commit of it: history[0]"),
}
"""What users of other libraries look for → what to use instead."""


@suggests_arguments
class CommitHistory(SimilarNames, list[dict[str, Any]]):
    """A list of commits as dictionaries, newest first, with a notebook card and dataframes."""

    __slots__ = ()
    _called = "the history"
    _meant = _OF_HISTORIES

    if not TYPE_CHECKING:  # type checkers know the keys of a list

        def __getitem__(self, key: Any) -> Any:
            """Return a commit; raise an error that says where the values of a commit are."""
            __tracebackhide__ = True  # IPython does not show this frame
            if isinstance(key, str):
                raise WrongCallError(
                    f"the history has no item {key!r}, because it is a list of commits: use "
                    f"history[0][{key!r}] for the newest commit, or to_pandas()[{key!r}] for all"
                )
            try:
                return super().__getitem__(key)
            except IndexError:
                raise no_item(key, len(self), "commit") from None

    def to_pandas(self) -> pd.DataFrame:
        """Return a dataframe with one row per commit; `timestamp` is a datetime in UTC."""
        pandas = require_library("pandas")
        frame: pd.DataFrame = pandas.DataFrame(list(self))
        if "timestamp" in frame:
            # A timestamp that pandas cannot represent becomes NaT.
            moments = pandas.to_datetime(frame["timestamp"], unit="ms", utc=True, errors="coerce")
            frame["timestamp"] = moments
        return frame

    def to_polars(self) -> pl.DataFrame:
        """Return a dataframe with one row per commit; `timestamp` is a datetime in UTC."""
        polars = require_library("polars")
        frame: pl.DataFrame = polars.DataFrame(list(self), infer_schema_length=None, strict=False)
        if "timestamp" in frame.columns:
            moment = polars.col("timestamp").cast(polars.Datetime("ms", "UTC"))
            frame = frame.with_columns(moment)
        return frame

    def _repr_html_(self) -> str:
        """Return the notebook card."""
        names = ("version", "timestamp", "operation", "changed", "parameters")
        rows = [
            (
                row["version"],
                readable_moment(row["timestamp"]),
                row.get("operation"),
                _folded(row.get("operationMetrics")),
                _lines(readable_parameters(row.get("operationParameters"))),
            )
            for row in self[:_MOST_SHOWN]
        ]
        more = len(self) - len(rows)
        title = counted(len(self), "commit") + (f", without {more} older" * (more > 0))
        return card(title, grid(rows, names, omits_empty=True))


def _folded(metrics: object) -> object:
    """Return the numbers of rows of a commit, and all its metrics to unfold."""
    if not isinstance(metrics, dict) or not metrics:
        return _listed(metrics)
    changes = changes_of_commit(metrics)
    return folding(changes or counted(len(metrics), "metric"), grid(metrics.items()), is_open=False)


def _lines(parameters: dict[str, str]) -> object:
    """Return a small table: one line for each parameter."""
    return grid(parameters.items()) if parameters else ""


def _listed(members: object) -> str:
    """Format the entries of a dictionary in `commitInfo`; return "" for any other value."""
    if not isinstance(members, dict):
        return "" if members is None else dumps(members).decode()
    return ", ".join(
        f"{name}={value if isinstance(value, str) else dumps(value).decode()}"
        for name, value in members.items()
    )
