"""Every endpoint of a sharing server as a method.

Owns URLs, parameters, headers, and the errors that a server answers. What a table's answer holds
is read by `pages`.

Protocol: REST APIs
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote, urlencode

from deltalog._json import JsonObject, dumps
from deltalog.clock import SystemClock
from deltalog.errors import (
    MalformedMessageError,
    ShareNotFoundError,
    SharingAccessError,
    SharingError,
    SharingUnavailableError,
)
from deltalog.sharing.client.auth import make_authenticator
from deltalog.sharing.client.http import Http, HttpOptions, Request
from deltalog.sharing.client.pages import (
    CAPABILITIES,
    LineList,
    PageReader,
    header_version,
)
from deltalog.sharing.client.retry import is_passing
from deltalog.sharing.wire.capabilities import (
    CAPABILITIES_HEADER,
    VERSION_HEADER,
    Capabilities,
    encode_capabilities,
)
from deltalog.sharing.wire.codec import encode_timestamp, parse_object, parse_timestamp
from deltalog.sharing.wire.errors import parse_error
from deltalog.sharing.wire.lines import QueryStatus
from deltalog.sharing.wire.listing import SCHEMA, SHARE, TABLE, parse_page, parse_share
from deltalog.sharing.wire.requests import TableQuery, encode_changes_query, encode_table_query

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from deltalog.clock import Clock
    from deltalog.errors import DeltaError
    from deltalog.sharing.client.http import Reply
    from deltalog.sharing.client.pages import FileCollector, TableHead, TablePage
    from deltalog.sharing.wire.codec import Codec
    from deltalog.sharing.wire.listing import ListingPage, Schema, Share, Table
    from deltalog.sharing.wire.profile import Profile
    from deltalog.sharing.wire.requests import ChangesQuery

T = TypeVar("T")
C = TypeVar("C", bound="FileCollector")


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporaryCredentials:
    """Credentials for a table's directory.

    Args:
        kind: `awsTempCredentials`, `azureUserDelegationSas` or `gcpOauthToken`.
        values: members of the credentials, by the protocol's names.
    """

    location: str
    kind: str
    values: Mapping[str, str] = field(repr=False)
    expiration_ms: int | None = None


class AsyncRestClient:
    """A sharing server, for one profile.

    Errors of all methods: `SharingAccessError` (401, 403), `ShareNotFoundError` (404),
    `SharingUnavailableError` (no answer, or 429 and 5xx to the end), `SharingError` (any other
    refusal), `MalformedMessageError` (an answer that breaks the protocol).

    Args:
        profile: where the server is, and the way in.
        options: of the connections.
        clock: for tokens and the profile's end.
        capabilities: what is told of this client in the requests about a table.
    """

    def __init__(
        self,
        profile: Profile,
        options: HttpOptions | None = None,
        *,
        clock: Clock | None = None,
        capabilities: Capabilities = CAPABILITIES,
    ) -> None:
        self.profile = profile
        self.options = options or HttpOptions()
        self.clock = clock or SystemClock()
        self.capabilities = capabilities
        self.http = Http(self.options)
        self._authenticator = make_authenticator(profile, self.clock)

    def __reduce__(self) -> tuple[Any, ...]:
        """The profile with its secrets: who reads for others must be let in too."""
        return shared_client, (self.profile, self.options, self.capabilities)

    async def list_shares(
        self, *, max_results: int | None = None, page_token: str | None = None
    ) -> ListingPage[Share]:
        """A page of the shares of this recipient.

        Protocol: List Shares
        """
        return await self._list("/shares", SHARE, "shares", max_results, page_token)

    async def get_share(self, share: str) -> Share:
        """One share.

        Protocol: Get Share
        """
        body = await self._get(f"/shares/{_name(share)}", f"find the share {share!r}")
        return parse_share(body)

    async def list_schemas(
        self, share: str, *, max_results: int | None = None, page_token: str | None = None
    ) -> ListingPage[Schema]:
        """A page of the schemas of a share.

        Protocol: List Schemas in a Share
        """
        path, what = f"/shares/{_name(share)}/schemas", f"schemas of share {share!r}"
        return await self._list(path, SCHEMA, what, max_results, page_token)

    async def list_tables(
        self,
        share: str,
        schema: str,
        *,
        max_results: int | None = None,
        page_token: str | None = None,
    ) -> ListingPage[Table]:
        """A page of the tables of a schema.

        Protocol: List Tables in a Schema
        """
        path = f"/shares/{_name(share)}/schemas/{_name(schema)}/tables"
        what = f"tables of schema {share}.{schema}"
        return await self._list(path, TABLE, what, max_results, page_token)

    async def list_all_tables(
        self, share: str, *, max_results: int | None = None, page_token: str | None = None
    ) -> ListingPage[Table]:
        """A page of the tables of a share, whatever their schemas.

        Protocol: List all Tables in a Share
        """
        path, what = f"/shares/{_name(share)}/all-tables", f"tables of share {share!r}"
        return await self._list(path, TABLE, what, max_results, page_token)

    async def table_version(self, table: Table, starting_timestamp_ms: int | None = None) -> int:
        """The latest version, or the first at or after a moment.

        Protocol: Query Table Version
        """
        parameters = _present(startingTimestamp=_moment(starting_timestamp_ms))
        request = self._request(
            _path(table, "version"), f"get the version of {_of(table)}", parameters
        )

        async def read(reply: Reply) -> int:
            await reply.read()
            found = header_version(reply.headers, request.what)
            if found is None:
                raise MalformedMessageError(
                    f"{request.what}: the answer lacks the header {VERSION_HEADER}"
                )
            return found

        return await self._fetch(request, read)

    async def table_metadata(
        self, table: Table, *, version: int | None = None, timestamp_ms: int | None = None
    ) -> TableHead:
        """Protocol, metadata and version.

        Protocol: Query Table Metadata
        """
        parameters = _present(
            version=None if version is None else str(version), timestamp=_moment(timestamp_ms)
        )
        what = f"get the metadata of {_of(table)}"
        request = self._request(_path(table, "metadata"), what, parameters)
        page = await self._page(self._about_table(request), LineList, ends=False)
        if isinstance(page, QueryStatus):
            raise MalformedMessageError(f"{what}: the server answered with a query's status")
        return page.head

    async def query_table(
        self, table: Table, query: TableQuery, collector: Callable[[], C]
    ) -> TablePage[C] | QueryStatus:
        """A page of the files of a version, or of the changes from a version on.

        Args:
            table: which.
            query: what is wanted of it.
            collector: makes what takes the file lines; a page that broke off is read anew.

        Protocol: Read Data from a Table
        """
        request = self._request(_path(table, "query"), f"query {_of(table)}")
        return await self._page(self._about_table(request, encode_table_query(query)), collector)

    async def poll_query(
        self,
        table: Table,
        query_id: str,
        collector: Callable[[], C],
        *,
        max_files: int | None = None,
        page_token: str | None = None,
    ) -> TablePage[C] | QueryStatus:
        """What has become of a query that goes on under an id.

        Protocol: Asynchronous queries
        """
        path = _path(table, f"queries/{_name(query_id)}")
        body = encode_table_query(TableQuery(max_files=max_files, page_token=page_token))
        request = self._request(path, f"query {_of(table)}")
        return await self._page(self._about_table(request, body), collector)

    async def query_changes(
        self, table: Table, query: ChangesQuery, collector: Callable[[], C]
    ) -> TablePage[C]:
        """A page of the change data feed.

        Protocol: Read Change Data Feed from a Table
        """
        what = f"read the changes of {_of(table)}"
        request = self._request(_path(table, "changes"), what, encode_changes_query(query))
        page = await self._page(self._about_table(request), collector)
        if isinstance(page, QueryStatus):
            raise MalformedMessageError(f"{what}: the server answered with a query's status")
        return page

    async def temporary_credentials(
        self, table: Table, location: str | None = None
    ) -> TemporaryCredentials:
        """Credentials for the table's directory, from servers that give such.

        Protocol: Generate Temporary Table Credentials
        """
        path = _path(table, "temporary-table-credentials")
        what = f"get credentials for {_of(table)}"
        body = b"{}" if location is None else dumps({"location": location})
        node = parse_object(await self._get(path, what, body), "credentials")
        return _credentials(node.child("credentials", lambda inner: inner) or node)

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        await self.http.close()

    async def _list(
        self,
        path: str,
        codec: Codec[T],
        what: str,
        max_results: int | None,
        page_token: str | None,
    ) -> ListingPage[T]:
        parameters = _present(
            maxResults=None if max_results is None else str(max_results), pageToken=page_token
        )
        request = self._request(path, f"list the {what}", parameters)
        return parse_page(await self._fetch(request, _read), codec, what)

    async def _get(self, path: str, what: str, body: bytes | None = None) -> bytes:
        request = self._request(path, what)
        if body is not None:
            request = _posting(request, body)
        return await self._fetch(request, _read)

    def _request(
        self, path: str, what: str, parameters: Mapping[str, str] | None = None
    ) -> Request:
        query = f"?{urlencode(parameters, quote_via=quote)}" if parameters else ""
        return Request(what=what, url=f"{self.profile.endpoint}{path}{query}")

    def _about_table(self, request: Request, body: bytes | None = None) -> Request:
        headers = {CAPABILITIES_HEADER: encode_capabilities(self.capabilities)}
        request = replace(request, headers={**request.headers, **headers})
        return request if body is None else _posting(request, body)

    async def _page(
        self, request: Request, collector: Callable[[], C], *, ends: bool = True
    ) -> TablePage[C] | QueryStatus:
        async def read(reply: Reply) -> TablePage[C] | QueryStatus:
            reader = PageReader(reply.headers, request.what, collector(), self.capabilities)
            async for lines in reply.blocks():
                reader.take(lines)
            return reader.page(ends=ends)

        return await self._fetch(request, read)

    async def _fetch(self, request: Request, read: Callable[[Reply], Awaitable[T]]) -> T:
        def refuse(status: int, headers: Mapping[str, str], body: bytes) -> DeltaError:
            del headers
            return self._error(request.what, status, body)

        async def send() -> T:
            secret = await self._authenticator.headers(self.http)
            headers = {**request.headers, **secret}
            return await self.http.fetch(replace(request, headers=headers), read, refuse)

        try:
            return await send()
        except SharingAccessError as error:
            if error.status != 401 or not self._authenticator.renew():
                raise
        # A token that was refused: once more with a new one.
        return await send()

    def _error(self, what: str, status: int, body: bytes) -> SharingError:
        told = parse_error(body)
        code = "" if told is None else told.error_code
        reason = "" if told is None else f": {told.message[:2000]}"
        named = f" ({code})" if code else ""
        text = f"cannot {what} at {self.profile.endpoint}: it answered {status}{named}{reason}"
        if status in {401, 403}:
            ended = self.profile.expiration_ms
            if ended is not None and self.clock.now_ms() >= ended:
                text += f"; the profile's token ended {encode_timestamp(ended)}: get a new profile"
            return SharingAccessError(text, status=status, error_code=code)
        if status == 404:
            return ShareNotFoundError(text, status=status, error_code=code)
        if is_passing(status):
            return SharingUnavailableError(text, status=status, error_code=code)
        return SharingError(text, status=status, error_code=code)


_SHARED: Final[weakref.WeakValueDictionary[Any, AsyncRestClient]] = weakref.WeakValueDictionary()


def shared_client(
    profile: Profile, options: HttpOptions, capabilities: Capabilities = CAPABILITIES
) -> AsyncRestClient:
    """One for the whole process, so that tokens and connections are used again."""
    key = profile, options, capabilities
    found = _SHARED.get(key)
    if found is None:
        found = _SHARED[key] = AsyncRestClient(profile, options, capabilities=capabilities)
    return found


async def _read(reply: Reply) -> bytes:
    return await reply.read()


def _posting(request: Request, body: bytes) -> Request:
    headers = {**request.headers, "Content-Type": "application/json; charset=utf-8"}
    return replace(request, method="POST", headers=headers, body=body)


def _name(name: str) -> str:
    """A name as one part of a URL's path (ledger SHARE-GEN-03)."""
    return quote(name, safe="")


def _path(table: Table, endpoint: str) -> str:
    names = (_name(table.share), _name(table.schema), _name(table.name))
    return "/shares/{}/schemas/{}/tables/{}/".format(*names) + endpoint


def _of(table: Table) -> str:
    return f"shared table {table.share}.{table.schema}.{table.name}"


def _present(**values: str | None) -> dict[str, str]:
    return {key: value for key, value in values.items() if value is not None}


def _moment(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else encode_timestamp(milliseconds)


def _credentials(node: JsonObject) -> TemporaryCredentials:
    kinds = [kind for kind in _CREDENTIAL_KINDS if isinstance(node.values.get(kind), dict)]
    if len(kinds) != 1:
        raise MalformedMessageError(
            f"{node.where}: expected one of {', '.join(_CREDENTIAL_KINDS)}, found {len(kinds)}"
        )
    return TemporaryCredentials(
        location=node.required("location", str),
        kind=kinds[0],
        values=node.mapping_of_strings(kinds[0]) or {},
        expiration_ms=_end(node.values.get("expirationTime")),
    )


def _end(value: Any) -> int | None:
    """Milliseconds, be they written as a number or as a time."""
    if isinstance(value, str):
        return parse_timestamp(value, "credentials.expirationTime")
    return value if isinstance(value, int) else None


_CREDENTIAL_KINDS: Final = ("awsTempCredentials", "azureUserDelegationSas", "gcpOauthToken")
