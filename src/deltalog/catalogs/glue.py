"""`GlueCatalog`: the tables of AWS Glue's data catalog, as Spark and Athena write their entries.

Owns how an entry says that it is a Delta table, and where. Glue decides on no commits: tables are
files, and their entries are kept in step after commits.

Protocol: none
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from deltalog.catalogs.changes import FollowedCommitter
from deltalog.catalogs.glue_requests import GlueRequests
from deltalog.catalogs.locations import check_location
from deltalog.catalogs.protocol import (
    CatalogTable,
    Name,
    StagedTable,
    TableType,
    check_parts,
    shown_name,
)
from deltalog.catalogs.transacting import OffersTransactions
from deltalog.clock import now_ms
from deltalog.context import TableContext, utc_context
from deltalog.errors import (
    InvalidInputError,
    TableExistsError,
    TableNotFoundError,
)
from deltalog.expressions.render import simple_name
from deltalog.paths import decode_location
from deltalog.schema.codec import parse_schema
from deltalog.storage import open_store

if TYPE_CHECKING:
    from deltalog.actions import Metadata
    from deltalog.snapshot import Snapshot
    from deltalog.storage.fsspec_store import StorageOptions
    from deltalog.storage.store import Store
    from deltalog.transaction.winners import WinningCommit

_PROVIDER: Final = "spark.sql.sources.provider"
_DELTA: Final = "delta"
# Spark writes such a location where the true one is the `path` of the entry.
_PLACEHOLDER: Final = "__PLACEHOLDER__"
_STATE: Final = ("delta.lastUpdateVersion", "delta.lastCommitTimestamp")
# Athena's: engines that know Delta do not look at them.
_FORMAT: Final = {
    "InputFormat": "org.apache.hadoop.mapred.SequenceFileInputFormat",
    "OutputFormat": "org.apache.hadoop.hive.ql.io.HiveSequenceFileOutputFormat",
}
_SERDE: Final = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"


class GlueCatalog(OffersTransactions):
    """The tables of AWS Glue's data catalog: databases are schemas.

    Tables are reached with the caller's own credentials. A commit that changes schema or properties
    updates the entry afterwards. Instances are shared by threads; pickles hold no keys, so another
    process uses those of its environment, unless `pickles_secrets` says otherwise.

    Args:
        catalog_id: of the account whose catalog it is; None is the caller's.
        client_options: keyword arguments of `boto3.client`, such as `region_name`.
        storage_options: of the tables' stores; None uses the environment's.
        allows_local_files: whether tables may be files of this machine.
        pickles_secrets: whether pickles hold keys that `client_options` has.
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
        self._glue = GlueRequests(
            catalog_id, dict(client_options or {}), pickles_secrets=pickles_secrets
        )
        self._options = storage_options
        self._allows_local = allows_local_files

    def list_schemas(self, within: Name = ()) -> list[Name]:
        """As `TableCatalog`. Cost: a request for each page."""
        found = self._glue.pages("list the databases", "get_databases", "DatabaseList")
        names = sorted((str(one["Name"]),) for one in found)
        return [name for name in names if name[: len(within)] == tuple(within)]

    def list_tables(self, schema: Name) -> list[Name]:
        """As `TableCatalog`. Cost: a request for each page."""
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
        """As `KeepsSchemas`. Cost: a request."""
        check_parts(schema, 1, "a database of Glue")
        self._glue.create_database(schema[0], comment, location, properties)

    def drop_schema(self, schema: Name, *, cascade: bool = False) -> None:
        """As `KeepsSchemas`; the files of tables stay. Cost: a request, and a listing."""
        check_parts(schema, 1, "a database of Glue")
        try:
            tables = [] if cascade else self.list_tables(schema)
        except TableNotFoundError:  # there is none, as the deletion says
            tables = []
        if tables:
            raise InvalidInputError(
                f"cannot drop schema {shown_name(schema)}: it has tables, such as "
                f"{shown_name(tables[0])}; drop them first, or say CASCADE"
            )
        self._glue.delete_database(schema[0])

    def find(self, name: Name) -> CatalogTable | None:
        """As `TableCatalog`. Cost: a request."""
        entry = self._glue.table(name)
        return None if entry is None else _described(name, entry)

    def open(self, name: Name) -> TableContext:
        """As `TableCatalog`. Cost: a request."""
        table = self._existing(name)
        if table.provider != _DELTA:
            raise InvalidInputError(
                f"cannot open {shown_name(name)}: its format is {table.provider}, not Delta"
            )
        store = self._store(table.location)
        committer = FollowedCommitter(GlueTeller(self._glue, name))
        return TableContext(store=store, time_zone="UTC", committer=committer)

    def stage(self, name: Name, location: str | None = None) -> StagedTable:
        """As `TableCatalog`; without a location it lies below that of its database.

        Cost: two requests.
        """
        check_parts(name, 2, "a table of Glue")
        if self._glue.table(name) is not None:
            raise TableExistsError(f"cannot create {shown_name(name)}: the catalog has a table")
        place = location or self._glue.default_location(name)
        return StagedTable(
            name=name,
            context=utc_context(self._store(place)),
            location=place,
            table_type=TableType.EXTERNAL,
        )

    def register(self, staged: StagedTable, snapshot: Snapshot) -> CatalogTable:
        """As `TableCatalog`. Cost: a request."""
        entry = _entry(staged, snapshot)
        try:
            self._glue.create(staged.name, entry)
        except TableExistsError:
            found = self.find(staged.name)  # perhaps only the first answer was lost
            if found is None or found.location.rstrip("/") != staged.location.rstrip("/"):
                raise
        return _described(staged.name, entry)

    def synchronize(self, name: Name, snapshot: Snapshot) -> None:
        """As `TableCatalog`. Cost: two requests."""
        state = _state(snapshot.version, snapshot.commit_timestamp_ms)
        self._glue.change(name, lambda entry: _updated(entry, snapshot.metadata, state))

    def drop(self, name: Name, *, purge: bool = False) -> None:
        """As `TableCatalog`. Cost: a request."""
        if purge:
            raise InvalidInputError(
                f"cannot purge {shown_name(name)}: the files of a table of Glue are not its own"
            )
        self._glue.delete(name)

    def rename(self, name: Name, new_name: Name) -> None:
        """As `TableCatalog`: refused, as Glue cannot."""
        raise InvalidInputError(
            f"cannot rename {shown_name(name)} to {shown_name(new_name)}: Glue renames no table; "
            "register its location under the new name and drop the old one"
        )

    def relocate(self, name: Name, location: str) -> None:
        """As `TableCatalog`. Cost: two requests."""
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
    """Keeps the entry of a table in step with its commits."""

    glue: GlueRequests
    name: Name

    def tell(self, _store: Store, commit: WinningCommit) -> None:
        """As `Teller`."""
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
    """The format of a table: as Spark says it, as Athena does, or as crawlers do."""
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
        "PartitionKeys": [],  # the log knows the partitions, and their values
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
    """An entry with schema, properties and comment of a table."""
    columns = [
        {
            "Name": field.name,
            "Type": simple_name(field.type),
            **({"Comment": comment} if (comment := _comment(field.metadata)) else {}),
        }
        for field in parse_schema(metadata.schema_string)
    ]
    storage = {**(entry.get("StorageDescriptor") or {}), "Columns": columns}
    # What is about tables comes from the table alone, and stays nowhere else.
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
