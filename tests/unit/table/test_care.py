"""Checkpoints, cleaning and compaction of the log, and domains, through the facade."""

from __future__ import annotations

import pytest

from deltalog import DeltaTable, Field, PostCommitHookProperties, write_deltalake
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.testing import FaultyStore, InjectedFault
from tests.support.facade import fresh_rows, last, make, rows, store_of, unchanged

DOMAINS = {"delta.feature.domainMetadata": "supported"}
DAY_MS = 86_400_000


def checkpoints(made: DeltaTable) -> list[str]:
    return sorted(path for path in store_of(made).files if ".checkpoint." in path)


def append(made: DeltaTable, number: int, **options: object) -> None:
    for n in range(number):
        write_deltalake(made, [{"id": n}], mode="append", **options)  # type: ignore[arg-type]


@pytest.mark.protocol("CKPT-04", "B4-delta.checkpointInterval")
def test_checkpoints_are_written_at_the_interval() -> None:
    made = make([{"id": 1}])
    append(made, 12)
    assert [path[11:31] for path in checkpoints(made)] == [f"{10:020d}"]
    quick = make([{"id": 1}], configuration={"delta.checkpointInterval": "2"})
    append(
        quick, 2, post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=False)
    )
    assert [path[11:31] for path in checkpoints(quick)] == [f"{2:020d}"]
    append(quick, 2)
    # The old one went with the log before it: the store's files are as old as can be.
    assert [path[11:31] for path in checkpoints(quick)] == [f"{4:020d}"]
    assert DeltaTable(store_of(quick)).count() == 5


def test_checkpoints_can_be_left_to_others() -> None:
    made = make([{"id": 1}], configuration={"delta.checkpointInterval": "2"})
    append(made, 4, post_commithook_properties=PostCommitHookProperties(create_checkpoint=False))
    assert checkpoints(made) == []
    made.create_checkpoint()
    assert len(checkpoints(made)) == 1
    assert fresh_rows(made) == [0, 1, 1, 2, 3]


def test_a_version_of_old_may_have_a_checkpoint() -> None:
    made = make([{"id": 1}])
    append(made, 2)
    DeltaTable(store_of(made), 1).create_checkpoint()
    assert [path[11:31] for path in checkpoints(made)] == [f"{1:020d}"]
    assert fresh_rows(made) == rows(made)


def test_a_checkpoint_that_fails_fails_no_commit() -> None:
    made = make([{"id": 1}], configuration={"delta.checkpointInterval": "1"})
    faulty = DeltaTable(FaultyStore(store_of(made), InjectedFault(path=".checkpoint", times=100)))
    write_deltalake(faulty, [{"id": 2}], mode="append")
    assert faulty.version() == 1
    assert fresh_rows(made) == [1, 2]


def test_old_log_files_are_cleaned_up() -> None:
    made = make([{"id": 1}], configuration={"delta.checkpointInterval": "100"})
    append(made, 3)
    store = store_of(made)
    assert made.cleanup_metadata() == []  # there is no checkpoint to stand on
    made.create_checkpoint()
    append(made, 1)
    removed = made.cleanup_metadata()
    assert f"_delta_log/{0:020d}.json" in removed
    assert not set(removed) & set(store.files)
    assert fresh_rows(made) == [0, 0, 1, 1, 2]
    with pytest.raises(DeltaError):
        DeltaTable(store, 0)


def test_cleaning_up_moves_no_table() -> None:
    made = make([{"id": 1}])
    append(made, 2)
    made.create_checkpoint()
    old = DeltaTable(store_of(made), 1)
    removed = old.cleanup_metadata()
    assert f"_delta_log/{0:020d}.json" in removed
    assert (old.version(), fresh_rows(made)) == (1, [0, 1, 1])
    with pytest.raises(InvalidInputError):
        write_deltalake(old, [{"id": 1}], mode="append")


def test_commits_are_compacted() -> None:
    made = make([{"id": 1}])
    append(made, 4)
    made.compact_logs(1, 3)
    store = store_of(made)
    assert f"_delta_log/{1:020d}.{3:020d}.compacted.json" in store.files
    before = rows(made)
    for version in (2, 3):
        store.files[f"_delta_log/{version:020d}.json"] = b"{"  # nobody needs to look
    assert fresh_rows(made) == before
    with pytest.raises(InvalidInputError):
        made.compact_logs(3, 1)


@pytest.mark.protocol("DOM-03", "DOM-06", "DOM-07")
def test_domains_come_and_go() -> None:
    made = make([{"id": 1}], configuration=dict(DOMAINS))
    made.set_domain_metadata("mine", '{"a":1}')
    assert DeltaTable(store_of(made)).domain_metadata() == {"mine": '{"a":1}'}
    assert last(made)["operation"] == "SET DOMAIN METADATA"
    made.remove_domain_metadata("mine")
    assert DeltaTable(store_of(made)).domain_metadata() == {}
    with unchanged(made), pytest.raises(InvalidInputError, match="no such domain"):
        made.remove_domain_metadata("mine")
    with unchanged(made), pytest.raises(InvalidInputError, match=r"delta\.mine"):
        made.set_domain_metadata("delta.mine", "")
    plain = make([{"id": 1}])
    with unchanged(plain), pytest.raises(InvalidInputError, match="domainMetadata"):
        plain.set_domain_metadata("mine", "")


def test_domains_survive_checkpoints() -> None:
    made = make([{"id": 1}], configuration=dict(DOMAINS))
    made.set_domain_metadata("mine", "x")
    made.alter.add_columns(Field("y", "long"))
    made.create_checkpoint()
    assert DeltaTable(store_of(made)).domain_metadata() == {"mine": "x"}
