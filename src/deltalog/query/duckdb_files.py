"""Native plans in DuckDB's SQL: the rows of a table, read by DuckDB's own Parquet reader.

Each group of files is one call of `read_parquet`. Values that are constant within a file come from
a small table that is joined by the number of the file. Deleted rows are left out by `NOT IN`, whose
join DuckDB does not reorder; with an anti-join, DuckDB underestimates the rows that remain, and
chooses slow orders of joins.

Protocol: Column Mapping, Deletion Vectors, Partition Value Serialization
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.kernels import compute
from deltalog.data.scan.native import DUCKDB, native_directory, plan_native
from deltalog.query.native import column_text, quoted_name, quoted_string
from deltalog.schema.columns import find_field
from deltalog.schema.types import DOUBLE, FLOAT, TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from deltalog.data.scan.native import FileGroup, NativePlan
    from deltalog.data.scan.plan import Scan
    from deltalog.schema import StructType

_FILE, _ROW = "file_index", "file_row_number"
_POSITION: Final = "position"
# The number of a file and the position of a row form one number that identifies the row.
_ROWS_OF_FILE: Final = 1 << 40
_RELATIONS: Final = count()


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
        """The directory that contains all files of the table, as an absolute path with a slash."""
        return native_directory(self.plan.scan.snapshot.store)

    def check_files(self) -> None:
        """Read the rows by deltalog's reader, which names the file that DuckDB could not read.

        Raises:
            DeltaError: a file is missing or damaged.
        """
        for _ in self.plan.scan.to_batches():
            pass

    def create_view(self, connection: Any, name: str, query: str | None = None) -> None:
        """Create a temporary view of the rows on a connection.

        Args:
            connection: DuckDB's connection.
            name: the name of the view.
            query: the result of `as_query`.

        Cost: DuckDB reads the footer of one file per group; loads the deletion vectors.
        """
        query = self._query(connection, name) if query is None else query
        connection.execute(f"CREATE TEMP VIEW {quoted_name(name)} AS {query}")

    def as_query(self) -> str | None:
        """Return a query of the rows; None if it needs tables that are registered."""
        if any(group.vectors for group in self.plan.groups):
            return None
        if any(_literals(values) is None for group in self.plan.groups
               for values in group.constants.values()):  # fmt: skip
            return None
        return self._query(None, "")

    def to_relation(self, connection: Any) -> Any:
        """Return a relation of the rows on a connection that can open the files.

        Small tables of deleted rows and partition values are registered on the connection, under
        names that begin with `deltalog_rows_`.

        Args:
            connection: DuckDB's connection.

        Cost: see `create_view`.
        """
        return connection.sql(self._query(connection, f"deltalog_rows_{next(_RELATIONS)}"))

    def _query(self, connection: Any, name: str) -> str:
        """Return the query of the rows, and register the tables that it needs."""
        parts = [
            self._group(connection, group, f"{name}_{number}")
            for number, group in enumerate(self.plan.groups)
        ]
        return " UNION ALL ".join(parts) or self._no_rows()

    def _no_rows(self) -> str:
        nulls = (
            f"CAST(NULL AS {self._type(name)}) AS {quoted_name(name)}" for name in self.schema.names
        )
        return f"SELECT {', '.join(nulls)} WHERE false"

    def _type(self, name: str) -> str:
        return column_text(find_field(self.table_schema, (name,)).type)

    def _group(self, connection: Any, group: FileGroup, name: str) -> str:
        """Return the query for a group of files, and register the tables that it needs."""
        texts = dict(self._columns(group))
        files = ", ".join(map(quoted_string, group.paths))
        source = f"read_parquet([{files}], hive_partitioning = false) AS files"
        varying: dict[str, pa.Array[Any]] = {}
        for column, values in group.constants.items():
            literals, kind = _literals(values), self._type(column)
            if literals is not None and len(set(literals)) == 1:
                texts[column] = f"CAST({literals[0]} AS {kind})"
                continue
            name_of_values = f"value_{len(varying)}"
            varying[name_of_values] = values
            texts[column] = f"CAST(constants.{name_of_values} AS {kind})"
        if varying:
            constants = _constants(connection, f"{name}_constants", varying)
            source += f" JOIN {constants} ON constants.number = files.{_FILE}"
        if group.vectors:
            positions = self._positions(group)
            deleted_rows: Any = {_POSITION: positions}
            connection.register(f"{name}_deleted", pa.table(deleted_rows))
            position = f"files.{_FILE}::BIGINT * {_ROWS_OF_FILE} + files.{_ROW}"
            deleted = f"SELECT {_POSITION} FROM {quoted_name(f'{name}_deleted')}"  # noqa: S608  # as below
            source += f" WHERE {position} NOT IN ({deleted})"
        shown = ", ".join(f"{texts[one]} AS {quoted_name(one)}" for one in self.schema.names)
        return f"SELECT {shown} FROM {source}"  # noqa: S608  # names and paths are quoted

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

    def _positions(self, group: FileGroup) -> pa.ChunkedArray[Any]:
        store = self.plan.scan.snapshot.store
        found = [
            compute.add(rows, pa.scalar(number * _ROWS_OF_FILE, pa.int64()))
            for number, rows in enumerate(group.deleted(store))
        ]
        return pa.chunked_array(found, pa.int64())


def native_rows(scan: Scan) -> NativeRows | None:
    """Return the rows of a scan for DuckDB's own reader; None if deltalog must read some of them.

    Args:
        scan: the scan. The predicate only prunes files.

    Raises:
        DeltaError: a file or a deletion vector is missing or damaged.

    Cost: see `plan_native`.
    """
    if scan.limit is not None:
        return None
    plan = plan_native(scan, DUCKDB)
    return None if plan.reasons else NativeRows(plan)


def can_open_files(connection: Any) -> bool:
    """Return whether queries on a connection can open local files."""
    # A cursor, because a query on the connection itself would end its open result.
    setting = connection.cursor().execute("SELECT current_setting('enable_external_access')")
    return bool(setting.fetchone()[0])


def _constants(connection: Any, name: str, varying: Mapping[str, pa.Array[Any]]) -> str:
    """Return a table of values for each file; register it under `name` if it has no literals."""
    literals = [found for values in varying.values() if (found := _literals(values)) is not None]
    if len(literals) == len(varying):
        rows = (
            f"({number}, {', '.join(row)})"
            for number, row in enumerate(zip(*literals, strict=True))
        )
        return f"(VALUES {', '.join(rows)}) AS constants(number, {', '.join(varying)})"
    numbers = pa.array(range(len(next(iter(varying.values())))), pa.uint64())
    connection.register(name, pa.table({"number": numbers, **varying}))
    return f"{quoted_name(name)} AS constants"


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
