"""The transaction log as files: names, listings, segments, commits, hint, checksum, history.

Protocol: Delta Log Entries, Last Checkpoint File, Log Compaction Files, Version Checksum File
"""

from __future__ import annotations

from deltalog.log.checksum import VersionChecksum, parse_checksum
from deltalog.log.hint import LastCheckpointHint, checksum_of, parse_hint, read_hint
from deltalog.log.history import (
    file_times_ms,
    find_version_at,
    read_commit_time_ms,
    read_history,
)
from deltalog.log.listing import list_commits, list_log, list_newer
from deltalog.log.names import LogFile, LogFileKind, parse_log_name
from deltalog.log.reader import CommitTable, parse_commits, read_commits
from deltalog.log.segment import (
    CheckpointFiles,
    CheckpointKind,
    LogListing,
    LogSegment,
    build_segment,
    sort_listing,
)

__all__ = [
    "CheckpointFiles",
    "CheckpointKind",
    "CommitTable",
    "LastCheckpointHint",
    "LogFile",
    "LogFileKind",
    "LogListing",
    "LogSegment",
    "VersionChecksum",
    "build_segment",
    "checksum_of",
    "file_times_ms",
    "find_version_at",
    "list_commits",
    "list_log",
    "list_newer",
    "parse_checksum",
    "parse_commits",
    "parse_hint",
    "parse_log_name",
    "read_commit_time_ms",
    "read_commits",
    "read_hint",
    "read_history",
    "sort_listing",
]
