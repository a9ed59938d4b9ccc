"""Writers: each carries out its statements on the table, one after the other, in one process.

Owns how a statement of the model is done with deltalog, and what its writer learns of it.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

import pyarrow as pa

from deltalog.context import TableContext
from deltalog.engine import LocalEngine
from deltalog.errors import CommitOutcomeUnknownError, DeltaError
from deltalog.schema import Field
from deltalog.schema.types import LONG
from deltalog.table import DeltaTable
from deltalog.table.write import write_deltalake
from deltalog.testing.simulation.model import WIDE, TableState
from deltalog.testing.simulation.workers import SteppedCatalog, SteppedStore, Worker
from deltalog.transaction import AppTransaction, CatalogCommitter, CommitProperties

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from deltalog.catalog import Committer
    from deltalog.storage.store import Store
    from deltalog.testing.simulation.model import Row, Statement
    from deltalog.testing.simulation.process import Machine
    from deltalog.testing.simulation.store import SimulatedCatalog

_TYPES: Final[Mapping[str, pa.DataType]] = {
    "id": pa.int64(),
    "p": pa.string(),
    "v": pa.int64(),
    WIDE: pa.int64(),
}


@dataclass(slots=True, kw_only=True)
class StatementRun:
    """What is known of a statement: by its writer, and by who has watched the writer.

    Args:
        statement: what was to be done.
        state: `unknown` if the writer died, or was told that nobody can know.
        error: that its writer was told.
        version: that the writer's table showed afterwards.
        target: the version that was restored or read.
        found: by a read, the version, its columns and its rows.
        is_harmed: whether harm came to a call of it.
        started_ms: when it began, true time.
    """

    statement: Statement
    state: Literal["waiting", "running", "done", "failed", "unknown"] = "waiting"
    error: DeltaError | None = None
    version: int | None = None
    target: int | None = None
    found: tuple[int, Sequence[str], Sequence[Row]] | None = None
    is_harmed: bool = False
    started_ms: int = 0


@dataclass(slots=True, kw_only=True)
class Writer:
    """One process with its statements.

    Args:
        number: of the writer.
        outcomes: of its statements, in order.
        machine: where it runs.
        catalog: of the table, if it has one.
        begins: told of every statement that begins, and chooses the version that it goes back to.
    """

    number: int
    outcomes: list[StatementRun]
    machine: Machine
    catalog: SimulatedCatalog | None
    begins: Callable[[StatementRun], None]
    worker: Worker = field(init=False)
    current: StatementRun = field(init=False)
    has_seen_night: bool = False

    def __post_init__(self) -> None:
        """Begin with the first statement."""
        self.current = self.outcomes[0]

    @property
    def is_at_commit(self) -> bool:
        """Whether its next call may make a version."""
        verb, paths = self.worker.at or ("", ())
        return verb == "propose" or (verb == "put_if_absent" and paths[0].startswith("_delta_log/"))

    def work(self, store: SteppedStore) -> None:
        """Carry out the statements; the store's calls are the steps."""
        catalog = None if self.catalog is None else SteppedCatalog(self.catalog, store.worker)
        committer = None if catalog is None else CatalogCommitter(catalog)
        table: DeltaTable | None = None
        with self.machine.on():
            for outcome in self.outcomes:
                self.current = outcome
                self.begins(outcome)
                try:
                    if table is None or outcome.statement.reopens:
                        table = open_table(store, committer)
                    self._carry_out(outcome, table, store)
                except CommitOutcomeUnknownError as error:
                    outcome.state, outcome.error, table = "unknown", error, None
                except DeltaError as error:
                    outcome.state, outcome.error, table = "failed", error, None
                else:
                    outcome.state, outcome.version = "done", table.version()

    def _carry_out(self, outcome: StatementRun, table: DeltaTable, store: Store) -> None:
        statement = outcome.statement
        if statement.kind == "publish":
            if self.catalog is not None:
                self.catalog.publish(store)
        elif statement.kind == "read":
            table = copy(table)  # the writer goes on with its own version
            if outcome.target is not None:
                table.load_as_version(outcome.target)
            outcome.found = (table.version(), *read_rows(table))
        elif statement.rows:
            _write(table, statement)
        else:
            _change(table, statement, outcome.target)


def open_table(store: Store, committer: Committer | None) -> DeltaTable:
    """The newest version."""
    context = TableContext(store=store, time_zone="UTC", committer=committer)
    return DeltaTable.from_context(context, LocalEngine())


def read_rows(table: DeltaTable) -> tuple[list[str], list[Row]]:
    """The columns and the rows that a table shows."""
    found = table.scan().to_table()
    return found.column_names, list(found.to_pylist())


def as_arrow(rows: Sequence[Row]) -> pa.Table:
    """Rows as a writer has them."""
    names = list(rows[0])
    return pa.Table.from_pylist(
        [dict(row) for row in rows], pa.schema([(name, _TYPES[name]) for name in names])
    )


def told(statement: Statement) -> CommitProperties:
    """What the commits of a statement carry."""
    once = [AppTransaction("app", statement.app_version)] if statement.app_version else None
    return CommitProperties({"number": str(statement.number)}, app_transactions=once)


def _write(table: DeltaTable, statement: Statement) -> None:
    """A statement that brings rows."""
    rows, properties = as_arrow(statement.rows), told(statement)
    match statement.kind:
        case "append" | "append once":
            write_deltalake(table, rows, mode="append", commit_properties=properties)
        case "append wide":
            write_deltalake(
                table, rows, mode="append", schema_mode="merge", commit_properties=properties
            )
        case "upsert":
            table.upsert(rows, "id", commit_properties=properties)
        case "merge delete":
            merger = table.merge(
                rows,
                "t.id = s.id",
                source_alias="s",
                target_alias="t",
                commit_properties=properties,
            )
            merger.when_matched_delete().execute()
        case _:
            write_deltalake(
                table,
                rows,
                mode="overwrite",
                predicate=statement.condition.sql,
                commit_properties=properties,
            )


def _change(table: DeltaTable, statement: Statement, target: int | None) -> None:
    """A statement that brings no rows."""
    properties, where = told(statement), statement.condition.sql
    match statement.kind:
        case "delete":
            table.delete(where, commit_properties=properties)
        case "update":
            table.update(
                {"v": f"v + {statement.added}"}, predicate=where, commit_properties=properties
            )
        case "add column":
            table.alter.add_columns(Field(statement.column, LONG), properties)
        case "restore":
            table.restore(0 if target is None else target, commit_properties=properties)
        case "compact":
            table.optimize.compact(commit_properties=properties)
        case "purge":
            table.optimize.purge(commit_properties=properties)
        case "vacuum":
            full = bool(statement.number % 2)
            table.vacuum(dry_run=False, full=full, commit_properties=properties)
        case "clean up":
            table.cleanup_metadata()
        case _:
            table.create_checkpoint()


def state_of(rows: Sequence[Row]) -> TableState:
    """The state of a table that was made with these rows."""
    return TableState(frozenset(rows[0]), {int(row["id"]): row for row in rows})
