"""Whole answers: pages, and queries that take long."""

from __future__ import annotations

import pytest

from deltalog.errors import MalformedMessageError, SharingError
from deltalog.sharing.client import SharedTable
from tests.support.shared_files import PROTOCOL, QUICK, end_line, id_files, ids_of, metadata
from tests.support.sharing_server import ScriptedServer, fault, lines

METADATA = metadata(columns={"id": "long"})


ENDS = {"delta-sharing-capabilities": "responseformat=parquet;includeendstreamaction=true"}


def _table(server: ScriptedServer) -> SharedTable:
    return SharedTable("s.d.t", profile=server.profile(), options=QUICK)


@pytest.mark.protocol("SHARE-QT-03")
def test_a_query_must_tell_its_version(scripted: ScriptedServer) -> None:
    scripted.on_table("POST query", lines(PROTOCOL, METADATA, version=None))
    with pytest.raises(MalformedMessageError, match="Delta-Table-Version"):
        _table(scripted).scan()


@pytest.mark.protocol("SHARE-QT-23")
def test_pages_are_put_together(scripted: ScriptedServer) -> None:
    files = id_files(scripted, 3)
    pages = [
        lines(PROTOCOL, METADATA, file, end_line(nextPageToken=f"t-{n}"), headers=ENDS)
        for n, file in enumerate(files)
    ]
    scripted.on_table("POST query", *pages, lines(PROTOCOL, METADATA, end_line(), headers=ENDS))
    assert ids_of(_table(scripted)) == [0, 1, 2]
    bodies = [asked.json for asked in scripted.find("/query")]
    assert [body.pop("pageToken", None) for body in bodies] == [None, "t-0", "t-1", "t-2"]
    assert all(body == bodies[0] for body in bodies)  # nothing else may change between pages


@pytest.mark.protocol("SHARE-QT-23")
@pytest.mark.parametrize("changed", ["version", "metadata"])
def test_pages_of_different_versions_are_refused(scripted: ScriptedServer, changed: str) -> None:
    first = lines(PROTOCOL, METADATA, end_line(nextPageToken="t"), version=3)
    other = metadata(columns={"id": "string"}) if changed == "metadata" else METADATA
    second = lines(PROTOCOL, other, end_line(), version=4 if changed == "version" else 3)
    scripted.on_table("POST query", first, second)
    with pytest.raises(MalformedMessageError, match="different versions"):
        _table(scripted).scan()


@pytest.mark.protocol("SHARE-QT-23")
def test_pages_that_go_in_circles_are_refused(scripted: ScriptedServer) -> None:
    scripted.on_table("POST query", lines(PROTOCOL, METADATA, end_line(nextPageToken="t")))
    with pytest.raises(MalformedMessageError, match="same page token"):
        _table(scripted).scan()


@pytest.mark.protocol("SHARE-ASY-01", "B-93")
def test_a_query_that_takes_long_is_waited_for(
    scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deltalog.sharing.client.answers._FIRST_WAIT_S", 0.0)
    one, two = id_files(scripted, 2)
    pending = lines({"queryStatus": {"queryId": "q 1", "status": "pending"}}, version=None)
    scripted.on_table("POST query", pending)
    scripted.on_table(
        "POST queries/q%201",
        pending,
        lines(PROTOCOL, METADATA, one, end_line(nextPageToken="t")),
        lines(PROTOCOL, METADATA, two, end_line()),
    )
    assert ids_of(_table(scripted)) == [0, 1]
    asked = scripted.find("/queries/q%201")
    assert [one.json for one in asked] == [{}, {}, {"pageToken": "t"}]


@pytest.mark.protocol("SHARE-ASY-01")
def test_a_query_that_failed_says_why(scripted: ScriptedServer) -> None:
    failed = {"queryStatus": {"queryId": "q", "status": "failed", "error": "no room"}}
    scripted.on_table("POST query", lines(failed, version=None))
    with pytest.raises(SharingError, match="no room"):
        _table(scripted).scan()


def test_a_refusal_names_the_table(scripted: ScriptedServer) -> None:
    scripted.on_table("POST query", fault(400, "INVALID_PARAMETER_VALUE", "no history"))
    with pytest.raises(SharingError, match=r"query shared table s\.d\.t.*no history"):
        _table(scripted).scan()
