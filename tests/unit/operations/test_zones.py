"""Every verb on a table whose zone is not UTC, through every door: they must not differ."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable, convert_to_deltalake, write_deltalake, write_files
from deltalog.errors import (
    ConstraintViolationError,
    InvalidInputError,
    UnsupportedFeatureError,
)
from tests.support.logs import DictStore
from tests.support.raw_tables import DataTable

ZONE = "America/New_York"
TEXT = "2020-01-01 00:00:00"  # in New York that is 05:00 in UTC
SHOWN = dt.datetime(2020, 1, 1, 5, tzinfo=dt.UTC)
MIDNIGHT = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
NAIVE = dt.datetime(2020, 1, 1)  # noqa: DTZ001  # the table's zone is to be put on it
AT_SHOWN = "ts = TIMESTAMP '2020-01-01 05:00:00Z'"
AT_MIDNIGHT = "ts = TIMESTAMP '2020-01-01 00:00:00Z'"
AUTO = {"delta.autoOptimize.autoCompact": "true"}

Do = Callable[[DeltaTable], object]


def table(num_files: int = 3, **properties: str) -> DeltaTable:
    """Files of one row each, in one partition whose text names no zone."""
    raw = DataTable(
        [("id", "long"), ("ts", "timestamp")], partition_by=["ts"], configuration=properties
    )
    for number in range(num_files):
        raw.commit(raw.add({"id": [number]}, partitionValues={"ts": TEXT}))
    found = DeltaTable(raw.store, default_timezone=ZONE)
    assert rows(found) == [(number, SHOWN) for number in range(num_files)]
    return found


def rows(found: DeltaTable) -> list[tuple[int, dt.datetime]]:
    """As a reader in the table's zone sees them, from the log anew."""
    again = DeltaTable(found.snapshot.store, default_timezone=ZONE)
    return sorted(tuple(row.values()) for row in again.scan().to_table().to_pylist())


def in_transaction(act: Callable[[Any], object]) -> Do:
    def do(found: DeltaTable) -> None:
        with found.transaction() as tx:
            act(tx)

    return do


def naive(number: int) -> pa.Table:
    return pa.table({"id": [number], "ts": pa.array([NAIVE], pa.timestamp("us"))})


def merged(door: Any) -> object:
    return door.merge(naive(9), "source.id = target.id").when_not_matched_insert_all().execute()


def in_two_phases(found: DeltaTable) -> None:
    found.commit(write_files(found.write_spec(), naive(9)))


def two_door(name: str, act: Callable[[Any], object]) -> list[Any]:
    """The same call of a table and of a transaction."""
    return [
        pytest.param(act, id=f"{name}-method"),
        pytest.param(in_transaction(act), id=f"{name}-transaction"),
    ]


@pytest.mark.parametrize(
    "act",
    [
        *two_door("delete", lambda door: door.delete(AT_MIDNIGHT)),
        *two_door("update", lambda door: door.update({"id": "-1"}, predicate=AT_MIDNIGHT)),
        *two_door(
            "merge",
            lambda door: (
                door.merge(naive(0), f"source.id = target.id AND target.{AT_MIDNIGHT}")
                .when_matched_delete()
                .execute()
            ),
        ),
        pytest.param(
            lambda found: write_deltalake(
                found, [], mode="overwrite", predicate=AT_MIDNIGHT, configuration=None
            ),
            id="replace-where",
        ),
        pytest.param(
            in_transaction(lambda tx: tx.overwrite([], AT_MIDNIGHT)),
            id="replace-where-transaction",
        ),
    ],
)
def test_rows_that_do_not_match_stay_as_they_are(act: Do) -> None:
    found = table()
    act(found)
    assert rows(found) == [(0, SHOWN), (1, SHOWN), (2, SHOWN)]


@pytest.mark.parametrize(
    ("act", "left"),
    [
        *[
            pytest.param(one.values[0], [], id=one.id)
            for one in two_door("delete", lambda door: door.delete(AT_SHOWN))
        ],
        *[
            pytest.param(one.values[0], [(-1, SHOWN)] * 3, id=one.id)
            for one in two_door(
                "update", lambda door: door.update({"id": "-1"}, predicate=AT_SHOWN)
            )
        ],
        *[
            pytest.param(one.values[0], [(1, SHOWN), (2, SHOWN)], id=one.id)
            for one in two_door(
                "merge",
                lambda door: (
                    door.merge(naive(0), f"source.id = target.id AND target.{AT_SHOWN}")
                    .when_matched_delete()
                    .execute()
                ),
            )
        ],
        pytest.param(
            lambda found: write_deltalake(
                found,
                pa.table({"id": [7], "ts": pa.array([SHOWN], pa.timestamp("us", "UTC"))}),
                mode="overwrite",
                predicate=AT_SHOWN,
            ),
            [(7, SHOWN)],
            id="replace-where",
        ),
    ],
)
def test_rows_that_match_change(act: Do, left: list[tuple[int, dt.datetime]]) -> None:
    found = table()
    act(found)
    assert rows(found) == left


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda found: write_deltalake(found, naive(9), mode="append"), id="write"),
        pytest.param(
            lambda found: write_deltalake(
                found.snapshot.store, naive(9), mode="append", default_timezone=ZONE
            ),
            id="write-by-place",
        ),
        pytest.param(in_transaction(lambda tx: tx.append(naive(9))), id="append-transaction"),
        pytest.param(in_two_phases, id="two-phases"),
        *two_door("merge", merged),
        *two_door("upsert", lambda door: door.upsert(naive(9), "id")),
        *two_door("overwrite", lambda door: _overwrite(door, naive(9))),
    ],
)
def test_times_without_a_zone_land_at_the_same_moment(act: Do) -> None:
    found = table()
    act(found)
    assert (9, SHOWN) in rows(found)
    assert {moment for _, moment in rows(found)} == {SHOWN}


def _overwrite(door: Any, data: pa.Table) -> None:
    if isinstance(door, DeltaTable):
        write_deltalake(door, data, mode="overwrite")
    else:
        door.overwrite(data)


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda found: write_deltalake(found, naive(99), mode="append"), id="write"),
        pytest.param(in_transaction(lambda tx: tx.append(naive(99))), id="transaction"),
        pytest.param(
            lambda found: found.commit(write_files(found.write_spec(), naive(99))),
            id="two-phases",
        ),
        pytest.param(lambda found: found.upsert(naive(99), "id"), id="merge"),
        pytest.param(lambda found: found.update({"id": "id + 0"}, predicate="id < 5"), id="update"),
        pytest.param(lambda found: found.delete("id = 0"), id="delete"),
    ],
)
def test_compaction_after_a_commit_follows_every_door_and_changes_no_value(act: Do) -> None:
    found = table(55, **AUTO)
    act(found)
    assert found.history(1)[0]["operation"] == "OPTIMIZE"
    assert len(found.file_uris()) < 10
    assert {moment for _, moment in rows(found)} == {SHOWN}


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda found: found.optimize.compact(), id="compact"),
        pytest.param(lambda found: found.optimize.z_order(["id"]), id="z-order"),
        pytest.param(
            lambda found: (found.delete("id = 0"), found.restore(3)),
            id="restore",
        ),
    ],
)
def test_moving_rows_changes_no_value(act: Do) -> None:
    found = table()
    act(found)
    assert rows(found) == [(0, SHOWN), (1, SHOWN), (2, SHOWN)]


def test_a_clone_is_read_as_its_source(tmp_path: Any) -> None:
    clone = table().clone(str(tmp_path / "clone"), shallow=False)
    assert {row["ts"] for row in clone.scan().to_table().to_pylist()} == {SHOWN}


def test_checkpoints_hold_the_moments_that_are_read() -> None:
    found = table(3, **{"delta.checkpoint.writeStatsAsStruct": "true"})
    found.create_checkpoint()
    place = f"_delta_log/{found.version():020}.checkpoint.parquet"
    adds = pq.read_table(io.BytesIO(found.snapshot.store.read(place))).column("add").to_pylist()
    parsed = [add["partitionValues_parsed"]["ts"] for add in adds if add is not None]
    assert parsed == [SHOWN] * 3


def test_times_in_directories_are_those_of_the_zone(tmp_path: Path) -> None:
    directory = tmp_path / "ts=2020-01-01 00%3A00%3A00"
    directory.mkdir()
    pq.write_table(pa.table({"id": [1]}), directory / "a.parquet")
    convert_to_deltalake(
        str(tmp_path),
        partition_by=pa.schema([pa.field("ts", pa.timestamp("us", "UTC"))]),
        default_timezone=ZONE,
    )
    assert DeltaTable(str(tmp_path)).scan().to_table().column("ts").to_pylist() == [SHOWN]


def test_a_table_has_one_zone() -> None:
    found = table()
    with pytest.raises(InvalidInputError, match="opened with 'America/New_York'"):
        write_deltalake(found, naive(9), mode="append", default_timezone="UTC")
    assert rows(found) == [(0, SHOWN), (1, SHOWN), (2, SHOWN)]


@pytest.mark.parametrize(
    "act",
    two_door(
        "merge",
        lambda door: (
            door.merge(naive(2), "source.id = target.id AND source.ts = target.ts")
            .when_matched_update({"id": "target.id + 100"})
            .when_not_matched_insert_all()
            .execute()
        ),
    ),
)
def test_a_key_without_a_zone_is_in_the_zone_of_the_table(act: Do) -> None:
    found = table()
    act(found)
    assert rows(found) == [(0, SHOWN), (1, SHOWN), (102, SHOWN)]


def test_an_upsert_by_a_key_without_a_zone_makes_no_second_row() -> None:
    found = table()
    found.upsert(naive(2), ["id", "ts"])
    assert rows(found) == [(0, SHOWN), (1, SHOWN), (2, SHOWN)]


WALL = pa.timestamp("us")
INSTANT = pa.timestamp("us", "UTC")


def ids(found: pa.Table) -> set[Any]:
    return set(found.column("id").to_pylist())


@pytest.fixture
def beside() -> DeltaTable:
    """The same wall time in New York without a zone (`wall`), and with one (`ts`)."""
    found = DeltaTable.create(
        DictStore(),
        pa.schema([("id", pa.int64()), ("wall", WALL), ("ts", INSTANT)]),
        configuration={"delta.enableDeletionVectors": "true"},
    )
    found = DeltaTable(found.snapshot.store, default_timezone=ZONE)
    walls, moments = pa.array([NAIVE, NAIVE], WALL), pa.array([SHOWN, MIDNIGHT], INSTANT)
    write_deltalake(found, pa.table({"id": [1, 2], "wall": walls, "ts": moments}), mode="append")
    return found


@pytest.mark.parametrize(
    ("condition", "matching"),
    [
        ("wall = ts", [1]),
        ("ts = wall", [1]),
        ("wall > ts", [2]),
        ("CAST(wall AS TIMESTAMP) = ts", [1]),
        ("CAST(ts AS TIMESTAMP_NTZ) = wall", [1]),
        ("ts IN (wall)", [1]),
        ("array(ts) = array(wall)", [1]),
        ("ts = TIMESTAMP_NTZ '2020-01-01 00:00:00'", [1]),
        ("wall = TIMESTAMP '2020-01-01 05:00:00Z'", [1, 2]),
        ("wall = TIMESTAMP '2020-01-01 00:00:00Z'", []),
        ("coalesce(wall, ts) = TIMESTAMP '2020-01-01 05:00:00Z'", [1, 2]),
    ],
)
def test_columns_with_and_without_a_zone_meet_in_the_zone_of_the_table(
    beside: DeltaTable, condition: str, matching: list[int]
) -> None:
    assert ids(beside.scan(predicate=condition).to_table()) == {*matching}
    beside.delete(condition)
    assert ids(beside.to_pyarrow_table()) == {1, 2} - {*matching}


def test_an_update_and_its_condition_agree_on_the_zone(beside: DeltaTable) -> None:
    beside.update({"ts": "wall"}, predicate="ts <> wall")
    assert beside.scan(predicate="wall = ts").to_table().num_rows == 2
    assert beside.to_pyarrow_table()["ts"].to_pylist() == [SHOWN, SHOWN]


def test_a_rule_that_depends_on_the_zone_is_refused_where_it_is_not_utc(
    beside: DeltaTable,
) -> None:
    in_utc = DeltaTable(beside.snapshot.store)
    in_utc.alter.add_constraint({"same_in_utc": "id < 9 OR wall = ts"})
    row = pa.table({"id": [9], "wall": pa.array([NAIVE], WALL), "ts": [MIDNIGHT]})
    with pytest.raises(UnsupportedFeatureError, match=r"same_in_utc.*depends on the time zone"):
        write_deltalake(beside, row, mode="append")
    write_deltalake(in_utc, row, mode="append")
    with pytest.raises(ConstraintViolationError):
        write_deltalake(in_utc, row.set_column(2, "ts", [[SHOWN]]), mode="append")
