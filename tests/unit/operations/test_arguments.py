"""What callers hand to the facade: the forms that are taken, and the errors for others."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pyarrow as pa
import pytest

from deltalog._util.clock import Moment
from deltalog.errors import InvalidInputError
from deltalog.expressions import col
from deltalog.operations import arguments, names_elsewhere
from deltalog.schema import Field, StructType

SCHEMA = StructType([Field("id", "long"), Field("p", "string")])


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        ("1970-01-01", 0),
        ("1970-01-01T00:00:01.234567Z", 1_234),
        ("1970-01-01 01:00:00+01:00", 0),
        (datetime(1970, 1, 1, 0, 0, 2), 2_000),  # noqa: DTZ001  # that is the point
        (datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), 0),
        ("1969-12-31T23:59:59.999500Z", -1),
    ],
)
def test_moments_are_milliseconds_in_utc(moment: object, expected: int) -> None:
    assert arguments.as_timestamp_ms(moment) == expected


@pytest.mark.parametrize("moment", ["", "yesterday", "2024-13-01", 7, None, 1.5])
def test_what_is_no_moment(moment: object) -> None:
    with pytest.raises(InvalidInputError, match="ISO 8601"):
        arguments.as_timestamp_ms(moment)


def test_bounds_are_versions_or_moments() -> None:
    assert arguments.as_bound(7) == 7
    assert arguments.as_bound("1970-01-01T00:00:01Z") == Moment(1_000)
    with pytest.raises(InvalidInputError, match="True"):
        arguments.as_bound(True)
    assert arguments.as_one_bound(version=None, timestamp=None) is None
    assert arguments.as_one_bound(version=0, timestamp=None) == 0
    with pytest.raises(InvalidInputError, match="both version and timestamp"):
        arguments.as_one_bound(version=0, timestamp="1970-01-01")


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (None, None, (0, None)),
        (2, 5, (2, 5)),
        (2, 9, (2, 7)),
        (8, 9, (8, 9)),  # which is refused, or empty, as the caller says
        (7, 7, (7, 7)),
        (Moment(1), 9, (Moment(1), 7)),
        (8, Moment(1), (8, Moment(1))),
    ],
    ids=str,
)
def test_a_range_ends_at_the_newest_version_unless_it_starts_later(
    start: int | Moment | None, end: int | Moment | None, expected: object
) -> None:
    assert arguments.as_range(start, end, newest=7) == expected


def test_names_are_a_list() -> None:
    assert arguments.as_columns(None) is None
    assert arguments.as_columns(()) == []
    assert arguments.as_columns(("a", "b")) == ["a", "b"]
    assert arguments.as_columns("ab") == ["ab"]
    for wrong in ("a,b", ["a", 1], col("a")):
        with pytest.raises(InvalidInputError, match="list of names"):
            arguments.as_columns(wrong)  # type: ignore[arg-type]  # that is the point


def test_limits_and_numbers() -> None:
    assert [arguments.as_limit(limit) for limit in (None, 0, 7)] == [None, 0, 7]
    for wrong in (-1, True, 1.0, "1"):
        with pytest.raises(InvalidInputError, match="whole number"):
            arguments.as_limit(wrong)
    for right in (None, 0, 0.5, 7):
        arguments.check_number("n", right)
    for bad in (-1, True, float("nan"), float("inf"), "1"):
        with pytest.raises(InvalidInputError, match="n: expected a number of 0 or more"):
            arguments.check_number("n", bad)
    with pytest.raises(InvalidInputError, match="of 1 or more"):
        arguments.check_number("n", 0, least=1)


def test_types_that_are_asked_for_are_of_columns_that_are_there() -> None:
    assert arguments.as_arrow_schema(None, SCHEMA, as_large_types=False) is None
    both: dict[str, pa.DataType] = {"id": pa.int64(), "p": pa.large_string()}
    large = arguments.as_arrow_schema(None, SCHEMA, as_large_types=True)
    assert large == pa.schema(both)
    hidden: dict[str, pa.DataType] = {"p": pa.string(), "_metadata.row_id": pa.int64()}
    own = pa.schema(hidden)
    assert arguments.as_arrow_schema(own, SCHEMA, as_large_types=False) is own
    with pytest.raises(InvalidInputError, match="nope"):
        arguments.as_arrow_schema(pa.schema([("nope", pa.int64())]), SCHEMA, as_large_types=False)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("files", r"is gone: use file_uris\(\)"),
        ("vacumm", "did you mean 'vacuum'"),
        ("_vacuum", "no attribute '_vacuum'$"),
        ("xyz", r"no attribute 'xyz'; help\(DeltaTable\) lists the methods, and t\.alter and .*$"),
    ],
)
def test_missing_names_are_explained(name: str, expected: str) -> None:
    with pytest.raises(AttributeError, match=expected):
        raise AttributeError(names_elsewhere.explain_missing(name, ["vacuum", "history"]))


def test_options_are_refused_by_name() -> None:
    arguments.refuse_both(a=None, b=0, c=None)
    with pytest.raises(InvalidInputError, match="both a and c"):
        arguments.refuse_both(a=0, b=None, c=1)
