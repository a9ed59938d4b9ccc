"""Offsets, options and steps of a follower."""

from __future__ import annotations

from typing import Any

import pytest

from deltalog._util.clock import Moment
from deltalog.errors import (
    InvalidInputError,
)
from deltalog.table.inspect.follow import Follower, Offset
from tests.support.aging import START_MS, AgingTable
from tests.support.following import follow, ids, ids_of, make


@pytest.mark.parametrize(
    ("start", "expected"),
    [(0, [1, 2, 3, 4]), (1, [3, 4]), (3, []), ("latest", []), (Moment(START_MS + 1), [3, 4])],
)
def test_where_to_start(start: Any, expected: list[int]) -> None:
    table = make()
    table.wait(1)
    table.append({"id": [3]})
    table.append({"id": [4]})
    follower = follow(table, start)
    assert ids(follower) == expected
    table.append({"id": [9]})
    assert ids(follower) == [9]


def test_steps_are_bounded_by_files_and_bytes() -> None:
    table = make()
    for number in range(3, 8):
        table.append({"id": [number]})
    steps = list(follow(table, max_files=2).available())
    assert [len(step.tasks) for step in steps] == [2, 2, 2]
    assert [len(step.tasks) for step in follow(table, 1, max_bytes=1).available()] == [1] * 5


@pytest.mark.parametrize("start", [None, 0])
@pytest.mark.parametrize("max_files", [1, 2, 9])
def test_a_step_can_be_made_again_from_its_two_offsets(start: int | None, max_files: int) -> None:
    table = AgingTable()
    table.create({"id": [1, 2], "p": [0, 1]}, partition_by=["p"])  # a file for each row
    for number in range(3, 6):
        table.append({"id": [number, 10 * number], "p": [0, 1]})
    follower = follow(table, start, max_files=max_files)
    before = follower.offset
    while (step := follower.poll()) is not None:
        again = Follower(table.snapshot(), start=before, until=step.offset)
        assert ids(again) == ids_of(step)
        assert again.offset == step.offset
        before = step.offset
        if step.offset.version < 4:
            table.append({"id": [-1], "p": [0]})
    assert before.version > 3


def test_an_offset_of_another_table_is_an_error() -> None:
    offset = follow(make(), "latest").offset
    with pytest.raises(InvalidInputError, match="offset belongs to table"):
        follow(make(), offset)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"offsetVersion":2}'])
def test_a_text_that_is_no_offset_is_an_error(text: str) -> None:
    with pytest.raises(InvalidInputError, match="cannot follow from"):
        Offset.from_json(text)
