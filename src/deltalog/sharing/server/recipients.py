"""Who asks: tokens, OAuth subjects, addresses.

Owns authentication. Tokens are kept as their SHA-256 only and compared in constant time; whatever
is wrong with one, the answer is the same.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING

from deltalog.sharing.server.faults import forbidden, unauthenticated
from deltalog.sharing.server.tokens import token_digest

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalog.sharing.server.config import RecipientConfig, ServerConfig, TokenConfig


@dataclass(frozen=True, slots=True)
class Recipient:
    """Who asks, and what he may see.

    Args:
        name: as the configuration has it.
        shares: names in lower case; None is every share.
    """

    name: str
    shares: frozenset[str] | None

    def may_see(self, share: str) -> bool:
        """Whether a share was given to him."""
        return self.shares is None or share.casefold() in self.shares


class Recipients:
    """All recipients of a server.

    Args:
        config: of the server.
        verify: gives the subject of a signed token, or None if it is not valid.
    """

    def __init__(
        self, config: ServerConfig, verify: Callable[[str], str | None] | None = None
    ) -> None:
        self._verify = verify
        self._by_digest: dict[str, tuple[RecipientConfig, TokenConfig]] = {}
        self._by_subject: dict[str, RecipientConfig] = {}
        self._by_name: dict[str, RecipientConfig] = {}
        for one in config.recipients:
            self._by_name[one.name] = one
            for token in one.tokens:
                self._by_digest[token.digest] = (one, token)
            for subject in one.subjects:
                self._by_subject[subject] = one

    def authenticate(
        self, authorization: str | None, address: str | None, now_ms: int
    ) -> Recipient:
        """Who sends a request.

        Args:
            authorization: the header.
            address: from which the request came.
            now_ms: the present moment.

        Raises:
            Fault: 401 without a valid token, 403 from an address that is not his.
        """
        scheme, _, token = (authorization or "").strip().partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            raise unauthenticated()
        found = self._by_token(token, now_ms) or self._by_signature(token)
        if found is None:
            raise unauthenticated()
        if found.networks and not _is_inside(address, found):
            raise forbidden("requests from this address are not allowed")
        return _recipient(found)

    def find(self, name: str) -> Recipient | None:
        """A recipient by name: for what was handed out to him earlier."""
        found = self._by_name.get(name)
        return None if found is None else _recipient(found)

    def _by_token(self, token: str, now_ms: int) -> RecipientConfig | None:
        digest = token_digest(token)
        entry = self._by_digest.get(digest)
        if entry is None or not hmac.compare_digest(entry[1].digest, digest):
            return None
        expires_ms = entry[1].expires_ms
        return None if expires_ms is not None and expires_ms <= now_ms else entry[0]

    def _by_signature(self, token: str) -> RecipientConfig | None:
        if self._verify is None or token.count(".") != 2:
            return None
        subject = self._verify(token)
        return None if subject is None else self._by_subject.get(subject)


def _recipient(config: RecipientConfig) -> Recipient:
    shares = config.shares
    seen = None if shares is None else frozenset(name.casefold() for name in shares)
    return Recipient(config.name, seen)


def _is_inside(address: str | None, config: RecipientConfig) -> bool:
    try:
        found = ip_address(address or "")
    except ValueError:
        return False
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return any(found.version == net.version and found in net for net in config.networks)
