"""Object stores that run on this machine, as fixtures.

S3 is moto's server in a thread. Azure is Azurite in a process of its own; it comes from npm into
`.cache/azurite` of the project when DELTALOG_REQUIRE_ALL=1 asks for it, and otherwise its tests
are skipped until somebody ran `npm install --prefix .cache/azurite azurite`. Google's is a small
server of our own.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from deltalog._util import json as _json
from tests.support.gcs_server import GcsServer

AZURITE_DIRECTORY = Path(__file__).parents[2] / ".cache" / "azurite"
AZURITE_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
REQUIRE_ALL = os.environ.get("DELTALOG_REQUIRE_ALL", "") not in {"", "0"}


@dataclass(frozen=True, slots=True)
class Emulator:
    """A running object store: the URL of a fresh directory and the options that open it."""

    url: str
    options: dict[str, str]
    endpoint: str


@dataclass(frozen=True, slots=True)
class Request:
    """What a server was asked: `GET d/a`, or `GET ?list-type` of a bucket."""

    asked: str
    if_none_match: str | None
    user_agent: str


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """URL of an S3 server."""
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    server_module = pytest.importorskip("moto.server", reason="moto is not installed")
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    server._server.app = _OneByOne(server._server.app)
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    _OneByOne.running[endpoint] = server._server.app
    yield endpoint
    server.stop()


@pytest.fixture
def s3(s3_endpoint: str) -> Emulator:
    """A fresh bucket, in the native libraries' spelling of options."""
    import fsspec

    bucket = f"bucket-{uuid.uuid4().hex[:12]}"
    access = {"key": "testing", "secret": "testing-secret", "endpoint_url": s3_endpoint}
    fsspec.filesystem("s3", **access).mkdir(bucket)
    options = {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing-secret",
        "aws_region": "us-east-1",
        "AWS_ENDPOINT_URL": s3_endpoint,
        "allow_http": "true",
    }
    return Emulator(f"s3://{bucket}/a table", options, s3_endpoint)


@pytest.fixture
def s3fs(s3: Emulator) -> Emulator:
    """A fresh bucket, reached through s3fs."""
    return replace(s3, options={**s3.options, "s3_client": "s3fs"})


@pytest.fixture
def obstore(s3: Emulator) -> Emulator:
    """A fresh bucket, reached through obstore."""
    pytest.importorskip("obstore", reason="obstore is not installed")
    return replace(s3, options={**s3.options, "s3_client": "obstore"})


def requests_of(emulator: Emulator) -> list[Request]:
    """The requests that an emulator of S3 gets from now on; the list grows."""
    application = _OneByOne.running[emulator.endpoint]
    application.requests = []
    return application.requests


def fill(emulator: Emulator, names: Iterable[str]) -> None:
    """Put small objects below the URL of an emulated S3, quicker than by requests."""
    models: Any = pytest.importorskip("moto.s3.models", reason="moto is not installed")
    bucket, _, key = emulator.url.removeprefix("s3://").partition("/")
    for regions in models.s3_backends.values():
        for backend in regions.values():
            if bucket in backend.buckets:
                for name in names:
                    backend.put_object(bucket, f"{key}/{name}", b"x")


def lose_answer(emulator: Emulator, ending: str) -> None:
    """Let an emulator of S3 carry out the next put of a name with this ending, and answer 500."""
    _OneByOne.running[emulator.endpoint].lost_ending = ending


def at_put(emulator: Emulator, ending: str, do: Callable[[], object]) -> None:
    """Let an emulator of S3 do something before the next put of a name with this ending."""
    application = _OneByOne.running[emulator.endpoint]
    application.awaited_ending, application.at_put = ending, do


@pytest.fixture(scope="session")
def azurite_endpoint() -> Iterator[str]:
    """URL of an Azure blob service with the account `devstoreaccount1`."""
    pytest.importorskip("adlfs", reason="adlfs is not installed")
    program = _azurite()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [
            str(program),
            "--blobHost",
            "127.0.0.1",
            "--blobPort",
            str(port),
            "--inMemoryPersistence",
            "--silent",
            "--skipApiVersionCheck",
            "--disableTelemetry",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(port, process)
        yield f"http://127.0.0.1:{port}/devstoreaccount1"
    finally:
        process.terminate()
        process.wait(timeout=10)


@pytest.fixture
def azure(azurite_endpoint: str) -> Emulator:
    """A fresh container, in the native libraries' spelling of options."""
    from azure.storage.blob import BlobServiceClient

    container = f"container-{uuid.uuid4().hex[:12]}"
    with BlobServiceClient(azurite_endpoint, credential=AZURITE_KEY) as client:
        client.create_container(container)
    options = {
        "azure_storage_account_name": "devstoreaccount1",
        "AZURE_STORAGE_ACCOUNT_KEY": AZURITE_KEY,
        "azure_storage_endpoint": azurite_endpoint,
        "allow_http": "true",
    }
    return Emulator(f"az://{container}/a table", options, azurite_endpoint)


@pytest.fixture(scope="session")
def gcs_endpoint() -> Iterator[str]:
    """URL of a Google Cloud Storage server."""
    pytest.importorskip("gcsfs", reason="gcsfs is not installed")
    server = GcsServer()
    yield server.endpoint
    server.close()


@pytest.fixture
def signing_gcs(gcs_endpoint: str) -> Emulator:
    """A fresh bucket, opened with the key of a service account that was made for it."""
    rsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa")
    from cryptography.hazmat.primitives import serialization

    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    GcsServer.running[gcs_endpoint].public_key = private.public_key()
    key = {
        "type": "service_account",
        "project_id": "tests",
        "private_key_id": "1",
        "private_key": private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ).decode(),
        "client_email": "sharer@tests.iam.gserviceaccount.com",
        "client_id": "1",
        "token_uri": f"{gcs_endpoint}/token",
    }
    options = {
        "google_service_account_key": _json.dumps(key).decode(),
        "google_endpoint": gcs_endpoint,
    }
    url = f"gs://bucket-{uuid.uuid4().hex[:12]}/a table"
    return Emulator(url, options, gcs_endpoint)


@pytest.fixture
def gcs(gcs_endpoint: str) -> Emulator:
    """A fresh bucket, in the native libraries' spelling of options."""
    options = {"google_skip_signature": "true", "google_endpoint": gcs_endpoint}
    return Emulator(f"gs://bucket-{uuid.uuid4().hex[:12]}/a table", options, gcs_endpoint)


class _OneByOne:
    """A web application that answers one request at a time.

    moto looks whether an object exists and then writes it; S3 does both in one step.
    """

    running: ClassVar[dict[str, _OneByOne]] = {}

    def __init__(self, application: Callable[..., Iterable[bytes]]) -> None:
        self._application = application
        self._lock = threading.Lock()
        self.requests: list[Request] = []
        self.lost_ending = ""
        self.awaited_ending = ""
        self.at_put: Callable[[], object] = list

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., object]
    ) -> list[bytes]:
        with self._lock:
            key = environ["PATH_INFO"].lstrip("/").partition("/")[2]
            query = environ["QUERY_STRING"].split("&")
            verb = next((part for part in query if part.startswith(("list-type", "delete"))), "")
            self.requests.append(
                Request(
                    f"{environ['REQUEST_METHOD']} {'?' if verb else key}{verb.partition('=')[0]}",
                    environ.get("HTTP_IF_NONE_MATCH"),
                    environ.get("HTTP_USER_AGENT", ""),
                )
            )
            is_put = environ["REQUEST_METHOD"] == "PUT"
            if is_put and self.awaited_ending and key.endswith(self.awaited_ending):
                self.awaited_ending = ""
                self.at_put()
            if is_put and self.lost_ending and key.endswith(self.lost_ending):
                self.lost_ending = ""
                list(self._application(environ, lambda *_: lambda _: None))
                start_response("500 Internal Server Error", [("Content-Length", "0")])
                return [b""]
            return list(self._application(environ, start_response))


def _azurite() -> Path:
    program = AZURITE_DIRECTORY / "node_modules" / ".bin" / "azurite-blob"
    if program.exists():
        return program
    npm = shutil.which("npm")
    if not REQUIRE_ALL or npm is None:
        pytest.skip(f"Azurite is not in {AZURITE_DIRECTORY} (npm install --prefix … azurite)")
    AZURITE_DIRECTORY.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [
            npm,
            "install",
            "--no-audit",
            "--no-fund",
            "--prefix",
            str(AZURITE_DIRECTORY),
            "azurite@3.35.0",
        ],
        check=True,
        capture_output=True,
    )
    return program


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        if process.poll() is not None:
            pytest.fail(f"Azurite ended with {process.returncode} before it listened")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    pytest.fail("Azurite did not listen within 30 s")
