"""What callers hand to the facade: the forms that are taken, and the errors for others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import arguments
from deltalog.errors import InvalidInputError, ObjectNotFoundError
from deltalog.expressions import col, lit, to_sql
from deltalog.scan.changes import Moment
from deltalog.schema import Field, StructType
from deltalog.sql_session import SqlSession
from deltalog.storage import open_store
from tests.support.logs import DictStore, table_of

SCHEMA = StructType([Field("id", "long"), Field("p", "string")])
NOW = datetime(2024, 1, 1, tzinfo=UTC)
AT_NOW = SqlSession(now=NOW, time_zone="UTC")


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


def test_blanks_stand_for_null_in_filters_of_partitions_alone() -> None:
    filters = [[("p", "=", ""), ("id", "=", "")], [("p", "in", ["", "a"])]]
    assert arguments.with_blanks_as_nulls(filters, ["p"]) == [
        [("p", "=", None), ("id", "=", "")],
        [("p", "in", ["", "a"])],
    ]
    assert arguments.with_blanks_as_nulls("p = ''", ["p"]) == "p = ''"


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([], None),
        ([None, []], None),
        (["id > 1"], "id > 1L"),
        ([None, "id > 1", [("p", "=", "a")]], "id > 1L AND p = 'a'"),
        ([col("id") == lit(2)], "id = 2L"),
    ],
)
def test_all_conditions_hold_together(conditions: list[Any], expected: str | None) -> None:
    found = arguments.as_condition(SCHEMA, *conditions, session=AT_NOW)
    assert (None if found is None else to_sql(found)) == expected


def test_parameters_need_a_condition() -> None:
    found = arguments.as_condition(SCHEMA, "id = :n", session=AT_NOW, parameters={"n": 3})
    assert found is not None
    assert to_sql(found) == "id = 3L"
    with pytest.raises(InvalidInputError, match="no predicate"):
        arguments.as_condition(SCHEMA, None, session=AT_NOW, parameters=[3])


def test_updates_are_sql_or_values() -> None:
    found = arguments.as_updates({"p": "upper(p)", "id": col("id")}, None, None)
    assert {name: to_sql(value) for name, value in found.items()} == {  # type: ignore[arg-type]
        "p": "upper(p)",
        "id": "id",
    }
    values = arguments.as_updates(None, {"p": "upper(p)", "id": None}, None)
    assert [to_sql(value) for value in values.values()] == ["'upper(p)'", "NULL"]  # type: ignore[arg-type]
    for updates, new in (({}, {}), (None, None)):
        with pytest.raises(InvalidInputError, match="either updates"):
            arguments.as_updates(updates, new, None)
    with pytest.raises(InvalidInputError, match="new_values"):
        arguments.as_updates({"id": 3}, None, None)  # type: ignore[dict-item]  # that is the point


def test_names_are_a_list() -> None:
    assert arguments.as_columns(None) is None
    assert arguments.as_columns(()) == []
    assert arguments.as_columns(("a", "b")) == ["a", "b"]
    for wrong in ("ab", ["a", 1], col("a")):
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


def test_an_empty_list_of_filters_is_not_every_row() -> None:
    for predicate in (None, "id = 1", [("id", "=", 1)]):
        arguments.check_given(predicate)
    nothing: tuple[object, ...] = ([], ())
    for empty in nothing:
        with pytest.raises(InvalidInputError, match="would mean all of them"):
            arguments.check_given(empty)


def test_a_table_is_where_a_log_begins() -> None:
    assert not arguments.has_table(DictStore())
    assert not arguments.has_table(DictStore({"_delta_log/_last_checkpoint": b"", "x": b""}))
    assert arguments.has_table(DictStore({f"_delta_log/{3:020}.checkpoint.parquet": b""}))
    assert arguments.has_table(table_of([]))


def test_a_location_names_a_version_unless_a_table_is_called_so(tmp_path: Path) -> None:
    named = f"{tmp_path}/t@v7"
    store, at = arguments.open_table_store(named, None, None)
    assert (store.root, at) == (f"{tmp_path}/t", 7)
    open_store(named).put("_delta_log/x", b"")
    store, at = arguments.open_table_store(named, None, None)
    assert (store.root, at) == (named, None)
    given = DictStore()
    assert arguments.open_table_store(given, None, None) == (given, None)
    options: Any = "a=b"
    with pytest.raises(InvalidInputError, match="found a str"):
        arguments.open_table_store(named, options, None)


def test_a_clone_is_not_put_below_its_table() -> None:
    arguments.check_elsewhere("/b", "/b", "/a")
    arguments.check_elsewhere("/aa", "/aa", "/a")
    arguments.check_elsewhere(DictStore(), "/a", "/a")  # whose roots say nothing
    for root in ("/a", "/a/b", "/a/"):
        with pytest.raises(InvalidInputError, match="outside of the table"):
            arguments.check_elsewhere(root, root, "/a")


def test_errors_name_the_table_once() -> None:
    with pytest.raises(ObjectNotFoundError) as caught, arguments.naming("/t"):
        raise ObjectNotFoundError("it is gone")
    assert caught.value.__notes__ == ["while opening /t"]
    with pytest.raises(ObjectNotFoundError) as known, arguments.naming("/t"):
        raise ObjectNotFoundError("/t is gone")
    assert not hasattr(known.value, "__notes__")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("files", r"is gone: use file_uris\(\)"),
        ("create_write_transaction", "comes with a later version"),
        ("vacumm", "did you mean 'vacuum'"),
        ("_vacuum", "no attribute '_vacuum'$"),
        ("xyz", "no attribute 'xyz'$"),
    ],
)
def test_missing_names_are_explained(name: str, expected: str) -> None:
    with pytest.raises(AttributeError, match=expected):
        raise AttributeError(arguments.explain_missing(name, ["vacuum", "history"]))


def test_options_are_refused_by_name() -> None:
    arguments.refuse(filesystem=None)
    arguments.refuse_both(a=None, b=0, c=None)
    with pytest.raises(InvalidInputError, match="filesystem='x' here"):
        arguments.refuse(filesystem="x")
    with pytest.raises(InvalidInputError, match="both a and c"):
        arguments.refuse_both(a=0, b=None, c=1)
