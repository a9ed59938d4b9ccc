"""Columns of tables may have any name: none of ours may be in their way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.data.scan import plan_scan
from deltalog.errors import InvalidInputError
from tests.support.logs import DictStore

if TYPE_CHECKING:
    from collections.abc import Mapping


# Names that were ours once, or that one might take for such a column.
NAMES = [
    "_file", "bucket", "key", "position", "number", "canonical", "_metadata", "_metadata.partition",
]  # fmt: skip
VECTORS = {"delta.enableDeletionVectors": "true"}
EVERYTHING = VECTORS | {
    "delta.enableChangeDataFeed": "true",
    "delta.enableRowTracking": "true",
}


@pytest.mark.parametrize("properties", [{}, VECTORS], ids=str)
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


@pytest.mark.parametrize("name", ["_metadata", "_METADATA"])
@pytest.mark.parametrize(
    "properties",
    [{}, VECTORS, EVERYTHING, EVERYTHING | {"delta.enableDeletionVectors": "false"}],
    ids=["copied", "masked", "masked-all", "copied-all"],
)
def test_a_struct_with_the_fields_of_the_hidden_one_is_the_tables(
    name: str, properties: Mapping[str, str]
) -> None:
    store = DictStore()

    def rows(*ids: int) -> pa.Table:
        places = [{"file_path": f"f{n}", "row_index": 10 * n, "row_id": 70} for n in ids]
        return pa.table({"id": list(ids), name: places})

    write_deltalake(store, rows(1, 2, 3), configuration=dict(properties))
    table = DeltaTable(store)
    before = row_ids(table)
    table.delete(f"{name}.row_index = 10")
    table.update({"id": "id + 10"}, predicate=f"{name}.file_path = 'f2'")
    merge = table.merge(
        rows(3, 4),
        f"t.{name}.row_index = s.{name}.row_index",
        source_alias="s",
        target_alias="t",
    )
    merge.when_matched_update({"id": "s.id + 20"}).when_not_matched_insert_all().execute()
    after = row_ids(table)
    table.optimize.compact()
    found = table.to_pyarrow_table().sort_by("id").to_pylist()
    wanted = rows(4, 2, 3).column(name).to_pylist()
    assert found == [{"id": n, name: one} for n, one in zip((4, 12, 23), wanted, strict=True)]
    if before:
        assert row_ids(table) == after == {4: after[4], 12: before[2], 23: before[3]}
        assert after[4] not in before.values()
        feed: list[dict[str, Any]] = table.load_cdf(starting_version=1).read_all().to_pylist()
        assert sorted(row["_change_type"] for row in feed) == [
            "delete", "insert", *(["update_postimage"] * 2), *(["update_preimage"] * 2),
        ]  # fmt: skip
        assert {row[name]["row_id"] for row in feed} == {70}


def row_ids(table: DeltaTable) -> dict[int, int]:
    """The row ids by `id`, although users cannot ask for them."""
    if not table.snapshot.configuration.row_ids_enabled:
        return {}
    found = plan_scan(table.snapshot, columns=["id"], hidden=["_metadata.row_id"]).to_table()
    return dict(zip(*found.to_pydict().values(), strict=True))


@pytest.mark.parametrize("properties", [{}, VECTORS], ids=str)
def test_a_table_may_be_partitioned_by_such_a_column(properties: Mapping[str, str]) -> None:
    store = DictStore()
    rows = pa.table({"id": [1, 2, 3, 4], "_metadata": ["a", "b", "a", "b"]})
    write_deltalake(store, rows, partition_by=["_metadata"], configuration=dict(properties))
    table = DeltaTable(store)
    assert table.to_pyarrow_table().sort_by("id").to_pylist() == rows.to_pylist()
    table.delete("_metadata = 'a' and id = 1")
    table.update({"_metadata": "'c'"}, predicate="_metadata = 'b' and id = 2")
    found = table.scan(["_metadata", "id"], "_metadata <> 'x'").to_table().sort_by("id")
    assert found.to_pydict() == {"_metadata": ["c", "a", "b"], "id": [2, 3, 4]}


@pytest.mark.parametrize("partition_by", [[], ["_metadata.row_index"]], ids=str)
def test_a_name_with_the_dot_in_it_is_read_and_in_the_way_of_changes(
    partition_by: list[str],
) -> None:
    store = DictStore()
    rows = pa.table({"id": [1, 2], "_metadata.row_index": ["a", "b"]})
    write_deltalake(store, rows, partition_by=partition_by)
    table = DeltaTable(store)
    assert table.to_pyarrow_table().sort_by("id").to_pylist() == rows.to_pylist()
    found = table.scan(["_metadata.row_index"], "`_metadata.row_index` = 'b'").to_table()
    assert found.to_pylist() == [{"_metadata.row_index": "b"}]
    with pytest.raises(InvalidInputError, match=r"'_metadata\.row_index', .* rename"):
        table.update({"id": "5"}, predicate="id + 0 = 2")
    assert table.version() == 0
