"""Tables whose files DuckDB reads itself: the rows of deltalog's reader, and no other files."""

from __future__ import annotations

import datetime as dt
import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake
from deltalog.errors import (
    DataFileMissingError,
    DataFileUnreadableError,
    DeletionVectorError,
    DeltaError,
    InvalidInputError,
    UnsafePathError,
)
from deltalog.expressions import parse_type
from deltalog.query.duckdb import duckdb_with_files, query_duckdb
from deltalog.query.duckdb_files import native_rows
from deltalog.schema import to_arrow_type
from tests.support.raw_tables import DataTable, struct_of

UTC: Final = pa.timestamp("us", "UTC")
VECTORS: Final = {"delta.enableDeletionVectors": "true"}
BY_NAME: Final = {"delta.columnMapping.mode": "name"}
BY_ID: Final = {"delta.columnMapping.mode": "id"}


def on_disk(table: DataTable, directory: Path) -> DeltaTable:
    """The files of a table in memory, in a directory."""
    for path, content in table.store.files.items():
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return DeltaTable(directory)


def is_native(table: DeltaTable, columns: Sequence[str] | None = None) -> bool:
    """Whether DuckDB reads every file of a table itself."""
    return native_rows(table.scan(columns)) is not None


def plan_text(sql: str, **tables: Any) -> str:
    """DuckDB's plan of a query."""
    found = deltalog.sql(f"EXPLAIN {sql}", **tables).to_arrow()
    return "\n".join(str(value) for row in found.to_pylist() for value in row.values())


def answer(sql: str, **tables: Any) -> pa.Table:
    """The rows of a query."""
    return deltalog.sql(sql, **tables).to_arrow()


def sorted_rows(table: pa.Table) -> list[str]:
    """The rows in some order; NaN equals NaN, and -0.0 is not 0.0."""
    return sorted(map(repr, zip(*(one.to_pylist() for one in table.columns), strict=True)))


def check_query(sql: str, *, ordered: bool = False, **tables: DeltaTable) -> pa.Table:
    """Compare a query over tables with the same query over the rows of deltalog's reader."""
    found = answer(sql, **tables)
    wanted = answer(sql, **{name: one.to_pyarrow_table() for name, one in tables.items()})
    assert found.schema.types == wanted.schema.types
    assert found.schema.names == wanted.schema.names
    if ordered:
        assert found.to_pylist() == wanted.to_pylist()
    else:
        assert sorted_rows(found) == sorted_rows(wanted)
    return found


# --- Shapes of tables


def of_one_file(path: Path) -> DeltaTable:
    """Numbers and strings in one file."""
    write_deltalake(path, pa.table({"id": [3, 1, None, 2], "s": ["c", None, "\u00e9'\"", ""]}))
    return DeltaTable(path)


def of_several_files(path: Path) -> DeltaTable:
    """Three files."""
    for start in (0, 10, 20):
        rows: Any = {"id": list(range(start, start + 5)), "s": [f"s{start}"] * 5}
        write_deltalake(path, pa.table(rows), mode="append")
    return DeltaTable(path)


def with_vectors(path: Path) -> DeltaTable:
    """Six files, of which four have deletion vectors of different rows."""
    for start in range(6):
        rows: Any = {"id": list(range(start * 10, start * 10 + 10)), "s": [str(start)] * 10}
        options: Any = {"configuration": VECTORS} if start == 0 else {}
        write_deltalake(path, pa.table(rows), mode="append", **options)
    DeltaTable(path).delete("id IN (0, 9, 10, 25, 26, 27, 38, 39)")
    DeltaTable(path).delete("id IN (11, 20)")
    return DeltaTable(path)


def with_empty_files(path: Path) -> DeltaTable:
    """A table whose rows are all deleted, and one without files, are empty."""
    write_deltalake(path, pa.table({"id": [1, 2], "s": ["a", "b"]}), configuration=VECTORS)
    DeltaTable(path).delete("id > 0")
    return DeltaTable(path)


def with_late_columns(path: Path) -> DeltaTable:
    """A column that the first file lacks."""
    write_deltalake(path, pa.table({"id": [1, 2]}))
    later = pa.table({"s": ["x", None], "id": [3, 4]})
    write_deltalake(path, later, mode="append", schema_mode="merge")
    return DeltaTable(path)


def with_widened_columns(path: Path) -> DeltaTable:
    """Files with narrower types than the table's."""
    fields = [("id", "long"), ("x", "double"), ("d", "decimal(20,4)"), ("s", "string")]
    table = DataTable(fields)
    kinds: list[tuple[Any, Any, Any]] = [
        (pa.int32(), pa.float32(), pa.decimal128(10, 2)),
        (pa.int64(), pa.float64(), pa.decimal128(20, 4)),
        (pa.int16(), pa.int32(), pa.int32()),
    ]
    for number, (whole, double, decimal) in enumerate(kinds):
        data = pa.table({
            "id": pa.array([number, None], whole), "x": pa.array([number, -7], double),
            "d": pa.array([12, None], decimal), "s": ["a", None],
        })  # fmt: skip
        table.commit(table.add(data))
    return on_disk(table, path)


def mapped_by(mode: dict[str, str]) -> Callable[[Path], DeltaTable]:
    """A table whose files name columns in another way, renamed and with a dropped column."""

    def build(path: Path) -> DeltaTable:
        rows: Any = {"id": [1, 2, 3], "s": ["a", "b", None], "gone": [1, 2, 3]}
        write_deltalake(path, pa.table(rows), configuration={**mode, **VECTORS})
        table = DeltaTable(path)
        table.alter.rename_column("s", 'file"x')
        table.alter.drop_columns(["gone"])
        write_deltalake(path, pa.table({"id": [4], 'file"x': ["d"]}), mode="append")
        table = DeltaTable(path)
        table.delete("id = 2")
        table.alter.rename_column('file"x', "s")
        return table

    return build


SHAPES: Final[dict[str, Callable[[Path], DeltaTable]]] = {
    "one file": of_one_file,
    "several files": of_several_files,
    "deletion vectors": with_vectors,
    "no rows": with_empty_files,
    "late columns": with_late_columns,
    "widened columns": with_widened_columns,
    "names": mapped_by(BY_NAME),
    "ids": mapped_by(BY_ID),
}


@pytest.fixture(params=SHAPES, scope="module")
def shaped(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> DeltaTable:
    """A table of each shape, with columns `id` and `s`."""
    return SHAPES[request.param](tmp_path_factory.mktemp("shape") / "it's a table")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) AS n FROM t",
        "SELECT count(*) AS n, count(id) AS i, count(s) AS s FROM t",
        "SELECT sum(id) AS n, min(s) AS least, max(s) AS most, avg(id) AS mean FROM t",
        "SELECT s, count(*) AS n, sum(id) AS i FROM t GROUP BY s",
        "SELECT DISTINCT s FROM t",
        "SELECT count(DISTINCT id) AS n FROM t WHERE id > 1",
        "SELECT count(*) AS n FROM t WHERE s IS NULL OR id BETWEEN 2 AND 30",
        "SELECT t.id, u.s FROM t JOIN t AS u ON t.id = u.id",
        "SELECT t.id, u.id AS other FROM t LEFT JOIN t AS u ON t.id + 1 = u.id",
        "SELECT id FROM t WHERE id NOT IN (SELECT id FROM t WHERE id > 3)",
        "SELECT id FROM t UNION ALL SELECT id FROM t",
        "SELECT id FROM t EXCEPT SELECT id FROM t WHERE id = 1",
        "SELECT id, s, row_number() OVER (ORDER BY id NULLS FIRST, s) AS n FROM t",
        "SELECT upper(s) AS big, count(*) AS n FROM t GROUP BY upper(s)",
        "SELECT concat(s, '-', s) AS twice, length(s) AS n FROM t JOIN (SELECT 1 AS one)",
        "SELECT 1 AS one FROM t JOIN (SELECT 1 AS x)",
    ],
)
def test_queries_have_the_rows_of_deltalogs_reader(shaped: DeltaTable, sql: str) -> None:
    assert is_native(shaped)
    check_query(sql, t=shaped)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, s FROM t ORDER BY id DESC NULLS LAST, s LIMIT 3",
        "SELECT id FROM t ORDER BY id NULLS LAST LIMIT 2 OFFSET 1",
        "SELECT id, count(*) AS n FROM t GROUP BY id ORDER BY id NULLS FIRST LIMIT 4",
    ],
)
def test_first_rows_are_those_of_deltalogs_reader(shaped: DeltaTable, sql: str) -> None:
    check_query(sql, ordered=True, t=shaped)


def test_a_limit_without_order_gives_as_many_rows(shaped: DeltaTable) -> None:
    rows = shaped.to_pyarrow_table().num_rows
    found = answer("SELECT t.id FROM t JOIN (SELECT 1 AS one) LIMIT 2", t=shaped)
    assert found.num_rows == min(2, rows)


def test_duckdb_reads_the_files(shaped: DeltaTable) -> None:
    if not shaped.file_uris():
        return
    sql = "SELECT s, sum(id) AS n FROM t GROUP BY s"
    assert "READ_PARQUET" in plan_text(sql, t=shaped).upper().replace(
        "PARQUET SCAN", "READ_PARQUET"
    )
    rows = shaped.to_pyarrow_table()
    assert "PARQUET" not in plan_text(sql, t=rows).upper()


def test_two_tables_are_joined(tmp_path: Path) -> None:
    tables: Any = {
        name: SHAPES[shape](tmp_path / name)
        for name, shape in (("t", "deletion vectors"), ("u", "several files"), ("v", "names"))
    }
    for sql in (
        "SELECT t.id, u.s FROM t JOIN u ON t.id = u.id",
        "SELECT t.id, u.s, v.s AS other FROM t LEFT JOIN u USING (id) LEFT JOIN v ON v.id = t.id",
        "SELECT count(*) AS n FROM t, u, v WHERE t.id = u.id AND u.id >= v.id",
        "SELECT a.id FROM t AS a JOIN u AS b ON a.id = b.id JOIN t AS c ON c.id = b.id + 1",
    ):
        assert check_query(sql, **tables).num_rows > 0


def test_a_native_table_is_joined_with_other_rows(tmp_path: Path) -> None:
    table = with_vectors(tmp_path)
    other = pa.table({"id": [1, 9, 12, 27, 40], "w": ["a", "b", "c", "d", "e"]})
    found = answer("SELECT t.id, w FROM t JOIN o ON t.id = o.id ORDER BY 1", t=table, o=other)
    assert found.to_pylist() == [
        {"id": 1, "w": "a"}, {"id": 12, "w": "c"}, {"id": 40, "w": "e"},
    ]  # fmt: skip


# --- Deleted rows


def test_deleted_rows_are_those_of_their_own_file(tmp_path: Path) -> None:
    table = DataTable([("id", "long")], [], ["deletionVectors"], VECTORS)
    deleted = [[0], [1, 3], [], [2], [0, 1, 2, 3], [3]]
    vectors = table.vectors(*deleted)
    table.commit(
        *(
            table.add(
                {"id": [10 * number + row for row in range(4)]},
                deletionVector=vector,
                path=f"{9 - number}.parquet",
            )
            for number, vector in enumerate(vectors)
        ),
        table.add({"id": [100, 101]}),
    )
    found = on_disk(table, tmp_path)
    left = [
        10 * number + row
        for number, rows in enumerate(deleted)
        for row in range(4)
        if row not in rows
    ]
    assert is_native(found)
    sql = "SELECT id FROM t GROUP BY id ORDER BY id"
    assert answer(sql, t=found)["id"].to_pylist() == [*left, 100, 101]


def test_deleted_rows_after_the_first_row_group(tmp_path: Path) -> None:
    table = DataTable([("id", "long")], [], ["deletionVectors"], VECTORS)
    rows = list(range(10_000))
    gone = {0, 999, 1000, 4096, 5000, 9999}
    options = {"row_group_size": 1000}
    table.commit(
        table.add({"id": rows}, options=options, deletionVector=table.vector(*gone)),
        table.add({"id": [-1, -2]}, deletionVector=table.vector(1)),
    )
    found = on_disk(table, tmp_path)
    assert is_native(found)
    # Statistics let DuckDB skip row groups, which must not change the positions of rows.
    for where in ("id >= 4000", "id BETWEEN 995 AND 1005", "id > 9990", "id < 5", "id <> 7"):
        sql = f"SELECT id FROM t WHERE {where} GROUP BY id ORDER BY id"  # constants
        check_query(sql, ordered=True, t=found)
    expected = sum(rows) - sum(gone) - 1
    assert answer("SELECT sum(id) AS n FROM t", t=found)["n"].to_pylist() == [expected]


def test_a_damaged_vector_is_named(tmp_path: Path) -> None:
    table = DataTable([("id", "long")], [], ["deletionVectors"], VECTORS)
    table.commit(table.add({"id": [1, 2, 3]}, deletionVector=table.vector(1)))
    found = on_disk(table, tmp_path)
    (vector,) = tmp_path.glob("deletion_vector_*.bin")
    content = bytearray(vector.read_bytes())
    content[-6] ^= 0xFF
    vector.write_bytes(content)
    with pytest.raises(DeletionVectorError) as caught:
        answer("SELECT sum(id) FROM t", t=found)
    assert any("part-1.parquet" in note for note in caught.value.__notes__)


def test_versions_have_their_own_rows(tmp_path: Path) -> None:
    table = with_vectors(tmp_path)
    wanted = {
        0: sum(range(10)),
        5: sum(range(60)),
        6: sum(range(60)) - 174,
        7: sum(range(60)) - 205,
    }
    for version, total in wanted.items():
        sql = f"SELECT sum(id) AS n FROM t VERSION AS OF {version}"  # a number
        assert answer(sql, t=table)["n"].to_pylist() == [total]
    sql = (
        "SELECT t.id FROM t VERSION AS OF 5 JOIN t AS u ON t.id = u.id ANTI JOIN t v ON v.id = t.id"
    )
    assert answer(sql, t=table).num_rows == 0
    sql = "SELECT o.id FROM t VERSION AS OF 5 AS o ANTI JOIN t ON t.id = o.id ORDER BY 1"
    assert answer(sql, t=table)["id"].to_pylist() == [0, 9, 10, 11, 20, 25, 26, 27, 38, 39]


# --- Partition columns


PARTITIONS: Final[dict[str, list[Any]]] = {
    "int": [1, -2, None, 2**31 - 1, -(2**31)],
    "bigint": [1, -2, None, 2**63 - 1, -(2**63)],
    "smallint": [1, -2, None, 32767, -32768],
    "tinyint": [1, -2, None, 127, -128],
    "double": [1.5, -0.0, None, math.inf, math.nan],
    "float": [1.5, -0.1, None, -math.inf, math.nan],
    "boolean": [True, False, None],
    "string": ["it's", 'say "so"', None, "\u00e9e\u0301\U0001f600", "a%2F=b/c\\d", " ", "NULL"],
    "binary": [b"a", b"\x01\x7f", None],
    "date": [dt.date(2020, 2, 29), dt.date(1, 1, 1), None, dt.date(9999, 12, 31)],
    "timestamp": [
        dt.datetime(2020, 2, 29, 12, 30, 1, 1, dt.UTC), None,
        dt.datetime(1, 1, 1, tzinfo=dt.UTC), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, dt.UTC),
    ],
    "timestamp_ntz": [dt.datetime(2020, 2, 29, 12, 30, 1, 1), None, dt.datetime(1, 1, 1)],  # noqa: DTZ001  # they have none
    "decimal(5,2)": [Decimal("1.50"), Decimal("-999.99"), None, Decimal("0.00")],
    "decimal(38,18)": [Decimal("12345678901234567890.123456789012345678"), None, Decimal("-1e-18")],
}  # fmt: skip


@pytest.mark.parametrize("kind", PARTITIONS)
@pytest.mark.parametrize("is_single", [False, True], ids=["several values", "one value"])
def test_partition_columns(tmp_path: Path, kind: str, *, is_single: bool) -> None:
    arrow = to_arrow_type(parse_type(kind))
    for number, value in enumerate(PARTITIONS[kind]):
        path = tmp_path / (str(number) if is_single else "all")
        rows = pa.table({"id": [number, number + 10], "p": pa.array([value] * 2, arrow)})
        write_deltalake(path, rows, partition_by=["p"], mode="append")
        write_deltalake(path, rows.slice(1), mode="append")
    for path in tmp_path.iterdir():
        table = DeltaTable(path)
        assert is_native(table)
        check_query("SELECT id, p FROM t JOIN (SELECT 1 AS one)", t=table)
        check_query("SELECT p, count(*) AS n, sum(id) AS s FROM t GROUP BY p", t=table)
        check_query("SELECT count(*) AS n FROM t WHERE p IS NOT NULL AND id > 0", t=table)
        check_query("SELECT a.id FROM t AS a JOIN t AS b ON a.p <=> b.p", t=table)
        if kind not in {"boolean", "binary"}:
            check_query("SELECT min(p) AS least, max(p) AS most FROM t", t=table)


def test_partition_columns_and_deletion_vectors(tmp_path: Path) -> None:
    rows = pa.table({"id": list(range(30)), "p": [None, "a", "b"] * 10, "q": [1, 2] * 15})
    write_deltalake(tmp_path, rows, partition_by=["p", "q"], configuration=VECTORS)
    DeltaTable(tmp_path).delete("id % 5 = 0")
    table = DeltaTable(tmp_path)
    assert is_native(table)
    check_query("SELECT p, q, sum(id) AS n, count(*) AS m FROM t GROUP BY p, q", t=table)
    check_query("SELECT sum(id) AS n FROM t WHERE p = 'a' AND q = 2", t=table)
    check_query("SELECT max(q) AS q FROM t", t=table)
    found = answer("SELECT sum(id) AS n FROM t WHERE p IS NULL", t=table)
    assert found["n"].to_pylist() == [sum(n for n in range(0, 30, 3) if n % 5)]


def reads_directories(table: DeltaTable) -> bool:
    """Whether DuckDB reads partition values from the names of directories."""
    rows = native_rows(table.scan())
    assert rows is not None
    return "hive_partitioning = True" in rows.view("t").query


@pytest.mark.parametrize(
    "values",
    [[1, -2, None], ["a", "b-1_2.c", None], ["1", "01", None], [dt.date(2020, 2, 29), None]],
    ids=repr,
)
def test_partition_values_in_directories(tmp_path: Path, values: list[Any]) -> None:
    columns = {"p": values * 2, "q": values[::-1] * 2, "id": list(range(len(values) * 2))}
    write_deltalake(tmp_path, columns, partition_by=["p", "q"], configuration=VECTORS)
    table = DeltaTable(tmp_path)
    assert reads_directories(table)
    check_query("SELECT * FROM t", t=table)
    check_query("SELECT id, q FROM t WHERE p IS NULL", t=table)
    check_query("SELECT id FROM t WHERE q IS NOT NULL", t=table)
    check_query("SELECT a.id FROM t AS a JOIN t AS b ON a.p = b.q AND b.id > 0", t=table)
    check_query("SELECT min(p) AS least, max(q) AS most FROM t", t=table)
    table.delete(f"id < {len(values)}")
    # Deleted rows have the numbers of their files, which change if DuckDB prunes files.
    assert not reads_directories(table)
    check_query("SELECT id FROM t WHERE q IS NOT NULL", t=table)


@pytest.mark.parametrize(
    "value", ["NULL", "null", "__hive_default_partition__", "a b", "a%20", "="]
)
def test_values_that_directories_do_not_spell(tmp_path: Path, value: str) -> None:
    write_deltalake(tmp_path, {"p": [value, "a", None], "id": [1, 2, 3]}, partition_by=["p"])
    table = DeltaTable(tmp_path)
    assert not reads_directories(table)
    check_query("SELECT * FROM t", t=table)
    assert answer("SELECT id FROM t WHERE p = :p", parameters={"p": value}, t=table)[
        "id"
    ].to_pylist() == [1]


@pytest.mark.parametrize(
    ("file", "stored"),
    [
        ("p=1/x.parquet", {}),  # the log says 2
        ("p=3/p=2/x.parquet", {}),
        ("p=2/q=3/x.parquet", {}),
        ("p=02/x.parquet", {}),
        ("P=2/x.parquet", {}),
        ("p=2.0/x.parquet", {}),
        ("p=2/x=1.parquet", {}),
        ("x.parquet", {}),
        ("p=2/x.parquet", {"p": [5]}),
        ("p=2/x.parquet", {"P": [5]}),
    ],
)
def test_directories_that_differ_from_the_log(
    tmp_path: Path, file: str, stored: dict[str, Any]
) -> None:
    write_deltalake(tmp_path, {"p": [1, 2], "id": [1, 2]}, partition_by=["p"])
    (old,) = tmp_path.glob("p=2/*.parquet")
    commit = tmp_path / "_delta_log" / f"{0:020}.json"
    text = commit.read_text()
    path = f"p=2/{old.name}"
    size = old.stat().st_size
    old.unlink()
    target = tmp_path / file
    target.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": pa.array([2], pa.int64()), **stored}), target)
    text = text.replace(f'"size":{size}', f'"size":{target.stat().st_size}')
    assert path in text
    commit.write_text(text.replace(path, file.replace("=", "%3D")))
    commit.with_name(f"{0:020}.crc").unlink(missing_ok=True)
    table = DeltaTable(tmp_path)
    assert reads_directories(table) == bool(stored)  # then the first file has its own group
    assert answer("SELECT p, id FROM t ORDER BY id", t=table).to_pylist() == [
        {"p": 1, "id": 1}, {"p": 2, "id": 2},
    ]  # fmt: skip


def test_statistics_of_all_files_are_used_where_they_are_worth_it(tmp_path: Path) -> None:
    def knows_all(table: DeltaTable) -> bool:
        rows = native_rows(table.scan())
        assert rows is not None
        return "union_by_name = true" in rows.view("t").query

    path = tmp_path / "few"
    for number in (3, 5_000):
        rows = pa.table({"id": list(range(number)), "b": [None, *range(number - 1)]})
        write_deltalake(path, rows, mode="append")
    table = DeltaTable(path)
    assert knows_all(table)
    plan = plan_text("SELECT sum(id) AS n FROM t", t=table)
    assert "5003 rows" in plan.replace(",", "")
    check_query("SELECT count(*) AS n FROM t WHERE b IS NULL", t=table)
    check_query("SELECT min(id) AS a, max(b) AS b FROM t WHERE id > 4", t=table)
    assert not knows_all(DeltaTable(path, version=0))
    path = tmp_path / "many"
    write_deltalake(path, {"id": list(range(101)), "p": list(range(101))}, partition_by=["p"])
    assert not knows_all(DeltaTable(path))


@pytest.mark.parametrize("above", ["q=1", "id=7", "p=1"])
def test_a_directory_above_the_table_looks_like_a_partition(tmp_path: Path, above: str) -> None:
    path = tmp_path / above / "t"
    write_deltalake(path, {"p": [1, 2], "id": [1, 2]}, partition_by=["p"])
    table = DeltaTable(path)
    assert not reads_directories(table)
    check_query("SELECT p, id FROM t WHERE p > 1", t=table)


def test_types_are_those_of_the_table_at_hand(tmp_path: Path) -> None:
    # The types of a query's parts are kept for the next run of the same query.
    columns: dict[str, Any] = {
        "int": pa.array([2, None], pa.int32()),
        "long": pa.array([2, 2**61], pa.int64()),
        "double": pa.array([2.5, math.inf]),
        "decimal": pa.array([Decimal("2.50"), None], pa.decimal128(9, 2)),
        "wide": pa.array([Decimal("2.5"), None], pa.decimal128(38, 1)),
    }
    sql = "SELECT x + x AS twice, coalesce(x, x) AS x, CAST(x AS STRING) AS s FROM t JOIN o"
    other = pa.table({"one": [1]})
    for _ in range(2):
        for name, values in columns.items():
            write_deltalake(tmp_path / name, pa.table({"x": values}), mode="overwrite")
            table = DeltaTable(tmp_path / name)
            assert is_native(table)
            found = answer(sql, t=table, o=other)
            wanted = answer(f"{sql} AS {name}", t=table.to_pyarrow_table(), o=other)
            assert found.schema.types == wanted.schema.types
            assert sorted_rows(found) == sorted_rows(wanted)


# --- Names that the queries of deltalog use themselves


@pytest.mark.parametrize(
    "name",
    [
        "file_index", "FILE_INDEX", "file_row_number", "filename", "files", "constants", "position",
        "rowid", 'file"x', "it's", "a.b", "\u00e9", "select",
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_partition", [False, True], ids=["data", "partition"])
def test_columns_of_any_name(tmp_path: Path, name: str, *, is_partition: bool) -> None:
    rows = pa.table({"x": [1, 2, 3, 4], name: ["5", "6", "7", None]})
    options: Any = {"partition_by": [name]} if is_partition else {}
    configuration = {**VECTORS, **BY_NAME}
    write_deltalake(tmp_path, rows, configuration=configuration, **options)
    write_deltalake(tmp_path, rows.slice(0, 2), mode="append")
    DeltaTable(tmp_path).delete("x IN (2, 4)")
    table = DeltaTable(tmp_path)
    assert is_native(table)
    sql = f"SELECT x, `{name}` AS found FROM t JOIN (SELECT 1 AS one)"  # constants
    found = answer(sql, t=table).to_pylist()
    assert sorted((row["x"], row["found"]) for row in found) == [(1, "5"), (1, "5"), (3, "7")]


def test_a_table_named_as_a_part_of_another(tmp_path: Path) -> None:
    table = with_vectors(tmp_path / "a")
    other = of_several_files(tmp_path / "b")
    sql = "SELECT count(*) AS n FROM t_0_deleted JOIN t ON t.id = t_0_deleted.id"
    found = answer(sql, t=table, t_0_deleted=other)
    left = set(table.to_pyarrow_table()["id"].to_pylist())
    assert found["n"].to_pylist() == [
        sum(one in left for one in [*range(5), *range(10, 15), *range(20, 25)])
    ]


# --- Values


def of_values(path: Path, kind: Any, values: pa.Array[Any], **options: Any) -> DeltaTable:
    """A table with a column `x` in one file, and its number `n`."""
    table = DataTable([("n", "long"), ("x", kind)])
    rows = pa.table({"n": list(range(len(values))), "x": values})
    table.commit(table.add(rows, options=options))
    return on_disk(table, path)


DOUBLES: Final = [1.0, math.nan, -0.0, 2.0, math.inf, -math.inf, None, 0.0]


@pytest.mark.parametrize(("kind", "arrow"), [("double", pa.float64()), ("float", pa.float32())])
@pytest.mark.parametrize("group", [1, 2, 8])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT n FROM t WHERE x > 100 GROUP BY n",
        "SELECT n FROM t WHERE x >= 2 GROUP BY n",
        "SELECT n FROM t WHERE x <> 1 GROUP BY n",
        "SELECT n FROM t WHERE NOT (x <= 50) GROUP BY n",
        "SELECT n FROM t WHERE x = double('NaN') GROUP BY n",
        "SELECT n FROM t WHERE x = 0 GROUP BY n",
        "SELECT n FROM t WHERE x < 0 GROUP BY n",
        "SELECT n FROM t WHERE x IN (0, 7) GROUP BY n",
        "SELECT n FROM t WHERE x IS NOT NULL GROUP BY n",
        "SELECT a.n FROM t AS a JOIN t AS b ON a.x = b.x AND b.x > 3",
        "SELECT min(x) AS least, max(x) AS most FROM t WHERE n < 4",
        "SELECT max(x) AS most FROM t",
        "SELECT x, count(*) AS many FROM t WHERE n NOT IN (2, 7) GROUP BY x",
    ],
)
def test_nan_is_a_value(tmp_path: Path, kind: str, arrow: Any, group: int, sql: str) -> None:
    # Statistics of Parquet files say nothing about NaN, which is larger than all other numbers.
    table = of_values(tmp_path, kind, pa.array(DOUBLES, arrow), row_group_size=group)
    check_query(sql, t=table)


def test_nan_beside_one_other_value(tmp_path: Path) -> None:
    table = of_values(tmp_path, "double", pa.array([1.0, 1.0, math.nan]))
    assert answer("SELECT sum(n) AS s FROM t WHERE x > 1", t=table)["s"].to_pylist() == [2]
    assert math.isnan(answer("SELECT max(x) AS m FROM t", t=table)["m"][0].as_py())


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("date", pa.array([0, -719_529, 2_932_896, -2_000_000, 20_000_000, None], pa.int32())),
        ("timestamp", pa.array([0, -1, 1, 2**62, -(2**62), None], pa.int64())),
        ("timestamp_ntz", pa.array([0, -1, 1, 2**62, -(2**62), None], pa.int64())),
    ],
)
def test_moments_that_python_lacks(tmp_path: Path, kind: str, values: pa.Array[Any]) -> None:
    stored = values.view(to_arrow_type(parse_type(kind)))
    table = of_values(tmp_path, kind, stored, row_group_size=2)
    found = answer("SELECT x, n FROM t JOIN (SELECT 1 AS one) ORDER BY n", t=table)
    assert found["x"].combine_chunks().equals(stored)
    wanted = [
        number for number, one in enumerate(values.to_pylist()) if one is not None and one > 0
    ]
    zero = {"date": "DATE '1970-01-01'", "timestamp": "TIMESTAMP '1970-01-01 00:00:00Z'"}
    sql = f"SELECT n FROM t WHERE x > {zero.get(kind, 'TIMESTAMP_NTZ' + repr('1970-01-01'))} ORDER BY n"  # noqa: E501  # constants
    assert answer(sql, t=table)["n"].to_pylist() == wanted


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_moments_of_int96(tmp_path: Path, kind: str) -> None:
    nanos = [0, -1, 1, -999, 999, 1500, -1500, -86_400_000_000_001, 2**63 - 1, None]
    stored = pa.array(nanos, pa.int64()).view(pa.timestamp("ns"))
    table = of_values(
        tmp_path, kind, stored, use_deprecated_int96_timestamps=True, row_group_size=3
    )
    wanted = [None if one is None else one // 1000 for one in nanos]
    found = answer("SELECT x, n FROM t JOIN (SELECT 1 AS one) ORDER BY n", t=table)
    assert found["x"].cast(pa.int64()).to_pylist() == wanted
    assert table.to_pyarrow_table()["x"].cast(pa.int64()).to_pylist() == wanted


@pytest.mark.parametrize("kind", ["string", "binary"])
@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", None])
@pytest.mark.parametrize(
    "where",
    [
        "x IS NULL",
        "x IS NOT NULL",
        "x IS NULL OR n = 0",
        "NOT (x <=> x) OR x IS NULL",
        "x IS DISTINCT FROM y",
        "n >= 0 AND x IS NULL",
    ],
)
def test_null_beside_one_other_value(
    tmp_path: Path, kind: str, encoding: str | None, where: str
) -> None:
    # DuckDB 2.0.0 takes all rows for NULL if the statistics of a row group have one value, and
    # the values have no dictionary.
    table = DataTable([("n", "long"), ("x", kind), ("y", kind)])
    arrow = to_arrow_type(parse_type(kind))
    same: Any = "a" if kind == "string" else b"a"
    for values in ([same, same, None], [None, same], [same, same], [None, None]):
        array = pa.array(values, arrow)
        rows = pa.table(
            {"n": list(range(len(values))), "x": array, "y": pa.array([same] * len(array), arrow)}
        )
        options: Any = {}
        if encoding is not None:
            options = {"use_dictionary": False, "column_encoding": {"x": encoding}}
        table.commit(table.add(rows, options=options))
    found = on_disk(table, tmp_path)
    check_query(f"SELECT n, x FROM t JOIN (SELECT 1 AS one) WHERE {where}", t=found)
    check_query(f"SELECT count(*) AS many, sum(n) AS s FROM t WHERE {where}", t=found)


def with_statistics(path: Path, values: list[str], written: bytes, wanted: bytes) -> DeltaTable:
    """A table with a column `x` of strings, in whose footer some bytes are replaced."""
    table = of_values(path, "string", pa.array(values), use_dictionary=False, compression="none")
    (file,) = path.glob("*.parquet")
    content = file.read_bytes()
    assert len(written) == len(wanted)
    assert written in content
    file.write_bytes(content.replace(written, wanted))
    return table


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT n FROM t WHERE x > 'b' GROUP BY n",
        "SELECT n FROM t WHERE x = '\u00e9' GROUP BY n",
        "SELECT n FROM t WHERE x < 'b' GROUP BY n",
        "SELECT min(x) AS least, max(x) AS most FROM t",
    ],
)
def test_old_statistics_of_strings_are_not_used(tmp_path: Path, sql: str) -> None:
    # Parquet's fields `max` and `min` (1 and 2) compare signed bytes: \u00e9 is less than a.
    # Readers must ignore them for strings, and read `max_value` and `min_value` (5 and 6).
    accent = "\u00e9".encode()
    new = b"\x36\x00\x28\x02" + accent + b"\x18\x01a\x11\x11\x00"
    old = b"\x18\x01a\x18\x02" + accent + b"\x16\x00\x41\x11\x00"
    table = with_statistics(tmp_path, ["\u00e9", "a"], new, old)
    check_query(sql, t=table)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT min(x) AS least, max(x) AS most FROM t",
        "SELECT n FROM t WHERE x >= 'zz' GROUP BY n",
        "SELECT n FROM t WHERE x <= 'aa' GROUP BY n",
    ],
)
def test_cut_statistics_are_only_bounds(tmp_path: Path, sql: str) -> None:
    exact = b"\x36\x00\x28\x02zz\x18\x02aa\x11\x11\x00"
    bounds = b"\x36\x00\x28\x02z{\x18\x02a\x01\x12\x12\x00"
    check_query(sql, t=with_statistics(tmp_path, ["zz", "aa"], exact, bounds))


def test_nan_inside_of_a_struct_is_a_value(tmp_path: Path) -> None:
    rows = pa.array([{"a": 1.0}, {"a": math.nan}], pa.struct([("a", pa.float64())]))
    table = of_values(tmp_path, struct_of(("a", "double")), rows)
    assert answer("SELECT sum(n) AS s FROM t WHERE x.a > 9", t=table)["s"].to_pylist() == [1]
    assert math.isnan(answer("SELECT max(x.a) AS m FROM t", t=table)["m"][0].as_py())


STRUCT: Final = pa.struct([("a", pa.int32()), ("Bc", pa.list_(pa.string()))])
NESTED: Final = pa.table({
    "id": [1, 2, 3, 4],
    "s": pa.array(
        [{"a": 1, "Bc": ["x", None]}, None, {"a": None, "Bc": []}, {"a": 4, "Bc": None}], STRUCT
    ),
    "l": pa.array([[1, None], [], None, [3]], pa.list_(pa.int64())),
    "m": pa.array(
        [[("k", 1)], [], None, [("k", None), ("\u00e9", 2)]], pa.map_(pa.string(), pa.int64())
    ),
    "d": pa.array(
        [[[Decimal("1.50")]], None, [None], [[]]], pa.list_(pa.list_(pa.decimal128(9, 2)))
    ),
})  # fmt: skip


def test_nested_columns(tmp_path: Path) -> None:
    write_deltalake(tmp_path, NESTED, configuration=VECTORS)
    write_deltalake(tmp_path, NESTED.slice(1), mode="append")
    DeltaTable(tmp_path).delete("id = 3")
    table = DeltaTable(tmp_path)
    assert is_native(table)
    for sql in (
        "SELECT id, s, l, m, d FROM t JOIN (SELECT 1 AS one)",
        "SELECT s.a AS a, count(*) AS n FROM t GROUP BY s.a",
        "SELECT id, s.Bc AS b FROM t WHERE s.a > 1 GROUP BY id, s.Bc",
        "SELECT sum(size(l)) AS n, max(get(l, 0)) AS first FROM t",
        "SELECT id, m['k'] AS k FROM t JOIN (SELECT 1 AS one)",
        "SELECT count(s) AS s, count(l) AS l, count(m) AS m, count(d) AS d FROM t",
    ):
        check_query(sql, t=table)


def test_nested_columns_with_other_names_inside_are_left_to_deltalog(tmp_path: Path) -> None:
    write_deltalake(tmp_path, NESTED, configuration=BY_NAME)
    table = DeltaTable(tmp_path)
    table.alter.rename_column(("s", "a"), "z")
    assert is_native(table, ["id", "l", "m", "d"])
    sql = "SELECT s.z AS z, count(*) AS n FROM t GROUP BY s.z"
    check_query(sql, t=table)
    if not is_native(table):
        assert "PARQUET" not in plan_text(sql, t=table).upper()


# --- Tables that DuckDB does not read


def test_a_store_without_paths_is_read_by_deltalog() -> None:
    table = DataTable([("id", "long")])
    table.commit(table.add({"id": [1, 2]}))
    found = DeltaTable(table.store)
    sql = "SELECT sum(id) AS n FROM t"
    assert native_rows(found.scan()) is None
    assert answer(sql, t=found)["n"].to_pylist() == [3]
    assert "PARQUET" not in plan_text(sql, t=found).upper()


def test_a_clone_and_its_source(tmp_path: Path) -> None:
    source = with_vectors(tmp_path / "source")
    source.clone(tmp_path / "clone", shallow=True)
    source.delete("id = 1")
    clone = DeltaTable(tmp_path / "clone")
    assert is_native(clone)
    check_query("SELECT s, sum(id) AS n FROM t GROUP BY s", t=clone)
    clone.update(updates={"s": "'new'"}, predicate="id = 2")
    assert is_native(clone)
    check_query("SELECT s, sum(id) AS n FROM t GROUP BY s", t=clone)
    check_query("SELECT t.id, u.s FROM t JOIN u USING (id)", t=clone, u=source)


def test_a_clone_reaches_only_its_own_files_of_the_source(tmp_path: Path) -> None:
    source = of_several_files(tmp_path / "source")
    source.clone(tmp_path / "clone", shallow=True)
    write_deltalake(source, source.to_pyarrow_table(), mode="append")
    rows = native_rows(DeltaTable(tmp_path / "clone").scan())
    assert rows is not None
    database = duckdb_with_files(frozenset({rows.directory}), rows.outside)
    every = {str(file) for file in (tmp_path / "source").rglob("*.parquet")}
    assert rows.outside < every
    for file in sorted(every):
        query = f"SELECT count(*) AS n FROM read_parquet('{file}')"  # our own
        if file in rows.outside:
            assert query_duckdb(database, query, {}).read_all().num_rows == 1
        else:
            with pytest.raises(InvalidInputError):
                query_duckdb(database, query, {}).read_all()


def test_a_limit_of_a_scan_is_read_by_deltalog(tmp_path: Path) -> None:
    table = of_several_files(tmp_path)
    assert native_rows(table.scan(limit=2)) is None


def test_a_linked_directory_is_a_table(tmp_path: Path) -> None:
    with_vectors(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    check_query("SELECT sum(id) AS n FROM t", t=DeltaTable(tmp_path / "link"))


def test_a_linked_file_is_read(tmp_path: Path) -> None:
    of_one_file(tmp_path / "t")
    (file,) = (tmp_path / "t").glob("*.parquet")
    file.rename(tmp_path / "moved.parquet")
    file.symlink_to(tmp_path / "moved.parquet")
    check_query("SELECT sum(id) AS n FROM t", t=DeltaTable(tmp_path / "t"))


# --- Missing and damaged files


def settle(directory: Path) -> None:
    """Set old times, so that facts about the files are kept."""
    for file in directory.rglob("*.parquet"):
        os.utime(file, (1_700_000_000, 1_700_000_000))


@pytest.mark.parametrize("build", [of_several_files, with_vectors])
def test_a_missing_file_is_named(tmp_path: Path, build: Callable[[Path], DeltaTable]) -> None:
    table = build(tmp_path)
    settle(tmp_path)
    sql = "SELECT sum(id) AS n FROM t"
    answer(sql, t=table)
    file = sorted(tmp_path.glob("*.parquet"))[1]
    file.unlink()
    with pytest.raises(DataFileMissingError, match=file.name):
        answer(sql, t=table)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"x" * 4000], ids=["empty", "short", "other"])
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    table = of_several_files(tmp_path)
    settle(tmp_path)
    sql = "SELECT sum(id) AS n FROM t"
    answer(sql, t=table)
    file = sorted(tmp_path.glob("*.parquet"))[1]
    file.write_bytes(content)
    with pytest.raises(DataFileUnreadableError, match=file.name):
        answer(sql, t=table)


def _rows_and_run(table: DeltaTable) -> Callable[[], pa.Table]:
    """Plan a scan; the result reads it."""
    rows = native_rows(table.scan())
    assert rows is not None
    database = duckdb_with_files(frozenset({rows.directory}))
    query = "SELECT sum(id) AS n, max(s) AS s FROM rows"
    return lambda: query_duckdb(database, query, {"rows": rows}).read_all()


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_file_that_vanishes_after_planning_is_named(tmp_path: Path, number: int) -> None:
    run = _rows_and_run(of_several_files(tmp_path))
    file = sorted(tmp_path.glob("*.parquet"))[number]
    content = file.read_bytes()
    file.unlink()
    with pytest.raises(DataFileMissingError, match=file.name):
        run()
    file.write_bytes(content)
    assert run().to_pydict() == {
        "n": [sum((*range(5), *range(10, 15), *range(20, 25)))],
        "s": ["s20"],
    }


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_file_damaged_after_planning_is_named(tmp_path: Path, number: int) -> None:
    run = _rows_and_run(of_several_files(tmp_path))
    file = sorted(tmp_path.glob("*.parquet"))[number]
    file.write_bytes(b"nothing")
    with pytest.raises(DataFileUnreadableError, match=file.name):
        run()


def test_files_that_vanish_while_rows_are_read(tmp_path: Path) -> None:
    table = DataTable([("id", "long")])
    rows = pa.table({"id": pa.array(range(20_000), pa.int64())})
    table.commit(*(table.add(rows) for _ in range(40)))
    found = on_disk(table, tmp_path)
    reader = found.sql("SELECT this.id FROM this JOIN (SELECT 1 AS one)")
    count = next(iter(reader)).num_rows
    for file in tmp_path.glob("*.parquet"):
        file.unlink()
    try:
        count += sum(batch.num_rows for batch in reader)
    except DataFileMissingError as error:
        assert "part-" in str(error)  # noqa: PT017  # DuckDB may have opened all files before
    else:
        assert count == 40 * rows.num_rows


def test_a_file_with_damaged_pages_is_named(tmp_path: Path) -> None:
    options = {"use_dictionary": False, "compression": "zstd"}
    table = of_values(tmp_path, "long", pa.array(range(10_000)), **options)
    (file,) = tmp_path.glob("*.parquet")
    content = bytearray(file.read_bytes())
    content[4:2000] = b"\xff" * 1996
    file.write_bytes(content)
    reads: list[Callable[[], pa.Table]] = [
        table.to_pyarrow_table, lambda: answer("SELECT sum(x + n) FROM t", t=table),
    ]  # fmt: skip
    for read in reads:
        with pytest.raises(DataFileUnreadableError, match=file.name):
            read()


# --- Attacks: what queries can reach


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A table `t` with links that lead out of it, beside files that queries must not reach."""
    of_one_file(tmp_path / "t")
    (tmp_path / "secret.csv").write_text("secret\n42\n", "utf-8")
    pq.write_table(pa.table({"secret": [42]}), tmp_path / "secret.parquet")
    (tmp_path / "t-2").mkdir()
    pq.write_table(pa.table({"secret": [42]}), tmp_path / "t-2" / "secret.parquet")
    (tmp_path / "t" / "link.parquet").symlink_to(tmp_path / "secret.parquet")
    (tmp_path / "t" / "link.csv").symlink_to(tmp_path / "secret.csv")
    (tmp_path / "t" / "up").symlink_to(tmp_path)
    return tmp_path


ATTACKS: Final = (
    "SELECT * FROM '{place}/secret.parquet'",
    "SELECT * FROM read_parquet('{place}/secret.parquet')",
    "SELECT * FROM read_parquet(['{place}/t/*.parquet', '{place}/secret.parquet'])",
    "SELECT * FROM read_parquet('{place}/t/../secret.parquet')",
    "SELECT * FROM read_parquet('{place}/t/./..//secret.parquet')",
    "SELECT * FROM read_parquet('{place}/t/_delta_log/../../secret.parquet')",
    "SELECT * FROM read_parquet('{place}/t-2/secret.parquet')",
    "SELECT * FROM read_parquet('{place}/t/link.parquet')",
    "SELECT * FROM read_parquet('{place}/t/up/secret.parquet')",
    "SELECT * FROM read_parquet('{place}/t/up/t-2/secret.parquet')",
    "SELECT * FROM read_parquet('{place}/t*/secret.parquet')",
    "SELECT * FROM read_parquet('{place}/t/*/secret.parquet')",
    "SELECT * FROM read_parquet('{place}/t/**/secret.parquet')",
    "SELECT * FROM read_parquet('file://{place}/secret.parquet')",
    "SELECT * FROM read_parquet('file:{place}/t/../secret.parquet')",
    "SELECT * FROM parquet_metadata('{place}/secret.parquet')",
    "SELECT * FROM parquet_schema('{place}/t/../secret.parquet')",
    "SELECT * FROM read_text('{place}/secret.csv')",
    "SELECT * FROM read_text('{place}/t/link.csv')",
    "SELECT * FROM read_text('{place}/t/up/secret.csv')",
    "SELECT * FROM read_text('/etc/hostname')",
    "SELECT * FROM read_blob('{place}/secret.csv')",
    "SELECT * FROM read_csv('{place}/secret.csv')",
    "SELECT * FROM read_csv('{place}/t/../secret.csv')",
    "SELECT * FROM read_json('{place}/secret.csv')",
    "SELECT * FROM sniff_csv('{place}/secret.csv')",
    "SELECT * FROM glob('{place}/*')",
    "SELECT * FROM glob('{place}/t/../*')",
    "SELECT * FROM glob('{place}/t/up/*')",
    "SELECT * FROM glob('/etc/*')",
    "ATTACH '{place}/new.db' AS other",
    "ATTACH '{place}/t/../new.db' AS other",
    "ATTACH '{place}/t/up/new.db' AS other",
    "COPY (SELECT 1) TO '{place}/new.csv'",
    "COPY (SELECT 1) TO '{place}/t/../new.csv'",
    "COPY (SELECT 1) TO '{place}/t/up/new.csv'",
    "COPY (SELECT 1) TO '{place}/t/link.csv'",
    "COPY (SELECT 1) TO '{place}/t-2/new.parquet'",
    "EXPORT DATABASE '{place}/new'",
    "IMPORT DATABASE '{place}'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD '{place}/t/new.duckdb_extension'",
    "SET threads = 1",
    "SET allowed_directories = ['/']",
    "SET GLOBAL allowed_directories = ['/']",
    "SET allowed_paths = ['{place}/secret.csv']",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "RESET allowed_directories",
    "SET temp_directory = '{place}'",
    "SET home_directory = '{place}'",
    "SET python_enable_replacements = true",
    "PRAGMA enable_profiling",
    "PRAGMA profiling_output = '{place}/new'",
    "CALL enable_logging(storage = 'file', storage_config = {{'path': '{place}/new'}})",
    "CREATE SECRET s (TYPE s3)",
    "CREATE PERSISTENT SECRET s (TYPE http)",
    "SELECT * FROM read_text('http://127.0.0.1:9/secret')",
    "SELECT * FROM read_parquet('s3://bucket/secret.parquet')",
    "SELECT * FROM local_variable",
)


def attack(place: Path, query: str) -> None:
    """Run a query that must be refused, in a database that may read the table `t`."""
    local_variable = pa.table({"secret": [42]})
    before = sorted(place.rglob("*"))
    database = duckdb_with_files(frozenset({f"{place}/t/"}))
    with pytest.raises(InvalidInputError):
        query_duckdb(database, query.format(place=place), {}).read_all()
    assert sorted(place.rglob("*")) == before
    assert (place / "secret.csv").read_text("utf-8") == "secret\n42\n"
    del local_variable


@pytest.mark.parametrize("query", ATTACKS)
def test_files_outside_of_a_table_are_not_reached(place: Path, query: str) -> None:
    attack(place, query)


@pytest.mark.parametrize(
    "path",
    [
        "../secret.parquet",
        "%2e%2e/secret.parquet",
        "up/../../secret.parquet",
        "{place}/t/../secret.parquet",
    ],
)
def test_paths_in_a_log_do_not_lead_out(place: Path, path: str) -> None:
    table = DataTable([("secret", "long")])
    line = {**table.add({"secret": [1]})["add"], "path": path.format(place=place)}
    table.commit({"add": line})
    found = on_disk(table, place / "t3")
    with pytest.raises(UnsafePathError):
        answer("SELECT sum(secret) FROM t", t=found)


def test_a_file_that_becomes_a_link_after_planning_is_not_read(place: Path) -> None:
    table = of_several_files(place / "t3")
    rows = native_rows(table.scan())
    assert rows is not None
    file = sorted((place / "t3").glob("*.parquet"))[1]
    file.unlink()
    file.symlink_to(place / "secret.parquet")
    database = duckdb_with_files(frozenset({rows.directory}))
    with pytest.raises(DeltaError):
        query_duckdb(database, "SELECT * FROM rows", {"rows": rows}).read_all()


def test_files_of_the_table_are_reached(place: Path) -> None:
    # Otherwise the attacks would fail for another reason.
    database = duckdb_with_files(frozenset({f"{place}/t/"}))
    (file,) = (one for one in (place / "t").glob("*.parquet") if not one.is_symlink())
    query = f"SELECT sum(id) AS n FROM read_parquet('{file}')"
    found = query_duckdb(database, query, {})
    assert found.read_all().to_pydict() == {"n": [6]}


def test_a_database_reaches_only_its_own_directories(tmp_path: Path) -> None:
    for name in "ab":
        of_one_file(tmp_path / name)
    files = {name: next((tmp_path / name).glob("*.parquet")) for name in "ab"}

    def count(database: Any, name: str) -> int:
        query = f"SELECT count(*) AS n FROM read_parquet('{files[name]}')"  # our own
        found: int = query_duckdb(database, query, {}).read_all()["n"][0].as_py()
        return found

    both = duckdb_with_files(frozenset({f"{tmp_path}/a/", f"{tmp_path}/b/"}))
    assert [count(both, name) for name in "ab"] == [4, 4]
    for own, other in ("ab", "ba"):
        single = duckdb_with_files(frozenset({f"{tmp_path}/{own}/"}))
        assert count(single, own) == 4
        with pytest.raises(InvalidInputError):
            count(single, other)


def test_databases_are_kept_for_the_same_directories(tmp_path: Path) -> None:
    sets = [frozenset({f"{tmp_path}/{number}/"}) for number in range(6)]
    first = duckdb_with_files(sets[0])
    assert duckdb_with_files(sets[0]) is first
    for one in sets[1:]:
        assert duckdb_with_files(one) is not first
    assert duckdb_with_files(sets[0]) is not first


def test_a_directory_with_quotes_is_allowed(tmp_path: Path) -> None:
    table = with_vectors(tmp_path / "it's \"a\" table', enable_external_access = true; --")
    assert is_native(table)
    check_query("SELECT sum(id) AS n FROM t", t=table)


def test_attacks_fail_while_other_tables_are_queried(place: Path) -> None:
    for number in range(8):
        rows = pa.table({"id": [number] * 3})
        write_deltalake(place / f"n{number}", rows, partition_by=None)
    some = [one for one in ATTACKS if "SELECT" in one and "COPY" not in one][::3]

    def query(number: int) -> list[Any]:
        found: list[Any] = []
        for _ in range(12):
            table = DeltaTable(place / f"n{number}")
            sql = "SELECT sum(id) AS n FROM t JOIN (SELECT 1 AS one)"
            found += answer(sql, t=table)["n"].to_pylist()
        return found

    def attacks(_: int) -> int:
        database = duckdb_with_files(frozenset({f"{place}/t/"}))
        for one in some:
            with pytest.raises(InvalidInputError):
                query_duckdb(database, one.format(place=place), {}).read_all()
        return len(some)

    with ThreadPoolExecutor(10) as pool:
        tried = [pool.submit(attacks, number) for number in range(2)]
        sums = list(pool.map(query, range(8)))
    assert sums == [[3 * number] * 12 for number in range(8)]
    assert [one.result() for one in tried] == [len(some)] * 2


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_parquet('{file}')",
        "SELECT * FROM t JOIN read_parquet('{file}') AS u",
        "SELECT * FROM t, read_parquet(['{file}'])",
        "SELECT * FROM parquet_scan('{file}')",
        "SELECT * FROM '{file}'",
        "SELECT * FROM `{file}`",
        "SELECT sum(id) FROM t WHERE id IN (SELECT id FROM read_parquet('{file}'))",
        "SELECT (SELECT max(content) FROM read_text('{file}')) FROM t",
        "WITH q AS (SELECT * FROM read_blob('{file}')) SELECT count(*) FROM q JOIN t",
        "FROM read_parquet('{file}') SELECT *",
        "SELECT * FROM t LATERAL VIEW read_text('{file}') AS c",
        "SELECT * FROM t JOIN LATERAL read_text('{file}')",
        "SELECT * FROM csv.`{file}`",
        "SELECT * FROM text.`{file}`",
        "SELECT * FROM glob('{file}')",
        "SELECT * FROM query('SELECT 1')",
        "SELECT * FROM query_table('t')",
        "SELECT * FROM duckdb_settings()",
        "SELECT read_text('{file}') FROM t",
        "SELECT getenv('HOME'), sum(id) FROM t",
        "SELECT current_setting('allowed_directories'), sum(id) FROM t",
        "SELECT sum(id) FROM t; SELECT * FROM read_parquet('{file}')",
        "EXPLAIN SELECT * FROM read_parquet('{file}')",
        "EXPLAIN ANALYZE SELECT sum(id) FROM t; COPY t TO '{file}.new'",
        "COPY t TO '{file}.new'",
        "ATTACH '{file}.new' AS other",
        "SET threads = 1",
        "PRAGMA version",
        "INSTALL httpfs",
        "SELECT max(file_row_number) FROM t",
        "SELECT max(files.id) FROM t",
        "SELECT * FROM deltalog_table_0, t",
        "SELECT * FROM deltalog_table_0_0_deleted, t",
        "SELECT * FROM duckdb_views, t",
        "SELECT * FROM information_schema.tables, t",
        "SELECT * FROM pg_catalog.pg_class, t",
    ],
)
def test_statements_reach_only_registered_tables(place: Path, statement: str) -> None:
    table = DeltaTable(place / "t")
    (file,) = (one for one in (place / "t").glob("*.parquet") if not one.is_symlink())
    assert answer("SELECT sum(id) AS n FROM t", t=table)["n"].to_pylist() == [6]
    before = sorted(place.rglob("*"))
    with pytest.raises(DeltaError):
        deltalog.sql(statement.format(file=file), t=table).to_arrow()
    assert sorted(place.rglob("*")) == before
