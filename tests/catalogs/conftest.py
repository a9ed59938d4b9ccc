"""A Unity Catalog server for each test; what its documents do not allow fails the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from deltalog.catalogs.unity import UnityCatalog
from deltalog.storage.http import HttpOptions, Retry
from tests.support.openapi import specification
from tests.support.unity_server import TOKEN, UnityServer

QUICK = HttpOptions(retry=Retry(attempts=4, first_delay_ms=1))


@pytest.fixture
def unity(tmp_path: Path) -> Iterator[UnityServer]:
    """A server whose managed tables are local directories."""
    server = UnityServer(specification(), f"file://{tmp_path}/warehouse")
    yield server
    server.close()
    assert server.violations == []


@pytest.fixture
def catalog(unity: UnityServer) -> UnityCatalog:
    """The catalog `main` of the server."""
    return UnityCatalog(
        unity.url, token=TOKEN, catalog="main", allows_local_files=True, http_options=QUICK
    )
