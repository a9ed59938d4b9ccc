"""What callers hand to the facade: locations, moments, options.

Owns the forms that people write them in, and the errors for those that mean nothing here.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from deltalog.errors import InvalidInputError
from deltalog.paths import parse_table_uri
from deltalog.storage import open_store

if TYPE_CHECKING:
    from pathlib import PurePath

    from deltalog.storage.fsspec_store import StorageOptions
    from deltalog.storage.store import Store

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def open_table_store(
    table_uri: str | PurePath | Store,
    storage_options: StorageOptions | None,
    filesystem: Any,
) -> tuple[Store, int | datetime | None]:
    """The store of a table, and the version or moment that its URI names."""
    if not isinstance(table_uri, str):
        return open_store(table_uri, storage_options, filesystem=filesystem), None
    location = parse_table_uri(table_uri)
    store = open_store(table_uri, storage_options, filesystem=filesystem)
    if location.uri == table_uri or _has_log(store):
        return store, None
    store = open_store(location.uri, storage_options, filesystem=filesystem)
    if location.version is not None:
        return store, location.version
    return store, datetime.fromtimestamp((location.timestamp_ms or 0) / 1000, UTC)


def _has_log(store: Store) -> bool:
    return next(iter(store.list_from("_delta_log", "")), None) is not None


def as_timestamp_ms(moment: object) -> int:
    """Milliseconds since 1970 of an ISO 8601 text or a datetime; without a zone: UTC.

    Raises:
        InvalidInputError: the text is no moment.
    """
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError:
            raise InvalidInputError(
                f"cannot take {moment!r} for a moment: expected ISO 8601, such as "
                "2024-01-31T12:00:00Z or 2024-01-31"
            ) from None
    if not isinstance(moment, datetime):
        raise InvalidInputError(
            f"cannot take {moment!r} for a version: expected a number, an ISO 8601 text or a "
            "datetime"
        )
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def refuse(**options: Any) -> None:
    """Raise InvalidInputError for options that belong elsewhere, if one is given."""
    for name, value in options.items():
        if value is not None:
            raise InvalidInputError(
                f"cannot take {name}={value!r} here: a file system belongs to the DeltaTable "
                "(filesystem=, storage_options=), and files are read as the table's schema says"
            )


def refuse_both(**options: Any) -> None:
    """Raise InvalidInputError if more than one of these options is given."""
    given = [name for name, value in options.items() if value is not None]
    if len(given) > 1:
        raise InvalidInputError(f"cannot take both {given[0]} and {given[1]}: give one of them")
