"""Rows that users pass to SQL under a name: frames, streams, relations and Python values.

Protocol: none
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from deltalog._util.argument_types import kind_of
from deltalog.data.write.polars_frames import exportable, frame_kind, native_frame
from deltalog.data.write.source import RereadableRows, advice_for, open_batches
from deltalog.errors import InvalidInputError

_EXPECTED = (
    "a table, a data frame, a DuckDB relation, Arrow data, a location, a list of dicts or a dict "
    "of lists"
)


class OnceRows:
    """Rows that can be read only once. The second attempt to read them raises an error.

    Args:
        name: the name of the rows in statements.
        reader: the stream of the rows.
    """

    def __init__(self, name: str, reader: pa.RecordBatchReader) -> None:
        self._name = name
        self._reader: pa.RecordBatchReader | None = reader

    def taken(self) -> pa.RecordBatchReader:
        """Return the rows.

        Raises:
            InvalidInputError: the rows were already read.
        """
        reader, self._reader = self._reader, None
        if reader is None:
            raise InvalidInputError(
                f"cannot read {self._name} again: it is a stream, and its rows were already read; "
                "register a table, such as reader.read_all()"
            )
        return reader


@dataclass(frozen=True, slots=True)
class RelationRows(RereadableRows):
    """The rows of a DuckDB relation, whose query runs again each time the rows are opened.

    The relation belongs to the user's connection. DuckDB cannot read it on another one.
    """

    relation: Any

    @property
    def columns(self) -> list[str]:
        """Return the names of the columns."""
        return list(self.relation.columns)

    def opened(self) -> pa.RecordBatchReader:
        """Run the relation's query, and return its rows."""
        return open_batches(self.relation)


def local_rows(name: str, data: Any) -> Any:
    """Return rows that were passed under a name, in a form that DuckDB can read, or `OnceRows`.

    Raises:
        InvalidInputError: the value has no rows.
    """
    if isinstance(data, list | dict | tuple):
        return open_batches(data).read_all()
    if isinstance(data, pa.RecordBatchReader):
        return OnceRows(name, data)
    if type(data).__name__ == "DuckDBPyRelation":
        return RelationRows(data)
    if type(native_frame(data)).__name__ != "Series":  # Series export one column, not a table
        if _is_readable(data):
            return exportable(data)
        if hasattr(data, "__arrow_c_array__"):
            return open_batches(data).read_all()
        if isinstance(data, Iterator):
            return OnceRows(name, open_batches(data))
    raise InvalidInputError(
        f"cannot read {name} in SQL: it is {kind_of(data)}; expected {_EXPECTED}"
        f"{advice_for(data) or '; pass a value as parameters=…'}"
    )


def _is_readable(data: Any) -> bool:
    if frame_kind(native_frame(data)) or hasattr(data, "__arrow_c_stream__"):
        return True
    # Datasets and scanners of pyarrow, which is slow to import
    return hasattr(data, "to_batches") and (hasattr(data, "scanner") or hasattr(data, "to_reader"))
