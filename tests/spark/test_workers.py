"""Workers without this deltalog, and an old PySpark, are named."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import venv
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import deltalog.spark
from deltalog import write_deltalake
from deltalog.spark.reading import native
from deltalog.spark.reading.batch_source import BatchReader, CredentialedTaskReader
from deltalog.spark.session import workers
from deltalog.spark.session.environment import (
    UnsupportedPySparkError,
    WorkerMismatchError,
    check_pyspark,
)
from deltalog.spark.source import DeltalogSource
from deltalog.spark.writing.options import WriteOptions
from deltalog.spark.writing.plan import open_to_write
from deltalog.spark.writing.writer import BatchWriter
from tests.spark.conftest import CONNECT
from tests.support.spark_workers import own_environment, packed, sent

SOURCE = str(Path(deltalog.__file__).parents[1])
SITE = sysconfig.get_path("purelib")
BY_FUNCTIONS = [
    "read", "write", "delete", "update", "merge", "optimize", "vacuum", "checkpoint",
    "sql UPDATE", "sql OPTIMIZE", "sql DELETE FROM",
]  # fmt: skip
BY_FORMAT = ["format", "saved", "stream", "sink", "view", "statement"]
LOAD = "import pickle, sys; pickle.loads(sys.stdin.buffer.read())"


@pytest.fixture
def another(tmp_path: Path) -> Path:
    """A directory with another version of deltalog."""
    package = tmp_path / "another" / "deltalog"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('__version__ = "0.0.9"\n')
    return package.parent


def python(
    *arguments: str, path: str, given: bytes = b"", at: Path = Path(__file__).parents[2]
) -> subprocess.CompletedProcess[bytes]:
    """Run the tests' Python, or another one, with a path of its own."""
    program = arguments if Path(arguments[0]).is_absolute() else (sys.executable, *arguments)
    return subprocess.run(
        program,
        check=False,
        capture_output=True,
        env=own_environment(PYTHONPATH=path),
        cwd=at,
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
    reader, stream, writer = travelling(tmp_path / "t")
    assert type(sent(reader)) is BatchReader
    assert type(sent(stream)) is CredentialedTaskReader  # the part that tasks need
    assert type(sent(writer)) is BatchWriter


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


def bare_python(place: Path) -> tuple[str, str]:
    """A Python without libraries, and a directory that has the only one that Spark needs."""
    venv.create(place / "bare", with_pip=False)
    libraries = place / "libraries"
    libraries.mkdir()
    (libraries / "pyarrow").symlink_to(Path(SITE, "pyarrow"))
    return str(next((place / "bare" / "bin").glob("python3"))), str(libraries)


@pytest.mark.usefixtures("spark")  # and so a JVM
def test_a_session_whose_workers_have_another_deltalog(another: Path, tmp_path: Path) -> None:
    arguments = (str(another), *bare_python(tmp_path))
    told = python("-m", "tests.support.spark_elsewhere", *arguments, path=SOURCE)
    every = [json.loads(line) for line in told.stdout.splitlines() if line.startswith(b"{")]
    found, packaged = every[:5], every[5:]
    assert [(one["way"], one["error"]) for one in found] == [
        ("a job", "WorkerMismatchError"),
        ("a frame", "PythonException"),  # its action is Spark's, and so is the error
        ("before a frame", "WorkerMismatchError"),
        ("no workers", None),
        ("no workers that write", None),
    ]
    assert all("install one version" in one["text"] for one in found[:3])
    assert found[3]["text"] == "2"  # the append has left nothing
    names = ["wheel: read", "wheel: write", *BY_FUNCTIONS, *BY_FORMAT]
    assert [(one["way"], one["error"], one["jobs"]) for one in packaged] == [
        (name, "WorkerMismatchError", 1)  # the job that checks workers
        for name in names
    ]
    for one in packaged[:2]:  # Spark sends a wheel as a file that Python does not look at
        assert "found none (No module named 'deltalog')" in one["text"]
        assert one["text"].endswith("install one version on the driver and on every worker")
    for one in packaged[2:]:
        assert "deltalog.zip" in one["text"]
        assert "needs orjson (No module named 'orjson')" in one["text"]
        assert one["text"].endswith("or ship an environment with --archives")


LOCAL = """
from pyspark.sql import SparkSession
from deltalog.spark.session.workers import check_workers
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
try:
    check_workers(spark)
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.usefixtures("spark")  # and so a JVM
def test_a_local_session_of_an_environment_that_is_not_activated(tmp_path: Path) -> None:
    other, _ = bare_python(tmp_path)
    search = os.pathsep.join([str(Path(other).parent), os.environ["PATH"]])
    environment = {name: text for name, text in os.environ.items() if name != "PYSPARK_PYTHON"}
    told = subprocess.run(
        [sys.executable, "-c", LOCAL],
        env={**environment, "PATH": search, "PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.stdout.startswith("WorkerMismatchError"), told.stderr
    assert f"this local session starts {other}: activate the virtual environment, or set" in (
        told.stdout
    )


@pytest.mark.cluster
@pytest.mark.slow("starts a cluster of its own, and many Python processes")
@pytest.mark.usefixtures("spark")  # and so a JVM
def test_a_shipped_environment_that_the_driver_lacks(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "python"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)
    archive = tmp_path / "env.tar.gz"
    with tarfile.open(archive, "w:gz") as packed_environment:
        packed_environment.add(program.parent, "bin")
    here = tmp_path / "here"
    here.mkdir()
    path = os.pathsep.join(map(str, (Path(__file__).parents[2], *map(Path, sys.path[1:]))))
    told = python("-m", "tests.support.spark_shipped", str(archive), path=path, at=here)
    found = [json.loads(line) for line in told.stdout.splitlines() if line.startswith(b"{")]
    assert [(one["way"], one["error"]) for one in found] == [
        ("read", None),
        ("sql", None),
        ("delete", None),
        ("format", "AnalysisException"),
        ("registered", None),
        ("named", None),
        ("stream", "WorkerMismatchError"),
        ("sink", "WorkerMismatchError"),
        ("view", "WorkerMismatchError"),
        ("unpacked", None),
    ]
    texts = {one["way"]: one["text"] for one in found}
    counts = {name: texts[name] for name in ("read", "sql", "registered", "named", "unpacked")}
    assert counts == {"read": "2", "sql": "2", "registered": "1", "named": "1", "unpacked": "1"}
    remedy = "set PYSPARK_PYTHON and PYSPARK_DRIVER_PYTHON to one path of Python"
    assert "executors would start the driver's Python" in texts["format"]
    assert remedy in texts["format"]
    for name in ("stream", "sink", "view"):
        (line,) = texts[name].splitlines()
        assert "the workers' Python './environment/bin/python', which the driver lacks" in line
        assert remedy in line


def test_workers_of_another_python_are_named(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if CONNECT:
        pytest.skip("the client states the version of its Python itself")
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    deltalog.spark.read(spark, tmp_path, native=False).collect()
    monkeypatch.setattr(spark.sparkContext, "pythonVer", "3.8")
    monkeypatch.setattr(workers, "_checked", set())
    here = ".".join(map(str, sys.version_info[:2]))
    expected = re.escape(f"a Python worker has Python {here}, but the driver has Python 3.8: use")
    with pytest.raises(WorkerMismatchError, match=expected):
        deltalog.spark.read(spark, tmp_path, native=False)
    with pytest.raises(WorkerMismatchError, match=expected):
        deltalog.spark.DeltaTable(spark, tmp_path).update("id = 1", {"id": "3"})
    spark.conf.set(workers.CHECK_WORKERS, "false")
    try:
        with pytest.raises(WorkerMismatchError, match=expected):
            deltalog.spark.DeltaTable(spark, tmp_path).update("id = 1", {"id": "3"})
    finally:
        spark.conf.unset(workers.CHECK_WORKERS)


def test_workers_without_us_are_given_no_small_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if CONNECT:
        pytest.skip("the client states the version of its Python itself")
    monkeypatch.setattr(native, "_MANY_FILES", 1)
    monkeypatch.setattr(workers, "_checked", set())
    monkeypatch.setattr(workers, "_without", set())
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    with monkeypatch.context() as wrong:
        wrong.setattr(spark.sparkContext, "pythonVer", "3.8")
        assert [row.id for row in deltalog.spark.read(spark, tmp_path).collect()] == [1]
    explained = deltalog.spark.scan(spark, tmp_path).explain()  # the workers are not asked again
    assert "read by Spark's own Parquet reader: 1 file" in explained
    workers._without.clear()
    assert "read by Python workers: 1 file" in deltalog.spark.scan(spark, tmp_path).explain()
    spark.conf.set(workers.CHECK_WORKERS, "false")
    try:
        explained = deltalog.spark.scan(spark, tmp_path).explain()
        assert "read by Spark's own Parquet reader: 1 file" in explained
    finally:
        spark.conf.unset(workers.CHECK_WORKERS)


@pytest.mark.parametrize("method", ["start", "toTable"])
@pytest.mark.parametrize(
    "said", ["ModuleNotFoundError: No module named 'deltalog'", "[DATA_SOURCE_NOT_FOUND] deltalog."]
)
def test_a_stream_that_the_server_cannot_plan_is_named(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    said: str,
) -> None:
    def start(*_: object) -> None:
        raise RuntimeError(said)

    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    deltalog.spark.register(spark)
    try:
        numbers = spark.readStream.format("rate").load().select("value")
        writer = numbers.writeStream.format("deltalog")
        monkeypatch.setattr(type(writer).__mro__[-2], "start", start)  # PySpark's own class
        with pytest.raises(WorkerMismatchError, match="Python of the Spark Connect server"):
            getattr(writer, method)(str(tmp_path / "t") if method == "start" else "to_be_planned")
    finally:
        deltalog.spark.unregister(spark)
        spark.sql("DROP TABLE IF EXISTS to_be_planned")


@pytest.mark.usefixtures("spark")  # and so a JVM
def test_a_server_without_deltalog_is_named(tmp_path: Path) -> None:
    if CONNECT:
        pytest.skip("this process has a server of its own")
    arguments = bare_python(tmp_path)
    told = python("-m", "tests.support.spark_connected", *arguments, path=SOURCE)
    found = {one["way"]: one for one in map(json.loads, told.stdout.splitlines())}
    for way in ("read", "registered"):  # by Spark's own reader
        assert found[way]["text"] == "2"
    assert "DATA_SOURCE_NOT_FOUND" in found["unregistered"]["text"]
    for way in ("by workers", "stream", "sink"):
        assert found[way]["error"] == "WorkerMismatchError"
        assert "found none (No module named 'deltalog')" in found[way]["text"]
    planned = found["unchecked stream"]
    assert planned["error"] == "WorkerMismatchError"
    assert planned["text"].endswith(
        f"install deltalog {deltalog.__version__} in the Python of the Spark Connect server, or "
        "use deltalog.spark.read and deltalog.spark.write"
    )


def test_a_checked_session_runs_no_more_jobs(spark: SparkSession, tmp_path: Path) -> None:
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


def test_a_process_that_only_pickles_a_stream_loads_little(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    source = DeltalogSource({"path": str(tmp_path / "t")})
    schema = source.schema()
    (tmp_path / "source").write_bytes(packed((source, schema)))
    code = (
        "import pathlib, pickle, sys; from pyspark.serializers import CloudPickleSerializer; "
        "source, schema = pickle.loads(pathlib.Path(sys.argv[1]).read_bytes()); "
        "CloudPickleSerializer().dumps(source.streamReader(schema)); print(*sys.modules)"
    )
    loaded = python("-c", code, str(tmp_path / "source"), path=SOURCE).stdout.decode().split()
    assert "deltalog.spark.source" in loaded
    assert sum(name.partition(".")[0] == "deltalog" for name in loaded) <= 16
    assert not {"fsspec", "pyarrow.compute", "deltalog.schema", "deltalog.log"} & set(loaded)


COUNTING = """
import pickle, sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)

def count(what):
    print(what, sum(name.endswith(f"{0:020}.json") for name in opened))
    opened.clear()

import pyarrow as pa
from deltalog.spark.source import DeltalogSource
from pyspark.serializers import CloudPickleSerializer
source = DeltalogSource({"path": sys.argv[1]})
schema = source.schema()
count("schema")
packed = CloudPickleSerializer().dumps(source)
pickle.loads(packed).reader(schema)
count("reader")
stream = pickle.loads(packed).streamReader(schema)
count("pickled")
stream.getDefaultReadLimit()
count("stream")
source = DeltalogSource({"path": sys.argv[1], "txnAppId": "query"})
packed = CloudPickleSerializer().dumps(source.streamWriter(schema, False))
count("writer")
message = pickle.loads(packed).write(iter([pa.record_batch({"id": [2]})]))
count("write")
source.streamWriter(schema, False).commit([message], 0)
count("commit")
"""


def test_each_process_reads_the_log_at_most_once(tmp_path: Path) -> None:
    """The number of times that it opens the first commit, which it needs to open the table."""
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    write_deltalake(tmp_path, pa.table({"id": [2]}), mode="append")
    counted = python("-c", COUNTING, str(tmp_path), path=SOURCE)
    assert counted.stdout.decode().split("\n")[:-1] == [
        "schema 1",
        "reader 1",
        "pickled 0",
        "stream 0",
        "writer 1",
        "write 0",
        "commit 1",
    ], counted.stderr


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
