"""Mistakes of another reader who tried the library, and what they are answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake
from deltalog.errors import InvalidInputError

ROWS = pa.table({"id": [1, 2, 3, 4], "v": [1.0, 2.0, 3.0, 4.0]})
NEW = pa.table({"id": [1], "v": [9.0]})


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    write_deltalake(tmp_path / "t", ROWS)
    return DeltaTable(tmp_path / "t")


def ids(table: DeltaTable) -> list[int]:
    return sorted(row["id"] for row in DeltaTable(table.table_uri).to_pyarrow_table().to_pylist())


@pytest.mark.parametrize(
    "aliases",
    [{"source_alias": "target"}, {"target_alias": "source"}, {"source_alias": "TARGET"}],
    ids=str,
)
@pytest.mark.parametrize("condition", ["target.id = source.id", "source.id = target.id"])
def test_an_alias_is_not_the_name_of_the_other_side(
    table: DeltaTable, aliases: dict[str, Any], condition: str
) -> None:
    """Otherwise both names would mean one side, and every row would match."""
    with pytest.raises(InvalidInputError, match=r"this is the name of the (target|source); pass"):
        table.merge(NEW, condition, **aliases).when_matched_delete().execute()
    assert ids(table) == [1, 2, 3, 4]


def test_aliases_may_be_exchanged(table: DeltaTable) -> None:
    merger = table.merge(NEW, "source.id = target.id", source_alias="target", target_alias="source")
    merger.when_matched_update({"v": "target.v"}).execute()
    rows = {row["id"]: row["v"] for row in table.to_pyarrow_table().to_pylist()}
    assert rows == {1: 9.0, 2: 2.0, 3: 3.0, 4: 4.0}


@pytest.mark.parametrize("source", ["s AS target", "s target"])
def test_an_alias_of_sql_is_not_the_name_of_the_table(table: DeltaTable, source: str) -> None:
    statement = f"MERGE INTO t USING {source} ON target.id = source.id WHEN MATCHED THEN DELETE"
    with pytest.raises(InvalidInputError, match="source"):
        deltalog.sql(statement, t=table, s=NEW)
    assert ids(table) == [1, 2, 3, 4]
    statement = f"MERGE INTO t USING {source} ON target.id = t.id WHEN MATCHED THEN DELETE"
    deltalog.sql(statement, t=table, s=NEW)
    assert ids(table) == [2, 3, 4]


def test_an_alias_of_the_table_in_sql(table: DeltaTable) -> None:
    statement = "MERGE INTO t AS source USING s AS n ON source.id = n.id WHEN MATCHED THEN DELETE"
    deltalog.sql(statement, t=table, s=NEW)
    assert ids(table) == [2, 3, 4]


def consumed() -> Any:
    rows = iter(ROWS.to_batches())
    list(rows)
    return rows


@pytest.mark.parametrize(
    "rows",
    [lambda: pa.table({}), dict, pd.DataFrame, consumed],
    ids=["table", "dict", "pd", "read"],
)
def test_data_without_columns_overwrites_nothing(
    table: DeltaTable, rows: Callable[[], Any]
) -> None:
    with pytest.raises(InvalidInputError, match="the data has no columns"):
        write_deltalake(table, rows(), mode="overwrite")
    assert ids(table) == [1, 2, 3, 4]


def test_an_empty_list_means_no_rows(table: DeltaTable) -> None:
    write_deltalake(table, [], mode="overwrite", predicate="id = 1")
    assert ids(table) == [2, 3, 4]
    write_deltalake(table, [], mode="overwrite")
    assert ids(table) == []


def test_rows_with_columns_may_be_none(table: DeltaTable) -> None:
    write_deltalake(table, ROWS.slice(0, 0), mode="overwrite")
    assert ids(table) == []


def test_a_partition_column_cannot_be_dropped(tmp_path: Path) -> None:
    write_deltalake(tmp_path, ROWS, partition_by=["id"])
    with pytest.raises(InvalidInputError, match=r"'id'.*it is a partition column"):
        DeltaTable(tmp_path).alter.drop_columns("id")


@pytest.mark.parametrize(
    ("predicate", "answer"),
    [
        ("id.isin([1])", r"write column IN \(1, 2\)"),
        ("id.isNull()", "write column IS NULL"),
        ("id.frobnicate()", r"as in frobnicate\(column\)"),
    ],
)
def test_methods_of_columns(table: DeltaTable, predicate: str, answer: str) -> None:
    with pytest.raises(InvalidInputError, match=answer):
        table.scan(predicate=predicate)


def test_a_dataset_names_the_method_that_lists_files(table: DeltaTable) -> None:
    with pytest.raises(AttributeError, match=r"file_uris\(\) lists the files"):
        _ = table.to_pyarrow_dataset().files


def test_the_answer_of_an_appender_can_be_awaited(table: DeltaTable) -> None:
    async def append() -> int:
        with table.appender() as appender:
            answer: Any = appender.append(NEW)
            version: int = await answer
            return version

    assert asyncio.run(append()) == 1
    assert ids(table) == [1, 1, 2, 3, 4]
