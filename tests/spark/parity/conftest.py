"""The cases of the single-machine suites, done on Spark as well.

Modules of this folder take the test functions of others as they are. While one of them runs, each
statement on a table is also done by `deltalog.spark` on a copy, and the two tables are compared:
see `both`, `same`, `entries`. What each may do as it likes is in `differences`; cases without a
counterpart are named, with the reason, where the others are taken.

Of functions with several parameters only so many cases run that each value of each parameter is
seen; DELTALOG_PARITY=all runs all.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.parity.both import Both
from tests.spark.parity.cases import LEFT_OUT, SOURCE
from tests.spark.parity.entries import watch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent
ALL = os.environ.get("DELTALOG_PARITY") == "all"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep so many cases of each function that every value of every parameter is seen."""
    ours = [item for item in items if HERE in item.path.parents]
    left = {item for item in ours if _is_left_out(item)}
    groups: dict[Any, list[pytest.Item]] = {}
    for item in ours:
        if hasattr(item, "callspec") and item not in left and not ALL:
            groups.setdefault((item.path, getattr(item, "originalname", "")), []).append(item)
    for group in groups.values():
        left |= set(group) - set(_spread(group))
    if left:
        items[:] = [item for item in items if item not in left]
        config.hook.pytest_deselected(items=list(left))


def _is_left_out(item: pytest.Item) -> bool:
    """Whether a case of a function is named among those without a counterpart."""
    names: Mapping[str, str] = vars(getattr(item, "module", None))[LEFT_OUT]
    return any("[" in name and name in item.name for name in names)


def _spread(group: list[pytest.Item]) -> list[pytest.Item]:
    """Few cases that have each value of each parameter, and none of them too often."""
    kept: list[pytest.Item] = []
    seen: Counter[tuple[str, int]] = Counter()
    wanted = {value for item in group for value in _values(item)}
    while wanted - seen.keys():

        def worth(item: pytest.Item) -> tuple[int, int]:
            values = _values(item)
            return len(values - seen.keys()), -sum(seen[value] for value in values)

        best = max(group, key=worth)
        kept.append(best)
        seen.update(_values(best))
    return kept


def _values(item: pytest.Item) -> set[tuple[str, int]]:
    """Which values of its parameters a case has."""
    specification: Any = getattr(item, "callspec", None)
    # The same object in every combination; pytest counts some of them per combination.
    return {(name, id(value)) for name, value in specification.params.items()}


@pytest.fixture(autouse=True)
def both(
    spark: SparkSession,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Both]:
    """Does the statements of a case twice; a case without any is no case."""
    twice = Both(spark, tmp_path_factory.mktemp("twins"), request.node.originalname)
    watch(twice, monkeypatch, vars(request.module)[SOURCE])
    yield twice
    assert twice.compared, "no statement of this case was compared"
