"""Shared tables are followed: all rows first, then ranges of versions, each row once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import (
    IncompatibleChangesError,
    InvalidInputError,
    RowsChangedError,
    SharingError,
)
from deltalog.sharing.client import (
    AsyncRestClient,
    SharedFollower,
    SharedFollowOptions,
    SharedTable,
    read_profile,
)
from deltalog.sharing.client.shown_version import ShownVersion, VersionOrTimestamp
from deltalog.sharing.server import app
from deltalog.sharing.wire.lines import Table
from deltalog.table.inspect.follow import Offset
from tests.support.asgi import serving
from tests.support.shared_files import PROTOCOL, QUICK, file_line, metadata, parquet
from tests.support.sharing import TOKEN, config_of
from tests.support.sharing_server import Answer, Asked, ScriptedServer, lines

METADATA = metadata(columns={"id": "long"})


class MovedClock:
    """A clock that moves only when somebody sleeps."""

    def __init__(self) -> None:
        self.ms = 1_700_000_000_000
        self.slept: list[float] = []

    def now_ms(self) -> int:
        return self.ms

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.ms += round(seconds * 1000)


class Growing:
    """A shared table with one row a version: its number."""

    def __init__(self, server: ScriptedServer, latest: int) -> None:
        self.server = server
        self.latest = latest
        self.clock = MovedClock()
        server.on_table("GET metadata", self.head)
        server.on_table("GET version", self.version)
        server.on_table("POST query", self.query)

    def head(self, _: Asked) -> Answer:
        return lines(PROTOCOL, METADATA, version=self.latest)

    def version(self, _: Asked) -> Answer:
        return Answer(headers={"Delta-Table-Version": str(self.latest)})

    def query(self, asked: Asked) -> Answer:
        body = asked.json
        first = body.get("startingVersion")
        if first is None:
            files = [self.file(n) for n in range(self.latest + 1)]
            return lines(PROTOCOL, METADATA, *files, version=self.latest)
        files = [self.file(n, kind="add") for n in range(first, body["endingVersion"] + 1)]
        return lines(PROTOCOL, METADATA, *files, version=first)

    def file(self, number: int, kind: str = "file") -> Any:
        data = parquet(id=pa.array([number], pa.int64()))
        line = file_line(self.server, f"f{number}", data, kind=kind)
        if kind == "add":
            line[kind] |= {"version": number, "timestamp": 1}
        return line

    def follow(
        self, start: Any = None, *, until: int | None = None, **options: Any
    ) -> SharedFollower:
        client = AsyncRestClient(read_profile(self.server.profile()), QUICK, clock=self.clock)
        table = Table(share="s", schema="d", name="t")
        view = ShownVersion(client, table, VersionOrTimestamp(), time_zone="UTC")
        chosen = SharedFollowOptions(**options)
        return SharedFollower(view, start=start, options=chosen, until=until)

    def ranges(self) -> list[tuple[int, int]]:
        """What was asked for."""
        bodies = [asked.json for asked in self.server.find("/query")]
        return [
            (body["startingVersion"], body["endingVersion"])
            for body in bodies
            if "startingVersion" in body
        ]


def _ids(steps: Any) -> list[Any]:
    return [row for step in steps for row in step.to_table()["id"].to_pylist()]


@pytest.mark.protocol("SHARE-STR-01", "B-98", "D-74")
def test_the_version_is_not_asked_for_too_often() -> None:
    assert SharedFollowOptions().version_interval_s == 30
    with pytest.raises(InvalidInputError, match="30 s or more"):
        SharedFollowOptions(version_interval_s=29)
    assert SharedFollowOptions(version_interval_s=10, shortest_interval_s=10) is not None
    with pytest.raises(InvalidInputError, match="10 s or more"):
        SharedFollowOptions(version_interval_s=9, shortest_interval_s=10)


@pytest.mark.protocol("SHARE-STR-02")
def test_versions_are_asked_for_a_hundred_at_a_time(scripted: ScriptedServer) -> None:
    table = Growing(scripted, latest=250)
    empty = lambda asked: lines(PROTOCOL, METADATA, version=asked.json["startingVersion"])  # noqa: E731  # short
    scripted.on_table("POST query", empty)
    follower = table.follow(VersionOrTimestamp(version=1))
    assert follower.poll() is None
    assert table.ranges() == [(1, 100), (101, 200), (201, 250)]
    assert follower.offset.version == 251
    with pytest.raises(InvalidInputError, match="1 or more"):
        SharedFollowOptions(max_versions_per_request=0)


@pytest.mark.protocol("SHARE-STR-03")
def test_the_version_is_asked_for_once_an_interval(scripted: ScriptedServer) -> None:
    table = Growing(scripted, latest=2)
    follower = table.follow("latest")
    for _ in range(3):
        assert follower.poll() is None
    assert len(scripted.find("/version")) == 1
    table.latest = 3
    assert follower.poll() is None
    table.clock.sleep(30)
    assert _ids([follower.poll()]) == [3]
    assert len(scripted.find("/version")) == 2


@pytest.mark.protocol("SHARE-STR-04")
def test_all_rows_come_first_and_then_what_comes(scripted: ScriptedServer) -> None:
    table = Growing(scripted, latest=1)
    follower = table.follow(max_versions_per_request=2)
    assert _ids([follower.poll()]) == [0, 1]
    table.latest = 4
    assert _ids(follower.available()) == [2, 3, 4]
    assert table.ranges() == [(2, 3), (4, 4)]


@pytest.mark.protocol("SHARE-STR-03", "SHARE-STR-04")
def test_an_iterator_waits_for_the_interval(scripted: ScriptedServer) -> None:
    table = Growing(scripted, latest=0)
    steps = iter(table.follow())
    assert _ids([next(steps)]) == [0]
    sleep = table.clock.sleep

    def grow(seconds: float) -> None:
        sleep(seconds)
        table.latest = 1

    table.clock.sleep = grow  # type: ignore[method-assign]  # a commit comes while it sleeps
    assert _ids([next(steps)]) == [1]
    assert table.clock.slept == [30]


@pytest.mark.protocol("SHARE-STR-05")
def test_an_offset_goes_on_where_it_ended(scripted: ScriptedServer) -> None:
    table = Growing(scripted, latest=3)
    first = table.follow(VersionOrTimestamp(version=1), max_versions_per_request=2).poll()
    assert first is not None
    assert _ids([first]) == [1, 2]
    again = Offset.from_json(first.offset.to_json())
    assert _ids(table.follow(again).available()) == [3]
    whole = Offset(table_id=again.table_id, version=3, is_starting_version=True)
    assert _ids([table.follow(whole).poll()]) == [0, 1, 2, 3]
    with pytest.raises(InvalidInputError, match="belongs to table other"):
        table.follow(Offset(table_id="other", version=3))


@pytest.mark.protocol("SHARE-STR-02")
def test_a_follower_may_end_before_the_latest_version(scripted: ScriptedServer) -> None:
    table = Growing(scripted, latest=9)
    follower = table.follow(VersionOrTimestamp(version=1), until=6, max_versions_per_request=3)
    assert _ids(follower.available()) == [1, 2, 3, 4, 5]
    assert table.ranges() == [(1, 3), (4, 5)]
    assert follower.offset.version == 6


@pytest.mark.protocol("SHARE-STR-05")
def test_a_moment_may_start(scripted: ScriptedServer) -> None:
    table = Growing(scripted, latest=3)
    scripted.on_table(
        "GET version",
        lambda asked: Answer(
            headers={"Delta-Table-Version": "2" if "startingTimestamp" in asked.query else "3"}
        ),
    )
    shared = SharedTable("s.d.t", profile=scripted.profile(), options=QUICK)
    assert _ids(shared.follow("2022-01-01T00:00:00Z").available()) == [2, 3]
    assert _ids(shared.follow(3).available()) == [3]
    assert list(shared.follow("latest").available()) == []
    assert table.ranges() == [(2, 3), (3, 3)]


@pytest.fixture
def changing(tmp_path: Path) -> Iterator[tuple[Path, SharedTable]]:
    """Version 0 has four rows, 1 deletes one, 2 appends one, 3 updates one."""
    place = tmp_path / "t"
    feed = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(place, pa.table({"id": [1, 2, 3, 4]}), configuration=feed)
    DeltaTable(place).delete("id = 4")
    write_deltalake(place, pa.table({"id": [5]}), mode="append")
    DeltaTable(place).update(updates={"id": "id * 10"}, predicate="id = 1")
    with serving(app(config_of({"s.d.t": {"location": str(place), "historyShared": True}}))) as url:
        profile = {
            "shareCredentialsVersion": 1,
            "endpoint": f"{url}/delta-sharing/",
            "bearerToken": TOKEN,
        }
        yield place, SharedTable("s.d.t", profile=profile, options=QUICK)


@pytest.mark.protocol("SHARE-STR-05", "SHARE-QT-13")
@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({"skip_change_commits": True}, [1, 2, 3, 4, 5]),
        ({"ignore_changes": True}, [1, 2, 2, 3, 3, 3, 4, 5, 10]),
        ({"changes": True}, [1, 1, 2, 3, 4, 4, 5, 10]),
    ],
)
def test_what_changed_rows_mean_is_an_option(
    changing: tuple[Path, SharedTable], options: dict[str, Any], rows: list[int]
) -> None:
    _, table = changing
    follower = table.follow(0, options=SharedFollowOptions(**options))
    found = sorted(_ids(follower.available()))
    if "ignore_changes" in options:  # whole files come again: which ones, their writer decides
        assert set(found) == set(rows)
    else:
        assert found == rows


@pytest.mark.protocol("SHARE-STR-05")
def test_changed_rows_are_an_error_by_default(changing: tuple[Path, SharedTable]) -> None:
    _, table = changing
    with pytest.raises(RowsChangedError, match="version 1 rewrote"):
        list(table.follow(0).available())


@pytest.mark.protocol("SHARE-STR-05")
def test_deletes_of_whole_files_may_be_ignored(changing: tuple[Path, SharedTable]) -> None:
    place, table = changing
    DeltaTable(place).delete()
    follower = table.follow(4, options=SharedFollowOptions(ignore_deletes=True))
    assert list(follower.available()) == []
    assert follower.offset.version == 5
    with pytest.raises(RowsChangedError, match="version 4 deleted"):
        list(table.follow(4).available())


@pytest.mark.protocol("SHARE-STR-04")
def test_another_schema_ends_the_steps(changing: tuple[Path, SharedTable]) -> None:
    place, table = changing
    write_deltalake(place, pa.table({"id": [6]}), mode="append")
    more = pa.table({"id": [7], "more": ["x"]})
    write_deltalake(place, more, mode="append", schema_mode="merge")
    follower = table.follow(4)
    step = follower.poll()
    assert step is not None
    assert step.to_table().to_pylist() == [{"id": 6}]
    with pytest.raises(IncompatibleChangesError, match="version 5"):
        follower.poll()
    rest = list(table.follow(step.offset).available())
    assert [row for one in rest for row in one.to_table().to_pylist()] == [{"id": 7, "more": "x"}]


def test_rows_are_chosen(changing: tuple[Path, SharedTable]) -> None:
    _, table = changing
    options = SharedFollowOptions(columns=["id"], predicate="id > 2", skip_change_commits=True)
    assert sorted(_ids(table.follow(options=options).available())) == [3, 5, 10]
    feed = SharedFollowOptions(columns=["_change_type"], predicate="id = 4", changes=True)
    (step,) = table.follow(0, options=feed).available()
    assert step.to_table()["_change_type"].to_pylist() == ["insert", "delete"]


@pytest.mark.parametrize("changes", [True, False])
@pytest.mark.parametrize(
    ("begun", "versions"), [(True, 2), (True, 5), (True, 6), (False, 2), (False, 6)]
)
def test_a_table_that_was_made_anew_is_not_followed_on(
    changing: tuple[Path, SharedTable], begun: bool, versions: int, changes: bool
) -> None:
    place, shared = changing
    often = SharedFollowOptions(
        changes=changes, ignore_changes=not changes, version_interval_s=0, shortest_interval_s=0
    )
    follower = shared.follow(options=often)
    if begun:
        list(follower.available())
    shutil.rmtree(place)
    for number in range(versions):
        feed = {"delta.enableChangeDataFeed": "true"} if number == 0 else None
        rows = pa.table({"id": [100 + number]})
        write_deltalake(place, rows, mode="append", configuration=feed)
    with pytest.raises((IncompatibleChangesError, SharingError)):
        list(follower.available())
