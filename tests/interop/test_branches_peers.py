"""deltalake reads a table as if its branches did not exist: before, during and after a publish."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake

VECTORS = {"delta.enableDeletionVectors": "true"}


def rows_of(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def read(place: Path) -> list[int]:
    found = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(place))
    rows = pa.table(found.execute("SELECT id FROM t").read_all())
    ids: list[Any] = rows["id"].to_pylist()
    return sorted(ids)


@pytest.mark.parametrize("configuration", [{}, VECTORS], ids=["plain", "vectors"])
def test_deltalake_sees_main_only(tmp_path: Path, configuration: dict[str, str]) -> None:
    place = tmp_path / "t"
    write_deltalake(place, rows_of(*range(10)), configuration=configuration)
    assert read(place) == [*range(10)]
    draft = DeltaTable(place).branch("n")
    write_deltalake(draft, rows_of(100), mode="append")
    draft.delete("id = 1")
    draft.create_checkpoint()
    assert read(place) == [*range(10)]
    assert deltalake.DeltaTable(place).version() == 0
    if not configuration:  # deltalake does not write to tables with deletion vectors
        deltalake.write_deltalake(place, rows_of(50), mode="append")
        assert read(place) == [*range(10), 50]
    version = draft.publish().version
    rest = [] if configuration else [50]
    assert read(place) == [0, *range(2, 10), *rest, 100]
    assert deltalake.DeltaTable(place).version() == version
    assert deltalake.DeltaTable(place).history(1)[0]["operation"] == "PUBLISH BRANCH"
