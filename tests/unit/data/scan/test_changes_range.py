"""Change feeds over ranges that a log may stretch over billions of versions."""

from __future__ import annotations

import tracemalloc

import pytest

from deltalog import DeltaTable
from deltalog.errors import VersionNotFoundError
from tests.support.logs import (
    PROTOCOL,
    DictStore,
    classic_checkpoint,
    commit,
    metadata,
    table_of,
)


def test_a_range_of_billions_of_versions_takes_little_memory() -> None:
    far = 3_000_000_000
    store = table_of([])
    assert isinstance(store, DictStore)
    classic_checkpoint(store, far, [PROTOCOL, metadata()])
    commit(store, far)
    table = DeltaTable(store)
    assert table.version() == far
    tracemalloc.start()
    with pytest.raises(VersionNotFoundError, match="start after version"):
        table.load_cdf(0)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 5_000_000
