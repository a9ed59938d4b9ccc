"""Where callers say that a table is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deltalog.catalogs import table_uri as locations
from deltalog.errors import InvalidInputError, ObjectNotFoundError
from deltalog.storage import open_store
from tests.support.logs import DictStore


def test_a_location_names_a_version_unless_a_table_is_called_so(tmp_path: Path) -> None:
    named = f"{tmp_path}/t@v7"
    store, at = locations.open_table_store(named, None, None)
    assert (store.root, at) == (f"{tmp_path}/t", 7)
    open_store(named).put("_delta_log/x", b"")
    store, at = locations.open_table_store(named, None, None)
    assert (store.root, at) == (named, None)
    given = DictStore()
    assert locations.open_table_store(given, None, None) == (given, None)
    options: Any = "a=b"
    with pytest.raises(InvalidInputError, match="found a str"):
        locations.open_table_store(named, options, None)


def test_a_version_is_given_once() -> None:
    assert locations.one_version("/t", None, None) is None
    assert locations.one_version("/t", 0, None) == 0
    assert locations.one_version("/t", None, 0) == 0
    with pytest.raises(InvalidInputError, match="open /t at 'latest': its location already names"):
        locations.one_version("/t", "latest", 0)


def test_a_clone_is_not_put_below_its_table() -> None:
    locations.check_elsewhere("/b", "/b", "/a")
    locations.check_elsewhere("/aa", "/aa", "/a")
    locations.check_elsewhere(DictStore(), "/a", "/a")  # whose roots say nothing
    for root in ("/a", "/a/b", "/a/"):
        with pytest.raises(InvalidInputError, match="outside of the table"):
            locations.check_elsewhere(root, root, "/a")


def test_errors_name_the_table_once() -> None:
    with pytest.raises(ObjectNotFoundError) as caught, locations.naming("/t"):
        raise ObjectNotFoundError("it is gone")
    assert caught.value.__notes__ == ["while opening /t"]
    with pytest.raises(ObjectNotFoundError) as known, locations.naming("/t"):
        raise ObjectNotFoundError("/t is gone")
    assert not hasattr(known.value, "__notes__")
