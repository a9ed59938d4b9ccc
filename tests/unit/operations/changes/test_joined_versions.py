"""UPDATE and MERGE compute the new versions of a few rows of many files together."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.operations.changes import apply
from deltalog.operations.changes.apply import FileRows
from deltalog.operations.changes.local import _Update
from deltalog.operations.changes.merge.local import MergeUpdate

NUM_FILES, FILE_ROWS = 12, 10
OPTIONS = {
    "plain": {},
    "feed": {"delta.enableChangeDataFeed": "true"},
    "row ids": {"delta.enableRowTracking": "true"},
    "both": {"delta.enableChangeDataFeed": "true", "delta.enableRowTracking": "true"},
}


def table_of(path: Path, options: dict[str, str], num_files: int = NUM_FILES) -> DeltaTable:
    """A table whose file number `n` has the ids `10 n` to `10 n + 9`."""
    vectors = {"delta.enableDeletionVectors": "true", **options}
    for number in range(num_files):
        ids = list(range(number * FILE_ROWS, (number + 1) * FILE_ROWS))
        rows = pa.table({"id": ids, "v": [f"v{one}" for one in ids]})
        write_deltalake(path, rows, mode="append", configuration=vectors)
    return DeltaTable(path)


def calls_of(kind: Any, monkeypatch: pytest.MonkeyPatch) -> list[list[FileRows]]:
    """The parts of each call that computes new versions."""
    calls: list[list[FileRows]] = []
    real = kind.__call__

    def counted(self: Any, parts: Any, old: pa.RecordBatch) -> Any:
        assert sum(part.num_rows for part in parts) == old.num_rows
        calls.append(list(parts))
        return real(self, parts, old)

    monkeypatch.setattr(kind, "__call__", counted)
    return calls


def rows_of(table: DeltaTable) -> dict[int, str]:
    rows = table.to_pyarrow_table().to_pylist()
    found = {row["id"]: row["v"] for row in rows}
    assert len(found) == len(rows)
    return found


def expected_rows() -> dict[int, str]:
    return {one: f"v{one}" for one in range(NUM_FILES * FILE_ROWS)}


def test_an_update_of_many_files_is_computed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of(tmp_path, {})
    calls = calls_of(_Update, monkeypatch)
    done = table.update(updates={"v": "v || '!'"}, predicate="id % 10 = 3")
    assert done["num_updated_rows"] == NUM_FILES
    assert [sorted(part.file for part in parts) for parts in calls] == [list(range(NUM_FILES))]
    wanted = {one: v + "!" * (one % 10 == 3) for one, v in expected_rows().items()}
    assert rows_of(table) == wanted


@pytest.mark.parametrize("updates", [{"v": "source.v"}, {"v": "target.v || source.v"}])
def test_a_merge_into_many_files_is_computed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, updates: dict[str, str]
) -> None:
    table = table_of(tmp_path, {})
    calls = calls_of(MergeUpdate, monkeypatch)
    ids = list(range(4, NUM_FILES * FILE_ROWS, FILE_ROWS))
    source = pa.table({"id": ids, "v": [f"s{one}" for one in ids]})
    merger = table.merge(source, "target.id = source.id", "source", "target")
    merger.when_matched_update(updates).execute()
    assert len(calls) == 1
    assert len(calls[0]) == NUM_FILES
    new = {one: f"s{one}" if len(updates["v"]) < 10 else f"v{one}s{one}" for one in ids}
    assert rows_of(table) == {**expected_rows(), **new}


@pytest.mark.parametrize("limit", ["_JOINED_ROWS", "_JOINED_BYTES"])
def test_the_rows_that_are_computed_together_are_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    table = table_of(tmp_path, {})
    monkeypatch.setattr(apply, limit, 1)
    calls = calls_of(_Update, monkeypatch)
    table.update(new_values={"v": "new"}, predicate="id % 10 < 2")
    assert [len(parts) for parts in calls] == [1] * NUM_FILES
    wanted = {one: "new" if one % 10 < 2 else v for one, v in expected_rows().items()}
    assert rows_of(table) == wanted


def feed_of(table: DeltaTable) -> list[tuple[int, str, str]]:
    """The changes of the last version: id, value and type."""
    version = table.version()
    found = table.load_cdf(version, version).read_all().to_pylist()
    return sorted((row["id"], row["v"], row["_change_type"]) for row in found)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("joined_rows", [1, 3, 1 << 14])
def test_masked_and_rewritten_files_with_several_clauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, str], joined_rows: int
) -> None:
    monkeypatch.setattr(apply, "_JOINED_ROWS", joined_rows)
    random_of = random.Random(f"{options} {joined_rows}")
    table = table_of(tmp_path, options)
    has_ids = "delta.enableRowTracking" in options
    before = _row_ids(table) if has_ids else {}
    # A few rows of most files, which are masked; most rows of others, which are rewritten; all rows
    # of one file.
    shares = [random_of.choice([0.1, 0.2, 0.7]) for _ in range(NUM_FILES - 1)] + [1.0]
    ids = [
        number * FILE_ROWS + row
        for number, share in enumerate(shares)
        for row in sorted(random_of.sample(range(FILE_ROWS), max(1, round(share * FILE_ROWS))))
    ]
    random_of.shuffle(ids)
    source = pa.table({"id": [*ids, 9000, 9001], "s": [f"s{one}" for one in [*ids, 9000, 9001]]})
    merger = table.merge(source, "target.id = source.id", "source", "target")
    merger.when_matched_delete("source.id % 3 = 0").when_matched_update(
        {"v": "target.v || source.s"}, predicate="source.id % 3 = 1"
    ).when_not_matched_insert({"id": "source.id", "v": "source.s"}).execute()
    updated = {one: f"v{one}s{one}" for one in ids if one % 3 == 1}
    deleted = {one for one in ids if one % 3 == 0}
    inserted = {9000: "s9000", 9001: "s9001"}
    wanted = {**expected_rows(), **updated, **inserted}
    assert rows_of(table) == {one: v for one, v in wanted.items() if one not in deleted}
    if "delta.enableChangeDataFeed" in options:
        assert feed_of(table) == sorted(
            [
                *((one, f"v{one}", "update_preimage") for one in updated),
                *((one, v, "update_postimage") for one, v in updated.items()),
                *((one, f"v{one}", "delete") for one in deleted),
                *((one, v, "insert") for one, v in inserted.items()),
            ]
        )
    if has_ids:
        after = _row_ids(table)
        assert {one: after[one] for one in after if one < 9000} == {
            one: before[one] for one in before if one not in deleted
        }


def _row_ids(table: DeltaTable) -> dict[int, int]:
    found = table.scan(["id", "_metadata.row_id"]).to_table().to_pylist()
    return {row["id"]: row["_metadata.row_id"] for row in found}
