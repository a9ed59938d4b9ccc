"""Rows for the verbs of statements: of a query, of a stream, and those fitted to a table's columns.

Protocol: none
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltalog.errors import InvalidInputError, SchemaMismatchError
from deltalog.expressions.coercion import FINE_MOMENTS
from deltalog.expressions.nodes import Cast, Column
from deltalog.names import name_key
from deltalog.query.shown import with_schema
from deltalog.rows.assign import Assignments, Scope
from deltalog.schema import (
    ArrayType,
    Field,
    MapType,
    StructType,
    find_field,
    from_arrow_schema,
)
from deltalog.schema.arrow import told_of_query, type_of_query
from deltalog.schema.conform import conform_array
from deltalog.schema.evolve import merge_schemas
from deltalog.schema.primitives.moments import has_nanoseconds
from deltalog.schema.types import INTEGER
from deltalog.statements.statement import absent_partitions
from deltalog.write.fit import in_microseconds, is_finer, tell_of_cut
from deltalog.write.source import RereadableRows, open_batches

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from deltalog.expressions import Expression
    from deltalog.schema import DataType
    from deltalog.statements.slices import Query
    from deltalog.statements.statement import Session
    from deltalog.table import DeltaTable


class OnceRows:
    """Rows that can be read once: a second query over them is refused, not answered with none.

    Args:
        name: of the rows in statements.
        reader: of the rows.
    """

    def __init__(self, name: str, reader: pa.RecordBatchReader) -> None:
        self._name = name
        self._reader: pa.RecordBatchReader | None = reader

    def taken(self) -> pa.RecordBatchReader:
        """Return the rows.

        Raises:
            InvalidInputError: they were taken before.
        """
        reader, self._reader = self._reader, None
        if reader is None:
            raise InvalidInputError(
                f"cannot read {self._name} again: it is a stream, and its rows were taken; "
                "register a table, such as reader.read_all()"
            )
        return reader


@dataclass(frozen=True, slots=True)
class RowsOfQuery(RereadableRows):
    """The rows of a query, which is answered anew each time that they are asked for."""

    session: Session
    query: Query

    def opened(self) -> pa.RecordBatchReader:
        """Return the rows as a reader."""
        return told_numbers(self.session.select(self.query))


def told_numbers(reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Return the rows of a query with what MERGE must know: that its whole numbers are no months.

    Those of a data frame may be months, as Arrow has no other type for them.
    """
    schema = reader.schema
    for place, part in enumerate(schema):
        if part.type == pa.int32() and type_of_query(part) is None:
            schema = schema.set(place, told_of_query(part, INTEGER))
    return with_schema(reader, schema)


@dataclass(frozen=True, slots=True)
class FittedRows(RereadableRows):
    """Rows in the columns and types of a table: values are stored as Spark assigns them.

    Args:
        rows: in any form that `open_batches` takes.
        table: whose columns and types they get.
        columns: of the table, by the place of the rows' columns; None goes by name.
        constants: column → its value in each row.
        evolves: whether columns and fields stay that the table does not have: by name, or by
            their place those behind the table's.
    """

    rows: Any
    table: DeltaTable
    columns: Sequence[str] | None
    constants: Mapping[str, Expression]
    evolves: bool

    def opened(self) -> pa.RecordBatchReader:
        """Return the rows as a reader.

        Raises:
            SchemaMismatchError: there are more or fewer columns, or others than the table's.
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
        told = reader.schema.names
        scope = Scope.of_table(types, self.table.snapshot.context.session)
        # Values of identity columns may be given here, unlike those of rows that are there.
        found = Assignments(
            schema,
            {
                name: scope.value(
                    self._cast(value, source, find_field(schema, (name,))),
                    find_field(schema, (name,)),
                    name,
                )
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
                        tell_of_cut(told[place])
                    held[place] = in_microseconds(held[place])
                fitted = found.compute_new(pa.RecordBatch.from_arrays(held, source.names))
                columns = [*fitted.columns, *(batch.column(place) for place in extra)]
                # Parts of nested values may still have nanoseconds.
                arrays = [
                    conform_array(column, field.type, column=field.name)
                    for column, field in zip(columns, shown, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=shown)

        return pa.RecordBatchReader.from_batches(shown, batches())

    def _types_of(
        self, source: pa.Schema, target: StructType, values: Mapping[str, Any]
    ) -> StructType:
        """The types of a query's columns: nanoseconds for columns that have them."""
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
        """Return the value of each column of the table, and the places of the rows' other columns.

        Raises:
            SchemaMismatchError: there are more or fewer columns, or others than the table's.
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
                )
        for name, value in self.constants.items():
            values[known.get(name_key(name), name)] = value
        return values | absent_partitions(self.table, values), extra

    def _columns_of(self, given: Sequence[str]) -> Sequence[str]:
        """Return the table's columns for those of the rows, and behind them those that it gains.

        Raises:
            SchemaMismatchError: there are more or fewer, or it has one of the new ones already.
        """
        columns = self.columns
        if columns is None:
            return given
        if len(columns) != len(given) and not (self.evolves and len(columns) < len(given)):
            raise SchemaMismatchError(
                f"cannot insert into {self.table.table_uri}: expected {len(columns)} columns "
                f"({', '.join(columns)}), found {len(given)} ({', '.join(given)})"
            )
        own = {name_key(name) for name in self.table.snapshot.configuration.schema.names}
        new = given[len(columns) :]
        for name in new:
            if name_key(name) in own:
                raise SchemaMismatchError(
                    f"cannot insert into {self.table.table_uri}: rows go by the place of their "
                    f"columns, and the column {name!r} stands behind those of the table, which "
                    "has one of that name; give it another name, or say BY NAME"
                )
            own.add(name_key(name))
        return [*columns, *new]

    def _evolved_schema(self, source: pa.Schema, values: Mapping[str, Any]) -> StructType:
        """Return the table's schema with the fields that structs of the rows have besides."""
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

    def _cast(self, value: Any, source: pa.Schema, field: Field) -> Any:
        """Return a nested value with a cast: without names, fields of structs go by their place."""
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
    """The type of a column with the fields that structs of given values have behind its own."""
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
                        f"cannot insert: fields of structs go by their place, and {field.name!r} "
                        f"stands behind those of {path!r}, which has one of that name; give it "
                        "another name, or say BY NAME"
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
    """The places of the columns with nanoseconds that the table's columns have not."""
    return [
        place
        for place, (field, kind) in enumerate(zip(source, types, strict=True))
        if has_nanoseconds(field.type) and kind.type not in FINE_MOMENTS
    ]


def _check_order(given: DataType, target: DataType, table: str, path: str) -> None:
    """Refuse structs whose fields are those of the table's in another order.

    Delta Spark gives them by their place, even in an INSERT by name: values would change places.
    """
    match given, target:
        case StructType(), StructType():
            names = [[name_key(field.name) for field in one] for one in (given, target)]
            if names[0] != names[1] and sorted(names[0]) == sorted(names[1]):
                raise InvalidInputError(
                    f"cannot insert into {table}: the fields of {path!r} are in the order "
                    f"{names[0]}, and those of the table in {names[1]}; give them in its order"
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
