"""The packs of a table: finding and opening them.

Open packs and listings are held in memory, for all tables of the process together.

Protocol: none (delta-io/delta #7435 proposes record-level indexes)
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import pyarrow as pa

from deltalog._util.kernels import compute
from deltalog._util.paths import FileInfo, canonical_paths
from deltalog.errors import AlreadyExistsError, DeltaError, ObjectNotFoundError
from deltalog.log.branches import named_root
from deltalog.storage.key_packs import (
    FILE_FIELDS,
    SUFFIX,
    DamagedPackError,
    KeyPack,
    PackBody,
    encode_pack,
)
from deltalog.storage.pool import map_in_pool
from deltalog.storage.store import is_local

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from deltalog.data.keys.hashing import TableKey
    from deltalog.storage.store import Store

logger: logging.Logger = logging.getLogger(__name__)

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def placed(files: pa.Table, packs: Sequence[KeyPack], root: str) -> tuple[Any, Any]:
    """Return for each file the number of its pack, and its number in the pack; -1 without a pack.

    A file is identified by its canonical path, its size and its modification time.
    """
    known = _listed(tuple(packs))
    if not known.num_rows:
        return np.full(files.num_rows, -1), np.full(files.num_rows, -1)
    named: Any = files.column("path")
    paths = canonical_paths(named, root)
    found: Any = compute.index_in(paths, value_set=known.column("path"))
    places = compute.fill_null(found, -1).to_numpy()
    is_known = places >= 0
    for name in ("size", "modificationTime"):
        is_known &= known.column(name).to_numpy()[places] == files.column(name).to_numpy()
    return (
        np.where(is_known, known.column("pack").to_numpy()[places], -1),
        np.where(is_known, known.column("number").to_numpy()[places], -1),
    )


@lru_cache(maxsize=8)
def _listed(packs: tuple[KeyPack, ...]) -> pa.Table:
    """Return the files of all packs, with the number of the pack and the number in the pack."""
    none = pa.schema([*FILE_FIELDS, ("pack", pa.int64()), ("number", pa.int64())]).empty_table()
    tables = [none]
    for number, pack in enumerate(packs):
        count = pack.files.num_rows
        files = pack.files.append_column("pack", pa.array(np.full(count, number)))
        files = files.append_column("number", pa.array(np.arange(count)))
        tables.append(files.cast(none.schema))
    return pa.concat_tables(tables).combine_chunks()


# --- The packs of a table


_MOST_HELD_BYTES: Final = 64 << 20
_MOST_LISTINGS: Final = 256


@dataclass(slots=True)
class _Held:
    """Open packs, by name: the name is the digest of the content. The oldest are dropped."""

    packs: OrderedDict[str, KeyPack] = field(default_factory=OrderedDict)
    listings: OrderedDict[tuple[str, str], tuple[int, tuple[FileInfo, ...]]] = field(
        default_factory=OrderedDict
    )
    lock: Lock = field(default_factory=Lock)
    num_bytes: int = 0

    def get(self, name: str) -> KeyPack | None:
        with self.lock:
            if (found := self.packs.get(name)) is not None:
                self.packs.move_to_end(name)
            return found

    def keep(self, name: str, pack: KeyPack) -> None:
        with self.lock:
            if name in self.packs:
                return
            self.packs[name] = pack
            self.num_bytes += pack.held_bytes
            while self.num_bytes > _MOST_HELD_BYTES and len(self.packs) > 1:
                self.num_bytes -= self.packs.popitem(last=False)[1].held_bytes

    def listed(self, place: tuple[str, str]) -> tuple[int, tuple[FileInfo, ...]] | None:
        with self.lock:
            return self.listings.get(place)

    def keep_listing(
        self, place: tuple[str, str], version: int, infos: tuple[FileInfo, ...]
    ) -> None:
        with self.lock:
            self._set(place, version, infos)

    def _set(self, place: tuple[str, str], version: int, infos: tuple[FileInfo, ...]) -> None:
        self.listings[place] = (version, infos)
        self.listings.move_to_end(place)
        while len(self.listings) > _MOST_LISTINGS:
            self.listings.popitem(last=False)

    def add(self, place: tuple[str, str], info: FileInfo, pack: KeyPack) -> None:
        """Hold a new pack. Without a listing, it is held as if listed before version 0."""
        self.keep(info.name, pack)
        with self.lock:
            version, infos = self.listings.get(place, (-1, ()))
            self._set(place, version, (*infos, info))

    def forget(self, place: tuple[str, str], path: str | None = None) -> None:
        with self.lock:
            known = self.listings.pop(place, None)
            if known is not None and path is not None:
                left = tuple(info for info in known[1] if info.path != path)
                self.listings[place] = (known[0], left)


_HELD: Final = _Held()


def _place(store: Store, key: TableKey) -> tuple[str, str]:
    # Stores in memory may have the same root. A branch counts its own versions.
    return f"{named_root(store)} {key.packed.table_id}", key.directory


def put_pack(store: Store, key: TableKey, files: pa.Table, body: PackBody) -> tuple[str, int]:
    """Write a pack, and hold it in memory.

    Args:
        store: the table's store.
        key: the key of the hashes.
        files: see `encode_pack`.
        body: see `encode_pack`.

    Returns:
        The path of the pack, and its size in bytes; 0 bytes if it exists already.

    Raises:
        StorageError: the pack cannot be written.
    """
    name, data = encode_pack(key.packed, files, body)
    path = f"{key.directory}/{name}"
    try:
        store.put_if_absent(path, data)
    except AlreadyExistsError:  # the name is the digest, so the content is the same
        return path, 0
    info = FileInfo(path, len(data), 0)
    _HELD.add(_place(store, key), info, KeyPack.of_content(path, data))
    return path, len(data)


class TableIndex:
    """The packs of a table's key.

    Args:
        store: the table's store.
        key: the table's key.
        version: the version whose files are looked up.
    """

    def __init__(self, store: Store, key: TableKey, version: int) -> None:
        self.store = store
        self._root = store.root
        self._version = version
        self._key = key
        self._place = _place(store, key)

    def packs(self, files: pa.Table | None = None) -> list[KeyPack]:
        """Return the usable packs.

        Args:
            files: if known packs contain all of these files, the packs are not listed again; None
                always lists them.

        Raises:
            StorageError: the packs cannot be listed; only without `files`.

        Cost: nothing for packs that are held in memory. Otherwise, see `KeyPack.open`.
        """
        known = _HELD.listed(self._place)
        if files is not None and known is not None:
            packs = self._opened(known[1])
            is_newest = known[0] >= self._version
            if is_newest or (placed(files, packs, self._root)[0] >= 0).all():
                return packs
        try:
            listed = list(self.store.list_from(self._key.directory, ""))
        except DeltaError as error:
            if files is None:
                raise
            logger.warning(
                "cannot list the key index of %s: %s; files are read without it", self._root, error
            )
            return []
        infos = tuple(info for info in listed if info.name.endswith(SUFFIX))
        _HELD.keep_listing(self._place, self._version, infos)
        return self._opened(infos)

    def _opened(self, infos: Iterable[FileInfo]) -> list[KeyPack]:
        return [pack for pack in self.each(self._open, list(infos)) if pack is not None]

    def each(self, function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
        """Return the results for all items; of a remote store, several at a time."""
        if is_local(self.store):
            return [function(item) for item in items]
        return map_in_pool(function, items)

    def _open(self, info: FileInfo) -> KeyPack | None:
        pack = _HELD.get(info.name)
        if pack is None or pack.path != info.path:
            try:
                pack = KeyPack.open(self.store, info)
            except (DamagedPackError, DeltaError) as error:
                self.drop(info.path, error)
                return None
            _HELD.keep(info.name, pack)
        return pack if pack.key == self._key.packed else None

    def drop(self, path: str, error: Exception) -> None:
        """Do not use a pack, because it is damaged or missing, until packs are listed again."""
        if isinstance(error, ObjectNotFoundError):  # other packs may have replaced it
            _HELD.forget(self._place)
            return
        logger.warning(
            "cannot use %s of the key index of %s: %s; its files are read without the index, until "
            "optimize.key_index() replaces it",
            path,
            self._root,
            error,
        )
        _HELD.forget(self._place, path)

    def without_entry(self, files: pa.Table) -> Any:
        """Return the numbers of the files that are in no pack, with as few requests as possible.

        Args:
            files: files with at least `path`, `size` and `modificationTime`.

        Cost: nothing if the newest packs of this process contain all files; otherwise see `packs`.
        """
        left = self.without_held_entry(files)
        if not len(left):
            return left
        return left[placed(files.take(left), self.packs(), self._root)[0] < 0]

    def without_held_entry(self, files: pa.Table) -> Any:
        """Return the numbers of the files that are in no pack that this process holds.

        Args:
            files: files with at least `path`, `size` and `modificationTime`.
        """
        left = np.arange(files.num_rows)
        known = _HELD.listed(self._place)
        for info in reversed(known[1] if known is not None else ()):
            if not len(left):
                return left
            pack = self._open(info)
            if pack is not None:
                left = left[placed(files.take(left), [pack], self._root)[0] < 0]
        return left

    def forget(self) -> None:
        """List the packs again when they are needed next."""
        _HELD.forget(self._place)
