"""Converting through the facade."""

from __future__ import annotations

import pytest

from deltalog import DeltaTable, convert_to_deltalake, write_deltalake
from tests.support.facade import FEED, VECTORS, make, store_of
from tests.support.logs import DictStore


class Enough(Exception):  # noqa: N818  # it is no error
    """Somebody has waited long enough."""


def _table() -> DeltaTable:
    """Four files, two of them with a deletion vector."""
    table = make([{"id": n, "v": 0} for n in range(5)], configuration={**VECTORS, **FEED})
    for start in (5, 10, 15):
        more = [{"id": n, "v": 0} for n in range(start, start + 5)]
        write_deltalake(table, more, mode="append")
    table.delete("id in (0, 19)")
    return table


def test_a_conversion_that_was_ended_makes_no_table() -> None:
    def end(done: int, total: int) -> None:
        assert (done, total) == (1, 4)
        raise Enough

    table = _table()
    files = {path: data for path, data in store_of(table).files.items() if path.endswith("parquet")}
    store = DictStore(dict(files))
    with pytest.raises(Enough):
        convert_to_deltalake(store, progress=end)
    assert store.files == files
