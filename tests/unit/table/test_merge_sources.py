"""Sources of `DeltaTable.merge`: rows that are given once, and rows of several verbs at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import ConstraintViolationError, InvalidInputError
from deltalog.log.names import commit_path
from deltalog.transaction import AppTransaction, CommitProperties
from tests.support.logs import DictStore

NEW = pa.table({"id": [2, 3], "x": [20, 30]})
MERGED = [{"id": 2, "x": 20}, {"id": 3, "x": 30}]
Looking = Callable[[Any], object]


class OvertakenStore(DictStore):
    """A store in which another writer commits just before the next commit."""

    rivals: list[Callable[[], object]]

    def put_if_absent(self, path: str, data: bytes) -> None:
        if path == commit_path(1) and self.rivals:
            self.rivals.pop()()
        super().put_if_absent(path, data)


def made(**options: Any) -> DeltaTable:
    store = DictStore()
    write_deltalake(store, pa.table({"id": [1, 2], "x": [1, 2]}), **options)
    return DeltaTable(store)


def rows(table: DeltaTable) -> list[dict[str, Any]]:
    return sorted(table.to_pyarrow_table().to_pylist(), key=lambda row: row["id"])


@pytest.mark.parametrize("source", [NEW.to_reader, lambda: iter(NEW.to_batches()), lambda: NEW])
@pytest.mark.parametrize(
    "look", [lambda m: m.explain(), lambda m: m.execute(dry_run=True)], ids=["explain", "dry_run"]
)
def test_looking_at_a_merge_leaves_its_rows(source: Callable[[], Any], look: Looking) -> None:
    table = made()
    merge = table.merge(source(), "s.id = t.id", "s", "t")
    merge.when_matched_update_all().when_not_matched_insert_all()
    merge.when_not_matched_by_source_delete()
    look(merge)
    look(merge)
    assert merge.execute()["num_source_rows"] == 2
    assert rows(table) == MERGED


def test_rows_that_were_given_once_are_merged_once() -> None:
    table = made()
    merge = table.merge(NEW.to_reader(), "s.id = t.id", "s", "t").when_not_matched_insert_all()
    merge.when_not_matched_by_source_delete()
    merge.execute()
    for again in (merge.execute, merge.explain):
        with pytest.raises(InvalidInputError, match="can be read only once"):
            again()
    assert [row["id"] for row in rows(table)] == [2, 3]


def test_a_merge_that_failed_can_be_done_again() -> None:
    table = made()
    table.alter.add_constraint({"small": "x < 25"})
    merge = table.merge(NEW.to_reader(), "s.id = t.id", "s", "t").when_not_matched_insert_all()
    with pytest.raises(ConstraintViolationError):
        merge.execute()
    table.alter.drop_constraint("small")
    assert merge.execute()["num_target_rows_inserted"] == 1


def test_columns_that_a_verb_of_the_transaction_added_stay() -> None:
    table = made()
    with table.transaction() as tx:
        tx.append(pa.table({"id": [7], "x": [7], "y": ["seven"]}), schema_mode="merge")
        merge = tx.merge(
            pa.table({"id": [8], "z": ["eight"]}), "s.id = t.id", "s", "t", merge_schema=True
        )
        merge.when_not_matched_insert_all().execute()
    assert list(table.schema().names) == ["id", "x", "y", "z"]
    assert rows(table)[2:] == [
        {"id": 7, "x": 7, "y": "seven", "z": None},
        {"id": 8, "x": None, "y": None, "z": "eight"},
    ]


def test_a_step_that_another_writer_made_meanwhile_counts_nothing() -> None:
    store = OvertakenStore()
    store.rivals = []
    write_deltalake(store, pa.table({"id": [1, 2], "x": [1, 2]}))
    step = CommitProperties(app_transactions=[AppTransaction("app", 1)])
    mine, theirs = (
        DeltaTable(store)
        .merge(NEW, "s.id = t.id", "s", "t", commit_properties=step)
        .when_matched_update_all()
        .when_not_matched_insert_all()
        for _ in range(2)
    )
    store.rivals.append(theirs.execute)
    assert mine.execute() == {}
    assert DeltaTable(store).version() == 1
    assert not store.rivals


def test_rows_of_a_new_table_match_the_predicate_too() -> None:
    store = DictStore()
    for wrong, error in (("p = 1", ConstraintViolationError), ("p ==== 1", InvalidInputError)):
        with pytest.raises(error):
            write_deltalake(store, pa.table({"p": [1, 2]}), mode="overwrite", predicate=wrong)
    assert not DeltaTable.is_deltatable(store)  # type: ignore[arg-type]  # a store works too
    write_deltalake(store, pa.table({"p": [1, 1]}), mode="overwrite", predicate="p = 1")
    assert DeltaTable(store).count() == 2


def test_changes_know_the_time() -> None:
    table = made(configuration={"delta.enableChangeDataFeed": "true"})
    recent = "_commit_timestamp > current_timestamp() - INTERVAL 1 DAY"
    assert len(table.load_cdf(predicate=recent).to_table()) in {0, 2}
