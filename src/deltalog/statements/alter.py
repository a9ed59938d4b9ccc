"""`ALTER TABLE` and `COMMENT ON`.

Protocol: none; follows Spark's SQL reference
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deltalog._util.escaping import name_key, path_key
from deltalog.errors import InvalidInputError
from deltalog.operations import alter
from deltalog.query.names import QualifiedName
from deltalog.schema import Field, StructType, canonical_path_of, find_field
from deltalog.schema.collations import inner_collations
from deltalog.schema.columns import walk
from deltalog.statements.create import (
    CLAUSES,
    read_clustering,
    read_definition,
    read_key,
    read_properties,
)
from deltalog.statements.statement import Session, SqlStatement, StatementAnswer, execute

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from deltalog.operations.operation import Operation
    from deltalog.schema.evolve import Where
    from deltalog.statements.reader import StatementReader
    from deltalog.statements.statement import WrittenType

    Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AlterStatement(SqlStatement):
    """`ALTER TABLE …`: changes the schema, properties or constraints of a table, in one version."""

    table: QualifiedName
    operations: tuple[Operation[Any], ...]

    def run(self, session: Session) -> StatementAnswer:
        """Run the operations, in one commit."""
        table = session.open(self.table)
        if len(self.operations) == 1:
            execute(session, table, self.operations[0])
        else:
            with table.transaction() as transaction:
                for operation in self.operations:
                    transaction.do(operation)
        session.note(self.table, table)
        return StatementAnswer(None)


@dataclass(frozen=True, slots=True)
class ChangeColumnStatement(SqlStatement):
    """Hive's `CHANGE COLUMN`, in which the type of the column must be repeated."""

    table: QualifiedName
    column: Path
    field: Field
    collations: Mapping[Path, str]
    where: Where | None

    def run(self, session: Session) -> StatementAnswer:
        """Change those properties of the column that differ from the statement."""
        schema = session.open(self.table).snapshot.configuration.schema
        own = find_field(schema, canonical_path_of(schema, self.column))
        operations: list[Operation[Any]] = []
        if self.collations:
            operations.append(
                alter.SetColumnCollations(self.column, self.collations, self.field.type)
            )
        elif own.type != self.field.type:
            operations.append(alter.SetColumnType(self.column, self.field.type))
        if "comment" in self.field.metadata:
            operations.append(alter.SetColumnComment(self.column, self.field.metadata["comment"]))
        if self.where is not None:
            operations.append(alter.MoveColumn(self.column, self.where))
        return (
            AlterStatement(self.table, tuple(operations)).run(session)
            if operations
            else StatementAnswer(None)
        )


@dataclass(frozen=True, slots=True)
class ReplaceColumnsStatement(SqlStatement):
    """`ALTER TABLE … REPLACE COLUMNS (column TYPE, …)`, which replaces the schema."""

    table: QualifiedName
    fields: tuple[Field, ...]
    by_bytes: frozenset[Path]
    """The paths, in lower case, of the string columns with an explicit default collation."""

    def run(self, session: Session) -> StatementAnswer:
        """Add, drop, change and move columns."""
        schema = session.open(self.table).snapshot.configuration.schema
        operations = tuple(_replacing(schema, StructType(self.fields), (), self.by_bytes))
        if not operations:
            return StatementAnswer(None)
        return AlterStatement(self.table, operations).run(session)


@dataclass(frozen=True, slots=True)
class DropKnownColumnsStatement(SqlStatement):
    """`ALTER TABLE … DROP COLUMN IF EXISTS …`."""

    table: QualifiedName
    columns: tuple[Path, ...]

    def run(self, session: Session) -> StatementAnswer:
        """Remove those columns of the list that exist."""
        schema = session.open(self.table).snapshot.configuration.schema
        known = {path_key(path) for path, _ in walk(schema)}
        paths = [path for path in self.columns if path_key(path) in known]
        if not paths:
            return StatementAnswer(None)
        return AlterStatement(self.table, (alter.DropColumns(paths),)).run(session)


@dataclass(frozen=True, slots=True)
class DropFeatureStatement(SqlStatement):
    """`ALTER TABLE … DROP FEATURE name [TRUNCATE HISTORY]`."""

    table: QualifiedName
    feature: str
    truncates_history: bool

    def run(self, session: Session) -> StatementAnswer:
        """Remove everything that uses the feature from the table, then the feature itself."""
        table = session.open(self.table)
        table.alter.drop_feature(self.feature, truncate_history=self.truncates_history)
        session.note(self.table, table)
        return StatementAnswer(None)


@dataclass(frozen=True, slots=True)
class RenameStatement(SqlStatement):
    """`ALTER TABLE … RENAME TO …`, for a table in a catalog."""

    table: QualifiedName
    to: QualifiedName

    def run(self, session: Session) -> StatementAnswer:
        """Rename the table."""
        session.rename(self.table, self.to)
        return StatementAnswer(None)


@dataclass(frozen=True, slots=True)
class LocationStatement(SqlStatement):
    """`ALTER TABLE … SET LOCATION '…'`, for a table in a catalog."""

    table: QualifiedName
    location: str

    def run(self, session: Session) -> StatementAnswer:
        """Set the location of the name to another directory."""
        session.relocate(self.table, self.location)
        return StatementAnswer(None)


def read_alter(reader: StatementReader) -> SqlStatement:
    """Parse a statement after `ALTER`."""
    reader.expect("TABLE")
    table = reader.table()
    for keywords, read in _ACTIONS.items():
        if reader.take(keywords):
            return read(reader, table)
    return reader.fail(f"expected one of {', '.join(_ACTIONS)}")


def read_comment(reader: StatementReader) -> SqlStatement:
    """Parse a statement after `COMMENT`."""
    reader.expect("ON")
    if reader.expect_one("TABLE", "COLUMN") == "TABLE":
        table = reader.table()
        reader.expect("IS")
        text = None if reader.take("NULL") else reader.text()
        return AlterStatement(table, (alter.SetTableDescription(text or ""),))
    *name, column = reader.path()
    if not name:
        reader.fail("expected the column as table.column")
    reader.expect("IS")
    text = None if reader.take("NULL") else reader.text()
    return AlterStatement(QualifiedName(tuple(name)), (alter.SetColumnComment((column,), text),))


def _add_columns(reader: StatementReader, table: QualifiedName) -> SqlStatement:
    if reader.is_at("IF NOT EXISTS"):
        reader.fail(
            "expected a column",
            "; leave out IF NOT EXISTS: DESCRIBE t column fails if it does not exist",
        )
    is_bracketed = reader.is_at("(")
    found = reader.listed(lambda: _read_new_column(reader), is_bracketed=is_bracketed)
    operations: list[Operation[Any]] = []
    together: list[Field] = []
    for number, (parent, field, where) in enumerate(found):
        together.append(field)
        following = found[number + 1] if number + 1 < len(found) else None
        # Columns that are added at the end of the same struct can share one operation.
        if where == "last" and following is not None and following[::2] == (parent, "last"):
            continue
        operations.append(alter.AddColumns(together, parent=parent, where=where))
        together = []
    return AlterStatement(table, tuple(operations))


def _read_new_column(reader: StatementReader) -> tuple[Path, Field, Where]:
    *parent, name = reader.path()
    field = read_definition(reader, name)
    return tuple(parent), field, _read_place(reader) or "last"


def _replace_columns(reader: StatementReader, table: QualifiedName) -> SqlStatement:
    start = reader.word
    by_bytes: set[Path] = set()

    def read() -> Field:
        name = reader.name("a column")
        written = reader.type(*CLAUSES)
        by_bytes.update(path_key((name, *path)) for path in written.by_bytes)
        return read_definition(reader, name, written)

    fields = reader.listed(read)
    reader.check_once(start, [(field.name,) for field in fields])
    return ReplaceColumnsStatement(table, tuple(fields), frozenset(by_bytes))


def _replacing(
    old: StructType, new: StructType, parent: Path, by_bytes: Collection[Path]
) -> Iterator[Operation[Any]]:
    """Return the operations that turn a struct into another; fields of the same name remain.

    Raises:
        InvalidInputError: columns are both added and dropped; Delta Spark refuses this, too.
    """
    known = {name_key(field.name): field for field in old}
    wanted = {name_key(field.name) for field in new}
    added = [field for field in new if name_key(field.name) not in known]
    if added:
        yield alter.AddColumns(added, parent=parent)
    dropped = [(*parent, field.name) for field in old if name_key(field.name) not in wanted]
    if added and dropped:
        raise InvalidInputError(
            f"cannot replace the columns: {[field.name for field in added]} would be added and "
            f"{[path[-1] for path in dropped]} dropped, which could mean a rename; add, "
            "rename and drop columns in separate statements"
        )
    if dropped:
        yield alter.DropColumns(dropped)
    for field in new:
        own = known.get(name_key(field.name))
        if own is not None:
            yield from _changing(own, field, (*parent, own.name), by_bytes)
    order = [*(field for field in old if name_key(field.name) in wanted), *added]
    if [name_key(field.name) for field in order] != [name_key(field.name) for field in new]:
        before: Where = "first"
        for field in new:
            yield alter.MoveColumn((*parent, field.name), before)
            before = ("after", field.name)


def _changing(
    own: Field, field: Field, path: Path, by_bytes: Collection[Path]
) -> Iterator[Operation[Any]]:
    collations = inner_collations(field)
    says = bool(collations) or any(one[: len(path)] == path_key(path) for one in by_bytes)
    if isinstance(own.type, StructType) and isinstance(field.type, StructType):
        yield from _replacing(own.type, field.type, path, by_bytes)
    elif says and collations != inner_collations(own):
        yield alter.SetColumnCollations(path, collations, field.type)
    elif own.type != field.type:
        yield alter.SetColumnType(path, field.type)
    if own.metadata.get("comment") != field.metadata.get("comment"):
        yield alter.SetColumnComment(path, field.metadata.get("comment"))
    if own.nullable and not field.nullable:
        yield alter.SetColumnNotNull(path)
    if field.nullable and not own.nullable:
        yield alter.DropColumnNotNull(path)


def _read_place(reader: StatementReader) -> Where | None:
    if reader.take("FIRST"):
        return "first"
    return ("after", reader.name("a column")) if reader.take("AFTER") else None


def _drop_columns(reader: StatementReader, table: QualifiedName) -> SqlStatement:
    if reader.take("IF EXISTS"):
        paths = reader.listed(reader.path, is_bracketed=reader.is_at("("))
        return DropKnownColumnsStatement(table, tuple(paths))
    is_bracketed = reader.is_at("(")
    paths = reader.listed(reader.path, is_bracketed=is_bracketed)
    return AlterStatement(table, (alter.DropColumns(paths),))


def _rename_column(reader: StatementReader, table: QualifiedName) -> SqlStatement:
    column = reader.path()
    reader.expect("TO")
    return AlterStatement(table, (alter.RenameColumn(column, reader.name()),))


def _rename_table(reader: StatementReader, table: QualifiedName) -> SqlStatement:
    return RenameStatement(table, reader.table())


def _alter_column(reader: StatementReader, table: QualifiedName) -> SqlStatement:
    """Parse columns with TYPE, COMMENT, FIRST, AFTER, SET/DROP NOT NULL or SET/DROP DEFAULT."""
    operations = reader.listed(lambda: _read_change(reader), is_bracketed=False)
    return AlterStatement(table, tuple(operations))


def _read_change(reader: StatementReader) -> Operation[Any]:
    column = reader.path()
    clause = reader.take_one(
        "TYPE", "COMMENT", "SET NOT NULL", "DROP NOT NULL", "SET DEFAULT", "DROP DEFAULT",
        "SYNC IDENTITY",
    )  # fmt: skip
    operation: Operation[Any]
    match clause:
        case "TYPE":
            operation = _retyped(column, reader.type(*CLAUSES))
        case "COMMENT":
            operation = alter.SetColumnComment(column, reader.text("a comment"))
        case "SET NOT NULL":
            operation = alter.SetColumnNotNull(column)
        case "DROP NOT NULL":
            operation = alter.DropColumnNotNull(column)
        case "SET DEFAULT":
            operation = alter.SetColumnDefault(column, reader.source())
        case "DROP DEFAULT":
            operation = alter.SetColumnDefault(column, None)
        case "SYNC IDENTITY":
            operation = alter.SyncIdentity(column[-1])
        case _:
            where = _read_place(reader)
            if where is None:
                if reader.take_one("SET", "DROP"):
                    reader.fail("expected NOT NULL or DEFAULT")
                reader.fail("expected TYPE, COMMENT, FIRST, AFTER, SET or DROP")
            operation = alter.MoveColumn(column, where)
    return operation


def _retyped(column: Path, wanted: WrittenType) -> Operation[Any]:
    if not wanted.collations:
        return alter.SetColumnType(column, wanted.type)
    return alter.SetColumnCollations(column, wanted.collations, wanted.type)


def _change_column(reader: StatementReader, table: QualifiedName) -> SqlStatement:
    """Parse Hive's `old new TYPE [COMMENT 'c'] [FIRST | AFTER c]`, or the form of ALTER COLUMN."""
    column = reader.path()
    if reader.take("COMMENT"):
        return AlterStatement(table, (alter.SetColumnComment(column, reader.text()),))
    if reader.is_at("TYPE") or reader.is_at("FIRST") or reader.is_at("AFTER"):
        reader.take("TYPE")
        where = _read_place(reader)
        if where is not None:
            return AlterStatement(table, (alter.MoveColumn(column, where),))
        return AlterStatement(table, (_retyped(column, reader.type(*CLAUSES)),))
    name = reader.name("the column's new name")
    if name_key(name) != name_key(column[-1]):
        reader.fail("expected the old name again; to rename, use ALTER TABLE … RENAME COLUMN")
    written = reader.type(*CLAUSES)
    field = read_definition(reader, name, written)
    return ChangeColumnStatement(table, column, field, written.collations, _read_place(reader))


def _set(reader: StatementReader, table: QualifiedName) -> SqlStatement:
    if reader.take("LOCATION"):
        return LocationStatement(table, reader.text("a location"))
    reader.expect("TBLPROPERTIES")
    properties = read_properties(reader)
    return AlterStatement(table, (alter.SetTableProperties(properties),))


def _unset(reader: StatementReader, table: QualifiedName) -> SqlStatement:
    reader.expect("TBLPROPERTIES")
    is_lenient = reader.take("IF EXISTS")
    keys = reader.listed(lambda: read_key(reader))
    operation = alter.UnsetTableProperties(keys, raise_if_not_exists=not is_lenient)
    return AlterStatement(table, (operation,))


def _add_constraint(reader: StatementReader, table: QualifiedName) -> SqlStatement:
    name = reader.name("the name of a constraint")
    reader.expect("CHECK")
    return AlterStatement(table, (alter.AddConstraints({name: reader.bracketed_source()}),))


def _drop_constraint(reader: StatementReader, table: QualifiedName) -> SqlStatement:
    is_lenient = reader.take("IF EXISTS")
    name = reader.name("the name of a constraint")
    return AlterStatement(table, (alter.DropConstraint(name, not is_lenient),))


def _cluster_by(reader: StatementReader, table: QualifiedName) -> SqlStatement:
    columns = read_clustering(reader)
    return AlterStatement(table, (alter.SetClusteringColumns(columns or None),))


def _drop_feature(reader: StatementReader, table: QualifiedName) -> SqlStatement:
    word = reader.word
    feature = reader.text() if word.kind == "text" else reader.name("a table feature")
    return DropFeatureStatement(table, feature, reader.take("TRUNCATE HISTORY"))


_ACTIONS: Mapping[str, Callable[[StatementReader, QualifiedName], SqlStatement]] = {
    "ADD COLUMNS": _add_columns,
    "ADD COLUMN": _add_columns,
    "ADD CONSTRAINT": _add_constraint,
    "ALTER COLUMN": _alter_column,
    "ALTER": _alter_column,
    "CHANGE COLUMN": _change_column,
    "CHANGE": _change_column,
    "CLUSTER BY": _cluster_by,
    "DROP COLUMNS": _drop_columns,
    "DROP COLUMN": _drop_columns,
    "DROP CONSTRAINT": _drop_constraint,
    "DROP FEATURE": _drop_feature,
    "RENAME COLUMN": _rename_column,
    "RENAME TO": _rename_table,
    "REPLACE COLUMNS": _replace_columns,
    "SET": _set,
    "UNSET": _unset,
}
