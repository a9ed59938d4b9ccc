"""The transaction log as files: names, listings, segments, commits, hint, checksum, history."""

from __future__ import annotations
