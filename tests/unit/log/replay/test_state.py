"""The newest action of a key decides."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from deltalog.log.replay import Survivors, not_mentioned, reconcile


def replay(adds: list[tuple[str, int]], removes: list[tuple[str, int]]) -> Survivors:
    def columns(actions: list[tuple[str, int]]) -> tuple[pa.StringArray, pa.Int64Array]:
        return (
            pa.array([key for key, _ in actions], pa.string()),
            pa.array([version for _, version in actions], pa.int64()),
        )

    return reconcile(*columns(adds), *columns(removes))


def rows(
    adds: list[tuple[str, int]], removes: list[tuple[str, int]]
) -> tuple[list[int], list[int]]:
    survivors = replay(adds, removes)
    return numbers(survivors.adds), numbers(survivors.removes)


def numbers(rows: pa.Array[Any]) -> list[int]:
    return [row for row in rows.to_pylist() if row is not None]


@pytest.mark.protocol("REC-03", "LOG-04")
def test_the_newest_mention_counts() -> None:
    assert rows([("f", 0)], []) == ([0], [])
    assert rows([("f", 0)], [("f", 1)]) == ([], [0])
    assert rows([("f", 0), ("f", 2)], [("f", 1)]) == ([1], [])


@pytest.mark.protocol("ADD-05")
def test_adding_again_replaces_the_facts() -> None:
    assert rows([("f", 1), ("f", 0)], []) == ([0], [])


@pytest.mark.protocol("D-19", "B-03", "LOG-05")
def test_in_one_version_removes_beat_adds() -> None:
    assert rows([("f", 3)], [("f", 3)]) == ([], [0])


@pytest.mark.protocol("ADD-10")
def test_of_two_adds_in_one_version_the_later_row_counts() -> None:
    assert rows([("f", 3), ("f", 3)], []) == ([1], [])


@pytest.mark.protocol("REC-03", "REC-05", "ADD-08")
def test_keys_are_apart() -> None:
    adds = [("f", 0), ("f\0dv1", 1)]
    assert rows(adds, [("f", 1)]) == ([1], [0])
    assert rows([("f\0dv2", 2)], [("f", 1), ("f\0dv1", 2)]) == ([0], [0, 1])


def test_high_versions_do_not_overflow() -> None:
    assert rows([("f", 2**30)], [("f", 2**30 - 1)]) == ([0], [])


def test_nothing_gives_nothing() -> None:
    survivors = replay([], [])
    assert len(survivors.adds) == len(survivors.removes) == len(survivors.keys) == 0


def test_rows_of_the_checkpoint_that_nobody_mentions() -> None:
    keys = pa.array(["a", "b", "c"])
    later = replay([("b", 1)], [("x", 1)])
    assert set(later.keys.to_pylist()) == {"b", "x"}
    assert not_mentioned(keys, later.keys).to_pylist() == [True, False, True]
