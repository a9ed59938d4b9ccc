"""Rows that users pass to SQL under a name: frames, streams, relations and Python values.

Protocol: none
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, TypeVar

import pyarrow as pa

from deltalog._util.argument_types import kind_of
from deltalog._util.escaping import name_key
from deltalog.data.write.polars_frames import exportable, frame_kind, native_frame
from deltalog.data.write.source import RereadableRows, advice_for, open_batches
from deltalog.errors import InvalidInputError
from deltalog.query.columns import column_names

_T = TypeVar("_T")
_EXPECTED = (
    "a table, a dataframe, a DuckDB relation, Arrow data, a location, a list of dicts or a dict "
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

    name: str
    relation: Any

    @property
    def columns(self) -> list[str]:
        """Return the names of the columns."""
        return self._read(lambda relation: list(relation.columns))

    def opened(self) -> pa.RecordBatchReader:
        """Run the relation's query, and return its rows."""
        return self._read(open_batches)

    def _read(self, read: Callable[[Any], _T]) -> _T:
        """Return a result of reading the relation.

        Raises:
            InvalidInputError: DuckDB cannot read it, for example because its connection is closed.
        """
        import duckdb  # noqa: PLC0415  # an optional dependency

        try:
            return read(self.relation)
        except duckdb.Error as error:
            raise InvalidInputError(
                f"cannot read {self.name}, a DuckDB relation, in SQL: {error}; its connection must "
                "stay open and its tables must exist; or pass relation.to_arrow_table()"
            ) from error


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
        return RelationRows(name, data)
    if type(native_frame(data)).__name__ != "Series":  # Series export one column, not a table
        if _is_readable(data):
            _check_names(name, data)
            return exportable(data)
        if hasattr(data, "__arrow_c_array__"):
            return open_batches(data).read_all()
        if isinstance(data, Iterator):
            return OnceRows(name, open_batches(data))
    is_value = data is None or isinstance(data, bool | int | float | Decimal | date)
    advice = "" if is_value else advice_for(data)
    raise InvalidInputError(
        f"cannot read {name} in SQL: it is {kind_of(data)}; expected {_EXPECTED}"
        f"{advice or f'; pass a value as a parameter, as in sql(statement, {{{name!r}: value}})'}"
    )


def _check_names(name: str, data: Any) -> None:
    """Refuse columns with the same name, which DuckDB would rename."""
    if frame_kind(native_frame(data)) is not None:
        return  # a Polars frame has no duplicates, and a LazyFrame must not be planned here
    names = column_names(data)
    repeated = {key for key, count in Counter(map(name_key, names)).items() if count > 1}
    if repeated:
        shown = ", ".join(repr(one) for one in names if name_key(one) in repeated)
        raise InvalidInputError(
            f"cannot read {name} in SQL: columns have the same name, ignoring case: {shown}; "
            "rename one of them"
        )


def _is_readable(data: Any) -> bool:
    if frame_kind(native_frame(data)) or hasattr(data, "__arrow_c_stream__"):
        return True
    # Datasets and scanners of pyarrow, which is slow to import
    return hasattr(data, "to_batches") and (hasattr(data, "scanner") or hasattr(data, "to_reader"))
