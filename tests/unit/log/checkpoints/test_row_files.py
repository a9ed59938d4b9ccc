from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog.log import names
from deltalog.log.checkpoints.rows import RowFile
from deltalog.log.checkpoints.writer import CheckpointLayout
from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.transaction.maintenance.checkpoint import create_checkpoint
from tests.support import logs


def test_types_are_plain_parquet() -> None:
    """No flavour of Arrow's own: no large or view types, no dictionaries, no stored schema."""
    store = logs.table_of([logs.add("a", stats='{"numRecords":1}')])
    create_checkpoint(load_snapshot(utc_context(store)))
    data = store.files[names.log_path(names.checkpoint_name(0))]
    footer = pq.read_metadata(io.BytesIO(data))
    assert footer.metadata is None
    kinds = {str(footer.schema.column(n).logical_type) for n in range(len(footer.schema))}
    assert kinds <= {"String", "None"}
    group = footer.row_group(0)
    assert {group.column(n).compression for n in range(group.num_columns)} == {"SNAPPY"}


def test_sidecars_have_their_number_of_rows() -> None:
    features = ["v2Checkpoint"]
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": features,
        "writerFeatures": features,
    }
    store = logs.DictStore()
    adds = [logs.add(f"f{number}") for number in range(5)]
    logs.commit(store, 0, {"protocol": protocol}, logs.metadata(), *adds)
    snapshot = load_snapshot(utc_context(store))
    create_checkpoint(snapshot, layout=CheckpointLayout.V2_JSON, part_rows=2)
    found: list[list[Any]] = [
        pq.read_table(io.BytesIO(data))["add"].to_pylist()
        for path, data in store.files.items()
        if path.startswith(names.SIDECAR_DIRECTORY)
    ]
    assert sorted(map(len, found)) == [1, 2, 2]
    paths = sorted(row["path"] for rows in found for row in rows)
    assert paths == ["f0", "f1", "f2", "f3", "f4"]


NUMBERS = pa.schema([("n", pa.int64())])


def test_row_groups_stay_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are encoded by another thread than the one that makes the rows."""
    monkeypatch.setattr("deltalog.log.checkpoints.rows._GROUP_ROWS", 2)
    store = logs.DictStore()
    with RowFile(store, "f.parquet", NUMBERS) as file:
        for number in range(7):
            file.write(pa.table({"n": [number]}, NUMBERS))
    written = pq.ParquetFile(io.BytesIO(store.files["f.parquet"]))
    groups = [written.read_row_group(n)["n"].to_pylist() for n in range(written.num_row_groups)]
    assert groups == [[0, 1], [2, 3], [4, 5], [6]]


@pytest.mark.parametrize("more", [0, 1, 4])
def test_a_row_group_that_cannot_be_encoded_leaves_no_file(
    more: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether later rows meet the error, or the end of the file does."""
    monkeypatch.setattr("deltalog.log.checkpoints.rows._GROUP_ROWS", 1)
    store = logs.DictStore()

    def write() -> None:
        with RowFile(store, "f.parquet", NUMBERS) as file:
            file.write(pa.table({"n": [1]}, NUMBERS))
            file.write(pa.table({"n": ["not a number"]}))
            for number in range(more):
                file.write(pa.table({"n": [number]}, NUMBERS))

    with pytest.raises(ValueError, match="schema"):
        write()
    assert store.files == {}
