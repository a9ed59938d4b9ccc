"""One small Spark session for all tests of this folder; without a JVM they are skipped."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import deltalog.spark
from deltalog.spark import registration
from tests.support import reference_driver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent
CONNECT = bool(os.environ.get("DELTALOG_SPARK_CONNECT"))
"""Whether the session is one of Spark Connect: `make matrix` runs the tests either way."""

LONG = os.environ.get("DELTALOG_PARITY") == "all"
"""Whether the tests take their time, and Spark works as it does at users."""
QUICK: dict[str, bool | float | int | str | None] = {
    **reference_driver.QUICK,
    "spark.python.daemon.module": "tests.support.spark_daemon",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let PySpark warn of whatever it likes, and put tests that need the reference to the others.

    Workers of pytest begin with equal runs of tests: the first one alone starts the reference.
    """
    items.sort(key=_needs_no_reference)
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) and HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::FutureWarning:pyspark"))
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))


def _needs_no_reference(item: pytest.Item) -> bool:
    return HERE in item.path.parents and "delta_spark" not in getattr(item, "fixturenames", ())


@pytest.fixture(autouse=True)
def _closed_door(request: pytest.FixtureRequest) -> Iterator[None]:
    """Leave `spark.read` to PySpark after a test that has registered the formats."""
    yield
    if "spark" in request.fixturenames:
        session: SparkSession = request.getfixturevalue("spark")
        if registration._installed:
            deltalog.spark.unregister(session)
            deltalog.spark.unregister(session, name="delta")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session without Delta's jar. Every worker of pytest has its own."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("there is no JVM")
    scratch = tmp_path_factory.mktemp("spark")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    if CONNECT:
        os.environ["SPARK_TESTING"] = "1"  # a port of its own for every server
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession

        local = SparkSession.builder
        session = (
            (local.remote("local[2,3]") if CONNECT else local.master("local[2,3]"))
            .appName("deltalog")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.default.parallelism", "2")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.memory", "2g")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
            .config("spark.local.dir", str(scratch / "local"))
            .config("spark.log.level", "OFF")
            .config(map={} if LONG else QUICK)
            .getOrCreate()
        )
    with pytest.MonkeyPatch.context() as patch:
        if not (LONG or CONNECT):
            patch.setattr(type(session.conf), "getAll", property(_settings_at_once))
        yield session
    session.stop()


def _settings_at_once(conf: Any) -> dict[str, str]:
    """What PySpark's `getAll` gives, in one call of the JVM.

    PySpark makes some calls for each setting, and at the end one that fails, for whose error the
    JVM seeks twenty classes in three hundred jars. Each of our statements looks at the settings.
    """
    every: str = conf._jconf.getAll().mkString("\0")
    return dict(pair.split(" -> ", 1) for pair in every.split("\0") if pair)
