"""The lines of one answer about a table: put where they belong, none missing, none too many.

Owns the order of lines, which capabilities an answer may use, and how it ends. What a caller does
with the file lines is his: they are handed on as they come.

Protocol: Read Data from a Table, API Response Format in Parquet, API Response Format in Delta,
Delta Sharing Capabilities Header
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from deltalog.errors import MalformedMessageError, SharingError
from deltalog.features import FEATURES, Kind, Support
from deltalog.sharing.wire.capabilities import (
    CAPABILITIES_HEADER,
    DELTA,
    PARQUET,
    VERSION_HEADER,
    Capabilities,
    parse_capabilities,
)
from deltalog.sharing.wire.lines import (
    READER_VERSION,
    DeltaFile,
    DeltaMetadata,
    DeltaProtocol,
    EndStreamAction,
    ParquetFile,
    ParquetMetadata,
    ParquetProtocol,
    QueryStatus,
    parse_line,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalog.sharing.wire.lines import Line

READER_FEATURES: Final = frozenset(
    name.lower()
    for feature in FEATURES.values()
    if feature.kind is Kind.READER_WRITER and feature.read is Support.FULL
    for name in (feature.name, *feature.aliases)
)
"""Features of the Delta protocol that our scans honour, as the header spells them."""

CAPABILITIES: Final = Capabilities(
    response_formats=(DELTA, PARQUET),
    reader_features=READER_FEATURES,
    include_end_stream_action=True,
)


class FileCollector(Protocol):
    """Takes the file lines of one page."""

    def take(self, line: ParquetFile | DeltaFile) -> None:
        """One file."""
        ...

    def take_metadata(self, line: Line) -> None:
        """A protocol or metadata of a later version, where history was asked for."""
        ...


C = TypeVar("C", bound=FileCollector)


class LineList:
    """Keeps the lines as they are."""

    def __init__(self) -> None:
        self.lines: list[Line] = []

    def take(self, line: ParquetFile | DeltaFile) -> None:
        """One file."""
        self.lines.append(line)

    def take_metadata(self, line: Line) -> None:
        """A protocol or metadata of a later version."""
        self.lines.append(line)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHead:
    """What an answer about a table starts with.

    Args:
        version: what the header tells; None if there is no such header.
        capabilities: what the server says it took from the request's.
    """

    version: int | None
    protocol: ParquetProtocol | DeltaProtocol
    metadata: ParquetMetadata | DeltaMetadata
    capabilities: Capabilities


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePage(Generic[C]):
    """One page of an answer about a table's files.

    Args:
        files: who took the file lines.
        end: the last line, where the server sends one.
    """

    head: TableHead
    files: C
    end: EndStreamAction | None = None


class PageReader(Generic[C]):
    """Reads one answer, block by block.

    Args:
        headers: of the answer.
        what: what was asked for, for errors.
        files: takes the file lines.
        asked: the capabilities of the request.
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
        """The next lines."""
        for data in lines:
            self._count += 1
            line = parse_line(data, f"{self._what}, line {self._count}")
            if self._end is not None:
                raise self._malformed("a line follows the end of the stream")
            if isinstance(line, ParquetFile | DeltaFile):
                if self._metadata is None:
                    raise self._malformed("expected protocol and metaData before any file")
                self._files.take(line)
            elif line is not None:
                self._take_other(line)

    def _take_other(self, line: Line) -> None:
        match line:
            case ParquetProtocol() | DeltaProtocol():
                if self._protocol is None:
                    self._protocol = self._checked(line)
                else:
                    self._files.take_metadata(line)
            case ParquetMetadata() | DeltaMetadata():
                if self._metadata is None:
                    self._metadata = line
                else:
                    self._files.take_metadata(line)
            case EndStreamAction():
                self._end = line
            case QueryStatus():
                self._status = line

    def page(self, *, ends: bool) -> TablePage[C] | QueryStatus:
        """What they were, all of them.

        Args:
            ends: whether such an answer has a last line.
        """
        if self._status is not None:
            return self._status
        if self._protocol is None or self._metadata is None:
            raise self._malformed("expected protocol and metaData")
        if self._end is not None and self._end.error_message is not None:
            raise SharingError(
                f"cannot {self._what}: the server broke off: {self._end.error_message[:2000]}"
            )
        if ends and self._answered.include_end_stream_action and self._end is None:
            raise self._malformed("the answer was cut: it lacks its last line")
        head = TableHead(
            version=header_version(self._headers, self._what),
            protocol=self._protocol,
            metadata=self._metadata,
            capabilities=self._answered,
        )
        return TablePage(head=head, files=self._files, end=self._end)

    def _checked(
        self, protocol: ParquetProtocol | DeltaProtocol
    ) -> ParquetProtocol | DeltaProtocol:
        if isinstance(protocol, DeltaProtocol):
            if DELTA not in self._asked.formats:
                raise self._malformed("the answer is in the format delta, which was not asked for")
        elif protocol.min_reader_version > READER_VERSION:
            raise SharingError(
                f"cannot {self._what}: the answer needs a reader of version "
                f"{protocol.min_reader_version}, this one is of version {READER_VERSION}; "
                "upgrade deltalog"
            )
        return protocol

    def _malformed(self, problem: str) -> MalformedMessageError:
        return MalformedMessageError(f"{self._what}, line {self._count}: {problem}")


def header_version(headers: Mapping[str, str], what: str) -> int | None:
    """The table version that the headers tell; None if they tell none.

    Raises:
        MalformedMessageError: it is no number.
    """
    text = headers.get(VERSION_HEADER)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise MalformedMessageError(
            f"{what}: header {VERSION_HEADER}: expected a version, found {text[:40]!r}"
        )
    return int(text)
