"""Pages of files, page tokens and refresh tokens."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.sharing.server import app
from tests.support.sharing import TOKEN, Caller, actions, config_of, sharing

T = "s.d.t"


VERSION = "delta-table-version"


def _pages(caller: Caller, body: dict[str, Any], headers: str = "") -> list[list[str]]:
    pages, token = [], None
    while True:
        asked = body | ({"pageToken": token} if token else {})
        reply = caller.query(T, asked, delta_sharing_capabilities=headers)
        pages.append([file["id"] for file in actions(reply, "file")])
        (end,) = actions(reply, "endStreamAction")
        token = end.get("nextPageToken")
        if token is None:
            return pages


@pytest.mark.protocol("SHARE-QT-23")
def test_pages_hold_every_file_once(daily_caller: Caller) -> None:
    pages = _pages(daily_caller, {"maxFiles": 2})
    assert [len(page) for page in pages] == [2, 1]
    every = {file["id"] for file in actions(daily_caller.query(T), "file")}
    assert {name for page in pages for name in page} == every
    assert [len(page) for page in _pages(daily_caller, {"maxFiles": 3})] == [3]


@pytest.mark.protocol("SHARE-QT-23")
def test_a_page_stays_on_its_version(daily_caller: Caller, daily: Path) -> None:
    first = daily_caller.query(T, {"maxFiles": 2})
    token = actions(first, "endStreamAction")[0]["nextPageToken"]
    DeltaTable(daily).delete("id < 25")
    rows = pa.table({"id": [99], "day": ["2021-05-01"]})
    write_deltalake(daily, rows, mode="append")
    second = daily_caller.query(T, {"maxFiles": 2, "pageToken": token})
    assert second.headers[VERSION] == first.headers[VERSION] == "2"
    days = [
        file["partitionValues"]["day"][-2:]
        for reply in (first, second)
        for file in actions(reply, "file")
    ]
    assert days == ["28", "29", "30"]


@pytest.mark.protocol("SHARE-QT-23", "SHARE-SEC-03", "SHARE-SEC-05")
def test_page_tokens_are_bound(daily: Path) -> None:
    more = {
        "recipients": [
            {"name": "alice", "token": TOKEN, "shares": ["s"]},
            {"name": "bob", "token": "token-of-bob", "shares": ["s"]},
        ]
    }
    caller = Caller(app(config_of({T: daily, "s.d.other": daily}, **more)))
    asked = {"maxFiles": 1, "predicateHints": ["day > '2021'"]}
    token = actions(caller.query(T, asked), "endStreamAction")[0]["nextPageToken"]
    assert caller.query(T, {**asked, "pageToken": token}).status == 200
    assert caller.query(T, {**asked, "maxFiles": 2, "pageToken": token}).status == 200
    bob = replace(caller, token="token-of-bob")  # noqa: S106
    wrong = [
        caller.query(T, {"maxFiles": 1, "pageToken": token}),
        caller.query(T, {**asked, "limitHint": 5, "pageToken": token}),
        caller.query("s.d.other", {**asked, "pageToken": token}),
        bob.query(T, {**asked, "pageToken": token}),
        caller.query(T, {**asked, "refreshToken": token}),
        caller.query(T, {**asked, "pageToken": token[:-2] + "AA"}),
    ]
    assert [reply.status for reply in wrong] == [400] * len(wrong)


@pytest.mark.protocol("SHARE-QT-23", "SHARE-SEC-05")
def test_page_tokens_expire(daily_caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    from deltalog._util.clock import now_ms
    from deltalog.sharing.server import endpoints

    token = actions(daily_caller.query(T, {"maxFiles": 1}), "endStreamAction")[0]["nextPageToken"]
    later = now_ms() + 4 * 24 * 3600 * 1000
    monkeypatch.setattr(endpoints, "now_ms", lambda: later)
    reply = daily_caller.query(T, {"maxFiles": 1, "pageToken": token})
    assert reply.status == 400
    assert "expired" in reply.json()["message"]


@pytest.mark.protocol("SHARE-QT-23", "SHARE-SEC-05")
@pytest.mark.parametrize(("history", "status"), [(True, 200), (False, 400)])
def test_tokens_of_pages_outlive_the_first_only_where_the_history_is_shared(
    daily: Path, monkeypatch: pytest.MonkeyPatch, *, history: bool, status: int
) -> None:
    from deltalog._util.clock import now_ms
    from deltalog.sharing.server import endpoints

    caller = sharing({T: {"location": str(daily), "historyShared": history}})
    begin_ms, day_ms = now_ms(), 24 * 3600 * 1000
    body: dict[str, Any] = {"maxFiles": 1}
    for days in (0, 2):
        monkeypatch.setattr(endpoints, "now_ms", lambda days=days: begin_ms + days * day_ms)
        reply = caller.query(T, body)
        body["pageToken"] = actions(reply, "endStreamAction")[0]["nextPageToken"]
    monkeypatch.setattr(endpoints, "now_ms", lambda: begin_ms + 4 * day_ms)
    assert caller.query(T, body).status == status


@pytest.mark.protocol("SHARE-QT-23", "SHARE-CLI-03")
def test_refresh_tokens_give_new_urls_for_the_same_files(daily_caller: Caller, daily: Path) -> None:
    first = daily_caller.query(T, {"includeRefreshToken": True})
    (end,) = actions(first, "endStreamAction")
    assert end["minUrlExpirationTimestamp"] == actions(first, "file")[0]["expirationTimestamp"]
    DeltaTable(daily).delete("id < 25")
    again = daily_caller.query(T, {"refreshToken": end["refreshToken"]})
    assert again.headers[VERSION] == "2"
    assert [file["id"] for file in actions(again, "file")] == [
        file["id"] for file in actions(first, "file")
    ]
    assert actions(again, "endStreamAction")[0]["refreshToken"]


@pytest.mark.protocol("SHARE-CAP-10", "B-92")
def test_the_last_line_for_who_asks_for_it(daily_caller: Caller) -> None:
    reply = daily_caller.query(T, None, delta_sharing_capabilities="includeendstreamaction=true")
    assert list(reply.lines()[-1]) == ["endStreamAction"]
    assert "includeendstreamaction=true" in reply.headers["delta-sharing-capabilities"]
    bare = daily_caller.query(T)
    assert list(bare.lines()[-1]) == ["file"]
    assert bare.headers["delta-sharing-capabilities"] == "responseformat=parquet"
