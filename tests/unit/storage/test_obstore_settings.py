"""When obstore is used instead of s3fs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from deltalog._util.store_kinds import KINDS
from deltalog.errors import InvalidInputError
from deltalog.storage.stores.filesystems import filesystem_options
from deltalog.storage.stores.obstore_files import obstore_settings

pytest.importorskip("obstore", reason="obstore is not installed")

KEYS = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"}
REGION = {"AWS_REGION": "eu-west-1"}
PLAIN = {**KEYS, **REGION}
LOCAL = {**KEYS, **REGION, "AWS_ENDPOINT_URL": "http://localhost:9000/"}


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in os.environ:
        if name.startswith(("AWS_", "FSSPEC_")) or name.upper().endswith(("_PROXY", "_CA_BUNDLE")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))


def settings(options: dict[str, Any]) -> dict[str, Any] | None:
    return obstore_settings(filesystem_options(KINDS["s3"], options, "s3://b/t"))


def test_keys_and_a_region() -> None:
    assert settings(PLAIN) == {
        "config": {"access_key_id": "id", "secret_access_key": "secret", "region": "eu-west-1"},
        "is_plain_http": False,
        "accepts_any_certificate": False,
        "is_virtual": True,
        "connect_seconds": 5.0,
        "read_seconds": 15.0,
    }


@pytest.mark.parametrize(
    ("options", "place", "expected"),
    [
        (LOCAL, "is_plain_http", True),
        (LOCAL, "is_virtual", False),
        ({**PLAIN, "AWS_ENDPOINT_URL": "https://minio.example"}, "is_plain_http", False),
        ({**PLAIN, "aws_virtual_hosted_style_request": "false"}, "is_virtual", False),
        ({**PLAIN, "aws_s3_addressing_style": "virtual"}, "is_virtual", True),
        ({**PLAIN, "allow_invalid_certificates": "true"}, "accepts_any_certificate", True),
        ({**PLAIN, "connect_timeout": "500ms"}, "connect_seconds", 0.5),
        ({**PLAIN, "timeout": "90s"}, "read_seconds", 90.0),
        ({**PLAIN, "request_payer": "false"}, "is_virtual", True),
        ({**PLAIN, "s3_client": "obstore"}, "is_virtual", True),
        ({**PLAIN, "use_listings_cache": False}, "is_virtual", True),
    ],
)
def test_what_obstore_can_do(options: dict[str, Any], place: str, expected: object) -> None:
    found = settings(options)
    assert found is not None
    assert found[place] == expected


def test_credentials_and_places() -> None:
    found = settings({**LOCAL, "AWS_SESSION_TOKEN": "token"})
    assert found is not None
    assert found["config"] == {
        "access_key_id": "id",
        "secret_access_key": "secret",
        "session_token": "token",
        "region": "eu-west-1",
        "endpoint": "http://localhost:9000",
        "aws_endpoint_url_s3": "http://localhost:9000",
    }
    found = settings({**REGION, "skip_signature": "true"})
    assert found is not None
    assert found["config"] == {"skip_signature": True, "region": "eu-west-1"}


@pytest.mark.parametrize(
    "options",
    [
        KEYS,
        REGION,
        {**PLAIN, "s3_client": "s3fs"},
        {**REGION, "AWS_ACCESS_KEY_ID": "id"},
        {**REGION, "AWS_SECRET_ACCESS_KEY": "secret"},
        {**REGION, "AWS_SESSION_TOKEN": "token"},
        {**PLAIN, "profile": "work"},
        {**PLAIN, "request_payer": "true"},
        {**PLAIN, "server_side_encryption": "aws:kms"},
        {**PLAIN, "proxy_url": "http://proxy"},
        {**PLAIN, "user_agent": "me"},
        {**PLAIN, "client_kwargs": {"verify": "/ca.pem"}},
        {**PLAIN, "client_kwargs": {"use_ssl": False}},
        {**PLAIN, "config_kwargs": {"retries": {"max_attempts": 0}}},
        {**PLAIN, "config_kwargs": {"s3": {"use_accelerate_endpoint": True}}},
        {**PLAIN, "config_kwargs": {"signature_version": "s3"}},
        {**PLAIN, "config_kwargs": "{}"},
        {**PLAIN, "session": "a session"},
        {**PLAIN, "asynchronous": True},
        {**PLAIN, "something_new": 3},
        {**PLAIN, "use_ssl": False},
        {**PLAIN, "anon": "perhaps"},
        {**PLAIN, "timeout": "0s"},
        {**PLAIN, "aws_s3_addressing_style": "other"},
        {**LOCAL, "aws_s3_addressing_style": "virtual"},
        {**KEYS, "aws_region": "cn-north-1"},
        {**KEYS, "aws_region": "us-iso-east-1"},
        {**KEYS, "aws_region": "aws-global"},
        {**PLAIN, "AWS_ENDPOINT_URL": "https://host/path"},
        {**PLAIN, "AWS_ENDPOINT_URL": "https://user:word@host"},
        {**PLAIN, "AWS_ENDPOINT_URL": "host:9000"},
    ],
    ids=str,
)
def test_what_is_left_to_s3fs(options: dict[str, Any]) -> None:
    assert settings(options) is None
    if options.get("s3_client") is None:
        with pytest.raises(InvalidInputError, match=r"'s3_client': obstore cannot be used"):
            settings({**options, "s3_client": "obstore"})


@pytest.mark.parametrize(
    ("environment", "options"),
    [
        (PLAIN, {}),
        ({**KEYS, "AWS_DEFAULT_REGION": "eu-west-1"}, {}),
        ({**KEYS, "AWS_DEFAULT_REGION": "eu-west-1", "AWS_REGION": "us-east-1"}, {}),
        ({"AWS_REGION": "us-east-1", "AWS_EXECUTION_ENV": "AWS_Lambda"}, PLAIN),
        ({"AWS_LAMBDA_FUNCTION_NAME": "f", "AWS_ACCESS_KEY_ID": "other"}, PLAIN),
    ],
    ids=str,
)
def test_an_environment_that_is_understood(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], options: dict[str, Any]
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found = settings(options)
    assert found is not None
    assert found["config"] == {
        "access_key_id": "id",
        "secret_access_key": "secret",
        "region": "eu-west-1",
    }


def test_the_token_and_the_endpoint_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**LOCAL, "AWS_SESSION_TOKEN": "token"}.items():
        monkeypatch.setenv(name, value)
    found = settings({})
    assert found is not None
    assert found["config"]["session_token"] == "token"  # noqa: S105  # of no account
    assert found["config"]["endpoint"] == "http://localhost:9000"
    assert settings(KEYS) is None  # the token belongs to other keys


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AWS_PROFILE", "work"),
        ("AWS_ENDPOINT_URL", ""),
        ("AWS_SESSION_TOKEN", ""),
        ("AWS_USE_FIPS_ENDPOINT", "true"),
        ("AWS_SKIP_SIGNATURE", "true"),
        ("AWS_SERVER_SIDE_ENCRYPTION", "aws:kms"),
        ("AWS_CA_BUNDLE", "/ca.pem"),
        ("REQUESTS_CA_BUNDLE", "/ca.pem"),
        ("https_proxy", "http://proxy"),
        ("ALL_PROXY", "http://proxy"),
        ("FSSPEC_S3_ANON", "true"),
    ],
)
def test_an_environment_that_only_s3fs_understands(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    assert settings(PLAIN) is not None
    monkeypatch.setenv(name, value)
    assert settings(PLAIN) is None


def test_certificates_do_not_matter_without_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", "/ca.pem")
    assert settings(LOCAL) is not None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[default]\nregion = us-east-2\noutput = json\n", True),
        ("[profile a]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = default\n", True),
        ("[default]\nendpoint_url = http://e\n", False),
        ("[default]\ns3 =\n  addressing_style = path\n", False),
        ("[default]\nca_bundle=/ca.pem\n", False),
    ],
    ids=repr,
)
@pytest.mark.parametrize("name", ["config", "credentials"])
def test_files_of_the_sdk(tmp_path: Path, name: str, text: str, *, expected: bool) -> None:
    file = tmp_path / ".aws" / name
    file.parent.mkdir()
    file.write_text(text, "utf-8")
    assert (settings(PLAIN) is not None) is expected


def test_a_configuration_of_fsspec(tmp_path: Path) -> None:
    (tmp_path / ".config" / "fsspec").mkdir(parents=True)
    assert settings(PLAIN) is None


def test_a_client_that_is_not_known() -> None:
    with pytest.raises(InvalidInputError, match="expected 'obstore' or 's3fs', found 'boto'"):
        settings({**PLAIN, "s3_client": "boto"})
