"""The server process: uvicorn with the application of a configuration file.

This module configures the process's listening address and its log.
"""

from __future__ import annotations

import errno
import logging
import os
import signal
import ssl
import sys
import threading
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from deltalog.errors import InvalidInputError
from deltalog.sharing.server.application import check_tables, make_app
from deltalog.sharing.server.config_file import ReloadingServer, settled_server
from deltalog.storage.http.client import is_loopback

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from deltalog.sharing.server.config import ServerConfig

_LOG: Final = logging.getLogger("deltalog.sharing")
# The loggers whose messages are limited, because clients can cause any number of them. Only the
# audit log contains all requests.
_THROTTLED: Final = ("asyncio", "uvicorn.error", "deltalog.sharing")
# The number of seconds for closing connections after the grace period. Then the process ends.
_LAST_SECONDS: Final = 5
_LAST_PORT: Final = 65_535
_PROBLEMS: Final[dict[int | None, str]] = {
    errno.EADDRINUSE: "the port is in use; stop the program that uses it, or pass another port "
    "(--port, or `port` in the file; 0 means any free port)",
    errno.EACCES: "this user may not use the port; pass one above 1023 (--port, or `port` in the "
    "file)",
    errno.EADDRNOTAVAIL: "this machine does not have the address; pass another host (--host, or "
    "`host` in the file)",
}
"""The problems of a server that cannot listen, by the number of the error."""


def serve(path: str | Path, *, host: str | None = None, port: int | None = None) -> None:
    """Run the server of a configuration file until a signal ends the process.

    A table that cannot be shared, such as one that does not exist, is only logged, because the
    others can be shared.

    SIGTERM ends the process within `limits.graceSeconds` plus a few seconds. SIGHUP reloads the
    file and the certificates.

    Args:
        path: path of the file.
        host: overrides the host in the file.
        port: overrides the port in the file.

    Raises:
        InvalidInputError: the file or the port is invalid, the port is in use, or uvicorn is not
            installed.
    """
    if port is not None and not 0 <= port <= _LAST_PORT:
        raise InvalidInputError(
            f"cannot serve {str(path)!r}: expected a port from 0 to {_LAST_PORT}, found {port}"
        )
    try:
        import uvicorn  # noqa: PLC0415 -- a mounted application does not need it

        from deltalog.sharing.server import connections  # noqa: PLC0415 -- imports uvicorn
    except ModuleNotFoundError:
        raise InvalidInputError("serving needs uvicorn: pip install 'deltalog[sharing]'") from None
    _log_to_stderr()
    reloading = settled_server(path)
    config = reloading.config
    host = host or config.host
    if not config.signing_keys:
        _LOG.warning(
            "signingKey is not set: page tokens and file URLs end with this process, and "
            "no other process accepts them"
        )
    if not is_loopback(host) and config.certificate_file is None and config.public_url is None:
        _LOG.warning(
            "tokens are sent unencrypted: set ssl, or publicUrl if a proxy in front of the server "
            "has https"
        )
    protocol = connections.guarded_protocol(
        lambda: reloading.config.limits, connections.most_connections(config.limits)
    )
    settings = uvicorn.Config(
        make_app(reloading.current),
        host=host,
        port=config.port if port is None else port,
        http=protocol,
        ws="none",
        backlog=connections.BACKLOG,
        ssl_certfile=config.certificate_file,
        ssl_keyfile=config.certificate_key_file,
        access_log=False,  # the audit log replaces it, without signed URLs
        lifespan="off",
        log_level="warning",
        server_header=False,
        h11_max_incomplete_event_size=max(16 << 10, 4 * config.limits.url_bytes),
        timeout_keep_alive=30,
        timeout_graceful_shutdown=config.limits.grace_seconds,
    )
    # Add the filters only now, after uvicorn has configured its loggers.
    for name in _THROTTLED:
        logging.getLogger(name).addFilter(connections.ThrottleFilter())
    settings.load()
    reloading.after_reload = partial(load_certificates, settings.ssl)
    server = uvicorn.Server(settings)
    _handle_signals(server, reloading)
    _announce(server, config, host)
    server.run()


def _warn_of_tables(config: ServerConfig) -> None:
    """Log each table that cannot be shared, such as one that does not exist."""
    for name, problem in check_tables(config):
        if problem is not None:
            _LOG.warning("the table %s cannot be shared: %s", name, problem)


def _announce(server: Any, config: ServerConfig, host: str) -> None:
    """Log where the server listens, and the endpoint of profiles, when it has begun to listen."""
    startup = server.startup
    shown = f"[{host}]" if ":" in host else host

    async def start(sockets: Any = None) -> None:
        with _naming_address(f"{shown}:{server.config.port}"):
            await startup(sockets=sockets)
        # With port 0, the operating system chooses the port.
        port = server.servers[0].sockets[0].getsockname()[1]
        scheme = "http" if config.certificate_file is None else "https"
        at = f"{scheme}://{shown}:{port}"
        endpoint = f"{config.public_url or at}{config.endpoint}/"
        _LOG.info("listening on %s; the endpoint of profiles is %s", at, endpoint)
        # Recipients can query the other tables while the logs of all tables are read.
        threading.Thread(target=_warn_of_tables, args=[config], daemon=True).start()

    server.startup = start


@contextmanager
def _naming_address(address: str) -> Iterator[None]:
    """Raise an error that names the address, instead of the message that uvicorn logs."""
    failures: list[OSError] = []

    def is_other(record: logging.LogRecord) -> bool:
        if isinstance(record.msg, OSError):
            failures.append(record.msg)
        return not failures

    log = logging.getLogger("uvicorn.error")
    log.addFilter(is_other)
    try:
        yield
    except SystemExit:
        if not failures:
            raise
        problem = _PROBLEMS.get(failures[0].errno, str(failures[0]))
        raise InvalidInputError(f"cannot listen on {address}: {problem}") from failures[0]
    finally:
        log.removeFilter(is_other)


def _handle_signals(server: Any, reloading: ReloadingServer) -> None:
    if hasattr(signal, "SIGHUP"):

        def reload(*_: object) -> None:
            # Reload in a thread. The signal may interrupt the main thread during a reload, when it
            # has the lock.
            threading.Thread(target=reloading.reload, kwargs={"now": True}, daemon=True).start()

        signal.signal(signal.SIGHUP, reload)
    # When uvicorn has stopped, it raises the signal again. This handler exits normally, so that the
    # cache is deleted.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    handle_exit = server.handle_exit

    def end(number: int, frame: Any) -> None:
        # The timer ends the process even if a thread still waits for a store.
        seconds = reloading.config.limits.grace_seconds + _LAST_SECONDS
        guard = threading.Timer(seconds, os._exit, args=[0])
        guard.daemon = True
        guard.start()
        handle_exit(number, frame)

    server.handle_exit = end


def _log_to_stderr() -> None:
    """Log to stderr, one line per event: the audit log as JSON, all others as plain text."""
    root = logging.getLogger("deltalog.sharing")
    if root.handlers or logging.getLogger().handlers:
        return  # the logging is already configured
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    root.addHandler(handler)
    root.setLevel(logging.INFO)


# --- Reloading the certificates of a running server


def load_certificates(context: ssl.SSLContext | None, config: ServerConfig) -> None:
    """Use a configuration's certificates for new connections; a failure is only logged.

    Args:
        context: TLS context of the listening socket; None without TLS.
        config: configuration of the server.
    """
    chain, key = config.certificate_file, config.certificate_key_file
    if (context is None) != (chain is None):
        _LOG.warning("ssl was added or removed, which needs a restart of the server")
    if context is None or chain is None:
        return
    try:
        # Load the certificate into a new context first. If loading fails halfway, the context in
        # use must not have a certificate and a key that do not match.
        for one in (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), context):
            one.load_cert_chain(chain, key, password=lambda: "")  # no prompt on the terminal
    except (OSError, ValueError) as error:
        _LOG.error("the certificates are not reloaded: %s", error)
