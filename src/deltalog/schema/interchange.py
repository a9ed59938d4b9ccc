"""Methods of types for conversion to and from JSON and Arrow, as in deltalake.

Contains only the methods. `codec`, `arrow` and `columns` implement them, and add their functions to
`FORMS` when the package is imported. This avoids an import cycle: these modules import `types`,
which imports this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self, TypeVar

from deltalog._util.argument_types import kind_of, with_article, wrong_argument
from deltalog._util.cached import name_methods_after
from deltalog._util.call_errors import UnknownNameError, WrongCallError
from deltalog._util.similar_names import SimilarNames, similar_to
from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Callable

_Function = TypeVar("_Function", bound="Callable[..., Any]")


@dataclass(frozen=True, slots=True)
class Form:
    """A representation of types, fields and schemas.

    Args:
        write: converts a value to this form; its other arguments depend on the form.
        read: converts this form to a value of the expected class; None if this is not possible.
    """

    write: Callable[..., Any]
    read: Callable[[Any, type[Any]], Any] | None = None


FORMS: Final[dict[str, Form]] = {}
"""Name → form: `json`, `arrow` and `card`. The module that implements a form adds it."""


_MEANT: Final = {
    **dict.fromkeys(("to_pyarrow", "to_pandas", "to_polars", "arrow", "as_arrow"), "to_arrow()"),
    **dict.fromkeys(("from_pyarrow", "of_arrow", "from_polars"), "from_arrow(schema)"),
    **dict.fromkeys(("fromJson", "from_string", "loads"), "from_json(text)"),
    **dict.fromkeys(("to_dict", "as_dict", "jsonValue"), "json()"),
    "select": "Schema([schema[name] for name in names])",
    "simpleString": "str(schema)",
    "toDDL": "', '.join(f'{field.name} {field.type}' for field in schema)",
    **dict.fromkeys(("printSchema", "show"), "print(schema)"),
    **dict.fromkeys(("columns", "fieldNames", "field_names", "column_names"), "names"),
    **dict.fromkeys(("field", "find_field", "field_by_name", "get"), "schema[name]"),
    **dict.fromkeys(("keys", "get_all_field_names", "columnNames"), "names"),
    **dict.fromkeys(("items", "values", "get_field_index"), "fields, each with a name and a type"),
    **dict.fromkeys(
        ("add", "append", "insert", "remove", "set", "pop"), "Schema([*schema.fields, Field(…)])"
    ),
    **dict.fromkeys(("dtypes", "types"), "fields, of which each has a type"),
    **dict.fromkeys(("dataType", "data_type", "dtype", "field_type"), "type"),
    **dict.fromkeys(("required", "is_nullable", "null"), "nullable"),
    "doc": "metadata.get('comment')",
    "invariants": "the metadata of fields, under 'delta.invariants'",
    **dict.fromkeys(
        ("with_name", "with_type", "with_nullable", "with_metadata"),
        "dataclasses.replace(field, name=…)",
    ),
}


def _by_any_name(own: str, *names: str) -> Callable[[_Function], _Function]:
    """Decorate a class method so that its argument may have the names of deltalake's classes."""

    def decorated(function: _Function) -> _Function:
        @wraps(function)
        def called(cls: type[Any], *args: Any, **options: Any) -> Any:
            __tracebackhide__ = True  # IPython does not show this frame
            shown = f"{cls.__name__}.{function.__name__}()"
            values = [*args, *(options.pop(name) for name in (own, *names) if name in options)]
            for name in options:
                raise WrongCallError(
                    f"{shown} got an unexpected keyword argument {name!r}; its argument is {own}"
                )
            if len(values) != 1:
                raise WrongCallError(f"{shown} takes 1 argument ({own}), found {len(values)}")
            return function(cls, *values)

        return called  # type: ignore[return-value]  # of the same signature

    return decorated


class _NamesOfParts(type):
    """The metaclass of types and schemas: errors about attributes of classes suggest names."""

    if not TYPE_CHECKING:  # so that type checkers report unknown names

        def __getattr__(cls, name: str) -> NoReturn:
            """Raise an error that names what to use instead."""
            __tracebackhide__ = True  # IPython does not show this frame
            other = _MEANT.get(name)
            hint = f": use {other}" if other else similar_to(name, dir(cls))
            raise UnknownNameError(f"{cls.__name__} has no attribute {name!r}{hint}")


class SchemaPart(SimilarNames, metaclass=_NamesOfParts):
    """Base class of types, fields and schemas: conversion to and from JSON and Arrow."""

    __slots__ = ()
    _meant = _MEANT

    def __init_subclass__(cls, **options: Any) -> None:
        """Show the name of the subclass in errors about arguments."""
        super().__init_subclass__(**options)
        name_methods_after(cls, SchemaPart)

    def to_json(self) -> str:
        """Return the JSON form of the protocol, in one line."""
        found: str = FORMS["json"].write(self)
        return found

    @classmethod
    @_by_any_name("text", "schema_json", "field_json", "type_json")
    def from_json(cls, text: str) -> Self:
        """Parse the JSON form of the protocol to a type, field or schema.

        Raises:
            InvalidMetadataError: the string is not the JSON of a type or field.
            InvalidInputError: the string is the JSON of another class.
        """
        given: object = text
        if not isinstance(given, str | bytes):
            expected = "a string of JSON, such as json.dumps(…) of a dictionary"
            raise wrong_argument(f"{cls.__name__}.from_json", "text", given, expected)
        return cls._read("json", text)

    def to_arrow(self, as_large_types: bool = False) -> Any:  # noqa: FBT001, FBT002  # deltalake's signature
        """Return a `pyarrow.Schema`, `Field` or `DataType`, with field metadata.

        Args:
            as_large_types: whether strings, binaries and lists have 64-bit offsets.

        Raises:
            UnsupportedTypeError: the type is unknown.
        """
        return FORMS["arrow"].write(self, as_large_types)

    @classmethod
    @_by_any_name("value", "data_type", "field", "schema")
    def from_arrow(cls, value: Any) -> Self:
        """Return the type, field or schema that stores data of an Arrow type, field or schema.

        Accepts any object with `__arrow_c_schema__`.

        Raises:
            InvalidInputError: Delta has no such type, or the value belongs to another class.
        """
        return cls._read("arrow", value)

    def __arrow_c_schema__(self) -> object:
        """Return the type in the Arrow C data interface, for pyarrow, Polars, DuckDB and others."""
        return self.to_arrow().__arrow_c_schema__()

    def _card(self) -> str:
        found: str = FORMS["card"].write(self)
        return found

    @classmethod
    def _read(cls, form: str, source: Any) -> Self:
        read = FORMS[form].read
        value = None if read is None else read(source, cls)
        if not isinstance(value, cls):
            raise InvalidInputError(
                f"cannot make {with_article(cls.__name__)} of {source!r}: it is {kind_of(value)}"
            )
        return value
