"""What callers get wrong: a named error that says what to do, and the table as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from deltalog import DeltaTable
from deltalog.errors import InvalidInputError
from tests.support.facade import make, unchanged

ROWS = [{"id": n, "v": "x"} for n in range(3)]
Call = Callable[[DeltaTable], object]


def refused(call: Call, message: str) -> None:
    table = make(ROWS)
    with unchanged(table), pytest.raises(InvalidInputError, match=message):
        call(table)


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.delete(parameters=[1]),
        lambda t: t.delete(parameters={"id": 1}),
        lambda t: t.delete(parameters=[1], dry_run=True),
        lambda t: t.update({"v": "'y'"}, parameters=[1]),
        lambda t: t.update(new_values={"v": "y"}, parameters={"id": 1}),
        lambda t: t.scan(parameters=[1]),
    ],
)
def test_a_forgotten_predicate_is_not_every_row(call: Call) -> None:
    refused(call, "there is no predicate")


def test_parameters_may_be_for_new_values_alone() -> None:
    table = make(ROWS)
    table.update({"v": ":v"}, parameters={"v": "it's"})
    assert table.to_pyarrow_table().column("v").to_pylist() == ["it's"] * 3


@pytest.mark.parametrize("given", ["v = 'y'", [("v", "'y'")]])
def test_updates_are_a_dictionary(given: Any) -> None:
    refused(lambda t: t.update(given), "expected a dictionary")
    refused(lambda t: t.update(new_values=given), "expected a dictionary")
