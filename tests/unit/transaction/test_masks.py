"""Rows that are marked as deleted: vectors, counts and bounds of their files."""

from __future__ import annotations

import pyarrow as pa
import pytest

from deltalog import col, write_deltalake
from deltalog._util.json import loads
from tests.support.facade import (
    VECTORS,
    actions,
    fresh_rows,
    last,
    make,
    store_of,
)

DATA = [{"id": n, "p": "ab"[n % 2]} for n in range(6)]


@pytest.mark.protocol("DV-11", "D-56")
def test_a_masked_file_tells_its_rows_and_wide_bounds() -> None:
    made = make(DATA, configuration=VECTORS)
    found = made.delete("id = 3")
    (add,) = [action["add"] for action in actions(made) if "add" in action]
    (remove,) = [action["remove"] for action in actions(made) if "remove" in action]
    stats = loads(add["stats"], "stats")
    assert (stats["numRecords"], stats["tightBounds"]) == (6, False)
    assert add["deletionVector"]["cardinality"] == 1
    assert (add["path"], remove["path"]) == (remove["path"], add["path"])
    assert remove.get("deletionVector") is None
    assert (found["num_deletion_vectors"], found["num_copied_rows"]) == (1, 0)
    metrics = last(made)["operationMetrics"]
    assert (metrics["numDeletionVectorsAdded"], metrics["numDeletionVectorsUpdated"]) == ("1", "0")
    made.delete("id = 4")
    (remove,) = [action["remove"] for action in actions(made) if "remove" in action]
    assert remove["deletionVector"] == add["deletionVector"]
    metrics = last(made)["operationMetrics"]
    assert (metrics["numDeletionVectorsUpdated"], metrics["numDeletionVectorsRemoved"]) == (
        "1",
        "1",
    )


@pytest.mark.protocol("DV-18")
def test_later_vectors_contain_earlier_ones() -> None:
    made = make(DATA, configuration=VECTORS)
    for gone in ([1], [1, 4], [0, 1, 4]):
        made.delete(col("id").is_in(gone))
        (add,) = [action["add"] for action in actions(made) if "add" in action]
        assert add["deletionVector"]["cardinality"] == len(gone)
        assert fresh_rows(made, "id") == [n for n in range(6) if n not in gone]


@pytest.mark.protocol("ROWID-17", "ROWID-14")
def test_a_masked_file_keeps_its_first_id_and_version() -> None:
    made = make(DATA, configuration={**VECTORS, "delta.enableRowTracking": "true"})
    write_deltalake(made, [{"id": 6}, {"id": 7}], mode="append")
    made.delete("id = 7")
    (add,) = [action["add"] for action in actions(made) if "add" in action]
    (remove,) = [action["remove"] for action in actions(made) if "remove" in action]
    assert (add["baseRowId"], add["defaultRowCommitVersion"]) == (6, 1)
    assert (remove["baseRowId"], remove["defaultRowCommitVersion"]) == (6, 1)
    assert last(made)["tags"]["delta.rowTracking.preserved"] == "true"


@pytest.mark.protocol("DF-05")
def test_large_vectors_share_a_file() -> None:
    numbers = pa.table({"id": range(40_000)})
    made = make(numbers, configuration=VECTORS)
    write_deltalake(made, numbers, mode="append")
    made.delete("id % 7 = 3 or id % 11 = 5")
    adds = [action["add"] for action in actions(made) if "add" in action]
    vectors = [path for path in store_of(made).files if path.endswith(".bin")]
    assert (len(adds), len(vectors)) == (2, 1)
    assert {add["deletionVector"]["storageType"] for add in adds} == {"u"}
    assert "/" not in vectors[0]
    expected = [n for n in range(40_000) if n % 7 != 3 and n % 11 != 5]
    assert sorted(fresh_rows(made)) == sorted([*expected, *expected])


def test_vectors_follow_the_random_prefixes_of_a_table() -> None:
    prefixed = {**VECTORS, "delta.randomizeFilePrefixes": "true"}
    made = make(pa.table({"id": range(10_000)}), configuration=prefixed)
    made.delete("id % 3 = 1")
    (vector,) = [path for path in store_of(made).files if path.endswith(".bin")]
    assert len(vector.split("/")[0]) == 2
    assert made.count() == len(fresh_rows(made)) == 6667
