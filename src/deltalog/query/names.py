"""Names of tables in SQL: a path, a registered name, or a name in a catalog; versions.

Protocol: none
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from datetime import date, datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.clock import compact_moment, now_ms, utc_moment
from deltalog._util.escaping import path_key
from deltalog.errors import InvalidInputError
from deltalog.expressions import Literal, evaluate, parse_sql, resolve
from deltalog.expressions.render import quote_name
from deltalog.expressions.sql_session import SqlSession
from deltalog.query.lexer import SyntaxProblem, Word, as_written
from deltalog.schema import StructType
from deltalog.schema.check import readable_values

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


PATH_KINDS: Final = frozenset({"delta", "deltalog", "parquet", "iceberg"})
"""If a name has one of these first parts, its second part is a location."""
_FILE_KINDS: Final = frozenset(
    {"avro", "binaryfile", "csv", "json", "orc", "text", "xml", "hudi", "excel"}
)
"""Other formats whose files Spark reads by such a name."""

# Arrow would import pandas, if it is installed, to convert a list.
_ONE_ROW: Final = pa.RecordBatch.from_arrays([pa.nulls(1)], names=["one"])
_PART: Final = re.compile(r"`(?:[^`]|``)+`|[^`.]+")
_NAME: Final = re.compile(rf"(?:{_PART.pattern})(?:\.(?:{_PART.pattern}))*")
Version = int | datetime | str
VERSION_WORDS: Final = {
    **dict.fromkeys(
        ("latest", "newest", "current", "head"),
        "for the latest version, leave VERSION AS OF out",
    ),
    **dict.fromkeys(("earliest", "first", "oldest"), "the first version is 0"),
}
"""Words for a version, which SQL does not have → what to write instead."""


@dataclass(frozen=True, slots=True)
class VersionExpression:
    """An expression for a version or timestamp, which is computed when the statement runs.

    Args:
        is_number: True if the value must be a version, False for a timestamp, None for either.
        sql: the expression, which contains no columns, such as `current_timestamp() - INTERVAL 1
            DAY` or `:v`.
    """

    is_number: bool | None
    sql: str

    def value(self, parameters: Mapping[str, object]) -> Version:
        """Return the value of the expression now.

        Raises:
            InvalidInputError: the SQL is not an expression, or its value has another type.
        """
        if (word := self.sql.strip("`").lower()) in VERSION_WORDS:
            raise InvalidInputError(
                f"cannot read version {as_written(self.sql)}: {VERSION_WORDS[word]}"
            )
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
            kind = {True: "the number of a version", False: "a timestamp such as '2025-01-31'"}
            expected = kind.get(self.is_number, "a version or timestamp")  # type: ignore[arg-type]
            raise InvalidInputError(
                f"cannot read version {as_written(self.sql)}: expected {expected}, found {found!r}"
            )
        version: Any = found
        return version  # type: ignore[no-any-return]  # its type is checked above


@dataclass(frozen=True, slots=True)
class QualifiedName:
    """The name of a table in a statement.

    Args:
        parts: the parts of the name, without quotes, as they are spelled in the statement.
        version: the version: a number, a timestamp as a string or datetime, or an expression that
            is computed later. None means the latest version.
    """

    parts: tuple[str, ...]
    version: Version | VersionExpression | None = None

    @classmethod
    def parse(cls, text: str) -> QualifiedName:
        """Parse a name. Dots separate its parts, and backticks may enclose a part.

        Raises:
            InvalidInputError: the string is not a name.
        """
        if _NAME.fullmatch(text) is None:
            raise InvalidInputError(
                f"expected the name of a table, such as sales or schema.sales, found {text!r}"
            )
        return cls(tuple(unquoted(part[0]) for part in _PART.finditer(text)))

    @property
    def known_version(self) -> Version | None:
        """The version; None if it is the latest version, or is computed only later."""
        return None if isinstance(self.version, VersionExpression) else self.version

    @property
    def location(self) -> str | None:
        """The location in a name of the form ``delta.`location` ``; None for other names."""
        is_path = len(self.parts) == 2 and self.parts[0].lower() in PATH_KINDS
        return self.parts[1] if is_path else None

    @property
    def format(self) -> str | None:
        """The format in such a name, in lower case; None for other names."""
        return None if self.location is None else self.parts[0].lower()

    @property
    def refusal(self) -> str:
        """The reason why a statement cannot read the files of this format; empty if it can.

        ``csv.`x` `` may also be a table in a schema, so the caller searches for the table first.
        """
        first = self.parts[0].lower()
        if len(self.parts) != 2 or first not in _FILE_KINDS | PATH_KINDS - {"delta", "deltalog"}:
            return ""
        delta = as_written(str(QualifiedName(("delta", self.parts[1]))))
        read = "PyIceberg" if first == "iceberg" else "DuckDB or pyarrow"
        return (
            f"statements read Delta tables only; for a Delta table, write {delta}; read other "
            f"files with {read}, and pass the rows as a table, as in sql(query, t=rows)"
        )

    @property
    def key(self) -> tuple[str, ...]:
        """The parts in case-folded form. Two names with equal keys mean the same table."""
        return path_key(self.parts)

    def __str__(self) -> str:
        """Return the name as SQL."""
        return ".".join(map(quote_name, self.parts))


def unquoted(text: str) -> str:
    """Return a name without the backticks around it."""
    return text[1:-1].replace("``", "`") if text[:1] == "`" else text


def on_branch(parts: Sequence[str], branch: str) -> tuple[str, ...]:
    """Return the name of a table's branch, `table@branch`, for `table FOR BRANCH branch`."""
    return (*parts[:-1], f"{parts[-1]}@{branch}")


def version_of(text: str) -> Version:
    """Parse the string after `@`: `v12`, or a timestamp `yyyyMMddHHmmssSSS` in UTC.

    Raises:
        InvalidInputError: the string has neither form.
    """
    if text[:1] in {"v", "V"} and text[1:].isdecimal():
        return int(text[1:])
    try:
        return compact_moment(text)
    except ValueError:
        advice = (
            "for a date or time, write table TIMESTAMP AS OF '2025-01-31'"
            if text.isdecimal()
            else f"for a branch, write table FOR BRANCH {text}, or `table@{text}` in backticks"
        )
        raise InvalidInputError(
            "expected a version after @, such as v12 or 20250131123000000, found "
            f"{text!r}; {advice}"
        ) from None


# --- clauses after the name of a table in a query: a version, options, a sample


_KINDS: Final = ("VERSION", "TIMESTAMP", "SYSTEM_VERSION", "SYSTEM_TIME")
_CONSTANTS: Final = ("TRUE", "FALSE")


@dataclass(frozen=True, slots=True)
class RelationOptions:
    """The clause `WITH (name = value, …)` after the name of a table.

    Args:
        start: the position of the first character of the clause.
        end: the position after the clause.
        values: the name of an option, in lower case → its value as a string.
    """

    start: int
    end: int
    values: Mapping[str, str]


def place_from(words: Sequence[Word], character: int) -> int:
    """Return the index of the first word that begins at or after a character."""
    return bisect_left(words, character, key=attrgetter("start"))


def options_in(words: Sequence[Word]) -> list[RelationOptions]:
    """Return the options of all tables in a query. Only options begin with `WITH (`.

    Raises:
        SyntaxProblem: an option is malformed.
    """
    return [
        _options(words, place)
        for place, word in enumerate(words[:-1])
        if place and word.says("WITH") and words[place + 1].says("(")
    ]


def _options(words: Sequence[Word], start: int) -> RelationOptions:
    values: dict[str, str] = {}
    place = start + 1
    while not values or words[place].says(","):
        name, place = _option_name(words, place + 1)
        place += words[place].says("=")
        sign = "-" if words[place].says("-") else ""
        word = words[place + bool(sign)]
        if word.kind == "text" and not sign:
            found = parse_sql(word.text)
            value = str(found.value) if isinstance(found, Literal) else ""
        elif word.kind == "number" or any(map(word.says, _CONSTANTS)):
            value = f"{sign}{word.text.lower()}"
        else:
            raise SyntaxProblem(word.start, "expected the value of an option: a constant")
        if name in values:
            raise SyntaxProblem(words[start].start, f"expected the option {name!r} once")
        values[name] = value
        place += 1 + bool(sign)
    if not words[place].says(")"):
        raise SyntaxProblem(words[place].start, "expected , or ) after an option")
    return RelationOptions(words[start].start, words[place].end, values)


def _option_name(words: Sequence[Word], place: int) -> tuple[str, int]:
    parts: list[str] = []
    while not parts or words[place].says("."):
        place += bool(parts)
        word = words[place]
        if word.kind == "text" and not parts:
            return word.text[1:-1].lower(), place + 1
        if word.kind not in {"word", "quoted"}:
            raise SyntaxProblem(word.start, "expected the name of an option")
        parts.append(unquoted(word.text))
        place += 1
    return ".".join(parts).lower(), place


def end_of_version(words: Sequence[Word], place: int) -> int:
    """Return the index of the word after the version of a table; `place` if there is no version."""
    start = place + words[place].says("FOR")
    is_version = any(map(words[start].says, _KINDS)) and words[start + 1].says("AS")
    return end_of_value(words, start + 3) if is_version else place


def end_of_sample(words: Sequence[Word], place: int) -> int:
    """Return the index after `TABLESAMPLE (…) [REPEATABLE (…)]`; `place` if it is absent."""
    for keyword in ("TABLESAMPLE", "REPEATABLE"):
        if not words[place].says(keyword) or not words[place + 1].says("("):
            break
        place = _end_of_brackets(words, place + 1)
    return place


def end_of_value(words: Sequence[Word], place: int) -> int:
    """Return the index of the word after a constant, a parameter or a call."""
    place += any(map(words[place].says, ("-", "+", ":")))
    if words[place].kind == "word" and words[place + 1].kind == "text":
        return place + 2
    if not words[place].says("("):
        place += 1
    return _end_of_brackets(words, place) if words[place].says("(") else place


def _end_of_brackets(words: Sequence[Word], place: int) -> int:
    depth = 0
    while words[place].kind != "end":
        depth += words[place].says("(") - words[place].says(")")
        place += 1
        if not depth:
            break
    return place
