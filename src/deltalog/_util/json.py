"""Parse and write JSON. Only this module imports orjson.

This module also parses newline-delimited JSON, returns typed members of objects, and has a parser
that returns numbers as they are written in the document.

orjson rejects NaN and Infinity, and rounds integers with more than 64 bits to floats. So documents
with such values are parsed with the standard library.
"""

from __future__ import annotations

import re
from json import JSONDecodeError, JSONDecoder, JSONEncoder  # noqa: TID251 -- only this module
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import orjson

from deltalog.errors import InvalidInputError, MalformedLogError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping

T = TypeVar("T")

# Matches integers of at least 19 digits. The pattern begins with the separator, because a
# look-behind at each digit would take three times as long.
_LONG_NUMBER: Final = re.compile(rb"[:,\[\s]-?\d{19,}(?![\d.eE\"])")
_BARE_NUMBER: Final = b"-0123456789"
_NOT_BLANK: Final = re.compile(r"[^ \t\r\n]")


def _parse_int(text: str) -> int | float:
    """Return the integer; infinity, as for `1e400`, if it has too many digits for Python."""
    try:
        return int(text)
    except ValueError:
        return float(text)


_TOLERANT: Final = JSONDecoder(parse_int=_parse_int)
_COMPACT: Final = JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class Lexeme(str):
    """A number as it is written in the document, such as `1.0`."""

    __slots__ = ()


def loads(data: bytes | str, where: str = "JSON text") -> Any:
    """Parse one JSON document.

    Args:
        data: UTF-8 bytes, or a string.
        where: the name of the document, for errors.

    Raises:
        MalformedLogError: the document is not JSON; the message contains the position.
    """
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if raw[:1] not in _BARE_NUMBER and _LONG_NUMBER.search(raw) is None:
        try:
            return orjson.loads(raw)
        except orjson.JSONDecodeError:
            pass  # the standard library's error contains the position
    text = _decode(raw, where)
    try:
        return _TOLERANT.decode(text)
    except JSONDecodeError as error:
        raise _malformed(where, error) from None
    except RecursionError:
        raise MalformedLogError(f"{where}: nested too deeply") from None


def dumps(value: Any) -> bytes:
    """Return a value as compact JSON in UTF-8, on one line.

    NaN and Infinity are written as null, because JSON lacks them. For statistics, the caller must
    convert them to strings first.

    Raises:
        InvalidInputError: the value contains an object that JSON cannot represent.
    """
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        # JSON may contain integers of more than 64 bits, but orjson cannot write them.
        try:
            return _COMPACT.encode(value).encode()
        except (TypeError, ValueError, RecursionError):
            raise InvalidInputError(f"cannot write as JSON: {error}") from None


def iter_objects(data: bytes, where: str = "commit") -> list[dict[str, Any]]:
    """Return the objects in a newline-delimited JSON file, in order.

    Blank lines, CRLF, a missing line break at the end, and objects that span several lines are
    accepted (requirement LOG-03).

    Args:
        data: the whole file.
        where: the name of the file, for errors.

    Raises:
        MalformedLogError: a line is truncated, or is not an object; the message contains its
            number.

    Cost: orjson parses each line. The standard library parses files in which an object spans
    several lines.
    """
    objects = plain_objects([line for line in data.split(b"\n") if line])
    return _stream_objects(data, where) if objects is None else objects


def plain_objects(lines: Iterable[bytes]) -> list[dict[str, Any]] | None:
    """Parse each line with orjson; return None if a line is not a complete object."""
    try:
        objects = [orjson.loads(line) for line in lines]
    except orjson.JSONDecodeError:
        return None
    return objects if all(type(value) is dict for value in objects) else None


def iter_values(lines: Iterable[bytes]) -> Iterator[tuple[int, Any]]:
    """Yield each value of a JSON file of a user, with the number of its first line.

    A value may span several lines, and a line may have several values. An error may be raised up to
    as many lines later as the value has.

    Args:
        lines: the lines of the file, in UTF-8, with their line breaks.

    Raises:
        MalformedLogError: a line is not JSON; the message begins with its number.
    """
    text, first, least = "", 1, 0
    for number, line in enumerate(lines, 1):
        text += line.decode("utf-8-sig" if number == 1 else "utf-8")
        if len(text) >= least:
            text, first = yield from _complete_values(text, first)
            least = 2 * len(text)  # otherwise a value of many lines would be read once per line
    text, first = yield from _complete_values(text, first)
    if text:
        raise MalformedLogError(f"line {first}: the value is not complete at the end of the file")


def _complete_values(text: str, first: int) -> Generator[tuple[int, Any], None, tuple[str, int]]:
    """Yield the complete values of a text that begins in line `first`; return the rest of it."""
    end = 0
    while (start := _NOT_BLANK.search(text, end)) is not None:
        first += text.count("\n", end, start.start())
        begin = start.start()
        try:
            value, end = _WITHOUT_DUPLICATES.raw_decode(text, begin)
        except JSONDecodeError as error:
            if _may_continue(error):
                return text[begin:], first
            raise _broken(error, text, first, begin) from None
        except MalformedLogError as error:
            raise MalformedLogError(f"line {first}: {error}") from None
        except RecursionError:
            raise MalformedLogError(f"line {first}: nested too deeply") from None
        yield first, value
        first += text.count("\n", begin, end)
    return "", first + text.count("\n", end)


def _may_continue(error: JSONDecodeError) -> bool:
    """Return whether the next line may complete a value. A string has no line break."""
    is_at_end = error.pos >= len(error.doc.rstrip())
    return is_at_end and not error.msg.startswith("Invalid control character")


def _broken(error: JSONDecodeError, text: str, first: int, start: int) -> MalformedLogError:
    """Return an error with the position in the file, and with what is there."""
    line = first + text.count("\n", start, error.pos)
    column = error.pos - text.rfind("\n", 0, error.pos)
    found = text[error.pos :].partition("\n")[0].strip()
    shown = repr(found if len(found) <= 40 else found[:37] + "...") if found else "a line break"
    begin = f" of the value that begins in line {first}" if line != first else ""
    reason = error.msg.replace("Expecting", "expected").removesuffix(" at")
    reason = reason[:1].lower() + reason[1:].removesuffix(" starting")
    return MalformedLogError(f"line {line}, column {column}{begin}: {reason}, found {shown}")


def parse_lexemes(text: str | bytes, where: str = "JSON text") -> Any:
    """Parse a JSON document, with numbers as `Lexeme`.

    Unlike `loads`, this function raises for duplicate keys, NaN and Infinity (requirements SUM-03,
    SUM-08).

    Raises:
        MalformedLogError: the document is not JSON, or an object contains a key twice.
    """
    decoded = _decode(text, where) if isinstance(text, bytes) else text
    try:
        return _EXACT.decode(decoded)
    except JSONDecodeError as error:
        raise _malformed(where, error) from None
    except MalformedLogError as error:
        raise MalformedLogError(f"{where}: {error}") from None
    except RecursionError:
        raise MalformedLogError(f"{where}: nested too deeply") from None


class JsonObject:
    """A JSON object with its position, which is part of all error messages.

    Args:
        values: the members. A row of a checkpoint is also accepted; its maps are lists of pairs.
        where: the position of the object, such as `version 12, line 3: add`.
        error: the class of the error for a missing or invalid member.
    """

    __slots__ = ("error", "values", "where")

    def __init__(
        self,
        values: object,
        where: str,
        error: type[MalformedLogError] = MalformedLogError,
    ) -> None:
        if not isinstance(values, dict):
            raise error(f"{where}: expected object, found {_kind(values)}")
        self.values: dict[str, Any] = values
        self.where: str = where
        self.error: type[MalformedLogError] = error

    def optional(self, name: str, kind: type[T]) -> T | None:
        """Return the member; None if it is missing or null. Integers must have at most 64 bits."""
        value = self.values.get(name)
        if kind is int and type(value) is int and not -(2**63) <= value < 2**63:
            raise self.error(f"{self.where}.{name}: {value} does not fit 64 bits")
        if value is None or type(value) is kind:
            return value
        if kind is int and type(value) is float and value.is_integer() and abs(value) < 2**53:
            return cast("T", int(value))  # some writers write integers as `1.0`
        raise self._wrong(name, kind.__name__, value)

    def required(self, name: str, kind: type[T]) -> T:
        """Return the member; raise an error if it is missing or null."""
        value = self.optional(name, kind)
        if value is None:
            raise self.error(f"{self.where}.{name}: required {kind.__name__} is missing")
        return value

    def child(self, name: str, parse: Callable[[JsonObject], T]) -> T | None:
        """Return the object in a member, parsed by `parse`; None if it is missing or null."""
        value = self.values.get(name)
        if value is None:
            return None
        return parse(JsonObject(value, f"{self.where}.{name}", self.error))

    def texts(self, name: str) -> tuple[str, ...] | None:
        """Return a list of strings; None if it is missing or null."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, list | tuple):
            raise self._wrong(name, "list of strings", value)
        for index, item in enumerate(value):
            if not isinstance(item, str):
                raise self._wrong(f"{name}[{index}]", "str", item)
        return tuple(value)

    def mapping(self, name: str) -> dict[str, str | None] | None:
        """Return a map of strings; None if it is missing or null.

        Numbers and booleans become strings in JSON syntax, because some writers do not quote them.
        A list of pairs, Arrow's form of a map, is also accepted.
        """
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, dict):
            pairs: Iterable[tuple[Any, Any]] = value.items()
        elif isinstance(value, list) and all(isinstance(p, tuple) and len(p) == 2 for p in value):
            pairs = value
        else:
            raise self._wrong(name, "map of strings", value)
        return {key: self._text(f"{name}.{key}", item) for key, item in pairs}

    def mapping_of_strings(self, name: str) -> dict[str, str] | None:
        """Return the result of `mapping` without keys whose value is null."""
        found = self.mapping(name)
        if found is None:
            return None
        return {key: value for key, value in found.items() if value is not None}

    def _text(self, name: str, value: object) -> str | None:
        if value is None or type(value) is str:
            return value
        if type(value) is bool or type(value) is int or type(value) is float:
            return dumps(value).decode()
        raise self._wrong(name, "str", value)

    def _wrong(self, name: str, expected: str, found: object) -> MalformedLogError:
        return self.error(f"{self.where}.{name}: expected {expected}, found {_kind(found)}")


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "object"
    shown = repr(value)
    return f"{type(value).__name__} {shown if len(shown) <= 60 else shown[:57] + '...'}"


def _decode(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise MalformedLogError(f"{where}: invalid UTF-8 at byte {error.start}") from None


def _malformed(where: str, error: JSONDecodeError) -> MalformedLogError:
    return MalformedLogError(f"{where}, line {error.lineno}, column {error.colno}: {error.msg}")


def _stream_objects(data: bytes, where: str) -> list[dict[str, Any]]:
    """Return the objects in a file, in order, regardless of line breaks."""
    text = _decode(data, where)
    objects: list[dict[str, Any]] = []
    position = 0
    while (start := _NOT_BLANK.search(text, position)) is not None:
        line = text.count("\n", 0, start.start()) + 1
        try:
            value, position = _TOLERANT.raw_decode(text, start.start())
        except JSONDecodeError as error:
            raise MalformedLogError(
                f"{where}, line {line}: the JSON of an action is invalid: {error.msg} "
                f"(line {error.lineno}, column {error.colno})"
            ) from None
        except RecursionError:
            raise MalformedLogError(f"{where}, line {line}: nested too deeply") from None
        if not isinstance(value, dict):
            raise MalformedLogError(f"{where}, line {line}: expected object, found {_kind(value)}")
        objects.append(value)
    return objects


def _without_duplicates(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise MalformedLogError(f"an object contains the key {twice!r} twice")
    return members


def _no_constant(word: str) -> Any:
    raise MalformedLogError(f"{word} is not JSON")


_EXACT: Final = JSONDecoder(
    object_pairs_hook=_without_duplicates,
    parse_int=Lexeme,
    parse_float=Lexeme,
    parse_constant=_no_constant,
)
_WITHOUT_DUPLICATES: Final = JSONDecoder(
    object_pairs_hook=_without_duplicates, parse_int=_parse_int
)
