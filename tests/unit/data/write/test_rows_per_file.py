"""Files of so many rows at most."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, WriterProperties, write_deltalake
from deltalog.errors import InvalidInputError
from deltalog.operations.changes.file_options import FileOptions
from deltalog.operations.write import Write
from deltalog.transaction import CommitOptions
from tests.support.logs import DictStore


def _written(
    num_rows: int, most: int, *, by: list[str] | None = None, group: int = 7
) -> DeltaTable:
    store = DictStore()
    rows = pa.table({"id": range(num_rows), "p": [number % 2 for number in range(num_rows)]})
    write_deltalake(store, rows.slice(0, 0), partition_by=by)
    table = DeltaTable(store)
    files = FileOptions(
        max_rows_per_file=most, writer_properties=WriterProperties(max_row_group_size=group)
    )
    table.execute(Write(data=rows, file_options=files), CommitOptions())
    return table


def _counts(table: DeltaTable) -> list[Any]:
    return table.get_add_actions()["num_records"].to_pylist()


@pytest.mark.parametrize("num_rows", [1, 9, 10, 11, 25])
@pytest.mark.parametrize("most", [1, 5, 10, 1000])
def test_no_file_has_more_rows(num_rows: int, most: int) -> None:
    table = _written(num_rows, most)
    counts = _counts(table)
    assert max(counts) <= most
    assert sum(counts) == num_rows
    rows: list[Any] = table.to_pyarrow_table()["id"].to_pylist()
    assert sorted(rows) == list(range(num_rows))


def test_each_partition_has_files_of_its_own() -> None:
    table = _written(50, 10, by=["p"])
    assert sorted(_counts(table)) == [5, 5, 10, 10, 10, 10]


@pytest.mark.parametrize("wrong", [0, -1, "ten", 1.5])
def test_other_numbers_are_refused(wrong: object) -> None:
    with pytest.raises(InvalidInputError, match="max_rows_per_file"):
        FileOptions(max_rows_per_file=wrong)  # type: ignore[arg-type]
