"""The certificates of a running server: read anew when its configuration is.

Owns that a pair of files that do not go together, or cannot be read, changes nothing.
"""

from __future__ import annotations

import logging
import ssl
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from deltalog.sharing.server.config import ServerConfig

_LOG: Final = logging.getLogger("deltalog.sharing")


def load_certificates(context: ssl.SSLContext | None, config: ServerConfig) -> None:
    """Give new connections the certificates that a configuration names; failures are logged.

    Args:
        context: of the listening socket; None if it has no TLS.
        config: of the server.
    """
    chain, key = config.certificate_file, config.certificate_key_file
    if (context is None) != (chain is None):
        _LOG.warning("ssl was added or removed, which needs a restart of the server")
    if context is None or chain is None:
        return
    try:
        # A context that failed half-way has the one file's key and the other one's certificate.
        for one in (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), context):
            one.load_cert_chain(chain, key, password=lambda: "")  # never ask on the terminal
    except (OSError, ValueError) as error:
        _LOG.error("the certificates are not reloaded: %s", error)
