"""Row tracking is enabled, in one commit or batch by batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog._util.json import loads
from deltalog.errors import InvalidInputError
from deltalog.operations import alter
from tests.support.altering import apply, last, make, told
from tests.support.raw_tables import DataTable


@pytest.mark.protocol("ROWID-05", "ROWID-11", "B-77")
def test_row_tracking_is_enabled_in_one_commit() -> None:
    table = make()
    table.commit(table.add({"id": [4, 5]}))
    asked = {"delta.enableRowTracking": "true"}
    after = apply(table, alter.SetTableProperties(asked))
    assert after.configuration.row_ids_enabled
    bases: list[Any] = after.files(["baseRowId"]).column("baseRowId").to_pylist()
    assert sorted(bases) in ([0, 2], [0, 3])
    assert after.row_id_high_water_mark == 4
    assert last(table)["add"]["dataChange"] is False
    assert after.num_files == 2


@pytest.mark.protocol("ROWID-11", "B-77")
def test_a_backfill_goes_batch_by_batch() -> None:
    table = make()
    table.commit(table.add({"id": [4, 5]}))
    with pytest.raises(InvalidInputError, match="rowTracking first"):
        apply(table, alter.BackfillRowIds())
    apply(
        table,
        alter.AddFeature("rowTracking", allow_protocol_versions_increase=True),
    )
    left = apply(table, alter.BackfillRowIds(max_files=1))
    assert left.files(["baseRowId"]).column("baseRowId").null_count == 1
    assert told(table)[0] == "ROW TRACKING BACKFILL"
    done = apply(table, alter.BackfillRowIds())
    assert done.files(["baseRowId"]).column("baseRowId").null_count == 0
    assert done.row_id_high_water_mark == 4
    asked = {"delta.enableRowTracking": "true"}
    apply(table, alter.SetTableProperties(asked))
    assert set(last(table)) == {"commitInfo", "metaData"}


def test_a_backfill_returns_how_many_files_it_gave_ids(tmp_path: Path) -> None:
    for number in range(3):
        write_deltalake(tmp_path, pa.table({"id": [number]}), mode="append")
    table = DeltaTable(tmp_path)
    table.alter.add_feature("rowTracking", allow_protocol_versions_increase=True)
    assert [table.alter.backfill_row_ids(max_files=2) for _ in range(3)] == [2, 1, 0]
    table.alter.set_table_properties({"delta.enableRowTracking": "true"})
    ids = table.to_pyarrow_table(columns=["id", "_metadata.row_id"])
    assert len(set(ids.column(1).to_pylist())) == 3


@pytest.mark.protocol("B-70", "B-72", "B-74", "B-78")
@pytest.mark.parametrize("enabled", ["true", "false"])
def test_row_ids_of_the_draft_become_those_of_today(enabled: str) -> None:
    draft = {"delta.enableRowIds": enabled, "delta.rowIds.physicalColumnName": "_ids"}
    table = DataTable([("id", "long")], features=["rowIds"], configuration=draft)
    hidden = pa.table({"id": [1, 2], "_ids": pa.array([7, None], pa.int64())})
    mark = {"rowIdHighWaterMark": {"highWaterMark": 101, "preservedRowIds": True}}
    table.commit(table.add(hidden, baseRowId=100), mark)
    after = apply(table, alter.UpgradeRowIds())
    assert after.configuration.features.keys() == {"rowTracking", "domainMetadata"}
    assert after.configuration.row_id_column == "_ids"
    assert after.configuration.row_ids_enabled is (enabled == "true")
    assert not [key for key in after.metadata.configuration if "RowIds" in key or "rowIds" in key]
    domain = loads(str(after.domain_metadata["delta.rowTracking"].configuration), "domain")
    assert domain["rowIdHighWaterMark"] == 101
    assert last(table)["add"]["baseRowId"] == 100
    assert last(table)["add"]["defaultRowCommitVersion"] == after.version
    if enabled == "true":
        assert sorted(table.rows(columns=["id", "_metadata.row_id"])) == [(1, 7), (2, 101)]
    with pytest.raises(InvalidInputError, match="does not have it"):
        apply(table, alter.UpgradeRowIds())
