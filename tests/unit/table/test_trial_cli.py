"""Mistakes that a reader of the guide made: conversions, merges of ragged rows, locations."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltalog
from deltalog import DeltaTable, Field, Schema, convert_to_deltalake, write_deltalake
from deltalog.catalogs import FileCatalog, NamedTable
from deltalog.errors import (
    CatalogError,
    CheckpointUnreadableError,
    DataFileUnreadableError,
    InvalidInputError,
    TableNotFoundError,
    VersionNotFoundError,
)
from deltalog.sharing.client.answers import VersionHead

ROWS: dict[str, list[Any]] = {"id": [1, 2], "name": ["a", "b"]}


def refused(kind: type[Exception], call: Callable[[], object]) -> str:
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


# --- conversions of directories with tables


def _delta(place: Path) -> None:
    write_deltalake(place, ROWS)
    DeltaTable(place).delete("id = 1")


def _iceberg(place: Path) -> None:
    (place / "metadata").mkdir(parents=True)
    (place / "metadata" / "v1.metadata.json").write_text("{}")
    pq.write_table(pa.table(ROWS), place / "x.parquet")


def _hudi(place: Path) -> None:
    (place / ".hoodie").mkdir(parents=True)
    (place / ".hoodie" / "hoodie.properties").write_text("")
    pq.write_table(pa.table(ROWS), place / "x.parquet")


TABLES = [(_delta, "Delta"), (_iceberg, "Iceberg"), (_hudi, "Hudi")]
CONVERSIONS: list[Callable[[Path], object]] = [
    convert_to_deltalake,
    lambda place: convert_to_deltalake(place, source_format="parquet"),
    lambda place: deltalog.sql(f"CONVERT TO DELTA parquet.`{place}`"),
    lambda place: deltalog.sql(f"CREATE TABLE delta.`{place}-copy` CLONE parquet.`{place}`"),
]


@pytest.mark.parametrize("convert", CONVERSIONS)
@pytest.mark.parametrize(("make", "kind"), TABLES)
def test_a_directory_with_tables_is_not_converted(
    tmp_path: Path, make: Callable[[Path], None], kind: str, convert: Callable[[Path], object]
) -> None:
    place = tmp_path / "all"
    make(place / "orders")
    make(place / "more" / "p=1" / "items")
    pq.write_table(pa.table(ROWS), place / "plain.parquet")
    text = refused(InvalidInputError, lambda: convert(place))
    assert f"found 2 tables in it: more/p=1/items ({kind}), orders ({kind})" in text
    assert not (place / "_delta_log").exists()


def test_many_tables_are_counted(tmp_path: Path) -> None:
    for number in range(5):
        _delta(tmp_path / f"t{number}")
    text = refused(InvalidInputError, lambda: convert_to_deltalake(tmp_path))
    assert "found 5 tables in it: t0 (Delta), t1 (Delta), t2 (Delta) and 2 more" in text


def test_a_hudi_table_is_not_converted(tmp_path: Path) -> None:
    _hudi(tmp_path / "t")
    text = refused(InvalidInputError, lambda: convert_to_deltalake(tmp_path / "t"))
    assert "found a Hudi table" in text


def test_hidden_tables_do_not_matter(tmp_path: Path) -> None:
    _delta(tmp_path / "_old")
    _delta(tmp_path / ".cache" / "t")
    pq.write_table(pa.table(ROWS), tmp_path / "plain.parquet")
    convert_to_deltalake(tmp_path)
    assert DeltaTable(tmp_path).count() == 2


# --- merges of rows with different keys


@dataclass
class Row:
    id: int
    name: str


RAGGED: list[dict[str, Any]] = [{"id": 1, "name": "A"}, {"id": 2, "price": 7.0}]
LACKING = "cannot merge 2 rows with different keys: item 1 lacks 'name', item 0 lacks 'price'"


@pytest.fixture
def priced(tmp_path: Path) -> DeltaTable:
    rows = [{"id": 1, "name": "a", "price": 1.0}, {"id": 2, "name": "b", "price": 2.0}]
    write_deltalake(tmp_path / "t", rows)
    return DeltaTable(tmp_path / "t")


def _upsert(table: DeltaTable, rows: Any) -> None:
    table.upsert(rows, "id")


def _merge(table: DeltaTable, rows: Any) -> None:
    table.merge(rows, "source.id = target.id").when_matched_update_all().execute()


def _upsert_in_a_transaction(table: DeltaTable, rows: Any) -> None:
    with table.transaction() as transaction:
        transaction.upsert(rows, "id")


def _merge_in_a_transaction(table: DeltaTable, rows: Any) -> None:
    with table.transaction() as transaction:
        transaction.merge(rows, "source.id = target.id").when_matched_update_all().execute()


def _upsert_by_an_appender(table: DeltaTable, rows: Any) -> None:
    with table.appender(upsert="id") as appender:
        appender.append(rows).result()


MERGES = [
    _upsert,
    _merge,
    _upsert_in_a_transaction,
    _merge_in_a_transaction,
    _upsert_by_an_appender,
]


@pytest.mark.parametrize("given", [list, tuple, iter, lambda rows: dict(enumerate(rows)).values()])
@pytest.mark.parametrize("merge", MERGES)
def test_ragged_rows_are_not_merged(
    priced: DeltaTable,
    merge: Callable[[DeltaTable, Any], None],
    given: Callable[[list[dict[str, Any]]], Any],
) -> None:
    text = refused(InvalidInputError, lambda: merge(priced, given(RAGGED)))
    assert LACKING in text
    assert "Add the key with None" in text
    assert DeltaTable(priced.table_uri).version() == 0


@pytest.mark.parametrize("merge", MERGES)
def test_rows_with_the_same_keys_are_merged(
    priced: DeltaTable, merge: Callable[[DeltaTable, Any], None]
) -> None:
    merge(priced, ({"id": one, "name": None} for one in (1, 2)))
    merge(priced, [Row(2, "B")])
    found = DeltaTable(priced.table_uri).to_pyarrow_table().sort_by("id").to_pylist()
    assert [tuple(row.values()) for row in found] == [(1, None, 1.0), (2, "B", 2.0)]


def test_fields_of_structs_must_be_the_same_too(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", [{"id": 1, "s": {"a": 1, "b": 2}}])
    rows: list[dict[str, object]] = [
        {"id": 1, "s": {"a": 5}},
        {"id": 2, "s": {"b": 6}},
        {"id": 3, "s": None},
    ]
    text = refused(InvalidInputError, lambda: DeltaTable(tmp_path / "t").upsert(rows, "id"))
    assert "item 1 lacks 's.a', item 0 lacks 's.b'" in text


def test_keys_of_maps_may_differ(tmp_path: Path) -> None:
    kind = pa.schema({"id": pa.int64(), "m": pa.map_(pa.string(), pa.int64())})
    write_deltalake(tmp_path / "t", kind.empty_table())
    table = DeltaTable(tmp_path / "t")
    rows: list[dict[str, object]] = [{"id": 1, "m": {"a": 1}}, {"id": 2, "m": {"b": 2}}]
    table.upsert(rows, "id")
    assert table.count() == 2


def test_ragged_rows_are_appended_with_nulls(priced: DeltaTable) -> None:
    write_deltalake(priced, RAGGED, mode="append")
    with priced.appender() as appender:
        appender.append(RAGGED)
    assert DeltaTable(priced.table_uri).count("name is null or price is null") == 4


# --- catalogs of files


def test_a_catalog_of_no_directory_lists_nothing(tmp_path: Path) -> None:
    catalog = FileCatalog(tmp_path / "no")
    for call in (catalog.list_schemas, lambda: catalog.list_tables(("s",))):
        assert "there is no such directory" in refused(InvalidInputError, call)
    (tmp_path / "no").mkdir()
    assert catalog.list_schemas() == []
    assert "there is no schema s" in refused(CatalogError, lambda: catalog.list_tables(("s",)))


def test_names_that_are_strings_are_shown_as_tuples(tmp_path: Path) -> None:
    catalog: Any = FileCatalog(tmp_path)
    text = refused(InvalidInputError, lambda: catalog.list_tables("s"))
    assert text.endswith("schema='s': expected a tuple of names, here ('s',)")
    text = refused(InvalidInputError, lambda: catalog.find("s.t"))
    assert text.endswith("expected a tuple of names, here ('s', 't')")
    name: Any = "s.t"
    text = refused(InvalidInputError, lambda: NamedTable(catalog=catalog, name=name))
    assert text.endswith("expected a tuple of names, here ('s', 't')")


# --- versions in locations


def _two_versions(place: Path) -> datetime:
    """Make a table with two versions of two rows each, and return the time of the first one."""
    write_deltalake(place, ROWS)
    time.sleep(0.01)
    write_deltalake(place, ROWS, mode="append")
    return datetime.fromtimestamp(DeltaTable(place).history()[-1]["timestamp"] / 1000, UTC)


def test_a_location_may_end_in_a_date_or_time(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    at = _two_versions(tmp_path / "t")
    for text in (at.isoformat(), at.replace(tzinfo=None).isoformat(" ")):
        assert DeltaTable(f"{place}@{text}").version() == 0
    later = at.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
    assert DeltaTable(f"{place}@{later}").count() == 2
    day = (at - timedelta(days=2)).date().isoformat()
    with pytest.raises(VersionNotFoundError):
        DeltaTable(f"{place}@{day}")
    text = refused(InvalidInputError, lambda: DeltaTable(f"{place}@2024-13-01"))
    assert "expected a moment as 2024-01-31 or 2024-01-31T12:00:00Z" in text


def test_sql_reads_a_version_in_a_location(tmp_path: Path) -> None:
    at = _two_versions(tmp_path / "t")
    for version in ("v0", at.isoformat()):
        table = f"delta.`{tmp_path}/t@{version}`"
        found = deltalog.sql(f"SELECT count(*) AS n FROM {table}")  # noqa: S608  # a test
        assert found.to_pylist() == [{"n": 2}]
        with pytest.raises(InvalidInputError, match="the table was opened at this version"):
            deltalog.sql(f"DELETE FROM {table}")  # noqa: S608  # a test
    text = refused(InvalidInputError, lambda: deltalog.sql("SELECT * FROM t@2024-01-31"))
    assert "for a date or time, write table TIMESTAMP AS OF" in text


def test_a_directory_of_such_a_name_is_opened(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t@2024-01-31", ROWS)
    assert DeltaTable(f"{tmp_path}/t@2024-01-31").version() == 0


# --- locations where no table is


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("s3:///x", "s3://bucket/x"),
        ("gs:///x", "gs://bucket/x"),
        ("s3://bucket.s3.amazonaws.com/x/y", "s3://bucket/x/y"),
        ("s3://my.bucket.s3.eu-central-1.amazonaws.com/x", "s3://my.bucket/x"),
        ("s3://s3.eu-central-1.amazonaws.com/bucket/x", "s3://bucket/x"),
        ("gs://storage.googleapis.com/bucket/x", "gs://bucket/x"),
        ("arn:aws:s3:::bucket/x", "s3://bucket/x"),
        ("arn:aws-cn:s3:::bucket/x", "s3://bucket/x"),
    ],
)
def test_other_forms_of_urls_are_refused(location: str, expected: str) -> None:
    for call in (lambda: DeltaTable(location), lambda: write_deltalake(location, ROWS)):
        assert refused(InvalidInputError, call).endswith(f"expected {expected}")


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("$HOME/t", "variables such as $HOME are not replaced"),
        ("${DATA}/t", "variables such as ${DATA} are not replaced"),
        ("data/*", "a location has no wildcards"),
        ("data/t[12]", "a location has no wildcards"),
        ("t ", "begins or ends with a blank"),
    ],
)
def test_odd_locations_are_quoted_and_explained(tmp_path: Path, name: str, advice: str) -> None:
    location = f"{tmp_path}/{name}"
    text = refused(TableNotFoundError, lambda: DeltaTable(location))
    assert text.startswith(f"cannot open {location!r}: expected a Delta table, found nothing there")
    assert advice in text


@pytest.mark.parametrize("below", ["", "/t"])
def test_a_table_is_not_created_where_a_file_is(
    tmp_path: Path, below: str, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("x")
    place = f"{file}{below}"
    for call in (
        lambda: write_deltalake(place, ROWS),
        lambda: DeltaTable.create(place, Schema([Field("id", "long")])),
    ):
        assert f"{file} is a file, and a table is a directory" in refused(InvalidInputError, call)
    assert not caplog.records
    assert file.read_text() == "x"


def test_an_append_after_the_table_was_deleted(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", ROWS)
    table = DeltaTable(tmp_path / "t")
    shutil.rmtree(tmp_path / "t")
    text = refused(TableNotFoundError, lambda: write_deltalake(table, ROWS, mode="append"))
    assert "the table was deleted after it was opened; found nothing there" in text
    assert not (tmp_path / "t").exists()


# --- damaged files


def test_what_to_do_with_a_damaged_data_file(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", ROWS)
    (file,) = (tmp_path / "t").glob("*.parquet")
    file.write_bytes(b"PAR1 is not enough of a file PAR1")
    table = DeltaTable(tmp_path / "t")
    text = refused(DataFileUnreadableError, table.to_pyarrow_table)
    assert file.name in text
    assert "restore it from a backup, or delete it and remove its rows" in text
    file.unlink()
    table.repair()  # as the error advises
    assert table.count() == 0


def test_what_to_do_with_a_damaged_checkpoint(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", ROWS)
    DeltaTable(tmp_path / "t").create_checkpoint()
    log = tmp_path / "t" / "_delta_log"
    (log / f"{0:020}.json").unlink()
    (file,) = log.glob("*.checkpoint.parquet")
    file.write_bytes(b"PAR1 is not enough of a file PAR1")
    text = refused(CheckpointUnreadableError, lambda: DeltaTable(tmp_path / "t"))
    assert text.endswith("restore the lost files of _delta_log from a backup")
    assert "repair()" not in text


def test_a_full_vacuum_keeps_tables_below(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "outer", ROWS)
    write_deltalake(tmp_path / "outer" / "inner", ROWS, partition_by=["name"])
    write_deltalake(tmp_path / "outer" / "deep" / "p=1" / "er", ROWS)
    (tmp_path / "outer" / "left").mkdir()
    (tmp_path / "outer" / "left" / "x.parquet").write_bytes(b"")
    now: Any = {"retention_hours": 0, "enforce_retention_duration": False}
    gone = DeltaTable(tmp_path / "outer").vacuum(full=True, dry_run=False, **now)
    assert gone == ["left/x.parquet"]
    for name in ("outer", "outer/inner", "outer/deep/p=1/er"):
        assert DeltaTable(tmp_path / name).to_pyarrow_table().num_rows == 2


def test_the_head_of_a_shared_table_is_no_method() -> None:
    nothing: Any = None
    head = VersionHead(version=0, protocol=nothing, metadata=nothing)
    text = refused(InvalidInputError, lambda: head(3))
    assert text.endswith("scan(limit=3) reads its first rows")
