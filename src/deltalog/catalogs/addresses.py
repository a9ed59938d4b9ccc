"""Parse URIs of tables in a catalog, `uc://catalog.schema.table`, and strings that name catalogs.

This module defines the syntax of these strings. It finds the Unity Catalog that they mean, in the
environment or in the storage options.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deltalog._util.paths import parse_table_uri
from deltalog.catalogs.files import FileCatalog
from deltalog.catalogs.protocol import Name, NamedTable, TableCatalog
from deltalog.errors import InvalidInputError
from deltalog.storage.options import truth

if TYPE_CHECKING:
    from deltalog.catalogs.unity.catalog import UnityCatalog
    from deltalog.catalogs.unity.client import PicklesSecrets, UnitySettings
    from deltalog.storage.fsspec_store import StorageOptions
    from deltalog.storage.http.client import HttpOptions

# Matches one part of a table's name: a string without quotes, or a string in backticks. Inside
# backticks, two backticks mean one.
_PART: Final = re.compile(r"(?:`(?P<quoted>(?:[^`]|``)+)`|(?P<plain>[^`./@]+))(?P<dot>\.|$)")

_SERVER: Final = re.compile(r"https?://", re.IGNORECASE)

# Strings that would mean a local directory with such a name.
_MISSPELLED: Final = re.compile(
    r"(?P<scheme>uc|unity|unity-?catalog|databricks|glue):/*", re.IGNORECASE
)

# Names of catalogs and their products, which would mean a local directory.
_KINDS: Final = re.compile(
    r"(?:uc|unity|databricks|aws|hive|hms|iceberg|rest|polaris|nessie|gravitino|athena)"
    r"(?:[-_ ]?(?:catalog|metastore|glue))?|spark_catalog",
    re.IGNORECASE,
)

_OF_UNITY_OR_GLUE: Final = re.compile(r"uc|unity|databricks|aws|athena", re.IGNORECASE)
_NO_CLIENT: Final = (
    "; deltalog has no client for this kind of catalog: pass tables by name, as in "
    "connect({'sales': location}), or an own TableCatalog"
)

_NAMES: Final = ("glue", "uc://")
_SIMILAR: Final = 0.75

_FORM: Final = "expected uc://catalog.schema.table"


def resolve_address(uri: str, storage_options: StorageOptions | None) -> NamedTable:
    """Return the catalog and the name of the table in a URI.

    Raises:
        InvalidInputError: the name does not have three parts, or no catalog is configured.
    """
    location = parse_table_uri(uri)
    at: int | datetime | None = location.version
    if location.timestamp_ms is not None:
        at = datetime.fromtimestamp(location.timestamp_ms / 1000, UTC)
    name = _parts(location.uri[len("uc://") :].rstrip("/"), uri)
    return NamedTable(catalog=_catalog(storage_options), name=name, at=at)


def open_catalog(text: str, storage_options: StorageOptions | None = None) -> TableCatalog:
    """Open the catalog that a string names.

    Args:
        text: `uc://` means the Unity Catalog of the environment or of the storage options, and
            `uc://main` means one of its catalogs. An HTTP URL means the Unity Catalog at that URL,
            and `glue` means AWS Glue. Any other string is a directory of tables.
        storage_options: options for the tables' stores, and for a Unity Catalog.

    Raises:
        InvalidInputError: no catalog is configured.
    """
    lower = text.lower()
    if lower.startswith("uc://"):
        within = text[len("uc://") :].strip("/")
        if not within.isidentifier() and within:
            raise InvalidInputError(f"cannot open {text!r} as a catalog: expected uc://catalog")
        return _catalog(storage_options, within=within or None)
    if _SERVER.match(text):
        if callable(storage_options):
            storage_options = storage_options()
        return _catalog({**(storage_options or {}), "unity_catalog_url": text})
    if lower == "glue":
        from deltalog.catalogs.glue import GlueCatalog  # noqa: PLC0415  # boto3 is optional

        return GlueCatalog(storage_options=storage_options)
    if _KINDS.fullmatch(text) and not Path(text).exists():
        raise InvalidInputError(
            f"cannot open {text!r} as a catalog: expected uc://catalog for the Unity Catalog of "
            "the environment, its URL, glue for AWS Glue, or a directory of tables; "
            f"'./{text}' is a directory" + ("" if _OF_UNITY_OR_GLUE.match(text) else _NO_CLIENT)
        )
    if (found := _MISSPELLED.match(text)) is not None:
        name = text[found.end() :].strip("/")
        meant = "glue" if found["scheme"].lower() == "glue" else f"uc://{name}"
        raise InvalidInputError(
            f"cannot open {text!r} as a catalog: expected uc://catalog, the URL of a Unity "
            f"Catalog, glue, or a directory of tables; did you mean {meant!r}?"
        )
    close = get_close_matches(lower, _NAMES, 1, _SIMILAR)
    if close and not Path(text).exists():
        raise InvalidInputError(
            f"cannot open {text!r} as a catalog: there is no such directory; did you mean "
            f"{close[0]!r}?"
        )
    return FileCatalog(text, storage_options)


def _parts(text: str, uri: str) -> Name:
    found: list[str] = []
    position = 0
    while position < len(text):
        match = _PART.match(text, position)
        if match is None:
            break
        quoted = match["quoted"]
        found.append(match["plain"] if quoted is None else quoted.replace("``", "`"))
        position = match.end()
        if not match["dot"]:
            break
    if position < len(text) or len(found) != 3 or text.endswith("."):
        raise InvalidInputError(f"cannot use {uri!r} as a table's name: {_FORM}")
    return tuple(found)


def _catalog(storage_options: StorageOptions | None, *, within: str | None = None) -> UnityCatalog:
    """Return the Unity Catalog of the environment or storage options; equal settings share one."""
    if callable(storage_options):
        raise InvalidInputError(
            "cannot use a callable as storage options for a table of a catalog: the catalog "
            "provides the credentials"
        )
    # aiohttp is optional: other catalogs do not need it.
    from deltalog.catalogs.unity.client import split_options, unity_settings  # noqa: PLC0415
    from deltalog.storage.http.client import HttpOptions  # noqa: PLC0415

    given, rest = split_options(storage_options or {})
    http = HttpOptions(allow_http=truth("allow_http", given.pop("allow_http", False)))
    local = truth("allows_local_files", given.pop("allows_local_files", False))
    # If the credentials are storage options, Spark tasks receive them with the other options.
    has_credentials = bool(given.get("token") or given.get("client_secret"))
    settings = unity_settings(given.pop("url", None), **given)
    own = _Options(rest if storage_options is not None else None)
    return _shared(settings, within, http, local, own, "tasks" if has_credentials else False)


class _Options:
    """Storage options in a hashable form, for use as a key."""

    def __init__(self, options: Mapping[str, Any] | None) -> None:
        self.options = options
        items = None if options is None else sorted(options.items())
        self._key = repr(items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Options) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


@functools.lru_cache(maxsize=32)
def _shared(
    settings: UnitySettings,
    within: str | None,
    http: HttpOptions,
    local: bool,  # noqa: FBT001  # part of the cache key
    options: _Options,
    pickles_secrets: PicklesSecrets,
) -> UnityCatalog:
    from deltalog.catalogs.unity.catalog import UnityCatalog  # noqa: PLC0415  # aiohttp is optional

    return UnityCatalog(
        settings.url,
        token=settings.token,
        client_id=settings.client_id,
        client_secret=settings.client_secret,
        catalog=within,
        storage_options=options.options,
        http_options=http,
        allows_local_files=local,
        pickles_secrets=pickles_secrets,
    )
