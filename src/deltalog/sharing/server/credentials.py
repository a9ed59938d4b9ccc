"""Temporary credentials for a table's directory, from stores that issue them.

Owns their scope: reading of one directory, for an hour at most. They are issued only for tables
whose configuration says how.

Protocol: Generate Temporary Table Credentials
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from deltalog._json import dumps
from deltalog.errors import DeltaError, StorageError
from deltalog.paths import canonical_path, canonical_scheme, split_location
from deltalog.sharing.server.faults import invalid, unsupported
from deltalog.sharing.wire.codec import parse_object

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deltalog.sharing.server.answers import TableRequest
    from deltalog.sharing.server.config import TableConfig

# AWS's bounds for sessions of a chained role.
_LEAST_SECONDS: Final = 900
_MOST_SECONDS: Final = 3600


@dataclass(frozen=True, slots=True)
class IssuedCredentials:
    """Credentials for a directory.

    Args:
        kind: the protocol's name of the credentials.
        values: by the protocol's names.
        expires_ms: when they expire.
    """

    kind: str
    values: Mapping[str, str]
    expires_ms: int


def answer_credentials(request: TableRequest, body: bytes) -> bytes:
    """Return the body of the response to `POST …/temporary-table-credentials`.

    Raises:
        Fault: 400 for a table without credentials, or a location outside of the table.
    """
    config = request.table.config
    node = parse_object(body.strip() or b"{}", "credentials")
    wanted = node.optional("location", str)
    if config.credentials is None:
        raise unsupported("temporary credentials are not given for this table")
    location = config.location.rstrip("/")
    if wanted is not None:
        location = _inside(wanted, location)
    issued = issue(config, location, request.now_ms)
    credentials = {
        "location": location,
        issued.kind: dict(issued.values),
        "expirationTime": issued.expires_ms,
    }
    return dumps({"credentials": credentials})


def issue(config: TableConfig, location: str, now_ms: int) -> IssuedCredentials:
    """Return credentials for one directory.

    Raises:
        StorageError: the cloud's service refused or failed.
        Fault: 400 for a store that does not issue credentials.
    """
    kind = canonical_scheme(split_location(location)[0])
    make = _ISSUERS.get(kind)
    if make is None:
        raise unsupported("temporary credentials are not given for this table")
    settings = dict(config.credentials or {})
    seconds = int(settings.pop("seconds", _MOST_SECONDS))
    seconds = min(max(seconds, _LEAST_SECONDS), _MOST_SECONDS)
    try:
        return make(config, settings, location, now_ms + seconds * 1000, seconds)
    except DeltaError:
        raise
    except Exception as error:
        # The service's message may name roles and accounts.
        raise StorageError(f"no temporary credentials: {type(error).__name__}") from error


def _inside(wanted: str, location: str) -> str:
    """Return the requested location, which must be the table's directory or inside of it."""
    path = canonical_path(wanted.rstrip("/"), location)
    climbs = any(part == ".." for part in path.split("/"))
    if "://" in path or path.startswith("/") or climbs:
        raise invalid("location: expected the table's location or a directory in it")
    return f"{location}/{path}" if path else location


def _issue_aws(
    config: TableConfig, settings: dict[str, Any], location: str, _until_ms: int, seconds: int
) -> IssuedCredentials:
    botocore: Any = import_module("botocore.session")  # of the extra `s3`
    _, bucket, key = split_location(location)
    options = config.storage_options
    session = botocore.get_session()
    client = session.create_client(
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
        Policy=dumps(_aws_policy(bucket, key)).decode(),
    )
    found = answer["Credentials"]
    values = {
        "accessKeyId": found["AccessKeyId"],
        "secretAccessKey": found["SecretAccessKey"],
        "sessionToken": found["SessionToken"],
    }
    return IssuedCredentials(
        "awsTempCredentials", values, round(found["Expiration"].timestamp() * 1000)
    )


def _aws_policy(bucket: str, key: str) -> dict[str, Any]:
    """Return a policy for reading and listing below one key, which narrows the role's own."""
    prefix = key.strip("/")
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Action": ["s3:GetObject", "s3:GetObjectVersion"],
                "Resource": [f"arn:aws:s3:::{bucket}/{prefix}/*"],
            },
            {
                "Effect": "Allow",
                "Action": ["s3:ListBucket"],
                "Resource": [f"arn:aws:s3:::{bucket}"],
                "Condition": {"StringLike": {"s3:prefix": [prefix, f"{prefix}/*"]}},
            },
        ],
    }


def _issue_azure(
    _config: TableConfig, settings: dict[str, Any], location: str, until_ms: int, seconds: int
) -> IssuedCredentials:
    identity: Any = import_module("azure.identity")  # of the extra `azure`
    blob: Any = import_module("azure.storage.blob")
    _, authority, path = split_location(location)
    container, _, host = authority.partition("@")
    account = host.partition(".")[0] or settings["account"]
    url = settings.get("endpoint") or f"https://{account}.blob.core.windows.net"
    start = datetime.fromtimestamp(until_ms / 1000, UTC) - timedelta(seconds=seconds)
    with blob.BlobServiceClient(url, credential=identity.DefaultAzureCredential()) as client:
        key = client.get_user_delegation_key(start, start + timedelta(seconds=seconds))
    # Signatures for directories exist only in accounts with a hierarchical namespace.
    token = blob.generate_blob_sas(
        account,
        container,
        path.strip("/"),
        user_delegation_key=key,
        permission="rl",
        expiry=start + timedelta(seconds=seconds),
        is_directory=True,
    )
    return IssuedCredentials("azureUserDelegationSas", {"sasToken": token}, until_ms)


def _issue_google(
    _config: TableConfig, _settings: dict[str, Any], location: str, until_ms: int, _seconds: int
) -> IssuedCredentials:
    auth: Any = import_module("google.auth")  # of the extra `gcs`
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
    if found.expiry is not None:  # google.auth has naive times in UTC
        until_ms = round(found.expiry.replace(tzinfo=UTC).timestamp() * 1000)
    return IssuedCredentials("gcpOauthToken", {"oauthToken": found.token}, until_ms)


_ISSUERS: Final[Mapping[str, Callable[..., IssuedCredentials]]] = {
    "s3": _issue_aws,
    "az": _issue_azure,
    "gs": _issue_google,
}
