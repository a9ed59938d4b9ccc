"""The queries of TPC-H and TPC-DS over tables that we wrote, compared with DuckDB over its own.

The tables, queries and answers come from DuckDB's extensions, in an environment of its own
(`make .cache/tpc/.ready`); nothing of TPC is in the repository.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

import deltalog
from deltalog.query.duckdb_files import native_rows
from tests.support.reference_scenarios import FULL
from tests.support.tpc_answers import (
    NUMBERS,
    VARIANTS,
    Benchmark,
    difference,
    find_scale,
    in_spark_sql,
    write_tables,
)

pytestmark = [
    pytest.mark.slow("121 queries over generated tables"),
    pytest.mark.skipif(
        find_scale("ds", "0.01") is None,
        reason="there are no tables of TPC: make .cache/tpc/.ready",
    ),
]
DS = [("ds", "plain", number) for number in NUMBERS["ds"]]
H = [("h", variant, number) for variant in VARIANTS for number in NUMBERS["h"]]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Benchmark]:
    """The tables at scale 0.01 that this worker has written so far, by kind and variant."""
    del tmp_path_factory
    return {}


@pytest.fixture
def tables(
    made: dict[tuple[str, str], Benchmark],
    tmp_path_factory: pytest.TempPathFactory,
    kind: str,
    variant: str,
) -> Benchmark:
    """The tables of a kind and variant."""
    if (kind, variant) not in made:
        place = find_scale(kind, "0.01")
        assert place is not None
        directory = tmp_path_factory.mktemp(f"tpc-{kind}-{variant}")
        made[kind, variant] = write_tables(place, directory, variant)
    return made[kind, variant]


@pytest.mark.parametrize(("kind", "variant", "number"), [*DS, *H])
def test_our_sql_gives_the_answer(tables: Benchmark, number: int) -> None:
    text = tables.query(number)
    found = deltalog.sql(in_spark_sql(text), **tables.tables).to_arrow()
    assert difference(found, tables.answer(number), text) is None


# Datasets see projections and filters of DuckDB's, which are alike in most queries.
@pytest.mark.parametrize(("kind", "variant", "number"), [*DS, *H] if FULL else [*DS, *H][::6])
def test_duckdb_gives_the_answer_over_our_datasets(tables: Benchmark, number: int) -> None:
    text = tables.query(number)
    with duckdb.connect(config={"default_null_order": "nulls_first"}) as connection:
        for name, table in tables.tables.items():
            connection.register(name, table.to_pyarrow_dataset())
        found = connection.sql(text).to_arrow_table()
    assert difference(found, tables.answer(number), text) is None


@pytest.mark.parametrize(
    ("kind", "variant"), [("ds", "plain"), *(("h", variant) for variant in VARIANTS)]
)
def test_the_tables_hold_what_was_written(tables: Benchmark) -> None:
    """Queries of few rows alone would not notice rows that are missing elsewhere."""
    for name, table in tables.tables.items():
        source = tables.source(name)
        order: Any = [(one, "ascending") for one in source.column_names]
        found = table.to_pyarrow_table().select(source.column_names)
        assert found.sort_by(order).equals(source.sort_by(order)), name
        assert native_rows(table.scan()) is not None, name


@pytest.mark.parametrize(("kind", "variant"), [("h", "plain"), ("ds", "plain")])
def test_the_texts_are_all_there(tables: Benchmark, kind: str) -> None:
    numbers = {"h": 22, "ds": 99}[kind]
    assert len(list(Path(tables.place, "queries").iterdir())) == len(NUMBERS[kind]) == numbers
