"""`DeltaTable`: opening, time travel, going on, and being passed around."""

from __future__ import annotations

import copy
import os
import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable, QueryBuilder, col, convert_to_deltalake, sql, write_deltalake
from deltalog._util.json import loads
from deltalog.errors import (
    DataFileMissingError,
    InvalidInputError,
    TableNotFoundError,
    VersionNotFoundError,
)
from deltalog.table.inspect.follow import Follower
from deltalog.testing import CountingStore
from tests.support import logs
from tests.support.facade import make, rows, store_of
from tests.support.logs import DictStore, domain, metadata, txn
from tests.support.raw_tables import DataTable, RawTable

HOUR_MS = 3_600_000


FIRST = datetime(2024, 1, 1, tzinfo=UTC)


FIRST_MS = int(FIRST.timestamp() * 1000)


def hourly(versions: int = 4, store: DictStore | None = None) -> DictStore:
    """A table with a commit every hour from 2024-01-01T00:00Z; version n has n files."""
    store = DictStore() if store is None else store
    logs.commit(store, 0, logs.PROTOCOL, metadata(), time_ms=FIRST_MS)
    for version in range(1, versions):
        action = logs.add(f"f{version}", stats='{"numRecords":2}')
        logs.commit(store, version, action, time_ms=FIRST_MS + version * HOUR_MS)
    return store


@pytest.fixture
def data() -> DataTable:
    """Columns `id` and `p` (its partition); a file of two rows each for a and b."""
    table = DataTable([("id", "long"), ("p", "string")], partition_by=["p"])
    table.commit(
        table.add({"id": [1, 2]}, partitionValues={"p": "a"}),
        table.add({"id": [3, 4]}, partitionValues={"p": "b"}),
    )
    return table


def on_disk(path: Path) -> RawTable:
    """A table with two versions, ids 1 and 2."""
    table = RawTable(path)
    table.create()
    table.commit(1, [table.add([1, 2], 1)])
    return table


@pytest.mark.parametrize("spelling", [str, Path, Path.as_uri, lambda path: f"{path}/"])
def test_a_table_is_a_path_or_a_url(tmp_path: Path, spelling: Any) -> None:
    on_disk(tmp_path / "t")
    table = DeltaTable(spelling(tmp_path / "t"))
    assert (table.version(), table.count()) == (1, 2)
    assert table.table_uri == str(tmp_path / "t")


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (None, 3),
        (0, 0),
        (2, 2),
        ("2024-01-01T01:30:00Z", 1),
        (FIRST + timedelta(hours=2), 2),
    ],
)
def test_a_table_opens_at_a_version_or_a_moment(version: Any, expected: int) -> None:
    assert DeltaTable(hourly(), version).version() == expected


def test_a_location_may_name_a_version_or_a_moment(tmp_path: Path) -> None:
    table = on_disk(tmp_path / "t")
    for version in (0, 1):
        time = FIRST.timestamp() + 3600 * version
        os.utime(table.commit_path(version), (time, time))
    assert DeltaTable(f"{tmp_path}/t@v0").version() == 0
    assert DeltaTable(f"{tmp_path}/t@20240101003000000").version() == 0
    assert DeltaTable(f"{tmp_path}/t@20240101010000000").version() == 1


@pytest.mark.parametrize("name", ["a b", "a%20b", "100%", "ü@v7", "a+b&c"])
def test_a_url_of_a_local_directory_is_decoded_once(tmp_path: Path, name: str) -> None:
    place = tmp_path / name
    write_deltalake(place.as_uri(), [{"id": 1}])
    write_deltalake(place.as_uri(), [{"id": 2}], mode="append")
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert DeltaTable(f"{place.as_uri()}@v0").count() == 1
    assert DeltaTable.is_deltatable(place.as_uri())
    opened = DeltaTable(place.as_uri())
    assert (opened.count(), opened.table_uri) == (2, str(place))
    clone = opened.clone((tmp_path / f"clone of {name}").as_uri())
    assert (tmp_path / f"clone of {name}" / "_delta_log").is_dir()
    assert DeltaTable(clone.table_uri).count() == 2
    DeltaTable.create((tmp_path / f"new {name}").as_uri(), opened.schema())
    assert (tmp_path / f"new {name}" / "_delta_log").is_dir()
    old = tmp_path / f"old {name}"
    old.mkdir()
    pq.write_table(pa.table({"id": [1]}), old / "x.parquet")
    convert_to_deltalake(old.as_uri())
    assert DeltaTable(old).count() == 1


def test_a_path_is_taken_literally(tmp_path: Path) -> None:
    write_deltalake(f"{tmp_path}/a%20b", [{"id": 1}])
    write_deltalake(tmp_path / "c%20d", [{"id": 1}])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a%20b", "c%20d"]


def test_a_directory_of_that_very_name_wins(tmp_path: Path) -> None:
    on_disk(tmp_path / "t@v0")
    assert DeltaTable(f"{tmp_path}/t@v0").version() == 1
    assert DeltaTable(tmp_path / "t@v0").version() == 1


def test_a_version_is_named_once(tmp_path: Path) -> None:
    on_disk(tmp_path / "t")
    with pytest.raises(InvalidInputError, match=r"at 1: its location already names a version"):
        DeltaTable(f"{tmp_path}/t@v0", 1)


def test_opening_reads_no_file_column_twice() -> None:
    store = CountingStore(hourly(100))
    DeltaTable(store)
    assert store.counts["list_from"] == 1
    assert store.counts.get("open", 0) == 0


def test_what_deltalake_users_pass_does_no_harm() -> None:
    with pytest.deprecated_call(match="is ignored") as told:
        assert DeltaTable(hourly(), 1, None, True, 4, True).version() == 1
    assert len(told) == 3


def test_a_table_that_cannot_be_read_is_a_table(tmp_path: Path) -> None:
    on_disk(tmp_path / "t").commit_path(1).write_text("{", "utf-8")
    assert DeltaTable.is_deltatable(tmp_path / "t")
    assert DeltaTable.is_deltatable(f"{tmp_path}/t@v0")


@pytest.mark.parametrize(
    "path",
    [
        "README.md",
        "_delta_log/_last_checkpoint",
        f"_delta_log/{0:020d}.crc",
        f"_delta_log/{0:020d}.json.tmp",
        f"_delta_log/sub/{0:020d}.json",
        f"deeper/_delta_log/{0:020d}.json",
    ],
)
def test_other_directories_are_no_tables(tmp_path: Path, path: str) -> None:
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text("{}", "utf-8")
    assert not DeltaTable.is_deltatable(tmp_path)
    with pytest.raises(TableNotFoundError):
        DeltaTable(tmp_path)


@pytest.mark.parametrize(
    ("moment", "version"),
    [
        ("2024-01-01", 0),
        ("2024-01-01T00:59:59.999", 0),
        ("2024-01-01T01:00:00", 1),
        ("2024-01-01 01:00:00", 1),
        ("2024-01-01T01:00:00Z", 1),
        ("2024-01-01T03:30:00+01:00", 2),
        ("2023-12-31T19:00:00-06:00", 1),
        (datetime(2024, 1, 1, 2, 30), 2),  # noqa: DTZ001  # without a zone is UTC
        (datetime(2024, 1, 1, 2, 30, tzinfo=UTC), 2),
        (datetime(2024, 1, 1, 3, 30, tzinfo=timezone(timedelta(hours=1))), 2),
        ("2024-06-01", 3),
        (3, 3),
    ],
)
def test_travel(moment: Any, version: int) -> None:
    table = DeltaTable(hourly())
    table.load_as_version(moment)
    assert (table.version(), table.count()) == (version, 2 * version)


def test_before_the_first_version_names_the_bounds() -> None:
    table = DeltaTable(hourly())
    with pytest.raises(VersionNotFoundError) as error:
        table.load_as_version("2023-12-31T23:59:59.999Z")
    assert "2023-12-31T23:59:59.999Z" in str(error.value)
    assert "version that can be read is 0, committed at 2024-01-01T00:00:00.000Z" in str(
        error.value
    )
    assert table.version() == 3


def test_a_moment_to_come_has_no_version_yet() -> None:
    with pytest.raises(VersionNotFoundError, match=r"in the future; the latest version is 3"):
        DeltaTable(hourly()).load_as_version(datetime.max.replace(tzinfo=UTC))


def test_after_the_last_version_names_it() -> None:
    with pytest.raises(VersionNotFoundError, match=r"version 4 of .*: the latest version is 3"):
        DeltaTable(hourly()).load_as_version(4)


@pytest.mark.parametrize("version", [None, True, 1.5, "yesterday", "1", b"2", "", object()])
def test_what_is_no_version_is_refused(version: Any) -> None:
    table = DeltaTable(hourly())
    with pytest.raises(InvalidInputError, match=r"(?i)expected .*ISO 8601"):
        table.load_as_version(version)
    assert table.version() == 3


def test_a_negative_version_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="versions count from 0"):
        DeltaTable(hourly(), -1)


def test_update_goes_to_the_latest_version() -> None:
    store = hourly(2)
    table = DeltaTable(store)
    before = table.snapshot
    hourly(4, store)
    assert table.version() == 1
    table.update_incremental()
    assert (table.version(), table.count()) == (3, 6)
    assert (before.version, before.num_files) == (1, 1)


def test_update_goes_on_after_travel() -> None:
    table = DeltaTable(hourly(), version=0)
    table.update_incremental()
    assert (table.version(), table.count()) == (3, 6)


def test_update_reads_only_what_is_new() -> None:
    inner = hourly(50)
    store = CountingStore(inner)
    table = DeltaTable(store)
    assert table.count() == 98
    hourly(51, inner)
    store.reset()
    table.update_incremental()
    assert table.count() == 100
    new = [path for path in store.paths("read", "read_many") if path.endswith(".json")]
    assert [Path(path).name for path in new] == [f"{50:020d}.json"]


@pytest.mark.parametrize("versions", [1, 2, 4, 6])
def test_a_table_made_anew_at_the_same_place_is_noticed(versions: int) -> None:
    store = hourly(4)
    table = DeltaTable(store)
    assert table.count() == 6
    store.files.clear()
    other = metadata(id="b0f4d4a2-7f4f-4f0f-9d57-0e4cf2a7f111", name="another")
    logs.commit(store, 0, logs.PROTOCOL, other, time_ms=FIRST_MS + 500 * HOUR_MS)
    for version in range(1, versions):
        time_ms = FIRST_MS + (500 + version) * HOUR_MS
        action = logs.add(f"new{version}", stats='{"numRecords":1}')
        logs.commit(store, version, action, time_ms=time_ms)
    with pytest.raises(TableNotFoundError, match="was replaced by a table with id"):
        table.update_incremental()
    table.update_incremental(same_table=False)
    assert (table.version(), table.metadata().name) == (versions - 1, "another")
    assert table.count() == versions - 1


def test_a_table_that_is_gone_is_an_error() -> None:
    store = hourly()
    table = DeltaTable(store)
    store.files.clear()
    with pytest.raises(TableNotFoundError):
        table.update_incremental()
    assert table.version() == 3


def test_a_pickled_table_shows_the_same_version(tmp_path: Path) -> None:
    raw = on_disk(tmp_path)
    raw.commit(2, [raw.add([3], 1)])
    table = DeltaTable(tmp_path, version=1)
    for other in (pickle.loads(pickle.dumps(table)), copy.copy(table), copy.deepcopy(table)):
        assert (other.version(), other.count(), repr(other)) == (1, 2, repr(table))
        other.update_incremental()
        assert (other.version(), table.version()) == (2, 1)


def test_scans_and_tasks_are_pickled(data: DataTable) -> None:
    scan = DeltaTable(data.store).scan(columns=["id"], predicate="p = 'b'")
    again = pickle.loads(pickle.dumps(scan))
    assert again.to_table().to_pydict() == {"id": [3, 4]}
    (task,) = pickle.loads(pickle.dumps(list(scan.tasks())))
    assert task.path.startswith("part-")


def test_threads_share_a_table() -> None:
    """Each read sees one version as a whole, while other threads move the table on."""
    table = DeltaTable(hourly(40), version=0)

    def move(turn: int) -> None:
        table.load_as_version(turn % 40)

    def look(_: int) -> bool:
        snapshot = table.snapshot
        return snapshot.num_files == snapshot.version and table.scan().count() % 2 == 0

    with ThreadPoolExecutor(8) as pool:
        moves = [pool.submit(move, turn) for turn in range(200)]
        looks = list(pool.map(look, range(200)))
        for moved in moves:
            moved.result()
    assert all(looks)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_reads(tmp_path: Path) -> None:
    raw = on_disk(tmp_path)
    table = DeltaTable(tmp_path)
    assert table.to_pyarrow_table().num_rows == 2  # the pool has threads before the fork
    raw.commit(2, [raw.add([3], 1)])
    child = os.fork()
    if child == 0:
        found = 0
        try:
            table.update_incremental()
            found = table.to_pyarrow_table().num_rows
        finally:
            os._exit(found)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 3
    assert table.version() == 1


def test_small_facts() -> None:
    store = logs.table_of([txn("app", 7), domain("mine", '{"a":1}')], [txn("app", 8)])
    table = DeltaTable(store)
    assert table.transaction_version("app") == 8
    assert table.transaction_version("other") is None
    assert table.domain_metadata() == {"mine": '{"a":1}'}
    assert table.properties.checkpoint_interval == 10
    assert table.schema().names == ("id", "p")
    assert table.metadata().created_time == 1
    assert repr(table) == "DeltaTable('memory://table', version 1, 2 columns)"


def test_rows_in_every_form(data: DataTable) -> None:
    table = DeltaTable(data.store)
    expected = {"id": [3, 4], "p": ["b", "b"]}
    condition = col("p") == "b"
    assert table.to_pyarrow_table(filters=condition).to_pydict() == expected
    assert table.to_pandas(filters=condition).to_dict("list") == expected
    assert table.to_polars(filters=condition).to_dict(as_series=False) == expected
    assert table.to_duckdb().filter("p = 'b'").to_arrow_table().to_pydict() == expected
    assert (
        table.to_pyarrow_dataset(file_pruning_predicate=condition).to_table().to_pydict()
        == expected
    )
    assert pa.table(table.scan(predicate=condition)).to_pydict() == expected
    assert pa.table(table).num_rows == 4
    assert table.to_polars(["id"]).columns == ["id"]


def test_parameters_are_values(data: DataTable) -> None:
    table = DeltaTable(data.store)
    assert table.scan(predicate="id > ? and p = ?", parameters=[3, "b"]).count() == 1
    assert table.scan(predicate="p = :p", parameters={"p": "' or true --"}).count() == 0


def test_partition_filters_and_predicates_go_together(data: DataTable) -> None:
    table = DeltaTable(data.store)
    chosen = [("p", "=", "a")]
    with pytest.deprecated_call(match="partition_filters is deprecated: use `file_pruning"):
        assert len(table.file_uris(chosen, file_pruning_predicate="id > 0")) == 1
    with pytest.deprecated_call(match="partition_filters is deprecated"):
        assert table.partitions(chosen, file_pruning_predicate="p = 'b'") == []


def test_the_zone_of_zoneless_partition_values_counts_everywhere() -> None:
    """2024-01-01 00:00 in Berlin is an hour earlier in UTC, whoever reads it."""
    made = DataTable(
        [("id", "long"), ("at", "timestamp")],
        partition_by=["at"],
        features=["changeDataFeed"],
        configuration={"delta.enableChangeDataFeed": "true"},
    )
    made.commit(made.add({"id": [1]}, partitionValues={"at": "2024-01-01 00:00:00"}))
    table = DeltaTable(made.store, default_timezone="Europe/Berlin")
    expected = FIRST - timedelta(hours=1)
    dataset = table.to_pyarrow_dataset()
    query = QueryBuilder().register("t", table)
    for read in (
        table.to_pyarrow_table(),
        table.scan(predicate="at < '2024-01-01'").to_table(),
        dataset.to_table(),
        pickle.loads(pickle.dumps(dataset)).to_table(),
        dataset.filter(pc.field("at") < FIRST).to_table(),
        dataset.replace_schema(dataset.schema).to_table(),
        query.execute('select "at" from t').read_all(),
        table.load_cdf().read_all(),
    ):
        assert read["at"].to_pylist() == [expected]
    assert table.get_add_actions(True)["partition.at"].to_pylist() == [expected]
    assert len(table.file_uris(file_pruning_predicate=[("at", "<", FIRST)])) == 1


@pytest.mark.parametrize("value", ["", None])
def test_an_empty_text_is_a_null_partition(data: DataTable, value: str | None) -> None:
    data.commit(data.add({"id": [5]}, path="null", partitionValues={"p": value}))
    table = DeltaTable(data.store)
    null = [("p", "=", "")]
    assert table.file_uris(file_pruning_predicate=null) == ["memory://table/null"]
    assert table.partitions(file_pruning_predicate=[null]) == [{"p": value}]
    with pytest.deprecated_call(match="use `filters` instead"):
        assert table.to_pyarrow_table(null, ["id"]).to_pydict() == {"id": [5]}
    assert len(table.file_uris(file_pruning_predicate=[("p", "!=", "")])) == 2


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("files", "file_uris"),
        ("load_version", "load_as_version"),
        ("load_with_datetime", "load_as_version"),
        ("pyarrow_schema", "schema().to_arrow()"),
        ("files_by_partitions", "file_uris(file_pruning_predicate=…)"),
        ("table_config", "properties"),
    ],
)
def test_names_that_are_gone_point_to_what_replaced_them(name: str, instead: str) -> None:
    table = DeltaTable(hourly(1))
    with pytest.raises(AttributeError) as error:
        getattr(table, name)
    assert f"DeltaTable.{name} is gone: use {instead}" in str(error.value)
    assert not hasattr(table, name)


def test_a_misspelt_name_brings_the_right_one_to_mind() -> None:
    with pytest.raises(AttributeError, match="did you mean 'to_pandas'"):
        getattr(DeltaTable(hourly(1)), "to_panda")  # noqa: B009
    with pytest.raises(AttributeError, match=r"no attribute 'colour'; help\(DeltaTable\) lists"):
        getattr(DeltaTable(hourly(1)), "colour")  # noqa: B009


@pytest.mark.protocol("OV-06")
def test_a_copied_table_is_the_same(tmp_path: Path) -> None:
    """A copied directory is the same table."""
    on_disk(tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    rows = [DeltaTable(tmp_path / name).to_pyarrow_table() for name in ("one", "two")]
    assert rows[0] == rows[1]


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    for ids in ([1, 2], [3]):
        write_deltalake(str(tmp_path), pa.table({"id": ids, "v": ids}), mode="append")
    return DeltaTable(str(tmp_path))


def ids(follower: Follower) -> list[Any]:
    return [row for step in follower.available() for row in step.to_table()["id"].to_pylist()]


def test_diff_takes_versions_and_moments(table: DeltaTable) -> None:
    table.delete("id = 1")
    assert table.diff(0).summary() == {"added": 1, "removed": 1, "changed": 0}
    assert table.diff(0, 1).added.column("id").to_pylist() == [3]
    assert table.diff(0, datetime.now(UTC)).summary()["removed"] == 1
    assert table.diff(1, 2, key="id", columns=["id"]).removed.column_names == ["id", "_change_type"]
    with pytest.raises(VersionNotFoundError):
        table.diff(7)


def test_doctor_looks_at_the_table(table: DeltaTable) -> None:
    report = table.doctor(samples=1)
    assert report.is_healthy
    assert report.version == 1


def test_follow_takes_stored_offsets_in_any_form(table: DeltaTable) -> None:
    follower = table.follow(max_files_per_step=1)
    step = next(follower)
    text = step.offset.to_json()
    rest = ids(follower)
    first: list[Any] = step.to_table()["id"].to_pylist()
    assert sorted(first + rest) == [1, 2, 3]
    for start in (step.offset, text, loads(text.encode(), "offset")):
        assert ids(table.follow(start)) == rest


def test_follow_filters_changes_by_what_they_are(tmp_path: Path) -> None:
    feed = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(tmp_path, pa.table({"id": [1, 2]}), configuration=feed)
    table = DeltaTable(tmp_path)
    table.delete("id = 1")
    assert ids(table.follow(0, changes=True, predicate="_change_type = 'delete'")) == [1]
    assert ids(table.follow(0, changes=True, predicate="_commit_version = 0 and id > 1")) == [2]
    with pytest.raises(InvalidInputError, match="no column '_change_type'"):
        table.follow(0, predicate="_change_type = 'delete'")


def test_follow_from_versions_moments_and_now(table: DeltaTable) -> None:
    assert ids(table.follow(1)) == [3]
    assert ids(table.follow("latest")) == []
    assert ids(table.follow("2001-01-01")) == [1, 2, 3]
    assert ids(table.follow(0, predicate="v > 2", columns=["id"])) == [3]
    with pytest.raises(InvalidInputError):
        table.follow(start=True)


def test_a_dry_run_is_of_the_version_that_would_be_changed() -> None:
    shown = DeltaTable.create(DictStore(), pa.schema([("id", pa.int64())]))
    write_deltalake(shown.snapshot.store, pa.table({"id": [1, 2]}), mode="append")
    assert shown.delete("id = 1", dry_run=True)["num_deleted_rows"] == 1
    assert shown.version() == 0
    assert shown.count() == 0


def test_appending_to_a_location_lists_its_log_once() -> None:
    store = CountingStore(store_of(make([{"id": 1}])))
    write_deltalake(store, [{"id": 3}], mode="append")
    assert store.counts == {"read": 1, "list_from": 1, "read_many": 1, "put_if_absent": 3}
    assert rows(DeltaTable(store)) == [1, 3]


def test_no_table_is_made_where_a_part_of_one_is() -> None:
    store = DictStore({f"_delta_log/{7:020}.checkpoint.{1:010}.{2:010}.parquet": b"part"})
    with pytest.raises(TableNotFoundError, match="no complete checkpoint"):
        write_deltalake(store, [{"id": 3}])
    assert len(store.files) == 1


@pytest.mark.parametrize("kind", ["pyarrow", "fsspec"])
def test_data_files_are_read_from_a_file_system_at_whose_root_the_table_is(
    tmp_path: Path, kind: str
) -> None:
    here, there = str(tmp_path / "here"), str(tmp_path / "there")
    write_deltalake(here, pa.table({"p": ["a b", "c"], "n": [1, 2]}), partition_by="p")
    write_deltalake(here, [{"p": "c", "n": 3}], mode="append")
    shutil.copytree(here, there)
    for file in Path(here).rglob("*.parquet"):
        file.unlink()
    filesystem: Any = pafs.SubTreeFileSystem(there, pafs.LocalFileSystem())
    if kind == "fsspec":
        filesystem = fsspec.filesystem("dir", path=there, fs=fsspec.filesystem("file"))
    table = DeltaTable(here)
    assert sorted(table.to_pandas(filesystem=filesystem)["n"]) == [1, 2, 3]
    assert table.to_pyarrow_table(filters=[("n", ">", 1)], filesystem=filesystem).num_rows == 2
    dataset = table.to_pyarrow_dataset(filesystem=filesystem)
    assert dataset.to_table(filter=pc.field("p") == "a b").column("n").to_pylist() == [1]
    with pytest.raises(DataFileMissingError):
        table.to_pandas()


def test_a_dataset_encodes_columns_as_dictionaries() -> None:
    table = make(pa.table({"a": ["x", "y", "x"], "b": ["u", "v", None]}))
    options = ds.ParquetReadOptions(dictionary_columns=["a"], coerce_int96_timestamp_unit="ms")
    dataset = table.to_pyarrow_dataset(parquet_read_options=options)
    encoded = pa.dictionary(pa.int32(), pa.string())
    assert dataset.schema == pa.schema({"a": encoded, "b": pa.string()})
    found = dataset.to_table(filter=pc.field("b") == "v")
    assert (found.schema.field("a").type, found.column("a").to_pylist()) == (encoded, ["y"])
    assert dataset.to_table(filter=pc.field("a") == "x").num_rows == 2


def test_read_options_that_a_table_cannot_honour_are_refused() -> None:
    table = make([{"a": "x"}])
    with pytest.raises(InvalidInputError, match="dictionary_columns and coerce_int96"):
        table.to_pyarrow_dataset(parquet_read_options={"dictionary_columns": ["a"]})
    options: Any = ds.ParquetReadOptions  # the stubs do not know all options
    odd = options(binary_type=pa.binary_view())
    with pytest.raises(InvalidInputError, match="choose other types"):
        table.to_pyarrow_dataset(parquet_read_options=odd)
    unknown = ds.ParquetReadOptions(dictionary_columns=["z"])
    with pytest.raises(InvalidInputError, match="'z'"):
        table.to_pyarrow_dataset(parquet_read_options=unknown)


def test_changes_end_with_the_latest_version_that_is_there() -> None:
    table = make([{"n": 1}], configuration={"delta.enableChangeDataFeed": "true"})
    write_deltalake(table, [{"n": 2}], mode="append")
    assert table.load_cdf(1, 99, columns=["n"]).to_table().to_pylist() == [{"n": 2}]
    with pytest.raises(VersionNotFoundError, match="2 to 99"):
        table.load_cdf(2, 99)


def test_the_head_reads_no_more_files_than_it_needs(data: DataTable) -> None:
    table = DeltaTable(data.store)
    first, other = (task.path for task in table.scan().tasks())
    assert table.head(3, ["id"]).num_rows == 3
    data.store.delete_many([other])
    assert table.head(2, ["id"], "id > 0").to_pydict() == {"id": [1, 2] if "a" in first else [3, 4]}
    with pytest.raises(DataFileMissingError):
        table.head()


def test_reading_reports_its_files(tmp_path: Path) -> None:
    for number in range(3):
        write_deltalake(tmp_path, pa.table({"id": [number]}), mode="append")
    table = DeltaTable(tmp_path)
    seen: list[tuple[int, int]] = []

    def note(done: int, total: int) -> None:
        seen.append((done, total))

    assert table.to_pyarrow_table(progress=note).num_rows == 3
    assert table.to_pandas(filters="id > 0", progress=note)["id"].sum() == 3
    assert seen == [(1, 3), (2, 3), (3, 3), (1, 2), (2, 2)]

    def end(*_: int) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        table.to_pandas(progress=end)


def test_partitions_are_sorted_by_their_values(tmp_path: Path) -> None:
    given = pa.table({"m": [10, 2, None, 2, 1], "d": ["b", "b", "a", "a", "c"], "x": range(5)})
    for one in range(5):
        write_deltalake(tmp_path, given.slice(one, 1), partition_by=["m", "d"], mode="append")
    found = [(one["m"], one["d"]) for one in DeltaTable(tmp_path).partitions()]
    assert found == [(None, "a"), ("1", "c"), ("2", "a"), ("2", "b"), ("10", "b")]
    shown = sql("SHOW PARTITIONS t", t=DeltaTable(tmp_path)).to_pylist()
    assert [row["partition"].partition("/")[0] for row in shown] == [
        "m=__HIVE_DEFAULT_PARTITION__", "m=1", "m=2", "m=2", "m=10",
    ]  # fmt: skip
