from __future__ import annotations

from datetime import UTC, datetime

import pytest

from deltalog.schema.variant import decode, to_json

EMPTY = bytes.fromhex("010000")


@pytest.mark.protocol("B-51")
def test_the_types_that_only_others_write() -> None:
    single = bytes.fromhex("38cdcccc3d")
    assert decode(EMPTY, single) == pytest.approx(0.1)
    assert to_json(EMPTY, single) == "0.1"
    nanos = (1_700_000_000_123_456_789).to_bytes(8, "little", signed=True)
    assert decode(EMPTY, b"\x48" + nanos) == datetime(2023, 11, 14, 22, 13, 20, 123456, UTC)
    assert to_json(EMPTY, b"\x48" + nanos) == '"2023-11-14 22:13:20.123456789+00:00"'
    assert to_json(EMPTY, b"\x4c" + nanos) == '"2023-11-14 22:13:20.123456789"'
    before = (-1).to_bytes(8, "little", signed=True)
    assert decode(EMPTY, b"\x4c" + before) == datetime(1969, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001
    long_text = bytes.fromhex("40010000 0061".replace(" ", ""))
    assert decode(EMPTY, long_text) == "a"
