"""Certificates of a running server: a signal replaces them for new connections, if whole."""

from __future__ import annotations

import datetime as dt
import http.client
import json
import logging
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from deltalog.sharing.server.config import ServerConfig
from deltalog.sharing.server.config_settings import parse_config
from deltalog.sharing.server.serving import load_certificates
from tests.support.sharing import small_config

KEY, CHAIN = "key.pem", "chain.pem"


def write_certificate(home: Path, *, password: bytes | None = None) -> bytes:
    """A new key and its self-signed certificate, which is returned as DER."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + dt.timedelta(days=36500))
        .sign(key, hashes.SHA256())
    )
    encryption = (
        serialization.BestAvailableEncryption(password)
        if password
        else serialization.NoEncryption()
    )
    private = serialization.PrivateFormat.PKCS8
    (home / KEY).write_bytes(key.private_bytes(serialization.Encoding.PEM, private, encryption))
    (home / KEY).chmod(0o600)
    (home / CHAIN).write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return certificate.public_bytes(serialization.Encoding.DER)


def config_of(home: Path, **more: Any) -> dict[str, Any]:
    files = {"certificateFile": str(home / CHAIN), "certificateKeyFile": str(home / KEY)}
    return small_config(ssl=files, **more)


class Served:
    """A server with TLS as a process of its own."""

    def __init__(self, home: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.home, self.log = home, home / "log"
        config = home / "c.json"
        config.write_text(json.dumps(config_of(home, host="127.0.0.1", port=self.port)))
        os.utime(config, (1_600_000_000, 1_600_000_000))
        command = [sys.executable, "-m", "deltalog.sharing", "serve", str(config)]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stderr=log)
        self.wait_for(self.is_up)

    def wait_for(self, happened: Callable[[], bool]) -> None:
        for _ in range(1200):
            assert self.process.poll() is None, self.log.read_text()
            if happened():
                return
            time.sleep(0.05)
        raise AssertionError(self.log.read_text())

    def is_up(self) -> bool:
        try:
            self.certificate()
        except OSError:
            return False
        return True

    def connect(self) -> http.client.HTTPSConnection:
        """A connection with a request that is under way."""
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.port, timeout=60, context=context
        )
        try:
            connection.request("GET", "/health")
        except BaseException:
            connection.close()
            raise
        return connection

    def certificate(self) -> bytes:
        connection = self.connect()
        assert isinstance(connection.sock, ssl.SSLSocket)
        found = connection.sock.getpeercert(binary_form=True)
        assert connection.getresponse().status == 200
        connection.close()
        assert found is not None
        return found

    def hang_up(self, told: str) -> None:
        before = self.log.read_text().count(told)
        self.process.send_signal(signal.SIGHUP)
        self.wait_for(lambda: self.log.read_text().count(told) > before)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    write_certificate(tmp_path)
    server = Served(tmp_path)
    yield server
    server.process.kill()
    server.process.wait()


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_hang_up_gives_new_connections_new_certificates(served: Served) -> None:
    first = served.certificate()
    kept = served.connect()
    assert kept.getresponse().read()
    second = write_certificate(served.home)
    assert served.certificate() == first  # nobody said that the files are whole
    served.hang_up("the configuration is reloaded")
    assert served.certificate() == second != first
    kept.request("GET", "/health")  # its connection goes on
    assert kept.getresponse().status == 200
    kept.close()
    # Half of a new pair, as if the second file were still to come.
    key = (served.home / KEY).read_bytes()
    write_certificate(served.home)
    (served.home / KEY).write_bytes(key)
    served.hang_up("the certificates are not reloaded")
    assert served.certificate() == second
    (served.home / KEY).unlink()
    served.hang_up("the certificates are not reloaded")
    assert served.certificate() == second
    third = write_certificate(served.home)
    served.hang_up("the configuration is reloaded")
    assert served.certificate() == third


def _config(home: Path) -> ServerConfig:
    return parse_config(config_of(home))


def test_a_key_with_a_password_is_reported_and_not_asked_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_certificate(tmp_path, password=b"x")
    load_certificates(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), _config(tmp_path))
    assert "are not reloaded" in caplog.text


def test_tls_cannot_be_added_to_a_socket_or_taken_away(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_certificate(tmp_path)
    load_certificates(None, _config(tmp_path))
    load_certificates(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), parse_config(small_config()))
    told = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    assert told == ["ssl was added or removed, which needs a restart of the server"] * 2
    caplog.clear()
    load_certificates(None, parse_config(small_config()))
    load_certificates(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), _config(tmp_path))
    assert not caplog.records
