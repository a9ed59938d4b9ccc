"""Google Cloud Storage, over gcsfs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from deltalog import _json
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.paths import FileInfo, split_location
from deltalog.storage.fsspec_files import FsspecFiles, IssuedCredentials, milliseconds
from deltalog.storage.options import truth

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class GoogleFiles(FsspecFiles):
    """The calls of a store over gcsfs."""

    option_names: ClassVar[Mapping[str, str]] = {
        "service_account": "token",
        "service_account_path": "token",
        "service_account_key": "!service_account_key",
        "oauth_token": "!oauth_token",
        "application_credentials": "token",
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
        if (lent := arguments.pop("!oauth_token", None)) is not None:
            # gcsfs takes a text for the path of a file.
            arguments["token"] = import_module("google.oauth2.credentials").Credentials(token=lent)
        if truth("skip_signature", arguments.pop("!anonymous", False)):
            arguments["token"] = "anon"  # noqa: S105  # gcsfs's word for no credentials
        return arguments

    @staticmethod
    def prepare(made: Any, arguments: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
        """Take the plain class where an endpoint is named.

        The extended one asks Google over gRPC what kind of bucket it has, and waits a minute
        where nobody answers.
        """
        if "endpoint_url" in arguments:
            made = next((cls for cls in made.__mro__ if cls.__module__ == "gcsfs.core"), made)
        return made, arguments

    def short_names(self, directory: str, most: int) -> list[FileInfo] | None:
        """As `list_short`. Cost: one request."""
        page, is_last = next(self._pages(directory, maxResults=most))
        return page if is_last else None

    def list_names(self, directory: str, first: str) -> list[FileInfo]:
        """As `list_directory`. Cost: one request per 1,000 names from `first` on."""
        start = f"{directory}/{first}".partition("/")[2]
        return [file for page, _ in self._pages(directory, startOffset=start) for file in page]

    def _pages(self, directory: str, **more: object) -> Iterator[tuple[list[FileInfo], bool]]:
        """The files of each page of a listing, and whether it is the last one."""
        bucket, _, key = directory.partition("/")
        prefix = f"{key}/" if key else ""
        query = {"prefix": prefix, "delimiter": "/", **more}
        while True:
            page = self.filesystem.call("GET", "b/{}/o", bucket, json_out=True, **query)
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
        """A URL signed in the fourth way: Delta clients do not take the second for remote."""
        return str(self.filesystem.sign(path, expiration=seconds, version="v4"))

    @staticmethod
    def temporary_credentials(
        location: str,
        options: Mapping[str, Any],
        settings: Mapping[str, Any],
        until_ms: int,
        seconds: int,
    ) -> IssuedCredentials:
        """The server's own token, narrowed to reading below one key."""
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


def _parsed_key(key: str | bytes) -> Any:
    try:
        return _json.loads(key)
    except DeltaError:  # whose message may quote the key
        raise InvalidInputError("storage option 'service_account_key': expected JSON") from None
