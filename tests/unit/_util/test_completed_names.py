"""What `dir(x)` lists, which tab completion offers."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, sql
from tests.support.facade import FEED, make

ROWS = [{"id": 1}, {"id": 2}]
OF_ROWS = {
    "close",
    "read_all",
    "read_next_batch",
    "read_pandas",
    "schema",
    "to_arrow",
    "to_batches",
    "to_duckdb",
    "to_pandas",
    "to_polars",
    "to_pylist",
    "to_reader",
    "to_table",
}


def _names(of: object) -> set[str]:
    return {name for name in dir(of) if not name.startswith("_")}


@pytest.fixture
def table() -> DeltaTable:
    return make(ROWS, configuration=FEED)


def test_rows(table: DeltaTable) -> None:
    of_table = {*OF_ROWS, "table_schema"}
    assert _names(table.scan()) == of_table | {"count", "explain", "snapshot", "tasks"}
    assert _names(table.load_cdf()) == of_table | {"end", "snapshot", "tasks"}
    assert _names(next(iter(table.follow()))) == of_table | {"offset", "tasks"}
    assert "old_spec" not in _names(table.diff(0))
    found = sql("SELECT 1")
    assert _names(found) - OF_ROWS == {"cast", "metrics", "num_affected_rows", "show"}


def test_transactions(table: DeltaTable) -> None:
    staged = {"append", "delete", "merge", "overwrite", "update", "upsert"}
    assert _names(table.transaction()) == staged | {"set_app_transaction", "set_domain_metadata"}


@pytest.mark.parametrize("name", ["begin", "take", "leave", "commit"])
def test_a_transaction_begins_only_with_its_block(table: DeltaTable, name: str) -> None:
    transaction: Any = table.transaction()
    with pytest.raises(AttributeError, match="the transaction has no attribute"):
        getattr(transaction, name)()
    with pytest.raises(ValueError, match="only in its block"):
        transaction.append(pa.table({"id": [3]}))
    assert table.count() == 2


def test_internal_names_exist(table: DeltaTable) -> None:
    shown: list[Any] = [
        table,
        table.scan(),
        table.load_cdf(),
        table.transaction(),
        table.diff(0),
        sql("SELECT 1"),
    ]
    for one in shown:
        internal = {name for kind in type(one).__mro__ for name in vars(kind).get("_internal", ())}
        assert internal <= set(object.__dir__(one))
