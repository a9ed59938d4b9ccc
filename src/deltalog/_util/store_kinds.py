"""The table of store kinds: the names, URL form and abilities of each kind of store.

No other module contains the name of a store kind; other modules use the row of their store. `paths`
imports this table, because it needs names and URL forms to distinguish files. So a row contains
only the name of the class with the code for the store; `storage.stores.filesystems` imports it.
"""

from __future__ import annotations

import enum
import re
from dataclasses import KW_ONLY, dataclass
from typing import Final


class Address(enum.Enum):
    """How to convert a URL to the path that a file system expects."""

    PATH = "no host: `file:///a/b` is `/a/b`"
    HOST = "a host with one tree of files: `hdfs://host:8020/a/b` is `/a/b`"
    BUCKET = "`s3://bucket/a/b` is `bucket/a/b`"
    ACCOUNT = "`abfss://container@account.host/a/b` is `container/a/b` of an account"
    URL = "the URL itself, percent-encoded"
    UNKNOWN = "as `BUCKET`, unless the user's own file system has another form"


class PutIfAbsent(enum.Enum):
    """The mechanism that lets exactly one of several writers create a file."""

    LINK = "a hard link, or a rename that never replaces"
    LOCK = "a lock of this process, in which all files are"
    REQUEST = "a conditional request, which `pipe_file(…, mode='create')` sends"


@dataclass(frozen=True, slots=True, eq=False)
class StoreKind:
    """One kind of store; the defaults mean that the store lacks an ability.

    Args:
        name: the scheme that replaces `aliases` in canonical paths. fsspec uses this name, too.
        aliases: further schemes of the same service.
        address: the form of the URLs.
        files: the name of the class that lists, reads and deletes files, and translates options.
        quicker: the name of a class with a faster client, which is used if the client is installed
            and supports all options of the store.
        filesystem: the module of the fsspec class that `files` and `put_if_absent` need. A file
            system with the same name from another module, such as pyarrow's, lacks these abilities.
            An empty string accepts any module; "(none)" means that `files` calls the operating
            system.
        put_if_absent: the mechanism for atomic commits; None refuses commits.
        extra: the extra of deltalog that installs the file system.
        option_prefixes: the prefixes of option names in the service's own tools, longest first.
        lock_options: options for a lock that other writers use. deltalog does not support the lock.
            Commits without the lock could be lost, so deltalog makes no commits if such an option
            is set.
        says_missing: the names and codes, separated by blanks, of errors for a missing file or
            bucket. The errors of Python and HTTP apply to all kinds.
        says_exists: names and codes of errors for a conditional put of a file that exists.
        says_denied: names and codes of errors for invalid, expired or insufficient credentials.
        says_unconfigured: names of errors because no credentials were found.
        credentials: how users pass credentials.
        hosts: a pattern of the hosts of the service in HTTP URLs. The group `bucket` is the bucket,
            if it is part of the host.
        says_undecided: names and codes of errors for concurrent conditional puts, none of which was
            executed. The request may be sent again.
        is_native: whether the operating system can open the files by name.
        has_directories: whether a directory must be created before its files.
        can_sign: whether the service supports signed URLs.
        may_be_named: whether the log of a table in another store may refer to files of this kind.
        is_hadoop: whether Spark has a file system for this kind.
        container: what the service calls the first part of a location.
        own_options: options without a prefix that only this kind has.
        says_no_container: a pattern of messages for a bucket or container that does not exist.
        endpoint_option: the storage option for the URL of another service with the same API.
        advised: the scheme in messages that advise a URL; by default, the name.
    """

    name: str
    _: KW_ONLY
    aliases: tuple[str, ...] = ()
    address: Address = Address.UNKNOWN
    files: str = "FsspecFiles"
    quicker: str = ""
    filesystem: str = ""
    put_if_absent: PutIfAbsent | None = None
    extra: str = ""
    option_prefixes: tuple[str, ...] = ()
    lock_options: tuple[str, ...] = ()
    says_missing: str = ""
    says_exists: str = ""
    says_denied: str = ""
    says_undecided: str = ""
    is_native: bool = False
    has_directories: bool = False
    can_sign: bool = False
    may_be_named: bool = True
    is_hadoop: bool = False
    # Pickles of older releases contain the fields by position, so new fields are last.
    says_unconfigured: str = ""
    credentials: str = ""
    hosts: str = ""
    container: str = "bucket"
    says_no_container: str = ""
    own_options: str = ""
    endpoint_option: str = "endpoint"
    advised: str = ""

    # Compare only the names, because kinds are compared for every path.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoreKind) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


LOCAL: Final = StoreKind(
    "file",
    aliases=("local",),
    address=Address.PATH,
    files="LocalFiles",
    filesystem="(none)",
    put_if_absent=PutIfAbsent.LINK,
    is_native=True,
    has_directories=True,
    is_hadoop=True,
)

_ROWS: Final = (
    LOCAL,
    StoreKind(
        "memory",
        address=Address.PATH,
        files="MemoryFiles",
        filesystem="fsspec.implementations.memory",
        put_if_absent=PutIfAbsent.LOCK,
    ),
    StoreKind(
        "s3",
        aliases=("s3a", "s3n"),
        address=Address.BUCKET,
        files="S3Files",
        quicker="ObstoreFiles",
        filesystem="s3fs.core",
        put_if_absent=PutIfAbsent.REQUEST,  # the header If-None-Match: *
        extra="s3",
        option_prefixes=("aws_",),
        lock_options=("s3_locking_provider", "locking_provider", "delta_dynamo_table_name"),
        says_missing="NoSuchKey NoSuchBucket",
        says_denied="AccessDenied ExpiredToken ExpiredTokenException InvalidAccessKeyId"
        " InvalidToken SignatureDoesNotMatch TokenRefreshRequired NoCredentialsError"
        " PartialCredentialsError CredentialRetrievalError TokenRetrievalError"
        " UnauthorizedSSOTokenError SSOTokenLoadError InvalidAccessKeyError",
        says_unconfigured="NoCredentialsError PartialCredentialsError",
        hosts=r"(?:(?P<bucket>.+)\.)?s3(?:[.-][a-z0-9-]+)*\.amazonaws\.com(?:\.cn)?",
        credentials="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment or in "
        "storage_options, or AWS_PROFILE for a profile of ~/.aws; for a public bucket, pass "
        "storage_options={'AWS_SKIP_SIGNATURE': 'true'}",
        says_undecided="ConditionalRequestConflict OperationAborted",
        endpoint_option="endpoint_url",
        own_options="access_key_id secret_access_key session_token",
        says_no_container="NoSuchBucket|[Tt]he specified bucket does not exist",
        can_sign=True,
        is_hadoop=True,
    ),
    StoreKind(
        "gs",
        aliases=("gcs",),
        address=Address.BUCKET,
        files="GoogleFiles",
        filesystem="gcsfs.core",
        put_if_absent=PutIfAbsent.REQUEST,  # the parameter ifGenerationMatch=0
        extra="gcs",
        option_prefixes=("google_",),
        says_denied="DefaultCredentialsError RefreshError",
        says_unconfigured="DefaultCredentialsError",
        own_options="service_account service_account_path service_account_key",
        says_no_container="[Tt]he specified bucket does not exist",
        hosts=r"(?:(?P<bucket>.+)\.)?storage\.(?:googleapis|cloud\.google)\.com",
        credentials="set GOOGLE_APPLICATION_CREDENTIALS in the environment to the path of a key "
        "file, or pass storage_options={'GOOGLE_SERVICE_ACCOUNT': path}",
        can_sign=True,
        is_hadoop=True,
    ),
    StoreKind(
        "az",
        aliases=("abfs", "abfss", "adl", "wasb", "wasbs", "azure"),
        address=Address.ACCOUNT,
        files="AzureFiles",
        filesystem="adlfs.spec",
        put_if_absent=PutIfAbsent.REQUEST,  # If-None-Match: * (overwrite=False in adlfs)
        extra="azure",
        option_prefixes=("azure_storage_", "azure_"),
        says_missing="ResourceNotFoundError BlobNotFound ContainerNotFound PathNotFound"
        " FilesystemNotFound",
        says_exists="ResourceExistsError BlobAlreadyExists PathAlreadyExists",
        says_unconfigured="CredentialUnavailableError",
        credentials="set AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_SAS_TOKEN or the variables "
        "AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET in the environment or in "
        "storage_options",
        says_denied="ClientAuthenticationError CredentialUnavailableError AuthenticationFailed"
        " AuthorizationFailure AuthorizationPermissionMismatch InvalidAuthenticationInfo",
        container="container",
        advised="abfss",
        hosts=r"[a-z0-9-]+\.(?:dfs|blob)\.(?:core\.windows\.net|fabric\.microsoft\.com)",
        own_options="account_name account_key container_name sas_token tenant_id",
        says_no_container="ContainerNotFound|FilesystemNotFound"
        "|[Tt]he specified container does not exist",
        can_sign=True,
        is_hadoop=True,
    ),
    *(
        StoreKind(
            name,
            address=Address.URL,
            files="WebFiles",
            may_be_named=False,
        )
        for name in ("http", "https")
    ),
    *(
        StoreKind(name, address=Address.HOST, has_directories=True, is_hadoop=True)
        for name in ("hdfs", "viewfs")
    ),
    StoreKind("webhdfs", address=Address.HOST, has_directories=True),
    *(
        StoreKind(name, address=Address.HOST, has_directories=True, may_be_named=False)
        for name in ("ftp", "sftp", "ssh", "smb")
    ),
    *(StoreKind(name, is_hadoop=True) for name in ("oss", "cosn", "obs")),
    # A log must not refer to files of these kinds, because a malicious log could make readers
    # request any URL.
    *(
        StoreKind(name, may_be_named=False)
        for name in ("ftps", "data", "jar", "zip", "github", "git")
    ),
)

KINDS: Final = {scheme: kind for kind in _ROWS for scheme in (kind.name, *kind.aliases)}
"""Scheme → the row of its store kind."""


_OF_S3A: Final = {
    "access.key": "AWS_ACCESS_KEY_ID",
    "secret.key": "AWS_SECRET_ACCESS_KEY",
    "session.token": "AWS_SESSION_TOKEN",
    "endpoint": "AWS_ENDPOINT_URL",
    "endpoint.region": "AWS_REGION",
    "path.style.access": "AWS_VIRTUAL_HOSTED_STYLE_REQUEST",
    "server-side-encryption-algorithm": "AWS_SERVER_SIDE_ENCRYPTION",
    "encryption.algorithm": "AWS_SERVER_SIDE_ENCRYPTION",
    "server-side-encryption.key": "AWS_SSE_KMS_KEY_ID",
    "encryption.key": "AWS_SSE_KMS_KEY_ID",
}
_OF_ABFS: Final = {
    "account.key": "AZURE_STORAGE_ACCOUNT_KEY",
    "account.oauth2.client.id": "AZURE_CLIENT_ID",
    "account.oauth2.client.secret": "AZURE_CLIENT_SECRET",
    "account.oauth2.client.endpoint": "AZURE_TENANT_ID",
    "account.oauth2.msi.tenant": "AZURE_TENANT_ID",
    "sas": "AZURE_STORAGE_SAS_TOKEN",
}
_OF_GCS: Final = {
    "auth.service.account": "GOOGLE_SERVICE_ACCOUNT",
    "project.id": "GOOGLE_PROJECT",
}
HADOOP_SETTINGS: Final[dict[str | None, dict[str, str]]] = {
    **dict.fromkeys(("s3", "s3a", "s3n"), _OF_S3A),
    **dict.fromkeys(("azure", "abfs", "abfss", "wasb", "wasbs"), _OF_ABFS),
    **dict.fromkeys(("gs", None), _OF_GCS),
}
"""Scheme in Hadoop's names of settings → the beginning of the setting → the option. Those of Google
may have no scheme."""


NAMES_OF_CLIENTS: Final = {
    "s3": {
        "region_name": "AWS_REGION",
        "access_key": "AWS_ACCESS_KEY_ID",
        "secret_key": "AWS_SECRET_ACCESS_KEY",
        "access_key_secret": "AWS_SECRET_ACCESS_KEY",
    },
}
"""Kind → a name in the service's libraries that its client does not accept → the option."""


def kind_named(scheme: str) -> StoreKind:
    """Return the store kind for a URL's scheme. An empty scheme or a drive letter is local.

    For a scheme that is not in the table, return a kind without abilities.
    """
    scheme = scheme.lower()
    return LOCAL if len(scheme) < 2 else KINDS.get(scheme) or StoreKind(scheme)


def split_option(name: str) -> tuple[StoreKind | None, str]:
    """Split an option's name into the store kind of its prefix and the other part in lower case."""
    lower = name.lower()
    for kind in KINDS.values():
        for prefix in kind.option_prefixes:
            if lower.startswith(prefix):
                return kind, lower.removeprefix(prefix)
    return None, lower


_RESOURCE: Final = re.compile(r"arn:aws[a-z-]*:(?P<scheme>[a-z0-9]+):::(?P<path>.+)")


def url_of_resource(name: str) -> str:
    """Return the URL of a resource name such as `arn:aws:s3:::bucket/table`, or an empty string."""
    found = _RESOURCE.fullmatch(name)
    return f"{found['scheme']}://{found['path']}" if found and found["scheme"] in KINDS else ""
