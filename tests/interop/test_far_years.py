"""Dates and timestamps of years that Python does not have, which Arrow and Delta do."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake
from deltalog.errors import ConstraintViolationError, InvalidInputError

DAY_US = 86_400_000_000
# +12022-11-05, as Spark has a mistyped year; the Ides of March of 44 BC; and a usual day.
FAR, EARLY, USUAL = 3_671_726, -735_525, 19_782
KINDS: dict[str, tuple[pa.DataType, int]] = {
    "DATE": (pa.date32(), 1),
    "TIMESTAMP": (pa.timestamp("us", "UTC"), DAY_US),
    "TIMESTAMP_NTZ": (pa.timestamp("us"), DAY_US),
}
by_kind = pytest.mark.parametrize("kind", KINDS)
by_layout = pytest.mark.parametrize("is_partitioned", [True, False])


def days(kind: str, *values: int | None) -> pa.Array[Any]:
    """Days since 1970 as values of a type."""
    arrow_type, unit = KINDS[kind]
    wide = pa.int32() if unit == 1 else pa.int64()
    counts = [None if value is None else value * unit for value in values]
    found: pa.Array[Any] = pa.array(counts, wide).cast(arrow_type)
    return found


def table_of(path: Path, kind: str, *, is_partitioned: bool, **properties: str) -> str:
    """A table with a row of each of the three days, and one without."""
    uri = str(path / kind)
    rows = pa.table({"k": days(kind, FAR, EARLY, USUAL, None), "v": [1, 2, 3, 4]})
    partition_by = ["k"] if is_partitioned else None
    write_deltalake(uri, rows, partition_by=partition_by, configuration=properties)
    return uri


def values(uri: str, where: str | None = None) -> list[int]:
    found: list[Any] = DeltaTable(uri).scan(predicate=where).to_table()["v"].to_pylist()
    return sorted(found)


@by_kind
@by_layout
def test_rows_are_found_counted_and_pruned(tmp_path: Path, kind: str, is_partitioned: bool) -> None:
    uri = table_of(tmp_path, kind, is_partitioned=is_partitioned)
    far, early = f"{kind}'+12022-11-05'", f"{kind}'-0044-03-15'"
    for _ in range(2):
        assert values(uri) == [1, 2, 3, 4]
        assert values(uri, f"k > {kind}'9999-12-31'") == [1]
        assert values(uri, f"k = {far}") == [1]
        assert values(uri, "k = '+12022-11-05'") == [1]
        assert values(uri, f"k < {kind}'0001-01-01'") == [2]
        assert values(uri, f"k IN ({far}, {early})") == [1, 2]
        assert values(uri, f"k <> {far}") == [2, 3]
        assert values(uri, f"k BETWEEN {early} AND {far}") == [1, 2, 3]
        dataset = DeltaTable(uri).to_pyarrow_dataset()
        for condition, expected in (
            (ds.field("k") == days(kind, FAR)[0], [1]),
            (ds.field("k") < days(kind, USUAL)[0], [2]),
            (ds.field("k").isin(days(kind, FAR, EARLY)), [1, 2]),
        ):
            found: list[Any] = dataset.to_table(filter=condition)["v"].to_pylist()
            assert sorted(found) == expected
        if is_partitioned:
            plan = DeltaTable(uri).scan(predicate=f"k > {kind}'9999-12-31'").explain()
            assert "files: 4 in the table, 1 to read" in str(plan)
            assert len({entry["k"] for entry in DeltaTable(uri).partitions()}) == 4
        DeltaTable(uri).create_checkpoint()


@by_kind
@by_layout
def test_such_rows_are_changed(tmp_path: Path, kind: str, is_partitioned: bool) -> None:
    uri = table_of(
        tmp_path, kind, is_partitioned=is_partitioned, **{"delta.enableChangeDataFeed": "true"}
    )
    far = f"{kind}'+12022-11-05'"
    table = DeltaTable(uri)
    assert table.update(predicate=f"k = {far}", updates={"v": "v + 10"})["num_updated_rows"] == 1
    table.update(predicate="v = 3", updates={"k": f"{kind}'+12023-01-01'"})
    source = pa.table({"k": days(kind, FAR, EARLY - 1), "v": [100, 200]})
    merge = table.merge(source, "t.k = s.k", source_alias="s", target_alias="t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert values(uri) == [2, 3, 4, 100, 200]
    assert pa.table(table.load_cdf(0)).num_rows == 4 + 2 + 2 + 2 + 1
    write_deltalake(uri, source.slice(0, 1), mode="overwrite", predicate=f"k = {far}")
    write_deltalake(uri, source.slice(1, 1), mode="append")
    table = DeltaTable(uri)
    table.optimize.compact()
    table.optimize.z_order(["v" if is_partitioned else "k"])
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert table.delete(f"k > {kind}'9999-12-31'")["num_deleted_rows"] == 2
    assert values(uri) == [2, 4, 200, 200]


@by_kind
@by_layout
def test_such_rows_are_shown(tmp_path: Path, kind: str, is_partitioned: bool) -> None:
    uri = table_of(tmp_path, kind, is_partitioned=is_partitioned)
    table = DeltaTable(uri)
    rows = deltalog.sql("SELECT * FROM t ORDER BY v", t=table)
    assert "+12022-11-05" in str(rows)
    assert "-0044-03-15" in rows._repr_html_()
    texts = deltalog.sql("SELECT CAST(k AS STRING) AS s FROM t ORDER BY v", t=table).to_pylist()
    clock = "" if kind == "DATE" else " 00:00:00"
    expected = ["+12022-11-05", "-0044-03-15", "2024-02-29"]
    assert [row["s"] for row in texts] == [*(day + clock for day in expected), None]
    shown: Any
    for shown in (table.describe(), table.doctor(), table.history(), table.detail()):
        assert str(shown)
        assert shown._repr_html_()
    assert "+12022" in table._repr_html_()
    if is_partitioned:
        assert "min -0044-03-15" in str(table.describe())
        assert "max +12022-11-05" in str(table.describe())
        assert "k=+12022-11-05" in str(deltalog.sql("SHOW PARTITIONS t", t=table))


@by_kind
def test_python_objects_are_refused_by_name(tmp_path: Path, kind: str) -> None:
    table = DeltaTable(table_of(tmp_path, kind, is_partitioned=True))
    with pytest.raises(InvalidInputError, match="'k'"):
        deltalog.sql("SELECT v, k FROM t", t=table).to_pylist()
    assert sorted(deltalog.sql("SELECT v FROM t", t=table).to_pandas()["v"]) == [1, 2, 3, 4]
    if kind == "DATE":  # pandas has such timestamps
        for ask in (deltalog.sql("SELECT v, k FROM t", t=table).to_pandas, table.to_pandas):
            with pytest.raises(InvalidInputError, match="the column 'k'"):
                ask()
        frame = table.to_pandas(dtype_backend="pyarrow")
        assert frame["k"].isna().sum() == 1


def test_expressions_of_a_table(tmp_path: Path) -> None:
    uri = str(tmp_path / "g")
    database = deltalog.connect({})
    database.sql(
        "CREATE TABLE g (t TIMESTAMP, d DATE GENERATED ALWAYS AS (CAST(t AS DATE)), "
        f"y INT GENERATED ALWAYS AS (year(t))) USING DELTA PARTITIONED BY (d) LOCATION '{uri}'"
    )
    database.sql("INSERT INTO g (t) VALUES (TIMESTAMP'+12022-11-05 10:00:00Z')")
    where = "WHERE t > TIMESTAMP'+12022-11-05 09:00:00Z'"
    found = database.sql(f"SELECT y, CAST(d AS STRING) AS d FROM g {where}").to_pylist()  # noqa: S608
    assert found == [{"y": 12022, "d": "+12022-11-05"}]
    database.sql("ALTER TABLE g ADD CONSTRAINT c CHECK (d < DATE'+13000-01-01')")
    with pytest.raises(ConstraintViolationError, match=r"\+13022-11-05"):
        database.sql("INSERT INTO g (t) VALUES (TIMESTAMP'+13022-11-05 10:00:00Z')")
    with pytest.raises(InvalidInputError, match=r"'\+12022-11-05' is not a timestamp"):
        database.sql("SELECT * FROM g TIMESTAMP AS OF DATE'+12022-11-05'")


def test_values_are_checkpointed_as_values_alone(tmp_path: Path) -> None:
    properties = {
        "delta.checkpoint.writeStatsAsStruct": "true",
        "delta.checkpoint.writeStatsAsJson": "false",
    }
    for kind in KINDS:
        uri = table_of(tmp_path, kind, is_partitioned=True, **properties)
        DeltaTable(uri).create_checkpoint()
        assert values(uri, f"k > {kind}'9999-12-31'") == [1]


def test_constants_of_all_kinds() -> None:
    # What Spark 4.1 answers.
    found = deltalog.sql(
        "SELECT hash(DATE'+12022-11-05') AS a, hash(TIMESTAMP'+12022-11-05 00:00:00Z') AS b, "
        "xxhash64(DATE'-0044-03-15') AS c, xxhash64(TIMESTAMP_NTZ'-0044-03-15 00:00:00') AS d, "
        "date_format(DATE'-0044-03-15', 'yyyy-MM-dd') AS e, from_unixtime(317237216523) AS f, "
        "date_format(DATE'+12022-11-05', 'yyyy y yyyyy yy') AS g, "
        "date_format(DATE'-0044-03-15', 'yyyy G y yy') AS h, CAST(:day AS STRING) AS i, "
        "CAST(array(DATE'+12022-11-05') AS STRING) AS j",
        parameters={"day": pa.scalar(FAR, pa.date32())},
    )
    assert found.to_pylist() == [
        {
            "a": -577477411,
            "b": 206207711,
            "c": 2663317183079603064,
            "d": 6936360347969852665,
            "e": "-0044-03-15",
            "f": "+12022-11-06 01:02:03",
            "g": "+12022 12022 12022 22",
            "h": "0045 BC 45 44",
            "i": "+12022-11-05",
            "j": "[+12022-11-05]",
        }
    ]
    assert deltalog.sql("SELECT DATE'9999-12-31' AS d").to_pylist() == [
        {"d": dt.date(9999, 12, 31)}
    ]
