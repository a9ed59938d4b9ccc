"""A file or directory without permission is reported as such, not as missing or deleted."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import AccessDeniedError, StorageError
from deltalog.storage.faults import cleanup_level, storage_error

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")

_UNPRIVILEGED: Final = "-dac_override,-dac_read_search"
"""The capabilities with which root may open any file."""
_START: Final = "import os; os.chdir({path!r}); import deltalog; from deltalog import *\n"
_ROWS: Final = [{"id": number, "day": "ab"[number % 2]} for number in range(4)]


def error_of(code: str, path: Path) -> str:
    """The last line of the errors of a program whose user may not open all files of `path`."""
    command = [sys.executable, "-c", _START.format(path=str(path)) + code]
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root can open any file, and there is no setpriv")
        limits = [f"--bounding-set={_UNPRIVILEGED}", f"--inh-caps={_UNPRIVILEGED}"]
        command = ["setpriv", *limits, *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode, done.stdout
    return done.stderr


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A directory whose files get their permissions back."""
    yield tmp_path
    for directory in [tmp_path, *tmp_path.rglob("*")]:
        if directory.is_dir():
            directory.chmod(0o755)


_READS: Final = (
    "DeltaTable('t').to_pandas()",
    "DeltaTable('t').to_polars(lazy=True).collect()",
    "DeltaTable('t').to_duckdb().fetchall()",
    "deltalog.sql('SELECT sum(id) FROM t', t='t').to_pylist()",
    "DeltaTable('t').to_pyarrow_dataset().to_table()",
    "DeltaTable('t').delete('id > 0')",
    "DeltaTable('t').upsert([{'id': 2, 'day': 'a'}], ['id'])",
)


@pytest.mark.parametrize("code", _READS)
def test_a_partition_directory_without_permission(code: str, place: Path) -> None:
    write_deltalake(place / "t", _ROWS, partition_by=["day"])
    (place / "t" / "day=a").chmod(0)
    error = error_of(code, place)
    assert "AccessDeniedError: cannot read" in error
    directory = str(place / "t" / "day=a")
    assert f"this user may not open the directory '{directory}'; change its permissions" in error


@pytest.mark.parametrize("code", _READS[2:4])
def test_a_data_file_without_permission(code: str, place: Path) -> None:
    write_deltalake(place / "t", _ROWS)
    file = next((place / "t").glob("*.parquet"))
    file.chmod(0)
    error = error_of(code, place)
    assert "AccessDeniedError: cannot read" in error
    assert f"this user may not open the file '{file}'" in error


@pytest.mark.parametrize("code", _READS[1:3])
def test_a_deletion_vector_without_permission(code: str, place: Path) -> None:
    rows = {"id": list(range(50_000))}
    write_deltalake(place / "t", rows, configuration={"delta.enableDeletionVectors": "true"})
    DeltaTable(place / "t").delete("hash(id) % 2 = 0")
    (vectors,) = (place / "t").rglob("*.bin")
    vectors.chmod(0)
    error = error_of(code, place)
    assert "AccessDeniedError: cannot read" in error
    assert f"this user may not open the file '{vectors}'" in error


def test_a_checkpoint_without_permission(place: Path) -> None:
    write_deltalake(place / "t", _ROWS)
    DeltaTable(place / "t").create_checkpoint()
    (file,) = (place / "t" / "_delta_log").glob("*.checkpoint.parquet")
    file.chmod(0)
    error = error_of("DeltaTable('t').to_pandas()", place)
    assert f"AccessDeniedError: cannot read '{file}': permission denied: " in error


@pytest.mark.parametrize(
    "code", ["DeltaTable('t')", "write_deltalake('t', [])", "DeltaTable.is_deltatable('t')"]
)
def test_a_log_without_permission(code: str, place: Path) -> None:
    write_deltalake(place / "t", _ROWS)
    (place / "t").chmod(0)
    error = error_of(code, place)
    assert "AccessDeniedError: cannot list" in error
    assert f"this user may not open the directory '{place / 't'}'" in error


@pytest.mark.parametrize(
    ("code", "directory"),
    [
        ("write_deltalake('t', [{'id': 9}], mode='append')", "t"),
        ("write_deltalake('t/new', [{'id': 9}])", "t"),
        ("DeltaTable('t').delete('id = 1')", "t"),
        ("DeltaTable('t').alter.set_table_properties({'a.b': '1'})", "t/_delta_log"),
        ("DeltaTable('t').create_checkpoint()", "t/_delta_log"),
    ],
)
def test_a_read_only_directory_is_named(code: str, directory: str, place: Path) -> None:
    write_deltalake(place / "t", _ROWS)
    (place / "t" / "_delta_log").chmod(0o555)
    (place / "t").chmod(0o555)
    error = error_of(code, place)
    last = error.rstrip().splitlines()[-1]
    assert f"may not write to the directory '{place / directory}'" in last
    assert "AccessDeniedError: cannot " in last
    assert "; change its permissions, or run as a user who may" in last
    assert ".tmp" not in last
    assert "could not delete" not in error


def test_doctor_does_not_advise_a_backup(place: Path) -> None:
    write_deltalake(place / "t", _ROWS, partition_by=["day"])
    (place / "t" / "day=a").chmod(0)
    report = error_of("raise SystemExit(repr(DeltaTable('t').doctor()))", place)
    assert f"may not open the directory '{place / 't' / 'day=a'}" in report
    assert "backup" not in report


def test_the_name_of_a_temporary_file_is_not_shown() -> None:
    error = OSError(30, "Read-only file system", f".part.{'0' * 32}.tmp")
    found = str(storage_error(error, operation="write", path="/data/t/part"))
    assert found == "cannot write '/data/t/part': OSError: [Errno 30] Read-only file system"


def test_a_clean_up_that_fails_for_the_same_reason_is_no_warning() -> None:
    denied = AccessDeniedError("no")
    try:
        raise denied
    except AccessDeniedError:
        levels = cleanup_level(AccessDeniedError("no")), cleanup_level(StorageError("no"))
    assert levels == (20, 30)
    assert cleanup_level(denied) == 30
