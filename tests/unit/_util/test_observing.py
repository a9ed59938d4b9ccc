"""Work that is watched: in order, never failed by who watches, and free while nobody does."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from deltalog._util.observing import ObservedWork, WorkKind, observed, unwatch, watch
from deltalog.errors import ConcurrentAppendError
from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.transaction import CommitOptions, PendingTransaction, commit, stage_and_commit
from tests.support.transactions import new_file, pending, table

Seen = tuple[str, WorkKind, str]


class Recorder:
    """Remembers what it sees."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.works: list[ObservedWork] = []
        self.errors: list[str | None] = []

    def begin(self, work: ObservedWork) -> int:
        self.seen.append(("begin", work.kind, work.name))
        return len(self.seen)

    def end(self, work: ObservedWork, begun: Any, error: BaseException | None) -> None:
        assert self.seen[begun - 1] == ("begin", work.kind, work.name)
        self.seen.append(("end", work.kind, work.name))
        self.works.append(work)
        self.errors.append(None if error is None else type(error).__name__)


@pytest.fixture
def recorder() -> Any:
    found = Recorder()
    watch(found)
    yield found
    unwatch(found)


def _stage(tx: PendingTransaction) -> None:
    tx.add_files([new_file("a")])


def test_an_operation_holds_its_commit(recorder: Recorder) -> None:
    store = table()
    done = stage_and_commit(lambda: load_snapshot(utc_context(store)), _stage, operation="WRITE")
    kinds = [(step, kind) for step, kind, _ in recorder.seen if kind is not WorkKind.AFTER_COMMIT]
    assert kinds == [
        ("begin", WorkKind.OPERATION),
        ("begin", WorkKind.COMMIT),
        ("end", WorkKind.COMMIT),
        ("end", WorkKind.OPERATION),
    ]
    operation = recorder.works[-1]
    assert operation.facts["table"] == store.root
    assert operation.facts["operation"] == "WRITE"
    assert operation.facts["version"] == done.committed.version
    assert operation.facts["num_added_files"] == 1
    assert operation.facts["num_retries"] == 0
    assert operation.facts["is_skipped"] is False


def test_what_fails_is_seen_to_fail(recorder: Recorder) -> None:
    store = table()

    def stage(tx: PendingTransaction) -> None:
        tx.record_read(None)
        tx.add_files([new_file("mine")])
        commit(pending(store, new_file("rival")))

    with pytest.raises(ConcurrentAppendError):
        stage_and_commit(
            lambda: load_snapshot(utc_context(store)),
            stage,
            operation="COUNT",
            options=CommitOptions(on_conflict="raise"),
        )
    assert recorder.errors[-1] == "ConcurrentAppendError"
    assert recorder.works[-1].kind is WorkKind.OPERATION


def test_what_is_skipped_says_so(recorder: Recorder) -> None:
    store = table()
    stage_and_commit(
        lambda: load_snapshot(utc_context(store)),
        lambda _: None,
        operation="WRITE",
        skip_empty=True,
    )
    (work,) = recorder.works
    assert work.facts["is_skipped"] is True
    assert "version" not in work.facts


@pytest.mark.parametrize("which", ["begin", "end"])
def test_who_watches_cannot_fail_a_commit(which: str, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Recorder):
        def begin(self, work: ObservedWork) -> int:
            if which == "begin":
                raise RuntimeError("no backend")
            return super().begin(work)

        def end(self, *_: object) -> None:
            raise RuntimeError("no backend")

    broken, behind = Broken(), Recorder()
    watch(broken)
    watch(behind)
    try:
        with caplog.at_level(logging.WARNING, "deltalog._util.observing"):
            done = commit(pending(table(), new_file("a")))
    finally:
        unwatch(broken)
        unwatch(behind)
    assert not done.skipped
    assert [work.facts["version"] for work in behind.works if work.kind is WorkKind.COMMIT] == [
        done.version
    ]
    assert "watching commit failed" in caplog.text


def test_without_watchers_nothing_is_counted() -> None:
    with observed(WorkKind.COMMIT, "commit", table="t") as work:
        assert work.is_watched is False
    done = commit(pending(table(), new_file("a")))
    assert not done.skipped


def test_who_stops_sees_the_end_of_what_began() -> None:
    recorder = Recorder()
    watch(recorder)
    with observed(WorkKind.ANSWER, "answer"):
        unwatch(recorder)
        with observed(WorkKind.ANSWER, "inner"):
            pass
    assert [name for _, _, name in recorder.seen] == ["answer", "answer"]
