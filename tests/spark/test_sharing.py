"""Shared tables on Spark: a server over loopback, read by the format `deltalog_sharing`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from deltalog import DeltaTable, write_deltalake
from deltalog.sharing.server import app
from tests.spark.shapes import SHAPES, Build
from tests.spark.test_native import rows
from tests.support.asgi import serving
from tests.support.sharing import commit_at, config_of, write_profile

FEED = {"delta.enableChangeDataFeed": "true"}
ROWS = pa.table({"id": pa.array(range(100), pa.int64()), "day": ["mo", "tu", "we", None] * 25})


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Tables by name: those of every shape, one with history, one whose history is not shared."""
    directory = tmp_path_factory.mktemp("shared")
    found = {build.__name__: directory / build.__name__ for build in SHAPES}
    for build in SHAPES:
        build(found[build.__name__])
    found |= {"changed": directory / "changed", "latest": directory / "latest"}
    write_deltalake(found["changed"], ROWS, partition_by=["day"], configuration=FEED)
    DeltaTable(found["changed"]).update(updates={"id": "id + 1000"}, predicate="id < 2")
    DeltaTable(found["changed"]).delete("id = 50")
    commit_at(
        found["changed"], "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"
    )
    write_deltalake(found["latest"], ROWS)
    return found


@pytest.fixture(scope="module")
def profile(places: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A server with these tables as `s.d.<name>`, and the profile for it."""
    tables = {
        f"s.d.{name}": {"location": str(place), "historyShared": name != "latest"}
        for name, place in places.items()
    }
    with serving(app(config_of(tables))) as url:
        path = tmp_path_factory.mktemp("profile") / "test.share"
        path.touch(mode=0o600)
        yield write_profile(path, f"{url}/delta-sharing/")


def load(spark: SparkSession, profile: Path, name: str, **options: Any) -> DataFrame:
    reader = spark.read.format("deltalog_sharing").options(**options)
    return reader.load(f"{profile}#s.d.{name}")


@pytest.mark.parametrize("build", SHAPES, ids=lambda build: build.__name__)
def test_rows_are_those_of_the_table_itself(
    spark: SparkSession, profile: Path, places: dict[str, Path], build: Build
) -> None:
    direct = DeltaTable(places[build.__name__]).to_pyarrow_table()
    assert rows(load(spark, profile, build.__name__)) == rows(direct)


def test_the_package_for_discovery_needs_no_http_library() -> None:
    """PySpark imports it whenever it looks for formats, for users of other formats too."""
    code = "import pyspark_deltalog_sharing, sys; print('aiohttp' in sys.modules)"
    command = [sys.executable, "-W", "ignore", "-c", code]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "False"
