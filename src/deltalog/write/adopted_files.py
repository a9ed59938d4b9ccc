"""Take local data files that another writer made for a table: their statistics and their names.

Such a writer gets a directory of its own below the table's root, whose names begin with a dot: no
reader looks into it, and a vacuum deletes what a writer has left there that was cut off.

Protocol: Add File and Remove File, Per-file Statistics
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from deltalog.errors import DataFileUnreadableError, InternalError, StorageError
from deltalog.stats import encode_stats
from deltalog.storage.atomic import sync_directory, sync_file, take_name
from deltalog.storage.parquet import open_parquet
from deltalog.storage.parquet_groups import read_stored
from deltalog.storage.parquet_parts import leaf_columns
from deltalog.storage.pool import map_in_pool
from deltalog.storage.store import native_path, syncs_files
from deltalog.write.copied_stats import collect_copied
from deltalog.write.encode import Layout
from deltalog.write.files import written_files
from deltalog.write.open_files import FilePlan, FinishedFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.paths import FileInfo
    from deltalog.storage.parquet import ParquetReader
    from deltalog.storage.parquet_groups import StoredFooter
    from deltalog.storage.parquet_parts import Leaf
    from deltalog.storage.store import Store
    from deltalog.write.spec import WriteSpec
    from deltalog.write.written import WrittenFiles


def stage_files(spec: WriteSpec, files: Sequence[FileInfo]) -> WrittenFiles:
    """Return what a commit adds of complete files, once `take_files` has moved them.

    Args:
        spec: of the write; the table has no partition columns, and its columns have the same names
            in files.
        files: of one staging directory, with the table's columns, by a writer that cuts no bounds
            off. Those without rows are left out.

    Raises:
        DataFileUnreadableError: a file is damaged, or has other columns than the table.

    Cost: the footer of each file, several at a time; columns without exact bounds are decoded. The
    files are on the disk afterwards, unless the store waits for none.
    """
    layout = Layout(spec.configuration)
    plan = FilePlan(spec=spec, layout=layout)
    schema = layout.arrow_schema(with_row_ids=False)

    def finished(numbered: tuple[int, FileInfo]) -> FinishedFile | None:
        return _finished(plan, schema, *numbered)

    found = map_in_pool(finished, list(enumerate(files)))
    return written_files(spec, [one for one in found if one is not None])


def take_files(store: Store, directory: str, written: WrittenFiles) -> None:
    """Move files from a staging directory to the table's root, and delete all else that is in it.

    Args:
        store: of the table, with paths of the operating system.
        directory: of `staging_directory`.
        written: of `stage_files`.

    Raises:
        StorageError: there is no such directory.
        OSError: a file cannot be moved; those that were are for the caller to delete.
    """
    root, staged = _native(store, ""), _native(store, directory)
    if not Path(staged).is_dir():
        raise StorageError(
            f"cannot take the files of {directory!r} into {store.root}: the writer has put them on "
            "another machine; keep the table where all of them reach it"
        )
    for path in written.paths:
        take_name(f"{staged}/{path}", f"{root}/{path}", syncs=False)
    if syncs_files(store):
        sync_directory(root)
    # An attempt that Spark has given up may put a file there meanwhile: a vacuum deletes it.
    shutil.rmtree(staged, ignore_errors=True)


def discard_staged(store: Store, directory: str) -> None:
    """Delete a staging directory with all that is in it, as far as it can be deleted."""
    shutil.rmtree(_native(store, directory), ignore_errors=True)


def _native(store: Store, path: str) -> str:
    native = native_path(store, path)
    if native is None:
        raise InternalError(f"staged files in {store.root}, whose files have no local paths")
    return native


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
    if syncs_files(store):
        sync_file(_native(store, file.path))
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
            f"cannot take {file.path!r} into the table: it is encrypted, or in several parts"
        )
    if len(found) != len(expected) or not all(
        _is_same(*pair, is_int96=columns.column(leaf).physical_type == "INT96")
        for leaf, pair in enumerate(zip(found, expected, strict=True))
    ):
        raise DataFileUnreadableError(
            f"cannot take {file.path!r} into the table: expected the columns "
            f"{', '.join(f'{one.path} {one.type}' for one in expected)}, found "
            f"{', '.join(f'{one.path} {one.type}' for one in found)}"
        )
    return stored


def _is_same(found: Leaf, expected: Leaf, *, is_int96: bool) -> bool:
    if found[:2] != expected[:2]:
        return False
    if is_int96:  # it has no annotation, and is always an instant
        return expected.type == pa.timestamp("us", "UTC")
    return found.type == expected.type
