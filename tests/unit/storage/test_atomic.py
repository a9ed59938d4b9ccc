from __future__ import annotations

import ctypes
import errno
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NoReturn

import pytest

from deltalog._util.store_kinds import KINDS
from deltalog.errors import AlreadyExistsError, StorageError
from deltalog.storage import atomic, open_store
from deltalog.storage.links import Home


def _names(directory: Path) -> list[str]:
    return [entry.name for entry in directory.iterdir()]


def test_under_a_lock_a_file_is_created_once() -> None:
    files: dict[str, bytes] = {}
    lock = threading.Lock()

    def put(path: str, data: bytes) -> None:
        assert lock.locked()
        files[path] = data

    atomic.create_under_lock(lock, files.__contains__, put, "a", b"one")
    with pytest.raises(FileExistsError):
        atomic.create_under_lock(lock, files.__contains__, put, "a", b"two")
    assert files == {"a": b"one"}
    assert not lock.locked()


RACERS = 32
VERSIONS = 6


def _race(root: str, writer: int, gate: Any, wins: Any) -> None:
    """Try to commit every version, together with all others; runs in a process of its own."""
    store = open_store(root)
    for version in range(VERSIONS):
        gate.wait(timeout=60)
        try:
            store.put_if_absent(f"_delta_log/{version:020d}.json", f"{writer} ".encode() * 5000)
        except AlreadyExistsError:
            continue
        wins.put((version, writer))


@pytest.mark.protocol("LOG-06", "B-01", "D-26")
def test_of_32_processes_one_wins_every_version(tmp_path: Path) -> None:
    context = get_context("fork")
    gate, wins = context.Barrier(RACERS), context.SimpleQueue()
    root = str(tmp_path / "t")
    racers = [
        context.Process(target=_race, args=(root, writer, gate, wins)) for writer in range(RACERS)
    ]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join(timeout=60)
        assert racer.exitcode == 0
    winners = []
    while not wins.empty():
        winners.append(wins.get())
    assert sorted(version for version, _ in winners) == list(range(VERSIONS))
    store = open_store(root)
    for version, writer in winners:
        content = store.read(f"_delta_log/{version:020d}.json")
        assert content == f"{writer} ".encode() * 5000
    assert len(_names(tmp_path / "t" / "_delta_log")) == VERSIONS


def _no_links(*_: object, **__: object) -> NoReturn:
    raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))


needs_rename = pytest.mark.skipif(
    sys.platform not in {"linux", "darwin", "win32"}, reason="no rename that never replaces"
)


@needs_rename
@pytest.mark.protocol("LOG-06", "B-01", "D-26")
def test_without_hard_links_a_rename_that_never_replaces_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", _no_links)

    def attempt(writer: int) -> bool:
        try:
            with Home(str(tmp_path)).open(str(tmp_path), syncs=True) as folder:
                atomic.create_local(folder, "0.json", str(writer).encode(), syncs=True)
        except (FileExistsError, AlreadyExistsError):
            return False
        return True

    with ThreadPoolExecutor(RACERS) as pool:
        wins = list(pool.map(attempt, range(RACERS)))
    assert wins.count(True) == 1
    assert (tmp_path / "0.json").read_text() == str(wins.index(True))
    assert _names(tmp_path) == ["0.json"]


@pytest.mark.protocol("B-01", "D-26")
def test_a_file_system_with_neither_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NoRename:
        """A C library of another system."""

    monkeypatch.setattr(os, "link", _no_links)
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: NoRename())
    store = open_store(tmp_path)
    with pytest.raises(StorageError, match="neither hard links"):
        store.put_if_absent("0.json", b"x")
    assert _names(tmp_path) == []


def test_another_failure_of_the_link_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "link", full)
    store = open_store(tmp_path)
    with pytest.raises(StorageError, match="No space left"):
        store.put_if_absent("0.json", b"x")
    assert _names(tmp_path) == []


def test_a_dangling_link_of_that_name_counts_as_there(tmp_path: Path) -> None:
    (tmp_path / "0.json").symlink_to(tmp_path / "nowhere")
    with pytest.raises(AlreadyExistsError):
        open_store(tmp_path).put_if_absent("0.json", b"x")
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.protocol("DF-04")
def test_replacing_is_atomic_for_readers(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.put("_last_checkpoint", b"a" * 10_000)

    def replace(letter: bytes) -> None:
        for _ in range(10):
            store.put("_last_checkpoint", letter * 10_000)

    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(replace, letter) for letter in (b"b", b"c")]
        while not all(writer.done() for writer in writers):
            content = store.read("_last_checkpoint")
            assert len(content) == 10_000
            assert len(set(content)) == 1


class ConditionalStore:
    """What atomic asks of an object store: it answers as S3 does when two writes meet."""

    def __init__(self, answers: list[Exception | None]) -> None:
        self.answers = answers
        self.modes: list[str] = []

    def pipe_file(self, _path: str, _data: bytes, mode: str) -> None:
        self.modes.append(mode)
        answer = self.answers.pop(0)
        if answer is not None:
            raise answer


class AwsError(Exception):
    """Shaped like botocore's ClientError."""

    def __init__(self, code: str, status: int) -> None:
        super().__init__(code)
        self.response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}


def _wrapped(code: str, status: int) -> OSError:
    """What s3fs makes of such an error."""
    error = OSError(errno.EBUSY, code)
    error.__cause__ = AwsError(code, status)
    return error


@pytest.mark.protocol("B-01", "D-26")
def test_s3_is_asked_again_when_two_conditional_writes_met() -> None:
    filesystem = ConditionalStore([_wrapped("ConditionalRequestConflict", 409)] * 2 + [None])
    atomic.create_by_request(filesystem, KINDS["s3"], "b/0.json", b"x")
    assert filesystem.modes == ["create"] * 3


@pytest.mark.protocol("B-01", "D-26")
def test_a_lost_race_on_s3_is_not_tried_again() -> None:
    filesystem = ConditionalStore([_wrapped("PreconditionFailed", 412), None])
    with pytest.raises(OSError, match="PreconditionFailed"):
        atomic.create_by_request(filesystem, KINDS["s3"], "b/0.json", b"x")
    assert filesystem.modes == ["create"]
