"""URLs that the server signs itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltalog._util.clock import now_ms
from deltalog.sharing.server import app
from deltalog.sharing.server import endpoints as endpoints_module
from deltalog.sharing.server.recipients import Recipient
from deltalog.sharing.server.tables import TableName
from deltalog.sharing.server.tokens import encode_base64
from deltalog.sharing.server.urls import UrlSigner, ViewFileSource
from tests.support.sharing import (
    KEY,
    PREFIX,
    TOKEN,
    Caller,
    actions,
    config_of,
    file_url,
    sharing,
    status_of,
)

T = "s.d.t"


@pytest.mark.protocol("SHARE-SEC-01")
def test_a_url_opens_one_file_and_nothing_else(caller: Caller) -> None:
    url = file_url(caller)
    assert status_of(caller, url) == 200
    assert status_of(caller, url, "HEAD") == 200
    for method in ("POST", "PUT", "DELETE"):
        assert status_of(caller, url, method) == 405
    start, query = url.split("?")
    head, name = start.rsplit("/", 1)
    base, _ = head.rsplit("/", 1)
    expires = query.partition("X-Amz-Expires=")[2].partition("&")[0]
    other = encode_base64(b"other.parquet")
    longer = query.replace(expires, str(int(expires) + 1))
    wrong = [
        f"{head}/{other}?{query}",
        f"{base}/{encode_base64(b'alice')}/{name}?{query}",
        f"{start}?{longer}",
        f"{start}?{query[:-1]}{'0' if query[-1] != '0' else '1'}",
        f"{start}?{query}x",
        f"{start}?{query.upper()}",
        start,
        f"{start}?X-Amz-Expires={expires}",
        f"{head}/{name}=?{query}",
        f"{start}?X-Amz-Signature=&X-Amz-Expires=",
    ]
    assert [status_of(caller, one) for one in wrong] == [403] * len(wrong)


@pytest.mark.protocol("SHARE-SEC-01")
def test_urls_end(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    before = now_ms()
    file = actions(caller.query(T), "file")[0]
    assert 3_600_000 <= file["expirationTimestamp"] - before < 3_660_000
    monkeypatch.setattr(endpoints_module, "now_ms", lambda: file["expirationTimestamp"] - 1)
    assert status_of(caller, file["url"]) == 200
    monkeypatch.setattr(endpoints_module, "now_ms", lambda: file["expirationTimestamp"])
    assert status_of(caller, file["url"]) == 403


@pytest.mark.protocol("SHARE-SEC-01")
def test_the_length_of_life_is_configurable(table: Path) -> None:
    before = now_ms()
    caller = sharing({T: table}, preSignedUrlTimeoutSeconds=5)
    ends = actions(caller.query(T), "file")[0]["expirationTimestamp"]
    assert 5000 <= ends - before < 65_000


@pytest.mark.protocol("SHARE-SEC-01", "SHARE-SEC-03")
def test_urls_die_with_their_recipient_share_and_key(table: Path) -> None:
    caller = sharing({T: table})
    url = file_url(caller)
    bob = {"name": "bob", "token": "token-of-bob", "shares": ["s"]}
    alice_without = {"name": "alice", "token": TOKEN, "shares": ["x"]}
    without = {"recipients": [alice_without, bob]}
    for other, status in (
        (sharing({T: table}), 200),
        (sharing({T: table}, recipients=[bob]), 404),
        (Caller(app(config_of({T: table, "x.d.t": table}, **without))), 404),
        (sharing({"s.d.other": table}), 404),
        (sharing({T: table}, signingKey="another key of 16 bytes"), 403),
    ):
        assert status_of(other, url) == status


def test_a_url_is_what_the_official_kernel_takes_for_remote(caller: Caller) -> None:
    assert "X-Amz-Signature=" in file_url(caller)


@pytest.mark.protocol("SHARE-SEC-02")
@pytest.mark.parametrize(
    "path", ["../t/x.parquet", "/etc/passwd", "_delta_log/00000000000000000000.json", ""]
)
def test_even_a_url_that_we_signed_leads_nowhere_else(
    table: Path, caller: Caller, path: str
) -> None:
    """The last door: whatever was signed, the file is looked at again."""
    (table / "x.parquet").write_bytes(b"x")
    signer = UrlSigner(KEY.encode(), 60)
    alice = Recipient("alice", None)
    name = TableName("s", "d", "t")
    base = f"http://sharing.test{PREFIX}"
    sign = signer.signer(name, alice, base, now_ms() + 60_000)
    assert status_of(caller, sign("x.parquet")) == 200
    assert status_of(caller, sign(path)) == 404


def test_where_the_rows_of_a_views_file_come_from() -> None:
    for source, text in (
        (ViewFileSource(7), "7"),
        (ViewFileSource(7, 3), "7,3,0"),
        (ViewFileSource(7, 3, with_feed=True), "7,3,1"),
    ):
        assert source.encode() == text
        assert ViewFileSource.parse(text) == source
