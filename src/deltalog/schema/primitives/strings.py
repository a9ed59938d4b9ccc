"""Codecs of strings, binary values and booleans, and checks that all codecs use.

Protocol: Partition Value Serialization, Per-file Statistics
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.argument_types import kind_of
from deltalog._util.json import dumps
from deltalog._util.kernels import FALSE, Array, compute
from deltalog.schema.primitives.row import Bounds, ValueCodec

_JSON_ESCAPED: Final = r'["\\\x00-\x1f]'


def check_match(texts: pa.StringArray, pattern: str) -> None:
    """Check that every string that is not NULL matches a pattern completely.

    Raises:
        ValueError: a string does not match.
    """
    if not all_match(texts, pattern):
        raise ValueError(f"expected {pattern}")


def all_match(texts: pa.StringArray, pattern: str) -> bool:
    """Return whether every string that is not NULL matches a pattern completely."""
    matches = compute.all(compute.match_substring_regex(texts, f"^(?:{pattern})$"), min_count=0)
    return matches.as_py() is True


def check_kind(value: Any, kind: type | tuple[type, ...]) -> None:
    """Raise for a Python value of another class; True and False do not count as numbers.

    Raises:
        TypeError: the value is of another class.
    """
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"found {kind_of(value)}")


def join(*parts: Any) -> Array:
    """Concatenate arrays or constants of strings; the result is NULL if any of them is NULL."""
    return compute.binary_join_element_wise(*parts, "")


def json_texts(texts: Array) -> Array:
    """Encode strings as JSON. Cost: strings that need escapes are encoded one by one in Python."""
    plain = join('"', texts, '"')
    special = compute.match_substring_regex(texts, _JSON_ESCAPED)
    if not compute.any(special).as_py():
        return plain
    escaped = [dumps(text).decode() for text in texts.filter(special).to_pylist()]
    mask = compute.coalesce(special, FALSE)
    return compute.replace_with_mask(plain, mask, pa.array(escaped, plain.type))


def _conform_text(array: Array, target: Any) -> Array | None:
    return array.cast(target) if is_text(array.type) or is_bytes(array.type) else None


def _conform_bytes(array: Array, target: Any) -> Array | None:
    return array.cast(target) if is_bytes(array.type) else None


def is_text(kind: Any) -> bool:
    """Return whether an Arrow type contains strings."""
    return pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind)


def is_bytes(kind: Any) -> bool:
    """Return whether an Arrow type contains bytes."""
    return (
        pt.is_binary(kind)
        or pt.is_large_binary(kind)
        or pt.is_binary_view(kind)
        or pt.is_fixed_size_binary(kind)
    )


def _parse_text(texts: pa.StringArray, arrow_type: pa.DataType, _zone: str) -> Array:
    return texts.cast(arrow_type)


def _encode_text(value: Any, _arrow_type: pa.DataType) -> str:
    check_kind(value, str)
    value.encode()  # raises an error for a lone surrogate
    return str(value)


def _encode_bytes(value: Any, _arrow_type: pa.DataType) -> str:
    check_kind(value, (bytes, bytearray, memoryview))
    return bytes(value).decode()


def _parse_boolean(texts: pa.StringArray, _arrow_type: pa.DataType, _zone: str) -> Array:
    check_match(texts, "(?i:true|false)")
    return compute.equal(compute.utf8_lower(texts), pa.scalar("true"))


def _encode_boolean(value: Any, _arrow_type: pa.DataType) -> str:
    check_kind(value, bool)
    return "true" if value else "false"


TEXT: Final = ValueCodec(
    conform=_conform_text,
    parse=_parse_text,
    encode=_encode_text,
    bounds=Bounds(wire=pa.string(), texts=json_texts),
)
BYTES: Final = ValueCodec(conform=_conform_bytes, parse=_parse_text, encode=_encode_bytes)
TRUTH: Final = ValueCodec(parse=_parse_boolean, encode=_encode_boolean)
