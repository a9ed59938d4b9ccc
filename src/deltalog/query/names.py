"""Names of tables in SQL: a path, a registered name, or one of a catalog; each may have a version.

Protocol: none
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from deltalog.errors import InvalidInputError
from deltalog.expressions.render import quote_name

PATH_KINDS: Final = frozenset({"delta", "deltalog", "parquet", "iceberg"})
"""The first parts of names whose second part is a location."""

_MOMENT: Final = re.compile(r"[0-9]{17}")
Version = int | datetime | str


@dataclass(frozen=True, slots=True)
class QualifiedName:
    """The name of a table in a statement.

    Args:
        parts: without quotes, in the spelling of the statement.
        version: a number, or a moment as a text or with its zone; None is the latest.
    """

    parts: tuple[str, ...]
    version: Version | None = None

    @property
    def location(self) -> str | None:
        """The location in ``delta.`location` ``; None if this is a name."""
        is_path = len(self.parts) == 2 and self.parts[0].lower() in PATH_KINDS
        return self.parts[1] if is_path else None

    @property
    def format(self) -> str | None:
        """The format before a location, in lower case."""
        return None if self.location is None else self.parts[0].lower()

    @property
    def key(self) -> tuple[str, ...]:
        """The parts without their case, by which names are compared."""
        return tuple(part.lower() for part in self.parts)

    def __str__(self) -> str:
        """The name in SQL."""
        return ".".join(map(quote_name, self.parts))


def version_of(text: str) -> Version:
    """The version after `@`: `v12`, or a moment as `yyyyMMddHHmmssSSS` in UTC.

    Raises:
        InvalidInputError: it is neither.
    """
    if text[:1] in {"v", "V"} and text[1:].isdecimal():
        return int(text[1:])
    try:
        digits = f"{_MOMENT.fullmatch(text) and text}000+0000"
        return datetime.strptime(digits, "%Y%m%d%H%M%S%f%z")
    except ValueError:
        raise InvalidInputError(
            f"expected a version after @, such as v12 or 20250131123000000, found {text!r}"
        ) from None
