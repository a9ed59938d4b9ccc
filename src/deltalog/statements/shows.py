"""Statements that return rows: queries, `EXPLAIN`, and `DESCRIBE` and `SHOW`, which return facts.

Protocol: none; follows Spark's and Delta Lake's SQL references
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.escaping import name_key
from deltalog.catalogs.protocol import CatalogTable, TableType
from deltalog.errors import InvalidInputError
from deltalog.expressions import Column, conjunction, lit
from deltalog.expressions.nodes import Comparison, IsNull
from deltalog.expressions.render import quote_name, quote_text, simple_name_of, type_name
from deltalog.protocol.features.char_varchar import CHAR_VARCHAR_KEY
from deltalog.protocol.features.declarations import default_expressions, generation_expressions
from deltalog.protocol.partition_values import hive_directory
from deltalog.protocol.table_change.checks import is_set_by_writers
from deltalog.query.names import QualifiedName
from deltalog.schema import ArrayType, DataType, Field, MapType, StructType, find_field
from deltalog.schema.collations import inner_collations
from deltalog.schema.columns import naming_the_attempt
from deltalog.schema.metadata_columns import moment_of
from deltalog.schema.types import (
    IDENTITY_ALLOW_EXPLICIT_INSERT_KEY,
    IDENTITY_START_KEY,
    IDENTITY_STEP_KEY,
    name_in_sql,
)
from deltalog.statements.catalog_names import SCHEMAS, read_show_names
from deltalog.statements.maintenance import read_show_branches
from deltalog.statements.statement import (
    Session,
    SqlStatement,
    StatementAnswer,
    clusters_of,
    table_of,
)

if TYPE_CHECKING:
    from deltalog.statements.reader import StatementReader
    from deltalog.statements.statement import Query
    from deltalog.table import DeltaTable

_DETAIL: Final[dict[str, pa.DataType]] = {
    "format": pa.string(),
    "id": pa.string(),
    "name": pa.string(),
    "description": pa.string(),
    "location": pa.string(),
    "createdAt": pa.timestamp("us", "UTC"),
    "lastModified": pa.timestamp("us", "UTC"),
    "partitionColumns": pa.list_(pa.string()),
    "clusteringColumns": pa.list_(pa.string()),
    "numFiles": pa.int64(),
    "sizeInBytes": pa.int64(),
    "properties": pa.map_(pa.string(), pa.string()),
    "minReaderVersion": pa.int32(),
    "minWriterVersion": pa.int32(),
    "tableFeatures": pa.list_(pa.string()),
}
_MOST: Final = 2**63 - 1
_HISTORY: Final[dict[str, pa.DataType]] = {
    "version": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "userId": pa.string(),
    "userName": pa.string(),
    "operation": pa.string(),
    "operationParameters": pa.map_(pa.string(), pa.string()),
    "clusterId": pa.string(),
    "readVersion": pa.int64(),
    "isolationLevel": pa.string(),
    "isBlindAppend": pa.bool_(),
    "operationMetrics": pa.map_(pa.string(), pa.string()),
    "userMetadata": pa.string(),
    "engineInfo": pa.string(),
}
_COLUMNS: Final[dict[str, pa.DataType]] = {
    "col_name": pa.string(),
    "data_type": pa.string(),
    "comment": pa.string(),
}
_FACTS: Final[dict[str, pa.DataType]] = {"info_name": pa.string(), "info_value": pa.string()}


@dataclass(frozen=True, slots=True)
class DescribeStatement(SqlStatement):
    """`DESCRIBE [TABLE] [EXTENDED] table`."""

    table: QualifiedName
    is_extended: bool = False

    def run(self, session: Session) -> StatementAnswer:
        """Return a row per column, then per partition column, then per further property."""
        table = session.open(self.table)
        fields = list(table.schema().fields)
        rows = [(field.name, shown_type(field), field.metadata.get("comment")) for field in fields]
        partitions = table.metadata().partition_columns
        if partitions:
            own = {field.name: row for field, row in zip(fields, rows, strict=True)}
            rows += [("# Partition Information", "", ""), ("# col_name", "data_type", "comment")]
            rows += [own[name] for name in partitions]
        clusters = clusters_of(table)
        if clusters:
            rows += [("# Clustering Information", "", ""), ("# col_name", "data_type", "comment")]
            schema = table.snapshot.configuration.schema
            rows += [
                (".".join(path), simple_name_of(find_field(schema, path)), None)
                for path in clusters
            ]
        if self.is_extended:
            rows += [("", "", ""), ("# Detailed Table Information", "", "")]
            details = _details(self.table, table, session.entry(self.table))
            rows += [(name, text, "") for name, text in details.items()]
        return StatementAnswer(table_of(_COLUMNS, rows))


@dataclass(frozen=True, slots=True)
class DescribeColumnStatement(SqlStatement):
    """`DESCRIBE [TABLE] [EXTENDED] table column`."""

    table: QualifiedName
    column: tuple[str, ...]

    def run(self, session: Session) -> StatementAnswer:
        """Return three rows: the name, the type and the comment of the column.

        Raises:
            InvalidInputError: the column does not exist, or is a field of a column.
        """
        if len(self.column) > 1:
            raise InvalidInputError(
                f"cannot describe {'.'.join(self.column)} of {self.table}: expected a column, not "
                "a field inside a column"
            )
        schema = session.open(self.table).snapshot.configuration.schema
        with naming_the_attempt("describe a column of", str(self.table)):
            field = find_field(schema, self.column)
        rows = {
            "col_name": field.name,
            "data_type": shown_type(field),
            "comment": str(field.metadata.get("comment") or "NULL"),
        }
        return StatementAnswer(table_of(_FACTS, list(rows.items())))


@dataclass(frozen=True, slots=True)
class DescribeDetailStatement(SqlStatement):
    """`DESCRIBE DETAIL table`."""

    table: QualifiedName

    def run(self, session: Session) -> StatementAnswer:
        """Return one row with the details of the table."""
        detail = session.open(self.table).detail()
        times = {name: moment_of(detail.get(name)) for name in ("createdAt", "lastModified")}
        return StatementAnswer(table_of(_DETAIL, [_row(_DETAIL, {**detail, **times})]))


@dataclass(frozen=True, slots=True)
class DescribeHistoryStatement(SqlStatement):
    """`DESCRIBE HISTORY table [LIMIT n]`."""

    table: QualifiedName
    limit: int | None = None

    def run(self, session: Session) -> StatementAnswer:
        """Return a row for each version, newest first."""
        commits = session.open(self.table).history(self.limit)
        rows = [
            _row(_HISTORY, {**one, "timestamp": moment_of(one.get("timestamp"))}) for one in commits
        ]
        return StatementAnswer(table_of(_HISTORY, rows))


@dataclass(frozen=True, slots=True)
class ShowColumnsStatement(SqlStatement):
    """`SHOW COLUMNS IN table`."""

    table: QualifiedName

    def run(self, session: Session) -> StatementAnswer:
        """Return a row for each column."""
        names = session.open(self.table).schema().names
        return StatementAnswer(table_of({"col_name": pa.string()}, [(name,) for name in names]))


@dataclass(frozen=True, slots=True)
class ShowPartitionsStatement(SqlStatement):
    """`SHOW PARTITIONS table [PARTITION (column = value, …)]`."""

    table: QualifiedName
    partition: Mapping[str, Any]

    def run(self, session: Session) -> StatementAnswer:
        """Return a row for each partition, in the form of a directory name, sorted by values.

        Raises:
            InvalidInputError: the table is not partitioned, or a given column is not a partition
                column.
        """
        table = session.open(self.table)
        own = table.metadata().partition_columns
        if not own:
            raise InvalidInputError(f"cannot show partitions of {self.table}: it has none")
        known = {name_key(name): name for name in own}
        unknown = [name for name in self.partition if name_key(name) not in known]
        if unknown:
            raise InvalidInputError(
                f"cannot show partitions of {self.table} by {unknown}: its partition columns are "
                f"{list(own)}"
            )
        wanted = [
            IsNull(Column((known[name_key(name)],))) if value is None
            else Comparison("=", Column((known[name_key(name)],)), lit(value))
            for name, value in self.partition.items()
        ]  # fmt: skip
        found = table.partitions(file_pruning_predicate=conjunction(wanted) if wanted else None)
        rows = dict.fromkeys(hive_directory(own, one).rstrip("/") for one in found)
        return StatementAnswer(table_of({"partition": pa.string()}, [(row,) for row in rows]))


@dataclass(frozen=True, slots=True)
class ShowPropertiesStatement(SqlStatement):
    """`SHOW TBLPROPERTIES table [(key)]`."""

    table: QualifiedName
    key: str | None = None

    def run(self, session: Session) -> StatementAnswer:
        """Return a row for each property, including the versions and features of the protocol."""
        table = session.open(self.table)
        protocol = table.protocol()
        found = {
            **table.metadata().configuration,
            "delta.minReaderVersion": str(protocol.min_reader_version),
            "delta.minWriterVersion": str(protocol.min_writer_version),
        }
        for feature in {*(protocol.reader_features or ()), *(protocol.writer_features or ())}:
            found[f"delta.feature.{feature}"] = "supported"
        rows = sorted(found.items())
        if self.key is not None:
            missing = f"Table {self.table} does not have property: {self.key}"
            rows = [(self.key, found.get(self.key, missing))]
        return StatementAnswer(table_of({"key": pa.string(), "value": pa.string()}, rows))


@dataclass(frozen=True, slots=True)
class ShowCreateStatement(SqlStatement):
    """`SHOW CREATE TABLE table`."""

    table: QualifiedName

    def run(self, session: Session) -> StatementAnswer:
        """Return one row with a statement that creates an empty table like this one."""
        entry, table = session.entry(self.table), session.open(self.table)
        is_managed = entry is not None and entry.table_type is TableType.MANAGED
        text = create_statement(self.table, table, is_managed=is_managed)
        return StatementAnswer(table_of({"createtab_stmt": pa.string()}, [(text,)]))


_OF_NAMES: Final = frozenset({"SCHEMA", "DATABASE", "NAMESPACE", "CATALOG"})


def read_describe(reader: StatementReader) -> SqlStatement:
    """Parse a statement after `DESCRIBE`."""
    if reader.take("DETAIL"):
        return DescribeDetailStatement(reader.location_or_table())
    if reader.take("HISTORY"):
        table = reader.location_or_table()
        return DescribeHistoryStatement(table, reader.integer() if reader.take("LIMIT") else None)
    first = reader.word
    reader.take("TABLE")
    is_extended = reader.take_one("EXTENDED", "FORMATTED") is not None
    table = reader.table()
    if reader.is_at_end:
        return DescribeStatement(table, is_extended)
    if (word := first.text.upper()) in _OF_NAMES:
        problem = f"there is no DESCRIBE {word}; SHOW TABLES IN schema and SHOW SCHEMAS list names"
        reader.fail_at(first, problem)
    return DescribeColumnStatement(table, reader.path())


def read_show(reader: StatementReader) -> SqlStatement:
    """Parse a statement after `SHOW`."""
    if reader.take("BRANCHES"):
        return read_show_branches(reader)
    if (word := reader.word.text.upper()) in {"HISTORY", "DETAIL"}:
        reader.fail_at(reader.word, f"there is no SHOW {word}; write DESCRIBE {word} t")
    kind = reader.expect_one(
        "TABLES", "CATALOGS", *SCHEMAS, "COLUMNS", "PARTITIONS", "TBLPROPERTIES", "CREATE TABLE"
    )
    match kind:
        case "PARTITIONS":
            table = reader.table()
            return ShowPartitionsStatement(table, _read_partition(reader))
        case "COLUMNS":
            reader.expect_one("IN", "FROM")
            table = reader.table()
            if reader.take_one("IN", "FROM"):
                table = QualifiedName((*reader.path("a schema"), *table.parts))
            return ShowColumnsStatement(table)
        case "TBLPROPERTIES":
            table = reader.table()
            key = None
            if reader.take("("):
                key = reader.text() if reader.word.kind == "text" else ".".join(reader.path())
                reader.expect(")")
            return ShowPropertiesStatement(table, key)
        case "CREATE TABLE":
            return ShowCreateStatement(reader.table())
        case _:
            return read_show_names(reader, kind)


def _read_partition(reader: StatementReader) -> dict[str, Any]:
    def read() -> tuple[str, Any]:
        name = reader.name("a partition column")
        reader.expect("=")
        return name, reader.constant()

    return dict(reader.listed(read)) if reader.take("PARTITION") else {}


def shown_type(field: Field) -> str:
    """Return the type of a column in SQL, including the limit of `char(n)` and `varchar(n)`."""
    return str(field.metadata.get(CHAR_VARCHAR_KEY) or simple_name_of(field))


def _details(name: QualifiedName, table: DeltaTable, entry: CatalogTable | None) -> dict[str, str]:
    metadata = table.metadata()
    found = {
        "Name": str(name),
        "Type": "" if entry is None else entry.table_type.value,
        "Location": table.table_uri,
        "Provider": "delta",
        "Comment": metadata.description or "",
        "Version": str(table.version()),
        "Table Properties": ", ".join(
            f"{key}={text}" for key, text in sorted(metadata.configuration.items())
        ),
    }
    return {key: text for key, text in found.items() if text}


def _row(schema: Mapping[str, pa.DataType], values: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return values in the order and types of the columns; a log may contain other types."""
    return tuple(_fitting(kind, values.get(name)) for name, kind in schema.items())


def _fitting(kind: pa.DataType, value: Any) -> Any:
    if pt.is_map(kind):
        is_map = isinstance(value, Mapping)
        return [(str(key), _shown(one)) for key, one in value.items()] if is_map else None
    if pt.is_list(kind):
        return [str(one) for one in value] if isinstance(value, list | tuple) else None
    if pt.is_string(kind):
        return _shown(value)
    if pt.is_integer(kind) and isinstance(value, str) and value.strip().isdecimal():
        return int(value)
    if pt.is_boolean(kind):
        return value if isinstance(value, bool) else None
    return value if isinstance(value, int) and -_MOST <= value <= _MOST else None


def _shown(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else str(value)


# --- `SHOW CREATE TABLE`: the statement that creates an empty table like an existing one


def create_statement(name: QualifiedName, table: DeltaTable, *, is_managed: bool = False) -> str:
    """Return a statement that creates an empty table like an existing one.

    Args:
        name: the name of the new table.
        table: the existing table.
        is_managed: whether a catalog has chosen the location of the table. The statement then
            contains no location.
    """
    schema, metadata = table.snapshot.configuration.schema, table.metadata()
    columns = ",\n".join(f"  {_defined(field, schema)}" for field in schema)
    lines = [f"CREATE TABLE {name} (\n{columns})", "USING delta"]
    if metadata.partition_columns:
        lines.append(f"PARTITIONED BY ({', '.join(map(quote_name, metadata.partition_columns))})")
    clusters = clusters_of(table)
    if clusters:
        shown = (".".join(map(quote_name, path)) for path in clusters)
        lines.append(f"CLUSTER BY ({', '.join(shown)})")
    if name.location is None and not is_managed:
        lines.append(f"LOCATION {quote_text(table.table_uri)}")
    if metadata.description:
        lines.append(f"COMMENT {quote_text(metadata.description)}")
    properties = {
        key: text for key, text in metadata.configuration.items() if not is_set_by_writers(key)
    }
    if properties:
        pairs = sorted(properties.items())
        shown = (f"  {quote_text(key)} = {quote_text(value)}" for key, value in pairs)
        lines.append("TBLPROPERTIES (\n" + ",\n".join(shown) + ")")
    return "\n".join(lines) + "\n"


def _defined(field: Field, schema: Any) -> str:
    parts = [
        quote_name(field.name),
        str(field.metadata.get(CHAR_VARCHAR_KEY) or _defined_type(field)),
    ]
    if not field.nullable:
        parts.append("NOT NULL")
    metadata = field.metadata
    if IDENTITY_START_KEY in metadata:
        way = "BY DEFAULT" if metadata.get(IDENTITY_ALLOW_EXPLICIT_INSERT_KEY) else "ALWAYS"
        numbers = (
            f"START WITH {metadata[IDENTITY_START_KEY]} "
            f"INCREMENT BY {metadata.get(IDENTITY_STEP_KEY, 1)}"
        )
        parts.append(f"GENERATED {way} AS IDENTITY ({numbers})")
    generated = generation_expressions(schema).get(field.name)
    if generated is not None:
        parts.append(f"GENERATED ALWAYS AS ({generated})")
    default = default_expressions(schema).get((field.name,))
    if default is not None:
        parts.append(f"DEFAULT {default}")
    if metadata.get("comment"):
        parts.append(f"COMMENT {quote_text(str(metadata['comment']))}")
    return " ".join(parts)


def _defined_type(field: Field) -> str:
    """Return the type of a field in SQL, including the comments and clauses of nested fields."""

    def defined(data_type: DataType, path: tuple[str, ...]) -> str:
        match data_type:
            case ArrayType():
                return f"ARRAY<{defined(data_type.element_type, (*path, 'element'))}>"
            case MapType():
                key = defined(data_type.key_type, (*path, "key"))
                return f"MAP<{key}, {defined(data_type.value_type, (*path, 'value'))}>"
            case StructType():
                return f"STRUCT<{', '.join(map(_defined_field, data_type))}>"
            case _:
                collation = collations.get(path)
                behind = "" if collation is None else f" COLLATE {name_in_sql(collation)}"
                return type_name(data_type) + behind

    collations = inner_collations(field)
    return defined(field.type, ())


def _defined_field(field: Field) -> str:
    required = "" if field.nullable else " NOT NULL"
    comment = field.metadata.get("comment")
    said = "" if comment is None else f" COMMENT {quote_text(str(comment))}"
    return f"{quote_name(field.name)}: {_defined_type(field)}{required}{said}"


# --- queries, and `EXPLAIN` of any statement


@dataclass(frozen=True, slots=True)
class ExplainStatement(SqlStatement):
    """`EXPLAIN statement`, which returns the plan of any statement."""

    statement: SqlStatement

    def run(self, session: Session) -> StatementAnswer:
        """Return one row with the plan of the statement, without running the statement."""
        text = self.statement.explain(session)
        return StatementAnswer(table_of({"plan": pa.string()}, [(text,)]))


@dataclass(frozen=True, slots=True)
class SelectStatement(SqlStatement):
    """A query."""

    query: Query

    def run(self, session: Session) -> StatementAnswer:
        """Return the rows of the query as a stream."""
        return StatementAnswer(session.select(self.query))

    def explain(self, session: Session) -> str:
        """Return the plan of the query."""
        return session.explain(self.query)
