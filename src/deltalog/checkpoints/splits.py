"""A checkpoint in splits that can be read independently: each is some row groups of some files.

Owns the splitting, which looks at sizes only, and the reading of a split. Knows nothing of the
processes that read them.

Protocol: Checkpoints, Sidecar Files
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from deltalog.checkpoints.layout import open_checkpoint_file
from deltalog.checkpoints.reader import Checkpoint

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from deltalog.checkpoints.layout import CheckpointFile, Leaf
    from deltalog.log.segment import CheckpointFiles
    from deltalog.paths import FileInfo
    from deltalog.storage.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroupRange:
    """A range of a file's row groups, one of `count` ranges of about equal size.

    Args:
        file: that holds them.
        number: of the range, from 0.
        count: number of ranges of the file.
    """

    file: FileInfo
    number: int = 0
    count: int = 1


Split = tuple[RowGroupRange, ...]


def split_checkpoint(checkpoint: Checkpoint, split_bytes: int) -> list[Split]:
    """Split the checkpoint's files; every row group is in exactly one split.

    Args:
        checkpoint: the whole.
        split_bytes: target size of a split; a row group is never cut.

    Cost: none, except for the top-level file of a V2 checkpoint.
    """
    splits: list[Split] = []
    small: list[RowGroupRange] = []
    room = split_bytes
    for info in checkpoint.data_files:
        count = -(-info.size_bytes // max(1, split_bytes))
        if count > 1:
            splits += [(RowGroupRange(file=info, number=n, count=count),) for n in range(count)]
            continue
        if small and info.size_bytes > room:
            splits.append(tuple(small))
            small, room = [], split_bytes
        small.append(RowGroupRange(file=info))
        room -= info.size_bytes
    return [*splits, tuple(small)] if small else splits


class PartialCheckpoint(Checkpoint):
    """A split of a checkpoint, read as if it were the whole.

    Args:
        store: of the table.
        files: the top-level files of the whole.
        split: to read.
    """

    def __init__(self, store: Store, files: CheckpointFiles, split: Split) -> None:
        super().__init__(store, files)
        self._split = split
        self._parts: dict[str, Sequence[CheckpointFile]] = {}

    def row_groups(self) -> Iterator[PartialCheckpoint]:
        """The adds of this split, one row group at a time; without the removes."""
        with self._unreadable():
            adds = self._sources("add")
        for part in adds:
            yield PartialCheckpoint._of_adds(self, part)

    @classmethod
    def _of_adds(cls, whole: Checkpoint, part: CheckpointFile) -> PartialCheckpoint:
        one = cls(whole.store, whole.files, ())
        one._parts = {"add": [part], "remove": []}
        return one

    @classmethod
    def each_of_adds(cls, whole: Checkpoint) -> Sequence[PartialCheckpoint]:
        """The adds of a checkpoint, one row group each, in order; without the removes.

        The checkpoint keeps them, with the columns that they cache.

        Cost: the footers, which are read at once.
        """
        if whole.held_row_groups is None:
            parts = whole.parts_of_adds()
            whole.held_row_groups = [cls._of_adds(whole, part) for part in parts]
        return cast("Sequence[PartialCheckpoint]", whole.held_row_groups)

    def bounds(self, leaves: Sequence[Leaf]) -> Mapping[Leaf, pa.Array[Any]]:
        """The least and the greatest value of some leaves of its adds, as the footer has them.

        Args:
            leaves: paths below `add`.

        Returns:
            Two values for each leaf that every add has, and whose bounds the footer tells; only of
            a single row group.
        """
        with self._unreadable():
            parts = self._sources("add")
            return parts[0].bounds("add", leaves) if len(parts) == 1 else {}

    def _sources(self, kind: str) -> Sequence[CheckpointFile]:
        if kind not in self._parts:
            found: list[CheckpointFile] = []
            for one in self._split:
                # The footer's null counts show which row groups hold such actions.
                parts = open_checkpoint_file(self._store, one.file).parts(kind, least_bytes=0)
                first = len(parts) * one.number // one.count
                found += parts[first : len(parts) * (one.number + 1) // one.count]
            self._parts[kind] = found
        return self._parts[kind]

    def __getstate__(self) -> tuple[Store, CheckpointFiles]:
        """Refuse: `Checkpoint` would restore the whole."""
        raise TypeError("a part of a checkpoint is not picklable: send its split")
