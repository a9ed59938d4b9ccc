"""A file or directory without permission is reported as such, not as missing or deleted."""

from __future__ import annotations

import errno
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
    assert "AccessDeniedError: cannot " in error
    assert "cannot read" in error
    directory = str(place / "t" / "day=a")
    assert f"this user may not open the directory '{directory}', which belongs to " in error
    assert "; change its permissions, or run as a user who may" in error


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
    assert found == (
        "cannot write '/data/t/part': OSError: [Errno 30] Read-only file system; "
        "the file system is mounted read-only: mount it for writing, or choose another location"
    )


def test_a_clean_up_that_fails_for_the_same_reason_is_no_warning() -> None:
    denied = AccessDeniedError("no")
    try:
        raise denied
    except AccessDeniedError:
        levels = cleanup_level(AccessDeniedError("no")), cleanup_level(StorageError("no"))
    assert levels == (20, 30)
    assert cleanup_level(denied) == 30


_CHANGES: Final = {
    "write_deltalake('t', [{'id': 9, 'day': 'a'}], mode='append')": "run WRITE on",
    "write_deltalake('t', [{'id': 9, 'day': 'a'}], mode='overwrite')": "run WRITE on",
    "DeltaTable('t').delete()": "run DELETE on",
    "DeltaTable('t').update({'id': '5'})": "run UPDATE on",
    "DeltaTable('t').upsert([{'id': 2, 'day': 'a'}], ['id'])": "run MERGE on",
    "DeltaTable('t').optimize.compact()": "run OPTIMIZE on",
    "DeltaTable('t').restore(0)": "run RESTORE on",
    "DeltaTable('t').vacuum(0, False, enforce_retention_duration=False)": "run VACUUM on",
    "DeltaTable('t').create_checkpoint()": "write a checkpoint of",
    "DeltaTable('t').compact_logs(0, 1)": "compact the log of",
    "DeltaTable('t').generate()": "write manifests of",
    "deltalog.sql('DELETE FROM t WHERE id = 2', t=DeltaTable('t'))": "run DELETE on",
    "DeltaTable.create('t/new', 'id long')": "create a table at",
}


@pytest.mark.parametrize("code", _CHANGES)
def test_a_refused_change_names_the_operation_and_the_owner(code: str, place: Path) -> None:
    write_deltalake(place / "t", _ROWS)
    write_deltalake(place / "t", _ROWS, mode="overwrite")
    for _ in range(2):
        write_deltalake(place / "t", _ROWS, mode="append")
    for directory in (place / "t", place / "t" / "_delta_log"):
        directory.chmod(0o555)
    last = error_of(code, place).rstrip().splitlines()[-1]
    assert f"AccessDeniedError: cannot {_CHANGES[code]} {place / 't'}" in last
    assert ", which belongs to " in last
    assert "(mode dr-xr-xr-x)" in last
    assert last.count(": cannot ") == 2


@pytest.mark.skipif(
    os.name == "nt" or os.geteuid() != 0, reason="only root may become another user"
)
def test_a_process_with_another_effective_user_gets_the_same_advice(place: Path) -> None:
    write_deltalake(place / "t", _ROWS)
    shown = subprocess.run(
        [
            sys.executable,
            "-c",
            (
                "import os\nfrom deltalog.storage.faults import denial\nos.seteuid(65534)\n"
                f"print(denial(PermissionError(13, 'no'), {str(place / 't' / 'x')!r}))"
            ),
        ],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    assert "permission denied: this user may not " in shown
    assert "; change its permissions, or run as a user who may" in shown


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "free space"),
        (errno.EROFS, "mount it for writing"),
        (errno.ENAMETOOLONG, "shorten the location"),
        (errno.EMFILE, "ulimit -n"),
        (errno.ENOTDIR, "is a file"),
    ],
)
def test_other_failures_of_the_system_have_advice(number: int, advice: str) -> None:
    found = storage_error(OSError(number, os.strerror(number)), operation="write", path="/t/x")
    assert advice in str(found)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc")
def test_a_directory_that_the_system_does_not_create() -> None:
    with pytest.raises(StorageError) as caught:
        write_deltalake("/proc/deltalog/t", _ROWS)
    message = str(caught.value)
    assert message.startswith("cannot create a table at /proc/deltalog/t: cannot write ")
    assert "does not create the directory '/proc/deltalog'" in message
