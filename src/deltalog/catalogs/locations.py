"""Check the table locations that a catalog returns, and renew the credentials that it lends.

The answers of a catalog are not trusted. These are refused: local files (unless the caller allows
them), kinds of stores that tables of catalogs do not use, and names of files that lead out of the
directory of the log.

Protocol: Catalog-managed tables (staged commits)
"""

from __future__ import annotations

import logging
import re
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from deltalog._util.paths import split_location, store_kind
from deltalog._util.store_kinds import kind_named
from deltalog.errors import CatalogAccessError, CatalogError, DeltaError, UnsafePathError
from deltalog.storage.faults import has_login
from deltalog.storage.http.replies import shown_location
from deltalog.storage.options import is_sent_to_tasks, names_credentials

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog._util.clock import Clock

logger: logging.Logger = logging.getLogger(__name__)

_MARGIN_MS: Final = 300_000
_UUID: Final = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_STAGED_NAME: Final = re.compile(rf"(?P<version>\d{{20}})\.{_UUID}\.json")


def check_location(location: str, *, allows_local: bool) -> None:
    """Refuse a location that a catalog must not return.

    Args:
        location: the location that the catalog returned.
        allows_local: whether the caller allows local files.

    Raises:
        UnsafePathError: the location is a local file, is in a kind of store that tables of catalogs
            do not use, or is not a plain URL.
    """
    shown = shown_location(location)
    kind = store_kind(location)
    _, authority, path = split_location(location)
    is_plain = location.isprintable() and not has_login(location)
    if not is_plain or ".." in re.split(r"[/\\]", path):
        raise UnsafePathError(f"the catalog's location {shown!r} is refused: it is not a plain URL")
    if kind.is_native:
        if not allows_local or not path.startswith("/"):
            raise UnsafePathError(
                f"the catalog's location {shown!r} is refused: a catalog must not return files of "
                "this machine, unless allows_local_files=True"
            )
    elif not kind.is_hadoop or not authority:
        raise UnsafePathError(
            f"the catalog's location {shown!r} is refused: expected the URL of an object store"
        )


def check_staged_name(name: str, version: int) -> str:
    """Check the name of the file of a staged commit, and return the name.

    Raises:
        UnsafePathError: the name could lead out of the directory, or is the name of another
            version.
    """
    found = _STAGED_NAME.fullmatch(name)
    if found is None or not name.isascii() or int(found["version"]) != version:
        raise UnsafePathError(
            f"the catalog's file name {name[:100]!r} is refused: expected the name of a staged "
            f"commit of version {version}"
        )
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class LentCredential:
    """Temporary credentials for the files in a location.

    Args:
        prefix: the location.
        options: the credentials as storage options.
        expires_ms: the time at which they expire, in milliseconds since 1970 (UTC); None if
            unknown.
    """

    prefix: str
    options: Mapping[str, str] = field(repr=False)
    expires_ms: int | None = None


class Lender(Protocol):
    """Lends credentials for a location. Implementations can be pickled."""

    @property
    def clock(self) -> Clock:
        """The clock by which the expiry of credentials is checked."""
        ...

    @property
    def pickles_secrets(self) -> bool:
        """Whether pickles may contain the credentials."""
        ...

    def lend(self) -> Sequence[LentCredential]:
        """Return new credentials. The sequence is empty if the catalog lends none."""
        ...


class LentOptions:
    """Storage options that contain lent credentials. They are renewed shortly before they expire.

    Args:
        lender: the source of the credentials.
        location: the location for which credentials are requested.
        own: the caller's own options, to which credentials are added; None if there are none.
    """

    def __init__(self, lender: Lender, location: str, own: Mapping[str, Any] | None) -> None:
        self._lender = lender
        self._location = location
        self._own = own
        self._lock = threading.Lock()
        self._lent: LentCredential | None = None
        self._renew_at_ms: int | None = None
        self._is_asked = False

    def __call__(self) -> Mapping[str, Any]:
        """Return the options. Credentials that are about to expire are renewed first."""
        with self._lock:
            if not self._is_asked:
                self._ask()
            elif self._is_due():
                self._renew()
            lent = {} if self._lent is None else self._lent.options
            return {**(self._own or {}), **lent}

    def is_due(self) -> bool:
        """Return whether the credentials must be renewed; see `ExpiringOptions.is_due`."""
        with self._lock:
            return self._is_asked and self._is_due()

    def refuse(self) -> None:
        """Make the next call request new credentials; see `ExpiringOptions.refuse`."""
        with self._lock:
            self._is_asked = False

    def take(self, lent: Sequence[LentCredential]) -> None:
        """Use credentials that another answer of the catalog has contained."""
        with self._lock:
            self._keep(lent)

    def _is_due(self) -> bool:
        at_ms = self._renew_at_ms
        return at_ms is not None and self._lender.clock.now_ms() >= at_ms

    def _renew(self) -> None:
        """Request new credentials. If the request fails, use the current ones until they expire.

        Raises:
            DeltaError: the request failed, and the current credentials have expired.
        """
        try:
            self._ask()
        except DeltaError as error:
            now, ends = self._lender.clock.now_ms(), self._ends_ms()
            if ends is None or now >= ends:
                raise
            # Try the renewal again only after half of the remaining time, and not at every call.
            self._renew_at_ms = min(ends, now + max(1, (ends - now) // 2))
            logger.warning("credentials are not renewed yet: %s", error)

    def _ends_ms(self) -> int | None:
        return None if self._lent is None else self._lent.expires_ms

    def _ask(self) -> None:
        try:
            lent = self._lender.lend()
        except CatalogError as error:
            # If the catalog refuses to lend credentials, use the caller's own credentials, if any.
            if error.status is None or self._own is None or not names_credentials(self._own):
                raise
            logger.warning(
                "the catalog lends no credentials for %s, the storage options are used: %s",
                shown_location(self._location),
                error,
            )
            lent = ()
        self._keep(lent)

    def _keep(self, lent: Sequence[LentCredential]) -> None:
        self._lent = _chosen(lent, self._location)
        if self._lent is None and self._own is None and not store_kind(self._location).is_native:
            raise CatalogAccessError(
                f"the catalog lends no credentials for {shown_location(self._location)!r}: pass "
                "storage_options with credentials"
            )
        expires = None if self._lent is None else self._lent.expires_ms
        now = self._lender.clock.now_ms()
        # If the credentials are valid for only a few minutes, renew them after four fifths of that
        # time.
        self._renew_at_ms = (
            None if expires is None else expires - min(_MARGIN_MS, max(0, expires - now) // 5)
        )
        self._is_asked = True

    def __getstate__(self) -> dict[str, Any]:
        if is_sent_to_tasks():
            # Renew the credentials before pickling. A task cannot use expired credentials, and may
            # have no token to renew them.
            with suppress(DeltaError):  # the task requests credentials again, and reports the error
                self()
        with self._lock:
            state = self.__dict__.copy()
        del state["_lock"]
        if not (self._lender.pickles_secrets or is_sent_to_tasks()):
            state.update(_lent=None, _renew_at_ms=None, _is_asked=False)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"LentOptions({shown_location(self._location)!r})"


def _chosen(lent: Sequence[LentCredential], location: str) -> LentCredential | None:
    """Return the credentials whose prefix matches the location best; None if the list is empty.

    Raises:
        CatalogError: the list is not empty, but no credentials match the location.
    """
    fitting = [one for one in lent if _covers(one.prefix, location)]
    if lent and not fitting:
        raise CatalogError(
            f"the catalog returned credentials for another location than "
            f"{shown_location(location)!r}; they are not used"
        )
    return max(fitting, key=lambda one: len(one.prefix), default=None)


def _covers(prefix: str, location: str) -> bool:
    (one, place, path), (other, own_place, own_path) = map(split_location, (prefix, location))
    if kind_named(one) != kind_named(other) or place != own_place:
        return False
    path, own_path = (text.strip("/") for text in (path, own_path))
    return not path or own_path == path or own_path.startswith(f"{path}/")
