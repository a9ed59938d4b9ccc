"""Describing local data files that another writer has written, so that they can be committed.

Protocol: Add File and Remove File, Per-file Statistics
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from deltalog.data.write.copied_stats import collect_copied
from deltalog.data.write.encode import Layout
from deltalog.data.write.files import written_files
from deltalog.data.write.open_files import FilePlan, FinishedFile
from deltalog.errors import DataFileUnreadableError
from deltalog.protocol.stats.collect import encode_stats
from deltalog.storage.atomic import sync_file
from deltalog.storage.parquet.groups import StoredFooter, read_stored
from deltalog.storage.parquet.parts import Leaf, leaf_columns
from deltalog.storage.parquet.reader import ParquetReader, open_parquet
from deltalog.storage.pool import map_in_pool
from deltalog.storage.store import native_path, syncs_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog._util.paths import FileInfo
    from deltalog.data.write.options import WriteSpec
    from deltalog.data.write.written import WrittenFiles


def describe_staged(spec: WriteSpec, files: Sequence[FileInfo]) -> WrittenFiles:
    """Return complete files of a staging directory as `WrittenFiles`.

    `take_staged` must move the files to the table before the commit.

    Args:
        spec: the write spec. The table must not have partition columns or column mapping.
        files: files of one staging directory. They have the table's columns, and their writer does
            not truncate bounds. Files without rows are left out.

    Raises:
        DataFileUnreadableError: a file is damaged, or has other columns than the table.

    Cost: reads the footers concurrently; decodes columns without exact bounds, one column of one
        row group at a time; syncs the files to the disk if the store syncs.
    """
    layout = Layout(spec.configuration)
    plan = FilePlan(spec=spec, layout=layout)
    schema = layout.arrow_schema(with_row_ids=False)

    def finished(numbered: tuple[int, FileInfo]) -> FinishedFile | None:
        return _finished(plan, schema, *numbered)

    found = map_in_pool(finished, list(enumerate(files)))
    return written_files(spec, [one for one in found if one is not None])


def _finished(
    plan: FilePlan, schema: pa.Schema, number: int, file: FileInfo
) -> FinishedFile | None:
    store, stats = plan.store, plan.collector()
    reader = open_parquet(store, file.path, size_bytes=file.size_bytes)
    try:
        if not reader.metadata.num_rows:
            return None
        footer = _footer(file, reader, schema)
        groups = range(len(footer.groups))
        collect_copied(stats, reader, footer, groups, schema=schema, cuts_nothing=True)
    finally:
        reader.close()
    native = native_path(store, file.path)
    if native is not None and syncs_files(store):
        sync_file(native)
    return FinishedFile(
        number=number,
        path=file.name,
        values=(),
        num_rows=stats.num_records,
        size_bytes=file.size_bytes,
        modified_ms=file.modified_ms,
        stats=encode_stats(stats.finish()),
    )


def _footer(file: FileInfo, reader: ParquetReader, schema: pa.Schema) -> StoredFooter:
    """Return a file's footer.

    Raises:
        DataFileUnreadableError: the file has other columns than the table, or is encrypted.
    """
    stored = read_stored(reader.stored_footer(), file.size_bytes)
    found, expected = (list(leaf_columns(one)) for one in (reader.arrow_schema, schema))
    columns = reader.metadata.schema
    if stored is None:
        raise DataFileUnreadableError(
            f"cannot add {file.path!r} to the table: it is encrypted, or in several parts"
        )
    if len(found) != len(expected) or not all(
        _is_same(*pair, is_int96=columns.column(leaf).physical_type == "INT96")
        for leaf, pair in enumerate(zip(found, expected, strict=True))
    ):
        raise DataFileUnreadableError(
            f"cannot add {file.path!r} to the table: expected the columns "
            f"{', '.join(f'{one.path} {one.type}' for one in expected)}, found "
            f"{', '.join(f'{one.path} {one.type}' for one in found)}"
        )
    return stored


def _is_same(found: Leaf, expected: Leaf, *, is_int96: bool) -> bool:
    if found[:2] != expected[:2]:
        return False
    if is_int96:  # INT96 has no logical type, but means a timestamp with zone
        return expected.type == pa.timestamp("us", "UTC")
    return found.type == expected.type
