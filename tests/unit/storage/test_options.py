from __future__ import annotations

import asyncio
from typing import Any

import pytest

from deltalog.errors import AccessDeniedError, InvalidInputError, ObjectNotFoundError, StorageError
from deltalog.storage import FsspecStore, open_store
from deltalog.storage.azure import FixedTokenCredential
from deltalog.storage.filesystems import filesystem_options
from deltalog.storage.options import commit_objection, secrets_of
from deltalog.store_kinds import KINDS
from tests.support.filesystems import ExpiringFileSystem


def s3(options: dict[str, Any]) -> dict[str, Any]:
    return filesystem_options(KINDS["s3"], options, "s3://b/t")


def azure(options: dict[str, Any], location: str = "az://c/t") -> dict[str, Any]:
    return filesystem_options(KINDS["az"], options, location)


def google(options: dict[str, Any]) -> dict[str, Any]:
    return filesystem_options(KINDS["gs"], options, "gs://b/t")


def test_s3_in_the_native_spelling() -> None:
    found = s3(
        {
            "AWS_ACCESS_KEY_ID": "id",
            "aws_secret_access_key": "secret",
            "AWS_SESSION_TOKEN": "token",
            "AWS_REGION": "eu-west-1",
            "AWS_ENDPOINT_URL": "http://localhost:9000",
            "AWS_ALLOW_HTTP": "true",
            "allow_http": "true",
            "aws_conditional_put": "etag",
            "AWS_S3_ALLOW_UNSAFE_RENAME": "true",
        }
    )
    assert found == {
        "key": "id",
        "secret": "secret",
        "token": "token",
        "client_kwargs": {"region_name": "eu-west-1"},
        "endpoint_url": "http://localhost:9000",
    }


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ({"access_key_id": "id"}, {"key": "id"}),
        ({"region": "r"}, {"client_kwargs": {"region_name": "r"}}),
        ({"aws_default_region": "r"}, {"client_kwargs": {"region_name": "r"}}),
        ({"endpoint": "http://e"}, {"endpoint_url": "http://e"}),
        ({"AWS_SKIP_SIGNATURE": "true"}, {"anon": True}),
        ({"skip_signature": False}, {"anon": False}),
        ({"aws_request_payer": "requester"}, {"requester_pays": True}),
        (
            {"aws_virtual_hosted_style_request": "false"},
            {"config_kwargs": {"s3": {"addressing_style": "path"}}},
        ),
        (
            {"AWS_S3_ADDRESSING_STYLE": "virtual"},
            {"config_kwargs": {"s3": {"addressing_style": "virtual"}}},
        ),
        ({"timeout": "90s"}, {"config_kwargs": {"read_timeout": 90.0}}),
        ({"connect_timeout": "500ms"}, {"config_kwargs": {"connect_timeout": 0.5}}),
        ({"allow_invalid_certificates": "true"}, {"client_kwargs": {"verify": False}}),
        (
            {"aws_server_side_encryption": "aws:kms", "aws_sse_kms_key_id": "k"},
            {"s3_additional_kwargs": {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "k"}},
        ),
        ({"AZURE_STORAGE_ACCOUNT_NAME": "a", "google_project": "p"}, {}),
    ],
)
def test_single_settings_of_s3(option: dict[str, Any], expected: dict[str, Any]) -> None:
    assert s3(option) == expected


def test_fsspec_names_pass_and_join_with_ours() -> None:
    given = {
        "key": "id",
        "secret": "s",
        "client_kwargs": {"verify": "/ca.pem"},
        "aws_region": "r",
        "use_ssl": False,
        "something_new": 3,
    }
    assert s3(given) == {
        "key": "id",
        "secret": "s",
        "client_kwargs": {"verify": "/ca.pem", "region_name": "r"},
        "use_ssl": False,
        "something_new": 3,
    }
    assert given["client_kwargs"] == {"verify": "/ca.pem"}  # the user's stays as it was


def test_azure_in_the_native_spelling() -> None:
    found = azure(
        {
            "AZURE_STORAGE_ACCOUNT_NAME": "acc",
            "azure_storage_account_key": "key",
            "allow_http": "false",
            "azure_container_name": "c",
        }
    )
    assert found == {"account_name": "acc", "account_key": "key"}
    assert azure({"account_name": "acc", "sas_token": "?sv=1&sig=x"}) == {
        "account_name": "acc",
        "sas_token": "sv=1&sig=x",
    }
    assert azure({"azure_client_id": "i", "AZURE_CLIENT_SECRET": "s", "azure_tenant_id": "t"}) == {
        "client_id": "i",
        "client_secret": "s",
        "tenant_id": "t",
    }


def test_an_azure_url_names_the_account() -> None:
    found = azure({"account_name": "other"}, "abfss://c@acc.dfs.core.windows.net/t")
    assert found == {"account_name": "acc"}
    found = azure({}, "abfss://c@acc.dfs.core.chinacloudapi.cn/t")
    assert found == {
        "account_name": "acc",
        "account_host": "acc.blob.core.chinacloudapi.cn",
    }


def test_azure_endpoints_and_the_emulator() -> None:
    found = azure({"use_emulator": "true"})
    assert found["account_name"] == "devstoreaccount1"
    assert "BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;" in found["connection_string"]
    found = azure({"account_name": "a", "account_key": "k", "azure_storage_endpoint": "https://e"})
    assert found["connection_string"] == (
        "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=k;BlobEndpoint=https://e;"
    )


def test_azure_bearer_tokens_become_credentials() -> None:
    pytest.importorskip("azure.core")
    credential = azure({"account_name": "a", "bearer_token": "abc"})["credential"]
    assert isinstance(credential, FixedTokenCredential)
    assert asyncio.run(credential.get_token("scope"))[0] == "abc"
    assert "abc" not in repr(credential)


def test_google_in_the_native_spelling() -> None:
    assert google({"google_service_account": "/key.json"}) == {"token": "/key.json"}
    assert google({"GOOGLE_APPLICATION_CREDENTIALS": "/key.json"}) == {"token": "/key.json"}
    assert google({"google_service_account_key": '{"type": "service_account"}'}) == {
        "token": {"type": "service_account"}
    }
    assert google({"google_skip_signature": "true"}) == {"token": "anon"}
    assert google({"token": "cloud", "project": "p"}) == {"token": "cloud", "project": "p"}


def test_a_wrong_service_account_key_is_not_quoted() -> None:
    with pytest.raises(InvalidInputError) as caught:
        google({"google_service_account_key": "{SECRET123"})
    assert "SECRET123" not in str(caught.value)


@pytest.mark.parametrize(
    "option", [{"timeout": "soon"}, {"aws_skip_signature": "perhaps"}, {"connect_timeout": ""}]
)
def test_values_that_mean_nothing(option: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="storage option"):
        s3(option)


def test_options_of_one_cloud_are_not_handed_to_another() -> None:
    mixed = {"AWS_REGION": "r", "azure_storage_account_name": "a", "special": 1}
    assert filesystem_options(KINDS["gs"], mixed, "gs://b", own=False) == {}
    assert filesystem_options(KINDS["az"], mixed, "az://c", own=False) == {"account_name": "a"}


def test_an_unknown_option_of_the_cloud_is_told(caplog: pytest.LogCaptureFixture) -> None:
    assert s3({"AWS_ROLE_ARN": "arn:aws:iam::1:role/r", "PATH": "/bin"}) == {"PATH": "/bin"}
    assert "AWS_ROLE_ARN" in caplog.text
    assert "arn:aws" not in caplog.text


def test_secrets_are_found_at_any_depth() -> None:
    options = {
        "AWS_SECRET_ACCESS_KEY": "sssssss",
        "aws_region": "eu-west-1",
        "client_kwargs": {"aws_session_token": "ttttttt"},
        "token": "x",  # too short to be one; hiding it would garble every message
    }
    assert set(secrets_of(options)) == {"sssssss", "ttttttt"}


@pytest.mark.protocol("B-01")
def test_a_table_under_a_dynamodb_lock_is_not_written() -> None:
    options = {"AWS_S3_LOCKING_PROVIDER": "dynamodb", "key": "k", "secret": "s"}
    assert commit_objection(KINDS["s3"], options) is not None
    assert commit_objection(KINDS["s3"], {"key": "k"}) is None
    store = open_store("s3://bucket/t", options)
    with pytest.raises(StorageError, match="dynamodb"):
        store.put_if_absent("_delta_log/0.json", b"")


def test_stores_do_not_show_credentials() -> None:
    store = open_store(
        "s3://id:SECRET123@bucket/t", {"AWS_SECRET_ACCESS_KEY": "SECRET456", "aws_region": "r"}
    )
    assert "SECRET" not in repr(store)
    assert "SECRET" not in store.root


class Fresh:
    """Hands out credentials, each good for a few requests, and counts how often."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self) -> dict[str, Any]:
        self.asked += 1
        return {"ticket": self.asked, "password": f"SECRET{self.asked}"}


@pytest.fixture
def fresh() -> Fresh:
    ExpiringFileSystem.register()
    ExpiringFileSystem.valid_from = 1
    return Fresh()


def test_expired_credentials_are_asked_for_again(fresh: Fresh) -> None:
    store = FsspecStore("expiring://t", fresh)
    assert store.read("x") == b"t/x 1"
    assert store.read("x") == b"t/x 1"
    assert fresh.asked == 1
    ExpiringFileSystem.valid_from = 2
    assert store.read("x") == b"t/x 2"
    assert fresh.asked == 2


def test_credentials_are_asked_for_once_per_failure(fresh: Fresh) -> None:
    ExpiringFileSystem.valid_from = 99
    store = FsspecStore("expiring://t", fresh)
    with pytest.raises(AccessDeniedError) as caught:
        store.read("x")
    assert fresh.asked == 2
    assert "SECRET" not in str(caught.value)
    assert caught.value.__cause__ is None  # it would show the secret in a traceback


def test_other_errors_do_not_renew_credentials(fresh: Fresh) -> None:
    store = FsspecStore("expiring://t", fresh)
    with pytest.raises(ObjectNotFoundError):
        store.read("missing")
    assert fresh.asked == 1
