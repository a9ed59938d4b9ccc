"""When obstore is used instead of s3fs, and with which settings.

It is used where it does what s3fs would do with the same options, environment and configuration
files. Whoever doubts takes s3fs.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from deltalog.errors import InvalidInputError
from deltalog.storage.s3 import CLIENT

if TYPE_CHECKING:
    from collections.abc import Mapping

_logger = logging.getLogger("deltalog.storage")


def obstore_settings(arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    """The arguments of `ObstoreClients` for those of s3fs; None where s3fs is to be used.

    Raises:
        InvalidInputError: the user wants obstore, which cannot do it.
    """
    wanted = arguments.get(CLIENT)
    if wanted == "s3fs" or _process.was_forked:
        return None
    try:
        _check_process()
        return _settings({name: arguments[name] for name in arguments if name != CLIENT})
    except _BeyondObstoreError as beyond:
        if wanted is not None:
            raise InvalidInputError(
                f"storage option 's3_client': obstore cannot be used: {beyond}"
            ) from None
        _logger.debug("s3fs is used, not obstore: %s", beyond)
        return None


class _BeyondObstoreError(Exception):
    """The reason why s3fs has to be used."""


class _Process:
    """Whether obstore's threads are there: they do not survive a fork."""

    was_forked = False

    def note_fork(self) -> None:
        self.was_forked = self.was_forked or "obstore" in sys.modules


_process = _Process()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_process.note_fork)

# obstore reads all variables with this prefix, also those that s3fs does not know.
_PREFIX: Final = "AWS_"
_KNOWN_NAMES: Final = (
    "ACCESS_KEY_ID SECRET_ACCESS_KEY SESSION_TOKEN REGION DEFAULT_REGION ENDPOINT_URL"
    " ENDPOINT_URL_S3 CONFIG_FILE SHARED_CREDENTIALS_FILE CA_BUNDLE PAGER DEFAULT_OUTPUT"
    " EXECUTION_ENV EC2_METADATA_DISABLED ROLE_ARN ROLE_SESSION_NAME WEB_IDENTITY_TOKEN_FILE"
    " CONTAINER_CREDENTIALS_RELATIVE_URI CONTAINER_CREDENTIALS_FULL_URI"
    " CONTAINER_AUTHORIZATION_TOKEN"
)
_KNOWN_VARIABLES: Final = frozenset(_PREFIX + name for name in _KNOWN_NAMES.split())
_KNOWN_PREFIXES: Final = (f"{_PREFIX}LAMBDA_", f"{_PREFIX}XRAY_")
_PROXIES: Final = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"})
_CERTIFICATES: Final = (f"{_PREFIX}CA_BUNDLE", "REQUESTS_CA_BUNDLE")
# Lines of the files of the SDK that are about credentials, which are known, and the console.
_KNOWN_LINES: Final = re.compile(
    r"aws_\w+|region|output|cli_\w+|sso_\w+|role_arn|role_session_name|source_profile"
    r"|credential_\w+|web_identity_token_file|mfa_serial|external_id|duration_seconds"
)
# Elsewhere the service has another domain.
_USUAL_REGION: Final = re.compile(r"(?:af|ap|ca|eu|il|me|mx|sa|us)-(?!iso)(?:gov-)?[a-z]+-\d+")
_USUAL_TEXT: Final = re.compile(r"[\x21-\x7e]+")
# s3fs's own.
_CONNECT_SECONDS: Final = 5
_READ_SECONDS: Final = 15


def _check_process() -> None:
    if importlib.util.find_spec("obstore") is None:
        raise _BeyondObstoreError("it is not installed; pip install 'deltalog[s3]'")
    for name, value in os.environ.items():
        if name.startswith(_PREFIX):
            if not value:  # obstore takes it for a value
                raise _BeyondObstoreError(f"the variable {name} is empty")
            if name not in _KNOWN_VARIABLES and not name.startswith(_KNOWN_PREFIXES):
                raise _BeyondObstoreError(f"the variable {name} is set")
        elif name.upper() in _PROXIES or name.startswith("FSSPEC_"):
            raise _BeyondObstoreError(f"the variable {name} is set")
    if Path("~/.config/fsspec").expanduser().exists():
        raise _BeyondObstoreError("fsspec has a configuration")
    for variable, usual in (("CONFIG_FILE", "config"), ("SHARED_CREDENTIALS_FILE", "credentials")):
        _check_file(Path(os.environ.get(f"{_PREFIX}{variable}") or f"~/.aws/{usual}").expanduser())


def _check_file(path: Path) -> None:
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError) as error:
        raise _BeyondObstoreError(f"{path} cannot be read") from error
    for name in re.findall(r"(?m)^\s*([\w.-]+)\s*=", text):
        if not _KNOWN_LINES.fullmatch(name):
            raise _BeyondObstoreError(f"{path} sets {name!r}")


def _settings(arguments: Mapping[str, Any]) -> dict[str, Any]:
    given = {name: value for name, value in arguments.items() if value is not None}
    given.pop("skip_instance_cache", None)
    if given.pop("use_listings_cache", False):
        raise _BeyondObstoreError("listings are kept")
    for_client = _part(given, "client_kwargs")
    for_config = _part(given, "config_kwargs")
    for_buckets = _part(for_config, "s3")
    endpoint = _endpoint(given.pop("endpoint_url", None), for_client.pop("endpoint_url", None))
    config = _credentials(given)
    config["region"] = _region(for_client.pop("region_name", None), has_endpoint=endpoint != "")
    style = for_buckets.pop("addressing_style", "auto")
    verify = for_client.pop("verify", True)
    if given.pop("requester_pays", False) is not False:
        raise _BeyondObstoreError("the requester pays")
    if for_config.pop("signature_version", "s3v4") != "s3v4":
        raise _BeyondObstoreError("URLs are signed in another way")
    connect_seconds = _seconds(for_config.pop("connect_timeout", _CONNECT_SECONDS))
    read_seconds = _seconds(for_config.pop("read_timeout", _READ_SECONDS))
    for name in (*given, *for_client, *for_config, *for_buckets):
        raise _BeyondObstoreError(f"the argument {name!r} is given")
    if style not in ({"auto", "path"} if endpoint else {"auto", "path", "virtual"}):
        raise _BeyondObstoreError(f"the addressing style is {style!r}")
    if not isinstance(verify, bool):
        raise _BeyondObstoreError("certificates are given")
    is_plain = endpoint.startswith("http://")
    if not is_plain and any(os.environ.get(name) for name in _CERTIFICATES):
        raise _BeyondObstoreError("the environment gives certificates")
    if endpoint:
        config["endpoint"] = config["aws_endpoint_url_s3"] = endpoint
    return {
        "config": config,
        "is_plain_http": is_plain,
        "accepts_any_certificate": not verify,
        "is_virtual": not endpoint and style != "path",
        "connect_seconds": connect_seconds,
        "read_seconds": read_seconds,
    }


def _part(arguments: dict[str, Any], name: str) -> dict[str, Any]:
    """The arguments that are given as one, taken out of the others."""
    found = arguments.pop(name, None) or {}
    if not isinstance(found, dict):
        raise _BeyondObstoreError(f"the argument {name!r} is no dictionary")
    return {inner: value for inner, value in found.items() if value is not None}


def _credentials(given: dict[str, Any]) -> dict[str, Any]:
    key, secret, token = (given.pop(name, None) for name in ("key", "secret", "token"))
    if (anonymous := given.pop("anon", False)) is True:
        return {"skip_signature": True}
    if anonymous is not False:
        raise _BeyondObstoreError("it is not said whether requests are signed")
    variables = [f"{_PREFIX}{name}" for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY")]
    inherited = os.environ.get(f"{_PREFIX}SESSION_TOKEN")
    if key is None and secret is None and token is None:
        # Files, processes, services and single sign-on are botocore's.
        key, secret = map(os.environ.get, variables)
        token = inherited or None
    elif token is None and inherited is not None:
        raise _BeyondObstoreError("the environment has a session token of other keys")
    config = {"access_key_id": key, "secret_access_key": secret, "session_token": token}
    found = {name: value for name, value in config.items() if value is not None}
    if len(found) < (2 if token is None else 3):
        raise _BeyondObstoreError("the keys are neither given nor in the environment")
    if not all(isinstance(one, str) and _USUAL_TEXT.fullmatch(one) for one in found.values()):
        raise _BeyondObstoreError("a key is no text")
    return found


def _region(given: Any, *, has_endpoint: bool) -> str:
    names = ("DEFAULT_REGION", "REGION")
    inherited = (os.environ.get(f"{_PREFIX}{name}") for name in names)
    found = given or next(filter(None, inherited), None)
    if not isinstance(found, str) or not _USUAL_TEXT.fullmatch(found):
        raise _BeyondObstoreError("the region is neither given nor in the environment")
    if not has_endpoint and not _USUAL_REGION.fullmatch(found):
        raise _BeyondObstoreError(f"the region is {found!r}")
    return found


def _endpoint(*given: Any) -> str:
    """The URL of the service; an empty text for Amazon's own."""
    names = ("ENDPOINT_URL_S3", "ENDPOINT_URL")
    inherited = [os.environ.get(f"{_PREFIX}{name}") for name in names]
    found = next(filter(None, [*given, *inherited]), "")
    if not isinstance(found, str):
        raise _BeyondObstoreError("the endpoint is no text")
    if not found:
        return ""
    parts = urlsplit(found)
    plain = f"{parts.scheme}://{parts.netloc}"
    if parts.scheme not in {"http", "https"} or "@" in plain or found.rstrip("/") != plain:
        raise _BeyondObstoreError("the endpoint is more than a host")
    return plain


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 3600:
        raise _BeyondObstoreError("a timeout is no usual number")
    return float(value)
