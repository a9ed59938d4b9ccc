"""Tables whose texts have collations: kept by every change, and never compared by other rules."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import deltalog
from deltalog import ArrayType, DeltaTable, Field, MapType, Schema, write_deltalake
from deltalog.errors import InvalidInputError
from deltalog.expressions import col

NAME = Field("name", "string", metadata={"__COLLATIONS": {"name": "ICU.de_DE"}})
TAGS = Field(
    "tags", ArrayType("string"), metadata={"__COLLATIONS": {"tags.element": "spark.UTF8_LCASE"}}
)
SCHEMA = Schema([Field("id", "long"), NAME, TAGS, Field("s", Schema([NAME])), Field("t", "string")])
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "name": ["ä", "B", None],
        "tags": pa.array([["x"], ["X"], None], pa.list_(pa.string())),
        "s": [{"name": "ä"}, {"name": "Z"}, None],
        "t": ["a", "b", "c"],
    }
)


def action(root: Path, name: str, version: int = 0) -> dict[str, Any]:
    text = (root / "_delta_log" / f"{version:020}.json").read_text("utf-8")
    (found,) = [json.loads(line)[name] for line in text.splitlines() if name in json.loads(line)]
    return dict(found)


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    DeltaTable.create(tmp_path, schema=SCHEMA)
    write_deltalake(tmp_path, ROWS, mode="append")
    return DeltaTable(tmp_path)


@pytest.mark.protocol("B-62")
def test_a_table_with_collations(table: DeltaTable, tmp_path: Path) -> None:
    protocol = action(tmp_path, "protocol")
    assert protocol["minReaderVersion"] == 1
    assert {"collations", "domainMetadata"} <= set(protocol["writerFeatures"])
    assert table.schema() == SCHEMA
    assert table.to_pyarrow_table().to_pylist() == ROWS.to_pylist()


def test_texts_with_a_collation_get_no_bounds(table: DeltaTable, tmp_path: Path) -> None:
    stats = json.loads(action(tmp_path, "add", 1)["stats"])
    assert stats["minValues"] == {"id": 1, "t": "a"}
    assert stats["nullCount"]["name"] == 1
    assert table.to_pyarrow_table(filters="t = 'b'").column("id").to_pylist() == [2]


@pytest.mark.parametrize(
    "condition",
    [
        "name = 'ä'", "name < 'b'", "name IN ('ä')", "name LIKE 'ä%'", "upper(name) = 'Ä'",
        "s.name = 'Z'", "array_contains(tags, 'x')", "exists(tags, x -> x = 'X')",
        "name <=> 'ä'", "id = 1 AND NOT name = 'B'", "CASE WHEN name = 'B' THEN true END",
        [("name", "=", "ä")], col("name") == "ä",
    ],
)  # fmt: skip
def test_nothing_is_compared_by_other_rules(table: DeltaTable, condition: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"ICU\.de_DE|UTF8_LCASE"):
        table.to_pyarrow_table(filters=condition)
    if not isinstance(condition, list):
        with pytest.raises(InvalidInputError, match=r"ICU\.de_DE|UTF8_LCASE"):
            table.delete(condition)


@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        ("name IS NULL", [3]), ("name IS NOT NULL AND id < 2", [1]), ("t >= 'b'", [2, 3]),
        ("length(name) = 1", [1, 2]), ("tags IS NULL", [3]), ("s.name IS NOT NULL", [1, 2]),
    ],
)  # fmt: skip
def test_what_no_collation_decides_is_computed(
    table: DeltaTable, condition: str, ids: list[int]
) -> None:
    assert table.to_pyarrow_table(filters=condition).column("id").to_pylist() == ids


def test_engines_that_know_no_collations_compare_bytes(table: DeltaTable) -> None:
    duckdb = pytest.importorskip("duckdb")
    assert table.to_pyarrow_table(filters=pc.field("name") == "B").column("id").to_pylist() == [2]
    shown = table.to_pyarrow_dataset()
    assert shown.to_table(filter=pc.field("name") > "B").column("id").to_pylist() == [1]
    found = duckdb.from_arrow(shown).filter("name = 'B'").to_arrow_table()
    assert found.column("id").to_pylist() == [2]


@pytest.mark.parametrize(
    ("query", "is_answered"),
    [
        ("SELECT name FROM t WHERE id = 2", True),
        ("SELECT name AS n, id FROM t WHERE name IS NOT NULL ORDER BY id", True),
        ("SELECT * FROM t ORDER BY id LIMIT 1", True),
        ("SELECT count(*) AS n FROM t", True),
        ("SELECT id FROM t WHERE name = 'b'", False),
        ("SELECT upper(name) FROM t", False),
        ("SELECT id, Name FROM t ORDER BY NAME", False),
        ("SELECT name FROM t ORDER BY 1", False),
        ("SELECT DISTINCT name FROM t", False),
        ("SELECT name, count(*) FROM t GROUP BY name", False),
        ("SELECT name, count(*) FROM t GROUP BY 1", False),
        ("SELECT name AS q, count(*) FROM t GROUP BY q", False),
        ("SELECT id, name AS q FROM t ORDER BY Q", False),
        ("SELECT name AS q, count(*) FROM t GROUP BY id, name HAVING q = 'b'", False),
        ("SELECT id AS i, name AS q FROM t ORDER BY i", True),
        ("SELECT name, count(*) FROM t GROUP BY ALL", False),
        ("SELECT * FROM t UNION SELECT * FROM t", False),
        ("SELECT id FROM (SELECT * FROM t) WHERE id = 1", False),
        ("SELECT a.id FROM t AS a JOIN t AS b USING (name)", False),
        ("SELECT a.id FROM t AS a NATURAL JOIN t AS b", False),
        ("SELECT max(name) FROM t", False),
        ("SELECT id, rank() OVER (ORDER BY name) FROM t", False),
    ],
)
def test_queries_give_texts_and_compare_none(
    table: DeltaTable, query: str, *, is_answered: bool
) -> None:
    if is_answered:
        assert deltalog.sql(query, t=table).to_arrow().num_rows
    else:
        with pytest.raises(InvalidInputError, match="which DuckDB compares by bytes"):
            deltalog.sql(query, t=table).to_arrow()
        with pytest.raises(InvalidInputError, match="which DuckDB compares by bytes"):
            table.sql(re.sub(r"\bt\b", "this", query)).read_all()


def test_no_rows_are_ordered_by_a_collation(table: DeltaTable) -> None:
    with pytest.raises(InvalidInputError, match="ICU"):
        table.scan(order_by="name", limit=1)


def test_rows_change_by_other_columns(table: DeltaTable) -> None:
    table.update(updates={"name": "'É'"}, predicate="id = 2")
    table.delete("id = 3")
    source = pa.table({"id": pa.array([2, 9], pa.int64()), "name": ["Ö", "Q"]})
    (
        table.merge(source, "t.id = s.id", source_alias="s", target_alias="t")
        .when_matched_update(updates={"name": "s.name"})
        .when_not_matched_insert(updates={"id": "s.id", "name": "s.name"})
        .execute()
    )
    table.optimize.compact()
    assert table.to_pyarrow_table().sort_by("id").column("name").to_pylist() == ["ä", "Ö", "Q"]
    assert table.schema() == SCHEMA
    with pytest.raises(InvalidInputError, match="ICU"):
        table.merge(
            source, "t.name = s.name", source_alias="s", target_alias="t"
        ).when_matched_delete().execute()


def test_a_renamed_column_keeps_its_collation(tmp_path: Path) -> None:
    table = DeltaTable.create(
        tmp_path, schema=SCHEMA, configuration={"delta.columnMapping.mode": "name"}
    )
    table.alter.rename_column("name", "title")
    table.alter.rename_column("tags", "words")
    table.alter.rename_column(("s", "name"), "title")
    fields = {field.name: field for field in table.schema()}
    assert fields["title"].metadata["__COLLATIONS"] == {"title": "ICU.de_DE"}
    assert fields["words"].metadata["__COLLATIONS"] == {"words.element": "spark.UTF8_LCASE"}
    inner: Any = fields["s"].type
    assert inner.fields[0].metadata["__COLLATIONS"] == {"title": "ICU.de_DE"}
    with pytest.raises(InvalidInputError, match="ICU"):
        table.to_pyarrow_table(filters="title = 'ä'")


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"other": "ICU.de_DE"}, "not the path of a string"),
        ({"a": "ICU.de_DE.75"}, "provider and name"),
        ({"a": "de_DE"}, "provider and name"),
        ({"a": 5}, "provider and name"),
        ({"a": "spark.UTF8_BINARY"}, "default"),
        ({}, "map strings"),
        ("ICU.de_DE", "map strings"),
    ],
)
def test_what_is_no_collation_is_refused(tmp_path: Path, entry: Any, why: str) -> None:
    schema = Schema([Field("a", "string", metadata={"__COLLATIONS": entry})])
    with pytest.raises(InvalidInputError, match=why):
        DeltaTable.create(tmp_path, schema=schema)


def test_a_number_has_no_collation(tmp_path: Path) -> None:
    schema = Schema([Field("a", "long", metadata={"__COLLATIONS": {"a": "ICU.de_DE"}})])
    with pytest.raises(InvalidInputError, match="not the path of a string"):
        DeltaTable.create(tmp_path, schema=schema)


def test_rules_of_a_table_are_not_kept_over_a_collation(table: DeltaTable) -> None:
    with pytest.raises(InvalidInputError, match="ICU"):
        table.alter.add_constraint({"known": "name <> 'x'"})


def test_a_column_with_a_collation_is_added(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    table = DeltaTable(tmp_path)
    table.alter.add_columns([NAME])
    assert "collations" in action(tmp_path, "protocol", 1)["writerFeatures"]
    assert table.schema().fields[1] == NAME


def test_a_collation_inside_of_a_column_leaves_the_others(tmp_path: Path) -> None:
    field = Field("m", MapType("string", "string")).collate("UTF8_LCASE", at="key")
    table = DeltaTable.create(tmp_path, schema=Schema([Field("id", "long"), field]))
    table.alter.set_column_collation("m", "UTF8_LCASE_RTRIM", at="value")
    found = table.schema().fields_named("m")[0].metadata["__COLLATIONS"]
    assert sorted(found) == ["m.key", "m.value"]
    table.alter.set_column_collation("m", "UTF8_BINARY", at="key")
    assert sorted(table.schema().fields_named("m")[0].metadata["__COLLATIONS"]) == ["m.value"]
