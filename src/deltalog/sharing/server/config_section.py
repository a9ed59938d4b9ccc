"""Typed access to the sections of a configuration file.

Owns the errors: each says where and what was expected, and suggests the setting that was probably
meant. No error shows a value, which may be a secret.
"""

from __future__ import annotations

from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

from deltalog.errors import InvalidInputError, MalformedMessageError
from deltalog.names import name_key
from deltalog.sharing.wire.codec import parse_timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")

_NULL = "is null; remove the setting for its default, or give it a value"
_WORDS = {str: "a text", bool: "true or false", int: "a whole number"}


class ConfigSection:
    """A mapping of the configuration whose settings are read one by one.

    Args:
        values: of the file.
        where: path of the section (`shares[0].schemas[1]`), for errors.
    """

    def __init__(self, values: object, where: str) -> None:
        if not isinstance(values, dict):
            raise InvalidInputError(f"{where or 'configuration'}: expected a mapping")
        self.values: dict[Any, Any] = values
        self.where = where
        self._known: set[Any] = set()

    def path(self, name: str) -> str:
        """Return the path of a setting."""
        return f"{self.where}.{name}" if self.where else name

    def error(self, name: str, problem: str) -> InvalidInputError:
        """Return the error of a setting."""
        return InvalidInputError(f"{self.path(name)}: {problem}")

    def optional(self, name: str, kind: type[T]) -> T | None:
        """Return a setting, or None if it is absent."""
        value = self._take(name)
        if value is None:
            return None
        if type(value) is not kind:
            raise self.error(name, f"expected {_WORDS.get(kind, kind)}")
        return value

    def get(self, name: str, default: T) -> T:
        """Return a setting of the default's type, or the default."""
        value = self.optional(name, type(default))
        return default if value is None else value

    def number(self, name: str, default: int, *, least: int = 1) -> int:
        """Return a whole number of `least` or more, or the default."""
        value = self.get(name, default)
        if value < least:
            raise self.error(name, f"expected {least} or more")
        return value

    def required(self, name: str, kind: type[T]) -> T:
        """Return a setting that must be present and not empty."""
        value = self.optional(name, kind)
        if value is None or value == "":
            raise self.error(name, f"{_WORDS.get(kind, kind)} is missing{self._nearby(name)}")
        return value

    def texts(self, name: str, *, least: tuple[str, str] | None = None) -> tuple[str, ...] | None:
        """Return a list of texts, which may be a single text; None if it is absent.

        Args:
            name: of the setting.
            least: how many of what are expected at least, in words; None accepts an empty list.
        """
        value = self._take(name)
        if value is None:
            return None
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise self.error(name, "expected a list of texts")
        if least is not None and not items:
            raise self.error(name, f"expected {least[0]} {least[1]} or more")
        return tuple(items)

    def moment(self, name: str) -> int | None:
        """Return a time in milliseconds since 1970, or None if it is absent."""
        value = self._take(name)
        if value is None:
            return None
        try:
            if isinstance(value, datetime):  # of YAML or TOML
                zoned = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
                return round(zoned.timestamp() * 1000)
            return parse_timestamp(str(value))
        except (MalformedMessageError, OverflowError):
            problem = "expected a time such as 2027-01-31T00:00:00Z"
            raise self.error(name, problem) from None

    def mapping(self, name: str) -> dict[str, Any]:
        """Return a mapping as it is; empty if it is absent."""
        found: dict[str, Any] = {}
        for key, item in (self.optional(name, dict) or {}).items():
            if item is None:
                raise self.error(f"{name}.{key}", _NULL)
            found[str(key)] = item
        return found

    def rest(self) -> dict[str, Any]:
        """Return all settings of this section as they are, known or not."""
        return {str(name): self._take(name) for name in self.values}

    def child(self, name: str, parse: Callable[[ConfigSection], T]) -> T | None:
        """Return what `parse` makes of an inner section, or None if it is absent."""
        value = self._take(name)
        return None if value is None else _parse(value, self.path(name), parse)

    def children(self, name: str, parse: Callable[[ConfigSection], T]) -> tuple[T, ...]:
        """Return what `parse` makes of each section of a list; empty if it is absent."""
        value = self._take(name)
        items = [] if value is None else value
        if not isinstance(items, list):
            raise self.error(name, "expected a list")
        return tuple(
            _parse(item, f"{self.path(name)}[{index}]", parse) for index, item in enumerate(items)
        )

    def finish(self) -> None:
        """Refuse settings that were not read, as unknown ones."""
        for name in self.values:
            if name in self._known:
                continue
            names = sorted(map(str, self._known))
            meant = closest(str(name), names)
            known = f"; known are {', '.join(names)}"
            raise self.error(str(name), f"unknown setting{meant or known}")

    def _take(self, name: Any) -> Any:
        self._known.add(name)
        value = self.values.get(name)
        # YAML reads `shares:` without anything behind it as null: whoever wrote it did not mean
        # "no limit".
        if value is None and name in self.values:
            raise self.error(name, _NULL)
        return value

    def _nearby(self, name: str) -> str:
        others = [str(key) for key in self.values if str(key) not in self._known]
        found = get_close_matches(name, others, n=1)
        return f"; did you mean it by {found[0]!r}?" if found else ""


def _parse(values: object, where: str, parse: Callable[[ConfigSection], T]) -> T:
    section = ConfigSection(values, where)
    found = parse(section)
    section.finish()
    return found


def closest(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?`, or an empty text if no name is similar."""
    by_folded = {name_key(one): one for one in known}
    found = get_close_matches(name_key(name), by_folded, n=1)
    return f"; did you mean {by_folded[found[0]]!r}?" if found else ""


def check_unique(names: Iterable[str], where: str) -> None:
    """Refuse names that differ only in their case (ledger SHARE-CFG-01)."""
    seen: set[str] = set()
    for name in names:
        if name_key(name) in seen:
            raise InvalidInputError(f"{where}: the name {name!r} is there twice")
        seen.add(name_key(name))
