"""Paths: the table's location, and the paths that actions name.

Owns decoding and encoding (exactly once), the canonical form that tells files apart, joining and
confinement. Touches no storage.

Protocol: Add File and Remove File (`path` is a URI as of RFC 2396)
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FileInfo:
    """What a listing tells about a file.

    Args:
        path: decoded, relative to the table's root unless it is elsewhere.
        size_bytes: length of the file.
        modified_ms: last change, milliseconds since 1970, UTC.
    """

    path: str
    size_bytes: int
    modified_ms: int

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]
