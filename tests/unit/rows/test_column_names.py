"""Columns of tables may have any name: none of ours may be in their way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from tests.support.logs import DictStore

if TYPE_CHECKING:
    from collections.abc import Mapping


# Names that were ours once, or that one might take for such a column.
NAMES = ["_file", "bucket", "key", "position", "number", "canonical", "_metadata.partition"]


@pytest.mark.parametrize("properties", [{}, {"delta.enableDeletionVectors": "true"}], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_rows_change_whatever_a_column_is_called(name: str, properties: Mapping[str, str]) -> None:
    store = DictStore()
    rows = pa.table({name: ["a", "b", "c"], "x": [1, 2, 3]})
    write_deltalake(store, rows, configuration=dict(properties))
    table = DeltaTable(store)
    table.delete(f"`{name}` = 'a'")
    table.update({"x": "x + 10"}, predicate=f"`{name}` = 'b'")
    merge = table.merge(
        pa.table({name: ["c", "d"], "x": [30, 40]}),
        f"t.`{name}` = s.`{name}`",
        source_alias="s",
        target_alias="t",
    )
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    table.optimize.z_order([(name,)])
    found = table.to_pyarrow_table().to_pydict()
    assert sorted(zip(found[name], found["x"], strict=True)) == [("b", 12), ("c", 30), ("d", 40)]
    changed = table.diff(0, key=[name]).summary()
    assert changed == {"added": 1, "removed": 1, "changed": 2}
