"""Checkpoints: the state of a table at one version, in one or several files.

Other packages import from the modules.

Protocol: Checkpoints, Checkpoint Schema, V2 Spec
"""

from __future__ import annotations

__all__: list[str] = []
