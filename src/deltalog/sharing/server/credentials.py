"""Temporary credentials for a table's directory, from stores that issue them.

Owns whether they are issued, for which directory and for how long; the module of each kind of
store makes them, for reading only. They are issued only for tables whose configuration says how.

Protocol: Generate Temporary Table Credentials
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltalog._json import dumps
from deltalog.errors import DeltaError, StorageError
from deltalog.paths import canonical_path, store_kind
from deltalog.sharing.server.faults import invalid, unsupported
from deltalog.sharing.wire.codec import parse_object
from deltalog.storage.filesystems import files_class

if TYPE_CHECKING:
    from deltalog.sharing.server.answers import TableRequest
    from deltalog.sharing.server.config import TableConfig
    from deltalog.storage.fsspec_files import IssuedCredentials

# AWS's bounds for sessions of a chained role.
_LEAST_SECONDS: Final = 900
_MOST_SECONDS: Final = 3600


def answer_credentials(request: TableRequest, body: bytes) -> bytes:
    """Return the body of the response to `POST …/temporary-table-credentials`.

    Raises:
        Fault: 400 for a table without credentials, or a location outside of the table.
    """
    config = request.table.config
    node = parse_object(body.strip() or b"{}", "credentials")
    wanted = node.optional("location", str)
    if config.credentials is None:
        raise unsupported("temporary credentials are not given for this table")
    location = config.location.rstrip("/")
    if wanted is not None:
        location = _inside(wanted, location)
    issued = issue(config, location, request.now_ms)
    credentials = {
        "location": location,
        issued.kind: dict(issued.values),
        "expirationTime": issued.expires_ms,
    }
    return dumps({"credentials": credentials})


def issue(config: TableConfig, location: str, now_ms: int) -> IssuedCredentials:
    """Return credentials for one directory.

    Raises:
        StorageError: the cloud's service refused or failed.
        Fault: 400 for a store that does not issue credentials.
    """
    make = getattr(files_class(store_kind(location)), "temporary_credentials", None)
    if make is None:
        raise unsupported("temporary credentials are not given for this table")
    settings = dict(config.credentials or {})
    seconds = int(settings.pop("seconds", _MOST_SECONDS))
    seconds = min(max(seconds, _LEAST_SECONDS), _MOST_SECONDS)
    until_ms = now_ms + seconds * 1000
    try:
        made: IssuedCredentials = make(
            location, config.storage_options, settings, until_ms, seconds
        )
    except DeltaError:
        raise
    except Exception as error:
        # The service's message may name roles and accounts.
        raise StorageError(f"no temporary credentials: {type(error).__name__}") from error
    return made


def _inside(wanted: str, location: str) -> str:
    """Return the requested location, which must be the table's directory or inside of it."""
    path = canonical_path(wanted.rstrip("/"), location)
    climbs = any(part == ".." for part in path.split("/"))
    if "://" in path or path.startswith("/") or climbs:
        raise invalid("location: expected the table's location or a directory in it")
    return f"{location}/{path}" if path else location
