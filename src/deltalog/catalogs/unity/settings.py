"""Where a Unity Catalog is and who asks it: arguments, and the variables that stand in for them.

Owns the names of the variables, as users of Databricks and deltalake know them, and the URL of the
API. No `repr` shows a secret.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Mapping

_API: Final = "/api/2.1/unity-catalog"
_TOKENS: Final = "/oidc/v1/token"
_SCOPE: Final = "all-apis"
# The first that is set counts.
_VARIABLES: Final = {
    "url": (
        "UNITY_CATALOG_URL",
        "DATABRICKS_HOST",
        "UNITY_WORKSPACE_URL",
        "DATABRICKS_WORKSPACE_URL",
    ),
    "token": (
        "UNITY_CATALOG_TOKEN",
        "DATABRICKS_TOKEN",
        "UNITY_ACCESS_TOKEN",
        "DATABRICKS_ACCESS_TOKEN",
    ),
    "client_id": ("DATABRICKS_CLIENT_ID", "UNITY_CLIENT_ID"),
    "client_secret": ("DATABRICKS_CLIENT_SECRET", "UNITY_CLIENT_SECRET"),
}


# Storage options that are about the catalog, as deltalake takes them beside those of the store.
_OPTIONS: Final = {
    "url": "host workspace_url unity_workspace_url databricks_workspace_url databricks_host"
    " unity_catalog_url",
    "token": "access_token unity_access_token databricks_access_token databricks_token"
    " unity_catalog_token",
    "client_id": "unity_client_id databricks_client_id",
    "client_secret": "unity_client_secret databricks_client_secret",
    "allow_http": "allow_http_url unity_allow_http_url",
    "allows_local_files": "unity_allow_local_files",
}
_SETTING_OF: Final = {name: key for key, names in _OPTIONS.items() for name in names.split()}


def split_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of a catalog among storage options, and the others."""
    settings: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for name, value in options.items():
        setting = _SETTING_OF.get(name.lower())
        if setting is None:
            rest[name] = value
        else:
            settings[setting] = value
    return settings, rest


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitySettings:
    """The address of a catalog and the proof of who asks.

    Args:
        url: of the API, without a slash at its end.
        token: sent as it is; None takes `client_id` and `client_secret`, or sends none.
        client_id: of a service, for tokens that are fetched.
        client_secret: likewise.
        token_url: where these are fetched.
        scope: that is asked for.
    """

    url: str
    token: str | None = field(default=None, repr=False)
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    token_url: str = ""
    scope: str = _SCOPE

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no message may show."""
        return tuple(text for text in (self.token, self.client_secret) if text)


def unity_settings(
    url: str | None = None,
    *,
    token: str | None = None,
    client_id: str | None = None,
    client_secret: str | None = None,
    token_url: str | None = None,
    scope: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> UnitySettings:
    """The settings that arguments and the environment give.

    The environment's token is taken only for the environment's catalog: it is not sent to another
    one that the caller names.

    Args:
        url: of the server, or of the API; None is the environment's.
        token: bearer token.
        client_id: of a service.
        client_secret: of a service.
        token_url: None is Databricks' endpoint on the same server.
        scope: None is Databricks'.
        environment: variables; None is that of the process.

    Raises:
        InvalidInputError: no URL is given or set, or it has a login or a query in it.
    """
    variables = os.environ if environment is None else environment
    own = _api_url(_found("url", variables))
    base = _api_url(url) if url else own
    if not base:
        names = " or ".join(_VARIABLES["url"][:2])
        raise InvalidInputError(
            f"cannot find a Unity Catalog: expected its URL, or the variable {names}"
        )
    # Also where no token is given: the server may be one that wants none.
    if token is None and client_id is None and _origin(base) == _origin(own):
        token = _found("token", variables) or None
        client_id = None if token else _found("client_id", variables) or None
    if client_id is not None and client_secret is None and _origin(base) == _origin(own):
        client_secret = _found("client_secret", variables) or None
    if client_id is not None and token is None and not client_secret:
        raise InvalidInputError("cannot sign in with a client_id: expected a client_secret too")
    return UnitySettings(
        url=base,
        token=token,
        client_id=client_id,
        client_secret=client_secret,
        token_url=token_url or f"{_origin(base)}{_TOKENS}",
        scope=scope or _SCOPE,
    )


def _found(setting: str, variables: Mapping[str, str]) -> str:
    return next((text for name in _VARIABLES[setting] if (text := variables.get(name))), "")


def _api_url(url: str) -> str:
    if not url:
        return ""
    url = url.strip()
    if "://" not in url:
        url = f"https://{url}"  # as Databricks' tools take a host
    url = url.rstrip("/")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise InvalidInputError("cannot take that for the URL of a catalog") from None
    if not parts.hostname or "@" in parts.netloc or parts.query or parts.fragment:
        raise InvalidInputError(
            "cannot take that for the URL of a catalog: expected a scheme, a host and perhaps a "
            "path; give a token apart from it"
        )
    return url if "/api/" in f"{parts.path}/" else f"{url}{_API}"


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.lower()}"
