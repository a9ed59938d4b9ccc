"""The requirement map against the tests that claim its rows."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.support.requirements import Row, find_claims, known_ids, load_rows

STATUS = re.compile(r"read|written|shared|parity|(open|later): issue \d+")
SIDES = {"read": "reader", "written": "writer", "shared": "sharing", "parity": "spark"}
WHO = set(SIDES.values())


def test_every_row_is_well_formed() -> None:
    wrong = [
        row
        for row in load_rows()
        if not STATUS.fullmatch(row.status)
        or not set(row.who) <= WHO
        or not 0 < len(row.title) <= 60
    ]
    assert not wrong


def test_ids_are_unique() -> None:
    assert [
        name for name, count in Counter(row.id for row in load_rows()).items() if count > 1
    ] == []


def test_the_map_has_every_part() -> None:
    sections = list(dict.fromkeys(row.section for row in load_rows()))
    expected = [f"A{n}" for n in range(1, 11)] + [f"B{n}" for n in range(1, 5)]
    assert sections == expected + [f"C{n}" for n in range(1, 10)] + ["D"]
    assert len(load_rows()) == 582


def test_claims_name_rows() -> None:
    assert sorted(set(find_claims()) - known_ids()) == []


def test_every_claimed_status_has_a_test() -> None:
    claims = find_claims()
    bare = [
        f"{row.id} {row.title}"
        for row in load_rows()
        if row.status in SIDES and row.id not in claims
    ]
    assert bare == []


@pytest.mark.parametrize("status", SIDES)
def test_a_status_is_reached_by_those_it_binds(status: str) -> None:
    side = SIDES[status]
    wrong: list[Row] = [row for row in load_rows() if row.status == status and side not in row.who]
    assert wrong == []
