"""What the tests of Delta Sharing use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.sharing_server import ScriptedServer


@pytest.fixture
def scripted() -> Iterator[ScriptedServer]:
    """A server on loopback that answers what the test tells it to."""
    server = ScriptedServer()
    yield server
    server.close()
