"""What the client does when HTTP goes wrong."""

from __future__ import annotations

import json
import pickle
import threading
import traceback
from typing import Any

import aiohttp
import pytest

from deltalog.errors import (
    MalformedMessageError,
    ShareNotFoundError,
    SharingAccessError,
    SharingError,
    SharingUnavailableError,
)
from deltalog.sharing.client import HttpOptions, Retry, SharedTable, SharingClient
from deltalog.storage.http.client import is_loopback, is_same_origin
from tests.support.shared_files import PROTOCOL, file_line, metadata, parquet
from tests.support.sharing_server import Answer, Asked, ScriptedServer, fault, lines, listed

QUICK = HttpOptions(retry=Retry(attempts=4, first_delay_ms=1))


SHARES = listed([{"name": "s"}])


def _client(server: ScriptedServer, options: HttpOptions = QUICK) -> SharingClient:
    return SharingClient(server.profile(), options=options)


@pytest.mark.protocol("SHARE-GEN-10")
@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_passing_faults_are_tried_again(scripted: ScriptedServer, status: int) -> None:
    scripted.on("GET /shares", fault(status), fault(status), SHARES)
    assert [share.name for share in _client(scripted).list_shares()] == ["s"]
    assert len(scripted.asked) == 3


@pytest.mark.protocol("SHARE-GEN-10", "SHARE-GEN-05")
@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, SharingError),
        (401, SharingAccessError),
        (403, SharingAccessError),
        (404, ShareNotFoundError),
        (405, SharingError),
        (501, SharingError),
    ],
)
def test_lasting_faults_are_asked_once(
    scripted: ScriptedServer, status: int, error: type[SharingError]
) -> None:
    scripted.on("GET /shares", fault(status, "SOME_CODE", "what is wrong"))
    with pytest.raises(error, match=r"list the shares.*what is wrong") as caught:
        _client(scripted).list_shares()
    assert (caught.value.status, caught.value.error_code) == (status, "SOME_CODE")
    assert len(scripted.asked) == 1


@pytest.mark.protocol("SHARE-GEN-10")
def test_at_last_it_gives_up(scripted: ScriptedServer) -> None:
    scripted.on("GET /shares", fault(503, "TEMPORARILY_UNAVAILABLE", "later"))
    with pytest.raises(SharingUnavailableError, match="503"):
        _client(scripted).list_shares()
    assert len(scripted.asked) == 4


@pytest.mark.protocol("SHARE-GEN-10")
def test_no_server_is_named_after_every_attempt(scripted: ScriptedServer) -> None:
    profile = scripted.profile(endpoint="http://127.0.0.1:9/x")
    client = SharingClient(profile, options=QUICK)
    with pytest.raises(SharingUnavailableError, match=r"127\.0\.0\.1:9 after 3 attempts"):
        client.list_shares()


@pytest.mark.protocol("SHARE-GEN-10", "SHARE-QT-22")
def test_an_answer_that_breaks_off_is_asked_for_again(scripted: ScriptedServer) -> None:
    scripted.on("GET /shares", Answer(200, SHARES.body, cut=5), SHARES)
    assert len(_client(scripted).list_shares()) == 1
    assert len(scripted.asked) == 2


@pytest.mark.protocol("SHARE-GEN-10")
def test_retry_after_of_an_answer_is_heard(scripted: ScriptedServer) -> None:
    scripted.on("GET /shares", fault(429, Retry_After="1000"), SHARES)
    with pytest.raises(SharingUnavailableError):
        _client(scripted).list_shares()
    scripted.on("GET /shares", fault(429, Retry_After="0"), SHARES)
    assert len(_client(scripted).list_shares()) == 1


@pytest.mark.protocol("SHARE-GEN-11")
def test_a_profile_that_has_ended_says_so(scripted: ScriptedServer) -> None:
    scripted.on("GET /shares", fault(401))
    ended = scripted.profile(expirationTime="2021-11-12T00:12:29.0Z")
    with pytest.raises(
        SharingAccessError, match=r"expired 2021-11-12T00:12:29Z: get a new profile"
    ):
        SharingClient(ended, options=QUICK).list_shares()
    with pytest.raises(SharingAccessError) as caught:
        _client(scripted).list_shares()
    assert "expired" not in str(caught.value)


def test_an_unreachable_server_of_a_profile_that_has_ended(scripted: ScriptedServer) -> None:
    ended = scripted.profile(
        endpoint="http://127.0.0.1:9/x", expirationTime="2021-11-12T00:12:29.0Z"
    )
    with pytest.raises(SharingUnavailableError, match=r"attempts: .*expired 2021-11-12T00:12:29Z"):
        SharingClient(ended, options=QUICK).list_shares()


@pytest.mark.protocol("SHARE-SEC-09")
@pytest.mark.parametrize("endpoint", ["http://sharing.example/x", "ftp://sharing.example/x"])
def test_a_server_without_tls_is_refused(scripted: ScriptedServer, endpoint: str) -> None:
    client = SharingClient(scripted.profile(endpoint=endpoint), options=QUICK)
    with pytest.raises(SharingError, match="is refused"):
        client.list_shares()


@pytest.mark.protocol("SHARE-SEC-09")
def test_plain_http_may_be_allowed(scripted: ScriptedServer) -> None:
    options = HttpOptions(retry=Retry(attempts=1), allow_http=True)
    client = SharingClient(scripted.profile(endpoint="http://sharing.invalid/x"), options=options)
    with pytest.raises(SharingUnavailableError):  # it was asked, and is not there
        client.list_shares()


@pytest.mark.parametrize(
    ("host", "expected"),
    [("localhost", True), ("127.0.0.9", True), ("::1", True), ("127.example", False), ("", False)],
)
def test_what_stays_on_the_machine(host: str, *, expected: bool) -> None:
    assert is_loopback(host) is expected


@pytest.mark.protocol("SHARE-SEC-09")
def test_the_token_follows_no_redirect_to_another_host(scripted: ScriptedServer) -> None:
    other = ScriptedServer()
    scripted.on("GET /shares", Answer(307, headers={"Location": f"{other.endpoint}/shares"}))
    with pytest.raises(SharingError, match="credentials are not sent"):
        _client(scripted).list_shares()
    assert other.asked == []
    other.close()


@pytest.mark.protocol("SHARE-SEC-09")
def test_a_signed_url_that_fails_is_not_shown(scripted: ScriptedServer) -> None:
    done = threading.Event()

    def wait(_: Asked) -> Answer:
        done.wait(20)
        return Answer()

    line = file_line(scripted, "f", parquet(id=[1]), query="?X-Amz-Signature=geheim")
    scripted.at("/data/f", wait)
    scripted.on_table("POST query", lines(PROTOCOL, metadata(columns={"id": "long"}), line))
    options = HttpOptions(retry=Retry(attempts=1), read_timeout_s=0.2)
    table = SharedTable("s.d.t", profile=scripted.profile(), options=options)
    with pytest.raises(SharingUnavailableError, match="files/f") as caught:
        table.to_pyarrow_table()
    done.set()
    shown = "".join(traceback.format_exception(caught.value))
    assert "geheim" not in shown


@pytest.mark.protocol("SHARE-SEC-09")
@pytest.mark.parametrize("url", ["https://127.0.0.1:9/x?sig=geheim", "https://[x]/?sig=geheim"])
def test_a_signed_url_that_leads_nowhere_is_not_shown(scripted: ScriptedServer, url: str) -> None:
    line = file_line(scripted, "f", parquet(id=[1]))
    line["file"]["url"] = url
    scripted.on_table("POST query", lines(PROTOCOL, metadata(columns={"id": "long"}), line))
    options = HttpOptions(retry=Retry(attempts=1))
    table = SharedTable("s.d.t", profile=scripted.profile(), options=options)
    with pytest.raises(SharingError) as caught:
        table.to_pyarrow_table()
    assert "geheim" not in "".join(traceback.format_exception(caught.value))


def test_a_redirect_within_the_server_is_followed(scripted: ScriptedServer) -> None:
    scripted.on("GET /shares", Answer(308, headers={"Location": "/delta-sharing/elsewhere"}))
    scripted.on("GET /elsewhere", SHARES)
    assert len(_client(scripted).list_shares()) == 1
    scripted.on("GET /shares", Answer(308, headers={"Location": "/delta-sharing/shares"}))
    with pytest.raises(SharingError, match="redirected more than"):
        _client(scripted).list_shares()


def test_origins_are_compared_whole() -> None:
    assert is_same_origin("https://A.example/x", "https://a.example/y")
    assert not is_same_origin("https://a.example", "https://a.example:8443")
    assert not is_same_origin("https://a.example", "http://a.example")


@pytest.mark.protocol("SHARE-GEN-04")
@pytest.mark.parametrize("body", [b"", b"<html>proxy</html>", b"[]", b'{"errorCode": 7}'])
def test_an_error_without_the_protocols_body_is_an_error_still(
    scripted: ScriptedServer, body: bytes
) -> None:
    scripted.on("GET /shares", Answer(400, body))
    with pytest.raises(SharingError, match="it answered 400") as caught:
        _client(scripted).list_shares()
    assert caught.value.error_code == ""


@pytest.mark.parametrize("body", [b"", b"[1]", b"{", b'{"items": 7}', b'{"items": [{}]}'])
def test_a_listing_that_is_none_is_refused(scripted: ScriptedServer, body: bytes) -> None:
    scripted.on("GET /shares", Answer(200, body))
    with pytest.raises(MalformedMessageError):
        _client(scripted).list_shares()


def test_a_session_of_ones_own_is_used(scripted: ScriptedServer) -> None:
    scripted.on("GET /shares", SHARES)
    made: list[aiohttp.ClientSession] = []

    def make() -> aiohttp.ClientSession:
        made.append(aiohttp.ClientSession(headers={"X-Trace": "7"}))
        return made[-1]

    client = _client(scripted, HttpOptions(session=make))
    client.list_shares()
    client.list_shares()
    assert len(made) == 1
    assert scripted.asked[-1].headers["x-trace"] == "7"
    client.close()
    assert made[0].closed


def test_a_proxy_is_asked_instead(scripted: ScriptedServer) -> None:
    body = SHARES.body
    scripted.at("http://sharing.invalid/x/shares", Answer(200, body))
    options = HttpOptions(proxy=scripted.url, allow_http=True)
    client = SharingClient(scripted.profile(endpoint="http://sharing.invalid/x"), options=options)
    # The proxy sees the whole URL; urlsplit leaves its path.
    scripted.at("/x/shares", Answer(200, body))
    assert len(client.list_shares()) == 1
    assert scripted.asked[0].headers["host"] == "sharing.invalid"


def test_a_client_comes_back_from_pickling(scripted: ScriptedServer) -> None:
    scripted.on("GET /shares", SHARES)
    client = _client(scripted)
    one, other = (pickle.loads(pickle.dumps(client.rest)) for _ in range(2))
    assert one is other  # connections and tokens are shared
    assert one.profile == client.profile
    assert one.options == QUICK


def test_options_do_not_show_a_proxys_password() -> None:
    options: Any = HttpOptions(proxy="http://user:geheim@proxy")
    assert "geheim" not in repr(options)


@pytest.mark.parametrize(
    "message",
    [
        "the changes of this table need a table whose history is shared",
        "cdf is not enabled on table s.d.t",
        "Reading table by version is not supported because history sharing is not enabled on t",
    ],
)
def test_a_history_that_is_not_shared_names_who_can_share_it(
    scripted: ScriptedServer, message: str
) -> None:
    body = json.dumps({"errorCode": "INVALID_PARAMETER_VALUE", "message": message}).encode()
    for status in (400, 404):
        scripted.on("GET /shares", Answer(status, body))
        with pytest.raises(SharingError) as caught:
            _client(scripted).list_shares()
        assert "historyShared: true" in str(caught.value)
        assert "WITH HISTORY" in str(caught.value)


def test_other_errors_say_nothing_of_the_history(scripted: ScriptedServer) -> None:
    body = json.dumps({"errorCode": "X", "message": "the version is too late"}).encode()
    scripted.on("GET /shares", Answer(400, body))
    with pytest.raises(SharingError) as caught:
        _client(scripted).list_shares()
    assert "history" not in str(caught.value)
