"""The read set of a transaction: what no concurrent commit may change, and how strictly.

Protocol: none; Delta Spark's optimistic transactions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa

if TYPE_CHECKING:
    from deltalog.expressions import Expression

SERIALIZABLE: Final = "Serializable"
WRITE_SERIALIZABLE: Final = "WriteSerializable"
SNAPSHOT_ISOLATION: Final = "SnapshotIsolation"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSet:
    """Rows and applications that a transaction depends on.

    Args:
        predicates: each resolved against the snapshot's schema: matching rows were read.
        whole_table: whether every row was read, including rows that others may have added.
        files: paths of files whose rows were read, as they stand in the log (encoded).
        app_ids: applications whose recorded version was read.
        is_row_local: whether each row read decided about that row alone (`row_level`).
    """

    predicates: tuple[Expression, ...] = ()
    whole_table: bool = False
    files: pa.StringArray | None = None
    app_ids: frozenset[str] = frozenset()
    is_row_local: bool = True

    @property
    def is_blind(self) -> bool:
        """Whether no row was read, so that no concurrent change can make the result wrong."""
        return not self.predicates and not self.whole_table and self.files is None

    def with_predicate(self, predicate: Expression | None) -> ReadSet:
        """The read set with the matching rows added; None is all rows."""
        if predicate is None:
            return replace(self, whole_table=True)
        return replace(self, predicates=(*self.predicates, predicate))

    def with_files(self, files: pa.Table) -> ReadSet:
        """The read set with the rows of files added.

        Args:
            files: rows of `snapshot.files`, at least with `path`.
        """
        paths: Any = files.column("path")
        if self.files is not None:
            paths = pa.chunked_array([self.files, *paths.chunks], pa.string())
        return replace(self, files=cast("pa.StringArray", _one_piece(paths)))

    def with_app(self, app_id: str) -> ReadSet:
        """The read set with an application's recorded version added."""
        return replace(self, app_ids=self.app_ids | {app_id})


def _one_piece(column: pa.ChunkedArray[Any]) -> pa.Array[Any]:
    whole: Any = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):  # pyarrow before 25 keeps none or several chunks
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], column.type)
    return cast("pa.Array[Any]", whole)
