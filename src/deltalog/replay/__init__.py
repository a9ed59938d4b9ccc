"""Replay: what is left of the actions of many commits. Pure; columns in, columns out."""

from __future__ import annotations

from deltalog.replay.keys import file_keys
from deltalog.replay.state import Survivors, not_mentioned, reconcile

__all__ = ["Survivors", "file_keys", "not_mentioned", "reconcile"]
