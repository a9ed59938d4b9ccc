"""Storage options: the native libraries' spellings become fsspec's.

`AWS_ACCESS_KEY_ID`, `aws_region`, `azure_storage_account_name`, `google_service_account`, … mean
what they mean in deltalake; case does not matter. What is not known here goes to fsspec as it is,
so that s3fs's, adlfs's and gcsfs's own names work too.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any, Final

from deltalog import _json
from deltalog.clock import now_ms
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.paths import split_location

_logger = logging.getLogger("deltalog.storage")


def filesystem_options(
    kind: str, options: Mapping[str, Any], location: str, *, own: bool = True
) -> dict[str, Any]:
    """The keyword arguments of the fsspec file system for `kind`.

    Args:
        kind: canonical scheme, as in `paths`.
        options: the user's, in any of the known spellings.
        location: the URL to open; an Azure URL names its account.
        own: whether these options were given for this kind; else unknown ones are left out.

    Raises:
        InvalidInputError: a value is no number, duration, truth value or JSON where one is due.
    """
    names = _NAMES.get(kind, {})
    arguments: dict[str, Any] = {}
    for name, value in options.items():
        prefix, short = _taken_apart(name)
        if prefix and _PREFIXES[prefix] != kind:
            continue  # another cloud's
        if short in names:
            _set(arguments, names[short], value, name)
        elif short in _MEANINGLESS:
            continue
        elif prefix:
            _logger.warning("storage option %r is not known and has no effect", name)
        elif own:
            _merge(arguments, {name: value})
    match kind:
        case "s3":
            return _finish_s3(arguments)
        case "az":
            return _finish_azure(arguments, location)
        case "gs":
            return _finish_google(arguments)
        case _:
            return arguments


def commit_objection(kind: str, options: Mapping[str, Any]) -> str | None:
    """Why these options forbid commits, or None.

    deltalake's DynamoDB lock is a pact between writers: who commits without it may lose commits.
    """
    chosen = {_taken_apart(name)[1]: value for name, value in options.items()}
    provider = chosen.get("s3_locking_provider", chosen.get("locking_provider"))
    if kind == "s3" and provider:
        return (
            f"the storage options ask for the locking provider {provider!r}, which deltalog does "
            "not speak; let all writers use conditional puts and leave the option out"
        )
    return None


def secrets_of(options: Mapping[str, Any]) -> tuple[str, ...]:
    """The texts among the options that no message may show."""
    found: list[str] = []
    for name, value in options.items():
        if isinstance(value, Mapping):
            found.extend(secrets_of(value))
        elif isinstance(value, str) and len(value) >= 6 and _SECRET_NAME.search(name):
            found.append(value)
    return tuple(sorted(found, key=len, reverse=True))


_SECRET_NAME: Final = re.compile(r"(?i)key|secret|token|password|credential|sas|connection")

# Without the clouds' prefixes, which may be there (`aws_`, `azure_`, `azure_storage_`, `google_`).
_S3: Final[dict[str, str]] = {
    "access_key_id": "key",
    "secret_access_key": "secret",
    "session_token": "token",
    "token": "token",
    "region": "client_kwargs.region_name",
    "default_region": "client_kwargs.region_name",
    "endpoint": "endpoint_url",
    "endpoint_url": "endpoint_url",
    "endpoint_url_s3": "endpoint_url",
    "profile": "profile",
    "skip_signature": "anon!bool",
    "request_payer": "requester_pays!bool",
    "virtual_hosted_style_request": "!virtual_hosted",
    "s3_addressing_style": "config_kwargs.s3.addressing_style",
    "server_side_encryption": "s3_additional_kwargs.ServerSideEncryption",
    "sse_kms_key_id": "s3_additional_kwargs.SSEKMSKeyId",
    "sse_bucket_key_enabled": "s3_additional_kwargs.BucketKeyEnabled!bool",
    "bucket": "",
    "bucket_name": "",
    "copy_if_not_exists": "",
    "conditional_put": "",
    "s3_locking_provider": "",
    "locking_provider": "",
    "s3_allow_unsafe_rename": "",
    "force_credential_load": "",
    "checksum_algorithm": "",
    "unsigned_payload": "",
    "disable_tagging": "",
    "imdsv1_fallback": "",
    "metadata_endpoint": "",
}
_AZURE: Final[dict[str, str]] = {
    "account_name": "account_name",
    "account_key": "account_key",
    "access_key": "account_key",
    "master_key": "account_key",
    "client_id": "client_id",
    "client_secret": "client_secret",
    "tenant_id": "tenant_id",
    "authority_id": "tenant_id",
    "sas_token": "sas_token",
    "sas_key": "sas_token",
    "connection_string": "connection_string",
    "token": "!bearer",
    "bearer_token": "!bearer",
    "endpoint": "!endpoint",
    "use_emulator": "!emulator",
    "skip_signature": "anon!bool",
    "container_name": "",
    "disable_tagging": "",
    "use_azure_cli": "",
    "use_fabric_endpoint": "",
}
_GOOGLE: Final[dict[str, str]] = {
    "service_account": "token",
    "service_account_path": "token",
    "service_account_key": "!service_account_key",
    "application_credentials": "token",
    "skip_signature": "!anonymous",
    "endpoint": "endpoint_url",
    "base_url": "endpoint_url",
    "project": "project",
    "bucket": "",
    "bucket_name": "",
}
_CLIENT_S3: Final[dict[str, str]] = {
    "allow_invalid_certificates": "!no_verify",
    "connect_timeout": "config_kwargs.connect_timeout!seconds",
    "timeout": "config_kwargs.read_timeout!seconds",
    "proxy_url": "!proxy",
    "user_agent": "config_kwargs.user_agent",
}
_CLIENT_AZURE: Final[dict[str, str]] = {
    "connect_timeout": "connection_timeout!seconds",
    "timeout": "read_timeout!seconds",
}
_CLIENT_GOOGLE: Final[dict[str, str]] = {"timeout": "requests_timeout!seconds"}
# Settings of the native HTTP client that have no counterpart and change no answer.
_MEANINGLESS: Final = frozenset(
    {
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "timeout",
        "http1_only",
        "http2_only",
        "http2_keep_alive_interval",
        "http2_keep_alive_timeout",
        "http2_keep_alive_while_idle",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_url",
        "proxy_ca_certificate",
        "proxy_excludes",
        "user_agent",
        "default_content_type",
        "randomize_addresses",
        "max_retries",
        "retry_timeout",
        "backoff_config",
        "mount_allow_unsafe_rename",
    }
)


_NAMES: Final[dict[str, dict[str, str]]] = {
    "s3": {**_S3, **_CLIENT_S3},
    "az": {**_AZURE, **_CLIENT_AZURE},
    "gs": {**_GOOGLE, **_CLIENT_GOOGLE},
}
_PREFIXES: Final = {"aws_": "s3", "azure_storage_": "az", "azure_": "az", "google_": "gs"}


def _taken_apart(name: str) -> tuple[str, str]:
    """A cloud's prefix (or none) and the rest of an option's name, in lower case."""
    lower = name.lower()
    prefix = next((prefix for prefix in _PREFIXES if lower.startswith(prefix)), "")
    return prefix, lower.removeprefix(prefix)


def _set(arguments: dict[str, Any], target: str, value: Any, name: str) -> None:
    """Put a value where `target` says: `outer.inner!conversion`; an empty target drops it."""
    if not target:
        return
    place, _, conversion = target.partition("!")
    match conversion:
        case "bool":
            value = _truth(name, value)
        case "seconds":
            value = _seconds(name, value)
        case _ if not place:  # a special case, dealt with at the end
            place = target
    for part in reversed(place.split(".")):
        value = {part: value}
    _merge(arguments, value)


def _merge(arguments: dict[str, Any], more: Mapping[str, Any]) -> None:
    for name, value in more.items():
        present = arguments.get(name)
        if isinstance(present, dict) and isinstance(value, Mapping):
            _merge(present, value)
        else:
            arguments[name] = _copy(value)


def _copy(value: Any) -> Any:
    return {name: _copy(inner) for name, inner in value.items()} if type(value) is dict else value


def _finish_s3(arguments: dict[str, Any]) -> dict[str, Any]:
    if (value := arguments.pop("!virtual_hosted", None)) is not None:
        style = "virtual" if _truth("virtual_hosted_style_request", value) else "path"
        _merge(arguments, {"config_kwargs": {"s3": {"addressing_style": style}}})
    if _truth("allow_invalid_certificates", arguments.pop("!no_verify", False)):
        _merge(arguments, {"client_kwargs": {"verify": False}})
    if (proxy := arguments.pop("!proxy", None)) is not None:
        _merge(arguments, {"config_kwargs": {"proxies": {"http": proxy, "https": proxy}}})
    return arguments


def _finish_azure(arguments: dict[str, Any], location: str) -> dict[str, Any]:
    host = split_location(location)[1].partition("@")[2]
    if host:
        # The URL decides: the log may name files of another account.
        arguments["account_name"], _, suffix = host.partition(".")
        if suffix and suffix not in {"dfs.core.windows.net", "blob.core.windows.net"}:
            arguments["account_host"] = host.replace(".dfs.", ".blob.", 1)
    if _truth("use_emulator", arguments.pop("!emulator", False)):
        arguments.setdefault("account_name", "devstoreaccount1")
        arguments.setdefault("account_key", _EMULATOR_KEY)
        account = arguments["account_name"]
        arguments.setdefault("!endpoint", f"http://127.0.0.1:10000/{account}")
    if (endpoint := arguments.pop("!endpoint", None)) is not None:
        arguments.setdefault("connection_string", _connection_string(endpoint, arguments))
    if (bearer := arguments.pop("!bearer", None)) is not None:
        arguments["credential"] = BearerToken(bearer)
    if isinstance(sas := arguments.get("sas_token"), str):
        arguments["sas_token"] = sas.removeprefix("?")
    return arguments


def _connection_string(endpoint: str, arguments: Mapping[str, Any]) -> str:
    parts = {
        "DefaultEndpointsProtocol": endpoint.partition(":")[0],
        "AccountName": arguments.get("account_name"),
        "AccountKey": arguments.get("account_key"),
        "SharedAccessSignature": arguments.get("sas_token"),
        "BlobEndpoint": endpoint,
    }
    return "".join(f"{name}={value};" for name, value in parts.items() if value)


def _finish_google(arguments: dict[str, Any]) -> dict[str, Any]:
    if (key := arguments.pop("!service_account_key", None)) is not None:
        arguments["token"] = _parsed_key(key) if isinstance(key, str | bytes) else key
    if _truth("skip_signature", arguments.pop("!anonymous", False)):
        arguments["token"] = "anon"  # noqa: S105  # gcsfs's word for no credentials
    return arguments


def _parsed_key(key: str | bytes) -> Any:
    try:
        return _json.loads(key)
    except DeltaError:  # whose message may quote the key
        raise InvalidInputError("storage option 'service_account_key': expected JSON") from None


class BearerToken:
    """A fixed OAuth token, in the shape that azure.core asks credentials for."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def get_token(self, *_scopes: str, **_options: Any) -> Any:
        """The token, said to be valid for an hour: only the server knows better."""
        from azure.core.credentials import AccessToken  # noqa: PLC0415  # an optional extra

        return AccessToken(self._token, now_ms() // 1000 + 3600)

    async def close(self) -> None:
        """Nothing to give back."""

    def __repr__(self) -> str:
        return "BearerToken(***)"


def _truth(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    match str(value).strip().lower():
        case "true" | "1" | "yes" | "on" | "y" | "requester":
            return True
        case "false" | "0" | "no" | "off" | "n" | "":
            return False
        case _:
            raise InvalidInputError(f"storage option {name!r}: expected true or false")


_DURATION: Final = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>ms|s|m|h|)")
_UNIT_SECONDS: Final = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}


def _seconds(name: str, value: Any) -> float:
    found = _DURATION.fullmatch(str(value).strip().lower())
    if found is None:
        raise InvalidInputError(
            f"storage option {name!r}: expected a duration such as '30s', found {value!r}"
        )
    return float(found["number"]) * _UNIT_SECONDS[found["unit"]]


# Published by Microsoft for every installation of the emulator.
_EMULATOR_KEY: Final = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
