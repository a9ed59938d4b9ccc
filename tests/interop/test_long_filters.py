"""Filters of thousands of terms, through every way in which rows are asked for."""

from __future__ import annotations

import functools
import pickle
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import deltalog
from deltalog import DeltaTable, col, write_deltalake
from deltalog import polars as deltalog_polars

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow("thousands of terms over hundreds of files")

TERMS = 1_100  # Python's stack has 1,000
ROWS: dict[str, Any] = {"v": [1, 2, TERMS, None], "s": ["1", "x", "y", None]}


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    root = str(tmp_path / "t")
    write_deltalake(root, pa.table(ROWS))
    return DeltaTable(root)


def _any_of(make: Any) -> Any:
    return functools.reduce(lambda one, other: one | other, map(make, range(TERMS)))


def _none_of(make: Any) -> Any:
    return functools.reduce(lambda one, other: other & one, map(make, range(TERMS)))


def _in_turn(make: Any) -> Any:
    """OR adds each even number, and AND takes out each odd one."""
    return functools.reduce(
        lambda one, number: one & ~make(number) if number % 2 else one | make(number),
        range(TERMS),
        make(TERMS),
    )


def _values(found: Any) -> list[int]:
    values: Any = pa.table(found).column("v").to_pylist()
    return sorted(values)


FILTERS = {
    "or": (_any_of(lambda number: pc.field("v") == number), [1, 2]),
    "and": (_none_of(lambda number: pc.field("v") != number), [TERMS]),
    "mixed": (_in_turn(lambda number: pc.field("v") == number), [2, TERMS]),
}


@pytest.mark.parametrize("name", FILTERS)
def test_datasets_take_long_filters(table: DeltaTable, name: str) -> None:
    condition, expected = FILTERS[name]
    dataset = table.to_pyarrow_dataset()
    assert _values(dataset.to_table(filter=condition)) == expected
    assert _values(dataset.filter(condition).to_table(columns=["v"])) == expected
    assert _values(dataset.scanner(filter=condition, columns=["v"]).to_table()) == expected
    assert dataset.count_rows(filter=condition) == len(expected)
    assert dataset.head(1, filter=condition).num_rows == 1
    assert sum(b.num_rows for b in dataset.to_batches(filter=condition)) == len(expected)
    again = pickle.loads(pickle.dumps(dataset.filter(condition)))
    assert _values(again.to_table()) == expected
    assert _values(table.to_pyarrow_table(filters=condition)) == expected


def test_datasets_take_long_filters_that_only_arrow_knows(table: DeltaTable) -> None:
    condition = _any_of(lambda number: pc.add(pc.field("v"), 1) == number)
    assert _values(table.to_pyarrow_dataset().to_table(filter=condition)) == [1, 2]


def test_what_arrow_cannot_follow_is_refused_by_name(table: DeltaTable) -> None:
    condition = _in_turn(lambda number: pc.add(pc.field("v"), 1) == number)
    with pytest.raises(deltalog.errors.InvalidInputError, match="add"):
        table.to_pyarrow_dataset().to_table(filter=condition)


TEXTS = {
    "or": (" or ".join(f"v = {number}" for number in range(TERMS)), [1, 2]),
    "and": (" and ".join(f"v <> {number}" for number in range(TERMS)), [TERMS]),
    "two columns": (" or ".join(f"(v = {n} and s = '{n}')" for n in range(TERMS)), [1]),
    "between": (" or ".join(f"v between {n} and {n}" for n in range(TERMS)), [1, 2]),
    "may fail": (" or ".join(f"v + 1 = {n}" for n in range(TERMS)), [1, 2]),
}


@pytest.mark.parametrize("name", TEXTS)
def test_sql_takes_long_conditions(table: DeltaTable, name: str) -> None:
    text, expected = TEXTS[name]
    assert _values(table.to_pyarrow_table(filters=text)) == expected
    selected = deltalog.sql(f"SELECT * FROM t WHERE {text}", t=table)  # noqa: S608
    assert _values(selected) == expected


@pytest.mark.parametrize("name", ["or", "and", "between"])
def test_duckdb_takes_long_conditions(table: DeltaTable, name: str) -> None:
    text, expected = TEXTS[name]
    t = table.to_pyarrow_dataset()
    found: Any = duckdb.sql(f"SELECT v FROM t WHERE {text} ORDER BY v")  # noqa: S608
    assert t is not None
    assert [value for (value,) in found.fetchall()] == expected


@pytest.mark.parametrize("shape", [_any_of, _in_turn])
def test_polars_takes_long_conditions(table: DeltaTable, shape: Any) -> None:
    condition = shape(lambda number: pl.col("v") == number)
    expected = [1, 2] if shape is _any_of else [2, TERMS]
    scanned = deltalog_polars.scan_delta(table.table_uri).filter(condition).collect()
    assert _values(scanned.to_arrow()) == expected
    frame = pl.scan_pyarrow_dataset(table.to_pyarrow_dataset()).filter(condition).collect()
    assert _values(frame.to_arrow()) == expected


@pytest.mark.parametrize("shape", [_any_of, _in_turn])
def test_changes_take_long_conditions(table: DeltaTable, shape: Any) -> None:
    condition = shape(lambda number: col("v") == number)
    updated = table.update(new_values={"s": "seen"}, predicate=condition)
    assert updated["num_updated_rows"] == 2
    assert table.delete(condition)["num_deleted_rows"] == 2
    assert table.to_pyarrow_table().num_rows == 2


def test_merges_take_long_conditions(table: DeltaTable) -> None:
    either = " or ".join(f"t.v = {number}" for number in range(TERMS))
    source = pa.table({"v": [1, TERMS]})
    merged = (
        table.merge(source, f"t.v = s.v and ({either})", source_alias="s", target_alias="t")
        .when_matched_delete(either.replace("t.v", "s.v"))
        .execute()
    )
    assert merged["num_target_rows_deleted"] == 1
