"""Why a scan reads what it reads."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.data.scan.prune import PruningParts
from deltalog.protocol.configuration import TableConfiguration


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    """Three partitions of one row each."""
    for number in range(3):
        rows = pa.table({"day": [f"d{number}"], "id": [number]})
        write_deltalake(tmp_path, rows, mode="append", partition_by=["day"])
    return DeltaTable(tmp_path)


def test_it_is_text_with_facts(table: DeltaTable) -> None:
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


def test_nothing_to_read_is_no_bytes(table: DeltaTable) -> None:
    assert table.scan(predicate="id > 7").explain().facts["bytes_to_read"] == 0


def test_a_pickle_is_the_text(table: DeltaTable) -> None:
    found = table.scan().explain()
    assert pickle.loads(pickle.dumps(found)) == str(found)  # ours


def test_reasons_are_made_when_someone_asks(
    table: DeltaTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def lines(parts: PruningParts, _: TableConfiguration) -> tuple[str, ...]:
        asked.append(parts)
        return ("a reason",)

    monkeypatch.setattr(PruningParts, "lines", lines)
    scan = table.scan(predicate="day > 'd0' AND id < 2")
    assert scan.to_table().num_rows == scan.count() == 1
    assert asked == []
    assert "read if a reason" in scan.explain()
    assert len(asked) == 1
