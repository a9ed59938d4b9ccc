"""Reading and decompressing the bodies of responses, within limits.

The limits protect the client's memory and time: the size of a line, a message, an answer and a
file, the expansion of a body, the number of pages, and the time. This module does not parse bodies.
"""

from __future__ import annotations

import re
import time
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deltalog.storage.faults import redact

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    import aiohttp

    from deltalog.errors import DeltaError

_PIECE_BYTES: Final = 1 << 18
# Up to this decompressed size, any expansion is allowed, because headers and empty lines compress
# well.
_FREE_BYTES: Final = 16 << 20
_GZIP_WINDOW: Final = 31  # for zlib: largest window (15) with a gzip header (16)


class BrokenBodyError(Exception):
    """A body is truncated or does not match its headers; another attempt may succeed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerLimits:
    """Limits for the answers of a server; a request that exceeds a limit fails.

    Args:
        message_bytes: maximum size of a page of a listing, or of a token.
        line_bytes: maximum size of one line of an answer about a table.
        answer_bytes: maximum decompressed size of all pages of an answer or a listing together.
        file_bytes: maximum size of a data file or deletion vector that is fetched whole.
        expansion: maximum ratio of decompressed to compressed size, after the first 16 MiB.
        pages: maximum number of pages of an answer or a listing.
        seconds: maximum time for an answer with all of its pages, including an asynchronous query,
            and for each request for a part of a file.
    """

    message_bytes: int = 16 << 20
    line_bytes: int = 32 << 20
    answer_bytes: int = 1 << 30
    file_bytes: int = 1 << 30
    expansion: int = 100
    pages: int = 100_000
    seconds: float = 3600


class Budget:
    """The remaining limits of one answer, which may consist of many responses.

    Args:
        limits: the limits of each answer.
        faults: the errors to raise; `refused` for an answer that exceeds a limit.
        for_file: whether the answer is a file.
    """

    def __init__(self, limits: AnswerLimits, faults: HttpFaults, *, for_file: bool = False) -> None:
        self.limits = limits
        self.faults = faults
        self.used_bytes = 0
        self._setting = "file_bytes" if for_file else "answer_bytes"
        self._most_bytes = limits.file_bytes if for_file else limits.answer_bytes
        self._pages = 0
        self._end_s = time.monotonic() + limits.seconds

    def seconds_left(self) -> float:
        """Return the remaining time in seconds."""
        return max(0.0, self._end_s - time.monotonic())

    def count_page(self, what: str) -> None:
        """Count a page of the answer.

        Raises:
            DeltaError: there are too many pages.
        """
        self._pages += 1
        if self._pages > self.limits.pages:
            raise self.excess(what, f"the answer has more than {self.limits.pages} pages", "pages")

    def check(self, num_bytes: int, what: str) -> None:
        """Raise if a response makes the answer too long.

        Raises:
            DeltaError: the answer is too long.
        """
        if self.used_bytes + num_bytes > self._most_bytes:
            problem = f"the answer is longer than {self._most_bytes} bytes"
            raise self.excess(what, problem, self._setting)

    def excess(self, what: str, problem: str, setting: str) -> DeltaError:
        """Return the error of an answer that exceeds a limit; the message names the setting."""
        return self.faults.refused(
            f"cannot {what}: {problem}; HttpOptions(limits=AnswerLimits({setting}=…)) permits more"
        )


class Reply:
    """A response whose body is not read yet.

    Attributes:
        status: the HTTP status.
        headers: the headers; names match in any case.
        num_bytes: the number of decompressed bytes of the body that were read so far.

    Args:
        response: the response of the server.
        what: the purpose of the request, to follow "cannot" in an error.
        budget: the budget of the answer.
        is_decoded: whether the session decompresses bodies itself.
    """

    def __init__(
        self, response: aiohttp.ClientResponse, what: str, budget: Budget, *, is_decoded: bool
    ) -> None:
        self._response = response
        self._what = what
        self._budget = budget
        self._is_decoded = is_decoded
        self.status: int = response.status
        self.headers: Mapping[str, str] = response.headers
        self.num_bytes: int = 0

    async def read(self) -> bytes:
        """Return the whole body of a message.

        Raises:
            DeltaError: the body exceeds the limit of a message.
        """
        return await self._whole(self._budget.limits.message_bytes, "message_bytes")

    async def read_file(self) -> bytes:
        """Return the whole body, which is a file.

        Raises:
            DeltaError: the body exceeds the limit of a file that is fetched whole.
        """
        return await self._whole(self._budget.limits.file_bytes, "file_bytes")

    async def read_start(self, num_bytes: int) -> bytes:
        """Return the first bytes of the body; the rest is not fetched."""
        found, count = [], 0
        async for piece in self.pieces():
            found.append(piece)
            count += len(piece)
            if count > num_bytes:
                break
        return b"".join(found)[:num_bytes]

    async def blocks(self) -> AsyncIterator[list[bytes]]:
        """Yield the lines of the body in batches as they arrive, without blank lines.

        Raises:
            DeltaError: a line is too long.
        """
        most, rest = self._budget.limits.line_bytes, b""
        async for data in self.pieces():
            *lines, rest = (rest + data).split(b"\n") if rest else data.split(b"\n")
            if len(rest) > most:
                raise self._budget.excess(
                    self._what, f"a line is longer than {most} bytes", "line_bytes"
                )
            if found := [line for line in lines if line.strip()]:
                yield found
        if rest.strip():
            yield [rest]

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body in short pieces, decompressed.

        Raises:
            DeltaError: the body is too long, or its compression was not requested.
            BrokenBodyError: the body is not gzip, or is truncated.
        """
        encoding = self.headers.get("Content-Encoding", "").strip().lower()
        if self._is_decoded or encoding in {"", "identity"}:
            data: AsyncIterator[bytes] = self._response.content.iter_any()
        elif encoding in {"gzip", "x-gzip"}:
            data = self._unpacked()
        else:
            raise self._budget.faults.refused(
                f"cannot {self._what}: the answer is compressed by {encoding[:40]!r}, gzip was "
                "requested"
            )
        async for piece in data:
            self.num_bytes += len(piece)
            self._budget.check(self.num_bytes, self._what)
            yield piece

    async def _whole(self, most: int, setting: str) -> bytes:
        found, count = [], 0
        async for piece in self.pieces():
            found.append(piece)
            count += len(piece)
            if count > most:
                raise self._budget.excess(
                    self._what, f"the answer is longer than {most} bytes", setting
                )
        return b"".join(found)

    async def _unpacked(self) -> AsyncIterator[bytes]:
        received, made = 0, 0
        packer = None
        async for data in self._response.content.iter_any():
            received += len(data)
            piece, rest = b"", data
            # If the last piece was full, the decompressor may still contain data.
            while rest or (packer is not None and len(piece) == _PIECE_BYTES):
                packer = packer or zlib.decompressobj(_GZIP_WINDOW)
                piece, rest = _decompress(packer, rest)
                made += len(piece)
                self._check_expansion(received, made)
                if piece:
                    yield piece
                if packer.eof:  # another gzip member may follow
                    packer = None
        if packer is not None:
            raise BrokenBodyError("the compressed answer is cut off")

    def _check_expansion(self, received: int, made: int) -> None:
        times = self._budget.limits.expansion
        if made > max(_FREE_BYTES, received * times):
            raise self._budget.excess(
                self._what, f"the compressed answer expands more than {times} times", "expansion"
            )


def _decompress(packer: zlib._Decompress, data: bytes) -> tuple[bytes, bytes]:
    """Return the next decompressed piece, and the rest of the compressed data."""
    try:
        # A short body may expand to gigabytes, so decompress at most one piece at a time.
        piece = packer.decompress(data, _PIECE_BYTES)
    except zlib.error as error:
        raise BrokenBodyError(f"the compressed answer is damaged: {error}") from None
    return piece, packer.unused_data if packer.eof else packer.unconsumed_tail


# --- The error classes of requests, which differ for sharing and catalogs


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpFaults:
    """The error classes of requests.

    Args:
        refused: the URL may not be requested, or the answer exceeds a limit.
        unavailable: no attempt received an answer in time.
        denied: the server refuses the token or issues none; has an attribute `status`.
        malformed: an answer violates its protocol.
    """

    refused: type[DeltaError]
    unavailable: type[DeltaError]
    denied: type[DeltaError]
    malformed: type[DeltaError]


# --- Making servers' messages and locations safe to show


_MOST_CHARACTERS: Final = 2000
# The patterns of logins in URLs. First `user:password@`, whose password may contain slashes (S3
# keys), then `user@`.
_LOGINS: Final = (
    (re.compile(r"(://)[^/\s:@#?]*:[^\s@#?]*@"), r"\1***@"),
    (re.compile(r"(://)[^/\s@#?]+@"), r"\1***@"),
)
# The pattern of query strings. They are hidden as a whole, because the parameters of signatures and
# tokens have many different names.
_QUERY: Final = re.compile(r"(://[^\s?#'\"]*\?)[^\s#'\"]+")


def printable(text: str, most: int = _MOST_CHARACTERS) -> str:
    """Return a server's message on one line, without control characters and direction marks."""
    return "".join(one if one.isprintable() else " " for one in text[:most]).strip()


def shown_location(location: str) -> str:
    """Return a path or URL without logins, keys and parameters, on one line."""
    for pattern, shown in _LOGINS:
        location = pattern.sub(shown, location)
    return printable(redact(_QUERY.sub(r"\1***", location)))
