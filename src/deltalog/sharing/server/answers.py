"""A request about a table, and its answer: headers, and lines that are made while they are sent.

This module sends the last line: an `endStreamAction` for clients that requested it, even if an
error occurs after a part of the answer was sent.

Protocol: API Response Format, EndStreamAction
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from deltalog.errors import (
    DeltaError,
)
from deltalog.sharing.server.faults import Fault, fault_of
from deltalog.sharing.wire.lines import EndStreamAction, Line, encode_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from deltalog.sharing.server.cache import FileCache
    from deltalog.sharing.server.config import ServerConfig
    from deltalog.sharing.server.formats import ResponseFormat
    from deltalog.sharing.server.recipients import Recipient
    from deltalog.sharing.server.tables import ServedTable
    from deltalog.sharing.server.tokens import Sealer
    from deltalog.sharing.server.urls import UrlSigner, ViewFileSource
    from deltalog.sharing.wire.requests import Capabilities

_LOG = logging.getLogger("deltalog.sharing")


@dataclass(frozen=True)
class Services:
    """The services of the server that are needed to answer a request."""

    config: ServerConfig
    sealer: Sealer
    urls: UrlSigner
    cache: FileCache

    def with_key(self, key: int) -> Services:
        """Return services that use one of the signing keys for signatures and names.

        The names of view files depend on the key. So later pages and downloads must use the key of
        the first page.
        """
        if key == 0:
            return self
        return replace(self, sealer=self.sealer.with_key(key), urls=self.urls.with_key(key))


@dataclass(frozen=True)
class TableRequest:
    """A recipient's request about a table.

    Args:
        capabilities: capabilities of the client.
        base_url: URL of the protocol's root, as the recipient reaches it.
        now_ms: time of the request.
        services: services of the server.
        file_id_hash: name of the hash that the client requests for ids of files.
    """

    table: ServedTable
    recipient: Recipient
    capabilities: Capabilities
    base_url: str
    now_ms: int
    services: Services
    file_id_hash: str | None = None

    @property
    def url_expiry_ms(self) -> int:
        """Return the time at which the URLs in the answer expire."""
        return self.services.urls.expiry_ms(self.now_ms)

    def signer(self, source: ViewFileSource | None = None) -> Callable[[str], str]:
        """Return a function that returns the URL of a file, given its decoded path.

        Args:
            source: for files of a view, the source of their rows; this server sends these files
                itself.
        """
        urls = self.services.urls
        # The files of a view are in the server's cache, not in the store of the table.
        by_store = urls.store_signer(self.table.store) if source is None else None
        return by_store or urls.signer(
            self.table.name, self.recipient, self.base_url, self.url_expiry_ms, source
        )


@dataclass(frozen=True)
class Answer:
    """The answer to a request about a table.

    Args:
        version: value of the header `Delta-Table-Version`.
        response_format: format of the lines.
        chunks: the lines.
        file_id_hash: name of the hash that made the ids of files.
        facts: entries for the audit log.
        until: the last version of a range of changes.
        is_short: whether the answer is so short that all lines can be made at once.
    """

    version: int
    response_format: ResponseFormat
    chunks: Iterator[bytes]
    file_id_hash: str | None = None
    facts: dict[str, object] = field(default_factory=dict)
    until: int | None = None
    is_short: bool = False


def encode_lines(
    response_format: ResponseFormat,
    heads: tuple[Line, ...],
    body: Iterator[bytes],
    end: Callable[[], EndStreamAction] | None = None,
) -> Iterator[bytes]:
    """Yield all lines of an answer.

    Args:
        response_format: response format of the answer.
        heads: the first lines; they are sent before the body starts.
        body: the file lines, made while they are sent.
        end: makes the last line; None if the answer has no `endStreamAction`.
    """
    yield b"".join(map(encode_line, heads))
    try:
        yield from body
    except (DeltaError, Fault) as error:
        _LOG.warning("an answer broke off: %s", type(error).__name__)
        if not response_format.ends:
            raise  # closes the connection, so that the client notices the incomplete answer
        yield encode_line(EndStreamAction(error_message=fault_of(error).message))
        return
    if end is not None:
        yield encode_line(end())
