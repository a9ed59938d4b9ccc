"""Checkpoints: the state of the table at one version, in one or several files.

Protocol: Checkpoints, Checkpoint Schema, V2 Spec
"""

from __future__ import annotations

__all__: list[str] = []
