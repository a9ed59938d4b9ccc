"""The 99 queries of TPC-DS over tables that we wrote, compared with DuckDB over its own.

The tables, texts and answers come from DuckDB's extension, in an environment of its own
(`make .cache/tpcds/.ready`); nothing of TPC is in the repository.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import deltalog
from tests.support.reference_scenarios import FULL
from tests.support.tpcds_answers import (
    NUMBERS,
    Benchmark,
    difference,
    find_scale,
    in_spark_sql,
    write_tables,
)

pytestmark = [
    pytest.mark.slow("99 queries over generated tables"),
    pytest.mark.skipif(
        find_scale("0.01") is None, reason="there are no tables of TPC-DS: make .cache/tpcds/.ready"
    ),
]


@pytest.fixture(scope="session")
def benchmark_tables(tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    """The tables at scale 0.01, written once by each worker."""
    place = find_scale("0.01")
    assert place is not None
    return write_tables(place, tmp_path_factory.mktemp("tpcds"))


@pytest.mark.parametrize("number", NUMBERS)
def test_our_sql_gives_the_answer(benchmark_tables: Benchmark, number: int) -> None:
    text = benchmark_tables.query(number)
    found = deltalog.sql(in_spark_sql(text), **benchmark_tables.tables).to_arrow()
    assert difference(found, benchmark_tables.answer(number), text) is None


# Datasets see projections and filters of DuckDB's, which are alike in most queries.
@pytest.mark.parametrize("number", NUMBERS if FULL else NUMBERS[::4])
def test_duckdb_gives_the_answer_over_our_datasets(
    benchmark_tables: Benchmark, number: int
) -> None:
    text = benchmark_tables.query(number)
    with duckdb.connect(config={"default_null_order": "nulls_first"}) as connection:
        for name, table in benchmark_tables.tables.items():
            connection.register(name, table.to_pyarrow_dataset())
        found = connection.sql(text).to_arrow_table()
    assert difference(found, benchmark_tables.answer(number), text) is None


def test_the_tables_hold_what_was_written(benchmark_tables: Benchmark) -> None:
    """Queries of few rows alone would not notice rows that are missing elsewhere."""
    for name, table in benchmark_tables.tables.items():
        assert table.to_pyarrow_table().equals(benchmark_tables.source(name)), name


def test_the_texts_are_all_there(benchmark_tables: Benchmark) -> None:
    assert len(list(Path(benchmark_tables.place, "queries").iterdir())) == len(NUMBERS) == 99
