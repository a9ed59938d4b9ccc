"""Columns whose names are one by Unicode's case folding, and two in lower case; and the reverse."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import deltalog
from deltalog import DeltaTable, Field, Schema, convert_to_deltalake, write_deltalake
from deltalog.errors import ConstraintViolationError, DeltaError

_TWO = [
    ("\xdf", "ss"),
    ("\xb5", "\u03bc"),
    ("\u03c2", "\u03c3"),
    ("\u03a3", "\u03c2"),
    ("\u017f", "s"),
    ("\ufb01x", "fix"),
    ("\u0149", "\u02bcn"),
    ("\u1fb3", "\u03b1\u03b9"),
    ("\u0131", "i"),
]
TWO_NAMES = pytest.mark.parametrize(("a", "b"), _TWO)
_ONE = [
    ("\xdf", "\u1e9e"),
    ("\N{KELVIN SIGN}", "k"),
    ("\N{ANGSTROM SIGN}", "\xe5"),
    ("\u0130", "i\u0307"),
    ("\u1fb3", "\u1fbc"),
    ("\u03a3", "\u03c3"),
    ("\xc4", "\xe4"),
    ("\u039f\u03a3", "\u03bf\u03c2"),
]
ONE_NAME = pytest.mark.parametrize(("a", "b"), _ONE)
MODES = ("none", "name")
# Pairs take turns with modes of column mapping: a mode knows nothing of letters.
TWO_NAMES_MAPPED = pytest.mark.parametrize(
    ("a", "b", "mode"), [(*pair, MODES[number % 2]) for number, pair in enumerate(_TWO)]
)


def _properties(mode: str) -> dict[str, str]:
    mapping = {} if mode == "none" else {"delta.columnMapping.mode": mode}
    return {
        **mapping,
        "delta.enableChangeDataFeed": "true",
        "delta.checkpoint.writeStatsAsStruct": "true",
    }


def _rows(path: Path, **options: Any) -> list[Any]:
    found = DeltaTable(path).to_pyarrow_table(**options).to_pylist()
    return sorted(found, key=lambda row: [str(value) for value in row.values()])


def _pairs(path: Path, a: str, b: str) -> set[Any]:
    return {(row[a], row[b]) for row in _rows(path)}


@TWO_NAMES_MAPPED
def test_files_of_two_names_share_no_values(tmp_path: Path, a: str, b: str, mode: str) -> None:
    path = tmp_path / "t"
    write_deltalake(path, pa.table({a: [1, 2]}), configuration=_properties(mode))
    write_deltalake(path, pa.table({b: [10]}), mode="append", schema_mode="merge")
    expected = {(1, None), (2, None), (None, 10)}
    assert _pairs(path, a, b) == expected
    assert _rows(path, columns=[b], filters=f"`{b}` = 10") == [{b: 10}]
    assert len(_rows(path, filters=f"`{b}` is null")) == 2
    assert len(_rows(path, filters=[(a, "in", [1, 2])])) == 2
    assert _rows(path, filters=pc.field(b) > 1) == [{a: None, b: 10}]
    DeltaTable(path).create_checkpoint()
    assert _rows(path, filters=[(b, "=", 10)]) == [{a: None, b: 10}]
    DeltaTable(path).optimize.compact()
    assert _pairs(path, a, b) == expected
    DeltaTable(path).optimize.z_order([b])
    assert _pairs(path, a, b) == expected


@TWO_NAMES_MAPPED
def test_rows_of_two_names_change_one_by_one(tmp_path: Path, a: str, b: str, mode: str) -> None:
    path = tmp_path / "t"
    write_deltalake(path, pa.table({a: [1, 2, 3], b: [4, 5, 6]}), configuration=_properties(mode))
    DeltaTable(path).update(updates={b: f"`{a}` * 100"}, predicate=f"`{a}` = 2")
    DeltaTable(path).delete(f"`{b}` = 6")
    source = pa.table({a: [1, 7], b: [8, 9]})
    merge = DeltaTable(path).merge(source, f"t.`{a}` = s.`{a}`", "s", "t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    table = DeltaTable(path)
    deltalog.sql(f"insert into t (`{b}`) values (77)", t=table)
    deltalog.sql(f"update t set `{a}` = 76 where `{b}` = 77", t=table)
    assert _pairs(path, a, b) == {(1, 8), (2, 200), (7, 9), (76, 77)}
    changes = pa.table(DeltaTable(path).load_cdf(starting_version=1)).to_pylist()
    assert (2, 200, "update_postimage") in [
        (row[a], row[b], row["_change_type"]) for row in changes
    ]


@TWO_NAMES
def test_a_column_that_was_renamed_leaves_the_other_alone(tmp_path: Path, a: str, b: str) -> None:
    path = tmp_path / "t"
    write_deltalake(path, pa.table({a: [1]}), configuration=_properties("name"))
    DeltaTable(path).alter.rename_column(a, b)
    DeltaTable(path).alter.add_columns([Field(a, "long")])
    assert _pairs(path, a, b) == {(None, 1)}
    DeltaTable(path).alter.drop_columns([b])
    DeltaTable(path).alter.add_columns([Field(b, "long")])
    assert _pairs(path, a, b) == {(None, None)}


@TWO_NAMES_MAPPED
def test_fields_of_two_names(tmp_path: Path, a: str, b: str, mode: str) -> None:
    path = tmp_path / "t"
    write_deltalake(path, pa.table({"x": [{a: 1}]}), configuration=_properties(mode))
    write_deltalake(path, pa.table({"x": [{b: 2}]}), mode="append", schema_mode="merge")
    expected = [{"x": {a: 1, b: None}}, {"x": {a: None, b: 2}}]
    assert _rows(path) == expected
    assert _rows(path, filters=f"x.`{b}` = 2") == expected[1:]
    DeltaTable(path).optimize.compact()
    assert _rows(path) == expected


@TWO_NAMES_MAPPED
def test_partitions_of_two_names(tmp_path: Path, a: str, b: str, mode: str) -> None:
    path = tmp_path / "t"
    rows = pa.table({a: ["x", "y"], b: ["1", "2"], "v": [1, 2]})
    write_deltalake(path, rows, partition_by=[a, b], configuration=_properties(mode))
    assert _rows(path, filters=[(b, "=", "2")]) == [{a: "y", b: "2", "v": 2}]
    DeltaTable(path).create_checkpoint()
    assert _rows(path, filters=f"`{a}` = 'x' and `{b}` = '1'") == [{a: "x", b: "1", "v": 1}]
    again = pa.table({a: ["x"], b: ["1"], "v": [3]})
    write_deltalake(path, again, mode="overwrite", predicate=f"`{b}` = '1'")
    DeltaTable(path).delete(f"`{a}` = 'y'")
    assert _rows(path) == [{a: "x", b: "1", "v": 3}]


@TWO_NAMES
def test_one_of_two_names_is_a_partition(tmp_path: Path, a: str, b: str) -> None:
    path = tmp_path / "t"
    write_deltalake(path, pa.table({a: ["x"], b: [2]}), partition_by=[a])
    assert _rows(path) == [{a: "x", b: 2}]


@TWO_NAMES
def test_a_column_generated_from_the_other(tmp_path: Path, a: str, b: str) -> None:
    path = tmp_path / "t"
    generated = Field(b, "long", metadata={"delta.generationExpression": f"`{a}` + 1"})
    DeltaTable.create(path, schema=Schema([Field(a, "long"), generated]))
    write_deltalake(path, pa.table({a: [1]}), mode="append")
    assert _rows(path) == [{a: 1, b: 2}]
    DeltaTable(path).alter.add_constraint({a: f"`{b}` > 1"})
    with pytest.raises(ConstraintViolationError):
        write_deltalake(path, pa.table({a: [0]}), mode="append")
    DeltaTable(path).alter.drop_constraint(a)


@TWO_NAMES
def test_a_directory_with_files_and_folders_of_two_names(tmp_path: Path, a: str, b: str) -> None:
    for value in (1, 2):
        folder = tmp_path / f"{a}={value}" / f"{b}={value * 10}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"v": [value]}), folder / "f.parquet")
    convert_to_deltalake(tmp_path, partition_by=pa.schema([(a, pa.int32()), (b, pa.int32())]))
    assert _rows(tmp_path) == [{"v": 1, a: 1, b: 10}, {"v": 2, a: 2, b: 20}]


@TWO_NAMES
def test_queries_of_two_names(tmp_path: Path, a: str, b: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "t"
    write_deltalake(path, pa.table({a: [1, 2], b: [10, 20]}))
    found = deltalog.sql(f"select sum(`{a}`) as x, max(`{b}`) as y from t", t=DeltaTable(path))
    assert found.to_arrow().to_pylist() == [{"x": 3, "y": 20}]
    rows = DeltaTable(path).to_pyarrow_dataset()  # noqa: F841  # DuckDB finds it by its name
    assert duckdb.sql(f'select "{a}" from rows where "{b}" > 10').fetchall() == [(2,)]


@ONE_NAME
def test_one_name_is_no_two_columns(tmp_path: Path, a: str, b: str) -> None:
    for rows in ({a: [1], b: [2]}, {"x": [{a: 1, b: 2}]}):
        with pytest.raises(DeltaError):
            write_deltalake(tmp_path / "t", pa.table(rows))
    write_deltalake(tmp_path / "t", pa.table({a: [1]}))
    with pytest.raises(DeltaError):
        DeltaTable(tmp_path / "t").alter.add_columns([Field(b, "long")])


@ONE_NAME
def test_one_name_is_found_in_any_case(tmp_path: Path, a: str, b: str) -> None:
    path = tmp_path / "t"
    write_deltalake(path, pa.table({a: [1], "z": [0]}))
    write_deltalake(path, pa.table({b: [2], "z": [0]}), mode="append", schema_mode="merge")
    assert [row[a] for row in _rows(path)] == [1, 2]
    assert [row[a] for row in _rows(path, filters=f"`{b}` = 2")] == [2]
    assert [row[a] for row in _rows(path, filters=[(b, "=", 2)])] == [2]
    DeltaTable(path).update(updates={b: f"`{b}` + 10"}, predicate=f"`{b}` = 2")
    source = pa.table({b: [12], "z": [5]})
    merge = DeltaTable(path).merge(source, f"t.`{b}` = s.`{b}`", "s", "t")
    merge.when_matched_update_all().execute()
    assert {(row[a], row["z"]) for row in _rows(path)} == {(1, 0), (12, 5)}
    DeltaTable(path).delete(f"`{b}` = 12")
    assert [row[a] for row in _rows(path)] == [1]


@ONE_NAME
def test_a_constraint_is_dropped_by_its_name_in_any_case(tmp_path: Path, a: str, b: str) -> None:
    write_deltalake(tmp_path, pa.table({"z": [0]}))
    DeltaTable(tmp_path).alter.add_constraint({a: "z >= 0"})
    DeltaTable(tmp_path).alter.drop_constraint(b)
    write_deltalake(tmp_path, pa.table({"z": [-1]}), mode="append")


@ONE_NAME
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select `{b}` + 1 as y from t where `{b}` > 1 order by `{b}` desc", [4, 3]),
        ("select sum(`{b}`) as y from t", [6]),
        ("select y from (select `{b}` + 0 as y from t) x where y = 3", [3]),
        ("select l.`{b}` as y from t l join t r using (`{b}`) where l.`{b}` = 1", [1]),
        ("select -z as y from t x where x.`{b}` < 2 group by z, `{b}`", [0]),
    ],
)
def test_duckdb_finds_one_name_in_any_case(
    tmp_path: Path, a: str, b: str, query: str, expected: list[int]
) -> None:
    pytest.importorskip("duckdb")
    write_deltalake(tmp_path, pa.table({a: [1, 2, 3], "z": [0, 0, 0]}))
    found = deltalog.sql(query.format(b=b), t=DeltaTable(tmp_path)).to_arrow()
    assert [row["y"] for row in found.to_pylist()] == expected


@ONE_NAME
def test_a_name_that_a_query_gives_itself_is_its_own(tmp_path: Path, a: str, b: str) -> None:
    pytest.importorskip("duckdb")
    write_deltalake(tmp_path, pa.table({a: [1, 2], "z": [8, 7]}))
    query = f"select z + 0 as `{b}` from t order by `{b}`"
    with contextlib.closing(deltalog.sql(query, t=DeltaTable(tmp_path)).to_reader()) as found:
        assert found.read_all().to_pylist() == [{b: 7}, {b: 8}]
