"""The reference, and tables that it made: each once, for all tests that look at it.

Every worker has its own: xdist 3.8 cannot group by marker.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.reference import Spark
from tests.support.reference_scenarios import Scenario
from tests.support.reference_stories import Story, play

StoryOf = Callable[[Scenario], Story]


@pytest.fixture(scope="session")
def spark(delta_spark: Spark) -> Spark:
    """The reference."""
    return delta_spark


@pytest.fixture(scope="session")
def story_of(spark: Spark, tmp_path_factory: pytest.TempPathFactory) -> StoryOf:
    """The table that the two writers made for a scenario; nobody may change it."""
    told: dict[str, Story] = {}

    def tell(scenario: Scenario) -> Story:
        if scenario.name not in told:
            path = tmp_path_factory.mktemp(scenario.name) / "table"
            told[scenario.name] = play(scenario, path, spark)
        return told[scenario.name]

    return tell
