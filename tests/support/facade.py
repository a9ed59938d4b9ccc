"""Tables of a few rows, made and changed through the facade, in a store that is a dict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from deltalog import DeltaTable, write_deltalake
from deltalog._util.json import loads
from deltalog.log.names import commit_path
from tests.support.logs import DictStore
from tests.support.raw_tables import rows_of

VECTORS: Mapping[str, str] = {"delta.enableDeletionVectors": "true"}
NO_VECTORS: Mapping[str, str] = {"delta.enableDeletionVectors": "false"}
FEED: Mapping[str, str] = {"delta.enableChangeDataFeed": "true"}


@dataclass
class BusyStore(DictStore):
    """A store in which somebody else does something right before the next commit."""

    before_commit: Callable[[], object] | None = None

    def put_if_absent(self, path: str, data: bytes) -> None:
        """As `Store`."""
        act, is_commit = self.before_commit, path.startswith("_delta_log/")
        if act is not None and is_commit:
            self.before_commit = None
            act()
        super().put_if_absent(path, data)


def make(data: Any, **options: Any) -> DeltaTable:
    """A new table of some rows."""
    store = DictStore()
    write_deltalake(store, data, **options)
    return DeltaTable(store)


def store_of(table: DeltaTable) -> DictStore:
    """The dict below a table."""
    store = table.snapshot.store
    assert isinstance(store, DictStore)
    return store


def rows(table: DeltaTable, *columns: str) -> list[Any]:
    """The rows that a table shows, sorted: tuples, or bare values of one column."""
    found = table.scan(columns=list(columns) or None).to_table()
    return sorted(rows_of(found), key=_key)


def fresh_rows(table: DeltaTable, *columns: str) -> list[Any]:
    """The same as somebody else reads it, who knows the log only."""
    return rows(DeltaTable(store_of(table)), *columns)


def actions(table: DeltaTable, version: int | None = None) -> list[dict[str, Any]]:
    """The lines of a commit, the latest one by default."""
    at = table.version() if version is None else version
    data = store_of(table).files[commit_path(at)]
    return [loads(line, "") for line in data.splitlines()]


def last(table: DeltaTable) -> dict[str, Any]:
    """What the latest commit says of itself."""
    return actions(table)[0]["commitInfo"]  # type: ignore[no-any-return]


def changes(table: DeltaTable, version: int | None = None) -> list[tuple[Any, ...]]:
    """What the change feed says of a version: the change and the first column, sorted."""
    at = table.version() if version is None else version
    found = table.load_cdf(starting_version=at, ending_version=at).read_all()
    return sorted(
        zip(found.column("_change_type").to_pylist(), found.column(0).to_pylist(), strict=True)
    )


@contextmanager
def unchanged(table: DeltaTable) -> Iterator[None]:
    """What happens in the block leaves every file of the store as it was, and no other."""
    before = dict(store_of(table).files)
    yield
    assert dict(store_of(table).files) == before


def _key(value: object) -> Any:
    """Sorts numbers by size, and whatever else in some order."""
    if isinstance(value, tuple):
        return tuple(map(_key, value))
    return f"{value:020}" if isinstance(value, int) else repr(value)
