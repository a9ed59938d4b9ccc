"""A checkpoint cut into shares that others work on: each is some row groups of some files.

Owns the cut, which looks at sizes only, and a share's reading. Which processes read them is not
known here.

Protocol: Checkpoints, Sidecar Files
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltalog.checkpoints.layout import open_checkpoint_file
from deltalog.checkpoints.reader import Checkpoint

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog.checkpoints.layout import CheckpointFile
    from deltalog.log.segment import CheckpointFiles
    from deltalog.paths import FileInfo
    from deltalog.storage.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A run of a file's row groups, one of several that are about equal.

    Args:
        file: which.
        number: of the run, from 0.
        count: how many runs the file is cut into.
    """

    file: FileInfo
    number: int = 0
    count: int = 1


Share = tuple[Slice, ...]


def cut_checkpoint(checkpoint: Checkpoint, share_bytes: int) -> list[Share]:
    """The checkpoint's files in shares: every row group is in just one.

    Args:
        checkpoint: the whole.
        share_bytes: about as much as a share holds; a row group is not cut.

    Cost: none, but for the top-level file of a V2 checkpoint.
    """
    shares: list[Share] = []
    small: list[Slice] = []
    room = share_bytes
    for info in checkpoint.data_files:
        count = -(-info.size_bytes // max(1, share_bytes))
        if count > 1:
            shares += [(Slice(file=info, number=number, count=count),) for number in range(count)]
            continue
        if small and info.size_bytes > room:
            shares.append(tuple(small))
            small, room = [], share_bytes
        small.append(Slice(file=info))
        room -= info.size_bytes
    return [*shares, tuple(small)] if small else shares


class PartialCheckpoint(Checkpoint):
    """Some row groups of a checkpoint, read as if there were no others.

    Args:
        store: of the table.
        files: the top-level files of the whole.
        share: what is read.
    """

    def __init__(self, store: Store, files: CheckpointFiles, share: Share) -> None:
        super().__init__(store, files)
        self._share = share
        self._parts: dict[str, Sequence[CheckpointFile]] = {}

    def row_groups(self) -> Iterator[PartialCheckpoint]:
        """The same adds, one row group at a time; without the removes."""
        with self._unreadable():
            adds = self._sources("add")
        for part in adds:
            one = PartialCheckpoint(self._store, self.files, ())
            one._parts = {"add": [part], "remove": []}
            yield one

    def _sources(self, kind: str) -> Sequence[CheckpointFile]:
        if kind not in self._parts:
            found: list[CheckpointFile] = []
            for one in self._share:
                # The row groups that hold such actions are told by the footer, here as anywhere.
                parts = open_checkpoint_file(self._store, one.file).parts(kind, least_bytes=0)
                first = len(parts) * one.number // one.count
                found += parts[first : len(parts) * (one.number + 1) // one.count]
            self._parts[kind] = found
        return self._parts[kind]

    def __getstate__(self) -> tuple[Store, CheckpointFiles]:
        """Refuse: a copy would be the whole."""
        raise TypeError("a part of a checkpoint is not picklable: send its share")
