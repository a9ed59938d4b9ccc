"""Where the listing starts."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Iterator

import pytest

from deltalog._util.paths import FileInfo
from deltalog.errors import LogGapError, ObjectNotFoundError
from deltalog.log import names as names_of
from deltalog.log.context import LogTail, RatifiedCommit
from deltalog.log.listing import has_table, list_commits, list_for_version, list_log
from deltalog.log.names import LAST_CHECKPOINT_PATH
from deltalog.log.segment import build_segment
from deltalog.storage import Store
from deltalog.testing import CountingStore
from tests.support.logs import DictStore, add, classic_checkpoint, commit, table_of


def log_with_checkpoints(*versions: int, last: int = 30, hint: int = 0) -> DictStore:
    store = table_of(*[[] for _ in range(last + 1)])
    for version in versions:
        classic_checkpoint(store, version, [])
    store.files[LAST_CHECKPOINT_PATH] = b'{"version":%d,"size":2}' % hint
    return store


def test_a_table_is_where_a_log_begins() -> None:
    assert not has_table(DictStore())
    assert not has_table(DictStore({"_delta_log/_last_checkpoint": b"", "x": b""}))
    assert has_table(DictStore({f"_delta_log/{3:020}.checkpoint.parquet": b""}))
    assert has_table(table_of([]))


@pytest.mark.protocol("LAST-02")
def test_the_hint_is_where_the_listing_starts() -> None:
    store = CountingStore(log_with_checkpoints(10, 20, hint=10))
    listing = list_for_version(store)
    assert listing.first == 10
    assert min(listing.commits) == 10
    checkpoint = build_segment(listing).checkpoint
    assert checkpoint is not None
    assert checkpoint.version == 20
    assert store.counts == {"read": 1, "list_from": 1}


@pytest.mark.protocol("LAST-06", "D-21")
def test_a_dangling_hint_costs_a_second_listing() -> None:
    store = CountingStore(log_with_checkpoints(10, hint=20))
    listing = list_for_version(store)
    assert listing.first == 0
    assert build_segment(listing).version == 30
    assert store.counts == {"read": 1, "list_from": 2}


@pytest.mark.protocol("D-21")
def test_a_hint_after_the_version_is_no_use() -> None:
    store = CountingStore(log_with_checkpoints(10, 20, hint=20))
    listing = list_for_version(store, 15)
    assert listing.first == 0
    assert store.counts == {"read": 1, "list_from": 1}
    assert list_for_version(store, 20).first == 20
    assert list_for_version(store, 25).first == 20


class Peeking(CountingStore):
    """A store that is reached by requests, whose two kinds of reading must meet."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._meeting = threading.Barrier(2)

    def read(self, path: str) -> bytes:
        self._meeting.wait(60)
        return super().read(path)

    def list_short(self, directory: str, most: int) -> list[FileInfo] | None:
        self._meeting.wait(60)
        found = list(self.list_from(directory, ""))
        return found if len(found) <= most else None


@pytest.mark.protocol("LAST-02")
def test_a_short_log_is_listed_with_the_hint() -> None:
    short, long = (Peeking(log_with_checkpoints(10, last=last, hint=10)) for last in (30, 120))
    listing = list_for_version(short)
    assert (listing.first, max(listing.commits)) == (0, 30)
    assert short.counts == {"read": 1, "list_from": 1}
    listing = list_for_version(long)
    assert (listing.first, max(listing.commits)) == (10, 120)
    assert long.counts == {"read": 1, "list_from": 2}


@pytest.mark.protocol("LOG-10", "B-43")
def test_other_files_and_staged_commits_are_not_seen() -> None:
    store = table_of([], [])
    for name in ("0.json.tmp", "_last_vacuum_info", "_staged_commits/00000000000000000002.x.json"):
        store.put(f"_delta_log/{name}", b"?")
    listing = list_log(store)
    assert list(listing.commits) == [0, 1]
    assert listing.checkpoints == ()


def test_a_catalogs_tail_joins_the_listing() -> None:
    store = table_of([], [])
    path = "_delta_log/_staged_commits/00000000000000000002.3a0d65cd.json"
    store.put(path, b"{}")
    commit(store, 3)
    tail = LogTail(commits=(RatifiedCommit(version=2, file=FileInfo(path, 2, 7)),))
    listing = list_log(store, log_tail=tail)
    assert list(listing.commits) == [0, 1, 2]
    assert listing.commits[2].info.path == path


@pytest.mark.protocol("OV-02")
@pytest.mark.parametrize("hidden", [{1}, {2, 3}])
def test_a_listing_that_was_torn_by_writers_is_mended(hidden: set[int]) -> None:
    class Torn(DictStore):
        def list_from(self, directory: str, first: str) -> Iterator[FileInfo]:
            names = {names_of.commit_path(version) for version in hidden}
            found = super().list_from(directory, first)
            return iter([info for info in found if info.path not in names])

    whole = table_of([], [add("a")], [add("b")], [add("c")], [add("d")])
    torn = list_log(Torn(whole.files, whole.times_ms))
    assert torn == list_log(whole)
    del whole.files[names_of.commit_path(min(hidden))]
    assert min(hidden) not in list_log(Torn(whole.files)).commits


def test_few_commits_are_found_by_name_and_many_in_a_listing() -> None:
    store = CountingStore(log_with_checkpoints(last=39))
    assert [file.version for file in list_commits(store, 37)] == [37, 38, 39]
    assert store.counts == {"stat": 3}  # those that were not there are not counted
    store.reset()
    assert [file.version for file in list_commits(store, 2)] == list(range(2, 40))
    assert store.counts == {"stat": 16, "list_from": 1}


def test_commits_end_before_a_hole() -> None:
    store = log_with_checkpoints(last=29)
    for version in (5, 28):
        store.delete_many([names_of.commit_path(version)])
    assert [file.version for file in list_commits(store, 3)] == [3, 4]
    assert [file.version for file in list_commits(store, 6)] == list(range(6, 28))
    with pytest.raises(ObjectNotFoundError, match=r"00005\.json"):
        list_commits(store, 5)


def test_a_log_that_spans_billions_of_versions_is_listed_in_little_memory() -> None:
    """Two files say that three billion commits are missing; asking for each would never end."""
    inner = DictStore()
    for version in (0, 3_000_000_000):
        commit(inner, version, add("x"))
    store = CountingStore(inner)
    tracemalloc.start()
    with pytest.raises(LogGapError, match="commit 1 is missing"):
        build_segment(list_log(store))
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 5_000_000
    assert store.counts.get("stat", 0) <= 1
