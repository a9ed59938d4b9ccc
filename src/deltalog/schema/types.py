"""The data types of a Delta table, as values.

Owns the types, their names and their tree. Knows nothing of column mapping rules, evolution or
data: those are `columns`, `evolve` and `arrow`.

Protocol: Schema Serialization Format (Primitive Types, Struct Type, Struct Field, Array Type,
Map Type, Variant Type)
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from deltalog._json import loads
from deltalog.errors import InvalidInputError
from deltalog.escaping import printable
from deltalog.frozen import FrozenList
from deltalog.names import name_key
from deltalog.schema.collation_names import BY_BYTES, collation_named, name_in_sql
from deltalog.schema.interchange import SchemaPart
from deltalog.schema.primitives import (
    PRIMITIVES,
    Family,
    Primitive,
    primitive_named,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

# Column metadata that users declare.
GENERATION_EXPRESSION_KEY: Final = "delta.generationExpression"
IDENTITY_START_KEY: Final = "delta.identity.start"
IDENTITY_STEP_KEY: Final = "delta.identity.step"
IDENTITY_ALLOW_EXPLICIT_INSERT_KEY: Final = "delta.identity.allowExplicitInsert"
CURRENT_DEFAULT_KEY: Final = "CURRENT_DEFAULT"
COLLATIONS_KEY: Final = "__COLLATIONS"


@dataclass(frozen=True, slots=True)
class PrimitiveType(SchemaPart):
    """A type without parts: `PrimitiveType("long")`, `PrimitiveType("decimal(10,2)")`.

    Raises:
        InvalidInputError: the name is none of the protocol's, or the decimal is out of range.

    Protocol: Primitive Types
    """

    type: str

    def __post_init__(self) -> None:
        """Take the one form of a name: `decimal` is `decimal(10,0)`, `null` is `void`."""
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
        """The type's row in the table of primitive types, whatever its parameters."""
        return PRIMITIVES.get(self.type) or PRIMITIVES[self.type.partition("(")[0]]

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters in the brackets of the name."""
        _, _, inner = self.type.partition("(")
        return tuple(map(str.strip, inner[:-1].split(","))) if inner else ()

    @property
    def is_decimal(self) -> bool:
        """Whether this is a decimal of any precision."""
        return self.primitive.family is Family.DECIMAL

    @property
    def precision(self) -> int:
        """Digits of a decimal; InvalidInputError for any other type."""
        return self._decimal_parameter(0)

    @property
    def scale(self) -> int:
        """Digits after the point of a decimal; InvalidInputError for any other type."""
        return self._decimal_parameter(1)

    def _decimal_parameter(self, place: int) -> int:
        if not self.is_decimal:
            raise InvalidInputError(f"{self.type} has no precision or scale: it is no decimal")
        return int(self.parameters[place])

    def __str__(self) -> str:
        """Spark's short name of the type."""
        return self.type

    def __repr__(self) -> str:
        """As it is made."""
        return f"PrimitiveType({self.type!r})"


# The types that rules of the protocol and of SQL are about.
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
    """Return the decimal type of so many digits, so many of them after the point."""
    return PrimitiveType(f"decimal({precision},{scale})")


@dataclass(frozen=True, slots=True)
class VariantType(SchemaPart):
    """A semi-structured value: numbers, texts, objects and lists, different in each row.

    Protocol: Variant Type
    """

    @property
    def type(self) -> str:
        """`variant`, the kind of type."""
        return "variant"

    def __str__(self) -> str:
        """Spark's short name of the type."""
        return "variant"


@dataclass(frozen=True, slots=True)
class UnknownType(SchemaPart):
    """A type that the protocol has and deltalog cannot read: kept by name, refused on reading.

    The schema and the history of such a table can be shown, and its metadata is kept whole.

    Args:
        name: the name in the schema.
        definition: the whole JSON of a type that is more than a name, as compact text.
    """

    name: str
    definition: str | None = None

    def __str__(self) -> str:
        """The name as it stands in the schema."""
        return self.name


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
        """Accept a type's name for the type."""
        object.__setattr__(self, "element_type", as_type(element_type))
        object.__setattr__(self, "contains_null", contains_null)

    @property
    def type(self) -> str:
        """`array`, the kind of type."""
        return "array"

    def __str__(self) -> str:
        """Spark's short name of the type."""
        return f"array<{self.element_type}>"


@dataclass(frozen=True, slots=True)
class MapType(SchemaPart):
    """Pairs of key and value; keys are never null.

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
        """Accept types' names for the types."""
        object.__setattr__(self, "key_type", as_type(key_type))
        object.__setattr__(self, "value_type", as_type(value_type))
        object.__setattr__(self, "value_contains_null", value_contains_null)

    @property
    def type(self) -> str:
        """`map`, the kind of type."""
        return "map"

    def __str__(self) -> str:
        """Spark's short name of the type."""
        return f"map<{self.key_type},{self.value_type}>"


@dataclass(frozen=True, slots=True)
class Field(SchemaPart):
    """One column of a table, or one field of a struct.

    Args:
        name: as shown to users; under column mapping the stored name is in `metadata`.
        type: a type, or its name.
        nullable: False if NULL is refused.
        metadata: column metadata, kept whole; JSON values.

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
        """Accept a type's name for the type, and None for no metadata."""
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "type", as_type(type))
        object.__setattr__(self, "nullable", nullable)
        object.__setattr__(self, "metadata", dict(metadata or {}))

    def comment(self, text: str) -> Field:
        """Return this column with a comment."""
        return self._with(comment=text)

    def collate(self, collation: str, at: str = "") -> Field:
        """Return this column with texts that a collation compares.

        Args:
            collation: by its name in SQL, such as `UTF8_LCASE`; `UTF8_BINARY` is the default.
            at: where the texts are inside the column, such as `element`; empty is the column
                itself.

        Raises:
            InvalidInputError: there is no such collation.

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
        """Return this column with a default value for rows that a write gives none.

        Args:
            expression: Spark SQL that names no column, such as `0` or `current_timestamp()`.

        Protocol: Default Columns
        """
        return self._with(**{CURRENT_DEFAULT_KEY: expression})

    def generated_as(self, expression: str) -> Field:
        """Return this column as one computed from others.

        Args:
            expression: Spark SQL over other columns, such as `CAST(at AS DATE)`.

        Protocol: Generated Columns
        """
        return self._with(**{GENERATION_EXPRESSION_KEY: expression})

    def identity(self, start: int = 1, step: int = 1, *, always: bool = True) -> Field:
        """Return this column, of type long, as one that numbers new rows.

        Args:
            start: first number.
            step: distance to the next one, not 0.
            always: False lets a write bring numbers of its own.

        Protocol: Identity Columns
        """
        entries = {IDENTITY_START_KEY: start, IDENTITY_STEP_KEY: step}
        return self._with(**entries, **{IDENTITY_ALLOW_EXPLICIT_INSERT_KEY: not always})

    def _with(self, **entries: Any) -> Field:
        return replace(self, metadata={**self.metadata, **entries})

    def __str__(self) -> str:
        """The column as a line of SQL DDL."""
        named = self.metadata.get(COLLATIONS_KEY)
        collation = named.get(self.name) if isinstance(named, dict) else None
        collate = "" if collation is None else f" collate {name_in_sql(str(collation))}"
        not_null = "" if self.nullable else " not null"
        return f"{printable(self.name)}: {self.type}{collate}{not_null}"

    def __repr__(self) -> str:
        """As it is made, without what is so by default."""
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

    def __init__(self, fields: Sequence[Field] = ()) -> None:
        """Keep any sequence of fields as a tuple."""
        object.__setattr__(self, "fields", FrozenList(fields))
        object.__setattr__(self, "_by_folded", None)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the fields alone."""
        return type(self), (self.fields,)

    @property
    def type(self) -> str:
        """`struct`, the kind of type."""
        return "struct"

    def fields_named(self, name: str) -> Sequence[Field]:
        """The fields of exactly this name, or else those whose name differs in case only.

        Cost: one pass over the fields for all calls: tables have thousands of columns.
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
        """The fields' names, in order."""
        return tuple(column.name for column in self.fields)

    def __iter__(self) -> Iterator[Field]:
        """The fields, in order."""
        return iter(self.fields)

    def __len__(self) -> int:
        """How many fields."""
        return len(self.fields)

    def json(self) -> dict[str, Any]:
        """Return the protocol's JSON as a dictionary."""
        return loads(self.to_json(), "a schema")  # type: ignore[no-any-return]  # of a struct

    def with_fields(self, fields: Sequence[Field]) -> StructType:
        """Return the same kind of struct with other fields."""
        return replace(self, fields=tuple(fields))

    def __str__(self) -> str:
        """Spark's short name of the type."""
        inner = ",".join(f"{printable(column.name)}:{column.type}" for column in self.fields)
        return f"struct<{inner}>"

    def __repr__(self) -> str:
        """As it is made."""
        return f"StructType({list(self.fields)!r})"

    def _repr_html_(self) -> str:
        """Return the notebook card: a tree of columns."""
        return self._card()


DataType = PrimitiveType | VariantType | UnknownType | ArrayType | MapType | StructType
Schema = StructType


def as_type(value: DataType | str) -> DataType:
    """Return a type from itself or from its name.

    Raises:
        InvalidInputError: it is no type, or the name is none of the protocol's.
    """
    if isinstance(value, str):
        return VariantType() if value == "variant" else PrimitiveType(value)
    if isinstance(value, DataType):
        return value
    raise _unknown_type(value)


def _unknown_type(value: object) -> InvalidInputError:
    from deltalog.schema.primitives.meant import unknown_type  # noqa: PLC0415  # seldom

    return unknown_type(value)
