"""Without optional packages, each entry point names the extra to install."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from deltalog import write_deltalake

_HIDE = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
"""
_OPTIONAL = (
    "aiohttp",
    "anyio",
    "boto3",
    "dask",
    "duckdb",
    "matplotlib",
    "pandas",
    "paramiko",
    "polars",
    "pyiceberg",
    "pyspark",
    "rich",
    "s3fs",
    "starlette",
    "typer",
    "uvicorn",
    "yarl",
)


def run(code: str, *hidden: str, arguments: tuple[str, ...] = ()) -> tuple[int, str]:
    """The exit code and the errors of a program that lacks some packages."""
    done = subprocess.run(
        [sys.executable, "-c", _HIDE.format(hidden=hidden) + code, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr.strip()


@pytest.mark.parametrize(
    ("code", "extra"),
    [
        ("deltalog.DeltaTable(path).to_pandas()", "deltalog[pandas]"),
        ("deltalog.DeltaTable(path).history().to_pandas()", "deltalog[pandas]"),
        ("deltalog.DeltaTable(path).to_polars(lazy=True)", "deltalog[polars]"),
        ("deltalog.DeltaTable(path).scan().to_duckdb()", "deltalog[duckdb]"),
        ("deltalog.sql('SELECT count(*) FROM t', t=path)", "deltalog[duckdb]"),
        ("deltalog.DeltaTable(path).plot.commits()._repr_html_()", "deltalog[plot]"),
        ("import deltalog.dask; deltalog.dask.read(path)", "deltalog[dask]"),
        ("deltalog.DeltaTable('s3://bucket/t')", "deltalog[s3]"),
        ("deltalog.DeltaTable('sftp://host/t')", "fsspec[sftp]"),
        ("deltalog.DeltaTable('https://host/t')", "fsspec[http]"),
        ("deltalog.DeltaTable('uc://a.b.c')", "deltalog[catalogs]"),
        ("deltalog.connect(catalog='glue').sql('SHOW TABLES')", "deltalog[glue]"),
        ("from deltalog.sharing import SharingClient", "deltalog[sharing]"),
        ("import deltalog.sharing.server", "deltalog[sharing]"),
        ("deltalog.convert_to_deltalake('iceberg')", "deltalog[iceberg]"),
        ("import deltalog.iceberg", "deltalog[iceberg]"),
        ("import deltalog.cli", "deltalog[cli]"),
        ("import deltalog.spark", "deltalog[spark]"),
    ],
)
def test_the_error_names_the_extra(code: str, extra: str, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_deltalake(path, {"id": [1]})
    metadata = tmp_path / "iceberg" / "metadata"
    metadata.mkdir(parents=True)
    (metadata / "v1.metadata.json").write_text("{}")
    start = f"import os, deltalog; path = {path!r}; os.chdir({str(tmp_path)!r}); "
    failed, errors = run(start + code, *_OPTIONAL)
    assert failed
    assert re.search(rf"; pip install .*'{re.escape(extra)}'", errors)


def test_glue_and_directories_need_no_aiohttp(tmp_path: Path) -> None:
    code = (
        "import deltalog; from deltalog.catalogs import GlueCatalog;"
        f"deltalog.connect(catalog={str(tmp_path)!r}).sql('SHOW TABLES');"
        "GlueCatalog(client_options={'region_name': 'us-east-1'})"
    )
    assert run(code, "aiohttp", "yarl") == (0, "")


def test_the_command_of_the_server_has_no_traceback() -> None:
    code = "import runpy; runpy.run_module('deltalog.sharing', run_name='__main__')"
    failed, errors = run(code, "starlette")
    assert failed
    assert errors == (
        "error: cannot run a sharing server: starlette is not installed; "
        "pip install 'deltalog[sharing]'"
    )
    code = "from deltalog.__main__ import main; main()"
    failed, errors = run(code, "starlette", arguments=("share", "check", "x.yaml"))
    assert failed == 2
    assert errors.startswith("error: cannot run a sharing server: starlette is not installed")
