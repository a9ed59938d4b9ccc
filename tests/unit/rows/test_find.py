"""Which files are read for the rows that match."""

from __future__ import annotations

from io import BytesIO

import pyarrow.parquet as pq

from deltalog.testing import CountingStore
from deltalog.write import WriterProperties
from tests.support.logs import DictStore
from tests.support.statements import VECTORS, StatedTable

NUMBERS = {"id": "long", "x": "long"}


def rows(*ids: int) -> list[dict[str, int]]:
    return [{"id": number, "x": 10 * number} for number in ids]


def test_only_files_that_may_match_are_opened() -> None:
    store = CountingStore(DictStore())
    table = StatedTable(NUMBERS, *(rows(n, n + 1) for n in range(0, 20, 2)), store=store)
    store.reset()
    table.update({"x": "0"}, "id = 5")
    opened = {call for call in store.paths("open", "read_ranges") if call.endswith(".parquet")}
    assert len(opened) == 1


def test_only_row_groups_with_such_rows_are_decoded() -> None:
    store = DictStore()
    properties = WriterProperties(max_row_group_size=100)
    table = StatedTable({"id": "long", "text": "string"}, properties=VECTORS, store=store)
    table.append([{"id": n, "text": f"{n}"} for n in range(1000)], writer_properties=properties)
    (path,) = (path for path in store.files if path.endswith(".parquet"))
    data = bytearray(store.files[path])
    footer = pq.ParquetFile(BytesIO(data)).metadata
    for group in {*range(footer.num_row_groups)} - {1}:
        for column in range(2):
            chunk = footer.row_group(group).column(column)
            start = chunk.dictionary_page_offset or chunk.data_page_offset
            data[start : start + chunk.total_compressed_size] = bytes(chunk.total_compressed_size)
    store.files[path] = bytes(data)
    # Whoever decodes another row group than the second one finds rubbish.
    assert footer.num_row_groups == 10
    assert table.update({"id": "-1"}, "id = 150").rows.all_updated == 1
