"""The endpoints: what each request is answered with.

Owns which parameter of a URL or header means what. Each endpoint is a few lines over the modules
that know; what holds for all requests is in `middleware`.

Protocol: REST APIs
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

import anyio
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from deltalog.errors import DeltaError
from deltalog.sharing.server.answers import Answer, Asked, Tools
from deltalog.sharing.server.async_queries import Job, Jobs
from deltalog.sharing.server.changes import answer_changes, answer_stream
from deltalog.sharing.server.credentials import answer_credentials
from deltalog.sharing.server.downloads import check_inside, download
from deltalog.sharing.server.faults import Fault, fault_of, not_found, too_large
from deltalog.sharing.server.listing import Listings
from deltalog.sharing.server.middleware import fault_response, log_defect, note
from deltalog.sharing.server.query import answer_metadata, answer_query, check_together
from deltalog.sharing.server.tables import TableName, Tables, present_ms
from deltalog.sharing.server.urls import EXPIRY, FILES_ROUTE, SIGNATURE
from deltalog.sharing.server.view_query import download_view
from deltalog.sharing.wire.capabilities import (
    CAPABILITIES_HEADER,
    FILE_ID_HASH_HEADER,
    VERSION_HEADER,
    parse_capabilities,
)
from deltalog.sharing.wire.lines import QueryStatus, encode_line
from deltalog.sharing.wire.listing import encode_page, encode_share
from deltalog.sharing.wire.requests import (
    parse_changes_query,
    parse_number_parameter,
    parse_table_query,
    parse_timestamp_parameter,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from starlette.requests import Request

    from deltalog.sharing.server.rates import RateLimit
    from deltalog.sharing.server.recipients import Recipient, Recipients
    from deltalog.sharing.server.tables import SharedTable
    from deltalog.sharing.wire.requests import TableQuery

    Endpoint = Callable[[Request], Awaitable[Response]]

T = TypeVar("T")

JSON: Final = "application/json; charset=utf-8"
NDJSON: Final = "application/x-ndjson; charset=utf-8"
BINARY: Final = "application/octet-stream"
_TABLE: Final = "/shares/{share}/schemas/{schema}/tables/{table}"


@dataclass(frozen=True)
class Server:
    """All that one configuration makes; a changed configuration makes a new one."""

    tools: Tools
    tables: Tables
    recipients: Recipients
    jobs: Jobs
    rates: RateLimit
    limiter: anyio.CapacityLimiter

    async def recipient(self, request: Request) -> Recipient:
        """Who sends the request.

        Raises:
            Fault: 401, 403 or 429.
        """
        address = None if request.client is None else request.client.host
        header = request.headers.get("authorization")
        now_ms = present_ms()
        if self.tools.config.oauth is None:
            found = self.recipients.authenticate(header, address, now_ms)
        else:
            # A token of an unknown key makes the issuer be asked, which may take its time.
            found = await anyio.to_thread.run_sync(
                self.recipients.authenticate, header, address, now_ms
            )
        note(request.scope, recipient=found.name)
        self.rates.take(found.name)
        return found

    def table(self, request: Request, recipient: Recipient) -> SharedTable:
        """The table that the URL names.

        Raises:
            Fault: 404.
        """
        names = request.path_params
        name = TableName(names["share"], names["schema"], names["table"])
        found = self.tables.table(recipient, name)
        note(request.scope, table=found.name.key)
        return found

    async def asked(self, request: Request) -> Asked:
        """Who asks what of which table.

        Raises:
            Fault: 401, 403 or 404.
        """
        recipient = await self.recipient(request)
        return Asked(
            table=self.table(request, recipient),
            recipient=recipient,
            capabilities=parse_capabilities(request.headers.get(CAPABILITIES_HEADER)),
            base=self.base(request),
            now_ms=present_ms(),
            file_id_hash=request.headers.get(FILE_ID_HASH_HEADER),
        )

    def base(self, request: Request) -> str:
        """URL of the protocol's root, as the recipient reaches it."""
        config = self.tools.config
        start = config.public_url
        if start is None:
            url = request.url
            start = f"{url.scheme}://{url.netloc}{request.scope.get('root_path', '')}"
        return f"{start}{config.endpoint}"


class Endpoints:
    """The endpoints of the protocol.

    Args:
        current: gives the server as it is configured now.
    """

    def __init__(self, current: Callable[[], Server]) -> None:
        self._current = current

    def routes(self, prefix: str) -> list[Route]:
        """Where each endpoint is found below a path."""
        table = prefix + _TABLE
        found: list[tuple[str, str, Endpoint]] = [
            ("GET", f"{prefix}/shares", self.list_shares),
            ("GET", f"{prefix}/shares/{{share}}", self.get_share),
            ("GET", f"{prefix}/shares/{{share}}/schemas", self.list_schemas),
            ("GET", f"{prefix}/shares/{{share}}/all-tables", self.list_all_tables),
            ("GET", f"{prefix}/shares/{{share}}/schemas/{{schema}}/tables", self.list_tables),
            ("HEAD", table, self.get_version),
            ("GET", f"{table}/version", self.get_version),
            ("GET", f"{table}/metadata", self.get_metadata),
            ("POST", f"{table}/query", self.query),
            ("POST", f"{table}/queries/{{query}}", self.poll_query),
            ("GET", f"{table}/changes", self.changes),
            ("POST", f"{table}/temporary-table-credentials", self.get_credentials),
            ("GET", f"{prefix}/{FILES_ROUTE}/{{owner}}/{{name}}", self.get_file),
        ]
        return [
            Route(path, answered(endpoint), methods=[method], name=endpoint.__name__)
            for method, path, endpoint in found
        ]

    async def list_shares(self, request: Request) -> Response:
        """`GET /shares`."""
        listings = await self._listings(request)
        return _json(encode_page(listings.shares(request.query_params)))

    async def get_share(self, request: Request) -> Response:
        """`GET /shares/{share}`."""
        listings = await self._listings(request)
        return _json(encode_share(listings.share(request.path_params["share"])))

    async def list_schemas(self, request: Request) -> Response:
        """`GET /shares/{share}/schemas`."""
        listings = await self._listings(request)
        found = listings.schemas(request.path_params["share"], request.query_params)
        return _json(encode_page(found))

    async def list_tables(self, request: Request) -> Response:
        """`GET /shares/{share}/schemas/{schema}/tables`."""
        listings, names = await self._listings(request), request.path_params
        found = listings.tables(names["share"], names["schema"], request.query_params)
        return _json(encode_page(found))

    async def list_all_tables(self, request: Request) -> Response:
        """`GET /shares/{share}/all-tables`."""
        listings = await self._listings(request)
        found = listings.all_tables(request.path_params["share"], request.query_params)
        return _json(encode_page(found))

    async def get_version(self, request: Request) -> Response:
        """`GET …/version`, and `HEAD` of the table itself."""
        server = self._current()
        table = server.table(request, await server.recipient(request))
        moment_ms = parse_timestamp_parameter(request.query_params, "startingTimestamp")

        def find() -> int:
            latest = table.latest()
            if moment_ms is None:
                return latest.version
            table.check_history("startingTimestamp")
            return table.first_version_from(moment_ms, latest)

        version = await _in_thread(server, find)
        note(request.scope, version=version)
        return Response(headers={VERSION_HEADER: str(version)})

    async def get_metadata(self, request: Request) -> Response:
        """`GET …/metadata`."""
        server = self._current()
        asked, parameters = await server.asked(request), request.query_params
        version = parse_number_parameter(parameters, "version")
        moment_ms = parse_timestamp_parameter(parameters, "timestamp")
        answer = await _in_thread(
            server, lambda: answer_metadata(asked, server.tools, version, moment_ms)
        )
        return _lines(request, answer)

    async def query(self, request: Request) -> Response:
        """`POST …/query`."""
        server = self._current()
        asked = await server.asked(request)
        query = parse_table_query(await _body(request, server))
        tools = server.tools
        if asked.capabilities.asynchronous and tools.config.asynchronous_queries:

            def begin() -> Job:
                return server.jobs.start(
                    asked, query, tools, lambda bare: answer_any_query(asked, bare, tools)
                )

            job = await _in_thread(server, begin)
            return _status(job.status or QueryStatus(query_id=job.id))
        answer = await _in_thread(server, lambda: answer_any_query(asked, query, tools))
        return _lines(request, answer)

    async def poll_query(self, request: Request) -> Response:
        """`POST …/queries/{queryId}`."""
        server = self._current()
        asked = await server.asked(request)
        page = parse_table_query(await _body(request, server))
        job = server.jobs.find(asked, request.path_params["query"])
        status = job.status
        if status is not None:
            return _status(status)
        query = replace(job.query, page_token=page.page_token, max_files=page.max_files)
        answer = await _in_thread(
            server, lambda: answer_any_query(asked, query, server.tools, job.version)
        )
        return _lines(request, answer)

    async def get_credentials(self, request: Request) -> Response:
        """`POST …/temporary-table-credentials`."""
        server = self._current()
        asked = await server.asked(request)
        body = await _body(request, server)
        return _json(await _in_thread(server, lambda: answer_credentials(asked, body)))

    async def changes(self, request: Request) -> Response:
        """`GET …/changes`."""
        server = self._current()
        asked = await server.asked(request)
        query = parse_changes_query(request.query_params)
        answer = await _in_thread(server, lambda: answer_changes(asked, query, server.tools))
        return _lines(request, answer)

    async def get_file(self, request: Request) -> Response:
        """A file, by a URL that this server has signed."""
        server = self._current()
        names, parameters = request.path_params, request.query_params
        signed = server.tools.urls.check(
            names["owner"],
            names["name"],
            parameters.get(EXPIRY, ""),
            parameters.get(SIGNATURE, ""),
            present_ms(),
        )
        recipient = server.recipients.find(signed.recipient)
        if recipient is None:
            raise not_found("file")
        table = server.tables.table(recipient, signed.table)
        note(request.scope, recipient=recipient.name, table=table.name.key)
        with_body = request.method != "HEAD"

        def fetch() -> Response:
            if signed.view is not None:
                found = download_view(
                    table, signed, server.tools, request.headers, with_body=with_body
                )
            elif table.config.is_view:
                raise not_found("file")  # signed when all of the table was shared
            else:
                check_inside(table.store, signed.path)
                found = download(table.store, signed.path, request.headers, with_body=with_body)
            return StreamingResponse(found.chunks, found.status, found.headers, media_type=BINARY)

        return await _in_thread(server, fetch)

    async def _listings(self, request: Request) -> Listings:
        server = self._current()
        recipient = await server.recipient(request)
        return Listings(server.tables, server.tools.sealer, recipient, present_ms())


def answered(endpoint: Endpoint) -> Endpoint:
    """The endpoint, whose errors are answers."""

    async def answer(request: Request) -> Response:
        note(request.scope, action=endpoint.__name__)
        try:
            return await endpoint(request)
        except Fault as fault:
            return fault_response(fault)
        except DeltaError as error:
            told = fault_of(error)
            if told.status >= 500:
                log_defect(request.scope, error)
            return fault_response(told)

    return answer


def answer_any_query(
    asked: Asked, query: TableQuery, tools: Tools, pinned: int | None = None
) -> Answer:
    """The files of one version, or what came and went since one."""
    check_together(query)
    if query.starting_version is not None:
        return answer_stream(asked, query, tools)
    return answer_query(asked, query, tools, pinned)


async def _in_thread(server: Server, act: Callable[[], T]) -> T:
    return await anyio.to_thread.run_sync(act, limiter=server.limiter)


async def _body(request: Request, server: Server) -> bytes:
    """The body of a request, if it is not too long and comes in time.

    Raises:
        Fault: 413 or 408.
    """
    limits = server.tools.config.limits
    most = limits.body_bytes
    found = bytearray()
    try:
        with anyio.fail_after(limits.receive_seconds):
            async for piece in request.stream():
                found += piece
                if len(found) > most:
                    raise too_large(f"the body is longer than {most} bytes")
    except TimeoutError:
        raise Fault(408, "REQUEST_TIMEOUT", "the body did not come in time") from None
    return bytes(found)


def _json(body: bytes) -> Response:
    return Response(body, headers={"Content-Type": JSON})


def _status(status: QueryStatus) -> Response:
    return Response(encode_line(status), headers={"Content-Type": NDJSON})


def _lines(request: Request, answer: Answer) -> Response:
    """Newline-delimited JSON, compressed for who can take that."""
    headers = {
        "Content-Type": NDJSON,
        VERSION_HEADER: str(answer.version),
        CAPABILITIES_HEADER: answer.form.header,
        "Vary": "Accept-Encoding",
    }
    if answer.file_id_hash is not None:
        headers[FILE_ID_HASH_HEADER] = answer.file_id_hash
    note(request.scope, told=answer.facts)
    chunks = answer.chunks
    if "gzip" in request.headers.get("accept-encoding", "").lower():
        headers["Content-Encoding"] = "gzip"
        chunks = _compressed(chunks)
    return StreamingResponse(chunks, headers=headers)


def _compressed(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """gzip; what is at hand is sent at once, so that the first lines do not wait."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    for chunk in chunks:
        yield packer.compress(chunk) + packer.flush(zlib.Z_SYNC_FLUSH)
    yield packer.flush()
