"""Native plans in DuckDB's SQL: the rows of a table, read by DuckDB's own Parquet reader.

Each group of files is one call of `read_parquet`. Partition values come from the names of
directories if these say what the log says, otherwise from a small table that is joined by the
number of the file. Deleted rows are left out by `NOT IN`, whose join DuckDB does not reorder; with
an anti-join, DuckDB underestimates the rows that remain, and chooses slow orders of joins.

Protocol: Column Mapping, Deletion Vectors, Partition Value Serialization
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.escaping import name_key
from deltalog._util.kernels import compute
from deltalog.data.scan.native import DUCKDB, directory_columns, native_directory, plan_native
from deltalog.query.native import column_text, quoted_name, quoted_string
from deltalog.schema.columns import find_field
from deltalog.schema.types import DOUBLE, FLOAT, TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog.data.scan.native import FileGroup, NativePlan
    from deltalog.data.scan.plan import Scan
    from deltalog.schema import StructType

_FILE, _ROW = "file_index", "file_row_number"
_POSITION: Final = "position"
# The number of a file and the position of a row form one number that identifies the row.
_ROWS_OF_FILE: Final = 1 << 40
_CONSTANTS: Final = "_constants"
_RELATIONS: Final = count()
_MOST_KEPT_ROWS: Final = 1_000_000
"""The maximum number of deleted rows of a table that a connection keeps for the next query."""


class NativeRows:
    """The rows of a table that DuckDB reads itself.

    Args:
        plan: the plan, in which DuckDB reads every file.
    """

    def __init__(self, plan: NativePlan) -> None:
        self.plan = plan

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the rows."""
        return self.plan.scan.schema

    @property
    def table_schema(self) -> StructType:
        """Schema of the table."""
        return self.plan.scan.table_schema

    @property
    def directory(self) -> str:
        """The directory of the table, as an absolute path with a slash."""
        return native_directory(self.plan.scan.snapshot.store)

    @property
    def outside(self) -> frozenset[str]:
        """The paths of files that are not below the directory, as of a shallow clone's source."""
        home = self.directory
        paths = (path for group in self.plan.groups for path in group.paths)
        return frozenset(path for path in paths if not path.startswith(home))

    def check_files(self) -> None:
        """Read the rows by deltalog's reader, which names the file that DuckDB could not read.

        Raises:
            DeltaError: a file is missing or damaged.
        """
        for _ in self.plan.scan.to_batches():
            pass

    def view(self, name: str) -> DuckDBView:
        """Return a view of the rows.

        Args:
            name: the name of the view, with which the names of its tables begin.
        """
        tables: dict[str, Callable[[], pa.Table]] = {}
        parts = [
            self._group(group, f"{name}_{number}", tables)
            for number, group in enumerate(self.plan.groups)
        ]
        vectors = [one for group in self.plan.groups for one in group.vectors]
        is_small = sum(one.num_deleted for one in vectors) <= _MOST_KEPT_ROWS
        is_known = is_small and not any(one.endswith(_CONSTANTS) for one in tables)
        query = " UNION ALL ".join(parts) or self._no_rows()
        ids = tuple(one.unique_id for one in vectors)
        return DuckDBView(name, query, tables, (name, query, ids) if is_known else None)

    def to_relation(self, connection: Any) -> Any:
        """Return a relation of the rows on a connection that can open the files.

        Small tables of deleted rows and partition values are created on the connection, under names
        that begin with `deltalog_rows_`.

        Args:
            connection: DuckDB's connection.

        Cost: see `DuckDBView.create`.
        """
        view = self.view(f"deltalog_rows_{next(_RELATIONS)}")
        view.create_tables(connection)
        return connection.sql(view.query)

    def _no_rows(self) -> str:
        nulls = (
            f"CAST(NULL AS {self._type(name)}) AS {quoted_name(name)}" for name in self.schema.names
        )
        return f"SELECT {', '.join(nulls)} WHERE false"

    def _type(self, name: str) -> str:
        return column_text(find_field(self.table_schema, (name,)).type)

    def _group(self, group: FileGroup, name: str, tables: dict[str, Callable[[], pa.Table]]) -> str:
        """Return the query for a group of files; add the tables that it needs to `tables`."""
        texts = dict(self._columns(group))
        files = ", ".join(map(quoted_string, group.paths))
        keys = self._directory_columns(group)
        options = ", ".join((
            f"hive_partitioning = {bool(keys)}", *self._types_of(keys), *_statistics_of(group)
        ))  # fmt: skip
        source = f"read_parquet([{files}], {options}) AS files"
        varying: dict[str, pa.Array[Any]] = {}
        for column, values in group.constants.items():
            literals, kind = _literals(values), self._type(column)
            if literals is not None and len(set(literals)) == 1:
                texts[column] = f"CAST({literals[0]} AS {kind})"
                continue
            if column in keys:
                texts[column] = f"files.{quoted_name(column)}"
                continue
            name_of_values = f"value_{len(varying)}"
            varying[name_of_values] = values
            texts[column] = f"CAST(constants.{name_of_values} AS {kind})"
        if varying:
            constants = _values(varying)
            if constants is None:
                tables[name + _CONSTANTS] = partial(_table_of, varying)
                constants = f"{quoted_name(name + _CONSTANTS)} AS constants"
            source += f" JOIN {constants} ON constants.number = files.{_FILE}"
        if group.vectors:
            tables[f"{name}_deleted"] = partial(self._positions, group)
            position = f"files.{_FILE}::BIGINT * {_ROWS_OF_FILE} + files.{_ROW}"
            deleted = f"SELECT {_POSITION} FROM {quoted_name(f'{name}_deleted')}"  # noqa: S608  # as below
            source += f" WHERE {position} NOT IN ({deleted})"
        shown = ", ".join(f"{texts[one]} AS {quoted_name(one)}" for one in self.schema.names)
        return f"SELECT {shown} FROM {source}"  # noqa: S608  # names and paths are quoted

    def _directory_columns(self, group: FileGroup) -> tuple[str, ...]:
        """Return the partition columns that DuckDB reads from the names of directories."""
        if group.vectors:
            return ()  # a filter of such columns prunes files, and changes the files' numbers
        keys = directory_columns(self.plan, (group,)) or ()
        stored = {name_key(name) for name in group.files[0].schema.schema.names}
        return keys if stored.isdisjoint(map(name_key, keys)) else ()

    def _types_of(self, keys: Sequence[str]) -> Iterator[str]:
        """Yield the options of `read_parquet` that state the types of partition columns."""
        if keys:
            known = set(self.schema.names)
            types = (
                f"{quoted_name(key)}: {self._type(key) if key in known else 'VARCHAR'}"
                for key in keys
            )
            yield f"hive_types = {{{', '.join(types)}}}"

    def _columns(self, group: FileGroup) -> Iterator[tuple[str, str]]:
        """Yield the names and the SQL of the columns that files store."""
        for column, stored in zip(self.plan.scan.spec.data_columns, group.columns, strict=True):
            kind = column_text(column.type)
            if stored is None:
                yield column.name, f"CAST(NULL AS {kind})"
                continue
            text = f"files.{quoted_name(stored.name)}"
            if column.type == TIMESTAMP and not stored.is_same:
                text = f"({text} AT TIME ZONE 'UTC')"  # a cast would use the session's time zone
            elif not stored.is_same:
                text = f"CAST({text} AS {kind})"
            if column.type in {FLOAT, DOUBLE}:
                # DuckDB would prune row groups by bounds that do not count NaN.
                text = f"CASE WHEN isnan({text}) THEN CAST('NaN' AS {kind}) ELSE {text} END"
            yield column.name, text

    def _positions(self, group: FileGroup) -> pa.Table:
        store = self.plan.scan.snapshot.store
        found = [
            compute.add(rows, pa.scalar(number * _ROWS_OF_FILE, pa.int64()))
            for number, rows in enumerate(group.deleted(store))
        ]
        positions: Any = {_POSITION: pa.chunked_array(found, pa.int64())}
        return pa.table(positions)


@dataclass(frozen=True, slots=True)
class DuckDBView:
    """A view of the rows of a table.

    Args:
        name: the name of the view.
        query: the query of the view.
        tables: the tables that the query needs: name → the rows.
        key: a value that is equal only for views with equal rows; None if it is unknown, or if the
            tables are large.
    """

    name: str
    query: str
    tables: Mapping[str, Callable[[], pa.Table]]
    key: Hashable | None

    def create(self, connection: Any) -> None:
        """Create the view and its tables on a connection; other connections do not see them.

        Cost: DuckDB reads the footer of one file per group; loads the deletion vectors.
        """
        self.create_tables(connection)
        connection.execute(f"CREATE TEMP VIEW {quoted_name(self.name)} AS {self.query}")

    def create_tables(self, connection: Any) -> None:
        """Create the tables that the query needs on a connection."""
        for name, rows in self.tables.items():
            connection.register(name, rows())


def _statistics_of(group: FileGroup) -> Iterator[str]:
    """Yield the option of `read_parquet` by which DuckDB knows the statistics of all files.

    Without it, DuckDB estimates the number of rows from the first file, and may choose a slow order
    of joins. With it, DuckDB looks at each footer, which it has cached, before each query.
    """
    count = len(group.files)
    is_worth = count <= _FEW_FILES or sum(one.num_rows for one in group.files) > count * _MANY_ROWS
    if count > 1 and is_worth:
        yield "union_by_name = true"


_FEW_FILES: Final = 100
_MANY_ROWS: Final = 100_000


def native_rows(scan: Scan) -> NativeRows | None:
    """Return the rows of a scan for DuckDB's own reader; None if deltalog must read some of them.

    Args:
        scan: the scan. The predicate only prunes files.

    Raises:
        DeltaError: a file or a deletion vector is missing or damaged.

    Cost: see `plan_native`.
    """
    if scan.most_rows is not None:
        return None
    plan = plan_native(scan, DUCKDB)
    return None if plan.reasons else NativeRows(plan)


def can_open_files(connection: Any) -> bool:
    """Return whether queries on a connection can open local files."""
    # A cursor, because a query on the connection itself would end its open result.
    setting = connection.cursor().execute("SELECT current_setting('enable_external_access')")
    return bool(setting.fetchone()[0])


def _values(varying: Mapping[str, pa.Array[Any]]) -> str | None:
    """Return a table of values for each file as VALUES; None if a value has no literal."""
    literals = [found for values in varying.values() if (found := _literals(values)) is not None]
    if len(literals) < len(varying):
        return None
    rows = (
        f"({number}, {', '.join(row)})" for number, row in enumerate(zip(*literals, strict=True))
    )
    return f"(VALUES {', '.join(rows)}) AS constants(number, {', '.join(varying)})"


def _table_of(varying: Mapping[str, pa.Array[Any]]) -> pa.Table:
    numbers = pa.array(range(len(next(iter(varying.values())))), pa.uint64())
    return pa.table({"number": numbers, **varying})


_MOST_LITERALS: Final = 1_000


def _literals(values: pa.Array[Any]) -> list[str] | None:
    """Return values as literals that a cast converts exactly; None if they are registered."""
    kind = values.type
    is_same = compute.count_distinct(values, mode="all").as_py() == 1
    if len(values) > _MOST_LITERALS and not is_same:
        return None
    if pt.is_date32(kind) and not _has_usual_years(values):
        return None
    write = next((write for test, write in _WRITERS if test(kind)), None)
    if write is None:
        return None
    shown = values[:1].to_pylist() * len(values) if is_same else values.to_pylist()
    return ["NULL" if one is None else quoted_string(write(one)) for one in shown]


def _has_usual_years(days: pa.Array[Any]) -> bool:
    ends: dict[str, Any] = compute.min_max(compute.cast(days, pa.int32())).as_py()
    first, last = (ends["min"] or 0), (ends["max"] or 0)
    return bool(date.min.toordinal() <= first + _EPOCH and last + _EPOCH <= date.max.toordinal())


_EPOCH: Final = date(1970, 1, 1).toordinal()
_WRITERS: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any], str]], ...]] = (
    (pt.is_string, str), (pt.is_integer, str), (pt.is_boolean, str),
    (pt.is_decimal, "{:f}".format), (pt.is_date32, str),
)  # fmt: skip
