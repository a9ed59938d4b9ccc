"""Signed URLs for files: the store's own where it can sign, else ones that lead to this server.

Owns the signature of our own URLs: HMAC-SHA256 over method, owner, file and expiry. A URL opens one
file of one table for one recipient for a while, and nothing else. Which file it is stands in the
URL; that the file lies inside of the table was checked before it was signed.

The parameter is called `X-Amz-Signature` because the official clients take a URL for remote only if
its query has a name that they know.
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
from deltalog.storage import SigningStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalog.sharing.server.recipients import Recipient
    from deltalog.sharing.server.tables import SharedTable

FILES_ROUTE: Final = "_files"
EXPIRY: Final = "X-Amz-Expires"
SIGNATURE: Final = "X-Amz-Signature"
_MOST_CHARACTERS: Final = 8192

_LOG = logging.getLogger("deltalog.sharing")


@dataclass(frozen=True, slots=True)
class ShownOf:
    """Where the rows of a file come from that was written for a share of a part of a table.

    Args:
        version: that the part is shown of.
        commit: whose changes are shown; None for the rows of `version`.
        with_feed: the changes are those of the change data feed.
    """

    version: int
    commit: int | None = None
    with_feed: bool = False

    @property
    def text(self) -> str:
        """For URLs; `parse` turns it back."""
        if self.commit is None:
            return str(self.version)
        return f"{self.version},{self.commit},{self.with_feed:d}"

    @classmethod
    def parse(cls, text: str) -> ShownOf | None:
        """What `text` gave; None for files as they are."""
        if not text:
            return None
        version, *change = (int(part) for part in text.split(","))
        return cls(version, change[0], bool(change[1])) if change else cls(version)


@dataclass(frozen=True, slots=True)
class SignedFile:
    """What one of our own URLs names.

    Args:
        recipient: for whom it was signed.
        table: of which table the file is.
        path: of the file, decoded, as the table's store takes it; with `view` its name among the
            files that were written for shares of a part.
        view: what it shows then; None for files as they are.
    """

    recipient: str
    table: TableName
    path: str
    view: ShownOf | None = None


class UrlSigner:
    """Signs and checks URLs of files.

    Args:
        key: of the server.
        seconds: how long a URL holds.
        own_urls: never use the store's own URLs.
    """

    def __init__(self, key: bytes, seconds: int, *, own_urls: bool = False) -> None:
        self._key = hmac.digest(key, b"deltalog sharing urls", "sha256")
        self._seconds = seconds
        self._own_urls = own_urls

    def expiry_ms(self, now_ms: int) -> int:
        """When URLs that are signed now end."""
        return now_ms + self._seconds * 1000

    def signer(
        self, table: SharedTable, recipient: Recipient, base: str, expires_ms: int
    ) -> Callable[[str], str]:
        """What makes the URL of a file of a table from its decoded path.

        Args:
            table: whose files.
            recipient: for whom.
            base: URL of the protocol's root on this server.
            expires_ms: when the URLs end.
        """
        store = table.store
        if not self._own_urls and isinstance(store, SigningStore):
            seconds = self._seconds
            if store.can_sign and _signs(store):
                return lambda path: store.signed_url(path, seconds)
        return self.own_signer(table.name, recipient, base, expires_ms)

    def own_signer(
        self,
        table: TableName,
        recipient: Recipient,
        base: str,
        expires_ms: int,
        view: ShownOf | None = None,
    ) -> Callable[[str], str]:
        """As `signer`, but the URLs always lead to this server."""
        shown = "" if view is None else view.text
        owner = encode_base64(f"{recipient.name}\n{table.key}\n{shown}".encode())
        start = f"{base}/{FILES_ROUTE}/{owner}/"
        key, expiry = self._key, str(expires_ms)
        before, after = f"GET\n{owner}\n".encode(), f"\n{expiry}".encode()
        end = f"?{EXPIRY}={expiry}&{SIGNATURE}="

        def sign(path: str) -> str:
            name = encode_base64(path.encode("utf-8", "surrogateescape"))
            mac = hmac.digest(key, before + name.encode() + after, "sha256").hex()
            return f"{start}{name}{end}{mac}"

        return sign

    def check(self, owner: str, name: str, expiry: str, signature: str, now_ms: int) -> SignedFile:
        """What a URL names.

        Raises:
            Fault: 403: it was not signed here, was changed, or has expired.
        """
        if max(len(owner), len(name), len(expiry), len(signature)) > _MOST_CHARACTERS:
            raise forbidden("the URL is not valid")
        text = f"GET\n{owner}\n{name}\n{expiry}".encode("utf-8", "surrogatepass")
        mac = hmac.digest(self._key, text, "sha256").hex()
        if not hmac.compare_digest(mac.encode(), signature.encode("utf-8", "surrogatepass")):
            raise forbidden("the URL is not valid")
        if int(expiry) <= now_ms:
            raise forbidden("the URL has expired; ask for the table again")
        who, key, view = (decode_base64(owner) or b"").decode().split("\n")
        share, schema, table = key.split("/")
        path = (decode_base64(name) or b"").decode("utf-8", "surrogateescape")
        return SignedFile(
            recipient=who,
            table=TableName(share, schema, table),
            path=path,
            view=ShownOf.parse(view),
        )


def _signs(store: SigningStore) -> bool:
    """Whether the store's credentials can sign: anonymous ones, tokens and machines' often cannot.

    Cost: that of one URL.
    """
    try:
        store.signed_url("probe", 1)
    except DeltaError as error:
        _LOG.info("%s cannot sign URLs: %s", type(store).__name__, type(error).__name__)
        return False
    return True
