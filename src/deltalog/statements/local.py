"""The session of this process: names of tables, and DuckDB for queries.

Protocol: none
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltalog.engine import LocalEngine
from deltalog.errors import InvalidInputError, TableNotFoundError
from deltalog.locations import named_table
from deltalog.log.listing import has_table
from deltalog.names import path_key
from deltalog.query.duckdb import connect_duckdb, shared_duckdb
from deltalog.query.names import QualifiedName
from deltalog.query.pruning import EVERYTHING, TableRead
from deltalog.query.running import query_translated
from deltalog.query.spelled import spelled_as_tables
from deltalog.query.translate import TableChangesCall, bound, translated
from deltalog.statements.catalog_names import CatalogNames
from deltalog.statements.conditions import resolved
from deltalog.statements.query_rows import FittedRows, OnceRows, RowsOfQuery, told_numbers
from deltalog.statements.slices import Query
from deltalog.storage import open_store
from deltalog.table import DeltaTable
from deltalog.table.creating import TablePlace
from deltalog.table.queries import (
    at_version,
    changes_of,
    check_looked_into,
    rows_for,
    select,
    telling_rows,
)
from deltalog.write.polars import exportable
from deltalog.write.source import RereadableRows, open_batches

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.catalogs.protocol import CatalogTable
    from deltalog.engine import Engine
    from deltalog.expressions import Expression
    from deltalog.statements.slices import SqlCondition
    from deltalog.statements.statement import NewNames, Qualifiers
    from deltalog.storage.fsspec_store import StorageOptions
    from deltalog.table.queries import SelectionScan
    from deltalog.verbs.write import Write


class LocalSession:
    """Runs statements in this process.

    Args:
        tables: name → a `DeltaTable`, its location, or rows that `write_deltalake` takes.
        catalogs: keep the names of other tables.
        storage_options: of tables that are named by their location.
        settings: of DuckDB.
    """

    def __init__(
        self,
        tables: Mapping[str, Any] | None = None,
        *,
        catalogs: CatalogNames | None = None,
        storage_options: StorageOptions | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._catalogs = catalogs or CatalogNames(None, None)
        self._storage_options = storage_options
        self._own_database = connect_duckdb(settings) if settings else None
        self._registered: dict[tuple[str, ...], tuple[QualifiedName, Any]] = {}
        self.engine: Engine = LocalEngine()
        self.enforces_retention = True
        # Tables as this statement sees them, each at one version; and those that queries read.
        self._seen: dict[tuple[str, ...], DeltaTable] = {}
        self._read: set[str] = set()
        for name, rows in (tables or {}).items():
            self.register(name, rows)

    def register(self, name: str, rows: Any) -> None:
        """Make a table or other rows known under a name."""
        parts = QualifiedName.parse(name)
        if isinstance(rows, str | PurePath):
            rows = DeltaTable(rows, storage_options=self._storage_options)
        elif isinstance(rows, list):
            rows = open_batches(rows).read_all()
        elif isinstance(rows, pa.RecordBatchReader):
            rows = OnceRows(name, rows)
        else:
            rows = exportable(rows)
        self._registered[parts.key] = parts, rows

    def begin(self) -> None:
        """Let the next statement see the newest versions of its tables."""
        self._seen.clear()
        self._read.clear()

    # --- tables by their names

    def find(self, name: QualifiedName) -> DeltaTable | None:
        """Return the table of a name; None if the name is not known."""
        key = name.key if name.location is None else ("", name.location)
        if key not in self._seen:
            found = self._newest(name)
            if found is None:
                return None
            self._seen[key] = found
        return at_version(self._seen[key], name.known_version)

    def _newest(self, name: QualifiedName) -> DeltaTable | None:
        if name.location is not None:
            named = named_table(name.location, self._storage_options)
            if named is not None:
                return DeltaTable(named) if named.is_delta_table() else None
            store = open_store(name.location, self._storage_options)
            return DeltaTable(store) if has_table(store) else None
        bare = replace(name, version=None)
        if name.key not in self._registered:
            return self._catalogs.find(bare)
        _, found = self._registered[name.key]
        if not isinstance(found, DeltaTable):
            return None
        found.update_incremental(same_table=True)
        return found

    def has_read(self, table: DeltaTable) -> bool:
        """Whether a query of this statement has read the version that a table shows."""
        return table.table_uri in self._read

    def open(self, name: QualifiedName) -> DeltaTable:
        """Return the table of a name, at the version that it names."""
        found = self.find(name)
        if found is not None:
            return found
        if name.key in self._registered:
            raise InvalidInputError(
                f"cannot use {name} as a Delta table: it was registered as rows of another kind"
            )
        absence = self._catalogs.absence(name)
        if absence is not None:
            raise TableNotFoundError(f"cannot find the table {name}: {absence}")
        known = ", ".join(str(own) for own, _ in self._registered.values()) or "none"
        raise TableNotFoundError(
            f"cannot find the table {name}; registered are: {known}; a table without a name is "
            "called by its location: delta.`/path`"
        )

    def place(self, name: QualifiedName, location: str | None) -> TablePlace:
        """Return where a new table goes."""
        known = self._registered.get(name.key)
        if known is None:
            kept = self._catalogs.place(replace(name, version=None), location)
            if kept is not None:
                return kept
        where = location or name.location
        if where is not None:
            return TablePlace.of(where, self._storage_options)
        if known is not None and isinstance(known[1], DeltaTable):
            return TablePlace(context=known[1].snapshot.context)
        raise InvalidInputError(
            f"cannot tell where the table {name} goes: no catalog of this session keeps the name; "
            "give its LOCATION, or name it delta.`/path`"
        )

    def note(self, name: QualifiedName, table: DeltaTable) -> None:
        """Make a table known under its name."""
        self._seen.clear()
        is_kept = name.key not in self._registered and self._catalogs.keeps(name)
        if name.location is None and not is_kept:
            bare = replace(name, version=None)
            self._registered[bare.key] = bare, table

    def forget(self, name: QualifiedName) -> bool:
        """Take a table out of the names; files of a table that no catalog owns stay."""
        self._seen.clear()
        if name.key not in self._registered:
            return self._catalogs.forget(name)
        del self._registered[name.key]
        return True

    def rename(self, name: QualifiedName, to: QualifiedName) -> None:
        """Give a table another name."""
        table = self.open(name)
        if name.key not in self._registered:
            self._seen.clear()
            self._catalogs.rename(replace(name, version=None), to)
            return
        if to.key in self._registered:
            raise InvalidInputError(f"cannot rename {name} to {to}: that name is taken")
        self.forget(name)
        self.note(to, table)

    def relocate(self, name: QualifiedName, location: str) -> None:
        """Let a name mean another location."""
        self.open(name)
        if name.key not in self._registered:
            self._seen.clear()
            self._catalogs.relocate(replace(name, version=None), location)
            return
        self.note(name, DeltaTable(location, storage_options=self._storage_options))

    def tables(self, schema: Sequence[str]) -> Sequence[QualifiedName]:
        """Return the tables of a schema: registered ones, and those that a catalog keeps."""
        wanted = path_key(schema)
        own = [name for name, _ in self._registered.values() if name.key[:-1] == wanted]
        return [*own, *self._catalogs.tables(schema)]

    def entry(self, name: QualifiedName) -> CatalogTable | None:
        """Return what a catalog says of a table; None if no catalog keeps the name."""
        return None if name.key in self._registered else self._catalogs.entry(name)

    def catalogs(self) -> Sequence[str]:
        """Return the catalogs that the session knows."""
        return self._catalogs.catalogs()

    def schemas(self, within: Sequence[str]) -> Sequence[tuple[str, ...]]:
        """Return the schemas of a catalog, without its name."""
        return self._catalogs.schemas(within)

    def create_names(self, names: NewNames) -> None:
        """Make a schema, or a catalog."""
        self._catalogs.create(names)

    def drop_names(
        self, namespace: Sequence[str], *, is_catalog: bool, cascade: bool, may_lack: bool
    ) -> None:
        """Drop a schema, or a catalog."""
        self._seen.clear()
        self._catalogs.drop(namespace, is_catalog=is_catalog, cascade=cascade, may_lack=may_lack)

    def use(self, namespace: Sequence[str], *, is_catalog: bool) -> None:
        """Let shorter names begin with a schema."""
        self._seen.clear()
        self._catalogs.use(namespace, is_catalog=is_catalog)

    # --- rows

    def select(self, query: Query) -> pa.RecordBatchReader:
        """Return the rows of a query as a stream."""
        selected = self._selected(query)
        return self._answered(query, "") if selected is None else selected.to_reader()

    def expression(
        self,
        given: SqlCondition,
        columns: Sequence[str] = (),
        qualifiers: Qualifiers = (),
        *,
        keeps_last: bool = False,
    ) -> Expression:
        """Return the expression of a condition, whose queries are answered."""
        del qualifiers, keeps_last
        return resolved(self.values, given, columns)

    def known_part(self, condition: Any, table: DeltaTable) -> Expression | None:
        """Return the part of a condition by which files are found: all of it."""
        del table
        found: Expression | None = condition
        return found

    def replacing(self, write: Write, table: DeltaTable) -> Write:
        """Return the verb that replaces those rows of a table that match a predicate."""
        del table
        return write

    def values(self, query: Query) -> pa.Table:
        """Return the rows of a query in a condition."""
        return self.select(query).read_all()

    def source(
        self,
        rows: Query | QualifiedName,
        *,
        target: QualifiedName | None = None,
        alias: str | None = None,
    ) -> Any:
        """Return the rows of a query or a table in a form that the engine opens."""
        del alias  # the verb has it
        if isinstance(rows, QualifiedName):
            return telling_rows(self._rows_of(rows))
        if target is not None and self._reads(rows, target):
            return told_numbers(self.select(rows))
        return RowsOfQuery(self, rows)

    def columns(self, source: Any) -> Sequence[str]:
        """Return the names of the columns of what `source` gave."""
        rows = source.opened() if isinstance(source, RereadableRows) else source
        if not isinstance(getattr(rows, "schema", None), pa.Schema):
            rows = open_batches(rows)  # such as a data frame
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
        """Return the rows of a query in the columns and types of a table."""
        fitted = FittedRows(
            self.source(query, target=target), table, columns, constants, evolves=evolves
        )
        return fitted if not self._reads(query, target) else open_batches(fitted)

    def explain(self, query: Query) -> str:
        """Return the plan of a query: that of the scan that it is, or DuckDB's."""
        selected = self._selected(query)
        if selected is not None:
            return str(selected.scan.explain())
        rows = self._answered(query, "EXPLAIN ")
        return "\n".join(str(text) for text in rows.read_all().column(1).to_pylist())

    def _selected(self, query: Query) -> SelectionScan | None:
        """Return the answer of a query that is a scan of a Delta table."""
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
        database = self._own_database or shared_duckdb()
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
    ) -> Any:
        """Return what DuckDB reads for a table of a query."""
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
        return rows_for(table, read, parameters or {})

    def _reads(self, query: Query, target: QualifiedName) -> bool:
        """Whether a query reads a table."""
        own = self.find(target)
        roots = set() if own is None else {own.table_uri}
        for name in translated(query.text).tables.values():
            bare = name.table if isinstance(name, TableChangesCall) else name
            found = self.find(replace(bare, version=None))
            if found is not None and found.table_uri in roots:
                return True
        return False
