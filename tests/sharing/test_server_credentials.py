"""Temporary credentials for a table."""

from __future__ import annotations

import time
from pathlib import Path

import orjson
import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.sharing.server.config import TableConfig
from deltalog.sharing.server.endpoints import issue
from tests.support.asgi import Reply
from tests.support.emulators import Emulator
from tests.support.sharing import Caller, path_of, sharing

T = "s.d.t"


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
