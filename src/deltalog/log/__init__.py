"""Read the log of a table: listing, segment, replay, checkpoints, snapshot.

- `names`, `listing`, `segment`: name files, list `_delta_log`, choose the files of one version.
- `reader`, `many_commits`: parse commits, line by line or many at once.
- `replay`: decide which files are live.
- `checkpoints`, `checksum`: read and write checkpoints and version checksums.
- `snapshot`: one version of a table, which is the result of these steps.
- `history`: commit times, and the version at a timestamp.
- `context`: settings of a table, such as time zone and committer.

Other packages import from these modules, not from this package.

Protocol: Delta Log Entries, Last Checkpoint File, Log Compaction Files, Version Checksum File
"""

from __future__ import annotations

__all__: list[str] = []
