"""Options of Amazon S3, in every spelling."""

from __future__ import annotations

from typing import Any

import pytest

from deltalog._util.store_kinds import KINDS
from deltalog.storage.stores.filesystems import filesystem_options


def s3(options: dict[str, Any]) -> dict[str, Any]:
    return filesystem_options(KINDS["s3"], options, "s3://b/t")


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
