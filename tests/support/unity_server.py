"""A Unity Catalog server made from its documents: real HTTP on loopback, and what may go wrong.

Every request and every answer is checked against the documents; what they do not allow fails the
test, even where the client lives with it. What the documents say in prose (versions without gaps,
repeated proposals, how many commits may wait) is done by `_Tables`.
"""

from __future__ import annotations

import asyncio
import json
import queue
import threading
import time
import uuid
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from aiohttp import web

from tests.support.openapi import ContractError, Operation, contracts

PREFIX = "/api/2.1/unity-catalog"
TOKEN = "a-token-of-this-server"  # noqa: S105
REQUIRED_PROPERTIES = {
    "delta.checkpointPolicy": "v2",
    "delta.enableDeletionVectors": "true",
    "delta.enableInCommitTimestamps": "true",
    "delta.checkpoint.writeStatsAsStruct": "true",
    "delta.checkpoint.writeStatsAsJson": "true",
}
READER_FEATURES = ["catalogManaged", "deletionVectors", "v2Checkpoint", "vacuumProtocolCheck"]
WRITER_FEATURES = [*READER_FEATURES, "inCommitTimestamp"]


class RefusalError(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, kind: str, message: str = "refused") -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Mishap:
    """What happens to one request.

    Args:
        status: that is answered instead of doing it; 0 does it.
        is_done: the request is carried out although `status` is answered.
        kind: the error's type.
        is_lost: the request is carried out, and the connection is cut before the answer.
        headers: of the answer.
        before: is called when the request is there.
        raw: is answered as it is, whatever was asked.
    """

    status: int = 0
    kind: str = "InternalServerErrorException"
    is_done: bool = False
    is_lost: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    before: Callable[[], None] | None = None
    raw: bytes | None = None


@dataclass(slots=True, kw_only=True)
class Entry:
    """A table of the server."""

    table_id: str
    location: str
    table_type: str
    columns: dict[str, Any]
    properties: dict[str, str]
    protocol: dict[str, Any]
    partition_columns: list[str] = field(default_factory=list)
    comment: str | None = None
    provider: str = "DELTA"
    domains: dict[str, Any] = field(default_factory=dict)
    changes: int = 0
    commits: dict[int, dict[str, Any]] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    latest: int = 0
    published: int = 0
    last_changed: int = 0
    last_time_ms: int = 0

    @property
    def etag(self) -> str:
        return f"etag-{self.changes}"

    def shown_properties(self) -> dict[str, str]:
        """The stored properties and those that the server derives."""
        found = dict(self.properties)
        for name in (
            *self.protocol.get("reader-features", ()),
            *self.protocol.get("writer-features", ()),
        ):
            found[f"delta.feature.{name}"] = "supported"
        found["delta.minReaderVersion"] = str(self.protocol["min-reader-version"])
        found["delta.minWriterVersion"] = str(self.protocol["min-writer-version"])
        found["delta.lastUpdateVersion"] = str(self.last_changed)
        found["delta.lastCommitTimestamp"] = str(self.last_time_ms)
        if clustering := self.domains.get("delta.clustering"):
            found["delta.clusteringColumns"] = json.dumps(clustering["clusteringColumns"])
        return found


class UnityServer:
    """A server in a thread of its own.

    Attributes:
        tables: by catalog, schema and name.
        mishaps: by operation, in the order in which they happen.
        violations: what the documents do not allow; a test with one fails.
        asked: the operations that were asked for.
        most_unpublished: commits that may wait to be published.
        keeps_published: whether it lists commits although they are published: it is late.
        lend: the configuration and the prefix of credentials for a location.
        lifetime_ms: of credentials.
        has_delta_api: whether it has more than the older API.
        lacks: operations of the Delta API that it announces and does not have.
        allowed: maintenance operations that it allows clients; None does not say.
    """

    def __init__(self, folder: Path, warehouse: str) -> None:
        self._contracts = contracts(folder)
        self.warehouse = warehouse.rstrip("/")
        self.schemas = {("main", "sales"), ("main", "other")}
        self.empty_catalogs: set[str] = set()
        self.uniform: list[dict[str, Any]] = []
        self.updates: list[Any] = []
        self.made: dict[tuple[str, ...], Any] = {}
        self.taken_status = 409
        self.tables: dict[tuple[str, str, str], Entry] = {}
        self.staged: dict[str, tuple[tuple[str, str, str], str]] = {}
        self.mishaps: defaultdict[str, deque[Mishap]] = defaultdict(deque)
        self.violations: list[str] = []
        self.asked: list[str] = []
        self.reports: queue.Queue[dict[str, Any]] = queue.Queue()
        self.most_unpublished = 50
        self.keeps_published = False
        self.page_size = 2
        self.lend: Callable[[str], list[tuple[str, dict[str, str]]]] = lambda _: []
        self.lifetime_ms = 3_600_000
        self.now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
        self.has_delta_api = True
        self.lacks: set[str] = set()
        self.allowed: list[str] | None = None
        self.endpoints: list[str] | None = None
        self.token = TOKEN
        self.oauth: dict[str, str] = {}
        self.is_read_only = False
        self._started = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        self._started.wait()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def catalogs(self) -> set[str]:
        """The catalogs, those without schemas too."""
        return {catalog for catalog, _ in self.schemas} | self.empty_catalogs

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        application = web.Application(client_max_size=64 << 20)
        application.router.add_post("/oidc/v1/token", self._token)
        application.router.add_route("*", "/{rest:.*}", self._answer)
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        self._loop.run_until_complete(runner.setup())
        site = web.TCPSite(runner, "127.0.0.1", 0)
        self._loop.run_until_complete(site.start())
        self._port = runner.addresses[0][1]
        self._started.set()
        self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())

    async def _token(self, request: web.Request) -> web.Response:
        login = request.headers.get("Authorization", "")
        form = await request.post()
        if login not in self.oauth or form.get("grant_type") != "client_credentials":
            return web.json_response({"error": "invalid_client"}, status=401)
        self.asked.append("token")
        return web.json_response(
            {"access_token": self.oauth[login], "token_type": "Bearer", "expires_in": 3600}
        )

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        path = request.rel_url.raw_path.removeprefix(PREFIX)
        operation = self._find(request.method, path)
        if operation is None or operation.name in self.lacks:
            return web.json_response({"error_code": "NOT_FOUND", "message": path}, status=404)
        self.asked.append(operation.name)
        mishaps = self.mishaps[operation.name]
        mishap = mishaps.popleft() if mishaps else Mishap()
        if mishap.before is not None:
            await asyncio.to_thread(mishap.before)
        if mishap.raw is not None:
            return web.Response(
                body=mishap.raw, status=mishap.status or 200, headers=mishap.headers
            )
        try:
            self._check(request, mishap)
            value = operation.check_request(dict(request.query), body)
            names = {key: unquote(text) for key, text in operation.path.items()}
            status, answer = self._do(operation, names, dict(request.query), value)
            _check_done(mishap)
        except RefusalError as refusal:
            status, answer = refusal.status, self._error(operation, refusal)
        except ContractError as error:
            self.violations.append(str(error))
            status, answer = 400, {"error": str(error)}
            return web.json_response(answer, status=status)
        try:
            operation.check_answer(status, answer)
        except ContractError as error:
            self.violations.append(str(error))
        if mishap.is_lost:
            assert request.transport is not None
            request.transport.abort()
        if answer is None:
            return web.Response(status=status, headers=mishap.headers)
        return web.json_response(answer, status=status, headers=mishap.headers)

    def _check(self, request: web.Request, mishap: Mishap) -> None:
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            raise RefusalError(401, "NotAuthorizedException", "the token is not known")
        if mishap.status and not mishap.is_done:
            raise RefusalError(mishap.status, mishap.kind, f"mishap with {self.token}")

    def _find(self, method: str, path: str) -> Operation | None:
        delta, older = self._contracts
        found = delta.find(method, path) if self.has_delta_api else None
        return found or older.find(method, path)

    def _error(self, operation: Operation, refusal: RefusalError) -> dict[str, Any]:
        if operation.contract is self._contracts[0]:
            error = {"message": refusal.message, "type": refusal.kind, "code": refusal.status}
            return {"error": error}
        codes = {404: "NOT_FOUND", 409: "ALREADY_EXISTS", 429: "RESOURCE_EXHAUSTED"}
        code = codes.get(refusal.status, "INTERNAL")
        return {"error_code": code, "message": refusal.message}

    def _do(
        self, operation: Operation, path: dict[str, str], query: dict[str, str], value: Any
    ) -> tuple[int, Any]:
        is_delta = operation.contract is self._contracts[0]
        handler: Callable[..., tuple[int, Any]] | None = getattr(
            self, f"_{'delta' if is_delta else 'older'}_{operation.name}", None
        )
        if handler is None:
            raise RefusalError(501, "NotImplementedException")
        return handler(path=path, query=query, value=value)

    # --- the Delta API

    def _delta_getConfig(self, query: dict[str, str], **_: Any) -> tuple[int, Any]:  # noqa: N802
        if query["catalog"] not in self.catalogs:
            raise RefusalError(404, "NoSuchCatalogException", "no such catalog")
        assert "1.0" in query["protocol-versions"].split(",")
        return 200, {"endpoints": self.endpoints or ENDPOINTS, "protocol-version": "1.0"}

    def _delta_loadTable(self, path: dict[str, str], **_: Any) -> tuple[int, Any]:  # noqa: N802
        entry = self._entry(path)
        if entry.provider != "DELTA":
            raise RefusalError(400, "UnsupportedTableFormatException")
        return 200, self._shown(entry)

    def _delta_tableExists(self, path: dict[str, str], **_: Any) -> tuple[int, Any]:  # noqa: N802
        self._entry(path)
        return 204, None

    def _delta_deleteTable(self, path: dict[str, str], **_: Any) -> tuple[int, Any]:  # noqa: N802
        self._entry(path)
        del self.tables[_key(path)]
        return 204, None

    def _delta_renameTable(  # noqa: N802
        self, path: dict[str, str], value: Any, **_: Any
    ) -> tuple[int, Any]:
        entry, old = self._entry(path), _key(path)
        new = (old[0], old[1], value["new-name"])
        if new in self.tables:
            raise RefusalError(409, "AlreadyExistsException")
        self.tables[new] = entry
        del self.tables[old]
        return 204, None

    def _delta_createStagingTable(  # noqa: N802
        self, path: dict[str, str], value: Any, **_: Any
    ) -> tuple[int, Any]:
        self._schema(path)
        key = (path["catalog"], path["schema"], value["name"])
        if key in self.tables:
            raise RefusalError(409, "AlreadyExistsException")
        table_id = str(uuid.uuid4())
        location = f"{self.warehouse}/tables/{table_id}"
        self.staged[table_id] = (key, location)
        return 200, {
            "table-id": table_id,
            "table-type": "MANAGED",
            "location": location,
            "storage-credentials": self._lent(location),
            "required-protocol": {
                "min-reader-version": 3,
                "min-writer-version": 7,
                "reader-features": READER_FEATURES,
                "writer-features": WRITER_FEATURES,
            },
            "suggested-protocol": {
                "reader-features": ["columnMapping"],
                "writer-features": ["columnMapping", "domainMetadata", "rowTracking"],
            },
            "required-properties": {**REQUIRED_PROPERTIES, "io.unitycatalog.tableId": table_id},
            "suggested-properties": {
                "delta.columnMapping.mode": "name",
                "delta.columnMapping.maxColumnId": None,
                "delta.enableRowTracking": "true",
                "delta.rowTracking.materializedRowIdColumnName": None,
                "delta.rowTracking.materializedRowCommitVersionColumnName": None,
                "delta.randomizeFilePrefixes": "true",
                "delta.parquet.compression.codec": "zstd",
            },
        }

    def _delta_createTable(  # noqa: N802
        self, path: dict[str, str], value: Any, **_: Any
    ) -> tuple[int, Any]:
        self._schema(path)
        key = (path["catalog"], path["schema"], value["name"])
        table_id = str(uuid.uuid4())
        if value["table-type"] == "MANAGED":
            table_id = value["properties"].get("io.unitycatalog.tableId", "")
            if self.staged.get(table_id) != (key, value["location"]):
                raise RefusalError(404, "NoSuchTableException", "no such staging table")
            self._check_managed(value)
        if key in self.tables:
            raise RefusalError(409, "AlreadyExistsException")
        self._check_uniform(value["properties"], value.get("uniform"))
        self.staged.pop(table_id, None)
        entry = Entry(
            table_id=table_id,
            location=value["location"],
            table_type=value["table-type"],
            columns=value["columns"],
            properties=value["properties"],
            protocol=value["protocol"],
            partition_columns=value.get("partition-columns", []),
            comment=value.get("comment"),
            domains=value.get("domain-metadata", {}),
            last_time_ms=value["last-commit-timestamp-ms"],
        )
        self.tables[key] = entry
        return 200, self._shown(entry)

    def _check_managed(self, value: Any) -> None:
        protocol = value["protocol"]
        missing = [
            *(name for name in READER_FEATURES if name not in protocol["reader-features"]),
            *(name for name in WRITER_FEATURES if name not in protocol["writer-features"]),
            *(
                key
                for key, text in REQUIRED_PROPERTIES.items()
                if value["properties"].get(key) != text
            ),
        ]
        if missing:
            raise RefusalError(400, "InvalidParameterValueException", f"missing: {missing}")

    def _delta_updateTable(  # noqa: N802
        self, path: dict[str, str], value: Any, **_: Any
    ) -> tuple[int, Any]:
        entry = self._entry(path)
        requirements = {one["type"]: one for one in value["requirements"]}
        updates = {one["action"]: one for one in value["updates"]}
        if len(updates) != len(value["updates"]) or "assert-table-uuid" not in requirements:
            self.violations.append(f"updateTable: {value}")
            raise RefusalError(400, "InvalidParameterValueException")
        if requirements["assert-table-uuid"]["uuid"] != entry.table_id:
            raise RefusalError(409, "UpdateRequirementConflictException", "another table")
        proposed = updates.get("add-commit", {}).get("commit")
        if proposed and entry.names.get(proposed["version"]) == proposed["file-name"]:
            return 200, self._shown(entry)  # it is done already
        if requirements.get("assert-etag", {}).get("etag", entry.etag) != entry.etag:
            raise RefusalError(409, "UpdateRequirementConflictException", "another etag")
        self._check_overlap(updates)
        if proposed:
            uniform = updates["add-commit"].get("uniform")
            self._check_uniform(entry.properties, uniform)
            asked = updates.get("set-properties", {}).get("updates", {})
            if "delta.universalFormat.enabledFormats" in asked:
                self.updates.append(uniform)
            self._ratify(entry, proposed)
        if "set-latest-backfilled-version" in updates:
            self._note_published(
                entry, updates["set-latest-backfilled-version"]["latest-published-version"]
            )
        changed = self._change(entry, updates)
        if proposed and changed:
            entry.last_changed, entry.last_time_ms = proposed["version"], proposed["timestamp"]
        entry.changes += 1
        return 200, self._shown(entry)

    def _check_uniform(self, properties: dict[str, str], uniform: Any) -> None:
        if "iceberg" not in properties.get("delta.universalFormat.enabledFormats", ""):
            return
        if uniform is None:
            raise RefusalError(400, "InvalidParameterValueException", "uniform is missing")
        self.uniform.append(uniform["iceberg"])

    def _ratify(self, entry: Entry, proposed: dict[str, Any]) -> None:
        if entry.table_type != "MANAGED":
            raise RefusalError(400, "InvalidParameterValueException", "not a managed table")
        version = proposed["version"]
        if version <= entry.latest:
            raise RefusalError(409, "CommitVersionConflictException", f"{version} is taken")
        if version > entry.latest + 1:
            raise RefusalError(400, "InvalidParameterValueException", f"next is {entry.latest + 1}")
        if entry.latest - entry.published >= self.most_unpublished:
            raise RefusalError(429, "ResourceExhaustedException", "publish first")
        entry.latest = version
        entry.commits[version] = proposed
        entry.names[version] = proposed["file-name"]

    def _note_published(self, entry: Entry, version: int) -> None:
        if version > entry.latest:
            raise RefusalError(400, "InvalidParameterValueException", "not ratified")
        entry.published = max(entry.published, version)
        if not self.keeps_published:
            for one in [one for one in entry.commits if one <= version]:
                del entry.commits[one]

    def _check_overlap(self, updates: dict[str, Any]) -> None:
        changed = updates.get("set-properties", {}).get("updates", {})
        removed = updates.get("remove-properties", {}).get("removals", [])
        derived = [
            key
            for key in (*changed, *removed)
            if key.startswith("delta.feature.")
            or key in {"delta.minReaderVersion", "delta.lastUpdateVersion"}
        ]
        if derived or changed.keys() & set(removed):
            self.violations.append(f"updateTable: properties {derived}")
            raise RefusalError(400, "InvalidParameterValueException")

    def _change(self, entry: Entry, updates: dict[str, Any]) -> bool:
        rest = updates.keys() - {"add-commit", "set-latest-backfilled-version"}
        for action in rest:
            _CHANGES[action](entry, updates[action])
        if entry.table_type == "MANAGED":
            lost = {**REQUIRED_PROPERTIES, "io.unitycatalog.tableId": entry.table_id}.items()
            if lost - entry.properties.items():
                self.violations.append("updateTable: a required property is gone")
        return bool(rest)

    def _delta_reportMetrics(  # noqa: N802
        self, path: dict[str, str], value: Any, **_: Any
    ) -> tuple[int, Any]:
        if self._entry(path).table_id != value["table-id"]:
            raise RefusalError(400, "InvalidParameterValueException")
        self.reports.put(value["report"]["commit-report"])
        return 204, None

    def _delta_getTableCredentials(  # noqa: N802
        self, path: dict[str, str], query: dict[str, str], **_: Any
    ) -> tuple[int, Any]:
        entry = self._entry(path)
        if self.is_read_only and query["operation"] == "READ_WRITE":
            raise RefusalError(403, "PermissionDeniedException", "read only")
        return 200, {"storage-credentials": self._lent(entry.location, query["operation"])}

    def _delta_getStagingTableCredentials(  # noqa: N802
        self, path: dict[str, str], **_: Any
    ) -> tuple[int, Any]:
        location = self.staged[path["table_id"]][1]
        return 200, {"storage-credentials": self._lent(location)}

    def _delta_getTemporaryPathCredentials(  # noqa: N802
        self, query: dict[str, str], **_: Any
    ) -> tuple[int, Any]:
        return 200, {"storage-credentials": self._lent(query["location"], query["operation"])}

    # --- the older API

    def _older_listCatalogs(self, query: dict[str, str], **_: Any) -> tuple[int, Any]:  # noqa: N802
        names = sorted(self.catalogs)
        return 200, self._page("catalogs", [{"name": name} for name in names], query)

    def _older_listSchemas(self, query: dict[str, str], **_: Any) -> tuple[int, Any]:  # noqa: N802
        wanted = query["catalog_name"]
        names = sorted(schema for catalog, schema in self.schemas if catalog == wanted)
        return 200, self._page("schemas", [{"name": name} for name in names], query)

    def _older_getCatalog(self, path: dict[str, str], **_: Any) -> tuple[int, Any]:  # noqa: N802
        if path["name"] not in self.catalogs:
            raise RefusalError(404, "", "no such catalog")
        return 200, {"name": path["name"]}

    def _older_createCatalog(self, value: Any, **_: Any) -> tuple[int, Any]:  # noqa: N802
        if value["name"] in self.catalogs:
            raise RefusalError(self.taken_status, "", "it exists")
        self.empty_catalogs.add(value["name"])
        self.made[value["name"],] = value
        return 200, value

    def _older_deleteCatalog(  # noqa: N802
        self, path: dict[str, str], query: dict[str, str], **_: Any
    ) -> tuple[int, Any]:
        self._older_getCatalog(path)
        name = path["name"]
        if name not in self.empty_catalogs and query.get("force") != "true":
            raise RefusalError(400, "", "it is not empty")
        self.schemas = {one for one in self.schemas if one[0] != name}
        self.empty_catalogs.discard(name)
        return 200, {}

    def _older_getSchema(self, path: dict[str, str], **_: Any) -> tuple[int, Any]:  # noqa: N802
        catalog, schema = path["full_name"].split(".")
        if (catalog, schema) not in self.schemas:
            raise RefusalError(404, "", "no such schema")
        return 200, {"name": schema, "catalog_name": catalog}

    def _older_createSchema(self, value: Any, **_: Any) -> tuple[int, Any]:  # noqa: N802
        key = value["catalog_name"], value["name"]
        self._older_getCatalog({"name": key[0]})
        if key in self.schemas:
            raise RefusalError(self.taken_status, "", "it exists")
        self.schemas.add(key)
        self.made[key] = value
        return 200, value

    def _older_deleteSchema(  # noqa: N802
        self, path: dict[str, str], query: dict[str, str], **_: Any
    ) -> tuple[int, Any]:
        self._older_getSchema(path)
        catalog, schema = path["full_name"].split(".")
        held = [one for one in self.tables if one[:2] == (catalog, schema)]
        if held and query.get("force") != "true":
            raise RefusalError(400, "", "it is not empty")
        for one in held:
            del self.tables[one]
        self.schemas.discard((catalog, schema))
        self.empty_catalogs.add(catalog)
        return 200, {}

    def _older_listTables(self, query: dict[str, str], **_: Any) -> tuple[int, Any]:  # noqa: N802
        wanted = (query["catalog_name"], query["schema_name"])
        if wanted not in self.schemas:
            raise RefusalError(404, "NOT_FOUND", "no such schema")
        found = [self._older_shown(key) for key in sorted(self.tables) if key[:2] == wanted]
        return 200, self._page("tables", found, query)

    def _page(self, member: str, found: list[Any], query: dict[str, str]) -> dict[str, Any]:
        start = int(query.get("page_token", "0"))
        page: dict[str, Any] = {member: found[start : start + self.page_size]}
        if start + self.page_size < len(found):
            page["next_page_token"] = str(start + self.page_size)
        return page

    def _older_getTable(self, path: dict[str, str], **_: Any) -> tuple[int, Any]:  # noqa: N802
        key = tuple(path["full_name"].split("."))
        if key not in self.tables:
            raise RefusalError(404, "NOT_FOUND", "no such table")
        return 200, self._older_shown((key[0], key[1], key[2]))

    def _older_deleteTable(self, path: dict[str, str], **_: Any) -> tuple[int, Any]:  # noqa: N802
        key = tuple(path["full_name"].split("."))
        if key not in self.tables:
            raise RefusalError(404, "NOT_FOUND", "no such table")
        del self.tables[key[0], key[1], key[2]]
        return 200, {}

    def _older_createTable(self, value: Any, **_: Any) -> tuple[int, Any]:  # noqa: N802
        key = (value["catalog_name"], value["schema_name"], value["name"])
        if key in self.tables:
            raise RefusalError(409, "ALREADY_EXISTS")
        fields = [json.loads(one["type_json"]) for one in value["columns"]]
        self.tables[key] = Entry(
            table_id=str(uuid.uuid4()),
            location=value["storage_location"],
            table_type=value["table_type"],
            columns={"type": "struct", "fields": fields},
            properties=value.get("properties", {}),
            protocol={"min-reader-version": 1, "min-writer-version": 2},
            comment=value.get("comment"),
        )
        return 200, self._older_shown(key)

    def _older_generateTemporaryTableCredentials(  # noqa: N802
        self, value: Any, **_: Any
    ) -> tuple[int, Any]:
        location = next(
            entry.location for entry in self.tables.values() if entry.table_id == value["table_id"]
        )
        return 200, self._older_lent(location)

    def _older_generateTemporaryPathCredentials(  # noqa: N802
        self, value: Any, **_: Any
    ) -> tuple[int, Any]:
        return 200, self._older_lent(value["url"])

    def _older_lent(self, location: str) -> dict[str, Any]:
        found = self.lend(location)
        if not found:
            return {}
        prefix, config = found[0]
        own = {key.removeprefix("s3.").replace("-", "_"): text for key, text in config.items()}
        ends = self.now_ms() + self.lifetime_ms
        return {"aws_temp_credentials": own, "expiration_time": ends, "url": prefix}

    def _older_getCommits(self, value: Any, **_: Any) -> tuple[int, Any]:  # noqa: N802
        entry = self._by_id(value)
        listed = [
            {key.replace("-", "_"): held for key, held in commit.items()}
            for version, commit in entry.commits.items()
            if version >= value["start_version"]
        ]
        return 200, {"commits": listed, "latest_table_version": entry.latest}

    def _older_commit(self, value: Any, **_: Any) -> tuple[int, Any]:
        entry = self._by_id(value)
        if "commit_info" in value:
            info = {key.replace("_", "-"): held for key, held in value["commit_info"].items()}
            if entry.names.get(info["version"]) != info["file-name"]:
                self._ratify(entry, info)
                if "metadata" in value:
                    held = value["metadata"]
                    entry.properties = held["properties"]["properties"]
                    entry.comment = held.get("description", entry.comment)
        if "latest_backfilled_version" in value:
            self._note_published(entry, value["latest_backfilled_version"])
        return 200, {}

    def _by_id(self, value: Any) -> Entry:
        for entry in self.tables.values():
            if entry.table_id == value["table_id"]:
                if entry.location != value["table_uri"]:
                    raise RefusalError(400, "INVALID", "another location")
                return entry
        raise RefusalError(404, "NOT_FOUND", "no such table")

    def _older_shown(self, key: tuple[str, str, str]) -> dict[str, Any]:
        entry = self.tables[key]
        columns = [
            {
                "name": one["name"],
                "type_json": json.dumps(one),
                "position": position,
                "nullable": one["nullable"],
            }
            for position, one in enumerate(entry.columns["fields"])
        ]
        found = {
            "catalog_name": key[0],
            "schema_name": key[1],
            "name": key[2],
            "table_type": entry.table_type,
            "data_source_format": entry.provider,
            "columns": columns,
            "storage_location": entry.location,
            "properties": entry.shown_properties(),
            "table_id": entry.table_id,
        }
        return found if entry.comment is None else {**found, "comment": entry.comment}

    # --- what both have

    def _entry(self, path: dict[str, str]) -> Entry:
        self._schema(path)
        entry = self.tables.get(_key(path))
        if entry is None:
            raise RefusalError(404, "NoSuchTableException", "no such table")
        return entry

    def _schema(self, path: dict[str, str]) -> None:
        if (path["catalog"], path["schema"]) not in self.schemas:
            raise RefusalError(404, "NoSuchSchemaException", "no such schema")

    def _lent(self, location: str, operation: str = "READ_WRITE") -> list[dict[str, Any]]:
        return [
            {
                "prefix": prefix,
                "operation": operation,
                "expiration-time-ms": self.now_ms() + self.lifetime_ms,
                "config": config,
            }
            for prefix, config in self.lend(location)
        ]

    def _shown(self, entry: Entry) -> dict[str, Any]:
        allowed = {} if self.allowed is None else {"allowed-maintenance-operations": self.allowed}
        return {
            **allowed,
            "metadata": {
                "etag": entry.etag,
                "table-type": entry.table_type,
                "table-uuid": entry.table_id,
                "location": entry.location,
                "created-time": 1,
                "updated-time": 1 + entry.changes,
                "columns": entry.columns,
                "partition-columns": entry.partition_columns,
                "properties": entry.shown_properties(),
                "last-commit-version": entry.last_changed,
                "last-commit-timestamp-ms": entry.last_time_ms,
            },
            "commits": [entry.commits[version] for version in sorted(entry.commits, reverse=True)],
            "latest-table-version": entry.latest,
        }


def _check_done(mishap: Mishap) -> None:
    if mishap.is_done:
        raise RefusalError(mishap.status, mishap.kind)


def _remove_properties(entry: Entry, one: dict[str, Any]) -> None:
    for key in one["removals"]:
        entry.properties.pop(key, None)


def _remove_domains(entry: Entry, one: dict[str, Any]) -> None:
    for domain in one["domains"]:
        entry.domains.pop(domain, None)


def _set_state(entry: Entry, one: dict[str, Any]) -> None:
    if entry.table_type != "EXTERNAL":
        raise RefusalError(400, "InvalidParameterValueException")
    entry.last_changed = one["last-commit-version"]
    entry.last_time_ms = one["last-commit-timestamp-ms"]


_CHANGES: dict[str, Callable[[Entry, dict[str, Any]], None]] = {
    "set-columns": lambda entry, one: setattr(entry, "columns", one["columns"]),
    "set-partition-columns": lambda entry, one: setattr(
        entry, "partition_columns", one["partition-columns"]
    ),
    "set-table-comment": lambda entry, one: setattr(entry, "comment", one["comment"]),
    "set-properties": lambda entry, one: entry.properties.update(one["updates"]),
    "remove-properties": _remove_properties,
    "set-protocol": lambda entry, one: setattr(entry, "protocol", one["protocol"]),
    "set-domain-metadata": lambda entry, one: entry.domains.update(one["updates"]),
    "remove-domain-metadata": _remove_domains,
    "update-metadata-snapshot-version": _set_state,
}
_OF_TABLES = "/v1/catalogs/{catalog}/schemas/{schema}/tables"
ENDPOINTS = [
    "POST /v1/catalogs/{catalog}/schemas/{schema}/staging-tables",
    f"POST {_OF_TABLES}",
    f"GET {_OF_TABLES}/{{table}}",
    f"POST {_OF_TABLES}/{{table}}",
    f"DELETE {_OF_TABLES}/{{table}}",
    f"HEAD {_OF_TABLES}/{{table}}",
    f"POST {_OF_TABLES}/{{table}}/rename",
    f"GET {_OF_TABLES}/{{table}}/credentials",
    f"POST {_OF_TABLES}/{{table}}/metrics",
    "GET /v1/staging-tables/{table_id}/credentials",
    "GET /v1/temporary-path-credentials",
]


def _key(path: dict[str, str]) -> tuple[str, str, str]:
    return path["catalog"], path["schema"], path["table"]
