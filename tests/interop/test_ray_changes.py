"""Tasks of Ray change tables as this process does; a killed worker loses nothing."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import cloudpickle
import pytest
import ray

from deltalog.ray import RayEngine
from tests.support.dying import DyingStore
from tests.support.sharded import (
    CHANGES,
    FEATURES,
    FEW_CHANGES,
    KILLED,
    UPKEEP,
    check_a_killed_worker_leaves_a_checkpoint,
    check_a_killed_worker_loses_nothing,
    check_an_error_leaves_no_file,
    check_sidecars,
    check_vacuum,
    make,
    outcome,
    twins,
)

pytestmark = [
    pytest.mark.slow("starts Ray, which takes ten seconds"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]
cloudpickle.register_pickle_by_value(sys.modules[DyingStore.__module__])


@pytest.fixture(scope="module", autouse=True)
def _cluster() -> Iterator[None]:
    """Two workers beside this process, which the end of the module stops."""
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        object_store_memory=100 * 1024 * 1024,
    )
    yield
    ray.shutdown()


@pytest.mark.parametrize("change", FEW_CHANGES)
@pytest.mark.parametrize("features", ["feed", "mapping", "row ids"])
def test_tasks_change_what_the_local_engine_changes(
    tmp_path: Path, features: str, change: str
) -> None:
    make(tmp_path / "table", FEATURES[features], partitioned=True)
    here, there = twins(tmp_path / "table", RayEngine(num_tasks=2))
    assert outcome(there, CHANGES[change]) == outcome(here, CHANGES[change])


def test_tasks_optimize_and_vacuum(tmp_path: Path) -> None:
    make(tmp_path / "table", FEATURES["vectors"], partitioned=True)
    here, there = twins(tmp_path / "table", RayEngine(num_tasks=2))
    for step in (UPKEEP["compact"], UPKEEP["z-order"]):
        assert outcome(there, step) == outcome(here, step)
    check_vacuum(here, there)


def test_tasks_write_a_checkpoint(tmp_path: Path) -> None:
    check_sidecars(tmp_path / "table", RayEngine(num_tasks=2))


def test_an_error_in_one_task_leaves_no_file(tmp_path: Path) -> None:
    check_an_error_leaves_no_file(tmp_path / "table", RayEngine(num_tasks=3))


@pytest.mark.parametrize("change", KILLED)
def test_the_task_of_a_killed_worker_runs_again(tmp_path: Path, change: str) -> None:
    check_a_killed_worker_loses_nothing(tmp_path / "table", RayEngine(num_tasks=2), change)


def test_a_killed_worker_leaves_a_checkpoint(tmp_path: Path) -> None:
    check_a_killed_worker_leaves_a_checkpoint(tmp_path / "table", RayEngine(num_tasks=2))
