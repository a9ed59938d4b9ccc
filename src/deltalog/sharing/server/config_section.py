"""Reading a configuration section by section: typed values, defaults, and names that nearly fit.

Owns the words of its errors: each says where, what was expected and what was probably meant, and
never shows a value that may be a secret.
"""

from __future__ import annotations

from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

from deltalog.errors import InvalidInputError
from deltalog.sharing.wire.codec import parse_timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")

_WORDS = {str: "a text", bool: "true or false", int: "a whole number", float: "a number"}


class Section:
    """A mapping of the configuration whose members are taken one by one.

    Args:
        values: what the file has there.
        where: the path of the section (`shares[0].schemas[1]`), for errors.
    """

    def __init__(self, values: object, where: str) -> None:
        if not isinstance(values, dict):
            raise InvalidInputError(f"{where or 'configuration'}: expected a mapping")
        self.values: dict[Any, Any] = values
        self.where = where
        self._known: set[str] = set()

    def path(self, name: str) -> str:
        """Where a member is."""
        return f"{self.where}.{name}" if self.where else name

    def optional(self, name: str, kind: type[T]) -> T | None:
        """A member, or None if it is absent or null."""
        self._known.add(name)
        value = self.values.get(name)
        if value is None:
            return None
        if kind is float and type(value) is int:
            value = float(value)
        if type(value) is not kind:
            raise InvalidInputError(f"{self.path(name)}: expected {_WORDS.get(kind, kind)}")
        return value

    def get(self, name: str, default: T) -> T:
        """A member of the default's type, or the default."""
        value = self.optional(name, type(default))
        return default if value is None else value

    def number(self, name: str, default: int, *, least: int = 1) -> int:
        """A whole number that is not too small."""
        value = self.get(name, default)
        if value < least:
            raise InvalidInputError(f"{self.path(name)}: expected {least} or more")
        return value

    def required(self, name: str, kind: type[T]) -> T:
        """A member that must be there, and not empty."""
        value = self.optional(name, kind)
        if value is None or value == "":
            raise InvalidInputError(
                f"{self.path(name)}: {_WORDS.get(kind, kind)} is missing{self._nearby(name)}"
            )
        return value

    def texts(self, name: str) -> tuple[str, ...] | None:
        """A list of texts; a single text is a list of one. None if it is absent."""
        self._known.add(name)
        value = self.values.get(name)
        if value is None:
            return None
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise InvalidInputError(f"{self.path(name)}: expected a list of texts")
        return tuple(items)

    def moment(self, name: str) -> int | None:
        """A time with a zone, in milliseconds since 1970; None if it is absent."""
        self._known.add(name)
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, datetime):  # YAML and TOML have times of their own
            zoned = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
            return round(zoned.timestamp() * 1000)
        return parse_timestamp(str(value), self.path(name))

    def mapping(self, name: str) -> dict[str, Any]:
        """A mapping as it is; empty if it is absent."""
        value = self.optional(name, dict)
        return {} if value is None else {str(key): item for key, item in value.items()}

    def child(self, name: str, parse: Callable[[Section], T]) -> T | None:
        """What `parse` makes of a section inside this one; None if it is absent."""
        self._known.add(name)
        value = self.values.get(name)
        if value is None:
            return None
        section = Section(value, self.path(name))
        found = parse(section)
        section.finish()
        return found

    def children(self, name: str, parse: Callable[[Section], T]) -> tuple[T, ...]:
        """What `parse` makes of each section of a list; empty if it is absent."""
        self._known.add(name)
        value = self.values.get(name)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise InvalidInputError(f"{self.path(name)}: expected a list")
        found = []
        for index, item in enumerate(value):
            section = Section(item, f"{self.path(name)}[{index}]")
            found.append(parse(section))
            section.finish()
        return tuple(found)

    def finish(self) -> None:
        """Refuse members that nobody asked for."""
        for name in self.values:
            if name in self._known:
                continue
            meant = closest(str(name), self._known)
            raise InvalidInputError(
                f"{self.path(str(name))}: unknown setting{meant or '; known are '}"
                f"{'' if meant else ', '.join(sorted(self._known))}"
            )

    def _nearby(self, name: str) -> str:
        others = [str(key) for key in self.values if str(key) not in self._known]
        found = get_close_matches(name, others, n=1)
        return f"; did you mean it by {found[0]!r}?" if found else ""


def closest(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or nothing if no name is near."""
    by_folded = {one.casefold(): one for one in known}
    found = get_close_matches(name.casefold(), by_folded, n=1)
    return f"; did you mean {by_folded[found[0]]!r}?" if found else ""


def check_unique(names: Iterable[str], where: str) -> None:
    """Refuse names that are the same but for their case (ledger SHARE-CFG-01)."""
    seen: set[str] = set()
    for name in names:
        if name.casefold() in seen:
            raise InvalidInputError(f"{where}: the name {name!r} stands there twice")
        seen.add(name.casefold())
