"""Queries that are answered later, and temporary credentials."""

from __future__ import annotations

import time
from pathlib import Path

import orjson
import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.sharing.server.config import TableConfig
from deltalog.sharing.server.credentials import issue
from tests.support.asgi import Json, Reply
from tests.support.emulators import Emulator
from tests.support.sharing import TOKEN, Caller, actions, path_of, sharing

T = "s.d.t"
ASYNC = "responseformat=parquet;asyncquery=true"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    for start in (0, 10, 20):
        write_deltalake(tmp_path / "t", pa.table({"id": range(start, start + 10)}), mode="append")
    return tmp_path / "t"


def _begin(caller: Caller, body: Json) -> Reply:
    return caller.query(T, body, delta_sharing_capabilities=ASYNC)


def _poll(caller: Caller, query_id: str, body: object = None) -> Reply:
    for _ in range(200):
        reply = caller.ask("POST", f"{path_of(T)}/queries/{query_id}", body)
        if reply.status != 200 or b"queryStatus" not in reply.body:
            return reply
        time.sleep(0.02)
    return reply


@pytest.mark.protocol("SHARE-ASY-01", "B-93")
@pytest.mark.parametrize("settings", [{}, {"rowFilter": "id >= 5"}])
def test_a_query_goes_on_under_its_id(table: Path, settings: Json) -> None:
    caller = sharing({T: {"location": str(table), **settings}})
    reply = _begin(caller, {"idempotencyKey": "k"})
    (status,) = actions(reply, "queryStatus")
    assert len(reply.lines()) == 1
    assert status["status"] == "pending"
    again = actions(_begin(caller, {"idempotencyKey": "k"}), "queryStatus")
    assert again[0]["queryId"] == status["queryId"]
    write_deltalake(table, pa.table({"id": [99]}), mode="append")
    done = _poll(caller, status["queryId"])
    assert len(actions(done, "file")) == 3
    assert done.headers["delta-table-version"] == "2"
    page = _poll(caller, status["queryId"], {"maxFiles": 2})
    token = actions(page, "endStreamAction")[0]["nextPageToken"]
    rest = _poll(caller, status["queryId"], {"maxFiles": 2, "pageToken": token})
    assert len(actions(page, "file")) + len(actions(rest, "file")) == 3


@pytest.mark.parametrize("settings", [{}, {"rowFilter": "id >= 5"}])
def test_a_range_that_began_ends_where_it_did(table: Path, settings: Json) -> None:
    caller = sharing({T: {"location": str(table), "historyShared": True, **settings}})
    begun = _begin(caller, {"idempotencyKey": "k", "startingVersion": 1})
    write_deltalake(table, pa.table({"id": [99]}), mode="append")
    done = _poll(caller, actions(begun, "queryStatus")[0]["queryId"])
    assert [file["version"] for file in actions(done, "add")] == [1, 2]


@pytest.mark.protocol("SHARE-ASY-01", "SHARE-SEC-03")
def test_queries_of_others_are_not_there(table: Path) -> None:
    bob = {"name": "bob", "token": "token-of-bob"}
    alice = {"name": "alice", "token": TOKEN}
    caller = sharing({T: table, "s.d.u": table}, recipients=[alice, bob])
    (status,) = actions(_begin(caller, {"idempotencyKey": "k"}), "queryStatus")
    query_id = status["queryId"]
    assert _poll(Caller(caller.app, "token-of-bob"), query_id).status == 404
    assert caller.ask("POST", f"{path_of('s.d.u')}/queries/{query_id}").status == 404
    assert _poll(caller, "nothing").status == 404
    assert _poll(caller, query_id).status == 200


@pytest.mark.protocol("SHARE-ASY-01")
def test_queries_that_cannot_begin(table: Path) -> None:
    caller = sharing({T: table})
    assert _begin(caller, {}).status == 400
    assert _begin(caller, {"idempotencyKey": "k", "version": 0}).status == 400
    assert _begin(caller, {"idempotencyKey": "k", "maxFiles": 1}).status == 200


@pytest.mark.protocol("SHARE-ASY-01")
def test_a_query_that_fails_says_so(table: Path) -> None:
    caller = sharing({T: {"location": str(table), "columns": ["id"]}})
    for file in table.glob("*.parquet"):
        file.unlink()
    (status,) = actions(_begin(caller, {"idempotencyKey": "k"}), "queryStatus")
    for _ in range(200):
        found = caller.ask("POST", f"{path_of(T)}/queries/{status['queryId']}")
        (now,) = actions(found, "queryStatus")
        if now["status"] != "pending":
            break
        time.sleep(0.02)
    assert now["status"] == "failed"
    assert str(table) not in now["error"]


def test_servers_may_answer_at_once(table: Path) -> None:
    caller = sharing({T: table}, asynchronousQueries=False)
    assert len(actions(_begin(caller, {"idempotencyKey": "k"}), "file")) == 3


# -- temporary credentials


def _ask_credentials(caller: Caller, body: object = None) -> Reply:
    return caller.ask("POST", f"{path_of(T)}/temporary-table-credentials", body)


@pytest.mark.protocol("SHARE-TMP-01", "B-94")
def test_credentials_are_off_unless_configured(table: Path) -> None:
    reply = _ask_credentials(sharing({T: table}))
    assert reply.status == 400
    assert reply.json()["errorCode"] == "UNSUPPORTED_OPERATION"
    local = sharing({T: {"location": str(table), "temporaryCredentials": {}}})
    assert _ask_credentials(local).status == 400


@pytest.mark.emulator
@pytest.mark.protocol("SHARE-TMP-01", "B-94", "SHARE-LS-T")
def test_credentials_of_a_bucket(s3: Emulator) -> None:
    write_deltalake(s3.url, pa.table({"id": [1]}), storage_options=s3.options)
    role = "arn:aws:iam::123456789012:role/reader"
    config = {
        "location": s3.url,
        "storageOptions": s3.options,
        "temporaryCredentials": {"roleArn": role, "endpoint": s3.endpoint},
    }
    caller = sharing({T: config})
    (listed,) = caller.get("/shares/s/all-tables").json()["items"]
    assert (listed["location"], listed["accessModes"]) == (s3.url, ["url", "dir"])
    found = _ask_credentials(caller).json()["credentials"]
    assert found["location"] == s3.url
    assert found["expirationTime"] > time.time() * 1000
    keys = found["awsTempCredentials"]
    options = {
        **s3.options,
        "AWS_ACCESS_KEY_ID": keys["accessKeyId"],
        "AWS_SECRET_ACCESS_KEY": keys["secretAccessKey"],
        "AWS_SESSION_TOKEN": keys["sessionToken"],
    }
    assert DeltaTable(s3.url, storage_options=options).version() == 0
    _check_policy_of_last_role(s3.url)
    inner = _ask_credentials(caller, {"location": f"{s3.url}/_delta_log"}).json()["credentials"]
    assert inner["location"] == f"{s3.url}/_delta_log"
    bucket = s3.url.rpartition("/")[0]
    for outside in (bucket, f"{s3.url}/../x", f"{s3.url}x", "s3://other/x", "/etc", "../x"):
        assert _ask_credentials(caller, {"location": outside}).status == 400
    assert _ask_credentials(caller, b"[]").status == 400


def _check_policy_of_last_role(url: str) -> None:
    """The service was asked for a role that reads and lists below the table, and no more."""
    from moto.sts.models import sts_backends

    bucket, _, key = url.removeprefix("s3://").partition("/")
    assumed = sts_backends["123456789012"]["aws"].assumed_roles[-1]
    read, list_ = orjson.loads(assumed.policy)["Statement"]
    assert read["Resource"] == [f"arn:aws:s3:::{bucket}/{key}/*"]
    assert list_["Resource"] == [f"arn:aws:s3:::{bucket}"]
    assert list_["Condition"] == {"StringLike": {"s3:prefix": [key, f"{key}/*"]}}
    allowed = {action for part in (read, list_) for action in part["Action"]}
    assert allowed == {"s3:GetObject", "s3:GetObjectVersion", "s3:ListBucket"}


@pytest.mark.protocol("SHARE-TMP-01", "SHARE-SEC-07")
def test_a_service_that_gives_none(s3_endpoint: str) -> None:
    from deltalog.errors import StorageError

    settings = {"endpoint": s3_endpoint}  # no role
    config = TableConfig(name="t", location="s3://b/t", credentials=settings)
    with pytest.raises(StorageError, match="no temporary credentials: KeyError"):
        issue(config, "s3://b/t", 0)
