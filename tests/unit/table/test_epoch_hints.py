"""Times since 1970, which histories contain, are no versions; the error says what to pass."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from uuid import uuid4

import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake
from deltalog.errors import DeltaError

TIME = 1_700_000_000_123  # in milliseconds
MILLISECONDS = f"the time that is {TIME} milliseconds since 1970, pass '2023-11-14T22:13:20.123Z'"
SECONDS = "1700000000 seconds since 1970, pass '2023-11-14T22:13:20Z'"
FLOAT = "1700000000.123 seconds since 1970, pass '2023-11-14T22:13:20.123Z'"
CALLS: list[tuple[str, Callable[[DeltaTable], object]]] = [
    (MILLISECONDS, lambda table: DeltaTable(table.table_uri, version=TIME)),
    (MILLISECONDS, lambda table: table.load_as_version(TIME)),
    (MILLISECONDS, lambda table: table.load_as_version(str(TIME))),
    (MILLISECONDS, lambda table: table.restore(TIME)),
    (MILLISECONDS, lambda table: table.diff(TIME)),
    ("1970, pass starting_timestamp='2023", lambda table: table.load_cdf(TIME)),
    (MILLISECONDS, lambda table: table.follow(TIME)),
    (MILLISECONDS, lambda table: deltalog.sql("SELECT * FROM t VERSION AS OF ?", [TIME], t=table)),
    (
        MILLISECONDS,
        lambda table: deltalog.sql("SELECT * FROM t TIMESTAMP AS OF ?", [str(TIME)], t=table),
    ),
    (SECONDS, lambda table: table.load_as_version(TIME // 1000)),
    (FLOAT, lambda table: table.load_as_version(TIME / 1000)),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("hint", "call"), CALLS)
def test_the_hint_is_a_timestamp_that_can_be_passed(
    hint: str, call: Callable[[DeltaTable], object]
) -> None:
    table = _table()
    with pytest.raises(DeltaError) as caught:
        call(table)
    assert hint in str(caught.value)
    moment = datetime.fromisoformat(str(caught.value).split("'")[-2])
    assert moment.tzinfo == UTC


def test_other_versions_have_no_such_hint() -> None:
    for version in (7, 10**8, 10**18):
        with pytest.raises(DeltaError) as caught:
            _table().load_as_version(version)
        assert "since 1970" not in str(caught.value)


def _table() -> DeltaTable:
    place = f"memory://{uuid4()}"
    feed = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(place, [{"id": 1}], configuration=feed)
    return DeltaTable(place)
