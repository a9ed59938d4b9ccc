"""Row groups in which nothing changes are copied as they are stored, and only where they may be."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable, Field, convert_to_deltalake, write_deltalake
from deltalog.data.write.options import WriterProperties
from deltalog.data.write.rows_to_files import WriteLimits
from deltalog.errors import DataFileUnreadableError
from deltalog.log.context import utc_context
from deltalog.operations.changes import kept_groups
from deltalog.operations.changes.kept_groups import (
    _OF_ALL,
    _OF_FILES,
    _OF_GROUPS,
    WhyNot,
    _is_known,
)
from deltalog.testing.stores import CountingStore
from tests.support.copied_groups import (
    GROUP_ROWS,
    changed_both_ways,
    copying,
    grouped_table,
    new_adds,
    num_copied,
    numbered,
    stored_groups,
)
from tests.support.logs import DictStore

IDS = {"delta.enableRowTracking": "true"}


@pytest.fixture(autouse=True)
def _copies_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    copying(monkeypatch)


def only_file(table: DeltaTable) -> bytes:
    (path,) = table.file_uris()
    return Path(path.removeprefix("file://")).read_bytes()


def rows_of(table: DeltaTable) -> pa.Table:
    return table.scan().to_table()


def ids_of(table: DeltaTable) -> list[Any]:
    return rows_of(table).column("id").to_pylist()


def copied_by(table: DeltaTable, change: Any) -> int:
    """How many row groups of the only file a change copies."""
    before = only_file(table)
    change(table)
    return num_copied(before, only_file(DeltaTable(table.table_uri)))


def test_a_delete_encodes_only_the_row_groups_that_lose_rows(tmp_path: Path) -> None:
    table = grouped_table(tmp_path)
    before = only_file(table)
    assert table.delete("id in (12, 13)")["num_copied_rows"] == 38
    groups = stored_groups(only_file(table))
    assert len(groups) == 4
    kept = stored_groups(before)
    assert [group in kept for group in groups] == [True, False, True, True]
    assert ids_of(table) == [n for n in range(40) if n not in (12, 13)]


def test_a_row_group_that_loses_all_rows_is_left_out(tmp_path: Path) -> None:
    table = grouped_table(tmp_path)
    assert copied_by(table, lambda it: it.delete("id >= 10 and id < 20")) == 3
    assert len(stored_groups(only_file(table))) == 3


def test_an_update_encodes_only_the_row_groups_that_it_changes(tmp_path: Path) -> None:
    table = grouped_table(tmp_path)
    copied = copied_by(table, lambda it: it.update({"t": "'new'"}, predicate="id in (5, 39)"))
    assert copied == 2
    expected = ["new" if row["id"] in (5, 39) else row["t"] for row in numbered().to_pylist()]
    assert rows_of(table).column("t").to_pylist() == expected
    assert ids_of(table) == list(range(40))


def test_a_merge_encodes_only_the_row_groups_that_it_changes(tmp_path: Path) -> None:
    table = grouped_table(tmp_path)
    before = only_file(table)
    source = numbered(50).slice(38).set_column(2, "t", pa.array(["new"] * 12))
    table.merge(
        source, "t.id = s.id", source_alias="s", target_alias="t"
    ).when_matched_update_all().when_not_matched_insert_all().execute()
    files = [Path(uri.removeprefix("file://")).read_bytes() for uri in table.file_uris()]
    assert sorted(num_copied(before, file) for file in files) == [0, 3]
    found = rows_of(table).sort_by("id")
    assert found.column("id").to_pylist() == list(range(50))
    assert found.column("t").to_pylist()[38:] == ["new"] * 12


def test_a_purge_copies_the_row_groups_without_deleted_rows(tmp_path: Path) -> None:
    table = grouped_table(tmp_path, configuration={"delta.enableDeletionVectors": "true"})
    before = only_file(table)
    table.delete("id = 25")
    assert table.version() == 1
    table.optimize.purge()
    assert num_copied(before, only_file(table)) == 3
    assert ids_of(table) == [n for n in range(40) if n != 25]


def test_compaction_copies_row_groups_between_the_rows_of_small_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = numbered(60)
    grouped_table(tmp_path, rows.slice(0, 40))
    for start in (40, 45, 50):
        write_deltalake(tmp_path, rows.slice(start, 5 if start < 50 else 10), mode="append")
    table = DeltaTable(tmp_path)
    sizes = {len(Path(uri.removeprefix("file://")).read_bytes()) for uri in table.file_uris()}
    (large,) = [
        data
        for uri in table.file_uris()
        if len(data := Path(uri.removeprefix("file://")).read_bytes()) == max(sizes)
    ]
    group_bytes = min(map(len, stored_groups(large)))
    monkeypatch.setattr(kept_groups, "LEAST_COMPACTED_BYTES", group_bytes)
    assert table.optimize.compact()["numFilesAdded"] == 1
    assert num_copied(large, only_file(table)) == 4
    assert rows_of(table).sort_by("id").equals(rows)
    assert table.optimize.compact()["numFilesAdded"] == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.delete("id % 17 = 3"),
        lambda table: table.update({"x": "x + 1", "t": "NULL"}, predicate="id in (1, 2, 33)"),
    ],
)
@pytest.mark.parametrize("is_maskable", [False, True])
def test_statistics_are_those_of_rewriting(tmp_path: Path, change: Any, is_maskable: bool) -> None:
    def make(path: Path) -> None:
        configuration = {"delta.enableDeletionVectors": "true"} if is_maskable else {}
        table = grouped_table(path, configuration=configuration)
        if is_maskable:
            table.delete("id = 8")

    copied, rewritten = changed_both_ways(tmp_path, make, change)
    assert rows_of(copied).equals(rows_of(rewritten))
    assert [add["stats"] for add in new_adds(copied)] == [
        add["stats"] for add in new_adds(rewritten)
    ]


def max_of(file: Path, leaf: int) -> Any:
    """The maximum of the third row group, as the footer has it."""
    statistics = pq.read_metadata(file).row_group(2).column(leaf).statistics
    assert statistics is not None
    return statistics.max


def test_nan_is_in_the_statistics_and_not_lost_to_readers(tmp_path: Path) -> None:
    nan = float("nan")
    rows = pa.table({"id": range(40), "x": [nan if n == 25 else float(n) for n in range(40)]})
    pq.write_table(rows, tmp_path / "foreign.parquet", row_group_size=GROUP_ROWS)
    assert max_of(tmp_path / "foreign.parquet", 1) == 29.0  # without the NaN
    convert_to_deltalake(tmp_path)
    table = DeltaTable(tmp_path)
    assert copied_by(table, lambda it: it.delete("id = 3")) == 3
    (add,) = new_adds(table)
    assert '"maxValues":{"id":39,"x":"NaN"}' in add["stats"]
    footer = pq.read_metadata(tmp_path / add["path"])
    bounds = [footer.row_group(n).column(1).statistics for n in range(4)]
    assert not any(one is not None and one.has_min_max for one in bounds)
    assert max_of(tmp_path / add["path"], 0) == 29


def test_partitions_keep_their_values(tmp_path: Path) -> None:
    rows = numbered().append_column("p", pa.array(["a b", None] * 20))
    grouped_table(tmp_path, rows, partition_by=["p"])
    table = DeltaTable(tmp_path)
    table.delete("id in (0, 1)")
    assert sorted(str(add["partitionValues"]["p"]) for add in new_adds(table)) == ["None", "a b"]
    assert sorted(ids_of(table)) == list(range(2, 40))
    assert dict(zip(ids_of(table), rows_of(table).column("p").to_pylist(), strict=True)) == {
        n: None if n % 2 else "a b" for n in range(2, 40)
    }


def test_rows_keep_ids_that_the_copied_groups_hold(tmp_path: Path) -> None:
    table = grouped_table(tmp_path, configuration=IDS)
    names = ["id", "_metadata.row_id", "_metadata.row_commit_version"]

    def told() -> list[Any]:
        return DeltaTable(tmp_path).scan(columns=names).to_table().sort_by("id").to_pylist()

    before = told()
    # At first ids follow from the place in the file, so that every row group is written once more.
    assert copied_by(table, lambda it: it.delete("id = 3")) == 0
    assert told() == [row for row in before if row["id"] != 3]
    # Now the file holds them. It is one row group, as few rows are.
    assert copied_by(table, lambda it: it.delete("id = 4")) == 0
    assert told() == [row for row in before if row["id"] not in (3, 4)]


def test_row_groups_with_ids_of_their_own_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = grouped_table(tmp_path, configuration=IDS)
    small = WriterProperties(max_row_group_size=GROUP_ROWS)
    table.delete("id = 3", writer_properties=small)
    names = ["id", "_metadata.row_id", "_metadata.row_commit_version"]
    before = table.scan(columns=names).to_table().to_pylist()
    assert copied_by(table, lambda it: it.delete("id = 4")) == 3
    after = DeltaTable(tmp_path).scan(columns=names).to_table().to_pylist()
    assert after == [row for row in before if row["id"] != 4]
    # Updated rows have no commit version of their own, so that their row groups are not copied.
    monkeypatch.setattr(kept_groups, "LEAST_BYTES", None)
    table.update({"t": "'u'"}, predicate="id = 30", writer_properties=small)
    monkeypatch.setattr(kept_groups, "LEAST_BYTES", 1)
    before = table.scan(columns=names).to_table().to_pylist()
    assert copied_by(table, lambda it: it.delete("id = 5")) == 2
    after = DeltaTable(tmp_path).scan(columns=names).to_table().to_pylist()
    assert after == [row for row in before if row["id"] != 5]


def test_column_mapping_copies_only_files_with_the_ids_of_new_ones(tmp_path: Path) -> None:
    table = grouped_table(tmp_path)
    table.alter.set_table_properties({"delta.columnMapping.mode": "name"}, True)
    # The file was written before columns had ids.
    assert copied_by(DeltaTable(tmp_path), lambda it: it.delete("id = 1")) == 0
    write_deltalake(
        tmp_path,
        numbered(),
        mode="overwrite",
        writer_properties=WriterProperties(max_row_group_size=GROUP_ROWS),
    )
    table = DeltaTable(tmp_path)
    table.alter.rename_column("t", "text")
    table = DeltaTable(tmp_path)
    assert copied_by(table, lambda it: it.delete("id = 1")) == 3
    assert DeltaTable(tmp_path).scan(columns=["text"]).to_table().column(0).to_pylist() == [
        text for n, text in enumerate(numbered().column("t").to_pylist()) if n != 1
    ]


@pytest.mark.parametrize(
    ("why", "prepare", "options"),
    [
        (WhyNot.OPTIONS, None, {"writer_properties": WriterProperties(compression="ZSTD")}),
        (WhyNot.SIZE, "size", {}),
        (None, "file size", {}),
        (WhyNot.CODEC, "codec", {}),
        (WhyNot.SCHEMA, "column", {}),
    ],
)
def test_reasons_against_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    why: WhyNot | None,
    prepare: str | None,
    options: dict[str, Any],
) -> None:
    table = grouped_table(tmp_path)
    data = only_file(table)
    match prepare:
        case "size":
            most = max(map(len, stored_groups(data)))
            monkeypatch.setattr(kept_groups, "LEAST_BYTES", most + 1)
        case "file size":
            monkeypatch.setattr(kept_groups, "LEAST_BYTES", len(data) + 1)
        case "codec":
            table.alter.set_table_properties({"delta.parquet.compression.codec": "zstd"})
        case "column":
            table.alter.add_columns(Field("more", "long"))
        case _:
            pass
    table = DeltaTable(tmp_path)
    assert copied_by(table, lambda it: it.delete("id = 1", **options)) == 0, why
    assert ids_of(DeltaTable(tmp_path)) == [n for n in range(40) if n != 1]


def foreign(path: Path, rows: pa.Table, **options: Any) -> DeltaTable:
    """A table of one file that pyarrow has written, with notes in its footer."""
    notes = options.pop("notes", {})
    path.mkdir(exist_ok=True)
    file = path / "foreign.parquet"
    with pq.ParquetWriter(file, rows.schema, store_schema=False, **options) as writer:
        writer.write_table(rows, row_group_size=GROUP_ROWS)
        writer.add_key_value_metadata(notes)
    convert_to_deltalake(path)
    return DeltaTable(path)


def test_days_of_the_old_calendar_are_not_mixed_with_ours(tmp_path: Path) -> None:
    days = [dt.date(1200, 1, 1) + dt.timedelta(days=n) for n in range(40)]
    rows = pa.table({"id": range(40), "d": pa.array(days, pa.date32())})
    notes = {"org.apache.spark.version": "3.5.0"}
    new = foreign(tmp_path / "new", rows, notes=notes)
    assert copied_by(new, lambda it: it.delete("id = 1")) == 3
    old = foreign(tmp_path / "old", rows, notes={**notes, "org.apache.spark.legacyDateTime": ""})
    expected = [day for n, day in enumerate(rows_of(old).column("d").to_pylist()) if n != 1]
    assert expected[0] != days[0]
    assert copied_by(old, lambda it: it.delete("id = 1")) == 0
    assert rows_of(DeltaTable(tmp_path / "old")).column("d").to_pylist() == expected


@pytest.mark.parametrize(
    ("created_by", "is_known"),
    [
        ("parquet-cpp-arrow version 26.0.1", True),
        ("parquet-cpp-arrow version 2.0.0", False),
        ("parquet-cpp version 1.5.1-SNAPSHOT", False),
        ("parquet-mr version 1.13.1 (build db4183109d5b734ec5930d870cdae161e408ddba)", True),
        ("parquet-mr version 1.8.3", False),
        ("parquet-mr", False),
        ("parquet-rs version 58.0.0", True),
        ("delta-rs version py-1.6.6", True),
        ("DuckDB version v2.0.0 (build d54cbbe3df)", True),
        ("Polars (python) version 2.1.0 (build 7f902bd3ff)", True),
        ("impala version 1.0", False),
        ("", False),
    ],
)
def test_writers(created_by: str, is_known: bool) -> None:
    assert _is_known(created_by) is is_known


def test_every_reason_is_decided_in_a_table() -> None:
    decided = {why for table in (_OF_ALL, _OF_FILES, _OF_GROUPS) for why, _ in table}
    assert set(WhyNot) == decided


def test_damaged_pages_are_an_error_before_anything_is_committed(tmp_path: Path) -> None:
    table = grouped_table(tmp_path)
    (uri,) = table.file_uris()
    path = Path(uri.removeprefix("file://"))
    data = bytearray(path.read_bytes())
    start = bytes(data).index(stored_groups(bytes(data))[3][:64])
    data[start : start + 16] = b"\xff" * 16  # the header of a page that is only copied
    path.write_bytes(data)
    with pytest.raises(DataFileUnreadableError) as caught:
        table.delete("id = 1")
    assert path.name in " ".join([str(caught.value), *caught.value.__notes__])
    assert DeltaTable(tmp_path).version() == 0
    assert [one.name for one in tmp_path.glob("**/*part-*")] == [path.name]


@pytest.mark.parametrize("hits", ["id = 12", "id in (1, 12, 25, 38)"])
def test_a_store_that_is_reached_by_requests(tmp_path: Path, hits: str) -> None:
    table = grouped_table(tmp_path)
    (before,) = [path.read_bytes() for path in tmp_path.glob("*.parquet")]
    files = {
        str(path.relative_to(tmp_path)): path.read_bytes()
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    store = DictStore(files)
    DeltaTable.from_context(utc_context(CountingStore(store))).delete(hits)
    table.delete(hits)
    (after,) = [
        data for path, data in store.files.items() if path.endswith(".parquet") and data != before
    ]
    assert after == only_file(table)
    num_changed = hits.count(",") + 1
    assert num_copied(before, after) == 4 - num_changed


def test_a_damaged_file_of_such_a_store(tmp_path: Path) -> None:
    grouped_table(tmp_path)
    files = {
        str(path.relative_to(tmp_path)): path.read_bytes()
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    (name,) = [path for path in files if path.endswith(".parquet")]
    data = bytearray(files[name])
    start = bytes(data).index(stored_groups(bytes(data))[3][:64])
    data[start : start + 16] = b"\xff" * 16
    store = DictStore({**files, name: bytes(data)})
    with pytest.raises(DataFileUnreadableError):
        DeltaTable.from_context(utc_context(store)).delete("id = 12")
    assert store.files.keys() == files.keys()


def test_files_of_the_target_size_are_followed_by_others(tmp_path: Path) -> None:
    table = grouped_table(tmp_path)
    before = only_file(table)
    group_bytes = max(map(len, stored_groups(before)))
    table.alter.set_table_properties({"delta.targetFileSize": str(2 * group_bytes)})
    table = DeltaTable(tmp_path)
    table.delete("id = 12")
    files = [Path(uri.removeprefix("file://")).read_bytes() for uri in table.file_uris()]
    assert len(files) > 1
    assert sum(num_copied(before, file) for file in files) == 3
    assert sorted(ids_of(DeltaTable(tmp_path))) == [n for n in range(40) if n != 12]


@pytest.mark.parametrize(("most_groups", "num_files"), [(3.5, 2), (4.5, 1)])
def test_waiting_rows_count_when_the_next_file_begins(
    tmp_path: Path, most_groups: float, num_files: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = grouped_table(tmp_path)
    group_bytes = sum(map(len, stored_groups(only_file(table)))) / 4
    limits = WriteLimits(spliced_bytes=int(most_groups * group_bytes))
    monkeypatch.setattr("deltalog.operations.changes.local._LIMITS", limits)
    properties = WriterProperties(max_row_group_size=GROUP_ROWS)
    rows = numbered(80).slice(40)
    write_deltalake(table, rows, mode="append", writer_properties=properties)
    table.delete("id in (39, 40)")
    assert len(table.file_uris()) == num_files
    assert ids_of(table) == [n for n in range(80) if n not in (39, 40)]
