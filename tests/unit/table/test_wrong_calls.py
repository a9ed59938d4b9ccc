"""Frequent mistakes of users: the message says what to write instead."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import deltalog
from deltalog import DeltaTable, col, sql, write_deltalake
from deltalog.errors import DeltaError, InvalidInputError, SchemaMismatchError
from tests.support.facade import make, unchanged

ROWS: Any = {"id": [1, 2], "name": ["a", "b"], "at": [date(2024, 1, 31)] * 2}
ROWS["amount"] = [Decimal("1.25")] * 2
ON = "target.id = source.id"
AGAIN = pd.concat([pd.DataFrame({"id": [1], "name": ["x"]})] * 2)
_INDEX = r"DataFrame.reset_index(drop=True)"


def _any(found: Any) -> Any:
    """The same object, for mypy without a class."""
    return found


def append(**values: object) -> Callable[[DeltaTable], object]:
    return lambda table: write_deltalake(table, [values], mode="append")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda t: t.merge(ROWS, ON).when_matched_update({"name": "renamed"}).execute(),
            "a string has quotes: 'renamed'",
        ),
        (
            lambda t: t.merge(ROWS, ON).when_not_matched_insert({"name": "renamed"}).execute(),
            "a string has quotes: 'renamed'",
        ),
        (
            lambda t: (
                t.merge(ROWS, ON).when_not_matched_by_source_update({"name": "renamed"}).execute()
            ),
            "a string has quotes: 'renamed'",
        ),
        (lambda t: t.update({"name": "renamed"}), "a string has quotes: 'renamed'"),
        (lambda t: t.count("name == None"), "; for a missing value, write IS NULL"),
        (
            lambda t: t.count("id in (?)", parameters=[1, 2]),
            "has 1 parameter; the options of IN (?) are one list, as in parameters=[[1, 2]]",
        ),
        (
            lambda t: sql("SELECT * FROM t WHERE id IN (?)", [1, 2], t=t),
            "found 2 values; the options of IN (?) are one list, as in parameters=[[1, 2]]",
        ),
        (
            lambda t: sql("SELECT * FROM t WHERE id = :id", t=t, id=_any(1)),
            "pass a value as a parameter, as in sql(statement, {'id': value})",
        ),
        (lambda t: t.scan(predicate="name = named"), "a string has quotes: 'named'"),
        (lambda t: t.scan(["nme"]), "cannot scan {root}: there is no column 'nme'"),
        (lambda t: t.delete("nme = 1"), "cannot run DELETE on {root}: there is no column 'nme'"),
        (lambda t: t.to_pandas(columns=["nme"]), "cannot read {root}: there is no column 'nme'"),
        (lambda t: t.scan([_any(col("id") > 1)]), "columns=[id > 1]: expected a list of names"),
        (lambda t: t.upsert(ROWS, _any(col("id") > 1)), "with key=id > 1: expected"),
        (lambda t: t.upsert(AGAIN, "id"), _INDEX),
        (lambda t: t.upsert(AGAIN, "id", merge_schema=True), _INDEX),
        (lambda t: write_deltalake(t, AGAIN, mode="append"), _INDEX),
        (lambda t: write_deltalake(t, AGAIN, mode="append", schema_mode="merge"), _INDEX),
        (lambda t: write_deltalake(t, AGAIN, mode="overwrite", schema_mode="overwrite"), _INDEX),
        (lambda _: write_deltalake("new", AGAIN), _INDEX),
        (lambda _: DeltaTable("delta.`/data/t`"), "spelling of SQL; pass the location alone: '/d"),
        (lambda _: write_deltalake(_any(AGAIN), _any("t")), "write_deltalake('t', data)"),
        (lambda _: write_deltalake(_any(ROWS), _any("t")), "cannot write to a dict: the location"),
        (append(id=2**64), f"of 'id': {2**64} is too large for a long"),
        (append(at="01/31/2024"), "column 'at' as date: cannot cast '01/31/2024'"),
        (append(at="01/31/2024"), "expected YYYY-MM-DD"),
        (append(amount=Decimal("1.239")), "decimal(4,3) values of column 'amount' as decimal("),
        (append(amount=Decimal("1.239")), "round 1.239 to 2 digits"),
        (append(amount=Decimal("12345.2")), "12345.2 is out of range"),
        (lambda _: write_deltalake("new", [{"a": 1}, {"a": "x"}]), "as str"),
        (
            lambda _: write_deltalake("new", [{"a": 1}, {"a": "x"}]),
            "found 1 (int) and 'x' (str)",
        ),
        (
            lambda _: write_deltalake("new", pl.DataFrame({"A": [1], "a": [2]})),
            "'A', 'a'; rename one of them",
        ),
        (lambda t: t.delete("id in [1,2]"), "as in id IN (1, 2)"),
        (lambda t: sql("DELETE FROM t; SELECT 1", t=t), "connect(…).execute_script(sql) runs"),
        (lambda t: t.alter.rename_column("nme", "x"), "there is no column 'nme': did you mean"),
        (lambda t: t.alter.drop_columns(["nme"]), "drop a column of {root}: there is no column"),
        (
            lambda _: write_deltalake("new", ROWS, partition_by=["nme"]),
            "/new: there is no column 'nme': did you mean 'name'?",
        ),
        (
            lambda t: DeltaTable.create("new", t.schema(), cluster_by=["nme"]),
            "/new: there is no column 'nme': did you mean 'name'?",
        ),
    ],
)
def test_the_error_says_what_to_write(
    call: Callable[[DeltaTable], object],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    table = make(_decimals(ROWS))
    with pytest.raises(DeltaError) as caught, unchanged(table):
        call(table)
    assert message.replace("{root}", table.table_uri) in str(caught.value)


NAMED = pa.table({"id": [1], "nme": ["a"]}).schema


@pytest.mark.parametrize(
    ("call", "attempt"),
    [
        (lambda t: t.to_pyarrow_dataset(file_pruning_predicate="nme = 1"), "make a dataset of"),
        (lambda t: t.to_pyarrow_dataset(schema=NAMED), "make a dataset of"),
        (
            lambda t: t.to_pyarrow_dataset(
                parquet_read_options=ds.ParquetReadOptions(dictionary_columns=["nme"])
            ),
            "make a dataset of",
        ),
        (lambda t: t.file_uris(file_pruning_predicate="nme = 1"), "list the files of"),
        (lambda t: t.partitions(file_pruning_predicate=col.nme == 1), "list the partitions of"),
        (lambda t: t.load_cdf(0, columns=["nme"]), "read the changes of"),
        (lambda t: t.load_cdf(0, predicate="nme = 1"), "read the changes of"),
        (lambda t: t.diff(0, key="nme"), "compare versions 0 and 0 of"),
        (lambda t: t.diff(0, columns=["nme"]), "compare versions 0 and 0 of"),
        (lambda t: t.follow(columns=["nme"]), "follow"),
        (lambda t: t.follow(predicate="nme = 1", changes=True), "follow"),
        (lambda t: t.plot.clustering("nme"), "plot the clustering of"),
        (lambda t: t.to_polars(["nme"], lazy=True), "read"),
        (lambda t: t.head(columns=["nme"]), "scan"),
        (lambda t: t.optimize.z_order(["nme"]), "run OPTIMIZE on"),
    ],
)
def test_unknown_columns_are_named_with_what_was_attempted(
    call: Callable[[DeltaTable], object], attempt: str
) -> None:
    table = make(
        _decimals(ROWS),
        configuration={"delta.enableChangeDataFeed": "true"},
    )
    with pytest.raises(InvalidInputError) as caught, unchanged(table):
        call(table)
    text = str(caught.value)
    assert text.startswith(f"cannot {attempt} {table.table_uri}"), text
    assert re.search("there is no column .nme.: did you mean .name.", text), text


def _decimals(rows: Any) -> pl.DataFrame:
    return pl.DataFrame(rows, schema_overrides={"amount": pl.Decimal(5, 2)})


def test_a_table_that_has_a_nameless_index_keeps_it() -> None:
    table = make(pl.DataFrame({"id": [1], "name": ["x"], "__index_level_0__": [0]}))
    write_deltalake(table, AGAIN, mode="append", schema_mode="merge")
    assert table.count() == 3
    write_deltalake(table, AGAIN, mode="overwrite", schema_mode="overwrite")
    assert table.count() == 2


def test_an_appender_explains_a_nameless_index() -> None:
    with make({"id": [1], "name": ["x"]}).appender() as appender:
        answer = appender.append(AGAIN)
    with pytest.raises(SchemaMismatchError, match="reset_index"):
        answer.result()


def test_an_index_with_a_name_is_a_column(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", AGAIN.rename_axis("key"))
    assert DeltaTable(tmp_path / "t").schema().names == ("id", "name", "key")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda t: t.scan(predicate="name = NULL"), "name = NULL is never true; use IS NULL"),
        (lambda t: t.delete("name <> NULL"), "name <> NULL is never true; use IS NOT NULL"),
        (lambda t: t.delete("id NOT IN (1, NULL)"), "id NOT IN (1, NULL) is never true"),
        (lambda t: t.update({"id": "1"}, predicate="name = NULL"), "use IS NULL"),
        (
            lambda t: t.merge(ROWS, ON).when_matched_delete("source.name = NULL").execute(),
            "source.name = NULL is never true",
        ),
        (lambda t: sql("DELETE FROM t WHERE name = NULL", t=t), "use IS NULL"),
        (lambda t: t.scan(predicate="name <=> NULL OR name IS NULL"), ""),
    ],
)
def test_comparisons_with_null_are_logged(
    call: Callable[[DeltaTable], object], text: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "deltalog.expressions"):
        call(make(ROWS))
    assert len(caplog.messages) == bool(text)
    assert text in caplog.text


def test_a_merge_says_whether_it_has_run() -> None:
    merge = make(ROWS).merge(ROWS, col("target.id") == col("source.id"))
    merge = merge.when_matched_delete().when_not_matched_insert_all("source.id > 5")
    assert "on 'target.id = source.id', 2 clauses, not run yet: call execute()" in repr(merge)
    card = merge._repr_html_()
    assert "not run yet: call execute()" in card
    assert "if source.id &gt; 5" in card
    merge.execute(dry_run=True)
    assert "not run yet" in repr(merge)
    merge.execute()
    assert "has run" in repr(merge)


def test_plurals() -> None:
    table = make({"id": [1]})
    assert repr(table).endswith("1 column)")
    table.alter.set_table_properties({"delta.appendOnly": "true"})
    assert "1 property" in table.metadata()._repr_html_()
    assert deltalog.table.DeltaTable is DeltaTable
