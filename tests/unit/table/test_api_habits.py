"""Python habits of other libraries: calls on classes, keyword arguments, imports, and options."""

from __future__ import annotations

import importlib
import inspect
import logging
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import deltalog
from deltalog import (
    CommitProperties,
    DeltaTable,
    Field,
    PostCommitHookProperties,
    write_deltalake,
)
from deltalog.data.scan.plan import Scan
from deltalog.errors import InvalidInputError
from deltalog.sharing import SharedTable

ROWS = [{"id": 1, "name": "a"}]
CLASS: Any = DeltaTable
SHARED: Any = SharedTable


def _any(value: Any) -> Any:
    """Hide the type of a value, so that type checkers accept a wrong call."""
    return value


@pytest.fixture
def table(tmp_path: Path) -> Any:
    write_deltalake(tmp_path / "t", ROWS, configuration={"delta.enableChangeDataFeed": "true"})
    return DeltaTable(tmp_path / "t")


@pytest.mark.parametrize(
    ("call", "instead"),
    [
        (lambda: CLASS.delete("t", "id = 1"), r"DeltaTable\('t'\)\.delete\(…\)"),
        (lambda: CLASS.delete("t", 5), r"DeltaTable\('t'\)\.delete\(…\)"),
        (lambda: CLASS.clone("orders", "new"), r"DeltaTable\('orders'\)\.clone\(…\)"),
        (lambda: CLASS.history("t"), r"DeltaTable\('t'\)\.history\(…\)"),
        (CLASS.history, r"DeltaTable\(location\)\.history\(…\)"),
        (lambda: CLASS.to_pandas("t"), r"DeltaTable\('t'\)\.to_pandas\(…\)"),
        (lambda: CLASS.head("t", "x"), r"DeltaTable\('t'\)\.head\(…\)"),
        (lambda: CLASS.sql("SELECT 1"), r"DeltaTable\(location\)\.sql\(…\)"),
        (lambda: SHARED.to_pandas("u"), r"SharedTable\('u'\)\.to_pandas\(…\)"),
        (CLASS.optimize, r"DeltaTable\(location\)\.optimize$"),
        (
            lambda: _any(Scan).to_pandas("t"),
            r"DeltaTable\(location\)\.scan\(\)\.to_pandas\(…\)",
        ),
    ],
)
def test_a_method_called_on_its_class(call: Callable[[], Any], instead: str) -> None:
    with pytest.raises(TypeError, match=rf"needs an object, not the class: use {instead}"):
        call()


@pytest.mark.parametrize(
    ("name", "part"),
    [("alter", "add_columns"), ("optimize", "compact"), ("plot", "commits")],
)
def test_a_property_of_a_class(name: str, part: str) -> None:
    with pytest.raises(AttributeError, match=rf"use DeltaTable\(location\)\.{name}\.{part}$"):
        getattr(getattr(DeltaTable, name), part)
    found = inspect.getattr_static(DeltaTable, name)
    assert isinstance(found, property)
    assert found.__doc__


def test_errors_of_objects_stay_as_they_are(table: Any) -> None:
    with pytest.raises(InvalidInputError, match="there is no column"):
        DeltaTable.delete(table, "nope = 1")
    with pytest.raises(AttributeError, match="has no attribute 'nope'"):
        _ = table.scan().nope


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda t: t.scan().to_pandas(columns=["id"]), r"^Scan\.to_pandas\(\) .*use scan\(columns"),
        (lambda t: t.scan().to_polars(columns=["id"]), r"^Scan\.to_polars\(\) .*use scan\(columns"),
        (lambda t: t.scan().to_table(columns=["id"]), r"^Scan\.to_table\(\) .*use scan\(columns"),
        (lambda t: t.scan().read_pandas(columns=["id"]), r"use scan\(columns"),
        (lambda t: t.scan().count(predicate="id = 1"), r"use scan\(columns, predicate"),
        (lambda t: t.scan().to_polars(lazy=True), r"use to_polars\(lazy=True\) of the table$"),
        (lambda t: t.scan().to_pandas(type_mapper=None), "did you mean 'types_mapper'"),
        (
            lambda t: t.load_cdf().to_pandas(columns=["id"]),
            r"^Changes\.to_pandas\(\) .*use load_cdf\(…, columns=…",
        ),
        (lambda t: t.load_cdf().to_polars(limit=1), r"^Changes\.to_polars\(\) .*use load_cdf"),
        (
            lambda t: next(t.follow().available()).to_pandas(columns=["id"]),
            r"^Step\.to_pandas\(\) .*use follow\(…, columns=…",
        ),
        (
            lambda t: t.sql("SELECT * FROM this").to_pandas(columns=["id"]),
            r"^SqlResult\.to_pandas\(\) .*use SELECT",
        ),
        (lambda t: t.sql("SELECT * FROM this").to_polars(limit=1), r"use SELECT, .* LIMIT in"),
        (lambda t: t.describe().to_pandas(nope=1), r"^TableDescription\.to_pandas\(\) got an"),
        (lambda t: t.alter.move_column("id", after="name"), r"use where=\('after', name\)$"),
        (lambda t: t.alter.move_column("id", first=True), "use where='first'$"),
        (lambda t: t.upsert(ROWS, "id", update_columns=["name"]), r"when_matched_update\("),
        (lambda t: t.doctor(fix=True), "doctor changes nothing$"),
        (lambda t: t.to_duckdb(name="t"), r"use create_view\(name\) of the relation$"),
        (lambda t: t.diff(0, predicate="id = 1"), r"use deltalog\.sql\('SELECT"),
        (lambda t: t.snapshot(), r"write table\.snapshot without brackets"),
    ],
)
def test_unknown_arguments(table: Any, call: Callable[[Any], Any], hint: str) -> None:
    with pytest.raises(TypeError, match=hint):
        call(table)


@pytest.mark.parametrize("name", ["filters", "predicate", "file_pruning_predicate"])
@pytest.mark.parametrize(
    ("method", "own"),
    [
        *((method, "predicate") for method in ("scan", "count", "head", "load_cdf", "delete")),
        *((method, "filters") for method in ("to_pandas", "to_polars", "to_pyarrow_table")),
        ("to_duckdb", "filters"),
        *((method, "file_pruning_predicate") for method in ("file_uris", "partitions")),
        ("to_pyarrow_dataset", "file_pruning_predicate"),
    ],
)
def test_each_name_of_a_condition_names_the_right_one(
    table: Any, method: str, own: str, name: str
) -> None:
    call = getattr(table, method)
    if name == own:
        call(**{name: "id = 7"})
        return
    with pytest.raises(TypeError, match=f"did you mean {own!r}"):
        call(**{name: "id = 7"})


@pytest.mark.parametrize("name", ["filters", "predicate", "file_pruning_predicate"])
def test_conditions_of_compact(table: Any, name: str) -> None:
    with pytest.raises(TypeError, match="did you mean 'partition_filters'"):
        table.optimize.compact(**{name: "id = 7"})


def test_signatures_of_results_are_those_of_their_methods(table: Any) -> None:
    assert list(inspect.signature(table.scan().to_pandas).parameters) == [
        "dtype_backend",
        "options",
    ]
    assert list(inspect.signature(type(table.load_cdf()).to_duckdb).parameters) == [
        "self",
        "connection",
    ]
    assert type(table.scan()).to_table.__qualname__ == "Scan.to_table"


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda _: write_deltalake(CLASS, ROWS), r"found the class DeltaTable; pass an object"),
        (lambda t: t.delete("id = ?", [1]), r"pass values for \? or :name as parameters=…$"),
        (
            lambda t: t.upsert(ROWS, "target.id = source.id"),
            r"expected columns.*; merge\(source, 'target\.id = source\.id'\) takes a condition$",
        ),
        (lambda t: t.appender(upsert="target.id = source.id"), r"; merge\(source, "),
        (lambda t: t.appender(upsert="idd"), r"cannot upsert rows of .*/t: .*did you mean 'id'"),
        (
            lambda t: t.merge(ROWS, "target.idd = source.id").when_matched_update_all().explain(),
            r"cannot explain a merge into .*/t: there is no column 'target\.idd'",
        ),
        (lambda t: deltalog.sql("SELECT * FROM t", t), r"a DeltaTable as parameters: .*t=table\)"),
        (lambda t: deltalog.sql("SELECT * FROM t", _any([t])), r"as in sql\(statement, t=table"),
        (lambda t: t.generate("manifest"), "expected 'symlink_format_manifest'"),
        (lambda t: t.alter.drop_feature("changeDataFeeds"), "did you mean 'changeDataFeed'"),
        (lambda t: t.alter.drop_feature("deletionVectors"), "does not have it; it has appendOnly"),
        (lambda t: t.to_pandas(columns=[0, 1]), r"\[schema\(\)\.names\[at\] for at in \[0, 1\]\]"),
        (
            lambda t: t.alter.set_table_properties(
                {"delta.universalFormat.enabledFormats": "icberg"}
            ),
            "metadata in the format 'icberg': .*did you mean 'iceberg'",
        ),
        (
            lambda t: DeltaTable.create(
                f"{t.table_uri}-new",
                [Field("id", "long")],
                configuration={"delta.universalFormat.enabledFormats": "paimon"},
            ),
            "expected iceberg or nothing",
        ),
    ],
)
def test_calls_of_other_libraries(table: Any, call: Callable[[Any], Any], hint: str) -> None:
    with pytest.raises(InvalidInputError, match=hint):
        call(table)


def test_a_transaction_has_its_own_methods(table: Any) -> None:
    with (
        pytest.raises(InvalidInputError, match=r"methods of the transaction, such as tx\.append"),
        table.transaction() as tx,
    ):
        write_deltalake(tx, ROWS)


def test_manifests_in_the_spelling_of_spark(table: Any) -> None:
    table.generate("symlink_format_manifest")
    assert (Path(table.table_uri) / "_symlink_format_manifest" / "manifest").exists()


@pytest.mark.parametrize("name", ["create_checkpoint", "cleanup_expired_logs", "auto_compact"])
def test_options_of_the_steps_after_a_commit_are_booleans(name: str) -> None:
    for value in ("no", 0, [True]):
        with pytest.raises(InvalidInputError, match=f"{name}={value!r}".replace("[", r"\[")):
            _any(PostCommitHookProperties)(**{name: value})
    kept = PostCommitHookProperties(**{name: False})
    assert pickle.loads(pickle.dumps(kept)) == kept  # written here
    with pytest.raises(InvalidInputError, match="max_commit_retries"):
        CommitProperties(max_commit_retries=_any(True))


def test_a_setting_of_spark_is_no_table_property(
    table: Any, caplog: pytest.LogCaptureFixture
) -> None:
    key = "spark.databricks.delta.schema.autoMerge.enabled"
    with caplog.at_level(logging.WARNING):
        table.alter.set_table_properties({key: "true"})
        assert f"{key!r} is stored, but has no effect" in caplog.text
        caplog.clear()
        table.alter.set_table_properties({key: "true"})
        assert not caplog.text


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("functions", ": use SQL, such as predicate"),
        ("write_delta", r": use write_deltalake\(location, data\)$"),
        ("Deltatable", r": did you mean 'DeltaTable'\?$"),
        ("nonsense", r"'nonsense' from 'deltalog': dir\(deltalog\) lists its names$"),
    ],
)
def test_imports_of_unknown_names(name: str, hint: str) -> None:
    with pytest.raises(ImportError, match=hint):
        exec(f"from deltalog import {name}", {})  # noqa: S102  # the statement of a user
    assert not hasattr(importlib.import_module("deltalog"), name)
    with pytest.raises(AttributeError):
        getattr(deltalog, name)
