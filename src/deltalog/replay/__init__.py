"""Replay: reconciles the file actions of many commits. Core: columns in, columns out, no I/O."""

from __future__ import annotations

from deltalog.replay.keys import file_keys
from deltalog.replay.state import Survivors, not_mentioned, reconcile

__all__ = ["Survivors", "file_keys", "not_mentioned", "reconcile"]
