"""What a change of metadata needs and who loses access by it."""

from __future__ import annotations

import pytest

from deltalog.operations import alter
from tests.support.altering import apply, make


def test_who_loses_access_is_told(caplog: pytest.LogCaptureFixture) -> None:
    table = make()
    apply(table, alter.SetTableProperties({"delta.enableTypeWidening": "true"}))
    (record,) = [entry for entry in caplog.records if entry.levelname == "WARNING"]
    assert "deltalake 1.6, Polars 2.1 and delta-sharing 1.4 cannot read it" in record.getMessage()
    # Who cannot read it cannot write it; that is not said again.
    assert record.getMessage().endswith(
        "any more, DuckDB's delta extension (of DuckDB 1.5.5) cannot write it any more"
    )
    caplog.clear()
    apply(table, alter.SetTableProperties({"delta.enableTypeWidening": "false"}))
    assert not [entry for entry in caplog.records if entry.levelname == "WARNING"]
