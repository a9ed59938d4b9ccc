"""The data types of a Delta table, as values.

Contains types, fields and schemas, and the names of collations. `columns`, `evolve` and `arrow`
contain look-up, changes and conversion.

Protocol: Schema Serialization Format (Primitive Types, Struct Type, Struct Field, Array Type,
Map Type, Variant Type)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, NoReturn, overload

from deltalog._util.argument_types import wrong_argument
from deltalog._util.cached import FrozenDict, FrozenList
from deltalog._util.call_errors import UnknownKeyError, UnknownNameError, changed_by
from deltalog._util.escaping import name_key, printable
from deltalog._util.json import loads
from deltalog._util.lazy_names import higher
from deltalog._util.previews import keeps_nanoseconds
from deltalog._util.similar_names import (
    NoItems,
    similar_to,
    suggests_arguments,
    suggests_arguments_of_init,
)
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.schema.interchange import SchemaPart
from deltalog.schema.primitives import (
    PRIMITIVES,
    Family,
    Primitive,
    as_arrow_type,
    exact_type_of_python,
    primitive_in_sql,
    primitive_named,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# The keys of column metadata that users may set.
GENERATION_EXPRESSION_KEY: Final = "delta.generationExpression"
IDENTITY_START_KEY: Final = "delta.identity.start"
IDENTITY_STEP_KEY: Final = "delta.identity.step"
IDENTITY_ALLOW_EXPLICIT_INSERT_KEY: Final = "delta.identity.allowExplicitInsert"
CURRENT_DEFAULT_KEY: Final = "CURRENT_DEFAULT"
COLLATIONS_KEY: Final = "__COLLATIONS"


@suggests_arguments_of_init
@dataclass(frozen=True, slots=True)
class PrimitiveType(SchemaPart):
    """A type without inner types: `PrimitiveType("long")`, `PrimitiveType("decimal(10,2)")`.

    Raises:
        InvalidInputError: the name is not a primitive type, or the decimal is out of range.

    Protocol: Primitive Types
    """

    type: str

    def __post_init__(self) -> None:
        """Normalise the name: `decimal` becomes `decimal(10,0)`, and `null` becomes `void`."""
        if not isinstance(self.type, str):
            raise _unknown_type(self.type)
        row = PRIMITIVES.get(self.type)
        if row is not None and row.canonical is None:
            return
        row = row or primitive_named(self.type.partition("(")[0])
        name: str | None = None
        if row is not None and row.canonical is not None:
            name = row.canonical(self.type)
        elif row is not None and self.type in row.aliases:
            name = row.name
        if name is None:
            raise _unknown_type(self.type)
        object.__setattr__(self, "type", name)

    @property
    def primitive(self) -> Primitive:
        """Return the type's row in the table of primitive types, which ignores parameters."""
        return PRIMITIVES.get(self.type) or PRIMITIVES[self.type.partition("(")[0]]

    @property
    def parameters(self) -> tuple[str, ...]:
        """Return the parameters in the brackets of the name."""
        _, _, inner = self.type.partition("(")
        return tuple(map(str.strip, inner[:-1].split(","))) if inner else ()

    @property
    def is_decimal(self) -> bool:
        """Whether this is a decimal of any precision."""
        return self.primitive.family is Family.DECIMAL

    @property
    def precision(self) -> int:
        """Return the number of digits of a decimal; raise InvalidInputError for other types."""
        return self._decimal_parameter(0)

    @property
    def scale(self) -> int:
        """Return the number of digits after the point; raise InvalidInputError for other types."""
        return self._decimal_parameter(1)

    def _decimal_parameter(self, place: int) -> int:
        if not self.is_decimal:
            raise InvalidInputError(f"{self.type} has no precision or scale: it is not a decimal")
        return int(self.parameters[place])

    def __str__(self) -> str:
        """Return Spark's short name of the type."""
        return self.type

    def __repr__(self) -> str:
        """Return the Python call that creates the value."""
        return f"PrimitiveType({self.type!r})"


# The types that occur in rules of the protocol or of SQL.
STRING: Final = PrimitiveType("string")
BYTE: Final = PrimitiveType("byte")
SHORT: Final = PrimitiveType("short")
INTEGER: Final = PrimitiveType("integer")
LONG: Final = PrimitiveType("long")
FLOAT: Final = PrimitiveType("float")
DOUBLE: Final = PrimitiveType("double")
BOOLEAN: Final = PrimitiveType("boolean")
BINARY: Final = PrimitiveType("binary")
DATE: Final = PrimitiveType("date")
TIMESTAMP: Final = PrimitiveType("timestamp")
TIMESTAMP_NTZ: Final = PrimitiveType("timestamp_ntz")
TIMESTAMP_NANOS: Final = PrimitiveType("timestamp_nanos")
TIMESTAMP_NANOS_NTZ: Final = PrimitiveType("timestamp_nanos_ntz")
YEAR_TO_MONTH: Final = PrimitiveType("interval year to month")
DAY_TO_SECOND: Final = PrimitiveType("interval day to second")
VOID: Final = PrimitiveType("void")


def decimal_type(precision: int, scale: int) -> PrimitiveType:
    """Return the decimal type with the given number of digits, in total and after the point."""
    return PrimitiveType(f"decimal({precision},{scale})")


@dataclass(frozen=True, slots=True)
class VariantType(SchemaPart):
    """A semi-structured value: a number, a string, an object or a list, which may differ by row.

    Protocol: Variant Type
    """

    @property
    def type(self) -> str:
        """The kind of type: `variant`."""
        return "variant"

    def __str__(self) -> str:
        """Return Spark's short name of the type."""
        return "variant"


@dataclass(frozen=True, slots=True)
class UnknownType(SchemaPart):
    """A type that deltalog does not support; columns of this type cannot be read.

    The schema and the history of such a table can be shown, and the table's metadata is preserved.

    Args:
        name: the name of the type in the schema.
        definition: the type as compact JSON, if it is more than a name.
    """

    name: str
    definition: str | None = None

    def __str__(self) -> str:
        """Return the name as written in the schema."""
        return self.name


@suggests_arguments_of_init
@dataclass(frozen=True, slots=True)
class ArrayType(SchemaPart):
    """A list of values of one type.

    Protocol: Array Type
    """

    element_type: DataType
    contains_null: bool = True

    def __init__(
        self,
        element_type: DataType | str,
        contains_null: bool = True,  # noqa: FBT001, FBT002  # deltalake's signature
    ) -> None:
        """Create the type; the element type may be given by its name."""
        _check("ArrayType", "contains_null", contains_null, bool, "True or False")
        object.__setattr__(self, "element_type", as_type(element_type))
        object.__setattr__(self, "contains_null", contains_null)

    @property
    def type(self) -> str:
        """The kind of type: `array`."""
        return "array"

    def __str__(self) -> str:
        """Return Spark's short name of the type."""
        return f"array<{self.element_type}>"


@suggests_arguments_of_init
@dataclass(frozen=True, slots=True)
class MapType(SchemaPart):
    """Pairs of key and value; keys are never NULL.

    Protocol: Map Type
    """

    key_type: DataType
    value_type: DataType
    value_contains_null: bool = True

    def __init__(
        self,
        key_type: DataType | str,
        value_type: DataType | str,
        value_contains_null: bool = True,  # noqa: FBT001, FBT002  # deltalake's signature
    ) -> None:
        """Create the type; key type and value type may be given by their names."""
        _check("MapType", "value_contains_null", value_contains_null, bool, "True or False")
        object.__setattr__(self, "key_type", as_type(key_type))
        object.__setattr__(self, "value_type", as_type(value_type))
        object.__setattr__(self, "value_contains_null", value_contains_null)

    @property
    def type(self) -> str:
        """The kind of type: `map`."""
        return "map"

    def __str__(self) -> str:
        """Return Spark's short name of the type."""
        return f"map<{self.key_type},{self.value_type}>"


@changed_by("dataclasses.replace(field, …) makes another, and table.alter changes columns")
@suggests_arguments
@dataclass(frozen=True, slots=True)
class Field(NoItems, SchemaPart):
    """A column of a table, or a field of a struct.

    Args:
        name: the logical name; with column mapping, the physical name is in `metadata`.
        type: the type; its name in the protocol or in SQL, in any case, such as `long`, `BIGINT`,
            `decimal(10,2)` or `array<int>`; a pyarrow data type; or Python's `str`, `bool`,
            `float` (a double), `bytes` or `date`.
        nullable: False if the column must not contain NULL.
        metadata: the column metadata, as JSON values; unknown entries are preserved.

    Protocol: Struct Field, Column Metadata
    """

    name: str
    type: DataType
    nullable: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __init__(
        self,
        name: str,
        type: DataType | str,  # noqa: A002  # deltalake's signature
        nullable: bool = True,  # noqa: FBT001, FBT002  # as above
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Create the field; the type may be given by its name, and None means empty metadata."""
        _check("Field", "name", name, str, "a string, such as 'id'")
        _check("Field", "nullable", nullable, bool, "True or False")
        if metadata is not None:
            expected = "a dictionary, such as {'comment': 'text'}"
            _check("Field", "metadata", metadata, Mapping, expected)
            for key in metadata:
                _check("Field", "a key of metadata", key, str, expected)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "type", _type_of_field(name, type))
        object.__setattr__(self, "nullable", nullable)
        advice = "to change columns, use table.alter.set_column_metadata(name, {…})"
        object.__setattr__(self, "metadata", FrozenDict(metadata or {}, advice))

    def comment(self, text: str) -> Field:
        """Return the column with a comment."""
        _check("Field.comment", "text", text, str, "a string")
        return self._with(comment=text)

    def collate(self, collation: str, at: str = "") -> Field:
        """Return the column with a collation for comparing its strings.

        Args:
            collation: the name in SQL, such as `UTF8_LCASE`; the default is `UTF8_BINARY`.
            at: the path to the strings inside the column, such as `element`; empty for the column
                itself.

        Raises:
            InvalidInputError: the collation does not exist.

        Protocol: Specifying collations in the table schema
        """
        identifier = collation_named(collation)
        path = f"{self.name}.{at}" if at else self.name
        before = self.metadata.get(COLLATIONS_KEY)
        named = dict(before) if isinstance(before, dict) else {}
        named.pop(path, None)
        if identifier != BY_BYTES:
            named[path] = identifier
        kept = {key: entry for key, entry in self.metadata.items() if key != COLLATIONS_KEY}
        return replace(self, metadata={**kept, COLLATIONS_KEY: named} if named else kept)

    def default(self, expression: str) -> Field:
        """Return the column with a default value, for writes that omit the column.

        Args:
            expression: Spark SQL that uses no column, such as `0` or `current_timestamp()`.

        Protocol: Default Columns
        """
        expected = "SQL as a string, such as '0' or \"'a'\""
        _check("Field.default", "expression", expression, str, expected)
        return self._with(**{CURRENT_DEFAULT_KEY: expression})

    def generated_as(self, expression: str) -> Field:
        """Return the column as a generated column, which is computed from other columns.

        Args:
            expression: Spark SQL over other columns, such as `CAST(at AS DATE)`.

        Protocol: Generated Columns
        """
        expected = "SQL as a string, such as 'CAST(at AS DATE)'"
        _check("Field.generated_as", "expression", expression, str, expected)
        return self._with(**{GENERATION_EXPRESSION_KEY: expression})

    def identity(self, start: int = 1, step: int = 1, *, always: bool = True) -> Field:
        """Return the column, of type long, as an identity column, which numbers new rows.

        Args:
            start: the first number.
            step: the difference between successive numbers, not 0.
            always: whether only the table assigns the numbers; if False, writes may provide
                numbers.

        Protocol: Identity Columns
        """
        for name, value in (("start", start), ("step", step)):
            _check("Field.identity", name, value, int, "a whole number, such as 1")
        entries = {IDENTITY_START_KEY: start, IDENTITY_STEP_KEY: step}
        return self._with(**entries, **{IDENTITY_ALLOW_EXPLICIT_INSERT_KEY: not always})

    def _with(self, **entries: Any) -> Field:
        return replace(self, metadata={**self.metadata, **entries})

    def __str__(self) -> str:
        """Return the column as a line of SQL DDL."""
        named = self.metadata.get(COLLATIONS_KEY)
        collation = named.get(self.name) if isinstance(named, dict) else None
        collate = "" if collation is None else f" collate {name_in_sql(str(collation))}"
        not_null = "" if self.nullable else " not null"
        return f"{printable(self.name)}: {self.type}{collate}{not_null}"

    def __repr__(self) -> str:
        """Return the Python call that creates the field, without default arguments."""
        nullable = "" if self.nullable else ", nullable=False"
        metadata = f", metadata={self.metadata!r}" if self.metadata else ""
        return f"Field({self.name!r}, {self.type!r}{nullable}{metadata})"


@dataclass(frozen=True, slots=True)
class StructType(SchemaPart):
    """Named fields in order.

    Protocol: Struct Type
    """

    fields: tuple[Field, ...] = ()
    _by_folded: dict[str, list[Field]] | None = field(
        default=None, init=False, repr=False, compare=False
    )

    def __init__(self, fields: Sequence[Field | tuple[str, Any]] | Mapping[str, Any] = ()) -> None:
        """Create the type of fields, of pairs `(name, type)`, or of a dictionary, name to type."""
        expected = "a list of fields, such as [Field('id', 'long')]"
        _check(type(self).__name__, "fields", fields, Iterable, expected)
        given = FrozenList(fields)
        for one in given:
            # Check in this order, because schemas have many fields.
            if type(one) is not Field and not isinstance(one, Field):
                given = FrozenList(_fields_of(type(self).__name__, fields, given))
                break
        object.__setattr__(self, "fields", given)
        object.__setattr__(self, "_by_folded", None)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle only the fields."""
        return type(self), (self.fields,)

    @property
    def type(self) -> str:
        """`struct`, the kind of type."""
        return "struct"

    def fields_named(self, name: str) -> Sequence[Field]:
        """Return the fields with exactly this name or, if none, those that differ only in case.

        Cost: one pass over the fields for all calls together.
        """
        index = self._by_folded
        if index is None:
            index = {}
            for column in self.fields:
                index.setdefault(name_key(column.name), []).append(column)
            object.__setattr__(self, "_by_folded", index)
        found = index.get(name_key(name), [])
        return [column for column in found if column.name == name] or found

    @property
    def names(self) -> tuple[str, ...]:
        """Return the fields' names, in order. The tuple is also equal to a list of the names."""
        return FrozenList(column.name for column in self.fields)

    def __iter__(self) -> Iterator[Field]:
        """Return the fields, in order."""
        return iter(self.fields)

    def __len__(self) -> int:
        """Return the number of fields."""
        return len(self.fields)

    def __contains__(self, item: object) -> bool:
        """Return whether the struct has a field, or a field with this name in any case."""
        return bool(self.fields_named(item)) if isinstance(item, str) else item in self.fields

    @overload
    def __getitem__(self, key: int | str) -> Field: ...
    @overload
    def __getitem__(self, key: slice) -> StructType: ...
    def __getitem__(self, key: int | str | slice) -> Field | StructType:
        """Return a field by its number or its name in any case, or a struct of several fields.

        Raises:
            KeyError: no field has the name, or several that differ only in case.
            IndexError: there are fewer fields.
        """
        __tracebackhide__ = True  # IPython does not show this frame
        if isinstance(key, slice):
            return self.with_fields(self.fields[key])
        if not isinstance(key, str):
            return self.fields[key]
        found = self.fields_named(key)
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(repr(one.name) for one in found)
            raise UnknownKeyError(f"several fields are named {key!r} in some case: {names}")
        hint = similar_to(key, self.names) or f": it has {', '.join(self.names[:_MOST_SHOWN])}"
        raise UnknownKeyError(f"a {type(self).__name__} has no field {key!r}{hint}")

    if not TYPE_CHECKING:  # type checkers must report unknown attributes

        def __getattr__(self, name: str) -> NoReturn:
            """Raise an error that says how to get a field, if it has this name."""
            __tracebackhide__ = True  # IPython does not show this frame
            if name[0] != "_" and self.fields_named(name):
                kind = type(self).__name__
                raise UnknownNameError(f"{kind} has no attribute {name!r}: use schema[{name!r}]")
            SchemaPart.__getattr__(
                self, name
            )  # `slots=True` makes another class than `super()` has

    def json(self) -> dict[str, Any]:
        """Return the protocol's JSON as a dictionary."""
        return loads(self.to_json(), "a schema")  # type: ignore[no-any-return]  # the JSON is an object

    def with_fields(self, fields: Sequence[Field]) -> StructType:
        """Return a struct of the same class with other fields."""
        return replace(self, fields=tuple(fields))

    def __str__(self) -> str:
        """Return Spark's short name of the type."""
        inner = ",".join(f"{printable(column.name)}:{column.type}" for column in self.fields)
        return f"struct<{inner}>"

    def __repr__(self) -> str:
        """Return the Python call that creates the value."""
        return f"StructType({list(self.fields)!r})"

    def _repr_html_(self) -> str:
        """Return the HTML for a notebook: a tree of columns."""
        return self._card()


_MOST_SHOWN: Final = 12
"""The number of names in the error about a field that does not exist."""


def _fields_of(called: str, given: object, items: Sequence[Any]) -> list[Field]:
    """Return the fields of a list of pairs or a dictionary."""
    if isinstance(given, Mapping):
        return as_fields(called, "fields", given)
    is_list = isinstance(given, list | tuple)
    if any(
        isinstance(one, list | tuple) or (is_list and hasattr(one, "__arrow_c_schema__"))
        for one in items
    ):
        return as_fields(called, "fields", items)
    raise _no_fields(called, given, next(one for one in items if not isinstance(one, Field)))


def _no_fields(called: str, fields: object, one: object) -> InvalidInputError:
    """Return the error about a sequence whose items are no fields."""
    expected = "a list of fields, such as [Field('id', 'long')]"
    if hasattr(fields, "__arrow_c_schema__"):
        expected += "; Schema.from_arrow(schema) takes a schema of Arrow"
    is_other = isinstance(fields, str | Mapping) or hasattr(fields, "__arrow_c_schema__")
    return wrong_argument(called, "fields", fields if is_other else one, expected)


def _check(called: str, name: str, value: object, kind: type, expected: str) -> None:
    """Raise for an argument of another type. Faster than the check of an annotation."""
    if not isinstance(value, kind):
        raise wrong_argument(called, name, value, expected)


DataType = PrimitiveType | VariantType | UnknownType | ArrayType | MapType | StructType
Schema = StructType


def as_type(value: DataType | str | Any) -> DataType:
    """Return the type that a user names.

    Args:
        value: a type, which is returned unchanged; the name of a type in the protocol or in SQL,
            in any case, such as `long`, `BIGINT` or `array<int>`; a pyarrow data type; or one of
            Python's `str`, `bool`, `float`, `bytes` and `date`, which correspond to one type.

    Raises:
        InvalidInputError: the value names no type.
    """
    if isinstance(value, str):
        try:
            return named_type(value)
        except InvalidInputError:
            return _type_in_sql(value)
    if isinstance(value, DataType):
        return value
    name = exact_type_of_python(value)
    if name is not None:
        return PrimitiveType(name)
    try:
        if (arrow := as_arrow_type(value)) is not None:
            found: DataType = higher("from_arrow_type")(arrow, fine=keeps_nanoseconds())
            return found
    except InvalidInputError:
        pass
    raise _unknown_type(value)


def named_type(name: str) -> DataType:
    """Return the type with exactly this name in the protocol, which is not nested.

    Raises:
        InvalidInputError: the protocol has no such name.
    """
    return VariantType() if name == "variant" else PrimitiveType(name)


def as_fields(called: str, name: str, given: Any) -> list[Field]:
    """Return the fields that a user describes.

    Args:
        called: the function that takes the fields, for errors.
        name: its argument, for errors.
        given: a field or a schema, also of Arrow; a list of fields or of pairs `(name, type)`; a
            dictionary, name to type; or a string as in SQL, such as `id BIGINT NOT NULL, name
            STRING`.

    Raises:
        InvalidInputError: the value describes no fields.
    """
    if isinstance(given, Field):
        return [given]
    if isinstance(given, str):
        return _fields_in_sql(called, name, given)
    if isinstance(given, StructType):
        return list(given.fields)
    if hasattr(given, "__arrow_c_schema__"):
        return _fields_of_arrow(called, name, given)
    items: Any = given.items() if isinstance(given, Mapping) else given
    if not isinstance(items, Iterable):
        raise wrong_argument(called, name, given, _EXPECTED_FIELDS)
    return [_as_field(called, name, given, one) for one in items]


_EXPECTED_FIELDS: Final = (
    "a list of fields or pairs, such as [Field('id', 'long')] or [('id', 'long')], a dictionary, "
    "such as {'id': 'long'}, or a string, such as 'id long, name string'"
)


def _fields_of_arrow(called: str, name: str, given: Any) -> list[Field]:
    """Return the fields of a field or a schema of Arrow; other objects of Arrow have none."""
    if type(given).__name__ == "Field":
        return [Field.from_arrow(given)]
    if type(given).__name__ == "Schema":
        return list(StructType.from_arrow(given).fields)
    raise wrong_argument(called, name, given, _EXPECTED_FIELDS)


def _as_field(called: str, argument: str, given: Any, item: Any) -> Field:
    match item:
        case Field():
            return item
        case _ if hasattr(item, "__arrow_c_schema__"):
            return _fields_of_arrow(called, argument, item)[0]
        case (str() as name, kind) if isinstance(item, tuple):
            return Field(name, kind)
        case str():
            is_sql = " " in item and isinstance(given, list)
            hint = f"; pass one string, {', '.join(map(str, given))!r}" if is_sql else ""
            raise wrong_argument(called, argument, given, _EXPECTED_FIELDS + hint)
    raise wrong_argument(called, argument, item, _EXPECTED_FIELDS)


def _fields_in_sql(called: str, name: str, sql: str) -> list[Field]:
    try:
        parsed: StructType = higher("parse_type")(f"struct<{sql}>")
        reason = "" if parsed.fields else "it is empty"
    except InvalidInputError as error:
        from deltalog.schema.sql_clauses import reason_in_fields  # noqa: PLC0415  # only for errors

        reason = reason_in_fields(sql, error)
    if not reason:
        return list(parsed.fields)
    hint = "; Schema.from_json(text) reads JSON" if sql.lstrip().startswith("{") else ""
    if sql.lstrip().lower().startswith("create "):
        hint = "; deltalog.sql(statement) runs CREATE TABLE"
    raise InvalidInputError(
        f"cannot read the {name} {sql!r} of {called}: expected names and types, such as "
        f"'id long, name string'{hint} ({reason})"
    )


def _type_in_sql(sql: str) -> DataType:
    """Return the type that SQL calls so. The parser is only loaded for types in brackets."""
    word = sql.strip().lower()
    row = primitive_in_sql(word)
    try:
        if row is not None or word.isidentifier():
            return named_type(word if row is None else row.name)
        parsed: DataType = higher("parse_type")(sql)
    except InvalidInputError:
        if "<" in sql:  # the parser's error names the part that is no type
            raise
        raise _unknown_type(sql) from None
    return parsed


def _unknown_type(value: object) -> InvalidInputError:
    from deltalog.schema.primitives.table import as_arrow, unknown_type  # noqa: PLC0415  # only for errors

    return unknown_type(value, _meant_nested(value, as_arrow(value)))


def _meant_nested(value: object, arrow: Any) -> str | None:
    """Return the Python call for a variant or a nested type; None for other values.

    Args:
        value: the type in SQL, or a type of another library.
        arrow: the Arrow type of the other library's type; None if there is none.
    """
    is_sql = isinstance(value, str) and ("<" in value or value.strip().lower() == "variant")
    try:
        if is_sql:
            return _call_of(higher("parse_type")(value))
        if arrow is not None and arrow.num_fields:
            return _call_of(higher("from_arrow_type")(arrow))
    except DeltaError:
        return None
    return None


def _call_of(kind: DataType) -> str:
    match kind:
        case PrimitiveType():
            return repr(kind.type)
        case ArrayType():
            return f"ArrayType({_call_of(kind.element_type)})"
        case MapType():
            return f"MapType({_call_of(kind.key_type)}, {_call_of(kind.value_type)})"
        case StructType():
            fields = (f"Field({one.name!r}, {_call_of(one.type)})" for one in kind)
            return f"StructType([{', '.join(fields)}])"
        case _:
            return repr(kind)


def _type_of_field(name: str, kind: DataType | str) -> DataType:
    """Return the type of a field; the error says if name and type are in the wrong order."""
    try:
        return as_type(kind)
    except InvalidInputError as error:
        from deltalog.schema.primitives.table import named_elsewhere  # noqa: PLC0415  # as above

        is_name = isinstance(kind, str) and kind.isidentifier()
        is_type = primitive_named(name) or primitive_in_sql(name.lower())
        if is_type and is_name and not named_elsewhere(str(kind).lower()):
            raise InvalidInputError(
                f"cannot make a type of {kind!r}: the name comes first: Field({kind!r}, {name!r})"
            ) from None
        raise error.with_message(f"column {name!r}: {error}") from error.__cause__


# --- Names of collations in SQL, and identifiers in schemas


@dataclass(frozen=True, slots=True, kw_only=True)
class CollationRules:
    """How strings are compared: by the bytes of a key, which is derived from each string.

    Args:
        lowers: whether the key is in lower case.
        trims: whether the key omits trailing spaces.
    """

    lowers: bool
    trims: bool


BY_BYTES: Final = "spark.UTF8_BINARY"
"""The default collation, which schemas omit."""
RULES: Final[Mapping[str, CollationRules]] = {
    "spark.UTF8_BINARY_RTRIM": CollationRules(lowers=False, trims=True),
    "spark.UTF8_LCASE": CollationRules(lowers=True, trims=False),
    "spark.UTF8_LCASE_RTRIM": CollationRules(lowers=True, trims=True),
}
RULES_VERSION: Final = "78.3"
"""The version of ICU in Spark 4.2. Its rules for lower case are those of Unicode 17."""

_PROVIDER_OF_SPARK: Final = "spark"
_PROVIDER_OF_ICU: Final = "icu"
_QUALIFIER: Final = ("SYSTEM", "BUILTIN")
_BY_FOLDED: Final = {identifier.lower(): identifier for identifier in (BY_BYTES, *RULES)}
# Modifier → suffix of the collation's name in Spark, in the order of the suffixes. The defaults, CS
# and AS, have no suffix.
_MODIFIERS: Final = {"CI": "_CI", "CS": "", "AI": "_AI", "AS": "", "RTRIM": "_RTRIM"}
_SAME_MODIFIERS: Final = ({"CI", "CS"}, {"AI", "AS"}, {"RTRIM"})
# The locales with a collation in ICU 78, by their names in Spark 4.2.
_NAMES_OF_ICU: Final = """
    UNICODE af am ar ar_SAU as az be bg blo bn bo br bs bs_Cyrl ca ceb chr cs cy da de de_AUT
    dsb dz ee el en en_USA eo es et fa fa_AFG ff ff_Adlm fi fil fo fr fr_CAN fy ga gl gu ha
    haw he he_ISR hi hr hsb hu hy id id_IDN ig is it ja ka kk kk_Arab kl km kn ko kok ku ky lb
    lij lkt ln lo lt lv mk ml mn mr ms mt my nb nb_NOR ne nl nn no nso om or pa pa_Guru
    pa_Guru_IND pl ps pt ro ru sa se si sk sl smn sq sr sr_Cyrl sr_Cyrl_BIH sr_Cyrl_MNE
    sr_Cyrl_SRB sr_Latn sr_Latn_BIH sr_Latn_SRB st sv sw ta te th tk tn to tr ug uk ur uz vi
    wae wo xh yi yo zh zh_Hans zh_Hans_CHN zh_Hans_SGP zh_Hant zh_Hant_HKG zh_Hant_MAC
    zh_Hant_TWN zu
"""
_LOCALES: Final = tuple(_NAMES_OF_ICU.split())
_LOCALE_OF: Final = {locale.upper(): locale for locale in _LOCALES}


def canonical(identifier: str) -> str:
    """Return a known identifier in Spark's spelling, and an unknown identifier unchanged.

    Some writers write identifiers in another case: `SPARK.UTF8_LCASE`.
    """
    return _BY_FOLDED.get(identifier.lower(), identifier)


def collation_named(name: str) -> str:
    """Return the identifier of a collation, given its name in SQL or its identifier.

    Args:
        name: such as `UTF8_LCASE`, `de_CI` or `SYSTEM.BUILTIN.UTF8_LCASE`; case does not matter.

    Raises:
        InvalidInputError: the collation does not exist.
    """
    *qualifier, last = name.split(".")
    is_known = tuple(part.upper() for part in qualifier) in {
        (), _QUALIFIER, (_PROVIDER_OF_SPARK.upper(),), (_PROVIDER_OF_ICU.upper(),),
    }  # fmt: skip
    found = _identified(last.upper()) if is_known else None
    if found is None:
        raise _unknown(name)
    return found


def name_in_sql(identifier: str) -> str:
    """Return the name of a collation in SQL."""
    return identifier.partition(".")[2] or identifier


def versioned(identifier: str) -> str:
    """Return the identifier with the current version of its rules, which statistics contain."""
    return f"{identifier}.{RULES_VERSION}"


def _identified(name: str) -> str | None:
    of_spark = _BY_FOLDED.get(f"{_PROVIDER_OF_SPARK}.{name.lower()}")
    if of_spark is not None:
        return of_spark
    # Try the longest name first, because both `sr_Latn` and `sr` are locales.
    parts = name.split("_")
    for count in range(len(parts), 0, -1):
        locale = _LOCALE_OF.get("_".join(parts[:count]))
        if locale is not None:
            modifiers = _modifiers(parts[count:])
            return None if modifiers is None else f"{_PROVIDER_OF_ICU}.{locale}{modifiers}"
    return None


def _modifiers(parts: list[str]) -> str | None:
    if not set(parts) <= _MODIFIERS.keys():
        return None
    if any(sum(part in same for part in parts) > 1 for same in _SAME_MODIFIERS):
        return None
    return "".join(text for part, text in _MODIFIERS.items() if part in parts)


def _unknown(name: str) -> InvalidInputError:
    names = {name_in_sql(identifier).upper(): name_in_sql(identifier) for identifier in _ALL}
    close = get_close_matches(name.rpartition(".")[2].upper(), names, n=1)
    hint = f"; did you mean {names[close[0]]!r}?" if close else ""
    return InvalidInputError(
        f"there is no collation {name!r}: expected {', '.join(map(name_in_sql, _SPARKS))}, or one "
        f"of ICU such as UNICODE_CI, de or en_USA_AI{hint}"
    )


_SPARKS: Final = (BY_BYTES, *RULES)
_ALL: Final = (
    *_SPARKS,
    *(
        f"{_PROVIDER_OF_ICU}.{locale}{case}{accent}"
        for locale in _LOCALES
        for case in ("", "_CI")
        for accent in ("", "_AI")
    ),
)
