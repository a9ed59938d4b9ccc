"""`UnityCatalog`: the tables of a Unity Catalog server.

This module interprets names, opens tables (with lent credentials and the right committer), and
stages, registers, renames and drops tables.

Protocol: UC Delta API; Catalog-managed tables
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from deltalog._util.argument_types import checks_types
from deltalog._util.paths import decode_location
from deltalog._util.similar_names import suggests_arguments
from deltalog.catalogs.locations import LentCredential, LentOptions, check_location
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
from deltalog.catalogs.unity import older
from deltalog.catalogs.unity.api import (
    CREATE,
    RENAME,
    STAGING,
    UPDATE,
    OfPath,
    OfStaging,
    OfTable,
    UnityApi,
    UnityLender,
)
from deltalog.catalogs.unity.client import Question, UnityClient, path_of, unity_settings
from deltalog.catalogs.unity.committer import (
    DeltaCoordinator,
    StagedCommitter,
    UnityCommitter,
    UnityTeller,
    creation,
    shows_iceberg,
)
from deltalog.errors import (
    CatalogError,
    DeltaError,
    InvalidInputError,
    MalformedMessageError,
    TableExistsError,
    TableNotFoundError,
)
from deltalog.log.context import Committer, MaintenanceOperation, TableContext, utc_context
from deltalog.storage import open_store
from deltalog.storage.options import check_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from deltalog._util.clock import Clock
    from deltalog._util.json import JsonObject
    from deltalog.catalogs.unity.client import PicklesSecrets
    from deltalog.catalogs.unity.messages import LoadedTable
    from deltalog.log.snapshot import Snapshot
    from deltalog.storage.http.client import HttpOptions
    from deltalog.storage.store import Store

_OTHER_FORMAT: Final = "UnsupportedTableFormatException"


@checks_types
@suggests_arguments
class UnityCatalog(OffersTransactions):
    """The tables of a Unity Catalog server. Their names have three parts.

    Tables are read and written with credentials that the catalog lends for the location of a table.
    A location on the local file system is refused by default. If the catalog coordinates the
    commits of a table, deltalog proposes each commit to the catalog, and then publishes it. For
    other tables, deltalog reports changes to the catalog after the commit. Threads may share an
    instance.

    Pickles contain neither tokens nor lent credentials, unless `pickles_secrets` is set. Another
    process reads the token from its own environment.

    Args:
        url: the URL of the server or of its API; None means `UNITY_CATALOG_URL` or
            `DATABRICKS_HOST`.
        token: a bearer token. None means `UNITY_CATALOG_TOKEN` or `DATABRICKS_TOKEN`, if the server
            is the one in the environment.
        client_id: the id of a service principal, which signs in with OAuth instead of a token.
        client_secret: the secret of the service principal.
        token_url: the URL of the endpoint for tokens; None means Databricks' path on the same
            server.
        scope: the OAuth scope of requested tokens.
        catalog: a catalog of the server. The names of tables then have two parts, without the
            catalog.
        storage_options: options for the stores of tables, such as an endpoint or a region. Lent
            credentials are added. If the catalog lends none, only these options are used.
        http_options: options for connections to the server.
        allows_local_files: whether tables may be on the local file system.
        reports_metrics: whether the numbers of files and rows of commits are reported to the
            catalog.
        pickles_secrets: whether pickles contain the token and lent credentials. With `"tasks"`,
            only pickles for tasks of a cluster contain the token; they always contain lent
            credentials.
        maintenance: the operations that clients may run on tables whose commits the catalog
            coordinates: `DATA_REORGANIZATION` (OPTIMIZE, REORG), `DATA_CLEANUP` (VACUUM),
            `METADATA_CLEANUP` (of the log). Used if the server does not list the operations.
        clock: the clock for the expiry of tokens and credentials.
    """

    def __init__(  # noqa: PLR0913
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        client_id: str | None = None,
        client_secret: str | None = None,
        token_url: str | None = None,
        scope: str | None = None,
        catalog: str | None = None,
        storage_options: Mapping[str, Any] | None = None,
        http_options: HttpOptions | None = None,
        allows_local_files: bool = False,
        reports_metrics: bool = True,
        pickles_secrets: PicklesSecrets = False,
        maintenance: Iterable[str] = (),
        clock: Clock | None = None,
    ) -> None:
        settings = unity_settings(
            url,
            token=token,
            client_id=client_id,
            client_secret=client_secret,
            token_url=token_url,
            scope=scope,
        )
        client = UnityClient(settings, http_options, clock=clock, pickles_secrets=pickles_secrets)
        self._api = UnityApi(client, _maintenance(maintenance))
        self._names = UnityNames(client)
        self._catalog = catalog
        check_options(storage_options)
        self._options = storage_options
        self._allows_local = allows_local_files
        self._reports = reports_metrics

    def list_catalogs(self) -> list[str]:
        """Return the names of the server's catalogs, sorted."""
        return self._names.catalogs() if self._catalog is None else [self._catalog]

    def list_schemas(self, within: Name = ()) -> list[Name]:
        """Return the schemas; see `TableCatalog`. Cost: one request per catalog and page."""
        catalogs = self.list_catalogs() if self._catalog or not within else [within[0]]
        found = [(one, schema) for one in catalogs for schema in self._names.schemas(one)]
        names = [self._short(name) for name in found]
        return [name for name in names if name[: len(within)] == tuple(within)]

    def list_tables(self, schema: Name) -> list[Name]:
        """Return the tables of a schema; see `TableCatalog`. Cost: one request per page."""
        full = self._full_schema(schema)
        return [(*schema, table) for table in self._names.tables(*full)]

    def create_schema(
        self,
        schema: Name,
        *,
        comment: str | None = None,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Create a schema; see `KeepsSchemas.create_schema`. Cost: one request."""
        self._names.create(self._full_schema(schema), comment, location, properties)

    def drop_schema(self, schema: Name, *, cascade: bool = False) -> None:
        """Drop a schema; see `KeepsSchemas.drop_schema`. Cost: one request."""
        self._names.drop(self._full_schema(schema), cascade=cascade)

    def create_catalog(
        self,
        catalog: str,
        *,
        comment: str | None = None,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Create a catalog; see `KeepsCatalogs.create_catalog`. Cost: one request."""
        self._names.create((catalog,), comment, location, properties)

    def drop_catalog(self, catalog: str, *, cascade: bool = False) -> None:
        """Drop a catalog; see `KeepsCatalogs.drop_catalog`. Cost: one request."""
        self._names.drop((catalog,), cascade=cascade)

    def find(self, name: Name) -> CatalogTable | None:
        """Return the entry of a table; see `TableCatalog.find`. Cost: one request."""
        full = self._full(name)
        loaded = self._loaded(full)
        if loaded is None:
            return None
        described = loaded if isinstance(loaded, CatalogTable) else loaded.described()
        return replace(described, name=name)

    def open(self, name: Name) -> TableContext:
        """Return the context of a table; see `TableCatalog.open`.

        Cost: one request, and one request for credentials at the first read.
        """
        full = self._full(name)
        loaded = self._loaded(full)
        if loaded is None:
            raise TableNotFoundError(f"cannot open {shown_name(name)}: {self._names.missing(full)}")
        if isinstance(loaded, CatalogTable):
            return self._open_older(full, loaded)
        store = self._store(
            OfTable(self._api, full, loaded.table_id, loaded.location), loaded.location
        )
        committer: Committer
        if loaded.is_catalog_managed:
            coordinator = DeltaCoordinator(self._api, full, loaded.table_id, reports=self._reports)
            committer = UnityCommitter(coordinator, shows_iceberg(loaded.properties))
            return TableContext(
                store=store, time_zone="UTC", committer=committer, log_tail=loaded.tail
            )
        if UPDATE in self._api.endpoints(full[0]) and loaded.table_type is TableType.EXTERNAL:
            committer = FollowedCommitter(UnityTeller(self._api, full, loaded.table_id))
            return TableContext(store=store, time_zone="UTC", committer=committer)
        return utc_context(store)

    def stage(self, name: Name, location: str | None = None) -> StagedTable:
        """Choose the location of a new table; see `TableCatalog.stage`. Cost: two requests."""
        full = self._full(name)
        if self._loaded(full) is not None:
            raise TableExistsError(f"cannot create {shown_name(name)}: the catalog has that table")
        if location is not None:
            check_location(location, allows_local=self._allows_local)
            store = self._store(OfPath(self._api, full[0], location), location)
            return StagedTable(
                name=name,
                context=utc_context(store),
                location=location,
                table_type=TableType.EXTERNAL,
            )
        self._api.require(full, STAGING, f"create managed table {shown_name(name)}")
        staged = self._api.stage(full)
        lender = OfStaging(self._api, full[0], staged.table_id, staged.location)
        return StagedTable(
            name=name,
            context=TableContext(
                store=self._store(lender, staged.location, staged.lent),
                time_zone="UTC",
                committer=StagedCommitter(shown_name(name)),
            ),
            location=staged.location,
            table_type=TableType.MANAGED,
            table_id=staged.table_id,
            features=staged.features,
            properties=staged.properties,
            suggested_properties=staged.suggested_properties,
        )

    def register(self, staged: StagedTable, snapshot: Snapshot) -> CatalogTable:
        """Make a staged table visible; see `TableCatalog.register`. Cost: one request."""
        full = self._full(staged.name)
        if staged.table_type is TableType.MANAGED and snapshot.version != 0:
            raise InvalidInputError(
                f"cannot register {shown_name(staged.name)} at version {snapshot.version}: a "
                "managed table is registered with version 0"
            )
        if self._api.endpoints(full[0]).is_older:
            return older.register(self._api, full, staged, snapshot)
        self._api.require(full, CREATE, f"create table {shown_name(staged.name)}")
        body = creation(staged, snapshot, snapshot.commit_timestamp_ms)
        try:
            made = self._api.create(full, body)
        except CatalogError as error:
            made = self._registered(full, staged, error)
        return replace(made.described(), name=staged.name)

    def synchronize(self, name: Name, snapshot: Snapshot) -> None:
        """Send the table's metadata to the catalog; see `TableCatalog.synchronize`.

        Not needed for a table whose commits the catalog coordinates.
        """
        full = self._full(name)
        loaded = self._loaded(full)
        if loaded is None:
            raise TableNotFoundError(f"there is no table {shown_name(name)} in the catalog")
        if isinstance(loaded, CatalogTable):
            raise InvalidInputError(
                f"cannot synchronize {shown_name(name)}: the catalog's server only has the older "
                "API, which cannot change tables"
            )
        if loaded.table_type is TableType.EXTERNAL:
            UnityTeller(self._api, full, loaded.table_id).synchronize(snapshot)

    def drop(self, name: Name, *, purge: bool = False) -> None:
        """Drop a table; see `TableCatalog.drop`. The server may delete a managed table's files."""
        full = self._full(name)
        known = self.find(name) if purge else None
        if known is not None and known.table_type is not TableType.MANAGED:
            raise InvalidInputError(
                f"cannot purge {shown_name(name)}: the catalog does not own its files"
            )
        try:
            self._api.drop(full)
        except CatalogError as error:
            if error.status != 404:
                raise
            raise TableNotFoundError(
                f"there is no table {shown_name(name)} in the catalog"
            ) from error

    def rename(self, name: Name, new_name: Name) -> None:
        """Rename a table within its schema; see `TableCatalog.rename`."""
        full, new = self._full(name), self._full(new_name)
        if full[:2] != new[:2]:
            raise InvalidInputError(
                f"cannot rename {shown_name(name)} to {shown_name(new_name)}: expected a new name "
                "in the same schema"
            )
        self._api.require(full, RENAME, f"rename {shown_name(name)}")
        before = self._loaded(full)
        try:
            self._api.rename(full, new[2])
        except CatalogError as error:
            if error.status == 409:
                raise TableExistsError(
                    f"cannot rename {shown_name(name)}: the table {shown_name(new_name)} exists"
                ) from error
            if error.status != 404:
                raise
            after = self._loaded(new)  # an earlier attempt may have succeeded
            if before is None or after is None or before.table_id != after.table_id:
                raise TableNotFoundError(
                    f"there is no table {shown_name(name)} in the catalog"
                ) from error

    def relocate(self, name: Name, location: str) -> None:
        """Always raises InvalidInputError, because the API cannot change locations."""
        del location
        raise InvalidInputError(
            f"cannot relocate {shown_name(name)}: a Unity Catalog cannot change a table's "
            "location; drop it and create an external one"
        )

    def publish(self, name: Name) -> int | None:
        """Publish the ratified commits of a table; return the last version, None if it is unknown.

        Every writer publishes after its own commit. Call this method if writers were interrupted.

        Raises:
            InvalidInputError: the catalog does not coordinate the table's commits.
        """
        context = self.open(name)
        if not isinstance(context.committer, UnityCommitter):
            raise InvalidInputError(
                f"cannot publish commits of {shown_name(name)}: its catalog does not ratify them"
            )
        return context.committer.publish(context.store)

    def __repr__(self) -> str:
        within = "" if self._catalog is None else f", catalog={self._catalog!r}"
        return f"UnityCatalog({self._api.client.settings.url!r}{within})"

    def _full(self, name: Name) -> Name:
        check_parts(name, 2 if self._catalog else 3, "a table of a Unity Catalog")
        return (self._catalog, *name) if self._catalog else name

    def _full_schema(self, schema: Name) -> Name:
        check_parts(schema, 1 if self._catalog else 2, "a schema of a Unity Catalog")
        return (self._catalog, *schema) if self._catalog else schema

    def _short(self, name: Name) -> Name:
        return name[1:] if self._catalog else name

    def _loaded(self, full: Name) -> LoadedTable | CatalogTable | None:
        """Return the entry of a table, through the older API if the server has no other API."""
        try:
            if self._api.endpoints(full[0]).is_older:
                return older.find(self._api, full)
            return self._api.load(full)
        except CatalogError as error:
            if error.error_code == _OTHER_FORMAT:
                return older.find(self._api, full)
            if error.status == 404:
                return None
            raise

    def _open_older(self, full: Name, table: CatalogTable) -> TableContext:
        if table.provider != "delta":
            raise InvalidInputError(
                f"cannot open {shown_name(full)}: its format is {table.provider}, not Delta"
            )
        table_id = table.table_id or ""
        store = self._store(OfTable(self._api, full, table_id, table.location), table.location)
        coordinator = older.coordinator(self._api, full, table)
        if coordinator is None:
            return utc_context(store)
        committer = UnityCommitter(coordinator)
        return TableContext(
            store=store, time_zone="UTC", committer=committer, log_tail=coordinator.tail()
        )

    def _store(
        self, lender: UnityLender, location: str, lent: Sequence[LentCredential] = ()
    ) -> Store:
        check_location(location, allows_local=self._allows_local)
        options = LentOptions(lender, location, self._options)
        if lent:
            options.take(lent)
        return open_store(decode_location(location), options)

    def _registered(self, full: Name, staged: StagedTable, error: CatalogError) -> LoadedTable:
        """Return a table's entry if an earlier attempt, whose answer was lost, registered it.

        Raises:
            TableExistsError: another table has the name.
            CatalogError: the catalog refused the table for another reason.
        """
        found = self._loaded(full) if error.status in {None, 404, 409, 500} else None
        if found is not None and not isinstance(found, CatalogTable):
            is_ours = (
                found.table_id == staged.table_id
                if staged.table_id is not None
                else found.location.rstrip("/") == staged.location.rstrip("/")
            )
            if is_ours:
                return found
        if found is not None or error.status == 409:
            raise TableExistsError(
                f"cannot register {shown_name(staged.name)}: the catalog has another table of that "
                f"name; the files at {staged.context.store.root} are not deleted"
            ) from error
        raise error


def _maintenance(names: Iterable[str]) -> frozenset[MaintenanceOperation]:
    known = {one.value: one for one in MaintenanceOperation}
    given = [names] if isinstance(names, str) else list(names)
    if wrong := [name for name in given if name not in known]:
        raise InvalidInputError(
            f"maintenance: expected some of {', '.join(known)}, found {wrong[0]!r}"
        )
    return frozenset(known[name] for name in given)


# --- the catalogs, schemas and tables of a server, by name


_MOST_PAGES: Final = 100_000
_MAY_EXIST: Final = frozenset({400, 409, 500})


@dataclass(frozen=True, slots=True)
class UnityNames:
    """Lists, creates and drops the catalogs and schemas of a server."""

    client: UnityClient

    def catalogs(self) -> list[str]:
        """Return the names of all catalogs."""
        return sorted(self._listed("list the catalogs", "/catalogs", {}, "catalogs"))

    def schemas(self, catalog: str) -> list[str]:
        """Return the names of a catalog's schemas."""
        what = f"list the schemas of {shown_name((catalog,))}"
        return sorted(self._listed(what, "/schemas", {"catalog_name": catalog}, "schemas"))

    def tables(self, catalog: str, schema: str) -> list[str]:
        """Return the names of a schema's tables."""
        what = f"list the tables of {shown_name((catalog, schema))}"
        query = {"catalog_name": catalog, "schema_name": schema}
        return sorted(self._listed(what, "/tables", query, "tables"))

    def has(self, name: Name) -> bool:
        """Return whether a catalog (a name of one part) or a schema (of two parts) exists."""
        what = f"load {_kind(name)} {shown_name(name)}"
        try:
            self.client.send(Question(what=what, method="GET", path=_path(name)))
        except CatalogError as error:
            if error.status != 404:
                raise
            return False
        return True

    def missing(self, table: Name) -> str:
        """Return a phrase: which part of a missing table's name does not exist on the server."""
        for kind, part in (("catalog", table[:1]), ("schema", table[:2])):
            with suppress(DeltaError):  # these requests only make an error clearer
                if not self.has(part):
                    return f"there is no {kind} {shown_name(part)} at {self.client.settings.url}"
        url = self.client.settings.url
        return f"there is no table {shown_name(table)} in the catalog at {url}"

    def create(
        self,
        name: Name,
        comment: str | None,
        location: str | None,
        properties: Mapping[str, str] | None,
    ) -> None:
        """Create a catalog (a name of one part) or a schema (of two parts).

        Raises:
            CatalogError: the catalog or schema exists (status 409).
        """
        body: dict[str, Any] = {"name": name[-1]}
        if len(name) > 1:
            body["catalog_name"] = name[0]
        more = {"comment": comment, "storage_root": location, "properties": properties}
        body |= {key: value for key, value in more.items() if value}
        kind, path = _kind(name), "/catalogs" if len(name) == 1 else "/schemas"
        what = f"create {kind} {shown_name(name)}"
        try:
            self.client.send(Question(what=what, method="POST", path=path, body=body))
        except CatalogError as error:
            # If the name exists, the status of the answer depends on the server.
            if error.status not in _MAY_EXIST or not self.has(name):
                raise
            raise CatalogError(f"cannot {what}: it exists", status=409) from error

    def drop(self, name: Name, *, cascade: bool) -> None:
        """Drop a catalog or a schema. With `cascade`, its contents are dropped, too."""
        question = Question(
            what=f"drop {_kind(name)} {shown_name(name)}",
            method="DELETE",
            path=_path(name),
            query={"force": "true"} if cascade else None,
        )
        self.client.send(question)

    def _listed(self, what: str, path: str, query: Mapping[str, str], member: str) -> list[str]:
        return [name for page in self._pages(what, path, query, member) for name in page]

    def _pages(
        self, what: str, path: str, query: Mapping[str, str], member: str
    ) -> Iterator[list[str]]:
        token, seen = "", set[str]()
        for _ in range(_MOST_PAGES):
            more = {"page_token": token} if token else {}
            question = Question(what=what, method="GET", path=path, query={**query, **more})
            names, token = self.client.ask(question, lambda node: _parse_page(node, member))
            yield names
            if not token:
                return
            if token in seen:
                break
            seen.add(token)
        raise CatalogError(f"cannot {what}: the pages of the listing do not end")


def _kind(name: Name) -> str:
    return "catalog" if len(name) == 1 else "schema"


def _path(name: Name) -> str:
    """Return the path of a catalog or a schema."""
    if len(name) == 1:
        return path_of("/catalogs/{name}", name=name[0])
    for part in name:
        # In the path of a request, a dot separates the parts of a name. So a name with a dot would
        # mean another schema.
        if "." in part:
            raise InvalidInputError(
                f"cannot request {part!r} from the server: it does not support names with a dot"
            )
    return path_of("/schemas/{name}", name=".".join(name))


def _parse_page(node: JsonObject, member: str) -> tuple[list[str], str]:
    listed = node.values.get(member) or ()
    if not isinstance(listed, list | tuple):
        raise MalformedMessageError(
            f"{node.where}.{member}: expected a list, found {type(listed).__name__}"
        )
    names = []
    for index, one in enumerate(listed):
        where = f"{node.where}.{member}[{index}]"
        names.append(type(node)(one, where, node.error).required("name", str))
    return names, node.optional("next_page_token", str) or ""
