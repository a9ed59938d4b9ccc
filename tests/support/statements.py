"""A table that takes statements: what `DeltaTable` does, with any store and without a facade."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from deltalog._util.cards import Progress
from deltalog.data.scan import open_changes, plan_scan
from deltalog.expressions import parse_type
from deltalog.log.context import utc_context
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.operations.changes.file_options import FileOptions
from deltalog.operations.changes.merge.source import MergeSource
from deltalog.operations.changes.request import Action, ChangeMetrics, ChangeRequest, Clause, When
from deltalog.operations.delete import Delete
from deltalog.operations.engine import Engine, LocalEngine
from deltalog.operations.execute import execute
from deltalog.operations.merge import Merge
from deltalog.operations.operation import Operation, OutcomeT_co
from deltalog.operations.update import Update
from deltalog.operations.write import Write
from deltalog.protocol.table_change.change import new_table
from deltalog.schema import Field, StructType
from deltalog.storage.store import Store
from deltalog.transaction import PendingTransaction, PostCommitHookProperties
from deltalog.transaction.commit import commit
from deltalog.transaction.properties import CommitOptions
from tests.support.logs import DictStore

VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
ROW_IDS = {"delta.enableRowTracking": "true"}
_LOCAL = LocalEngine()
_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


class _SourcesInFiles(LocalEngine):
    """Keeps few bytes of a merge's source in memory."""

    def __init__(self, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes

    def open_batches(self, data: Any) -> MergeSource:
        return MergeSource(data, memory_bytes=self._memory_bytes)


class StatedTable:
    """A table, made of its columns.

    Args:
        columns: fields, or name → type in SQL.
        files: rows of each file that is written at once, as dicts.
        properties: of the table.
        partition_by: names.
        store: None is one of its own.
    """

    def __init__(
        self,
        columns: Mapping[str, str] | Sequence[Field],
        *files: Sequence[Mapping[str, Any]],
        properties: Mapping[str, str] | None = None,
        partition_by: Sequence[str] = (),
        store: Store | None = None,
    ) -> None:
        fields = self.fields(columns) if isinstance(columns, Mapping) else list(columns)
        self.store: Store = DictStore() if store is None else store
        configuration = new_table(
            StructType(fields),
            partition_columns=partition_by,
            configuration=properties or {},
            created_time_ms=0,
        )
        pending = PendingTransaction(
            utc_context(self.store), None, operation="CREATE TABLE", configuration=configuration
        )
        self.snapshot: Snapshot = commit(pending, CommitOptions(hooks=_HOOKS)).snapshot
        for rows in files:
            self.append(rows)

    @staticmethod
    def fields(columns: Mapping[str, str]) -> list[Field]:
        """Fields of types in SQL."""
        return [Field(name, parse_type(kind)) for name, kind in columns.items()]

    def append(self, rows: Sequence[Mapping[str, Any]], **options: Any) -> None:
        """Add rows in files of their own; options are those of the files."""
        self.do(Write(data=[dict(row) for row in rows], file_options=FileOptions(**options)))

    def update(
        self, values: Mapping[Any, object], where: str | None = None, **options: Any
    ) -> ChangeMetrics:
        """`UPDATE`."""
        return self.do(Update.where(where, values, **options)).changed

    def delete(self, where: str | None = None) -> ChangeMetrics:
        """`DELETE`."""
        return self.do(Delete.where(where)).changed

    def merge(self, source: object, on: str, *clauses: Clause, **options: Any) -> ChangeMetrics:
        """`MERGE`, with the aliases `t` and `s`."""
        changes = ChangeRequest(
            condition=on, clauses=clauses, source_alias="s", target_alias="t", **options
        )
        return self.run_merge(source, Merge(changes))

    def run_merge(
        self, source: object, merge: Merge, *, memory_bytes: int | None = None
    ) -> ChangeMetrics:
        """`MERGE`, as it is made; `memory_bytes` of its source stay in memory."""
        engine = _LOCAL if memory_bytes is None else _SourcesInFiles(memory_bytes)
        return self.do(merge.with_source(source), engine=engine).changed

    def do(
        self,
        verb: Operation[OutcomeT_co],
        progress: Progress | None = None,
        engine: Engine = _LOCAL,
    ) -> OutcomeT_co:
        """Any verb, on the newest version; what it did."""
        done = execute(
            verb,
            lambda: load_snapshot(utc_context(self.store)),
            engine,
            CommitOptions(hooks=_HOOKS),
            progress=progress,
        )
        self.snapshot = done.committed.snapshot
        assert done.value is not None
        return done.value

    @property
    def version(self) -> int:
        """The version that the table has come to."""
        return self.snapshot.version

    def rows(self, *columns: str, version: int | None = None) -> list[dict[str, Any]]:
        """The rows of the newest version, or of one, read from the store anew, sorted."""
        snapshot = load_snapshot(utc_context(self.store), version=version)
        found: list[Any] = plan_scan(snapshot, columns=columns or None).to_table().to_pylist()
        return in_order(found)

    def values(self, column: str) -> list[Any]:
        """One column, sorted, NULL first."""
        return [row[column] for row in self.rows(column)]

    def changes(self, version: int | None = None) -> list[dict[str, Any]]:
        """The change feed of one version, without its times."""
        at = self.version if version is None else version
        table = open_changes(self.snapshot, start=at, end=at).to_table()
        return in_order(table.drop_columns(["_commit_version", "_commit_timestamp"]).to_pylist())

    def files(self) -> pa.Table:
        """The live files."""
        return load_snapshot(utc_context(self.store)).files()


def in_order(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows in an order that depends on their values only, by the names of columns, NULL first."""
    return sorted(rows, key=lambda row: [_rank(row[name]) for name in sorted(row, key=_own_first)])


def _rank(value: Any) -> tuple[int, str, Any]:
    if isinstance(value, bool | int | float):
        return (1, "", value)
    if isinstance(value, dict):
        value = sorted(value.items())
    return (0, "", 0) if value is None else (2, repr(value), 0)


def matched_update(condition: str | None = None, **values: object) -> Clause:
    """`WHEN MATCHED THEN UPDATE SET`; without values `UPDATE SET *`."""
    return Clause(
        when=When.MATCHED, action=Action.UPDATE, values=_keyed(values) or None, condition=condition
    )


def matched_delete(condition: str | None = None) -> Clause:
    """`WHEN MATCHED THEN DELETE`."""
    return Clause(when=When.MATCHED, action=Action.DELETE, condition=condition)


def insert(condition: str | None = None, **values: object) -> Clause:
    """`WHEN NOT MATCHED THEN INSERT`; without values `INSERT *`."""
    return Clause(
        when=When.NOT_MATCHED,
        action=Action.INSERT,
        values=_keyed(values) or None,
        condition=condition,
    )


def by_source_update(condition: str | None = None, **values: object) -> Clause:
    """`WHEN NOT MATCHED BY SOURCE THEN UPDATE SET`."""
    return Clause(
        when=When.NOT_MATCHED_BY_SOURCE,
        action=Action.UPDATE,
        values=_keyed(values),
        condition=condition,
    )


def by_source_delete(condition: str | None = None) -> Clause:
    """`WHEN NOT MATCHED BY SOURCE THEN DELETE`."""
    return Clause(when=When.NOT_MATCHED_BY_SOURCE, action=Action.DELETE, condition=condition)


def _keyed(values: Mapping[str, object]) -> dict[str | tuple[str, ...], object]:
    return dict(values.items())


def _own_first(name: str) -> tuple[bool, str]:
    return name.startswith("_"), name
