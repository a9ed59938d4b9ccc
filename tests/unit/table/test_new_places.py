"""A new table does not lie in the partition directories, or in the log, of another table."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltalog
from deltalog import DeltaTable, convert_to_deltalake, write_deltalake
from deltalog.errors import InvalidInputError
from deltalog.storage import FsspecStore
from deltalog.testing import CountingStore
from tests.support.command_line import run

ROWS = pa.table({"id": [1, 2], "day": ["2024-01-01", "2024-01-02"], "hour": [1, 2]})
SCHEMA = pa.schema([("id", pa.int64())])
PARTITION = "day=2024-01-01"


def clone(location: str) -> None:
    other = location.partition("/t/")[0] + "/other"
    write_deltalake(other, ROWS)
    DeltaTable(other).clone(location)


def convert(location: str) -> None:
    if (place := Path(location)).is_absolute():
        place.mkdir(exist_ok=True)
    with fsspec.open(f"{location}/rows.parquet", "wb") as file:
        pq.write_table(ROWS.select(["id"]), file)
    convert_to_deltalake(location)


MAKERS: Sequence[Callable[[str], object]] = [
    lambda location: write_deltalake(location, ROWS, mode="append"),
    lambda location: write_deltalake(location, ROWS, mode="overwrite"),
    lambda location: DeltaTable.create(location, SCHEMA),
    lambda location: DeltaTable.create(location, SCHEMA, mode="ignore"),
    lambda location: deltalog.sql(f"CREATE TABLE delta.`{location}` (id INT)"),
    clone,
    convert,
]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("root", ["", "memory://new-places"])
def test_a_partition_directory_of_a_table_holds_no_table(
    make: Callable[[str], object], root: str, tmp_path: Path
) -> None:
    outer = f"{root or tmp_path}/t"
    write_deltalake(outer, ROWS, partition_by="day", mode="overwrite")
    with pytest.raises(InvalidInputError, match="in a partition directory of the table") as caught:
        make(f"{outer}/{PARTITION}")
    assert "predicate=\"day = '2024-01-01'\"" in str(caught.value)
    assert DeltaTable(outer).to_pyarrow_table().num_rows == 2
    assert not DeltaTable.is_deltatable(f"{outer}/{PARTITION}")


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        (f"{PARTITION}/hour=1", "predicate=\"day = '2024-01-01' AND hour = '1'\""),
        (f"{PARTITION}/archive", "in a partition directory"),
        ("_delta_log", "in the directory _delta_log of the table"),
        ("_delta_log/x", "in the directory _delta_log of the table"),
        ("_change_data/x", "in the directory _change_data of the table"),
    ],
)
def test_other_directories_of_a_table_hold_none(inside: str, words: str, tmp_path: Path) -> None:
    write_deltalake(tmp_path, ROWS, partition_by=["day", "hour"])
    before = sorted(map(str, tmp_path.rglob("*")))
    with pytest.raises(InvalidInputError) as caught:
        write_deltalake(tmp_path / inside, ROWS)
    assert words in str(caught.value)
    assert sorted(map(str, tmp_path.rglob("*"))) == before


def test_the_command_line_refuses_it_as_well(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", ROWS, partition_by="day")
    pq.write_table(ROWS.select(["id"]), tmp_path / "rows.parquet")
    result = run("write", tmp_path / "t" / PARTITION, tmp_path / "rows.parquet", code=2)
    assert "in a partition directory of the table" in result.stderr


@pytest.mark.parametrize("inside", ["t/archive", "env=prod/t", "_change_data"])
def test_a_table_may_lie_in_other_directories(inside: str, tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", ROWS)
    write_deltalake(tmp_path / inside, ROWS)
    write_deltalake(tmp_path / inside, ROWS, mode="append")
    assert DeltaTable(tmp_path / inside).version() == 1


def test_a_table_of_older_releases_in_such_a_place_can_be_used(tmp_path: Path) -> None:
    write_deltalake(tmp_path / PARTITION, ROWS)
    write_deltalake(tmp_path, ROWS, partition_by="day")
    write_deltalake(tmp_path / PARTITION, ROWS, mode="append")
    assert DeltaTable(tmp_path / PARTITION).to_pyarrow_table().num_rows == 4


@pytest.mark.parametrize(("inside", "lists"), [("t", 0), ("env=prod/t", 1)])
def test_looking_for_an_outer_table_costs_a_listing_if_at_all(
    inside: str, lists: int, tmp_path: Path
) -> None:
    store = CountingStore(FsspecStore(str(tmp_path / inside)))
    write_deltalake(store, ROWS)
    outer = [call for call in store.calls if call.paths == (f"{tmp_path}/_delta_log",)]
    assert [call.verb for call in outer] == ["list_from"] * lists


@pytest.mark.parametrize("make", [one for one in MAKERS if one is not convert])
@pytest.mark.parametrize("name", ["old.parquet", "day=1/hour=2/old.parquet"])
def test_a_new_table_warns_of_parquet_files_that_are_not_part_of_it(
    make: Callable[[str], object], name: str, tmp_path: Path
) -> None:
    root = tmp_path / "t" / "lake"
    (root / name).parent.mkdir(parents=True)
    pq.write_table(ROWS.select(["id"]), root / name)
    with pytest.warns(UserWarning, match="does not contain the Parquet files") as caught:
        make(str(root))
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert f"such as {name}, and" in str(caught[0].message)
    assert f"convert_to_deltalake('{root}') makes a table" in str(caught[0].message)
    DeltaTable(root).alter.set_table_properties({"delta.appendOnly": "true"})  # without a warning


@pytest.mark.parametrize("day", ["", "day=1/"])
def test_new_files_of_a_delta_writer_may_belong_to_the_same_table(day: str, tmp_path: Path) -> None:
    name = f"{day}part-00000-5f0b4ba2-5d31-4a9b-a9b3-3f0ff4b4a1a2-c000.snappy.parquet"
    (tmp_path / name).parent.mkdir(exist_ok=True)
    pq.write_table(ROWS.select(["id"]), tmp_path / name)
    write_deltalake(tmp_path, ROWS)
    (tmp_path / f"_delta_log/{0:020}.json").unlink()
    os.utime(tmp_path / name, (0, 0))
    with pytest.warns(UserWarning, match=f"such as {name}, and"):
        write_deltalake(tmp_path, ROWS)


@pytest.mark.parametrize("mode", ["append", "overwrite"])
@pytest.mark.parametrize("place", ["local", "memory"])
def test_a_new_table_warns_of_the_files_of_one_without_its_log(
    mode: Any, place: str, tmp_path: Path
) -> None:
    root = str(tmp_path / "t") if place == "local" else f"memory://lost-log-{mode}"
    write_deltalake(root, ROWS)
    fsspec.url_to_fs(root)[0].rm(f"{root}/_delta_log", recursive=True)
    with pytest.warns(UserWarning, match="replaces one whose _delta_log was removed") as caught:
        write_deltalake(root, ROWS, mode=mode)
    assert len(caught) == 1
    write_deltalake(root, ROWS, mode=mode)  # without a warning


def test_a_table_whose_directory_was_removed_is_made_again(tmp_path: Path) -> None:
    for _ in range(2):
        write_deltalake(tmp_path / "t", ROWS)
        shutil.rmtree(tmp_path / "t")


def test_a_new_remote_table_warns_of_parquet_files_too() -> None:
    location = "memory://new-places/beside"
    with fsspec.open(f"{location}/old.parquet", "wb") as file:
        pq.write_table(ROWS.select(["id"]), file)
    with pytest.warns(UserWarning, match=r"such as old\.parquet"):
        write_deltalake(location, ROWS)


@pytest.mark.parametrize("name", ["_old.parquet", ".old.parquet", "notes.txt", "day/old.parquet"])
def test_other_files_beside_a_new_table_do_not_matter(name: str, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(b"")
    write_deltalake(tmp_path, ROWS)


@pytest.mark.filterwarnings("default:the new table at")
def test_the_command_line_warns_of_such_files(tmp_path: Path) -> None:
    pq.write_table(ROWS.select(["id"]), tmp_path / "rows.parquet")
    result = run("write", tmp_path, tmp_path / "rows.parquet")
    assert result.stderr.startswith("warning: the new table at ")
    assert f"deltalog convert {tmp_path} makes a table" in result.stderr
