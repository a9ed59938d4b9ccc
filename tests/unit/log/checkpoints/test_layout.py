from __future__ import annotations

from typing import Any

import pytest

from deltalog.errors import UnsafePathError
from deltalog.log import names
from deltalog.log.checkpoints.layout import open_checkpoint_file, sidecar_location
from deltalog.protocol.actions.model import Sidecar
from tests.support import logs
from tests.support.logs import DictStore

ACTIONS = [
    logs.PROTOCOL,
    logs.metadata(),
    *[logs.add(f"f{number}", stats='{"numRecords":1}') for number in range(5)],
    logs.remove("gone"),
]


def sidecar(path: str) -> Sidecar:
    return Sidecar(path=path, size_bytes=1, modification_time_ms=1)


@pytest.mark.protocol("D-60")
def test_where_a_sidecar_is() -> None:
    assert sidecar_location(sidecar("x.parquet")) == "_delta_log/_sidecars/x.parquet"
    assert sidecar_location(sidecar("s3://b/t/x.parquet")) == "s3://b/t/x.parquet"
    with pytest.raises(UnsafePathError):
        sidecar_location(sidecar("../x.parquet"))


@pytest.mark.protocol("B-15")
@pytest.mark.parametrize("suffix", ["json", "parquet"])
def test_both_formats_give_the_same_actions(suffix: str) -> None:
    store = DictStore()
    path = names.log_path(f"00000000000000000003.checkpoint.x.{suffix}")
    data = logs.ndjson(ACTIONS) if suffix == "json" else logs.checkpoint_parquet(ACTIONS)
    store.put(path, data)
    file = open_checkpoint_file(store, store.stat(path))
    assert (file.count("add"), file.count("remove")) == (5, 1)
    adds: Any = file.actions("add", [("add", "path"), ("add", "stats")]).to_pylist()
    assert [add["path"] for add in adds] == [f"f{number}" for number in range(5)]
    assert {add["stats"] for add in adds} == {'{"numRecords":1}'}
    assert file.values(["protocol"])["protocol"][0]["minReaderVersion"] == 1
    assert ("add", "path") in file.leaves("add")
    batches = list(file.batches("add", [("add", "path")], 2))
    assert sum(map(len, batches)) == 5
    assert list(file.parts("add")) == [file]


def test_a_file_is_cut_at_its_row_groups() -> None:
    store = DictStore()
    path = names.log_path(names.checkpoint_name(3))
    store.put(path, logs.checkpoint_parquet(ACTIONS, row_group_rows=2))
    file = open_checkpoint_file(store, store.stat(path))
    parts = file.parts("add", least_bytes=0)
    # The rows are protocol, metaData | two adds | two adds | an add and the remove.
    assert [part.count("add") for part in parts] == [2, 2, 1]
    assert [len(part.actions("add", [])) for part in parts] == [2, 2, 1]
