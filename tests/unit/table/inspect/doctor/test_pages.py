"""The doctor finds damaged pages, also those whose values can still be read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from tests.support.facade import make, store_of

ROWS = pa.table({"id": pa.array(range(1000), pa.int64()), "t": [f"text {n}" for n in range(1000)]})


def test_healthy_pages_are_no_finding() -> None:
    table = make(ROWS)
    assert table.doctor(checks="pages").findings == ()


@pytest.mark.parametrize("bit", [0, 3, 7])
def test_a_flipped_bit_is_found(tmp_path: Path, bit: int) -> None:
    write_deltalake(tmp_path, ROWS)
    (file,) = tmp_path.glob("*.parquet")
    data = bytearray(file.read_bytes())
    data[len(data) // 3] ^= 1 << bit
    file.write_bytes(data)
    (finding,) = DeltaTable(tmp_path).doctor(checks="pages").findings
    assert (finding.check, finding.path) == ("pages", file.name)


def test_files_elsewhere_than_on_a_disk_are_looked_at() -> None:
    table = make(ROWS)
    store = store_of(table)
    (path,) = [info.path for info in store.list_all("") if info.path.endswith(".parquet")]
    data = bytearray(store.read(path))
    data[len(data) // 3] ^= 1
    store.put(path, bytes(data))
    (finding,) = DeltaTable(store).doctor(checks="pages").findings
    assert "not match its checksum" in finding.message


def test_a_missing_file_is_told_by_another_check(tmp_path: Path) -> None:
    write_deltalake(tmp_path, ROWS)
    (file,) = tmp_path.glob("*.parquet")
    file.unlink()
    assert DeltaTable(tmp_path).doctor(checks="pages").findings == ()
