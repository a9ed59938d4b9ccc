"""Events of OpenLineage, sent over HTTP to an endpoint on loopback."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import ConstraintViolationError, InvalidInputError
from deltalog.integrations.telemetry import dataset_name
from deltalog.sharing.server import app
from deltalog.telemetry import watch_with_openlineage
from tests.support.lineage import LineageBackend
from tests.support.sharing import Caller, config_of

pytest.importorskip("openlineage.client", reason="openlineage-python is not installed")


@pytest.fixture
def backend() -> Iterator[LineageBackend]:
    found = LineageBackend()
    yield found
    found.close()


def test_a_write_is_a_run_with_the_table_as_output(backend: LineageBackend, tmp_path: Path) -> None:
    table = tmp_path / "t"
    with watch_with_openlineage(url=backend.url, namespace="lake", api_key="a-key"):
        write_deltalake(table, pa.table({"id": [1, 2], "name": ["a", "b"]}))
        write_deltalake(table, pa.table({"id": [3], "name": ["c"]}), mode="append")
    job = f"{str(table).strip('/')}.WRITE"
    states = [state for state, name in backend.states() if name == job]
    assert states[-2:] == ["START", "COMPLETE"]
    start, complete = backend.events[-2:]
    assert start["run"]["runId"] == complete["run"]["runId"]
    assert start["path"] == "/api/v1/lineage"
    assert complete["job"]["namespace"] == "lake"
    (output,) = complete["outputs"]
    assert (output["namespace"], output["name"]) == ("file", str(table))
    assert output["facets"]["version"]["datasetVersion"] == "1"
    fields = output["facets"]["schema"]["fields"]
    assert [(one["name"], one["type"]) for one in fields] == [("id", "long"), ("name", "string")]
    assert output["outputFacets"]["outputStatistics"]["fileCount"] == 1
    assert output["outputFacets"]["outputStatistics"]["size"] > 0
    assert backend.headers[-1]["Authorization"] == "Bearer a-key"
    # A run is one START and one end, whatever it held.
    by_run: dict[str, list[str]] = {}
    for event in backend.events:
        by_run.setdefault(event["run"]["runId"], []).append(event["eventType"])
    assert all(found == ["START", "COMPLETE"] for found in by_run.values())
    assert len(by_run) == 2


def test_a_failure_says_what_kind_and_no_value(backend: LineageBackend, tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    DeltaTable(tmp_path / "t").alter.add_constraint({"small": "id < 100"})
    with (
        watch_with_openlineage(url=backend.url, job="nightly"),
        pytest.raises(ConstraintViolationError),
    ):
        write_deltalake(tmp_path / "t", pa.table({"id": [424242]}), mode="append")
    assert backend.states() == [("START", "nightly"), ("FAIL", "nightly")]
    failed = backend.events[-1]
    message = failed["run"]["facets"]["errorMessage"]["message"]
    assert message.startswith("ConstraintViolationError (")
    assert "424242" not in json.dumps(failed)
    assert not failed.get("outputs")


def test_what_follows_a_commit_is_a_run_inside(backend: LineageBackend, tmp_path: Path) -> None:
    configuration = {"delta.autoOptimize.autoCompact": "true"}
    rows = pa.table({"id": [1]})
    write_deltalake(tmp_path / "t", rows, configuration=configuration)
    for _ in range(48):
        write_deltalake(tmp_path / "t", rows, mode="append")
    with watch_with_openlineage(url=backend.url):
        write_deltalake(tmp_path / "t", rows, mode="append")
    names = [name.rpartition(".")[2] for _, name in backend.states()]
    assert names == ["WRITE", "OPTIMIZE", "OPTIMIZE", "WRITE"]
    outer, inner = backend.events[0], backend.events[1]
    parent = inner["run"]["facets"]["parent"]
    assert parent["run"]["runId"] == outer["run"]["runId"]
    assert parent["job"]["name"] == outer["job"]["name"]


def test_work_does_not_wait_for_a_backend(backend: LineageBackend, tmp_path: Path) -> None:
    backend.may_answer.clear()
    with watch_with_openlineage(url=backend.url):
        began = time.monotonic()
        write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
        assert time.monotonic() - began < 4  # the client itself would wait for five seconds
        assert DeltaTable(tmp_path / "t").version() == 0
        assert backend.events == []
        backend.may_answer.set()
    assert [state for state, _ in backend.states()] == ["START", "COMPLETE"]


def test_a_backend_that_refuses_fails_nothing(backend: LineageBackend, tmp_path: Path) -> None:
    backend.status = 400
    with watch_with_openlineage(url=backend.url):
        write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    assert DeltaTable(tmp_path / "t").count() == 1
    assert len(backend.events) == 2


def test_a_query_of_a_recipient_is_a_run_that_reads(
    backend: LineageBackend, tmp_path: Path
) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    caller = Caller(app(config_of({"s.d.t": str(tmp_path / "t")})))
    with watch_with_openlineage(url=backend.url):
        assert caller.query("s.d.t").status == 200
        assert caller.query("s.d.none").status == 404
        assert caller.get("/shares").status == 200
    assert backend.states() == [("START", "sharing.alice"), ("COMPLETE", "sharing.alice")]
    (read,) = backend.events[-1]["inputs"]
    assert (read["namespace"], read["name"]) == ("file", str(tmp_path / "t"))
    assert read["facets"]["version"]["datasetVersion"] == "0"
    assert not backend.events[-1].get("outputs")


def test_a_client_and_a_url_exclude_each_other() -> None:
    with pytest.raises(InvalidInputError, match="both client and url"):
        watch_with_openlineage(object(), url="http://127.0.0.1:1")


@pytest.mark.parametrize(
    ("location", "name"),
    [
        ("/data/t", ("file", "/data/t")),
        ("file:///data/t/", ("file", "/data/t")),
        ("s3://bucket/a/b", ("s3://bucket", "a/b")),
        ("s3a://bucket/a/b/", ("s3://bucket", "a/b")),
        ("gs://bucket/t", ("gs://bucket", "t")),
        (
            "abfss://lake@account.dfs.core.windows.net/t",
            ("abfss://lake@account.dfs.core.windows.net", "t"),
        ),
        ("hdfs://user:secret@nodes:8020/t", ("hdfs://nodes:8020", "t")),
    ],
)
def test_datasets_are_named_as_openlineage_has_it(location: str, name: tuple[str, str]) -> None:
    assert dataset_name(location) == name
