"""The model: what statements make of a table, in plain Python.

Owns statements and what each does to rows. Knows nothing of files, logs or stores: the state of a
version is that of the version before, changed by the statement that was committed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Row = Mapping[str, Any]

Kind = Literal[
    "append",
    "append once",
    "append wide",
    "overwrite",
    "replace where",
    "delete",
    "update",
    "upsert",
    "merge delete",
    "add column",
    "restore",
    "compact",
    "purge",
    "vacuum",
    "clean up",
    "checkpoint",
    "publish",
    "read",
]
Column = Literal["id", "p", "v"] | None
WIDE = "w"


@dataclass(frozen=True, slots=True)
class TableState:
    """One version: columns, and rows by their `id`."""

    columns: frozenset[str]
    rows: Mapping[int, Row]


@dataclass(frozen=True, slots=True)
class Condition:
    """Rows with values in a range; no column is all rows."""

    column: Column
    low: int | str = 0
    high: int | str = 0

    @property
    def sql(self) -> str | None:
        """The condition in Spark SQL."""
        if self.column is None:
            return None
        if self.low == self.high:
            return f"{self.column} = {self.low!r}"
        return f"{self.column} BETWEEN {self.low!r} AND {self.high!r}"

    def holds(self, row: Row) -> bool:
        """Whether a row is meant."""
        if self.column is None:
            return True
        value: Any = row[self.column]
        return bool(self.low <= value <= self.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """Something that a writer does, once.

    Args:
        number: of the statement in its history; commits carry it.
        kind: what is done.
        rows: new rows, or those of a source.
        condition: of deletes, updates and replacements.
        added: what an update adds to `v`.
        app_version: of an application transaction.
        reopens: whether the writer opens the table anew for it.
    """

    number: int
    kind: Kind
    rows: tuple[Row, ...] = ()
    condition: Condition = Condition(None)
    added: int = 0
    app_version: int = 0
    reopens: bool = True

    def __str__(self) -> str:
        """Name it in a trace."""
        more: list[object] = []
        if self.kind in {"delete", "update", "replace where"}:
            more.append(self.condition.sql or "all rows")
        if self.rows:
            more.append("ids " + ",".join(str(row["id"]) for row in self.rows))
        if self.added:
            more.append(f"v + {self.added}")
        if self.app_version:
            more.append(f"application version {self.app_version}")
        return f"#{self.number} {self.kind}" + "".join(f", {text}" for text in more)

    @property
    def column(self) -> str:
        """The column that it adds."""
        return f"c{self.number}"

    def applied_to(self, before: TableState, restored: TableState | None = None) -> TableState:
        """The state after it.

        Args:
            before: the state before it.
            restored: what a restore makes of the table.
        """
        if self.kind == "restore" and restored is not None:
            return restored
        columns = before.columns | self._new_columns()
        rows: Mapping[int, Row] = {
            n: {**dict.fromkeys(columns), **row}
            for n, row in before.rows.items()
            if not self._takes(row)
        }
        given = {int(row["id"]): row for row in self.rows}
        if self.kind == "update":
            rows = {
                n: {**row, "v": row["v"] + self.added} if self.condition.holds(row) else row
                for n, row in rows.items()
            }
        elif self.kind != "merge delete":
            empty: Row = dict.fromkeys(columns)
            rows = {**rows, **{n: {**rows.get(n, empty), **row} for n, row in given.items()}}
        return TableState(columns, rows)

    def _new_columns(self) -> frozenset[str]:
        """The columns that the table has afterwards, besides those before."""
        if self.kind == "append wide":
            return frozenset({WIDE})
        return frozenset({self.column} if self.kind == "add column" else ())

    def _takes(self, row: Row) -> bool:
        """Whether a row of the table goes."""
        if self.kind == "merge delete":
            return any(row["id"] == given["id"] for given in self.rows)
        if self.kind in {"overwrite", "delete", "replace where"}:
            return self.condition.holds(row)
        return False


def differences(expected: TableState, columns: Sequence[str], rows: Sequence[Row]) -> list[str]:
    """What a reader found that the model does not say; empty if they agree."""
    found: list[str] = []
    if set(columns) != expected.columns:
        found.append(f"columns {sorted(columns)}, expected {sorted(expected.columns)}")
    seen: dict[int, Row] = {}
    for row in rows:
        number = int(row["id"])
        if number in seen:
            found.append(f"row {number} twice")
        seen[number] = row
    found += [f"row {number} is missing" for number in sorted(set(expected.rows) - set(seen))]
    found += [f"row {number} is too many" for number in sorted(set(seen) - set(expected.rows))]
    found += [
        f"row {number} is {dict(seen[number])}, expected {dict(expected.rows[number])}"
        for number in sorted(set(seen) & set(expected.rows))
        if dict(seen[number]) != dict(expected.rows[number])
    ]
    return found
