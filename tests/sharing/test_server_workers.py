"""Two processes of the server behind one address, each request to the other one than the last."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.sharing import SharedTable
from deltalog.sharing.server import app
from tests.support.balancing import RoundRobin, balanced
from tests.support.sharing import PREFIX, TOKEN, Caller, config_of, path_of, write_profile
from tests.support.sharing_process import ServerProcess, running_server

# The official client's.
pytestmark = pytest.mark.filterwarnings("ignore:The copy keyword is deprecated")

ASYNC = "responseformat=parquet;asyncquery=true"
FEED = {"delta.enableChangeDataFeed": "true"}


class Pair:
    """Two servers, and the address of both."""

    def __init__(self, home: Path, servers: list[ServerProcess], balancer: RoundRobin) -> None:
        self.home = home
        self.servers = servers
        self.balancer = balancer

    def ask(
        self, method: str, target: str, body: object = None, **headers: str
    ) -> tuple[int, list[Any]]:
        """The status and the lines of an answer of whichever server comes next."""
        data = None if body is None else json.dumps(body).encode()
        fields = {"Authorization": f"Bearer {TOKEN}"}
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(  # noqa: S310 - loopback
            self.balancer.url + target, data, fields, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:  # noqa: S310 - as above
                return reply.status, [json.loads(line) for line in reply.read().splitlines()]
        except urllib.error.HTTPError as error:
            with error:
                return error.code, [json.loads(error.read() or b"null")]

    def query(self, table: str, body: object, **headers: str) -> tuple[int, list[Any]]:
        return self.ask("POST", f"{PREFIX}{path_of(table)}/query", body, **headers)

    def poll(self, table: str, query_id: str, body: object = None) -> tuple[int, list[Any]]:
        """The answer that is no status any more."""
        target = f"{PREFIX}{path_of(table)}/queries/{query_id}"
        for _ in range(500):
            status, lines = self.ask("POST", target, {} if body is None else body)
            if status != 200 or "queryStatus" not in lines[0]:
                break
            time.sleep(0.02)
        return status, lines

    def profile(self) -> Path:
        path = self.home / "p.share"
        path.touch(mode=0o600)
        return write_profile(path, f"{self.balancer.url}{PREFIX}/")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Servers of a table with three files, a change feed, a part of it, and seven small ones."""
    home = tmp_path_factory.mktemp("pair")
    for start in (0, 10, 20):
        rows = pa.table({"id": range(start, start + 10)})
        write_deltalake(home / "t", rows, mode="append", configuration=FEED)
    DeltaTable(home / "t").delete("id = 5")
    shared = {"location": str(home / "t"), "historyShared": True}
    config = config_of(
        {
            "s.d.whole": shared,
            "s.d.part": {**shared, "rowFilter": "id >= 5"},
            "s.d.growing": {"location": str(home / "growing"), "historyShared": True},
        }
    )
    write_deltalake(home / "growing", pa.table({"id": [1]}))
    with (
        running_server(home / "one", config) as one,
        running_server(home / "two", config) as two,
        balanced([one.port, two.port]) as balancer,
    ):
        yield Pair(home, [one, two], balancer)


def _of(lines: list[Any], kind: str) -> list[Any]:
    return [line[kind] for line in lines if kind in line]


@pytest.mark.parametrize("table", ["s.d.whole", "s.d.part"])
def test_pages_go_on_in_another_process(pair: Pair, table: str) -> None:
    before = dict(pair.balancer.counts)
    ids, token = [], None
    for _ in range(3):
        body = {"maxFiles": 1, **({} if token is None else {"pageToken": token})}
        status, lines = pair.query(table, body)
        assert status == 200, lines
        ids += [file["id"] for file in _of(lines, "file")]
        token = _of(lines, "endStreamAction")[0].get("nextPageToken")
    assert token is None
    assert len(set(ids)) == 3
    asked = {port: count - before[port] for port, count in pair.balancer.counts.items()}
    assert sorted(asked.values()) == [1, 2]


@pytest.mark.parametrize("table", ["s.d.whole", "s.d.part"])
def test_files_are_had_from_a_process_that_did_not_sign(pair: Pair, table: str) -> None:
    _, lines = pair.query(table, {})
    files = _of(lines, "file")
    assert len(files) == 3
    for file in files:
        for _ in range(2):  # once from each
            with urllib.request.urlopen(file["url"], timeout=30) as reply:  # noqa: S310
                assert len(reply.read()) == file["size"]


def test_listings_and_urls_that_are_renewed(pair: Pair) -> None:
    names, target = [], f"{PREFIX}/shares/s/all-tables?maxResults=1"
    token = ""
    for _ in range(3):
        status, (page,) = pair.ask("GET", f"{target}&pageToken={token}")
        assert status == 200
        names += [item["name"] for item in page["items"]]
        token = page.get("nextPageToken", "")
    assert names == ["whole", "part", "growing"]
    _, lines = pair.query("s.d.whole", {"includeRefreshToken": True})
    refresh = _of(lines, "endStreamAction")[0]["refreshToken"]
    status, lines = pair.query("s.d.whole", {"refreshToken": refresh})
    assert (status, len(_of(lines, "file"))) == (200, 3)


@pytest.mark.protocol("SHARE-ASY-01")
@pytest.mark.parametrize("table", ["s.d.whole", "s.d.part"])
def test_an_asynchronous_query_is_answered_by_any_process(pair: Pair, table: str) -> None:
    begun = {"idempotencyKey": "k", "version": 2}
    status, lines = pair.query(table, begun, delta_sharing_capabilities=ASYNC)
    assert status == 200
    (query,) = _of(lines, "queryStatus")
    status, whole = pair.poll(table, query["queryId"])
    assert status == 200, whole
    ids, token = [], None
    for _ in range(3):
        body = {"maxFiles": 1, **({} if token is None else {"pageToken": token})}
        status, lines = pair.poll(table, query["queryId"], body)
        assert status == 200, lines
        ids += [file["id"] for file in _of(lines, "file")]
        token = _of(lines, "endStreamAction")[0].get("nextPageToken")
    assert token is None
    assert sorted(ids) == sorted(file["id"] for file in _of(whole, "file"))


def test_a_commit_is_seen_by_both_at_once(pair: Pair) -> None:
    for value in (2, 3, 4):
        write_deltalake(pair.home / "growing", pa.table({"id": [value]}), mode="append")
        for _ in pair.servers:
            _, lines = pair.query("s.d.growing", {})
            assert len(_of(lines, "file")) == value


def test_the_official_client_notices_nothing(pair: Pair) -> None:
    official = pytest.importorskip("delta_sharing", reason="delta-sharing is not installed")
    profile = pair.profile()
    assert len(official.SharingClient(str(profile)).list_all_tables()) == 3
    before = dict(pair.balancer.counts)
    for _ in range(3):
        whole = official.load_as_pandas(f"{profile}#s.d.whole")
        assert sorted(whole["id"]) == [one for one in range(30) if one != 5]
        part = official.load_as_pandas(f"{profile}#s.d.part")
        assert sorted(part["id"]) == list(range(6, 30))
    changed = official.load_table_changes_as_pandas(f"{profile}#s.d.whole", starting_version=3)
    assert changed["id"].tolist() == [5]
    assert all(count > before[port] for port, count in pair.balancer.counts.items())


def test_our_client_notices_nothing(pair: Pair) -> None:
    profile = pair.profile()
    for name, ids in (("whole", [*range(5), *range(6, 30)]), ("part", [*range(6, 30)])):
        table = SharedTable(f"{profile}#s.d.{name}")
        rows: list[Any] = table.to_pyarrow_table().column("id").to_pylist()
        assert sorted(rows) == ids


def test_a_process_that_ends_is_missed_by_nobody(pair: Pair) -> None:
    """What one has told, the other goes on with when the first is gone."""
    home, config = pair.home, dict(pair.servers[0].config)
    with running_server(home / "third", config) as third, balanced([third.port]) as balancer:
        alone = Pair(home, [third], balancer)
        _, lines = alone.query("s.d.part", {"maxFiles": 1})
        token = _of(lines, "endStreamAction")[0]["nextPageToken"]
        url = _of(lines, "file")[0]["url"]
        _, lines = alone.query(
            "s.d.part", {"idempotencyKey": "last"}, delta_sharing_capabilities=ASYNC
        )
        (query,) = _of(lines, "queryStatus")
    status, lines = pair.query("s.d.part", {"maxFiles": 1, "pageToken": token})
    assert (status, len(_of(lines, "file"))) == (200, 1)
    moved = url.replace(balancer.url, pair.balancer.url)
    with urllib.request.urlopen(moved, timeout=30) as reply:  # noqa: S310
        assert reply.status == 200
    assert pair.poll("s.d.part", query["queryId"])[0] == 200


def test_processes_without_a_common_key_refuse_each_others_tokens(
    pair: Pair, tmp_path: Path
) -> None:
    """What the guide says of `signingKey`, and the log when it is missing."""
    config = {**pair.servers[0].config, "signingKey": "another key of sixteen bytes"}
    other = Caller(app({name: value for name, value in config.items() if name != "port"}))
    lines = other.query("s.d.whole", {"maxFiles": 1}).lines()
    file = _of(lines, "file")[0]["url"].partition("/_files")[2]
    assert pair.ask("GET", f"{PREFIX}/_files{file}")[0] == 403
    token = _of(lines, "endStreamAction")[0]["nextPageToken"]
    assert pair.query("s.d.whole", {"maxFiles": 1, "pageToken": token})[0] == 400
    config.pop("signingKey")
    with running_server(tmp_path / "none", config) as keyless:
        assert "signingKey is not set" in keyless.log.read_text()
