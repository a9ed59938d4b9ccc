"""What the tests of Delta Sharing use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import DeltaTable, Field, PrimitiveType, write_deltalake
from deltalog.sharing.client import SharedTable
from deltalog.sharing.server import app
from tests.support.shared_files import PROTOCOL, QUICK, file_line, metadata, parquet, stats
from tests.support.sharing import KEY, TOKEN, Caller, commit_at, sharing
from tests.support.sharing_server import Answer, ScriptedServer, lines

TIMES = ("2022-01-01T00:00:10Z", "2022-01-01T00:00:20Z", "2022-01-01T00:00:30Z")


@pytest.fixture
def scripted() -> Iterator[ScriptedServer]:
    """A server on loopback that answers what the test tells it to."""
    server = ScriptedServer()
    yield server
    server.close()


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """One version with one file of a hundred rows."""
    write_deltalake(tmp_path / "t", pa.table({"id": range(100)}))
    return tmp_path / "t"


@pytest.fixture
def caller(table: Path) -> Caller:
    """Alice, to whom `table` is shared with its history as `s.d.t`."""
    return sharing({"s.d.t": {"location": str(table), "historyShared": True}})


@pytest.fixture
def daily(tmp_path: Path) -> Path:
    """Versions 0 to 2, ten seconds apart; each adds a day of ten rows."""
    path = tmp_path / "daily"
    for number, day in enumerate(["2021-04-28", "2021-04-29", "2021-04-30"]):
        rows = {"id": range(number * 10, number * 10 + 10), "day": [day] * 10}
        columns = pa.table({"id": pa.array(rows["id"], pa.int64()), "day": rows["day"]})
        write_deltalake(path, columns, partition_by=["day"], mode="append")
    commit_at(path, *TIMES)
    return path


@pytest.fixture
def daily_caller(daily: Path) -> Caller:
    """Alice, to whom `daily` is shared with its history as `s.d.t`."""
    return sharing({"s.d.t": {"location": str(daily), "historyShared": True}})


@pytest.fixture
def vaccine() -> Caller:
    """The example of the specification, and a share of somebody else."""
    return Caller(
        app(
            {
                "shares": [
                    {
                        "name": "vaccine_share",
                        "id": "edacc4a7-6600-4fbb-85f3-a62a5ce6761f",
                        "displayName": "Vaccines",
                        "comment": "about them",
                        "properties": {"owner": "acme"},
                        "schemas": [
                            {
                                "name": "acme_vaccine_data",
                                "tables": [
                                    {"name": "vaccine_ingredients", "location": "/x", "id": "1"},
                                    {"name": "vaccine_patients", "location": "/y"},
                                ],
                            },
                            {"name": "empty"},
                            {"name": "more", "tables": [{"name": "t", "location": "/z"}]},
                        ],
                    },
                    {"name": "sales_share", "schemas": []},
                    {"name": "foreign", "schemas": [{"name": "s"}]},
                ],
                "recipients": [
                    {"name": "alice", "token": TOKEN, "shares": ["vaccine_share", "sales_share"]},
                    {"name": "bob", "token": "token-of-bob", "shares": ["foreign"]},
                ],
                "signingKey": KEY,
            }
        )
    )


@pytest.fixture(scope="module")
def formats_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables that need the format `delta` for different reasons, and a plain one."""
    root = tmp_path_factory.mktemp("formats")
    rows = pa.table({"id": range(10), "name": [f"n{number}" for number in range(10)]})
    write_deltalake(root / "plain", rows)
    vectors = {"delta.enableDeletionVectors": "true"}
    write_deltalake(root / "vectors", rows, configuration=vectors)
    DeltaTable(root / "vectors").delete("id = 3")
    write_deltalake(root / "mapped", rows, configuration={"delta.columnMapping.mode": "name"})
    times = pa.table({"t": pa.array([1, 2], pa.timestamp("us"))})
    write_deltalake(root / "ntz", times)
    own_times = {"delta.enableInCommitTimestamps": "true", "delta.checkpointPolicy": "v2"}
    write_deltalake(root / "ict", rows, configuration=own_times)
    return root


@pytest.fixture
def formats_caller(formats_root: Path) -> Caller:
    """Alice, to whom the tables of `formats_root` are shared with their history in `s.d`."""
    names = ("plain", "vectors", "mapped", "ntz", "ict")
    shared = {"historyShared": True}
    return sharing(
        {f"s.d.{name}": {"location": str(formats_root / name), **shared} for name in names}
    )


@pytest.fixture
def salaries(tmp_path: Path) -> Path:
    """Five rows of persons in three partitions, with notes that are secret."""
    rows = pa.table(
        {
            "id": [1, 2, 3, 4, 5],
            "salary": [1000, 2000, 3000, 4000, 9_999_999],
            "note": ["secret a", "b", "secret c", "d", "secret e"],
            "p": ["south", "south", "north", "north", "east"],
        }
    )
    write_deltalake(tmp_path / "t", rows, partition_by=["p"])
    return tmp_path / "t"


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """With change data feed: insert, update, a new column, delete, ten seconds apart."""
    path = tmp_path / "changed"
    rows = pa.table({"id": [1, 2, 3], "p": ["a", "a", "b"]})
    write_deltalake(
        path, rows, partition_by=["p"], configuration={"delta.enableChangeDataFeed": "true"}
    )
    DeltaTable(path).update(updates={"id": "id * 10"}, predicate="p = 'a'")
    DeltaTable(path).alter.add_columns([Field("extra", PrimitiveType("string"))])
    DeltaTable(path).delete("p = 'b'")
    commit_at(path, *TIMES, "2022-01-01T00:00:40Z")
    return path


@pytest.fixture
def changed_caller(changed: Path) -> Caller:
    """Alice, to whom `changed` is shared with its history as `s.d.t`."""
    return sharing({"s.d.t": {"location": str(changed), "historyShared": True}})


@pytest.fixture
def shared(scripted: ScriptedServer) -> SharedTable:
    """Two files of two days, of which the server leaves out none, whatever it is told."""
    columns = metadata(["day"], columns={"id": "long", "name": "string", "day": "date"})
    monday = parquet(id=pa.array([1, 2, 3], pa.int64()), name=["a", None, "c"])
    tuesday = parquet(id=pa.array([11, 12], pa.int64()), name=["x", "y"])
    files = [
        file_line(
            scripted,
            "f1",
            monday,
            partition_values={"day": "2024-01-01"},
            stats=stats(3, id=(1, 3)),
        ),
        file_line(
            scripted,
            "f2",
            tuesday,
            partition_values={"day": "2024-01-02"},
            stats=stats(2, id=(11, 12)),
        ),
    ]
    scripted.on_table("GET metadata", lines(PROTOCOL, columns, version=7))
    scripted.on_table("POST query", lines(PROTOCOL, columns, *files, version=7))
    return SharedTable("s.d.t", profile=scripted.profile(), options=QUICK)


@pytest.fixture
def url(scripted: ScriptedServer, tmp_path: Path) -> str:
    """The URL of a table with a file of three rows, and with a change."""
    meta = metadata(columns={"id": "long"}, configuration={"enableChangeDataFeed": "true"})
    data = parquet(id=pa.array([1, 2, 3], pa.int64()))
    line = file_line(scripted, "f", data, stats=stats(3, id=(1, 3)))
    change = {**line["file"], "version": 4, "timestamp": 1652140000000}
    scripted.on_table("GET metadata", lines(PROTOCOL, meta, version=4))
    scripted.on_table("POST query", lines(PROTOCOL, meta, line, version=4))
    scripted.on_table("GET changes", lines(PROTOCOL, meta, {"add": change}, version=4))
    scripted.on_table("GET version", Answer(headers={"Delta-Table-Version": "4"}))
    profile = tmp_path / "p.share"
    profile.write_text(json.dumps(scripted.profile()), "utf-8")
    return f"{profile}#s.d.t"
