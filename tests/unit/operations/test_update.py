"""Updates: which rows change, into what, and what becomes of the files that hold them."""

from __future__ import annotations

import pytest

from deltalog.errors import DeltaError, InvalidInputError
from tests.support.statements import FEED, ROW_IDS, VECTORS, StatedTable

MODES = pytest.mark.parametrize("properties", [{}, VECTORS], ids=["rewritten", "masked"])


NUMBERS = {"id": "long", "x": "long"}


def rows(*ids: int) -> list[dict[str, int]]:
    return [{"id": number, "x": 10 * number} for number in ids]


@MODES
def test_only_rows_that_match_change(properties: dict[str, str]) -> None:
    table = StatedTable(NUMBERS, rows(1, 2, 3), rows(4, 5), properties=properties)
    updated = table.update({"x": "x + id"}, "id in (2, 4)")
    assert table.rows() == [
        {"id": 1, "x": 10}, {"id": 2, "x": 22}, {"id": 3, "x": 30},
        {"id": 4, "x": 44}, {"id": 5, "x": 50},
    ]  # fmt: skip
    assert updated.rows.all_updated == 2


@MODES
def test_without_a_predicate_every_row_changes_and_no_old_file_stays(
    properties: dict[str, str],
) -> None:
    table = StatedTable(NUMBERS, rows(1, 2), rows(3), properties=properties)
    updated = table.update({"x": "0"})
    assert table.values("x") == [0, 0, 0]
    assert updated.files.num_removed_files == 2
    assert updated.files.num_vectors_added == 0
    assert updated.files.num_copied_rows == 0


def test_an_argument_forces_either_way() -> None:
    masked = StatedTable(NUMBERS, rows(1, 2), properties=VECTORS)
    applied = masked.update({"x": "0"}, "id = 1", use_deletion_vectors=False).files
    assert (applied.num_removed_files, applied.num_vectors_added) == (1, 0)
    assert applied.num_copied_rows == 1
    plain = StatedTable(NUMBERS, rows(1, 2))
    with pytest.raises(InvalidInputError, match="does not support"):
        plain.update({"x": "0"}, "id = 1", use_deletion_vectors=True)


# --- what the table demands


@pytest.mark.protocol("APP-01")
def test_append_only_tables_refuse() -> None:
    table = StatedTable(NUMBERS, rows(1), properties={"delta.appendOnly": "true"})
    with pytest.raises(DeltaError, match="append"):
        table.update({"x": "0"})


# --- ids and the change feed


@pytest.mark.protocol("ROWID-13", "ROWID-14")
@MODES
def test_row_ids_stay_and_only_changed_rows_get_the_new_version(
    properties: dict[str, str],
) -> None:
    table = StatedTable(NUMBERS, rows(1, 2, 3), properties={**properties, **ROW_IDS})
    columns = ("id", "_metadata.row_id", "_metadata.row_commit_version")
    table.update({"x": "0"}, "id = 2")
    table.update({"x": "1"}, "id >= 2")
    found = [tuple(row.values()) for row in table.rows(*columns)]
    assert found == [(1, 0, 1), (2, 1, 3), (3, 2, 3)]


@pytest.mark.protocol("DF-08", "CDC-02")
@MODES
def test_the_feed_tells_what_was_and_what_is(properties: dict[str, str]) -> None:
    table = StatedTable(NUMBERS, rows(1, 2, 3), properties={**properties, **FEED})
    table.update({"x": "0"}, "id = 2")
    assert table.changes() == [
        {"id": 2, "x": 0, "_change_type": "update_postimage"},
        {"id": 2, "x": 20, "_change_type": "update_preimage"},
    ]
