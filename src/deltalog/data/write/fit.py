"""Matching the columns of data with the columns of a table.

Columns are matched by name, ignoring case, at every depth. This module defines the allowed type
conversions, and raises the errors for missing and unknown columns. `enforce` adds missing columns
and checks constraints.

Protocol: Schema Serialization Format
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa

from deltalog._util.argument_types import shortened
from deltalog._util.escaping import name_key
from deltalog._util.kernels import Array, compute
from deltalog._util.readable import counted
from deltalog.errors import ConstraintViolationError, InvalidInputError, SchemaMismatchError
from deltalog.schema import (
    ArrayType,
    MapType,
    PrimitiveType,
    StructType,
    VariantType,
    can_store,
    conform_array,
    from_arrow_schema,
    to_arrow_schema,
    to_arrow_type,
)
from deltalog.schema.check import readable_rows, shown_values
from deltalog.schema.columns import walk_types
from deltalog.schema.primitives import Family
from deltalog.schema.primitives.moments import has_nanoseconds, instants, value_or_count
from deltalog.schema.types import BOOLEAN, DATE, DOUBLE, FLOAT, STRING, TIMESTAMP, VOID

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from deltalog.schema import DataType

Path = tuple[str, ...]
_Rows = TypeVar("_Rows", "Array", pa.RecordBatch)

logger: logging.Logger = logging.getLogger(__name__)

_NUMBERS: Final = frozenset({Family.INTEGRAL, Family.FLOATING, Family.DECIMAL})
_VARIANT_PARTS: Final = {"metadata", "value"}
_UTC: Final = "UTC"
# The prefix of pyarrow's names for pandas indexes that have no name.
_NAMELESS_INDEX: Final = "__index_level_"
_INDEX_ADVICE: Final = (
    "DataFrame.reset_index(drop=True) removes a nameless pandas index, and "
    "DataFrame.rename_axis('name') makes it a column of that name"
)


@dataclass(slots=True)
class _Problems:
    """All problems of the data's columns, which are collected for one error."""

    extra: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    partitions: list[str] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    twice: dict[str, None] = field(default_factory=dict)

    def check(self, schema: StructType) -> None:
        found = [
            f"the data has column(s) {_named(self.extra)} that the table lacks"
            if self.extra
            else "",
            f"the data lacks column(s) {_named(self.missing)} that must not be NULL"
            if self.missing
            else "",
            f"the data lacks partition column(s) {_named(self.partitions)}, so that all rows would "
            "go to the partition of NULL; add the column, with NULLs if that is intended"
            if self.partitions
            else "",
            f"the data has column(s) {_named(self.twice)} more than once, ignoring case: rename or "
            "remove all but one"
            if self.twice
            else "",
            *self.types,
        ]
        problems = [text for text in found if text]
        if problems:
            hint = (
                "; schema_mode='merge' (mergeSchema on Spark) adds new columns"
                if self.extra
                else ""
            )
            if any(map(_is_nameless_index, self.extra)):
                others = not all(map(_is_nameless_index, self.extra))
                hint = f"{hint if others else ''}; {_INDEX_ADVICE}"
            raise SchemaMismatchError(
                f"cannot write the data: {'; '.join(problems)}; the table's columns are "
                f"{_named(schema.names)}{hint}"
            )


def check_index(schema: pa.Schema, known: Iterable[str], doing: str) -> None:
    """Raise if a write would add the nameless index of a pandas DataFrame as a column.

    Columns of this name from elsewhere, such as from a table that has one, are accepted.

    Args:
        schema: the schema of the data, with the metadata of pandas.
        known: see `check_new_columns`.
        doing: see `check_new_columns`.

    Raises:
        SchemaMismatchError: it would.
    """
    if b"pandas" in (schema.metadata or {}):
        check_new_columns(schema.names, known, doing)


def check_new_columns(names: Iterable[str], known: Iterable[str], doing: str) -> None:
    """Raise if a new column has the name that pandas gives to a nameless index.

    Args:
        names: the columns of the data.
        known: the columns of the table; a table that has such a column keeps it.
        doing: what is attempted, such as `write the data`.

    Raises:
        SchemaMismatchError: one has.
    """
    own = {name_key(name) for name in known}
    extra = [name for name in names if _is_nameless_index(name) and name_key(name) not in own]
    if extra:
        raise SchemaMismatchError(
            f"cannot {doing}: {_named(extra)} would be a new column, from an index without a name, "
            f"as after pandas.concat or a filter; {_INDEX_ADVICE}"
        )


def _is_nameless_index(name: str) -> bool:
    return name.startswith(_NAMELESS_INDEX)


class Fit:
    """Converts batches of one schema to the columns of a table.

    Args:
        source: schema of the data.
        schema: logical schema of the table.
        optional: NOT NULL or partition columns that may be missing in the data, because their
            values are computed.
        partition_columns: partition columns, which the data must have.
        time_zone: the zone for converting `timestamp_ntz` values to `timestamp` columns.
        casts: whether top-level columns are cast by ANSI rules: strings to numbers, dates and other
            types, numbers to strings, and decimals to floating-point numbers and back. A value that
            cannot be cast is an error.

    Attributes:
        missing: columns of the table that the data lacks, in the table's order.
        counts_rows: whether an error names the row of its value, because the batches are all rows
            of the data, in order.

    Raises:
        SchemaMismatchError: columns are unknown, missing, duplicate, or of a type that cannot be
            stored in the column; the message lists all problems.
    """

    def __init__(
        self,
        source: pa.Schema,
        schema: StructType,
        *,
        optional: Collection[str] = (),
        partition_columns: Collection[str] = (),
        time_zone: str,
        casts: bool = False,
    ) -> None:
        self._zone = time_zone
        self.counts_rows = False
        self._num_rows = 0
        incoming = from_arrow_schema(source, declared=True)
        problems = _Problems()
        self._casts = _casts(incoming, schema, time_zone) if casts else {}
        supplied = _match_struct(
            incoming, schema, (), problems, frozenset(optional), cast_columns=self._casts
        )
        problems.partitions += [
            name
            for name in partition_columns
            if name not in supplied and name not in optional and name not in problems.missing
        ]
        if time_zone != _UTC:
            _check_nested_moments(incoming, schema, supplied, problems)
        problems.check(schema)
        arrow = to_arrow_schema(schema)
        self._types = tuple(field.type for field in source)
        self.missing: tuple[str, ...] = tuple(name for name in schema.names if name not in supplied)
        self._columns = [
            (
                field.name,
                supplied[field.name],
                _respelled(source.field(supplied[field.name]).type, field.type),
                arrow.field(field.name).type,
            )
            for field in schema
            if field.name in supplied
        ]

    @property
    def supplied(self) -> tuple[str, ...]:
        """Return the columns of the table that are in the data, in the table's order."""
        return tuple(name for name, *_ in self._columns)

    @property
    def sources(self) -> tuple[int, ...] | None:
        """Return, for each table column, its number in the data; None if a column is converted."""
        is_same = all(self._types[number] == target for _, number, _, target in self._columns)
        return tuple(number for _, number, *_ in self._columns) if is_same else None

    def apply(self, batch: pa.RecordBatch) -> dict[str, Array]:
        """Return the batch's values by column name of the table, in the columns' Arrow types.

        Raises:
            SchemaMismatchError: a value cannot be converted without loss.

        Cost: a column that already has the right type is not copied.
        """
        found = {
            name: self._converted(batch.column(number), spelled, target, name)
            for name, number, spelled, target in self._columns
        }
        self._num_rows += batch.num_rows
        return found

    def _converted(self, array: Array, spelled: Any, target: Any, name: str) -> Array:
        """Convert a column; the error of a value names its row if the batches are in order."""
        try:
            return self._convert(array, spelled, target, name)
        except SchemaMismatchError as error:
            row = first_refused(
                array, lambda part: self._convert(part, spelled, target, name), SchemaMismatchError
            )
            if row is None or not self.counts_rows:
                raise
            number = self._num_rows + row + 1
            message = f"{error.args[0]}; in row {number} of the data"
            shown = shortened(value_or_count(array[row]))
            if shown.strip("'") not in message:
                message += f": {shown}"
            raise error.with_message(message) from error

    def _convert(self, array: Array, spelled: Any, target: Any, name: str) -> Array:
        if array.type == target:
            return array
        if isinstance(array.type, pa.UuidType) and target == pa.string():
            # The 16 bytes of a UUID may also be valid, but different, text.
            return pa.array([one and str(one) for one in array.to_pylist()], pa.string())
        if array.type != spelled:
            array = array.view(spelled)
        if name in self._casts:
            return _cast(array, *self._casts[name], name)
        if has_nanoseconds(array.type) and not has_nanoseconds(target):
            array = _truncated(array, name)
        if self._zone != _UTC and _is_naive(array.type) and pa.types.is_timestamp(target):
            array = self._with_zone(array, target)
        return conform_array(array, target, column=name)

    def _with_zone(self, array: Array, target: Any) -> Array:
        if target.tz is None:
            return array
        return instants(array, self._zone)


def first_refused(
    rows: _Rows, convert: Callable[[_Rows], object], error: type[Exception]
) -> int | None:
    """Return the first row that cannot be converted; None if no row can, whatever its value.

    Args:
        rows: an array or a batch.
        convert: converts some of the rows.
        error: what `convert` raises for rows that cannot be converted.

    Cost: about as many conversions as the logarithm of the number of rows.
    """

    def fails(part: _Rows) -> bool:
        try:
            convert(part)
        except error:
            return True
        return False

    if fails(rows.slice(0, 0)):
        return None
    start, count = 0, len(rows)
    while count > 1:
        half = count // 2
        if fails(rows.slice(start, half)):
            count = half
        else:
            start, count = start + half, count - half
    return start


def _casts(
    incoming: StructType, table: StructType, time_zone: str
) -> dict[str, tuple[PrimitiveType, PrimitiveType]]:
    """Return the source type and target type of each table column whose data must be cast."""
    known = {name_key(field.name): field for field in table}
    found: dict[str, tuple[PrimitiveType, PrimitiveType]] = {}
    for column in incoming:
        target = known.get(name_key(column.name))
        if target is None or can_store(column.type, target.type):
            continue
        one, other = column.type, target.type
        if isinstance(one, PrimitiveType) and isinstance(other, PrimitiveType):
            # Arrow casts between strings and timestamps in UTC, so such casts are possible only if
            # the time zone is UTC.
            has_zone = TIMESTAMP in (one, other) and time_zone != _UTC
            if _is_assignable(one, other) and not has_zone:
                found[target.name] = (one, other)
    return found


def _is_assignable(one: PrimitiveType, other: PrimitiveType) -> bool:
    """Whether a cast is implicit: from or to strings, or as in Spark's store assignment."""
    kinds = {one.primitive.family, other.primitive.family}
    if STRING in (one, other):
        left = other if one == STRING else one
        return left == BOOLEAN or left.primitive.family in _NUMBERS | {Family.MOMENT}
    return kinds == {Family.FLOATING, Family.DECIMAL} or (one, other) == (DATE, TIMESTAMP)


def _cast(array: Array, one: PrimitiveType, other: PrimitiveType, name: str) -> Array:
    # Most data has the table's types.
    from deltalog.data.write.exact import change_of  # noqa: PLC0415  # as above

    plain = conform_array(array, to_arrow_type(one), column=name)
    if other == STRING and one.primitive.family is Family.FLOATING:
        _check_no_nan(plain, name)
    source = one
    if one == FLOAT and other.primitive.family is Family.DECIMAL:
        # 1.1 is 1.100000023841858 as a double; the number that was meant has the fewest digits.
        plain, source = plain.cast(pa.string()).cast(pa.float64()), DOUBLE
    try:
        found = _cast_strings_too(plain, source, other)
    except InvalidInputError as error:
        raise SchemaMismatchError(
            f"cannot store {one} values of column {name!r} as {other}: {error}"
        ) from error
    if problem := change_of(plain, found, source, other):
        raise SchemaMismatchError(
            f"cannot store {one} values of column {name!r} as {other} without changing them: "
            f"{problem}"
        )
    return found


def _cast_strings_too(array: Array, one: PrimitiveType, other: PrimitiveType) -> Array:
    """Cast values as SQL does, and timestamps of minutes with an offset, too."""
    from deltalog.data.write.exact import with_seconds  # noqa: PLC0415  # most data fits
    from deltalog.expressions.casts import cast  # noqa: PLC0415  # as above

    try:
        return cast(array, one, other)
    except InvalidInputError:
        if one != STRING or other.primitive.has_zone is None:
            raise
        padded = with_seconds(array)
        if padded.equals(array):
            raise
        return cast(padded, one, other)


def _check_no_nan(array: Array, name: str) -> None:
    """Check that numbers for a column of strings have no NaN, which dataframes use for NULL.

    Raises:
        SchemaMismatchError: a value is NaN.
    """
    if compute.any(compute.is_nan(array)).as_py():
        raise SchemaMismatchError(
            f"cannot store NaN in column {name!r}, which contains strings: use None for missing "
            "values, or the string 'NaN'"
        )


def in_microseconds(array: Array) -> Array:
    """Convert timestamps to microseconds; nanoseconds are truncated."""
    return _floored(array).cast(pa.timestamp("us")).view(pa.timestamp("us", array.type.tz))


def is_finer(array: Array) -> bool:
    """Return whether `in_microseconds` would change values."""
    return not _floored(array).equals(array.view(pa.timestamp("ns")))


def tell_of_cut(name: str) -> None:
    """Log that nanoseconds of a column are truncated."""
    logger.warning(
        "column %r: timestamps are stored in microseconds; nanoseconds were cut off", name
    )


def _floored(array: Array) -> Array:
    # Round in UTC, because the zone is irrelevant. Unlike a cast, `floor_temporal` rounds times
    # before 1970 down.
    plain: Array = array.view(pa.timestamp("ns"))
    floored: Array = compute.floor_temporal(plain, unit="microsecond")
    return floored


def _truncated(array: Array, name: str) -> Array:
    """Convert timestamps to microseconds, the precision of a table; log if values change."""
    if is_finer(array):
        tell_of_cut(name)
    return in_microseconds(array)


def _match_struct(
    incoming: StructType,
    table: StructType,
    path: Path,
    problems: _Problems,
    optional: frozenset[str] = frozenset(),
    *,
    cast_columns: Collection[str] = (),
) -> dict[str, int]:
    """Return the index in the data for each column name of the table."""
    places: dict[str, int] = {}
    known = {name_key(field.name): field for field in table}
    for place, column in enumerate(incoming):
        here = (*path, column.name)
        target = known.get(name_key(column.name))
        if target is None:
            problems.extra.append(".".join(here))
        elif target.name in places:
            other = incoming.fields[places[target.name]].name
            problems.twice |= {".".join((*path, other)): None, ".".join(here): None}
        else:
            places[target.name] = place
            if target.name not in cast_columns:
                _match_type(column.type, target.type, (*path, target.name), problems)
    problems.missing += [
        ".".join((*path, field.name))
        for field in table
        if not field.nullable and field.name not in places and field.name not in optional
    ]
    return places


def _match_type(incoming: DataType, table: DataType, path: Path, problems: _Problems) -> None:
    match incoming, table:
        case StructType(), StructType():
            _match_struct(incoming, table, path, problems)
        case ArrayType(), ArrayType():
            inner = (*path, "element")
            _match_type(incoming.element_type, table.element_type, inner, problems)
        case MapType(), MapType():
            _match_type(incoming.key_type, table.key_type, (*path, "key"), problems)
            _match_type(incoming.value_type, table.value_type, (*path, "value"), problems)
        case StructType(), VariantType() if set(incoming.names) == _VARIANT_PARTS:
            pass
        case _ if table == VOID and incoming != VOID:
            problems.types.append(
                f"column {'.'.join(path)!r} is of type void, because all of its values were NULL "
                f"so far, and cannot store {incoming}; schema_mode='merge' changes its type"
            )
        case _ if not can_store(incoming, table):
            problems.types.append(
                f"column {'.'.join(path)!r} is of type {table} and cannot store {incoming}; cast "
                "the data to that type first"
            )


def _check_nested_moments(
    incoming: StructType, table: StructType, supplied: dict[str, int], problems: _Problems
) -> None:
    """Report nested `timestamp_ntz` values for `timestamp` fields, which would be read as UTC.

    The time zone is only applied to top-level columns.
    """
    for column in table:
        place = supplied.get(column.name)
        if place is None or isinstance(column.type, PrimitiveType):
            continue
        given = incoming.fields[place].type
        if _holds(given, has_zone=False) and _holds(column.type, has_zone=True):
            problems.types.append(
                f"column {column.name!r} has nested times without a zone; add one, because "
                "time_zone only applies to whole columns"
            )


def _holds(data_type: DataType, *, has_zone: bool) -> bool:
    """Whether a type contains timestamps with (or without) a time zone."""
    return any(
        isinstance(found, PrimitiveType) and found.primitive.has_zone is has_zone
        for _, found in walk_types(data_type)
    )


def _respelled(arrow_type: Any, table: DataType) -> Any:
    """Return the Arrow type with nested names in the spelling of the table."""
    match table:
        case StructType() if pa.types.is_struct(arrow_type):
            known = {name_key(field.name): field for field in table}
            fields = []
            for part in arrow_type.fields:
                target = known[name_key(part.name)]
                fields.append(
                    part.with_name(target.name).with_type(_respelled(part.type, target.type))
                )
            return pa.struct(fields)
        case ArrayType() if pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type):
            part = arrow_type.value_field
            kind: Any = pa.list_ if pa.types.is_list(arrow_type) else pa.large_list
            return kind(part.with_type(_respelled(part.type, table.element_type)))
        case MapType() if pa.types.is_map(arrow_type):
            make: Any = pa.map_
            key, item = arrow_type.key_field, arrow_type.item_field
            return make(
                key.with_type(_respelled(key.type, table.key_type)),
                item.with_type(_respelled(item.type, table.value_type)),
            )
        case _:
            return arrow_type


def _is_naive(arrow_type: Any) -> bool:
    return pa.types.is_timestamp(arrow_type) and arrow_type.tz is None


def _named(names: Collection[str]) -> str:
    return ", ".join(repr(name) for name in names)


# --- The error for rows that violate a constraint


_MAX_EXAMPLES: Final = 5
_MOST_COMPARED: Final = 1000


def violation(what: str, name: str, batch: pa.RecordBatch, rows: Array) -> ConstraintViolationError:
    """Return the error for a violated constraint, with examples.

    Args:
        what: the constraint, for the message.
        name: the name of the constraint, or of the column.
        batch: the columns that the examples show.
        rows: numbers of the rows that violate it.
    """
    count = len(rows)
    looked_at = readable_rows(batch.take(rows.slice(0, _MOST_COMPARED)))
    examples = distinct(looked_at)[:_MAX_EXAMPLES]
    shown = ", ".join(map(repr, shown_values(examples)))
    more = "" if len(examples) < _MAX_EXAMPLES or count == len(examples) else ", …"
    return ConstraintViolationError(
        f"cannot write the data: {what} is violated by {count} of "
        f"{counted(batch.num_rows, 'checked row')}: {shown}{more}",
        constraint=name,
        num_rows=count,
        examples=examples,
    )


def distinct(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the distinct rows, by their printed form."""
    return list({repr(row): row for row in rows}.values())
