"""One cluster for all tests of this folder, and the archive that the guide makes."""

from __future__ import annotations

import re
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.support.cluster import Cluster, Driver, running_cluster
from tests.support.emulators import Emulator

GUIDE: Final = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "spark-cluster.md"
KEYS: Final = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing-secret",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
}


@dataclass(frozen=True)
class Guide:
    """What came of the guide's commands, which were run in a directory."""

    directory: Path
    output: str
    archive: Path


def blocks_of_guide(language: str) -> list[str]:
    """The guide's blocks of a language."""
    text = GUIDE.read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="session")
def credentials(s3_endpoint: str) -> dict[str, str]:
    """What each machine has in its environment."""
    return {**KEYS, "AWS_ENDPOINT_URL": s3_endpoint, "AWS_ALLOW_HTTP": "true"}


@pytest.fixture(scope="session")
def cluster(
    credentials: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    if shutil.which("java") is None:
        pytest.skip("there is no JVM")
    with running_cluster(tmp_path_factory.mktemp("cluster"), environment=credentials) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def guide(
    cluster: Cluster, credentials: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Guide:
    """The guide's commands, as typed in an environment with deltalog."""
    import fsspec

    endpoint = credentials["AWS_ENDPOINT_URL"]
    keys = {"key": "testing", "secret": "testing-secret", "endpoint_url": endpoint}
    fsspec.filesystem("s3", **keys).mkdir("lake")
    directory = tmp_path_factory.mktemp("guide")
    (directory / "pipeline.py").write_text(blocks_of_guide("python")[0], "utf-8")
    done = subprocess.run(
        ["bash", "-e", "-c", blocks_of_guide("bash")[1]],  # noqa: S607  # what a user types
        check=False,
        capture_output=True,
        cwd=directory,
        env=cluster.environment(**credentials),
        text=True,
        timeout=300,
        process_group=cluster.watchdog.group,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return Guide(directory, done.stdout, directory / "deltalog.tar.gz")


@pytest.fixture(scope="session")
def start_driver(
    cluster: Cluster, guide: Guide, credentials: dict[str, str]
) -> Iterator[Callable[..., Driver]]:
    """Starts drivers, which end with the tests."""
    started = []

    def start(name: str, **settings: str) -> Driver:
        driver = Driver(cluster, guide.archive, name=name, environment=credentials, **settings)
        started.append(driver)
        return driver

    yield start
    for driver in started:
        driver.close()


@pytest.fixture(scope="session")
def driver(start_driver: Callable[..., Driver]) -> Driver:
    """The driver of most tests."""
    return start_driver("one")


@pytest.fixture
def place(s3: Emulator) -> str:
    """The URL of a fresh directory."""
    return f"{s3.url}/{uuid.uuid4().hex[:8]}"
