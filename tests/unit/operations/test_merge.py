"""Merge: what it tells, and upserts by key."""

from __future__ import annotations

import pytest

from deltalog.errors import InvalidInputError
from deltalog.operations.merge import Merged, upsert
from tests.support.merging import NUMBERS, pairs, rows
from tests.support.statements import (
    VECTORS,
    StatedTable,
    by_source_delete,
    by_source_update,
    insert,
    matched_delete,
    matched_update,
)

MODES = pytest.mark.parametrize("properties", [{}, VECTORS], ids=["rewritten", "masked"])


@MODES
def test_metrics_are_those_of_the_reference(properties: dict[str, str]) -> None:
    always = {"deltalog.maxDeletedRowsRatio": "1"}  # as the reference does
    table = StatedTable(
        NUMBERS, rows(0, 1, 2, 3, 4, 5), rows(6, 7, 8), properties={**properties, **always}
    )
    merged = table.merge(
        rows(6, 7, 10),
        "t.id = s.id",
        matched_delete("t.id = 6"),
        matched_update(x="1"),
        insert(),
        by_source_delete("t.id = 0"),
        by_source_update("t.id < 3", x="2"),
    )
    found = Merged(merged).metrics()
    expected = {
        "numSourceRows": 3,
        "numTargetRowsInserted": 1,
        "numTargetRowsUpdated": 3,
        "numTargetRowsMatchedUpdated": 1,
        "numTargetRowsNotMatchedBySourceUpdated": 2,
        "numTargetRowsDeleted": 2,
        "numTargetRowsMatchedDeleted": 1,
        "numTargetRowsNotMatchedBySourceDeleted": 1,
        "numTargetRowsCopied": 0 if properties else 4,
        "numOutputRows": 4 if properties else 8,
        "numTargetFilesAdded": 1,
        "numTargetFilesRemoved": 0 if properties else 2,
        "numTargetDeletionVectorsAdded": 2 if properties else 0,
        "numTargetDeletionVectorsRemoved": 0,
    }
    assert {name: found[name] for name in expected} == expected


def test_upsert_by_several_keys_and_with_null_as_a_key() -> None:
    table = StatedTable({"a": "long", "b": "string", "x": "long"}, [{"a": 1, "b": None, "x": 0}])
    source = [{"a": 1, "b": None, "x": 5}, {"a": 1, "b": "y", "x": 6}]
    table.run_merge(source, upsert(None, ["a", "b"], null_safe=True))
    assert pairs(table) == [(1, None, 5), (1, "y", 6)]
    table.run_merge(source[:1], upsert(None, ["a", "b"]))
    assert pairs(table) == [(1, None, 5), (1, None, 5), (1, "y", 6)]
    with pytest.raises(InvalidInputError, match="at least one key"):
        upsert(None, [])
