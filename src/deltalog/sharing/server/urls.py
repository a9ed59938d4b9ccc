"""Signed URLs for files: URLs of the store if it can sign, otherwise URLs of this server.

This module signs the server's own URLs: HMAC-SHA256 over method, owner, file and expiry. A URL is
valid for one file of one table and one recipient, until it expires. It contains the path of the
file. Before signing, the server checks that the file is in the table.

The URL parameters are named `X-Amz-…`, because the official clients recognise pre-signed URLs by
these names.
"""

from __future__ import annotations

import hmac
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deltalog.errors import DeltaError
from deltalog.sharing.server.faults import forbidden
from deltalog.sharing.server.tables import TableName
from deltalog.sharing.server.tokens import decode_base64, encode_base64
from deltalog.storage import SigningStore, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deltalog.sharing.server.recipients import Recipient

FILES_ROUTE: Final = "_files"

EXPIRY: Final = "X-Amz-Expires"

SIGNATURE: Final = "X-Amz-Signature"

_MOST_CHARACTERS: Final = 8192

_PURPOSE: Final = b"deltalog sharing urls"

_LOG: Final = logging.getLogger("deltalog.sharing")


@dataclass(frozen=True, slots=True)
class ViewFileSource:
    """The source of the rows in a file of a view.

    Args:
        version: version of the table.
        commit: the commit whose changed rows the file contains; None means the rows of `version`.
        with_feed: whether the changes are those of the change data feed.
    """

    version: int
    commit: int | None = None
    with_feed: bool = False

    def encode(self) -> str:
        """Return the source as a string for URLs; `parse` decodes it."""
        if self.commit is None:
            return str(self.version)
        return f"{self.version},{self.commit},{self.with_feed:d}"

    @classmethod
    def parse(cls, text: str) -> ViewFileSource:
        """Return the source, given the string from `encode`."""
        version, *change = (int(part) for part in text.split(","))
        return cls(version, change[0], bool(change[1])) if change else cls(version)


@dataclass(frozen=True, slots=True)
class SignedFile:
    """The file of a URL that this server has signed.

    Args:
        recipient: the recipient for whom the URL was signed.
        table: the table of the file.
        path: decoded path of the file in the table's store; for a view, its name in the file cache.
        source: for a view, the rows that the file contains; None for a file of the table itself.
        key: position of the key that signed the URL; 0 is the newest key.
    """

    recipient: str
    table: TableName
    path: str
    source: ViewFileSource | None = None
    key: int = 0


class UrlSigner:
    """Signs and checks URLs of files.

    Args:
        key: secret key of the server.
        seconds: how long a URL is valid.
        own_urls: whether to sign only URLs of this server, even if the store can sign.
        previous: keys whose URLs are still accepted, the newest first.
    """

    def __init__(
        self,
        key: bytes,
        seconds: int,
        *,
        own_urls: bool = False,
        previous: Sequence[bytes] = (),
    ) -> None:
        self._secrets = (key, *previous)
        # Derive separate keys for URLs. Otherwise, the seal of a token could be a valid signature.
        self._keys = [hmac.digest(one, _PURPOSE, "sha256") for one in self._secrets]
        self._seconds = seconds
        self._own_urls = own_urls

    def with_key(self, key: int) -> UrlSigner:
        """Return a signer that uses only the key at this position."""
        if key == 0:
            return self
        return UrlSigner(self._secrets[key], self._seconds, own_urls=self._own_urls)

    def expiry_ms(self, now_ms: int) -> int:
        """Return the expiry of URLs that are signed now."""
        return now_ms + self._seconds * 1000

    def store_signer(self, store: Store) -> Callable[[str], str] | None:
        """Return a function for the store's URL of a file; None if the store cannot sign."""
        if self._own_urls or not isinstance(store, SigningStore):
            return None
        signing, seconds = store, self._seconds
        if not (signing.can_sign and _signs(signing)):
            return None
        return lambda path: signing.signed_url(path, seconds)

    def signer(
        self,
        table: TableName,
        recipient: Recipient,
        base_url: str,
        expires_ms: int,
        source: ViewFileSource | None = None,
    ) -> Callable[[str], str]:
        """Return a function that returns this server's URL of a file, given its decoded path.

        Args:
            table: the table of the files.
            recipient: URLs are signed for this recipient.
            base_url: URL of the protocol's root on this server.
            expires_ms: when the URLs expire.
            source: for files of a view, the source of their rows.
        """
        rows = "" if source is None else source.encode()
        owner = encode_base64(f"{recipient.name}\n{table.key}\n{rows}".encode())
        start = f"{base_url}/{FILES_ROUTE}/{owner}/"
        key, expiry = self._keys[0], str(expires_ms)
        before, after = f"GET\n{owner}\n".encode(), f"\n{expiry}".encode()
        end = f"?{EXPIRY}={expiry}&{SIGNATURE}="

        def sign(path: str) -> str:
            # The names of local files may be invalid UTF-8.
            name = encode_base64(path.encode("utf-8", "surrogateescape"))
            mac = hmac.digest(key, before + name.encode() + after, "sha256").hex()
            return f"{start}{name}{end}{mac}"

        return sign

    def check(self, owner: str, name: str, expiry: str, signature: str, now_ms: int) -> SignedFile:
        """Return the file of a signed URL.

        Raises:
            Fault: 403 if the URL was not signed here, was changed, or has expired.
        """
        if max(len(owner), len(name), len(expiry), len(signature)) > _MOST_CHARACTERS:
            raise forbidden("the URL is not valid")
        # Check the signature first, so that nothing in an unsigned URL is evaluated.
        text = f"GET\n{owner}\n{name}\n{expiry}".encode("utf-8", "surrogatepass")
        given = signature.encode("utf-8", "surrogatepass")
        macs = (hmac.digest(key, text, "sha256").hex().encode() for key in self._keys)
        equal = (hmac.compare_digest(mac, given) for mac in macs)
        key = next((number for number, is_own in enumerate(equal) if is_own), None)
        if key is None:
            raise forbidden("the URL is not valid")
        recipient, table, rows = (decode_base64(owner) or b"").decode().split("\n")
        if int(expiry) <= now_ms:
            raise forbidden("the URL has expired; query the table again", recipient)
        return SignedFile(
            recipient=recipient,
            table=TableName(*table.split("/")),
            path=(decode_base64(name) or b"").decode("utf-8", "surrogateescape"),
            source=ViewFileSource.parse(rows) if rows else None,
            key=key,
        )


def _signs(store: SigningStore) -> bool:
    """Return whether the store's credentials can sign URLs; tokens often cannot.

    Cost: one signature.
    """
    try:
        store.signed_url("probe", 1)
    except DeltaError as error:
        _LOG.info("%s cannot sign URLs: %s", type(store).__name__, type(error).__name__)
        return False
    return True
