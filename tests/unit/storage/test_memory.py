"""Files in the memory of this process."""

from __future__ import annotations

import datetime as dt
import uuid
from pathlib import Path
from typing import Any

import fsspec
import pytest

from deltalog.errors import AlreadyExistsError, ObjectNotFoundError
from deltalog.storage import Store, open_store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"memory://{tmp_path}/t")


def test_nothing_is_there_at_first(store: Store) -> None:
    assert list(store.list_all("")) == list(store.list_from("_delta_log", "")) == []
    with pytest.raises(ObjectNotFoundError):
        store.read("a")
    with pytest.raises(ObjectNotFoundError):
        store.stat("a")


def test_a_name_is_taken_once(store: Store) -> None:
    store.put_if_absent("a", b"1")
    with pytest.raises(AlreadyExistsError):
        store.put_if_absent("a", b"2")
    assert store.read("a") == b"1"
    store.put("a", b"23")
    assert (store.read("a"), store.stat("a").size_bytes) == (b"23", 2)


def test_listings_begin_at_a_name_and_stay_in_their_directory(store: Store) -> None:
    for path in ("d/b", "d/a", "d/c", "d/e/f", "dd/a"):
        store.put(path, b"")
    assert [file.path for file in store.list_from("d", "b")] == ["d/b", "d/c"]
    assert sorted(file.path for file in store.list_all("d")) == ["d/a", "d/b", "d/c", "d/e/f"]


def test_other_tables_are_not_seen(tmp_path: Path) -> None:
    one, other = (open_store(f"memory://{tmp_path}/{name}") for name in ("t", "t2"))
    other.put("a", b"")
    assert list(one.list_all("")) == []


def test_parts_of_files(store: Store) -> None:
    store.put("a", b"0123")
    assert store.read_ranges("a", [(1, 3), (3, 9), (2, 2)]) == [b"12", b"3", b""]
    assert store.read_many(["a", "a"]) == [b"0123", b"0123"]


def test_deleting_twice_is_no_error(store: Store) -> None:
    store.put("a", b"")
    store.delete_many(["a", "b"])
    store.delete_many(["a"])
    assert list(store.list_all("")) == []


def test_what_was_handed_over_may_change_afterwards(store: Store) -> None:
    data: Any = bytearray(b"ab")
    store.put("a", data)
    data[:] = b"xy"
    assert store.read("a") == b"ab"


def test_all_ways_to_list_tell_when_an_entry_was_changed() -> None:
    location = f"memory://{uuid.uuid4()}"
    store: Any = open_store(location)
    store.put("d/a", b"1")
    [entry] = [
        file
        for path, file in fsspec.filesystem("memory").store.items()
        if location.removeprefix("memory://") in path
    ]
    entry.modified = entry.created + dt.timedelta(seconds=5)
    told = store.stat("d/a").modified_ms
    assert told == round(entry.modified.timestamp() * 1000)
    short = store.list_short("d", 10)
    assert short is not None
    listings = [*store.list_from("d", ""), *short, *store.list_level("d")[0], *store.list_all("d")]
    assert [file.modified_ms for file in listings] == [told] * 4
