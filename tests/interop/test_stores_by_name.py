"""The options of `docs/how-to/stores-by-name.md`, on emulated stores."""

from __future__ import annotations

import ast
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
from docs.outputs import find_blocks

from deltalog import DeltaTable, write_deltalake
from tests.support.emulators import AZURITE_KEY, Emulator

pytestmark = pytest.mark.emulator

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "stores-by-name.md"


def _options_with(name: str) -> list[dict[str, str]]:
    """The options of the page's blocks that have this one."""
    dicts = [
        node
        for block in find_blocks(PAGE.read_text("utf-8"))
        for node in ast.walk(ast.parse(block.code))
        if isinstance(node, ast.Dict)
        and all(isinstance(value, ast.Constant) for value in node.values)
    ]
    options: list[dict[str, str]] = [ast.literal_eval(node) for node in dicts]
    found = [one for one in options if name in one]
    assert found, f"no block has {name}"
    return found


def _check(url: str, options: dict[str, str]) -> None:
    write_deltalake(url, [{"a": 1}], storage_options=options, mode="append")
    assert DeltaTable(url, storage_options=options).scan().to_table().to_pylist() == [{"a": 1}]


@pytest.mark.parametrize("options", _options_with("AWS_ACCESS_KEY_ID"), ids=["keys", "R2", "MinIO"])
def test_keys_of_s3_and_its_like(options: dict[str, str], s3: Emulator) -> None:
    values = {
        "AWS_ENDPOINT_URL": s3.endpoint,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing-secret",
        "AWS_SESSION_TOKEN": "testing-token",
    }
    asked = {name: values.get(name, value) for name, value in options.items()}
    _check(s3.url, {**asked, "AWS_ENDPOINT_URL": s3.endpoint})


def test_a_profile_of_aws(s3: Emulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "config"
    config.write_text(
        "[profile analytics]\nregion = us-east-1\naws_access_key_id = testing\n"
        "aws_secret_access_key = testing-secret\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    (options,) = _options_with("AWS_PROFILE")
    _check(s3.url, {**options, "AWS_ENDPOINT_URL": s3.endpoint})


def _signature() -> str:
    from azure.storage.blob import AccountSasPermissions, ResourceTypes, generate_account_sas

    return generate_account_sas(
        "devstoreaccount1",
        AZURITE_KEY,
        ResourceTypes(container=True, object=True),
        AccountSasPermissions(read=True, add=True, create=True, write=True, delete=True, list=True),
        datetime.now(UTC) + timedelta(hours=1),
    )


@pytest.mark.parametrize("name", ["sas_token", "account_key", "connection_string"])
def test_signature_key_and_connection_string_of_azure(name: str, azure: Emulator) -> None:
    (options,) = _options_with(f"azure_storage_{name}")
    values = {
        "azure_storage_account_name": "devstoreaccount1",
        "azure_storage_account_key": AZURITE_KEY,
        "azure_storage_connection_string": (
            "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;"
            f"AccountKey={AZURITE_KEY};BlobEndpoint={azure.endpoint};"
        ),
    }
    if name == "sas_token":
        values["azure_storage_sas_token"] = _signature()
    asked = {one: values[one] for one in options}
    if name != "connection_string":
        asked["azure_storage_endpoint"] = azure.endpoint
    _check(azure.url, asked)


def test_content_of_a_key_file_of_google(signing_gcs: Emulator) -> None:
    (options,) = _options_with("google_service_account_key")
    asked = {name: signing_gcs.options[name] for name in options}
    _check(signing_gcs.url, {**asked, "google_endpoint": signing_gcs.endpoint})


def test_a_key_file_of_google(signing_gcs: Emulator, tmp_path: Path) -> None:
    (options,) = _options_with("google_service_account")
    file = tmp_path / "key.json"
    file.write_text(signing_gcs.options["google_service_account_key"])
    asked = dict.fromkeys(options, str(file))
    _check(signing_gcs.url, {**asked, "google_endpoint": signing_gcs.endpoint})


def test_a_public_bucket_of_google(gcs: Emulator) -> None:
    (options,) = _options_with("google_skip_signature")
    _check(gcs.url, {**options, "google_endpoint": gcs.endpoint})
