"""The methods of types that deltalake's users know: to and from JSON and Arrow.

Owns only the names of the methods. `codec` and `arrow` implement them; they import `types`, which
imports this file, so they register themselves here when the package is imported.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self

from deltalog._util.cached import name_methods_after
from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Callable


class SchemaPart:
    """Base class of types, fields and schemas: converts them to and from JSON and Arrow."""

    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None:
        """Let errors about arguments name the class that is called."""
        super().__init_subclass__(**options)
        name_methods_after(cls, SchemaPart)

    _to_json: ClassVar[Callable[[Any], str]]
    _from_json: ClassVar[Callable[[str, type[Any]], Any]]
    _to_arrow: ClassVar[Callable[[Any, bool], Any]]
    _from_arrow: ClassVar[Callable[[Any, type[Any]], Any]]

    def to_json(self) -> str:
        """Return the protocol's JSON, in one line."""
        return SchemaPart._to_json(self)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the type, field or schema from the protocol's JSON.

        Raises:
            InvalidMetadataError: the string is not the JSON of a type or field.
            InvalidInputError: it is another kind of type.
        """
        return cls._checked(SchemaPart._from_json(text, cls), text)

    def to_arrow(self, as_large_types: bool = False) -> Any:  # noqa: FBT001, FBT002  # deltalake's signature
        """Return a `pyarrow.Schema`, `Field` or `DataType`, with field metadata.

        Args:
            as_large_types: use 64-bit offsets for strings, binaries and lists.

        Raises:
            UnsupportedTypeError: the type is not known.
        """
        return SchemaPart._to_arrow(self, as_large_types)

    @classmethod
    def from_arrow(cls, value: Any) -> Self:
        """Return the type, field or schema that stores data of an Arrow one.

        Accepts any object with `__arrow_c_schema__`.

        Raises:
            InvalidInputError: Delta has no such type, or it is another kind of type.
        """
        return cls._checked(SchemaPart._from_arrow(value, cls), value)

    def __arrow_c_schema__(self) -> object:
        """Return the Arrow C data interface, for pyarrow, Polars, DuckDB and others."""
        return self.to_arrow().__arrow_c_schema__()

    def _card(self) -> str:
        # Imported late, in notebooks only: it imports the types, which import this file.
        found: str = import_module("deltalog.schema.columns").schema_card(self)
        return found

    @classmethod
    def _checked(cls, value: Any, source: object) -> Self:
        if not isinstance(value, cls):
            raise InvalidInputError(
                f"cannot make a {cls.__name__} of {source!r}: it is a {type(value).__name__}"
            )
        return value
