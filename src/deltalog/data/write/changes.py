"""Write changed rows as change data files.

Protocol: Change Data Files, Add CDC File
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import pyarrow as pa

from deltalog._util.kernels import Array
from deltalog.data.write.encode import Layout
from deltalog.data.write.files import partition_values
from deltalog.data.write.open_files import CHANGE_DIRECTORY, FilePlan
from deltalog.data.write.rows_to_files import RowsToFiles, WriteLimits
from deltalog.protocol.actions import AddCDCFile
from deltalog.schema.metadata_columns import CHANGE_TYPE

if TYPE_CHECKING:
    from deltalog.data.write.options import WriteSpec


class ChangeWriter:
    """Writes changed rows to change data files; on error, the context manager deletes its files.

    Args:
        spec: of the table.
    """

    def __init__(self, spec: WriteSpec) -> None:
        self._spec = spec
        self._layout = Layout(spec.configuration, extra=[pa.field(CHANGE_TYPE, pa.string())])
        self._parts = RowsToFiles(
            FilePlan(
                spec=spec,
                layout=self._layout,
                directory=CHANGE_DIRECTORY,
                prefix="cdc",
                has_stats=False,
            ),
            WriteLimits(),
        )

    def write(self, batch: pa.RecordBatch, change_type: str | Array) -> None:
        """Add changed rows.

        Args:
            batch: in the table's logical schema.
            change_type: `insert`, `update_preimage`, `update_postimage` or `delete`; one for all
                rows, or one per row.
        """
        if isinstance(change_type, str):
            change_type = pa.repeat(pa.scalar(change_type), batch.num_rows)
        self._parts.write(self._layout.encode(batch, extra=[change_type]), batch)

    def finish(self) -> tuple[AddCDCFile, ...]:
        """Close all files, and return their `cdc` actions."""
        return tuple(
            AddCDCFile(
                path=part.path,
                partition_values=partition_values(self._spec, part),
                size_bytes=part.size_bytes,
            )
            for part in self._parts.finish()
        )

    def abandon(self) -> None:
        """Delete the files that were written."""
        self._parts.abandon()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.abandon()
