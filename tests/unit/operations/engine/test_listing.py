"""Every file that a vacuum may look at: one listing, hidden names left out."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from deltalog._util.paths import FileInfo
from deltalog.operations.engine import (
    LISTING_SCHEMA,
    listed_below,
    listed_files,
    listing_of,
    visible,
)
from deltalog.protocol.configuration import TableConfiguration
from deltalog.protocol.table_change.change import new_table
from deltalog.schema import Field, StructType
from tests.support.logs import DictStore


def table(*partitions: str) -> TableConfiguration:
    fields = [Field("id", "long"), *(Field(name, "string") for name in partitions)]
    return new_table(StructType(fields), partition_columns=partitions, created_time_ms=0)


def shown(paths: Sequence[str], *partitions: str) -> list[object]:
    listed = listing_of([FileInfo(path, 1, 2) for path in paths], table(*partitions))
    return listed.column("path").to_pylist()


@pytest.mark.parametrize(
    "path",
    [
        "a.parquet",
        "p=1/a.parquet",
        "a_b/c.d",
        "_change_data/c.parquet",
        "_delta_index/i",
        "metadata.json",
        "deletion_vector_1.bin",
    ],
)
def test_what_may_be_looked_at(path: str) -> None:
    assert shown([path]) == [path]


@pytest.mark.parametrize(
    "path",
    ["_delta_log/0.json", ".a.crc", "d/_x", "d/.x/y", "metadata", "metadata/v1.json", "_p=1/a"],
)
def test_what_is_hidden(path: str) -> None:
    assert shown([path]) == []


LEFT = ".part-0.parquet.0123456789abcdef0123456789abcdef.tmp"


@pytest.mark.parametrize(
    "directory",
    ["", "p=1/", "_change_data/", "_delta_log/", "_delta_log/_sidecars/", "_delta_index/"],
)
def test_temporary_files_of_writers_may_be_looked_at(directory: str) -> None:
    assert shown([directory + LEFT]) == [directory + LEFT]


@pytest.mark.parametrize(
    "path",
    [
        f"_spark_metadata/{LEFT}",
        f"d/_delta_log/{LEFT}",
        f"_delta_log/d/{LEFT}",
        f"{LEFT}/a",
        ".a.tmp",
        f"_delta_log/{LEFT[1:]}",
        LEFT.replace("0", "G"),
        "_delta_log/.00000000000000000000.json.crc",
    ],
)
def test_temporary_files_of_others_are_hidden(path: str) -> None:
    assert shown([path]) == []


STAGED = ".staged.0123456789abcdef0123456789abcdef.tmp"


@pytest.mark.parametrize(
    "name",
    [
        "part-0.parquet",
        ".part-0.parquet.crc",
        "_SUCCESS",
        "_temporary/0/_temporary/attempt_1/part-0.parquet",
        "_temporary/0/_temporary/attempt_1/.part-0.parquet.crc",
        "metadata/x",
        "p=1/a",
    ],
)
def test_what_another_writer_has_staged_may_be_looked_at(name: str) -> None:
    assert shown([f"{STAGED}/{name}", "_x"]) == [f"{STAGED}/{name}"]


@pytest.mark.parametrize(
    "path",
    [
        STAGED,
        f"d/{STAGED}/a",
        f"p=1/{STAGED}/a",
        f"_delta_log/{STAGED}/a",
        f"{STAGED}x/a",
        f"x{STAGED}/.a",
        f"{STAGED.upper()}/a",
        f"{STAGED.replace('0', 'g')}/a",
        ".staged/a",
        ".staged.0123.tmp/a",
        f".{STAGED}/a",
    ],
)
def test_directories_that_only_look_like_it_are_hidden(path: str) -> None:
    looks_like_a_file = path == STAGED  # of `write_temporary`
    assert shown([path]) == ([path] if looks_like_a_file else [])


def test_partitions_are_shown_whatever_they_are_called() -> None:
    paths = ["_p=1/a", "_p=1/_b", ".q=x/c", "_p=1/.q=x/d", "_p/e", "_r=1/f"]
    assert shown(paths, "_p", ".q") == ["_p=1/a", ".q=x/c", "_p=1/.q=x/d"]


def test_a_listing_has_path_size_and_time() -> None:
    store = DictStore({"a": b"xyz", "_x": b"", "d/b": b""}, {"a": 7, "d/b": 8})
    assert listed_files(store, table()).to_pylist() == [
        {"path": "a", "size_bytes": 3, "modification_time": 7},
        {"path": "d/b", "size_bytes": 0, "modification_time": 8},
    ]
    assert listed_below(store, "d", table()).column("path").to_pylist() == ["d/b"]


def test_nothing_is_a_listing_too() -> None:
    empty = listed_files(DictStore(), table())
    assert (empty.num_rows, empty.schema) == (0, LISTING_SCHEMA)
    assert visible(empty, table()).num_rows == 0
