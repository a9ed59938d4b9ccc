"""Pipelines on a cluster whose workers have only what the guide sends them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from tests.cluster.conftest import Guide
from tests.support.cluster import Cluster, Driver
from tests.support.emulators import Emulator

NUM_ORDERS = 60
LONG = pytest.mark.slow("starts a driver, beside that of the guide's program")


def test_the_guide_as_typed(guide: Guide) -> None:
    assert guide.output.splitlines()[-1] == "1000 rows"
    assert "botocore" in guide.output  # the archive's packages are listed
    assert guide.archive.stat().st_size < 152_000_000


@LONG
def test_a_pipeline_of_frames_statements_and_streams(
    driver: Driver, s3: Emulator, tmp_path: Path
) -> None:
    found = driver.do(
        "medallion",
        lake=s3.url,
        options=s3.options,
        directory=str(tmp_path),
        num_orders=NUM_ORDERS,
    )
    totals = {
        number: Decimal(number * (2 if number % 3 == 2 else 1)).quantize(Decimal("0.01"))
        for number in range(NUM_ORDERS)
    }
    first, second = (
        [number for number in range(NUM_ORDERS) if number % 3 != change] for change in (0, 1)
    )
    assert found["bronze"] == [
        str(2 * NUM_ORDERS),
        str(len(first) + len(second)),
        f"{sum(first) + sum(second)}.00",
    ]
    kept = {number: total for number, total in totals.items() if total >= 10}
    last = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=max(kept))
    assert found["silver"] == [str(len(kept)), str(sum(kept.values())), f"{last:%Y-%m-%d %H:%M:%S}"]
    assert found["gold"] == [
        [
            str(customer),
            str(sum(total for number, total in kept.items() if number % 5 == customer)),
            str(sum(1 for number in kept if number % 5 == customer)),
        ]
        for customer in range(5)
    ]


@LONG
@pytest.mark.usefixtures("driver")
def test_tasks_run_on_both_workers(cluster: Cluster) -> None:
    """Each worker has its own directory, and has unpacked the archive there."""
    assert len(cluster.executors()) >= 2
    for number in range(2):
        work = cluster.place / f"worker-{number}"
        assert list(work.glob("app-*/*/packages/deltalog/__init__.py"))
