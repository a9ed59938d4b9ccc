"""An answer about a table: its headers and its lines, which are written while they are sent.

Owns how lines end: with an `endStreamAction` for who asked for one, and what becomes of an error
when half of the answer is gone already.

Protocol: API Response Format, EndStreamAction
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deltalog.errors import DeltaError
from deltalog.sharing.server.faults import Fault, fault_of
from deltalog.sharing.wire.lines import EndStreamAction, encode_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from deltalog.sharing.server.cache import FileCache
    from deltalog.sharing.server.config import ServerConfig
    from deltalog.sharing.server.formats import Format
    from deltalog.sharing.server.recipients import Recipient
    from deltalog.sharing.server.tables import SharedTable
    from deltalog.sharing.server.tokens import Sealer
    from deltalog.sharing.server.urls import UrlSigner
    from deltalog.sharing.wire.capabilities import Capabilities
    from deltalog.sharing.wire.lines import Line

_LOG = logging.getLogger("deltalog.sharing")


@dataclass(frozen=True)
class Asked:
    """Who asks what, how he can be answered, and when.

    Args:
        table: the table.
        recipient: who asks.
        capabilities: what he can take.
        base: URL of the protocol's root, as he reaches it.
        now_ms: when he asked.
        file_id_hash: the hash that he wants for ids.
    """

    table: SharedTable
    recipient: Recipient
    capabilities: Capabilities
    base: str
    now_ms: int
    file_id_hash: str | None = None


@dataclass(frozen=True)
class Tools:
    """What answering takes besides the table: configuration, seals and signatures."""

    config: ServerConfig
    sealer: Sealer
    urls: UrlSigner
    cache: FileCache


@dataclass(frozen=True)
class Answer:
    """What is sent back.

    Args:
        version: for the header.
        form: of the lines.
        chunks: the lines.
        file_id_hash: which hash made the ids.
        facts: for the audit log.
    """

    version: int
    form: Format
    chunks: Iterator[bytes]
    file_id_hash: str | None = None
    facts: dict[str, object] = field(default_factory=dict)


def finished(
    form: Format,
    heads: tuple[Line, ...],
    body: Iterator[bytes],
    end: Callable[[], EndStreamAction] | None = None,
) -> Iterator[bytes]:
    """The whole answer: first lines, body, and the last line where there is one.

    Args:
        form: of the answer.
        heads: the first lines; they are sent before anything of the body is made.
        body: lines, made while they are sent.
        end: makes the last line; None if there is none.
    """
    yield b"".join(encode_line(line) for line in heads)
    try:
        yield from body
    except (DeltaError, Fault) as error:
        _LOG.warning("an answer was cut: %s", type(error).__name__)
        if not form.ends:
            raise  # the connection breaks, so that nobody takes this for the end
        fault = error if isinstance(error, Fault) else fault_of(error)
        yield encode_line(EndStreamAction(error_message=fault.message))
        return
    if end is not None:
        yield encode_line(end())
