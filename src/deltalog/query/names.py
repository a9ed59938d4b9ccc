"""Names of tables in SQL: a path, a registered name, or one of a catalog; each may have a version.

Protocol: none
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.clock import now_ms, utc_moment
from deltalog.errors import InvalidInputError
from deltalog.expressions import evaluate, parse_sql, resolve
from deltalog.expressions.render import quote_name
from deltalog.schema import StructType
from deltalog.schema.readable import readable_values
from deltalog.sql_session import SqlSession

if TYPE_CHECKING:
    from collections.abc import Mapping

PATH_KINDS: Final = frozenset({"delta", "deltalog", "parquet", "iceberg"})
"""The first parts of names whose second part is a location."""

_ONE_ROW: Final = pa.RecordBatch.from_pydict({"one": [1]})
_PART: Final = re.compile(r"`(?:[^`]|``)+`|[^`.]+")
_NAME: Final = re.compile(rf"(?:{_PART.pattern})(?:\.(?:{_PART.pattern}))*")
_MOMENT: Final = re.compile(r"[0-9]{17}")
Version = int | datetime | str


@dataclass(frozen=True, slots=True)
class VersionExpression:
    """A version or a moment that is computed when the statement runs.

    Args:
        is_number: whether it must be a version, or must be a moment; None is either.
        sql: an expression without columns, such as `current_timestamp() - INTERVAL 1 DAY` or `:v`.
    """

    is_number: bool | None
    sql: str

    def value(self, parameters: Mapping[str, object]) -> Version:
        """The version, or the moment.

        Raises:
            InvalidInputError: the expression is none, or it is neither.
        """
        session = SqlSession(now=utc_moment(now_ms()), time_zone="UTC")
        read = parse_sql(self.sql, parameters=parameters)
        found: Any
        (found,) = readable_values(evaluate(resolve(read, StructType(()), session), _ONE_ROW))
        if isinstance(found, date) and not isinstance(found, datetime):
            found = found.isoformat()
        elif isinstance(found, datetime):
            found = found.isoformat() if found.tzinfo is None else found
        is_number = isinstance(found, int)
        is_known = isinstance(found, int | str | datetime) and not isinstance(found, bool)
        if not is_known or self.is_number not in {is_number, None}:
            kind = {True: "the number of a version", False: "a moment such as '2025-01-31'"}
            expected = kind.get(self.is_number, "a version or a moment")  # type: ignore[arg-type]
            raise InvalidInputError(
                f"cannot travel to the version {self.sql}: expected {expected}, found {found!r}"
            )
        version: Any = found
        return version  # type: ignore[no-any-return]  # its type is checked above


@dataclass(frozen=True, slots=True)
class QualifiedName:
    """The name of a table in a statement.

    Args:
        parts: without quotes, in the spelling of the statement.
        version: a number, or a moment as a text or with its zone; None is the latest.
    """

    parts: tuple[str, ...]
    version: Version | VersionExpression | None = None

    @classmethod
    def parse(cls, text: str) -> QualifiedName:
        """The name in a text: dots divide it, backticks quote; other signs stand for themselves.

        Raises:
            InvalidInputError: it is no name.
        """
        if _NAME.fullmatch(text) is None:
            raise InvalidInputError(
                f"expected the name of a table, such as sales or schema.sales, found {text!r}"
            )
        return cls(tuple(unquoted(part[0]) for part in _PART.finditer(text)))

    @property
    def known_version(self) -> Version | None:
        """The version; None is the latest, or one that is not computed yet."""
        return None if isinstance(self.version, VersionExpression) else self.version

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


def unquoted(text: str) -> str:
    """A name without its backticks, if it has some."""
    return text[1:-1].replace("``", "`") if text[:1] == "`" else text


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
