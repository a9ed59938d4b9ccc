"""What a change of metadata needs and who loses access by it."""

from __future__ import annotations

import pytest

from deltalog.operations import alter
from tests.support.altering import apply, make


def test_who_loses_access_is_told(caplog: pytest.LogCaptureFixture) -> None:
    table = make()
    apply(table, alter.SetTableProperties({"delta.enableTypeWidening": "true"}))
    (record,) = [entry for entry in caplog.records if entry.levelname == "WARNING"]
    assert "deltalake 1.6 cannot read it any more" in record.getMessage()
    caplog.clear()
    apply(table, alter.SetTableProperties({"delta.enableTypeWidening": "false"}))
    assert not [entry for entry in caplog.records if entry.levelname == "WARNING"]
