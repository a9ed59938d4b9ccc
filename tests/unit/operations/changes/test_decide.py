"""What becomes of files of which rows change: chosen for each of them, by property or argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import InvalidInputError, InvalidMetadataError
from tests.support.facade import (
    FEED,
    NO_VECTORS,
    VECTORS,
    actions,
    changes,
    last,
    make,
    rows,
    unchanged,
)

RATIO = "deltalog.maxDeletedRowsRatio"
ROW_IDS = {"delta.enableRowTracking": "true"}
# A file of ten rows, one of two, one of a single row.
PARTS = [range(10), range(10, 12), range(12, 13)]

Change = Callable[..., dict[str, Any]]


def _table(**configuration: str) -> DeltaTable:
    first, *others = [[{"id": n, "v": 0} for n in part] for part in PARTS]
    table = make(first, configuration={**VECTORS, **configuration})
    for part in others:
        write_deltalake(table, part, mode="append")
    return table


def _delete(table: DeltaTable, where: str, **options: Any) -> dict[str, Any]:
    return table.delete(where, **options)


def _update(table: DeltaTable, where: str, **options: Any) -> dict[str, Any]:
    return table.update({"v": "1"}, predicate=where, **options)


def _merge(table: DeltaTable, where: str, *, dry_run: bool = False, **options: Any) -> Any:
    source = pa.table({"id": list(range(13))})
    merger = table.merge(source, "target.id = source.id", **options)
    merger = merger.when_matched_update({"v": "1"}, f"target.{where}")
    return merger.execute(dry_run=dry_run)


VERBS = pytest.mark.parametrize(
    "verb", [_delete, _update, _merge], ids=["delete", "update", "merge"]
)


def _decisions(table: DeltaTable, version: int | None = None) -> dict[str, int]:
    """How many files were masked, and how many left the table."""
    found = actions(table, version)
    masked = [
        action["add"]["path"] for action in found if "deletionVector" in action.get("add", {})
    ]
    removed = [action["remove"]["path"] for action in found if "remove" in action]
    return {"masked": len(masked), "removed": len(set(removed) - set(masked))}


def _expected(verb: Change, low: int) -> dict[int, int]:
    changed = {n: int(n >= low) for n in range(13)}
    return {n: v for n, v in changed.items() if verb is not _delete or not v}


@VERBS
@pytest.mark.parametrize(
    ("configuration", "low", "masked", "removed"),
    [
        ({}, 9, 1, 2),
        ({}, 11, 1, 1),  # half of the rows may be dead
        ({}, 5, 1, 2),
        ({}, 4, 0, 3),  # more than half of them may not
        ({RATIO: "0.05"}, 9, 0, 3),
        ({RATIO: "0.95"}, 1, 1, 2),
        ({RATIO: "0"}, 11, 0, 2),
        ({RATIO: "1"}, 1, 1, 2),
        (dict(NO_VECTORS), 9, 0, 3),
        ({"delta.enableRowLevelConcurrency": "true"}, 1, 1, 2),
        ({"delta.enableRowLevelConcurrency": "true", RATIO: "0.5"}, 1, 0, 3),
    ],
)
def test_each_file_has_its_own_fate(
    verb: Change, configuration: dict[str, str], low: int, masked: int, removed: int
) -> None:
    table = _table(**configuration, **ROW_IDS)
    ids = dict(rows(table, "id", "_metadata.row_id"))
    found = verb(table, f"id >= {low}")
    assert dict(rows(table)) == dict(rows(DeltaTable(table.snapshot.store))) == _expected(verb, low)
    assert _decisions(table) == {"masked": masked, "removed": removed}
    left = dict(rows(table, "id", "_metadata.row_id"))
    assert left == {n: ids[n] for n in left}
    vectors = found.get("num_deletion_vectors", found.get("num_deletion_vectors_added"))
    assert vectors in {masked, None}
    assert found.get("num_rewritten_files", found.get("num_target_files_rewritten")) in {0, 1}


@VERBS
@pytest.mark.parametrize(("asked", "masked", "removed"), [(True, 1, 0), (False, 0, 1)])
@pytest.mark.parametrize("low", [1, 9])
def test_an_argument_decides(
    verb: Change, asked: bool, masked: int, removed: int, low: int
) -> None:
    table = _table()
    where = f"id between {low} and 9"
    verb(table, where, use_deletion_vectors=asked)
    assert _decisions(table) == {"masked": masked, "removed": removed}


def test_rows_that_were_dead_before_count() -> None:
    table = _table()
    table.delete("id < 3")
    table.delete("id in (3, 4)")
    assert _decisions(table) == {"masked": 1, "removed": 0}
    found = table.delete("id = 5")
    assert _decisions(table) == {"masked": 0, "removed": 1}
    assert (found["num_rewritten_files"], found["num_copied_rows"]) == (1, 4)
    metrics = last(table)["operationMetrics"]
    assert (metrics["numCopiedRows"], metrics["numDeletionVectorsRemoved"]) == ("4", "1")


@pytest.mark.parametrize("ratio", [None, "0.5"])
def test_a_feed_tells_of_all_rows_whatever_the_fates(ratio: str | None) -> None:
    table = _table(**FEED, **({} if ratio is None else {RATIO: ratio}))
    table.delete("id between 1 and 10")
    # Told by change files a deletion would cost more: so that is done only where it is asked for.
    assert _decisions(table) == {
        "masked": 2 if ratio is None else 1,
        "removed": int(ratio is not None),
    }
    assert changes(table) == [("delete", n) for n in range(1, 11)]
    table.update({"v": "2"}, predicate="id in (0, 11)")
    kinds = ["update_postimage", "update_preimage"]
    assert changes(table) == [(kind, n) for kind in kinds for n in (0, 11)]


@VERBS
def test_a_dry_run_shows_the_fate_of_each_file(verb: Change) -> None:
    table = _table(**ROW_IDS)
    with unchanged(table):
        found = verb(table, "id between 2 and 10", dry_run=True)
        forced = verb(table, "id < 10", dry_run=True)["files"]
    files = found.pop("files")
    assert files.sort_by("num_rows").select(
        ["action", "num_rows", "deleted_ratio"]
    ).to_pylist() == [
        {"action": "mask", "num_rows": 1, "deleted_ratio": 0.5},
        {"action": "rewrite", "num_rows": 8, "deleted_ratio": 0.8},
    ]
    assert "80.0% of its rows" in files.sort_by("num_rows").column("reason")[1].as_py()
    assert forced.column("action").to_pylist() == ["remove"]
    done = verb(table, "id between 2 and 10")
    same = [name for name in found if "_rows" in name and name != "num_output_rows"]
    same += [name for name in found if "removed" in name or "rewritten" in name]
    assert {name: found[name] for name in same} == {name: done[name] for name in same}


def test_a_merge_explains_the_choice() -> None:
    def explained(**options: Any) -> str:
        merger = table.merge(pa.table({"id": [1]}), "target.id = source.id", **options)
        return merger.when_matched_delete().explain()

    table = _table()
    assert "more than 50% of a file" in explained()
    assert "changed files: rows are marked by deletion vectors\n" in explained(
        use_deletion_vectors=True
    )
    assert "changed files: remaining rows are rewritten" in explained(use_deletion_vectors=False)


@pytest.mark.parametrize("text", ["-0.1", "1.5", "half", "nan", ""])
def test_a_share_is_a_number_from_0_to_1(text: str) -> None:
    table = _table()
    with pytest.raises((InvalidInputError, InvalidMetadataError), match="from 0 to 1"):
        table.alter.set_table_properties({RATIO: text})


def test_a_misspelt_share_is_no_property() -> None:
    table = _table()
    table.alter.set_table_properties({"deltalog.MAXDELETEDROWSRATIO": "0.25"})
    assert table.properties.max_deleted_rows_ratio == 0.25
    with pytest.raises(InvalidInputError, match=f"did you mean '{RATIO}'"):
        table.alter.set_table_properties({"deltalog.maxDeletedRowRatio": "0.5"})
