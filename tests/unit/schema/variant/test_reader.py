from __future__ import annotations

import pytest

from deltalog.errors import DataFileUnreadableError
from deltalog.schema.variant import decode, to_json


@pytest.mark.protocol("B-51")
def test_fields_may_lie_in_any_order() -> None:
    metadata = bytes.fromhex("0102000102") + b"ba"  # ids: b is 0, a is 1
    value = bytes.fromhex("02 02 0100 020004 0c05 0c07".replace(" ", ""))
    assert decode(metadata, value) == {"a": 7, "b": 5}


@pytest.mark.parametrize(
    ("metadata", "value"),
    [
        ("", "00"),
        ("020000", "00"),
        ("0105", "00"),
        ("01010005", "00"),
        ("010102ff61", "00"),
        ("010000", ""),
        ("010000", "18"),
        ("010000", "0d"),
        ("010000", "0dffffff"),
        ("010000", "54"),
        ("010000", "3cffffffff"),
        ("010000", "020100000000"),
        ("010000", "0305"),
        ("010000", "03010005"),
        ("010000", "2cffffff7f"),
        ("010000", "2063000000 00".replace(" ", "")),
    ],
)
def test_torn_bytes_are_an_error(metadata: str, value: str) -> None:
    with pytest.raises(DataFileUnreadableError, match="cannot read a variant"):
        decode(bytes.fromhex(metadata), bytes.fromhex(value))
    with pytest.raises(DataFileUnreadableError, match="cannot read a variant"):
        to_json(bytes.fromhex(metadata), bytes.fromhex(value))
