from __future__ import annotations

import io
from typing import Any

import pyarrow.parquet as pq

from deltalog.checkpoints.writer import CheckpointLayout
from deltalog.context import utc_context
from deltalog.log import names
from deltalog.snapshot import load_snapshot
from deltalog.upkeep import create_checkpoint
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
