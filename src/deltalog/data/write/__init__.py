"""Writing rows to data files, and returning add actions for them; all workers of writes use this.

`write_files` runs these steps:

- `source`: opens rows of any kind as Arrow batches.
- `enforce`: completes and checks rows; `fit` matches columns, `rules` evaluates SQL rules.
- `enforce`: completes and checks rows. `fit` matches columns, `rules` evaluates SQL rules.
- `encode`: converts logical rows to the columns of data files.
- `rows_to_files`, `open_files`: write batches to Parquet files, and collect statistics.

Other modules:

- `files`: `write_files`, `FileWriter`, and writes of several callers together.
- `options`: Parquet options, and `WriteSpec`, the settings of a write.
- `written`: the result, `WrittenFiles`.
- `spliced_files`, `patched_groups`, `copied_stats`: copy row groups of existing files.
- `adopted_files`: describes files that another writer has written.

`WrittenFiles` can be pickled or serialised as JSON, and committed by another process. Until the
commit, the files do not belong to the table. This package does not depend on transactions.

Protocol: Data Files, Add File and Remove File, Add CDC File, Requirements for Writers
"""

from __future__ import annotations

from deltalog.data.write.changes import ChangeWriter
from deltalog.data.write.enforce import Enforcer
from deltalog.data.write.files import FileWriter, write_files
from deltalog.data.write.options import (
    BloomFilterProperties,
    ColumnProperties,
    WriterProperties,
    WriteSpec,
)
from deltalog.data.write.source import is_rereadable, open_batches
from deltalog.data.write.written import WrittenFiles

__all__ = [
    "BloomFilterProperties",
    "ChangeWriter",
    "ColumnProperties",
    "Enforcer",
    "FileWriter",
    "WriteSpec",
    "WriterProperties",
    "WrittenFiles",
    "is_rereadable",
    "open_batches",
    "write_files",
]
