"""The null counts in a Parquet footer, read without decoding any other statistic.

pyarrow (26) ends the process where a damaged minimum or maximum does not decode, and asking for a
null count decodes both. A damaged checkpoint must not do that, so its footer is walked here: it is
a tree of Thrift's compact protocol, of which a few numbered fields matter.

Protocol: none; Apache Parquet's `parquet.thrift`, Apache Thrift's compact protocol
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.errors import DataFileUnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow.parquet as pq  # noqa: TID251  # its type alone

_MAGIC_BYTES: Final = 4
_ROW_GROUPS, _COLUMNS, _META_DATA, _STATISTICS, _NULL_COUNT = 4, 1, 3, 12, 3


def null_counts(footer: pq.FileMetaData) -> list[list[int | None]]:
    """How many values are NULL, for each row group and in it each leaf column; None if not told.

    Raises:
        DataFileUnreadableError: the footer is damaged.

    Cost: some microseconds per column chunk: for the few row groups of a checkpoint.
    """
    out = pa.BufferOutputStream()
    try:
        footer.write_metadata_file(out)
        node = _Reader(out.getvalue().to_pybytes(), _MAGIC_BYTES).struct()
        return [
            [_null_count(chunk) for chunk in group.get(_COLUMNS, ())]
            for group in node.get(_ROW_GROUPS, ())
        ]
    except (pa.ArrowException, OSError, LookupError, TypeError, AttributeError) as error:
        raise DataFileUnreadableError(f"cannot read a Parquet footer: {error!r}") from error


def _null_count(chunk: Mapping[int, Any]) -> int | None:
    found = chunk.get(_META_DATA, {}).get(_STATISTICS, {}).get(_NULL_COUNT)
    return found if isinstance(found, int) else None


class _Reader:
    """Reads values of Thrift's compact protocol, one after the other."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self._position = position
        self._readers: dict[int, Callable[[], Any]] = {
            1: lambda: True,
            2: lambda: False,
            3: self._byte,
            4: self._integer,
            5: self._integer,
            6: self._integer,
            7: self._double,
            8: self._bytes,
            9: self._list,
            10: self._list,
            12: self.struct,
        }

    def struct(self) -> dict[int, Any]:
        """The fields of a struct by their numbers."""
        fields: dict[int, Any] = {}
        number = 0
        while (head := self._byte()) != 0:
            number = number + (head >> 4) if head >> 4 else self._integer()
            fields[number] = self._readers[head & 15]()
        return fields

    def _byte(self) -> int:
        found = self._data[self._position]
        self._position += 1
        return found

    def _varint(self) -> int:
        found = shift = 0
        while (byte := self._byte()) & 0x80:
            found |= (byte & 0x7F) << shift
            shift += 7
        return found | byte << shift

    def _integer(self) -> int:
        zigzag = self._varint()
        return (zigzag >> 1) ^ -(zigzag & 1)

    def _double(self) -> float:
        self._position += 8
        found: float = struct.unpack("<d", self._data[self._position - 8 : self._position])[0]
        return found

    def _bytes(self) -> bytes:
        length = self._varint()
        self._position += length
        return self._data[self._position - length : self._position]

    def _list(self) -> list[Any]:
        head = self._byte()
        length = self._varint() if head >> 4 == 15 else head >> 4
        kind = head & 15
        # In a list a boolean is a byte of its own.
        read = self._byte if kind in {1, 2} else self._readers[kind]
        return [read() for _ in range(length)]
