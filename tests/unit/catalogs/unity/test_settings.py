"""Where a Unity Catalog is, by arguments and by the environment."""

from __future__ import annotations

import pytest

from deltalog.catalogs.unity.client import split_options, unity_settings
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
    found = unity_settings(
        "https://host",
        token="a-token",  # noqa: S106
        client_id="id",
        client_secret="a-secret",  # noqa: S106
        environment={},
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
