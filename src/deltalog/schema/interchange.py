"""The methods of types that deltalake's users know: to and from JSON and Arrow.

Owns the methods' names alone. The forms are owned by `codec` and `arrow`, which stand on `types`
and therefore below this file; they join in here when the package is imported.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self

from deltalog._util.cached import name_methods_after
from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Callable


class SchemaPart:
    """What a type, a field and a schema have in common: each can be handed over."""

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
        """Return the type, field or schema that a JSON text of the protocol holds.

        Raises:
            InvalidMetadataError: the text is no JSON of a type or field.
            InvalidInputError: it is another kind of type.
        """
        return cls._checked(SchemaPart._from_json(text, cls), text)

    def to_arrow(self, as_large_types: bool = False) -> Any:  # noqa: FBT001, FBT002  # deltalake's signature
        """Return a `pyarrow.Schema`, `Field` or `DataType`, with field metadata.

        Args:
            as_large_types: texts, binaries and lists with 64-bit offsets.

        Raises:
            UnsupportedTypeError: the type is not known.
        """
        return SchemaPart._to_arrow(self, as_large_types)

    @classmethod
    def from_arrow(cls, value: Any) -> Self:
        """Return the type, field or schema that stores data of an Arrow one.

        Anything with `__arrow_c_schema__` will do.

        Raises:
            InvalidInputError: Delta has no such type, or it is another kind of type.
        """
        return cls._checked(SchemaPart._from_arrow(value, cls), value)

    def __arrow_c_schema__(self) -> object:
        """Return the Arrow C data interface, for pyarrow, Polars, DuckDB and others."""
        return self.to_arrow().__arrow_c_schema__()

    def _card(self) -> str:
        # Loaded in notebooks alone: it stands on the types, and they on this file.
        found: str = import_module("deltalog.schema.columns").schema_card(self)
        return found

    @classmethod
    def _checked(cls, value: Any, source: object) -> Self:
        if not isinstance(value, cls):
            raise InvalidInputError(
                f"cannot make a {cls.__name__} of {source!r}: it is a {type(value).__name__}"
            )
        return value
