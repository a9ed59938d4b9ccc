"""The endpoints of Unity Catalog's Delta API, and of the older API for servers without it.

This module knows the paths, parameters and bodies. `catalog` and `committer` call its methods.

Protocol: UC Delta API (delta.yaml); Unity Catalog API (all.yaml)
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from deltalog.catalogs.protocol import Name, shown_name
from deltalog.catalogs.unity.client import Question, UnityClient, path_of
from deltalog.catalogs.unity.messages import (
    LoadedTable,
    StagingAnswer,
    lent_credential,
    parse_credentials,
    parse_loaded,
    parse_staging,
)
from deltalog.errors import (
    CatalogAccessError,
    CatalogError,
    InvalidInputError,
    MalformedMessageError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from deltalog._util.clock import Clock
    from deltalog._util.json import JsonObject
    from deltalog.catalogs.locations import LentCredential
    from deltalog.log.context import MaintenanceOperation

T = TypeVar("T")

_VERSIONS: Final = "1.0"
_TABLES: Final = "/v1/catalogs/{catalog}/schemas/{schema}/tables"
_TABLE: Final = f"{_TABLES}/{{table}}"
STAGING: Final = "POST /v1/catalogs/{catalog}/schemas/{schema}/staging-tables"
CREATE: Final = f"POST {_TABLES}"
LOAD: Final = f"GET {_TABLE}"
UPDATE: Final = f"POST {_TABLE}"
DELETE: Final = f"DELETE {_TABLE}"
RENAME: Final = f"POST {_TABLE}/rename"
CREDENTIALS: Final = f"GET {_TABLE}/credentials"
METRICS: Final = f"POST {_TABLE}/metrics"
STAGING_CREDENTIALS: Final = "GET /v1/staging-tables/{table_id}/credentials"
PATH_CREDENTIALS: Final = "GET /v1/temporary-path-credentials"
_NO_ROUTE: Final = frozenset({404, 405, 501})
_NO_SUCH: Final = "NoSuch"
_READ_WRITE: Final = "READ_WRITE"
_READ: Final = "READ"


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The endpoints of the Delta API that a server supports; empty if it has only the older API."""

    names: frozenset[str] = frozenset()

    def __contains__(self, endpoint: str) -> bool:
        return endpoint in self.names

    @property
    def is_older(self) -> bool:
        """Whether tables must be loaded through the older API."""
        return LOAD not in self.names


@dataclass(slots=True)
class UnityApi:
    """The endpoints of a Unity Catalog as methods. The name of a table has three parts."""

    client: UnityClient
    maintenance: frozenset[MaintenanceOperation] = frozenset()
    _known: dict[str, Endpoints] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def endpoints(self, catalog: str) -> Endpoints:
        """Return the endpoints that the server supports for a catalog, requested only once.

        Raises:
            CatalogError: the catalog does not exist.
        """
        with self._lock:
            known = self._known.get(catalog)
        if known is not None:
            return known
        question = Question(
            what=f"get the configuration of catalog {catalog!r}",
            method="GET",
            path="/delta/v1/config",
            query={"catalog": catalog, "protocol-versions": _VERSIONS},
        )
        try:
            found = self.client.ask(question, _parse_config)
        except CatalogError as error:
            # An older server lacks this path. Its error has another form than an error of the Delta
            # API.
            if error.status not in _NO_ROUTE or error.error_code == "NoSuchCatalogException":
                raise
            found = Endpoints()
        with self._lock:
            self._known[catalog] = found
        return found

    def require(self, name: Name, endpoint: str, what: str) -> None:
        """Refuse an operation if the server does not support the endpoint for it.

        Raises:
            InvalidInputError: the server does not support the endpoint.
        """
        if endpoint not in self.endpoints(name[0]):
            raise InvalidInputError(f"cannot {what}: the catalog's server does not support it")

    def load(self, name: Name) -> LoadedTable:
        """Return the entry of a table."""
        return self._table("load", "GET", name, "", self._parser(name))

    def update(
        self,
        name: Name,
        table_id: str,
        updates: Sequence[Mapping[str, Any]],
        *,
        etag: str | None = None,
        what: str = "update",
    ) -> LoadedTable:
        """Change the entry of a table. One of the updates may be a commit.

        Args:
            name: the name of the table.
            table_id: the id that the table must have. Otherwise another table with the same name
                could be changed.
            updates: the updates, at most one of each kind.
            etag: the etag that the entry must have; None accepts any etag.
            what: the attempted operation, for errors.
        """
        requirements: list[dict[str, Any]] = [{"type": "assert-table-uuid", "uuid": table_id}]
        if etag is not None:
            requirements.append({"type": "assert-etag", "etag": etag})
        body = {"requirements": requirements, "updates": list(updates)}
        return self._table(what, "POST", name, "", self._parser(name), body)

    def stage(self, name: Name) -> StagingAnswer:
        """Request the location of a new managed table."""
        question = Question(
            what=f"stage table {shown_name(name)}",
            method="POST",
            path=path_of(
                "/delta/v1/catalogs/{catalog}/schemas/{schema}/staging-tables",
                catalog=name[0],
                schema=name[1],
            ),
            body={"name": name[2]},
        )
        return self.client.ask(question, parse_staging)

    def create(self, name: Name, body: Mapping[str, Any]) -> LoadedTable:
        """Register a table, so that it is visible."""
        question = Question(
            what=f"create table {shown_name(name)}",
            method="POST",
            path=path_of(
                "/delta/v1/catalogs/{catalog}/schemas/{schema}/tables",
                catalog=name[0],
                schema=name[1],
            ),
            body={"name": name[2], **body},
        )
        return self.client.ask(question, self._parser(name))

    def drop(self, name: Name) -> None:
        """Drop a table from the catalog."""
        if DELETE in self.endpoints(name[0]):
            self.client.send(_of_table("drop", "DELETE", name))
        else:
            self.client.send(
                Question(
                    what=f"drop table {shown_name(name)}", method="DELETE", path=_older_path(name)
                )
            )

    def rename(self, name: Name, new_name: str) -> None:
        """Rename a table within its schema."""
        self.client.send(_of_table("rename", "POST", name, "/rename", {"new-name": new_name}))

    def report(self, name: Name, table_id: str, counts: Mapping[str, int]) -> Question:
        """Return a request that reports the numbers of files and rows of a commit."""
        body = {"table-id": table_id, "report": {"commit-report": dict(counts)}}
        return _of_table("report a commit to", "POST", name, "/metrics", body)

    def lend_for_table(
        self, name: Name, table_id: str, location: str
    ) -> tuple[LentCredential, ...]:
        """Request credentials for the files of a table: to write if possible, else to read."""

        def ask_older() -> tuple[LentCredential, ...]:
            path = "/temporary-table-credentials"
            return self._older_lent(shown_name(name), path, {"table_id": table_id}, location)

        def ask(operation: str) -> tuple[LentCredential, ...]:
            question = _of_table(
                "get credentials for", "GET", name, "/credentials", query={"operation": operation}
            )
            return self.client.ask(question, parse_credentials)

        return self._lent(name[0], CREDENTIALS, lambda: _widest(ask), ask_older)

    def lend_for_staging(
        self, catalog: str, table_id: str, location: str
    ) -> tuple[LentCredential, ...]:
        """Request credentials for the files of a staged table."""
        what = f"staged table {table_id}"

        def ask_older() -> tuple[LentCredential, ...]:
            path = "/temporary-table-credentials"
            return self._older_lent(what, path, {"table_id": table_id}, location)

        question = Question(
            what=f"get credentials for {what}",
            method="GET",
            path=path_of("/delta/v1/staging-tables/{id}/credentials", id=table_id),
        )

        def ask() -> tuple[LentCredential, ...]:
            return self.client.ask(question, parse_credentials)

        return self._lent(catalog, STAGING_CREDENTIALS, ask, ask_older)

    def lend_for_path(self, catalog: str, location: str) -> tuple[LentCredential, ...]:
        """Request credentials for the location of a new external table."""

        def ask_older() -> tuple[LentCredential, ...]:
            path = "/temporary-path-credentials"
            return self._older_lent("a new table", path, {"url": location}, location, "PATH_")

        def ask(operation: str) -> tuple[LentCredential, ...]:
            question = Question(
                what="get credentials for a new table",
                method="GET",
                path="/delta/v1/temporary-path-credentials",
                query={"location": location, "operation": operation},
            )
            return self.client.ask(question, parse_credentials)

        return self._lent(catalog, PATH_CREDENTIALS, lambda: _widest(ask), ask_older)

    def _lent(
        self,
        catalog: str,
        endpoint: str,
        ask: Callable[[], tuple[LentCredential, ...]],
        ask_older: Callable[[], tuple[LentCredential, ...]],
    ) -> tuple[LentCredential, ...]:
        """Request credentials from an endpoint of the Delta API, or else of the older API.

        Some servers announce an endpoint that does not exist. It is then requested only once.
        """
        known = self.endpoints(catalog)
        if endpoint not in known:
            return ask_older()
        try:
            return ask()
        except CatalogError as error:
            is_typed = (error.error_code or "").startswith(_NO_SUCH)
            if error.status not in _NO_ROUTE or is_typed:
                raise
        found = ask_older()
        with self._lock:
            self._known[catalog] = Endpoints(self._known[catalog].names - {endpoint})
        return found

    # --- endpoints of the older API, for servers without the Delta API

    def older_table(self, name: Name) -> JsonObject:
        """Return the entry of a table, through the older API."""
        what = f"load table {shown_name(name)}"
        question = Question(what=what, method="GET", path=_older_path(name))
        return self.client.ask(question, lambda node: node)

    def older_create(self, body: Mapping[str, Any], name: Name) -> JsonObject:
        """Register an external table through the older API."""
        what = f"create table {shown_name(name)}"
        question = Question(what=what, method="POST", path="/tables", body=body)
        return self.client.ask(question, lambda node: node)

    def older_commits(self, table_id: str, location: str, name: Name) -> JsonObject:
        """Return the ratified commits of a table, through the older API."""
        body = {"table_id": table_id, "table_uri": location, "start_version": 0}
        question = Question(
            what=f"get the commits of {shown_name(name)}",
            method="GET",
            path="/delta/preview/commits",
            body=body,
        )
        return self.client.ask(question, lambda node: node)

    def older_commit(self, body: Mapping[str, Any], name: Name) -> None:
        """Propose a commit, or report published versions, through the older API."""
        question = Question(
            what=f"commit to {shown_name(name)}",
            method="POST",
            path="/delta/preview/commits",
            body=body,
            waits=False,  # here, status 429 means that commits must be published first
        )
        self.client.send(question)

    def _older_lent(
        self, what: str, path: str, body: Mapping[str, Any], location: str, prefix: str = ""
    ) -> tuple[LentCredential, ...]:
        def ask(operation: str) -> tuple[LentCredential, ...]:
            question = Question(
                what=f"get credentials for {what}",
                method="POST",
                path=path,
                body={**body, "operation": f"{prefix}{operation}"},
            )
            return self.client.ask(question, lambda node: _older_credentials(node, location))

        return _widest(ask)

    def _parser(self, name: Name) -> Callable[[JsonObject], LoadedTable]:
        return lambda node: parse_loaded(node, name, self.maintenance)

    def _table(
        self,
        what: str,
        method: str,
        name: Name,
        ending: str,
        parse: Callable[[JsonObject], T],
        body: Mapping[str, Any] | None = None,
    ) -> T:
        return self.client.ask(_of_table(what, method, name, ending, body), parse)

    def __getstate__(self) -> dict[str, Any]:
        return {
            "client": self.client,
            "maintenance": self.maintenance,
            "_known": dict(self._known),
        }

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.client, self._known = state["client"], state["_known"]
        self.maintenance = state["maintenance"]
        self._lock = threading.Lock()


def _of_table(
    what: str,
    method: str,
    name: Name,
    ending: str = "",
    body: Mapping[str, Any] | None = None,
    query: Mapping[str, str] | None = None,
) -> Question:
    path = path_of(
        "/delta/v1/catalogs/{catalog}/schemas/{schema}/tables/{table}",
        catalog=name[0],
        schema=name[1],
        table=name[2],
    )
    return Question(
        what=f"{what} table {shown_name(name)}",
        method=method,
        path=path + ending,
        query=query,
        body=body,
    )


def _older_path(name: Name) -> str:
    for part in name:
        # In the path of a request, a dot separates the parts of a name. So a name with a dot would
        # mean another table.
        if "." in part:
            raise InvalidInputError(
                f"cannot request {part!r} from an older server: names with a dot are not possible"
            )
    return path_of("/tables/{name}", name=".".join(name))


def _widest(ask: Callable[[str], tuple[LentCredential, ...]]) -> tuple[LentCredential, ...]:
    """Request credentials to write; if the catalog refuses, request credentials to read."""
    try:
        return ask(_READ_WRITE)
    except CatalogAccessError as error:
        if error.status != 403:
            raise
    return ask(_READ)


def _parse_config(node: JsonObject) -> Endpoints:
    names = node.texts("endpoints")
    if names is None:
        raise MalformedMessageError(f"{node.where}.endpoints: required list is missing")
    return Endpoints(frozenset(names))


def _older_credentials(node: JsonObject, location: str) -> tuple[LentCredential, ...]:
    """Return the older API's credentials, with their fields renamed as in the Delta API."""
    config: dict[str, object] = {}
    for member, prefix, names in _OLDER_CREDENTIALS:
        held = node.values.get(member)
        if isinstance(held, dict):
            config |= {f"{prefix}{name.replace('_', '-')}": held.get(name) for name in names}
    expires = node.values.get("expiration_time")
    url = node.values.get("url")
    found = lent_credential(
        url if isinstance(url, str) and url else location,
        config,
        expires if type(expires) is int else None,
    )
    return () if found is None else (found,)


_OLDER_CREDENTIALS: Final = (
    ("aws_temp_credentials", "s3.", ("access_key_id", "secret_access_key", "session_token")),
    ("azure_user_delegation_sas", "azure.", ("sas_token",)),
    ("gcp_oauth_token", "gcs.", ("oauth_token",)),
)


# --- sources of credentials from a Unity Catalog: for a table, a staged table, or a location


@dataclass(frozen=True, slots=True)
class UnityLender(ABC):
    """Base class of the lenders for tables, staged tables and locations."""

    api: UnityApi

    @property
    def clock(self) -> Clock:
        """The clock of the client; see `Lender.clock`."""
        return self.api.client.clock

    @property
    def pickles_secrets(self) -> bool:
        """Whether pickles may contain credentials; see `Lender.pickles_secrets`."""
        return self.api.client.pickles_secrets

    @abstractmethod
    def lend(self) -> Sequence[LentCredential]:
        """Return new credentials; see `Lender.lend`."""


@dataclass(frozen=True, slots=True)
class OfTable(UnityLender):
    """Lender of credentials for a table of the catalog."""

    name: Name
    table_id: str
    location: str

    def lend(self) -> Sequence[LentCredential]:
        """Request credentials for the table; see `Lender.lend`."""
        return self.api.lend_for_table(self.name, self.table_id, self.location)


@dataclass(frozen=True, slots=True)
class OfStaging(UnityLender):
    """Lender of credentials for a staged table, which is not registered yet."""

    catalog: str
    table_id: str
    location: str

    def lend(self) -> Sequence[LentCredential]:
        """Request credentials for the staged table; see `Lender.lend`."""
        return self.api.lend_for_staging(self.catalog, self.table_id, self.location)


@dataclass(frozen=True, slots=True)
class OfPath(UnityLender):
    """Lender of credentials for the location of a new external table."""

    catalog: str
    location: str

    def lend(self) -> Sequence[LentCredential]:
        """Request credentials for the location; see `Lender.lend`."""
        return self.api.lend_for_path(self.catalog, self.location)
