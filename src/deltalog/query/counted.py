"""Tables given to DuckDB with the number of their rows, by which it orders joins.

To DuckDB a PyArrow dataset has one row, so that a join of many tables may build their products
first: query 64 of TPC-DS took a thousand times as long as with the numbers. From version 2.0 on,
what DuckDB scans may tell them; the way is not part of its documented interface, so that without it
tables are registered as before.

Protocol: none
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from deltalog.errors import DeltaError

if TYPE_CHECKING:
    from collections.abc import Callable

Source = Any


def register(connection: Any, name: str, rows: Any, *, is_joined: bool) -> None:
    """Register rows under a name.

    Args:
        connection: of DuckDB.
        name: in queries.
        rows: an Arrow dataset, table or reader.
        is_joined: whether the query has other tables, too; for one alone nothing is counted.

    Cost: of a table that may be joined, the numbers of rows that the log has.
    """
    estimate: Callable[[], int | None] | None = getattr(rows, "estimated_rows", None)
    make = _counted() if is_joined and estimate is not None else None
    hook = getattr(connection, "_register_arrow_source", None)
    if make is None or hook is None or estimate is None:
        connection.register(name, rows)
        return
    try:
        number = estimate()
    except DeltaError:  # whoever reads the rows is told
        number = None
    hook(name, make(rows, number))


@cache
def _counted() -> Callable[[Any, int | None], Source] | None:
    """The class of what DuckDB scans, which tells a number of rows; None before DuckDB 2.0."""
    try:
        from duckdb._sources.pyarrow import (  # noqa: PLC0415  # optional
            PyArrowDatasetSource,
        )
    except ImportError:
        return None

    class CountedDataset(PyArrowDatasetSource):
        """A dataset with its number of rows."""

        def __init__(self, rows: Any, number: int | None) -> None:
            super().__init__(rows)
            self._number = number

        def rows(self) -> int | None:
            """About how many rows there are."""
            return self._number

    return CountedDataset
