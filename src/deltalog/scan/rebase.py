"""Rebase dates and timestamps from the hybrid Julian/Gregorian calendar to the ISO calendar.

Owns which files need it, and the arithmetic. Spark before 3.0 (3.1 for INT96), and later Spark in
its legacy mode, stores days and microseconds of the calendar that is Julian before 1582-10-15; the
file's footer says so. A date keeps its year, month and day, a timestamp its wall-clock time in the
writer's zone. `timestamp_ntz` is newer and was never stored this way.

Protocol: none (Spark's Parquet files)
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog.kernels import compute

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow.parquet as pq  # noqa: TID251  # for its name alone

    Adapter = Callable[[Any], pa.Array[Any]]

_VERSION: Final = b"org.apache.spark.version"
_LEGACY: Final = b"org.apache.spark.legacyDateTime"
_LEGACY_INT96: Final = b"org.apache.spark.legacyINT96"
_ZONE: Final = b"org.apache.spark.timeZone"
_FIRST_ISO_DAY: Final = -141_427
"""1582-10-15 in days since 1970: from this day on, both calendars agree."""
_DAY_US: Final = 86_400_000_000
_FIRST_JAVA_US: Final = -2_208_988_800_000_000
"""1900: before it, Java's legacy time zones have one offset only, today's standard time."""
_FIXED_ZONE: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")


@dataclass(frozen=True, slots=True)
class Rebase:
    """How the values of one file are rebased.

    Args:
        datetimes: whether dates and INT64 timestamps are in the hybrid calendar.
        int96: whether INT96 timestamps are.
        zone: the writer's time zone.
        int96_leaves: indices of the Parquet leaf columns that are INT96.
    """

    datetimes: bool
    int96: bool
    zone: str
    int96_leaves: frozenset[int]

    def adapter(self, leaf: int, kind: Any) -> Adapter | None:
        """Return a function that rebases the leaf's arrays of type `kind`; None if not needed.

        `kind` is a date, or a timestamp in microseconds; without a zone it is not rebased.
        """
        if pt.is_date32(kind):
            return rebase_dates if self.datetimes else None
        applies = self.int96 if leaf in self.int96_leaves else self.datetimes
        if not applies or not pt.is_timestamp(kind) or kind.tz is None:
            return None
        return lambda array: rebase_timestamps(array, self.zone)


def file_rebase(metadata: pq.FileMetaData, time_zone: str) -> Rebase | None:
    """Read the calendar from the footer; None (nearly every file) if no rebase is needed.

    Args:
        metadata: of the footer.
        time_zone: used if the writer did not record its own.
    """
    notes: Mapping[bytes, bytes] = metadata.metadata or {}
    if _VERSION not in notes:  # as Spark does: without its version, values are taken as they are
        return None
    version = _version(notes[_VERSION].decode(errors="replace"))
    datetimes = version < (3, 0) or _LEGACY in notes
    int96 = version < (3, 1) or _LEGACY_INT96 in notes
    if not (datetimes or int96):
        return None
    schema = metadata.schema
    return Rebase(
        datetimes=datetimes,
        int96=int96,
        zone=notes[_ZONE].decode(errors="replace") if _ZONE in notes else time_zone,
        int96_leaves=frozenset(
            leaf for leaf in range(len(schema)) if schema.column(leaf).physical_type == "INT96"
        ),
    )


def _version(text: str) -> tuple[int, ...]:
    """Major and minor version; Spark's builds have all kinds of suffixes."""
    found = re.match(r"(\d+)\.(\d+)", text)
    return (0, 0) if found is None else (int(found[1]), int(found[2]))


def rebase_dates(dates: Any) -> pa.Array[Any]:
    """Rebase dates: keep year, month and day of the hybrid calendar."""
    days = dates.view(pa.int32())
    if not _any_before(days, _FIRST_ISO_DAY):
        return dates  # type: ignore[no-any-return]  # an array
    moved = compute.add(days.cast(pa.int64()), _shift(days))
    rebased: pa.Array[Any] = moved.cast(pa.int32()).view(dates.type)
    return rebased


def rebase_timestamps(instants: Any, zone: str) -> pa.Array[Any]:
    """Rebase instants: keep the wall-clock time of the hybrid calendar in `zone`.

    Args:
        instants: microseconds, UTC.
        zone: of the writer, as Java spells it.
    """
    micros = instants.view(pa.int64())
    if not _any_before(micros, _FIRST_JAVA_US):
        return instants  # type: ignore[no-any-return]  # an array
    fixed = _fixed_offset_us(zone)
    offset_us = _winter_offset_us(zone) if fixed is None else fixed
    shown = compute.add(micros, offset_us)
    # Floor division, which Arrow's `divide` is not, for times before 1970 is that of the date.
    days = shown.view(pa.timestamp("us")).cast(pa.date32(), safe=False).view(pa.int32())
    shown = compute.add(shown, compute.multiply(_shift(days), _DAY_US))
    moved = compute.subtract(shown, offset_us) if fixed is not None else _instants(shown, zone)
    rebased: pa.Array[Any] = compute.if_else(compute.less(micros, _FIRST_JAVA_US), moved, micros)
    return rebased.view(instants.type)


def _any_before(values: Any, first: int) -> bool:
    least = compute.min(values).as_py()
    return least is not None and least < first


def _shift(days: Any) -> Any:
    """Days to add to days of the hybrid calendar to rebase them."""
    shift = pa.scalar(2, pa.int64())
    for first, later in _switches():
        shift = compute.if_else(compute.greater_equal(days, first), later, shift)
    return shift


@lru_cache(maxsize=1)
def _switches() -> tuple[tuple[int, int], ...]:
    """Days of the hybrid calendar at which its offset to ISO changes, with that offset, ascending.

    It has a 29 February in years such as 1500; from the next day on the offset is one day more.
    """
    found = []
    for century in range(1, 16):
        if century % 4 == 0:
            continue
        off = 2 - century + century // 4
        march = dt.date(100 * century, 3, 1) - dt.date(1970, 1, 1)
        found.append((march.days - off, off))
    return (*found, (_FIRST_ISO_DAY, 0))


def _fixed_offset_us(zone: str) -> int | None:
    """The offset of a zone that is a fixed offset; None for a named zone."""
    if zone in {"UTC", "GMT", "UT", "Z", "Etc/UTC", "Zulu"}:
        return 0
    found = _FIXED_ZONE.fullmatch(zone)
    if found is None:
        return None
    hours, minutes, seconds = (int(part or 0) for part in found.groups()[1:])
    sign = -1 if found[1] == "-" else 1
    return sign * (3600 * hours + 60 * minutes + seconds) * 1_000_000


@lru_cache(maxsize=64)
def _winter_offset_us(zone: str) -> int:
    months = [dt.datetime(2021, month, 1, tzinfo=dt.UTC) for month in range(1, 13)]
    instants: Any = pa.array(months, pa.timestamp("us", zone))
    shown = compute.local_timestamp(instants).view(pa.int64())
    least: int = compute.min(compute.subtract(shown, instants.view(pa.int64()))).as_py()
    return least


def _instants(shown: Any, zone: str) -> Any:
    """The instants of wall-clock times in a zone; of two instants the later.

    As in Java, a time skipped when clocks were put forward is read with the offset before that.
    """
    texts = shown.view(pa.timestamp("us"))
    near = compute.assume_timezone(texts, zone, ambiguous="latest", nonexistent="earliest")
    offset = compute.subtract(compute.local_timestamp(near).view(pa.int64()), near.view(pa.int64()))
    return compute.subtract(shown, offset)
