"""Versions of a shared table: by number, by time, and the latest."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import write_deltalake
from deltalog.storage import open_store
from tests.support.sharing import Caller, actions, path_of, sharing

T = "s.d.t"


VERSION = "delta-table-version"


def _at(second: int) -> str:
    return f"2022-01-01T00:00:{second:02d}Z"


@pytest.mark.protocol("SHARE-VER-01", "SHARE-VER-02", "B-90")
def test_the_version(daily_caller: Caller) -> None:
    for method, suffix in (("GET", "/version"), ("HEAD", "/version"), ("HEAD", "")):
        reply = daily_caller.ask(method, path_of(T) + suffix)
        assert (reply.status, reply.headers[VERSION], reply.body) == (200, "2", b"")
    assert daily_caller.ask("HEAD", path_of("s.d.nothing")).status == 404


@pytest.mark.protocol("SHARE-VER-03")
@pytest.mark.parametrize(("second", "version"), [(15, 1), (5, 0), (20, 1), (10, 0), (30, 2)])
def test_the_first_version_since_a_moment(daily_caller: Caller, second: int, version: int) -> None:
    reply = daily_caller.get(f"{path_of(T)}/version?startingTimestamp={_at(second)}")
    assert reply.headers[VERSION] == str(version)


@pytest.mark.protocol("SHARE-VER-03", "SHARE-TS-01")
@pytest.mark.parametrize("moment", [_at(31), "abc", "2022-01-01 00:00:10", ""])
def test_moments_without_a_version(daily_caller: Caller, moment: str) -> None:
    reply = daily_caller.get(f"{path_of(T)}/version?startingTimestamp={moment.replace(' ', '%20')}")
    assert reply.status == 400


@pytest.mark.protocol("SHARE-VER-04", "SHARE-SEC-10")
def test_moments_before_the_shared_history(daily: Path) -> None:
    late = sharing({T: {"location": str(daily), "historyShared": True, "startVersion": 2}})
    assert late.get(f"{path_of(T)}/version?startingTimestamp={_at(15)}").status == 400
    assert late.get(f"{path_of(T)}/version?startingTimestamp={_at(25)}").status == 200
    closed = sharing({T: daily})
    assert closed.get(f"{path_of(T)}/version?startingTimestamp={_at(15)}").status == 400
    assert closed.get(f"{path_of(T)}/version").status == 200


@pytest.mark.protocol("SHARE-TS-01")
def test_offsets_are_understood(daily_caller: Caller) -> None:
    for moment in ("2022-01-01T01:00:15%2B01:00", "2022-01-01T01:00:15+01:00"):
        reply = daily_caller.get(f"{path_of(T)}/version?startingTimestamp={moment}")
        assert reply.headers[VERSION] == "1"


@pytest.mark.protocol("SHARE-QT-10", "SHARE-SEC-10")
def test_history_that_is_not_shared(daily: Path) -> None:
    closed = sharing({T: daily})
    for body in ({"version": 1}, {"timestamp": _at(15)}, {"startingVersion": 0}):
        assert closed.query(T, body).status == 400
    late = sharing({T: {"location": str(daily), "historyShared": True, "startVersion": 1}})
    reply = late.query(T, {"version": 0})
    assert reply.status == 400
    assert reply.json()["message"] == "You can only query table data since version 1."
    assert late.query(T, {"startingVersion": 0}).status == 400
    assert late.query(T, {"timestamp": _at(15)}).status == 400
    assert late.query(T, {"version": 1}).status == 200


def test_a_table_that_is_gone(tmp_path: Path) -> None:
    caller = sharing({T: tmp_path / "nowhere"})
    for reply in (
        caller.get(f"{path_of(T)}/version"),
        caller.get(f"{path_of(T)}/metadata"),
        caller.query(T),
    ):
        assert reply.status == 404
        assert str(tmp_path).encode() not in reply.body


def test_old_versions_of_a_table_that_was_made_anew_are_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "t"
    alice = sharing({T: {"location": str(path), "historyShared": True}})

    def values_of_version_0() -> list[int]:
        files = actions(alice.query(T, {"version": 0}), "file")
        return [json.loads(file["stats"])["minValues"]["a"] for file in files]

    for value in (1, 2):
        write_deltalake(path, pa.table({"a": [value]}), mode="append")
    assert values_of_version_0() == [1]
    shutil.rmtree(path)
    for value in (3, 4, 5):
        write_deltalake(path, pa.table({"a": [value]}), mode="append")
    assert values_of_version_0() == [3]
    assert alice.get(f"{path_of(T)}/version").headers[VERSION] == "2"


def test_tables_in_memory_are_shared() -> None:
    store = open_store("memory://shared/t")
    write_deltalake("memory://shared/t", pa.table({"a": [1]}))
    alice = sharing({T: "memory://shared/t"})
    (file,) = actions(alice.query(T), "file")
    assert len(alice.download(file["url"]).body) == file["size"]
    assert "memory" not in file["url"]
    assert store.root == "memory:///shared/t"


def test_a_file_url_is_decoded_once(tmp_path: Path) -> None:
    names = ("a b%20c", "a%20b%2520c")
    for name in names:
        write_deltalake(tmp_path / name, pa.table({"a": [name]}))
    url, path = f"{tmp_path.as_uri()}/a%20b%2520c", str(tmp_path / names[1])
    caller = sharing({"s.d.url": {"location": url}, "s.d.path": {"location": path}})
    for table, name in (("s.d.url", names[0]), ("s.d.path", names[1])):
        reply = caller.query(table, {})
        assert reply.status == 200
        (file,) = actions(reply, "file")
        stats = json.loads(file["stats"])
        assert stats["minValues"] == {"a": name}
