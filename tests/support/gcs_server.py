"""As much of Google Cloud Storage's JSON API as a table needs, in a thread of this process.

It exists because no emulator comes as a Python or npm package. Preconditions are decided under one
lock, as the real service decides them.
"""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import parse_qs, unquote, urlsplit

from deltalog._util import json as _json
from tests.support.signatures import is_signed_by_google

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

PAGE_SIZE: Final = 7  # small, so that listings have pages


class GcsServer:
    """A running server; `requests` tells what it was asked."""

    running: ClassVar[dict[str, GcsServer]] = {}

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], bytes] = {}
        self.lock = threading.Lock()
        self.requests: list[str] = []
        self.tokens: set[str] = set()  # that requests came with
        self.public_key: RSAPublicKey | None = None  # of who may sign URLs
        outer = self

        class Handler(_Handler):
            server_state = outer

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )
        self._thread.start()
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self.running[self.endpoint] = self

    def close(self) -> None:
        """Stop listening."""
        del self.running[self.endpoint]
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    server_state: GcsServer
    protocol_version = "HTTP/1.1"
    wbufsize = 65536  # head and body in one packet: else each answer waits for an acknowledgement

    def do_GET(self) -> None:
        if "/b/" not in self.path:
            self._answer_signed()
            return
        bucket, name, query = self._target()
        if name is None:
            self._answer(200, self._page(bucket, query))
            return
        with self.server_state.lock:
            data = self.server_state.objects.get((bucket, name))
        if data is None:
            self._fail(404)
        elif query.get("alt") == "media":
            self._answer_media(data)
        else:
            self._answer(200, _resource(bucket, name, data))

    def _answer_signed(self) -> None:
        """A file by a signed URL, for who has nothing else."""
        parts = urlsplit(self.path)
        key = self.server_state.public_key
        if key is None or not is_signed_by_google(key, str(self.headers["Host"]), self.path):
            self._fail(403)
            return
        bucket, _, name = unquote(parts.path[1:]).partition("/")
        with self.server_state.lock:
            data = self.server_state.objects.get((bucket, name))
        if data is None:
            self._fail(404)
        else:
            self._answer_media(data)

    def do_POST(self) -> None:
        if self.path == "/token":
            self.rfile.read(int(self.headers["Content-Length"]))
            self._answer(200, {"access_token": "token", "expires_in": 3600})
            return
        bucket, _, query = self._target()
        body = self.rfile.read(int(self.headers["Content-Length"]))
        head, content = body.split(b"\n\n", 1)[1].split(b"\n--==0==\n", 1)
        name = _json.loads(head)["name"]
        data = content.split(b"\n\n", 1)[1].removesuffix(b"\n--==0==--")
        state = self.server_state
        with state.lock:
            if query.get("ifGenerationMatch") == "0" and (bucket, name) in state.objects:
                taken = True
            else:
                taken = False
                state.objects[bucket, name] = data
        if taken:
            self._fail(412)
        else:
            self._answer(200, _resource(bucket, name, data))

    def do_DELETE(self) -> None:
        bucket, name, _ = self._target()
        with self.server_state.lock:
            gone = self.server_state.objects.pop((bucket, str(name)), None)
        if gone is None:
            self._fail(404)
        else:
            self._send(204, b"")

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _target(self) -> tuple[str, str | None, dict[str, str]]:
        self.server_state.requests.append(f"{self.command} {self.path}")
        self.server_state.tokens.add(self.headers.get("Authorization", ""))
        parts = urlsplit(self.path)
        _, _, rest = parts.path.partition("/b/")
        bucket, _, name = rest.partition("/o")
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        return unquote(bucket), unquote(name[1:]) if name.startswith("/") else None, query

    def _page(self, bucket: str, query: dict[str, str]) -> dict[str, Any]:
        prefix = query.get("prefix", "")
        with self.server_state.lock:
            objects = dict(self.server_state.objects)
        found: list[tuple[str, bytes | None]] = []
        for (holder, name), data in sorted(objects.items()):
            if holder != bucket or not name.startswith(prefix):
                continue
            inner, slash, _ = name[len(prefix) :].partition("/")
            if query.get("delimiter") and slash:
                if (directory := prefix + inner + "/") not in dict(found):
                    found.append((directory, None))
            elif name >= query.get("startOffset", ""):
                found.append((name, data))
        start = int(query.get("pageToken", "0"))
        part = found[start : start + PAGE_SIZE]
        page: dict[str, Any] = {
            "kind": "storage#objects",
            "items": [_resource(bucket, name, data) for name, data in part if data is not None],
            "prefixes": [name for name, data in part if data is None],
        }
        if start + PAGE_SIZE < len(found):
            page["nextPageToken"] = str(start + PAGE_SIZE)
        return page

    def _answer_media(self, data: bytes) -> None:
        wanted = self.headers.get("Range")
        if wanted is None:
            self._send(200, data)
            return
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        self._send(206, data[int(first) : int(last) + 1 if last else None])

    def _answer(self, status: int, value: Any) -> None:
        self._send(status, _json.dumps(value))

    def _fail(self, status: int) -> None:
        self._answer(status, {"error": {"code": status, "message": "refused"}})

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _resource(bucket: str, name: str, data: bytes) -> dict[str, Any]:
    return {
        "kind": "storage#object",
        "bucket": bucket,
        "name": name,
        "size": str(len(data)),
        "updated": "2024-01-31T12:30:00.123Z",
        "generation": "1",
        "etag": "e",
    }
