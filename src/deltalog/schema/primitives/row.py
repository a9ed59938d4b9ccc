"""The columns of the table of primitive types.

`table` contains the rows; the other modules contain the codecs that rows share. Code that treats
types differently reads these columns instead of comparing type names.

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
    """Groups of types with the same rules for casts, comparisons and statistics."""

    INTEGRAL = auto()
    FLOATING = auto()
    DECIMAL = auto()
    MOMENT = auto()
    OTHER = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The format of minimum and maximum values in a file's statistics.

    Args:
        wire: the Arrow type as which `pyarrow.json` reads the values; None means the type itself.
        read: converts an array of `wire` to a given Arrow type, with NULL for invalid values; None
            means a cast that returns NULL for values out of range.
        texts: converts an array to JSON strings, with NULL for values that JSON cannot represent;
            None means a cast to string.
        stored: converts a minimum or maximum to its JSON value, or to None if it must be omitted.
            Dates and times are passed as days or microseconds, because Python's years end at 9999.
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
    """How values are converted and written; similar types have the same codec.

    Args:
        conform: converts an array to a given Arrow type. Returns None if the types are
            incompatible; raises ArrowInvalid if a value is out of range.
        parse: converts strings of partition values to an Arrow type; the third argument is the time
            zone of strings without a zone. Raises ValueError, OverflowError or ArrowInvalid for an
            invalid string.
        encode: converts a Python value to the string of a partition value; the second argument is
            the Arrow type. Raises TypeError, ValueError or ArithmeticError for an invalid value.
        bounds: the format of bounds in statistics; None if the type has no minimum and maximum.
        box: for types that have coordinates and no order: returns the corners of an array's
            bounding box, or None if no value has coordinates. Raises ValueError for a malformed
            value.
    """

    conform: Callable[[Array, Any], Array | None] = lambda _, __: None
    parse: Callable[[pa.StringArray, pa.DataType, str], Array] | None = None
    encode: Callable[[Any, pa.DataType], str] | None = None
    bounds: Bounds | None = None
    box: Callable[[Array], Box | None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Primitive:
    """A primitive type: a row of the table of primitive types.

    Args:
        name: the name in the log, without parameters.
        arrow: returns the Arrow type of values in rows, given the type's parameters.
        takes: the kinds of Arrow types that this type can store, as one example of each kind,
            whose unit and width are irrelevant.
        parameters_of: returns the parameters for an Arrow type of these kinds, or None if another
            row stores it; None for a type without parameters.
        codec: the codec of its values.
        family: the group of types with the same rules.
        large_arrow: the Arrow type with 64-bit offsets, if it is another type.
        canonical: normalises a name with parameters; returns None for an invalid name and raises
            InvalidInputError for parameters out of range. None for a type without parameters.
        defaults: default values of the parameters; SQL may omit the last parameters.
        aliases: other names that occur in logs.
        bits: the width of a number.
        has_zone: True for an instant, False for a local time, None for types without a time of day.
        widens_to: names of the types to which a column may be widened; decimals have their own
            rule.
        stored_in: names of the types whose columns can store values of this type if they are in
            range.
        feature: the table feature that is required for a column of this type.
        sql_words: the names in SQL, in capitals; generated SQL uses the first name. If empty, the
            name is `name`.
        suffix: the suffix of a numeric literal, such as L in 5L.
        literal: converts a Python value to the string in a literal such as DATE'…'; returns None
            for a value of another type. None for a type without such literals.
        counted: converts a date or time that Python cannot represent, given as a number, to the
            string in such a literal.
        spark_name: the name in Spark's JSON of schemas, if it differs from `name`.
        name_in_sql: converts a name with parameters to its name in SQL; None if SQL has the same
            parameters.
        stored_as: returns the Arrow type for writing data files, given the parameters; its values
            have the same buffers as those of `arrow`. None means `arrow`.
        check: raises ValueError for values that data files must not contain.
        extension: the name of the Arrow extension type, if the plain Arrow type is ambiguous. The
            name is in the field's metadata; arrays have the plain type.
        extension_metadata: converts the parameters to the metadata of the extension type.
        of_extension: converts the metadata of the extension type to the name of a type, or to None
            if the metadata is invalid.
        is_declared: whether only users can choose the type; a schema that is inferred from data
            never contains it.
        is_opaque: whether expressions return its values unchanged and cannot compute with them.
        is_ordered: for an opaque type, whether its values can be compared, by the order of Arrow
            arrays.
        written: converts the Python value of a constant to SQL, for types whose constants have an
            explicit form.
        in_spark: whether deltalog's Spark data source supports data of the type.

    Attributes:
        kinds: the Arrow type ids of `takes`.

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
        """Compute the derived columns."""
        object.__setattr__(self, "kinds", frozenset(example.id for example in self.takes))
        object.__setattr__(self, "sql_words", self.sql_words or (self.name.upper(),))
        object.__setattr__(self, "spark_name", self.spark_name or self.name)

    @property
    def digits(self) -> int:
        """Return the maximum number of digits of an integer of this width."""
        return len(str(1 << (self.bits - 1)))

    @property
    def decimal_digits(self) -> int:
        """Return the number of digits before the point that a decimal needs for every value."""
        return 10 if self.bits <= 32 else 20
