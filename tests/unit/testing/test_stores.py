from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from deltalog.errors import InvalidInputError, ObjectNotFoundError, StorageError
from deltalog.storage import Store, open_store
from deltalog.testing import CountingStore, FaultyStore, Harm, InjectedFault


@pytest.fixture
def inner(tmp_path: Path) -> Store:
    return open_store(tmp_path)


def test_calls_and_bytes_are_counted(inner: Store) -> None:
    store = CountingStore(inner)
    assert isinstance(store, Store)
    store.put("d/a", b"12345")
    store.put_if_absent("d/b", b"678")
    list(store.list_from("d", ""))
    list(store.list_all(""))
    store.read("d/a")
    store.read_many(["d/a", "d/b"])
    store.read_ranges("d/a", [(0, 2), (4, 5)])
    store.stat("d/a")
    with store.open("d/a") as file:
        file.read()
    store.delete_many(["d/a", "d/b"])
    assert store.counts == {
        "put": 1,
        "put_if_absent": 1,
        "list_from": 1,
        "list_all": 1,
        "read": 1,
        "read_many": 1,
        "read_ranges": 1,
        "stat": 1,
        "open": 1,
        "delete_many": 1,
    }
    assert store.bytes_written == 8
    assert store.bytes_read == 5 + 8 + 3
    assert store.size_bytes == {
        "put": 5,
        "put_if_absent": 3,
        "read": 5,
        "read_many": 8,
        "read_ranges": 3,
    }
    assert store.paths("read", "read_many") == ["d/a", "d/a", "d/b"]
    assert [call.files for call in store.calls if call.verb == "list_all"] == [2]
    store.reset()
    assert store.total_calls == 0


def test_failed_calls_are_not_counted(inner: Store) -> None:
    store = CountingStore(inner)
    with pytest.raises(ObjectNotFoundError):
        store.read("nope")
    assert store.counts == {}


def test_a_refused_call_does_nothing(inner: Store) -> None:
    store = FaultyStore(inner, InjectedFault(verb="put_if_absent", call=2))
    store.put_if_absent("a", b"")
    with pytest.raises(StorageError, match="injected"):
        store.put_if_absent("b", b"")
    store.put_if_absent("c", b"")
    assert sorted(file.path for file in inner.list_all("")) == ["a", "c"]


def test_a_lost_response_hides_a_success(inner: Store) -> None:
    store = FaultyStore(inner, InjectedFault(harm=Harm.LOSE_RESPONSE, path="b"))
    store.put("a", b"")
    with pytest.raises(StorageError):
        store.put("b", b"1")
    assert inner.read("b") == b"1"
    store.put("b", b"2")


def test_after_a_crash_nothing_works(inner: Store) -> None:
    store = FaultyStore(inner, InjectedFault(call=2, harm=Harm.CRASH))
    store.put("a", b"")
    for _ in range(2):
        with pytest.raises(StorageError, match="crashed"):
            store.put("b", b"")
    store.crashed = False
    store.put("b", b"")
    assert store.calls == [("put", "a"), ("put", "b"), ("put", "b"), ("put", "b")]


def test_errors_can_be_chosen_and_last(inner: Store) -> None:
    store = FaultyStore(
        inner, InjectedFault(verb="read", times=2, error=ObjectNotFoundError("chosen"))
    )
    inner.put("a", b"1")
    for _ in range(2):
        with pytest.raises(ObjectNotFoundError, match="chosen"):
            store.read("a")
    assert store.read("a") == b"1"


def test_they_pickle_and_nest(inner: Store) -> None:
    store = CountingStore(FaultyStore(inner))
    store.put("a", b"1")
    copy: CountingStore = pickle.loads(pickle.dumps(store))
    assert copy.read("a") == b"1"
    assert copy.root == inner.root
    assert "CountingStore(FaultyStore(FsspecStore(" in repr(copy)


@pytest.mark.parametrize("kind", [CountingStore, FaultyStore])
def test_only_stores_are_wrapped(kind: type[CountingStore | FaultyStore]) -> None:
    given: Any = "memory://t"
    with pytest.raises(
        InvalidInputError, match=rf"cannot make a {kind.__name__} of a str: expected"
    ):
        kind(given)
