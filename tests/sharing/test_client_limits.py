"""Servers that never end, that send bombs, or that lead elsewhere: an error with a name, soon."""

from __future__ import annotations

import gzip
import json
import threading
import traceback
import tracemalloc
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from deltalog.errors import (
    DeltaError,
    MalformedMessageError,
    SharingError,
    SharingUnavailableError,
)
from deltalog.sharing.client import (
    AnswerLimits,
    AsyncRestClient,
    HttpOptions,
    Retry,
    SharedTable,
    SharingClient,
    read_profile,
)
from deltalog.sharing.client.rest import SHARING_FAULTS
from deltalog.sharing.wire.lines import QueryStatus, encode_line
from deltalog.storage.http.client import Http, Request, run
from tests.support.shared_files import PROTOCOL, file_line, metadata, parquet
from tests.support.sharing_server import Answer, Asked, ScriptedServer, fault, lines, listed

MIB = 1 << 20
SMALL = AnswerLimits(
    message_bytes=MIB, line_bytes=MIB, answer_bytes=4 * MIB, file_bytes=4 * MIB, pages=5, seconds=60
)
ONCE = HttpOptions(retry=Retry(attempts=1), limits=SMALL)
# What lies in buffers of sockets on the way.
SLACK = 24 * MIB


class Endless:
    """Sends a head, and then the same piece for ever; counts what it could send."""

    def __init__(self) -> None:
        self.head = b""
        self.piece = b""
        self.status = 200
        self.headers: dict[str, str] = {}
        self.sent_bytes = 0
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.send_response(server.status)
                for name, value in server.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                try:
                    self.wfile.write(server.head)
                    # A gibibyte is as good as for ever, and ends if the client does not.
                    while server.sent_bytes < 1 << 30:
                        self.wfile.write(server.piece)
                        server.sent_bytes += len(server.piece)
                except OSError:
                    pass

            do_POST = do_GET  # noqa: N815 - the library's names

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def profile(self) -> dict[str, Any]:
        return {"shareCredentialsVersion": 1, "endpoint": self.url, "bearerToken": "geheim"}

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


@pytest.fixture
def endless() -> Iterator[Endless]:
    server = Endless()
    yield server
    server.close()


HEADS = b"".join(
    json.dumps(one).encode() + b"\n" for one in (PROTOCOL, metadata(columns={"id": "long"}))
)
LINE = json.dumps({"file": {"url": "https://x/y", "id": "f", "partitionValues": {}, "size": 1}})


@pytest.mark.parametrize("status", [200, 400])
def test_a_listing_without_end(endless: Endless, status: int) -> None:
    endless.status, endless.head, endless.piece = status, b'{"items":[', b" " * 65536
    with pytest.raises(SharingError):
        SharingClient(endless.profile(), options=ONCE).list_shares()
    assert endless.sent_bytes < SLACK


@pytest.mark.parametrize(
    ("piece", "limit"),
    [(b"a" * 65536, "line_bytes"), (LINE.encode() + b"\n", "answer_bytes"), (b"\n", "answer_byte")],
)
def test_an_answer_without_end(endless: Endless, piece: bytes, limit: str) -> None:
    endless.head, endless.piece = HEADS, piece if len(piece) > 9999 else piece * 65536
    endless.headers = {"Delta-Table-Version": "0"}
    table = SharedTable("s.d.t", profile=endless.profile(), options=ONCE)
    with pytest.raises(SharingError, match=rf"cannot query .*{limit}"):
        table.to_pyarrow_table()
    assert endless.sent_bytes < SLACK + 40 * MIB  # a piece of file lines is larger than a limit


def test_a_file_without_end(scripted: ScriptedServer, endless: Endless) -> None:
    endless.piece = b"a" * 65536
    line = file_line(scripted, "f", parquet(id=[1]))
    line["file"]["url"] = f"{endless.url}/f"
    scripted.on_table("POST query", lines(PROTOCOL, metadata(columns={"id": "long"}), line))
    for status in (200, 206):
        endless.status, endless.sent_bytes = status, 0
        with pytest.raises(DeltaError):
            SharedTable("s.d.t", profile=scripted.profile(), options=ONCE).to_pyarrow_table()
        assert endless.sent_bytes < 4 * SLACK  # of several requests


def test_a_bomb_of_gzip(endless: Endless) -> None:
    bomb = gzip.compress(HEADS + b"\n" * (400 * MIB), 9)
    assert len(bomb) < MIB
    endless.head = bomb
    endless.headers = {"Delta-Table-Version": "0", "Content-Encoding": "gzip"}
    options = HttpOptions(retry=Retry(attempts=1))
    tracemalloc.start()
    try:
        table = SharedTable("s.d.t", profile=endless.profile(), options=options)
        with pytest.raises(SharingError, match="expands"):
            table.to_pyarrow_table()
        assert tracemalloc.get_traced_memory()[1] < 64 * MIB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("cut", [1, 12, 40])
def test_gzip_that_is_cut_or_broken_is_asked_for_again(
    scripted: ScriptedServer, endless: Endless, cut: int
) -> None:
    whole = gzip.compress(b'{"items":[{"name":"s"}]}')
    told = {"Content-Encoding": "gzip"}

    def broken(_: Asked) -> Answer:
        return Answer(200, whole[:cut], told)

    # The server compresses what it sends: this one must not be compressed twice.
    scripted.on("GET /shares", broken, listed([{"name": "s"}]))
    options = HttpOptions(retry=Retry(attempts=2, first_delay_ms=1), limits=SMALL)
    client = SharingClient(scripted.profile(), options=options)
    scripted.plain = True
    assert [share.name for share in client.list_shares()] == ["s"]
    assert len(scripted.asked) == 2
    del endless


def test_pages_without_end(scripted: ScriptedServer) -> None:
    def page(asked: Asked) -> Answer:
        del asked
        return listed([], f"t{len(scripted.asked)}")

    scripted.on("GET /shares", page)
    with pytest.raises(SharingError, match="pages"):
        SharingClient(scripted.profile(), options=ONCE).list_shares()
    assert len(scripted.asked) == 5


def test_pages_of_files_without_end(scripted: ScriptedServer) -> None:
    told = {"delta-sharing-capabilities": "responseformat=parquet;includeendstreamaction=true"}

    def page(asked: Asked) -> Answer:
        del asked
        end = {"endStreamAction": {"nextPageToken": f"t{len(scripted.asked)}"}}
        meta = metadata(columns={"id": "long"})
        return lines(PROTOCOL, meta, end, headers=told)

    scripted.on_table("POST query", page)
    with pytest.raises(SharingError, match="pages"):
        SharedTable("s.d.t", profile=scripted.profile(), options=ONCE).to_pyarrow_table()
    assert len(scripted.find("/query")) == 5


def test_a_query_that_stays_pending(scripted: ScriptedServer) -> None:
    pending = Answer(200, encode_line(QueryStatus(query_id="q")))
    scripted.on_table("POST query", pending)
    scripted.on_table("POST queries/q", pending)
    options = HttpOptions(retry=Retry(attempts=1), limits=AnswerLimits(seconds=1))
    table = SharedTable("s.d.t", profile=scripted.profile(), options=options)
    with pytest.raises(SharingUnavailableError, match="within 1 s"):
        table.to_pyarrow_table()
    assert len(scripted.paths("/queries/q")) <= 2


def test_the_assertion_follows_no_redirect(scripted: ScriptedServer, tmp_path: Any) -> None:
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    path = tmp_path / "key.pem"
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    other = ScriptedServer()
    scripted.at("/token", Answer(307, headers={"Location": f"{other.url}/token"}))
    profile = {
        "shareCredentialsVersion": 2,
        "endpoint": scripted.endpoint,
        "type": "oauth_jwt_bearer_private_key_jwt",
        "auth": {
            "tokenEndpoint": f"{scripted.url}/token",
            "issuer": "i",
            "clientId": "c",
            "audience": "a",
            "privateKey": {"privateKeyFile": str(path), "keyId": "k"},
        },
    }
    with pytest.raises(SharingError, match="credentials are not sent"):
        SharingClient(profile, options=ONCE).list_shares()
    assert other.asked == []
    other.close()


def _proxied(scripted: ScriptedServer, url: str, **more: Any) -> SharedTable:
    """A table of a server on the internet, which names a file; all requests go to a proxy."""
    line = file_line(scripted, "f", parquet(id=[1]))
    line["file"]["url"] = url
    answer = lines(PROTOCOL, metadata(columns={"id": "long"}), line)
    scripted.at("/x/shares/s/schemas/d/tables/t/query", answer)
    options = HttpOptions(
        retry=Retry(attempts=1), proxy=scripted.url, allow_http=True, limits=SMALL, **more
    )
    profile = scripted.profile(endpoint="http://sharing.invalid/x")
    return SharedTable("s.d.t", profile=profile, options=options)


NEAR = [
    "http://127.0.0.1:1/data/f",
    "http://10.1.2.3/data/f",
    "http://192.168.0.1/data/f",
    "http://169.254.169.254/data/f",
    "http://[::1]/data/f",
    "http://[::ffff:127.0.0.1]/data/f",
    "http://[fd00::1]/data/f",
    "http://localhost/data/f",
    "http://0.0.0.0/data/f",
    "http://100.64.0.1/data/f",
]


@pytest.mark.parametrize("url", NEAR)
def test_a_server_of_the_internet_leads_nowhere_near(scripted: ScriptedServer, url: str) -> None:
    with pytest.raises(SharingError, match="allow_private_files=True"):
        _proxied(scripted, url).to_pyarrow_table()
    assert scripted.paths("/data/f") == []


def test_what_is_near_may_be_allowed(scripted: ScriptedServer) -> None:
    table = _proxied(scripted, "http://10.1.2.3/data/f", allow_private_files=True)
    assert table.to_pyarrow_table().num_rows == 1
    assert scripted.find("/data/f")[0].headers["host"] == "10.1.2.3"


def test_a_redirect_of_a_file_leads_nowhere_near(scripted: ScriptedServer) -> None:
    table = _proxied(scripted, "http://store.invalid/go")
    scripted.at("/go", Answer(302, headers={"Location": "http://127.0.0.1:1/data/f"}))
    with pytest.raises(SharingError, match="allow_private_files=True"):
        table.to_pyarrow_table()
    assert scripted.paths("/data/f") == []


@pytest.mark.parametrize("name", ["localhost", "127.1", "2130706433", "0x7f.1"])
def test_names_are_judged_by_what_they_resolve_to(scripted: ScriptedServer, name: str) -> None:
    url = scripted.url.replace("127.0.0.1", name)
    request = Request(what="read f", url=f"{url}/f", named_by="https://sharing.invalid/x")
    http = Http(HttpOptions(retry=Retry(attempts=1), allow_http=True), SHARING_FAULTS)

    async def fetch() -> Any:
        return await http.fetch(request, lambda reply: reply.read(), lambda *_: SharingError("x"))

    with pytest.raises(SharingError):
        run(fetch)
    assert scripted.asked == []


def test_a_server_of_this_machine_may_name_its_own_files(scripted: ScriptedServer) -> None:
    line = file_line(scripted, "f", parquet(id=[1, 2]))
    scripted.on_table("POST query", lines(PROTOCOL, metadata(columns={"id": "long"}), line))
    table = SharedTable("s.d.t", profile=scripted.profile(), options=ONCE)
    assert table.to_pyarrow_table().num_rows == 2


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/a\r\nX: y", "http://h/a b", "http://h/\x00"])
def test_a_url_is_one_word(scripted: ScriptedServer, url: str) -> None:
    line = file_line(scripted, "f", parquet(id=[1]))
    line["file"]["url"] = url
    scripted.on_table("POST query", lines(PROTOCOL, metadata(columns={"id": "long"}), line))
    with pytest.raises(SharingError, match=r"names no host|characters"):
        SharedTable("s.d.t", profile=scripted.profile(), options=ONCE).to_pyarrow_table()


def test_logins_of_the_machine_are_not_for_hosts_that_a_server_names(
    scripted: ScriptedServer, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password geheim\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    line = file_line(scripted, "f", parquet(id=[1, 2]))
    scripted.on_table("POST query", lines(PROTOCOL, metadata(columns={"id": "long"}), line))
    table = SharedTable("s.d.t", profile=scripted.profile(), options=ONCE)
    assert table.to_pyarrow_table().num_rows == 2
    assert [one for one in scripted.find("/data/f") if "authorization" in one.headers] == []


def test_a_proxy_of_the_environment_is_asked(
    scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", scripted.url)
    monkeypatch.setenv("no_proxy", "")
    scripted.at("/x/shares", listed([{"name": "s"}]))
    options = HttpOptions(retry=Retry(attempts=1), allow_http=True)
    profile = scripted.profile(endpoint="http://sharing.invalid/x")
    assert len(SharingClient(profile, options=options).list_shares()) == 1


def test_the_environment_is_looked_through_once_for_a_host(
    scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = []

    def bypass(host: str) -> bool:
        hosts.append(host)
        return True

    monkeypatch.setattr("deltalog.storage.http.client.proxy_bypass", bypass)
    scripted.at("/x/shares", listed([{"name": "s"}]))
    profile = scripted.profile(endpoint=f"{scripted.url}/x")
    client = SharingClient(profile, options=ONCE)
    for _ in range(3):
        assert len(client.list_shares()) == 1
    assert hosts == ["127.0.0.1"]


EVIL = "\x1b[2J\x1b]0;owned\x07\r\nfake line\u202egnp.\x9b31m"


def _evil_token(scripted: ScriptedServer) -> dict[str, Any]:
    return scripted.profile(
        shareCredentialsVersion=2,
        type="oauth_client_credentials",
        tokenEndpoint=f"{scripted.url}/token",
        clientId="c",
        clientSecret="geheim",
    )


def test_texts_of_servers_have_no_control_characters(scripted: ScriptedServer) -> None:
    told = {"delta-sharing-capabilities": "responseformat=parquet;includeendstreamaction=true"}
    scripted.on("GET /shares", fault(400, EVIL, EVIL))
    scripted.on("GET /shares/x", Answer(307, headers={"Location": "http://a\x1b[2Jb/"}))
    scripted.on_table(
        "POST query", Answer(200, encode_line(QueryStatus(query_id=EVIL, status=EVIL, error=EVIL)))
    )
    broken = lines(
        PROTOCOL,
        metadata(columns={"id": "long"}),
        {"endStreamAction": {"errorMessage": EVIL}},
        headers=told,
    )
    scripted.on_table("GET changes", broken)
    scripted.at("/token", Answer(400, json.dumps({"error": EVIL}).encode()))
    table = SharedTable("s.d.t", profile=scripted.profile(), options=ONCE)
    client = SharingClient(scripted.profile(), options=ONCE)
    with_token = SharingClient(_evil_token(scripted), options=ONCE)
    shown = []
    for ask in (
        client.list_shares,
        lambda: client.get_share("x"),
        table.to_pyarrow_table,
        lambda: table.load_cdf(0, 0).to_table(),
        with_token.list_shares,
    ):
        with pytest.raises(DeltaError) as caught:
            ask()
        code = getattr(caught.value, "error_code", "")
        shown += ["".join(traceback.format_exception_only(caught.value)).rstrip("\n"), code]
    assert len(shown) == 10
    assert [text for text in shown if not text.isprintable()] == []


def test_a_token_cannot_add_headers(scripted: ScriptedServer) -> None:
    body = json.dumps({"access_token": "a\r\nX-Evil: 1", "token_type": "Bearer"}).encode()
    scripted.at("/token", Answer(200, body))
    with pytest.raises(MalformedMessageError, match="access_token"):
        SharingClient(_evil_token(scripted), options=ONCE).list_shares()
    never = json.dumps({"access_token": "a", "expires_in": 1e308}).encode()
    scripted.at("/token", Answer(200, never.replace(b"1e+308", b"1e999")))
    with pytest.raises(MalformedMessageError):
        SharingClient(_evil_token(scripted), options=ONCE).list_shares()
    with pytest.raises(MalformedMessageError) as caught:
        SharingClient(scripted.profile(bearerToken="gehe\nim"), options=ONCE).list_shares()
    assert "gehe" not in str(caught.value)


SECRETS = [
    "s3://AKIAKEY:geheim@bucket/p.share",
    "s3://AKIAKEY:ge/geheim/x@bucket/p.share",
    "https://user:geheim@sharing.invalid/p.share",
    "https://geheim@sharing.invalid/p.share",
    "https://sharing.invalid/p.share?sig=geheim&se=1",
    "https://sharing.invalid/p.share?code=geheim",
]


@pytest.mark.parametrize("location", SECRETS)
def test_secrets_in_locations_are_not_shown(scripted: ScriptedServer, location: str) -> None:
    endpoint = location.removesuffix("/p.share").replace("s3://", "https://")
    options = HttpOptions(retry=Retry(attempts=1), allow_http=True)
    rest = AsyncRestClient(read_profile(scripted.profile(endpoint=endpoint)), options)
    elsewhere = location.replace("s3://", "ftp://")
    scripted.on("GET /shares", Answer(307, headers={"Location": elsewhere}))
    line = file_line(scripted, "f", parquet(id=[1]))
    line["file"]["url"] = location
    scripted.on_table("POST query", lines(PROTOCOL, metadata(columns={"id": "long"}), line))
    table = SharedTable("s.d.t", profile=scripted.profile(), options=ONCE)
    shown = [repr(SharingClient(rest.profile)), repr(SharedTable("s.d.t", client=rest))]
    for ask in (
        lambda: SharedTable(location),
        lambda: SharedTable(f"{location}#a.b"),
        lambda: SharedTable(f"{location}#a.b.c"),
        lambda: SharedTable("a.b.c", profile=location),
        lambda: SharingClient(location),
        lambda: SharingClient(rest.profile, options=options).list_shares(),
        lambda: SharingClient(scripted.profile(), options=ONCE).list_shares(),
        table.to_pyarrow_table,
    ):
        with pytest.raises((DeltaError, ImportError)) as caught:
            ask()
        shown.append("".join(traceback.format_exception(caught.value)))
    lines_of_ours = [
        text for one in shown for text in one.splitlines() if not text.startswith("    ")
    ]
    assert [text for text in lines_of_ours if "geheim" in text] == []
