"""A catalog of three small tables in dicts, and machines that work on it: they die, or meet others.

For tests of transactions over several tables.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar

from deltalog import CatalogTransactions, DeltaTable, write_deltalake
from deltalog.catalogs import FileCatalog, Name
from deltalog.errors import StorageError
from deltalog.storage.store import Store
from deltalog.testing.stores import _Wrapper
from tests.support.facade import NO_VECTORS, VECTORS, rows
from tests.support.logs import DictStore

NAMES = ("s.a", "s.b", "s.c")
BEFORE = {name: [(number, number) for number in range(4)] for name in NAMES}
AFTER = {
    "s.a": [*BEFORE["s.a"], (10, 10)],
    "s.b": [(0, 0), (2, 2), (3, 3)],
    "s.c": [(0, 0), (1, 1), (2, 102), (3, 3), (11, 11)],
}
Rows = dict[str, list[tuple[int, int]]]
_Result = TypeVar("_Result")


class Fate(Enum):
    """What happens at a call."""

    DIES_BEFORE = "the machine dies, and nothing is done"
    DIES_AFTER = "it is done, and the machine dies"
    MEETS = "somebody else acts, and then it is done"


@dataclass
class Machine:
    """A machine whose calls to all stores are counted; after its death each of them fails.

    Args:
        at: number of the call at which something happens, from 1; 0 is never.
        fate: what happens.
        visitor: acts if the fate is `MEETS`.
        calls: how many there were.
        journal_at: number of the call that wrote a journal.
    """

    at: int = 0
    fate: Fate = Fate.DIES_BEFORE
    visitor: Callable[[], object] | None = None
    calls: int = 0
    journal_at: int = 0
    is_dead: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def pass_call(self, act: Callable[[], _Result]) -> _Result:
        """Carry out a call, with what happens at it."""
        with self.lock:
            self.calls += 1
            is_struck = self.calls == self.at
        if is_struck and self.fate is Fate.MEETS and self.visitor is not None:
            self.visitor()
        if self.is_dead or (is_struck and self.fate is Fate.DIES_BEFORE):
            self.is_dead = True
            raise StorageError("the machine is dead")
        try:
            return act()
        finally:
            if is_struck and self.fate is Fate.DIES_AFTER:
                self.is_dead = True
                raise StorageError("the machine is dead")


class WatchedStore(_Wrapper):
    """A store that a machine uses."""

    def __init__(self, store: Store, machine: Machine) -> None:
        super().__init__(store)
        self.machine = machine

    def _pass(
        self, verb: str, paths: tuple[str, ...], act: Callable[[], _Result], data: bytes = b""
    ) -> _Result:
        del data
        if verb == "put_if_absent" and paths[0].count("/") == 0 and paths[0].endswith(".json"):
            self.machine.journal_at = self.machine.calls + 1
        return self.machine.pass_call(act)


@dataclass
class Place:
    """The files of the tables and of the journals."""

    tables: dict[Name, DictStore]
    journals: DictStore = field(default_factory=lambda: DictStore(root="memory://journals"))

    @classmethod
    def new(cls) -> Place:
        """A place with new tables; of the second one rows are deleted with vectors."""
        place = cls({})
        for name in NAMES:
            parts = tuple(name.split("."))
            store = DictStore(root=f"memory://{name}")
            data = [{"id": id_, "v": v} for id_, v in BEFORE[name]]
            properties = VECTORS if name == "s.b" else NO_VECTORS
            write_deltalake(store, data, configuration=properties)
            place.tables[parts] = store
        return place

    def copy(self) -> Place:
        """Another place with the same tables."""
        return Place(
            {
                name: DictStore(files=dict(store.files), root=store.root)
                for name, store in self.tables.items()
            },
        )

    def table(self, name: str) -> DeltaTable:
        """A table as it is now."""
        return DeltaTable(self.tables[tuple(name.split("."))])

    def rows(self) -> Rows:
        """The rows of all tables; each file is read."""
        return {name: rows(self.table(name)) for name in NAMES}

    def versions(self) -> list[int]:
        """The version of each table."""
        return [self.table(name).version() for name in NAMES]

    def data_files(self) -> set[str]:
        """Every file of a table outside of its log."""
        return {
            f"{store.root}/{path}"
            for store in self.tables.values()
            for path in store.files
            if not path.startswith("_delta_log/")
        }


class PlaceCatalog(FileCatalog):
    """The catalog of a place, as a machine sees it."""

    def __init__(self, place: Place, machine: Machine | None = None) -> None:
        super().__init__("memory://place")
        self._files = place
        self._machine = machine or Machine()

    def _store(self, name: Name) -> Store:
        known = self._files.tables.get(name, DictStore())
        return WatchedStore(known, self._machine)

    def journal_store(self) -> Store:
        return WatchedStore(self._files.journals, self._machine)


def transactions(place: Place, machine: Machine | None = None) -> CatalogTransactions:
    """Those of a place, on a machine."""
    return CatalogTransactions(PlaceCatalog(place, machine))


def change(place: Place, machine: Machine | None = None) -> None:
    """One transaction over all tables: `BEFORE` becomes `AFTER`."""
    with transactions(place, machine).begin() as tx:
        tx.table("s.a").append([{"id": 10, "v": 10}])
        tx.table("s.b").delete("id = 1")
        tx.table("s.c").update({"v": "v + 100"}, predicate="id = 2")
        tx.table("s.c").append([{"id": 11, "v": 11}])
