"""Checkpoints: the state of a table at one version, in one or several files.

- `layout`: read one file of a checkpoint, Parquet or JSON.
- `reader`: read a whole checkpoint, column by column.
- `rows`: actions as rows of a checkpoint, and the Parquet files of these rows.
- `writer`: write a checkpoint in any layout.

Other packages import from the modules.

Protocol: Checkpoints, Checkpoint Schema, V2 Spec
"""

from __future__ import annotations

__all__: list[str] = []
