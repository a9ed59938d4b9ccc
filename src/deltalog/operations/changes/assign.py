"""Evaluate the `column = value` assignments of UPDATE and MERGE over whole batches.

This module checks which columns and struct fields may be assigned, casts values to the column's
type, and recomputes generated columns. Values are expressions and constants; they are never
inserted into SQL strings.

Protocol: Generated Columns, Identity Columns
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa

from deltalog._util.escaping import name_key
from deltalog._util.kernels import Array, pc
from deltalog.data.write.enforce import Enforcer
from deltalog.data.write.fit import Fit, first_refused
from deltalog.errors import InvalidInputError
from deltalog.expressions import (
    Column,
    Expression,
    Literal,
    columns,
    evaluate,
    lit,
    parse_sql,
    resolve,
    type_of,
)
from deltalog.expressions.casts import cast_advice
from deltalog.expressions.coercion import is_ordered, is_relabelled
from deltalog.expressions.nodes import Cast, IsNull, col
from deltalog.expressions.sql_session import SqlSession
from deltalog.protocol.features.declarations import generation_expressions
from deltalog.protocol.features.identity_columns import identity_columns
from deltalog.schema import (
    ArrayType,
    Field,
    MapType,
    StructType,
    canonical_path_of,
    find_field,
    to_arrow_type,
)
from deltalog.schema.check import readable_rows, shown_values
from deltalog.schema.columns import walk_types
from deltalog.schema.conform import advice_to_widen
from deltalog.schema.types import TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from deltalog.data.write.options import WriteSpec
    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.schema import DataType

Path = tuple[str, ...]

_NESTED = (StructType, ArrayType, MapType)


@dataclass(frozen=True, slots=True)
class NewValue:
    """The new value of one column or struct field.

    Args:
        expression: the value, resolved against the rows that it reads.
        name: name of the column, for error messages.
        fit: converts a nested value to the column's type by field name; None if `expression`
            already has that type.
    """

    expression: Expression
    name: str
    fit: Fit | None = None

    def compute(self, scope: pa.RecordBatch) -> Array:
        """Return the value for every row."""
        try:
            found: Array = evaluate(self.expression, scope)
        except InvalidInputError as error:
            row = self._refused_row(scope)
            advice = self._advice_to_widen(str(error)) + cast_advice(str(error))
            message = f"cannot compute column {self.name!r}: {error}{row}{advice}"
            note = f"in the new value of column {self.name!r}"
            raise error.with_message(message).with_note(note) from error
        if self.fit is None:
            return found
        (fitted,) = self.fit.apply(pa.record_batch({self.name: found})).values()
        return fitted

    def _advice_to_widen(self, problem: str) -> str:
        """Return how to widen the column, if a number that is assigned to it is out of range."""
        cut = _CUT_NUMBER.match(problem)
        # A cast that the user wrote has a type of its own.
        if (
            not isinstance(self.expression, Cast)
            or cut is None
            or cut[2] != str(self.expression.to)
        ):
            return ""
        return advice_to_widen(Decimal(cut[1]), to_arrow_type(self.expression.to), (self.name,))

    def _refused_row(self, scope: pa.RecordBatch) -> str:
        """Return the first row without a value, for an error; empty if all rows have none."""
        number = first_refused(
            scope, lambda part: evaluate(self.expression, part), InvalidInputError
        )
        if number is None:
            return ""
        (row,) = readable_rows(scope.slice(number, 1))
        # Columns whose old value is not needed are NULL in the scope, whatever the table has.
        read = {path[0] for path in columns(self.expression)}
        shown = shown_values(
            {name: one for name, one in row.items() if one is not None or name in read}
        )
        if list(shown) == [f"c{place}" for place in range(len(shown))]:  # of a query
            return f", in the row {_cut(tuple(shown.values()))}"
        if list(shown) == ["source"]:  # of a merge
            return f", in the row {_cut(shown['source'])} of the source"
        return f", in the row {_cut(shown)}"


_MOST_SHOWN: Final = 200
"""The number of characters of a row that an error shows."""


_CUT_NUMBER: Final = re.compile(r"cannot cast (-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?) to ([^:]+):")


def _cut(row: object) -> str:
    text = repr(row)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


@dataclass(frozen=True, slots=True)
class Fields:
    """New values of some fields of a struct; other fields do not change.

    Args:
        parts: field name → new value.
        is_null: for each row, whether the whole struct becomes NULL; None if never.
    """

    parts: Mapping[str, Node]
    is_null: Expression | None = None


Node = NewValue | Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The rows and settings with which values of assignments are evaluated.

    Args:
        schema: schema of the rows that are passed to `compute`.
        parse: parses a SQL string into an expression over that schema.
        session: the current time and the time zone.
        is_try: whether a value that cannot be cast to the column's type becomes NULL instead of an
            error.
    """

    schema: StructType
    parse: Callable[[str], Expression]
    session: SqlSession
    is_try: bool = False

    @classmethod
    def of_table(cls, schema: StructType, session: SqlSession, *, is_try: bool = False) -> Self:
        """Return the scope of an UPDATE, whose values read the columns of the table."""
        return cls(
            schema=schema,
            parse=lambda text: parse_sql(text, columns=schema.names, quotes_names=True),
            session=session,
            is_try=is_try,
        )

    def value(self, value: object, field: Field, name: str) -> NewValue:
        """Resolve the new value of a column, with a cast to the column's type.

        Raises:
            InvalidInputError: the value is not valid SQL, or has no cast to the column's type.
        """
        try:
            return self._value(value, field.type, name)
        except InvalidInputError as error:
            error.add_note(f"in the new value of column {name!r}")
            if not error.args[0].startswith("cannot cast "):
                raise
            raise error.with_message(f"cannot compute column {name!r}: {error}") from error

    def _value(self, value: object, target: DataType, name: str) -> NewValue:
        raw = self.parse(value) if isinstance(value, str) else lit(value)
        if isinstance(raw, Literal) and isinstance(raw.value, list | tuple | dict | None):
            self._check_moments(raw.value, target)
            raw = Literal(raw.value, target)
        found = resolve(raw, self.schema, self.session)
        source = type_of(found, self.schema)
        # A geometry column accepts a binary value without a cast. An interval column does not
        # accept an integer, although Arrow stores integers and intervals in the same way.
        if source == target or (is_relabelled(source, target) and not is_ordered(target)):
            return NewValue(found, name)
        # Match the fields of structs by name at every depth, because a cast would match them by
        # position.
        if isinstance(source, _NESTED) and isinstance(target, _NESTED):
            arrow = pa.schema([pa.field(name, to_arrow_type(source))])
            fit = Fit(arrow, StructType([Field(name, target)]), time_zone=self.session.time_zone)
            return NewValue(found, name, fit)
        return NewValue(resolve(Cast(found, target, self.is_try), self.schema, self.session), name)

    def _check_moments(self, value: object, target: DataType) -> None:
        """Raise for a nested datetime without a zone, which Arrow would take as UTC."""
        has_zones = any(kind == TIMESTAMP for _, kind in walk_types(target))
        if has_zones and self.session.time_zone != "UTC" and _has_naive(value):
            raise InvalidInputError(
                f"cannot store {value!r} as {target} in the time zone {self.session.time_zone}: it "
                "has a datetime without a time zone; add tzinfo"
            )


def _has_naive(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_has_naive, [*value, *value.values()]))
    if isinstance(value, list | tuple):
        return any(map(_has_naive, value))
    return isinstance(value, datetime) and value.tzinfo is None


class Assignments:
    """The columns that are assigned, and their new values.

    Args:
        schema: schema of the table.
        nodes: new values by column name.

    Attributes:
        names: the columns that change.
    """

    def __init__(self, schema: StructType, nodes: Mapping[str, Node]) -> None:
        self._schema = schema
        self._nodes = nodes
        self.names: tuple[str, ...] = tuple(name for name in schema.names if name in nodes)

    @property
    def columns(self) -> set[Path]:
        """The columns that the values read."""
        return {path for node in self._nodes.values() for path in _columns_of(node)}

    @property
    def replaced(self) -> set[str]:
        """The columns whose old value is not needed, because the whole value is replaced."""
        return {name for name, node in self._nodes.items() if isinstance(node, NewValue)}

    def compute(self, old: pa.RecordBatch, scope: pa.RecordBatch) -> dict[str, Array]:
        """Return the new values by column.

        Args:
            old: the rows before the change, in the table's schema.
            scope: the rows that values read, aligned with `old`.
        """
        return {
            name: _compute(
                self._nodes[name], old.column(name), find_field(self._schema, (name,)).type, scope
            )
            for name in self.names
        }

    def compute_new(self, scope: pa.RecordBatch) -> pa.RecordBatch:
        """Return the assigned columns of rows to insert; fields of structs cannot be assigned."""
        arrays = []
        for name in self.names:
            node = self._nodes[name]
            if isinstance(node, Fields):
                raise InvalidInputError(
                    f"cannot insert single fields of column {name!r}: expected the whole struct"
                )
            arrays.append(node.compute(scope))
        if not arrays:
            rows: Any = pa.Array.from_buffers(pa.struct([]), scope.num_rows, [None], children=[])
            return pa.RecordBatch.from_struct_array(rows)
        return pa.RecordBatch.from_arrays(arrays, names=list(self.names))

    def new_schema(self) -> pa.Schema:
        """Return the schema of the batches that `compute_new` returns."""
        return pa.schema(
            [
                pa.field(name, to_arrow_type(find_field(self._schema, (name,)).type))
                for name in self.names
            ]
        )


def assignments(
    schema: StructType, values: Mapping[str | Path, object], scope: Scope
) -> Assignments:
    """Resolve assignments from a mapping.

    Args:
        schema: schema of the table.
        values: column → SQL string, expression or constant. A dotted path is a field of a struct.
        scope: the rows and settings of evaluation.

    Raises:
        InvalidInputError: a column does not exist, is assigned twice, or is an identity column.
    """
    found: list[tuple[Path, NewValue]] = []
    for key, value in values.items():
        path = canonical_path(schema, key)
        field = find_field(schema, path)
        found.append((path, scope.value(value, field, ".".join(path))))
    nodes: dict[str, Any] = {}
    for path, value in found:
        _put(nodes, path, value)
    check_identities(schema, nodes)
    return Assignments(schema, _frozen(nodes))


def canonical_path(schema: StructType, key: str | Path) -> Path:
    """Return the path of an assigned column in the schema's spelling.

    Raises:
        InvalidInputError: there is no such column, or it is within a list or a map.
    """
    names = {name_key(name) for name in schema.names}
    is_name = isinstance(key, str) and name_key(key) in names
    parts = key if isinstance(key, tuple) else (key,) if is_name else col(key).path
    if len(parts) == 1 and "[" in parts[0] and name_key(parts[0]) not in names:
        raise InvalidInputError(
            f"cannot assign {parts[0]!r}: an element cannot be assigned; assign the whole column "
            f"{parts[0].partition('[')[0]!r}"
        )
    path = canonical_path_of(schema, parts)
    for depth in range(1, len(path)):
        parent = find_field(schema, path[:depth])
        if not isinstance(parent.type, StructType):
            raise InvalidInputError(
                f"cannot assign {'.'.join(path)!r}: {'.'.join(path[:depth])!r} is of type "
                f"{parent.type}, but only fields of structs can be assigned"
            )
    return path


def check_identities(schema: StructType, names: Iterable[str]) -> None:
    """Raise if an identity column of an existing row is assigned.

    Protocol: Identity Columns
    """
    fixed = {column.name for column in identity_columns(schema)}
    given = [name for name in names if name in fixed]
    if given:
        raise InvalidInputError(
            f"cannot assign the identity column(s) {', '.join(map(repr, given))}: identity values "
            "of existing rows cannot be changed"
        )


def star(
    target: StructType, source: StructType, path: Path, names: Sequence[str], scope: Scope
) -> dict[str, Node]:
    """Return the assignments of `UPDATE SET *`: each column from the source column with its name.

    Struct fields that the source lacks do not change.

    Args:
        target: schema of the table.
        source: schema of the source's rows.
        path: path of the source's struct in the scope.
        names: columns of the source to assign; all of them exist in the table.
        scope: the rows and settings of evaluation.
    """
    nodes: dict[str, Node] = {}
    for name in names:
        column = find_field(source, (name,))
        field = find_field(target, (name,))
        nodes[field.name] = _star(field, column, (*path, column.name), scope)
    return nodes


def _star(field: Field, column: Field, path: Path, scope: Scope) -> Node:
    mine, theirs = field.type, column.type
    if isinstance(mine, StructType) and isinstance(theirs, StructType):
        known = {name_key(part.name): part for part in mine}
        given = {name_key(part.name) for part in theirs}
        extra = [part.name for part in theirs if name_key(part.name) not in known]
        if not extra and given < known.keys():
            parts = {
                known[name_key(part.name)].name: _star(
                    known[name_key(part.name)], part, (*path, part.name), scope
                )
                for part in theirs
            }
            return Fields(parts, resolve(IsNull(Column(path)), scope.schema))
    return scope.value(Column(path), field, field.name)


def updating_enforcer(
    spec: WriteSpec, configuration: TableConfiguration, assigned: Iterable[str]
) -> tuple[Enforcer, pa.Schema]:
    """Return the enforcer for changed rows, and the schema of the columns that it accepts.

    Generated columns that are not assigned are recomputed. Assigned generated columns are checked.

    Args:
        spec: describes the table and how files are written.
        configuration: configuration of the table.
        assigned: the columns that change.
    """
    schema = configuration.arrow_schema
    given = set(assigned)
    generated = (
        generation_expressions(configuration.schema)
        if configuration.supports("generatedColumns")
        else {}
    )
    # All columns are nullable here, because an assigned value may be NULL. The enforcer raises for
    # NULL in a NOT NULL column.
    kept = pa.schema(
        [
            field.with_nullable(nullable=True)
            for field in schema
            if field.name in given or field.name not in generated
        ]
    )
    enforcer = Enforcer(
        configuration,
        kept,
        table=spec.store.root,
        time_zone=spec.time_zone,
        now_ms=spec.now_ms,
        keeps_identities=True,
        as_before=set(schema.names) - given - generated.keys(),
    )
    return enforcer, kept


def enforced(
    enforcer: Enforcer, schema: pa.Schema, old: pa.RecordBatch, new: Mapping[str, Array]
) -> pa.RecordBatch:
    """Return the rows with their new values, after the enforcer has completed and checked them.

    Args:
        enforcer: the enforcer from `updating_enforcer`.
        schema: schema of the columns that the enforcer accepts.
        old: the rows before the change.
        new: new values by column.
    """
    arrays = [new[field.name] if field.name in new else old.column(field.name) for field in schema]
    return enforcer.apply(pa.RecordBatch.from_arrays(arrays, schema=schema))


def _compute(node: Node, old: Array, data_type: DataType, scope: pa.RecordBatch) -> Array:
    if isinstance(node, NewValue):
        return node.compute(scope)
    if not isinstance(data_type, StructType):
        raise InvalidInputError(f"cannot assign fields of {data_type}")
    children = []
    for field in data_type:
        part = pc.struct_field(old, field.name)
        inner = node.parts.get(field.name)
        children.append(part if inner is None else _compute(inner, part, field.type, scope))
    mask = None if node.is_null is None else evaluate(node.is_null, scope)
    kind: Any = to_arrow_type(data_type)
    loose = [field.with_nullable(nullable=True) for field in kind]
    made = pa.StructArray.from_arrays(children, fields=loose, mask=mask)
    if made.type == kind:
        return made
    # Change the type without a cast, because a cast raises for NULL in a NOT NULL field. The
    # enforcer checks for NULL later, and its error contains the name of the field.
    parts = [made.field(place) for place in range(made.type.num_fields)]
    return pa.Array.from_buffers(kind, len(made), made.buffers()[:1], children=parts)


def _columns_of(node: Node) -> set[Path]:
    if isinstance(node, NewValue):
        return columns(node.expression)
    found = {path for part in node.parts.values() for path in _columns_of(part)}
    return found if node.is_null is None else found | columns(node.is_null)


def _put(nodes: dict[str, Any], path: Path, value: NewValue) -> None:
    for name in path[:-1]:
        inner = nodes.setdefault(name, {})
        if isinstance(inner, NewValue):
            raise _twice(path)
        nodes = inner
    if path[-1] in nodes:
        raise _twice(path)
    nodes[path[-1]] = value


def _twice(path: Path) -> InvalidInputError:
    return InvalidInputError(
        f"cannot assign {'.'.join(path)!r} twice; a struct and its fields also cannot both be "
        "assigned"
    )


def _frozen(nodes: Mapping[str, Any]) -> dict[str, Node]:
    return {
        name: node if isinstance(node, NewValue) else Fields(_frozen(node))
        for name, node in nodes.items()
    }
