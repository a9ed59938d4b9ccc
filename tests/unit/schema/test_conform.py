from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from deltalog.errors import SchemaMismatchError
from deltalog.schema import VARIANT, conform, conform_array

run_end_encode: Any = pc.run_end_encode  # type: ignore[attr-defined]  # stubs lack it


def dictionary_of(values: Any) -> Any:
    """The values in another order, with codes without a sign, as Polars has them."""
    codes = pa.array([2, 1, None, 0, 2], pa.uint8())
    return pa.DictionaryArray.from_arrays(codes, values.slice(0, 3))


NUMBERS = pa.array([1, None, 3, 3])
TEXTS = pa.array(["a", None, "c", "c"])
UTC_MICROS = pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("array", "target"),
    [
        (TEXTS.dictionary_encode(), pa.string()),
        (dictionary_of(TEXTS.cast(pa.string_view())), pa.string()),
        (dictionary_of(TEXTS.cast(pa.binary_view())), pa.binary()),
        (TEXTS.cast(pa.large_string()), pa.string()),
        (TEXTS.cast(pa.string_view()), pa.string()),
        (TEXTS.cast(pa.binary()), pa.string()),
        (TEXTS.cast(pa.large_binary()), pa.binary()),
        (pa.array([b"ab", None], pa.binary(2)), pa.binary()),
        (run_end_encode(NUMBERS), pa.int64()),
        (NUMBERS, pa.int8()),
        (NUMBERS.cast(pa.uint8()), pa.int16()),
        (NUMBERS.cast(pa.uint64()), pa.int64()),
        (NUMBERS, pa.float64()),
        (pa.array([1.5, None], pa.float32()), pa.float64()),
        (pa.array([1.5, None], pa.float16()), pa.float32()),
        (pa.array([2.0, None]), pa.int32()),
        (pa.array([date(1, 1, 1), date(9999, 12, 31)], pa.date64()), pa.date32()),
        (pa.array([None, None]), pa.struct([("a", pa.int32())])),
        (pa.array([[1, 2], None], pa.list_(pa.int64(), 2)), pa.list_(pa.int32())),
        (pa.array([[1], None, []], pa.large_list(pa.int64())), pa.list_(pa.int64())),
        (pa.array([[1], None, []]), pa.large_list(pa.int64())),
        (pa.array([[1], None, [2, 3]], pa.list_view(pa.int8())), pa.list_(pa.int64())),
        (pa.array([[1], None, []], pa.large_list_view(pa.int8())), pa.list_(pa.int64())),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_every_flavour_keeps_its_values(array: Any, target: pa.DataType) -> None:
    result = conform_array(array, target)
    result.validate(full=True)
    assert result.type == target
    plain = array.to_pylist()
    if pa.types.is_binary(array.type) and pa.types.is_string(target):
        plain = [None if value is None else value.decode() for value in plain]
    assert result.to_pylist() == plain
    sliced = conform_array(array.slice(1), target)
    sliced.validate(full=True)
    assert sliced.to_pylist() == plain[1:]


def test_what_fits_already_is_not_touched() -> None:
    array = pa.array([1, 2])
    assert conform_array(array, pa.int64()) is array


def test_list_views_in_any_order() -> None:
    offsets = pa.array([2, 0, 0], pa.int32())
    sizes = pa.array([1, 2, 0], pa.int32())
    kind: Any = pa.ListViewArray  # the stubs lack the sizes
    views = kind.from_arrays(offsets, sizes, pa.array([1, 2, 3]))
    assert conform_array(views, pa.list_(pa.int64())).to_pylist() == [[3], [1, 2], []]


@pytest.mark.parametrize(
    ("array", "target", "expected"),
    [
        (pa.array([5000], pa.timestamp("ns")), UTC_MICROS, datetime(1970, 1, 1, 0, 0, 0, 5, UTC)),
        (
            pa.array([-62135596800], pa.timestamp("s", "Europe/Berlin")),
            UTC_MICROS,
            datetime(1, 1, 1, tzinfo=UTC),
        ),
        (
            pa.array([253402300799999], pa.timestamp("ms")),
            UTC_MICROS,
            datetime(9999, 12, 31, 23, 59, 59, 999000, UTC),
        ),
        (pa.array([7], UTC_MICROS), pa.timestamp("us"), datetime(1970, 1, 1, 0, 0, 0, 7)),  # noqa: DTZ001
        (
            pa.array([date(1900, 1, 1)]),
            pa.timestamp("us"),
            datetime(1900, 1, 1),  # noqa: DTZ001
        ),
        (pa.array([5]), pa.decimal128(3, 2), Decimal("5.00")),
        (pa.array([-(2**63)]), pa.decimal128(38, 18), Decimal(-(2**63))),
        (pa.array([Decimal("1.20")], pa.decimal256(50, 2)), pa.decimal128(5, 1), Decimal("1.2")),
        (pa.array([Decimal("1.2")]), pa.decimal128(38, 20), Decimal("1.2")),
        (pa.array([Decimal(7)]), pa.int32(), 7),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
@pytest.mark.protocol("D-68")
def test_units_and_scales_change_and_values_do_not(
    array: Any, target: pa.DataType, expected: object
) -> None:
    result = conform_array(array, target)
    assert (result.type, result.to_pylist()) == (target, [expected])


@pytest.mark.parametrize(
    ("array", "target"),
    [
        (pa.array([300]), pa.int8()),
        (pa.array([2**63], pa.uint64()), pa.int64()),
        (pa.array([1.5]), pa.int32()),
        (pa.array([float("nan")]), pa.int32()),
        (pa.array([2**53 + 1]), pa.float64()),
        (pa.array([1e300]), pa.float32()),
        (pa.array([1], pa.timestamp("ns")), pa.timestamp("us")),
        (pa.array([10**14], pa.timestamp("s")), UTC_MICROS),
        (pa.array([50]), pa.decimal128(3, 2)),
        # Arrow's own cast wraps around
        (pa.array([Decimal(460331602691505663798073246748)]), pa.decimal128(38, 18)),
        (pa.array([Decimal("388.8")], pa.decimal64(9, 1)), pa.decimal128(38, 38)),
        (pa.array([Decimal("9" * 60)], pa.decimal256(60, 0)), pa.decimal128(38, 18)),
        (pa.array([Decimal("1.25")]), pa.decimal128(5, 1)),
        (pa.array([b"\xff"]), pa.string()),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_a_value_that_would_change_is_an_error(array: Any, target: pa.DataType) -> None:
    with pytest.raises(SchemaMismatchError, match=r"column 'c'.*without changing them"):
        conform_array(array, target, column="c")


@pytest.mark.parametrize(
    ("array", "target"),
    [
        (pa.array([1]), pa.string()),
        (pa.array(["1"]), pa.int64()),
        (pa.array(["a"]), pa.binary()),
        (pa.array([1]), pa.bool_()),
        (pa.array([True]), pa.int64()),
        (pa.array([1]), pa.date32()),
        (pa.array([date(1970, 1, 1)]), UTC_MICROS),
        (pa.array([1], pa.timestamp("us", "Europe/Berlin")), pa.timestamp("us")),
        (pa.array([1], pa.time64("us")), pa.timestamp("us")),
        (pa.array([1.5]), pa.decimal128(3, 1)),
        (pa.array([Decimal("1.5")]), pa.float64()),
        (pa.array([[1]]), pa.int64()),
        (pa.array([1]), pa.list_(pa.int64())),
        (pa.array([{"a": 1}]), pa.map_(pa.string(), pa.int64())),
        (pa.array([1]), pa.struct([("a", pa.int64())])),
        (pa.array([{"a": 1}]), pa.struct([("b", pa.int64())])),
        (pa.array([{"a": 1}]), VARIANT),
        (pa.array([1]), VARIANT),
        (pa.array([1]), pa.null()),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_another_kind_of_thing_is_an_error(array: Any, target: pa.DataType) -> None:
    with pytest.raises(SchemaMismatchError, match=r"cannot store .* of column 'c' as"):
        conform_array(array, target, column="c")


def test_a_double_becomes_the_nearest_float() -> None:
    values = [0.1, None, float("inf"), float("nan")]
    result = conform_array(pa.array(values), pa.float32())
    assert repr(result.to_pylist()) == repr(pa.array(values, pa.float32()).to_pylist())


@pytest.mark.protocol("SCH-06", "D-28")
def test_void_becomes_nulls_of_any_type() -> None:
    for target in (pa.int64(), pa.list_(pa.string()), pa.map_(pa.string(), pa.int8()), VARIANT):
        result = conform_array(pa.nulls(2), target)
        assert (result.type, result.to_pylist()) == (target, [None, None])


def test_structs_go_by_name_and_hide_what_lies_under_null() -> None:
    child = pa.array([1, 2**40, 3])
    array = pa.StructArray.from_arrays(
        [child, pa.array(["x", "y", "z"])],
        names=["b", "a"],
        mask=pa.array([False, True, False]),
    )
    target = pa.struct([("a", pa.string()), ("b", pa.int8()), ("c", pa.date32())])
    expected = [{"a": "x", "b": 1, "c": None}, None, {"a": "z", "b": 3, "c": None}]
    assert conform_array(array, target).to_pylist() == expected
    assert conform_array(array.slice(1), target).to_pylist() == expected[1:]


def test_an_error_deep_inside_names_its_path() -> None:
    array = pa.array(
        [[("k", [{"x": 300}])]], pa.map_(pa.string(), pa.list_(pa.struct([("x", pa.int64())])))
    )
    target = pa.map_(pa.string(), pa.list_(pa.struct([("x", pa.int8())])))
    with pytest.raises(SchemaMismatchError, match=r"'m\.value\.element\.x'"):
        conform_array(array, target, column="m")


def test_sliced_maps() -> None:
    array = pa.array(
        [[("a", 1)], None, [], [("b", 2), ("c", None)]], pa.map_(pa.large_string(), pa.int64())
    )
    target = pa.map_(pa.string(), pa.int32())
    result = conform_array(array.slice(1), target)
    result.validate(full=True)
    assert result.to_pylist() == [None, [], [("b", 2), ("c", None)]]


@pytest.mark.protocol("B-51")
def test_variants_by_their_storage() -> None:
    plain = pa.array([{"value": b"\x00", "metadata": b"\x01\x00\x00"}, None])
    result = conform_array(plain, VARIANT)
    assert result.type == VARIANT
    assert result.to_pylist() == [{"metadata": b"\x01\x00\x00", "value": b"\x00"}, None]
    assert conform_array(result, VARIANT) is result


def test_tables_get_the_schemas_columns_order_and_types() -> None:
    texts: Any = pa.chunked_array([["x"], ["y"]]).dictionary_encode()
    table = pa.table({"b": texts, "a": [1, 2]})
    kinds: dict[str, pa.DataType] = {"a": pa.int32(), "b": pa.string(), "c": pa.date32()}
    schema = pa.schema(kinds)
    result = conform(table, schema)
    assert result.schema == schema
    assert result.to_pylist() == [{"a": 1, "b": "x", "c": None}, {"a": 2, "b": "y", "c": None}]
    batch = conform(table.to_batches()[0], schema)
    assert isinstance(batch, pa.RecordBatch)
    assert batch.schema == schema


def test_columns_that_are_too_many_are_refused() -> None:
    schema = pa.schema([("a", pa.int64())])
    with pytest.raises(SchemaMismatchError, match="'b' that the schema lacks"):
        conform(pa.table({"a": [1], "b": [2]}), schema)
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(SchemaMismatchError, match="2 columns named 'a'"):
        conform(twice, schema)


def test_tables_without_rows() -> None:
    schema = pa.schema([("a", pa.list_(pa.field("element", pa.int32()))), ("b", VARIANT)])
    empty = pa.schema([("a", pa.list_view(pa.int64()))]).empty_table()
    assert conform(empty, schema).schema == schema
