"""Columns of data, matched to those of a table."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from deltalog.data.write.fit import Fit
from deltalog.errors import (
    SchemaMismatchError,
)
from deltalog.schema import ArrayType, Field, MapType, PrimitiveType, StructType, VariantType
from tests.support.writes import enforced, table

NAIVE = datetime(2024, 7, 1, 12)  # noqa: DTZ001  # without a zone on purpose


@pytest.mark.protocol("B-33", "D-38", "D-66", "CONS-03")
def test_columns_are_matched_without_case_and_put_in_order() -> None:
    rows = enforced(
        table(Field("Id", "long"), Field("p", "string"), Field("x", "date")),
        {
            "P": ["a"],
            "ID": [1],
        },
    )
    assert rows == {"Id": [1], "p": ["a"], "x": [None]}


def test_nested_names_are_matched_without_case() -> None:
    inner = StructType([Field("A", "long"), Field("b", "string")])
    fields = (
        Field("s", inner),
        Field("l", ArrayType(inner)),
        Field("m", MapType("string", inner)),
    )
    value = {"B": "x", "a": 1}
    data = pa.table(
        [
            pa.array([value]),
            pa.array([[value]]),
            pa.array(
                [[("k", value)]],
                pa.map_(pa.string(), pa.struct([("B", pa.string()), ("a", pa.int64())])),
            ),
        ],
        names=["S", "L", "M"],
    )
    wanted = {"A": 1, "b": "x"}
    assert enforced(table(*fields), data) == {
        "s": [wanted],
        "l": [[wanted]],
        "m": [[("k", wanted)]],
    }


@pytest.mark.protocol("CONS-01")
def test_all_columns_that_are_too_many_are_named() -> None:
    fields = (Field("a", "long"), Field("s", StructType([Field("x", "long")])))
    data = pa.table({"a": [1], "new": [2], "s": [{"x": 1, "y": 2}]})
    with pytest.raises(
        SchemaMismatchError, match=r"column\(s\) 'new', 's\.y' that the table lacks"
    ):
        enforced(table(*fields), data)


@pytest.mark.protocol("CONS-03")
def test_all_columns_that_are_missing_are_named() -> None:
    inner = StructType([Field("x", "long", nullable=False), Field("y", "long")])
    fields = (Field("a", "long", nullable=False), Field("s", inner), Field("b", "long"))
    with pytest.raises(SchemaMismatchError, match=r"lacks column\(s\) 's\.x', 'a' that must not"):
        enforced(table(*fields), {"s": [{"y": 1}], "b": [1]})


def test_a_column_twice_is_refused() -> None:
    with pytest.raises(SchemaMismatchError, match=r"'A' more than once, ignoring case"):
        enforced(table(Field("a", "long")), {"a": [1], "A": [2]})


@pytest.mark.parametrize(
    ("kind", "values", "stored"),
    [
        ("integer", pa.array([7], pa.int64()), 7),
        ("double", pa.array([7], pa.int32()), 7.0),
        ("decimal(10,2)", pa.array([7]), Decimal("7.00")),
        ("decimal(10,2)", pa.array([Decimal("1.5")]), Decimal("1.50")),
        ("string", pa.array(["a"]).dictionary_encode(), "a"),
        ("string", pa.array(["a"], pa.large_string()), "a"),
        ("string", pa.array(["a"], pa.string_view()), "a"),
        ("timestamp_ntz", pa.array([NAIVE]), NAIVE),
        ("timestamp", pa.array([NAIVE]), NAIVE.replace(tzinfo=UTC)),
        ("date", pa.nulls(1), None),
        ("binary", pa.array([b"1"], pa.binary(1)), b"1"),
    ],
    ids=str,
)
def test_values_are_stored_where_they_fit(kind: str, values: Any, stored: Any) -> None:
    assert enforced(table(Field("x", kind)), {"x": values}) == {"x": [stored]}


@pytest.mark.parametrize(
    ("kind", "values"),
    [("integer", pa.array(["7"])), ("boolean", pa.array([1])),
     ("long", pa.array([date(2024, 1, 1)])), (ArrayType("long"), pa.array([1])),
     ("string", pa.array([True])), (VariantType(), pa.array(["{}"]))],
    ids=str,
)  # fmt: skip
def test_types_that_do_not_fit_are_refused(kind: Any, values: Any) -> None:
    with pytest.raises(SchemaMismatchError, match=r"column 'x' is of type .* and cannot store"):
        enforced(table(Field("x", kind)), {"x": values})


@pytest.mark.parametrize(
    ("kind", "values"),
    [("integer", pa.array([2**40])), ("integer", pa.array([1.5])),
     ("byte", pa.array([200])), ("decimal(3,2)", pa.array([100])),
     (ArrayType("timestamp"), pa.array([[1]], pa.list_(pa.timestamp("ns"))))],
    ids=str,
)  # fmt: skip
def test_values_that_do_not_fit_are_refused(kind: Any, values: Any) -> None:
    with pytest.raises(SchemaMismatchError, match=r"'x(\.element)?'"):
        enforced(table(Field("x", kind)), {"x": values})


@pytest.mark.parametrize(
    ("kind", "values", "stored"),
    [
        ("integer", pa.array(["7", None, " -8 "]), [7, None, -8]),
        ("double", pa.array(["1.5"]).dictionary_encode(), [1.5]),
        ("decimal(5,2)", pa.array(["1.2500", "1e2", " 1 "]), [Decimal("1.25"), 100, 1]),
        ("boolean", pa.array(["true", "f"], pa.large_string()), [True, False]),
        ("date", pa.array(["2024-07-01"], pa.string_view()), [date(2024, 7, 1)]),
        ("timestamp", pa.array(["2024-07-01 12:00:00"]), [NAIVE.replace(tzinfo=UTC)]),
        ("timestamp_ntz", pa.array(["2024-07-01T12:00:00"]), [NAIVE]),
        ("timestamp", pa.array([date(2024, 7, 1)]), [datetime(2024, 7, 1, tzinfo=UTC)]),
        ("string", pa.array([7, None]), ["7", None]),
        ("string", pa.array([1.0, 1e20]), ["1.0", "1.0E20"]),
        ("string", pa.array([Decimal("1.50")]), ["1.50"]),
        ("string", pa.array([True]), ["true"]),
        ("string", pa.array([date(2024, 7, 1)]), ["2024-07-01"]),
        ("double", pa.array([Decimal("1.25")]), [1.25]),
        ("decimal(5,2)", pa.array([1.25, None, 1.1]), [Decimal("1.25"), None, Decimal("1.10")]),
        ("decimal(9,8)", pa.array([1.1], pa.float32()), [Decimal("1.10000000")]),
        ("decimal(38,2)", pa.array([1e30]), [Decimal("1e30")]),
        ("date", pa.array([" 2024-7-1 ", None]), [date(2024, 7, 1), None]),
        (
            "timestamp",
            pa.array(["2024-07-01T14:00+02:00", "2024-07-01T12", "2024-07-01T12:00:00.0000000Z"]),
            [NAIVE.replace(tzinfo=UTC)] * 3,
        ),
        ("timestamp", pa.array(["2024-07-01"]), [datetime(2024, 7, 1, tzinfo=UTC)]),
        ("timestamp_ntz", pa.array(["2024-07-01T12:00Z", "2024-07-01 12:00"]), [NAIVE] * 2),
        ("timestamp_ntz", pa.array([NAIVE.replace(tzinfo=UTC)]), [NAIVE]),
        ("double", pa.array(["inf", "-Infinity", "1e300"]), [math.inf, -math.inf, 1e300]),
    ],
    ids=str,
)
def test_columns_are_cast_where_that_is_asked_for(kind: str, values: Any, stored: Any) -> None:
    assert enforced(table(Field("x", kind)), {"X": values}, casts=True) == {"x": stored}


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        ("integer", pa.array(["1", "x"]), "string values of column 'x' as integer: .*'x'"),
        ("byte", pa.array(["200"]), "string values of column 'x' as byte"),
        ("date", pa.array(["2024-13-01"]), "string values of column 'x' as date"),
        ("decimal(3,2)", pa.array([100.0]), r"double values of column 'x' as decimal\(3,2\)"),
        ("date", pa.array([NAIVE]), "cannot store timestamp_ntz; cast the data to that type first"),
        ("boolean", pa.array([1]), "cannot store long; cast the data to that type first"),
        ("long", pa.array([True]), "cannot store boolean"),
        ("binary", pa.array(["x"]), "cannot store string"),
        (
            ArrayType("long"),
            pa.array([["1"]]),
            "'x.element' .* cannot store string",
        ),
    ],
    ids=str,
)
def test_no_value_is_changed_by_a_cast(kind: Any, values: Any, message: str) -> None:
    with pytest.raises(SchemaMismatchError, match=message):
        enforced(table(Field("x", kind)), {"x": values}, casts=True)


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("date", "2024-07-01T23:00", "'2024-07-01T23:00' is not just one day; expected YYYY-MM-DD"),
        ("date", "2024-07-01 00:00:00", "not just one day"),
        ("date", "2024-07-01T10:00:00+05:00", "not just one day"),
        ("date", "2024-07", "'2024-07' is not just one day"),
        ("date", "2024", "not just one day"),
        ("timestamp", "2024-07", "'2024-07' lacks the day"),
        ("timestamp", "2024-07-01T12:00:00.1234567", "has more than 6 digits after the seconds"),
        ("timestamp", "2024-07-01T12:00:00.1234567+02:00", "more than 6 digits"),
        ("timestamp_ntz", "2024-07-01T12:00:00.1234567", "more than 6 digits"),
        ("timestamp_ntz", "2024-07-01T12:00:00+02:00", "has a time zone, and the column stores"),
        ("timestamp_ntz", "2024-07-01T12:00+02:00", "has a time zone"),
        ("timestamp_ntz", "2024-07-01 12:00:00 Europe/Berlin", "has a time zone"),
        ("decimal(6,2)", "1.239", "round '1.239' to 2 digits after the point"),
        ("decimal(6,2)", "1e-3", "round '1e-3' to 2 digits"),
        ("decimal(6,1)", "0.01", "to 1 digit after the point"),
        ("decimal(6,0)", "0.5", "to a whole number"),
        ("decimal(6,2)", 1.239, "round 1.239 to 2 digits after the point"),
        ("decimal(6,2)", 0.1 + 0.2, "round 0.30000000000000004 to 2 digits"),
        ("decimal(6,2)", math.inf, "a decimal cannot be inf; use None"),
        ("decimal(6,2)", math.nan, "a decimal cannot be nan; use None"),
        ("decimal(6,2)", 12345, "12345 is out of range"),
        ("double", "1e400", "'1e400' is out of range of double"),
        ("float", "-1e39", "'-1e39' is out of range of float"),
        ("integer", 1.5, "round 1.5 to a whole number"),
        ("integer", math.nan, "nan is no integer; use None"),
        ("integer", 2**31, "2147483648 is out of range of integer"),
        ("integer", Decimal("1.5"), "round 1.5 to a whole number"),
        ("float", 2**24 + 1, "16777217"),
    ],
    ids=repr,
)
def test_values_that_a_cast_would_change_are_refused(kind: str, value: Any, message: str) -> None:
    data = {"x": [None, value]}
    with pytest.raises(SchemaMismatchError, match="without changing them") as caught:
        enforced(table(Field("x", kind)), data, casts=True)
    assert message in str(caught.value)


@pytest.mark.parametrize("wrap", [lambda one: one, lambda one: [one]], ids=["plain", "nested"])
def test_times_of_other_zones_have_no_local_time(wrap: Any) -> None:
    local = NAIVE.replace(tzinfo=timezone(timedelta(hours=5)))
    kind = PrimitiveType("timestamp_ntz")
    column = Field("x", ArrayType(kind) if isinstance(wrap(1), list) else kind)
    with pytest.raises(SchemaMismatchError, match=r"time zone '\+05:00', .*remove the zone"):
        enforced(table(column), {"x": [wrap(local)]}, casts=True)


def test_texts_of_times_are_not_read_in_another_zone() -> None:
    configuration, data = table(Field("x", "timestamp")), {"x": ["2024-07-01 12:00:00"]}
    with pytest.raises(SchemaMismatchError, match="cannot store string"):
        enforced(configuration, data, casts=True, time_zone="Europe/Berlin")


@pytest.mark.parametrize("zone", [None, "Asia/Kathmandu"])
def test_nanoseconds_are_cut_off_with_a_notice(
    zone: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    kind = "timestamp_ntz" if zone is None else "timestamp"
    nanos = pa.timestamp("ns", zone)
    epoch = datetime(1970, 1, 1, tzinfo=None if zone is None else UTC)
    microsecond = timedelta(microseconds=1)
    configuration = table(Field("x", kind))
    exact = enforced(configuration, {"x": pa.array([5000, None], nanos)})
    assert (exact, caplog.messages) == ({"x": [epoch + 5 * microsecond, None]}, [])
    cut = enforced(configuration, {"x": pa.array([1999, -1], nanos)})
    assert cut == {"x": [epoch + microsecond, epoch - microsecond]}
    assert "column 'x': timestamps are stored in microseconds" in caplog.text


def test_two_binaries_are_a_variant() -> None:
    value = {"metadata": b"\x01\x00\x00", "value": b"\x00"}
    rows = enforced(table(Field("v", VariantType()), features=["variantType"]), {"v": [value]})
    assert rows == {"v": [value]}


def test_a_zone_is_given_to_times_that_have_none() -> None:
    configuration = table(Field("x", "timestamp"))
    data = {"x": [NAIVE]}
    rows = enforced(configuration, data, time_zone="Europe/Berlin")
    assert rows == {"x": [datetime(2024, 7, 1, 10, tzinfo=UTC)]}


def test_a_zone_is_given_to_nothing_else() -> None:
    moment = NAIVE.replace(tzinfo=UTC)
    data = pa.table(
        {"t": pa.array([moment], pa.timestamp("ms", "UTC")), "n": pa.array([1], pa.int32())}
    )
    configuration = table(Field("t", "timestamp"), Field("n", "long"))
    found = enforced(configuration, data, time_zone="Europe/Berlin")
    assert found == {"t": [moment], "n": [1]}


def test_no_zone_is_guessed_inside_of_a_column() -> None:
    configuration = table(Field("x", ArrayType("timestamp")))
    data = {"x": [[NAIVE]]}
    with pytest.raises(SchemaMismatchError, match="nested times without a zone"):
        enforced(configuration, data, time_zone="Europe/Berlin")


def test_a_field_called_timestamp_may_be_without_a_zone() -> None:
    inner = StructType([Field("timestamp", "timestamp_ntz")])
    data = {"x": [{"timestamp": NAIVE}]}
    assert enforced(table(Field("x", inner)), data, time_zone="Europe/Berlin") == data


INNER = StructType([Field("x", "long"), Field("y", "string")])


@pytest.mark.parametrize(
    ("kind", "given", "is_same"),
    [
        ("long", pa.int64(), True),
        ("long", pa.int32(), False),
        ("double", pa.float32(), False),
        ("string", pa.string(), True),
        ("string", pa.large_string(), False),
        ("string", pa.dictionary(pa.int32(), pa.string()), False),
        ("decimal(10,2)", pa.decimal128(10, 2), True),
        ("decimal(10,2)", pa.decimal128(9, 2), False),
        ("timestamp", pa.timestamp("us", "UTC"), True),
        ("timestamp", pa.timestamp("us", "Asia/Tokyo"), False),
        ("timestamp", pa.timestamp("us"), False),
        ("timestamp", pa.timestamp("ns", "UTC"), False),
        (INNER, pa.struct([("x", pa.int64()), ("y", pa.string())]), True),
        (INNER, pa.struct([("X", pa.int64()), ("y", pa.string())]), False),
        (INNER, pa.struct([("y", pa.string()), ("x", pa.int64())]), False),
        (INNER, pa.struct([("x", pa.int64())]), False),
        (ArrayType("long"), pa.list_(pa.int32()), False),
        (ArrayType(INNER), pa.list_(pa.struct([("x", pa.int64())])), False),
    ],
)
def test_columns_of_the_same_type_are_taken_as_they_are(
    kind: Any, given: pa.DataType, *, is_same: bool
) -> None:
    configuration = table(Field("a", kind), Field("b", "long"))
    source = pa.schema([("b", pa.int64()), ("A", given)])
    fit = Fit(source, configuration.schema, time_zone="UTC")
    assert fit.sources == ((1, 0) if is_same else None)
