"""The wire format of protobuf: a message as its fields, by their numbers.

Knows no message of its own; `substrait` reads those of Arrow's expressions.
"""

from __future__ import annotations

from typing import Any

Message = dict[int, list[Any]]


class UnreadableError(Exception):
    """A part that is not supported."""


def number_at(fields: Message, number: int) -> int:
    """A number; protobuf omits zeros."""
    value = fields.get(number, [0])[0]
    return int(value)


def fields_of(data: bytes) -> Message:
    """The fields of a protobuf message: numbers as int, everything else as bytes."""
    found: Message = {}
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        number, wire = key >> 3, key & 7
        value: Any
        if wire == 0:
            value, position = _varint(data, position)
        elif wire == 2:
            size, position = _varint(data, position)
            value, position = data[position : position + size], position + size
        elif wire in {1, 5}:
            size = 8 if wire == 1 else 4
            value, position = data[position : position + size], position + size
        else:
            raise UnreadableError("a field of this form")
        found.setdefault(number, []).append(value)
    return found


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, position


def signed_64(value: int) -> int:
    """A number as the signed one that has the same 64 bits."""
    return value - (1 << 64) if value >> 63 else value
