"""DuckDB, Polars, pandas and pyarrow get the same rows through the dataset as from memory.

What an engine makes of the rows in memory is the truth for that engine, so that its own rules for
NaN or nulls do not matter: pushing projection and filter into the table must change nothing.
"""

from __future__ import annotations

import datetime as dt
import decimal
import functools
from collections.abc import Callable
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog import DeltaTable
from tests.support.corpora import Entry, covering, readable_entries
from tests.support.reference_scenarios import FULL

pytestmark = pytest.mark.corpus
Filter = tuple[str, str, Any]
Source = Any
Engine = Callable[[Source, list[str], Filter | None], pa.Table]

COMPARE = {
    "=": lambda column, value: column == value,
    "!=": lambda column, value: column != value,
    "<": lambda column, value: column < value,
    "<=": lambda column, value: column <= value,
    ">": lambda column, value: column > value,
    ">=": lambda column, value: column >= value,
}
COMPARABLE = (int, str, bool, decimal.Decimal, dt.date, dt.datetime)
# The log tells values of a column that none of the files has.
FALSE_STATISTICS = {"delta-kernel-rs/parsed-stats": ["ts_col"]}


def with_pyarrow(source: Source, columns: list[str], where: Filter | None) -> pa.Table:
    dataset = ds.dataset(source) if isinstance(source, pa.Table) else source
    return dataset.to_table(columns=columns, filter=_arrow_filter(source.schema, where))


def _arrow_filter(schema: pa.Schema, where: Filter | None) -> pc.Expression | None:
    if where is None:
        return None
    name, operator, value = where
    column = pc.field(name)
    if operator == "is null":
        return column.is_null()
    condition: pc.Expression = COMPARE[operator](column, pa.scalar(value, schema.field(name).type))
    return condition


def with_duckdb(source: Source, columns: list[str], where: Filter | None) -> pa.Table:
    names = ", ".join(_quoted(name) for name in columns)
    condition, parameters = "", []
    if where is not None:
        name, operator, value = where
        parameters = [] if operator == "is null" else [value]
        condition = f" where {_quoted(name)} {operator} {'?' * len(parameters)}"
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        connection.register("rows", source)
        found = connection.execute(f"select {names} from rows{condition}", parameters)  # noqa: S608
        table = found.to_arrow_table()
    assert table is not None
    return table


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def with_polars(source: Source, columns: list[str], where: Filter | None) -> pa.Table:
    if isinstance(source, pa.Table):
        rows = pl.LazyFrame(pl.from_arrow(source))
    else:
        rows = pl.scan_pyarrow_dataset(source)
    if where is not None:
        name, operator, value = where
        column = pl.col(name)
        literal = pl.lit(value, dtype=rows.collect_schema()[name])
        rows = rows.filter(
            column.is_null() if operator == "is null" else COMPARE[operator](column, literal)
        )
    return rows.select(columns).collect().to_arrow()


ENGINES: dict[str, Engine] = {
    "pyarrow": with_pyarrow,
    "duckdb": with_duckdb,
    "polars": with_polars,
}


def _bag(table: pa.Table) -> list[str]:
    return sorted(repr(list(row.values())) for row in table.to_pylist())


@functools.lru_cache(maxsize=2)
def _opened(entry: Entry) -> tuple[DeltaTable, pa.Table]:
    table = DeltaTable(entry.path)
    return table, table.scan().to_table()


def _columns_for(engine: Engine, rows: pa.Table) -> list[str]:
    """The columns that the engine can take from Arrow at all."""
    usable = []
    for name in rows.column_names:
        try:
            engine(rows.select([name]).slice(0, 3), [name], None)
        except Exception:  # noqa: BLE001, S112 - whatever the engine raises, it is not ours
            continue
        usable.append(name)
    return usable


def _filterable(entry: Entry, names: list[str]) -> list[str]:
    """Columns whose statistics are those of the data: readers trust them, and so must the test."""
    return [name for name in names if name not in FALSE_STATISTICS.get(entry.id, ())]


def _filters(rows: pa.Table, names: list[str]) -> st.SearchStrategy[Filter | None]:
    values = [
        (name, value)
        for name in names
        for value in rows.column(name).slice(0, 20).to_pylist()
        if isinstance(value, COMPARABLE)
    ]
    filters: st.SearchStrategy[Filter | None] = st.none()
    if values:
        comparing = st.tuples(st.sampled_from(values), st.sampled_from(sorted(COMPARE)))
        filters |= comparing.map(lambda pair: (pair[0][0], pair[1], pair[0][1]))
    if names:
        filters |= st.sampled_from(names).map(lambda name: (name, "is null", None))
    return filters


@pytest.mark.parametrize(
    ("engine", "entry"),
    [
        pytest.param(engine, entry, id=f"{engine}-{entry}")
        for number, entry in enumerate(readable_entries())
        for turn, engine in enumerate(ENGINES)
        # Every engine reads a third of the tables, as all take the same way through the dataset.
        if FULL or (number + turn) % len(ENGINES) == 0
        # DuckDB takes half a minute to ask for 2,000 columns.
        if FULL or engine != "duckdb" or "2k_cols" not in str(entry)
    ],
)
@settings(max_examples=4)
@given(data=st.data())
def test_an_engine_gets_the_same_rows(entry: Entry, engine: str, data: st.DataObject) -> None:
    table, rows = _opened(entry)
    ask = ENGINES[engine]
    names = _columns_for(ask, rows)
    if not names:
        return
    columns = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True))
    where = data.draw(_filters(rows, _filterable(entry, names)))
    expected = ask(rows, columns, where)
    assert _bag(ask(table.to_pyarrow_dataset(), columns, where)) == _bag(expected)


@pytest.mark.parametrize("entry", covering(readable_entries()), ids=str)
@settings(max_examples=2)
@given(data=st.data())
def test_frames_get_the_same_rows(entry: Entry, data: st.DataObject) -> None:
    table, rows = _opened(entry)
    columns = data.draw(
        st.lists(st.sampled_from(rows.column_names), min_size=1, max_size=4, unique=True)
    )
    where = data.draw(_filters(rows, _filterable(entry, rows.column_names)))
    condition = _arrow_filter(rows.schema, where)
    scan = table.scan(columns=columns, predicate=condition)
    expected = with_pyarrow(rows, columns, where)
    assert _bag(scan.to_table()) == _bag(expected)
    assert scan.count() == expected.num_rows
    assert len(table.to_pandas(columns=columns, filters=condition)) == expected.num_rows
