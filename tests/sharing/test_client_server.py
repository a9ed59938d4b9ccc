"""Our client reads our server: every table of other writers, and what only both can show."""

from __future__ import annotations

import importlib.util
import json
import pickle
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.data.scan.reader import read_task
from deltalog.errors import DeltaError, SharingAccessError, SharingError
from deltalog.sharing.client import (
    AsyncRestClient,
    HttpOptions,
    Retry,
    SharedTable,
    SharingClient,
    read_profile,
)
from deltalog.sharing.client.pages import CAPABILITIES
from deltalog.sharing.server import app
from deltalog.sharing.wire.profile import BearerToken
from deltalog.sharing.wire.requests import DELTA, PARQUET
from tests.support.asgi import serving
from tests.support.corpora import VARIABLES, Entry, load_entries
from tests.support.sharing import TOKEN, config_of

ONCE = HttpOptions(retry=Retry(attempts=1))
ENTRIES = [entry for variable in VARIABLES for entry in load_entries(variable)]


def _client(url: str, *formats: str) -> AsyncRestClient:
    profile = {
        "shareCredentialsVersion": 1,
        "endpoint": f"{url}/delta-sharing/",
        "bearerToken": TOKEN,
    }
    capabilities = replace(CAPABILITIES, response_formats=formats or CAPABILITIES.response_formats)
    return AsyncRestClient(read_profile(profile), ONCE, capabilities=capabilities)


def _checker(directory: Path) -> ModuleType:
    """The directory's own `check.py`: what counts as right is not ours to decide."""
    name = f"check_{directory.name}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, directory / "check.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@pytest.fixture(scope="module")
def corpora() -> Iterator[str]:
    """A server with every table of other writers, as `s.d.t0`, `s.d.t1`, …"""
    tables = {
        f"s.d.t{number}": {"location": str(entry.path), "historyShared": True}
        for number, entry in enumerate(ENTRIES)
    }
    with serving(app(config_of(tables))) as url:
        yield url


def _judge(entry: Entry, expected: Any, read: Callable[[], pa.Table]) -> None:
    def call() -> pa.Table:
        try:
            return read()
        except DeltaError:
            raise
        except Exception as error:  # noqa: BLE001  # that there is none is what is tested
            pytest.fail(f"an error without a name: {error!r}")

    result, why = _checker(entry.root).judge(expected, call)
    assert result in {"pass", "unsupported"} or expected.get("optional"), why


@pytest.mark.corpus
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # the checkers leave some open
@pytest.mark.protocol("SHARE-DLT-04", "SHARE-DLT-06", "SHARE-CAP-04", "SHARE-PV-01")
@pytest.mark.parametrize("number", range(len(ENTRIES)), ids=[str(entry) for entry in ENTRIES])
def test_a_table_of_another_writer(corpora: str, number: int) -> None:
    entry = ENTRIES[number]
    expected = entry.facts["expected"]
    table = SharedTable(f"s.d.t{number}", client=_client(corpora))
    _judge(entry, entry.expected("latest"), lambda: table.scan().to_table())
    oldest = next(iter(expected["versions"].items()), None)
    if oldest is not None:
        version = int(oldest[0])
        _judge(entry, oldest[1], lambda: table.scan(version=version).to_table())
    for feed in expected.get("cdf", ()):
        first, last = feed["start"], feed["end"]
        _judge(entry, feed, lambda: table.load_cdf(first, last).to_table())  # noqa: B023


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("shared")
    rows = pa.table(
        {"id": pa.array(range(1000), pa.int64()), "day": ["mo", "tu", "we", None] * 250}
    )
    feed = {"delta.enableChangeDataFeed": "true"}
    plain, vectors = directory / "plain", directory / "vectors"
    write_deltalake(plain, rows, partition_by=["day"], configuration=feed)
    DeltaTable(plain).update(updates={"id": "id + 10000"}, predicate="id < 10")
    write_deltalake(vectors, rows, configuration={"delta.enableDeletionVectors": "true"})
    DeltaTable(vectors).delete("id % 3 = 0")
    mapped = {"delta.columnMapping.mode": "name"}
    write_deltalake(directory / "mapped", rows, configuration=mapped)
    DeltaTable(directory / "mapped").alter.rename_column("id", "my id")
    return {name: directory / name for name in ("plain", "vectors", "mapped")}


@pytest.fixture(scope="module")
def server(places: dict[str, Path]) -> Iterator[str]:
    tables = {
        f"s.d.{name}": {"location": str(place), "historyShared": True}
        for name, place in places.items()
    }
    tables["s.d.latest"] = {"location": str(places["plain"])}
    with serving(app(config_of(tables))) as url:
        yield url


def _sorted(table: pa.Table) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in table.column_names])


@pytest.mark.protocol("SHARE-CAP-03", "SHARE-DLT-05", "SHARE-DLT-07", "SHARE-DLT-06")
@pytest.mark.parametrize("formats", [(), (DELTA,), (PARQUET,)], ids=str)
@pytest.mark.parametrize("name", ["plain", "vectors", "mapped"])
def test_rows_are_those_of_the_table_itself(
    server: str, places: dict[str, Path], name: str, formats: tuple[str, ...]
) -> None:
    table = SharedTable(f"s.d.{name}", client=_client(server, *formats))
    if formats == (PARQUET,) and name != "plain":
        with pytest.raises(SharingError, match="parquet"):
            table.scan()
        return
    direct = DeltaTable(places[name])
    assert table.version() == direct.version()
    assert table.schema().names == direct.schema().names
    assert _sorted(table.to_pyarrow_table()) == _sorted(direct.to_pyarrow_table())
    assert table.count() == direct.count()


@pytest.mark.protocol("SHARE-QT-07", "SHARE-QT-19", "SHARE-QT-08")
@pytest.mark.parametrize(
    "predicate",
    [
        "id = 500",
        "day = 'mo' AND id < 100",
        "day IS NULL",
        "id IN (1, 3, 7) OR day = 'tu'",
        "NOT (id > 10)",
        "length(day) = 2 AND id BETWEEN 5 AND 50",
        "id > 100000",
    ],
)
@pytest.mark.parametrize("name", ["plain", "vectors"])
def test_hints_never_cost_a_row(
    server: str, places: dict[str, Path], name: str, predicate: str
) -> None:
    client = _client(server)
    direct = DeltaTable(places[name]).scan(predicate=predicate).to_table()
    shared = SharedTable(f"s.d.{name}", client=client).scan(predicate=predicate).to_table()
    assert _sorted(shared) == _sorted(direct)
    limited = SharedTable(f"s.d.{name}", client=client).scan(predicate=predicate, limit=5)
    assert limited.to_table().num_rows == min(5, direct.num_rows)
    assert SharedTable(f"s.d.{name}", client=client).scan(limit=7).to_table().num_rows == 7


@pytest.mark.protocol("SHARE-CDF-05", "SHARE-CDF-08")
def test_changes_are_those_of_the_table_itself(server: str, places: dict[str, Path]) -> None:
    direct = _sorted(DeltaTable(places["plain"]).load_cdf().to_table())
    for formats in ((), (DELTA,), (PARQUET,)):
        shared = SharedTable("s.d.plain", client=_client(server, *formats))
        assert _sorted(shared.load_cdf().to_table()) == direct


@pytest.mark.protocol("SHARE-QT-10")
def test_history_that_is_not_shared_is_refused(server: str) -> None:
    table = SharedTable("s.d.latest", client=_client(server))
    assert table.count() == 1000
    with pytest.raises(SharingError) as caught:
        table.scan(version=0)
    assert caught.value.status == 400
    with pytest.raises(SharingError, match="historyShared: true of the table"):
        table.load_cdf()


@pytest.mark.protocol("SHARE-LS-01", "SHARE-LS-05", "SHARE-GEN-02")
def test_everything_is_listed(server: str) -> None:
    client = SharingClient(_client(server).profile, options=ONCE)
    tables = client.list_all_tables()
    assert sorted(table.name for table in tables) == ["latest", "mapped", "plain", "vectors"]
    assert [client.table(table).count() for table in tables] == [
        SharedTable(f"S.D.{table.name.upper()}", client=client.rest).count() for table in tables
    ]


def test_a_foreign_token_is_refused(server: str) -> None:
    other = BearerToken(token="other")  # noqa: S106  # no secret
    profile = replace(_client(server).profile, credentials=other)
    with pytest.raises(SharingAccessError):
        SharingClient(profile, options=ONCE).list_shares()


def test_tasks_are_read_elsewhere(server: str) -> None:
    scan = SharedTable("s.d.vectors", client=_client(server)).scan(["id"])
    tasks = list(scan.tasks(with_rows=True))
    assert [task.most_rows for task in tasks] == [task.to_table().num_rows for task in tasks]
    found = [batch for task in tasks for batch in read_task(pickle.loads(pickle.dumps(task)))]
    assert sum(batch.num_rows for batch in found) == len([n for n in range(1000) if n % 3])


def test_engines_read_it(server: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    relation = SharedTable("s.d.plain", client=_client(server)).to_duckdb(duckdb.connect())
    assert relation.filter("day = 'mo'").aggregate("count(*)").fetchall() == [(250,)]
    frame = SharedTable("s.d.mapped", client=_client(server)).to_polars(["my id"], "day IS NULL")
    assert frame.shape == (250, 1)


def test_what_a_person_sees_holds_no_secret(server: str) -> None:
    table = SharedTable("s.d.vectors", client=_client(server))
    shown = [
        repr(table),
        repr(table.scan()),
        table.scan(predicate="id > 5").explain(),
        json.dumps(table.files().to_pylist(), default=str),
        "".join(table.file_uris()),
    ]
    assert not [text for text in shown if TOKEN in text or "Signature" in text]
