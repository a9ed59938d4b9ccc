"""The session that runs statements in this process, with DuckDB for queries.

Protocol: none
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltalog._util.escaping import name_key, path_key
from deltalog._util.readable import counted
from deltalog._util.similar_names import similar_to
from deltalog.catalogs.table_uri import named_table, open_table_store
from deltalog.data.write.fit import in_microseconds, is_finer, tell_of_cut
from deltalog.data.write.polars_frames import frame_kind
from deltalog.data.write.source import RereadableRows, is_of_deltalake, open_batches
from deltalog.errors import InvalidInputError, SchemaMismatchError, TableNotFoundError
from deltalog.expressions.coercion import FINE_MOMENTS
from deltalog.expressions.nodes import Cast, Column
from deltalog.log.branches import is_valid_name, on_named_branch
from deltalog.log.context import utc_context
from deltalog.operations.changes.assign import Assignments, Scope
from deltalog.operations.engine import Engine, LocalEngine
from deltalog.query.duckdb import connect_duckdb, with_schema
from deltalog.query.lexer import split
from deltalog.query.names import QualifiedName
from deltalog.query.native import EVERYTHING, TableRead
from deltalog.query.running import query_translated
from deltalog.query.tables import (
    at_version,
    changes_of,
    check_looked_into,
    duckdb_for,
    explain_read,
    rows_for,
    select,
    spelled_as_tables,
    telling_rows,
)
from deltalog.query.translate import TableChangesCall, bound, translated
from deltalog.schema import ArrayType, Field, MapType, StructType, find_field, from_arrow_schema
from deltalog.schema.arrow import type_of_query, with_query_type
from deltalog.schema.conform import conform_array
from deltalog.schema.evolve import merge_schemas
from deltalog.schema.primitives.moments import has_nanoseconds
from deltalog.schema.types import INTEGER
from deltalog.statements.catalog_names import CatalogNames
from deltalog.statements.local_rows import OnceRows, local_rows
from deltalog.statements.reader import resolved
from deltalog.statements.statement import Query, absent_partitions, advice_on_columns
from deltalog.table import DeltaTable
from deltalog.table.creating import TablePlace
from deltalog.table.delta_table import from_deltalake
from deltalog.transaction import CommitOptions
from deltalog.transaction.properties import USUAL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog.catalogs.protocol import CatalogTable
    from deltalog.expressions import Expression
    from deltalog.operations.write import Write
    from deltalog.query.tables import SelectionScan
    from deltalog.schema import DataType
    from deltalog.statements.statement import Qualifiers, Session, SqlCondition
    from deltalog.storage.fsspec_store import StorageOptions


class LocalSession:
    """Session that runs statements in this process; see `Session`.

    Args:
        tables: name → `DeltaTable`, location of a table, or rows that `write_deltalake` accepts.
        catalogs: the catalogs in which further names are searched.
        storage_options: options for tables that a statement names by location.
        settings: the settings of DuckDB: name → value.
    """

    def __init__(
        self,
        tables: Mapping[str, Any] | None = None,
        *,
        catalogs: CatalogNames | None = None,
        storage_options: StorageOptions | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.namespaces: CatalogNames = catalogs or CatalogNames(None, None)
        self._storage_options = storage_options
        self._own_database = connect_duckdb(settings) if settings else None
        self._registered: dict[tuple[str, ...], tuple[QualifiedName, Any]] = {}
        # The names that the user has registered; statements have created the others.
        self._passed: set[tuple[str, ...]] = set()
        self.engine: Engine = LocalEngine()
        self.options: CommitOptions = USUAL
        self.enforces_retention = True
        # The tables that the current statement has opened, each at one version, and the roots of
        # the tables that its queries have read.
        self._seen: dict[tuple[str, ...], DeltaTable] = {}
        self._read: set[str] = set()
        # The locations in `tables` that were opened since `begin`.
        self._opened: set[tuple[str, ...]] = set()
        if tables is not None and not isinstance(tables, Mapping):
            raise InvalidInputError(
                f"cannot connect to {tables!r}: expected a dictionary, name to table, such as "
                "{'t': DeltaTable('/path')}; catalog= takes a directory of tables"
            )
        for name, rows in (tables or {}).items():
            self.register(name, rows)

    def register(self, name: str, rows: Any) -> None:
        """Register a table or other rows under a name."""
        parts = QualifiedName.parse(name)
        if isinstance(rows, str | PurePath):
            rows = DeltaTable(rows, storage_options=self._storage_options)
            self._opened.add(parts.key)
        elif is_of_deltalake(rows):
            rows = from_deltalake(rows)
        elif not isinstance(rows, DeltaTable):
            rows = local_rows(name, rows)
        self._registered[parts.key] = parts, rows
        self._passed.add(parts.key)

    def registered_names(self) -> list[str]:
        """Return the names that are registered for the session."""
        return [str(name) for name, _ in self._registered.values()]

    def begin(self) -> None:
        """Make the next statement use the latest versions of its tables."""
        self._seen.clear()
        self._read.clear()
        self._opened.clear()

    # --- tables by name

    def find(self, name: QualifiedName) -> DeltaTable | None:
        """Return the table with this name; None if the name is unknown."""
        key = name.key if name.location is None else ("", name.location)
        if key not in self._seen:
            found = self._newest(name)
            if found is None:
                return None
            self._seen[key] = found
        return at_version(self._seen[key], name.known_version)

    def _newest(self, name: QualifiedName) -> DeltaTable | None:
        if name.location is not None:
            if refusal := name.refusal:
                raise InvalidInputError(f"cannot use the table {name}: {refusal}")
            named = named_table(name.location, self._storage_options)
            if named is not None:
                return DeltaTable(named) if named.is_delta_table() else None
            store, at = open_table_store(name.location, self._storage_options, None)
            table = DeltaTable.if_any(utc_context(store))
            if table is not None and at is not None:
                table.load_as_version(at)
            return table
        bare = replace(name, version=None)
        if name.key not in self._registered:
            return self._branch(bare) or self.namespaces.find(bare)
        _, found = self._registered[name.key]
        if not isinstance(found, DeltaTable):
            return None
        if name.key not in self._opened and not found.is_pinned:
            found.update_incremental()
        return found

    def _branch(self, name: QualifiedName) -> DeltaTable | None:
        """Return a branch by its name, such as `table@branch`; None for other names."""
        *schema, last = name.parts
        head, _, branch = last.rpartition("@")
        table = (
            self.find(QualifiedName((*schema, head))) if head and is_valid_name(branch) else None
        )
        if table is None:
            return None
        return DeltaTable.from_context(on_named_branch(table.snapshot.context, branch))

    def has_read(self, table: DeltaTable) -> bool:
        """Return whether a query of this statement has read the table at its current version."""
        return table.table_uri in self._read

    def open(self, name: QualifiedName) -> DeltaTable:
        """Return the table with this name, at the version that the name contains."""
        found = self.find(name)
        if found is not None:
            return found
        if name.key in self._registered:
            raise InvalidInputError(
                f"cannot use {name} as a Delta table: it was registered as other rows; statements "
                "that change rows need a DeltaTable: pass DeltaTable(location)"
            )
        if name.location is not None:
            place = name.location if "://" in name.location else Path(name.location).absolute()
            raise TableNotFoundError(
                f"cannot find the table {name}: expected a Delta table, found none at {place}"
            )
        absence = self.namespaces.absence(name)
        if absence is not None:
            raise TableNotFoundError(f"cannot find the table {name}: {absence}")
        if advice := self.namespaces.advice(name):
            raise TableNotFoundError(f"cannot find the table {name}: {advice}")
        own_names = [str(own) for own, _ in self._registered.values()]
        if refusal := name.refusal:
            raise TableNotFoundError(f"cannot find the table {name}: {refusal}")
        close = get_close_matches(str(name), own_names, 1)
        known = ", ".join(own_names) or "none"
        passed = (
            ""
            if close or "/" in name.parts[-1]
            else "pass it, as in sql(query, {0}=table), connect({{'{0}': table}}) or deltalog sql "
            "-t {0}=LOCATION; ".format(name.parts[-1])
        )
        raise TableNotFoundError(
            f"cannot find the table {name}: it is not one of the registered tables ({known}); "
            f"{f'did you mean {close[0]}? ' if close else ''}"
            f"{passed}to use a table without a name, write its location: delta.`/path`"
        )

    def place(self, name: QualifiedName, location: str | None) -> TablePlace:
        """Return the location of a new table."""
        known = self._registered.get(name.key)
        if known is None:
            kept = self.namespaces.place(replace(name, version=None), location)
            if kept is not None:
                return kept
        where = location or name.location
        if where is not None:
            return TablePlace.of(where, self._storage_options)
        if known is not None and isinstance(known[1], DeltaTable):
            return TablePlace(context=known[1].snapshot.context)
        advice = self.namespaces.advice(name)
        raise InvalidInputError(
            f"cannot choose a location for the table {name}: "
            + (f"{advice}; or " if advice else "it is in no catalog; ")
            + "set its LOCATION, or use the name delta.`/path`"
        )

    def note(self, name: QualifiedName, table: DeltaTable) -> None:
        """Register a table under its name."""
        self._seen.clear()
        is_kept = name.key not in self._registered and self.namespaces.keeps(name)
        if name.location is None and not is_kept:
            bare = replace(name, version=None)
            self._registered[bare.key] = bare, table

    def forget(self, name: QualifiedName) -> bool:
        """Remove the name of a table. If the table is in no catalog, its files are not deleted.

        Raises:
            InvalidInputError: the user has given the table this name for the session.
        """
        self._seen.clear()
        if name.key in self._passed:
            _, rows = self._registered[name.key]
            problem = "is a name of rows for this session only, which needs no DROP TABLE"
            if isinstance(rows, DeltaTable):
                problem = (
                    f"is a name for this session only, of the table {rows.table_uri}; delete the "
                    "table's files with the store's own tools, or its rows by TRUNCATE TABLE"
                )
            raise InvalidInputError(f"cannot drop {name}: it {problem}")
        if name.key not in self._registered:
            return self.namespaces.forget(name)
        del self._registered[name.key]
        return True

    def rename(self, name: QualifiedName, to: QualifiedName) -> None:
        """Rename a table."""
        table = self.open(name)
        if name.key not in self._registered:
            self._seen.clear()
            self.namespaces.rename(replace(name, version=None), to)
            return
        if to.key in self._registered:
            raise InvalidInputError(f"cannot rename {name} to {to}: that name is taken")
        if name.key in self._passed:
            raise InvalidInputError(
                f"cannot rename {name} to {to}: it is a name for this session only, of the table "
                f"{table.table_uri}; register the table with the new name, as in sql(query, "
                f"{to.parts[-1]}=table)"
            )
        self.forget(name)
        self.note(to, table)

    def relocate(self, name: QualifiedName, location: str) -> None:
        """Set the location of a name."""
        self.open(name)
        if name.key not in self._registered:
            self._seen.clear()
            self.namespaces.relocate(replace(name, version=None), location)
            return
        self.note(name, DeltaTable(location, storage_options=self._storage_options))

    def tables(self, schema: Sequence[str]) -> Sequence[QualifiedName]:
        """Return the tables of a schema: registered tables, and tables in a catalog."""
        wanted = path_key(schema)
        own = [name for name, _ in self._registered.values() if name.key[:-1] == wanted]
        return [*own, *self.namespaces.tables(schema, needs_schema=not own)]

    def entry(self, name: QualifiedName) -> CatalogTable | None:
        """Return a table's entry in its catalog; None if no catalog is responsible for the name."""
        return None if name.key in self._registered else self.namespaces.entry(name)

    # --- rows

    def select(self, query: Query) -> pa.RecordBatchReader:
        """Return the rows of a query as a stream."""
        if '"' in query.text:
            self._warn_of_quotes(query)
        selected = self._selected(query)
        return self._answered(query, "") if selected is None else selected.to_reader()

    def _warn_of_quotes(self, query: Query) -> None:
        """Log strings in double quotes that are names of columns, as in other dialects."""
        words = split(query.text)
        strings = {word.text[1:-1] for word in words if word.text[:1] == '"'}
        for reference in translated(query.text).tables.values() if strings else ():
            table = self._table_of(bound(reference, query.parameters))
            names = () if table is None else table.snapshot.configuration.schema.names
            for name in strings.intersection(names):
                _logger.warning('"%s" is a string, as in Spark; the column is `%s`', name, name)

    def expression(
        self,
        given: SqlCondition,
        columns: Sequence[str] = (),
        qualifiers: Qualifiers = (),
        *,
        keeps_last: bool = False,
    ) -> Expression:
        """Return a condition as an expression, with results in place of its queries."""
        del qualifiers, keeps_last
        return resolved(self.values, given, columns)

    def known_part(self, condition: Any, table: DeltaTable) -> Expression | None:
        """Return the part of a condition that can prune files: here, the whole condition."""
        del table
        found: Expression | None = condition
        return found

    def replacing(self, write: Write, table: DeltaTable) -> Write:
        """Return the operation unchanged, because it evaluates the predicate itself."""
        del table
        return write

    def values(self, query: Query) -> pa.Table:
        """Return all rows of a query that is part of a condition."""
        return self.select(query).read_all()

    def source(
        self,
        rows: Query | QualifiedName,
        *,
        target: QualifiedName | None = None,
        alias: str | None = None,
    ) -> Any:
        """Return the rows of a query or a table in a form that the local engine can open."""
        del alias  # not needed, because the operation contains the alias
        if isinstance(rows, QualifiedName):
            return telling_rows(self._rows_of(rows, is_native=False))
        if target is not None and self._reads(rows, target):
            return open_batches(with_integer_types(self.select(rows)), is_new=True)
        return RowsOfQuery(self, rows)

    def columns(self, source: Any) -> Sequence[str]:
        """Return the column names of a result of `source`."""
        rows = source.opened() if isinstance(source, RereadableRows) else source
        if frame_kind(rows) or not isinstance(getattr(rows, "schema", None), pa.Schema):
            rows = open_batches(rows)  # the source is, for example, a dataframe
        found: list[str] = rows.schema.names
        return found

    def insertable(
        self,
        query: Query,
        table: DeltaTable,
        *,
        columns: Sequence[str] | None,
        constants: Mapping[str, Expression],
        target: QualifiedName,
        evolves: bool,
    ) -> Any:
        """Return the rows of a query, cast to the columns and types of a table."""
        fitted = FittedRows(
            self.source(query, target=target), table, columns, constants, evolves=evolves
        )
        return fitted if not self._reads(query, target) else open_batches(fitted)

    def explain(self, query: Query) -> str:
        """Return the plan of the scan if the query is only a scan; otherwise DuckDB's plan."""
        selected = self._selected(query)
        if selected is not None:
            return str(selected.scan.explain())
        rows = self._answered(query, "EXPLAIN ")
        lines = [str(text) for text in rows.read_all().column(1).to_pylist()]
        found = translated(query.text)
        for key, reference in found.tables.items():
            table = self._table_of(bound(reference, query.parameters))
            if table is not None:
                read = explain_read(table, found.reads[key], query.parameters)
                lines.append(f"{table.table_uri}: {'; '.join(read)}")
        return "\n".join(lines)

    def _table_of(self, name: QualifiedName | TableChangesCall) -> DeltaTable | None:
        """Return the Delta table of a name in a query; None for other rows and for changes."""
        if isinstance(name, TableChangesCall) or self._own_database is not None:
            return None
        _, registered = self._registered.get(name.key, (None, None))
        return self.open(name) if isinstance(registered, DeltaTable | None) else None

    def _selected(self, query: Query) -> SelectionScan | None:
        """Return the scan that answers a query; None if the query needs DuckDB."""
        found, given = translated(query.text), query.parameters
        if found.selection is None:
            return None
        (reference,) = found.tables.values()
        name = bound(reference, given)
        _, registered = self._registered.get(getattr(name, "key", ()), (None, None))
        if isinstance(name, TableChangesCall) or not isinstance(registered, DeltaTable | None):
            return None
        table = self.open(name)
        selected = select(table, found.selection, given, shown=query.text)
        if selected is not None and name.known_version is None:
            self._read.add(table.table_uri)
        return selected

    def _answered(self, query: Query, prefix: str) -> pa.RecordBatchReader:
        found, given = translated(query.text), query.parameters
        tables = {
            name: self._rows_of(bound(reference, given), found.reads[name], given)
            for name, reference in found.tables.items()
        }
        database = self._own_database or duckdb_for(tables.values())
        found = spelled_as_tables(query.text, found, tables)
        return query_translated(
            database, found, tables, given,
            prefix=prefix, shown=query.text, is_of_values=query.is_of_values,
        )  # fmt: skip

    def _rows_of(
        self,
        name: QualifiedName | TableChangesCall,
        read: TableRead = EVERYTHING,
        parameters: Mapping[str, object] | None = None,
        *,
        is_native: bool = True,
    ) -> Any:
        """Return the rows of a table of a query, in a form that DuckDB can read.

        Args:
            name: the table.
            read: the rows and columns that the query needs.
            parameters: the parameters of the query.
            is_native: whether DuckDB reads the rows, and may open the table's files.
        """
        if isinstance(name, TableChangesCall):
            table = self.open(name.table)
            check_looked_into(table, read)
            return changes_of(table, name)
        _, found = self._registered.get(name.key, (None, None))
        if isinstance(found, OnceRows):
            return found.taken()
        if found is not None and not isinstance(found, DeltaTable):
            return found
        table = self.open(name)
        if name.known_version is None:
            self._read.add(table.table_uri)
        is_native = is_native and self._own_database is None
        return rows_for(table, read, parameters or {}, is_native=is_native)

    def _reads(self, query: Query, target: QualifiedName) -> bool:
        """Return whether a query reads the table `target`, at any version."""
        own = self.find(target)
        roots = set() if own is None else {own.table_uri}
        for name in translated(query.text).tables.values():
            bare = name.table if isinstance(name, TableChangesCall) else name
            found = self.find(replace(bare, version=None))
            if found is not None and found.table_uri in roots:
                return True
        return False


# --- rows for operations: from a query, from a stream, or cast to the types of a table


_logger = logging.getLogger("deltalog.statements")


@dataclass(frozen=True, slots=True)
class RowsOfQuery(RereadableRows):
    """The rows of a query. The query runs again each time the rows are opened."""

    session: Session
    query: Query

    def opened(self) -> pa.RecordBatchReader:
        """Run the query, and return its rows."""
        return with_integer_types(self.session.select(self.query))


@contextmanager
def _naming_positions(given: Sequence[str], columns: Sequence[str] | None) -> Iterator[None]:
    """Say in errors of values that columns are matched by position, if names suggest otherwise."""
    try:
        yield
    except InvalidInputError as error:
        advice = _advice_on_positions(given, columns)
        if not advice:
            raise
        raise error.with_message(f"{error.args[0]}{advice}") from error.__cause__


def _advice_on_positions(given: Sequence[str], columns: Sequence[str] | None) -> str:
    """Return advice if a query's column has the name of another than its table's column."""
    own = {name_key(name) for name in columns or ()}
    for name, column in zip(given, columns or (), strict=False):
        if name_key(name) != name_key(column) and name_key(name) in own:
            return (
                f"; the columns are matched by position, so {name!r} of the query is stored in "
                f"{column!r}: INSERT INTO t BY NAME SELECT … matches them by name"
            )
    return ""


def with_integer_types(reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Mark whole numbers in the result of a query as numbers, so that MERGE does not read months.

    Arrow has no separate type for months, so whole numbers of a dataframe may be months.
    """
    schema = reader.schema
    for place, part in enumerate(schema):
        if part.type == pa.int32() and type_of_query(part) is None:
            schema = schema.set(place, with_query_type(part, INTEGER))
    return with_schema(reader, schema)


@dataclass(frozen=True, slots=True)
class FittedRows(RereadableRows):
    """Rows that are cast to the columns and types of a table, by Spark's rules for assignments.

    Args:
        rows: the rows, in any form that `open_batches` accepts.
        table: the table that determines the columns and types.
        columns: the columns of the table, in the order of the rows' columns; None matches columns
            by name.
        constants: the name of a column → the value of the column in every row.
        evolves: whether the rows may contain columns and fields that the table lacks. They are
            matched by name, or, by position, they follow the columns of the table.
    """

    rows: Any
    table: DeltaTable
    columns: Sequence[str] | None
    constants: Mapping[str, Expression]
    evolves: bool

    def opened(self) -> pa.RecordBatchReader:
        """Return a reader of the rows after the cast.

        Raises:
            SchemaMismatchError: the columns of the rows do not match the columns of the table.
        """
        reader = open_batches(self.rows)
        source = pa.schema(
            [field.with_name(f"c{place}") for place, field in enumerate(reader.schema)]
        )
        values, extra = self._placed(reader.schema.names)
        schema = self.table.snapshot.configuration.schema
        if self.evolves:
            schema = self._evolved_schema(source, values)
        types = self._types_of(source, schema, values)
        cut = _cut_columns(source, types)
        names, columns = reader.schema.names, self.columns
        scope = Scope.of_table(types, self.table.snapshot.context.session)
        # These rows are new, so they may contain values of identity columns.
        found = Assignments(
            schema,
            {
                name: self._assigned(scope, value, source, names, find_field(schema, (name,)))
                for name, value in values.items()
            },
        )
        fields = [*found.new_schema(), *(reader.schema.field(place) for place in extra)]
        shown = pa.schema(fields)

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in reader:
                held = batch.columns
                for place in cut:
                    if is_finer(held[place]):
                        tell_of_cut(names[place])
                    held[place] = in_microseconds(held[place])
                with _naming_positions(names, columns):
                    fitted = found.compute_new(pa.RecordBatch.from_arrays(held, source.names))
                made = [*fitted.columns, *(batch.column(place) for place in extra)]
                # Values in nested columns may still have nanoseconds that the table cannot store.
                arrays = [
                    conform_array(column, field.type, column=field.name)
                    for column, field in zip(made, shown, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=shown)

        return pa.RecordBatchReader.from_batches(shown, batches())

    def _types_of(
        self, source: pa.Schema, target: StructType, values: Mapping[str, Any]
    ) -> StructType:
        """Return the types of a query's columns. Nanoseconds remain if the table stores them."""
        wanted = {
            value.path[0]: find_field(target, (name,)).type
            for name, value in values.items()
            if isinstance(value, Column)
        }
        plain = from_arrow_schema(source, declared=True)
        fine = from_arrow_schema(source, declared=True, fine=True)
        return StructType(
            [
                other if wanted.get(own.name) in FINE_MOMENTS else own
                for own, other in zip(plain, fine, strict=True)
            ]
        )

    def _placed(self, given: Sequence[str]) -> tuple[dict[str, Any], list[int]]:
        """Return the value of each column of the table, and the positions of additional columns.

        Raises:
            SchemaMismatchError: the columns of the rows do not match the columns of the table.
        """
        known = {name_key(name): name for name in self.table.snapshot.configuration.schema.names}
        values: dict[str, Any] = {}
        extra: list[int] = []
        for place, name in enumerate(self._columns_of(given)):
            if name_key(name) in known:
                values[known[name_key(name)]] = Column((f"c{place}",))
            elif self.evolves and (self.columns is None or place >= len(self.columns)):
                extra.append(place)
            else:
                raise SchemaMismatchError(
                    f"cannot insert into {self.table.table_uri}: it has no column {name!r}"
                    f"{similar_to(name, known.values())}"
                )
        for name, value in self.constants.items():
            values[known.get(name_key(name), name)] = value
        return values | absent_partitions(self.table, values), extra

    def _columns_of(self, given: Sequence[str]) -> Sequence[str]:
        """Return the column of the table for each column of the rows, matched by position.

        Raises:
            SchemaMismatchError: the number of columns is wrong, or an additional column has the
                name of a column of the table.
        """
        columns = self.columns
        if columns is None:
            return given
        if len(columns) != len(given) and not (self.evolves and len(columns) < len(given)):
            raise SchemaMismatchError(
                f"cannot insert into {self.table.table_uri}: expected "
                f"{counted(len(columns), 'column')} ({', '.join(columns)}), found {len(given)} "
                f"({', '.join(given)}){advice_on_columns(self.table, columns, len(given))}"
            )
        own = {name_key(name) for name in self.table.snapshot.configuration.schema.names}
        new = given[len(columns) :]
        for name in new:
            if name_key(name) in own:
                raise SchemaMismatchError(
                    f"cannot insert into {self.table.table_uri}: columns are matched by "
                    f"position, and the extra column {name!r} has the name of a column of the "
                    "table; rename it, or use BY NAME"
                )
            own.add(name_key(name))
        return [*columns, *new]

    def _evolved_schema(self, source: pa.Schema, values: Mapping[str, Any]) -> StructType:
        """Return the table's schema with the additional fields that structs of the rows contain."""
        given = from_arrow_schema(source, declared=True)
        fields: list[Field] = []
        for field in self.table.snapshot.configuration.schema:
            value = values.get(field.name)
            if isinstance(value, Column):
                kind = find_field(given, value.path).type
                if self.columns is None:
                    own, theirs = StructType([field]), StructType([Field(field.name, kind)])
                    fields += merge_schemas(own, theirs, casts=True)
                    continue
                field = replace(field, type=_evolved(kind, field.type, field.name))  # noqa: PLW2901
            fields.append(field)
        return StructType(fields)

    def _assigned(
        self, scope: Scope, value: Any, source: pa.Schema, names: Sequence[str], field: Field
    ) -> Any:
        """Return a new value of a column; its errors name the column of the rows."""
        try:
            return scope.value(self._cast(value, source, field), field, field.name)
        except InvalidInputError as error:
            if not isinstance(value, Column):
                raise
            given = names[source.get_field_index(value.path[0])]
            text = str(error).replace(f"CAST({value.path[0]} AS ", f"CAST({given} AS ")
            place = "; the columns are matched by position" if self.columns is not None else ""
            place = _advice_on_positions(names, self.columns) or place
            raise error.with_message(
                f"cannot insert into {self.table.table_uri}: {text}{place}"
            ) from error

    def _cast(self, value: Any, source: pa.Schema, field: Field) -> Any:
        """Cast a nested value. Its fields are matched by position if the columns are."""
        if not isinstance(value, Column):
            return value
        target = field.type
        given = from_arrow_schema(source, declared=True).fields_named(value.path[0])[0].type
        is_nested = isinstance(given, StructType | ArrayType | MapType)
        if self.columns is None:
            own = find_field(self.table.snapshot.configuration.schema, (field.name,))
            _check_order(given, own.type, self.table.table_uri, field.name)
            return value
        return Cast(value, target) if is_nested and given != target else value


def _evolved(given: DataType, target: DataType, path: str) -> DataType:
    """Return the type of a column with the additional fields that structs of the rows contain."""
    match given, target:
        case StructType(), StructType():
            pairs = zip(given, target, strict=False)
            known = [
                replace(own, type=_evolved(one.type, own.type, f"{path}.{own.name}"))
                for one, own in pairs
            ]
            own_names = {name_key(field.name) for field in target}
            new = [replace(field, nullable=True) for field in given.fields[len(target) :]]
            for field in new:
                if name_key(field.name) in own_names:
                    raise SchemaMismatchError(
                        f"cannot insert: fields of structs are matched by position, and the extra "
                        f"field {field.name!r} has the name of a field of {path!r}; rename it, "
                        "or use BY NAME"
                    )
            return StructType([*known, *target.fields[len(known) :], *new])
        case ArrayType(), ArrayType():
            element = _evolved(given.element_type, target.element_type, f"{path}.element")
            return replace(target, element_type=element)
        case MapType(), MapType():
            return replace(
                target,
                key_type=_evolved(given.key_type, target.key_type, f"{path}.key"),
                value_type=_evolved(given.value_type, target.value_type, f"{path}.value"),
            )
    return target


def _cut_columns(source: pa.Schema, types: StructType) -> list[int]:
    """Return the positions of columns that have nanoseconds, but whose target columns do not."""
    return [
        place
        for place, (field, kind) in enumerate(zip(source, types, strict=True))
        if has_nanoseconds(field.type) and kind.type not in FINE_MOMENTS
    ]


def _check_order(given: DataType, target: DataType, table: str, path: str) -> None:
    """Refuse a struct whose fields are in another order than in the table.

    Delta Spark would match the fields by position, even in INSERT BY NAME, and so exchange values.
    """
    match given, target:
        case StructType(), StructType():
            names = [[name_key(field.name) for field in one] for one in (given, target)]
            if names[0] != names[1] and sorted(names[0]) == sorted(names[1]):
                raise InvalidInputError(
                    f"cannot insert into {table}: the fields of {path!r} are in the order "
                    f"{names[0]}, but in the table it is {names[1]}; use the table's order"
                )
            known = {name_key(field.name): field for field in target}
            for field in given:
                if name_key(field.name) in known:
                    other = known[name_key(field.name)].type
                    _check_order(field.type, other, table, f"{path}.{field.name}")
        case ArrayType(), ArrayType():
            _check_order(given.element_type, target.element_type, table, path)
        case MapType(), MapType():
            _check_order(given.value_type, target.value_type, table, path)
        case _:
            pass
