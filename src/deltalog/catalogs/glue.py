"""`GlueCatalog`: the tables of AWS Glue's data catalog, with entries as Spark and Athena write.

This module determines how an entry of Glue represents a Delta table and its location. Glue does not
coordinate commits: the files alone are the table, and the entry is updated after each commit.

Protocol: none
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from deltalog._util.argument_types import checks_types
from deltalog._util.clock import now_ms
from deltalog._util.paths import decode_location
from deltalog._util.similar_names import suggests_arguments
from deltalog.catalogs.locations import check_location
from deltalog.catalogs.protocol import (
    CatalogTable,
    FollowedCommitter,
    Name,
    OffersTransactions,
    StagedTable,
    TableType,
    check_parts,
    shown_name,
)
from deltalog.errors import (
    CatalogAccessError,
    CatalogError,
    CatalogUnavailableError,
    InvalidInputError,
    TableExistsError,
    TableNotFoundError,
)
from deltalog.expressions.render import simple_name
from deltalog.log.context import TableContext, utc_context
from deltalog.schema.codec import parse_schema
from deltalog.storage import open_store
from deltalog.storage.faults import impatient_client, redact, says
from deltalog.storage.http.replies import printable
from deltalog.storage.options import check_options

if TYPE_CHECKING:
    from deltalog.log.snapshot import Snapshot
    from deltalog.protocol.actions import Metadata
    from deltalog.storage.fsspec_store import StorageOptions
    from deltalog.storage.store import Store
    from deltalog.transaction.conflicts import WinningCommit

_PROVIDER: Final = "spark.sql.sources.provider"
_DELTA: Final = "delta"
# The location that Spark writes into an entry whose real location is in the parameter `path`.
_PLACEHOLDER: Final = "__PLACEHOLDER__"
_STATE: Final = ("delta.lastUpdateVersion", "delta.lastCommitTimestamp")
# The formats that Athena requires in an entry. Engines that support Delta ignore them.
_FORMAT: Final = {
    "InputFormat": "org.apache.hadoop.mapred.SequenceFileInputFormat",
    "OutputFormat": "org.apache.hadoop.hive.ql.io.HiveSequenceFileOutputFormat",
}
_SERDE: Final = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"


@checks_types
@suggests_arguments
class GlueCatalog(OffersTransactions):
    """The tables of AWS Glue's data catalog. Its databases are the schemas.

    Tables are read and written with the caller's own credentials. After a commit that changes the
    schema or the properties, the entry in Glue is updated. Threads may share an instance. Pickles
    contain no keys unless `pickles_secrets` is True; another process uses the keys in its own
    environment.

    Args:
        catalog_id: the id of the account that owns the catalog; None means the caller's account.
        client_options: the keyword arguments of `boto3.client`, such as `region_name`.
        storage_options: options for the stores of tables; None means the environment.
        allows_local_files: whether tables may be on the local file system.
        pickles_secrets: whether pickles contain the keys in `client_options`.
    """

    def __init__(
        self,
        catalog_id: str | None = None,
        *,
        client_options: Mapping[str, Any] | None = None,
        storage_options: StorageOptions | None = None,
        allows_local_files: bool = False,
        pickles_secrets: bool = False,
    ) -> None:
        check_options(storage_options)
        self._glue = GlueRequests(
            catalog_id, dict(client_options or {}), pickles_secrets=pickles_secrets
        )
        self._options = storage_options
        self._allows_local = allows_local_files

    def list_schemas(self, within: Name = ()) -> list[Name]:
        """Return the databases; see `TableCatalog.list_schemas`. Cost: one request per page."""
        found = self._glue.pages("list the databases", "get_databases", "DatabaseList")
        names = sorted((str(one["Name"]),) for one in found)
        return [name for name in names if name[: len(within)] == tuple(within)]

    def list_tables(self, schema: Name) -> list[Name]:
        """Return the tables; see `TableCatalog.list_tables`. Cost: one request per page."""
        check_parts(schema, 1, "a database of Glue")
        what = f"list the tables of {shown_name(schema)}"
        found = self._glue.pages(what, "get_tables", "TableList", DatabaseName=schema[0])
        return sorted((schema[0], str(one["Name"])) for one in found)

    def create_schema(
        self,
        schema: Name,
        *,
        comment: str | None = None,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Create a database; see `KeepsSchemas.create_schema`. Cost: one request."""
        check_parts(schema, 1, "a database of Glue")
        self._glue.create_database(schema[0], comment, location, properties)

    def drop_schema(self, schema: Name, *, cascade: bool = False) -> None:
        """Drop a database; see `KeepsSchemas.drop_schema`. No files are deleted.

        Cost: one request and a listing.
        """
        check_parts(schema, 1, "a database of Glue")
        try:
            tables = [] if cascade else self.list_tables(schema)
        except TableNotFoundError:  # the request to drop the missing schema will fail
            tables = []
        if tables:
            raise InvalidInputError(
                f"cannot drop schema {shown_name(schema)}: it has tables, such as "
                f"{shown_name(tables[0])}; drop them first, or use CASCADE"
            )
        self._glue.delete_database(schema[0])

    def find(self, name: Name) -> CatalogTable | None:
        """Return the entry of a table; see `TableCatalog.find`. Cost: one request."""
        entry = self._glue.table(name)
        return None if entry is None else _described(name, entry)

    def open(self, name: Name) -> TableContext:
        """Return the context of a table; see `TableCatalog.open`. Cost: one request."""
        table = self._existing(name)
        if table.provider != _DELTA:
            raise InvalidInputError(
                f"cannot open {shown_name(name)}: its format is {table.provider}, not Delta"
            )
        store = self._store(table.location)
        committer = FollowedCommitter(GlueTeller(self._glue, name))
        return TableContext(store=store, time_zone="UTC", committer=committer)

    def stage(self, name: Name, location: str | None = None) -> StagedTable:
        """Choose the location of a new table; see `TableCatalog.stage`.

        By default, it is in the location of the database.

        Cost: two requests.
        """
        check_parts(name, 2, "a table of Glue")
        if self._glue.table(name) is not None:
            raise TableExistsError(f"cannot create {shown_name(name)}: the catalog has that table")
        place = location or self._glue.default_location(name)
        return StagedTable(
            name=name,
            context=utc_context(self._store(place)),
            location=place,
            table_type=TableType.EXTERNAL,
        )

    def register(self, staged: StagedTable, snapshot: Snapshot) -> CatalogTable:
        """Create the entry of a staged table; see `TableCatalog.register`. Cost: one request."""
        entry = _entry(staged, snapshot)
        try:
            self._glue.create(staged.name, entry)
        except TableExistsError:
            # An earlier attempt of this call may have created the entry.
            found = self.find(staged.name)

            if found is None or found.location.rstrip("/") != staged.location.rstrip("/"):
                raise
        return _described(staged.name, entry)

    def synchronize(self, name: Name, snapshot: Snapshot) -> None:
        """Update the entry of a table; see `TableCatalog.synchronize`. Cost: two requests."""
        state = _state(snapshot.version, snapshot.commit_timestamp_ms)
        self._glue.change(name, lambda entry: _updated(entry, snapshot.metadata, state))

    def drop(self, name: Name, *, purge: bool = False) -> None:
        """Delete the entry of a table; see `TableCatalog.drop`. Cost: one request."""
        if purge:
            raise InvalidInputError(
                f"cannot purge {shown_name(name)}: Glue does not own the files of its tables"
            )
        self._glue.delete(name)

    def rename(self, name: Name, new_name: Name) -> None:
        """Always raises InvalidInputError, because Glue cannot rename tables."""
        raise InvalidInputError(
            f"cannot rename {shown_name(name)} to {shown_name(new_name)}: Glue cannot rename "
            "tables; register its location with the new name, then drop the old name"
        )

    def relocate(self, name: Name, location: str) -> None:
        """Change the location in an entry; see `TableCatalog.relocate`. Cost: two requests."""
        check_location(location, allows_local=self._allows_local)
        self._glue.change(name, lambda entry: _moved(entry, location))

    def __repr__(self) -> str:
        return f"GlueCatalog({self._glue.catalog_id!r})"

    def _existing(self, name: Name) -> CatalogTable:
        found = self.find(name)
        if found is None:
            raise TableNotFoundError(f"there is no table {shown_name(name)} in the catalog")
        return found

    def _store(self, location: str) -> Store:
        check_location(location, allows_local=self._allows_local)
        return open_store(decode_location(location), self._options)


@dataclass(frozen=True, slots=True)
class GlueTeller:
    """Updates the entry of a table in Glue after commits to the table."""

    glue: GlueRequests
    name: Name

    def tell(self, _store: Store, commit: WinningCommit) -> None:
        """Send the changes of a commit; see `Teller.tell`."""
        metadata = commit.metadata
        if metadata is None:
            return
        time_ms = commit.info.get("timestamp")
        state = _state(commit.version, time_ms if type(time_ms) is int else now_ms())
        self.glue.change(self.name, lambda entry: _updated(entry, metadata, state))


def _described(name: Name, entry: Mapping[str, Any]) -> CatalogTable:
    parameters = {str(key): str(text) for key, text in (entry.get("Parameters") or {}).items()}
    return CatalogTable(
        name=name,
        location=_location(entry),
        comment=entry.get("Description") or None,
        properties=parameters,
        provider=_provider(parameters),
    )


def _location(entry: Mapping[str, Any]) -> str:
    storage = entry.get("StorageDescriptor") or {}
    location = str(storage.get("Location") or "")
    path = ((storage.get("SerdeInfo") or {}).get("Parameters") or {}).get("path")
    return str(path) if path and (not location or location.endswith(_PLACEHOLDER)) else location


def _provider(parameters: Mapping[str, str]) -> str:
    """Return a table's format, which Spark, Athena and crawlers write to different parameters."""
    for key in (_PROVIDER, "table_type", "classification"):
        if (found := parameters.get(key, "").lower()) != "":
            return found
    return "unknown"


def _entry(staged: StagedTable, snapshot: Snapshot) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "Name": staged.name[1],
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {
            "EXTERNAL": "TRUE",
            _PROVIDER: _DELTA,
            "table_type": _DELTA.upper(),
            "classification": _DELTA,
        },
        "PartitionKeys": [],  # the log contains the partition columns and values
        "StorageDescriptor": {
            **_FORMAT,
            "Columns": [],
            "Location": staged.location,
            "SerdeInfo": {
                "SerializationLibrary": _SERDE,
                "Parameters": {"serialization.format": "1", "path": staged.location},
            },
        },
    }
    state = _state(snapshot.version, snapshot.commit_timestamp_ms)
    return _updated(entry, snapshot.metadata, state)


def _updated(entry: dict[str, Any], metadata: Metadata, state: Mapping[str, str]) -> dict[str, Any]:
    """Return the entry with the table's current schema, properties and comment."""
    columns = [
        {
            "Name": field.name,
            "Type": simple_name(field.type),
            **({"Comment": comment} if (comment := _comment(field.metadata)) else {}),
        }
        for field in parse_schema(metadata.schema_string)
    ]
    storage = {**(entry.get("StorageDescriptor") or {}), "Columns": columns}
    # Copy Delta's properties only from the table, so that outdated properties of the entry vanish.
    kept = {
        key: text
        for key, text in (entry.get("Parameters") or {}).items()
        if not key.startswith("delta.")
    }
    changed = {
        **entry,
        "StorageDescriptor": storage,
        "Parameters": {**kept, **metadata.configuration, **state},
    }
    if metadata.description is not None:
        changed["Description"] = metadata.description
    return changed


def _comment(metadata: Mapping[str, Any] | None) -> str:
    found = (metadata or {}).get("comment")
    return found[:255] if isinstance(found, str) else ""


def _moved(entry: dict[str, Any], location: str) -> dict[str, Any]:
    storage = dict(entry.get("StorageDescriptor") or {})
    serde = dict(storage.get("SerdeInfo") or {})
    parameters = dict(serde.get("Parameters") or {})
    if "path" in parameters:
        serde["Parameters"] = {**parameters, "path": location}
        storage["SerdeInfo"] = serde
    return {**entry, "StorageDescriptor": {**storage, "Location": location}}


def _state(version: int, time_ms: int) -> dict[str, str]:
    return dict(zip(_STATE, (str(version), str(time_ms)), strict=True))


# --- requests to AWS Glue, and its errors


_UNCONFIGURED: Final = frozenset({"NoCredentialsError", "PartialCredentialsError"})
_MISSING: Final = frozenset({"EntityNotFoundException"})
_EXISTS: Final = frozenset({"AlreadyExistsException"})
_DENIED: Final = frozenset(
    {
        "AccessDeniedException",
        "AccessDenied",
        "ExpiredTokenException",
        "InvalidSignatureException",
        "UnrecognizedClientException",
        "NoCredentialsError",
        "PartialCredentialsError",
        "TokenRetrievalError",
    }
)
_BUSY: Final = frozenset(
    {
        "ThrottlingException",
        "InternalServiceException",
        "OperationTimeoutException",
        "EndpointConnectionError",
        "ConnectTimeoutError",
        "ReadTimeoutError",
        "ConnectionClosedError",
    }
)
_UNREACHED: Final = frozenset({"EndpointConnectionError", "ConnectTimeoutError"})
_SECRETS: Final = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
# The members of an entry that `get_table` returns and that `update_table` accepts.
_INPUT: Final = (
    "Name",
    "Description",
    "Owner",
    "LastAccessTime",
    "Retention",
    "StorageDescriptor",
    "PartitionKeys",
    "TableType",
    "Parameters",
)


class GlueRequests:
    """Sends requests to Glue, and converts its errors to deltalog's errors."""

    def __init__(
        self, catalog_id: str | None, options: dict[str, Any], *, pickles_secrets: bool
    ) -> None:
        self.catalog_id = catalog_id
        self._options = options
        self._pickles_secrets = pickles_secrets
        self._client = _client(options)

    def table(self, name: Name) -> dict[str, Any] | None:
        """Return the entry of a table; None if the table does not exist."""
        check_parts(name, 2, "a table of Glue")
        try:
            with self._errors(f"load table {shown_name(name)}"):
                answer = self._client.get_table(**self._of(name), Name=name[1])
        except TableNotFoundError:
            return None
        return dict(answer["Table"])

    def pages(
        self, what: str, operation: str, member: str, **more: Any
    ) -> Iterator[dict[str, Any]]:
        """Yield the entries on all pages of a listing."""
        with self._errors(what):
            pages = self._client.get_paginator(operation).paginate(**self._account, **more)
            for page in pages:
                yield from page[member]

    def create_database(
        self,
        name: str,
        comment: str | None,
        location: str | None,
        properties: Mapping[str, str] | None,
    ) -> None:
        """Create a database.

        Raises:
            CatalogError: the database exists (status 409).
        """
        more = {"Description": comment, "LocationUri": location, "Parameters": properties}
        given = {"Name": name, **{key: value for key, value in more.items() if value}}
        what = f"create schema {shown_name((name,))}"
        try:
            with self._errors(what):
                self._client.create_database(**self._account, DatabaseInput=given)
        except TableExistsError as error:
            raise CatalogError(f"cannot {what}: it exists", status=409) from error

    def delete_database(self, name: str) -> None:
        """Delete a database with all its entries.

        Raises:
            CatalogError: the database does not exist (status 404).
        """
        what = f"drop schema {shown_name((name,))}"
        try:
            with self._errors(what):
                self._client.delete_database(**self._account, Name=name)
        except TableNotFoundError as error:
            raise CatalogError(f"cannot {what}: it does not exist", status=404) from error

    def default_location(self, name: Name) -> str:
        """Return the default location of a new table, in the location of its database."""
        with self._errors(f"load database {shown_name(name[:1])}"):
            answer = self._client.get_database(**self._account, Name=name[0])
        place = answer["Database"].get("LocationUri")
        if not place:
            raise InvalidInputError(
                f"cannot create {shown_name(name)}: its database has no location; give a location"
            )
        return f"{str(place).rstrip('/')}/{name[1]}"

    def create(self, name: Name, entry: dict[str, Any]) -> None:
        """Create the entry of a table."""
        with self._errors(f"create table {shown_name(name)}"):
            self._client.create_table(**self._of(name), TableInput=entry)

    def delete(self, name: Name) -> None:
        """Delete the entry of a table."""
        check_parts(name, 2, "a table of Glue")
        with self._errors(f"drop table {shown_name(name)}"):
            self._client.delete_table(**self._of(name), Name=name[1])

    def change(self, name: Name, make: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Replace the entry of a table by the result of `make` for the current entry."""
        entry = self.table(name)
        if entry is None:
            raise TableNotFoundError(f"there is no table {shown_name(name)} in the catalog")
        changed = make({key: entry[key] for key in _INPUT if key in entry})
        with self._errors(f"update table {shown_name(name)}"):
            self._client.update_table(**self._of(name), TableInput=changed)

    @property
    def _account(self) -> dict[str, str]:
        return {} if self.catalog_id is None else {"CatalogId": self.catalog_id}

    def _of(self, name: Name) -> dict[str, str]:
        return {**self._account, "DatabaseName": name[0]}

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        """Convert errors of boto3 in the block to errors of deltalog."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  # every error is converted
            secrets = [str(self._options[key]) for key in _SECRETS if self._options.get(key)]
            detail = printable(redact(f"{type(error).__name__}: {error}", secrets))
            place = getattr(getattr(self._client, "meta", None), "endpoint_url", "") or "AWS Glue"
            text = f"cannot {what} at {place}: {detail}"
            if says(error, _UNCONFIGURED):
                text += (
                    "; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE in the "
                    "environment, or pass GlueCatalog(client_options={…}), the arguments of "
                    "boto3.client"
                )
            elif says(error, _DENIED):
                text += "; check that the AWS keys are valid, and may use Glue in this region"
            elif says(error, _UNREACHED):
                text += "; check the region, and that this machine can reach the address"
            if says(error, _MISSING):
                raise TableNotFoundError(text) from None
            if says(error, _EXISTS):
                raise TableExistsError(text) from None
            if says(error, _DENIED):
                raise CatalogAccessError(text, status=403) from None
            if says(error, _BUSY):
                raise CatalogUnavailableError(text) from None
            raise CatalogError(text) from None

    def __getstate__(self) -> dict[str, Any]:
        options = self._options
        if not self._pickles_secrets:
            options = {key: value for key, value in options.items() if key not in _SECRETS}
        return {
            "catalog_id": self.catalog_id,
            "_options": options,
            "_pickles_secrets": self._pickles_secrets,
        }

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._client = _client(self._options)


def _client(options: Mapping[str, Any]) -> Any:
    try:
        import boto3  # noqa: PLC0415  # boto3 is optional
    except ImportError as error:  # pragma: no cover -- tests have it
        raise InvalidInputError(
            "cannot use AWS Glue: boto3 is not installed; pip install 'deltalog[glue]'"
        ) from error
    try:
        client = boto3.client("glue", **options)
    except Exception as error:
        advice = ""
        if says(error, {"NoRegionError"}):
            advice = (
                "; set the environment variable AWS_DEFAULT_REGION, or pass "
                "catalog=GlueCatalog(client_options={'region_name': …})"
            )
        raise InvalidInputError(f"cannot use AWS Glue: {error}{advice}") from error
    return impatient_client(client, "glue")
