"""Workers without this deltalog, and an old PySpark, are named."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import deltalog.spark
from deltalog import write_deltalake
from deltalog.spark.session.environment import UnsupportedPySparkError, check_pyspark
from deltalog.spark.source import DeltalogSource
from deltalog.spark.writing.options import WriteOptions
from deltalog.spark.writing.plan import open_to_write
from deltalog.spark.writing.writer import BatchWriter
from tests.support.spark_workers import own_environment, packed, sent

SITE = sysconfig.get_path("purelib")
LOAD = "import pickle, sys; pickle.loads(sys.stdin.buffer.read())"


@pytest.fixture
def another(tmp_path: Path) -> Path:
    """A directory with another version of deltalog."""
    package = tmp_path / "another" / "deltalog"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('__version__ = "0.0.9"\n')
    return package.parent


def python(*arguments: str, path: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run the tests' Python, or another one, with a path of its own."""
    program = arguments if Path(arguments[0]).is_absolute() else (sys.executable, *arguments)
    return subprocess.run(
        program,
        check=False,
        capture_output=True,
        env=own_environment(PYTHONPATH=path),
        cwd=Path(__file__).parents[2],
        timeout=300,
        input=given,
    )


def errors_of(told: subprocess.CompletedProcess[bytes]) -> str:
    return told.stderr.decode().strip().rpartition("\n")[2]


def travelling(place: Path) -> list[object]:
    """What PySpark sends to workers of the format."""
    write_deltalake(place, pa.table({"id": [1]}))
    source = DeltalogSource({"path": str(place)})
    schema = source.schema()
    return [
        source.reader(schema),
        source.streamReader(schema),
        BatchWriter(open_to_write(place), schema, WriteOptions()),
    ]


def test_what_travels_arrives(tmp_path: Path) -> None:
    for one in travelling(tmp_path / "t"):
        assert type(sent(one)) is type(one)


def test_another_deltalog_is_named_before_anything_of_it_is_loaded(
    tmp_path: Path, another: Path
) -> None:
    for one in travelling(tmp_path / "t"):
        told = python("-c", LOAD, path=str(another), given=packed(one))
        assert f"expected deltalog {deltalog.__version__}, as the driver has, found 0.0.9" in (
            errors_of(told)
        )


def test_a_missing_deltalog_is_named(tmp_path: Path) -> None:
    # Its site-packages are the tests', but for what is linked there, as deltalog is.
    venv.create(tmp_path / "bare", with_pip=False)
    bare = next((tmp_path / "bare" / "bin").glob("python3"))
    told = python(str(bare), "-c", "import deltalog", path=SITE)
    if told.returncode == 0:
        pytest.skip("deltalog is installed as a wheel")
    (one, *_) = travelling(tmp_path / "t")
    told = python(str(bare), "-c", LOAD, path=SITE, given=packed(one))
    assert "found none (No module named 'deltalog')" in errors_of(told)


@pytest.mark.usefixtures("spark")  # and so a JVM
def test_a_session_whose_workers_have_another_deltalog(another: Path) -> None:
    told = python("-m", "tests.support.spark_elsewhere", str(another), path="")
    found = [json.loads(line) for line in told.stdout.splitlines() if line.startswith(b"{")]
    assert [(one["way"], one["error"]) for one in found] == [
        ("a job", "WorkerMismatchError"),
        ("a frame", "PythonException"),  # its action is Spark's, and so is the error
        ("before a frame", "WorkerMismatchError"),
        ("no workers", None),
        ("no workers that write", None),
    ]
    assert all("install one version" in one["text"] for one in found[:3])
    assert found[3]["text"] == "2"  # the append has left nothing


def test_a_checked_session_runs_no_more_jobs(spark: SparkSession, tmp_path: Path) -> None:
    from deltalog.spark.session import workers

    write_deltalake(tmp_path, pa.table({"id": [1]}))
    assert deltalog.spark.read(spark, tmp_path, native=False).count() == 1
    known = set(workers._checked)
    assert known
    workers.check_workers(spark)
    assert workers._checked == known


def test_a_process_that_reads_loads_nothing_that_writes(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    code = (
        "import sys; from deltalog.spark.source import DeltalogSource; "
        "source = DeltalogSource({'path': sys.argv[1]}); source.reader(source.schema()); "
        "print(*sys.modules)"
    )
    loaded = set(python("-c", code, str(tmp_path), path="").stdout.decode().split())
    assert "deltalog.spark.reading.batch_source" in loaded
    for name in ("data.write", "transaction", "operations.changes", "table", "spark.writing"):
        assert f"deltalog.{name}" not in loaded
        assert importlib.util.find_spec(f"deltalog.{name}") is not None  # it has not been renamed


def test_an_old_pyspark_is_named_when_the_package_is_imported(tmp_path: Path) -> None:
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").write_text('__version__ = "4.0.1"\n')
    told = python("-c", "import deltalog.spark", path=str(tmp_path))
    assert errors_of(told) == (
        "deltalog.spark.session.environment.UnsupportedPySparkError: deltalog.spark needs "
        "PySpark 4.1 or newer, but this Python has 4.0.1: install 'pyspark>=4.1' or "
        "'deltalog[spark]'"
    )


@pytest.mark.parametrize("version", ["4.1.0", "4.10.0.dev1", "5.0", "weekly"])
def test_newer_pysparks_are_let_through(version: str) -> None:
    check_pyspark(version)
    with pytest.raises(UnsupportedPySparkError):
        check_pyspark("3.5.7")
