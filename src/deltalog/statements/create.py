"""`CREATE TABLE` with columns, `AS SELECT`, `LIKE` and `CLONE`; `CONVERT`; `DROP`; schemas.

Protocol: none; follows Spark's SQL reference
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from deltalog.errors import InvalidInputError, TableExistsError, TableNotFoundError
from deltalog.log.history import naming_the_use
from deltalog.log.listing import has_table
from deltalog.log.snapshot import load_snapshot
from deltalog.operations.clone import DELTA, Origin
from deltalog.protocol.features.char_varchar import CHAR_VARCHAR_KEY
from deltalog.protocol.table_change.checks import is_set_by_writers
from deltalog.query.names import QualifiedName
from deltalog.schema import Field, Schema
from deltalog.schema.collations import with_collations
from deltalog.schema.types import (
    CURRENT_DEFAULT_KEY,
    GENERATION_EXPRESSION_KEY,
    IDENTITY_ALLOW_EXPLICIT_INSERT_KEY,
    IDENTITY_START_KEY,
    IDENTITY_STEP_KEY,
)
from deltalog.statements.catalog_names import NamespaceStatement
from deltalog.statements.maintenance import read_create_branch, read_drop_branch
from deltalog.statements.partitioning import refuse_clustering, refuse_function
from deltalog.statements.statement import (
    NewNames,
    Session,
    SqlStatement,
    StatementAnswer,
    clusters_of,
    counted,
    logger,
)
from deltalog.table import DeltaTable
from deltalog.table.convert import ForeignSource, Wanted, convert_source, divided_location
from deltalog.table.creating import (
    TableDefinition,
    check_same,
    clone_table,
    create_table,
    keep_table,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.log.context import TableContext
    from deltalog.log.snapshot import Snapshot
    from deltalog.statements.reader import StatementReader
    from deltalog.statements.statement import Query, WrittenType

_FORMATS: Final = frozenset({"delta", "deltalog"})
_CLAUSES: Final = {
    "USING": "uses_delta",
    "PARTITIONED BY": "partition_by",
    "CLUSTER BY": "cluster_by",
    "TBLPROPERTIES": "properties",
    "COMMENT": "comment",
    "LOCATION": "location",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableClauses:
    """The clauses of a table definition, except its columns. An absent clause is None."""

    partition_by: Sequence[str] | None = None
    cluster_by: Sequence[tuple[str, ...]] | None = None
    properties: dict[str, str] = field(default_factory=dict)
    comment: str | None = None
    location: str | None = None
    uses_delta: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateStatement(SqlStatement):
    """`CREATE [OR REPLACE] TABLE [IF NOT EXISTS] …` and `REPLACE TABLE …`.

    Args:
        table: the name of the new table.
        mode: `error`, `ignore` or `overwrite`; see `DeltaTable.create`.
        must_exist: whether the table must exist already, as for `REPLACE TABLE`.
        fields: the columns in `(column TYPE, …)`.
        clauses: the clauses after the columns.
        query: the query after `AS SELECT`.
        like: the table after `LIKE`, whose columns the new table has.
        constraints: the constraints `CONSTRAINT name CHECK (…)`: the name and the SQL of each.
    """

    table: QualifiedName
    mode: str = "error"
    must_exist: bool = False
    fields: Sequence[Field] = ()
    clauses: TableClauses = field(default_factory=TableClauses)
    query: Query | None = None
    like: QualifiedName | None = None
    constraints: dict[str, str] = field(default_factory=dict)

    def run(self, session: Session) -> StatementAnswer:
        """Create the table. If there is a query, insert its rows."""
        clauses = self.clauses
        if self.query is not None and self.fields:
            raise InvalidInputError(
                f"cannot create {self.table}: AS SELECT defines the columns; remove their list"
            )
        known = session.find(replace(self.table, version=None))
        is_placed = clauses.location is not None or self.table.location is not None
        if known is not None and self.table.location is None and self.mode != "overwrite":
            if self.mode == "ignore":
                return StatementAnswer(None)
            raise self._exists(known.table_uri)
        if self.must_exist and known is None and not is_placed:
            raise self._nothing_to_replace()
        if clauses.location is not None and self.table.location is not None:
            raise InvalidInputError(
                f"cannot create the table {self.table}: its name is a location, so LOCATION "
                f"{clauses.location!r} is a second one; remove one of them"
            )
        place = session.place(self.table, clauses.location)
        if self.must_exist and known is None and not has_table(place.context.store):
            raise self._nothing_to_replace()
        model = None if self.like is None else session.open(self.like)
        definition = TableDefinition(
            schema=None if self.query is not None else self._schema(model),
            partition_by=self._partition_columns(model),
            cluster_by=self._clusters(model),
            constraints=self.constraints,
            configuration={**(_kept(model) if model else {}), **clauses.properties},
            description=self._comment(model),
            # The model of LIKE may have properties of a later version of Delta.
            arbitrary_properties=model is not None,
        )
        rows = None if self.query is None else session.source(self.query, target=self.table)
        try:
            context = create_table(
                place, definition, mode=self.mode, rows=rows, engine=session.engine
            )
        except TableExistsError:
            if place.new is not None:
                raise  # the table is there, and the catalog's entry is what would be created
            context = self._existing(place.context, definition)
        session.note(self.table, DeltaTable.from_context(context, session.engine))
        return StatementAnswer(None)

    def _existing(self, context: TableContext, definition: TableDefinition) -> TableContext:
        """Return the context of the existing table that gets the new name, as in Spark.

        Raises:
            TableExistsError: the statement makes a table of its own, without LOCATION or with rows.
            InvalidInputError: the existing table differs from the definition.
        """
        if self.clauses.location is None or self.query is not None:
            raise self._exists(context.store.root) from None
        check_same(str(self.table), definition, load_snapshot(context))
        return context

    def _exists(self, location: str) -> TableExistsError:
        return TableExistsError(
            f"cannot create the table {self.table}: it already exists, at {location}; "
            "CREATE OR REPLACE TABLE replaces it, CREATE TABLE IF NOT EXISTS does nothing"
        )

    def _nothing_to_replace(self) -> TableNotFoundError:
        return TableNotFoundError(
            f"cannot replace the table {self.table}: it does not exist; CREATE OR REPLACE TABLE "
            "creates it"
        )

    def _schema(self, model: DeltaTable | None) -> Schema:
        return Schema(self.fields) if model is None else model.schema()

    def _partition_columns(self, model: DeltaTable | None) -> Sequence[str]:
        if self.clauses.partition_by is not None:
            return self.clauses.partition_by
        return () if model is None else model.metadata().partition_columns

    def _clusters(self, model: DeltaTable | None) -> Sequence[tuple[str, ...]] | None:
        if self.clauses.cluster_by is not None or model is None:
            return self.clauses.cluster_by
        return clusters_of(model) or None

    def _comment(self, model: DeltaTable | None) -> str | None:
        if self.clauses.comment is not None or model is None:
            return self.clauses.comment
        return model.metadata().description


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneStatement(SqlStatement):
    """`CREATE [OR REPLACE] TABLE … [SHALLOW|DEEP] CLONE source`."""

    table: QualifiedName
    source: QualifiedName
    is_shallow: bool
    mode: str = "error"
    properties: dict[str, str] = field(default_factory=dict)
    location: str | None = None

    def run(self, session: Session) -> StatementAnswer:
        """Clone the table, and return the numbers and sizes of the copied files."""
        place = session.place(self.table, self.location)
        if self.mode == "ignore" and has_table(place.context.store):
            session.note(self.table, DeltaTable.from_context(keep_table(place), session.engine))
            return StatementAnswer(None)
        source, origin = self._source(session)
        context = clone_table(
            source,
            place,
            session.engine,
            is_shallow=self.is_shallow,
            origin=origin,
            replaces=self.mode == "overwrite",
            properties=self.properties or None,
        )
        clone = DeltaTable.from_context(context, session.engine)
        session.note(self.table, clone)
        (commit,) = clone.history(1)
        found = commit.get("operationMetrics", {})
        names = {
            "source_table_size": "sourceTableSize",
            "source_num_of_files": "sourceNumOfFiles",
            "num_removed_files": "numRemovedFiles",
            "num_copied_files": "numCopiedFiles",
            "removed_files_size": "removedFilesSize",
            "copied_files_size": "copiedFilesSize",
        }
        return counted(found, **{name: _number(found.get(key)) for name, key in names.items()})

    def _source(self, session: Session) -> tuple[Snapshot, Origin]:
        """Return the version of the source to clone, and the format of the source."""
        kind = self.source.format
        if kind not in {"iceberg", "parquet"}:
            with naming_the_use("clone"):
                return session.open(self.source).snapshot, DELTA
        _, foreign = _foreign(session, self.source)
        if has_table(foreign.store):
            delta = replace(self.source, parts=("delta", *self.source.parts[1:]))
            with naming_the_use("clone"):
                return session.open(delta).snapshot, DELTA
        if self.source.version is not None:
            raise InvalidInputError(
                f"cannot clone {self.source} at a version: expected a Delta table; for an Iceberg "
                "table, name the metadata file"
            )
        conversion, snapshot = foreign.snapshot()
        return snapshot, Origin(kind, conversion.source_version, has_log=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertStatement(SqlStatement):
    """`CONVERT TO DELTA parquet.`path` [NO STATISTICS] [PARTITIONED BY (column TYPE, …)]`.

    Also accepts ``iceberg.`path` ``, where the path may be a metadata file that a catalog names.
    """

    table: QualifiedName
    collects_stats: bool = True
    partitions: Sequence[Field] | None = None

    def run(self, session: Session) -> StatementAnswer:
        """Write a log for the existing files. Only warn if there is a Delta table already."""
        name, source = _foreign(session, self.table)
        context = session.place(name, None).context
        if has_table(context.store):
            # As in Delta Spark, this is no error.
            logger.warning(
                "CONVERT TO DELTA changed nothing: %s is a Delta table already", context.store.root
            )
            return StatementAnswer(None)
        columns = None if self.partitions is None else Schema(self.partitions)
        wanted = Wanted(partition_by=columns)
        convert_source(source, wanted, context, collect_stats=self.collects_stats)
        session.note(name, DeltaTable.from_context(context, session.engine))
        return StatementAnswer(None)


@dataclass(frozen=True, slots=True)
class DropStatement(SqlStatement):
    """`DROP TABLE [IF EXISTS] table`."""

    table: QualifiedName
    if_exists: bool = False

    def run(self, session: Session) -> StatementAnswer:
        """Remove the table from its catalog. The files of an external table are not deleted."""
        if self.table.location is not None:
            raise InvalidInputError(
                f"cannot drop {self.table}: it is a location, not a table in a catalog; delete its "
                "files with the store's own tools"
            )
        if not session.forget(self.table) and not self.if_exists:
            raise TableNotFoundError(f"cannot drop the table {self.table}: it does not exist")
        return StatementAnswer(None)


def _foreign(session: Session, name: QualifiedName) -> tuple[QualifiedName, ForeignSource]:
    """Return the directory in ``iceberg.`path` `` or ``parquet.`path` ``, and its files."""
    location, metadata_name = divided_location(name.location or "")
    place = replace(name, version=None)
    if metadata_name is not None:
        place = QualifiedName((name.parts[0], location))
    return place, ForeignSource(
        store=session.place(place, None).context.store,
        format="iceberg" if name.format == "iceberg" else "parquet",
        metadata_name=metadata_name,
    )


def read_create(reader: StatementReader) -> SqlStatement:
    """Parse a statement after `CREATE`."""
    if reader.take("BRANCH"):
        return read_create_branch(reader)
    if (kind := reader.take_one(*KINDS_OF_NAMES)) is not None:
        return read_create_names(reader, kind)
    mode = "overwrite" if reader.take("OR REPLACE") else "error"
    reader.expect("TABLE")
    if reader.take("IF NOT EXISTS"):
        if mode == "overwrite":
            reader.fail("expected either OR REPLACE or IF NOT EXISTS")
        mode = "ignore"
    return _read_rest(reader, mode=mode)


def read_replace(reader: StatementReader) -> SqlStatement:
    """Parse a statement after `REPLACE`."""
    reader.expect("TABLE")
    return _read_rest(reader, mode="overwrite", must_exist=True)


def read_convert(reader: StatementReader) -> SqlStatement:
    """Parse a statement after `CONVERT`."""
    reader.expect("TO DELTA")
    table = reader.table()
    collects = not reader.take("NO STATISTICS")
    partitions = None
    if reader.take("PARTITIONED BY"):
        partitions = reader.listed(lambda: read_column(reader))
    return ConvertStatement(table=table, collects_stats=collects, partitions=partitions)


def read_drop(reader: StatementReader) -> SqlStatement:
    """Parse a statement after `DROP`."""
    if reader.take("BRANCH"):
        return read_drop_branch(reader)
    if (kind := reader.take_one(*KINDS_OF_NAMES)) is not None:
        return read_drop_names(reader, kind)
    reader.expect("TABLE")
    if_exists = reader.take("IF EXISTS")
    table = reader.table()
    reader.take("PURGE")
    return DropStatement(table, if_exists)


def _read_rest(reader: StatementReader, *, mode: str, must_exist: bool = False) -> SqlStatement:
    table = reader.table()
    kind = reader.take_one("SHALLOW CLONE", "DEEP CLONE", "CLONE")
    if kind is not None:
        source = reader.table_at_version()
        clauses = _read_clauses(reader)
        return CloneStatement(
            table=table,
            source=source,
            is_shallow=kind == "SHALLOW CLONE",
            mode=mode,
            properties=clauses.properties,
            location=clauses.location,
        )
    like = reader.table() if reader.take("LIKE") else None
    fields: list[Field] = []
    constraints: dict[str, str] = {}
    if reader.is_at("(") and not reader.is_at_query:
        for found in reader.listed(lambda: _read_part(reader)):
            if isinstance(found, Field):
                fields.append(found)
            else:
                constraints.update(found)
    clauses = _read_clauses(reader, fields)
    query = None
    if reader.take("AS") or reader.is_at_query:
        query = reader.query()
    return CreateStatement(
        table=table,
        mode=mode,
        must_exist=must_exist,
        fields=fields,
        clauses=clauses,
        query=query,
        like=like,
        constraints=constraints,
    )


def _read_part(reader: StatementReader) -> Field | dict[str, str]:
    if not reader.take("CONSTRAINT"):
        return read_column(reader)
    name = reader.name("the name of a constraint")
    reader.expect("CHECK")
    return {name: reader.bracketed_source()}


def _read_clauses(reader: StatementReader, fields: list[Field] | None = None) -> TableClauses:
    """Parse the clauses of a table, in any order. Each clause may occur once."""
    found: dict[str, Any] = {}
    while clause := reader.take_one(*_CLAUSES):
        start = reader.word
        name, value = _CLAUSES[clause], _read_clause(reader, clause, fields)
        if name in found:
            reader.fail_at(start, f"expected {clause} once")
        found[name] = value
    return TableClauses(**found)


def _read_clause(reader: StatementReader, clause: str, fields: list[Field] | None) -> Any:
    match clause:
        case "USING":
            start = reader.word
            if reader.name("a format").lower() not in _FORMATS:
                reader.fail_at(start, "expected USING DELTA: deltalog creates only Delta tables")
            return True
        case "PARTITIONED BY":
            return reader.listed(lambda: _read_partition_column(reader, fields))
        case "CLUSTER BY":
            return read_clustering(reader)
        case "TBLPROPERTIES":
            return read_properties(reader)
        case "COMMENT":
            return reader.text("a comment")
        case _:
            return reader.text("a location")


def _read_partition_column(reader: StatementReader, fields: list[Field] | None) -> str:
    """Parse a partition column; as in Hive, its type may follow, which defines the column."""
    start = reader.word
    name = reader.name("a column")
    if reader.is_at("("):
        refuse_function(reader, start, generates=bool(fields))
    if not reader.is_at(",") and not reader.is_at(")"):
        defined = read_definition(reader, name)
        if fields is None:
            reader.fail("expected only the name of a column")
        fields.append(defined)
    return name


def read_clustering(reader: StatementReader) -> list[tuple[str, ...]]:
    """Parse the columns after `CLUSTER BY`. NONE and `()` mean no columns."""
    if reader.take("NONE"):
        return []
    if reader.is_at("( )"):
        reader.expect("( )")
        return []
    return reader.listed(lambda: _read_clustering_column(reader))


def _read_clustering_column(reader: StatementReader) -> tuple[str, ...]:
    start = reader.word
    path = reader.path()
    if reader.is_at("("):
        refuse_clustering(reader, start)
    return path


def _kept(model: DeltaTable) -> dict[str, str]:
    """Return the properties that `LIKE` copies. Properties that only writers set are excluded."""
    own = model.metadata().configuration
    return {key: text for key, text in own.items() if not is_set_by_writers(key)}


def _number(text: Any) -> int | None:
    return None if text is None else int(text)


# --- `CREATE` and `DROP` of schemas and catalogs


_CATALOG: Final = "CATALOG"
KINDS_OF_NAMES: Final = (_CATALOG, "SCHEMA", "DATABASE", "NAMESPACE")


@dataclass(frozen=True, slots=True)
class CreateNamesStatement(NamespaceStatement):
    """`CREATE SCHEMA [IF NOT EXISTS] name …`, or the same for a catalog."""

    names: NewNames

    @property
    def namespace(self) -> tuple[str, ...]:
        """The schema or catalog; see `NamespaceStatement`."""
        return self.names.namespace

    def run(self, session: Session) -> StatementAnswer:
        """Create the schema or catalog."""
        session.namespaces.create(self.names)
        return StatementAnswer(None)


@dataclass(frozen=True, slots=True)
class DropNamesStatement(NamespaceStatement):
    """`DROP SCHEMA [IF EXISTS] name [RESTRICT|CASCADE]`, or the same for a catalog."""

    namespace: tuple[str, ...] = ()
    is_catalog: bool = field(default=False, kw_only=True)
    cascade: bool = field(default=False, kw_only=True)
    may_lack: bool = field(default=False, kw_only=True)

    def run(self, session: Session) -> StatementAnswer:
        """Drop the schema or catalog."""
        session.namespaces.drop(
            self.namespace,
            is_catalog=self.is_catalog,
            cascade=self.cascade,
            may_lack=self.may_lack,
        )
        return StatementAnswer(None)


def read_create_names(reader: StatementReader, kind: str) -> SqlStatement:
    """Parse a statement after `CREATE SCHEMA`, `CREATE DATABASE` or `CREATE CATALOG`."""
    may_exist = reader.take("IF NOT EXISTS")
    namespace = tuple(reader.path(f"a {kind.lower()}"))
    found: dict[str, str | dict[str, str]] = {}
    while clause := reader.take_one(*_CLAUSES_NAMESPACE_CHANGES):
        start, name = reader.word, _CLAUSES_NAMESPACE_CHANGES[clause]
        if name in found:
            reader.fail_at(start, f"expected {clause} once")
        found[name] = read_properties(reader) if name == "properties" else reader.text()
    comment, location = found.get("comment"), found.get("location")
    properties = found.get("properties")
    return CreateNamesStatement(
        NewNames(
            namespace=namespace,
            is_catalog=kind == _CATALOG,
            may_exist=may_exist,
            comment=comment if isinstance(comment, str) else None,
            location=location if isinstance(location, str) else None,
            properties=properties if isinstance(properties, dict) else None,
        )
    )


def read_drop_names(reader: StatementReader, kind: str) -> SqlStatement:
    """Parse a statement after `DROP SCHEMA`, `DROP DATABASE` or `DROP CATALOG`."""
    may_lack = reader.take("IF EXISTS")
    namespace = tuple(reader.path(f"a {kind.lower()}"))
    return DropNamesStatement(
        namespace,
        is_catalog=kind == _CATALOG,
        cascade=reader.take_one("RESTRICT", "CASCADE") == "CASCADE",
        may_lack=may_lack,
    )


_CLAUSES_NAMESPACE_CHANGES: Final = {
    "COMMENT": "comment",
    "LOCATION": "location",
    "MANAGED LOCATION": "location",
    "WITH DBPROPERTIES": "properties",
    "WITH PROPERTIES": "properties",
}


# --- properties: `('key' = 'value', …)`


def read_properties(reader: StatementReader) -> dict[str, str]:
    """Read `('key' = 'value', …)`. A key may also be a name with dots."""

    def read() -> tuple[str, str]:
        key = read_key(reader)
        if not reader.take("="):
            reader.take("==")
        value = reader.constant()
        return key, str(value).lower() if isinstance(value, bool) else str(value)

    return dict(reader.listed(read))


def read_key(reader: StatementReader) -> str:
    """Read the key of a property: a string, or a name with dots."""
    return reader.text() if reader.word.kind == "text" else ".".join(reader.path("a key"))


# --- definitions of columns: `name TYPE [NOT NULL] [DEFAULT …] [GENERATED …] [COMMENT …]`


CLAUSES: Final = ("NOT NULL", "NULL", "DEFAULT", "GENERATED", "COMMENT", "FIRST", "AFTER")


def read_column(reader: StatementReader) -> Field:
    """Read the definition of a column."""
    return read_definition(reader, reader.name("a column"))


def read_definition(
    reader: StatementReader, name: str, written: WrittenType | None = None
) -> Field:
    """Parse a column definition after the name; `written` is the type, if already read."""
    found = reader.type(*CLAUSES) if written is None else written
    metadata: dict[str, Any] = {CHAR_VARCHAR_KEY: found.limited} if found.limited else {}
    is_nullable = True
    while clause := reader.take_one("NOT NULL", "NULL", "DEFAULT", "GENERATED", "COMMENT"):
        match clause:
            case "NOT NULL":
                is_nullable = False
            case "DEFAULT":
                # NULL may also begin a clause, which nobody writes after DEFAULT.
                is_null = reader.take("NULL")
                metadata[CURRENT_DEFAULT_KEY] = "NULL" if is_null else reader.source(*CLAUSES)
            case "GENERATED":
                metadata |= _read_generator(reader)
            case "COMMENT":
                metadata["comment"] = reader.text("a comment")
    field = Field(name, found.type, nullable=is_nullable, metadata=metadata)
    return with_collations(field, found.collations)


def _read_generator(reader: StatementReader) -> dict[str, Any]:
    is_always = reader.expect_one("ALWAYS AS", "BY DEFAULT AS") == "ALWAYS AS"
    if not reader.take("IDENTITY"):
        if not is_always:
            reader.fail("expected IDENTITY")
        return {GENERATION_EXPRESSION_KEY: reader.bracketed_source()}
    numbers = {"START WITH": 1, "INCREMENT BY": 1}
    if reader.take("("):
        while kind := reader.take_one(*numbers):
            numbers[kind] = reader.integer()
            reader.take(",")
        reader.expect(")")
    return {
        IDENTITY_START_KEY: numbers["START WITH"],
        IDENTITY_STEP_KEY: numbers["INCREMENT BY"],
        IDENTITY_ALLOW_EXPLICIT_INSERT_KEY: not is_always,
    }
