"""One primitive type, as a row of the table of types.

Owns the columns of that table; `table` has its rows, and the other files have the codecs that rows
share. Code that treats types differently reads these columns instead of comparing names.

Protocol: Primitive Types
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalog._util.kernels import Array

    Box = tuple[tuple[float, ...], tuple[float, ...]]


class Family(Enum):
    """Groups of types that casts, comparisons and statistics treat alike; `OTHER` is the rest."""

    INTEGRAL = auto()
    FLOATING = auto()
    DECIMAL = auto()
    MOMENT = auto()
    OTHER = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The form of minima and maxima in a file's statistics.

    Args:
        wire: the Arrow type as which `pyarrow.json` reads them; None for the type itself.
        read: converts an array of `wire` to bounds of a given Arrow type, NULL for invalid values;
            None casts the values that fit.
        texts: converts an array to JSON strings, NULL for values that JSON lacks; None casts to
            string.
        stored: converts a minimum or maximum to its JSON value; None omits it. Gets dates and times
            as numbers of days or microseconds, because Python's years end at 9999.
        has_millis: whether writers truncate maxima to milliseconds.

    Protocol: Per-file Statistics
    """

    wire: pa.DataType | None = None
    read: Callable[[Array, pa.DataType], Array] | None = None
    texts: Callable[[Array], Array] | None = None
    stored: Callable[[Any, pa.DataType], Any] = lambda value, _: value
    has_millis: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueCodec:
    """How values are converted and written; types of one kind share a codec.

    Args:
        conform: converts an array to a given Arrow type; returns None if the types are
            incompatible; raises ArrowInvalid if a value does not fit.
        parse: converts strings of partition values to an Arrow type, with the time zone of strings
            that have none; raises ValueError, OverflowError or ArrowInvalid for an invalid string.
        encode: converts a Python value to the string of a partition value of an Arrow type; raises
            TypeError, ValueError or ArithmeticError for an invalid value.
        bounds: the form of bounds in statistics; None if the type has no minimum and maximum.
        box: converts an array to the corners with the least and the greatest coordinates, for types
            with coordinates instead of an order; None if no value has coordinates; raises
            ValueError for a malformed value.
    """

    conform: Callable[[Array, Any], Array | None] = lambda _, __: None
    parse: Callable[[pa.StringArray, pa.DataType, str], Array] | None = None
    encode: Callable[[Any, pa.DataType], str] | None = None
    bounds: Bounds | None = None
    box: Callable[[Array], Box | None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Primitive:
    """One primitive type.

    Args:
        name: in the log, without parameters.
        arrow: from the parameters to the Arrow type that rows of a table have.
        takes: an Arrow type of each kind that the type can store, regardless of unit or width.
        parameters_of: from an Arrow type of these kinds to the parameters of the type that stores
            its values, None if another row does; None for a type without parameters.
        codec: of its values.
        family: whose rules it follows.
        large_arrow: the Arrow type with 64-bit offsets, where it differs.
        canonical: from a name with parameters to the one form that it has, None if they are none;
            InvalidInputError if they are out of range. None for a type without parameters.
        defaults: parameters that SQL may leave out, from the last one on.
        aliases: other names in logs.
        bits: width of a number.
        has_zone: True for an instant, False for a wall-clock time, None without a time of day.
        widens_to: names of the types to which a column may be widened; decimals have a separate
            rule.
        stored_in: names of the types whose columns can store values of this type that fit.
        feature: the table feature that a schema with this type needs.
        sql_words: its names in SQL, in capitals; the first one is written. Empty is `name`.
        suffix: of a number's literal, as the L of 5L.
        literal: converts a Python value to the string in the quotes of a literal such as DATE'…';
            it returns None for a value of another type. None for a type without such literals.
        counted: converts the number of a moment that Python lacks to the string in the quotes of
            such a literal.
        spark_name: in Spark's JSON of schemas, if it is not the log's name.
        name_in_sql: converts its name with parameters to SQL's name; None if SQL has the same
            parameters.
        stored_as: converts the parameters to the Arrow type for writing data files, with the same
            buffers; None is `arrow`.
        check: raises ValueError for values that files must not contain.
        extension: name of the Arrow extension type, if the plain Arrow type does not identify the
            type; it is in the field's metadata, and arrays are plain.
        extension_metadata: converts the parameters to the metadata of the extension type.
        of_extension: converts the metadata of the extension type to the name of a type, or None if
            it is invalid.
        is_declared: whether a user must declare the type; a table created from data never gets it.
        is_opaque: whether expressions pass its values on unchanged and cannot compute with them.
        is_ordered: for an opaque type, whether its values can be compared, in the order of their
            Arrow arrays.
        written: converts the Python value of a constant to SQL, if neither the value nor a word
            before a string determines the type.
        in_spark: whether the Spark edge supports its data.

    Attributes:
        kinds: Arrow's type ids of `takes`.

    Protocol: Primitive Types, Type Widening
    """

    name: str
    arrow: Callable[..., pa.DataType]
    codec: ValueCodec
    takes: tuple[pa.DataType, ...]
    parameters_of: Callable[[Any], tuple[str, ...] | None] | None = None
    family: Family = Family.OTHER
    large_arrow: Callable[[], pa.DataType] | None = None
    canonical: Callable[[str], str | None] | None = None
    defaults: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    bits: int = 0
    has_zone: bool | None = None
    widens_to: frozenset[str] = frozenset()
    stored_in: frozenset[str] = frozenset()
    feature: str = ""
    sql_words: tuple[str, ...] = ()
    suffix: str = ""
    literal: Callable[[Any], str | None] | None = None
    counted: Callable[[int], str] | None = None
    spark_name: str = ""
    name_in_sql: Callable[[str], str] | None = None
    stored_as: Callable[..., pa.DataType] | None = None
    check: Callable[[Array], None] | None = None
    extension: str = ""
    extension_metadata: Callable[..., str] = lambda *_: ""
    of_extension: Callable[[str], str | None] = lambda _: None
    is_declared: bool = False
    is_opaque: bool = False
    is_ordered: bool = False
    written: Callable[[Any], str] | None = None
    in_spark: bool = True
    kinds: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        """Derive columns from others."""
        object.__setattr__(self, "kinds", frozenset(example.id for example in self.takes))
        object.__setattr__(self, "sql_words", self.sql_words or (self.name.upper(),))
        object.__setattr__(self, "spark_name", self.spark_name or self.name)

    @property
    def digits(self) -> int:
        """The maximum number of digits of an integer of this width."""
        return len(str(1 << (self.bits - 1)))

    @property
    def decimal_digits(self) -> int:
        """The digits before the point that a decimal needs for this type to widen to it."""
        return 10 if self.bits <= 32 else 20
