"""Native plans for Polars: local Parquet files, read by Polars itself.

Polars asks a dataset for a scan when it has optimized a query. It states the columns, and the
filter if pyarrow can express it. The answer is a scan of Parquet files that remain after pruning,
or a generator of rows if Polars would not read all files exactly.

`lazy_frame` is the entry. If there is no such dataset, it implements the interface that Polars
requires of a source: columns, a filter, a number of rows. Files are pruned by the parts of the
filter that have exactly the same meaning in deltalog. Polars also applies the whole filter to each
batch, with its own semantics of nulls and NaN.

The interface of datasets, masks of deleted rows and known numbers of rows are not public in Polars.
So they are used only in releases that are known, or in which a small table is read as expected.

Protocol: Deletion Vectors, Partition Value Serialization
"""

from __future__ import annotations

import ast
import datetime as dt
import inspect
import operator
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import zip_longest
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.kernels import compute, pc
from deltalog._util.small_arrays import no_rows
from deltalog.data.scan.native import (
    FEW_ROWS,
    POLARS,
    are_unchanged,
    directory_columns,
    plan_native,
)
from deltalog.data.scan.plan import has_key, plan_scan
from deltalog.data.scan.rows import require_library
from deltalog.errors import DeltaError
from deltalog.expressions import columns as columns_of
from deltalog.expressions import resolve_predicate
from deltalog.expressions.arrow_filters import weaker_than_arrow_expression
from deltalog.expressions.polars import weaker_than_polars
from deltalog.expressions.sql_session import TextRules
from deltalog.expressions.substrait import as_meant
from deltalog.expressions.trees import conjunction
from deltalog.protocol.column_mapping import Mode, field_id
from deltalog.schema import find_field, to_arrow_type
from deltalog.schema.arrow import parquet_field_id, parquet_id_metadata
from deltalog.schema.collations import collation_below
from deltalog.schema.types import DOUBLE, FLOAT
from deltalog.storage.parquet.sink import encode_parquet
from deltalog.storage.store import native_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import polars as pl

    from deltalog.data.scan.native import FileVector, NativePlan, StoredFile
    from deltalog.data.scan.plan import Scan
    from deltalog.expressions import Expression
    from deltalog.log.snapshot import Snapshot
    from deltalog.schema import DataType, StructType

    _DeletedRows = tuple[str, Callable[[pl.DataFrame], pl.DataFrame]]

    import polars as pl


def frame_of_dataset(snapshot: Snapshot) -> pl.LazyFrame | None:
    """Return a table as a lazy frame whose files Polars reads itself; None if it cannot.

    Args:
        snapshot: the version.

    Cost: no I/O. The first call in a process with an unknown release of Polars writes and reads a
        few small files in a temporary directory.
    """
    if native_path(snapshot.store, "") is None or not has_datasets():
        return None
    return _frame(PolarsDataset(snapshot))


@dataclass(frozen=True, slots=True)
class PolarsDataset:
    """A version of a table as Polars' optimizer sees it; picklable.

    Args:
        snapshot: the version.
    """

    snapshot: Snapshot

    def schema(self) -> Any:
        """Return the schema as a `polars.Schema`."""
        planned = _planned_of(self.snapshot)
        if planned.schema is None:
            planned.schema = _polars_schema(plan_scan(self.snapshot).schema)
        return planned.schema

    def to_dataset_scan(
        self,
        *,
        projection: list[str] | None = None,
        filter_columns: list[str] | None = None,
        limit: int | None = None,
        pyarrow_predicate: str | None = None,
        **_hints: Any,
    ) -> tuple[pl.LazyFrame, str]:
        """Return the scan that Polars puts in the place of the dataset, and the key of a cache.

        Args:
            projection: the columns of the query and of its filter; None means all.
            filter_columns: the columns of the filter; None if there is none.
            limit: the maximum number of rows that the query needs, if it has no filter.
            pyarrow_predicate: a part of the filter as Python code of pyarrow. Polars applies the
                whole filter to the rows.

        Raises:
            DeltaError: see `Scan.to_batches`, and `plan_native`.

        Cost: see `plan_native`; a plan of a few whole files is used again. A query that only
            counts rows reads no file if the log states the number of rows.
        """
        schema = self.snapshot.configuration.schema
        is_counted = projection == [] and filter_columns is None and limit is None
        names = schema.names if projection is None else projection or schema.names[:1]
        predicate = None
        if pyarrow_predicate is not None and self._should_prune():
            predicate = pruning_predicate(pyarrow_predicate, self.snapshot)
        is_filtered = filter_columns is not None
        most_rows = None if is_filtered else limit
        key = (tuple(names), is_filtered)
        is_whole = predicate is None and most_rows is None and not is_counted
        found = _planned_of(self.snapshot).frame(key) if is_whole else None
        if found is not None:
            return found, _KEY
        scan = plan_scan(
            self.snapshot, columns=names, predicate=predicate, limit=most_rows, is_resolved=True
        )
        if is_counted:
            return _counted(scan), _KEY
        if scan.most_rows is not None and scan.most_rows <= FEW_ROWS:
            return _rows(scan, is_empty=projection == []), _KEY  # the first file may have enough
        plan = plan_native(scan, POLARS, has_filter=is_filtered)
        found = files_frame(plan, has_filter=is_filtered)
        if found is None:
            return _rows(scan, is_empty=projection == []), _KEY
        if is_whole:
            _planned_of(self.snapshot).keep(key, plan, found)
        return found, _KEY

    def _should_prune(self) -> bool:
        """Whether to exclude files by their statistics in the log.

        Polars excludes row groups by the statistics in footers, which takes less time for a few
        files than translating its filter. A key index needs the filter.
        """
        return self.snapshot.num_files > _FEW_FILES or has_key(self.snapshot)


_FEW_FILES: Final = 4


# Polars passes the key of an earlier answer; each answer is new, so one key is enough.
_KEY: Final = "deltalog"


_Key: TypeAlias = "tuple[tuple[str, ...], bool]"


class _Planned:
    """What was found for a version, so that further queries of a session do not find it again.

    Attributes:
        schema: the schema as a `polars.Schema`; None if it is unknown.
    """

    def __init__(self) -> None:
        self.schema: Any = None
        self._frames: dict[_Key, tuple[pl.LazyFrame, tuple[StoredFile, ...]]] = {}

    def frame(self, key: _Key) -> pl.LazyFrame | None:
        """Return the scan of all files, if it was kept and no file has changed.

        Args:
            key: the columns, and whether the query filters the rows.
        """
        frame, files = self._frames.get(key, (None, ()))
        return frame if frame is not None and are_unchanged(files) else None

    def keep(self, key: _Key, plan: NativePlan, frame: pl.LazyFrame) -> None:
        """Keep the scan of a few files.

        A scan with deletion vectors is not kept: it refers to the snapshot, which would stay in
        memory.
        """
        are_few = plan.num_files <= _MOST_KEPT_FILES
        if are_few and not any(group.vectors for group in plan.groups):
            if len(self._frames) >= _MOST_KEPT:
                self._frames = {}
            self._frames[key] = frame, tuple(file for group in plan.groups for file in group.files)


_MOST_KEPT: Final = 64
_MOST_KEPT_FILES: Final = 64
_PLANNED: Final[WeakKeyDictionary[Snapshot, _Planned]] = WeakKeyDictionary()


def _planned_of(snapshot: Snapshot) -> _Planned:
    return _PLANNED.setdefault(snapshot, _Planned())


def has_datasets() -> bool:
    """Return whether the installed Polars has the interfaces that this module uses."""
    polars: Any = require_library("polars")
    release = tuple(int(part) for part in re.findall(r"\d+", polars.__version__)[:2])
    if release < min(_KNOWN_RELEASES):
        return False
    return release in _KNOWN_RELEASES or reads_as_expected()


@cache
def reads_as_expected() -> bool:
    """Return whether Polars reads small files as the interfaces are meant."""
    polars: Any = require_library("polars")
    options = {
        "_column_mapping", "_default_values", "_deletion_files", "glob", "hive_schema",
        "missing_columns",
    }  # fmt: skip
    if not options <= set(inspect.signature(polars.scan_parquet).parameters):
        return False
    with tempfile.TemporaryDirectory(prefix="deltalog-") as directory:
        try:
            return _reads_as_expected(polars, directory)
        except Exception:  # noqa: BLE001  # whatever an unknown release raises
            return False


@dataclass(frozen=True, slots=True)
class _Probe:
    """Two small files; of the first, the second row is deleted.

    Args:
        paths: the paths of the files.
        columns: the schema.
        is_mapped: whether columns are mapped by field ids, instead of by names and directories.
    """

    paths: tuple[str, ...]
    columns: Any
    is_mapped: bool

    def schema(self) -> Any:
        return self.columns

    def to_dataset_scan(
        self, *, projection: list[str] | None = None, **_hints: Any
    ) -> tuple[pl.LazyFrame, str]:
        polars: Any = require_library("polars")
        kept = [polars.Series([True, False, True]), None]
        names = [name for name in projection or ["a", "p"] if self.is_mapped or name == "a"]
        options = {"hive_partitioning": True, "hive_schema": {"p": polars.Int64}}
        if self.is_mapped:
            fields = [
                pa.field(name, pa.int64(), metadata=parquet_id_metadata(ord(name)))
                for name in names
            ]
            constants = {ord("p"): polars.Series([0, 1])} if "p" in names else {}
            options = _mapped_by(pa.schema(fields), None, constants)
        scan = polars.scan_parquet(
            list(self.paths),
            schema=dict.fromkeys(names, polars.Int64),
            _deletion_files=(_MASKS, lambda asked: _masks(kept[: asked.height])),
            **options,
            **_OPTIONS,
        )
        return scan, _KEY


def _reads_as_expected(polars: Any, directory: str) -> bool:
    paths = [f"{directory}/p={number}/f.parquet" for number in range(2)]
    mapped = [f"{directory}/{number}.parquet" for number in range(2)]
    field = pa.field("b", pa.int64(), metadata=parquet_id_metadata(ord("a")))
    for number, path in enumerate(paths):
        Path(path).parent.mkdir()
        values = pa.array([10 * number, 10 * number + 1, 10 * number + 2])
        Path(path).write_bytes(encode_parquet(pa.table({"a": values})))
        Path(mapped[number]).write_bytes(
            encode_parquet(pa.table([values], schema=pa.schema([field])))
        )
    return all(
        _has_its_rows(polars, _Probe(tuple(some), _probed(polars), is_mapped))
        for some, is_mapped in ((paths, False), (mapped, True))
    )


def _probed(polars: Any) -> Any:
    return polars.Schema({"a": polars.Int64, "p": polars.Int64})


def _has_its_rows(polars: Any, probe: _Probe) -> bool:
    frame = _frame(probe)
    rows = frame.select("a", "p").collect().rows()
    above = frame.filter(polars.col("a") > 1).select("p").collect().rows()
    return rows == [(0, 0), (2, 0), (10, 1), (11, 1), (12, 1)] and above == [(0,), *3 * [(1,)]]


_MASKS: Final = "delta-deletion-vector"
_KNOWN_RELEASES: Final = frozenset({(2, 1)})


def _frame(dataset: Any) -> pl.LazyFrame:
    from polars._plr import PyLazyFrame  # noqa: PLC0415  # see the module's docstring
    from polars._utils.wrap import wrap_ldf  # noqa: PLC0415

    make: Any = PyLazyFrame.new_from_dataset_object
    return wrap_ldf(make(dataset))


def _polars_schema(schema: pa.Schema) -> Any:
    return require_library("polars").from_arrow(no_rows(schema)).schema


# --- Scans for the place of a dataset


def _counted(scan: Scan) -> pl.LazyFrame:
    """Return a frame without values that has the right number of rows."""
    # Polars also puts row numbers and slices on such a frame, so it must not need a file.
    return _of_frames(_polars_schema(scan.schema), partial(_heights, scan))


def _heights(scan: Scan) -> tuple[Iterator[pl.DataFrame], bool]:
    polars: Any = require_library("polars")
    num_rows = scan.count()
    starts = range(0, num_rows, _MOST_HEIGHT)
    return (polars.DataFrame(height=min(_MOST_HEIGHT, num_rows - start)) for start in starts), False


_MOST_HEIGHT: Final = 2**30
"""The maximum number of rows of a dataframe without columns."""


def files_frame(
    plan: NativePlan, *, has_filter: bool = False, has_deleted: bool = False
) -> pl.LazyFrame | None:
    """Return the files of a plan as a scan of Polars; None if Polars cannot read all of them.

    Args:
        plan: the plan for Polars.
        has_filter: whether the query filters the rows.
        has_deleted: whether the frame contains the rows that deletion vectors mark.
    """
    if plan.reasons:
        return None
    schema = _polars_schema(plan.scan.schema)
    directories = None if plan.is_renamed else directory_columns(plan, plan.groups)
    mapping = None
    if directories is None:
        mapping = _mapping(plan)
        if mapping is None:
            return None
    polars: Any = require_library("polars")
    names = plan.scan.spec.data_columns.names if mapping is None else plan.scan.schema.names
    found: pl.LazyFrame = polars.scan_parquet(
        [file.path for file, _ in files_in_order(plan)],
        schema={name: schema[name] for name in names},
        hive_partitioning=bool(directories),
        hive_schema={name: schema.get(name, polars.String) for name in directories or ()} or None,
        use_statistics=not (has_filter and any(group.untrusted for group in plan.groups)),
        cast_options=polars.ScanCastOptions(
            integer_cast="upcast", float_cast="upcast", categorical_to_string="allow"
        ),
        _deletion_files=None if has_deleted else _deleted_rows(plan),
        **(mapping or {}),
        **_OPTIONS,
    )
    return found


def files_in_order(plan: NativePlan) -> list[tuple[StoredFile, FileVector | None]]:
    """Return the files in the order of the scan, with their deletion vectors."""
    found = [
        (number, file, vector)
        for group in plan.groups
        for number, file, vector in zip_longest(group.numbers, group.files, group.vectors)
    ]
    return [(file, vector) for _, file, vector in sorted(found, key=itemgetter(0))]


_OPTIONS: Final[Mapping[str, Any]] = MappingProxyType({
    "glob": False, "try_parse_hive_dates": True, "missing_columns": "insert",
    "extra_columns": "ignore",
})  # fmt: skip


def _mapping(plan: NativePlan) -> dict[str, Any] | None:
    """Return the options that map columns by field ids, and state the partition values.

    Returns:
        None if a column has no id, or if a file has other ids. Columns of tables without column
        mapping get numbers, with which files without ids are mapped by name.
    """
    spec = plan.scan.spec
    columns = [*spec.data_columns, *spec.partition_columns]
    if any(pt.is_nested(to_arrow_type(column.type)) for column in columns):
        return None
    names: dict[int, list[str]] | None = None
    if spec.mode is Mode.NONE:
        if any(_has_ids(field) for group in plan.groups for field in group.files[0].schema.schema):
            return None
        ids = {column.name: number for number, column in enumerate(columns, 1)}
        names = {number: [] for number in ids.values()}
        for group in plan.groups:
            for column, stored in zip(spec.data_columns, group.columns, strict=True):
                if stored is not None and stored.name not in names[ids[column.name]]:
                    names[ids[column.name]].append(stored.name)
    else:
        found = {column.name: field_id(column) for column in columns}
        ids = {name: number for name, number in found.items() if number is not None}
        if len(set(ids.values())) < len(columns) or not _have_these_ids(plan, ids):
            return None
    polars: Any = require_library("polars")
    fields = [
        pa.field(name, kind, metadata=parquet_id_metadata(ids[name]))
        for name, kind in zip(plan.scan.schema.names, plan.scan.schema.types, strict=True)
    ]
    constants = {ids[name]: polars.from_arrow(values) for name, values in _constants(plan).items()}
    return _mapped_by(pa.schema(fields), names, constants)


def _mapped_by(
    schema: pa.Schema, names: dict[int, list[str]] | None, constants: Mapping[int, pl.Series]
) -> dict[str, Any]:
    """Return the options of a scan that map columns by field ids.

    Args:
        schema: the columns, with their ids.
        names: id → the names in files without ids.
        constants: id → the value of each file.
    """
    return {
        "_column_mapping": ("iceberg-column-mapping", schema, names),
        "_default_values": ("iceberg", (dict(constants), {})),
    }


def _has_ids(field: pa.Field[Any]) -> bool:
    kind: Any = field.type
    inner = [kind.field(place) for place in range(kind.num_fields)] if pt.is_nested(kind) else []
    return parquet_field_id(field) is not None or any(map(_has_ids, inner))


def _have_these_ids(plan: NativePlan, ids: Mapping[str, int]) -> bool:
    """Return whether the ids of the files lead to the columns that the plan states."""
    for group in plan.groups:
        stored = {field.name: parquet_field_id(field) for field in group.files[0].schema.schema}
        by_id = {number: name for name, number in stored.items() if number is not None}
        for name, column in zip(plan.scan.spec.data_columns.names, group.columns, strict=True):
            if by_id.get(ids[name]) != (None if column is None else column.name):
                return False
        if not by_id.keys().isdisjoint(
            ids[name] for name in plan.scan.spec.partition_columns.names
        ):
            return False
    return True


def _constants(plan: NativePlan) -> dict[str, pa.Array[Any]]:
    """Return the values of each partition column, in the order of `files_in_order`."""
    order = compute.sort_indices(pa.array([one for group in plan.groups for one in group.numbers]))
    return {
        name: pa.concat_arrays([group.constants[name] for group in plan.groups]).take(order)
        for name in plan.scan.spec.partition_columns.names
    }


def _deleted_rows(plan: NativePlan) -> _DeletedRows | None:
    """Return the deleted rows of a plan for Polars; None if no row is deleted."""
    if not any(group.vectors for group in plan.groups):
        return None
    store = plan.scan.snapshot.store

    @cache
    def kept() -> dict[str, pl.Series | None]:
        found: dict[str, pl.Series | None] = {}
        for group in plan.groups:
            found.update(dict.fromkeys(group.paths))
            if group.vectors:
                deleted = group.deleted(store)
                found.update(
                    (file.path, _kept(file.num_rows, positions))
                    for file, positions in zip(group.files, deleted, strict=True)
                )
        return found

    def masks(asked: pl.DataFrame) -> pl.DataFrame:
        return _masks([kept()[path] for path in asked["path"]])  # an unknown path is an error

    return _MASKS, masks


def _kept(num_rows: int, deleted: pa.Int64Array) -> pl.Series:
    """Return a mask of the rows that are not deleted."""
    polars: Any = require_library("polars")
    positions = polars.int_range(0, num_rows, dtype=polars.Int64, eager=True)
    found: pl.Series = ~positions.is_in(polars.from_arrow(deleted).implode())
    return found


def _masks(masks: Sequence[pl.Series | None]) -> pl.DataFrame:
    """Return masks as Polars expects them: a list for each file, or NULL."""
    polars: Any = require_library("polars")
    kind = polars.List(polars.Boolean)
    found: pl.DataFrame = polars.DataFrame({"selection_vector": polars.Series(masks, dtype=kind)})
    return found


# --- Rows that deltalog's reader reads


def _rows(scan: Scan, *, is_empty: bool) -> pl.LazyFrame:
    """Return the rows of a scan as a lazy frame, whose rows have no columns if `is_empty`."""
    return _of_frames(_polars_schema(scan.schema), partial(_frames, scan, is_empty=is_empty))


def _of_frames(
    schema: Any, frames: Callable[[], tuple[Iterator[pl.DataFrame], bool]]
) -> pl.LazyFrame:
    """Return a lazy frame of dataframes that a function yields when the query runs."""
    make: Any = require_library("polars").LazyFrame._scan_python_function  # noqa: SLF001  # see the module's docstring
    found: pl.LazyFrame = make(schema, frames, pyarrow=True, is_pure=True)
    return found


def _frames(scan: Scan, *, is_empty: bool) -> tuple[Iterator[pl.DataFrame], bool]:
    """Return dataframes, and whether they contain only the rows that fulfil the filter."""
    polars: Any = require_library("polars")
    if is_empty:
        return (polars.DataFrame(height=batch.num_rows) for batch in scan.to_batches()), False
    return (polars.from_arrow(batch) for batch in scan.to_batches()), False


# --- Filters that Polars passes as Python code


def pruning_predicate(code: str, snapshot: Snapshot) -> Expression | None:
    """Return a resolved condition that is true for at least the rows of a filter, or None.

    Args:
        code: a filter as Python code that calls functions of pyarrow. It is parsed, not executed.
        snapshot: the version, whose columns the filter names.
    """
    schema, rows = snapshot.configuration.schema, plan_scan(snapshot).schema
    found = []
    try:
        root = ast.parse(code, mode="eval").body
    except (SyntaxError, RecursionError, MemoryError):  # Python limits the depth of brackets
        return None
    for part in _conjuncts(root):
        try:
            expression = _expression(part)
            if not isinstance(expression, pc.Expression):
                continue
            weaker = weaker_than_arrow_expression(expression, rows)
            if weaker is None:
                continue
            meant = as_meant(weaker, schema)
            if not any(_compares_otherwise(path, schema) for path in columns_of(meant)):
                found.append(resolve_predicate(meant, schema, text_rules=TextRules.NONE))
        except (
            _UnknownCodeError,
            DeltaError,
            pa.ArrowException,
            TypeError,
            ValueError,
            RecursionError,
        ):
            continue
    return conjunction(found) if found else None


def _compares_otherwise(path: tuple[str, ...], schema: StructType) -> bool:
    """Return whether Polars compares the values of a column otherwise than Arrow."""
    if collation_below(schema, path):
        return True
    return find_field(schema, path).type in _FLOATS


class _UnknownCodeError(Exception):
    """Code that has no counterpart."""


_OPERATORS: Final[Mapping[type[ast.AST], Callable[[Any, Any], Any]]] = MappingProxyType({
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
})  # fmt: skip
_FLOATS: Final[tuple[DataType, ...]] = (FLOAT, DOUBLE)
_EPOCH: Final = dt.date(1970, 1, 1)


def _conjuncts(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
        yield from _conjuncts(node.left)
        yield from _conjuncts(node.right)
    else:
        yield node


def _expression(node: ast.expr) -> Any:
    """Return the pyarrow expression, or the value, that a part of the code means."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.List(elts=elements):
            return [_expression(element) for element in elements]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            return ~_expression(operand)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_expression(left), _expression(right))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_expression(left), _expression(right))
        case ast.Call(func=function, args=args, keywords=keywords):
            named = {word.arg: _expression(word.value) for word in keywords}
            return _called(ast.unparse(function), function, list(map(_expression, args)), named)
        case _:
            raise _UnknownCodeError(ast.unparse(node))


def _called(name: str, function: ast.expr, args: list[Any], named: Mapping[Any, Any]) -> Any:
    match name, args, named:
        case "pa.compute.field", [str() as column], {}:
            return pc.field(column)
        case "pa.compute.starts_with", [text], {"pattern": str() as pattern}:
            return pc.starts_with(text, pattern)
        case "to_py_date", [int() as days], {}:
            return _EPOCH + dt.timedelta(days)
        case "to_py_datetime", [int() as number, str() as unit, *zone], {} if len(zone) < 2:
            moment: Any = pa.timestamp
            return pa.scalar(number, moment(unit, *zone))
    match function, args, named:
        case ast.Attribute(value=value, attr="is_null" | "is_valid" as method), [], {}:
            return getattr(_expression(value), method)()
        case ast.Attribute(value=value, attr="isin"), [list() as options], {}:
            return _expression(value).isin(options)
        case _:
            raise _UnknownCodeError(name)


# --- A version of a table as a lazy frame


def lazy_frame(
    snapshot: Snapshot,
    *,
    columns: Sequence[str] | None = None,
    predicate: Expression | None = None,
) -> pl.LazyFrame:
    """Return the rows as a lazy frame, which reads only what a query needs, batch by batch.

    Args:
        snapshot: the version.
        columns: see `plan_scan`.
        predicate: a resolved condition; only rows for which it is true are returned.

    Raises:
        InvalidInputError: Polars is not installed, or a column is unknown.
        UnsupportedFeatureError, UnsupportedTypeError: deltalog cannot read the table's rows.

    Cost: no data is read before the frame is collected.
    """
    require_library("polars")
    schema_names = snapshot.configuration.schema.names
    if predicate is None and (columns is None or set(columns) <= set(schema_names)):
        frame = frame_of_dataset(snapshot)
        if frame is not None:
            if columns is None:
                return frame
            from polars.selectors import by_name  # noqa: PLC0415  # optional

            return frame.select(by_name(*columns))  # otherwise `*` and `^a.*$` would be patterns
    from polars.io.plugins import register_io_source  # noqa: PLC0415  # optional, and slow to import

    asked: Sequence[str] = snapshot.configuration.schema.names if columns is None else columns
    shown = plan_scan(snapshot, columns=asked, predicate=predicate, is_resolved=True).schema
    names = [plan_scan(snapshot, columns=[name]).schema.names[0] for name in asked]
    source = PolarsSource(snapshot, tuple(zip(names, asked, strict=True)), predicate)
    return register_io_source(
        source, schema=_to_frame(shown.empty_table()).schema, validate_schema=True, is_pure=True
    )


@dataclass(frozen=True, slots=True)
class PolarsSource:
    """A source for Polars that returns the rows of one version; picklable.

    Args:
        snapshot: the version.
        columns: for each column name in Polars, the column name for `plan_scan`.
        predicate: a resolved condition; only rows for which it is true are returned.
    """

    snapshot: Snapshot
    columns: tuple[tuple[str, str], ...]
    predicate: Expression | None

    def __call__(
        self,
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        batch_size: int | None,
    ) -> Iterator[pl.DataFrame]:
        """Yield the rows for which the filter is true, as dataframes.

        Args:
            with_columns: the names of the requested columns, in order; None means all.
            predicate: the filter of Polars, or None.
            n_rows: maximum number of rows; None means all.
            batch_size: ignored, because scans limit the size of their batches themselves.
        """
        del batch_size
        used = None if with_columns is None else set(with_columns)
        if used is not None and predicate is not None:
            used |= set(predicate.meta.root_names())
        scan = plan_scan(
            self.snapshot,
            columns=[asked for name, asked in self.columns if used is None or name in used],
            predicate=self._narrowed(predicate),
            # If there is a filter, the limit must be applied after Polars has filtered the rows.
            limit=n_rows if predicate is None else None,
            is_resolved=True,
        )
        missing = n_rows
        for batch in scan.to_batches():
            frame = _to_frame(batch)
            frame = frame if predicate is None else frame.filter(predicate)
            frame = frame if with_columns is None else frame.select(with_columns)
            yield frame if missing is None else frame.head(missing)
            if missing is not None:
                missing -= min(missing, frame.height)
                if not missing:
                    return

    def _narrowed(self, filter_: pl.Expr | None) -> Expression | None:
        if filter_ is None:
            return self.predicate
        schema, session = self.snapshot.configuration.schema, self.snapshot.context.session
        pushed = weaker_than_polars(filter_, schema, session)
        if pushed is None or self.predicate is None:
            return self.predicate if pushed is None else pushed
        return self.predicate & pushed


def _to_frame(rows: pa.Table | pa.RecordBatch) -> pl.DataFrame:
    found: Any = require_library("polars").from_arrow(rows)
    return found  # type: ignore[no-any-return]  # `from_arrow` returns a frame for a table
