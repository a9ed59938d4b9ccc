"""Truncate: no row is left, and none is read."""

from __future__ import annotations

import pytest

from deltalog.data.scan.changes import open_changes
from deltalog.errors import InvalidInputError
from deltalog.operations.delete import Truncate
from deltalog.testing import CountingStore
from tests.support.aging import FEATURES, AgingTable


def test_no_row_is_left_and_no_file_is_opened() -> None:
    table = AgingTable()
    table.create({"id": [1, 2], "p": [1, 2]}, partition_by=["p"], properties=FEATURES)
    schema = table.snapshot().metadata.schema_string
    table.store = counted = CountingStore(table.kept)
    done = table.do(Truncate())
    assert not [path for path in counted.paths() if path.endswith(".parquet")]
    assert (done.num_removed_files, done.metrics()["numRemovedFiles"]) == (2, 2)
    assert table.rows() == []
    assert table.snapshot().metadata.schema_string == schema
    assert table.rows(0) == [(1, 1), (2, 2)]
    changes = open_changes(table.snapshot(), start=1).to_table()
    assert changes.column("_change_type").to_pylist() == ["delete", "delete"]


@pytest.mark.protocol("META-07")
def test_a_table_that_only_grows_is_not_truncated() -> None:
    table = AgingTable()
    table.create({"id": [1]}, properties={"delta.appendOnly": "true"})
    with pytest.raises(InvalidInputError, match="appendOnly"):
        table.do(Truncate())
