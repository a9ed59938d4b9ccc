"""Who is scored: deltalog and its peers, each by the way of its own that reads most tables.

Protocol: none
"""

from __future__ import annotations

import importlib.metadata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.errors import InvalidInputError
from deltalog.table import DeltaTable

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A library that reads tables.

    Args:
        name: in the board.
        package: whose version is shown.
        how: what is called, for the board's caption.
        rows: all rows of a version of the table at a path; None is the latest.
        changes: the change data feed between two versions, both included; None if there is none.
    """

    name: str
    package: str
    how: str
    rows: Callable[[str, int | None], pa.Table]
    changes: Callable[[str, int, int], pa.Table] | None = None

    @property
    def title(self) -> str:
        """Name and version."""
        return f"{self.name} {importlib.metadata.version(self.package)}"


def find_reader(name: str) -> Reader:
    """The reader of a name.

    Raises:
        InvalidInputError: there is none, or its package is not installed.
    """
    if name not in READERS:
        raise InvalidInputError(f"cannot score {name!r}: expected one of {sorted(READERS)}")
    reader = READERS[name]
    try:
        importlib.metadata.version(reader.package)
    except importlib.metadata.PackageNotFoundError:
        raise InvalidInputError(
            f"cannot score {name!r}: install it first, `pip install {reader.package}`"
        ) from None
    return reader


def _rows(path: str, version: int | None) -> pa.Table:
    return DeltaTable(path, version=version).to_pyarrow_table()


def _changes(path: str, first: int, last: int) -> pa.Table:
    return pa.table(DeltaTable(path).load_cdf(starting_version=first, ending_version=last))


def _deltalake(path: str, version: int | None) -> Any:
    import deltalake  # noqa: PLC0415  # a peer, only if it is asked for

    return deltalake.DeltaTable(path, version=version)


def _deltalake_changes(path: str, first: int, last: int) -> pa.Table:
    table = _deltalake(path, None)
    return pa.table(table.load_cdf(starting_version=first, ending_version=last))


def _polars(path: str, version: int | None) -> pa.Table:
    import polars as pl  # noqa: PLC0415  # a peer, only if it is asked for

    return pl.scan_delta(path, version=version).collect().to_arrow()


READERS: Final = {
    reader.name: reader
    for reader in (
        Reader(
            name="deltalog",
            package="deltalog",
            how="`DeltaTable.to_pyarrow_table`, `load_cdf`",
            rows=_rows,
            changes=_changes,
        ),
        Reader(
            name="deltalake",
            package="deltalake",
            how="`DeltaTable.scan`, `load_cdf`",
            rows=lambda path, version: pa.table(_deltalake(path, version).scan()),
            changes=_deltalake_changes,
        ),
        Reader(
            name="deltalake-pyarrow",
            package="deltalake",
            how="`DeltaTable.to_pyarrow_table`",
            rows=lambda path, version: _deltalake(path, version).to_pyarrow_table(),
        ),
        Reader(name="polars", package="polars", how="`polars.scan_delta`", rows=_polars),
    )
}
