"""Journals of transactions over several tables: the commits that one of them is about to make.

Owns the stored form, which is never trusted, and the folder of such files. `prepared` makes a
transaction of one of the commits again; who commits them, and in which order, is `table`'s.

A journal exists from the moment when every commit is prepared, until all of them are made.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from deltalog._json import JsonObject, dumps, loads
from deltalog.errors import (
    AlreadyExistsError,
    InvalidInputError,
    MalformedLogError,
    ObjectNotFoundError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.storage.store import Store

MOST_BYTES: Final = 256 << 20
APP_VERSION: Final = 1
_FORMAT: Final = 1
_YEAR_10000_MS: Final = 253_402_300_800_000
_UUID: Final = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_FILE_NAME: Final = re.compile(rf"(?P<id>{_UUID})\.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedCommit:
    """A commit of one table, as it was about to be made.

    Args:
        name: the table's in its catalog.
        table_id: of its metadata: another table may have the name later.
        base_version: the version on top of which it was prepared.
        data: its actions, as a commit holds them.
    """

    name: tuple[str, ...]
    table_id: str
    base_version: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """The commits of one transaction, in the order in which they are made.

    Args:
        transaction_id: a UUID.
        created_ms: when the commits were prepared, in milliseconds since 1970, UTC.
        commits: of at least two tables.
    """

    transaction_id: str
    created_ms: int
    commits: tuple[PreparedCommit, ...]

    @property
    def app_id(self) -> str:
        """The application that each commit records, so that its table tells whether it has it."""
        return app_id_of(self.transaction_id)

    @property
    def path(self) -> str:
        """Its file in the folder of journals."""
        return f"{self.transaction_id}.json"


def app_id_of(transaction_id: str) -> str:
    """The application transaction of a transaction's commits."""
    return f"deltalog-transaction-{transaction_id}"


def encode_journal(journal: Journal) -> bytes:
    """The stored form.

    Raises:
        InvalidInputError: it is longer than what a recovery would read.
    """
    data = dumps(
        {
            "deltalogTransaction": _FORMAT,
            "id": journal.transaction_id,
            "createdTime": journal.created_ms,
            "tables": [
                {
                    "name": list(commit.name),
                    "tableId": commit.table_id,
                    "version": commit.base_version,
                    "commit": commit.data.decode(),
                }
                for commit in journal.commits
            ],
        }
    )
    if len(data) > MOST_BYTES:
        raise InvalidInputError(
            f"cannot journal a transaction over {len(journal.commits)} tables: its commits are "
            f"{len(data)} bytes, and a journal holds at most {MOST_BYTES}; change fewer files at "
            "once"
        )
    return data


def decode_journal(data: bytes, path: str) -> Journal:
    """Parse a journal.

    Raises:
        MalformedLogError: it is none, or damaged, or belongs to another transaction.
    """
    where = f"journal {path}"
    node = JsonObject(loads(data, where), where)
    if (found := node.required("deltalogTransaction", int)) != _FORMAT:
        raise node.error(f"{where}: expected format {_FORMAT}, found {found}")
    transaction_id = node.required("id", str)
    if path != f"{transaction_id}.json" or not _FILE_NAME.fullmatch(path):
        raise node.error(f"{where}: expected the id of its name, found {transaction_id!r}")
    commits = tuple(
        _commit(JsonObject(item, f"{where}, table {number}"))
        for number, item in enumerate(node.required("tables", list), 1)
    )
    if not commits or len({commit.table_id for commit in commits}) < len(commits):
        raise node.error(f"{where}: expected different tables, found {len(commits)}")
    created_ms = node.required("createdTime", int)
    if not 0 <= created_ms < _YEAR_10000_MS:
        raise node.error(f"{where}.createdTime: expected a moment, found {created_ms}")
    return Journal(transaction_id=transaction_id, created_ms=created_ms, commits=commits)


def _commit(node: JsonObject) -> PreparedCommit:
    name: list[Any] = node.required("name", list)
    if not name or not all(isinstance(part, str) and part for part in name):
        raise node.error(f"{node.where}.name: expected texts, found {name!r:.100}")
    version = node.required("version", int)
    if version < 0:
        raise node.error(f"{node.where}.version: expected a version, found {version}")
    return PreparedCommit(
        name=tuple(name),
        table_id=node.required("tableId", str),
        base_version=version,
        data=node.required("commit", str).encode(errors="surrogatepass"),
    )


class Journals:
    """A folder of journals; nothing else in it is looked at.

    Args:
        store: whose root is the folder.
    """

    def __init__(self, store: Store) -> None:
        self.store = store

    def put(self, journal: Journal) -> None:
        """Keep a journal.

        Raises:
            StorageError: perhaps it is kept, perhaps not, as the error says.
        """
        data = encode_journal(journal)
        try:
            self.store.put_if_absent(journal.path, data)
        except AlreadyExistsError:
            # A repeated request finds the file of its first copy: the id is nobody else's.
            if self.store.read(journal.path) != data:
                raise

    def ids(self) -> list[str]:
        """The ids of all journals, in the order of their text. Cost: one listing."""
        names = [_FILE_NAME.fullmatch(file.name) for file in self.store.list_from("", "")]
        return sorted(found["id"] for found in names if found is not None)

    def read(self, transaction_id: str) -> Journal | None:
        """A journal; None if it is gone, because its transaction is complete.

        Raises:
            MalformedLogError: it is damaged, or too long.
            InvalidInputError: that is no id of a transaction.
        """
        path = _path(transaction_id)
        try:
            size_bytes = self.store.stat(path).size_bytes
            if size_bytes > MOST_BYTES:
                raise MalformedLogError(
                    f"cannot read journal {path} in {self.store.root}: it has {size_bytes} bytes, "
                    f"and none has more than {MOST_BYTES}"
                )
            return decode_journal(self.store.read(path), path)
        except ObjectNotFoundError:
            return None

    def remove(self, transaction_ids: Sequence[str]) -> None:
        """Forget journals; those that are gone already are no error."""
        self.store.delete_many([_path(one) for one in transaction_ids])


def _path(transaction_id: str) -> str:
    path = f"{transaction_id}.json"
    if not _FILE_NAME.fullmatch(path):
        raise InvalidInputError(
            f"cannot take {transaction_id!r} for the id of a transaction: expected a UUID"
        )
    return path
