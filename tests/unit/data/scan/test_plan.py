"""The `Scan`: its schema, its counts, its forms, its tasks."""

from __future__ import annotations

import pickle
import weakref
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.data.scan.plan import descriptor_of, plan_scan
from deltalog.data.scan.reader import read_task
from deltalog.errors import (
    DeletionVectorError,
    InvalidInputError,
    MalformedLogError,
    UnsupportedFeatureError,
)
from deltalog.expressions import parse_sql
from deltalog.schema.metadata_columns import METADATA_COLUMNS
from tests.support import logs
from tests.support.raw_tables import DataTable, rows_of, struct_of


@pytest.fixture
def table() -> DataTable:
    """Three files of four rows, two partitions, one row deleted."""
    table = DataTable(
        [("id", "long"), ("p", "long"), ("s", struct_of(("x", "long"), ("y", "string")))],
        partition_by=["p"],
        features=["deletionVectors"],
    )
    for number in range(3):
        ids = [4 * number + row for row in range(4)]
        data = {"id": ids, "s": [{"x": value, "y": str(value)} for value in ids]}
        stats = {"numRecords": 4, "minValues": {"id": ids[0]}, "maxValues": {"id": ids[-1]}}
        vector = table.vector(0) if number == 1 else None
        table.commit(
            table.add(
                data, partitionValues={"p": str(number % 2)}, stats=stats, deletionVector=vector
            )
        )
    return table


@pytest.mark.parametrize(
    ("columns", "schema"),
    [
        (
            None,
            [
                ("id", pa.int64()),
                ("p", pa.int64()),
                ("s", pa.struct([("x", pa.int64()), ("y", pa.string())])),
            ],
        ),
        (["P", "ID"], [("p", pa.int64()), ("id", pa.int64())]),
        (["s.Y"], [("s", pa.struct([("y", pa.string())]))]),
        (
            ["s.y", "id", "s.x"],
            [("s", pa.struct([("y", pa.string()), ("x", pa.int64())])), ("id", pa.int64())],
        ),
        (["id", "id"], [("id", pa.int64())]),
        (["_metadata.row_index", "id"], [("_metadata.row_index", pa.int64()), ("id", pa.int64())]),
        ([], []),
    ],
)
def test_the_schema_is_that_of_the_rows(
    table: DataTable, columns: list[str] | None, schema: list[Any]
) -> None:
    scan = table.scan("id > 5", columns)
    assert scan.schema == pa.schema(schema)
    assert scan.to_table().schema == scan.schema
    assert scan.to_table().num_rows == 6
    assert all(batch.schema == scan.schema for batch in scan)


@pytest.mark.parametrize(
    "where",
    [
        None,
        "p = 0",
        "p = 1 and p < 5",
        "p is null",
        "id > 3",
        "id = 100",
        "p = 0 and id % 2 = 0",
        "s.x > 8 or p = 1",
        "_metadata.row_index = 3",
        "1 = 1",
        "1 = 2",
        "null",
    ],
)
@pytest.mark.parametrize("limit", [None, 0, 1, 3, 100])
def test_counts_are_exact(table: DataTable, where: str | None, limit: int | None) -> None:
    scan = table.scan(where, limit=limit)
    assert scan.count() == scan.to_table().num_rows


def test_counts_without_statistics(table: DataTable) -> None:
    table.commit(table.add({"id": [50, 51]}, partitionValues={"p": "0"}, stats={}))
    assert table.scan().count() == 13
    assert table.scan("p = 0").count() == 10


@pytest.mark.parametrize("limit", [0, 1, 4, 5, 11, 12])
def test_a_limit_cuts_off_the_end(table: DataTable, limit: int) -> None:
    assert rows_of(table.scan(limit=limit).to_table()) == table.rows()[:limit]


def test_a_limit_is_no_negative_number(table: DataTable) -> None:
    with pytest.raises(InvalidInputError, match="-1 rows"):
        table.scan(limit=-1)


@pytest.mark.parametrize("name", ["nothing", "s.z", "_metadata", "_metadata.nothing", ""])
def test_unknown_columns(table: DataTable, name: str) -> None:
    with pytest.raises(InvalidInputError):
        table.scan(columns=[name])


@pytest.mark.parametrize("where", ["nothing = 1", "id = 'x' and s", "s.z = 1", "id"])
def test_predicates_that_do_not_fit(table: DataTable, where: str) -> None:
    with pytest.raises(InvalidInputError):
        table.scan(where)


def test_metadata_columns_are_shown_and_typed(table: DataTable) -> None:
    shown = {
        name: kind
        for name, kind in METADATA_COLUMNS.items()
        if name not in {"_metadata.row_id", "_metadata.row_commit_version"}
    }
    scan = table.scan(columns=list(shown))
    assert scan.schema == pa.schema(list(shown.items()))
    assert scan.to_table().num_rows == 11
    # Row ids only where rows have them.
    tracked = DataTable([("id", "long")], (), ["rowTracking"], {"delta.enableRowTracking": "true"})
    scan = tracked.scan(columns=list(METADATA_COLUMNS))
    assert scan.schema == pa.schema(list(METADATA_COLUMNS.items()))


def test_who_changes_rows_gets_what_a_column_of_the_table_hides() -> None:
    own = [{"row_index": 70}, {"row_index": 71}]
    table = DataTable([("id", "long"), ("_metadata", struct_of(("row_index", "long")))])
    table.commit(table.add({"id": [1, 2], "_metadata": own}))
    hidden = ("_metadata.row_index", "_metadata.file_size")
    for names in (None, ["id", "_metadata"]):
        scan = plan_scan(table.snapshot(), columns=names, hidden=hidden)
        assert scan.schema.names == ["id", "_metadata", *hidden]
        found = scan.to_table()
        assert found.column("_metadata").to_pylist() == own
        assert found.column("_metadata.row_index").to_pylist() == [0, 1]
    where = parse_sql("_metadata.row_index = 71")
    scan = plan_scan(table.snapshot(), columns=["id"], predicate=where, hidden=hidden[:1])
    assert scan.to_table().to_pylist() == [{"id": 2, "_metadata.row_index": 1}]


def test_the_predicates_columns_need_not_be_shown(table: DataTable) -> None:
    assert table.rows("s.x = 9 and p = 0", ["s.y"]) == [{"y": "9"}]
    assert table.rows("_metadata.row_index = 1", ["id"]) == [1, 5, 9]


def test_a_scan_gives_its_rows_any_number_of_times(table: DataTable) -> None:
    scan = table.scan("id > 1")
    assert scan.to_table().equals(scan.to_table())
    assert scan.read_all().equals(scan.to_reader().read_all())
    assert pa.table(scan).equals(scan.to_table())
    assert scan.to_pandas()["id"].tolist() == scan.to_polars()["id"].to_list()
    assert scan.read_pandas().equals(scan.to_pandas())
    assert rows_of(scan.to_duckdb().arrow().read_all()) == rows_of(scan.to_table())


def test_the_arrow_stream_takes_a_requested_schema(table: DataTable) -> None:
    wanted = pa.schema([("id", pa.int64())])
    reader = pa.RecordBatchReader.from_stream(table.scan(columns=["id"]), schema=wanted)
    assert reader.read_all().num_rows == 11


def test_reading_on_batch_by_batch(table: DataTable) -> None:
    with table.scan() as scan:
        sizes = []
        while True:
            try:
                sizes.append(scan.read_next_batch().num_rows)
            except StopIteration:
                break
        assert sorted(sizes) == [3, 4, 4]
    assert scan.read_next_batch().num_rows in sizes  # closed: it starts anew
    scan.close()


def test_a_scan_and_its_tasks_are_picklable(table: DataTable) -> None:
    scan = table.scan("id > 4 and p = 0", ["id", "_metadata.file_name"])
    again = pickle.loads(pickle.dumps(scan))  # our own
    assert again.to_table().equals(scan.to_table())
    tasks = pickle.loads(pickle.dumps(list(scan.tasks())))  # our own
    batches = [batch for task in tasks for batch in read_task(task)]
    assert pa.Table.from_batches(batches, scan.schema).equals(scan.to_table())


def test_the_account_of_a_scan(table: DataTable) -> None:
    text = table.scan("p = 0 and id > 9", ["id"], limit=5).explain()
    assert text.splitlines() == [
        "Scan of memory://table at version 3",
        "  columns: id",
        "  predicate: p = 0 AND id > 9",
        "  limit: 5",
        "  files: 3 in the table, 1 to read",
        "  pruned by partition values: 1",
        "  pruned by statistics: 1",
        "  read if partition values: p = 0",
        "  read if max(id) > 9",
        "  read if id is not NULL in some row",
    ]
    assert "no column" in table.scan(columns=[]).explain()


def test_the_repr_says_what_is_read(table: DataTable) -> None:
    assert repr(table.scan()) == "Scan('memory://table', version 3)"
    assert repr(table.scan("p = 0")) == "Scan('memory://table', version 3, p = 0)"


def test_rows_that_cannot_be_honoured_are_refused_before_any_is_read() -> None:
    table = DataTable([("id", "long")], features=["deletionVectors", "newFeature"])
    table.commit(logs.add("nowhere"))
    with pytest.raises(UnsupportedFeatureError, match="newFeature"):
        table.scan()


def test_an_empty_table() -> None:
    table = DataTable([("id", "long"), ("p", "long")], partition_by=["p"])
    for where in (None, "p = 1", "id = 1"):
        assert table.rows(where) == []
        assert table.scan(where).count() == 0
        assert list(table.scan(where).tasks()) == []


def test_iteration_holds_few_batches_at_a_time() -> None:
    table = DataTable([("id", "long")])
    for _ in range(40):
        table.commit(table.add({"id": list(range(1000))}))
    alive: list[weakref.ref[Any]] = []
    most = 0
    for batch in table.scan():
        alive.append(weakref.ref(batch))
        del batch
        most = max(most, sum(ref() is not None for ref in alive))
    assert len(alive) == 40
    assert most <= 2


def test_a_scan_that_is_left_early_reads_no_further(table: DataTable) -> None:
    rows = table.scan().to_batches()
    next(rows)
    rows.close()  # type: ignore[attr-defined]  # a generator
    assert list(rows) == []


def test_a_column_of_the_table_that_is_called_metadata_is_the_tables() -> None:
    table = DataTable([("id", "long"), ("_Metadata", struct_of(("row_index", "long")))])
    table.commit(table.add({"id": [1, 2], "_Metadata": [{"row_index": 7}, {"row_index": 8}]}))
    assert table.rows("_metadata.row_index = 8", ["id"]) == [2]
    assert table.rows("id = 1", ["_metadata.row_index"]) == [{"row_index": 7}]
    with pytest.raises(InvalidInputError, match="file_name"):
        table.scan(columns=["_metadata.file_name"])


@pytest.mark.parametrize("columns", [["s.y"], ["s.x"], ["s.y", "s.x"]])
def test_a_struct_is_shown_without_the_parts_that_only_the_predicate_needs(
    table: DataTable, columns: list[str]
) -> None:
    scan = table.scan("s.x = 9", columns)
    (batch,) = scan.to_batches()
    batch.validate(full=True)
    expected = {name[2:]: {"x": 9, "y": "9"}[name[2:]] for name in columns}
    assert batch.to_pylist() == [{"s": expected}]


@pytest.mark.parametrize("part", ["pathOrInlineDv", "sizeInBytes", "cardinality"])
def test_a_descriptor_that_lacks_a_part_is_refused_by_name(part: str) -> None:
    row: dict[str, Any] = {
        "storageType": "i",
        "pathOrInlineDv": "x",
        "offset": None,
        "sizeInBytes": 1,
        "cardinality": 1,
    }
    with pytest.raises(DeletionVectorError, match=f"lacks {part}"):
        descriptor_of({**row, part: None})


@pytest.mark.protocol("D-38", "META-06", "PART-01")
def test_partition_columns_in_another_case_than_the_schema() -> None:
    table = DataTable([("id", "long"), ("P", "string")], ["p"])
    table.commit(
        table.add({"id": [1]}, partitionValues={"p": "a"}),
        table.add({"id": [2]}, partitionValues={"P": "b"}),
        table.add({"id": [3]}, partitionValues={"p": None}),
    )
    assert sorted(table.rows(), key=str) == [(1, "a"), (2, "b"), (3, None)]
    assert table.rows("P = 'a'", ["id"]) == [1]
    assert table.rows("p is null", ["id"]) == [3]
    made = DeltaTable(table.store)
    assert [one["P"] for one in made.partitions(file_pruning_predicate=[("p", "!=", "b")])] == ["a"]
    write_deltalake(made, [{"id": 4, "P": "a"}], mode="overwrite", predicate="P = 'a'")
    made.create_checkpoint()
    assert sorted(table.rows(), key=str) == [(2, "b"), (3, None), (4, "a")]


@pytest.mark.protocol("STAT-09")
def test_counting_refuses_fewer_rows_than_none() -> None:
    table = DataTable([("id", "long")])
    table.commit(
        table.add({"id": [1, 2]}, stats={"numRecords": -5}),
        table.add({"id": [3]}, stats={"numRecords": 1}),
    )
    with pytest.raises(MalformedLogError, match="found numRecords -5"):
        table.scan().count()
    with pytest.raises(MalformedLogError, match="found numRecords -5"):
        DeltaTable(table.store).count()
    assert table.rows() == [1, 2, 3]


def test_numbers_of_rows_beyond_64_bits() -> None:
    table = DataTable([("id", "long")])
    stats = {"numRecords": 2**63 - 1}
    table.commit(table.add({"id": [1]}, stats=stats), table.add({"id": [2]}, stats=stats))
    assert DeltaTable(table.store).count() == 2 * (2**63 - 1)
    assert table.rows() == [1, 2]
    DeltaTable(table.store).optimize.compact()
    assert DeltaTable(table.store).count() == 2


@pytest.mark.parametrize("size", [2**53 + 1, 2**63 - 1])
def test_sizes_that_floating_point_numbers_round(size: int) -> None:
    table = DataTable([("id", "long")])
    adds = [table.add({"id": [number]}) for number in (1, 2)]
    table.commit(*({"add": {**add["add"], "size": size}} for add in adds))
    assert DeltaTable(table.store).detail()["sizeInBytes"] == 2 * size
    DeltaTable(table.store).optimize.compact()
    assert table.rows() == [1, 2]


@pytest.mark.parametrize("partition_by", [None, ["a.b"]])
def test_filters_with_dots_in_names(partition_by: list[str] | None) -> None:
    data = pa.table({"a.b": [1, 2], "a": [{"b": 5}, {"b": 6}]})
    store = logs.DictStore()
    write_deltalake(store, data, partition_by=partition_by)
    made = DeltaTable(store)
    for filters in ([("a.b", "=", 1)], [("a.b", "in", [1])], [[("a.b", "<", 2)]]):
        assert made.to_pyarrow_table(filters=filters)["a"].to_pylist() == [{"b": 5}]
    made.delete([("a.b", "=", 1)])
    assert made.to_pyarrow_table(columns=["a.b"])["a.b"].to_pylist() == [2]
