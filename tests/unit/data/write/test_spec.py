"""What a worker must know to write."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from deltalog.data.write import WriteSpec, write_files
from deltalog.schema import Field
from deltalog.storage import open_store
from tests.support.writes import (
    table,
)

BY_P = table(Field("a", "long"), Field("p", "string"), partition_by=["p"])


@pytest.mark.protocol("OV-01")
def test_a_worker_gets_a_spec_and_gives_files_in_pickles(tmp_path: Path) -> None:
    spec = WriteSpec(store=open_store(str(tmp_path)), configuration=BY_P, time_zone="UTC")
    there: WriteSpec = pickle.loads(pickle.dumps(spec))
    written = write_files(there, [{"a": 1, "p": "x"}])
    assert pickle.loads(pickle.dumps(written)) == written
    assert (tmp_path / written.adds[0].path).is_file()
