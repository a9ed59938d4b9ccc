"""The source as trees: parsed once for all tests of this folder, and forgotten after them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.source import Source, read_source


@pytest.fixture(scope="package")
def source() -> Iterator[Source]:
    """All modules of deltalog."""
    yield read_source()
    read_source.cache_clear()  # trees of 200 MB, through which the collector of garbage would walk
