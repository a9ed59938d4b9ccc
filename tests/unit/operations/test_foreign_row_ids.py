"""Tests of `deltalog.operations.clone`."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq

from deltalog.operations.clone import with_other_row_ids
from deltalog.protocol.features.iceberg_compat import ROW_ID_FIELD
from tests.support.aging import AgingTable


def test_files_are_marked_by_ids_that_are_numbers() -> None:
    table = AgingTable()
    texts = {"plain": "1", "row_ids": str(ROW_ID_FIELD), "no_number": "x"}
    for name, text in texts.items():
        table.kept.files[name] = _file(text)
    files = pa.table({"path": list(texts), "size": [len(table.kept.files[name]) for name in texts]})
    assert with_other_row_ids(table.store, files, {}).to_pylist() == [False, True, False]


def _file(text: str) -> bytes:
    """A file whose column has this text in place of its field id."""
    field = pa.field("a", pa.int64(), metadata={"PARQUET:field_id": text})
    file = io.BytesIO()
    pq.write_table(pa.table({"a": [1]}, schema=pa.schema([field])), file)
    return file.getvalue()
