"""Parse and build file names in `_delta_log`.

Unknown names are ignored, because readers must tolerate unknown files (requirement LOG-10).

Protocol: Delta Log Entries, Checkpoints (naming schemes), Log Compaction Files, Version Checksum
File
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from deltalog._util.paths import LOG_DIRECTORY, FileInfo

SIDECAR_DIRECTORY: Final = "_delta_log/_sidecars"
STAGED_DIRECTORY: Final = "_delta_log/_staged_commits"
LAST_CHECKPOINT_NAME: Final = "_last_checkpoint"
LAST_CHECKPOINT_PATH: Final = f"{LOG_DIRECTORY}/{LAST_CHECKPOINT_NAME}"

MAX_VERSION: Final = 2**63 - 1
"""The maximum version: versions are signed 64-bit integers, although file names have 20 digits."""
_DIGITS: Final = 20
_UUID: Final = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_OTHER: Final = re.compile(
    r"(?P<version>\d{20})\."
    r"(?:(?P<classic>checkpoint\.parquet)"
    r"|checkpoint\.(?P<part>\d{10})\.(?P<parts>\d{10})\.parquet"
    rf"|checkpoint\.(?P<uuid>{_UUID})\.(?:json|parquet)"
    r"|(?P<end>\d{20})\.compacted\.json"
    r"|(?P<checksum>crc))"
)


class LogFileKind(Enum):
    """The kinds of files in the log."""

    COMMIT = "commit"
    CHECKPOINT = "checkpoint"
    CHECKPOINT_PART = "checkpoint part"
    CHECKPOINT_V2 = "V2 checkpoint"
    COMPACTION = "compaction"
    CHECKSUM = "checksum"


BEGINNINGS: Final = frozenset(
    {
        LogFileKind.COMMIT,
        LogFileKind.CHECKPOINT,
        LogFileKind.CHECKPOINT_PART,
        LogFileKind.CHECKPOINT_V2,
    }
)
"""The kinds of files with which reading a version can begin: commits and checkpoints."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file of the log, and the facts in its name.

    Args:
        kind: the file's kind.
        version: the table version; for a compaction, the first version.
        info: path, size and modification time.
        part: for a multi-part checkpoint, the number of this part, counted from 1.
        parts: for a multi-part checkpoint, the number of parts.
        end_version: for a compaction, the last version.
    """

    kind: LogFileKind
    version: int
    info: FileInfo
    part: int = 0
    parts: int = 0
    end_version: int = 0


def parse_log_name(info: FileInfo) -> LogFile | None:
    """Parse the name of a file; None for a name that the protocol does not define."""
    name = info.name
    stem = name[:_DIGITS]
    # Most files are commits and checksums. Detect them without the slow pattern.
    if len(name) == _DIGITS + 5 and name.endswith(".json") and _is_number(stem):
        return LogFile(LogFileKind.COMMIT, int(stem), info)
    if len(name) == _DIGITS + 4 and name.endswith(".crc") and _is_number(stem):
        return LogFile(LogFileKind.CHECKSUM, int(stem), info)
    match = _OTHER.fullmatch(name)
    if match is None or not name.isascii():
        return None
    version = int(match["version"])
    if match["part"] is not None:
        part, parts = int(match["part"]), int(match["parts"])
        if not 1 <= part <= parts:
            return None
        return LogFile(LogFileKind.CHECKPOINT_PART, version, info, part=part, parts=parts)
    if match["end"] is not None:
        end = int(match["end"])
        if end <= version:
            return None
        return LogFile(LogFileKind.COMPACTION, version, info, end_version=end)
    if match["checksum"] is not None:
        return LogFile(LogFileKind.CHECKSUM, version, info)
    kind = LogFileKind.CHECKPOINT if match["classic"] is not None else LogFileKind.CHECKPOINT_V2
    return LogFile(kind, version, info)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def log_path(name: str) -> str:
    """Return the path of a file of the log, relative to the table's root."""
    return f"{LOG_DIRECTORY}/{name}"


def commit_name(version: int) -> str:
    """Return `00000000000000000010.json`."""
    return f"{version:020d}.json"


def commit_path(version: int) -> str:
    """Return the path of the commit of `version`, relative to the table's root."""
    return log_path(commit_name(version))


def checksum_name(version: int) -> str:
    """Return `00000000000000000010.crc`."""
    return f"{version:020d}.crc"


def checkpoint_name(version: int) -> str:
    """Return `00000000000000000010.checkpoint.parquet`."""
    return f"{version:020d}.checkpoint.parquet"


def checkpoint_part_name(version: int, part: int, parts: int) -> str:
    """Return `00000000000000000010.checkpoint.0000000001.0000000003.parquet`; part 1 is first."""
    return f"{version:020d}.checkpoint.{part:010d}.{parts:010d}.parquet"


def v2_checkpoint_name(version: int, uuid: str, suffix: str) -> str:
    """Return `00000000000000000010.checkpoint.<uuid>.<suffix>`; suffix `json` or `parquet`."""
    return f"{version:020d}.checkpoint.{uuid}.{suffix}"


def compaction_name(first: int, last: int) -> str:
    """Return `<first>.<last>.compacted.json`, 20 digits each; `first` < `last`."""
    return f"{first:020d}.{last:020d}.compacted.json"


def first_name_of(version: int) -> str:
    """Return the first possible name of a file of `version`, to start a listing."""
    return f"{version:020d}."
