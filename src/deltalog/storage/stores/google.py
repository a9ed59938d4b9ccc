"""Google Cloud Storage, over gcsfs."""

from __future__ import annotations

import asyncio
import os
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from deltalog._util import json as _json
from deltalog._util.paths import FileInfo, split_location
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.storage.faults import ATTEMPTS, PAUSE_SECONDS
from deltalog.storage.options import truth
from deltalog.storage.stores.fsspec_files import FsspecFiles, IssuedCredentials, milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

# The environment variable with the path of a credentials file, which Google's SDK also reads.
_VARIABLE: Final = "GOOGLE_APPLICATION_CREDENTIALS"
# The required fields of each type of credentials file that gcsfs supports.
_FIELDS: Final[Mapping[Any, Sequence[str]]] = {
    "service_account": ("client_email", "private_key", "token_uri"),
    "authorized_user": ("client_id", "client_secret", "refresh_token"),
}


class GoogleFiles(FsspecFiles):
    """The file operations of a store over gcsfs."""

    option_names: ClassVar[Mapping[str, str]] = {
        "service_account": "!key_file",
        "service_account_path": "!key_file",
        "service_account_key": "!service_account_key",
        "oauth_token": "!oauth_token",
        "application_credentials": "!key_file",
        "skip_signature": "!anonymous",
        "endpoint": "endpoint_url",
        "base_url": "endpoint_url",
        "project": "project",
        "timeout": "requests_timeout!seconds",
        "bucket": "",
        "bucket_name": "",
    }

    @staticmethod
    def finish(arguments: dict[str, Any], location: str) -> dict[str, Any]:
        """Set the credentials."""
        del location
        if (key := arguments.pop("!service_account_key", None)) is not None:
            arguments["token"] = _parsed_key(key) if isinstance(key, str | bytes) else key
        if (path := arguments.pop("!key_file", None)) is not None:
            arguments["token"] = _checked_file(str(path))
        if (lent := arguments.pop("!oauth_token", None)) is not None:
            # Pass an object, because gcsfs would regard a string as the path of a file.
            arguments["token"] = import_module("google.oauth2.credentials").Credentials(token=lent)
        given = arguments.get("token")
        if isinstance(given, str) and given.endswith(".json"):
            _checked_file(given)  # gcsfs would send the path of a missing file as a token
        if truth("skip_signature", arguments.pop("!anonymous", False)):
            arguments["token"] = "anon"  # noqa: S105  # gcsfs: no credentials
        if "token" not in arguments and (path := os.environ.get(_VARIABLE)):
            # Raise an error for an invalid file now, because Google's SDK would ignore the file and
            # wait for a metadata server.
            _key_in(path)
        return arguments

    @staticmethod
    def prepare(made: Any, arguments: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
        """Return a class that does not retry connecting; with an endpoint, gcsfs's plain class.

        The extended class of gcsfs requests the kind of the bucket from Google over gRPC, and waits
        a minute if there is no answer.
        """
        if "endpoint_url" in arguments:
            made = next((cls for cls in made.__mro__ if cls.__module__ == "gcsfs.core"), made)
        return _impatient(made), arguments

    def short_names(self, directory: str, most: int) -> list[FileInfo] | None:
        """Like `list_short`, for an existing directory. Cost: one request."""
        page, is_last = next(self._pages(directory, maxResults=most))
        return page if is_last else None

    def list_names(self, directory: str, first: str) -> list[FileInfo]:
        """Like `list_directory`, for an existing directory. Cost: one request per 1,000 names."""
        start = f"{directory}/{first}".partition("/")[2]
        return [file for page, _ in self._pages(directory, startOffset=start) for file in page]

    def _pages(self, directory: str, **more: object) -> Iterator[tuple[list[FileInfo], bool]]:
        """Yield the files of each page of a listing, and whether it is the last page."""
        bucket, _, key = directory.partition("/")
        prefix = f"{key}/" if key else ""
        query = {"prefix": prefix, "delimiter": "/", **more}
        while True:
            try:
                page = self.filesystem.call("GET", "b/{}/o", bucket, json_out=True, **query)
            except FileNotFoundError as error:  # gcsfs drops the message of the service
                raise FileNotFoundError("the specified bucket does not exist") from error
            names = ((entry["name"][len(prefix) :], entry) for entry in page.get("items", []))
            files = [
                FileInfo(name, int(entry["size"]), milliseconds(entry["updated"]))
                for name, entry in names
                if name
            ]
            token = page.get("nextPageToken")
            yield files, not token
            if not token:
                return
            query["pageToken"] = token

    def sign(self, path: str, seconds: int) -> str:
        """Return a URL with a V4 signature, because Delta clients do not recognise V2 URLs."""
        return str(self.filesystem.sign(path, expiration=seconds, version="v4"))

    @staticmethod
    def temporary_credentials(
        location: str,
        options: Mapping[str, Any],
        settings: Mapping[str, Any],
        until_ms: int,
        seconds: int,
    ) -> IssuedCredentials:
        """Return a token derived from the server's token, restricted to reads below one key."""
        del options, settings, seconds
        auth: Any = import_module("google.auth")
        downscoped: Any = import_module("google.auth.downscoped")
        transport: Any = import_module("google.auth.transport.requests")
        _, bucket, key = split_location(location)
        start = f"projects/_/buckets/{bucket}/objects/{key.strip('/')}/"
        rule = downscoped.AccessBoundaryRule(
            available_resource=f"//storage.googleapis.com/projects/_/buckets/{bucket}",
            available_permissions=["inRole:roles/storage.objectViewer"],
            availability_condition=downscoped.AvailabilityCondition(
                f"resource.name.startsWith('{start}')"
            ),
        )
        source, _ = auth.default(scopes=["https://www.googleapis.com/auth/cloud-platform"])
        found = downscoped.Credentials(source, downscoped.CredentialAccessBoundary([rule]))
        found.refresh(transport.Request())
        if (moment := found.expiry) is not None:
            until_ms = milliseconds(moment)
        return IssuedCredentials("gcpOauthToken", {"oauthToken": found.token}, until_ms)


@cache
def _impatient(made: Any) -> Any:
    faults: Any = import_module("aiohttp")
    unreached = faults.ClientConnectorError, faults.ConnectionTimeoutError
    patient: Any = made._request  # noqa: SLF001  # not public in gcsfs
    once: Any = getattr(patient, "__wrapped__", None)  # the method without retries
    if once is None:
        return made

    class ImpatientGoogle(made):  # type: ignore[misc]  # of gcsfs, imported on demand
        async def _request(self, *args: Any, **options: Any) -> Any:
            for attempt in range(1, ATTEMPTS + 1):
                if "_is_reached" in self.__dict__:
                    break
                try:
                    answer = await once(self, *args, **options)
                except unreached as fault:
                    if attempt == ATTEMPTS or isinstance(fault, TimeoutError):
                        raise
                    await asyncio.sleep(PAUSE_SECONDS)
                except Exception:  # noqa: BLE001  # an answer: `patient` handles it
                    self._is_reached = True
                else:
                    self._is_reached = True
                    return answer
            return await patient(self, *args, **options)

    return ImpatientGoogle


def _checked_file(path: str) -> str:
    """Check a credentials file; gcsfs would send the path of a missing file as a token."""
    path = str(Path(path).expanduser())
    found = _key_in(path)
    kind = found.get("type")
    needed = _FIELDS.get(kind)
    if needed is None:
        raise InvalidInputError(
            f"cannot use the credentials of Google in {path!r}: expected the type "
            f"{' or '.join(_FIELDS)}, found {kind!r}; the variable {_VARIABLE} takes other types"
        )
    if missing := [name for name in needed if not isinstance(found.get(name), str)]:
        raise InvalidInputError(
            f"cannot use the credentials of Google in {path!r}: a file of the type {kind!r} has "
            f"{', '.join(needed)}, and this one lacks {', '.join(missing)}"
        )
    return path


def _key_in(path: str) -> dict[str, Any]:
    """Read the JSON object in a file of credentials; errors never show its content."""
    try:
        found = _json.loads(Path(path).read_bytes())
    except OSError as error:
        raise InvalidInputError(
            f"cannot read the credentials of Google in {path!r}: {error.strerror}; the storage "
            f"option google_service_account, or the variable {_VARIABLE}, names a JSON file"
        ) from error
    except DeltaError:  # the message may quote the file
        found = None
    if not isinstance(found, dict):
        raise InvalidInputError(
            f"cannot use the credentials of Google in {path!r}: expected a JSON object"
        )
    return found


def _parsed_key(key: str | bytes) -> Any:
    try:
        return _json.loads(key)
    except DeltaError:  # the message may quote the key
        raise InvalidInputError("storage option 'service_account_key': expected JSON") from None
