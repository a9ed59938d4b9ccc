"""The `Authorization` header of requests, and fetching tokens for it.

A token is fetched again shortly before it expires, and after a server has refused it. Errors and
`repr` contain no secrets.

Protocol: RFC 6749 (client credentials)
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlencode

from deltalog._util.argument_types import kind_of
from deltalog._util.json import JsonObject, loads
from deltalog.errors import (
    DeltaError,
    InvalidInputError,
    MalformedLogError,
    MalformedMessageError,
)
from deltalog.storage.http.client import Http, Request
from deltalog.storage.http.replies import HttpFaults, Reply, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deltalog._util.clock import Clock

_RENEWAL_MARGIN_MS: Final = 600_000


class Authenticator(Protocol):
    """Authenticates requests."""

    async def headers(self, http: Http) -> Mapping[str, str]:
        """Return the headers that are sent with a request."""
        ...

    def renew(self) -> bool:
        """Drop a refused token; return whether there may be a new one."""
        ...


@dataclass(frozen=True, slots=True)
class FixedHeader:
    """Authenticates every request with the same header."""

    header: str = field(repr=False)

    async def headers(self, http: Http) -> Mapping[str, str]:
        """Return the headers that are sent with a request."""
        del http
        return {"Authorization": self.header}

    def renew(self) -> bool:
        """Return False, because there is only one header."""
        return False


@dataclass(frozen=True, slots=True)
class _Token:
    text: str = field(repr=False)
    renew_at_ms: int


class FetchedTokens:
    """Authenticates requests with tokens from a token endpoint.

    A token is used until shortly before it expires.

    Args:
        make_request: returns the request for a new token; called for each token.
        clock: the clock for the expiry of tokens.
        hint: advice for the error if the endpoint refuses.
    """

    def __init__(self, make_request: Callable[[], Request], clock: Clock, *, hint: str) -> None:
        self._make_request = make_request
        self._clock = clock
        self._hint = hint
        self._token: _Token | None = None

    async def headers(self, http: Http) -> Mapping[str, str]:
        """Return the headers that are sent with a request."""
        token = self._token
        if token is None or self._clock.now_ms() >= token.renew_at_ms:
            self._token = token = await self._fetch(http)
        return {"Authorization": f"Bearer {token.text}"}

    def renew(self) -> bool:
        """Drop a refused token, and return True, because a new token will be fetched."""
        self._token = None
        return True

    async def _fetch(self, http: Http) -> _Token:
        faults = http.faults

        def refused(status: int, headers: Mapping[str, str], body: bytes) -> DeltaError:
            del headers
            error = faults.denied(
                f"cannot get a token: the token endpoint answered {status}{_reason(body)}; "
                f"{self._hint}"
            )
            error.status = status  # type: ignore[attr-defined]  # DeltaError has no `status`
            return error

        return self._parse(await http.fetch(self._make_request(), Reply.read, refused), faults)

    def _parse(self, body: bytes, faults: HttpFaults) -> _Token:
        try:
            node = _parse_object(body)
            lifetime = node.values.get("expires_in")
            # RFC 6749, section 5.1: `expires_in` is optional. Some issuers send this number as a
            # string.
            try:
                lifetime_ms = 3_600_000 if lifetime is None else int(lifetime) * 1000
            except (TypeError, ValueError, OverflowError):
                raise MalformedMessageError(
                    f"token.expires_in: expected seconds, found {str(lifetime)[:40]!r}"
                ) from None
            # Do not use `required`, whose message could show the token.
            text = node.values.get("access_token")
            if not isinstance(text, str):
                raise MalformedMessageError("token.access_token: expected a string")
            token = one_word(text, "token.access_token")
        except MalformedLogError as error:
            raise faults.malformed(str(error)) from None
        early_ms = min(_RENEWAL_MARGIN_MS, lifetime_ms // 2)
        return _Token(token, self._clock.now_ms() + lifetime_ms - early_ms)


def token_request(what: str, url: str, form: Mapping[str, str], login: str | None) -> Request:
    """Return the request for a token.

    Args:
        what: the purpose, to follow "cannot" in an error.
        url: the URL of the token endpoint.
        form: the fields of the request.
        login: the `Authorization` header; None if the form contains the credentials.
    """
    headers = {
        "Accept": "application/json",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    if login is not None:
        headers["Authorization"] = login
    return Request(
        what=what,
        url=url,
        method="POST",
        headers=headers,
        body=urlencode(form).encode(),
        is_secret=True,
    )


def client_credentials_form(scope: str | None) -> dict[str, str]:
    """Return the form of a token request with a client id and a secret."""
    form = {"grant_type": "client_credentials"}
    return {**form, "scope": scope} if scope else form


def basic(name: str, secret: str) -> str:
    """Return the `Authorization` header for a name and a password (HTTP basic authentication)."""
    return f"Basic {base64.b64encode(f'{name}:{secret}'.encode()).decode()}"


def one_word(token: str, where: str) -> str:
    """Return a token, after checking that it is valid in a header.

    Raises:
        InvalidInputError: the token is not a string.
        MalformedMessageError: the token contains characters that are not valid in a header.
    """
    given: object = token
    if not isinstance(given, str):  # the error must not contain the token
        raise InvalidInputError(f"{where}: expected a string, found {kind_of(given)}")
    if not (token.isascii() and token.isprintable()):
        raise MalformedMessageError(f"{where}: expected a token of printable ASCII characters")
    return token


def _parse_object(body: bytes) -> JsonObject:
    try:
        values = loads(body, "token")
    except MalformedLogError as error:
        raise MalformedMessageError(str(error)) from None
    return JsonObject(values, "token", MalformedMessageError)


def _reason(body: bytes) -> str:
    """Return OAuth's error code (RFC 6749, 5.2), which contains no secret."""
    try:
        found = _parse_object(body).optional("error", str)
    except MalformedMessageError:
        return ""
    return f" ({printable(found, 60)})" if found else ""
