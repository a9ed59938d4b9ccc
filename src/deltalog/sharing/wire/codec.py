"""Conversion between JSON messages and dataclasses, in both directions.

Each dataclass has a `MessageCodec`, which lists its JSON members. This module also contains the
value formats that several messages use: 64-bit numbers, timestamps, and strings whose empty value
means absent.

Protocol: Timestamp Format
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from deltalog._util.clock import moment_text
from deltalog._util.json import JsonObject, loads
from deltalog.errors import MalformedLogError, MalformedMessageError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Member:
    """The JSON member of one field of a message.

    Args:
        name: name of the member in the protocol.
        read: called with the message and the member's name; returns the field's value.
        write: called with the field's value; returns the JSON value, or None to omit the member.
            The default returns the field's value.
        required: whether `read` is called even if the member is absent or null, so that it can
            raise.
    """

    name: str
    read: Callable[[JsonObject, str], Any]
    write: Callable[[Any], Any] | None = None
    required: bool = False


class MessageCodec(Generic[T]):
    """Parses and encodes one kind of message.

    Args:
        make: the dataclass of the message.
        members: the JSON members by field name, in the order in which they are written.
    """

    def __init__(self, make: Callable[..., T], **members: Member) -> None:
        self._make = make
        self._readers = [(field, m.name, m.read, m.required) for field, m in members.items()]
        self._writers = [(field, m.name, m.write) for field, m in members.items()]

    def parse(self, node: JsonObject, **fields: Any) -> T:
        """Return the message; if a member is absent or null, its field has the default value.

        Args:
            node: the JSON object. Unknown members are ignored: "clients can assume that any
                unrecognized fields in a response that supports their reader version are never
                required in order to correctly interpret the response."
            fields: values of fields that are not members of the object.

        Raises:
            MalformedMessageError: a member has a wrong type or value, or a required member is
                absent.
        """
        values = node.values
        for field, name, read, required in self._readers:
            if required or values.get(name) is not None:
                fields[field] = read(node, name)
        return self._make(**fields)

    def encode(self, message: T) -> dict[str, Any]:
        """Return the members of a message; members that are None are omitted (SHARE-META-05)."""
        members = {}
        for field, name, write in self._writers:
            value = getattr(message, field)
            if write is not None and value is not None:
                value = write(value)
            if value is not None:
                members[name] = value
        return members


def required_text(name: str) -> Member:
    """Return a member that must be a string."""
    return Member(name, lambda node, name: node.required(name, str), required=True)


def optional_text(name: str) -> Member:
    """Return a member that is a string or absent."""
    return Member(name, lambda node, name: node.optional(name, str))


def nonempty_text(name: str) -> Member:
    """Return a string member for which empty means absent."""
    return Member(name, lambda node, name: node.optional(name, str) or None)


def number(name: str) -> Member:
    """Return a member that is a 64-bit number or absent."""
    return Member(name, whole_number)


def required_number(name: str) -> Member:
    """Return a member that must be a 64-bit number."""
    return Member(name, _required_number, required=True)


def natural_number(name: str) -> Member:
    """Return a member that is a 64-bit number of 0 or more, or absent."""
    return Member(name, whole_number_from_0)


def texts(name: str) -> Member:
    """Return a member that is a list of strings; an empty list is omitted."""
    return Member(name, JsonObject.texts, lambda value: list(value) or None)


def string_map(name: str) -> Member:
    """Return a member that maps strings to strings; an empty map is omitted."""
    return Member(name, JsonObject.mapping_of_strings, lambda value: dict(value) or None)


def timestamp(name: str) -> Member:
    """Return a member that is an ISO 8601 string; the field's value is milliseconds since 1970."""
    return Member(name, _timestamp, encode_timestamp)


def parse_object(data: bytes | str, where: str) -> JsonObject:
    """Return the JSON object of a message; its methods raise `MalformedMessageError`."""
    try:
        values = loads(data, where)
    except MalformedLogError as error:
        raise MalformedMessageError(str(error)) from None
    return JsonObject(values, where, MalformedMessageError)


def whole_number(node: JsonObject, name: str) -> int | None:
    """Return a 64-bit number, which may be a JSON string (SHARE-QT-20); None if it is absent."""
    value = node.values.get(name)
    # Like the reference server, accept 64-bit numbers as strings.
    if isinstance(value, str):
        if not value.lstrip("-").isdecimal() or not value.isascii() or len(value) > 20:
            raise node.error(f"{node.where}.{name}: expected a whole number, found {value[:40]!r}")
        value = int(value)
    elif value is not None:
        value = node.optional(name, int)
    if value is not None and not -(2**63) <= value < 2**63:
        raise node.error(f"{node.where}.{name}: the number is beyond 64 bits")
    return value


def whole_number_from_0(node: JsonObject, name: str) -> int | None:
    """Return a 64-bit number that is not negative, or None if it is absent."""
    value = whole_number(node, name)
    if value is not None and value < 0:
        raise node.error(f"{node.where}.{name}: expected 0 or more, found {value}")
    return value


def parse_timestamp(text: str, where: str = "timestamp") -> int:
    """Return the milliseconds since 1970 of an ISO 8601 string with a zone; truncate fractions.

    Raises:
        MalformedMessageError: the string is not a time, or has no zone (requirement SHARE-TS-01).
    """
    try:
        # If the text has no zone or no time of day, the subtraction of the epoch raises TypeError.
        return (datetime.fromisoformat(text) - _EPOCH) // _MILLISECOND
    except (ValueError, TypeError, OverflowError):
        raise MalformedMessageError(
            f"{where}: expected a time such as 2022-01-01T00:00:00Z, found {text[:60]!r}"
        ) from None


def encode_timestamp(milliseconds: int) -> str:
    """Return a time as ISO 8601 in UTC; the fraction is omitted if it is zero."""
    unit = "milliseconds" if milliseconds % 1000 else "seconds"
    return f"{moment_text(milliseconds * 1000, sep='T', timespec=unit)}Z"


def _required_number(node: JsonObject, name: str) -> int:
    found = whole_number(node, name)
    if found is None:
        raise node.error(f"{node.where}.{name}: required number is missing")
    return found


def _timestamp(node: JsonObject, name: str) -> int:
    return parse_timestamp(node.required(name, str), f"{node.where}.{name}")
