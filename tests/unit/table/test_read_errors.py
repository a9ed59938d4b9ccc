"""Errors while rows are read name the table and the part of the expression that failed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake
from deltalog.errors import ConstraintViolationError, InvalidInputError

_READS: dict[str, Callable[[DeltaTable, str], Any]] = {
    "to_pandas": lambda table, where: table.to_pandas(filters=where),
    "to_pyarrow_table": lambda table, where: table.to_pyarrow_table(filters=where),
    "to_polars": lambda table, where: table.to_polars(filters=where),
    "count": lambda table, where: table.count(where),
    "scan": lambda table, where: table.scan(predicate=where).to_table(),
    "dataset": lambda table, where: table.to_pyarrow_dataset(
        file_pruning_predicate=where
    ).to_table(),
}
_FAILURES = {
    "id / 0 = 1": ("division by zero", "/ 0"),
    "id + 9223372036854775807 > 1": ("+ overflows long", ", in id + 9223372036854775807"),
    "CAST(name AS INT) = 1": ("cannot cast 'a' to integer", ", in CAST(name AS INT)"),
    "name = 5": ("cannot cast 'a' to long", ", in CAST(name AS BIGINT)"),
    "name RLIKE '['": ("cannot use the regular expression '['", "(name, '[')"),
    "make_date(2020, 13, 1 + id * 0) IS NULL": ("there is no date 2020-13-1", ", in make_date("),
}


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    write_deltalake(tmp_path / "t", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])
    return DeltaTable(tmp_path / "t")


@pytest.mark.parametrize("read", _READS)
@pytest.mark.parametrize("where", _FAILURES)
def test_an_error_of_a_row_names_table_and_expression(
    table: DeltaTable, read: str, where: str
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        _READS[read](table, where)
    message = str(caught.value)
    assert message.startswith(f"cannot read {table.table_uri}: ")
    assert all(part in message for part in _FAILURES[where])
    assert message.count(", in ") <= 1


@pytest.mark.parametrize("where", _FAILURES)
def test_an_error_of_a_change_names_only_the_change(table: DeltaTable, where: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        table.delete(where)
    message = str(caught.value)
    assert message.startswith(f"cannot run DELETE on {table.table_uri}: ")
    assert "cannot read" not in message


def test_an_error_of_partition_values_names_the_table(tmp_path: Path) -> None:
    write_deltalake(tmp_path, [{"p": "a", "v": 1}], partition_by=["p"])
    with pytest.raises(InvalidInputError, match=r"cannot (read|scan) /.*CAST\(p AS INT\)"):
        DeltaTable(tmp_path).to_pandas(filters="CAST(p AS INT) = 1")


def test_an_unknown_column_lists_only_the_columns_of_the_table(table: DeltaTable) -> None:
    with pytest.raises(InvalidInputError) as caught:
        table.count("zzzz = 1")
    assert "the columns are 'id', 'name'; a string has quotes: 'zzzz'" in str(caught.value)
    with pytest.raises(InvalidInputError, match=r"did you mean 'name'\?$"):
        table.count("nme = 1")


def test_a_number_of_days_is_an_interval(table: DeltaTable) -> None:
    with pytest.raises(InvalidInputError, match=r"such as now\(\) - INTERVAL 7 DAYS"):
        table.count("now() < now() - 7")


def test_a_predicate_is_shown_as_it_was_written(table: DeltaTable) -> None:
    with pytest.raises(ConstraintViolationError, match="where id = 1: 1 of the new rows"):
        write_deltalake(table, [{"id": 3, "name": "c"}], mode="overwrite", predicate="id = 1")


def test_a_frame_is_no_target_of_a_change() -> None:
    with pytest.raises(InvalidInputError, match=r"need a DeltaTable: pass DeltaTable\(location\)"):
        deltalog.sql("DELETE FROM t WHERE id = 1", t=[{"id": 1}])


_CHANGES: dict[str, Callable[[DeltaTable], object]] = {
    "UPDATE": lambda table: table.update({"v": "NULL"}),
    "MERGE": lambda table: table.upsert([{"id": 2, "v": None}], ["id"]),
}


@pytest.mark.parametrize("name", _CHANGES)
def test_a_violated_rule_names_the_change(tmp_path: Path, name: str) -> None:
    table = DeltaTable.create(tmp_path, "id long not null, v long not null")
    write_deltalake(table, [{"id": 1, "v": 1}], mode="append")
    with pytest.raises(ConstraintViolationError, match=f"cannot run {name} on /.*: NOT NULL of"):
        _CHANGES[name](table)
