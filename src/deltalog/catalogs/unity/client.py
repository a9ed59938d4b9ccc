"""Authenticated requests to a Unity Catalog, whose answer is JSON or an error.

This module handles authentication, and the errors of both APIs. `api` contains the endpoints.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from deltalog._util.clock import Clock, SystemClock
from deltalog._util.json import JsonObject, dumps, loads
from deltalog.errors import (
    CatalogAccessError,
    CatalogError,
    CatalogUnavailableError,
    InvalidInputError,
    MalformedLogError,
    MalformedMessageError,
)
from deltalog.storage.faults import redact
from deltalog.storage.http.client import Http, HttpOptions, Request, is_retryable, run
from deltalog.storage.http.replies import HttpFaults, Reply, printable
from deltalog.storage.http.tokens import (
    FetchedTokens,
    FixedHeader,
    basic,
    client_credentials_form,
    one_word,
    token_request,
)
from deltalog.storage.options import is_sent_to_tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deltalog.errors import DeltaError
    from deltalog.storage.http.tokens import Authenticator

T = TypeVar("T")
PicklesSecrets = bool | Literal["tasks"]
"""Whether pickles contain secrets: never (False), always (True), or only inside `sent_to_tasks`
("tasks")."""

FAULTS: Final = HttpFaults(
    refused=CatalogError,
    unavailable=CatalogUnavailableError,
    denied=CatalogAccessError,
    malformed=CatalogError,
)
_UNKNOWN_OUTCOME: Final = "CommitStateUnknownException"
TOO_MANY_COMMITS: Final = "ResourceExhaustedException"
_FINAL: Final = frozenset({_UNKNOWN_OUTCOME, TOO_MANY_COMMITS})
_HINT: Final = "check client id and secret, and the URL of the token endpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A request to the catalog.

    Args:
        what: the attempted operation, as a phrase that follows "cannot" in errors.
        method: the HTTP method.
        path: the path, relative to the API's URL; use `path_of` to quote names in it.
        query: the query parameters.
        body: the JSON body; None if there is no body.
        waits: whether the request is repeated after the status 429. False if the caller must do
            something before it.
    """

    what: str
    method: str
    path: str
    query: Mapping[str, str] | None = None
    body: Mapping[str, Any] | None = None
    waits: bool = True


class UnityClient:
    """Client that sends requests to one catalog. Threads may share it.

    Every method may raise `CatalogAccessError` (status 401 or 403), `CatalogUnavailableError` (no
    response, or status 429 or 5xx, in the last attempt), or `CatalogError` (another refusal, or an
    answer that violates the protocol).

    Args:
        settings: the address of the catalog, and the data for signing in.
        options: the options of connections.
        clock: the clock for the expiry of tokens and credentials.
        pickles_secrets: whether pickles contain the token. If not, another process reads the token
            from its own environment.
        lacks_token: whether the token was not pickled and is not in the environment. Every request
            then fails.
    """

    def __init__(
        self,
        settings: UnitySettings,
        options: HttpOptions | None = None,
        *,
        clock: Clock | None = None,
        pickles_secrets: PicklesSecrets = False,
        lacks_token: bool = False,
    ) -> None:
        self.settings = settings
        self.options: HttpOptions = options or HttpOptions()
        self.clock: Clock = clock or SystemClock()
        self._pickles = pickles_secrets
        self._lacks_token = lacks_token
        self._http = Http(self.options, FAULTS)
        self._authenticator = _authenticator(settings, self.clock)

    @property
    def pickles_secrets(self) -> bool:
        """Whether a pickle that is created now may contain secrets."""
        return self._pickles is True or (self._pickles == "tasks" and is_sent_to_tasks())

    def ask(self, question: Question, parse: Callable[[JsonObject], T]) -> T:
        """Send a request; return the result of `parse` for the answer."""
        body = self.send(question)
        try:
            return parse(JsonObject(loads(body, "answer"), "answer", MalformedMessageError))
        except (MalformedLogError, InvalidInputError) as error:
            # Raise a CatalogError, because callers that read commits would mistake a
            # MalformedLogError for a damaged log.
            text = redact(str(error), self.settings.secrets)
            raise CatalogError(
                f"cannot {question.what}: a malformed answer: {text}; its address is "
                f"{self.settings.url}, expected the address of a Unity Catalog"
            ) from None

    def send(self, question: Question) -> bytes:
        """Send a request; return the body of the answer."""
        return run(self.sent, question)

    async def sent(self, question: Question) -> bytes:
        """Send a request in the event loop; see `send`."""
        if self._lacks_token:
            raise _token_stayed(self.settings.url, question.what)
        url = f"{self.settings.url}{question.path}"
        if question.query:
            url += f"?{urlencode(question.query)}"
        headers = {"Accept": "application/json"}
        body = None
        if question.body is not None:
            body = dumps(question.body)
            headers["Content-Type"] = "application/json"
        try:
            return await self._fetched(question, url, headers, body)
        # A token may have been revoked before it expires, so try again with a new token.
        except CatalogAccessError as error:
            can_renew = self._authenticator is not None and self._authenticator.renew()
            if error.status != 401 or not can_renew:
                raise
        return await self._fetched(question, url, headers, body)

    async def _fetched(
        self, question: Question, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> bytes:
        own = {} if self._authenticator is None else await self._authenticator.headers(self._http)
        request = Request(
            what=question.what,
            url=url,
            method=question.method,
            headers={**headers, **own},
            body=body,
        )

        def make_error(status: int, headers: Mapping[str, str], body: bytes) -> DeltaError:
            del headers
            return self._error(question.what, status, body)

        def repeats(status: int, body: bytes) -> bool:
            return (question.waits or status != 429) and _repeats(status, body)

        return await self._http.fetch(request, Reply.read, make_error, repeats=repeats)

    def _error(self, what: str, status: int, body: bytes) -> CatalogError:
        code, message = parse_error(body)
        text = f"cannot {what}: the catalog answered {status}"
        text += f" ({printable(code, 100)})" if code else ""
        # Redact the server's message, because it may contain secrets of the request.
        text += f": {printable(redact(message, self.settings.secrets))}" if message else ""
        text += f"; its address is {self.settings.url}"
        text += self._advice(status)
        if status in {401, 403}:
            return CatalogAccessError(text, status=status, error_code=code)
        if is_retryable(status):
            return CatalogUnavailableError(text, status=status, error_code=code)
        return CatalogError(text, status=status, error_code=code)

    def _advice(self, status: int) -> str:
        """Return what to do after a refusal; empty if only the server's message can tell."""
        if status == 403:
            return "; the catalog's owner can grant this user or service principal access"
        if status != 401:
            return ""
        if not self.settings.secrets:
            return "; set UNITY_CATALOG_TOKEN or DATABRICKS_TOKEN, or pass UnityCatalog(token=…)"
        return "; check the token or the client's id and secret: it may be wrong or expired"

    def __reduce__(self) -> tuple[Any, ...]:
        # Do not pickle the clock. Another process uses its own system clock.
        settings, options = self.settings, self.options
        if self.pickles_secrets and not self._lacks_token:
            return _client, (settings, options, self._pickles)
        has_secret = self._lacks_token or bool(settings.secrets)
        given = settings.url, settings.token_url, has_secret, options, is_sent_to_tasks()
        return _client_of_environment, given

    def __repr__(self) -> str:
        return f"UnityClient({self.settings.url!r})"


def path_of(template: str, **names: str) -> str:
    """Insert names into a path. Each name is quoted, so that it remains one part of the path.

    Raises:
        InvalidInputError: a name is `.` or `..`, which would lead to another path.
    """
    for name in names.values():
        if name in {".", ".."}:  # a server may treat even the escaped names as directories
            raise InvalidInputError(
                f"cannot use {name!r} in a request to a catalog: it means a directory"
            )
    return template.format(**{key: quote(name, safe="") for key, name in names.items()})


def parse_error(body: bytes) -> tuple[str, str]:
    """Parse code and message of an error; both are empty if a proxy or gateway sent the body.

    The Delta API returns `{"error": {"type", "message", "code"}}`. The older API returns
    `{"error_code", "message"}`.
    """
    try:
        values = loads(body, "error")
    except MalformedLogError:
        return "", ""
    if not isinstance(values, dict):
        return "", ""
    inner = values.get("error")
    found = inner if isinstance(inner, dict) else values
    code = found.get("type") or found.get("error_code") or ""
    message = found.get("message") or ""
    return (str(code)[:100], message if isinstance(message, str) else "")


def _repeats(status: int, body: bytes) -> bool:
    """Return whether the same request may succeed later without further action.

    The result is False if the client must first publish commits, or check the outcome of a commit.
    """
    return is_retryable(status) and parse_error(body)[0] not in _FINAL


def _authenticator(settings: UnitySettings, clock: Clock) -> Authenticator | None:
    try:
        if settings.token is not None:
            return FixedHeader(f"Bearer {one_word(settings.token, 'token')}")
    except MalformedMessageError as error:
        raise InvalidInputError(f"cannot use the catalog's token: {error}") from None
    if settings.client_id is None:
        return None
    login = basic(settings.client_id, settings.client_secret or "")
    form = client_credentials_form(settings.scope)
    what = "get a token for the catalog"
    return FetchedTokens(
        lambda: token_request(what, settings.token_url, form, login), clock, hint=_HINT
    )


def _client(
    settings: UnitySettings, options: HttpOptions, pickles_secrets: PicklesSecrets
) -> UnityClient:
    return UnityClient(settings, options, pickles_secrets=pickles_secrets)


def _client_of_environment(
    url: str,
    token_url: str,
    has_secret: bool,  # noqa: FBT001  # pickles pass arguments by position
    options: HttpOptions,
    is_task: bool,  # noqa: FBT001  # pickles pass arguments by position
) -> UnityClient:
    """Return a client for another process, with the secrets of that process's environment.

    If the token is missing, only a request raises an error, because most tasks send no requests.
    """
    settings = unity_settings(url, token_url=token_url)
    lacks_token = has_secret and not settings.secrets
    if lacks_token and not is_task:
        raise _token_stayed(url, "send a request")
    return UnityClient(settings, options, lacks_token=lacks_token)


def _token_stayed(url: str, what: str) -> InvalidInputError:
    return InvalidInputError(
        f"cannot use the catalog {url} in another process (to {what}): its token is not "
        "pickled; set UNITY_CATALOG_URL and UNITY_CATALOG_TOKEN there, or allow it with "
        "UnityCatalog(…, pickles_secrets=True)"
    )


# --- the address of a Unity Catalog and the data for signing in: arguments, environment variables


_API: Final = "/api/2.1/unity-catalog"
_TOKENS: Final = "/oidc/v1/token"
_SCOPE: Final = "all-apis"
# Setting → its environment variables. The first variable that is set is used.
_VARIABLES: Final = {
    "url": (
        "UNITY_CATALOG_URL",
        "DATABRICKS_HOST",
        "UNITY_WORKSPACE_URL",
        "DATABRICKS_WORKSPACE_URL",
    ),
    "token": (
        "UNITY_CATALOG_TOKEN",
        "DATABRICKS_TOKEN",
        "UNITY_ACCESS_TOKEN",
        "DATABRICKS_ACCESS_TOKEN",
    ),
    "client_id": ("DATABRICKS_CLIENT_ID", "UNITY_CLIENT_ID"),
    "client_secret": ("DATABRICKS_CLIENT_SECRET", "UNITY_CLIENT_SECRET"),
}


# Setting → the names of deltalake's storage options for it. Callers pass them in one mapping with
# the options of the store.
_OPTIONS: Final = {
    "url": "host workspace_url unity_workspace_url databricks_workspace_url databricks_host"
    " unity_catalog_url",
    "token": "access_token unity_access_token databricks_access_token databricks_token"
    " unity_catalog_token",
    "client_id": "unity_client_id databricks_client_id",
    "client_secret": "unity_client_secret databricks_client_secret",
    "allow_http": "allow_http_url unity_allow_http_url",
    "allows_local_files": "unity_allow_local_files",
}
_SETTING_OF: Final = {name: key for key, names in _OPTIONS.items() for name in names.split()}


def split_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split storage options into the settings of a catalog and the options of a store."""
    settings: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for name, value in options.items():
        setting = _SETTING_OF.get(name.lower())
        if setting is None:
            rest[name] = value
        else:
            settings[setting] = value
    return settings, rest


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitySettings:
    """The address of a catalog, and the data for signing in.

    Args:
        url: the URL of the API, without a trailing slash.
        token: the token. If None, `client_id` and `client_secret` are used, or no authentication.
        client_id: the id of a service principal, for requesting tokens.
        client_secret: the secret of the service principal.
        token_url: the URL of the endpoint for tokens.
        scope: the OAuth scope of requested tokens.
    """

    url: str
    token: str | None = field(default=None, repr=False)
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    token_url: str = ""
    scope: str = _SCOPE

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that messages must not contain."""
        return tuple(text for text in (self.token, self.client_secret) if text)


def unity_settings(
    url: str | None = None,
    *,
    token: str | None = None,
    client_id: str | None = None,
    client_secret: str | None = None,
    token_url: str | None = None,
    scope: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> UnitySettings:
    """Combine arguments and environment variables to settings.

    The token of the environment is used only for the catalog of the environment. It is never sent
    to another catalog that the caller names.

    Args:
        url: the URL of the server or of its API; None means the URL in the environment.
        token: a bearer token.
        client_id: the id of a service principal.
        client_secret: the secret of the service principal.
        token_url: the URL of the endpoint for tokens; None means Databricks' path on the same
            server.
        scope: the OAuth scope of requested tokens; None means Databricks' scope.
        environment: the environment variables; None means those of this process.

    Raises:
        InvalidInputError: no URL is set, the URL contains a login or a query, or the credentials
            contradict each other.
    """
    if token is not None and client_id is not None:
        raise InvalidInputError(
            "cannot sign in to a Unity Catalog: expected a token, or a client_id and a "
            "client_secret, found a token and a client_id"
        )
    variables = os.environ if environment is None else environment
    own = _api_url(_found("url", variables))
    base = _api_url(url) if url else own
    if not base:
        names = " or ".join(_VARIABLES["url"][:2])
        raise InvalidInputError(
            "cannot find a Unity Catalog: expected its URL, as in UnityCatalog(url), or the "
            f"variable {names}"
        )
    # A missing token is valid, because the server may need none.
    if token is None and client_id is None and _origin(base) == _origin(own):
        token = _found("token", variables) or None
        client_id = None if token else _found("client_id", variables) or None
    if client_id is not None and client_secret is None and _origin(base) == _origin(own):
        client_secret = _found("client_secret", variables) or None
    if client_id is not None and not client_secret:
        raise InvalidInputError("cannot sign in with a client_id but without a client_secret")
    if client_secret is not None and client_id is None:
        raise InvalidInputError("cannot sign in with a client_secret but without a client_id")
    return UnitySettings(
        url=base,
        token=token,
        client_id=client_id,
        client_secret=client_secret,
        token_url=token_url or f"{_origin(base)}{_TOKENS}",
        scope=scope or _SCOPE,
    )


def _found(setting: str, variables: Mapping[str, str]) -> str:
    return next((text for name in _VARIABLES[setting] if (text := variables.get(name))), "")


def _api_url(url: str) -> str:
    if not url:
        return ""
    url = url.strip()
    if "://" not in url:
        url = f"https://{url}"  # Databricks' tools accept a host without a scheme
    url = url.rstrip("/")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise InvalidInputError("cannot use the given URL as a catalog's URL") from None
    if not parts.hostname or "@" in parts.netloc or parts.query or parts.fragment:
        raise InvalidInputError(
            "cannot use the given URL as a catalog's URL: expected a scheme, a host and perhaps a "
            "path; pass a token separately"
        )
    return url if "/api/" in f"{parts.path}/" else f"{url}{_API}"


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.lower()}"
