"""What callers get wrong: a named error that says what to do, and the table as it was."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from deltalog import (
    CommitProperties,
    DeltaTable,
    Field,
    Schema,
    Transaction,
    write_deltalake,
    write_files,
)
from deltalog.errors import InvalidInputError
from tests.support.facade import make, unchanged

ROWS = [{"id": n, "v": "x"} for n in range(3)]


Call = Callable[[DeltaTable], object]


NAN: Any = {"x": float("nan")}
NESTED: Any = {"x": ["a", {"y": float("-inf")}]}


def refused(call: Call, message: str) -> None:
    table = make(ROWS)
    with unchanged(table), pytest.raises(InvalidInputError, match=message):
        call(table)


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.delete(parameters=[1]),
        lambda t: t.delete(parameters={"id": 1}),
        lambda t: t.delete(parameters=[1], dry_run=True),
        lambda t: t.update({"v": "'y'"}, parameters=[1]),
        lambda t: t.update(new_values={"v": "y"}, parameters={"id": 1}),
        lambda t: t.scan(parameters=[1]),
    ],
)
def test_a_forgotten_predicate_is_not_every_row(call: Call) -> None:
    refused(call, "there is no predicate")


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.delete([]),
        lambda t: t.update({"v": "'y'"}, predicate=[]),
        lambda t: write_deltalake(t, ROWS, mode="overwrite", predicate=[]),
    ],
)
def test_filters_that_came_out_empty_are_not_every_row(call: Call) -> None:
    refused(call, "omit the predicate")


def test_parameters_may_be_for_new_values_alone() -> None:
    table = make(ROWS)
    table.update({"v": ":v"}, parameters={"v": "it's"})
    assert table.to_pyarrow_table().column("v").to_pylist() == ["it's"] * 3


@pytest.mark.parametrize("given", ["v = 'y'", [("v", "'y'")]])
def test_updates_are_a_dictionary(given: Any) -> None:
    refused(lambda t: t.update(given), "expected a dictionary")
    refused(lambda t: t.update(new_values=given), "expected a dictionary")


HOURS = "expected a number of hours"


VERSIONS = "keep_versions: expected a list of version numbers"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.vacuum("7 days"), HOURS),
        (lambda t: t.vacuum(timedelta(days=8)), HOURS),
        (lambda t: t.vacuum(float("nan")), HOURS),
        (lambda t: t.vacuum(float("inf")), HOURS),
        (lambda t: t.vacuum(True), HOURS),  # meant to be dry_run
        (lambda t: t.vacuum(keep_versions=0), VERSIONS),
        (lambda t: t.vacuum(keep_versions="1"), VERSIONS),
        (lambda t: t.vacuum_report(keep_versions=["1"]), VERSIONS),
        (lambda t: t.restore(None), "None"),
        (
            lambda t: t.optimize.compact(target_size="128MB"),
            "target_size='128MB': expected a whole",
        ),
        (lambda t: t.optimize.compact(target_size=0), "target_size: expected a number"),
        (lambda t: t.optimize.compact(min_commit_interval="10m"), "'10m': expected a number"),
        (lambda t: t.optimize.z_order(["id"], max_concurrent_tasks="2"), "max_concurrent_tasks"),
        (lambda t: t.doctor(samples=-1), "samples: expected a number of 0 or more"),
        (lambda t: t.follow(on_schema_change="stop"), "expected 'raise' or 'evolve'"),
        (lambda t: t.follow(poll_seconds=-1), "poll_seconds: expected 0 or more"),
        (lambda t: t.follow(max_files_per_step=0), "max_files_per_step=0"),
    ],
)
def test_values_that_mean_nothing(call: Call, message: str) -> None:
    refused(call, message)


OPTIONS: dict[str, Any] = {"mode": "append"}


DICTIONARY: Any = {"a": "b"}


TUPLES: Any = [("a", 1)]


ONE: Any = Transaction("a", 1)


TEXT: Any = "text"
SERIES: Any = pd.Series([1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: write_deltalake(t, ROWS, target_file_size=TEXT, **OPTIONS), "a whole number"),
        (lambda t: write_deltalake(t, ROWS, target_file_size=-1, **OPTIONS), "number of bytes"),
        (
            lambda t: write_deltalake(t, ROWS, writer_properties=DICTIONARY, **OPTIONS),
            r"writer_properties: expected WriterProperties\(…\), found a dict",
        ),
        (
            lambda t: write_deltalake(t, ROWS, commit_properties=DICTIONARY, **OPTIONS),
            "commit_properties: expected CommitProperties",
        ),
        (
            lambda t: write_deltalake(t, ROWS, post_commithook_properties=DICTIONARY, **OPTIONS),
            "post_commithook_properties: expected PostCommitHookProperties",
        ),
        (
            lambda t: t.delete(commit_properties=CommitProperties(app_transactions=TUPLES)),
            "app_transactions: expected a list",
        ),
        (
            lambda _: CommitProperties(app_transactions=ONE),
            "app_transactions: expected a list",
        ),
        (lambda _: CommitProperties(TEXT), "custom_metadata: expected a dictionary"),
        (
            lambda _: CommitProperties(NAN),
            r"custom_metadata\['x'\]: expected a JSON value, found nan",
        ),
        (lambda _: CommitProperties(NESTED), r"custom_metadata\['x'\]\[1\]\['y'\]: .* found -inf"),
        (lambda t: t.optimize.compact(target_size=2**63), r"target_file_size: .* below 2\^63"),
        (lambda t: t.optimize.z_order(["id"], target_size=2**63), r"target_file_size: .* 2\^63"),
        (lambda t: write_deltalake(t, ROWS, target_file_size=2**64, **OPTIONS), r"below 2\^63"),
        *(
            (
                lambda t, one=one: t.to_pyarrow_dataset(file_pruning_predicate=[one]).to_table(),
                r"string column '[vV]' with",
            )
            for one in (
                ("v", "=", {"x": 1}),
                ("v", "!=", ["x"]),
                ("v", "=", b"x"),
                ("V", "not in", ["x", {"x": 1}]),
            )
        ),
        (lambda t: t.alter.add_columns(5), "expected a Field"),
        (lambda t: t.alter.add_constraint("id > 1"), "expected a dictionary"),
        (lambda t: t.alter.move_column("id", "up"), "expected 'first', 'last' or"),
        (lambda t: t.commit("written"), "expected WrittenFiles"),
        (lambda _: write_files(TEXT, ROWS), "expected a DeltaTable"),
        (lambda t: write_deltalake(t, SERIES, **OPTIONS), "one column, not a table"),
    ],
)
def test_options_of_the_wrong_kind(call: Call, message: str) -> None:
    """Before anything is written: a write that seems to fail would be repeated."""
    refused(call, message)


MERGE = "source.id = target.id"


def test_a_value_that_does_not_fit_names_its_column() -> None:
    with pytest.raises(InvalidInputError, match="cannot cast 'x'") as caught:
        make(ROWS).update({"id": "v"})
    assert caught.value.__notes__ == ["in the new value of column 'id'"]


def test_a_clone_lies_outside_of_its_table(tmp_path: Path) -> None:
    """A vacuum of the table would delete what it does not know."""
    write_deltalake(tmp_path / "t", ROWS)
    table = DeltaTable(tmp_path / "t")
    for target in (tmp_path / "t", tmp_path / "t" / "below", f"{tmp_path}/t/../t"):
        with pytest.raises(InvalidInputError, match="expected a location outside of the table"):
            table.clone(target, replace=True)
    assert table.clone(tmp_path / "tt").count() == 3


def test_parts_of_the_facade_say_of_which_table_they_are() -> None:
    table = make(ROWS)
    assert repr(table.optimize).startswith(f"{table!r}.optimize: compact(), z_order(), ")
    assert repr(table.alter).startswith(f"{table!r}.alter: add_columns(), ")
    for shown in (table.optimize, table.alter, table.appender()):
        page = shown._repr_html_()
        assert "(…)</td>" in page
        assert repr(table).replace("'", "&#x27;") in page
    assert "Combine small files" in table.optimize._repr_html_()
    merge = table.merge(ROWS, MERGE).when_matched_delete()
    assert (
        repr(merge)
        == f"TableMerger(into {table!r}, on {MERGE!r}, 1 clause, not run yet: call execute())"
    )
    merge.execute(dry_run=True)  # a merge that is never run warns


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("set_table_description", [5]),
        ("set_table_name", [["x"]]),
        ("set_column_comment", ["id", 5]),
        ("set_column_metadata", ["id", {5: "x"}]),
        ("set_column_metadata", ["id", "owner=me"]),
    ],
)
def test_no_metadata_is_committed_that_cannot_be_read(
    method: str, arguments: list[Any], tmp_path: Path
) -> None:
    write_deltalake(tmp_path, {"id": [1]})
    with pytest.raises(InvalidInputError, match=r"expected a (string|dictionary)"):
        getattr(DeltaTable(tmp_path).alter, method)(*arguments)
    assert DeltaTable(tmp_path).version() == 0


@pytest.mark.parametrize("options", [{"name": 5}, {"description": ["a"]}, {"name": b"x"}])
def test_no_table_is_created_with_metadata_that_cannot_be_read(
    options: Any, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInputError, match="expected a string"):
        write_deltalake(tmp_path, {"id": [1]}, **options)
    with pytest.raises(InvalidInputError, match="expected a string"):
        DeltaTable.create(tmp_path, Schema([Field("id", "long")]), **options)
    assert not DeltaTable.is_deltatable(tmp_path)
