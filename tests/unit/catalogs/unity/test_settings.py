"""Where a Unity Catalog is, by arguments and by the environment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import deltalog
from deltalog import catalogs
from deltalog.catalogs import FileCatalog, GlueCatalog, UnityCatalog
from deltalog.catalogs.unity.client import UnitySettings, split_options, unity_settings
from deltalog.errors import InvalidInputError

API = "https://host/api/2.1/unity-catalog"


@pytest.mark.parametrize(
    ("url", "api"),
    [
        ("https://host", API),
        ("https://host/", API),
        ("host", API),
        (API, API),
        (f"{API}/", API),
        (
            "http://localhost:8080/api/2.1/unity-catalog",
            "http://localhost:8080/api/2.1/unity-catalog",
        ),
        ("https://host/uc/api/2.1/unity-catalog", "https://host/uc/api/2.1/unity-catalog"),
    ],
)
def test_a_url_leads_to_the_api(url: str, api: str) -> None:
    assert unity_settings(url, environment={}).url == api


@pytest.mark.parametrize(
    "url",
    ["https://", "https://user:word@host", "https://host?token=x", "https://host#x", "https://[x"],
)
def test_a_url_is_only_an_address(url: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        unity_settings(url, environment={})
    assert "word" not in str(caught.value)


def test_the_environment_names_the_catalog() -> None:
    found = unity_settings(environment={"DATABRICKS_HOST": "https://host", "DATABRICKS_TOKEN": "t"})
    assert (found.url, found.token) == (API, "t")
    found = unity_settings(
        environment={
            "DATABRICKS_HOST": "https://other",
            "DATABRICKS_TOKEN": "other",
            "UNITY_CATALOG_URL": "https://host",
            "UNITY_CATALOG_TOKEN": "t",
        }
    )
    assert (found.url, found.token) == (API, "t")
    found = unity_settings(
        environment={
            "UNITY_CATALOG_URL": "https://host",
            "DATABRICKS_CLIENT_ID": "id",
            "DATABRICKS_CLIENT_SECRET": "secret",
        }
    )
    assert (found.client_id, found.client_secret) == ("id", "secret")
    assert found.token_url == "https://host/oidc/v1/token"  # noqa: S105
    with pytest.raises(InvalidInputError, match="UNITY_CATALOG_URL"):
        unity_settings(environment={})


def test_the_environments_token_goes_nowhere_else() -> None:
    environment = {
        "DATABRICKS_HOST": "https://host",
        "DATABRICKS_TOKEN": "t",
        "DATABRICKS_CLIENT_SECRET": "s",
    }
    assert unity_settings("https://elsewhere", environment=environment).token is None
    assert unity_settings("http://host", environment=environment).token is None
    assert unity_settings("https://HOST", environment=environment).token == "t"  # noqa: S105
    with pytest.raises(InvalidInputError, match="client_secret"):
        unity_settings("https://elsewhere", client_id="id", environment=environment)


def test_arguments_come_first() -> None:
    environment = {"DATABRICKS_HOST": "https://host", "DATABRICKS_TOKEN": "t"}
    found = unity_settings("https://host", token="mine", environment=environment)  # noqa: S106
    assert found.token == "mine"  # noqa: S105
    found = unity_settings(client_id="id", client_secret="s", environment=environment)  # noqa: S106
    assert (found.token, found.client_id) == (None, "id")


def test_secrets_are_not_shown() -> None:
    found = UnitySettings(
        url="https://host",
        token="a-token",  # noqa: S106
        client_id="id",
        client_secret="a-secret",  # noqa: S106
    )
    assert "a-token" not in repr(found)
    assert "a-secret" not in repr(found)
    assert set(found.secrets) == {"a-token", "a-secret"}


def test_deltalakes_options_are_split() -> None:
    settings, rest = split_options(
        {
            "UNITY_WORKSPACE_URL": "https://host",
            "databricks_token": "t",
            "unity_allow_http_url": "true",
            "aws_region": "us-east-1",
        }
    )
    assert settings == {"url": "https://host", "token": "t", "allow_http": "true"}
    assert rest == {"aws_region": "us-east-1"}


UNITY: Any = UnityCatalog
GLUE: Any = GlueCatalog
TABLE: Any = deltalog.DeltaTable


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: UNITY(1), InvalidInputError, "with url=1: expected a string"),
        (lambda: UNITY("host", token=b"secret"), InvalidInputError, "token: expected a string, fo"),
        (lambda: UNITY("host", allows_local_files="no"), InvalidInputError, "expected True or Fal"),
        (lambda: UNITY("host", http_options={}), InvalidInputError, "expected HttpOptions(…)"),
        (lambda: UNITY("host", bearer_token="t"), TypeError, "use token=…"),  # noqa: S106
        (lambda: UNITY(workspace_url="host"), TypeError, "use url"),
        (lambda: UNITY("host").list_schemas("main"), InvalidInputError, "here ('main',)"),
        (lambda: UNITY("host").find("a.b.c"), InvalidInputError, "here ('a', 'b', 'c')"),
        (lambda: GLUE(client_options="us-east-1"), InvalidInputError, "expected a dictionary"),
        (lambda: catalogs.HiveCatalog, AttributeError, "an own TableCatalog"),  # type: ignore[attr-defined]
        (lambda: TABLE(FileCatalog("tables")), InvalidInputError, "NamedTable(catalog=catalog"),
        (lambda: TABLE("hive://a.b"), InvalidInputError, "has no client for this kind"),
        (lambda: TABLE.from_data_catalog("glue"), AttributeError, "deltalog.connect(catalog=…)"),
    ],
)
def test_wrong_uses_are_answered(
    call: Callable[[], object], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert message in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ({"token": "t", "client_id": "id"}, "found a token and a client_id"),
        ({"token": "t", "client_id": "id", "client_secret": "s"}, "found a token and a client_id"),
        ({"client_secret": "s"}, "without a client_id"),
    ],
)
def test_credentials_that_contradict_each_other(given: dict[str, str], answer: str) -> None:
    with pytest.raises(InvalidInputError, match=answer):
        unity_settings("https://elsewhere", environment={}, **given)
