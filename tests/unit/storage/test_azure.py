"""Options of Azure, in every spelling."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest
from azure.identity.aio import EnvironmentCredential

from deltalog._util.store_kinds import KINDS
from deltalog.storage.stores.azure import AzureFiles, FixedTokenCredential, ImpatientCredential
from deltalog.storage.stores.filesystems import files_over, filesystem_options, make_filesystem


def azure(options: dict[str, Any], location: str = "az://c/t") -> dict[str, Any]:
    return filesystem_options(KINDS["az"], options, location)


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


def test_a_credential_that_is_refused_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """azure.storage would retry for a minute and a half."""
    for name in [name for name in os.environ if name.startswith("AZURE_")]:
        monkeypatch.delenv(name)
    credential = ImpatientCredential(EnvironmentCredential())
    with pytest.raises(PermissionError, match="Give azure_storage_account_key"):
        asyncio.run(credential.get_token("https://storage.azure.com/.default"))
    asyncio.run(credential.close())


def test_credentials_of_the_environment_are_asked_impatiently() -> None:
    arguments = filesystem_options(KINDS["az"], {}, "abfss://c@a.dfs.core.windows.net/t")
    made = make_filesystem(KINDS["az"], arguments, "abfss://c@a.dfs.core.windows.net/t")
    assert isinstance(made.credential, ImpatientCredential)
    assert isinstance(files_over(made, KINDS["az"], None), AzureFiles)
