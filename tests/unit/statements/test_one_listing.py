"""A statement opens its table once: one listing of its log, and no more requests than a method."""

from __future__ import annotations

import sys
from functools import lru_cache
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake
from deltalog.storage import open_store
from deltalog.testing import CountingStore

NEW = pa.table({"id": [3, 4], "v": ["x", "y"]})
MERGE = (
    "MERGE INTO {} AS t USING s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)
STATEMENTS = {
    "merge": MERGE,
    "delete": "DELETE FROM {} WHERE id = 1",
    "update": "UPDATE {} SET v = 'z' WHERE id = 1",
    "insert": "INSERT INTO {} SELECT * FROM s",
    "overwrite": "INSERT OVERWRITE {} SELECT * FROM s",
    "truncate": "TRUNCATE TABLE {}",
    "alter": "ALTER TABLE {} ADD COLUMNS (x INT)",
    "optimize": "OPTIMIZE {}",
    "select": "SELECT count(*) FROM {}",
    "describe": "DESCRIBE DETAIL {}",
}


ROWS = pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"]})
_listed: list[str] = []
"""The directories that this process lists; a hook cannot be removed, so there is one."""


@lru_cache
def _listen() -> None:
    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event in {"os.listdir", "os.scandir"} and str(arguments[0]).endswith("_delta_log"):
            _listed.append(str(arguments[0]))

    sys.addaudithook(hook)


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS)
@pytest.mark.parametrize("is_registered", [True, False], ids=["name", "location"])
def test_a_statement_lists_the_log_once(
    tmp_path: Path, statement: str, *, is_registered: bool
) -> None:
    write_deltalake(tmp_path, ROWS)
    _listen()
    _listed.clear()
    if is_registered:
        deltalog.sql(statement.format("t"), t=tmp_path, s=NEW)
    else:
        deltalog.sql(statement.format(f"delta.`{tmp_path}`"), s=NEW)
    assert len(_listed) == 1


def opened() -> tuple[CountingStore, DeltaTable]:
    store = CountingStore(open_store(f"memory://one-listing-{uuid4().hex}"))
    write_deltalake(store, ROWS)
    found = DeltaTable(store)
    store.reset()
    return store, found


def test_a_merge_makes_the_requests_of_the_method() -> None:
    (first, by_method), (second, by_name) = opened(), opened()
    merge = by_method.merge(NEW, "t.id = s.id", source_alias="s", target_alias="t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    deltalog.sql(MERGE.format("t"), t=by_name, s=NEW)
    # Some requests are made at the same time, so their order may differ.
    assert sorted(call.verb for call in second.calls) == sorted(call.verb for call in first.calls)
    assert len(first.calls) == 6
