"""Write rows to data files, and return their add actions: the worker's side of every write.

`files.write_files` runs all steps: `source` (any kind of rows → batches), `enforce` (the table's
schema, constraints, generated, identity and default columns), `encode` (logical → physical),
`rows_to_files` and `open_files` (batches → Parquet files and statistics). `rules` evaluates the
rules that are SQL. `spliced_files` writes files with copied row groups, and `adopted_files`
describes files that another writer has made. The result, `WrittenFiles`, can be pickled or
serialised as JSON and committed by another process; until then the files are not part of the
table. The package does not depend on transactions.

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
