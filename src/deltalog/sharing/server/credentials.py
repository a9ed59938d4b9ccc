"""Temporary credentials for a table's directory, where its store can give such.

Owns whether they are given, for which directory and for how long; the module of each kind of
store makes them, for reading only. Off unless a table's configuration says how they are made.

Protocol: Generate Temporary Table Credentials
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltalog._json import dumps
from deltalog.errors import DeltaError, StorageError
from deltalog.paths import canonical_path, store_kind
from deltalog.sharing.server.faults import invalid, unsupported
from deltalog.sharing.wire.listing import message_object
from deltalog.storage.filesystems import files_class

if TYPE_CHECKING:
    from deltalog.sharing.server.answers import Asked
    from deltalog.sharing.server.config import TableConfig
    from deltalog.storage.fsspec_files import TemporaryCredentials

_LEAST_SECONDS: Final = 900
_MOST_SECONDS: Final = 3600


def answer_credentials(asked: Asked, body: bytes) -> bytes:
    """The answer to `POST …/temporary-table-credentials`.

    Raises:
        Fault: 400: the table gives none, or the location is outside of it.
    """
    config = asked.table.config
    node = message_object(body.strip() or b"{}", "credentials")
    wanted = node.optional("location", str)
    if config.credentials is None:
        raise unsupported("temporary credentials are not given for this table")
    location = config.location.rstrip("/")
    if wanted is not None:
        location = _inside(wanted, location)
    issued = issue(config, location, asked.now_ms)
    told = {"location": location, issued.kind: dict(issued.values)}
    return dumps({"credentials": {**told, "expirationTime": issued.expires_ms}})


def issue(config: TableConfig, location: str, now_ms: int) -> TemporaryCredentials:
    """Credentials for one directory.

    Raises:
        StorageError: the service did not give any.
        Fault: 400: nobody can give credentials for such a place.
    """
    make = getattr(files_class(store_kind(location)), "temporary_credentials", None)
    if make is None:
        raise unsupported("temporary credentials are not given for this table")
    settings = dict(config.credentials or {})
    seconds = int(settings.pop("seconds", _MOST_SECONDS))
    seconds = min(max(seconds, _LEAST_SECONDS), _MOST_SECONDS)
    until_ms = now_ms + seconds * 1000
    try:
        made: TemporaryCredentials = make(
            location, config.storage_options, settings, until_ms, seconds
        )
    except DeltaError:
        raise
    except Exception as error:
        # What the service says may hold names of roles and accounts.
        raise StorageError(f"no temporary credentials: {type(error).__name__}") from error
    return made


def _inside(wanted: str, location: str) -> str:
    """The place that is asked for, which is the table's directory or below it."""
    path = canonical_path(wanted.rstrip("/"), location)
    climbs = any(part == ".." for part in path.split("/"))
    if "://" in path or path.startswith("/") or climbs:
        raise invalid("location: expected the table's location or a directory in it")
    return f"{location}/{path}" if path else location
