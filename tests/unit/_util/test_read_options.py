"""Options of other libraries' readers, passed to the methods that return rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake

FEED = {"delta.enableChangeDataFeed": "true"}
SOURCES: dict[str, Callable[[DeltaTable], Any]] = {
    "table": lambda table: table,
    "scan": lambda table: table.scan(),
    "changes": lambda table: table.load_cdf(),
    "query": lambda table: table.sql("SELECT * FROM this"),
    "step": lambda table: next(iter(table.follow().available())),
    "diff": lambda table: table.diff(0),
    "description": lambda table: table.describe(),
    "history": lambda table: table.history(),
}
METHODS = (
    *("to_pandas", "to_polars", "to_arrow", "to_table", "to_pyarrow_table", "to_duckdb"),
    *("to_pyarrow_dataset", "to_batches", "to_reader", "read_all"),
)
OPTIONS: dict[str, Any] = {
    "columns": ["id"],
    "filters": "id > 1",
    "predicate": "id > 1",
    "limit": 2,
    "n": 2,
    "partitions": None,
    "filesystem": None,
    "order_by": "id",
    "sort": "id",
    "types_mapper": None,
    "dtype_backend": None,
    "lazy": True,
    "streaming": True,
    "row_index_name": "i",
    "with_row_index": "i",
    "index_col": "id",
    "index": "id",
    "dtype": {},
    "schema": pa.schema([]),
    "batch_size": 10,
    "chunksize": 10,
    "use_threads": True,
    "split_blocks": True,
    "use_pyarrow": True,
    "rechunk": True,
    "as_large_types": True,
    "engine": "streaming",
    "connection": None,
    "version": 0,
    "schema_overrides": {},
    "include_file_paths": "f",
    "storage_options": {},
    "offset": 1,
    "distinct": True,
    "skip": 1,
    "memory_map": True,
    "parquet_read_options": None,
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> DeltaTable:
    place: Path = tmp_path_factory.mktemp("rows") / "t"
    write_deltalake(place, {"id": [1, 2]}, configuration=FEED)
    return DeltaTable(place)


@pytest.mark.parametrize("source", SOURCES)
def test_each_option_works_or_is_answered(table: DeltaTable, source: str) -> None:
    silent = []
    for method in METHODS:
        for option, value in OPTIONS.items():
            rows = SOURCES[source](table)
            if not hasattr(rows, method):
                continue
            try:
                getattr(rows, method)(**{option: value})
            except TypeError as error:
                if not any(one in str(error) for one in (": use ", ": did you mean ", ": omit it")):
                    silent.append(f"{method}({option}=…): {error}")
    assert not silent


@pytest.mark.parametrize(
    ("source", "method", "option", "message"),
    [
        ("table", "to_pandas", "lazy", "use to_polars(lazy=True) of the table"),
        ("table", "to_duckdb", "limit", "use limit(n) of the relation"),
        ("table", "to_pyarrow_dataset", "limit", "use head(n) of the dataset"),
        ("table", "to_pandas", "use_threads", "use scan(…).to_pandas(…)"),
        ("table", "to_pandas", "rechunk", "omit it, the method does not need it"),
        ("changes", "to_polars", "lazy", "use to_batches(), or to_polars().lazy()"),
        ("changes", "to_table", "partitions", "use load_cdf(…, columns=…, predicate=…)"),
        ("diff", "to_arrow", "limit", "use diff(…, columns=…)"),
        ("query", "to_polars", "sort", "use SELECT, WHERE, ORDER BY and LIMIT in the query"),
    ],
)
def test_the_answer_fits_the_rows(
    table: DeltaTable, source: str, method: str, option: str, message: str
) -> None:
    with pytest.raises(TypeError) as caught:
        getattr(SOURCES[source](table), method)(**{option: OPTIONS.get(option, 1)})
    assert message in str(caught.value)
