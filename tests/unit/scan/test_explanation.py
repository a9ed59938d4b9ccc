"""Why a scan reads what it reads."""

from __future__ import annotations

import pickle

import pyarrow as pa

from deltalog import DeltaTable, write_deltalake
from deltalog.storage import open_store


def _table() -> DeltaTable:
    store = open_store("memory://explanation")
    for number in range(3):
        rows = pa.table({"day": [f"d{number}"], "id": [number]})
        write_deltalake(store, rows, mode="append", partition_by=["day"])
    return DeltaTable(store)


def test_it_is_text_with_facts() -> None:
    table = _table()
    found = table.scan(predicate="day > 'd0' AND id < 2").explain()
    assert "files: 3 in the table, 1 to read" in found
    assert repr(found) == str(found)
    sizes = dict(table.get_add_actions().select(["path", "size_bytes"]).to_pandas().to_numpy())
    (left,) = [size for path, size in sizes.items() if path.startswith("day=d1")]
    facts = found.facts
    assert facts.pop("reasons")
    assert facts == {
        "version": 2,
        "files": 3,
        "files_to_read": 1,
        "bytes_to_read": left,
        "pruned_by_partition_values": 1,
        "pruned_by_statistics": 1,
    }


def test_nothing_to_read_is_no_bytes() -> None:
    assert _table().scan(predicate="id > 7").explain().facts["bytes_to_read"] == 0


def test_a_pickle_is_the_text() -> None:
    found = _table().scan().explain()
    assert pickle.loads(pickle.dumps(found)) == str(found)  # ours
