"""The REST API of a sharing server: every endpoint as a coroutine method.

This module builds URLs, parameters and headers, and raises the errors of failed responses. `pages`
reads the lines of a response about a table.

Protocol: REST APIs
"""

from __future__ import annotations

import re
import uuid
import weakref
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote, urlencode

from deltalog._util.clock import Clock, SystemClock
from deltalog._util.json import JsonObject, dumps
from deltalog.errors import (
    DeltaError,
    InvalidInputError,
    MalformedMessageError,
    ShareNotFoundError,
    SharingAccessError,
    SharingError,
    SharingUnavailableError,
)
from deltalog.sharing.client.pages import CAPABILITIES, LineList, PageReader, parse_version_header
from deltalog.sharing.wire.codec import encode_timestamp, parse_object, parse_timestamp
from deltalog.sharing.wire.lines import SCHEMA, SHARE, TABLE, QueryStatus, parse_page, parse_share
from deltalog.sharing.wire.profile import BasicLogin, BearerToken, ClientCredentials, PrivateKeyJwt
from deltalog.sharing.wire.requests import (
    CAPABILITIES_HEADER,
    VERSION_HEADER,
    Capabilities,
    ErrorBody,
    TableQuery,
    encode_capabilities,
    encode_changes_query,
    encode_table_query,
    parse_error,
)
from deltalog.storage.http.client import Http, HttpOptions, Request, is_retryable
from deltalog.storage.http.replies import Budget, HttpFaults, Reply, printable, shown_location
from deltalog.storage.http.tokens import (
    FetchedTokens,
    FixedHeader,
    basic,
    client_credentials_form,
    one_word,
    token_request,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from deltalog.sharing.client.pages import FileCollector, TableHead, TablePage
    from deltalog.sharing.wire.codec import MessageCodec
    from deltalog.sharing.wire.lines import ListingPage, Schema, Share, Table
    from deltalog.sharing.wire.profile import Profile
    from deltalog.sharing.wire.requests import ChangesQuery

T = TypeVar("T")
C = TypeVar("C", bound="FileCollector")

_CREDENTIAL_KINDS: Final = ("awsTempCredentials", "azureUserDelegationSas", "gcpOauthToken")


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporaryTableCredentials:
    """Credentials for a table's directory.

    Args:
        kind: `awsTempCredentials`, `azureUserDelegationSas` or `gcpOauthToken`.
        values: the members of the credentials, by their names in the protocol.
    """

    location: str
    kind: str
    values: Mapping[str, str] = field(repr=False)
    expiration_ms: int | None = None


class AsyncRestClient:
    """A sharing server, for one profile.

    All methods raise `SharingAccessError` (401, 403), `ShareNotFoundError` (404),
    `SharingUnavailableError` (no response, or 429 or 5xx in the last attempt), `SharingError` (any
    other error status) and `MalformedMessageError` (a response that breaks the protocol).

    Args:
        profile: the server's address and the recipient's credentials.
        options: options of the connections.
        clock: the current time, for checking whether tokens and the profile have expired.
        capabilities: capabilities to send with each request about a table.
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
        self.options: HttpOptions = options or HttpOptions()
        self.clock: Clock = clock or SystemClock()
        self.capabilities = capabilities
        self.http: Http = Http(self.options, SHARING_FAULTS)
        self._authenticator = make_authenticator(profile, self.clock)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the profile with its secrets, because the other process must also authenticate."""
        # The clock is not pickled, because the other process must use its own clock.
        return shared_client, (self.profile, self.options, self.capabilities)

    async def list_shares(
        self,
        *,
        max_results: int | None = None,
        page_token: str | None = None,
        budget: Budget | None = None,
    ) -> ListingPage[Share]:
        """Return a page of the shares that this recipient can access.

        Protocol: List Shares
        """
        asked = {"maxResults": max_results, "pageToken": page_token}
        return await self._list("/shares", SHARE, "shares", asked, budget)

    async def get_share(self, share: str) -> Share:
        """Return one share.

        Protocol: Get Share
        """
        request = self._request(f"/shares/{_quoted(share)}", f"find the share {share!r}")
        return parse_share(await self._fetch(request, Reply.read))

    async def list_schemas(
        self,
        share: str,
        *,
        max_results: int | None = None,
        page_token: str | None = None,
        budget: Budget | None = None,
    ) -> ListingPage[Schema]:
        """Return a page of the schemas of a share.

        Protocol: List Schemas in a Share
        """
        path, what = f"/shares/{_quoted(share)}/schemas", f"schemas of share {share!r}"
        asked = {"maxResults": max_results, "pageToken": page_token}
        return await self._list(path, SCHEMA, what, asked, budget)

    async def list_tables(
        self,
        share: str,
        schema: str,
        *,
        max_results: int | None = None,
        page_token: str | None = None,
        budget: Budget | None = None,
    ) -> ListingPage[Table]:
        """Return a page of the tables of a schema.

        Protocol: List Tables in a Schema
        """
        path = f"/shares/{_quoted(share)}/schemas/{_quoted(schema)}/tables"
        what = f"tables of schema {share}.{schema}"
        asked = {"maxResults": max_results, "pageToken": page_token}
        return await self._list(path, TABLE, what, asked, budget)

    async def list_all_tables(
        self,
        share: str,
        *,
        max_results: int | None = None,
        page_token: str | None = None,
        budget: Budget | None = None,
    ) -> ListingPage[Table]:
        """Return a page of the tables of a share, in all of its schemas.

        Protocol: List all Tables in a Share
        """
        path, what = f"/shares/{_quoted(share)}/all-tables", f"tables of share {share!r}"
        asked = {"maxResults": max_results, "pageToken": page_token}
        return await self._list(path, TABLE, what, asked, budget)

    async def table_version(self, table: Table, starting_timestamp_ms: int | None = None) -> int:
        """Return the latest version, or the first version at or after a time.

        Protocol: Query Table Version
        """
        request = self._request(
            _path(table, "version"),
            f"get the version of {_named(table)}",
            {"startingTimestamp": _timestamp(starting_timestamp_ms)},
        )

        async def read(reply: Reply) -> int:
            # The body is empty. Reading it to the end allows the connection to be reused.
            await reply.read()
            version = parse_version_header(reply.headers, request.what)
            if version is None:
                raise MalformedMessageError(
                    f"{request.what}: the response lacks the header {VERSION_HEADER}"
                )
            return version

        return await self._fetch(request, read)

    async def table_metadata(
        self, table: Table, *, version: int | None = None, timestamp_ms: int | None = None
    ) -> TableHead:
        """Return protocol, metadata and version of the latest or the requested version.

        Protocol: Query Table Metadata
        """
        request = self._request(
            _path(table, "metadata"),
            f"get the metadata of {_named(table)}",
            {"version": version, "timestamp": _timestamp(timestamp_ms)},
            is_about_table=True,
        )
        page = await self._page(request, LineList, has_end=False)
        return _completed(page, request).head

    async def query_table(
        self,
        table: Table,
        query: TableQuery,
        collector: Callable[[], C],
        *,
        budget: Budget | None = None,
    ) -> TablePage[C] | QueryStatus:
        """Return a page of the files of a version, or of the changes since a version.

        Args:
            table: a table of a share.
            query: the version or range, hints, and the page.
            collector: returns a new object that collects the file lines. If the connection breaks,
                the page is requested again, with another object.
            budget: the budget for retries, shared by all pages; None means a new budget for this
                page.

        Protocol: Read Data from a Table
        """
        body = encode_table_query(query)
        what = f"query {_named(table)}"
        request = self._request(_path(table, "query"), what, body=body, is_about_table=True)
        return await self._page(request, collector, budget)

    async def poll_query(
        self,
        table: Table,
        query_id: str,
        collector: Callable[[], C],
        *,
        max_files: int | None = None,
        page_token: str | None = None,
        budget: Budget | None = None,
    ) -> TablePage[C] | QueryStatus:
        """Return a page of an asynchronous query, or its status while it runs.

        Protocol: Asynchronous queries
        """
        body = encode_table_query(TableQuery(max_files=max_files, page_token=page_token))
        path, what = _path(table, f"queries/{_quoted(query_id)}"), f"query {_named(table)}"
        request = self._request(path, what, body=body, is_about_table=True)
        return await self._page(request, collector, budget)

    async def query_changes(
        self,
        table: Table,
        query: ChangesQuery,
        collector: Callable[[], C],
        *,
        budget: Budget | None = None,
    ) -> TablePage[C]:
        """Return a page of the change data feed.

        Protocol: Read Change Data Feed from a Table
        """
        request = self._request(
            _path(table, "changes"),
            f"read the changes of {_named(table)}",
            encode_changes_query(query),
            is_about_table=True,
        )
        return _completed(await self._page(request, collector, budget), request)

    async def temporary_credentials(
        self, table: Table, location: str | None = None
    ) -> TemporaryTableCredentials:
        """Return credentials for the table's directory, from servers that issue them.

        Protocol: Generate Temporary Table Credentials
        """
        request = self._request(
            _path(table, "temporary-table-credentials"),
            f"get credentials for {_named(table)}",
            body=b"{}" if location is None else dumps({"location": location}),
        )
        node = parse_object(await self._fetch(request, Reply.read), "credentials")
        return _parse_credentials(node.child("credentials", lambda inner: inner) or node)

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        await self.http.close()

    async def _list(
        self,
        path: str,
        codec: MessageCodec[T],
        what: str,
        parameters: Mapping[str, str | int | None],
        budget: Budget | None,
    ) -> ListingPage[T]:
        request = self._request(path, f"list the {what}", parameters)
        return parse_page(await self._fetch(request, Reply.read, budget), codec, what)

    def _request(
        self,
        path: str,
        what: str,
        parameters: Mapping[str, str | int | None] | None = None,
        *,
        body: bytes | None = None,
        is_about_table: bool = False,
    ) -> Request:
        given = {name: value for name, value in (parameters or {}).items() if value is not None}
        query = f"?{urlencode(given, quote_via=quote)}" if given else ""
        headers = {}
        if is_about_table:
            headers[CAPABILITIES_HEADER] = encode_capabilities(self.capabilities)
        if body is not None:
            headers["Content-Type"] = "application/json; charset=utf-8"
        return Request(
            what=what,
            url=f"{self.profile.endpoint}{path}{query}",
            method="GET" if body is None else "POST",
            headers=headers,
            body=body,
        )

    async def _page(
        self,
        request: Request,
        collector: Callable[[], C],
        budget: Budget | None = None,
        *,
        has_end: bool = True,
    ) -> TablePage[C] | QueryStatus:
        async def read(reply: Reply) -> TablePage[C] | QueryStatus:
            reader = PageReader(reply.headers, request.what, collector(), self.capabilities)
            async for lines in reply.blocks():
                reader.take(lines)
            return reader.page(has_end=has_end)

        return await self._fetch(request, read, budget)

    async def _fetch(
        self,
        request: Request,
        read: Callable[[Reply], Awaitable[T]],
        budget: Budget | None = None,
    ) -> T:
        def make_error(status: int, headers: Mapping[str, str], body: bytes) -> DeltaError:
            del headers
            return self._error(request.what, status, body)

        async def send() -> T:
            headers = {**request.headers, **await self._authenticator.headers(self.http)}
            own = replace(request, headers=headers)
            return await self.http.fetch(own, read, make_error, budget)

        try:
            try:
                return await send()
            # A token may be revoked before it expires. Try again once, with a new token.
            except SharingAccessError as error:
                if error.status != 401 or not self._authenticator.renew():
                    raise
            return await send()
        except DeltaError as error:
            expiry = self._expiry()
            if not expiry or expiry in str(error):
                raise
            raise error.with_message(f"{error}{expiry}") from error.__cause__

    def _expiry(self) -> str:
        """Return advice if the profile has expired; otherwise ""."""
        expired = self.profile.expiration_ms
        if expired is None or self.clock.now_ms() < expired:
            return ""
        return f"; the profile's token expired {encode_timestamp(expired)}: get a new profile"

    def _advice_on_access(self, status: int) -> str:
        if expiry := self._expiry():
            return expiry
        if status == 403:
            return "; ask the provider of the share for access"
        return (
            "; the server does not accept the profile's token: check that the endpoint is the one "
            "for which it was issued, or ask the provider of the share for a new profile"
        )

    def _error(self, what: str, status: int, body: bytes) -> SharingError:
        found = parse_error(body) or ErrorBody(error_code="", message="")
        code = printable(found.error_code, 100)
        text = f"cannot {what} at {shown_location(self.profile.endpoint)}: it answered {status}"
        text += f" ({code})" if code else ""
        text += f": {printable(found.message)}" if found.message else ""
        if status in {401, 403}:
            text += self._advice_on_access(status)
            return SharingAccessError(text, status=status, error_code=code)
        if _OF_HISTORY.search(found.message):
            text += _ON_HISTORY
        # Servers also send 404 if the object exists but is not shared with this recipient.
        if status == 404:
            if not code or "no such endpoint" in found.message:  # not about a share or table
                text += (
                    "; check the endpoint in the profile: it is the URL of the server with its "
                    "path, usually https://<host>/delta-sharing/"
                )
            return ShareNotFoundError(text, status=status, error_code=code)
        if is_retryable(status):
            return SharingUnavailableError(text, status=status, error_code=code)
        return SharingError(text, status=status, error_code=code)


_OF_HISTORY: Final = re.compile(
    r"history|change data feed|\bCDF\b|changes are not shared", re.IGNORECASE
)
_ON_HISTORY: Final = (
    "; only the provider can share changes and older versions: with historyShared: true of the "
    "table in the configuration of a deltalog server, or ALTER SHARE … ADD TABLE … WITH HISTORY in "
    "Databricks, and with delta.enableChangeDataFeed = true of the table for changes"
)
_SHARED: Final[weakref.WeakValueDictionary[Any, AsyncRestClient]] = weakref.WeakValueDictionary()


def shared_client(
    profile: Profile, options: HttpOptions, capabilities: Capabilities = CAPABILITIES
) -> AsyncRestClient:
    """Return this process's client for these arguments; its callers share its connections."""
    key = profile, options, capabilities
    found = _SHARED.get(key)
    if found is None:
        found = _SHARED[key] = AsyncRestClient(profile, options, capabilities=capabilities)
    return found


def _quoted(name: str) -> str:
    """Return a name as one element of a URL's path (requirement SHARE-GEN-03)."""
    return quote(name, safe="")


def _path(table: Table, endpoint: str) -> str:
    share, schema, name = _quoted(table.share), _quoted(table.schema), _quoted(table.name)
    return f"/shares/{share}/schemas/{schema}/tables/{name}/{endpoint}"


def _named(table: Table) -> str:
    return f"shared table {table.full_name}"


def _timestamp(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else encode_timestamp(milliseconds)


def _completed(page: TablePage[C] | QueryStatus, request: Request) -> TablePage[C]:
    if isinstance(page, QueryStatus):
        raise MalformedMessageError(f"{request.what}: the server sent a query status instead")
    return page


def _parse_credentials(node: JsonObject) -> TemporaryTableCredentials:
    kinds = [kind for kind in _CREDENTIAL_KINDS if isinstance(node.values.get(kind), dict)]
    if len(kinds) != 1:
        raise MalformedMessageError(
            f"{node.where}: expected one of {', '.join(_CREDENTIAL_KINDS)}, found {len(kinds)}"
        )
    expiration = node.values.get("expirationTime")
    if isinstance(expiration, str):
        expiration = parse_timestamp(expiration, "credentials.expirationTime")
    return TemporaryTableCredentials(
        location=node.required("location", str),
        kind=kinds[0],
        values=node.mapping_of_strings(kinds[0]) or {},
        expiration_ms=expiration if isinstance(expiration, int) else None,
    )


# --- Authentication: the `Authorization` header of a profile, and requests for its tokens


_ASSERTION_LIFETIME_S: Final = 120
_JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_WHAT: Final = "get a token from the profile's token endpoint"
_HINT: Final = "ask the provider for a new profile if its secret has expired"
SHARING_FAULTS: Final = HttpFaults(
    refused=SharingError,
    unavailable=SharingUnavailableError,
    denied=SharingAccessError,
    malformed=MalformedMessageError,
)
"""The errors of requests to a sharing server."""


def make_authenticator(profile: Profile, clock: Clock) -> FixedHeader | FetchedTokens:
    """Return the authentication of a profile's requests."""
    match profile.credentials:
        case BearerToken(token=token):
            return FixedHeader(f"Bearer {one_word(token, 'profile.bearerToken')}")
        case BasicLogin(username=username, password=password):
            return FixedHeader(basic(username, password))
        case ClientCredentials() as client:
            return FetchedTokens(lambda: _token_request(client), clock, hint=_HINT)
        case PrivateKeyJwt() as key:
            return FetchedTokens(lambda: _signed_request(key, clock), clock, hint=_HINT)


def _token_request(credentials: ClientCredentials) -> Request:
    login = basic(credentials.client_id, credentials.client_secret)
    form = client_credentials_form(credentials.scope)
    return token_request(_WHAT, credentials.token_endpoint, form, login)


def _signed_request(credentials: PrivateKeyJwt, clock: Clock) -> Request:
    form = {"grant_type": _JWT_BEARER, "assertion": _assertion(credentials, clock)}
    return token_request(_WHAT, credentials.token_endpoint, form, None)


def _assertion(credentials: PrivateKeyJwt, clock: Clock) -> str:
    """Return a signed JWT that identifies the client; it is valid for two minutes."""
    now_s = clock.now_ms() // 1000
    claims = {
        "aud": credentials.issuer,
        "iss": credentials.client_id,
        "iat": now_s,
        "exp": now_s + _ASSERTION_LIFETIME_S,
        "jti": str(uuid.uuid4()),
        "scope": credentials.scope,
        # The audience of the requested token is called `resource` in RFC 8707.
        "resource": credentials.audience,
    }
    return _sign({name: value for name, value in claims.items() if value}, credentials)


def _sign(claims: Mapping[str, object], credentials: PrivateKeyJwt) -> str:
    try:
        import jwt  # noqa: PLC0415  # only this kind of profile needs it
    except ImportError as error:  # pragma: no cover -- the tests' environment has it
        raise InvalidInputError(
            "cannot sign in with a private key: PyJWT is not installed; "
            "pip install 'deltalog[sharing]'"
        ) from error
    path = Path(credentials.private_key_file)
    try:
        key = path.read_bytes()
        return jwt.encode(
            dict(claims), key, algorithm=credentials.algorithm, headers={"kid": credentials.key_id}
        )
    except OSError as error:
        raise InvalidInputError(
            f"cannot sign in with the private key {path.name!r}: {error.strerror}"
        ) from None
    except (jwt.PyJWTError, ValueError, TypeError, NotImplementedError) as error:
        raise InvalidInputError(
            f"cannot sign in with the private key {path.name!r} and {credentials.algorithm!r}: "
            f"{type(error).__name__}; expected a PEM file with a key for that algorithm"
        ) from None
