"""S3 through obstore: what it raises, and what s3fs does in its place."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from typing import cast

import pytest

from deltalog.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    ObjectNotFoundError,
    StorageError,
)
from deltalog.storage import FsspecStore

pytest.importorskip("obstore", reason="obstore is not installed")
pytest.importorskip("s3fs", reason="s3fs is not installed")

SECRET = "a-secret-that-nobody-may-see"  # noqa: S105  # of no account


class Scripted(ThreadingHTTPServer):
    """A server that answers with what it was told, and then with empty successes."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[tuple[int, str]] = []
        self.asked: list[tuple[str, str]] = []


class _Handler(BaseHTTPRequestHandler):
    server: Scripted
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        agent = "obstore" if "object_store" in self.headers["user-agent"] else "s3fs"
        self.server.asked.append((self.command, agent))
        status, code = self.server.answers.pop(0) if self.server.answers else (200, "")
        body = f"<Error><Code>{code}</Code><Message>why</Message></Error>".encode() if code else b""
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.send_header("etag", '"1"')
        self.send_header("last-modified", "Mon, 23 Nov 2026 01:00:00 GMT")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_HEAD = _answer  # noqa: N815  # the names of HTTP

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Scripted]:
    with Scripted() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def store(server: Scripted) -> FsspecStore:
    options = {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
        "s3_client": "obstore",
    }
    return FsspecStore("s3://bucket/t", options)


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (403, "AccessDenied", AccessDeniedError),
        (403, "SignatureDoesNotMatch", AccessDeniedError),
        (400, "ExpiredToken", AccessDeniedError),
        (400, "InvalidToken", AccessDeniedError),
        (401, "Unknown", AccessDeniedError),
        (404, "NoSuchKey", ObjectNotFoundError),
        (404, "NoSuchBucket", ObjectNotFoundError),
        (405, "MethodNotAllowed", StorageError),
    ],
)
def test_what_the_service_says(
    server: Scripted, store: FsspecStore, status: int, code: str, expected: type[StorageError]
) -> None:
    is_bucket = code == "NoSuchBucket"
    why = "the bucket 'bucket' does not exist" if is_bucket else f"({code}: )?why"
    reads = (lambda: store.read("x"), lambda: store.read_ranges("x", [(0, 1)]))
    for read in (*reads, lambda: store.put("x", b""), lambda: store.delete_many(["x"])):
        # s3fs deletes one by one what obstore found a part of missing, and is told the same.
        server.answers[:] = [(status, code)] * 2
        with pytest.raises(expected, match=why) as caught:
            read()
        assert type(caught.value) is expected
        assert SECRET not in str(caught.value)
    server.answers[:] = [(status, code)]
    if expected is ObjectNotFoundError and not is_bucket:
        assert list(store.list_from("d", "")) == []
    else:
        with pytest.raises(expected):
            list(store.list_from("d", ""))


def test_conditional_puts(server: Scripted, store: FsspecStore) -> None:
    server.answers[:] = [(412, "PreconditionFailed")]
    with pytest.raises(AlreadyExistsError, match="it exists"):
        store.put_if_absent("x", b"")
    server.answers[:] = [(403, "AccessDenied")]
    with pytest.raises(AccessDeniedError):
        store.put_if_absent("x", b"")
    server.answers[:] = [(409, "SomethingElse")]
    with pytest.raises(StorageError) as caught:
        store.put_if_absent("x", b"")
    assert type(caught.value) is StorageError
    assert len(server.asked) == 3


def test_conditional_puts_that_met_are_sent_again(server: Scripted, store: FsspecStore) -> None:
    server.answers[:] = [(409, "ConditionalRequestConflict"), (409, "OperationAborted")]
    store.put_if_absent("x", b"")
    assert server.asked == [("PUT", "obstore")] * 3
    server.answers[:] = [(409, "ConditionalRequestConflict"), (412, "PreconditionFailed")]
    with pytest.raises(AlreadyExistsError):
        store.put_if_absent("x", b"")


def test_what_may_pass_is_asked_again(server: Scripted, store: FsspecStore) -> None:
    server.answers[:] = [(503, "SlowDown")]
    store.put_if_absent("x", b"")
    server.answers[:] = [(500, "InternalError")]
    store.read("x")
    assert server.asked == [("PUT", "obstore")] * 2 + [("GET", "obstore")] * 2


def test_a_bucket_elsewhere_is_left_to_s3fs(server: Scripted, store: FsspecStore) -> None:
    for number, answer in enumerate([(400, "AuthorizationHeaderMalformed"), (301, "")]):
        other = FsspecStore(f"s3://bucket-{number}/t", store._options)
        server.answers[:] = [answer]
        server.asked.clear()
        assert other.read("x") == b""
        assert other.read("x") == b""
        assert server.asked == [("GET", "obstore"), ("GET", "s3fs"), ("GET", "s3fs")]


def test_buckets_without_order_are_left_to_s3fs(server: Scripted, store: FsspecStore) -> None:
    directory = FsspecStore("s3://bucket--use1-az4--x-s3/t", store._options)
    arn = FsspecStore("s3://arn:aws:s3:us-east-1:1:accesspoint/t", store._options)
    for one in (directory, arn):
        files = one._open_files(one._place("x"))
        bucket = one._own_path("x").partition("/")[0]
        assert files._clients.client(bucket, writes=False) is None  # type: ignore[union-attr]
    assert server.asked == []


@pytest.mark.parametrize(
    ("bucket", "place"),
    [
        ("plain-1", "https://plain-1.s3.us-east-1.amazonaws.com/x"),
        # A host's name has no case: another bucket would answer.
        ("MyLegacyBucket", "https://s3.us-east-1.amazonaws.com/MyLegacyBucket/x"),
        ("my_bucket", "https://s3.us-east-1.amazonaws.com/my_bucket/x"),
        ("foo-", "https://s3.us-east-1.amazonaws.com/foo-/x"),
        ("a.b", "https://s3.us-east-1.amazonaws.com/a.b/x"),
        ("xn--abc", "https://s3.us-east-1.amazonaws.com/xn--abc/x"),
    ],
)
def test_buckets_are_asked_by_their_own_names(
    bucket: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    options = {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "s3_client": "obstore",
    }
    store = FsspecStore(f"s3://{bucket}/t", options)
    files = store._open_files(store._place("x"))
    client = files._clients.client(bucket, writes=False)  # type: ignore[union-attr]
    url = import_module("obstore").sign(client, "GET", "x", timedelta(seconds=9))
    assert url.partition("?")[0] == place


def test_large_uploads_are_left_to_s3fs(server: Scripted, store: FsspecStore) -> None:
    store.put("x", bytes(50 * 1024 * 1024))
    store.put_if_absent("x", bytes(50 * 1024 * 1024))
    assert server.asked == [("PUT", "obstore")] * 2
    server.asked.clear()
    server.answers[:] = [(403, "AccessDenied")]
    with pytest.raises(AccessDeniedError):
        store.put("x", bytes(50 * 1024 * 1024 + 1))
    assert {agent for _, agent in server.asked} == {"s3fs"}


def test_neither_s3fs_nor_fsspec_is_imported(server: Scripted) -> None:
    """Importing s3fs takes longer than most requests."""
    program = f"""
import sys
from deltalog.storage import open_store
options = {{
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "{SECRET}",
    "AWS_REGION": "us-east-1",
    "AWS_ENDPOINT_URL": "http://127.0.0.1:{server.server_port}",
    "s3_client": "obstore",
}}
store = open_store("s3://bucket/t", options)
store.put_if_absent("x", b"")
store.put("x", b"")
store.read_many(["x", "y"])
store.stat("x")
store.delete_many([])
print(sorted({{"fsspec", "s3fs", "botocore"}} & sys.modules.keys()))
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert result.stdout.split() == [b"[]"]
    assert [command for command, _ in server.asked] == ["PUT"] * 2 + ["GET"] * 2 + ["HEAD"]
    assert {agent for _, agent in server.asked} == {"obstore"}


@pytest.mark.skipif(sys.platform == "win32", reason="signals to one thread are POSIX's")
def test_a_request_that_hangs_can_be_interrupted(store: FsspecStore) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        options = {
            **cast("dict[str, str]", store._options),
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{silent.getsockname()[1]}",
        }
        arrived: list[socket.socket] = []

        def interrupt() -> None:
            arrived.append(silent.accept()[0])
            arrived[0].recv(1)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # xdist ignores it
        thread = threading.Thread(target=interrupt)
        thread.start()
        try:
            with pytest.raises(KeyboardInterrupt):
                FsspecStore("s3://bucket/t", options).read("x")
        finally:
            signal.signal(signal.SIGINT, before)
            thread.join()
            arrived[0].close()
