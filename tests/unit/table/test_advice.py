"""Advice in errors about statements, conditions and changes: each entry is one mistake.

No mistake changes a table.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow.compute as pc
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake
from deltalog.catalogs import FileCatalog
from deltalog.errors import DeltaError

if TYPE_CHECKING:
    from pathlib import Path

ROWS = [
    {"id": 1, "name": "n1", "amount": 1.5, "day": dt.date(2024, 1, 1), "tags": ["a"]},
    {"id": 2, "name": "n2", "amount": None, "day": dt.date(2024, 1, 2), "tags": ["b"]},
]


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    """A table of two rows, one of which a column of structs describes."""
    rows = [{**row, "info": {"city": "Oslo"}} for row in ROWS]
    write_deltalake(tmp_path / "s" / "t", rows)
    return DeltaTable(tmp_path / "s" / "t")


def refused(act: Any, table: DeltaTable, *words: str) -> None:
    """Assert that a call fails with these words in its message, and changes nothing."""
    with pytest.raises(DeltaError) as caught:
        act()
    for word in words:
        assert word in str(caught.value)
    latest = DeltaTable(table.table_uri)
    assert (latest.version(), latest.count()) == (0, 2)


CONDITIONS: list[tuple[Any, str]] = [
    ("ifnull(name, 1, 2) = 'x'", "ifnull expects 2 argument(s), found 3"),
    ("nvl(name) = 'x'", "nvl expects 2 argument(s), found 1"),
    ("date_trunc(day, 'month') = day", "wrong order; write date_trunc('month', day)"),
    ("trunc('month', day) = day", "wrong order; write trunc(day, 'month')"),
    ("t.id = 1", "no column 't'; if it is an alias, leave it out"),
    ("t.info.city = 'x'", "leave it out, because the expression is about one table: info.city"),
    (pc.field("nope") == 1, "there is no column 'nope': the columns are 'id', 'name'"),
    (pc.field("nme") == 1, "there is no column 'nme': did you mean 'name'?"),
]


@pytest.mark.parametrize(("condition", "words"), CONDITIONS)
def test_conditions(table: DeltaTable, condition: Any, words: str) -> None:
    refused(lambda: table.scan(predicate=condition).count(), table, words)
    refused(lambda: table.delete(condition), table, words)
    refused(lambda: table.update({"name": "'x'"}, predicate=condition), table, words)


QUERIES = [
    ("SELECT percentile(amount) FROM t", "percentile expects 2 arguments"),
    ("SELECT date_trunc(day, 'month') FROM t", "write date_trunc('month', day)"),
]


@pytest.mark.parametrize(("query", "words"), QUERIES)
def test_queries(table: DeltaTable, query: str, words: str) -> None:
    refused(lambda: deltalog.sql(query, t=table).to_arrow(), table, words)
    refused(lambda: deltalog.connect({"t": table}).sql(query).to_arrow(), table, words)
    refused(lambda: table.sql(query.replace(" t", " this")).read_all(), table, words)


@pytest.mark.parametrize("given", [[1], (1,), 1, [("x", 1)]])
def test_parameters_without_names(table: DeltaTable, given: Any) -> None:
    query = "SELECT * FROM this WHERE id = ?"
    words = "a dictionary of values for :name", "deltalog.sql(query, parameters, t=table) also"
    refused(lambda: table.sql(query, given), table, *words)


SOURCE = {"id": [1], "name": ["x"]}
MERGES: list[tuple[Any, Any, dict[str, str], str]] = [
    (SOURCE, "t.id = s.id", {"source_alias": "s"}, "the aliases are 's' and 'target'"),
    (SOURCE, "t.id = s.id", {"source_alias": "s"}, "name the table by target_alias='t'"),
    (SOURCE, "x.id = target.id", {}, "no alias 'x': the aliases are 'source' and 'target'"),
    (SOURCE, "id", {}, "write 'target.id = source.id', or upsert(data, 'id')"),
    (SOURCE, "s.ids = target.id", {"source_alias": "s"}, "no column 's.ids': did you mean 's.id'"),
    ({"key": [1]}, "s.id = target.id", {"source_alias": "s"}, "the columns are 's.key'"),
]


@pytest.mark.parametrize(("source", "predicate", "aliases", "words"), MERGES)
def test_merges(
    table: DeltaTable, source: Any, predicate: Any, aliases: dict[str, str], words: str
) -> None:
    merger = table.merge(source, predicate, **aliases).when_matched_delete()
    refused(merger.execute, table, words)


def test_an_upsert_without_its_key(table: DeltaTable) -> None:
    words = "the rows lack the key column 'id'; their columns are 'name'"
    refused(lambda: table.upsert({"name": ["x"]}, "id"), table, words)
    with table.appender(upsert="id") as appender:
        sent = appender.append([{"name": "x"}])
        refused(sent.result, table, words)


CHANGES: list[tuple[Any, str]] = [
    (lambda t: t.update("name = 'x'", "id = 1"), "expected a dictionary of SQL, such as"),
    (lambda t: t.update({"name": pl.col("name")}), "SQL such as 'upper(name)'"),
    (lambda t: t.scan("id, name"), "such as ['id', 'name']"),
    (lambda t: t.alter.set_clustering_columns("idd"), "did you mean 'id'?"),
    (
        lambda t: write_deltalake(f"{t.table_uri}2", ROWS, partition_by=["info.city"]),
        "there is no column 'info.city'",
    ),
    (
        lambda t: write_deltalake(f"{t.table_uri}2", t, partition_by=["info.city"]),
        "only top-level columns can be partition columns; copy the field of 'info'",
    ),
    (lambda _: DeltaTable("unity://main.sales.t"), "uc://catalog.schema.table"),
    (lambda _: DeltaTable("glue://sales.t"), "connect(catalog='glue')"),
    (lambda _: deltalog.connect(catalog="uc:/main"), "expected uc://catalog"),
    (lambda _: deltalog.connect(catalog="unity://main"), "expected uc://catalog"),
    (lambda _: FileCatalog("x").find(("t",)), "such as ('schema', 'table')"),
    (lambda _: deltalog.sql("SELECT * FROM t"), "deltalog sql -t t=LOCATION"),
    (lambda _: deltalog.sql("SELECT * FROM t"), "connect({'t': table})"),
]


@pytest.mark.parametrize(("act", "words"), CHANGES)
def test_arguments(table: DeltaTable, act: Any, words: str) -> None:
    refused(lambda: act(table), table, words)


def test_a_refused_change_logs_no_change(
    table: DeltaTable, caplog: pytest.LogCaptureFixture
) -> None:
    refused(lambda: table.alter.set_clustering_columns(["idd"]), table, "did you mean 'id'?")
    assert not caplog.messages
    table.alter.set_clustering_columns("id")
    assert table.detail()["clusteringColumns"] == ["id"]


CHECKS: list[tuple[Any, str]] = [
    (lambda branch: branch.delete("id = 2"), "a check of publish cannot change the branch"),
    (lambda: True, "is called with the branch, as in lambda branch: branch.count() > 0"),
]


@pytest.mark.parametrize(("check", "words"), CHECKS)
def test_checks_of_a_branch(table: DeltaTable, check: Any, words: str) -> None:
    branch = table.branch("b")
    branch.delete("id = 1")
    refused(lambda: branch.publish([check]), table, words)
    assert branch.count() == 1
    branch.publish([lambda one: one.count() == 1, "id > 1"])
