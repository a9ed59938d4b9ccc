"""Reading one response about a table: its lines are checked and divided into head, files and end.

This module checks the order of lines, the capabilities that a response uses, and its last line.
File lines are passed to a collector as they arrive.

Protocol: Read Data from a Table, API Response Format in Parquet, API Response Format in Delta,
Delta Sharing Capabilities Header
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from deltalog.errors import MalformedMessageError, SharingError
from deltalog.protocol.features import FEATURES, Kind, Support
from deltalog.sharing.wire.lines import (
    READER_VERSION,
    DeltaFileLine,
    DeltaMetadata,
    DeltaProtocol,
    EndStreamAction,
    ParquetFileLine,
    ParquetMetadata,
    ParquetProtocol,
    QueryStatus,
    parse_line,
)
from deltalog.sharing.wire.requests import (
    CAPABILITIES_HEADER,
    DELTA,
    PARQUET,
    VERSION_HEADER,
    Capabilities,
    parse_capabilities,
)
from deltalog.storage.http.replies import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalog.sharing.wire.lines import Line

READER_FEATURES: Final = frozenset(
    name.lower()
    for feature in FEATURES.values()
    if feature.kind is Kind.READER_WRITER and feature.read is Support.FULL
    for name in (feature.name, *feature.aliases)
)
"""The table features that deltalog's scans support, as spelled in the header."""

CAPABILITIES: Final = Capabilities(
    response_formats=(DELTA, PARQUET),
    # This list lets the server refuse tables with features that this client cannot read.
    reader_features=READER_FEATURES,
    include_end_stream_action=True,
)


class FileCollector(Protocol):
    """Collects the lines of one page."""

    def take(self, line: Line) -> None:
        """Collect a file line, or the protocol or metadata of a later version."""
        ...


C = TypeVar("C", bound=FileCollector)


class LineList:
    """Collects lines in a list.

    Attributes:
        lines: the collected lines, in the order of the response.
    """

    def __init__(self) -> None:
        self.lines: list[Line] = []

    def take(self, line: Line) -> None:
        """Collect a file line, or the protocol or metadata of a later version."""
        self.lines.append(line)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHead:
    """The start of a response about a table.

    Args:
        version: from the header `Delta-Table-Version`; None without this header.
        capabilities: requested capabilities that the server has applied.
    """

    version: int | None
    protocol: ParquetProtocol | DeltaProtocol
    metadata: ParquetMetadata | DeltaMetadata
    capabilities: Capabilities


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePage(Generic[C]):
    """One page of a response about a table's files.

    Args:
        files: the collector of the file lines.
        end: the last line, if the server sends one.
    """

    head: TableHead
    files: C
    end: EndStreamAction | None = None


class PageReader(Generic[C]):
    """Reads one response, block by block.

    Args:
        headers: headers of the response.
        what: a description of the request, for error messages.
        files: collects the file lines.
        asked: the capabilities that the client requested.
    """

    def __init__(
        self, headers: Mapping[str, str], what: str, files: C, asked: Capabilities
    ) -> None:
        self._headers = headers
        self._what = what
        self._files = files
        self._asked = asked
        self._answered = parse_capabilities(headers.get(CAPABILITIES_HEADER))
        self._protocol: ParquetProtocol | DeltaProtocol | None = None
        self._metadata: ParquetMetadata | DeltaMetadata | None = None
        self._end: EndStreamAction | None = None
        self._status: QueryStatus | None = None
        self._count = 0

    def take(self, lines: list[bytes]) -> None:
        """Read the next lines.

        Raises:
            MalformedMessageError: a line is malformed or in a wrong position.
            SharingError: the response needs a newer client.
        """
        for data in lines:
            self._count += 1
            line = parse_line(data, f"{self._what}, line {self._count}")
            if self._end is not None:
                raise self._malformed("a line follows the endStreamAction")
            match line:
                case ParquetFileLine() | DeltaFileLine() if self._metadata is None:
                    raise self._malformed("expected protocol and metaData before any file")
                case ParquetFileLine() | DeltaFileLine():
                    self._files.take(line)
                case ParquetProtocol() | DeltaProtocol() if self._protocol is None:
                    self._check_protocol(line)
                    self._protocol = line
                case ParquetMetadata() | DeltaMetadata() if self._metadata is None:
                    self._metadata = line
                case EndStreamAction():
                    self._end = line
                case QueryStatus():
                    self._status = line
                case None:
                    pass  # an unknown kind of line, perhaps of a later protocol
                case _:
                    self._files.take(line)

    def page(self, *, has_end: bool) -> TablePage[C] | QueryStatus:
        """Return the page, after all lines.

        Args:
            has_end: whether such a response must end with an `endStreamAction`.

        Raises:
            MalformedMessageError: lines are missing.
            SharingError: the server stopped the response and sent a reason.
        """
        if self._status is not None:
            return self._status
        if self._protocol is None or self._metadata is None:
            raise self._malformed("expected protocol and metaData")
        if self._end is not None and self._end.error_message is not None:
            raise SharingError(
                f"cannot {self._what}: the server stopped: {printable(self._end.error_message)}"
            )
        if has_end and self._answered.include_end_stream_action and self._end is None:
            raise self._malformed("the response is incomplete: it lacks the endStreamAction")
        head = TableHead(
            version=parse_version_header(self._headers, self._what),
            protocol=self._protocol,
            metadata=self._metadata,
            capabilities=self._answered,
        )
        return TablePage(head=head, files=self._files, end=self._end)

    def _check_protocol(self, protocol: ParquetProtocol | DeltaProtocol) -> None:
        if isinstance(protocol, DeltaProtocol):
            # The client "must throw an error" for a format that it did not request (SHARE-CAP-06).
            if DELTA not in self._asked.formats:
                raise self._malformed(
                    "the response is in the format delta, which was not requested"
                )
        elif protocol.min_reader_version > READER_VERSION:
            raise SharingError(
                f"cannot {self._what}: the response needs a reader of version "
                f"{protocol.min_reader_version}, this one is of version {READER_VERSION}; "
                "upgrade deltalog"
            )

    def _malformed(self, problem: str) -> MalformedMessageError:
        return MalformedMessageError(f"{self._what}, line {self._count}: {problem}")


def parse_version_header(headers: Mapping[str, str], what: str) -> int | None:
    """Return the table version in the headers, or None if the header is missing.

    Raises:
        MalformedMessageError: the header's value is not a number.
    """
    text = headers.get(VERSION_HEADER)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise MalformedMessageError(
            f"{what}: header {VERSION_HEADER}: expected a version, found {text[:40]!r}"
        )
    return int(text)
