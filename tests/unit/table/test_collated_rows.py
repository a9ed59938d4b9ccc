"""Rows of tables whose texts a collation compares that deltalog has the rules of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from deltalog import DeltaTable, Field, Schema, write_deltalake
from deltalog.errors import AmbiguousMergeError, ConstraintViolationError, InvalidInputError
from deltalog.expressions import col

VERSIONED = "spark.UTF8_LCASE.78.3"
SCHEMA = Schema(
    [Field("id", "long"), Field("name", "string").collate("UTF8_LCASE"), Field("t", "string")]
)


def rows(first: int, *names: str | None) -> pa.Table:
    ids = pa.array(range(first, first + len(names)), pa.int64())
    return pa.table({"id": ids, "name": pa.array(names, pa.string()), "t": ["x"] * len(names)})


def ids(table: DeltaTable, condition: Any = None) -> list[int]:
    found: list[Any] = table.to_pyarrow_table(filters=condition).column("id").to_pylist()
    return sorted(found)


def stats_of(root: Path, version: int) -> list[dict[str, Any]]:
    text = (root / "_delta_log" / f"{version:020}.json").read_text("utf-8")
    adds = [json.loads(line)["add"] for line in text.splitlines() if "add" in json.loads(line)]
    return [json.loads(add["stats"]) for add in adds]


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    DeltaTable.create(tmp_path, schema=SCHEMA)
    write_deltalake(tmp_path, rows(1, "AB", "ab", "b", None), mode="append")
    write_deltalake(tmp_path, rows(5, "Y", "z", "É"), mode="append")
    return DeltaTable(tmp_path)


@pytest.mark.protocol("B-62")
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("name = 'aB'", [1, 2]), ("name > 'Y'", [6, 7]), ("name IN ('B', 'é')", [3, 7]),
        ("name COLLATE UTF8_BINARY = 'ab'", [2]), ([("name", "=", "aB")], [1, 2]),
        ([("name", "not in", ["aB"])], [3, 5, 6, 7]), (col("name") == "aB", [1, 2]),
        (pc.field("name") == "ab", [2]), ("t COLLATE UTF8_LCASE = 'X' AND name < 'b'", [1, 2]),
    ],
    ids=str,
)  # fmt: skip
def test_rows_are_found_by_the_collation(
    table: DeltaTable, condition: Any, expected: list[int]
) -> None:
    assert ids(table, condition) == expected


@pytest.mark.protocol("B-62")
def test_files_are_passed_over_by_their_bounds(table: DeltaTable, tmp_path: Path) -> None:
    (stats,) = stats_of(tmp_path, 2)
    assert stats["statsWithCollation"] == {
        VERSIONED: {"minValues": {"name": "y"}, "maxValues": {"name": "é"}}
    }
    assert "name" not in stats["minValues"]
    scan = table.scan(predicate="name = 'AB'")
    assert len(list(scan.tasks())) == 1
    assert "min(name COLLATE UTF8_LCASE)" in str(scan.explain())
    table.create_checkpoint()
    assert len(list(DeltaTable(tmp_path).scan(predicate="name = 'AB'").tasks())) == 1
    assert ids(DeltaTable(tmp_path), "name = 'aB'") == [1, 2]


def test_rows_change_by_the_collation(table: DeltaTable) -> None:
    assert table.delete("name = 'Ab'")["num_deleted_rows"] == 2
    assert table.update(updates={"t": "'new'"}, predicate="name >= 'y'")["num_updated_rows"] == 3
    assert ids(table, "t = 'new'") == [5, 6, 7]
    assert ids(table) == [3, 4, 5, 6, 7]


@pytest.mark.protocol("B-62")
@pytest.mark.parametrize(
    "condition",
    [
        "t.name = s.name COLLATE UTF8_LCASE", "s.name = t.name COLLATE UTF8_LCASE",
        "t.name COLLATE UTF8_LCASE <=> s.name",
    ],
)  # fmt: skip
def test_rows_are_merged_by_keys_of_the_collation(table: DeltaTable, condition: str) -> None:
    source = rows(100, "B", "y", "new")
    (
        table.merge(source, condition, source_alias="s", target_alias="t")
        .when_matched_update(updates={"t": "s.name"})
        .when_not_matched_insert_all()
        .execute()
    )
    found = table.to_pyarrow_table(filters="t <> 'x' OR id >= 100").sort_by("id")
    assert found.select(["id", "name", "t"]).to_pylist() == [
        {"id": 3, "name": "b", "t": "B"}, {"id": 5, "name": "Y", "t": "y"},
        {"id": 102, "name": "new", "t": "x"},
    ]  # fmt: skip


@pytest.mark.parametrize("null_safe", [False, True])
def test_keys_of_an_upsert_are_compared_by_the_table(
    table: DeltaTable,
    null_safe: bool,
) -> None:
    table.upsert(rows(100, "B", "y", "new", None), "name", null_safe=null_safe)
    found = table.to_pyarrow_table(filters="id >= 100").sort_by("id")
    assert found.column("name").to_pylist() == ["B", "y", "new", None]
    assert table.count() == (8 if null_safe else 9)


def test_columns_of_two_collations_are_not_merged(table: DeltaTable) -> None:
    merge = table.merge(rows(1, "b"), "t.name = s.name", source_alias="s", target_alias="t")
    with pytest.raises(InvalidInputError, match="name COLLATE"):
        merge.when_matched_delete().execute()


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("name, id", [4, 1, 2]), ("name DESC, id", [7, 6, 5]),
        ("name NULLS LAST, id", [1, 2, 3]), ("name DESC NULLS FIRST", [4, 7, 6]),
    ],
)  # fmt: skip
def test_first_rows_by_the_collation(table: DeltaTable, order: str, expected: list[int]) -> None:
    found = table.scan(order_by=order, limit=3).to_table()
    assert found.column("id").to_pylist() == expected


def test_first_rows_of_many_files(tmp_path: Path) -> None:
    DeltaTable.create(tmp_path, schema=SCHEMA)
    for first, name in enumerate("dCbAfEhG"):
        write_deltalake(tmp_path, rows(first, name), mode="append")
    found = DeltaTable(tmp_path).scan(order_by="name", limit=3).to_table()
    assert found.column("name").to_pylist() == ["A", "b", "C"]


def test_constraints_by_the_collation(table: DeltaTable, tmp_path: Path) -> None:
    with pytest.raises(ConstraintViolationError):
        table.alter.add_constraint({"known": "name <> 'B'"})
    table.alter.add_constraint({"known": "name IS NULL OR name <> 'Bad'"})
    with pytest.raises(ConstraintViolationError, match="known"):
        write_deltalake(tmp_path, rows(9, "bAD"), mode="append")
    with pytest.raises(InvalidInputError, match="depends on it"):
        DeltaTable(tmp_path).alter.set_column_collation("name", "UTF8_BINARY")


@pytest.mark.protocol("B-62")
def test_partitions_whose_values_are_equal(tmp_path: Path) -> None:
    schema = Schema([Field("id", "long"), Field("name", "string").collate("UTF8_LCASE")])
    plain = Schema([Field("id", "long"), Field("name", "string")])
    DeltaTable.create(tmp_path, schema=plain, partition_by=["name"])
    write_deltalake(tmp_path, rows(1, "AB", "ab", "b", None).drop_columns(["t"]), mode="append")
    log = tmp_path / "_delta_log" / f"{0:020}.json"
    text = log.read_text("utf-8")
    told = json.dumps(plain.to_json())[1:-1]
    assert told in text
    text = text.replace(told, json.dumps(schema.to_json())[1:-1])
    log.write_text(
        text.replace(
            '"minWriterVersion":2',
            (
                '"minWriterVersion":7,"writerFeatures":["appendOnly","invariants","collations",'
                '"domainMetadata"]'
            ),
        ),
        "utf-8",
    )
    table = DeltaTable(tmp_path)
    assert ids(table, "name = 'aB'") == [1, 2]
    scan = table.scan(predicate="name = 'aB'")
    assert len(list(scan.tasks())) == 2
    assert table.delete("name = 'Ab'")["num_deleted_rows"] == 2
    assert ids(table) == [3, 4]
    found = table.scan(order_by="name DESC", limit=1).to_table()
    assert found.column("name").to_pylist() == ["b"]


def test_copied_row_groups_have_bounds_of_the_collation(table: DeltaTable, tmp_path: Path) -> None:
    table.optimize.compact()
    (stats,) = stats_of(tmp_path, 3)
    assert stats["statsWithCollation"][VERSIONED] == {
        "minValues": {"name": "ab"}, "maxValues": {"name": "é"},
    }  # fmt: skip
    table.optimize.z_order(["name"])
    assert ids(table, "name = 'aB'") == [1, 2]


def test_a_mapped_column_has_its_bounds_under_its_physical_name(tmp_path: Path) -> None:
    DeltaTable.create(tmp_path, schema=SCHEMA, configuration={"delta.columnMapping.mode": "name"})
    write_deltalake(tmp_path, rows(1, "A", "b"), mode="append")
    table = DeltaTable(tmp_path)
    table.alter.rename_column("name", "title")
    write_deltalake(tmp_path, rows(3, "x").rename_columns(["id", "title", "t"]), mode="append")
    table = DeltaTable(tmp_path)
    assert ids(table, "title = 'B'") == [2]
    assert len(list(table.scan(predicate="title = 'B'").tasks())) == 1


def test_a_generated_column_holds_the_very_text(tmp_path: Path) -> None:
    schema = Schema(
        [*SCHEMA.fields, Field("upper", "string").collate("UTF8_LCASE").generated_as("upper(name)")]
    )
    DeltaTable.create(tmp_path, schema=schema)
    write_deltalake(tmp_path, rows(1, "a"), mode="append")
    assert DeltaTable(tmp_path).to_pyarrow_table().column("upper").to_pylist() == ["A"]
    with pytest.raises(ConstraintViolationError, match="upper"):
        write_deltalake(
            tmp_path, rows(2, "b").append_column("upper", pa.array(["b"])), mode="append"
        )


def test_a_column_gets_another_collation(table: DeltaTable, tmp_path: Path) -> None:
    table.alter.set_column_collation("t", "utf8_lcase_rtrim")
    table.alter.set_column_collation("name", "UTF8_BINARY")
    fields = {field.name: field for field in DeltaTable(tmp_path).schema()}
    assert fields["t"].metadata["__COLLATIONS"] == {"t": "spark.UTF8_LCASE_RTRIM"}
    assert "__COLLATIONS" not in fields["name"].metadata
    assert ids(table, "t = 'X  '") == [1, 2, 3, 4, 5, 6, 7]
    assert ids(table, "name = 'ab'") == [2]
    write_deltalake(tmp_path, rows(8, "ab"), mode="append")
    (stats,) = stats_of(tmp_path, 5)
    assert stats["minValues"]["name"] == "ab"
    with pytest.raises(InvalidInputError, match="not the path of a string"):
        table.alter.set_column_collation("id", "UTF8_LCASE")
    with pytest.raises(InvalidInputError, match="did you mean"):
        table.alter.set_column_collation("t", "UTF8_LCAS")


def test_rows_of_a_range_are_replaced(table: DeltaTable, tmp_path: Path) -> None:
    write_deltalake(tmp_path, rows(9, "aB"), mode="overwrite", predicate="name = 'ab'")
    assert ids(DeltaTable(tmp_path)) == [3, 4, 5, 6, 7, 9]
    del table


def test_changes_are_found_by_the_collation(tmp_path: Path) -> None:
    DeltaTable.create(tmp_path, schema=SCHEMA, configuration={"delta.enableChangeDataFeed": "true"})
    write_deltalake(tmp_path, rows(1, "A", "b"), mode="append")
    found = DeltaTable(tmp_path).load_cdf(predicate="name = 'B'").read_all()
    assert found.column("id").to_pylist() == [2]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT id FROM this WHERE name = 'aB' AND t = 'x'", [1, 2]),
        ("SELECT id FROM this WHERE name COLLATE UTF8_BINARY = 'ab'", [2]),
        ("SELECT max(id) AS id FROM this WHERE t COLLATE UTF8_LCASE = 'X'", [7]),
        ("SELECT a.id FROM this a JOIN this b ON a.t COLLATE UTF8_LCASE = upper(b.t) AND b.id < 2",
         [1, 2, 3, 4, 5, 6, 7]),
    ],
)  # fmt: skip
def test_queries_that_compare_in_place(table: DeltaTable, query: str, expected: list[int]) -> None:
    found: list[Any] = table.sql(query).read_all().column("id").to_pylist()
    assert sorted(found) == expected


@pytest.mark.parametrize(
    "query",
    [
        "SELECT max(id) FROM this WHERE name = 'ab'", "SELECT id FROM this ORDER BY name",
        "SELECT t COLLATE UTF8_LCASE AS q FROM this ORDER BY q",
        "SELECT DISTINCT t COLLATE UTF8_LCASE FROM this",
        "SELECT count(*) FROM this GROUP BY t COLLATE UTF8_LCASE",
        "SELECT max(t COLLATE UTF8_LCASE) FROM this",
        "SELECT id FROM this WHERE t COLLATE UTF8_LCASE IN (SELECT t FROM this)",
        "SELECT id FROM this WHERE t COLLATE UNICODE_CI = 'x'",
        "SELECT upper(t COLLATE UTF8_LCASE) FROM this",
    ],
)  # fmt: skip
def test_queries_that_leave_texts_to_duckdb_are_refused(table: DeltaTable, query: str) -> None:
    with pytest.raises(InvalidInputError, match=r"DuckDB compares (by )?bytes|does not have"):
        table.sql(query).read_all()


def test_filters_of_polars_compare_bytes(table: DeltaTable) -> None:
    pl = pytest.importorskip("polars")
    frame = table.to_polars(lazy=True)
    for condition, expected in [
        (pl.col("name") == "ab", [2]),
        (pl.col("name") != "ab", [1, 3, 5, 6, 7]),
        (pl.col("name") > "Z", [2, 3, 6, 7]),
    ]:
        assert sorted(frame.filter(condition).collect()["id"].to_list()) == expected


def test_rows_that_a_collation_takes_for_one_are_ambiguous(table: DeltaTable) -> None:
    with pytest.raises(AmbiguousMergeError):
        table.upsert(rows(100, "B", "b"), "name")
