"""What tests of the command line share."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltalog import write_deltalake
from tests.support.command_line import ROWS


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Three rows, and one of them again; where they are."""
    uri = str(tmp_path / "table")
    write_deltalake(uri, ROWS)
    write_deltalake(uri, ROWS.slice(0, 1), mode="append")
    return uri
