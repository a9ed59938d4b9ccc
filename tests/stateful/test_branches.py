"""Branches of a table that changes: each publish is what a model makes of it, or nothing.

A history creates branches, changes them and main in a random order, lets requests of a publish
fail, and publishes. The model applies the operations of a branch, one after the other, to the rows
that main has when the branch is published. So a publish that succeeds is serializable.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pytest

from deltalog import DeltaTable, col, write_deltalake
from deltalog.data.keys import writing
from deltalog.errors import (
    CommitConflictError,
    CommitFailedError,
    DeltaError,
    StorageError,
    VersionNotFoundError,
)
from deltalog.log.branches import on_named_branch
from deltalog.testing import FaultyStore, Harm, InjectedFault
from tests.support.logs import DictStore

pytestmark = pytest.mark.slow("writers are interleaved in many ways")

HISTORIES: Final = int(os.environ.get("DELTALOG_HISTORIES", "60"))
STEPS: Final = 25
FIRST_ROWS: Final = 20
PROPERTIES: Final[tuple[dict[str, str], ...]] = (
    {},
    {"delta.enableDeletionVectors": "true", "delta.enableRowLevelConcurrency": "true"},
    {"delta.enableChangeDataFeed": "true", "delta.checkpointInterval": "3"},
    {"delta.enableRowTracking": "true"},
    {
        "delta.enableDeletionVectors": "true",
        "delta.enableChangeDataFeed": "true",
        "delta.checkpointPolicy": "v2",
    },
)
Rows = dict[int, int]


@dataclass(frozen=True)
class Change:
    """An operation, as the table runs it and as the model does."""

    name: str
    run: Callable[[DeltaTable], object]
    apply: Callable[[Rows], Rows]


def _table_of(rows: Rows) -> pa.Table:
    ids = pa.array(list(rows), pa.int64())
    return pa.table({"id": ids, "v": pa.array(list(rows.values()), pa.int64())})


@dataclass
class History:
    """One history: a table with branches, and what the rows of main must be."""

    chance: random.Random
    inner: DictStore = field(default_factory=DictStore)
    rows: Rows = field(default_factory=dict)
    branches: dict[str, list[Change]] = field(default_factory=dict)
    next_id: int = FIRST_ROWS
    num_published: int = 0
    num_refused: int = 0
    keys: random.Random = field(default_factory=lambda: random.Random(5))
    trace: list[str] = field(default_factory=list)

    def begin(self) -> None:
        self.rows = dict.fromkeys(range(FIRST_ROWS), 0)
        data, configuration = _table_of(self.rows), self.chance.choice(PROPERTIES)
        self.trace.append(str(configuration))
        write_deltalake(self.inner, data.slice(0, 10), configuration=configuration)
        write_deltalake(self.inner, data.slice(10), mode="append")
        if self.chance.random() < 0.5:
            self.trace.append("key index")
            DeltaTable(self.inner).alter.set_key_index(["id"])

    # --- What changes rows

    def change(self) -> Change:
        """Draw an operation."""
        value = self.chance.randrange(1, 1_000)
        low = self.chance.randrange(self.next_id)
        high = low + self.chance.choice((1, 2, 8))
        kind = self.chance.choice(("append", "delete", "update", "upsert", "compact"))
        if kind == "append":
            new = {self.next_id + offset: value for offset in range(self.chance.choice((1, 3)))}
            self.next_id += len(new)
            return Change(
                f"append {sorted(new)}",
                lambda table: write_deltalake(table, _table_of(new), mode="append"),
                lambda rows: {**rows, **new},
            )
        if kind == "upsert":
            first = self.chance.randrange(FIRST_ROWS)  # later rows may exist only in a branch
            given = dict.fromkeys(range(first, min(first + 4, FIRST_ROWS)), value)
            return Change(
                f"upsert {sorted(given)}",
                lambda table: table.upsert(_table_of(given), "id"),
                lambda rows: {**rows, **given},
            )
        condition = f"id >= {low} AND id < {high}"
        if kind == "delete":
            return Change(
                f"delete {condition}",
                lambda table: table.delete(condition),
                lambda rows: {n: v for n, v in rows.items() if not low <= n < high},
            )
        if kind == "update":
            return Change(
                f"update {condition}",
                lambda table: table.update({"v": f"v + {value}"}, predicate=condition),
                lambda rows: {n: v + value * (low <= n < high) for n, v in rows.items()},
            )
        return Change("compact", lambda table: table.optimize.compact(), dict)

    # --- Steps

    def step(self) -> None:
        act: Callable[[], None] = self.chance.choice(
            [self.create, self.on_branch, self.on_branch, self.on_main, self.publish, self.upkeep]
        )
        act()
        self.check()

    def create(self) -> None:
        name = f"b{len(self.trace)}"
        self.trace.append(f"create {name}")
        DeltaTable(self.inner).branch(name)
        self.branches[name] = []

    def on_main(self) -> None:
        change = self.change()
        self.trace.append(f"main: {change.name}")
        change.run(DeltaTable(self.inner))
        self.rows = change.apply(self.rows)

    def on_branch(self) -> None:
        if not self.branches:
            return
        name, change = self.chance.choice(list(self.branches)), self.change()
        self.trace.append(f"{name}: {change.name}")
        draft = self.opened(self.inner, name)
        before = draft.version()
        change.run(draft)
        # An operation that changes no row makes no commit, so it is not part of the branch.
        if self.opened(self.inner, name).version() > before:
            self.branches[name].append(change)

    def upkeep(self) -> None:
        table = DeltaTable(self.inner)
        kind = self.chance.choice(("vacuum", "full vacuum", "checkpoint", "discard", "index"))
        self.trace.append(kind)
        if kind == "checkpoint":
            table.create_checkpoint()
        elif kind == "index":
            if "key index" in self.trace:
                name = self.chance.choice([None, *self.branches])
                indexed = table if name is None else self.opened(self.inner, name)
                indexed.optimize.key_index()
        elif kind == "discard":
            if self.branches:
                name, _ = self.branches.popitem()
                table.drop_branch(name)
        else:
            table.vacuum(
                0,
                dry_run=False,
                full=kind == "full vacuum",
                enforce_retention_duration=False,
            )

    def publish(self) -> None:
        if not self.branches:
            return
        name = self.chance.choice(list(self.branches))
        changes = self.branches.pop(name)
        store = FaultyStore(self.inner)
        draft = self.opened(store, name)
        if self.chance.random() < 0.5:
            harm = self.chance.choice((Harm.CRASH, Harm.REFUSE, Harm.LOSE_RESPONSE))
            store.faults.append(InjectedFault(call=self.chance.randrange(1, 40), harm=harm))
            self.trace.append(f"{store.faults}")
        if self.chance.random() < 0.3:  # main changes after the branch was opened
            self.on_main()
        self.trace.append(f"publish {name}")
        try:
            self._publish(store, draft)
        except (CommitConflictError, VersionNotFoundError) as error:
            self.trace.append(f"{type(error).__name__}")
            self.num_refused += 1
            if store.crashed:  # before the branch was opened again: another publish opens it
                store.crashed = False
                store.faults.clear()
                with pytest.raises(type(error)):
                    draft.publish()
            self.branches[name] = changes
            return
        self.num_published += 1
        for change in changes:
            self.rows = change.apply(self.rows)

    def _publish(self, store: FaultyStore, draft: DeltaTable) -> None:
        try:
            draft.publish()
        except (CommitConflictError, VersionNotFoundError):
            raise
        except (StorageError, CommitFailedError) as error:
            self.trace.append(f"again after {error}")
            store.crashed = False
            store.faults.clear()
            draft.publish()

    @staticmethod
    def opened(store: Any, name: str) -> DeltaTable:
        """Open a branch."""
        context = DeltaTable(store).snapshot.context
        return DeltaTable.from_context(on_named_branch(context, name))

    # --- What must hold

    def check(self) -> None:
        table = DeltaTable(self.inner)
        assert self.read(table) == self.rows, self.described()
        assert {one.name for one in table.branches()} == set(self.branches), self.described()
        for name in self.branches:
            self.read(self.opened(self.inner, name))  # all of its files are there

    def read(self, table: DeltaTable) -> Rows:
        """Read the rows, which must have different ids."""
        found = table.to_pyarrow_table()
        ids: list[Any] = found["id"].to_pylist()
        values: list[Any] = found["v"].to_pylist()
        assert len(set(ids)) == len(ids), self.described()
        rows = dict(zip(ids, values, strict=True))
        wanted = [self.keys.randrange(self.next_id) for _ in range(3)]
        by_key = table.scan(predicate=col("id").is_in(wanted)).to_table().to_pylist()
        expected = {number: rows[number] for number in wanted if number in rows}
        assert {row["id"]: row["v"] for row in by_key} == expected, self.described()
        return rows

    def described(self) -> str:
        return "\n".join(self.trace)


def _run(seed: int) -> History:
    history = History(random.Random(seed))
    history.begin()
    for _ in range(STEPS):
        try:
            history.step()
        except DeltaError as error:
            error.add_note(history.described())
            raise
    return history


@pytest.fixture(autouse=True)
def _small_files_have_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "LEAST_ROWS", 1)


@pytest.mark.parametrize("part", range(4))
def test_random_histories_agree_with_a_model(part: int) -> None:
    found = [_run(seed) for seed in range(part, HISTORIES, 4)]
    assert sum(history.num_published for history in found) > len(found) // 2
    assert sum(history.num_refused for history in found) > len(found) // 10
