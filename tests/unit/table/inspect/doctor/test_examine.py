"""The doctor: nothing to say of tables that are well, and the right thing of those that are not."""

from __future__ import annotations

import pytest

from deltalog.errors import InvalidInputError, TableNotFoundError
from deltalog.log.context import utc_context
from deltalog.table.inspect.doctor import CHECKS, examine
from deltalog.transaction.maintenance.checkpoint import create_checkpoint
from deltalog.transaction.maintenance.checksum import write_checksum
from tests.support.aging import FEATURES
from tests.support.examining import ALL, look, make, problems
from tests.support.logs import DictStore


@pytest.mark.parametrize("properties", [{}, FEATURES, ALL], ids=["plain", "features", "all"])
def test_nothing_is_wrong_with_a_table_that_is_well(properties: dict[str, str]) -> None:
    table = make(properties)
    table.delete("id = 2")
    create_checkpoint(table.snapshot())
    table.append({"id": [5], "p": [2], "f": [1.0]})
    write_checksum(table.snapshot(), whole=True)
    before = dict(table.kept.files)
    report = look(table)
    assert problems(report) == []
    assert report.is_healthy
    assert report.checks == CHECKS
    assert table.kept.files == before


def test_a_place_without_a_table_is_an_error() -> None:
    with pytest.raises(TableNotFoundError):
        examine(utc_context(DictStore()))


def test_checks_can_be_chosen() -> None:
    assert look(make(), checks=["paths"]).checks == ("paths",)
    with pytest.raises(InvalidInputError, match="no check 'nope'"):
        look(make(), checks=["nope"])


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    look(make(), checks=["gaps", "paths"], progress=lambda *at: told.append(at))
    assert told == [(1, 2), (2, 2)]
