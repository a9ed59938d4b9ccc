"""Files that workers write, and the commit of their driver."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import deltalog
from deltalog import (
    CommitProperties,
    DeltaTable,
    Field,
    Transaction,
    WriterProperties,
    WrittenFiles,
    write_deltalake,
    write_files,
)
from deltalog.errors import (
    ConcurrentAppendError,
    ConstraintViolationError,
    DeltaError,
    InvalidInputError,
)
from tests.support.facade import actions, fresh_rows, make, rows, store_of, unchanged
from tests.support.logs import DictStore

DATA = [{"id": 1, "p": 1}, {"id": 2, "p": 2}]
NEW = [{"id": 3, "p": 2}]
# What a worker does: it gets bytes, and gives bytes.
WORKER = """
import pickle, sys
import deltalog
spec = pickle.loads(sys.stdin.buffer.read())
written = deltalog.write_files(spec, [{"id": int(sys.argv[1]), "p": 7}])
sys.stdout.write(written.to_json())
"""


def test_workers_write_and_the_driver_commits(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", DATA, partition_by=["p"])
    table = DeltaTable(tmp_path / "t")
    spec = pickle.dumps(table.write_spec(writer_properties=WriterProperties(compression="ZSTD")))
    parts = [
        WrittenFiles.from_json(
            subprocess.run(
                [sys.executable, "-c", WORKER, number], input=spec, capture_output=True, check=True
            ).stdout
        )
        for number in ("3", "4")
    ]
    assert DeltaTable(tmp_path / "t").count() == 2
    driver = pickle.loads(pickle.dumps(table))
    assert driver.commit(parts) == driver.version() == 1
    found = DeltaTable(tmp_path / "t")
    assert rows(found) == [(1, 1), (2, 2), (3, 7), (4, 7)]
    assert found.history(1)[0]["operationMetrics"]["numOutputRows"] == "2"
    assert all("zstd" in uri for uri in found.file_uris(file_pruning_predicate=[("p", "=", 7)]))


def test_what_is_written_is_not_seen_before() -> None:
    made = make(DATA)
    written = write_files(made, NEW)
    assert fresh_rows(made, "id") == [1, 2]
    assert set(written.paths) < set(store_of(made).files)
    made.commit(pickle.loads(pickle.dumps(written)))
    assert fresh_rows(made, "id") == [1, 2, 3]


def test_a_worker_that_fails_leaves_nothing() -> None:
    made = make(DATA)
    made.alter.add_constraint({"small": "id < 10"})
    with unchanged(made), pytest.raises(ConstraintViolationError):
        write_files(made.write_spec(), [{"id": 11, "p": 1}])


def test_overwriting() -> None:
    made = make(DATA)
    made.commit(write_files(made, NEW), mode="overwrite")
    assert fresh_rows(made, "id") == [3]
    with pytest.raises(InvalidInputError, match="mode: expected"):
        made.commit(write_files(made, NEW), mode="replace")  # type: ignore[arg-type]


def test_an_overwrite_passes_over_no_rows_of_others() -> None:
    made = make(DATA)
    written = write_files(made, NEW)
    write_deltalake(DeltaTable(store_of(made)), [{"id": 4}], mode="append")
    with unchanged(made), pytest.raises(ConcurrentAppendError):
        made.commit(written, mode="overwrite")
    made.update_incremental()
    made.commit(written, mode="overwrite")
    assert fresh_rows(made, "id") == [3]


def test_others_may_write_meanwhile() -> None:
    made = make(DATA)
    written = write_files(made, NEW)
    other = DeltaTable(store_of(made))
    write_deltalake(other, [{"id": 4}], mode="append")
    other.delete("id = 1")
    made.commit(written)
    assert fresh_rows(made, "id") == [2, 3, 4]


@pytest.mark.parametrize(
    "change",
    [
        lambda made: made.alter.add_constraint({"small": "id < 3"}),
        lambda made: made.alter.add_columns(Field("x", "long")),
        lambda made: made.alter.set_table_properties({"delta.appendOnly": "true"}),
        lambda made: write_deltalake(
            made, DATA, mode="overwrite", schema_mode="overwrite", partition_by=["id"]
        ),
        lambda made: DeltaTable.create(
            store_of(made), made.schema(), mode="overwrite", partition_by=["p"]
        ),
    ],
)
@pytest.mark.parametrize("knows", [True, False])
def test_files_written_by_other_rules_are_refused(change: Any, knows: bool) -> None:
    """Whether the driver has seen the change, or meets it when it commits."""
    made = make(DATA)
    driver = DeltaTable(store_of(made))
    written = write_files(driver, NEW)
    change(made)
    if knows:
        driver.update_incremental()
    made.update_incremental()
    with unchanged(made), pytest.raises(DeltaError):
        driver.commit(written)
    driver.update_incremental()
    assert driver.version() == made.version()


def test_files_of_another_table_are_refused() -> None:
    one, two = make(DATA), make(DATA)
    with unchanged(one), pytest.raises(InvalidInputError, match="written for"):
        one.commit(write_files(two, NEW))
    with pytest.raises(InvalidInputError, match="no written files"):
        one.commit([])
    changed = DeltaTable(store_of(one))
    changed.alter.add_constraint({"small": "id < 10"})
    with pytest.raises(InvalidInputError, match="different"):
        WrittenFiles.merge([write_files(one, NEW), write_files(changed, NEW)])


def test_a_commit_is_repeated_safely() -> None:
    made = make(DATA)
    step = CommitProperties(app_transactions=[Transaction("job", 1)])
    written = write_files(made, NEW)
    assert made.commit(written, commit_properties=step) == 1
    assert made.commit(written, commit_properties=step) == 1
    assert fresh_rows(made, "id") == [1, 2, 3]
    assert set(written.paths) < set(store_of(made).files)


def test_a_commit_that_lost_may_be_tried_again() -> None:
    """Files of workers are not the driver's to remove."""
    made = make(DATA)
    written = write_files(made, NEW)
    write_deltalake(DeltaTable(store_of(made)), [{"id": 4}], mode="append")
    with pytest.raises(DeltaError):
        made.commit(written, commit_properties=CommitProperties(max_commit_retries=0))
    made.commit(written)
    assert fresh_rows(made, "id") == [1, 2, 3, 4]


@pytest.mark.protocol("IDN-04")
def test_identity_values_of_workers_do_not_overlap() -> None:
    identity = {
        "delta.identity.start": 1,
        "delta.identity.step": 1,
        "delta.identity.allowExplicitInsert": False,
    }
    fields = [Field("id", "long", metadata=identity), Field("v", "long")]
    made = DeltaTable.create(DictStore(), fields)
    written = write_files(made, [{"v": 1}, {"v": 2}])
    made.commit(written)
    write_deltalake(made, [{"v": 3}], mode="append")
    assert fresh_rows(made) == [(1, 1), (2, 2), (3, 3)]
    late = write_files(DeltaTable(store_of(made), 1), [{"v": 9}])
    with unchanged(made), pytest.raises(InvalidInputError, match="write them again"):
        made.commit(late)
    parts = [deltalog.write_files(made, [{"v": 5}]) for _ in range(2)]
    with unchanged(made), pytest.raises(InvalidInputError, match="same values of the identity"):
        made.commit(parts)
    assert not any("txn" in action for action in actions(made))
