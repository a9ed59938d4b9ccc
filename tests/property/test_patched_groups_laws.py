"""Law: a row group that is patched has the rows that pyarrow's filter leaves, to every reader.

Damaged files end in errors of ours or in the right rows.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.property.test_kept_groups_laws import VALUES, shown_by
from tests.support.copied_groups import new_adds
from tests.support.damaging import lines_of
from tests.support.patched_groups import (
    changed_with_and_without,
    only_path,
    paged_table,
    texts_of_floats,
    without,
)

IS_LONG: Final = os.environ.get("DELTALOG_RULES") == "all"
EXAMPLES: Final = 200 if IS_LONG else 6
NUM_ROWS: Final = 400
GROUP_ROWS: Final = 200


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Some columns of repeated values; `id` is the number of the row."""
    names = draw(st.lists(st.sampled_from(sorted(VALUES)), unique=True, max_size=5))
    columns: dict[str, pa.Array[Any]] = {"id": pa.array(range(NUM_ROWS), pa.int64())}
    for name in names:
        kind, values = VALUES[name]
        pattern = draw(st.lists(st.none() | values, min_size=1, max_size=23))
        repeated = (pattern * (NUM_ROWS // len(pattern) + 1))[:NUM_ROWS]
        columns[name] = pa.array(repeated, kind)
    return pa.table(columns)


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    rows=tables(),
    codec=st.sampled_from(["snappy", "zstd", "none"]),
    version=st.sampled_from(["1.0", "2.0"]),
    page_rows=st.integers(3, 40),
    runs=st.lists(st.tuples(st.integers(0, NUM_ROWS - 1), st.integers(1, 9)), min_size=1),
)
def test_patching_is_filtering(
    tmp_path_factory: pytest.TempPathFactory,
    rows: pa.Table,
    codec: str,
    version: str,
    page_rows: int,
    runs: list[tuple[int, int]],
) -> None:
    options: dict[str, Any] = {
        "compression": codec,
        "data_page_version": version,
        "max_rows_per_page": page_rows,
        "write_batch_size": page_rows,
        "row_group_size": GROUP_ROWS,
    }
    gone = {n for start, length in runs for n in range(start, min(NUM_ROWS, start + length))}
    path = tmp_path_factory.mktemp("law")
    patched, rewritten, num_patched = changed_with_and_without(
        path,
        lambda new: paged_table(new, rows, **options),
        lambda table: table.delete(f"id in ({', '.join(map(str, sorted(gone)))})"),
        page_rows,
    )
    event(f"patched {num_patched}")
    expected = without(rows, gone)
    # A text of NULLs alone is of no type to DuckDB; what it shows is compared to the rewritten one.
    found = texts_of_floats(pq.read_table(only_path(patched)))
    assert found.equals(texts_of_floats(expected))
    for reader in ("pyarrow", "Polars", "DuckDB", "deltalake"):
        assert shown_by(reader, patched).equals(shown_by(reader, rewritten)), reader
    (ours,), (theirs,) = new_adds(patched), new_adds(rewritten)
    assert ours["stats"] == theirs["stats"]
    stats = json.loads(ours["stats"])
    assert stats["numRecords"] == expected.num_rows
    ids = [one.as_py() for one in pc.min_max(expected.column("id")).values()]
    assert [stats["minValues"]["id"], stats["maxValues"]["id"]] == ids
    for name in expected.column_names:
        if name != "s":
            assert stats["nullCount"].get(name, 0) == expected.column(name).null_count
    shutil.rmtree(path)


@pytest.mark.slow("damages a file at many places")
@pytest.mark.parametrize("part", ["fields", "headers", "indexes", "pages", "footer"])
def test_damaged_files_end_in_errors_of_ours_or_in_right_rows(tmp_path: Path, part: str) -> None:
    """In another process, which must survive it; after an error no file is left."""
    inputs = 1_000 if IS_LONG else 25
    lines = lines_of("tests.property.damaged_patches", tmp_path / "table", 0, inputs, part)
    assert len(lines) == inputs + 1
    assert lines[-1].startswith("deleted from ")
