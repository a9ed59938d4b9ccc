"""What users hold: `DeltaTable`, `write_deltalake`, and what belongs to them.

Each method is a few lines: it takes what users write, stages a verb of `operations`, and commits.
`reading` asks about one snapshot, `delta_table` adds what changes the table.
"""

from __future__ import annotations

from deltalog.table.creating import table_defaults
from deltalog.table.delta_table import DeltaTable
from deltalog.table.write import write_deltalake, write_files

__all__ = ["DeltaTable", "table_defaults", "write_deltalake", "write_files"]
