"""Row-level deletes of an Iceberg table, and the rules by which they apply to its data files.

Knows what manifests say: no file is read here. A delete applies to data files that are not younger
and of its partition; equality deletes of a spec without a partition apply to all partitions.

Protocol: Iceberg Table Spec: Scan Planning, Row-level Deletes, Sequence Numbers
"""

from __future__ import annotations

import struct
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from deltalog.schema.types import DataType, Field

Scope = tuple[int, tuple[object, ...]]
"""A partition: the spec's id, and its values as far as they can be compared."""

_NAN: Final = "NaN"


@dataclass(frozen=True, slots=True)
class Target:
    """What decides which deletes apply to a data file.

    Args:
        sequence_number: of the commit that its rows are from.
        scope: its partition.
        identities: ids of the columns whose only value in the file its partition has.
    """

    sequence_number: int
    scope: Scope
    identities: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFile:
    """A delete file, or a deletion vector in one.

    Args:
        path: decoded, relative to the table.
        size_bytes: of the file.
        num_rows: how many deletes it holds.
        sequence_number: of the commit that it is from.
        scope: its partition; None are all.
        referenced: location of the only data file that it is about; None may be any.
        place: of a deletion vector: its offset and its length.
    """

    path: str
    size_bytes: int
    num_rows: int
    sequence_number: int
    scope: Scope | None
    referenced: str | None = None
    place: tuple[int, int] | None = None

    def applies_to(self, location: str, target: Target) -> bool:
        """Whether positions here are rows of a data file."""
        return (
            self.referenced in {None, location}
            and target.scope == self.scope
            and target.sequence_number <= self.sequence_number
        )


@dataclass(frozen=True, slots=True)
class EqualityColumn:
    """A column by whose values rows are deleted.

    Args:
        field: to read: the column, or the struct that it is in, without its other parts; the name
            is the column's id, because two columns of different times may have one name.
        kind: of the column.
        path: of the column in the field; empty for the field itself.
    """

    field: Field
    kind: DataType
    path: tuple[str, ...] = ()


EqualityKey = tuple["Scope | None", tuple[int, ...]]
"""Equality deletes that are looked up together: those of a partition by the same columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowDeletes:
    """All row-level deletes of a snapshot.

    Args:
        root: location of the table.
        targets: its data files, by location as the metadata has it.
        vectors: deletion vectors.
        positions: position delete files.
        equalities: equality delete files.
        columns: by which those delete rows, by id.
    """

    root: str
    targets: Mapping[str, Target]
    vectors: Sequence[DeleteFile] = ()
    positions: Sequence[DeleteFile] = ()
    equalities: Mapping[EqualityKey, Sequence[DeleteFile]] = field(default_factory=dict)
    columns: Mapping[int, EqualityColumn] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether there is none."""
        return not (self.vectors or self.positions or self.equalities)

    def vectors_by_file(self) -> dict[str, DeleteFile]:
        """The deletion vector of each data file that has one, by its location.

        Raises:
            InvalidInputError: a data file has two, or one of another partition, or an older one.
        """
        found: dict[str, DeleteFile] = {}
        for vector in self.vectors:
            location = vector.referenced or ""
            target = self.targets.get(location)
            if target is None:
                continue  # of a file that was removed since
            if location in found:
                raise self.refused(f"the file {location!r} has more than one deletion vector")
            if not vector.applies_to(location, target):
                raise self.refused(
                    f"the deletion vector of {location!r} in {vector.path!r} is of another "
                    "partition, or older than the file"
                )
            found[location] = vector
        return found

    def positions_in_use(self) -> list[DeleteFile]:
        """The position delete files that may apply to a data file."""
        oldest = self._oldest()
        found = []
        for file in self.positions:
            if file.referenced is not None:
                target = self.targets.get(file.referenced)
                is_used = target is not None and file.applies_to(file.referenced, target)
            else:
                number = oldest.get(file.scope)
                is_used = number is not None and number <= file.sequence_number
            if is_used:
                found.append(file)
        return found

    def equalities_in_use(self) -> dict[EqualityKey, list[DeleteFile]]:
        """The equality delete files that may apply to a data file: there is an older one."""
        oldest = self._oldest()
        found: dict[EqualityKey, list[DeleteFile]] = defaultdict(list)
        for key, files in self.equalities.items():
            number = oldest.get(key[0])
            for file in files:
                if number is not None and number < file.sequence_number:
                    found[key].append(file)
        return dict(found)

    def refused(self, why: str) -> InvalidInputError:
        """The error that says why the table cannot be taken over."""
        return refused(self.root, why)

    def _oldest(self) -> dict[Scope | None, int]:
        """The lowest sequence number of the data files of each partition, and of all (None)."""
        found: dict[Scope | None, int] = {}
        for target in self.targets.values():
            for scope in (target.scope, None):
                number = found.get(scope, target.sequence_number)
                found[scope] = min(number, target.sequence_number)
        return found


def scope_of(spec_id: int, values: Iterable[Any]) -> Scope:
    """The partition of a file; floating numbers are the same if their bits are, and NaN is NaN."""
    return spec_id, tuple(map(_comparable, values))


def refused(root: str, why: str) -> InvalidInputError:
    """The error that says why an Iceberg table cannot be taken over."""
    return InvalidInputError(f"cannot take over the Iceberg table at {root}: {why}")


def _comparable(value: Any) -> object:
    if not isinstance(value, float):
        return value
    return _NAN if value != value else struct.pack(">d", value)  # noqa: PLR0124  # NaN
