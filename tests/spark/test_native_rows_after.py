"""Files of Spark's own Parquet writer are changed, looked up and read like our own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import deltalog.spark
from deltalog import DeltaTable
from tests.spark.conftest import CONNECT
from tests.support.copied_groups import copying, num_copied
from tests.support.native_writes import BY_SPARK, having, paths, writers

ROWS = 4_000
# Spark knows that most of them are never NULL; the table and its files do not say so.
COLUMNS = (
    "id",
    "int(id % 7) AS k",
    "if(id % 3 = 0, NULL, concat(repeat('é', 40), lpad(id, 5, '0'))) AS t",
    "if(id % 11 = 0, NULL, -id / 4) AS d",
    "timestamp_micros(id * 1000001 - 1000) AS at",
    "CAST(id - 2000 AS DECIMAL(20, 2)) AS n",
    "struct(id AS i, if(id % 2 = 0, NULL, string(id)) AS s) AS part",
    "if(id % 5 = 0, NULL, array(id, NULL)) AS l",
)

pytestmark = pytest.mark.skipif(CONNECT, reason="rows of remote sessions are our tasks'")


def expected(number: int) -> dict[str, Any]:
    """The row of a number, in Python."""
    from datetime import UTC, datetime, timedelta
    from decimal import Decimal

    return {
        "id": number,
        "k": number % 7,
        "t": None if number % 3 == 0 else "é" * 40 + f"{number:05}",
        "d": None if number % 11 == 0 else -number / 4,
        "at": datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=number * 1000001 - 1000),
        "n": Decimal(number - 2000).quantize(Decimal("0.01")),
        "part": {"i": number, "s": None if number % 2 == 0 else str(number)},
        "l": None if number % 5 == 0 else [number, None],
    }


def frame(spark: SparkSession) -> DataFrame:
    return spark.range(0, ROWS, 1, 2).selectExpr(*COLUMNS)


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Two files of several row groups, of several pages each."""
    properties: dict[str, str] = getattr(request, "param", {})
    small = {"parquet__block__size": "65536", "parquet__page__row__count__limit": "100"}
    with having(spark, **small):
        deltalog.spark.write(frame(spark), tmp_path / "t", properties=properties)
    assert writers(tmp_path / "t") == BY_SPARK
    for path in paths(tmp_path / "t"):
        assert pq.read_metadata(path).num_row_groups > 1
        assert all(field.nullable for field in pq.read_schema(path))
    return tmp_path / "t"


def found(table: Path) -> list[dict[str, Any]]:
    return DeltaTable(table).to_pyarrow_table().sort_by("id").to_pylist()


def with_vectors(test: Callable[..., None]) -> Any:
    both: list[dict[str, str]] = [{}, {"delta.enableDeletionVectors": "true"}]
    return pytest.mark.parametrize("table", both, ids=["", "vectors"], indirect=True)(test)


@with_vectors
def test_rows_are_deleted(table: Path) -> None:
    DeltaTable(table).delete("k = 3 AND n < 500")
    kept = [n for n in range(ROWS) if not (n % 7 == 3 and n - 2000 < 500)]
    assert found(table) == [expected(n) for n in kept]


@with_vectors
def test_rows_are_updated(table: Path) -> None:
    new = {"t": "'new'", "part": "named_struct('i', -1L, 's', NULL)"}
    DeltaTable(table).update(new, predicate="id >= 1990 AND id < 2010")
    changed = {"t": "new", "part": {"i": -1, "s": None}}
    assert found(table) == [
        expected(n) | (changed if 1990 <= n < 2010 else {}) for n in range(ROWS)
    ]


@with_vectors
def test_rows_are_merged(table: Path) -> None:
    source = pa.table({"id": [5, 3999, 5000], "k": pa.array([50, 51, 52], pa.int32())})
    merge = DeltaTable(table).merge(source, "t.id = s.id", source_alias="s", target_alias="t")
    (
        merge.when_matched_update({"k": "s.k"})
        .when_not_matched_insert({"id": "s.id", "k": "s.k"})
        .execute()
    )
    old = [expected(n) | {5: {"k": 50}, 3999: {"k": 51}}.get(n, {}) for n in range(ROWS)]
    new = dict.fromkeys(expected(0)) | {"id": 5000, "k": 52}
    assert found(table) == [*old, new]


def test_files_are_compacted(table: Path) -> None:
    DeltaTable(table).optimize.compact()
    assert len(paths(table)) == 1
    assert found(table) == [expected(n) for n in range(ROWS)]


def test_row_groups_may_be_copied(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copying(monkeypatch)
    before = {path: path.read_bytes() for path in paths(table)}
    DeltaTable(table).delete("id IN (0, 3999)")
    assert found(table) == [expected(n) for n in range(1, ROWS - 1)]
    new = [path.read_bytes() for path in paths(table)]
    assert any(num_copied(old, one) for old in before.values() for one in new)
    DeltaTable(table).optimize.compact()
    assert found(table) == [expected(n) for n in range(1, ROWS - 1)]


@pytest.mark.parametrize(
    ("where", "is_meant"),
    [
        ("id = 1234", lambda n: n == 1234),
        ("id >= 1995 AND id <= 2004", lambda n: 1995 <= n <= 2004),
        (f"t = '{'é' * 40}03998'", lambda n: n == 3998),
        (f"t > '{'é' * 40}03990'", lambda n: n > 3990 and n % 3 > 0),
        ("d = -0.25", lambda n: n == 1),
        ("d < -990", lambda n: n > 3960 and n % 11 > 0),
        ("n = -1999.00", lambda n: n == 1),
        ("n > 1996", lambda n: n > 3996),
        ("at < TIMESTAMP'1970-01-01 00:00:00Z'", lambda n: n == 0),
        ("part.i = 77", lambda n: n == 77),
        ("part.s = '77'", lambda n: n == 77),
        ("t IS NULL AND id < 7", lambda n: n in {0, 3, 6}),
    ],
)
def test_rows_are_looked_up(table: Path, where: str, is_meant: Callable[[int], bool]) -> None:
    some = DeltaTable(table).scan(predicate=where).to_table().sort_by("id").to_pylist()
    assert some == [expected(n) for n in filter(is_meant, range(ROWS))]


def test_other_readers_see_the_same_rows(spark: SparkSession, table: Path) -> None:
    import duckdb
    import polars as pl

    deltalake = pytest.importorskip("deltalake")
    rows = [expected(n) for n in range(ROWS)]
    files = [str(path) for path in paths(table)]
    with_arrow = pa.concat_tables([pq.read_table(file) for file in files])
    assert with_arrow.sort_by("id").to_pylist() == rows
    duck = duckdb.connect()
    duck.execute("SET TimeZone = 'UTC'")
    names = ", ".join(f"'{file}'" for file in files)
    by_duck = duck.sql(f"SELECT * FROM read_parquet([{names}]) ORDER BY id")  # noqa: S608
    assert by_duck.to_arrow_table().cast(with_arrow.schema).to_pylist() == rows
    one = duck.execute(
        f"SELECT id, d FROM read_parquet([{names}]) WHERE t = '{'é' * 40}03998'"  # noqa: S608
    )
    assert one.fetchall() == [(3998, -999.5)]
    by_polars = pl.read_parquet(files).sort("id")
    assert by_polars.drop("at").to_dicts() == [
        {name: value for name, value in row.items() if name != "at"} for row in rows
    ]
    rust = deltalake.DeltaTable(str(table))
    assert rust.to_pyarrow_table().sort_by("id").to_pylist() == rows
    far = rust.to_pyarrow_table(filters=[("id", ">", 3990)])
    assert sorted(far.column("id").to_pylist()) == list(range(3991, ROWS))
    assert spark.read.parquet(str(table)).where("k = 1").count() == 572
    native = deltalog.spark.read(spark, table).where("id > 3990").orderBy("id").toArrow()
    assert native.cast(with_arrow.schema).to_pylist() == rows[3991:]
