"""What users hold: `DeltaTable`, `write_deltalake`, and what belongs to them.

Each method is a few lines: it takes what users write, stages a verb of `operations`, and commits.
`DeltaTable` gathers its verbs from `reading`, `writing`, `changing` and `care`.
"""

from __future__ import annotations

from deltalog.table.convert import convert_to_deltalake
from deltalog.table.creating import table_defaults
from deltalog.table.delta_table import DeltaTable
from deltalog.table.write import write_deltalake, write_files

__all__ = ["DeltaTable", "convert_to_deltalake", "table_defaults", "write_deltalake", "write_files"]
