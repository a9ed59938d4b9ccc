"""The cases of the single-machine suites, done on Spark as well.

Modules of this folder take the test functions of others as they are. While one of them runs, each
statement on a table is also done by `deltalog.spark` on a copy, and the two tables are compared:
see `both`, `same`, `entries`. What each may do as it likes is in `differences`; cases without a
counterpart are named, with the reason, where the others are taken.

Of functions with parameters only so many cases run that each value of each parameter is seen once;
whether rows are masked or files copied takes turns from one function to the next.
DELTALOG_PARITY=all runs all cases.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.parity.both import Both
from tests.spark.parity.cases import LEFT_OUT, SOURCE
from tests.spark.parity.entries import watch
from tests.support.statements import FEED, VECTORS
from tests.unit.operations.changes.conftest import table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["both", "table"]

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
    turns: dict[Path, Counter[str]] = {}
    for (path, _), group in groups.items():
        left |= set(group) - set(_spread(group, turns.setdefault(path, Counter())))
    if left:
        items[:] = [item for item in items if item not in left]
        config.hook.pytest_deselected(items=list(left))


def _is_left_out(item: pytest.Item) -> bool:
    """Whether a case of a function is named among those without a counterpart."""
    names: Mapping[str, str] = vars(getattr(item, "module", None))[LEFT_OUT]
    return any("[" in name and name in item.name for name in names)


def _spread(group: list[pytest.Item], turns: Counter[str]) -> list[pytest.Item]:
    """Few cases that have each value of each parameter.

    Args:
        group: the cases of a function.
        turns: how often each way of changing rows was taken; they are counted on.
    """
    every = [pair for item in group for pair in _parameters(item)]
    ways = {name for name, _ in every} - {name for name, value in every if not _is_way(value)}
    kept: list[pytest.Item] = []
    left = {(name, id(value)) for name, value in every if name not in ways}
    while left or not kept:
        best = max(group, key=partial(_worth, left, turns, ways))
        kept.append(best)
        # The same object in every combination; pytest counts some of them per combination.
        left -= {(name, id(value)) for name, value in _parameters(best)}
        turns.update(repr(value) for name, value in _parameters(best) if name in ways)
    return kept


def _worth(
    left: set[tuple[str, int]], turns: Counter[str], ways: set[str], item: pytest.Item
) -> tuple[int, int]:
    """How much a case brings that was not there: values first, then ways of changing rows."""
    parameters = _parameters(item)
    new = sum((name, id(value)) in left for name, value in parameters)
    return new, -sum(turns[repr(value)] for name, value in parameters if name in ways)


def _is_way(value: Any) -> bool:
    """Whether it is properties that say how rows are changed, and what is told of it."""
    return isinstance(value, Mapping) and set(value) <= {*VECTORS, *FEED}


def _parameters(item: pytest.Item) -> list[tuple[str, Any]]:
    specification: Any = getattr(item, "callspec", None)
    return list(specification.params.items())


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
