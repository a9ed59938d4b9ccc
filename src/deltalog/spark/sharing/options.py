"""The options of reads of shared tables (`option(…)`), in upper or lower case.

This module contains the options that only shared tables have. The others are those of direct reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from deltalog.errors import InvalidInputError
from deltalog.spark.reading.options import (
    BATCH_OPTIONS,
    STREAM_OPTIONS,
    Options,
    ReadOptions,
    StreamOptions,
    parse_any_read_options,
    parse_read_options,
    parse_stream_options,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

_PLACE: Final = ("profile", "responseFormat")
_OWN_OF_BATCHES: Final = (*_PLACE, "limitHint")
_OWN_OF_STREAMS: Final = (*_PLACE, "maxVersionsPerRpc", "queryTableVersionIntervalSeconds")
SHARED_BATCH_OPTIONS: Final = (
    *(name for name in BATCH_OPTIONS if name != "metadataColumns"),
    *_OWN_OF_BATCHES,
)
# Options that deltalog refuses for streams of shared tables, because a sharing server does not
# provide the necessary information.
_NOT_OF_SHARED_STREAMS: Final = frozenset(
    {"metadataColumns", "failOnDataLoss", "withEventTimeOrder"}
)
SHARED_STREAM_OPTIONS: Final = (
    *(name for name in STREAM_OPTIONS if name not in _NOT_OF_SHARED_STREAMS),
    *_OWN_OF_STREAMS,
)
MAX_VERSIONS: Final = 100
VERSION_INTERVAL_S: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedPlace:
    """A shared table, and the response format to request.

    Args:
        path: `<profile>#<share>.<schema>.<table>`. Without `<profile>#` if `profile` is set.
        profile: the location of the profile, if `path` does not contain it.
        response_format: `delta` or `parquet`; None lets the server choose.
    """

    path: str
    profile: str | None = None
    response_format: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedReadOptions:
    """The parsed options of a batch read of a shared table.

    Args:
        place: the table.
        read: the options that direct reads have, too.
        limit_hint: the number of rows that is sufficient for the caller. The server may omit files.
    """

    place: SharedPlace
    read: ReadOptions
    limit_hint: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedStreamOptions:
    """The parsed options of a streaming read of a shared table.

    Args:
        place: the table.
        stream: the options that direct streams have, too.
        max_versions: the maximum number of versions per request.
        version_interval_s: the minimum time between requests for the latest version, in seconds.
    """

    place: SharedPlace
    stream: StreamOptions
    max_versions: int = MAX_VERSIONS
    version_interval_s: int = VERSION_INTERVAL_S


class SharingOptions(Options):
    """The options of a read of a shared table. Options for a store are refused."""

    others = ""

    def __init__(self, given: Mapping[str, str], known: Collection[str]) -> None:
        super().__init__(given, known)
        if self.storage:
            raise InvalidInputError(
                f"cannot use the storage option {next(iter(self.storage))!r}: a sharing server "
                "signs the URLs of files, and only its profile is needed"
            )

    def place(self) -> SharedPlace:
        """Return the shared table that the option `path` names."""
        form = self.text("responseFormat")
        if form is not None and form.strip().lower() not in {"delta", "parquet"}:
            raise InvalidInputError(f"cannot use responseFormat={form!r}: expected delta, parquet")
        return SharedPlace(
            path=self.text("path") or "",
            profile=self.text("profile"),
            response_format=None if form is None else form.strip().lower(),
        )

    def positive(self, name: str) -> int | None:
        """Return the value of an option as a whole number of 1 or more; None if it is not set."""
        number = self.number(name)
        if number == 0:
            raise InvalidInputError(f"cannot use {name}=0: expected 1 or more")
        return number

    def seconds(self, name: str) -> int | None:
        """Return the value of an option as a number of seconds. The value may end in `s`."""
        text = (self.text(name) or "").strip().lower().removesuffix("s").strip()
        if self.text(name) is None:
            return None
        if not text.isdecimal():
            raise InvalidInputError(
                f"cannot use {name}={self.text(name)!r}: expected seconds, such as 60"
            )
        return int(text)


def parse_shared_read_options(given: Mapping[str, str]) -> SharedReadOptions:
    """Parse the options of a batch read.

    Raises:
        InvalidInputError: an option is unknown or invalid, or options contradict each other.
    """
    return _read_options(given, SHARED_BATCH_OPTIONS, parse_read_options)


def parse_any_shared_options(given: Mapping[str, str]) -> SharedReadOptions:
    """Parse the options of a batch or streaming read, if only the schema of the read is needed.

    Raises:
        InvalidInputError: an option is unknown or invalid.
    """
    known = {*SHARED_BATCH_OPTIONS, *SHARED_STREAM_OPTIONS}
    return _read_options(given, known, parse_any_read_options)


def parse_shared_stream_options(given: Mapping[str, str]) -> SharedStreamOptions:
    """Parse the options of a streaming read.

    Raises:
        InvalidInputError: an option is unknown or invalid, or options contradict each other.
    """
    options = SharingOptions(given, SHARED_STREAM_OPTIONS)
    interval = options.seconds("queryTableVersionIntervalSeconds")
    return SharedStreamOptions(
        place=options.place(),
        stream=parse_stream_options(_others(given)),
        max_versions=options.positive("maxVersionsPerRpc") or MAX_VERSIONS,
        version_interval_s=VERSION_INTERVAL_S if interval is None else interval,
    )


def _read_options(
    given: Mapping[str, str],
    known: Collection[str],
    parse: Callable[[Mapping[str, Any]], ReadOptions],
) -> SharedReadOptions:
    options = SharingOptions(given, known)
    return SharedReadOptions(
        place=options.place(), read=parse(_others(given)), limit_hint=options.positive("limitHint")
    )


def _others(given: Mapping[str, str]) -> dict[str, str]:
    """Return the options that direct reads have, too."""
    own = {name.lower() for name in (*_OWN_OF_BATCHES, *_OWN_OF_STREAMS)}
    return {name: value for name, value in given.items() if name.lower() not in own}
