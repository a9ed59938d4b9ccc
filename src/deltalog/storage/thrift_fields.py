"""Fields of Thrift's structs, checked: a field of another kind is a TypeError or a ValueError.

Protocol: none; Apache Thrift's compact protocol
"""

from __future__ import annotations

from deltalog.storage import thrift
from deltalog.storage.thrift import Struct


def structs(fields: Struct, key: int) -> list[Struct]:
    """The structs of a list in a field."""
    kind, value = fields[key]
    if kind not in thrift.LISTS or (value.values and value.kind != thrift.STRUCT):
        raise TypeError(f"expected a list of structs in field {key}")
    return list(value.values)


def struct(fields: Struct, key: int) -> Struct:
    """The struct in a field."""
    kind, value = fields[key]
    if kind != thrift.STRUCT:
        raise TypeError(f"expected a struct in field {key}, found a value of type {kind}")
    found: Struct = value
    return found


def number(fields: Struct, key: int) -> int | None:
    """The integer in a field; None if it is not there."""
    if key not in fields:
        return None
    kind, value = fields[key]
    if kind not in thrift.INTEGERS:
        raise TypeError(f"expected a number in field {key}, found a value of type {kind}")
    return int(value)


def natural(fields: Struct, key: int) -> int:
    """The integer in a field, which must be there and not below zero."""
    found = number(fields, key)
    if found is None or found < 0:
        raise ValueError(f"expected a number from 0 in field {key}, found {found}")
    return found


def text(fields: Struct, key: int) -> bytes:
    """The bytes of a text in a field."""
    kind, value = fields[key]
    if kind != thrift.BINARY:
        raise TypeError(f"expected a text in field {key}, found a value of type {kind}")
    return bytes(value)
