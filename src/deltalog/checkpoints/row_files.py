"""Writing the Parquet files of a checkpoint, row group by row group.

Owns row groups and Parquet options. Knows nothing of what the rows mean.

Protocol: Checkpoint Schema
"""

from __future__ import annotations

import contextlib
import uuid
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa

from deltalog.actions.model import Sidecar
from deltalog.errors import DeltaError
from deltalog.log import names
from deltalog.storage.parquet_parts import leaf_columns
from deltalog.storage.parquet_sink import ParquetSink
from deltalog.storage.pool import Background

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.paths import FileInfo
    from deltalog.storage.store import Store

_FEW_ROWS: Final = 1 << 15
_GROUP_ROWS: Final = 1 << 17
_GROUP_BYTES: Final = 64 << 20
_GROUPS_AHEAD: Final = 1
# Columns with few distinct values, by Parquet path: dictionaries pay off only for these.
_REPETITIVE: Final = (
    "add.partitionValues.",
    "add.partitionValues_parsed.",
    "add.tags.",
    "add.clusteringProvider",
    "remove.partitionValues.",
)


class RowFile:
    """A Parquet file of actions; rows are buffered until they fill a row group.

    A full row group is encoded while the caller makes the rows of the next.

    Attributes:
        info: path, size and time, once closed.
        num_rows: written so far.
    """

    info: FileInfo

    def __init__(self, store: Store, path: str, schema: pa.Schema) -> None:
        self.num_rows: int = 0
        self._groups: list[list[pa.Table]] = [[]]
        self._rows = self._bytes = 0
        self._sink = ParquetSink(store, path, schema, **_file_options(schema))
        self._encoding: Background[None] = Background(_GROUPS_AHEAD)

    def write(self, rows: pa.Table) -> None:
        """Append rows."""
        self.num_rows += rows.num_rows
        self._groups[-1].append(rows)
        self._rows += rows.num_rows
        self._bytes += rows.nbytes
        if self._rows >= _GROUP_ROWS or self._bytes >= _GROUP_BYTES:
            tables = self._take()
            self._encoding.submit(lambda: self._encode(tables))

    def begin_kind(self) -> None:
        """Announce rows of another kind; if they are many, they get row groups of their own.

        Then readers of the few small actions skip the row groups of files, and the columns of files
        have no rows of other kinds.
        """
        self._groups.append([])

    def _take(self) -> list[pa.Table]:
        """Take the buffered rows, a table for each row group."""
        groups = self._groups
        if self._rows < _FEW_ROWS:
            groups = [[table for group in groups for table in group]]
        self._groups, self._rows, self._bytes = [[]], 0, 0
        return [pa.concat_tables(group) for group in groups if group]

    def _encode(self, tables: Sequence[pa.Table]) -> None:
        for table in tables:
            self._sink.write(table, row_group_size=max(1, table.num_rows))

    def close(self) -> FileInfo:
        """Write the rest, and publish the file."""
        self._encoding.wait()
        self._encode(self._take())
        self.info = self._sink.close()
        return self.info

    def abandon(self) -> None:
        """Discard the file."""
        self._encoding.cancel()
        self._sink.abandon()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()


class Sidecars:
    """Writes the sidecars of one checkpoint, each up to a number of rows."""

    def __init__(self, store: Store, schema: pa.Schema, part_rows: int) -> None:
        self.num_rows: int = 0
        self._store = store
        self._schema = schema
        self._part_rows = part_rows
        self._open: RowFile | None = None
        self._written: list[FileInfo] = []

    def write(self, rows: pa.Table) -> None:
        """Append rows."""
        self.num_rows += rows.num_rows
        while rows.num_rows:
            if self._open is None:
                path = f"{names.SIDECAR_DIRECTORY}/{uuid.uuid4()}.parquet"
                self._open = RowFile(self._store, path, self._schema)
            room = self._part_rows - self._open.num_rows
            self._open.write(rows.slice(0, room))
            rows = rows.slice(room)
            if self._open.num_rows >= self._part_rows:
                self._finish()

    def _finish(self) -> None:
        if self._open is not None:
            self._written.append(self._open.close())
            self._open = None

    def begin_kind(self) -> None:
        """See `RowFile`."""
        if self._open is not None:
            self._open.begin_kind()

    def close(self) -> list[Sidecar]:
        """Finish the last one, and return the actions that name them all."""
        self._finish()
        return [
            Sidecar(path=i.name, size_bytes=i.size_bytes, modification_time_ms=i.modified_ms)
            for i in self._written
        ]

    def abandon(self) -> None:
        """Delete the sidecars that are written: no checkpoint names them."""
        if self._open is not None:
            self._open.abandon()
        with contextlib.suppress(DeltaError):
            self._store.delete_many([info.path for info in self._written])


def _file_options(schema: pa.Schema) -> dict[str, Any]:
    """Parquet options: dictionaries and statistics only where they can be of use."""
    leaves = [leaf.path for leaf in leaf_columns(schema)]
    return {
        "compression": "snappy",
        "store_schema": False,
        "use_dictionary": [leaf for leaf in leaves if leaf.startswith(_REPETITIVE)],
        "write_statistics": [leaf for leaf in leaves if leaf != "add.stats"],
    }
