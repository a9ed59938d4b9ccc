"""The catalog of tests keeps the order of versions."""

from __future__ import annotations

import pytest

from deltalog._util.paths import FileInfo
from deltalog.errors import (
    AlreadyExistsError,
    ObjectNotFoundError,
)
from deltalog.log.context import Catalog, RatifiedCommit
from deltalog.log.names import STAGED_DIRECTORY
from deltalog.testing import InMemoryCatalog


def test_the_reference_catalog_ratifies_in_order() -> None:
    catalog = InMemoryCatalog()
    assert isinstance(catalog, Catalog)
    file = FileInfo(f"{STAGED_DIRECTORY}/x", 1, 1)
    catalog.propose("t", RatifiedCommit(version=0, file=file))
    with pytest.raises(AlreadyExistsError):
        catalog.propose("t", RatifiedCommit(version=0, file=file))
    with pytest.raises(ObjectNotFoundError):
        catalog.propose("t", RatifiedCommit(version=2, file=file))
