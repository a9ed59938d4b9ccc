"""Archives for the workers of a Spark cluster hold what tasks need, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

import pytest

import deltalog
from deltalog.cli.spark_archive import _required
from tests.support.command_line import run

# What a Python with the archive alone lacks: PySpark, which a cluster has, and what extras require.
OF_OTHERS = {"anyio", "duckdb", "numpy", "packaging", "pyiceberg", "pyspark", "typer"}
IMPORT_ALL = """
import importlib, pkgutil
import deltalog.errors
found, missing = [], set()
for module in pkgutil.walk_packages(deltalog.__path__, "deltalog.", onerror=lambda name: None):
    if module.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(module.name)
        found.append(module.name)
    except (ImportError, deltalog.errors.InvalidInputError) as error:
        if "pip install 'deltalog[" not in str(error):
            missing.add((getattr(error, "name", None) or str(error)).partition(".")[0])
print(deltalog.__version__, deltalog.__file__, len(found), *sorted(missing), sep="\\n")
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archive") / "deltalog.tar.gz"
    told = run("spark-archive", path)
    assert "--conf spark.executorEnv.PYTHONPATH=packages" in told.stderr
    assert "size_bytes" in told.stdout
    return path


def test_an_archive_has_what_deltalog_requires(archive: Path) -> None:
    with tarfile.open(archive) as opened:
        members = opened.getmembers()
    assert {member.uname for member in members} == {""}
    names = {member.name for member in members}
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} >= {
        "deltalog",
        "fsspec",
        "orjson",
        "pyarrow",
        "pyspark_deltalog",
        "sqlglot",
    }
    assert "pyspark_deltalog/__init__.py" in names
    assert not [name for name in names if name.startswith(("pyspark/", "pandas/", "/", ".."))]


def test_an_archive_lacks_what_no_task_imports(archive: Path) -> None:
    with tarfile.open(archive) as opened:
        names = opened.getnames()
    useless = ("/__pycache__/", "pyarrow/tests/", "pyarrow/include/", "_flight", ".pyx", ".pyi")
    assert [name for name in names if any(part in name for part in useless)] == []
    assert not [name for name in names if name.endswith(("/RECORD", "/direct_url.json", ".pth"))]
    source = Path(deltalog.__file__).parent
    assert not [
        path for path in source.rglob("*.py") if "pyarrow.flight" in path.read_text("utf-8")
    ]


def test_a_bare_python_imports_all_of_deltalog_from_an_archive(
    archive: Path, tmp_path: Path
) -> None:
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path / "packages", filter="data")
    venv.create(tmp_path / "bare", with_pip=False)
    told = subprocess.run(
        [str(tmp_path / "bare" / "bin" / "python3"), "-c", IMPORT_ALL],
        capture_output=True,
        check=True,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": "packages"},
        cwd=tmp_path,
        text=True,
    )
    version, file, num_modules, *missing = told.stdout.split()
    assert version == deltalog.__version__
    assert file == str(tmp_path / "packages" / "deltalog" / "__init__.py")
    assert int(num_modules) > 300
    assert set(missing) <= OF_OTHERS


def test_extras_are_archived_with_what_they_require() -> None:
    pytest.importorskip("s3fs")
    packages = {found.name.lower() for found in _required({"s3", "spark"})}
    assert {"aiobotocore", "botocore", "deltalog", "numpy", "obstore", "pandas"} <= packages
    assert not {"pyspark", "py4j", "typer", "duckdb"} & packages  # a cluster has PySpark


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["a.tar.gz", "--extras", "s4"], "deltalog has no extra 's4': expected one of all, azure"),
        (["a.tar"], "Spark needs a name that ends with .tar.gz or .tgz"),
    ],
)
def test_a_wrong_call_is_refused(
    arguments: list[str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert expected in run("spark-archive", *arguments, code=2).stderr
    assert list(tmp_path.iterdir()) == []


def test_a_requirement_that_is_not_installed_is_named(tmp_path: Path) -> None:
    """The distributions of a Python with deltalog alone."""
    metadata = tmp_path / "deltalog-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.4\nName: deltalog\nVersion: 1\nRequires-Dist: not-installed>=1\n"
    )
    told = subprocess.run(
        [sys.executable, "-m", "deltalog", "spark-archive", "deltalog.tar.gz"],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{Path(deltalog.__file__).parents[1]}"},
        cwd=tmp_path,
        text=True,
    )
    assert told.returncode == 2
    assert "cannot archive not-installed, which deltalog requires: it is not" in told.stderr
    assert not (tmp_path / "deltalog.tar.gz").exists()
