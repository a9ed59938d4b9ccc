"""The table of store kinds: what a kind of store is called, how it is reached, what it can do.

Owns every name of a kind: all other code asks the row of the store at hand. The table stands
below `paths`, which needs the names and the forms of URLs to tell files apart. A row therefore
names the class of its calls as a text, which `storage.filesystems` imports when it is needed.
"""

from __future__ import annotations

import enum
from dataclasses import KW_ONLY, dataclass
from typing import Final


class Address(enum.Enum):
    """How the path that a file system takes follows from a URL."""

    PATH = "no host: `file:///a/b` is `/a/b`"
    HOST = "a host with one tree of files: `hdfs://host:8020/a/b` is `/a/b`"
    BUCKET = "`s3://bucket/a/b` is `bucket/a/b`"
    ACCOUNT = "`abfss://container@account.host/a/b` is `container/a/b` of an account"
    URL = "the URL itself, percent-encoded"
    UNKNOWN = "as `BUCKET`, except where a file system that the user gives has a form of its own"


class PutIfAbsent(enum.Enum):
    """What makes sure that of several writers of one name exactly one succeeds."""

    LINK = "a hard link, or a rename that never replaces"
    LOCK = "a lock of this process, in which all files are"
    REQUEST = "a conditional request, which `pipe_file(…, mode='create')` sends"


@dataclass(frozen=True, slots=True, eq=False)
class StoreKind:
    """One kind of store; a column that is left out stands for something it cannot do.

    Args:
        name: the scheme that stands for all others in canonical paths; fsspec knows it too.
        aliases: further schemes of the same service.
        address: form of its URLs.
        files: `module:class` of its calls: how it lists, reads, deletes, translates options.
        quicker: likewise: calls over a quicker client, used where it is installed and does exactly
            what the options say.
        filesystem: module of the fsspec class that `files` and `put_if_absent` rely on. Another
            file system that bears the name, as pyarrow's do, can do none of that. Empty: any.
        put_if_absent: what a commit rests on; None refuses commits.
        extra: the extra of deltalog that installs its file system.
        option_prefixes: of its options' names, as the service's own tools spell them, longest
            first.
        lock_options: options by which other writers agree on a lock that deltalog does not take:
            whoever commits without it may lose commits, so they forbid commits.
        says_missing: names and codes of its errors, between blanks, that mean: there is no such
            file or bucket. All kinds share those of Python and of HTTP.
        says_exists: likewise: a conditional put found the name taken.
        says_denied: likewise: the credentials are wrong, have expired, or do not suffice.
        says_undecided: likewise: conditional puts met, none was executed, and each may be sent
            again.
        is_native: the operating system knows the files by name.
        has_directories: a directory must be made before a file in it.
        can_sign: the service has signed URLs.
        may_be_named: a log may name files there while its table is elsewhere.
        is_hadoop: Spark has a file system for it.
    """

    name: str
    _: KW_ONLY
    aliases: tuple[str, ...] = ()
    address: Address = Address.UNKNOWN
    files: str = "deltalog.storage.fsspec_files:FsspecFiles"
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

    # A file system is looked up by its kind for every path: comparing all columns takes too long.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoreKind) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


LOCAL: Final = StoreKind(
    "file",
    aliases=("local",),
    address=Address.PATH,
    files="deltalog.storage.local_files:LocalFiles",
    filesystem="deltalog.storage.local_files",
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
        files="deltalog.storage.memory:MemoryFiles",
        filesystem="fsspec.implementations.memory",
        put_if_absent=PutIfAbsent.LOCK,
    ),
    StoreKind(
        "s3",
        aliases=("s3a", "s3n"),
        address=Address.BUCKET,
        files="deltalog.storage.s3:S3Files",
        quicker="deltalog.storage.obstore_files:ObstoreFiles",
        filesystem="s3fs.core",
        put_if_absent=PutIfAbsent.REQUEST,  # If-None-Match: *
        extra="s3",
        option_prefixes=("aws_",),
        lock_options=("s3_locking_provider", "locking_provider", "delta_dynamo_table_name"),
        says_missing="NoSuchKey NoSuchBucket",
        says_denied="AccessDenied ExpiredToken ExpiredTokenException InvalidAccessKeyId"
        " InvalidToken SignatureDoesNotMatch TokenRefreshRequired NoCredentialsError"
        " PartialCredentialsError CredentialRetrievalError TokenRetrievalError"
        " UnauthorizedSSOTokenError SSOTokenLoadError InvalidAccessKeyError",
        says_undecided="ConditionalRequestConflict OperationAborted",
        can_sign=True,
        is_hadoop=True,
    ),
    StoreKind(
        "gs",
        aliases=("gcs",),
        address=Address.BUCKET,
        files="deltalog.storage.google:GoogleFiles",
        filesystem="gcsfs.core",
        put_if_absent=PutIfAbsent.REQUEST,  # ifGenerationMatch=0
        extra="gcs",
        option_prefixes=("google_",),
        says_denied="DefaultCredentialsError RefreshError",
        can_sign=True,
        is_hadoop=True,
    ),
    StoreKind(
        "az",
        aliases=("abfs", "abfss", "adl", "wasb", "wasbs", "azure"),
        address=Address.ACCOUNT,
        files="deltalog.storage.azure:AzureFiles",
        filesystem="adlfs.spec",
        put_if_absent=PutIfAbsent.REQUEST,  # If-None-Match: *, adlfs's overwrite=False
        extra="azure",
        option_prefixes=("azure_storage_", "azure_"),
        says_missing="ResourceNotFoundError BlobNotFound ContainerNotFound PathNotFound"
        " FilesystemNotFound",
        says_exists="ResourceExistsError BlobAlreadyExists PathAlreadyExists",
        says_denied="ClientAuthenticationError CredentialUnavailableError AuthenticationFailed"
        " AuthorizationFailure AuthorizationPermissionMismatch InvalidAuthenticationInfo",
        can_sign=True,
        is_hadoop=True,
    ),
    *(
        StoreKind(
            name,
            address=Address.URL,
            files="deltalog.storage.web:WebFiles",
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
    # No table's files are there: a reader would fetch whatever a hostile log names.
    *(
        StoreKind(name, may_be_named=False)
        for name in ("ftps", "data", "jar", "zip", "github", "git")
    ),
)

KINDS: Final = {scheme: kind for kind in _ROWS for scheme in (kind.name, *kind.aliases)}
"""The rows by scheme."""


def kind_named(scheme: str) -> StoreKind:
    """The row of a URL's scheme; without a scheme, or with a drive letter, that of local files.

    A scheme that is not in the table is a kind without any abilities.
    """
    scheme = scheme.lower()
    return LOCAL if len(scheme) < 2 else KINDS.get(scheme) or StoreKind(scheme)


def split_option(name: str) -> tuple[StoreKind | None, str]:
    """The kind whose prefix an option's name has, if any, and the name without it, lower case."""
    lower = name.lower()
    for kind in KINDS.values():
        for prefix in kind.option_prefixes:
            if lower.startswith(prefix):
                return kind, lower.removeprefix(prefix)
    return None, lower
