"""Files of another writer: what the log says of them, and how they come into the table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog._util.paths import FileInfo
from deltalog.data.write import WriteSpec, copied_stats
from deltalog.data.write.adopted_files import describe_staged
from deltalog.errors import (
    DataFileMissingError,
    DataFileUnreadableError,
    InternalError,
    StorageError,
    UnsafePathError,
)
from deltalog.schema import ArrayType, Field, MapType, StructType
from deltalog.storage import open_store
from deltalog.storage.parquet.reader import ParquetReader
from deltalog.storage.staging import discard_staged, take_staged
from tests.support.logs import DictStore
from tests.support.writes import spec_of, table

STAGED: Final = ".staged.0123456789abcdef0123456789abcdef.tmp"
PLAIN: Final = (Field("a", "long"), Field("t", "string"))
ROWS: Final = pa.table({"a": [3, None, 1], "t": ["x" * 40, "b", "a" * 5000]})


def spec_at(
    root: Path, *fields: Field, features: Sequence[str] = (), **properties: str
) -> WriteSpec:
    (root / STAGED).mkdir()
    made = table(*(fields or PLAIN), features=features, **properties)
    return spec_of(made, store=open_store(root))


def staged(spec: WriteSpec) -> list[FileInfo]:
    return sorted(spec.store.list_all(STAGED), key=lambda file: file.path)


def put(root: Path, name: str, rows: pa.Table, **options: Any) -> Path:
    path = root / STAGED / name
    pq.write_table(rows, path, **options)
    return path


def test_a_file_gets_its_statistics_and_then_its_name(tmp_path: Path) -> None:
    spec = spec_at(tmp_path)
    path = put(tmp_path, "f.parquet", ROWS, row_group_size=2)
    size = path.stat().st_size
    (tmp_path / STAGED / "_SUCCESS").touch()
    (file,) = [one for one in staged(spec) if one.path.endswith("f.parquet")]
    written = describe_staged(spec, [file])
    (add,) = written.adds
    assert (add.path, add.size_bytes, add.data_change) == ("f.parquet", size, True)
    assert add.modification_time_ms == file.modified_ms
    assert add.partition_values == {}
    assert add.stats == (
        '{"numRecords":3,"minValues":{"a":1,"t":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},'
        '"maxValues":{"a":3,"t":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\x7f"},'
        '"nullCount":{"a":1,"t":0}}'
    )
    assert (written.num_rows, written.num_bytes) == (3, size)
    take_staged(spec.store, STAGED, written.paths)
    assert [one.name for one in tmp_path.iterdir()] == ["f.parquet"]
    assert pq.read_table(tmp_path / "f.parquet").equals(ROWS)


def test_files_keep_their_order_and_those_without_rows_are_left_out(tmp_path: Path) -> None:
    spec = spec_at(tmp_path)
    for name, count in (("c", 1), ("a", 0), ("b", 2), ("d", 0)):
        put(tmp_path, f"{name}.parquet", ROWS.slice(0, count))
    written = describe_staged(spec, staged(spec))
    assert [add.path for add in written.adds] == ["b.parquet", "c.parquet"]
    take_staged(spec.store, STAGED, written.paths)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["b.parquet", "c.parquet"]
    nothing = describe_staged(spec, [])
    assert (nothing.adds, nothing.num_rows, nothing.num_bytes) == ((), 0, 0)


def test_statistics_follow_the_table_s_properties(tmp_path: Path) -> None:
    spec = spec_at(tmp_path, features=("deletionVectors",), dataSkippingNumIndexedCols="1")
    put(tmp_path, "f.parquet", ROWS)
    (add,) = describe_staged(spec, staged(spec)).adds
    assert add.stats == (
        '{"numRecords":3,"minValues":{"a":1},"maxValues":{"a":3},"nullCount":{"a":1},'
        '"tightBounds":true}'
    )


LISTS = (Field("l", ArrayType("long")), Field("m", MapType("string", "long")))
WRONG: Final[dict[str, tuple[Sequence[Field], pa.Table]]] = {
    "another name": (PLAIN, pa.table({"b": [1], "t": ["x"]})),
    "another case": (PLAIN, pa.table({"A": [1], "t": ["x"]})),
    "another type": (PLAIN, pa.table({"a": ["1"], "t": ["x"]})),
    "a narrower type": (PLAIN, pa.table({"a": pa.array([1], pa.int32()), "t": ["x"]})),
    "another order": (PLAIN, pa.table({"t": ["x"], "a": [1]})),
    "a column less": (PLAIN, pa.table({"a": [1]})),
    "a column more": (PLAIN, pa.table({"a": [1], "t": ["x"], "u": [1]})),
    "a time of no zone": (
        [Field("at", "timestamp")],
        pa.table({"at": pa.array([0], pa.timestamp("us"))}),
    ),
    "a time of a zone": (
        [Field("at", "timestamp_ntz")],
        pa.table({"at": pa.array([0], pa.timestamp("us", "UTC"))}),
    ),
    "milliseconds": (
        [Field("at", "timestamp")],
        pa.table({"at": pa.array([0], pa.timestamp("ms", "UTC"))}),
    ),
    "another scale": (
        [Field("n", "decimal(10,2)")],
        pa.table({"n": pa.array([1], pa.decimal128(10, 3))}),
    ),
    "a struct for a list": (
        LISTS[:1],
        pa.table({"l": pa.array([{"element": 1}])}),
    ),
    "a list of others": (LISTS[:1], pa.table({"l": [["x"]]})),
    "a map of others": (
        LISTS[1:],
        pa.table({"m": pa.array([[("k", "v")]], pa.map_(pa.string(), pa.string()))}),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_files_with_other_columns_are_refused(tmp_path: Path, name: str) -> None:
    fields, rows = WRONG[name]
    features = ("timestampNtz",) if name == "a time of a zone" else ()
    spec = spec_at(tmp_path, *fields, features=features)
    put(tmp_path, "f.parquet", rows)
    with pytest.raises(DataFileUnreadableError, match=r"f.parquet.*expected the columns .*, found"):
        describe_staged(spec, staged(spec))
    assert [one.name for one in tmp_path.iterdir()] == [STAGED]


def test_int96_is_an_instant_and_no_time_of_a_clock(tmp_path: Path) -> None:
    moments = pa.array([-62_135_596_800_000_000, None, 253_402_300_799_999_000], pa.int64())
    rows = pa.table({"at": moments.cast(pa.timestamp("us"))})
    spec = spec_at(tmp_path, Field("at", "timestamp"))
    put(tmp_path, "f.parquet", rows, use_deprecated_int96_timestamps=True)
    (add,) = describe_staged(spec, staged(spec)).adds
    assert add.stats == (
        '{"numRecords":3,"minValues":{"at":"0001-01-01T00:00:00.000Z"},'
        '"maxValues":{"at":"9999-12-31T23:59:59.999Z"},"nullCount":{"at":1}}'
    )
    clocks = table(Field("at", "timestamp_ntz"), features=("timestampNtz",))
    with pytest.raises(DataFileUnreadableError, match="expected the columns at"):
        describe_staged(spec_of(clocks, store=spec.store), staged(spec))


@pytest.mark.parametrize("cut", [0, 3, 12, -1, -9, -40])
def test_files_that_are_cut_off_are_refused(tmp_path: Path, cut: int) -> None:
    spec = spec_at(tmp_path)
    path = put(tmp_path, "f.parquet", ROWS)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(DataFileUnreadableError):
        describe_staged(spec, staged(spec))


def test_files_whose_values_are_damaged_are_refused_where_they_are_decoded(tmp_path: Path) -> None:
    spec = spec_at(tmp_path, Field("x", "double"))
    path = put(tmp_path, "f.parquet", pa.table({"x": [float(n) for n in range(500)]}))
    damaged = bytearray(path.read_bytes())
    damaged[4:200] = b"\xff" * 196
    path.write_bytes(damaged)
    with pytest.raises(DataFileUnreadableError):
        describe_staged(spec, staged(spec))


def test_a_file_that_is_gone_is_told(tmp_path: Path) -> None:
    spec = spec_at(tmp_path)
    with pytest.raises(DataFileMissingError):
        describe_staged(spec, [FileInfo(f"{STAGED}/gone.parquet", 10, 0)])


@pytest.mark.parametrize("is_known", [True, False])
def test_bounds_of_a_writer_that_cuts_nothing_are_not_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_known: bool
) -> None:
    decoded: list[int] = []
    read, collect = ParquetReader.read_leaves, copied_stats.collect_copied

    def counting(reader: ParquetReader, leaves: Any, *rest: Any) -> pa.Table:
        decoded.extend(leaves)
        return read(reader, leaves, *rest)

    def trusting(*given: Any, **named: Any) -> None:
        collect(*given, **{**named, "cuts_nothing": is_known})

    monkeypatch.setattr(ParquetReader, "read_leaves", counting)
    monkeypatch.setattr(copied_stats, "CUTS_NOTHING", ("nobody ",))
    monkeypatch.setattr("deltalog.data.write.adopted_files.collect_copied", trusting)
    spec = spec_at(tmp_path)
    put(tmp_path, "f.parquet", pa.table({"a": [1, 2], "t": ["a", "b"]}))
    # pyarrow says of each bound that it is exact: as if it did not, like parquet-mr.
    monkeypatch.setattr(copied_stats, "_MAX_IS_EXACT", 70)
    (add,) = describe_staged(spec, staged(spec)).adds
    assert '"maxValues":{"a":2,"t":"b"}' in (add.stats or "")
    assert decoded == ([] if is_known else [1])


def test_a_name_that_is_taken_is_never_replaced(tmp_path: Path) -> None:
    """Nor is it deleted with those that were moved before."""
    spec = spec_at(tmp_path)
    for name in ("e.parquet", "f.parquet", "g.parquet"):
        put(tmp_path, name, ROWS)
    (tmp_path / "f.parquet").write_bytes(b"another's")
    (tmp_path / "g.parquet").write_bytes(b"another's, too")
    with pytest.raises(FileExistsError):
        take_staged(spec.store, STAGED, ["e.parquet", "f.parquet", "g.parquet"])
    assert (tmp_path / "f.parquet").read_bytes() == b"another's"
    assert (tmp_path / "g.parquet").read_bytes() == b"another's, too"
    assert not (tmp_path / "e.parquet").exists()


def test_what_is_thrown_away_may_be_gone(tmp_path: Path) -> None:
    spec = spec_at(tmp_path)
    put(tmp_path, "f.parquet", ROWS)
    written = describe_staged(spec, staged(spec))
    for _ in range(2):
        discard_staged(spec.store, STAGED)
        assert list(tmp_path.iterdir()) == []
    with pytest.raises(StorageError, match="another machine"):
        take_staged(spec.store, STAGED, written.paths)


def test_a_staging_directory_that_became_a_link_is_not_emptied(tmp_path: Path) -> None:
    root, outside = tmp_path / "t", tmp_path / "outside"
    outside.mkdir()
    root.mkdir()
    spec = spec_at(root)
    put(root, "f.parquet", ROWS)
    (root / STAGED).rename(outside / "files")
    (root / STAGED).symlink_to(outside / "files")
    with pytest.raises(UnsafePathError):
        take_staged(spec.store, STAGED, ["f.parquet"])
    discard_staged(spec.store, STAGED)
    assert [path.name for path in (outside / "files").iterdir()] == ["f.parquet"]


def test_other_stores_have_no_staged_files() -> None:
    with pytest.raises(InternalError, match="no local paths"):
        discard_staged(DictStore(), STAGED)


def test_a_table_of_nested_columns(tmp_path: Path) -> None:
    inner = StructType([Field("x", "double"), Field("y", "string")])
    spec = spec_at(tmp_path, Field("s", inner), *LISTS)
    rows = pa.table(
        {
            "s": pa.array([None, {"x": float("nan"), "y": None}, {"x": -0.0, "y": ""}]),
            "l": pa.array([None, [], [None, 1]], pa.list_(pa.int64())),
            "m": pa.array([[("k", None)], None, []], pa.map_(pa.string(), pa.int64())),
        }
    )
    put(tmp_path, "f.parquet", rows)
    (add,) = describe_staged(spec, staged(spec)).adds
    assert add.stats == (
        '{"numRecords":3,"minValues":{"s":{"x":-0.0,"y":""}},'
        '"maxValues":{"s":{"x":"NaN","y":""}},"nullCount":{"s":{"x":1,"y":2},"l":1,"m":1}}'
    )
