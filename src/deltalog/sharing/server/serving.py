"""The server process: uvicorn with the application of a configuration file.

Owns where the process listens and what it logs.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

from deltalog.errors import InvalidInputError
from deltalog.sharing.server.config_file import app_of_file
from deltalog.sharing.server.recipients import is_loopback

if TYPE_CHECKING:
    from pathlib import Path


def serve(path: str | Path, *, host: str | None = None, port: int | None = None) -> None:
    """Run the server of a configuration file until the process ends.

    Args:
        path: of the file.
        host: instead of the file's.
        port: instead of the file's.

    Raises:
        InvalidInputError: the file is wrong, or uvicorn is not installed.
    """
    try:
        import uvicorn  # noqa: PLC0415 -- an application can be mounted without it
    except ModuleNotFoundError:
        raise InvalidInputError("serving needs uvicorn: pip install 'deltalog[sharing]'") from None
    app, config = app_of_file(path)
    _log_to_stderr()
    host = host or config.host
    if not is_loopback(host) and config.certificate_file is None and config.public_url is None:
        logging.getLogger("deltalog.sharing").warning(
            "tokens are sent unencrypted: set ssl, or publicUrl if a proxy in front of the server "
            "has https"
        )
    uvicorn.run(
        app,
        host=host,
        port=config.port if port is None else port,
        ssl_certfile=config.certificate_file,
        ssl_keyfile=config.certificate_key_file,
        access_log=False,  # it would hold signed URLs; the audit log has the rest
        lifespan="off",
        log_level="warning",
        server_header=False,
        h11_max_incomplete_event_size=max(16 << 10, 4 * config.limits.url_bytes),
        timeout_keep_alive=30,
    )


def _log_to_stderr() -> None:
    """Log one line per event: the audit log as JSON, the rest as text."""
    root = logging.getLogger("deltalog.sharing")
    if root.handlers or logging.getLogger().handlers:
        return  # logging is configured already
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    root.addHandler(handler)
    root.setLevel(logging.INFO)
