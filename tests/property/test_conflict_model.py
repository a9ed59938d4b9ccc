"""The conflict rules decide as their specification does, in every state of a small table.

Two files of two rows, three writers that staged something on the same version and commit one after
the other: every triple of intents, at every isolation level, rows united or not.
`DELTALOG_RULES=all` looks at all triples everywhere; otherwise at all pairs everywhere, and where
rows are united under `Serializable` at the triples that begin with every fourth intent.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from deltalog.data.scan.plan import descriptor_of
from deltalog.data.scan.transform import load_bitmap
from deltalog.errors import CommitConflictError
from deltalog.log.context import utc_context
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.protocol.actions import DomainMetadata, Protocol
from deltalog.protocol.configuration import TableConfiguration
from deltalog.protocol.deletion_vectors import DeletionBitmap
from deltalog.testing.simulation.model import SteadyClock
from deltalog.transaction import (
    AppTransaction,
    PendingTransaction,
    PostCommitHookProperties,
    commit,
)
from deltalog.transaction.masks import write_masks
from deltalog.transaction.properties import CommitOptions
from tests.property.conflict_model import (
    TABLE,
    Decision,
    File,
    Intent,
    Landed,
    Level,
    judge,
)
from tests.support import logs
from tests.support.transactions import actions_of, condition, new_file

pytestmark = pytest.mark.slow("every pair of operations")

EVERYTHING = os.environ.get("DELTALOG_RULES") == "all"
LEVELS: tuple[Level, ...] = ("Serializable", "WriteSerializable", "SnapshotIsolation")
FEATURES = ["appendOnly", "domainMetadata", "invariants", "deletionVectors"]
QUIET = CommitOptions(
    hooks=PostCommitHookProperties(
        create_checkpoint=False,
        cleanup_expired_logs=False,
        write_checksum=False,
        auto_compact=False,
    )
)
_A, _B = frozenset("a"), frozenset("b")


def _marks(row: int, *, is_row_local: bool = True) -> Intent:
    path = "a" if row < 2 else "b"
    return Intent(
        name=f"mark {row}" if is_row_local else f"mark {row} after a look at others",
        reads_rows=(row, row),
        reads_files=frozenset(path),
        is_row_local=is_row_local,
        marks={path: frozenset({row})},
    )


INTENTS = (
    Intent(name="nothing"),
    Intent(name="append 1", adds=(File("n", 1, 1),)),
    Intent(name="append 8", adds=(File("n", 8, 8),)),
    Intent(name="insert after reading all", reads_all=True, adds=(File("n", 8, 8),)),
    Intent(
        name="insert after reading 1", reads_rows=(1, 1), reads_files=_A, adds=(File("n", 8, 8),)
    ),
    *(_marks(row) for row in range(4)),
    _marks(0, is_row_local=False),
    Intent(
        name="mark 1 and 2",
        reads_rows=(1, 2),
        reads_files=_A | _B,
        is_row_local=True,
        marks={"a": frozenset({1}), "b": frozenset({2})},
    ),
    Intent(
        name="mark all of a",
        reads_rows=(0, 1),
        reads_files=_A,
        is_row_local=True,
        marks={"a": frozenset({0, 1})},
    ),
    Intent(
        name="rewrite a", reads_rows=(0, 1), reads_files=_A, removes=_A, adds=(File("n", 0, 1),)
    ),
    Intent(name="remove a unread", removes=_A),
    Intent(
        name="compact",
        reads_files=_A | _B,
        removes=_A | _B,
        adds=(File("n", 0, 3),),
        changes_data=False,
    ),
    Intent(
        name="replace table",
        reads_all=True,
        removes=_A | _B,
        adds=(File("n", 0, 3),),
        sets=frozenset({"metadata"}),
    ),
    Intent(name="set a property", sets=frozenset({"metadata"})),
    Intent(name="add a feature", sets=frozenset({"protocol"})),
    Intent(name="set a domain", sets=frozenset({"domain"})),
    Intent(
        name="append 1 for an application",
        adds=(File("n", 1, 1),),
        sets=frozenset({"application"}),
    ),
)


def _stats(low: int, high: int) -> str:
    count = high - low + 1
    return (
        f'{{"numRecords":{count},"minValues":{{"id":{low}}},"maxValues":{{"id":{high}}},'
        '"nullCount":{"id":0}}'
    )


class Explorer:
    """One table, in memory; every commit on it is compared with the specification's decision."""

    def __init__(self, level: Level, *, unites_rows: bool) -> None:
        self.level = level
        self.unites_rows = unites_rows
        self.states = 0
        self.refused = 0
        self.store = logs.DictStore()
        configuration = {
            "delta.isolationLevel": level,
            "delta.enableDeletionVectors": "true",
            "delta.enableRowLevelConcurrency": str(unites_rows).lower(),
        }
        protocol = {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["deletionVectors"],
            "writerFeatures": FEATURES,
        }
        logs.commit(
            self.store,
            0,
            {"commitInfo": {"operation": "CREATE TABLE"}},
            {"protocol": protocol},
            logs.metadata(configuration=configuration),
            *(logs.add(f.path, stats=_stats(f.low, f.high)) for f in TABLE.values()),
        )
        self.snapshot = load_snapshot(utc_context(self.store))
        self.files = self.snapshot.files()

    def explore(
        self,
        writers: int,
        before: Sequence[tuple[Intent, Landed]] = (),
        *,
        intents: Sequence[Intent] = INTENTS,
    ) -> None:
        """Let one more writer commit, whatever it wants, and then others.

        Args:
            writers: how many.
            before: what others have done.
            intents: what the first of them may want; the next ones may want anything.
        """
        if writers == 0:
            return
        for mine in intents:
            found = dict(self.store.files)
            expected = judge(
                mine,
                [landed for _, landed in before],
                level=self.level,
                unites_rows=self.unites_rows,
            )
            what = f"{mine.name} after {[one.name for one, _ in before]} at {self.level}"
            decision = self._commit(mine, len(before))
            self.states += 1
            self.refused += decision.error is not None
            assert decision.error == expected.error, what
            if expected.landed is not None:
                assert decision.landed == _numbered(expected.landed, len(before)), what
                self.explore(
                    writers - 1, [*before, (mine, _numbered(expected.landed, len(before)))]
                )
            self.store.files = found

    def _commit(self, mine: Intent, number: int) -> Decision:
        pending = self._staged(mine, number)
        try:
            version = commit(pending, QUIET).version
        except CommitConflictError as error:
            return Decision(type(error).__name__)
        return Decision(None, self._landed(mine, version))

    def _staged(self, mine: Intent, number: int) -> PendingTransaction:
        context = replace(self.snapshot.context, clock=SteadyClock())
        pending = PendingTransaction(context, self.snapshot, operation="WRITE")
        if mine.reads_all:
            pending.record_read(None, is_row_local=mine.is_row_local)
        if mine.reads_rows is not None:
            predicate = _between(*mine.reads_rows, self.snapshot)
            pending.record_read(predicate, is_row_local=mine.is_row_local)
        if mine.reads_files:
            pending.record_read_files(self._of(mine.reads_files), is_row_local=mine.is_row_local)
        for path, rows in mine.marks.items():
            low = TABLE[path].low
            bitmap = DeletionBitmap([row - low for row in rows])
            pending.mask_rows(write_masks(self.store, self._of(path), [bitmap], [2]))
        pending.remove_files(self._of(mine.removes), data_change=mine.changes_data)
        pending.add_files(
            new_file(
                f"{file.path}{number}",
                stats=_stats(file.low, file.high),
                data_change=mine.changes_data,
            )
            for file in mine.adds
        )
        self._set(mine, pending, number)
        return pending

    def _set(self, mine: Intent, pending: PendingTransaction, number: int) -> None:
        before = self.snapshot.configuration
        if "metadata" in mine.sets:
            texts = {**before.metadata.configuration, "owner": str(number)}
            metadata = replace(before.metadata, configuration=texts)
            pending.set_configuration(TableConfiguration(before.protocol, metadata))
        if "protocol" in mine.sets:
            known = before.protocol.writer_features or ()
            protocol: Protocol = replace(
                before.protocol, writer_features=(*known, "changeDataFeed")
            )
            pending.set_configuration(TableConfiguration(protocol, before.metadata))
        if "domain" in mine.sets:
            pending.set_domain(DomainMetadata(domain="d", configuration=str(number), removed=False))
        if "application" in mine.sets:
            pending.set_app_transaction(AppTransaction("app", number))

    def _landed(self, mine: Intent, version: int) -> Landed:
        actions = actions_of(self.store, version)
        adds = [action["add"] for action in actions if "add" in action]
        return Landed(
            {add["path"]: self._file(add) for add in adds},
            frozenset(action["remove"]["path"] for action in actions if "remove" in action),
            actions[0]["commitInfo"]["isBlindAppend"],
            mine.sets,
        )

    def _file(self, add: dict[str, Any]) -> File:
        path, vector = add["path"], add.get("deletionVector")
        known = TABLE.get(path)
        if known is None:
            found = next(
                f for one in INTENTS for f in one.adds if _stats(f.low, f.high) == add["stats"]
            )
            return File(path, found.low, found.high)
        assert vector is not None
        rows = DeletionBitmap([0]), DeletionBitmap([1])
        marked = {known.low + n for n in (0, 1) if _bits(vector) & rows[n]}
        return File(path, known.low, known.high, frozenset(marked))

    def _of(self, paths: Any) -> Any:
        wanted = [path in paths for path in self.files.column("path").to_pylist()]
        return self.files.filter(wanted)


def _between(low: int, high: int, snapshot: Snapshot) -> Any:
    return condition(f"id BETWEEN {low} AND {high}", snapshot)


def _bits(vector: dict[str, Any]) -> DeletionBitmap:
    descriptor = descriptor_of({"offset": None, **vector})
    assert descriptor is not None
    return load_bitmap(logs.DictStore(), descriptor, num_rows=None)


def _numbered(landed: Landed, number: int) -> Landed:
    """New files have the name of their writer."""
    adds = {
        file.path: file
        for file in (
            replace(file, path=f"{path}{number}") if path not in TABLE else file
            for path, file in landed.adds.items()
        )
    }
    return replace(landed, adds=adds)


@pytest.mark.protocol("D-33", "D-34", "D-35", "D-36", "OV-05")
@pytest.mark.parametrize(("level", "unites_rows"), list(product(LEVELS, (True, False))))
def test_every_decision_is_the_specification_s(level: Level, unites_rows: bool) -> None:
    explorer = Explorer(level, unites_rows=unites_rows)
    if EVERYTHING:
        explorer.explore(3)
    else:
        explorer.explore(2)
        if level == "Serializable" and unites_rows:
            explorer.explore(3, intents=INTENTS[3::4])
    assert explorer.states >= len(INTENTS) ** 2
    assert 0 < explorer.refused < explorer.states
