"""Azure Blob Storage and Data Lake Storage, over adlfs."""

from __future__ import annotations

import os
from base64 import b64decode
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final

from deltalog._util.clock import now_ms
from deltalog._util.paths import split_location
from deltalog.errors import InvalidInputError
from deltalog.storage.faults import ATTEMPTS, PAUSE_SECONDS
from deltalog.storage.options import truth
from deltalog.storage.stores.fsspec_files import FsspecFiles, IssuedCredentials

if TYPE_CHECKING:
    from collections.abc import Mapping

# The account key of every installation of the emulator, which Microsoft has published.
_EMULATOR_KEY: Final = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)


class AzureFiles(FsspecFiles):
    """The file operations of a store over adlfs."""

    option_names: ClassVar[Mapping[str, str]] = {
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
        "connect_timeout": "connection_timeout!seconds",
        "timeout": "read_timeout!seconds",
        "container_name": "",
        "disable_tagging": "",
        "use_azure_cli": "",
        "use_fabric_endpoint": "",
    }

    @staticmethod
    def finish(arguments: dict[str, Any], location: str) -> dict[str, Any]:
        """Set the account, its endpoint and a credential."""
        host = split_location(location)[1].partition("@")[2]
        if host:
            # Use the account of the URL, even if the options name another account, because the log
            # may refer to files of several accounts.
            arguments["account_name"], _, suffix = host.partition(".")
            if suffix and suffix not in {"dfs.core.windows.net", "blob.core.windows.net"}:
                arguments["account_host"] = host.replace(".dfs.", ".blob.", 1)
        if truth("use_emulator", arguments.pop("!emulator", False)):
            arguments.setdefault("account_name", "devstoreaccount1")
            arguments.setdefault("account_key", _EMULATOR_KEY)
            account = arguments["account_name"]
            arguments.setdefault("!endpoint", f"http://127.0.0.1:10000/{account}")
        if (endpoint := arguments.pop("!endpoint", None)) is not None:
            arguments.setdefault("connection_string", _connection_string(endpoint, arguments))
        if (bearer := arguments.pop("!bearer", None)) is not None:
            arguments["credential"] = FixedTokenCredential(bearer)
        if isinstance(sas := arguments.get("sas_token"), str):
            arguments["sas_token"] = sas.removeprefix("?")
        return arguments

    @staticmethod
    def prepare(made: Any, arguments: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
        """Return a class that fails early.

        The class tries the environment's credentials only once, and does not retry if the service
        was never reached.

        Raises:
            InvalidInputError: the account is unknown, or its key is not base64.
        """
        if not any(
            arguments.get(one) or os.environ.get(f"AZURE_STORAGE_{one.upper()}")
            for one in ("account_name", "connection_string")
        ):
            raise InvalidInputError(
                "cannot open a location in Azure: the storage account is unknown; name it in the "
                "URL, as in abfss://container@account.dfs.core.windows.net/table, or give "
                "azure_storage_account_name as a storage option"
            )
        _check_key(arguments.get("account_key"))
        return _impatient(made), arguments

    @staticmethod
    def temporary_credentials(
        location: str,
        options: Mapping[str, Any],
        settings: Mapping[str, Any],
        until_ms: int,
        seconds: int,
    ) -> IssuedCredentials:
        """Return a signature for one directory of an account with a hierarchical namespace."""
        del options
        identity: Any = import_module("azure.identity")
        blob: Any = import_module("azure.storage.blob")
        _, authority, path = split_location(location)
        container, _, host = authority.partition("@")
        account = host.partition(".")[0] or settings["account"]
        url = settings.get("endpoint") or f"https://{account}.blob.core.windows.net"
        end = datetime.fromtimestamp(until_ms / 1000, UTC)
        with blob.BlobServiceClient(url, credential=identity.DefaultAzureCredential()) as client:
            key = client.get_user_delegation_key(end - timedelta(seconds=seconds), end)
        token = blob.generate_blob_sas(
            account,
            container,
            path.strip("/"),
            user_delegation_key=key,
            permission="rl",
            expiry=end,
            is_directory=True,
        )
        return IssuedCredentials("azureUserDelegationSas", {"sasToken": token}, until_ms)


def _check_key(key: object) -> None:
    """Raise if an account key is not base64; the message does not contain the key."""
    if not isinstance(key, str):
        return
    try:
        b64decode(key, validate=True)
    except ValueError:
        raise InvalidInputError(
            "storage option 'azure_storage_account_key': expected a key in base64, which ends in "
            "'==', found another string; copy the whole key from the access keys of the account; "
            "a shared access signature is azure_storage_sas_token"
        ) from None


class FixedTokenCredential:
    """A credential for azure.core with one OAuth token."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def get_token(self, *_scopes: str, **_options: Any) -> Any:
        """Return the token with a lifetime of an hour, because its real lifetime is unknown."""
        core: Any = import_module("azure.core.credentials")
        return core.AccessToken(self._token, now_ms() // 1000 + 3600)

    async def close(self) -> None:
        """Do nothing, because there is no connection."""

    def __repr__(self) -> str:
        return "FixedTokenCredential(***)"


class ImpatientCredential:
    """A credential whose failure immediately ends the request.

    Otherwise the storage client would treat the failure as a network failure and retry eight
    times.

    Args:
        inner: an asynchronous credential of azure.identity.
    """

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def get_token(self, *scopes: str, **options: Any) -> Any:
        """Return the token of the credential.

        Raises:
            PermissionError: the credential has no token.
        """
        refused: Any = import_module("azure.core.exceptions").ClientAuthenticationError
        try:
            return await self._inner.get_token(*scopes, **options)
        except refused as error:
            reason = str(error).strip().partition("\n")[0]
            raise PermissionError(
                f"{reason} Give azure_storage_account_key, azure_storage_sas_token, or "
                "azure_client_id and its secret, as storage_options; azure_skip_signature reads a "
                "public container"
            ) from None

    async def close(self) -> None:
        """Close the connections of the credential."""
        await self._inner.close()

    def __repr__(self) -> str:
        return "ImpatientCredential(***)"


@cache
def _first_contact(made: Any) -> Any:
    unsent: Any = import_module("azure.core.exceptions").ServiceRequestError

    # The base class is a class of azure.core, which is imported on demand.
    class FirstContactPolicy(made):  # type: ignore[misc]
        is_reached = False

        async def send(self, request: Any) -> Any:
            response = await super().send(request)
            self.is_reached = True
            return response

        def increment(
            self, settings: Any, request: Any, response: Any = None, error: Any = None
        ) -> bool:
            self.is_reached = self.is_reached or not isinstance(error, unsent)
            repeats: bool = super().increment(settings, request, response=response, error=error)
            settings["is_unreached"] = not self.is_reached
            is_last = isinstance(error.__cause__, TimeoutError) if error else False
            return repeats and (self.is_reached or not (is_last or settings["count"] >= ATTEMPTS))

        def get_backoff_time(self, settings: Any) -> float:
            usual: float = super().get_backoff_time(settings)
            return min(usual, PAUSE_SECONDS) if settings.get("is_unreached") else usual

    return FirstContactPolicy


@cache
def _impatient(made: Any) -> Any:
    class ImpatientFileSystem(made):  # type: ignore[misc]  # of adlfs, imported on demand
        def _get_default_azure_credential(self, **options: Any) -> tuple[Any, Any]:
            waiting, blocking = super()._get_default_azure_credential(**options)
            return ImpatientCredential(waiting), blocking

        def do_connect(self) -> None:
            super().do_connect()
            # Replace the classes of the retry policies, because neither adlfs nor the client has a
            # setting for these retries.
            for policy in self.service_client._pipeline._impl_policies:  # noqa: SLF001
                if hasattr(policy, "get_backoff_time") and hasattr(policy, "increment"):
                    policy.__class__ = _first_contact(policy.__class__)

    return ImpatientFileSystem


def _connection_string(endpoint: str, arguments: Mapping[str, Any]) -> str:
    parts = {
        "DefaultEndpointsProtocol": endpoint.partition(":")[0],
        "AccountName": arguments.get("account_name"),
        "AccountKey": arguments.get("account_key"),
        "SharedAccessSignature": arguments.get("sas_token"),
        "BlobEndpoint": endpoint,
    }
    return "".join(f"{name}={value};" for name, value in parts.items() if value)
