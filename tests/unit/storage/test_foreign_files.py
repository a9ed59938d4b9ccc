"""Files that a log names in other stores: the log is not to be trusted with the reader's rights."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog._util.paths import are_foreign
from deltalog.errors import DataFileUnreadableError, InvalidInputError, UnsafePathError
from deltalog.storage import open_store
from deltalog.storage.options import trusted_locations

ROWS = pa.table({"x": [1, 2, 3]})


def private(tmp_path: Path) -> Path:
    """A file of the reader's, which is not the table's."""
    path = tmp_path / "home" / "private.parquet"
    path.parent.mkdir()
    pq.write_table(ROWS, path)
    return path


def hostile(location: str, named: str, **options: Any) -> DeltaTable:
    """A table whose log names a file: the one that it had, under another path."""
    write_deltalake(location, ROWS, **options)
    store = open_store(location, **options)
    lines = [orjson.loads(line) for line in store.read(f"_delta_log/{0:020}.json").splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["path"] = named
    store.put(f"_delta_log/{0:020}.json", b"\n".join(map(orjson.dumps, lines)))
    return DeltaTable(location, **options)


@pytest.mark.parametrize("form", ["local://{}", "local:{}", "file://{}", "file:{}", "{}"])
def test_a_table_elsewhere_does_not_read_local_files(form: str, tmp_path: Path) -> None:
    table = hostile(f"memory:///{uuid.uuid4()}", form.format(private(tmp_path)))
    for read in (
        table.to_pyarrow_table,
        lambda: table.to_pyarrow_dataset().to_table(),
        lambda: table.delete("x = 1"),
        lambda: table.optimize.z_order(["x"]),
        lambda: table.clone(f"memory:///{uuid.uuid4()}", shallow=False),
    ):
        with pytest.raises(UnsafePathError):
            read()
    assert table.version() == 0


def test_the_caller_may_trust_a_place_and_no_other(tmp_path: Path) -> None:
    path = private(tmp_path)
    for trusted in (str(path.parent), f"{path.parent}/", [f"file://{tmp_path}"], "s3://x, file:/"):
        options = {"storage_options": {"trusted_locations": trusted}}
        table = hostile(f"memory:///{uuid.uuid4()}", str(path), **options)
        assert table.to_pyarrow_table() == ROWS
    for trusted in (f"{tmp_path}/hom", "memory:///", [], ""):
        options = {"storage_options": {"trusted_locations": trusted}}
        table = hostile(f"memory:///{uuid.uuid4()}", str(path), **options)
        with pytest.raises(UnsafePathError, match="trusted_locations"):
            table.to_pyarrow_table()


def test_what_is_no_list_of_places_is_refused() -> None:
    assert trusted_locations({}) == ()
    assert trusted_locations({"trusted_locations": "a, b"}) == ("a", "b")
    for wrong in (1, [1], {"a": "b"}):
        with pytest.raises(InvalidInputError, match="list of locations"):
            trusted_locations({"trusted_locations": wrong})


@pytest.mark.parametrize(
    ("path", "root", "expected"),
    [
        ("a/b", "s3://bucket/t", False),
        ("s3://bucket/other/b", "s3://bucket/t", False),
        ("s3a://bucket/b", "s3://bucket/t", False),
        ("s3://bucket2/b", "s3://bucket/t", True),
        ("gs://bucket/b", "s3://bucket/t", True),
        ("/etc/passwd", "s3://bucket/t", True),
        ("local://~/x", "s3://bucket/t", True),
        ("file:///elsewhere/b", "/t", False),
        ("s3://bucket/b", "/t", True),
        ("abfss://c@one.host/b", "az://c/t", False),
        (
            "abfss://c@one.host/b",
            "abfss://c@two.host/t",
            True,
        ),
        (
            "abfss://d@one.host/b",
            "abfss://c@one.host/t",
            True,
        ),
        ("s3%3A//bucket2/b", "s3://bucket/t", True),
    ],
)
def test_a_store_is_told_by_scheme_and_authority(path: str, root: str, expected: bool) -> None:
    assert are_foreign(pa.array([path, "p=1/x"]), root).to_pylist() == [expected, False]


def test_a_deep_clone_copies_only_what_the_log_says_that_it_is(tmp_path: Path) -> None:
    secret = tmp_path / "hostname"
    secret.write_text("secret")
    table = hostile(str(tmp_path / "t"), str(secret))
    with pytest.raises(UnsafePathError, match="allow_foreign_files"):
        table.clone(tmp_path / "copy", shallow=False)
    with pytest.raises(UnsafePathError, match="allow_foreign_files"):
        table.clone(tmp_path / "copy")
    with pytest.raises(DataFileUnreadableError, match="expected a Parquet file"):
        table.clone(tmp_path / "copy", shallow=False, allow_foreign_files=True)
    inside = hostile(str(tmp_path / "u"), "notes.txt")
    (tmp_path / "u" / "notes.txt").write_text("secret")
    with pytest.raises(DataFileUnreadableError, match="expected a Parquet file"):
        inside.clone(tmp_path / "copy", shallow=False)
    copies = tmp_path / "copy"
    assert not any(b"secret" in file.read_bytes() for file in copies.rglob("*") if file.is_file())
