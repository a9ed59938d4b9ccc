"""The session of SQL statements that run on a cluster; see `deltalog.statements.Session`.

The session resolves table names, and provides rows as dataframes.

Protocol: none
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame

from deltalog.catalogs.table_uri import named_table
from deltalog.errors import InvalidInputError, TableNotFoundError
from deltalog.expressions.render import quote_text
from deltalog.log.branches import named_root
from deltalog.log.listing import has_table
from deltalog.query.located import located
from deltalog.query.names import QualifiedName
from deltalog.query.tables import at_version
from deltalog.query.translate import TableChangesCall, bound
from deltalog.spark.engine.engine import SparkEngine
from deltalog.spark.reading.by_options import frame_by_options
from deltalog.spark.reading.conditions import as_spark_condition
from deltalog.spark.reading.options import STORAGE_PREFIX
from deltalog.spark.results import forget_table
from deltalog.spark.session.names import (
    catalogs_of,
    find_location,
    note_location,
    shown_by,
    view_location,
)
from deltalog.spark.session.opening import open_latest, session_time_zone
from deltalog.spark.session.settings import enforces_retention, session_settings
from deltalog.spark.session.spark_tables import (
    drop_entry,
    find_entry,
    full_name,
    look_up,
    make_entry,
    rename_entry,
)
from deltalog.spark.session.splicing import TableFrame, foreign_text, spliced
from deltalog.spark.session.types import quoted
from deltalog.spark.session.workers import loaded
from deltalog.spark.table import DeltaTable as SparkTable
from deltalog.spark.writing.frame import NO_PLACE, NamedPlace, place_of_name, replacing_by_spark
from deltalog.spark.writing.writer import fitted
from deltalog.statements.catalog_names import CatalogNames, NamespaceStatement, names_in
from deltalog.statements.create import ConvertStatement, CreateStatement
from deltalog.statements.reader import resolved
from deltalog.statements.statement import Qualifiers, Query, SqlCondition, SqlStatement
from deltalog.storage.options import check_options
from deltalog.table.creating import TablePlace
from deltalog.transaction import CommitOptions

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from deltalog.catalogs.protocol import CatalogTable, NamedTable
    from deltalog.expressions import Expression
    from deltalog.log.context import TableContext
    from deltalog.operations.engine import Engine
    from deltalog.operations.write import Write
    from deltalog.table import DeltaTable


_FORMAT: Final = "deltalog"
_SPARKS: Final = "spark_catalog"
_OWN_FORMATS: Final = frozenset({"delta", "deltalog"})


class ClusterSession:
    """Session of SQL statements that run on a cluster; see `deltalog.statements.Session`.

    Args:
        spark: the session, classic or remote.
        storage_options: credentials and settings for tables that a statement names by location.
        own: the names under which the session has registered deltalog's formats.
        frames: the dataframes that a statement can use: name → dataframe.
    """

    def __init__(
        self,
        spark: SparkSession,
        storage_options: Mapping[str, Any] | None,
        *,
        own: frozenset[str] = _OWN_FORMATS,
        frames: Mapping[str, DataFrame] = MappingProxyType({}),
    ) -> None:
        check_options(storage_options)
        self._frames = {(name,): frame for name, frame in frames.items()}
        self._spark = spark
        self._own = own
        self.namespaces: CatalogNames = catalogs_of(spark).names
        self._storage_options = storage_options
        self.engine: Engine = SparkEngine(spark)
        # The tables that the statement has opened: root location → table.
        self._seen: dict[str, DeltaTable] = {}
        # The root locations of the tables in `_seen` that a query of the statement has also read.
        self._read: set[str] = set()
        self._placed: dict[tuple[str, ...], NamedPlace] = {}
        self._located: dict[tuple[str, ...], str | None] = {}
        self._full: dict[tuple[str, ...], tuple[str, ...]] = {}

    def is_concerned(self, statement: SqlStatement | QualifiedName) -> bool:
        """Return whether the statement, or a query in it, uses a table of deltalog."""
        makes = isinstance(statement, CreateStatement) and statement.clauses.uses_delta
        if makes or isinstance(statement, ConvertStatement):
            return True
        if isinstance(statement, NamespaceStatement):
            is_of_spark = [one.lower() for one in statement.namespace[:1]] == [_SPARKS]
            return not is_of_spark and self.namespaces.keeps_namespace(statement.namespace)
        return any(
            name.format in self._own
            or self.namespaces.keeps(name)
            or self._shown(name) is not None
            or self._location(name) is not None
            for name in names_in(statement)
            if name.key not in self._frames
        )

    def makes(self, statement: CreateStatement) -> bool:
        """Return whether deltalog creates the new table of a statement.

        This depends on the clauses, the name of the table, and the session's default format.
        """
        name = statement.table
        if statement.clauses.uses_delta or name.format in self._own or self.namespaces.keeps(name):
            return True
        return str(self._spark.conf.get("spark.sql.sources.default", "")).lower() in self._own

    @property
    def options(self) -> CommitOptions:
        """The options of commits that follow from the settings of the Spark session."""
        settings = session_settings(self._spark)
        return CommitOptions(properties=settings.commit_properties(), hooks=settings.hooks)

    def begin(self) -> None:
        """Make the statement that runs next, or again, use the latest versions of its tables."""
        self._seen.clear()
        self._read.clear()

    @property
    def enforces_retention(self) -> bool:
        """Whether VACUUM refuses a retention that is shorter than the table's retention."""
        return enforces_retention(self._spark)

    def full_name(self, name: QualifiedName) -> QualifiedName:
        """Return a table's full name in Spark's catalog; other names are returned unchanged."""
        if self._location(name) is None or name.location is not None:
            return name
        full = self._full.get(name.key, name.key)
        return replace(name, parts=(*full[:-1], name.parts[-1]))

    # --- tables by name

    def find(self, name: QualifiedName) -> DeltaTable | None:
        """Return the table with this name; None if there is none."""
        found = self._table(name)
        if found is None:
            return None
        # Open each table only once, so that all parts of a statement use the same version.
        core = self._seen.setdefault(found.core.table_uri, found.core)
        return at_version(core, name.known_version)

    def _table(self, name: QualifiedName) -> SparkTable | None:
        if (shown := self._shown(name)) is not None:
            return SparkTable.from_context(self._spark, shown)
        named = self._named(name)
        if named is not None:
            if named.catalog.find(named.name) is None:
                return None
            return SparkTable.from_context(self._spark, named.catalog.open(named.name))
        location = self._location(name)
        context = None if location is None else self._context_at(location)
        return None if context is None else SparkTable.from_context(self._spark, context)

    def _context_at(self, location: str) -> TableContext | None:
        """Return the context of the table at a location; None if there is no table."""
        named = named_table(location, self._storage_options or None)
        if named is not None and named.catalog.find(named.name) is None:
            return None
        zone, options = session_time_zone(self._spark), self._storage_options
        context = open_latest(location, options, doing="open", time_zone=zone)
        return context if has_table(context.store) else None

    def _named(self, name: QualifiedName) -> NamedTable | None:
        """Return a table of the session's catalogs; None if a view of Spark has the name."""
        if self.namespaces.is_empty or self._is_of_spark(name):
            return None
        return self.namespaces.named(replace(name, version=None))

    def _shown(self, name: QualifiedName) -> TableContext | None:
        """Return the table that a temporary view reads if only a catalog can open it."""
        return shown_by(self._spark, name.parts[0]) if len(name.parts) == 1 else None

    def _is_of_spark(self, name: QualifiedName) -> bool:
        return len(name.parts) == 1 and self._spark.catalog.tableExists(quoted(name.parts[0]))

    def open(self, name: QualifiedName) -> DeltaTable:
        """Open a table by name, at the version that the name contains, or at the latest version."""
        found = self.find(name)
        if found is None:
            absence = self.namespaces.absence(name)
            if absence is not None:
                raise TableNotFoundError(f"cannot find the table {name}: {absence}")
            if name.location is not None:
                raise TableNotFoundError(
                    f"cannot find the table {name}: expected a Delta table, found nothing there; "
                    "check the location"
                )
            raise TableNotFoundError(
                f"cannot find the table {name}: no Delta table has this name; to use a table "
                "without a name, write its location: delta.`/path`"
            )
        return found

    def has_read(self, table: DeltaTable) -> bool:
        """Return whether a query of this statement has read this version of the table."""
        return table.table_uri in self._read

    def place(self, name: QualifiedName, location: str | None) -> TablePlace:
        """Return the location of a new table, and its context."""
        bare = replace(name, version=None)
        where, storage = location or self._viewed(bare), self._storage_options or None
        found = place_of_name(self._spark, bare, where, storage)
        if found is None:
            raise InvalidInputError(f"cannot find a location for the table {name}: {NO_PLACE}")
        self._placed[bare.key] = found
        zone = session_time_zone(self._spark)
        return replace(found.place, context=replace(found.place.context, time_zone=zone))

    def _viewed(self, name: QualifiedName) -> str | None:
        """Return the location of the table that a view of deltalog reads; None without a view."""
        return view_location(self._spark, str(name)) or view_location(self._spark, name.parts[-1])

    def note(self, name: QualifiedName, table: DeltaTable) -> None:
        """Register a table under its name, or update the entry.

        The entry is in Spark's catalog if the session has registered a format. Otherwise it is a
        temporary view.
        """
        self._seen.clear()
        self._located.clear()
        if name.location is not None or self.namespaces.keeps(name):
            return
        placed = self._placed.pop(replace(name, version=None).key, None)
        entry = placed.entry if placed else find_entry(self._spark, name)
        if entry is not None:
            make_entry(self._spark, entry, table.snapshot.configuration.schema)
        elif len(name.parts) == 1:
            view = SparkTable.from_context(self._spark, table.snapshot.context)
            view.createOrReplaceTempView(name.parts[0])

    def forget(self, name: QualifiedName) -> bool:
        """Drop a table from its catalog, or drop the view with this name."""
        self._located.clear()
        if self.namespaces.keeps(name):
            return self.namespaces.forget(name)
        return forget_table(self._spark, name, self._storage_options or None)

    def rename(self, name: QualifiedName, to: QualifiedName) -> None:
        """Rename a table in its catalog, or rename the view."""
        self._located.clear()
        if self.namespaces.keeps(name):
            self.namespaces.rename(name, to)
            return
        if find_entry(self._spark, name) is not None:
            rename_entry(self._spark, name, to)
            return
        table = self.open(name)
        self.note(to, table)
        self.forget(name)

    def relocate(self, name: QualifiedName, location: str) -> None:
        """Set the location of a table in its catalog, or of a view."""
        self.open(name)
        if self.namespaces.keeps(name):
            self.namespaces.relocate(name, location)
            return
        entry = find_entry(self._spark, name)
        if entry is not None:
            elsewhere = self.open(QualifiedName(("delta", location)))
            drop_entry(self._spark, name)
            moved = replace(entry, location=location, is_managed=False)
            make_entry(self._spark, moved, elsewhere.snapshot.configuration.schema)
            self._seen.clear()
            self._located.clear()
            return
        self._located.clear()
        note_location(self._spark, name.parts[-1], location)
        self.note(name, self.open(QualifiedName(("delta", location))))

    def tables(self, schema: Sequence[str]) -> Sequence[QualifiedName]:
        """Return the tables of a schema in a catalog of the session or in Spark's catalog."""
        if self.namespaces.keeps_namespace(schema):
            return self.namespaces.tables(schema)
        database = ".".join(schema) or None
        found = self._spark.catalog.listTables(database)
        return [QualifiedName((*(one.namespace or ()), one.name)) for one in found]

    def entry(self, name: QualifiedName) -> CatalogTable | None:
        """Return a table's entry in its catalog; None if no catalog has the name."""
        return self.namespaces.entry(name)

    def select(self, query: Query) -> DataFrame:
        """Return the rows of a query. Dataframes replace deltalog's tables in the query."""
        found = located(query.text)
        frames: dict[str, DataFrame] = {}
        tables: list[TableFrame] = []
        for one in found.tables:
            table = bound(one.table, query.parameters)
            frame = self._frame_of(table, one.options)
            if frame is not None:
                name = f"deltalog_table_{len(frames)}"
                frames[name] = frame
                tables.append(TableFrame(one, name, self._full_name(table)))
        text = spliced(found, tables)
        return self._spark.sql(text, args=dict(query.parameters), **frames)

    def values(self, query: Query) -> pa.Table:
        """Return the rows of a subquery of a condition."""
        return self.select(query).toArrow()

    def expression(
        self,
        given: SqlCondition,
        columns: Sequence[str] = (),
        qualifiers: Qualifiers = (),
        *,
        keeps_last: bool = False,
    ) -> Expression | str:
        """Return a condition as an expression, or as a string if only Spark can evaluate it."""
        if not given.is_foreign:
            return resolved(self.values, given, columns)
        return foreign_text(self.values, given, columns, qualifiers, keeps_last=keeps_last)

    def known_part(self, condition: Any, table: DeltaTable) -> Expression | None:
        """Return the part of a condition that can prune files; None if there is no such part."""
        if condition is None:
            return None
        schema, session = table.snapshot.configuration.schema, table.snapshot.context.session
        found = as_spark_condition(condition, schema, session, by_spark=True)
        return condition if found.is_known else found.pruning

    def replacing(self, write: Write, table: DeltaTable) -> Write:
        """Return the write, prepared so that Spark evaluates the predicate if deltalog cannot."""
        return replacing_by_spark(write, table)

    def explain(self, query: Query) -> str:
        """Return Spark's plan of a query, as a string."""
        text = "".join(str(row[0]) for row in self._explained(query))
        return text.strip()

    def _explained(self, query: Query) -> Any:
        frame = self.select(query)
        frame.createOrReplaceTempView("deltalog_explained")
        try:
            return self._spark.sql("EXPLAIN EXTENDED SELECT * FROM deltalog_explained").collect()
        finally:
            self._spark.catalog.dropTempView("deltalog_explained")

    def source(
        self,
        rows: Query | QualifiedName,
        *,
        target: QualifiedName | None = None,
        alias: str | None = None,
    ) -> DataFrame:
        """Return the rows of a query or table as a dataframe."""
        del target  # unused, because `_frame_of` finds the version that the statement has opened
        if isinstance(rows, QualifiedName):
            version = "" if rows.version is None else f" VERSION AS OF {rows.version}"
            if isinstance(rows.version, str):
                version = f" TIMESTAMP AS OF {quote_text(rows.version)}"
            rows = Query(f"SELECT * FROM {rows}{version}")  # noqa: S608  # the name is quoted
        found = self.select(rows)
        return found if alias is None else found.alias(alias)

    def columns(self, source: DataFrame) -> Sequence[str]:
        """Return the names of a dataframe's columns."""
        return source.columns

    def insertable(
        self,
        query: Query,
        table: DeltaTable,
        *,
        columns: Sequence[str] | None,
        constants: Mapping[str, Expression],
        target: QualifiedName,
        evolves: bool,
    ) -> DataFrame:
        """Return the rows of a query with the columns and types of the target table."""
        return fitted(
            self._spark,
            self.source(query, target=target),
            table,
            columns=columns,
            constants=constants,
            evolves=evolves,
        )

    def frame(self, rows: pa.Table | None) -> DataFrame:
        """Return a dataframe of the rows; empty if `rows` is None or has no columns."""
        if rows is None or not rows.num_columns:
            return self._spark.sql("SELECT 1 AS done WHERE false").select()
        return self._spark.createDataFrame(rows)

    def _frame_of(
        self, table: QualifiedName | TableChangesCall, more: Mapping[str, str]
    ) -> DataFrame | None:
        """Return the rows of a deltalog table; None if Spark must resolve the name."""
        name = table.table if isinstance(table, TableChangesCall) else table
        if name.key in self._frames:
            return self._frames[name.key]
        named = self._named(name)
        location = str(name) if named is not None else self._location(name)
        if location is None:
            return None
        storage = {} if named is not None else self._storage_options or {}
        given = {STORAGE_PREFIX + option: value for option, value in storage.items()}
        options = {**more, **given, "path": location}
        if isinstance(table, TableChangesCall):
            options["readChangeFeed"] = "true"
            for side, bound in (("starting", table.start), ("ending", table.end)):
                if bound is not None:
                    kind = "Version" if isinstance(bound, int) else "Timestamp"
                    options[side + kind] = str(bound)
        elif name.version is not None:
            kind = "versionAsOf" if isinstance(name.version, int) else "timestampAsOf"
            options[kind] = str(name.version)
        elif self._seen:
            # If the statement has opened this table, read the same version. Spark evaluates the
            # dataframe later, perhaps several times, and the table may have new versions by then.
            root = self._root_of(named, location)
            if root in self._seen:
                self._read.add(root)
                options["versionAsOf"] = str(self._seen[root].version())
        found = frame_by_options(self._spark, options, table=named)
        if found is not None:
            return found
        return loaded(self._spark.read.format(_FORMAT).options(**options).load)

    def _full_name(self, table: QualifiedName | TableChangesCall) -> tuple[str, ...]:
        """Return the full name of a table in its catalog, in lower case."""
        if isinstance(table, TableChangesCall):
            return table.table.key[-1:]
        if table.location is not None:
            return (_SPARKS, *table.key)
        return self._full.get(table.key, table.key)

    def _root_of(self, named: NamedTable | None, location: str) -> str:
        if named is not None:
            return named_root(named.catalog.open(named.name).store)
        zone, options = session_time_zone(self._spark), self._storage_options
        return named_root(open_latest(location, options, doing="read", time_zone=zone).store)

    def _location(self, name: QualifiedName) -> str | None:
        """Return the location of a Delta table by its name; None for other names.

        Cost: a few calls to Spark and a listing, once for each name in a statement.
        """
        if name.location is not None:
            return name.location if name.format in self._own else None
        if name.key in self._frames:
            return None
        bare = replace(name, version=None)
        if bare.key not in self._located:
            self._located[bare.key] = self._look_up(bare)
        return self._located[bare.key]

    def _look_up(self, bare: QualifiedName) -> str | None:
        entry, may_be_elsewhere = look_up(self._spark, bare)
        if entry is None and not may_be_elsewhere:
            # Spark's catalog has no table with this name, but deltalog may have created a temporary
            # view with this name.
            found = view_location(self._spark, str(bare))
            return found if found is not None and self._context_at(found) is not None else None
        if entry is not None:
            self._full[bare.key] = full_name(self._spark, bare)
        if entry is not None and entry.provider in _OWN_FORMATS - self._own:
            return None  # the table belongs to another library, such as Delta's jar
        try:
            found = find_location(self._spark, str(bare), entry)
        except TableNotFoundError:
            return None
        return found if self._context_at(found) is not None else None
