from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog.errors import DataFileUnreadableError
from deltalog.schema import VARIANT, VARIANT_STORAGE
from deltalog.schema.variant import decode, encode, unshred

EMPTY = b"\x01\x00\x00"


def part(typed: pa.DataType) -> pa.DataType:
    return pa.struct([("value", pa.binary()), ("typed_value", typed)])


def shredded(typed: pa.DataType) -> pa.DataType:
    return pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", typed)])


def values(array: Any) -> list[Any]:
    return [
        None if row is None else decode(row["metadata"], row["value"]) for row in array.to_pylist()
    ]


def rows(typed: pa.DataType, *cells: Any, metadata: bytes = EMPTY) -> Any:
    return pa.array(
        [
            None
            if cell is None
            else {"metadata": metadata, "value": cell[0], "typed_value": cell[1]}
            for cell in cells
        ],
        shredded(typed),
    )


@pytest.mark.protocol("B-51")
def test_what_is_not_shredded_is_only_put_in_order() -> None:
    plain = pa.array([{"value": b"\x00", "metadata": EMPTY}, None])
    result = unshred(plain)
    assert result.type == VARIANT_STORAGE
    assert result.to_pylist() == [{"metadata": EMPTY, "value": b"\x00"}, None]
    assert unshred(result) is result
    extension = pa.ExtensionArray.from_storage(VARIANT, result)
    assert unshred(extension).equals(result)


@pytest.mark.protocol("B-51")
@pytest.mark.parametrize(
    ("typed", "cell", "data"),
    [
        (pa.bool_(), True, "04"),
        (pa.int8(), -1, "0cff"),
        (pa.int16(), 1, "100100"),
        (pa.int32(), 1, "1401000000"),
        (pa.int64(), 1, "180100000000000000"),
        (pa.float32(), 1.5, "380000c03f"),
        (pa.float64(), 1.5, "1c000000000000f83f"),
        (pa.decimal128(9, 2), Decimal("-1.50"), "20026affffff"),
        (pa.decimal128(18, 2), Decimal("1.50"), "24029600000000000000"),
        (pa.decimal128(38, 0), Decimal(-1), "2800" + "ff" * 16),
        (pa.date32(), date(1969, 12, 31), "2cffffffff"),
        (pa.time64("us"), time(0, 0, 0, 7), "440700000000000000"),
        (pa.timestamp("us", "UTC"), datetime(1970, 1, 1, tzinfo=UTC), "300000000000000000"),
        (pa.timestamp("us"), datetime(1970, 1, 1), "340000000000000000"),  # noqa: DTZ001
        (pa.timestamp("ns", "UTC"), 1, "480100000000000000"),
        (pa.timestamp("ns"), 1, "4c0100000000000000"),
        (pa.string(), "a" * 63, "fd" + "61" * 63),
        (pa.string(), "a" * 64, "4040000000" + "61" * 64),
        (pa.large_string(), "a", "0561"),
        (pa.binary(), b"\x01", "3c0100000001"),
        (pa.binary(16), bytes(16), "50" + "00" * 16),
    ],
    ids=str,
)
def test_every_type_keeps_its_own_encoding(typed: pa.DataType, cell: object, data: str) -> None:
    array = rows(typed, (None, cell), (b"\x00", None), None, (None, None), (b"\x0c\x07", None))
    result = unshred(array)
    result.validate(full=True)
    found = [None if row is None else row["value"].hex() for row in result.to_pylist()]
    # A value that is missing where there must be one is the variant null.
    assert found == [data, "00", None, "00", "0c07"]
    assert [
        None if row is None else row["value"].hex()
        for row in unshred(array.slice(1, 3)).to_pylist()
    ] == found[1:4]


@pytest.mark.protocol("B-51")
def test_the_specifications_table_of_objects() -> None:
    typed = pa.struct([("event_type", part(pa.string())), ("event_ts", part(pa.int64()))])
    metadata, _ = encode({"email": "e", "click": "c", "event_type": 0, "event_ts": 0})

    def rest(**fields: object) -> bytes:
        names = ["click", "email", "event_ts", "event_type"]
        # The value of a part uses the metadata of the whole.
        ((name, value),) = fields.items()
        text = str(value).encode()
        return bytes([2, 1, names.index(name), 0, 1 + len(text), 1 | len(text) << 2]) + text

    def fields(kind: tuple[bytes | None, str | None], ts: tuple[bytes | None, int | None]) -> Any:
        return {
            "event_type": {"value": kind[0], "typed_value": kind[1]},
            "event_ts": {"value": ts[0], "typed_value": ts[1]},
        }

    missing = (None, None)
    array = rows(
        typed,
        (None, fields((None, "noop"), (None, 1))),
        (rest(email="u"), fields((None, "login"), (None, 2))),
        (b"\x09hi", None),
        (rest(click="b"), fields(missing, (None, 3))),
        (None, fields((b"\x00", None), (None, 4))),
        (None, fields((None, "noop"), (b"\x052", None))),
        (None, fields(missing, missing)),
        (b"\x00", None),
        (None, None),
        None,
        metadata=metadata,
    )
    expected: list[Any] = [
        {"event_ts": 1, "event_type": "noop"},
        {"email": "u", "event_ts": 2, "event_type": "login"},
        "hi",
        {"click": "b", "event_ts": 3},
        {"event_ts": 4, "event_type": None},
        {"event_ts": "2", "event_type": "noop"},
        {},
        None,
        None,
        None,
    ]
    result = unshred(array)
    assert values(result) == expected
    assert result.null_count == 1
    assert values(unshred(array.slice(3))) == expected[3:]
    assert values(unshred(pa.chunked_array([array, array.slice(5)]))) == expected + expected[5:]


@pytest.mark.protocol("B-51")
def test_lists_and_nesting() -> None:
    typed = pa.list_(part(pa.struct([("x", part(pa.list_(part(pa.int32()))))])))
    metadata, _ = encode({"x": 0, "y": 0})
    inner = {
        "value": None,
        "typed_value": [
            {"value": b"\x05a", "typed_value": None},
            {"value": None, "typed_value": 5},
        ],
    }
    y_is_one = bytes([2, 1, 1, 0, 2, 0x0C, 1])
    array = rows(
        typed,
        (
            None,
            [
                {"value": y_is_one, "typed_value": {"x": inner}},
                {"value": b"\x00", "typed_value": None},
            ],
        ),
        (None, []),
        (b"\x04", None),
        (None, [{"value": None, "typed_value": None}]),
        metadata=metadata,
    )
    expected = [[{"x": ["a", 5], "y": 1}, None], [], True, [None]]
    assert values(unshred(array)) == expected
    assert values(unshred(array.slice(2))) == expected[2:]


@pytest.mark.protocol("B-51")
def test_a_name_that_the_metadata_lacks_is_added() -> None:
    typed = pa.struct([("a", part(pa.int64())), ("b", part(pa.int64()))])
    metadata, _ = encode({"b": 0})
    cell = {"a": {"value": None, "typed_value": 1}, "b": {"value": None, "typed_value": 2}}
    result = unshred(rows(typed, (None, cell), (b"\x00", None), metadata=metadata))
    assert values(result) == [{"a": 1, "b": 2}, None]
    assert result.field(0)[1].as_py() == metadata


def test_only_typed_values() -> None:
    array = pa.array(
        [{"typed_value": 1, "metadata": EMPTY}, {"typed_value": None, "metadata": EMPTY}],
        pa.struct([("typed_value", pa.int8()), ("metadata", pa.large_binary())]),
    )
    assert values(unshred(array)) == [1, None]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1]),
        pa.array([{"metadata": EMPTY}]),
        pa.array([{"value": b"\x00", "typed_value": 1}]),
        pa.array(
            [{"metadata": EMPTY, "typed_value": 1}],
            pa.struct([("metadata", pa.binary()), ("typed_value", pa.duration("s"))]),
        ),
    ],
    ids=["no struct", "no value", "no metadata", "no such type"],
)
def test_what_is_no_variant(array: Any) -> None:
    with pytest.raises(DataFileUnreadableError, match="cannot read a variant"):
        unshred(array)


def test_a_contradiction_is_an_error() -> None:
    typed = pa.struct([("a", part(pa.int64()))])
    array = rows(typed, (b"\x04", {"a": {"value": None, "typed_value": 1}}))
    with pytest.raises(DataFileUnreadableError, match="shredded as an object"):
        unshred(array)


@pytest.mark.corpus
@pytest.mark.protocol("B-51")
def test_what_spark_shredded(reference: Path) -> None:
    import pyarrow.parquet as pq

    table = reference / "spark-reference" / "types-variant-shredded"
    found = {
        row: value
        for path in table.glob("*.parquet")
        for part_of in [pq.ParquetFile(path).read()]
        for row, value in zip(part_of["id"].to_pylist(), values(unshred(part_of["v"])), strict=True)
    }
    assert found[1] == {"a": 1, "b": "s1", "c": [1, 2], "d": {"e": Decimal("0.25")}}
    assert [found[row] for row in range(100, 104)] == [
        {"a": "not an int", "x": 1},
        [1],
        None,
        {"a": None, "d": 5},
    ]
