"""Amazon S3 and compatible services, over s3fs.

Listings and deletes use the client of s3fs directly, because fsspec cannot begin a listing at a
name, or delete many objects with one request.
"""

from __future__ import annotations

import itertools
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final

from deltalog._util.json import dumps
from deltalog._util.paths import FileInfo, split_location
from deltalog.errors import InvalidInputError
from deltalog.storage.faults import FirstContact
from deltalog.storage.options import merge, truth
from deltalog.storage.pool import MOST_REQUESTS, map_in_pool
from deltalog.storage.stores.fsspec_files import FsspecFiles, IssuedCredentials, milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

# The options of deltalake that s3fs does not have or that do not affect results.
_WITHOUT_EFFECT: Final = (
    "bucket bucket_name copy_if_not_exists conditional_put s3_locking_provider locking_provider"
    " s3_allow_unsafe_rename force_credential_load checksum_algorithm unsigned_payload"
    " disable_tagging imdsv1_fallback metadata_endpoint"
    " delta_dynamo_table_name delta_dynamo_billing_mode delta_dynamo_max_elapsed_request_time"
    " delta_dynamo_read_capacity delta_dynamo_write_capacity endpoint_url_dynamodb region_dynamodb"
    " access_key_id_dynamodb secret_access_key_dynamodb session_token_dynamodb"
)
CLIENT: Final = "!client"
"""The argument for the client that the user chose: `obstore` or `s3fs`."""
# The maximum number of objects that Amazon S3 deletes in one request.
_MOST_DELETED: Final = 1000


class S3Files(FsspecFiles):
    """The file operations of a store over s3fs."""

    option_names: ClassVar[Mapping[str, str]] = {
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
        "allow_invalid_certificates": "!no_verify",
        "connect_timeout": "config_kwargs.connect_timeout!seconds",
        "timeout": "config_kwargs.read_timeout!seconds",
        "proxy_url": "!proxy",
        "user_agent": "config_kwargs.user_agent",
        "s3_client": CLIENT,
        **dict.fromkeys(_WITHOUT_EFFECT.split(), ""),
    }
    # Without this argument, s3fs first requests the size of a file, so that it can fetch large
    # files in parts.
    whole: ClassVar[Mapping[str, Any]] = {"max_concurrency": 1}

    @staticmethod
    def finish(arguments: dict[str, Any], location: str) -> dict[str, Any]:
        """Set arguments of s3fs that depend on several options."""
        del location
        if (value := arguments.pop("!virtual_hosted", None)) is not None:
            style = "virtual" if truth("virtual_hosted_style_request", value) else "path"
            merge(arguments, {"config_kwargs": {"s3": {"addressing_style": style}}})
        if truth("allow_invalid_certificates", arguments.pop("!no_verify", False)):
            merge(arguments, {"client_kwargs": {"verify": False}})
        if (proxy := arguments.pop("!proxy", None)) is not None:
            merge(arguments, {"config_kwargs": {"proxies": {"http": proxy, "https": proxy}}})
        if (client := arguments.get(CLIENT)) not in {None, "obstore", "s3fs"}:
            raise InvalidInputError(
                f"storage option 's3_client': expected 'obstore' or 's3fs', found {client!r}"
            )
        return arguments

    @staticmethod
    def prepare(made: Any, arguments: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
        """Replace unsuitable defaults of botocore.

        URLs get V4 signatures, because new regions and Delta clients do not accept V2. The number
        of connections is the number of concurrent requests instead of ten. If the service was never
        reached, requests fail early.
        """
        ours = {"signature_version": "s3v4", "max_pool_connections": MOST_REQUESTS}
        config = {**ours, **arguments.get("config_kwargs", {})}
        given = {name: value for name, value in arguments.items() if name != CLIENT}
        return _impatient(made), {**given, "config_kwargs": config}

    def short_names(self, directory: str, most: int) -> list[FileInfo] | None:
        """Like `list_short`, for an existing directory. Cost: one request."""
        page, is_last = next(self._pages(directory, MaxKeys=most))
        return page if is_last else None

    def list_names(self, directory: str, first: str) -> list[FileInfo]:
        """Like `list_directory`, for an existing directory. Cost: one request per 1,000 names."""
        # The listing begins after `StartAfter`, so use a string that sorts just before `first`.
        _, _, key = directory.partition("/")
        start = {"StartAfter": f"{key}/{first[:-1]}".lstrip("/")} if first else {}
        pages = self._pages(directory, **start)
        return [file for page, _ in pages for file in page if file.path >= first]

    def _pages(self, directory: str, **more: object) -> Iterator[tuple[list[FileInfo], bool]]:
        """Yield the files of each page of a listing, and whether it is the last page."""
        bucket, _, key = directory.partition("/")
        prefix = f"{key}/" if key else ""
        query = {"Bucket": bucket, "Prefix": prefix, "Delimiter": "/", **self.filesystem.req_kw}
        query |= more
        while True:
            page = self.filesystem.call_s3("list_objects_v2", **query)
            names = ((entry["Key"][len(prefix) :], entry) for entry in page.get("Contents", []))
            files = [
                FileInfo(name, int(entry["Size"]), milliseconds(entry["LastModified"]))
                for name, entry in names
                if name
            ]
            token = page.get("NextContinuationToken")
            yield files, not token
            if not token:
                return
            query["ContinuationToken"] = token

    def stat(self, path: str) -> FileInfo:
        """Return size and time of a file. Cost: one request, even if the file does not exist."""
        bucket, _, key = path.partition("/")
        found = self.filesystem.call_s3(
            "head_object", Bucket=bucket, Key=key, **self.filesystem.req_kw
        )
        return FileInfo(path, int(found["ContentLength"]), milliseconds(found["LastModified"]))

    def delete_many(self, paths: Sequence[str]) -> None:
        """Delete objects; a missing object is not an error.

        Cost: one request per 1,000 objects of a bucket; requests are sent concurrently.
        """
        some: list[list[str]] = []
        for _, group in itertools.groupby(sorted(paths), lambda path: path.split("/", 1)[0]):
            while part := list(itertools.islice(group, _MOST_DELETED)):
                some.append(part)
        map_in_pool(self._delete_some, some)

    def _delete_some(self, paths: Sequence[str]) -> None:
        bucket = paths[0].split("/", 1)[0]
        keys = [{"Key": path.partition("/")[2]} for path in paths]
        answer = self.filesystem.call_s3(
            "delete_objects", Bucket=bucket, Delete={"Objects": keys, "Quiet": True}
        )
        for failure in answer.get("Errors", []):
            if failure.get("Code") not in {"NoSuchKey", "NoSuchVersion"}:
                kind = PermissionError if failure.get("Code") == "AccessDenied" else OSError
                raise kind(f"{failure.get('Key')}: {failure.get('Code')}: {failure.get('Message')}")

    @staticmethod
    def temporary_credentials(
        location: str,
        options: Mapping[str, Any],
        settings: Mapping[str, Any],
        until_ms: int,
        seconds: int,
    ) -> IssuedCredentials:
        """Return credentials of the role `roleArn`, restricted to reads below one key."""
        del until_ms
        botocore: Any = import_module("botocore.session")
        _, bucket, key = split_location(location)
        client = botocore.get_session().create_client(
            "sts",
            region_name=settings.get("region") or options.get("aws_region") or "us-east-1",
            endpoint_url=settings.get("endpoint"),
            aws_access_key_id=options.get("AWS_ACCESS_KEY_ID") or options.get("key"),
            aws_secret_access_key=options.get("AWS_SECRET_ACCESS_KEY") or options.get("secret"),
        )
        answer = client.assume_role(
            RoleArn=settings["roleArn"],
            RoleSessionName="deltalog-sharing",
            DurationSeconds=seconds,
            Policy=dumps(_reading_below(bucket, key.strip("/"))).decode(),
        )
        found = answer["Credentials"]
        return IssuedCredentials(
            "awsTempCredentials",
            {
                "accessKeyId": found["AccessKeyId"],
                "secretAccessKey": found["SecretAccessKey"],
                "sessionToken": found["SessionToken"],
            },
            round(found["Expiration"].timestamp() * 1000),
        )


@cache
def _impatient(made: Any) -> Any:
    class ImpatientS3(made):  # type: ignore[misc]  # of s3fs, imported on demand
        async def set_session(self, *args: Any, **options: Any) -> Any:
            client = await super().set_session(*args, **options)
            watched = self.__dict__.setdefault("_first_contact", FirstContact("s3"))
            watched.watch(client.meta.events)
            if self.cache_regions:  # s3fs may create clients for other regions
                watched.watch(self.session.get_component("event_emitter"))
            return client

    return ImpatientS3


def _reading_below(bucket: str, place: str) -> dict[str, Any]:
    """Return a policy that allows only reading and listing below one key."""
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Action": ["s3:GetObject", "s3:GetObjectVersion"],
                "Resource": [f"arn:aws:s3:::{bucket}/{place}/*"],
            },
            {
                "Effect": "Allow",
                "Action": ["s3:ListBucket"],
                "Resource": [f"arn:aws:s3:::{bucket}"],
                "Condition": {"StringLike": {"s3:prefix": [place, f"{place}/*"]}},
            },
        ],
    }
