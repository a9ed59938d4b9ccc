"""What tests of statements share."""

from __future__ import annotations

import pytest

from tests.support.sql_tables import SqlTables


@pytest.fixture
def db() -> SqlTables:
    """A connection without tables."""
    return SqlTables()
