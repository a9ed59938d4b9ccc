"""Rows in errors: JSON, as in the output of commands."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog._util.json import dumps, loads
from deltalog.cli.literals import plain, rows_as_json
from tests.support.command_line import ROWS, run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "row",
    [
        {"id": -1, "x": -1.5, "none": None, "true": True},
        {"day": date(2026, 1, 1), "price": Decimal("1.50"), "raw": b"\xff'{", "more": {"a": [1]}},
        {
            "at": datetime(2026, 1, 1, tzinfo=ZoneInfo("UTC")),
            "utc": datetime(2026, 1, 1, tzinfo=UTC),
        },
        {"text": 'it\'s } a "brace" {', "nan": float("nan"), "inf": float("-inf")},
        {"span": timedelta(days=1, seconds=3), "key\\": "\\'"},
    ],
)
def test_rows_are_json(row: dict[str, Any]) -> None:
    told = rows_as_json(f"2 rows do not match, such as [{row}, {row}]; change them {{x}}")
    json = dumps(plain(row)).decode()
    assert told == f"2 rows do not match, such as [{json}, {json}]; change them {{x}}"
    assert loads(json) == plain(row)


@pytest.mark.parametrize(
    "text",
    [
        "update(updates={'size(a)': '`size(a)`'})",
        "such as {'id': value}",
        "such as {'id': datetime.datetime(2026, 13, 1)}",
        "such as {'id': open('/etc/hostname')}",
        "such as {'id': 1",
        "expected ${'NAME'} {'",
        f"{ {'a': datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=1)))} }",
    ],
)
def test_other_texts_do_not_change(text: str) -> None:
    assert rows_as_json(text) == text


def test_rows_that_break_a_check(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    write_deltalake(place, ROWS.select(["id", "at", "day", "price"]).slice(0, 1))
    DeltaTable(place).branch("b")
    row = '{"id":1,"at":"2024-01-01T00:00:00+00:00","day":"2024-01-01","price":"1.50"}'
    shown = run("publish", f"{place}@b", "--check", "id > 5", code=1).stderr
    assert shown == f"check failed: id > 5: 1 row does not match, such as [{row}]\n"
    alter = "ALTER TABLE t ADD CONSTRAINT c CHECK (day > DATE'2025-01-01')"
    assert 'such as {"day":"2024-01-01"};' in run("sql", "-t", f"t={place}", alter, code=3).stderr
