"""DataFusion reads tables through parts of their datasets."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from datafusion import SessionContext

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import DeltaError
from tests.support.corpora import Entry, readable_entries
from tests.support.engines import bag, make_table, rows_of_file


def test_a_table_itself_is_refused_with_what_datafusion_reads(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", {"id": [1, 2]})
    table: Any = DeltaTable(tmp_path / "t")
    context = SessionContext()
    with pytest.raises(TypeError, match=r"use register_table\(name, table.to_pyarrow_dataset"):
        context.register_table("t", table)
    with pytest.raises(TypeError, match=r"use from_arrow\(rows, name\)"):
        context.register_table("t", table.scan())
    context.register_table("t", table.to_pyarrow_dataset())
    context.from_arrow(table.scan(), "s")
    found = context.sql("SELECT count(*) AS n FROM t JOIN s USING (id)").to_pylist()
    assert found == [{"n": 2}]


PREDICATES = (
    "i > 45",
    "i = 20 OR s = 't53ü'",
    "i IN (1, 20)",
    "i BETWEEN 10 AND 22",
    "i IS NULL AND p = 1",
    "NOT (i > 11)",
    "p = 2",
    "p = 2 AND i > 40",
    "f < 0.6",  # NaN is above all others in DataFusion, but not in pyarrow, which applies filters
    "d = DATE '2024-01-14'",
    "t < TIMESTAMP '2024-01-06 12:30:15Z'",
    "x > 5.25",
    "b",
)


def answer(table: DeltaTable | pa.Table, sql: str) -> pa.Table:
    """The rows of a query over the table `t`."""
    context = SessionContext()
    if isinstance(table, pa.Table):
        context.register_record_batches("t", [table.to_batches()])
    else:
        context.register_dataset("t", table.to_pyarrow_dataset())
    found = context.sql(sql)
    return pa.Table.from_batches(found.collect(), schema=found.schema())


@pytest.fixture(scope="module", params=["mapped", "plain"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> DeltaTable:
    """Six files with every type; or with columns that pyarrow reads itself."""
    path = str(tmp_path_factory.mktemp("table"))
    if request.param == "mapped":
        return make_table(path)
    for file in range(6):
        rows = rows_of_file(file).drop(["st", "li"])
        write_deltalake(path, rows, mode="append", partition_by=["p"])
    return DeltaTable(path)


@pytest.mark.parametrize("predicate", PREDICATES)
def test_a_query_has_the_rows_that_it_has_in_memory(table: DeltaTable, predicate: str) -> None:
    rows = table.to_pyarrow_table()
    for columns in ("*", "i, p", "count(*) AS n", "p, sum(big) AS n"):
        end = " GROUP BY p" if columns.startswith("p,") else ""
        sql = f"SELECT {columns} FROM t WHERE {predicate}{end}"  # noqa: S608  # our own text
        assert bag(answer(table, sql)) == bag(answer(rows, sql))


def test_every_row_is_read_once(table: DeltaTable) -> None:
    rows = table.to_pyarrow_table()
    assert bag(answer(table, "SELECT * FROM t")) == bag(rows)
    (count,) = answer(table, "SELECT count(*) AS n FROM t").to_pylist()
    assert count == {"n": rows.num_rows}


def test_a_version_is_kept(tmp_path: Path) -> None:
    write_deltalake(tmp_path, {"id": [1, 2], "day": [dt.date(2024, 1, 1), None]})
    first = DeltaTable(tmp_path)
    write_deltalake(tmp_path, {"id": [3], "day": [None]}, mode="append")
    assert answer(first, "SELECT sum(id) AS n FROM t").to_pylist() == [{"n": 3}]
    assert answer(DeltaTable(tmp_path), "SELECT sum(id) AS n FROM t").to_pylist() == [{"n": 6}]


def _rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


@pytest.mark.corpus
@pytest.mark.parametrize("entry", readable_entries(), ids=str)
def test_tables_of_other_writers(entry: Entry) -> None:
    table = DeltaTable(entry.path)
    try:
        expected = table.to_pyarrow_table()
    except DeltaError:
        return  # what is refused, and how, is the subject of `test_corpus`
    if not expected.num_columns or any(_is_unknown(column.type) for column in expected.schema):
        return
    assert _rows(answer(table, "SELECT * FROM t")) == _rows(expected)


def _is_unknown(kind: Any) -> bool:
    """Whether DataFusion returns values of a type in another form."""
    inner = (
        [kind.field(place) for place in range(kind.num_fields)] if pa.types.is_nested(kind) else []
    )
    return isinstance(kind, pa.BaseExtensionType) or any(_is_unknown(one.type) for one in inner)
