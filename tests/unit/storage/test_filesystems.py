"""File systems of locations, and what they may be told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import fsspec
import pytest

from deltalog._util.store_kinds import KINDS
from deltalog.errors import StorageError
from deltalog.storage import open_store
from deltalog.storage.faults import storage_error
from deltalog.storage.stores.filesystems import filesystem_options, make_filesystem


def s3(options: dict[str, Any]) -> dict[str, Any]:
    return filesystem_options(KINDS["s3"], options, "s3://b/t")


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


def test_a_lakehouse_of_onelake_is_reached_by_its_url() -> None:
    place = "abfss://workspace@onelake.dfs.fabric.microsoft.com/sales.Lakehouse/Tables/t"
    given = {"AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "c", "AZURE_CLIENT_SECRET": "s"}
    assert filesystem_options(KINDS["az"], given, place) == {
        "account_name": "onelake",
        "account_host": "onelake.blob.fabric.microsoft.com",
        "tenant_id": "t",
        "client_id": "c",
        "client_secret": "s",
    }


def test_a_profile_is_an_argument_that_s3fs_takes_without_naming_it() -> None:
    assert make_filesystem(KINDS["s3"], s3({"AWS_PROFILE": "p"}), "s3://b/t") is not None


def test_options_of_one_cloud_are_not_handed_to_another() -> None:
    mixed = {"AWS_REGION": "r", "azure_storage_account_name": "a", "special": 1}
    assert filesystem_options(KINDS["gs"], mixed, "gs://b", own=False) == {}
    assert filesystem_options(KINDS["az"], mixed, "az://c", own=False) == {"account_name": "a"}


def test_an_unknown_option_of_the_cloud_is_told(caplog: pytest.LogCaptureFixture) -> None:
    assert s3({"AWS_ROLE_ARN": "arn:aws:iam::1:role/r", "PATH": "/bin"}) == {"PATH": "/bin"}
    assert "AWS_ROLE_ARN" in caplog.text
    assert "arn:aws" not in caplog.text


def test_a_file_system_whose_package_is_missing_says_what_to_install() -> None:
    missing = "a_package_that_is_not_there"
    fsspec.register_implementation(missing, f"{missing}.Files", errtxt=f"Install {missing}")
    kind = replace(KINDS["s3"], name=missing)
    with pytest.raises(StorageError, match=f"Install {missing}; pip install 'deltalog\\[s3\\]'"):
        make_filesystem(kind, {}, f"{missing}://t")
    with pytest.raises(StorageError, match=f"Install {missing}; install its fsspec package"):
        make_filesystem(replace(kind, extra=""), {}, f"{missing}://t")


def test_errors_about_hadoop_name_what_to_install() -> None:
    for text in ("Prior attempt to load libhdfs failed", "Unable to load libjvm: not found"):
        error = storage_error(OSError(text), operation="list", path="hdfs://h/t")
        assert f"cannot list 'hdfs://h/t': OSError: {text}; " in str(error)
        assert "HADOOP_HOME" in str(error)
    assert "HADOOP" not in str(storage_error(OSError("no"), operation="list", path="hdfs://h/t"))


def test_stores_do_not_show_credentials() -> None:
    store = open_store("s3://bucket/t", {"AWS_SECRET_ACCESS_KEY": "SECRET456", "aws_region": "r"})
    assert "SECRET" not in repr(store)
    assert "SECRET" not in store.root
    store = open_store("http://id:SECRET123@host/t")
    assert "SECRET" not in repr(store) + store.root
