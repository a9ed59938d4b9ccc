"""The cache of written files."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from deltalog.sharing.server.cache import CachedFile, FileCache
from deltalog.sharing.server.downloads import download_open
from deltalog.storage import Store
from tests.support.sharing import actions, shown_rows, view_of


def test_the_cache_is_bounded(tmp_path: Path) -> None:
    cache = FileCache(100, str(tmp_path))

    def make(store: Store, path: str) -> CachedFile:
        store.put(path, b"x" * 40)
        return CachedFile(1, 40)

    for name in ("a", "b", "a", "c"):
        cache.get(name, make)
    assert cache.size_bytes == 80
    assert [name for name in "abc" if cache.known(name) is not None] == ["a", "c"]
    (home,) = tmp_path.iterdir()
    assert sorted(file.name for file in home.iterdir()) == ["a", "c"]
    del cache
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_leaves_the_cache_is_read_to_its_end(tmp_path: Path) -> None:
    cache = FileCache(100, str(tmp_path))

    def make(store: Store, path: str) -> CachedFile:
        store.put(path, path.encode() * 90)
        return CachedFile(1, 90)

    cache.get("a", make)
    file = cache.open("a")
    assert file is not None
    cache.get("b", make)
    assert cache.open("a") is None
    reply = download_open(file, {}, with_body=True)
    assert b"".join(reply.chunks) == b"a" * 90
    assert file.closed


def test_a_file_that_somebody_cleaned_up_is_made_again(salaries: Path, tmp_path: Path) -> None:
    place = tmp_path / "cache"
    place.mkdir()
    caller = view_of(salaries, {"columns": ["id"]}, cacheDirectory=str(place))
    (file, *_) = actions(caller.query("s.d.t"), "file")
    before = caller.download(file["url"]).body
    for made in place.glob("*/*"):
        made.unlink()
    assert caller.download(file["url"]).body == before
    assert len(shown_rows(caller)) == 5


def test_what_holds_no_row_is_not_remembered_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deltalog.sharing.server.cache._MOST_ENTRIES", 2)
    cache = FileCache(100, str(tmp_path))
    for name in "abcd":
        cache.get(name, lambda _store, _path: CachedFile(0, 0))
    assert [name for name in "abcd" if cache.known(name) is not None] == ["c", "d"]


def test_a_file_is_made_once_for_all_who_wait(tmp_path: Path) -> None:
    cache = FileCache(100, str(tmp_path))
    made = []

    def make(store: Store, path: str) -> CachedFile:
        made.append(path)
        store.put(path, b"x")
        return CachedFile(1, 1)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: cache.get("a", make), range(50)))
    assert found == [CachedFile(1, 1)] * 50
    assert made == ["a"]
