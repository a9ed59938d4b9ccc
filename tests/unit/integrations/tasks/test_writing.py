"""Tasks write files, and one commit makes a version of those that the engine answers with."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import (
    CommitConflictError,
    ConstraintViolationError,
    InvalidInputError,
    SchemaMismatchError,
    StorageError,
)
from deltalog.integrations.tasks import (
    DistributedRows,
    Report,
    Sent,
    own_errors,
    reported,
    write_rows,
)
from deltalog.operations.changes.task_writes import WriteJob
from deltalog.storage import open_store
from deltalog.storage.store import Store
from tests.support.engines import ids_of

NUMBERS = count()


@pytest.fixture
def store() -> Store:
    store = open_store(f"memory://distributed-{next(NUMBERS)}")
    write_deltalake(store, {"id": [1, 2]})
    return store


class Parts(DistributedRows):
    """Rows in parts, each of which a task writes; jobs and reports are pickled as on a cluster."""

    def __init__(self, *parts: Any, before: Callable[[int], None] = lambda _: None) -> None:
        self._parts = [pa.table(part) for part in parts]
        self._before = before
        self.runs = 0

    @property
    def schema(self) -> pa.Schema:
        return self._parts[0].schema

    def write(self, job: Sent[WriteJob]) -> Sequence[Report]:
        self.runs += 1
        reports = []
        for place, part in enumerate(self._parts):
            self._before(place)
            sent = pickle.loads(pickle.dumps(job))
            report = reported(sent, part.to_batches(), place=place)
            reports.append(pickle.loads(pickle.dumps(report)))
        return reports


def files_in(store: Store) -> set[str]:
    return {file.path for file in store.list_all("") if file.path.endswith(".parquet")}


def test_files_of_all_tasks_are_one_version(store: Store) -> None:
    table = DeltaTable(store)
    assert write_rows(Parts({"id": [3]}, {"id": []}, {"id": [4, 5]}), table, mode="append") == 1
    assert (table.version(), ids_of(table)) == (1, [1, 2, 3, 4, 5])
    assert len(table.file_uris()) == 3


def test_files_of_lost_attempts_are_no_part_of_it(store: Store) -> None:
    class Repeated(Parts):
        def write(self, job: Sent[WriteJob]) -> Sequence[Report]:
            super().write(job)
            return super().write(job)

    write_rows(Repeated({"id": [3]}, {"id": [4]}), store, mode="append")
    table = DeltaTable(store)
    assert ids_of(table) == [1, 2, 3, 4]
    left = files_in(store) - set(table.get_add_actions()["path"].to_pylist())
    assert len(left) == 2
    assert set(table.vacuum(0, enforce_retention_duration=False, full=True)) == left


def test_an_error_in_the_rows_deletes_the_files_of_the_others(store: Store) -> None:
    DeltaTable(store).alter.add_constraint({"small": "id < 5"})
    before = files_in(store)
    with pytest.raises(ConstraintViolationError, match="small"):
        write_rows(Parts({"id": [3]}, {"id": [7]}, {"id": [4]}), store, mode="append")
    assert files_in(store) == before
    assert DeltaTable(store).version() == 1


def test_a_failed_write_deletes_the_files_of_lost_attempts(store: Store) -> None:
    class Repeated(Parts):
        def write(self, job: Sent[WriteJob]) -> Sequence[Report]:
            super().write(job)
            return super().write(job)

    DeltaTable(store).alter.add_constraint({"small": "id < 5"})
    before = files_in(store)
    with pytest.raises(ConstraintViolationError, match="small"):
        write_rows(Repeated({"id": [3]}, {"id": [7]}), store, mode="append")
    assert files_in(store) == before


def test_a_task_that_ends_in_another_error_deletes_the_files_of_the_others(store: Store) -> None:
    def fail(place: int) -> None:
        if place:
            raise StorageError("no disk")

    before = files_in(store)
    with pytest.raises(StorageError, match="no disk"):
        write_rows(Parts({"id": [3]}, {"id": [4]}, before=fail), store, mode="append")
    assert files_in(store) == before


def test_errors_of_the_store_are_the_engine_s(store: Store) -> None:
    def fail(place: int) -> None:
        raise StorageError(f"no disk for {place}")

    with pytest.raises(StorageError, match="no disk for 0"):
        write_rows(Parts({"id": [3]}, before=fail), store, mode="append")
    assert DeltaTable(store).version() == 0


def test_known_types_are_checked_before_any_task(store: Store) -> None:
    rows = Parts({"other": ["x"]})
    with pytest.raises(SchemaMismatchError, match="other"):
        write_rows(rows, store, mode="append")
    assert rows.runs == 0


def test_rows_are_computed_again_after_a_conflict(store: Store) -> None:
    others = iter([{"id": [100]}])

    def meddle(_: int) -> None:
        for rows in others:
            write_deltalake(store, rows, mode="append")

    rows = Parts({"id": [3]}, before=meddle)
    assert write_rows(rows, store, mode="overwrite") == 2
    assert (rows.runs, ids_of(DeltaTable(store))) == (2, [3])
    others = iter([{"id": [100]}])
    rows = Parts({"id": [4]}, before=meddle)
    assert write_rows(rows, store, mode="append") == 4
    assert (rows.runs, ids_of(DeltaTable(store))) == (1, [3, 4, 100])


def test_a_table_that_another_writer_makes_first_is_appended_to() -> None:
    store = open_store(f"memory://distributed-{next(NUMBERS)}")

    def meddle(_: int) -> None:
        if rows.runs == 1:
            write_deltalake(store, {"id": [100]})

    rows = Parts({"id": [3]}, before=meddle)
    with pytest.raises((CommitConflictError, FileExistsError)):
        write_rows(rows, store)
    assert ids_of(DeltaTable(store)) == [100]


def test_replaced_rows_are_those_of_the_predicate(store: Store) -> None:
    parts = Parts({"id": [2]}, {"id": [2]})
    assert write_rows(parts, store, mode="overwrite", predicate="id = 2") == 1
    assert ids_of(DeltaTable(store)) == [1, 2, 2]
    with pytest.raises(ConstraintViolationError):
        write_rows(Parts({"id": [7]}), store, mode="overwrite", predicate="id = 2")


def test_old_versions_and_unknown_arguments_are_refused(store: Store) -> None:
    write_deltalake(store, {"id": [3]}, mode="append")
    with pytest.raises(InvalidInputError, match="version 0"):
        write_rows(Parts({"id": [4]}), DeltaTable(store, version=0), mode="append")
    wrong: Any = "upsert"
    with pytest.raises(InvalidInputError, match="upsert"):
        write_rows(Parts({"id": [4]}), store, mode=wrong)


def test_what_is_sent_shows_nothing_of_itself() -> None:
    sent = Sent({"password": "hunter2-hunter2"})
    assert repr(sent) == "Sent(a dict)"
    assert pickle.loads(pickle.dumps(sent)).value == sent.value


class Counted:
    """An input of tasks that counts how often it is unpickled."""

    times = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return _counted, ()


def _counted() -> Counted:
    Counted.times += 1
    return Counted()


@pytest.mark.parametrize("has_size", [True, False])
def test_an_input_is_unpickled_when_it_is_used(*, has_size: bool) -> None:
    """A scheduler unpickles the arguments of tasks, and sends them to workers."""
    sent = Sent(Counted())
    size_bytes = sent.size_bytes if has_size else None
    before = Counted.times
    for _ in range(3):
        sent = pickle.loads(pickle.dumps(sent))
        assert sent.size_bytes == size_bytes or not has_size
        assert repr(sent) == "Sent(a Counted)"
    assert Counted.times == before
    assert sent.value is sent.value
    assert Counted.times == before + 1
    again = pickle.loads(pickle.dumps(sent))
    assert Counted.times == before + 1
    assert isinstance(again.value, Counted)


def test_functions_for_credentials_are_sent() -> None:
    token = "from-a-vault"  # noqa: S105  # of nothing
    again = pickle.loads(pickle.dumps(Sent(lambda: {"token": token})))
    assert again.value() == {"token": token}


def test_the_error_that_an_engine_wraps_is_found() -> None:
    own, wrapped = StorageError("no disk"), RuntimeError("a task failed")
    wrapped.__cause__ = own
    with pytest.raises(StorageError) as raised, own_errors():
        raise wrapped
    assert raised.value is own
    another = RuntimeError("another")
    with pytest.raises(RuntimeError) as passed, own_errors():
        raise another
    assert passed.value is another
