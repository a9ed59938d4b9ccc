"""The endpoints of the protocol: routes, parameters and headers.

This module reads the parameters in URLs and headers. It answers requests for listings and
credentials; `queries` and `changes` answer all others. `middleware` runs for all requests.
Names: `request` is the HTTP request, `asked` the `TableRequest`, and `wanted` the query in its
body. Other modules call the `TableRequest` `request`, and the query `query`.

Protocol: REST APIs
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Route

from deltalog._util.clock import now_ms
from deltalog._util.json import dumps
from deltalog._util.observing import WorkKind, observed
from deltalog._util.paths import canonical_path, store_kind
from deltalog.errors import DeltaError, StorageError
from deltalog.sharing.server.answers import Answer, Services, TableRequest
from deltalog.sharing.server.async_queries import (
    AsyncQueries,
)
from deltalog.sharing.server.changes import answer_changes
from deltalog.sharing.server.downloads import Download, check_inside, download
from deltalog.sharing.server.faults import Fault, fault_of, invalid, not_found, unsupported
from deltalog.sharing.server.middleware import (
    CLIENT_CLOSED,
    ClientGoneError,
    Turns,
    Work,
    WorkResponse,
    add_audit_facts,
    fault_response,
    log_defect,
    tell_observers,
)
from deltalog.sharing.server.queries import (
    answer_metadata,
    answer_query,
    download_view,
)
from deltalog.sharing.server.tables import ServedTable, TableName, Tables, tables_of
from deltalog.sharing.server.tokens import InvalidTokenError, Sealer
from deltalog.sharing.server.urls import EXPIRY, FILES_ROUTE, SIGNATURE
from deltalog.sharing.wire import requests as codes
from deltalog.sharing.wire.codec import parse_object
from deltalog.sharing.wire.lines import (
    ListingPage,
    QueryStatus,
    Schema,
    Share,
    Table,
    encode_line,
    encode_page,
    encode_share,
)
from deltalog.sharing.wire.requests import (
    CAPABILITIES_HEADER,
    FILE_ID_HASH_HEADER,
    VERSION_HEADER,
    parse_capabilities,
    parse_changes_query,
    parse_number_parameter,
    parse_table_query,
    parse_timestamp_parameter,
)
from deltalog.storage.stores.filesystems import files_class

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    from starlette.requests import Request

    from deltalog.sharing.server.config import SchemaConfig, ShareConfig, TableConfig
    from deltalog.sharing.server.recipients import RateLimit, Recipient, Recipients
    from deltalog.storage.stores.fsspec_files import IssuedCredentials

T = TypeVar("T")

JSON: Final = "application/json; charset=utf-8"
NDJSON: Final = "application/x-ndjson; charset=utf-8"
BINARY: Final = "application/octet-stream"
_WORK: Final = "deltalog.work"


@dataclass(frozen=True)
class Server:
    """The objects of one configuration; a new configuration needs a new `Server`."""

    services: Services
    tables: Tables
    recipients: Recipients
    async_queries: AsyncQueries
    rates: RateLimit
    query_turns: Turns
    downloads: Turns

    async def recipient(self, request: Request) -> Recipient:
        """Return the recipient who sent a request.

        Raises:
            Fault: 401 (not authenticated), 403 (wrong address) or 429 (too many requests).
        """
        address = None if request.client is None else request.client.host
        credentials = request.headers.get("authorization"), address, now_ms()
        if self.services.config.oauth is None:
            found = self.recipients.authenticate(*credentials)
        else:
            # Run this in a thread, because a token with an unknown key may cause a request to the
            # OAuth issuer.
            found = await anyio.to_thread.run_sync(self.recipients.authenticate, *credentials)
        add_audit_facts(request.scope, recipient=found.name)
        self.rates.take(found.name)
        return found

    def table(self, request: Request, recipient: Recipient) -> ServedTable:
        """Return the table in the URL.

        Raises:
            Fault: 404 if the recipient cannot access such a table.
        """
        names = request.path_params
        name = TableName(names["share"], names["schema"], names["table"])
        found = self.tables.table(recipient, name)
        add_audit_facts(request.scope, table=found.name.key)
        tell_observers(request.scope, {"location": found.main.store.root})
        return found

    async def table_request(self, request: Request) -> TableRequest:
        """Return recipient, table and details of a request.

        Raises:
            Fault: 401, 403 or 429 from `recipient`, 404 from `table`.
        """
        recipient = await self.recipient(request)
        return TableRequest(
            table=self.table(request, recipient),
            recipient=recipient,
            capabilities=parse_capabilities(request.headers.get(CAPABILITIES_HEADER)),
            base_url=self._base_url(request),
            now_ms=now_ms(),
            services=self.services,
            file_id_hash=request.headers.get(FILE_ID_HASH_HEADER),
        )

    async def listings(self, request: Request) -> Listings:
        """Return the listings for the recipient who sent a request.

        Raises:
            Fault: 401 (not authenticated), 403 (wrong address) or 429 (too many requests).
        """
        recipient = await self.recipient(request)
        return Listings(self.tables, self.services.sealer, recipient, now_ms())

    async def in_thread(
        self, request: Request, recipient: Recipient, function: Callable[[], T]
    ) -> T:
        """Run a function in a thread when the recipient may use one, and return its result.

        Raises:
            ClientGoneError: the client has disconnected.
        """

        def watched() -> T:
            with observed(WorkKind.ANSWER, "answer"):
                return function()

        return await work_of(request).run(watched, self.query_turns, recipient.name)

    async def body(self, request: Request) -> bytes:
        """Return the body of a request.

        Raises:
            Fault: 413 if the body is too long, 408 if it arrives too slowly.
            ClientGoneError: the client disconnected before it sent everything.
        """
        limits = self.services.config.limits
        most = limits.body_bytes
        found = bytearray()
        try:
            with anyio.fail_after(limits.receive_seconds):
                async for piece in request.stream():
                    found += piece
                    if len(found) > most:
                        raise Fault(413, codes.TOO_LARGE, f"the body is longer than {most} bytes")
        except ClientDisconnect:
            raise ClientGoneError from None
        except TimeoutError:
            raise Fault(408, "REQUEST_TIMEOUT", "the body did not arrive in time") from None
        return bytes(found)

    def _base_url(self, request: Request) -> str:
        config = self.services.config
        start = config.public_url
        if start is None:
            url = request.url
            # If the server is mounted into another application, the request has a root path.
            start = f"{url.scheme}://{url.netloc}{request.scope.get('root_path', '')}"
        return f"{start}{config.endpoint}"


def routes(prefix: str, current: Callable[[], Server]) -> list[Route]:
    """Return the routes of all endpoints.

    Args:
        prefix: prefix of the paths.
        current: returns the server of the current configuration.
    """
    shares = f"{prefix}/shares"
    table = f"{shares}/{{share}}/schemas/{{schema}}/tables/{{table}}"
    endpoints: list[tuple[str, str, Callable[[Server, Request], Awaitable[Response]]]] = [
        ("GET", shares, list_shares),
        ("GET", f"{shares}/{{share}}", get_share),
        ("GET", f"{shares}/{{share}}/schemas", list_schemas),
        ("GET", f"{shares}/{{share}}/all-tables", list_all_tables),
        ("GET", f"{shares}/{{share}}/schemas/{{schema}}/tables", list_tables),
        ("HEAD", table, get_version),
        ("GET", f"{table}/version", get_version),
        ("GET", f"{table}/metadata", get_metadata),
        ("POST", f"{table}/query", query),
        ("POST", f"{table}/queries/{{query}}", poll_query),
        ("GET", f"{table}/changes", changes),
        ("POST", f"{table}/temporary-table-credentials", get_credentials),
        ("GET", f"{prefix}/{FILES_ROUTE}/{{owner}}/{{name}}", get_file),
    ]
    return [
        Route(path, _handler(endpoint, current), methods=[method], name=endpoint.__name__)
        for method, path, endpoint in endpoints
    ]


def _handler(
    endpoint: Callable[[Server, Request], Awaitable[Response]], current: Callable[[], Server]
) -> Callable[[Request], Awaitable[Response]]:
    """Return a handler that calls an endpoint and converts errors to responses."""

    async def handle(request: Request) -> Response:
        add_audit_facts(request.scope, action=endpoint.__name__)
        try:
            return await endpoint(current(), request)
        except ClientGoneError:
            return Response(status_code=CLIENT_CLOSED)
        except (Fault, DeltaError) as error:
            fault = fault_of(error)
            add_audit_facts(request.scope, error=fault.code)
            if fault.recipient is not None:
                add_audit_facts(request.scope, recipient=fault.recipient)
            # A status of 500 or more is not a defect if the server raised it on purpose, such as
            # 503 for a full cache.
            if fault.status >= 500 and fault is not error:
                log_defect(request.scope, error)
            return fault_response(fault)

    return handle


async def list_shares(server: Server, request: Request) -> Response:
    """Answer `GET /shares`."""
    listings = await server.listings(request)
    return _json(encode_page(listings.shares(request.query_params)))


async def get_share(server: Server, request: Request) -> Response:
    """Answer `GET /shares/{share}`."""
    listings = await server.listings(request)
    return _json(encode_share(listings.share(request.path_params["share"])))


async def list_schemas(server: Server, request: Request) -> Response:
    """Answer `GET /shares/{share}/schemas`."""
    listings = await server.listings(request)
    found = listings.schemas(request.path_params["share"], request.query_params)
    return _json(encode_page(found))


async def list_tables(server: Server, request: Request) -> Response:
    """Answer `GET /shares/{share}/schemas/{schema}/tables`."""
    listings, names = await server.listings(request), request.path_params
    found = listings.tables(names["share"], names["schema"], request.query_params)
    return _json(encode_page(found))


async def list_all_tables(server: Server, request: Request) -> Response:
    """Answer `GET /shares/{share}/all-tables`."""
    listings = await server.listings(request)
    found = listings.all_tables(request.path_params["share"], request.query_params)
    return _json(encode_page(found))


async def get_version(server: Server, request: Request) -> Response:
    """Answer `GET …/version`, and `HEAD` of the table itself."""
    recipient = await server.recipient(request)
    table = server.table(request, recipient)
    starting_ms = parse_timestamp_parameter(request.query_params, "startingTimestamp")

    def find() -> int:
        latest = table.latest()
        if starting_ms is None:
            return latest.version
        table.check_history("startingTimestamp")
        return table.first_version_from(starting_ms, latest)

    version = await server.in_thread(request, recipient, find)
    add_audit_facts(request.scope, version=version)
    return Response(headers={VERSION_HEADER: str(version)})


async def get_metadata(server: Server, request: Request) -> Response:
    """Answer `GET …/metadata`."""
    asked, parameters = await server.table_request(request), request.query_params
    version = parse_number_parameter(parameters, "version")
    timestamp_ms = parse_timestamp_parameter(parameters, "timestamp")
    return await _lines(
        server, request, asked, lambda: answer_metadata(asked, version, timestamp_ms)
    )


async def query(server: Server, request: Request) -> Response:
    """Answer `POST …/query`."""
    asked = await server.table_request(request)
    wanted = parse_table_query(await server.body(request))
    if asked.capabilities.asynchronous and server.services.config.asynchronous_queries:
        started = await server.in_thread(
            request,
            asked.recipient,
            lambda: server.async_queries.start(asked, wanted, partial(answer_query, asked)),
        )
        return _status(started.status or QueryStatus(query_id=started.id))
    return await _lines(server, request, asked, lambda: answer_query(asked, wanted))


async def poll_query(server: Server, request: Request) -> Response:
    """Answer `POST …/queries/{queryId}`."""
    asked = await server.table_request(request)
    page = parse_table_query(await server.body(request))
    query_id = request.path_params["query"]
    found = await server.in_thread(
        request,
        asked.recipient,
        lambda: server.async_queries.find(asked, query_id, partial(answer_query, asked)),
    )
    status = found.status
    if status is not None:
        return _status(status)
    wanted = replace(found.query, page_token=page.page_token, max_files=page.max_files)
    return await _lines(server, request, asked, lambda: answer_query(asked, wanted, found.version))


async def get_credentials(server: Server, request: Request) -> Response:
    """Answer `POST …/temporary-table-credentials`."""
    asked = await server.table_request(request)
    body = await server.body(request)
    issued = await server.in_thread(
        request, asked.recipient, lambda: answer_credentials(asked, body)
    )
    return _json(issued)


async def changes(server: Server, request: Request) -> Response:
    """Answer `GET …/changes`."""
    asked = await server.table_request(request)
    wanted = parse_changes_query(request.query_params)
    return await _lines(server, request, asked, lambda: answer_changes(asked, wanted))


async def get_file(server: Server, request: Request) -> Response:
    """Send the file of a URL that this server has signed."""
    names, parameters = request.path_params, request.query_params
    signed = server.services.urls.check(
        names["owner"],
        names["name"],
        parameters.get(EXPIRY, ""),
        parameters.get(SIGNATURE, ""),
        now_ms(),
    )
    recipient = server.recipients.find(signed.recipient)
    if recipient is None:
        raise not_found("file")
    add_audit_facts(request.scope, recipient=recipient.name)
    server.rates.take(recipient.name)
    table = server.tables.table(recipient, signed.table)
    add_audit_facts(request.scope, table=table.name.key)
    headers, with_body = request.headers, request.method != "HEAD"

    def fetch() -> Download:
        if signed.source is not None:
            return download_view(table, signed, server.services, headers, with_body=with_body)
        if table.config.is_view:
            raise not_found("file")  # the table has become a view since the URL was signed
        check_inside(table.store, signed.path)
        return download(table.store, signed.path, headers, with_body=with_body)

    found = await server.in_thread(request, recipient, fetch)
    return WorkResponse(
        work_of(request),
        found.chunks,
        server.downloads,
        recipient.name,
        status_code=found.status,
        headers={**found.headers, "Content-Type": BINARY},
    )


def _json(body: bytes) -> Response:
    return Response(body, headers={"Content-Type": JSON})


def _status(status: QueryStatus) -> Response:
    return Response(encode_line(status), headers={"Content-Type": NDJSON})


async def _lines(
    server: Server, request: Request, asked: TableRequest, make: Callable[[], Answer]
) -> Response:
    """Return newline-delimited JSON, compressed for clients that accept it.

    The lines of a short answer are made in the same thread as the plan, because waiting for another
    thread would take longer. The lines of a long answer are made while they are sent.
    """
    packs = "gzip" in request.headers.get("accept-encoding", "").lower()

    def plan() -> tuple[Answer, Iterator[bytes] | bytes]:
        answer = make()
        chunks = _compressed(answer.chunks) if packs else answer.chunks
        return answer, b"".join(chunks) if answer.is_short else chunks

    answer, body = await server.in_thread(request, asked.recipient, plan)
    headers = {
        "Content-Type": NDJSON,
        VERSION_HEADER: str(answer.version),
        CAPABILITIES_HEADER: answer.response_format.header,
        "Vary": "Accept-Encoding",
    }
    if answer.file_id_hash is not None:
        headers[FILE_ID_HASH_HEADER] = answer.file_id_hash
    if packs:
        headers["Content-Encoding"] = "gzip"
    add_audit_facts(request.scope, answer=answer.facts)
    if isinstance(body, bytes):
        return Response(body, headers=headers)
    name = asked.recipient.name
    return WorkResponse(work_of(request), body, server.query_turns, name, headers=headers)


def work_of(request: Request) -> Work:
    """Return the `Work` of a request."""
    found: Work = request.scope.setdefault(_WORK, Work(request.receive))
    return found


def _compressed(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the chunks in gzip; flush each chunk, so that the client can read it at once."""
    # For zlib, 31 means the largest window (15) with a gzip header (16).
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    for chunk in chunks:
        yield packer.compress(chunk) + packer.flush(zlib.Z_SYNC_FLUSH)
    yield packer.flush()


# --- Pages of listings: shares, schemas and tables


# The maximum number of results of a page. It is also the default, as in the reference server.
_MOST_RESULTS: Final = 500
_LIST: Final = "list"
_TOKEN_MS: Final = 24 * 3600 * 1000


class Listings:
    """The listings for one request.

    Args:
        tables: tables of the server.
        sealer: seals and opens page tokens.
        recipient: the sender of the request.
        now_ms: time of the request.
    """

    def __init__(self, tables: Tables, sealer: Sealer, recipient: Recipient, now_ms: int) -> None:
        self._tables = tables
        self._sealer = sealer
        self._recipient = recipient
        self._now_ms = now_ms

    def shares(self, parameters: Mapping[str, str]) -> ListingPage[Share]:
        """Return the shares that the recipient can access."""
        found = [config.share for config in self._tables.shares(self._recipient)]
        return self._page(found, "shares", parameters)

    def share(self, name: str) -> Share:
        """Return one share."""
        return self._tables.share(self._recipient, name).share

    def schemas(self, share: str, parameters: Mapping[str, str]) -> ListingPage[Schema]:
        """Return the schemas of a share."""
        config = self._tables.share(self._recipient, share)
        found = [Schema(name=schema.name, share=config.name) for schema in config.schemas]
        return self._page(found, f"schemas/{config.name}", parameters)

    def tables(self, share: str, schema: str, parameters: Mapping[str, str]) -> ListingPage[Table]:
        """Return the tables of a schema."""
        config = self._tables.share(self._recipient, share)
        found = self._tables.schema(self._recipient, share, schema)
        tables = [_table_of(config, found, table) for table in found.tables]
        return self._page(tables, f"tables/{config.name}/{found.name}", parameters)

    def all_tables(self, share: str, parameters: Mapping[str, str]) -> ListingPage[Table]:
        """Return the tables of all schemas of a share."""
        config = self._tables.share(self._recipient, share)
        tables = [_table_of(config, schema, table) for schema, table in tables_of(config)]
        return self._page(tables, f"all-tables/{config.name}", parameters)

    def _page(
        self, items: Sequence[T], listing: str, parameters: Mapping[str, str]
    ) -> ListingPage[T]:
        """Return a page; its token contains the listing, with names as in the configuration."""
        count = parse_number_parameter(parameters, "maxResults")
        count = _MOST_RESULTS if count is None else count
        if count > _MOST_RESULTS:
            raise invalid(f"maxResults: expected {_MOST_RESULTS} or less")
        start = self._start(listing, parameters.get("pageToken") or "")
        end = start + count
        token = None
        if end < len(items):
            values: dict[str, Any] = {"r": self._recipient.name, "l": listing, "o": end}
            token = self._sealer.seal(_LIST, values, self._now_ms + _TOKEN_MS)
        return ListingPage(items=tuple(items[start:end]), next_page_token=token)

    def _start(self, listing: str, token: str) -> int:
        if not token:
            return 0
        try:
            values = self._sealer.open(_LIST, token, self._now_ms)
        except InvalidTokenError as error:
            raise invalid(f"pageToken: {error}") from None
        if (values["r"], values["l"]) != (self._recipient.name, listing):
            raise invalid("pageToken: the token belongs to another listing")
        return int(values["o"])


def _table_of(share: ShareConfig, schema: SchemaConfig, table: TableConfig) -> Table:
    has_directory = table.credentials is not None
    return Table(
        name=table.name,
        schema=schema.name,
        share=share.name,
        share_id=share.share.id,
        id=table.id,
        # Send the location only to recipients that can get credentials (SHARE-SEC-08).
        location=table.location if has_directory else None,
        access_modes=("url", "dir") if has_directory else (),
    )


# --- Temporary credentials for a table's directory, from stores that issue them


# AWS limits the duration of a chained role's credentials to this range.
_LEAST_SECONDS: Final = 900
_MOST_SECONDS: Final = 3600


def answer_credentials(request: TableRequest, body: bytes) -> bytes:
    """Return the body of the response to `POST …/temporary-table-credentials`.

    Raises:
        Fault: 400 for a table without credentials, or a location outside of the table.
    """
    config = request.table.config
    node = parse_object(body.strip() or b"{}", "credentials")
    wanted = node.optional("location", str)
    if config.credentials is None:
        raise unsupported("temporary credentials are not issued for this table")
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
        StorageError: the cloud's service refused the request or failed.
        Fault: 400 for a store that does not issue credentials.
    """
    make = getattr(files_class(store_kind(location)), "temporary_credentials", None)
    if make is None:
        raise unsupported("temporary credentials are not issued for this table")
    settings = dict(config.credentials or {})
    seconds = int(settings.pop("seconds", _MOST_SECONDS))
    seconds = min(max(seconds, _LEAST_SECONDS), _MOST_SECONDS)
    until_ms = now_ms + seconds * 1000
    try:
        made: IssuedCredentials = make(
            location, config.storage_options, settings, until_ms, seconds
        )
    except DeltaError:
        raise
    except Exception as error:
        # Show only the error's type: the message may contain names of roles and accounts.
        raise StorageError(f"no temporary credentials: {type(error).__name__}") from error
    return made


def _inside(wanted: str, location: str) -> str:
    """Return the requested location; raise unless it is the table's directory or inside of it."""
    path = canonical_path(wanted.rstrip("/"), location)
    climbs = any(part == ".." for part in path.split("/"))
    if "://" in path or path.startswith("/") or climbs:
        raise invalid("location: expected the table's location or a directory in it")
    return f"{location}/{path}" if path else location
