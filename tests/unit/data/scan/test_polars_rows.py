"""Large scans that Polars reads: the same rows, order and errors as those of deltalog's reader."""

from __future__ import annotations

import asyncio
import datetime as dt
import gc
import json
import logging
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable, Field, WriterProperties, write_deltalake
from deltalog.data.scan import Scan, polars_rows
from deltalog.data.scan.polars_rows import read_large
from deltalog.data.scan.reader import read_tasks
from deltalog.errors import DataFileMissingError, DataFileUnreadableError, DeltaError
from deltalog.storage import open_store
from deltalog.testing import CountingStore
from tests.support.raw_tables import DataTable, column, rows_of

LIMITS = ("LEAST_BYTES", "_LEAST_BYTES_WITH_IMPORT", "_LEAST_FILE_BYTES")
VECTORS = {"delta.enableDeletionVectors": "true"}


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Polars reads tables of any size."""
    for name in LIMITS:
        monkeypatch.setattr(polars_rows, name, 0)


def by_polars(scan: Scan) -> pa.Table:
    """The rows; fails if Polars does not read all of them, or if deltalog's reader differs."""
    batches = read_large(scan)
    assert batches is not None
    found = pa.Table.from_batches(batches, schema=scan.schema)
    found.validate(full=True)
    own = pa.Table.from_batches(read_tasks(scan.tasks()), schema=scan.schema)
    assert repr(found.to_pylist()) == repr(own.to_pylist())  # NaN equals NaN, -0.0 is not 0.0
    return found


@pytest.fixture
def polars_fails() -> None:
    """Polars fails in this test, and deltalog's reader continues."""


FAILS = pytest.mark.usefixtures("polars_fails")


@pytest.fixture(autouse=True)
def failures_are_stated(
    request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> Iterator[None]:
    """A test fails if Polars fails, unless it states so."""
    caplog.set_level(logging.INFO, polars_rows.__name__)
    yield
    failed = [one for one in caplog.get_records("call") if "with Polars after" in one.message]
    assert bool(failed) == ("polars_fails" in request.fixturenames), failed


def only_file(path: Path) -> Path:
    (file,) = path.glob("*.parquet")
    return file


def replace_file(file: Path, rows: pa.Table, **options: Any) -> None:
    file.unlink()  # never write into a file that may be mapped
    pq.write_table(rows, file, **options)


# --- values

UTC = ZoneInfo("UTC")  # as in values of pyarrow
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "boolean": (pa.bool_(), [True, False]),
    "byte": (pa.int8(), [-128, 127, 0]),
    "short": (pa.int16(), [-(2**15), 2**15 - 1]),
    "integer": (pa.int32(), [-(2**31), 2**31 - 1]),
    "long": (pa.int64(), [-(2**63), 2**63 - 1]),
    "float": (pa.float32(), [float("nan"), -0.0, 0.0, float("inf"), -float("inf"), 1.5]),
    "double": (pa.float64(), [float("nan"), -0.0, 0.0, float("inf"), 5e-324, -1.7e308]),
    "date": (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1969, 12, 31)]),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        [
            dt.datetime(1, 1, 1, tzinfo=UTC),
            dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        ],
    ),
    "timestamp_ntz": (pa.timestamp("us"), [dt.datetime(1, 1, 1), dt.datetime(2024, 2, 29)]),  # noqa: DTZ001
    "string": (pa.string(), ["", "ä", "\0", "x" * 100_000, "\U0001f600" * 3, "exactly 12 b"]),
    "binary": (pa.binary(), [b"", b"\xff\xfe", b"\0" * 13, b"y" * 70_000]),
    **{
        f"decimal({precision},{scale})": (
            pa.decimal128(precision, scale),
            [Decimal((sign, (9,) * precision, -scale)) for sign in (0, 1)]
            + [Decimal((0, (0,), -scale))],
        )
        for precision, scale in ((1, 0), (9, 2), (10, 5), (18, 18), (19, 1), (38, 0), (38, 37))
    },
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values_of_every_type(name: str, tmp_path: Path) -> None:
    kind, values = VALUES[name]
    every = pa.array([None, *values, None], kind)
    write_deltalake(tmp_path, pa.table({"v": every, "n": pa.array([None] * len(every), kind)}))
    found = by_polars(DeltaTable(tmp_path).scan())
    assert found.schema.field("v").type == kind
    assert repr(found["v"].to_pylist()) == repr([None, *values, None])
    assert found["n"].null_count == len(every)


def test_days_that_python_lacks(tmp_path: Path) -> None:
    days = pa.array([-(2**31), 2_932_897, 2**31 - 1], pa.int32())
    moments = pa.array([-(2**63), 2**63 - 1, 0], pa.int64())
    rows: dict[str, pa.Array[Any]] = {
        "d": days.cast(pa.date32()),
        "t": moments.cast(pa.timestamp("us", "UTC")),
    }
    write_deltalake(tmp_path, {"d": rows["d"][1:2], "t": rows["t"][2:]})
    replace_file(only_file(tmp_path), pa.table(rows))
    batches = read_large(DeltaTable(tmp_path).scan())
    assert batches is not None
    found = pa.Table.from_batches(batches)
    assert found["d"].cast(pa.int32()).combine_chunks().equals(days)
    assert found["t"].cast(pa.int64()).combine_chunks().equals(moments)


def test_null_in_a_column_that_is_not_nullable(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("v", pa.int64(), nullable=False)])
    write_deltalake(tmp_path, pa.table({"v": [1]}, schema=schema))
    replace_file(only_file(tmp_path), pa.table({"v": [1, None, 3]}))
    assert rows_of(by_polars(DeltaTable(tmp_path).scan())) == [1, None, 3]


def test_categories_of_pandas(tmp_path: Path) -> None:
    write_deltalake(tmp_path, {"s": ["a"]})
    replace_file(only_file(tmp_path), pa.table({"s": pa.array(["b", None]).dictionary_encode()}))
    table = DeltaTable(tmp_path)
    assert rows_of(by_polars(table.scan())) == ["b", None]
    assert table.to_polars(lazy=True).collect().rows() == [("b",), (None,)]


@pytest.mark.parametrize("name", ["*", "^.*$", "^x$", "a.b", "len", "ä"])
def test_names_that_are_patterns(tmp_path: Path, name: str) -> None:
    write_deltalake(tmp_path, {name: [1], "x": ["p"], "y": [3]}, partition_by=["x"])
    table = DeltaTable(tmp_path)
    assert by_polars(table.scan()).to_pydict() == {name: [1], "x": ["p"], "y": [3]}
    if "." not in name or name.startswith("^"):
        assert table.to_polars(["y", name], lazy=True).collect().to_dict(as_series=False) == {
            "y": [3],
            name: [1],
        }


def test_strings_of_a_dictionary_that_are_large_together(tmp_path: Path) -> None:
    """Arrow's conversion of views returns wrong strings if they have more than 2 GB."""
    write_deltalake(tmp_path, {"s": ["a"]})
    values = [str(number) + "x" * 1_000_000 for number in range(4)]
    indices = pa.array([number % 4 for number in range(4400)], pa.int32())
    rows = pa.table({"s": pa.DictionaryArray.from_arrays(indices, pa.array(values))})
    replace_file(only_file(tmp_path), rows, store_schema=False, dictionary_pagesize_limit=1 << 24)
    batches = read_large(DeltaTable(tmp_path).scan())
    assert batches is not None
    number = 0
    for batch in batches:
        assert batch.nbytes <= 80_000_000
        for value in batch.column(0):
            text = value.as_py()
            assert text[:2] == f"{number % 4}x"
            assert len(text) == 1_000_001
            number += 1
    assert number == 4400


def test_a_long_partition_value(tmp_path: Path) -> None:
    store = DataTable([column("id", "long"), column("p", "string")], partition_by=["p"])
    add = store.add({"id": list(range(50_000))}, partitionValues={"p": "x" * 10_000})
    store.commit(add)
    copied(store, tmp_path)
    batches = read_large(DeltaTable(tmp_path).scan())
    assert batches is not None
    sizes = [(batch.num_rows, len(batch.column("p")[-1].as_py())) for batch in batches]
    assert sum(rows for rows, _ in sizes) == 50_000
    assert len(sizes) > 5  # parts of about 64 MB
    assert {length for _, length in sizes} == {10_000}


def copied(table: DataTable, path: Path) -> None:
    """Write the objects of a hand-made table into a directory."""
    for name, content in table.store.files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)


# --- deleted rows, columns, versions


@pytest.fixture
def marked(tmp_path: Path) -> DeltaTable:
    """Three files of ten rows, 0 to 29, in small row groups, with deletion vectors."""
    for first in range(0, 30, 10):
        write_deltalake(
            tmp_path,
            {"id": list(range(first, first + 10))},
            mode="append",
            configuration=VECTORS,
            writer_properties=WriterProperties(max_row_group_size=4),
        )
    return DeltaTable(tmp_path)


@pytest.mark.parametrize(
    ("where", "deleted"),
    [("id in (0, 9, 10, 29)", {0, 9, 10, 29}), ("id >= 8 and id < 13", set(range(8, 13))),
     ("id = 15", {15}), ("id % 10 = 9", {9, 19, 29})],
)  # fmt: skip
def test_deleted_rows(marked: DeltaTable, where: str, deleted: set[int]) -> None:
    marked.delete(where)
    tasks = list(marked.scan().tasks())
    ids = set(range(30)) - deleted
    assert any(task.deletion_vector for task in tasks)
    assert set(rows_of(by_polars(marked.scan()))) == ids
    marked.delete("id % 7 = 0")
    assert set(rows_of(by_polars(marked.scan()))) == {one for one in ids if one % 7}
    assert set(rows_of(by_polars(DeltaTable(marked.table_uri, version=2).scan()))) == set(range(30))


def test_every_row_of_a_file_is_marked_and_files_without_rows(tmp_path: Path) -> None:
    table = DataTable([column("id", "long")], features=["deletionVectors"], configuration=VECTORS)
    none = pa.table({"id": pa.array([], pa.int64())})
    table.commit(
        table.add(none, path="a"),
        table.add({"id": [1, 2, 3]}, path="b", deletionVector=table.vector(0, 1, 2)),
        table.add(none, path="c"),
        table.add({"id": [4, 5]}, path="d", deletionVector=table.vector(1)),
        table.add({"id": [6]}, path="e"),
        table.add(none, path="f"),
    )
    copied(table, tmp_path)
    scan = DeltaTable(tmp_path).scan()
    expected = {"b": [], "d": [4], "e": [6]}
    order = [one for task in scan.tasks() for one in expected.get(task.path, [])]
    assert rows_of(by_polars(scan)) == order
    assert sorted(order) == [4, 6]


@FAILS
def test_a_vector_that_marks_too_many_rows(tmp_path: Path) -> None:
    table = DataTable([column("id", "long")], features=["deletionVectors"], configuration=VECTORS)
    table.commit(table.add({"id": [1, 2]}, deletionVector=table.vector(0, 7)))
    copied(table, tmp_path)
    assert_same_end(DeltaTable(tmp_path).scan(), DeltaError)


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_columns_in_any_order(tmp_path: Path, mode: str) -> None:
    rows: dict[str, list[Any]] = {"id": [1, 2, 3], "s": ["a", None, "c"], "p": ["x/y", "1e5", None]}
    configuration = {} if mode == "none" else {"delta.columnMapping.mode": mode}
    write_deltalake(tmp_path, rows, partition_by=["p"], configuration=configuration)
    table = DeltaTable(tmp_path)
    for names in (["s", "id"], ["p"], ["id", "p"], ["p", "s", "id"]):
        found = by_polars(table.scan(names))
        assert found.column_names == names
        expected = [tuple(rows[name][at] for name in names) for at in range(3)]
        got = list(zip(*(found[name].to_pylist() for name in names), strict=True))
        assert sorted(map(repr, got)) == sorted(map(repr, expected))


@pytest.mark.parametrize("mode", ["name", "id"])
def test_renamed_dropped_and_new_columns(tmp_path: Path, mode: str) -> None:
    configuration = {"delta.columnMapping.mode": mode}
    write_deltalake(tmp_path, {"id": [1, 2], "s": ["a", "b"]}, configuration=configuration)
    table = DeltaTable(tmp_path)
    table.alter.rename_column("id", "s of id")
    table.alter.drop_columns(["s"])
    table.alter.add_columns([Field("s", "string"), Field("id", "double")])
    write_deltalake(table, {"s of id": [3], "s": ["c"], "id": [0.5]}, mode="append")
    rows = by_polars(table.scan()).to_pylist()
    assert sorted(rows, key=repr) == [
        {"s of id": 1, "s": None, "id": None},
        {"s of id": 2, "s": None, "id": None},
        {"s of id": 3, "s": "c", "id": 0.5},
    ]


def test_wider_integers(tmp_path: Path) -> None:
    narrow = pa.table({"i": pa.array([-1, None], pa.int8())})
    write_deltalake(tmp_path, narrow, configuration={"delta.enableTypeWidening": "true"})
    wide = pa.table({"i": pa.array([2**40]), "s": ["x"]})
    write_deltalake(tmp_path, wide, mode="append", schema_mode="merge")
    found = by_polars(DeltaTable(tmp_path).scan())
    assert found.schema.field("i").type == pa.int64()
    assert set(zip(*found.to_pydict().values(), strict=True)) == {
        (-1, None), (None, None), (2**40, "x"),
    }  # fmt: skip


def test_the_files_of_a_clone(marked: DeltaTable, tmp_path_factory: pytest.TempPathFactory) -> None:
    marked.delete("id < 3")
    path = tmp_path_factory.mktemp("clone") / "table"
    marked.clone(str(path))
    found = by_polars(DeltaTable(path).scan())
    assert sorted(rows_of(found)) == list(range(3, 30))


# --- what Polars does not read


def test_small_tables_are_not_read_by_polars(
    marked: DeltaTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read_large(marked.scan()) is not None
    monkeypatch.setattr(polars_rows, "_LEAST_FILE_BYTES", 1 << 20)
    assert read_large(marked.scan()) is None
    monkeypatch.setattr(polars_rows, "_LEAST_FILE_BYTES", 0)
    monkeypatch.setattr(polars_rows, "_MOST_GROUP_BYTES", 1)
    assert read_large(marked.scan()) is None
    monkeypatch.undo()
    assert read_large(marked.scan()) is None


def test_scans_that_are_not_read_by_polars(tmp_path: Path) -> None:
    rows = {"id": [1, 2], "l": [[1], []], "st": [{"a": 1}, None]}
    write_deltalake(tmp_path, rows)
    table = DeltaTable(tmp_path)
    assert read_large(table.scan(["id"])) is not None
    for columns, predicate in [
        (None, None), (["l"], None), (["st"], None), (["st.a"], None), ([], None),
        (["id"], "id < 9"), (["id", "_metadata.file_path"], None),
    ]:  # fmt: skip
        scan = table.scan(columns, predicate)
        assert read_large(scan) is None
        assert scan.to_table().num_rows == 2
    assert rows_of(table.scan(["id"], limit=1).to_table()) == [1]


def test_other_stores_are_not_read_by_polars(tmp_path: Path) -> None:
    for place in ("memory://polars-rows", CountingStore(open_store(str(tmp_path)))):
        write_deltalake(place, {"id": [1, 2]})
        scan = DeltaTable(place).scan()
        assert read_large(scan) is None
        assert rows_of(scan.to_table()) == [1, 2]


def test_a_table_without_files(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": pa.array([], pa.int64())}))
    table = DeltaTable(tmp_path)
    write_deltalake(table, {"id": [1]}, mode="append")
    table.delete()
    assert table.scan().pruned.num_left == 0
    assert read_large(table.scan()) is None
    assert table.scan().to_table().num_rows == 0


@pytest.mark.parametrize("is_directory", [True, False])
def test_a_polars_that_cannot_be_imported(tmp_path: Path, *, is_directory: bool) -> None:
    write_deltalake(tmp_path / "t", {"id": [1, 2]})
    if is_directory:  # of the user, in the working directory
        (tmp_path / "polars").mkdir()
    else:
        (tmp_path / "polars.py").write_text("raise ImportError('of another processor')")
    script = f"""
from importlib.machinery import PathFinder
class Finder:
    def find_spec(name, path=None, target=None):
        return PathFinder.find_spec(name, [{str(tmp_path)!r}]) if name == "polars" else None
sys.meta_path.insert(0, Finder)
answer(table.to_pyarrow_table().num_rows)
"""
    assert run(tmp_path / "t", script) == "2"


# --- errors


def rows_until_error(batches: Any) -> tuple[list[Any], type[BaseException] | None, str]:
    found: list[Any] = []
    try:
        for batch in batches:
            found += batch.to_pylist()
    except DeltaError as error:
        return found, type(error), str(error)
    return found, None, ""


def assert_same_end(scan: Scan, kind: type[DeltaError] | None) -> list[Any]:
    """The rows before the error, which must be at least those of deltalog's reader."""
    own, own_kind, own_text = rows_until_error(read_tasks(scan.tasks()))
    found, found_kind, text = rows_until_error(scan.to_batches())
    assert (found_kind, text) == (own_kind, own_text)
    assert (kind is None) == (found_kind is None)
    assert kind is None or issubclass(found_kind or object, kind)
    assert found[: len(own)] == own
    assert len(found) == len(own) or kind is not None
    return found


@pytest.fixture
def files(tmp_path: Path) -> tuple[DeltaTable, list[Path]]:
    """A table of three files with 1000 rows each, and its files in the order of a scan."""
    for first in range(0, 3000, 1000):
        write_deltalake(tmp_path, {"id": list(range(first, first + 1000))}, mode="append")
    table = DeltaTable(tmp_path)
    return table, [tmp_path / task.path for task in table.scan().tasks()]


def rows_in(file: Path) -> list[dict[str, int]]:
    return pq.read_table(file).to_pylist()


def changed(file: Path, change: Callable[[bytes], bytes]) -> None:
    content = file.read_bytes()
    file.unlink()
    file.write_bytes(change(content))


@FAILS
def test_a_damaged_page_of_the_second_file(
    files: tuple[DeltaTable, list[Path]], caplog: pytest.LogCaptureFixture
) -> None:
    table, paths = files
    first = rows_in(paths[0])
    changed(paths[1], lambda content: content[:4] + b"\xff" * 200 + content[204:])
    found = assert_same_end(table.scan(), DataFileUnreadableError)
    assert found == first
    (logged,) = [one for one in caplog.records if "with Polars" in one.message]
    assert logged.levelno == logging.INFO
    assert "\n" not in logged.message
    assert logged.exc_info is None
    assert str(table.table_uri).removeprefix("file://") in logged.message
    assert "deltalog's reader reads the rest" in logged.message


def test_a_file_that_was_truncated(files: tuple[DeltaTable, list[Path]]) -> None:
    table, paths = files
    first = rows_in(paths[0])
    changed(paths[1], lambda content: content[:-100])
    assert assert_same_end(table.scan(), DataFileUnreadableError) == first


def test_a_file_that_was_deleted(files: tuple[DeltaTable, list[Path]]) -> None:
    table, paths = files
    scan = table.scan()
    assert list(scan.tasks())
    first = rows_in(paths[0])
    paths[1].unlink()
    assert assert_same_end(scan, DataFileMissingError) == first


@FAILS
def test_a_file_that_is_deleted_after_planning(files: tuple[DeltaTable, list[Path]]) -> None:
    table, paths = files
    batches = read_large(table.scan())
    first = rows_in(paths[0])
    paths[1].unlink()
    found, kind, _ = rows_until_error(batches)
    assert (found, kind) == (first, DataFileMissingError)


@FAILS
@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("num_rows", [0, 1, 1500])
def test_a_file_that_is_replaced_after_planning(
    files: tuple[DeltaTable, list[Path]], number: int, num_rows: int
) -> None:
    table, paths = files
    scan = table.scan()
    batches = read_large(scan)
    other = pa.table({"id": pa.array(range(-num_rows, 0), pa.int64())})
    replace_file(paths[number], other)
    found, kind, _ = rows_until_error(batches)
    assert kind is None
    assert found == [row for path in paths for row in rows_in(path)]


@FAILS
def test_strings_that_are_not_utf8(tmp_path: Path) -> None:
    write_deltalake(tmp_path, {"s": ["a", "b"]})
    buffers = pa.array([b"a", b"\xff\xfe"]).buffers()
    wrong = pa.Array.from_buffers(pa.string(), 2, buffers)
    replace_file(only_file(tmp_path), pa.table({"s": wrong}))
    scan = DeltaTable(tmp_path).scan()
    own = pa.Table.from_batches(read_tasks(scan.tasks()), schema=scan.schema)
    found = scan.to_table()
    assert [value.as_buffer().to_pybytes() for value in found["s"]] == [b"a", b"\xff\xfe"]
    assert [value.as_buffer().to_pybytes() for value in own["s"]] == [b"a", b"\xff\xfe"]


@pytest.mark.parametrize("size", [None, -1, 0, 2**62, -(2**63), 2**63 - 1])
def test_wrong_sizes_in_the_log(tmp_path: Path, size: int | None) -> None:
    write_deltalake(tmp_path, {"id": [1, 2]})
    write_deltalake(tmp_path, {"id": [3]}, mode="append")
    for log in (tmp_path / "_delta_log").glob("*.json"):
        lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
        for line in lines:
            if "add" in line:
                line["add"].pop("size")
                line["add"].update({} if size is None else {"size": size})
        log.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    scan = DeltaTable(tmp_path).scan()
    own = rows_until_error(read_tasks(scan.tasks()))
    assert rows_until_error(scan.to_batches()) == own
    assert own[1] is not None or sorted(row["id"] for row in own[0]) == [1, 2, 3]


# --- results, threads and processes


def test_results_of_every_kind(marked: DeltaTable) -> None:
    marked.delete("id < 5")
    scan = marked.scan()
    left = list(range(5, 30))
    assert read_large(scan) is not None
    for found in (
        scan.to_table(), scan.to_reader().read_all(), pa.table(scan), scan.read_all(),
        pickle.loads(pickle.dumps(scan)).to_table(), marked.to_pyarrow_table(),
    ):  # fmt: skip
        assert found.schema == scan.schema
        assert sorted(rows_of(found)) == left
    assert sorted(scan.to_pandas()["id"]) == left
    assert sorted(pl.DataFrame(scan)["id"]) == left
    assert sorted(scan.to_duckdb().fetchall()) == [(one,) for one in left]


PREAMBLE = """
import faulthandler, os, sys
faulthandler.dump_traceback_later(60, exit=True)
from deltalog import DeltaTable
from deltalog.data.scan import polars_rows
polars_rows.LEAST_BYTES = polars_rows._LEAST_BYTES_WITH_IMPORT = polars_rows._LEAST_FILE_BYTES = 0
table = DeltaTable(sys.argv[1])
def answer(found): sys.stdout.write(str(found)); sys.stdout.flush()
"""


def run(path: Path, script: str, threads: int = 2) -> str:
    """What a process writes that runs a script with a table."""
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", PREAMBLE + script, str(path)],
        env={**os.environ, "POLARS_MAX_THREADS": str(threads), "RUST_BACKTRACE": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr[-5000:]
    return ran.stdout


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of 400,000 rows in four files, with two row groups each."""
    path = tmp_path_factory.mktemp("large")
    for first in range(0, 400_000, 100_000):
        numbers = range(first, first + 100_000)
        write_deltalake(
            path,
            {"id": list(numbers), "s": [str(number) for number in numbers]},
            mode="append",
            writer_properties=WriterProperties(max_row_group_size=50_000),
        )
    return path


QUERY = """
import polars as pl
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(2)
def count(): return table.to_pyarrow_table().num_rows
def in_pool(): return pool.submit(count).result()
count()
for act in (count, in_pool):
    def function(rows): return rows.with_columns(n=pl.lit(act(), dtype=pl.Int64))
    frame = pl.LazyFrame({"x": range(400_000), "n": 0}, schema={"x": pl.Int64, "n": pl.Int64})
    found = frame.map_batches(function, streamable=True).collect(engine="ENGINE")
    assert found["n"].unique().to_list() == [400_000]
    columns = [pl.col("x").map_batches(lambda x: pl.Series([act()]), return_dtype=pl.Int64,
               returns_scalar=True).alias(f"n{n}") for n in range(6)]
    assert set(frame.select(columns).collect(engine="ENGINE").row(0)) == {400_000}
answer("ended")
"""


@pytest.mark.parametrize("engine", ["streaming", "in-memory"])
@pytest.mark.parametrize("threads", [1, 2])
def test_scans_in_functions_of_polars_end(large: Path, engine: str, threads: int) -> None:
    assert run(large, QUERY.replace("ENGINE", engine), threads) == "ended"


FORK = """
import gc, warnings, weakref
warnings.simplefilter("ignore", DeprecationWarning)  # of a fork with threads
faulthandler.cancel_dump_traceback_later()  # its thread would not be in the child
begun = table.scan().to_batches()
first = next(begun).num_rows
[query] = map(weakref.ref, polars_rows._RUNNING)
child = os.fork()
if child == 0:
    assert polars_rows.read_large(table.scan()) is None
    assert table.to_pyarrow_table().num_rows == 400_000
    assert first + sum(batch.num_rows for batch in begun) == 400_000
    del begun
    gc.collect()
    assert query() is not None  # freeing it could take a lock that a thread of the parent holds
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert first + sum(batch.num_rows for batch in begun) == 400_000
assert query() is None
answer("ended")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_scans_after_a_fork_end(large: Path) -> None:
    assert run(large, FORK) == "ended"


ABANDONED = """
import polars as pl
for _ in range(40):
    for batch in table.scan().to_batches():
        break
begun = [table.scan().to_batches() for _ in range(40)]
assert all(next(one).num_rows for one in begun)
assert pl.scan_parquet(sys.argv[1] + "/*.parquet").select(pl.len()).collect().item() == 400_000
assert table.to_pyarrow_table().num_rows == 400_000
faulthandler.cancel_dump_traceback_later()
answer("ended")
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_abandoned_scans_block_nothing(large: Path, threads: int) -> None:
    assert run(large, ABANDONED, threads) == "ended"


def test_a_scan_that_a_query_of_polars_continues(large: Path) -> None:
    script = """
import polars as pl
from polars.io.plugins import register_io_source
begun = table.scan(["id"]).to_batches()
first = next(begun)
lazy = register_io_source(
    lambda *_: (pl.from_arrow(batch) for batch in begun), schema={"id": pl.Int64}
)
found = lazy.collect(engine="streaming")
answer(sorted([*first.column(0).to_pylist(), *found["id"]]) == list(range(400_000)))
"""
    assert run(large, script, 1) == "True"


def test_warnings_that_are_errors(large: Path) -> None:
    script = (
        "import polars\npolars.Config.warn_unstable(True)\n"
        "answer(table.to_pyarrow_table().num_rows)\n"
    )
    assert run(large, script) == "400000"


INTERRUPTED = """
import signal
signal.signal(signal.SIGALRM, signal.default_int_handler)
assert table.to_pyarrow_table().num_rows == 400_000  # Polars ignores interrupts of its imports
for number in range(20):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.002 * number + 0.001)
        while True:
            assert table.to_pyarrow_table().num_rows == 400_000
    except KeyboardInterrupt:
        pass
answer(table.to_pyarrow_table().num_rows)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no timers with signals here")
def test_an_interrupted_scan_blocks_nothing(large: Path) -> None:
    assert run(large, INTERRUPTED) == "400000"


def test_many_scans_at_once(large: Path) -> None:
    table = DeltaTable(large)
    scan = table.scan()

    def read(number: int) -> bool:
        found = (scan if number % 2 else table.scan(["id", "s"])).to_table()
        ids: list[Any] = found["id"].to_pylist()
        return sorted(ids) == list(range(400_000))

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(read, range(12)))

    async def gathered() -> list[int]:
        counts = [asyncio.to_thread(lambda: table.to_pyarrow_table().num_rows) for _ in range(6)]
        return await asyncio.gather(*counts)

    assert asyncio.run(gathered()) == [400_000] * 6


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="sizes are read from /proc")
def test_scans_leave_no_memory(large: Path) -> None:
    table = DeltaTable(large)

    def resident_mb() -> float:
        gc.collect()
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * 4096 / 1e6

    def read(times: int) -> float:
        for _ in range(times):
            assert table.to_pyarrow_table().num_rows == 400_000
        return resident_mb()

    before = read(20)
    assert read(40) - before < 100  # 40 results have 300 MB


@pytest.mark.parametrize(("length", "is_added_up"), [(12, False), (13, True)])
def test_the_lengths_of_short_strings_are_not_added_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int, *, is_added_up: bool
) -> None:
    calls: list[int] = []
    real = polars_rows._parts

    def counted(rows: pl.DataFrame, constant_bytes: int) -> Iterator[pl.DataFrame]:
        calls.append(rows.height)
        return real(rows, constant_bytes)

    monkeypatch.setattr(polars_rows, "_parts", counted)
    rows = pa.table({"id": range(100), "s": ["x" * length] * 99 + [None]})
    write_deltalake(tmp_path, rows)
    assert by_polars(DeltaTable(tmp_path).scan()).equals(rows)
    assert bool(calls) == is_added_up


def test_many_short_strings_are_returned_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polars_rows, "PART_BYTES", 1_000)
    write_deltalake(tmp_path, pa.table({"s": ["short"] * 1_000}))
    batches = read_large(DeltaTable(tmp_path).scan())
    assert batches is not None
    assert max(batch.num_rows for batch in batches) <= 200
