"""Calls that were accepted, but did something else than their caller meant."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake
from deltalog.errors import InvalidInputError
from tests.support.facade import make, unchanged

ROWS = [{"id": 1, "v": 10, "n": "a"}, {"id": 2, "v": 20, "n": "b"}]
NEW = [{"id": 2, "v": 99, "n": "z"}]
ON = "target.id = source.id"

Call = Callable[[DeltaTable], object]
NAIVE = dt.datetime.fromisoformat("2024-01-31T05:00:00")


def refused(call: Call, message: str, rows: Any = ROWS) -> None:
    table = make(rows)
    with unchanged(table), pytest.raises(InvalidInputError, match=message):
        call(table)


def rows_of(table: DeltaTable) -> list[dict[str, Any]]:
    return sorted(table.to_pyarrow_table().to_pylist(), key=repr)


def updated(condition: str = ON, **options: Any) -> Call:
    def run(table: DeltaTable) -> object:
        return table.merge(NEW, condition, **options).when_matched_update_all().execute()

    return run


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (updated("t.id = t.id", source_alias="`t`", target_alias="t"), "cannot both be called"),
        (updated("t.id = t.id", source_alias="t", target_alias=" T "), "cannot both be called"),
        (updated(source_alias=""), "cannot call the source '': expected a name"),
        (updated(target_alias="``"), "cannot call the target '``': expected a name"),
        (updated("target.id = target.id"), "compares a column with itself.*of the source"),
        (updated("source.id <=> source.ID"), "compares a column with itself.*of the target"),
        (updated("`target.id` = source.id"), "backticks quote one name; write target.id"),
    ],
)
def test_merges_that_compare_one_side_with_itself(call: Call, message: str) -> None:
    refused(call, message)


def test_a_statement_that_compares_one_side_with_itself() -> None:
    statement = "MERGE INTO t USING s ON t.id = t.id WHEN MATCHED THEN DELETE"
    refused(lambda t: deltalog.sql(statement, t=t, s=pa.table({"id": [1]})), "with itself")


@pytest.mark.parametrize(
    "condition",
    [
        "'n' <> 'x'",
        "'N' is not null",
        "'n' like '%'",
        "id = 7 or lower('n') in ('n', 'b')",
        "'n' between 'a' and 'z'",
        "not 'n' = 'x'",
        "rlike('n', '.')",
    ],
)
def test_a_column_in_quotes_is_a_string(condition: str) -> None:
    """Each of these conditions would be true for all rows."""
    refused(lambda t: t.delete(condition), "in quotes is a string, not the column")
    refused(lambda t: t.update({"v": "0"}, predicate=condition), "is a string, not the column")
    refused(lambda t: write_deltalake(t, NEW, mode="overwrite", predicate=condition), "is a string")


def test_columns_of_a_merge_in_quotes_are_strings() -> None:
    refused(updated("'target.id' = 'source.id'"), "'target.id' in quotes is a string")
    refused(updated('"target.id" <> "source.id"'), "'target.id' in quotes is a string")
    refused(lambda t: t.merge(NEW, ON).when_matched_delete("'v' <> 'x'").execute(), "is a string")


def test_double_quotes_without_a_column() -> None:
    refused(lambda t: t.delete("\"nn\" <> 'x'"), '"nn" is a string, because there is no column')


@pytest.mark.parametrize(
    ("condition", "parameters"),
    [
        ("n = 'n'", None),
        ("n = upper('id')", None),
        ("n in ('n', 'id')", None),
        (":x = 'all' or n = :x", {"x": "n"}),
    ],
)
def test_strings_may_be_equal_to_names(condition: str, parameters: Any) -> None:
    assert make(ROWS).delete(condition, parameters=parameters)["num_deleted_rows"] == 0


def test_a_column_has_precedence_over_a_function_without_brackets() -> None:
    """As in Spark; today is later than any string of the table."""
    table = make([{"id": 1, "current_date": "x"}, {"id": 2, "current_date": "y"}])
    assert table.delete("current_date > 'x'")["num_deleted_rows"] == 1
    table.update({"current_date": "concat(current_date, '!')"})
    assert rows_of(table) == [{"id": 1, "current_date": "x!"}]
    assert make(ROWS).delete("current_date < '2000-01-01'")["num_deleted_rows"] == 0


@pytest.mark.parametrize(
    ("column", "key"),
    [("a.b", "a.b"), ("a.b", "target.a.b"), ("a`b", "a`b"), ("source.v", "source.v")],
)
def test_assigned_names_need_no_backticks(column: str, key: str) -> None:
    table = make([{"id": 2, column: 1}])
    table.merge(NEW, ON).when_matched_update({key: "source.v"}).execute()
    assert rows_of(table) == [{"id": 2, column: 99}]


@pytest.mark.parametrize(
    ("rows", "key", "own"),
    [
        ([{"id": 2, "v": 1, "target.v": 1}], "target.v", "target.`target.v`"),
        ([{"id": 2, "v": 1, "t": {"v": 1}}], "t.v", "t.`t`.`v`"),
    ],
)
def test_assigned_names_with_two_meanings(rows: Any, key: str, own: str) -> None:
    alias = None if key.startswith("target") else "t"

    def call(table: DeltaTable, name: str) -> object:
        merger = table.merge(NEW, ON, target_alias=alias)
        return merger.when_matched_update({name: "5"}).execute()

    refused(lambda t: call(t, key), "it may be", rows)
    table = make(rows)
    call(table, own)
    (found,) = rows_of(table)
    assert found["v"] == 1
    assert 5 in [found.get(key), (found.get("t") or {}).get("v")]


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.delete("id = 1", parameters={"x": 1}),
        lambda t: t.delete("n <> ':x'", parameters={"x": "a"}),
        lambda t: t.delete(deltalog.col("id") == 1, parameters={"x": 1}),
        lambda t: t.update({"v": "1"}, parameters={"x": 1}),
        lambda t: t.update({"v": ":y"}, predicate="id = 1", parameters={"x": 1, "y": 2}),
        lambda t: t.merge(NEW, ON, parameters={"x": 1}).when_matched_delete().execute(),
        lambda t: t.scan(predicate="id = 1", parameters={"x": 1}),
        lambda t: write_deltalake(t, NEW, mode="overwrite", parameters=[1]),
        lambda t: write_deltalake(t, NEW, mode="append", parameters={"x": 1}),
    ],
)
def test_parameters_that_nothing_uses(call: Call) -> None:
    """The caller has forgotten the predicate, or has quoted the parameter."""
    refused(call, "cannot use the parameter 'x'|parameters=.*there is no predicate")


def test_parameters_that_updates_and_predicate_share() -> None:
    table = make(ROWS)
    table.update({"v": ":x", "n": ":z"}, predicate="id = :x", parameters={"x": 1, "z": "c"})
    assert rows_of(table) == [{"id": 1, "v": 1, "n": "c"}, ROWS[1]]


NESTED = [{"id": 1, "d": Decimal("1.50"), "l": [1], "s": {"a": 1, "f": 1.5}, "n": "a"}]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("d", 2.555, "round it to 2 digits"),
        ("id", True, "pass 1"),
        ("d", False, "pass 0"),
        ("l", [7.5], "pass a whole number"),
        ("s.a", 7.5, "pass a whole number"),
        ("s", {"a": 7.5, "f": 1.0}, "pass a whole number"),
        ("id", 5.7, "pass a whole number"),
        ("id", dt.date(2024, 1, 31), "no such cast"),
    ],
)
def test_python_values_are_stored_as_they_are(name: str, value: object, message: str) -> None:
    refused(lambda t: t.update(new_values={name: value}), message, NESTED)
    source = [{"id": 1}]
    refused(
        lambda t: t.merge(source, ON).when_matched_update({name: value}).execute(), message, NESTED
    )


@pytest.mark.parametrize(
    ("stored", "value", "message"),
    [
        ([dt.date(2024, 1, 31)], [NAIVE], "pass value.date()"),
        ([dt.date(2024, 1, 31)], [5], "pass a date or datetime"),
        ([NAIVE], [5], "pass a date or datetime"),
        (NAIVE, dt.datetime(2024, 1, 31, tzinfo=dt.UTC), "without a time zone"),
        ({"at": dt.date(2024, 1, 31)}, {"at": 5}, "pass a date or datetime"),
    ],
)
def test_moments_are_stored_as_they_are(stored: object, value: object, message: str) -> None:
    refused(lambda t: t.update(new_values={"m": value}), message, [{"m": stored}])


def test_values_of_maps_are_stored_as_they_are() -> None:
    rows = pa.table({"m": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))})
    refused(lambda t: t.update(new_values={"m": {"a": 5.5}}), "pass a whole number", rows)


def test_nested_times_without_a_zone(tmp_path: Path) -> None:
    write_deltalake(tmp_path, [{"m": [dt.datetime(2024, 1, 31, tzinfo=dt.UTC)]}])
    table = DeltaTable(tmp_path, default_timezone="Europe/Berlin")
    with pytest.raises(InvalidInputError, match="a datetime without a time zone; add tzinfo"):
        table.update(new_values={"m": [NAIVE]})
    table.update(new_values={"m": [dt.datetime(2024, 2, 1, tzinfo=dt.UTC)]})
    assert rows_of(table) == [{"m": [dt.datetime(2024, 2, 1, tzinfo=dt.UTC)]}]


def test_python_values_that_fit() -> None:
    table = make(NESTED)
    table.update(new_values={"d": 2.55, "l": [7.0], "s.a": 3.0, "id": 4.0, "n": True})
    expected = {"id": 4, "d": Decimal("2.55"), "l": [7], "s": {"a": 3, "f": 1.5}, "n": "true"}
    assert rows_of(table) == [expected]


@pytest.mark.parametrize("empty", [lambda: iter([]), lambda: map(dict, []), zip])
def test_an_iterator_without_items_warns(empty: Callable[[], Any]) -> None:
    """It may have been read before, which only a generator can tell."""
    table = make({"id": [1]})
    with pytest.warns(UserWarning, match="has no items, so no rows are written; an iterator"):
        write_deltalake(table, empty(), mode="append")
    assert table.count() == 1


def consumed() -> Any:
    rows = iter(pa.table({"id": [1]}).to_batches())
    list(rows)
    return rows


@pytest.mark.parametrize(
    "rows", [lambda: pa.table({}), dict, pd.DataFrame, consumed], ids=["pa", "dict", "pd", "read"]
)
def test_data_without_columns(rows: Callable[[], Any]) -> None:
    refused(
        lambda t: write_deltalake(t, rows(), mode="overwrite", predicate="id = 1"),
        "the data has no columns",
    )
    refused(lambda t: t.upsert(rows(), "id"), "has no columns")
    refused(
        lambda t: t.merge(rows(), ON).when_not_matched_by_source_delete().execute(),
        "has no columns",
    )


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_rows_without_keys(mode: Any) -> None:
    refused(lambda t: write_deltalake(t, [{}, {}], mode=mode), "cannot write 2 rows without keys")


def test_a_tuple_without_rows_is_merged_as_a_list() -> None:
    table = make(ROWS)
    table.merge((), ON).when_not_matched_by_source_delete("id = 1").execute()
    assert rows_of(table) == ROWS[1:]


@pytest.mark.parametrize("predicate", [False, 1, ["v"], [("v", "=", 1)]])
def test_conditions_of_clauses(predicate: Any) -> None:
    refused(lambda t: t.merge(NEW, ON).when_matched_update_all(predicate), "with the condition")
    refused(lambda t: t.merge(NEW, ON).when_matched_delete(predicate), "with the condition")


def test_a_clause_that_assigns_nothing() -> None:
    names = ["id", "v", "n"]
    refused(
        lambda t: t.merge(NEW, ON).when_not_matched_insert_all(except_cols=names).execute(),
        "assigns nothing: except_cols has all source columns",
    )


def test_an_appender_without_key_columns() -> None:
    refused(lambda t: t.appender(upsert=[]), r"upsert=\[\].*upsert=False appends all rows")


def test_a_branch_begins_at_the_version_of_its_table(tmp_path: Path) -> None:
    write_deltalake(tmp_path, ROWS)
    write_deltalake(tmp_path, NEW, mode="append")
    branch = DeltaTable(tmp_path, version=0).branch("old")
    assert rows_of(branch) == ROWS
    assert DeltaTable(tmp_path).branch("new").count() == 3
    with pytest.raises(InvalidInputError, match="exists, and starts at version 0"):
        DeltaTable(tmp_path).branch("old", version=1, exist_ok=True)
    assert DeltaTable(tmp_path).branch("old", version=0, exist_ok=True).count() == 2


def test_words_about_an_existing_table(caplog: pytest.LogCaptureFixture) -> None:
    table = make(ROWS)
    with caplog.at_level(logging.WARNING):
        write_deltalake(table, NEW, mode="append", name="prices")
    assert "name='prices' has no effect" in caplog.text
    assert table.metadata().name is None


def test_a_check_may_end_with_a_comment() -> None:
    table = make(ROWS)
    branch = table.branch("draft")
    write_deltalake(branch, NEW, mode="append")
    assert branch.publish(["v > 0 -- prices"]).version == 1


@pytest.mark.parametrize("nest", [lambda key: key, lambda key: [key], lambda key: {"in": key}])
def test_fields_of_a_key_in_another_order(nest: Callable[[Any], Any]) -> None:
    """Structs are compared by position, so that the row would be inserted a second time."""
    table = make([{"key": nest({"a": 1, "b": 2}), "v": 1}])
    table.upsert([{"key": nest({"b": 2, "a": 1}), "v": 9}], "key")
    assert rows_of(table) == [{"key": nest({"a": 1, "b": 2}), "v": 9}]
